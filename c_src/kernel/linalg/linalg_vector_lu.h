/* LU factors: the part of linalg_vector_type.h with pivots. */

/* ---- a panel of columns, stored as rows: rows and places in them are counted in parts */

/* A panel, with the parts of a number, of a column, and from a column to the next. */
typedef struct NAME(panel) {
  T *columns, *sums;
  int64_t row, rows;
  int width, parts;
  int64_t *pivots;
} NAME(panel);

INLINE T *NAME(column_of)(const NAME(panel) * p, int c) { return p->columns + c * p->row; }
INLINE T *NAME(sums_of)(const NAME(panel) * p, int c) { return p->sums + c * p->row; }

/* Sums from part `at` of a column on += the products of columns `first` to `end` - 1 with the numbers of the column. */
INLINE void NAME(add_products)(const NAME(panel) * p, int c, int first, int end, int64_t at, int vecs) {
  const T *rows = NAME(column_of)(p, first) + at, *factors = NAME(column_of)(p, c);
  T *sums = NAME(sums_of)(p, c) + at;
  V sum[4];
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] = NAME(load)(sums + v * LANES);
  for (int k = first; k < end; k++, rows += p->row)
    _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) sum[v] =
        NAME(plus_product)(sum[v], factors + k * p->parts, NAME(load)(rows + v * LANES), p->parts);
  memcpy(sums, sum, (size_t)vecs * sizeof(V));
}

/* The same for columns c to c + cols - 1 over all columns before them, with shared loads: DEEP vectors of each. */
#define DEEP (VECTOR_BYTES == 64 ? 4 : 2)
INLINE void NAME(add_block)(const NAME(panel) * p, int c, int cols, int64_t at) {
  const T *rows = p->columns + at, *factors = NAME(column_of)(p, c);
  T *sums = NAME(sums_of)(p, c) + at;
  V sum[4 * DEEP];
  _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++)
      sum[i * DEEP + v] = NAME(load)(sums + i * p->row + v * LANES);
  for (int k = 0; k < c; k++, rows += p->row) {
    V x[DEEP];
    _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++) x[v] = NAME(load)(rows + v * LANES);
    _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) _Pragma("GCC unroll 4") for (int v = 0; v < DEEP; v++)
        sum[i * DEEP + v] = NAME(plus_product)(sum[i * DEEP + v], factors + i * p->row + k * p->parts, x[v], p->parts);
  }
  _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) memcpy(sums + i * p->row, sum + i * DEEP, DEEP * sizeof(V));
}

/* Parts up to here have the elements of U. */
INLINE int64_t NAME(head_of)(const NAME(panel) * p) { return (p->width * p->parts + LANES - 1) / LANES * LANES; }

/* The elements of U in columns c to c + cols - 1 and rows `first` to `end` - 1, and the sums of the elements below up
 * to the head. Columns take turns, as each waits for its last sum. */
INLINE void NAME(sum_heads)(const NAME(panel) * p, int c, int cols, int first, int end) {
  T *column = NAME(column_of)(p, c), *sums = NAME(sums_of)(p, c);
  for (int k = first; k < end; k++) {
    for (int64_t part = k * p->parts; part < (k + 1) * p->parts; part++)
      _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) column[i * p->row + part] -= sums[i * p->row + part];
    for (int64_t at = (k + 1) * p->parts / LANES * LANES; at < NAME(head_of)(p); at += LANES)
      _Pragma("GCC unroll 4") for (int i = 0; i < cols; i++) NAME(add_products)(p, c + i, k, k + 1, at, 1);
  }
}

/* The sums of column c below the head, over columns `first` to `end` - 1. */
INLINE void NAME(sum_below)(const NAME(panel) * p, int c, int first, int end, int64_t from) {
  int64_t i = from;
  for (; i + 4 * LANES <= p->rows; i += 4 * LANES) NAME(add_products)(p, c, first, end, i, 4);
  for (; i < p->rows; i += LANES) NAME(add_products)(p, c, first, end, i, 1);
}

