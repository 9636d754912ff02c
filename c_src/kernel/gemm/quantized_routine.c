/* The op quantized_dot as a routine. A few rows are multiplied with each panel of the weight while it is unpacked in
 * registers; more rows are a product by tiles, whose packing unpacks the weight. */
#include "base/cancel.h"
#include "jit/session/target.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/quantized.h"
#include "kernel/routine.h"
#include "tensor/contract_order.h"

#include <string.h>

/* Bytes of the weight that are worth a thread, if they are multiplied with one row, and bytes of one task. */
#define PARALLEL_MIN_BYTES (256 << 10)
#define TASK_BYTES (64 << 10)

typedef struct quantized_state {
  ts_quantized weight; /* without addresses */
  ts_gemm_shape shape;
  bool has_few_rows;
  ts_gemm *gemm; /* of many rows */
  ts_kernel_source source;
  ts_epilogue_space space;
} quantized_state;

typedef struct quantized_run {
  const quantized_state *state;
  ts_quantized weight;
  ts_quantized_rows rows;
  const ts_quantized_code *code;
  const ts_routine_run *run;
  int64_t per_task, work_bytes; /* panels of a task */
  char *work;
  char *out;
} quantized_run;

static int64_t panel_bytes(const ts_quantized *w) {
  return ts_quantized_words(w->k, w->bits) * TS_QUANTIZED_COLS * (int64_t)sizeof(uint32_t);
}

static int64_t weight_bytes(const ts_quantized *w) {
  int64_t bytes;
  return ts_mul_i64(panel_bytes(w), ts_quantized_panels(w->cols), &bytes) ? bytes : INT64_MAX;
}

static bool is_large(const ts_quantized *w, int64_t rows) {
  return rows > 0 && weight_bytes(w) >= PARALLEL_MIN_BYTES / rows;
}

/* ---- a few rows ---- */

static bool shows_whole_rows(const quantized_run *r) { return r->run->epilogue && r->run->epilogue->whole_rows; }

static void finish_panel(const quantized_run *r, int64_t panel, const float *sums, int worker) {
  const ts_quantized *w = &r->weight;
  const int64_t first = panel * TS_QUANTIZED_COLS, rest = w->cols - first;
  const int64_t cols = rest < TS_QUANTIZED_COLS ? rest : TS_QUANTIZED_COLS, size = (int64_t)ts_dtype_size(w->type);
  const ts_epilogue *epilogue = r->run->epilogue;
  for (int64_t i = 0; i < r->rows.rows; i++) {
    char *to = r->out + (i * w->cols + first) * size;
    if (w->type == TS_F32)
      memcpy(to, sums + i * TS_QUANTIZED_COLS, (size_t)(cols * size));
    else
      ts_gemm_widen_host()->narrow(w->type, sums + i * TS_QUANTIZED_COLS, cols, to);
  }
  if (epilogue && !epilogue->whole_rows)
    epilogue->run(epilogue->context, &(ts_epilogue_part){0, 0, r->rows.rows, first, cols}, worker);
}

static void panels_task(void *arg, int64_t task, int worker) {
  const quantized_run *r = arg;
  const int64_t panels = ts_quantized_panels(r->weight.cols), end = (task + 1) * r->per_task;
  float *work = (float *)(void *)(r->work + worker * r->work_bytes);
  for (int64_t p = task * r->per_task; p < end && p < panels; p++) {
    if (ts_cancelled(r->run->cancel)) return;
    r->code->panel(&r->rows, p, work);
    finish_panel(r, p, work, worker);
  }
}

/* x in f32, as ts_quantized_rows has it: itself, or a copy in the workspace. */
static const float *pack_rows(const quantized_state *s, const ts_routine_run *run) {
  const char *x = ts_routine_operand(run, 0);
  const int64_t rows = s->shape.m, k = s->shape.k, size = (int64_t)ts_dtype_size(s->weight.type);
  if (s->weight.type == TS_F32 && rows == 1) return (const float *)(const void *)x;
  float *to = (float *)(void *)run->workspace;
  for (int64_t row = 0; row < rows;) {
    const int here = (int)ts_quantized_rows_side_by_side(rows - row);
    const gemm_pack pack = {.dtype = s->weight.type,
                            .compute = TS_GEMM_F32,
                            .unit_stride = k,
                            .k_stride = 1,
                            .step = here,
                            .width = here,
                            .scale_type = TS_DTYPE_NONE};
    ts_gemm_pack(&pack, x + row * k * size, here, k, (char *)(to + row * k), 0);
    row += here;
  }
  return to;
}

/* 0, or numbers whose products with exact weights, which are 0 or at least 2^-80, do not become 0. So no sum is -0, and
 * none shows the sign of a weight of 0, which exact kinds do not compute as others do. */
static bool are_plain(const float *x, int64_t count) {
  uint32_t other = 0;
  for (int64_t i = 0; i < count; i++) {
    const uint32_t bits = ts_f32_bits(x[i]) & 0x7FFFFFFF;
    other |= (uint32_t)(bits != 0) & (uint32_t)(bits - (67u << 23) > 120u << 23);
  }
  return other == 0;
}

