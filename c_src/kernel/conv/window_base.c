/* For every machine: vectors of 16 bytes by the compiler's own means. */
#include "kernel/inline.h"

#define VECTOR_BYTES 16
#define ISA(name) name##_base
#include "kernel/conv/window_vectors.h"

#include <string.h>

#if defined(__aarch64__)
#include <arm_neon.h>
INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
INLINE floats fma_vector_f32(floats a, floats b, floats c) {
  return (floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
INLINE doubles fma_vector_f64(doubles a, doubles b, doubles c) {
  return (doubles)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
INLINE float fma_f32(float a, float b, float c) { return a * b + c; }
INLINE double fma_f64(double a, double b, double c) { return a * b + c; }
INLINE floats fma_vector_f32(floats a, floats b, floats c) { return a * b + c; }
INLINE doubles fma_vector_f64(doubles a, doubles b, doubles c) { return a * b + c; }
#endif

/* The number of `a` where the mask is set, else `b`. */
INLINE ints pick_f32(ints mask, floats a, ints b) { return ((ints)a & mask) | (b & ~mask); }
INLINE longs pick_f64(longs mask, doubles a, longs b) { return ((longs)a & mask) | (b & ~mask); }
/* Set where the element is NaN. */
INLINE ints is_nan_f32(floats a) {
  const floats same = a;
  return a != same;
}
INLINE longs is_nan_f64(doubles a) {
  const doubles same = a;
  return a != same;
}
/* Of equal numbers, which may be zeros of either sign, the bits of both: a maximum is -0 if both are, a minimum if one
 * is. */
INLINE floats max_f32(floats a, floats b) {
  return (floats)pick_f32((a > b) | is_nan_f32(a), a, (ints)b & ((ints)a | ~(a == b)));
}
INLINE floats min_f32(floats a, floats b) {
  return (floats)pick_f32((a < b) | is_nan_f32(a), a, (ints)b | ((ints)a & (a == b)));
}
INLINE doubles max_f64(doubles a, doubles b) {
  return (doubles)pick_f64((a > b) | is_nan_f64(a), a, (longs)b & ((longs)a | ~(a == b)));
}
INLINE doubles min_f64(doubles a, doubles b) {
  return (doubles)pick_f64((a < b) | is_nan_f64(a), a, (longs)b | ((longs)a & (a == b)));
}

PICK_BY_MASK(s8)
PICK_BY_MASK(u8)
PICK_BY_MASK(s16)
PICK_BY_MASK(u16)
PICK_BY_MASK(s32)
PICK_BY_MASK(u32)
PICK_BY_MASK(s64)
PICK_BY_MASK(u64)
INLINE floats greater_f32(floats a, floats b) { return (floats)pick_f32(a > b, a, (ints)b); }
INLINE floats less_f32(floats a, floats b) { return (floats)pick_f32(a < b, a, (ints)b); }
INLINE doubles greater_f64(doubles a, doubles b) { return (doubles)pick_f64(a > b, a, (longs)b); }
INLINE doubles less_f64(doubles a, doubles b) { return (doubles)pick_f64(a < b, a, (longs)b); }
INLINE floats once(floats x) { return x; }
INLINE bool any_set(vector_u16 x) {
  const longs any = (longs)x;
  return (any[0] | any[1]) != 0;
}
INLINE bool any_nan_f32(floats a, floats b) {
  const longs any = (longs)(is_nan_f32(a) | is_nan_f32(b));
  return (any[0] | any[1]) != 0;
}
INLINE bool any_nan_f64(doubles a, doubles b) {
  const longs any = is_nan_f64(a) | is_nan_f64(b);
  return (any[0] | any[1]) != 0;
}

INLINE void stream(void *to, floats x) { memcpy(to, &x, sizeof x); }
INLINE void stream_end(void) {}
INLINE floats in_register(floats x) { return x; }

INLINE ints load_some(const void *p, int64_t n) {
  ints x = {0};
  for (int64_t i = 0; i < n && i < FLOATS; i++) memcpy((char *)&x + 4 * i, (const char *)p + 4 * i, 4);
  return x;
}
INLINE ints gather_some(const void *p, int64_t stride, int64_t n) {
  ints x = {0};
  for (int64_t i = 0; i < n && i < FLOATS; i++) memcpy((char *)&x + 4 * i, (const char *)p + 4 * i * stride, 4);
  return x;
}
INLINE void store_some(void *p, ints x, int64_t n) {
  for (int64_t i = 0; i < n && i < FLOATS; i++) memcpy((char *)p + 4 * i, (const char *)&x + 4 * i, 4);
}

#include "kernel/conv/window_body.h"
