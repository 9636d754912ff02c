/* Functions that are made of ops: lgamma and digamma by Lanczos' approximation, zeta and polygamma by sums, next_after
 * and reduce_precision by the bits of floats. */
#include "stablehlo/make.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- pieces */

/* An operand of one of the floats with 16 bits is computed as f32. */
static ts_status begin(const make_call *m, ts_value_id *out) {
  TS_TRY(make_count_operands(m, 1));
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  *out = m->operands[0].id;
  if (!ts_dtype_is_float(type)) return make_error(m, TS_INVALID_ARGUMENT, "expected floats");
  return ts_dtype_bits(type) < 32 ? make_convert(m, *out, TS_F32, out) : TS_SUCCESS;
}

static ts_status finish(const make_call *m, ts_value_id id) {
  TS_TRY(make_convert(m, id, m->op->types.data[0].dtype, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- Lanczos' approximation, with g = 7 and 9 terms */

#define FIRST_TERM 0.99999999999980993227684700473478
static const double terms[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                               771.3234287776530788486528258894,   -176.61502916214059906584551354,
                               12.507343278686904814458936853,     -0.13857109526572011689554707,
                               9.984369578019570859563e-6,         1.50563273514931155834e-7};

typedef struct lanczos {
  ts_value_id is_low, z; /* below 1/2: -x, else x - 1 */
  ts_value_id sum;       /* c0 + sum of c[i] / (z + i) */
  ts_value_id squares;   /* sum of c[i] / (z + i)^2 */
  ts_value_id t, log_t;  /* z + 7.5 */
} lanczos;

static ts_status approximate(const make_call *m, ts_value_id x, lanczos *out) {
  ts_value_id low, high, part, square;
  TS_TRY(make_with(m, TS_OP_LESS, x, 0.5, &out->is_low));
  TS_TRY(make_unary(m, TS_OP_NEGATE, x, &low));
  TS_TRY(make_with(m, TS_OP_SUBTRACT, x, 1, &high));
  TS_TRY(make_select(m, out->is_low, low, high, &out->z));
  TS_TRY(make_number(m, x, FIRST_TERM, &out->sum));
  TS_TRY(make_number(m, x, 0, &out->squares));
  for (size_t i = 0; i < sizeof terms / sizeof *terms; i++) {
    ts_value_id term;
    TS_TRY(make_with(m, TS_OP_ADD, out->z, (double)(i + 1), &part));
    TS_TRY(make_number(m, x, terms[i], &term));
    TS_TRY(make_binary(m, TS_OP_DIVIDE, term, part, &term));
    TS_TRY(make_binary(m, TS_OP_ADD, out->sum, term, &out->sum));
    TS_TRY(make_binary(m, TS_OP_DIVIDE, term, part, &square));
    TS_TRY(make_binary(m, TS_OP_ADD, out->squares, square, &out->squares));
  }
  TS_TRY(make_with(m, TS_OP_ADD, out->z, 7.5, &out->t));
  TS_TRY(make_with(m, TS_OP_DIVIDE, out->z, 7.5, &out->log_t));
  TS_TRY(make_unary(m, TS_OP_LOG1P, out->log_t, &out->log_t));
  return make_with(m, TS_OP_ADD, out->log_t, log(7.5), &out->log_t);
}

/* log |sin(pi x)|, by the distance to the nearest integer. */
static ts_status log_sine(const make_call *m, ts_value_id x, ts_value_id *out) {
  ts_value_id whole, rest, test;
  TS_TRY(make_unary(m, TS_OP_ABS, x, &x));
  TS_TRY(make_unary(m, TS_OP_FLOOR, x, &whole));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, x, whole, &x));
  TS_TRY(make_number(m, x, 1, &rest));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, rest, x, &rest));
  TS_TRY(make_with(m, TS_OP_GREATER, x, 0.5, &test));
  TS_TRY(make_select(m, test, rest, x, &x));
  TS_TRY(make_with(m, TS_OP_MULTIPLY, x, M_PI, &x));
  TS_TRY(make_unary(m, TS_OP_SIN, x, &x));
  return make_unary(m, TS_OP_LOG, x, out);
}

