#include "tool/judge.h"

#include "base/alloc.h"
#include "exec/executable.h"
#include "kernel/ref/ref_internal.h"

#include <math.h>
#include <string.h>

#define THRESHOLD 30 /* LAPACK's, for ratios */

/* The interpreter needs some 100 n^3 operations for factors with orthonormal columns: MOST_ROWS limits n, and
 * MOST_CUBES n^3 in all matrices of a batch. */
enum { MOST_ROWS = 24, MOST_CUBES = 20000, MOST_RESULTS = 3, MOST_OPERANDS = 2 };

/* Half the distance from 1 to the next number; exponents of the least number and of the largest one. */
typedef struct number_type {
  ts_dtype dtype;
  double unit;
  int least, most;
} number_type;

static const number_type number_types[] = {
    {TS_F64, 0x1p-53, -1074, 1023},  {TS_F32, 0x1p-24, -149, 127}, {TS_F16, 0x1p-11, -24, 15},
    {TS_BF16, 0x1p-8, -133, 127},    {TS_F8, 0x1p-3, -16, 15},     {TS_F8E4M3FN, 0x1p-4, -9, 8},
#ifdef TS_TEST_ROWS
    {TS_T16, 0x1p-8, -133, 127},
#endif
    {TS_DTYPE_COUNT, 0x1p-53, 0, 0},
};

static const number_type *number_type_of(ts_dtype dtype) {
  const number_type *t = number_types;
  if (ts_dtype_is_complex(dtype)) dtype = ts_dtype_part(dtype);
  while (t->dtype != dtype && t->dtype != TS_DTYPE_COUNT) t++;
  return t;
}

/* ---- matrices: views of numbers of two parts, whose rows and columns are any number of numbers apart */

typedef struct number {
  double re, im;
} number;

typedef struct matrix {
  number *data;
  int64_t rows, cols, row, col;
  bool conjugate;
} matrix;

static number *cell(const matrix *m, int64_t i, int64_t k) { return &m->data[i * m->row + k * m->col]; }

static number at(const matrix *m, int64_t i, int64_t k) {
  const number *x = cell(m, i, k);
  return (number){x->re, m->conjugate ? -x->im : x->im};
}

static matrix transpose(matrix m) { return (matrix){m.data, m.cols, m.rows, m.col, m.row, m.conjugate}; }

static matrix adjoint(matrix m) { return (matrix){m.data, m.cols, m.rows, m.col, m.row, !m.conjugate}; }

static matrix column_of(matrix m, int64_t k) { return (matrix){cell(&m, 0, k), m.rows, 1, m.row, m.col, m.conjugate}; }

static double size_of(number x) { return x.im == 0 ? fabs(x.re) : hypot(x.re, x.im); }
static bool is_finite(number x) { return isfinite(x.re) && isfinite(x.im); }
static bool is_nan(number x) { return isnan(x.re) || isnan(x.im); }
static bool is_zero(number x) { return x.re == 0 && x.im == 0; }

static bool all_finite(matrix m) {
  bool finite = true;
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < m.cols; k++) finite &= is_finite(*cell(&m, i, k));
  return finite;
}

static double largest_part(matrix m) {
  double most = 0;
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < m.cols; k++) most = fmax(most, fmax(fabs(cell(&m, i, k)->re), fabs(cell(&m, i, k)->im)));
  return most;
}

/* The largest sum of sizes of a row. */
static double norm_of(matrix m) {
  double most = 0;
  for (int64_t i = 0; i < m.rows; i++) {
    double sum = 0;
    for (int64_t k = 0; k < m.cols; k++) sum += size_of(*cell(&m, i, k));
    most = fmax(most, sum);
  }
  return most;
}

static void scale_by_power(matrix m, int power) {
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < m.cols; k++) {
      cell(&m, i, k)->re = ldexp(cell(&m, i, k)->re, power);
      cell(&m, i, k)->im = ldexp(cell(&m, i, k)->im, power);
    }
}

static int power_of(matrix m) {
  int power = 0;
  const double most = largest_part(m);
  if (most > 0 && isfinite(most)) (void)frexp(most, &power);
  return power;
}

