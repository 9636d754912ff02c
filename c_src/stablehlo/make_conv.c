/* Convolutions in any layout: transposes bring operands to [batch, spatial, channels] and [spatial, channels,
 * features]. */
#include "stablehlo/make.h"

#include <string.h>

/* Of an operand or of the result: where its dims are. */
typedef struct layout {
  int32_t first, last; /* batch and channels; channels and features of the kernel */
  ts_dims spatial;
} layout;

/* The item that is the letter, or a spatial dim's number. */
static int32_t find_item(const mlir_attr *list, const char *letter, int64_t number) {
  for (size_t i = 0; i < list->count; i++) {
    int64_t value;
    if (letter && list->items[i].kind == MLIR_ATTR_WORD && mlir_token_is(list->items[i].token, letter))
      return (int32_t)i;
    if (letter || list->items[i].kind != MLIR_ATTR_NUMBER) continue;
    if (ts_status_consume_ok(mlir_attr_int(&list->items[i], &value)) && value == number) return (int32_t)i;
  }
  return -1;
}

static ts_status read_layout(const mlir_attr *list, const char *first, const char *last, layout *out) {
  bool whole = list->kind == MLIR_ATTR_LIST && list->count >= 2 && list->count <= TS_MAX_RANK;
  if (!whole) return mlir_error(TS_INVALID_ARGUMENT, list->token, "expected the dims of a convolution");
  out->first = find_item(list, first, 0);
  out->last = find_item(list, last, 0);
  out->spatial.rank = (int32_t)list->count - 2;
  whole = out->first >= 0 && out->last >= 0;
  for (int32_t d = 0; d < out->spatial.rank; d++) {
    out->spatial.dims[d] = find_item(list, NULL, d);
    whole = whole && out->spatial.dims[d] >= 0;
  }
  if (!whole) return mlir_error(TS_INVALID_ARGUMENT, list->token, "expected %s, %s and each spatial dim", first, last);
  return TS_SUCCESS;
}

static ts_dims ordered(const layout *l, bool kernel) {
  ts_dims axes = {.rank = l->spatial.rank + 2};
  int32_t at = 0;
  if (!kernel) axes.dims[at++] = l->first;
  for (int32_t d = 0; d < l->spatial.rank; d++) axes.dims[at++] = l->spatial.dims[d];
  if (kernel) axes.dims[at++] = l->first;
  axes.dims[at] = l->last;
  return axes;
}

static ts_dims inverse(const ts_dims *axes) {
  ts_dims out = {.rank = axes->rank};
  for (int32_t d = 0; d < axes->rank; d++) out.dims[axes->dims[d]] = d;
  return out;
}

/* An item of the pretty form's `window`, or an attribute of the generic form. */
static const mlir_attr *window_item(const make_call *m, const char *pretty, const char *generic) {
  const mlir_attr *window = make_attr(m, "window");
  return window ? mlir_find_attr(window->items, window->count, pretty) : make_attr(m, generic);
}

static ts_status window_dims(const make_call *m, const char *pretty, const char *generic, int32_t rank, ts_dims *out) {
  return make_ints_or(window_item(m, pretty, generic), rank, 1, out);
}

static ts_status reverse_kernel(const make_call *m, int32_t rank, ts_value_id *kernel) {
  const mlir_attr *attr = window_item(m, "reverse", "window_reversal");
  ts_dims flags;
  ts_attrs attrs = {0};
  if (!attr) return TS_SUCCESS;
  TS_TRY(mlir_attr_ints(attr, &flags));
  for (int32_t d = 0; d < flags.rank && d < rank; d++)
    if (flags.dims[d]) attrs.axes.dims[attrs.axes.rank++] = d; /* spatial dims come first */
  return attrs.axes.rank ? make_add(m, TS_OP_REVERSE, (ts_values){kernel, 1}, &attrs, kernel) : TS_SUCCESS;
}

