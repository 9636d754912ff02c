/* Lowering: launches have the reference interpreter's results, and their addresses are in their tensors. Which kernels
 * an op is lowered to is in test/golden/launches. */
#include "launch.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include "kernel/ref/ref.h"

#include <glob.h>

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static void compare_runs(const ts_graph *graph, uint64_t seed) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_buffer **args, *expected[64], *actual[64];
  char message[TS_COMPARE_TEXT];
  ck_assert_uint_le(root->results.count, 64);
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(graph, args, root->params.count, ts_pool_default(), expected));
  test_run_by_launches(graph, args, actual);
  for (size_t i = 0; i < root->results.count; i++) {
    bool equal = ts_compare_buffers(actual[i], expected[i], 0, message);
    ck_assert_msg(equal, "seed %lu, result %zu: %s", (unsigned long)seed, i, message);
    ts_buffer_release(actual[i]);
    ts_buffer_release(expected[i]);
  }
  ts_random_args_free(args, root->params.count);
}

START_TEST(golden_graphs)
{
  glob_t paths;
  ck_assert_int_eq(glob("test/golden/launches/*.ts", 0, NULL, &paths), 0);
  for (size_t i = 0; i < paths.gl_pathc; i++) {
    char *text = testing_read(paths.gl_pathv[i]);
    ts_graph *graph = parse(text);
    for (uint64_t seed = 1; seed <= 3; seed++) compare_runs(graph, seed);
    ts_graph_destroy(graph);
    free(text);
  }
  globfree(&paths);
}
END_TEST

static bool has_general_reduce(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++) {
    if (graph->ops.data[i].code == TS_OP_REDUCE) return true;
  }
  return false;
}

START_TEST(random_graphs)
{
  ts_random_options options = {.no_control = true, .no_library = true};
  ts_graph *graph;
  uint64_t seed = 1000 + (uint64_t)_i;
  ck_assert_ok(ts_random_graph(seed, &options, &graph));
  if (!has_general_reduce(graph)) compare_runs(graph, seed);
  ts_graph_destroy(graph);
}
END_TEST

static void lower_all(const ts_graph *graph) {
  ts_arena arena;
  ts_lowered lowered;
  ts_arena_init(&arena);
  for (ts_op_id id = 0; id < graph->ops.count; id++) ts_status_free(ts_lower_op(graph, id, &arena, NULL, &lowered));
  ts_arena_deinit(&arena);
}

START_TEST(failing_allocations)
{
  ts_graph *graph = parse("graph @main(%0: f16[2,20000], %1: f32[3,4], %2: f32[2,4], %3: s32[]) -> (f16[2]) {\n"
                          "%4 = reduce_sum %0 {axes = [1]} : f16[2]\n%5 = put_slice %1, %2, %3, %3 : f32[3,4]\n"
                          "%6 = concatenate %1, %2 {axis = 0} : f32[5,4]\nreturn %4\n}\n");
  CK_FAIL_EACH_ALLOCATION(lower_all(graph));
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("lower");
  TCase *t = tcase_create("ops");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, golden_graphs);
  tcase_add_test(t, failing_allocations);
  tcase_add_loop_test(t, random_graphs, 0, 60);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
