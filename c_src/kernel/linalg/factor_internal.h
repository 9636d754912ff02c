/* Shared by the files of kernel/linalg/factor.h. A matrix is held by columns: a column is a dense row of memory, a
 * `line`. The workspace of a complex matrix has two planes: the imaginary part of each number is `plane` bytes behind
 * its real part. So real and complex matrices have the same addresses and the same algorithms; only the functions on
 * lines look at `plane`. */
#ifndef TS_KERNEL_FACTOR_INTERNAL_H
#define TS_KERNEL_FACTOR_INTERNAL_H

#include "base/cancel.h"
#include "kernel/linalg/factor.h"
#include "kernel/linalg/factor_numbers.h"
#include "kernel/linalg/linalg.h"

#include <math.h>

typedef struct factor {
  const ts_factor_spec *spec;
  const ts_linalg_vector *v;
  int size, parts;            /* bytes of an element, or of a number of two parts: of complex systems */
  double most;                /* of qr, eigh and svd: the largest size of an element read, or of a part of one */
  const void *matrix, *right; /* right: of systems */
  void *const *results;
  char *workspace;
  int64_t plane;           /* of complex matrices (f64): see below; else 0 */
  const ts_gemm *products; /* of blocks of systems; or NULL */
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
/* An element of a result of qr, eigh or svd: zeros are +0, as their signs would be those of rounding. */
static inline void factor_put(const factor *f, void *to, int64_t i, double x) {
  if (f->size == 4)
    ((float *)to)[i] = (float)x + 0;
  else
    ((double *)to)[i] = x + 0;
}
static inline double factor_epsilon(const factor *f) { return f->size == 4 ? 0x1p-24 : 0x1p-53; }

/* The parts of a number: 1 or 2. */
static inline int factor_planes(const factor *f) { return f->plane ? 2 : 1; }
/* Number i of a line in the workspace. */
static inline factor_number factor_get_number(const factor *f, const void *from, int64_t i) {
  return (factor_number){factor_get(f, from, i), f->plane ? factor_get(f, (const char *)from + f->plane, i) : 0};
}
static inline void factor_set_number(const factor *f, void *to, int64_t i, factor_number x) {
  factor_set(f, to, i, x.re);
  if (f->plane) factor_set(f, (char *)to + f->plane, i, x.im);
}

/* The same for numbers that are f64 for every type. */
static inline factor_number factor_value(const factor *f, const double *from, int64_t i) {
  return (factor_number){from[i], f->plane ? from[i + f->plane / (int64_t)sizeof *from] : 0};
}
static inline void factor_set_value(const factor *f, double *to, int64_t i, factor_number x) {
  to[i] = x.re;
  if (f->plane) to[i + f->plane / (int64_t)sizeof *to] = x.im;
}

typedef struct factor_rotation {
  double cosine, sine;
} factor_rotation;

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

/* True where a result is read. */
static inline bool factor_reads(const factor *f, int result) { return !f->spec->unread[result]; }

/* The same without other threads. */
static inline factor factor_alone(const factor *f) {
  factor alone = *f;
  alone.parallel = &ts_parallel_serial;
  return alone;
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

/* Copies an operand, whose strides are in numbers, to lines of the workspace, or lines to a result with rows of
 * neighbours, whose zeros become +0, by all threads. */
void factor_load(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols);
void factor_store(const factor *f, const ts_linalg_view *from, const ts_linalg_view *to, int64_t rows, int64_t cols);
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
/* The same for a line: tau is real, v' the conjugate transpose, and the multiple has the phase opposite to x[0]'s. */
factor_number factor_reflector(const factor *f, char *x, int64_t length, double *out_tau);
/* Applies a reflector to lines, by one thread. */
void factor_reflect_lines(const factor *f, const ts_linalg_reflector *v, char *lines, int64_t step, int64_t count);
/* Reflectors `first` to `end` - 1, for the lines of `to` from `from` on. Number j stands in line j of `a`, from element
 * j + offset on. With `fills` these lines begin as the identity's, so reflector j changes no line before j + offset. */
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

/* The same in reductions of both sides: one of small complex matrices, where the products of a panel take longer. */
static inline int64_t factor_panel_of(const factor *f, int64_t n) { return f->plane && n <= 96 ? 1 : FACTOR_PANEL; }

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
/* Takes sums of lines from lines, or adds them, and -tau times the products v' x of v and each line x: by one thread.
 * The factors of complex sums are conjugated where they say so. */
void factor_sum_lines(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count);
void factor_multiply_lines(const factor *f, const ts_linalg_reflector *v, const char *lines, int64_t step,
                           int64_t count, char *out);
/* The real part of the sum of products conj(x) y. */
double factor_dot(const factor *f, const char *x, const char *y, int64_t count);
/* Takes sums of lines from `count` lines of `length` elements, by all threads. */
void factor_take_sums(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count);
/* factor_multiply_lines by all threads. */
void factor_products(const factor *f, const ts_linalg_reflector *v, const char *lines, int64_t step, int64_t count,
                     char *out);
/* As factor_take_sums, from few lines that get many others: by parts of them. */
void factor_take_columns(const factor *f, const ts_linalg_sums *sums, char *lines, int64_t step, int64_t count);
/* Times a number; conjugated. */
void factor_scale(const factor *f, char *line, int64_t count, factor_number by);
void factor_conjugate_line(const factor *f, char *line, int64_t count);
/* Times 2^power. */
void factor_scale_by_power(const factor *f, char *line, int64_t count, int power);
/* Lines: the first `ordered` are taken in this order, and the first `is_signed` times numbers of size 1. */
typedef struct factor_ordered {
  const factor_lines *lines;
  const int64_t *order;
  const double *signs;
  int64_t ordered, is_signed;
  bool conjugate; /* the signs */
} factor_ordered;

/* The sign of the element of largest size, the first of equals, of each line that is signed; of complex lines its
 * phase. */
void factor_take_signs(const factor *f, const factor_ordered *o, double *signs);
/* As the columns, or the rows, of a dense matrix. */
void factor_put_columns(const factor *f, const factor_ordered *o, void *out);
void factor_put_rows(const factor *f, const factor_ordered *o, void *out);
/* Elements of a result; a line becomes 0. */
void factor_fill(const factor *f, char *to, int64_t count, double x);
void factor_clear(const factor *f, char *line, int64_t count);

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
/* Weights first .. first + count - 1 that make these roots exact, with any sign and a common factor. */
void factor_secular_weights(const factor_secular *s, int64_t first, int64_t count, double *out);

/* A real symmetric tridiagonal matrix, whose eigenvectors are made in the lines of z; see factor_divide.c. Its values
 * have the same bits without vectors. */
typedef struct factor_division {
  const factor *f;
  int64_t n;
  double *d, *e; /* as of factor_tridiagonal */
  factor_lines z;
  char *lines, *by; /* room for n * n elements each */
  char *room;       /* factor_divide_bytes of n, aligned to 8 bytes */
  bool only_values; /* the lines of z stay undefined */
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

/* The singular values, in d, some perhaps negative; false in `out_converged` as above. */
ts_status factor_bidiagonal_values(const factor_bidiagonal *b, bool *out_converged);

ts_status factor_qr(const factor *f);
/* False in `out_converged` where the iteration does not converge. */
ts_status factor_eigh(const factor *f, bool *out_converged);
ts_status factor_svd(const factor *f, bool *out_converged);

#endif
