/* Runs and compiles that are asked to end, and runs that pause. */
#include "exec/executable.h"
#include "jit/jit.h"
#include "tensors.h"
#include "testing.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct program {
  const char *name, *text;
} program;

static const char endless[] =
    "graph @main(%0: s32[64]) -> (s32[64]) {\n  %1 = while %0 {\n    condition(%2: s32[64]) {\n"
    "      %3 = constant 1 : u8[]\n      return %3\n    }\n    body(%4: s32[64]) {\n"
    "      %5 = add %4, %4 : s32[64]\n      return %5\n    }\n  } : s32[64]\n  return %1\n}\n";
static const char endless_whole[] =
    "graph @main(%0: s32[]) -> (s32[]) {\n  %1 = while %0 {\n    condition(%2: s32[]) {\n"
    "      %3 = constant 1 : u8[]\n      return %3\n    }\n    body(%4: s32[]) {\n"
    "      %5 = add %4, %4 : s32[]\n      return %5\n    }\n  } : s32[]\n  return %1\n}\n";

/* Sets a run's flag, and notes how long the run's thread had worked by then. */
typedef struct canceller {
  ts_run_control *control;
  clockid_t clock;
  struct timespec at;
} canceller;

static void *cancel_and_note(void *context) {
  canceller *c = context;
  usleep(20000);
  clock_gettime(c->clock, &c->at);
  atomic_store(&c->control->cancel, true);
  return NULL;
}

/* The CPU time that the run's thread took from when it was cancelled. At most: where the canceller loses its CPU after
 * it has read the clock, the run continues meanwhile. */
static int64_t ms_to_end(const ts_executable *exe, ts_buffer *arg, int threads) {
  ts_buffer *out[1];
  ts_run_control control = {0};
  ts_run_options options = {.control = &control, .threads = threads};
  canceller c = {.control = &control};
  pthread_t thread;
  struct timespec end;
  pthread_getcpuclockid(pthread_self(), &c.clock);
  pthread_create(&thread, NULL, cancel_and_note, &c);
  ts_status status = ts_executable_run(exe, &arg, 1, &options, out);
  clock_gettime(c.clock, &end);
  pthread_join(thread, NULL);
  ck_assert_error(status, TS_CANCELLED, "cancelled");
  return (end.tv_sec - c.at.tv_sec) * 1000 + (end.tv_nsec - c.at.tv_nsec) / 1000000;
}

/* Instrumented code takes several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PROMPT_MS = 1000 };
#else
enum { PROMPT_MS = 100 };
#endif

/* A run ends within 100 ms of its own time. A busy machine adds a different time to each run, so the best of some runs
 * counts: a run that is always late is seen. */
static void check_prompt_end(const char *text, int threads) {
  ts_executable *exe = test_compile(text);
  ck_assert(!ts_executable_is_short(exe));
  const ts_type *type = *ts_executable_param_types(exe);
  ts_buffer *arg;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, &type->shape, &arg));
  if (arg->bytes > 0) memset(arg->data, 0, (size_t)arg->bytes);
  int64_t best = INT64_MAX;
  for (int attempt = 0; attempt < 10 && best > PROMPT_MS; attempt++) {
    int64_t ms = ms_to_end(exe, arg, threads);
    if (ms < best) best = ms;
  }
  ck_assert_int_le(best, PROMPT_MS);
  ts_buffer_release(arg);
  ts_executable_release(exe);
}

#define DIMS12 "[4,4,4,4,4,4,4,4,4,4,4,4]"
#define LARGE "f64[2000000000]"
#define ROWS "f64[2,400000000]"

