/* Loops over windows for one instruction set, which defines VECTOR_BYTES and ISA(name), the name of something of this
 * instruction set, and FMA_32, FMA_64, ONE_FMA_32, ONE_FMA_64, a product and a sum, and STREAM, a store to an aligned
 * address that bypasses the caches where the machine can; STREAM_END orders such stores with later ones. Windows that
 * are neighbours are in the lanes of vectors; each keeps the order of its taps. */
#include "kernel/complex_number.h"
#include "kernel/conv/window_lanes.h"

#define INLINE static inline __attribute__((always_inline))
#define UNUSED __attribute__((unused))
#define VECTOR(T) __attribute__((vector_size(VECTOR_BYTES)))
#define IN_MEMORY(T) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias))

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t halves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));
enum { FLOATS = VECTOR_BYTES / 4 };

/* ---- half types: computed in f32 */

INLINE float load_bf16(uint16_t x) { return ts_f32_from_bits((uint32_t)x << 16); }

INLINE uint16_t store_bf16(float x) {
  uint32_t bits = ts_f32_bits(x), quiet = bits >> 16 | 0x40, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
}

/* The exponent's bias is corrected by a multiplication, which also normalises subnormals. */
INLINE float load_f16(uint16_t x) {
  uint32_t magnitude = (uint32_t)(x & 0x7FFF) << 13, special = magnitude >= 0x0F800000u ? 0x7F800000u : 0;
  uint32_t bits = ts_f32_bits(ts_f32_from_bits(magnitude) * 0x1p112f) | special;
  return ts_f32_from_bits(bits | (uint32_t)(x & 0x8000) << 16);
}

INLINE uint16_t store_f16(float x) {
  uint32_t v = ts_f32_bits(x), sign = v >> 16 & 0x8000, magnitude = v & 0x7FFFFFFFu, result;
  if (magnitude > 0x7F800000u) {
    result = 0x7E00 | (magnitude >> 13 & 0x1FF);
  } else if (magnitude >= 0x47800000u) { /* 65536 and up */
    result = 0x7C00;
  } else if (magnitude >= 0x38800000u) { /* normal; a carry out of the largest gives infinity */
    result = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  } else { /* one unit in the last place of 0.5f is the smallest subnormal: the addition rounds */
    result = ts_f32_bits(ts_f32_from_bits(magnitude) + 0.5f) - ts_f32_bits(0.5f);
  }
  return (uint16_t)(sign | result);
}

INLINE floats loads_bf16(const void *p) { return (floats)(__builtin_convertvector(*(const halves *)p, words) << 16); }

INLINE floats loads_f16(const void *p) {
  words x = __builtin_convertvector(*(const halves *)p, words), magnitude = (x & 0x7FFF) << 13;
  words special = (words)(magnitude >= 0x0F800000u) & 0x7F800000u;
  return (floats)((words)((floats)magnitude * 0x1p112f) | special | (x & 0x8000) << 16);
}

/* ---- combining vectors (A, with the type M of masks) or elements */

#define SUM(A, M, a, b) ((a) + (b))
#define PRODUCT(A, M, a, b) ((a) * (b))
#define PICK(A, M, m, a, b) ((A)(((M)(a) & (M)(m)) | ((M)(b) & ~(M)(m))))
#define INTEGER_MAX(A, M, a, b) PICK(A, M, (a) > (b), a, b)
#define INTEGER_MIN(A, M, a, b) PICK(A, M, (a) < (b), a, b)
/* NaN if either is; -0 below +0: of equal ones the bits of both. */
#define FLOAT_MAX(A, M, a, b) PICK(A, M, (M)((a) > (b)) | (M)((a) != (a)), a, (M)(b) & ((M)(a) | ~(M)((a) == (b))))
#define FLOAT_MIN(A, M, a, b) PICK(A, M, (M)((a) < (b)) | (M)((a) != (a)), a, (M)(b) | ((M)(a) & (M)((a) == (b))))
#ifndef MAX_32 /* else by instructions of the machine, with the same bits */
#define MAX_32 FLOAT_MAX
#define MIN_32 FLOAT_MIN
#define MAX_64 FLOAT_MAX
#define MIN_64 FLOAT_MIN
#endif
#define WRAPPED_SUM(A, M, a, b) ((uint64_t)(a) + (uint64_t)(b))
#define WRAPPED_PRODUCT(A, M, a, b) ((uint64_t)(a) * (uint64_t)(b))
#define ONE_MAX(A, M, a, b) ((a) > (b) ? (a) : (b))
#define ONE_MIN(A, M, a, b) ((a) < (b) ? (a) : (b))
#define IS_NEGATIVE(x) (__builtin_signbit((double)(x)) != 0)
#define ONE_FLOAT_MAX(A, M, a, b) ((a) != (a) || (a) > (b) || ((a) == (b) && IS_NEGATIVE(b)) ? (a) : (b))
#define ONE_FLOAT_MIN(A, M, a, b) ((a) != (a) || (a) < (b) || ((a) == (b) && IS_NEGATIVE(a)) ? (a) : (b))
#define SAME(x) (x)