/* ---- one matrix of a batch */

typedef struct judged {
  const ts_op *op;
  const number_type *type;
  bool is_complex, is_small;
  int64_t which;
  matrix a, b;                   /* the operands, the first one times 2^-power so that its largest part is about 1 */
  matrix results[MOST_RESULTS];  /* vectors are rows, one number is a matrix */
  matrix expected[MOST_RESULTS]; /* the interpreter's */
  bool is_expected;              /* whether it has any */
  bool finite;                   /* all of the first operand that decides the results */
  int power;
  double n, least, limit; /* least: the least number of the type, times 2^-power */
  number *row;            /* room for the longest row */
} judged;

static ts_status wrong(const judged *j, const char *what, double error, double limit) {
  return ts_error(TS_INTERNAL, "%s of matrix %lld, %lld by %lld: %s is %g, at most %g are right",
                  ts_op_name(j->op->code), (long long)j->which, (long long)j->a.rows, (long long)j->a.cols, what, error,
                  limit);
}

static ts_status must(const judged *j, const char *what, bool holds) {
  return holds ? TS_SUCCESS
               : ts_error(TS_INTERNAL, "%s of matrix %lld, %lld by %lld: %s", ts_op_name(j->op->code),
                          (long long)j->which, (long long)j->a.rows, (long long)j->a.cols, what);
}

static ts_status within(const judged *j, const char *what, double error, double limit) {
  return error <= THRESHOLD * limit ? TS_SUCCESS : wrong(j, what, error, THRESHOLD * limit);
}

/* The norm of A - X D Y for a diagonal D; A or D that is NULL stands for the identity. */
static double distance(const judged *j, const matrix *a, matrix x, const matrix *d, matrix y) {
  const int64_t inner = d ? d->cols : x.cols;
  double most = 0;
  for (int64_t i = 0; i < x.rows; i++) {
    double sum = 0;
    for (int64_t k = 0; k < y.cols; k++) j->row[k] = a ? at(a, i, k) : (number){i == k, 0};
    for (int64_t c = 0; c < inner; c++) {
      const number z = at(&x, i, c);
      const double by = d ? cell(d, 0, c)->re : 1;
      for (int64_t k = 0; k < y.cols; k++) {
        const number w = at(&y, c, k);
        j->row[k].re -= by * (z.re * w.re - z.im * w.im);
        j->row[k].im -= by * (z.re * w.im + z.im * w.re);
      }
    }
    for (int64_t k = 0; k < y.cols; k++) sum += size_of(j->row[k]);
    most = sum > most || isnan(sum) ? sum : most;
  }
  return most;
}

/* The error that rounding of the first operand allows: the least numbers are no more exact. */
static double limit_of(const judged *j) { return j->n * (j->type->unit * norm_of(j->a) + 2 * j->least); }

static ts_status judge_product(const judged *j, matrix x, const matrix *d, matrix y) {
  return within(j, "the residual", distance(j, &j->a, x, d, y), j->limit);
}

/* Columns that are orthonormal. */
static ts_status judge_orthonormal(const judged *j, const char *what, matrix q) {
  return within(j, what, distance(j, NULL, adjoint(q), NULL, q), (double)q.rows * j->type->unit);
}

static ts_status judge_triangle(const judged *j, matrix m, bool upper) {
  bool zero = true;
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < m.cols; k++)
      if (upper ? k < i : k > i) zero &= is_zero(*cell(&m, i, k));
  return must(j, "a triangle is not zero", zero);
}

/* Whether the matrix has numbers so large that sums and products of them may be beyond the range. */
static bool is_near_overflow(const judged *j) { return ilogb(norm_of(j->a)) + j->power + 1 >= j->type->most; }

static ts_status judge_range(const judged *j, matrix m, bool *out_finite) {
  *out_finite = all_finite(m);
  return must(j, "a result is not finite", *out_finite || is_near_overflow(j));
}

/* Vectors are the columns: the first element of largest size is real and positive, but where others are as large up to
 * rounding. */
