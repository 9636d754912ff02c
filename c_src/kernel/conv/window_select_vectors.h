/* The taps that windows of four-byte elements select, by vectors: a part of kernel/conv/window_body.h, after the
 * functions by elements. The includer defines NAME of a function. */
INLINE void NAME(select_vectors)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best,
                                 bool largest) {
  typedef int32_t near_ints IN_MEMORY(int32_t);
  int64_t i = 0;
  for (; stride == 1 && i + FLOATS <= count; i += FLOATS) {
    NAME(vector) selected = {0};
    ints at = {0}, all = {0}, tap = {0};
    FOR_TAPS(taps, p) {
      NAME(vector) candidate = *(const NAME(near) *)(const void *)(p + 4 * i);
      ints keeps = (largest ? selected > candidate : selected < candidate) & all;
      selected = (NAME(vector))pick_s32(keeps, (ints)selected, (ints)candidate);
      at = pick_s32(keeps, at, tap);
      all = ~(ints){0};
      tap += 1;
    }
    *(near_ints *)(void *)(best + i) = at;
  }
  if (i == count) return;
  ts_window_taps rest = *taps;
  rest.offset += 4 * i * stride;
  (largest ? NAME(select_max) : NAME(select_min))(&rest, stride, count - i, best + i);
}

static void NAME(pick_max)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select_vectors)(taps, stride, count, best, true);
}
static void NAME(pick_min)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) {
  NAME(select_vectors)(taps, stride, count, best, false);
}
#undef NAME
