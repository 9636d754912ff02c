#include "random_internal.h"
#include "tensor/quantized.h"

static ts_dims random_axes(generator *g, int32_t rank) {
  ts_dims axes = {0};
  int percent = rng_chance(&g->random, 25) ? 100 : 50;
  for (int32_t d = 0; d < rank; d++) {
    if (rng_chance(&g->random, percent)) axes.dims[axes.rank++] = d;
  }
  return axes;
}

ts_status make_reduce(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_REDUCE_SUM, TS_OP_REDUCE_SUM, TS_OP_REDUCE_SUM, TS_OP_REDUCE_PRODUCT,
                                    TS_OP_REDUCE_MAX, TS_OP_REDUCE_MIN, TS_OP_REDUCE_ALL, TS_OP_REDUCE_ANY};
  ts_value_id x = pick(g, s);
  ts_attrs attrs = {.axes = random_axes(g, type_of(g, x).shape.rank)};
  TS_TRY(add_op(g, s, RNG_PICK(&g->random, codes), &attrs, &x, 1, &x));
  return offer(s, x, false);
}

ts_status make_arg_reduce(generator *g, scope *s) {
  ts_value_id x = pick(g, s);
  ts_attrs attrs = {.arg = {.axis = (int32_t)rng_between(&g->random, -1, type_of(g, x).shape.rank - 1),
                            .high = rng_chance(&g->random, 50),
                            .dtype = random_integer_dtype(g)}};
  TS_TRY(add_op(g, s, rng_chance(&g->random, 50) ? TS_OP_ARGMAX : TS_OP_ARGMIN, &attrs, &x, 1, &x));
  return offer(s, x, false);
}

/* ---- siblings ---- */

/* x itself, something of each element of it, or another value of its type. */
static ts_status sibling_operand(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_type type = type_of(g, x);
  switch (rng_below(&g->random, 4)) {
  case 0: return add_binary(g, s, TS_OP_MULTIPLY, x, x, out);
  case 1: return add_unary(g, s, TS_OP_NEGATE, x, out);
  case 2: return pick_like(g, s, type.dtype, &type.shape, out);
  default: *out = x; return TS_SUCCESS;
  }
}

/* Several reductions over the same space: some read others' results and some have an element for each point.
 */
ts_status make_siblings(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_REDUCE_SUM, TS_OP_REDUCE_SUM, TS_OP_REDUCE_PRODUCT,
                                    TS_OP_REDUCE_MAX, TS_OP_REDUCE_MIN, TS_OP_REDUCE_ANY};
  ts_value_id x = pick(g, s), y, before = TS_NO_ID;
  ts_attrs attrs = {.axes = random_axes(g, type_of(g, x).shape.rank)};
  for (int64_t count = rng_between(&g->random, 2, 4); count > 0; count--) {
    TS_TRY(sibling_operand(g, s, x, &y));
    if (rng_chance(&g->random, 30)) TS_TRY(offer(s, y, false));
    TS_TRY(add_op(g, s, RNG_PICK(&g->random, codes), &attrs, &y, 1, &y));
    bool alike = before != TS_NO_ID && type_of(g, before).dtype == type_of(g, y).dtype;
    if (alike && rng_chance(&g->random, 40)) TS_TRY(add_binary(g, s, TS_OP_SUBTRACT, y, before, &y));
    TS_TRY(offer(s, y, false));
    before = y;
  }
  return TS_SUCCESS;
}

ts_status make_scan(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_CUMULATIVE_SUM, TS_OP_CUMULATIVE_SUM, TS_OP_CUMULATIVE_PRODUCT,
                                    TS_OP_CUMULATIVE_MIN, TS_OP_CUMULATIVE_MAX};
  ts_value_id x = pick(g, s);
  int32_t rank = type_of(g, x).shape.rank;
  if (rank == 0) return make_arg_reduce(g, s);
  ts_attrs attrs = {.scan = {.axis = (int32_t)rng_below(&g->random, rank), .reverse = rng_chance(&g->random, 40)}};
  TS_TRY(add_op(g, s, RNG_PICK(&g->random, codes), &attrs, &x, 1, &x));
  return offer(s, x, false);
}

