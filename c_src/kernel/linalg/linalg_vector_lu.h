/* LU factors: the part of linalg_vector_type.h with pivots. */

/* ---- a panel of columns, stored as rows */

/* sums[i ...] += the products of rows 0 .. count-1 with their factors. */
INLINE void NAME(add_products)(const T *rows, int64_t stride, const T *factors, int count, int vecs, T *sums) {
  V sum[4];
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] = NAME(load)(sums + v * LANES);
  for (int k = 0; k < count; k++) {
    V factor = SPLAT(factors[k]);
    _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] =
        FMA(NAME(load)(rows + k * stride + v * LANES), factor, sum[v]);
  }
  memcpy(sums, sum, (size_t)vecs * sizeof(V));
}

/* The same for `cols` rows of factors and of sums, with shared loads: DEEP vectors of each. */
#define DEEP (VECTOR_BYTES == 64 ? 4 : 2)
INLINE void NAME(add_block)(const ts_linalg_panel *p, int c, int count, int cols, int64_t at) {
  const T *rows = (const T *)p->columns + at, *factors = (const T *)p->columns + c * p->row;
  T *sums = (T *)p->sums + c * p->row + at;
  V sum[4 * DEEP];
  _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++)
      sum[i * DEEP + v] = NAME(load)(sums + i * p->row + v * LANES);
  for (int k = 0; k < count; k++, rows += p->row) {
    V x[DEEP];
    _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++) x[v] = NAME(load)(rows + v * LANES);
    _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) {
      const V factor = SPLAT(factors[i * p->row + k]);
      _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++) sum[i * DEEP + v] = FMA(x[v], factor, sum[i * DEEP + v]);
    }
  }
  _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) memcpy(sums + i * p->row, sum + i * DEEP, DEEP * sizeof(V));
}

/* Rows up to here have the elements of U. */
INLINE int64_t NAME(head_of)(const ts_linalg_panel *p) { return (p->width + LANES - 1) / LANES * LANES; }

/* The elements of U in columns c to c + cols - 1 and rows `first` to `end` - 1, and the sums of the elements below up
 * to the head. Columns take turns, as each waits for its last sum. */
INLINE void NAME(sum_heads)(const ts_linalg_panel *p, int c, int cols, int first, int end) {
  const T *rows = p->columns;
  T *column = (T *)p->columns + c * p->row, *sums = (T *)p->sums + c * p->row;
  for (int k = first; k < end; k++) {
    _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) column[i * p->row + k] -= sums[i * p->row + k];
    for (int64_t at = (k + 1) / LANES * LANES; at < NAME(head_of)(p); at += LANES)
      _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++)
          NAME(add_products)(rows + k * p->row + at, 0, column + i * p->row + k, 1, 1, sums + i * p->row + at);
  }
}

/* The sums of column c below the head, over columns `first` to `end` - 1. */
INLINE void NAME(sum_below)(const ts_linalg_panel *p, int c, int first, int end, int64_t from) {
  const T *rows = (const T *)p->columns + first * p->row, *factors = (const T *)p->columns + c * p->row + first;
  T *sums = (T *)p->sums + c * p->row;
  int64_t i = from;
  for (; i + 4 * LANES <= p->rows; i += 4 * LANES)
    NAME(add_products)(rows + i, p->row, factors, end - first, 4, sums + i);
  for (; i < p->rows; i += LANES) NAME(add_products)(rows + i, p->row, factors, end - first, 1, sums + i);
}

/* The sums of some columns over all before the first of them. */
static void NAME(sum_columns)(const ts_linalg_panel *p, int c, int end) {
  if (end - c == 4)
    NAME(sum_heads)(p, c, 4, 0, c);
  else
    for (int i = c; i < end; i++) NAME(sum_heads)(p, i, 1, 0, c);
  int64_t at = NAME(head_of)(p);
  for (; end - c == 4 && at + DEEP * LANES <= p->rows; at += DEEP * LANES) NAME(add_block)(p, c, c, 4, at);
  for (int i = c; i < end; i++) NAME(sum_below)(p, i, 0, c, at);
}
#undef DEEP

/* Takes the sums from the elements of a column from c on; returns the largest size among them, NaN left out. */
INLINE T NAME(take_column)(T *column, const T *sums, int64_t c, int64_t rows) {
  V most = SPLAT(0);
  T largest = 0;
  int64_t i = c;
  for (; i + LANES <= rows; i += LANES) {
    const V x = NAME(load)(column + i) - NAME(load)(sums + i);
    memcpy(column + i, &x, sizeof x);
    most = NAME(larger)(NAME(size)(x), most);
  }
  for (; i < rows; i++) {
    column[i] -= sums[i];
    const T size = column[i] < 0 ? -column[i] : column[i];
    if (size > largest) largest = size;
  }
  for (int k = 0; k < LANES; k++)
    if (most[k] > largest) largest = most[k];
  return largest;
}

