/* MAP: every point is computed independently. Also opens the function of an INTERLEAVED and of a JOINED. Unlike in
 * other kinds, a vector may have more elements than target->lanes: where all values are narrow, it fills the machine's
 * registers. A kernel that only moves elements moves the bytes of any type as integers of its size. */
#include "jit/loop/loop_joined.h"
#include "jit/loop/loop_moves.h"
#include "jit/loop/loop_picks.h"
#include "jit/loop/loop_pieces.h"

static ts_status map_point(void *context, ts_loop *loop, const ts_point *at, ts_v *carried) {
  (void)context, (void)carried;
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, at));
  ts_loop_store(loop, at, NULL, 0);
  return TS_SUCCESS;
}

typedef ts_status (*row_body)(ts_loop *loop, const ts_span *span);

typedef struct map_rows {
  ts_span span;
  row_body emit;
  ts_pieces pieces; /* of rows that are copied or selected */
} map_rows;

static ts_status row_of_points(ts_loop *loop, const ts_span *span) {
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  return ts_loop_points(loop, span, NULL, 0, map_point, NULL);
}

static ts_status map_row(void *context, ts_loop *loop, const ts_v *counters) {
  const map_rows *rows = context;
  ts_loop_set_row(loop, counters, loop->d->rank - 1);
  return rows->emit(loop, &rows->span);
}

static ts_status emit_rows(ts_loop *loop, map_rows *rows, row_body emit) {
  const int32_t last = loop->d->rank - 1;
  rows->emit = emit;
  return last == 0 ? emit(loop, &rows->span) : ts_loop_rows(loop, last, map_row, rows);
}

typedef ts_status (*emit_part)(ts_loop *loop, map_rows *rows);

/* Chooses before the first row: a branch in the loop over rows would cost short rows time. */
static ts_status emit_either(ts_loop *loop, map_rows *rows, ts_v which, emit_part yes, emit_part no) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef is = ts_loop_block(loop, "is"), is_not = ts_loop_block(loop, "is_not");
  LLVMBasicBlockRef done = ts_loop_block(loop, "either_done");
  LLVMBuildCondBr(b, which, is, is_not);
  LLVMPositionBuilderAtEnd(b, is);
  TS_TRY(yes(loop, rows));
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, is_not);
  TS_TRY(no(loop, rows));
  LLVMBuildBr(b, done);
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

static ts_status emit_copies(ts_loop *loop, map_rows *rows) { return emit_rows(loop, rows, ts_loop_copy_row); }

static ts_status emit_overlapped(ts_loop *loop, map_rows *rows) {
  return emit_rows(loop, rows, ts_loop_overlapped_row);
}

static ts_status emit_short(ts_loop *loop, map_rows *rows) { return emit_rows(loop, rows, ts_loop_short_row); }

static ts_status emit_picks(ts_loop *loop, map_rows *rows) { return ts_loop_pick_rows(loop, &rows->span); }

static ts_status emit_selected(ts_loop *loop, map_rows *rows) {
  ts_loop_selected_rows(loop, &rows->pieces);
  return TS_SUCCESS;
}

static ts_status emit_singly(ts_loop *loop, map_rows *rows) { return emit_rows(loop, rows, ts_loop_pick_singly); }

static ts_status emit_selected_long(ts_loop *loop, map_rows *rows) {
  ts_loop_selected_long(loop, &rows->pieces);
  return TS_SUCCESS;
}

static ts_status emit_any(ts_loop *loop, map_rows *rows) {
  if (ts_loop_picks_singly(loop)) return emit_singly(loop, rows);
  if (!ts_loop_overlaps(loop)) return emit_rows(loop, rows, row_of_points);
  return emit_either(loop, rows, rows->span.some_whole, emit_overlapped, emit_short);
}

/* Vectors of AVX-512 take no longer than a call. */
static ts_status emit_not_pieces(ts_loop *loop, map_rows *rows) {
  if (loop->e->target->isa == TS_ISA_AVX512) return emit_any(loop, rows);
  return emit_either(loop, rows, ts_loop_row_is_long(loop, &rows->span), emit_selected_long, emit_any);
}

static ts_status emit_pieces(ts_loop *loop, map_rows *rows) {
  ts_loop_copy_short_rows(loop, &rows->pieces);
  return TS_SUCCESS;
}

static ts_status emit_apart(ts_loop *loop, map_rows *rows) {
  ts_loop_copy_apart(loop, &rows->span);
  return TS_SUCCESS;
}

static ts_status emit_vectors(ts_loop *loop, map_rows *rows) {
  if (ts_loop_picks(loop)) return emit_either(loop, rows, ts_loop_row_is_few(loop, &rows->span), emit_picks, emit_any);
  if (ts_loop_selects_rows(loop)) {
    rows->pieces = ts_loop_selected_pieces(loop, &rows->span);
    return emit_either(loop, rows, ts_loop_is_pieces(loop, &rows->pieces), emit_selected, emit_not_pieces);
  }
  return emit_any(loop, rows);
}

