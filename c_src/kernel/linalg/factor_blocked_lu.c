/* LU factors of complex matrices with partial pivoting, by blocks of columns. A block's exchanges, its system and
 * its products are applied to all columns behind it by tiles; the tile that is the next block is factored by the thread
 * that has it, while others have the rest. The right side of a system stands behind the matrix. */
#include "kernel/linalg/factor_blocked.h"

#include <string.h>

/* ---- a block ---- */

static void exchange(double *x, int64_t i, int64_t k) {
  const double kept = x[i];
  x[i] = x[k];
  x[k] = kept;
}

/* Applies the exchanges of rows `from` to `to` - 1 to a column. */
static void exchange_rows(const factor_grid *g, factor_numbers x, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    if (g->pivots[i] == i) continue;
    exchange(x.re, i, g->pivots[i]);
    exchange(x.im, i, g->pivots[i]);
  }
}

static double most_of(const double *x, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
  return most;
}

/* The first of largest size, also where squares overflow or underflow. */
static int64_t find_largest(factor_numbers x, int64_t count) {
  int64_t best = 0;
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    const double square = x.re[i] * x.re[i] + x.im[i] * x.im[i];
    if (square > most) most = square, best = i;
  }
  if (most > 1e-280 && most < 1e300) return best;
  const double largest = fmax(most_of(x.re, count), most_of(x.im, count)),
               by = factor_is_far_size(largest) ? factor_lift(largest) : 1;
  best = 0, most = 0;
  for (int64_t i = 0; i < count; i++) {
    const double size = factor_size(factor_scaled(factor_number_at(x, i), by));
    if (size > most) most = size, best = i;
  }
  return best;
}

/* The first j numbers of column j of a block, the numbers of U: an element less its sum, which is complete when the
 * earlier numbers are. */
static void solve_top(const factor_grid *g, factor_block b, int64_t j, factor_number *u) {
  const factor_numbers x = factor_from(factor_row(&g->a, b.at + j), b.at);
  const factor_numbers own = factor_from(factor_row(&g->elements, j), b.at);
  for (int64_t i = 0; i < j; i++) u[i] = b.at > 0 ? factor_number_at(x, i) : (factor_number){0, 0};
  for (int64_t k = 0; k < j; k++) {
    const factor_numbers l = factor_from(factor_row(&g->a, b.at + k), b.at);
    u[k] = factor_less(factor_number_at(own, k), u[k]);
    for (int64_t i = k + 1; i < j; i++) u[i] = factor_plus(u[i], factor_times(factor_number_at(l, i), u[k]));
  }
  for (int64_t i = 0; i < j; i++) factor_put_number(x, i, u[i]);
}

static void factor_column(const factor_grid *g, factor_block b, int64_t j) {
  factor_number u[FACTOR_BLOCK];
  const int64_t row = b.at + j;
  const factor_numbers x = factor_from(factor_row(&g->a, row), row);
  solve_top(g, b, j, u);
  factor_take_panel(g, b, j, u);
  g->pivots[row] = row + find_largest(x, g->n - row);
  ts_linalg_swap(g->order, row, g->pivots[row]);
  for (int64_t c = 0; c < b.width; c++) {
    if (c <= j || b.at > 0) exchange_rows(g, factor_row(&g->a, b.at + c), row, row + 1);
    if (c > j) exchange_rows(g, factor_row(&g->elements, c), row, row + 1);
  }
  const factor_number pivot = factor_number_at(x, 0);
  if (!factor_is_zero(pivot)) factor_divide_numbers(factor_from(x, 1), 1, g->n - row - 1, pivot);
}

static ts_status factor_columns_at(const factor_grid *g, int64_t at) {
  const factor_block b = factor_block_at(g, at);
  TS_TRY(ts_check_cancelled(g->f->cancel, ts_op_name(g->f->spec->op)));
  factor_load_elements(g, b);
  for (int64_t j = 0; j < b.width; j++) factor_column(g, b, j);
  factor_keep_triangle(g, b);
  return TS_SUCCESS;
}

/* ---- the trailing matrix ---- */

typedef struct step_run {
  const factor_grid *g;
  const factor_sides *own, *right; /* tiles of the matrix, and of the right side */
  factor_block block;
} step_run;

static ts_status step_task(void *arg, int64_t task, int worker) {
  const step_run *r = arg;
  const factor_grid *g = r->g;
  const int64_t at = r->block.at, behind = at + r->block.width;
  factor_tile t;
  (void)worker;
  factor_begin_tile(g, behind, task, &t);
  t.fresh = at == 0;
  for (int64_t c = 0; !t.fresh && c < t.count; c++) exchange_rows(g, factor_row(&g->a, t.first + c), at, behind);
  factor_solve_tile(g, r->block, t.first < g->n ? r->own : r->right, &t);
  TS_TRY(factor_update_tile(g, r->block, &t, behind, g->n - behind));
  return task == 0 && behind < g->n ? factor_columns_at(g, behind) : TS_SUCCESS;
}

