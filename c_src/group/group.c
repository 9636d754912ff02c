#include "group/group.h"

#include "base/cancel.h"
#include "base/fp_env.h"
#include "exec/pool.h"
#include "exec/run.h"
#include "group/collective.h"
#include "group/ranks.h"

#include <string.h>

/* Partitions that stop sooner run one after the other: to wake another thread takes as long. */
#define WORTH_A_THREAD_NS 10000

struct ts_group {
  const ts_executable *exe;
  int32_t first, count; /* partitions here */
  bool succeeded;       /* its results were handed out */
  int32_t begun;        /* partitions with a begun execution */
  ts_ranks *ranks;      /* NULL: all partitions are here */
  const ts_parallel *parallel;
  const ts_run_control *control;
  void (*ready)(void *context);
  void *context;
  _Atomic int32_t missing; /* partitions that wait, less the partitions that came back: 0 when all are back */
  ts_buffer **args;        /* of all partitions, with coordinates */
  void *const **base;      /* of all partitions, while a collective uses it */
  struct part {
    ts_run_state state;
    ts_status status;
  } * parts;
  ts_execution each[];
};

static const _Atomic bool *cancel_flag(const ts_group *g) { return g->control ? &g->control->cancel : NULL; }

/* ---- creation ---- */

static ts_status check_count(const ts_executable *exe, size_t args_of_each) {
  size_t wanted = exe->param_count - (exe->mesh.coordinates ? 1 : 0);
  if (exe->calls_back) return ts_error(TS_FAILED_PRECONDITION, "callback: a program with partitions cannot call back");
  if (args_of_each == wanted) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "expected %zu arguments of each partition, got %zu", wanted, args_of_each);
}

/* Called when a partition's foreign code has returned: the last one may be before or after the others have stopped. */
static void partition_ready(void *context) {
  ts_group *g = context;
  if (atomic_fetch_sub(&g->missing, 1) == 1) g->ready(g->context);
}

static ts_run_options options_of(const ts_group *g, const ts_group_options *o, size_t args_of_each, int32_t partition) {
  return (ts_run_options){.control = o->control,
                          .threads = g->parallel->width,
                          .donated = {o->donated.words, o->donated.first + (size_t)partition * args_of_each,
                                      o->donated.words ? args_of_each : 0},
                          .pool = o->pool,
                          .profile = o->profile,
                          .partition = (uint32_t)(g->first + partition),
                          .ready = o->ready ? partition_ready : NULL,
                          .context = (void *)(uintptr_t)g,
                          .device = o->devices ? o->devices[partition] : NULL};
}

static ts_status begin_partition(ts_group *g, ts_buffer *const *args, size_t args_of_each, const ts_group_options *o,
                                 int32_t p) {
  const ts_executable *exe = g->exe;
  ts_buffer **own = g->args + (size_t)p * exe->param_count;
  ts_run_options options = options_of(g, o, args_of_each, p);
  for (size_t i = 0; i < args_of_each; i++) own[i] = args[(size_t)p * args_of_each + i];
  if (exe->mesh.coordinates) own[args_of_each] = exe->coordinates[g->first + p];
  TS_TRY(ts_executable_check_args(exe, own, exe->param_count));
  TS_TRY(ts_execution_begin(&g->each[p], exe, own, &options, true));
  g->parts[p].state = TS_RUN_PAUSED;
  g->begun++;
  return TS_SUCCESS;
}

static ts_status begin(ts_group *g, ts_buffer *const *args, size_t args_of_each, const ts_group_options *o) {
  for (int32_t p = 0; p < g->count; p++) {
    ts_status status = begin_partition(g, args, args_of_each, o, p);
    if (status) return ts_error_context(status, "partition %d", g->first + p);
  }
  return TS_SUCCESS;
}

/* Frees the group; the others learn of `status`, if it has not ended. */
static void close_group(ts_group *g, ts_status status) {
  ts_ranks_end(g->ranks, status);
  for (int32_t p = 0; p < g->begun; p++) ts_execution_close(&g->each[p], g->succeeded);
  ts_free(g);
}

