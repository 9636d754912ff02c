/* cholesky, triangular_solve, solve and determinant against the interpreter, bit for bit: every type of floats, sizes
 * around those at which another way is taken, batches, each side and triangle; the same bits on any number of threads
 * and with every instruction set; NaN, infinities, empty matrices; what may be overwritten; cancelling; allocations
 * that fail. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "lesser_isa.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

#include <math.h>

static const char *const types[] = {"f32", "f64", "f16", "bf16"};
enum { TYPES = sizeof types / sizeof *types };

/* ---- programs ---- */

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  return graph;
}

static ts_graph *cholesky_graph(const char *type, int batch, int n) {
  char text[512], of[64];
  snprintf(of, sizeof of, "%s[%d,%d,%d]", type, batch, n, n);
  snprintf(text, sizeof text, "graph @main(%%0: %s) -> (%s) {\n  %%1 = cholesky %%0 : %s\n  return %%1\n}\n", of, of,
           of);
  return parse(text);
}

typedef struct solve_case {
  int batch, n, cols;
  bool left, lower, transpose, unit;
} solve_case;

static ts_graph *solve_graph(const char *type, const solve_case *c) {
  char text[512], of[64];
  snprintf(of, sizeof of, "%s[%d,%d,%d]", type, c->batch, c->left ? c->n : c->cols, c->left ? c->cols : c->n);
  snprintf(
      text, sizeof text,
      "graph @main(%%0: %s[%d,%d,%d], %%1: %s) -> (%s) {\n"
      "  %%2 = triangular_solve %%0, %%1 {left = %s, lower = %s, transpose = %s, unit = %s} : %s\n  return %%2\n}\n",
      type, c->batch, c->n, c->n, of, of, c->left ? "true" : "false", c->lower ? "true" : "false",
      c->transpose ? "true" : "false", c->unit ? "true" : "false", of);
  return parse(text);
}

static ts_graph *full_graph(const char *type, int batch, int n, int cols) {
  char text[512];
  snprintf(text, sizeof text,
           "graph @main(%%0: %s[%d,%d,%d], %%1: %s[%d,%d,%d]) -> (%s[%d,%d,%d]) {\n"
           "  %%2 = solve %%0, %%1 : %s[%d,%d,%d]\n  return %%2\n}\n",
           type, batch, n, n, type, batch, n, cols, type, batch, n, cols, type, batch, n, cols);
  return parse(text);
}

static ts_graph *determinant_graph(const char *type, int batch, int n) {
  char text[512];
  snprintf(text, sizeof text,
           "graph @main(%%0: %s[%d,%d,%d]) -> (%s[%d]) {\n  %%1 = determinant %%0 : %s[%d]\n  return %%1\n}\n", type,
           batch, n, n, type, batch, type, batch);
  return parse(text);
}

/* ---- arguments ---- */

static double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(int64_t)(*state >> 33) / (double)(INT64_C(1) << 30) - 1;
}

/* Numbers of [-1, 1), and larger ones on the diagonals of square matrices: positive definite as a lower triangle. */
static ts_buffer *numbers(const ts_value *type, uint64_t seed, double diagonal) {
  ts_buffer *buffer;
  const int64_t *last = type->shape->dims + type->shape->rank - 2, rows = last[0], cols = last[1];
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, type->shape, &buffer));
  for (int64_t i = 0; i < ts_shape_elements(type->shape); i++) {
    double x = noise(&seed);
    if (rows == cols && i / cols % rows == i % cols) x += diagonal;
    ts_scalar_store(type->dtype, ts_scalar_from_f64(type->dtype, x),
                    (char *)buffer->data + (size_t)i * ts_dtype_size(type->dtype));
  }
  return buffer;
}

static void make_args(const ts_graph *graph, double diagonal, ts_buffer **args) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++)
    args[i] = numbers(ts_graph_value(graph, root->params.data[i]), 7 + i, diagonal);
}

static size_t arg_count(const ts_graph *graph) { return ts_graph_region(graph, TS_ROOT)->params.count; }

static void set(ts_buffer *buffer, int64_t element, double value) {
  ts_scalar_store(buffer->dtype, ts_scalar_from_f64(buffer->dtype, value),
                  (char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype));
}

static double at(const ts_buffer *buffer, int64_t element) {
  return ts_scalar_to_f64(
      buffer->dtype,
      ts_scalar_load(buffer->dtype, (const char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype)));
}

