/* LAPACK as a second witness besides the interpreter: compiled results against LAPACKE's. Debian's package liblapacke
 * has it, and OpenBLAS computes (libopenblas0-pthread). Random matrices and LAPACK's classes of them: singular values,
 * eigenvalues, R up to signs or phases, determinants, solutions, Cholesky factors. The library is loaded if it is
 * installed; otherwise the test prints that, and fails if no test may be skipped (TESSERA_CI). */
#include "exec/executable.h"
#include "matrix_classes.h"
#include "tensors.h"
#include "testing.h"

#include <complex.h>
#include <dlfcn.h>

enum { ROW_MAJOR = 101, COUNT = 2 };

/* Of f64 and c128: a number of one is two of the other. */
static struct {
  int32_t (*svd[2])(int, char, int32_t, int32_t, double *, int32_t, double *, double *, int32_t, double *, int32_t);
  int32_t (*eigh[2])(int, char, char, int32_t, double *, int32_t, double *);
  int32_t (*qr[2])(int, int32_t, int32_t, double *, int32_t, double *);
  int32_t (*lu[2])(int, int32_t, int32_t, double *, int32_t, int32_t *);
  int32_t (*solve[2])(int, int32_t, int32_t, double *, int32_t, int32_t *, double *, int32_t);
  int32_t (*cholesky[2])(int, char, int32_t, double *, int32_t);
} lapack;

static void *library;

static void find(const char *name, void *out) {
  void *found = dlsym(library, name);
  ck_assert_msg(found != NULL, "liblapacke has no %s", name);
  memcpy(out, &found, sizeof found);
}

static void load_lapack(void) {
  static const char *const names[][2] = {{"LAPACKE_dgesdd", "LAPACKE_zgesdd"}, {"LAPACKE_dsyevd", "LAPACKE_zheevd"},
                                         {"LAPACKE_dgeqrf", "LAPACKE_zgeqrf"}, {"LAPACKE_dgetrf", "LAPACKE_zgetrf"},
                                         {"LAPACKE_dgesv", "LAPACKE_zgesv"},   {"LAPACKE_dpotrf", "LAPACKE_zpotrf"}};
  for (int i = 0; i < COUNT; i++) {
    find(names[0][i], &lapack.svd[i]);
    find(names[1][i], &lapack.eigh[i]);
    find(names[2][i], &lapack.qr[i]);
    find(names[3][i], &lapack.lu[i]);
    find(names[4][i], &lapack.solve[i]);
    find(names[5][i], &lapack.cholesky[i]);
  }
}

/* ---- a matrix, and what Tessera makes of it */

typedef struct trial {
  matrix_form form;
  matrix a, b;
  double *numbers, *right; /* the same for LAPACK, which overwrites them */
  bool is_complex;
  int64_t m, n, least;
  double epsilon, size; /* of the computing type; the largest sum of a column */
} trial;

static double *interleave(const matrix *m, bool is_complex) {
  const int64_t count = m->rows * m->cols, parts = is_complex ? 2 : 1;
  double *out = malloc((size_t)(parts * count + 1) * sizeof *out);
  ck_assert_ptr_nonnull(out);
  for (int64_t i = 0; i < count; i++) {
    out[parts * i] = m->re[i];
    if (is_complex) out[2 * i + 1] = m->im[i];
  }
  return out;
}

static void put(ts_buffer *buffer, const matrix *m) {
  for (int64_t i = 0; i < m->rows * m->cols; i++)
    ts_scalar_store(buffer->dtype,
                    ts_dtype_is_complex(buffer->dtype) ? ts_scalar_complex(buffer->dtype, m->re[i], m->im[i])
                                                       : ts_scalar_from_f64(buffer->dtype, m->re[i]),
                    (char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype));
}

static double complex at(const ts_buffer *buffer, int64_t i) {
  const ts_scalar x = ts_scalar_load(buffer->dtype, (char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype));
  return CMPLX(ts_scalar_to_f64(buffer->dtype, x), ts_scalar_imag(buffer->dtype, x));
}

/* The elements as the type has them. */
static void round_to_type(const matrix_form *f, matrix *m) {
  const ts_shape shape = SHAPE(m->rows, m->cols);
  ts_buffer *buffer;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), f->type->dtype, &shape, &buffer));
  put(buffer, m);
  for (int64_t i = 0; i < m->rows * m->cols; i++) m->re[i] = creal(at(buffer, i)), m->im[i] = cimag(at(buffer, i));
  ts_buffer_release(buffer);
}

static trial make(const matrix_form *f, bool definite) {
  uint64_t seed = 23 + (uint64_t)f->class;
  const matrix_form right = {NOISE, f->type, f->rows, 3, false};
  trial t = {.form = *f, .m = f->rows, .n = f->cols, .is_complex = ts_dtype_is_complex(f->type->dtype)};
  t.a = definite ? make_definite(f, &seed) : make_class(f, &seed);
  t.b = make_class(&right, &seed);
  round_to_type(f, &t.a);
  round_to_type(f, &t.b);
  t.least = t.m < t.n ? t.m : t.n;
  t.epsilon = f->type->epsilon;
  t.size = norm_of(&t.a);
  t.numbers = interleave(&t.a, t.is_complex);
  t.right = interleave(&t.b, t.is_complex);
  return t;
}

