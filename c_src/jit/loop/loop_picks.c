/* MAP: elements that indices select.
 *
 * The same indices for each row, as along the last axis of a tensor: a table has the places of the elements, and
 * elements are moved one by one. A gather would take as many loads as its vector has lanes, also where the row has
 * fewer elements, and its addresses would be made again for each row.
 *
 * Other rows and single lines are moved one by one where there are no gathers of AVX-512: it takes longer to narrow the
 * indices of a vector and to put its elements together.
 *
 * Whole rows: a row of few bytes is moved as two pieces, which overlap. A long row is a call of the C library. */
#include "jit/loop/loop_picks.h"
#include "jit/loop/loop_moves.h"
#include "jit/loop/loop_runs.h"

/* The table is on the stack: 8 KB. */
#define MOST_PICKS 1024

static bool is_index_of_any_row(const ts_loop *loop, const ts_kernel_node *n) {
  for (int32_t dim = 0; dim < loop->d->rank - 1; dim++)
    if (loop->d->inputs[n->slot].stride[dim] != TS_STRIDE_ZERO) return false;
  return true;
}

/* True when each point is an element of the operand's row that the point's index selects. */
static bool selects_elements(const ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const int32_t last = d->rank - 1;
  if (loop->e->site || loop->streams || d->node_count != 2 || d->output_count != 1) return false;
  const ts_kernel_node *index = &d->nodes[0], *n = &d->nodes[1];
  const ts_kernel_operand *out = &d->outputs[0].operand;
  if (n->kind != TS_NODE_GATHER || d->outputs[0].node != 1 || index->kind != TS_NODE_LOAD) return false;
  return d->inputs[index->slot].stride[last] != TS_STRIDE_ZERO && d->inputs[n->slot].stride[last] == TS_STRIDE_ZERO &&
         out->stride[last] == TS_STRIDE_UNIT && out->dtype == n->dtype && !ts_dtype_is_complex(n->dtype);
}

bool ts_loop_picks(const ts_loop *loop) {
  return loop->d->rank > 1 && selects_elements(loop) && is_index_of_any_row(loop, &loop->d->nodes[0]);
}

bool ts_loop_picks_singly(const ts_loop *loop) {
  return loop->e->target->isa != TS_ISA_AVX512 && selects_elements(loop);
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

/* Bytes from the operand's row to the element that a point's index selects. The indices begin at `base`. */
static ts_v selected_bytes(ts_loop *loop, ts_v base, ts_v point) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  ts_v limit = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b));
  ts_v step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c));
  ts_v last = LLVMBuildSub(loop->e->b, limit, ts_loop_number(loop, 1), "");
  ts_v stride = loop->stride[index->slot * loop->d->rank + loop->d->rank - 1];
  ts_v at = load(loop, index->dtype, ts_loop_offset(loop, base, ts_loop_mul(loop, point, stride)));
  return ts_loop_mul(loop, clamped(loop, index->dtype, at, last), step);
}

/* All rows have the same indices: their base does not depend on the row. */
static void fill_table(ts_loop *loop, const picks *p) {
  ts_counter point = ts_loop_count(loop, p->span->from, p->span->to, ts_loop_number(loop, 1));
  ts_v bytes = selected_bytes(loop, loop->address[loop->d->nodes[0].slot], point.index);
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

/* ---- elements of long rows ---- */

static void pick_element(ts_loop *loop, ts_v point) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  ts_v bytes = selected_bytes(loop, loop->base[index->slot], point);
  ts_v element = load(loop, n->dtype, ts_loop_offset(loop, loop->base[n->slot], bytes));
  ts_v target = loop->base[ts_loop_output_operand(loop, 0)];
  store(loop, n->dtype, element, ts_loop_element(loop, n->dtype, target, point));
}

/* Some at once, since the instructions of a loop take as long as those of an element. */
#define AT_ONCE 4

