/* Ops of formulas on batches of matrices (loops.h). */
#include "pass/loops.h"

#include <math.h>

val loops_add(loops *l, ts_opcode code, const val *operands, size_t count, const ts_attrs *attrs) {
  val out = TS_NO_ID;
  if (!l->status) l->status = ts_graph_add_op(l->graph, l->region, code, (ts_values){operands, count}, attrs, &out);
  return out;
}

static const ts_shape *shape_of(const loops *l, val x) { return ts_graph_value(l->graph, x)->shape; }

int64_t loops_dim(const loops *l, val x, int32_t axis) { return l->status ? 1 : shape_of(l, x)->dims[axis]; }

static val spread(loops *l, val x, const ts_shape *shape) {
  val out = x;
  if (!l->status) l->status = ts_graph_broadcast_to(l->graph, l->region, x, shape, &out);
  return out;
}

/* The operands in their common shape. */
static void make_alike(loops *l, val *operands, size_t count) {
  ts_shape shape = {0}, both;
  for (size_t i = 0; i < count && !l->status; i++) {
    l->status = ts_shape_broadcast(&shape, shape_of(l, operands[i]), &both);
    if (!l->status) ts_shape_copy(&shape, &both);
  }
  for (size_t i = 0; i < count; i++) operands[i] = spread(l, operands[i], &shape);
}

val loops_unary(loops *l, ts_opcode code, val x) { return loops_add(l, code, &x, 1, NULL); }

val loops_binary(loops *l, ts_opcode code, val x, val y) {
  val operands[] = {x, y};
  make_alike(l, operands, 2);
  return loops_add(l, code, operands, 2, NULL);
}

val loops_pick(loops *l, val predicate, val x, val y) {
  val operands[] = {predicate, x, y};
  make_alike(l, operands, 3);
  return loops_add(l, TS_OP_SELECT, operands, 3, NULL);
}

static ts_scalar scalar_of(ts_dtype dtype, double number) {
  if (ts_dtype_is_complex(dtype)) return ts_scalar_complex(dtype, number, 0);
  return ts_scalar_from_f64(dtype, number);
}

static val constant(loops *l, ts_dtype dtype, const ts_shape *shape, double number) {
  val out = TS_NO_ID;
  if (!l->status) l->status = ts_graph_constant(l->graph, l->region, dtype, shape, scalar_of(dtype, number), &out);
  return out;
}

val loops_number(loops *l, ts_dtype dtype, double number) { return constant(l, dtype, &ts_shape_scalar, number); }

val loops_zeros(loops *l, ts_dtype dtype, int64_t batch, int64_t rows, int64_t cols) {
  return constant(l, dtype, &(ts_shape){3, {batch, rows, cols}}, 0);
}

val loops_eye(loops *l, int64_t batch, int64_t rows, int64_t cols) {
  ts_attrs attrs = {.shaped = {.dtype = l->dtype, .shape = {3, {batch, rows, cols}}}};
  return loops_add(l, TS_OP_EYE, NULL, 0, &attrs);
}

val loops_convert(loops *l, val x, ts_dtype dtype) {
  val out = x;
  if (!l->status) l->status = ts_graph_convert(l->graph, l->region, x, dtype, &out);
  return out;
}

val loops_reshape(loops *l, val x, const ts_shape *shape) {
  ts_attrs attrs = {0};
  if (l->status || ts_shape_equal(shape_of(l, x), shape)) return x;
  ts_shape_copy(&attrs.shape, shape);
  return loops_add(l, TS_OP_RESHAPE, &x, 1, &attrs);
}

val loops_iota(loops *l, int32_t axis, int64_t count) {
  ts_attrs attrs = {.iota = {.dtype = TS_S32, .shape = {3, {1, 1, 1}}, .axis = axis}};
  attrs.iota.shape.dims[axis] = count;
  return loops_add(l, TS_OP_IOTA, NULL, 0, &attrs);
}

/* A reduction of x along `axis`, with that axis as a dim of 1. */
static val keep_axis(loops *l, val x, val reduced, int32_t axis) {
  ts_shape shape;
  if (l->status) return x;
  ts_shape_copy(&shape, shape_of(l, x));
  shape.dims[axis] = 1;
  return loops_reshape(l, reduced, &shape);
}

val loops_reduce(loops *l, ts_opcode code, val x, int32_t axis) {
  ts_attrs attrs = {.axes = {1, {axis}}};
  return keep_axis(l, x, loops_add(l, code, &x, 1, &attrs), axis);
}

val loops_argmax(loops *l, val x, int32_t axis) {
  ts_attrs attrs = {.arg = {.axis = axis, .dtype = TS_S32}};
  return keep_axis(l, x, loops_add(l, TS_OP_ARGMAX, &x, 1, &attrs), axis);
}

