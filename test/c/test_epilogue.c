/* Kernels that run on the parts of a product: the same bits as when they run after it, on any number of threads and
 * with donated arguments, and a step less where one can be saved. */
#include "exec/executable.h"
#include "random_graph.h"
#include "testing.h"

typedef struct program {
  const char *name;
  int steps; /* of the fused program */
  const char *text;
} program;

#define MATRICES "{lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []}"
#define BATCHES "{lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]}"
#define ROWS(op, x, y, z, type, shape, rows)                          \
  "  " y " = reduce_" op " " x " {axes = [1]} : " type "[" rows "]\n" \
  "  " z " = broadcast " y " {shape = [" shape "], axes = [0]} : " type "[" shape "]\n"
#define SOFTMAX(shape, rows)                          \
  ROWS("max", "%2", "%10", "%11", "f32", shape, rows) \
  "  %12 = subtract %2, %11 : f32[" shape "]\n"       \
  "  %13 = exp %12 : f32[" shape                      \
  "]\n" ROWS("sum", "%13", "%14", "%15", "f32", shape, rows) "  %16 = divide %13, %15 : f32[" shape "]\n"

static const program programs[] = {
    {"bias and relu", 1,
     "graph @main(%0: f32[300,200], %1: f32[200,700], %3: f32[700]) -> (f32[300,700]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[300,700]\n"
     "  %4 = broadcast %3 {shape = [300,700], axes = [1]} : f32[300,700]\n  %5 = add %2, %4 : f32[300,700]\n"
     "  %6 = constant 0.0 : f32[300,700]\n  %7 = max %5, %6 : f32[300,700]\n  return %7\n}\n"},
    {"a value for each row, few rows", 1,
     "graph @main(%0: f32[5,300], %1: f32[300,2500], %3: f32[5]) -> (f32[5,2500]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[5,2500]\n"
     "  %4 = broadcast %3 {shape = [5,2500], axes = [0]} : f32[5,2500]\n  %5 = multiply %2, %4 : f32[5,2500]\n"
     "  return %5\n}\n"},
    {"a tensor that dies first", 1,
     "graph @main(%0: f32[90,900], %1: f32[900,110], %3: f32[90,110]) -> (f32[90,110]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[90,110]\n  %4 = subtract %3, %2 : f32[90,110]\n  return %4\n}\n"},
    {"an operand of the product again", 1,
     "graph @main(%0: f32[150,150], %1: f32[150,150]) -> (f32[150,150]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[150,150]\n  %3 = add %0, %2 : f32[150,150]\n"
     "  %4 = multiply %3, %1 : f32[150,150]\n  return %4\n}\n"},
    {"in another shape", 1,
     "graph @main(%0: f32[60,70], %1: f32[70,120], %3: f32[4]) -> (f32[60,30,4]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[60,120]\n  %4 = reshape %2 {shape = [60,30,4]} : f32[60,30,4]\n"
     "  %5 = broadcast %3 {shape = [60,30,4], axes = [2]} : f32[60,30,4]\n  %6 = add %4, %5 : f32[60,30,4]\n"
     "  return %6\n}\n"},
    {"dims that cross the rows", 1,
     "graph @main(%0: f32[60,70], %1: f32[70,90], %3: f32[10]) -> (f32[10,540]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[60,90]\n  %4 = reshape %2 {shape = [10,540]} : f32[10,540]\n"
     "  %6 = broadcast %3 {shape = [10,540], axes = [0]} : f32[10,540]\n  %7 = add %4, %6 : f32[10,540]\n"
     "  return %7\n}\n"},
    {"what comes too late", 3,
     "graph @main(%0: f32[60,70], %1: f32[70,90], %3: f32[40,90]) -> (f32[60,90]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES
     " : f32[60,90]\n  %4 = cumulative_sum %3 {axis = 0, reverse = false} : f32[40,90]\n"
     "  %5 = slice %4 {start = [39,0], limit = [40,90], stride = [1,1]} : f32[1,90]\n"
     "  %6 = broadcast %5 {shape = [60,90], axes = [0,1]} : f32[60,90]\n  %7 = add %2, %6 : f32[60,90]\n"
     "  return %7\n}\n"},
    {"what is there in time", 2,
     "graph @main(%0: f32[60,70], %1: f32[70,90], %3: f32[60,90]) -> (f32[60,90], f32[60,90]) {\n"
     "  %4 = cumulative_sum %3 {axis = 0, reverse = false} : f32[60,90]\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[60,90]\n  %7 = add %2, %4 : f32[60,90]\n"
     "  return %7, %4\n}\n"},
    {"the product is a result, too", 1,
     "graph @main(%0: f32[64,200], %1: f32[200,300]) -> (f32[64,300], f32[64,300]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,300]\n  %3 = tanh %2 : f32[64,300]\n  return %2, %3\n}\n"},
    {"another type", 1,
     "graph @main(%0: f32[64,200], %1: f32[200,300]) -> (bf16[64,300]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,300]\n  %3 = convert %2 : bf16[64,300]\n  return %3\n}\n"},
    {"half precision", 1,
     "graph @main(%0: bf16[70,200], %1: bf16[200,2300], %3: bf16[2300]) -> (bf16[70,2300]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : bf16[70,2300]\n"
     "  %4 = broadcast %3 {shape = [70,2300], axes = [1]} : bf16[70,2300]\n  %5 = add %2, %4 : bf16[70,2300]\n"
     "  return %5\n}\n"},
    {"integers", 1,
     "graph @main(%0: s16[70,200], %1: s16[200,300]) -> (s16[70,300]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : s16[70,300]\n  %3 = negate %2 : s16[70,300]\n  return %3\n}\n"},
    {"softmax", 1,
     "graph @main(%0: f32[300,80], %1: f32[80,400]) -> (f32[300,400]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[300,400]\n" SOFTMAX("300,400", "300") "  return %16\n}\n"},
    {"softmax of few rows", 1,
     "graph @main(%0: f32[9,300], %1: f32[300,3000]) -> (f32[9,3000]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[9,3000]\n" SOFTMAX("9,3000", "9") "  return %16\n}\n"},
    {"softmax of one row", 1,
     "graph @main(%0: f32[1,300], %1: f32[300,4000]) -> (f32[1,4000]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[1,4000]\n" SOFTMAX("1,4000", "1") "  return %16\n}\n"},
    {"softmax, half precision", 1,
     "graph @main(%0: f16[50,80], %1: f16[80,1500]) -> (f16[50,1500]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES
     " : f16[50,1500]\n" ROWS("max", "%2", "%10", "%11", "f16", "50,1500",
                              "50") "  %12 = subtract %2, %11 : f16[50,1500]\n  return %12\n}\n"},
    {"a sum of each row", 1,
     "graph @main(%0: f32[300,80], %1: f32[80,400]) -> (f32[300]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[300,400]\n  %3 = reduce_sum %2 {axes = [1]} : f32[300]\n"
     "  return %3\n}\n"},
    {"a batch with one mask", 1,
     "graph @main(%0: f32[6,90,40], %1: f32[6,40,130], %3: u8[90,130]) -> (f32[6,90,130]) {\n"
     "  %2 = dot_general %0, %1 " BATCHES " : f32[6,90,130]\n"
     "  %4 = broadcast %3 {shape = [6,90,130], axes = [1,2]} : u8[6,90,130]\n"
     "  %5 = constant -1e30 : f32[6,90,130]\n  %6 = select %4, %2, %5 : f32[6,90,130]\n  return %6\n}\n"},
    {"two products", 2,
     "graph @main(%0: f32[64,100], %1: f32[100,256], %3: f32[64,80], %4: f32[80,256]) -> (f32[64,256]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,256]\n  %5 = dot_general %3, %4 " MATRICES " : f32[64,256]\n"
     "  %6 = add %2, %5 : f32[64,256]\n  %7 = tanh %6 : f32[64,256]\n  return %7\n}\n"},
    {"two products and their own", 2,
     "graph @main(%0: f32[64,100], %1: f32[100,256], %3: f32[64,80], %4: f32[80,57]) -> (f32[64,256], f32[64,57]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,256]\n  %5 = dot_general %3, %4 " MATRICES " : f32[64,57]\n"
     "  %6 = tanh %2 : f32[64,256]\n  %7 = exp %5 : f32[64,57]\n  return %6, %7\n}\n"},
    {"turned", 2,
     "graph @main(%0: f32[64,100], %1: f32[100,256], %3: f32[256,64]) -> (f32[256,64], f32[64,256]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,256]\n  %4 = transpose %2 {axes = [1,0]} : f32[256,64]\n"
     "  %5 = multiply %4, %3 : f32[256,64]\n  %6 = add %5, %4 : f32[256,64]\n  return %6, %2\n}\n"},
    {"in order and in reverse", 2,
     "graph @main(%0: f32[64,100], %1: f32[100,256]) -> (f32[64,256]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[64,256]\n  %3 = reverse %2 {axes = [0]} : f32[64,256]\n"
     "  %4 = subtract %2, %3 : f32[64,256]\n  return %4\n}\n"},
    {"a sum of each column", 2,
     "graph @main(%0: f32[300,80], %1: f32[80,400]) -> (f32[400]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[300,400]\n  %3 = reduce_sum %2 {axes = [0]} : f32[400]\n"
     "  return %3\n}\n"},
    {"one column", 1,
     "graph @main(%0: f32[3000,300], %1: f32[300,1]) -> (f32[3000,1]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[3000,1]\n  %3 = tanh %2 : f32[3000,1]\n  return %3\n}\n"},
    {"nothing to add up", 1,
     "graph @main(%0: f32[30,0], %1: f32[0,40], %3: f32[40]) -> (f32[30,40]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[30,40]\n"
     "  %4 = broadcast %3 {shape = [30,40], axes = [1]} : f32[30,40]\n  %5 = add %2, %4 : f32[30,40]\n  return "
     "%5\n}\n"},
    {"too large for the caches", 1,
     "graph @main(%0: f32[2500,9], %1: f32[9,2560], %3: f32[2560]) -> (f32[2500,2560]) {\n"
     "  %2 = dot_general %0, %1 " MATRICES " : f32[2500,2560]\n"
     "  %4 = broadcast %3 {shape = [2500,2560], axes = [1]} : f32[2500,2560]\n  %5 = add %2, %4 : f32[2500,2560]\n"
     "  return %5\n}\n"},
    {"in a loop", 1, /* at the root: the loop */
     "graph @main(%0: f32[40,40], %1: f32[40,40]) -> (s32[], f32[40,40]) {\n  %2 = constant 0 : s32[]\n"
     "  %3, %4, %5 = while %2, %0, %1 {\n    condition(%6: s32[], %7: f32[40,40], %8: f32[40,40]) {\n"
     "      %9 = constant 5 : s32[]\n      %10 = less %6, %9 : u8[]\n      return %10\n    }\n"
     "    body(%11: s32[], %12: f32[40,40], %13: f32[40,40]) {\n      %14 = constant 1 : s32[]\n"
     "      %15 = add %11, %14 : s32[]\n      %16 = dot_general %12, %13 " MATRICES " : f32[40,40]\n"
     "      %17 = tanh %16 : f32[40,40]\n      %18 = add %17, %13 : f32[40,40]\n      return %15, %17, %18\n    }\n"
     "  } : s32[], f32[40,40], f32[40,40]\n  return %3, %4\n}\n"},
};

