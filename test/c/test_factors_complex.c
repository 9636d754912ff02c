/* Linear algebra of complex matrices, by the equations that define its results (tool/judge.h): every op, c64 and c128,
 * sizes on both sides of a change of algorithm, batches, each side and triangle; matrices of low rank, signs of
 * zeros, NaN and infinities; the same bits on any number of threads and with every instruction set; cancelling;
 * allocations that fail. */
#include "base/alloc.h"
#include "exec/executable.h"
#include "kernel/linalg/factor.h"
#include "kernel/ref/ref.h"
#include "kernel/routine.h"
#include "lesser_isa.h"
#include "linalg_check.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include <complex.h>
#include <math.h>

typedef double complex number;
#include "matrices.h"

enum { MOST_OPERANDS = 2, MOST_RESULTS = 3 };

static const ts_dtype types[] = {TS_C64, TS_C128};
enum { TYPES = sizeof types / sizeof *types };

/* ---- programs ---- */

typedef struct sides {
  bool left, lower, transpose, unit;
} sides;

typedef struct complex_case {
  ts_opcode op;
  ts_dtype type;
  int batch, rows, cols;
  int right; /* columns of the right side of solve; rows or columns of the right side of triangular_solve */
  bool full;
  sides sides;
} complex_case;

typedef struct program {
  complex_case c;
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer *args[MOST_OPERANDS], *results[MOST_RESULTS];
  size_t arg_count, count;
} program;

static char *element_of(const ts_buffer *buffer, int64_t element) {
  return (char *)buffer->data + (size_t)element * ts_dtype_size(buffer->dtype);
}

static void set(ts_buffer *buffer, int64_t element, number z) {
  ts_scalar_store(buffer->dtype, ts_scalar_complex(buffer->dtype, creal(z), cimag(z)), element_of(buffer, element));
}

static number at(const ts_buffer *buffer, int64_t element) {
  const ts_scalar x = ts_scalar_load(buffer->dtype, element_of(buffer, element));
  return CMPLX(ts_scalar_to_f64(buffer->dtype, x), ts_scalar_imag(buffer->dtype, x));
}

/* Hermitian and positive definite as a lower triangle, or noise with larger numbers on the diagonal. */
static double diagonal_of(ts_opcode op, int n) {
  return op == TS_OP_CHOLESKY ? 2.0 * n + 1 : op == TS_OP_TRIANGULAR_SOLVE ? n + 3 : 0;
}

static void fill(const complex_case *c, ts_buffer *buffer, uint64_t seed, bool is_matrix) {
  for (int64_t i = 0; i < ts_shape_elements(&buffer->shape); i++) {
    const double re = noise(&seed), im = noise(&seed);
    const bool on_diagonal = is_matrix && i / c->cols % c->rows == i % c->cols;
    set(buffer, i, re + im * I + (on_diagonal ? diagonal_of(c->op, c->rows) : 0));
  }
}

static ts_attrs attrs_of(const complex_case *c) {
  ts_attrs attrs = {0};
  if (c->op == TS_OP_QR || c->op == TS_OP_SVD) attrs.factors.full = c->full;
  if (c->op != TS_OP_TRIANGULAR_SOLVE) return attrs;
  attrs.triangular.left = c->sides.left;
  attrs.triangular.lower = c->sides.lower;
  attrs.triangular.transpose = c->sides.transpose;
  attrs.triangular.unit = c->sides.unit;
  return attrs;
}

static ts_shape shape_of(const complex_case *c, size_t operand) {
  if (operand == 0) return SHAPE(c->batch, c->rows, c->cols);
  const bool turned = c->op == TS_OP_TRIANGULAR_SOLVE && !c->sides.left;
  return turned ? SHAPE(c->batch, c->right, c->rows) : SHAPE(c->batch, c->rows, c->right);
}

