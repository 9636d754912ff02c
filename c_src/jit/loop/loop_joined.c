/* JOINED: a MAP of short rows. A block of rows, whose results lie one behind the other, is a few whole vectors. The
 * lanes of an input are at distances that are known, or in a few pieces that are (`far` dims). So a block reads the
 * spans that have these lanes as vectors, and shuffles put the lanes where they belong. Where the spans would have
 * hardly more than one lane each, single elements are read instead.
 *
 * The last block of a unit begins so many rows before its end. A launch is never in place, so what is computed twice is
 * the same. */
#include "jit/loop/loop_joined.h"
#include "jit/emit/emit_interleave.h"

#define MOST_LANES 256 /* of a block */
#define MORE_VECTORS 3
/* Heavier bodies are emitted as few times as possible. */
#define LIGHT 24
#define FULL_PERCENT 90

/* Where the lanes of an input in a block are: `offset` elements from the first one of a piece. */
typedef struct places {
  int piece[MOST_LANES], offset[MOST_LANES];
} places;

/* What one load reads: `count` elements of a piece. */
typedef struct span {
  int piece, first, count;
  ts_v value;
} span;

typedef struct joined {
  int rows, lanes, vectors; /* of a block */
  places *places;           /* of each input */
  span *spans;              /* of each input: MOST_LANES of them */
  int *span_count;
  ts_v *loaded; /* of each input, in the current vector */
  ts_v outer[TS_KERNEL_MAX_RANK];
  ts_v row; /* the first one of the block */
} joined;

/* ---- the size of a block ---- */

static int used_percent(int rows, int points, int lanes) {
  const int vectors = (rows * points + lanes - 1) / lanes;
  return 100 * rows * points / (vectors * lanes);
}

/* As many rows as fill their vectors best. */
static void choose_block(const ts_loop *loop, joined *t) {
  const int points = loop->d->members, lanes = loop->e->lanes, least = (points + lanes - 1) / lanes;
  int best = 0, most = least + (loop->plan.total_weight <= LIGHT ? MORE_VECTORS : 0);
  if (most * lanes > MOST_LANES) most = MOST_LANES / lanes;
  for (int vectors = least; vectors <= most && best < FULL_PERCENT; vectors++) {
    int rows = vectors * lanes / points;
    if (rows > loop->d->rows) rows = loop->d->rows;
    const int percent = used_percent(rows, points, lanes);
    if (percent > best) best = percent, t->rows = rows;
  }
  t->lanes = t->rows * points;
  t->vectors = (t->lanes + lanes - 1) / lanes;
}

/* ---- where lanes are ---- */

/* Indices of the dims of rows and points. */
static void indices_of(const ts_kernel_desc *d, int lane, int *out) {
  for (int i = d->joined; i > 0; i--) {
    out[i] = lane % d->few[i - 1];
    lane /= d->few[i - 1];
  }
  out[0] = lane;
}

static bool has_values(const ts_loop *loop, int32_t input) {
  for (int32_t dim = ts_kernel_row_dim(loop->d); dim < loop->d->rank; dim++)
    if (loop->d->inputs[input].stride[dim] != TS_STRIDE_ZERO) return true;
  return false;
}

/* Pieces are numbered by their first lanes. */
static void find_places(const ts_loop *loop, const joined *t, int32_t input, places *out) {
  const ts_kernel_desc *d = loop->d;
  const ts_kernel_operand *o = &d->inputs[input];
  const int32_t row = ts_kernel_row_dim(d);
  for (int lane = 0; lane < t->lanes; lane++) {
    int index[1 + TS_JOINED_DIMS], first[1 + TS_JOINED_DIMS], piece = 0;
    indices_of(d, lane, index);
    out->offset[lane] = 0;
    for (int i = 0; i <= d->joined; i++) {
      const bool far = o->stride[row + i] == TS_STRIDE_ANY;
      first[i] = far ? index[i] : 0;
      if (o->stride[row + i] == TS_STRIDE_NEAR) out->offset[lane] += index[i] * o->step[row + i];
    }
    for (int i = 0; i <= d->joined; i++) piece = piece * (i == 0 ? 1 : d->few[i - 1]) + first[i];
    out->piece[lane] = piece;
  }
}

/* ---- spans ---- */

#define NO_OFFSET (TS_JOINED_STEP * MOST_LANES)

typedef struct range {
  int low, high;
} range;

/* The least range with the offsets of a piece that lie in `of`; empty (low > high) without any. */
static range find_range(const joined *t, const places *p, int piece, range of) {
  range found = {NO_OFFSET, -NO_OFFSET};
  for (int lane = 0; lane < t->lanes; lane++) {
    const int offset = p->offset[lane];
    if (p->piece[lane] != piece || offset < of.low || offset > of.high) continue;
    if (offset < found.low) found.low = offset;
    if (offset > found.high) found.high = offset;
  }
  return found;
}

