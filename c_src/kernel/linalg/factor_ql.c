/* Eigenvalues of a small tridiagonal matrix by implicit QL steps with Wilkinson's shift (H. Bowdler, R. Martin,
 * C. Reinsch, J. Wilkinson, "The QR and QL algorithms for symmetric matrices", 1968). */
#include "kernel/linalg/factor_turns.h"

#include <float.h>
#include <math.h>

#define MOST_STEPS 60 /* for each eigenvalue; 2 or 3 are usual */

/* The first index >= l whose off-diagonal element is negligible: the matrix is split there (deflation). */
static int64_t find_part(const factor_tridiagonal *s, int64_t l) {
  const double epsilon = factor_epsilon(s->f);
  int64_t m = l;
  for (; m + 1 < s->n; m++)
    if (fabs(s->e[m]) <= epsilon * (fabs(s->d[m]) + fabs(s->d[m + 1])) + epsilon * epsilon) break;
  return m;
}

/* One QL step of rows l to m. */
static void step(const factor_tridiagonal *s, int64_t l, int64_t m, factor_batch *out) {
  double *d = s->d, *e = s->e, g = (d[l + 1] - d[l]) / (2 * e[l]), p = 0;
  factor_rotation r = {1, 1};
  g = d[m] - d[l] + e[l] / (g + copysign(factor_length(g, 1), g));
  factor_begin_wave(out, m, -1);
  for (int64_t i = m - 1; i >= l; i--) {
    const double b = r.cosine * e[i];
    e[i + 1] = factor_rotation_of(g, r.sine * e[i], &r);
    if (e[i + 1] == 0) {
      d[i + 1] -= p;
      e[m] = 0;
      return;
    }
    g = d[i + 1] - p;
    const double t = (d[i] - g) * r.sine + 2 * r.cosine * b;
    p = r.sine * t;
    d[i + 1] = g + p;
    g = r.cosine * t - b;
    factor_add_turn(s->f, out, r.cosine, r.sine);
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

typedef struct steps {
  const factor_tridiagonal *t;
  int64_t l;     /* the first eigenvalue that is not found */
  int64_t taken; /* for all of them: one may take a hundred where their sizes differ by more than a number's digits */
  bool converged;
} steps;

static bool more_steps(void *state, factor_batch *const *batches) {
  steps *s = state;
  const factor_tridiagonal *t = s->t;
  for (; s->l < t->n; s->l++)
    for (int64_t m = find_part(t, s->l); m > s->l; m = find_part(t, s->l)) {
      if (!factor_batch_has_room(batches[0], t->n)) return false;
      s->converged = s->taken++ < MOST_STEPS * t->n;
      if (!s->converged || ts_cancelled(t->f->cancel)) return true;
      step(t, s->l, m, batches[0]);
    }
  return true;
}

ts_status factor_diagonalize(const factor_tridiagonal *t, bool *out_converged) {
  steps s = {.t = t, .converged = true};
  factor_turns turns;
  factor_turns_init(&turns, &t->z, t->parts, t->n, t->room);
  TS_TRY(factor_turns_run(&(factor_turning){t->f, &turns, 1, &s, more_steps}));
  *out_converged = s.converged;
  return TS_SUCCESS;
}

/* In descending order of size; of equal sizes the positive one is first. */
static bool is_before(double a, double b) { return fabs(a) > fabs(b) || (fabs(a) == fabs(b) && a > b); }

void factor_sort_by_size(const double *values, int64_t count, int64_t *order) {
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i;
    for (; at > 0 && is_before(values[i], values[order[at - 1]]); at--) order[at] = order[at - 1];
    order[at] = i;
  }
}
