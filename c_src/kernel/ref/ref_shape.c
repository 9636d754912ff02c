#include "kernel/ref/ref_internal.h"

/* ---- sources ---- */

static void iota(const ts_ref_call *call) {
  ts_buffer *result = call->result;
  int32_t axis = call->op->attrs->iota.axis;
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&result->shape));
       i++, ts_ref_next(&result->shape, index)) {
    ts_ref_set(result, i, ts_scalar_from_s64(result->dtype, axis < 0 ? i : index[axis]));
  }
}

static void eye(const ts_ref_call *call) {
  ts_buffer *result = call->result;
  int32_t rank = result->shape.rank;
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&result->shape));
       i++, ts_ref_next(&result->shape, index)) {
    ts_ref_set(result, i, ts_scalar_from_s64(result->dtype, index[rank - 2] == index[rank - 1]));
  }
}

static void fill(const ts_ref_call *call, ts_scalar value) {
  ts_buffer *result = call->result;
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&result->shape)); i++) ts_ref_set(result, i, value);
}

ts_status ts_ref_source(const ts_ref_call *call) {
  switch ((ts_ops_SOURCE)call->op->code) {
  case TS_OP_IOTA: iota(call); return TS_SUCCESS;
  case TS_OP_EYE: eye(call); return TS_SUCCESS;
  case TS_OP_CONSTANT: fill(call, call->op->attrs->constant.value); return TS_SUCCESS;
  case TS_OP_LITERAL: /* its buffer is the result */
  case TS_OP_PARAMETER: break;
  }
  return ts_ref_unknown(call);
}

/* ---- reads through an affine map ---- */

/* result[i] = operand[base + sum of index[d] * strides[d]] */
static void copy_mapped(const ts_ref_call *call, int64_t base, const int64_t *strides) {
  const ts_shape *shape = &call->result->shape;
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    int64_t from = base + ts_ref_offset(shape->rank, index, strides);
    ts_ref_set(call->result, i, ts_ref_get(call->operands[0], from));
  }
}

static void copy_all(const ts_ref_call *call) {
  ts_copy_bytes(call->result->data, call->operands[0]->data, call->result->bytes, call->cancel);
}

static void broadcast(const ts_ref_call *call) {
  const ts_shape *shape = &call->operands[0]->shape;
  const ts_dims *axes = &call->op->attrs->broadcast.axes;
  int64_t operand_strides[TS_MAX_RANK], strides[TS_MAX_RANK] = {0};
  ts_shape_strides(shape, operand_strides);
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] != 1) strides[axes->dims[d]] = operand_strides[d];
  }
  copy_mapped(call, 0, strides);
}

static void transpose(const ts_ref_call *call) {
  const ts_dims *axes = &call->op->attrs->axes;
  int64_t operand_strides[TS_MAX_RANK], strides[TS_MAX_RANK] = {0};
  ts_shape_strides(&call->operands[0]->shape, operand_strides);
  for (int32_t d = 0; d < axes->rank; d++) strides[d] = operand_strides[axes->dims[d]];
  copy_mapped(call, 0, strides);
}

static void reverse(const ts_ref_call *call) {
  const ts_dims *axes = &call->op->attrs->axes;
  const ts_shape *shape = &call->result->shape;
  int64_t strides[TS_MAX_RANK], base = 0;
  ts_shape_strides(shape, strides);
  for (int32_t i = 0; i < axes->rank; i++) {
    int64_t d = axes->dims[i];
    base += (shape->dims[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copy_mapped(call, base, strides);
}

static void slice(const ts_ref_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  int64_t strides[TS_MAX_RANK], base = 0;
  ts_shape_strides(&call->operands[0]->shape, strides);
  for (int32_t d = 0; d < call->result->shape.rank; d++) {
    base += attrs->slice.start.dims[d] * strides[d];
    strides[d] *= attrs->slice.stride.dims[d];
  }
  copy_mapped(call, base, strides);
}

/* ---- writes into place ---- */

/* The target of a padded element, if it is inside. Products are computed only where the inferred result bounds them. */
static bool pad_target(const ts_attrs *attrs, const ts_shape *to, const int64_t *index, const int64_t *strides,
                       int64_t *out) {
  *out = 0;
  for (int32_t d = 0; d < to->rank; d++) {
    int64_t moved = index[d] == 0 ? 0 : index[d] * (attrs->pad.interior.dims[d] + 1), at;
    if (!ts_add_i64(attrs->pad.low.dims[d], moved, &at) || at < 0 || at >= to->dims[d]) return false;
    *out += at * strides[d];
  }
  return true;
}

static void pad(const ts_ref_call *call) {
  const ts_buffer *operand = call->operands[0];
  const ts_shape *from = &operand->shape, *to = &call->result->shape;
  int64_t strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0}, target;
  ts_shape_strides(to, strides);
  fill(call, ts_ref_get(call->operands[1], 0));
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(from)); i++, ts_ref_next(from, index)) {
    if (pad_target(call->op->attrs, to, index, strides, &target)) {
      ts_ref_set(call->result, target, ts_ref_get(operand, i));
    }
  }
}

