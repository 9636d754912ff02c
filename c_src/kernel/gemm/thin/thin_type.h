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

/* The same of rows of one column, whose chains are all whole and not widened: `count` vectors have `chains` of each
 * row, and those of the next rows beside them. As much from `next` on is fetched early, since the machine follows only
 * a few lines. */
INLINE void NAME(run_whole)(const char *x, int64_t row, const char *next, const V *v, int count, int64_t chains,
                            V *out) {
  const int64_t rows = LANES / chains, bytes = 16 * chains;
  V sums[THIN_ROWS] = {{0}};
  for (int64_t step = 0; step < TS_CONTRACT_CHAIN; step += PIECE, x += 16, next += bytes)
    UNROLL for (int r = 0; r < count; r++) {
      const char *at[VECTOR_BYTES / sizeof(T)];
      V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
      UNROLL for (int64_t i = 0; i < rows; i++) UNROLL for (int64_t b = 0; b < bytes; b += THIN_LINE_BYTES)
          __builtin_prefetch(next + (r * rows + i) * row + b);
      UNROLL for (int64_t l = 0; l < LANES; l++) at[l] =
          x + (r * rows + l / chains) * row + l % chains * TS_CONTRACT_CHAIN * (int64_t)sizeof(T);
      UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
      TURN(pieces, turned);
      UNROLL for (int64_t s = 0; s < PIECE; s++) sums[r] = FMA(turned[s], v[step + s], sums[r]);
    }
  UNROLL for (int r = 0; r < count; r++) out[r] = sums[r];
}

/* A group of `chains` whole chains of all rows. */
INLINE void NAME(run_whole_rows)(const thin_product *p, int64_t k, const V *v, int64_t chains) {
  const char *x = p->x + k * (int64_t)sizeof(T), *after = x + chains * TS_CONTRACT_CHAIN * (int64_t)sizeof(T);
  const int64_t each = LANES / chains;
  V sums[THIN_ROWS];
  for (int64_t r = 0, rows; r < p->rows; r += rows, x += rows * p->row) {
    const int64_t left = (p->rows - r) / each;
    rows = left == 0 ? 1 : gemm_min(left, THIN_ROWS) * each;
    const char *next = r + rows < p->rows ? x + rows * p->row : after;
    if (left >= 2) NAME(run_whole)(x, p->row, next, v, 2, chains, sums);
    if (left == 1) NAME(run_whole)(x, p->row, next, v, 1, chains, sums);
    if (left == 0) NAME(run_whole)(x, 0, next, v, 1, chains, sums); /* this row in all places */
    for (int64_t i = 0; i < rows; i++) {
      T lanes[VECTOR_BYTES / sizeof(T)], *out = (T *)(void *)p->out + r + i;
      memcpy(lanes, (const char *)sums + i * chains * (int64_t)sizeof(T), (size_t)chains * sizeof(T));
      T sum = k == 0 ? lanes[0] : *out + lanes[0];
      for (int64_t l = 1; l < chains; l++) sum += lanes[l];
      *out = sum;
    }
  }
}

/* ---- rows in the lanes of vectors ---- */

/* Groups of LANES rows that are computed at once: of several groups of rows, which share the terms of v, or of several
 * chains of one group. */
typedef struct NAME(groups) {
  int64_t x[THIN_GROUPS]; /* bytes from the first group's places in x to each group's */
  bool chains;
} NAME(groups);

/* A piece of each row of `count` groups; the first `skip` terms of it have been added. */
INLINE void NAME(add_piece)(const char *const *x, int64_t row, const T *v, int64_t skip, int count, bool chains,
                            V *sums) {
  UNROLL for (int64_t g = 0; g < count; g++) {
    const char *at[VECTOR_BYTES / sizeof(T)];
    V pieces[16 / sizeof(T)], turned[16 / sizeof(T)];
    UNROLL for (int64_t l = 0; l < LANES; l++) at[l] = x[g] + l * row;
    UNROLL for (int64_t s = 0; s < PIECE; s++) pieces[s] = (V)JOIN(at + s, PIECE, 0);
    TURN(pieces, turned);
    const T *by = v + (chains ? g * TS_CONTRACT_CHAIN : 0);
    UNROLL for (int64_t s = 0; s < PIECE; s++) {
      if (s >= skip) sums[g] = FMA(turned[s], SPREAD(by[s]), sums[g]);
    }
  }
}

