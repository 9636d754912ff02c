/* Compiled factorizations and solvers on LAPACK's classes of test matrices. The test takes every type of floats and
 * complex numbers, single matrices and batches, and sizes on both sides of each block size. It checks residuals,
 * orthogonality and known values by LAPACK's ratios and threshold. A comparison with the interpreter would prove
 * nothing, as the interpreter calls the same code. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "matrix_classes.h"
#include "tensors.h"
#include "testing.h"

#define THRESHOLD 30

enum { MOST_OPERANDS = 2, MOST_RESULTS = 3 };

/* ---- a program of one op */

typedef struct trial {
  ts_opcode op;
  matrix_form form;
  int batch;
  int64_t right; /* columns of the right side of a system */
  bool full, transpose, upper;
  ts_graph *graph;
  ts_buffer *args[MOST_OPERANDS], *results[MOST_RESULTS];
} trial;

static void put(ts_buffer *buffer, int64_t which, const matrix *m) {
  const ts_dtype type = buffer->dtype;
  const int64_t count = m->rows * m->cols;
  for (int64_t i = 0; i < count; i++)
    ts_scalar_store(type,
                    ts_dtype_is_complex(type) ? ts_scalar_complex(type, m->re[i], m->im[i])
                                              : ts_scalar_from_f64(type, m->re[i]),
                    (char *)buffer->data + (size_t)(which * count + i) * ts_dtype_size(type));
}

static void set_part(const ts_buffer *from, int64_t element, const matrix *to, int64_t i) {
  const ts_scalar x =
      ts_scalar_load(from->dtype, (const char *)from->data + (size_t)element * ts_dtype_size(from->dtype));
  to->re[i] = ts_scalar_to_f64(from->dtype, x);
  to->im[i] = ts_dtype_is_complex(from->dtype) ? ts_scalar_imag(from->dtype, x) : 0;
}

static matrix take(const ts_buffer *from, int64_t which) {
  const int64_t *last = from->shape.dims + from->shape.rank - 2;
  matrix m = make_matrix(last[0], last[1]);
  for (int64_t i = 0; i < m.rows * m.cols; i++) set_part(from, which * m.rows * m.cols + i, &m, i);
  return m;
}

/* Vector `which` as a row. */
static matrix take_row(const ts_buffer *from, int64_t which) {
  matrix m = make_matrix(1, from->shape.dims[from->shape.rank - 1]);
  for (int64_t i = 0; i < m.cols; i++) set_part(from, which * m.cols + i, &m, i);
  return m;
}

static bool has_right_side(ts_opcode op) { return op == TS_OP_SOLVE || op == TS_OP_TRIANGULAR_SOLVE; }

static ts_attrs attrs_of(const trial *t) {
  ts_attrs attrs = {0};
  if (t->op == TS_OP_QR || t->op == TS_OP_SVD) attrs.factors.full = t->full;
  if (t->op == TS_OP_TRIANGULAR_SOLVE) {
    attrs.triangular.left = true;
    attrs.triangular.lower = !t->upper;
    attrs.triangular.transpose = t->transpose;
  }
  return attrs;
}

/* The triangle that is read, as the op applies it. */
static matrix triangle_of(const trial *t, matrix a) {
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t k = 0; k < a.cols; k++)
      if (t->upper ? k < i : k > i) a.re[i * a.cols + k] = a.im[i * a.cols + k] = 0;
  if (!t->transpose) return a;
  matrix m = adjoint(a);
  for (int64_t i = 0; i < m.rows * m.cols; i++) m.im[i] = -m.im[i];
  return m;
}

static matrix coefficients(const trial *t, int64_t which) {
  const matrix a = take(t->args[0], which);
  return t->op == TS_OP_TRIANGULAR_SOLVE ? triangle_of(t, a) : a;
}

/* Beside the diagonal: solutions of random triangles grow as 2^n. */
static void shrink_beside(matrix *m) {
  for (int64_t i = 0; i < m->rows; i++)
    for (int64_t k = 0; k < m->cols; k++)
      if (i != k) m->re[i * m->cols + k] /= (double)m->rows, m->im[i * m->cols + k] /= (double)m->rows;
}

