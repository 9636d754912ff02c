/* indexed_add and indexed_put. The rows of `updates` are applied in order, so that the last of two puts wins and sums
 * of floats have one order: a thread owns columns of the rows, or a range of the target where there are many threads,
 * and walks all rows, which gives the same bits as one thread. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/routine.h"

#include <string.h>

/* The number of rows whose offsets are computed together; the buffer of offsets stays in L1. */
#define BLOCK_ROWS 256
/* Minimum of a thread's share of a row's inner elements, in bytes: a smaller share is not worth a pass over all
 * indices. */
#define MIN_COLUMN_BYTES 512
/* From this number of threads on, each thread visits all indices for a range of the target. With fewer threads the
 * visits cost more than they save. */
#define RANGE_THREADS 8
#define MIN_RANGE_ROWS 32768

/* Adds or copies `count` elements. */
typedef void (*update_fn)(char *to, const char *from, int64_t count);

typedef struct scatter_state {
  update_fn update;
  void (*offsets)(const struct scatter_state *s, const char *indices, int64_t rows, int64_t *out);
  int64_t size;          /* of an element, bytes */
  int64_t rows, columns; /* of the indices */
  int64_t index_bytes;   /* of a row of indices */
  ts_shape axes;         /* extents of the indexed axes */
  int64_t axis_strides[TS_MAX_RANK];
  ts_shape outer; /* the other dims up to the last indexed axis */
  int64_t outer_strides[TS_MAX_RANK], outer_count;
  int64_t inner; /* elements after the last indexed axis, which are contiguous */
  int64_t target_bytes, target_elements;
  ts_opcode op;
} scatter_state;

/* ---- updates ---- */

#define DEFINE_ADD(NAME, T)                                           \
  static void add_##NAME(char *to, const char *from, int64_t count) { \
    T *x = (T *)(void *)to;                                           \
    const T *y = (const T *)(const void *)from;                       \
    for (int64_t i = 0; i < count; i++) x[i] = (T)(x[i] + y[i]);      \
  }
#define DEFINE_ADD_HALF(NAME, LOAD, STORE)                                     \
  static void add_##NAME(char *to, const char *from, int64_t count) {          \
    uint16_t *x = (uint16_t *)(void *)to;                                      \
    const uint16_t *y = (const uint16_t *)(const void *)from;                  \
    for (int64_t i = 0; i < count; i++) x[i] = STORE(LOAD(x[i]) + LOAD(y[i])); \
  }
#define DEFINE_ADD_F8(NAME)                                                                   \
  static void add_##NAME(char *to, const char *from, int64_t count) {                         \
    uint8_t *x = (uint8_t *)to;                                                               \
    const uint8_t *y = (const uint8_t *)from;                                                 \
    for (int64_t i = 0; i < count; i++)                                                       \
      x[i] = ts_f64_to_##NAME((double)(ts_##NAME##_to_f32(x[i]) + ts_##NAME##_to_f32(y[i]))); \
  }
DEFINE_ADD(8, uint8_t)
DEFINE_ADD(16, uint16_t)
DEFINE_ADD(32, uint32_t)
DEFINE_ADD(64, uint64_t)
DEFINE_ADD(f32, float)
DEFINE_ADD(f64, double)
DEFINE_ADD_HALF(f16, ts_f16_to_f32, ts_f32_to_f16)
DEFINE_ADD_HALF(bf16, ts_bf16_to_f32, ts_f32_to_bf16)
DEFINE_ADD_F8(e5m2)
DEFINE_ADD_F8(e4m3fn)

#define DEFINE_PUT(BITS) \
  static void put_##BITS(char *to, const char *from, int64_t count) { memcpy(to, from, (size_t)count *(BITS / 8)); }
DEFINE_PUT(8)
DEFINE_PUT(16)
DEFINE_PUT(32)
DEFINE_PUT(64)
DEFINE_PUT(128)

static update_fn pick_update(ts_opcode op, ts_dtype type) {
  static const update_fn adds[TS_DTYPE_COUNT] = {
      [TS_S8] = add_8,    [TS_S16] = add_16,  [TS_S32] = add_32,  [TS_S64] = add_64,         [TS_U8] = add_8,
      [TS_U16] = add_16,  [TS_U32] = add_32,  [TS_U64] = add_64,  [TS_F16] = add_f16,        [TS_BF16] = add_bf16,
      [TS_F32] = add_f32, [TS_F64] = add_f64, [TS_F8] = add_e5m2, [TS_F8E4M3FN] = add_e4m3fn};
  static const update_fn puts[] = {put_8, put_16, put_32, put_64, put_128};
  if (op == TS_OP_INDEXED_ADD) return adds[type];
  switch (ts_dtype_size(type)) {
  case 1: return puts[0];
  case 2: return puts[1];
  case 4: return puts[2];
  case 8: return puts[3];
  case 16: return puts[4];
  default: return NULL;
  }
}

/* ---- indices ---- */

/* The element of the target at which each row begins, -1 where an index is out of bounds. As unsigned numbers negative
 * indices are out of bounds, too. */
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
  const char *indices, *updates;
  char *target;
  int64_t column_step; /* inner elements of a task; all when tasks are ranges */
  int64_t range;       /* elements of the target of a task */
  const _Atomic bool *cancel;
} scatter_run;

