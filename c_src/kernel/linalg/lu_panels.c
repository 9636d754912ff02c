/* A panel's columns are factored where they are rows. Then strips of the trailing columns are brought up to date. One
 * thread updates a strip, from the exchange of its rows to its sums, and takes the same strips each time, so it has
 * them in its cache. The first strip is the next panel, factored at once, while other threads are still busy with the
 * rest: no thread waits for a panel. The matrix is read in place, in the order of rows so far; only sums are moved. */
#include "kernel/linalg/factor_systems.h"

#include <stdatomic.h>
#include <string.h>

#define OWNERS 16
#define AHEAD 32 /* rows */

/* The columns of a factored panel, from their diagonal on. */
typedef struct panel {
  const lu_factors *f;
  int64_t at, rows, width;
  int64_t row;   /* elements of a column */
  char *columns; /* as rows */
  char *sums;    /* alike, while the panel is factored */
  char *square;  /* the first rows, dense */
  char *below;   /* the other ones, packed for products */
} panel;

static char *element(const lu_factors *f, int64_t row, int64_t col) {
  return f->factors + (row * lu_pitch(f->n) + col) * f->f->size;
}

/* Bytes of a panel's lower rows, packed for products; none up to one block of rows. */
static int64_t below_bytes(const ts_factor_spec *s, const ts_gemm *products) {
  const int64_t elements = products ? ts_gemm_left_elements(products, s->rows, TS_LINALG_BLOCK) : 0;
  return (elements + 15) / 16 * 16 * factor_size_of(s) / factor_parts_of(s);
}

/* Bytes of the columns of a panel, and of its first rows. */
static int64_t columns_bytes(const ts_factor_spec *s) {
  return factor_block_of(s) * lu_pitch(s->rows) * factor_size_of(s);
}
static int64_t square_bytes(const ts_factor_spec *s) {
  return factor_block_of(s) * factor_block_of(s) * factor_size_of(s);
}

int64_t lu_room_bytes(const ts_factor_spec *s, const ts_gemm *products) {
  return 4 * columns_bytes(s) + 2 * square_bytes(s) + 2 * below_bytes(s, products);
}

/* Neighbours have different memory: strips read one while the other is made, and two threads take turns. */
static panel panel_at(const lu_factors *f, int64_t at) {
  const ts_factor_spec *s = f->f->spec;
  const int64_t block = factor_block_of(s), odd = at / block % 2;
  panel p = {.f = f, .at = at, .rows = f->n - at, .width = ts_linalg_min(block, f->n - at), .row = lu_pitch(f->n - at)};
  p.columns = f->room + odd * columns_bytes(s);
  p.sums = f->room + (2 + odd) * columns_bytes(s);
  p.square = f->room + 4 * columns_bytes(s) + odd * square_bytes(s);
  p.below = f->room + 4 * columns_bytes(s) + 2 * square_bytes(s) + odd * below_bytes(s, f->f->products);
  return p;
}

/* ---- a panel ---- */

static const char *row_of(const panel *p, int64_t i) {
  const lu_factors *f = p->f;
  return (const char *)f->f->matrix + (f->order[p->at + i] * f->n + p->at) * f->f->size;
}

/* Rows of the matrix become elements of columns. Their order is unlike memory's, so the next ones are asked for. */
static void load_columns(const panel *p) {
  const int size = p->f->f->size;
  for (int64_t i = 0; i < p->rows; i += TS_LINALG_SQUARE) {
    const char *rows[TS_LINALG_SQUARE];
    const int64_t some = ts_linalg_min(TS_LINALG_SQUARE, p->rows - i);
    for (int64_t k = 0; k < some; k++) rows[k] = row_of(p, i + k);
    for (int64_t k = i + AHEAD; k < ts_linalg_min(p->rows, i + AHEAD + some); k++)
      for (int64_t at = 0; at < p->width * size; at += 64) __builtin_prefetch(row_of(p, k) + at);
    ts_linalg_turn(rows, some, p->width, p->columns + i * size, p->row, size);
  }
}

