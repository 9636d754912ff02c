/* Cholesky factors, from the left: a block of columns is summed over all columns before it by one product, then
 * factored. So every number is the matrix's element less one chain of multiply-adds, however the matrix is cut. The
 * thread that has the first rows below a block's square also factors the next square, while others have the rest. */
#include "kernel/linalg/factor_systems.h"

#include <string.h>

/* Parts of a column that are one task, where threads share a matrix. */
#define TASK_PARTS 128

/* A block of columns: `width` of them from `at` on, and the rows from there on. */
typedef struct panel {
  const factor *f;
  char *out; /* the matrix */
  int64_t n, at, rows, width;
  char *columns, *sums; /* the columns as rows, and the sums to subtract from them; rows of `rows` numbers */
  char *diagonal;       /* the conjugate of the block's lower factor, dense */
  char *room;   /* of complex matrices: the conjugates of the block's rows before `at`, as columns, and products */
  int64_t each; /* rows of a task; one thread has one task, and sums all rows at once */
  struct panel *next; /* it has other memory */
  _Atomic bool *bad;  /* the matrix is not positive semidefinite */
} panel;

int64_t factor_cholesky_bytes(const ts_factor_spec *s) {
  const int64_t block = factor_block_of(s);
  return 2 * (block + (1 + factor_parts_of(s)) * s->rows) * block * factor_size_of(s);
}

static ts_linalg_view view(const void *data, int64_t row, int64_t col) {
  return (ts_linalg_view){(char *)(uintptr_t)data, row, col};
}

static void conjugate(const factor *f, char *numbers, int64_t count) {
  for (int64_t i = 0; f->parts == 2 && i < count; i++)
    factor_set(f, numbers, 2 * i + 1, -factor_get(f, numbers, 2 * i + 1));
}

static char *element(const panel *p, int64_t row, int64_t col) {
  return p->out + ((p->at + row) * p->n + col) * p->f->size;
}

/* The sums of `count` rows over all columns before the block. A product of complex numbers has them as its left side,
 * as it need not take these apart. */
static ts_status sum_rows(const panel *p, int64_t first, int64_t count) {
  const factor *f = p->f;
  const char *rows = element(p, first, 0);
  char *sums = p->sums + first * f->size, *products = p->room + (p->at + first) * p->width * f->size;
  ts_gemm_shape shape = {.batch = 1, .k = p->at};
  ts_gemm_call call = {.lhs = rows, .rhs = p->room, .out = products, .parallel = &ts_parallel_serial};
  if (p->at == 0) return TS_SUCCESS;
  if (f->parts == 1) {
    shape.m = p->width, shape.lhs_row = p->n, shape.lhs_col = 1;
    shape.n = count, shape.rhs_row = 1, shape.rhs_col = p->n, shape.out_row = p->rows;
    call.lhs = element(p, 0, 0), call.rhs = rows, call.out = sums;
    return factor_multiply_blocks(f, shape, call);
  }
  shape.m = count, shape.lhs_row = p->n, shape.lhs_col = 1;
  shape.n = shape.rhs_row = shape.out_row = p->width, shape.rhs_col = 1;
  TS_TRY(factor_multiply_blocks(f, shape, call));
  const ts_linalg_view from = view(products, 1, p->width), to = view(sums, p->rows, 1);
  ts_linalg_copy(&from, &to, p->width, count, f->size);
  return TS_SUCCESS;
}

static void load_rows(const panel *p, int64_t first, int64_t count) {
  const char *matrix = p->f->matrix;
  const ts_linalg_view from = view(matrix + (element(p, first, p->at) - p->out), 1, p->n),
                       to = view(p->columns + first * p->f->size, p->rows, 1);
  ts_linalg_copy(&from, &to, p->width, count, p->f->size);
}

static void store_rows(const panel *p, int64_t first, int64_t count) {
  const ts_linalg_view from = view(p->columns + first * p->f->size, 1, p->rows),
                       to = view(element(p, first, p->at), p->n, 1);
  ts_linalg_copy(&from, &to, count, p->width, p->f->size);
}

static ts_linalg_block block_of(const panel *p) {
  return (ts_linalg_block){.matrix = p->diagonal,
                           .sums = p->at > 0 ? p->sums : NULL,
                           .rhs = p->columns,
                           .out = p->columns,
                           .matrix_row = p->width,
                           .sums_row = p->rows,
                           .rhs_row = p->rows,
                           .out_row = p->rows,
                           .n = (int)p->width,
                           .hermitian = true};
}

