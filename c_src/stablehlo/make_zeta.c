/* zeta(s, q), Hurwitz' sum of (q + k)^-s over k = 0, 1, ..., and polygamma by it. Computed as f64: ten terms of the
 * sum, and the rest by the formula of Euler and Maclaurin. XLA takes these terms also from a negative q on, and so is
 * wrong below -9; here such a sum is made of sums of positive numbers. */
#include "stablehlo/make.h"

#include <float.h>
#include <math.h>

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

/* Of q < 0, and neither q nor s is between integers: with t = q - floor(q) and r = ceil(q) - q the terms below 0 are
 * those of zeta(s, r) without those of zeta(s, 1 - q), positive if s is even, and the others those of zeta(s, t). */
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
  TS_TRY(make_lgamma(m, s, &factor));
  TS_TRY(make_unary(m, TS_OP_EXP, factor, &factor));
  TS_TRY(make_round_even(m, factor, &other)); /* a factorial, exactly as far as integers are without rounding */
  TS_TRY(make_with(m, TS_OP_LESS, factor, 1e15, &test));
  TS_TRY(make_select(m, test, other, factor, &factor));
  TS_TRY(make_binary(m, TS_OP_MULTIPLY, y, factor, &y));
  TS_TRY(make_unary(m, TS_OP_NEGATE, y, &minus));
  TS_TRY(make_with(m, TS_OP_REMAINDER, n, 2, &test));
  TS_TRY(make_with(m, TS_OP_EQUAL, test, 0, &test));
  TS_TRY(make_select(m, test, minus, y, &y));
  TS_TRY(make_digamma(m, x, &other));
  TS_TRY(make_with(m, TS_OP_EQUAL, n, 0, &test));
  TS_TRY(make_select(m, test, other, y, &y));
  TS_TRY(make_unary(m, TS_OP_FLOOR, n, &other));
  TS_TRY(make_binary(m, TS_OP_NOT_EQUAL, other, n, &test));
  TS_TRY(select_number(m, test, NAN, &y));
  TS_TRY(make_with(m, TS_OP_LESS, n, 0, &test));
  *out = y;
  return select_number(m, test, NAN, out);
}

ts_status make_in_zeta(const make_call *m) {
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
