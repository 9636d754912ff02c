#include "ir/combiner.h"
#include "kernel/ref/ref_internal.h"

/* The elements of one window that are in bounds of the operand. */
typedef struct window {
  const ts_ref_call *call;
  const ts_buffer *x;
  int64_t strides[TS_MAX_RANK]; /* of the operand */
  int64_t first[TS_MAX_RANK];   /* index of the first such element in each dim */
  ts_shape inside;              /* how many there are */
} window;

static window make_window(const ts_ref_call *call) {
  window w = {.call = call, .x = call->operands[0], .inside = {.rank = call->operands[0]->shape.rank}};
  ts_shape_strides(&w.x->shape, w.strides);
  return w;
}

static void move_window(window *w, const int64_t *output) {
  const ts_attrs *a = w->call->op->attrs;
  for (int32_t d = 0; d < w->inside.rank; d++) {
    int64_t first = output[d] * a->window.strides.dims[d] - a->window.low.dims[d], size = a->window.sizes.dims[d];
    int64_t dilation = a->window.dilation.dims[d], dim = w->x->shape.dims[d];
    int64_t before = first < 0 ? -(first / dilation) + (first % dilation != 0) : 0;
    if (before > size) before = size;
    w->first[d] = first + before * dilation;
    w->inside.dims[d] = w->first[d] < dim ? (dim - 1 - w->first[d]) / dilation + 1 : 0;
    if (w->inside.dims[d] > size - before) w->inside.dims[d] = size - before;
  }
}

static int64_t element_at(const window *w, const int64_t *at) {
  int64_t element = 0;
  for (int32_t d = 0; d < w->inside.rank; d++)
    element += (w->first[d] + at[d] * w->call->op->attrs->window.dilation.dims[d]) * w->strides[d];
  return element;
}

/* ---- folds ---- */

static ts_scalar fold(const window *w) {
  const ts_combiner *by = ts_combiner_of(w->call->op->code);
  ts_dtype type = ts_dtype_accumulator(w->x->dtype);
  ts_scalar acc = ts_scalar_convert(w->x->dtype, ts_combiner_identity(by, w->x->dtype), type);
  int64_t at[TS_MAX_RANK] = {0}, count = ts_shape_elements(&w->inside);
  for (int64_t t = 0; ts_ref_goes_on(w->call, t, count); t++, ts_ref_next(&w->inside, at)) {
    ts_scalar x = ts_scalar_convert(w->x->dtype, ts_ref_get(w->x, element_at(w, at)), type);
    acc = ts_ref_binary(by->op, type, acc, x);
  }
  return ts_scalar_convert(type, acc, w->call->result->dtype);
}

static void folds(const ts_ref_call *call) {
  window w = make_window(call);
  const ts_shape *shape = &call->result->shape;
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    move_window(&w, index);
    ts_ref_set(call->result, i, fold(&w));
  }
}

/* ---- scatter ---- */

/* The selected element; -1 for a window without elements. */
static int64_t pick(const window *w) {
  ts_opcode keeps = w->call->op->code == TS_OP_WINDOW_SCATTER_MAX ? TS_OP_GREATER : TS_OP_LESS;
  int64_t at[TS_MAX_RANK] = {0}, count = ts_shape_elements(&w->inside), best = -1;
  for (int64_t t = 0; ts_ref_goes_on(w->call, t, count); t++, ts_ref_next(&w->inside, at)) {
    int64_t element = element_at(w, at);
    if (best < 0 || !ts_ref_compare(keeps, w->x->dtype, ts_ref_get(w->x, best), ts_ref_get(w->x, element)))
      best = element;
  }
  return best;
}

static ts_scalar rounded_sum(ts_dtype type, ts_scalar a, ts_scalar b) {
  ts_dtype wide = ts_dtype_accumulator(type);
  ts_scalar sum = ts_ref_binary(TS_OP_ADD, wide, ts_scalar_convert(type, a, wide), ts_scalar_convert(type, b, wide));
  return ts_scalar_convert(wide, sum, type);
}

static void scatter(const ts_ref_call *call) {
  window w = make_window(call);
  ts_buffer *out = call->result;
  const ts_shape *shape = &call->operands[1]->shape;
  ts_scalar initial = ts_ref_get(call->operands[2], 0);
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(&out->shape)); i++) ts_ref_set(out, i, initial);
  for (int64_t i = 0; ts_ref_goes_on(call, i, ts_shape_elements(shape)); i++, ts_ref_next(shape, index)) {
    move_window(&w, index);
    int64_t to = pick(&w);
    if (to >= 0) ts_ref_set(out, to, rounded_sum(out->dtype, ts_ref_get(out, to), ts_ref_get(call->operands[1], i)));
  }
}

ts_status ts_ref_window(const ts_ref_call *call) {
  switch ((ts_ops_WINDOW)call->op->code) {
  case TS_OP_WINDOW_SUM:
  case TS_OP_WINDOW_PRODUCT:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN: folds(call); return TS_SUCCESS;
  case TS_OP_WINDOW_SCATTER_MAX:
  case TS_OP_WINDOW_SCATTER_MIN: scatter(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}
