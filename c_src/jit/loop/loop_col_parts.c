/* What both ways to emit a COL use. */
#include "jit/loop/loop_col.h"

ts_v ts_loop_col_number(ts_loop *loop, ts_v row) {
  ts_v narrow = LLVMBuildTrunc(loop->e->b, row, LLVMInt32TypeInContext(loop->e->context), "");
  return ts_emit_splat(loop->e, narrow);
}

ts_v ts_loop_col_smaller(ts_loop *loop, ts_v a, ts_v b) {
  if (LLVMIsAConstantInt(a) && LLVMIsAConstantInt(b))
    return LLVMConstIntGetSExtValue(a) < LLVMConstIntGetSExtValue(b) ? a : b;
  return ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){a, b}, 2);
}

/* Marks the operands of the reductions as wanted, up to other reductions. */
void ts_loop_col_want_operands(ts_loop *loop) {
  for (int32_t id = loop->d->node_count - 1; id >= 0; id--) {
    const ts_kernel_node *n = &loop->d->nodes[id];
    int32_t operands[3];
    int count = loop->wanted[id] && !ts_kernel_node_reduces(n) ? ts_kernel_node_operands(n, operands) : 0;
    for (int i = 0; i < count; i++) loop->wanted[operands[i]] = true;
  }
}

void ts_loop_col_want_nothing(ts_loop *loop) {
  for (int32_t id = 0; id < loop->d->node_count; id++) loop->wanted[id] = false;
}

void ts_loop_col_ask_ahead(ts_loop *loop, int32_t input, ts_v index, int64_t rows) {
  const ts_kernel_operand *o = &loop->d->inputs[input];
  int32_t rank = loop->d->rank;
  if (o->stride[rank - 1] != TS_STRIDE_UNIT || o->stride[rank - 2] == TS_STRIDE_ZERO) return;
  ts_v by = ts_loop_mul(loop, loop->stride[input * rank + rank - 2], ts_loop_number(loop, rows));
  ts_v row = ts_loop_offset(loop, loop->base[input], by);
  ts_emit_prefetch(loop->e, ts_loop_element(loop, o->dtype, row, index), false);
}