/* The work of one task: inner columns [column, column + columns) of rows that begin in [first, last). */
typedef struct scatter_part {
  int64_t column, columns, first, last;
} scatter_part;

static void apply_row(const scatter_run *run, const scatter_part *part, int64_t row, int64_t at) {
  const scatter_state *s = run->s;
  const char *from = run->updates + (row * s->outer_count * s->inner + part->column) * s->size;
  char *to = run->target + (at + part->column) * s->size;
  if (s->outer_count == 1) {
    s->update(to, from, part->columns);
    return;
  }
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t o = 0; o < s->outer_count; o++) {
    int64_t offset = 0;
    for (int32_t d = 0; d < s->outer.rank; d++) offset += index[d] * s->outer_strides[d];
    s->update(to + offset * s->size, from + o * s->inner * s->size, part->columns);
    for (int32_t d = s->outer.rank - 1; d >= 0 && ++index[d] == s->outer.dims[d]; d--) index[d] = 0;
  }
}

static void apply(const scatter_run *run, const scatter_part *part) {
  const scatter_state *s = run->s;
  int64_t offsets[BLOCK_ROWS];
  for (int64_t row = 0; row < s->rows; row += BLOCK_ROWS) {
    int64_t rows = s->rows - row < BLOCK_ROWS ? s->rows - row : BLOCK_ROWS;
    if (ts_cancelled(run->cancel)) return;
    s->offsets(s, run->indices + row * s->index_bytes, rows, offsets);
    for (int64_t r = 0; r < rows; r++) {
      if (offsets[r] < part->first || offsets[r] >= part->last) continue;
      apply_row(run, part, row + r, offsets[r]);
    }
  }
}

static void column_task(void *arg, int64_t task, int worker) {
  const scatter_run *run = arg;
  int64_t column = task * run->column_step, left = run->s->inner - column;
  (void)worker;
  apply(run, &(scatter_part){.column = column,
                             .columns = left < run->column_step ? left : run->column_step,
                             .last = run->s->target_elements});
}

static void range_task(void *arg, int64_t task, int worker) {
  const scatter_run *run = arg;
  (void)worker;
  apply(run, &(scatter_part){.columns = run->s->inner, .first = task * run->range, .last = (task + 1) * run->range});
}

/* Ranges require that each row stays within one range: true when rows are all of the dims behind the axes. */
static bool goes_by_ranges(const scatter_state *s, int width) {
  return width >= RANGE_THREADS && s->outer_count == 1 && s->rows >= MIN_RANGE_ROWS;
}

static void run_tasks(scatter_run *run, const ts_parallel *parallel) {
  const scatter_state *s = run->s;
  int64_t width = parallel->width, most = s->inner * s->size / MIN_COLUMN_BYTES;
  int64_t parts = most < width ? most : width;
  if (parts < 2 && goes_by_ranges(s, (int)width)) {
    run->range = (s->target_elements / s->inner + width - 1) / width * s->inner;
    ts_parallel_run(parallel, width, range_task, run);
    return;
  }
  if (parts < 1) parts = 1;
  run->column_step = (s->inner + parts - 1) / parts;
  ts_parallel_run(parts == 1 ? &ts_parallel_serial : parallel, (s->inner + run->column_step - 1) / run->column_step,
                  column_task, run);
}

static ts_status scatter_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const scatter_state *s = plan->state;
  scatter_run r = {.s = s,
                   .indices = ts_routine_operand(run, 1),
                   .updates = ts_routine_operand(run, 2),
                   .target = ts_routine_result(run, 0),
                   .cancel = run->cancel};
  ts_copy_bytes(r.target, ts_routine_operand(run, 0), s->target_bytes, run->cancel);
  if (s->rows > 0 && s->target_elements > 0) run_tasks(&r, run->parallel);
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

static ts_status scatter_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static void (*const offsets[TS_DTYPE_COUNT])(const scatter_state *, const char *, int64_t, int64_t *) = {
      [TS_S8] = offsets_s8, [TS_S16] = offsets_s16, [TS_S32] = offsets_s32, [TS_S64] = offsets_s64,
      [TS_U8] = offsets_u8, [TS_U16] = offsets_u16, [TS_U32] = offsets_u32, [TS_U64] = offsets_u64};
  static const bool in_place[3] = {true, false, false};
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *target = ts_graph_value(request->graph, op->operands[0]),
                 *indices = ts_graph_value(request->graph, op->operands[1]);
  scatter_state *s;
  if (!offsets[indices->dtype] || !pick_update(op->code, target->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (scatter_state){.update = pick_update(op->code, target->dtype),
                       .offsets = offsets[indices->dtype],
                       .size = (int64_t)ts_dtype_size(target->dtype),
                       .rows = indices->shape->dims[0],
                       .columns = indices->shape->dims[1],
                       .target_bytes = ts_shape_bytes(target->shape, target->dtype),
                       .target_elements = ts_shape_elements(target->shape),
                       .op = op->code};
  s->index_bytes = s->columns * (int64_t)ts_dtype_size(indices->dtype);
  fill_dims(s, target->shape, &op->attrs->axes);
  out->state = s;
  out->cost_ns =
      100 + s->target_bytes / 10 + s->rows * (1 + s->columns + s->outer_count * (1 + s->inner * s->size / 8));
  out->inplace = in_place;
  return TS_SUCCESS;
}

const ts_routine ts_scatter_routine = {"scatter", scatter_plan, NULL, scatter_run_op, NULL};
