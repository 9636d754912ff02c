/* TILE: a MAP with inputs that are contiguous along a line, the dims before the row. These inputs are read in squares
 * of lanes x lanes elements, transposed in registers, and stored on the stack. The rows of the square are loaded from
 * there like any other row.
 *
 * Where a row is several dims, lines are not a stride apart: tables have the offsets of those of a square and of the
 * next square.
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
/* From so many bytes of all operands on, rows are prefetched: below, they are in a cache from which that costs more
 * than it gives. */
#define FAR_BYTES (INT64_C(16) << 20)
#define LEAST_FETCHED 4 /* bytes of an element */

typedef struct tile {
  uint8_t *tiled; /* per input */
  ts_v *square;   /* of each input: its transposed square, and space to collect one at the edge */
  ts_v *edge;
  ts_v *table, *edge_table; /* of each input: the offsets of its lines; NULL where these are a stride apart */
  ts_v state;               /* the counters of the next line in a table, then its offset in each table */
  int32_t line, row;        /* the first dim of a line, and of a row */
  ts_v length;              /* of a row */
  ts_v lines;               /* the length of a line: there are so many rows */
  ts_v blocks;              /* of rows */
  ts_v strip;               /* blocks of a strip; the last one may have fewer */
  ts_v outer;               /* how many indices the outer dims have together */
  ts_v is_far;              /* i1: rows are not in a cache that is near; NULL: they are not prefetched */
  /* of the current square */
  ts_v counters[TS_KERNEL_MAX_RANK]; /* of its first row, along the dims before the row */
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

/* ---- tables of lines ---- */

static ts_v word_at(ts_loop *loop, ts_v words, ts_v index) {
  return LLVMBuildGEP2(loop->e->b, loop->i64, words, &index, 1, "");
}

static ts_v load_word(ts_loop *loop, ts_v words, ts_v index) {
  return LLVMBuildLoad2(loop->e->b, loop->i64, word_at(loop, words, index), "");
}

static ts_v phi_of(ts_loop *loop, ts_v first, LLVMBasicBlockRef before) {
  ts_v phi = LLVMBuildPhi(loop->e->b, loop->i64, "");
  LLVMAddIncoming(phi, &first, &before, 1);
  return phi;
}

static void close_phi(ts_loop *loop, ts_v phi, ts_v next) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(loop->e->b);
  LLVMAddIncoming(phi, &next, &here, 1);
}

/* How many words the state has: the counters, then an offset for each input. */
static int32_t state_words(const ts_loop *loop, const tile *t) { return loop->d->rank - t->row + loop->d->input_count; }

/* The words of the state that are in use: those of other inputs are not. */
static bool is_used(const ts_loop *loop, const tile *t, int32_t word) {
  const int32_t counters = loop->d->rank - t->row;
  return word < counters || t->tiled[word - counters];
}

/* The state of the line after `now`. The last line of a row is its own successor. */
static void next_line_of(ts_loop *loop, const tile *t, const ts_v *now, ts_v *next) {
  LLVMBuilderRef b = loop->e->b;
  const int32_t rank = loop->d->rank, counters = rank - t->row;
  ts_v zero = ts_loop_number(loop, 0), wraps[TS_KERNEL_MAX_RANK];
  ts_v carry = LLVMConstInt(LLVMInt1TypeInContext(loop->e->context), 1, 0);
  for (int32_t k = counters - 1; k >= 0; k--) {
    ts_v sum = ts_loop_add(loop, now[k], LLVMBuildZExt(b, carry, loop->i64, ""));
    wraps[k] = LLVMBuildICmp(b, LLVMIntEQ, sum, loop->extent[t->row + k], "");
    next[k] = LLVMBuildSelect(b, wraps[k], zero, sum, "");
    carry = wraps[k];
  }
  for (int32_t k = 0; k < counters; k++) next[k] = LLVMBuildSelect(b, wraps[0], now[k], next[k], "");
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (!t->tiled[i]) continue;
    ts_v sum = ts_loop_add(loop, now[counters + i], stride_of(loop, i, rank - 1));
    for (int32_t k = counters - 1; k > 0; k--) { /* from the end of one dim to the next element of the one before */
      ts_v back = ts_loop_mul(loop, loop->extent[t->row + k], stride_of(loop, i, t->row + k));
      ts_v step = LLVMBuildSub(b, stride_of(loop, i, t->row + k - 1), back, "");
      sum = ts_loop_add(loop, sum, LLVMBuildSelect(b, wraps[k], step, zero, ""));
    }
    next[counters + i] = LLVMBuildSelect(b, wraps[0], now[counters + i], sum, "");
  }
}