enum { MAX_ARGS = 8, MAX_RESULTS = 4 };

static void run(const ts_executable *exe, ts_buffer *const *args, size_t count, int threads, bool donated,
                ts_buffer **out) {
  ts_run_options options = {.threads = threads, .donated = TS_BITS(donated ? UINT64_MAX : 0)};
  ts_buffer *copies[MAX_ARGS];
  ck_assert_uint_le(count, MAX_ARGS);
  for (size_t i = 0; donated && i < count; i++) {
    ck_assert_ok(ts_buffer_create(ts_pool_default(), args[i]->dtype, &args[i]->shape, &copies[i]));
    if (args[i]->bytes > 0) memcpy(copies[i]->data, args[i]->data, (size_t)args[i]->bytes);
  }
  ck_assert_ok(ts_executable_run(exe, donated ? copies : args, count, &options, out));
}

static void check_same(const char *name, ts_buffer **got, ts_buffer *const *expected, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ck_assert_int_eq(got[i]->bytes, expected[i]->bytes);
    ck_assert_msg(memcmp(got[i]->data, expected[i]->data, (size_t)got[i]->bytes) == 0, "%s: result %zu", name, i);
    ts_buffer_release(got[i]);
  }
}

static void check_modes(const program *p, const ts_graph *graph, ts_buffer *const *args, ts_buffer *const *expected) {
  static const ts_compile_options modes[] = {{0}, {.no_simplify = true}, {.general_kernels = true}};
  size_t params = ts_graph_region(graph, TS_ROOT)->params.count;
  size_t results = ts_graph_region(graph, TS_ROOT)->results.count;
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    ts_executable *exe;
    ts_executable_stats stats;
    ts_buffer *got[MAX_RESULTS];
    ck_assert_ok(ts_executable_create(graph, &modes[m], &exe));
    ts_executable_get_stats(exe, &stats);
    if (m == 0 && p->steps > 0) ck_assert_msg(stats.steps == p->steps, "%s: %d steps", p->name, (int)stats.steps);
    for (int way = 0; way < 4; way++) {
      run(exe, args, params, way & 1, way & 2, got);
      check_same(p->name, got, expected, results);
    }
    ts_executable_release(exe);
  }
}