static ts_status top_k(generator *g, scope *s, ts_value_id x) {
  ts_shape shape = type_of(g, x).shape;
  ts_attrs attrs = {.top_k = {.k = (int32_t)rng_between(&g->random, 0, shape.dims[shape.rank - 1])}};
  ts_value_id first;
  TS_TRY(add_op(g, s, TS_OP_TOP_K, &attrs, &x, 1, &first));
  if (rng_chance(&g->random, 70)) TS_TRY(offer(s, first, false));
  return offer(s, first + 1, false);
}

/* Sorted values, or where they came from; along any axis, of numbers that often repeat. */
ts_status make_sort(generator *g, scope *s) {
  ts_value_id x = pick(g, s), y;
  int32_t rank = type_of(g, x).shape.rank;
  if (rank == 0) return make_arg_reduce(g, s);
  int32_t axis = (int32_t)rng_below(&g->random, rank);
  bool descending = rng_chance(&g->random, 50);
  ts_attrs attrs = {.sort = {.axis = axis, .descending = descending}};
  switch (rng_below(&g->random, 3)) {
  case 0: TS_TRY(add_op(g, s, TS_OP_SORT, &attrs, &x, 1, &y)); return offer(s, y, false);
  case 1: return top_k(g, s, x);
  default: break;
  }
  attrs.argsort.axis = axis;
  attrs.argsort.descending = descending;
  attrs.argsort.dtype = random_integer_dtype(g);
  TS_TRY(add_op(g, s, TS_OP_ARGSORT, &attrs, &x, 1, &y));
  return offer(s, y, false);
}

/* Windows of any kind, also larger than the operand, and the scatter of another tensor at their choices. */
ts_status make_windows(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_WINDOW_SUM, TS_OP_WINDOW_PRODUCT,     TS_OP_WINDOW_MAX,
                                    TS_OP_WINDOW_MIN, TS_OP_WINDOW_SCATTER_MAX, TS_OP_WINDOW_SCATTER_MIN};
  ts_value_id x = pick(g, s), operands[3] = {x};
  ts_type type = type_of(g, x);
  int32_t rank = type.shape.rank;
  ts_opcode code = RNG_PICK(&g->random, codes);
  bool scatter = code == TS_OP_WINDOW_SCATTER_MAX || code == TS_OP_WINDOW_SCATTER_MIN;
  ts_attrs attrs = {.window = {{.rank = rank}, {.rank = rank}, {.rank = rank}, {.rank = rank}, {.rank = rank}}};
  ts_shape windows = {.rank = rank}, none = {.rank = 0};
  for (int32_t d = 0; d < rank; d++) {
    bool plain = rng_chance(&g->random, 30);
    int64_t size = plain ? 1 : rng_between(&g->random, 1, 4), stride = plain ? 1 : rng_between(&g->random, 1, 3);
    int64_t low = plain ? 0 : rng_between(&g->random, -1, 3), high = plain ? 0 : rng_between(&g->random, -1, 3);
    int64_t dilation = scatter || plain ? 1 : rng_between(&g->random, 1, 2), dim = type.shape.dims[d];
    if (dim + low + high < 0) low = high = 0;
    int64_t room = dim + low + high - (size - 1) * dilation - 1;
    attrs.window.sizes.dims[d] = size, attrs.window.strides.dims[d] = stride;
    attrs.window.low.dims[d] = low, attrs.window.high.dims[d] = high, attrs.window.dilation.dims[d] = dilation;
    windows.dims[d] = room < 0 ? 0 : room / stride + 1;
  }
  if (!fits(g, &windows)) return make_scan(g, s);
  if (scatter) TS_TRY(pick_like(g, s, type.dtype, &windows, &operands[1]));
  if (scatter) TS_TRY(pick_like(g, s, type.dtype, &none, &operands[2]));
  TS_TRY(add_op(g, s, code, &attrs, operands, scatter ? 3 : 1, &x));
  return offer(s, x, false);
}