/* Writes entries [from, to) of the tables. */
static void fill_tables(ts_loop *loop, const tile *t, int64_t from, int64_t to) {
  const int32_t words = state_words(loop, t), counters = loop->d->rank - t->row;
  ts_v now[TS_KERNEL_MAX_RANK + TS_KERNEL_MAX_OPERANDS], next[TS_KERNEL_MAX_RANK + TS_KERNEL_MAX_OPERANDS];
  for (int32_t i = 0; i < words; i++) now[i] = load_word(loop, t->state, ts_loop_number(loop, i));
  LLVMBasicBlockRef before = LLVMGetInsertBlock(loop->e->b);
  ts_counter entry =
      ts_loop_count_some(loop, ts_loop_number(loop, from), ts_loop_number(loop, to), ts_loop_number(loop, 1));
  for (int32_t i = 0; i < words; i++)
    if (is_used(loop, t, i)) now[i] = phi_of(loop, now[i], before);
  for (int32_t i = 0; i < loop->d->input_count; i++)
    if (t->tiled[i]) LLVMBuildStore(loop->e->b, now[counters + i], word_at(loop, t->table[i], entry.index));
  next_line_of(loop, t, now, next);
  for (int32_t i = 0; i < words; i++)
    if (is_used(loop, t, i)) close_phi(loop, now[i], next[i]);
  ts_loop_count_end(loop, &entry);
  for (int32_t i = 0; i < words; i++)
    if (is_used(loop, t, i)) LLVMBuildStore(loop->e->b, next[i], word_at(loop, t->state, ts_loop_number(loop, i)));
}

static void start_tables(ts_loop *loop, const tile *t) {
  for (int32_t i = 0; i < state_words(loop, t); i++)
    LLVMBuildStore(loop->e->b, ts_loop_number(loop, 0), word_at(loop, t->state, ts_loop_number(loop, i)));
  fill_tables(loop, t, 0, 2 * (int64_t)loop->e->lanes);
}

/* The lines of the next square become those of the current one. */
static void advance_tables(ts_loop *loop, const tile *t) {
  LLVMTypeRef half = LLVMVectorType(loop->i64, (unsigned)loop->e->lanes);
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (!t->tiled[i]) continue;
    ts_v upper = LLVMBuildLoad2(loop->e->b, half, word_at(loop, t->table[i], lanes(loop)), "");
    LLVMSetAlignment(upper, 8);
    LLVMSetAlignment(LLVMBuildStore(loop->e->b, upper, t->table[i]), 8);
  }
  fill_tables(loop, t, loop->e->lanes, 2 * (int64_t)loop->e->lanes);
}

/* ---- reading a square ---- */

/* The lines of a square whose last rows are past the edge: their existing elements, collected on the stack. Without a
 * table those behind the last column are left out. */