static void pick_clamped(ts_loop *loop, ts_v from, ts_v to) {
  ts_v rest = LLVMBuildAnd(loop->e->b, LLVMBuildSub(loop->e->b, to, from, ""), ts_loop_number(loop, AT_ONCE - 1), "");
  ts_v middle = LLVMBuildSub(loop->e->b, to, rest, "");
  ts_counter some = ts_loop_count(loop, from, middle, ts_loop_number(loop, AT_ONCE));
  for (int64_t i = 0; i < AT_ONCE; i++) pick_element(loop, ts_loop_add(loop, some.index, ts_loop_number(loop, i)));
  ts_loop_count_end(loop, &some);
  ts_counter one = ts_loop_count(loop, middle, to, ts_loop_number(loop, 1));
  pick_element(loop, one.index);
  ts_loop_count_end(loop, &one);
}

/* ---- elements one behind the other ---- */

/* So many indices are compared with the bounds at once. Nearly always all of them are within. */
#define TOGETHER 16

static ts_v first_index(ts_loop *loop, ts_v point) {
  const ts_kernel_node *index = &loop->d->nodes[0];
  return ts_loop_element(loop, index->dtype, loop->base[index->slot], point);
}

/* The greatest index, of the indices' own type: as unsigned numbers, negative ones are greater. */
static ts_v greatest_index(ts_loop *loop) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  const int bits = 8 * (int)ts_dtype_size(index->dtype) - !ts_dtype_is_unsigned(index->dtype);
  const int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
  ts_v limit = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b));
  ts_v last = LLVMBuildSub(loop->e->b, limit, ts_loop_number(loop, 1), "");
  last = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){last, ts_loop_number(loop, most)}, 2);
  return LLVMBuildTrunc(loop->e->b, last, ts_emit_memory_type(loop->e, index->dtype), "");
}

/* Whether all indices from a point on are inside. */
static ts_v are_inside(ts_loop *loop, ts_v greatest, ts_v point) {
  LLVMBuilderRef b = loop->e->b;
  const ts_dtype type = loop->d->nodes[0].dtype;
  LLVMTypeRef element = ts_emit_memory_type(loop->e, type), vector = LLVMVectorType(element, TOGETHER);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(element));
  ts_v indices = LLVMBuildLoad2(b, vector, first_index(loop, point), "");
  LLVMSetAlignment(indices, (unsigned)ts_dtype_alignment(type));
  ts_v most = LLVMBuildInsertElement(b, LLVMGetUndef(vector), greatest, LLVMConstInt(i32, 0, false), "");
  most = LLVMBuildShuffleVector(b, most, LLVMGetUndef(vector), LLVMConstNull(LLVMVectorType(i32, TOGETHER)), "");
  ts_v outside = LLVMBuildICmp(b, LLVMIntUGT, indices, most, "");
  outside = LLVMBuildBitCast(b, outside, LLVMIntTypeInContext(LLVMGetTypeContext(element), TOGETHER), "");
  return LLVMBuildIsNull(b, outside, "");
}

static void pick_inside(ts_loop *loop, ts_v point) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  ts_v at = load(loop, index->dtype, first_index(loop, point));
  at = LLVMBuildIntCast2(loop->e->b, at, loop->i64, !ts_dtype_is_unsigned(index->dtype), "");
  ts_v element = load(loop, n->dtype, ts_loop_element(loop, n->dtype, loop->base[n->slot], at));
  ts_v target = loop->base[ts_loop_output_operand(loop, 0)];
  store(loop, n->dtype, element, ts_loop_element(loop, n->dtype, target, point));
}

static void pick_together(ts_loop *loop, ts_v greatest, ts_v point) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef inside = ts_loop_block(loop, "inside"), outside = ts_loop_block(loop, "outside");
  LLVMBasicBlockRef done = ts_loop_block(loop, "picked");
  LLVMBuildCondBr(b, are_inside(loop, greatest, point), inside, outside);
  LLVMPositionBuilderAtEnd(b, inside);
  for (int64_t i = 0; i < TOGETHER; i++) pick_inside(loop, ts_loop_add(loop, point, ts_loop_number(loop, i)));
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, outside);
  pick_clamped(loop, point, ts_loop_add(loop, point, ts_loop_number(loop, TOGETHER)));
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
}

/* True when the operand's elements are one behind the other. */
static ts_v is_dense(ts_loop *loop) {
  const ts_kernel_node *n = &loop->d->nodes[1];
  ts_v step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c));
  return LLVMBuildICmp(loop->e->b, LLVMIntEQ, step, ts_loop_number(loop, (int64_t)ts_dtype_size(n->dtype)), "");
}