/* ---- row programs ---- */

/* reduce over the last axis, put back to the operand's shape */
static ts_status row_reduce(generator *g, scope *s, ts_opcode code, ts_value_id x, ts_value_id *out) {
  ts_shape shape = type_of(g, x).shape;
  int32_t last = shape.rank - 1;
  ts_attrs reduce = {.axes = {.rank = 1, .dims = {last}}};
  ts_attrs broadcast = {.broadcast = {.shape = shape, .axes = {.rank = last}}};
  for (int32_t d = 0; d < last; d++) broadcast.broadcast.axes.dims[d] = d;
  TS_TRY(add_op(g, s, code, &reduce, &x, 1, out));
  return add_op(g, s, TS_OP_BROADCAST, &broadcast, out, 1, out);
}

/* Softmax; with squares for exponentials where functions are not allowed. */
static ts_status softmax(generator *g, scope *s, ts_value_id x) {
  ts_value_id highest, shifted, weights, total, y;
  bool approximate = s->approximate_allowed && rng_chance(&g->random, 70);
  TS_TRY(row_reduce(g, s, TS_OP_REDUCE_MAX, x, &highest));
  TS_TRY(add_binary(g, s, TS_OP_SUBTRACT, x, highest, &shifted));
  TS_TRY(approximate ? add_unary(g, s, TS_OP_EXP, shifted, &weights)
                     : add_binary(g, s, TS_OP_MULTIPLY, shifted, shifted, &weights));
  TS_TRY(row_reduce(g, s, TS_OP_REDUCE_SUM, weights, &total));
  TS_TRY(add_binary(g, s, TS_OP_DIVIDE, weights, total, &y));
  return offer(s, y, approximate);
}

/* (x - mean) / sqrt(variance + eps) * gain + bias */
static ts_status layer_norm(generator *g, scope *s, ts_value_id x) {
  ts_type type = type_of(g, x);
  ts_value_id size, mean, centred, square, variance, epsilon, scale, y, gain, bias;
  bool approximate = s->approximate_allowed && rng_chance(&g->random, 50);
  TS_TRY(add_constant(g, s, type.dtype, &type.shape, (double)type.shape.dims[type.shape.rank - 1], &size));
  TS_TRY(add_constant(g, s, type.dtype, &type.shape, 0x1p-10, &epsilon));
  TS_TRY(row_reduce(g, s, TS_OP_REDUCE_SUM, x, &mean));
  TS_TRY(add_binary(g, s, TS_OP_DIVIDE, mean, size, &mean));
  TS_TRY(add_binary(g, s, TS_OP_SUBTRACT, x, mean, &centred));
  TS_TRY(add_binary(g, s, TS_OP_MULTIPLY, centred, centred, &square));
  TS_TRY(row_reduce(g, s, TS_OP_REDUCE_SUM, square, &variance));
  TS_TRY(add_binary(g, s, TS_OP_DIVIDE, variance, size, &variance));
  TS_TRY(add_binary(g, s, TS_OP_ADD, variance, epsilon, &variance));
  if (approximate) {
    TS_TRY(add_unary(g, s, TS_OP_RSQRT, variance, &scale));
    TS_TRY(add_binary(g, s, TS_OP_MULTIPLY, centred, scale, &y));
    return offer(s, y, true);
  }
  TS_TRY(add_unary(g, s, TS_OP_SQRT, variance, &scale));
  TS_TRY(add_binary(g, s, TS_OP_DIVIDE, centred, scale, &y));
  TS_TRY(pick_like(g, s, type.dtype, &type.shape, &gain));
  TS_TRY(pick_like(g, s, type.dtype, &type.shape, &bias));
  TS_TRY(add_binary(g, s, TS_OP_MULTIPLY, y, gain, &y));
  TS_TRY(add_binary(g, s, TS_OP_ADD, y, bias, &y));
  return offer(s, y, false);
}

