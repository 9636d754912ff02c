#include "kernel/sort/sort.h"

#include "kernel/sort/sort_parts.h"
#include "kernel/sort/sort_radix.h"
#include "kernel/sort/sort_short.h"

/* Work for one task. */
#define TASK_NS 100000
/* From these lengths on, threads share a line: always, or if there are at most FEW_LINES. */
#define SPLIT_ALWAYS (INT64_C(1) << 20)
#define SPLIT_FEW (INT64_C(1) << 15)
#define FEW_LINES 16

static const ts_sort_lanes_row *lanes_row(const ts_sort_plan *plan) {
  const ts_sort_lanes *lanes = ts_sort_lanes_host();
  return plan->index_size ? &lanes->indices[plan->width] : &lanes->values[plan->width];
}

/* ---- plan */

static ts_sort_key make_key(ts_dtype type, bool descending) {
  int bits = 8 * (int)ts_dtype_size(type);
  uint64_t all = ~UINT64_C(0) >> (64 - bits), sign = UINT64_C(1) << (bits - 1);
  ts_sort_key key = {.zero = 1, .magnitude = all, .limit = all};
  if (ts_dtype_is_float(type)) {
    key.zero_mask = all;
    key.zero = sign;
    key.magnitude = key.negative = all ^ sign;
    key.limit = ts_dtype_highest(type).bits; /* infinity, or 448 of f8_e4m3fn: numbers above are NaN */
    key.nan = descending ? 0 : all;
  }
  key.flip = (ts_dtype_is_unsigned(type) ? 0 : sign) ^ (descending ? all : 0);
  return key;
}

static int log2_size(ts_dtype type) { return __builtin_ctz((unsigned)ts_dtype_size(type)); }

/* Comparators of a bitonic sort of a line. */
static double comparators(int64_t n) {
  int64_t padded = ts_sort_lanes_padded(n);
  int steps = padded > 1 ? 64 - __builtin_clzll((unsigned long long)padded - 1) : 0;
  return (double)padded * steps * (steps + 1) / 4;
}

static double group_ns(const ts_sort_lanes_row *row, int64_t n) {
  return 20 + 0.3 * (double)n * row->lanes + row->ns * comparators(n);
}

/* Estimated for passes over all bits of the keys, the worst case. */
static double radix_ns(const ts_sort_plan *plan) {
  if (ts_sort_parts_suit(plan->width, plan->index_size, plan->n))
    return 200 + (double)ts_sort_lanes_host()->splits[plan->width].ns * (double)plan->n;
  double element = plan->index_size ? plan->width == 3 ? 2 : 1.3 : 1.1;
  return 300 + (1 << plan->width) * (400 + element * (double)plan->n);
}

static void plan_lanes(ts_sort_plan *plan, const ts_sort_lanes_row *row, double ns) {
  plan->method = TS_SORT_LANES;
  plan->per_task = (int64_t)(TASK_NS / ns) + 1;
  plan->cost_ns = (plan->lines + row->lanes - 1) / row->lanes * (int64_t)ns;
  plan->thread_workspace = ts_pool_padded(ts_sort_lanes_padded(plan->n) * row->lanes * row->record);
}

static void plan_radix(ts_sort_plan *plan, double ns) {
  bool split = plan->n >= SPLIT_ALWAYS || (plan->n >= SPLIT_FEW && plan->lines <= FEW_LINES);
  ts_sort_radix_bytes bytes = ts_sort_radix_workspace(plan, split);
  plan->method = split ? TS_SORT_SPLIT : TS_SORT_LINES;
  plan->per_task = (int64_t)(TASK_NS / ns) + 1;
  plan->cost_ns = (int64_t)((double)plan->lines * ns);
  plan->workspace = split ? bytes.line : 0;
  plan->thread_workspace = split ? bytes.thread : bytes.line + bytes.thread;
}

static void plan_short(ts_sort_plan *plan, double ns) {
  plan->method = TS_SORT_SHORT_LINES;
  plan->per_task = (int64_t)(TASK_NS / ns) + 1;
  plan->cost_ns = (int64_t)((double)plan->lines * ns);
}

static void choose(ts_sort_plan *plan) {
  const ts_sort_lanes_row *row = lanes_row(plan);
  int64_t groups = (plan->lines + row->lanes - 1) / row->lanes;
  double group = group_ns(row, plan->n), radix = radix_ns(plan), single = ts_sort_short_ns(plan->width, plan->n);
  bool may_be_short = plan->n <= TS_SORT_SHORT && plan->inner == 1 && plan->width > 0;
  if (plan->n <= 1 || plan->lines == 0)
    plan->cost_ns = 100 + plan->lines / 4;
  else if (may_be_short && (double)plan->lines * single < (double)groups * group)
    plan_short(plan, single);
  else if (plan->n <= row->limit && (double)groups * group <= (double)plan->lines * radix)
    plan_lanes(plan, row, group);
  else
    plan_radix(plan, radix);
}

/* Keys are bits of elements (make_key), which order all floats. */
bool ts_sort_has_type(ts_dtype type) {
  return ts_dtype_has_kernels(type) && ts_dtype_get_kind(type) != TS_KIND_COMPLEX;
}

