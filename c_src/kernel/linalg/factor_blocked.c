#include "kernel/linalg/factor_blocked.h"

#include <string.h>

/* ---- memory ---- */

/* The distance of lines: whole cache lines, and neighbours in a column fall into different sets of the first cache. */
static int64_t pitch_of(int64_t n) {
  const int64_t whole = (n + 7) / 8 * 8;
  return whole % 64 == 0 ? whole + 8 : whole;
}

static int64_t triangle_parts(int64_t n) { return (n + FACTOR_BLOCK - 1) / FACTOR_BLOCK * FACTOR_PARTS * FACTOR_BLOCK; }

bool factor_grid_bytes(const ts_factor_spec *s, int64_t *out) {
  int64_t lines, parts;
  if (s->rows > INT64_MAX / 8192) return false;
  return ts_add_i64(s->rows + FACTOR_BLOCK, s->right, &lines) && ts_mul_i64(lines, 2 * pitch_of(s->rows), &parts) &&
         ts_add_i64(parts, triangle_parts(s->rows) + 3 * s->rows + 16, &parts) && ts_mul_i64(parts, 8, out);
}

factor_grid factor_grid_of(const factor *f, factor_view matrix) {
  const int64_t n = f->spec->rows;
  factor_grid g = {.f = f, .n = n, .matrix = matrix};
  g.a = (factor_rows){(double *)(void *)factor_aligned(f->workspace), n + f->spec->right, pitch_of(n)};
  g.elements = (factor_rows){factor_rows_end(&g.a), ts_linalg_min(n, FACTOR_BLOCK), pitch_of(n)};
  g.triangles = factor_rows_end(&g.elements);
  g.pivots = (int64_t *)(void *)(g.triangles + triangle_parts(n));
  g.order = g.pivots + n;
  g.places = g.order + n;
  for (int64_t i = 0; i < n; i++) g.order[i] = i;
  return g;
}

factor_block factor_block_at(const factor_grid *g, int64_t at) {
  return (factor_block){at, ts_linalg_min(FACTOR_BLOCK, g->n - at)};
}

static int64_t blocks_of(int64_t columns) { return (columns + FACTOR_BLOCK - 1) / FACTOR_BLOCK; }

int64_t factor_tiles(const factor_grid *g, int64_t behind) {
  return blocks_of(g->n - behind) + blocks_of(g->a.count - g->n);
}

void factor_begin_tile(const factor_grid *g, int64_t behind, int64_t number, factor_tile *t) {
  const int64_t own = blocks_of(g->n - behind);
  const bool right = number >= own;
  t->fresh = false;
  t->first = right ? g->n + (number - own) * FACTOR_BLOCK : behind + number * FACTOR_BLOCK;
  t->count = ts_linalg_min(FACTOR_BLOCK, (right ? g->a.count : g->n) - t->first);
  t->column = right ? t->first - g->n : t->first;
}

/* ---- columns in memory ---- */

/* Rows that are moved for each column in turn, so that a row of the view is read while it is in cache. */
#define SOME_ROWS 8

void factor_put_part(const factor_grid *g, int64_t column, int64_t first, int64_t end, const factor_view *to) {
  const factor_numbers line = factor_row(&g->a, column);
  for (int64_t i = first; i < end; i++) factor_view_put(to, i, column, factor_number_at(line, i));
}

/* Rows row .. row + count - 1 (at most SOME_ROWS) of columns from `first` on, in their order. */
static void load_rows(const factor_grid *g, int64_t row, int64_t count, int64_t first, const factor_rows *to) {
  const factor_view *v = &g->matrix;
  const double *from[SOME_ROWS];
  for (int64_t i = 0; i < count; i++) from[i] = v->data + 2 * (g->order[row + i] * v->row + first * v->col);
  for (int64_t c = 0; c < to->count; c++) {
    const factor_numbers line = factor_from(factor_row(to, c), row);
    for (int64_t i = 0; i < count; i++) {
      line.re[i] = from[i][2 * c * v->col];
      line.im[i] = from[i][2 * c * v->col + 1];
    }
  }
}

