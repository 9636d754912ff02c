/* Windows of one integer type T: a part of kernel/conv/window_body.h. The includer defines NAME of a function, and T.
 * Vectors, NAME(vector), and their NAME(greater) and NAME(less) are the instruction set's.
 * Sums and products are those of the unsigned type, which wraps, and are the same for the signed type: only the table
 * says which functions are used. */
typedef T NAME(near) IN_MEMORY(T);
typedef __typeof__((NAME(vector)){0} > (NAME(vector)){0}) NAME(mask);

INLINE T NAME(load)(T x) { return x; }
INLINE T NAME(store)(T x) { return x; }
INLINE T NAME(least)(void) { return (T)-1 < (T)1 ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : 0; }

INLINE T NAME(first)(ts_combine op) {
  if (op == TS_COMBINE_SUM) return 0;
  if (op == TS_COMBINE_PRODUCT) return 1;
  if (op == TS_COMBINE_MAX) return NAME(least)();
  return (T)~NAME(least)();
}

INLINE T NAME(join)(T a, T b, ts_combine op) {
  if (op == TS_COMBINE_SUM) return (T)((uint64_t)a + (uint64_t)b);
  if (op == TS_COMBINE_PRODUCT) return (T)((uint64_t)a * (uint64_t)b);
  if (op == TS_COMBINE_MAX) return a > b ? a : b;
  return a < b ? a : b;
}

INLINE NAME(vector) NAME(pick)(NAME(mask) mask, NAME(vector) a, NAME(vector) b) {
  return (NAME(vector))(((NAME(mask))a & mask) | ((NAME(mask))b & ~mask));
}

INLINE NAME(vector) NAME(joins)(NAME(vector) a, NAME(vector) b, ts_combine op) {
  if (op == TS_COMBINE_SUM) return a + b;
  if (op == TS_COMBINE_PRODUCT) return a * b;
  if (op == TS_COMBINE_MAX) return NAME(greater)(a, b);
  return NAME(less)(a, b);
}

typedef NAME(vector) NAME(folded);
INLINE NAME(folded) NAME(begin)(ts_combine op) { return (NAME(vector)){0} + NAME(first)(op); }
INLINE NAME(folded) NAME(take)(NAME(folded) a, NAME(vector) x, ts_combine op) { return NAME(joins)(a, x, op); }
INLINE NAME(vector) NAME(end)(const NAME(folded) * a, ts_combine op) { return (void)op, *a; }
INLINE bool NAME(needs_exact)(const NAME(folded) * a, const NAME(folded) * b, ts_combine op) {
  return (void)a, (void)b, (void)op, false;
}

#define A T
#include "kernel/conv/window_runs.h"

#include "kernel/conv/window_fold.h"

#include "kernel/conv/window_select.h"
#undef A
#undef T
#undef NAME
