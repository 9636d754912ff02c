/* Loops over the points of a row by whole vectors, and the rest of less than a
 * vector. What a body costs to compile goes by its length, so it is emitted once
 * where that costs nothing at run time: under a mask that the rest narrows
 * (AVX-512), or with a branch around its loads and stores when it is long. */
#include "jit/loop_body.h"

/* Without masks, bodies heavier than this are emitted once. */
#define EMIT_ONCE_FROM 60

static ts_v lanes_of(ts_loop *loop) { return ts_loop_number(loop, loop->e->lanes); }

ts_span ts_loop_span(ts_loop *loop, ts_v from, ts_v to) {
  LLVMBuilderRef b = loop->e->b;
  ts_v length = LLVMIsNull(from) ? to : LLVMBuildSub(b, to, from, "length");
  ts_v whole = LLVMBuildAnd(b, length, ts_loop_number(loop, -(int64_t)loop->e->lanes), "");
  ts_span span = {.from = from, .middle = ts_loop_add(loop, from, whole), .to = to};
  span.rest = LLVMBuildSub(b, to, span.middle, "rest");
  if (loop->masks) span.rest = ts_emit_lane_mask(loop->e, span.rest);
  return span;
}

/* ---- carried values ---- */

static void add_phis(ts_loop *loop, ts_v *phis, const ts_v *values, int count, LLVMBasicBlockRef from) {
  for (int i = 0; i < count; i++) {
    ts_v value = values[i];
    if (!phis[i]) phis[i] = LLVMBuildPhi(loop->e->b, LLVMTypeOf(value), "");
    LLVMAddIncoming(phis[i], &value, &from, 1);
  }
}

static void copy_values(ts_v *to, const ts_v *from, int count) {
  for (int i = 0; i < count; i++) to[i] = from[i];
}

/* ---- vectors ---- */

/* Vectors from `from` on while they start before `stop`. */
static ts_status vectors(ts_loop *loop, ts_v from, ts_v stop, ts_point at, ts_v *carried, int count, ts_point_fn fn,
                         void *context) {
  LLVMBuilderRef b = loop->e->b;
  ts_v phis[TS_LOOP_MAX_CARRIED] = {0}, after[TS_LOOP_MAX_CARRIED] = {0}, inside[TS_LOOP_MAX_CARRIED];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter counter = ts_loop_count(loop, from, stop, lanes_of(loop));
  add_phis(loop, phis, carried, count, before);
  copy_values(inside, phis, count);
  at.index = counter.index;
  TS_TRY(fn(context, loop, &at, inside));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  add_phis(loop, phis, inside, count, here);
  ts_loop_count_end(loop, &counter);
  add_phis(loop, after, carried, count, before);
  add_phis(loop, after, inside, count, here);
  copy_values(carried, after, count);
  return TS_SUCCESS;
}

/* The body twice: for whole vectors and for the rest. */
static ts_status emit_twice(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn,
                            void *context) {
  LLVMBuilderRef b = loop->e->b;
  TS_TRY(vectors(loop, span->from, span->middle, (ts_point){0}, carried, count, fn, context));
  ts_v after[TS_LOOP_MAX_CARRIED] = {0}, inside[TS_LOOP_MAX_CARRIED];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), rest = ts_loop_block(loop, "rest");
  LLVMBasicBlockRef done = ts_loop_block(loop, "rest_done");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, span->middle, span->to, ""), rest, done);
  LLVMPositionBuilderAtEnd(b, rest);
  copy_values(inside, carried, count);
  TS_TRY(fn(context, loop, &(ts_point){.index = span->middle, .part = span->rest}, inside));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  add_phis(loop, after, carried, count, before);
  add_phis(loop, after, inside, count, here);
  copy_values(carried, after, count);
  return TS_SUCCESS;
}

static ts_v choose(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

/* The body once, in a loop that is entered again for the rest. Nothing of what differs changes within it. */
static ts_status emit_once(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn,
                           void *context) {
  LLVMBuilderRef b = loop->e->b;
  LLVMTypeRef i1 = LLVMInt1TypeInContext(loop->e->context);
  ts_v all = loop->masks ? LLVMConstAllOnes(LLVMTypeOf(span->rest)) : lanes_of(loop), no = LLVMConstInt(i1, 0, 0);
  ts_v phis[TS_LOOP_MAX_CARRIED] = {0}, inside[TS_LOOP_MAX_CARRIED];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ts_loop_block(loop, "head");
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  ts_v from = choose(loop, span->from, before), stop = choose(loop, span->middle, before);
  ts_point at = {.part = choose(loop, all, before)};
  if (!loop->masks || loop->streams) at.whole = choose(loop, LLVMConstInt(i1, 1, 0), before);
  add_phis(loop, phis, carried, count, before);
  copy_values(inside, phis, count);
  TS_TRY(vectors(loop, from, stop, at, inside, count, fn, context));

  LLVMBasicBlockRef here = LLVMGetInsertBlock(b), done = ts_loop_block(loop, "done");
  ts_v again[] = {span->middle, span->to, span->rest, no}, first[] = {from, stop, at.part, at.whole};
  for (int i = 0; i < 4 && first[i]; i++) LLVMAddIncoming(first[i], &again[i], &here, 1);
  add_phis(loop, phis, inside, count, here);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, stop, span->to, ""), head, done);
  LLVMPositionBuilderAtEnd(b, done);
  copy_values(carried, inside, count);
  return TS_SUCCESS;
}

static int32_t wanted_weight(const ts_loop *loop) {
  int32_t weight = 0;
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (loop->wanted[id] && loop->plan.level[id] == TS_LEVEL_POINT) weight += loop->plan.weight[id];
  }
  return weight;
}

ts_status ts_loop_points(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn, void *context) {
  bool once = loop->masks || wanted_weight(loop) > EMIT_ONCE_FROM;
  return (once ? emit_once : emit_twice)(loop, span, carried, count, fn, context);
}
