/* The product that an op is, for those that compute it in another way than its routine. */
#ifndef TS_KERNEL_GEMM_OP_H
#define TS_KERNEL_GEMM_OP_H

#include "ir/graph.h"
#include "kernel/gemm/gemm.h"

/* A product for each index of outer batch dims; strides in elements. Nearly always one. */
typedef struct ts_gemm_outer {
  int64_t count, lhs, rhs, out;
} ts_gemm_outer;

/* False for other ops than products of real numbers, which are neither scaled nor of two vectors, and for operands that
 * are no batch of strided matrices. */
bool ts_gemm_describe(const ts_graph *graph, const ts_op *op, ts_gemm_types *out_types, ts_gemm_shape *out_shape,
                      ts_gemm_outer *out_outer);

#endif
