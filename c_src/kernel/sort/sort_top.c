#include "kernel/sort/sort_top.h"

#include "kernel/pick.h"
#include "kernel/sort/sort_lanes.h"
#include "kernel/sort/sort_select.h"

#include <string.h>

/* Elements of the lines that are sorted at a time, when they are sorted. */
#define SLAB_ELEMENTS (INT64_C(4) << 20)
#define TASK_NS 100000
/* Elements whose keys are made together. */
#define BLOCK 1024
/* This number of candidates is sorted by insertion. */
#define FEW 64
/* Results of sorted lines that are gathered by a task. */
#define GATHERED 16384
/* Elements between two checks of the cancel flag. */
#define CHECK 65536

typedef struct candidate {
  uint64_t key, index;
} candidate;

/* Key and index as one number: no two are equal, since indices differ. */
static unsigned __int128 rank_of(candidate c) { return (unsigned __int128)c.key << 64 | c.index; }

/* ---- plan */

/* In a random order about k (1 + ln(n / k)) elements are among the first k so far. */
static double select_ns(int64_t n, int64_t k) {
  int doublings = 64 - __builtin_clzll((unsigned long long)(n / k));
  return 100 + 0.35 * (double)n + (double)k * (10 + 5 * doublings);
}

/* Candidates of ascending keys are partitioned again and again, unless a sample tells the bound (sort_select.c). */
#define WORST_NS 100
#define WORST_SAMPLED_NS 20

static int64_t room(int64_t k) { return 2 * k + BLOCK; }

static void plan_select(ts_top_k_plan *plan, double ns) {
  plan->select = true;
  plan->slab = (int64_t)(TASK_NS / ns) + 1;
  plan->cost_ns = (int64_t)((double)plan->sort.lines * ns);
  const double worst = ts_sort_is_sampled(plan->sort.n, plan->k) ? WORST_SAMPLED_NS : WORST_NS;
  const double most = (double)plan->sort.lines * (ns + worst * (double)plan->sort.n);
  plan->most_ns = most < 1e18 ? (int64_t)most : 0;
  plan->thread_workspace = room(plan->k) * (int64_t)sizeof(candidate);
}

/* ---- keys of at most 32 bits */

/* Records of a task stay in the second cache. */
#define TASK_RECORDS 32768

/* Bytes for the records of all lines of a task. A second block of as many bytes has the records in order. */
static int64_t records_room(const ts_top_k_plan *plan) {
  return ts_pool_padded((plan->slab * plan->k + ts_sort_select_room(plan->k)) * (int64_t)sizeof(uint64_t));
}

static bool has_records(const ts_top_k_plan *plan) { return plan->sort.width < 3; }

/* Few records are sorted by insertion, unless many lines are sorted together. */
#define FEWER 8
static bool sorts_together(const ts_top_k_plan *plan) {
  return plan->k > FEW || (plan->k > FEWER && plan->records.lines >= FEWER);
}

/* Small types are widened, and more of their keys are equal. */
static double records_ns(const ts_top_k_plan *plan) {
  const double sort =
      sorts_together(plan) ? (double)plan->records.cost_ns / (double)plan->records.lines : (double)plan->k * 10;
  return (plan->sort.width < 2 ? 400 : 200) + 0.4 * (double)plan->sort.n + 5 * (double)plan->k + sort;
}

static ts_status plan_records(ts_top_k_plan *plan, double *out_ns) {
  const int64_t most = TASK_RECORDS / plan->k + 1, lines = plan->sort.lines < most ? plan->sort.lines : most;
  const ts_shape shape = {.rank = 2, .dims = {lines, plan->k}};
  TS_TRY(ts_sort_plan_make(&(ts_sort_spec){TS_U64, &shape, 1, false, TS_DTYPE_NONE}, &plan->records));
  *out_ns = records_ns(plan);
  return TS_SUCCESS;
}

static void plan_select_records(ts_top_k_plan *plan, double ns) {
  const int64_t slab = (int64_t)(TASK_NS / ns) + 1;
  plan->select = true;
  plan->slab = slab < plan->records.lines ? slab : plan->records.lines;
  plan->cost_ns = (int64_t)((double)plan->sort.lines * ns);
  plan->most_ns = ts_sort_most_ns(plan->cost_ns);
  plan->thread_workspace =
      ts_pool_padded(2 * records_room(plan) + plan->records.workspace) + plan->records.thread_workspace;
}