static ts_status lgamma_of(const make_call *m, ts_value_id x, ts_value_id *out) {
  lanczos a;
  ts_value_id y, part, sine, low, infinite, test;
  TS_TRY(approximate(m, x, &a));
  /* (z + 1/2 - t / log t) log t: it does not overflow before the result does. */
  TS_TRY(make_binary(m, TS_OP_DIVIDE, a.t, a.log_t, &part));
  TS_TRY(make_with(m, TS_OP_ADD, a.z, 0.5, &y));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, y, part, &y));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, y, a.log_t, &y));
  TS_TRY(make_unary(m, TS_OP_LOG, a.sum, &part));
  TS_TRY(make_with(m, TS_OP_ADD, part, 0.5 * log(2 * M_PI), &part));
  TS_TRY(make_binary(m, TS_OP_ADD, y, part, &y));
  /* Below 1/2: log(pi / |sin(pi x)|) - y. This is infinite at integers. */
  TS_TRY(log_sine(m, x, &sine));
  TS_TRY(make_number(m, x, log(M_PI), &low));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, low, sine, &low));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, low, y, &low));
  TS_TRY(make_unary(m, TS_OP_NEGATE, sine, &part));
  TS_TRY(make_unary(m, TS_OP_IS_INFINITY, sine, &test));
  TS_TRY(make_select(m, test, part, low, &low));
  TS_TRY(make_select(m, a.is_low, low, y, &y));
  TS_TRY(make_number(m, x, INFINITY, &infinite));
  TS_TRY(make_unary(m, TS_OP_IS_INFINITY, x, &test));
  return make_select(m, test, infinite, y, out);
}

static ts_status digamma_of(const make_call *m, ts_value_id x, ts_value_id *out) {
  lanczos a;
  ts_value_id y, part, rest, sine, low, test, whole;
  TS_TRY(approximate(m, x, &a));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, a.squares, a.sum, &part));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, a.log_t, part, &y));
  TS_TRY(make_number(m, x, 7, &part));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, part, a.t, &part));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, y, part, &y));
  /* Below 1/2: y - pi cot(pi x), with x by its distance to the nearest integer. */
  TS_TRY(make_with(m, TS_OP_ADD, x, 0.5, &rest));
  TS_TRY(make_unary(m, TS_OP_FLOOR, rest, &rest));
  TS_TRY(make_unary(m, TS_OP_ABS, rest, &rest));
  TS_TRY(make_binary(m, TS_OP_ADD, x, rest, &rest));
  TS_TRY(make_with(m, TS_OP_MULTIPLY, rest, M_PI, &rest));
  TS_TRY(make_unary(m, TS_OP_SIN, rest, &sine));
  TS_TRY(make_unary(m, TS_OP_COS, rest, &low));
  TS_TRY(make_with(m, TS_OP_MULTIPLY, low, M_PI, &low));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, low, sine, &low));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, y, low, &low));
  TS_TRY(make_select(m, a.is_low, low, y, &y));
  /* NaN at 0 and negative integers */
  TS_TRY(make_unary(m, TS_OP_FLOOR, x, &whole));
  TS_TRY(make_binary(m, TS_OP_EQUAL, whole, x, &test));
  TS_TRY(make_with(m, TS_OP_LESS_EQUAL, x, 0, &rest));
  TS_TRY(make_binary(m, TS_OP_AND, test, rest, &test));
  TS_TRY(make_number(m, x, NAN, &part));
  return make_select(m, test, part, y, out);
}

static ts_status of_one_float(const make_call *m, ts_status (*make)(const make_call *, ts_value_id, ts_value_id *)) {
  ts_value_id x;
  TS_TRY(begin(m, &x));
  TS_TRY(make(m, x, &x));
  return finish(m, x);
}

/* ---- zeta(s, q), Hurwitz' sum of (q + k)^-s over k = 0, 1, ..., and polygamma by it. Computed as f64: ten terms of
 * the sum, and the rest by the formula of Euler and Maclaurin. XLA takes these terms also from a negative q on, and so
 * is wrong below -9; here such a sum is made of sums of positive numbers. */

#define TERMS 10
/* B(2k) / (2k)! of Bernoulli's numbers, k = 1, 2, ... */
static const double factors[] = {0.083333333333333333333,   -0.0013888888888888888889,  0.000033068783068783068783,
                                 -8.2671957671957671958e-7, 2.0876756987868098979e-8,   -5.2841901386874931848e-10,
                                 1.3382536530684678833e-11, -3.3896802963225828668e-13, 8.5860620562778445641e-15,
                                 -2.174868698558061873e-16, 5.5090028283602295152e-18,  -1.3954464685812523341e-19};
#define FACTORS ((int)(sizeof factors / sizeof *factors))

