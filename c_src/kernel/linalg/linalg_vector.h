/* Inner loops of linear algebra in f32 and f64, and of blocks of c128, by vectors. The code is the same for every
 * instruction set (linalg_vector_body.h), compiled once for each. Pure functions of their arguments; thread-safe.
 *
 * Every sum is a chain of fused multiply-adds from +0 in the order of substitution, as in kernel/gemm/gemm.h: however a
 * matrix is cut into blocks, lanes and threads, it has the bits that kernel/ref/ref_linalg.c gives. */
#ifndef TS_KERNEL_LINALG_VECTOR_H
#define TS_KERNEL_LINALG_VECTOR_H

#include "tensor/dtype.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Parts of a block's column at most: as many rows of real matrices, half as many of complex ones. */
#define TS_LINALG_BLOCK 64

/* One block of rows of a larger problem. Strides in numbers; columns are neighbours. */
typedef struct ts_linalg_block {
  const void *matrix; /* n rows of n elements, neighbours in a row; the lower triangle is read */
  const void *sums;   /* for each element of the result, over the rows before the block; NULL: zeros */
  const void *rhs;
  void *out; /* may be rhs */
  int64_t matrix_row, sums_row, rhs_row, out_row;
  int n; /* at most TS_LINALG_BLOCK parts */
  bool unit;
  bool hermitian; /* The matrix is a Cholesky factor: numbers are divided by the real part of its diagonal. */
} ts_linalg_block;

/* Matrices that are alike, one in each lane; all operands and results are dense. The lower triangle, the right
 * side and the solution of a matrix have strides; the last two are rows of `cols` numbers. Where a stride of rows is
 * negative, the first row is the last one in memory. */
typedef struct ts_linalg_group {
  const void *matrix, *rhs;
  void *out, *lower, *upper; /* the last two: of lu_group */
  int n, cols, row, col, rhs_row, rhs_col;
  int count; /* of matrices: at most `lanes` */
  bool unit;
} ts_linalg_group;

/* Columns of a matrix, from the first one's diagonal on, that are to be factored with pivots: they are rows here. */
typedef struct ts_linalg_panel {
  void *columns, *sums; /* rows of `row` elements, a multiple of 16 */
  int64_t row, rows;    /* elements of a column: `rows` */
  int width;            /* columns, at most TS_LINALG_BLOCK parts */
  int64_t *pivots;      /* out: element c of all columns was exchanged with pivots[c] */
} ts_linalg_panel;

/* The most rows and columns for the functions below. */
#define TS_LINALG_FACTOR_ROWS 16

/* Dense matrices whose factors are computed, one in each lane, with no fused multiply-adds. So a matrix has the same
 * bits everywhere, beside any matrices in the other lanes. */
typedef struct ts_linalg_factors {
  const void *matrix;
  void *results[3];              /* NULL: it is not wanted */
  int64_t matrix_step, steps[3]; /* elements from one matrix to the next */
  int rows, cols, count;         /* count: of matrices, at most `lanes` */
  bool full;                     /* as ts_factor_spec's */
} ts_linalg_factors;

/* Vectors of workspace for them. */
static inline int64_t ts_linalg_factors_vectors(int64_t rows, int64_t cols) {
  const int64_t most = rows > cols ? rows : cols;
  return 3 * most * most;
}

/* I - tau v v' */
typedef struct ts_linalg_reflector {
  const void *v;
  int64_t length;
  double tau;
} ts_linalg_reflector;

/* Lines that are best reflected at once: their number is a multiple of this. */
#define TS_LINALG_TOGETHER 8

/* Sums of `count` lines at a distance of `step` elements: the sum of line i has line k `by[k * by_step + i]` times. */
typedef struct ts_linalg_sums {
  const void *lines, *by;
  int64_t step, by_step, count, length;
  bool adds;      /* they are added, not taken */
  bool conjugate; /* `by` is conjugated: of complex lines only, see kernel/linalg/factor_internal.h */
} ts_linalg_sums;

/* Rotations, each of one line with the next: pairs of a cosine and a sine. */
typedef struct ts_linalg_turns {
  const void *angles;
  int64_t count;
} ts_linalg_turns;

/* The product of a matrix, by element strides of any sign, and `count` rows of a few contiguous columns. */
typedef struct ts_linalg_few {
  const void *matrix, *rows;
  int64_t matrix_row, matrix_col, row, count;
  int64_t cols;
} ts_linalg_few;

/* The point origin + offset: distances to the origin's neighbours are exact to the last bit of `offset`. */
typedef struct ts_linalg_point {
  double origin, offset;
} ts_linalg_point;

/* Poles of a rational function, and their weights or factors. */
typedef struct ts_linalg_poles {
  const double *poles, *weights;
  int64_t count;
} ts_linalg_poles;

/* A product, as of a diagonal, whose partial products may be beyond the range: part * 2^power. If no partial product
 * is, plain multiplications have the same bits. */
typedef struct ts_linalg_product {
  double part;
  int64_t power;
} ts_linalg_product;

