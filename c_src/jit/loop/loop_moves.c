/* MAP: rows of a kernel that only moves elements or repeats values. Elements may be stored twice, so the end of a row
 * is a vector like the others, which begins earlier; and a long row is a call of the C library. */
#include "jit/loop/loop_moves.h"

/* From so many bytes on, the C library's copy of a row takes less time, although it is a call: it aligns its stores,
 * and has instructions for long copies that do not read lines before they overwrite them. */
#define COPY_BYTES 512

static uint8_t last_class(const ts_loop *loop, const ts_kernel_operand *o) { return o->stride[loop->d->rank - 1]; }

static bool stores_rows(const ts_loop *loop) {
  for (int32_t i = 0; i < loop->d->output_count; i++) {
    const ts_kernel_output *o = &loop->d->outputs[i];
    if (o->stream || last_class(loop, &o->operand) != TS_STRIDE_UNIT) return false;
  }
  return !loop->e->site;
}

/* ---- rows that are copied as they are ---- */

bool ts_loop_copies_rows(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  return stores_rows(loop) && d->input_count == 1 && d->output_count == 1 && d->node_count == 1 &&
         d->nodes[0].kind == TS_NODE_LOAD && last_class(loop, &d->inputs[0]) == TS_STRIDE_UNIT;
}

static ts_v length_of(ts_loop *loop, const ts_span *span) {
  return LLVMIsNull(span->from) ? span->to : LLVMBuildSub(loop->e->b, span->to, span->from, "");
}

static ts_v bytes_of(ts_loop *loop, const ts_span *span) {
  return ts_loop_mul(loop, length_of(loop, span),
                     ts_loop_number(loop, (int64_t)ts_dtype_size(loop->d->outputs[0].operand.dtype)));
}

ts_v ts_loop_row_is_long(ts_loop *loop, const ts_span *span) {
  return LLVMBuildICmp(loop->e->b, LLVMIntSGE, bytes_of(loop, span), ts_loop_number(loop, COPY_BYTES), "");
}

/* The processor's own instruction for copies takes two to four times as long where the places of both rows on their
 * pages make it believe that it reads what it has just written: where the result is less than a line ahead. The C
 * library uses it for long copies only. */
#define PAGE_BYTES 4096
#define LINE_BYTES 64
#define PIECE_BYTES 2048

static ts_v piece_bytes(ts_loop *loop, ts_v target, ts_v source, ts_v bytes) {
  LLVMBuilderRef b = loop->e->b;
  ts_v ahead =
      LLVMBuildSub(b, LLVMBuildPtrToInt(b, target, loop->i64, ""), LLVMBuildPtrToInt(b, source, loop->i64, ""), "");
  ahead = LLVMBuildAnd(b, ahead, ts_loop_number(loop, PAGE_BYTES - 1), "");
  ts_v before = LLVMBuildSub(b, ahead, ts_loop_number(loop, 1), ""); /* equal places are well */
  ts_v close = LLVMBuildICmp(b, LLVMIntULT, before, ts_loop_number(loop, LINE_BYTES - 1), "");
  return LLVMBuildSelect(b, close, ts_loop_number(loop, PIECE_BYTES), bytes, "");
}

void ts_loop_copy_long(ts_loop *loop, ts_dtype type, ts_v source, ts_v target, ts_v bytes) {
  const unsigned alignment = (unsigned)ts_dtype_alignment(type);
  ts_counter piece = ts_loop_count_some(loop, ts_loop_number(loop, 0), bytes, piece_bytes(loop, target, source, bytes));
  ts_v left = LLVMBuildSub(loop->e->b, bytes, piece.index, "");
  left = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){left, piece.step}, 2);
  LLVMBuildMemMove(loop->e->b, ts_loop_offset(loop, target, piece.index), alignment,
                   ts_loop_offset(loop, source, piece.index), alignment, left);
  ts_loop_count_end(loop, &piece);
}

ts_status ts_loop_copy_row(ts_loop *loop, const ts_span *span) {
  const ts_dtype type = loop->d->inputs[0].dtype;
  ts_v source = ts_loop_element(loop, type, loop->base[0], span->from);
  ts_v target = ts_loop_element(loop, type, loop->base[1], span->from);
  ts_loop_copy_long(loop, type, source, target, bytes_of(loop, span));
  return TS_SUCCESS;
}

/* ---- rows of vectors that overlap ---- */

static bool is_moved(const ts_loop *loop, const ts_kernel_node *n) {
  if (n->kind == TS_NODE_SCALAR) return true;
  if (n->kind == TS_NODE_GATHER && loop->plan.level[n->a] == TS_LEVEL_POINT) return false;
  return (n->kind == TS_NODE_LOAD || n->kind == TS_NODE_GATHER) &&
         last_class(loop, &loop->d->inputs[n->slot]) != TS_STRIDE_ANY;
}

/* With masks, the end of a row costs no more than other vectors. */
bool ts_loop_overlaps(const ts_loop *loop) {
  if (loop->masks || loop->d->rank == 1 || !stores_rows(loop)) return false;
  for (int32_t i = 0; i < loop->d->node_count; i++)
    if (!is_moved(loop, &loop->d->nodes[i])) return false;
  return true;
}

static ts_status vector_at(ts_loop *loop, ts_v index) {
  const ts_point at = {.index = index};
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &at));
  ts_loop_store(loop, &at, NULL, 0);
  return TS_SUCCESS;
}

ts_status ts_loop_overlapped_row(ts_loop *loop, const ts_span *span) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef rest = ts_loop_block(loop, "rest"), done = ts_loop_block(loop, "row_done");
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  ts_counter vectors =
      ts_loop_count_some(loop, span->from, span->middle, ts_loop_number(loop, (int64_t)loop->e->lanes));
  TS_TRY(vector_at(loop, vectors.index));
  ts_loop_count_end(loop, &vectors);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, span->middle, span->to, ""), rest, done);
  LLVMPositionBuilderAtEnd(b, rest);
  TS_TRY(vector_at(loop, span->last));
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

/* At least `lanes` elements, and fewer than twice as many: two vectors. */
static ts_status two_vectors(ts_loop *loop, const ts_span *span, int lanes) {
  loop->e->lanes = lanes;
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_KERNEL, NULL));
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  TS_TRY(vector_at(loop, span->from));
  if (lanes == 1) return TS_SUCCESS;
  return vector_at(loop, LLVMBuildSub(loop->e->b, span->to, ts_loop_number(loop, lanes), ""));
}

ts_status ts_loop_short_row(ts_loop *loop, const ts_span *span) {
  LLVMBuilderRef b = loop->e->b;
  const int lanes = loop->e->lanes;
  const size_t nodes = (size_t)loop->d->node_count;
  LLVMBasicBlockRef done = ts_loop_block(loop, "row_done");
  ts_v *values; /* of the kernel's level, in whole vectors */
  ts_status status = TS_ARENA_ARRAY(&loop->arena, nodes, &values);
  for (size_t i = 0; !status && i < nodes; i++) values[i] = loop->value[i];
  for (int few = lanes / 2; !status && few > 0; few /= 2) {
    LLVMBasicBlockRef fits = ts_loop_block(loop, "fits"), fewer = ts_loop_block(loop, "fewer");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGE, span->to, ts_loop_number(loop, few), ""), fits, fewer);
    LLVMPositionBuilderAtEnd(b, fits);
    status = two_vectors(loop, span, few);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, fewer);
  }
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  loop->e->lanes = lanes;
  for (size_t i = 0; !status && i < nodes; i++) loop->value[i] = values[i];
  return status;
}
