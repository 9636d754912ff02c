/* Products of windows of one complex type T: a part of kernel/conv/window_body.h. The includer defines NAME of a
 * function, T, and NAME(product). */
INLINE T NAME(load)(T x) { return x; }
INLINE T NAME(store)(T x) { return x; }

INLINE T NAME(first)(ts_combine op) {
  (void)op;
  return 1;
}

INLINE T NAME(join)(T a, T b, ts_combine op) {
  (void)op;
  return NAME(product)(a, b);
}

INLINE int64_t NAME(runs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  (void)taps, (void)count, (void)out, (void)op;
  return 0;
}

INLINE int64_t NAME(pairs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  (void)taps, (void)count, (void)out, (void)op;
  return 0;
}

#define A T
#include "kernel/conv/window_fold.h"
#undef A
#undef T
#undef NAME