static void plan_sorts(ts_top_k_plan *plan) {
  int64_t slab = SLAB_ELEMENTS / (plan->sort.n + 1) + 1;
  plan->slab = slab < plan->sort.lines ? slab : plan->sort.lines;
  plan->cost_ns = plan->sort.cost_ns + plan->sort.lines * plan->k;
  plan->most_ns = ts_sort_most_ns(plan->cost_ns);
  plan->workspace = ts_pool_padded(plan->slab * plan->sort.n * 4) + plan->sort.workspace;
  plan->thread_workspace = plan->sort.thread_workspace;
}

ts_status ts_top_k_plan_make(ts_dtype dtype, const ts_shape *shape, int64_t k, ts_top_k_plan *out) {
  *out = (ts_top_k_plan){.k = k};
  TS_TRY(ts_error_context(ts_sort_plan_make(&(ts_sort_spec){dtype, shape, shape->rank - 1, true, TS_S32}, &out->sort),
                          "top_k"));
  if (k < 0 || k > out->sort.n)
    return ts_error(TS_INVALID_ARGUMENT, "top_k: k = %lld of %s", (long long)k, TS_SHAPE_STR(dtype, shape));
  if (out->sort.n > INT32_MAX)
    return ts_error(TS_OUT_OF_RANGE, "top_k: the last axis of %s is too long for s32 indices",
                    TS_SHAPE_STR(dtype, shape));
  if (k == 0 || out->sort.lines == 0) return TS_SUCCESS;
  double select = select_ns(out->sort.n, k);
  if (has_records(out)) TS_TRY(plan_records(out, &select));
  if (select * (double)out->sort.lines >= (double)out->sort.cost_ns)
    plan_sorts(out);
  else if (has_records(out))
    plan_select_records(out, select);
  else
    plan_select(out, select);
  return TS_SUCCESS;
}

/* ---- run */

typedef struct top_run {
  const ts_top_k_plan *plan;
  const ts_sort_resources *resources;
  ts_sort_job job;
  int64_t first;    /* line of the slab */
  int64_t gathered; /* elements of its results */
  const int32_t *sorted;
  void *values;
  int32_t *indices;
} top_run;

static void copy_element(const top_run *run, int64_t to, int64_t from) {
  switch (run->job.width) {
  case 0: ((uint8_t *)run->values)[to] = ((const uint8_t *)run->job.in)[from]; break;
  case 1: ((uint16_t *)run->values)[to] = ((const uint16_t *)run->job.in)[from]; break;
  case 2: ((uint32_t *)run->values)[to] = ((const uint32_t *)run->job.in)[from]; break;
  default: ((uint64_t *)run->values)[to] = ((const uint64_t *)run->job.in)[from]; break;
  }
}

static void swap(candidate *a, candidate *b) {
  const candidate c = *a;
  *a = *b;
  *b = c;
}

/* Makes the median of three candidates the last of c[0 .. n), n >= 3. */
static candidate put_pivot_last(candidate *c, int64_t n, uint64_t *random) {
  candidate *a = c + ts_sort_random(random) % (n - 1), *last = c + n - 1;
  if (rank_of(*a) > rank_of(c[n / 2])) swap(a, &c[n / 2]);
  if (rank_of(c[n / 2]) > rank_of(*last)) swap(&c[n / 2], last);
  if (rank_of(*a) > rank_of(*last)) swap(a, last);
  if (rank_of(*last) > rank_of(c[n / 2])) swap(&c[n / 2], last);
  return *last;
}

/* Puts the candidates before the last one in front, without a branch that depends on them, then this one; returns how
 * many they are. */
static int64_t put_lesser_first(candidate *c, int64_t n, candidate pivot) {
  const unsigned __int128 rank = rank_of(pivot);
  int64_t less = 0;
  for (int64_t i = 0; i < n - 1; i++) {
    const candidate x = c[i];
    c[i] = c[less];
    c[less] = x;
    less += rank_of(x) < rank;
  }
  swap(&c[less], &c[n - 1]);
  return less;
}

/* Puts the first `k` of n > k candidates before the others. */
static void partition(candidate *c, int64_t n, int64_t k) {
  uint64_t random = (uint64_t)n;
  int64_t low = 0, end = n;
  while (end - low > 2) {
    const candidate pivot = put_pivot_last(c + low, end - low, &random);
    const int64_t at = low + put_lesser_first(c + low, end - low, pivot);
    if (at == k || at == k - 1) return;
    if (at > k)
      end = at;
    else
      low = at + 1;
  }
  if (end - low == 2 && rank_of(c[low]) > rank_of(c[low + 1])) swap(&c[low], &c[low + 1]);
}

