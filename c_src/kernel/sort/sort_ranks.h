/* Ranks of the keys of a short line: included once for each kind of lane, with
 *   BITS   of a lane
 * A key's rank is the number of keys before it in sorted order: those that are less, and equal ones that stand before
 * it. Each key is compared with all others, a vector of them at a time, without a branch. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define L CAT(CAT(uint, BITS), _t)
#define S CAT(CAT(int, BITS), _t)
#define I CAT(signed, BITS)
#define LANES CAT(LANES, BITS)

/* All instruction sets compare signed numbers in one step. */
typedef S I __attribute__((vector_size(VECTOR_BYTES)));

/* Of the keys from `first` on. */
INLINE I CAT(ranks_of_vector, BITS)(const S *keys, int64_t n, int64_t first) {
  const int64_t end = first + LANES < n ? first + LANES : n;
  I own, rank = (I){0} + (S)first, at = {0};
  memcpy(&own, keys + first, sizeof own);
  for (int64_t i = 0; i < LANES; i++) at[i] = (S)(first + i);
  _Pragma("GCC unroll 4") for (int64_t j = 0; j < first; j++) rank += own < (I){0} + keys[j];
  for (int64_t j = first; j < end; j++) {
    const I key = (I){0} + keys[j];
    rank -= (key < own) | ((key == own) & ((I){0} + (S)j < at));
  }
  _Pragma("GCC unroll 4") for (int64_t j = end; j < n; j++) rank -= (I){0} + keys[j] < own;
  return rank;
}

/* Of n keys; memory for whole vectors follows both arrays. */
static void CAT(ranks, BITS)(void *of, int64_t n, void *to) {
  S *keys = of, *ranks = to;
  const L sign = (L)1 << (BITS - 1);
  for (int64_t i = 0; i < n; i++) keys[i] = (S)((L)keys[i] ^ sign);
  for (int64_t i = n; i % LANES != 0; i++) keys[i] = 0;
  for (int64_t i = 0; i < n; i += LANES) {
    const I rank = CAT(ranks_of_vector, BITS)(keys, n, i);
    memcpy(ranks + i, &rank, sizeof rank);
  }
}

#undef CAT_
#undef CAT
#undef L
#undef S
#undef I
#undef LANES
#undef BITS