static void load_columns(const factor_grid *g, int64_t row, int64_t first, const factor_rows *to) {
  for (; row + SOME_ROWS <= g->n && !ts_cancelled(g->f->cancel); row += SOME_ROWS)
    load_rows(g, row, SOME_ROWS, first, to);
  if (row < g->n) load_rows(g, row, ts_linalg_min(SOME_ROWS, g->n - row), first, to);
}

void factor_load_elements(const factor_grid *g, factor_block b) {
  load_columns(g, b.at, b.at, &(factor_rows){g->elements.data, b.width, g->elements.length});
}

static void load_task(void *arg, int64_t task, int worker) {
  const factor_grid *g = arg;
  const factor_block b = factor_block_at(g, task * FACTOR_BLOCK);
  const factor_rows to = {factor_row(&g->a, b.at).re, b.width, g->a.length};
  (void)worker;
  load_columns(g, 0, b.at, &to);
}

void factor_grid_load(const factor_grid *g) {
  ts_parallel_run(g->f->parallel, blocks_of(g->n), load_task, (void *)(uintptr_t)g);
}

static void clear_sums(const factor_grid *g, int64_t column, int64_t first, int64_t end) {
  const factor_numbers x = factor_row(&g->a, column);
  for (int64_t i = first; i < end; i++) x.re[i] = x.im[i] = 0;
}

/* ---- one column ---- */

static void take_from(const double *restrict from, double *restrict x, int64_t count) {
  for (int64_t i = 0; i < count; i++) x[i] = from[i] - x[i];
}

void factor_take_panel(const factor_grid *g, factor_block b, int64_t j, const factor_number *u) {
  const int64_t row = b.at + j, step = g->a.length;
  const factor_numbers x = factor_row(&g->a, row), own = factor_row(&g->elements, j);
  const size_t bytes = (size_t)(g->n - row) * sizeof *x.re;
  double by[FACTOR_PARTS][2];
  if (row == 0) { /* there are no sums */
    memcpy(x.re, own.re, bytes);
    memcpy(x.im, own.im, bytes);
    return;
  }
  if (b.at == 0) clear_sums(g, row, row, g->n);
  for (int64_t k = 0; k < j; k++) {
    by[2 * k][0] = by[2 * k + 1][1] = u[k].re;
    by[2 * k][1] = u[k].im;
    by[2 * k + 1][0] = -u[k].im;
  }
  const ts_linalg_sums sums = {factor_row(&g->a, b.at).re + row, by, step, 2, 2 * j, g->n - row, .adds = true};
  if (j > 0) g->f->v->take_sums(&sums, x.re + row, step, 2);
  take_from(own.re + row, x.re + row, g->n - row);
  take_from(own.im + row, x.im + row, g->n - row);
}

/* By Smith's method: the real part of the divisor is the larger one, or the imaginary part is. */
static void divide_by_real(factor_numbers x, int64_t step, int64_t end, factor_number by) {
  const double ratio = by.im / by.re, divisor = by.re + by.im * ratio;
  for (int64_t i = 0; i < end; i += step) {
    const double re = x.re[i], im = x.im[i];
    x.re[i] = (re + im * ratio) / divisor;
    x.im[i] = (im - re * ratio) / divisor;
  }
}

static void divide_by_imaginary(factor_numbers x, int64_t step, int64_t end, factor_number by) {
  const double ratio = by.re / by.im, divisor = by.im + by.re * ratio;
  for (int64_t i = 0; i < end; i += step) {
    const double re = x.re[i], im = x.im[i];
    x.re[i] = (im + re * ratio) / divisor;
    x.im[i] = (im * ratio - re) / divisor;
  }
}

static void divide_by_zero(factor_numbers x, int64_t step, int64_t end) {
  for (int64_t i = 0; i < end; i += step) {
    x.re[i] /= 0.0;
    x.im[i] /= 0.0;
  }
}

