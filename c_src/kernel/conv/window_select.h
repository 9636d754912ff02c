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

UNUSED static void NAME(add)(void *to, int64_t stride, const void *from, const int32_t *best, int32_t tap, int64_t n) {
  T *y = to;
  const T *x = from;
  for (int64_t i = 0; i < n; i++)
    if (best[i] == tap)
      y[i * stride] = NAME(store)(NAME(join)(NAME(load)(y[i * stride]), NAME(load)(x[i]), TS_COMBINE_SUM));
}
