/* Passes keep what programs mean, and give valid graphs; fusion makes the kernels that it is there for. */
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

/* How many ops the program has after fusion, constants not counted. */
static int count_kernels(const char *text) {
  ts_graph *graph = parse(text), *after;
  ts_pass_options options = {.verify = true};
  int count = 0;
  ck_assert_ok(ts_pipeline_run(graph, &options, &after));
  const ts_region *root = ts_graph_region(after, TS_ROOT);
  for (size_t i = 0; i < root->ops.count; i++) {
    ts_opcode code = ts_graph_op(after, root->ops.data[i])->code;
    count += code != TS_OP_CONSTANT && code != TS_OP_RESHAPE;
  }
  compare_graphs(graph, after, 1, "pipeline");
  if (getenv("TEST_DUMP")) dump(after);
  ts_graph_destroy(after);
  ts_graph_destroy(graph);
  return count;
}

START_TEST(softmax_is_one_kernel)
{
  ck_assert_int_eq(count_kernels("graph @main(%0: f32[3,5]) -> (f32[3,5]) {\n"
                                 "%1 = reduce_max %0 {axes = [1]} : f32[3]\n"
                                 "%2 = reshape %1 {shape = [3,1]} : f32[3,1]\n"
                                 "%3 = broadcast %2 {shape = [3,5], axes = [0,1]} : f32[3,5]\n"
                                 "%4 = subtract %0, %3 : f32[3,5]\n"
                                 "%5 = exp %4 : f32[3,5]\n"
                                 "%6 = reduce_sum %5 {axes = [1]} : f32[3]\n"
                                 "%7 = reshape %6 {shape = [3,1]} : f32[3,1]\n"
                                 "%8 = broadcast %7 {shape = [3,5], axes = [0,1]} : f32[3,5]\n"
                                 "%9 = divide %5, %8 : f32[3,5]\n"
                                 "return %9\n}\n"),
                   1);
}
END_TEST

START_TEST(layer_norm_is_one_kernel)
{
  ck_assert_int_eq(count_kernels("graph @main(%0: f32[3,8], %1: f32[8], %2: f32[8]) -> (f32[3,8]) {\n"
                                 "%3 = reduce_sum %0 {axes = [1]} : f32[3]\n"
                                 "%4 = constant 8.0 : f32[3]\n"
                                 "%5 = divide %3, %4 : f32[3]\n"
                                 "%6 = broadcast %5 {shape = [3,8], axes = [0]} : f32[3,8]\n"
                                 "%7 = subtract %0, %6 : f32[3,8]\n"
                                 "%8 = multiply %7, %7 : f32[3,8]\n"
                                 "%9 = reduce_sum %8 {axes = [1]} : f32[3]\n"
                                 "%10 = divide %9, %4 : f32[3]\n"
                                 "%11 = constant 1e-05 : f32[3]\n"
                                 "%12 = add %10, %11 : f32[3]\n"
                                 "%13 = sqrt %12 : f32[3]\n"
                                 "%14 = broadcast %13 {shape = [3,8], axes = [0]} : f32[3,8]\n"
                                 "%15 = divide %7, %14 : f32[3,8]\n"
                                 "%16 = broadcast %1 {shape = [3,8], axes = [1]} : f32[3,8]\n"
                                 "%17 = multiply %15, %16 : f32[3,8]\n"
                                 "%18 = broadcast %2 {shape = [3,8], axes = [1]} : f32[3,8]\n"
                                 "%19 = add %17, %18 : f32[3,8]\n"
                                 "return %19\n}\n"),
                   1);
}
END_TEST

START_TEST(adam_is_one_kernel)
{
  ck_assert_int_eq(
      count_kernels("graph @main(%0: f32[9], %1: f32[9], %2: f32[9], %3: f32[9]) -> (f32[9], f32[9], f32[9]) {\n"
                    "%4 = constant 0.9 : f32[9]\n%5 = constant 0.1 : f32[9]\n"
                    "%6 = multiply %1, %4 : f32[9]\n%7 = multiply %3, %5 : f32[9]\n"
                    "%8 = add %6, %7 : f32[9]\n"
                    "%9 = multiply %3, %3 : f32[9]\n%10 = multiply %9, %5 : f32[9]\n"
                    "%11 = multiply %2, %4 : f32[9]\n%12 = add %10, %11 : f32[9]\n"
                    "%13 = sqrt %12 : f32[9]\n%14 = divide %8, %13 : f32[9]\n"
                    "%15 = multiply %14, %5 : f32[9]\n%16 = subtract %0, %15 : f32[9]\n"
                    "return %16, %8, %12\n}\n"),
      1);
}
END_TEST

/* relu(x@w + b) for a dot and for its own gradient: one kernel after the dot, no second of the sum. */
START_TEST(dense_layer)
{
  ck_assert_int_eq(
      count_kernels(
          "graph @main(%0: f32[4,3], %1: f32[3,5], %2: f32[5], %3: f32[4,5]) -> (f32[4,5], f32[4,5], f32[5]) {\n"
          "%4 = dot_general %0, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
          "f32[4,5]\n"
          "%5 = broadcast %2 {shape = [4,5], axes = [1]} : f32[4,5]\n"
          "%6 = add %4, %5 : f32[4,5]\n%7 = constant 0.0 : f32[4,5]\n"
          "%8 = max %6, %7 : f32[4,5]\n%9 = greater %6, %7 : u8[4,5]\n"
          "%10 = select %9, %3, %7 : f32[4,5]\n%11 = reduce_sum %10 {axes = [0]} : f32[5]\n"
          "return %8, %10, %11\n}\n"),
      4);
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
    /* an op that goes; one that becomes another one; one that is dead */
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
  tcase_add_test(t, softmax_is_one_kernel);
  tcase_add_test(t, layer_norm_is_one_kernel);
  tcase_add_test(t, adam_is_one_kernel);
  tcase_add_test(t, dense_layer);
  tcase_add_test(t, fusions_that_do_the_same_share_a_region);
  tcase_add_loop_test(t, graphs_that_are_normal_go_on_as_they_are, 0,
                      (int)(sizeof(nothing_to_do) / sizeof(*nothing_to_do)));
  tcase_add_test(t, failing_allocations);
  tcase_add_loop_test(t, random_graphs, 0, 100);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
