/* LAPACK's classes of test matrices (xLATMS, xDRVEV, xDRVBD, xDRVGE) for every type of floats and complex numbers. The
 * parts of numbers are doubles. A matrix owns its elements. A function that takes a matrix by value frees it. */
#ifndef TS_TEST_MATRIX_CLASSES_H
#define TS_TEST_MATRIX_CLASSES_H

#include "tensor/dtype.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>

typedef struct matrix {
  int64_t rows, cols;
  double *re, *im;
} matrix;

/* Half the distance from 1 to the next number; exponents of the least normal number, of the least one, and of the
 * largest. */
typedef struct number_type {
  ts_dtype dtype;
  double epsilon;
  int normal, least, most;
} number_type;

static const number_type number_types[] = {
    {TS_F64, 0x1p-53, -1022, -1074, 1023}, {TS_F32, 0x1p-24, -126, -149, 127}, {TS_C128, 0x1p-53, -1022, -1074, 1023},
    {TS_C64, 0x1p-24, -126, -149, 127},    {TS_F16, 0x1p-11, -14, -24, 15},    {TS_BF16, 0x1p-8, -126, -133, 127},
    {TS_F8, 0x1p-3, -14, -16, 15},         {TS_F8E4M3FN, 0x1p-4, -6, -9, 7},
};
enum { NUMBER_TYPES = sizeof number_types / sizeof *number_types, WIDE_TYPES = 4 };

typedef enum matrix_class {
  ZERO,
  IDENTITY,
  ONES,
  DIAGONAL_GEOMETRIC, /* known singular values from here on .. */
  DIAGONAL_ONE_LARGE,
  DIAGONAL_ONE_SMALL,
  CONDITION_100,
  CONDITION_ROOT,
  CONDITION_EPSILON,
  CONDITION_BEYOND, /* epsilon^-3 */
  ONE_LARGE_VALUE,
  ONE_SMALL_VALUE, /* .. up to here */
  RANK_1,
  RANK_2,
  RANK_3,
  REPEATED_COLUMNS,
  HILBERT,
  NOISE,
  INTEGERS,
  GRADED_ROWS,
  GRADED_COLUMNS,
  GRADED_BOTH,
  DECAYING, /* column j times 10^-2j */
  ONES_AND_LEAST_NUMBERS,
  ONE_AND_LEAST_NUMBERS,
  ONE_LARGE_ELEMENT,
  EVERY_MAGNITUDE,
  NEAR_UNDERFLOW,
  NEAR_OVERFLOW,
  SUBNORMAL,
  LARGEST, /* whose results may overflow */
  CLASSES
} matrix_class;

static const char *const class_names[CLASSES] = {"zero",
                                                 "identity",
                                                 "ones",
                                                 "diagonal, geometric",
                                                 "diagonal, one large",
                                                 "diagonal, one small",
                                                 "condition 100",
                                                 "condition root",
                                                 "condition epsilon",
                                                 "condition epsilon^3",
                                                 "one large value",
                                                 "one small value",
                                                 "rank 1",
                                                 "rank 2",
                                                 "rank 3",
                                                 "repeated columns",
                                                 "hilbert",
                                                 "noise",
                                                 "integers",
                                                 "graded rows",
                                                 "graded columns",
                                                 "graded both",
                                                 "decaying",
                                                 "ones and least numbers",
                                                 "one and least numbers",
                                                 "one large element",
                                                 "every magnitude",
                                                 "near underflow",
                                                 "near overflow",
                                                 "subnormal",
                                                 "largest"};

static inline bool has_known_values(matrix_class class) {
  return class >= DIAGONAL_GEOMETRIC && class <= ONE_SMALL_VALUE;
}

/* ---- matrices */

/* Zeros. */
static inline matrix make_matrix(int64_t rows, int64_t cols) {
  matrix m = {rows, cols, calloc((size_t)(2 * rows * cols + 1), sizeof(double)), NULL};
  ck_assert_ptr_nonnull(m.re);
  m.im = m.re + rows * cols;
  return m;
}

