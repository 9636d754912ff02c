/* Ops of several results, and plain ops with an effect, through every layer of the core: in the build of test/rows,
 * whose table has such ops (TS_TEST_ROWS). Programs of text are compared as text, and their runs with the
 * interpreter's. */
#include "graph_text.h"
#include "ir/stablehlo/stablehlo.h"
#include "kernel/ref/ref.h"
#include "pass/pass.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

enum { MOST = 8 };

#define EXCHANGE(a, b, c, x, y) "  " a ", " b ", " c " = test_exchange " x ", " y " : s32[5], s32[5], s64[]\n"
#define HEAD "graph @main(%0: s32[5], %1: s32[5]) -> "

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static void check_text(const ts_graph *graph, const char *expected) {
  char *text = graph_text(graph);
  ck_assert_str_eq(text, expected);
  ts_free(text);
}

/* ---- text, verifier, copies ---- */

static const char whole[] = HEAD "(s32[5], s32[5], s64[], s32[5]) {\n" EXCHANGE(
    "%2", "%3", "%4", "%0", "%1") "  %5 = negate %3 : s32[5]\n  return %2, %3, %4, %5\n}\n";

START_TEST(text_is_read_and_printed)
{
  ts_graph *graph = parse(whole);
  check_text(graph, whole);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(text_names_every_result)
{
  static const char *const texts[] = {
      HEAD "(s32[5]) {\n  %2 = test_exchange %0, %1 : s32[5]\n  return %2\n}\n",
      HEAD "(s32[5]) {\n  %2, %3 = test_exchange %0, %1 : s32[5], s32[5], s64[]\n  return %2\n}\n",
      HEAD "(s32[5]) {\n  %2, %3, %4, %5 = test_exchange %0, %1 : s32[5], s32[5], s64[], s64[]\n  return %2\n}\n"};
  static const char wrong[] =
      HEAD "(s32[5]) {\n  %2, %3, %4 = test_exchange %0, %1 : s32[5], s32[5], s32[]\n  return %2\n}\n";
  ts_graph *graph;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    ck_assert_error(ts_graph_parse(texts[i], strlen(texts[i]), &graph), TS_INVALID_ARGUMENT,
                    "test_exchange has 3 results");
  ck_assert_error(ts_graph_parse(wrong, strlen(wrong), &graph), TS_INVALID_ARGUMENT,
                  "said to be s32[], expected s64[]");
}
END_TEST

START_TEST(the_verifier_looks_at_every_result)
{
  for (ts_value_id i = 0; i < 3; i++) {
    ts_graph *graph = parse(whole);
    graph->values.data[2 + i].dtype = TS_U8;
    ck_assert_error(ts_graph_verify(graph), TS_INTERNAL, "inferred");
    ts_graph_destroy(graph);
  }
}
END_TEST

/* Into a graph that shares nothing with the other one, and into the same graph. */
START_TEST(a_copy_has_all_results)
{
  ts_graph *graph = parse(whole), *other = test_graph();
  ts_value_id params[2], first, after;
  for (ts_value_id i = 0; i < 2; i++) ck_assert_ok(ts_graph_add_param_like(other, TS_ROOT, graph, i, &params[i]));
  for (int i = 0; i < 2; i++) {
    const ts_graph *from = i ? other : graph;
    ck_assert_ok(ts_graph_add_like(other, TS_ROOT, from, 0, params, &first));
    ck_assert_ok(
        ts_graph_add_op(other, TS_ROOT, TS_OP_NEGATE, (ts_values){(ts_value_id[]){first + 1}, 1}, NULL, &after));
    ck_assert_uint_eq(after, first + 3);
  }
  ck_assert_ok(ts_graph_set_results(other, TS_ROOT, (ts_value_id[]){first + 2, after}, 2));
  ck_assert_ok(ts_graph_verify(other));
  ts_graph_destroy(graph);
  check_text(other,
             HEAD "(s64[], s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1") "  %5 = negate %3 : s32[5]\n" EXCHANGE(
                 "%6", "%7", "%8", "%0", "%1") "  %9 = negate %7 : s32[5]\n  return %8, %9\n}\n");
  ts_graph_destroy(other);
}
END_TEST

