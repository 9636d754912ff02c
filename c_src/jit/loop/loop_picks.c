/* MAP: elements that indices select.
 *
 * Rows whose elements are selected, by the same indices in each row, as from the last axis of a tensor: a gather takes
 * as many loads as its vector has lanes, also where the row has fewer elements, and its addresses have to be made again
 * for each row. So the places of the elements are kept in a table, and elements are moved one by one.
 *
 * Rows of few bytes that are selected as a whole: a row is two pieces, which overlap. */
#include "jit/loop/loop_picks.h"

/* The table is on the stack: 8 KB. */
#define MOST_PICKS 1024

static bool is_index_of_any_row(const ts_loop *loop, const ts_kernel_node *n) {
  const int32_t last = loop->d->rank - 1;
  if (n->kind != TS_NODE_LOAD) return false;
  for (int32_t dim = 0; dim < last; dim++)
    if (loop->d->inputs[n->slot].stride[dim] != TS_STRIDE_ZERO) return false;
  return loop->d->inputs[n->slot].stride[last] != TS_STRIDE_ZERO;
}

bool ts_loop_picks(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const int32_t last = d->rank - 1;
  if (loop->e->site || loop->streams || last == 0 || d->node_count != 2 || d->output_count != 1) return false;
  const ts_kernel_node *n = &d->nodes[1];
  const ts_kernel_operand *out = &d->outputs[0].operand;
  if (n->kind != TS_NODE_GATHER || d->outputs[0].node != 1 || !is_index_of_any_row(loop, &d->nodes[0])) return false;
  return d->inputs[n->slot].stride[last] == TS_STRIDE_ZERO && out->stride[last] == TS_STRIDE_UNIT &&
         out->dtype == n->dtype && !ts_dtype_is_complex(n->dtype);
}

ts_v ts_loop_row_is_few(ts_loop *loop, const ts_span *span) {
  return LLVMBuildICmp(loop->e->b, LLVMIntSLE, span->to, ts_loop_number(loop, MOST_PICKS), "");
}

typedef struct picks {
  const ts_span *span;
  ts_v table; /* bytes from the row's base to each element */
} picks;

static ts_v load(ts_loop *loop, ts_dtype type, ts_v address) {
  ts_v element = LLVMBuildLoad2(loop->e->b, ts_emit_memory_type(loop->e, type), address, "");
  LLVMSetAlignment(element, (unsigned)ts_dtype_alignment(type));
  return element;
}

static void store(ts_loop *loop, ts_dtype type, ts_v element, ts_v address) {
  LLVMSetAlignment(LLVMBuildStore(loop->e->b, element, address), (unsigned)ts_dtype_alignment(type));
}

/* Within the operand's axis, as the indices of a vector. */
static ts_v clamped(ts_loop *loop, ts_dtype type, ts_v index, ts_v last) {
  const bool is_unsigned = ts_dtype_is_unsigned(type);
  index = LLVMBuildIntCast2(loop->e->b, index, loop->i64, !is_unsigned, "");
  index = ts_emit_intrinsic(loop->e, is_unsigned ? "llvm.umin" : "llvm.smin", NULL, (ts_v[]){index, last}, 2);
  return ts_emit_intrinsic(loop->e, "llvm.smax", NULL, (ts_v[]){index, ts_loop_number(loop, 0)}, 2);
}

/* All rows have the same indices: their base does not depend on the row. */
static void fill_table(ts_loop *loop, const picks *p) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  ts_v limit = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b));
  ts_v step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c));
  ts_v last = LLVMBuildSub(loop->e->b, limit, ts_loop_number(loop, 1), "");
  ts_counter point = ts_loop_count(loop, p->span->from, p->span->to, ts_loop_number(loop, 1));
  ts_v stride = loop->stride[index->slot * loop->d->rank + loop->d->rank - 1];
  ts_v place = ts_loop_offset(loop, loop->address[index->slot], ts_loop_mul(loop, point.index, stride));
  ts_v at = load(loop, index->dtype, place);
  ts_v bytes = ts_loop_mul(loop, clamped(loop, index->dtype, at, last), step);
  store(loop, TS_S64, bytes, ts_loop_element(loop, TS_S64, p->table, point.index));
  ts_loop_count_end(loop, &point);
}

