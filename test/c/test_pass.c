/* Passes keep what random programs mean, give valid graphs, and leave their input as it is. Their effects on single
 * graphs are in test/golden/pass. */
#include "kernel/ref/ref.h"
#include "launch.h"
#include "pass/pass.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <glob.h>

enum { MAX_RESULTS = 64 };

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

/* The loops of factorizations have no defined bits. test_matrix_classes judges them. */
static bool keeps_bits(const ts_graph *graph, const ts_pass *pass) {
  return pass->run != ts_pass_factor_loops || !ts_factor_loops_apply(graph);
}

static void check_pass(const ts_graph *graph, const ts_pass *pass, uint64_t seed) {
  if (!keeps_bits(graph, pass)) return;
  ts_pass_options options = {.verify = true};
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
  ts_graph *graph;
  ck_assert_ok(ts_random_graph(seed, &small, &graph));
  for (const ts_pass *pass = ts_passes; pass->name; pass++) check_pass(graph, pass, seed);
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

static void run_and_drop(const ts_graph *graph, const ts_pass *pass) {
  ts_pass_options options = {0};
  ts_graph *after = NULL;
  ts_status_free(pass->run(graph, &options, &after));
  ts_graph_destroy(after);
}

static void check_input(const char *path) {
  char *text = testing_read(path);
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  char *before = print(graph);
  for (const ts_pass *pass = ts_passes; pass->name; pass++) run_and_drop(graph, pass);
  char *after = print(graph);
  ck_assert_str_eq(after, before);
  ts_free(before);
  ts_free(after);
  ts_graph_destroy(graph);
  free(text);
}

START_TEST(passes_leave_their_input_as_it_is)
{
  glob_t paths;
  ck_assert_int_eq(glob("test/golden/pass/*.ts", 0, NULL, &paths), 0);
  for (size_t i = 0; i < paths.gl_pathc; i++) check_input(paths.gl_pathv[i]);
  globfree(&paths);
}
END_TEST

START_TEST(failing_allocations)
{
  ts_random_options small = {.steps = 3, .max_elements = 64};
  const ts_pass *pipeline = ts_pass_find("pipeline", 8);
  ts_graph *graph;
  ck_assert_ok(ts_random_graph(7, &small, &graph));
  CK_FAIL_EACH_ALLOCATION(run_and_drop(graph, pipeline));
  ts_graph_destroy(graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("pass");
  TCase *t = tcase_create("passes");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, passes_leave_their_input_as_it_is);
  tcase_add_test(t, failing_allocations);
  tcase_add_loop_test(t, random_graphs, 0, 100);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