START_TEST(a_clone_has_all_results)
{
  ts_graph *graph = parse(whole), *copy;
  ck_assert_ok(ts_graph_clone(graph, &copy));
  ck_assert_ok(ts_graph_verify(copy));
  check_text(copy, whole);
  ts_graph_destroy(copy);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(stablehlo_has_all_results)
{
  ts_graph *graph = parse(whole);
  ts_text text = {0};
  ck_assert_ok(ts_graph_print_stablehlo(graph, &text));
  ck_assert_ptr_nonnull(strstr(text.data, "%2:3 = \"stablehlo.custom_call\""));
  ck_assert_ptr_nonnull(strstr(text.data, "-> (tensor<5xi32>, tensor<5xi32>, tensor<i64>)"));
  ck_assert_ptr_nonnull(strstr(text.data, "\"stablehlo.negate\"(%2#1)"));
  ck_assert_ptr_nonnull(strstr(text.data, "\"func.return\"(%2#0, %2#1, %2#2, %3)"));
  ts_text_deinit(&text);
  ts_graph_destroy(graph);
}
END_TEST

/* ---- passes ---- */

static ts_status evaluate(void *context, const ts_graph *graph, ts_buffer **out_results) {
  (void)context;
  return ts_ref_run(graph, NULL, 0, ts_pool_default(), out_results);
}

static void check_pass(const char *name, const char *before, const char *expected) {
  ts_pass_options options = {.evaluate = evaluate};
  ts_graph *graph = parse(before), *after;
  ck_assert_ok(ts_pass_find(name, strlen(name))->run(graph, &options, &after));
  ck_assert_ok(ts_graph_verify(after));
  ts_graph_destroy(graph);
  check_text(after, expected);
  ts_graph_destroy(after);
}

START_TEST(equal_ops_become_one)
{
  check_pass("cse",
             HEAD "(s32[5], s64[], s32[5], s64[], s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1")
                 EXCHANGE("%5", "%6", "%7", "%0", "%1") EXCHANGE(
                     "%8", "%9", "%10", "%1", "%0") "  %11 = add %3, %6 : s32[5]\n  return %2, %7, %6, %10, %11\n}\n",
             HEAD "(s32[5], s64[], s32[5], s64[], s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1")
                 EXCHANGE("%5", "%6", "%7", "%1", "%0") "  %8 = add %3, %3 : s32[5]\n  return %2, %4, %3, %7, %8\n}\n");
}
END_TEST

START_TEST(an_op_lives_for_any_of_its_results)
{
  static const char *const last[] = {"(s32[5]) {\n", "(s32[5]) {\n", "(s64[]) {\n"};
  static const char op[] = EXCHANGE("%2", "%3", "%4", "%0", "%1"), dead[] = EXCHANGE("%5", "%6", "%7", "%2", "%3");
  static const char *const passes[] = {"dce", "dots", "fuse"};
  for (int i = 0; i < 9; i++) {
    char before[512], after[512];
    snprintf(before, sizeof before, "%s%s%s%s  return %%%d\n}\n", HEAD, last[i / 3], op, dead, 2 + i / 3);
    snprintf(after, sizeof after, "%s%s%s  return %%%d\n}\n", HEAD, last[i / 3], op, 2 + i / 3);
    check_pass(passes[i % 3], before, after);
  }
}
END_TEST

/* The rule's literals are in the place of all results, also of the op that is asked for a second time. */
START_TEST(known_operands_make_literals)
{
  static const char data[] = "  %0 = literal \"0500000001000000\" : s32[2]\n"
                             "  %1 = literal \"0300000002000000\" : s32[2]\n";
  char before[1024];
  snprintf(before, sizeof before,
           "graph @main() -> (s32[2], s32[2], s64[], s64[]) {\n%s"
           "  %%2, %%3, %%4 = test_exchange %%0, %%1 : s32[2], s32[2], s64[]\n"
           "  %%5, %%6, %%7 = test_exchange %%0, %%1 : s32[2], s32[2], s64[]\n"
           "  return %%2, %%6, %%4, %%7\n}\n",
           data);
  ts_graph *graph = parse(before), *after, *last;
  ts_pass_options options = {.evaluate = evaluate};
  ck_assert_ok(ts_pass_find("normalize", 9)->run(graph, &options, &after));
  ck_assert_ok(ts_graph_verify(after));
  ck_assert_ok(ts_pass_find("dce", 3)->run(after, &options, &last));
  check_text(last, "graph @main() -> (s32[2], s32[2], s64[], s64[]) {\n"
                   "  %0 = literal \"0300000001000000\" : s32[2]\n  %1 = literal \"0500000002000000\" : s32[2]\n"
                   "  %2 = literal \"0100000000000000\" : s64[]\n  return %0, %1, %2, %2\n}\n");
  ts_graph_destroy(graph);
  ts_graph_destroy(after);
  ts_graph_destroy(last);
}
END_TEST