static void collect_edge(ts_loop *loop, const tile *t, int32_t input, ts_v from, ts_v stride, ts_v pitch) {
  ts_dtype type = ts_loop_raw_type(loop->d->inputs[input].dtype);
  ts_v count = t->table[input] ? lanes(loop) : t->columns;
  ts_counter line = ts_loop_count(loop, ts_loop_number(loop, 0), count, ts_loop_number(loop, 1));
  ts_v offset = t->table[input] ? load_word(loop, t->table[input], line.index) : ts_loop_mul(loop, line.index, stride);
  ts_v source = ts_loop_offset(loop, from, offset);
  ts_v value = ts_emit_load_tail(loop->e, type, source, t->rows);
  ts_emit_store(loop->e, type, value, ts_loop_offset(loop, t->edge[input], ts_loop_mul(loop, line.index, pitch)));
  ts_loop_count_end(loop, &line);
}

/* From line i to the next one, or to itself: lines past the last column repeat it. */
static ts_v next_line(ts_loop *loop, const tile *t, int i, ts_v stride) {
  ts_v more = LLVMBuildICmp(loop->e->b, LLVMIntSGT, t->columns, ts_loop_number(loop, i + 1), "");
  return LLVMBuildSelect(loop->e->b, more, stride, ts_loop_number(loop, 0), "");
}

#define FETCHED_BYTES 128

/* The bytes of a line of a square. Of a longer one than FETCHED_BYTES the first, since so many would not stay in the
 * first cache until they are read. */
static void prefetch_line(ts_loop *loop, ts_v from, ts_dtype type, bool to_write) {
  const int64_t length = loop->e->lanes * (int64_t)ts_dtype_size(type), bytes = length > FETCHED_BYTES ? 1 : length;
  for (int64_t at = 0; at < bytes; at += 64)
    ts_emit_prefetch(loop->e, ts_loop_offset(loop, from, ts_loop_number(loop, at)), to_write);
}

/* Where the lines of the current square are: from an address, a stride apart or by a table. */
typedef struct line_places {
  ts_v from, stride, table;
} line_places;

/* Hardware prefetchers do not predict the next square: its lines are a stride apart. */
static void load_lines(ts_loop *loop, const tile *t, int32_t input, line_places at, ts_v *rows) {
  ts_emit *e = loop->e;
  ts_dtype type = ts_loop_raw_type(loop->d->inputs[input].dtype);
  ts_v ahead = at.table ? NULL : ts_loop_mul(loop, at.stride, lanes(loop));
  for (int i = 0; i < e->lanes; i++) {
    if (at.table) {
      ts_v line = load_word(loop, at.table, ts_loop_number(loop, i));
      ts_v next = load_word(loop, at.table, ts_loop_number(loop, e->lanes + i));
      rows[i] = ts_emit_load(e, type, ts_loop_offset(loop, at.from, line));
      prefetch_line(loop, ts_loop_offset(loop, at.from, next), type, false);
      continue;
    }
    rows[i] = ts_emit_load(e, type, at.from);
    prefetch_line(loop, ts_loop_offset(loop, at.from, ahead), type, false);
    at.from = ts_loop_offset(loop, at.from, next_line(loop, t, i, at.stride));
  }
}

static void read_square(ts_loop *loop, const tile *t, int32_t input) {
  ts_emit *e = loop->e;
  ts_dtype type = ts_loop_raw_type(loop->d->inputs[input].dtype);
  ts_v stride = stride_of(loop, input, loop->d->rank - 1), table = t->table[input];
  ts_v pitch = ts_loop_number(loop, e->lanes * (int64_t)ts_dtype_size(type));
  ts_loop_set_row(loop, t->counters, t->row);
  ts_v from = loop->base[input];
  if (!table) from = ts_loop_offset(loop, from, ts_loop_mul(loop, t->column, stride));

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
  if (table)
    table = ts_loop_either(loop, table, here, t->edge_table[input], collected);
  else
    stride = ts_loop_either(loop, stride, here, pitch, collected);

  ts_v rows[64];
  load_lines(loop, t, input, (line_places){from, stride, table}, rows);
  if (is_turned(loop, input)) turn(loop, t, rows);
  for (int i = 0; i < e->lanes; i++) {
    ts_emit_store(e, type, rows[i],
                  ts_loop_offset(loop, t->square[input], ts_loop_mul(loop, pitch, ts_loop_number(loop, i))));
  }
}

