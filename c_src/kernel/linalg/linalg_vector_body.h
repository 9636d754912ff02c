/* Inner loops of linear algebra for one instruction set. Its file defines these macros.
 *   VECTOR_BYTES       of a vector: 16, 32 or 64
 *   FMA32 FMA64        a * b + c
 *   SPLAT32 SPLAT64    a number in every lane
 *   SQRT32 SQRT64      square roots
 *   LOAD_SOME32/64 STORE_SOME32/64  the first n elements of a vector, 1 <= n <= lanes; others are loaded as 0
 *   ISA(name)          the name of a thing of this instruction set. */
#include "kernel/inline.h"
#include "kernel/linalg/factor_numbers.h"
#include "kernel/linalg/linalg_vector.h"

#include <math.h>
#include <string.h>

/* Vectors of a row that are done together: as many chains as hide the latency of a fused multiply-add, while a block's
 * rows stay in the first cache. */
#define WIDE (VECTOR_BYTES == 64 ? 4 : 8)
/* Rows of this number of vectors are solved together, as far as there are registers. */
#define SOLVED (VECTOR_BYTES == 64 ? 4 : 1)

typedef float lanes_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double lanes_f64 __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t lanes_s32 __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t lanes_s64 __attribute__((vector_size(VECTOR_BYTES)));

/* Neighbours exchanged; the lower and the upper halves of two vectors, their lanes in turn. */
#if VECTOR_BYTES == 64
#define LOWER32(x, y) __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define UPPER32(x, y) __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOWER64(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER64(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define SWAPPED32(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#define SWAPPED64(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#elif VECTOR_BYTES == 32
#define LOWER32(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define UPPER32(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOWER64(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define UPPER64(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define SWAPPED32(x) __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6)
#define SWAPPED64(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#else
#define LOWER32(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define UPPER32(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define LOWER64(x, y) __builtin_shufflevector(x, y, 0, 2)
#define UPPER64(x, y) __builtin_shufflevector(x, y, 1, 3)
#define SWAPPED32(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#define SWAPPED64(x) __builtin_shufflevector(x, x, 1, 0)
#endif

/* Sums of all lanes, by halving again and again. */
#if VECTOR_BYTES == 64
#define HALVED32(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
#define QUARTERED32(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7)
#define PAIRED32(x) __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3)
#define HALVED64(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7)
#define QUARTERED64(x) __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3)
#elif VECTOR_BYTES == 32
#define QUARTERED32(x) __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7)
#define PAIRED32(x) __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3)
#define QUARTERED64(x) __builtin_shufflevector(x, x, 2, 3, 2, 3)
#else
#define PAIRED32(x) __builtin_shufflevector(x, x, 2, 3, 2, 3)
#endif
INLINE float sum_lanes_f32(lanes_f32 x) {
#if VECTOR_BYTES >= 64
  x += HALVED32(x);
#endif
#if VECTOR_BYTES >= 32
  x += QUARTERED32(x);
#endif
  x += PAIRED32(x);
  return x[0] + x[1];
}
INLINE double sum_lanes_f64(lanes_f64 x) {
#if VECTOR_BYTES >= 64
  x += HALVED64(x);
#endif
#if VECTOR_BYTES >= 32
  x += QUARTERED64(x);
#endif
  return x[0] + x[1];
}

#include "kernel/linalg/linalg_vector_poles.h"

#define T double
#define V lanes_f64
#define W int64_t
#define I lanes_s64
#define NAME(name) name##_f64
#define FMA FMA64
#define SPLAT SPLAT64
#define SQRT SQRT64
#define SWAPPED SWAPPED64
#define LOWER LOWER64
#define UPPER UPPER64
#define LOAD_SOME LOAD_SOME64
#define STORE_SOME STORE_SOME64
#define FOR_ALL_TYPES
#include "kernel/linalg/linalg_vector_type.h"
#undef FOR_ALL_TYPES

#define T float
#define V lanes_f32
#define W int32_t
#define I lanes_s32
#define NAME(name) name##_f32
#define FMA FMA32
#define SPLAT SPLAT32
#define SQRT SQRT32
#define SWAPPED SWAPPED32
#define LOWER LOWER32
#define UPPER UPPER32
#define LOAD_SOME LOAD_SOME32
#define STORE_SOME STORE_SOME32
#include "kernel/linalg/linalg_vector_type.h"

/* In the row for complex numbers, the functions on lines and poles are for their parts. */
#define ROW(name, part, lanes)                                                                                      \
  {                                                                                                                 \
    lanes, (lanes)*WIDE, solve_##name, multiply_few_##name, factor_##name, solve_group_##part, factor_group_##part, \
        factor_panel_##name, solve_full_group_##part, determinant_group_##part, lu_group_##part, qr_group_##part,   \
        eigh_group_##part, svd_group_##part, dot_##part, largest_##part, reflect_##part, products_##part,           \
        take_sums_##part, complex_products_##part, complex_reflect_##part, add_multiples_##part, turn_##part,       \
        add_scaled_##part, pole_sums, pole_ratios, pole_terms                                                       \
  }
const ts_linalg_vector ISA(ts_linalg_vector)[3] = {ROW(f32, f32, VECTOR_BYTES / 4), ROW(f64, f64, VECTOR_BYTES / 8),
                                                   ROW(c128, f64, VECTOR_BYTES / 16)};
