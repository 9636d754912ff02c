/* Inference of the ops that move elements and of contraction. */
#include "ir/infer.h"
#include "tensor/quantized.h"

static ts_status infer_reshape(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  ts_type_set(out, operand->dtype, &call->attrs->shape);
  ts_status status = ts_shape_check(&out->shape, out->dtype);
  if (status) return ts_error_context(status, "reshape");
  if (ts_shape_elements(&out->shape) == ts_shape_elements(operand->shape)) return TS_SUCCESS;
  return ts_infer_error(call, "the result %s has %lld elements, expected %lld", TS_SHAPE_STR(out->dtype, &out->shape),
                        (long long)ts_shape_elements(&out->shape), (long long)ts_shape_elements(operand->shape));
}

static ts_status infer_broadcast(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const ts_dims *axes = &call->attrs->broadcast.axes;
  ts_type_set(out, operand->dtype, &call->attrs->broadcast.shape);
  ts_status status = ts_shape_check(&out->shape, out->dtype);
  if (status) return ts_error_context(status, "broadcast");
  TS_TRY(ts_infer_check_axes(call, "axes", axes, out->shape.rank));
  TS_TRY(ts_infer_check_rank(call, "axes", axes));
  for (int32_t i = 0; i < axes->rank; i++) {
    int64_t from = operand->shape->dims[i], to = out->shape.dims[axes->dims[i]];
    if (from != 1 && from != to)
      return ts_infer_error(call, "dimension %d has size %lld, expected 1 or %lld for axis %lld of the result %s", i,
                            (long long)from, (long long)to, (long long)axes->dims[i],
                            TS_SHAPE_STR(out->dtype, &out->shape));
  }
  return TS_SUCCESS;
}

static ts_status infer_transpose(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const ts_dims *axes = &call->attrs->axes;
  TS_TRY(ts_infer_check_axes(call, "axes", axes, operand->shape->rank));
  TS_TRY(ts_infer_check_rank(call, "axes", axes));
  ts_type_set(out, operand->dtype, operand->shape);
  for (int32_t i = 0; i < axes->rank; i++) out->shape.dims[i] = operand->shape->dims[axes->dims[i]];
  return TS_SUCCESS;
}

static ts_status infer_reverse(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  TS_TRY(ts_infer_check_axes(call, "axes", &call->attrs->axes, operand->shape->rank));
  ts_type_set(out, operand->dtype, operand->shape);
  return TS_SUCCESS;
}

static ts_status infer_slice(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const ts_dims *start = &call->attrs->slice.start, *limit = &call->attrs->slice.limit,
                *stride = &call->attrs->slice.stride;
  TS_TRY(ts_infer_check_rank(call, "start", start));
  TS_TRY(ts_infer_check_rank(call, "limit", limit));
  TS_TRY(ts_infer_check_rank(call, "stride", stride));
  ts_type_set(out, operand->dtype, operand->shape);
  for (int32_t i = 0; i < start->rank; i++) {
    int64_t from = start->dims[i], to = limit->dims[i], step = stride->dims[i], size = operand->shape->dims[i];
    if (from < 0 || from > to || to > size)
      return ts_infer_error(call, "dimension %d is sliced from %lld to %lld, expected 0 <= start <= limit <= %lld", i,
                            (long long)from, (long long)to, (long long)size);
    if (step < 1) return ts_infer_error(call, "dimension %d has stride %lld, expected at least 1", i, (long long)step);
    out->shape.dims[i] = (to - from) / step + ((to - from) % step != 0);
  }
  return TS_SUCCESS;
}

/* low + dim + (dim - 1) * interior + high; false when it does not fit. */
static bool padded_size(int64_t dim, int64_t low, int64_t high, int64_t interior, int64_t *out) {
  int64_t between;
  if (!ts_mul_i64(dim > 0 ? dim - 1 : 0, interior, &between)) return false;
  return ts_add_i64(dim, between, out) && ts_add_i64(*out, low, out) && ts_add_i64(*out, high, out);
}