static void drop(trial *t) {
  free_matrix(t->a);
  free_matrix(t->b);
  free(t->numbers);
  free(t->right);
}

static void run(const trial *t, ts_opcode op, ts_buffer **results) {
  const ts_shape shapes[] = {SHAPE(t->m, t->n), SHAPE(t->m, 3)};
  const size_t operands = (size_t)ts_op_operands(op), count = (size_t)ts_op_results(op);
  const ts_attrs attrs = {0};
  ts_value_id params[2], ids[3];
  ts_buffer *args[2];
  ts_executable *exe;
  ts_graph *graph = test_graph();
  for (size_t i = 0; i < operands; i++) {
    params[i] = test_add_param(graph, TS_ROOT, t->form.type->dtype, shapes[i]);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), t->form.type->dtype, &shapes[i], &args[i]));
    put(args[i], i == 0 ? &t->a : &t->b);
  }
  const ts_value_id first = test_add_op(graph, TS_ROOT, op, &attrs, params, operands);
  for (size_t i = 0; i < count; i++) ids[i] = first + (ts_value_id)i;
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, ids, count));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, operands, NULL, results));
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  for (size_t i = 0; i < operands; i++) ts_buffer_release(args[i]);
}

static void check(const trial *t, const char *what, double error, double limit) {
  ck_assert_msg(error <= limit, "%s of %s[%d, %d], class %s: %g off, at most %g", what,
                ts_dtype_name(t->form.type->dtype), (int)t->m, (int)t->n, class_names[t->form.class], error, limit);
}

/* What LAPACK's threshold allows each of both. */
static double limit_of(const trial *t) {
  const double n = (double)(t->m > t->n ? t->m : t->n);
  return 30 * n * (t->epsilon * t->size + 2 * ldexp(1, t->form.type->least));
}

/* ---- ops */

static int descending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

static void check_values(const trial *t, const char *what, const ts_buffer *got, double *expected) {
  double *values = malloc((size_t)(t->least + 1) * sizeof *values);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < t->least; i++) values[i] = creal(at(got, i));
  qsort(values, (size_t)t->least, sizeof *values, descending);
  qsort(expected, (size_t)t->least, sizeof *expected, descending);
  for (int64_t i = 0; i < t->least; i++) check(t, what, fabs(values[i] - expected[i]), limit_of(t));
  free(values);
}

static void check_svd(trial *t) {
  ts_buffer *got[3];
  double *s = malloc((size_t)(t->least + 1) * sizeof *s), none;
  ck_assert_ptr_nonnull(s);
  run(t, TS_OP_SVD, got);
  const int32_t m = (int32_t)t->m, n = (int32_t)t->n;
  ck_assert_int_eq(lapack.svd[t->is_complex](ROW_MAJOR, 'N', m, n, t->numbers, n, s, &none, m, &none, n), 0);
  check_values(t, "a singular value", got[1], s);
  for (int i = 0; i < 3; i++) ts_buffer_release(got[i]);
  free(s);
}

static void check_eigh(trial *t) {
  ts_buffer *got[2];
  double *w = malloc((size_t)(t->n + 1) * sizeof *w);
  ck_assert_ptr_nonnull(w);
  run(t, TS_OP_EIGH, got);
  ck_assert_int_eq(lapack.eigh[t->is_complex](ROW_MAJOR, 'N', 'L', (int32_t)t->n, t->numbers, (int32_t)t->n, w), 0);
  check_values(t, "an eigenvalue", got[0], w);
  for (int i = 0; i < 2; i++) ts_buffer_release(got[i]);
  free(w);
}

static double complex number_at(const trial *t, const double *from, int64_t i) {
  return t->is_complex ? CMPLX(from[2 * i], from[2 * i + 1]) : from[i];
}

/* Errors of R grow with the condition of the columns before: so of well-conditioned matrices only. */
static void check_qr(trial *t) {
  ts_buffer *got[2];
  double *tau = malloc((size_t)(2 * t->least + 1) * sizeof *tau);
  ck_assert_ptr_nonnull(tau);
  run(t, TS_OP_QR, got);
  ck_assert_int_eq(lapack.qr[t->is_complex](ROW_MAJOR, (int32_t)t->m, (int32_t)t->n, t->numbers, (int32_t)t->n, tau),
                   0);
  for (int64_t i = 0; i < t->least; i++)
    for (int64_t k = i; k < t->n; k++)
      check(t, "the size of an element of R",
            fabs(cabs(at(got[1], i * t->n + k)) - cabs(number_at(t, t->numbers, i * t->n + k))), 200 * limit_of(t));
  for (int i = 0; i < 2; i++) ts_buffer_release(got[i]);
  free(tau);
}