val loops_slice(loops *l, val x, int32_t axis, int64_t start, int64_t limit) {
  ts_attrs attrs = {.slice = {.start = {3, {0}}, .stride = {3, {1, 1, 1}}}};
  if (l->status) return x;
  ts_shape_copy(&attrs.slice.limit, shape_of(l, x));
  attrs.slice.start.dims[axis] = start;
  attrs.slice.limit.dims[axis] = limit;
  return loops_add(l, TS_OP_SLICE, &x, 1, &attrs);
}

val loops_line(loops *l, val x, int32_t axis, val index) {
  val zero = loops_number(l, TS_S32, 0), operands[] = {x, zero, zero, zero};
  ts_attrs attrs = {0};
  if (l->status) return x;
  ts_shape_copy(&attrs.shape, shape_of(l, x));
  attrs.shape.dims[axis] = 1;
  operands[1 + axis] = index;
  return loops_add(l, TS_OP_DYNAMIC_SLICE, operands, 4, &attrs);
}

val loops_concatenate(loops *l, int32_t axis, const val *parts, size_t count) {
  return loops_add(l, TS_OP_CONCATENATE, parts, count, &(ts_attrs){.axis = axis});
}

val loops_take(loops *l, val x, val indices, int32_t axis) {
  ts_shape shape;
  if (l->status) return x;
  ts_shape_copy(&shape, shape_of(l, x));
  shape.dims[axis] = shape_of(l, indices)->dims[axis];
  val operands[] = {x, spread(l, indices, &shape)};
  return loops_add(l, TS_OP_TAKE_ALONG, operands, 2, &(ts_attrs){.axis = axis});
}

val loops_turned(loops *l, val x) {
  if (l->status) return x;
  const int64_t *dims = shape_of(l, x)->dims;
  return loops_reshape(l, x, &(ts_shape){3, {dims[0], dims[2], dims[1]}});
}

static bool is_complex(const loops *l, val x) {
  return !l->status && ts_dtype_is_complex(ts_graph_value(l->graph, x)->dtype);
}

val loops_real(loops *l, val x) { return is_complex(l, x) ? loops_unary(l, TS_OP_REAL, x) : x; }

static val imaginary(loops *l, val x) { return loops_unary(l, TS_OP_IMAG, x); }

val loops_conjugate(loops *l, val x) {
  if (!is_complex(l, x)) return x;
  return loops_binary(l, TS_OP_COMPLEX, loops_real(l, x), loops_unary(l, TS_OP_NEGATE, imaginary(l, x)));
}

val loops_adjoint(loops *l, val x) {
  ts_attrs attrs = {.axes = {3, {0, 2, 1}}};
  return loops_conjugate(l, loops_add(l, TS_OP_TRANSPOSE, &x, 1, &attrs));
}

val loops_size(loops *l, val x) { return loops_unary(l, TS_OP_ABS, x); }

static val by_parts(loops *l, ts_opcode code, val x, val by) {
  if (!is_complex(l, x)) return loops_binary(l, code, x, by);
  val re = loops_binary(l, code, loops_real(l, x), by), im = loops_binary(l, code, imaginary(l, x), by);
  return loops_binary(l, TS_OP_COMPLEX, re, im);
}

val loops_times(loops *l, val x, val by) { return by_parts(l, TS_OP_MULTIPLY, x, by); }
val loops_over(loops *l, val x, val by) { return by_parts(l, TS_OP_DIVIDE, x, by); }

val loops_from_real(loops *l, val x) {
  if (l->dtype == l->part) return x;
  return loops_binary(l, TS_OP_COMPLEX, x, loops_real_number(l, 0));
}

/* The bits of the exponent alone are the power of two. */
val loops_power_below(loops *l, val x) {
  const bool wide = l->part == TS_F64;
  const ts_dtype bits = wide ? TS_S64 : TS_S32;
  const ts_scalar mask = {.s64 = wide ? INT64_C(0x7ff) << 52 : INT64_C(0xff) << 23};
  val exponent = TS_NO_ID, least = loops_real_number(l, wide ? 0x1p-1022 : 0x1p-126);
  val raised = loops_binary(l, TS_OP_MAX, x, least);
  val word = loops_add(l, TS_OP_BITCAST, &raised, 1, &(ts_attrs){.dtype = bits});
  if (!l->status) l->status = ts_graph_constant(l->graph, l->region, bits, &ts_shape_scalar, mask, &exponent);
  word = loops_binary(l, TS_OP_AND, word, exponent);
  return loops_add(l, TS_OP_BITCAST, &word, 1, &(ts_attrs){.dtype = l->part});
}

