/* Folds of windows that are neighbours, by whole vectors: a part of kernel/conv/window_integer.h and window_float.h,
 * which define NAME, T, and what these functions call. */

/* A vector of windows from `i` on. */
INLINE void NAME(run)(const ts_window_taps *taps, int64_t i, T *out, ts_combine op) {
  NAME(vector) a = (NAME(vector)){0} + NAME(first)(op);
  FOR_TAPS(taps, p) a = NAME(joins)(a, *(const NAME(near) *)(const void *)(p + i * (int64_t)sizeof(T)), op);
  *(NAME(near) *)(void *)(out + i) = a;
}

/* Returns how many of the windows it has folded. The last vector begins early: it folds some windows again. */
INLINE int64_t NAME(runs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  const int64_t size = (int64_t)sizeof(T), lanes = VECTOR_BYTES / size;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    NAME(vector) a = (NAME(vector)){0} + NAME(first)(op), b = a, c = a, d = a;
    FOR_TAPS(taps, p) {
      const NAME(near) *x = (const NAME(near) *)(const void *)(p + i * size);
      NAME(vector) e = x[0], f = x[1], g = x[2], h = x[3];
      a = NAME(joins)(a, e, op), b = NAME(joins)(b, f, op), c = NAME(joins)(c, g, op), d = NAME(joins)(d, h, op);
    }
    NAME(near) *to = (NAME(near) *)(void *)(out + i);
    if (taps->streams) {
      stream(to, (floats)a), stream(to + 1, (floats)b), stream(to + 2, (floats)c), stream(to + 3, (floats)d);
      continue;
    }
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
  for (; i + lanes <= count; i += lanes) NAME(run)(taps, i, out, op);
  if (i == count || count < lanes) return i;
  NAME(run)(taps, count - lanes, out, op);
  return count;
}

/* Every second element, of four or eight bytes, of two vectors. */
INLINE NAME(vector) NAME(evens)(NAME(vector) a, NAME(vector) b) {
  return sizeof(T) == 4 ? (NAME(vector))evens_4((ints)a, (ints)b) : (NAME(vector))evens_8((longs)a, (longs)b);
}

/* Windows two elements apart. Nothing is read behind the last window's elements. */
INLINE int64_t NAME(pairs)(const ts_window_taps *taps, int64_t count, T *out, ts_combine op) {
  const int64_t size = (int64_t)sizeof(T), lanes = VECTOR_BYTES / size;
  if (size < 4) return 0;
  int64_t i = 0;
  for (; i + lanes < count; i += lanes) {
    NAME(vector) a = (NAME(vector)){0} + NAME(first)(op);
    FOR_TAPS(taps, p) {
      const NAME(near) *x = (const NAME(near) *)(const void *)(p + 2 * i * size);
      a = NAME(joins)(a, NAME(evens)(x[0], x[1]), op);
    }
    *(NAME(near) *)(void *)(out + i) = a;
  }
  return i;
}