static ts_status pick_row(void *context, ts_loop *loop, const ts_v *counters) {
  const picks *p = context;
  const ts_kernel_node *n = &loop->d->nodes[1];
  const int32_t output = ts_loop_output_operand(loop, 0);
  ts_loop_set_row(loop, counters, loop->d->rank - 1);
  ts_counter point = ts_loop_count(loop, p->span->from, p->span->to, ts_loop_number(loop, 1));
  ts_v bytes = load(loop, TS_S64, ts_loop_element(loop, TS_S64, p->table, point.index));
  ts_v element = load(loop, n->dtype, ts_loop_offset(loop, loop->base[n->slot], bytes));
  store(loop, n->dtype, element, ts_loop_element(loop, n->dtype, loop->base[output], point.index));
  ts_loop_count_end(loop, &point);
  return TS_SUCCESS;
}

ts_status ts_loop_pick_rows(ts_loop *loop, const ts_span *span) {
  picks p = {.span = span, .table = ts_emit_alloca(loop->e, LLVMArrayType2(loop->i64, MOST_PICKS))};
  fill_table(loop, &p);
  return ts_loop_rows(loop, loop->d->rank - 1, pick_row, &p);
}

/* ---- short rows ---- */

#define LONGEST_PIECE 32

bool ts_loop_selects_rows(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const int32_t last = d->rank - 1;
  if (loop->e->site || loop->streams || last == 0 || d->node_count != 2 || d->output_count != 1) return false;
  const ts_kernel_node *index = &d->nodes[0], *n = &d->nodes[1];
  const ts_kernel_operand *out = &d->outputs[0].operand;
  if (n->kind != TS_NODE_GATHER || d->outputs[0].node != 1 || index->kind != TS_NODE_LOAD) return false;
  return d->inputs[index->slot].stride[last] == TS_STRIDE_ZERO && d->inputs[n->slot].stride[last] == TS_STRIDE_UNIT &&
         out->stride[last] == TS_STRIDE_UNIT && out->dtype == n->dtype;
}

static ts_v row_bytes(ts_loop *loop, const ts_span *span) {
  return ts_loop_mul(loop, span->to, ts_loop_number(loop, (int64_t)ts_dtype_size(loop->d->nodes[1].dtype)));
}

ts_v ts_loop_row_is_pieces(ts_loop *loop, const ts_span *span) {
  ts_v most = ts_loop_number(loop, (int64_t)2 * LONGEST_PIECE);
  return LLVMBuildICmp(loop->e->b, LLVMIntSLE, row_bytes(loop, span), most, "");
}

typedef struct pieces {
  LLVMTypeRef type; /* of a piece */
  ts_v second;      /* bytes from the first to the second one */
  ts_v last, step;  /* the greatest index; bytes from one row of the operand to the next */
} pieces;

static void copy_piece(ts_loop *loop, const pieces *p, ts_v from, ts_v to, ts_v at) {
  const unsigned alignment = (unsigned)ts_dtype_alignment(loop->d->nodes[1].dtype);
  ts_v piece = LLVMBuildLoad2(loop->e->b, p->type, ts_loop_offset(loop, from, at), "");
  LLVMSetAlignment(piece, alignment);
  LLVMSetAlignment(LLVMBuildStore(loop->e->b, piece, ts_loop_offset(loop, to, at)), alignment);
}