/* ---- folds */

#define FOR_TAPS(taps, p)                                                                                         \
  for (int64_t row_ = 0; row_ < (taps)->row_count; row_++)                                                        \
    for (const char *p = (taps)->rows[row_] + (taps)->offset, *end_ = p + (taps)->steps * (taps)->step; p < end_; \
         p += (taps)->step)

/* Windows i .. i+n-1, n <= SOME, of any stride. T: in memory, A: of the carry. */
enum { SOME = 32 };
#define DEFINE_SOME(NAME, T, A, LOAD, STORE, OP, FIRST)                                               \
  static void some_##NAME(const ts_window_taps *taps, int64_t stride, int64_t i, int64_t n, T *out) { \
    A acc[SOME];                                                                                      \
    for (int64_t j = 0; j < n; j++) acc[j] = (A)(FIRST);                                              \
    FOR_TAPS(taps, p) {                                                                               \
      const T *x = (const T *)(const void *)p + i * stride;                                           \
      for (int64_t j = 0; j < n; j++) acc[j] = (A)OP(A, A, acc[j], (A)LOAD(x[j * stride]));           \
    }                                                                                                 \
    for (int64_t j = 0; j < n; j++) out[i + j] = (T)STORE(acc[j]);                                    \
  }

/* Whole vectors of neighbours; returns how many windows they are. */
#define DEFINE_RUNS(NAME, T, S, OP, FIRST)                                              \
  INLINE int64_t runs_##NAME(const ts_window_taps *taps, int64_t count, T *out) {       \
    typedef T V VECTOR(T);                                                              \
    typedef S M VECTOR(S) UNUSED;                                                       \
    typedef T U IN_MEMORY(T);                                                           \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(T);                            \
    int64_t i = 0;                                                                      \
    for (; i + 4 * lanes <= count; i += 4 * lanes) {                                    \
      V a = (V){0} + (T)(FIRST), b = a, c = a, d = a;                                   \
      FOR_TAPS(taps, p) {                                                               \
        const U *x = (const U *)(const void *)(p + i * (int64_t)sizeof(T));             \
        V e = x[0], f = x[1], g = x[2], h = x[3];                                       \
        a = OP(V, M, a, e), b = OP(V, M, b, f), c = OP(V, M, c, g), d = OP(V, M, d, h); \
      }                                                                                 \
      U *to = (U *)(void *)(out + i);                                                   \
      if (taps->streams) {                                                              \
        STREAM(to, a), STREAM(to + 1, b), STREAM(to + 2, c), STREAM(to + 3, d);         \
        continue;                                                                       \
      }                                                                                 \
      to[0] = a, to[1] = b, to[2] = c, to[3] = d;                                       \
    }                                                                                   \
    for (; i + lanes <= count; i += lanes) {                                            \
      V a = (V){0} + (T)(FIRST);                                                        \
      FOR_TAPS(taps, p) {                                                               \
        V e = *(const U *)(const void *)(p + i * (int64_t)sizeof(T));                   \
        a = OP(V, M, a, e);                                                             \
      }                                                                                 \
      *(U *)(void *)(out + i) = a;                                                      \
    }                                                                                   \
    return i;                                                                           \
  }

