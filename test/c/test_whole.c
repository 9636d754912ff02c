/* Control flow over single elements as one native function: the ops that qualify, a shared kernel for equal loops, and
 * results against the interpreter. */
#include "exec/executable.h"
#include "jit/jit.h"
#include "jit/lower/lower.h"
#include "kernel/ref/ref.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#define GRAPH(params, results, body) "graph @main(" params ") -> (" results ") {\n" body "}\n"
#define LOOP(type, shape, condition, body)                                                                          \
  GRAPH("%0: " type shape, type shape,                                                                              \
        "%1 = while %0 {\ncondition(%2: " type shape ") {\n" condition "}\nbody(%3: " type shape ") {\n" body "}\n" \
        "} : " type shape "\nreturn %1\n")
#define BELOW(type, limit) "%4 = constant " limit " : " type "[]\n%5 = less %2, %4 : u8[]\nreturn %5\n"
#define PLUS(type, step) "%6 = constant " step " : " type "[]\n%7 = add %3, %6 : " type "[]\nreturn %7\n"
#define COUNT(type, limit, step) LOOP(type, "[]", BELOW(type, limit), PLUS(type, step))

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_graph_verify(graph));
  return graph;
}

static ts_op_id last_op(const ts_graph *graph) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  return root->ops.data[root->ops.count - 1];
}

static bool is_supported(const char *text) {
  ts_graph *graph = parse(text);
  bool supported = ts_whole_supported(graph, last_op(graph));
  ts_graph_destroy(graph);
  return supported;
}

START_TEST(what_qualifies)
{
  ck_assert(is_supported(COUNT("s32", "10", "1")));
  /* one element of any rank */
  ck_assert(is_supported(LOOP("f32", "[1,1]",
                              "%4 = reshape %2 {shape = []} : f32[]\n%5 = constant 3 : f32[]\n"
                              "%6 = less %4, %5 : u8[]\nreturn %6\n",
                              "%7 = exp %3 : f32[1,1]\nreturn %7\n")));
  ck_assert(!is_supported(LOOP("f32", "[2]", "%4 = constant 0 : u8[]\nreturn %4\n", "return %3\n")));
  ck_assert(!is_supported(LOOP("f32", "[0]", "%4 = constant 0 : u8[]\nreturn %4\n", "return %3\n")));
  /* a larger value inside */
  ck_assert(!is_supported(LOOP("s32", "[]", BELOW("s32", "9"),
                               "%6 = broadcast %3 {shape = [4], axes = []} : s32[4]\n"
                               "%7 = reduce_sum %6 {axes = [0]} : s32[]\nreturn %7\n")));
  /* no control flow */
  ck_assert(!is_supported(GRAPH("%0: f32[]", "f32[]", "%1 = exp %0 : f32[]\nreturn %1\n")));
}
END_TEST

/* A body of `count` additions. */
static bool long_body_is_supported(int count) {
  ts_text text = {0};
  char *string;
  ts_text_append(&text, "graph @main(%0: s32[]) -> (s32[]) {\n%1 = while %0 {\ncondition(%2: s32[]) {\n"
                        "%4 = constant 0 : u8[]\nreturn %4\n}\nbody(%3: s32[]) {\n%5 = add %3, %3 : s32[]\n");
  for (int i = 1; i < count; i++) ts_text_format(&text, "%%%d = add %%%d, %%3 : s32[]\n", i + 5, i + 4);
  ts_text_format(&text, "return %%%d\n}\n} : s32[]\nreturn %%1\n}\n", count + 4);
  ck_assert_ok(ts_text_finish(&text, &string));
  ts_text_deinit(&text);
  bool supported = is_supported(string);
  ts_free(string);
  return supported;
}

START_TEST(long_bodies_do_not_qualify)
{
  /* besides them the loop itself and a constant */
  ck_assert(long_body_is_supported(TS_WHOLE_MAX_OPS - 2));
  ck_assert(!long_body_is_supported(TS_WHOLE_MAX_OPS - 1));
}
END_TEST

typedef struct lowered {
  ts_graph *graph;
  ts_arena arena;
  ts_whole_kernel whole;
} lowered;

