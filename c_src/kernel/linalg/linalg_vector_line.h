/* Loops over lines: the part of linalg_vector_type.h that kernel/linalg/factor.h uses. Vectors of all instruction sets
 * with fused multiply-adds give the same bits. */
#define CHUNK ((int)(64 / sizeof(T))) /* elements of a chunk */
#define PARTS (CHUNK / LANES)         /* vectors of a chunk */

/* The sum of a chunk: one half is added to the other again and again. */
INLINE double NAME(sum_chunk)(V *sums) {
  _Pragma("GCC unroll 4") for (int half = PARTS / 2; half > 0; half /= 2)
      _Pragma("GCC unroll 4") for (int p = 0; p < half; p++) sums[p] += sums[p + half];
  return (double)NAME(sum_lanes)(sums[0]);
}

static double NAME(dot)(const void *a, const void *b, int64_t count) {
  const T *x = a, *y = b;
  V sums[PARTS];
  int64_t i = 0;
  _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) sums[p] = SPLAT(0);
  for (; i + CHUNK <= count; i += CHUNK)
    _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) sums[p] =
        FMA(NAME(load)(x + i + p * LANES), NAME(load)(y + i + p * LANES), sums[p]);
  for (int p = 0; i < count && p < PARTS; p++, i += LANES)
    sums[p] = FMA(NAME(load_up_to)(x + i, count - i), NAME(load_up_to)(y + i, count - i), sums[p]);
  return NAME(sum_chunk)(sums);
}

/* As integers, sizes have the order of the numbers, and infinities and NaN are behind them. */
INLINE I NAME(larger_bits)(I most, V x) {
  const I bits = (I)NAME(size)(x), exceeds = bits > most;
  return (bits & exceeds) | (most & ~exceeds);
}

static double NAME(largest)(const void *from, int64_t count) {
  const T *x = from;
  I bits[PARTS];
  W lanes[LANES], most = 0;
  T out;
  int64_t i = 0;
  _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) bits[p] = (I)SPLAT(0);
  for (; i + CHUNK <= count; i += CHUNK)
    _Pragma("GCC unroll 8") for (int p = 0; p < PARTS; p++) bits[p] =
        NAME(larger_bits)(bits[p], NAME(load)(x + i + p * LANES));
  for (; i < count; i += LANES) bits[0] = NAME(larger_bits)(bits[0], NAME(load_up_to)(x + i, count - i));
  for (int p = 1; p < PARTS; p++) bits[0] = NAME(larger_bits)(bits[0], (V)bits[p]);
  memcpy(lanes, bits, sizeof lanes);
  for (int k = 0; k < LANES; k++) most = lanes[k] > most ? lanes[k] : most;
  memcpy(&out, &most, sizeof out);
  return (double)out;
}

/* Lines that a reflector is applied to at once: as many sums hide the latency of an addition. */
#define TOGETHER (PARTS == 1 ? 8 : 4)

/* The factors of a vector that is added to lines: -tau times their inner products, each with the bits of `dot`. */
INLINE void NAME(reflections)(const T *lines, int64_t step, int count, const ts_linalg_reflector *r, T *out) {
  const T *v = r->v;
  V sums[TOGETHER * PARTS];
  int64_t i = 0;
  _Pragma("GCC unroll 16") for (int p = 0; p < count * PARTS; p++) sums[p] = SPLAT(0);
  for (; i + CHUNK <= r->length; i += CHUNK) _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) {
      const V x = NAME(load)(v + i + p * LANES);
      _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) sums[c * PARTS + p] =
          FMA(x, NAME(load)(lines + c * step + i + p * LANES), sums[c * PARTS + p]);
    }
  if (i < r->length) _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) {
      const int64_t at = i + p * LANES, left = r->length - at;
      const V x = NAME(load_up_to)(v + at, left);
      _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) sums[c * PARTS + p] =
          FMA(x, NAME(load_up_to)(lines + c * step + at, left), sums[c * PARTS + p]);
    }
  _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) out[c] = (T)(-r->tau * NAME(sum_chunk)(sums + c * PARTS));
}

INLINE void NAME(reflect_some)(const ts_linalg_reflector *r, T *lines, int64_t step, int count) {
  const T *v = r->v;
  T factors[TOGETHER];
  V by[TOGETHER];
  int64_t i = 0;
  NAME(reflections)(lines, step, count, r, factors);
  _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) by[c] = SPLAT(factors[c]);
  for (; i + LANES <= r->length; i += LANES) {
    const V x = NAME(load)(v + i);
    _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) {
      const V sum = FMA(by[c], x, NAME(load)(lines + c * step + i));
      memcpy(lines + c * step + i, &sum, sizeof sum);
    }
  }
  if (i == r->length) return;
  const V x = LOAD_SOME(v + i, r->length - i);
  _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) {
    const V sum = FMA(by[c], x, LOAD_SOME(lines + c * step + i, r->length - i));
    STORE_SOME(lines + c * step + i, r->length - i, sum);
  }
}