/* Windows two elements apart: every second lane of two vectors. Nothing is read behind the last window's elements. */
#define DEFINE_PAIRS(NAME, T, S, OP, FIRST, EVENS)                                 \
  INLINE int64_t pairs_##NAME(const ts_window_taps *taps, int64_t count, T *out) { \
    typedef T V VECTOR(T);                                                         \
    typedef S M VECTOR(S) UNUSED;                                                  \
    typedef T U IN_MEMORY(T);                                                      \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(T);                       \
    int64_t i = 0;                                                                 \
    for (; i + lanes < count; i += lanes) {                                        \
      V a = (V){0} + (T)(FIRST);                                                   \
      FOR_TAPS(taps, p) {                                                          \
        const U *x = (const U *)(const void *)(p + 2 * i * (int64_t)sizeof(T));    \
        V low = x[0], high = x[1], e = EVENS(low, high);                           \
        a = OP(V, M, a, e);                                                        \
      }                                                                            \
      *(U *)(void *)(out + i) = a;                                                 \
    }                                                                              \
    return i;                                                                      \
  }

#if VECTOR_BYTES == 16
#define EVENS_4(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define EVENS_8(a, b) __builtin_shufflevector(a, b, 0, 2)
#elif VECTOR_BYTES == 32
#define EVENS_4(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define EVENS_8(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#else
#define EVENS_4(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define EVENS_8(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#endif

#define DEFINE_FOLD(NAME, T, FIRST_ONES)                                                                 \
  static void fold_##NAME(const ts_window_taps *taps, int64_t stride, int64_t count, void *out) {        \
    int64_t i = FIRST_ONES;                                                                              \
    for (; i < count; i += SOME) some_##NAME(taps, stride, i, count - i < SOME ? count - i : SOME, out); \
  }

