/* Loops over windows for one instruction set. Windows that are neighbours are in the lanes of vectors; each keeps the
 * order of its taps. The includer defines VECTOR_BYTES and ISA(name), a name of this instruction set, includes
 * window_vectors.h, and defines functions that differ between instruction sets, with the same results:
 *
 *   fma_f32, fma_f64, fma_vector_f32, fma_vector_f64: a product and a sum. They round once where the machine can; else
 *     the product rounds by itself.
 *   max_f32, min_f32, max_f64, min_f64, of vectors: NaN if either is; -0 below +0.
 *   greater, less, of vectors of each type but halves: as `a > b ? a : b` and `a < b ? a : b` have it, element by
 *     element; with floats that are unordered or equal, either operand.
 *   any_nan_f32, any_nan_f64: whether an element of two vectors is NaN. any_set: whether an element is not 0.
 *   once: its argument, which is loaded once: loads that cross lines take most of the time of a fold.
 *   stream: a store to an aligned address that bypasses the caches where the machine can. stream_end orders such stores
 *     with later ones.
 *   in_register: its argument, which is loaded once for all that use it.
 *   load_some, store_some: the first n elements of four bytes of a vector, 1 to FLOATS; load_some has zeros for the
 *     others. Others in memory are neither read nor written.
 *   gather_some: load_some of elements that are `stride` elements apart. */
#include "kernel/complex_number.h"
#include "kernel/conv/window_lanes.h"
#include "kernel/inline.h"

#define UNUSED __attribute__((unused))

typedef uint16_t halves __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));

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

/* As store_bf16 and store_f16. */
INLINE words either(words mask, words a, words b) { return (a & mask) | (b & ~mask); }

INLINE void stores_bf16(uint16_t *p, floats x) {
  const words bits = (words)x, quiet = bits >> 16 | 0x40, rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  const words nan = (words)((bits & 0x7FFFFFFF) > 0x7F800000u);
  *(halves *)p = __builtin_convertvector(either(nan, quiet, rounded), halves);
}

INLINE void stores_f16(uint16_t *p, floats x) {
  const words v = (words)x, sign = v >> 16 & 0x8000, magnitude = v & 0x7FFFFFFFu;
  const words nan = 0x7E00 | (magnitude >> 13 & 0x1FF), infinity = (words){0} + 0x7C00;
  const words normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000u) >> 13;
  const words subnormal = (words)((floats)magnitude + 0.5f) - ts_f32_bits(0.5f);
  words result = either((words)(magnitude >= 0x38800000u), normal, subnormal);
  result = either((words)(magnitude >= 0x47800000u), infinity, result);
  result = either((words)(magnitude > 0x7F800000u), nan, result);
  *(halves *)p = __builtin_convertvector(sign | result, halves);
}

/* ---- folds, selected taps and additions, for each type */

#define FOR_TAPS(taps, p)                                                                                         \
  for (int64_t row_ = 0; row_ < (taps)->row_count; row_++)                                                        \
    for (const char *p = (taps)->rows[row_] + (taps)->offset, *end_ = p + (taps)->steps * (taps)->step; p < end_; \
         p += (taps)->step)

/* Windows that are folded at once, of any stride: n <= SOME of them from window i on. */
enum { SOME = 32 };

typedef struct window_some {
  int64_t stride, i, n;
} window_some;

INLINE double first_float(ts_combine op) {
  static const double identities[] = {0, 1, -__builtin_inf(), __builtin_inf()};
  return identities[op];
}

/* Every second element of `a`, and of `b` from its second on. */
#if VECTOR_BYTES == 16
INLINE ints seconds_4(ints a, ints b) { return __builtin_shufflevector(a, b, 0, 2, 5, 7); }
INLINE longs seconds_8(longs a, longs b) { return __builtin_shufflevector(a, b, 0, 3); }
#elif VECTOR_BYTES == 32
INLINE ints seconds_4(ints a, ints b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15); }
INLINE longs seconds_8(longs a, longs b) { return __builtin_shufflevector(a, b, 0, 2, 5, 7); }
#else
INLINE ints seconds_4(ints a, ints b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
}
INLINE longs seconds_8(longs a, longs b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15); }
#endif

#define NAME(name) name##_s8
#define T int8_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_u8
#define T uint8_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_s16
#define T int16_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_u16
#define T uint16_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_s32
#define T int32_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_u32
#define T uint32_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_s64
#define T int64_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_u64
#define T uint64_t
#include "kernel/conv/window_integer.h"

#define NAME(name) name##_f32
#define T float
#include "kernel/conv/window_float.h"

#define NAME(name) name##_f64
#define T double
#include "kernel/conv/window_float.h"

#define NAME(name) name##_f16
#include "kernel/conv/window_half.h"

#define NAME(name) name##_bf16
#include "kernel/conv/window_half.h"

