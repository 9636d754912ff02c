/* Inference of ops on windows. */
#include "base/status.h"
#include "ir/infer.h"

/* One dim and the window on it. */
typedef struct window_dim {
  int64_t dim, size, stride, low, high, dilation;
} window_dim;

/* How many windows there are: 0 where the padded dim is shorter than the window. */
static ts_status count_windows(const ts_infer_call *call, int32_t d, const window_dim *w, int64_t *out) {
  int64_t padded, reach, end;
  if (w->size < 1 || w->stride < 1 || w->dilation < 1)
    return ts_infer_error(call, "dimension %d has window %lld, stride %lld, dilation %lld, expected at least 1", d,
                          (long long)w->size, (long long)w->stride, (long long)w->dilation);
  if (!ts_add_i64(w->dim, w->low, &padded) || !ts_add_i64(padded, w->high, &padded) ||
      !ts_add_i64(w->dim, w->high, &end) || w->low == INT64_MIN || !ts_mul_i64(w->size - 1, w->dilation, &reach) ||
      !ts_add_i64(reach, 1, &reach))
    return ts_infer_error(call, "the window or the padded size of dimension %d does not fit in 64 bits", d);
  if (padded < 0)
    return ts_infer_error(call, "dimension %d is padded to size %lld, expected at least 0", d, (long long)padded);
  *out = padded < reach ? 0 : (padded - reach) / w->stride + 1;
  return TS_SUCCESS;
}

static ts_status window_shape(const ts_infer_call *call, ts_shape *out) {
  const ts_attrs *a = call->attrs;
  const ts_shape *shape = ts_infer_operand(call, 0)->shape;
  TS_TRY(ts_infer_check_rank(call, "sizes", &a->window.sizes));
  TS_TRY(ts_infer_check_rank(call, "strides", &a->window.strides));
  TS_TRY(ts_infer_check_rank(call, "low", &a->window.low));
  TS_TRY(ts_infer_check_rank(call, "high", &a->window.high));
  TS_TRY(ts_infer_check_rank(call, "dilation", &a->window.dilation));
  out->rank = shape->rank;
  for (int32_t d = 0; d < shape->rank; d++) {
    window_dim w = {shape->dims[d],        a->window.sizes.dims[d], a->window.strides.dims[d],
                    a->window.low.dims[d], a->window.high.dims[d],  a->window.dilation.dims[d]};
    TS_TRY(count_windows(call, d, &w, &out->dims[d]));
  }
  return TS_SUCCESS;
}

static ts_status infer_scatter(const ts_infer_call *call, const ts_shape *windows, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0), *source = ts_infer_operand(call, 1);
  TS_TRY(ts_infer_same_dtype(call));
  for (int32_t d = 0; d < windows->rank; d++)
    if (call->attrs->window.dilation.dims[d] != 1)
      return ts_infer_error(call, "dimension %d has dilation %lld, expected 1", d,
                            (long long)call->attrs->window.dilation.dims[d]);
  if (!ts_shape_equal(source->shape, windows))
    return ts_infer_error(call, "expected a source of shape %s, one element for each window",
                          TS_SHAPE_STR(operand->dtype, windows));
  if (ts_infer_operand(call, 2)->shape->rank != 0) return ts_infer_error(call, "expected a scalar initial value");
  ts_type_set(out, operand->dtype, operand->shape);
  return TS_SUCCESS;
}

ts_status ts_infer_window(const ts_infer_call *call, ts_type *out) {
  ts_shape windows;
  TS_TRY(window_shape(call, &windows));
  switch ((ts_ops_WINDOW)call->code) {
  case TS_OP_WINDOW_SUM:
  case TS_OP_WINDOW_PRODUCT:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN: ts_type_set(out, ts_infer_operand(call, 0)->dtype, &windows); return TS_SUCCESS;
  case TS_OP_WINDOW_SCATTER_MAX:
  case TS_OP_WINDOW_SCATTER_MIN: return infer_scatter(call, &windows, out);
  }
  return ts_infer_unknown(call);
}

/* ---- convolution */

/* Each list has an entry for each spatial dim. */
static ts_status check_lists(const ts_infer_call *call, int32_t spatial) {
  const ts_attrs *a = call->attrs;
  const ts_dims *lists[] = {&a->conv.strides, &a->conv.low, &a->conv.high, &a->conv.input_dilation,
                            &a->conv.kernel_dilation};
  static const char *const names[] = {"strides", "low", "high", "input_dilation", "kernel_dilation"};
  for (int i = 0; i < 5; i++)
    if (lists[i]->rank != spatial)
      return ts_infer_error(call, "%s has %d entries, expected %d, one per spatial dimension", names[i], lists[i]->rank,
                            spatial);
  return TS_SUCCESS;
}

static ts_status check_channels(const ts_infer_call *call, int32_t spatial) {
  const ts_shape *x = ts_infer_operand(call, 0)->shape, *kernel = ts_infer_operand(call, 1)->shape;
  int64_t groups = call->attrs->conv.groups, channels = x->dims[spatial + 1], features = kernel->dims[spatial + 1];
  if (groups < 1 || channels % groups != 0 || features % groups != 0)
    return ts_infer_error(call, "%lld groups of %lld channels and %lld features, expected a divisor of both",
                          (long long)groups, (long long)channels, (long long)features);
  if (kernel->dims[spatial] != channels / groups)
    return ts_infer_error(call, "the kernel has %lld channels, expected %lld, those of a group",
                          (long long)kernel->dims[spatial], (long long)(channels / groups));
  return TS_SUCCESS;
}

/* The dim with room between its elements. */
static ts_status dilated_dim(const ts_infer_call *call, int32_t d, int64_t *out) {
  int64_t dim = ts_infer_operand(call, 0)->shape->dims[1 + d], dilation = call->attrs->conv.input_dilation.dims[d];
  if (dilation < 1)
    return ts_infer_error(call, "dimension %d has input dilation %lld, expected at least 1", d, (long long)dilation);
  *out = dim;
  if (dim > 0 && (!ts_mul_i64(dim - 1, dilation, out) || !ts_add_i64(*out, 1, out)))
    return ts_infer_error(call, "the dilated size of dimension %d does not fit in 64 bits", d);
  return TS_SUCCESS;
}

ts_status ts_infer_conv(const ts_infer_call *call, ts_type *out) {
  const ts_value *x = ts_infer_operand(call, 0), *kernel = ts_infer_operand(call, 1);
  const ts_attrs *a = call->attrs;
  int32_t spatial = x->shape->rank - 2;
  TS_TRY(ts_infer_same_dtype(call));
  if (spatial < 0 || kernel->shape->rank != x->shape->rank)
    return ts_infer_error(call, "expected an operand and a kernel of equal ranks, at least 2");
  TS_TRY(check_lists(call, spatial));
  TS_TRY(check_channels(call, spatial));
  ts_type_set(out, x->dtype, x->shape);
  out->shape.dims[spatial + 1] = kernel->shape->dims[spatial + 1];
  for (int32_t d = 0; d < spatial; d++) {
    window_dim w = {0,
                    kernel->shape->dims[d],
                    a->conv.strides.dims[d],
                    a->conv.low.dims[d],
                    a->conv.high.dims[d],
                    a->conv.kernel_dilation.dims[d]};
    TS_TRY(dilated_dim(call, d, &w.dim));
    TS_TRY(count_windows(call, d, &w, &out->shape.dims[1 + d]));
  }
  return TS_SUCCESS;
}