/* Columns of a zero on the diagonal are zero. */
static bool zeros_below(const panel *p, int64_t first, int64_t count) {
  const factor *f = p->f;
  for (int64_t c = 0; c < p->width; c++) {
    const char *row = p->columns + c * p->rows * f->size;
    for (int64_t i = first * f->parts; i < (first + count) * f->parts && factor_get(f, row, c * f->parts) == 0; i++)
      if (factor_get(f, row, i) != 0) return false;
  }
  return true;
}

/* The block's factor by rows. A zero on its diagonal divides by nothing. */
static void set_diagonal(const panel *p) {
  const factor *f = p->f;
  const ts_linalg_view upper = view(p->columns, 1, p->rows), lower = view(p->diagonal, p->width, 1);
  ts_linalg_copy(&upper, &lower, p->width, p->width, f->size);
  conjugate(f, p->diagonal, p->width * p->width);
  for (int64_t i = 0; i < p->width; i++) {
    char *at = p->diagonal + (i * p->width + i) * f->size;
    if (factor_get(f, at, 0) == 0) factor_set(f, at, 0, 1);
  }
}

/* The square of the block at column `at`. */
static ts_status factor_diagonal(panel *p, int64_t at) {
  const factor *f = p->f;
  p->at = at;
  p->rows = p->n - at;
  p->width = ts_linalg_min(factor_block_of(f->spec), p->rows);
  p->each = f->parallel->width > 1 ? TASK_PARTS / f->parts : p->n;
  const ts_linalg_block block = block_of(p);
  TS_TRY(ts_check_cancelled(f->cancel, "cholesky"));
  const ts_linalg_view rows = view(element(p, 0, 0), 1, p->n), columns = view(p->room, p->width, 1);
  if (f->parts == 2) ts_linalg_copy(&rows, &columns, at, p->width, f->size);
  conjugate(f, p->room, p->width * at);
  TS_TRY(sum_rows(p, 0, p->f->parallel->width > 1 ? p->width : p->rows));
  load_rows(p, 0, p->width);
  if (!f->v->factor(&block)) *p->bad = true;
  if (p->rows > p->width) set_diagonal(p);
  store_rows(p, 0, p->width);
  for (int64_t i = 0; i < p->width; i++) memset(element(p, i, p->at + i + 1), 0, (size_t)((p->rows - i - 1) * f->size));
  return TS_SUCCESS;
}

/* Rows below the block's diagonal square. */
static ts_status solve_task(void *arg, int64_t task, int worker) {
  const panel *p = arg;
  const int64_t first = p->width + task * p->each, count = ts_linalg_min(p->each, p->rows - first);
  const ts_linalg_block block = block_of(p);
  (void)worker;
  TS_TRY(ts_check_cancelled(p->f->cancel, "cholesky"));
  if (p->f->parallel->width > 1) TS_TRY(sum_rows(p, first, count));
  load_rows(p, first, count);
  p->f->v->solve(&block, first, count);
  if (!zeros_below(p, first, count)) *p->bad = true;
  store_rows(p, first, count);
  return task == 0 ? factor_diagonal(p->next, p->at + p->width) : TS_SUCCESS;
}

static void fill_nan(const factor *f, char *out, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n * f->parts; k++)
      factor_set(f, out + i * n * f->size, k, k / f->parts > i ? 0 : (double)NAN);
}

ts_status factor_cholesky(const factor *f) {
  const int64_t n = f->spec->rows, block = factor_block_of(f->spec);
  char *at = factor_aligned(f->workspace);
  _Atomic bool bad = false;
  panel panels[2];
  for (int i = 0; i < 2; i++) {
    panel *p = &panels[i];
    *p = (panel){.f = f, .out = f->results[0], .n = n, .diagonal = at, .next = &panels[!i], .bad = &bad};
    p->columns = p->diagonal + block * block * f->size;
    p->sums = p->columns + block * n * f->size;
    p->room = p->sums + block * n * f->size;
    at += factor_cholesky_bytes(f->spec) / 2;
  }
  if (n > 0) TS_TRY(factor_diagonal(&panels[0], 0));
  for (panel *p = panels; !bad && p->at + p->width < n; p = p->next)
    TS_TRY(ts_linalg_run_tasks(f->parallel, (p->rows - p->width + p->each - 1) / p->each, solve_task, p));
  if (bad) fill_nan(f, panels[0].out, n);
  return TS_SUCCESS;
}