static program make(const complex_case *c) {
  program p = {.c = *c, .arg_count = (size_t)ts_op_operands(c->op), .count = (size_t)ts_op_results(c->op)};
  ts_value_id params[MOST_OPERANDS], results[MOST_RESULTS];
  const ts_attrs attrs = attrs_of(c);
  p.graph = test_graph();
  for (size_t i = 0; i < p.arg_count; i++) {
    const ts_shape shape = shape_of(c, i);
    params[i] = test_add_param(p.graph, TS_ROOT, c->type, shape);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), c->type, &shape, &p.args[i]));
    fill(c, p.args[i], 17 + i, i == 0);
  }
  const ts_value_id first = test_add_op(p.graph, TS_ROOT, c->op, &attrs, params, p.arg_count);
  for (size_t i = 0; i < p.count; i++) results[i] = first + (ts_value_id)i;
  ck_assert_ok(ts_graph_set_results(p.graph, TS_ROOT, results, p.count));
  ck_assert_ok(ts_executable_create(p.graph, NULL, &p.exe));
  return p;
}

static void drop_results(program *p) {
  for (size_t i = 0; i < p->count; i++) {
    ts_buffer_release(p->results[i]);
    p->results[i] = NULL;
  }
}

static void drop(program *p) {
  drop_results(p);
  for (size_t i = 0; i < p->arg_count; i++) ts_buffer_release(p->args[i]);
  ts_executable_release(p->exe);
  ts_graph_destroy(p->graph);
}

static void run(program *p) {
  drop_results(p);
  ck_assert_ok(ts_executable_run(p->exe, p->args, p->arg_count, NULL, p->results));
}

/* ---- what results must be ---- */

static double epsilon(ts_dtype type) { return type == TS_C64 ? 0x1p-23 : 0x1p-52; }

static void judge(const program *p) {
  if (is_compared(p->c.rows, p->c.cols)) check_linalg(p->graph, p->args, p->results);
}

/* ---- values ---- */

static bool is_nan(number z) { return isnan(creal(z)) || isnan(cimag(z)); }

static void check_case(const complex_case *c) {
  program p = make(c);
  run(&p);
  judge(&p);
  drop(&p);
}

static const ts_opcode ops[] = {TS_OP_CHOLESKY, TS_OP_LU,   TS_OP_DETERMINANT, TS_OP_SOLVE,
                                TS_OP_QR,       TS_OP_EIGH, TS_OP_SVD,         TS_OP_TRIANGULAR_SOLVE};
enum { OPS = sizeof ops / sizeof *ops };

static const int sizes[] = {0, 1, 2, 3, 5, 8, 9, 16, 17, 33, 65};
enum { SIZES = sizeof sizes / sizeof *sizes };

static complex_case square(ts_opcode op, ts_dtype type, int batch, int n) {
  const sides lower = {.left = true, .lower = true};
  const bool is_system = op == TS_OP_SOLVE || op == TS_OP_TRIANGULAR_SOLVE;
  return (complex_case){op, type, batch, n, n, .right = is_system ? 1 + n % 4 : 0, .sides = lower};
}

START_TEST(every_size)
{
  static const int batches[] = {0, 1, 2, 9};
  for (int i = 0; i < SIZES; i++)
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
      if (sizes[i] > 17 && batches[b] != 1) continue;
      const complex_case c = square(ops[_i / TYPES], types[_i % TYPES], batches[b], sizes[i]);
      check_case(&c);
    }
}
END_TEST

START_TEST(factors_of_every_shape)
{
  static const int shapes[][2] = {{0, 3}, {3, 0}, {1, 4}, {4, 1}, {2, 3}, {3, 2}, {7, 5}, {5, 7}, {40, 9}, {9, 40}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int full = 0; full < 2; full++)
      for (int which = 0; which < 2; which++)
        check_case(&(complex_case){which ? TS_OP_SVD : TS_OP_QR, types[_i], 1 + which, shapes[s][0], shapes[s][1],
                                   .full = full});
}
END_TEST

/* Elements outside of the triangle are not read. */
static void spoil(program *p) {
  const int n = p->c.rows;
  for (int64_t e = 0; e < ts_shape_elements(&p->args[0]->shape); e++) {
    const int64_t i = e / n % n, k = e % n;
    if ((p->c.sides.lower ? k > i : k < i) || (p->c.sides.unit && k == i)) set(p->args[0], e, NAN);
  }
}