/* Takes the graph and the arguments. */
static void check(const char *what, ts_graph *graph, ts_buffer **args) {
  ts_buffer *expected = NULL, *got;
  ts_executable *exe;
  char message[TS_COMPARE_TEXT];
  size_t count = arg_count(graph);
  const bool is_compared = !TEST_IS_SANITIZED || args[0]->shape.dims[args[0]->shape.rank - 1] <= 33;
  if (is_compared) ck_assert_ok(ts_ref_run(graph, args, count, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, count, NULL, &got));
  if (is_compared)
    ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s, %s: %s", what,
                  TS_SHAPE_STR(args[0]->dtype, &args[0]->shape), message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  for (size_t i = 0; i < count; i++) ts_buffer_release(args[i]);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}

/* ---- the interpreter's bits ---- */

static const int sizes[] = {0, 1, 2, 3, 5, 8, 16, 17, 32, 33, 64, 65, 129};
enum { SIZES = sizeof sizes / sizeof *sizes };

START_TEST(cholesky_of_every_size)
{
  static const int batches[] = {0, 1, 3, 9, 37};
  for (int i = 0; i < SIZES; i++)
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
      if (sizes[i] > 33 && batches[b] > 3) continue;
      ts_buffer *args[1];
      ts_graph *graph = cholesky_graph(types[_i], batches[b], sizes[i]);
      make_args(graph, sizes[i] + 1, args);
      check("cholesky", graph, args);
    }
}
END_TEST

START_TEST(solves_of_every_kind)
{
  static const int batches[] = {1, 2, 21}, columns[] = {0, 1, 5, 70};
  for (int kind = 0; kind < 16; kind++)
    for (int i = kind % 3; i < SIZES; i += 3)
      for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
          solve_case s = {batches[b], sizes[i], columns[c], kind & 1, kind & 2, kind & 4, kind & 8};
          if (s.n > 33 && (s.batch > 2 || s.cols == 70)) continue;
          if (!testing_takes(kind + i + (int64_t)(b + c), 3)) continue;
          ts_buffer *args[2];
          ts_graph *graph = solve_graph(types[_i], &s);
          make_args(graph, 3, args);
          check("triangular_solve", graph, args);
        }
}
END_TEST

/* No diagonal is large, so that rows are exchanged. */
START_TEST(full_systems_of_every_size)
{
  static const int batches[] = {0, 1, 2, 9, 21}, columns[] = {0, 1, 3, 6, 40};
  for (int i = 0; i < SIZES; i++)
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
      if (sizes[i] > 33 && batches[b] > 2) continue;
      ts_buffer *args[2];
      int cols = columns[(i + (int)b) % 5];
      ts_graph *graph = full_graph(types[_i], batches[b], sizes[i], cols);
      make_args(graph, 0, args);
      check("solve", graph, args);
      graph = determinant_graph(types[_i], batches[b], sizes[i]);
      make_args(graph, 0, args);
      check("determinant", graph, args);
    }
}
END_TEST

/* Singular matrices, NaN and infinities, and elements of equal size in a column. */
START_TEST(full_systems_of_special_values)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1};
  static const int ns[] = {1, 2, 3, 20, 70, 130};
  int n = ns[_i];
  for (int v = 0; v < 7; v++)
    for (int batch = 1; batch < 20; batch += 8)
      for (int many = 0; many < 2; many++) {
        if (n > 33 && batch > 1 && v > 0) continue; /* as small ones */
        ts_buffer *args[2];
        ts_graph *graph = full_graph("f32", batch, n, 3);
        make_args(graph, 0, args);
        for (int64_t i = many ? 0 : n * n / 2; i < (many ? n * n - 1 : n * n / 2 + 1); i += 2)
          set(args[0], i, special[v]);
        check("special solve", graph, args);
        graph = determinant_graph("f32", batch, n);
        make_args(graph, 0, args);
        for (int64_t i = many ? 0 : n * n / 2; i < (many ? n * n - 1 : n * n / 2 + 1); i += 2)
          set(args[0], i, special[v]);
        check("special determinant", graph, args);
      }
}
END_TEST

/* ---- values ---- */

static ts_buffer *run(ts_graph *graph, ts_buffer **args) {
  ts_buffer *out;
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, arg_count(graph), NULL, &out));
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  return out;
}

