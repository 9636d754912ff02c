/* The code of vector_dot.h for one instruction set, which defines
 *   VECTOR_BYTES   of a vector: 16, 32 or 64
 *   FMA32 FMA64    a * b + c of vectors
 *   FROM_F16(bits) a vector of f32 of as many f16; FROM_F16 may be missing: they are converted one by one
 *   ISA(name)      the name of something of this instruction set */
#include "kernel/every_second.h"
#include "kernel/vector_dot.h"
#include "tensor/dot_order.h"

#include <string.h>

typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES)));
typedef double vector_f64 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t bits32 __attribute__((vector_size(VECTOR_BYTES)));

#define VECTORS (TS_DOT_LANE_BYTES / VECTOR_BYTES)
/* Unrolls, so that arrays indexed by a vector's number stay in registers. */
#define EACH_VECTOR(v, count) _Pragma("GCC unroll 16") for (int v = 0; v < (count); v++)

INLINE void load_f32(const float *x, vector_f32 *out) {
  memcpy(&out[0], x, sizeof *out);
  memcpy(&out[1], x + VECTOR_BYTES / 4, sizeof *out);
}

INLINE void load_f64(const double *x, vector_f64 *out) {
  memcpy(&out[0], x, sizeof *out);
  memcpy(&out[1], x + VECTOR_BYTES / 8, sizeof *out);
}

/* The even elements, then the odd ones. */
INLINE void load_bf16(const uint16_t *x, vector_f32 *out) {
  bits32 pairs;
  memcpy(&pairs, x, sizeof pairs);
  out[0] = (vector_f32)(pairs << 16);
  out[1] = (vector_f32)(pairs & 0xFFFF0000);
}

INLINE void load_f16(const uint16_t *x, vector_f32 *out) {
#ifdef FROM_F16
  out[0] = FROM_F16(x);
  out[1] = FROM_F16(x + VECTOR_BYTES / 4);
#else
  for (int i = 0; i < VECTOR_BYTES / 2; i++) out[i / (VECTOR_BYTES / 4)][i % (VECTOR_BYTES / 4)] = ts_f16_to_f32(x[i]);
#endif
}

INLINE void in_order_f32(vector_f32 *sums) { (void)sums; }
INLINE void in_order_f64(vector_f64 *sums) { (void)sums; }
INLINE void in_order_f16(vector_f32 *sums) { (void)sums; }
INLINE void in_order_bf16(vector_f32 *sums) {
  float mixed[VECTOR_BYTES / 2], lanes[VECTOR_BYTES / 2];
  memcpy(mixed, sums, sizeof mixed);
  for (int i = 0; i < VECTOR_BYTES / 2; i++) lanes[i] = mixed[i / 2 + i % 2 * (VECTOR_BYTES / 4)];
  memcpy(sums, lanes, sizeof lanes);
}

#define T float
#define X float
#define FMA FMA32
#define MINUS_ZERO (-0.0f)
#define NAME(name) name##_f32
#include "kernel/vector_dot_type.h"

#define T double
#define X double
#define FMA FMA64
#define MINUS_ZERO (-0.0)
#define NAME(name) name##_f64
#include "kernel/vector_dot_type.h"

#define T float
#define X uint16_t
#define FMA FMA32
#define MINUS_ZERO 0x8000
#define NAME(name) name##_f16
#include "kernel/vector_dot_type.h"

#define T float
#define X uint16_t
#define FMA FMA32
#define MINUS_ZERO 0x8000
#define NAME(name) name##_bf16
#include "kernel/vector_dot_type.h"

const ts_vector_dot_code ISA(ts_vector_dot) = {block_f32, block_f64, block_f16, block_bf16};