START_TEST(systems_of_every_kind)
{
  static const int columns[] = {0, 1, 3, 20};
  for (int kind = 0; kind < 16; kind++)
    for (int i = kind % 2; i < SIZES; i += 2)
      for (int c = 0; c < 4; c++) {
        const sides s = {kind & 1, kind & 2, kind & 4, kind & 8};
        /* Ones on the diagonal make solutions grow as 2^n. */
        if (s.unit && sizes[i] > 9) continue;
        program p = make(&(complex_case){TS_OP_TRIANGULAR_SOLVE, types[_i], 1 + c % 2, sizes[i], sizes[i],
                                         .right = columns[c], .sides = s});
        spoil(&p);
        run(&p);
        judge(&p);
        drop(&p);
      }
}
END_TEST

/* ---- blocks of large matrices ---- */

static const ts_opcode blocked_ops[] = {TS_OP_CHOLESKY, TS_OP_LU, TS_OP_DETERMINANT, TS_OP_SOLVE,
                                        TS_OP_TRIANGULAR_SOLVE};
enum { BLOCKED_OPS = sizeof blocked_ops / sizeof *blocked_ops };

static complex_case blocked(int op, ts_dtype type, int batch, int n, int right) {
  complex_case c = square(blocked_ops[op], type, batch, n);
  if (c.right > 0) c.right = right;
  return c;
}

/* Around the size where blocks begin, and with a last block of every kind. */
START_TEST(every_size_of_blocks)
{
  static const int large[] = {47, 48, 63, 65, 97, 129};
  for (size_t i = 0; i < sizeof large / sizeof *large; i++)
    for (int batch = 1; batch < (i % 3 == 1 ? 4 : 2); batch++) {
      const complex_case c = blocked(_i / TYPES, types[_i % TYPES], batch, large[i], 15 + (int)i);
      check_case(&c);
    }
}
END_TEST

/* Fewer right sides than make blocks, less and more than a tile, and more of them than rows. */
START_TEST(right_sides_of_blocks)
{
  static const int rights[] = {1, 15, 16, 31, 33, 130};
  for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
    const complex_case c = blocked(3 + _i / TYPES, types[_i % TYPES], 1, 101, rights[i]);
    check_case(&c);
  }
}
END_TEST

/* Small beside the diagonal, so that solutions with ones on it do not grow. */
static void shrink(program *p) {
  const int n = p->c.rows;
  for (int64_t e = 0; e < ts_shape_elements(&p->args[0]->shape); e++)
    if (e / n % n != e % n) set(p->args[0], e, at(p->args[0], e) / n);
}

START_TEST(blocked_systems_of_every_kind)
{
  const int kind = _i / TYPES;
  for (int n = 64; n < 100; n += 33) {
    program p = make(&(complex_case){TS_OP_TRIANGULAR_SOLVE, types[_i % TYPES], 2, n, n, .right = 41,
                                     .sides = {kind & 1, kind & 2, kind & 4, kind & 8}});
    shrink(&p);
    spoil(&p);
    run(&p);
    judge(&p);
    drop(&p);
  }
}
END_TEST

/* A pivot of each block is the only number in its column, from the last row on; some are small, and one is huge. */
START_TEST(blocks_with_far_pivots)
{
  const int n = 130;
  for (int far = 0; far < 2; far++) {
    program p = make(&(complex_case){TS_OP_LU, types[_i], 1, n, n, .right = 0});
    for (int64_t i = 0; i < n; i++)
      for (int64_t k = 0; k < n; k++) {
        const double size = far && types[_i] == TS_C128 ? ldexp(1, k % 5 == 0 ? 600 : k % 5 == 1 ? -600 : 0) : 1;
        set(p.args[0], i * n + k, i + k == n - 1 ? size * (1 + I) : 0);
      }
    run(&p);
    judge(&p);
    for (int64_t i = 0; i < n; i++) ck_assert(at(p.results[0], i * n + n - 1 - i) == 1);
    for (int64_t i = 0; i < n; i++) ck_assert(at(p.results[2], i * n + i) == at(p.args[0], (n - 1 - i) * n + i));
    drop(&p);
  }
}
END_TEST