/* Adds the spans of a piece, of at most `most` elements each; returns their end. A span is a whole vector where all of
 * its elements are between two that are read. */
static span *add_spans(const joined *t, const places *p, int piece, int most, span *end) {
  const range all = find_range(t, p, piece, (range){-NO_OFFSET, NO_OFFSET});
  range next = all;
  while (next.low <= next.high) {
    const range part = find_range(t, p, piece, (range){next.low, next.low + most - 1});
    span s = {.piece = piece, .first = part.low, .count = part.high - part.low + 1};
    if (s.count < most && all.high - all.low + 1 >= most) {
      if (s.first + most - 1 > all.high) s.first = all.high - most + 1;
      s.count = most;
    }
    *end++ = s;
    next = find_range(t, p, piece, (range){part.high + 1, NO_OFFSET});
  }
  return end;
}

static int add_all(const joined *t, const places *p, int most, span *spans) {
  span *end = spans;
  for (int lane = 0; lane < t->lanes; lane++) {
    bool known = false;
    for (int i = 0; i < lane && !known; i++) known = p->piece[i] == p->piece[lane];
    if (!known) end = add_spans(t, p, p->piece[lane], most, end);
  }
  return (int)(end - spans);
}

static void find_spans(const ts_loop *loop, joined *t, int32_t input) {
  span *spans = t->spans + (size_t)input * MOST_LANES;
  const places *p = &t->places[input];
  const int single = add_all(t, p, 1, spans), count = add_all(t, p, loop->e->lanes, spans);
  t->span_count[input] = count;
  if (2 * count > single) t->span_count[input] = add_all(t, p, 1, spans);
}

/* ---- loads ---- */

static ts_dtype raw_type(const ts_loop *loop, int32_t input) { return ts_loop_raw_type(loop->d->inputs[input].dtype); }

static ts_v piece_address(ts_loop *loop, const joined *t, int32_t input, int piece) {
  const ts_kernel_desc *d = loop->d;
  const int32_t row = ts_kernel_row_dim(d);
  const ts_v *stride = loop->stride + (size_t)input * (size_t)d->rank;
  ts_v at = loop->base[input];
  for (int i = d->joined; i >= 0; i--) {
    const int few = i == 0 ? t->rows : d->few[i - 1], index = piece % few;
    piece /= few;
    if (i == 0 && stride[row]) {
      ts_v number = ts_loop_add(loop, t->row, ts_loop_number(loop, index));
      at = ts_loop_offset(loop, at, ts_loop_mul(loop, number, stride[row]));
    } else if (index > 0) {
      at = ts_loop_offset(loop, at, ts_loop_mul(loop, ts_loop_number(loop, index), stride[row + i]));
    }
  }
  return at;
}

/* A power of two is one load without a mask. */
static ts_v part_of(ts_loop *loop, ts_dtype type, int count) {
  ts_v number = ts_loop_number(loop, count);
  const bool masks = (count & (count - 1)) != 0 && ts_emit_has_masks(loop->e, type, false);
  return masks ? ts_emit_lane_mask(loop->e, number) : number;
}

static void load_span(ts_loop *loop, const joined *t, int32_t input, span *s) {
  const ts_dtype type = raw_type(loop, input);
  ts_v at = piece_address(loop, t, input, s->piece);
  at = ts_loop_element(loop, type, at, ts_loop_number(loop, s->first));
  s->value = s->count == loop->e->lanes ? ts_emit_load(loop->e, type, at)
                                        : ts_emit_load_tail(loop->e, type, at, part_of(loop, type, s->count));
}

/* ---- vectors ---- */

static int span_of(const joined *t, int32_t input, int lane) {
  const span *spans = t->spans + (size_t)input * MOST_LANES;
  const places *p = &t->places[input];
  int i = 0;
  while (spans[i].piece != p->piece[lane] || p->offset[lane] < spans[i].first ||
         p->offset[lane] >= spans[i].first + spans[i].count)
    i++;
  return i;
}

/* Lanes behind the block repeat its last one. */
static int lane_of(const ts_loop *loop, const joined *t, int vector, int lane) {
  lane += vector * loop->e->lanes;
  return lane < t->lanes ? lane : t->lanes - 1;
}

static ts_v join_spans(ts_loop *loop, const joined *t, int32_t input, int vector) {
  const span *spans = t->spans + (size_t)input * MOST_LANES;
  ts_v used[64];
  int number[64], count = 0;
  ts_emit_origin of = {{0}, {0}};
  for (int i = 0; i < loop->e->lanes; i++) {
    const int lane = lane_of(loop, t, vector, i), which = span_of(t, input, lane);
    int k = 0;
    while (k < count && number[k] != which) k++;
    if (k == count) number[count] = which, used[count++] = spans[which].value;
    of.vector[i] = k;
    of.lane[i] = t->places[input].offset[lane] - spans[which].first;
  }
  return ts_emit_join(loop->e, used, count, &of);
}

