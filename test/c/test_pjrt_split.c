/* Programs with callbacks on plugins, which are split there (c_src/pjrt/split.h): results, calls and their order are
 * the host's. */
#include "device/host.h"
#include "pjrt_direct.h"
#include "testing.h"

#include <pthread.h>

#define TYPES(id, type) " {\n types() {\n " id " = constant 0.0 : " type "\n return " id "\n }\n }"

static const char *const programs[] = {
    /* Some results are an argument, or a call's. Nothing uses the result of the last call. One call has no operands. */
    "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3], f32[3]) {\n"
    "  %2 = add %0, %1 : f32[3]\n"
    "  %3 = callback %2, %1 {index = 0}" TYPES(
        "%90", "f32[3]") " : f32[3]\n"
                         "  %4 = callback {index = 1}" TYPES(
                             "%91", "f32[3]") " : f32[3]\n"
                                              "  %5 = callback %0 {index = 2}" TYPES(
                                                  "%92", "f32[3]") " : f32[3]\n"
                                                                   "  %6 = multiply %3, %4 : f32[3]\n"
                                                                   "  %7 = exp %6 : f32[3]\n"
                                                                   "  return %6, %0, %3\n}\n",
    /* Calls in a condition and in a body, and a loop inside a branch inside a loop. */
    "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3], f32[3]) {\n"
    "  %2, %3 = while %0, %1 {\n"
    "    condition(%4: f32[3], %5: f32[3]) {\n"
    "      %6 = callback %4 {index = 4}" TYPES(
        "%93", "f32[3]") " : f32[3]\n"
                         "      %7 = reduce_max %6 {axes = [0]} : f32[]\n      %8 = constant 400.0 : f32[]\n"
                         "      %9 = less %7, %8 : u8[]\n      return %9\n    }\n"
                         "    body(%10: f32[3], %11: f32[3]) {\n"
                         "      %12 = reduce_max %10 {axes = [0]} : f32[]\n      %13 = constant 20.0 : f32[]\n"
                         "      %14 = less %12, %13 : u8[]\n"
                         "      %15 = cond %14, %10, %11 {\n"
                         "        true(%16: f32[3], %17: f32[3]) {\n          %18 = add %16, %17 : f32[3]\n          "
                         "return %18\n        }\n"
                         "        false(%19: f32[3], %20: f32[3]) {\n"
                         "          %21 = while %19 {\n"
                         "            condition(%22: f32[3]) {\n"
                         "              %23 = reduce_max %22 {axes = [0]} : f32[]\n              %24 = constant 100.0 "
                         ": f32[]\n"
                         "              %25 = less %23, %24 : u8[]\n              return %25\n            }\n"
                         "            body(%26: f32[3]) {\n"
                         "              %27 = callback %26 {index = 5}" TYPES(
                             "%94", "f32[3]") " : f32[3]\n"
                                              "              return %27\n            }\n          } : f32[3]\n"
                                              "          %28 = add %21, %21 : f32[3]\n          return %28\n        "
                                              "}\n      } : f32[3]\n"
                                              "      return %15, %10\n    }\n"
                                              "  } : f32[3], f32[3]\n"
                                              "  %29 = negate %3 : f32[3]\n  return %2, %29, %3\n}\n",
    /* A region that is called, and a loop that never begins. */
    "graph @main(%0: f32[3], %1: f32[3]) -> (f32[3], f32[3], f32[3]) {\n"
    "  %2, %3 = call %1 {\n"
    "    body(%4: f32[3]) {\n"
    "      %5 = callback %4, %4 {index = 6}" TYPES(
        "%95", "f32[3]") " : f32[3]\n"
                         "      %6 = subtract %5, %4 : f32[3]\n      return %6, %4\n    }\n  } : f32[3], f32[3]\n"
                         "  %7 = while %0 {\n"
                         "    condition(%8: f32[3]) {\n      %9 = constant 0 : u8[]\n      return %9\n    }\n"
                         "    body(%10: f32[3]) {\n"
                         "      %11 = callback %10 {index = 7}" TYPES(
                             "%96", "f32[3]") " : f32[3]\n      return %11\n    }\n  } : f32[3]\n"
                                              "  return %2, %3, %7\n}\n"};
enum { PROGRAMS = sizeof programs / sizeof *programs, RESULTS = 3 };

/* The calls of a run, and its results. */
typedef struct record {
  uint32_t calls, indices[256];
  float operands[256][6], results[RESULTS][3];
  bool late;           /* calls are answered on another thread */
  uint32_t refused_at; /* this call is answered by an error; 0: none, 1: the first */
  ts_program_call *call;
} record;