/* Equal rows: the last pivots are rounding, or zeros. The other matrices of the batch are as ever. */
START_TEST(singular_blocks)
{
  const int n = 120;
  program p = make(&(complex_case){TS_OP_LU, types[_i], 3, n, n, .right = 0});
  for (int64_t e = 0; e < (int64_t)n * n; e++) set(p.args[0], (int64_t)n * n + e, e % n + 1);
  run(&p);
  judge(&p);
  for (int64_t e = n; e < (int64_t)n * n; e++) ck_assert(at(p.results[2], (int64_t)n * n + e) == 0);
  drop(&p);
  p = make(&(complex_case){TS_OP_SOLVE, types[_i], 2, n, n, .right = 3});
  for (int64_t e = 0; e < (int64_t)n * n; e++) set(p.args[0], e, e / n == e % n && e / n < n - 1);
  run(&p);
  judge(&p);
  for (int64_t c = 0; c < 3; c++) ck_assert(!isfinite(cabs(at(p.results[0], (n - 1) * 3 + c))));
  drop(&p);
  p = make(&(complex_case){TS_OP_DETERMINANT, types[_i], 1, n, n, .right = 0});
  for (int64_t e = 0; e < (int64_t)n * n; e++) set(p.args[0], e, 1);
  run(&p);
  judge(&p);
  ck_assert(at(p.results[0], 0) == 0);
  drop(&p);
}
END_TEST

/* A pivot that is negative, NaN, or 0 with and without a rest below it, in a block that is not the first. */
START_TEST(indefinite_blocks)
{
  static const double pivots[] = {-1, NAN, 0, 0};
  const int n = 110, bad = 70;
  for (int v = 0; v < 4; v++) {
    program p = make(&(complex_case){TS_OP_CHOLESKY, types[_i], 2, n, n, .right = 0});
    for (int64_t k = 0; k < n; k++) {
      set(p.args[0], (int64_t)bad * n + k, k == bad ? pivots[v] : 0);
      if (k > bad) set(p.args[0], k * n + bad, v == 2 ? 1e-3 * I : 0);
    }
    run(&p);
    judge(&p);
    for (int64_t e = 0; e < (int64_t)n * n; e++) ck_assert_int_eq(is_nan(at(p.results[0], e)), v < 3 && e % n <= e / n);
    drop(&p);
  }
}
END_TEST

/* Elements above the diagonal are not read. */
START_TEST(the_upper_triangle_of_blocks_is_not_read)
{
  const int n = 131;
  program p = make(&(complex_case){TS_OP_CHOLESKY, types[_i], 1, n, n, .right = 0});
  for (int64_t e = 0; e < (int64_t)n * n; e++)
    if (e % n > e / n) set(p.args[0], e, NAN);
  run(&p);
  judge(&p);
  drop(&p);
}
END_TEST

/* NaN and infinities spread, and harm no other matrix of the batch. */
START_TEST(blocks_with_special_values)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 0, 3e38};
  const int n = 100;
  for (int v = 0; v < 5; v++) {
    const complex_case c = blocked(_i, TS_C64, 3, n, 19);
    program p = make(&c);
    for (int64_t k = 0; k < n; k += 30) set(p.args[0], (int64_t)n * n + k * n + k / 2, special[v] + I);
    run(&p);
    judge(&p);
    if (v == 0)
      ck_assert(is_nan(at(p.results[p.count - 1], ts_shape_elements(&p.results[p.count - 1]->shape) / 3 * 2 - 1)));
    drop(&p);
  }
}
END_TEST

/* Times phases of rows and columns. */
START_TEST(degenerate_matrices)
{
  static const int shapes[][2] = {{1, 1}, {2, 2}, {6, 6}, {30, 30}, {9, 4}, {4, 9}};
  static const ts_opcode decompositions[] = {TS_OP_LU, TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int o = 0; o < 4; o++)
      for (int t = 0; t < TYPES; t++) {
        const int m = shapes[s][0], n = shapes[s][1];
        const ts_opcode op = decompositions[o];
        if (m != n && (op == TS_OP_LU || op == TS_OP_EIGH)) continue;
        program p = make(&(complex_case){op, types[t], 1, m, n, .full = t && op != TS_OP_EIGH && op != TS_OP_LU});
        for (int64_t e = 0; e < (int64_t)m * n; e++) {
          const int64_t i = e / n, k = e % n;
          set(p.args[0], e, degenerate(_i, i, k, 100) * cexp(I * (double)(i - k)));
        }
        run(&p);
        judge(&p);
        drop(&p);
      }
}
END_TEST

