/* Custom calls to LAPACK, as JAX's exports for CPUs have them. Cholesky factors, triangular systems, singular values
 * and eigenvalues are ops of the graph. getrf packs the factors of `lu` into one matrix. Householder's reflections
 * (geqrf, geqp3, orgqr) and tridiagonal systems are loops. LAPACK itself computes geev, gees, gehrd and sytrd
 * (kernel/lapack.h). Results that a routine leaves undefined are the operand or 0. */
#include "stablehlo/make_lapack.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A letter of the configuration. */
static ts_status letter(const make_call *m, const char *name, const char *allowed, char *out) {
  const mlir_attr *found = make_config_item(m, name);
  int64_t number = 0;
  if (found) TS_TRY(mlir_attr_int(found, &number));
  *out = (char)(number > 0 && number < 128 ? number : 0);
  if (*out && strchr(allowed, *out)) return TS_SUCCESS;
  return make_error(m, TS_UNIMPLEMENTED, "%s is other than one of %s", name, allowed);
}

/* Symbolic exports give the results' shapes as further operands. */
static ts_status check(const make_call *m, size_t operands, size_t results) {
  if (m->op->operand_count < operands || m->op->types.count != results)
    return make_error(m, TS_INVALID_ARGUMENT, "expected %zu operands and %zu results", operands, results);
  for (size_t i = 0; i < operands; i++) {
    const ts_value *value = make_operand_of(m, i);
    if (value->shape->rank < 1 || (!ts_dtype_is_float(value->dtype) && !ts_dtype_is_complex(value->dtype)))
      return make_error(m, TS_INVALID_ARGUMENT, "operand %zu is %s, expected matrices", i,
                        TS_SHAPE_STR(value->dtype, value->shape));
  }
  if (make_operand_of(m, 0)->shape->rank < 2) return make_error(m, TS_INVALID_ARGUMENT, "expected matrices");
  return TS_SUCCESS;
}

/* ---- pieces */

static ts_shape shape_of(const make_call *m, ts_value_id x) {
  ts_shape shape;
  ts_shape_copy(&shape, make_value_of(m, x)->shape);
  return shape;
}

ts_status make_fill(const make_call *m, ts_dtype type, const ts_shape *shape, double number, ts_value_id *out) {
  return ts_graph_constant(m->r->graph, m->region, type, shape, ts_scalar_from_f64(type, number), out);
}

/* Compares the indices along one axis with a scalar or a tensor that has 1 there: a tensor of the shape. */
static ts_status indices_are(const make_call *m, const ts_shape *shape, int32_t axis, ts_opcode code, ts_value_id with,
                             ts_value_id *out) {
  ts_value_id index;
  TS_TRY(make_iota(m, make_value_of(m, with)->dtype, shape, axis, &index));
  TS_TRY(make_broadcast_to(m, with, shape, &with));
  return make_binary(m, code, index, with, out);
}

/* Whether row and column of an element compare so: the lower triangle by GREATER_EQUAL. */
static ts_status triangle(const make_call *m, const ts_shape *shape, ts_opcode code, ts_value_id *out) {
  ts_value_id row, column;
  TS_TRY(make_iota(m, TS_S32, shape, shape->rank - 2, &row));
  TS_TRY(make_iota(m, TS_S32, shape, shape->rank - 1, &column));
  return make_binary(m, code, row, column, out);
}

/* x where the test holds, else y. Both are broadcast. */
static ts_status choose(const make_call *m, ts_value_id test, ts_value_id x, ts_value_id y, ts_value_id *out) {
  const ts_shape shape = shape_of(m, test);
  TS_TRY(make_broadcast_to(m, x, &shape, &x));
  TS_TRY(make_broadcast_to(m, y, &shape, &y));
  return make_select(m, test, x, y, out);
}

static ts_status reduce(const make_call *m, ts_opcode code, ts_value_id x, int32_t axis, ts_value_id *out) {
  ts_attrs attrs = {.axes = {.rank = 1, .dims = {axis}}};
  return make_add(m, code, (ts_values){&x, 1}, &attrs, out);
}

ts_status make_with_dim(const make_call *m, ts_value_id x, int32_t axis, ts_value_id *out) {
  ts_shape shape = shape_of(m, x);
  for (int32_t d = shape.rank++; d > axis; d--) shape.dims[d] = shape.dims[d - 1];
  shape.dims[axis] = 1;
  return make_reshape(m, x, &shape, out);
}

static ts_shape batch_of(const make_call *m, ts_value_id matrices) {
  ts_shape shape = shape_of(m, matrices);
  shape.rank -= 2;
  return shape;
}

/* The result `info` of a routine that cannot fail: 0. */
static ts_status no_info(const make_call *m, size_t result) {
  const ts_shape batch = batch_of(m, m->operands[0].id);
  ts_value_id id;
  TS_TRY(make_integer_of(m, TS_S32, &batch, 0, &id));
  make_result(m, result, id);
  return TS_SUCCESS;
}

/* ---- ops of the graph */

