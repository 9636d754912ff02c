#include "kernel/linalg/factor_blocked.h"

/* ---- memory ---- */

/* Numbers of a line: whole cache lines, of which a column of neighbours is in different sets of the first cache. */
static int64_t pitch_of(int64_t n) {
  const int64_t whole = (n + 7) / 8 * 8;
  return whole % 64 == 0 ? whole + 8 : whole;
}

static int64_t triangle_parts(int64_t n) { return (n + FACTOR_BLOCK - 1) / FACTOR_BLOCK * FACTOR_PARTS * FACTOR_BLOCK; }

bool factor_grid_bytes(const ts_factor_spec *s, int64_t *out) {
  int64_t lines, parts;
  if (s->rows > INT64_MAX / 8192) return false;
  return ts_add_i64(s->rows, s->right, &lines) && ts_mul_i64(lines, 2 * pitch_of(s->rows), &parts) &&
         ts_add_i64(parts, triangle_parts(s->rows) + 2 * s->rows + 16, &parts) && ts_mul_i64(parts, 8, out);
}

factor_grid factor_grid_of(const factor *f) {
  const int64_t n = f->spec->rows;
  factor_grid g = {.f = f, .n = n};
  g.a = (factor_rows){(double *)(void *)factor_aligned(f->workspace), n + f->spec->right, pitch_of(n)};
  g.triangles = factor_rows_end(&g.a);
  g.pivots = (int64_t *)(void *)(g.triangles + triangle_parts(n));
  g.order = g.pivots + n;
  return g;
}

factor_block factor_block_at(const factor_grid *g, int64_t at) {
  return (factor_block){at, ts_linalg_min(FACTOR_BLOCK, g->n - at)};
}

void factor_begin_tile(const factor_grid *g, int64_t first, factor_tile *t) {
  t->first = first;
  t->count = ts_linalg_min(FACTOR_BLOCK, g->a.count - first);
}

/* ---- columns in memory ---- */

/* Rows that are moved for each column in turn, so that a row of the view is read while it is in cache. */
#define SOME_ROWS 8

void factor_put_part(const factor_grid *g, int64_t column, int64_t first, int64_t end, const factor_view *to) {
  const factor_numbers line = factor_row(&g->a, column);
  for (int64_t i = first; i < end; i++) factor_view_put(to, i, column, factor_number_at(line, i));
}

static void store_tile(const factor_grid *g, const factor_view *to, const factor_tile *t) {
  for (int64_t row = 0; row < g->n; row += SOME_ROWS)
    for (int64_t c = t->first; c < t->first + t->count; c++) {
      const factor_numbers line = factor_row(&g->a, c);
      for (int64_t i = row; i < ts_linalg_min(g->n, row + SOME_ROWS); i++)
        factor_view_put(to, i, c - g->n, factor_number_at(line, i));
    }
}

typedef struct load_run {
  const factor_grid *g;
  const factor_view *from;
  int64_t first, end;
  bool lower;
} load_run;

static void load_task(void *arg, int64_t task, int worker) {
  const load_run *r = arg;
  const int64_t n = r->g->n, first = r->first + task * FACTOR_BLOCK, end = ts_linalg_min(r->end, first + FACTOR_BLOCK);
  (void)worker;
  for (int64_t row = r->lower ? first : 0; row < n && !ts_cancelled(r->g->f->cancel); row += SOME_ROWS)
    for (int64_t c = first; c < end; c++) {
      const factor_numbers line = factor_row(&r->g->a, c);
      for (int64_t i = row; i < ts_linalg_min(n, row + SOME_ROWS); i++)
        factor_put_number(line, i, factor_view_at(r->from, i, c - r->first));
    }
}

static void run_load(load_run *r) {
  ts_parallel_run(r->g->f->parallel, (r->end - r->first + FACTOR_BLOCK - 1) / FACTOR_BLOCK, load_task, r);
}

void factor_grid_load(const factor_grid *g, const factor_view *from, int64_t first, int64_t end) {
  run_load(&(load_run){g, from, first, end, false});
}

void factor_grid_load_lower(const factor_grid *g, const factor_view *from) {
  run_load(&(load_run){g, from, 0, g->n, true});
}

/* ---- one column ---- */

void factor_take_panel(const factor_grid *g, factor_block b, int64_t j, const factor_number *u) {
  const int64_t row = b.at + j, step = g->a.length;
  double by[FACTOR_PARTS][2];
  for (int64_t k = 0; k < j; k++) {
    by[2 * k][0] = by[2 * k + 1][1] = u[k].re;
    by[2 * k][1] = u[k].im;
    by[2 * k + 1][0] = -u[k].im;
  }
  const ts_linalg_sums sums = {factor_row(&g->a, b.at).re + row, by, step, 2, 2 * j, g->n - row, .adds = false};
  g->f->v->take_sums(&sums, factor_row(&g->a, row).re + row, step, 2);
}

/* By Smith's method; `large` is the larger part of the divisor, and `first` the part of x that stands with it. */
static void divide_parts(double *first, double *second, int64_t step, int64_t end, double large, double small) {
  const double ratio = small / large, divisor = large + small * ratio;
  for (int64_t i = 0; i < end; i += step) {
    const double x = first[i], y = second[i];
    first[i] = (x + y * ratio) / divisor;
    second[i] = (y - x * ratio) / divisor;
  }
}

