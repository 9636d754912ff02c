/* Contractions without free dims: their order against a plain model, bit for bit, for numbers of terms around lanes,
 * chains and blocks; errors of long sums; batches, dims in any order and halves against the interpreter; the same bits
 * on any number of threads and with lesser instruction sets; cancelling; allocations that fail. */
#include "exec/executable.h"
#include "jit/session/target.h"
#include "kernel/ref/ref.h"
#include "routine_check.h"
#include "tensor/dot_order.h"
#include "tensors.h"
#include "testing.h"

#include "lesser_isa.h"
#include "tool/compare.h"

#include <math.h>
#include <stdlib.h>

static const ts_dtype types[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
enum { WIDE_TYPES = 2, TYPES = sizeof types / sizeof *types };

#define DIMS(...)                                                                                  \
  {                                                                                                \
    .rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = { __VA_ARGS__ } \
  }

typedef struct dot_case {
  ts_shape lhs, rhs;
  ts_dims lhs_batch, lhs_contract, rhs_batch, rhs_contract;
} dot_case;

static const dot_case cases[] = {
    {DIMS(5), DIMS(5), {0}, DIMS(0), {0}, DIMS(0)},
    {{0}, {0}, {0}, {0}, {0}, {0}},
    {DIMS(3), DIMS(3), DIMS(0), {0}, DIMS(0), {0}},
    {DIMS(0, 4), DIMS(0, 4), DIMS(0), DIMS(1), DIMS(0), DIMS(1)},
    {DIMS(3, 0), DIMS(3, 0), DIMS(0), DIMS(1), DIMS(0), DIMS(1)},
    {DIMS(7, 65), DIMS(7, 65), DIMS(0), DIMS(1), DIMS(0), DIMS(1)},
    {DIMS(65, 7), DIMS(7, 65), DIMS(1), DIMS(0), DIMS(0), DIMS(1)},
    {DIMS(2, 3, 50), DIMS(50, 2, 3), DIMS(0), DIMS(2, 1), DIMS(1), DIMS(0, 2)},
    {DIMS(5, 4, 3, 2), DIMS(2, 3, 4, 5), DIMS(3, 0), DIMS(1, 2), DIMS(0, 3), DIMS(2, 1)},
    {DIMS(90, 91), DIMS(91, 90), {0}, DIMS(0, 1), {0}, DIMS(1, 0)},
    {DIMS(20000, 3), DIMS(20000, 3), DIMS(0), DIMS(1), DIMS(0), DIMS(1)},
    {DIMS(3, 20000), DIMS(3, 20000), DIMS(0), DIMS(1), DIMS(0), DIMS(1)},
    {DIMS(150001), DIMS(150001), {0}, DIMS(0), {0}, DIMS(0)},
};
enum { CASES = sizeof cases / sizeof *cases, LARGE = CASES - 3 };

static const dot_case one_dim = {DIMS(1), DIMS(1), {0}, DIMS(0), {0}, DIMS(0)};

static double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 33) / (double)(INT64_C(1) << 31);
}

static ts_buffer *numbers(ts_dtype type, ts_shape shape, uint64_t seed) {
  ts_buffer *x;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &x));
  for (int64_t i = 0; i < ts_shape_elements(&shape); i++)
    ts_scalar_store(type, ts_scalar_from_f64(type, 3 * noise(&seed) - 1),
                    (char *)x->data + i * (int64_t)ts_dtype_size(type));
  return x;
}

static ts_graph *make_graph(ts_dtype type, const dot_case *c) {
  ts_graph *graph = test_graph();
  ts_value_id x[2] = {test_add_param(graph, TS_ROOT, type, c->lhs), test_add_param(graph, TS_ROOT, type, c->rhs)};
  const ts_attrs attrs = {.dot = {.lhs_contract = c->lhs_contract,
                                  .lhs_batch = c->lhs_batch,
                                  .rhs_contract = c->rhs_contract,
                                  .rhs_batch = c->rhs_batch}};
  ts_value_id out = test_add_op(graph, TS_ROOT, TS_OP_DOT, &attrs, x, 2);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
  return graph;
}