static inline void free_matrix(matrix m) { free(m.re); }

/* The conjugate of the transpose. */
static inline matrix adjoint(matrix a) {
  matrix m = make_matrix(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t k = 0; k < a.cols; k++) {
      m.re[k * a.rows + i] = a.re[i * a.cols + k];
      m.im[k * a.rows + i] = -a.im[i * a.cols + k];
    }
  free_matrix(a);
  return m;
}

static inline matrix copy_of(const matrix *a) {
  matrix m = make_matrix(a->rows, a->cols);
  for (int64_t i = 0; i < 2 * a->rows * a->cols; i++) m.re[i] = a->re[i];
  return m;
}

static inline matrix product(matrix a, matrix b) {
  matrix m = make_matrix(a.rows, b.cols);
  ck_assert_int_eq(a.cols, b.rows);
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < a.cols; k++) {
      const double re = a.re[i * a.cols + k], im = a.im[i * a.cols + k];
      const double *x = b.re + k * b.cols, *y = b.im + k * b.cols;
      double *to_re = m.re + i * m.cols, *to_im = m.im + i * m.cols;
      for (int64_t j = 0; j < m.cols; j++) {
        to_re[j] += re * x[j] - im * y[j];
        to_im[j] += re * y[j] + im * x[j];
      }
    }
  free_matrix(a);
  free_matrix(b);
  return m;
}

/* The largest sum of sizes of a column. */
static inline double norm_of(const matrix *m) {
  double most = 0;
  for (int64_t k = 0; k < m->cols; k++) {
    double sum = 0;
    for (int64_t i = 0; i < m->rows; i++) sum += hypot(m->re[i * m->cols + k], m->im[i * m->cols + k]);
    most = sum > most || isnan(sum) ? sum : most;
  }
  return most;
}

static inline double largest_part(const matrix *m) {
  double most = 0;
  for (int64_t i = 0; i < 2 * m->rows * m->cols; i++) most = fmax(most, fabs(m->re[i]));
  return most;
}

static inline void scale_by_power(matrix *m, int power) {
  for (int64_t i = 0; i < 2 * m->rows * m->cols; i++) m->re[i] = ldexp(m->re[i], power);
}

/* ---- classes */

/* In [-1, 1). */
static inline double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(int64_t)(*state >> 33) / (double)(INT64_C(1) << 30) - 1;
}

/* The properties of a matrix to make. */
typedef struct matrix_form {
  matrix_class class;
  const number_type *type;
  int64_t rows, cols;
  bool hermitian;
} matrix_form;

/* The known singular values, from the largest on, or the sizes of eigenvalues. */
static inline double known_value(const matrix_form *f, int64_t i) {
  const int64_t count = f->rows < f->cols ? f->rows : f->cols;
  const double epsilon = f->type->epsilon, place = count > 1 ? (double)i / (double)(count - 1) : 0;
  switch (f->class) {
  case CONDITION_100: return pow(100, -place);
  case CONDITION_ROOT: return pow(sqrt(10 * epsilon), place);
  case CONDITION_EPSILON: return pow(10 * epsilon, place);
  case CONDITION_BEYOND: return pow(epsilon, 3 * place);
  case DIAGONAL_GEOMETRIC: return pow(epsilon, place);
  case DIAGONAL_ONE_LARGE:
  case ONE_LARGE_VALUE: return i == 0 ? 1 : 10 * epsilon;
  case DIAGONAL_ONE_SMALL:
  case ONE_SMALL_VALUE: return i < count - 1 ? 1 : 10 * epsilon;
  default: return 0;
  }
}

static inline double known_sign(const matrix_form *f, int64_t i) { return f->hermitian && i % 3 == 1 ? -1 : 1; }

