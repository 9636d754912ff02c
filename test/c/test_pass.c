/* Passes keep what programs mean, and give valid graphs; equal fusions share a region. The kernels that fusion makes
 * are in test/golden/pass. */
#include "compare.h"
#include "kernel/ref.h"
#include "launch.h"
#include "pass/pass.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

enum { MAX_RESULTS = 64 };

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static void dump(const ts_graph *graph) {
  ts_text text = {0};
  if (ts_status_consume_ok(ts_graph_print(graph, &text))) fprintf(stderr, "%s", text.data);
  ts_text_deinit(&text);
}

static bool has_general_reduce(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++) {
    if (graph->ops.data[i].code == TS_OP_REDUCE) return true;
  }
  return false;
}

/* Results of two graphs on the same arguments are the same, bit for bit. */
static void compare_graphs(const ts_graph *before, const ts_graph *after, uint64_t seed, const char *what) {
  const ts_region *root = ts_graph_region(before, TS_ROOT);
  ts_buffer **args, *expected[MAX_RESULTS], *actual[MAX_RESULTS];
  char message[TS_COMPARE_TEXT];
  ck_assert_uint_le(root->results.count, MAX_RESULTS);
  ck_assert_ok(ts_random_args(seed, before, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(before, args, root->params.count, ts_pool_default(), expected));
  if (has_general_reduce(after))
    ck_assert_ok(ts_ref_run(after, args, root->params.count, ts_pool_default(), actual));
  else
    test_run_by_launches(after, args, actual);
  for (size_t i = 0; i < root->results.count; i++) {
    bool equal = ts_compare_buffers(actual[i], expected[i], 0, message);
    if (!equal) dump(before), dump(after);
    ck_assert_msg(equal, "%s, seed %lu, result %zu: %s", what, (unsigned long)seed, i, message);
    ts_buffer_release(actual[i]);
    ts_buffer_release(expected[i]);
  }
  ts_random_args_free(args, root->params.count);
}

static void check_pass(const ts_graph *graph, const ts_pass *pass, uint64_t seed) {
  ts_pass_options options = {0};
  ts_graph *after;
  ck_assert_ok(pass->run(graph, &options, &after));
  ck_assert_ok(ts_graph_verify(after));
  compare_graphs(graph, after, seed, pass->name);
  ts_graph_destroy(after);
}

START_TEST(random_graphs)
{
  ts_random_options small = {.max_elements = 600};
  uint64_t seed = 7000 + (uint64_t)_i;
  ts_graph *graph, *after;
  ts_pass_options options = {.verify = true};
  ck_assert_ok(ts_random_graph(seed, &small, &graph));
  for (const ts_pass *pass = ts_passes; pass->name; pass++) check_pass(graph, pass, seed);
  ck_assert_ok(ts_pipeline_run(graph, &options, &after));
  compare_graphs(graph, after, seed, "pipeline");
  ts_graph_destroy(after);
  ts_graph_destroy(graph);
}
END_TEST

static char *print(const ts_graph *graph) {
  ts_text text = {0};
  char *printed;
  ck_assert_ok(ts_graph_print(graph, &text));
  ck_assert_ok(ts_text_finish(&text, &printed));
  return printed;
}

/* tanh(x * w + b) three times, the last with subtract: two layers are alike, and so are two sums beside them that read
 * one value twice and two values. */
START_TEST(fusions_that_do_the_same_share_a_region)
{
  ts_graph *graph = parse(
      "graph @main(%0: f32[8], %1: f32[8], %2: f32[8]) -> (f32[8], f32[], f32[]) {\n"
      "%3 = add %0, %1 : f32[8]\n%4 = tanh %3 : f32[8]\n%5 = cumulative_sum %4 {axis = 0, reverse = false} : f32[8]\n"
      "%6 = add %5, %2 : f32[8]\n%7 = tanh %6 : f32[8]\n%8 = cumulative_sum %7 {axis = 0, reverse = false} : f32[8]\n"
      "%9 = subtract %8, %2 : f32[8]\n%10 = tanh %9 : f32[8]\n"
      "%11 = cumulative_sum %10 {axis = 0, reverse = false} : f32[8]\n"
      "%12 = multiply %5, %8 : f32[8]\n%13 = reduce_sum %12 {axes = [0]} : f32[]\n"
      "%14 = multiply %11, %11 : f32[8]\n%15 = reduce_sum %14 {axes = [0]} : f32[]\n"
      "return %11, %13, %15\n}\n");
  ts_pass_options options = {.verify = true};
  ts_graph *fused;
  ck_assert_ok(ts_pipeline_run(graph, &options, &fused));
  ck_assert_uint_eq(fused->regions.count, 5);
  size_t fusions = 0;
  for (size_t i = 0; i < fused->ops.count; i++) fusions += fused->ops.data[i].code == TS_OP_FUSION;
  ck_assert_uint_eq(fusions, 5);
  compare_graphs(graph, fused, 1, "shared");
  char *text = print(fused);
  ts_graph *again = parse(text); /* where each has its own */
  char *same = print(again);
  ck_assert_str_eq(text, same);
  ck_assert_uint_eq(again->regions.count, 6);
  ts_free(text);
  ts_free(same);
  ts_graph_destroy(again);
  ts_graph_destroy(fused);
  ts_graph_destroy(graph);
}
END_TEST

/* What the pipeline makes of a graph is what it makes of it when normalize has been there before, whether or not that
 * has something to do. */
static char *run_pipeline(const ts_graph *graph) {
  ts_pass_options options = {.verify = true};
  ts_graph *after;
  ck_assert_ok(ts_pipeline_run(graph, &options, &after));
  char *text = print(after);
  ts_graph_destroy(after);
  return text;
}

static const char *const nothing_to_do[] = {
    "graph @main(%0: f32[8], %1: f32[8]) -> (f32[8]) {\n%2 = add %0, %1 : f32[8]\n%3 = tanh %2 : f32[8]\n"
    "%4 = multiply %3, %2 : f32[8]\nreturn %4\n}\n",
    "graph @main(%0: f32[8]) -> (f32[8]) {\nreturn %0\n}\n",
    /* the same op twice, at the end */
    "graph @main(%0: f32[8]) -> (f32[8], f32[8]) {\n%1 = tanh %0 : f32[8]\n%2 = exp %1 : f32[8]\n"
    "%3 = exp %1 : f32[8]\nreturn %2, %3\n}\n",
    /* an op that is simplified away; one that becomes another op; one that is dead */
    "graph @main(%0: s32[8]) -> (s32[8]) {\n%1 = negate %0 : s32[8]\n%2 = negate %1 : s32[8]\nreturn %2\n}\n",
    "graph @main(%0: f32[2,3]) -> (f32[3,2]) {\n%1 = transpose %0 {axes = [1,0]} : f32[3,2]\n"
    "%2 = transpose %1 {axes = [1,0]} : f32[2,3]\n%3 = transpose %2 {axes = [1,0]} : f32[3,2]\nreturn %3\n}\n",
    "graph @main(%0: f32[8]) -> (f32[8]) {\n%1 = tanh %0 : f32[8]\n%2 = exp %0 : f32[8]\nreturn %1\n}\n",
};

START_TEST(graphs_that_are_normal_go_on_as_they_are)
{
  ts_pass_options options = {0};
  ts_graph *graph = parse(nothing_to_do[_i]), *normal;
  char *before = print(graph);
  ck_assert_ok(ts_pass_normalize(graph, &options, &normal));
  char *expected = run_pipeline(normal), *actual = run_pipeline(graph), *after = print(graph);
  ck_assert_str_eq(actual, expected);
  ck_assert_str_eq(after, before);
  ts_free(before);
  ts_free(expected);
  ts_free(actual);
  ts_free(after);
  ts_graph_destroy(normal);
  ts_graph_destroy(graph);
}
END_TEST

static void fuse_all(const ts_graph *graph) {
  ts_pass_options options = {0};
  ts_graph *after = NULL;
  ts_status_free(ts_pipeline_run(graph, &options, &after));
  ts_graph_destroy(after);
}

START_TEST(failing_allocations)
{
  ts_random_options small = {.steps = 3, .max_elements = 64};
  ts_graph *graph;
  ck_assert_ok(ts_random_graph(7, &small, &graph));
  CK_FAIL_EACH_ALLOCATION(fuse_all(graph));
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("pass");
  TCase *t = tcase_create("passes");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, fusions_that_do_the_same_share_a_region);
  tcase_add_loop_test(t, graphs_that_are_normal_go_on_as_they_are, 0,
                      (int)(sizeof(nothing_to_do) / sizeof(*nothing_to_do)));
  tcase_add_test(t, failing_allocations);
  tcase_add_loop_test(t, random_graphs, 0, 100);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