static ts_buffer *compiled(const ts_graph *graph, ts_buffer *const args[2]) {
  ts_executable *exe;
  ts_buffer *out;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 2, NULL, &out));
  ts_executable_release(exe);
  return out;
}

static ts_buffer *dot(ts_buffer *x, ts_buffer *y) {
  dot_case c = one_dim;
  c.lhs = c.rhs = SHAPE(x->shape.dims[0]); /* the buffer has room for the dims that it has, not for a whole shape */
  ts_graph *graph = make_graph(x->dtype, &c);
  ts_buffer *out = compiled(graph, (ts_buffer *[]){x, y});
  ts_graph_destroy(graph);
  return out;
}

/* ---- the order of tensor/dot_order.h ---- */

#define DEFINE_MODEL(T, FMA)                                                                                           \
  static T term_##T(T a, T b, T sum) {                                                                                 \
    volatile T product = a * b;                                                                                        \
    return ts_target_host()->fma ? FMA(a, b, sum) : product + sum;                                                     \
  }                                                                                                                    \
  static T lane_##T(const T *x, const T *y, int64_t n, int64_t lane) {                                                 \
    const int64_t lanes = 256 / (int64_t)sizeof(T);                                                                    \
    T sum = 0;                                                                                                         \
    for (int64_t first = 0; first < n; first += 16 * lanes) {                                                          \
      T chain = 0;                                                                                                     \
      for (int64_t k = first + lane; k < n && k < first + 16 * lanes; k += lanes) chain = term_##T(x[k], y[k], chain); \
      sum = first == 0 ? chain : sum + chain;                                                                          \
    }                                                                                                                  \
    return sum;                                                                                                        \
  }                                                                                                                    \
  static T lanes_##T(const T *x, const T *y, int64_t n, int64_t lane, int64_t step) {                                  \
    if (step == 256 / (int64_t)sizeof(T)) return lane_##T(x, y, n, lane);                                              \
    return lanes_##T(x, y, n, lane, 2 * step) + lanes_##T(x, y, n, lane + step, 2 * step);                             \
  }                                                                                                                    \
  static T model_##T(const T *x, const T *y, int64_t n) {                                                              \
    int64_t half = 256 / (int64_t)sizeof(T) * 256;                                                                     \
    if (n <= half) return lanes_##T(x, y, n, 0, 1);                                                                    \
    while (2 * half < n) half *= 2;                                                                                    \
    return model_##T(x, y, half) + model_##T(x + half, y + half, n - half);                                            \
  }
DEFINE_MODEL(float, fmaf)
DEFINE_MODEL(double, fma)

static void check_order(ts_dtype type, int64_t n) {
  ts_buffer *x = numbers(type, SHAPE(n), 11), *y = numbers(type, SHAPE(n), 12), *got = dot(x, y);
  const double expected = type == TS_F32 ? (double)model_float(x->data, y->data, n) : model_double(x->data, y->data, n);
  const double result = type == TS_F32 ? (double)*(float *)got->data : *(double *)got->data;
  ck_assert_msg(expected == result, "%s, %lld terms: %a, expected %a", ts_dtype_name(type), (long long)n, result,
                expected);
  ts_buffer_release(x);
  ts_buffer_release(y);
  ts_buffer_release(got);
}

START_TEST(sums_follow_the_order)
{
  for (int t = 0; t < WIDE_TYPES; t++) {
    const int64_t lanes = ts_dot_lanes((int64_t)ts_dtype_size(types[t])), chain = lanes * TS_DOT_CHAIN,
                  block = chain * TS_DOT_CHAINS;
    const int64_t around[] = {lanes, 2 * lanes, chain, 2 * chain, block, 2 * block, 3 * block, 4 * block, 7 * block};
    for (int64_t n = 0; n <= 70; n++) check_order(types[t], n);
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
      for (int64_t n = around[i] - 1; n <= around[i] + 1; n++) check_order(types[t], n);
    check_order(types[t], 5 * block + 3 * chain + lanes + 9);
  }
}
END_TEST

