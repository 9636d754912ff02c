/* Fourier transforms in StableHLO, which transforms the last dims and takes whole lines: an operand is cut or padded
 * first, and its axis becomes the last one. */
#include "ir/stablehlo/stablehlo_internal.h"

static const char *type_of(ts_opcode code) {
  switch ((ts_ops_FFT)code) {
  case TS_OP_FFT: return "FFT";
  case TS_OP_IFFT: return "IFFT";
  case TS_OP_RFFT: return "RFFT";
  case TS_OP_IRFFT: return "IRFFT";
  }
  return "";
}

/* The operand, cut or padded to `points` along the axis. */
static hlo_value fitted(const hlo_call *call, hlo_value x, int32_t axis, int64_t points) {
  ts_dims start = {.rank = x.shape.rank}, high = start, stride = start;
  ts_shape shape = x.shape;
  hlo_value operands[2];
  shape.dims[axis] = points;
  for (int32_t d = 0; d < x.shape.rank; d++) stride.dims[d] = 1;
  if (points < x.shape.dims[axis])
    return hlo_op_with(call->h, "stablehlo.slice", (hlo_type){x.element, &shape}, (hlo_values){&x, 1},
                       "start_indices = %s, limit_indices = %s, strides = %s", HLO_ARRAY(&start), HLO_ARRAY(&shape),
                       HLO_ARRAY(&stride));
  if (points == x.shape.dims[axis]) return x;
  high.dims[axis] = points - x.shape.dims[axis];
  operands[0] = x;
  operands[1] = hlo_integer(call->h, (ts_dtype)x.element, &ts_shape_scalar, 0);
  return hlo_op_with(call->h, "stablehlo.pad", (hlo_type){x.element, &shape}, (hlo_values){operands, 2},
                     "edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s", HLO_ARRAY(&start),
                     HLO_ARRAY(&high), HLO_ARRAY(&start));
}

/* With the axis and the last one exchanged. */
static hlo_value exchanged(const hlo_call *call, hlo_value x, int32_t axis) {
  const int32_t last = x.shape.rank - 1;
  ts_dims order = {.rank = x.shape.rank};
  ts_shape shape = x.shape;
  if (axis == last) return x;
  for (int32_t d = 0; d <= last; d++) order.dims[d] = d;
  order.dims[axis] = last;
  order.dims[last] = axis;
  shape.dims[axis] = x.shape.dims[last];
  shape.dims[last] = x.shape.dims[axis];
  return hlo_op_with(call->h, "stablehlo.transpose", (hlo_type){x.element, &shape}, (hlo_values){&x, 1},
                     "permutation = %s", HLO_ARRAY(&order));
}

ts_status hlo_fft(const hlo_call *call, hlo_value *out) {
  const ts_opcode code = call->op->code;
  const int32_t axis = call->op->attrs->fft.axis, length = call->op->attrs->fft.length;
  hlo_value x = fitted(call, hlo_operand(call, 0), axis, code == TS_OP_IRFFT ? length / 2 + 1 : length);
  if (code == TS_OP_FFT || code == TS_OP_IFFT) x = hlo_convert(call->h, x, call->element);
  x = exchanged(call, x, axis);
  ts_shape shape = x.shape;
  shape.dims[shape.rank - 1] = call->shape->dims[axis];
  x = hlo_op_with(call->h, "stablehlo.fft", (hlo_type){call->element, &shape}, (hlo_values){&x, 1},
                  "fft_type = #stablehlo<fft_type %s>, fft_length = array<i64: %d>", type_of(code), length);
  *out = exchanged(call, x, axis);
  return TS_SUCCESS;
}