static ts_status judge_phases(const judged *j, matrix m) {
  const double slack = 32 * j->type->unit;
  for (int64_t k = 0; k < m.cols; k++) {
    double most = 0, positive = 0;
    for (int64_t i = 0; i < m.rows; i++) {
      const number x = at(&m, i, k);
      most = fmax(most, size_of(x));
      if (fabs(x.im) <= slack) positive = fmax(positive, x.re);
    }
    TS_TRY(must(j, "the largest element of a vector is not positive", positive >= most * (1 - slack)));
  }
  return TS_SUCCESS;
}

static ts_status judge_order(const judged *j, matrix values) {
  bool ordered = true;
  for (int64_t i = 0; i < values.cols; i++) {
    ordered &= cell(&values, 0, i)->im == 0;
    if (i > 0) ordered &= fabs(cell(&values, 0, i - 1)->re) >= fabs(cell(&values, 0, i)->re);
  }
  return must(j, "values are not in descending order of size", ordered);
}

/* Each value has one of the interpreter's near it, in ascending order. */
static int64_t ascending(const matrix *values, int64_t from, double least) {
  int64_t best = -1;
  for (int64_t i = 0; i < values->cols; i++) {
    const double x = cell(values, 0, i)->re;
    const bool later = x > least || (x == least && i > from);
    if (later && (best < 0 || x < cell(values, 0, best)->re)) best = i;
  }
  return best;
}

static ts_status judge_values(const judged *j, matrix values, matrix expected) {
  double x = (double)-INFINITY, y = (double)-INFINITY;
  int64_t got = -1, wanted = -1;
  for (int64_t i = 0; j->is_expected && i < values.cols; i++) {
    got = ascending(&values, got, x);
    wanted = ascending(&expected, wanted, y);
    x = cell(&values, 0, got)->re;
    y = cell(&expected, 0, wanted)->re;
    TS_TRY(within(j, "the difference of a value", fabs(x - y), j->limit));
  }
  return TS_SUCCESS;
}

/* All results of a matrix that is not finite. */
static ts_status judge_nan(const judged *j) {
  bool nan = true;
  for (uint32_t r = 0; r < j->op->result_count; r++)
    for (int64_t i = 0; i < j->results[r].rows; i++)
      for (int64_t k = 0; k < j->results[r].cols; k++) nan &= is_nan(*cell(&j->results[r], i, k));
  return must(j, "a result is not NaN, though the matrix has numbers that are not finite", nan);
}

/* ---- qr, eigh, svd */

/* Judges the signs of the diagonal of R, unless rounding has decided them: after a diagonal element that is nothing but
 * rounding, the columns of Q are rounding as well. Negative elements stay negative where the elements below are at most
 * 1e-5 of them: rounding exceeds this limit much sooner than it changes a sign. */
static ts_status judge_diagonal(const judged *j, matrix r, matrix expected) {
  for (int64_t i = 0; !j->is_complex && j->is_expected && i < r.rows && i < r.cols; i++) {
    const double x = cell(&r, i, i)->re, y = cell(&expected, i, i)->re;
    if (fabs(y) <= (y < 0 ? 1e6 : 1e3) * j->limit) return TS_SUCCESS;
    TS_TRY(must(j, "an element of the diagonal of R has the wrong sign", (x < 0) == (y < 0)));
  }
  return TS_SUCCESS;
}

/* Zeros have no sign, as it would be one of rounding. Numbers that are rounded to 8 bits by another op may have one. */
static ts_status judge_zeros(const judged *j) {
  bool negative = false;
  if (j->is_small) return TS_SUCCESS;
  for (uint32_t r = 0; r < j->op->result_count; r++) {
    const matrix m = j->results[r];
    for (int64_t i = 0; i < m.rows; i++)
      for (int64_t k = 0; k < m.cols; k++) {
        const number x = *cell(&m, i, k);
        negative |= (x.re == 0 && signbit(x.re)) || (x.im == 0 && signbit(x.im));
      }
  }
  return must(j, "a zero is negative", !negative);
}

