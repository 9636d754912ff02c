/* Shared by the routines of linear algebra. Matrices are the last two dims of an operand. Half types are computed in
 * f32 and rounded once at the end. Thread-safe. */
#ifndef TS_KERNEL_LINALG_H
#define TS_KERNEL_LINALG_H

#include "kernel/gemm/gemm.h"
#include "kernel/linalg/linalg_vector.h"
#include "kernel/routine.h"

/* Matrices of up to this number of rows are computed many at once, one in each lane. */
#define TS_LINALG_GROUP_ROWS 32

/* A matrix by element strides of any sign. */
typedef struct ts_linalg_view {
  char *data;
  int64_t row, col;
} ts_linalg_view;

static inline int64_t ts_linalg_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ts_linalg_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* Exchanges two indices of rows. */
static inline void ts_linalg_swap(int64_t *order, int64_t i, int64_t k) {
  const int64_t kept = order[i];
  order[i] = order[k];
  order[k] = kept;
}

/* The product of all dims but the last two. */
int64_t ts_linalg_batch(const ts_shape *shape);
/* Copies a matrix. Elements have 4, 8 or 16 bytes. */
void ts_linalg_copy(const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols, int size);
/* Copies `count` rows that lie anywhere into columns: `to_row` elements are between their elements. */
#define TS_LINALG_SQUARE 16 /* the most, and the fastest, count */
void ts_linalg_turn(const char **rows, int64_t count, int64_t cols, char *to, int64_t to_row, int size);
/* f16 or bf16 to f32 and back. */
void ts_linalg_widen(ts_dtype type, const void *from, int64_t count, float *to);
void ts_linalg_narrow(ts_dtype type, const float *from, int64_t count, void *to);

/* Tasks that may fail: the first error ends tasks that have not begun, and is the run's result. */
typedef ts_status (*ts_linalg_task_fn)(void *arg, int64_t task, int worker);
ts_status ts_linalg_run_tasks(const ts_parallel *parallel, int64_t tasks, ts_linalg_task_fn fn, void *arg);

static inline char *ts_linalg_at(const ts_linalg_view *view, int64_t row, int64_t col, int size) {
  return view->data + (row * view->row + col * view->col) * size;
}

#endif
