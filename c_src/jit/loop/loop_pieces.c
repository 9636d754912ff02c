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

/* ---- elements that are apart ---- */

static bool copies_elements(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  return !loop->e->site && d->input_count == 1 && d->output_count == 1 && d->node_count == 1 &&
         d->nodes[0].kind == TS_NODE_LOAD && d->inputs[0].stride[d->rank - 1] != TS_STRIDE_ZERO;
}

bool ts_loop_spreads(const ts_loop *loop) {
  return copies_elements(loop) && loop->d->outputs[0].operand.stride[loop->d->rank - 1] == TS_STRIDE_ANY;
}

bool ts_loop_collects(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const int32_t last = d->rank - 1;
  const uint8_t from = d->inputs[0].stride[last];
  return last > 0 && copies_elements(loop) && !d->outputs[0].stream &&
         (from == TS_STRIDE_ANY || from == TS_STRIDE_NEAR) && d->outputs[0].operand.stride[last] == TS_STRIDE_UNIT;
}

/* Vectors of elements that are apart are put together element by element as well. */
#define LEAST_FOR_VECTORS 16

ts_v ts_loop_row_is_short(ts_loop *loop, const ts_span *span) {
  return LLVMBuildICmp(loop->e->b, LLVMIntSLT, span->to, ts_loop_number(loop, LEAST_FOR_VECTORS), "");
}

static void copy_element(ts_loop *loop, ts_v index, int64_t further) {
  const ts_dtype type = loop->d->inputs[0].dtype;
  ts_v at[2];
  for (int32_t i = 0; i < 2; i++) {
    ts_v step = loop->stride[(i + 1) * loop->d->rank - 1];
    at[i] = ts_loop_offset(loop, loop->base[i], ts_loop_mul(loop, index, step));
    at[i] = ts_loop_offset(loop, at[i], ts_loop_mul(loop, step, ts_loop_number(loop, further)));
  }
  ts_loop_copy_piece(loop, ts_emit_memory_type(loop->e, type), type, at[0], at[1]);
}

/* Some at once, since the instructions of a loop take longer than those of an element. */
#define AT_ONCE 4

/* Lengths of rows that have code of their own: to copy AT_ONCE and then the last AT_ONCE, some of them twice, would be
 * more. Any other row has as many at least. */
static const int few_elements[] = {1, 2, 3, 5};
#define FEW_WAYS 4

typedef struct apart {
  const ts_span *span;
  ts_v count; /* rows of the run */
  int few;    /* elements of a row; 0 for any number from AT_ONCE on */
} apart;

static void copy_elements(ts_loop *loop, ts_v index, int count) {
  for (int64_t i = 0; i < count; i++) copy_element(loop, index, i);
}

/* The last ones are at once as well, also where some of them have been copied. */
static void elements_of_row(void *context, ts_loop *loop) {
  const apart *a = context;
  copy_elements(loop, a->span->from, a->few);
  if (a->few) return;
  ts_v last = LLVMBuildSub(loop->e->b, a->span->to, ts_loop_number(loop, AT_ONCE), "");
  ts_counter some = ts_loop_count(loop, a->span->from, last, ts_loop_number(loop, AT_ONCE));
  copy_elements(loop, some.index, AT_ONCE);
  ts_loop_count_end(loop, &some);
  copy_elements(loop, last, AT_ONCE);
}

static void rows_apart(ts_loop *loop, apart *a) {
  if (loop->d->rank > 1)
    ts_loop_run_rows(loop, a->count, elements_of_row, a);
  else
    elements_of_row(a, loop);
}

static void way_apart(ts_loop *loop, apart *a, int few, LLVMBasicBlockRef block, LLVMBasicBlockRef done) {
  a->few = few;
  LLVMPositionBuilderAtEnd(loop->e->b, block);
  rows_apart(loop, a);
  LLVMBuildBr(loop->e->b, done);
}

/* Chooses for all rows of a run. */
static void run_apart(void *context, ts_loop *loop, ts_v count) {
  apart *a = context;
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef done = ts_loop_block(loop, "run_done"), many = ts_loop_block(loop, "many");
  a->count = count;
  ts_v which = LLVMBuildSwitch(b, LLVMBuildSub(b, a->span->to, a->span->from, ""), many, FEW_WAYS + 1);
  LLVMAddCase(which, ts_loop_number(loop, 0), done);
  for (int i = 0; i < FEW_WAYS; i++) {
    LLVMBasicBlockRef block = ts_loop_block(loop, "few");
    LLVMAddCase(which, ts_loop_number(loop, few_elements[i]), block);
    way_apart(loop, a, few_elements[i], block, done);
  }
  way_apart(loop, a, 0, many, done);
  LLVMPositionBuilderAtEnd(b, done);
}

void ts_loop_copy_apart(ts_loop *loop, const ts_span *span) {
  apart a = {.span = span};
  if (loop->d->rank > 1) {
    ts_loop_runs(loop, run_apart, &a);
    return;
  }
  ts_loop_set_row(loop, NULL, 0);
  run_apart(&a, loop, NULL);
}
