/* A long line's keys are made in pieces that stay in the first cache, and split by a bound at once. What is left of the
 * pieces is sorted as a line of its own (sort_parts.h). Others are sorted whole, in slabs that stay in the second
 * cache.
 */
#include "kernel/sort/sort_first.h"

#include "kernel/sort/sort_lanes.h"
#include "kernel/sort/sort_parts.h"
#include "kernel/sort/sort_select.h"

#include <string.h>

/* Of shorter lines few elements are selected as fast, in which a bound from a sample takes most of the time; many are
 * sorted in lanes with the whole line. */
#define SHORTEST 4096
#define SHORTEST_OF_FEW 16384
#define LARGE_PART 6
/* Of so small a part of a line the elements are picked. */
#define SMALL_PART 64
#define LEAST_K 256
#define LONGEST (INT64_C(1) << 25)
/* Threads share a line from this length on, if there are at most FEW_LINES; and the sort of so many keys. */
#define SPLIT (INT64_C(1) << 15)
#define FEW_LINES 16
#define SHARED 16384
#define PIECE_BYTES 16384
#define SAMPLE TS_SORT_MOST_SAMPLE
/* Keys past the end of a line that its sort reads, in bytes. */
#define PAST 8192
#define TASK_NS 100000
/* Lines that are sorted together: in whole groups of lanes. */
#define SLAB_BYTES (INT64_C(1) << 17)
#define GROUP 16
/* Of the estimate for a network, which is that of slow machines, as the one for selecting is not. */
#define LANES_PART 0.7

/* The pass that makes sorts of other lines (pass/order.c) has the same bounds. */
static bool in_parts(const ts_sort_plan *sort, int64_t k) {
  const int64_t least = k >= sort->n / LARGE_PART ? SHORTEST : SHORTEST_OF_FEW;
  return sort->n >= least && sort->n <= LONGEST && k >= LEAST_K && k >= sort->n / SMALL_PART && k < sort->n &&
         ts_sort_parts_suit(sort->width, 0, sort->n);
}

/* ---- plan */

static int64_t piece_of(int width) { return PIECE_BYTES >> width; }
static int64_t pieces_of(const ts_sort_plan *sort) {
  return (sort->n + piece_of(sort->width) - 1) / piece_of(sort->width);
}
static int64_t keys_bytes(const ts_sort_plan *sort) { return ts_pool_padded((sort->n << sort->width) + PAST); }
static int64_t starts_bytes(const ts_sort_plan *sort) {
  return ts_pool_padded((pieces_of(sort) + 1) * (int64_t)sizeof(int64_t));
}

/* Of a line: what is kept, the keys that are sorted, the pieces; if threads share it, also what its sort takes. */
static int64_t line_bytes(const ts_sort_first_plan *plan) {
  const ts_sort_plan *sort = &plan->sort;
  const int64_t bytes = 2 * keys_bytes(sort) + starts_bytes(sort);
  return !plan->split ? bytes
                      : bytes + keys_bytes(sort) + ts_pool_padded(ts_sort_parts_gaps() << sort->width) +
                            ts_pool_padded(ts_sort_parts_workspace(sort->width, sort->n));
}

static int64_t thread_bytes(const ts_sort_first_plan *plan) {
  return PIECE_BYTES + ts_pool_padded(ts_sort_parts_thread(plan->sort.width, plan->sort.n));
}

static void plan_parts(ts_sort_first_plan *plan) {
  const double ns = 1000 + (plan->sort.width == 3 ? 1 : 0.6) * (double)plan->sort.n + 5 * (double)plan->k;
  plan->split = plan->sort.n >= SPLIT && plan->sort.lines <= FEW_LINES;
  plan->cost_ns = (int64_t)((double)plan->sort.lines * ns);
  plan->most_ns = ts_sort_most_ns(plan->cost_ns + plan->sort.cost_ns);
  plan->workspace = plan->split ? line_bytes(plan) : 0;
  plan->thread_workspace = thread_bytes(plan) + (plan->split ? 0 : line_bytes(plan));
  plan->sort.per_task = (int64_t)(TASK_NS / ns) + 1;
}

static void plan_whole(ts_sort_first_plan *plan) {
  const ts_sort_plan *sort = &plan->sort;
  const int64_t line = sort->n << sort->width, fit = SLAB_BYTES / line / GROUP * GROUP, slab = fit ? fit : GROUP;
  plan->slab = sort->method == TS_SORT_SPLIT ? 0 : slab < sort->lines ? slab : sort->lines;
  const double ns = (sort->method == TS_SORT_LANES ? LANES_PART : 1) * (double)sort->cost_ns;
  plan->cost_ns = (int64_t)ns + sort->lines * (10 + plan->k / 4);
  plan->most_ns = ts_sort_most_ns(sort->cost_ns + sort->lines * plan->k);
  plan->workspace = plan->slab ? 0 : ts_pool_padded(sort->lines * line) + sort->workspace;
  plan->thread_workspace = ts_pool_padded(plan->slab * line) + sort->thread_workspace;
}