static ts_status infer_pad(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const ts_dims *low = &call->attrs->pad.low, *high = &call->attrs->pad.high, *interior = &call->attrs->pad.interior;
  TS_TRY(ts_infer_same_dtype(call));
  if (ts_infer_operand(call, 1)->shape->rank != 0) return ts_infer_error(call, "expected a scalar padding value");
  TS_TRY(ts_infer_check_rank(call, "low", low));
  TS_TRY(ts_infer_check_rank(call, "high", high));
  TS_TRY(ts_infer_check_rank(call, "interior", interior));
  ts_type_set(out, operand->dtype, operand->shape);
  for (int32_t i = 0; i < low->rank; i++) {
    int64_t *size = &out->shape.dims[i];
    if (interior->dims[i] < 0)
      return ts_infer_error(call, "dimension %d has interior padding %lld, expected at least 0", i,
                            (long long)interior->dims[i]);
    if (!padded_size(*size, low->dims[i], high->dims[i], interior->dims[i], size))
      return ts_infer_error(call, "the padded size of dimension %d does not fit in 64 bits", i);
    if (*size < 0) return ts_infer_error(call, "dimension %d gets size %lld, expected at least 0", i, (long long)*size);
  }
  return TS_SUCCESS;
}

/* Equal ranks, and equal dims except `axis`. */
static bool same_but_axis(const ts_shape *a, const ts_shape *b, int32_t axis) {
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++) {
    if (i != axis && a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

static ts_status infer_concatenate(const ts_infer_call *call, ts_type *out) {
  const ts_value *first = ts_infer_operand(call, 0);
  int32_t axis = call->attrs->axis;
  TS_TRY(ts_infer_same_dtype(call));
  TS_TRY(ts_infer_check_axis(call, axis, 0));
  ts_type_set(out, first->dtype, first->shape);
  for (size_t i = 1; i < call->count; i++) {
    const ts_shape *shape = ts_infer_operand(call, i)->shape;
    if (!same_but_axis(shape, first->shape, axis))
      return ts_infer_error(call, "operand %zu is %s, expected the dimensions of the first but for axis %d", i,
                            TS_SHAPE_STR(first->dtype, shape), axis);
    if (!ts_add_i64(out->shape.dims[axis], shape->dims[axis], &out->shape.dims[axis]))
      return ts_infer_error(call, "the size of axis %d does not fit in 64 bits", axis);
  }
  return TS_SUCCESS;
}

ts_status ts_infer_shape_op(const ts_infer_call *call, ts_type *out) {
  switch ((ts_ops_SHAPE)call->code) {
  case TS_OP_RESHAPE: return infer_reshape(call, out);
  case TS_OP_BROADCAST: return infer_broadcast(call, out);
  case TS_OP_TRANSPOSE: return infer_transpose(call, out);
  case TS_OP_REVERSE: return infer_reverse(call, out);
  case TS_OP_SLICE: return infer_slice(call, out);
  case TS_OP_PAD: return infer_pad(call, out);
  case TS_OP_CONCATENATE: return infer_concatenate(call, out);
  }
  return ts_infer_unknown(call);
}

/* ---- indexed ---- */

/* Operands from `first` on are scalar integers, one per dimension of operand 0. */
static ts_status check_starts(const ts_infer_call *call, size_t first) {
  size_t rank = (size_t)ts_infer_operand(call, 0)->shape->rank;
  if (call->count != first + rank)
    return ts_infer_error(call, "%zu operands, expected %zu: one start per dimension of the first", call->count,
                          first + rank);
  for (size_t i = first; i < call->count; i++) {
    const ts_value *start = ts_infer_operand(call, i);
    if (start->shape->rank != 0 || !ts_dtype_is_integer(start->dtype))
      return ts_infer_error(call, "start %zu is %s, expected a scalar integer", i - first,
                            TS_SHAPE_STR(start->dtype, start->shape));
  }
  return TS_SUCCESS;
}

/* The window that is read or written lies within the operand, so that clamping can make it fit. */
static ts_status check_window(const ts_infer_call *call, const ts_dims *sizes) {
  const ts_shape *shape = ts_infer_operand(call, 0)->shape;
  TS_TRY(ts_infer_check_rank(call, "the window", sizes));
  for (int32_t i = 0; i < sizes->rank; i++) {
    if (sizes->dims[i] < 0 || sizes->dims[i] > shape->dims[i])
      return ts_infer_error(call, "the window has size %lld in dimension %d, expected one of [0, %lld]",
                            (long long)sizes->dims[i], i, (long long)shape->dims[i]);
  }
  return TS_SUCCESS;
}

static ts_status infer_dynamic_slice(const ts_infer_call *call, ts_type *out) {
  TS_TRY(check_starts(call, 1));
  TS_TRY(check_window(call, &call->attrs->shape));
  ts_type_set(out, ts_infer_operand(call, 0)->dtype, &call->attrs->shape);
  return TS_SUCCESS;
}

static ts_status infer_put_slice(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  if (call->count < 2) return ts_infer_error(call, "1 operand, expected an operand, an update and starts");
  const ts_value *update = ts_infer_operand(call, 1);
  if (update->dtype != operand->dtype)
    return ts_infer_error(call, "the update's type is %s, expected %s", ts_dtype_name(update->dtype),
                          ts_dtype_name(operand->dtype));
  TS_TRY(check_starts(call, 2));
  TS_TRY(check_window(call, update->shape));
  ts_type_set(out, operand->dtype, operand->shape);
  return TS_SUCCESS;
}

/* The axis exists and has something to take, and the indices are integers. */
static ts_status check_take(const ts_infer_call *call) {
  const ts_value *operand = ts_infer_operand(call, 0), *indices = ts_infer_operand(call, 1);
  int32_t axis = call->attrs->axis;
  TS_TRY(ts_infer_check_axis(call, axis, 0));
  if (!ts_dtype_is_integer(indices->dtype)) return ts_infer_error(call, "expected indices of an integer type");
  if (operand->shape->dims[axis] == 0 && ts_shape_elements(indices->shape) > 0)
    return ts_infer_error(call, "axis %d is empty, expected at least one element to take", axis);
  return TS_SUCCESS;
}

static ts_status infer_take(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const ts_shape *from = operand->shape, *indices = ts_infer_operand(call, 1)->shape;
  int32_t axis = call->attrs->axis;
  TS_TRY(check_take(call));
  if (from->rank - 1 + indices->rank > TS_MAX_RANK)
    return ts_infer_error(call, "the result has rank %d, expected at most %d", from->rank - 1 + indices->rank,
                          TS_MAX_RANK);
  ts_type_set(out, operand->dtype, &ts_shape_scalar);
  ts_shape *shape = &out->shape;
  for (int32_t i = 0; i < axis; i++) shape->dims[shape->rank++] = from->dims[i];
  for (int32_t i = 0; i < indices->rank; i++) shape->dims[shape->rank++] = indices->dims[i];
  for (int32_t i = axis + 1; i < from->rank; i++) shape->dims[shape->rank++] = from->dims[i];
  return TS_SUCCESS;
}

static ts_status infer_take_along(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0), *indices = ts_infer_operand(call, 1);
  TS_TRY(check_take(call));
  if (!same_but_axis(indices->shape, operand->shape, call->attrs->axis))
    return ts_infer_error(call, "expected indices with the operand's dimensions but for axis %d", call->attrs->axis);
  ts_type_set(out, operand->dtype, indices->shape);
  return TS_SUCCESS;
}

/* The number of rows, then the target's dims without the axes. */
static ts_shape updates_of(const ts_shape *target, const ts_dims *axes, int64_t rows) {
  ts_shape shape = {.rank = 1, .dims = {rows}};
  for (int32_t d = 0, a = 0; d < target->rank; d++) {
    if (a < axes->rank && axes->dims[a] == d)
      a++;
    else
      shape.dims[shape.rank++] = target->dims[d];
  }
  return shape;
}

static ts_status infer_indexed_update(const ts_infer_call *call, ts_type *out) {
  const ts_value *target = ts_infer_operand(call, 0), *indices = ts_infer_operand(call, 1),
                 *updates = ts_infer_operand(call, 2);
  const ts_dims *axes = &call->attrs->axes;
  TS_TRY(ts_infer_check_axes(call, "axes", axes, target->shape->rank));
  if (axes->rank == 0) return ts_infer_error(call, "no axes, expected at least one");
  for (int32_t i = 1; i < axes->rank; i++)
    if (axes->dims[i] < axes->dims[i - 1]) return ts_infer_error(call, "expected axes in increasing order");
  if (!ts_dtype_is_integer(indices->dtype)) return ts_infer_error(call, "expected indices of an integer type");
  if (indices->shape->rank != 2 || indices->shape->dims[1] != axes->rank)
    return ts_infer_error(call, "expected indices of shape [n,%d], a column for each axis", axes->rank);
  if (updates->dtype != target->dtype) return ts_infer_error(call, "expected updates of the target's type");
  ts_shape expected = updates_of(target->shape, axes, indices->shape->dims[0]);
  if (!ts_shape_equal(updates->shape, &expected))
    return ts_infer_error(call, "expected updates of shape %s", TS_SHAPE_STR(target->dtype, &expected));
  ts_type_set(out, target->dtype, target->shape);
  return TS_SUCCESS;
}

ts_status ts_infer_indexed(const ts_infer_call *call, ts_type *out) {
  switch ((ts_ops_INDEXED)call->code) {
  case TS_OP_DYNAMIC_SLICE: return infer_dynamic_slice(call, out);
  case TS_OP_PUT_SLICE: return infer_put_slice(call, out);
  case TS_OP_TAKE: return infer_take(call, out);
  case TS_OP_TAKE_ALONG: return infer_take_along(call, out);
  case TS_OP_INDEXED_ADD:
  case TS_OP_INDEXED_PUT: return infer_indexed_update(call, out);
  }
  return ts_infer_unknown(call);
}

/* ---- contraction ---- */

/* Axes of one side: in range, distinct, and none both contracted and batched. */
static ts_status check_dot_side(const ts_infer_call *call, const char *side, size_t operand, const ts_dims *contract,
                                const ts_dims *batch) {
  int32_t rank = ts_infer_operand(call, operand)->shape->rank;
  TS_TRY(ts_infer_check_axes(call, side, contract, rank));
  TS_TRY(ts_infer_check_axes(call, side, batch, rank));
  if (ts_dims_mask(contract) & ts_dims_mask(batch))
    return ts_infer_error(call, "%s has an axis that is contracted and batched, expected distinct axes", side);
  return TS_SUCCESS;
}

static ts_status check_dot_pairs(const ts_infer_call *call, const char *what, const ts_dims *lhs, const ts_dims *rhs) {
  if (lhs->rank != rhs->rank)
    return ts_infer_error(call, "%d left and %d right %s axes, expected as many", lhs->rank, rhs->rank, what);
  for (int32_t i = 0; i < lhs->rank; i++) {
    int64_t left = ts_infer_operand(call, 0)->shape->dims[lhs->dims[i]];
    int64_t right = ts_infer_operand(call, 1)->shape->dims[rhs->dims[i]];
    if (left != right)
      return ts_infer_error(call, "%s axes %lld and %lld have sizes %lld and %lld, expected equal sizes", what,
                            (long long)lhs->dims[i], (long long)rhs->dims[i], (long long)left, (long long)right);
  }
  return TS_SUCCESS;
}

static bool append_free(const ts_shape *from, const ts_dims *contract, const ts_dims *batch, ts_shape *out) {
  uint64_t used = ts_dims_mask(contract) | ts_dims_mask(batch);
  for (int32_t i = 0; i < from->rank; i++) {
    if (used >> i & 1) continue;
    if (out->rank == TS_MAX_RANK) return false;
    out->dims[out->rank++] = from->dims[i];
  }
  return true;
}

static ts_status check_wide(const ts_infer_call *call, ts_dtype type) {
  const bool wide = ts_dtype_size(type) >= (ts_dtype_is_float(type) ? 2 : 4);
  if (!ts_dtype_is_complex(type) && wide) return TS_SUCCESS;
  return ts_infer_error(call, "the result is %s, expected a float of 16 bits or a real type of 32 or 64 bits",
                        ts_dtype_name(type));
}

static ts_status check_scale(const ts_infer_call *call) {
  const ts_dims *axes = &call->attrs->scaled_dot.axes;
  const int32_t which = call->attrs->scaled_dot.operand;
  const ts_shape *scale = ts_infer_operand(call, 2)->shape;
  if (which != 0 && which != 1) return ts_infer_error(call, "operand %d is scaled, expected 0 or 1", which);
  const ts_shape *scaled = ts_infer_operand(call, (size_t)which)->shape;
  TS_TRY(ts_infer_check_axes(call, "axes", axes, scaled->rank));
  if (axes->rank != scale->rank)
    return ts_infer_error(call, "%d axes, expected %d: one for each of the scale's dimensions", axes->rank,
                          scale->rank);
  for (int32_t i = 0; i < axes->rank; i++) {
    const int64_t from = scale->dims[i], to = scaled->dims[axes->dims[i]];
    if (from != 1 && from != to)
      return ts_infer_error(call, "dimension %d of the scale has size %lld, expected 1 or %lld", i, (long long)from,
                            (long long)to);
  }
  return TS_SUCCESS;
}

/* The type of the result: operands of all ops except dot_general are converted to it. */
static ts_status find_dot_type(const ts_infer_call *call, ts_dtype *out) {
  *out = ts_infer_operand(call, 0)->dtype;
  if (call->code == TS_OP_DOT) return ts_infer_same_dtype(call);
  *out = call->code == TS_OP_SCALED_DOT ? ts_infer_operand(call, 2)->dtype : call->attrs->wide_dot.dtype;
  TS_TRY(check_wide(call, *out));
  return call->code == TS_OP_SCALED_DOT ? check_scale(call) : TS_SUCCESS;
}

ts_status ts_infer_dot(const ts_infer_call *call, ts_type *out) {
  const ts_value *lhs = ts_infer_operand(call, 0), *rhs = ts_infer_operand(call, 1);
  const ts_dims *lhs_contract = &call->attrs->dot.lhs_contract, *lhs_batch = &call->attrs->dot.lhs_batch;
  const ts_dims *rhs_contract = &call->attrs->dot.rhs_contract, *rhs_batch = &call->attrs->dot.rhs_batch;
  ts_dtype type;
  TS_TRY(find_dot_type(call, &type));
  TS_TRY(check_dot_side(call, "the left side", 0, lhs_contract, lhs_batch));
  TS_TRY(check_dot_side(call, "the right side", 1, rhs_contract, rhs_batch));
  TS_TRY(check_dot_pairs(call, "contracted", lhs_contract, rhs_contract));
  TS_TRY(check_dot_pairs(call, "batch", lhs_batch, rhs_batch));
  ts_type_set(out, type, &ts_shape_scalar);
  for (int32_t i = 0; i < lhs_batch->rank; i++)
    out->shape.dims[out->shape.rank++] = lhs->shape->dims[lhs_batch->dims[i]];
  if (!append_free(lhs->shape, lhs_contract, lhs_batch, &out->shape) ||
      !append_free(rhs->shape, rhs_contract, rhs_batch, &out->shape))
    return ts_infer_error(call, "the result's rank exceeds %d", TS_MAX_RANK);
  return TS_SUCCESS;
}

/* ---- quantised weights ---- */

static ts_status check_weight(const ts_infer_call *call) {
  const ts_attrs *a = call->attrs;
  const int32_t form = a->quantized_dot.form;
  if (a->quantized_dot.bits != 4 && a->quantized_dot.bits != 8)
    return ts_infer_error(call, "%d bits, expected 4 or 8", a->quantized_dot.bits);
  if (!ts_quantized_has_group(a->quantized_dot.group))
    return ts_infer_error(call, "groups of %d, expected a positive multiple of 8", a->quantized_dot.group);
  if (a->quantized_dot.cols < 0) return ts_infer_error(call, "%d columns", a->quantized_dot.cols);
  if (form < 0 || form >= TS_QUANTIZED_FORMS)
    return ts_infer_error(call, "form %d, expected 0 to %d", form, TS_QUANTIZED_FORMS - 1);
  const size_t expected = form == TS_QUANTIZED_SCALE ? 3 : 4;
  if (call->count != expected)
    return ts_infer_error(call, "%zu operands, expected %zu of form %d", call->count, expected, form);
  return TS_SUCCESS;
}

/* Operand i is [panels, rows, TS_QUANTIZED_COLS]. */
static ts_status check_panels(const ts_infer_call *call, size_t i, const char *what, int64_t rows) {
  const ts_shape *s = ts_infer_operand(call, i)->shape;
  const int64_t panels = ts_quantized_panels(call->attrs->quantized_dot.cols);
  if (s->rank == 3 && s->dims[0] == panels && s->dims[1] == rows && s->dims[2] == TS_QUANTIZED_COLS) return TS_SUCCESS;
  return ts_infer_error(call, "%s have another shape than [%lld, %lld, %d]", what, (long long)panels, (long long)rows,
                        TS_QUANTIZED_COLS);
}

static bool is_product_float(ts_dtype type) { return type == TS_F32 || type == TS_F16 || type == TS_BF16; }

static ts_status check_weight_types(const ts_infer_call *call) {
  const ts_dtype x = ts_infer_operand(call, 0)->dtype, words = ts_infer_operand(call, 1)->dtype;
  const ts_dtype scales = ts_infer_operand(call, 2)->dtype;
  if (!is_product_float(x)) return ts_infer_error(call, "x is %s, expected f32, f16 or bf16", ts_dtype_name(x));
  if (words != TS_U32) return ts_infer_error(call, "the words are %s, expected u32", ts_dtype_name(words));
  if (!is_product_float(scales))
    return ts_infer_error(call, "the scales are %s, expected f32, f16 or bf16", ts_dtype_name(scales));
  if (call->count == 4 && ts_infer_operand(call, 3)->dtype != scales)
    return ts_infer_error(call, "the scales are %s, and the zeros or minimums %s", ts_dtype_name(scales),
                          ts_dtype_name(ts_infer_operand(call, 3)->dtype));
  return TS_SUCCESS;
}

ts_status ts_infer_quantized_dot(const ts_infer_call *call, ts_type *out) {
  TS_TRY(check_weight(call));
  TS_TRY(check_weight_types(call));
  const ts_attrs *a = call->attrs;
  const ts_value *x = ts_infer_operand(call, 0);
  if (x->shape->rank == 0) return ts_infer_error(call, "x is a scalar");
  const int64_t k = x->shape->dims[x->shape->rank - 1], groups = ts_quantized_ceil(k, a->quantized_dot.group);
  TS_TRY(check_panels(call, 1, "the words", ts_quantized_words(k, a->quantized_dot.bits)));
  TS_TRY(check_panels(call, 2, "the scales", groups));
  if (call->count == 4) TS_TRY(check_panels(call, 3, "the zeros or minimums", groups));
  ts_type_set(out, x->dtype, x->shape);
  out->shape.dims[out->shape.rank - 1] = a->quantized_dot.cols;
  return TS_SUCCESS;
}