/* The sums of some columns over all before the first of them. */
INLINE void NAME(sum_columns)(const NAME(panel) * p, int c, int end) {
  if (end - c == 4)
    NAME(sum_heads)(p, c, 4, 0, c);
  else
    for (int i = c; i < end; i++) NAME(sum_heads)(p, i, 1, 0, c);
  int64_t at = NAME(head_of)(p);
  for (; end - c == 4 && at + DEEP * LANES <= p->rows; at += DEEP * LANES) NAME(add_block)(p, c, 4, at);
  for (int i = c; i < end; i++) NAME(sum_below)(p, i, 0, c, at);
}
#undef DEEP

/* Of each part: what sizes are compared by, which of complex numbers is their square. */
INLINE V NAME(sizes)(V x, int parts) {
  const V square = x * x;
  return parts == 2 ? square + SWAPPED(square) : NAME(size)(x);
}

/* Takes the sums from the elements of a column from part c on; returns the largest size among them, NaN left out. */
INLINE T NAME(take_column)(T *column, const T *sums, int64_t c, int64_t rows, int parts) {
  V most = SPLAT(0);
  T largest = 0;
  for (int64_t i = c; i < rows; i += LANES) {
    const V x = NAME(load_up_to)(column + i, rows - i) - NAME(load_up_to)(sums + i, rows - i);
    NAME(store_up_to)(column + i, rows - i, x);
    most = NAME(larger)(NAME(sizes)(x, parts), most);
  }
  for (int k = 0; k < LANES; k++)
    if (most[k] > largest) largest = most[k];
  return largest;
}

/* The first complex number of largest size, also where squares overflow or underflow. */
static int64_t NAME(find_far_pivot)(const T *column, int64_t from, int64_t rows) {
  T most = 0;
  double largest = 0;
  int64_t best = from;
  for (int64_t i = from; i < rows; i++) most = column[i] > most ? column[i] : -column[i] > most ? -column[i] : most;
  const double by = factor_is_far_size((double)most) ? factor_lift((double)most) : 1;
  for (int64_t i = from; i < rows; i += 2) {
    const double size = hypot((double)column[i] * by, (double)column[i + 1] * by);
    if (size > largest) largest = size, best = i;
  }
  return best;
}

/* The first element of the largest size, but the first of all where that is NaN. */
INLINE int64_t NAME(find_pivot)(const T *column, int64_t from, int64_t rows, T largest, int parts) {
  if (column[from] != column[from] || column[from + parts - 1] != column[from + parts - 1]) return from;
  if (parts == 2 && !(largest > (T)1e-280 && largest < (T)1e300)) return NAME(find_far_pivot)(column, from, rows);
  for (int64_t i = from; i < rows; i += LANES) {
    const V sizes = NAME(sizes)(NAME(load_up_to)(column + i, rows - i), parts);
    if (!NAME(any)(sizes == SPLAT(largest))) continue;
    for (int k = 0; k < LANES; k += parts)
      if (sizes[k] == largest) return i + k;
  }
  return from;
}

INLINE void NAME(divide_column)(T *column, int64_t from, int64_t rows, const T *by, int parts) {
  for (int64_t i = from; i < rows; i += LANES) {
    V x = NAME(load_up_to)(column + i, rows - i);
    NAME(divide)(&x, 1, by, parts);
    NAME(store_up_to)(column + i, rows - i, x);
  }
}

INLINE void NAME(exchange)(T *a, T *b) {
  T kept = *a;
  *a = *b;
  *b = kept;
}

INLINE void NAME(factor_column)(const NAME(panel) * p, int c) {
  T *column = NAME(column_of)(p, c);
  const int64_t at = c * p->parts;
  const T largest = NAME(take_column)(column, NAME(sums_of)(p, c), at, p->rows, p->parts);
  const int64_t pivot = NAME(find_pivot)(column, at, p->rows, largest, p->parts);
  p->pivots[c] = pivot / p->parts;
  for (int part = 0; pivot != at && part < p->parts; part++)
    for (int k = 0; k < p->width; k++) {
      NAME(exchange)(NAME(column_of)(p, k) + at + part, NAME(column_of)(p, k) + pivot + part);
      if (k > c) NAME(exchange)(NAME(sums_of)(p, k) + at + part, NAME(sums_of)(p, k) + pivot + part);
    }
  const T by[2] = {column[at], p->parts == 2 ? column[at + 1] : 0};
  if (by[0] != 0 || by[1] != 0) NAME(divide_column)(column, at + p->parts, p->rows, by, p->parts);
}

