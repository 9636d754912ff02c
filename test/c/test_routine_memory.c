/* Routines short of memory: transforms, convolutions, windows, scatters, scans, sorts and stripes, of sizes that plan
 * and run each of their ways. Whichever allocation fails, compiling and running ends with an error and keeps nothing.
 * (Factorizations: test_linalg, test_factors; custom calls: tessera_fault_tests.) */
#include "random_graph.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#define WINDOW(sizes, strides) \
  " {sizes = " sizes ", strides = " strides ", low = [1,0], high = [0,1], dilation = [1,1]} : "

static const char *const programs[] = {
    /* lanes, a long line, Bluestein's short and long, columns where they are, pairs of real numbers */
    "(%0: c64[20,15]) -> (c64[20,15]) {\n  %1 = fft %0 {axis = 1, length = 15} : c64[20,15]",
    "(%0: c128[2,4096]) -> (c128[2,4096]) {\n  %1 = fft %0 {axis = 1, length = 4096} : c128[2,4096]",
    "(%0: c64[3,17]) -> (c64[3,17]) {\n  %1 = ifft %0 {axis = 1, length = 17} : c64[3,17]",
    "(%0: c64[2,1009]) -> (c64[2,1009]) {\n  %1 = fft %0 {axis = 1, length = 1009} : c64[2,1009]",
    "(%0: c64[64,50]) -> (c64[64,50]) {\n  %1 = fft %0 {axis = 0, length = 64} : c64[64,50]",
    "(%0: f64[3,1000]) -> (c128[3,501]) {\n  %1 = rfft %0 {axis = 1, length = 1000} : c128[3,501]",
    "(%0: c64[3,501]) -> (f32[3,1000]) {\n  %1 = irfft %0 {axis = 1, length = 1000} : f32[3,1000]",
    /* by products, depthwise, of small channels, of another type */
    "(%0: f32[2,20,21,16], %1: f32[3,3,16,24]) -> (f32[2,18,19,24]) {\n  %2 = conv %0, %1 {strides = [1,1], low = "
    "[0,0], "
    "high = [0,0], input_dilation = [1,1], kernel_dilation = [1,1], groups = 1} : f32[2,18,19,24]",
    "(%0: f32[2,20,20,32], %1: f32[3,3,1,32]) -> (f32[2,18,18,32]) {\n  %2 = conv %0, %1 {strides = [1,1], low = "
    "[0,0], "
    "high = [0,0], input_dilation = [1,1], kernel_dilation = [1,1], groups = 32} : f32[2,18,18,32]",
    "(%0: f64[1,64,3], %1: f64[7,3,8]) -> (f64[1,30,8]) {\n  %2 = conv %0, %1 {strides = [2], low = [0], high = [2], "
    "input_dilation = [1], kernel_dilation = [1], groups = 1} : f64[1,30,8]",
    "(%0: f32[40,60]) -> (f32[39,58]) {\n  %1 = window_sum %0" WINDOW("[3,4]", "[1,1]") "f32[39,58]",
    "(%0: bf16[40,60]) -> (bf16[20,30]) {\n  %1 = window_max %0" WINDOW("[2,2]", "[2,2]") "bf16[20,30]",
    "(%0: c64[40,60]) -> (c64[39,58]) {\n  %1 = window_product %0" WINDOW("[3,4]", "[1,1]") "c64[39,58]",
    "(%0: f32[40,60], %1: f32[20,30], %2: f32[]) -> (f32[40,60]) {\n  %3 = window_scatter_max %0, %1, %2" WINDOW(
        "[2,2]", "[2,2]") "f32[40,60]",
    "(%0: f32[100,8], %1: s32[5000,1], %2: f32[5000,8]) -> (f32[100,8]) {\n  %3 = indexed_add %0, %1, %2 {axes = [0]} "
    ": "
    "f32[100,8]",
    "(%0: s16[70,90], %1: s64[3000,2], %2: s16[3000]) -> (s16[70,90]) {\n  %3 = indexed_put %0, %1, %2 {axes = [0,1]} "
    ": "
    "s16[70,90]",
    "(%0: f32[30,4000]) -> (f32[30,4000]) {\n  %1 = cumulative_sum %0 {axis = 1, reverse = false} : f32[30,4000]",
    "(%0: c64[500,7]) -> (c64[500,7]) {\n  %1 = cumulative_product %0 {axis = 0, reverse = true} : c64[500,7]",
    /* lanes, digits, parts of a line, order, the largest */
    "(%0: f32[50,20]) -> (f32[50,20]) {\n  %1 = sort %0 {axis = 1, descending = false} : f32[50,20]",
    "(%0: u8[100000]) -> (u8[100000]) {\n  %1 = sort %0 {axis = 0, descending = true} : u8[100000]",
    "(%0: f64[200000]) -> (f64[200000]) {\n  %1 = sort %0 {axis = 0, descending = false} : f64[200000]",
    "(%0: s32[9000,3]) -> (s64[9000,3]) {\n  %1 = argsort %0 {axis = 0, descending = false} : s64[9000,3]",
    /* stripes between products */
    "(%0: f32[2,200,20], %1: f32[2,20,300], %2: f32[2,300,30]) -> (f32[2,200,30]) {\n"
    "  %3 = dot_general %0, %1 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : "
    "f32[2,200,300]\n  %4 = exp %3 : f32[2,200,300]\n"
    "  %5 = dot_general %4, %2 {lhs_contract = [2], lhs_batch = [0], rhs_contract = [1], rhs_batch = [0]} : "
    "f32[2,200,30]",
    "(%0: f32[3,50000]) -> (f32[3,10], s32[3,10]) {\n  %1, %2 = top_k %0 {k = 10} : f32[3,10], s32[3,10]",
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static bool has_two_results(const char *text) { return strstr(text, "top_k") != NULL; }

static ts_graph *parse(const char *program) {
  char text[600];
  ts_graph *graph;
  const char *line = strrchr(program, '\n');
  const int last = line[strcspn(line, "=") - 2] - '0'; /* the number before its first = */
  snprintf(text, sizeof text,
           has_two_results(program) ? "graph @main%s\n  return %%1, %%%d\n}\n" : "graph @main%s\n  return %%%d\n}\n",
           program, last);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  return graph;
}

START_TEST(every_allocation_fails)
{
  ts_graph *graph = parse(programs[_i]);
  ts_buffer **args;
  ck_assert_ok(ts_random_args(3, graph, ts_pool_default(), &args));
  check_routine_allocations(graph, args);
  test_leaks_begin(); /* kernels and parts of products stay */
  check_routine_allocations(graph, args);
  test_leaks_end();
  ts_random_args_free(args, ts_graph_region(graph, TS_ROOT)->params.count);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("routine memory");
  TCase *tests = tcase_create("routine memory");
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, every_allocation_fails, 0, PROGRAMS);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
