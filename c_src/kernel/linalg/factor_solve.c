/* Triangular systems from the left: blocks of rows are summed over all rows before them by one product, so that every
 * number is one chain of multiply-adds, however the rows are cut. */
#include "kernel/linalg/factor_systems.h"

/* Up to this number of columns, packing takes longer than the product. */
#define FEW_COLUMNS 16
/* Columns that are solved at once for one matrix, at least and at most. */
#define MIN_COLUMNS 64
#define MAX_COLUMNS 1024

ts_status factor_multiply_blocks(const factor *f, ts_gemm_shape shape, ts_gemm_call call) {
  call.one_chain = true;
  call.pool = f->pool;
  call.cancel = f->cancel;
  if (!call.parallel) call.parallel = f->parallel;
  if (f->parts == 2) shape = ts_gemm_shape_of_parts(&shape);
  return ts_gemm_run(f->products, &shape, &call);
}

/* Products of the block's rows with all rows of X before. */
static ts_status sum_before(const factor *f, const factor_system *p, int64_t at, int64_t rows, char *sums) {
  const char *lhs = ts_linalg_at(&p->a, at, 0, f->size);
  const ts_gemm_shape shape = {.batch = 1,
                               .m = rows,
                               .n = p->cols,
                               .k = at,
                               .lhs_row = p->a.row,
                               .lhs_col = p->a.col,
                               .rhs_row = p->x.row,
                               .rhs_col = p->x.col,
                               .out_row = p->cols};
  const ts_linalg_few few = {lhs, p->x.data, p->a.row, p->a.col, p->x.row, at, p->cols};
  if (at == 0) return TS_SUCCESS;
  if (p->cols <= FEW_COLUMNS && p->x.col == 1) {
    f->v->multiply_few(&few, rows, sums);
    return TS_SUCCESS;
  }
  return factor_multiply_blocks(f, shape, (ts_gemm_call){.lhs = lhs, .rhs = p->x.data, .out = sums});
}

static ts_linalg_view from_row(const ts_linalg_view *view, int64_t row, int size) {
  return (ts_linalg_view){ts_linalg_at(view, row, 0, size), view->row, view->col};
}

static ts_status solve_block(const factor *f, const factor_system *p, int64_t at, char *room) {
  const int64_t most = factor_block_of(f->spec), rows = ts_linalg_min(most, p->n - at);
  char *sums = room + most * most * f->size;
  const bool transposes = p->x.col != 1 || p->b.col != 1;
  /* Many columns read the block again and again: its rows should not share a set of the cache. */
  const bool copies = p->a.col != 1 || p->cols > FEW_COLUMNS;
  const ts_linalg_view a = {ts_linalg_at(&p->a, at, at, f->size), p->a.row, p->a.col}, dense = {room, rows, 1};
  const ts_linalg_view b = from_row(&p->b, at, f->size), x = from_row(&p->x, at, f->size);
  const ts_linalg_view transposed = {sums + most * p->cols * f->size, p->cols, 1};
  TS_TRY(sum_before(f, p, at, rows, sums));
  if (copies) ts_linalg_copy(&a, &dense, rows, rows, f->size);
  if (transposes) ts_linalg_copy(&b, &transposed, rows, p->cols, f->size);
  const ts_linalg_view *from = transposes ? &transposed : &b, *to = transposes ? &transposed : &x;
  const ts_linalg_block block = {.matrix = copies ? dense.data : a.data,
                                 .sums = at > 0 ? sums : NULL,
                                 .rhs = from->data,
                                 .out = to->data,
                                 .matrix_row = copies ? dense.row : a.row,
                                 .sums_row = p->cols,
                                 .rhs_row = from->row,
                                 .out_row = to->row,
                                 .n = (int)rows,
                                 .unit = p->unit};
  f->v->solve(&block, 0, p->cols);
  if (transposes) ts_linalg_copy(&transposed, &x, rows, p->cols, f->size);
  return TS_SUCCESS;
}