/* ---- rows of a square ---- */

/* The counters of the row after `now`. */
static void next_row(ts_loop *loop, const tile *t, const ts_v *now, ts_v *next) {
  LLVMBuilderRef b = loop->e->b;
  ts_v carry = ts_loop_number(loop, 1);
  for (int32_t i = t->row - 1; i >= t->line; i--) {
    next[i] = ts_loop_add(loop, now[i], carry);
    if (i == t->line) break;
    ts_v wraps = LLVMBuildICmp(b, LLVMIntEQ, next[i], loop->extent[i], "");
    next[i] = LLVMBuildSelect(b, wraps, ts_loop_number(loop, 0), next[i], "");
    carry = LLVMBuildZExt(b, wraps, loop->i64, "");
  }
}

/* True for an operand that is worth a prefetch along rows: not one of narrow elements, whose vectors share lines. */
static bool is_fetched(const ts_loop *loop, const tile *t, int32_t operand) {
  const ts_kernel_desc *d = loop->d;
  const bool is_input = operand < d->input_count;
  const ts_kernel_operand *o = is_input ? &d->inputs[operand] : &d->outputs[operand - d->input_count].operand;
  if (is_input ? t->tiled[operand] : d->outputs[operand - d->input_count].stream) return false;
  return o->stride[d->rank - 1] == TS_STRIDE_UNIT && ts_dtype_size(o->dtype) >= LEAST_FETCHED;
}

/* A loop over the rows of a square: sets the bases. */
typedef struct square_loop {
  ts_counter row;
  ts_v counters[TS_KERNEL_MAX_RANK];
} square_loop;

static square_loop open_rows(ts_loop *loop, const tile *t) {
  square_loop s;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(loop->e->b);
  s.row = ts_loop_count_some(loop, ts_loop_number(loop, 0), t->rows, ts_loop_number(loop, 1));
  for (int32_t i = 0; i < t->row; i++)
    s.counters[i] = i < t->line || loop->d->lined == 0 ? t->counters[i] : phi_of(loop, t->counters[i], before);
  if (loop->d->lined == 0) s.counters[t->line] = ts_loop_add(loop, t->counters[t->line], s.row.index);
  ts_loop_set_row(loop, s.counters, t->row);
  return s;
}

static void close_rows(ts_loop *loop, const tile *t, square_loop *s) {
  ts_v next[TS_KERNEL_MAX_RANK];
  if (loop->d->lined > 0) next_row(loop, t, s->counters, next);
  for (int32_t i = t->line; i < t->row && loop->d->lined > 0; i++) close_phi(loop, s->counters[i], next[i]);
  ts_loop_count_end(loop, &s->row);
}

/* The operands that are read and written along the rows, where these continue in the next square: hardware prefetchers
 * do not follow so many rows side by side. */
static void prefetch_rows(ts_loop *loop, const tile *t) {
  const ts_kernel_desc *d = loop->d;
  LLVMBuilderRef b = loop->e->b;
  LLVMBasicBlockRef fetch = ts_loop_block(loop, "fetch"), fetched = ts_loop_block(loop, "fetched");
  LLVMBuildCondBr(b, t->is_far, fetch, fetched);
  LLVMPositionBuilderAtEnd(b, fetch);
  square_loop s = open_rows(loop, t);
  ts_v next = ts_loop_add(loop, t->column, lanes(loop));
  for (int32_t i = 0; i < d->input_count + d->output_count; i++) {
    const bool is_input = i < d->input_count;
    const ts_kernel_operand *o = is_input ? &d->inputs[i] : &d->outputs[i - d->input_count].operand;
    if (is_fetched(loop, t, i))
      prefetch_line(loop, ts_loop_element(loop, o->dtype, loop->base[i], next), o->dtype, !is_input);
  }
  close_rows(loop, t, &s);
  LLVMBuildBr(b, fetched);
  LLVMPositionBuilderAtEnd(b, fetched);
}

