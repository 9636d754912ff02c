/* The roots of 1 + sum of weight / (pole - x), between each pole and the next, by iterations that fit a term for the
 * poles below and one for those above (J. Bunch, C. Nielsen, D. Sorensen, "Rank-one modification of the symmetric
 * eigenproblem", 1978; R.-C. Li, "Solving secular equations stably and efficiently", 1993), in an interval that shrinks
 * around the root. */
#include "kernel/linalg/factor_internal.h"

#include <math.h>

#define MOST_STEPS 200 /* 4 or 5 are usual */
/* After this number of steps every second one halves the interval. */
#define MOST_FITTED 12

/* A root is origin + offset; the function is negative below it, in the interval, and positive above. */
typedef struct root {
  const factor_secular *s;
  int64_t below; /* how many poles are below it */
  ts_linalg_point at;
  double first, second; /* from the origin to the pole below, and to the one above */
  double low, high;     /* the interval, from the origin */
} root;

typedef struct value {
  double f, below_slope, above_slope;
  double error; /* of rounding, in units of epsilon */
} value;

static ts_linalg_poles poles_of(const factor_secular *s, int64_t from, int64_t count) {
  return (ts_linalg_poles){s->poles + from, s->weights + from, count};
}

static value value_at(const root *r) {
  const ts_linalg_poles below = poles_of(r->s, 0, r->below), above = poles_of(r->s, r->below, r->s->count - r->below);
  double below_sum, above_sum;
  value v;
  r->s->v->pole_sums(&below, &r->at, &below_sum, &v.below_slope);
  r->s->v->pole_sums(&above, &r->at, &above_sum, &v.above_slope);
  v.f = 1 + below_sum + above_sum;
  v.error = 8 * (1 - below_sum + above_sum) + fabs(r->at.offset) * (v.below_slope + v.above_slope);
  return v;
}

/* The root of c + s1 / (d1 - x) + s2 / (d2 - x) between d1 <= 0 and d2 >= 0; s1 and s2 are positive. */
static double root_of_two(double c, double s1, double s2, double d1, double d2) {
  const double a = c * (d1 + d2) + s1 + s2, b = c * d1 * d2 + s1 * d2 + s2 * d1;
  const double square = sqrt(fmax(0, a * a - 4 * b * c));
  return a <= 0 ? (a - square) / (2 * c) : 2 * b / (a + square);
}

/* The next offset: the root of a term for the poles below and one for those above, with the values and slopes of the
 * function's two parts. */
static double fitted(const root *r, const value *v) {
  const double first = r->first - r->at.offset;
  if (r->below == r->s->count)
    return r->at.offset + first + first * first * v->below_slope / (v->f - first * v->below_slope);
  const double second = r->second - r->at.offset, c = v->f - first * v->below_slope - second * v->above_slope;
  return r->at.offset + root_of_two(c, first * first * v->below_slope, second * second * v->above_slope, first, second);
}

/* Begins in the middle of two poles: its value says which of them is nearer. */
static void begin_between(root *r) {
  const double *poles = r->s->poles, *weights = r->s->weights;
  const int64_t j = r->below - 1;
  const double gap = poles[j + 1] - poles[j];
  r->at = (ts_linalg_point){poles[j], gap / 2};
  const value v = value_at(r);
  const double others = v.f + (weights[j] - weights[j + 1]) / (gap / 2);
  const bool is_lower = v.f >= 0;
  r->at.origin = poles[is_lower ? j : j + 1];
  r->first = is_lower ? 0 : -gap;
  r->second = is_lower ? gap : 0;
  r->low = is_lower ? 0 : -gap / 2;
  r->high = is_lower ? gap / 2 : 0;
  r->at.offset = root_of_two(others, weights[j], weights[j + 1], r->first, r->second);
}

/* Beyond the last pole, by no more than the sum of all weights. */
static void begin_behind(root *r) {
  const factor_secular *s = r->s;
  double sum = 0;
  for (int64_t i = 0; i < s->count; i++) sum += s->weights[i];
  r->first = r->low = 0;
  r->high = sum + sum * 0x1p-40; /* a single pole's root is at the sum */
  r->at = (ts_linalg_point){s->poles[s->count - 1], sum / 2};
}

static bool is_inside(const root *r, double offset) { return offset > r->low && offset < r->high; }

bool factor_secular_root(const factor_secular *s, int64_t j) {
  root r = {.s = s, .below = j + 1};
  if (j + 1 < s->count)
    begin_between(&r);
  else
    begin_behind(&r);
  if (!is_inside(&r, r.at.offset)) r.at.offset = r.low + (r.high - r.low) / 2;
  bool found = false;
  for (int step = 0; !found && step < MOST_STEPS; step++) {
    const value v = value_at(&r);
    found = fabs(v.f) <= s->epsilon * v.error;
    if (found) break;
    *(v.f < 0 ? &r.low : &r.high) = r.at.offset;
    double next = fitted(&r, &v);
    if (!is_inside(&r, next) || (step >= MOST_FITTED && step % 2 == 0)) next = r.low + (r.high - r.low) / 2;
    found = next == r.at.offset || !is_inside(&r, next); /* no number is left between the ends */
    if (!found) r.at.offset = next;
  }
  s->roots[j] = r.at;
  return found;
}

/* The weight that has exactly these roots, except for a common factor: the product over all roots j of (root j - pole
 * i) / (pole j - pole i), without the divisor of j = i (M. Gu, S. Eisenstat, "A divide-and-conquer algorithm for the
 * symmetric tridiagonal eigenproblem", 1995). */
void factor_secular_weights(const factor_secular *s, int64_t first, int64_t count, double *out) {
  const int64_t end = first + count;
  for (int64_t i = first; i < end; i++) out[i] = 1;
  for (int64_t j = 0; j < s->count; j++) {
    const int64_t before = ts_linalg_min(ts_linalg_max(j, first), end),
                  after = ts_linalg_min(ts_linalg_max(j + 1, first), end);
    const ts_linalg_poles low = poles_of(s, first, before - first), high = poles_of(s, after, end - after);
    s->v->pole_ratios(&low, &s->roots[j], s->poles[j], out + first);
    s->v->pole_ratios(&high, &s->roots[j], s->poles[j], out + after);
    if (after > before) out[j] *= (s->poles[j] - s->roots[j].origin) - s->roots[j].offset;
  }
}
