/* Loops over the points of a row by whole vectors, then the tail. Compile time is proportional to the length of the
 * body. So a long body is emitted once: under a mask that the tail narrows (AVX-512), or with a branch around its loads
 * and stores. */
#include "jit/emit/emit_cell.h"
#include "jit/loop/loop_body.h"

/* Heavier bodies than this are emitted once: without masks, and with them. Either way, loads and stores of whole
 * vectors have no mask: loads under masks that miss the caches have half of the bandwidth of others on AMD's CPUs (Zen
 * 4 and 5), whose prefetchers do not follow them. */
#define EMIT_ONCE_FROM 60
#define MASK_FROM 30

static ts_v lanes_of(ts_loop *loop) { return ts_loop_number(loop, loop->e->lanes); }

/* All `lanes`, or the `rest` of the span. A mask is selected as an integer: selecting a vector of i1 makes LLVM emit a
 * branch. */
static ts_v first_part(ts_loop *loop, ts_v some_whole, ts_v rest) {
  LLVMBuilderRef b = loop->e->b;
  if (!loop->masks) return LLVMBuildSelect(b, some_whole, lanes_of(loop), rest, "first");
  LLVMTypeRef type = LLVMIntTypeInContext(loop->e->context, (unsigned)loop->e->lanes);
  ts_v bits = LLVMBuildBitCast(b, rest, type, "");
  bits = LLVMBuildSelect(b, some_whole, LLVMConstAllOnes(type), bits, "");
  return LLVMBuildBitCast(b, bits, LLVMTypeOf(rest), "first");
}

ts_span ts_loop_span(ts_loop *loop, ts_v from, ts_v to) {
  LLVMBuilderRef b = loop->e->b;
  ts_v length = LLVMIsNull(from) ? to : LLVMBuildSub(b, to, from, "length");
  ts_v rest = LLVMBuildAnd(b, length, ts_loop_number(loop, loop->e->lanes - 1), "rest");
  ts_span span = {.from = from, .to = to, .last = LLVMBuildSub(b, to, lanes_of(loop), "last")};
  span.middle = LLVMBuildSub(b, to, rest, "middle");
  span.some_whole = LLVMBuildICmp(b, LLVMIntSGE, length, lanes_of(loop), "");
  span.rest = loop->masks ? ts_emit_lane_mask(loop->e, rest) : rest;
  span.first = first_part(loop, span.some_whole, span.rest);
  return span;
}

/* ---- carried values ---- */

ts_v ts_loop_either(ts_loop *loop, ts_v a, LLVMBasicBlockRef from_a, ts_v b, LLVMBasicBlockRef from_b) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(a), "");
  LLVMAddIncoming(phi, &a, &from_a, 1);
  LLVMAddIncoming(phi, &b, &from_b, 1);
  return phi;
}

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

/* The body of a loop, and its loop variables. */
typedef struct loop_body {
  ts_v *carried;
  int count;
  ts_point_fn fn;
  void *context;
} loop_body;

/* A loop over whole vectors, `turns` of them at once. */
static ts_status vectors(ts_loop *loop, ts_v from, ts_v to, int turns, const loop_body *body) {
  LLVMBuilderRef b = loop->e->b;
  ts_v phis[TS_LOOP_MAX_CARRIED] = {0}, after[TS_LOOP_MAX_CARRIED] = {0}, inside[TS_LOOP_MAX_CARRIED];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter counter = ts_loop_count(loop, from, to, ts_loop_number(loop, (int64_t)turns * loop->e->lanes));
  add_phis(loop, phis, body->carried, body->count, before);
  copy_values(inside, phis, body->count);
  for (int i = 0; i < turns; i++) {
    ts_v index = ts_loop_add(loop, counter.index, ts_loop_number(loop, (int64_t)i * loop->e->lanes));
    TS_TRY(body->fn(body->context, loop, &(ts_point){.index = index}, inside));
  }
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  add_phis(loop, phis, inside, body->count, here);
  ts_loop_count_end(loop, &counter);
  add_phis(loop, after, body->carried, body->count, before);
  add_phis(loop, after, inside, body->count, here);
  copy_values(body->carried, after, body->count);
  return TS_SUCCESS;
}

