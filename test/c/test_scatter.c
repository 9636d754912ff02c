/* indexed_add and indexed_put against the interpreter: every type of elements and of indices, axes anywhere, equal
 * indices and such that are out of bounds; the same bits on any number of threads; donated targets; cancelling. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "lesser_isa.h"
#include "random_graph.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

static const char *const types[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};
static const char *const index_types[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"};
enum { TYPES = sizeof types / sizeof *types, INDEX_TYPES = sizeof index_types / sizeof *index_types };

typedef struct scatter_case {
  const char *target, *axes, *updates; /* the updates' dims behind the number of rows */
  int columns;
} scatter_case;

static const scatter_case cases[] = {
    {"9", "0", "", 1},         {"7,5", "0", ",5", 1},         {"7,5", "1", ",7", 1},
    {"7,5", "0,1", "", 2},     {"4,5,6", "1", ",4,6", 1},     {"4,5,6", "0,2", ",5", 2},
    {"4,5,6", "2", ",4,5", 1}, {"3,2,5,4", "1,2", ",3,4", 2}, {"0", "0", "", 1},
    {"3,0", "0", ",0", 1},     {"0,3", "1", ",0", 1},         {"2,300", "0", ",300", 1},
    {"1,1", "0,1", "", 2},     {"6,1000", "0", ",1000", 1},   {"2,3,2,3,2", "1,3", ",2,2,2", 2},
    {"7,2", "0", ",2", 1},     {"7,3", "0", ",3", 1},         {"7,4", "0", ",4", 1},
    {"7,8", "0", ",8", 1},     {"9,31", "0", ",31", 1},       {"1,127", "0", ",127", 1},
    {"3,135", "0", ",135", 1}, {"60,255", "0", ",255", 1},
};
enum { CASES = sizeof cases / sizeof *cases };

static ts_graph *make_graph(const char *op, const char *type, const char *index, const scatter_case *c, int rows) {
  char text[512];
  ts_graph *graph;
  int length = snprintf(text, sizeof text,
                        "graph @main(%%0: %s[%s], %%1: %s[%d,%d], %%2: %s[%d%s]) -> (%s[%s]) {\n"
                        "  %%3 = %s %%0, %%1, %%2 {axes = [%s]} : %s[%s]\n  return %%3\n}\n",
                        type, c->target, index, rows, c->columns, type, rows, c->updates, type, c->target, op, c->axes,
                        type, c->target);
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  return graph;
}

static void set_index(ts_buffer *indices, int64_t i, int64_t number) {
  ts_scalar index = ts_scalar_from_s64(indices->dtype, number);
  ts_scalar_store(indices->dtype, index, (char *)indices->data + (size_t)i * ts_dtype_size(indices->dtype));
}

/* Small indices, some negative or too large, so that most rows are updated, and many of them again. */
static void set_indices(ts_buffer *indices) {
  for (int64_t i = 0; i < ts_shape_elements(&indices->shape); i++) set_index(indices, i, i * 7 % 11 - 2);
}

/* The same, in runs of 8 and 3 equal indices. */
static void set_runs(ts_buffer *indices) {
  int64_t number = 0;
  for (int64_t i = 0; i < ts_shape_elements(&indices->shape); i++) {
    if (i % 11 == 0 || i % 11 == 8) number = i % 13 - 2;
    set_index(indices, i, number);
  }
}

