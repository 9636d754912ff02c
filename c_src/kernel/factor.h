/* QR factors, eigenvalues and singular values of one matrix in f32 or f64. The loops are those of
 * kernel/linalg_vector.h without fused multiply-adds and with sums in a fixed order, so that the bits are the same on
 * every machine; numbers that are not elements of matrices are f64. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_FACTOR_H
#define TS_KERNEL_FACTOR_H

#include "base/status.h"
#include "ir/graph.h"
#include "tensor/dtype.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ts_factor_spec {
  ts_opcode op;  /* TS_OP_QR, TS_OP_EIGH or TS_OP_SVD */
  ts_dtype type; /* f32 or f64 */
  int64_t rows, cols;
  bool full; /* all columns of Q, U and V, not only as many as the lesser of rows and cols */
} ts_factor_spec;

/* Of an op of these with such an operand; half types are computed in f32. */
ts_factor_spec ts_factor_spec_of(const ts_op *op, ts_dtype type, const ts_shape *shape);
/* Elements of a result. */
int64_t ts_factor_elements(const ts_factor_spec *spec, int result);
/* Bytes of workspace, a multiple of 64. TS_RESOURCE_EXHAUSTED past 64 bits. */
ts_status ts_factor_workspace(const ts_factor_spec *spec, int64_t *out);
/* `matrix` and the results are dense. All results are NaN where an element of the matrix is NaN or infinite, and where
 * an iteration does not converge. TS_CANCELLED when `cancel`, which may be NULL, becomes true. The workspace is aligned
 * to 8 bytes. */
ts_status ts_factor_run(const ts_factor_spec *spec, const void *matrix, void *const *results, char *workspace,
                        const _Atomic bool *cancel);
/* Estimated time on one thread, in nanoseconds. */
double ts_factor_cost(const ts_factor_spec *spec);

#endif
