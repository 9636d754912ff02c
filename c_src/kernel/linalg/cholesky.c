/* Cholesky factors, from the left: a block of columns is summed over all columns before it by one product, then
 * factored. So every element is one chain of multiply-adds, however the matrix is cut. Small matrices of a batch are
 * done one in each lane of a vector. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/linalg/linalg.h"

#include <math.h>
#include <string.h>

#define BLOCK TS_LINALG_BLOCK
/* Columns of a task where one matrix is shared by threads. */
#define TASK_COLUMNS 256
/* Work for one task, where tasks are matrices. */
#define TASK_NS 50000

typedef struct cholesky_state {
  ts_dtype type, computed; /* as it is stored; f32 or f64 */
  int size;                /* bytes of an element that is computed */
  int64_t batch, n;
  const ts_linalg_vector *vector;
  ts_gemm *gemm;    /* NULL where one block is all */
  bool groups;      /* one matrix a lane */
  int64_t per_task; /* groups, or matrices, of a task */
  int64_t matrix_ns;
  int64_t thread_bytes;
} cholesky_state;

typedef struct cholesky_run {
  const cholesky_state *s;
  const ts_routine_run *run;
  const ts_parallel *inner; /* within one matrix */
  const char *in;
  char *out;
} cholesky_run;

/* ---- one matrix ---- */

/* A block of columns: `width` of them from `at` on, and the rows from there on. */
typedef struct cholesky_panel {
  const cholesky_run *r;
  char *out;        /* the matrix */
  int64_t at, rows; /* rows: from `at` on */
  int width;
  char *panel, *sums; /* the columns as rows, and the sums to subtract from them; rows of `rows` elements */
  char *diagonal;     /* the block's lower factor, dense */
} cholesky_panel;

static ts_linalg_view view(const void *data, int64_t row, int64_t col) {
  return (ts_linalg_view){(char *)(uintptr_t)data, row, col};
}

/* Sums the products with all columns before, for the block's columns. */
static ts_status sum_before(const cholesky_panel *p) {
  const cholesky_state *s = p->r->s;
  const char *lhs = p->out + p->at * s->n * s->size;
  ts_gemm_shape shape = {.batch = 1,
                         .m = p->width,
                         .n = p->rows,
                         .k = p->at,
                         .lhs_row = s->n,
                         .lhs_col = 1,
                         .rhs_row = 1,
                         .rhs_col = s->n,
                         .out_row = p->rows};
  if (p->at == 0) return TS_SUCCESS;
  return ts_gemm_run(s->gemm, &shape,
                     &(ts_gemm_call){.one_chain = true,
                                     .lhs = lhs,
                                     .rhs = lhs,
                                     .out = p->sums,
                                     .parallel = p->r->inner,
                                     .pool = p->r->run->pool,
                                     .cancel = p->r->run->cancel});
}

static ts_linalg_block block_of(const cholesky_panel *p, int64_t from) {
  int size = p->r->s->size;
  return (ts_linalg_block){.matrix = p->diagonal,
                           .sums = p->at > 0 ? p->sums + from * size : NULL,
                           .rhs = p->panel + from * size,
                           .out = p->panel + from * size,
                           .sums_row = p->rows,
                           .rhs_row = p->rows,
                           .out_row = p->rows,
                           .n = p->width};
}

static void solve_task(void *arg, int64_t task, int worker) {
  const cholesky_panel *p = arg;
  int64_t first = task * TASK_COLUMNS, left = p->rows - p->width - first;
  ts_linalg_block block = block_of(p, p->width);
  (void)worker;
  if (!ts_cancelled(p->r->run->cancel))
    p->r->s->vector->solve(&block, first, left < TASK_COLUMNS ? left : TASK_COLUMNS);
}

/* The factored columns in their place, with zeros right of the diagonal block's diagonal and of the block. */
static void place(const cholesky_panel *p) {
  const cholesky_state *s = p->r->s;
  char *to = p->out + (p->at * s->n + p->at) * s->size;
  ts_linalg_view from = view(p->panel, 1, p->rows), into = view(to, s->n, 1);
  ts_linalg_copy(&from, &into, p->rows, p->width, s->size);
  for (int64_t i = 0; i < p->width; i++)
    memset(to + (i * s->n + i + 1) * s->size, 0, (size_t)((p->rows - i - 1) * s->size));
}

