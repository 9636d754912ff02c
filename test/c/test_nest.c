/* Loop nests: clamped starts, and failing allocations. Golden files (test/golden/loops) have the loops, reads, writes
 * and scalar ops of graphs, and graphs that are no loop nest. */
#include "pass/nest.h"

#include "testing.h"
#include "tool/opt_loops.h"

/* A start is clamped, for any value and type. */
START_TEST(starts_are_clamped)
{
  ck_assert_int_eq(ts_dynamic_clamp(TS_S32, (ts_scalar){.s64 = -7}, 5), 0);
  ck_assert_int_eq(ts_dynamic_clamp(TS_S64, (ts_scalar){.s64 = INT64_MAX}, 5), 5);
  ck_assert_int_eq(ts_dynamic_clamp(TS_U64, (ts_scalar){.s64 = -1}, 5), 5);
  ck_assert_int_eq(ts_dynamic_clamp(TS_U8, (ts_scalar){.s64 = 3}, 5), 3);
}
END_TEST

static void build(const ts_graph *graph) {
  ts_text text = {0};
  ts_status status = ts_opt_print_loops(graph, &text);
  if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ts_status_free(status);
  ts_text_deinit(&text);
}

START_TEST(every_allocation_may_fail)
{
  static const char text[] =
      "graph @main(%0: f32[4,7], %1: s32[]) -> (f32[4]) {\n"
      "  %2 = dynamic_slice %0, %1, %1 {shape = [4,5]} : f32[4,5]\n  %3 = reduce_max %2 {axes = [1]} : f32[4]\n"
      "  return %3\n}\n";
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, sizeof text - 1, &graph));
  CK_FAIL_EACH_ALLOCATION(build(graph));
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("nest");
  TCase *tc = tcase_create("nest");
  tcase_add_test(tc, starts_are_clamped);
  tcase_add_test(tc, every_allocation_may_fail);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