static ts_status judge_qr(const judged *j) {
  const matrix q = j->results[0], r = j->results[1];
  bool finite;
  if (!j->finite) return judge_nan(j);
  TS_TRY(judge_zeros(j));
  TS_TRY(judge_orthonormal(j, "the orthogonality of Q", q));
  TS_TRY(judge_range(j, r, &finite));
  if (!finite) return TS_SUCCESS;
  TS_TRY(judge_triangle(j, r, true));
  scale_by_power(r, -j->power);
  scale_by_power(j->expected[1], -j->power);
  TS_TRY(judge_diagonal(j, r, j->expected[1]));
  return judge_product(j, q, NULL, r);
}

static ts_status judge_eigh(const judged *j) {
  const matrix values = j->results[0], vectors = j->results[1];
  bool finite;
  if (!j->finite) return judge_nan(j);
  TS_TRY(judge_zeros(j));
  TS_TRY(judge_orthonormal(j, "the orthogonality of the vectors", vectors));
  TS_TRY(judge_phases(j, vectors));
  TS_TRY(judge_range(j, values, &finite));
  if (!finite) return TS_SUCCESS;
  TS_TRY(judge_order(j, values));
  scale_by_power(values, -j->power);
  scale_by_power(j->expected[0], -j->power);
  TS_TRY(judge_values(j, values, j->expected[0]));
  return judge_product(j, vectors, &values, adjoint(vectors));
}

static ts_status judge_svd(const judged *j) {
  const matrix u = j->results[0], values = j->results[1], vt = j->results[2];
  bool finite, negative = false;
  if (!j->finite) return judge_nan(j);
  TS_TRY(judge_zeros(j));
  TS_TRY(judge_orthonormal(j, "the orthogonality of U", u));
  TS_TRY(judge_orthonormal(j, "the orthogonality of V", adjoint(vt)));
  TS_TRY(judge_phases(j, transpose(vt)));
  TS_TRY(judge_range(j, values, &finite));
  if (!finite) return TS_SUCCESS;
  TS_TRY(judge_order(j, values));
  for (int64_t i = 0; i < values.cols; i++) negative |= cell(&values, 0, i)->re < 0;
  TS_TRY(must(j, "a singular value is negative", !negative));
  scale_by_power(values, -j->power);
  scale_by_power(j->expected[1], -j->power);
  TS_TRY(judge_values(j, values, j->expected[1]));
  return judge_product(j, u, &values, vt);
}

/* ---- lu, cholesky */

/* Column order[i] of P has its one in row i of A's order: row order[i] of A is row i of L U. */
static bool is_permutation(matrix p, int64_t *order) {
  for (int64_t i = 0; i < p.rows; i++) {
    double row = 0, col = 0;
    for (int64_t k = 0; k < p.cols; k++) {
      const double x = cell(&p, i, k)->re, y = cell(&p, k, i)->re;
      if ((x != 0 && x != 1) || cell(&p, i, k)->im != 0) return false;
      row += x, col += y;
      if (y == 1) order[i] = k;
    }
    if (row != 1 || col != 1) return false;
  }
  return true;
}

static ts_status judge_lower(const judged *j, matrix l, bool finite) {
  bool ones = true, bounded = true;
  TS_TRY(judge_triangle(j, l, false));
  for (int64_t i = 0; i < l.rows; i++) {
    ones &= cell(&l, i, i)->re == 1 && cell(&l, i, i)->im == 0;
    for (int64_t k = 0; finite && k < i; k++) bounded &= !(size_of(*cell(&l, i, k)) > 1 + 8 * j->type->unit);
  }
  TS_TRY(must(j, "the diagonal of L is not 1", ones));
  return must(j, "an element of L is larger than 1", bounded);
}

static ts_status judge_lu_product(const judged *j, const int64_t *order) {
  const matrix l = j->results[1], u = j->results[2];
  double most = 0;
  for (int64_t i = 0; i < l.rows; i++) {
    const matrix row = {cell(&j->a, order[i], 0), 1, j->a.cols, j->a.row, j->a.col, false};
    const matrix of_l = {cell(&l, i, 0), 1, l.cols, l.row, l.col, false};
    const double off = distance(j, &row, of_l, NULL, u);
    most = off > most || isnan(off) ? off : most;
  }
  return within(j, "the residual", most, j->limit);
}