/* The other triangle is the operand's. A factor that does not exist is NaN, and its info 1. */
static ts_status potrf(const make_call *m) {
  char uplo;
  ts_value_id a = m->operands[0].id, factor, info, triangular;
  TS_TRY(check(m, 1, 2));
  TS_TRY(letter(m, "uplo", "LU", &uplo));
  const ts_shape shape = shape_of(m, a), batch = batch_of(m, a);
  if (uplo == 'U') TS_TRY(make_adjoint(m, a, &a));
  TS_TRY(make_unary(m, TS_OP_CHOLESKY, a, &factor));
  if (uplo == 'U') TS_TRY(make_adjoint(m, factor, &factor));
  TS_TRY(make_integer_of(m, TS_S32, &batch, 0, &info));
  if (ts_shape_elements(&shape) > 0) {
    TS_TRY(make_slice(m, factor, shape.rank - 1, (make_range){0, 1, 1}, &info));
    TS_TRY(make_slice(m, info, shape.rank - 2, (make_range){0, 1, 1}, &info));
    TS_TRY(make_reshape(m, info, &batch, &info));
    TS_TRY(make_unary(m, TS_OP_IS_NAN, info, &info));
    TS_TRY(make_convert(m, info, TS_S32, &info));
  }
  TS_TRY(triangle(m, &shape, uplo == 'L' ? TS_OP_GREATER_EQUAL : TS_OP_LESS_EQUAL, &triangular));
  TS_TRY(choose(m, triangular, factor, m->operands[0].id, &factor));
  make_result(m, 0, factor);
  make_result(m, 1, info);
  return TS_SUCCESS;
}