static ts_status allocate(const ts_executable *exe, const ts_group_options *o, ts_ranks *ranks, ts_group **out) {
  int32_t count = ts_executable_partitions(exe) / (o->carrier ? o->carrier->ranks : 1);
  ts_group *g;
  size_t each = sizeof *g->each + sizeof *g->parts + sizeof *g->base + exe->param_count * sizeof *g->args;
  TS_TRY(ts_alloc(sizeof *g + (size_t)count * each, (void **)out));
  g = *out;
  g->exe = exe;
  g->ranks = ranks;
  g->first = o->carrier ? o->carrier->rank * count : 0;
  g->count = count;
  g->parallel = ts_pool_parallel(o->threads);
  g->control = o->control;
  g->ready = o->ready;
  g->context = o->context;
  g->parts = (struct part *)&g->each[count];
  g->base = (void *const **)&g->parts[count];
  g->args = (ts_buffer **)&g->base[count];
  return TS_SUCCESS;
}

ts_status ts_group_create(const ts_executable *executable, ts_buffer *const *args, size_t args_of_each,
                          const ts_group_options *options, ts_group **out) {
  static const ts_group_options defaults = {0};
  const ts_group_options *o = options ? options : &defaults;
  ts_ranks *ranks = NULL;
  ts_group *g;
  *out = NULL;
  if (o->carrier) TS_TRY(ts_ranks_create(o, executable, &ranks));
  ts_status status = check_count(executable, args_of_each);
  if (!status) status = allocate(executable, o, ranks, &g);
  if (status) {
    ts_ranks_end(ranks, status);
    return status;
  }
  status = begin(g, args, args_of_each, o);
  if (status)
    close_group(g, status);
  else
    *out = g;
  return status;
}

ts_status ts_group_refuse(ts_carrier *carrier, uint64_t run, ts_status why) {
  ts_ranks *ranks;
  TS_TRY(ts_ranks_create(&(ts_group_options){.carrier = carrier, .run = run}, NULL, &ranks));
  ts_ranks_end(ranks, why);
  return TS_SUCCESS;
}

/* ---- advancing ---- */

static void advance_one(void *context, int64_t p, int worker) {
  ts_group *g = context;
  (void)worker;
  bool may_go_on = g->parts[p].state == TS_RUN_PAUSED || g->parts[p].state == TS_RUN_WAITING;
  if (may_go_on && !g->parts[p].status) g->parts[p].status = ts_execution_advance(&g->each[p], &g->parts[p].state);
}

static int32_t count_waiting(const ts_group *g) {
  int32_t count = 0;
  for (int32_t p = 0; p < g->count; p++) count += g->parts[p].state == TS_RUN_WAITING && !g->parts[p].status;
  return count;
}

/* Runs every partition until it stops. */
static void advance_all(ts_group *g) {
  bool is_short = g->parallel->width == 1 || ts_execution_ahead_ns(g->each, WORTH_A_THREAD_NS) < WORTH_A_THREAD_NS;
  ts_parallel_run(is_short ? &ts_parallel_serial : g->parallel, g->count, advance_one, g);
}

/* The error of the first failed partition; errors of the others are dropped. */
static ts_status take_error(ts_group *g) {
  ts_status first = TS_SUCCESS;
  for (int32_t p = 0; p < g->count; p++) {
    ts_status status = g->parts[p].status;
    g->parts[p].status = TS_SUCCESS;
    if (first)
      ts_status_free(status);
    else
      first = ts_status_code(status) == TS_CANCELLED ? status : ts_error_context(status, "partition %d", g->first + p);
  }
  return first;
}

static const ts_step *step_of(const ts_group *g, int32_t p) {
  return g->parts[p].state == TS_RUN_COLLECTIVE ? g->each[p].run->asking : NULL;
}

static const char *name_of(const ts_step *step) { return step ? ts_op_name(step->code) : "the end"; }