/* Matrices of the class, between which others stand. */
static void fill(trial *t) {
  uint64_t seed = 11 + (uint64_t)t->form.class;
  for (int64_t b = 0; b < t->batch; b++) {
    matrix_form form = t->form;
    if (b % 2 == 1) form.class = NOISE;
    matrix m = t->op == TS_OP_CHOLESKY ? make_definite(&form, &seed) : make_class(&form, &seed);
    if (t->op == TS_OP_TRIANGULAR_SOLVE) shrink_beside(&m);
    put(t->args[0], b, &m);
    free_matrix(m);
    if (!has_right_side(t->op)) continue;
    const matrix_form solution = {NOISE, form.type, form.rows, t->right, false};
    matrix right = product(coefficients(t, b), make_class(&solution, &seed));
    put(t->args[1], b, &right);
    free_matrix(right);
  }
}

static void run(trial *t) {
  const ts_shape shapes[] = {SHAPE(t->batch, t->form.rows, t->form.cols), SHAPE(t->batch, t->form.rows, t->right)};
  const size_t operands = (size_t)ts_op_operands(t->op), results = (size_t)ts_op_results(t->op);
  const ts_dtype type = t->form.type->dtype;
  ts_value_id params[MOST_OPERANDS], ids[MOST_RESULTS];
  ts_executable *exe;
  const ts_attrs attrs = attrs_of(t);
  t->graph = test_graph();
  for (size_t i = 0; i < operands; i++) {
    params[i] = test_add_param(t->graph, TS_ROOT, type, shapes[i]);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shapes[i], &t->args[i]));
  }
  fill(t);
  const ts_value_id first = test_add_op(t->graph, TS_ROOT, t->op, &attrs, params, operands);
  for (size_t i = 0; i < results; i++) ids[i] = first + (ts_value_id)i;
  ck_assert_ok(ts_graph_set_results(t->graph, TS_ROOT, ids, results));
  ck_assert_ok(ts_executable_create(t->graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, t->args, operands, NULL, t->results));
  ts_executable_release(exe);
}

static void drop(trial *t) {
  for (int i = 0; i < MOST_OPERANDS; i++) ts_buffer_release(t->args[i]);
  for (int i = 0; i < MOST_RESULTS; i++) ts_buffer_release(t->results[i]);
  ts_graph_destroy(t->graph);
}

/* ---- what results must be */

/* A matrix of a trial, times 2^-power so that its largest part is about 1. */
typedef struct judged {
  const trial *t;
  int64_t which;
  matrix a;
  int power;
  double epsilon, n;
  double least; /* the least number of the type, times 2^-power */
} judged;

static judged begin(const trial *t, int64_t which, matrix a) {
  judged j = {.t = t, .which = which, .a = a, .epsilon = t->form.type->epsilon};
  const double most = largest_part(&j.a);
  if (most > 0) (void)frexp(most, &j.power);
  scale_by_power(&j.a, -j.power);
  j.n = (double)(a.rows > a.cols ? a.rows : a.cols);
  j.least = ldexp(1, t->form.type->least - j.power);
  return j;
}

static void check(const judged *j, const char *what, double error, double scale) {
  const matrix_form *f = &j->t->form;
  ck_assert_msg(error <= THRESHOLD * scale,
                "%s of %s by matrix %d of %d, %s[%d, %d], class %s: %s is %g times the limit", ts_op_name(j->t->op),
                j->t->full ? "full size" : "least size", (int)j->which, j->t->batch, ts_dtype_name(f->type->dtype),
                (int)f->rows, (int)f->cols, class_names[j->which % 2 ? NOISE : f->class], what,
                error / (THRESHOLD * scale));
}

static bool is_finite(const matrix *m) {
  bool finite = true;
  for (int64_t i = 0; i < 2 * m->rows * m->cols; i++) finite &= isfinite(m->re[i]) != 0;
  return finite;
}

static matrix difference(matrix a, matrix b) {
  ck_assert(a.rows == b.rows && a.cols == b.cols);
  for (int64_t i = 0; i < 2 * a.rows * a.cols; i++) a.re[i] -= b.re[i];
  free_matrix(b);
  return a;
}

