/* Callbacks: a run's requests to its caller, their order and number, for every place of the op; what passes keep of it;
 * answers that do not fit; runs that are given up while they wait. */
#include "exec/executable.h"
#include "tensors.h"
#include "testing.h"

#define TYPES(name, type, shape) \
  " {\n    types() {\n      " name " = constant 0 : " type shape "\n      return " name "\n    }\n  }"

/* Calls back with values that it makes; none of them is a result. */
static const char twice[] =
    "graph @main(%0: f32[3]) -> (f32[3]) {\n"
    "  %1 = negate %0 : f32[3]\n"
    "  %2 = callback %1 {index = 0}" TYPES("%91", "u8", "[]") " : u8[]\n"
                                                              "  %3 = callback %1 {index = 0}" TYPES(
                                                                  "%92", "u8",
                                                                  "[]") " : u8[]\n"
                                                                        "  %4 = add %1, %0 : f32[3]\n  return %4\n}\n";

/* x = f(exp x) * 2 while x < 100; f is the callback. */
static const char loop[] =
    "graph @main(%0: f64[2]) -> (f64[2]) {\n"
    "  %1 = while %0 {\n"
    "    condition(%2: f64[2]) {\n"
    "      %3 = reduce_max %2 {axes = [0]} : f64[]\n      %4 = constant 100.0 : f64[]\n"
    "      %5 = less %3, %4 : u8[]\n      return %5\n    }\n"
    "    body(%6: f64[2]) {\n"
    "      %7 = add %6, %6 : f64[2]\n"
    "      %8 = callback %7 {index = 7}" TYPES(
        "%93", "f64",
        "[2]") " : f64[2]\n"
               "      %9 = constant 2.0 : f64[2]\n      %10 = multiply %8, %9 : f64[2]\n      return %10\n    }\n"
               "  } : f64[2]\n  return %1\n}\n";

/* Calls one of two, without a use of either's result. */
static const char branch[] =
    "graph @main(%0: u8[], %1: s32[]) -> (s32[]) {\n"
    "  %2 = cond %0, %1 {\n"
    "    true(%3: s32[]) {\n"
    "      %4 = callback %3 {index = 1}" TYPES(
        "%94", "u8", "[]") " : u8[]\n      return %3\n    }\n"
                           "    false(%5: s32[]) {\n"
                           "      %6 = callback %5 {index = 2}" TYPES(
                               "%95", "u8", "[]") " : u8[]\n      return %5\n    }\n"
                                                  "  } : s32[]\n"
                                                  "  %7 = add %1, %1 : s32[]\n  return %7\n}\n";

static const char two_results[] =
    "graph @main(%0: f32[2,2], %1: s32[]) -> (f32[4], s32[2]) {\n"
    "  %2, %3 = callback %0, %1 {index = 0} {\n"
    "    types() {\n      %4 = constant 0.0 : f32[4]\n      %5 = constant 0 : s32[2]\n      return %4, %5\n    }\n"
    "  } : f32[4], s32[2]\n  return %2, %3\n}\n";

static ts_execution *start(const ts_executable *exe, ts_buffer **args, size_t count) {
  ts_execution *x;
  ck_assert_ok(ts_execution_create(exe, args, count, NULL, &x));
  return x;
}

static ts_run_state advance(ts_execution *x) {
  ts_run_state state;
  ck_assert_ok(ts_execution_advance(x, &state));
  return state;
}

static ts_run_call asked(const ts_execution *x) {
  ts_run_call call;
  ts_execution_get_call(x, &call);
  return call;
}

static void answer(ts_execution *x, ts_buffer *result) {
  ck_assert_ok(ts_execution_answer(x, &result, 1));
  ts_buffer_release(result);
}

START_TEST(equal_callbacks_both_happen)
{
  ts_executable *exe = test_compile(twice);
  ts_buffer *arg = VECTOR(TS_F32, 1, 2, 3), *out;
  const float seen[] = {-1, -2, -3};
  ts_execution *x = start(exe, &arg, 1);
  for (int i = 0; i < 2; i++) {
    ck_assert_int_eq(advance(x), TS_RUN_CALLBACK);
    ts_run_call call = asked(x);
    ck_assert_uint_eq(call.index, 0);
    ck_assert_uint_eq(call.operand_count, 1);
    ck_assert_mem_eq(ts_execution_operand(x, 0), seen, sizeof seen);
    ck_assert_int_eq(advance(x), TS_RUN_CALLBACK); /* still without an answer */
    answer(x, SCALAR(TS_U8, 1));
  }
  ck_assert_int_eq(advance(x), TS_RUN_DONE);
  ck_assert_ok(ts_execution_end(x, &out));
  test_equal(out, VECTOR(TS_F32, 0, 0, 0));
  ts_buffer_release(arg);
  ts_executable_release(exe);
}
END_TEST