static void divide_one_by_one(factor_numbers x, int64_t step, int64_t end, factor_number by) {
  for (int64_t i = 0; i < end; i += step) factor_put_number(x, i, factor_quotient(factor_number_at(x, i), by));
}

void factor_divide_numbers(factor_numbers x, int64_t step, int64_t count, factor_number by) {
  const int64_t end = count * step;
  if (factor_is_zero(by))
    divide_by_zero(x, step, end);
  else if (factor_is_far(by))
    divide_one_by_one(x, step, end, by);
  else if (fabs(by.im) > fabs(by.re))
    divide_by_imaginary(x, step, end, by);
  else
    divide_by_real(x, step, end, by);
}

/* ---- tiles ---- */

static double *triangle_of(const factor_grid *g, factor_block b) {
  return g->triangles + b.at / FACTOR_BLOCK * FACTOR_PARTS * FACTOR_BLOCK;
}

void factor_keep_triangle(const factor_grid *g, factor_block b) {
  double *to = triangle_of(g, b);
  for (int64_t k = 0; k < b.width; k++) {
    const factor_numbers column = factor_from(factor_row(&g->a, b.at + k), b.at);
    for (int64_t i = 0; i < b.width; i++) {
      to[2 * k * FACTOR_BLOCK + i] = column.re[i];
      to[(2 * k + 1) * FACTOR_BLOCK + i] = column.im[i];
    }
  }
}

static double *tile_row(factor_tile *t, int64_t k) { return t->by + 2 * k * FACTOR_PARTS; }

/* The sums of the tile's rows of a block. */
static void read_rows(const factor_grid *g, factor_block b, factor_tile *t) {
  for (int64_t k = 0; t->fresh && k < b.width; k++) memset(tile_row(t, k), 0, (size_t)(2 * t->count) * sizeof *t->by);
  if (t->fresh) return;
  for (int64_t c = 0; c < t->count; c++) {
    const factor_numbers x = factor_from(factor_row(&g->a, t->first + c), b.at);
    for (int64_t k = 0; k < b.width; k++) {
      tile_row(t, k)[2 * c] = x.re[k];
      tile_row(t, k)[2 * c + 1] = x.im[k];
    }
  }
}

static void write_rows(const factor_grid *g, factor_block b, const factor_view *to, factor_tile *t) {
  for (int64_t c = 0; c < t->count; c++) {
    const factor_numbers x = factor_from(factor_row(&g->a, t->first + c), b.at);
    for (int64_t k = 0; k < b.width; k++) {
      const factor_number z = {tile_row(t, k)[2 * c], tile_row(t, k)[2 * c + 1]};
      if (to)
        factor_view_put(to, b.at + k, t->column + c, z);
      else
        factor_put_number(x, k, z);
    }
  }
}

/* Elements of a row less the sums in `x`. */
static void take_from_elements(const factor_sides *s, int64_t row, const factor_tile *t, double *x) {
  const int64_t from = s->order ? s->order[row] : row;
  for (int64_t c = 0; c < t->count; c++) {
    const factor_number z = factor_view_at(&s->from, from, t->column + c);
    x[2 * c] = z.re - x[2 * c];
    x[2 * c + 1] = z.im - x[2 * c + 1];
  }
}