/* m = (I - 2 v v^H) m, v a random vector of length 1. */
static inline matrix reflected(matrix m, const double *v) {
  const int64_t n = m.rows;
  for (int64_t k = 0; k < m.cols; k++) {
    double re = 0, im = 0;
    for (int64_t i = 0; i < n; i++) {
      re += v[2 * i] * m.re[i * m.cols + k] + v[2 * i + 1] * m.im[i * m.cols + k];
      im += v[2 * i] * m.im[i * m.cols + k] - v[2 * i + 1] * m.re[i * m.cols + k];
    }
    for (int64_t i = 0; i < n; i++) {
      m.re[i * m.cols + k] -= 2 * (v[2 * i] * re - v[2 * i + 1] * im);
      m.im[i * m.cols + k] -= 2 * (v[2 * i] * im + v[2 * i + 1] * re);
    }
  }
  return m;
}

enum { MOST_LINES = 400 };

static inline void random_vector(int64_t count, bool is_complex, uint64_t *seed, double *out) {
  double sum = 0;
  ck_assert_int_le(count, MOST_LINES);
  for (int64_t i = 0; i < 2 * count; i++) {
    out[i] = is_complex || i % 2 == 0 ? noise(seed) : 0;
    sum += out[i] * out[i];
  }
  for (int64_t i = 0; i < 2 * count; i++) out[i] /= sqrt(sum);
}

/* The known values on the diagonal, between products of reflections. */
static inline matrix with_known_values(const matrix_form *f, uint64_t *seed) {
  matrix m = make_matrix(f->rows, f->cols);
  double v[2 * MOST_LINES];
  for (int64_t i = 0; i < f->rows && i < f->cols; i++) m.re[i * f->cols + i] = known_value(f, i) * known_sign(f, i);
  for (int i = 0; f->class >= CONDITION_100 && i < 3; i++) {
    const bool is_complex = ts_dtype_is_complex(f->type->dtype);
    random_vector(f->rows, is_complex, seed, v);
    m = reflected(m, v);
    if (!f->hermitian) random_vector(f->cols, is_complex, seed, v);
    m = adjoint(reflected(adjoint(m), v));
  }
  return m;
}

static inline int exponent_of_size(int64_t n) {
  int exponent;
  (void)frexp((double)n, &exponent);
  return exponent;
}

/* The exponent of element (i, k); some classes draw it at random. */
static inline int exponent_at(const matrix_form *f, int64_t i, int64_t k, uint64_t *seed) {
  const number_type *t = f->type;
  const int64_t n = f->rows > f->cols ? f->rows : f->cols, low = i < k ? i : k;
  const int digits = t->normal - t->least + 1, room = t->most - 2 - exponent_of_size(n);
  const bool is_first = i == (f->rows - 1) / 2 && k == (f->hermitian ? i : (f->cols - 1) / 2);
  switch (f->class) {
  case GRADED_ROWS: return (int)(-4 * (f->hermitian ? low : i));
  case GRADED_COLUMNS: return (int)(-7 * k);
  case GRADED_BOTH: return (int)(-3 * (i + k));
  case ONES_AND_LEAST_NUMBERS: return t->least + 3;
  case ONE_AND_LEAST_NUMBERS: return is_first ? 0 : t->least + 3;
  case ONE_LARGE_ELEMENT: return is_first ? room : 0;
  case EVERY_MAGNITUDE: return (int)(noise(seed) * (t->most > 500 ? 480 : t->most / 2 - 4));
  case NEAR_UNDERFLOW: return t->normal + (t->most > 20 ? digits : 2);
  case NEAR_OVERFLOW: return room;
  case SUBNORMAL: return t->normal - 1;
  case LARGEST: return t->most - 1;
  default: return 0;
  }
}