typedef struct selection {
  candidate *c; /* room for room(k) */
  int64_t k, count;
  uint64_t bound; /* greater keys are not among the first k */
  bool over;      /* no other key is */
} selection;

static void insertion_sort(candidate *c, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const candidate moved = c[i];
    int64_t at = i;
    for (; at > 0 && rank_of(c[at - 1]) > rank_of(moved); at--) c[at] = c[at - 1];
    c[at] = moved;
  }
}

static void sort_candidates(candidate *c, int64_t n) {
  uint64_t random = (uint64_t)n;
  while (n > FEW) {
    const candidate pivot = put_pivot_last(c, n, &random);
    const int64_t at = put_lesser_first(c, n, pivot), after = n - at - 1;
    if (at < after) {
      sort_candidates(c, at);
      c += at + 1;
      n = after;
    } else {
      sort_candidates(c + at + 1, after);
      n = at;
    }
  }
  insertion_sort(c, n);
}

/* Drops candidates that are not among the first k. A later element with the key of the last comes after it. */
static void trim(selection *s) {
  uint64_t last = 0;
  if (s->count < s->k) return;
  if (s->count <= FEW)
    insertion_sort(s->c, s->count);
  else
    partition(s->c, s->count, s->k);
  s->count = s->k;
  for (int64_t i = 0; i < s->k; i++) last = s->c[i].key > last ? s->c[i].key : last;
  s->over = last == 0;
  s->bound = last - 1;
}

/* The keys of a block, and the picked ones. */
typedef struct block {
  uint64_t keys[BLOCK], picked[BLOCK + TS_PICK_SLACK];
  uint32_t places[BLOCK + TS_PICK_SLACK];
} block;

/* The n elements from element `first` of a line at `in`. */
static void offer(selection *s, const ts_sort_job *job, const char *in, int64_t first, int64_t n) {
  const ts_pick *pick = ts_pick_host();
  uint64_t varying = 0, bound = s->bound;
  block b;
  ts_sort_lanes_host()->keys[job->width](&job->key, in + (first << job->width), n, b.keys, 0, &varying);
  if (first == 0 && s->k <= n && bound == UINT64_MAX) bound = pick->bound64(b.keys, n, s->k);
  const int64_t count = pick->pick64(b.keys, n, 0, bound, b.picked, b.places);
  for (int64_t i = 0; i < count; i++) s->c[s->count++] = (candidate){b.picked[i], (uint64_t)(first + b.places[i])};
}

static bool select_candidates(const ts_sort_job *job, int64_t line, selection *s) {
  const char *in = (const char *)job->in + ((line * job->n) << job->width);
  s->count = 0;
  s->over = false;
  for (int64_t at = 0; at < job->n && !s->over; at += BLOCK) {
    if (at % CHECK == 0 && ts_cancelled(job->cancel)) return false;
    offer(s, job, in, at, job->n - at < BLOCK ? job->n - at : BLOCK);
    if (at == 0 || s->count > 2 * s->k) trim(s);
  }
  return true;
}

static bool select_from(const top_run *run, int64_t line, selection *s) {
  const uint32_t sampled = ts_sort_sample(&run->job, line, s->k);
  s->bound = (uint64_t)sampled << 32 | UINT32_MAX;
  if (!select_candidates(&run->job, line, s)) return false;
  if (sampled == UINT32_MAX || s->count >= s->k) return true;
  s->bound = UINT64_MAX;
  return select_candidates(&run->job, line, s);
}

static void write_candidate(const top_run *run, int64_t line, int64_t i, int64_t index) {
  const int64_t k = run->plan->k;
  run->indices[line * k + i] = (int32_t)index;
  copy_element(run, line * k + i, line * run->job.n + index);
}

static bool select_line(const top_run *run, int64_t line, candidate *memory) {
  selection s = {.c = memory, .k = run->plan->k};
  if (!select_from(run, line, &s)) return false;
  trim(&s);
  sort_candidates(s.c, s.k);
  for (int64_t i = 0; i < s.k; i++) write_candidate(run, line, i, (int64_t)s.c[i].index);
  return true;
}

static void select_task(void *arg, int64_t task, int worker) {
  const top_run *run = arg;
  char *memory = run->resources->thread_workspace + worker * run->plan->thread_workspace;
  int64_t begin = task * run->plan->slab, end = begin + run->plan->slab;
  for (int64_t line = begin; line < end && line < run->job.lines; line++)
    if (!select_line(run, line, (candidate *)memory)) return;
}

