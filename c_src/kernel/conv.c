/* Convolution as a product: a row of its left side is what the kernel meets at one place of the output, found and
 * packed as the product goes, so that it is never in memory as a whole; the right side is the kernel as it lies. Where
 * channels are few the operand is padded once, so that what a row of the kernel meets is one run. Of one channel a
 * group and one feature a channel (depthwise) channels are in the lanes of vectors, without a product. */
#include "base/cancel.h"
#include "jit/emit/gemm_emit.h"
#include "kernel/gemm.h"
#include "kernel/routine.h"
#include "kernel/window_lanes.h"

#include <string.h>

/* Spatial dims that are not of one element; of more the interpreter does it. */
enum { MAX_SPATIAL = 4 };
/* Shorter runs of channels are worth a padded copy. */
#define SHORT_RUN_BYTES 64
/* Bytes of a padded copy that one task makes, and elements read by a task of a depthwise convolution, about. */
#define COPY_BYTES (INT64_C(256) << 10)
#define TASK_ELEMENTS (INT64_C(128) << 10)

typedef struct conv_dim {
  int64_t n, kernel, stride, low, high, input_dilation, kernel_dilation, out;
  int64_t step; /* bytes */
} conv_dim;

typedef struct conv_state {
  ts_dtype type;
  int64_t size, batch, channels, groups;
  int32_t rank;
  conv_dim dims[MAX_SPATIAL];        /* as the product walks them */
  conv_dim source[MAX_SPATIAL];      /* of the operand, when it is copied */
  bool copies, inside;               /* into the workspace; no place of the kernel is outside */
  int64_t source_bytes, batch_bytes; /* of an element of the batch: of the operand, and as it is walked */
  int64_t run;                       /* elements that one place of the kernel meets */
  int64_t places;                    /* of the kernel, as it is walked */
  int64_t outputs;                   /* places of the output, of one element of the batch */
  const int64_t *distances;          /* of each place of the kernel from its first, in each dim, with dilation */
  const int64_t *moved;              /* the same in bytes */
  const char *zeros;                 /* a run of them */
  ts_window_dot_fn dot;              /* depthwise; NULL: a product */
  ts_gemm_shape shape;
  ts_gemm *gemm;
  ts_kernel_source kernel;
  ts_epilogue_space space;
} conv_state;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- what the kernel meets */

typedef struct conv_run {
  const conv_state *s;
  const char *x, *kernel; /* the operand as it is walked */
  const char *source;
  char *copy, *out, *workers;
  int64_t worker_bytes, step; /* of a task: rows */
  const _Atomic bool *cancel;
} conv_run;

/* Where the kernel lies for some rows: of the batch and the group, and its first place in each spatial dim. */
typedef struct row_state {
  int64_t count;
  const char *base[TS_GEMM_MAX_ROWS];  /* of the element of the batch, and the group */
  const char *start[TS_GEMM_MAX_ROWS]; /* what the first place meets, where all places meet something; else NULL */
  int64_t first[TS_GEMM_MAX_ROWS][MAX_SPATIAL];
} row_state;
_Static_assert(sizeof(row_state) <= TS_GEMM_ROW_STATE, "no room for the state of rows");

static bool is_inside(const conv_state *s, const int64_t *first) {
  for (int32_t d = 0; d < s->rank; d++) {
    const conv_dim *dim = &s->dims[d];
    if (dim->input_dilation != 1 || first[d] < 0) return false;
    if (first[d] + (dim->kernel - 1) * dim->kernel_dilation >= dim->n) return false;
  }
  return true;
}

static const char *get_start(const conv_state *s, const char *base, const int64_t *first) {
  if (!s->inside && !is_inside(s, first)) return NULL;
  for (int32_t d = 0; d < s->rank; d++) base += first[d] * s->dims[d].step;
  return base;
}

static void start_rows(const void *context, int64_t group, int64_t row, int64_t count, void *state) {
  const conv_run *run = context;
  const conv_state *s = run->s;
  row_state *r = state;
  int64_t at[MAX_SPATIAL] = {0}, batch = row / s->outputs, rest = row % s->outputs;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    at[d] = rest % s->dims[d].out;
    rest /= s->dims[d].out;
  }
  r->count = count;
  for (int64_t u = 0; u < count; u++) {
    r->base[u] = run->x + batch * s->batch_bytes + group * (s->channels / s->groups) * s->size;
    for (int32_t d = 0; d < s->rank; d++) r->first[u][d] = at[d] * s->dims[d].stride - s->dims[d].low;
    r->start[u] = get_start(s, r->base[u], r->first[u]);
    int32_t d = s->rank - 1;
    for (; d >= 0 && ++at[d] == s->dims[d].out; d--) at[d] = 0;
    if (d < 0) batch++;
  }
}