/* Not dropped, shared or folded, wherever it stands. */
START_TEST(an_ordered_op_stays)
{
  static const char before[] =
      HEAD "(s32[5]) {\n  %2 = constant 1 : s32[5]\n  %3 = test_ordered %2 : s32[5]\n  %4 = test_ordered %2 : s32[5]\n"
           "  %5 = test_ordered %0 : s32[5]\n  return %4\n}\n";
  static const char *const passes[] = {"normalize", "dots", "fuse", "cse", "dce", "fold"};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) check_pass(passes[i], before, before);
}
END_TEST

/* A region with such an op also has an effect in a copy. */
START_TEST(an_ordered_op_keeps_what_holds_it)
{
  static const char before[] = "graph @main(%0: s32[5], %1: u8[]) -> (s32[5]) {\n"
                               "  %2 = cond %1, %0 {\n"
                               "    true(%3: s32[5]) {\n      %4 = test_ordered %3 : s32[5]\n      return %3\n    }\n"
                               "    false(%5: s32[5]) {\n      return %5\n    }\n"
                               "  } : s32[5]\n  return %0\n}\n";
  static const char *const passes[] = {"normalize", "dots", "fuse", "dce"};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) check_pass(passes[i], before, before);
}
END_TEST

/* ---- runs ---- */

typedef struct program {
  const char *name, *text;
} program;

static const program programs[] = {
    {"all", whole},
    {"first", HEAD "(s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1") "  return %2\n}\n"},
    {"second", HEAD "(s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1") "  return %3\n}\n"},
    {"third", HEAD "(s64[]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%1") "  return %4\n}\n"},
    {"twice", HEAD "(s32[5], s32[5], s64[], s64[], s32[5]) {\n" EXCHANGE("%2", "%3", "%4", "%0",
                                                                         "%1") "  return %3, %3, %4, %4, %2\n}\n"},
    {"one operand",
     HEAD "(s32[5], s32[5], s64[]) {\n" EXCHANGE("%2", "%3", "%4", "%0", "%0") "  return %2, %3, %4\n}\n"},
    {"reshaped",
     HEAD "(s32[5,1], s32[1,5]) {\n" EXCHANGE(
         "%2", "%3", "%4", "%0",
         "%1") "  %5 = reshape %2 {shape = [5,1]} : s32[5,1]\n  %6 = reshape %3 {shape = [1,5]} : s32[1,5]\n"
               "  return %5, %6\n}\n"},
    /* temporaries on both sides: all in place */
    {"chain", HEAD
     "(s32[5], s64[]) {\n  %2 = negate %0 : s32[5]\n  %3 = abs %1 : s32[5]\n" EXCHANGE("%4", "%5", "%6", "%2", "%3")
         EXCHANGE("%7", "%8", "%9", "%5", "%4") "  %10 = multiply %7, %8 : s32[5]\n  %11 = add %6, %9 : s64[]\n"
                                                "  return %10, %11\n}\n"},
    /* an operand that is read again */
    {"read again",
     HEAD "(s32[5], s32[5], s32[5]) {\n  %2 = negate %0 : s32[5]\n  %3 = abs %1 : s32[5]\n" EXCHANGE(
         "%4", "%5", "%6", "%2", "%3") "  %7 = subtract %4, %2 : s32[5]\n  %8 = subtract %5, %3 : s32[5]\n"
                                       "  return %4, %7, %8\n}\n"},
    {"unused between",
     HEAD "(s32[5], s32[5]) {\n  %2 = negate %0 : s32[5]\n" EXCHANGE("%3", "%4", "%5", "%2", "%1")
         EXCHANGE("%6", "%7", "%8", "%4", "%2") EXCHANGE("%9", "%10", "%11", "%7", "%1") "  return %9, %10\n}\n"},
    {"while",
     HEAD "(s32[5], s32[5], s64[]) {\n  %2 = constant 0 : s64[]\n"
          "  %3, %4, %5 = while %0, %1, %2 {\n"
          "    condition(%6: s32[5], %7: s32[5], %8: s64[]) {\n      %9 = constant 9 : s64[]\n"
          "      %10 = less %8, %9 : u8[]\n      return %10\n    }\n"
          "    body(%11: s32[5], %12: s32[5], %13: s64[]) {\n"
          "      %14, %15, %16 = test_exchange %11, %12 : s32[5], s32[5], s64[]\n"
          "      %17 = constant 1 : s64[]\n      %18 = add %13, %17 : s64[]\n      %19 = add %18, %16 : s64[]\n"
          "      return %15, %14, %19\n    }\n  } : s32[5], s32[5], s64[]\n  return %3, %4, %5\n}\n"},
    {"while of scalars",
     "graph @main(%0: s32[], %1: s32[]) -> (s32[], s64[]) {\n  %2 = constant 0 : s64[]\n"
     "  %3, %4, %5 = while %0, %1, %2 {\n"
     "    condition(%6: s32[], %7: s32[], %8: s64[]) {\n      %9 = constant 9 : s64[]\n"
     "      %10 = less %8, %9 : u8[]\n      return %10\n    }\n"
     "    body(%11: s32[], %12: s32[], %13: s64[]) {\n"
     "      %14, %15, %16 = test_exchange %11, %12 : s32[], s32[], s64[]\n"
     "      %17 = constant 1 : s64[]\n      %18 = add %13, %17 : s64[]\n      %19 = add %18, %16 : s64[]\n"
     "      return %15, %14, %19\n    }\n  } : s32[], s32[], s64[]\n  return %3, %5\n}\n"},
    {"cond",
     "graph @main(%0: s32[5], %1: s32[5], %2: u8[]) -> (s32[5], s64[]) {\n"
     "  %3, %4 = cond %2, %0, %1 {\n"
     "    true(%5: s32[5], %6: s32[5]) {\n      %7, %8, %9 = test_exchange %5, %6 : s32[5], s32[5], s64[]\n"
     "      return %8, %9\n    }\n"
     "    false(%10: s32[5], %11: s32[5]) {\n      %12, %13, %14 = test_exchange %11, %10 : s32[5], s32[5], s64[]\n"
     "      return %12, %14\n    }\n  } : s32[5], s64[]\n  return %3, %4\n}\n"},
    {"empty", "graph @main(%0: s32[0,3], %1: s32[0,3]) -> (s32[0,3], s32[0,3], s64[]) {\n"
              "  %2, %3, %4 = test_exchange %0, %1 : s32[0,3], s32[0,3], s64[]\n  return %2, %3, %4\n}\n"},
};

