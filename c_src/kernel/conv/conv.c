/* Convolution as a matrix product. A row of lhs has the elements of the operand that the kernel's taps read for one
 * output position. Rows are packed block by block while the product runs, so lhs is never in memory as a whole; rhs is
 * the kernel, unchanged. With few channels the operand is first copied with its padding, so that the taps of one row of
 * the kernel read contiguous memory. Where the kernel is small, rows are not packed but read where they are
 * (conv_direct.c). A depthwise convolution (one channel a group, one feature a channel) computes with
 * channels in the lanes of vectors, without a product. */
#include "kernel/conv/conv_internal.h"
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

/* Shorter runs of channels are worth a padded copy. */
#define SHORT_RUN_BYTES 128
/* Approximate bytes of a task that makes a padded copy. */
#define COPY_BYTES (INT64_C(256) << 10)

/* ---- the elements that taps read */

static int64_t find_rows(const void *context, const void *state, int64_t k, const char **out) {
  const conv_run *run = context;
  const conv_state *s = run->s;
  const conv_rows *r = state;
  int64_t tap = k / s->run, within = k % s->run;
  for (int64_t u = 0; u < r->count; u++) out[u] = ts_conv_find_row(s, r, u, tap, within * s->size);
  return s->run - within;
}

/* ---- the padded copy */

/* The operand's line for a line of the copy; NULL for padding. */
static const char *source_line(const conv_run *run, int64_t line) {
  const conv_state *s = run->s;
  int64_t bytes = 0;
  for (int32_t d = s->rank - 2; d >= 0; d--) {
    int64_t at = line % s->dims[d].n - s->source[d].low, dilation = s->source[d].input_dilation;
    line /= s->dims[d].n;
    if (at < 0 || at % dilation != 0 || at / dilation >= s->source[d].n) return NULL;
    bytes += at / dilation * s->source[d].step;
  }
  return run->source + line * s->source_bytes + bytes;
}

static int64_t line_bytes(const conv_state *s) { return s->dims[s->rank - 1].n * s->channels * s->size; }
static int64_t count_lines(const conv_state *s) { return s->batch * (s->batch_bytes / line_bytes(s)); }

static void copy_task(void *arg, int64_t task, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  int64_t end = conv_min((task + 1) * run->step, count_lines(s));
  (void)worker;
  for (int64_t line = task * run->step; line < end && !ts_cancelled(run->cancel); line++) {
    const char *from = source_line(run, line);
    if (from)
      ts_conv_copy_line(&s->source[s->rank - 1], s->dims[s->rank - 1].n, s->channels * s->size, from,
                        run->copy + line * line_bytes(s));
    else
      memset(run->copy + line * line_bytes(s), 0, (size_t)line_bytes(s));
  }
}

static void make_copy(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  if (s->batch_bytes == 0 || s->batch == 0) return;
  run->step = conv_ceil_div(COPY_BYTES, line_bytes(s));
  int64_t tasks = conv_ceil_div(count_lines(s), run->step);
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : parallel, tasks, copy_task, run);
}

/* ---- runs */

static ts_status conv_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const conv_state *s = plan->state;
  conv_run r = {.s = s,
                .source = ts_routine_operand(run, 0),
                .kernel = ts_routine_operand(run, 1),
                .panels = run->prepared,
                .copy = run->workspace,
                .out = ts_routine_result(run, 0),
                .workers = run->thread_workspace,
                .worker_bytes = plan->thread_workspace,
                .epilogue = run->epilogue,
                .cancel = run->cancel};
  r.x = s->copies ? r.copy : r.source;
  if (s->copies) make_copy(&r, run->parallel);
  if (s->dot) {
    if (s->batch * s->outputs > 0 && s->channels > 0) ts_conv_run_depthwise(&r, run->parallel);
    return ts_check_cancelled(run->cancel, "a convolution");
  }
  if (s->direct.used) {
    (s->direct.few.used ? ts_conv_run_few : ts_conv_run_direct)(&r, run->parallel);
    return ts_check_cancelled(run->cancel, "a convolution");
  }
  const ts_gemm_rows rows = {&r, ts_conv_start_rows, find_rows};
  return ts_gemm_run_rows(s->gemm, &s->shape,
                          &(ts_gemm_call){.rows = &rows,
                                          .rhs = r.kernel,
                                          .packed = run->prepared,
                                          .out = r.out,
                                          .epilogue = run->epilogue,
                                          .parallel = run->parallel,
                                          .pool = run->pool,
                                          .cancel = run->cancel});
}

static ts_status prepare_kernel(const ts_routine_plan *plan, const ts_routine_run *run, void *out) {
  const conv_state *s = plan->state;
  const ts_gemm_call call = {
      .rhs = ts_routine_operand(run, 1), .parallel = run->parallel, .pool = run->pool, .cancel = run->cancel};
  return ts_gemm_pack_weights(s->gemm, &s->shape, &call, out);
}