/* The quotient of x * -i. */
static void divide_turned(factor_numbers x, int64_t step, int64_t end, factor_number by) {
  divide_parts(x.im, x.re, step, end, by.im, by.re);
  for (int64_t i = 0; i < end; i += step) {
    const double im = -x.re[i];
    x.re[i] = x.im[i];
    x.im[i] = im;
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
    divide_turned(x, step, end, by);
  else
    divide_parts(x.re, x.im, step, end, by.re, by.im);
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

static void read_rows(const factor_grid *g, factor_block b, factor_tile *t) {
  for (int64_t c = 0; c < t->count; c++) {
    const factor_numbers x = factor_from(factor_row(&g->a, t->first + c), b.at);
    for (int64_t k = 0; k < b.width; k++) {
      tile_row(t, k)[2 * c] = -x.re[k];
      tile_row(t, k)[2 * c + 1] = -x.im[k];
    }
  }
}

static void write_rows(const factor_grid *g, factor_block b, factor_tile *t) {
  for (int64_t c = 0; c < t->count; c++) {
    const factor_numbers x = factor_from(factor_row(&g->a, t->first + c), b.at);
    for (int64_t k = 0; k < b.width; k++)
      factor_put_number(x, k, (factor_number){-tile_row(t, k)[2 * c], -tile_row(t, k)[2 * c + 1]});
  }
}

/* Row i, after all rows that it depends on. */
static void solve_row(const factor_grid *g, const double *triangle, const ts_linalg_sums *before, int64_t i, bool unit,
                      factor_tile *t) {
  double *x = tile_row(t, i), *turned = x + FACTOR_PARTS;
  g->f->v->take_sums(before, x, FACTOR_PARTS, 1);
  const double *d = triangle + 2 * i * FACTOR_BLOCK + i;
  if (!unit) factor_divide_numbers((factor_numbers){x, x + 1}, 2, t->count, (factor_number){d[0], d[FACTOR_BLOCK]});
  for (int64_t c = 0; c < 2 * t->count; c += 2) turned[c] = -x[c + 1], turned[c + 1] = x[c];
}

void factor_solve_tile(const factor_grid *g, factor_block b, factor_sides sides, factor_tile *t) {
  const double *triangle = triangle_of(g, b);
  read_rows(g, b, t);
  for (int64_t done = 0; done < b.width; done++) {
    const int64_t i = sides.upper ? b.width - 1 - done : done, first = sides.upper ? i + 1 : 0;
    const ts_linalg_sums before = {
        tile_row(t, first), triangle + 2 * first * FACTOR_BLOCK + i, FACTOR_PARTS, FACTOR_BLOCK, 2 * done, 2 * t->count,
        .adds = false};
    solve_row(g, triangle, &before, i, sides.unit, t);
  }
  write_rows(g, b, t);
}

/* Right sides for which packing would take longer than the product. */
#define FEW_RIGHT 4

ts_status factor_update_tile(const factor_grid *g, factor_block b, const factor_tile *t, int64_t row, int64_t rows) {
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
                                     .adds = true,
                                     .parallel = &ts_parallel_serial,
                                     .pool = g->f->pool,
                                     .cancel = g->f->cancel});
}

/* ---- systems: each tile is solved by one thread ---- */

typedef struct solve_run {
  const factor_grid *g;
  factor_sides sides;
  const factor_view *out;
} solve_run;

static ts_status solve_block(const solve_run *r, int64_t at, factor_tile *t) {
  const factor_block b = factor_block_at(r->g, at);
  const int64_t behind = at + b.width;
  TS_TRY(ts_check_cancelled(r->g->f->cancel, ts_op_name(r->g->f->spec->op)));
  factor_solve_tile(r->g, b, r->sides, t);
  return r->sides.upper ? factor_update_tile(r->g, b, t, 0, at)
                        : factor_update_tile(r->g, b, t, behind, r->g->n - behind);
}

static ts_status solve_task(void *arg, int64_t task, int worker) {
  const solve_run *r = arg;
  const int64_t n = r->g->n, last = (n - 1) / FACTOR_BLOCK * FACTOR_BLOCK;
  factor_tile t;
  (void)worker;
  factor_begin_tile(r->g, n + task * FACTOR_BLOCK, &t);
  for (int64_t at = 0; at < n; at += FACTOR_BLOCK) TS_TRY(solve_block(r, r->sides.upper ? last - at : at, &t));
  store_tile(r->g, r->out, &t);
  return TS_SUCCESS;
}

ts_status factor_solve_grid(const factor_grid *g, factor_sides sides, const factor_view *out) {
  solve_run r = {g, sides, out};
  for (int64_t at = 0; at < g->n; at += FACTOR_BLOCK) factor_keep_triangle(g, factor_block_at(g, at));
  return ts_linalg_run_tasks(g->f->parallel, (g->a.count - g->n + FACTOR_BLOCK - 1) / FACTOR_BLOCK, solve_task, &r);
}