typedef struct run {
  ts_graph *graph;
  ts_buffer **args, *expected[MOST];
  size_t arg_count, result_count;
} run;

static run start(const char *text) {
  run r = {.graph = parse(text)};
  const ts_region *root = ts_graph_region(r.graph, TS_ROOT);
  r.arg_count = root->params.count, r.result_count = root->results.count;
  ck_assert_uint_le(r.result_count, MOST);
  ck_assert_ok(ts_random_args(7, r.graph, ts_pool_default(), &r.args));
  ck_assert_ok(ts_ref_run(r.graph, r.args, r.arg_count, ts_pool_default(), r.expected));
  return r;
}

static void end(run *r, size_t kept_args) {
  for (size_t i = 0; i < r->result_count; i++) ts_buffer_release(r->expected[i]);
  if (kept_args) ts_random_args_free(r->args, kept_args);
  ts_graph_destroy(r->graph);
}

static void check_results(const run *r, ts_buffer **results, const char *name) {
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < r->result_count; i++) {
    bool equal = ts_compare_buffers(results[i], r->expected[i], 0, message);
    ck_assert_msg(equal, "%s, result %zu: %s", name, i, message);
    ts_buffer_release(results[i]);
  }
}

START_TEST(programs_match_the_interpreter)
{
  const program *p = &programs[_i];
  static const ts_compile_options modes[] = {{0}, {.no_fusion = true}, {.no_simplify = true}};
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
    run r = start(p->text);
    ts_executable *exe;
    ts_buffer *results[MOST];
    ck_assert_ok(ts_executable_create(r.graph, &modes[m], &exe));
    for (int times = 0; times < 2; times++) {
      ck_assert_ok(ts_executable_run(exe, r.args, r.arg_count, NULL, results));
      check_results(&r, results, p->name);
    }
    ts_executable_release(exe);
    end(&r, r.arg_count);
  }
}
END_TEST

