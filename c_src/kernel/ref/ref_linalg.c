/* Linear algebra: the meaning of each op on one matrix after the other, which are the last two dims. These are the
 * algorithms of textbooks (Golub and Van Loan, "Matrix Computations", 4th edition) without blocks, lanes or threads. */
#include "kernel/ref/ref_linalg.h"

#include "base/alloc.h"
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

static int64_t batch_of(const ts_shape *shape) {
  int64_t batch = 1;
  for (int32_t d = 0; d < shape->rank - 2; d++) batch *= shape->dims[d];
  return batch;
}

ts_status ts_ref_each_matrix(const ts_ref_call *call, const ts_ref_method *methods, int64_t numbers, size_t size) {
  void *room;
  while (methods->run && methods->op != call->op->code) methods++;
  if (!methods->run) return ts_ref_unknown(call);
  TS_TRY(ts_alloc_array((size_t)numbers + 1, size, &room));
  for (int64_t i = 0; i < batch_of(&call->operands[0]->shape) && !ts_cancelled(call->cancel); i++)
    methods->run(call, i, room);
  ts_free(room);
  return TS_SUCCESS;
}

ts_status ts_ref_linalg(const ts_ref_call *call) { return function_of(call->op->code)(call); }
