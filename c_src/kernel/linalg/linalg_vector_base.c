#include "kernel/isa_base.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline base_f32 sqrt_f32(base_f32 x) {
  for (int i = 0; i < 4; i++) x[i] = sqrtf(x[i]);
  return x;
}
static inline base_f64 sqrt_f64(base_f64 x) {
  for (int i = 0; i < 2; i++) x[i] = sqrt(x[i]);
  return x;
}
static inline base_f32 load_some_f32(const float *from, int64_t count) {
  base_f32 x = {0};
  for (int i = 0; i < count; i++) x[i] = from[i];
  return x;
}
static inline base_f64 load_some_f64(const double *from, int64_t count) {
  base_f64 x = {0};
  for (int i = 0; i < count; i++) x[i] = from[i];
  return x;
}
#define LOAD_SOME32(p, n) load_some_f32(p, n)
#define LOAD_SOME64(p, n) load_some_f64(p, n)
#define STORE_SOME32(p, n, x) memcpy(p, &(x), (size_t)(n) * sizeof(float))
#define STORE_SOME64(p, n, x) memcpy(p, &(x), (size_t)(n) * sizeof(double))
#define SPLAT32(x) ((base_f32){x, x, x, x})
#define SPLAT64(x) ((base_f64){x, x})
#define SQRT32(x) sqrt_f32(x)
#define SQRT64(x) sqrt_f64(x)
#include "kernel/linalg/linalg_vector_body.h"