static ts_status lower(ts_graph *graph, lowered *out) {
  ts_arena_init(&out->arena);
  ts_status status = ts_whole_lower(graph, last_op(graph), &out->arena, &out->whole);
  if (status) ts_arena_deinit(&out->arena);
  return status;
}

static void free_lowered(lowered *l) {
  ts_free(l->whole.text);
  ts_arena_deinit(&l->arena);
}

static bool texts_agree(const char *a, const char *b) {
  lowered x = {.graph = parse(a)}, y = {.graph = parse(b)};
  ck_assert_ok(lower(x.graph, &x));
  ck_assert_ok(lower(y.graph, &y));
  bool agree = strcmp(x.whole.source.text, y.whole.source.text) == 0;
  ck_assert_uint_eq(x.whole.source.length, strlen(x.whole.source.text));
  free_lowered(&x);
  free_lowered(&y);
  ts_graph_destroy(x.graph);
  ts_graph_destroy(y.graph);
  return agree;
}

START_TEST(constants_are_arguments)
{
  lowered l = {.graph = parse(COUNT("s32", "10", "3"))};
  ck_assert_ok(lower(l.graph, &l));
  ck_assert_int_eq(l.whole.constant_count, 2);
  ck_assert_int_eq((int32_t)l.whole.constants[0], 10);
  ck_assert_int_eq((int32_t)l.whole.constants[1], 3);
  free_lowered(&l);
  ts_graph_destroy(l.graph);
  ck_assert(texts_agree(COUNT("s32", "10", "3"), COUNT("s32", "99", "-1")));
  ck_assert(!texts_agree(COUNT("s32", "10", "3"), COUNT("s64", "10", "3")));
}
END_TEST

static void lower_and_free(ts_graph *graph) {
  lowered l = {0};
  ts_status status = lower(graph, &l);
  if (!status) free_lowered(&l);
  ts_status_free(status);
}

START_TEST(failing_allocations)
{
  ts_graph *graph = parse(COUNT("f16", "10", "3"));
  CK_FAIL_EACH_ALLOCATION(lower_and_free(graph));
  ts_graph_destroy(graph);
}
END_TEST

/* ---- results ---- */

static ts_buffer *compiled(const ts_graph *graph, ts_buffer *arg) {
  ts_executable *exe;
  ts_buffer *out;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, &arg, 1, NULL, &out));
  ts_executable_release(exe);
  return out;
}

static void check_runs(const char *text, ts_buffer *arg, int64_t tolerance) {
  ts_graph *graph = parse(text);
  ts_buffer *expected;
  ck_assert(ts_whole_supported(graph, last_op(graph)));
  ck_assert_ok(ts_ref_run(graph, &arg, 1, ts_pool_default(), &expected));
  test_close(compiled(graph, arg), expected, tolerance);
  ts_buffer_release(arg);
  ts_graph_destroy(graph);
}

/* Counts by twos to 100: in every type the limit and all steps are exact. */
#define COUNT_TYPE(type) COUNT(type, "100", "2")
static const struct {
  ts_dtype type;
  const char *text;
} counts[] = {{TS_S8, COUNT_TYPE("s8")},     {TS_S16, COUNT_TYPE("s16")}, {TS_S32, COUNT_TYPE("s32")},
              {TS_S64, COUNT_TYPE("s64")},   {TS_U8, COUNT_TYPE("u8")},   {TS_U16, COUNT_TYPE("u16")},
              {TS_U32, COUNT_TYPE("u32")},   {TS_U64, COUNT_TYPE("u64")}, {TS_F16, COUNT_TYPE("f16")},
              {TS_BF16, COUNT_TYPE("bf16")}, {TS_F32, COUNT_TYPE("f32")}, {TS_F64, COUNT_TYPE("f64")}};

START_TEST(counts_in_every_type)
{
  check_runs(counts[_i].text, SCALAR(counts[_i].type, 0), 0);
  check_runs(counts[_i].text, SCALAR(counts[_i].type, 101), 0); /* no round at all */
}
END_TEST