/* Twice the first operand and a number of the call. */
static void answer_call(record *r) {
  float answer[3];
  ts_program_call *call = r->call;
  uint32_t n = r->calls++;
  ck_assert_uint_lt(n, 256);
  r->indices[n] = call->index;
  for (uint32_t i = 0; i < call->operand_count; i++) memcpy(&r->operands[n][3 * i], call->operands[i], 12);
  for (int i = 0; i < 3; i++) answer[i] = 2 * r->operands[n][i] + (float)call->index;
  if (n + 1 == r->refused_at)
    call->answer(call, ts_error(TS_CANCELLED, "its process has died"), NULL);
  else
    call->answer(call, TS_SUCCESS, (const void *[]){answer});
}

static void *answer_later(void *arg) {
  answer_call(arg);
  return NULL;
}

static void receive(ts_program_call *call, void *arg) {
  record *r = arg;
  pthread_t thread;
  r->call = call;
  if (!r->late) {
    answer_call(r);
    return;
  }
  ck_assert_int_eq(pthread_create(&thread, NULL, answer_later, r), 0);
  pthread_detach(thread);
}

/* A client of one platform, with a program and its arguments. */
typedef struct place {
  const ts_platform *platform;
  void *client;
  ts_program program;
  void *args[2];
} place;

static ts_status set_argument(place *at, int i, const float *numbers) {
  end e = {0};
  ts_placement where = placement(at->client, 0);
  at->platform->from_host(&where, numbers, &at->args[i], DONE(&e));
  return wait_for(&e);
}

static ts_status compile_at(place *at, const ts_graph *graph) {
  end e = {0};
  at->platform->compile(at->client, graph, &(ts_program_options){0}, &at->program, DONE(&e));
  return wait_for(&e);
}

static ts_status set(place *at, const ts_graph *graph) {
  TS_TRY(compile_at(at, graph));
  TS_TRY(set_argument(at, 0, (const float[]){1, 2, 3}));
  return set_argument(at, 1, (const float[]){0.5f, -4, 8});
}

static void leave(place *at) {
  for (int i = 0; i < 2; i++)
    if (at->args[i]) at->platform->release_memory(at->args[i]);
  if (at->program.program) at->platform->release_program(at->program.program);
}

static ts_status run_at(place *at, record *r) {
  end e = {0};
  void *results[RESULTS] = {0};
  static const int32_t first;
  ts_run_request request = {.program = at->program.program,
                            .client = at->client,
                            .devices = &first,
                            .device_count = 1,
                            .args = at->args,
                            .arg_count = 2,
                            .results = results,
                            .call = receive,
                            .call_arg = r};
  at->platform->run(&request, DONE(&e));
  TS_TRY(wait_for(&e));
  ts_status status = TS_SUCCESS;
  for (int i = 0; i < RESULTS; i++) {
    end read = {0};
    at->platform->to_host(results[i], 12, r->results[i], DONE(&read));
    ts_status one = wait_for(&read);
    if (status)
      ts_status_free(one);
    else
      status = one;
    at->platform->release_memory(results[i]);
  }
  return status;
}

static ts_graph *graphs[PROGRAMS];
static record expected[PROGRAMS];

static void set_up(void) {
  direct_begin();
  for (int i = 0; i < PROGRAMS; i++) {
    place host = {.platform = &ts_platform_host};
    ck_assert_ok(ts_graph_parse(programs[i], strlen(programs[i]), &graphs[i]));
    ck_assert_ok(set(&host, graphs[i]));
    ck_assert_ok(run_at(&host, &expected[i]));
    leave(&host);
  }
  ck_assert_uint_eq(expected[0].calls, 3);
  ck_assert_uint_gt(expected[1].calls, 6);
  ck_assert_uint_eq(expected[2].calls, 1);
}

static void tear_down(void) {
  for (int i = 0; i < PROGRAMS; i++) ts_graph_destroy(graphs[i]);
}

static void check_record(const record *got, const record *wanted) {
  ck_assert_uint_eq(got->calls, wanted->calls);
  ck_assert_mem_eq(got->indices, wanted->indices, sizeof wanted->indices);
  ck_assert_mem_eq(got->operands, wanted->operands, sizeof wanted->operands);
  ck_assert_mem_eq(got->results, wanted->results, sizeof wanted->results);
}

static ts_status try_one(int i, record *r, bool isolated) {
  const ts_setting apart = {.name = "isolated", .kind = TS_SETTING_BOOLEAN, .integer = isolated};
  place at = {.platform = p};
  TS_TRY(try_open_with(&apart, 1, &at.client));
  ts_status status = set(&at, graphs[i]);
  if (!status) status = run_at(&at, r);
  leave(&at);
  p->close(at.client);
  return status;
}

