/* lu, and solve and determinant by LU factors with partial pivoting (lu_panels.c). */
#include "kernel/linalg/factor_systems.h"

#include <string.h>

/* The memory of one matrix. */
typedef struct memory {
  char *factors; /* as lu_factors's, like the next two */
  int64_t *pivots, *order;
  char *room; /* of lu_factors, then of solve, or of n places for each strip */
} memory;

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

static memory memory_of(const factor *f) {
  memory m = {.factors = factor_aligned(f->workspace)};
  const int64_t pivots = rounded(f->spec->rows * 8);
  m.pivots = (int64_t *)(void *)(m.factors + factor_bytes(f->spec));
  m.order = m.pivots + pivots / 8;
  m.room = (char *)m.order + pivots;
  return m;
}

static ts_status solve_upper(const factor *f, const memory *m) {
  const int64_t n = f->spec->rows, cols = f->spec->right, pitch = lu_pitch(n), last = n - 1;
  const ts_linalg_view up = {(char *)f->results[0] + last * cols * f->size, -cols, 1};
  const ts_linalg_view upper = {m->factors + last * (pitch + 1) * f->size, -pitch, -1};
  return factor_solve(f, &(factor_system){upper, up, up, n, cols, false}, m->room);
}

static void put_determinant(const factor *f, const memory *m) {
  const int64_t n = f->spec->rows, step = (lu_pitch(n) + 1) * f->size;
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

typedef struct put_run {
  const factor *f;
  const memory *m;
} put_run;

/* `first` of a strip is its first column; `place` is the row of L before the exchanges of later panels. */
static void put_part(const put_run *p, int64_t i, int64_t place, int64_t first, int64_t cols) {
  const factor *f = p->f;
  const int size = f->size;
  const int64_t n = f->spec->rows, below = ts_linalg_max(0, ts_linalg_min(cols, i - first)) * size, bytes = cols * size;
  const char *from = p->m->factors + (place * lu_pitch(n) + first) * size;
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
static void find_places(const memory *m, int64_t end, int64_t n, int64_t *out) {
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = end; i < n; i++) ts_linalg_swap(out, i, m->pivots[i]);
}

static void put_strip(void *arg, int64_t task, int worker) {
  const put_run *p = arg;
  const factor *f = p->f;
  const int64_t n = f->spec->rows, block = factor_block_of(f->spec), first = task * block;
  const int64_t cols = ts_linalg_min(block, n - first);
  int64_t *places = (int64_t *)(void *)p->m->room + task * n;
  (void)worker;
  find_places(p->m, first + cols, n, places);
  for (int64_t i = 0; i < n; i++) put_part(p, i, places[i], first, cols);
  for (int64_t i = first; i < first + cols; i++)
    factor_set(f, (char *)f->results[0] + (p->m->order[i] * n + i) * f->size, 0, 1);
}

ts_status factor_lu(const factor *f) {
  const memory m = memory_of(f);
  TS_TRY(lu_factor(&(lu_factors){.f = f,
                                 .n = f->spec->rows,
                                 .cols = f->spec->right,
                                 .a = f->matrix,
                                 .b = f->right,
                                 .x = f->results[0],
                                 .factors = m.factors,
                                 .pivots = m.pivots,
                                 .order = m.order,
                                 .room = m.room,
                                 .keeps_lower = f->spec->op == TS_OP_LU}));
  if (f->spec->op == TS_OP_SOLVE) return solve_upper(f, &m);
  if (f->spec->op == TS_OP_LU)
    ts_parallel_run(f->parallel, strips_of(f->spec), put_strip, &(put_run){f, &m});
  else
    put_determinant(f, &m);
  return TS_SUCCESS;
}
