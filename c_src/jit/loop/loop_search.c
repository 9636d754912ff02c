/* The part of a row that has the first of its best elements. Elements are compared without their indices, and a part
 * that has a better one than all before is noted: seldom, after the first few. The caller finds the index there.
 *
 * Numbers are compared by one instruction, which passes over NaN. So floats are added as well: a sum that is NaN had a
 * NaN, or infinities of both signs, and the part is looked at once more. */
#include "jit/loop/loop_search.h"

#define MOST_ACCS 4
/* A part is an eighth of the row, in whole turns, but at most so many bytes and elements. */
#define PART_BYTES 4096
#define PART_POINTS 1024
#define LEAST_PART 128
#define PART_OF_ROW 8
#define TURN 64

typedef struct search {
  ts_reducer by;
  int32_t node; /* the elements */
  int accs;     /* vectors of the best numbers; of floats, as many of sums follow */
  bool adds;
  LLVMBasicBlockRef nan; /* where a NaN ends the search, or NULL */
} search;

static ts_v part_of(ts_loop *loop, const search *s, ts_v length) {
  const int64_t points = PART_BYTES / (int64_t)ts_dtype_size(s->by.type);
  const ts_v least = ts_loop_number(loop, LEAST_PART);
  ts_v most = ts_loop_number(loop, points < PART_POINTS ? points : PART_POINTS);
  ts_v part = LLVMBuildUDiv(loop->e->b, length, ts_loop_number(loop, PART_OF_ROW), "");
  part = LLVMBuildAnd(loop->e->b, part, ts_loop_number(loop, -TURN), "");
  part = ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){part, least}, 2);
  return ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){part, most}, 2);
}

static int count_of(const search *s) { return s->adds ? 2 * s->accs : s->accs; }

static ts_v only_in(ts_loop *loop, const ts_point *at, ts_v now, ts_v before) {
  return at->part ? LLVMBuildSelect(loop->e->b, ts_emit_lane_mask(loop->e, at->part), now, before, "") : now;
}

/* Adds a vector of points to the accumulators of number i. */
static ts_status look_at(ts_loop *loop, const search *s, const ts_point *at, ts_v *accs, int i) {
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_v x = loop->value[s->node];
  accs[i] = only_in(loop, at, ts_reducer_better(loop->e, &s->by, x, accs[i]), accs[i]);
  if (!s->adds) return TS_SUCCESS;
  ts_v *sum = &accs[s->accs + i];
  *sum = only_in(loop, at, LLVMBuildFAdd(loop->e->b, *sum, x, ""), *sum);
  return TS_SUCCESS;
}

static ts_status rest_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  return look_at(loop, context, at, carried, 0);
}

/* Keeps a NaN. */
static ts_status nan_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  const search *s = context;
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_v x = loop->value[s->node], is_nan = LLVMBuildFCmp(loop->e->b, LLVMRealUNO, x, x, "");
  carried[0] = only_in(loop, at, LLVMBuildSelect(loop->e->b, is_nan, x, carried[0], ""), carried[0]);
  return TS_SUCCESS;
}

/* Several vectors in a turn of the loop, then the rest. */
static ts_status look_through(ts_loop *loop, search *s, ts_v from, ts_v to, ts_v *accs) {
  LLVMBuilderRef b = loop->e->b;
  const int64_t lanes = loop->e->lanes, turn = s->accs * lanes;
  const int count = count_of(s);
  ts_v inside[2 * MOST_ACCS], before[2 * MOST_ACCS];
  ts_v turns = LLVMBuildAnd(b, LLVMBuildSub(b, to, from, ""), ts_loop_number(loop, -turn), "");
  ts_v middle = ts_loop_add(loop, from, turns);
  LLVMBasicBlockRef start = LLVMGetInsertBlock(b);
  ts_counter c = ts_loop_count(loop, from, middle, ts_loop_number(loop, turn));
  for (int i = 0; i < count; i++) {
    before[i] = accs[i];
    inside[i] = LLVMBuildPhi(b, LLVMTypeOf(accs[i]), "");
    LLVMAddIncoming(inside[i], &accs[i], &start, 1);
    accs[i] = inside[i];
  }
  for (int i = 0; i < s->accs; i++)
    TS_TRY(
        look_at(loop, s, &(ts_point){.index = ts_loop_add(loop, c.index, ts_loop_number(loop, i * lanes))}, accs, i));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  for (int i = 0; i < count; i++) LLVMAddIncoming(inside[i], &accs[i], &here, 1);
  ts_loop_count_end(loop, &c);
  for (int i = 0; i < count; i++) accs[i] = ts_loop_either(loop, before[i], start, accs[i], here);
  ts_span rest = ts_loop_span(loop, middle, to);
  LLVMBasicBlockRef whole = LLVMGetInsertBlock(b), some = ts_loop_block(loop, "some"),
                    done = ts_loop_block(loop, "looked");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, middle, to, ""), some, done);
  LLVMPositionBuilderAtEnd(b, some);
  for (int i = 0; i < count; i++) before[i] = accs[i];
  TS_TRY(ts_loop_points(loop, &rest, accs, count, rest_point, s));
  here = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  for (int i = 0; i < count; i++) accs[i] = ts_loop_either(loop, before[i], whole, accs[i], here);
  return TS_SUCCESS;
}