/* ||A - B|| / (n ||A|| epsilon); the least numbers are no more exact than that. Frees b. */
static void check_residual(const judged *j, matrix b) {
  matrix d = difference(copy_of(&j->a), b);
  check(j, "the residual", norm_of(&d), j->n * (j->epsilon * norm_of(&j->a) + 2 * j->least));
  free_matrix(d);
}

/* ||I - Q^H Q|| / (n epsilon). Frees q. */
static void check_orthonormal(const judged *j, const char *what, matrix q) {
  matrix m = product(adjoint(copy_of(&q)), q);
  for (int64_t i = 0; i < m.rows; i++) m.re[i * m.cols + i] -= 1;
  check(j, what, norm_of(&m), (double)q.rows * j->epsilon);
  free_matrix(m);
}

/* Only of the largest numbers, results may be beyond the range. Frees m where they are. */
static bool is_in_range(const judged *j, const matrix *m) {
  if (is_finite(m)) return true;
  check(j, "what is not finite", j->t->form.class == LARGEST && j->which % 2 == 0 ? 0 : 1, 0);
  free_matrix(*m);
  return false;
}

static void check_triangle(const judged *j, const matrix *m, bool upper) {
  for (int64_t i = 0; i < m->rows; i++)
    for (int64_t k = 0; k < m->cols; k++)
      if (upper ? k < i : k > i) check(j, "the other triangle", fabs(m->re[i * m->cols + k]), 0);
}

static void judge_qr(const judged *j) {
  const matrix r = take(j->t->results[1], j->which);
  check_orthonormal(j, "the orthogonality of Q", take(j->t->results[0], j->which));
  if (!is_in_range(j, &r)) return;
  check_triangle(j, &r, true);
  matrix scaled = r;
  scale_by_power(&scaled, -j->power);
  check_residual(j, product(take(j->t->results[0], j->which), scaled));
}

static matrix times_row(matrix m, const matrix *row) {
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < m.cols; k++) {
      const double by = k < row->cols ? row->re[k] : 0;
      m.re[i * m.cols + k] *= by;
      m.im[i * m.cols + k] *= by;
    }
  return m;
}

/* The first element of largest size is real and positive, but where others are as large up to rounding. */
static void check_phases(const judged *j, matrix m) {
  const double slack = 32 * j->epsilon;
  for (int64_t k = 0; k < m.cols; k++) {
    double most = 0, positive = 0;
    for (int64_t i = 0; i < m.rows; i++) {
      const double re = m.re[i * m.cols + k], im = m.im[i * m.cols + k];
      most = fmax(most, hypot(re, im));
      if (fabs(im) <= slack) positive = fmax(positive, re);
    }
    check(j, "the phase of a vector", positive >= most * (1 - slack) ? 0 : 1, 0);
  }
  free_matrix(m);
}

static void check_order(const judged *j, const matrix *values) {
  for (int64_t i = 1; i < values->cols; i++)
    check(j, "the order of values", fabs(values->re[i - 1]) >= fabs(values->re[i]) ? 0 : 1, 0);
}

/* Those of a class that says them, by their sizes. */
static void check_known(const judged *j, const matrix *values) {
  const matrix_form *f = &j->t->form;
  if (j->which % 2 == 1 || !has_known_values(f->class)) return;
  for (int64_t i = 0; i < values->cols; i++)
    check(j, "a value", fabs(fabs(values->re[i]) - ldexp(known_value(f, i), -j->power)),
          j->n * (j->epsilon * norm_of(&j->a) + 2 * j->least));
}

static void judge_eigh(const judged *j) {
  const matrix values = take_row(j->t->results[0], j->which);
  check_orthonormal(j, "the orthogonality of the vectors", take(j->t->results[1], j->which));
  check_phases(j, take(j->t->results[1], j->which));
  if (!is_in_range(j, &values)) return;
  matrix scaled = values;
  scale_by_power(&scaled, -j->power);
  check_order(j, &scaled);
  check_known(j, &scaled);
  check_residual(
      j, product(times_row(take(j->t->results[1], j->which), &scaled), adjoint(take(j->t->results[1], j->which))));
  free_matrix(values);
}

