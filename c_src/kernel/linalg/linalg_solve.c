/* Triangular systems from the left: blocks of rows are summed over all rows before them by one product, so that every
 * element is one chain of multiply-adds, however the rows are cut. */
#include "base/cancel.h"
#include "kernel/linalg/linalg.h"

#define BLOCK TS_LINALG_BLOCK

/* Up to this number of columns, packing takes longer than the product. */
#define FEW_COLUMNS 16

/* Products of the block's rows with all rows of X before. */
static ts_status sum_before(const ts_linalg_solver *s, const ts_linalg_system *p, int64_t at, int64_t rows,
                            char *sums) {
  ts_gemm_shape shape = {.batch = 1,
                         .m = rows,
                         .n = p->cols,
                         .k = at,
                         .lhs_row = p->a.row,
                         .lhs_col = p->a.col,
                         .rhs_row = p->x.row,
                         .rhs_col = p->x.col,
                         .out_row = p->cols};
  const ts_linalg_few few = {ts_linalg_at(&p->a, at, 0, s->size), p->x.data, p->a.row, p->a.col, p->x.row, at, p->cols};
  if (at == 0) return TS_SUCCESS;
  if (p->cols <= FEW_COLUMNS && p->x.col == 1) {
    s->vector->multiply_few(&few, rows, sums);
    return TS_SUCCESS;
  }
  return ts_gemm_run(s->gemm, &shape,
                     &(ts_gemm_call){.one_chain = true,
                                     .lhs = ts_linalg_at(&p->a, at, 0, s->size),
                                     .rhs = p->x.data,
                                     .out = sums,
                                     .parallel = s->parallel,
                                     .pool = s->pool,
                                     .cancel = s->cancel});
}

static ts_linalg_view from_row(const ts_linalg_view *view, int64_t row, int size) {
  return (ts_linalg_view){ts_linalg_at(view, row, 0, size), view->row, view->col};
}

static ts_status solve_block(const ts_linalg_solver *s, const ts_linalg_system *p, int64_t at, char *workspace) {
  const int64_t rows = ts_linalg_min(BLOCK, p->n - at);
  char *sums = workspace + BLOCK * BLOCK * s->size;
  bool transposes = p->x.col != 1 || p->b.col != 1;
  ts_linalg_view a = {ts_linalg_at(&p->a, at, at, s->size), p->a.row, p->a.col}, dense = {workspace, rows, 1};
  ts_linalg_view b = from_row(&p->b, at, s->size), x = from_row(&p->x, at, s->size);
  ts_linalg_view transposed = {sums + BLOCK * p->cols * s->size, p->cols, 1};
  TS_TRY(sum_before(s, p, at, rows, sums));
  ts_linalg_copy(&a, &dense, rows, rows, s->size);
  if (transposes) ts_linalg_copy(&b, &transposed, rows, p->cols, s->size);
  const ts_linalg_view *from = transposes ? &transposed : &b, *to = transposes ? &transposed : &x;
  ts_linalg_block block = {.matrix = workspace,
                           .sums = at > 0 ? sums : NULL,
                           .rhs = from->data,
                           .out = to->data,
                           .sums_row = p->cols,
                           .rhs_row = from->row,
                           .out_row = to->row,
                           .n = (int)rows,
                           .unit = p->unit};
  s->vector->solve(&block, 0, p->cols);
  if (transposes) ts_linalg_copy(&transposed, &x, rows, p->cols, s->size);
  return TS_SUCCESS;
}

ts_status ts_linalg_solve(const ts_linalg_solver *s, const ts_linalg_system *system, char *workspace) {
  for (int64_t at = 0; at < system->n; at += BLOCK) {
    TS_TRY(ts_check_cancelled(s->cancel, "the solution of a triangular system"));
    TS_TRY(solve_block(s, system, at, workspace));
  }
  return TS_SUCCESS;
}
