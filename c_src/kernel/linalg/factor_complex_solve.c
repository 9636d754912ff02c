/* Cholesky and LU factors of one complex matrix, and systems by substitution. Sums are not chains: they are those of
 * factor_complex.h. */
#include "kernel/linalg/factor_complex.h"

#include <string.h>

/* Right sides that are solved for together, so that the matrix is read once for all of them. */
#define TOGETHER 16

static factor_view view(const void *data, int64_t row, int64_t col) {
  return (factor_view){(double *)(uintptr_t)data, row, col};
}

/* ---- cholesky ---- */

/* Row i of the factor: L[i,j] = (A[i,j] - sum of L[i,k] conj(L[j,k])) / L[j,j]. False when the matrix is not positive
 * semidefinite. */
static bool factor_one_row(const factor *f, const factor_rows *l, int64_t i) {
  const factor_numbers row = factor_row(l, i);
  for (int64_t j = 0; j < i; j++) {
    const factor_numbers other = factor_row(l, j);
    const factor_number rest = factor_less(factor_number_at(row, j), factor_inner(f, other, row, j));
    const double pivot = other.re[j];
    if (pivot == 0 && !factor_is_zero(rest)) return false;
    factor_put_number(row, j, pivot == 0 ? rest : (factor_number){rest.re / pivot, rest.im / pivot});
  }
  const double pivot = row.re[i] - factor_square(f, row, i);
  factor_put_number(row, i, (factor_number){sqrt(pivot), 0});
  return pivot >= 0;
}

static void put_lower(const factor_rows *l, const factor_view *out) {
  for (int64_t i = 0; i < l->count; i++)
    for (int64_t k = 0; k < l->count; k++)
      factor_view_put(out, i, k, k > i ? (factor_number){0, 0} : factor_number_at(factor_row(l, i), k));
}

static void put_none(const factor_rows *l, const factor_view *out) {
  const factor_number none = {(double)NAN, (double)NAN};
  for (int64_t i = 0; i < l->count; i++)
    for (int64_t k = 0; k < l->count; k++) factor_view_put(out, i, k, k > i ? (factor_number){0, 0} : none);
}

ts_status factor_complex_cholesky(const factor *f) {
  const int64_t n = f->spec->rows;
  const factor_rows l = {(double *)(void *)f->workspace, n, n};
  const factor_view in = view(f->matrix, n, 1), out = view(f->results[0], n, 1);
  bool good = true;
  factor_load(&in, &l, n, n);
  for (int64_t i = 0; good && i < n; i++) {
    TS_TRY(ts_check_cancelled(f->cancel, "cholesky"));
    good = factor_one_row(f, &l, i);
  }
  if (good)
    put_lower(&l, &out);
  else
    put_none(&l, &out);
  return TS_SUCCESS;
}

/* ---- triangular_solve ---- */

typedef struct triangular {
  const factor *f;
  factor_rows t, x; /* the rows of a lower triangle; each column of the right side */
} triangular;

static void substitute(const triangular *s, int64_t i, int64_t first, int64_t end) {
  const factor_numbers row = factor_row(&s->t, i);
  for (int64_t c = first; c < end; c++) {
    const factor_numbers x = factor_row(&s->x, c);
    const factor_number rest = factor_less(factor_number_at(x, i), factor_product_sum(s->f, row, x, i));
    factor_put_number(x, i, s->f->spec->triangular.unit ? rest : factor_quotient(rest, factor_number_at(row, i)));
  }
}

static ts_status solve_columns(const triangular *s) {
  for (int64_t first = 0; first < s->x.count; first += TOGETHER) {
    TS_TRY(ts_check_cancelled(s->f->cancel, "triangular_solve"));
    for (int64_t i = 0; i < s->t.count; i++) substitute(s, i, first, ts_linalg_min(s->x.count, first + TOGETHER));
  }
  return TS_SUCCESS;
}

/* From the last element on, where an upper triangle is to be a lower one. */
static factor_view turned(factor_view v, bool turn_rows, bool turn_cols, int64_t n) {
  if (turn_rows) v.data += 2 * (n - 1) * v.row, v.row = -v.row;
  if (turn_cols) v.data += 2 * (n - 1) * v.col, v.col = -v.col;
  return v;
}

ts_status factor_complex_triangular(const factor *f) {
  const ts_factor_spec *s = f->spec;
  const int64_t n = s->rows, cols = s->right;
  const bool left = s->triangular.left, across = s->triangular.transpose == left;
  const bool backwards = (s->triangular.lower != s->triangular.transpose) != left;
  triangular t = {.f = f, .t = {(double *)(void *)f->workspace, n, n}};
  t.x = (factor_rows){factor_rows_end(&t.t), cols, n};
  if (n == 0 || cols == 0) return TS_SUCCESS;
  const factor_view a = turned(view(f->matrix, across ? 1 : n, across ? n : 1), backwards, backwards, n);
  const factor_view b = turned(view(f->right, left ? 1 : n, left ? cols : 1), false, backwards, n);
  factor_view x = b;
  x.data = (double *)f->results[0] + (b.data - (const double *)f->right);
  factor_load(&a, &t.t, n, n);
  factor_load(&b, &t.x, cols, n);
  TS_TRY(solve_columns(&t));
  factor_store(&t.x, &x, cols, n);
  return TS_SUCCESS;
}