#define DEFINE_FOLD_SMALL(NAME, T, S, OP, ONE_OP, FIRST) \
  DEFINE_SOME(NAME, T, T, SAME, SAME, ONE_OP, FIRST)     \
  DEFINE_RUNS(NAME, T, S, OP, FIRST)                     \
  DEFINE_FOLD(NAME, T, stride == 1 ? runs_##NAME(taps, count, out) : 0)
#define DEFINE_FOLD_LARGE(NAME, T, S, OP, ONE_OP, FIRST, EVENS) \
  DEFINE_SOME(NAME, T, T, SAME, SAME, ONE_OP, FIRST)            \
  DEFINE_RUNS(NAME, T, S, OP, FIRST)                            \
  DEFINE_PAIRS(NAME, T, S, OP, FIRST, EVENS)                    \
  DEFINE_FOLD(NAME, T, stride == 1 ? runs_##NAME(taps, count, out) : stride == 2 ? pairs_##NAME(taps, count, out) : 0)
#define DEFINE_FOLD_4(NAME, T, S, OP, ONE_OP, FIRST) DEFINE_FOLD_LARGE(NAME, T, S, OP, ONE_OP, FIRST, EVENS_4)
#define DEFINE_FOLD_8(NAME, T, S, OP, ONE_OP, FIRST) DEFINE_FOLD_LARGE(NAME, T, S, OP, ONE_OP, FIRST, EVENS_8)

#define DEFINE_FOLD_HALF(NAME, LOAD, STORE, LOADS, OP, ONE_OP, FIRST)                    \
  DEFINE_SOME(NAME, uint16_t, float, LOAD, STORE, ONE_OP, FIRST)                         \
  INLINE int64_t runs_##NAME(const ts_window_taps *taps, int64_t count, uint16_t *out) { \
    int64_t i = 0;                                                                       \
    for (; i + FLOATS <= count; i += FLOATS) {                                           \
      floats a = (floats){0} + (FIRST);                                                  \
      FOR_TAPS(taps, p) {                                                                \
        floats e = LOADS(p + 2 * i);                                                     \
        a = OP(floats, words, a, e);                                                     \
      }                                                                                  \
      for (int j = 0; j < FLOATS; j++) out[i + j] = STORE(a[j]);                         \
    }                                                                                    \
    return i;                                                                            \
  }                                                                                      \
  DEFINE_FOLD(NAME, uint16_t, stride == 1 ? runs_##NAME(taps, count, out) : 0)

/* Sums and products wrap in the unsigned type U; masks have the signed type S. */
#define DEFINE_INTEGER(NAME, T, U, S, DEFINE, LOWEST, HIGHEST) \
  DEFINE(sum_##NAME, U, S, SUM, WRAPPED_SUM, 0)                \
  DEFINE(product_##NAME, U, S, PRODUCT, WRAPPED_PRODUCT, 1)    \
  DEFINE(max_##NAME, T, S, INTEGER_MAX, ONE_MAX, LOWEST)       \
  DEFINE(min_##NAME, T, S, INTEGER_MIN, ONE_MIN, HIGHEST)
#define DEFINE_FLOAT(NAME, T, S, DEFINE, MAX, MIN)                  \
  DEFINE(sum_##NAME, T, S, SUM, SUM, 0)                             \
  DEFINE(product_##NAME, T, S, PRODUCT, PRODUCT, 1)                 \
  DEFINE(max_##NAME, T, S, MAX, ONE_FLOAT_MAX, -(T)__builtin_inf()) \
  DEFINE(min_##NAME, T, S, MIN, ONE_FLOAT_MIN, (T)__builtin_inf())
#define DEFINE_HALF(NAME)                                                                                         \
  DEFINE_FOLD_HALF(sum_##NAME, load_##NAME, store_##NAME, loads_##NAME, SUM, SUM, 0.0f)                           \
  DEFINE_FOLD_HALF(product_##NAME, load_##NAME, store_##NAME, loads_##NAME, PRODUCT, PRODUCT, 1.0f)               \
  DEFINE_FOLD_HALF(max_##NAME, load_##NAME, store_##NAME, loads_##NAME, MAX_32, ONE_FLOAT_MAX, -__builtin_inff()) \
  DEFINE_FOLD_HALF(min_##NAME, load_##NAME, store_##NAME, loads_##NAME, MIN_32, ONE_FLOAT_MIN, __builtin_inff())

DEFINE_INTEGER(s8, int8_t, uint8_t, int8_t, DEFINE_FOLD_SMALL, INT8_MIN, INT8_MAX)
DEFINE_INTEGER(s16, int16_t, uint16_t, int16_t, DEFINE_FOLD_SMALL, INT16_MIN, INT16_MAX)
DEFINE_INTEGER(s32, int32_t, uint32_t, int32_t, DEFINE_FOLD_4, INT32_MIN, INT32_MAX)
DEFINE_INTEGER(s64, int64_t, uint64_t, int64_t, DEFINE_FOLD_8, INT64_MIN, INT64_MAX)
DEFINE_FOLD_SMALL(max_u8, uint8_t, int8_t, INTEGER_MAX, ONE_MAX, 0)
DEFINE_FOLD_SMALL(min_u8, uint8_t, int8_t, INTEGER_MIN, ONE_MIN, UINT8_MAX)
DEFINE_FOLD_SMALL(max_u16, uint16_t, int16_t, INTEGER_MAX, ONE_MAX, 0)
DEFINE_FOLD_SMALL(min_u16, uint16_t, int16_t, INTEGER_MIN, ONE_MIN, UINT16_MAX)
DEFINE_FOLD_4(max_u32, uint32_t, int32_t, INTEGER_MAX, ONE_MAX, 0)
DEFINE_FOLD_4(min_u32, uint32_t, int32_t, INTEGER_MIN, ONE_MIN, UINT32_MAX)
DEFINE_FOLD_8(max_u64, uint64_t, int64_t, INTEGER_MAX, ONE_MAX, 0)
DEFINE_FOLD_8(min_u64, uint64_t, int64_t, INTEGER_MIN, ONE_MIN, UINT64_MAX)
DEFINE_FLOAT(f32, float, int32_t, DEFINE_FOLD_4, MAX_32, MIN_32)
DEFINE_FLOAT(f64, double, int64_t, DEFINE_FOLD_8, MAX_64, MIN_64)
#define C64_PRODUCT(A, M, a, b) (ts_c64_product(a, b))
#define C128_PRODUCT(A, M, a, b) (ts_c128_product(a, b))
#define DEFINE_COMPLEX(NAME, T, OP)                    \
  DEFINE_SOME(product_##NAME, T, T, SAME, SAME, OP, 1) \
  DEFINE_FOLD(product_##NAME, T, 0)
DEFINE_COMPLEX(c64, ts_c64, C64_PRODUCT)
DEFINE_COMPLEX(c128, ts_c128, C128_PRODUCT)
DEFINE_HALF(f16)
DEFINE_HALF(bf16)

/* ---- the selected taps */

/* KEEPS: the operator by which the selected element stays. */
#define DEFINE_PICK(NAME, T, A, LOAD, KEEPS)                                                          \
  static void pick_##NAME(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) { \
    A selected[TS_WINDOW_PICKS];                                                                      \
    int32_t tap = 0;                                                                                  \
    FOR_TAPS(taps, p) {                                                                               \
      const T *x = (const T *)(const void *)p;                                                        \
      for (int64_t i = 0; i < count; i++) {                                                           \
        A candidate = LOAD(x[i * stride]);                                                            \
        bool keeps = tap > 0 && selected[i] KEEPS candidate;                                          \
        selected[i] = keeps ? selected[i] : candidate;                                                \
        best[i] = keeps ? best[i] : tap;                                                              \
      }                                                                                               \
      tap++;                                                                                          \
    }                                                                                                 \
  }

/* The same for vectors of four-byte elements. */
#define DEFINE_PICK_4(NAME, T, KEEPS)                                                                 \
  DEFINE_PICK(one_##NAME, T, T, SAME, KEEPS)                                                          \
  static void pick_##NAME(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best) { \
    typedef T V VECTOR(T);                                                                            \
    typedef T U IN_MEMORY(T);                                                                         \
    typedef int32_t M VECTOR(int32_t);                                                                \
    typedef int32_t N IN_MEMORY(int32_t);                                                             \
    int64_t i = 0;                                                                                    \
    for (; stride == 1 && i + FLOATS <= count; i += FLOATS) {                                         \
      V selected = {0};                                                                               \
      M at = {0}, all = {0}, tap = {0};                                                               \
      FOR_TAPS(taps, p) {                                                                             \
        V candidate = *(const U *)(const void *)(p + 4 * i);                                          \
        M keeps = (M)(selected KEEPS candidate)&all;                                                  \
        selected = PICK(V, M, keeps, selected, candidate);                                            \
        at = PICK(M, M, keeps, at, tap);                                                              \
        all = ~(M){0};                                                                                \
        tap += 1;                                                                                     \
      }                                                                                               \
      *(N *)(void *)(best + i) = at;                                                                  \
    }                                                                                                 \
    if (i == count) return;                                                                           \
    ts_window_taps rest = *taps;                                                                      \
    rest.offset += 4 * i * stride;                                                                    \
    pick_one_##NAME(&rest, stride, count - i, best + i);                                              \
  }

#define DEFINE_PICKS(NAME, T, A, LOAD)   \
  DEFINE_PICK(max_##NAME, T, A, LOAD, >) \
  DEFINE_PICK(min_##NAME, T, A, LOAD, <)
#define DEFINE_PICKS_4(NAME, T)   \
  DEFINE_PICK_4(max_##NAME, T, >) \
  DEFINE_PICK_4(min_##NAME, T, <)

DEFINE_PICKS(s8, int8_t, int8_t, SAME)
DEFINE_PICKS(s16, int16_t, int16_t, SAME)
DEFINE_PICKS_4(s32, int32_t)
DEFINE_PICKS(s64, int64_t, int64_t, SAME)
DEFINE_PICKS(u8, uint8_t, uint8_t, SAME)
DEFINE_PICKS(u16, uint16_t, uint16_t, SAME)
DEFINE_PICKS_4(u32, uint32_t)
DEFINE_PICKS(u64, uint64_t, uint64_t, SAME)
DEFINE_PICKS(f16, uint16_t, float, load_f16)
DEFINE_PICKS(bf16, uint16_t, float, load_bf16)
DEFINE_PICKS_4(f32, float)
DEFINE_PICKS(f64, double, double, SAME)

#define DEFINE_ADD(NAME, T, LOAD, STORE)                                                                            \
  static void add_##NAME(void *to, int64_t stride, const void *from, const int32_t *best, int32_t tap, int64_t n) { \
    T *y = to;                                                                                                      \
    const T *x = from;                                                                                              \
    for (int64_t i = 0; i < n; i++)                                                                                 \
      if (best[i] == tap) y[i * stride] = (T)STORE(LOAD(y[i * stride]) + LOAD(x[i]));                               \
  }

DEFINE_ADD(8, uint8_t, SAME, SAME)
DEFINE_ADD(16, uint16_t, SAME, SAME)
DEFINE_ADD(32, uint32_t, SAME, SAME)
DEFINE_ADD(64, uint64_t, SAME, SAME)
DEFINE_ADD(f16, uint16_t, load_f16, store_f16)
DEFINE_ADD(bf16, uint16_t, load_bf16, store_bf16)
DEFINE_ADD(one_f32, float, SAME, SAME)
DEFINE_ADD(f64, double, SAME, SAME)

static void add_f32(void *to, int64_t stride, const void *from, const int32_t *best, int32_t tap, int64_t n) {
  typedef float U IN_MEMORY(float);
  typedef int32_t N IN_MEMORY(int32_t);
  typedef int32_t M VECTOR(int32_t);
  int64_t i = 0;
  for (; stride == 1 && i + FLOATS <= n; i += FLOATS) {
    U *y = (U *)(void *)((float *)to + i);
    M mine = (M)(*(const N *)(const void *)(best + i) == tap);
    floats old = *y, sum = old + *(const U *)(const void *)((const float *)from + i);
    *y = PICK(floats, M, mine, sum, old);
  }
  if (i < n) add_one_f32((float *)to + i * stride, stride, (const float *)from + i, best + i, tap, n - i);
}

/* ---- products with weights, channel by channel */

/* FMA_32 and FMA_64 round once where the machine can; else the product rounds by itself. ONE_FMA: the same of elements.
 */
/* Some channels of four points of the output from channel i on, which share the loads of weights; two vectors of
 * channels while there are so many. */
#define DEFINE_DOT(NAME, T, V, A, LOAD, STORE, LOADS, STORES, FMA, ONE_FMA)                                        \
  INLINE int64_t dot_four_##NAME(const char *const *taps, const ts_window_weights *weights, T *to) {               \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), size = (int64_t)sizeof(T), count = weights->count;    \
    int64_t i = 0;                                                                                                 \
    for (; i + 2 * lanes <= count; i += 2 * lanes) {                                                               \
      V sums[TS_WINDOW_DOTS][2] = {{{0}}};                                                                         \
      for (int64_t t = 0; t < weights->taps; t++) {                                                                \
        const char *at = weights->data + (t * count + i) * size;                                                   \
        V w = LOADS(at), next = LOADS(at + lanes * size);                                                          \
        for (int r = 0; r < TS_WINDOW_DOTS; r++) {                                                                 \
          const char *x = taps[t * TS_WINDOW_DOTS + r] + i * size;                                                 \
          sums[r][0] = FMA(LOADS(x), w, sums[r][0]);                                                               \
          sums[r][1] = FMA(LOADS(x + lanes * size), next, sums[r][1]);                                             \
        }                                                                                                          \
      }                                                                                                            \
      for (int r = 0; r < TS_WINDOW_DOTS; r++)                                                                     \
        STORES(to + r * count + i, sums[r][0]), STORES(to + r * count + i + lanes, sums[r][1]);                    \
    }                                                                                                              \
    return i;                                                                                                      \
  }                                                                                                                \
  INLINE int64_t dot_vectors_##NAME(const char *const *taps, const ts_window_weights *weights, int64_t i, T *to) { \
    const int64_t lanes = VECTOR_BYTES / (int64_t)sizeof(A), size = (int64_t)sizeof(T), count = weights->count;    \
    for (; i + lanes <= count; i += lanes) {                                                                       \
      V sum = {0};                                                                                                 \
      for (int64_t t = 0; t < weights->taps; t++)                                                                  \
        sum = FMA(LOADS(taps[t * TS_WINDOW_DOTS] + i * size), LOADS(weights->data + (t * count + i) * size), sum); \
      STORES(to + i, sum);                                                                                         \
    }                                                                                                              \
    return i;                                                                                                      \
  }                                                                                                                \
  INLINE A dot_channel_##NAME(const char *const *taps, const ts_window_weights *weights, int64_t i) {              \
    A sum = 0;                                                                                                     \
    for (int64_t t = 0; t < weights->taps; t++) {                                                                  \
      A x = LOAD(((const T *)(const void *)taps[t * TS_WINDOW_DOTS])[i]);                                          \
      A w = LOAD(((const T *)(const void *)weights->data)[t * weights->count + i]);                                \
      sum = ONE_FMA(x, w, sum);                                                                                    \
    }                                                                                                              \
    return sum;                                                                                                    \
  }                                                                                                                \
  static void dot_##NAME(const char *const *taps, int points, const ts_window_weights *weights, void *out) {       \
    int64_t first = points == TS_WINDOW_DOTS ? dot_four_##NAME(taps, weights, out) : 0;                            \
    for (int r = 0; r < points; r++) {                                                                             \
      T *to = (T *)out + r * weights->count;                                                                       \
      int64_t i = dot_vectors_##NAME(taps + r, weights, first, to);                                                \
      for (; i < weights->count; i++) to[i] = STORE(dot_channel_##NAME(taps + r, weights, i));                     \
    }                                                                                                              \
  }

typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));
typedef float near_floats __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double near_doubles __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

INLINE floats loads_f32(const void *p) { return *(const near_floats *)p; }
INLINE doubles loads_f64(const void *p) { return *(const near_doubles *)p; }
INLINE void stores_f32(void *p, floats x) { *(near_floats *)p = x; }
INLINE void stores_f64(void *p, doubles x) { *(near_doubles *)p = x; }
INLINE void stores_f16(uint16_t *p, floats x) {
  for (int j = 0; j < FLOATS; j++) p[j] = store_f16(x[j]);
}
INLINE void stores_bf16(uint16_t *p, floats x) {
  for (int j = 0; j < FLOATS; j++) p[j] = store_bf16(x[j]);
}

DEFINE_DOT(f32, float, floats, float, SAME, SAME, loads_f32, stores_f32, FMA_32, ONE_FMA_32)
DEFINE_DOT(f64, double, doubles, double, SAME, SAME, loads_f64, stores_f64, FMA_64, ONE_FMA_64)
DEFINE_DOT(f16, uint16_t, floats, float, load_f16, store_f16, loads_f16, stores_f16, FMA_32, ONE_FMA_32)
DEFINE_DOT(bf16, uint16_t, floats, float, load_bf16, store_bf16, loads_bf16, stores_bf16, FMA_32, ONE_FMA_32)

#include "kernel/conv/window_strips.h"

/* ---- the table */

#define FOLDS(SUMS, NAME) \
  { fold_sum_##SUMS, fold_product_##SUMS, fold_max_##NAME, fold_min_##NAME }
#define PICKS(NAME) \
  { pick_max_##NAME, pick_min_##NAME }

const ts_window_lanes ISA(ts_window_lanes) = {
    .folds = {[TS_S8] = FOLDS(s8, s8),
              [TS_S16] = FOLDS(s16, s16),
              [TS_S32] = FOLDS(s32, s32),
              [TS_S64] = FOLDS(s64, s64),
              [TS_U8] = FOLDS(s8, u8),
              [TS_U16] = FOLDS(s16, u16),
              [TS_U32] = FOLDS(s32, u32),
              [TS_U64] = FOLDS(s64, u64),
              [TS_F16] = FOLDS(f16, f16),
              [TS_BF16] = FOLDS(bf16, bf16),
              [TS_F32] = FOLDS(f32, f32),
              [TS_F64] = FOLDS(f64, f64),
              [TS_C64] = {[TS_COMBINE_PRODUCT] = fold_product_c64},
              [TS_C128] = {[TS_COMBINE_PRODUCT] = fold_product_c128}},
    .picks = {[TS_S8] = PICKS(s8),
              [TS_S16] = PICKS(s16),
              [TS_S32] = PICKS(s32),
              [TS_S64] = PICKS(s64),
              [TS_U8] = PICKS(u8),
              [TS_U16] = PICKS(u16),
              [TS_U32] = PICKS(u32),
              [TS_U64] = PICKS(u64),
              [TS_F16] = PICKS(f16),
              [TS_BF16] = PICKS(bf16),
              [TS_F32] = PICKS(f32),
              [TS_F64] = PICKS(f64)},
    .adds = {[TS_S8] = add_8,
             [TS_S16] = add_16,
             [TS_S32] = add_32,
             [TS_S64] = add_64,
             [TS_U8] = add_8,
             [TS_U16] = add_16,
             [TS_U32] = add_32,
             [TS_U64] = add_64,
             [TS_F16] = add_f16,
             [TS_BF16] = add_bf16,
             [TS_F32] = add_f32,
             [TS_F64] = add_f64},
    .dots = {[TS_F16] = dot_f16, [TS_BF16] = dot_bf16, [TS_F32] = dot_f32, [TS_F64] = dot_f64},
    .strips = {[TS_F16] = strip_f16, [TS_BF16] = strip_bf16, [TS_F32] = strip_f32, [TS_F64] = strip_f64},
};
