/* indexed_add and indexed_put. The rows of `updates` are applied in order, so that the last of two puts wins and sums
 * of floats have one order. A thread owns a range of the target, or columns of the rows, and walks all rows: the bits
 * equal one thread's. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/pick.h"
#include "kernel/routine.h"
#include "kernel/scatter_rows.h"

#include <string.h>

#define BLOCK_ROWS TS_SCATTER_BLOCK
/* Minimum of a thread's share of a row's inner elements, in bytes: a smaller share is not worth a pass over all
 * indices. */
#define MIN_COLUMN_BYTES 512
/* With fewer rows of updates, or bytes of the target, threads do not take ranges of the target. */
#define MIN_RANGE_ROWS 32768
#define MIN_RANGE_BYTES (INT64_C(1) << 18)
/* From this number of bytes on, a put row costs more than the copy that it replaces. */
#define PUT_ONCE_BYTES 64
/* A thread's columns are a multiple of every machine's vectors. So no column is added in a tail in one split and in a
 * vector in another: for a sum of two NaNs they may keep different ones. */
#define COLUMNS 64
#define AHEAD TS_SCATTER_AHEAD
/* A target of at most so many bytes leaves room for the updates in the first cache. */
#define NEAR_BYTES (INT64_C(1) << 14)

typedef struct scatter_state {
  scatter_update_fn update, update_runs; /* the second one, if not NULL, where there are runs */
  const ts_pick *pick;
  int direct; /* bytes of an index, if rows have one index that is picked without conversion; or 0 */
  void (*offsets)(const struct scatter_state *s, const char *indices, int64_t rows, int64_t *out);
  int64_t size;          /* of an element, bytes */
  int64_t rows, columns; /* of the indices */
  int64_t index_bytes;   /* of a row of indices */
  ts_shape axes;         /* extents of the indexed axes */
  int64_t axis_strides[TS_MAX_RANK];
  ts_shape outer; /* the other dims up to the last indexed axis */
  int64_t outer_strides[TS_MAX_RANK], outer_count;
  int64_t inner; /* elements after the last indexed axis: contiguous */
  int64_t target_bytes, target_elements;
  ts_opcode op;
} scatter_state;

/* ---- indices ---- */

/* The element of the target where each row begins, -1 if an index is out of bounds. As unsigned numbers, negative
 * indices are also out of bounds. */
#define DEFINE_OFFSETS(NAME, T)                                                                         \
  static void offsets_##NAME(const scatter_state *s, const char *indices, int64_t rows, int64_t *out) { \
    const T *x = (const T *)(const void *)indices;                                                      \
    for (int64_t r = 0; r < rows; r++, x += s->columns) {                                               \
      int64_t at = 0;                                                                                   \
      bool inside = true;                                                                               \
      for (int64_t c = 0; c < s->columns; c++) {                                                        \
        uint64_t index = (uint64_t)(int64_t)x[c];                                                       \
        inside &= index < (uint64_t)s->axes.dims[c];                                                    \
        at += inside ? (int64_t)index * s->axis_strides[c] : 0;                                         \
      }                                                                                                 \
      out[r] = inside ? at : -1;                                                                        \
    }                                                                                                   \
  }
DEFINE_OFFSETS(s8, int8_t)
DEFINE_OFFSETS(s16, int16_t)
DEFINE_OFFSETS(s32, int32_t)
DEFINE_OFFSETS(s64, int64_t)
DEFINE_OFFSETS(u8, uint8_t)
DEFINE_OFFSETS(u16, uint16_t)
DEFINE_OFFSETS(u32, uint32_t)
DEFINE_OFFSETS(u64, uint64_t)

/* ---- a run ---- */

typedef struct scatter_run {
  const scatter_state *s;
  const char *from; /* the operand that the target's memory begins with */
  const char *indices, *updates;
  char *target;
  uint32_t *last; /* of puts of long rows: workspace, a number for each row of the target; or NULL */
  int64_t step;   /* of a task: inner elements, or elements of the target */
  const _Atomic bool *cancel;
} scatter_run;

/* The work of one task: inner columns [column, column + columns) of rows that begin in [first, last). */
typedef struct scatter_part {
  int64_t column, columns, first, last;
} scatter_part;

