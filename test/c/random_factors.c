/* Random programs: factorizations of matrices, and Fourier transforms. */
#include "random_internal.h"

/* ---- factorizations */

static ts_status add_constant_like(generator *g, scope *s, ts_value_id x, double value, ts_value_id *out) {
  const ts_type type = type_of(g, x);
  return add_constant(g, s, type.dtype, &type.shape, value, out);
}

/* Finite and of at most 8: others, NaN among them, are replaced. */
static ts_status tame(generator *g, scope *s, ts_value_id x, ts_value_id *out) {
  ts_value_id least, greatest, number, zero;
  TS_TRY(add_constant_like(g, s, x, -8, &least));
  TS_TRY(add_constant_like(g, s, x, 8, &greatest));
  TS_TRY(add_constant_like(g, s, x, 0, &zero));
  TS_TRY(add_binary(g, s, TS_OP_EQUAL, x, x, &number));
  TS_TRY(add_op(g, s, TS_OP_SELECT, NULL, (const ts_value_id[]){number, x, zero}, 3, &x));
  TS_TRY(add_binary(g, s, TS_OP_MAX, x, least, &x));
  return add_binary(g, s, TS_OP_MIN, x, greatest, out);
}

/* Their results are the same in each run of a program, but not the interpreter's (tool/judge.h). */
static ts_status make_factors(generator *g, scope *s) {
  static const ts_opcode codes[] = {TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  const ts_opcode code = RNG_PICK(&g->random, codes);
  ts_shape shape = {.rank = 2 + (int32_t)rng_below(&g->random, 2)}, most;
  for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = rng_between(&g->random, rng_chance(&g->random, 85), 7);
  int64_t *rows = &shape.dims[shape.rank - 2], *columns = rows + 1;
  if (code == TS_OP_EIGH) *columns = *rows;
  most = shape;
  most.dims[shape.rank - 2] = most.dims[shape.rank - 1] = *rows > *columns ? *rows : *columns; /* of a full one */
  if (!fits(g, &most)) return make_move(g, s);
  const ts_attrs attrs = {.factors = {.full = rng_chance(&g->random, 40)}};
  ts_value_id x, first;
  TS_TRY(pick_like(g, s, random_float_dtype(g), &shape, &x));
  if (rng_chance(&g->random, 80)) TS_TRY(tame(g, s, x, &x));
  TS_TRY(add_op(g, s, code, code == TS_OP_EIGH ? NULL : &attrs, &x, 1, &first));
  for (int i = 0; i < ts_op_results(code); i++) TS_TRY(offer(s, first + (ts_value_id)i, false));
  return TS_SUCCESS;
}

/* ---- transforms */

/* An exact tensor of f32 or f64 with an axis, all of whose numbers are of moderate size. */
static ts_status pick_line(generator *g, scope *s, ts_value_id *out) {
  const ts_dtype type = rng_chance(&g->random, 50) ? TS_F32 : TS_F64;
  ts_shape shape = type_of(g, pick(g, s)).shape;
  if (shape.rank == 0) shape = (ts_shape){.rank = 1, .dims = {rng_between(&g->random, 1, 70)}};
  TS_TRY(pick_like(g, s, type, &shape, out));
  return tame(g, s, *out, out);
}

static ts_status transform(generator *g, scope *s, ts_opcode code, int32_t axis, int64_t length, ts_value_id *x) {
  const ts_attrs attrs = {.fft = {.axis = axis, .length = length}};
  return add_op(g, s, code, &attrs, x, 1, x);
}

/* A part of a complex number, which few other ops take. */
static ts_status offer_part(generator *g, scope *s, ts_value_id x) {
  ts_value_id part;
  TS_TRY(add_unary(g, s, rng_chance(&g->random, 50) ? TS_OP_REAL : TS_OP_IMAG, x, &part));
  return offer(s, part, true);
}

static ts_status make_transform(generator *g, scope *s) {
  ts_value_id x;
  TS_TRY(pick_line(g, s, &x));
  ts_shape shape = type_of(g, x).shape;
  const int32_t axis = (int32_t)rng_below(&g->random, shape.rank);
  const bool own = shape.dims[axis] > 0 && shape.dims[axis] <= 64 && rng_chance(&g->random, 60);
  const int64_t length = own ? shape.dims[axis] : rng_between(&g->random, 1, 64);
  shape.dims[axis] = length;
  if (!fits(g, &shape) || shape.rank > 4) return make_move(g, s);
  const bool back = rng_chance(&g->random, 40);
  if (rng_chance(&g->random, 40)) {
    TS_TRY(transform(g, s, TS_OP_RFFT, axis, length, &x));
    if (!back) return offer_part(g, s, x);
    TS_TRY(transform(g, s, TS_OP_IRFFT, axis, length, &x));
    return offer(s, x, true);
  }
  if (rng_chance(&g->random, 50)) TS_TRY(add_binary(g, s, TS_OP_COMPLEX, x, x, &x));
  TS_TRY(transform(g, s, TS_OP_FFT, axis, length, &x));
  if (back) TS_TRY(transform(g, s, TS_OP_IFFT, axis, length, &x));
  return offer_part(g, s, x);
}

ts_status make_library(generator *g, scope *s) {
  const bool transforms = s->depth == 0 && s->approximate_allowed && rng_chance(&g->random, 50);
  if (transforms) return make_transform(g, s);
  return g->options.no_factors ? make_move(g, s) : make_factors(g, s);
}
