/* The part of vector_dot_body.h for elements of type X that are added as T. NAME(load) makes two vectors of T of
 * neighbouring elements, whose order NAME(in_order) restores. */

typedef T NAME(vector_of) __attribute__((vector_size(VECTOR_BYTES)));
#define V NAME(vector_of)
#define WIDTH ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define LANES (TS_DOT_LANE_BYTES / (int64_t)sizeof(T))

/* Adds a term of each lane. */
INLINE void NAME(add)(const X *x, const X *y, V *sums) {
  UNROLL for (int v = 0; v < VECTORS; v += 2) {
    V a[2], b[2];
    NAME(load)(x + v * WIDTH, a);
    NAME(load)(y + v * WIDTH, b);
    sums[v] = FMA(a[0], b[0], sums[v]);
    sums[v + 1] = FMA(a[1], b[1], sums[v + 1]);
  }
}

/* Adds terms of the first n lanes. To the others -0 is added, which leaves them as they are, also where they are -0. */
static void NAME(add_some)(const X *x, const X *y, int64_t n, V *sums) {
  X lhs[LANES], rhs[LANES] = {0};
  memcpy(lhs, x, (size_t)n * sizeof(X));
  memcpy(rhs, y, (size_t)n * sizeof(X));
  for (int64_t l = n; l < LANES; l++) lhs[l] = MINUS_ZERO;
  NAME(add)(lhs, rhs, sums);
}

/* A chain of each lane, of n terms together. */
INLINE void NAME(chains)(const X *x, const X *y, int64_t n, V *sums) {
  int64_t k = 0;
  EACH_VECTOR(v, VECTORS) sums[v] = (V){0};
  for (; k + LANES <= n; k += LANES) NAME(add)(x + k, y + k, sums);
  if (k < n) NAME(add_some)(x + k, y + k, n - k, sums);
}

INLINE T NAME(halved)(V *sums) {
  T lanes[VECTOR_BYTES / sizeof(T)];
  UNROLL for (int v = 0; v < VECTORS; v += 2) NAME(in_order)(sums + v);
  if (VECTORS > 8) EACH_VECTOR(v, 8) sums[v] += sums[(v + 8) % VECTORS];
  if (VECTORS > 4) EACH_VECTOR(v, 4) sums[v] += sums[(v + 4) % VECTORS];
  EACH_VECTOR(v, 2) sums[v] += sums[v + 2];
  sums[0] += sums[1];
  memcpy(lanes, &sums[0], sizeof lanes);
  for (int64_t half = WIDTH / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
  return lanes[0];
}

/* Elements [k, k + n) of a line as neighbours; `to` has room for a chain of each lane. */
INLINE const X *NAME(neighbours)(ts_vector_dot_line line, int64_t k, int64_t n, X *to) {
  const X *from = (const X *)line.at + k * line.step;
  if (line.step == 1) return from;
  copy_apart((const char *)from, line.step, n, (int)sizeof(X), (char *)to);
  return to;
}

/* Chains of the terms from k on, at most of a chain of each lane. */
INLINE int64_t NAME(next_chains)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t k, int64_t n, V *sums) {
  enum { CHAIN = TS_DOT_LANE_BYTES / sizeof(T) * TS_DOT_CHAIN };
  X apart[2][CHAIN];
  const int64_t here = n - k < CHAIN ? n - k : CHAIN;
  const X *a = NAME(neighbours)(x, k, here, apart[0]), *b = NAME(neighbours)(y, k, here, apart[1]);
  if (here == CHAIN)
    NAME(chains)(a, b, CHAIN, sums);
  else
    NAME(chains)(a, b, here, sums);
  return k + here;
}

static T NAME(block)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t n) {
  V sums[VECTORS], more[VECTORS];
  for (int64_t k = NAME(next_chains)(x, y, 0, n, sums); k < n;) {
    k = NAME(next_chains)(x, y, k, n, more);
    EACH_VECTOR(v, VECTORS) sums[v] += more[v];
  }
  return NAME(halved)(sums);
}

#undef V
#undef WIDTH
#undef LANES
#undef T
#undef X
#undef MINUS_ZERO
#undef FMA
#undef NAME
