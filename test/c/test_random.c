/* Random programs: printed and parsed, or copied, they give the same results.
 * (test_compiled.c compares compiled programs.) TESSERA_RANDOM_SEED and TESSERA_RANDOM_COUNT choose the programs. */
#include "graph_text.h"
#include "ir/stablehlo/stablehlo.h"
#include "kernel/ref/ref.h"
#include "random_graph.h"
#include "testing.h"
#include "tool/compare.h"

enum { DEFAULT_COUNT = 400 };

typedef struct program {
  uint64_t seed;
  int64_t tolerance; /* in ULP, between implementations of the transcendental functions */
  ts_graph *graph;
  ts_buffer **args, **expected;
  size_t arg_count, result_count;
} program;

static void free_buffers(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
  ts_free(buffers);
}

static ts_buffer **run_ref(const program *p, const ts_graph *graph) {
  ts_buffer **results;
  ck_assert_ok(TS_NEW_ARRAY(p->result_count, &results));
  ck_assert_ok(ts_ref_run(graph, p->args, p->arg_count, ts_pool_default(), results));
  return results;
}

/* Every other program is exact. */
static program make_program(uint64_t seed) {
  ts_random_options options = {.exact_only = seed % 2 == 0};
  program p = {.seed = seed, .tolerance = options.exact_only ? 0 : TS_RANDOM_ULPS};
  ck_assert_ok(ts_random_graph(seed, &options, &p.graph));
  ck_assert_ok(ts_graph_verify(p.graph));
  ck_assert_ok(ts_random_args(seed, p.graph, ts_pool_default(), &p.args));
  p.arg_count = ts_graph_region(p.graph, TS_ROOT)->params.count;
  p.result_count = ts_graph_region(p.graph, TS_ROOT)->results.count;
  p.expected = run_ref(&p, p.graph);
  return p;
}

static void free_program(program *p) {
  free_buffers(p->expected, p->result_count);
  ts_random_args_free(p->args, p->arg_count);
  ts_graph_destroy(p->graph);
}

/* Takes the results. */
static void check_results(const program *p, const char *path, ts_buffer **results, int64_t tolerance) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < p->result_count; i++) {
    if (ts_compare_buffers(results[i], p->expected[i], tolerance, message)) continue;
    ck_abort_msg("seed %llu, %s, result %zu: %s", (unsigned long long)p->seed, path, i, message);
  }
  free_buffers(results, p->result_count);
}

/* ---- the paths ---- */

static void check_text(const program *p) {
  char *first = graph_text(p->graph), *second;
  ts_graph *parsed;
  ck_assert_ok(ts_graph_parse(first, strlen(first), &parsed));
  ck_assert_ok(ts_graph_verify(parsed));
  second = graph_text(parsed);
  ck_assert_str_eq(first, second);
  check_results(p, "parsed", run_ref(p, parsed), 0);
  ts_graph_destroy(parsed);
  ts_free(first);
  ts_free(second);
}

static void check_clone(const program *p) {
  ts_graph *clone;
  ck_assert_ok(ts_graph_clone(p->graph, &clone));
  ck_assert_ok(ts_graph_verify(clone));
  check_results(p, "clone", run_ref(p, clone), 0);
  ts_graph_destroy(clone);
}

/* Each path that computes a program another way is a line here. */
static void (*const paths[])(const program *) = {check_text, check_clone};

START_TEST(paths_agree)
{
  const testing_seeds seeds = testing_random_seeds(DEFAULT_COUNT);
  const uint64_t first = seeds.first, count = seeds.count;
  for (uint64_t seed = first; seed < first + count; seed++) {
    program p = make_program(seed);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) paths[i](&p);
    free_program(&p);
  }
}
END_TEST

/* ---- the generator itself ---- */

START_TEST(same_seed_same_program)
{
  for (uint64_t seed = 1; seed <= 20; seed++) {
    program a = make_program(seed), b = make_program(seed);
    char *first = graph_text(a.graph), *second = graph_text(b.graph);
    ck_assert_str_eq(first, second);
    check_results(&a, "again", run_ref(&b, b.graph), 0);
    ts_free(first);
    ts_free(second);
    free_program(&a);
    free_program(&b);
  }
}
END_TEST