/* ---- keys of at most 32 bits */

static void write_records(const top_run *run, int64_t line, const uint64_t *records) {
  const int64_t k = run->plan->k;
  for (int64_t i = 0; i < k; i++) write_candidate(run, line, i, (int64_t)(uint32_t)records[i]);
}

/* Sorts the records of `lines` lines; returns where they are. */
static const uint64_t *sort_records(const top_run *run, uint64_t *records, int64_t lines, char *sorted) {
  const int64_t k = run->plan->k;
  ts_sort_plan plan = run->plan->records;
  char *memory = sorted + records_room(run->plan);
  ts_sort_resources resources = {&ts_parallel_serial, memory,
                                 sorted + ts_pool_padded(records_room(run->plan) + plan.workspace), run->job.cancel};
  plan.lines = lines;
  if (sorts_together(run->plan))
    return ts_status_consume_ok(ts_sort_run(&plan, &resources, records, sorted)) ? (void *)sorted : NULL;
  for (int64_t line = 0; line < lines; line++) ts_sort_insert(records + line * k, k);
  return records;
}

static void records_task(void *arg, int64_t task, int worker) {
  const top_run *run = arg;
  const int64_t k = run->plan->k, begin = task * run->plan->slab, left = run->job.lines - begin;
  const int64_t lines = left < run->plan->slab ? left : run->plan->slab;
  char *sorted = run->resources->thread_workspace + worker * run->plan->thread_workspace + records_room(run->plan);
  uint64_t *records = (uint64_t *)(sorted - records_room(run->plan));
  for (int64_t i = 0; i < lines; i++)
    if (!ts_sort_select(&run->job, begin + i, k, records + i * k, (uint64_t *)sorted)) return;
  const uint64_t *ordered = sort_records(run, records, lines, sorted);
  for (int64_t i = 0; ordered && i < lines; i++) write_records(run, begin + i, ordered + i * k);
}

/* The first k of each sorted line: a task takes GATHERED of them, of many short lines or of a part of a long one. */
static void gather_task(void *arg, int64_t task, int worker) {
  (void)worker;
  const top_run *run = arg;
  const int64_t k = run->plan->k, n = run->job.n, left = run->gathered - task * GATHERED;
  int64_t line = task * GATHERED / k, i = task * GATHERED % k;
  for (int64_t end = left < GATHERED ? left : GATHERED, done = 0; done < end; done++) {
    const int64_t to = (run->first + line) * k + i, from = run->sorted[line * n + i];
    run->indices[to] = (int32_t)from;
    copy_element(run, to, (run->first + line) * n + from);
    if (++i == k) line++, i = 0;
  }
}

static ts_status sort_slabs(top_run *run) {
  const ts_top_k_plan *plan = run->plan;
  int64_t bytes = ts_pool_padded(plan->slab * plan->sort.n * 4);
  ts_sort_resources resources = *run->resources;
  resources.workspace += bytes;
  run->sorted = (const int32_t *)run->resources->workspace;
  for (run->first = 0; run->first < plan->sort.lines; run->first += plan->slab) {
    ts_sort_plan sort = plan->sort;
    sort.lines = sort.lines - run->first < plan->slab ? sort.lines - run->first : plan->slab;
    const char *in = (const char *)run->job.in + (run->first * sort.n << sort.width);
    TS_TRY(ts_sort_run(&sort, &resources, in, run->resources->workspace));
    run->gathered = sort.lines * plan->k;
    ts_parallel_run(resources.parallel, (run->gathered + GATHERED - 1) / GATHERED, gather_task, run);
  }
  return TS_SUCCESS;
}

ts_status ts_top_k_run(const ts_top_k_plan *plan, const ts_sort_resources *resources, const void *in, void *values,
                       void *indices) {
  const ts_sort_plan *sort = &plan->sort;
  top_run run = {.plan = plan,
                 .resources = resources,
                 .job = {.key = sort->key,
                         .in = in,
                         .n = sort->n,
                         .inner = 1,
                         .lines = sort->lines,
                         .width = sort->width,
                         .cancel = resources->cancel},
                 .values = values,
                 .indices = indices};
  if (plan->k == 0 || sort->lines == 0) return ts_check_cancelled(resources->cancel, "top_k");
  if (!plan->select) return ts_error_context(sort_slabs(&run), "top_k");
  ts_parallel_run(resources->parallel, (sort->lines + plan->slab - 1) / plan->slab,
                  has_records(plan) ? records_task : select_task, &run);
  return ts_check_cancelled(resources->cancel, "top_k");
}