static ts_status check(const ts_sort_spec *spec) {
  const char *op = spec->index == TS_DTYPE_NONE ? "sort" : "argsort";
  if (!ts_sort_has_type(spec->dtype))
    return ts_error(TS_INVALID_ARGUMENT, "%s: no sort of %s", op, ts_dtype_name(spec->dtype));
  if (spec->axis < 0 || spec->axis >= spec->shape->rank)
    return ts_error(TS_INVALID_ARGUMENT, "%s: axis %d of %s", op, spec->axis, TS_SHAPE_STR(spec->dtype, spec->shape));
  if (spec->index != TS_DTYPE_NONE && (!ts_dtype_supported(spec->index) || !ts_dtype_is_integer(spec->index)))
    return ts_error(TS_INVALID_ARGUMENT, "argsort: indices of type %s", ts_dtype_name(spec->index));
  if (spec->index != TS_DTYPE_NONE && spec->shape->dims[spec->axis] > UINT32_MAX)
    return ts_error(TS_OUT_OF_RANGE, "argsort: axis %d of %s is longer than 2^32 - 1", spec->axis,
                    TS_SHAPE_STR(spec->dtype, spec->shape));
  return TS_SUCCESS;
}

ts_status ts_sort_plan_make(const ts_sort_spec *spec, ts_sort_plan *out) {
  TS_TRY(check(spec));
  const ts_shape *shape = spec->shape;
  *out = (ts_sort_plan){.method = TS_SORT_COPY,
                        .key = make_key(spec->dtype, spec->descending),
                        .n = shape->dims[spec->axis],
                        .inner = 1,
                        .width = log2_size(spec->dtype),
                        .index_size = spec->index == TS_DTYPE_NONE ? 0 : (int)ts_dtype_size(spec->index)};
  int64_t elements = ts_shape_elements(shape);
  for (int d = spec->axis + 1; d < shape->rank; d++) out->inner *= shape->dims[d];
  out->lines = elements ? elements / out->n : 0;
  choose(out);
  return TS_SUCCESS;
}

/* ---- run */

typedef struct sort_run {
  const ts_sort_plan *plan;
  const ts_sort_resources *resources;
  const ts_sort_lanes_row *row;
  ts_sort_job job;
} sort_run;

static void sort_group(const sort_run *run, int64_t group, void *workspace) {
  int64_t first = group * run->row->lanes, left = run->job.lines - first;
  int count = left < run->row->lanes ? (int)left : run->row->lanes;
  bool special = run->row->fn(&run->job, first, count, workspace);
  for (int i = 0; special && i < count; i++) ts_sort_specials(&run->job, first + i);
}

static void lanes_task(void *arg, int64_t task, int worker) {
  const sort_run *run = arg;
  char *workspace = run->resources->thread_workspace + worker * run->plan->thread_workspace;
  int64_t groups = (run->job.lines + run->row->lanes - 1) / run->row->lanes, begin = task * run->plan->per_task;
  for (int64_t i = begin; i < groups && i < begin + run->plan->per_task && !ts_cancelled(run->job.cancel); i++)
    sort_group(run, i, workspace);
}

static void short_task(void *arg, int64_t task, int worker) {
  const sort_run *run = arg;
  int64_t begin = task * run->plan->per_task;
  (void)worker;
  for (int64_t i = begin; i < run->plan->lines && i < begin + run->plan->per_task && !ts_cancelled(run->job.cancel);
       i++)
    ts_sort_short(&run->job, i);
}

static void lines_task(void *arg, int64_t task, int worker) {
  const sort_run *run = arg;
  const ts_sort_plan *plan = run->plan;
  char *workspace = run->resources->thread_workspace + worker * plan->thread_workspace;
  ts_sort_radix_bytes bytes = ts_sort_radix_workspace(plan, false);
  ts_sort_radix_request request = {false, &ts_parallel_serial, workspace, workspace + bytes.line, bytes.thread};
  int64_t begin = task * plan->per_task;
  for (int64_t i = begin; i < plan->lines && i < begin + plan->per_task; i++)
    if (!ts_sort_radix(&run->job, i, &request)) return;
}

static void copy(const sort_run *run) {
  const ts_sort_plan *plan = run->plan;
  int64_t elements = plan->lines * plan->n;
  if (elements == 0) return;
  if (plan->index_size)
    memset(run->job.out, 0, (size_t)(elements * plan->index_size));
  else
    ts_copy_bytes(run->job.out, run->job.in, elements << plan->width, run->job.cancel);
}

static void in_tasks(sort_run *run, int64_t units, ts_task_fn fn) {
  int64_t per_task = run->plan->per_task;
  ts_parallel_run(run->resources->parallel, (units + per_task - 1) / per_task, fn, run);
}

static void split_lines(const sort_run *run) {
  const ts_sort_resources *with = run->resources;
  ts_sort_radix_request request = {true, with->parallel, with->workspace, with->thread_workspace,
                                   run->plan->thread_workspace};
  for (int64_t i = 0; i < run->plan->lines; i++)
    if (!ts_sort_radix(&run->job, i, &request)) return;
}

ts_status ts_sort_run(const ts_sort_plan *plan, const ts_sort_resources *resources, const void *in, void *out) {
  sort_run run = {
      plan,
      resources,
      lanes_row(plan),
      {plan->key, in, out, plan->n, plan->inner, plan->lines, plan->width, plan->index_size, resources->cancel}};
  switch (plan->method) {
  case TS_SORT_COPY: copy(&run); break;
  case TS_SORT_LANES: in_tasks(&run, (plan->lines + run.row->lanes - 1) / run.row->lanes, lanes_task); break;
  case TS_SORT_SHORT_LINES: in_tasks(&run, plan->lines, short_task); break;
  case TS_SORT_LINES: in_tasks(&run, plan->lines, lines_task); break;
  case TS_SORT_SPLIT: split_lines(&run); break;
  }
  return ts_check_cancelled(resources->cancel, plan->index_size ? "argsort" : "sort");
}
