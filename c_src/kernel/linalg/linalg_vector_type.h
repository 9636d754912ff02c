/* The part of linalg_vector_body.h for one type: T, its vectors V, integers W as wide and their vectors I, NAME, and
 * FMA, SPLAT and SQRT of vectors. */
#define LANES ((int)(sizeof(V) / sizeof(T)))
#define INLINE static inline __attribute__((always_inline))

/* ---- columns in lanes */

INLINE V NAME(load)(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* Up to vecs * LANES elements, zeros behind them. */
INLINE void NAME(load_row)(const T *from, int64_t count, int vecs, V *out) {
  if (count == (int64_t)vecs * LANES) {
    _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) out[v] = NAME(load)(from + v * LANES);
  } else {
    memset(out, 0, (size_t)vecs * sizeof(V));
    memcpy(out, from, (size_t)count * sizeof(T));
  }
}

/* Columns of a block; a row has `vecs` vectors. */
typedef struct NAME(chunk) {
  const ts_linalg_block *b;
  int64_t first, count;
  V *tile; /* the rows of the solution */
} NAME(chunk);

/* A row: its right side less its sums, over the diagonal. */
INLINE void NAME(finish_solution)(const NAME(chunk) * c, int i, int vecs, const V *sum) {
  const ts_linalg_block *b = c->b;
  V rhs[WIDE], *x = c->tile + i * vecs;
  NAME(load_row)((const T *)b->rhs + i * b->rhs_row + c->first, c->count, vecs, rhs);
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) {
    x[v] = rhs[v] - sum[v];
    if (!b->unit) x[v] /= SPLAT(((const T *)b->matrix)[i * b->n + i]);
  }
  memcpy((T *)b->out + i * b->out_row + c->first, x, (size_t)c->count * sizeof(T));
}

/* Some rows at once, so that their chains hide the latency of a multiply-add. */
INLINE void NAME(solve_rows)(const NAME(chunk) * c, int i, int rows, int vecs) {
  const ts_linalg_block *b = c->b;
  const T *row = (const T *)b->matrix + i * b->n;
  V sum[WIDE * SOLVED];
  _Pragma("GCC unroll 16") for (int v = 0; v < rows * vecs; v++) sum[v] = SPLAT(0);
  if (b->sums)
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)
        NAME(load_row)((const T *)b->sums + (i + r) * b->sums_row + c->first, c->count, vecs, sum + r * vecs);
  for (int k = 0; k < i; k++)
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
        sum[r * vecs + v] = FMA(SPLAT(row[r * b->n + k]), c->tile[k * vecs + v], sum[r * vecs + v]);
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
    NAME(finish_solution)(c, i + r, vecs, sum + r * vecs);
    _Pragma("GCC unroll 8") for (int q = r + 1; q < rows; q++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
        sum[q * vecs + v] = FMA(SPLAT(row[q * b->n + i + r]), c->tile[(i + r) * vecs + v], sum[q * vecs + v]);
  }
}

INLINE void NAME(solve_chunk)(const ts_linalg_block *b, int64_t first, int64_t count, int rows, int vecs) {
  V tile[TS_LINALG_BLOCK * WIDE];
  const NAME(chunk) c = {b, first, count, tile};
  int i = 0;
  for (; i + rows <= b->n; i += rows) NAME(solve_rows)(&c, i, rows, vecs);
  for (; i < b->n; i++) NAME(solve_rows)(&c, i, 1, vecs);
}

static void NAME(solve)(const ts_linalg_block *b, int64_t first, int64_t count) {
  for (; count >= WIDE * LANES; first += WIDE * LANES, count -= WIDE * LANES)
    NAME(solve_chunk)(b, first, WIDE * LANES, SOLVED, WIDE);
  for (; count > 0; first += LANES, count -= LANES) NAME(solve_chunk)(b, first, count < LANES ? count : LANES, 8, 1);
}

/* Rows of a product that are computed at once: as many chains hide the latency of a multiply-add. */
#define FEW 8

INLINE void NAME(multiply_rows)(const ts_linalg_few *f, int64_t row, int64_t col, int rows, T *out) {
  const T *a = (const T *)f->matrix + row * f->matrix_row, *x = (const T *)f->rows + col;
  const int64_t some = f->cols - col < LANES ? f->cols - col : LANES;
  V sums[FEW];
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] = SPLAT(0);
  for (int64_t k = 0; k < f->count; k++, a += f->matrix_col, x += f->row) {
    const V v = LOAD_SOME(x, some);
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] = FMA(SPLAT(a[r * f->matrix_row]), v, sums[r]);
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) STORE_SOME(out + (row + r) * f->cols + col, some, sums[r]);
}

