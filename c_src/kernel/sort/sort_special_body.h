/* Finding the zeros and NaNs of neighbours, for one size of element: included once for each, with
 *   BITS   of an element
 *   LANE   the same, if the instruction set can move chosen lanes of this size together; 0 otherwise
 * None of it has a branch that depends on the elements: those that many lines hold here and there would be guessed
 * wrong. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define FN(name) CAT(CAT(name, _), BITS)
#define U CAT(CAT(uint, BITS), _t)

#if LANE
#define LANES CAT(LANES, LANE)
#define V CAT(lanes, LANE)
#define LESS CAT(LESS, LANE)
#define COMPRESS CAT(COMPRESS, LANE)
#define ALL ((1U << LANES) - 1)

/* Of the lanes of the mask `valid`. Masks are counted in general registers from the beginning: GCC 12 may spill a mask
 * register of 16 lanes as two bytes, and read four of them to count. */
INLINE void FN(find_in_vector)(const ts_sort_key *key, V x, unsigned valid, void *zeros, void *nans,
                               ts_sort_special *found) {
  const V size = x & (U)key->magnitude;
  const unsigned zero = LESS(size, (V){0} + 1) & valid, nan = LESS((V){0} + (U)key->limit, size) & valid;
  const unsigned negative = LESS((V){0} + (U)key->magnitude, x) ^ (key->nan ? 0 : ALL);
  unsigned counted[] = {negative & valid & ~(zero | nan), zero, nan};
  __asm__("" : "+r"(counted[0]), "+r"(counted[1]), "+r"(counted[2]));
  const V front_zeros = COMPRESS(zero, x), front_nans = COMPRESS(nan, x);
  memcpy((U *)zeros + found->zeros, &front_zeros, sizeof x);
  memcpy((U *)nans + found->nans, &front_nans, sizeof x);
  found->less += mask_lanes(counted[0]);
  found->zeros += mask_lanes(counted[1]);
  found->nans += mask_lanes(counted[2]);
}

static ts_sort_special FN(find)(const ts_sort_key *key, const void *in, int64_t n, void *zeros, void *nans) {
  const ts_sort_key k = *key;
  const U *from = in;
  ts_sort_special found = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    V x;
    memcpy(&x, from + i, sizeof x);
    FN(find_in_vector)(&k, x, ALL, zeros, nans, &found);
  }
  const unsigned rest = (1U << (n - i)) - 1;
  if (rest) FN(find_in_vector)(&k, CAT(LOAD, LANE)(from + i, rest), rest, zeros, nans, &found);
  found.less += key->nan ? 0 : found.nans;
  return found;
}

#undef LANES
#undef V
#undef LESS
#undef COMPRESS
#undef ALL

#else

static ts_sort_special FN(find)(const ts_sort_key *key, const void *in, int64_t n, void *zeros, void *nans) {
  const ts_sort_key k = *key;
  const U *from = in;
  ts_sort_special found = {0};
  for (int64_t i = 0; i < n; i++) {
    const U x = from[i], of = FN(ts_sort_key)(&k, x);
    ((U *)zeros)[found.zeros] = x;
    ((U *)nans)[found.nans] = x;
    found.less += of < (U)k.flip;
    found.zeros += of == (U)k.flip;
    found.nans += FN(ts_sort_is_nan)(&k, x);
  }
  return found;
}

#endif

#undef CAT_
#undef CAT
#undef FN
#undef U
#undef BITS
#undef LANE
