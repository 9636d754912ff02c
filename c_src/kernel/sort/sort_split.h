/* Splitting keys by pivots, for one kind of lane: included once for each, with
 *   LANE              bits of a lane
 *   LESS(a, b)        the mask of the lanes with a less than b; mask_lanes() counts them
 *   COMPRESS(m, a)    the lanes of the mask m in front
 *   APART(m, a, low, high)  low gets the lanes of the mask in front, high the others at its end
 *   LOAD(from, m)     the lanes of the mask m
 *   STORE(to, m, a)   the same
 *   SORT_TILE(t)      sorts each lane of LANES vectors */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FN(name) CAT(CAT(name, _), LANE)
#define LANES CAT(LANES, LANE)
#define V CAT(lanes, LANE)
#define U CAT(CAT(uint, LANE), _t)
#define T CAT(CAT(CAT(tile, LANE), _of_), LANE)
#define ALL ((1U << LANES) - 1)

/* At most a vector of keys, to both ends of the room that is left. */
static int FN(split_last)(const U *from, int64_t n, uint64_t pivot, U *to, int64_t room) {
  const unsigned valid = n < LANES ? (1U << n) - 1 : ALL;
  const V x = LOAD(from, valid);
  const unsigned less = LESS(x, (V){0} + (U)pivot) & valid;
  const int count = mask_lanes(less), others = (n < LANES ? (int)n : LANES) - count;
  STORE(to, (1U << count) - 1, COMPRESS(less, x));
  STORE(to + (room - others), (1U << others) - 1, COMPRESS(~less & valid, x));
  return count;
}

/* Lesser keys are stored from the start on, the others from the end. A store writes a whole vector: surplus
 * lanes fall into the gap between both, where the remaining keys will come. The last two vectors are stored exactly. */
static int64_t FN(split)(const void *keys, int64_t n, uint64_t pivot, void *to) {
  const U *from = keys;
  U *low = to;
  const V p = (V){0} + (U)pivot;
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += LANES) {
    V x;
    memcpy(&x, from + i, sizeof x);
    const unsigned less = LESS(x, p);
    const int count = mask_lanes(less);
    V a, b;
    APART(less, x, a, b);
    memcpy(low, &a, sizeof a);
    memcpy(low + (n - i - LANES), &b, sizeof b);
    low += count;
  }
  for (int64_t size; i < n; i += size) {
    size = n - i < LANES ? n - i : LANES;
    low += FN(split_last)(from + i, size, pivot, low, n - i);
  }
  return low - (U *)to;
}

/* The medians of the means of two rows that are next to a pivot, for LANES pivots. */
static V FN(medians)(const V *sorted, int64_t rows, int count, int first) {
  T t[LANES];
  for (int i = 0; i < LANES; i++) {
    const int pivot = first + i + 1 < count ? first + i + 1 : count - 1;
    const V *row = sorted + pivot * rows / count;
    t[i] = row[-1] + ((row[0] - row[-1]) >> 1);
  }
  CAT(transpose_, T)(t);
  SORT_TILE(t);
  return t[LANES / 2];
}

static void FN(pivots)(void *sample, int64_t rows, int count, uint64_t *pivots) {
  V *v = sample;
  for (int64_t i = 0; i < rows; i++) v[i] = CAT(TO_LANE, LANE)(v[i]);
  CAT(network_, LANE)(v, rows);
  for (int first = 0; first < count - 1; first += LANES) {
    const V medians = CAT(TO_LANE, LANE)(FN(medians)(v, rows, count, first));
    for (int i = 0; i < LANES && first + i < count - 1; i++) pivots[first + i] = medians[i];
  }
}

#undef CAT_
#undef CAT
#undef FN
#undef LANES
#undef V
#undef U
#undef T
#undef ALL
#undef LANE
#undef LESS
#undef COMPRESS
#undef APART
#undef LOAD
#undef STORE
#undef SORT_TILE