static void NAME(multiply_few)(const ts_linalg_few *f, int64_t rows, void *out) {
  for (int64_t col = 0; col < f->cols; col += LANES) {
    int64_t row = 0;
    for (; row + FEW <= rows; row += FEW) NAME(multiply_rows)(f, row, col, FEW, out);
    for (; row < rows; row++) NAME(multiply_rows)(f, row, col, 1, out);
  }
}
#undef FEW

/* Adds the products of rows 0 .. j-1 with their element in column j. */
INLINE void NAME(add_rows)(const T *rows, int j, int at, int vecs, T *inout) {
  V sum[4];
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] = NAME(load)(inout + at + v * LANES);
  for (int k = 0; k < j; k++) {
    const T *row = rows + k * TS_LINALG_BLOCK;
    V factor = SPLAT(row[j]);
    _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] =
        FMA(factor, NAME(load)(row + at + v * LANES), sum[v]);
  }
  memcpy(inout + at, sum, (size_t)vecs * sizeof(V));
}

/* inout[i] = (inout[i] - sums[i]) / d from the diagonal on, d the root of the diagonal element. If that is 0 all others
 * must be. */
INLINE bool NAME(finish_row)(int j, int n, const T *sums, T *inout) {
  int at = j / LANES * LANES;
  const T pivot = inout[j] - sums[j];
  V root = SQRT(SPLAT(pivot)), by = SPLAT(pivot > 0 ? root[0] : 1);
  if (!(pivot >= 0)) return false;
  for (int i = at; i < n; i += LANES) {
    V x = (NAME(load)(inout + i) - NAME(load)(sums + i)) / by;
    memcpy(inout + i, &x, sizeof x);
  }
  inout[j] = root[0];
  for (int i = j + 1; i < n && !(pivot > 0); i++)
    if (!(inout[i] == 0)) return false;
  return true;
}

static bool NAME(factor)(const ts_linalg_block *b) {
  T rows[TS_LINALG_BLOCK * TS_LINALG_BLOCK] __attribute__((aligned(64))), sums[TS_LINALG_BLOCK];
  memset(rows, 0, (size_t)b->n * TS_LINALG_BLOCK * sizeof(T));
  for (int j = 0; j < b->n; j++) {
    size_t bytes = (size_t)(b->n - j) * sizeof(T);
    T *row = rows + j * TS_LINALG_BLOCK;
    int at = j / LANES * LANES;
    memset(sums, 0, sizeof sums);
    if (b->sums) memcpy(sums + j, (const T *)b->sums + j * b->sums_row + j, bytes);
    for (; at + 3 * LANES < b->n; at += 4 * LANES) NAME(add_rows)(rows, j, at, 4, sums);
    for (; at < b->n; at += LANES) NAME(add_rows)(rows, j, at, 1, sums);
    memcpy(row + j, (const T *)b->rhs + j * b->rhs_row + j, bytes);
    if (!NAME(finish_row)(j, b->n, sums, row)) return false;
    memcpy((T *)b->out + j * b->out_row + j, row + j, bytes);
  }
  return true;
}

/* ---- matrices in lanes */

/* out += the products of `rows` rows, from row i on, with another row's vectors. */
INLINE void NAME(dot_rows)(const V *tile, int row, int col, int i, int rows, const V *other, int step, int k, V *out) {
  V sum[4];
  _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) sum[r] = SPLAT(0);
  for (int at = 0; at < k; at++) {
    V factor = other[at * step];
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) sum[r] = FMA(tile[(i + r) * row + at * col], factor, sum[r]);
  }
  _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) out[r] = sum[r];
}

/* Rows below the diagonal of column j. */
INLINE void NAME(finish_column)(V *tile, int n, int j, V root) {
  V sum[4];
  int i = j + 1;
  for (; i + 4 <= n; i += 4) {
    NAME(dot_rows)(tile, n, 1, i, 4, tile + j * n, 1, j, sum);
    _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++) tile[(i + r) * n + j] = (tile[(i + r) * n + j] - sum[r]) / root;
  }
  for (; i < n; i++) {
    NAME(dot_rows)(tile, n, 1, i, 1, tile + j * n, 1, j, sum);
    tile[i * n + j] = (tile[i * n + j] - sum[0]) / root;
  }
}