static void judge_svd(const judged *j) {
  const matrix values = take_row(j->t->results[1], j->which);
  matrix u = take(j->t->results[0], j->which), vt = take(j->t->results[2], j->which);
  check_orthonormal(j, "the orthogonality of U", copy_of(&u));
  check_orthonormal(j, "the orthogonality of V", adjoint(copy_of(&vt)));
  matrix v = adjoint(copy_of(&vt));
  for (int64_t i = 0; i < v.rows * v.cols; i++) v.im[i] = -v.im[i];
  check_phases(j, v);
  if (is_in_range(j, &values)) {
    matrix scaled = values, s = make_matrix(u.cols, vt.rows);
    scale_by_power(&scaled, -j->power);
    check_order(j, &scaled);
    check_known(j, &scaled);
    for (int64_t i = 0; i < values.cols; i++) {
      check(j, "a negative value", scaled.re[i] < 0, 0);
      s.re[i * s.cols + i] = scaled.re[i];
    }
    check_residual(j, product(copy_of(&u), product(s, copy_of(&vt))));
    free_matrix(values);
  }
  free_matrix(u);
  free_matrix(vt);
}

static void judge_lu(const judged *j) {
  matrix p = take(j->t->results[0], j->which), l = take(j->t->results[1], j->which);
  const matrix u = take(j->t->results[2], j->which);
  matrix scaled = u;
  if (is_in_range(j, &u)) {
    for (int64_t i = 0; i < l.rows * l.cols; i++)
      check(j, "an element of L", hypot(l.re[i], l.im[i]) <= 1 + 8 * j->epsilon ? 0 : 1, 0);
    check_triangle(j, &l, false);
    check_triangle(j, &u, true);
    scale_by_power(&scaled, -j->power);
    check_residual(j, product(copy_of(&p), product(copy_of(&l), scaled)));
  }
  free_matrix(p);
  free_matrix(l);
}

static void judge_cholesky(const judged *j) {
  matrix l = take(j->t->results[0], j->which);
  const int half = j->power / 2;
  check(j, "what is not finite", is_finite(&l) ? 0 : 1, 0);
  check_triangle(j, &l, false);
  scale_by_power(&l, -half);
  matrix b = product(l, adjoint(copy_of(&l)));
  scale_by_power(&b, half + half - j->power);
  check_residual(j, b);
}

/* Singular matrices, those whose solutions may be beyond the range, and all of types with few digits. */
static bool may_be_infinite(const judged *j) {
  static const matrix_class invertible[] = {
      IDENTITY,       DIAGONAL_GEOMETRIC, DIAGONAL_ONE_LARGE, DIAGONAL_ONE_SMALL, CONDITION_100,
      CONDITION_ROOT, CONDITION_EPSILON,  ONE_LARGE_VALUE,    ONE_SMALL_VALUE,    NOISE,
      HILBERT,        ONE_LARGE_ELEMENT,  NEAR_UNDERFLOW,     NEAR_OVERFLOW};
  const matrix_class class = j->which % 2 == 0 ? j->t->form.class : NOISE;
  if (j->epsilon > 0x1p-20) return true;
  for (size_t i = 0; i < sizeof invertible / sizeof *invertible; i++)
    if (class == invertible[i]) return false;
  return true;
}

/* ||B - A X|| / (n ||A|| ||X|| epsilon). */
static void judge_system(const judged *j) {
  matrix x = take(j->t->results[0], j->which), b = take(j->t->args[1], j->which);
  int power = 0;
  const double most = largest_part(&x);
  if (!is_finite(&x) || !is_finite(&b)) {
    check(j, "what is not finite", may_be_infinite(j) ? 0 : 1, 0);
    free_matrix(x);
    free_matrix(b);
    return;
  }
  if (most > 0) (void)frexp(most, &power);
  scale_by_power(&x, -power);
  scale_by_power(&b, -power - j->power);
  const int least = j->t->form.type->least;
  const double size = norm_of(&j->a), length = norm_of(&x), of_b = ldexp(1, least - power - j->power);
  matrix d = difference(b, product(copy_of(&j->a), x));
  check(j, "the residual", norm_of(&d),
        j->n * (j->epsilon * size * length + 4 * of_b + 4 * size * ldexp(1, least - power)) + 0x1p-1074);
  free_matrix(d);
}