/* All arguments; the run takes all arguments that it does not return, even in part. */
START_TEST(donated_arguments_give_their_memory)
{
  const program *p = &programs[_i];
  run r = start(p->text);
  ts_executable *exe;
  ts_buffer *results[MOST];
  ck_assert_ok(ts_executable_create(r.graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, r.args, r.arg_count, &(ts_run_options){.donated = TS_BITS(7)}, results));
  check_results(&r, results, p->name);
  ts_executable_release(exe);
  ts_free(r.args);
  end(&r, 0);
}
END_TEST

START_TEST(each_result_may_have_the_memory_of_an_operand)
{
  run r = start(programs[0].text);
  ts_executable *exe;
  ts_buffer *results[MOST];
  const void *first = r.args[0]->data, *second = r.args[1]->data;
  ck_assert_ok(ts_executable_create(r.graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, r.args, 2, &(ts_run_options){.donated = TS_BITS(3)}, results));
  ck_assert_ptr_eq(results[0]->data, first);
  ck_assert_ptr_eq(results[1]->data, second);
  check_results(&r, results, "donated");
  ts_executable_release(exe);
  ts_free(r.args);
  end(&r, 0);
}
END_TEST

/* Temporaries of 5 elements: the two operands, whose memory all results take, and the counts. */
START_TEST(results_take_the_operands_memory)
{
  ts_executable *exe =
      test_compile("graph @main(%0: s32[4096], %1: s32[4096]) -> (s64[]) {\n  %2 = negate %0 : s32[4096]\n"
                   "  %3 = abs %1 : s32[4096]\n  %4, %5, %6 = test_exchange %2, %3 : s32[4096], s32[4096], s64[]\n"
                   "  %7, %8, %9 = test_exchange %5, %4 : s32[4096], s32[4096], s64[]\n  return %9\n}\n");
  ts_executable_stats stats;
  ts_executable_get_stats(exe, &stats);
  ck_assert_int_ge(stats.temp_bytes, 2 * 4 * 4096);
  ck_assert_int_le(stats.temp_bytes, 2 * 4 * 4096 + 256);
  ts_executable_release(exe);
}
END_TEST

START_TEST(a_step_is_explained)
{
  ts_executable *exe = test_compile(whole);
  ts_text text = {0};
  ck_assert_ok(ts_executable_explain(exe, &text));
  ck_assert_ptr_nonnull(strstr(text.data, "exchange"));
  ts_text_deinit(&text);
  ts_executable_release(exe);
}
END_TEST

static ts_status compile_and_run(const run *r) {
  ts_executable *exe;
  ts_buffer *results[MOST];
  TS_TRY(ts_executable_create(r->graph, NULL, &exe));
  ts_status status = ts_executable_run(exe, r->args, r->arg_count, NULL, results);
  for (size_t i = 0; !status && i < r->result_count; i++) ts_buffer_release(results[i]);
  ts_executable_release(exe);
  return status;
}

START_TEST(a_failed_allocation_leaves_nothing)
{
  run r = start(programs[7].text);
  ts_status_free(compile_and_run(&r)); /* what stays for the process is there now */
  CK_FAIL_EACH_ALLOCATION(ts_status_free(compile_and_run(&r)));
  end(&r, r.arg_count);
}
END_TEST

enum { PROGRAMS = sizeof programs / sizeof *programs };

int main(void) {
  Suite *suite = suite_create("results");
  TCase *t = tcase_create("results");
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, text_is_read_and_printed);
  tcase_add_test(t, text_names_every_result);
  tcase_add_test(t, the_verifier_looks_at_every_result);
  tcase_add_test(t, a_copy_has_all_results);
  tcase_add_test(t, a_clone_has_all_results);
  tcase_add_test(t, stablehlo_has_all_results);
  tcase_add_test(t, equal_ops_become_one);
  tcase_add_test(t, an_op_lives_for_any_of_its_results);
  tcase_add_test(t, known_operands_make_literals);
  tcase_add_test(t, an_ordered_op_stays);
  tcase_add_test(t, an_ordered_op_keeps_what_holds_it);
  suite_add_tcase(suite, t);
  TCase *runs = tcase_create("runs");
  tcase_add_loop_test(runs, programs_match_the_interpreter, 0, PROGRAMS);
  tcase_add_loop_test(runs, donated_arguments_give_their_memory, 0, PROGRAMS);
  tcase_add_test(runs, each_result_may_have_the_memory_of_an_operand);
  tcase_add_test(runs, results_take_the_operands_memory);
  tcase_add_test(runs, a_step_is_explained);
  tcase_add_test(runs, a_failed_allocation_leaves_nothing);
  suite_add_tcase(suite, runs);
  return testing_run(suite);
}
