/* Dense matrices of `number`, to check the results of linear algebra by their products. The test defines `number` as
 * double or double complex before it includes this file. A matrix owns its elements; functions with a matrix by value
 * free it. */
#ifndef TS_TEST_MATRICES_H
#define TS_TEST_MATRICES_H

#include "tensors.h"
#include "testing.h"

#include <math.h>
#include <stdlib.h>

typedef struct matrix {
  int64_t rows, cols;
  number *data;
} matrix;

/* Defined by the test: the element of a buffer. */
static number at(const ts_buffer *buffer, int64_t element);

/* Whether the results of a matrix of this size are compared: it costs many operations for each of its elements. */
static inline bool is_compared(int64_t rows, int64_t cols) { return !TEST_IS_SANITIZED || rows <= 33 || cols <= 33; }

/* In [-1, 1). */
static inline double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(int64_t)(*state >> 33) / (double)(INT64_C(1) << 30) - 1;
}

enum { DEGENERATE_KINDS = 12 };

/* Element (i, k) of a matrix of a kind: of low rank, with repeated values, with columns that are zeros, bidiagonal,
 * with rows that grow, or with elements around 2^±far. */
static inline double degenerate(int kind, int64_t i, int64_t k, int far) {
  switch (kind) {
  case 0: return 0;
  case 1: return i == k;
  case 2: return 1;
  case 3: return (double)(i + k);
  case 4: return i == k ? (i % 3 == 0 ? -2 : 2) : 0;
  case 5: return k % 2 ? 0 : 1.0 / (double)(i + k + 1);
  case 6: return ldexp(1.0 / (double)(i + k + 1), -far);
  case 7: return ldexp(1.0 / (double)(i + k + 1), far);
  case 8: return ldexp(i == k, (int)(-8 * i) > -far ? (int)(-8 * i) : -far);
  case 9: return i == k + 1 || k == i + 1;
  case 10: return i == k ? i % 3 != 1 : k == i + 1;
  default: return ldexp(1.0 / (double)(i + k + 1), (int)(3 * (i < k ? i : k)) - far);
  }
}

static inline number *cell(const matrix *m, int64_t i, int64_t k) { return &m->data[i * m->cols + k]; }

/* Zeros. */
static inline matrix make_matrix(int64_t rows, int64_t cols) {
  matrix m = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(number))};
  ck_assert_ptr_nonnull(m.data);
  return m;
}

/* Matrix `which` of a batch. */
static inline matrix take(const ts_buffer *buffer, int64_t which) {
  const int64_t *last = buffer->shape.dims + buffer->shape.rank - 2;
  matrix m = make_matrix(last[0], last[1]);
  for (int64_t i = 0; i < m.rows * m.cols; i++) m.data[i] = at(buffer, which * m.rows * m.cols + i);
  return m;
}

/* Vector `which` of a batch, on the diagonal of a matrix. */
static inline matrix diagonal(const ts_buffer *buffer, int64_t which, int64_t rows, int64_t cols) {
  const int64_t n = buffer->shape.dims[buffer->shape.rank - 1];
  matrix m = make_matrix(rows, cols);
  for (int64_t i = 0; i < n; i++) *cell(&m, i, i) = at(buffer, which * n + i);
  return m;
}

static inline matrix product(matrix a, matrix b) {
  matrix m = make_matrix(a.rows, b.cols);
  ck_assert_int_eq(a.cols, b.rows);
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t k = 0; k < a.cols; k++)
      for (int64_t j = 0; j < m.cols; j++) *cell(&m, i, j) += *cell(&a, i, k) * *cell(&b, k, j);
  free(a.data);
  free(b.data);
  return m;
}

#endif