/* The groups' places at a term. The compiler would keep an address of each row, for which registers do not suffice. */
INLINE void NAME(place_groups)(const char *x, const NAME(groups) * groups, int64_t term, int count, const char **out) {
  UNROLL for (int64_t g = 0; g < count; g++) {
    out[g] = x + groups->x[g] + term * (int64_t)sizeof(T);
    __asm__("" : "+r"(out[g]));
  }
}

/* The chains of terms [k, end) of `count` groups, or as many chains side by side, of which terms [k, end) are the first
 * one. There is a piece before the last term's end. */
INLINE void NAME(add_chain)(const thin_product *p, const char *x, const NAME(groups) * groups, int64_t k, int64_t end,
                            int count, V *sums) {
  const T *v = (const T *)(const void *)p->v;
  const char *at[THIN_GROUPS];
  int64_t i = k;
  for (; i + PIECE <= end; i += PIECE) {
    NAME(place_groups)(x, groups, i, count, at);
    NAME(add_piece)(at, p->row, v + i, 0, count, groups->chains, sums);
  }
  const int64_t last = end - PIECE;
  NAME(place_groups)(x, groups, last, count, at);
  if (i < end) NAME(add_piece)(at, p->row, v + last, i - last, count, groups->chains, sums);
}

/* The sums of `rows` rows: of `count` groups, the last of which overlaps another one where they have more rows. */
INLINE void NAME(run_groups)(const thin_product *p, int64_t r, int64_t rows, int count) {
  T *out = (T *)(void *)p->out + r;
  const char *x = p->x + r * p->row;
  NAME(groups) groups = {.chains = false};
  int64_t at[THIN_GROUPS];
  V totals[THIN_GROUPS] = {{0}};
  UNROLL for (int64_t g = 0; g < count; g++) {
    at[g] = g + 1 < count ? g * LANES : rows - LANES;
    groups.x[g] = at[g] * p->row;
  }
  for (int64_t k = 0; k < p->terms; k += TS_CONTRACT_CHAIN) {
    V sums[THIN_GROUPS] = {{0}};
    NAME(add_chain)(p, x, &groups, k, gemm_min(p->terms, k + TS_CONTRACT_CHAIN), count, sums);
    UNROLL for (int g = 0; g < count; g++) totals[g] = k == 0 ? sums[g] : totals[g] + sums[g];
  }
  UNROLL for (int g = 0; g < count; g++) memcpy(out + at[g], &totals[g], sizeof(V));
}

/* Terms from `first` on of LANES rows, several chains side by side; the first `skip` rows have their sums already. */
static void NAME(run_some_chains)(const thin_product *p, int64_t r, int64_t skip, int64_t first) {
  T *out = (T *)(void *)p->out + r, done[VECTOR_BYTES / sizeof(T)];
  const char *x = p->x + r * p->row;
  NAME(groups) groups = {.chains = true};
  V total = {0};
  for (int64_t g = 0; g < THIN_GROUPS; g++) groups.x[g] = g * TS_CONTRACT_CHAIN * (int64_t)sizeof(T);
  memcpy(done, out, (size_t)skip * sizeof(T));
  if (first > 0) memcpy(&total, out, sizeof(V));
  for (int64_t k = first; k < p->terms;) {
    V sums[THIN_GROUPS] = {{0}};
    const int64_t left = p->terms - k, end = gemm_min(p->terms, k + TS_CONTRACT_CHAIN);
    const int count = (int)gemm_min(THIN_GROUPS, gemm_max(1, left / TS_CONTRACT_CHAIN));
    if (count == 1) NAME(add_chain)(p, x, &groups, k, end, 1, sums);
    if (count == 2) NAME(add_chain)(p, x, &groups, k, end, 2, sums);
    if (count == 3) NAME(add_chain)(p, x, &groups, k, end, 3, sums);
    for (int g = 0; g < count; g++) total = k + g == 0 ? sums[0] : total + sums[g];
    k += count * TS_CONTRACT_CHAIN;
  }
  memcpy(out, &total, sizeof(V));
  memcpy(out, done, (size_t)skip * sizeof(T));
}

