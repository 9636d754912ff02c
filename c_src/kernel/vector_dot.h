/* The inner loop of contractions without free dims: one block of tensor/dot_order.h. The code is the same for every
 * instruction set (vector_dot_body.h), compiled once for each. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_VECTOR_DOT_H
#define TS_KERNEL_VECTOR_DOT_H

#include <stdint.h>

/* The sum of n products, at most a block. */
typedef struct ts_vector_dot_code {
  float (*f32)(const float *x, const float *y, int64_t n);
  double (*f64)(const double *x, const double *y, int64_t n);
} ts_vector_dot_code;

extern const ts_vector_dot_code ts_vector_dot_base;
#if defined(__x86_64__)
extern const ts_vector_dot_code ts_vector_dot_avx2, ts_vector_dot_avx512;
#endif

#endif