void factor_solve_tile(const factor_grid *g, factor_block b, const factor_sides *sides, factor_tile *t) {
  const double *triangle = triangle_of(g, b);
  read_rows(g, b, t);
  for (int64_t done = 0; done < b.width; done++) {
    const int64_t i = sides->upper ? b.width - 1 - done : done, first = sides->upper ? i + 1 : 0;
    const double *d = triangle + 2 * i * FACTOR_BLOCK + i;
    double *x = tile_row(t, i), *turned = x + FACTOR_PARTS;
    const ts_linalg_sums before = {
        tile_row(t, first), triangle + 2 * first * FACTOR_BLOCK + i, FACTOR_PARTS, FACTOR_BLOCK, 2 * done, 2 * t->count,
        .adds = true};
    if (done > 0) g->f->v->take_sums(&before, x, FACTOR_PARTS, 1);
    take_from_elements(sides, b.at + i, t, x);
    if (!sides->unit)
      factor_divide_numbers((factor_numbers){x, x + 1}, 2, t->count, (factor_number){d[0], d[FACTOR_BLOCK]});
    for (int64_t c = 0; c < 2 * t->count; c += 2) turned[c] = -x[c + 1], turned[c + 1] = x[c];
  }
  write_rows(g, b, sides->to, t);
}

/* Up to this number of right sides, packing takes longer than the product. */
#define FEW_RIGHT 4

ts_status factor_update_tile(const factor_grid *g, factor_block b, factor_tile *t, int64_t row, int64_t rows) {
  const bool fresh = t->fresh;
  t->fresh = false;
  if (rows == 0) return TS_SUCCESS;
  const ts_gemm_shape shape = {.batch = 1,
                               .m = 2 * t->count,
                               .n = rows,
                               .k = 2 * b.width,
                               .lhs_row = 1,
                               .lhs_col = FACTOR_PARTS,
                               .rhs_row = g->a.length,
                               .rhs_col = 1,
                               .out_row = g->a.length};
  if (g->a.count - g->n <= FEW_RIGHT && t->first >= g->n) {
    for (int64_t c = 0; fresh && c < t->count; c++) clear_sums(g, t->first + c, row, row + rows);
    const ts_linalg_sums sums = {
        factor_row(&g->a, b.at).re + row, t->by, g->a.length, FACTOR_PARTS, shape.k, rows, .adds = true};
    g->f->v->take_sums(&sums, factor_row(&g->a, t->first).re + row, g->a.length, shape.m);
    return TS_SUCCESS;
  }
  return ts_gemm_run(g->f->products, &shape,
                     &(ts_gemm_call){.one_chain = true,
                                     .lhs = t->by,
                                     .rhs = factor_row(&g->a, b.at).re + row,
                                     .out = factor_row(&g->a, t->first).re + row,
                                     .adds = !fresh,
                                     .parallel = &ts_parallel_serial,
                                     .pool = g->f->pool,
                                     .cancel = g->f->cancel});
}

/* ---- systems: each tile is solved by one thread ---- */

typedef struct solve_run {
  const factor_grid *g;
  const factor_sides *sides;
} solve_run;

static ts_status solve_block(const solve_run *r, int64_t at, factor_tile *t) {
  const factor_block b = factor_block_at(r->g, at);
  const int64_t behind = at + b.width;
  TS_TRY(ts_check_cancelled(r->g->f->cancel, ts_op_name(r->g->f->spec->op)));
  factor_solve_tile(r->g, b, r->sides, t);
  return r->sides->upper ? factor_update_tile(r->g, b, t, 0, at)
                         : factor_update_tile(r->g, b, t, behind, r->g->n - behind);
}

static ts_status solve_task(void *arg, int64_t task, int worker) {
  const solve_run *r = arg;
  const int64_t n = r->g->n, last = (n - 1) / FACTOR_BLOCK * FACTOR_BLOCK;
  factor_tile t;
  (void)worker;
  factor_begin_tile(r->g, n, task, &t);
  t.fresh = true;
  for (int64_t at = 0; at < n; at += FACTOR_BLOCK) TS_TRY(solve_block(r, r->sides->upper ? last - at : at, &t));
  return TS_SUCCESS;
}

ts_status factor_solve_grid(const factor_grid *g, const factor_sides *sides) {
  solve_run r = {g, sides};
  for (int64_t at = 0; at < g->n; at += FACTOR_BLOCK) factor_keep_triangle(g, factor_block_at(g, at));
  return ts_linalg_run_tasks(g->f->parallel, factor_tiles(g, g->n), solve_task, &r);
}
