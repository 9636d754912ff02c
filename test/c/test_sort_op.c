/* sort, argsort and top_k as ops: results by hand, and programs against the interpreter for every type, axis, direction
 * and result type; cancelled runs. test_sort.c tests how lines are sorted, and test/golden/exec donated operands. */
#include "exec/executable.h"
#include "exec/pool.h"
#include "kernel/ref/ref.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

#include <math.h>

static const char *const types[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};
static const char *const index_types[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"};
enum { TYPES = sizeof types / sizeof *types, INDEX_TYPES = sizeof index_types / sizeof *index_types };

/* ---- meaning */

static ts_buffer *sorted(bool descending, ts_buffer *x) {
  const ts_attrs attrs = {.sort = {.axis = x->shape.rank - 1, .descending = descending}};
  return RUN(TS_OP_SORT, &attrs, x);
}

static ts_buffer *order(int axis, bool descending, ts_dtype type, ts_buffer *x) {
  const ts_attrs attrs = {.argsort = {.axis = axis, .descending = descending, .dtype = type}};
  return RUN(TS_OP_ARGSORT, &attrs, x);
}

START_TEST(meaning)
{
  test_equal(sorted(false, VECTOR(TS_F32, 2, NAN, -INFINITY, 0.5)), VECTOR(TS_F32, -INFINITY, 0.5, 2, NAN));
  test_equal(sorted(true, VECTOR(TS_BF16, 2, NAN, -INFINITY, 0.5)), VECTOR(TS_BF16, NAN, 2, 0.5, -INFINITY));
  test_equal(sorted(false, VECTOR(TS_F64, 0.0, -0.0, -1)), VECTOR(TS_F64, -1, 0.0, -0.0));
  test_equal(sorted(true, VECTOR(TS_F16, -0.0, 0.0, 1)), VECTOR(TS_F16, 1, -0.0, 0.0));
  test_equal(sorted(false, INTEGERS(TS_U64, SHAPE(3), -1, 5, INT64_MIN)), INTEGERS(TS_U64, SHAPE(3), 5, INT64_MIN, -1));
  test_equal(sorted(false, INTEGERS(TS_S64, SHAPE(3), -1, 5, INT64_MIN)), INTEGERS(TS_S64, SHAPE(3), INT64_MIN, -1, 5));
  test_equal(order(0, false, TS_S32, VECTOR(TS_F32, 1, NAN, 1, NAN, 0)), VECTOR(TS_S32, 4, 0, 2, 1, 3));
  test_equal(order(0, true, TS_U8, VECTOR(TS_F32, 1, NAN, 1, NAN, 0)), VECTOR(TS_U8, 1, 3, 0, 2, 4));
  test_equal(order(0, false, TS_S64, TENSOR(TS_S8, SHAPE(2, 3), 3, 1, 2, 2, 1, 4)),
             TENSOR(TS_S64, SHAPE(2, 3), 1, 0, 0, 0, 1, 1));
  test_equal(order(1, false, TS_S64, TENSOR(TS_S8, SHAPE(2, 0))), TENSOR(TS_S64, SHAPE(2, 0)));
}
END_TEST

/* A type that is too small for the last positions: they wrap. */
START_TEST(positions_wrap)
{
  enum { N = 300 };
  double falling[N], expected[N];
  for (int i = 0; i < N; i++) {
    falling[i] = -i;
    expected[i] = (N - 1 - i) % 256;
  }
  ts_buffer *x = test_vector(TS_F32, falling, N), *y = test_vector(TS_U8, expected, N);
  test_equal(order(0, false, TS_U8, x), y);
}
END_TEST

/* ---- compiled */

static ts_graph *parse(const char *type, const char *index, const char *dims, int axis, bool descending) {
  char text[512];
  ts_graph *graph;
  int length = snprintf(text, sizeof text,
                        "graph @main(%%0: %s[%s]) -> (%s[%s], %s[%s]) {\n"
                        "  %%1 = sort %%0 {axis = %d, descending = %s} : %s[%s]\n"
                        "  %%2 = argsort %%0 {axis = %d, descending = %s} : %s[%s]\n  return %%1, %%2\n}\n",
                        type, dims, type, dims, index, dims, axis, descending ? "true" : "false", type, dims, axis,
                        descending ? "true" : "false", index, dims);
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  return graph;
}

/* Equal to the bit, NaNs' too: ts_compare_buffers takes any two NaNs for the same. */
static void expect_bits(ts_buffer *got, ts_buffer *expected, const char *type, const char *dims, int axis) {
  bool equal = got->bytes == expected->bytes && memcmp(got->data, expected->data, (size_t)got->bytes) == 0;
  if (!equal) ck_abort_msg("%s[%s], axis %d: differs from the interpreter", type, dims, axis);
  ts_buffer_release(got);
  ts_buffer_release(expected);
}

static void check_args(ts_graph *graph, ts_buffer **args, const char *type, const char *dims, int axis) {
  ts_buffer *expected[2], *got[2];
  ts_executable *exe;
  ck_assert_ok(ts_ref_run(graph, args, 1, ts_pool_default(), expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 1, NULL, got));
  for (int i = 0; i < 2; i++) expect_bits(got[i], expected[i], type, dims, axis);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}

START_TEST(every_type_and_axis)
{
  static const struct {
    const char *dims;
    int rank;
  } shapes[] = {{"0", 1},     {"1", 1},      {"37", 1},    {"5000", 1},     {"3,0", 2},
                {"40,30", 2}, {"2,300", 2},  {"300,2", 2}, {"4,3,50", 3},   {"1,70000", 2},
                {"1,1,1", 3}, {"2,1,33", 3}, {"0,4,2", 3}, {"2,2,2,2,9", 5}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int axis = 0; axis < shapes[s].rank; axis++) {
      const char *index = index_types[(s + (size_t)axis) % INDEX_TYPES];
      ts_graph *graph = parse(types[_i], index, shapes[s].dims, axis, (s + (size_t)axis) % 3 == 0);
      ts_buffer **args;
      ck_assert_ok(ts_random_args(s + 100, graph, ts_pool_default(), &args));
      check_args(graph, args, types[_i], shapes[s].dims, axis);
      ts_random_args_free(args, 1);
    }
}
END_TEST

START_TEST(top_k_of_every_type)
{
  static const struct {
    const char *dims, *kept;
    int k;
  } shapes[] = {{"0", "0", 0},
                {"1", "1", 1},
                {"9", "0", 0},
                {"5000", "10", 10},
                {"5000", "5000", 5000},
                {"3,0", "3,0", 0},
                {"40,30", "40,30", 30},
                {"40,30", "40,1", 1},
                {"0,4", "0,2", 2},
                {"2,300", "2,77", 77},
                {"2,1,70000", "2,1,9", 9},
                {"50,3,6", "50,3,2", 2}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    char text[512];
    ts_graph *graph;
    ts_buffer **args;
    const char *type = types[_i], *kept = shapes[s].kept;
    int length = snprintf(text, sizeof text,
                          "graph @main(%%0: %s[%s]) -> (%s[%s], s32[%s]) {\n"
                          "  %%1, %%2 = top_k %%0 {k = %d} : %s[%s], s32[%s]\n  return %%1, %%2\n}\n",
                          type, shapes[s].dims, type, kept, kept, shapes[s].k, type, kept, kept);
    ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
    ck_assert_ok(ts_random_args(s + 300, graph, ts_pool_default(), &args));
    check_args(graph, args, type, shapes[s].dims, shapes[s].k);
    ts_random_args_free(args, 1);
  }
}
END_TEST

/* Every bit pattern of the half types, twice over. */
START_TEST(all_half_values)
{
  for (int direction = 0; direction < 2; direction++) {
    const char *type = _i ? "bf16" : "f16";
    ts_graph *graph = parse(type, "u32", "131072", 0, direction);
    ts_buffer *x;
    const ts_shape shape = SHAPE(131072);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), _i ? TS_BF16 : TS_F16, &shape, &x));
    for (uint32_t i = 0; i < 131072; i++) ((uint16_t *)x->data)[i] = (uint16_t)(i * 40503);
    check_args(graph, &x, type, "131072", 0);
    ts_buffer_release(x);
  }
}
END_TEST

