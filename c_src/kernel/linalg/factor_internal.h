/* Shared by the files of kernel/linalg/factor.h. A matrix is held by columns, which are dense rows of memory here:
 * `line`. */
#ifndef TS_KERNEL_FACTOR_INTERNAL_H
#define TS_KERNEL_FACTOR_INTERNAL_H

#include "base/cancel.h"
#include "kernel/linalg/factor.h"
#include "kernel/linalg/linalg.h"

#include <math.h>

typedef struct factor {
  const ts_factor_spec *spec;
  const ts_linalg_vector *v;
  int size;                   /* bytes of an element */
  double most;                /* of qr, eigh and svd: the largest size of an element, or of a part of one */
  const void *matrix, *right; /* right: of systems */
  void *const *results;
  char *workspace;
  const ts_gemm *products; /* of blocks; or NULL */
  ts_pool *pool;           /* for them */
  const ts_parallel *parallel;
  const _Atomic bool *cancel;
} factor;

static inline double factor_get(const factor *f, const void *from, int64_t i) {
  return f->size == 4 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}
static inline void factor_set(const factor *f, void *to, int64_t i, double x) {
  if (f->size == 4)
    ((float *)to)[i] = (float)x;
  else
    ((double *)to)[i] = x;
}
static inline double factor_epsilon(const factor *f) { return f->size == 4 ? 0x1p-24 : 0x1p-53; }

typedef struct factor_rotation {
  double cosine, sine;
} factor_rotation;

/* Lengths below it are not divided by: towards the least numbers, lengths and quotients have few digits. Vectors that
 * are as short become longer by FACTOR_LIFT first. */
#define FACTOR_SHORT 0x1p-900
#define FACTOR_LIFT 0x1p600

/* The root of the sum of squares; the same bits everywhere where the squares neither overflow nor underflow. */
static inline double factor_length(double x, double y) {
  const double squares = x * x + y * y;
  return squares > 1e-280 && squares < 1e280 ? sqrt(squares) : hypot(x, y);
}

/* The Givens rotation that maps (x, y) to a multiple of e1; returns the multiple. */
static inline double factor_rotation_of(double x, double y, factor_rotation *out) {
  const double length = factor_length(x, y), by = length < FACTOR_SHORT ? FACTOR_LIFT : 1,
               divisor = length < FACTOR_SHORT ? factor_length(x * by, y * by) : length;
  *out = length == 0 ? (factor_rotation){1, 0} : (factor_rotation){x * by / divisor, y * by / divisor};
  return length;
}

/* The first address from `at` on that is aligned to the vectors of every instruction set. */
static inline char *factor_aligned(char *at) { return at + (64 - (uintptr_t)at % 64) % 64; }

/* Lines of `length` elements, one behind the other. */
typedef struct factor_lines {
  char *data;
  int64_t count, length;
} factor_lines;

static inline char *factor_line(const factor *f, const factor_lines *l, int64_t i) {
  return l->data + i * l->length * f->size;
}
static inline char *factor_at(const factor *f, char *line, int64_t i) { return line + i * f->size; }

/* ts_linalg_copy by all threads. */
void factor_copy(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols);
/* The exponent of the power of two that brings a matrix with this largest element into a range where no norm overflows
 * and rounding errors are normal numbers. It is 0 but near the ends of the range: a small element beside large ones
 * would lose digits. */
int factor_range_power(const factor *f, double most);
/* A vector before its reflection: its first element, and the norm of the others. Both are times 2^power. The power is 0
 * unless the norm would have few digits, as subnormal numbers do. */
typedef struct factor_vector {
  char *x;
  int64_t length;
  double first, below;
  int power;
} factor_vector;

/* Multiplies x by 2^power. */
factor_vector factor_measure(const factor *f, char *x, int64_t length);
/* Replaces x by the v of a reflector I - tau v v', with v[0] = 1. The reflector maps x to a multiple of the first unit
 * vector. Returns that multiple. */
double factor_reflect_vector(const factor *f, const factor_vector *v, double *out_tau);
double factor_reflector(const factor *f, char *x, int64_t length, double *out_tau);
/* Reflectors `first` to `end` - 1, number j of which stands in line j of `a` from element j + offset on, for the lines
 * of `to` from `from` on. With `fills` these begin as those of the identity, so reflector j changes no line before
 * j + offset. */
typedef struct factor_reflections {
  const factor *f;
  const factor_lines *a, *to;
  const double *tau;
  char *room; /* factor_panels_elements of a line's length */
  int64_t offset, first, end, from;
  bool backwards; /* from the last reflector on */
  bool fills;
} factor_reflections;

/* Columns whose reflectors are computed before the rest of a matrix is updated. */
#define FACTOR_PANEL 32

int64_t factor_panels_elements(int64_t length);
ts_status factor_reflect(const factor_reflections *r);