static ts_status conv_attrs(const make_call *m, int32_t rank, ts_attrs *out, int64_t *out_batch_groups) {
  ts_dims padding[2];
  const mlir_attr *batch_groups = make_attr(m, "batch_group_count"), *groups = make_attr(m, "feature_group_count");
  int64_t count = 1;
  TS_TRY(window_dims(m, "stride", "window_strides", rank, &out->conv.strides));
  TS_TRY(window_dims(m, "lhs_dilate", "lhs_dilation", rank, &out->conv.input_dilation));
  TS_TRY(window_dims(m, "rhs_dilate", "rhs_dilation", rank, &out->conv.kernel_dilation));
  TS_TRY(make_attr_padding(window_item(m, "pad", "padding"), rank, padding));
  ts_shape_copy(&out->conv.low, &padding[0]);
  ts_shape_copy(&out->conv.high, &padding[1]);
  if (batch_groups) TS_TRY(mlir_attr_int(batch_groups, &count));
  *out_batch_groups = count;
  count = 1;
  if (groups) TS_TRY(mlir_attr_int(groups, &count));
  if (count < 1 || count > INT32_MAX || *out_batch_groups < 1 || *out_batch_groups > INT32_MAX ||
      (count > 1 && *out_batch_groups > 1))
    return make_error(m, TS_INVALID_ARGUMENT, "its groups are out of range");
  out->conv.groups = (int32_t)(count * *out_batch_groups);
  return TS_SUCCESS;
}

/* [groups * batch, spatial, channels] to [batch, spatial, groups * channels]: then each group is one of channels, and
 * as before computes its own features. */
static ts_status groups_to_channels(const make_call *m, int64_t groups, ts_value_id *inout) {
  ts_shape shape;
  ts_dims axes = {0};
  const ts_shape *from = make_value_of(m, *inout)->shape;
  const int32_t rank = from->rank;
  if (groups == 1) return TS_SUCCESS;
  if (from->dims[0] % groups || rank == TS_MAX_RANK)
    return make_error(m, TS_INVALID_ARGUMENT, "its batch of %lld is no multiple of its groups",
                      (long long)from->dims[0]);
  shape.rank = rank + 1;
  shape.dims[0] = groups;
  shape.dims[1] = from->dims[0] / groups;
  for (int32_t d = 1; d < rank; d++) shape.dims[d + 1] = from->dims[d];
  TS_TRY(make_reshape(m, *inout, &shape, inout));
  for (int32_t d = 1; d < rank; d++) axes.dims[axes.rank++] = d;
  axes.dims[axes.rank++] = 0;
  axes.dims[axes.rank++] = rank;
  TS_TRY(make_transpose(m, *inout, &axes, inout));
  for (int32_t d = 0; d + 1 < rank; d++) shape.dims[d] = shape.dims[d + 1];
  shape.dims[rank - 1] = groups * shape.dims[rank];
  shape.rank = rank;
  return make_reshape(m, *inout, &shape, inout);
}

ts_status make_in_conv(const make_call *m) {
  const mlir_attr *numbers = make_attr(m, "dim_numbers|dimension_numbers");
  ts_attrs attrs = {0};
  layout input, kernel, output;
  ts_value_id operands[2], id;
  TS_TRY(make_count_operands(m, 2));
  if (!numbers || numbers->kind != MLIR_ATTR_LIST || numbers->count != 3)
    return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute dimension_numbers");
  TS_TRY(read_layout(&numbers->items[0], "b", "f", &input));
  TS_TRY(read_layout(&numbers->items[1], "i", "o", &kernel));
  TS_TRY(read_layout(&numbers->items[2], "b", "f", &output));
  const int32_t rank = input.spatial.rank;
  if (kernel.spatial.rank != rank || output.spatial.rank != rank || make_operand_of(m, 0)->shape->rank != rank + 2 ||
      make_operand_of(m, 1)->shape->rank != rank + 2)
    return make_error(m, TS_INVALID_ARGUMENT, "its dims and its operands differ in rank");
  int64_t batch_groups;
  TS_TRY(conv_attrs(m, rank, &attrs, &batch_groups));
  ts_dims orders[2] = {ordered(&input, false), ordered(&kernel, true)}, made = ordered(&output, false),
          back = inverse(&made);
  for (size_t i = 0; i < 2; i++) {
    TS_TRY(make_factor(m, i, &operands[i]));
    TS_TRY(make_transpose(m, operands[i], &orders[i], &operands[i]));
  }
  TS_TRY(groups_to_channels(m, batch_groups, &operands[0]));
  TS_TRY(reverse_kernel(m, rank, &operands[1]));
  TS_TRY(make_add(m, TS_OP_CONV, (ts_values){operands, 2}, &attrs, &id));
  TS_TRY(make_sum_of_products(m, &id));
  TS_TRY(make_transpose(m, id, &back, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}
