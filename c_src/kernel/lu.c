/* lu, and solve and determinant by LU factors with partial pivoting: every element of the factors is one chain of
 * multiply-adds, which each panel continues in memory beside the factors. Small matrices of a batch are done one in
 * each lane of a vector. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/linalg.h"

#include <string.h>

#define BLOCK TS_LINALG_BLOCK
/* Elements that rows of a panel are padded to: whole vectors of every instruction set. */
#define PAD 16
#define TASK_NS 50000
#define MAX_COLUMNS 1024

typedef struct lu_state {
  ts_opcode op;
  ts_dtype type, computed;
  int size;
  int64_t batch, n, cols; /* cols: of the right side; 0 of a determinant */
  const ts_linalg_vector *vector;
  ts_gemm *gemm;
  bool groups;
  int64_t per_task;
  double matrix_ns;
  int64_t factor_bytes, pivot_bytes, panel_bytes, thread_bytes;
} lu_state;

typedef struct lu_run {
  const lu_state *s;
  const ts_routine_run *run;
  const ts_parallel *inner;
  const char *a, *b;
  char *x;     /* solutions, determinants, P */
  char *l, *u; /* of lu */
} lu_run;

/* The memory of a thread. */
typedef struct lu_memory {
  char *factors;   /* n x n */
  char *sums;      /* n x n: what is to be taken from each element that is not factored */
  int64_t *pivots; /* row i was exchanged with pivots[i] */
  char *columns, *column_sums;
  char *solve;
} lu_memory;

static lu_memory memory_of(const lu_run *r, int worker) {
  const lu_state *s = r->s;
  lu_memory m = {.factors = r->run->thread_workspace + worker * s->thread_bytes};
  m.sums = m.factors + s->factor_bytes;
  m.pivots = (int64_t *)(void *)(m.sums + s->factor_bytes);
  m.columns = (char *)m.pivots + s->pivot_bytes;
  m.column_sums = m.columns + s->panel_bytes;
  m.solve = m.column_sums + s->panel_bytes;
  return m;
}

static ts_linalg_solver solver_of(const lu_run *r) {
  return (ts_linalg_solver){r->s->vector, r->s->gemm, r->s->size, r->inner, r->run->pool, r->run->cancel};
}

/* ---- factors ---- */

static void exchange(char *a, char *b, int64_t bytes) {
  char kept[512];
  for (int64_t at = 0; at < bytes; at += (int64_t)sizeof kept) {
    size_t some = (size_t)ts_linalg_min((int64_t)sizeof kept, bytes - at);
    memcpy(kept, a + at, some);
    memcpy(a + at, b + at, some);
    memcpy(b + at, kept, some);
  }
}

/* Element (row, col) of n x n. */
static char *element(const lu_state *s, char *matrix, int64_t row, int64_t col) {
  return matrix + (row * s->n + col) * s->size;
}

/* Columns of a task. */
#define TASK_COLUMNS 64

typedef struct beside_run {
  const lu_state *s;
  const lu_memory *m;
  int64_t at, width;
  int64_t left; /* tasks left of the panel; the others are right of it */
  ts_linalg_block block;
} beside_run;

/* Applies the panel's row exchanges to some of the columns beside it. */
static void exchange_rows(const beside_run *b, int64_t col, int64_t cols) {
  const lu_state *s = b->s;
  const bool has_sums = b->at > 0 && col > b->at;
  for (int64_t i = b->at; i < b->at + b->width; i++) {
    const int64_t pivot = b->m->pivots[i];
    if (pivot == i) continue;
    exchange(element(s, b->m->factors, i, col), element(s, b->m->factors, pivot, col), cols * s->size);
    if (has_sums) exchange(element(s, b->m->sums, i, col), element(s, b->m->sums, pivot, col), cols * s->size);
  }
}