/* Writes all of `part` into `whole`, with its first element at `start`. */
static void put(const ts_ref_call *call, const ts_buffer *part, const int64_t *start) {
  ts_buffer *whole = call->result;
  int64_t strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0};
  ts_shape_strides(&whole->shape, strides);
  int64_t base = ts_ref_offset(whole->shape.rank, start, strides);
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&part->shape)); i++, ts_ref_next(&part->shape, index)) {
    ts_ref_set(whole, base + ts_ref_offset(part->shape.rank, index, strides), ts_ref_get(part, i));
  }
}

static void concatenate(const ts_ref_call *call) {
  int32_t axis = call->op->attrs->axis;
  int64_t start[TS_MAX_RANK] = {0};
  for (uint32_t i = 0; i < call->op->operand_count; i++) {
    put(call, call->operands[i], start);
    start[axis] += call->operands[i]->shape.dims[axis];
  }
}

ts_status ts_ref_shape_op(const ts_ref_call *call) {
  switch ((ts_ops_SHAPE)call->op->code) {
  case TS_OP_RESHAPE: copy_all(call); return TS_SUCCESS;
  case TS_OP_BROADCAST: broadcast(call); return TS_SUCCESS;
  case TS_OP_TRANSPOSE: transpose(call); return TS_SUCCESS;
  case TS_OP_REVERSE: reverse(call); return TS_SUCCESS;
  case TS_OP_SLICE: slice(call); return TS_SUCCESS;
  case TS_OP_PAD: pad(call); return TS_SUCCESS;
  case TS_OP_CONCATENATE: concatenate(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}

/* ---- reads and writes at run-time indices ---- */

/* An index of any integer type, clamped to [0, last]. */
static int64_t clamped_index(const ts_buffer *indices, int64_t element, int64_t last) {
  ts_scalar value = ts_ref_get(indices, element);
  int64_t index = ts_scalar_to_s64(indices->dtype, value);
  if (indices->dtype == TS_U64 && index < 0) return last;
  return index < 0 ? 0 : index > last ? last : index;
}

/* The start operands from `first` on, each clamped so that `size` fits in `whole`. */
static void read_starts(const ts_ref_call *call, uint32_t first, const ts_shape *size, const ts_shape *whole,
                        int64_t *out_start) {
  for (int32_t d = 0; d < whole->rank; d++) {
    out_start[d] = clamped_index(call->operands[first + (uint32_t)d], 0, whole->dims[d] - size->dims[d]);
  }
}

static void dynamic_slice(const ts_ref_call *call) {
  const ts_shape *whole = &call->operands[0]->shape;
  int64_t start[TS_MAX_RANK], strides[TS_MAX_RANK];
  read_starts(call, 1, &call->result->shape, whole, start);
  ts_shape_strides(whole, strides);
  copy_mapped(call, ts_ref_offset(whole->rank, start, strides), strides);
}

static void put_slice(const ts_ref_call *call) {
  const ts_buffer *update = call->operands[1];
  int64_t start[TS_MAX_RANK];
  read_starts(call, 2, &update->shape, &call->result->shape, start);
  copy_all(call);
  put(call, update, start);
}

/* result[before..., indices' index..., after...] = operand[before..., indices[...], after...] */
static void take(const ts_ref_call *call) {
  const ts_buffer *operand = call->operands[0], *indices = call->operands[1];
  int32_t axis = call->op->attrs->axis, index_rank = indices->shape.rank;
  const ts_shape *shape = &call->result->shape;
  int64_t strides[TS_MAX_RANK], index_strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0};
  ts_shape_strides(&operand->shape, strides);
  ts_shape_strides(&indices->shape, index_strides);
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    int64_t which = ts_ref_offset(index_rank, index + axis, index_strides);
    int64_t from = clamped_index(indices, which, operand->shape.dims[axis] - 1) * strides[axis];
    from += ts_ref_offset(axis, index, strides);
    from += ts_ref_offset(operand->shape.rank - axis - 1, index + axis + index_rank, strides + axis + 1);
    ts_ref_set(call->result, i, ts_ref_get(operand, from));
  }
}

