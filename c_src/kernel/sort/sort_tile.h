/* Squares of LANES elements of BITS bits, whose rows become columns: included once for each, with TILE(bits) the type's
 * name. In the step of distance s every pair of rows r and r+s swaps the blocks of s elements that are off the
 * diagonal. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define T TILE_(BITS)
#define TILE_(bits) TILE(bits)
#define FN(name) CAT(CAT(name, _), T)
#define U CAT(CAT(uint, BITS), _t)

typedef U T __attribute__((vector_size(LANES * BITS / 8)));

#define LOW(j, s) (((j) & (s)) ? LANES + (j) - (s) : (j))
#define HIGH(j, s) (((j) & (s)) ? LANES + (j) : (j) + (s))
#if LANES == 16
#define LIST(f, s)                                                                                              \
  f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s), f(8, s), f(9, s), f(10, s), f(11, s), \
      f(12, s), f(13, s), f(14, s), f(15, s)
#elif LANES == 8
#define LIST(f, s) f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)
#elif LANES == 4
#define LIST(f, s) f(0, s), f(1, s), f(2, s), f(3, s)
#else
#define LIST(f, s) f(0, s), f(1, s)
#endif

#define STEP(s)                                                              \
  _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) if (!(r & (s))) { \
    T low = __builtin_shufflevector(t[r], t[r + (s)], LIST(LOW, s));         \
    t[r + (s)] = __builtin_shufflevector(t[r], t[r + (s)], LIST(HIGH, s));   \
    t[r] = low;                                                              \
  }

INLINE void FN(transpose)(T *t) {
#if LANES > 8
  STEP(8)
#endif
#if LANES > 4
  STEP(4)
#endif
#if LANES > 2
  STEP(2)
#endif
  STEP(1)
}

INLINE void FN(store)(U *to, int64_t stride, const T *t) {
  _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) memcpy(to + r * stride, &t[r], sizeof(T));
}

#undef T
#undef TILE_
#undef FN
#undef U
#undef LOW
#undef HIGH
#undef LIST
#undef STEP
#undef CAT
#undef CAT_
#undef BITS
