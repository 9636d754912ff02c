/* Loops over lines: the part of linalg_vector_type.h that kernel/factor.h uses. No fused multiply-adds. */
#define CHUNK ((int)(64 / sizeof(T))) /* elements of a chunk */
#define PARTS (CHUNK / LANES)         /* vectors of a chunk */

static double NAME(dot)(const void *a, const void *b, int64_t count) {
  const T *x = a, *y = b;
  V sums[PARTS];
  T lanes[CHUNK], rest[2][CHUNK] = {{0}};
  int64_t i = 0;
  _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) sums[p] = SPLAT(0);
  for (; i + CHUNK <= count; i += CHUNK)
    _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) sums[p] +=
        NAME(load)(x + i + p * LANES) * NAME(load)(y + i + p * LANES);
  if (i < count) {
    for (int64_t k = 0; k < count - i; k++) rest[0][k] = x[i + k], rest[1][k] = y[i + k];
    _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) sums[p] +=
        NAME(load)(rest[0] + p * LANES) * NAME(load)(rest[1] + p * LANES);
  }
  memcpy(lanes, sums, sizeof lanes);
  for (int step = CHUNK / 2; step > 0; step /= 2)
    for (int k = 0; k < step; k++) lanes[k] += lanes[k + step];
  return (double)lanes[0];
}

static void NAME(add_scaled)(void *to, double by, const void *from, int64_t count) {
  const T *x = from, factor = (T)by;
  T *y = to;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    V sum = NAME(load)(y + i) + SPLAT(factor) * NAME(load)(x + i);
    memcpy(y + i, &sum, sizeof sum);
  }
  for (; i < count; i++) y[i] += factor * x[i];
}

static void NAME(rotate)(void *a, void *b, double cosine, double sine, int64_t count) {
  const T c = (T)cosine, s = (T)sine;
  T *x = a, *y = b;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    V u = NAME(load)(x + i), v = NAME(load)(y + i), p = SPLAT(c) * u + SPLAT(s) * v, q = SPLAT(c) * v - SPLAT(s) * u;
    memcpy(x + i, &p, sizeof p);
    memcpy(y + i, &q, sizeof q);
  }
  for (; i < count; i++) {
    const T u = x[i], v = y[i];
    x[i] = c * u + s * v;
    y[i] = c * v - s * u;
  }
}

#undef CHUNK
#undef PARTS
