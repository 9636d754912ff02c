/* Collectives: the result of each partition (kernel/ref/ref_partitions.c), and refused programs. */
#include "kernel/ref/ref.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

/* A program of one op on a vector of each partition: 10 p + 0, 1, 2, ... for partition p. Prints the results. */
static void check_op(const char *mesh, int elements, const char *op, const char *type, const char *expected) {
  char text[512], got[512] = "";
  ts_buffer *args[8], *results[8] = {NULL};
  snprintf(text, sizeof text, "graph @t mesh %s (%%0: f32[%d]) -> (%s) {\n  %%1 = %s : %s\n  return %%1\n}\n", mesh,
           elements, type, op, type);
  ts_graph *graph = parse(text);
  int count = ts_mesh_partitions(&graph->mesh);
  for (int p = 0; p < count; p++) {
    double numbers[8];
    for (int i = 0; i < elements; i++) numbers[i] = 10 * p + i;
    args[p] = test_tensor(TS_F32, SHAPE(elements), numbers, (size_t)elements);
  }
  ck_assert_ok(ts_ref_run_partitions(graph, args, 1, ts_pool_default(), results));
  for (int p = 0; p < count; p++) {
    size_t used = strlen(got);
    snprintf(got + used, sizeof got - used, p ? " |" : "");
    for (int64_t i = 0; i < ts_shape_elements(&results[p]->shape); i++) {
      used = strlen(got);
      snprintf(got + used, sizeof got - used, " %g", (double)((float *)results[p]->data)[i]);
    }
    ts_buffer_release(args[p]);
    ts_buffer_release(results[p]);
  }
  ck_assert_str_eq(got, expected);
  ts_graph_destroy(graph);
}

START_TEST(each_collective)
{
  check_op("[2]", 2, "all_reduce_sum %0 {axes = [0]}", "f32[2]", " 10 12 | 10 12");
  check_op("[2]", 2, "all_reduce_product %0 {axes = [0]}", "f32[2]", " 0 11 | 0 11");
  check_op("[3]", 1, "all_reduce_min %0 {axes = [0]}", "f32[1]", " 0 | 0 | 0");
  check_op("[3]", 1, "all_reduce_max %0 {axes = [0]}", "f32[1]", " 20 | 20 | 20");
  check_op("[2]", 1, "all_reduce_and %0 {axes = [0]}", "f32[1]", " 0 | 0");
  check_op("[2]", 1, "all_reduce_or %0 {axes = [0]}", "f32[1]", " 10 | 10");
  check_op("[2]", 2, "all_gather %0 {axes = [0], dim = 0}", "f32[4]", " 0 1 10 11 | 0 1 10 11");
  check_op("[2]", 4, "reduce_scatter %0 {axes = [0], dim = 0}", "f32[2]", " 10 12 | 14 16");
  check_op("[2]", 4, "all_to_all %0 {axes = [0], split = 0, concat = 0}", "f32[4]", " 0 1 10 11 | 2 3 12 13");
  check_op("[3]", 1, "collective_permute %0 {axes = [0], sources = [0,1], targets = [1,2]}", "f32[1]", " 0 | 0 | 10");
  check_op("[3]", 1, "collective_broadcast %0 {axes = [0], root = 2}", "f32[1]", " 20 | 20 | 20");
  check_op("[3]", 1, "barrier %0 {axes = [0]}", "f32[1]", " 0 | 10 | 20");
}
END_TEST

START_TEST(groups_of_axes)
{
  check_op("[2,2]", 1, "all_reduce_sum %0 {axes = [0]}", "f32[1]", " 20 | 40 | 20 | 40");
  check_op("[2,2]", 1, "all_reduce_sum %0 {axes = [1]}", "f32[1]", " 10 | 10 | 50 | 50");
  check_op("[2,2]", 1, "all_reduce_sum %0 {axes = [0,1]}", "f32[1]", " 60 | 60 | 60 | 60");
  check_op("[2,2]", 1, "all_gather %0 {axes = [1,0], dim = 0}", "f32[4]",
           " 0 20 10 30 | 0 20 10 30 | 0 20 10 30 | 0 20 10 30");
  check_op("[2,2]", 1, "all_reduce_sum %0 {axes = []}", "f32[1]", " 0 | 10 | 20 | 30");
}
END_TEST

/* ((a + b) + (c + d)) + e: any other order differs. */
START_TEST(sums_are_a_balanced_tree)
{
  static const double numbers[5] = {1e8, 3, 4, -1e8, 2};
  ts_graph *graph = parse("graph @t mesh [5] (%0: f32[]) -> (f32[]) {\n"
                          "  %1 = all_reduce_sum %0 {axes = [0]} : f32[]\n  return %1\n}\n");
  ts_buffer *args[5], *results[5];
  for (int p = 0; p < 5; p++) args[p] = SCALAR(TS_F32, numbers[p]);
  ck_assert_ok(ts_ref_run_partitions(graph, args, 1, ts_pool_default(), results));
  float expected = ((1e8f + 3.0f) + (4.0f + -1e8f)) + 2.0f;
  for (int p = 0; p < 5; p++) {
    ck_assert_float_eq(*(float *)results[p]->data, expected);
    ts_buffer_release(results[p]);
    ts_buffer_release(args[p]);
  }
  ts_graph_destroy(graph);
}
END_TEST