/* The first element of the largest size, but the first of all where that is NaN. */
INLINE int64_t NAME(find_pivot)(const T *column, int64_t from, int64_t rows, T largest) {
  int64_t i = from;
  if (column[from] != column[from]) return from;
  for (; i + LANES <= rows && !NAME(any)(NAME(size)(NAME(load)(column + i)) == SPLAT(largest)); i += LANES) {}
  for (; i < rows; i++)
    if (column[i] == largest || column[i] == -largest) return i;
  return from;
}

INLINE void NAME(divide_column)(T *column, int64_t from, int64_t rows, T by) {
  int64_t i = from;
  for (; i + LANES <= rows; i += LANES) {
    const V x = NAME(load)(column + i) / SPLAT(by);
    memcpy(column + i, &x, sizeof x);
  }
  for (; i < rows; i++) column[i] /= by;
}

INLINE void NAME(exchange)(T *a, T *b) {
  T kept = *a;
  *a = *b;
  *b = kept;
}

INLINE void NAME(factor_column)(const ts_linalg_panel *p, int c) {
  T *column = (T *)p->columns + c * p->row;
  const T largest = NAME(take_column)(column, (const T *)p->sums + c * p->row, c, p->rows);
  const int64_t pivot = p->pivots[c] = NAME(find_pivot)(column, c, p->rows, largest);
  for (int k = 0; pivot != c && k < p->width; k++)
    NAME(exchange)((T *)p->columns + k * p->row + c, (T *)p->columns + k * p->row + pivot);
  for (int k = c + 1; pivot != c && k < p->width; k++)
    NAME(exchange)((T *)p->sums + k * p->row + c, (T *)p->sums + k * p->row + pivot);
  if (column[c] != 0) NAME(divide_column)(column, c + 1, p->rows, column[c]);
}

/* Columns that read those before them at once. */
#define SOME 4
static void NAME(factor_panel)(const ts_linalg_panel *p) {
  for (int first = 0; first < p->width; first += SOME) {
    const int end = p->width < first + SOME ? p->width : first + SOME;
    NAME(sum_columns)(p, first, end);
    for (int c = first; c < end; c++) {
      NAME(sum_heads)(p, c, 1, first, c);
      NAME(sum_below)(p, c, first, c, NAME(head_of)(p));
      NAME(factor_column)(p, c);
    }
  }
}
#undef SOME

/* ---- matrices in lanes */

INLINE void NAME(swap_lane)(V *rows, int cols, int a, int b, int lane) {
  T *x = (T *)rows + a * cols * LANES + lane, *y = (T *)rows + b * cols * LANES + lane;
  for (int k = 0; k < cols; k++) NAME(exchange)(x + k * LANES, y + k * LANES);
}

/* Brings the largest element of column c of each lane to its diagonal; returns the lanes whose rows were exchanged. */
INLINE uint32_t NAME(pivot_lanes)(V *tile, int n, int c, V *rhs, int cols) {
  uint32_t exchanged = 0;
  for (int m = 0; m < LANES; m++) {
    const T *column = (const T *)tile + c * LANES + m;
    int best = c;
    for (int i = c + 1; i < n; i++) {
      T size = column[i * n * LANES], most = column[best * n * LANES];
      if ((size < 0 ? -size : size) > (most < 0 ? -most : most)) best = i;
    }
    if (best == c) continue;
    exchanged |= UINT32_C(1) << m;
    NAME(swap_lane)(tile, n, c, best, m);
    if (rhs) NAME(swap_lane)(rhs, cols, c, best, m);
  }
  return exchanged;
}

/* The factors in place; returns the lanes that had an odd number of exchanges. */
INLINE uint32_t NAME(lu_tile)(V *tile, int n, V *rhs, int cols) {
  uint32_t odd = 0;
  V sum[4];
  for (int c = 0; c < n; c++) {
    int i = 1;
    for (; i < c; i++) {
      NAME(dot_rows)(tile, n, 1, i, 1, tile + c, n, i, sum);
      tile[i * n + c] -= sum[0];
    }
    for (i = c; i + 4 <= n; i += 4) {
      NAME(dot_rows)(tile, n, 1, i, 4, tile + c, n, c, sum);
      _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++) tile[(i + r) * n + c] -= sum[r];
    }
    for (; i < n; i++) {
      NAME(dot_rows)(tile, n, 1, i, 1, tile + c, n, c, sum);
      tile[i * n + c] -= sum[0];
    }
    odd ^= NAME(pivot_lanes)(tile, n, c, rhs, cols);
    V by = tile[c * n + c];
    for (int m = 0; m < LANES; m++) by[m] = by[m] == 0 ? 1 : by[m];
    for (i = c + 1; i < n; i++) tile[i * n + c] /= by;
  }
  return odd;
}