/* A matrix with NaN or infinities ends like any other, and harms no other of its batch. */
START_TEST(special_values)
{
  static const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-45, 3e38};
  static const int ns[] = {1, 2, 5, 20};
  const ts_opcode op = ops[_i];
  for (int i = 0; i < 4; i++)
    for (int v = 0; v < 7; v++)
      for (int many = 0; many < 2; many++) {
        const complex_case c = square(op, TS_C64, 3, ns[i]);
        const int64_t size = (int64_t)ns[i] * ns[i];
        program p = make(&c);
        for (int64_t e = many ? 0 : size - 1; e < size; e++)
          set(p.args[0], size + e, many ? special[v] : 1 + special[v] * I);
        run(&p);
        judge(&p);
        for (size_t r = 0; v < 3 && (op == TS_OP_QR || op == TS_OP_EIGH || op == TS_OP_SVD) && r < p.count; r++) {
          const int64_t elements = ts_shape_elements(&p.results[r]->shape) / 3;
          for (int64_t e = 0; e < elements; e++) ck_assert(is_nan(at(p.results[r], elements + e)));
        }
        drop(&p);
      }
}
END_TEST

/* NaN in the lower triangle, where a pivot is negative or 0 with a rest below it; a pivot of 0 alone is none. */
START_TEST(not_positive_definite)
{
  static const double last[] = {-1, NAN, 0};
  for (int v = 0; v < 3; v++)
    for (int n = 1; n < 20; n += 6) {
      const complex_case c = square(TS_OP_CHOLESKY, types[_i], 2, n);
      program p = make(&c);
      for (int k = 0; k < n; k++) set(p.args[0], (int64_t)n * n - n + k, k == n - 1 ? last[v] : 0);
      run(&p);
      judge(&p);
      for (int64_t e = 0; e < (int64_t)n * n; e++)
        ck_assert_int_eq(is_nan(at(p.results[0], e)), last[v] != 0 && e % n <= e / n);
      drop(&p);
    }
}
END_TEST

START_TEST(known_values)
{
  program p = make(&(complex_case){TS_OP_CHOLESKY, types[_i], 1, 2, 2, .right = 0});
  static const number a[] = {4, 100, 2 - 2 * I, 6 + 5 * I}, l[] = {2, 0, 1 - I, 2};
  for (int i = 0; i < 4; i++) set(p.args[0], i, a[i]);
  run(&p);
  judge(&p);
  for (int i = 0; i < 4; i++) ck_assert(at(p.results[0], i) == l[i]);
  drop(&p);
  p = make(&(complex_case){TS_OP_EIGH, types[_i], 1, 2, 2, .right = 0});
  static const number h[] = {2, NAN, I, 2}; /* [[2, -i], [i, 2]] */
  for (int i = 0; i < 4; i++) set(p.args[0], i, h[i]);
  set(p.args[0], 1, 7);
  run(&p);
  judge(&p);
  ck_assert_double_eq_tol(creal(at(p.results[0], 0)), 3, 4 * epsilon(types[_i]));
  ck_assert_double_eq_tol(creal(at(p.results[0], 1)), 1, 4 * epsilon(types[_i]));
  drop(&p);
  p = make(&(complex_case){TS_OP_QR, types[_i], 1, 2, 1, .right = 0});
  set(p.args[0], 0, 3 * I);
  set(p.args[0], 1, 4);
  run(&p);
  judge(&p);
  ck_assert_double_le(cabs(at(p.results[1], 0) + 5 * I), 16 * epsilon(types[_i]));
  drop(&p);
}
END_TEST

/* ---- signs of zeros ---- */

static int below(uint64_t *seed, int end) { return (int)((noise(seed) + 1) / 2 * end) % end; }

/* A part of an element: often 0, of either sign. */
static double part(uint64_t *seed) {
  static const double parts[] = {0, -0.0, 0, -0.0, 1, -1, 2, -2};
  return parts[below(seed, 8)];
}

static number sparse(uint64_t *seed, int n) {
  if (below(seed, n) > 2) return CMPLX(copysign(0, noise(seed)), copysign(0, noise(seed)));
  return CMPLX(part(seed), part(seed));
}

/* A number that others are divided by with no rounding. */
static number unit_of(uint64_t *seed, bool positive) {
  static const number units[] = {1, 2, -1, I, -2 * I, 1 + I, -1 + I, 4};
  return units[below(seed, positive ? 2 : 8)];
}

static number with_any_zeros(number z, uint64_t *seed) {
  const double re = creal(z), im = cimag(z);
  return CMPLX(re == 0 ? copysign(0, noise(seed)) : re, im == 0 ? copysign(0, noise(seed)) : im);
}

