/* Linear algebra: the meaning of each op on one matrix after the other. A matrix is the last two dims. These are the
 * algorithms of textbooks (Golub and Van Loan, "Matrix Computations", 4th edition) without blocks, lanes or threads. */
#include "kernel/ref/ref_linalg.h"

#include "kernel/ref/ref.h"

typedef ts_status (*linalg_fn)(const ts_ref_call *call);

static linalg_fn function_of(ts_opcode code) {
  switch ((ts_ops_LINALG)code) {
  case TS_OP_CHOLESKY:
  case TS_OP_TRIANGULAR_SOLVE:
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return ts_ref_systems;
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: return ts_ref_factors;
  }
  return ts_ref_unknown;
}

bool ts_ref_defines_bits(ts_opcode code, ts_dtype type) {
  if (ts_op_get_class(code) != TS_CLASS_LINALG) return true;
  return function_of(code) == ts_ref_systems && !ts_dtype_is_complex(type);
}

ts_status ts_ref_linalg(const ts_ref_call *call) { return function_of(call->op->code)(call); }