static ts_status trsm(const make_call *m) {
  char side, uplo, diagonal, transposed;
  ts_attrs attrs = {0};
  ts_value_id a = m->operands[0].id, id;
  TS_TRY(check(m, 2, 1));
  TS_TRY(letter(m, "side", "LR", &side));
  TS_TRY(letter(m, "uplo", "LU", &uplo));
  TS_TRY(letter(m, "diag", "NU", &diagonal));
  TS_TRY(letter(m, "trans_x", "NTC", &transposed));
  if (transposed == 'C') TS_TRY(make_conjugate(m, a, &a));
  attrs.triangular.left = side == 'L';
  attrs.triangular.lower = uplo == 'L';
  attrs.triangular.unit = diagonal == 'U';
  attrs.triangular.transpose = transposed != 'N';
  TS_TRY(make_add(m, TS_OP_TRIANGULAR_SOLVE, (ts_values){(ts_value_id[]){a, m->operands[1].id}, 2}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* Singular values; their vectors are theirs up to a sign. Without vectors (N) their results have any shape that the
 * text says, whole or reduced, and are 0. */
static ts_status gesdd(const make_call *m) {
  char mode;
  ts_attrs attrs = {0};
  ts_value_id a = m->operands[0].id, first;
  TS_TRY(check(m, 1, 5));
  TS_TRY(letter(m, "mode", "ASN", &mode));
  attrs.factors.full = mode == 'A';
  TS_TRY(make_add(m, TS_OP_SVD, (ts_values){&a, 1}, &attrs, &first));
  make_result(m, 0, a);
  make_result(m, 1, first + 1);
  for (size_t i = 2; i < 4; i++) {
    const mlir_type *type = &m->op->types.data[i];
    ts_value_id vectors = i == 2 ? first : first + 2;
    if (mode == 'N' && type->shape && mlir_shape_is_known(type->shape))
      TS_TRY(make_fill(m, make_value_of(m, a)->dtype, type->shape, 0, &vectors));
    make_result(m, i, vectors);
  }
  return no_info(m, 4);
}

/* Eigenvalues in ascending order, and their vectors up to a sign. */
static ts_status syevd(const make_call *m) {
  char uplo, mode;
  ts_attrs order = {0};
  ts_value_id a = m->operands[0].id, first, where, values, vectors;
  TS_TRY(check(m, 1, 3));
  TS_TRY(letter(m, "uplo", "LU", &uplo));
  TS_TRY(letter(m, "mode", "VN", &mode));
  if (uplo == 'U') TS_TRY(make_adjoint(m, a, &a));
  TS_TRY(make_unary(m, TS_OP_EIGH, a, &first));
  values = first;
  vectors = first + 1;
  const ts_shape shape = shape_of(m, a);
  if (ts_dtype_is_complex(make_value_of(m, values)->dtype)) TS_TRY(make_unary(m, TS_OP_REAL, values, &values));
  order.argsort.axis = shape.rank - 2;
  order.argsort.dtype = TS_S32;
  TS_TRY(make_add(m, TS_OP_ARGSORT, (ts_values){&values, 1}, &order, &where));
  TS_TRY(make_take_along(m, values, where, shape.rank - 2, &values));
  TS_TRY(make_with_dim(m, where, shape.rank - 2, &where));
  TS_TRY(make_broadcast_to(m, where, &shape, &where));
  TS_TRY(make_take_along(m, vectors, where, shape.rank - 1, &vectors));
  make_result(m, 0, mode == 'V' ? vectors : m->operands[0].id);
  make_result(m, 1, values);
  return no_info(m, 2);
}

/* ---- loops */

static ts_status make_steps_region(const make_steps *s, bool is_body, ts_region_id *out) {
  make_call inner = *s->m;
  ts_graph *graph = s->m->r->graph;
  ts_value_id state[MAKE_MOST_STATES], number, counter;
  TS_TRY(ts_graph_add_region(graph, out));
  inner.region = *out;
  for (size_t i = 0; i < s->count; i++) {
    const ts_value like = *ts_graph_value(graph, s->state[i]);
    TS_TRY(ts_graph_add_param(graph, *out, like.dtype, like.shape, &state[i]));
  }
  counter = state[0];
  TS_TRY(make_integer(&inner, counter, is_body ? 1 : s->number, &number));
  if (!is_body) {
    TS_TRY(make_binary(&inner, TS_OP_LESS, counter, number, &number));
    return ts_graph_set_results(graph, *out, &number, 1);
  }
  TS_TRY(s->step(&inner, state));
  TS_TRY(make_binary(&inner, TS_OP_ADD, counter, number, &state[0]));
  return ts_graph_set_results(graph, *out, state, s->count);
}

ts_status make_run_steps(make_steps *s) {
  ts_attrs attrs = {0};
  ts_value_id first;
  TS_TRY(make_integer_of(s->m, TS_S32, &ts_shape_scalar, 0, &s->state[0]));
  TS_TRY(make_steps_region(s, false, &attrs.regions.regions[0]));
  TS_TRY(make_steps_region(s, true, &attrs.regions.regions[1]));
  TS_TRY(make_add(s->m, TS_OP_WHILE, (ts_values){s->state, s->count}, &attrs, &first));
  for (size_t i = 0; i < s->count; i++) s->state[i] = first + (ts_value_id)i;
  return TS_SUCCESS;
}

/* The elements at one index of an axis, which disappears. */
static ts_status take_at(const make_call *m, ts_value_id x, int32_t axis, ts_value_id at, ts_value_id *out) {
  ts_attrs attrs = {.axis = axis};
  return make_add(m, TS_OP_TAKE, (ts_values){(ts_value_id[]){x, at}, 2}, &attrs, out);
}

/* ---- getrf */

/* The row at each place, and the row that each step exchanged, from 1 on. */
enum { PLACES = 1, EXCHANGED, WANTED };

/* Step k finds the row that belongs to place k, and exchanges it with the row at place k. */
static ts_status exchange(const make_call *m, ts_value_id *state) {
  const ts_shape shape = shape_of(m, state[PLACES]);
  const int32_t last = shape.rank - 1;
  ts_attrs arg = {.arg = {.axis = last, .dtype = TS_S32}};
  ts_value_id wanted, here, found, at, is_k, is_found;
  TS_TRY(take_at(m, state[WANTED], last, state[0], &wanted));
  TS_TRY(take_at(m, state[PLACES], last, state[0], &here));
  TS_TRY(make_with_dim(m, wanted, last, &wanted));
  TS_TRY(make_with_dim(m, here, last, &here));
  TS_TRY(make_broadcast_to(m, wanted, &shape, &found));
  TS_TRY(make_binary(m, TS_OP_EQUAL, state[PLACES], found, &found));
  TS_TRY(make_add(m, TS_OP_ARGMAX, (ts_values){&found, 1}, &arg, &at));
  TS_TRY(make_with_dim(m, at, last, &at));
  TS_TRY(indices_are(m, &shape, last, TS_OP_EQUAL, state[0], &is_k));
  TS_TRY(indices_are(m, &shape, last, TS_OP_EQUAL, at, &is_found));
  TS_TRY(choose(m, is_found, here, state[PLACES], &state[PLACES]));
  TS_TRY(choose(m, is_k, wanted, state[PLACES], &state[PLACES]));
  TS_TRY(make_with_integer(m, TS_OP_ADD, at, 1, &at));
  return choose(m, is_k, at, state[EXCHANGED], &state[EXCHANGED]);
}

/* The exchanges that make a permutation: p[k] is the row that comes to place k. */
static ts_status exchanges(const make_call *m, ts_value_id permutation, int64_t count, ts_value_id *out) {
  const ts_shape shape = shape_of(m, permutation);
  make_steps s = {.m = m, .count = 4, .number = count, .step = exchange};
  TS_TRY(make_iota(m, TS_S32, &shape, shape.rank - 1, &s.state[PLACES]));
  TS_TRY(make_integer_of(m, TS_S32, &shape, 0, &s.state[EXCHANGED]));
  s.state[WANTED] = permutation;
  TS_TRY(make_run_steps(&s));
  return make_slice(m, s.state[EXCHANGED], shape.rank - 1, (make_range){0, count, 1}, out);
}

/* Zeros make a matrix square; they are never pivots, and change no factor. */
static ts_status squared(const make_call *m, ts_value_id a, ts_value_id *out) {
  const ts_shape shape = shape_of(m, a);
  const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  ts_attrs attrs = {0};
  ts_value_id zero;
  *out = a;
  if (rows == columns) return TS_SUCCESS;
  attrs.pad.low.rank = attrs.pad.high.rank = attrs.pad.interior.rank = shape.rank;
  attrs.pad.high.dims[shape.rank - 2] = rows < columns ? columns - rows : 0;
  attrs.pad.high.dims[shape.rank - 1] = rows < columns ? 0 : rows - columns;
  TS_TRY(make_fill(m, make_value_of(m, a)->dtype, &ts_shape_scalar, 0, &zero));
  return make_add(m, TS_OP_PAD, (ts_values){(ts_value_id[]){a, zero}, 2}, &attrs, out);
}

ts_status make_first_zero(const make_call *m, ts_value_id lines, ts_value_id *out) {
  const int32_t axis = make_value_of(m, lines)->shape->rank - 1;
  ts_value_id zero, is_zero, any;
  ts_attrs arg = {.arg = {.axis = axis, .dtype = TS_S32}};
  TS_TRY(make_with(m, TS_OP_EQUAL, lines, 0, &is_zero));
  TS_TRY(make_add(m, TS_OP_ARGMAX, (ts_values){&is_zero, 1}, &arg, out));
  TS_TRY(make_with_integer(m, TS_OP_ADD, *out, 1, out));
  TS_TRY(reduce(m, TS_OP_REDUCE_ANY, is_zero, axis, &any));
  TS_TRY(make_integer(m, *out, 0, &zero));
  return make_select(m, any, *out, zero, out);
}

/* The first zero of U's diagonal. */
static ts_status zero_pivot(const make_call *m, ts_value_id factors, int64_t count, ts_value_id *out) {
  ts_value_id square, diagonal, on, zero;
  TS_TRY(make_slice(m, factors, make_value_of(m, factors)->shape->rank - 1, (make_range){0, count, 1}, &square));
  TS_TRY(make_slice(m, square, make_value_of(m, factors)->shape->rank - 2, (make_range){0, count, 1}, &square));
  const ts_shape shape = shape_of(m, square);
  TS_TRY(triangle(m, &shape, TS_OP_EQUAL, &on));
  TS_TRY(make_number(m, square, 0, &zero));
  TS_TRY(make_select(m, on, square, zero, &square));
  TS_TRY(reduce(m, TS_OP_REDUCE_SUM, square, shape.rank - 1, &diagonal));
  return make_first_zero(m, diagonal, out);
}

/* A matrix without elements has no pivots, and is its own factors. */
static ts_status empty_factors(const make_call *m, int64_t count) {
  ts_shape pivots = batch_of(m, m->operands[0].id);
  ts_value_id id;
  pivots.dims[pivots.rank++] = count;
  TS_TRY(make_integer_of(m, TS_S32, &pivots, 0, &id));
  make_result(m, 0, m->operands[0].id);
  make_result(m, 1, id);
  return no_info(m, 2);
}

static ts_status getrf(const make_call *m) {
  ts_value_id a = m->operands[0].id, first, factors, lower, info, permutation;
  ts_attrs arg = {.arg = {.dtype = TS_S32}};
  TS_TRY(check(m, 1, 3));
  const ts_shape shape = shape_of(m, a);
  const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  const int64_t count = rows < columns ? rows : columns;
  if (ts_shape_elements(&shape) == 0) return empty_factors(m, count);
  TS_TRY(squared(m, a, &a));
  TS_TRY(make_unary(m, TS_OP_LU, a, &first));
  const ts_shape square = shape_of(m, a);
  TS_TRY(triangle(m, &square, TS_OP_GREATER, &lower));
  TS_TRY(choose(m, lower, first + 1, first + 2, &factors));
  TS_TRY(make_slice(m, factors, shape.rank - 2, (make_range){0, rows, 1}, &factors));
  TS_TRY(make_slice(m, factors, shape.rank - 1, (make_range){0, columns, 1}, &factors));
  arg.arg.axis = shape.rank - 2;
  permutation = first; /* a one in each row and column */
  if (ts_dtype_is_complex(make_value_of(m, a)->dtype)) TS_TRY(make_unary(m, TS_OP_REAL, first, &permutation));
  TS_TRY(make_add(m, TS_OP_ARGMAX, (ts_values){&permutation, 1}, &arg, &permutation));
  TS_TRY(exchanges(m, permutation, count, &permutation));
  TS_TRY(zero_pivot(m, factors, count, &info));
  make_result(m, 0, factors);
  make_result(m, 1, permutation);
  make_result(m, 2, info);
  return TS_SUCCESS;
}

/* ---- Householder's reflections: I - tau v v' with v[k] = 1, and zeros before it */

enum { MATRIX = 1, SCALES, REFLECTORS };

/* Multiplies or divides x by a number of each column; x is columns, or one number of each. */
static ts_status by_column(const make_call *m, ts_opcode code, ts_value_id by, ts_value_id *x) {
  const ts_shape shape = shape_of(m, *x);
  if (make_value_of(m, by)->shape->rank < shape.rank) TS_TRY(make_with_dim(m, by, shape.rank - 1, &by));
  TS_TRY(make_broadcast_to(m, by, &shape, &by));
  return make_binary(m, code, *x, by, x);
}

/* x - tau v (v' x), for vectors of the batch. */
static ts_status reflect(const make_call *m, ts_value_id x, ts_value_id v, ts_value_id tau, ts_value_id *out) {
  const ts_shape shape = shape_of(m, x);
  const int32_t rows = shape.rank - 2;
  ts_attrs dot = {0};
  ts_value_id conjugated, product;
  for (int32_t d = 0; d < rows; d++) dot.dot.lhs_batch.dims[d] = dot.dot.rhs_batch.dims[d] = d;
  dot.dot.lhs_batch.rank = dot.dot.rhs_batch.rank = rows;
  dot.dot.lhs_contract = dot.dot.rhs_contract = (ts_dims){.rank = 1, .dims = {rows}};
  TS_TRY(make_conjugate(m, v, &conjugated));
  TS_TRY(make_add(m, TS_OP_DOT, (ts_values){(ts_value_id[]){conjugated, x}, 2}, &dot, &product));
  TS_TRY(by_column(m, TS_OP_MULTIPLY, tau, &v));
  TS_TRY(make_with_dim(m, v, rows + 1, &v));
  TS_TRY(make_with_dim(m, product, rows, &product));
  TS_TRY(make_broadcast_to(m, v, &shape, &v));
  TS_TRY(make_broadcast_to(m, product, &shape, &product));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, v, product, &product));
  return make_binary(m, TS_OP_SUBTRACT, x, product, out);
}

/* The size of a column from k on, by a scale so that no square overflows. `x` is 0 before k. */
static ts_status size_of(const make_call *m, ts_value_id x, ts_value_id *out) {
  const int32_t axis = make_value_of(m, x)->shape->rank - 1;
  ts_value_id sizes, most, zero, one, test;
  TS_TRY(make_unary(m, TS_OP_ABS, x, &sizes));
  TS_TRY(reduce(m, TS_OP_REDUCE_MAX, sizes, axis, &most));
  TS_TRY(make_number(m, most, 0, &zero));
  TS_TRY(make_number(m, most, 1, &one));
  TS_TRY(make_binary(m, TS_OP_EQUAL, most, zero, &test));
  TS_TRY(make_select(m, test, one, most, &most));
  TS_TRY(by_column(m, TS_OP_DIVIDE, most, &sizes));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, sizes, sizes, &sizes));
  TS_TRY(reduce(m, TS_OP_REDUCE_SUM, sizes, axis, out));
  TS_TRY(make_unary(m, TS_OP_SQRT, *out, out));
  return make_binary(m, TS_OP_MULTIPLY, *out, most, out);
}