/* With too many dims for a kernel; and a launch. */
static const program long_steps[] = {
    {"transpose", "graph @main(%0: s32" DIMS12 ") -> (s32" DIMS12 ") {\n"
                  "  %1 = transpose %0 {axes = [11,10,9,8,7,6,5,4,3,2,1,0]} : s32" DIMS12 "\n  return %1\n}\n"},
    {"reverse", "graph @main(%0: s8" DIMS12 ") -> (s8" DIMS12 ") {\n"
                "  %1 = reverse %0 {axes = [0,2,4,6,8,10]} : s8" DIMS12 "\n  return %1\n}\n"},
    {"pad", "graph @main(%0: s8" DIMS12 ") -> (s8" DIMS12 ") {\n  %1 = constant 1 : s8[]\n"
            "  %2 = pad %0, %1 {low = [1,1,1,1,1,1,1,1,1,1,1,1], high = [-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1],"
            " interior = [0,0,0,0,0,0,0,0,0,0,0,0]} : s8" DIMS12 "\n  return %2\n}\n"},
    {"sum", "graph @main(%0: s8" DIMS12 ") -> (s8[4,4,4,4,4]) {\n"
            "  %1 = reduce_sum %0 {axes = [0,2,3,4,6,8,10]} : s8[4,4,4,4,4]\n  return %1\n}\n"},
    {"points", "graph @main(%0: f64[]) -> (f64[]) {\n  %1 = iota {axis = 0} : " LARGE "\n"
               "  %2 = broadcast %0 {shape = [2000000000], axes = []} : " LARGE "\n  %3 = add %1, %2 : " LARGE "\n"
               "  %4 = sin %3 : " LARGE "\n  %5 = reduce_sum %4 {axes = [0]} : f64[]\n  return %5\n}\n"},
    {"argmax", "graph @main(%0: f64[]) -> (s64[]) {\n  %1 = iota {axis = 0} : " LARGE "\n"
               "  %2 = broadcast %0 {shape = [2000000000], axes = []} : " LARGE "\n  %3 = add %1, %2 : " LARGE "\n"
               "  %4 = sin %3 : " LARGE "\n  %5 = argmax %4 {axis = 0, high = false} : s64[]\n  return %5\n}\n"},
    {"two long rows", "graph @main(%0: f64[2]) -> (s8[2,400000000]) {\n  %1 = iota {axis = 1} : " ROWS "\n"
                      "  %2 = broadcast %0 {shape = [2,400000000], axes = [0]} : " ROWS "\n  %3 = add %1, %2 : " ROWS
                      "\n  %4 = sin %3 : " ROWS "\n  %5 = convert %4 : s8[2,400000000]\n  return %5\n}\n"},
};

START_TEST(long_steps_can_be_cancelled)
{ check_prompt_end(long_steps[_i].text, 1); }
END_TEST

/* ---- compiles */

typedef struct watcher {
  ts_run_control *control;
  int64_t compiled;
} watcher;

static void *cancel_after_a_kernel(void *context) {
  watcher *w = context;
  ts_jit_stats stats;
  do {
    usleep(100);
    ts_jit_get_stats(&stats);
  } while (stats.compiled == w->compiled);
  atomic_store(&w->control->cancel, true);
  return NULL;
}

/* `count` sums of different chains, so that there are as many kernels. Another `length` has other kernels. */
static ts_graph *many_kernels(int count, int length) {
  ts_graph *graph = test_graph();
  ts_value_id x = test_add_param(graph, TS_ROOT, TS_F32, SHAPE(length)), results[64];
  for (int i = 0; i < count; i++) {
    ts_value_id y = x;
    for (int bit = 0; bit < 7; bit++) y = OP(graph, TS_ROOT, i >> bit & 1 ? TS_OP_ADD : TS_OP_MULTIPLY, NULL, y, x);
    ts_attrs axes = {.axes = {.rank = 1}};
    results[i] = OP(graph, TS_ROOT, TS_OP_REDUCE_SUM, &axes, y);
  }
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, results, (size_t)count));
  return graph;
}

/* Whether another thread cancelled the compile after its first kernel and before its last one. */
static bool cancel_within(ts_graph *graph, int kernels) {
  ts_run_control control = {0};
  ts_compile_options options = {.no_simplify = true, .cancel = &control.cancel};
  ts_executable *exe;
  ts_jit_stats before, after;
  ts_jit_get_stats(&before);
  watcher w = {&control, before.compiled};
  pthread_t thread;
  pthread_create(&thread, NULL, cancel_after_a_kernel, &w);
  ts_status status = ts_executable_create(graph, &options, &exe);
  pthread_join(thread, NULL);
  if (!status) {
    ts_executable_release(exe);
    return false;
  }
  ck_assert_error(status, TS_CANCELLED, "cancelled");
  ck_assert_ptr_null(exe);
  ts_jit_get_stats(&after);
  ck_assert_int_gt(after.compiled, before.compiled);
  ck_assert_int_lt(after.compiled - before.compiled, kernels);
  ck_assert_error(ts_executable_create(graph, &options, &exe), TS_CANCELLED, "cancelled"); /* before it begins */
  ts_jit_get_stats(&before);
  ck_assert_int_eq(after.compiled, before.compiled);
  options.cancel = NULL;
  ck_assert_ok(ts_executable_create(graph, &options, &exe));
  ts_executable_release(exe);
  return true;
}