START_TEST(known_factor)
{
  ts_buffer *a = TENSOR(TS_F32, SHAPE(1, 3, 3), 4, NAN, NAN, 12, 37, NAN, -16, -43, 98);
  test_equal(run(cholesky_graph("f32", 1, 3), &a), TENSOR(TS_F32, SHAPE(1, 3, 3), 2, 0, 0, 6, 1, 0, -8, 5, 3));
  ts_buffer_release(a);
}
END_TEST

START_TEST(known_solutions)
{
  solve_case s = {.batch = 1, .n = 2, .cols = 2, .left = true, .lower = true};
  ts_buffer *args[] = {TENSOR(TS_F32, SHAPE(1, 2, 2), 2, NAN, 4, 8), TENSOR(TS_F32, SHAPE(1, 2, 2), 2, 4, 12, 24)};
  test_equal(run(solve_graph("f32", &s), args), TENSOR(TS_F32, SHAPE(1, 2, 2), 1, 2, 1, 2));
  s.left = false; /* [x y] A = b */
  test_equal(run(solve_graph("f32", &s), args), TENSOR(TS_F32, SHAPE(1, 2, 2), 0, 0.5, 0, 3));
  s.left = s.transpose = true; /* A' x = b */
  test_equal(run(solve_graph("f32", &s), args), TENSOR(TS_F32, SHAPE(1, 2, 2), -2, -4, 1.5, 3));
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
}
END_TEST

START_TEST(known_full_systems)
{
  ts_buffer *args[] = {TENSOR(TS_F32, SHAPE(1, 3, 3), 0, 2, 1, 1, 0, 0, 4, 0, 8),
                       TENSOR(TS_F32, SHAPE(1, 3, 1), 5, 1, 12)};
  test_equal(run(full_graph("f32", 1, 3, 1), args), TENSOR(TS_F32, SHAPE(1, 3, 1), 1, 2, 1));
  test_equal(run(determinant_graph("f32", 1, 3), args), VECTOR(TS_F32, -16));
  ts_buffer_release(args[0]);
  ck_assert_ok(ts_buffer_create(ts_pool_default(), TS_F32, &(ts_shape){.rank = 3, .dims = {1}}, &args[0]));
  test_equal(run(determinant_graph("f32", 1, 0), args), VECTOR(TS_F32, 1));
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
}
END_TEST

/* ||A X - B|| at most 10 n eps (||A|| ||X|| + ||B||). */
START_TEST(residuals_of_full_systems)
{
  static const int ns[] = {5, 32, 100, 200};
  int n = ns[_i];
  ts_buffer *args[2];
  ts_graph *graph = full_graph("f64", 1, n, 2);
  make_args(graph, 0, args);
  ts_buffer *x = run(graph, args);
  double a = 0, most = 0;
  for (int i = 0; i < n * n; i++) a = fmax(a, fabs(at(args[0], i)));
  for (int i = 0; i < n * 2; i++) most = fmax(most, fabs(at(x, i)));
  for (int i = 0; i < n; i++)
    for (int c = 0; c < 2; c++) {
      double sum = -at(args[1], i * 2 + c);
      for (int k = 0; k < n; k++) sum += at(args[0], i * n + k) * at(x, k * 2 + c);
      ck_assert_double_le(fabs(sum), 10 * n * 0x1p-52 * (n * a * most + 1));
    }
  ts_buffer_release(x);
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
}
END_TEST

/* ||A - L L'|| and ||op(A) X - B||, at most 10 n eps times the norms. */
START_TEST(residuals)
{
  enum { N = 200 };
  ts_buffer *a, *l, *args[2];
  ts_graph *graph = cholesky_graph("f64", 1, N);
  double worst = 0, norm = 0;
  make_args(graph, N, &a);
  l = run(graph, &a);
  for (int i = 0; i < N; i++)
    for (int k = 0; k <= i; k++) {
      double sum = 0;
      for (int c = 0; c <= k; c++) sum += at(l, i * N + c) * at(l, k * N + c);
      worst = fmax(worst, fabs(sum - at(a, i * N + k)));
      norm = fmax(norm, fabs(at(a, i * N + k)));
    }
  ck_assert_double_le(worst, 10 * N * 0x1p-52 * norm);
  ts_buffer_release(a);
  solve_case s = {.batch = 1, .n = N, .cols = 3, .left = true, .lower = true, .transpose = true};
  graph = solve_graph("f64", &s);
  make_args(graph, 3, args);
  ts_buffer_release(args[0]);
  args[0] = l;
  ts_buffer *x = run(graph, args);
  for (int i = 0; i < N; i++)
    for (int c = 0; c < 3; c++) {
      double sum = 0, scale = fabs(at(args[1], i * 3 + c));
      for (int k = i; k < N; k++) {
        sum += at(l, k * N + i) * at(x, k * 3 + c);
        scale += fabs(at(l, k * N + i) * at(x, k * 3 + c));
      }
      ck_assert_double_le(fabs(sum - at(args[1], i * 3 + c)), 10 * N * 0x1p-52 * scale);
    }
  ts_buffer_release(x);
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
}
END_TEST