/* Bytes from the base to what is met at `first + place`; -1 where that is padding. */
static int64_t met_bytes(const conv_state *s, const int64_t *first, const int64_t *place) {
  int64_t bytes = 0;
  for (int32_t d = 0; d < s->rank; d++) {
    const conv_dim *dim = &s->dims[d];
    int64_t at = first[d] + place[d];
    if (at < 0) return -1;
    if (dim->input_dilation > 1) {
      if (at % dim->input_dilation != 0) return -1;
      at /= dim->input_dilation;
    }
    if (at >= dim->n) return -1;
    bytes += at * dim->step;
  }
  return bytes;
}

/* Where the elements are that one place of the kernel meets, from `offset` bytes on. */
static const char *find_row(const conv_state *s, const row_state *r, int64_t row, int64_t place, int64_t offset) {
  if (r->start[row]) return r->start[row] + s->moved[place] + offset;
  int64_t bytes = met_bytes(s, r->first[row], s->distances + place * s->rank);
  return bytes < 0 ? s->zeros + offset : r->base[row] + bytes + offset;
}

static int64_t find_rows(const void *context, const void *state, int64_t k, const char **out) {
  const conv_run *run = context;
  const conv_state *s = run->s;
  const row_state *r = state;
  int64_t place = k / s->run, within = k % s->run;
  for (int64_t u = 0; u < r->count; u++) out[u] = find_row(s, r, u, place, within * s->size);
  return s->run - within;
}

/* ---- the padded copy */

/* One line along the last dim. */
static void copy_line(const conv_state *s, const char *from, char *to) {
  const conv_dim *d = &s->source[s->rank - 1], *padded = &s->dims[s->rank - 1];
  int64_t bytes = s->channels * s->size;
  memset(to, 0, (size_t)(padded->n * bytes));
  for (int64_t i = 0; i < d->n; i++) {
    int64_t at = i * d->input_dilation + d->low, count = 1;
    if (at < 0) continue;
    if (at >= padded->n) return;
    if (d->input_dilation == 1) count = min_of(d->n - i, padded->n - at);
    memcpy(to + at * bytes, from + i * bytes, (size_t)(count * bytes));
    i += count - 1;
  }
}

/* Where a line of the copy comes from; NULL for padding. */
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
  int64_t end = min_of((task + 1) * run->step, count_lines(s));
  (void)worker;
  for (int64_t line = task * run->step; line < end && !ts_cancelled(run->cancel); line++) {
    const char *from = source_line(run, line);
    if (from)
      copy_line(s, from, run->copy + line * line_bytes(s));
    else
      memset(run->copy + line * line_bytes(s), 0, (size_t)line_bytes(s));
  }
}

static void make_copy(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  if (s->batch_bytes == 0 || s->batch == 0) return;
  run->step = ceil_div(COPY_BYTES, line_bytes(s));
  int64_t tasks = ceil_div(count_lines(s), run->step);
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : parallel, tasks, copy_task, run);
}

/* ---- depthwise */

static void depthwise_task(void *arg, int64_t task, int worker) {
  const conv_run *run = arg;
  const conv_state *s = run->s;
  const char **taps = (const char **)(void *)(run->workers + worker * run->worker_bytes);
  int64_t end = min_of((task + 1) * run->step, s->batch * s->outputs);
  for (int64_t row = task * run->step; row < end && !ts_cancelled(run->cancel); row++) {
    row_state r;
    start_rows(run, 0, row, 1, &r);
    for (int64_t t = 0; t < s->places; t++) taps[t] = find_row(s, &r, 0, t, 0);
    s->dot(taps, s->places, run->kernel, s->channels, run->out + row * s->channels * s->size);
  }
}

static void run_depthwise(conv_run *run, const ts_parallel *parallel) {
  const conv_state *s = run->s;
  run->step = ceil_div(TASK_ELEMENTS, s->channels * (s->places > 0 ? s->places : 1));
  int64_t tasks = ceil_div(s->batch * s->outputs, run->step);
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : parallel, tasks, depthwise_task, run);
}

/* ---- runs */

