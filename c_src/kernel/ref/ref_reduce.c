#include "ir/combiner.h"
#include "kernel/ref/ref_internal.h"

#include "tensor/reduce_tree.h"
#include "tensor/scan_order.h"

ts_ref_split ts_ref_split_dims(const ts_shape *shape, const ts_dims *axes) {
  ts_ref_split split = {0};
  bool is_reduced[TS_MAX_RANK] = {false};
  int64_t strides[TS_MAX_RANK];
  ts_shape_strides(shape, strides);
  for (int32_t i = 0; i < axes->rank; i++) is_reduced[axes->dims[i]] = true;
  for (int32_t d = 0; d < shape->rank; d++) {
    ts_shape *part = is_reduced[d] ? &split.reduced : &split.kept;
    int64_t *part_strides = is_reduced[d] ? split.reduced_strides : split.kept_strides;
    part_strides[part->rank] = strides[d];
    part->dims[part->rank++] = shape->dims[d];
  }
  return split;
}

/* ---- the tree (tensor/reduce_tree.h) ---- */

typedef struct combiner {
  ts_opcode code; /* a binary op on `type` */
  ts_dtype type;
  ts_scalar identity;
  bool logical;
} combiner;

static combiner get_combiner(const ts_combiner *by, ts_dtype operand) {
  ts_dtype type = by->logical ? TS_U8 : ts_dtype_accumulator(operand), own = by->logical ? TS_U8 : operand;
  return (combiner){by->op, type, ts_scalar_convert(own, ts_combiner_identity(by, own), type), by->logical};
}

static ts_scalar combine(const combiner *c, ts_scalar a, ts_scalar b) { return ts_ref_binary(c->code, c->type, a, b); }

static ts_scalar reduce_block(const combiner *c, const ts_scalar *x, int64_t count) {
  ts_scalar lanes[TS_REDUCE_LANES];
  for (int l = 0; l < TS_REDUCE_LANES; l++) lanes[l] = c->identity;
  for (int64_t k = 0; k < count; k++) {
    lanes[k % TS_REDUCE_LANES] = combine(c, lanes[k % TS_REDUCE_LANES], x[k]);
  }
  for (int half = TS_REDUCE_LANES / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; l++) lanes[l] = combine(c, lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

/* Overwrites x. */
static ts_scalar reduce_tree(const ts_ref_call *call, const combiner *c, ts_scalar *x, int64_t count) {
  while (count > TS_REDUCE_BLOCK) {
    int64_t blocks = 0;
    for (int64_t k = 0; ts_ref_goes_on(call, k, count); k += TS_REDUCE_BLOCK, blocks++) {
      int64_t length = count - k < TS_REDUCE_BLOCK ? count - k : TS_REDUCE_BLOCK;
      x[blocks] = reduce_block(c, x + k, length);
    }
    count = blocks;
  }
  return reduce_block(c, x, count);
}

ts_scalar ts_ref_sum_tree(const ts_ref_call *call, ts_dtype type, ts_scalar *x, int64_t count) {
  const combiner c = get_combiner(ts_combiner_of(TS_OP_REDUCE_SUM), type);
  return reduce_tree(call, &c, x, count);
}

/* An element as the reduction reads it: a truth value for all and any. */
static ts_scalar reduce_operand(const ts_ref_call *call, const combiner *c, int64_t element) {
  const ts_buffer *operand = call->operands[0];
  ts_scalar x = ts_ref_get(operand, element);
  if (c->logical) return (ts_scalar){.bits = ts_ref_truth(operand->dtype, x)};
  return ts_scalar_convert(operand->dtype, x, c->type);
}

ts_status ts_ref_reduce(const ts_ref_call *call) {
  ts_buffer *result = call->result;
  const ts_combiner *by = ts_combiner_of(call->op->code);
  if (!by) return ts_ref_unknown(call);
  ts_ref_split split = ts_ref_split_dims(&call->operands[0]->shape, &call->op->attrs->axes);
  combiner c = get_combiner(by, call->operands[0]->dtype);
  int64_t count = ts_shape_elements(&split.reduced), kept[TS_MAX_RANK] = {0};
  ts_scalar *x;
  TS_TRY(TS_NEW_ARRAY((size_t)count, &x));
  int64_t results = ts_shape_elements(&split.kept);
  /* One result takes long, so cancellation is checked before each. */
  for (int64_t i = 0; i < results && !ts_cancelled(call->cancel); i++, ts_ref_next(&split.kept, kept)) {
    int64_t base = ts_ref_offset(split.kept.rank, kept, split.kept_strides), reduced[TS_MAX_RANK] = {0};
    for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++, ts_ref_next(&split.reduced, reduced)) {
      x[k] = reduce_operand(call, &c, base + ts_ref_offset(split.reduced.rank, reduced, split.reduced_strides));
    }
    ts_ref_set(result, i, ts_scalar_convert(c.type, reduce_tree(call, &c, x, count), result->dtype));
  }
  ts_free(x);
  return TS_SUCCESS;
}

/* ---- argmax and argmin ---- */

static bool is_nan(const ts_buffer *x, int64_t element) {
  return ts_ref_predicate(TS_OP_IS_NAN, x->dtype, ts_ref_get(x, element));
}

/* Whether a candidate found later replaces the best so far. -0 equals +0. */
static bool replaces(const ts_ref_call *call, int64_t candidate, int64_t best) {
  const ts_buffer *x = call->operands[0];
  bool high = call->op->attrs->arg.high;
  if (is_nan(x, best)) return high && is_nan(x, candidate);
  if (is_nan(x, candidate)) return true;
  ts_scalar a = ts_ref_get(x, candidate), b = ts_ref_get(x, best);
  ts_opcode better = ts_arg_takes_largest(call->op->code) ? TS_OP_GREATER : TS_OP_LESS;
  return ts_ref_compare(better, x->dtype, a, b) || (high && ts_ref_compare(TS_OP_EQUAL, x->dtype, a, b));
}

static int64_t find_best(const ts_ref_call *call, int64_t base, int64_t stride, int64_t count) {
  int64_t best = 0;
  for (int64_t k = 1; ts_ref_goes_on(call, k, count); k++) {
    if (replaces(call, base + k * stride, base + best * stride)) best = k;
  }
  return best;
}

void ts_ref_arg_reduce(const ts_ref_call *call) {
  const ts_shape *shape = &call->operands[0]->shape;
  ts_buffer *result = call->result;
  int32_t axis = call->op->attrs->arg.axis;
  if (axis < 0) {
    ts_ref_set(result, 0, ts_scalar_from_s64(result->dtype, find_best(call, 0, 1, ts_shape_elements(shape))));
    return;
  }
  ts_ref_split split = ts_ref_split_dims(shape, &(ts_dims){.rank = 1, .dims = {axis}});
  int64_t kept[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&split.kept)); i++, ts_ref_next(&split.kept, kept)) {
    int64_t base = ts_ref_offset(split.kept.rank, kept, split.kept_strides);
    int64_t best = find_best(call, base, split.reduced_strides[0], shape->dims[axis]);
    ts_ref_set(result, i, ts_scalar_from_s64(result->dtype, best));
  }
}

