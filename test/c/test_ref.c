/* The driver of the reference interpreter: regions, errors, references, memory. */
#include "kernel/ref/ref.h"

#include "tensors.h"
#include "testing.h"

#include "ir/graph.h"

static ts_region_id add_region(ts_graph *graph) {
  ts_region_id region;
  test_ok(ts_graph_add_region(graph, &region));
  return region;
}

static void set_result(ts_graph *graph, ts_region_id region, ts_value_id value) {
  test_ok(ts_graph_set_results(graph, region, &value, 1));
}

/* ---- control ---- */

/* (i, x) -> while i < limit: (i + 1, x * 2) */
static ts_graph *doubling_loop(double limit) {
  ts_graph *graph = test_graph();
  ts_region_id condition = add_region(graph), body = add_region(graph);
  ts_value_id i = test_add_param(graph, condition, TS_S32, SHAPE());
  test_add_param(graph, condition, TS_F32, SHAPE(2));
  set_result(graph, condition,
             OP(graph, condition, TS_OP_LESS, NULL, i, test_add_constant(graph, condition, TS_S32, limit)));
  ts_value_id j = test_add_param(graph, body, TS_S32, SHAPE()), x = test_add_param(graph, body, TS_F32, SHAPE(2));
  ts_value_id next[2];
  next[0] = OP(graph, body, TS_OP_ADD, NULL, j, test_add_constant(graph, body, TS_S32, 1));
  next[1] = OP(graph, body, TS_OP_ADD, NULL, x, x);
  test_ok(ts_graph_set_results(graph, body, next, 2));
  ts_attrs attrs = {.regions = {.regions = {condition, body}}};
  ts_value_id first = test_add_param(graph, TS_ROOT, TS_S32, SHAPE());
  ts_value_id second = test_add_param(graph, TS_ROOT, TS_F32, SHAPE(2));
  ts_value_id state = OP(graph, TS_ROOT, TS_OP_WHILE, &attrs, first, second);
  ts_value_id results[] = {state, state + 1};
  test_ok(ts_graph_set_results(graph, TS_ROOT, results, 2));
  return graph;
}

static void check_doubling(double start, double limit, double count, double factor) {
  ts_graph *graph = doubling_loop(limit);
  ts_buffer *args[] = {SCALAR(TS_S32, start), VECTOR(TS_F32, 1, -3)}, *results[2];
  test_ok(ts_ref_run(graph, args, 2, ts_pool_default(), results));
  test_equal(results[0], SCALAR(TS_S32, count));
  test_equal(results[1], VECTOR(TS_F32, factor, -3 * factor));
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
  ts_graph_destroy(graph);
}

START_TEST(while_loops)
{
  check_doubling(0, 5, 5, 32);
  check_doubling(4, 5, 5, 2);
  check_doubling(9, 5, 9, 1); /* not once */
}
END_TEST

/* p ? x + 1 : x * 10, by way of a call in the false branch */
static ts_graph *conditional(void) {
  ts_graph *graph = test_graph();
  ts_region_id on_true = add_region(graph), on_false = add_region(graph), inner = add_region(graph);
  ts_value_id x = test_add_param(graph, on_true, TS_S32, SHAPE());
  set_result(graph, on_true, OP(graph, on_true, TS_OP_ADD, NULL, x, test_add_constant(graph, on_true, TS_S32, 1)));
  ts_value_id y = test_add_param(graph, inner, TS_S32, SHAPE());
  set_result(graph, inner, OP(graph, inner, TS_OP_MULTIPLY, NULL, y, test_add_constant(graph, inner, TS_S32, 10)));
  ts_attrs call = {.regions = {.regions = {inner, TS_NO_ID}}};
  ts_value_id z = test_add_param(graph, on_false, TS_S32, SHAPE());
  set_result(graph, on_false, OP(graph, on_false, TS_OP_CALL, &call, z));
  ts_attrs branches = {.regions = {.regions = {on_true, on_false}}};
  ts_value_id predicate = test_add_param(graph, TS_ROOT, TS_U8, SHAPE());
  ts_value_id value = test_add_param(graph, TS_ROOT, TS_S32, SHAPE());
  set_result(graph, TS_ROOT, OP(graph, TS_ROOT, TS_OP_COND, &branches, predicate, value));
  return graph;
}

START_TEST(conditions_and_calls)
{
  test_equal(test_run_graph(conditional(), (ts_buffer *[]){SCALAR(TS_U8, 1), SCALAR(TS_S32, 7)}, 2), SCALAR(TS_S32, 8));
  test_equal(test_run_graph(conditional(), (ts_buffer *[]){SCALAR(TS_U8, 0), SCALAR(TS_S32, 7)}, 2),
             SCALAR(TS_S32, 70));
  /* Any other than 0 is true. */
  test_equal(test_run_graph(conditional(), (ts_buffer *[]){SCALAR(TS_U8, 128), SCALAR(TS_S32, 7)}, 2),
             SCALAR(TS_S32, 8));
}
END_TEST

