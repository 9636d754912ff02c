/* Folds of windows by one op, for one type: a part of kernel/conv/window_folds.h. The includer defines FOLD of a
 * function's name; T, the element in memory; A, the element in computation; S, integers for masks; OP for vectors;
 * ONE_OP for elements; and FIRST, the op's identity. */

/* Windows i .. i+n-1, n <= SOME, of any stride. */
static void FOLD(some)(const ts_window_taps *taps, int64_t stride, int64_t i, int64_t n, T *out) {
  A acc[SOME];
  for (int64_t j = 0; j < n; j++) acc[j] = (A)(FIRST);
  FOR_TAPS(taps, p) {
    const T *x = (const T *)(const void *)p + i * stride;
    for (int64_t j = 0; j < n; j++) acc[j] = (A)ONE_OP(A, A, acc[j], (A)LOAD(x[j * stride]));
  }
  for (int64_t j = 0; j < n; j++) out[i + j] = (T)STORE(acc[j]);
}

#if defined(LOADS) /* of a half type */
INLINE int64_t FOLD(runs)(const ts_window_taps *taps, int64_t count, T *out) {
  int64_t i = 0;
  for (; i + FLOATS <= count; i += FLOATS) {
    floats a = (floats){0} + (A)(FIRST);
    FOR_TAPS(taps, p) {
      floats e = LOADS(p + 2 * i);
      a = OP(floats, words, a, e);
    }
    for (int j = 0; j < FLOATS; j++) out[i + j] = STORE(a[j]);
  }
  return i;
}
#elif defined(OP)
/* Whole vectors of neighbours; returns how many windows they are. */
INLINE int64_t FOLD(runs)(const ts_window_taps *taps, int64_t count, T *out) {
  typedef T V VECTOR(T);
  typedef S M VECTOR(S) UNUSED;
  typedef T U IN_MEMORY(T);
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(T);
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    V a = (V){0} + (T)(FIRST), b = a, c = a, d = a;
    FOR_TAPS(taps, p) {
      const U *x = (const U *)(const void *)(p + i * (int64_t)sizeof(T));
      V e = x[0], f = x[1], g = x[2], h = x[3];
      a = OP(V, M, a, e), b = OP(V, M, b, f), c = OP(V, M, c, g), d = OP(V, M, d, h);
    }
    U *to = (U *)(void *)(out + i);
    if (taps->streams) {
      STREAM(to, a), STREAM(to + 1, b), STREAM(to + 2, c), STREAM(to + 3, d);
      continue;
    }
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
  for (; i + lanes <= count; i += lanes) {
    V a = (V){0} + (T)(FIRST);
    FOR_TAPS(taps, p) {
      V e = *(const U *)(const void *)(p + i * (int64_t)sizeof(T));
      a = OP(V, M, a, e);
    }
    *(U *)(void *)(out + i) = a;
  }
  return i;
}
#endif

#if defined(EVENS)
/* Windows two elements apart: every second lane of two vectors. Nothing is read behind the last window's elements. */
INLINE int64_t FOLD(pairs)(const ts_window_taps *taps, int64_t count, T *out) {
  typedef T V VECTOR(T);
  typedef S M VECTOR(S) UNUSED;
  typedef T U IN_MEMORY(T);
  const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(T);
  int64_t i = 0;
  for (; i + lanes < count; i += lanes) {
    V a = (V){0} + (T)(FIRST);
    FOR_TAPS(taps, p) {
      const U *x = (const U *)(const void *)(p + 2 * i * (int64_t)sizeof(T));
      V low = x[0], high = x[1], e = EVENS(low, high);
      a = OP(V, M, a, e);
    }
    *(U *)(void *)(out + i) = a;
  }
  return i;
}
#endif

static void FOLD(fold)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {
#if defined(EVENS)
  int64_t i = stride == 1 ? FOLD(runs)(taps, count, out) : stride == 2 ? FOLD(pairs)(taps, count, out) : 0;
#elif defined(OP)
  int64_t i = stride == 1 ? FOLD(runs)(taps, count, out) : 0;
#else
  int64_t i = 0;
#endif
  for (; i < count; i += SOME) FOLD(some)(taps, stride, i, count - i < SOME ? count - i : SOME, out);
}

#undef FOLD
#undef OP
#undef ONE_OP
#undef FIRST
