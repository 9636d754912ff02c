/* The part of thin_body.h for one type T. */

typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
#define V NAME(vector)
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define PIECE ((int64_t)(16 / sizeof(T)))

/* Where the chains of a group begin, one in each lane. */
typedef struct NAME(lines) {
  const char *at[VECTOR_BYTES / sizeof(T)];
} NAME(lines);

/* Elements [first, first + count) of each line, both multiples of PIECE: to vectors of one element of each. */
INLINE void NAME(turn)(const NAME(lines) * lines, int64_t first, int64_t count, V *out) {
  const int64_t end = (first + count) * (int64_t)sizeof(T);
  for (int64_t i = first * (int64_t)sizeof(T); i < end; i += 16, out += PIECE) {
    V v[16 / sizeof(T)];
    UNROLL for (int64_t s = 0; s < PIECE; s++) v[s] = (V)JOIN(lines->at + s, PIECE, i);
    TURN(v, out);
  }
}

/* The chains of `terms` terms of `columns` elements, from `from` on. A last chain that is not whole is copied to
 * `last`; terms past its end are `fill`. Lanes without a chain have the first one. */
static NAME(lines) NAME(find_lines)(const char *from, int64_t columns, int64_t terms, T fill, T *last) {
  const int64_t all = TS_CONTRACT_CHAIN * columns, whole = terms / TS_CONTRACT_CHAIN;
  const int64_t rest = terms % TS_CONTRACT_CHAIN * columns;
  NAME(lines) out;
  for (int64_t l = 0; l < LANES; l++) out.at[l] = from + (l < whole ? l : 0) * all * (int64_t)sizeof(T);
  if (rest == 0) return out;
  memcpy(last, from + whole * all * (int64_t)sizeof(T), (size_t)rest * sizeof(T));
  for (int64_t i = rest; i < all; i++) last[i] = fill;
  out.at[whole] = (const char *)last;
  if (whole == 0)
    for (int64_t l = 0; l < LANES; l++) out.at[l] = (const char *)last;
  return out;
}

/* STEPS steps of `count` columns from `x` on, in all lanes. */
INLINE void NAME(multiply)(const V *x, const V *v, int64_t columns, int count, V *sums) {
  V sum[4];
  UNROLL for (int c = 0; c < count; c++) sum[c] = sums[c];
  for (int k = 0; k < STEPS; k++, x += columns) {
    const V by = v[k];
    UNROLL for (int c = 0; c < count; c++) sum[c] = FMA(x[c], by, sum[c]);
  }
  UNROLL for (int c = 0; c < count; c++) sums[c] = sum[c];
}

static void NAME(multiply_columns)(const V *x, const V *v, int64_t columns, V *sums) {
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) NAME(multiply)(x + c, v, columns, 4, sums + c);
  if (columns - c == 1) NAME(multiply)(x + c, v, columns, 1, sums + c);
  if (columns - c == 2) NAME(multiply)(x + c, v, columns, 2, sums + c);
  if (columns - c == 3) NAME(multiply)(x + c, v, columns, 3, sums + c);
}

/* Adds the chains of a group in their order; the first one of all is the start. */
static void NAME(add_chains)(const V *sums, int64_t columns, int64_t chains, bool begins, T *out) {
  for (int64_t c = 0; c < columns; c++) {
    T lanes[VECTOR_BYTES / sizeof(T)];
    memcpy(lanes, sums + c, sizeof lanes);
    T sum = begins ? lanes[0] : out[c] + lanes[0];
    for (int64_t l = 1; l < chains; l++) sum += lanes[l];
    out[c] = sum;
  }
}