static const char loop_text[] = /* each partition counts the sum of coordinates up to a limit */
    "graph @t mesh [2,2] coordinates (%l: s32[], %0: s32[2]) -> (s32[]) {\n"
    "  %1 = reduce_sum %0 {axes = [0]} : s32[]\n"
    "  %z = constant 0 : s32[]\n"
    "  %2, %3, %4 = while %z, %1, %l {\n"
    "    condition(%5: s32[], %6: s32[], %7: s32[]) {\n      %8 = less %5, %7 : u8[]\n      return %8\n    }\n"
    "    body(%9: s32[], %10: s32[], %11: s32[]) {\n"
    "      %12 = all_reduce_sum %10 {axes = [0,1]} : s32[]\n      %13 = add %9, %12 : s32[]\n"
    "      return %13, %10, %11\n    }\n"
    "  } : s32[], s32[], s32[]\n  return %2\n}\n";

static ts_status run_loop(const double *limits, ts_buffer **results) {
  ts_graph *graph;
  ts_buffer *args[4];
  TS_TRY(ts_graph_parse(loop_text, strlen(loop_text), &graph));
  for (int p = 0; p < 4; p++) args[p] = SCALAR(TS_S32, limits[p]);
  ts_status status = ts_ref_run_partitions(graph, args, 1, ts_pool_default(), results);
  for (int p = 0; p < 4; p++) ts_buffer_release(args[p]);
  ts_graph_destroy(graph);
  return status;
}

START_TEST(collectives_in_loops)
{
  ts_buffer *results[4] = {NULL};
  ck_assert_ok(run_loop((const double[]){10, 10, 10, 10}, results));
  for (int p = 0; p < 4; p++) {
    ck_assert_int_eq(*(int32_t *)results[p]->data, 12); /* 0 + 1 + 1 + 2, three times */
    ts_buffer_release(results[p]);
  }
  ck_assert_error(run_loop((const double[]){4, 5, 4, 4}, results), TS_FAILED_PRECONDITION,
                  "the predicate differs between partitions");
}
END_TEST

static void try_loop(void) {
  static ts_buffer *results[4];
  ts_graph *graph = NULL;
  ts_buffer *args[4];
  for (int p = 0; p < 4; p++) results[p] = args[p] = NULL;
  ts_status status = ts_graph_parse(loop_text, strlen(loop_text), &graph);
  for (int p = 0; p < 4 && !status; p++) {
    status = ts_buffer_create(ts_pool_default(), TS_S32, &ts_shape_scalar, &args[p]);
    if (!status) *(int32_t *)args[p]->data = 5;
  }
  if (!status) status = ts_ref_run_partitions(graph, args, 1, ts_pool_default(), results);
  for (int p = 0; p < 4; p++) {
    ts_buffer_release(args[p]);
    if (!status) ts_buffer_release(results[p]);
  }
  ts_status_free(status);
  ts_graph_destroy(graph);
}

START_TEST(failing_allocations_leak_nothing)
{
  try_loop();
  CK_FAIL_EACH_ALLOCATION(try_loop());
}
END_TEST

/* ---- text ---- */

