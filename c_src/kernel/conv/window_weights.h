/* Products of channels with weights (ts_window_dot_fn, ts_window_strip_fn) for one type: a part of
 * kernel/conv/window_strips.h. The includer defines NAME of a function; T, the element in memory; A, the element in
 * computation; and its vectors V. */

/* Some channels of four points of the output from channel i on: the points share the loads of weights; two vectors of
 * channels while at least two are left. */
INLINE int64_t NAME(dot_four)(const char *const *taps, const ts_window_weights *weights, T *to) {
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), size = (int64_t)sizeof(T), count = weights->count;
  int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    V sums[TS_WINDOW_DOTS][2] = {{{0}}};
    for (int64_t t = 0; t < weights->taps; t++) {
      const char *at = weights->data + (t * count + i) * size;
      V w = NAME(loads)(at), next = NAME(loads)(at + lanes * size);
      for (int r = 0; r < TS_WINDOW_DOTS; r++) {
        const char *x = taps[t * TS_WINDOW_DOTS + r] + i * size;
        sums[r][0] = NAME(fma_vector)(NAME(loads)(x), w, sums[r][0]);
        sums[r][1] = NAME(fma_vector)(NAME(loads)(x + lanes * size), next, sums[r][1]);
      }
    }
    for (int r = 0; r < TS_WINDOW_DOTS; r++)
      NAME(stores)(to + r * count + i, sums[r][0]), NAME(stores)(to + r * count + i + lanes, sums[r][1]);
  }
  return i;
}
INLINE int64_t NAME(dot_vectors)(const char *const *taps, const ts_window_weights *weights, int64_t i, T *to) {
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), size = (int64_t)sizeof(T), count = weights->count;
  for (; i + lanes <= count; i += lanes) {
    V sum = {0};
    for (int64_t t = 0; t < weights->taps; t++)
      sum = NAME(fma_vector)(NAME(loads)(taps[t * TS_WINDOW_DOTS] + i * size),
                             NAME(loads)(weights->data + (t * count + i) * size), sum);
    NAME(stores)(to + i, sum);
  }
  return i;
}
INLINE A NAME(dot_channel)(const char *const *taps, const ts_window_weights *weights, int64_t i) {
  A sum = 0;
  for (int64_t t = 0; t < weights->taps; t++) {
    A x = NAME(load)(((const T *)(const void *)taps[t * TS_WINDOW_DOTS])[i]);
    A w = NAME(load)(((const T *)(const void *)weights->data)[t * weights->count + i]);
    sum = NAME(fma)(x, w, sum);
  }
  return sum;
}
static void NAME(dot)(const char *const *taps, int points, const ts_window_weights *weights, void *out) {
  int64_t first = points == TS_WINDOW_DOTS ? NAME(dot_four)(taps, weights, out) : 0;
  for (int r = 0; r < points; r++) {
    T *to = (T *)out + r * weights->count;
    int64_t i = NAME(dot_vectors)(taps + r, weights, first, to);
    for (; i < weights->count; i++) to[i] = NAME(store)(NAME(dot_channel)(taps + r, weights, i));
  }
}

/* Each function is inlined for constant P (points), SLIDES and `inside`. With SLIDES, rows have 3 taps without a stride
 * or dilation: neighbouring points share elements, and each element is loaded once. */
