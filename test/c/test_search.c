/* argmax and argmin of rows that are searched by blocks: the result equals a walk over the row, for all places of
 * equals, NaNs and signed zeros. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "tensor/reduce_tree.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

typedef struct search {
  int64_t dims[3]; /* zeros at the end are no dims */
  int32_t axis;
} search;

/* Whole blocks and some more; rows, columns, and both sides of an axis. */
static const search searches[] = {{{4 * TS_REDUCE_BLOCK + 1}, 0},      {{5 * TS_REDUCE_BLOCK}, -1},
                                  {{3, 4 * TS_REDUCE_BLOCK + 77}, 1},  {{2, 6 * TS_REDUCE_BLOCK}, -1},
                                  {{TS_REDUCE_BLOCK + 5, 7}, 0},       {{2 * TS_REDUCE_BLOCK, 3}, 0},
                                  {{2, 2 * TS_REDUCE_BLOCK + 9, 5}, 1}};
static const ts_dtype types[] = {TS_F32, TS_BF16, TS_F64, TS_S8, TS_U64};
enum { SEARCHES = sizeof searches / sizeof *searches, TYPES = sizeof types / sizeof *types };

typedef enum filling { EQUALS, FEW_BEST, NANS, ZEROS, MANY_BEST, INFINITIES, FILLINGS } filling;

static double number(filling how, ts_dtype type, uint64_t random) {
  bool special = random % 30011 == 0;
  switch (how) {
  case EQUALS: return 7;
  case FEW_BEST: return special ? (random >> 32 & 1 ? 99 : -99) : (double)(random % 90);
  case NANS: return special && ts_dtype_is_float(type) ? (double)NAN : (double)(random % 100);
  /* nothing replaces these: NaNs, or the ends of an integer type */
  case MANY_BEST:
    return random % 1009             ? (double)(random % 100)
           : ts_dtype_is_float(type) ? (double)NAN
           : random & 1 << 20        ? 1e30
                                     : -1e30;
  case INFINITIES:
    if (!ts_dtype_is_float(type)) return (double)(random % 3);
    return random % 7 ? -3 : random % 2 ? (double)INFINITY : -(double)INFINITY;
  default: return random % 2 ? -0.0 : 0.0;
  }
}

static ts_buffer *fill(ts_dtype type, const ts_shape *shape, filling how) {
  ts_buffer *b;
  uint64_t state = (uint64_t)how + 1;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, shape, &b));
  for (int64_t i = 0; i < ts_shape_elements(shape); i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    ts_scalar_store(type, ts_scalar_from_f64(type, number(how, type, state >> 13)),
                    (char *)b->data + i * (int64_t)ts_dtype_size(type));
  }
  return b;
}

static ts_shape shape_of(const search *s) {
  ts_shape shape = {0};
  while (shape.rank < 3 && s->dims[shape.rank] > 0) shape.dims[shape.rank] = s->dims[shape.rank], shape.rank++;
  return shape;
}

/* First and last of the largest and least, with a value and a sum: one kernel, where that can be. */
static ts_graph *make_graph(ts_dtype type, const search *s, ts_dtype index) {
  ts_graph *graph = test_graph();
  ts_shape shape = shape_of(s);
  ts_value_id x = test_add_param(graph, TS_ROOT, type, shape), results[6];
  x = OP(graph, TS_ROOT, TS_OP_MAX, NULL, x, x);
  for (int i = 0; i < 4; i++) {
    ts_attrs attrs = {.arg = {.axis = s->axis, .high = i % 2, .dtype = index}};
    results[i] = OP(graph, TS_ROOT, i < 2 ? TS_OP_ARGMAX : TS_OP_ARGMIN, &attrs, x);
  }
  ts_attrs axes = {0};
  for (int32_t d = 0; d < shape.rank; d++)
    if (s->axis < 0 || s->axis == d) axes.axes.dims[axes.axes.rank++] = d;
  results[4] = OP(graph, TS_ROOT, TS_OP_REDUCE_MAX, &axes, x);
  results[5] = OP(graph, TS_ROOT, TS_OP_REDUCE_SUM, &axes, x);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, results, 6));
  return graph;
}

static void check(const ts_graph *graph, ts_buffer *x, ts_buffer *const *expected, const ts_compile_options *options) {
  ts_buffer *got[6];
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, options, &exe));
  ck_assert_ok(ts_executable_run(exe, &x, 1, NULL, got));
  for (int i = 0; i < 6; i++) {
    char message[TS_COMPARE_TEXT];
    ck_assert_msg(ts_compare_buffers(got[i], expected[i], 0, message), "result %d of %s: %s", i,
                  TS_SHAPE_STR(x->dtype, &x->shape), message);
    ts_buffer_release(got[i]);
  }
  ts_executable_release(exe);
}