/* Emits the body twice: for whole vectors and for the tail. */
static ts_status emit_twice(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn,
                            void *context) {
  LLVMBuilderRef b = loop->e->b;
  TS_TRY(vectors(loop, span->from, span->middle, 1, &(loop_body){carried, count, fn, context}));
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

/* A phi that is `first` until the tail begins. */
static ts_v begin_with(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

static void go_on_with(ts_v phi, ts_v next, LLVMBasicBlockRef from) {
  if (phi) LLVMAddIncoming(phi, &next, &from, 1);
}

/* Emits the body once, in a loop with two back edges: one for the next whole vector, and one for the tail. The loop is
 * always entered: without points, the part is empty. */
static ts_status emit_once(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn,
                           void *context) {
  LLVMBuilderRef b = loop->e->b;
  ts_v phis[TS_LOOP_MAX_CARRIED] = {0};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = ts_loop_block(loop, "points");
  LLVMBasicBlockRef whole_done = ts_loop_block(loop, "whole_done"), done = ts_loop_block(loop, "done");
  LLVMBuildBr(b, body);
  LLVMPositionBuilderAtEnd(b, body);
  ts_point at = {.index = begin_with(loop, span->from, before), .part = begin_with(loop, span->first, before)};
  at.whole = begin_with(loop, span->some_whole, before);
  add_phis(loop, phis, carried, count, before);
  copy_values(carried, phis, count);
  TS_TRY(fn(context, loop, &at, carried));

  LLVMBasicBlockRef here = LLVMGetInsertBlock(b), from[] = {here, whole_done};
  ts_v next = LLVMBuildAdd(b, at.index, lanes_of(loop), "");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLE, next, span->last, ""), body, whole_done);
  LLVMPositionBuilderAtEnd(b, whole_done);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, span->to, ""), body, done);
  for (int i = 0; i < 2; i++) {
    go_on_with(at.index, next, from[i]);
    go_on_with(at.part, i == 0 ? at.part : span->rest, from[i]);
    go_on_with(at.whole, i == 0 ? at.whole : LLVMConstInt(LLVMInt1TypeInContext(loop->e->context), 0, 0), from[i]);
    add_phis(loop, phis, carried, count, from[i]);
  }
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

/* ---- a number of points that is known ---- */

/* Unlike in a loop, every vector of so much code is emitted. */
#define UNROLL_WEIGHT 48
#define UNROLL_VECTORS 4

static ts_status known_vectors(ts_loop *loop, const ts_span *span, const loop_body *body) {
  LLVMBuilderRef b = loop->e->b;
  ts_v phis[TS_LOOP_MAX_CARRIED] = {0};
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
  ts_counter counter = ts_loop_count_some(loop, span->from, span->middle, lanes_of(loop));
  add_phis(loop, phis, body->carried, body->count, before);
  copy_values(body->carried, phis, body->count);
  TS_TRY(body->fn(body->context, loop, &(ts_point){.index = counter.index}, body->carried));
  add_phis(loop, phis, body->carried, body->count, LLVMGetInsertBlock(b));
  ts_loop_count_end(loop, &counter);
  return TS_SUCCESS;
}

static int64_t known(ts_v number) { return LLVMConstIntGetSExtValue(number); }

static ts_status emit_known(ts_loop *loop, const ts_span *span, int32_t weight, const loop_body *body) {
  int64_t from = known(span->from), middle = known(span->middle), vectors = (middle - from) / loop->e->lanes;
  if (vectors > UNROLL_VECTORS || vectors * weight > UNROLL_WEIGHT) {
    TS_TRY(vectors == 1 ? TS_SUCCESS : known_vectors(loop, span, body));
    if (vectors > 1) from = middle;
  }
  for (; from < middle; from += loop->e->lanes)
    TS_TRY(body->fn(body->context, loop, &(ts_point){.index = ts_loop_number(loop, from)}, body->carried));
  if (middle == known(span->to)) return TS_SUCCESS;
  return body->fn(body->context, loop, &(ts_point){.index = span->middle, .part = span->rest}, body->carried);
}

static int32_t wanted_weight(const ts_loop *loop) {
  int32_t weight = 0;
  for (int32_t id = 0; id < loop->d->node_count; id++) {
    if (loop->wanted[id] && loop->plan.level[id] == TS_LEVEL_POINT) weight += loop->plan.weight[id];
  }
  return weight;
}

/* Longer code for several vectors would take longer to compile than it saves. */
#define TURNS_WEIGHT 12

/* As many whole vectors as the span wants to be taken at once; the span is the rest then. */
static ts_status in_turns(ts_loop *loop, ts_span *span, const loop_body *body) {
  LLVMBuilderRef b = loop->e->b;
  ts_v whole = LLVMBuildSub(b, span->middle, span->from, "");
  whole = LLVMBuildAnd(b, whole, ts_loop_number(loop, -(int64_t)span->turns * loop->e->lanes), "");
  ts_v from = span->from;
  span->from = ts_loop_add(loop, from, whole);
  return vectors(loop, from, span->from, span->turns, body);
}

ts_status ts_loop_points(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn, void *context) {
  const int32_t weight = wanted_weight(loop);
  if (loop->e->site && LLVMIsAConstantInt(span->from) && LLVMIsAConstantInt(span->to))
    return emit_known(loop, span, weight, &(loop_body){carried, count, fn, context});
  const bool once = weight > (loop->masks ? MASK_FROM : EMIT_ONCE_FROM);
  ts_span rest = *span;
  ts_emit_cells_enter(loop->e, 1);
  ts_status status = TS_SUCCESS;
  if (span->turns > 1 && !loop->e->site && weight <= TURNS_WEIGHT)
    status = in_turns(loop, &rest, &(loop_body){carried, count, fn, context});
  if (!status) status = (once ? emit_once : emit_twice)(loop, &rest, carried, count, fn, context);
  ts_emit_cells_enter(loop->e, -1);
  return status;
}