static ts_status emit_not_long(ts_loop *loop, map_rows *rows) {
  if (loop->d->rank == 1) return emit_vectors(loop, rows);
  rows->pieces = ts_loop_short_rows(loop, &rows->span);
  return emit_either(loop, rows, ts_loop_is_pieces(loop, &rows->pieces), emit_pieces, emit_vectors);
}

static ts_status emit_map(ts_loop *loop) {
  const bool one_row = loop->d->rank == 1;
  map_rows rows = {.span = ts_loop_span(loop, one_row ? loop->begin : ts_loop_number(loop, 0),
                                        one_row ? loop->end : loop->extent[loop->d->rank - 1])};
  if (ts_loop_spreads(loop)) return emit_apart(loop, &rows);
  if (ts_loop_collects(loop))
    return emit_either(loop, &rows, ts_loop_row_is_short(loop, &rows.span), emit_apart, emit_vectors);
  if (!ts_loop_copies_rows(loop)) return emit_vectors(loop, &rows);
  return emit_either(loop, &rows, ts_loop_row_is_long(loop, &rows.span), emit_copies, emit_not_long);
}

static ts_status emit_body(ts_loop *loop) {
  if (loop->d->kind == TS_KERNEL_JOINED) return ts_loop_joined(loop);
  return loop->d->kind == TS_KERNEL_MAP ? emit_map(loop) : ts_loop_interleaved(loop);
}

static ts_status emit_function(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  ts_loop loop;
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_body(&loop);
  return ts_loop_close(&loop, status);
}

/* ---- kernels that only move ---- */

static bool only_moves(const ts_kernel_desc *d) {
  for (int32_t i = 0; i < d->node_count; i++)
    if (d->nodes[i].kind != TS_NODE_LOAD) return false;
  return true;
}

static ts_status emit_moves(ts_emit *e, const char *name, const ts_kernel_desc *desc, ts_arena *arena) {
  ts_kernel_desc moves = *desc;
  ts_kernel_operand *inputs;
  ts_kernel_output *outputs;
  ts_kernel_node *nodes;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)desc->input_count, &inputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)desc->output_count, &outputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)desc->node_count, &nodes));
  for (int32_t i = 0; i < desc->input_count; i++) {
    inputs[i] = desc->inputs[i];
    inputs[i].dtype = ts_loop_raw_type(inputs[i].dtype);
  }
  for (int32_t i = 0; i < desc->output_count; i++) {
    outputs[i] = desc->outputs[i];
    outputs[i].operand.dtype = ts_loop_raw_type(outputs[i].operand.dtype);
  }
  for (int32_t i = 0; i < desc->node_count; i++) {
    nodes[i] = desc->nodes[i];
    nodes[i].dtype = ts_loop_raw_type(nodes[i].dtype);
  }
  moves.inputs = inputs;
  moves.outputs = outputs;
  moves.nodes = nodes;
  return emit_function(e, name, &moves);
}

/* ---- the length of vectors ---- */

static int64_t register_bytes(ts_dtype type) { return ts_dtype_is_narrow(type) ? 4 : (int64_t)ts_dtype_size(type); }

/* In a JOINED, shuffles put the elements of pieces together. */
static bool is_strided(const ts_kernel_desc *d, const ts_kernel_operand *o) {
  return o->stride[d->rank - 1] == TS_STRIDE_ANY && d->kind != TS_KERNEL_JOINED;
}

/* How many of the machine's lanes of 4 bytes a lane of all values fits into: 1, 1/2 or 1/4. Elements that are accessed
 * one by one stay as they are: their code would grow. */
static int lanes_of(const ts_emit *e, const ts_kernel_desc *d, bool moves) {
  int64_t bytes = 1;
  bool single = false;
  for (int32_t i = 0; i < d->input_count; i++) single |= is_strided(d, &d->inputs[i]);
  for (int32_t i = 0; i < d->output_count; i++) single |= is_strided(d, &d->outputs[i].operand);
  for (int32_t i = 0; i < d->node_count; i++) {
    const ts_kernel_node *n = &d->nodes[i];
    int64_t size = moves ? (int64_t)ts_dtype_size(n->dtype) : register_bytes(n->dtype);
    single |= n->kind == TS_NODE_GATHER || n->kind == TS_NODE_INDEX || n->kind == TS_NODE_ARG;
    if (size > bytes) bytes = size;
  }
  if (moves && d->kind != TS_KERNEL_MAP) return e->lanes * 4 / (int)bytes; /* shuffles are of one register */
  return single || bytes >= 4 ? e->lanes : e->lanes * 4 / (int)bytes;
}

ts_status ts_loop_emit_map(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  if (e->site) return emit_function(e, name, desc);
  e->holds = desc->kind == TS_KERNEL_INTERLEAVED && e->target->isa == TS_ISA_AVX512; /* as in loop_row.c */
  const int lanes = e->lanes;
  const bool moves = only_moves(desc);
  ts_arena arena;
  ts_arena_init(&arena);
  e->lanes = lanes_of(e, desc, moves);
  ts_status status = moves ? emit_moves(e, name, desc, &arena) : emit_function(e, name, desc);
  e->lanes = lanes;
  ts_arena_deinit(&arena);
  return status;
}