static void check_determinant(trial *t) {
  ts_buffer *got;
  double complex expected = 1;
  int32_t *pivots = malloc((size_t)(t->n + 1) * sizeof *pivots);
  ck_assert_ptr_nonnull(pivots);
  run(t, TS_OP_DETERMINANT, &got);
  ck_assert_int_ge(lapack.lu[t->is_complex](ROW_MAJOR, (int32_t)t->n, (int32_t)t->n, t->numbers, (int32_t)t->n, pivots),
                   0);
  for (int64_t i = 0; i < t->n; i++) expected *= number_at(t, t->numbers, i * t->n + i) * (pivots[i] == i + 1 ? 1 : -1);
  if (cabs(expected) < ldexp(1, t->form.type->most - 8))
    check(t, "a determinant", cabs(at(got, 0) - expected),
          1e4 * (double)t->n * t->epsilon * cabs(expected) + ldexp(1, t->form.type->least));
  ts_buffer_release(got);
  free(pivots);
}

/* Both have a small backward error: the difference is at most the condition, here 1000, times that. */
static void check_solve(trial *t) {
  ts_buffer *got;
  double most = 0;
  int32_t *pivots = malloc((size_t)(t->n + 1) * sizeof *pivots);
  ck_assert_ptr_nonnull(pivots);
  run(t, TS_OP_SOLVE, &got);
  ck_assert_int_eq(
      lapack.solve[t->is_complex](ROW_MAJOR, (int32_t)t->n, 3, t->numbers, (int32_t)t->n, pivots, t->right, 3), 0);
  for (int64_t i = 0; i < 3 * t->n; i++) most = fmax(most, cabs(number_at(t, t->right, i)));
  for (int64_t i = 0; i < 3 * t->n; i++)
    check(t, "a solution", cabs(at(got, i) - number_at(t, t->right, i)), 3e4 * (double)t->n * t->epsilon * most);
  ts_buffer_release(got);
  free(pivots);
}

static void check_cholesky(trial *t) {
  ts_buffer *got;
  run(t, TS_OP_CHOLESKY, &got);
  ck_assert_int_eq(lapack.cholesky[t->is_complex](ROW_MAJOR, 'L', (int32_t)t->n, t->numbers, (int32_t)t->n), 0);
  for (int64_t i = 0; i < t->n; i++)
    for (int64_t k = 0; k <= i; k++)
      check(t, "an element of a Cholesky factor", cabs(at(got, i * t->n + k) - number_at(t, t->numbers, i * t->n + k)),
            3e4 * (double)t->n * t->epsilon * sqrt(t->size));
  ts_buffer_release(got);
}

/* ---- tests */

static void try(const matrix_form *form, void (*op)(trial *), bool definite) {
  trial t = make(form, definite);
  op(&t);
  drop(&t);
}

static const int shapes[][2] = {{1, 1},   {3, 3}, {8, 8}, {17, 17}, {33, 33},
                                {65, 65}, {9, 4}, {4, 9}, {40, 17}, {33, 70}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Values of any matrix are as exact as the matrix. */
START_TEST(values_of_every_class)
{
  for (int type = 0; library && type < WIDE_TYPES; type++)
    for (int s = 0; s < SHAPES; s++) {
      const bool square = shapes[s][0] == shapes[s][1];
      matrix_form f = {(matrix_class)_i, &number_types[type], shapes[s][0], shapes[s][1], false};
      if (f.class == LARGEST || (TEST_IS_SANITIZED && f.rows > 33)) continue;
      try(&f, check_svd, false);
      f.hermitian = true;
      if (square) try(&f, check_eigh, false);
    }
}
END_TEST

/* Others are compared where the condition of the matrix is no more than 1000. */
START_TEST(results_of_random_matrices)
{
  static const matrix_class classes[] = {NOISE, CONDITION_100, IDENTITY};
  for (int type = 0; library && type < WIDE_TYPES; type++)
    for (int s = 0; s < SHAPES; s++) {
      const bool square = shapes[s][0] == shapes[s][1];
      matrix_form f = {classes[_i], &number_types[type], shapes[s][0], shapes[s][1], false};
      if (TEST_IS_SANITIZED && f.rows > 33) continue;
      try(&f, check_qr, false);
      if (!square) continue;
      try(&f, check_determinant, false);
      try(&f, check_solve, false);
      f.hermitian = true;
      try(&f, check_cholesky, true);
    }
}
END_TEST

/* The library must be installed if no test may be skipped. */
START_TEST(the_library_is_there)
{ ck_assert_msg(library || !getenv("TESSERA_CI"), "there is no liblapacke.so.3, which ./setup --lapack installs"); }
END_TEST

int main(void) {
  Suite *suite = suite_create("lapack");
  TCase *tests = tcase_create("lapack");
  (void)setenv("OPENBLAS_NUM_THREADS", "1", true);
  library = dlopen("liblapacke.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library) load_lapack();
  if (!library) printf("test_lapack is left out, without liblapacke.so.3, which ./setup --lapack installs\n");
  tcase_set_timeout(tests, 120);
  tcase_add_test(tests, the_library_is_there);
  tcase_add_loop_test(tests, values_of_every_class, 0, CLASSES);
  tcase_add_loop_test(tests, results_of_random_matrices, 0, 3);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