ts_status make_row_program(generator *g, scope *s) {
  ts_value_id x;
  TS_TRY(pick_float(g, s, &x));
  if (type_of(g, x).shape.rank == 0) return make_reduce(g, s);
  return rng_chance(&g->random, 50) ? softmax(g, s, x) : layer_norm(g, s, x);
}

/* ---- contraction ---- */

static void add_dim(ts_shape *shape, int64_t dim) { shape->dims[shape->rank++] = dim; }

/* Gives each dim of lhs a role, and makes an rhs of the shared dims and some of its own. */
static dot_plan plan_dot(generator *g, const ts_shape *lhs) {
  enum { CONTRACT, BATCH, FREE, MAX_RANK = 6 };
  dot_plan plan = {.work = ts_shape_elements(lhs)};
  ts_dims *lhs_lists[] = {&plan.attrs.dot.lhs_contract, &plan.attrs.dot.lhs_batch};
  ts_dims *rhs_lists[] = {&plan.attrs.dot.rhs_contract, &plan.attrs.dot.rhs_batch};
  for (int32_t d = 0; d < lhs->rank; d++) {
    int role = rng_chance(&g->random, 45) ? CONTRACT : rng_chance(&g->random, 30) ? BATCH : FREE;
    if (role != CONTRACT) add_dim(&plan.result, lhs->dims[d]);
    if (role == FREE) continue;
    add_dim(lhs_lists[role], d);
    add_dim(rhs_lists[role], plan.rhs.rank);
    add_dim(&plan.rhs, lhs->dims[d]);
  }
  for (int64_t left = rng_below(&g->random, 3); left > 0 && plan.rhs.rank < MAX_RANK; left--) {
    int64_t dim = rng_between(&g->random, 1, 20);
    add_dim(&plan.result, dim);
    add_dim(&plan.rhs, dim);
    plan.work *= dim;
  }
  return plan;
}

/* Renames rhs' dims: new dim i is old dim (i + by) mod rank. */
static void rotate(dot_plan *plan, int64_t by) {
  ts_shape old = plan->rhs;
  ts_dims *lists[2] = {&plan->attrs.dot.rhs_contract, &plan->attrs.dot.rhs_batch};
  for (int32_t i = 0; i < old.rank; i++) plan->rhs.dims[i] = old.dims[(i + by) % old.rank];
  for (int l = 0; l < 2; l++) {
    for (int32_t i = 0; i < lists[l]->rank; i++) lists[l]->dims[i] = (lists[l]->dims[i] + old.rank - by) % old.rank;
  }
}

/* A product of an operand that is converted and scaled: before, or by the product. */
static ts_status add_scaled_product(generator *g, scope *s, const dot_plan *plan, const ts_value_id *operands,
                                    ts_value_id *out) {
  static const ts_dtype types[] = {TS_F32, TS_F32, TS_F16, TS_BF16, TS_F64, TS_S32};
  ts_attrs to = {.dtype = types[rng_below(&g->random, sizeof types / sizeof *types)]}, attrs = plan->attrs;
  const int which = (int)rng_below(&g->random, 2);
  const ts_type scaled = type_of(g, operands[which]);
  ts_attrs wide = {.broadcast = {.shape = scaled.shape}};
  ts_shape scale = ts_shape_scalar;
  ts_value_id of[3] = {operands[0], operands[1]}, factors[2];
  for (int32_t d = 0; d < scaled.shape.rank; d++) {
    if (!rng_chance(&g->random, 40)) continue;
    add_dim(&wide.broadcast.axes, d);
    scale.dims[scale.rank++] = rng_chance(&g->random, 80) ? scaled.shape.dims[d] : 1;
  }
  TS_TRY(pick_like(g, s, to.dtype, &scale, &of[2]));
  attrs.scaled_dot.operand = which;
  attrs.scaled_dot.axes = wide.broadcast.axes;
  if (rng_chance(&g->random, 50)) return add_op(g, s, TS_OP_SCALED_DOT, &attrs, of, 3, out);
  for (int i = 0; i < 2; i++) TS_TRY(add_op(g, s, TS_OP_CONVERT, &to, &operands[i], 1, &of[i]));
  TS_TRY(add_op(g, s, TS_OP_BROADCAST, &wide, &of[2], 1, &factors[1]));
  factors[0] = of[which];
  TS_TRY(add_op(g, s, TS_OP_MULTIPLY, NULL, factors, 2, &of[which]));
  return add_op(g, s, TS_OP_DOT, &plan->attrs, of, 2, out);
}

