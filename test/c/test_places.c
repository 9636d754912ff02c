/* Places in the source: tables of lines and lists of them; the places of steps after all passes, of fusions, of loops
 * step by step and as one function, of partitions; programs that are compiled again; each allocation may fail. */
#include "base/places.h"
#include "exec/steps.h"
#include "shard/shard.h"
#include "tensors.h"
#include "testing.h"

#include <string.h>

static ts_place add(ts_places *places, const char *line) {
  ts_place place;
  ck_assert_ok(ts_places_add(places, line, strlen(line), &place));
  return place;
}

static ts_place join(ts_places *places, ts_place a, ts_place b) {
  ts_place place;
  ck_assert_ok(ts_places_join(places, a, b, &place));
  return place;
}

static const char *text_of(const ts_line *lines, size_t count) {
  static char text[1024];
  text[0] = 0;
  for (size_t i = 0; i < count; i++) {
    size_t at = strlen(text);
    ck_assert_uint_lt(at + lines[i].size + 2, sizeof text);
    memcpy(text + at, lines[i].data, lines[i].size);
    memcpy(text + at + lines[i].size, " ", 2);
  }
  return text;
}

static const char *lines_of(ts_places *places, ts_place place) {
  ts_line lines[TS_MOST_LINES];
  return text_of(lines, ts_places_lines(places, place, lines));
}

START_TEST(equal_lists_have_equal_numbers)
{
  ts_places *places;
  ck_assert_ok(ts_places_create(&places));
  ts_place a = add(places, "a"), b = add(places, "b"), ab = join(places, a, b);
  ck_assert_uint_ne(a, b);
  ck_assert_uint_eq(add(places, "a"), a);
  ck_assert_str_eq(lines_of(places, 0), "");
  ck_assert_str_eq(lines_of(places, a), "a ");
  ck_assert_str_eq(lines_of(places, ab), "a b ");
  ck_assert_str_eq(lines_of(places, join(places, b, a)), "b a ");
  ck_assert_uint_eq(join(places, ab, b), ab);
  ck_assert_uint_eq(join(places, ab, 0), ab);
  ck_assert_uint_eq(join(places, 0, b), b);
  ck_assert_str_eq(lines_of(places, join(places, ab, join(places, add(places, "c"), a))), "a b c ");
  ck_assert_str_eq(lines_of(places, 12345), "");
  ts_places_release(ts_places_retain(places));
  ts_places_release(places);
}
END_TEST

START_TEST(a_list_has_a_bound)
{
  ts_places *places;
  ts_place all = 0;
  ts_line lines[TS_MOST_LINES];
  ck_assert_ok(ts_places_create(&places));
  for (char c = 'a'; c <= 'z'; c++) all = join(places, all, add(places, (char[]){c, 0}));
  ck_assert_uint_eq(ts_places_lines(places, all, lines), TS_MOST_LINES);
  ck_assert_str_eq(lines_of(places, all), "a b c d e f g h i j k l m n o p ");
  ck_assert_uint_eq(join(places, all, add(places, "z")), all);
  ts_places_release(places);
}
END_TEST

/* The line of each op is its name and number. */
static ts_status record(ts_graph *graph) {
  TS_TRY(ts_places_create(&graph->places));
  for (size_t i = 0; i < graph->ops.count; i++) {
    char line[64];
    snprintf(line, sizeof line, "%s/%zu", ts_op_name(graph->ops.data[i].code), i);
    TS_TRY(ts_places_add(graph->places, line, strlen(line), &graph->ops.data[i].place));
  }
  return TS_SUCCESS;
}

static ts_status make(const char *text, bool records, ts_executable **out) {
  ts_graph *graph;
  *out = NULL;
  TS_TRY(ts_graph_parse(text, strlen(text), &graph));
  ts_status status = records ? record(graph) : TS_SUCCESS;
  if (!status) status = ts_executable_create(graph, NULL, out);
  ts_graph_destroy(graph);
  return status;
}

static const char *lines_of_step(const ts_executable *exe, const ts_step *step) {
  ts_line lines[TS_MOST_LINES];
  return text_of(lines, ts_step_lines(exe, step, lines));
}

static const char chain[] = "graph @main(%0: f32[5000]) -> (f32[5000]) {\n"
                            "  %1 = exp %0 : f32[5000]\n"
                            "  %2 = cumulative_sum %1 {axis = 0, reverse = false} : f32[5000]\n"
                            "  %3 = negate %2 : f32[5000]\n"
                            "  %4 = tanh %3 : f32[5000]\n"
                            "  return %4\n}\n";

START_TEST(steps_have_the_lines_of_their_ops)
{
  ts_executable *exe;
  ck_assert_ok(make(chain, true, &exe));
  ck_assert_uint_eq(exe->root.steps.count, 3);
  ck_assert_str_eq(lines_of_step(exe, &exe->root.steps.data[0]), "exp/0 ");
  ck_assert_str_eq(lines_of_step(exe, &exe->root.steps.data[1]), "cumulative_sum/1 ");
  ck_assert_str_eq(lines_of_step(exe, &exe->root.steps.data[2]), "negate/2 tanh/3 ");
  ts_executable_release(exe);
}
END_TEST

#define LOOP(shape)                                                                                \
  "graph @main(%0: " shape ") -> (" shape ") {\n"                                                  \
  "  %2 = while %0 {\n"                                                                            \
  "    condition(%3: " shape ") {\n"                                                               \
  "      %4 = reduce_max %3 {axes = [0]} : f32[]\n      %5 = constant 5.0 : f32[]\n"               \
  "      %6 = less %4, %5 : u8[]\n      return %6\n    }\n"                                        \
  "    body(%7: " shape ") {\n"                                                                    \
  "      %8 = cumulative_sum %7 {axis = 0, reverse = false} : " shape "\n      return %8\n    }\n" \
  "  } : " shape "\n"                                                                              \
  "  return %2\n}\n"

