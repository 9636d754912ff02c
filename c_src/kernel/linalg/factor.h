/* Linear algebra of one matrix in f32, f64 or c128, or of several small real ones. Sums of qr, eigh and svd have a
 * fixed order. Small matrices have no fused multiply-adds, so their bits are the same on every machine. Larger ones
 * have the same bits on every machine with fused multiply-adds. Numbers that are no elements of matrices are f64,
 * except in small matrices. Sums of the other ops are chains of multiply-adds, as kernel/gemm/gemm.h
 * says. Pure functions of their arguments; thread-safe. */
#ifndef TS_KERNEL_FACTOR_H
#define TS_KERNEL_FACTOR_H

#include "base/parallel.h"
#include "base/status.h"
#include "ir/graph.h"
#include "kernel/gemm/gemm.h"
#include "kernel/linalg/linalg_vector.h"
#include "tensor/dtype.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TS_FACTOR_RESULTS 3 /* at most */

typedef struct ts_factor_spec {
  ts_opcode op;
  ts_dtype type; /* f32, f64 or c128 */
  int64_t rows, cols;
  int64_t right; /* of a system with a matrix of n rows: the right side has right * n elements; else 0 */
  bool unread[TS_FACTOR_RESULTS]; /* results of qr, eigh and svd that nothing reads: they may be left undefined */
  bool full;                      /* all columns of Q, U and V, not only as many as the lesser of rows and cols */
  struct {
    bool left, lower, transpose, unit;
  } triangular;
} ts_factor_spec;

/* The spec of an op whose first operand has this type and shape, and whose last operand has the shape `last`. Half
 * types are computed in f32, c64 in c128. */
ts_factor_spec ts_factor_spec_of(const ts_op *op, ts_dtype type, const ts_shape *first, const ts_shape *last);
/* Elements of an operand or a result, and the type that a result is computed in: singular values are real. */
int64_t ts_factor_operand_elements(const ts_factor_spec *spec, int operand);
int64_t ts_factor_elements(const ts_factor_spec *spec, int result);
ts_dtype ts_factor_result_type(const ts_factor_spec *spec, int result);
/* The products of blocks that a matrix is computed by; NULL where it is by none. Owned by the caller. */
ts_status ts_factor_products(const ts_factor_spec *spec, ts_gemm **out);
/* Bytes of workspace, a multiple of 64; of triangular_solve for each worker of `parallel`. TS_RESOURCE_EXHAUSTED past
 * 64 bits. */
ts_status ts_factor_workspace(const ts_factor_spec *spec, const ts_gemm *products, int64_t *out);
/* The context of a factorization, besides its workspace. */
typedef struct ts_factor_context {
  const ts_gemm *products; /* of ts_factor_products */
  ts_pool *pool;
  const ts_parallel *parallel;
  const _Atomic bool *cancel; /* may be NULL */
} ts_factor_context;

/* The operands (one or two) and the results are dense. cholesky's matrix, and triangular_solve's right side, may be the
 * result. Results of qr, eigh and svd are NaN where an element of the matrix is NaN or infinite, and where an iteration
 * does not converge. Their bits are the same by any number of threads of `parallel`. TS_CANCELLED when `cancel` becomes
 * true. The workspace is aligned to 64 bytes. */
ts_status ts_factor_run(const ts_factor_spec *spec, const void *const *operands, void *const *results, char *workspace,
                        const ts_factor_context *context);
/* Lanes for a batch of `count` matrices: real matrices that are so small that several of them, one in each lane, are
 * computed at once, even one of qr, eigh and svd. NULL for others. */
const ts_linalg_vector *ts_factor_lanes(const ts_factor_spec *spec, int64_t count);
/* Bytes of workspace, a multiple of 64. */
int64_t ts_factor_group_workspace(const ts_factor_spec *spec, const ts_linalg_vector *vector);
/* The results of at most as many matrices as the vectors have lanes. The workspace is aligned to 64 bytes. */
void ts_factor_run_group(const ts_factor_spec *spec, const ts_linalg_vector *vector, int64_t count,
                         const void *const *operands, void *const *results, char *workspace);
/* Estimated time on one thread, in nanoseconds: of a matrix, and of a group. */
double ts_factor_cost(const ts_factor_spec *spec);
double ts_factor_group_cost(const ts_factor_spec *spec, const ts_linalg_vector *vector);
/* True where all threads compute one matrix faster than one thread. */
bool ts_factor_is_shared(const ts_factor_spec *spec);

#endif
