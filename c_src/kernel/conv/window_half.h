/* Windows of f16 or bf16, computed in f32: a part of kernel/conv/window_body.h. The includer defines NAME of a
 * function, and NAME(load), NAME(store), NAME(loads) and NAME(stores), which convert an element or a vector. */
INLINE float NAME(first)(ts_combine op) { return first_f32(op); }
INLINE float NAME(join)(float a, float b, ts_combine op) { return join_f32(a, b, op); }

/* ---- by numbers */

INLINE void NAME(run)(const ts_window_taps *taps, int64_t i, uint16_t *out, ts_combine op) {
  floats a = (floats){0} + NAME(first)(op);
  FOR_TAPS(taps, p) a = joins_f32(a, NAME(loads)(p + 2 * i), op);
  NAME(stores)(out + i, a);
}

/* Four vectors, whose folds do not wait for each other. */
INLINE void NAME(four)(const ts_window_taps *taps, int64_t i, uint16_t *out, ts_combine op) {
  floats a = (floats){0} + NAME(first)(op), b = a, c = a, d = a;
  FOR_TAPS(taps, p) {
    const char *x = p + 2 * i;
    a = joins_f32(a, NAME(loads)(x), op), b = joins_f32(b, NAME(loads)(x + 2 * FLOATS), op);
    c = joins_f32(c, NAME(loads)(x + 4 * FLOATS), op), d = joins_f32(d, NAME(loads)(x + 6 * FLOATS), op);
  }
  NAME(stores)(out + i, a), NAME(stores)(out + i + FLOATS, b);
  NAME(stores)(out + i + 2 * FLOATS, c), NAME(stores)(out + i + 3 * FLOATS, d);
}

/* ---- maxima and minima
 *
 * They are folded as integers of both kinds. As signed ones, those of numbers without a sign are in their order and
 * above the others; as unsigned ones, those with a sign are in the opposite order and above the others. A NaN is above
 * the infinity of its sign. */

typedef struct NAME(folded) {
  vector_s16 high;
  vector_u16 low, top;
} NAME(folded);

INLINE NAME(folded) NAME(begin)(ts_combine op) {
  const vector_u16 x = (vector_u16){0} + NAME(store)(NAME(first)(op));
  return (NAME(folded)){(vector_s16)x, x, x};
}

INLINE NAME(folded) NAME(take)(NAME(folded) a, const char *p) {
  const vector_u16 x = (vector_u16)once((floats) * (const near_u16 *)(const void *)p);
  a.high = greater_s16(a.high, (vector_s16)x);
  a.low = less_u16(a.low, x);
  a.top = greater_u16(a.top, x);
  return a;
}

/* Whether an element was NaN. Then the result is the first one. */
INLINE bool NAME(needs_exact)(const NAME(folded) * a) {
  const uint16_t infinity = NAME(store)(__builtin_inff());
  return any_set((vector_u16)(a->high > (int16_t)infinity) | (vector_u16)(a->top > (uint16_t)(infinity | 0x8000)));
}

INLINE vector_u16 NAME(end)(const NAME(folded) * a, ts_combine op) {
  if (op == TS_COMBINE_MAX) return choose_u16((vector_u16)(a->high < 0), a->low, (vector_u16)a->high);
  return choose_u16((vector_u16)((vector_s16)a->top < 0), a->top, a->low);
}

INLINE void NAME(best)(const ts_window_taps *taps, int64_t i, uint16_t *out, ts_combine op) {
  NAME(folded) a = NAME(begin)(op);
  FOR_TAPS(taps, p) a = NAME(take)(a, p + 2 * i);
  if (NAME(needs_exact)(&a))
    NAME(run)(taps, i, out, op), NAME(run)(taps, i + FLOATS, out, op);
  else
    *(near_u16 *)(void *)(out + i) = NAME(end)(&a, op);
}

/* Two vectors, for which a loop over taps takes hardly longer than for one. */
INLINE void NAME(two_best)(const ts_window_taps *taps, int64_t i, uint16_t *out, ts_combine op) {
  NAME(folded) a = NAME(begin)(op), b = a;
  FOR_TAPS(taps, p) a = NAME(take)(a, p + 2 * i), b = NAME(take)(b, p + 2 * i + VECTOR_BYTES);
  if (NAME(needs_exact)(&a) || NAME(needs_exact)(&b)) {
    NAME(four)(taps, i, out, op);
    return;
  }
  *(near_u16 *)(void *)(out + i) = NAME(end)(&a, op);
  *(near_u16 *)(void *)(out + i + VECTOR_BYTES / 2) = NAME(end)(&b, op);
}

/* ---- windows that are neighbours */

/* A vector of numbers is half as many as a vector of integers. The last vector folds some windows again. */
INLINE int64_t NAME(runs)(const ts_window_taps *taps, int64_t count, uint16_t *out, ts_combine op) {
  const int64_t lanes = VECTOR_BYTES / 2;
  const bool sums = op == TS_COMBINE_SUM || op == TS_COMBINE_PRODUCT;
  int64_t i = 0;
  for (; sums && i + 4 * FLOATS <= count; i += 4 * FLOATS) NAME(four)(taps, i, out, op);
  for (; !sums && i + 2 * lanes <= count; i += 2 * lanes) NAME(two_best)(taps, i, out, op);
  for (; !sums && i + lanes <= count; i += lanes) NAME(best)(taps, i, out, op);
  if (!sums && i < count && count >= lanes) NAME(best)(taps, (i = count) - lanes, out, op);
  for (; i + FLOATS <= count; i += FLOATS) NAME(run)(taps, i, out, op);
  if (i == count || count < FLOATS) return i;
  NAME(run)(taps, count - FLOATS, out, op);
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