/* A power of two for each column, which a very small or very large column is multiplied by, and its reciprocal. The
 * square root of the type's range brings both among numbers that are not subnormal and whose norm does not overflow.
 * All other columns have 1. */
typedef struct column_lift {
  ts_value_id up, down;
} column_lift;

static ts_status find_lift(const make_call *m, ts_value_id x, column_lift *out) {
  const int32_t axis = make_value_of(m, x)->shape->rank - 1;
  const ts_dtype part = ts_dtype_part(make_value_of(m, x)->dtype);
  const int exponent_bits = (int)ts_dtype_size(part) * 8 - ts_dtype_precision(part);
  const double root = ldexp(1, (1 << (exponent_bits - 2)) - 1);
  ts_value_id most, one, up, down, small, large;
  TS_TRY(make_unary(m, TS_OP_ABS, x, &most));
  TS_TRY(reduce(m, TS_OP_REDUCE_MAX, most, axis, &most));
  TS_TRY(make_number(m, most, 1, &one));
  TS_TRY(make_number(m, most, root, &up));
  TS_TRY(make_number(m, most, 1 / root, &down));
  TS_TRY(make_binary(m, TS_OP_LESS, most, down, &small));
  TS_TRY(make_binary(m, TS_OP_GREATER, most, up, &large));
  TS_TRY(make_select(m, large, down, one, &out->up));
  TS_TRY(make_select(m, small, up, out->up, &out->up));
  TS_TRY(make_select(m, small, down, one, &out->down));
  return make_select(m, large, up, out->down, &out->down);
}