static ts_status run_few(const quantized_state *s, const ts_routine_run *run, const ts_quantized *w) {
  const int64_t panels = ts_quantized_panels(w->cols), one = panel_bytes(w);
  if (s->shape.m == 0) return TS_SUCCESS;
  quantized_run r = {.state = s,
                     .weight = *w,
                     .code = ts_quantized_host(),
                     .run = run,
                     .work = run->thread_workspace,
                     .work_bytes = ts_pool_padded(4 * ts_quantized_work(s->shape.m, w->k)),
                     .out = ts_routine_result(run, 0)};
  r.rows = (ts_quantized_rows){&r.weight, pack_rows(s, run), s->shape.m,
                               ts_contract_order_of(w->type, ts_target_host()->amx), false};
  r.rows.is_plain = s->shape.m == 1 && are_plain(r.rows.x, w->k);
  r.per_task = one < TASK_BYTES ? TASK_BYTES / (one + 1) + 1 : 1;
  const bool large = is_large(w, s->shape.m);
  ts_parallel_run(large ? run->parallel : &ts_parallel_serial, gemm_ceil_div(panels, r.per_task), panels_task, &r);
  TS_TRY(ts_check_cancelled(run->cancel, "a product with a quantised weight"));
  if (shows_whole_rows(&r))
    run->epilogue->run(run->epilogue->context, &(ts_epilogue_part){0, 0, s->shape.m, 0, w->cols}, 0);
  return TS_SUCCESS;
}

/* ---- the routine ---- */

static void set_shape(const ts_graph *g, const ts_op *op, quantized_state *s) {
  const ts_attrs *a = op->attrs;
  const ts_value *x = ts_graph_value(g, op->operands[0]);
  const int32_t last = x->shape->rank - 1;
  const int64_t k = x->shape->dims[last], n = a->quantized_dot.cols;
  int64_t m = 1;
  for (int32_t d = 0; d < last; d++) m *= x->shape->dims[d];
  s->weight = (ts_quantized){.scale_type = ts_graph_value(g, op->operands[2])->dtype,
                             .type = x->dtype,
                             .bits = a->quantized_dot.bits,
                             .form = (ts_quantized_form)a->quantized_dot.form,
                             .group = a->quantized_dot.group,
                             .k = k,
                             .cols = n};
  s->shape = (ts_gemm_shape){.batch = 1, .m = m, .n = n, .k = k, .lhs_row = k, .lhs_col = 1, .out_row = n};
  s->shape.out_batch = m * n;
  s->has_few_rows = m <= TS_QUANTIZED_MAX_ROWS;
}

static int64_t estimate(const quantized_state *s) {
  const ts_gemm_shape rows = {.batch = 1, .m = s->shape.m, .n = s->shape.n, .k = s->shape.k};
  const int64_t product = ts_gemm_cost(s->weight.type, &rows);
  /* A third of a nanosecond for each op on a vector: two unpack numbers. */
  const double vectors = (double)s->shape.k * (double)s->shape.n / ts_target_host()->lanes;
  const double few = 100 + vectors * (2 + (double)s->shape.m) / 3;
  return s->has_few_rows && few < (double)product ? (int64_t)few : product;
}

static ts_status quantized_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  quantized_state *s;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (quantized_state){0};
  set_shape(request->graph, op, s);
  out->state = s;
  const ts_gemm_shape *shape = &s->shape;
  s->space = (ts_epilogue_space){.batch = 1, .rows = shape->m, .cols = shape->n};
  s->space.is_parallel = is_large(&s->weight, shape->m);
  out->epilogue = &s->space;
  out->cost_ns = estimate(s);
  if (s->has_few_rows) {
    if (s->weight.type != TS_F32 || shape->m > 1) out->workspace = ts_pool_padded(shape->m * shape->k * 4);
    out->thread_workspace = ts_pool_padded(4 * ts_quantized_work(shape->m, shape->k));
    return TS_SUCCESS;
  }
  TS_TRY(ts_gemm_prepare_quantized(s->weight.type, shape, &s->gemm, &s->source));
  s->space.is_parallel = ts_gemm_is_large(s->gemm, shape);
  out->kernel = &s->source;
  return TS_SUCCESS;
}

static void quantized_adopt(const ts_routine_plan *plan, ts_kernel *kernel) {
  ts_gemm_adopt(((quantized_state *)plan->state)->gemm, kernel);
}

static ts_status quantized_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const quantized_state *s = plan->state;
  ts_quantized w = s->weight;
  w.words = ts_routine_operand(run, 1);
  w.scales = ts_routine_operand(run, 2);
  if (plan->operand_count == 4) w.others = ts_routine_operand(run, 3);
  if (s->has_few_rows) return run_few(s, run, &w);
  const ts_gemm_call call = {.lhs = ts_routine_operand(run, 0),
                             .rhs = w.words,
                             .quantized = &w,
                             .out = ts_routine_result(run, 0),
                             .epilogue = run->epilogue,
                             .parallel = run->parallel,
                             .pool = run->pool,
                             .cancel = run->cancel};
  return ts_gemm_run(s->gemm, &s->shape, &call);
}

static void quantized_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((quantized_state *)plan->state)->gemm);
}

const ts_routine ts_quantized_routine = {"quantized", quantized_plan, quantized_adopt, quantized_run_op,
                                         quantized_deinit};