static void check(const char *op, const char *type, const char *index, const scatter_case *c, int rows) {
  ts_graph *graph = make_graph(op, type, index, c, rows);
  ts_buffer **args, *expected, *got;
  ts_executable *exe;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args((uint64_t)rows * 31 + (uint64_t)(c - cases), graph, ts_pool_default(), &args));
  if (rows % 2) set_indices(args[1]);
  if (rows > 1 && rows % 4 == 0) set_runs(args[1]);
  ck_assert_ok(ts_ref_run(graph, args, 3, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 3, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s %s by %s, case %d, %d rows: %s", op, type, index,
                (int)(c - cases), rows, message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_random_args_free(args, 3);
  ts_graph_destroy(graph);
}

static const char *op_of(int i) { return i % 2 ? "indexed_put" : "indexed_add"; }

START_TEST(every_type_and_shape)
{
  static const int rows[] = {0, 1, 12, 13, 301, 400};
  for (int t = 0; t < TYPES; t++)
    for (int c = 0; c < CASES; c++)
      for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        check(op_of(_i), types[t], index_types[(t + c) % INDEX_TYPES], &cases[c], rows[r]);
}
END_TEST

START_TEST(every_type_of_indices)
{
  for (int i = 0; i < INDEX_TYPES; i++)
    for (int c = 0; c < CASES; c++) check(op_of(_i), "f32", index_types[i], &cases[c], 77);
}
END_TEST

/* Calls the check with a graph and its arguments. */
static void check_with(const char *op, const scatter_case *c, int rows, void (*set)(ts_buffer *),
                       void (*routine_check)(const ts_graph *, ts_buffer *const *)) {
  ts_graph *graph = make_graph(op, "f32", "s32", c, rows);
  ts_buffer **args;
  ck_assert_ok(ts_random_args(5, graph, ts_pool_default(), &args));
  set(args[1]);
  routine_check(graph, args);
  ts_random_args_free(args, 3);
  ts_graph_destroy(graph);
}

START_TEST(the_same_bits_on_any_number_of_threads)
{
  static const scatter_case large[] = {{"100", "0", "", 1},
                                       {"9,1000", "0", ",1000", 1},
                                       {"7,3,64", "1", ",7,64", 1},
                                       {"1001,70", "0", ",70", 1},
                                       {"10,7", "0,1", "", 2}};
  static const int rows[] = {100000, 300, 500, 900, 40000};
  for (int op = 0; op < 2; op++) {
    check_with(op_of(op), &large[_i], rows[_i], set_indices, check_routine_threads);
    check_with(op_of(op), &large[_i], rows[_i], set_runs, check_routine_threads);
  }
}
END_TEST

START_TEST(a_cancelled_run_ends)
{ check_with("indexed_add", &cases[1], 40, set_indices, check_routine_cancelled); }
END_TEST

/* Rules that know a splat must not take an update for a read. */
START_TEST(known_operands)
{
  static const char text[] =
      "graph @main(%0: s32[3,1]) -> (s64[3], s64[3]) {\n"
      "  %1 = constant -1 : s64[3]\n  %2 = iota {axis = 0} : s64[3]\n  %3 = literal \"000000000700000002000000\" : "
      "s32[3,1]\n"
      "  %4 = indexed_put %1, %3, %2 {axes = [0]} : s64[3]\n  %5 = indexed_add %1, %0, %2 {axes = [0]} : s64[3]\n"
      "  return %4, %5\n}\n";
  ts_executable *exe = test_compile(text);
  ts_buffer *indices = TENSOR(TS_S32, SHAPE(3, 1), 1, 2, 2), *out[2];
  ck_assert_ok(ts_executable_run(exe, &indices, 1, NULL, out));
  test_equal(out[0], VECTOR(TS_S64, 0, -1, 2));
  test_equal(out[1], VECTOR(TS_S64, -1, -1, 2));
  ts_buffer_release(indices);
  ts_executable_release(exe);
}
END_TEST

/* Of zeros in that shape. */
static void check_ends(const char *op, const scatter_case *c, ts_shape shape, ts_buffer *indices, ts_buffer *expected) {
  ts_graph *graph = make_graph(op, "f32", ts_dtype_name(indices->dtype), c, 5);
  ts_buffer *updates = VECTOR(TS_F32, 10, 20, 30, 40, 50), *target = TENSOR(TS_F32, shape, 0, 0, 0, 0);
  ts_buffer *args[] = {target, indices, updates}, *meant, *got;
  ts_executable *exe;
  ck_assert_ok(ts_ref_run(graph, args, 3, ts_pool_default(), &meant));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 3, NULL, &got));
  ts_buffer_retain(expected);
  test_equal(meant, expected);
  test_equal(got, expected);
  for (int i = 0; i < 3; i++) ts_buffer_release(args[i]);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}