/* Multiplies x by a real number of each column. The parts of a complex number are multiplied one by one: its product
 * with u + 0i has a NaN where a part is infinite, and another sign where a part is -0. */
static ts_status scale_columns(const make_call *m, ts_value_id by, ts_value_id *x) {
  ts_value_id imag;
  if (!ts_dtype_is_complex(make_value_of(m, *x)->dtype)) return by_column(m, TS_OP_MULTIPLY, by, x);
  TS_TRY(make_unary(m, TS_OP_IMAG, *x, &imag));
  TS_TRY(make_unary(m, TS_OP_REAL, *x, x));
  TS_TRY(by_column(m, TS_OP_MULTIPLY, by, &imag));
  TS_TRY(by_column(m, TS_OP_MULTIPLY, by, x));
  return make_binary(m, TS_OP_COMPLEX, *x, imag, x);
}

typedef struct reflector {
  ts_value_id beta, tau, vector; /* of each matrix; the vector is 0 up to k */
} reflector;

/* beta = -sign(Re alpha) |x|, tau = (beta - alpha) / beta. A column that is real and 0 below k is not changed. The
 * column is lifted: of subnormal numbers beta has few digits, and tau and the vector would not agree on it. */
static ts_status find_reflector(const make_call *m, ts_value_id alpha, ts_value_id x, ts_value_id below,
                                reflector *out) {
  const ts_dtype type = make_value_of(m, alpha)->dtype;
  ts_value_id size, real, zero, negative, test, rest, other, one, divisor;
  column_lift lift;
  TS_TRY(find_lift(m, x, &lift));
  TS_TRY(scale_columns(m, lift.up, &alpha));
  TS_TRY(scale_columns(m, lift.up, &x));
  TS_TRY(scale_columns(m, lift.up, &below));
  real = alpha;
  TS_TRY(size_of(m, x, &size));
  TS_TRY(size_of(m, below, &rest));
  if (ts_dtype_is_complex(type)) {
    TS_TRY(make_unary(m, TS_OP_REAL, alpha, &real));
    TS_TRY(make_unary(m, TS_OP_IMAG, alpha, &other));
    TS_TRY(make_unary(m, TS_OP_ABS, other, &other));
    TS_TRY(make_binary(m, TS_OP_ADD, rest, other, &rest));
  }
  TS_TRY(make_number(m, size, 0, &zero));
  TS_TRY(make_unary(m, TS_OP_NEGATE, size, &negative));
  TS_TRY(make_binary(m, TS_OP_LESS, real, zero, &test));
  TS_TRY(make_select(m, test, size, negative, &out->beta));
  TS_TRY(make_convert(m, out->beta, type, &out->beta));
  TS_TRY(make_binary(m, TS_OP_EQUAL, rest, zero, &test));
  TS_TRY(make_select(m, test, alpha, out->beta, &out->beta));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, out->beta, alpha, &out->tau));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, out->tau, out->beta, &out->tau));
  TS_TRY(make_number(m, alpha, 0, &zero));
  TS_TRY(make_select(m, test, zero, out->tau, &out->tau));
  TS_TRY(make_number(m, alpha, 1, &one));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, alpha, out->beta, &divisor));
  TS_TRY(make_select(m, test, one, divisor, &divisor));
  out->vector = below;
  TS_TRY(by_column(m, TS_OP_DIVIDE, divisor, &out->vector));
  return scale_columns(m, lift.down, &out->beta);
}