/* sum += a^-s */
static ts_status add_term(const make_call *m, ts_value_id a, ts_value_id minus_s, ts_value_id *term, ts_value_id *sum) {
  TS_TRY(make_binary(m, TS_OP_POW, a, minus_s, term));
  if (*sum != TS_NO_ID) return make_binary(m, TS_OP_ADD, *sum, *term, sum);
  *sum = *term;
  return TS_SUCCESS;
}

/* 1/2 + s/a (factors[0] + (s+1)/a (s+2)/a (factors[1] + ...)) */
static ts_status correct(const make_call *m, ts_value_id s, ts_value_id a, ts_value_id *out) {
  ts_value_id sum, part;
  TS_TRY(make_number(m, s, factors[FACTORS - 1], &sum));
  for (int k = FACTORS - 1; k > 0; k--) {
    for (int i = 0; i < 2; i++) {
      TS_TRY(make_with(m, TS_OP_ADD, s, 2 * k - i, &part));
      TS_TRY(make_binary(m, TS_OP_DIVIDE, part, a, &part));
      TS_TRY(make_binary(m, TS_OP_MULTIPLY, sum, part, &sum));
    }
    TS_TRY(make_with(m, TS_OP_ADD, sum, factors[k - 1], &sum));
  }
  TS_TRY(make_binary(m, TS_OP_DIVIDE, s, a, &part));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, sum, part, &sum));
  return make_with(m, TS_OP_ADD, sum, 0.5, out);
}

/* Of s > 1 and q > 0. */
static ts_status sum_positive(const make_call *m, ts_value_id s, ts_value_id q, ts_value_id *out) {
  ts_value_id minus_s, a = q, term, sum = TS_NO_ID, rest, part, most;
  TS_TRY(make_unary(m, TS_OP_NEGATE, s, &minus_s));
  for (int k = 0; k < TERMS; k++) {
    if (k) TS_TRY(make_with(m, TS_OP_ADD, q, k, &a));
    TS_TRY(add_term(m, a, minus_s, &term, &sum));
  }
  TS_TRY(make_with(m, TS_OP_ADD, q, TERMS, &a));
  TS_TRY(make_binary(m, TS_OP_POW, a, minus_s, &term));
  /* a^(1-s) / (s-1) + a^-s (1/2 + ...) */
  TS_TRY(make_with(m, TS_OP_SUBTRACT, s, 1, &part));
  TS_TRY(make_unary(m, TS_OP_NEGATE, part, &most));
  TS_TRY(make_binary(m, TS_OP_POW, a, most, &most));
  TS_TRY(make_binary(m, TS_OP_DIVIDE, most, part, &rest));
  TS_TRY(make_binary(m, TS_OP_MAX, rest, term, &most));
  TS_TRY(correct(m, s, a, &part));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, term, part, &part));
  TS_TRY(make_binary(m, TS_OP_ADD, rest, part, &rest));
  TS_TRY(make_binary(m, TS_OP_ADD, sum, rest, &rest));
  /* A rest that is less than the sum's rounding may be a product of 0 and infinity. */
  TS_TRY(make_with(m, TS_OP_MULTIPLY, sum, DBL_EPSILON / 16, &part));
  TS_TRY(make_binary(m, TS_OP_LESS_EQUAL, most, part, &part));
  return make_select(m, part, sum, rest, out);
}

static ts_status select_number(const make_call *m, ts_value_id test, double number, ts_value_id *inout) {
  ts_value_id other;
  TS_TRY(make_number(m, *inout, number, &other));
  return make_select(m, test, other, *inout, inout);
}

/* zeta(s, q) of q < 0 and a whole s, where q is not whole. With t = q - floor(q) and r = ceil(q) - q the terms below 0
 * sum up to zeta(s, r) - zeta(s, 1 - q), with a minus if s is odd. The other terms are zeta(s, t): `others`. */
static ts_status sum_negative(const make_call *m, ts_value_id s, ts_value_id q, ts_value_id is_even, ts_value_id others,
                              ts_value_id *out) {
  ts_value_id r, far, below, minus;
  TS_TRY(make_unary(m, TS_OP_CEIL, q, &r));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, r, q, &r));
  TS_TRY(make_unary(m, TS_OP_NEGATE, q, &far));
  TS_TRY(make_with(m, TS_OP_ADD, far, 1, &far));
  TS_TRY(sum_positive(m, s, r, &below));
  TS_TRY(sum_positive(m, s, far, &far));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, below, far, &below));
  TS_TRY(make_unary(m, TS_OP_NEGATE, below, &minus));
  TS_TRY(make_select(m, is_even, below, minus, &below));
  return make_binary(m, TS_OP_ADD, below, others, out);
}

