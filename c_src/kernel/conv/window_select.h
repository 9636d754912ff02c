/* The taps that windows select, and additions to the elements at these taps, for one type: a part of the headers for
 * kinds of types, as window_fold.h. */

/* The number of the tap that each window selects: of the largest or of the least element. */
INLINE void NAME(select)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best, bool largest) {
  A selected[TS_WINDOW_PICKS];
  int32_t tap = 0;
  FOR_TAPS(taps, p) {
    const T *x = (const T *)(const void *)p;
    for (int64_t i = 0; i < count; i++) {
      A candidate = NAME(load)(x[i * stride]);
      bool keeps = tap > 0 && (largest ? selected[i] > candidate : selected[i] < candidate);
      selected[i] = keeps ? selected[i] : candidate;
      best[i] = keeps ? best[i] : tap;
    }
    tap++;
  }
}

UNUSED static void NAME(select_max)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select)(taps, stride, count, best, true);
}
UNUSED static void NAME(select_min)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select)(taps, stride, count, best, false);
}

INLINE void NAME(add_to)(char *to, T x) {
  T *y = (T *)(void *)to;
  *y = NAME(store)(NAME(join)(NAME(load)(*y), NAME(load)(x), TS_COMBINE_SUM));
}

/* A table of few taps is made once; of many, each selected one is divided into its row and step. */
UNUSED static void NAME(add)(const ts_window_taps *taps, int64_t out, int64_t stride, const void *from,
                             const int32_t *best, int64_t n) {
  enum { FEW = 16 };
  char *few[FEW];
  const T *x = from;
  const int64_t size = (int64_t)sizeof(T);
  if (taps->row_count * taps->steps <= FEW) {
    int32_t tap = 0;
    FOR_TAPS(taps, p) few[tap++] = (char *)p + out;
    for (int64_t i = 0; i < n; i++) NAME(add_to)(few[best[i]] + i * stride * size, x[i]);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const char *p = taps->rows[best[i] / taps->steps] + taps->offset + best[i] % taps->steps * taps->step;
    NAME(add_to)((char *)p + out + i * stride * size, x[i]);
  }
}