/* Column k becomes beta and the reflector below it; the reflector changes the columns after it. */
static ts_status factor_step(const make_call *m, ts_value_id *state) {
  const ts_shape shape = shape_of(m, state[MATRIX]), scales = shape_of(m, state[SCALES]);
  const int32_t row = shape.rank - 2, column = shape.rank - 1;
  ts_value_id line, alpha, zero, one, before, after, is_k, x, below, v, made, changed, tau, test;
  reflector h;
  TS_TRY(take_at(m, state[MATRIX], column, state[0], &line));
  TS_TRY(take_at(m, line, row, state[0], &alpha));
  const ts_shape rows = shape_of(m, line);
  TS_TRY(make_number(m, line, 0, &zero));
  TS_TRY(make_number(m, line, 1, &one));
  TS_TRY(indices_are(m, &rows, row, TS_OP_LESS, state[0], &before));
  TS_TRY(indices_are(m, &rows, row, TS_OP_GREATER, state[0], &after));
  TS_TRY(indices_are(m, &rows, row, TS_OP_EQUAL, state[0], &is_k));
  TS_TRY(make_select(m, before, zero, line, &x));
  TS_TRY(make_select(m, after, line, zero, &below));
  TS_TRY(find_reflector(m, alpha, x, below, &h));
  TS_TRY(make_with_dim(m, h.beta, row, &h.beta));
  TS_TRY(choose(m, is_k, h.beta, h.vector, &made));
  TS_TRY(make_select(m, before, line, made, &made));
  TS_TRY(make_select(m, is_k, one, h.vector, &v));
  TS_TRY(make_conjugate(m, h.tau, &tau));
  TS_TRY(reflect(m, state[MATRIX], v, tau, &changed));
  TS_TRY(indices_are(m, &shape, column, TS_OP_GREATER, state[0], &test));
  TS_TRY(make_select(m, test, changed, state[MATRIX], &changed));
  TS_TRY(indices_are(m, &shape, column, TS_OP_EQUAL, state[0], &test));
  TS_TRY(make_with_dim(m, made, column, &made));
  TS_TRY(choose(m, test, made, changed, &state[MATRIX]));
  TS_TRY(indices_are(m, &scales, row, TS_OP_EQUAL, state[0], &test));
  TS_TRY(make_with_dim(m, h.tau, row, &h.tau));
  return choose(m, test, h.tau, state[SCALES], &state[SCALES]);
}

static ts_status geqrf(const make_call *m) {
  ts_value_id a = m->operands[0].id;
  TS_TRY(check(m, 1, 2));
  ts_shape shape = shape_of(m, a), scales = batch_of(m, a);
  const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  make_steps s = {.m = m, .count = 3, .number = rows < columns ? rows : columns, .step = factor_step};
  scales.dims[scales.rank++] = s.number;
  s.state[MATRIX] = a;
  TS_TRY(make_fill(m, make_value_of(m, a)->dtype, &scales, 0, &s.state[SCALES]));
  if (ts_shape_elements(&shape) > 0) TS_TRY(make_run_steps(&s));
  make_result(m, 0, s.state[MATRIX]);
  make_result(m, 1, s.state[SCALES]);
  return TS_SUCCESS;
}

/* ---- with pivots */

/* The number of the column at each place, from 1 on; negative where the column comes first. */
enum { NUMBERS = REFLECTORS };

/* The place of the next column: the largest one that is not factored, by its rows from k on. */
static ts_status find_pivot(const make_call *m, const ts_value_id *state, ts_value_id *out) {
  const ts_shape shape = shape_of(m, state[MATRIX]), line = shape_of(m, state[NUMBERS]);
  const int32_t column = line.rank - 1;
  ts_attrs arg = {.arg = {.axis = column, .dtype = TS_S32}};
  ts_value_id test, zero, sizes, most, least;
  TS_TRY(indices_are(m, &shape, shape.rank - 2, TS_OP_LESS, state[0], &test));
  TS_TRY(make_number(m, state[MATRIX], 0, &zero));
  TS_TRY(make_select(m, test, zero, state[MATRIX], &sizes));
  TS_TRY(make_adjoint(m, sizes, &sizes));
  TS_TRY(size_of(m, sizes, &sizes));
  TS_TRY(make_number(m, sizes, (double)INFINITY, &most));
  TS_TRY(make_number(m, sizes, -1, &least));
  TS_TRY(make_with_integer(m, TS_OP_LESS, state[NUMBERS], 0, &test));
  TS_TRY(make_select(m, test, most, sizes, &sizes));
  TS_TRY(indices_are(m, &line, column, TS_OP_LESS, state[0], &test));
  TS_TRY(make_select(m, test, least, sizes, &sizes));
  return make_add(m, TS_OP_ARGMAX, (ts_values){&sizes, 1}, &arg, out);
}

/* Exchanges column k and the pivot's, and makes a step. */
static ts_status pivot_step(const make_call *m, ts_value_id *state) {
  const ts_shape shape = shape_of(m, state[MATRIX]), line = shape_of(m, state[NUMBERS]);
  ts_value_id pivot, places, is_k, is_pivot;
  TS_TRY(find_pivot(m, state, &pivot));
  TS_TRY(make_with_dim(m, pivot, line.rank - 1, &pivot));
  TS_TRY(make_iota(m, TS_S32, &line, line.rank - 1, &places));
  TS_TRY(indices_are(m, &line, line.rank - 1, TS_OP_EQUAL, state[0], &is_k));
  TS_TRY(indices_are(m, &line, line.rank - 1, TS_OP_EQUAL, pivot, &is_pivot));
  TS_TRY(choose(m, is_pivot, state[0], places, &places));
  TS_TRY(choose(m, is_k, pivot, places, &places));
  TS_TRY(make_take_along(m, state[NUMBERS], places, line.rank - 1, &state[NUMBERS]));
  TS_TRY(make_with_dim(m, places, line.rank - 1, &places));
  TS_TRY(make_broadcast_to(m, places, &shape, &places));
  TS_TRY(make_take_along(m, state[MATRIX], places, shape.rank - 1, &state[MATRIX]));
  return factor_step(m, state);
}