static void judge(const trial *t, int64_t which) {
  const judged j = begin(t, which, coefficients(t, which));
  switch (t->op) {
  case TS_OP_QR: judge_qr(&j); break;
  case TS_OP_EIGH: judge_eigh(&j); break;
  case TS_OP_SVD: judge_svd(&j); break;
  case TS_OP_LU: judge_lu(&j); break;
  case TS_OP_CHOLESKY: judge_cholesky(&j); break;
  default: judge_system(&j);
  }
  free_matrix(j.a);
}

static const ts_opcode ops[] = {
    TS_OP_QR, TS_OP_SVD, TS_OP_EIGH, TS_OP_LU, TS_OP_CHOLESKY, TS_OP_SOLVE, TS_OP_TRIANGULAR_SOLVE};
enum { OPS = sizeof ops / sizeof *ops, ANY_SHAPE = 2 };

static void try(const matrix_form *form, int op, int batch) {
  trial t = {.op = ops[op], .form = *form, .batch = batch};
  t.right = 1 + (form->rows + form->cols) % 4 * 6;
  t.full = (form->rows + form->cols + batch) % 3 == 0;
  t.upper = form->rows % 3 == 1;
  t.transpose = form->rows % 2;
  t.form.hermitian = t.op == TS_OP_EIGH || t.op == TS_OP_CHOLESKY;
  run(&t);
  for (int64_t b = 0; b < batch; b++) judge(&t, b);
  drop(&t);
}

/* Every op that takes matrices of this shape. */
static void try_all(const matrix_form *form, int batch) {
  const int count = form->rows == form->cols ? OPS : ANY_SHAPE;
  for (int op = 0; op < count; op++) try(form, op, batch);
}

/* ---- tests */

static const int shapes[][2] = {{1, 1},   {2, 2},   {3, 3},   {8, 8},   {16, 16}, {2, 1},    {1, 2},   {5, 3},
                                {3, 5},   {16, 9},  {9, 16},  {17, 17}, {33, 33}, {17, 4},   {31, 31}, {32, 32},
                                {47, 47}, {48, 48}, {65, 65}, {40, 9},  {9, 40},  {100, 33}, {33, 90}};
enum { SHAPES = sizeof shapes / sizeof *shapes, SHAPES_OF_NARROW = 13, BATCHED = 19 };

START_TEST(every_class)
{
  for (int t = 0; t < NUMBER_TYPES; t++)
    for (int s = 0; s < (t < WIDE_TYPES ? SHAPES : SHAPES_OF_NARROW); s++) {
      const matrix_form form = {(matrix_class)_i, &number_types[t], shapes[s][0], shapes[s][1], false};
      if (TEST_IS_SANITIZED && form.rows > 33 && form.cols > 9) continue;
      try_all(&form, 1);
      if (shapes[s][0] <= 17 && shapes[s][1] <= 17) try_all(&form, BATCHED);
    }
}
END_TEST

/* So large that reflectors are applied by panels, and many of them have reduced a matrix of low rank. */
static const matrix_class of_large[] = {ONES,          RANK_2,         DECAYING,  GRADED_ROWS, CONDITION_BEYOND,
                                        NEAR_OVERFLOW, NEAR_UNDERFLOW, SUBNORMAL, NOISE,       ONE_LARGE_VALUE};
enum { OF_LARGE = sizeof of_large / sizeof *of_large, LARGE_REAL = 196, LARGE_COMPLEX = 130 };

START_TEST(large_matrices)
{
  for (int t = 0; !TEST_IS_SANITIZED && t < WIDE_TYPES; t++) {
    const int64_t n = ts_dtype_is_complex(number_types[t].dtype) ? LARGE_COMPLEX : LARGE_REAL;
    const matrix_form form = {of_large[_i], &number_types[t], n, n, false};
    try_all(&form, 1);
  }
}
END_TEST

