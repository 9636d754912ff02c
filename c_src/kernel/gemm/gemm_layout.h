/* What an op of a contraction says of its product. Internal to the routines of contractions; pure functions. */
#ifndef TS_KERNEL_GEMM_LAYOUT_H
#define TS_KERNEL_GEMM_LAYOUT_H

#include "kernel/gemm/gemm_op.h"

ts_gemm_types ts_gemm_types_of(const ts_graph *g, const ts_op *op);
bool ts_gemm_is_complex(const ts_gemm_types *types);
/* True if a real product has the types. */
bool ts_gemm_multiplies(const ts_op *op, const ts_gemm_types *types);

/* The dims that are neither of the batch nor contracted. */
ts_dims ts_gemm_free_dims(int32_t rank, const ts_dims *batch, const ts_dims *contract);
/* Merges a group of dims into one: its extent and stride; false when the strides do not allow it. */
bool ts_gemm_collapse(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int64_t *extent,
                      int64_t *stride);
/* False when the operands' layout is not a batch of strided matrices, or batches of these. Bit i of `slices`: operand i
 * is a slice that is read where it lies. */
bool ts_gemm_shape_of(const ts_graph *g, const ts_op *op, uint64_t slices, ts_gemm_shape *out, ts_gemm_outer *outer);

#endif
