/* TILE: a MAP with inputs that are contiguous along dim rank-2. These inputs are read in squares of lanes x lanes
 * elements, transposed in registers, and stored on the stack. The rows of the square are loaded from there like any
 * other row.
 *
 * Several blocks of rows are processed side by side, so that at least whole cache lines are read from each line of the
 * input. Where rows are short, a strip of blocks is processed for all outer indices before the next one: the rows of
 * the next outer index are often in the same lines of the result, and those of all blocks together would have left the
 * caches by then. */
#include "jit/loop/loop_body.h"

#define BLOCKS_AT_ONCE 4
/* What a strip has of each line of an input: enough for the prefetchers. */
#define STRIP_BYTES 1024
#define SHORT_ROW_BYTES 128

typedef struct tile {
  uint8_t *tiled; /* per input */
  ts_v *square;   /* of each input: its transposed square, and space to collect one at the edge */
  ts_v *edge;
  ts_v blocks; /* of rows along dim rank-2 */
  ts_v strip;  /* blocks of a strip; the last one may have fewer */
  ts_v outer;  /* how many indices the outer dims have together */
  /* of the current square */
  ts_v counters[TS_KERNEL_MAX_RANK]; /* dim rank-2: its first row */
  ts_v column, rows, columns;
  ts_v part, whole; /* of `columns`, as of a point */
} tile;

static ts_v smaller(ts_loop *loop, ts_v a, ts_v b) {
  return ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){a, b}, 2);
}

static ts_v lanes(ts_loop *loop) { return ts_loop_number(loop, loop->e->lanes); }

static ts_v stride_of(ts_loop *loop, int32_t input, int32_t dim) { return loop->stride[input * loop->d->rank + dim]; }

/* Elements of 16 bytes fill a part of a register each: those of a row are taken from the lines of a square as it is. */
static bool is_turned(const ts_loop *loop, int32_t input) { return ts_dtype_size(loop->d->inputs[input].dtype) <= 8; }

/* ---- transposition in registers ---- */

/* Swaps the off-diagonal blocks of size `by` of rows a (above) and b. */
static void swap_blocks(ts_emit *e, ts_v *a, ts_v *b, int by) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef upper[64], lower[64];
  for (int i = 0; i < e->lanes; i++) {
    bool left = !(i & by);
    upper[i] = LLVMConstInt(i32, (unsigned)(left ? i : e->lanes + i - by), 0);
    lower[i] = LLVMConstInt(i32, (unsigned)(left ? i + by : e->lanes + i), 0);
  }
  ts_v x = *a, y = *b;
  *a = LLVMBuildShuffleVector(e->b, x, y, LLVMConstVector(upper, (unsigned)e->lanes), "");
  *b = LLVMBuildShuffleVector(e->b, x, y, LLVMConstVector(lower, (unsigned)e->lanes), "");
}

/* Each step gets a block of its own, because LLVM searches for better shuffles within one block. Over all steps
 * together this takes twice as long (a quarter of the kernel's compile time) and finds nothing. The condition is always
 * true, but LLVM cannot know that. */
static void next_step(ts_loop *loop, const tile *t) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef next = ts_loop_block(loop, "turn");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, t->rows, ts_loop_number(loop, 0), ""), next, loop->leave);
  LLVMPositionBuilderAtEnd(b, next);
}

static void turn(ts_loop *loop, const tile *t, ts_v *rows) {
  ts_emit *e = loop->e;
  for (int by = e->lanes / 2; by > 0; by /= 2) {
    next_step(loop, t);
    for (int i = 0; i < e->lanes; i++) {
      if (!(i & by)) swap_blocks(e, &rows[i], &rows[i + by], by);
    }
  }
}

/* ---- reading a square ---- */

/* The lines of a square whose last rows are past the edge: their existing elements, collected on the stack. */
static void collect_edge(ts_loop *loop, const tile *t, int32_t input, ts_v from, ts_v stride, ts_v pitch) {
  ts_dtype type = ts_loop_raw_type(loop->d->inputs[input].dtype);
  ts_counter line = ts_loop_count(loop, ts_loop_number(loop, 0), t->columns, ts_loop_number(loop, 1));
  ts_v source = ts_loop_offset(loop, from, ts_loop_mul(loop, line.index, stride));
  ts_v value = ts_emit_load_tail(loop->e, type, source, t->rows);
  ts_emit_store(loop->e, type, value, ts_loop_offset(loop, t->edge[input], ts_loop_mul(loop, line.index, pitch)));
  ts_loop_count_end(loop, &line);
}

/* From line i to the next one, or to itself: lines past the last column repeat it. */
static ts_v next_line(ts_loop *loop, const tile *t, int i, ts_v stride) {
  ts_v more = LLVMBuildICmp(loop->e->b, LLVMIntSGT, t->columns, ts_loop_number(loop, i + 1), "");
  return LLVMBuildSelect(loop->e->b, more, stride, ts_loop_number(loop, 0), "");
}