/* A product of converted operands: converted before, or by the product. */
static ts_status add_wide_product(generator *g, scope *s, const dot_plan *plan, const ts_value_id *operands,
                                  ts_value_id *out) {
  static const ts_dtype types[] = {TS_F32, TS_F32, TS_F64, TS_F16, TS_BF16, TS_S32, TS_S32, TS_U32, TS_S64};
  ts_attrs to = {.dtype = types[rng_below(&g->random, sizeof types / sizeof *types)]}, attrs = plan->attrs;
  ts_value_id converted[2];
  attrs.wide_dot.dtype = to.dtype;
  if (rng_chance(&g->random, 50)) return add_op(g, s, TS_OP_WIDE_DOT, &attrs, operands, 2, out);
  for (int i = 0; i < 2; i++) TS_TRY(add_op(g, s, TS_OP_CONVERT, &to, &operands[i], 1, &converted[i]));
  return add_op(g, s, TS_OP_DOT, &plan->attrs, converted, 2, out);
}

bool random_dot_plan(generator *g, const ts_shape *lhs, dot_plan *out) {
  enum { MAX_WORK = 200000 };
  *out = plan_dot(g, lhs);
  bool small = out->work <= MAX_WORK && out->result.rank <= 8;
  if (!small || !fits(g, &out->result) || !fits(g, &out->rhs)) return false;
  if (out->rhs.rank > 0) rotate(out, rng_below(&g->random, out->rhs.rank));
  return true;
}

static ts_shape panels_of(int64_t cols, int64_t rows) {
  return (ts_shape){.rank = 3, .dims = {ts_quantized_panels(cols), rows, TS_QUANTIZED_COLS}};
}

/* A product with a quantised weight of random bits; *out_made: that x is of a type and a shape that allow it. */
static ts_status add_quantized_product(generator *g, scope *s, ts_value_id x, ts_value_id *out, bool *out_made) {
  static const ts_dtype scales[] = {TS_F32, TS_F16, TS_BF16};
  const ts_type type = type_of(g, x);
  const int64_t cols = rng_between(&g->random, 0, 70), group = 8 * rng_between(&g->random, 1, 4);
  const int bits = rng_chance(&g->random, 50) ? 4 : 8, form = (int)rng_below(&g->random, TS_QUANTIZED_FORMS);
  const ts_attrs attrs = {
      .quantized_dot = {.bits = bits, .group = (int32_t)group, .form = form, .cols = (int32_t)cols}};
  ts_shape result = type.shape;
  ts_value_id operands[4] = {x};
  const size_t count = form == TS_QUANTIZED_SCALE ? 3 : 4;
  *out_made = false;
  if ((type.dtype != TS_F32 && type.dtype != TS_F16 && type.dtype != TS_BF16) || result.rank == 0) return TS_SUCCESS;
  const int64_t k = result.dims[result.rank - 1];
  const ts_shape words = panels_of(cols, ts_quantized_words(k, bits)),
                 parts = panels_of(cols, ts_quantized_ceil(k, group));
  result.dims[result.rank - 1] = cols;
  if (!fits(g, &result) || !fits(g, &words) || !fits(g, &parts)) return TS_SUCCESS;
  const ts_dtype part = RNG_PICK(&g->random, scales);
  *out_made = true;
  TS_TRY(pick_like(g, s, TS_U32, &words, &operands[1]));
  for (size_t i = 2; i < count; i++) TS_TRY(pick_like(g, s, part, &parts, &operands[i]));
  return add_op(g, s, TS_OP_QUANTIZED_DOT, &attrs, operands, count, out);
}

