#include "routine_check.h"

#include "base/alloc.h"
#include "exec/executable.h"
#include "exec/pool.h"
#include "jit/jit.h"
#include "kernel/routine.h"
#include "testing.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 8 };

static size_t arg_count(const ts_graph *graph) { return ts_graph_region(graph, TS_ROOT)->params.count; }

static size_t result_count(const ts_graph *graph) { return ts_graph_region(graph, TS_ROOT)->results.count; }

/* As many workers as a large machine has, one after the other: tasks must not overlap or depend on the order. */
static void run_backwards(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  for (int64_t t = tasks; t-- > 0;) fn(arg, t, (int)(t % self->width));
}

static void adopt_kernel(const ts_routine_plan *plan) {
  ts_kernel *kernel;
  ck_assert_ok(ts_jit_get_kernels(plan->kernel, 1, &kernel));
  plan->routine->adopt(plan, kernel);
  ts_kernel_release(kernel);
}

/* The workspaces are allocated at their exact sizes, so that AddressSanitizer sees writes beyond them. */
static ts_status run_routine(const ts_graph *graph, ts_buffer *const *args, const ts_parallel *parallel,
                             const _Atomic bool *cancel, ts_buffer *const *out) {
  static const uint32_t ids[MOST_VALUES] = {0, 1, 2, 3, 4, 5, 6, 7};
  const size_t count = arg_count(graph), results = result_count(graph);
  void *base[MOST_VALUES];
  ts_arena arena;
  ck_assert_uint_le(count + results, MOST_VALUES);
  ts_arena_init(&arena);
  ts_routine_plan plan = {.routine = ts_routine_of(graph->ops.data[0].code, args[0]->dtype),
                          .operand_count = (uint32_t)count};
  ck_assert_ok(plan.routine->plan(&(ts_routine_request){.graph = graph, .arena = &arena}, &plan));
  if (plan.kernel) adopt_kernel(&plan);
  for (size_t i = 0; i < count; i++) base[i] = args[i]->data;
  for (size_t i = 0; i < results; i++) base[count + i] = out[i]->data;
  char *workspace = aligned_alloc(64, (size_t)(plan.workspace + 64) / 64 * 64),
       *thread_workspace = aligned_alloc(64, (size_t)(plan.thread_workspace * parallel->width + 64) / 64 * 64);
  ts_status status = plan.routine->run(&plan, &(ts_routine_run){.base = base,
                                                                .operands = ids,
                                                                .results = ids + count,
                                                                .workspace = workspace,
                                                                .thread_workspace = thread_workspace,
                                                                .parallel = parallel,
                                                                .pool = ts_pool_default(),
                                                                .cancel = cancel});
  free(workspace);
  free(thread_workspace);
  if (plan.routine->deinit) plan.routine->deinit(&plan);
  ts_arena_deinit(&arena);
  return status;
}

static void make_results(const ts_graph *graph, ts_buffer **out) {
  const ts_value_id first = graph->ops.data[0].first_result;
  for (size_t i = 0; i < result_count(graph); i++) {
    const ts_value *type = ts_graph_value(graph, first + (ts_value_id)i);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, type->shape, &out[i]));
  }
}

static void drop_results(const ts_graph *graph, ts_buffer **results) {
  for (size_t i = 0; i < result_count(graph); i++) ts_buffer_release(results[i]);
}

void check_routine_threads(const ts_graph *graph, ts_buffer *const *args) {
  ts_buffer *expected[MOST_VALUES], *got[MOST_VALUES];
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, arg_count(graph), NULL, expected));
  make_results(graph, got);
  const int step = TEST_IS_SANITIZED && !testing_every_case() ? 3 : 1;
  for (int width = 0; width <= 33; width += width < 8 ? step : 9) {
    const ts_parallel backwards = {.width = width, .run = run_backwards};
    for (size_t i = 0; i < result_count(graph); i++) memset(got[i]->data, 0xff, (size_t)got[i]->bytes);
    ck_assert_ok(run_routine(graph, args, width == 0 ? ts_pool_parallel(0) : &backwards, NULL, got));
    for (size_t i = 0; i < result_count(graph); i++)
      ck_assert_mem_eq(got[i]->data, expected[i]->data, (size_t)got[i]->bytes);
  }
  drop_results(graph, expected);
  drop_results(graph, got);
  ts_executable_release(exe);
}

void check_routine_cancelled(const ts_graph *graph, ts_buffer *const *args) {
  const _Atomic bool cancel = true;
  ts_buffer *out[MOST_VALUES];
  make_results(graph, out);
  ck_assert_error(run_routine(graph, args, ts_pool_parallel(0), &cancel, out), TS_CANCELLED, "");
  drop_results(graph, out);
}

static void run_short_of_memory(const ts_graph *graph, ts_buffer *const *args, int64_t n, bool *out_failed) {
  ts_executable *exe = NULL;
  ts_buffer *out[MOST_VALUES] = {NULL};
  ts_alloc_fail_after(n, true);
  ts_status status = ts_executable_create(graph, NULL, &exe);
  if (!status) status = ts_executable_run(exe, args, arg_count(graph), NULL, out);
  ts_alloc_fail_after(0, false);
  *out_failed = status != TS_SUCCESS;
  if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ts_status_free(status);
  drop_results(graph, out);
  ts_executable_release(exe);
}

void check_routine_allocations(const ts_graph *graph, ts_buffer *const *args) {
  bool failed = true;
  for (int64_t n = 1; failed && n < 2000; n++) run_short_of_memory(graph, args, n, &failed);
  ck_assert(!failed);
}