/* geqrf, where each step takes the largest of the columns that are left. Columns whose number is not 0 come first, as
 * many as there are steps. */
static ts_status geqp3(const make_call *m) {
  ts_value_id a = m->operands[0].id, test, negative;
  if (m->op->operand_count < 2 || m->op->types.count != 3)
    return make_error(m, TS_INVALID_ARGUMENT, "expected 2 operands and 3 results");
  const ts_value *matrix = make_operand_of(m, 0), *numbers = make_operand_of(m, 1);
  bool agree = matrix->shape->rank >= 2 && numbers->shape->rank == matrix->shape->rank - 1 && numbers->dtype == TS_S32;
  for (int32_t d = 0; d < numbers->shape->rank && agree; d++)
    agree = numbers->shape->dims[d] == matrix->shape->dims[d + (d == numbers->shape->rank - 1)];
  if (!agree || (!ts_dtype_is_float(matrix->dtype) && !ts_dtype_is_complex(matrix->dtype)))
    return make_error(m, TS_INVALID_ARGUMENT, "expected matrices, and an s32 for each column");
  const ts_shape shape = shape_of(m, a), line = shape_of(m, m->operands[1].id);
  ts_shape scales = line;
  const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  make_steps s = {.m = m, .count = 4, .number = rows < columns ? rows : columns, .step = pivot_step};
  scales.dims[line.rank - 1] = s.number;
  s.state[MATRIX] = a;
  TS_TRY(make_fill(m, make_value_of(m, a)->dtype, &scales, 0, &s.state[SCALES]));
  TS_TRY(make_iota(m, TS_S32, &line, line.rank - 1, &s.state[NUMBERS]));
  TS_TRY(make_with_integer(m, TS_OP_ADD, s.state[NUMBERS], 1, &s.state[NUMBERS]));
  TS_TRY(make_unary(m, TS_OP_NEGATE, s.state[NUMBERS], &negative));
  TS_TRY(make_with_integer(m, TS_OP_NOT_EQUAL, m->operands[1].id, 0, &test));
  TS_TRY(make_select(m, test, negative, s.state[NUMBERS], &s.state[NUMBERS]));
  if (ts_shape_elements(&shape) > 0) TS_TRY(make_run_steps(&s));
  TS_TRY(make_unary(m, TS_OP_ABS, s.state[NUMBERS], &s.state[NUMBERS]));
  make_result(m, 0, s.state[MATRIX]);
  make_result(m, 1, s.state[NUMBERS]);
  make_result(m, 2, s.state[SCALES]);
  return TS_SUCCESS;
}

/* ---- products of reflectors */

/* The product of all reflectors, from the last on. */
static ts_status reflect_by(const make_call *m, ts_value_id *state, ts_value_id k, bool is_adjoint) {
  const int32_t row = make_value_of(m, state[MATRIX])->shape->rank - 2;
  ts_value_id line, tau, zero, one, test, v;
  TS_TRY(take_at(m, state[REFLECTORS], row + 1, k, &line));
  TS_TRY(take_at(m, state[SCALES], row, k, &tau));
  if (is_adjoint) TS_TRY(make_conjugate(m, tau, &tau));
  const ts_shape rows = shape_of(m, line);
  TS_TRY(make_number(m, line, 0, &zero));
  TS_TRY(make_number(m, line, 1, &one));
  TS_TRY(indices_are(m, &rows, row, TS_OP_GREATER, k, &test));
  TS_TRY(make_select(m, test, line, zero, &v));
  TS_TRY(indices_are(m, &rows, row, TS_OP_EQUAL, k, &test));
  TS_TRY(make_select(m, test, one, v, &v));
  return reflect(m, state[MATRIX], v, tau, &state[MATRIX]);
}

/* The last reflector comes first. */
static ts_status product_step(const make_call *m, ts_value_id *state) {
  const int32_t row = make_value_of(m, state[MATRIX])->shape->rank - 2;
  ts_value_id k;
  TS_TRY(make_integer(m, state[0], make_value_of(m, state[SCALES])->shape->dims[row] - 1, &k));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, k, state[0], &k));
  return reflect_by(m, state, k, false);
}

static ts_status adjoint_step(const make_call *m, ts_value_id *state) { return reflect_by(m, state, state[0], true); }

static ts_status orgqr(const make_call *m) {
  ts_value_id a = m->operands[0].id, on, one, zero;
  TS_TRY(check(m, 2, 1));
  const ts_shape shape = shape_of(m, a), scales = shape_of(m, m->operands[1].id);
  const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
  if (scales.rank != shape.rank - 1 || scales.dims[scales.rank - 1] > columns || columns > rows)
    return make_error(m, TS_INVALID_ARGUMENT, "its reflectors and their scales do not agree");
  make_steps s = {.m = m, .count = 4, .number = scales.dims[scales.rank - 1], .step = product_step};
  s.state[SCALES] = m->operands[1].id;
  s.state[REFLECTORS] = a;
  TS_TRY(triangle(m, &shape, TS_OP_EQUAL, &on));
  TS_TRY(make_number(m, a, 1, &one));
  TS_TRY(make_number(m, a, 0, &zero));
  TS_TRY(make_select(m, on, one, zero, &s.state[MATRIX]));
  if (s.number > 0 && ts_shape_elements(&shape) > 0) TS_TRY(make_run_steps(&s));
  make_result(m, 0, s.state[MATRIX]);
  return TS_SUCCESS;
}