START_TEST(loops_have_their_lines)
{
  ts_executable *exe;
  ck_assert_ok(make(LOOP("f32[50000]"), true, &exe));
  const ts_step *loop = &exe->root.steps.data[exe->root.steps.count - 1];
  ck_assert_int_eq(loop->kind, TS_STEP_WHILE);
  ck_assert(!ts_step_is_native(loop));
  ck_assert_ptr_nonnull(strstr(lines_of_step(exe, loop), "while/"));
  ck_assert_ptr_null(strstr(lines_of_step(exe, loop), "cumulative_sum/"));
  ck_assert_ptr_nonnull(strstr(lines_of_step(exe, &loop->loop->body.steps.data[0]), "cumulative_sum/"));
  ck_assert_ptr_nonnull(strstr(lines_of_step(exe, &loop->loop->condition.steps.data[0]), "reduce_max/"));
  ts_executable_release(exe);
  /* one function: the lines of all of its ops, after its own */
  ck_assert_ok(make(LOOP("f32[8]"), true, &exe));
  loop = &exe->root.steps.data[exe->root.steps.count - 1];
  ck_assert(ts_step_is_native(loop));
  ck_assert_int_eq(strncmp(lines_of_step(exe, loop), "while/", 6), 0);
  ck_assert_ptr_nonnull(strstr(lines_of_step(exe, loop), "reduce_max/"));
  ck_assert_ptr_nonnull(strstr(lines_of_step(exe, loop), "cumulative_sum/"));
  ts_executable_release(exe);
}
END_TEST

static const char sharded[] = "graph @main mesh [2] (%0: f32[8]) -> (f32[]) {\n"
                              "  %1 = exp %0 : f32[8]\n"
                              "  %2 = reduce_sum %1 {axes = [0]} : f32[]\n"
                              "  return %2\n}\n";

START_TEST(partitions_keep_the_lines)
{
  ts_graph *graph, *parts;
  const ts_sharding cut = {.count = 1, .cuts = {{.axis = 0, .dim = 0}}};
  ck_assert_ok(ts_graph_parse(sharded, strlen(sharded), &graph));
  ck_assert_ok(record(graph));
  ck_assert_ok(ts_graph_set_sharding(graph, TS_PARAMS, 0, &cut));
  ck_assert_ok(ts_shard_partition(graph, NULL, NULL, &parts));
  const ts_region *root = ts_graph_region(parts, TS_ROOT);
  bool reduces = false;
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_op *op = ts_graph_op(parts, root->ops.data[i]);
    ck_assert_str_eq(lines_of(parts->places, op->place), op->code == TS_OP_EXP ? "exp/0 " : "reduce_sum/1 ");
    reduces = reduces || op->code == TS_OP_ALL_REDUCE_SUM;
  }
  ck_assert(reduces);
  ts_graph_destroy(graph);
  ts_graph_destroy(parts);
}
END_TEST

START_TEST(a_program_gets_the_places_of_the_same_one)
{
  ts_executable *exe, *again, *other;
  bool taken;
  ck_assert_ok(make(chain, false, &exe));
  ck_assert_ok(make(chain, true, &again));
  ck_assert_ok(make(LOOP("f32[50000]"), true, &other));
  ck_assert(!ts_executable_has_places(exe) && ts_executable_has_places(again));
  ck_assert_str_eq(lines_of_step(exe, &exe->root.steps.data[2]), "");
  ck_assert_ok(ts_executable_take_places(exe, other, &taken));
  ck_assert(!taken && !ts_executable_has_places(exe));
  ck_assert_ok(ts_executable_take_places(again, exe, &taken));
  ck_assert(!taken);
  ck_assert_ok(ts_executable_take_places(exe, again, &taken));
  ck_assert(taken);
  ck_assert_ok(ts_executable_take_places(exe, again, &taken));
  ts_executable_release(again);
  ts_executable_release(other);
  ck_assert_str_eq(lines_of_step(exe, &exe->root.steps.data[2]), "negate/2 tanh/3 ");
  ts_executable_release(exe);
}
END_TEST

static void make_and_give(void) {
  ts_executable *exe, *again = NULL;
  bool taken;
  ts_status status = make(chain, false, &exe);
  if (!status) status = make(chain, true, &again);
  if (!status) status = ts_executable_take_places(exe, again, &taken);
  ts_executable_release(exe);
  ts_executable_release(again);
  ts_status_free(status);
}

START_TEST(each_allocation_may_fail)
{
  make_and_give(); /* kernels that stay */
  CK_FAIL_EACH_ALLOCATION(make_and_give());
}
END_TEST

int main(void) {
  Suite *suite = suite_create("places");
  TCase *all = tcase_create("places");
  tcase_add_test(all, equal_lists_have_equal_numbers);
  tcase_add_test(all, a_list_has_a_bound);
  tcase_add_test(all, steps_have_the_lines_of_their_ops);
  tcase_add_test(all, loops_have_their_lines);
  tcase_add_test(all, partitions_keep_the_lines);
  tcase_add_test(all, a_program_gets_the_places_of_the_same_one);
  tcase_add_test(all, each_allocation_may_fail);
  suite_add_tcase(suite, all);
  return testing_run(suite);
}