/* The reflectors of the first `count` lines, in place; the others have an entry for each. `make` is called for each
 * line in turn, with its elements from j on, and makes the reflector. */
typedef struct factor_steps {
  int64_t count;
  double *diagonal, *tau, *sign;
  void (*make)(const factor *f, char *x, int64_t length, int64_t j, const struct factor_steps *s);
  char *room; /* as of reflections */
} factor_steps;

ts_status factor_columns(const factor *f, const factor_lines *a, const factor_steps *steps);
/* A `make` by factor_reflector. */
void factor_reflect_plainly(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *s);
/* The product of all these reflectors, from the first on: the first columns of it, as many as `to` has lines. */
ts_status factor_product(const factor_reflections *r);
/* Takes sums of lines from `count` lines of `length` elements, by all threads. */
void factor_take_sums(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count);
/* -tau times the products of lines with v, by all threads. */
void factor_products(const factor *f, const ts_linalg_reflector *v, const char *lines, int64_t step, int64_t count,
                     char *out);
/* As factor_take_sums, from few lines that get many others: by parts of them. */
void factor_take_columns(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count);
/* Times 2^power. */
void factor_scale_by_power(const factor *f, char *line, int64_t count, int power);
/* True when the element of largest size, the first of equals, is negative. */
bool factor_is_turned(const factor *f, const char *line, int64_t count);
/* Lines of which the first `ordered` are taken in this order, and the first `is_signed` times signs. */
typedef struct factor_ordered {
  const factor_lines *lines;
  const int64_t *order;
  const double *signs;
  int64_t ordered, is_signed;
} factor_ordered;

/* -1 where a line is turned, else 1, for those that are signed. */
void factor_take_signs(const factor *f, const factor_ordered *o, double *signs);
/* As the columns, or the rows, of a dense matrix. */
void factor_put_columns(const factor *f, const factor_ordered *o, void *out);
void factor_put_rows(const factor *f, const factor_ordered *o, void *out);
void factor_fill(const factor *f, char *line, int64_t count, double x);

/* A real symmetric tridiagonal matrix, and lines of any length that are rotated as its eigenvectors. */
typedef struct factor_tridiagonal {
  const factor *f;
  int64_t n;
  double *d, *e; /* its diagonal; the elements beside it, and 0 */
  factor_lines z;
  char *parts; /* room for them */
  char *room;  /* factor_turns_bytes of n */
} factor_tridiagonal;

/* The eigenvalues, in d; false in `out_converged` where the iteration does not converge. */
ts_status factor_diagonalize(const factor_tridiagonal *t, bool *out_converged);

/* The function 1 + the sum of weight / (pole - x) of ascending poles with positive weights. */
typedef struct factor_secular {
  const ts_linalg_vector *v; /* of any type */
  int64_t count;
  double epsilon; /* a value of the function is 0 where rounding of this size explains it */
  const double *poles, *weights;
  ts_linalg_point *roots; /* root j is between pole j and the next; the last is behind all */
} factor_secular;

/* Root j; false where it is not found. */
bool factor_secular_root(const factor_secular *s, int64_t j);
/* Weights first .. first + count - 1 for which these roots are exact, of any sign and times a common factor. */
void factor_secular_weights(const factor_secular *s, int64_t first, int64_t count, double *out);

/* A real symmetric tridiagonal matrix, whose eigenvectors are made in the lines of z; see factor_divide.c. */
typedef struct factor_division {
  const factor *f;
  int64_t n;
  double *d, *e; /* as of factor_tridiagonal */
  factor_lines z;
  char *lines, *by; /* room for n * n elements each */
  char *room;       /* factor_divide_bytes of n, aligned to 8 bytes */
} factor_division;

int64_t factor_divide_bytes(int64_t n);
/* The eigenvalues, in d in no order; false in `out_converged` as above. */
ts_status factor_divide(const factor_division *s, bool *out_converged);
/* In descending order of size; of equal sizes the positive one is first. */
void factor_sort_by_size(const double *values, int64_t count, int64_t *order);

/* An upper bidiagonal matrix, and lines that are rotated as its singular vectors. */
typedef struct factor_bidiagonal {
  const factor *f;
  int64_t n;
  double *d, *e;                  /* its diagonal; the elements above it, and 0 */
  factor_lines left, right;       /* of the first, n lines are */
  char *left_parts, *right_parts; /* room for them */
  char *room;                     /* twice factor_turns_bytes of n */
} factor_bidiagonal;

/* The singular values, in d, of which some may be negative; false in `out_converged` as above. */
ts_status factor_bidiagonal_values(const factor_bidiagonal *b, bool *out_converged);

ts_status factor_qr(const factor *f);
/* False in `out_converged` where the iteration does not converge. */
ts_status factor_eigh(const factor *f, bool *out_converged);
ts_status factor_svd(const factor *f, bool *out_converged);

#endif
