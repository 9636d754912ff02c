/* indexed_add and indexed_put. The rows of `updates` are applied in order, so that the last of two puts wins and sums
 * of floats have one order. A thread owns a range of the target, or columns of the rows, and walks all rows: the bits
 * equal one thread's. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/pick.h"
#include "kernel/routine.h"

#include <string.h>

/* The number of rows whose offsets are computed together; their buffer stays in L1. */
#define BLOCK_ROWS 256
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
/* Rows between a prefetch and the update, and the most bytes of a row that are prefetched. */
#define AHEAD 8
#define AHEAD_BYTES 512

/* The rows of one block that a task applies: row `row` of the updates changes the target's row at element `at`. */
typedef struct scatter_rows {
  int64_t at[BLOCK_ROWS + TS_PICK_SLACK], count;
  uint32_t row[BLOCK_ROWS + TS_PICK_SLACK];
  int64_t columns; /* elements of a row's part that are changed */
  int64_t stride;  /* elements from one row of the updates to the next */
  bool has_runs;   /* most rows where the block begins have the index of the row before, also rows of other tasks */
} scatter_rows;

/* Adds or copies the rows. */
typedef void (*update_fn)(char *to, const char *from, const scatter_rows *rows);

typedef struct scatter_state {
  update_fn update, update_runs; /* the second one, if not NULL, where there are runs */
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

/* ---- updates ---- */

static inline void prefetch_row(const char *row, int64_t bytes) {
  for (int64_t at = 0; at < bytes && at < AHEAD_BYTES; at += 64) __builtin_prefetch(row + at, 1);
}

/* Applies CHANGE to elements x and y of target and updates. Rows of one element have a loop of their own. */
#define DEFINE_UPDATE(NAME, T, CHANGE)                                                               \
  static void NAME(char *to, const char *from, const scatter_rows *rows) {                           \
    const T *updates = (const T *)(const void *)from;                                                \
    T *target = (T *)(void *)to;                                                                     \
    if (rows->columns == 1) {                                                                        \
      for (int64_t i = 0; i < rows->count; i++) {                                                    \
        T *x = target + rows->at[i];                                                                 \
        const T y = updates[rows->row[i] * rows->stride];                                            \
        *x = CHANGE(*x, y);                                                                          \
      }                                                                                              \
      return;                                                                                        \
    }                                                                                                \
    for (int64_t i = 0; i < rows->count; i++) {                                                      \
      T *x = target + rows->at[i];                                                                   \
      const T *y = updates + rows->row[i] * rows->stride;                                            \
      prefetch_row((const char *)(target + rows->at[i + AHEAD]), rows->columns *(int64_t)sizeof(T)); \
      for (int64_t c = 0; c < rows->columns; c++) x[c] = CHANGE(x[c], y[c]);                         \
    }                                                                                                \
  }
#define PLUS_8(x, y) (uint8_t)((x) + (y))
#define PLUS_16(x, y) (uint16_t)((x) + (y))
#define PLUS(x, y) ((x) + (y))
#define PLUS_BF16(x, y) ts_f32_to_bf16(ts_bf16_to_f32(x) + ts_bf16_to_f32(y))
#define PLUS_E5M2(x, y) ts_f64_to_e5m2((double)(ts_e5m2_to_f32(x) + ts_e5m2_to_f32(y)))
#define PLUS_E4M3FN(x, y) ts_f64_to_e4m3fn((double)(ts_e4m3fn_to_f32(x) + ts_e4m3fn_to_f32(y)))
#define SECOND(x, y) (y)
DEFINE_UPDATE(add_8, uint8_t, PLUS_8)
DEFINE_UPDATE(add_16, uint16_t, PLUS_16)
DEFINE_UPDATE(add_32, uint32_t, PLUS)
DEFINE_UPDATE(add_64, uint64_t, PLUS)
DEFINE_UPDATE(add_f32, float, PLUS)
DEFINE_UPDATE(add_f64, double, PLUS)
DEFINE_UPDATE(add_one_bf16, uint16_t, PLUS_BF16)
DEFINE_UPDATE(add_e5m2, uint8_t, PLUS_E5M2)
DEFINE_UPDATE(add_e4m3fn, uint8_t, PLUS_E4M3FN)

/* Rows of 16-bit floats. */
static void add_halves(ts_dtype type, char *to, const char *from, const scatter_rows *rows) {
  const gemm_widen *with = ts_gemm_widen_host();
  uint16_t *target = (uint16_t *)(void *)to;
  for (int64_t i = 0; i < rows->count; i++) {
    prefetch_row((const char *)(target + rows->at[i + AHEAD]), rows->columns * (int64_t)sizeof *target);
    with->add_half(type, (const uint16_t *)(const void *)from + rows->row[i] * rows->stride, rows->columns,
                   target + rows->at[i]);
  }
}
static void add_f16(char *to, const char *from, const scatter_rows *rows) { add_halves(TS_F16, to, from, rows); }
static void add_bf16(char *to, const char *from, const scatter_rows *rows) {
  if (rows->columns == 1)
    add_one_bf16(to, from, rows);
  else
    add_halves(TS_BF16, to, from, rows);
}

typedef struct two_words {
  uint64_t word[2];
} two_words;
DEFINE_UPDATE(put_8, uint8_t, SECOND)
DEFINE_UPDATE(put_16, uint16_t, SECOND)
DEFINE_UPDATE(put_32, uint32_t, SECOND)
DEFINE_UPDATE(put_64, uint64_t, SECOND)
DEFINE_UPDATE(put_128, two_words, SECOND)

/* Rows in a run change the same row of the target, as those of a segment do. Its elements stay in registers, so no row
 * waits until the memory of the one before is written. Two vectors at once divide COLUMNS. */
#define RUN_VECTOR 16 /* bytes */
#define DEFINE_RUNS(NAME, T)                                                               \
  typedef T NAME##_vector __attribute__((vector_size(RUN_VECTOR)));                        \
  static void NAME(char *to, const char *from, const scatter_rows *rows) {                 \
    const int64_t lanes = RUN_VECTOR / (int64_t)sizeof(T);                                 \
    const T *updates = (const T *)(const void *)from;                                      \
    for (int64_t i = 0, end; i < rows->count; i = end) {                                   \
      T *x = (T *)(void *)to + rows->at[i];                                                \
      int64_t c = 0;                                                                       \
      for (end = i + 1; end < rows->count && rows->at[end] == rows->at[i];) end++;         \
      for (; c + 2 * lanes <= rows->columns; c += 2 * lanes) {                             \
        NAME##_vector low, high, y, z;                                                     \
        memcpy(&low, x + c, sizeof low);                                                   \
        memcpy(&high, x + c + lanes, sizeof high);                                         \
        for (int64_t r = i; r < end; r++) {                                                \
          memcpy(&y, updates + rows->row[r] * rows->stride + c, sizeof y);                 \
          memcpy(&z, updates + rows->row[r] * rows->stride + c + lanes, sizeof z);         \
          low += y;                                                                        \
          high += z;                                                                       \
        }                                                                                  \
        memcpy(x + c, &low, sizeof low);                                                   \
        memcpy(x + c + lanes, &high, sizeof high);                                         \
      }                                                                                    \
      for (; c < rows->columns; c++) {                                                     \
        T sum = x[c];                                                                      \
        for (int64_t r = i; r < end; r++) sum += updates[rows->row[r] * rows->stride + c]; \
        x[c] = sum;                                                                        \
      }                                                                                    \
    }                                                                                      \
  }
DEFINE_RUNS(add_runs_32, uint32_t)
DEFINE_RUNS(add_runs_64, uint64_t)
DEFINE_RUNS(add_runs_f32, float)
DEFINE_RUNS(add_runs_f64, double)

static update_fn pick_update_runs(ts_opcode op, ts_dtype type) {
  static const update_fn adds[TS_DTYPE_COUNT] = {
      [TS_S32] = add_runs_32, [TS_S64] = add_runs_64,  [TS_U32] = add_runs_32,
      [TS_U64] = add_runs_64, [TS_F32] = add_runs_f32, [TS_F64] = add_runs_f64};
  return op == TS_OP_INDEXED_ADD ? adds[type] : NULL;
}

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
  const update_fn update = rows->has_runs ? s->update_runs : s->update;
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
    if (next > 0) prefetch_row(run->updates + (next - 1) * bytes, bytes);
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
                       .update_runs = pick_update_runs(op->code, target->dtype),
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
  out->state = s;
  out->cost_ns =
      100 + s->target_bytes / 10 + s->rows * (1 + s->columns + s->outer_count * (1 + s->inner * s->size / 8));
  out->inplace = in_place;
  out->workspace = last_bytes(s);
  return TS_SUCCESS;
}

const ts_routine ts_scatter_routine = {"scatter", scatter_plan, NULL, scatter_run_op, NULL};
