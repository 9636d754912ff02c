/* Loops over windows for one instruction set. The includer defines VECTOR_BYTES; ISA(name), a name of this instruction
 * set; FMA_32, FMA_64, ONE_FMA_32, ONE_FMA_64, a product and a sum; and STREAM, a store to an aligned address that
 * bypasses the caches where the machine can; STREAM_END orders such stores with later ones. Windows that are neighbours
 * are in the lanes of vectors; each keeps the order of its taps. */
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

/* Windows that are folded at once, of any stride. */
enum { SOME = 32 };

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

/* ---- folds by each op, for each type */

#define LOAD SAME
#define STORE SAME

#define NAMED(name, op) name##_##op##_s8
#define T uint8_t
#define A uint8_t
#define S int8_t
#define ONE_SUM WRAPPED_SUM
#define ONE_PRODUCT WRAPPED_PRODUCT
#include "kernel/conv/window_fold_sums.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s8
#define T int8_t
#define A int8_t
#define S int8_t
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST INT8_MIN
#define HIGHEST INT8_MAX
#include "kernel/conv/window_fold_order.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_u8
#define T uint8_t
#define A uint8_t
#define S int8_t
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST 0
#define HIGHEST UINT8_MAX
#include "kernel/conv/window_fold_order.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s16
#define T uint16_t
#define A uint16_t
#define S int16_t
#define ONE_SUM WRAPPED_SUM
#define ONE_PRODUCT WRAPPED_PRODUCT
#include "kernel/conv/window_fold_sums.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s16
#define T int16_t
#define A int16_t
#define S int16_t
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST INT16_MIN
#define HIGHEST INT16_MAX
#include "kernel/conv/window_fold_order.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_u16
#define T uint16_t
#define A uint16_t
#define S int16_t
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST 0
#define HIGHEST UINT16_MAX
#include "kernel/conv/window_fold_order.h"
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s32
#define T uint32_t
#define A uint32_t
#define S int32_t
#define EVENS EVENS_4
#define ONE_SUM WRAPPED_SUM
#define ONE_PRODUCT WRAPPED_PRODUCT
#include "kernel/conv/window_fold_sums.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s32
#define T int32_t
#define A int32_t
#define S int32_t
#define EVENS EVENS_4
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST INT32_MIN
#define HIGHEST INT32_MAX
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_u32
#define T uint32_t
#define A uint32_t
#define S int32_t
#define EVENS EVENS_4
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST 0
#define HIGHEST UINT32_MAX
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s64
#define T uint64_t
#define A uint64_t
#define S int64_t
#define EVENS EVENS_8
#define ONE_SUM WRAPPED_SUM
#define ONE_PRODUCT WRAPPED_PRODUCT
#include "kernel/conv/window_fold_sums.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_s64
#define T int64_t
#define A int64_t
#define S int64_t
#define EVENS EVENS_8
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_u64
#define T uint64_t
#define A uint64_t
#define S int64_t
#define EVENS EVENS_8
#define MAX INTEGER_MAX
#define MIN INTEGER_MIN
#define ONE_MAX_OF ONE_MAX
#define ONE_MIN_OF ONE_MIN
#define LOWEST 0
#define HIGHEST UINT64_MAX
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_f32
#define T float
#define A float
#define S int32_t
#define EVENS EVENS_4
#define ONE_SUM SUM
#define ONE_PRODUCT PRODUCT
#include "kernel/conv/window_fold_sums.h"
#define MAX MAX_32
#define MIN MIN_32
#define ONE_MAX_OF ONE_FLOAT_MAX
#define ONE_MIN_OF ONE_FLOAT_MIN
#define LOWEST -(T)__builtin_inf()
#define HIGHEST (T) __builtin_inf()
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_f64
#define T double
#define A double
#define S int64_t
#define EVENS EVENS_8
#define ONE_SUM SUM
#define ONE_PRODUCT PRODUCT
#include "kernel/conv/window_fold_sums.h"
#define MAX MAX_64
#define MIN MIN_64
#define ONE_MAX_OF ONE_FLOAT_MAX
#define ONE_MIN_OF ONE_FLOAT_MIN
#define LOWEST -(T)__builtin_inf()
#define HIGHEST (T) __builtin_inf()
#include "kernel/conv/window_fold_order.h"
#undef EVENS
#undef S
#undef A
#undef T
#undef NAMED

/* Of complex numbers the product only, by elements. */
#define C64_PRODUCT(A_, M_, a, b) (ts_c64_product(a, b))
#define FOLD(name) name##_product_c64
#define T ts_c64
#define A ts_c64
#define ONE_OP C64_PRODUCT
#define FIRST 1
#include "kernel/conv/window_fold.h"
#undef A
#undef T
#define C128_PRODUCT(A_, M_, a, b) (ts_c128_product(a, b))
#define FOLD(name) name##_product_c128
#define T ts_c128
#define A ts_c128
#define ONE_OP C128_PRODUCT
#define FIRST 1
#include "kernel/conv/window_fold.h"
#undef A
#undef T

#undef LOAD
#undef STORE

#define NAMED(name, op) name##_##op##_f16
#define T uint16_t
#define A float
#define LOAD load_f16
#define STORE store_f16
#define LOADS loads_f16
#define ONE_SUM SUM
#define ONE_PRODUCT PRODUCT
#include "kernel/conv/window_fold_sums.h"
#define MAX MAX_32
#define MIN MIN_32
#define ONE_MAX_OF ONE_FLOAT_MAX
#define ONE_MIN_OF ONE_FLOAT_MIN
#define LOWEST -__builtin_inff()
#define HIGHEST __builtin_inff()
#include "kernel/conv/window_fold_order.h"
#undef LOADS
#undef STORE
#undef LOAD
#undef A
#undef T
#undef NAMED

#define NAMED(name, op) name##_##op##_bf16
#define T uint16_t
#define A float
#define LOAD load_bf16
#define STORE store_bf16
#define LOADS loads_bf16
#define ONE_SUM SUM
#define ONE_PRODUCT PRODUCT
#include "kernel/conv/window_fold_sums.h"
#define MAX MAX_32
#define MIN MIN_32
#define ONE_MAX_OF ONE_FLOAT_MAX
#define ONE_MIN_OF ONE_FLOAT_MIN
#define LOWEST -__builtin_inff()
#define HIGHEST __builtin_inff()
#include "kernel/conv/window_fold_order.h"
#undef LOADS
#undef STORE
#undef LOAD
#undef A
#undef T
#undef NAMED

/* ---- the selected taps */

/* KEEPS: the operator that keeps the selected element. */
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

/* FMA_32 and FMA_64 round once where the machine can; else the product rounds by itself. ONE_FMA: the same for
 * elements.
 */
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
