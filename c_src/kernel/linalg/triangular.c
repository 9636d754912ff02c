/* triangular_solve. Every case is the solution of lower * X = B by rows of X. A transpose exchanges strides, an upper
 * triangle is a lower one from the other end, and from the right side columns are rows. Columns are independent:
 * threads share matrices and ranges of columns. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/linalg/linalg.h"

#define BLOCK TS_LINALG_BLOCK
/* Columns that are solved at once for one matrix, at least and at most. */
#define MIN_COLUMNS 64
#define MAX_COLUMNS 1024
#define TASK_NS 50000

typedef struct triangular_state {
  ts_dtype type, computed;
  int size;
  int64_t batch, n, cols; /* of lower * X = B: rows and columns of X */
  bool left, reversed, unit, transposed;
  const ts_linalg_vector *vector;
  ts_gemm *gemm; /* NULL where one block is all */
  bool groups;
  int64_t per_task; /* groups or matrices */
  double matrix_ns;
  int64_t thread_bytes;
} triangular_state;

typedef struct triangular_run {
  const triangular_state *s;
  const ts_routine_run *run;
  const char *a, *b;
  char *x;
  int64_t columns, parts; /* of a task, and tasks of one matrix */
} triangular_run;

/* ---- views ---- */

/* The matrix number `which` as a lower one. */
static ts_linalg_view matrix_view(const triangular_run *r, int64_t which) {
  const triangular_state *s = r->s;
  const int64_t n = s->n;
  bool turned = s->transposed == s->left; /* right: X A = B is A' X' = B' */
  ts_linalg_view v = {(char *)(uintptr_t)r->a + which * n * n * s->size, turned ? 1 : n, turned ? n : 1};
  if (s->reversed) v = (ts_linalg_view){v.data + (n * n - 1) * s->size, -v.row, -v.col};
  return v;
}

static ts_linalg_view values_view(const triangular_run *r, const char *data, int64_t which) {
  const triangular_state *s = r->s;
  ts_linalg_view v = {(char *)(uintptr_t)data + which * s->n * s->cols * s->size, s->left ? s->cols : 1,
                      s->left ? 1 : s->n};
  if (s->reversed) v = (ts_linalg_view){v.data + (s->n - 1) * v.row * s->size, -v.row, v.col};
  return v;
}

/* Some columns of one matrix. */
static ts_status solve_part(const triangular_run *r, int64_t which, int64_t first, char *workspace) {
  const triangular_state *s = r->s;
  ts_linalg_solver solver = {s->vector, s->gemm, s->size, &ts_parallel_serial, r->run->pool, r->run->cancel};
  ts_linalg_system system = {.a = matrix_view(r, which),
                             .b = values_view(r, r->b, which),
                             .x = values_view(r, r->x, which),
                             .n = s->n,
                             .cols = ts_linalg_min(r->columns, s->cols - first),
                             .unit = s->unit};
  system.b.data = ts_linalg_at(&system.b, 0, first, s->size);
  system.x.data = ts_linalg_at(&system.x, 0, first, s->size);
  return ts_linalg_solve(&solver, &system, workspace);
}

/* ---- all matrices ---- */

static char *workspace_of(const triangular_run *r, int worker) {
  return r->run->thread_workspace + worker * r->s->thread_bytes;
}

/* As many matrices as a vector has lanes. */
static ts_status run_group(void *arg, int64_t which, int worker) {
  const triangular_run *r = arg;
  const triangular_state *s = r->s;
  const int64_t first = which * s->vector->lanes;
  ts_linalg_view a = matrix_view(r, first), b = values_view(r, r->b, first), x = values_view(r, r->x, first);
  ts_linalg_group group = {.matrix = a.data,
                           .rhs = b.data,
                           .out = x.data,
                           .matrix_step = s->n * s->n,
                           .matrix_row = a.row,
                           .matrix_col = a.col,
                           .rhs_step = s->n * s->cols,
                           .rhs_row = b.row,
                           .rhs_col = b.col,
                           .out_step = s->n * s->cols,
                           .out_row = x.row,
                           .out_col = x.col,
                           .n = (int)s->n,
                           .cols = (int)s->cols,
                           .count = (int)ts_linalg_min(s->vector->lanes, s->batch - first),
                           .unit = s->unit};
  s->vector->solve_group(&group, workspace_of(r, worker));
  return TS_SUCCESS;
}

static ts_status run_part(void *arg, int64_t which, int worker) {
  const triangular_run *r = arg;
  return solve_part(r, which / r->parts, which % r->parts * r->columns, workspace_of(r, worker));
}

/* Few matrices are cut into ranges of columns, so that there is one for each thread. */
static void plan_parts(triangular_run *r) {
  const triangular_state *s = r->s;
  int64_t parts = s->batch < r->run->parallel->width ? r->run->parallel->width / s->batch : 1;
  r->columns = ts_linalg_max(MIN_COLUMNS, (s->cols + parts - 1) / parts);
  r->columns = ts_linalg_min(MAX_COLUMNS, (r->columns + MIN_COLUMNS - 1) / MIN_COLUMNS * MIN_COLUMNS);
  r->parts = (s->cols + r->columns - 1) / r->columns;
}

