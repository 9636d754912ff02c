/* Lowering: launches give what the reference interpreter gives, with the kernels that are expected. */
#include "compare.h"
#include "launch.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include "kernel/ref.h"

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

/* What the last op of a graph lowers to: "row[4,1024]" and so on, a launch after the other. */
static void expect(const char *text, const char *launches) {
  static const char *kinds[] = {"map", "tile", "row", "col"};
  ts_graph *graph = parse(text);
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_arena arena;
  ts_lowered lowered;
  ts_text out = {0};
  char *string;
  ts_arena_init(&arena);
  ck_assert_ok(ts_lower_op(graph, root->ops.data[root->ops.count - 1], &arena, NULL, &lowered));
  for (int32_t i = 0; i < lowered.launch_count; i++) {
    const ts_launch *launch = &lowered.launches[i];
    ck_assert_ok(ts_kernel_check(&launch->desc));
    ts_text_format(&out, "%s%s[", i ? " " : "", kinds[launch->desc.kind]);
    for (int32_t l = 0; l < launch->desc.rank; l++) ts_text_format(&out, l ? ",%d" : "%d", (int)launch->args[l]);
    ts_text_append(&out, "]");
  }
  ts_text_append(&out, "");
  ck_assert_ok(ts_text_finish(&out, &string));
  ck_assert_str_eq(string, launches);
  ts_free(string);
  ts_arena_deinit(&arena);
  compare_runs(graph, 1);
  ts_graph_destroy(graph);
}

#define GRAPH(params, results, body) "graph @main(" params ") -> (" results ") {\n" body "}\n"

START_TEST(elementwise)
{
  expect(GRAPH("%0: f32[2,3], %1: f32[2,3]", "f32[2,3]", "%2 = add %0, %1 : f32[2,3]\nreturn %2\n"), "map[6]");
  expect(GRAPH("%0: f32[], %1: f32[]", "f32[]", "%2 = add %0, %1 : f32[]\nreturn %2\n"), "map[1]");
  expect(GRAPH("%0: f32[0,3]", "f32[0,3]", "%1 = negate %0 : f32[0,3]\nreturn %1\n"), "");
  expect(GRAPH("%0: f32[7]", "s8[7]", "%1 = convert %0 : s8[7]\nreturn %1\n"), "map[7]");
}
END_TEST

START_TEST(shapes)
{
  expect(GRAPH("%0: f32[3]", "f32[2,3]", "%1 = broadcast %0 {shape = [2,3], axes = [1]} : f32[2,3]\nreturn %1\n"),
         "map[2,3]");
  expect(GRAPH("%0: f32[2,3,3]", "f32[3,2,3]", "%1 = transpose %0 {axes = [2,0,1]} : f32[3,2,3]\nreturn %1\n"),
         "map[3,6]");
  expect(GRAPH("%0: f32[64,96]", "f32[96,64]", "%1 = transpose %0 {axes = [1,0]} : f32[96,64]\nreturn %1\n"),
         "tile[96,64]");
  expect(GRAPH("%0: f32[32,4,64]", "f32[64,4,32]", "%1 = transpose %0 {axes = [2,1,0]} : f32[64,4,32]\nreturn %1\n"),
         "tile[4,64,32]");
  expect(GRAPH("%0: f32[2,3,4]", "f32[2,3,4]", "%1 = reverse %0 {axes = [1,2]} : f32[2,3,4]\nreturn %1\n"),
         "map[2,12]");
  expect(GRAPH("%0: f32[5,8]", "f32[2,4]",
               "%1 = slice %0 {start = [1,0], limit = [5,8], stride = [2,2]} : f32[2,4]\nreturn %1\n"),
         "map[2,4]");
  expect(GRAPH("%0: f32[4,2], %1: f32[4,3]", "f32[4,5]", "%2 = concatenate %0, %1 {axis = 1} : f32[4,5]\nreturn %2\n"),
         "map[4,2] map[4,3]");
  expect(GRAPH("%0: f32[2,3], %1: f32[]", "f32[1,7]",
               "%2 = pad %0, %1 {low = [-1,2], high = [0,0], interior = [0,1]} : f32[1,7]\nreturn %2\n"),
         "map[7] map[3]");
  expect(GRAPH("", "s32[3,2]", "%0 = iota {axis = -1} : s32[3,2]\nreturn %0\n"), "map[6]");
  expect(GRAPH("", "f16[2,3,4]", "%0 = eye : f16[2,3,4]\nreturn %0\n"), "map[2,3,4]");
}
END_TEST