/* A right side b becomes the solution of L x = b. */
static ts_status factor_grid_lu(const factor_grid *g, factor_view b, const factor_view *x) {
  const factor_sides own = {.unit = true, .from = g->matrix, .order = g->order};
  const factor_sides right = {.unit = true, .from = b, .order = g->order, .to = x};
  TS_TRY(factor_columns_at(g, 0));
  for (int64_t at = 0; at < g->n; at += FACTOR_BLOCK) {
    step_run r = {g, &own, &right, factor_block_at(g, at)};
    TS_TRY(ts_linalg_run_tasks(g->f->parallel, factor_tiles(g, at + r.block.width), step_task, &r));
  }
  return ts_check_cancelled(g->f->cancel, ts_op_name(g->f->spec->op));
}

/* ---- results ---- */

/* The exchanges of later blocks. */
static void exchange_task(void *arg, int64_t task, int worker) {
  const factor_grid *g = arg;
  const factor_block b = factor_block_at(g, task * FACTOR_BLOCK);
  (void)worker;
  for (int64_t c = b.at; c < b.at + b.width; c++) exchange_rows(g, factor_row(&g->a, c), b.at + b.width, g->n);
}

static factor_view result(const factor_grid *g, int which) { return (factor_view){g->f->results[which], g->n, 1}; }

static void clear(const factor_view *v, int64_t row, int64_t first, int64_t end) {
  memset(v->data + 2 * (row * v->row + first), 0, (size_t)(2 * (end - first)) * sizeof *v->data);
}

/* Row i of P, and the numbers outside of the grid's columns. */
static void put_row(const factor_grid *g, int64_t i) {
  const factor_view p = result(g, 0), l = result(g, 1), u = result(g, 2);
  const factor_number one = {1, 0};
  clear(&p, i, 0, g->n);
  factor_view_put(&p, i, g->places[i], one);
  factor_view_put(&l, i, i, one);
  clear(&l, i, i + 1, g->n);
  clear(&u, i, 0, i);
}

static void put_task(void *arg, int64_t task, int worker) {
  const factor_grid *g = arg;
  const factor_view l = result(g, 1), u = result(g, 2);
  const factor_block rows = factor_block_at(g, task * FACTOR_BLOCK);
  const int64_t end = rows.at + rows.width;
  (void)worker;
  for (int64_t c = 0; c < g->n; c++) {
    factor_put_part(g, c, ts_linalg_max(c + 1, rows.at), end, &l);
    factor_put_part(g, c, rows.at, ts_linalg_min(c + 1, end), &u);
  }
  for (int64_t i = rows.at; i < end; i++) put_row(g, i);
}

static void put_factors(const factor_grid *g) {
  const int64_t tasks = (g->n + FACTOR_BLOCK - 1) / FACTOR_BLOCK;
  for (int64_t i = 0; i < g->n; i++) g->places[g->order[i]] = i;
  ts_parallel_run(g->f->parallel, tasks, exchange_task, (void *)(uintptr_t)g);
  ts_parallel_run(g->f->parallel, tasks, put_task, (void *)(uintptr_t)g);
}

static void put_determinant(const factor_grid *g) {
  const factor_view out = result(g, 0);
  bool odd = false;
  for (int64_t i = 0; i < g->n; i++) odd ^= g->pivots[i] != i;
  factor_far_number product = {{odd ? -1 : 1, 0}, 0};
  for (int64_t i = 0; i < g->n; i++) factor_multiply(&product, factor_number_at(factor_row(&g->a, i), i));
  factor_view_put(&out, 0, 0, factor_far_value(&product));
}

ts_status factor_blocked_lu(const factor *f) {
  const int64_t n = f->spec->rows, right = f->spec->right;
  const factor_view a = {(double *)(uintptr_t)f->matrix, n, 1}, b = {(double *)(uintptr_t)f->right, right, 1};
  const factor_view x = {f->results[0], right, 1};
  const factor_grid g = factor_grid_of(f, a);
  TS_TRY(factor_grid_lu(&g, b, &x));
  if (f->spec->op == TS_OP_LU) put_factors(&g);
  if (f->spec->op == TS_OP_DETERMINANT) put_determinant(&g);
  return f->spec->op == TS_OP_SOLVE ? factor_solve_grid(&g, &(factor_sides){.upper = true, .from = x, .to = &x})
                                    : TS_SUCCESS;
}
