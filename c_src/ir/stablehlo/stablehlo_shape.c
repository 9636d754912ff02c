#include "ir/stablehlo/stablehlo_internal.h"

#include <stdio.h>

/* ---- sources ---- */

static hlo_value eye(const hlo_call *call) {
  hlo *h = call->h;
  int32_t rank = call->shape->rank;
  hlo_value row = hlo_iota(h, TS_S64, call->shape, rank - 2), column = hlo_iota(h, TS_S64, call->shape, rank - 1);
  return hlo_convert(h, hlo_compare(h, "EQ", row, column), call->element);
}

ts_status hlo_source(const hlo_call *call, hlo_value *out) {
  const ts_attrs *attrs = call->op->attrs;
  ts_dtype dtype = (ts_dtype)call->element;
  switch ((ts_ops_SOURCE)call->op->code) {
  case TS_OP_CONSTANT: *out = hlo_constant(call->h, dtype, call->shape, attrs->constant.value); return TS_SUCCESS;
  case TS_OP_LITERAL: *out = hlo_literal(call); return TS_SUCCESS;
  case TS_OP_IOTA: *out = hlo_iota(call->h, dtype, call->shape, attrs->iota.axis); return TS_SUCCESS;
  case TS_OP_EYE: *out = eye(call); return TS_SUCCESS;
  case TS_OP_PARAMETER: break;
  }
  return hlo_no_form(call);
}

/* ---- moves ---- */

/* One element has nothing between: XLA 0.115 takes its interior padding for a broadcast, and a window of the result for
 * a window of equal elements. */
static hlo_value pad(const hlo_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, 1)};
  ts_dims interior = attrs->pad.interior;
  for (int32_t d = 0; d < interior.rank; d++)
    if (operands[0].shape.dims[d] < 2) interior.dims[d] = 0;
  return hlo_op_with(call->h, "stablehlo.pad", (hlo_type){call->element, call->shape}, (hlo_values){operands, 2},
                     "edge_padding_low = %s, edge_padding_high = %s, interior_padding = %s", HLO_ARRAY(&attrs->pad.low),
                     HLO_ARRAY(&attrs->pad.high), HLO_ARRAY(&interior));
}

static hlo_value slice(const hlo_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  hlo_value x = hlo_operand(call, 0);
  return hlo_op_with(call->h, "stablehlo.slice", (hlo_type){call->element, call->shape}, (hlo_values){&x, 1},
                     "start_indices = %s, limit_indices = %s, strides = %s", HLO_ARRAY(&attrs->slice.start),
                     HLO_ARRAY(&attrs->slice.limit), HLO_ARRAY(&attrs->slice.stride));
}

static hlo_value with_axes(const hlo_call *call, const char *name, const char *property, const ts_dims *axes) {
  hlo_value x = hlo_operand(call, 0);
  return hlo_op_with(call->h, name, (hlo_type){call->element, call->shape}, (hlo_values){&x, 1}, "%s = %s", property,
                     HLO_ARRAY(axes));
}

static ts_status concatenate(const hlo_call *call, hlo_value *out) {
  hlo_value *operands;
  TS_TRY(TS_NEW_ARRAY(call->op->operand_count, &operands));
  for (uint32_t i = 0; i < call->op->operand_count; i++) operands[i] = hlo_operand(call, i);
  *out = hlo_op_with(call->h, "stablehlo.concatenate", (hlo_type){call->element, call->shape},
                     (hlo_values){operands, call->op->operand_count}, "dimension = %d : i64", call->op->attrs->axis);
  ts_free(operands);
  return TS_SUCCESS;
}

ts_status hlo_shape_op(const hlo_call *call, hlo_value *out) {
  const ts_attrs *attrs = call->op->attrs;
  switch ((ts_ops_SHAPE)call->op->code) {
  case TS_OP_RESHAPE: *out = hlo_reshape(call->h, hlo_operand(call, 0), call->shape); return TS_SUCCESS;
  case TS_OP_BROADCAST:
    *out = with_axes(call, "stablehlo.broadcast_in_dim", "broadcast_dimensions", &attrs->broadcast.axes);
    return TS_SUCCESS;
  case TS_OP_TRANSPOSE: *out = with_axes(call, "stablehlo.transpose", "permutation", &attrs->axes); return TS_SUCCESS;
  case TS_OP_REVERSE: *out = with_axes(call, "stablehlo.reverse", "dimensions", &attrs->axes); return TS_SUCCESS;
  case TS_OP_SLICE: *out = slice(call); return TS_SUCCESS;
  case TS_OP_PAD: *out = pad(call); return TS_SUCCESS;
  case TS_OP_CONCATENATE: return concatenate(call, out);
  }
  return hlo_no_form(call);
}