/* Indices of one column are picked before they become offsets: fewer are left. */
static void pick_indices(const scatter_state *s, const scatter_part *part, const char *indices, scatter_rows *out) {
  const bool whole = s->outer_count > 1 || part->last == s->target_elements;
  const int64_t stride = s->axis_strides[0], first = part->first == 0 ? 0 : part->first / stride;
  const int64_t last = whole ? s->axes.dims[0] : part->last / stride, span = last - first - 1;
  if (s->direct == 4) {
    uint32_t picked[BLOCK_ROWS + TS_PICK_SLACK];
    out->count = s->pick->pick32((const uint32_t *)(const void *)indices, out->count, (uint32_t)first, (uint32_t)span,
                                 picked, out->row);
    for (int64_t i = 0; i < out->count; i++) out->at[i] = picked[i] * stride;
  } else {
    out->count = s->pick->pick64((const uint64_t *)(const void *)indices, out->count, (uint64_t)first, (uint64_t)span,
                                 (uint64_t *)out->at, out->row);
    for (int64_t i = 0; i < out->count; i++) out->at[i] *= stride;
  }
}

/* Looks at the first rows of a block. All tasks must agree: a sum of two NaNs may keep another one in the other
 * function. */
#define LOOK_AT_ROWS 48
#define DEFINE_HAS_RUNS(NAME, T)                                          \
  static bool NAME(const char *indices, int64_t count) {                  \
    const T *index = (const T *)(const void *)indices;                    \
    uint32_t same = 0;                                                    \
    for (int64_t i = 1; i < count; i++) same += index[i] == index[i - 1]; \
    return 2 * (int64_t)same >= count;                                    \
  }
DEFINE_HAS_RUNS(has_runs_32, uint32_t)
DEFINE_HAS_RUNS(has_runs_64, uint64_t)

static bool has_runs(const scatter_state *s, const char *indices, int64_t count) {
  if (!s->update_runs || !s->direct) return false;
  if (count > LOOK_AT_ROWS) count = LOOK_AT_ROWS;
  return s->direct == 4 ? has_runs_32(indices, count) : has_runs_64(indices, count);
}

/* Picks the rows of a block that begin in the part. */
static void pick_rows(const scatter_state *s, const scatter_part *part, const char *indices, scatter_rows *out) {
  int64_t offsets[BLOCK_ROWS];
  s->offsets(s, indices, out->count, offsets);
  out->count = s->pick->pick64((const uint64_t *)offsets, out->count, (uint64_t)part->first,
                               (uint64_t)(part->last - part->first - 1), (uint64_t *)out->at, out->row);
}

/* Prefetches past the last row take the first row. */
static void pad_rows(scatter_rows *rows) {
  for (int i = 0; i < AHEAD; i++) rows->at[rows->count + i] = rows->at[0];
}

/* Each part of a row for itself: an element belongs to one of them, whose rows are in order. */
static void apply_rows(const scatter_run *run, const scatter_part *part, const char *updates,
                       const scatter_rows *rows) {
  const scatter_state *s = run->s;
  const scatter_update_fn update = rows->has_runs ? s->update_runs : s->update;
  int64_t index[TS_MAX_RANK];
  for (int32_t d = 0; d < s->outer.rank; d++) index[d] = 0;
  for (int64_t o = 0; o < s->outer_count; o++) {
    int64_t offset = part->column;
    for (int32_t d = 0; d < s->outer.rank; d++) offset += index[d] * s->outer_strides[d];
    update(run->target + offset * s->size, updates + (o * s->inner + part->column) * s->size, rows);
    for (int32_t d = s->outer.rank - 1; d >= 0 && ++index[d] == s->outer.dims[d]; d--) index[d] = 0;
  }
}

/* The rows of the block from `first` on that begin in the part. */
static void find_rows(const scatter_run *run, const scatter_part *part, int64_t first, scatter_rows *rows) {
  const scatter_state *s = run->s;
  rows->count = s->rows - first < BLOCK_ROWS ? s->rows - first : BLOCK_ROWS;
  rows->has_runs = has_runs(s, run->indices + first * s->index_bytes, rows->count);
  (s->direct ? pick_indices : pick_rows)(s, part, run->indices + first * s->index_bytes, rows);
}

static void apply(const scatter_run *run, const scatter_part *part) {
  const scatter_state *s = run->s;
  const int64_t stride = s->outer_count * s->inner;
  scatter_rows rows;
  rows.columns = part->columns;
  rows.stride = stride;
  rows.is_near = s->target_bytes <= NEAR_BYTES;
  for (int64_t first = 0; first < s->rows && !ts_cancelled(run->cancel); first += BLOCK_ROWS) {
    find_rows(run, part, first, &rows);
    pad_rows(&rows);
    if (rows.count > 0) apply_rows(run, part, run->updates + first * stride * s->size, &rows);
  }
}

