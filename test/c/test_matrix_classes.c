/* Compiled factorizations and solvers on LAPACK's classes of test matrices. The test takes every type of floats and
 * complex numbers, single matrices and batches, and sizes on both sides of each block size. Results are
 * judged (tool/judge.h), and compared with the values that a class says. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "matrix_classes.h"
#include "pass/pass.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"
#include "tool/judge.h"

#define THRESHOLD 30

enum { MOST_OPERANDS = 2, MOST_RESULTS = 3 };

/* ---- a program of one op */

typedef struct trial {
  ts_opcode op;
  matrix_form form;
  int batch;
  int64_t right; /* columns of the right side of a system */
  bool full, transpose, upper;
  bool by_loops; /* run what the pass of that name makes */
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

/* Matrices of the class, with others between them. */
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

static void create_executable(const trial *t, ts_executable **exe) {
  const ts_pass_options options = {.verify = true};
  ts_graph *loops;
  if (!t->by_loops) {
    ck_assert_ok(ts_executable_create(t->graph, NULL, exe));
    return;
  }
  ck_assert_ok(ts_pass_factor_loops(t->graph, &options, &loops));
  ck_assert_ok(ts_graph_verify(loops));
  ck_assert(!ts_factor_loops_apply(loops));
  ck_assert_ok(ts_executable_create(loops, NULL, exe));
  ts_graph_destroy(loops);
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
  create_executable(t, &exe);
  ck_assert_ok(ts_executable_run(exe, t->args, operands, NULL, t->results));
  ts_executable_release(exe);
}

static void drop(trial *t) {
  for (int i = 0; i < MOST_OPERANDS; i++) ts_buffer_release(t->args[i]);
  for (int i = 0; i < MOST_RESULTS; i++) ts_buffer_release(t->results[i]);
  ts_graph_destroy(t->graph);
}

/* ---- values that a class says */

/* By their sizes. */
static void check_known(const trial *t, int64_t which) {
  const matrix_form *f = &t->form;
  if (which % 2 == 1 || !has_known_values(f->class) || (t->op != TS_OP_EIGH && t->op != TS_OP_SVD)) return;
  matrix a = take(t->args[0], which), values = take_row(t->results[t->op == TS_OP_SVD], which);
  const double n = (double)(f->rows > f->cols ? f->rows : f->cols);
  for (int64_t i = 0; i < values.cols; i++) {
    const double error = fabs(fabs(values.re[i]) - known_value(f, i));
    ck_assert_msg(error <= THRESHOLD * n * (f->type->epsilon * norm_of(&a) + 2 * ldexp(1, f->type->least)),
                  "%s of %s[%d, %d], class %s: value %d is %g off", ts_op_name(t->op), ts_dtype_name(f->type->dtype),
                  (int)f->rows, (int)f->cols, class_names[f->class], (int)i, error);
  }
  free_matrix(a);
  free_matrix(values);
}

static void judge(const trial *t) {
  const matrix_form *f = &t->form;
  ts_status status = ts_judge(ts_graph_op(t->graph, 0), t->args, t->results);
  ck_assert_msg(!status, "%s, class %s, %s", ts_dtype_name(f->type->dtype), class_names[f->class],
                ts_status_message(status));
  for (int64_t b = 0; b < t->batch; b++) check_known(t, b);
}

static const ts_opcode ops[] = {
    TS_OP_QR, TS_OP_SVD, TS_OP_EIGH, TS_OP_LU, TS_OP_CHOLESKY, TS_OP_SOLVE, TS_OP_TRIANGULAR_SOLVE};
enum { OPS = sizeof ops / sizeof *ops, ANY_SHAPE = 2 };

static void try_form(const matrix_form *form, ts_opcode op, int batch, bool by_loops) {
  trial t = {.op = op, .form = *form, .batch = batch, .by_loops = by_loops};
  t.right = 1 + (form->rows + form->cols) % 4 * 6;
  t.full = (form->rows + form->cols + batch) % 3 == 0;
  t.upper = form->rows % 3 == 1;
  t.transpose = form->rows % 2;
  t.form.hermitian = t.op == TS_OP_EIGH || t.op == TS_OP_CHOLESKY;
  run(&t);
  judge(&t);
  drop(&t);
}

static void try(const matrix_form *form, int op, int batch) { try_form(form, ops[op], batch, false); }

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
      if (!testing_takes(s + t + _i, 5)) continue;
      try_all(&form, 1);
      if (shapes[s][0] <= 17 && shapes[s][1] <= 17) try_all(&form, BATCHED);
    }
}
END_TEST

/* The loops that stand for ops on other devices (pass/loops.h). */
static const ts_opcode ops_of_loops[] = {TS_OP_QR, TS_OP_SVD, TS_OP_EIGH, TS_OP_LU, TS_OP_SOLVE, TS_OP_DETERMINANT};
static const int shapes_of_loops[][2] = {{1, 1}, {2, 2}, {3, 3}, {8, 8}, {5, 3}, {3, 5}, {16, 9}, {9, 16}, {17, 17}};
enum {
  OPS_OF_LOOPS = sizeof ops_of_loops / sizeof *ops_of_loops,
  SHAPES_OF_LOOPS = sizeof shapes_of_loops / sizeof *shapes_of_loops
};

