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

/* The same of `count` rows of one column, whose chains are all whole and not widened. */
INLINE void NAME(run_whole)(const char *x, int64_t row, const V *v, int count, V *out) {
  V sums[THIN_ROWS] = {{0}};
  for (int64_t step = 0; step < TS_CONTRACT_CHAIN; step += PIECE, x += 16) UNROLL for (int r = 0; r < count; r++) {
      const char *at[VECTOR_BYTES / sizeof(T)];
      V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
      UNROLL for (int64_t l = 0; l < LANES; l++) at[l] = x + r * row + l * TS_CONTRACT_CHAIN * (int64_t)sizeof(T);
      UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
      TURN(pieces, turned);
      UNROLL for (int64_t s = 0; s < PIECE; s++) sums[r] = FMA(turned[s], v[step + s], sums[r]);
    }
  UNROLL for (int r = 0; r < count; r++) out[r] = sums[r];
}

/* A group of whole chains of all rows. */
static void NAME(run_whole_rows)(const thin_product *p, int64_t k, const V *v) {
  const char *x = p->x + k * (int64_t)sizeof(T);
  V sums[THIN_ROWS];
  for (int64_t r = 0; r < p->rows; r += THIN_ROWS, x += THIN_ROWS * p->row) {
    const int64_t count = p->rows - r < THIN_ROWS ? p->rows - r : THIN_ROWS;
    if (count == 4) NAME(run_whole)(x, p->row, v, 4, sums);
    if (count == 3) NAME(run_whole)(x, p->row, v, 3, sums);
    if (count == 2) NAME(run_whole)(x, p->row, v, 2, sums);
    if (count == 1) NAME(run_whole)(x, p->row, v, 1, sums);
    for (int64_t i = 0; i < count; i++) NAME(add_chains)(sums + i, 1, LANES, k == 0, (T *)(void *)p->out + r + i);
  }
}

/* ---- rows in the lanes of vectors ---- */

/* A piece of each row of `groups` groups of LANES rows; the first `skip` terms of it have been added. */
INLINE void NAME(add_piece)(const char *const *x, int64_t row, const T *v, int64_t skip, int groups, V *sums) {
  V by[16 / sizeof(T)];
  UNROLL for (int64_t s = 0; s < PIECE; s++) by[s] = SPREAD(v[s]);
  UNROLL for (int64_t g = 0; g < groups; g++) {
    const char *at[VECTOR_BYTES / sizeof(T)];
    V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
    UNROLL for (int64_t l = 0; l < LANES; l++) at[l] = x[g] + l * row;
    UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
    TURN(pieces, turned);
    UNROLL for (int64_t s = 0; s < PIECE; s++) {
      if (s >= skip) sums[g] = FMA(turned[s], by[s], sums[g]);
    }
  }
}

/* The groups' places at a term. The compiler would keep an address of each row, for which registers do not suffice. */
INLINE void NAME(place_groups)(const char *x, int64_t row, int64_t term, int groups, const char **out) {
  UNROLL for (int64_t g = 0; g < groups; g++) {
    out[g] = x + g * LANES * row + term * (int64_t)sizeof(T);
    __asm__("" : "+r"(out[g]));
  }
}

/* Terms [first, end) of rows of neighbours, in chains; there is a piece before the last one's end. */
INLINE void NAME(add_rows)(const thin_product *p, const char *x, int64_t first, int groups, V *totals) {
  const T *v = (const T *)(const void *)p->v;
  for (int64_t k = first; k < p->terms; k += TS_CONTRACT_CHAIN) {
    const int64_t end = p->terms - k < TS_CONTRACT_CHAIN ? p->terms : k + TS_CONTRACT_CHAIN;
    V sums[THIN_GROUPS] = {{0}};
    const char *at[THIN_GROUPS];
    int64_t i = k;
    for (; i + PIECE <= end; i += PIECE) {
      NAME(place_groups)(x, p->row, i, groups, at);
      NAME(add_piece)(at, p->row, v + i, 0, groups, sums);
    }
    const int64_t last = end - PIECE;
    NAME(place_groups)(x, p->row, last, groups, at);
    if (i < end) NAME(add_piece)(at, p->row, v + last, i - last, groups, sums);
    UNROLL for (int g = 0; g < groups; g++) totals[g] = k == 0 ? sums[g] : totals[g] + sums[g];
  }
}

/* The same of rows from `r` on, with their sums in p->out; the first `skip` rows have theirs already. */
INLINE void NAME(run_groups)(const thin_product *p, int64_t r, int64_t skip, int64_t first, int groups) {
  V totals[THIN_GROUPS] = {{0}};
  T *out = (T *)(void *)p->out + r, done[VECTOR_BYTES / sizeof(T)];
  memcpy(done, out, (size_t)skip * sizeof(T));
  if (first > 0) memcpy(totals, out, (size_t)groups * sizeof(V));
  NAME(add_rows)(p, p->x + r * p->row, first, groups, totals);
  memcpy(out, totals, (size_t)groups * sizeof(V));
  memcpy(out, done, (size_t)skip * sizeof(T));
}

/* Terms from `first` on of at least LANES rows. The last rows are computed together with those before them. */
static void NAME(run_rows)(const thin_product *p, int64_t first, int64_t groups) {
  int64_t r = 0;
  if (groups == THIN_GROUPS) /* the last four are two and two */
    for (; p->rows - r >= 5 * LANES || (p->rows - r) / LANES == 3; r += 3 * LANES) NAME(run_groups)(p, r, 0, first, 3);
  if (groups >= 2)
    for (; r + 2 * LANES <= p->rows; r += 2 * LANES) NAME(run_groups)(p, r, 0, first, 2);
  for (; r + LANES <= p->rows; r += LANES) NAME(run_groups)(p, r, 0, first, 1);
  if (r < p->rows) NAME(run_groups)(p, p->rows - LANES, r - (p->rows - LANES), first, 1);
}

/* ---- all of a product ---- */

static void NAME(run)(const thin_product *p) {
  T last[TS_CONTRACT_CHAIN];
  V v[TS_CONTRACT_CHAIN], sums[THIN_COLUMNS];
  const bool fits = p->columns == 1 && p->x_size == (int64_t)sizeof(T), turns = fits && p->rows >= LANES;
  if (turns && (p->terms >= PIECE || !p->memory) && !thin_shares_sets(p->rows, p->row, p->terms, LANES)) {
    NAME(run_rows)(p, 0, THIN_GROUPS);
    return;
  }
  for (int64_t k = 0; k < p->terms; k += LANES * TS_CONTRACT_CHAIN) {
    const int64_t left = p->terms - k, terms = left < LANES * TS_CONTRACT_CHAIN ? left : LANES * TS_CONTRACT_CHAIN;
    const int64_t chains = (terms + TS_CONTRACT_CHAIN - 1) / TS_CONTRACT_CHAIN;
    const bool whole = terms == LANES * TS_CONTRACT_CHAIN;
    if (turns && !whole && k > 0) {
      NAME(run_rows)(p, k, 1);
      return;
    }
    const NAME(lines) lines = NAME(find_lines)(p->v + k * (int64_t)sizeof(T), 1, terms, 0, last);
    NAME(turn)(&lines, 0, TS_CONTRACT_CHAIN, v);
    if (fits && whole) NAME(run_whole_rows)(p, k, v);
    for (int64_t r = fits && whole ? p->rows : 0; r < p->rows; r++) {
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
#undef SPREAD
#undef WIDEN
#undef TURN
#undef NAME