/* The kernels that were not begun never are. */
START_TEST(a_compile_can_be_cancelled)
{
  enum { KERNELS = 64 };
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  bool cancelled = false;
  for (int attempt = 0; !cancelled; attempt++) { /* a busy machine may let the other thread run too late */
    ck_assert_int_lt(attempt, 50);
    ts_graph *graph = many_kernels(KERNELS, 50 + attempt);
    cancelled = cancel_within(graph, KERNELS);
    ts_graph_destroy(graph);
  }
}
END_TEST

/* ---- runs that pause */

static int64_t live_bytes(void) {
  ts_pool_stats s;
  ts_pool_get_stats(ts_pool_default(), &s);
  return s.live;
}

static ts_buffer *filled_like(const ts_type *type, int value) {
  ts_buffer *b;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, &type->shape, &b));
  for (int64_t i = 0; i < ts_shape_elements(&type->shape); i++)
    ts_scalar_store(type->dtype, ts_scalar_from_s64(type->dtype, value),
                    (char *)b->data + i * (int64_t)ts_dtype_size(type->dtype));
  return b;
}

#define LOOP(type, trips)                                                                                        \
  "while %1, %0 {\n    condition(%4: s32[], %5: " type ") {\n      %6 = constant " trips " : s32[]\n"            \
  "      %7 = less %4, %6 : u8[]\n      return %7\n    }\n"                                                      \
  "    body(%8: s32[], %9: " type ") {\n      %10 = constant 1 : s32[]\n      %11 = add %8, %10 : s32[]\n"       \
  "      %12 = constant 3 : " type "\n      %13 = multiply %9, %12 : " type "\n      %14 = add %13, %12 : " type \
  "\n      return %11, %14\n    }\n  } : s32[], " type "\n"

/* A loop in a loop. */
#define NESTED(type)                                                                                                  \
  "graph @main(%0: " type ") -> (s32[], " type ") {\n  %1 = constant 0 : s32[]\n  %2, %3 = while %1, %0 {\n"          \
  "condition(%4: s32[], %5: " type ") {\n%6 = constant 200 : s32[]\n%7 = less %4, %6 : u8[]\nreturn %7\n}\n"          \
  "body(%8: s32[], %9: " type ") {\n%10 = constant 1 : s32[]\n%11 = add %8, %10 : s32[]\n%12 = constant 0 : s32[]\n"  \
  "%13, %14 = while %12, %9 {\n"                                                                                      \
  "condition(%15: s32[], %16: " type ") {\n%17 = constant 10000 : s32[]\n%18 = less %15, %17 : u8[]\nreturn %18\n}\n" \
  "body(%19: s32[], %20: " type ") {\n%21 = constant 1 : s32[]\n%22 = add %19, %21 : s32[]\n"                         \
  "%23 = constant 5 : " type "\n%24 = multiply %20, %23 : " type "\n%25 = reverse %24 {axes = [0]} : " type "\n"      \
  "return %22, %25\n}\n} : s32[], " type "\n%26 = add %14, %9 : " type "\nreturn %11, %26\n}\n} : s32[], " type       \
  "\nreturn %2, %3\n}\n"

