/* The judge of linear algebra: it accepts the interpreter's results, and has to see each possible fault in them. */
#include "kernel/ref/ref.h"
#include "tensors.h"
#include "testing.h"
#include "tool/judge.h"

#include <math.h>

enum { N = 5, MOST_RESULTS = 3 };

typedef struct trial {
  ts_graph *graph;
  ts_buffer *args[2], *results[MOST_RESULTS];
  size_t arg_count, count;
} trial;

static char *place(const ts_buffer *buffer, int64_t i) {
  return (char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype);
}

static double get(const ts_buffer *buffer, int64_t i) {
  return ts_scalar_to_f64(buffer->dtype, ts_scalar_load(buffer->dtype, place(buffer, i)));
}

static void set(ts_buffer *buffer, int64_t i, double re, double im) {
  const ts_scalar x = ts_dtype_is_complex(buffer->dtype) ? ts_scalar_complex(buffer->dtype, re, im)
                                                         : ts_scalar_from_f64(buffer->dtype, re);
  ts_scalar_store(buffer->dtype, x, place(buffer, i));
}

static double imag_of(const ts_buffer *buffer, int64_t i) {
  return ts_scalar_imag(buffer->dtype, ts_scalar_load(buffer->dtype, place(buffer, i)));
}

static double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(int64_t)(*state >> 33) / (double)(INT64_C(1) << 30) - 1;
}

/* A positive definite matrix where it is read as a lower triangle, and columns of noise. */
static trial make(ts_opcode op, ts_dtype type) {
  trial t = {.graph = test_graph(), .arg_count = (size_t)ts_op_operands(op), .count = (size_t)ts_op_results(op)};
  const ts_attrs attrs = {.triangular = {.left = true, .lower = true}}, none = {0};
  ts_value_id params[2], results[MOST_RESULTS];
  uint64_t seed = 5;
  for (size_t i = 0; i < t.arg_count; i++) {
    const ts_shape shape = SHAPE(2, N, i == 0 ? N : 3);
    params[i] = test_add_param(t.graph, TS_ROOT, type, shape);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &t.args[i]));
    for (int64_t e = 0; e < ts_shape_elements(&shape); e++)
      set(t.args[i], e, noise(&seed) + (i == 0 && e % (N * N) % (N + 1) == 0 ? 2 * N : 0), noise(&seed));
  }
  const ts_value_id first =
      test_add_op(t.graph, TS_ROOT, op, op == TS_OP_TRIANGULAR_SOLVE ? &attrs : &none, params, t.arg_count);
  for (size_t i = 0; i < t.count; i++) results[i] = first + (ts_value_id)i;
  ck_assert_ok(ts_graph_set_results(t.graph, TS_ROOT, results, t.count));
  ck_assert_ok(ts_ref_run(t.graph, t.args, t.arg_count, ts_pool_default(), t.results));
  return t;
}

static void drop(trial *t) {
  for (size_t i = 0; i < t->arg_count; i++) ts_buffer_release(t->args[i]);
  for (size_t i = 0; i < t->count; i++) ts_buffer_release(t->results[i]);
  ts_graph_destroy(t->graph);
}

static ts_status judge(const trial *t) { return ts_judge(ts_graph_op(t->graph, 0), t->args, t->results); }

static void must_see(const trial *t, const char *what) {
  ts_status status = judge(t);
  ck_assert_msg(status != NULL, "%s: %s is not seen", ts_op_name(ts_graph_op(t->graph, 0)->code), what);
  ts_status_free(status);
}