static ts_status square_rows(ts_loop *loop, const tile *t) {
  square_loop s = open_rows(loop, t);
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (!t->tiled[i]) continue;
    const int64_t size = (int64_t)ts_dtype_size(loop->d->inputs[i].dtype);
    ts_v pitch = ts_loop_number(loop, is_turned(loop, i) ? loop->e->lanes * size : size);
    loop->tile_row[i] = ts_loop_offset(loop, t->square[i], ts_loop_mul(loop, s.row.index, pitch));
  }
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  ts_point at = {.index = t->column, .part = t->part, .whole = t->whole};
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &at));
  ts_loop_store(loop, &at, NULL, 0);
  close_rows(loop, t, &s);
  return TS_SUCCESS;
}

/* Sets the counters of a row along the dims of a line. */
static void split_row(ts_loop *loop, tile *t, ts_v number) {
  for (int32_t i = t->row - 1; i > t->line; i--) {
    t->counters[i] = LLVMBuildURem(loop->e->b, number, loop->extent[i], "");
    number = LLVMBuildUDiv(loop->e->b, number, loop->extent[i], "");
  }
  t->counters[t->line] = number;
}

static ts_status squares(ts_loop *loop, tile *t, ts_v first_row, ts_v end_row) {
  if (loop->d->joined > 0) start_tables(loop, t);
  ts_counter column = ts_loop_count(loop, ts_loop_number(loop, 0), t->length, lanes(loop));
  t->column = column.index;
  t->columns = smaller(loop, LLVMBuildSub(loop->e->b, t->length, column.index, ""), lanes(loop));
  t->part = loop->masks ? ts_emit_lane_mask(loop->e, t->columns) : t->columns;
  t->whole = LLVMBuildICmp(loop->e->b, LLVMIntEQ, t->columns, lanes(loop), "");
  ts_counter row = ts_loop_count(loop, first_row, end_row, lanes(loop));
  split_row(loop, t, row.index);
  t->rows = smaller(loop, LLVMBuildSub(loop->e->b, end_row, row.index, ""), lanes(loop));
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    if (t->tiled[i]) read_square(loop, t, i);
  }
  if (t->is_far) prefetch_rows(loop, t);
  TS_TRY(square_rows(loop, t));
  ts_loop_count_end(loop, &row);
  if (loop->d->joined > 0) advance_tables(loop, t);
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
  for (int32_t i = t->line - 1; i >= 0; i--) {
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
  TS_TRY(squares(loop, t, first, smaller(loop, end, t->lines)));

  ts_v next = ts_loop_add(loop, unit, count);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b), done = ts_loop_block(loop, "units_done");
  LLVMAddIncoming(unit, &next, &here, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, next, loop->end, ""), head, done);
  LLVMPositionBuilderAtEnd(b, done);
  return TS_SUCCESS;
}

static ts_v words_on_stack(ts_loop *loop, int64_t count) {
  return ts_emit_alloca(loop->e, LLVMArrayType2(loop->i64, (uint64_t)count));
}

/* The lines of an edge on the stack lie one behind the other; the next square's are not prefetched from there. */
static void make_tables(ts_loop *loop, tile *t, int32_t input) {
  const int64_t count = loop->e->lanes, pitch = count * (int64_t)ts_dtype_size(loop->d->inputs[input].dtype);
  t->table[input] = words_on_stack(loop, 2 * count);
  t->edge_table[input] = words_on_stack(loop, 2 * count);
  for (int64_t i = 0; i < 2 * count; i++)
    LLVMBuildStore(loop->e->b, ts_loop_number(loop, i % count * pitch),
                   word_at(loop, t->edge_table[input], ts_loop_number(loop, i)));
}