/* The positions of a sort undo it. */
START_TEST(in_the_midst_of_kernels)
{
  ts_executable *exe = test_compile("graph @main(%0: f32[50,7]) -> (f32[50,7]) {\n  %1 = negate %0 : f32[50,7]\n"
                                    "  %2 = argsort %1 {axis = 0, descending = false} : s32[50,7]\n"
                                    "  %3 = argsort %2 {axis = 0, descending = false} : s64[50,7]\n"
                                    "  %4 = sort %1 {axis = 0, descending = false} : f32[50,7]\n"
                                    "  %5 = take_along_axis %4, %3 {axis = 0} : f32[50,7]\n"
                                    "  %6 = negate %5 : f32[50,7]\n  return %6\n}\n");
  ts_buffer **args, *out;
  ts_graph *graph = parse("f32", "s32", "50,7", 0, false); /* for an argument */
  ck_assert_ok(ts_random_args(9, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_executable_run(exe, args, 1, NULL, &out));
  expect_bits(out, args[0], "f32", "50,7", 0);
  ts_free(args);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sort op");
  TCase *tests = tcase_create("sort op");
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, meaning);
  tcase_add_test(tests, positions_wrap);
  testing_add_many(tests, every_type_and_axis, TYPES);
  testing_add_many(tests, top_k_of_every_type, TYPES);
  tcase_add_loop_test(tests, all_half_values, 0, 2);
  tcase_add_test(tests, in_the_midst_of_kernels);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