static void NAME(reflect)(const ts_linalg_reflector *r, void *to, int64_t step, int64_t count) {
  T *lines = to;
  int64_t c = 0;
  if (r->tau == 0) return;
  for (; c + TOGETHER <= count; c += TOGETHER) NAME(reflect_some)(r, lines + c * step, step, TOGETHER);
  for (; c + 2 <= count; c += 2) NAME(reflect_some)(r, lines + c * step, step, 2);
  if (c < count) NAME(reflect_some)(r, lines + c * step, step, 1);
}

static void NAME(products)(const ts_linalg_reflector *r, const void *from, int64_t step, int64_t count, void *to) {
  const T *lines = from;
  T *out = to;
  int64_t c = 0;
  for (; c + TOGETHER <= count; c += TOGETHER) NAME(reflections)(lines + c * step, step, TOGETHER, r, out + c);
  for (; c + 2 <= count; c += 2) NAME(reflections)(lines + c * step, step, 2, r, out + c);
  if (c < count) NAME(reflections)(lines + c * step, step, 1, r, out + c);
}

/* ---- complex lines, whose imaginary parts are `plane` elements behind the real ones */

/* -tau times the sum of conj(v) x: each part is that of two real products, with the bits of `dot`. */
INLINE void NAME(complex_product)(const ts_linalg_reflector *r, int64_t plane, const T *x, T *re, T *im) {
  const T *v = r->v;
  V sums[4][PARTS];
  int64_t i = 0;
  _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) sums[0][p] = sums[1][p] = sums[2][p] = sums[3][p] = SPLAT(0);
  for (; i < r->length; i += CHUNK) _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++) {
      const int64_t at = i + p * LANES, left = r->length - at;
      const V v_re = NAME(load_up_to)(v + at, left), v_im = NAME(load_up_to)(v + plane + at, left);
      const V x_re = NAME(load_up_to)(x + at, left), x_im = NAME(load_up_to)(x + plane + at, left);
      sums[0][p] = FMA(v_re, x_re, sums[0][p]);
      sums[1][p] = FMA(v_im, x_im, sums[1][p]);
      sums[2][p] = FMA(v_re, x_im, sums[2][p]);
      sums[3][p] = FMA(v_im, x_re, sums[3][p]);
    }
  *re = (T)(-r->tau * NAME(sum_chunk)(sums[0])) + (T)(-r->tau * NAME(sum_chunk)(sums[1]));
  *im = (T)(-r->tau * NAME(sum_chunk)(sums[2])) - (T)(-r->tau * NAME(sum_chunk)(sums[3]));
}

static void NAME(complex_products)(const ts_linalg_reflector *r, int64_t plane, const void *from, int64_t step,
                                   int64_t count, void *to) {
  const T *lines = from;
  T *out = to;
  for (int64_t c = 0; c < count; c++) NAME(complex_product)(r, plane, lines + c * step, out + c, out + plane + c);
}

/* x += (re + i im) v */
INLINE void NAME(add_complex)(const T *v, int64_t length, int64_t plane, T *x, T re, T im) {
  for (int64_t i = 0; i < length; i += LANES) {
    const int64_t some = length - i;
    const V v_re = NAME(load_up_to)(v + i, some), v_im = NAME(load_up_to)(v + plane + i, some);
    const V x_re = FMA(SPLAT(-im), v_im, FMA(SPLAT(re), v_re, NAME(load_up_to)(x + i, some)));
    const V x_im = FMA(SPLAT(re), v_im, FMA(SPLAT(im), v_re, NAME(load_up_to)(x + plane + i, some)));
    NAME(store_up_to)(x + i, some, x_re);
    NAME(store_up_to)(x + plane + i, some, x_im);
  }
}

static void NAME(complex_reflect)(const ts_linalg_reflector *r, int64_t plane, void *to, int64_t step, int64_t count) {
  T *lines = to;
  for (int64_t c = 0; r->tau != 0 && c < count; c++) {
    T re, im;
    NAME(complex_product)(r, plane, lines + c * step, &re, &im);
    NAME(add_complex)(r->v, r->length, plane, lines + c * step, re, im);
  }
}

static void NAME(add_multiples)(const ts_linalg_sums *s, int64_t plane, void *to, int64_t step, int64_t count) {
  T *lines = to;
  const T *by = s->by;
  for (int64_t c = 0; c < count; c++) {
    const T re = s->adds ? by[c] : -by[c], im = s->adds == s->conjugate ? -by[plane + c] : by[plane + c];
    NAME(add_complex)(s->lines, s->length, plane, lines + c * step, re, im);
  }
}

/* ---- sums of lines, subtracted from others */

#define DEEP \
  (VECTOR_BYTES == 64 ? 4 : 2) /* vectors of each of 4 lines that are summed at once; of one line twice as many */