static void read_square(ts_loop *loop, const tile *t, int32_t input) {
  ts_emit *e = loop->e;
  ts_dtype type = ts_loop_raw_type(loop->d->inputs[input].dtype);
  int32_t last = loop->d->rank - 1;
  ts_v stride = stride_of(loop, input, last), pitch = ts_loop_number(loop, e->lanes * (int64_t)ts_dtype_size(type));
  ts_loop_set_row(loop, t->counters, last);
  ts_v from = ts_loop_offset(loop, loop->base[input], ts_loop_mul(loop, t->column, stride));

  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b), edge = ts_loop_block(loop, "edge"),
                    read = ts_loop_block(loop, "read");
  ts_v whole = LLVMBuildICmp(e->b, LLVMIntEQ, t->rows, lanes(loop), "");
  LLVMBuildCondBr(e->b, whole, read, edge);
  LLVMPositionBuilderAtEnd(e->b, edge);
  collect_edge(loop, t, input, from, stride, pitch);
  LLVMBasicBlockRef collected = LLVMGetInsertBlock(e->b);
  LLVMBuildBr(e->b, read);
  LLVMPositionBuilderAtEnd(e->b, read);
  from = ts_loop_either(loop, from, here, t->edge[input], collected);
  stride = ts_loop_either(loop, stride, here, pitch, collected);

  ts_v rows[64], ahead = ts_loop_mul(loop, stride, lanes(loop));
  for (int i = 0; i < e->lanes; i++) {
    rows[i] = ts_emit_load(e, type, from);
    /* hardware prefetchers do not predict the next square: its lines are a stride apart */
    ts_emit_prefetch(loop->e, ts_loop_offset(loop, from, ahead), false);
    from = ts_loop_offset(loop, from, next_line(loop, t, i, stride));
  }
  if (is_turned(loop, input)) turn(loop, t, rows);
  for (int i = 0; i < e->lanes; i++) {
    ts_emit_store(e, type, rows[i],
                  ts_loop_offset(loop, t->square[input], ts_loop_mul(loop, pitch, ts_loop_number(loop, i))));
  }
}

/* ---- rows of a square ---- */

static ts_status square_rows(ts_loop *loop, const tile *t) {
  int32_t rank = loop->d->rank;
  ts_v counters[TS_KERNEL_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) counters[i] = t->counters[i];
  ts_counter row = ts_loop_count(loop, ts_loop_number(loop, 0), t->rows, ts_loop_number(loop, 1));
  counters[rank - 2] = ts_loop_add(loop, t->counters[rank - 2], row.index);
  ts_loop_set_row(loop, counters, rank - 1);
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (!t->tiled[i]) continue;
    const int64_t size = (int64_t)ts_dtype_size(loop->d->inputs[i].dtype);
    ts_v pitch = ts_loop_number(loop, is_turned(loop, i) ? loop->e->lanes * size : size);
    loop->tile_row[i] = ts_loop_offset(loop, t->square[i], ts_loop_mul(loop, row.index, pitch));
  }
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  ts_point at = {.index = t->column, .part = t->part, .whole = t->whole};
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &at));
  ts_loop_store(loop, &at, NULL, 0);
  ts_loop_count_end(loop, &row);
  return TS_SUCCESS;
}

static ts_status squares(ts_loop *loop, tile *t, ts_v first_row, ts_v end_row) {
  int32_t rank = loop->d->rank;
  ts_v extent = loop->extent[rank - 1];
  ts_counter column = ts_loop_count(loop, ts_loop_number(loop, 0), extent, lanes(loop));
  t->column = column.index;
  t->columns = smaller(loop, LLVMBuildSub(loop->e->b, extent, column.index, ""), lanes(loop));
  t->part = loop->masks ? ts_emit_lane_mask(loop->e, t->columns) : t->columns;
  t->whole = LLVMBuildICmp(loop->e->b, LLVMIntEQ, t->columns, lanes(loop), "");
  ts_counter row = ts_loop_count(loop, first_row, end_row, lanes(loop));
  t->counters[rank - 2] = row.index;
  t->rows = smaller(loop, LLVMBuildSub(loop->e->b, end_row, row.index, ""), lanes(loop));
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (t->tiled[i]) read_square(loop, t, i);
  }
  TS_TRY(square_rows(loop, t));
  ts_loop_count_end(loop, &row);
  ts_loop_count_end(loop, &column);
  return TS_SUCCESS;
}

/* ---- units ---- */

/* Splits `unit` into the outer counters and the block. Units count strips outermost, and the blocks of one innermost.
 * `out_end` is the end of the strip's blocks. */