ts_status factor_solve(const factor *f, const factor_system *system, char *room) {
  const int64_t cols = system->cols;
  factor_system some = *system;
  for (int64_t first = 0; first < cols; first += MAX_COLUMNS) {
    some.cols = ts_linalg_min(MAX_COLUMNS, cols - first);
    some.b.data = ts_linalg_at(&system->b, 0, first, f->size);
    some.x.data = ts_linalg_at(&system->x, 0, first, f->size);
    for (int64_t at = 0; at < system->n; at += factor_block_of(f->spec)) {
      TS_TRY(ts_check_cancelled(f->cancel, "the solution of a triangular system"));
      TS_TRY(solve_block(f, &some, at, room));
    }
  }
  return TS_SUCCESS;
}

int64_t factor_solve_numbers(const ts_factor_spec *s, bool transposes) {
  const int64_t block = factor_block_of(s);
  return block * block + (transposes ? 2 : 1) * block * ts_linalg_min(s->right, MAX_COLUMNS);
}

/* ---- triangular_solve. Every case is the solution of lower * X = B by rows of X. A transpose exchanges strides, an
 * upper triangle is a lower one from the other end, and from the right side columns are rows. Columns are
 * independent: threads share them. */

static bool is_reversed(const ts_factor_spec *s) {
  return (s->triangular.lower != s->triangular.transpose) != s->triangular.left;
}

ts_linalg_view factor_triangle_view(const ts_factor_spec *s, const void *matrix) {
  const int64_t n = s->rows;
  const bool across = s->triangular.transpose == s->triangular.left; /* right: X A = B is A' X' = B' */
  const ts_linalg_view v = {(char *)(uintptr_t)matrix, across ? 1 : n, across ? n : 1};
  return is_reversed(s) ? (ts_linalg_view){v.data + (n * n - 1) * factor_size_of(s), -v.row, -v.col} : v;
}

ts_linalg_view factor_sides_view(const ts_factor_spec *s, const void *sides) {
  const bool left = s->triangular.left;
  const ts_linalg_view v = {(char *)(uintptr_t)sides, left ? s->right : 1, left ? 1 : s->rows};
  return is_reversed(s) ? (ts_linalg_view){v.data + (s->rows - 1) * v.row * factor_size_of(s), -v.row, v.col} : v;
}

typedef struct triangular_run {
  const factor *f;
  int64_t columns; /* of a task */
} triangular_run;

static ts_status solve_part(void *arg, int64_t task, int worker) {
  const triangular_run *r = arg;
  const ts_factor_spec *s = r->f->spec;
  const factor alone = factor_alone(r->f);
  const int64_t first = task * r->columns;
  factor_system system = {.a = factor_triangle_view(s, alone.matrix),
                          .b = factor_sides_view(s, alone.right),
                          .x = factor_sides_view(s, alone.results[0]),
                          .n = s->rows,
                          .cols = ts_linalg_min(r->columns, s->right - first),
                          .unit = s->triangular.unit};
  system.b.data = ts_linalg_at(&system.b, 0, first, alone.size);
  system.x.data = ts_linalg_at(&system.x, 0, first, alone.size);
  return factor_solve(&alone, &system, alone.workspace + worker * factor_triangular_bytes(s));
}

int64_t factor_triangular_bytes(const ts_factor_spec *s) {
  return (factor_solve_numbers(s, !s->triangular.left) * factor_size_of(s) + 63) / 64 * 64;
}

ts_status factor_triangular(const factor *f) {
  const int64_t cols = f->spec->right, width = f->parallel->width;
  const int64_t columns = ts_linalg_max(MIN_COLUMNS, (cols + width - 1) / width);
  triangular_run r = {f, (columns + MIN_COLUMNS - 1) / MIN_COLUMNS * MIN_COLUMNS};
  return ts_linalg_run_tasks(f->parallel, (cols + r.columns - 1) / r.columns, solve_part, &r);
}