/* ---- the plan */

/* False when there are too many spatial dims. Dims of one element without padding are left out. */
static bool fill_dims(conv_state *s, const ts_op *op, const ts_shape *x, const ts_shape *kernel, const ts_shape *out) {
  const ts_attrs *a = op->attrs;
  for (int32_t d = 0; d < x->rank - 2; d++) {
    conv_dim dim = {.n = x->dims[1 + d],
                    .kernel = kernel->dims[d],
                    .stride = a->conv.strides.dims[d],
                    .low = a->conv.low.dims[d],
                    .high = a->conv.high.dims[d],
                    .input_dilation = a->conv.input_dilation.dims[d],
                    .kernel_dilation = a->conv.kernel_dilation.dims[d],
                    .out = out->dims[1 + d]};
    if (dim.n == 1 && dim.kernel == 1 && dim.low == 0 && dim.out == 1) continue;
    if (s->rank == CONV_SPATIAL) return false;
    s->dims[s->rank++] = dim;
  }
  return true;
}

static int64_t fill_steps(const conv_state *s, conv_dim *dims) {
  int64_t step = s->channels * s->size;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    dims[d].step = step;
    step *= dims[d].n;
  }
  return step;
}

static bool needs_padding(const conv_state *s) {
  for (int32_t d = 0; d < s->rank; d++)
    if (s->dims[d].low > 0 || s->dims[d].high > 0 || s->dims[d].input_dilation > 1) return true;
  return false;
}

/* The dims of the padded copy; false when it would be several times as large as the operand. */
static bool pad_dims(conv_state *s) {
  double before = 1, after = 1;
  memcpy(s->source, s->dims, sizeof s->dims);
  for (int32_t d = 0; d < s->rank; d++) {
    conv_dim *dim = &s->dims[d];
    int64_t wide = dim->n > 0 ? (dim->n - 1) * dim->input_dilation + 1 : 0;
    before *= (double)dim->n, after *= (double)(wide + dim->low + dim->high);
    dim->n = wide + dim->low + dim->high;
    dim->low = dim->high = 0;
    dim->input_dilation = 1;
  }
  if (after <= 4 * before + 4096) return true;
  memcpy(s->dims, s->source, sizeof s->dims);
  return false;
}

/* The taps of the last spatial dim, with their channels, read one run when all taps are in bounds. */
static void plan_runs(conv_state *s) {
  conv_dim *last = s->rank > 0 ? &s->dims[s->rank - 1] : NULL;
  bool joins = !s->dot && !s->direct.used && last && s->groups == 1 && last->kernel_dilation == 1 && last->kernel > 1;
  bool padding = needs_padding(s);
  if (joins && padding && s->run * s->size < SHORT_RUN_BYTES && pad_dims(s)) s->copies = true;
  s->source_bytes = fill_steps(s, s->copies ? s->source : s->dims);
  s->batch_bytes = fill_steps(s, s->dims);
  s->inside = s->copies || !padding;
  if (!joins || !s->inside) return;
  s->run *= last->kernel;
  last->kernel = 1;
}

static void fill_counts(conv_state *s) {
  s->taps = s->outputs = 1;
  for (int32_t d = 0; d < s->rank; d++) {
    s->taps *= s->dims[d].kernel;
    s->outputs *= s->dims[d].out;
  }
}

/* Tables of the taps, which save divisions. An empty kernel may have dims of any size. */
static ts_status plan_taps(conv_state *s, bool is_empty, ts_arena *arena) {
  int64_t *distances, *bytes, at[CONV_SPATIAL] = {0}, taps = is_empty ? 0 : s->taps;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)(taps * s->rank) + 1, &distances));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)taps + 1, &bytes));
  for (int64_t t = 0; t < taps; t++) {
    bytes[t] = 0;
    for (int32_t d = 0; d < s->rank; d++) {
      distances[t * s->rank + d] = at[d] * s->dims[d].kernel_dilation;
      /* May wrap for a tap that is never in bounds. */
      bytes[t] = (int64_t)((uint64_t)bytes[t] + (uint64_t)distances[t * s->rank + d] * (uint64_t)s->dims[d].step);
    }
    for (int32_t d = s->rank - 1; d >= 0 && ++at[d] == s->dims[d].kernel; d--) at[d] = 0;
  }
  s->distances = distances;
  s->distance_bytes = bytes;
  return TS_SUCCESS;
}

static ts_status plan_zeros(conv_state *s, ts_arena *arena) {
  size_t bytes = (size_t)((s->dot ? s->channels : s->run) * s->size);
  char *zeros;
  TS_TRY(TS_ARENA_ARRAY(arena, bytes + 1, &zeros));
  memset(zeros, 0, bytes + 1);
  s->zeros = zeros;
  return TS_SUCCESS;
}