/* Right of the panel these are U's rows, which are then computed in place. */
static void beside_task(void *arg, int64_t task, int worker) {
  const beside_run *b = arg;
  const bool is_left = task < b->left;
  const int64_t behind = b->at + b->width, end = is_left ? b->at : b->s->n;
  const int64_t first = is_left ? task * TASK_COLUMNS : behind + (task - b->left) * TASK_COLUMNS;
  const int64_t cols = ts_linalg_min(TASK_COLUMNS, end - first);
  (void)worker;
  exchange_rows(b, first, cols);
  if (!is_left) b->s->vector->solve(&b->block, first - behind, cols);
}

static void run_beside(const lu_run *r, const lu_memory *m, int64_t at, int64_t width) {
  const lu_state *s = r->s;
  const int64_t behind = at + width, n = s->n;
  const ts_linalg_view from = {element(s, m->factors, at, at), n, 1}, dense = {m->solve, width, 1};
  char *rows = element(s, m->factors, at, behind), *sums = at > 0 ? element(s, m->sums, at, behind) : NULL;
  const int64_t left = (at + TASK_COLUMNS - 1) / TASK_COLUMNS, right = (n - behind + TASK_COLUMNS - 1) / TASK_COLUMNS;
  beside_run b = {s, m, at, width, left, {m->solve, sums, rows, rows, n, n, n, (int)width, true}};
  ts_linalg_copy(&from, &dense, width, width, s->size);
  ts_parallel_run(r->inner, left + right, beside_task, &b);
}

/* The sums of all elements below and behind the panel. */
static ts_status add_products(const lu_run *r, const lu_memory *m, int64_t at, int64_t width) {
  const lu_state *s = r->s;
  const int64_t behind = at + width, left = s->n - behind;
  const ts_gemm_shape shape = {.batch = 1,
                               .m = left,
                               .n = left,
                               .k = width,
                               .lhs_row = s->n,
                               .lhs_col = 1,
                               .rhs_row = s->n,
                               .rhs_col = 1,
                               .out_row = s->n};
  return ts_gemm_run(s->gemm, &shape,
                     &(ts_gemm_call){.lhs = element(s, m->factors, behind, at),
                                     .rhs = element(s, m->factors, at, behind),
                                     .out = element(s, m->sums, behind, behind),
                                     .adds = at > 0,
                                     .parallel = r->inner,
                                     .pool = r->run->pool,
                                     .cancel = r->run->cancel});
}

static void load_panel(const lu_state *s, const lu_memory *m, int64_t at, const ts_linalg_panel *p) {
  const ts_linalg_view columns = {m->columns, p->row, 1}, sums = {m->column_sums, p->row, 1};
  const ts_linalg_view from = {element(s, m->factors, at, at), 1, s->n}, other = {element(s, m->sums, at, at), 1, s->n};
  memset(m->columns, 0, (size_t)(p->width * p->row * s->size));
  memset(m->column_sums, 0, (size_t)(p->width * p->row * s->size));
  ts_linalg_copy(&from, &columns, p->width, p->rows, s->size);
  if (at > 0) ts_linalg_copy(&other, &sums, p->width, p->rows, s->size);
}

static ts_status factor_panel(const lu_run *r, const lu_memory *m, int64_t at) {
  const lu_state *s = r->s;
  const int64_t width = ts_linalg_min(BLOCK, s->n - at), rows = s->n - at, row = (rows + PAD - 1) / PAD * PAD;
  const ts_linalg_panel panel = {m->columns, m->column_sums, row, rows, (int)width, m->pivots + at};
  const ts_linalg_view columns = {m->columns, row, 1}, place = {element(s, m->factors, at, at), 1, s->n};
  TS_TRY(ts_check_cancelled(r->run->cancel, ts_op_name(s->op)));
  load_panel(s, m, at, &panel);
  s->vector->factor_panel(&panel);
  ts_linalg_copy(&columns, &place, width, rows, s->size);
  for (int64_t i = 0; i < width; i++) panel.pivots[i] += at;
  run_beside(r, m, at, width);
  if (at + width == s->n) return TS_SUCCESS;
  return add_products(r, m, at, width);
}

static ts_status factor(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  ts_copy_bytes(m->factors, r->a + which * s->n * s->n * s->size, s->n * s->n * s->size, r->run->cancel);
  for (int64_t at = 0; at < s->n; at += BLOCK) TS_TRY(factor_panel(r, m, at));
  return TS_SUCCESS;
}