static ts_v split_unit(ts_loop *loop, tile *t, ts_v unit, ts_v *out_end) {
  LLVMBuilderRef b = loop->e->b;
  ts_v units = ts_loop_mul(loop, t->strip, t->outer);
  ts_v first = ts_loop_mul(loop, LLVMBuildUDiv(b, unit, units, ""), t->strip);
  ts_v count = smaller(loop, t->strip, LLVMBuildSub(b, t->blocks, first, ""));
  ts_v in_strip = LLVMBuildURem(b, unit, units, "");
  ts_v block = LLVMBuildURem(b, in_strip, count, ""), rest = LLVMBuildUDiv(b, in_strip, count, "");
  for (int32_t i = loop->d->rank - 3; i >= 0; i--) {
    t->counters[i] = LLVMBuildURem(b, rest, loop->extent[i], "");
    rest = LLVMBuildUDiv(b, rest, loop->extent[i], "");
  }
  *out_end = ts_loop_add(loop, first, count);
  return ts_loop_add(loop, first, block);
}

static ts_status emit_units(ts_loop *loop, tile *t) {
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ts_loop_block(loop, "unit");
  LLVMBuildBr(b, head); /* begin < end here */
  LLVMPositionBuilderAtEnd(b, head);
  ts_v unit = LLVMBuildPhi(b, loop->i64, "");
  LLVMAddIncoming(unit, &loop->begin, &before, 1);
  ts_v strip_end, block = split_unit(loop, t, unit, &strip_end);
  ts_v count = smaller(loop, LLVMBuildSub(b, loop->end, unit, ""), LLVMBuildSub(b, strip_end, block, ""));
  count = smaller(loop, count, ts_loop_number(loop, BLOCKS_AT_ONCE));
  ts_v first = ts_loop_mul(loop, block, lanes(loop));
  ts_v end = ts_loop_mul(loop, ts_loop_add(loop, block, count), lanes(loop));
  TS_TRY(squares(loop, t, first, smaller(loop, end, loop->extent[loop->d->rank - 2])));

  ts_v next = ts_loop_add(loop, unit, count);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b), done = ts_loop_block(loop, "units_done");
  LLVMAddIncoming(unit, &next, &here, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, loop->end, ""), head, done);
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

static void find_tiled(ts_loop *loop, tile *t) {
  ts_emit *e = loop->e;
  int32_t rank = loop->d->rank;
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    const ts_kernel_operand *o = &loop->d->inputs[i];
    t->tiled[i] = o->stride[rank - 2] == TS_STRIDE_UNIT && o->stride[rank - 1] == TS_STRIDE_ANY;
    if (!t->tiled[i]) continue;
    LLVMTypeRef square = LLVMArrayType2(ts_emit_memory_type(e, o->dtype), (uint64_t)e->lanes * (uint64_t)e->lanes);
    t->square[i] = ts_emit_alloca(e, square);
    t->edge[i] = ts_emit_alloca(e, square);
  }
}

static int64_t strip_blocks(const ts_loop *loop, const tile *t) {
  int64_t size = 1;
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    const int64_t element = (int64_t)ts_dtype_size(loop->d->inputs[i].dtype);
    if (t->tiled[i] && element > size) size = element;
  }
  const int64_t blocks = STRIP_BYTES / (size * loop->e->lanes);
  return blocks > BLOCKS_AT_ONCE ? blocks : BLOCKS_AT_ONCE;
}

/* Long rows, or those without outer dims, are one strip. */
static void plan_strips(ts_loop *loop, tile *t) {
  LLVMBuilderRef b = loop->e->b;
  const int32_t rank = loop->d->rank;
  t->outer = ts_loop_number(loop, 1);
  t->strip = t->blocks;
  if (rank == 2) return;
  for (int32_t i = 0; i < rank - 2; i++) t->outer = ts_loop_mul(loop, t->outer, loop->extent[i]);
  const int64_t few = SHORT_ROW_BYTES / (int64_t)ts_dtype_size(loop->d->outputs[0].operand.dtype);
  ts_v is_short = LLVMBuildICmp(b, LLVMIntSLT, loop->extent[rank - 1], ts_loop_number(loop, few), "");
  ts_v strip = smaller(loop, t->blocks, ts_loop_number(loop, strip_blocks(loop, t)));
  t->strip = LLVMBuildSelect(b, is_short, strip, t->blocks, "");
}

static ts_status emit_tile(ts_loop *loop) {
  tile t = {0};
  size_t inputs = (size_t)loop->d->input_count;
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.tiled));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.square));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.edge));
  find_tiled(loop, &t);
  loop->tiled = t.tiled;
  ts_v up = ts_loop_add(loop, loop->extent[loop->d->rank - 2], ts_loop_number(loop, loop->e->lanes - 1));
  t.blocks = LLVMBuildUDiv(loop->e->b, up, lanes(loop), "");
  plan_strips(loop, &t);
  return emit_units(loop, &t);
}

ts_status ts_loop_emit_tile(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  ts_loop loop;
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_tile(&loop);
  return ts_loop_close(&loop, status);
}
