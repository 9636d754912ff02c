/* Singular values: a bidiagonal matrix by reflectors from the left and the right in turn, panel by panel (J. Dongarra,
 * D. Sorensen, S. Hammarling, "Block reduction of matrices to condensed forms", 1989), then the steps of
 * factor_bidiagonal.c. A matrix with more columns than rows is transposed. */
#include "kernel/linalg/factor_turns.h"

#include <math.h>

typedef struct svd {
  const factor *f;
  int64_t m, n; /* m >= n */
  bool transposed;
  int scale;
  double *left_tau, *right_tau, *signs;
  int64_t *order;    /* of the values, from the largest on */
  factor_lines a;    /* the columns; then of reflector j from the left, from element j on */
  factor_lines u;    /* of reflector j from the right, from element j + 1 on */
  factor_lines x, y; /* of a panel: A lacks v y' + x u' of its reflectors */
  char *by;          /* a number for each of a panel's reflectors */
  factor_bidiagonal b;
} svd;

/* ---- the bidiagonal matrix */

/* The matrix by columns, times a power of two that makes its largest element about 1. */
static void load(svd *s) {
  const factor *f = s->f;
  if (f->most > 0) (void)frexp(f->most, &s->scale);
  const ts_linalg_view from = {(char *)(uintptr_t)f->matrix, s->transposed ? s->m : 1, s->transposed ? 1 : s->n};
  const ts_linalg_view to = {s->a.data, s->m, 1};
  const factor alone = factor_alone(f);
  factor_load(&alone, &from, &to, s->n, s->m);
  factor_scale_by_power(f, s->a.data, s->m * s->n, -s->scale);
}

/* Element `from` of line i. */
static char *at(const svd *s, const factor_lines *lines, int64_t i, int64_t from) {
  return factor_at(s->f, factor_line(s->f, lines, i), from);
}

/* The elements of column j from the diagonal on, less the earlier reflectors of the panel. */
static void update_column(const svd *s, int64_t first, int64_t j) {
  const int64_t before = j - first, length = s->m - j;
  char *column = at(s, &s->a, j, j);
  factor_sum_lines(
      s->f, &(ts_linalg_sums){at(s, &s->a, first, j), at(s, &s->y, 0, j), s->m, s->n, before, length, .adds = false},
      column, 0, 1);
  factor_sum_lines(
      s->f, &(ts_linalg_sums){at(s, &s->x, 0, j), at(s, &s->u, first, j), s->m, s->n, before, length, .adds = false},
      column, 0, 1);
}

/* Subtracts each line of `sums` from the vector `to`, times -v->tau * (the same line of `others` . v). */
static void correct(const svd *s, const ts_linalg_reflector *v, const ts_linalg_view *others,
                    const ts_linalg_sums *sums, char *to) {
  ts_linalg_sums taken = *sums;
  factor_multiply_lines(s->f, v, others->data, others->row, sums->count, s->by);
  taken.by = s->by;
  taken.by_step = 1;
  factor_sum_lines(s->f, &taken, to, 0, 1);
}

/* y = tau A' v, for the columns behind j. */
static void make_y(const svd *s, int64_t first, int64_t j) {
  const int64_t before = j - first, from = j + 1, count = s->n - from;
  const ts_linalg_reflector v = {at(s, &s->a, j, j), s->m - j, -s->left_tau[j]};
  const ts_linalg_view vs = {at(s, &s->a, first, j), s->m, 1}, xs = {at(s, &s->x, 0, j), s->m, 1};
  char *y = at(s, &s->y, before, from);
  factor_products(s->f, &v, at(s, &s->a, from, j), s->m, count, y);
  correct(s, &v, &vs, &(ts_linalg_sums){.lines = at(s, &s->y, 0, from), .step = s->n, .count = before, .length = count},
          y);
  correct(s, &v, &xs,
          &(ts_linalg_sums){.lines = at(s, &s->u, first, from), .step = s->n, .count = before, .length = count}, y);
}

/* Row j after the diagonal. Its reflector belongs to the transposed row. The lines of u are those of its conjugate, so
 * that the lines of the right vectors are the rows of V'. */