/* Rows at the ends of the widest types of indices are dropped, also where another index of the row is in bounds. */
START_TEST(indices_at_the_ends_of_their_type)
{
  static const ts_dtype wide[] = {TS_S64, TS_U64};
  static const scatter_case lines = {"4", "0", "", 1}, squares = {"2,2", "0,1", "", 2};
  const int64_t least = INT64_MIN, most = INT64_MAX; /* least is 2^63 in u64, -1 is UINT64_MAX */
  for (int i = 0; i < 2; i++) {
    check_ends(op_of(_i), &lines, SHAPE(4), INTEGERS(wide[i], SHAPE(5, 1), least, most, 3, -1, least + 1),
               VECTOR(TS_F32, 0, 0, 0, 30));
    check_ends(op_of(_i), &squares, SHAPE(2, 2),
               INTEGERS(wide[i], SHAPE(5, 2), least, 0, 1, most, 1, 0, -1, -1, 0, least + 1),
               TENSOR(TS_F32, SHAPE(2, 2), 0, 0, 30, 0));
  }
}
END_TEST

/* The result may take the target's memory, and no other operand's. */
START_TEST(a_donated_target_is_updated_in_place)
{
  ts_graph *graph = make_graph("indexed_add", "f32", "s32", &(scatter_case){"5", "0", "", 1}, 5);
  ts_executable *exe;
  ts_buffer *out;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ts_buffer *target = VECTOR(TS_F32, 1, 2, 3, 4, 5), *updates = VECTOR(TS_F32, 10, 20, 30, 40, 50);
  ts_buffer *indices = TENSOR(TS_S32, SHAPE(5, 1), 4, 0, 4, 5, -1);
  const void *memory = target->data;
  ck_assert_ok(ts_executable_run(exe, (ts_buffer *[]){target, indices, updates}, 3,
                                 &(ts_run_options){.donated = TS_BITS(7)}, &out));
  ck_assert_ptr_eq(out->data, memory);
  test_equal(out, VECTOR(TS_F32, 21, 2, 3, 4, 45));
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

/* Long rows: put once into new memory, or in place if the target is donated. */
START_TEST(long_rows_are_put_into_a_donated_target)
{
  ts_graph *graph = make_graph("indexed_put", "f32", "s32", &(scatter_case){"1001,70", "0", ",70", 1}, 900);
  ts_executable *exe;
  ts_buffer **args, *expected, *got;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args));
  set_indices(args[1]);
  ck_assert_ok(ts_executable_run(exe, args, 3, NULL, &expected));
  const void *memory = args[0]->data;
  ck_assert_ok(ts_executable_run(exe, args, 3, &(ts_run_options){.donated = TS_BITS(1)}, &got));
  args[0] = got;
  ck_assert_ptr_eq(got->data, memory);
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s", message);
  ts_random_args_free(args, 3);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("scatter");
  TCase *scatter = tcase_create("scatter");
  tcase_set_timeout(scatter, 60);
  tcase_add_loop_test(scatter, every_type_and_shape, 0, 2);
  tcase_add_loop_test(scatter, every_type_of_indices, 0, 2);
  tcase_add_loop_test(scatter, the_same_bits_on_any_number_of_threads, 0, 5);
  tcase_add_test(scatter, known_operands);
  tcase_add_loop_test(scatter, indices_at_the_ends_of_their_type, 0, 2);
  tcase_add_test(scatter, a_cancelled_run_ends);
  tcase_add_test(scatter, a_donated_target_is_updated_in_place);
  tcase_add_test(scatter, long_rows_are_put_into_a_donated_target);
  test_add_lesser_isas(scatter);
  suite_add_tcase(suite, scatter);
  return testing_run(suite);
}