START_TEST(as_on_the_host)
{
  int program = _i % PROGRAMS;
  for (int m = 0; m < 4; m++) {
    record got = {.late = _i / PROGRAMS};
    direction->set_manner(manners[m % 3]);
    ck_assert_ok(try_one(program, &got, m == 3));
    check_record(&got, &expected[program]);
    wait_until_live(0);
  }
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

/* An answer that is an error ends the run at that call, and leaves nothing. */
START_TEST(each_call_may_be_refused)
{
  direction->set_manner(TEST_MIXED);
  for (int i = 0; i < PROGRAMS; i++) {
    for (uint32_t n = 1; n <= expected[i].calls; n++) {
      record got = {.late = n % 2, .refused_at = n};
      ck_assert_error(try_one(i, &got, false), TS_CANCELLED, "its process has died");
      ck_assert_uint_eq(got.calls, n);
      wait_until_live(0);
    }
  }
}
END_TEST

START_TEST(each_operation_may_fail)
{
  static const pj_function functions[] = {PJ_COMPILE, PJ_FROM_HOST, PJ_BUFFER_TO_HOST, PJ_EXECUTE};
  for (int i = 0; i < PROGRAMS * 4 * 2; i++) {
    int step = i / 8 == 1 ? 5 : 1; /* the second program has many operations */
    pj_function f = functions[i % 4];
    void (*fail_at)(pj_function, int64_t) = i % 8 < 4 ? direction->fail_after : direction->fail_event_after;
    if (f == PJ_COMPILE) fail_at = direction->fail_after;
    direction->set_manner(manners[i % 3]);
    for (int64_t n = 0;; n += step) {
      record got = {.calls = 0};
      fail_at(f, n);
      ts_status status = try_one(i / 8, &got, false);
      fail_at(f, -1);
      wait_until_live(0);
      if (!status) break;
      ck_assert_int_eq(ts_status_code(status), TS_UNAVAILABLE);
      ts_status_free(status);
      ck_assert_int_lt(n, 1000);
    }
  }
  ck_assert_int_eq(direction->wrong(), 0);
}
END_TEST

START_TEST(without_memory)
{
  direction->set_manner(TEST_INLINE);
  for (int64_t n = 1; n < 100000; n += _i == 1 ? 23 : 3) {
    record got = {.calls = 0};
    ts_alloc_fail_after(n, false);
    ts_status status = try_one(_i, &got, false);
    bool failed = ts_alloc_failures() > 0;
    ts_alloc_fail_after(0, false);
    ts_status_free(status);
    wait_until_live(0);
    if (!failed) break;
  }
}
END_TEST

/* What is donated is released, and nothing else. */
START_TEST(donated_arguments)
{
  static const int32_t first;
  for (uint64_t donated = 0; donated < 4; donated++) {
    end e = {0};
    record got = {.calls = 0};
    place at = {.platform = p};
    void *results[RESULTS] = {0};
    ck_assert_ok(try_open(&at.client));
    ck_assert_ok(set(&at, graphs[0]));
    ts_run_request request = {.program = at.program.program,
                              .client = at.client,
                              .devices = &first,
                              .device_count = 1,
                              .args = at.args,
                              .arg_count = 2,
                              .donated = TS_BITS(donated),
                              .results = results,
                              .call = receive,
                              .call_arg = &got};
    p->run(&request, DONE(&e));
    ck_assert_ok(wait_for(&e));
    for (int i = 0; i < 2; i++)
      if (donated >> i & 1) at.args[i] = NULL;
    for (int i = 0; i < RESULTS; i++) p->release_memory(results[i]);
    leave(&at);
    p->close(at.client);
    wait_until_live(0);
  }
}
END_TEST

START_TEST(explained)
{
  static const char text[] = "The program is split at its callbacks into 2 parts, which the plugin runs:\n\n"
                             "  part 1: %0, %1 -> %2\n"
                             "  callback 0: %2, %1 -> %3\n"
                             "  callback 1: -> %4\n"
                             "  callback 2: %0 -> %5\n"
                             "  part 2: %3, %4 -> %6\n";
  ts_text out = {0};
  place at = {.platform = p};
  ck_assert_ok(try_open(&at.client));
  ck_assert_ok(compile_at(&at, graphs[0]));
  ck_assert_ok(p->explain(at.program.program, &out));
  ck_assert_str_eq(out.data, text);
  ts_text_deinit(&out);
  ck_assert(at.program.calls_back);
  end e = {0};
  p->save(at.program.program, &out, DONE(&e));
  ck_assert_error(wait_for(&e), TS_UNIMPLEMENTED, "calls back is not saved");
  leave(&at);
  p->close(at.client);
  wait_until_live(0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pjrt_split");
  TCase *cases = tcase_create("pjrt_split");
  tcase_set_timeout(cases, 120);
  tcase_add_checked_fixture(cases, set_up, tear_down);
  tcase_add_loop_test(cases, as_on_the_host, 0, 2 * PROGRAMS);
  tcase_add_test(cases, each_call_may_be_refused);
  tcase_add_test(cases, each_operation_may_fail);
  tcase_add_loop_test(cases, without_memory, 0, PROGRAMS);
  tcase_add_test(cases, donated_arguments);
  tcase_add_test(cases, explained);
  suite_add_tcase(suite, cases);
  return testing_run(suite);
}