static ts_status judge_lu(const judged *j) {
  const matrix u = j->results[2];
  int64_t *order;
  bool finite = false;
  TS_TRY(TS_NEW_ARRAY((size_t)u.rows + 1, &order));
  ts_status status = must(j, "P is no permutation", is_permutation(j->results[0], order));
  if (!status) status = judge_triangle(j, u, true);
  if (!status && j->finite) status = judge_range(j, u, &finite);
  if (!status) status = judge_lower(j, j->results[1], finite);
  scale_by_power(u, -j->power);
  if (!status && finite) status = judge_lu_product(j, order);
  ts_free(order);
  return status;
}

/* The singular values of this matrix, or the eigenvalues, by the interpreter. */
static ts_status values_of(const judged *j, ts_opcode code, double *out) {
  const int64_t n = j->a.rows;
  const int values = code == TS_OP_SVD;
  const ts_attrs attrs = {0};
  const ts_op op = {.code = code, .operand_count = 1, .result_count = (uint32_t)ts_op_results(code), .attrs = &attrs};
  const ts_shape square = {.rank = 2, .dims = {n, n}}, line = {.rank = 1, .dims = {n}};
  ts_buffer *buffers[1 + MOST_RESULTS] = {NULL}, **results = buffers + 1;
  ts_status status = ts_buffer_create(ts_pool_default(), TS_C128, &square, &buffers[0]);
  for (int r = 0; !status && r < (int)op.result_count; r++)
    status = ts_buffer_create(ts_pool_default(), values && r == values ? TS_F64 : TS_C128,
                              r == values ? &line : &square, &results[r]);
  for (int64_t i = 0; !status && i < n * n; i++) ((number *)buffers[0]->data)[i] = at(&j->a, i / n, i % n);
  if (!status) status = ts_ref_compute(&(ts_ref_call){&op, buffers, results, results[0], NULL});
  for (int64_t i = 0; !status && i < n; i++)
    out[i] = ts_scalar_to_f64(results[values]->dtype, ts_ref_get(results[values], i));
  for (int i = 0; i < 1 + MOST_RESULTS; i++) ts_buffer_release(buffers[i]);
  return status;
}

/* Whether a least value is nothing but rounding. */
static ts_status is_singular(const judged *j, ts_opcode code, bool *out) {
  double values[MOST_ROWS];
  *out = false;
  if (j->a.rows > MOST_ROWS || !j->finite) return TS_SUCCESS;
  TS_TRY(values_of(j, code, values));
  for (int64_t i = 0; i < j->a.rows; i++) *out |= values[i] <= THRESHOLD * j->limit;
  return TS_SUCCESS;
}

static bool is_none(matrix l) {
  bool none = l.rows > 0;
  for (int64_t i = 0; i < l.rows; i++)
    for (int64_t k = 0; k <= i; k++) none &= is_nan(*cell(&l, i, k));
  return none;
}

static ts_status judge_cholesky(const judged *j) {
  const matrix l = j->results[0];
  const int half = j->power / 2;
  bool semidefinite = false, positive = true;
  TS_TRY(judge_triangle(j, l, false));
  if (!j->finite) return must(j, "the factor is finite", !all_finite(l));
  if (is_none(l)) {
    if (!is_none(j->expected[0])) TS_TRY(is_singular(j, TS_OP_EIGH, &semidefinite));
    return must(j, "there is no factor", semidefinite || is_none(j->expected[0]));
  }
  for (int64_t i = 0; i < l.rows; i++) positive &= cell(&l, i, i)->re >= 0 && cell(&l, i, i)->im == 0;
  TS_TRY(must(j, "an element of the diagonal is not positive", positive));
  scale_by_power(l, -half);
  scale_by_power(j->a, j->power - 2 * half);
  return within(j, "the residual", distance(j, &j->a, l, NULL, adjoint(l)), ldexp(j->limit, j->power - 2 * half));
}

/* ---- solve, triangular_solve, determinant */

/* The matrix of a system from the left: op(A) X = B, or the transposed system. */
static matrix coefficients(const judged *j) {
  const ts_attrs *attrs = j->op->attrs;
  if (j->op->code == TS_OP_SOLVE) return j->a;
  return attrs->triangular.transpose == attrs->triangular.left ? transpose(j->a) : j->a;
}