/* The same of at least LANES rows. The last rows are computed together with those before them. */
static void NAME(run_chains)(const thin_product *p, int64_t first) {
  int64_t r = 0;
  for (; r + LANES <= p->rows; r += LANES) NAME(run_some_chains)(p, r, 0, first);
  if (r < p->rows) NAME(run_some_chains)(p, p->rows - LANES, r - (p->rows - LANES), first);
}

/* The same, several groups of rows side by side. */
static void NAME(run_rows)(const thin_product *p) {
  for (int64_t r = 0, rows; r < p->rows; r += rows) {
    const int64_t left = p->rows - r, groups = (left + LANES - 1) / LANES;
    rows = gemm_min(left, (groups == 4 ? 2 : THIN_GROUPS) * LANES); /* the last four are two and two */
    if (rows > 2 * LANES)
      NAME(run_groups)(p, r, rows, 3);
    else if (rows > LANES)
      NAME(run_groups)(p, r, rows, 2);
    else
      NAME(run_some_chains)(p, r, 0, 0);
  }
}

/* ---- all of a product ---- */

/* Rows that share sets of the first cache: as many chains side by side as there are. */
static void NAME(run_sharing)(const thin_product *p) {
  V v[TS_CONTRACT_CHAIN];
  int64_t k = 0;
  for (int64_t chains = LANES; chains >= 2; chains /= 2) {
    for (; p->terms - k >= chains * TS_CONTRACT_CHAIN; k += chains * TS_CONTRACT_CHAIN) {
      NAME(lines) lines;
      for (int64_t l = 0; l < LANES; l++)
        lines.at[l] = p->v + (k + l % chains * TS_CONTRACT_CHAIN) * (int64_t)sizeof(T);
      NAME(turn)(&lines, 0, TS_CONTRACT_CHAIN, v);
      if (chains == 8) NAME(run_whole_rows)(p, k, v, gemm_min(LANES, 8));
      if (chains == 4) NAME(run_whole_rows)(p, k, v, gemm_min(LANES, 4));
      if (chains == 2) NAME(run_whole_rows)(p, k, v, 2);
    }
  }
  if (k < p->terms) NAME(run_chains)(p, k);
}

static void NAME(run)(const thin_product *p) {
  T last[TS_CONTRACT_CHAIN];
  V v[TS_CONTRACT_CHAIN], sums[THIN_COLUMNS];
  const bool fits = p->columns == 1 && p->x_size == (int64_t)sizeof(T), turns = fits && p->rows >= LANES;
  if (turns && (p->terms >= PIECE || !p->memory)) {
    if (p->crowds || thin_shares_sets(p->rows, p->row, p->terms, LANES))
      NAME(run_sharing)(p);
    else
      NAME(run_rows)(p);
    return;
  }
  for (int64_t k = 0; k < p->terms; k += LANES * TS_CONTRACT_CHAIN) {
    const int64_t left = p->terms - k, terms = left < LANES * TS_CONTRACT_CHAIN ? left : LANES * TS_CONTRACT_CHAIN;
    const int64_t chains = (terms + TS_CONTRACT_CHAIN - 1) / TS_CONTRACT_CHAIN;
    const bool whole = terms == LANES * TS_CONTRACT_CHAIN;
    const NAME(lines) lines = NAME(find_lines)(p->v + k * (int64_t)sizeof(T), 1, terms, 0, last);
    NAME(turn)(&lines, 0, TS_CONTRACT_CHAIN, v);
    if (fits && whole) NAME(run_whole_rows)(p, k, v, LANES);
    for (int64_t r = fits && whole ? p->rows : 0; r < p->rows; r++) {
      T *out = (T *)(void *)p->out + r * p->columns;
      NAME(run_group)(p, p->x + r * p->row + k * p->columns * p->x_size, v, terms, sums);
      NAME(add_chains)(sums, p->columns, chains, k == 0, out);
    }
  }
}
