/* The part of complex_vector_body.h for parts of type T. */

typedef VECTOR NAME(vector);
#define V NAME(vector)
#define LANES ((int)(VECTOR_BYTES / sizeof(T)))
#define NUMBERS (LANES / 2)

INLINE V NAME(load)(const T *at) {
  V v;
  memcpy(&v, at, sizeof v);
  return v;
}
INLINE void NAME(store)(T *at, V v) { memcpy(at, &v, sizeof v); }

/* Some steps of k of sums: of `width` neighbouring vectors of results, of one or several chains side by side, each of
 * which waits for its last term, and of one or several items, which share the loads of x. */
typedef struct NAME(piece) {
  const T *x[COMPLEX_VECTORS]; /* of each chain */
  int64_t step;                /* from k to k + 1 */
  int64_t steps;
  const T *factors;                /* of each k, of each chain; without them `v` */
  const T *v[COMPLEX_VECTORS];     /* of each chain: an only item, where it lies */
  int64_t v_step;                  /* from k to k + 1 */
  int64_t factors_step, item_step; /* from item to item, of the factors and the sums */
  T *sums;                         /* of each chain, `sums_step` apart */
  int64_t sums_step;
  int64_t parts; /* of the vectors: the others are not read */
  bool begins;   /* the sums begin from 0 */
} NAME(piece);

/* A factor is two pairs of parts, by which the terms of a sum and a number of x are multiplied one after the other.
 * With the parts of the left number the sums are re = fma(im l, -im r, fma(re l, re r, re)) and im = fma(im l, re r,
 * fma(re l, im r, im)). */
#define FACTOR 4

INLINE void NAME(set_factor)(const T *v, bool x_is_left, T *to) {
  to[0] = v[0];
  to[1] = x_is_left ? v[1] : v[0];
  to[2] = -v[1];
  to[3] = x_is_left ? v[0] : v[1];
}

/* The pairs of a factor in all places, of a number that is used once. */
INLINE void NAME(find_factor)(const T *v, bool x_is_left, V *first, V *second) {
  const V pair = PAIR(v), by_second = x_is_left ? SWAP(pair) : SPREAD(v[1]);
  *first = x_is_left ? pair : SPREAD(v[0]);
  *second = NEGATE_EVEN(by_second);
}

/* One step of chain `c`, whose number of x is at `from`, and that of an only item at `v`; sums are
 * [items][chains][width]. */
INLINE void NAME(run_step)(const NAME(piece) * p, complex_kind kind, int c, const T *from, const T *v, int64_t k,
                           V *sums) {
  const T *factors = p->factors + (k * kind.chains + c) * FACTOR;
  const int64_t parts = p->parts;
  V first[COMPLEX_GROUP], second[COMPLEX_GROUP];
  if (kind.plain) {
    NAME(find_factor)(v, kind.x_is_left, first, second);
  } else {
    UNROLL for (int i = 0; i < kind.items; i++) {
      first[i] = PAIR(factors + i * p->factors_step);
      second[i] = PAIR(factors + i * p->factors_step + 2);
    }
  }
  UNROLL for (int w = 0; w < kind.width; w++) {
    const V x = kind.some ? LOAD_SOME(from + w * LANES, parts - w * LANES) : NAME(load)(from + w * LANES);
    const V by_first = kind.x_is_left ? EVEN(x) : x, by_second = kind.x_is_left ? ODD(x) : SWAP(x);
    UNROLL for (int i = 0; i < kind.items; i++) {
      V *sum = &sums[(i * kind.chains + c) * kind.width + w];
      *sum = FMA(by_second, second[i], FMA(by_first, first[i], *sum));
    }
  }
}

/* The sums of vector `v` of a chain of an item. */
INLINE T *NAME(sums_of)(const NAME(piece) * p, int item, int c, int v) {
  return p->sums + item * p->item_step + c * p->sums_step + v * LANES;
}

/* All steps of the chains from `first` on that are computed side by side. */
INLINE void NAME(run_some)(const NAME(piece) * p, complex_kind kind, int first, V *sums) {
  const int count = kind.chains - first < COMPLEX_SIDE ? kind.chains - first : COMPLEX_SIDE;
  const T *x[COMPLEX_SIDE], *v[COMPLEX_SIDE];
  UNROLL for (int c = 0; c < count; c++) x[c] = p->x[first + c], v[c] = p->v[first + c];
  const int64_t steps = p->steps, step = p->step, v_step = p->v_step;
  for (int64_t k = 0, x_at = 0, v_at = 0; k < steps; k++, x_at += step, v_at += v_step)
    UNROLL for (int c = 0; c < count; c++) NAME(run_step)(p, kind, first + c, x[c] + x_at, v[c] + v_at, k, sums);
}

