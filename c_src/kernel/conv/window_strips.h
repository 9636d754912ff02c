/* Strips of a depthwise convolution (ts_window_strip_fn), for one instruction set: a part of kernel/conv/window_body.h,
 * which defines what is used here. No include guard: each instruction set has its own. */

/* Points whose sums are in registers together: they share the loads of weights. Of two rows of outputs as many as leave
 * registers for the weights of both. */
enum { STRIP_PLACES = 8, PAIR_PLACES = VECTOR_BYTES == 64 ? 8 : 4 };

/* The rows of a pair to whose sums a line belongs. */
enum { UPPER = 1, LOWER = 2 };

/* Element `at` of a line, from channel i on. `inside`: no tap of these points reads padding. */
#define IN_LINE(s, line, at, inside) ((inside) || ((line) && (uint64_t)(at) < (uint64_t)(s)->n))

#ifndef IN_REGISTER /* else x is loaded once for all that use it */
#define IN_REGISTER(x) ((void)0)
#endif

/* Each function is inlined for constant P (points), SLIDES and `inside`. With SLIDES, rows have 3 taps without a stride
 * or dilation, so that neighbouring points read the same elements, each of which is loaded once. */
#define DEFINE_STRIP(NAME, T, V, A, LOAD, STORE, LOADS, STORES, STREAMS, FMA, ONE_FMA)                                 \
  INLINE V strip_load_##NAME(const ts_window_strip *s, const char *line, int64_t at, int64_t i, bool inside) {         \
    const int64_t size = (int64_t)sizeof(T);                                                                           \
    return IN_LINE(s, line, at, inside) ? LOADS(line + (at * s->weights->count + i) * size) : (V){0};                  \
  }                                                                                                                    \
  /* Sums of the upper row, then of the lower row, for which the line is the one before. */                            \
  INLINE void strip_slide_##NAME(const ts_window_strip *s, const char *line, const char *w, int64_t first, int64_t i,  \
                                 bool inside, int P, int rows, V *sums) {                                              \
    const int64_t step = s->weights->count * (int64_t)sizeof(T);                                                       \
    V upper[3] = {{0}}, lower[3] = {{0}};                                                                              \
    _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++) {                                                              \
      if (rows & UPPER) upper[k] = LOADS(w + k * step);                                                                \
      if (rows & LOWER) lower[k] = LOADS(w + (k - 3) * step);                                                          \
    }                                                                                                                  \
    _Pragma("GCC unroll 10") for (int at = 0; at < P + 2; at++) {                                                      \
      V x = strip_load_##NAME(s, line, first + at, i, inside);                                                         \
      IN_REGISTER(x);                                                                                                  \
      _Pragma("GCC unroll 3") for (int k = 0; k < 3; k++) if (at >= k && at - k < P) {                                 \
        if (rows & UPPER) sums[at - k] = FMA(x, upper[k], sums[at - k]);                                               \
        if (rows & LOWER) sums[P + at - k] = FMA(x, lower[k], sums[P + at - k]);                                       \
      }                                                                                                                \
    }                                                                                                                  \
  }                                                                                                                    \
  INLINE void strip_taps_##NAME(const ts_window_strip *s, const char *line, const char *w, int64_t first, int64_t i,   \
                                bool inside, int P, V *sums) {                                                         \
    const int64_t step = s->weights->count * (int64_t)sizeof(T);                                                       \
    for (int64_t k = 0; k < s->line_taps; k++, first += s->dilation, w += step) {                                      \
      V by = LOADS(w);                                                                                                 \
      _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) sums[p] =                                                    \
          FMA(strip_load_##NAME(s, line, first + p * s->stride, i, inside), by, sums[p]);                              \
    }                                                                                                                  \
  }                                                                                                                    \
  /* Half a cache line does not bypass the caches: its other half is stored too late. */                               \
  INLINE void strip_store_##NAME(const ts_window_strip *s, const V *sums, int P, T *to) {                              \
    const int64_t count = s->weights->count; /* what is stored may not change it */                                    \
    if (s->streams && VECTOR_BYTES == 64) {                                                                            \
      _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) STREAMS(to + p * count, sums[p]);                            \
    } else {                                                                                                           \
      _Pragma("GCC unroll 8") for (int p = 0; p < P; p++) STORES(to + p * count, sums[p]);                             \
    }                                                                                                                  \
  }                                                                                                                    \
  /* A vector of channels. */                                                                                          \
  INLINE void strip_vector_##NAME(const ts_window_strip *s, int64_t first, int64_t i, bool inside, bool slides, int P, \
                                  T *to) {                                                                             \
    const int64_t size = (int64_t)sizeof(T), row = s->line_taps * s->weights->count * size;                            \
    const char *w = s->weights->data + i * size;                                                                       \
    V sums[STRIP_PLACES] = {{0}};                                                                                      \
    for (int64_t r = 0; r < s->line_count; r++, w += row) {                                                            \
      if (slides)                                                                                                      \
        strip_slide_##NAME(s, s->lines[r], w, first, i, inside, P, UPPER, sums);                                       \
      else                                                                                                             \
        strip_taps_##NAME(s, s->lines[r], w, first, i, inside, P, sums);                                               \
    }                                                                                                                  \
    strip_store_##NAME(s, sums, P, to + i);                                                                            \
  }                                                                                                                    \
  /* The same for two rows of outputs: lines between the first and the last are read once for both. */                 \
  INLINE void strip_pair_##NAME(const ts_window_strip *s, int64_t first, int64_t i, bool inside, T *to) {              \
    const int64_t size = (int64_t)sizeof(T), row = s->line_taps * s->weights->count * size, last = s->line_count;      \
    const char *w = s->weights->data + i * size;                                                                       \
    V sums[2 * PAIR_PLACES] = {{0}};                                                                                   \
    strip_slide_##NAME(s, s->lines[0], w, first, i, inside, PAIR_PLACES, UPPER, sums);                                 \
    for (int64_t r = 1; r < last; r++)                                                                                 \
      strip_slide_##NAME(s, s->lines[r], (w += row), first, i, inside, PAIR_PLACES, UPPER | LOWER, sums);              \
    strip_slide_##NAME(s, s->lines[last], w + row, first, i, inside, PAIR_PLACES, LOWER, sums);                        \
    strip_store_##NAME(s, sums, PAIR_PLACES, to + i);                                                                  \
    strip_store_##NAME(s, sums + PAIR_PLACES, PAIR_PLACES, to + s->pair + i);                                          \
  }                                                                                                                    \
  /* The last vector may overlap the one before: then both compute the same. */                                        \
  INLINE void strip_vectors_##NAME(const ts_window_strip *s, int64_t first, bool inside, bool slides, int P, T *to) {  \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), count = s->weights->count;                                \
    for (int64_t i = 0; i < count; i += lanes)                                                                         \
      strip_vector_##NAME(s, first, i + lanes <= count ? i : count - lanes, inside, slides, P, to);                    \
  }                                                                                                                    \
  static A strip_one_##NAME(const ts_window_strip *s, int64_t first, int64_t i) {                                      \
    const T *w = (const T *)(const void *)s->weights->data + i;                                                        \
    A sum = 0;                                                                                                         \
    for (int64_t r = 0; r < s->line_count; r++)                                                                        \
      for (int64_t k = 0; k < s->line_taps; k++, w += s->weights->count) {                                             \
        int64_t at = first + k * s->dilation;                                                                          \
        const T *x = (const T *)(const void *)s->lines[r];                                                             \
        A value = IN_LINE(s, x, at, false) ? LOAD(x[at * s->weights->count + i]) : 0;                                  \
        sum = ONE_FMA(value, LOAD(*w), sum);                                                                           \
      }                                                                                                                \
    return sum;                                                                                                        \
  }                                                                                                                    \
  static void strip_ones_##NAME(const ts_window_strip *s, int64_t points, T *to) {                                     \
    for (int64_t p = 0; p < points; p++)                                                                               \
      for (int64_t i = 0; i < s->weights->count; i++)                                                                  \
        to[p * s->weights->count + i] = (T)STORE(strip_one_##NAME(s, s->first + p * s->stride, i));                    \
  }                                                                                                                    \
  INLINE void strip_points_##NAME(const ts_window_strip *s, int64_t first, int P, T *to) {                             \
    bool slides = strip_slides(s), inside = strip_is_inside(s, s->line_count, first, P);                               \
    if (slides && inside) {                                                                                            \
      strip_vectors_##NAME(s, first, true, true, P, to);                                                               \
    } else if (slides) {                                                                                               \
      strip_vectors_##NAME(s, first, false, true, P, to);                                                              \
    } else if (inside) {                                                                                               \
      strip_vectors_##NAME(s, first, true, false, P, to);                                                              \
    } else {                                                                                                           \
      strip_vectors_##NAME(s, first, false, false, P, to);                                                             \
    }                                                                                                                  \
  }                                                                                                                    \
  static void strip_eight_##NAME(const ts_window_strip *s, int64_t first, T *to) {                                     \
    strip_points_##NAME(s, first, 8, to);                                                                              \
  }                                                                                                                    \
  static void strip_four_##NAME(const ts_window_strip *s, int64_t first, T *to) {                                      \
    strip_points_##NAME(s, first, 4, to);                                                                              \
  }                                                                                                                    \
  static void strip_single_##NAME(const ts_window_strip *s, int64_t first, T *to) {                                    \
    strip_points_##NAME(s, first, 1, to);                                                                              \
  }                                                                                                                    \
  INLINE void strip_pairs_##NAME(const ts_window_strip *s, int64_t first, bool inside, T *to) {                        \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), count = s->weights->count;                                \
    for (int64_t i = 0; i < count; i += lanes)                                                                         \
      strip_pair_##NAME(s, first, i + lanes <= count ? i : count - lanes, inside, to);                                 \
  }                                                                                                                    \
  static __attribute__((noinline)) void strip_pair_points_##NAME(const ts_window_strip *s, int64_t first, T *to) {     \
    if (strip_is_inside(s, s->line_count + 1, first, PAIR_PLACES))                                                     \
      strip_pairs_##NAME(s, first, true, to);                                                                          \
    else                                                                                                               \
      strip_pairs_##NAME(s, first, false, to);                                                                         \
  }                                                                                                                    \
  /* The last points may overlap those before, like vectors. */                                                        \
  static void strip_two_rows_##NAME(const ts_window_strip *s, int64_t points, T *out) {                                \
    for (int64_t p = 0; p < points; p += PAIR_PLACES) {                                                                \
      int64_t at = p + PAIR_PLACES <= points ? p : points - PAIR_PLACES;                                               \
      strip_pair_points_##NAME(s, s->first + at, out + at * s->weights->count);                                        \
    }                                                                                                                  \
  }                                                                                                                    \
  static void strip_row_##NAME(const ts_window_strip *s, int64_t points, T *out) {                                     \
    int64_t wide = points >= 8 ? 8 : points >= 4 ? 4 : 1;                                                              \
    for (int64_t p = 0; p < points; p += wide) {                                                                       \
      int64_t at = p + wide <= points ? p : points - wide;                                                             \
      (wide == 8   ? strip_eight_##NAME                                                                                \
       : wide == 4 ? strip_four_##NAME                                                                                 \
                   : strip_single_##NAME)(s, s->first + at * s->stride, out + at * s->weights->count);                 \
    }                                                                                                                  \
  }                                                                                                                    \
  static void strip_##NAME(const ts_window_strip *s, int64_t points, void *out) {                                      \
    const bool vectors = s->weights->count >= VECTOR_BYTES / (int64_t)sizeof(A);                                       \
    if (s->pair && vectors && strip_slides(s) && points >= PAIR_PLACES) {                                              \
      strip_two_rows_##NAME(s, points, out);                                                                           \
    } else {                                                                                                           \
      const ts_window_strip lower = strip_lower(s);                                                                    \
      (vectors ? strip_row_##NAME : strip_ones_##NAME)(s, points, out);                                                \
      if (s->pair) (vectors ? strip_row_##NAME : strip_ones_##NAME)(&lower, points, (T *)out + s->pair);               \
    }                                                                                                                  \
    if (s->streams) STREAM_END();                                                                                      \
  }

static bool strip_slides(const ts_window_strip *s) { return s->stride == 1 && s->dilation == 1 && s->line_taps == 3; }

/* The lower row of a pair. */
static ts_window_strip strip_lower(const ts_window_strip *s) {
  ts_window_strip lower = *s;
  lower.lines++;
  lower.pair = 0;
  return lower;
}

static bool strip_is_inside(const ts_window_strip *s, int64_t lines, int64_t first, int64_t points) {
  int64_t last = first + (points - 1) * s->stride + (s->line_taps - 1) * s->dilation;
  for (int64_t r = 0; r < lines; r++)
    if (!s->lines[r]) return false;
  return first >= 0 && last < s->n;
}

DEFINE_STRIP(f32, float, floats, float, SAME, SAME, loads_f32, stores_f32, STREAM, FMA_32, ONE_FMA_32)
DEFINE_STRIP(f64, double, doubles, double, SAME, SAME, loads_f64, stores_f64, STREAM, FMA_64, ONE_FMA_64)
DEFINE_STRIP(f16, uint16_t, floats, float, load_f16, store_f16, loads_f16, stores_f16, stores_f16, FMA_32, ONE_FMA_32)
DEFINE_STRIP(bf16, uint16_t, floats, float, load_bf16, store_bf16, loads_bf16, stores_bf16, stores_bf16, FMA_32,
             ONE_FMA_32)