/* ---- errors ---- */

static double error_of(double got, long double exact) { return (double)fabsl(((long double)got - exact) / exact); }

static void check_error(int64_t n, bool constant, double bound) {
  ts_buffer *x = numbers(TS_F32, SHAPE(n), 21), *y = numbers(TS_F32, SHAPE(n), 22);
  float *a = x->data, *b = y->data;
  long double exact = 0;
  for (int64_t i = 0; i < n; i++) {
    a[i] = constant ? 1 : fabsf(a[i]);
    b[i] = constant ? 0.1F : fabsf(b[i]);
    exact += (long double)a[i] * (long double)b[i];
  }
  ts_buffer *out = dot(x, y);
  const double error = error_of((double)*(float *)out->data, exact);
  ck_assert_msg(error <= bound, "%lld terms, %s: %g", (long long)n, constant ? "0.1" : "random", error);
  ts_buffer_release(x);
  ts_buffer_release(y);
  ts_buffer_release(out);
}

/* One chain of all terms is wrong by 1e-4 of the sum of 10^4 terms of 0.1, by 0.009 with 10^6. */
START_TEST(long_sums_are_close)
{
  for (int64_t n = 1000; n <= 1000000; n *= 10) {
    check_error(n, true, n == 1000 ? 2e-7 : 3e-7);
    check_error(n, false, 2e-7);
  }
}
END_TEST

/* ---- shapes and types ---- */

START_TEST(dots_are_those_of_the_interpreter)
{
  for (int c = 0; c < CASES; c++) {
    ts_graph *graph = make_graph(types[_i], &cases[c]);
    ts_buffer *args[2] = {numbers(types[_i], cases[c].lhs, 31), numbers(types[_i], cases[c].rhs, 32)}, *expected,
              *got = compiled(graph, args);
    char message[TS_COMPARE_TEXT];
    ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
    ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "case %d: %s", c, message);
    for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
    ts_buffer_release(expected);
    ts_buffer_release(got);
    ts_graph_destroy(graph);
  }
}
END_TEST

/* Lanes without a term change no sum: a product that is too small for the type is -0, and so is the sum of a whole
 * block of such products. NaNs and infinities pass through. */
START_TEST(special_values)
{
  static const double values[][2] = {{1e-30, -1e-30}, {-0.0, 1}, {INFINITY, 1}, {INFINITY, 0}, {NAN, 1}, {3e38, 3e38}};
  const ts_dtype type = types[_i];
  for (size_t v = 0; v < sizeof values / sizeof *values; v++)
    for (int64_t n = 1; n <= 2100; n += n < 70 ? 1 : 677) {
      dot_case c = one_dim;
      c.lhs = c.rhs = SHAPE(n);
      ts_graph *graph = make_graph(type, &c);
      ts_buffer *args[2] = {numbers(type, c.lhs, 1), numbers(type, c.rhs, 1)}, *expected;
      for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < 2; a++)
          ts_scalar_store(type, ts_scalar_from_f64(type, values[v][a]),
                          (char *)args[a]->data + i * (int64_t)ts_dtype_size(type));
      ts_buffer *got = compiled(graph, args);
      char message[TS_COMPARE_TEXT];
      ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
      ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%g * %g, %lld: %s", values[v][0], values[v][1],
                    (long long)n, message);
      for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
      ts_buffer_release(expected);
      ts_buffer_release(got);
      ts_graph_destroy(graph);
    }
}
END_TEST

/* ---- slices ---- */

/* Batches of vectors: every `step`-th element from the second on. Nothing lies behind the last one. */
static ts_value_id add_slice(ts_graph *g, ts_value_id whole, int64_t batches, int64_t n, int64_t step) {
  const ts_attrs attrs = {
      .slice = {.start = DIMS(1, 1), .limit = DIMS(batches + 1, 1 + (n - 1) * step + 1), .stride = DIMS(1, step)}};
  return test_add_op(g, TS_ROOT, TS_OP_SLICE, &attrs, &whole, 1);
}

