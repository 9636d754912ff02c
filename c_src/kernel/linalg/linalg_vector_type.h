/* The part of linalg_vector_body.h for one type: T, its vectors V, integers W as wide and their vectors I, NAME, and
 * FMA, SPLAT, SQRT and SWAPPED of vectors. */
#define LANES ((int)(sizeof(V) / sizeof(T)))
#define INLINE static inline __attribute__((always_inline))

INLINE V NAME(load)(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* ---- numbers: a real one has one part, a complex one has two, neighbours in memory and lanes */

INLINE V NAME(alternating)(T even, T odd) {
  V v = SPLAT(even);
  _Pragma("GCC unroll 8") for (int k = 1; k < LANES; k += 2) v[k] = odd;
  return v;
}

/* i times each number. */
INLINE V NAME(times_i)(V x) { return SWAPPED(x) * NAME(alternating)(-1, 1); }

/* sum + a * x */
INLINE V NAME(plus_product)(V sum, const T *a, V x, int parts) {
  sum = FMA(SPLAT(a[0]), x, sum);
  if (parts == 2) sum = FMA(SPLAT(a[1]), NAME(times_i)(x), sum);
  return sum;
}

INLINE void NAME(divide_one_by_one)(V *x, int vecs, factor_number by) {
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) for (int k = 0; k < LANES; k += 2) {
    const factor_number z = factor_quotient((factor_number){(double)x[v][k], (double)x[v][k + 1]}, by);
    x[v][k] = (T)z.re, x[v][k + 1] = (T)z.im;
  }
}

/* By Smith's method, with the bits of factor_quotient. */
INLINE void NAME(divide_complex)(V *x, int vecs, T re, T im) {
  const bool swap = fabs((double)im) > fabs((double)re);
  const T large = swap ? im : re, small = swap ? re : im, ratio = small / large, divisor = large + small * ratio;
  const V own = SPLAT(swap ? ratio : 1), other = swap ? NAME(alternating)(1, -1) : NAME(alternating)(ratio, -ratio);
  const factor_number by = {(double)re, (double)im};
  if (factor_is_zero(by) || factor_is_far(by)) {
    NAME(divide_one_by_one)(x, vecs, by);
    return;
  }
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[v] = (own * x[v] + other * SWAPPED(x[v])) / SPLAT(divisor);
}

INLINE void NAME(divide)(V *x, int vecs, const T *by, int parts) {
  if (parts == 2)
    NAME(divide_complex)(x, vecs, by[0], by[1]);
  else
    _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[v] /= SPLAT(by[0]);
}

/* ---- columns in lanes: strides are in numbers, `first` and `count` of columns in parts */

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
  V *tile; /* the rows of the solution, each followed by i times it where it is complex */
  int parts;
} NAME(chunk);

/* A row: its right side less its sums, over the diagonal. */
INLINE void NAME(finish_solution)(const NAME(chunk) * c, int i, int vecs, const V *sum) {
  const ts_linalg_block *b = c->b;
  V rhs[WIDE], *x = c->tile + i * c->parts * vecs;
  NAME(load_row)((const T *)b->rhs + i * b->rhs_row * c->parts + c->first, c->count, vecs, rhs);
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[v] = rhs[v] - sum[v];
  if (!b->unit) NAME(divide)(x, vecs, (const T *)b->matrix + i * (b->n + 1) * c->parts, b->hermitian ? 1 : c->parts);
  if (c->parts == 2) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[vecs + v] = NAME(times_i)(x[v]);
  memcpy((T *)b->out + i * b->out_row * c->parts + c->first, x, (size_t)c->count * sizeof(T));
}

/* Some rows at once, so that their chains hide the latency of a multiply-add. */
INLINE void NAME(solve_rows)(const NAME(chunk) * c, int i, int rows, int vecs) {
  const ts_linalg_block *b = c->b;
  const int64_t step = b->n * c->parts;
  const T *row = (const T *)b->matrix + i * step;
  V sum[WIDE * SOLVED];
  _Pragma("GCC unroll 16") for (int v = 0; v < rows * vecs; v++) sum[v] = SPLAT(0);
  if (b->sums)
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) NAME(load_row)(
        (const T *)b->sums + (i + r) * b->sums_row * c->parts + c->first, c->count, vecs, sum + r * vecs);
  for (int k = 0; k < i * c->parts; k++)
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
        sum[r * vecs + v] = FMA(SPLAT(row[r * step + k]), c->tile[k * vecs + v], sum[r * vecs + v]);
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
    NAME(finish_solution)(c, i + r, vecs, sum + r * vecs);
    for (int k = (i + r) * c->parts; k < (i + r + 1) * c->parts; k++)
      _Pragma("GCC unroll 8") for (int q = r + 1; q < rows; q++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
          sum[q * vecs + v] = FMA(SPLAT(row[q * step + k]), c->tile[k * vecs + v], sum[q * vecs + v]);
  }
}