/* ---- lu, solve and determinant ---- */

typedef struct lu {
  const factor *f;
  int64_t n;
  factor_rows rows; /* the right side stands behind the matrix */
  int64_t *order;   /* of the rows */
  bool odd;         /* an odd number of rows was exchanged */
} lu;

static factor_numbers row_of(const lu *s, int64_t i) { return factor_row(&s->rows, s->order[i]); }

/* The first element of largest size of what is left of a column, whose elements are compared times `by`. */
static int64_t find_largest(const lu *s, int64_t j, double by, double *out_most) {
  int64_t best = j;
  *out_most = 0;
  for (int64_t i = j; i < s->n; i++) {
    const double size = factor_size(factor_scaled(factor_number_at(row_of(s, i), j), by));
    if (size > *out_most || i == j) *out_most = size, best = i;
  }
  return best;
}

static void exchange_for_pivot(lu *s, int64_t j) {
  double most;
  int64_t best = find_largest(s, j, 1, &most), kept = s->order[j];
  if (factor_is_far_size(most)) best = find_largest(s, j, factor_lift(most), &most);
  s->odd ^= best != j;
  s->order[j] = s->order[best];
  s->order[best] = kept;
}

static void eliminate(const lu *s, int64_t j) {
  const factor_numbers from = row_of(s, j);
  const factor_number pivot = factor_number_at(from, j);
  for (int64_t i = j + 1; i < s->n; i++) {
    const factor_numbers row = row_of(s, i);
    const factor_number x = factor_number_at(row, j), by = factor_is_zero(pivot) ? x : factor_quotient(x, pivot);
    factor_put_number(row, j, by);
    factor_add_scaled(s->f, factor_from(row, j + 1), factor_negative(by), factor_from(from, j + 1),
                      s->rows.length - j - 1);
  }
}

static ts_status factor_rows_of(lu *s) {
  for (int64_t i = 0; i < s->n; i++) s->order[i] = i;
  for (int64_t j = 0; j < s->n; j++) {
    TS_TRY(ts_check_cancelled(s->f->cancel, ts_op_name(s->f->spec->op)));
    exchange_for_pivot(s, j);
    eliminate(s, j);
  }
  return TS_SUCCESS;
}

static void put_factors(const lu *s) {
  const int64_t n = s->n;
  const factor_view p = view(s->f->results[0], n, 1), l = view(s->f->results[1], n, 1),
                    u = view(s->f->results[2], n, 1);
  const factor_number zero = {0, 0}, one = {1, 0};
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) {
      const factor_number x = factor_number_at(row_of(s, i), k);
      factor_view_put(&p, k, i, k == s->order[i] ? one : zero);
      factor_view_put(&l, i, k, k < i ? x : k == i ? one : zero);
      factor_view_put(&u, i, k, k < i ? zero : x);
    }
}

static void put_determinant(const lu *s) {
  factor_far_number product = {{s->odd ? -1 : 1, 0}, 0};
  const factor_view out = view(s->f->results[0], 1, 1);
  for (int64_t i = 0; i < s->n; i++) factor_multiply(&product, factor_number_at(row_of(s, i), i));
  factor_view_put(&out, 0, 0, factor_far_value(&product));
}

/* U x = y, from the last row on. */
static ts_status put_solution(const lu *s) {
  const int64_t cols = s->f->spec->right;
  const factor_view out = view(s->f->results[0], cols, 1);
  for (int64_t i = s->n - 1; i >= 0; i--) {
    const factor_numbers row = row_of(s, i), x = factor_from(row, s->n);
    TS_TRY(ts_check_cancelled(s->f->cancel, "solve"));
    for (int64_t k = s->n - 1; k > i; k--)
      factor_add_scaled(s->f, x, factor_negative(factor_number_at(row, k)), factor_from(row_of(s, k), s->n), cols);
    for (int64_t c = 0; c < cols; c++) {
      factor_put_number(x, c, factor_quotient(factor_number_at(x, c), factor_number_at(row, i)));
      factor_view_put(&out, i, c, factor_number_at(x, c));
    }
  }
  return TS_SUCCESS;
}

ts_status factor_complex_lu(const factor *f) {
  const int64_t n = f->spec->rows, right = f->spec->right;
  lu s = {.f = f, .n = n, .order = (int64_t *)(void *)f->workspace};
  s.rows = (factor_rows){(double *)(void *)(s.order + n), n, n + right};
  const factor_rows behind = {s.rows.data + n, n, n + right};
  const factor_view a = view(f->matrix, n, 1), b = view(f->right, right, 1);
  factor_load(&a, &s.rows, n, n);
  factor_load(&b, &behind, n, right);
  TS_TRY(factor_rows_of(&s));
  if (f->spec->op == TS_OP_LU) put_factors(&s);
  if (f->spec->op == TS_OP_DETERMINANT) put_determinant(&s);
  return f->spec->op == TS_OP_SOLVE ? put_solution(&s) : TS_SUCCESS;
}