static void take_row(const svd *s, int64_t first, int64_t j) {
  const int64_t before = j - first, from = j + 1, count = s->n - from;
  char *row = at(s, &s->u, j, from);
  for (int64_t c = 0; c < count; c++)
    factor_set_number(s->f, row, c, factor_get_number(s->f, at(s, &s->a, from + c, j), 0));
  factor_sum_lines(
      s->f,
      &(ts_linalg_sums){at(s, &s->y, 0, from), at(s, &s->a, first, j), s->n, s->m, before + 1, count, .adds = false},
      row, 0, 1);
  factor_sum_lines(
      s->f, &(ts_linalg_sums){at(s, &s->u, first, from), at(s, &s->x, 0, j), s->n, s->m, before, count, .adds = false},
      row, 0, 1);
}

/* x = tau A u, for the rows below j. */
static void make_x(const svd *s, int64_t first, int64_t j) {
  const int64_t before = j - first, from = j + 1, length = s->m - from;
  const ts_linalg_reflector u = {at(s, &s->u, j, from), s->n - from, -s->right_tau[j]};
  const ts_linalg_view ys = {at(s, &s->y, 0, from), s->n, 1}, us = {at(s, &s->u, first, from), s->n, 1};
  char *x = at(s, &s->x, before, from);
  factor_clear(s->f, x, length);
  const ts_linalg_sums columns = {at(s, &s->a, from, from), u.v, s->m, 1, s->n - from, length, .conjugate = true};
  factor_take_columns(s->f, &columns, x, 0, 1);
  for (int p = 0; p < factor_planes(s->f); p++)
    for (int64_t i = 0; i < length; i++)
      factor_set(s->f, x + p * s->f->plane, i, u.tau * factor_get(s->f, x + p * s->f->plane, i));
  correct(s, &u, &ys,
          &(ts_linalg_sums){.lines = at(s, &s->a, first, from), .step = s->m, .count = before + 1, .length = length},
          x);
  correct(s, &u, &us,
          &(ts_linalg_sums){.lines = at(s, &s->x, 0, from), .step = s->m, .count = before, .length = length}, x);
}

static void reduce(const svd *s, int64_t first, int64_t j) {
  const factor *f = s->f;
  update_column(s, first, j);
  factor_set_value(f, s->b.d, j, factor_reflector(f, at(s, &s->a, j, j), s->m - j, &s->left_tau[j]));
  factor_set_value(f, s->b.e, j, (factor_number){0, 0});
  if (j + 1 == s->n) return;
  make_y(s, first, j);
  take_row(s, first, j);
  factor_set_value(f, s->b.e, j, factor_reflector(f, at(s, &s->u, j, j + 1), s->n - j - 1, &s->right_tau[j]));
  make_x(s, first, j);
}

/* The columns from `end` on, less the panel's reflectors. */
static void update(const svd *s, int64_t first, int64_t end) {
  const int64_t some = end - first, length = s->m - end, count = s->n - end;
  char *columns = at(s, &s->a, end, end);
  factor_take_sums(
      s->f, &(ts_linalg_sums){at(s, &s->a, first, end), at(s, &s->y, 0, end), s->m, s->n, some, length, .adds = false},
      columns, s->m, count);
  factor_take_sums(
      s->f, &(ts_linalg_sums){at(s, &s->x, 0, end), at(s, &s->u, first, end), s->m, s->n, some, length, .adds = false},
      columns, s->m, count);
}

static ts_status make_bidiagonal(const svd *s) {
  const int64_t panel = factor_panel_of(s->f, s->n);
  for (int64_t first = 0; first < s->n; first += panel) {
    const int64_t end = ts_linalg_min(s->n, first + panel);
    for (int64_t j = first; j < end; j++) {
      TS_TRY(ts_check_cancelled(s->f->cancel, "svd"));
      reduce(s, first, j);
    }
    if (end < s->n) update(s, first, end);
  }
  return TS_SUCCESS;
}

/* ---- the factors */

/* Multiplies lines of both products by phases, so that a complex bidiagonal matrix becomes the matrix of its elements'
 * sizes. */
static void make_real(const svd *s) {
  const factor *f = s->f;
  factor_number right = {1, 0};
  for (int64_t j = 0; f->plane && j < s->n; j++) {
    const factor_number d = factor_value(f, s->b.d, j), e = factor_value(f, s->b.e, j),
                        left = factor_phase(factor_times(d, right));
    s->b.d[j] = factor_size(d);
    s->b.e[j] = factor_size(e);
    factor_scale(f, factor_line(f, &s->b.left, j), s->b.left.length, left);
    factor_scale(f, factor_line(f, &s->b.right, j), s->b.right.length, factor_conjugate(right));
    right = factor_phase(factor_times(left, factor_conjugate(e)));
  }
}