static double get(const cholesky_state *s, const char *from, int64_t i) {
  return s->size == 4 ? (double)((const float *)(const void *)from)[i] : ((const double *)(const void *)from)[i];
}

/* The block's factor by rows. A zero on its diagonal divides by nothing. */
static void set_diagonal(const cholesky_panel *p) {
  const cholesky_state *s = p->r->s;
  ts_linalg_view upper = view(p->panel, 1, p->rows), lower = view(p->diagonal, p->width, 1);
  ts_linalg_copy(&upper, &lower, p->width, p->width, s->size);
  for (int64_t i = 0; i < p->width; i++) {
    char *at = p->diagonal + (i * p->width + i) * s->size;
    if (get(s, at, 0) == 0) memcpy(at, s->size == 4 ? (const void *)&(float){1} : &(double){1}, (size_t)s->size);
  }
}

/* Columns of a zero on the diagonal are zero. */
static bool zeros_below(const cholesky_panel *p) {
  const cholesky_state *s = p->r->s;
  for (int64_t c = 0; c < p->width; c++) {
    const char *row = p->panel + c * p->rows * s->size;
    for (int64_t i = p->width; i < p->rows && get(s, row, c) == 0; i++)
      if (get(s, row, i) != 0) return false;
  }
  return true;
}

static ts_status run_panel(const cholesky_panel *p, bool *out_done) {
  const cholesky_state *s = p->r->s;
  const char *from = p->out + (p->at * s->n + p->at) * s->size;
  ts_linalg_view columns = view(from, 1, s->n), rows = view(p->panel, p->rows, 1);
  TS_TRY(ts_check_cancelled(p->r->run->cancel, "cholesky"));
  TS_TRY(sum_before(p));
  ts_linalg_copy(&columns, &rows, p->width, p->rows, s->size);
  ts_linalg_block block = block_of(p, 0);
  *out_done = s->vector->factor(&block);
  if (!*out_done) return TS_SUCCESS;
  set_diagonal(p);
  int64_t tasks = (p->rows - p->width + TASK_COLUMNS - 1) / TASK_COLUMNS;
  ts_parallel_run(tasks > 1 ? p->r->inner : &ts_parallel_serial, tasks, solve_task, (void *)(uintptr_t)p);
  *out_done = zeros_below(p);
  if (*out_done) place(p);
  return TS_SUCCESS;
}

static void fill_nan(const cholesky_state *s, char *out) {
  for (int64_t i = 0; i < s->n; i++)
    for (int64_t k = 0; k < s->n; k++) {
      double none = k > i ? 0 : (double)NAN;
      if (s->size == 4)
        ((float *)(void *)out)[i * s->n + k] = (float)none;
      else
        ((double *)(void *)out)[i * s->n + k] = none;
    }
}

/* In place. */
static ts_status factor_matrix(const cholesky_run *r, char *out, char *workspace) {
  const cholesky_state *s = r->s;
  cholesky_panel p = {.r = r, .out = out, .diagonal = workspace};
  bool done = true;
  p.panel = workspace + BLOCK * BLOCK * s->size;
  p.sums = p.panel + BLOCK * s->n * s->size;
  for (p.at = 0; done && p.at < s->n; p.at += BLOCK) {
    p.rows = s->n - p.at;
    p.width = (int)ts_linalg_min(BLOCK, p.rows);
    TS_TRY(run_panel(&p, &done));
  }
  if (!done) fill_nan(s, out);
  return TS_SUCCESS;
}

/* ---- all matrices ---- */

static char *workspace_of(const cholesky_run *r, int worker) {
  return r->run->thread_workspace + worker * r->s->thread_bytes;
}

/* As many matrices as a vector has lanes. */
static ts_status run_group(void *arg, int64_t which, int worker) {
  const cholesky_run *r = arg;
  const cholesky_state *s = r->s;
  int64_t first = which * s->vector->lanes, step = s->n * s->n, at = first * step * s->size;
  ts_linalg_group group = {.matrix = r->in + at,
                           .out = r->out + at,
                           .matrix_step = step,
                           .out_step = step,
                           .n = (int)s->n,
                           .count = (int)ts_linalg_min(s->vector->lanes, s->batch - first)};
  s->vector->factor_group(&group, workspace_of(r, worker));
  return TS_SUCCESS;
}