static const ts_opcode ops[] = {
    TS_OP_CHOLESKY, TS_OP_TRIANGULAR_SOLVE, TS_OP_SOLVE, TS_OP_DETERMINANT, TS_OP_LU, TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
static const ts_dtype types[] = {TS_F32, TS_F64, TS_C64, TS_C128};
enum { OPS = sizeof ops / sizeof *ops, TYPES = sizeof types / sizeof *types };

/* Each element of each result, also of the second matrix: changed by a hundred times the bound, and NaN.
 */
START_TEST(each_element_counts)
{
  const ts_dtype type = types[_i % TYPES];
  const double unit = type == TS_F32 || type == TS_C64 ? 0x1p-24 : 0x1p-53;
  trial t = make(ops[_i / TYPES], type);
  ck_assert_ok(judge(&t));
  for (size_t r = 0; r < t.count; r++)
    for (int64_t e = 0; e < ts_shape_elements(&t.results[r]->shape); e++) {
      const double re = get(t.results[r], e), im = imag_of(t.results[r], e);
      set(t.results[r], e,
          re + 6e3 * N * unit * fmax(2 * N, fabs(re)) * (ops[_i / TYPES] == TS_OP_DETERMINANT ? 50 : 1), im);
      must_see(&t, "a changed element");
      set(t.results[r], e, (double)NAN, im);
      must_see(&t, "NaN");
      set(t.results[r], e, re, im);
    }
  ck_assert_ok(judge(&t));
  drop(&t);
}
END_TEST

/* Column `col` of the first matrix, or its row where `row`, changes its sign. */
static void negate(ts_buffer *m, int64_t line, bool is_row) {
  for (int64_t i = 0; i < N; i++) {
    const int64_t e = is_row ? line * N + i : i * N + line;
    set(m, e, -get(m, e), -imag_of(m, e));
  }
}

/* Changes that keep the products. */
START_TEST(signs_and_order_count)
{
  for (int type = 0; type < TYPES; type++) {
    trial t = make(TS_OP_EIGH, types[type]);
    negate(t.results[1], 1, false);
    must_see(&t, "the sign of a vector");
    drop(&t);
    t = make(TS_OP_SVD, types[type]);
    negate(t.results[0], 2, false);
    negate(t.results[2], 2, true);
    must_see(&t, "the sign of a pair of vectors");
    drop(&t);
    if (ts_dtype_is_complex(types[type])) continue;
    t = make(TS_OP_QR, types[type]);
    negate(t.results[0], 0, false);
    negate(t.results[1], 0, true);
    must_see(&t, "the sign of the diagonal of R");
    drop(&t);
  }
}
END_TEST

/* A diagonal matrix has factors with zeros. */
START_TEST(negative_zeros_count)
{
  static const ts_opcode of_vectors[] = {TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  for (int op = 0; op < 3; op++)
    for (int type = 0; type < TYPES; type++) {
      trial t = make(of_vectors[op], types[type]);
      for (int64_t e = 0; e < 2 * N * N; e++) set(t.args[0], e, e % (N * N) % (N + 1) == 0 ? (double)(N - e) : 0, 0);
      for (size_t r = 0; r < t.count; r++) ts_buffer_release(t.results[r]);
      ck_assert_ok(ts_ref_run(t.graph, t.args, t.arg_count, ts_pool_default(), t.results));
      ck_assert_ok(judge(&t));
      set(t.results[0], op == 1 ? 0 : 1, -0.0, 0);
      must_see(&t, "a negative zero");
      drop(&t);
    }
}
END_TEST

START_TEST(values_that_are_not_finite)
{
  static const ts_opcode of_nan[] = {TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  for (int op = 0; op < 3; op++)
    for (int type = 0; type < TYPES; type++) {
      trial t = make(of_nan[op], types[type]);
      set(t.args[0], N * N + N, (double)INFINITY, 0);
      must_see(&t, "numbers of a matrix that is not finite");
      drop(&t);
    }
  trial t = make(TS_OP_CHOLESKY, TS_C64);
  set(t.args[0], 0, -1, 0);
  must_see(&t, "a factor of a matrix that is not positive definite");
  drop(&t);
}
END_TEST

/* The stand-in's results equal a run's; all other results equal the interpreter's. */
START_TEST(a_program_with_factors)
{
  static const char text[] = "graph @main(%0: f32[3,3]) -> (f32[3,3], f32[3]) {\n"
                             "  %1, %2 = eigh %0 : f32[3], f32[3,3]\n  %3 = add %2, %2 : f32[3,3]\n"
                             "  return %3, %1\n}\n";
  ts_buffer *arg = TENSOR(TS_F32, SHAPE(3, 3), 2, 0, 0, 1, 3, 0, 0.5, 0.25, 5), *got[2], *expected[2];
  ts_graph *graph;
  ts_executable *exe = test_compile(text);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ok(ts_judged_run(graph, &arg, 1, expected));
  ck_assert_ok(ts_executable_run(exe, &arg, 1, NULL, got));
  for (int i = 0; i < 2; i++) test_equal(got[i], expected[i]);
  ts_buffer_release(arg);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("judge");
  TCase *tests = tcase_create("judge");
  tcase_add_loop_test(tests, each_element_counts, 0, OPS * TYPES);
  tcase_add_test(tests, signs_and_order_count);
  tcase_add_test(tests, negative_zeros_count);
  tcase_add_test(tests, values_that_are_not_finite);
  tcase_add_test(tests, a_program_with_factors);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