static void find_tiled(ts_loop *loop, tile *t) {
  ts_emit *e = loop->e;
  for (int32_t i = 0; i < loop->d->input_count; i++) {
    const ts_kernel_operand *o = &loop->d->inputs[i];
    t->tiled[i] = o->stride[t->row - 1] == TS_STRIDE_UNIT && o->stride[loop->d->rank - 1] == TS_STRIDE_ANY;
    if (!t->tiled[i]) continue;
    LLVMTypeRef square = LLVMArrayType2(ts_emit_memory_type(e, o->dtype), (uint64_t)e->lanes * (uint64_t)e->lanes);
    t->square[i] = ts_emit_alloca(e, square);
    t->edge[i] = ts_emit_alloca(e, square);
    if (loop->d->joined > 0) make_tables(loop, t, i);
  }
  if (loop->d->joined > 0) t->state = words_on_stack(loop, state_words(loop, t));
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
  t->outer = ts_loop_number(loop, 1);
  t->strip = t->blocks;
  if (t->line == 0) return;
  for (int32_t i = 0; i < t->line; i++) t->outer = ts_loop_mul(loop, t->outer, loop->extent[i]);
  const int64_t few = SHORT_ROW_BYTES / (int64_t)ts_dtype_size(loop->d->outputs[0].operand.dtype);
  ts_v is_short = LLVMBuildICmp(b, LLVMIntSLT, t->length, ts_loop_number(loop, few), "");
  ts_v strip = smaller(loop, t->blocks, ts_loop_number(loop, strip_blocks(loop, t)));
  t->strip = LLVMBuildSelect(b, is_short, strip, t->blocks, "");
}

/* The product of the extents of dims [from, to). */
static ts_v length_of(ts_loop *loop, int32_t from, int32_t to) {
  ts_v length = loop->extent[from];
  for (int32_t i = from + 1; i < to; i++) length = ts_loop_mul(loop, length, loop->extent[i]);
  return length;
}

static void find_far(ts_loop *loop, tile *t) {
  const ts_kernel_desc *d = loop->d;
  int64_t size = 0;
  bool some = false;
  for (int32_t i = 0; i < d->input_count; i++) size += (int64_t)ts_dtype_size(d->inputs[i].dtype);
  for (int32_t i = 0; i < d->output_count; i++) size += (int64_t)ts_dtype_size(d->outputs[i].operand.dtype);
  for (int32_t i = 0; i < d->input_count + d->output_count; i++) some |= is_fetched(loop, t, i);
  ts_v points = ts_loop_mul(loop, ts_loop_mul(loop, t->outer, t->lines), t->length);
  ts_v far = ts_loop_number(loop, FAR_BYTES / size);
  if (some) t->is_far = LLVMBuildICmp(loop->e->b, LLVMIntSGT, points, far, "");
}

static ts_status emit_tile(ts_loop *loop) {
  tile t = {.line = ts_kernel_line_dim(loop->d), .row = ts_kernel_row_dim(loop->d)};
  size_t inputs = (size_t)loop->d->input_count;
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.tiled));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.square));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.edge));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.table));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.edge_table));
  t.length = length_of(loop, t.row, loop->d->rank);
  t.lines = length_of(loop, t.line, t.row);
  find_tiled(loop, &t);
  loop->tiled = t.tiled;
  ts_v up = ts_loop_add(loop, t.lines, ts_loop_number(loop, loop->e->lanes - 1));
  t.blocks = LLVMBuildUDiv(loop->e->b, up, lanes(loop), "");
  plan_strips(loop, &t);
  find_far(loop, &t);
  return emit_units(loop, &t);
}

ts_status ts_loop_emit_tile(ts_emit *e, const char *name, const ts_kernel_desc *desc) {
  ts_loop loop;
  ts_status status = ts_loop_open(&loop, e, name, desc);
  if (!status) status = emit_tile(&loop);
  return ts_loop_close(&loop, status);
}