/* Checks that all partitions are at the same step. */
static ts_status check_steps(const ts_group *g) {
  const ts_step *step = step_of(g, 0);
  for (int32_t p = 1; p < g->count; p++)
    if (step_of(g, p) != step)
      return ts_error(TS_INTERNAL, "partition %d is at %s, partition %d at %s", g->first, name_of(step), g->first + p,
                      name_of(step_of(g, p)));
  return TS_SUCCESS;
}

static ts_status check_predicates(const ts_group *g) {
  for (int32_t p = 1; p < g->count; p++)
    if (ts_execution_predicate(&g->each[p]) != ts_execution_predicate(g->each))
      return ts_error(TS_FAILED_PRECONDITION,
                      "%s: the predicate differs between partitions, and its regions have collectives",
                      name_of(step_of(g, 0)));
  return TS_SUCCESS;
}

/* Where the partitions here have the step's operands and results. */
static ts_collective_memory memory_of(ts_group *g, const ts_step *step) {
  for (int32_t p = 0; p < g->count; p++) g->base[p] = g->each[p].run->base;
  return (ts_collective_memory){g->first, g->count, g->base, step->ids, ts_step_results(step)};
}

/* Members of a group have a result that is the same for all in the memory of the first one, where the plan allows. */
static void share_results(ts_group *g, const ts_step *step) {
  const ts_collective *c = step->collective;
  for (int32_t p = 0; c->shared && p < g->count; p++) {
    int32_t owner = ts_collective_group(c, g->first + p)[0] - g->first;
    for (uint32_t i = 0; i < c->count && owner != p; i++)
      if (c->shared[i]) ts_execution_share(&g->each[p], &g->each[owner], i);
  }
}

static void run_collective(ts_group *g, const ts_step *step) {
  share_results(g, step);
  ts_collective_memory memory = memory_of(g, step);
  ts_fp_env saved;
  ts_fp_enter(&saved);
  ts_collective_run(step->collective, &memory, g->parallel, cancel_flag(g));
  ts_fp_leave(&saved);
}

static ts_status go_on(ts_group *g) {
  for (int32_t p = 0; p < g->count; p++) {
    TS_TRY(ts_execution_go_on(&g->each[p]));
    g->parts[p].state = TS_RUN_PAUSED;
  }
  return TS_SUCCESS;
}

static bool any_paused(const ts_group *g) {
  for (int32_t p = 0; p < g->count; p++)
    if (g->parts[p].state == TS_RUN_PAUSED) return true;
  return false;
}

/* Runs until all partitions are done or at one collective, or some of them has to pause, or to wait. */
static ts_status run_to_stop(ts_group *g, ts_run_state *out_state) {
  int32_t waiting;
  do {
    advance_all(g);
    *out_state = TS_RUN_WAITING;
    waiting = count_waiting(g);
    if (waiting > 0 && atomic_fetch_add(&g->missing, waiting) + waiting > 0) return TS_SUCCESS;
  } while (waiting > 0); /* all of them have come back already */
  TS_TRY(take_error(g));
  *out_state = TS_RUN_PAUSED;
  if (any_paused(g)) return TS_SUCCESS;
  TS_TRY(check_steps(g));
  *out_state = step_of(g, 0) ? TS_RUN_COLLECTIVE : TS_RUN_DONE;
  return *out_state == TS_RUN_COLLECTIVE && step_of(g, 0)->kind != TS_STEP_COLLECTIVE ? check_predicates(g)
                                                                                      : TS_SUCCESS;
}

static ts_status advance_alone(ts_group *g, ts_run_state *out_state) {
  for (;;) {
    TS_TRY(run_to_stop(g, out_state));
    if (*out_state != TS_RUN_COLLECTIVE) return TS_SUCCESS;
    if (step_of(g, 0)->kind == TS_STEP_COLLECTIVE) run_collective(g, step_of(g, 0));
    TS_TRY(go_on(g));
  }
}

/* ---- with other ranks ---- */

static ts_status begin_collective(ts_group *g, const ts_step *step) {
  ts_collective_memory memory = memory_of(g, step);
  ts_fp_env saved;
  ts_fp_enter(&saved); /* terms may be combined before they are sent */
  ts_status status = ts_ranks_begin(g->ranks, step->collective, &memory);
  ts_fp_leave(&saved);
  return status;
}