INLINE void NAME(solve_chunk)(NAME(chunk) c, int64_t first, int64_t count, int rows, int vecs) {
  V tile[TS_LINALG_BLOCK * WIDE];
  int i = 0;
  c.first = first, c.count = count, c.tile = tile;
  for (; i + rows <= c.b->n; i += rows) NAME(solve_rows)(&c, i, rows, vecs);
  for (; i < c.b->n; i++) NAME(solve_rows)(&c, i, 1, vecs);
}

INLINE void NAME(solve_parts)(const ts_linalg_block *b, int64_t first, int64_t count, int parts) {
  const NAME(chunk) c = {.b = b, .parts = parts};
  for (first *= parts, count *= parts; count >= WIDE * LANES; first += WIDE * LANES, count -= WIDE * LANES)
    NAME(solve_chunk)(c, first, WIDE * LANES, SOLVED, WIDE);
  for (; count > 0; first += LANES, count -= LANES) NAME(solve_chunk)(c, first, count < LANES ? count : LANES, 8, 1);
}

/* Rows of a product that are computed at once: as many chains hide the latency of a multiply-add. */
#define FEW 8

INLINE void NAME(multiply_rows)(const ts_linalg_few *f, int64_t row, int64_t col, int rows, T *out, int parts) {
  const T *a = (const T *)f->matrix + row * f->matrix_row * parts, *x = (const T *)f->rows + col;
  const int64_t cols = f->cols * parts, some = cols - col < LANES ? cols - col : LANES;
  V sums[FEW];
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] = SPLAT(0);
  for (int64_t k = 0; k < f->count; k++, a += f->matrix_col * parts, x += f->row * parts) {
    const V v = LOAD_SOME(x, some);
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] =
        NAME(plus_product)(sums[r], a + r * f->matrix_row * parts, v, parts);
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) STORE_SOME(out + (row + r) * cols + col, some, sums[r]);
}

INLINE void NAME(multiply_few_parts)(const ts_linalg_few *f, int64_t rows, T *out, int parts) {
  for (int64_t col = 0; col < f->cols * parts; col += LANES) {
    int64_t row = 0;
    for (; row + FEW <= rows; row += FEW) NAME(multiply_rows)(f, row, col, FEW, out, parts);
    for (; row < rows; row++) NAME(multiply_rows)(f, row, col, 1, out, parts);
  }
}
#undef FEW

/* Adds the products of rows 0 .. j-1 with the conjugate of their number in column j. */
INLINE void NAME(add_rows)(const T *rows, int j, int at, int vecs, T *inout, int parts) {
  V sum[4];
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] = NAME(load)(inout + at + v * LANES);
  for (int k = 0; k < j; k++) {
    const T *row = rows + k * TS_LINALG_BLOCK, by[2] = {row[j * parts], parts == 2 ? -row[j * parts + 1] : 0};
    _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] =
        NAME(plus_product)(sum[v], by, NAME(load)(row + at + v * LANES), parts);
  }
  memcpy(inout + at, sum, (size_t)vecs * sizeof(V));
}

/* inout[i] = (inout[i] - sums[i]) / d from the diagonal, part j, on; d is the root of the diagonal element. If that is
 * 0 all others must be. */
INLINE bool NAME(finish_row)(int j, int n, const T *sums, T *inout, int parts) {
  int at = j / LANES * LANES;
  const T pivot = inout[j] - sums[j];
  V root = SQRT(SPLAT(pivot)), by = SPLAT(pivot > 0 ? root[0] : 1);
  if (!(pivot >= 0)) return false;
  for (int i = at; i < n; i += LANES) {
    V x = (NAME(load)(inout + i) - NAME(load)(sums + i)) / by;
    memcpy(inout + i, &x, sizeof x);
  }
  inout[j] = root[0];
  if (parts == 2) inout[j + 1] = 0;
  for (int i = j + 1; i < n && !(pivot > 0); i++)
    if (!(inout[i] == 0)) return false;
  return true;
}

