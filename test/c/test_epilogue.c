/* Kernels that run on the parts of a product: the same bits as when they run after it, on any number of threads and
 * with donated arguments, for random sizes. Programs of other forms are in test/golden/epilogue. */
#include <math.h>

#include "exec/executable.h"
#include "random_graph.h"
#include "testing.h"

#define MATRICES "{lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []}"

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

/* Of two NaNs an instruction keeps the first operand's sign, and LLVM chooses for each loop which operand is the first.
 */
static bool same_bits(const ts_buffer *a, const ts_buffer *b) {
  const char *x = a->data, *y = b->data;
  for (int64_t i = 0; i < a->bytes; i += (int64_t)sizeof(float)) {
    float v, w;
    memcpy(&v, x + i, sizeof v);
    memcpy(&w, y + i, sizeof w);
    if (memcmp(x + i, y + i, sizeof v) != 0 && !(isnan(v) && isnan(w))) return false;
  }
  return true;
}

static void check_same(const char *text, ts_buffer **got, ts_buffer *const *expected, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ck_assert_int_eq(got[i]->dtype, TS_F32);
    ck_assert_int_eq(got[i]->bytes, expected[i]->bytes);
    ck_assert_msg(same_bits(got[i], expected[i]), "%s: result %zu", text, i);
    ts_buffer_release(got[i]);
  }
}

static void check_modes(const char *text, const ts_graph *graph, ts_buffer *const *args, ts_buffer *const *expected) {
  static const ts_compile_options modes[] = {{0}, {.no_simplify = true}, {.general_kernels = true}};
  size_t params = ts_graph_region(graph, TS_ROOT)->params.count;
  size_t results = ts_graph_region(graph, TS_ROOT)->results.count;
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    ts_executable *exe;
    ts_buffer *got[MAX_RESULTS];
    ck_assert_ok(ts_executable_create(graph, &modes[m], &exe));
    for (int way = 0; way < 4; way++) {
      run(exe, args, params, way & 1, way & 2, got);
      check_same(text, got, expected, results);
    }
    ts_executable_release(exe);
  }
}

static void check_program(const char *text, uint64_t seed) {
  static const ts_compile_options plain = {.no_fusion = true, .no_simplify = true};
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer **args, *expected[MAX_RESULTS];
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  size_t params = ts_graph_region(graph, TS_ROOT)->params.count;
  size_t results = ts_graph_region(graph, TS_ROOT)->results.count;
  ck_assert_uint_le(results, MAX_RESULTS);
  ck_assert_ok(ts_random_args(seed, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_executable_create(graph, &plain, &exe));
  run(exe, args, params, 1, false, expected);
  ts_executable_release(exe);
  check_modes(text, graph, args, expected);
  for (size_t i = 0; i < results; i++) ts_buffer_release(expected[i]);
  ts_random_args_free(args, params);
  ts_graph_destroy(graph);
}

static int64_t next_size(uint64_t *random, int64_t most) {
  *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (int64_t)(*random >> 33) % most + 1;
}

static void check_sizes(int m, int k, int n, uint64_t seed) {
  char text[2048];
  snprintf(text, sizeof text,
           "graph @main(%%0: f32[%d,%d], %%1: f32[%d,%d], %%3: f32[%d], %%4: f32[%d,%d]) -> (f32[%d,%d], f32[%d]) {\n"
           "  %%2 = dot_general %%0, %%1 " MATRICES " : f32[%d,%d]\n"
           "  %%5 = broadcast %%3 {shape = [%d,%d], axes = [1]} : f32[%d,%d]\n  %%6 = add %%2, %%5 : f32[%d,%d]\n"
           "  %%7 = multiply %%6, %%4 : f32[%d,%d]\n  %%8 = reduce_max %%7 {axes = [1]} : f32[%d]\n"
           "  return %%7, %%8\n}\n",
           m, k, k, n, n, m, n, m, n, m, m, n, m, n, m, n, m, n, m, n, m);
  check_program(text, seed);
}

/* Sizes at which tasks, groups of columns and blocks of k come out in all ways. */
START_TEST(any_size)
{
  uint64_t random = 42;
  for (int i = 0; i < 60; i++) {
    int64_t d[3];
    for (int k = 0; k < 3; k++) d[k] = next_size(&random, i % 3 == k ? 1500 : 90);
    check_sizes((int)d[0], (int)d[1], (int)d[2], (uint64_t)i + 1);
  }
}
END_TEST

/* The epilogue computes rows as groups of interleaved members, where they are many. */
START_TEST(few_columns)
{
  uint64_t random = 43;
  for (int n = 2; n <= 16; n++) {
    const int64_t k = next_size(&random, 90), rows = 32768 / n + next_size(&random, 1000);
    check_sizes((int)rows, (int)k, n, (uint64_t)n);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("epilogue");
  TCase *t = tcase_create("epilogue");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, any_size);
  tcase_add_test(t, few_columns);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
