/* Windows of f16 or bf16, computed in f32: a part of kernel/conv/window_body.h. The includer defines NAME of a
 * function, and NAME(load), NAME(store), NAME(loads) and NAME(stores), which convert an element or a vector. */
INLINE float NAME(first)(ts_combine op) { return first_f32(op); }
INLINE float NAME(join)(float a, float b, ts_combine op) { return join_f32(a, b, op); }

INLINE void NAME(run)(const ts_window_taps *taps, int64_t i, uint16_t *out, ts_combine op) {
  floats a = (floats){0} + NAME(first)(op);
  FOR_TAPS(taps, p) a = joins_f32(a, NAME(loads)(p + 2 * i), op);
  NAME(stores)(out + i, a);
}

INLINE int64_t NAME(runs)(const ts_window_taps *taps, int64_t count, uint16_t *out, ts_combine op) {
  int64_t i = 0;
  for (; i + FLOATS <= count; i += FLOATS) NAME(run)(taps, i, out, op);
  if (i == count || count < FLOATS) return i;
  NAME(run)(taps, count - FLOATS, out, op); /* some windows again */
  return count;
}

INLINE int64_t NAME(pairs)(const ts_window_taps *taps, int64_t count, uint16_t *out, ts_combine op) {
  (void)taps, (void)count, (void)out, (void)op;
  return 0;
}

#define T uint16_t
#define A float
#include "kernel/conv/window_fold.h"

#include "kernel/conv/window_select.h"
#undef A
#undef T
#undef NAME
