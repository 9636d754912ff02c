/* How a product by tiles is cut: k into blocks, the result into tasks, and where packed operands lie. Internal to gemm;
 * pure functions of their arguments. */
#ifndef TS_KERNEL_GEMM_PLAN_H
#define TS_KERNEL_GEMM_PLAN_H

#include "kernel/gemm/gemm_internal.h"

typedef enum gemm_rhs_mode {
  GEMM_RHS_DIRECT, /* whole panels are read unpacked; a last partial one is packed by each task */
  GEMM_RHS_SHARED, /* packed once, by all workers, before the tasks of a phase start */
  GEMM_RHS_PRIVATE /* each task packs its own columns, group by group; with `keeps`, a worker for its later tasks, too
                    */
} gemm_rhs_mode;

typedef struct gemm_plan {
  const gemm_run *run;
  const ts_parallel *parallel; /* serial for small products */
  const ts_gemm_geometry *g;
  ts_gemm_shape shape; /* of this pass; k and its strides count steps of `depth` */
  int depth;           /* the gemm's */
  int64_t k;           /* the product's */
  const char *lhs, *rhs;
  int64_t first_batch, first_col; /* first ones of this pass */
  int64_t tile_cols;              /* full tile width */
  int64_t kc, k_blocks;
  int64_t phase, phase_k;         /* the blocks of k of one phase: the first k, and the number at most */
  int64_t row_panels, col_panels; /* the panels of the whole result */
  int64_t row_tasks, col_tasks;   /* row_tasks: of each batch and each part of the columns but the last */
  gemm_cut last;                  /* of that one */
  int64_t tasks;                  /* in all */
  int64_t task_rows, task_panels; /* limits of one task: rows in lhs panels, panels of rhs */
  int64_t group_panels;           /* panels of rhs that fit into L2 */
  bool fetches_panels;            /* the tiles of a group fetch the next one to L2 */
  bool by_rows;                   /* by AMX: tasks are computed row by row, as run_rows says */
  int64_t chunk_k;                /* by_rows: steps of k whose part of rhs stays in L2 */
  bool keeps;                     /* by_rows: workers begin with columns of their own, and pack them once */
  _Atomic int64_t *taken;         /* keeps: the tasks of each part of the columns that have begun */
  gemm_rhs_mode mode;
  bool shows_rows; /* the epilogue takes whole rows, but tasks have parts of them: it runs after them */
  gemm_pack pack_lhs, pack_rhs;
  int64_t lhs_panel_bytes, rhs_panel_bytes;
  int64_t rhs_batches;
  int64_t partial_row; /* bytes from a row of partial results to the next */
  int64_t shared_bytes, lhs_bytes, rhs_bytes, partial_bytes, worker_bytes;
  char *shared, *workers;
  _Atomic bool *has_tiny; /* of gemm_bf16.h: whether the shared rhs, or lhs in some phase, has such numbers */
} gemm_plan;

/* With `keeps`: parts of the columns at most. */
enum { GEMM_MOST_KEPT = 64 };

/* With `keeps`: the columns that a worker has packed. It lies before the gap behind the worker's memory. */
typedef struct gemm_kept {
  int64_t part; /* -1: none */
  bool tiny;    /* they have tiny elements */
} gemm_kept;

/* Makes the rest of a plan whose run, shape, depth, k, first_batch and first_col are set. */
ts_status ts_gemm_plan_make(gemm_plan *plan);

/* True when rhs is small enough for all tasks to read it unpacked. */
bool ts_gemm_plan_is_direct(const gemm_plan *plan);

/* by_rows: a task packs all of k at once. Then it completes the sums of a few rows before it starts the next rows. */
static inline bool gemm_is_one_chunk(const gemm_plan *p) { return p->chunk_k >= p->shape.k; }

/* The elements of k in `steps` steps from step k on. */
static inline int64_t gemm_elements_of(const gemm_plan *p, int64_t k, int64_t steps) {
  return gemm_min(steps * p->depth, p->k - k * p->depth);
}

#endif
