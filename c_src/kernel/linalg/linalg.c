#include "kernel/linalg/linalg.h"

#include "jit/session/target.h"
#include "kernel/gemm/gemm_internal.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

const ts_linalg_vector *ts_linalg_vector_of(ts_dtype type) {
  int which = type == TS_C128 ? 2 : type == TS_F64;
  return &(*TS_TARGET_PICK(ts_linalg_vector))[which];
}

int64_t ts_linalg_batch(const ts_shape *shape) {
  int64_t batch = 1;
  for (int32_t d = 0; d < shape->rank - 2; d++) batch *= shape->dims[d];
  return batch;
}

/* ---- copies ---- */

/* By squares, as one side or the other may go through memory by columns. */
#define SQUARE TS_LINALG_SQUARE

typedef struct uint128_t {
  uint64_t halves[2];
} uint128_t;

#define DEFINE_COPY(BITS)                                                                                    \
  static void copy##BITS(const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols) { \
    const uint##BITS##_t *x = (const uint##BITS##_t *)(const void *)from->data;                              \
    uint##BITS##_t *y = (uint##BITS##_t *)(void *)to->data;                                                  \
    for (int64_t r = 0; r < rows; r += SQUARE)                                                               \
      for (int64_t c = 0; c < cols; c += SQUARE)                                                             \
        for (int64_t i = r; i < ts_linalg_min(rows, r + SQUARE); i++)                                        \
          for (int64_t k = c; k < ts_linalg_min(cols, c + SQUARE); k++)                                      \
            y[i * to->row + k * to->col] = x[i * from->row + k * from->col];                                 \
  }
DEFINE_COPY(32)
DEFINE_COPY(64)
DEFINE_COPY(128)

static void copy_elements(const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols, int size) {
  if (from->col == 1 && to->col == 1 && from->data != to->data) {
    for (int64_t i = 0; i < rows; i++)
      memcpy(ts_linalg_at(to, i, 0, size), ts_linalg_at(from, i, 0, size), (size_t)(cols * size));
    return;
  }
  (size == 4 ? copy32 : size == 8 ? copy64 : copy128)(from, to, rows, cols);
}

void ts_linalg_turn(const char **rows, int64_t count, int64_t cols, char *to, int64_t to_row, int size) {
  const gemm_pack pack = {.dtype = size == 4 ? TS_F32 : TS_F64, .step = SQUARE, .width = (int)to_row};
  if (size < 16 && count == SQUARE && to_row >= SQUARE && to_row <= INT_MAX) {
    ts_gemm_pack_rows(&pack, rows, SQUARE, cols, to);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    const ts_linalg_view from = {(char *)(uintptr_t)rows[i], 1, 0}, column = {to + i * size, to_row, 0};
    copy_elements(&from, &column, cols, 1, size);
  }
}

/* Columns of `from` (contiguous elements) become columns of `to` (whose rows are contiguous): whole squares of them, in
 * registers. Returns the columns that are done. */
static int64_t transpose_columns(const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols,
                                 int size) {
  int64_t col = 0;
  for (; col + SQUARE <= cols; col += SQUARE) {
    const char *some[SQUARE];
    for (int i = 0; i < SQUARE; i++) some[i] = ts_linalg_at(from, 0, col + i, size);
    ts_linalg_turn(some, SQUARE, rows, ts_linalg_at(to, 0, col, size), to->row, size);
  }
  return col;
}

void ts_linalg_copy(const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols, int size) {
  if (size < 16 && from->row == 1 && to->col == 1) {
    const int64_t done = transpose_columns(from, to, rows, cols, size);
    const ts_linalg_view source = {ts_linalg_at(from, 0, done, size), from->row, from->col};
    const ts_linalg_view rest = {ts_linalg_at(to, 0, done, size), to->row, to->col};
    copy_elements(&source, &rest, rows, cols - done, size);
  } else if (size < 16 && from->col == 1 && to->row == 1) {
    const ts_linalg_view source = {from->data, from->col, from->row}, transposed = {to->data, to->col, to->row};
    ts_linalg_copy(&source, &transposed, cols, rows, size);
  } else {
    copy_elements(from, to, rows, cols, size);
  }
}

void ts_linalg_widen(ts_dtype type, const void *from, int64_t count, float *to) {
  const uint16_t *x = from;
  if (type == TS_F16)
    for (int64_t i = 0; i < count; i++) to[i] = ts_f16_to_f32(x[i]);
  else
    for (int64_t i = 0; i < count; i++) to[i] = ts_bf16_to_f32(x[i]);
}

void ts_linalg_narrow(ts_dtype type, const float *from, int64_t count, void *to) {
  uint16_t *y = to;
  if (type == TS_F16)
    for (int64_t i = 0; i < count; i++) y[i] = ts_f32_to_f16(from[i]);
  else
    for (int64_t i = 0; i < count; i++) y[i] = ts_f32_to_bf16(from[i]);
}

/* ---- tasks ---- */

typedef struct task_run {
  ts_linalg_task_fn fn;
  void *arg;
  _Atomic(ts_status) failed;
} task_run;

static void run_task(void *arg, int64_t task, int worker) {
  task_run *run = arg;
  if (atomic_load_explicit(&run->failed, memory_order_relaxed)) return;
  ts_status_keep_first(&run->failed, run->fn(run->arg, task, worker));
}

ts_status ts_linalg_run_tasks(const ts_parallel *parallel, int64_t tasks, ts_linalg_task_fn fn, void *arg) {
  task_run run = {.fn = fn, .arg = arg};
  ts_parallel_run(parallel, tasks, run_task, &run);
  return atomic_load(&run.failed);
}