static void clear_ends(const panel *p, char *columns) {
  const int size = p->f->f->size;
  for (int64_t c = 0; c < p->width; c++)
    memset(columns + (c * p->row + p->rows) * size, 0, (size_t)((p->row - p->rows) * size));
}

static void load_sums(const panel *p) {
  const lu_factors *f = p->f;
  const ts_linalg_view from = {element(f, p->at, p->at), 1, lu_pitch(f->n)}, to = {p->sums, p->row, 1};
  if (p->at > 0)
    ts_linalg_copy(&from, &to, p->width, p->rows, f->f->size);
  else
    memset(p->sums, 0, (size_t)(p->width * p->row * f->f->size));
}

static void note_pivots(const panel *p) {
  int64_t *order = p->f->order, *pivots = p->f->pivots;
  for (int64_t i = p->at; i < p->at + p->width; i++) {
    pivots[i] += p->at;
    ts_linalg_swap(order, i, pivots[i]);
  }
}

static ts_gemm_shape shape_behind(const panel *p) {
  return (ts_gemm_shape){
      .batch = 1, .m = p->rows - p->width, .k = p->width, .lhs_row = 1, .lhs_col = p->row, .rhs_col = 1};
}

static void put_panel(const panel *p) {
  const lu_factors *f = p->f;
  const ts_linalg_view columns = {p->columns, p->row, 1}, square = {p->square, 1, p->width};
  const ts_linalg_view place = {element(f, p->at, p->at), 1, lu_pitch(f->n)};
  const ts_gemm_shape shape = shape_behind(p);
  ts_linalg_copy(&columns, &square, p->width, p->width, f->f->size);
  const ts_gemm_shape of_parts = f->f->parts == 2 ? ts_gemm_shape_of_parts(&shape) : shape;
  if (p->rows > p->width) ts_gemm_pack_left(f->f->products, &of_parts, p->columns + p->width * f->f->size, p->below);
  ts_linalg_copy(&columns, &place, p->width, f->f->spec->op == TS_OP_LU ? p->rows : p->width, f->f->size);
}

static ts_status factor_panel(const lu_factors *f, int64_t at) {
  const panel p = panel_at(f, at);
  TS_TRY(ts_check_cancelled(f->f->cancel, ts_op_name(f->f->spec->op)));
  load_columns(&p);
  load_sums(&p);
  clear_ends(&p, p.columns);
  clear_ends(&p, p.sums);
  f->f->v->factor_panel(&(ts_linalg_panel){p.columns, p.sums, p.row, p.rows, (int)p.width, f->pivots + at});
  note_pivots(&p);
  put_panel(&p);
  return TS_SUCCESS;
}

/* ---- a strip of columns ---- */

/* Of the factors or of the right side. Its rows are sums from the panel on; `from` has the elements that they are
 * subtracted from.
 */
typedef struct strip {
  char *data;
  const char *from;
  int64_t row, from_row, cols; /* elements from a row to the next */
} strip;

static void exchange(char *a, char *b, int64_t bytes) {
  char kept[TS_LINALG_BLOCK * 8];
  memcpy(kept, a, (size_t)bytes);
  memcpy(a, b, (size_t)bytes);
  memcpy(b, kept, (size_t)bytes);
}

static void exchange_rows(const panel *p, const strip *s) {
  const int size = p->f->f->size;
  for (int64_t i = p->at; i < p->at + p->width; i++) {
    const int64_t pivot = p->f->pivots[i];
    if (pivot != i) exchange(s->data + i * s->row * size, s->data + pivot * s->row * size, s->cols * size);
  }
}

/* The panel's rows: U's rows replace their sums. */
static void solve_rows(const panel *p, const strip *s) {
  const int size = p->f->f->size;
  const int64_t most = factor_block_of(p->f->f->spec);
  char rows[TS_LINALG_BLOCK * TS_LINALG_BLOCK * 8] __attribute__((aligned(64))), *out = s->data + p->at * s->row * size;
  for (int64_t i = 0; i < p->width; i++)
    memcpy(rows + i * most * size, s->from + p->f->order[p->at + i] * s->from_row * size, (size_t)(s->cols * size));
  const ts_linalg_block block = {.matrix = p->square,
                                 .sums = p->at > 0 ? out : NULL,
                                 .rhs = rows,
                                 .out = out,
                                 .matrix_row = p->width,
                                 .sums_row = s->row,
                                 .rhs_row = most,
                                 .out_row = s->row,
                                 .n = (int)p->width,
                                 .unit = true};
  p->f->f->v->solve(&block, 0, s->cols);
}