/* ---- cumulative ---- */

/* The type that carries a sum or a product; min and max keep the type. */
static ts_dtype carry_type(const ts_combiner *by, ts_dtype type) {
  if (by->op != TS_OP_ADD && by->op != TS_OP_MULTIPLY) return type;
  if (ts_dtype_is_complex(type)) return TS_C128;
  return ts_dtype_is_float(type) ? TS_F64 : type;
}

/* Rounded as kernels round, to f32 before it is narrower. */
static ts_scalar narrowed(ts_dtype from, ts_scalar x, ts_dtype to) {
  if (from != TS_F64 || ts_dtype_size(to) > 2) return ts_scalar_convert(from, x, to);
  return ts_scalar_convert(TS_F32, ts_scalar_convert(TS_F64, x, TS_F32), to);
}

/* One line from element `base` on. Each block starts from the identity, as a reduction does: the first sum of -0 is
 * +0. */
static void scan_line(const ts_ref_call *call, const combiner *c, int64_t base, int64_t stride, int64_t count) {
  const ts_buffer *x = call->operands[0];
  ts_scalar carry = c->identity, before = c->identity;
  for (int64_t k = 0; ts_ref_goes_on(call, k, count); k++) {
    const int64_t at = base + (call->op->attrs->scan.reverse ? count - 1 - k : k) * stride, block = k / TS_SCAN_BLOCK;
    if (k % TS_SCAN_BLOCK == 0) {
      if (block > 0) before = block == 1 ? carry : combine(c, before, carry);
      carry = c->identity;
    }
    carry = combine(c, carry, ts_scalar_convert(x->dtype, ts_ref_get(x, at), c->type));
    const ts_scalar result = block > 0 ? combine(c, before, carry) : carry;
    ts_ref_set(call->result, at, narrowed(c->type, result, call->result->dtype));
  }
}

ts_status ts_ref_scan(const ts_ref_call *call) {
  const ts_combiner *by = ts_combiner_of(call->op->code);
  if (!by) return ts_ref_unknown(call);
  const ts_buffer *x = call->operands[0];
  int32_t axis = call->op->attrs->scan.axis;
  ts_ref_split split = ts_ref_split_dims(&x->shape, &(ts_dims){.rank = 1, .dims = {axis}});
  combiner c = get_combiner(by, carry_type(by, x->dtype));
  int64_t kept[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&split.kept)); i++, ts_ref_next(&split.kept, kept))
    scan_line(call, &c, ts_ref_offset(split.kept.rank, kept, split.kept_strides), split.reduced_strides[0],
              x->shape.dims[axis]);
  return TS_SUCCESS;
}