INLINE void NAME(take_vectors)(const ts_linalg_sums *s, bool adds, T *to, int64_t step, int64_t line, int64_t i,
                               int rows, int64_t some, int vecs) {
  const T *from = (const T *)s->lines + i, *by = (const T *)s->by + line;
  V sums[4 * DEEP];
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
      sums[r * vecs + v] = NAME(load_up_to)(to + r * step + i + v * LANES, some - v * LANES);
  for (int64_t k = 0; k < s->count; k++, from += s->step, by += s->by_step) {
    V x[2 * DEEP];
    _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) x[v] = NAME(load_up_to)(from + v * LANES, some - v * LANES);
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
      const V factor = SPLAT(adds ? by[r] : -by[r]);
      _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++) sums[r * vecs + v] = FMA(factor, x[v], sums[r * vecs + v]);
    }
  }
  _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) _Pragma("GCC unroll 8") for (int v = 0; v < vecs; v++)
      NAME(store_up_to)(to + r * step + i + v * LANES, some - v * LANES, sums[r * vecs + v]);
}

/* A vector, or `some` elements, of eight lines at a time, so that their sums hide the latency of an addition. */
INLINE void NAME(take_last)(const ts_linalg_sums *s, bool adds, T *to, int64_t step, int64_t count, int64_t i,
                            int64_t some) {
  int64_t c = 0;
  for (; c + 8 <= count; c += 8) NAME(take_vectors)(s, adds, to + c * step, step, c, i, 8, some, 1);
  for (; c < count; c++) NAME(take_vectors)(s, adds, to + c * step, step, c, i, 1, some, 1);
}

INLINE void NAME(sum_all)(const ts_linalg_sums *s, bool adds, T *to, int64_t step, int64_t count) {
  int64_t i = 0;
  for (; i + DEEP * LANES <= s->length; i += DEEP * LANES) {
    int64_t c = 0;
    for (; c + 4 <= count; c += 4) NAME(take_vectors)(s, adds, to + c * step, step, c, i, 4, DEEP * LANES, DEEP);
    for (; c < count; c++) NAME(take_vectors)(s, adds, to + c * step, step, c, i, 1, DEEP * LANES, DEEP);
  }
  for (; i + LANES <= s->length; i += LANES) NAME(take_last)(s, adds, to, step, count, i, LANES);
  if (i < s->length) NAME(take_last)(s, adds, to, step, count, i, s->length % LANES);
}

static void NAME(take_sums)(const ts_linalg_sums *s, void *lines, int64_t step, int64_t count) {
  if (s->adds)
    NAME(sum_all)(s, true, lines, step, count);
  else
    NAME(sum_all)(s, false, lines, step, count);
}

/* ---- rotations of neighbours: the second line of each is the first one of the next, and stays in registers */

#define HELD 4 /* vectors of a line */

INLINE void NAME(turn_vectors)(const T *angles, int64_t count, T *line, int64_t step, int64_t some, int vecs) {
  V x[HELD];
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) x[v] = NAME(load_up_to)(line + v * LANES, some - v * LANES);
  for (int64_t k = 0; k < count; k++, line += step) {
    const V c = SPLAT(angles[2 * k]), s = SPLAT(angles[2 * k + 1]), minus = SPLAT(-angles[2 * k + 1]);
    _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) {
      const V y = NAME(load_up_to)(line + step + v * LANES, some - v * LANES), p = FMA(s, y, c * x[v]);
      NAME(store_up_to)(line + v * LANES, some - v * LANES, p);
      x[v] = FMA(c, y, minus * x[v]);
    }
  }
  _Pragma("GCC unroll 4") for (int v = 0; v < vecs; v++) NAME(store_up_to)(line + v * LANES, some - v * LANES, x[v]);
}

static void NAME(turn)(const ts_linalg_turns *t, void *first, int64_t step, int64_t length) {
  T *line = first;
  int64_t i = 0;
  for (; i + HELD * LANES <= length; i += HELD * LANES)
    NAME(turn_vectors)(t->angles, t->count, line + i, step, HELD * LANES, HELD);
  for (; i + LANES <= length; i += LANES) NAME(turn_vectors)(t->angles, t->count, line + i, step, LANES, 1);
  if (i < length) NAME(turn_vectors)(t->angles, t->count, line + i, step, length % LANES, 1);
}

static void NAME(add_scaled)(void *to, double by, const void *from, int64_t count) {
  const T *x = from, factor = (T)by;
  T *y = to;
  for (int64_t i = 0; i < count; i += LANES) {
    const V sum = FMA(SPLAT(factor), NAME(load_up_to)(x + i, count - i), NAME(load_up_to)(y + i, count - i));
    NAME(store_up_to)(y + i, count - i, sum);
  }
}

#undef CHUNK
#undef PARTS
#undef TOGETHER
#undef DEEP
#undef HELD
