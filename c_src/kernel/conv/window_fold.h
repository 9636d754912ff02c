/* Folds of windows for one type: a part of the headers for kinds of types. The includer defines NAME of a function; T,
 * the element in memory; A, the element in computation; and the functions load, store, first (an op's identity), join,
 * runs and pairs. Functions that the table in kernel/conv/window_body.h does not name are left out of the object. */

/* Windows i .. i+n-1, n <= SOME, of any stride. */
INLINE void NAME(some)(const ts_window_taps *taps, const window_some *s, T *out, ts_combine op) {
  A acc[SOME];
  for (int64_t j = 0; j < s->n; j++) acc[j] = NAME(first)(op);
  FOR_TAPS(taps, p) {
    const T *x = (const T *)(const void *)p + s->i * s->stride;
    for (int64_t j = 0; j < s->n; j++) acc[j] = NAME(join)(acc[j], NAME(load)(x[j * s->stride]), op);
  }
  for (int64_t j = 0; j < s->n; j++) out[s->i + j] = NAME(store)(acc[j]);
}

INLINE void NAME(fold)(const ts_window_taps *taps, int64_t stride, int64_t count, T *out, ts_combine op) {
  int64_t i = stride == 1 ? NAME(runs)(taps, count, out, op) : stride == 2 ? NAME(pairs)(taps, count, out, op) : 0;
  for (; i < count; i += SOME)
    NAME(some)(taps, &(window_some){.stride = stride, .i = i, .n = count - i < SOME ? count - i : SOME}, out, op);
}

UNUSED static void NAME(fold_sum)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {
  NAME(fold)(taps, stride, count, out, TS_COMBINE_SUM);
}
UNUSED static void NAME(fold_product)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {
  NAME(fold)(taps, stride, count, out, TS_COMBINE_PRODUCT);
}
UNUSED static void NAME(fold_max)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {
  NAME(fold)(taps, stride, count, out, TS_COMBINE_MAX);
}
UNUSED static void NAME(fold_min)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {
  NAME(fold)(taps, stride, count, out, TS_COMBINE_MIN);
}