START_TEST(indexed)
{
  expect(GRAPH("%0: f32[5,4], %1: s32[3,2]", "f32[3,2,4]", "%2 = take %0, %1 {axis = 0} : f32[3,2,4]\nreturn %2\n"),
         "map[6,4]");
  expect(
      GRAPH("%0: f32[5,4], %1: u64[5,3]", "f32[5,3]", "%2 = take_along_axis %0, %1 {axis = 1} : f32[5,3]\nreturn %2\n"),
      "map[5,3]");
  expect(GRAPH("%0: f32[5,4], %1: s32[], %2: s8[]", "f32[2,3]",
               "%3 = dynamic_slice %0, %1, %2 {shape = [2,3]} : f32[2,3]\nreturn %3\n"),
         "map[2,3]");
  expect(GRAPH("%0: f32[5,4], %1: f32[2,4], %2: u64[], %3: s32[]", "f32[5,4]",
               "%4 = put_slice %0, %1, %2, %3 : f32[5,4]\nreturn %4\n"),
         "map[20] map[8]");
}
END_TEST

START_TEST(reductions)
{
  expect(GRAPH("%0: f32[4,100]", "f32[4]", "%1 = reduce_sum %0 {axes = [1]} : f32[4]\nreturn %1\n"), "row[4,100]");
  expect(GRAPH("%0: f32[100,4]", "f32[4]", "%1 = reduce_sum %0 {axes = [0]} : f32[4]\nreturn %1\n"), "col[100,4]");
  expect(GRAPH("%0: bf16[3,10,4]", "bf16[3,4]", "%1 = reduce_sum %0 {axes = [1]} : bf16[3,4]\nreturn %1\n"),
         "col[3,10,4]");
  expect(GRAPH("%0: f32[3,10,4]", "f32[10]", "%1 = reduce_sum %0 {axes = [0,2]} : f32[10]\nreturn %1\n"),
         "map[10,3,4] row[10,12]");
  expect(GRAPH("%0: f32[3,4]", "f32[]", "%1 = reduce_sum %0 {axes = [0,1]} : f32[]\nreturn %1\n"), "row[12]");
  expect(GRAPH("%0: f32[3,1]", "f32[3]", "%1 = reduce_sum %0 {axes = [1]} : f32[3]\nreturn %1\n"), "row[3,1]");
  expect(GRAPH("%0: f32[3,0]", "f32[3]", "%1 = reduce_product %0 {axes = [1]} : f32[3]\nreturn %1\n"), "map[3]");
  expect(GRAPH("%0: f16[3,5]", "s32[3]", "%1 = argmax %0 {axis = 1, high = true} : s32[3]\nreturn %1\n"), "row[3,5]");
  expect(GRAPH("%0: f32[3,5]", "s64[]", "%1 = argmin %0 {axis = -1, high = false} : s64[]\nreturn %1\n"), "row[15]");
}
END_TEST

START_TEST(long_rows)
{
  expect(GRAPH("%0: f32[40000]", "f32[]", "%1 = reduce_sum %0 {axes = [0]} : f32[]\nreturn %1\n"),
         "row[2,16384] row[7232] row[3]");
  expect(GRAPH("%0: f16[2,32768]", "f16[2]", "%1 = reduce_sum %0 {axes = [1]} : f16[2]\nreturn %1\n"),
         "row[4,16384] row[2,2]");
  expect(GRAPH("%0: bf16[20000,3]", "bf16[3]", "%1 = reduce_product %0 {axes = [0]} : bf16[3]\nreturn %1\n"),
         "col[16384,3] col[3616,3] row[3,2]");
  expect(GRAPH("%0: s8[17000]", "u8[]", "%1 = reduce_any %0 {axes = [0]} : u8[]\nreturn %1\n"),
         "row[16384] row[616] row[2]");
}
END_TEST

#define SIBLINGS(from, to, axes)                                                                      \
  GRAPH("%0: " from, to ", " to ", " to,                                                              \
        "%1, %2, %3 = fusion %0 {kind = 0} {\nbody(%4: " from ") {\n%5 = multiply %4, %4 : " from     \
        "\n%6 = reduce_sum %5 {axes = " axes "} : " to "\n%7 = reduce_sum %4 {axes = " axes "} : " to \
        "\n%8 = reduce_max %4 {axes = " axes "} : " to "\n%9 = subtract %8, %6 : " to                 \
        "\nreturn %9, %6, %7\n}\n} : " to ", " to ", " to "\nreturn %1, %2, %3\n")

