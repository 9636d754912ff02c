/* Folds of windows that are neighbours, by whole vectors: a part of kernel/conv/window_integer.h and window_float.h,
 * which define NAME, T, and what these functions call. A fold of a vector begins with NAME(begin), takes the elements
 * of each tap, and ends with NAME(end). A fast fold may find that its numbers need the exact one, NAME(joins)
 * (needs_exact). */

INLINE NAME(vector) NAME(at)(const char *p) { return *(const NAME(near) *)(const void *)p; }

/* Every second element of the `2 * lanes - 1` from p on: nothing is read behind the last one. */
INLINE NAME(vector) NAME(seconds)(const char *p) {
  const int64_t size = (int64_t)sizeof(T), lanes = VECTOR_BYTES / size;
  const NAME(vector) a = NAME(at)(p), b = NAME(at)(p + (lanes - 1) * size);
  return size == 4 ? (NAME(vector))seconds_4((ints)a, (ints)b) : (NAME(vector))seconds_8((longs)a, (longs)b);
}

/* The elements of a vector of windows from p on. */
INLINE NAME(vector) NAME(elements)(const char *p, int64_t stride) {
  return stride == 1 || sizeof(T) < 4 ? NAME(at)(p) : NAME(seconds)(p);
}

INLINE void NAME(put)(const ts_window_taps *taps, T *to, NAME(vector) x) {
  if (taps->streams)
    stream(to, (floats)x);
  else
    *(NAME(near) *)(void *)to = x;
}

/* A vector of windows from `i` on, in the exact way. */
INLINE void NAME(exact)(const ts_window_taps *taps, int64_t stride, int64_t i, T *out, ts_combine op) {
  NAME(vector) a = (NAME(vector)){0} + NAME(first)(op);
  FOR_TAPS(taps, p) a = NAME(joins)(a, NAME(elements)(p + stride * i * (int64_t)sizeof(T), stride), op);
  NAME(put)(taps, out + i, a);
}

INLINE void NAME(run)(const ts_window_taps *taps, int64_t stride, int64_t i, T *out, ts_combine op) {
  NAME(folded) a = NAME(begin)(op);
  FOR_TAPS(taps, p) a = NAME(take)(a, NAME(elements)(p + stride * i * (int64_t)sizeof(T), stride), op);
  if (NAME(needs_exact)(&a, &a, op))
    NAME(exact)(taps, stride, i, out, op);
  else
    NAME(put)(taps, out + i, NAME(end)(&a, op));
}

/* Four vectors of windows, whose folds do not wait for each other. */
INLINE void NAME(four)(const ts_window_taps *taps, int64_t stride, int64_t i, T *out, ts_combine op) {
  const int64_t size = (int64_t)sizeof(T), lanes = VECTOR_BYTES / size, step = stride * VECTOR_BYTES;
  NAME(folded) a = NAME(begin)(op), b = a, c = a, d = a;
  FOR_TAPS(taps, p) {
    const char *x = p + stride * i * size;
    a = NAME(take)(a, NAME(elements)(x, stride), op), b = NAME(take)(b, NAME(elements)(x + step, stride), op);
    c = NAME(take)(c, NAME(elements)(x + 2 * step, stride), op),
    d = NAME(take)(d, NAME(elements)(x + 3 * step, stride), op);
  }
  if (NAME(needs_exact)(&a, &b, op) || NAME(needs_exact)(&c, &d, op)) {
    for (int64_t v = 0; v < 4; v++) NAME(exact)(taps, stride, i + v * lanes, out, op);
    return;
  }
  NAME(put)(taps, out + i, NAME(end)(&a, op)), NAME(put)(taps, out + i + lanes, NAME(end)(&b, op));
  NAME(put)(taps, out + i + 2 * lanes, NAME(end)(&c, op)), NAME(put)(taps, out + i + 3 * lanes, NAME(end)(&d, op));
}

/* Windows `stride` elements apart, 1 or 2. Returns how many of them it has folded. The last vector begins early: it
 * folds some windows again. */
INLINE int64_t NAME(vectors)(const ts_window_taps *taps, int64_t stride, int64_t count, T *out, ts_combine op) {
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(T);
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) NAME(four)(taps, stride, i, out, op);
  for (; i + lanes <= count; i += lanes) NAME(run)(taps, stride, i, out, op);
  if (i == count || count < lanes) return i;
  NAME(run)(taps, stride, count - lanes, out, op);
  return count;
}

INLINE int64_t NAME(runs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  return NAME(vectors)(taps, 1, count, out, op);
}

INLINE int64_t NAME(pairs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  return sizeof(T) < 4 ? 0 : NAME(vectors)(taps, 2, count, out, op);
}