/* The product of reflectors, or its adjoint, and a matrix. From the right it is the adjoint of one from the left. */
static ts_status ormqr(const make_call *m) {
  const mlir_attr *left = make_config_item(m, "left"), *transpose = make_config_item(m, "transpose");
  int64_t is_left, is_adjoint;
  TS_TRY(check(m, 3, 1));
  if (make_operand_of(m, 2)->shape->rank < 2) return make_error(m, TS_INVALID_ARGUMENT, "expected matrices");
  ts_value_id c = m->operands[2].id;
  if (!left || !transpose) return make_error(m, TS_INVALID_ARGUMENT, "expected the attributes left and transpose");
  TS_TRY(mlir_attr_int(left, &is_left));
  TS_TRY(mlir_attr_int(transpose, &is_adjoint));
  if (!is_left) TS_TRY(make_adjoint(m, c, &c));
  const bool backwards = (is_adjoint != 0) == (is_left == 0);
  const ts_shape a = shape_of(m, m->operands[0].id), scales = shape_of(m, m->operands[1].id), shape = shape_of(m, c);
  if (shape.rank != a.rank || scales.rank != a.rank - 1 || a.dims[a.rank - 2] != shape.dims[a.rank - 2] ||
      scales.dims[a.rank - 2] > a.dims[a.rank - 1] || scales.dims[a.rank - 2] > a.dims[a.rank - 2])
    return make_error(m, TS_INVALID_ARGUMENT, "its reflectors, their scales and its matrix do not agree");
  make_steps s = {
      .m = m, .count = 4, .number = scales.dims[scales.rank - 1], .step = backwards ? product_step : adjoint_step};
  s.state[SCALES] = m->operands[1].id;
  s.state[REFLECTORS] = m->operands[0].id;
  s.state[MATRIX] = c;
  if (s.number > 0 && ts_shape_elements(&shape) > 0) TS_TRY(make_run_steps(&s));
  if (!is_left) TS_TRY(make_adjoint(m, s.state[MATRIX], &s.state[MATRIX]));
  make_result(m, 0, s.state[MATRIX]);
  return TS_SUCCESS;
}

/* ---- routines of LAPACK itself */

static ts_status geev(const make_call *m) {
  const bool is_complex = m->op->operand_count > 0 && ts_dtype_is_complex(make_operand_of(m, 0)->dtype);
  char left, right, text[64];
  TS_TRY(check(m, 1, is_complex ? 4 : 5));
  TS_TRY(letter(m, "compute_left", "VN", &left));
  TS_TRY(letter(m, "compute_right", "VN", &right));
  snprintf(text, sizeof text, "lapack.geev(left = %d, right = %d)", left == 'V', right == 'V');
  return make_custom(m, text, 1);
}

static ts_status gees(const make_call *m) {
  const bool is_complex = m->op->operand_count > 0 && ts_dtype_is_complex(make_operand_of(m, 0)->dtype);
  char mode, sort;
  TS_TRY(check(m, 1, is_complex ? 5 : 6));
  TS_TRY(letter(m, "mode", "VN", &mode));
  TS_TRY(letter(m, "sort", "N", &sort));
  return make_custom(m, mode == 'V' ? "lapack.gees(vectors = 1)" : "lapack.gees(vectors = 0)", 1);
}

static ts_status gehrd(const make_call *m) {
  const mlir_attr *low = make_config_item(m, "low"), *high = make_config_item(m, "high");
  int64_t from, to;
  char text[96];
  TS_TRY(check(m, 1, 3));
  if (!low || !high) return make_error(m, TS_INVALID_ARGUMENT, "expected the attributes low and high");
  TS_TRY(mlir_attr_int(low, &from));
  TS_TRY(mlir_attr_int(high, &to));
  snprintf(text, sizeof text, "lapack.gehrd(low = %lld, high = %lld)", (long long)from, (long long)to);
  return make_custom(m, text, 1);
}

static ts_status sytrd(const make_call *m) {
  char uplo;
  TS_TRY(check(m, 1, 5));
  TS_TRY(letter(m, "uplo", "LU", &uplo));
  return make_custom(m, uplo == 'U' ? "lapack.sytrd(upper = 1)" : "lapack.sytrd(upper = 0)", 1);
}

/* lapack_spotrf_ffi: the letter after "lapack_" is of the type. */
bool make_is_lapack(mlir_token target) {
  return target.length > 12 && memcmp(target.text, "lapack_", 7) == 0 &&
         memcmp(target.text + target.length - 4, "_ffi", 4) == 0;
}

ts_status make_in_lapack(const make_call *m, mlir_token target) {
  static const struct {
    const char *name;
    make_fn make;
  } rows[] = {{"potrf", potrf}, {"trsm", trsm},      {"getrf", getrf}, {"gesdd", gesdd}, {"gesvd", gesdd},
              {"geqp3", geqp3}, {"gtsv", make_gtsv}, {"syevd", syevd}, {"heevd", syevd}, {"geqrf", geqrf},
              {"orgqr", orgqr}, {"ungqr", orgqr},    {"ormqr", ormqr}, {"unmqr", ormqr}, {"geev", geev},
              {"gees", gees},   {"gehrd", gehrd},    {"sytrd", sytrd}, {"hetrd", sytrd}};
  const size_t length = target.length - 12;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strlen(rows[i].name) == length && memcmp(target.text + 8, rows[i].name, length) == 0) return rows[i].make(m);
  return make_error(m, TS_UNIMPLEMENTED, "the routine %.*s of LAPACK is not known", (int)target.length, target.text);
}