static ts_status plan_product(conv_state *s, int64_t features, ts_routine_plan *out) {
  int64_t group = features / s->groups;
  s->shape = (ts_gemm_shape){.batch = s->groups,
                             .m = s->batch * s->outputs,
                             .n = group,
                             .k = s->taps * s->run,
                             .rhs_batch = s->groups > 1 ? group : 0,
                             .rhs_row = features,
                             .rhs_col = 1,
                             .out_batch = group,
                             .out_row = features};
  TS_TRY((s->direct.used ? ts_gemm_prepare_strided : ts_gemm_prepare_rows)(s->type, &s->gemm, &s->kernel));
  out->kernel = &s->kernel;
  const int64_t phases = s->direct.used ? conv_count_phases(&s->direct) : 1;
  out->cost_ns = ts_gemm_cost(s->type, &s->shape) / phases;
  s->space = (ts_epilogue_space){.batch = 1, .rows = s->shape.m, .cols = features};
  s->space.is_parallel = s->shape.k > 0 && s->shape.m * s->shape.n / phases >= (768 << 10) / s->shape.k;
  if (s->groups == 1) out->epilogue = &s->space;
  if (s->direct.few.used) {
    out->workspace = ts_conv_few_shared_bytes(s);
    out->thread_workspace = ts_conv_few_bytes(s);
  } else if (s->direct.used) {
    out->thread_workspace = ts_conv_direct_bytes(s);
    if (s->direct.panels) out->workspace = ts_conv_count_panels(s) * ts_conv_panel_bytes(s);
    if (s->direct.panels && ts_conv_keeps_panels(s, &s->weights)) out->weights = &s->weights;
    return TS_SUCCESS;
  }
  s->weights = (ts_weights){.operand = 1, .prepare = prepare_kernel};
  if (!s->direct.used && ts_gemm_packs_weights(s->gemm, &s->shape, &s->weights.key, &s->weights.bytes))
    out->weights = &s->weights;
  return TS_SUCCESS;
}

/* Places of the output are neighbours along the last dim. */
static void plan_depthwise(conv_state *s) {
  const ts_window_lanes *lanes =
      ts_window_lanes_for(s->channels * (int64_t)ts_dtype_size(ts_dtype_accumulator(s->type)));
  s->dot = lanes->dots[s->type];
  s->strip = lanes->strips[s->type];
  if (s->dot && s->rank == 0) s->dims[s->rank++] = (conv_dim){1, 1, 1, 0, 0, 1, 1, 1, 0};
}

static ts_status conv_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_graph *g = request->graph;
  const ts_op *op = ts_graph_op(g, request->op);
  const ts_value *x = ts_graph_value(g, op->operands[0]), *kernel = ts_graph_value(g, op->operands[1]);
  const ts_shape *result = ts_graph_value(g, op->first_result)->shape;
  int64_t channels = x->shape->dims[x->shape->rank - 1], features = result->dims[result->rank - 1];
  conv_state *s;
  if (!ts_gemm_has_type(x->dtype)) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (conv_state){.type = x->dtype,
                    .size = (int64_t)ts_dtype_size(x->dtype),
                    .batch = x->shape->dims[0],
                    .channels = channels,
                    .groups = op->attrs->conv.groups,
                    .run = channels / op->attrs->conv.groups};
  if (!fill_dims(s, op, x->shape, kernel->shape, result)) return TS_SUCCESS;
  fill_counts(s);
  if (s->run == 1 && features == channels && s->taps <= TS_CONTRACT_CHAIN) plan_depthwise(s); /* its sums are chains */
  fill_steps(s, s->dims);
  if (!s->dot && ts_conv_plan_direct(s, features))
    TS_TRY((s->direct.few.used ? ts_conv_plan_few_pieces : ts_conv_plan_phases)(s, request->arena));
  plan_runs(s);
  fill_counts(s);
  TS_TRY(plan_taps(s, ts_shape_elements(kernel->shape) == 0, request->arena));
  TS_TRY(plan_zeros(s, request->arena));
  out->state = s;
  if (s->copies) out->workspace = s->batch * s->batch_bytes;
  if (!s->dot) return plan_product(s, features, out);
  out->thread_workspace = ts_conv_depthwise_bytes(s);
  out->cost_ns = 100 + (int64_t)((double)(s->batch * s->outputs) * (double)(s->channels * s->taps) / 8);
  return TS_SUCCESS;
}

static void conv_adopt(const ts_routine_plan *plan, ts_kernel *kernel) {
  ts_gemm_adopt(((conv_state *)plan->state)->gemm, kernel);
}

static void conv_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((conv_state *)plan->state)->gemm);
}

const ts_routine ts_conv_routine = {"conv", conv_plan, conv_adopt, conv_run_op, conv_deinit};
