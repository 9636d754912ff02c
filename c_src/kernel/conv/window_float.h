/* Windows of f32 or f64: a part of kernel/conv/window_body.h. The includer defines NAME of a function, T, and its
 * vectors NAME(vector), their bits NAME(bits), and the functions on them that kernel/conv/window_body.h names. */
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

/* A maximum or minimum is folded by the machine's own instruction, which is right for numbers that are not zero. Its
 * sign is that of all elements: a maximum is negative if all are, a minimum if one is. The sum of the elements is NaN
 * if one of them is, or for some infinities. */
typedef struct NAME(folded) {
  NAME(vector) all, sum;
  NAME(bits) signs;
} NAME(folded);

INLINE NAME(folded) NAME(begin)(ts_combine op) {
  return (NAME(folded)){.all = (NAME(vector)){0} + NAME(first)(op), .signs = (NAME(bits)){0} - (op == TS_COMBINE_MAX)};
}

INLINE NAME(folded) NAME(take)(NAME(folded) a, NAME(vector) x, ts_combine op) {
  if (op == TS_COMBINE_SUM || op == TS_COMBINE_PRODUCT) {
    a.all = NAME(joins)(a.all, x, op);
    return a;
  }
  x = (NAME(vector))once((floats)x);
  a.sum += x;
  if (op == TS_COMBINE_MAX)
    a.all = NAME(greater)(x, a.all), a.signs &= (NAME(bits))x;
  else
    a.all = NAME(less)(x, a.all), a.signs |= (NAME(bits))x;
  return a;
}

INLINE bool NAME(needs_exact)(const NAME(folded) * a, const NAME(folded) * b, ts_combine op) {
  return op != TS_COMBINE_SUM && op != TS_COMBINE_PRODUCT && NAME(any_nan)(a->sum, b->sum);
}

INLINE NAME(vector) NAME(end)(const NAME(folded) * a, ts_combine op) {
  const NAME(bits) sign = (NAME(bits))(-(NAME(vector)){0});
  if (op == TS_COMBINE_SUM || op == TS_COMBINE_PRODUCT) return a->all;
  return (NAME(vector))(((NAME(bits))a->all & ~sign) | (a->signs & sign));
}

#define A T
#include "kernel/conv/window_runs.h"

#include "kernel/conv/window_fold.h"

#include "kernel/conv/window_select.h"
#undef A
#undef T
#undef NAME