/* Two states that change places, in one of two ways. */
static const char exchanging[] =
    "graph @main(%0: s32[7]) -> (s32[7], s32[7]) {\n%1 = constant 0 : s32[]\n%2 = constant 3 : s32[7]\n"
    "%3, %4, %5 = while %1, %0, %2 {\ncondition(%6: s32[], %7: s32[7], %8: s32[7]) {\n"
    "%9 = constant 1000000 : s32[]\n%10 = less %6, %9 : u8[]\nreturn %10\n}\n"
    "body(%11: s32[], %12: s32[7], %13: s32[7]) {\n%14 = constant 1 : s32[]\n%15 = add %11, %14 : s32[]\n"
    "%16 = multiply %12, %13 : s32[7]\n%17 = add %16, %12 : s32[7]\n%18 = bitwise_and %11, %14 : s32[]\n"
    "%19 = less %18, %14 : u8[]\n%20, %21 = cond %19, %17, %13 {\ntrue(%22: s32[7], %23: s32[7]) {\n"
    "%24 = slice %22 {start = [2], limit = [7], stride = [1]} : s32[5]\n"
    "%25 = slice %23 {start = [0], limit = [2], stride = [1]} : s32[2]\n"
    "%26 = concatenate %24, %25 {axis = 0} : s32[7]\nreturn %23, %26\n}\n"
    "false(%27: s32[7], %28: s32[7]) {\n%29 = subtract %27, %28 : s32[7]\nreturn %29, %27\n}\n} : s32[7], s32[7]\n"
    "return %15, %21, %20\n}\n} : s32[], s32[7], s32[7]\nreturn %4, %5\n}\n";

static const program pausing[] = {
    {"whole", "graph @main(%0: s32[]) -> (s32[], s32[]) {\n  %1 = constant 0 : s32[]\n  %2, %3 = " LOOP(
                  "s32[]", "100000000") "  return %2, %3\n}\n"},
    {"native", "graph @main(%0: s32[40]) -> (s32[], s32[40]) {\n  %1 = constant 0 : s32[]\n  %2, %3 = " LOOP(
                   "s32[40]", "1000000") "  return %2, %3\n}\n"},
    {"steps", "graph @main(%0: s32[5000]) -> (s32[], s32[5000]) {\n  %1 = constant 0 : s32[]\n  %2, %3 = " LOOP(
                  "s32[5000]", "20000") "  return %2, %3\n}\n"},
    {"whole_nested",
     "graph @main(%0: s32[]) -> (s32[], s32[]) {\n  %1 = constant 0 : s32[]\n  %2, %3 = while %1, %0 {\n"
     "    condition(%4: s32[], %5: s32[]) {\n      %6 = constant 2000 : s32[]\n      %7 = less %4, %6 : u8[]\n"
     "      return %7\n    }\n"
     "    body(%8: s32[], %9: s32[]) {\n      %10 = constant 1 : s32[]\n      %11 = add %8, %10 : s32[]\n"
     "      %12 = constant 0 : s32[]\n"
     "      %13, %14 = while %12, %9 {\n"
     "        condition(%15: s32[], %16: s32[]) {\n          %17 = constant 20000 : s32[]\n"
     "          %18 = less %15, %17 : u8[]\n          return %18\n        }\n"
     "        body(%19: s32[], %20: s32[]) {\n          %21 = constant 1 : s32[]\n          %22 = add %19, %21 : "
     "s32[]\n"
     "          %23 = constant 5 : s32[]\n          %24 = multiply %20, %23 : s32[]\n"
     "          %25 = add %24, %19 : s32[]\n          return %22, %25\n        }\n      } : s32[], s32[]\n"
     "      return %11, %14\n    }\n  } : s32[], s32[]\n  return %2, %3\n}\n"},
    {"native_nested", NESTED("s32[40]")},
    {"in_registers", NESTED("s32[7]")},
    {"exchanging", exchanging},
};

typedef struct pauser {
  ts_run_control control;
  _Atomic bool stop;
} pauser;

static void *pause_often(void *context) {
  pauser *p = context;
  while (!atomic_load(&p->stop)) {
    usleep(500);
    atomic_store(&p->control.pause, true);
  }
  return NULL;
}

/* Gives how often the run paused. */
static int run_paused(const ts_executable *exe, ts_buffer *arg, ts_buffer **out) {
  pauser p = {0};
  pthread_t thread;
  ts_execution *x;
  ts_run_state state = TS_RUN_PAUSED;
  int pauses = 0;
  ts_run_options options = {.control = &p.control};
  pthread_create(&thread, NULL, pause_often, &p);
  ck_assert_ok(ts_execution_create(exe, &arg, 1, &options, &x));
  for (; state != TS_RUN_DONE; pauses += state == TS_RUN_PAUSED) {
    atomic_store(&p.control.pause, false);
    ck_assert_ok(ts_execution_advance(x, &state));
  }
  ck_assert_ok(ts_execution_end(x, out));
  atomic_store(&p.stop, true);
  pthread_join(thread, NULL);
  return pauses;
}

