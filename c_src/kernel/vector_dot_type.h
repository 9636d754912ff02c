/* The part of vector_dot_body.h for one type T. */

typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
#define V NAME(vector)
#define WIDTH ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define LANES ((int64_t)(TS_DOT_LANE_BYTES / sizeof(T)))

INLINE V NAME(load)(const T *x) {
  V out;
  memcpy(&out, x, sizeof out);
  return out;
}

/* The first n lanes take a term; the others stay as they are, also where they are -0. */
static V NAME(some)(const T *x, const T *y, int64_t n, V sums) {
  T lanes[VECTOR_BYTES / sizeof(T)];
  memcpy(lanes, &sums, sizeof lanes);
  for (int64_t l = 0; l < n; l++) lanes[l] = MADD(x[l], y[l], lanes[l]);
  return NAME(load)(lanes);
}

/* A chain of each lane, of n terms together. */
INLINE void NAME(chains)(const T *x, const T *y, int64_t n, V *sums) {
  int64_t k = 0;
  EACH_VECTOR(v, VECTORS) sums[v] = (V){0};
  for (; k + LANES <= n; k += LANES)
    EACH_VECTOR(v, VECTORS) sums[v] = FMA(NAME(load)(x + k + v * WIDTH), NAME(load)(y + k + v * WIDTH), sums[v]);
  if (k == n) return;
  EACH_VECTOR(v, VECTORS) {
    const int64_t at = k + v * WIDTH;
    if (at + WIDTH <= n)
      sums[v] = FMA(NAME(load)(x + at), NAME(load)(y + at), sums[v]);
    else if (at < n)
      sums[v] = NAME(some)(x + at, y + at, n - at, sums[v]);
  }
}

INLINE T NAME(halved)(V *sums) {
  T lanes[VECTOR_BYTES / sizeof(T)];
  if (VECTORS > 8) EACH_VECTOR(v, 8) sums[v] += sums[(v + 8) % VECTORS];
  if (VECTORS > 4) EACH_VECTOR(v, 4) sums[v] += sums[(v + 4) % VECTORS];
  EACH_VECTOR(v, 2) sums[v] += sums[v + 2];
  sums[0] += sums[1];
  memcpy(lanes, &sums[0], sizeof lanes);
  for (int64_t half = WIDTH / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
  return lanes[0];
}

static T NAME(block)(const T *x, const T *y, int64_t n) {
  const int64_t chain = LANES * TS_DOT_CHAIN;
  V sums[VECTORS], more[VECTORS];
  int64_t k = n < chain ? n : chain;
  NAME(chains)(x, y, k, sums);
  for (; k + chain <= n; k += chain) {
    NAME(chains)(x + k, y + k, chain, more);
    EACH_VECTOR(v, VECTORS) sums[v] += more[v];
  }
  if (k < n) {
    NAME(chains)(x + k, y + k, n - k, more);
    EACH_VECTOR(v, VECTORS) sums[v] += more[v];
  }
  return NAME(halved)(sums);
}

#undef V
#undef WIDTH
#undef LANES
#undef T
#undef FMA
#undef MADD
#undef NAME
