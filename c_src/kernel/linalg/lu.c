/* lu, and solve and determinant by LU factors with partial pivoting (lu_panels.c). */
#include "kernel/linalg/factor_systems.h"

#include <string.h>

static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t factor_bytes(const ts_factor_spec *s) {
  return rounded(s->rows * lu_pitch(s->rows) * factor_size_of(s));
}
static int64_t strips_of(const ts_factor_spec *s) { return (s->rows + factor_block_of(s) - 1) / factor_block_of(s); }

int64_t factor_lu_bytes(const ts_factor_spec *s, const ts_gemm *products) {
  const int64_t n = s->rows, solved = factor_solve_numbers(s, false) * factor_size_of(s);
  const int64_t places = s->op == TS_OP_LU ? strips_of(s) * n * (int64_t)sizeof(int64_t) : 0;
  return factor_bytes(s) + 2 * rounded(n * 8) +
         ts_linalg_max(ts_linalg_max(lu_room_bytes(s, products), solved), places);
}

/* `room` is lu_factor's first, then solve's, or n places for each strip. */
static lu_factors lay_out(const factor *f) {
  lu_factors m = {.f = f, .n = f->spec->rows, .factors = factor_aligned(f->workspace)};
  const int64_t pivots = rounded(f->spec->rows * 8);
  m.pivots = (int64_t *)(void *)(m.factors + factor_bytes(f->spec));
  m.order = m.pivots + pivots / 8;
  m.room = (char *)m.order + pivots;
  return m;
}

static ts_status solve_upper(const lu_factors *m) {
  const factor *f = m->f;
  const int64_t n = m->n, cols = f->spec->right, pitch = lu_pitch(n), last = n - 1;
  const ts_linalg_view up = {(char *)f->results[0] + last * cols * f->size, -cols, 1};
  const ts_linalg_view upper = {m->factors + last * (pitch + 1) * f->size, -pitch, -1};
  return factor_solve(f, &(factor_system){upper, up, up, n, cols, false}, m->room);
}

static void put_determinant(const lu_factors *m) {
  const factor *f = m->f;
  const int64_t n = m->n, step = (lu_pitch(n) + 1) * f->size;
  bool odd = false;
  for (int64_t i = 0; i < n; i++) odd ^= m->pivots[i] != i;
  ts_linalg_product real = {odd ? -1 : 1, 0};
  factor_far_number product = {{odd ? -1 : 1, 0}, 0};
  for (int64_t i = 0; i < n; i++) {
    const char *at = m->factors + i * step;
    if (f->parts == 2)
      factor_multiply(&product, (factor_number){factor_get(f, at, 0), factor_get(f, at, 1)});
    else
      ts_linalg_multiply(&real, factor_get(f, at, 0), f->size == 4);
  }
  const factor_number z = factor_far_value(&product);
  factor_set(f, f->results[0], 0, f->parts == 2 ? z.re : ts_linalg_raised(real.part, real.power));
  if (f->parts == 2) factor_set(f, f->results[0], 1, z.im);
}

/* ---- the factors as results */

/* `first` of a strip is its first column; `place` is the row of L before the exchanges of later panels. */
static void put_part(const lu_factors *m, int64_t i, int64_t place, int64_t first, int64_t cols) {
  const factor *f = m->f;
  const int size = f->size;
  const int64_t n = m->n, below = ts_linalg_max(0, ts_linalg_min(cols, i - first)) * size, bytes = cols * size;
  const char *from = m->factors + (place * lu_pitch(n) + first) * size;
  char *to[3];
  for (int k = 0; k < 3; k++) to[k] = (char *)f->results[k] + (i * n + first) * size;
  memset(to[0], 0, (size_t)bytes);
  memcpy(to[1], from, (size_t)below);
  memset(to[1] + below, 0, (size_t)(bytes - below));
  if (i >= first && i < first + cols) factor_set(f, to[1] + below, 0, 1);
  memset(to[2], 0, (size_t)below);
  memcpy(to[2] + below, from + below, (size_t)(bytes - below));
}

/* Where the strip that ends before column `end` has each row of L. */
static void find_places(const lu_factors *m, int64_t end, int64_t *out) {
  for (int64_t i = 0; i < m->n; i++) out[i] = i;
  for (int64_t i = end; i < m->n; i++) ts_linalg_swap(out, i, m->pivots[i]);
}

static void put_strip(void *arg, int64_t task, int worker) {
  const lu_factors *m = arg;
  const factor *f = m->f;
  const int64_t n = m->n, block = factor_block_of(f->spec), first = task * block;
  const int64_t cols = ts_linalg_min(block, n - first);
  int64_t *places = (int64_t *)(void *)m->room + task * n;
  (void)worker;
  find_places(m, first + cols, places);
  for (int64_t i = 0; i < n; i++) put_part(m, i, places[i], first, cols);
  for (int64_t i = first; i < first + cols; i++)
    factor_set(f, (char *)f->results[0] + (m->order[i] * n + i) * f->size, 0, 1);
}

ts_status factor_lu(const factor *f) {
  lu_factors m = lay_out(f);
  TS_TRY(lu_factor(&m));
  if (f->spec->op == TS_OP_SOLVE) return solve_upper(&m);
  if (f->spec->op == TS_OP_LU)
    ts_parallel_run(f->parallel, strips_of(f->spec), put_strip, &m);
  else
    put_determinant(&m);
  return TS_SUCCESS;
}