INLINE void NAME(substitute)(const V *tile, int n, V *x, int cols, int col, int some) {
  V sum[4];
  for (int i = 0; i < n; i++) {
    NAME(dot_rows)(x, 1, cols, col, some, tile + i * n, 1, i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < some; c++) x[i * cols + col + c] -= sum[c];
  }
  for (int i = n - 1; i >= 0; i--) {
    NAME(dot_rows)(x + (n - 1) * cols, 1, -cols, col, some, tile + i * n + n - 1, -1, n - 1 - i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < some; c++) x[i * cols + col + c] =
        (x[i * cols + col + c] - sum[c]) / tile[i * n + i];
  }
}

/* Rows of dense matrices to and from lanes. */
INLINE void NAME(to_lanes)(const char *from, int64_t step, int count, int elements, V *tile) {
  if (count < LANES) memset(tile, 0, (size_t)elements * sizeof(V));
  for (int m = 0; m < count; m++)
    for (int i = 0; i < elements; i++) ((T *)tile)[i * LANES + m] = ((const T *)(const void *)from)[m * step + i];
}

static void NAME(solve_full_group)(const ts_linalg_group *g, void *workspace) {
  const int n = g->n, cols = g->cols;
  V *tile = workspace, *x = tile + n * n;
  int col = 0;
  NAME(to_lanes)(g->matrix, g->matrix_step, g->count, n * n, tile);
  NAME(to_lanes)(g->rhs, g->rhs_step, g->count, n * cols, x);
  (void)NAME(lu_tile)(tile, n, x, cols);
  for (; col + 4 <= cols; col += 4) NAME(substitute)(tile, n, x, cols, col, 4);
  for (; col < cols; col++) NAME(substitute)(tile, n, x, cols, col, 1);
  for (int m = 0; m < g->count; m++)
    for (int i = 0; i < n * cols; i++) ((T *)(void *)g->out)[m * g->out_step + i] = ((const T *)x)[i * LANES + m];
}

/* The product of one lane's diagonal, whose partial products are beyond the range. */
INLINE T NAME(far_product)(const T *tile, int n, bool odd) {
  ts_linalg_product product = {odd ? -1 : 1, 0};
  for (int i = 0; i < n; i++) ts_linalg_multiply(&product, (double)tile[i * (n + 1) * LANES], sizeof(T) == 4);
  return (T)ts_linalg_raised(product.part, product.power);
}

static void NAME(determinant_group)(const ts_linalg_group *g, void *workspace) {
  const V low = SPLAT((T)(sizeof(T) == 4 ? 0x1p-100 : 0x1p-900)), high = SPLAT((T)(sizeof(T) == 4 ? 0x1p100 : 0x1p900));
  const int n = g->n;
  V *tile = workspace, product;
  I near = ~(I)SPLAT(0);
  NAME(to_lanes)(g->matrix, g->matrix_step, g->count, n * n, tile);
  const uint32_t odd = NAME(lu_tile)(tile, n, NULL, 0);
  for (int m = 0; m < LANES; m++) product[m] = odd >> m & 1 ? -1 : 1;
  for (int i = 0; i < n; i++) {
    product *= tile[i * (n + 1)];
    near &= (NAME(size)(product) > low) & (NAME(size)(product) < high);
  }
  for (int m = 0; m < g->count; m++)
    ((T *)(void *)g->out)[m * g->out_step] =
        near[m] ? product[m] : NAME(far_product)((const T *)tile + m, n, odd >> m & 1);
}

/* Row i of the factors was row order[i] of the matrix. */
INLINE void NAME(put_factors)(const ts_linalg_group *g, const T *tile, const T *order, int m) {
  const int n = g->n;
  T *p = (T *)(void *)g->out + m * g->out_step, *lower = (T *)(void *)g->lower + m * g->out_step,
    *upper = (T *)(void *)g->upper + m * g->out_step;
  memset(p, 0, (size_t)(n * n) * sizeof(T));
  for (int i = 0; i < n; i++) {
    p[(int)order[i * LANES + m] * n + i] = 1;
    for (int k = 0; k < n; k++) {
      const T x = tile[(i * n + k) * LANES + m];
      lower[i * n + k] = k < i ? x : k == i;
      upper[i * n + k] = k < i ? 0 : x;
    }
  }
}

static void NAME(lu_group)(const ts_linalg_group *g, void *workspace) {
  const int n = g->n;
  V *tile = workspace, *order = tile + n * n;
  NAME(to_lanes)(g->matrix, g->matrix_step, g->count, n * n, tile);
  for (int i = 0; i < n; i++) order[i] = SPLAT((T)i);
  (void)NAME(lu_tile)(tile, n, order, 1);
  for (int m = 0; m < g->count; m++) NAME(put_factors)(g, (const T *)tile, (const T *)order, m);
}
