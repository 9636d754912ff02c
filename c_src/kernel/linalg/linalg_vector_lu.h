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

INLINE void NAME(exchange_rows)(V *a, V *b, int cols, I lanes) {
  for (int k = 0; k < cols; k++) {
    const V kept = a[k];
    a[k] = SELECT(lanes, b[k], kept);
    b[k] = SELECT(lanes, kept, b[k]);
  }
}

/* Brings the largest element of column c of each lane to its diagonal; returns the lanes whose rows were exchanged. */
INLINE I NAME(pivot_lanes)(V *tile, int n, int c, V *rhs, int cols) {
  V most = NAME(size)(tile[c * n + c]), best = SPLAT((T)c);
  uint32_t rows = 0; /* that are exchanged in some lane: there are up to TS_LINALG_GROUP_ROWS */
  for (int i = c + 1; i < n; i++) {
    const V size = NAME(size)(tile[i * n + c]);
    const I larger = size > most;
    most = SELECT(larger, size, most);
    best = SELECT(larger, SPLAT((T)i), best);
  }
  for (int m = 0; m < LANES; m++) rows |= UINT32_C(1) << (int)best[m];
  for (rows &= ~(UINT32_C(1) << c); rows; rows &= rows - 1) {
    const int i = __builtin_ctz(rows);
    const I lanes = best == SPLAT((T)i);
    NAME(exchange_rows)(tile + c * n, tile + i * n, n, lanes);
    if (rhs) NAME(exchange_rows)(rhs + c * cols, rhs + i * cols, cols, lanes);
  }
  return best != SPLAT((T)c);
}

/* The factors in place; returns the lanes that had an odd number of exchanges. */
INLINE I NAME(lu_tile)(V *tile, int n, V *rhs, int cols) {
  const V none = SPLAT(0);
  I odd = (I)none;
  for (int c = 0; c < n; c++) {
    for (int i = 1; i < c; i++) NAME(take_products)(tile, n, c, i, i + 1, tile + c, n, i);
    NAME(take_products)(tile, n, c, c, n, tile + c, n, c);
    odd ^= NAME(pivot_lanes)(tile, n, c, rhs, cols);
    const V pivot = tile[c * n + c], by = SELECT(pivot == none, SPLAT(1), pivot);
    for (int i = c + 1; i < n; i++) tile[i * n + c] /= by;
  }
  return odd;
}

/* A matrix of lanes by strides of any sign. */
typedef struct NAME(tile) {
  V *at;
  int row, col;
} NAME(tile);

/* Replaces `cols` columns of right sides of a lower triangle by the solutions. */
INLINE void NAME(substitute)(NAME(tile) a, NAME(tile) x, int n, int cols, bool unit) {
  V sum[4];
  for (int i = 0; i < n; i++) {
    NAME(dot_rows)(x.at, x.col, x.row, 0, cols, a.at + i * a.row, a.col, i, sum);
    _Pragma("GCC unroll 4") for (int c = 0; c < cols; c++) {
      V *to = x.at + i * x.row + c * x.col;
      *to -= sum[c];
      if (!unit) *to /= a.at[i * (a.row + a.col)];
    }
  }
}

INLINE void NAME(substitute_all)(NAME(tile) a, NAME(tile) x, int n, int cols, bool unit) {
  if (a.row < 0) a.at += n * n - 1;
  if (x.row < 0) x.at -= (n - 1) * x.row;
  int c = 0;
  for (; c + 4 <= cols; c += 4, x.at += 4 * x.col) NAME(substitute)(a, x, n, 4, unit);
  for (; c < cols; c++, x.at += x.col) NAME(substitute)(a, x, n, 1, unit);
}

static void NAME(solve_group)(const ts_linalg_group *g, void *workspace) {
  const int n = g->n, cols = g->cols;
  V *tile = workspace, *x = tile + n * n;
  NAME(to_lanes)(g->matrix, g->count, n * n, tile);
  NAME(to_lanes)(g->rhs, g->count, n * cols, x);
  NAME(substitute_all)((NAME(tile)){tile, g->row, g->col}, (NAME(tile)){x, g->rhs_row, g->rhs_col}, n, cols, g->unit);
  NAME(from_lanes)(x, g->count, n * cols, g->out);
}

/* By L, and then by U from its last row on. */
static void NAME(solve_full_group)(const ts_linalg_group *g, void *workspace) {
  const int n = g->n, cols = g->cols;
  V *tile = workspace, *x = tile + n * n;
  NAME(to_lanes)(g->matrix, g->count, n * n, tile);
  NAME(to_lanes)(g->rhs, g->count, n * cols, x);
  (void)NAME(lu_tile)(tile, n, x, cols);
  NAME(substitute_all)((NAME(tile)){tile, n, 1}, (NAME(tile)){x, cols, 1}, n, cols, true);
  NAME(substitute_all)((NAME(tile)){tile, -n, -1}, (NAME(tile)){x, -cols, 1}, n, cols, false);
  NAME(from_lanes)(x, g->count, n * cols, g->out);
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
  NAME(to_lanes)(g->matrix, g->count, n * n, tile);
  const I odd = NAME(lu_tile)(tile, n, NULL, 0);
  product = SELECT(odd, SPLAT(-1), SPLAT(1));
  for (int i = 0; i < n; i++) {
    product *= tile[i * (n + 1)];
    near &= (NAME(size)(product) > low) & (NAME(size)(product) < high);
  }
  for (int m = 0; m < g->count; m++)
    ((T *)g->out)[m] = near[m] ? product[m] : NAME(far_product)((const T *)tile + m, n, odd[m]);
}

static void NAME(lu_group)(const ts_linalg_group *g, void *workspace) {
  const int n = g->n;
  const V one = SPLAT(1), none = SPLAT(0);
  V *tile = workspace, *out = tile + n * n, *order = out + n * n;
  NAME(to_lanes)(g->matrix, g->count, n * n, tile);
  for (int i = 0; i < n; i++) order[i] = SPLAT((T)i);
  (void)NAME(lu_tile)(tile, n, order, 1); /* row i of the factors was row order[i] of the matrix */
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) out[i * n + k] = SELECT(order[k] == SPLAT((T)i), one, none);
  NAME(from_lanes)(out, g->count, n * n, g->out);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) out[i * n + k] = k < i ? tile[i * n + k] : k == i ? one : none;
  NAME(from_lanes)(out, g->count, n * n, g->lower);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < i; k++) tile[i * n + k] = none;
  NAME(from_lanes)(tile, g->count, n * n, g->upper);
}
