/* The part of linalg_vector_body.h for one type: T, its vectors V, integers W as wide and their vectors I, NAME, and
 * FMA, SPLAT, SQRT, SWAPPED, LOWER and UPPER of vectors. */
#define LANES ((int)(sizeof(V) / sizeof(T)))
#define SELECT(mask, a, b) ((V)(((mask) & (I)(a)) | (~(mask) & (I)(b))))

INLINE V NAME(load)(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* Up to LANES elements, zeros behind them. */
INLINE V NAME(load_up_to)(const T *from, int64_t count) {
  if (count >= LANES) return NAME(load)(from);
  return count > 0 ? LOAD_SOME(from, count) : SPLAT(0);
}

INLINE void NAME(store_up_to)(T *to, int64_t count, V x) {
  if (count >= LANES)
    memcpy(to, &x, sizeof x);
  else
    STORE_SOME(to, count, x);
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
  const T *rhs = (const T *)b->rhs + i * b->rhs_row * c->parts + c->first;
  T *out = (T *)b->out + i * b->out_row * c->parts + c->first;
  V *x = c->tile + i * c->parts * vecs;
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[v] =
      NAME(load_up_to)(rhs + v * LANES, c->count - v * LANES) - sum[v];
  if (!b->unit)
    NAME(divide)(x, vecs, (const T *)b->matrix + i * (b->matrix_row + 1) * c->parts, b->hermitian ? 1 : c->parts);
  if (c->parts == 2) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[vecs + v] = NAME(times_i)(x[v]);
  _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) NAME(store_up_to)(out + v * LANES, c->count - v * LANES, x[v]);
}

/* Some rows at once, so that their chains hide the latency of a multiply-add. */
INLINE void NAME(solve_rows)(const NAME(chunk) * c, int i, int rows, int vecs) {
  const ts_linalg_block *b = c->b;
  const int64_t step = b->matrix_row * c->parts;
  const T *row = (const T *)b->matrix + i * step;
  V sum[WIDE * SOLVED];
  _Pragma("GCC unroll 16") for (int v = 0; v < rows * vecs; v++) sum[v] = SPLAT(0);
  if (b->sums)
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
        sum[r * vecs + v] = NAME(load_up_to)(
            (const T *)b->sums + (i + r) * b->sums_row * c->parts + c->first + v * LANES, c->count - v * LANES);
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

/* Subtracts from column c of rows i to end - 1 their products with another row's vectors. */
INLINE void NAME(take_products)(V *tile, int n, int c, int i, int end, const V *other, int step, int k) {
  V sum[4];
  for (; i + 4 <= end; i += 4) {
    NAME(dot_rows)(tile, n, 1, i, 4, other, step, k, sum);
    _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++) tile[(i + r) * n + c] -= sum[r];
  }
  for (; i < end; i++) {
    NAME(dot_rows)(tile, n, 1, i, 1, other, step, k, sum);
    tile[i * n + c] -= sum[0];
  }
}

/* Each pass puts the lanes of two vectors in turn: as many passes as a lane's number has bits transpose a square. */
INLINE void NAME(transpose)(V *square) {
  V x[LANES];
  _Pragma("GCC unroll 4") for (int pass = 1; pass < LANES; pass *= 2) {
    memcpy(x, square, sizeof x);
    _Pragma("GCC unroll 8") for (int k = 0; k < LANES / 2; k++) {
      square[2 * k] = LOWER(x[k], x[k + LANES / 2]);
      square[2 * k + 1] = UPPER(x[k], x[k + LANES / 2]);
    }
  }
}

/* One dense matrix in each lane. Lanes without a matrix are 0. */
INLINE void NAME(to_lanes)(const T *from, int count, int elements, V *to) {
  const V none = SPLAT(0);
  for (int i = 0; i < elements; i += LANES) {
    V x[LANES];
    _Pragma("GCC unroll 16") for (int m = 0; m < LANES; m++) x[m] =
        m < count ? NAME(load_up_to)(from + m * elements + i, elements - i) : none;
    NAME(transpose)(x);
    _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) if (i + k < elements) to[i + k] = x[k];
  }
}

INLINE void NAME(from_lanes)(const V *from, int count, int elements, T *to) {
  const V none = SPLAT(0);
  for (int i = 0; i < elements; i += LANES) {
    V x[LANES];
    _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) x[k] = i + k < elements ? from[i + k] : none;
    NAME(transpose)(x);
    _Pragma("GCC unroll 16") for (int m = 0; m < LANES; m++) if (m < count)
        NAME(store_up_to)(to + m * elements + i, elements - i, x[m]);
  }
}

/* The factors in place; returns the lanes that are not positive semidefinite: where a number on the diagonal is 0,
 * those below it must be, too. */
INLINE I NAME(factor_tile)(V *tile, int n) {
  const V none = SPLAT(0);
  I bad = (I)none;
  for (int j = 0; j < n; j++) {
    NAME(take_products)(tile, n, j, j, n, tile + j * n, 1, j);
    const V pivot = tile[j * n + j], root = tile[j * n + j] = SQRT(pivot);
    const I zero = pivot == none;
    bad |= ~(pivot >= none);
    for (int i = j + 1; i < n; i++) {
      tile[i * n + j] /= SELECT(zero, SPLAT(1), root);
      bad |= zero & (tile[i * n + j] != none);
    }
  }
  return bad;
}

static void NAME(factor_group)(const ts_linalg_group *g, void *workspace) {
  V *tile = workspace;
  const int n = g->n;
  const V none = SPLAT(0), nan = SPLAT((T)NAN);
  NAME(to_lanes)(g->matrix, g->count, n * n, tile);
  const I bad = NAME(factor_tile)(tile, n);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) tile[i * n + k] = k > i ? none : SELECT(bad, nan, tile[i * n + k]);
  NAME(from_lanes)(tile, g->count, n * n, g->out);
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
#undef LOWER
#undef UPPER
#undef LOAD_SOME
#undef STORE_SOME
#undef LANES
#undef SELECT
