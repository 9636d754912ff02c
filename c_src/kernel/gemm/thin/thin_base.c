#include "kernel/inline.h"
#include "kernel/isa_base.h"

#include <stdint.h>
#include <string.h>

/* A vector has one line's piece. */
INLINE base_f32 join(const char *const *lines, int64_t step, int64_t at) {
  base_f32 v;
  (void)step;
  memcpy(&v, *lines + at, sizeof v);
  return v;
}

#define JOIN(lines, step, at) join(lines, step, at)
#define LOW32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW64(a, b) ((V)__builtin_shufflevector((base_f64)(a), (base_f64)(b), 0, 2))
#define HIGH64(a, b) ((V)__builtin_shufflevector((base_f64)(a), (base_f64)(b), 1, 3))
#define SPREAD32(a) ((V){a, a, a, a})
#define SPREAD64(a) ((V){a, a})
#include "kernel/gemm/thin/thin_body.h"
