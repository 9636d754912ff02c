/* What quantized_dot means: each weight is computed where it is used, and the sums are those of dot_general. */
#include "jit/session/target.h"
#include "kernel/ref/ref_sum.h"
#include "tensor/contract_order.h"
#include "tensor/quantized.h"

/* An element of scales, zeros or minimums, in f32. */
static float number_at(const ts_buffer *b, int64_t at) {
  return ts_scalar_convert(b->dtype, ts_ref_get(b, at), TS_F32).f32;
}

/* The weight in row k of column n, as the sum's factor. */
static ts_scalar weight_at(const ts_ref_call *call, int64_t k, int64_t n) {
  const ts_attrs *a = call->op->attrs;
  const int bits = a->quantized_dot.bits, form = a->quantized_dot.form, numbers = 32 / bits;
  const ts_buffer *words = call->operands[1], *scales = call->operands[2];
  const int64_t panel = n / TS_QUANTIZED_COLS, col = n % TS_QUANTIZED_COLS;
  const int64_t word = (panel * words->shape.dims[1] + k / numbers) * TS_QUANTIZED_COLS + col;
  const int64_t group = (panel * scales->shape.dims[1] + k / a->quantized_dot.group) * TS_QUANTIZED_COLS + col;
  const uint32_t q = (uint32_t)ts_ref_get(words, word).u64 >> (k % numbers * bits) & ((1u << bits) - 1);
  const float s = number_at(scales, group), other = form ? number_at(call->operands[3], group) : 0;
  const float number = (float)q, scaled = number * s;
  float w = scaled - other;
  if (form == TS_QUANTIZED_SCALE) w = (number - (float)(1 << (bits - 1))) * s;
  if (form == TS_QUANTIZED_ZERO) w = (number - other) * s;
  const ts_scalar rounded = ts_scalar_convert(TS_F32, (ts_scalar){.f32 = w}, call->result->dtype);
  return ts_scalar_convert(call->result->dtype, rounded, TS_F32);
}

static ts_scalar element(const ts_ref_call *call, int64_t row, int64_t n, int64_t k) {
  const ts_buffer *x = call->operands[0];
  ts_ref_sum sum;
  ts_ref_sum_start(&sum, TS_F32, ts_contract_order_of(call->result->dtype, ts_target_host()->amx));
  for (int64_t i = 0; ts_ref_goes_on(call, i, k); i++)
    ts_ref_sum_add(&sum, ts_scalar_convert(x->dtype, ts_ref_get(x, row * k + i), TS_F32), weight_at(call, i, n));
  return ts_scalar_convert(TS_F32, ts_ref_sum_end(&sum), call->result->dtype);
}

void ts_ref_quantized_dot(const ts_ref_call *call) {
  const ts_shape *x = &call->operands[0]->shape, *out = &call->result->shape;
  const int64_t k = x->dims[x->rank - 1], cols = out->dims[out->rank - 1];
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(out)); i++)
    ts_ref_set(call->result, i, element(call, i / cols, i % cols, k));
}