/* Matrices that were found by hand, of which Q was not orthonormal. */
START_TEST(a_tall_matrix_of_ones)
{
  const matrix_form form = {ONES, &number_types[0], MOST_LINES, 100, false};
  try(&form, 0, 1);
}
END_TEST

START_TEST(a_column_of_least_numbers)
{
  const matrix_form form = {ZERO, &number_types[2], 2, 1, false};
  trial t = {.op = TS_OP_QR, .form = form, .batch = 1};
  run(&t);
  ts_buffer_release(t.results[0]);
  ts_buffer_release(t.results[1]);
  ((double *)t.args[0]->data)[0] = 1.6186e-320;
  ((double *)t.args[0]->data)[2] = 3.627e-320;
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(t.graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, t.args, 1, NULL, t.results));
  ts_executable_release(exe);
  judge(&t, 0);
  drop(&t);
}
END_TEST

/* Columns times powers of two whose product is 1 change no bit of a determinant, though most of the partial products
 * are beyond the range. */
static void scale_columns(const trial *t, int power) {
  for (int64_t b = 0; b < t->batch; b++) {
    matrix m = take(t->args[0], b);
    for (int64_t i = 0; i < 2 * m.rows * m.cols; i++) {
      const int64_t k = i % m.cols;
      m.re[i] = ldexp(m.re[i], 2 * k + 1 == m.cols ? 0 : 2 * k < m.cols ? power : -power);
    }
    put(t->args[0], b, &m);
    free_matrix(m);
  }
}

START_TEST(determinants_beyond_the_range)
{
  const number_type *type = &number_types[_i];
  const int sizes[] = {4, 9, 16, 33, 47, ts_dtype_is_complex(type->dtype) ? 50 : 66}, batches[] = {1, BATCHED};
  for (int i = 0; i < 10; i++) { /* large ones alone */
    const int64_t n = sizes[i % 6];
    trial t = {.op = TS_OP_DETERMINANT, .form = {NOISE, type, n, n, false}, .batch = batches[i / 6]};
    ts_executable *exe;
    ts_buffer *scaled, *expected;
    run(&t);
    for (int sign = -1; sign <= 1; sign += 2) {
      scale_columns(&t, sign * type->most * 2 / 5);
      ck_assert_ok(ts_executable_create(t.graph, NULL, &exe));
      ck_assert_ok(ts_executable_run(exe, t.args, 1, NULL, &scaled));
      ck_assert_ok(ts_ref_run(t.graph, t.args, 1, ts_pool_default(), &expected));
      for (int64_t b = 0; b < t.batch; b++) {
        matrix m = make_matrix(1, 3);
        set_part(t.results[0], b, &m, 0);
        set_part(scaled, b, &m, 1);
        set_part(expected, b, &m, 2);
        ck_assert_msg(m.re[0] == m.re[1] && m.im[0] == m.im[1] && m.re[0] != 0 && isfinite(m.re[0]),
                      "determinant %d of %d, %s[%d, %d], is %g%+gi, not %g%+gi", (int)b, t.batch,
                      ts_dtype_name(type->dtype), (int)n, (int)n, m.re[1], m.im[1], m.re[0], m.im[0]);
        ck_assert(m.re[2] == m.re[1] && m.im[2] == m.im[1]);
        free_matrix(m);
      }
      ts_buffer_release(scaled);
      ts_buffer_release(expected);
      ts_executable_release(exe);
      scale_columns(&t, -sign * type->most * 2 / 5);
    }
    drop(&t);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("matrix_classes");
  TCase *tests = tcase_create("classes");
  tcase_set_timeout(tests, 240);
  tcase_add_loop_test(tests, every_class, 0, CLASSES);
  tcase_add_loop_test(tests, large_matrices, 0, OF_LARGE);
  tcase_add_loop_test(tests, determinants_beyond_the_range, 0, WIDE_TYPES);
  tcase_add_test(tests, a_tall_matrix_of_ones);
  tcase_add_test(tests, a_column_of_least_numbers);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