static ts_status conv_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const conv_state *s = plan->state;
  conv_run r = {.s = s,
                .source = ts_routine_operand(run, 0),
                .kernel = ts_routine_operand(run, 1),
                .copy = run->workspace,
                .out = ts_routine_result(run, 0),
                .workers = run->thread_workspace,
                .worker_bytes = plan->thread_workspace,
                .cancel = run->cancel};
  r.x = s->copies ? r.copy : r.source;
  if (s->copies) make_copy(&r, run->parallel);
  if (s->dot) {
    if (s->batch * s->outputs > 0 && s->channels > 0) run_depthwise(&r, run->parallel);
    return ts_check_cancelled(run->cancel, "a convolution");
  }
  const ts_gemm_rows rows = {&r, start_rows, find_rows};
  return ts_gemm_run_rows(s->gemm, &s->shape, &rows, r.kernel, r.out, run->epilogue, run->parallel, run->pool,
                          run->cancel);
}

/* ---- the plan */

/* False when there are too many spatial dims. Those of one element that nothing is done to are left out. */
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
    if (s->rank == MAX_SPATIAL) return false;
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

/* The dims of the padded copy; false when it would be out of all proportion. */
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

/* The last spatial dim's places of the kernel and their channels are one run, if all is inside. */
static void plan_runs(conv_state *s) {
  conv_dim *last = s->rank > 0 ? &s->dims[s->rank - 1] : NULL;
  bool joins = !s->dot && last && s->groups == 1 && last->kernel_dilation == 1 && last->kernel > 1;
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
  s->places = s->outputs = 1;
  for (int32_t d = 0; d < s->rank; d++) {
    s->places *= s->dims[d].kernel;
    s->outputs *= s->dims[d].out;
  }
}

/* Tables of the kernel's places, so that none is found by divisions. An empty kernel may have any number of them. */
static ts_status plan_places(conv_state *s, bool is_empty, ts_arena *arena) {
  int64_t *distances, *moved, at[MAX_SPATIAL] = {0}, places = is_empty ? 0 : s->places;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)(places * s->rank) + 1, &distances));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)places + 1, &moved));
  for (int64_t t = 0; t < places; t++) {
    moved[t] = 0;
    for (int32_t d = 0; d < s->rank; d++) {
      distances[t * s->rank + d] = at[d] * s->dims[d].kernel_dilation;
      /* A place that is never inside may be anywhere. */
      moved[t] = (int64_t)((uint64_t)moved[t] + (uint64_t)distances[t * s->rank + d] * (uint64_t)s->dims[d].step);
    }
    for (int32_t d = s->rank - 1; d >= 0 && ++at[d] == s->dims[d].kernel; d--) at[d] = 0;
  }
  s->distances = distances;
  s->moved = moved;
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
                             .k = s->places * s->run,
                             .rhs_batch = s->groups > 1 ? group : 0,
                             .rhs_row = features,
                             .rhs_col = 1,
                             .out_batch = group,
                             .out_row = features};
  TS_TRY(ts_gemm_prepare_rows(s->type, &s->gemm, &s->kernel));
  out->kernel = &s->kernel;
  out->cost_ns = ts_gemm_cost(s->type, &s->shape);
  s->space = (ts_epilogue_space){.batch = 1, .rows = s->shape.m, .cols = features};
  s->space.is_parallel = s->shape.k > 0 && s->shape.m * s->shape.n >= (768 << 10) / s->shape.k;
  if (s->groups == 1) out->epilogue = &s->space;
  return TS_SUCCESS;
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
  if (s->run == 1 && features == channels) s->dot = ts_window_lanes_host()->dots[s->type];
  plan_runs(s);
  fill_counts(s);
  TS_TRY(plan_places(s, ts_shape_elements(kernel->shape) == 0, request->arena));
  TS_TRY(plan_zeros(s, request->arena));
  out->state = s;
  if (s->copies) out->workspace = s->batch * s->batch_bytes;
  if (!s->dot) return plan_product(s, features, out);
  out->thread_workspace = (s->places * (int64_t)sizeof(char *) + 64) / 64 * 64;
  out->cost_ns = 100 + (int64_t)((double)(s->batch * s->outputs) * (double)(s->channels * s->places) / 8);
  return TS_SUCCESS;
}

static void conv_adopt(const ts_routine_plan *plan, ts_kernel *kernel) {
  ts_gemm_adopt(((conv_state *)plan->state)->gemm, kernel);
}

static void conv_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((conv_state *)plan->state)->gemm);
}

const ts_routine ts_conv_routine = {"conv", conv_plan, conv_adopt, conv_run_op, conv_deinit};
