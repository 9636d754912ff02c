/* Cholesky factors of complex matrices, by blocks of columns, whose products are added to the sums of the lower
 * triangle behind them by tiles. The tile that is the next block is factored by the thread that has it, while others
 * have the rest. */
#include "kernel/linalg/factor_blocked.h"

#include <string.h>

typedef struct cholesky_run {
  const factor_grid *g;
  factor_block block;
  bool good; /* false when the matrix is not positive semidefinite; of the next block */
} cholesky_run;

/* ---- a block ---- */

/* Column j of a block from its diagonal on; false when the matrix is not positive semidefinite. */
static bool factor_column(const factor_grid *g, factor_block b, int64_t j) {
  factor_number u[FACTOR_BLOCK];
  const int64_t row = b.at + j, below = g->n - row - 1;
  const factor_numbers x = factor_from(factor_row(&g->a, row), row), rest = factor_from(x, 1);
  for (int64_t k = 0; k < j; k++) u[k] = factor_conjugate(factor_number_at(factor_row(&g->a, b.at + k), row));
  factor_take_panel(g, b, j, u);
  const double pivot = x.re[0], root = sqrt(pivot);
  factor_put_number(x, 0, (factor_number){root, 0});
  for (int64_t i = 0; root == 0 && i < below; i++)
    if (!factor_is_zero(factor_number_at(rest, i))) return false;
  for (int64_t i = 0; root != 0 && i < below; i++) rest.re[i] /= root, rest.im[i] /= root;
  return pivot >= 0;
}

static ts_status factor_columns_at(const factor_grid *g, int64_t at, bool *out_good) {
  const factor_block b = factor_block_at(g, at);
  TS_TRY(ts_check_cancelled(g->f->cancel, "cholesky"));
  factor_load_elements(g, b);
  for (int64_t j = 0; *out_good && j < b.width; j++) *out_good = factor_column(g, b, j);
  return TS_SUCCESS;
}

/* ---- the trailing matrix ---- */

/* Of the column that has number c as its diagonal, the conjugates of that row of the block. */
static void set_multipliers(const factor_grid *g, factor_block b, factor_tile *t) {
  for (int64_t k = 0; k < b.width; k++) {
    const factor_numbers l = factor_from(factor_row(&g->a, b.at + k), t->first);
    double *x = t->by + 2 * k * FACTOR_PARTS, *turned = x + FACTOR_PARTS;
    for (int64_t c = 0; c < t->count; c++) {
      x[2 * c] = turned[2 * c + 1] = l.re[c];
      x[2 * c + 1] = -l.im[c];
      turned[2 * c] = l.im[c];
    }
  }
}

static ts_status step_task(void *arg, int64_t task, int worker) {
  cholesky_run *r = arg;
  const factor_grid *g = r->g;
  factor_tile t;
  (void)worker;
  factor_begin_tile(g, r->block.at + r->block.width, task, &t);
  t.fresh = r->block.at == 0;
  set_multipliers(g, r->block, &t);
  TS_TRY(factor_update_tile(g, r->block, &t, t.first, g->n - t.first));
  return task == 0 ? factor_columns_at(g, t.first, &r->good) : TS_SUCCESS;
}

static ts_status factor_grid_cholesky(const factor_grid *g, bool *out_good) {
  cholesky_run r = {.g = g, .good = true};
  TS_TRY(factor_columns_at(g, 0, &r.good));
  for (int64_t at = 0; r.good && at < g->n; at += FACTOR_BLOCK) {
    r.block = factor_block_at(g, at);
    TS_TRY(ts_linalg_run_tasks(g->f->parallel, factor_tiles(g, at + r.block.width), step_task, &r));
  }
  *out_good = r.good;
  return ts_check_cancelled(g->f->cancel, "cholesky");
}

/* ---- operand and result ---- */

static factor_view rows_of(const factor *f, const void *matrix) {
  return (factor_view){(double *)(uintptr_t)matrix, f->spec->rows, 1};
}

static void put_nan(const factor_view *out, int64_t row) {
  for (int64_t c = 0; c <= row; c++) factor_view_put(out, row, c, (factor_number){(double)NAN, (double)NAN});
}

static void put_task(void *arg, int64_t task, int worker) {
  const cholesky_run *r = arg;
  const int64_t n = r->g->n;
  const factor_view out = rows_of(r->g->f, r->g->f->results[0]);
  const factor_block rows = factor_block_at(r->g, task * FACTOR_BLOCK);
  const int64_t end = rows.at + rows.width;
  (void)worker;
  for (int64_t c = 0; r->good && c < end; c++) factor_put_part(r->g, c, ts_linalg_max(c, rows.at), end, &out);
  for (int64_t i = rows.at; i < end; i++) {
    if (!r->good) put_nan(&out, i);
    memset(out.data + 2 * (i * n + i + 1), 0, (size_t)(2 * (n - i - 1)) * sizeof *out.data);
  }
}

ts_status factor_blocked_cholesky(const factor *f) {
  const factor_grid g = factor_grid_of(f, rows_of(f, f->matrix));
  cholesky_run r = {.g = &g};
  TS_TRY(factor_grid_cholesky(&g, &r.good));
  ts_parallel_run(f->parallel, (g.n + FACTOR_BLOCK - 1) / FACTOR_BLOCK, put_task, &r);
  return TS_SUCCESS;
}