START_TEST(a_loop_goes_on_from_each_answer)
{
  ts_executable *exe = test_compile(loop);
  ts_buffer *arg = VECTOR(TS_F64, 1, 3), *out;
  ts_execution *x = start(exe, &arg, 1);
  double expected[2] = {1, 3};
  int calls = 0;
  for (; advance(x) == TS_RUN_CALLBACK; calls++) {
    double given[2];
    memcpy(given, ts_execution_operand(x, 0), sizeof given);
    ck_assert_uint_eq(asked(x).index, 7);
    for (int i = 0; i < 2; i++) {
      ck_assert_double_eq(given[i], 2 * expected[i]);
      expected[i] = 2 * (given[i] + 1);
    }
    answer(x, VECTOR(TS_F64, given[0] + 1, given[1] + 1));
  }
  ck_assert_int_eq(calls, 3); /* 3, 14, 58, 234 */
  ck_assert_ok(ts_execution_end(x, &out));
  test_equal(out, VECTOR(TS_F64, expected[0], expected[1]));
  ts_buffer_release(arg);
  ts_executable_release(exe);
}
END_TEST

START_TEST(only_the_branch_that_is_taken_calls)
{
  ts_executable *exe = test_compile(branch);
  for (int taken = 0; taken < 2; taken++) {
    ts_buffer *args[] = {SCALAR(TS_U8, taken), SCALAR(TS_S32, 21)}, *out;
    ts_execution *x = start(exe, args, 2);
    ck_assert_int_eq(advance(x), TS_RUN_CALLBACK);
    ck_assert_uint_eq(asked(x).index, taken ? 1 : 2);
    answer(x, SCALAR(TS_U8, 1));
    ck_assert_int_eq(advance(x), TS_RUN_DONE);
    ck_assert_ok(ts_execution_end(x, &out));
    test_equal(out, SCALAR(TS_S32, 42));
    ts_buffer_release(args[0]);
    ts_buffer_release(args[1]);
  }
  ts_executable_release(exe);
}
END_TEST

START_TEST(results_of_any_types)
{
  ts_executable *exe = test_compile(two_results);
  ts_buffer *args[] = {TENSOR(TS_F32, SHAPE(2, 2), 1, 2, 3, 4), SCALAR(TS_S32, 5)}, *out[2];
  ts_buffer *good[] = {VECTOR(TS_F32, 4, 3, 2, 1), VECTOR(TS_S32, 6, 7)}, *bad[] = {good[0], args[1]};
  ts_execution *x = start(exe, args, 2);
  ck_assert_error(ts_execution_answer(x, good, 2), TS_FAILED_PRECONDITION, "waits for no callback");
  ck_assert_int_eq(advance(x), TS_RUN_CALLBACK);
  ck_assert_int_eq(*(const int32_t *)ts_execution_operand(x, 1), 5);
  ck_assert_error(ts_execution_answer(x, good, 1), TS_INVALID_ARGUMENT, "callback 0 gave 1 results, expected 2");
  ck_assert_error(ts_execution_answer(x, bad, 2), TS_INVALID_ARGUMENT,
                  "result 2 of callback 0 is s32[], expected s32[2]");
  ck_assert_ok(ts_execution_answer(x, good, 2));
  ck_assert_int_eq(advance(x), TS_RUN_DONE);
  ck_assert_ok(ts_execution_end(x, out));
  for (int i = 0; i < 2; i++) test_equal(out[i], good[i]);
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_executable_release(exe);
}
END_TEST

