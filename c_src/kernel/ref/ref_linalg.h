/* The common parts of the interpreter's files of linear algebra; internal to them. This code judges the routines of
 * kernel/linalg, so it may not include any of their headers. */
#ifndef TS_KERNEL_REF_LINALG_H
#define TS_KERNEL_REF_LINALG_H

#include "kernel/ref/ref_internal.h"

/* Rows and columns of the matrices of an operand. */
static inline int64_t ref_rows(const ts_buffer *buffer) { return buffer->shape.dims[buffer->shape.rank - 2]; }
static inline int64_t ref_cols(const ts_buffer *buffer) { return buffer->shape.dims[buffer->shape.rank - 1]; }

/* ref_linalg_systems.c: cholesky, triangular_solve, solve, determinant, lu. */
ts_status ts_ref_systems(const ts_ref_call *call);
/* ref_linalg_factors.c: qr, eigh, svd. */
ts_status ts_ref_factors(const ts_ref_call *call);

/* Computes matrix `which` of the batch. `room` has space for as many numbers as ts_ref_each_matrix was told. */
typedef void (*ts_ref_matrix_fn)(const ts_ref_call *call, int64_t which, void *room);
typedef struct ts_ref_method {
  ts_opcode op;
  ts_ref_matrix_fn run; /* NULL in the last one */
} ts_ref_method;
/* One matrix of the batch after the other, by the method of the op. `size` is the size of a number. */
ts_status ts_ref_each_matrix(const ts_ref_call *call, const ts_ref_method *methods, int64_t numbers, size_t size);

#endif