/* Handles the step at which the partitions have stopped; *out_posted when that takes an exchange. */
static ts_status meet(ts_group *g, bool *out_posted) {
  const ts_step *step = step_of(g, 0);
  bool collective = step->kind == TS_STEP_COLLECTIVE;
  ts_ranks_note(g->ranks, (uint64_t)step->position * 4 + (collective ? 2 : ts_execution_predicate(g->each)));
  *out_posted = false;
  if (collective) {
    *out_posted = !ts_shares_are_local(step->collective, ts_executable_partitions(g->exe) / g->count);
    if (*out_posted) return begin_collective(g, step);
    run_collective(g, step);
  }
  return go_on(g);
}

/* Uses an exchange that has arrived. */
static ts_status take_round(ts_group *g) {
  ts_phase phase = ts_ranks_phase(g->ranks);
  const ts_step *step = step_of(g, 0);
  bool is_done = false;
  ts_fp_env saved;
  TS_TRY(ts_ranks_take(g->ranks));
  if (phase == TS_PHASE_END) return TS_SUCCESS;
  ts_collective_memory memory = memory_of(g, step);
  ts_fp_enter(&saved);
  ts_status status = ts_ranks_continue(g->ranks, &memory, cancel_flag(g), &is_done);
  ts_fp_leave(&saved);
  return status || !is_done ? status : go_on(g);
}

/* Reports an error of this rank to the others before it is returned. */
static ts_status fail(ts_group *g, ts_status status) {
  if (!status) return TS_SUCCESS;
  if (ts_ranks_over(g->ranks)) return status;
  ts_ranks_post_failure(g->ranks, status);
  return TS_SUCCESS;
}

static ts_status run_to_exchange(ts_group *g, ts_run_state *out_state) {
  bool posted = false;
  while (!posted) {
    TS_TRY(run_to_stop(g, out_state));
    if (*out_state == TS_RUN_PAUSED || *out_state == TS_RUN_WAITING) return TS_SUCCESS;
    if (*out_state == TS_RUN_DONE) {
      ts_ranks_post_end(g->ranks);
      return TS_SUCCESS;
    }
    TS_TRY(meet(g, &posted));
  }
  return TS_SUCCESS;
}

static ts_status advance_together(ts_group *g, ts_run_state *out_state) {
  for (;;) {
    ts_phase phase = ts_ranks_phase(g->ranks);
    *out_state = TS_RUN_WAITING;
    if (phase != TS_PHASE_NONE) {
      if (!ts_ranks_arrived(g->ranks)) return TS_SUCCESS;
      TS_TRY(fail(g, take_round(g)));
      *out_state = TS_RUN_DONE;
      if (phase == TS_PHASE_END) return TS_SUCCESS;
      continue;
    }
    TS_TRY(fail(g, run_to_exchange(g, out_state)));
    if (ts_ranks_phase(g->ranks) == TS_PHASE_NONE) return TS_SUCCESS; /* it has to pause, or waits for foreign code */
  }
}

ts_status ts_group_advance(ts_group *g, ts_run_state *out_state) {
  return g->ranks ? advance_together(g, out_state) : advance_alone(g, out_state);
}

/* ---- the end ---- */

static ts_status hand_out(ts_group *g, ts_buffer **out_results) {
  size_t count = g->exe->result_count;
  for (int32_t p = 0; p < g->count; p++) {
    ts_status status = ts_execution_hand_out(&g->each[p], out_results + (size_t)p * count);
    if (!status) continue;
    while (p-- > 0) ts_execution_take_back(&g->each[p], out_results + (size_t)p * count);
    return status;
  }
  return TS_SUCCESS;
}

ts_status ts_group_end(ts_group *g, ts_buffer **out_results) {
  if (!g) return TS_SUCCESS;
  ts_status status = out_results ? hand_out(g, out_results) : TS_SUCCESS;
  g->succeeded = out_results && !status;
  close_group(g, TS_SUCCESS);
  return status;
}