static ts_v vector_of(ts_loop *loop, const joined *t, int32_t input, int vector) {
  const ts_dtype type = loop->d->inputs[input].dtype;
  ts_v x = join_spans(loop, t, input, vector);
  LLVMTypeRef memory = LLVMVectorType(ts_emit_memory_type(loop->e, type), (unsigned)loop->e->lanes);
  return ts_emit_to_register(loop->e, type, LLVMBuildBitCast(loop->e->b, x, memory, ""));
}

static void store_vector(ts_loop *loop, const joined *t, int32_t output, int vector) {
  const ts_kernel_output *o = &loop->d->outputs[output];
  const ts_dtype type = o->operand.dtype;
  const int lanes = loop->e->lanes, left = t->lanes - vector * lanes;
  ts_v point = ts_loop_mul(loop, t->row, ts_loop_number(loop, loop->d->members));
  ts_v at = ts_loop_element(loop, type, loop->base[ts_loop_output_operand(loop, output)], point);
  at = ts_loop_element(loop, type, at, ts_loop_number(loop, (int64_t)vector * lanes));
  if (left >= lanes)
    ts_emit_store(loop->e, type, loop->value[o->node], at);
  else
    ts_emit_store_tail(loop->e, type, loop->value[o->node], at, part_of(loop, type, left));
}

/* ---- blocks ---- */

static ts_status some_rows(ts_loop *loop, joined *t, const ts_emit_cut *cut) {
  const ts_point at = {.index = ts_loop_number(loop, 0)};
  for (int32_t i = 0; i < loop->d->input_count; i++)
    for (int k = 0; k < t->span_count[i]; k++) load_span(loop, t, i, &t->spans[(size_t)i * MOST_LANES + (size_t)k]);
  for (int v = 0; v < t->vectors; v++) {
    if (v > 0) ts_emit_cut_block(loop->e, cut);
    for (int32_t i = 0; i < loop->d->input_count; i++)
      if (t->span_count[i] > 0) t->loaded[i] = vector_of(loop, t, i, v);
    TS_TRY(ts_loop_nodes(loop, TS_LEVEL_POINT, &at));
    for (int32_t i = 0; i < loop->d->output_count; i++) store_vector(loop, t, i, v);
  }
  return TS_SUCCESS;
}

/* Counters: of the outer dims, then the unit's number. */
static ts_status unit_body(void *context, ts_loop *loop, const ts_v *counters) {
  joined *t = context;
  LLVMBuilderRef b = loop->e->b;
  const int32_t dim = ts_kernel_row_dim(loop->d);
  ts_v length = ts_loop_number(loop, TS_JOINED_BLOCK), rows = ts_loop_number(loop, t->rows);
  for (int32_t i = 0; i < dim; i++) t->outer[i] = counters[i];
  ts_loop_set_row(loop, t->outer, dim);
  TS_TRY(ts_loop_nodes(loop, TS_LEVEL_ROW, NULL));
  ts_v from = ts_loop_mul(loop, counters[dim], length);
  ts_v all = ts_loop_arg(loop, dim);
  ts_v to = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){ts_loop_add(loop, from, length), all}, 2);
  ts_v last = LLVMBuildSub(b, to, rows, "");
  ts_counter block = ts_loop_count_some(loop, from, to, rows);
  t->row = ts_emit_intrinsic(loop->e, "llvm.smin", NULL, (ts_v[]){block.index, last}, 2);
  const ts_emit_cut cut = {LLVMBuildICmp(b, LLVMIntSGE, t->row, ts_loop_number(loop, 0), ""), loop->leave};
  TS_TRY(some_rows(loop, t, &cut));
  ts_loop_count_end(loop, &block);
  return TS_SUCCESS;
}

ts_status ts_loop_joined(ts_loop *loop) {
  const ts_kernel_desc *d = loop->d;
  const size_t inputs = (size_t)d->input_count;
  const int32_t dim = ts_kernel_row_dim(d);
  joined t = {0};
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.places));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs * MOST_LANES, &t.spans));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.span_count));
  TS_TRY(TS_ARENA_ARRAY(&loop->arena, inputs, &t.loaded));
  choose_block(loop, &t);
  for (int32_t i = 0; i < d->input_count; i++) {
    if (!has_values(loop, i)) continue;
    find_places(loop, &t, i, &t.places[i]);
    find_spans(loop, &t, i);
  }
  loop->loaded = t.loaded;
  ts_v up = ts_loop_add(loop, loop->extent[dim], ts_loop_number(loop, TS_JOINED_BLOCK - 1));
  loop->extent[dim] = LLVMBuildUDiv(loop->e->b, up, ts_loop_number(loop, TS_JOINED_BLOCK), "");
  return ts_loop_rows(loop, dim + 1, unit_body, &t);
}