/* A negative value and its right vector change their signs; then values and vectors are ordered from the largest on. */
static void order_values(const svd *s) {
  const factor *f = s->f;
  for (int64_t i = 0; i < s->n; i++) {
    if (!(s->b.d[i] < 0)) continue;
    s->b.d[i] = -s->b.d[i];
    factor_scale(f, factor_line(f, &s->b.right, i), s->b.right.length, (factor_number){-1, 0});
  }
  factor_sort_by_size(s->b.d, s->n, s->order);
  for (int64_t c = 0; c < s->n; c++) factor_put(f, f->results[1], c, ldexp(s->b.d[s->order[c]], s->scale));
}

/* The columns of U and the rows of V' are lines here; the signs of both follow V'. */
static void put(const svd *s) {
  const factor *f = s->f;
  const factor_lines *left = s->transposed ? &s->b.right : &s->b.left,
                     *right = s->transposed ? &s->b.left : &s->b.right;
  const factor_ordered us = {left, s->order, s->signs, s->n, s->n, .conjugate = false},
                       vs = {right, s->order, s->signs, s->n, right->count, .conjugate = true};
  if (!factor_reads(f, 0) && !factor_reads(f, 2)) return;
  factor_take_signs(f, &vs, s->signs);
  if (factor_reads(f, 0)) factor_put_columns(f, &us, f->results[0]);
  if (factor_reads(f, 2)) factor_put_rows(f, &vs, f->results[2]);
}

static factor_lines lines_behind(char *at, int64_t count, int64_t length) {
  return (factor_lines){factor_aligned(at), count, length};
}

static char *end_of(const factor *f, const factor_lines *l) { return factor_line(f, l, l->count); }

static void place(svd *s) {
  const int64_t m = s->m, n = s->n;
  const factor *f = s->f;
  double *numbers = (double *)(void *)f->workspace;
  s->left_tau = numbers + 2 * n;
  s->right_tau = numbers + 3 * n;
  s->signs = numbers + 4 * n;
  s->order = (int64_t *)(void *)(s->signs + m);
  s->b = (factor_bidiagonal){.f = f, .n = n, .d = numbers, .e = numbers + n, .room = (char *)(s->order + n)};
  s->by = s->b.room + 2 * factor_turns_bytes(n);
  s->x = lines_behind(s->by + FACTOR_PANEL * 8, FACTOR_PANEL, m);
  s->y = lines_behind(end_of(f, &s->x), FACTOR_PANEL, n);
  s->a = lines_behind(end_of(f, &s->y), n, m);
  s->u = lines_behind(end_of(f, &s->a), n, n);
  s->b.right = lines_behind(end_of(f, &s->u), n, n);
  s->b.left = lines_behind(end_of(f, &s->b.right), f->spec->full ? m : n, m);
  s->b.left_parts = s->a.data;
  s->b.right_parts = s->u.data;
}

/* The products of the reflectors. Where nothing reads the vectors of a side, its lines have no elements; the signs of
 * both sides are those of V'. */
static ts_status make_vectors(svd *s) {
  const factor *f = s->f;
  const bool u = factor_reads(f, 0), v = u || factor_reads(f, 2), left = s->transposed ? v : u,
             right = s->transposed ? u : v;
  char *room = end_of(f, &s->b.left);
  if (!left) s->b.left.length = 0;
  if (!right) s->b.right.length = 0;
  if (left)
    TS_TRY(factor_product(
        &(factor_reflections){.f = f, .a = &s->a, .to = &s->b.left, .tau = s->left_tau, .room = room, .end = s->n}));
  if (right)
    TS_TRY(factor_product(&(factor_reflections){
        .f = f, .a = &s->u, .to = &s->b.right, .tau = s->right_tau, .room = room, .offset = 1, .end = s->n - 1}));
  return TS_SUCCESS;
}

ts_status factor_svd(const factor *f, bool *out_converged) {
  const bool transposed = f->spec->rows < f->spec->cols;
  svd s = {.f = f,
           .m = ts_linalg_max(f->spec->rows, f->spec->cols),
           .n = ts_linalg_min(f->spec->rows, f->spec->cols),
           .transposed = transposed};
  place(&s);
  load(&s);
  TS_TRY(make_bidiagonal(&s));
  TS_TRY(make_vectors(&s));
  make_real(&s);
  TS_TRY(factor_bidiagonal_values(&s.b, out_converged));
  if (!*out_converged) return TS_SUCCESS;
  order_values(&s);
  put(&s);
  return TS_SUCCESS;
}