/* Infinite for s = 1, and for even s at 0 and negative integers, which are NaN for other s. Else NaN for s < 1, and
 * below 0 for an s between integers. */
static ts_status zeta_of(const make_call *m, ts_value_id s, ts_value_id q, ts_value_id *out) {
  ts_value_id is_negative, is_even, is_pole, whole, test, y;
  TS_TRY(make_with(m, TS_OP_LESS, q, 0, &is_negative));
  TS_TRY(make_with(m, TS_OP_REMAINDER, s, 2, &is_even));
  TS_TRY(make_with(m, TS_OP_EQUAL, is_even, 0, &is_even));
  TS_TRY(make_unary(m, TS_OP_FLOOR, q, &whole));
  TS_TRY(make_binary(m, TS_OP_SUBTRACT, q, whole, &test));
  TS_TRY(make_select(m, is_negative, test, q, &y));
  TS_TRY(sum_positive(m, s, y, &y));
  TS_TRY(sum_negative(m, s, q, is_even, y, &test));
  TS_TRY(make_select(m, is_negative, test, y, &y));
  TS_TRY(make_with(m, TS_OP_LESS, s, 1, &test));
  TS_TRY(select_number(m, test, NAN, &y));
  TS_TRY(make_binary(m, TS_OP_EQUAL, q, whole, &is_pole));
  TS_TRY(make_with(m, TS_OP_LESS_EQUAL, q, 0, &is_negative));
  TS_TRY(make_binary(m, TS_OP_AND, is_pole, is_negative, &is_pole));
  TS_TRY(select_number(m, is_pole, INFINITY, &y));
  TS_TRY(make_unary(m, TS_OP_FLOOR, s, &whole));
  TS_TRY(make_binary(m, TS_OP_NOT_EQUAL, whole, s, &test));
  TS_TRY(make_binary(m, TS_OP_AND, test, is_negative, &test));
  TS_TRY(select_number(m, test, NAN, &y));
  TS_TRY(make_with_integer(m, TS_OP_EQUAL, is_even, 0, &test));
  TS_TRY(make_binary(m, TS_OP_AND, test, is_pole, &test));
  TS_TRY(select_number(m, test, NAN, &y));
  TS_TRY(make_with(m, TS_OP_EQUAL, s, 1, &test));
  *out = y;
  return select_number(m, test, INFINITY, out);
}

/* (-1)^(n+1) n! zeta(n+1, x); digamma for n = 0; NaN for other n than 0, 1, 2, ... */
static ts_status polygamma_of(const make_call *m, ts_value_id n, ts_value_id x, ts_value_id *out) {
  ts_value_id s, factor, y, minus, test, other;
  TS_TRY(make_with(m, TS_OP_ADD, n, 1, &s));
  TS_TRY(zeta_of(m, s, x, &y));
  TS_TRY(lgamma_of(m, s, &factor));
  TS_TRY(make_unary(m, TS_OP_EXP, factor, &factor));
  TS_TRY(make_round_even(m, factor, &other)); /* exact up to 16!; larger factorials have 13 digits */
  TS_TRY(make_with(m, TS_OP_LESS, factor, 1e14, &test));
  TS_TRY(make_select(m, test, other, factor, &factor));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, y, factor, &y));
  TS_TRY(make_unary(m, TS_OP_NEGATE, y, &minus));
  TS_TRY(make_with(m, TS_OP_REMAINDER, n, 2, &test));
  TS_TRY(make_with(m, TS_OP_EQUAL, test, 0, &test));
  TS_TRY(make_select(m, test, minus, y, &y));
  TS_TRY(digamma_of(m, x, &other));
  TS_TRY(make_with(m, TS_OP_EQUAL, n, 0, &test));
  TS_TRY(make_select(m, test, other, y, &y));
  TS_TRY(make_unary(m, TS_OP_FLOOR, n, &other));
  TS_TRY(make_binary(m, TS_OP_NOT_EQUAL, other, n, &test));
  TS_TRY(select_number(m, test, NAN, &y));
  TS_TRY(make_with(m, TS_OP_LESS, n, 0, &test));
  *out = y;
  return select_number(m, test, NAN, out);
}