/* ---- run-time indices ---- */

/* Prints an op with `first` operands, then starts. */
static ts_status at_starts(const hlo_call *call, uint32_t first, hlo_value *out) {
  uint32_t count = call->op->operand_count;
  hlo_value *operands;
  TS_TRY(TS_NEW_ARRAY(count, &operands));
  for (uint32_t i = 0; i < count; i++) {
    hlo_value operand = hlo_operand(call, i);
    operands[i] = i < first ? operand : hlo_signed_index(call->h, operand);
  }
  if (call->op->code == TS_OP_DYNAMIC_SLICE)
    *out = hlo_op_with(call->h, "stablehlo.dynamic_slice", (hlo_type){call->element, call->shape},
                       (hlo_values){operands, count}, "slice_sizes = %s", HLO_ARRAY(call->shape));
  else
    *out = hlo_op(call->h, "stablehlo.dynamic_update_slice", call->element, call->shape, operands, count);
  ts_free(operands);
  return TS_SUCCESS;
}

/* The dims from `from` up to `to`, without `except`. */
static ts_dims dims_between(int32_t from, int32_t to, int32_t except) {
  ts_dims dims = {0};
  for (int32_t d = from; d < to; d++) {
    if (d != except) dims.dims[dims.rank++] = d;
  }
  return dims;
}

/* Each index is a vector of length one, along an implicit dimension of `indices`. */
static hlo_value gather(const hlo_call *call, const char *dimensions, const ts_dims *sizes) {
  hlo_value x = hlo_operand(call, 0), indices = hlo_signed_index(call->h, hlo_operand(call, 1));
  return hlo_op_with(call->h, "stablehlo.gather", (hlo_type){call->element, call->shape},
                     (hlo_values){(hlo_value[]){x, indices}, 2},
                     "dimension_numbers = #stablehlo.gather<%s, index_vector_dim = %d>, slice_sizes = %s", dimensions,
                     indices.shape.rank, HLO_ARRAY(sizes));
}

static hlo_value take(const hlo_call *call) {
  int32_t axis = call->op->attrs->axis, index_rank = hlo_operand(call, 1).shape.rank;
  char text[3 * HLO_DIMS_TEXT];
  ts_dims kept = dims_between(0, axis, -1), after = dims_between(axis + index_rank, call->shape->rank, -1);
  ts_dims sizes = hlo_operand(call, 0).shape;
  for (int32_t i = 0; i < after.rank; i++) kept.dims[kept.rank++] = after.dims[i];
  sizes.dims[axis] = 1;
  snprintf(text, sizeof text, "offset_dims = %s, collapsed_slice_dims = [%d], start_index_map = [%d]", HLO_LIST(&kept),
           axis, axis);
  return gather(call, text, &sizes);
}

static hlo_value take_along(const hlo_call *call) {
  int32_t axis = call->op->attrs->axis;
  char text[3 * HLO_DIMS_TEXT];
  ts_dims batch = dims_between(0, call->shape->rank, axis), sizes = {.rank = call->shape->rank};
  for (int32_t d = 0; d < sizes.rank; d++) sizes.dims[d] = 1;
  snprintf(text, sizeof text,
           "collapsed_slice_dims = [%d], operand_batching_dims = %s, start_indices_batching_dims = %s, "
           "start_index_map = [%d]",
           axis, HLO_LIST(&batch), HLO_LIST(&batch), axis);
  return gather(call, text, &sizes);
}

/* True for an empty result: its operand may be empty as well, and a slice of size one would not fit. */
static bool is_empty(const hlo_call *call) { return ts_shape_elements(call->shape) == 0; }
static hlo_value nothing(const hlo_call *call) { return hlo_integer(call->h, (ts_dtype)call->element, call->shape, 0); }

ts_status hlo_indexed(const hlo_call *call, hlo_value *out) {
  switch ((ts_ops_INDEXED)call->op->code) {
  case TS_OP_DYNAMIC_SLICE: return at_starts(call, 1, out);
  case TS_OP_PUT_SLICE: return at_starts(call, 2, out);
  case TS_OP_TAKE: *out = is_empty(call) ? nothing(call) : take(call); return TS_SUCCESS;
  case TS_OP_TAKE_ALONG: *out = is_empty(call) ? nothing(call) : take_along(call); return TS_SUCCESS;
  case TS_OP_INDEXED_ADD:
  case TS_OP_INDEXED_PUT: return hlo_scatter(call, out);
  }
  return hlo_no_form(call);
}