START_TEST(every_class_by_loops)
{
  for (int t = 0; t < NUMBER_TYPES; t++)
    for (int s = 0; s < SHAPES_OF_LOOPS; s++) {
      const matrix_form form = {(matrix_class)_i, &number_types[t], shapes_of_loops[s][0], shapes_of_loops[s][1],
                                false};
      const int which = s + t + _i;
      if (!testing_every_case() && (which % (TEST_IS_SANITIZED ? 27 : 3) != 0 || !testing_in_half(which / 3))) continue;
      for (int op = 0; op < (form.rows == form.cols ? OPS_OF_LOOPS : ANY_SHAPE); op++) {
        try_form(&form, ops_of_loops[op], 1, true);
        if (s % 4 == 1) try_form(&form, ops_of_loops[op], 3, true);
      }
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

/* Matrices found by hand whose Q was not orthonormal. */
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
  judge(&t);
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
  const number_type *type = &number_types[_i % WIDE_TYPES]; /* first by the routine, then by loops */
  const int sizes[] = {4, 9, 16, 33, 47, ts_dtype_is_complex(type->dtype) ? 50 : 66}, batches[] = {1, BATCHED};
  for (int i = 0; i < 10; i++) { /* large ones alone */
    const int64_t n = sizes[i % 6];
    trial t = {.op = TS_OP_DETERMINANT, .form = {NOISE, type, n, n, false}, .batch = batches[i / 6]};
    ts_executable *exe;
    ts_buffer *scaled;
    t.by_loops = _i >= WIDE_TYPES;
    if (t.by_loops && (i % 2 || n > 16)) continue;
    if (!testing_takes((t.by_loops ? i / 2 : i) + _i, 1)) continue;
    run(&t);
    for (int sign = -1; sign <= 1; sign += 2) {
      scale_columns(&t, sign * type->most * 2 / 5);
      create_executable(&t, &exe);
      ck_assert_ok(ts_executable_run(exe, t.args, 1, NULL, &scaled));
      ck_assert_ok(ts_judge(ts_graph_op(t.graph, 0), t.args, &scaled));
      for (int64_t b = 0; b < t.batch; b++) {
        matrix m = make_matrix(1, 2);
        set_part(t.results[0], b, &m, 0);
        set_part(scaled, b, &m, 1);
        ck_assert_msg(m.re[0] == m.re[1] && m.im[0] == m.im[1] && m.re[0] != 0 && isfinite(m.re[0]),
                      "determinant %d of %d, %s[%d, %d], is %g%+gi, not %g%+gi", (int)b, t.batch,
                      ts_dtype_name(type->dtype), (int)n, (int)n, m.re[1], m.im[1], m.re[0], m.im[0]);
        free_matrix(m);
      }
      ts_buffer_release(scaled);
      ts_executable_release(exe);
      scale_columns(&t, -sign * type->most * 2 / 5);
    }
    drop(&t);
  }
}
END_TEST

static void check_nan(const matrix_form *form, ts_opcode op, size_t element) {
  trial t = {.op = op, .form = *form, .batch = 3, .right = 2, .by_loops = true};
  run(&t);
  for (uint32_t i = 0; i < (uint32_t)ts_op_results(op); i++) ts_buffer_release(t.results[i]);
  ts_scalar_store(form->type->dtype, ts_scalar_from_f64(form->type->dtype, (double)NAN),
                  (char *)t.args[0]->data + element * ts_dtype_size(form->type->dtype));
  ts_executable *exe;
  create_executable(&t, &exe);
  ck_assert_ok(ts_executable_run(exe, t.args, (size_t)ts_op_operands(op), NULL, t.results));
  ts_executable_release(exe);
  judge(&t);
  drop(&t);
}

static void check_empty(const matrix_form *form, ts_opcode op, int batch) {
  for (int full = 0; full < 2; full++) {
    trial t = {.op = op, .form = *form, .batch = batch, .full = full, .by_loops = true};
    ts_buffer *expected[MOST_RESULTS];
    char message[TS_COMPARE_TEXT];
    run(&t);
    ck_assert_ok(ts_ref_run(t.graph, t.args, (size_t)ts_op_operands(op), ts_pool_default(), expected));
    for (int i = 0; i < ts_op_results(op); i++) {
      ck_assert_msg(ts_compare_buffers(t.results[i], expected[i], 1, message), "%s, result %d: %s", ts_op_name(op), i,
                    message);
      ts_buffer_release(expected[i]);
    }
    drop(&t);
  }
}

START_TEST(loops_without_numbers)
{
  const int empty[][2] = {{0, 0}, {0, 3}, {3, 0}};
  for (int op = 0; op < OPS_OF_LOOPS; op++) {
    const matrix_form square = {NOISE, &number_types[_i], 3, 3, false};
    check_nan(&square, ops_of_loops[op], 0);
    check_nan(&square, ops_of_loops[op], 1); /* which eigh does not read */
    check_empty(&square, ops_of_loops[op], 0);
    for (int s = 0; s < (op < ANY_SHAPE ? 3 : 1); s++) {
      const matrix_form form = {ZERO, &number_types[_i], empty[s][0], empty[s][1], false};
      check_empty(&form, ops_of_loops[op], 2);
    }
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("matrix_classes");
  TCase *tests = tcase_create("classes");
  tcase_set_timeout(tests, 240);
  tcase_add_loop_test(tests, every_class, 0, CLASSES);
  tcase_add_loop_test(tests, every_class_by_loops, 0, CLASSES);
  testing_add_many(tests, large_matrices, OF_LARGE);
  tcase_add_loop_test(tests, determinants_beyond_the_range, 0, 2 * WIDE_TYPES);
  testing_add_many(tests, loops_without_numbers, NUMBER_TYPES);
  tcase_add_test(tests, a_tall_matrix_of_ones);
  tcase_add_test(tests, a_column_of_least_numbers);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