/* Element (i, k) of the product of the triangles of `a`: those of cholesky, or a lower one with ones on the diagonal.
 */
static number product_of(const number *a, int n, bool hermitian, int i, int k) {
  number sum = 0;
  for (int j = 0; j <= i && j <= k; j++) {
    const number left = !hermitian && j == i ? 1 : a[i * n + j];
    sum += left * (hermitian ? conj(a[k * n + j]) : a[j * n + k]);
  }
  return sum;
}

/* A matrix whose factors are exact. Of LU, rows stand in the opposite order, and numbers of L are so small that these
 * exchanges are all. */
static void fill_sparse(program *p, uint64_t seed) {
  const int n = p->c.rows;
  const ts_opcode op = p->c.op;
  const bool hermitian = op == TS_OP_CHOLESKY, factors = op == TS_OP_LU || op == TS_OP_SOLVE || op == TS_OP_DETERMINANT;
  matrix a = make_matrix(n, n);
  for (int e = 0; e < n * n; e++) {
    const int i = e / n, k = e % n;
    a.data[e] = i == k ? unit_of(&seed, hermitian) : sparse(&seed, n);
    if (factors && k < i) a.data[e] /= 4;
  }
  for (int e = 0; e < n * n; e++) {
    const int i = e / n, k = e % n;
    const number z = hermitian || factors ? product_of(a.data, n, hermitian, i, k) : a.data[e];
    set(p->args[0], factors ? (n - 1 - i) * n + k : e, with_any_zeros(z, &seed));
  }
  for (int64_t e = 0; p->arg_count > 1 && e < ts_shape_elements(&p->args[1]->shape); e++)
    set(p->args[1], e, sparse(&seed, n));
  free(a.data);
}

static int compare_zeros(const program *p, double ours, double plain, int64_t e) {
  if (ours != 0 || plain != 0) return 0;
  ck_assert_msg(signbit(ours) == signbit(plain), "%s of %d rows: element %d is %g in place of %g", ts_op_name(p->c.op),
                p->c.rows, (int)e, ours, plain);
  return 1;
}

/* Wherever the interpreter's plain algorithm and the routine have a zero, it has the same sign. How many there are. */
static int check_zeros(program *p) {
  ts_buffer *plain[MOST_RESULTS];
  int count = 0;
  run(p);
  judge(p);
  ck_assert_ok(ts_ref_run(p->graph, p->args, p->arg_count, ts_pool_default(), plain));
  for (size_t r = 0; r < p->count; r++) {
    for (int64_t e = 0; e < ts_shape_elements(&plain[r]->shape); e++) {
      count += compare_zeros(p, creal(at(p->results[r], e)), creal(at(plain[r], e)), e);
      count += compare_zeros(p, cimag(at(p->results[r], e)), cimag(at(plain[r], e)), e);
    }
    ts_buffer_release(plain[r]);
  }
  return count;
}

static const ts_opcode exact_ops[] = {TS_OP_CHOLESKY, TS_OP_LU, TS_OP_SOLVE, TS_OP_TRIANGULAR_SOLVE, TS_OP_DETERMINANT};
enum { EXACT_OPS = sizeof exact_ops / sizeof *exact_ops };

START_TEST(zeros_have_the_signs_of_the_plain_algorithm)
{
  static const int ns[] = {1, 2, 3, 4, 7, 31, 33, 70};
  for (int i = 0; i < 8; i++) {
    int count = 0;
    for (int kind = 0; kind < 16; kind++) {
      complex_case c = square(exact_ops[_i], TS_C128, 1, ns[i]);
      c.sides = (sides){kind & 1, kind & 2, kind & 4, kind & 8};
      program p = make(&c);
      fill_sparse(&p, (uint64_t)i * 100 + (uint64_t)kind);
      count += check_zeros(&p);
      drop(&p);
    }
    ck_assert_int_gt(count, exact_ops[_i] == TS_OP_DETERMINANT ? 3 : ns[i]);
  }
}
END_TEST