/* The part of x from 0.5 to 1: x is part * 2^n. Adds n to `power`. */
static inline double ts_linalg_part(double x, int64_t *power) {
  int exponent = 0;
  const double part = isfinite(x) ? frexp(x, &exponent) : x;
  *power += exponent;
  return part;
}
/* Rounded as f32 where `narrow`, else as f64. */
static inline void ts_linalg_multiply(ts_linalg_product *p, double x, bool narrow) {
  const double product = p->part * ts_linalg_part(x, &p->power);
  p->part = ts_linalg_part(narrow ? (double)(float)product : product, &p->power);
}
static inline double ts_linalg_raised(double part, int64_t power) {
  return ldexp(part, power < -9999 ? -9999 : power > 9999 ? 9999 : (int)power);
}

typedef struct ts_linalg_vector {
  int lanes; /* elements of a vector */
  int width; /* columns that `solve` does at a time */
  /* Solves matrix * out = rhs for columns first .. first+count-1. */
  void (*solve)(const ts_linalg_block *block, int64_t first, int64_t count);
  /* `rows` rows of a product, dense. */
  void (*multiply_few)(const ts_linalg_few *few, int64_t rows, void *out);
  /* The rows of the transposed Cholesky factor, from their diagonal on, of a block whose rows from their diagonal on
   * are rhs. Ignores matrix. False when the matrix is not positive semidefinite. */
  bool (*factor)(const ts_linalg_block *block);
  /* The same for whole small matrices. Workspace: (n * n + n * cols) vectors, aligned to 64 bytes. */
  void (*solve_group)(const ts_linalg_group *group, void *workspace);
  /* Lower Cholesky factors of matrix in out, with zeros above; NaNs where one is not positive semidefinite. Workspace:
   * n * n vectors. */
  void (*factor_group)(const ts_linalg_group *group, void *workspace);
  /* LU factors of a panel; `sums` is subtracted from each element, and is used up. */
  void (*factor_panel)(const ts_linalg_panel *panel);
  /* The solutions of small full matrices, and their determinants. Workspace as of solve_group. */
  void (*solve_full_group)(const ts_linalg_group *group, void *workspace);
  void (*determinant_group)(const ts_linalg_group *group, void *workspace);
  /* P in out, L in lower, U in upper. Workspace: 2 * n * n + n vectors. */
  void (*lu_group)(const ts_linalg_group *group, void *workspace);
  /* Results of qr, eigh and svd; NaN where a matrix has an element that is not finite, or an iteration does not
   * converge. Workspace: ts_linalg_factors_vectors, aligned to 64 bytes. */
  void (*qr_group)(const ts_linalg_factors *group, void *workspace);
  void (*eigh_group)(const ts_linalg_factors *group, void *workspace);
  void (*svd_group)(const ts_linalg_factors *group, void *workspace);
  /* The sum of products, 64 bytes of lanes at a time. */
  double (*dot)(const void *a, const void *b, int64_t count);
  /* The largest size of an element; NaN or infinite where an element is. */
  double (*largest)(const void *x, int64_t count);
  /* Applies a reflector to `count` lines that are `step` elements apart: the bits of add_scaled by -tau times `dot`. */
  void (*reflect)(const ts_linalg_reflector *reflector, void *lines, int64_t step, int64_t count);
  /* -tau times `dot` of v and each of `count` lines. */
  void (*products)(const ts_linalg_reflector *v, const void *lines, int64_t step, int64_t count, void *out);
  /* Takes from `count` lines their sums, one term after the other. */
  void (*take_sums)(const ts_linalg_sums *sums, void *lines, int64_t step, int64_t count);
  /* The same for complex lines: the imaginary part of a number, also in v and in a product, is `plane` elements behind
   * its real part. v' is the conjugate transpose. */
  void (*complex_products)(const ts_linalg_reflector *v, int64_t plane, const void *lines, int64_t step, int64_t count,
                           void *out);
  void (*complex_reflect)(const ts_linalg_reflector *v, int64_t plane, void *lines, int64_t step, int64_t count);
  /* Takes sums of one complex line from `count` ones, or adds them. */
  void (*add_multiples)(const ts_linalg_sums *sums, int64_t plane, void *lines, int64_t step, int64_t count);
  /* Applies rotations in order: line i with line i + 1, `step` elements apart. x and y become cosine * x + sine * y and
   * cosine * y - sine * x. */
  void (*turn)(const ts_linalg_turns *turns, void *line, int64_t step, int64_t length);
  /* y += factor * x */
  void (*add_scaled)(void *y, double factor, const void *x, int64_t count);
  /* The next three compute in f64 for each type, with t = (pole - origin) - offset for each pole. Their bits are the
   * same everywhere. The sums of weight / t and of weight / t^2. */
  void (*pole_sums)(const ts_linalg_poles *poles, const ts_linalg_point *at, double *out_sum, double *out_slope);
  /* out *= t / (pole - other) */
  void (*pole_ratios)(const ts_linalg_poles *poles, const ts_linalg_point *at, double other, double *out);
  /* out = weight / t */
  void (*pole_terms)(const ts_linalg_poles *poles, const ts_linalg_point *at, double *out);
} ts_linalg_vector;

/* Of the instruction set in use; f32, f64 or c128. */
const ts_linalg_vector *ts_linalg_vector_of(ts_dtype type);

/* [0] f32, [1] f64, [2] c128 */
extern const ts_linalg_vector ts_linalg_vector_base[3];
#if defined(__x86_64__)
extern const ts_linalg_vector ts_linalg_vector_avx2[3], ts_linalg_vector_avx512[3];
#endif

#endif