ts_status ts_sort_first_plan_make(ts_dtype dtype, const ts_shape *shape, int64_t k, ts_sort_first_plan *out) {
  *out = (ts_sort_first_plan){.k = k};
  TS_TRY(ts_sort_plan_make(&(ts_sort_spec){dtype, shape, shape->rank - 1, true, TS_DTYPE_NONE}, &out->sort));
  out->parts = in_parts(&out->sort, k);
  (out->parts ? plan_parts : plan_whole)(out);
  return TS_SUCCESS;
}

/* ---- run */

typedef struct first_run {
  const ts_sort_first_plan *plan;
  const ts_sort_resources *resources;
  ts_sort_job job;
  char *values;
} first_run;

typedef struct first_line {
  const first_run *run;
  ts_sort_job job; /* the line by itself; its result, sorted, is in `kept` */
  char *kept, *keys, *moved, *shared;
  int64_t *starts; /* of the keys of each piece, and their count */
  const ts_parallel *parallel;
  char *thread; /* the workers' memory */
  uint64_t bound;
  _Atomic bool special;
} first_line;

/* Most probably k keys do not exceed it. */
static uint64_t sample_bound(const ts_sort_job *job, int64_t k) {
  const uint32_t bound = ts_sort_sample_of(job, 0, k, SAMPLE, SAMPLE - SAMPLE / 8);
  if (bound == UINT32_MAX) return UINT64_MAX;
  return job->width == 3 ? (uint64_t)bound << 32 | UINT32_MAX : bound;
}

/* starts[piece + 1] becomes the number of keys of the piece. */
static void keep_task(void *arg, int64_t piece, int worker) {
  first_line *l = arg;
  const ts_sort_lanes *lanes = ts_sort_lanes_host();
  const int width = l->job.width;
  const int64_t begin = piece * piece_of(width), left = l->job.n - begin;
  const int64_t n = left < piece_of(width) ? left : piece_of(width);
  char *kept = l->kept + (begin << width), *keys = l->thread + worker * l->run->plan->thread_workspace;
  const bool all = l->bound == UINT64_MAX;
  uint64_t varying = 0;
  if (ts_cancelled(l->job.cancel)) return;
  if (lanes->keys[width](&l->job.key, (const char *)l->job.in + (begin << width), n, all ? kept : keys, 0, &varying))
    atomic_store_explicit(&l->special, true, memory_order_relaxed);
  l->starts[piece + 1] = all ? n : lanes->splits[width].split(keys, n, l->bound + 1, kept);
}

/* Returns how many keys are kept. */
static int64_t keep(first_line *l) {
  const int64_t pieces = pieces_of(&l->run->plan->sort);
  ts_parallel_run(l->parallel, pieces, keep_task, l);
  if (ts_cancelled(l->job.cancel)) return 0;
  l->starts[0] = 0;
  for (int64_t i = 0; i < pieces; i++) l->starts[i + 1] += l->starts[i];
  return l->starts[pieces];
}

/* Collects the kept keys from number `begin` up to, not including, `end`. */
static void collect(void *arg, int64_t begin, int64_t end) {
  const first_line *l = arg;
  const int width = l->job.width;
  int64_t low = 0, high = pieces_of(&l->run->plan->sort);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (l->starts[middle] <= begin)
      low = middle;
    else
      high = middle;
  }
  for (; begin < end; low++) {
    const int64_t last = l->starts[low + 1] < end ? l->starts[low + 1] : end, from = begin - l->starts[low];
    memcpy(l->keys + (begin << width), l->kept + ((low * piece_of(width) + from) << width),
           (size_t)((last - begin) << width));
    begin = last;
  }
}

/* The sorted values replace what is kept: all of it has been collected before. */
static bool sort_kept(first_line *l, int64_t count) {
  ts_sort_job job = l->job;
  job.n = count;
  const ts_sort_parts_request request = {.job = &job,
                                         .make = collect,
                                         .arg = l,
                                         .keys = l->keys,
                                         .moved = l->moved,
                                         .split = l->run->plan->split && count >= SHARED,
                                         .parallel = l->parallel,
                                         .workspace = l->shared,
                                         .thread_workspace = l->thread + PIECE_BYTES,
                                         .thread_bytes = l->run->plan->thread_workspace};
  return ts_sort_parts(&request);
}