/* One bad matrix of a batch is NaN in its lower triangle and harms no other. */
START_TEST(not_positive_definite)
{
  static const int ns[] = {1, 4, 33, 130};
  static const double bad[] = {-1, -1e-30, NAN, -INFINITY};
  int n = ns[_i % 4];
  ts_graph *graph = cholesky_graph("f32", 9, n);
  ts_buffer *a, *good, *got;
  make_args(graph, n + 1, &a);
  good = run(cholesky_graph("f32", 9, n), &a);
  set(a, 4 * n * n + n * n - 1, bad[_i / 4]);
  got = run(graph, &a);
  for (int m = 0; m < 9; m++)
    for (int i = 0; i < n; i++)
      for (int k = 0; k < n; k++) {
        int64_t e = (m * n + i) * n + k;
        if (m == 4 && k <= i)
          ck_assert(isnan(at(got, e)));
        else
          ck_assert_double_eq(at(got, e), at(good, e));
      }
  ts_buffer_release(got);
  ts_buffer_release(good);
  ts_buffer_release(a);
}
END_TEST

/* A pivot of 0 has a column of zeros, and nothing else below it. */
START_TEST(semidefinite)
{
  static const int ns[] = {2, 5, 40, 100, 150};
  static const int batches[] = {1, 9};
  int n = ns[_i];
  for (int b = 0; b < 2; b++)
    for (int rank = 0; rank < n; rank += 1 + n / 7)
      for (int spoiled = 0; spoiled < 2; spoiled++) {
        ts_graph *graph = cholesky_graph("f32", batches[b], n);
        ts_buffer *a, *got;
        make_args(graph, 0, &a);
        for (int64_t i = 0; i < (int64_t)n * n; i++) {
          const int64_t row = i / n, col = i % n;
          set(a, i, fmin((double)(row < col ? row : col) + 1, rank));
        }
        if (spoiled) set(a, (int64_t)n * n - n + rank, rank + 1e-3);
        got = run(cholesky_graph("f32", batches[b], n), &a);
        for (int64_t i = 0; i < (int64_t)n * n; i++)
          if (i % n <= i / n && spoiled && rank < n - 1)
            ck_assert(isnan(at(got, i)));
          else if (!spoiled)
            ck_assert_double_eq(at(got, i), i % n <= i / n && i % n < rank ? 1 : 0);
        ts_buffer_release(got);
        check("semidefinite cholesky", graph, &a);
      }
}
END_TEST

/* NaN, infinities and zeros anywhere are as the interpreter has them; a zero on the diagonal divides. */
START_TEST(special_values)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-45, 3e38};
  static const int ns[] = {1, 3, 20, 70};
  int n = ns[_i];
  for (int v = 0; v < 7; v++)
    for (int where = 0; where < 3; where++) {
      ts_buffer *args[2];
      solve_case s = {.batch = 6, .n = n, .cols = 4, .left = v % 2, .lower = where % 2};
      ts_graph *graph = solve_graph("f32", &s);
      make_args(graph, 3, args);
      set(args[where == 2], where == 1 ? (n * n) / 2 : where, special[v]);
      check("special triangular_solve", graph, args);
      graph = cholesky_graph("f32", 6, n);
      make_args(graph, n + 1, args);
      set(args[0], where * n * n + (n - 1) * n + where % n, special[v]);
      check("special cholesky", graph, args);
    }
  ts_buffer *args[] = {TENSOR(TS_F32, SHAPE(1, 2, 2), 0, 0, 1, 0), TENSOR(TS_F32, SHAPE(1, 2, 1), 1, 2)};
  solve_case s = {.batch = 1, .n = 2, .cols = 1, .left = true, .lower = true};
  test_equal(run(solve_graph("f32", &s), args), TENSOR(TS_F32, SHAPE(1, 2, 1), INFINITY, -INFINITY));
  ts_buffer_release(args[0]);
  ts_buffer_release(args[1]);
}
END_TEST

/* ---- threads ---- */

