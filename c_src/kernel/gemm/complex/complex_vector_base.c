#include "kernel/gemm/complex/complex_vector.h"
#include "kernel/isa_base.h"

#include <string.h>

#define VECTOR32 base_f32
#define VECTOR64 base_f64
#define EVEN32(x) __builtin_shufflevector(x, x, 0, 0, 2, 2)
#define EVEN64(x) __builtin_shufflevector(x, x, 0, 0)
#define ODD32(x) __builtin_shufflevector(x, x, 1, 1, 3, 3)
#define ODD64(x) __builtin_shufflevector(x, x, 1, 1)
#define SWAP32(x) __builtin_shufflevector(x, x, 1, 0, 3, 2)
#define SWAP64(x) __builtin_shufflevector(x, x, 1, 0)
#define SPREAD32(a) ((base_f32){a, a, a, a})
#define SPREAD64(a) ((base_f64){a, a})
#define PAIR32(at) ((base_f32){(at)[0], (at)[1], (at)[0], (at)[1]})
#define PAIR64(at) ((base_f64){(at)[0], (at)[1]})
#define NEGATE_EVEN32(x) ((base_f32){-(x)[0], (x)[1], -(x)[2], (x)[3]})
#define NEGATE_EVEN64(x) ((base_f64){-(x)[0], (x)[1]})

static inline base_f32 some_f32(const float *at, int64_t count) {
  base_f32 v = {0};
  if (count >= 4)
    memcpy(&v, at, 16);
  else if (count > 0)
    memcpy(&v, at, 8);
  return v;
}
static inline base_f64 some_f64(const double *at, int64_t count) {
  base_f64 v = {0};
  if (count > 0) memcpy(&v, at, 16);
  return v;
}
#define LOAD_SOME32(at, count) some_f32(at, count)
#define LOAD_SOME64(at, count) some_f64(at, count)

static inline void turn_f32(base_f32 *v) {
  const base_f32 a = v[0], b = v[1];
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
static inline void turn_f64(base_f64 *v) { (void)v; }
#include "kernel/gemm/complex/complex_vector_body.h"