static bool is_from_left(const judged *j) { return j->op->code == TS_OP_SOLVE || j->op->attrs->triangular.left; }

/* Not finite: by the matrix, by the interpreter, or by rounding. */
static ts_status judge_infinite(const judged *j, matrix b, matrix expected) {
  bool allowed = !j->finite || is_near_overflow(j) || !all_finite(b) || !all_finite(expected) ||
                 (largest_part(expected) > 0 && ilogb(largest_part(expected)) + 8 >= j->type->most);
  if (!allowed) TS_TRY(is_singular(j, TS_OP_SVD, &allowed));
  return must(j, "a solution is not finite", allowed);
}

/* ||b - A x|| / (||A|| ||x|| epsilon) of a column. */
static ts_status judge_solution(const judged *j, matrix x, matrix b) {
  const int power = power_of(x), least = j->type->least;
  const double of_b = ldexp(1, least - power - j->power), of_x = ldexp(1, least - power);
  scale_by_power(x, -power);
  scale_by_power(b, -power - j->power);
  const double size = norm_of(j->a), length = norm_of(x);
  return within(j, "the residual", distance(j, &b, coefficients(j), NULL, x),
                j->n * (j->type->unit * size * length + 4 * of_b + 4 * size * of_x) + 0x1p-1074);
}

static ts_status judge_systems(const judged *j) {
  const bool left = is_from_left(j);
  const matrix xs = left ? j->results[0] : transpose(j->results[0]), bs = left ? j->b : transpose(j->b);
  const matrix expected = left ? j->expected[0] : transpose(j->expected[0]);
  for (int64_t c = 0; c < xs.cols; c++) {
    const matrix x = column_of(xs, c), b = column_of(bs, c);
    TS_TRY(all_finite(x) && j->finite && all_finite(b) ? judge_solution(j, x, b)
                                                       : judge_infinite(j, b, column_of(expected, c)));
  }
  return TS_SUCCESS;
}

/* From the singular values: rounding changes each by a share of the largest one. So it is the sum of the products of
 * all but one. Of large matrices, a share of the determinant. */
static ts_status limit_of_determinant(const judged *j, double expected, long double *out) {
  const int64_t n = j->a.rows;
  double values[MOST_ROWS];
  long double sum = 0;
  *out = 20 * (long double)(n * n) * j->type->unit * expected;
  if (n > MOST_ROWS) return TS_SUCCESS;
  TS_TRY(values_of(j, TS_OP_SVD, values));
  for (int64_t i = 0; i < n; i++) {
    double power = log2(j->limit) + (double)(n * j->power); /* products are beyond the range of any type */
    for (int64_t k = 0; k < n; k++) power += k == i ? 0 : log2(values[k]);
    sum += exp2l(power);
  }
  *out = sum + (long double)j->type->unit * expected;
  return TS_SUCCESS;
}

static bool is_near_the_range(const judged *j, number x) {
  return !is_finite(x) || ilogb(size_of(x)) + 2 >= j->type->most;
}

static ts_status judge_determinant(const judged *j) {
  const number x = *cell(&j->results[0], 0, 0), y = *cell(&j->expected[0], 0, 0);
  long double limit;
  if (!j->finite) return must(j, "the result is finite", !is_finite(x) || is_finite(y));
  if (!is_finite(x) || !is_finite(y))
    return must(j, "one determinant of two is in the range", is_near_the_range(j, x) && is_near_the_range(j, y));
  TS_TRY(limit_of_determinant(j, size_of(y), &limit));
  return within(j, "the difference", hypot(x.re - y.re, x.im - y.im), (double)limit + ldexp(1, j->type->least));
}

/* ---- a batch */

/* The triangle that is read, as the op reads it. */
static void keep_triangle(const ts_op *op, matrix a) {
  const bool lower = op->code == TS_OP_CHOLESKY || op->code == TS_OP_EIGH || op->attrs->triangular.lower;
  const bool mirror = op->code != TS_OP_TRIANGULAR_SOLVE, unit = !mirror && op->attrs->triangular.unit;
  for (int64_t i = 0; i < a.rows; i++) {
    if (mirror) cell(&a, i, i)->im = 0;
    if (unit) *cell(&a, i, i) = (number){1, 0};
    for (int64_t k = 0; k < a.cols; k++) {
      const number other = *cell(&a, k, i);
      if (lower ? k > i : k < i) *cell(&a, i, k) = mirror ? (number){other.re, -other.im} : (number){0, 0};
    }
  }
}

