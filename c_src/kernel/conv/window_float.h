/* Windows of f32 or f64: a part of kernel/conv/window_body.h. The includer defines NAME of a function, T, and its
 * vectors NAME(vector) with their maximum and minimum, NAME(max) and NAME(min). */
typedef T NAME(near) IN_MEMORY(T);

INLINE T NAME(load)(T x) { return x; }
INLINE T NAME(store)(T x) { return x; }
INLINE T NAME(first)(ts_combine op) { return (T)first_float(op); }

/* NaN if either is; -0 below +0. */
INLINE T NAME(join)(T a, T b, ts_combine op) {
  if (op == TS_COMBINE_SUM) return a + b;
  if (op == TS_COMBINE_PRODUCT) return a * b;
  if (op == TS_COMBINE_MAX) return a != a || a > b || (a == b && __builtin_signbit((double)b) != 0) ? a : b;
  return a != a || a < b || (a == b && __builtin_signbit((double)a) != 0) ? a : b;
}

INLINE NAME(vector) NAME(joins)(NAME(vector) a, NAME(vector) b, ts_combine op) {
  if (op == TS_COMBINE_SUM) return a + b;
  if (op == TS_COMBINE_PRODUCT) return a * b;
  if (op == TS_COMBINE_MAX) return NAME(max)(a, b);
  return NAME(min)(a, b);
}

#define A T
#include "kernel/conv/window_runs.h"

#include "kernel/conv/window_fold.h"

#include "kernel/conv/window_select.h"
#undef A
#undef T
#undef NAME