START_TEST(a_run_that_waits_can_be_given_up_or_cancelled)
{
  ts_executable *exe = test_compile(loop);
  ts_buffer *arg = VECTOR(TS_F64, 1, 3);
  ts_run_state state;
  for (int cancelled = 0; cancelled < 2; cancelled++) {
    ts_run_control control = {0};
    ts_execution *x;
    ck_assert_ok(ts_execution_create(exe, &arg, 1, &(ts_run_options){.control = &control}, &x));
    ck_assert_int_eq(advance(x), TS_RUN_CALLBACK);
    if (cancelled) {
      answer(x, VECTOR(TS_F64, 0, 0));
      atomic_store(&control.cancel, true);
      ck_assert_error(ts_execution_advance(x, &state), TS_CANCELLED, "cancelled");
    }
    ck_assert_ok(ts_execution_end(x, NULL));
  }
  ts_buffer_release(arg);
  ts_executable_release(exe);
}
END_TEST

START_TEST(only_a_resumable_run_can_call_back)
{
  ts_executable *exe = test_compile(twice);
  ts_buffer *arg = VECTOR(TS_F32, 1, 2, 3), *out;
  ck_assert(ts_executable_calls_back(exe));
  ck_assert_error(ts_executable_run(exe, &arg, 1, NULL, &out), TS_FAILED_PRECONDITION, "the program calls back");
  ts_buffer_release(arg);
  ts_executable_release(exe);
}
END_TEST

static void run_with_failures(const ts_executable *exe, ts_buffer *arg) {
  ts_execution *x = NULL;
  ts_run_state state = TS_RUN_PAUSED;
  ts_status status = ts_execution_create(exe, &arg, 1, NULL, &x);
  double zeros[2] = {500, 500};
  ts_buffer *result = NULL, *out = NULL;
  while (!status && !(status = ts_execution_advance(x, &state)) && state == TS_RUN_CALLBACK) {
    status = ts_buffer_wrap(TS_F64, &arg->shape, zeros, NULL, NULL, &result);
    if (!status) status = ts_execution_answer(x, &result, 1);
    ts_buffer_release(result);
    result = NULL;
  }
  if (!status) {
    status = ts_execution_end(x, &out);
    x = NULL;
  }
  ts_status_free(status);
  ts_buffer_release(out);
  ts_status_free(ts_execution_end(x, NULL));
}

START_TEST(each_allocation_may_fail)
{
  ts_executable *exe = test_compile(loop);
  ts_buffer *arg = VECTOR(TS_F64, 1, 3);
  run_with_failures(exe, arg); /* the executable has its memory for later runs then */
  CK_FAIL_EACH_ALLOCATION(run_with_failures(exe, arg));
  ts_buffer_release(arg);
  ts_executable_release(exe);
}
END_TEST

START_TEST(reductions_cannot_call_back)
{
  static const char text[] =
      "graph @main(%0: s32[4], %1: s32[]) -> (s32[]) {\n"
      "  %2 = reduce %0, %1 {axes = [0]} {\n    combine(%3: s32[], %4: s32[]) {\n"
      "      %5 = callback %3 {index = 0}" TYPES("%96", "s32", "[]") " : s32[]\n      return %5\n    }\n  } : s32[]\n"
                                                                     "  return %2\n}\n";
  ts_graph *graph;
  ck_assert_error(ts_graph_parse(text, strlen(text), &graph), TS_INVALID_ARGUMENT,
                  "the combiner calls back or has a collective");
}
END_TEST

/* Kernels stay in the process's cache, so they are made before blocks are counted. */
static void begin(void) {
  static const char *const texts[] = {twice, loop, branch, two_results};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) ts_executable_release(test_compile(texts[i]));
  test_leaks_begin();
}

int main(void) {
  Suite *suite = suite_create("callback");
  TCase *runs = tcase_create("runs");
  tcase_add_checked_fixture(runs, begin, test_leaks_end);
  tcase_add_test(runs, equal_callbacks_both_happen);
  tcase_add_test(runs, a_loop_goes_on_from_each_answer);
  tcase_add_test(runs, only_the_branch_that_is_taken_calls);
  tcase_add_test(runs, results_of_any_types);
  tcase_add_test(runs, a_run_that_waits_can_be_given_up_or_cancelled);
  tcase_add_test(runs, only_a_resumable_run_can_call_back);
  tcase_add_test(runs, each_allocation_may_fail);
  tcase_add_test(runs, reductions_cannot_call_back);
  suite_add_tcase(suite, runs);
  return testing_run(suite);
}