INLINE ts_c64 product_c64(ts_c64 a, ts_c64 b) { return ts_c64_product(a, b); }
#define NAME(name) name##_c64
#define T ts_c64
#include "kernel/conv/window_complex.h"

INLINE ts_c128 product_c128(ts_c128 a, ts_c128 b) { return ts_c128_product(a, b); }
#define NAME(name) name##_c128
#define T ts_c128
#include "kernel/conv/window_complex.h"

INLINE ints sum_f32(ints a, ints b) { return (ints)((floats)a + (floats)b); }
INLINE ints sum_u32(ints a, ints b) { return (ints)((words)a + (words)b); }
INLINE ints sum_s32(ints a, ints b) { return sum_u32(a, b); }

#define NAME(name) name##_s32
#include "kernel/conv/window_select_vectors.h"

#define NAME(name) name##_u32
#include "kernel/conv/window_select_vectors.h"

#define NAME(name) name##_f32
#include "kernel/conv/window_select_vectors.h"

/* ---- products with weights, channel by channel */

INLINE floats loads_f32(const void *p) { return *(const near_f32 *)p; }
INLINE doubles loads_f64(const void *p) { return *(const near_f64 *)p; }
INLINE void stores_f32(float *p, floats x) { *(near_f32 *)(void *)p = x; }
INLINE void stores_f64(double *p, doubles x) { *(near_f64 *)(void *)p = x; }
INLINE void streams_f32(float *p, floats x) { stream(p, x); }
INLINE void streams_f64(double *p, doubles x) { stream(p, (floats)x); }
INLINE void streams_f16(uint16_t *p, floats x) { stores_f16(p, x); }
INLINE void streams_bf16(uint16_t *p, floats x) { stores_bf16(p, x); }

#include "kernel/conv/window_strips.h"

/* ---- the table */

/* SUMS: the type whose sums are those of the type as well. */
#define FOLDS(SUMS, NAME) \
  { fold_sum_##SUMS, fold_product_##SUMS, fold_max_##NAME, fold_min_##NAME }
#define PICKS(NAME) \
  { select_max_##NAME, select_min_##NAME }

const ts_window_lanes ISA(ts_window_lanes) = {
    .vector_bytes = VECTOR_BYTES,
    .folds = {[TS_S8] = FOLDS(u8, s8),
              [TS_S16] = FOLDS(u16, s16),
              [TS_S32] = FOLDS(u32, s32),
              [TS_S64] = FOLDS(u64, s64),
              [TS_U8] = FOLDS(u8, u8),
              [TS_U16] = FOLDS(u16, u16),
              [TS_U32] = FOLDS(u32, u32),
              [TS_U64] = FOLDS(u64, u64),
              [TS_F16] = FOLDS(f16, f16),
              [TS_BF16] = FOLDS(bf16, bf16),
              [TS_F32] = FOLDS(f32, f32),
              [TS_F64] = FOLDS(f64, f64),
              [TS_C64] = {[TS_COMBINE_PRODUCT] = fold_product_c64},
              [TS_C128] = {[TS_COMBINE_PRODUCT] = fold_product_c128}},
    .picks = {[TS_S8] = PICKS(s8),
              [TS_S16] = PICKS(s16),
              [TS_S32] = {pick_max_s32, pick_min_s32},
              [TS_S64] = PICKS(s64),
              [TS_U8] = PICKS(u8),
              [TS_U16] = PICKS(u16),
              [TS_U32] = {pick_max_u32, pick_min_u32},
              [TS_U64] = PICKS(u64),
              [TS_F16] = PICKS(f16),
              [TS_BF16] = PICKS(bf16),
              [TS_F32] = {pick_max_f32, pick_min_f32},
              [TS_F64] = PICKS(f64)},
    .scatters = {[TS_S32] = {scatter_max_s32, scatter_min_s32},
                 [TS_U32] = {scatter_max_u32, scatter_min_u32},
                 [TS_F32] = {scatter_max_f32, scatter_min_f32}},
    .adds = {[TS_S8] = add_u8,
             [TS_S16] = add_u16,
             [TS_S32] = add_u32,
             [TS_S64] = add_u64,
             [TS_U8] = add_u8,
             [TS_U16] = add_u16,
             [TS_U32] = add_u32,
             [TS_U64] = add_u64,
             [TS_F16] = add_f16,
             [TS_BF16] = add_bf16,
             [TS_F32] = add_f32,
             [TS_F64] = add_f64},
    .dots = {[TS_F16] = dot_f16, [TS_BF16] = dot_bf16, [TS_F32] = dot_f32, [TS_F64] = dot_f64},
    .strips = {[TS_F16] = strip_f16, [TS_BF16] = strip_bf16, [TS_F32] = strip_f32, [TS_F64] = strip_f64},
};