static ts_v worst(ts_loop *loop, const search *s) { return ts_reducer_identity(loop->e, &s->by, NULL).value; }

static void start(ts_loop *loop, const search *s, ts_v *accs) {
  for (int i = 0; i < s->accs; i++) accs[i] = worst(loop, s);
  for (int i = s->accs; i < count_of(s); i++) accs[i] = ts_emit_const_bits(loop->e, s->by.type, 0);
}

static void join(ts_loop *loop, const search *s, ts_v *accs) {
  for (int half = s->accs / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) {
      accs[i] = ts_reducer_better(loop->e, &s->by, accs[i + half], accs[i]);
      if (s->adds) accs[s->accs + i] = LLVMBuildFAdd(loop->e->b, accs[s->accs + i], accs[s->accs + i + half], "");
    }
  }
}

static ts_v any_nan(ts_loop *loop, ts_v x) {
  return ts_reducer_any(loop->e, LLVMBuildFCmp(loop->e->b, LLVMRealUNO, x, x, ""));
}

/* Leaves for `found` if the sums say NaN and one is there. */
static ts_status look_for_nan(ts_loop *loop, search *s, const ts_part *part, ts_v sum, LLVMBasicBlockRef found) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef perhaps = ts_loop_block(loop, "perhaps"), none = ts_loop_block(loop, "no_nan");
  LLVMBuildCondBr(b, any_nan(loop, sum), perhaps, none);
  LLVMPositionBuilderAtEnd(b, perhaps);
  ts_v nan = ts_emit_const_bits(loop->e, s->by.type, 0);
  ts_span span = ts_loop_span(loop, part->from, part->to);
  TS_TRY(ts_loop_points(loop, &span, &nan, 1, nan_point, s));
  s->nan = LLVMGetInsertBlock(b);
  LLVMBuildCondBr(b, any_nan(loop, nan), found, none);
  LLVMPositionBuilderAtEnd(b, none);
  return TS_SUCCESS;
}

ts_status ts_loop_search(ts_loop *loop, const ts_reducer *by, int32_t node, ts_v length, ts_part *out) {
  LLVMBuilderRef b = loop->e->b;
  search s = {.by = *by, .node = node, .adds = ts_dtype_is_float(by->type)};
  s.accs = ts_dtype_size(by->type) == 8 ? MOST_ACCS / 2 : MOST_ACCS;
  ts_v accs[2 * MOST_ACCS], zero = ts_loop_number(loop, 0), none = worst(loop, &s), part = part_of(loop, &s, length);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), look = ts_loop_block(loop, "look");
  LLVMBasicBlockRef better = ts_loop_block(loop, "better"), go_on = ts_loop_block(loop, "go_on");
  LLVMBasicBlockRef done = ts_loop_block(loop, "found");
  LLVMBuildBr(b, look);
  LLVMPositionBuilderAtEnd(b, look);
  ts_v from = LLVMBuildPhi(b, loop->i64, ""), place = LLVMBuildPhi(b, loop->i64, "");
  ts_v best = LLVMBuildPhi(b, LLVMTypeOf(none), "");
  LLVMAddIncoming(from, &zero, &before, 1);
  LLVMAddIncoming(place, &zero, &before, 1);
  LLVMAddIncoming(best, &none, &before, 1);
  ts_v next = ts_loop_add(loop, from, part);
  ts_v to = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){next, length}, 2);
  start(loop, &s, accs);
  TS_TRY(look_through(loop, &s, from, to, accs));
  join(loop, &s, accs);
  if (s.adds) TS_TRY(look_for_nan(loop, &s, &(ts_part){from, to, best}, accs[s.accs], done));
  LLVMBasicBlockRef compared = LLVMGetInsertBlock(b);
  LLVMBuildCondBr(b, ts_reducer_any(loop->e, ts_reducer_is_better(loop->e, by, accs[0], best)), better, go_on);

  LLVMPositionBuilderAtEnd(b, better);
  ts_v new_best = ts_reducer_best(loop->e, by, accs[0]);
  ts_v ends = ts_reducer_is_final(loop->e, by, &(ts_acc){new_best, NULL}, 1);
  LLVMBuildCondBr(b, ends, done, go_on);

  LLVMPositionBuilderAtEnd(b, go_on);
  ts_v place_after = ts_loop_either(loop, place, compared, from, better);
  ts_v best_after = ts_loop_either(loop, best, compared, new_best, better);
  LLVMAddIncoming(from, &next, &go_on, 1);
  LLVMAddIncoming(place, &place_after, &go_on, 1);
  LLVMAddIncoming(best, &best_after, &go_on, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, length, ""), look, done);

  LLVMPositionBuilderAtEnd(b, done);
  out->from = ts_loop_either(loop, place_after, go_on, from, better);
  out->best = ts_loop_either(loop, best_after, go_on, new_best, better);
  if (s.nan) LLVMAddIncoming(out->from, &from, &s.nan, 1);
  if (s.nan) LLVMAddIncoming(out->best, &none, &s.nan, 1);
  next = ts_loop_add(loop, out->from, part);
  out->to = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){next, length}, 2);
  return TS_SUCCESS;
}
