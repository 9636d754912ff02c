#include "exec/profile.h"

#include "base/alloc.h"
#include "base/deep.h"
#include "base/system.h"
#include "exec/steps.h"
#include "exec/stripes/stripes.h"

#include <pthread.h>
#include <string.h>

/* Bounds of one profile: programs, and rows of all of them. */
enum { MOST_PROGRAMS = 4096, MOST_ROWS = 1 << 20 };
enum { FIRST_EVENTS = 1024 };

struct ts_profile {
  _Atomic uint32_t refs;
  ts_profile *outer;
  pthread_mutex_t lock;
  bool is_closed;
  TS_VEC(ts_profile_program) programs;
  size_t rows;
  size_t last;    /* the program of the last run */
  uint64_t fresh; /* the number of the newest program, if it was not taken yet */
  TS_VEC(ts_profile_event) events;
  size_t most_events;
  int64_t events_left_out, uncounted;
};

ts_status ts_profile_create(size_t most_events, ts_profile *outer, ts_profile **out) {
  TS_TRY(TS_NEW(out));
  atomic_init(&(*out)->refs, 1);
  pthread_mutex_init(&(*out)->lock, NULL);
  (*out)->most_events = most_events;
  (*out)->outer = outer;
  if (outer) ts_profile_retain(outer);
  return TS_SUCCESS;
}

void ts_profile_retain(ts_profile *p) { atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed); }

void ts_profile_program_deinit(ts_profile_program *program) {
  ts_free(program->rows);
  ts_free(program->index);
  if (program->exe) ts_executable_release((ts_executable *)(uintptr_t)program->exe);
}

void ts_profile_release(ts_profile *p) {
  while (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
    ts_profile *outer = p->outer;
    for (size_t i = 0; i < p->programs.count; i++) ts_profile_program_deinit(&p->programs.data[i]);
    TS_VEC_FREE(&p->programs);
    TS_VEC_FREE(&p->events);
    pthread_mutex_destroy(&p->lock);
    ts_free(p);
    p = outer;
  }
}

void ts_profile_close(ts_profile *p) {
  pthread_mutex_lock(&p->lock);
  p->is_closed = true;
  pthread_mutex_unlock(&p->lock);
}

bool ts_profile_is_closed(ts_profile *p) {
  pthread_mutex_lock(&p->lock);
  bool is_closed = p->is_closed;
  pthread_mutex_unlock(&p->lock);
  return is_closed;
}

static uint64_t take_new(ts_profile *p) {
  pthread_mutex_lock(&p->lock);
  uint64_t fresh = p->fresh;
  p->fresh = 0;
  pthread_mutex_unlock(&p->lock);
  return fresh;
}

uint64_t ts_profile_take_new(ts_profile *p) {
  uint64_t fresh = take_new(p);
  for (ts_profile *outer = p->outer; outer; outer = outer->outer) (void)take_new(outer); /* of the same run, or old */
  return fresh;
}

/* ---- the rows of a program ---- */

typedef struct walk {
  const ts_block *block;
  TS_VEC(ts_profile_row) rows;
} walk;

static ts_status add_block(walk *w, const ts_block *block, int32_t depth);

static ts_status add_step(walk *w, const ts_step *step, int32_t depth) {
  TS_TRY(TS_VEC_PUSH(&w->rows, ((ts_profile_row){.step = step, .launch = -1, .depth = depth})));
  if (step->kind == TS_STEP_LAUNCH && step->work->lowered.launch_count > 1)
    for (int32_t i = 0; i < step->work->lowered.launch_count; i++)
      TS_TRY(TS_VEC_PUSH(&w->rows, ((ts_profile_row){.step = step, .launch = i, .depth = depth + 1})));
  if (step->kind == TS_STEP_WHILE && !step->native) {
    TS_TRY(add_block(w, &step->loop->condition, depth + 1));
    TS_TRY(add_block(w, &step->loop->body, depth + 1));
  }
  for (int k = 0; k < 2 && step->kind == TS_STEP_COND; k++) TS_TRY(add_block(w, &step->branches[k], depth + 1));
  return TS_SUCCESS;
}