START_TEST(a_run_that_pauses_gives_the_same)
{
  const program *p = &pausing[_i];
  ts_executable *exe = test_compile(p->text);
  const ts_type *type = *ts_executable_param_types(exe);
  int64_t live = live_bytes();
  ts_buffer *arg = filled_like(type, 7), *expected[2], *actual[2];
  ck_assert_ok(ts_executable_run(exe, &arg, 1, NULL, expected));
  int pauses = 0;
  for (int attempt = 0; pauses < 4; attempt++) { /* a busy machine may not let the other thread ask in time */
    ck_assert_msg(attempt < 200, "%s hardly paused", p->name);
    pauses += run_paused(exe, arg, actual);
    for (int i = 0; i < 2; i++) {
      ck_assert_mem_eq(expected[i]->data, actual[i]->data, (size_t)expected[i]->bytes);
      ts_buffer_release(actual[i]);
    }
  }
  for (int i = 0; i < 2; i++) ts_buffer_release(expected[i]);
  ts_buffer_release(arg);
  ck_assert_int_eq(live_bytes(), live);
  ts_executable_release(exe);
}
END_TEST

/* A run in the middle. A busy machine may not let the other thread ask in time. */
static ts_execution *pause_once(const ts_executable *exe, ts_buffer **arg, pauser *p) {
  const ts_run_options options = {.control = &p->control};
  for (int attempt = 0; attempt < 200; attempt++) {
    ts_execution *x;
    ts_run_state state;
    ck_assert_ok(ts_execution_create(exe, arg, 1, &options, &x));
    atomic_store(&p->control.pause, false);
    ck_assert_ok(ts_execution_advance(x, &state));
    if (state == TS_RUN_PAUSED) return x;
    ck_assert_ok(ts_execution_end(x, NULL));
  }
  ck_abort_msg("the run never paused");
}

/* A paused run is given up, or cancelled. */
START_TEST(a_paused_run_can_be_given_up)
{
  const program *p = &pausing[_i];
  ts_executable *exe = test_compile(p->text);
  const ts_type *type = *ts_executable_param_types(exe);
  int64_t live = live_bytes(), blocks = ts_alloc_live();
  for (int cancelled = 0; cancelled < 2; cancelled++) {
    pauser q = {0};
    pthread_t thread;
    ts_run_state state;
    ts_buffer *arg = filled_like(type, 7);
    pthread_create(&thread, NULL, pause_often, &q);
    ts_execution *x = pause_once(exe, &arg, &q);
    if (cancelled) {
      atomic_store(&q.control.cancel, true);
      ck_assert_error(ts_execution_advance(x, &state), TS_CANCELLED, "cancelled");
    }
    ck_assert_ok(ts_execution_end(x, NULL));
    atomic_store(&q.stop, true);
    pthread_join(thread, NULL);
    ts_buffer_release(arg);
  }
  ck_assert_int_eq(live_bytes(), live);
  ck_assert_int_le(ts_alloc_live(), blocks + 1); /* a context may be kept */
  ts_executable_release(exe);
}
END_TEST

START_TEST(an_endless_loop_can_be_cancelled)
{
  check_prompt_end(endless, 0); /* all CPUs */
  check_prompt_end(endless_whole, 0);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("cancel");
  TCase *t = tcase_create("cancel");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, an_endless_loop_can_be_cancelled);
  tcase_add_loop_test(t, long_steps_can_be_cancelled, 0, (int)(sizeof long_steps / sizeof *long_steps));
  tcase_add_test(t, a_compile_can_be_cancelled);
  tcase_add_loop_test(t, a_run_that_pauses_gives_the_same, 0, sizeof pausing / sizeof *pausing);
  tcase_add_loop_test(t, a_paused_run_can_be_given_up, 0, sizeof pausing / sizeof *pausing);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
