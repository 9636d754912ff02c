/* For every machine: vectors of four and two numbers that the compiler may make. */
#include "kernel/pick.h"

#include <stdbool.h>

#define ISA(name) name##_base
#define LANES32 4
#define LANES64 2
#define SOME32 some32
#define SOME64 some64

#define DEFINE_SOME(BITS)                                                                                         \
  static inline int64_t some##BITS(const uint##BITS##_t *x, int64_t i, uint##BITS##_t first, uint##BITS##_t span, \
                                   uint##BITS##_t *values, uint32_t *indices) {                                   \
    int64_t count = 0;                                                                                            \
    bool any = false;                                                                                             \
    for (int64_t lane = 0; lane < LANES##BITS; lane++) any |= x[lane] - first <= span;                            \
    if (!any) return 0;                                                                                           \
    for (int64_t lane = 0; lane < LANES##BITS; lane++) {                                                          \
      values[count] = x[lane];                                                                                    \
      indices[count] = (uint32_t)(i + lane);                                                                      \
      count += x[lane] - first <= span;                                                                           \
    }                                                                                                             \
    return count;                                                                                                 \
  }
DEFINE_SOME(32)
DEFINE_SOME(64)
#include "kernel/pick_body.h"