INLINE void NAME(run_piece)(const NAME(piece) * p, complex_kind kind) {
  V sums[COMPLEX_SUMS];
  V *sum = sums;
  UNROLL for (int i = 0; i < kind.items; i++) UNROLL for (int c = 0; c < kind.chains; c++)
      UNROLL for (int v = 0; v < kind.width; v++) *sum++ = p->begins ? (V){0} : NAME(load)(NAME(sums_of)(p, i, c, v));
  NAME(run_some)(p, kind, 0, sums);
  if (kind.chains > COMPLEX_SIDE) NAME(run_some)(p, kind, COMPLEX_SIDE, sums);
  sum = sums;
  UNROLL for (int i = 0; i < kind.items; i++) UNROLL for (int c = 0; c < kind.chains; c++)
      UNROLL for (int v = 0; v < kind.width; v++) NAME(store)(NAME(sums_of)(p, i, c, v), *sum++);
}

typedef void (*NAME(piece_fn))(const NAME(piece) * p);

#define PIECE(name, width, chains, items, some, plain)                            \
  static void NAME(name##_left)(const NAME(piece) * p) {                          \
    NAME(run_piece)(p, (complex_kind){width, chains, items, some, true, plain});  \
  }                                                                               \
  static void NAME(name##_right)(const NAME(piece) * p) {                         \
    NAME(run_piece)(p, (complex_kind){width, chains, items, some, false, plain}); \
  }