START_TEST(wrong_texts)
{
  static const struct {
    const char *head, *message;
  } cases[] = {
      {"mesh [] (%0: f32[4]) -> (f32[4])", "expected at least one axis"},
      {"mesh [0] (%0: f32[4]) -> (f32[4])", "size 0, expected at least 1"},
      {"mesh [-2] (%0: f32[4]) -> (f32[4])", "size 0, expected at least 1"},
      {"mesh [9999999999] (%0: f32[4]) -> (f32[4])", "expected at least 1"},
      {"mesh [256,129] (%0: f32[4]) -> (f32[4])", "more than 32768 devices"},
      {"mesh [1,1,1,1,1,1,1,1,1] (%0: f32[4]) -> (f32[4])", "expected at most 8 axes"},
      {"mesh [\"a\"=2,\"a\"=2] (%0: f32[4]) -> (f32[4])", "two axes of the mesh have the name 'a'"},
      {"mesh [\"a\"=2,2] (%0: f32[4]) -> (f32[4])", "some axes of the mesh have names"},
      {"mesh [\"\"=2] (%0: f32[4]) -> (f32[4])", "has 0 bytes, expected 1 to 63"},
      {"mesh [\"\\00\"=2] (%0: f32[4]) -> (f32[4])", "expected two hexadecimal digits"},
      {"mesh @m [\"a\"2] (%0: f32[4]) -> (f32[4])", "expected '='"},
      {"mesh \"m\" [2] (%0: f32[4]) -> (f32[4])", "expected the mesh's name"},
      {"(%0: f32[4] sharded [[0]]) -> (f32[4])", "mesh axis 0, expected one of [0, 0)"},
      {"mesh [2] (%0: f32[4] sharded [[1]]) -> (f32[4])", "mesh axis 1, expected one of [0, 1)"},
      {"mesh [2,2] (%0: f32[4] sharded [[0,0]]) -> (f32[4])", "mesh axis 0 twice"},
      {"mesh [3] (%0: f32[4] sharded [[0]]) -> (f32[4])", "dim 0 of size 4 is cut into 3 parts"},
      {"mesh [2] (%0: f32[4] sharded [[0],[]]) -> (f32[4])", "expected ']'"},
      {"mesh [2] (%0: f32[4] sharded []) -> (f32[4])", "expected '['"},
      {"mesh [2] coordinates (%0: f32[4]) -> (f32[4])", "the last parameter is no s32[1]"},
      {"mesh [2] (%0: f32[4]) -> (f32[4] sharded [[0,1,2,3,4,5,6,7,8]])", "expected at most 8 axes"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    ts_graph *graph;
    snprintf(text, sizeof text, "graph @t %s {\n  return %%0\n}\n", cases[i].head);
    ts_status status = ts_graph_parse(text, strlen(text), &graph);
    if (!status) {
      status = ts_graph_verify(graph);
      ts_graph_destroy(graph);
    }
    ck_assert_msg(status != NULL, "accepted: %s", text);
    ck_assert_msg(strstr(ts_status_message(status), cases[i].message), "%s: %s", text, ts_status_message(status));
    ts_status_free(status);
  }
}
END_TEST

/* A permutation without pairs has no target, also on a mesh of one partition. */
START_TEST(one_partition_without_pairs)
{
  static const char text[] =
      "graph @t mesh [1] (%0: c64[2]) -> (c64[2], c64[2]) {\n"
      "  %1 = collective_permute %0 {axes = [0], sources = [], targets = []} : c64[2]\n"
      "  %2 = collective_permute %0 {axes = [0], sources = [0], targets = [0]} : c64[2]\n  return %1, %2\n}\n";
  static const ts_compile_options options[] = {
      {0}, {.no_simplify = true}, {.no_fusion = true}, {.no_simplify = true, .no_fusion = true}};
  ts_graph *graph = parse(text);
  ts_buffer *arg = VECTOR(TS_C64, 1, 2), *results[2];
  ck_assert_ok(ts_ref_run(graph, &arg, 1, ts_pool_default(), results));
  test_equal(results[0], VECTOR(TS_C64, 0, 0));
  test_equal(results[1], VECTOR(TS_C64, 1, 2));
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    ts_executable *exe;
    ck_assert_ok(ts_executable_create(graph, &options[i], &exe));
    ck_assert_ok(ts_executable_run(exe, &arg, 1, NULL, results));
    test_equal(results[0], VECTOR(TS_C64, 0, 0));
    test_equal(results[1], VECTOR(TS_C64, 1, 2));
    ts_executable_release(exe);
  }
  ts_buffer_release(arg);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(one_partition_alone)
{
  static const char text[] = "graph @t mesh %s (%%0: f32[2]) -> (f32[2]) {\n"
                             "  %%1 = all_reduce_sum %%0 {axes = [0]} : f32[2]\n  return %%1\n}\n";
  char of_two[256], of_one[256];
  snprintf(of_two, sizeof of_two, text, "[2]");
  snprintf(of_one, sizeof of_one, text, "[1]");
  ts_graph *graph = parse(of_two);
  ts_buffer *arg = VECTOR(TS_F32, 1, 2), *result;
  ts_executable *exe;
  ck_assert_error(ts_ref_run(graph, &arg, 1, ts_pool_default(), &result), TS_FAILED_PRECONDITION,
                  "all_reduce_sum: the program has 2 partitions, which only run together");
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_error(ts_executable_run(exe, &arg, 1, NULL, &result), TS_FAILED_PRECONDITION,
                  "all_reduce_sum: the program has 2 partitions, which only run together");
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  exe = test_compile(of_one);
  ck_assert_ok(ts_executable_run(exe, &arg, 1, NULL, &result));
  test_equal(result, arg);
  ts_executable_release(exe);
}
END_TEST

int main(void) {
  Suite *all = suite_create("partitions");
  TCase *cases = tcase_create("partitions");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, each_collective);
  tcase_add_test(cases, groups_of_axes);
  tcase_add_test(cases, sums_are_a_balanced_tree);
  tcase_add_test(cases, collectives_in_loops);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, wrong_texts);
  tcase_add_test(cases, one_partition_without_pairs);
  tcase_add_test(cases, one_partition_alone);
  suite_add_tcase(all, cases);
  return testing_run(all);
}