/* Quotients of numbers whose parts are zeros of either sign, 1 and -2: as C and NumPy have them. */
START_TEST(quotients_have_the_zeros_of_c)
{
  static const double parts[] = {0, -0.0, 1, -2};
  program p = make(&(complex_case){TS_OP_TRIANGULAR_SOLVE, TS_C128, 1, 1, 1, .right = 256, .sides = {.left = true}});
  for (int d = 0; d < 16; d++) {
    const number by = CMPLX(parts[d / 4], parts[d % 4]);
    if (by == 0) continue;
    set(p.args[0], 0, by);
    for (int i = 0; i < 16; i++) set(p.args[1], i, CMPLX(parts[i / 4], parts[i % 4]));
    run(&p);
    for (int i = 0; i < 16; i++) {
      const number x = CMPLX(parts[i / 4], parts[i % 4]), want = x / by, z = at(p.results[0], i);
      ck_assert(z == want);
      ck_assert_int_eq(!signbit(creal(z)), !signbit(creal(want)));
      ck_assert_int_eq(!signbit(cimag(z)), !signbit(cimag(want)));
    }
  }
  drop(&p);
}
END_TEST

/* x of [[1, 0, 0], [1, i, 0], [i, 1, 1]] x = (1, -1, 3 + 3i), and the same of a right side with zeros below 0. */
START_TEST(known_zeros)
{
  static const number a[] = {1, 0, 0, 1, I, 0, I, 1, 1};
  const number b[2][3] = {{1, -1, 3 + 3 * I}, {CMPLX(-0.0, -0.0), CMPLX(1, -0.0), CMPLX(0, 1)}};
  const number x[2][3] = {{1, CMPLX(0, 2), CMPLX(3, 0)}, {CMPLX(-0.0, 0), CMPLX(0, -1), CMPLX(0, 2)}};
  program p = make(&(complex_case){TS_OP_TRIANGULAR_SOLVE, types[_i % TYPES], 1, 3, 3, .right = 1,
                                   .sides = {.left = true, .lower = true}});
  for (int i = 0; i < 9; i++) set(p.args[0], i, a[i]);
  for (int i = 0; i < 3; i++) set(p.args[1], i, b[_i / TYPES][i]);
  run(&p);
  for (int i = 0; i < 3; i++) {
    const number z = at(p.results[0], i), want = x[_i / TYPES][i];
    ck_assert(z == want);
    ck_assert_msg(signbit(creal(z)) == signbit(creal(want)) && signbit(cimag(z)) == signbit(cimag(want)),
                  "x[%d] is (%g, %g)", i, creal(z), cimag(z));
  }
  drop(&p);
}
END_TEST

/* ---- threads, memory ---- */

static complex_case shared_case(int i) { return square(ops[i], types[i % TYPES], i % 3 == 0 ? 1 : 40, i % 3 ? 7 : 60); }

/* An op of other kernels stands for a new op without one here: no result is taken for computed. */
START_TEST(an_op_without_factors_is_refused_by_name)
{
  static const struct {
    ts_opcode op;
    ts_dtype type;
    const char *why;
  } cases[] = {{TS_OP_FFT, TS_C128, "fft is not implemented for matrices of c128"},
               {TS_OP_FFT, TS_F64, "fft is not implemented for matrices of f64"}};
  const ts_factor_spec spec = {.op = cases[_i].op, .type = cases[_i].type, .rows = 20, .cols = 20};
  static double elements[2 * 20 * 20], out[MOST_RESULTS][2 * 20 * 20];
  const void *in[] = {elements, NULL};
  void *results[] = {out[0], out[1], out[2]};
  int64_t bytes;
  void *workspace;
  for (int i = 0; i < 20; i++) elements[(spec.type == TS_C128 ? 2 : 1) * 21 * i] = 1;
  ck_assert_ok(ts_factor_workspace(&spec, NULL, &bytes));
  ck_assert_ok(ts_alloc((size_t)bytes, &workspace));
  ts_status status =
      ts_factor_run(&spec, in, results, workspace, &(ts_factor_context){.parallel = &ts_parallel_serial});
  ck_assert_ptr_nonnull(status);
  ck_assert_int_eq(ts_status_code(status), TS_UNIMPLEMENTED);
  ck_assert_ptr_nonnull(strstr(ts_status_message(status), cases[_i].why));
  ts_status_free(status);
  ts_free(workspace);
}
END_TEST