/* False: it was cancelled. */
static bool first_of_line(const first_run *run, int64_t line, first_line *l) {
  const int64_t k = run->plan->k;
  const int width = run->job.width;
  l->job.in = (const char *)run->job.in + (line * run->job.n << width);
  atomic_init(&l->special, false);
  l->bound = sample_bound(&l->job, k);
  int64_t count = keep(l);
  if (count < k && l->bound != UINT64_MAX && !ts_cancelled(run->job.cancel)) {
    l->bound = UINT64_MAX;
    count = keep(l);
  }
  if (count < k || !sort_kept(l, count)) return false;
  if (atomic_load_explicit(&l->special, memory_order_relaxed)) ts_sort_specials(&l->job, 0);
  memcpy(run->values + (line * k << width), l->kept, (size_t)(k << width));
  return true;
}

static first_line line_of(const first_run *run, char *memory, char *thread, const ts_parallel *parallel) {
  const ts_sort_plan *sort = &run->plan->sort;
  first_line l = {.run = run, .job = run->job, .kept = memory, .parallel = parallel, .thread = thread};
  l.keys = l.kept + keys_bytes(sort);
  l.starts = (int64_t *)(void *)(l.keys + keys_bytes(sort));
  l.moved = (char *)l.starts + starts_bytes(sort);
  l.shared = l.moved + keys_bytes(sort) + ts_pool_padded(ts_sort_parts_gaps() << sort->width);
  l.job.out = l.kept;
  l.job.lines = 1;
  return l;
}

static void lines_task(void *arg, int64_t task, int worker) {
  const first_run *run = arg;
  const ts_sort_first_plan *plan = run->plan;
  const int64_t begin = task * plan->sort.per_task, end = begin + plan->sort.per_task;
  char *thread = run->resources->thread_workspace + worker * plan->thread_workspace;
  first_line l = line_of(run, thread + thread_bytes(plan), thread, &ts_parallel_serial);
  for (int64_t i = begin; i < end && i < plan->sort.lines; i++)
    if (!first_of_line(run, i, &l)) return;
}

static void shared_lines(const first_run *run) {
  const ts_sort_resources *with = run->resources;
  first_line l = line_of(run, with->workspace, with->thread_workspace, with->parallel);
  for (int64_t i = 0; i < run->plan->sort.lines; i++)
    if (!first_of_line(run, i, &l)) return;
}

/* ---- whole lines */

static void copy_first(const first_run *run, int64_t first, int64_t lines, const char *sorted) {
  const ts_sort_plan *sort = &run->plan->sort;
  const int64_t line = sort->n << sort->width, kept = run->plan->k << sort->width;
  for (int64_t i = 0; i < lines; i++) memcpy(run->values + (first + i) * kept, sorted + i * line, (size_t)kept);
}

static ts_status sort_all(const first_run *run) {
  const ts_sort_plan *sort = &run->plan->sort;
  ts_sort_resources resources = *run->resources;
  resources.workspace += ts_pool_padded(sort->lines * sort->n << sort->width);
  TS_TRY(ts_sort_run(sort, &resources, run->job.in, run->resources->workspace));
  copy_first(run, 0, sort->lines, run->resources->workspace);
  return TS_SUCCESS;
}

static void slab_task(void *arg, int64_t task, int worker) {
  const first_run *run = arg;
  ts_sort_plan sort = run->plan->sort;
  const int64_t first = task * run->plan->slab, left = sort.lines - first, line = sort.n << sort.width;
  char *sorted = run->resources->thread_workspace + worker * run->plan->thread_workspace;
  const ts_sort_resources resources = {&ts_parallel_serial, NULL, sorted + ts_pool_padded(run->plan->slab * line),
                                       run->job.cancel};
  sort.lines = left < run->plan->slab ? left : run->plan->slab;
  if (ts_status_consume_ok(ts_sort_run(&sort, &resources, (const char *)run->job.in + first * line, sorted)))
    copy_first(run, first, sort.lines, sorted);
}

static void in_slabs(first_run *run) {
  const int64_t slab = run->plan->slab;
  ts_parallel_run(run->resources->parallel, (run->plan->sort.lines + slab - 1) / slab, slab_task, run);
}

ts_status ts_sort_first_run(const ts_sort_first_plan *plan, const ts_sort_resources *resources, const void *in,
                            void *values) {
  const ts_sort_plan *sort = &plan->sort;
  first_run run = {.plan = plan,
                   .resources = resources,
                   .job = {.key = sort->key,
                           .in = in,
                           .n = sort->n,
                           .inner = 1,
                           .lines = sort->lines,
                           .width = sort->width,
                           .cancel = resources->cancel},
                   .values = values};
  if (sort->lines == 0) return TS_SUCCESS;
  if (!plan->parts && plan->slab == 0) return ts_error_context(sort_all(&run), "top_k");
  if (!plan->parts)
    in_slabs(&run);
  else if (plan->split)
    shared_lines(&run);
  else
    ts_parallel_run(resources->parallel, (sort->lines + sort->per_task - 1) / sort->per_task, lines_task, &run);
  return ts_check_cancelled(resources->cancel, "top_k");
}