static inline double element_at(const matrix_form *f, int64_t i, int64_t k, uint64_t *seed) {
  switch (f->class) {
  case IDENTITY: return i == k;
  case ONES: return 1;
  case HILBERT: return 1 / (double)(i + k + 1);
  case DECAYING: return pow(10, (double)(-2 * k)) / (double)(i + k + 1);
  case INTEGERS: return floor(2.5 * noise(seed)) + 1;
  case ONES_AND_LEAST_NUMBERS: return 1 + ldexp(noise(seed), exponent_at(f, i, k, seed));
  default: return ldexp(noise(seed), exponent_at(f, i, k, seed));
  }
}

/* Sums of products of `rank` vectors; or columns, a few of them repeated. */
static inline matrix of_low_rank(const matrix_form *f, uint64_t *seed) {
  const int64_t rank = f->class == REPEATED_COLUMNS ? 3 : f->class - RANK_1 + 1;
  matrix left = make_matrix(f->rows, rank), right = make_matrix(rank, f->cols);
  const bool is_complex = ts_dtype_is_complex(f->type->dtype);
  for (int64_t i = 0; i < 2 * f->rows * rank; i++) left.re[i] = is_complex || i < f->rows * rank ? noise(seed) : 0;
  if (f->hermitian) {
    free_matrix(right);
    right = adjoint(copy_of(&left));
  }
  for (int64_t i = 0; !f->hermitian && i < rank; i++)
    for (int64_t k = 0; k < f->cols; k++) {
      right.re[i * f->cols + k] = f->class == REPEATED_COLUMNS ? k % 3 == i : noise(seed);
      if (is_complex && f->class != REPEATED_COLUMNS) right.im[i * f->cols + k] = noise(seed);
    }
  return product(left, right);
}

/* The imaginary parts of classes of noise are noise; others get a phase for each row and column. */
static inline void set_parts(const matrix_form *f, uint64_t *seed, matrix *m) {
  const bool is_plain = f->class <= ONES || f->class == HILBERT || f->class == DECAYING;
  for (int64_t i = 0; i < f->rows; i++)
    for (int64_t k = 0; k < f->cols; k++) {
      const double size = element_at(f, i, k, seed), angle = is_plain ? (double)(i - k) : 0;
      const int64_t at = i * f->cols + k;
      const bool is_complex = ts_dtype_is_complex(f->type->dtype);
      m->re[at] = is_complex && is_plain ? size * cos(angle) : size;
      if (is_complex) m->im[at] = is_plain ? size * sin(angle) : element_at(f, i, k, seed);
    }
}

/* The lower triangle and its mirror image. */
static inline void mirror(matrix *m) {
  for (int64_t i = 0; i < m->rows; i++) {
    m->im[i * m->cols + i] = 0;
    for (int64_t k = 0; k < i; k++) {
      m->re[k * m->cols + i] = m->re[i * m->cols + k];
      m->im[k * m->cols + i] = -m->im[i * m->cols + k];
    }
  }
}

static inline matrix make_class(const matrix_form *f, uint64_t *seed) {
  if (has_known_values(f->class)) return with_known_values(f, seed);
  if (f->class >= RANK_1 && f->class <= REPEATED_COLUMNS) return of_low_rank(f, seed);
  matrix m = make_matrix(f->rows, f->cols);
  if (f->class != ZERO) set_parts(f, seed, &m);
  if (f->hermitian) mirror(&m);
  return m;
}

/* G G^H and a little more on the diagonal, of the size of G. */
static inline matrix make_definite(const matrix_form *f, uint64_t *seed) {
  matrix g = make_class(f, seed);
  int power = 0;
  const double most = largest_part(&g);
  if (most > 0) (void)frexp(most, &power);
  scale_by_power(&g, -power);
  matrix m = product(g, adjoint(copy_of(&g)));
  const double more = fmin(64 * f->type->epsilon * (double)f->rows, 2) * norm_of(&m);
  for (int64_t i = 0; i < m.rows; i++) m.re[i * m.cols + i] += more;
  const int limit = f->type->most - 3 - 2 * exponent_of_size(m.rows);
  scale_by_power(&m, power < limit ? power : limit);
  mirror(&m);
  return m;
}

#endif