static void check_program(const program *p, uint64_t seed) {
  static const ts_compile_options plain = {.no_fusion = true, .no_simplify = true};
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer **args, *expected[MAX_RESULTS];
  ck_assert_msg(p->text, "%s", p->name);
  ck_assert_ok(ts_graph_parse(p->text, strlen(p->text), &graph));
  size_t params = ts_graph_region(graph, TS_ROOT)->params.count;
  size_t results = ts_graph_region(graph, TS_ROOT)->results.count;
  ck_assert_uint_le(results, MAX_RESULTS);
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_executable_create(graph, &plain, &exe));
  run(exe, args, params, 1, false, expected);
  ts_executable_release(exe);
  check_modes(p, graph, args, expected);
  for (size_t i = 0; i < results; i++) ts_buffer_release(expected[i]);
  ts_random_args_free(args, params);
  ts_graph_destroy(graph);
}

START_TEST(the_same_bits)
{ check_program(&programs[_i], 11); }
END_TEST

/* Sizes at which tasks, groups of columns and blocks of k come out in all ways. */
START_TEST(any_size)
{
  uint64_t random = 42;
  for (int i = 0; i < 60; i++) {
    int64_t d[3];
    for (int k = 0; k < 3; k++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      d[k] = (int64_t)(random >> 33) % (i % 3 == k ? 1500 : 90) + 1;
    }
    char text[2048];
    int m = (int)d[0], k = (int)d[1], n = (int)d[2];
    snprintf(text, sizeof text,
             "graph @main(%%0: f32[%d,%d], %%1: f32[%d,%d], %%3: f32[%d], %%4: f32[%d,%d]) -> (f32[%d,%d], f32[%d]) {\n"
             "  %%2 = dot_general %%0, %%1 " MATRICES " : f32[%d,%d]\n"
             "  %%5 = broadcast %%3 {shape = [%d,%d], axes = [1]} : f32[%d,%d]\n  %%6 = add %%2, %%5 : f32[%d,%d]\n"
             "  %%7 = multiply %%6, %%4 : f32[%d,%d]\n  %%8 = reduce_max %%7 {axes = [1]} : f32[%d]\n"
             "  return %%7, %%8\n}\n",
             m, k, k, n, n, m, n, m, n, m, m, n, m, n, m, n, m, n, m, n, m);
    check_program(&(program){"any size", 0, text}, (uint64_t)i + 1);
  }
}
END_TEST

