/* Runs of rows: loops over rows whose counters change at the end of a run only, and whose addresses are added up. */
#include "jit/loop/loop_runs.h"

#include <string.h>

typedef struct runs {
  int32_t outer; /* loops around a run */
  ts_v unit, in_run;
  ts_v counters[TS_KERNEL_MAX_RANK]; /* of the outer loops */
} runs;

static ts_v phi_of(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

/* Makes phis of the counters of unit `begin`. */
static void first_run(ts_loop *loop, runs *r) {
  LLVMBuilderRef b = loop->e->b;
  ts_v first[TS_KERNEL_MAX_RANK], rest = loop->begin;
  for (int32_t i = r->outer; i > 0; i--) {
    first[i] = LLVMBuildURem(b, rest, loop->extent[i], "");
    rest = LLVMBuildUDiv(b, rest, loop->extent[i], "");
  }
  first[0] = rest;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ts_loop_block(loop, "run");
  LLVMBuildBr(b, head); /* begin < end here */
  LLVMPositionBuilderAtEnd(b, head);
  r->unit = phi_of(loop, loop->begin, before);
  r->in_run = phi_of(loop, first[r->outer], before);
  for (int32_t i = 0; i < r->outer; i++) r->counters[i] = phi_of(loop, first[i], before);
}

static void close_phi(ts_loop *loop, ts_v phi, ts_v next) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(loop->e->b);
  LLVMAddIncoming(phi, &next, &here, 1);
}

/* All runs but the first one begin at 0. */
static void next_run(ts_loop *loop, runs *r, LLVMBasicBlockRef head, ts_v count) {
  LLVMBuilderRef b = loop->e->b;
  ts_v zero = ts_loop_number(loop, 0), carry = ts_loop_number(loop, 1);
  LLVMBasicBlockRef done = ts_loop_block(loop, "runs_done");
  for (int32_t i = r->outer - 1; i > 0; i--) {
    ts_v next = ts_loop_add(loop, r->counters[i], carry);
    ts_v wraps = LLVMBuildICmp(b, LLVMIntEQ, next, loop->extent[i], "");
    carry = LLVMBuildZExt(b, wraps, loop->i64, "");
    close_phi(loop, r->counters[i], LLVMBuildSelect(b, wraps, zero, next, ""));
  }
  if (r->outer > 0) close_phi(loop, r->counters[0], ts_loop_add(loop, r->counters[0], carry));
  close_phi(loop, r->in_run, zero);
  ts_v next = ts_loop_add(loop, r->unit, count);
  close_phi(loop, r->unit, next);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, loop->end, ""), head, done);
  LLVMPositionBuilderAtEnd(b, done);
}

void ts_loop_runs(ts_loop *loop, ts_run_fn fn, void *context) {
  LLVMBuilderRef b = loop->e->b;
  const int32_t outer = loop->d->rank - 2;
  runs r = {.outer = outer};
  ts_v counters[TS_KERNEL_MAX_RANK];
  first_run(loop, &r);
  LLVMBasicBlockRef head = LLVMGetInsertBlock(b);
  for (int32_t i = 0; i < outer; i++) counters[i] = r.counters[i];
  counters[outer] = r.in_run;
  ts_loop_set_row(loop, counters, outer + 1);
  ts_v count = LLVMBuildSub(b, loop->end, r.unit, "");
  ts_v left = LLVMBuildSub(b, loop->extent[outer], r.in_run, "");
  if (outer > 0) count = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){count, left}, 2);
  fn(context, loop, count);
  next_run(loop, &r, head, count);
}

void ts_loop_run_rows(ts_loop *loop, ts_v count, ts_run_row_fn fn, void *context) {
  const int32_t operands = loop->d->input_count + loop->d->output_count, rank = loop->d->rank;
  ts_v first[TS_KERNEL_MAX_OPERANDS];
  memcpy(first, loop->base, (size_t)operands * sizeof(*first));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(loop->e->b);
  ts_counter row = ts_loop_count_some(loop, ts_loop_number(loop, 0), count, ts_loop_number(loop, 1));
  for (int32_t i = 0; i < operands; i++)
    if (loop->stride[i * rank + rank - 2]) loop->base[i] = phi_of(loop, first[i], before);
  fn(context, loop);
  for (int32_t i = 0; i < operands; i++) {
    ts_v stride = loop->stride[i * rank + rank - 2];
    if (stride) close_phi(loop, loop->base[i], ts_loop_offset(loop, loop->base[i], stride));
  }
  ts_loop_count_end(loop, &row);
  memcpy(loop->base, first, (size_t)operands * sizeof(*first));
}
