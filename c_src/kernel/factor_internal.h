/* Shared by the files of kernel/factor.h. A matrix is held by columns, which are dense rows of memory here: `line`. */
#ifndef TS_KERNEL_FACTOR_INTERNAL_H
#define TS_KERNEL_FACTOR_INTERNAL_H

#include "base/cancel.h"
#include "kernel/factor.h"
#include "kernel/linalg.h"

#include <math.h>

typedef struct factor {
  const ts_factor_spec *spec;
  const ts_linalg_vector *v;
  int size;                   /* bytes of an element */
  const void *matrix, *right; /* right: of systems */
  void *const *results;
  char *workspace;
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

/* The root of the sum of squares; the same bits everywhere where the squares neither overflow nor underflow. */
static inline double factor_length(double x, double y) {
  const double squares = x * x + y * y;
  return squares > 1e-280 && squares < 1e280 ? sqrt(squares) : hypot(x, y);
}

/* Lines of `length` elements, one behind the other. */
typedef struct factor_lines {
  char *data;
  int64_t count, length;
} factor_lines;

static inline char *factor_line(const factor *f, const factor_lines *l, int64_t i) {
  return l->data + i * l->length * f->size;
}
static inline char *factor_at(const factor *f, char *line, int64_t i) { return line + i * f->size; }

/* The norm, also where squares overflow or underflow. */
double factor_norm(const factor *f, const char *x, int64_t length);
/* A reflector I - tau v v' of `length` elements of x, in place of them, with v[0] = 1: it makes x a multiple, which is
 * returned, of the first unit vector. */
double factor_reflector(const factor *f, char *x, int64_t length, double *out_tau);
/* The reflectors of the first `count` lines, in place; the others have an entry for each. `make` is called for each
 * line in turn, with its elements from j on, and makes the reflector. */
typedef struct factor_steps {
  int64_t count;
  double *diagonal, *tau, *sign;
  void (*make)(const factor *f, char *x, int64_t length, int64_t j, const struct factor_steps *s);
} factor_steps;

ts_status factor_columns(const factor *f, const factor_lines *a, const factor_steps *steps);
/* A `make` by factor_reflector. */
void factor_reflect_plainly(const factor *f, char *x, int64_t length, int64_t j, const factor_steps *s);
/* The product of `steps` reflectors, number j of which stands in line j of `a` from element j + offset on: its first
 * `q->count` columns. */
ts_status factor_product(const factor *f, const factor_lines *a, int64_t offset, int64_t steps, const double *tau,
                         const factor_lines *q);
/* True when the element of largest size, the first of equals, is negative. */
bool factor_is_turned(const factor *f, const char *line, int64_t count);
void factor_fill(const factor *f, char *line, int64_t count, double x);

/* A real symmetric tridiagonal matrix, and lines of any length that are rotated as its eigenvectors. */
typedef struct factor_tridiagonal {
  const factor *f;
  int64_t n;
  double *d, *e; /* its diagonal; the elements beside it, and 0 */
  factor_lines z;
} factor_tridiagonal;

/* The eigenvalues, in d; false in `out_converged` where the iteration does not converge. */
ts_status factor_diagonalize(const factor_tridiagonal *t, bool *out_converged);
/* In descending order of size; of equal sizes the positive one is first. */
void factor_sort_by_size(const double *values, int64_t count, int64_t *order);

/* Jacobi's rotations of rows until they are orthogonal. */
typedef struct factor_jacobi {
  const factor *f;
  int64_t n;       /* rows, and their length */
  double *squares; /* of each row, by `measure` and the rotations */
  int64_t *order;  /* of the rows, from the longest on */
  void (*measure)(const void *rows);
  bool (*rotate)(const void *rows, int64_t p, int64_t q); /* false when they are orthogonal; rows of zeros are */
  const void *rows;
} factor_jacobi;

/* False in `out_converged` where the iteration does not converge. */
ts_status factor_jacobi_run(const factor_jacobi *j, bool *out_converged);

/* Of two rows of n elements, with their product and their squares, which are those after it. */
typedef struct factor_rotation {
  double cosine, sine;
} factor_rotation;

/* False when the rows are orthogonal. */
bool factor_jacobi_rotation(const factor *f, int64_t n, double product, double *square_p, double *square_q,
                            factor_rotation *out);

ts_status factor_qr(const factor *f);
/* False in `out_converged` where the iteration does not converge. */
ts_status factor_eigh(const factor *f, bool *out_converged);
ts_status factor_svd(const factor *f, bool *out_converged);

#endif