static void column_task(void *arg, int64_t task, int worker) {
  const scatter_run *run = arg;
  int64_t column = task * run->step, left = run->s->inner - column;
  (void)worker;
  apply(run, &(scatter_part){
                 .column = column, .columns = left < run->step ? left : run->step, .last = run->s->target_elements});
}

/* ---- puts into ranges: every row of the result is written once ---- */

/* The last row that each of the part's rows is given, counted from 1; 0: none. */
static void find_last(const scatter_run *run, const scatter_part *part, uint32_t *last) {
  const scatter_state *s = run->s;
  scatter_rows rows;
  memset(last, 0, (size_t)((part->last - part->first) / s->inner) * sizeof *last);
  for (int64_t first = 0; first < s->rows && !ts_cancelled(run->cancel); first += BLOCK_ROWS) {
    find_rows(run, part, first, &rows);
    for (int64_t i = 0; i < rows.count; i++)
      last[(rows.at[i] - part->first) / s->inner] = (uint32_t)(first + rows.row[i] + 1);
  }
}

static void put_last(const scatter_run *run, const scatter_part *part, const uint32_t *last) {
  const int64_t bytes = run->s->inner * run->s->size, first = part->first / run->s->inner;
  const int64_t count = part->last / run->s->inner - first;
  for (int64_t r = 0; r < count; r++) {
    const uint32_t next = r + AHEAD < count ? last[r + AHEAD] : 0;
    if (r % BLOCK_ROWS == 0 && ts_cancelled(run->cancel)) return;
    if (next > 0) ts_scatter_prefetch(run->updates + (next - 1) * bytes, bytes);
    memcpy(run->target + (first + r) * bytes,
           last[r] > 0 ? run->updates + (last[r] - 1) * bytes : run->from + (first + r) * bytes, (size_t)bytes);
  }
}

/* A row that is put need not be copied before; one into the operand's own memory is. */
static bool is_put_once(const scatter_run *run) { return run->last && run->target != run->from; }

static void range_task(void *arg, int64_t task, int worker) {
  const scatter_run *run = arg;
  const scatter_state *s = run->s;
  const int64_t first = task * run->step, end = first + run->step;
  const scatter_part part = {
      .columns = s->inner, .first = first, .last = end < s->target_elements ? end : s->target_elements};
  (void)worker;
  if (part.first >= part.last) return;
  if (is_put_once(run)) {
    find_last(run, &part, run->last + first / s->inner);
    put_last(run, &part, run->last + first / s->inner);
    return;
  }
  ts_copy_bytes(run->target + part.first * s->size, run->from + part.first * s->size,
                (part.last - part.first) * s->size, run->cancel);
  apply(run, &part);
}

/* Ranges require that each row stays within one range: true when rows are all of the dims behind the axes. */
static bool is_by_ranges(const scatter_state *s, int64_t width) {
  return width > 1 && s->outer_count == 1 && (s->target_bytes >= MIN_RANGE_BYTES || s->rows >= MIN_RANGE_ROWS);
}

static void run_ranges(scatter_run *run, const ts_parallel *parallel) {
  const scatter_state *s = run->s;
  run->step = (s->target_elements / s->inner + parallel->width - 1) / parallel->width * s->inner;
  ts_parallel_run(parallel, parallel->width, range_task, run);
}

static void run_columns(scatter_run *run, const ts_parallel *parallel) {
  const scatter_state *s = run->s;
  int64_t most = s->inner * s->size / MIN_COLUMN_BYTES, parts = most < parallel->width ? most : parallel->width;
  ts_copy_bytes(run->target, run->from, s->target_bytes, run->cancel);
  if (parts <= 1) { /* most scatters: without the divisions that find a task's part */
    apply(run, &(scatter_part){.columns = s->inner, .last = s->target_elements});
    return;
  }
  run->step = ((s->inner + parts - 1) / parts + COLUMNS - 1) / COLUMNS * COLUMNS;
  ts_parallel_run(parallel, (s->inner + run->step - 1) / run->step, column_task, run);
}

