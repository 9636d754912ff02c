/* Triangular systems of complex matrices, by blocks of rows. Every case is the solution of a lower triangle. */
#include "kernel/linalg/factor_blocked.h"

/* From the last element on, where an upper triangle is to be a lower one. Without elements there is no last one. */
static factor_view turned(factor_view v, bool cols, int64_t n) {
  if (n < 1 || !v.data) return v;
  v.data += 2 * (n - 1) * (v.row + (cols ? v.col : 0));
  v.row = -v.row;
  if (cols) v.col = -v.col;
  return v;
}

ts_status factor_blocked_triangular(const factor *f) {
  const ts_factor_spec *s = f->spec;
  const int64_t n = s->rows, cols = s->right;
  const bool left = s->triangular.left, across = s->triangular.transpose == left;
  const bool backwards = (s->triangular.lower != s->triangular.transpose) != left;
  factor_view a = {(double *)(uintptr_t)f->matrix, across ? 1 : n, across ? n : 1};
  factor_view b = {(double *)(uintptr_t)f->right, left ? cols : 1, left ? 1 : n};
  factor_view x = {f->results[0], b.row, b.col};
  if (backwards) a = turned(a, true, n), b = turned(b, false, n), x = turned(x, false, n);
  const factor_grid g = factor_grid_of(f, a);
  factor_grid_load(&g);
  return factor_solve_grid(&g, &(factor_sides){.unit = s->triangular.unit, .from = b, .to = &x});
}