static bool reads_a_triangle(ts_opcode code) {
  return code == TS_OP_CHOLESKY || code == TS_OP_EIGH || code == TS_OP_TRIANGULAR_SOLVE;
}

typedef struct judging {
  const ts_op *op;
  ts_buffer *const *operands, *const *results;
  ts_buffer *expected[MOST_RESULTS];
  bool is_expected;
  number *room, *next; /* for all matrices of a judged one */
} judging;

/* Rows and columns of the parts of a batch: a vector is a row, and a number a matrix. */
static void dims_of(const ts_buffer *buffer, int32_t batch_rank, int64_t *rows, int64_t *cols) {
  const int32_t own = buffer->shape.rank - batch_rank;
  const int64_t *last = buffer->shape.dims + buffer->shape.rank;
  *rows = own > 1 ? last[-2] : 1;
  *cols = own > 0 ? last[-1] : 1;
}

static matrix take(judging *all, const ts_buffer *buffer, int64_t which) {
  matrix m = {.data = all->next};
  dims_of(buffer, all->operands[0]->shape.rank - 2, &m.rows, &m.cols);
  m.row = m.cols, m.col = 1;
  for (int64_t i = 0; i < m.rows * m.cols; i++) {
    const ts_scalar x = ts_ref_get(buffer, which * m.rows * m.cols + i);
    m.data[i] = (number){ts_scalar_to_f64(buffer->dtype, x), ts_scalar_imag(buffer->dtype, x)};
  }
  all->next += m.rows * m.cols;
  return m;
}

static judged begin(judging *all, int64_t which) {
  const ts_op *op = all->op;
  judged j = {.op = op, .type = number_type_of(all->operands[0]->dtype), .which = which};
  all->next = all->room;
  j.is_complex = ts_dtype_is_complex(all->operands[0]->dtype);
  j.is_small = ts_dtype_is_small(all->operands[0]->dtype);
  j.is_expected = all->is_expected;
  j.a = take(all, all->operands[0], which);
  if (op->operand_count > 1) j.b = take(all, all->operands[1], which);
  for (uint32_t r = 0; r < op->result_count; r++) {
    j.results[r] = take(all, all->results[r], which);
    if (j.is_expected) j.expected[r] = take(all, all->expected[r], which);
  }
  j.row = all->next;
  if (reads_a_triangle(op->code)) keep_triangle(op, j.a);
  j.finite = all_finite(j.a);
  j.power = power_of(j.a);
  scale_by_power(j.a, -j.power);
  j.n = (double)(j.a.rows > j.a.cols ? j.a.rows : j.a.cols);
  j.least = ldexp(1, j.type->least - j.power);
  j.limit = limit_of(&j);
  return j;
}

static ts_status judge_matrix(judging *all, int64_t which) {
  static const struct {
    ts_opcode op;
    ts_status (*judge)(const judged *j);
  } judges[] = {{TS_OP_QR, judge_qr},
                {TS_OP_EIGH, judge_eigh},
                {TS_OP_SVD, judge_svd},
                {TS_OP_LU, judge_lu},
                {TS_OP_SOLVE, judge_systems},
                {TS_OP_TRIANGULAR_SOLVE, judge_systems},
                {TS_OP_CHOLESKY, judge_cholesky},
                {TS_OP_DETERMINANT, judge_determinant}};
  const judged j = begin(all, which);
  for (size_t i = 0; i < sizeof judges / sizeof *judges; i++)
    if (judges[i].op == all->op->code) return judges[i].judge(&j);
  return ts_error(TS_UNIMPLEMENTED, "%s has no judge", ts_op_name(all->op->code));
}