/* A value of the loop over the rows of a run, which grows by `step`. */
static ts_v moving(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, LLVMTypeOf(first), "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

static void move_on(ts_loop *loop, ts_v phi, int32_t operand, LLVMBasicBlockRef body) {
  const int32_t dim = loop->d->rank - 2;
  ts_v step = loop->stride[operand * loop->d->rank + dim];
  ts_v next = step ? ts_loop_offset(loop, phi, step) : phi;
  LLVMAddIncoming(phi, &next, &body, 1);
}

/* `count` rows, one or more, whose places are at equal distances: from those of the bases on. */
static void run_of_rows(ts_loop *loop, const pieces *p, ts_v count) {
  const ts_kernel_node *index = &loop->d->nodes[0];
  const int32_t output = ts_loop_output_operand(loop, 0), input = loop->d->nodes[1].slot;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(loop->e->b);
  ts_counter row = ts_loop_count_some(loop, ts_loop_number(loop, 0), count, ts_loop_number(loop, 1));
  ts_v at = moving(loop, loop->base[index->slot], before), to = moving(loop, loop->base[output], before);
  ts_v source = moving(loop, loop->base[input], before);
  ts_v selected = clamped(loop, index->dtype, load(loop, index->dtype, at), p->last);
  ts_v from = ts_loop_offset(loop, source, ts_loop_mul(loop, selected, p->step));
  copy_piece(loop, p, from, to, ts_loop_number(loop, 0));
  copy_piece(loop, p, from, to, p->second);
  move_on(loop, at, index->slot, row.body);
  move_on(loop, to, output, row.body);
  move_on(loop, source, input, row.body);
  ts_loop_count_end(loop, &row);
}

/* Rows [begin, end): run by run of the innermost loop over rows. */
static void all_rows(ts_loop *loop, const pieces *p) {
  LLVMBuilderRef b = loop->e->b;
  const int32_t dims = loop->d->rank - 1;
  ts_v counters[TS_KERNEL_MAX_RANK];
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ts_loop_block(loop, "run");
  LLVMBasicBlockRef done = ts_loop_block(loop, "runs_done");
  LLVMBuildBr(b, head); /* begin < end here */
  LLVMPositionBuilderAtEnd(b, head);
  ts_v unit = moving(loop, loop->begin, before), rest = unit;
  for (int32_t i = dims - 1; i > 0; i--) {
    counters[i] = LLVMBuildURem(b, rest, loop->extent[i], "");
    rest = LLVMBuildUDiv(b, rest, loop->extent[i], "");
  }
  counters[0] = rest;
  ts_loop_set_row(loop, counters, dims);
  ts_v count = LLVMBuildSub(b, loop->end, unit, "");
  ts_v left = LLVMBuildSub(b, loop->extent[dims - 1], counters[dims - 1], "");
  if (dims > 1) count = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){count, left}, 2);
  run_of_rows(loop, p, count);
  ts_v next = LLVMBuildAdd(b, unit, count, "");
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMAddIncoming(unit, &next, &here, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, loop->end, ""), head, done);
  LLVMPositionBuilderAtEnd(b, done);
}

static LLVMTypeRef type_of_piece(ts_loop *loop, int bytes) {
  if (bytes <= 8) return LLVMIntTypeInContext(loop->e->context, 8 * (unsigned)bytes);
  return LLVMVectorType(loop->i64, (unsigned)bytes / 8);
}

/* The longest pieces that fit: the branches are before the first row. */
ts_status ts_loop_selected_rows(ts_loop *loop, const ts_span *span) {
  LLVMBuilderRef b = loop->e->b;
  const ts_kernel_node *n = &loop->d->nodes[1];
  LLVMBasicBlockRef done = ts_loop_block(loop, "selected");
  ts_v limit = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b)), bytes = row_bytes(loop, span);
  pieces p = {.last = LLVMBuildSub(b, limit, ts_loop_number(loop, 1), ""),
              .step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c))};
  for (int piece = LONGEST_PIECE; piece >= (int)ts_dtype_size(n->dtype); piece /= 2) {
    LLVMBasicBlockRef fits = ts_loop_block(loop, "fits"), fewer = ts_loop_block(loop, "fewer");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGE, bytes, ts_loop_number(loop, piece), ""), fits, fewer);
    LLVMPositionBuilderAtEnd(b, fits);
    p.type = type_of_piece(loop, piece);
    p.second = LLVMBuildSub(b, bytes, ts_loop_number(loop, piece), "");
    all_rows(loop, &p);
    LLVMBuildBr(b, done);
    LLVMPositionBuilderAtEnd(b, fewer);
  }
  LLVMBuildBr(b, done); /* of no element */
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}
