/* MAP: copies of few elements at a time.
 *
 * Short rows, as where matrices of few columns are joined: a vector under a mask, and the counters of a row, take
 * longer than a few bytes do. A row is one piece, or two that overlap. Which of them is chosen for each run of rows, by
 * a jump.
 *
 * Elements whose places in the result are apart: a vector would be scattered, one element after the other. */
#include "jit/loop/loop_pieces.h"
#include "jit/loop/loop_runs.h"

#define LONGEST_PIECE 128 /* bytes: registers as the machine has them */

/* ---- pieces ---- */

/* Counts the bounds that the length has passed. */
ts_pieces ts_loop_pieces(ts_loop *loop, int64_t element, int most, ts_v bytes) {
  LLVMBuilderRef b = loop->e->b;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(loop->e->context);
  ts_pieces p = {.least = (int)element, .most = most, .bytes = bytes, .which = LLVMConstInt(i32, 0, 0)};
  for (int piece = p.least; piece <= most; piece *= 2) {
    ts_v more = LLVMBuildICmp(b, LLVMIntSGT, bytes, ts_loop_number(loop, piece), "");
    p.which = LLVMBuildAdd(b, p.which, LLVMBuildZExt(b, more, i32, ""), "");
    if (piece == most) break;
    ts_v next = LLVMBuildICmp(b, LLVMIntSGE, bytes, ts_loop_number(loop, (int64_t)2 * piece), "");
    p.which = LLVMBuildAdd(b, p.which, LLVMBuildZExt(b, next, i32, ""), "");
  }
  return p;
}

/* A row without elements has no piece. */
ts_v ts_loop_is_pieces(ts_loop *loop, const ts_pieces *p) {
  ts_v before = LLVMBuildSub(loop->e->b, p->bytes, ts_loop_number(loop, 1), "");
  return LLVMBuildICmp(loop->e->b, LLVMIntULT, before, ts_loop_number(loop, (int64_t)2 * p->most), "");
}

static LLVMTypeRef type_of_piece(ts_loop *loop, int bytes) {
  if (bytes <= 8) return LLVMIntTypeInContext(loop->e->context, 8 * (unsigned)bytes);
  return LLVMVectorType(loop->i64, (unsigned)bytes / 8);
}

void ts_loop_each_way(ts_loop *loop, const ts_pieces *p, ts_piece_fn fn, void *context) {
  LLVMBuilderRef b = loop->e->b;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(loop->e->context);
  LLVMBasicBlockRef done = ts_loop_block(loop, "pieces_done");
  ts_v which = LLVMBuildSwitch(b, p->which, done, 16);
  int way = 0;
  for (int piece = p->least; piece <= p->most; piece *= 2) {
    for (int more = 0; more < 2; more++, way++) {
      LLVMBasicBlockRef block = ts_loop_block(loop, "pieces");
      LLVMAddCase(which, LLVMConstInt(i32, (unsigned)way, 0), block);
      LLVMPositionBuilderAtEnd(b, block);
      fn(context, loop, type_of_piece(loop, piece),
         more ? LLVMBuildSub(b, p->bytes, ts_loop_number(loop, piece), "") : NULL);
      LLVMBuildBr(b, done);
    }
  }
  LLVMPositionBuilderAtEnd(b, done);
}

void ts_loop_copy_piece(ts_loop *loop, LLVMTypeRef piece, ts_dtype type, ts_v from, ts_v to) {
  const unsigned alignment = (unsigned)ts_dtype_alignment(type);
  ts_v x = LLVMBuildLoad2(loop->e->b, piece, from, "");
  LLVMSetAlignment(x, alignment);
  LLVMSetAlignment(LLVMBuildStore(loop->e->b, x, to), alignment);
}

/* ---- rows of a copy ---- */

typedef struct copies {
  const ts_pieces *pieces;
  ts_v count; /* rows of the run */
  LLVMTypeRef piece;
  ts_v second;
} copies;

static void copy_row(void *context, ts_loop *loop) {
  const copies *c = context;
  const ts_dtype type = loop->d->inputs[0].dtype;
  ts_v from = loop->base[0], to = loop->base[1];
  ts_loop_copy_piece(loop, c->piece, type, from, to);
  if (!c->second) return;
  ts_loop_copy_piece(loop, c->piece, type, ts_loop_offset(loop, from, c->second), ts_loop_offset(loop, to, c->second));
}

