/* The part of pick_body.h for one type T, with vectors of LANES. */

static int64_t NAME(pick)(const T *x, int64_t n, T first, T span, T *values, uint32_t *indices) {
  int64_t i = 0, count = 0;
  for (; i + LANES <= n; i += LANES) count += SOME(x + i, i, first, span, values + count, indices + count);
  for (; i < n; i++) {
    values[count] = x[i];
    indices[count] = (uint32_t)i;
    count += (T)(x[i] - first) <= span;
  }
  return count;
}

/* The least of each of `groups` groups. The trip counts are constants, so that compilers make vectors. */
INLINE void NAME(least)(const T *x, int64_t n, int64_t groups, T *least) {
  for (int64_t g = 0; g < groups; g++) least[g] = x[g];
  int64_t i = groups;
  for (; i + groups <= n; i += groups)
    for (int64_t g = 0; g < groups; g++) least[g] = x[i + g] < least[g] ? x[i + g] : least[g];
  for (int64_t g = 0; i + g < n; g++) least[g] = x[i + g] < least[g] ? x[i + g] : least[g];
}

/* Halves the range of the bound until it has as few as is worth it: a few more cost less than another halving. */
#define SPARE 3
INLINE T NAME(bisect)(const T *x, int64_t groups, int64_t k) {
  T low = x[0], high = x[0];
  for (int64_t g = 1; g < groups; g++) {
    low = x[g] < low ? x[g] : low;
    high = x[g] > high ? x[g] : high;
  }
  while (low < high) {
    const T middle = (T)(low + (high - low) / 2);
    T count = 0;
    for (int64_t g = 0; g < groups; g++) count = (T)(count + (x[g] <= middle));
    if ((int64_t)count < k)
      low = (T)(middle + 1);
    else
      high = middle;
    if ((int64_t)count >= k && (int64_t)count <= k + k / 4 + SPARE) break;
  }
  return high;
}

static T NAME(bound)(const T *x, int64_t n, int64_t k) {
  T least[256];
  if (k <= 16 && n >= 64) {
    NAME(least)(x, n, 64, least);
    return NAME(bisect)(least, 64, k);
  }
  if (k <= 64 && n >= 256) {
    NAME(least)(x, n, 256, least);
    return NAME(bisect)(least, 256, k);
  }
  return (T) ~(T)0;
}

#undef T
#undef LANES
#undef SOME
#undef NAME
#undef SPARE