static void check_slices(ts_dtype type, int64_t n, int64_t lhs_step, int64_t rhs_step) {
  enum { BATCHES = 2 };
  const ts_shape shapes[2] = {SHAPE(BATCHES + 1, (n - 1) * lhs_step + 2), SHAPE(BATCHES + 1, (n - 1) * rhs_step + 2)};
  ts_graph *graph = test_graph();
  ts_value_id x[2] = {test_add_param(graph, TS_ROOT, type, shapes[0]), test_add_param(graph, TS_ROOT, type, shapes[1])};
  const ts_dims batch = DIMS(0), contract = DIMS(1);
  const ts_attrs attrs = {
      .dot = {.lhs_contract = contract, .lhs_batch = batch, .rhs_contract = contract, .rhs_batch = batch}};
  x[0] = add_slice(graph, x[0], BATCHES, n, lhs_step);
  x[1] = add_slice(graph, x[1], BATCHES, n, rhs_step);
  const ts_value_id out = test_add_op(graph, TS_ROOT, TS_OP_DOT, &attrs, x, 2);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
  ts_buffer *args[2] = {numbers(type, shapes[0], 3), numbers(type, shapes[1], 4)}, *expected;
  ts_buffer *got = compiled(graph, args);
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%lld terms, steps %lld, %lld: %s", (long long)n,
                (long long)lhs_step, (long long)rhs_step, message);
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_buffer_release(expected);
  ts_buffer_release(got);
  ts_graph_destroy(graph);
}

START_TEST(slices_are_read_where_they_lie)
{
  static const int64_t terms[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 1000, 1024, 1030, 40001};
  for (size_t t = 0; t < sizeof terms / sizeof *terms; t++)
    for (int64_t step = 1; step <= 3; step++) {
      check_slices(types[_i], terms[t], step, 2);
      check_slices(types[_i], terms[t], 1, step);
    }
}
END_TEST

/* ---- runs ---- */

START_TEST(the_same_bits_on_any_number_of_threads)
{
  for (int t = 0; t < TYPES; t++) {
    ts_graph *graph = make_graph(types[t], &cases[LARGE + _i]);
    ts_buffer *args[2] = {numbers(types[t], cases[LARGE + _i].lhs, 41), numbers(types[t], cases[LARGE + _i].rhs, 42)};
    check_routine_threads(graph, args);
    check_routine_cancelled(graph, args);
    for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
    ts_graph_destroy(graph);
  }
}
END_TEST

START_TEST(every_allocation_failing)
{
  ts_graph *graph = make_graph(TS_F32, &cases[CASES - 1]);
  ts_buffer *args[2] = {numbers(TS_F32, cases[CASES - 1].lhs, 1), numbers(TS_F32, cases[CASES - 1].rhs, 2)};
  check_routine_allocations(graph, args);
  for (int i = 0; i < 2; i++) ts_buffer_release(args[i]);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("vector_dot");
  TCase *values = tcase_create("values"), *memory = tcase_create("memory");
  tcase_set_timeout(values, 120);
  tcase_set_timeout(memory, 60);
  tcase_add_test(values, sums_follow_the_order);
  tcase_add_test(values, long_sums_are_close);
  tcase_add_loop_test(values, dots_are_those_of_the_interpreter, 0, TYPES);
  tcase_add_loop_test(values, special_values, 0, TYPES);
  tcase_add_loop_test(values, slices_are_read_where_they_lie, 0, TYPES);
  test_add_lesser_isas(values);
  tcase_add_checked_fixture(memory, test_leaks_begin, test_leaks_end);
  tcase_add_loop_test(memory, the_same_bits_on_any_number_of_threads, 0, CASES - LARGE);
  tcase_add_test(memory, every_allocation_failing);
  suite_add_tcase(suite, values);
  suite_add_tcase(suite, memory);
  return testing_run(suite);
}