static void copy_way(void *context, ts_loop *loop, LLVMTypeRef piece, ts_v second) {
  copies *c = context;
  c->piece = piece, c->second = second;
  ts_loop_run_rows(loop, c->count, copy_row, c);
}

static void copy_run(void *context, ts_loop *loop, ts_v count) {
  copies *c = context;
  c->count = count;
  ts_loop_each_way(loop, c->pieces, copy_way, c);
}

ts_pieces ts_loop_short_rows(ts_loop *loop, const ts_span *span) {
  const int64_t element = (int64_t)ts_dtype_size(loop->d->inputs[0].dtype);
  return ts_loop_pieces(loop, element, LONGEST_PIECE, ts_loop_mul(loop, span->to, ts_loop_number(loop, element)));
}

void ts_loop_copy_short_rows(ts_loop *loop, const ts_pieces *p) {
  copies c = {.pieces = p};
  ts_loop_runs(loop, copy_run, &c);
}

/* ---- elements that are spread ---- */

bool ts_loop_spreads(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const int32_t last = d->rank - 1;
  return !loop->e->site && d->input_count == 1 && d->output_count == 1 && d->node_count == 1 &&
         d->nodes[0].kind == TS_NODE_LOAD && d->inputs[0].stride[last] != TS_STRIDE_ZERO &&
         d->outputs[0].operand.stride[last] == TS_STRIDE_ANY;
}

/* Bytes from an element of a row to the next one. */
static ts_v step_of(ts_loop *loop, int32_t operand) {
  const int32_t last = loop->d->rank - 1;
  const ts_kernel_operand *o = operand == 0 ? &loop->d->inputs[0] : &loop->d->outputs[0].operand;
  if (o->stride[last] == TS_STRIDE_UNIT) return ts_loop_number(loop, (int64_t)ts_dtype_size(o->dtype));
  return loop->stride[operand * loop->d->rank + last];
}

static void spread_element(ts_loop *loop, ts_v index, int64_t further) {
  const ts_dtype type = loop->d->inputs[0].dtype;
  ts_v at[2];
  for (int32_t i = 0; i < 2; i++) {
    ts_v step = step_of(loop, i);
    at[i] = ts_loop_offset(loop, loop->base[i], ts_loop_mul(loop, index, step));
    at[i] = ts_loop_offset(loop, at[i], ts_loop_mul(loop, step, ts_loop_number(loop, further)));
  }
  ts_loop_copy_piece(loop, ts_emit_memory_type(loop->e, type), type, at[0], at[1]);
}

/* Some at once, since the instructions of a loop take longer than those of an element. */
#define SPREAD_AT_ONCE 4

static void spread_row(void *context, ts_loop *loop) {
  const ts_span *span = context;
  LLVMBuilderRef b = loop->e->b;
  ts_v length = LLVMBuildSub(b, span->to, span->from, "");
  ts_v rest = LLVMBuildAnd(b, length, ts_loop_number(loop, SPREAD_AT_ONCE - 1), "");
  ts_v middle = LLVMBuildSub(b, span->to, rest, "");
  ts_counter some = ts_loop_count(loop, span->from, middle, ts_loop_number(loop, SPREAD_AT_ONCE));
  for (int64_t i = 0; i < SPREAD_AT_ONCE; i++) spread_element(loop, some.index, i);
  ts_loop_count_end(loop, &some);
  ts_counter one = ts_loop_count(loop, middle, span->to, ts_loop_number(loop, 1));
  spread_element(loop, one.index, 0);
  ts_loop_count_end(loop, &one);
}

static void spread_run(void *context, ts_loop *loop, ts_v count) { ts_loop_run_rows(loop, count, spread_row, context); }

void ts_loop_spread(ts_loop *loop, const ts_span *span) {
  ts_span all = *span;
  if (loop->d->rank > 1) {
    ts_loop_runs(loop, spread_run, &all);
    return;
  }
  ts_loop_set_row(loop, NULL, 0);
  spread_row(&all, loop);
}