INLINE bool NAME(factor_parts)(const ts_linalg_block *b, int parts) {
  T rows[TS_LINALG_BLOCK * TS_LINALG_BLOCK] __attribute__((aligned(64))), sums[TS_LINALG_BLOCK];
  const int n = b->n * parts;
  for (int j = 0; j < b->n; j++) {
    const int first = j * parts;
    const size_t bytes = (size_t)(n - first) * sizeof(T);
    T *row = rows + j * TS_LINALG_BLOCK;
    int at = first / LANES * LANES;
    const size_t all = (size_t)((n + LANES - 1) / LANES * LANES - at) * sizeof(T);
    memset(row + at, 0, all); /* earlier elements are not read */
    memset(sums + at, 0, all);
    if (b->sums) memcpy(sums + first, (const T *)b->sums + j * b->sums_row * parts + first, bytes);
    for (; at + 3 * LANES < n; at += 4 * LANES) NAME(add_rows)(rows, j, at, 4, sums, parts);
    for (; at < n; at += LANES) NAME(add_rows)(rows, j, at, 1, sums, parts);
    memcpy(row + first, (const T *)b->rhs + j * b->rhs_row * parts + first, bytes);
    if (!NAME(finish_row)(first, n, sums, row, parts)) return false;
    memcpy((T *)b->out + j * b->out_row * parts + first, row + first, bytes);
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

/* One matrix in each lane: a dense one, or the lower triangle of a matrix with the strides `row` and `col`. */
INLINE void NAME(load_matrices)(const ts_linalg_group *g, bool lower, int64_t row, int64_t col, V *tile) {
  const int n = g->n;
  if (g->count < LANES) memset(tile, 0, (size_t)(n * n) * sizeof(V));
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)(const void *)g->matrix + m * g->matrix_step;
    T *to = (T *)tile + m;
    for (int i = 0; i < (lower ? n : 1); i++)
      for (int k = 0; k < (lower ? i + 1 : n * n); k++) to[(i * n + k) * LANES] = from[i * row + k * col];
  }
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
  NAME(load_matrices)(g, true, n, 1, tile);
  uint32_t bad = NAME(factor_tile)(tile, n);
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)workspace + m;
    T *to = (T *)(void *)g->out + m * g->out_step, none = (T)NAN;
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) to[i * n + k] = k > i ? 0 : bad >> m & 1 ? none : from[(i * n + k) * LANES];
  }
}

#include "kernel/linalg/linalg_vector_factor.h"
#include "kernel/linalg/linalg_vector_line.h"
#include "kernel/linalg/linalg_vector_lu.h"

/* ---- the functions on blocks, of real and of complex numbers */

#define DEFINE_BLOCKS(TYPE, NUMBER_PARTS)                                                             \
  static void solve_##TYPE(const ts_linalg_block *b, int64_t first, int64_t count) {                  \
    NAME(solve_parts)(b, first, count, NUMBER_PARTS);                                                 \
  }                                                                                                   \
  static void multiply_few_##TYPE(const ts_linalg_few *f, int64_t rows, void *out) {                  \
    NAME(multiply_few_parts)(f, rows, out, NUMBER_PARTS);                                             \
  }                                                                                                   \
  static bool factor_##TYPE(const ts_linalg_block *b) { return NAME(factor_parts)(b, NUMBER_PARTS); } \
  static void factor_panel_##TYPE(const ts_linalg_panel *p) { NAME(factor_panel_parts)(p, NUMBER_PARTS); }
#ifdef FOR_ALL_TYPES
DEFINE_BLOCKS(f64, 1)
DEFINE_BLOCKS(c128, 2)
#else
DEFINE_BLOCKS(f32, 1)
#endif
#undef DEFINE_BLOCKS

#undef T
#undef V
#undef W
#undef I
#undef NAME
#undef FMA
#undef SPLAT
#undef SQRT
#undef SWAPPED
#undef LOAD_SOME
#undef STORE_SOME
#undef LANES
#undef INLINE