/* A group of chains of one row of x; v is turned already. */
static void NAME(run_group)(const thin_product *p, const char *x, const V *v, int64_t terms, V *sums) {
  static const float one = 1;
  V turned[STEPS * THIN_COLUMNS];
  const int64_t columns = p->columns;
  T *last = (T *)(void *)p->memory, *wide = last + TS_CONTRACT_CHAIN * columns;
  if (p->x_size < (int64_t)sizeof(T)) {
    WIDEN(&(gemm_widen_rows){
        .type = p->x_type, .from = x, .rows = 1, .count = terms * columns, .out = (char *)wide, .scales = &one});
    x = (const char *)wide;
  }
  const NAME(lines) lines = NAME(find_lines)(x, columns, terms, -(T)0, last);
  memset(sums, 0, (size_t)columns * sizeof(V));
  for (int64_t step = 0; step < TS_CONTRACT_CHAIN && step < terms; step += STEPS) {
    NAME(turn)(&lines, step * columns, STEPS * columns, turned);
    NAME(multiply_columns)(turned, v + step, columns, sums);
  }
}

/* The same of THIN_ROWS rows of one column, whose chains are all whole and not widened. */
INLINE void NAME(run_whole)(const char *x, int64_t row, const V *v, V *out) {
  V sums[THIN_ROWS] = {{0}};
  for (int64_t step = 0; step < TS_CONTRACT_CHAIN; step += PIECE, x += 16) UNROLL for (int r = 0; r < THIN_ROWS; r++) {
      const char *at[VECTOR_BYTES / sizeof(T)];
      V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
      UNROLL for (int64_t l = 0; l < LANES; l++) at[l] = x + r * row + l * TS_CONTRACT_CHAIN * (int64_t)sizeof(T);
      UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
      TURN(pieces, turned);
      UNROLL for (int64_t s = 0; s < PIECE; s++) sums[r] = FMA(turned[s], v[step + s], sums[r]);
    }
  UNROLL for (int r = 0; r < THIN_ROWS; r++) out[r] = sums[r];
}

/* A group of chains of the first rows, as far as run_whole computes them; returns their number. */
static int64_t NAME(run_whole_rows)(const thin_product *p, int64_t k, const V *v) {
  const bool fits = p->columns == 1 && p->x_size == (int64_t)sizeof(T);
  const int64_t rows = fits ? p->rows / THIN_ROWS * THIN_ROWS : 0;
  for (int64_t r = 0; r < rows; r += THIN_ROWS) {
    V sums[THIN_ROWS];
    NAME(run_whole)(p->x + r * p->row + k * (int64_t)sizeof(T), p->row, v, sums);
    for (int i = 0; i < THIN_ROWS; i++) NAME(add_chains)(sums + i, 1, LANES, k == 0, (T *)(void *)p->out + r + i);
  }
  return rows;
}

static void NAME(run)(const thin_product *p) {
  T last[TS_CONTRACT_CHAIN];
  V v[TS_CONTRACT_CHAIN], sums[THIN_COLUMNS];
  for (int64_t k = 0; k < p->terms; k += LANES * TS_CONTRACT_CHAIN) {
    const int64_t left = p->terms - k, terms = left < LANES * TS_CONTRACT_CHAIN ? left : LANES * TS_CONTRACT_CHAIN;
    const int64_t chains = (terms + TS_CONTRACT_CHAIN - 1) / TS_CONTRACT_CHAIN;
    const NAME(lines) lines = NAME(find_lines)(p->v + k * (int64_t)sizeof(T), 1, terms, 0, last);
    NAME(turn)(&lines, 0, TS_CONTRACT_CHAIN, v);
    const bool whole = terms == LANES * TS_CONTRACT_CHAIN;
    for (int64_t r = whole ? NAME(run_whole_rows)(p, k, v) : 0; r < p->rows; r++) {
      T *out = (T *)(void *)p->out + r * p->columns;
      NAME(run_group)(p, p->x + r * p->row + k * p->columns * p->x_size, v, terms, sums);
      NAME(add_chains)(sums, p->columns, chains, k == 0, out);
    }
  }
}

#undef V
#undef LANES
#undef PIECE
#undef T
#undef FMA
#undef WIDEN
#undef TURN
#undef NAME