static const solve_case shared_solves[] = {{1, 100, 700, true, true, false, false},
                                           {3, 70, 130, false, true, false, false},
                                           {100, 6, 3, true, false, true, true}};
static const int shared_factors[][2] = {{1, 600}, {3, 300}, {100, 7}};

static ts_graph *shared_graph(int i, double *diagonal) {
  *diagonal = i < 3 ? 3 : i < 6 ? 1000 : 0;
  if (i == 6) return full_graph("f32", 1, 300, 5);
  if (i == 7) return full_graph("f16", 30, 7, 2);
  return i < 3 ? solve_graph("f32", &shared_solves[i])
               : cholesky_graph("f32", shared_factors[i - 3][0], shared_factors[i - 3][1]);
}

/* Calls the check with a graph and its arguments. */
static void check_shared(int i, void (*routine_check)(const ts_graph *, ts_buffer *const *)) {
  double diagonal;
  ts_graph *graph = shared_graph(i, &diagonal);
  ts_buffer *args[2];
  make_args(graph, diagonal, args);
  routine_check(graph, args);
  for (size_t a = 0; a < arg_count(graph); a++) ts_buffer_release(args[a]);
  ts_graph_destroy(graph);
}

START_TEST(the_same_bits_on_any_number_of_threads)
{ check_shared(_i, check_routine_threads); }
END_TEST

START_TEST(a_cancelled_run_ends)
{ check_shared(_i, check_routine_cancelled); }
END_TEST

/* ---- memory ---- */

/* The factor may take the matrix's memory, the solution the right side's but not the matrix's. */
START_TEST(donated_operands)
{
  static const int ns[] = {5, 40, 100};
  int n = ns[_i];
  solve_case s = {.batch = 2, .n = n, .cols = n, .lower = true};
  for (int which = 0; which < 2; which++)
    for (int t = 0; t < 2; t++) {
      ts_graph *graph = which ? solve_graph(types[t], &s) : cholesky_graph(types[t], 2, n);
      ts_buffer *args[2], *expected, *out;
      ts_executable *exe;
      make_args(graph, n + 1, args);
      const void *memory = args[which]->data;
      ck_assert_ok(ts_ref_run(graph, args, arg_count(graph), ts_pool_default(), &expected));
      ck_assert_ok(ts_executable_create(graph, NULL, &exe));
      ck_assert_ok(
          ts_executable_run(exe, args, arg_count(graph), &(ts_run_options){.donated = TS_BITS(which ? 3 : 1)}, &out));
      ck_assert_ptr_eq(out->data, memory);
      test_equal(out, expected);
      ts_executable_release(exe);
      ts_graph_destroy(graph);
    }
}
END_TEST

START_TEST(every_allocation_failing)
{ check_shared(_i, check_routine_allocations); }
END_TEST

int main(void) {
  Suite *suite = suite_create("linalg");
  TCase *bits = tcase_create("bits"), *values = tcase_create("values"), *memory = tcase_create("memory");
  tcase_set_timeout(bits, 120);
  tcase_set_timeout(values, 60);
  tcase_set_timeout(memory, 60);
  tcase_add_loop_test(bits, cholesky_of_every_size, 0, TYPES);
  tcase_add_loop_test(bits, solves_of_every_kind, 0, TYPES);
  tcase_add_loop_test(bits, full_systems_of_every_size, 0, TYPES);
  tcase_add_loop_test(bits, full_systems_of_special_values, 0, 6);
  tcase_add_loop_test(bits, the_same_bits_on_any_number_of_threads, 0, 8);
  test_add_lesser_isas(bits);
  tcase_add_test(values, known_factor);
  tcase_add_test(values, known_solutions);
  tcase_add_test(values, known_full_systems);
  tcase_add_loop_test(values, residuals_of_full_systems, 0, 4);
  tcase_add_test(values, residuals);
  tcase_add_loop_test(values, not_positive_definite, 0, 16);
  tcase_add_loop_test(values, semidefinite, 0, 5);
  tcase_add_loop_test(values, special_values, 0, 4);
  tcase_add_checked_fixture(memory, test_leaks_begin_after_products, test_leaks_end);
  tcase_add_loop_test(memory, a_cancelled_run_ends, 0, 8);
  tcase_add_loop_test(memory, donated_operands, 0, 3);
  tcase_add_loop_test(memory, every_allocation_failing, 0, 8);
  suite_add_tcase(suite, bits);
  suite_add_tcase(suite, values);
  suite_add_tcase(suite, memory);
  return testing_run(suite);
}