static ts_status zeta_op(const make_call *m) {
  ts_value_id operands[2], id;
  TS_TRY(make_count_operands(m, 2));
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  if (!ts_dtype_is_float(type) || make_operand_of(m, 1)->dtype != type ||
      !ts_shape_equal(make_operand_of(m, 0)->shape, make_operand_of(m, 1)->shape))
    return make_error(m, TS_INVALID_ARGUMENT, "expected floats of one type and shape");
  for (size_t i = 0; i < 2; i++) TS_TRY(make_convert(m, m->operands[i].id, TS_F64, &operands[i]));
  TS_TRY((make_is(m, "chlo.zeta") ? zeta_of : polygamma_of)(m, operands[0], operands[1], &id));
  TS_TRY(make_convert(m, id, type, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- bits */

typedef struct bits {
  ts_dtype type, integer;
  int all, mantissa;
} bits;

static ts_status bits_of(const make_call *m, ts_value_id x, bits *out) {
  out->type = make_value_of(m, x)->dtype;
  out->all = ts_dtype_bits(out->type);
  switch (out->type) {
  case TS_F16: out->mantissa = 10; break;
  case TS_BF16: out->mantissa = 7; break;
  case TS_F32: out->mantissa = 23; break;
  case TS_F64: out->mantissa = 52; break;
  default: return make_error(m, TS_UNIMPLEMENTED, "of %s cannot be read", ts_dtype_name(out->type));
  }
  out->integer = ts_dtype_of_bits(TS_KIND_UNSIGNED, out->all);
  return TS_SUCCESS;
}

static ts_status with_bits(const make_call *m, ts_opcode code, ts_value_id x, uint64_t y, ts_value_id *out) {
  return make_with_integer(m, code, x, (int64_t)y, out);
}

/* The next float after x in the direction of y. */
static ts_status next_after(const make_call *m) {
  bits b;
  ts_value_id x, y, absolute[2], sign[2], more, less, tiny, zero, smaller, test;
  TS_TRY(make_count_operands(m, 2));
  TS_TRY(bits_of(m, m->operands[0].id, &b));
  const uint64_t top = UINT64_C(1) << (b.all - 1);
  for (size_t i = 0; i < 2; i++) {
    TS_TRY(make_bitcast(m, m->operands[i].id, b.integer, i ? &y : &x));
    TS_TRY(with_bits(m, TS_OP_AND, i ? y : x, top - 1, &absolute[i]));
    TS_TRY(with_bits(m, TS_OP_AND, i ? y : x, top, &sign[i]));
  }
  TS_TRY(make_binary(m, TS_OP_GREATER, absolute[0], absolute[1], &smaller));
  TS_TRY(make_binary(m, TS_OP_NOT_EQUAL, sign[0], sign[1], &test));
  TS_TRY(make_binary(m, TS_OP_OR, smaller, test, &smaller));
  TS_TRY(with_bits(m, TS_OP_ADD, x, 1, &more));
  TS_TRY(with_bits(m, TS_OP_SUBTRACT, x, 1, &less));
  TS_TRY(make_select(m, smaller, less, more, &more));
  TS_TRY(with_bits(m, TS_OP_OR, sign[1], 1, &tiny));
  TS_TRY(make_integer(m, absolute[0], 0, &zero));
  TS_TRY(make_binary(m, TS_OP_EQUAL, absolute[0], zero, &test));
  TS_TRY(make_select(m, test, tiny, more, &more));
  TS_TRY(make_bitcast(m, more, b.type, &more));
  TS_TRY(make_binary(m, TS_OP_EQUAL, m->operands[0].id, m->operands[1].id, &test));
  TS_TRY(make_select(m, test, m->operands[1].id, more, &more));
  TS_TRY(make_binary(m, TS_OP_ADD, m->operands[0].id, m->operands[1].id, &less)); /* NaN if either is */
  for (size_t i = 0; i < 2; i++) {
    TS_TRY(make_unary(m, TS_OP_IS_NAN, m->operands[i].id, &test));
    TS_TRY(make_select(m, test, less, more, &more));
  }
  make_result(m, 0, more);
  return TS_SUCCESS;
}

/* "e8m23" of the text, or two attributes. */
static ts_status precision(const make_call *m, int64_t *out_exponent, int64_t *out_mantissa) {
  const mlir_attr *format = make_attr(m, "format");
  int exponent = 0, mantissa = -1;
  char text[16];
  if (!format) {
    TS_TRY(make_attr_int(m, "exponent_bits", out_exponent));
    TS_TRY(make_attr_int(m, "mantissa_bits", out_mantissa));
  } else {
    snprintf(text, sizeof text, "%.*s", (int)format->token.length, format->token.text);
    if (sscanf(text, "e%dm%d", &exponent, &mantissa) != 2) exponent = 0;
    *out_exponent = exponent;
    *out_mantissa = mantissa;
  }
  if (*out_exponent >= 1 && *out_exponent < 64 && *out_mantissa >= 0 && *out_mantissa < 64) return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "expected a bit or more of the exponent, and bits of the mantissa");
}

/* Half to even: a carry is added to the exponent. */
static ts_status round_mantissa(const make_call *m, const bits *b, int64_t kept, ts_value_id *x) {
  const int64_t dropped = b->mantissa - kept;
  ts_value_id last, shift;
  if (dropped <= 0) return TS_SUCCESS;
  const uint64_t unit = UINT64_C(1) << dropped;
  TS_TRY(with_bits(m, TS_OP_AND, *x, unit, &last));
  TS_TRY(make_integer(m, last, dropped, &shift));
  TS_TRY(make_binary(m, TS_OP_SHIFT_RIGHT, last, shift, &last));
  TS_TRY(with_bits(m, TS_OP_ADD, last, (unit >> 1) - 1, &last));
  TS_TRY(make_binary(m, TS_OP_ADD, *x, last, x));
  return with_bits(m, TS_OP_AND, *x, ~(unit - 1), x);
}

/* Exponents that fewer bits cannot hold: infinity, or 0. */
static ts_status clip_exponent(const make_call *m, const bits *b, int64_t kept, ts_value_id *x) {
  const int own = b->all - 1 - b->mantissa;
  ts_value_id sign, exponent, limit, test, made;
  if (kept >= own) return TS_SUCCESS;
  const uint64_t top = UINT64_C(1) << (b->all - 1), all = ((UINT64_C(1) << own) - 1) << b->mantissa;
  const uint64_t bias = (UINT64_C(1) << (own - 1)) - 1, less = (UINT64_C(1) << (kept - 1)) - 1;
  TS_TRY(with_bits(m, TS_OP_AND, *x, top, &sign));
  TS_TRY(with_bits(m, TS_OP_AND, *x, all, &exponent));
  TS_TRY(make_integer(m, exponent, (int64_t)((bias + less) << b->mantissa), &limit));
  TS_TRY(make_binary(m, TS_OP_GREATER, exponent, limit, &test));
  TS_TRY(with_bits(m, TS_OP_OR, sign, all, &made));
  TS_TRY(make_select(m, test, made, *x, x));
  TS_TRY(make_integer(m, exponent, (int64_t)((bias - less) << b->mantissa), &limit));
  TS_TRY(make_binary(m, TS_OP_LESS_EQUAL, exponent, limit, &test));
  return make_select(m, test, sign, *x, x);
}

static ts_status reduce_precision(const make_call *m) {
  int64_t exponent, mantissa;
  bits b;
  ts_value_id x, nan, test;
  TS_TRY(make_count_operands(m, 1));
  TS_TRY(precision(m, &exponent, &mantissa));
  TS_TRY(bits_of(m, m->operands[0].id, &b));
  TS_TRY(make_bitcast(m, m->operands[0].id, b.integer, &x));
  /* A NaN stays one; without bits for it, it is infinite. */
  nan = x;
  if (mantissa == 0) TS_TRY(with_bits(m, TS_OP_AND, x, ~((UINT64_C(1) << b.mantissa) - 1), &nan));
  TS_TRY(make_bitcast(m, nan, b.type, &nan));
  TS_TRY(round_mantissa(m, &b, mantissa, &x));
  TS_TRY(clip_exponent(m, &b, exponent, &x));
  TS_TRY(make_bitcast(m, x, b.type, &x));
  TS_TRY(make_unary(m, TS_OP_IS_NAN, m->operands[0].id, &test));
  TS_TRY(make_select(m, test, nan, x, &x));
  make_result(m, 0, x);
  return TS_SUCCESS;
}

ts_status make_in_special(const make_call *m) {
  if (mlir_token_is(m->op->name, "chlo.lgamma")) return of_one_float(m, lgamma_of);
  if (mlir_token_is(m->op->name, "chlo.digamma")) return of_one_float(m, digamma_of);
  if (mlir_token_is(m->op->name, "chlo.zeta") || mlir_token_is(m->op->name, "chlo.polygamma")) return zeta_op(m);
  if (mlir_token_is(m->op->name, "chlo.next_after")) return next_after(m);
  return reduce_precision(m);
}