START_TEST(fusions_run_their_region)
{
  ts_graph *graph = test_graph();
  ts_region_id region = add_region(graph);
  ts_value_id x = test_add_param(graph, region, TS_F32, SHAPE(2));
  ts_value_id results[] = {OP(graph, region, TS_OP_NEGATE, NULL, x), x};
  test_ok(ts_graph_set_results(graph, region, results, 2));
  ts_attrs attrs = {.fusion = {.region = region}};
  ts_value_id arg = test_add_param(graph, TS_ROOT, TS_F32, SHAPE(2));
  ts_value_id fused = OP(graph, TS_ROOT, TS_OP_FUSION, &attrs, arg);
  set_result(graph, TS_ROOT, OP(graph, TS_ROOT, TS_OP_MULTIPLY, NULL, fused, fused + 1));
  test_equal(test_run_graph(graph, (ts_buffer *[]){VECTOR(TS_F32, 2, -3)}, 1), VECTOR(TS_F32, -4, -9));
}
END_TEST

/* ---- results, errors, memory ---- */

START_TEST(results_are_references)
{
  ts_graph *graph = test_graph();
  ts_value_id x = test_add_param(graph, TS_ROOT, TS_F32, SHAPE(1));
  ts_value_id twice[] = {x, x};
  test_ok(ts_graph_set_results(graph, TS_ROOT, twice, 2));
  ts_buffer *arg = VECTOR(TS_F32, 5), *results[2];
  test_ok(ts_ref_run(graph, &arg, 1, ts_pool_default(), results));
  ck_assert_ptr_eq(results[0], arg);
  ck_assert_ptr_eq(results[1], arg);
  ck_assert_uint_eq(atomic_load(&arg->refs), 3);
  for (int i = 0; i < 2; i++) ts_buffer_release(results[i]);
  ts_buffer_release(arg);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(wrong_arguments_are_errors)
{
  ts_graph *graph = doubling_loop(3);
  ts_buffer *args[] = {SCALAR(TS_S32, 0), VECTOR(TS_F32, 1, 2, 3)}, *results[2];
  ck_assert_error(ts_ref_run(graph, args, 1, ts_pool_default(), results), TS_INVALID_ARGUMENT, "expected 2 arguments");
  ck_assert_error(ts_ref_run(graph, args, 2, ts_pool_default(), results), TS_INVALID_ARGUMENT,
                  "argument 2 is f32[3], expected f32[2]");
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_graph_destroy(graph);
}
END_TEST

/* Succeeds or fails, as allocations do. */
static void run_everything(ts_graph *graph, ts_buffer **args) {
  ts_buffer *results[2] = {NULL, NULL};
  ts_status_free(ts_ref_run(graph, args, 2, ts_pool_default(), results));
  for (int i = 0; i < 2; i++) ts_buffer_release(results[i]);
}

START_TEST(failing_allocations_leak_nothing)
{
  ts_graph *graph = doubling_loop(2), *branches = conditional();
  ts_buffer *loop_args[] = {SCALAR(TS_S32, 0), VECTOR(TS_F32, 1, 2)};
  ts_buffer *branch_args[] = {SCALAR(TS_U8, 0), SCALAR(TS_S32, 3)};
  CK_FAIL_EACH_ALLOCATION(run_everything(graph, loop_args));
  CK_FAIL_EACH_ALLOCATION(run_everything(branches, branch_args));
  for (int i = 0; i < 2; i++) {
    ts_buffer_release(loop_args[i]);
    ts_buffer_release(branch_args[i]);
  }
  ts_graph_destroy(graph);
  ts_graph_destroy(branches);
}
END_TEST

START_TEST(memory_limit_is_an_error)
{
  ts_pool *pool;
  test_ok(ts_pool_create(1 << 20, &pool));
  ts_graph *graph = test_graph();
  ts_attrs attrs = {.iota = {.dtype = TS_F32, .shape = SHAPE(1 << 20), .axis = -1}};
  set_result(graph, TS_ROOT, test_add_op(graph, TS_ROOT, TS_OP_IOTA, &attrs, NULL, 0));
  ts_buffer *result = NULL;
  ck_assert_error(ts_ref_run(graph, NULL, 0, pool, &result), TS_RESOURCE_EXHAUSTED, "iota: f32[1048576]");
  ck_assert_ptr_null(result);
  ts_graph_destroy(graph);
  ts_pool_destroy(pool);
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("ref");
  TCase *cases = tcase_create("driver");
  tcase_add_checked_fixture(cases, test_leaks_begin, test_leaks_end);
  tcase_add_test(cases, while_loops);
  tcase_add_test(cases, conditions_and_calls);
  tcase_add_test(cases, fusions_run_their_region);
  tcase_add_test(cases, results_are_references);
  tcase_add_test(cases, wrong_arguments_are_errors);
  tcase_add_test(cases, failing_allocations_leak_nothing);
  tcase_add_test(cases, memory_limit_is_an_error);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