val loops_larger_part(loops *l, val x) {
  val size = loops_unary(l, TS_OP_ABS, loops_real(l, x));
  return is_complex(l, x) ? loops_binary(l, TS_OP_MAX, size, loops_unary(l, TS_OP_ABS, imaginary(l, x))) : size;
}

/* The size of a subnormal number has few digits, so the number is first divided by a power of two. */
val loops_phase(loops *l, val x) {
  val moved = loops_over(l, x, loops_power_below(l, loops_larger_part(l, x)));
  val size = loops_size(l, moved), none = loops_equal(l, size, loops_real_number(l, 0));
  val safe = loops_pick(l, none, loops_real_number(l, 1), size);
  return loops_pick(l, none, loops_number(l, l->dtype, 1), loops_over(l, moved, safe));
}

/* ---- loops */

/* Ops go to a new region until close_region. The region has parameters of the state's types. */
static ts_region_id open_region(loops *l, const val *state, size_t count, val *params) {
  ts_region_id kept = l->region;
  if (!l->status) l->status = ts_graph_add_region(l->graph, &l->region);
  for (size_t i = 0; i < count && !l->status; i++) {
    const ts_value *value = ts_graph_value(l->graph, state[i]);
    ts_shape shape;
    ts_shape_copy(&shape, value->shape);
    l->status = ts_graph_add_param(l->graph, l->region, value->dtype, &shape, &params[i]);
  }
  return kept;
}

static ts_region_id close_region(loops *l, ts_region_id kept, const val *results, size_t count) {
  ts_region_id closed = l->region;
  if (!l->status) l->status = ts_graph_set_results(l->graph, closed, results, count);
  l->region = kept;
  return closed;
}

void loops_run(loops *l, const loops_while *loop, val *state, size_t count) {
  val params[LOOPS_STATE] = {0};
  ts_attrs attrs = {0};
  ts_region_id kept = open_region(l, state, count, params);
  val more = loop->more(l, params, loop->context);
  attrs.regions.regions[0] = close_region(l, kept, &more, 1);
  kept = open_region(l, state, count, params);
  loop->step(l, params, loop->context);
  attrs.regions.regions[1] = close_region(l, kept, params, count);
  val first = loops_add(l, TS_OP_WHILE, state, count, &attrs);
  for (size_t i = 0; i < count; i++) state[i] = first + (val)i;
}

static val counts(loops *l, const val *state, const void *context) {
  const loops_for *loop = context;
  return loops_less(l, state[0], loops_number(l, TS_S32, (double)loop->count));
}

static void count_step(loops *l, val *state, const void *context) {
  const loops_for *loop = context;
  val index = state[0];
  loop->step(l, state, loop->context);
  state[0] = loops_plus(l, index, loops_number(l, TS_S32, 1));
}

void loops_run_for(loops *l, const loops_for *loop, val *state, size_t count) {
  const loops_while counted = {counts, count_step, loop};
  state[0] = loops_number(l, TS_S32, 0);
  loops_run(l, &counted, state, count);
}

/* ---- scales */

/* The largest part of each matrix; NaN if the matrix has NaN. */
static val largest_part(loops *l, val a) {
  return loops_reduce(l, TS_OP_REDUCE_MAX, loops_reduce(l, TS_OP_REDUCE_MAX, loops_larger_part(l, a), 2), 1);
}

loops_scaled loops_scale(loops *l, val a) {
  val most = largest_part(l, a), finite = loops_less(l, most, loops_real_number(l, (double)INFINITY));
  val power = loops_power_below(l, loops_pick(l, finite, most, loops_real_number(l, 1)));
  val scaled = loops_pick(l, finite, loops_over(l, a, power), loops_number(l, l->dtype, 0));
  return (loops_scaled){scaled, power, finite};
}

val loops_without_signs(loops *l, val x) {
  if (l->status) return x;
  if (is_complex(l, x)) {
    val re = loops_without_signs(l, loops_real(l, x)), im = loops_without_signs(l, imaginary(l, x));
    return loops_binary(l, TS_OP_COMPLEX, re, im);
  }
  val zero = loops_number(l, ts_graph_value(l->graph, x)->dtype, 0);
  return loops_pick(l, loops_equal(l, x, zero), zero, x);
}

val loops_finite_or_nan(loops *l, const loops_scaled *s, val x) {
  val nan = loops_real_number(l, (double)NAN);
  if (is_complex(l, x)) nan = loops_binary(l, TS_OP_COMPLEX, nan, nan);
  return loops_pick(l, s->finite, x, nan);
}