/* result[i] = operand[i with the axis' coordinate replaced by indices[i]] */
static void take_along_axis(const ts_ref_call *call) {
  const ts_buffer *operand = call->operands[0], *indices = call->operands[1];
  int32_t axis = call->op->attrs->axis;
  const ts_shape *shape = &call->result->shape;
  int64_t strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0};
  ts_shape_strides(&operand->shape, strides);
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    int64_t chosen = clamped_index(indices, i, operand->shape.dims[axis] - 1);
    int64_t from = ts_ref_offset(shape->rank, index, strides) + (chosen - index[axis]) * strides[axis];
    ts_ref_set(call->result, i, ts_ref_get(operand, from));
  }
}

/* The target element where a row of updates begins; false when an index is out of bounds. */
static bool row_start(const ts_ref_call *call, int64_t row, const int64_t *strides, int64_t *out) {
  const ts_dims *axes = &call->op->attrs->axes;
  const ts_buffer *indices = call->operands[1];
  *out = 0;
  for (int32_t a = 0; a < axes->rank; a++) {
    ts_scalar index = ts_ref_get(indices, row * axes->rank + a);
    int64_t d = axes->dims[a], at = ts_scalar_to_s64(indices->dtype, index);
    if (at < 0 || at >= call->result->shape.dims[d]) return false;
    *out += at * strides[d];
  }
  return true;
}

static void update(const ts_ref_call *call, int64_t to, int64_t from) {
  ts_scalar value = ts_ref_get(call->operands[2], from);
  if (call->op->code == TS_OP_INDEXED_ADD)
    value = ts_ref_binary(TS_OP_ADD, call->result->dtype, ts_ref_get(call->result, to), value);
  ts_ref_set(call->result, to, value);
}

static void indexed_update(const ts_ref_call *call) {
  const ts_dims *axes = &call->op->attrs->axes;
  ts_ref_split split = ts_ref_split_dims(&call->result->shape, axes); /* the dims of a row are the kept ones */
  int64_t strides[TS_MAX_RANK], per_row = ts_shape_elements(&split.kept), start, index[TS_MAX_RANK] = {0};
  ts_shape_strides(&call->result->shape, strides);
  ts_copy_bytes(call->result->data, call->operands[0]->data, call->result->bytes, call->cancel);
  for (int64_t row = 0; ts_ref_goes_on(call, row, call->operands[1]->shape.dims[0]); row++) {
    if (!row_start(call, row, strides, &start)) continue;
    for (int64_t i = 0; i < per_row; i++, ts_ref_next(&split.kept, index))
      update(call, start + ts_ref_offset(split.kept.rank, index, split.kept_strides), row * per_row + i);
  }
}

ts_status ts_ref_indexed(const ts_ref_call *call) {
  switch ((ts_ops_INDEXED)call->op->code) {
  case TS_OP_DYNAMIC_SLICE: dynamic_slice(call); return TS_SUCCESS;
  case TS_OP_PUT_SLICE: put_slice(call); return TS_SUCCESS;
  case TS_OP_TAKE: take(call); return TS_SUCCESS;
  case TS_OP_TAKE_ALONG: take_along_axis(call); return TS_SUCCESS;
  case TS_OP_INDEXED_ADD:
  case TS_OP_INDEXED_PUT: indexed_update(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}
