/* Singular values of an upper bidiagonal matrix by implicit QR steps (G. Golub, C. Reinsch, "Singular value
 * decomposition and least squares solutions", 1970), without a shift where a value is nearly 0 (J. Demmel, W. Kahan,
 * "Accurate singular values of bidiagonal matrices", 1990). If the last element of a part is its largest, the part is
 * taken from its end on: this is the transposed matrix, with left and right exchanged. */
#include "kernel/linalg/factor_turns.h"

#include <float.h>
#include <math.h>

#define MOST_STEPS 60 /* for each value; 2 are usual */

/* A part in the order of its steps. */
typedef struct part {
  double *d, *e; /* of its first row: the others are `step` apart; e is that to the next row */
  int64_t step, count;
} part;

typedef struct values {
  const factor_bidiagonal *b;
  int64_t first, last; /* rows of the part of the step before */
  int64_t step;        /* its direction */
  int64_t end, taken;  /* the last row that is not done, and how many steps were taken */
  bool converged;
} values;

static double *d_at(const part *p, int64_t i) { return p->d + i * p->step; }
static double *e_at(const part *p, int64_t i) { return p->e + i * p->step; }

/* The lesser singular value of [f g; 0 h]. */
static double lesser_value(double f, double g, double h) {
  const double least = fmin(fabs(f), fabs(h)), most = fmax(fabs(f), fabs(h)), beside = fabs(g);
  if (least == 0) return 0;
  const double as = 1 + least / most, at = (most - least) / most;
  if (beside < most) {
    const double ratio = beside / most, square = ratio * ratio;
    return least * (2 / (sqrt(as * as + square) + sqrt(at * at + square)));
  }
  const double ratio = most / beside, x = as * ratio, y = at * ratio;
  if (ratio == 0) return least * most / beside;
  return 2 * (least * (1 / (sqrt(1 + x * x) + sqrt(1 + y * y)))) * ratio;
}

static void add(const values *v, factor_batch *const *out, factor_rotation left, factor_rotation right) {
  factor_add_turn(v->b->f, out[0], left.cosine, left.sine);
  factor_add_turn(v->b->f, out[1], right.cosine, right.sine);
}

static void step_shifted(const values *v, const part *p, double shift, factor_batch *const *out) {
  factor_rotation left, right;
  double f = (fabs(p->d[0]) - shift) * (copysign(1, p->d[0]) + shift / p->d[0]), g = p->e[0];
  for (int64_t i = 0; i + 1 < p->count; i++) {
    double *d = d_at(p, i), *e = e_at(p, i), *next = d_at(p, i + 1);
    const double r = factor_rotation_of(f, g, &right);
    if (i > 0) *e_at(p, i - 1) = r;
    f = right.cosine * *d + right.sine * *e;
    *e = right.cosine * *e - right.sine * *d;
    g = right.sine * *next;
    *next *= right.cosine;
    *d = factor_rotation_of(f, g, &left);
    f = left.cosine * *e + left.sine * *next;
    *next = left.cosine * *next - left.sine * *e;
    if (i + 2 < p->count) {
      g = left.sine * *e_at(p, i + 1);
      *e_at(p, i + 1) *= left.cosine;
    }
    add(v, out, left, right);
  }
  *e_at(p, p->count - 2) = f;
}

static void step_unshifted(const values *v, const part *p, factor_batch *const *out) {
  factor_rotation left = {1, 0}, right = {1, 0};
  for (int64_t i = 0; i + 1 < p->count; i++) {
    double *d = d_at(p, i);
    const double r = factor_rotation_of(*d * right.cosine, *e_at(p, i), &right);
    if (i > 0) *e_at(p, i - 1) = left.sine * r;
    *d = factor_rotation_of(left.cosine * r, *d_at(p, i + 1) * right.sine, &left);
    add(v, out, left, right);
  }
  double *last = d_at(p, p->count - 1);
  const double h = *last * right.cosine;
  *last = h * left.cosine;
  *e_at(p, p->count - 2) = h * left.sine;
}

/* 0 also where it would not change the first element, or there is a 0 on the diagonal. */
static double shift_of(const part *p) {
  const int64_t last = p->count - 1;
  const double shift = lesser_value(*d_at(p, last - 1), *e_at(p, last - 1), *d_at(p, last)),
               ratio = shift / fabs(p->d[0]);
  double least = INFINITY, most = 0;
  for (int64_t i = 0; i <= last; i++) {
    least = fmin(least, fabs(*d_at(p, i)));
    most = fmax(most, fabs(*d_at(p, i)));
  }
  return least <= DBL_EPSILON * most || ratio * ratio < DBL_EPSILON ? 0 : shift;
}

static void step(const values *v, factor_batch *const *batches) {
  const bool down = v->step > 0;
  const int64_t line = down ? v->first : v->last;
  const part p = {v->b->d + line, v->b->e + (down ? line : line - 1), v->step, v->last - v->first + 1};
  factor_batch *const out[2] = {batches[!down], batches[down]};
  factor_begin_wave(out[0], line, v->step);
  factor_begin_wave(out[1], line, v->step);
  const double shift = shift_of(&p);
  if (shift > 0)
    step_shifted(v, &p, shift, out);
  else
    step_unshifted(v, &p, out);
}

/* Element i above the diagonal is as small as an error; it becomes 0. */
static bool comes_apart(const factor_bidiagonal *b, int64_t i) {
  const double epsilon = factor_epsilon(b->f);
  if (fabs(b->e[i]) > epsilon * (fabs(b->d[i]) + fabs(b->d[i + 1])) + epsilon * epsilon) return false;
  b->e[i] = 0;
  return true;
}

/* The last part of more than one row; false when there is none. */
static bool find_part(values *v) {
  const factor_bidiagonal *b = v->b;
  while (v->end > 0 && comes_apart(b, v->end - 1)) v->end--;
  if (v->end <= 0) return false;
  int64_t first = v->end - 1;
  while (first > 0 && !comes_apart(b, first - 1)) first--;
  if (first > v->last || v->end < v->first || v->step == 0) v->step = fabs(b->d[first]) >= fabs(b->d[v->end]) ? 1 : -1;
  v->first = first;
  v->last = v->end;
  return true;
}

static bool more_steps(void *state, factor_batch *const *batches) {
  values *v = state;
  while (find_part(v)) {
    if (!factor_batch_has_room(batches[0], v->b->n) || !factor_batch_has_room(batches[1], v->b->n)) return false;
    v->converged = v->taken++ < MOST_STEPS * v->b->n;
    if (!v->converged || ts_cancelled(v->b->f->cancel)) return true;
    step(v, batches);
  }
  return true;
}

ts_status factor_bidiagonal_values(const factor_bidiagonal *b, bool *out_converged) {
  values v = {.b = b, .end = b->n - 1, .last = -1, .converged = true};
  const factor_lines left = {b->left.data, b->n, b->left.length};
  factor_turns turns[2];
  char *room = factor_turns_init(&turns[0], &left, b->left_parts, b->n, b->room);
  factor_turns_init(&turns[1], &b->right, b->right_parts, b->n, room);
  TS_TRY(factor_turns_run(&(factor_turning){b->f, turns, 2, &v, more_steps}));
  *out_converged = v.converged;
  return TS_SUCCESS;
}