/* Each op on complex matrices has its routine in the table, and no op that inference refuses has one. */
START_TEST(routines_of_complex_numbers)
{
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const ts_routine *routine = ts_routine_of((ts_opcode)op, TS_C64);
    if (ts_op_get_class((ts_opcode)op) == TS_CLASS_LINALG) ck_assert_ptr_eq(routine, &ts_factor_routine);
    if (routine) ck_assert_msg(ts_op_takes_complex((ts_opcode)op), "%s", ts_op_name((ts_opcode)op));
  }
}
END_TEST

static void check_routine(complex_case c, void (*check)(const ts_graph *graph, ts_buffer *const *args)) {
  program p = make(&c);
  check(p.graph, p.args);
  drop(&p);
}

START_TEST(the_same_bits_on_any_number_of_threads)
{ check_routine(shared_case(_i), check_routine_threads); }
END_TEST

/* So large that all threads compute the parts of one matrix. */
enum { LARGE_CASES = 3 + BLOCKED_OPS };

static complex_case large_case(int i) {
  static const ts_opcode decompositions[] = {TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  return i < 3 ? square(decompositions[i], TS_C128, 1, 240) : blocked(i - 3, types[i % TYPES], 1, 205, 77);
}

START_TEST(the_same_bits_of_a_large_matrix)
{ check_routine(large_case(_i), check_routine_threads); }
END_TEST

START_TEST(a_large_cancelled_run_ends)
{ check_routine(large_case(_i), check_routine_cancelled); }
END_TEST

START_TEST(a_cancelled_run_ends)
{ check_routine(shared_case(_i), check_routine_cancelled); }
END_TEST

START_TEST(every_allocation_failing)
{ check_routine(shared_case(_i), check_routine_allocations); }
END_TEST

int main(void) {
  Suite *suite = suite_create("factors_complex");
  TCase *values = tcase_create("values"), *memory = tcase_create("memory");
  tcase_set_timeout(values, 120);
  tcase_set_timeout(memory, 60);
  testing_add_many(values, every_size, OPS * TYPES);
  tcase_add_loop_test(values, factors_of_every_shape, 0, TYPES);
  tcase_add_loop_test(values, systems_of_every_kind, 0, TYPES);
  testing_add_many(values, every_size_of_blocks, BLOCKED_OPS * TYPES);
  tcase_add_loop_test(values, right_sides_of_blocks, 0, 2 * TYPES);
  testing_add_many(values, blocked_systems_of_every_kind, 16 * TYPES);
  tcase_add_loop_test(values, blocks_with_far_pivots, 0, TYPES);
  tcase_add_loop_test(values, singular_blocks, 0, TYPES);
  tcase_add_loop_test(values, indefinite_blocks, 0, TYPES);
  tcase_add_loop_test(values, the_upper_triangle_of_blocks_is_not_read, 0, TYPES);
  tcase_add_loop_test(values, blocks_with_special_values, 0, BLOCKED_OPS);
  testing_add_many(values, degenerate_matrices, DEGENERATE_KINDS);
  tcase_add_loop_test(values, special_values, 0, OPS);
  tcase_add_loop_test(values, not_positive_definite, 0, TYPES);
  tcase_add_loop_test(values, known_values, 0, TYPES);
  tcase_add_loop_test(values, zeros_have_the_signs_of_the_plain_algorithm, 0, EXACT_OPS);
  tcase_add_test(values, quotients_have_the_zeros_of_c);
  tcase_add_loop_test(values, known_zeros, 0, 2 * TYPES);
  tcase_add_loop_test(values, an_op_without_factors_is_refused_by_name, 0, 2);
  tcase_add_test(values, routines_of_complex_numbers);
  tcase_add_loop_test(values, the_same_bits_on_any_number_of_threads, 0, OPS);
  tcase_add_loop_test(values, the_same_bits_of_a_large_matrix, 0, LARGE_CASES);
  tcase_add_loop_test(memory, a_large_cancelled_run_ends, 0, LARGE_CASES);
  test_add_lesser_isas(values);
  tcase_add_checked_fixture(memory, test_leaks_begin_after_products, test_leaks_end);
  tcase_add_loop_test(memory, a_cancelled_run_ends, 0, OPS);
  tcase_add_loop_test(memory, every_allocation_failing, 0, OPS);
  suite_add_tcase(suite, values);
  suite_add_tcase(suite, memory);
  return testing_run(suite);
}