/* ---- one matrix ---- */

static ts_status solve_columns(const lu_run *r, const lu_memory *m, char *x, int64_t first) {
  const lu_state *s = r->s;
  const int64_t n = s->n, cols = ts_linalg_min(MAX_COLUMNS, s->cols - first);
  ts_linalg_solver solver = solver_of(r);
  ts_linalg_view down = {x + first * s->size, s->cols, 1}, up = {down.data + (n - 1) * s->cols * s->size, -s->cols, 1};
  ts_linalg_system lower = {{m->factors, n, 1}, down, down, n, cols, true};
  ts_linalg_system upper = {{m->factors + (n * n - 1) * s->size, -n, -1}, up, up, n, cols, false};
  TS_TRY(ts_linalg_solve(&solver, &lower, m->solve));
  return ts_linalg_solve(&solver, &upper, m->solve);
}

static ts_status solve_matrix(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  const int64_t row = s->cols * s->size;
  char *x = r->x + which * s->n * row;
  ts_copy_bytes(x, r->b + which * s->n * row, s->n * row, r->run->cancel);
  for (int64_t i = 0; i < s->n; i++)
    if (m->pivots[i] != i) exchange(x + i * row, x + m->pivots[i] * row, row);
  for (int64_t first = 0; first < s->cols; first += MAX_COLUMNS) TS_TRY(solve_columns(r, m, x, first));
  return TS_SUCCESS;
}

static void multiply_diagonal(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  bool odd = false;
  for (int64_t i = 0; i < s->n; i++) odd ^= m->pivots[i] != i;
  float narrow = odd ? -1 : 1;
  double wide = odd ? -1 : 1;
  for (int64_t i = 0; i < s->n; i++) {
    const char *at = m->factors + i * (s->n + 1) * s->size;
    if (s->size == 4)
      narrow *= *(const float *)(const void *)at;
    else
      wide *= *(const double *)(const void *)at;
  }
  memcpy(r->x + which * s->size, s->size == 4 ? (const void *)&narrow : &wide, (size_t)s->size);
}

/* Rows of a task. */
#define TASK_ROWS 32

typedef struct put_run {
  const lu_run *r;
  const lu_memory *m;
  int64_t which;
  const int64_t *row_of; /* which row of the factors each row of the matrix is */
} put_run;

static void put_one(char *at, int size) {
  if (size == 4)
    *(float *)(void *)at = 1;
  else
    *(double *)(void *)at = 1;
}

static void put_row(const put_run *p, int64_t i) {
  const lu_run *r = p->r;
  const int size = r->s->size;
  const int64_t n = r->s->n, row = n * size, before = i * size, at = p->which * n * row + i * row;
  const char *from = p->m->factors + i * row;
  memset(r->x + at, 0, (size_t)row);
  put_one(r->x + at + p->row_of[i] * size, size);
  memcpy(r->l + at, from, (size_t)before);
  memset(r->l + at + before, 0, (size_t)(row - before));
  put_one(r->l + at + before, size);
  memset(r->u + at, 0, (size_t)before);
  memcpy(r->u + at + before, from + before, (size_t)(row - before));
}

static void put_task(void *arg, int64_t task, int worker) {
  const put_run *p = arg;
  const int64_t end = ts_linalg_min(p->r->s->n, (task + 1) * TASK_ROWS);
  (void)worker;
  for (int64_t i = task * TASK_ROWS; i < end; i++) put_row(p, i);
}

/* The orders are in place of the columns, which are factored. */
static void put_factors(const lu_run *r, const lu_memory *m, int64_t which) {
  const int64_t n = r->s->n;
  int64_t *order = (int64_t *)(void *)m->columns, *row_of = (int64_t *)(void *)m->column_sums;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = 0; i < n; i++) {
    int64_t kept = order[i];
    order[i] = order[m->pivots[i]];
    order[m->pivots[i]] = kept;
  }
  for (int64_t i = 0; i < n; i++) row_of[order[i]] = i;
  put_run p = {r, m, which, row_of};
  ts_parallel_run(r->inner, (n + TASK_ROWS - 1) / TASK_ROWS, put_task, &p);
}