static ts_status run_all(triangular_run *r) {
  const triangular_state *s = r->s;
  ts_linalg_units units = {.count =
                               s->groups ? (s->batch + s->vector->lanes - 1) / s->vector->lanes : s->batch * r->parts,
                           .per_task = s->per_task,
                           .run = s->groups ? run_group : run_part,
                           .arg = r,
                           .cancel = r->run->cancel,
                           .op = TS_OP_TRIANGULAR_SOLVE};
  return ts_linalg_run_units(r->run->parallel, &units);
}

static ts_status triangular_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const triangular_state *s = plan->state;
  const int64_t a_count = s->batch * s->n * s->n, b_count = s->batch * s->n * s->cols;
  triangular_run r = {.s = s,
                      .run = run,
                      .a = ts_routine_operand(run, 0),
                      .b = ts_routine_operand(run, 1),
                      .x = ts_routine_result(run, 0)};
  if (b_count == 0) return TS_SUCCESS;
  if (s->type != s->computed) {
    float *a = (float *)(void *)run->workspace, *b = a + a_count;
    ts_linalg_widen(s->type, r.a, a_count, a);
    ts_linalg_widen(s->type, r.b, b_count, b);
    r.a = run->workspace;
    r.b = r.x = (char *)b;
  }
  plan_parts(&r);
  TS_TRY(run_all(&r));
  if (s->type != s->computed)
    ts_linalg_narrow(s->type, (const float *)(const void *)r.x, b_count, ts_routine_result(run, 0));
  return TS_SUCCESS;
}

/* ---- the plan ---- */

static double matrix_ns(const triangular_state *s) {
  double n = (double)s->n, cols = (double)s->cols, lanes = s->vector->lanes;
  if (s->groups) return 20 + n * n / 2 + 2 * n * cols + n * n * cols / lanes * 0.5;
  return 300 + n * n + 2 * n * cols + n * n * ts_linalg_max((int64_t)cols, s->vector->lanes) / lanes * 0.2;
}

static void plan_tasks(triangular_state *s) {
  s->matrix_ns = matrix_ns(s);
  double ns = s->matrix_ns * (s->groups ? s->vector->lanes : 1);
  s->per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
}

static ts_status plan_workspace(triangular_state *s, ts_routine_plan *out) {
  int64_t bytes = s->groups ? (s->n * s->n + s->n * s->cols) * s->vector->lanes * s->size
                            : ts_linalg_solve_elements(ts_linalg_min(s->cols, MAX_COLUMNS), !s->left) * s->size;
  s->thread_bytes = out->thread_workspace = (bytes + 63) / 64 * 64;
  if (s->type == s->computed) return TS_SUCCESS;
  int64_t a, b;
  if (!ts_mul_i64(s->batch * s->n * s->n, s->size, &a) || !ts_mul_i64(s->batch * s->n * s->cols, s->size, &b) ||
      !ts_add_i64(a, b, &out->workspace))
    return ts_error(TS_RESOURCE_EXHAUSTED, "triangular_solve needs too much workspace");
  return TS_SUCCESS;
}

static void fill_state(const ts_routine_request *request, triangular_state *s) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *b = ts_graph_value(request->graph, op->operands[1]);
  const int64_t *last = b->shape->dims + b->shape->rank - 2;
  bool left = op->attrs->triangular.left, lower = op->attrs->triangular.lower;
  bool transpose = op->attrs->triangular.transpose;
  *s = (triangular_state){.type = b->dtype,
                          .computed = ts_dtype_accumulator(b->dtype),
                          .batch = ts_linalg_batch(b->shape),
                          .n = last[left ? 0 : 1],
                          .cols = last[left ? 1 : 0],
                          .left = left,
                          .unit = op->attrs->triangular.unit,
                          .transposed = transpose,
                          .reversed = (lower ^ transpose) != left};
  s->size = (int)ts_dtype_size(s->computed);
  s->vector = ts_linalg_vector_of(s->computed);
  s->groups = s->n <= TS_LINALG_GROUP_ROWS && s->cols <= TS_LINALG_GROUP_ROWS && s->batch > s->vector->lanes / 2;
}

static ts_status triangular_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool in_place[2] = {false, true};
  triangular_state *s;
  ts_value_id matrix = ts_graph_op(request->graph, request->op)->operands[0];
  if (!ts_linalg_has_type(ts_graph_value(request->graph, matrix)->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  fill_state(request, s);
  out->state = s;
  plan_tasks(s);
  TS_TRY(plan_workspace(s, out));
  out->inplace = in_place;
  double cost = 200 + s->matrix_ns * (double)s->batch;
  out->cost_ns = cost < 4e18 ? (int64_t)cost : INT64_MAX / 2;
  return s->n > BLOCK ? ts_gemm_get(s->computed, NULL, &s->gemm) : TS_SUCCESS;
}

static void triangular_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((triangular_state *)plan->state)->gemm);
}

const ts_routine ts_triangular_routine = {"triangular_solve", triangular_plan, NULL, triangular_run_op,
                                          triangular_deinit};