INLINE V NAME(strip_load)(const ts_window_strip *s, const char *line, int64_t at, int64_t i, bool inside) {
  const int64_t size = (int64_t)sizeof(T);
  return strip_has(s, line, at, inside) ? NAME(loads)(line + (at * s->weights->count + i) * size) : (V){0};
}
/* Sums of the upper row, then of the lower row, where the line belongs to the previous row of taps. */
INLINE void NAME(strip_slide)(const ts_window_strip *s, const char *line, const char *w, int64_t first, int64_t i,
                              bool inside, int P, int rows, V *sums) {
  const int64_t step = s->weights->count * (int64_t)sizeof(T);
  V upper[3] = {{0}}, lower[3] = {{0}};
  _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++) {
    if (rows & UPPER) upper[k] = NAME(loads)(w + k * step);
    if (rows & LOWER) lower[k] = NAME(loads)(w + (k - 3) * step);
  }
  _Pragma("GCC unroll 10") for (int at = 0; at < P + 2; at++) {
    V x = (V)in_register((floats)NAME(strip_load)(s, line, first + at, i, inside));
    _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++) if (at >= k && at - k < P) {
      if (rows & UPPER) sums[at - k] = NAME(fma_vector)(x, upper[k], sums[at - k]);
      if (rows & LOWER) sums[P + at - k] = NAME(fma_vector)(x, lower[k], sums[P + at - k]);
    }
  }
}
INLINE void NAME(strip_taps)(const ts_window_strip *s, const char *line, const char *w, int64_t first, int64_t i,
                             bool inside, int P, V *sums) {
  const int64_t step = s->weights->count * (int64_t)sizeof(T);
  for (int64_t k = 0; k < s->line_taps; k++, first += s->dilation, w += step) {
    V by = NAME(loads)(w);
    _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) sums[p] =
        NAME(fma_vector)(NAME(strip_load)(s, line, first + p * s->stride, i, inside), by, sums[p]);
  }
}
/* Half a cache line does not bypass the caches: its other half is stored too late. */
INLINE void NAME(strip_store)(const ts_window_strip *s, const V *sums, int P, T *to) {
  const int64_t count = s->weights->count; /* a copy: stores may not change it */
  if (s->streams && VECTOR_BYTES == 64) {
    _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) NAME(streams)(to + p * count, sums[p]);
  } else {
    _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) NAME(stores)(to + p * count, sums[p]);
  }
}
/* A vector of channels. */
INLINE void NAME(strip_vector)(const ts_window_strip *s, int64_t first, int64_t i, bool inside, bool slides, int P,
                               T *to) {
  const int64_t size = (int64_t)sizeof(T), row = s->line_taps * s->weights->count * size;
  const char *w = s->weights->data + i * size;
  V sums[STRIP_PLACES] = {{0}};
  for (int64_t r = 0; r < s->line_count; r++, w += row) {
    if (slides)
      NAME(strip_slide)(s, s->lines[r], w, first, i, inside, P, UPPER, sums);
    else
      NAME(strip_taps)(s, s->lines[r], w, first, i, inside, P, sums);
  }
  NAME(strip_store)(s, sums, P, to + i);
}
/* The same for two rows of outputs: lines between the first and the last are read once for both. */
INLINE void NAME(strip_pair)(const ts_window_strip *s, int64_t first, int64_t i, bool inside, T *to) {
  const int64_t size = (int64_t)sizeof(T), row = s->line_taps * s->weights->count * size, last = s->line_count;
  const char *w = s->weights->data + i * size;
  V sums[2 * PAIR_PLACES] = {{0}};
  NAME(strip_slide)(s, s->lines[0], w, first, i, inside, PAIR_PLACES, UPPER, sums);
  for (int64_t r = 1; r < last; r++)
    NAME(strip_slide)(s, s->lines[r], (w += row), first, i, inside, PAIR_PLACES, UPPER | LOWER, sums);
  NAME(strip_slide)(s, s->lines[last], w + row, first, i, inside, PAIR_PLACES, LOWER, sums);
  NAME(strip_store)(s, sums, PAIR_PLACES, to + i);
  NAME(strip_store)(s, sums + PAIR_PLACES, PAIR_PLACES, to + s->pair + i);
}
/* The last vector may overlap the previous one: then both compute the same elements. */
INLINE void NAME(strip_vectors)(const ts_window_strip *s, int64_t first, bool inside, bool slides, int P, T *to) {
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), count = s->weights->count;
  for (int64_t i = 0; i < count; i += lanes)
    NAME(strip_vector)(s, first, i + lanes <= count ? i : count - lanes, inside, slides, P, to);
}
static A NAME(strip_one)(const ts_window_strip *s, int64_t first, int64_t i) {
  const T *w = (const T *)(const void *)s->weights->data + i;
  A sum = 0;
  for (int64_t r = 0; r < s->line_count; r++)
    for (int64_t k = 0; k < s->line_taps; k++, w += s->weights->count) {
      int64_t at = first + k * s->dilation;
      const T *x = (const T *)(const void *)s->lines[r];
      A value = strip_has(s, s->lines[r], at, false) ? NAME(load)(x[at * s->weights->count + i]) : 0;
      sum = NAME(fma)(value, NAME(load)(*w), sum);
    }
  return sum;
}
static void NAME(strip_ones)(const ts_window_strip *s, int64_t points, T *to) {
  for (int64_t p = 0; p < points; p++)
    for (int64_t i = 0; i < s->weights->count; i++)
      to[p * s->weights->count + i] = NAME(store)(NAME(strip_one)(s, s->first + p * s->stride, i));
}
INLINE void NAME(strip_points)(const ts_window_strip *s, int64_t first, int P, T *to) {
  bool slides = strip_slides(s), inside = strip_is_inside(s, s->line_count, first, P);
  if (slides && inside) {
    NAME(strip_vectors)(s, first, true, true, P, to);
  } else if (slides) {
    NAME(strip_vectors)(s, first, false, true, P, to);
  } else if (inside) {
    NAME(strip_vectors)(s, first, true, false, P, to);
  } else {
    NAME(strip_vectors)(s, first, false, false, P, to);
  }
}
static void NAME(strip_eight)(const ts_window_strip *s, int64_t first, T *to) { NAME(strip_points)(s, first, 8, to); }
static void NAME(strip_four)(const ts_window_strip *s, int64_t first, T *to) { NAME(strip_points)(s, first, 4, to); }
static void NAME(strip_single)(const ts_window_strip *s, int64_t first, T *to) { NAME(strip_points)(s, first, 1, to); }
INLINE void NAME(strip_pairs)(const ts_window_strip *s, int64_t first, bool inside, T *to) {
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), count = s->weights->count;
  for (int64_t i = 0; i < count; i += lanes)
    NAME(strip_pair)(s, first, i + lanes <= count ? i : count - lanes, inside, to);
}
static __attribute__((noinline)) void NAME(strip_pair_points)(const ts_window_strip *s, int64_t first, T *to) {
  if (strip_is_inside(s, s->line_count + 1, first, PAIR_PLACES))
    NAME(strip_pairs)(s, first, true, to);
  else
    NAME(strip_pairs)(s, first, false, to);
}
/* The last points may overlap those before, like vectors. */
static void NAME(strip_two_rows)(const ts_window_strip *s, int64_t points, T *out) {
  for (int64_t p = 0; p < points; p += PAIR_PLACES) {
    int64_t at = p + PAIR_PLACES <= points ? p : points - PAIR_PLACES;
    NAME(strip_pair_points)(s, s->first + at, out + at * s->weights->count);
  }
}
static void NAME(strip_row)(const ts_window_strip *s, int64_t points, T *out) {
  int64_t wide = points >= 8 ? 8 : points >= 4 ? 4 : 1;
  for (int64_t p = 0; p < points; p += wide) {
    int64_t at = p + wide <= points ? p : points - wide;
    (wide == 8   ? NAME(strip_eight)
     : wide == 4 ? NAME(strip_four)
                 : NAME(strip_single))(s, s->first + at * s->stride, out + at * s->weights->count);
  }
}
static void NAME(strip)(const ts_window_strip *s, int64_t points, void *out) {
  const bool vectors = s->weights->count >= VECTOR_BYTES / (int64_t)sizeof(A);
  if (s->pair && vectors && strip_slides(s) && points >= PAIR_PLACES) {
    NAME(strip_two_rows)(s, points, out);
  } else {
    const ts_window_strip lower = strip_lower(s);
    (vectors ? NAME(strip_row) : NAME(strip_ones))(s, points, out);
    if (s->pair) (vectors ? NAME(strip_row) : NAME(strip_ones))(&lower, points, (T *)out + s->pair);
  }
  if (s->streams) stream_end();
}

#undef NAME
#undef T
#undef V
#undef A