static const char nested[] = GRAPH(
    "%0: s32[]", "s32[]",
    "%1 = constant 0 : s32[]\n%2, %3 = while %1, %0 {\ncondition(%4: s32[], %5: s32[]) {\n%6 = constant 5 : s32[]\n"
    "%7 = less %4, %6 : u8[]\nreturn %7\n}\nbody(%8: s32[], %9: s32[]) {\n%10 = constant 1 : s32[]\n"
    "%11 = add %8, %10 : s32[]\n%12 = bitwise_and %8, %10 : s32[]\n%13 = constant 0 : s32[]\n"
    "%14 = equal %12, %13 : u8[]\n%15 = cond %14, %9 {\ntrue(%16: s32[]) {\n%17 = while %16 {\n"
    "condition(%18: s32[]) {\n%19 = constant 50 : s32[]\n%20 = less %18, %19 : u8[]\nreturn %20\n}\n"
    "body(%21: s32[]) {\n%22 = constant 7 : s32[]\n%23 = add %21, %22 : s32[]\nreturn %23\n}\n} : s32[]\n"
    "return %17\n}\nfalse(%24: s32[]) {\n%25 = constant 60 : s32[]\n%26 = subtract %24, %25 : s32[]\nreturn %26\n}\n"
    "} : s32[]\nreturn %11, %15\n}\n} : s32[], s32[]\nreturn %3\n");

START_TEST(nested_control)
{
  for (int start = -20; start <= 60; start += 10) check_runs(nested, SCALAR(TS_S32, start), 0);
}
END_TEST

/* Values that change places: all results of a body are read before the first is written. */
static const char swapped[] =
    GRAPH("%0: s32[]", "s32[]",
          "%1 = constant 1 : s32[]\n%2 = constant 2 : s32[]\n%3, %4, %5 = while %1, %2, %0 {\n"
          "condition(%6: s32[], %7: s32[], %8: s32[]) {\n%9 = constant 0 : s32[]\n%10 = greater %8, %9 : u8[]\n"
          "return %10\n}\nbody(%11: s32[], %12: s32[], %13: s32[]) {\n%14 = constant 1 : s32[]\n"
          "%15 = subtract %13, %14 : s32[]\nreturn %12, %11, %15\n}\n} : s32[], s32[], s32[]\nreturn %3\n");

START_TEST(values_change_places)
{
  for (int rounds = 0; rounds < 4; rounds++) check_runs(swapped, SCALAR(TS_S32, rounds), 0);
}
END_TEST

/* Functions of the vector math have the bits here that they have in a kernel. */
START_TEST(bits_of_functions)
{
  static const char loop[] = LOOP("f32", "[]", BELOW("f32", "2"),
                                  "%6 = exp %3 : f32[]\n%7 = tanh %6 : f32[]\n%8 = constant 2 : f32[]\n"
                                  "%9 = add %7, %8 : f32[]\nreturn %9\n");
  static const char plain[] = GRAPH("%0: f32[]", "f32[]",
                                    "%1 = exp %0 : f32[]\n%2 = tanh %1 : f32[]\n%3 = constant 2 : f32[]\n"
                                    "%4 = add %2, %3 : f32[]\nreturn %4\n");
  ts_graph *a = parse(loop), *b = parse(plain);
  for (int i = -30; i < 8; i++) {
    ts_buffer *arg = SCALAR(TS_F32, i / 4.0);
    test_equal(compiled(a, arg), compiled(b, arg));
    ts_buffer_release(arg);
  }
  ts_graph_destroy(a);
  ts_graph_destroy(b);
}
END_TEST

static TCase *lowering(void) {
  TCase *t = tcase_create("lowering");
  tcase_add_checked_fixture(t, test_leaks_begin, test_leaks_end);
  tcase_add_test(t, what_qualifies);
  tcase_add_test(t, long_bodies_do_not_qualify);
  tcase_add_test(t, constants_are_arguments);
  tcase_add_test(t, failing_allocations);
  return t;
}

static TCase *results(void) {
  TCase *t = tcase_create("results");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, counts_in_every_type, 0, sizeof counts / sizeof *counts);
  tcase_add_test(t, nested_control);
  tcase_add_test(t, values_change_places);
  tcase_add_test(t, bits_of_functions);
  return t;
}

static Suite *suite(void) {
  Suite *s = suite_create("whole");
  suite_add_tcase(s, lowering());
  suite_add_tcase(s, results());
  return s;
}

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  return testing_run(suite());
}