START_TEST(siblings)
{
  expect(SIBLINGS("f32[4,100]", "f32[4]", "[1]"), "row[4,100]");
  expect(SIBLINGS("f64[100,300]", "f64[300]", "[0]"), "col[100,300]");
  expect(SIBLINGS("bf16[40000]", "bf16[]", "[0]"), "row[2,16384] row[7232] row[3]");
  expect(SIBLINGS("f32[20000,3]", "f32[3]", "[0]"), "col[16384,3] col[3616,3] row[3,2]");
}
END_TEST

START_TEST(fusions)
{
  expect(GRAPH("%0: f32[4,6]", "f32[4,6]",
               "%1 = fusion %0 {kind = 0} {\nbody(%2: f32[4,6]) {\n"
               "%3 = reduce_max %2 {axes = [1]} : f32[4]\n%4 = broadcast %3 {shape = [4,6], axes = [0]} : f32[4,6]\n"
               "%5 = subtract %2, %4 : f32[4,6]\n%6 = reduce_sum %5 {axes = [1]} : f32[4]\n"
               "%7 = broadcast %6 {shape = [4,6], axes = [0]} : f32[4,6]\n%8 = divide %5, %7 : f32[4,6]\nreturn "
               "%8\n}\n} : f32[4,6]\n"
               "return %1\n"),
         "row[4,6]");
  expect(GRAPH("%0: f32[6,2]", "f32[2,2,3]",
               "%1 = fusion %0 {kind = 0} {\nbody(%2: f32[6,2]) {\n"
               "%3 = reshape %2 {shape = [2,3,2]} : f32[2,3,2]\n%4 = transpose %3 {axes = [2,0,1]} : f32[2,2,3]\n"
               "%5 = negate %4 : f32[2,2,3]\nreturn %5\n}\n} : f32[2,2,3]\nreturn %1\n"),
         "map[2,6]");
  expect(GRAPH("%0: f32[6,4]", "f32[3,8]",
               "%1 = fusion %0 {kind = 0} {\nbody(%2: f32[6,4]) {\n%3 = transpose %2 {axes = [1,0]} : f32[4,6]\n"
               "%4 = reshape %3 {shape = [8,3]} : f32[8,3]\n%5 = transpose %4 {axes = [1,0]} : f32[3,8]\n"
               "%6 = negate %5 : f32[3,8]\nreturn %6\n}\n} : f32[3,8]\nreturn %1\n"),
         "map[12,2]");
  /* What needs a reduction of the same row reads that again: not by columns. */
  expect(GRAPH("%0: f32[5,40]", "f32[40]",
               "%1 = fusion %0 {kind = 0} {\nbody(%2: f32[5,40]) {\n%3 = transpose %2 {axes = [1,0]} : f32[40,5]\n"
               "%4 = reduce_sum %3 {axes = [1]} : f32[40]\n%5 = broadcast %4 {shape = [40,5], axes = [0]} : f32[40,5]\n"
               "%6 = subtract %3, %5 : f32[40,5]\n%7 = reduce_product %6 {axes = [1]} : f32[40]\nreturn %7\n}\n"
               "} : f32[40]\nreturn %1\n"),
         "row[40,5]");
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
  ts_graph *graph = parse(GRAPH("%0: f16[2,20000], %1: f32[3,4], %2: f32[2,4], %3: s32[]", "f16[2]",
                                "%4 = reduce_sum %0 {axes = [1]} : f16[2]\n%5 = put_slice %1, %2, %3, %3 : f32[3,4]\n"
                                "%6 = concatenate %1, %2 {axis = 0} : f32[5,4]\nreturn %4\n"));
  CK_FAIL_EACH_ALLOCATION(lower_all(graph));
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("lower");
  TCase *t = tcase_create("ops");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, elementwise);
  tcase_add_test(t, shapes);
  tcase_add_test(t, indexed);
  tcase_add_test(t, reductions);
  tcase_add_test(t, long_rows);
  tcase_add_test(t, siblings);
  tcase_add_test(t, fusions);
  tcase_add_test(t, failing_allocations);
  tcase_add_loop_test(t, random_graphs, 0, 60);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