/* ---- all matrices ---- */

/* Elements of a result for each matrix. */
static int64_t result_step(const lu_state *s) {
  return s->op == TS_OP_SOLVE ? s->n * s->cols : s->op == TS_OP_LU ? s->n * s->n : 1;
}

/* As many matrices as a vector has lanes. */
static ts_status run_group(void *arg, int64_t which, int worker) {
  const lu_run *r = arg;
  const lu_state *s = r->s;
  const int64_t first = which * s->vector->lanes;
  const int64_t matrix = s->n * s->n, right = s->n * s->cols, out = result_step(s);
  ts_linalg_group group = {.matrix = r->a + first * matrix * s->size,
                           .rhs = r->b + first * right * s->size,
                           .out = r->x + first * out * s->size,
                           .lower = r->l + first * out * s->size,
                           .upper = r->u + first * out * s->size,
                           .matrix_step = matrix,
                           .rhs_step = right,
                           .out_step = out,
                           .n = (int)s->n,
                           .cols = (int)s->cols,
                           .count = (int)ts_linalg_min(s->vector->lanes, s->batch - first)};
  char *workspace = r->run->thread_workspace + worker * s->thread_bytes;
  (s->op == TS_OP_SOLVE ? s->vector->solve_full_group
   : s->op == TS_OP_LU  ? s->vector->lu_group
                        : s->vector->determinant_group)(&group, workspace);
  return TS_SUCCESS;
}

static ts_status run_matrix(void *arg, int64_t which, int worker) {
  const lu_run *r = arg;
  lu_memory m = memory_of(r, worker);
  TS_TRY(factor(r, &m, which));
  if (r->s->op == TS_OP_SOLVE) return solve_matrix(r, &m, which);
  if (r->s->op == TS_OP_LU)
    put_factors(r, &m, which);
  else
    multiply_diagonal(r, &m, which);
  return TS_SUCCESS;
}

static ts_status run_all(lu_run *r) {
  const lu_state *s = r->s;
  const ts_linalg_units matrices = {.count = s->batch,
                                    .per_task = s->per_task,
                                    .run = s->groups ? run_group : run_matrix,
                                    .arg = r,
                                    .cancel = r->run->cancel,
                                    .op = s->op};
  return ts_linalg_run_matrices(r->run->parallel, &matrices, s->n, s->groups ? s->vector->lanes : 0, &r->inner);
}

static int64_t result_count(const lu_state *s) { return s->batch * result_step(s); }
static int results_of(const lu_state *s) { return s->op == TS_OP_LU ? 3 : 1; }

/* Operands of half types in f32, and room for the results. */
static void widen(lu_run *r) {
  const lu_state *s = r->s;
  const int64_t a_count = s->batch * s->n * s->n, b_count = s->batch * s->n * s->cols;
  float *a = (float *)(void *)r->run->workspace, *b = a + a_count;
  ts_linalg_widen(s->type, r->a, a_count, a);
  if (s->op == TS_OP_SOLVE) ts_linalg_widen(s->type, r->b, b_count, b);
  r->a = (const char *)a;
  r->b = (const char *)b;
  r->x = (char *)(b + b_count);
  r->l = r->x + result_count(s) * s->size;
  r->u = r->l + result_count(s) * s->size;
}

static void narrow(const lu_run *r) {
  const lu_state *s = r->s;
  for (int i = 0; i < results_of(s); i++)
    ts_linalg_narrow(s->type, (const float *)(const void *)r->x + i * result_count(s), result_count(s),
                     ts_routine_result(r->run, (uint32_t)i));
}