static ts_status scatter_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const scatter_state *s = plan->state;
  scatter_run r = {.s = s,
                   .from = ts_routine_operand(run, 0),
                   .indices = ts_routine_operand(run, 1),
                   .updates = ts_routine_operand(run, 2),
                   .target = ts_routine_result(run, 0),
                   .last = plan->workspace > 0 ? (uint32_t *)(void *)run->workspace : NULL,
                   .cancel = run->cancel};
  if (s->rows == 0 || s->target_elements == 0)
    ts_copy_bytes(r.target, r.from, s->target_bytes, run->cancel);
  else if (is_by_ranges(s, run->parallel->width))
    run_ranges(&r, run->parallel);
  else
    run_columns(&r, run->parallel);
  return ts_check_cancelled(run->cancel, ts_op_name(s->op));
}

/* ---- the plan ---- */

static void fill_dims(scatter_state *s, const ts_shape *target, const ts_dims *axes) {
  int64_t strides[TS_MAX_RANK];
  int32_t a = 0, last = (int32_t)axes->dims[axes->rank - 1];
  ts_shape_strides(target, strides);
  s->outer_count = s->inner = 1;
  for (int32_t d = 0; d < target->rank; d++) {
    if (a < axes->rank && axes->dims[a] == d) {
      s->axis_strides[a] = strides[d];
      s->axes.dims[a++] = target->dims[d];
    } else if (d < last) {
      s->outer_strides[s->outer.rank] = strides[d];
      s->outer.dims[s->outer.rank++] = target->dims[d];
      s->outer_count *= target->dims[d];
    } else {
      s->inner *= target->dims[d];
    }
  }
  s->axes.rank = axes->rank;
}

/* The bytes for the numbers of rows. Puts need these to write each row of the result once. 0 if few rows are put into a
 * copy: that is cheaper. */
static int64_t last_bytes(const scatter_state *s) {
  if (s->op != TS_OP_INDEXED_PUT || s->outer_count > 1 || s->inner * s->size < PUT_ONCE_BYTES) return 0;
  const int64_t target_rows = s->target_elements / s->inner;
  return s->rows < UINT32_MAX && s->rows >= target_rows / 4 ? target_rows * (int64_t)sizeof(uint32_t) : 0;
}

/* Indices of 4 bytes cannot be compared with more of them. A dim without elements has no stride. */
static int direct_bytes(const scatter_state *s) {
  if (s->columns != 1 || s->inner == 0 || s->axis_strides[0] == 0) return 0;
  if (s->index_bytes == 8) return 8;
  return s->index_bytes == 4 && s->axes.dims[0] <= INT32_MAX ? 4 : 0;
}

static void take_wide(scatter_state *s, ts_dtype type) {
  const scatter_update_fn wide = ts_scatter_update_wide(s->op, type, s->inner * s->size);
  if (!wide) return;
  s->update = wide;
  s->update_runs = NULL;
}

static ts_status scatter_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static void (*const offsets[TS_DTYPE_COUNT])(const scatter_state *, const char *, int64_t, int64_t *) = {
      [TS_S8] = offsets_s8, [TS_S16] = offsets_s16, [TS_S32] = offsets_s32, [TS_S64] = offsets_s64,
      [TS_U8] = offsets_u8, [TS_U16] = offsets_u16, [TS_U32] = offsets_u32, [TS_U64] = offsets_u64};
  static const bool in_place[3] = {true, false, false};
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *target = ts_graph_value(request->graph, op->operands[0]),
                 *indices = ts_graph_value(request->graph, op->operands[1]);
  scatter_state *s;
  if (!offsets[indices->dtype] || !ts_scatter_update(op->code, target->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (scatter_state){.update = ts_scatter_update(op->code, target->dtype),
                       .update_runs = ts_scatter_update_runs(op->code, target->dtype),
                       .pick = ts_pick_host(),
                       .offsets = offsets[indices->dtype],
                       .size = (int64_t)ts_dtype_size(target->dtype),
                       .rows = indices->shape->dims[0],
                       .columns = indices->shape->dims[1],
                       .target_bytes = ts_shape_bytes(target->shape, target->dtype),
                       .target_elements = ts_shape_elements(target->shape),
                       .op = op->code};
  s->index_bytes = s->columns * (int64_t)ts_dtype_size(indices->dtype);
  fill_dims(s, target->shape, &op->attrs->axes);
  s->direct = direct_bytes(s);
  take_wide(s, target->dtype);
  out->state = s;
  out->cost_ns =
      100 + s->target_bytes / 10 + s->rows * (1 + s->columns + s->outer_count * (1 + s->inner * s->size / 8));
  out->inplace = in_place;
  out->workspace = last_bytes(s);
  return TS_SUCCESS;
}

const ts_routine ts_scatter_routine = {"scatter", scatter_plan, NULL, scatter_run_op, NULL};