static bool is_for_interpreter(const judging *all) {
  const ts_shape *a = &all->operands[0]->shape;
  const ts_opcode code = all->op->code;
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  const bool is_long = code == TS_OP_QR || code == TS_OP_EIGH || code == TS_OP_SVD;
  return code != TS_OP_LU && (!is_long || ts_shape_elements(a) * (m < n ? m : n) <= MOST_CUBES);
}

static ts_status expect(judging *all) {
  all->is_expected = is_for_interpreter(all);
  for (uint32_t r = 0; all->is_expected && r < all->op->result_count; r++)
    TS_TRY(ts_buffer_create(ts_pool_default(), all->results[r]->dtype, &all->results[r]->shape, &all->expected[r]));
  if (!all->is_expected) return TS_SUCCESS;
  return ts_ref_compute(&(ts_ref_call){all->op, all->operands, all->expected, all->expected[0], NULL});
}

/* Numbers of one matrix of each operand and twice of each result, and a row. */
static int64_t room_of(const judging *all) {
  int64_t count = 0, most = 0, rows, cols;
  for (uint32_t i = 0; i < all->op->operand_count + 2 * all->op->result_count; i++) {
    const ts_buffer *buffer =
        i < all->op->operand_count ? all->operands[i] : all->results[(i - all->op->operand_count) / 2];
    dims_of(buffer, all->operands[0]->shape.rank - 2, &rows, &cols);
    count += rows * cols;
    most = rows > most ? rows : most;
    most = cols > most ? cols : most;
  }
  return count + most;
}

ts_status ts_judge(const ts_op *op, ts_buffer *const *operands, ts_buffer *const *results) {
  judging all = {.op = op, .operands = operands, .results = results};
  int64_t batch = 1;
  for (int32_t d = 0; d < operands[0]->shape.rank - 2; d++) batch *= operands[0]->shape.dims[d];
  TS_TRY(TS_NEW_ARRAY((size_t)room_of(&all), &all.room));
  ts_status status = expect(&all);
  for (int64_t i = 0; !status && i < batch; i++) status = judge_matrix(&all, i);
  for (int r = 0; r < MOST_RESULTS; r++) ts_buffer_release(all.expected[r]);
  ts_free(all.room);
  return ts_error_context(status, "%s", TS_SHAPE_STR(operands[0]->dtype, &operands[0]->shape));
}

/* ---- programs */

static ts_status one_op(const ts_op *op, ts_buffer *const *operands, ts_graph *out) {
  ts_value_id values[MOST_OPERANDS], results[MOST_RESULTS];
  for (uint32_t i = 0; i < op->operand_count; i++)
    TS_TRY(ts_graph_add_param(out, TS_ROOT, operands[i]->dtype, &operands[i]->shape, &values[i]));
  TS_TRY(ts_graph_add_op(out, TS_ROOT, op->code, (ts_values){values, op->operand_count}, op->attrs, results));
  for (uint32_t r = 1; r < op->result_count; r++) results[r] = results[0] + r;
  return ts_graph_set_results(out, TS_ROOT, results, op->result_count);
}

static ts_status run_compiled(const ts_op *op, ts_buffer *const *operands, ts_buffer **out) {
  ts_executable *exe = NULL;
  ts_graph *graph;
  TS_TRY(ts_graph_create(&graph));
  ts_status status = one_op(op, operands, graph);
  if (!status) status = ts_executable_create(graph, NULL, &exe);
  if (!status) status = ts_executable_run(exe, operands, op->operand_count, NULL, out);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  return status;
}

static ts_status compute(void *arg, const ts_op *op, ts_buffer *const *operands, ts_buffer *const *results) {
  ts_buffer *out[MOST_RESULTS];
  (void)arg;
  TS_TRY(run_compiled(op, operands, out));
  ts_status status = ts_judge(op, operands, out);
  for (uint32_t r = 0; r < op->result_count; r++) {
    if (out[r]->bytes > 0) memcpy(results[r]->data, out[r]->data, (size_t)out[r]->bytes);
    ts_buffer_release(out[r]);
  }
  return status;
}

ts_status ts_judged_run(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_buffer **out_results) {
  return ts_ref_run_with(graph, args, arg_count, &(ts_ref_stand_in){compute, NULL}, out_results);
}
