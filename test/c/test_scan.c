/* Cumulative ops against the interpreter: every type, axis and direction, empty and odd shapes. */
#include "exec/executable.h"
#include "exec/pool.h"
#include "kernel/scan.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include "compare.h"
#include "kernel/ref.h"

static const char *const types[] = {"s8",  "s16", "s32",  "s64", "u8",  "u16", "u32",
                                    "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
enum { COMPLEX = 12, SUMS = 2 }; /* types from COMPLEX on have the ops before SUMS */
static const char *const ops[] = {"cumulative_sum", "cumulative_product", "cumulative_min", "cumulative_max"};
static const char *const shapes[] = {"0", "1", "37", "1000", "0,3", "3,0", "5,7", "64,33", "3,4,5", "2,1,9"};

static int rank_of(const char *shape) {
  int rank = 1;
  for (; *shape; shape++) rank += *shape == ',';
  return rank;
}

static void check_scan(const char *op, const char *type, const char *shape, int axis, bool reverse) {
  char text[256];
  int length = snprintf(text, sizeof text,
                        "graph @main(%%0: %s[%s]) -> (%s[%s]) {\n  %%1 = %s %%0 {axis = %d, reverse = %s} : %s[%s]\n"
                        "  return %%1\n}\n",
                        type, shape, type, shape, op, axis, reverse ? "true" : "false", type, shape);
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer **args, *expected, *got;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  ck_assert_ok(ts_random_args((uint64_t)length + (uint64_t)axis, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(graph, args, 1, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 1, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s%s", text, message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_random_args_free(args, 1);
  ts_graph_destroy(graph);
}

START_TEST(test_scans)
{
  for (size_t t = 0; t < (_i < SUMS ? sizeof types / sizeof *types : COMPLEX); t++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int axis = 0; axis < rank_of(shapes[s]); axis++)
        for (int reverse = 0; reverse < 2; reverse++) check_scan(ops[_i], types[t], shapes[s], axis, reverse);
}
END_TEST

/* One line, many lines, many columns. */
START_TEST(test_cancelled)
{
  static const ts_shape cancelled_shapes[] = {
      {.rank = 1, .dims = {100}}, {.rank = 2, .dims = {40, 50}}, {.rank = 2, .dims = {50, 40}}};
  const _Atomic bool cancel = true;
  float in[2000] = {1}, out[2000] = {0};
  for (int i = 0; i < 3; i++) {
    ts_scan scan = {TS_OP_CUMULATIVE_SUM, TS_F32, cancelled_shapes[i], i == 1 ? 1 : 0, false};
    ck_assert_error(ts_scan_run(&scan, in, out, ts_pool_parallel(0), &cancel), TS_CANCELLED, "cumulative_sum");
  }
  for (int i = 100; i < 2000; i++) ck_assert(out[i] == 0); /* no task began a line */
}
END_TEST

int main(void) {
  Suite *suite = suite_create("scan");
  TCase *scans = tcase_create("scans");
  tcase_set_timeout(scans, 60);
  tcase_add_loop_test(scans, test_scans, 0, (int)(sizeof ops / sizeof *ops));
  tcase_add_test(scans, test_cancelled);
  suite_add_tcase(suite, scans);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failures = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failures == 0 ? 0 : 1;
}