/* Columns that read those before them at once. */
#define SOME 4
INLINE void NAME(factor_panel_parts)(const ts_linalg_panel *q, int parts) {
  const NAME(panel) p = {q->columns, q->sums, q->row * parts, q->rows * parts, q->width, parts, q->pivots};
  for (int first = 0; first < p.width; first += SOME) {
    const int end = p.width < first + SOME ? p.width : first + SOME;
    NAME(sum_columns)(&p, first, end);
    for (int c = first; c < end; c++) {
      NAME(sum_heads)(&p, c, 1, first, c);
      NAME(sum_below)(&p, c, first, c, NAME(head_of)(&p));
      NAME(factor_column)(&p, c);
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

/* Solves by the lower triangle and, of a full matrix, by the upper one after it. */
INLINE void NAME(substitute)(const ts_linalg_group *g, bool full, const V *tile, V *x, int some) {
  const int n = g->n, cols = g->cols;
  V sum[4];
  for (int i = 0; i < n; i++) {
    NAME(dot_rows)(x, 1, cols, 0, some, tile + i * n, 1, i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < some; c++) {
      x[i * cols + c] -= sum[c];
      if (!full && !g->unit) x[i * cols + c] /= tile[i * n + i];
    }
  }
  for (int i = n - 1; full && i >= 0; i--) {
    NAME(dot_rows)(x + (n - 1) * cols, 1, -cols, 0, some, tile + i * n + n - 1, -1, n - 1 - i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < some; c++) x[i * cols + c] =
        (x[i * cols + c] - sum[c]) / tile[i * n + i];
  }
}

/* The right sides and solutions of full matrices are dense: one row of all numbers. */
INLINE void NAME(solve_any_group)(const ts_linalg_group *g, bool full, V *tile) {
  const int n = g->n, cols = g->cols, rows = full ? 1 : n, width = full ? n * cols : cols;
  const int64_t from_col = full ? 1 : g->rhs_col, to_col = full ? 1 : g->out_col;
  V *x = tile + n * n;
  int col = 0;
  if (full)
    NAME(load_matrices)(g, false, 0, 1, tile);
  else
    NAME(load_matrices)(g, true, g->matrix_row, g->matrix_col, tile);
  if (g->count < LANES) memset(x, 0, (size_t)(n * cols) * sizeof(V));
  for (int m = 0; m < g->count; m++) {
    const T *from = (const T *)(const void *)g->rhs + m * g->rhs_step;
    for (int i = 0; i < rows; i++)
      for (int c = 0; c < width; c++) ((T *)x)[(i * cols + c) * LANES + m] = from[i * g->rhs_row + c * from_col];
  }
  if (full) (void)NAME(lu_tile)(tile, n, x, cols);
  for (; col + 4 <= cols; col += 4) NAME(substitute)(g, full, tile, x + col, 4);
  for (; col < cols; col++) NAME(substitute)(g, full, tile, x + col, 1);
  for (int m = 0; m < g->count; m++) {
    T *to = (T *)(void *)g->out + m * g->out_step;
    for (int i = 0; i < rows; i++)
      for (int c = 0; c < width; c++) to[i * g->out_row + c * to_col] = ((const T *)x)[(i * cols + c) * LANES + m];
  }
}

static void NAME(solve_group)(const ts_linalg_group *g, void *workspace) { NAME(solve_any_group)(g, false, workspace); }
static void NAME(solve_full_group)(const ts_linalg_group *g, void *workspace) {
  NAME(solve_any_group)(g, true, workspace);
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
  NAME(load_matrices)(g, false, 0, 1, tile);
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
  NAME(load_matrices)(g, false, 0, 1, tile);
  for (int i = 0; i < n; i++) order[i] = SPLAT((T)i);
  (void)NAME(lu_tile)(tile, n, order, 1);
  for (int m = 0; m < g->count; m++) NAME(put_factors)(g, (const T *)tile, (const T *)order, m);
}