PIECE(one, 1, 1, 1, true, true)
PIECE(one_chains, 1, 8, 1, true, true)
PIECE(two, 2, 1, 1, true, true)
PIECE(two_chains, 2, 4, 1, true, true)
PIECE(four, 4, 1, 1, true, true)
PIECE(four_chains, 4, 2, 1, true, true)
PIECE(some, 8, 1, 1, true, false)
PIECE(all, 8, 1, 1, false, false)
#define GROUP(of, items)                              \
  PIECE(of##_of_one, 1, 1, items, true, false)        \
  PIECE(of##_of_one_chains, 1, 4, items, true, false) \
  PIECE(of##_of_two, 2, 1, items, true, false)        \
  PIECE(of##_of_two_chains, 2, 2, items, true, false) \
  PIECE(of##_of_four_some, 4, 1, items, true, false)  \
  PIECE(of##_of_four, 4, 1, items, false, false)
GROUP(single, 1)
GROUP(pair, 2)
#if COMPLEX_GROUP > 2
GROUP(quad, 4)
#endif

#define BOTH(name) \
  { NAME(name##_right), NAME(name##_left) }
/* Of an only item, for `width` vectors, a power of two. */
static NAME(piece_fn) NAME(pick)(int width, bool chains, bool some, bool x_is_left) {
  static const NAME(piece_fn) table[][2] = {BOTH(one),  BOTH(one_chains),  BOTH(two), BOTH(two_chains),
                                            BOTH(four), BOTH(four_chains), BOTH(all), BOTH(some)};
  return table[width == 8 ? 6 + some : width / 2 * 2 + chains][x_is_left];
}

/* Of `items` of several, a power of two. */
static NAME(piece_fn) NAME(pick_group)(int items, int width, bool chains, bool some, bool x_is_left) {
#define ROW(of)                                                                                                   \
  {                                                                                                               \
    BOTH(of##_of_one), BOTH(of##_of_one_chains), BOTH(of##_of_two), BOTH(of##_of_two_chains), BOTH(of##_of_four), \
        BOTH(of##_of_four_some)                                                                                   \
  }
  static const NAME(piece_fn) table[][6][2] = {
    ROW(single),
    ROW(pair),
#if COMPLEX_GROUP > 2
    ROW(quad)
#endif
  };
#undef ROW
  return table[items / 2][width == 4 ? 4 + some : width / 2 * 2 + chains][x_is_left];
}
#undef BOTH
#undef GROUP
#undef PIECE

/* The least power of two that has the results, up to `most`. */
static int NAME(width_of)(int64_t results, int most) {
  int width = 1;
  while (width < most && width * NUMBERS < results) width *= 2;
  return width;
}

/* ---- lines ---- */

/* Copies `steps` numbers of some lines that lie anywhere, `pitch` parts from k to k + 1. */
static void NAME(copy_lines)(const complex_vectors *p, const T *from, int64_t lines, int64_t steps, T *to,
                             int64_t pitch) {
  for (int64_t s = 0; s < steps; s++)
    for (int64_t l = 0; l < lines; l++)
      memcpy(to + s * pitch + 2 * l, from + l * p->x_result + s * p->x_k, 2 * sizeof(T));
}

/* A square of numbers of lines that are neighbours in memory; of the last ones only those that there are. */
INLINE void NAME(turn_square)(const T *from, int64_t line, int64_t lines, int64_t steps, T *to, int64_t pitch) {
  V v[NUMBERS];
  const bool whole = lines >= NUMBERS && steps >= NUMBERS;
  if (whole) {
    UNROLL for (int i = 0; i < NUMBERS; i++) v[i] = NAME(load)(from + i * line);
  } else {
    UNROLL for (int i = 0; i < NUMBERS; i++) {
      const int64_t parts = i < lines ? 2 * gemm_min(NUMBERS, steps) : 0;
      v[i] = LOAD_SOME(i < lines ? from + i * line : from, parts);
    }
  }
  NAME(turn)(v);
  UNROLL for (int i = 0; i < NUMBERS; i++) NAME(store)(to + i * pitch, v[i]);
}

/* The same of lines whose numbers are neighbours; whole vectors are written. */
static void NAME(turn_lines)(const complex_vectors *p, const T *from, int64_t lines, int64_t steps, T *to,
                             int64_t pitch) {
  const int64_t line = p->x_result, bytes = steps * 2 * (int64_t)sizeof(T);
  for (int64_t l = 0; l < lines; l += NUMBERS, from += NUMBERS * line, to += LANES) {
    for (int64_t i = 0; i < gemm_min(NUMBERS, lines - l); i++)
      for (int64_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((const char *)(from + i * line) + at + COMPLEX_AHEAD);
    for (int64_t s = 0; s < steps; s += NUMBERS)
      NAME(turn_square)(from + 2 * s, line, lines - l, steps - s, to + s * pitch, pitch);
  }
}

/* ---- packing ---- */

/* A number of rhs as the two rows of its block: (re, im) and (-im, re). */
INLINE void NAME(store_block)(T *first, T *second, V x) {
  NAME(store)(first, x);
  NAME(store)(second, NEGATE_EVEN(SWAP(x)));
}

/* Parts of the last vector that does not fill the panel, as pieces of 16 bytes. */
INLINE void NAME(pack_rest)(const T *from, int64_t parts, T *first, T *second) {
  for (int64_t at = 0; at < parts; at += 2) {
    const T re = from[at], im = from[at + 1];
    first[at] = re, first[at + 1] = im;
    second[at] = -im, second[at + 1] = re;
  }
}

static void NAME(pack_rows)(const complex_rows *p) {
  const int64_t whole = p->width / LANES * LANES, panel = p->panel_bytes / (int64_t)sizeof(T);
  const T *row = (const T *)(const void *)p->from;
  T *to = (T *)(void *)p->to;
  for (int64_t k = 0; k < p->steps; k++, row += p->step, to += 2 * p->width) {
    const T *from = row;
    T *first = to;
    for (int64_t n = 0; n < p->panels; n++, from += p->width, first += panel) {
      for (int64_t at = 0; at < whole; at += LANES)
        NAME(store_block)(first + at, first + p->width + at, NAME(load)(from + at));
      NAME(pack_rest)(from + whole, p->width - whole, first + whole, first + p->width + whole);
    }
  }
}

/* ---- a product ---- */

/* Chains from step k on. */
typedef struct NAME(job) {
  const complex_vectors *p;
  int64_t k;
  int chains;   /* that are computed side by side */
  int count;    /* of them; the others repeat the first one, times 0, and are not used */
  int64_t last; /* steps of the last one; the others are whole */
  bool direct;  /* x is read where it lies: results are neighbours */
  int vectors;  /* of results that are computed together, at most */
} NAME(job);

/* The chain that is computed at the place of chain c, in step s. */
INLINE int NAME(chain_at)(const NAME(job) * j, int c, int64_t s) {
  return c < j->count - 1 || (c == j->count - 1 && s < j->last) ? c : 0;
}

/* Factors are [steps][chains], of each item. */
static T *NAME(factors_of)(const NAME(job) * j, int64_t item, int64_t step) {
  return (T *)(void *)j->p->factors + (item * COMPLEX_CHAIN + step) * j->chains * FACTOR;
}

static void NAME(copy_factors)(const NAME(job) * j) {
  const complex_vectors *p = j->p;
  const int64_t steps = j->count > 1 ? COMPLEX_CHAIN : j->last, to_step = FACTOR * j->chains;
  for (int64_t i = 0; i < p->items; i++)
    for (int c = 0; c < j->chains; c++) {
      T *to = NAME(factors_of)(j, i, 0) + FACTOR * c;
      const T *from = (const T *)(const void *)p->v + i * p->v_item + (j->k + (int64_t)c * COMPLEX_CHAIN) * p->v_k;
      const int64_t count = c < j->count - 1 ? steps : c < j->count ? j->last : 0;
      for (int64_t s = 0; s < count; s++) NAME(set_factor)(from + s * p->v_k, p->x_is_left, to + s * to_step);
      for (int64_t s = count; s < steps; s++) memset(to + s * to_step, 0, FACTOR * sizeof(T));
    }
}

/* Finds the numbers of some columns in steps [first, first + steps) of each chain, or copies them to p->turned. */
static void NAME(find_lines)(const NAME(job) * j, int64_t col, int64_t results, int64_t first, NAME(piece) * piece) {
  const complex_vectors *p = j->p;
  for (int c = 0; c < j->chains; c++) {
    const int chain = NAME(chain_at)(j, c, first);
    const int64_t k = j->k + chain * COMPLEX_CHAIN + first;
    const T *from = (const T *)(const void *)p->x + k * p->x_k + col * p->x_result;
    T *to = (T *)(void *)p->turned + chain * COMPLEX_TURNED * piece->step;
    piece->x[c] = j->direct ? from : to;
    piece->v[c] = (const T *)(const void *)p->v + k * p->v_k;
    if (!j->direct && chain == c)
      (p->x_k == 2 ? NAME(turn_lines) : NAME(copy_lines))(p, from, results, piece->steps, to, piece->step);
  }
}

/* The most items, a power of two, whose sums are in registers together. */
static int NAME(group_of)(int64_t items) {
  int group = COMPLEX_GROUP;
  while (group > items) group /= 2;
  return group;
}

/* Steps [first, first + steps) of all chains, of some columns. */
static void NAME(run_columns)(const NAME(job) * j, int64_t col, int64_t first, int64_t steps) {
  const complex_vectors *p = j->p;
  const int64_t results = gemm_min(j->vectors * NUMBERS, p->results - col);
  const int width = NAME(width_of)(results, j->vectors);
  NAME(piece)
  piece = {.step = j->direct ? p->x_k : width * LANES,
           .steps = steps,
           .v_step = p->v_k,
           .factors_step = (int64_t)COMPLEX_CHAIN * j->chains * FACTOR,
           .item_step = p->pitch,
           .sums_step = width * LANES,
           .parts = j->direct ? 2 * results : width * LANES,
           .begins = first == 0};
  NAME(find_lines)(j, col, results, first, &piece);
  const bool some = piece.parts<width * LANES, chains = j->chains> 1;
  for (int64_t i = 0, items; i < p->items; i += items) {
    items = NAME(group_of)(p->items - i);
    piece.factors = NAME(factors_of)(j, i, first);
    piece.sums = (T *)(void *)p->chains + i * p->pitch + 2 * col;
    (p->items == 1 ? NAME(pick)(width, chains, some, p->x_is_left)
                   : NAME(pick_group)((int)items, width, chains, some, p->x_is_left))(&piece);
  }
}

/* Steps [first, end) of all chains. A few rows of the matrix are read side by side. */
static void NAME(run_steps)(const NAME(job) * j, int64_t first, int64_t end) {
  const int64_t cols = j->vectors * NUMBERS, results = j->p->results;
  const bool wide = results > cols;
  const int64_t most = !j->direct ? COMPLEX_TURNED : wide ? COMPLEX_ROWS : COMPLEX_CHAIN;
  if (!j->direct) { /* of a few lines all numbers, one after the other */
    for (int64_t col = 0; col < results; col += cols)
      for (int64_t k = first; k < end; k += most) NAME(run_columns)(j, col, k, gemm_min(most, end - k));
    return;
  }
  for (int64_t k = first; k < end; k += most)
    for (int64_t col = 0; col < results; col += cols) NAME(run_columns)(j, col, k, gemm_min(most, end - k));
}

/* Adds the sums of a chain to the sums of the chains before this chain. */
static void NAME(add_chain)(const complex_vectors *p, int64_t item, const T *from, bool is_first) {
  T *to = (T *)(void *)p->sums + item * p->pitch;
  for (int64_t at = 0; at < 2 * p->results; at += LANES) {
    V sum = NAME(load)(from + at);
    if (!is_first) sum = NAME(load)(to + at) + sum;
    NAME(store)(to + at, sum);
  }
}

/* The sums of the last chain are put aside when it ends before the others. */
static void NAME(run_chains)(const NAME(job) * j) {
  enum { MOST = COMPLEX_VECTORS / 2 * LANES };
  const complex_vectors *p = j->p;
  const int64_t chain = j->vectors / j->chains * LANES, last = (j->count - 1) * chain;
  T aside[COMPLEX_ITEMS][MOST];
  if (p->items > 1 || p->results > 4 * NUMBERS) NAME(copy_factors)(j); /* else each is used a few times */
  NAME(run_steps)(j, 0, j->last);
  const bool ends = j->count > 1 && j->last < COMPLEX_CHAIN;
  for (int64_t i = 0; ends && i < p->items; i++)
    memcpy(aside[i], (T *)(void *)p->chains + i * p->pitch + last, (size_t)chain * sizeof(T));
  if (ends) NAME(run_steps)(j, j->last, COMPLEX_CHAIN);
  for (int64_t i = 0; i < p->items; i++)
    for (int c = 0; c < j->count; c++) {
      const T *sums = (const T *)(void *)p->chains + i * p->pitch + c * chain;
      NAME(add_chain)(p, i, ends && c == j->count - 1 ? aside[i] : sums, j->k == 0 && c == 0);
    }
}

/* Few terms are not worth a vector. */
static void NAME(run_tiny)(const complex_vectors *p) {
  for (int64_t i = 0; i < p->items; i++) {
    T *to = (T *)(void *)p->sums + i * p->pitch;
    for (int64_t r = 0; r < p->results; r++, to += 2) {
      const T *x = (const T *)(const void *)p->x + r * p->x_result, *v = (const T *)(const void *)p->v + i * p->v_item;
      T re = 0, im = 0;
      for (int64_t k = 0; k < p->k; k++, x += p->x_k, v += p->v_k) {
        const T *left = p->x_is_left ? x : v, *right = p->x_is_left ? v : x;
        re = MADD(left[1], -right[1], MADD(left[0], right[0], re));
        im = MADD(left[1], right[0], MADD(left[0], right[1], im));
      }
      to[0] = re;
      to[1] = im;
    }
  }
}

static void NAME(run)(const complex_vectors *p) {
  if (p->k * p->results <= COMPLEX_TINY) {
    NAME(run_tiny)(p);
    return;
  }
  NAME(job)
  j = {.p = p,
       .direct = p->x_result == 2 || p->results == 1,
       .vectors = p->items == 1 ? COMPLEX_VECTORS : COMPLEX_VECTORS / 2};
  const int chains = j.vectors / NAME(width_of)(p->results, j.vectors);
  for (; j.k < p->k; j.k += j.chains * COMPLEX_CHAIN) {
    const int64_t left = p->k - j.k;
    j.chains = left > COMPLEX_CHAIN ? chains : 1;
    j.count = (int)gemm_min(j.chains, gemm_ceil_div(left, COMPLEX_CHAIN));
    j.last = gemm_min(COMPLEX_CHAIN, left - (j.count - 1) * COMPLEX_CHAIN);
    NAME(run_chains)(&j);
  }
}

#undef FACTOR
#undef V
#undef LANES
#undef NUMBERS
#undef T
#undef VECTOR
#undef FMA
#undef MADD
#undef EVEN
#undef ODD
#undef SWAP
#undef PAIR
#undef SPREAD
#undef NEGATE_EVEN
#undef LOAD_SOME
#undef NAME