/* What is planned for a product that its epilogue turns into the result is the result alone. */
START_TEST(no_memory_for_the_product)
{
  ts_graph *graph;
  ts_executable *exe;
  ts_executable_stats stats;
  ck_assert_ok(ts_graph_parse(programs[0].text, strlen(programs[0].text), &graph));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ts_executable_get_stats(exe, &stats);
  ck_assert_int_eq(stats.temp_bytes, 0);
  ck_assert_int_eq(stats.result_bytes, 300 * 700 * 4);
  ts_text text = {0};
  ck_assert_ok(ts_executable_explain(exe, &text));
  ck_assert_ptr_nonnull(strstr(text.data, "on the parts of the product"));
  ts_text_deinit(&text);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

/* A widened and scaled weight is never in memory: beside the result there is nothing. */
START_TEST(no_memory_for_a_scaled_weight)
{
  static const char *const weights[][2] = {{"s8[500,600]", "f32"}, {"f8[500,600]", "bf16"}, {"s4[500,600]", "f16"}};
  for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
    const char *weight = weights[i][0], *type = weights[i][1];
    char text[1024];
    ts_graph *graph;
    ts_executable *exe;
    ts_executable_stats stats;
    snprintf(text, sizeof text,
             "graph @main(%%0: %s[40,500], %%1: %s, %%2: %s[1,600]) -> (%s[40,600]) {\n"
             "  %%3 = convert %%1 : %s[500,600]\n"
             "  %%4 = broadcast %%2 {shape = [500,600], axes = [0,1]} : %s[500,600]\n"
             "  %%5 = multiply %%3, %%4 : %s[500,600]\n"
             "  %%6 = dot_general %%0, %%5 " MATRICES " : %s[40,600]\n  return %%6\n}\n",
             type, weight, type, type, type, type, type, type);
    check_program(&(program){"scaled weight", 0, text}, 3);
    ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
    ck_assert_ok(ts_executable_create(graph, NULL, &exe));
    ts_executable_get_stats(exe, &stats);
    ck_assert_int_eq(stats.temp_bytes, 0);
    ts_executable_release(exe);
    ts_graph_destroy(graph);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("epilogue");
  TCase *t = tcase_create("epilogue");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, the_same_bits, 0, sizeof programs / sizeof programs[0]);
  tcase_add_test(t, any_size);
  tcase_add_test(t, no_memory_for_the_product);
  tcase_add_test(t, no_memory_for_a_scaled_weight);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
