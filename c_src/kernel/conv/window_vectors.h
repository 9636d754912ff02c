/* The vectors of one instruction set, whose functions on them follow in the includer (window_body.h). The includer
 * defines VECTOR_BYTES. No include guard: each instruction set has its own. */
#include <stdbool.h>
#include <stdint.h>

#define VECTOR __attribute__((vector_size(VECTOR_BYTES)))
#define IN_MEMORY(T) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias))

typedef float floats VECTOR;
typedef double doubles VECTOR;
typedef int32_t ints VECTOR;
typedef int64_t longs VECTOR;
typedef uint32_t words VECTOR;
typedef longs vector_s64;
typedef ints vector_s32;
typedef words vector_u32;
typedef int8_t vector_s8 VECTOR;
typedef uint8_t vector_u8 VECTOR;
typedef int16_t vector_s16 VECTOR;
typedef uint16_t vector_u16 VECTOR;
typedef uint64_t vector_u64 VECTOR;
typedef floats vector_f32;
typedef doubles vector_f64;
typedef ints bits_f32;
typedef longs bits_f64;

/* An element of `a` where the mask is set, else of `b`. */
INLINE vector_u16 choose_u16(vector_u16 mask, vector_u16 a, vector_u16 b) { return (a & mask) | (b & ~mask); }

/* The maxima and minima of one type, by an instruction, or by comparisons. */
#define PICK_BY(TYPE, M, MAX, MIN)                                                                                 \
  INLINE vector_##TYPE greater_##TYPE(vector_##TYPE a, vector_##TYPE b) { return (vector_##TYPE)MAX((M)a, (M)b); } \
  INLINE vector_##TYPE less_##TYPE(vector_##TYPE a, vector_##TYPE b) { return (vector_##TYPE)MIN((M)a, (M)b); }
#define PICK_BY_MASK(TYPE)                                                                   \
  INLINE vector_##TYPE either_##TYPE(vector_##TYPE mask, vector_##TYPE a, vector_##TYPE b) { \
    return (a & mask) | (b & ~mask);                                                         \
  }                                                                                          \
  INLINE vector_##TYPE greater_##TYPE(vector_##TYPE a, vector_##TYPE b) {                    \
    return either_##TYPE((vector_##TYPE)(a > b), a, b);                                      \
  }                                                                                          \
  INLINE vector_##TYPE less_##TYPE(vector_##TYPE a, vector_##TYPE b) {                       \
    return either_##TYPE((vector_##TYPE)(a < b), a, b);                                      \
  }

enum { FLOATS = VECTOR_BYTES / 4 };
