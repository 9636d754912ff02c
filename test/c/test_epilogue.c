/* Kernels that run on the parts of a product, or between two products stripe by stripe: the same bits as when they run
 * after it, on any number of threads and with donated arguments, for random sizes. Programs of other forms are in
 * test/golden/epilogue and test/golden/stripes. */
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

/* ---- stripes ---- */

typedef struct attention {
  int batch, heads, m, n, k, d;
  bool turned; /* the last operand is {d, n} in place of {n, d} */
  bool inside; /* heads are between rows and columns, of the operands and of the result */
  int kernel;  /* softmax, with a mask that is added, with one that selects; exp(x - log of sums); a maximum */
} attention;

/* What the kernel computes of %3, of type `t`, the scores; %2 is the mask. Returns its text, whose result is %9. */
static void write_kernel(const attention *a, const char *t, char *out, size_t bytes) {
  static const char *const masks[] = {
      "  %%4 = constant 0.25 : %s\n  %%5 = multiply %%3, %%4 : %s\n",
      "  %%4 = broadcast %%2 {shape = [%d,%d,%d,%d], axes = [0,3]} : %s\n  %%5 = add %%3, %%4 : %s\n",
      "  %%20 = iota {axis = 2} : %s\n  %%21 = iota {axis = 3} : %s\n  %%22 = less %%20, %%21 : u8[%d,%d,%d,%d]\n"
      "  %%23 = constant -1e9 : %s\n  %%5 = select %%22, %%23, %%3 : %s\n"};
  char rows[64], mask[1024];
  snprintf(rows, sizeof rows, "f32[%d,%d,%d]", a->batch, a->heads, a->m);
  const int b = a->batch, h = a->heads, m = a->m, n = a->n;
  if (a->kernel == 1)
    snprintf(mask, sizeof mask, masks[1], b, h, m, n, t, t);
  else if (a->kernel == 2)
    snprintf(mask, sizeof mask, masks[2], t, t, b, h, m, n, t, t);
  else
    snprintf(mask, sizeof mask, masks[0], t, t);
  if (a->kernel == 4) {
    snprintf(out, bytes, "%s  %%6 = constant 0.0 : %s\n  %%9 = max %%5, %%6 : %s\n", mask, t, t);
    return;
  }
  int at =
      snprintf(out, bytes,
               "%s  %%6 = reduce_max %%5 {axes = [3]} : %s\n"
               "  %%7 = broadcast %%6 {shape = [%d,%d,%d,%d], axes = [0,1,2]} : %s\n"
               "  %%8 = subtract %%5, %%7 : %s\n  %%10 = exp %%8 : %s\n  %%11 = reduce_sum %%10 {axes = [3]} : %s\n",
               mask, rows, b, h, m, n, t, t, t, rows);
  if (a->kernel == 3)
    snprintf(out + at, bytes - (size_t)at,
             "  %%12 = log %%11 : %s\n  %%13 = broadcast %%12 {shape = [%d,%d,%d,%d], axes = [0,1,2]} : %s\n"
             "  %%14 = subtract %%8, %%13 : %s\n  %%9 = exp %%14 : %s\n",
             rows, b, h, m, n, t, t, t);
  else
    snprintf(out + at, bytes - (size_t)at,
             "  %%13 = broadcast %%11 {shape = [%d,%d,%d,%d], axes = [0,1,2]} : %s\n  %%9 = divide %%10, %%13 : %s\n",
             b, h, m, n, t, t);
}

static void print_operand(const attention *a, int rows, int cols, char *out, size_t bytes) {
  const int first = a->inside ? rows : a->heads, second = a->inside ? a->heads : rows;
  snprintf(out, bytes, "f32[%d,%d,%d,%d]", a->batch, first, second, cols);
}

/* A product with a transposed matrix, a kernel, another product, and an epilogue or a move of rows. */
static void check_attention(const attention *a, uint64_t seed) {
  char text[6144], kernel[3072], scores[64], product[64], out[64], q[64], k[64], v[64], last[256];
  const int b = a->batch, h = a->heads, head = a->inside ? 2 : 1, row = a->inside ? 1 : 2;
  snprintf(scores, sizeof scores, "f32[%d,%d,%d,%d]", b, h, a->m, a->n);
  snprintf(product, sizeof product, "f32[%d,%d,%d,%d]", b, h, a->m, a->d);
  print_operand(a, a->m, a->k, q, sizeof q);
  print_operand(a, a->n, a->k, k, sizeof k);
  print_operand(a, a->turned ? a->d : a->n, a->turned ? a->n : a->d, v, sizeof v);
  print_operand(a, a->m, a->d, out, sizeof out);
  write_kernel(a, scores, kernel, sizeof kernel);
  if (a->inside)
    snprintf(last, sizeof last, "  %%18 = transpose %%16 {axes = [0,2,1,3]} : %s\n", out);
  else
    snprintf(last, sizeof last, "  %%17 = constant 3.0 : %s\n  %%18 = multiply %%16, %%17 : %s\n", out, out);
  snprintf(
      text, sizeof text,
      "graph @main(%%0: %s, %%1: %s, %%2: f32[%d,%d], %%15: %s) -> (%s) {\n"
      "  %%3 = dot_general %%0, %%1 {lhs_contract = [3], lhs_batch = [0,%d], rhs_contract = [3], rhs_batch = [0,%d]} "
      ": %s\n%s"
      "  %%16 = dot_general %%9, %%15 {lhs_contract = [3], lhs_batch = [0,1], rhs_contract = [%d], rhs_batch = "
      "[0,%d]} : %s\n%s  return %%18\n}\n",
      q, k, b, a->n, v, out, head, head, scores, kernel, a->turned ? 3 : row, head, product, last);
  check_program(text, seed);
}

/* Several batches in a stripe, several stripes in a batch, and tasks of some stripes. */
START_TEST(between_products)
{
  uint64_t random = 44;
  for (int i = 0; i < 60; i++) {
    attention a = {.kernel = i % 5};
    a.batch = (int)next_size(&random, 3);
    a.heads = (int)next_size(&random, i % 4 == 0 ? 40 : 3);
    a.m = 8 + (int)next_size(&random, i % 4 == 0 ? 30 : i % 4 == 1 ? 700 : 150);
    a.n = (int)next_size(&random, i % 4 == 0 ? 40 : i % 4 == 2 ? 1500 : 500);
    a.k = (int)next_size(&random, 90);
    a.d = (int)next_size(&random, 90);
    a.turned = random >> 40 & 1;
    a.inside = random >> 41 & 1;
    check_attention(&a, (uint64_t)i + 1);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("epilogue");
  TCase *t = tcase_create("epilogue");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, any_size);
  tcase_add_test(t, few_columns);
  tcase_add_test(t, between_products);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
