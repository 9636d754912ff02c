/* The inner loop of contractions without free dims: one block of tensor/dot_order.h. The code is the same for every
 * instruction set (vector_dot_body.h), compiled once for each. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_VECTOR_DOT_H
#define TS_KERNEL_VECTOR_DOT_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* The types of contractions that kernel/vector_dot.c computes. */
static inline bool ts_vector_dot_has_type(ts_dtype type) {
  return type == TS_F32 || type == TS_F64 || type == TS_F16 || type == TS_BF16;
}

/* Elements at equal distances, in elements. */
typedef struct ts_vector_dot_line {
  const void *at;
  int64_t step;
} ts_vector_dot_line;

/* The sum of n products, at most a block. Of f16 and bf16 it is not rounded. */
typedef struct ts_vector_dot_code {
  float (*f32)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t n);
  double (*f64)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t n);
  float (*f16)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t n);
  float (*bf16)(ts_vector_dot_line x, ts_vector_dot_line y, int64_t n);
} ts_vector_dot_code;

extern const ts_vector_dot_code ts_vector_dot_base;
#if defined(__x86_64__)
extern const ts_vector_dot_code ts_vector_dot_avx2, ts_vector_dot_avx512;
#endif

#endif