static ts_status run_matrix(void *arg, int64_t which, int worker) {
  const cholesky_run *r = arg;
  int64_t bytes = r->s->n * r->s->n * r->s->size, at = which * bytes;
  ts_copy_bytes(r->out + at, r->in + at, bytes, r->run->cancel);
  return factor_matrix(r, r->out + at, workspace_of(r, worker));
}

static ts_status run_all(cholesky_run *r) {
  const cholesky_state *s = r->s;
  const ts_linalg_units matrices = {.count = s->batch,
                                    .per_task = s->per_task,
                                    .run = s->groups ? run_group : run_matrix,
                                    .arg = r,
                                    .cancel = r->run->cancel,
                                    .op = TS_OP_CHOLESKY};
  return ts_linalg_run_matrices(r->run->parallel, &matrices, s->n, s->groups ? s->vector->lanes : 0, &r->inner);
}

static ts_status cholesky_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const cholesky_state *s = plan->state;
  const int64_t count = s->batch * s->n * s->n;
  cholesky_run r = {s, run, &ts_parallel_serial, ts_routine_operand(run, 0), ts_routine_result(run, 0)};
  if (count == 0) return TS_SUCCESS;
  if (s->type != s->computed) {
    ts_linalg_widen(s->type, ts_routine_operand(run, 0), count, (float *)(void *)run->workspace);
    r.in = r.out = run->workspace;
  }
  TS_TRY(run_all(&r));
  if (s->type != s->computed)
    ts_linalg_narrow(s->type, (const float *)(const void *)r.out, count, ts_routine_result(run, 0));
  return TS_SUCCESS;
}

/* ---- the plan ---- */

static double matrix_ns(const cholesky_state *s) {
  double n = (double)s->n, lanes = s->vector->lanes;
  return (s->groups ? 20 + n * n + n * n * n / 6 / lanes * 2 : 500 + n * n * 2 + n * n * n / 6 / lanes * 0.4);
}

static void plan_tasks(cholesky_state *s) {
  double ns = matrix_ns(s) * (s->groups ? s->vector->lanes : 1);
  s->per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
  s->matrix_ns = (int64_t)ts_linalg_min((int64_t)1 << 40, (int64_t)matrix_ns(s));
}

static ts_status plan_workspace(cholesky_state *s, ts_routine_plan *out) {
  int64_t bytes = s->groups ? s->n * s->n * s->vector->lanes * s->size : (BLOCK * BLOCK + 2 * BLOCK * s->n) * s->size;
  s->thread_bytes = out->thread_workspace = (bytes + 63) / 64 * 64;
  if (s->type != s->computed && !ts_mul_i64(s->batch * s->n * s->n, s->size, &out->workspace))
    return ts_error(TS_RESOURCE_EXHAUSTED, "cholesky needs too much workspace");
  return TS_SUCCESS;
}

static ts_status cholesky_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool in_place = true;
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *a = ts_graph_value(request->graph, op->operands[0]);
  cholesky_state *s;
  if (!ts_linalg_has_type(a->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (cholesky_state){.type = a->dtype,
                        .computed = ts_dtype_accumulator(a->dtype),
                        .batch = ts_linalg_batch(a->shape),
                        .n = a->shape->dims[a->shape->rank - 1]};
  out->state = s;
  s->size = (int)ts_dtype_size(s->computed);
  s->vector = ts_linalg_vector_of(s->computed);
  s->groups = s->n <= TS_LINALG_GROUP_ROWS && s->batch > s->vector->lanes / 2;
  plan_tasks(s);
  TS_TRY(plan_workspace(s, out));
  out->inplace = &in_place;
  out->cost_ns = 200 + ts_linalg_min(s->batch, INT64_MAX / 2 / (s->matrix_ns + 1)) * s->matrix_ns;
  return s->n > BLOCK ? ts_gemm_get(s->computed, NULL, &s->gemm) : TS_SUCCESS;
}

static void cholesky_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((cholesky_state *)plan->state)->gemm);
}

const ts_routine ts_cholesky_routine = {"cholesky", cholesky_plan, NULL, cholesky_run_op, cholesky_deinit};