ts_status make_contraction(generator *g, scope *s) {
  ts_value_id operands[2] = {pick(g, s)}, y;
  ts_type lhs = type_of(g, operands[0]);
  dot_plan plan;
  bool is_quantized = false;
  if (rng_chance(&g->random, 15)) TS_TRY(add_quantized_product(g, s, operands[0], &y, &is_quantized));
  if (is_quantized) return offer(s, y, false);
  if (!random_dot_plan(g, &lhs.shape, &plan)) return make_reduce(g, s);
  TS_TRY(pick_like(g, s, lhs.dtype, &plan.rhs, &operands[1]));
  if (!ts_dtype_is_complex(lhs.dtype) && rng_chance(&g->random, 25))
    TS_TRY(add_scaled_product(g, s, &plan, operands, &y));
  else if (!ts_dtype_is_complex(lhs.dtype) && rng_chance(&g->random, 40))
    TS_TRY(add_wide_product(g, s, &plan, operands, &y));
  else
    TS_TRY(add_op(g, s, TS_OP_DOT, &plan.attrs, operands, 2, &y));
  return offer(s, y, false);
}

/* ---- convolutions ---- */

/* Random attributes of one spatial dim. *out_dim becomes the dim of the result, which may be 0. */
static void random_conv_dim(generator *g, int64_t dim, int64_t size, int32_t d, ts_attrs *attrs, int64_t *out_dim) {
  bool plain = rng_chance(&g->random, 30);
  int64_t stride = plain ? 1 : rng_between(&g->random, 1, 3),
          kernel_dilation = plain ? 1 : rng_between(&g->random, 1, 2);
  int64_t low = plain ? 0 : rng_between(&g->random, -1, 3), high = plain ? 0 : rng_between(&g->random, -1, 3);
  int64_t input_dilation = plain ? 1 : rng_between(&g->random, 1, 2);
  int64_t dilated = dim > 0 ? (dim - 1) * input_dilation + 1 : 0;
  if (dilated + low + high < 0) low = high = 0;
  int64_t room = dilated + low + high - (size - 1) * kernel_dilation - 1;
  attrs->conv.strides.dims[d] = stride, attrs->conv.low.dims[d] = low, attrs->conv.high.dims[d] = high;
  attrs->conv.input_dilation.dims[d] = input_dilation, attrs->conv.kernel_dilation.dims[d] = kernel_dilation;
  *out_dim = room < 0 ? 0 : room / stride + 1;
}

/* The operand's first axis is the batch, its last one the channels. */
ts_status make_conv(generator *g, scope *s) {
  enum { MAX_WORK = 200000 };
  ts_value_id operands[2] = {pick(g, s)}, y;
  ts_type x = type_of(g, operands[0]);
  int32_t rank = x.shape.rank, spatial = rank - 2;
  if (rank < 2) return make_reduce(g, s);
  ts_shape kernel = {.rank = rank}, result = x.shape;
  ts_attrs attrs = {
      .conv = {{.rank = spatial}, {.rank = spatial}, {.rank = spatial}, {.rank = spatial}, {.rank = spatial}, 1}};
  int64_t channels = x.shape.dims[rank - 1], features = rng_between(&g->random, 1, 5);
  if (channels > 0 && rng_chance(&g->random, 30)) attrs.conv.groups = channels;
  kernel.dims[spatial] = channels / attrs.conv.groups;
  result.dims[rank - 1] = kernel.dims[rank - 1] = attrs.conv.groups * features;
  for (int32_t d = 0; d < spatial; d++) {
    kernel.dims[d] = rng_between(&g->random, 1, 3);
    random_conv_dim(g, x.shape.dims[d + 1], kernel.dims[d], d, &attrs, &result.dims[d + 1]);
  }
  if (!fits(g, &result) || !fits(g, &kernel)) return make_reduce(g, s);
  if (ts_shape_elements(&result) * ts_shape_elements(&kernel) > MAX_WORK) return make_reduce(g, s);
  TS_TRY(pick_like(g, s, x.dtype, &kernel, &operands[1]));
  TS_TRY(add_op(g, s, TS_OP_CONV, &attrs, operands, 2, &y));
  return offer(s, y, false);
}
