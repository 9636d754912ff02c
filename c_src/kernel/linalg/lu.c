/* lu, and solve and determinant by LU factors with partial pivoting (lu_panels.c). Small matrices of a batch are done
 * one in each lane of a vector. */
#include "base/alloc.h"
#include "base/cancel.h"
#include "kernel/linalg/lu_panels.h"

#include <string.h>

#define BLOCK TS_LINALG_BLOCK
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
  int64_t factor_bytes, pivot_bytes, room_bytes, thread_bytes;
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
  char *factors; /* as lu_factors's, like the next two */
  int64_t *pivots, *order;
  char *room; /* of lu_factors, then of solve, or of n places for each strip */
} lu_memory;

static lu_memory memory_of(const lu_run *r, int worker) {
  const lu_state *s = r->s;
  lu_memory m = {.factors = r->run->thread_workspace + worker * s->thread_bytes};
  m.pivots = (int64_t *)(void *)(m.factors + s->factor_bytes);
  m.order = m.pivots + s->pivot_bytes / 8;
  m.room = (char *)m.order + s->pivot_bytes;
  return m;
}

static ts_linalg_solver solver_of(const lu_run *r) {
  return (ts_linalg_solver){r->s->vector, r->s->gemm, r->s->size, r->inner, r->run->pool, r->run->cancel};
}

static ts_status factor(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  const int64_t right = which * s->n * s->cols * s->size;
  return lu_factor(&(lu_factors){.with = solver_of(r),
                                 .op = s->op,
                                 .n = s->n,
                                 .cols = s->cols,
                                 .a = r->a + which * s->n * s->n * s->size,
                                 .b = r->b + right,
                                 .x = r->x + right,
                                 .factors = m->factors,
                                 .pivots = m->pivots,
                                 .order = m->order,
                                 .room = m->room,
                                 .keeps_lower = s->op == TS_OP_LU});
}

/* ---- one matrix ---- */

static ts_status solve_matrix(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  const int64_t n = s->n, pitch = lu_pitch(n), last = n - 1;
  const ts_linalg_solver solver = solver_of(r);
  char *x = r->x + which * n * s->cols * s->size;
  for (int64_t first = 0; first < s->cols; first += MAX_COLUMNS) {
    const ts_linalg_view up = {x + (last * s->cols + first) * s->size, -s->cols, 1};
    const ts_linalg_view upper = {m->factors + (last * pitch + last) * s->size, -pitch, -1};
    const ts_linalg_system system = {upper, up, up, n, ts_linalg_min(MAX_COLUMNS, s->cols - first), false};
    TS_TRY(ts_linalg_solve(&solver, &system, m->room));
  }
  return TS_SUCCESS;
}

static void multiply_diagonal(const lu_run *r, const lu_memory *m, int64_t which) {
  const lu_state *s = r->s;
  bool odd = false;
  for (int64_t i = 0; i < s->n; i++) odd ^= m->pivots[i] != i;
  ts_linalg_product product = {odd ? -1 : 1, 0};
  for (int64_t i = 0; i < s->n; i++) {
    const void *at = m->factors + i * (lu_pitch(s->n) + 1) * s->size;
    ts_linalg_multiply(&product, s->size == 4 ? (double)*(const float *)at : *(const double *)at, s->size == 4);
  }
  const double wide = ts_linalg_raised(product.part, product.power);
  const float narrow = s->size == 4 ? (float)wide : 0;
  memcpy(r->x + which * s->size, s->size == 4 ? (const void *)&narrow : &wide, (size_t)s->size);
}

typedef struct put_run {
  const lu_run *r;
  const lu_memory *m;
  int64_t which;
} put_run;

static void put_one(char *at, int size) {
  if (size == 4)
    *(float *)(void *)at = 1;
  else
    *(double *)(void *)at = 1;
}

/* `first` of a strip is its first column; `place` is the row of L before the exchanges of later panels. */
static void put_part(const put_run *p, int64_t i, int64_t place, int64_t first, int64_t cols) {
  const lu_run *r = p->r;
  const int size = r->s->size;
  const int64_t n = r->s->n, to = ((p->which * n + i) * n + first) * size;
  const int64_t below = ts_linalg_max(0, ts_linalg_min(cols, i - first)) * size, bytes = cols * size;
  const char *from = p->m->factors + (place * lu_pitch(n) + first) * size;
  memset(r->x + to, 0, (size_t)bytes);
  memcpy(r->l + to, from, (size_t)below);
  memset(r->l + to + below, 0, (size_t)(bytes - below));
  if (i >= first && i < first + cols) put_one(r->l + to + below, size);
  memset(r->u + to, 0, (size_t)below);
  memcpy(r->u + to + below, from + below, (size_t)(bytes - below));
}

/* Where the strip that ends before column `end` has each row of L. */
static void find_places(const lu_memory *m, int64_t end, int64_t n, int64_t *out) {
  for (int64_t i = 0; i < n; i++) out[i] = i;
  for (int64_t i = end; i < n; i++) ts_linalg_swap(out, i, m->pivots[i]);
}

static void put_strip(void *arg, int64_t task, int worker) {
  const put_run *p = arg;
  const lu_state *s = p->r->s;
  const int64_t n = s->n, first = task * BLOCK, cols = ts_linalg_min(BLOCK, n - first);
  int64_t *places = (int64_t *)(void *)p->m->room + task * n;
  (void)worker;
  find_places(p->m, first + cols, n, places);
  for (int64_t i = 0; i < n; i++) put_part(p, i, places[i], first, cols);
  for (int64_t i = first; i < first + cols; i++)
    put_one(p->r->x + ((p->which * n + p->m->order[i]) * n + i) * s->size, s->size);
}

static void put_factors(const lu_run *r, const lu_memory *m, int64_t which) {
  put_run p = {r, m, which};
  ts_parallel_run(r->inner, (r->s->n + BLOCK - 1) / BLOCK, put_strip, &p);
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
  const int64_t n = s->n, solved = ts_linalg_solve_elements(ts_linalg_min(s->cols, MAX_COLUMNS), false);
  const int64_t places = (n + BLOCK - 1) / BLOCK * n * 8;
  int64_t a, b, results;
  s->factor_bytes = round_up(n * lu_pitch(n) * s->size);
  s->pivot_bytes = round_up(n * 8);
  s->room_bytes = ts_linalg_max(ts_linalg_max(lu_room_elements(s->gemm, n), solved) * s->size, places);
  s->thread_bytes = round_up(s->factor_bytes + 2 * s->pivot_bytes + s->room_bytes);
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
  if (s->n > BLOCK) TS_TRY(ts_gemm_get(s->computed, NULL, &s->gemm));
  return plan_workspace(s, out);
}

static void lu_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((lu_state *)plan->state)->gemm);
}

const ts_routine ts_lu_routine = {"lu", lu_plan, NULL, lu_run_op, lu_deinit};
