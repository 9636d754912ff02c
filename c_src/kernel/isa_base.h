/* For every machine, beside kernel/isa_avx2.h and kernel/isa_avx512.h: vectors of 16 bytes by the compiler's own means.
 * Where it has no fused multiply-add, products are rounded by themselves, as in kernel/gemm/gemm.h. Defines ISA and
 * VECTOR_BYTES as well; one file includes it once. */
#define VECTOR_BYTES 16
#define ISA(name) name##_base

typedef float base_f32 __attribute__((vector_size(16)));
typedef double base_f64 __attribute__((vector_size(16)));

#if defined(__FP_FAST_FMAF) && defined(__FP_FAST_FMA)
#define MADD32(a, b, c) __builtin_fmaf(a, b, c)
#define MADD64(a, b, c) __builtin_fma(a, b, c)
static inline base_f32 fma_f32(base_f32 a, base_f32 b, base_f32 c) {
  for (int i = 0; i < 4; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
static inline base_f64 fma_f64(base_f64 a, base_f64 b, base_f64 c) {
  for (int i = 0; i < 2; i++) c[i] = __builtin_fma(a[i], b[i], c[i]);
  return c;
}
#else
#define MADD32(a, b, c) ((a) * (b) + (c))
#define MADD64(a, b, c) ((a) * (b) + (c))
static inline base_f32 fma_f32(base_f32 a, base_f32 b, base_f32 c) { return a * b + c; }
static inline base_f64 fma_f64(base_f64 a, base_f64 b, base_f64 c) { return a * b + c; }
#endif
#define FMA32(a, b, c) fma_f32(a, b, c)
#define FMA64(a, b, c) fma_f64(a, b, c)