/* Up to this point elements are picked together. The others are picked one by one. */
static ts_v end_of_together(ts_loop *loop, const ts_span *span) {
  LLVMBuilderRef b = loop->e->b;
  ts_v length = LLVMBuildSub(b, span->to, span->from, "");
  ts_v rest = LLVMBuildAnd(b, length, ts_loop_number(loop, TOGETHER - 1), "");
  return LLVMBuildSelect(b, is_dense(loop), LLVMBuildSub(b, span->to, rest, ""), span->from, "");
}

ts_status ts_loop_pick_singly(ts_loop *loop, const ts_span *span) {
  const ts_kernel_node *index = &loop->d->nodes[0];
  ts_v from = span->from;
  if (loop->d->inputs[index->slot].stride[loop->d->rank - 1] == TS_STRIDE_UNIT) {
    ts_v middle = end_of_together(loop, span), greatest = greatest_index(loop);
    ts_counter some = ts_loop_count(loop, from, middle, ts_loop_number(loop, TOGETHER));
    pick_together(loop, greatest, some.index);
    ts_loop_count_end(loop, &some);
    from = middle;
  }
  pick_clamped(loop, from, span->to);
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

ts_pieces ts_loop_selected_pieces(ts_loop *loop, const ts_span *span) {
  const int64_t element = (int64_t)ts_dtype_size(loop->d->nodes[1].dtype);
  return ts_loop_pieces(loop, element, LONGEST_PIECE, ts_loop_mul(loop, span->to, ts_loop_number(loop, element)));
}

typedef struct selected {
  const ts_pieces *pieces; /* NULL for long rows */
  ts_v last, step;         /* the greatest index; bytes from one row of the operand to the next */
  ts_v count;              /* rows of the run */
  LLVMTypeRef piece;
  ts_v second;
  ts_v bytes; /* of a long row */
} selected;

static ts_v address_of_row(const selected *s, ts_loop *loop) {
  const ts_kernel_node *index = &loop->d->nodes[0], *n = &loop->d->nodes[1];
  ts_v at = clamped(loop, index->dtype, load(loop, index->dtype, loop->base[index->slot]), s->last);
  return ts_loop_offset(loop, loop->base[n->slot], ts_loop_mul(loop, at, s->step));
}

static void selected_row(void *context, ts_loop *loop) {
  const selected *s = context;
  const ts_dtype type = loop->d->nodes[1].dtype;
  ts_v to = loop->base[ts_loop_output_operand(loop, 0)], from = address_of_row(s, loop);
  ts_loop_copy_piece(loop, s->piece, type, from, to);
  if (!s->second) return;
  ts_loop_copy_piece(loop, s->piece, type, ts_loop_offset(loop, from, s->second), ts_loop_offset(loop, to, s->second));
}

static void selected_way(void *context, ts_loop *loop, LLVMTypeRef piece, ts_v second) {
  selected *s = context;
  s->piece = piece, s->second = second;
  ts_loop_run_rows(loop, s->count, selected_row, s);
}

static void long_row(void *context, ts_loop *loop) {
  const selected *s = context;
  ts_loop_copy_long(loop, loop->d->nodes[1].dtype, address_of_row(s, loop), loop->base[ts_loop_output_operand(loop, 0)],
                    s->bytes);
}

static void selected_run(void *context, ts_loop *loop, ts_v count) {
  selected *s = context;
  s->count = count;
  if (s->pieces)
    ts_loop_each_way(loop, s->pieces, selected_way, s);
  else
    ts_loop_run_rows(loop, count, long_row, s);
}

static void copy_selected(ts_loop *loop, selected *s) {
  const ts_kernel_node *n = &loop->d->nodes[1];
  ts_v limit = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->b));
  s->last = LLVMBuildSub(loop->e->b, limit, ts_loop_number(loop, 1), "");
  s->step = ts_loop_arg(loop, ts_kernel_arg_scalar(loop->d, n->c));
  ts_loop_runs(loop, selected_run, s);
}

void ts_loop_selected_rows(ts_loop *loop, const ts_pieces *pieces) {
  copy_selected(loop, &(selected){.pieces = pieces});
}

void ts_loop_selected_long(ts_loop *loop, const ts_pieces *pieces) {
  copy_selected(loop, &(selected){.bytes = pieces->bytes});
}