START_TEST(blocks_find_what_one_walk_finds)
{
  static const ts_compile_options modes[] = {{0}, {.no_fusion = true}, {.general_kernels = true}};
  static const ts_dtype indices[] = {TS_S64, TS_S32, TS_U8};
  ts_dtype type = types[_i % TYPES];
  const search *s = &searches[_i / TYPES];
  ts_shape shape = shape_of(s);
  for (int how = 0; how < FILLINGS; how++) {
    if (TEST_IS_SANITIZED && how != _i % FILLINGS) continue;
    ts_graph *graph = make_graph(type, s, indices[how % 3]);
    ts_buffer *x = fill(type, &shape, (filling)how);
    ts_buffer *expected[6];
    ck_assert_ok(ts_ref_run(graph, &x, 1, ts_pool_default(), expected));
    for (int m = 0; m < 3; m++)
      if (testing_takes(m + _i / TYPES, 3)) check(graph, x, expected, &modes[m]);
    for (int i = 0; i < 6; i++) ts_buffer_release(expected[i]);
    ts_buffer_release(x);
    ts_graph_destroy(graph);
  }
}
END_TEST

/* Rows of which the part with the best is looked for first: the last row has it late, and the value may be asked for.
 */
static const int64_t lengths[] = {1024, 1025, 1151, 2047, 4099, 8192, 9001, TS_REDUCE_BLOCK, 4 * TS_REDUCE_BLOCK + 33};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static ts_graph *make_place_graph(ts_dtype type, int64_t length, bool largest, bool has_value) {
  ts_graph *graph = test_graph();
  ts_value_id x = test_add_param(graph, TS_ROOT, type, (ts_shape){.rank = 2, .dims = {3, length}}), results[2];
  const ts_attrs attrs = {.arg = {.axis = 1, .dtype = TS_S64}}, axes = {.axes = {.rank = 1, .dims = {1}}};
  results[0] = OP(graph, TS_ROOT, largest ? TS_OP_ARGMAX : TS_OP_ARGMIN, &attrs, x);
  if (has_value) results[1] = OP(graph, TS_ROOT, largest ? TS_OP_REDUCE_MAX : TS_OP_REDUCE_MIN, &axes, x);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, results, has_value ? 2 : 1));
  return graph;
}

static void check_place(const ts_graph *graph, int count, ts_buffer *x, const char *about) {
  ts_buffer *got[2], *expected[2];
  ts_executable *exe;
  ck_assert_ok(ts_ref_run(graph, &x, 1, ts_pool_default(), expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, &x, 1, NULL, got));
  for (int i = 0; i < count; i++) {
    char message[TS_COMPARE_TEXT];
    ck_assert_msg(ts_compare_buffers(got[i], expected[i], 0, message), "%s, result %d of %s: %s", about, i,
                  TS_SHAPE_STR(x->dtype, &x->shape), message);
    ts_buffer_release(got[i]);
    ts_buffer_release(expected[i]);
  }
  ts_executable_release(exe);
}

START_TEST(the_part_with_the_best_is_found)
{
  static const ts_dtype of[] = {TS_F32, TS_F64, TS_F16, TS_BF16, TS_S8, TS_U8, TS_S16, TS_S32, TS_U32, TS_S64, TS_U64};
  const int64_t length = lengths[_i];
  const ts_shape shape = {.rank = 2, .dims = {3, length}};
  for (size_t t = 0; t < sizeof of / sizeof *of; t++) {
    for (int how = 0; how < FILLINGS; how++) {
      if (TEST_IS_SANITIZED && (how + (int)t) % FILLINGS != _i % FILLINGS) continue;
      ts_buffer *x = fill(of[t], &shape, (filling)how);
      const int64_t size = (int64_t)ts_dtype_size(of[t]);
      const double late = how == NANS ? (double)NAN : how % 2 ? 101 : -101;
      ts_scalar_store(of[t], ts_scalar_from_f64(of[t], late), (char *)x->data + (3 * length - 1 - how * 70) * size);
      for (int mode = 0; mode < 4; mode++) {
        char about[64];
        snprintf(about, sizeof(about), "filling %d, mode %d", how, mode);
        ts_graph *graph = make_place_graph(of[t], length, mode % 2, mode / 2);
        check_place(graph, 1 + mode / 2, x, about);
        ts_graph_destroy(graph);
      }
      ts_buffer_release(x);
    }
  }
}
END_TEST

/* Of one row of 8 GB, which takes a second, and of two. */
START_TEST(long_rows_are_many_tasks)
{
  static const char *const texts[] = {
      "graph @main(%0: f32[2147483648]) -> (s64[]) {\n  %1 = argmax %0 {axis = 0, high = false} : s64[]\n"
      "  return %1\n}\n",
      "graph @main(%0: f32[2,1000000000], %1: f32[2]) -> (f32[2,1000000000]) {\n"
      "  %2 = broadcast %1 {shape = [2,1000000000], axes = [0]} : f32[2,1000000000]\n"
      "  %3 = add %0, %2 : f32[2,1000000000]\n  return %3\n}\n"};
  ts_text explained = {0};
  ts_executable *exe = test_compile(texts[_i]);
  ck_assert_ok(ts_executable_explain(exe, &explained));
  const char *at = strstr(explained.data, " points, ");
  int tasks = 0;
  ck_assert_msg(at && sscanf(at, " points, %d tasks", &tasks) == 1 && tasks >= 100, "%s", explained.data);
  ts_text_deinit(&explained);
  ts_executable_release(exe);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("search");
  TCase *t = tcase_create("search");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, blocks_find_what_one_walk_finds, 0, SEARCHES * TYPES);
  tcase_add_loop_test(t, the_part_with_the_best_is_found, 0, LENGTHS);
  tcase_add_loop_test(t, long_rows_are_many_tasks, 0, 2);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