/* The sums of all rows behind the panel. */
static ts_status add_products(const panel *p, const strip *s) {
  const lu_factors *f = p->f;
  const int64_t behind = p->at + p->width;
  ts_gemm_shape shape = shape_behind(p);
  if (behind == f->n) return TS_SUCCESS;
  shape.n = s->cols;
  shape.rhs_row = shape.out_row = s->row;
  return factor_multiply_blocks(f->f, shape,
                                (ts_gemm_call){.left = p->below,
                                               .rhs = s->data + p->at * s->row * f->f->size,
                                               .out = s->data + behind * s->row * f->f->size,
                                               .adds = p->at > 0,
                                               .parallel = &ts_parallel_serial});
}

/* ---- all strips behind a panel ---- */

typedef struct strips {
  panel p;
  int64_t first, own, count; /* numbers of strips from the matrix's first column on; `own` are of the matrix */
  int owners;
  _Atomic int64_t taken[OWNERS]; /* strips of each owner */
} strips;

static strip strip_of(const strips *all, int64_t number) {
  const lu_factors *f = all->p.f;
  const int size = f->f->size;
  const int64_t block = factor_block_of(f->f->spec), cols = f->f->spec->right;
  const int64_t col = number * block, right = (number - all->own) * block;
  if (number < all->own)
    return (strip){element(f, 0, col), (const char *)f->f->matrix + col * size, lu_pitch(f->n), f->n,
                   ts_linalg_min(block, f->n - col)};
  return (strip){(char *)f->f->results[0] + right * size, (const char *)f->f->right + right * size, cols, cols,
                 ts_linalg_min(block, cols - right)};
}

/* The next strip of an owner, or `count`. */
static int64_t take_of(strips *all, int64_t owner) {
  const int64_t before = (owner - all->first % all->owners + all->owners) % all->owners;
  const int64_t taken = atomic_fetch_add_explicit(&all->taken[owner], 1, memory_order_relaxed);
  return ts_linalg_min(all->count, all->first + before + taken * all->owners);
}

/* A worker's own ones first. There are as many strips as tasks. */
static int64_t take(strips *all, int worker) {
  int64_t number = all->count;
  for (int i = 0; i < all->owners && number == all->count; i++) number = take_of(all, (worker + i) % all->owners);
  return number;
}

static ts_status strip_task(void *arg, int64_t task, int worker) {
  strips *all = arg;
  const panel *p = &all->p;
  const int64_t number = take(all, worker);
  const strip s = strip_of(all, number);
  (void)task;
  if (p->at > 0) exchange_rows(p, &s);
  solve_rows(p, &s);
  TS_TRY(add_products(p, &s));
  return number == all->first && number < all->own ? factor_panel(p->f, p->at + p->width) : TS_SUCCESS;
}

static ts_status run_strips(const lu_factors *f, int64_t at) {
  const int64_t block = factor_block_of(f->f->spec);
  strips all = {.p = panel_at(f, at), .first = at / block + 1, .own = (f->n + block - 1) / block};
  all.count = all.own + (f->f->spec->right + block - 1) / block;
  all.owners = (int)ts_linalg_min(OWNERS, f->f->parallel->width);
  return ts_linalg_run_tasks(f->f->parallel, all.count - all.first, strip_task, &all);
}

ts_status lu_factor(const lu_factors *f) {
  for (int64_t i = 0; i < f->n; i++) f->order[i] = i;
  if (f->n > 0) TS_TRY(factor_panel(f, 0));
  for (int64_t at = 0; at < f->n; at += factor_block_of(f->f->spec)) TS_TRY(run_strips(f, at));
  return TS_SUCCESS;
}