/* Every op but the fuse pass's own occurs within a few hundred programs. */
START_TEST(covers_all_ops)
{
  bool seen[TS_OP_COUNT] = {
      [TS_OP_PARAMETER] = true, [TS_OP_FUSION] = true, [TS_OP_CALLBACK] = true, [TS_OP_CUSTOM_CALL] = true};
  for (uint64_t seed = 1; seed <= 600; seed++) {
    ts_graph *graph;
    ck_assert_ok(ts_random_graph(seed, NULL, &graph));
    for (size_t i = 0; i < graph->ops.count; i++) seen[graph->ops.data[i].code] = true;
    ts_graph_destroy(graph);
  }
#ifdef TS_TEST_ROWS /* ops that no layer knows, and an op with an order */
  seen[TS_OP_TEST_MATH] = seen[TS_OP_TEST_UNARY] = seen[TS_OP_TEST_BINARY] = seen[TS_OP_TEST_COMPARE] = true;
  seen[TS_OP_TEST_SHAPE] = seen[TS_OP_TEST_REDUCE] = seen[TS_OP_TEST_ORDERED] = seen[TS_OP_TEST_LINALG] = true;
#endif
  for (int code = TS_FIRST_COLLECTIVE; code <= TS_LAST_COLLECTIVE; code++) seen[code] = true; /* test_shard */
  for (int code = 0; code < TS_OP_COUNT; code++)
    ck_assert_msg(seen[code], "%s never occurs", ts_op_name((ts_opcode)code));
}
END_TEST

START_TEST(keeps_to_the_options)
{
  ts_random_options options = {.exact_only = true, .no_control = true, .no_dot = true, .max_elements = 64};
  for (uint64_t seed = 1; seed <= 200; seed++) {
    ts_graph *graph;
    ck_assert_ok(ts_random_graph(seed, &options, &graph));
    for (size_t i = 0; i < graph->ops.count; i++) {
      ts_opcode code = graph->ops.data[i].code;
      ck_assert(ts_op_get_class(code) != TS_CLASS_CONTROL && code != TS_OP_DOT && code != TS_OP_REDUCE);
      ck_assert(ts_op_get_class(code) != TS_CLASS_UNARY_FLOAT || code == TS_OP_SQRT);
    }
    for (size_t i = 0; i < graph->values.count; i++) {
      ck_assert_int_le(ts_shape_elements(graph->values.data[i].shape), 64);
    }
    ts_graph_destroy(graph);
  }
}
END_TEST

/* Makes, prints, parses and runs a program, as far as memory lasts. */
static void try_everything(uint64_t seed) {
  ts_graph *graph = NULL, *parsed = NULL;
  ts_text text = {0}, stablehlo = {0};
  ts_buffer **args = NULL, *results[4] = {NULL};
  ts_status status = ts_random_graph(seed, NULL, &graph);
  if (!status) status = ts_graph_verify(graph);
  if (!status) status = ts_graph_print(graph, &text);
  if (!status) status = ts_graph_print_stablehlo(graph, &stablehlo);
  if (!status) status = ts_graph_parse(text.data, text.length, &parsed);
  if (!status) status = ts_random_args(seed, graph, ts_pool_default(), &args);
  if (!status)
    status = ts_ref_run(parsed, args, ts_graph_region(graph, TS_ROOT)->params.count, ts_pool_default(), results);
  ts_status_free(status);
  for (size_t i = 0; i < 4; i++) ts_buffer_release(results[i]);
  if (args) ts_random_args_free(args, ts_graph_region(graph, TS_ROOT)->params.count);
  ts_text_deinit(&text);
  ts_text_deinit(&stablehlo);
  ts_graph_destroy(parsed);
  ts_graph_destroy(graph);
}

START_TEST(failing_allocations_leak_nothing)
{
  try_everything(1); /* makes the values that are made once and kept */
  for (uint64_t seed = 1; seed <= 4; seed++) CK_FAIL_EACH_ALLOCATION(try_everything(seed));
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("random");
  TCase *cases = tcase_create("random");
  tcase_set_timeout(cases, 0);
  tcase_add_test(cases, same_seed_same_program);
  tcase_add_test(cases, covers_all_ops);
  tcase_add_test(cases, keeps_to_the_options);
  tcase_add_test(cases, paths_agree);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