static ts_status add_block(walk *w, const ts_block *block, int32_t depth) {
  if (w->rows.count > MOST_ROWS) return ts_error(TS_RESOURCE_EXHAUSTED, "too many steps");
  for (size_t i = 0; i < block->steps.count; i++) TS_TRY(add_step(w, &block->steps.data[i], depth));
  return TS_SUCCESS;
}

static ts_status walk_root(void *context) {
  walk *w = context;
  return add_block(w, w->block, 0);
}

static size_t slot_of(const ts_profile_program *p, const ts_step *step) {
  return (size_t)(((uintptr_t)step >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & p->index_mask;
}

static ts_status make_index(ts_profile_program *p) {
  size_t size = 16;
  while (size < p->row_count * 2) size *= 2;
  TS_TRY(TS_NEW_ARRAY(size, &p->index));
  p->index_mask = size - 1;
  for (size_t i = 0; i < p->row_count; i++) {
    if (p->rows[i].launch >= 0) continue;
    size_t slot = slot_of(p, p->rows[i].step);
    while (p->index[slot]) slot = (slot + 1) & p->index_mask;
    p->index[slot] = (uint32_t)i + 1;
  }
  return TS_SUCCESS;
}

/* The launches' rows follow their step's. */
static uint32_t find_row(const ts_profile_program *p, const ts_step *step, int32_t launch) {
  size_t slot = slot_of(p, step);
  while (p->index[slot] && p->rows[p->index[slot] - 1].step != step) slot = (slot + 1) & p->index_mask;
  return p->index[slot] ? p->index[slot] + (uint32_t)launch : UINT32_MAX;
}

uint64_t ts_profile_number(_Atomic uint64_t *of) {
  static _Atomic uint64_t numbers;
  uint64_t number = atomic_load(of), fresh = 0;
  if (!number && atomic_compare_exchange_strong(of, &number, fresh = atomic_fetch_add(&numbers, 1) + 1)) number = fresh;
  return number;
}

ts_status ts_profile_program_init(const ts_executable *exe, ts_profile_program *out) {
  walk w = {.block = &exe->root};
  *out = (ts_profile_program){0};
  ts_status status = ts_deep_call(exe->levels, walk_root, &w);
  out->rows = w.rows.data;
  out->row_count = w.rows.count;
  if (!status) status = make_index(out);
  if (status) {
    ts_free(out->rows);
    ts_free(out->index);
    return status;
  }
  out->exe = exe;
  out->number = ts_profile_number(&((ts_executable *)(uintptr_t)exe)->number);
  ts_executable_retain((ts_executable *)(uintptr_t)exe);
  return TS_SUCCESS;
}

/* Takes the program over. */
static ts_status add_program(ts_profile *p, ts_profile_program program) {
  ts_status status = p->rows + program.row_count > MOST_ROWS ? ts_error(TS_RESOURCE_EXHAUSTED, "too many steps")
                                                             : TS_VEC_PUSH(&p->programs, program);
  if (status) {
    ts_profile_program_deinit(&program);
    return status;
  }
  p->rows += program.row_count;
  p->fresh = program.number;
  return TS_SUCCESS;
}

static ts_status add_executable(ts_profile *p, const ts_executable *exe) {
  ts_profile_program program;
  TS_TRY(ts_profile_program_init(exe, &program));
  return add_program(p, program);
}

/* The program of an executable, which is added if it is new; NULL beyond the bounds. Under the lock. */
static ts_profile_program *program_of(ts_profile *p, const ts_executable *exe) {
  if (p->last < p->programs.count && p->programs.data[p->last].exe == exe) return &p->programs.data[p->last];
  for (size_t i = p->programs.count; i-- > 0;) {
    if (p->programs.data[i].exe != exe) continue;
    p->last = i;
    return &p->programs.data[i];
  }
  if (p->programs.count >= MOST_PROGRAMS || !ts_status_consume_ok(add_executable(p, exe))) return NULL;
  p->last = p->programs.count - 1;
  return &p->programs.data[p->last];
}

/* ---- adding ---- */

static void add_event(ts_profile *p, const ts_profile_event *event) {
  if (p->events.count >= p->most_events || !ts_status_consume_ok(TS_VEC_PUSH(&p->events, *event))) p->events_left_out++;
}

static void count_time(int64_t ns, int64_t *count, int64_t *sum, int64_t *longest) {
  ++*count;
  *sum += ns;
  if (ns > *longest) *longest = ns;
}

/* Under the lock. */
static void add_locked(ts_profile *p, const ts_measure *m, const ts_step *step, int32_t launch,
                       ts_profile_event event) {
  int64_t ns = event.end_ns - event.begin_ns;
  ts_profile_program *program = program_of(p, m->exe);
  uint32_t row = program && step ? find_row(program, step, launch + 1) - 1 : UINT32_MAX;
  event.row = row;
  if (!program || (step && row >= program->row_count)) {
    p->uncounted++;
    return;
  }
  event.program = (uint32_t)p->last;
  if (step) {
    ts_profile_row *r = &program->rows[row];
    count_time(ns, &r->count, &r->ns, &r->longest_ns);
    if ((int32_t)event.threads > r->threads) r->threads = (int32_t)event.threads;
  } else {
    count_time(ns, &program->runs, &program->ns, &program->longest_ns);
  }
  add_event(p, &event);
}

static void add(ts_profile *p, const ts_measure *m, const ts_step *step, int32_t launch, ts_profile_event event) {
  pthread_mutex_lock(&p->lock);
  if (!p->is_closed) add_locked(p, m, step, launch, event);
  pthread_mutex_unlock(&p->lock);
}

/* ---- runs of devices ---- */

static ts_status add_device_program(ts_profile *p, uint64_t number, const char *device) {
  ts_profile_program program = {.number = number, .row_count = 1};
  TS_TRY(TS_NEW(&program.rows));
  program.rows[0] = (ts_profile_row){.device = device, .launch = -1};
  return add_program(p, program);
}

/* NULL beyond the bounds. Under the lock. */
static ts_profile_program *device_program(ts_profile *p, uint64_t number, const char *device) {
  for (size_t i = p->programs.count; i-- > 0;) {
    if (p->programs.data[i].number != number) continue;
    p->last = i;
    return &p->programs.data[i];
  }
  if (p->programs.count >= MOST_PROGRAMS || !ts_status_consume_ok(add_device_program(p, number, device))) return NULL;
  p->last = p->programs.count - 1;
  return &p->programs.data[p->last];
}

/* The program has one row, for the whole run. Under the lock. */
static void add_device_locked(ts_profile *p, uint64_t number, const char *device, ts_profile_event event) {
  int64_t ns = event.end_ns - event.begin_ns;
  ts_profile_program *program = device_program(p, number, device);
  if (!program) {
    p->uncounted++;
    return;
  }
  count_time(ns, &program->rows[0].count, &program->rows[0].ns, &program->rows[0].longest_ns);
  count_time(ns, &program->runs, &program->ns, &program->longest_ns);
  event.program = (uint32_t)p->last;
  add_event(p, &event);
  event.row = UINT32_MAX;
  add_event(p, &event);
}

static void add_device_run(ts_profile *p, uint64_t number, const char *device, ts_profile_event event) {
  pthread_mutex_lock(&p->lock);
  if (!p->is_closed) add_device_locked(p, number, device, event);
  pthread_mutex_unlock(&p->lock);
}

void ts_profile_add_run(ts_profile *profile, uint64_t number, const char *device, int64_t begin_ns) {
  ts_profile_event event = {.begin_ns = begin_ns, .end_ns = ts_system_ns()};
  for (ts_profile *p = profile; p; p = p->outer) add_device_run(p, number, device, event);
}

/* ---- runs ---- */

static void counted_task(void *context, int64_t task, int worker);

typedef struct counted_job {
  ts_measure *measure;
  ts_task_fn fn;
  void *arg;
} counted_job;

static void counted_task(void *context, int64_t task, int worker) {
  counted_job *job = context;
  uint64_t bit = UINT64_C(1) << (worker & 63);
  if (!(atomic_load_explicit(&job->measure->workers, memory_order_relaxed) & bit))
    atomic_fetch_or_explicit(&job->measure->workers, bit, memory_order_relaxed);
  job->fn(job->arg, task, worker);
}

static void counted_run(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  ts_measure *m = self->context;
  ts_parallel_run(m->own, tasks, counted_task, &(counted_job){m, fn, arg});
}

ts_measure *ts_measure_new(ts_profile *profile, const ts_executable *exe, uint32_t partition,
                           const ts_parallel **parallel) {
  ts_measure *m = NULL;
  if (!profile || !ts_status_consume_ok(TS_NEW(&m))) return NULL;
  ts_profile_retain(profile);
  m->profile = profile;
  m->exe = exe;
  m->partition = partition;
  m->own = *parallel;
  m->counted = (ts_parallel){.context = m, .width = m->own->width, .run = counted_run};
  *parallel = &m->counted;
  m->began = m->last = m->step_began = ts_system_ns();
  return m;
}

void ts_measure_resume(ts_measure *m) { m->last = m->step_began = ts_system_ns(); }

void ts_measure_step(ts_measure *m, const ts_step *step, int32_t launch) {
  int64_t now = ts_system_ns();
  int workers = __builtin_popcountll(atomic_exchange_explicit(&m->workers, 0, memory_order_relaxed));
  ts_profile_event event = {.begin_ns = launch < 0 ? m->step_began : m->last,
                            .end_ns = now,
                            .threads = workers > 1 ? (uint32_t)workers : 1,
                            .partition = m->partition};
  for (ts_profile *p = m->profile; p; p = p->outer) add(p, m, step, launch, event);
  m->last = now;
  if (launch < 0) m->step_began = now;
}

void ts_measure_end(ts_measure *m) {
  if (!m) return;
  ts_profile_event event = {.begin_ns = m->began, .end_ns = ts_system_ns(), .partition = m->partition};
  for (ts_profile *p = m->profile; p; p = p->outer) add(p, m, NULL, -1, event);
  ts_profile_release(m->profile);
  ts_free(m);
}

/* ---- reading ---- */

size_t ts_profile_programs(const ts_profile *p, const ts_profile_program **out) {
  *out = p->programs.data;
  return p->programs.count;
}

size_t ts_profile_events(const ts_profile *p, const ts_profile_event **out) {
  *out = p->events.data;
  return p->events.count;
}

void ts_profile_left_out(const ts_profile *p, int64_t *out_events, int64_t *out_uncounted) {
  *out_events = p->events_left_out;
  *out_uncounted = p->uncounted;
}

const char *ts_profile_row_kind(const ts_profile_row *row) {
  if (row->device) return "device";
  return row->launch < 0 ? ts_step_name(row->step) : "launch";
}

const char *ts_profile_row_op(const ts_profile_row *row) {
  return row->device ? row->device : ts_op_name(row->step->code);
}

/* The ops of kernels, each once, in their order. */
static void launch_ops(const ts_launch *launch, ts_op_names *names) {
  for (int32_t i = 0; i < launch->desc.node_count; i++) {
    const ts_kernel_node *n = &launch->desc.nodes[i];
    if (n->kind == TS_NODE_OP || ts_kernel_node_reduces(n)) ts_op_names_add(names, n->op);
  }
}

static const ts_work *work_of(const ts_step *step) {
  return step->kind == TS_STEP_LAUNCH ? step->work : ts_step_has_epilogue(step) ? step->routine.epilogue : NULL;
}

static void routine_ops(const ts_step *step, ts_op_names *names) {
  const ts_work *between = ts_stripes_work(step->routine.plan);
  ts_op_names_add(names, step->routine.plan->op);
  if (between) launch_ops(between->launches[0].launch, names);
}

static void step_ops(const ts_step *step, int32_t launch, ts_op_names *names) {
  const ts_work *work = work_of(step);
  if (step->kind == TS_STEP_ROUTINE) routine_ops(step, names);
  for (int32_t i = 0; work && i < work->lowered.launch_count; i++)
    if (launch < 0 || launch == i) launch_ops(work->launches[i].launch, names);
  if (names->count == 0 && step->code != TS_OP_FUSION) ts_op_names_add(names, step->code);
}

/* The ops of a native loop are in the steps of its blocks, which have few levels. */
static void block_ops(const ts_block *block, ts_op_names *names) {
  for (size_t i = 0; i < block->steps.count; i++) {
    const ts_step *step = &block->steps.data[i];
    if (step->kind == TS_STEP_WHILE) {
      block_ops(&step->loop->condition, names);
      block_ops(&step->loop->body, names);
    } else if (step->kind == TS_STEP_COND) {
      for (int k = 0; k < 2; k++) block_ops(&step->branches[k], names);
    } else if (step->kind != TS_STEP_COPY) {
      ts_op_names own = {.count = 0};
      step_ops(step, -1, &own);
      for (int k = 0; k < own.count; k++) ts_op_names_add(names, own.seen[k]);
    }
  }
}

void ts_profile_row_ops(const ts_profile_row *row, ts_text *out) {
  const ts_step *step = row->step;
  ts_op_names names = {.count = 0};
  if (!step) return;
  if (step->kind == TS_STEP_WHOLE) {
    names = *step->names;
  } else if (ts_step_is_native(step)) {
    block_ops(&step->loop->condition, &names);
    block_ops(&step->loop->body, &names);
  }
  if (names.count == 0) step_ops(step, row->launch, &names);
  for (int i = 0; i < names.count; i++) {
    if (i > 0) ts_text_append(out, ", ");
    ts_text_append(out, i == TS_MOST_OP_NAMES ? "..." : ts_op_name(names.seen[i]));
  }
}

const ts_type *ts_profile_row_type(const ts_profile_row *row) { return row->step ? row->step->type : NULL; }

size_t ts_profile_row_lines(const ts_profile_program *program, const ts_profile_row *row, ts_line out[TS_MOST_LINES]) {
  return program->exe && row->step ? ts_step_lines(program->exe, row->step, out) : 0;
}

int64_t ts_profile_row_bytes(const ts_profile_row *row) {
  const ts_step *step = row->step;
  if (!step) return 0;
  const ts_work *work = work_of(step);
  int64_t sum = step->kind == TS_STEP_ROUTINE ? step->routine.plan->bytes : 0;
  if (step->kind == TS_STEP_COPY) return ts_sum_bytes(step->copy_bytes, step->copy_bytes);
  for (int32_t i = 0; work && i < work->lowered.launch_count; i++)
    if (row->launch < 0 || row->launch == i) sum = ts_sum_bytes(sum, work->launches[i].launch->bytes);
  return sum;
}

int64_t ts_profile_row_flops(const ts_profile_row *row) {
  return row->step && row->step->kind == TS_STEP_ROUTINE ? row->step->routine.plan->flops : 0;
}

void ts_profile_program_memory(const ts_profile_program *program, int64_t *out_bytes, int64_t *out_pieces) {
  const ts_executable *exe = program->exe;
  *out_bytes = *out_pieces = 0;
  if (!exe) return;
  int64_t block = exe->block_bytes[TS_TEMPS_HOSTED];
  *out_bytes = exe->stats.result_bytes + block;
  *out_pieces = (int64_t)exe->made_count + (block > 0);
}