static ts_status lu_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const lu_state *s = plan->state;
  lu_run r = {.s = s,
              .run = run,
              .inner = &ts_parallel_serial,
              .a = ts_routine_operand(run, 0),
              .x = ts_routine_result(run, 0)};
  r.b = s->op == TS_OP_SOLVE ? ts_routine_operand(run, 1) : r.a;
  r.l = s->op == TS_OP_LU ? ts_routine_result(run, 1) : r.x;
  r.u = s->op == TS_OP_LU ? ts_routine_result(run, 2) : r.x;
  if (result_count(s) == 0) return TS_SUCCESS;
  if (s->type != s->computed) widen(&r);
  TS_TRY(run_all(&r));
  if (s->type != s->computed) narrow(&r);
  return TS_SUCCESS;
}

/* ---- the plan ---- */

static double matrix_ns(const lu_state *s) {
  double n = (double)s->n, cols = (double)s->cols, lanes = s->vector->lanes;
  double flops = n * n * n / 3 + n * n * cols;
  return s->groups ? 20 + 2 * n * n + 2 * n * cols + flops / lanes : 1000 + 8 * n * n + flops / lanes * 0.4;
}

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static ts_status plan_workspace(lu_state *s, ts_routine_plan *out) {
  const int64_t n = s->n, padded = (n + PAD - 1) / PAD * PAD,
                cols = ts_linalg_max(BLOCK, ts_linalg_min(s->cols, MAX_COLUMNS));
  int64_t a, b, results;
  s->factor_bytes = round_up(n * n * s->size);
  s->pivot_bytes = round_up(n * 8);
  s->panel_bytes = round_up(BLOCK * padded * s->size); /* also of n indices */
  s->thread_bytes =
      2 * s->factor_bytes + s->pivot_bytes + 2 * s->panel_bytes + ts_linalg_solve_elements(cols, false) * s->size;
  if (s->groups) s->thread_bytes = round_up((n * n + n * (s->cols + 1)) * s->vector->lanes * s->size);
  out->thread_workspace = s->thread_bytes;
  if (s->type == s->computed) return TS_SUCCESS;
  if (!ts_mul_i64(s->batch * (n * n + n * s->cols), s->size, &a) || !ts_mul_i64(result_count(s), s->size, &b) ||
      !ts_mul_i64(b, results_of(s), &results) || !ts_add_i64(a, results, &out->workspace))
    return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->op));
  return TS_SUCCESS;
}

static void fill_state(const ts_routine_request *request, lu_state *s) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *a = ts_graph_value(request->graph, op->operands[0]);
  *s = (lu_state){.op = op->code,
                  .type = a->dtype,
                  .computed = ts_dtype_accumulator(a->dtype),
                  .batch = ts_linalg_batch(a->shape),
                  .n = a->shape->dims[a->shape->rank - 1]};
  if (op->code == TS_OP_SOLVE) {
    const ts_shape *b = ts_graph_value(request->graph, op->operands[1])->shape;
    s->cols = b->dims[b->rank - 1];
  }
  s->size = (int)ts_dtype_size(s->computed);
  s->vector = ts_linalg_vector_of(s->computed);
  s->groups = s->n <= TS_LINALG_GROUP_ROWS && s->cols <= TS_LINALG_GROUP_ROWS && s->batch > s->vector->lanes / 2;
}

static ts_status lu_plan(const ts_routine_request *request, ts_routine_plan *out) {
  lu_state *s;
  ts_value_id matrix = ts_graph_op(request->graph, request->op)->operands[0];
  if (!ts_linalg_has_type(ts_graph_value(request->graph, matrix)->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  fill_state(request, s);
  out->state = s;
  s->matrix_ns = matrix_ns(s);
  double ns = s->matrix_ns * (s->groups ? s->vector->lanes : 1), cost = 200 + s->matrix_ns * (double)s->batch;
  s->per_task = ns > TASK_NS ? 1 : (int64_t)(TASK_NS / ns) + 1;
  out->cost_ns = cost < 4e18 ? (int64_t)cost : INT64_MAX / 2;
  TS_TRY(plan_workspace(s, out));
  return s->n > BLOCK ? ts_gemm_get(s->computed, NULL, &s->gemm) : TS_SUCCESS;
}

static void lu_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((lu_state *)plan->state)->gemm);
}

const ts_routine ts_lu_routine = {"lu", lu_plan, NULL, lu_run_op, lu_deinit};