/* By the bits of lanes, where a column is not 0 below its diagonal. */
INLINE uint32_t NAME(find_nonzero)(const V *tile, int n, int j) {
  uint32_t found = 0;
  for (int i = j + 1; i < n; i++)
    for (int m = 0; m < LANES; m++) found |= (uint32_t) !(tile[i * n + j][m] == 0) << m;
  return found;
}

/* The factors in place; returns the lanes, as bits, that are not positive definite. */
INLINE uint32_t NAME(factor_tile)(V *tile, int n) {
  uint32_t bad = 0;
  for (int j = 0; j < n; j++) {
    V sum, *diagonal = tile + j * n + j;
    NAME(dot_rows)(tile, n, 1, j, 1, tile + j * n, 1, j, &sum);
    V pivot = *diagonal - sum;
    uint32_t zero = 0;
    for (int m = 0; m < LANES; m++) {
      bad |= (uint32_t) !(pivot[m] >= 0) << m;
      zero |= (uint32_t)(pivot[m] == 0) << m;
    }
    V by = *diagonal = SQRT(pivot);
    for (int m = 0; zero && m < LANES; m++) by[m] = zero >> m & 1 ? 1 : by[m];
    NAME(finish_column)(tile, n, j, by);
    if (zero) bad |= zero & NAME(find_nonzero)(tile, n, j);
  }
  return bad;
}

static void NAME(factor_group)(const ts_linalg_group *g, void *workspace) {
  V *tile = workspace;
  const int n = g->n;
  if (g->count < LANES) memset(tile, 0, (size_t)(n * n) * sizeof(V));
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)(const void *)g->matrix + m * g->matrix_step;
    T *to = (T *)workspace + m;
    for (int i = 0; i < n; i++)
      for (int k = 0; k <= i; k++) to[(i * n + k) * LANES] = from[i * n + k];
  }
  uint32_t bad = NAME(factor_tile)(tile, n);
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)workspace + m;
    T *to = (T *)(void *)g->out + m * g->out_step, none = (T)NAN;
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) to[i * n + k] = k > i ? 0 : bad >> m & 1 ? none : from[(i * n + k) * LANES];
  }
}

INLINE void NAME(solve_columns)(const V *tile, V *x, const ts_linalg_group *g, int col, int cols) {
  V sum[4];
  for (int i = 0; i < g->n; i++) {
    NAME(dot_rows)(x, 1, g->cols, col, cols, tile + i * g->n, 1, i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < cols; c++) {
      V *to = x + i * g->cols + col + c;
      *to -= sum[c];
      if (!g->unit) *to /= tile[i * g->n + i];
    }
  }
}

static void NAME(solve_group)(const ts_linalg_group *g, void *workspace) {
  V *tile = workspace, *x = tile + g->n * g->n;
  const int n = g->n;
  if (g->count < LANES) memset(workspace, 0, (size_t)(n * n + n * g->cols) * sizeof(V));
  for (int m = 0; m < g->count; m++) {
    const T *a = (const T *)(const void *)g->matrix + m * g->matrix_step,
            *b = (const T *)(const void *)g->rhs + m * g->rhs_step;
    T *ta = (T *)(void *)tile + m, *tb = (T *)(void *)x + m;
    for (int i = 0; i < n; i++)
      for (int k = 0; k <= i; k++) ta[(i * n + k) * LANES] = a[i * g->matrix_row + k * g->matrix_col];
    for (int i = 0; i < n; i++)
      for (int c = 0; c < g->cols; c++) tb[(i * g->cols + c) * LANES] = b[i * g->rhs_row + c * g->rhs_col];
  }
  int col = 0;
  for (; col + 4 <= g->cols; col += 4) NAME(solve_columns)(tile, x, g, col, 4);
  for (; col < g->cols; col++) NAME(solve_columns)(tile, x, g, col, 1);
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)(void *)x + m;
    T *to = (T *)(void *)g->out + m * g->out_step;
    for (int i = 0; i < n; i++)
      for (int c = 0; c < g->cols; c++) to[i * g->out_row + c * g->out_col] = from[(i * g->cols + c) * LANES];
  }
}

#include "kernel/linalg/linalg_vector_factor.h"
#include "kernel/linalg/linalg_vector_line.h"
#include "kernel/linalg/linalg_vector_lu.h"

#undef T
#undef V
#undef W
#undef I
#undef NAME
#undef FMA
#undef SPLAT
#undef SQRT
#undef LOAD_SOME
#undef STORE_SOME
#undef LANES
#undef INLINE
