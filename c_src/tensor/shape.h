/* Shapes and lists of axes: small values, passed by pointer, no ownership. */
#ifndef TS_TENSOR_SHAPE_H
#define TS_TENSOR_SHAPE_H

#include "base/status.h"
#include "tensor/dtype.h"

#define TS_MAX_RANK 64 /* as in NumPy and PyTorch */

typedef struct ts_shape {
  int32_t rank;
  int64_t dims[TS_MAX_RANK]; /* entries past rank are undefined */
} ts_shape;

/* A list of at most TS_MAX_RANK integers (axes, starts, sizes): the same layout. */
typedef ts_shape ts_dims;

extern const ts_shape ts_shape_scalar; /* rank 0 */

/* Copies `rank` dims only: an assignment would copy half a kilobyte. ts_shape_check rejects a rank out of range. */
static inline void ts_shape_set(ts_shape *out, int32_t rank, const int64_t *dims) {
  out->rank = rank;
  for (int32_t i = 0; i < rank && i < TS_MAX_RANK; i++) out->dims[i] = dims[i];
}
static inline void ts_shape_copy(ts_shape *out, const ts_shape *from) { ts_shape_set(out, from->rank, from->dims); }
ts_shape ts_shape_make(int32_t rank, const int64_t *dims);
/* The number of bytes that hold the rank and its dims. */
static inline size_t ts_shape_size(const ts_shape *shape) {
  return offsetof(ts_shape, dims) + (size_t)shape->rank * sizeof(int64_t);
}
bool ts_shape_equal(const ts_shape *a, const ts_shape *b);
/* A mask with a bit for each axis; the axes must be in range. */
static inline uint64_t ts_dims_mask(const ts_dims *axes) {
  uint64_t mask = 0;
  for (int32_t i = 0; i < axes->rank; i++) mask |= UINT64_C(1) << axes->dims[i];
  return mask;
}
/* Checks rank, signs, and that the element count and the byte count fit in int64. */
ts_status ts_shape_check(const ts_shape *shape, ts_dtype type);
/* The same, with the number of bytes. */
ts_status ts_shape_check_bytes(const ts_shape *shape, ts_dtype type, int64_t *out_bytes);
/* The number of elements of a checked shape: 1 for rank 0, 0 when a dim is 0. */
int64_t ts_shape_elements(const ts_shape *shape);
int64_t ts_shape_bytes(const ts_shape *shape, ts_dtype type);
/* Row-major strides in elements. */
void ts_shape_strides(const ts_shape *shape, int64_t *out_strides);
/* True when dims [first, end) of the list are like one dim: from each of its indices to the next it is as far. */
bool ts_dims_are_one(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int32_t first, int32_t end);
/* How many of the first batch dims are an outer dim of both operands of a product, such that the others are one inner
 * dim; as few as possible. -1: there is no such number. */
typedef struct ts_batch_dims {
  const ts_shape *shape;
  const int64_t *strides;
  const ts_dims *dims;
} ts_batch_dims;
int32_t ts_batch_outer(const ts_batch_dims *lhs, const ts_batch_dims *rhs);
/* True when a transpose by `axes` moves no element: only dims of one element change their position. */
bool ts_shape_keeps_order(const ts_shape *shape, const ts_dims *axes);
/* "f32[2,3]" into `out`, truncated to `size`; returns `out`. */
const char *ts_shape_format(ts_dtype type, const ts_shape *shape, char *out, size_t size);
/* Numpy broadcasting of two shapes; an error names both. */
ts_status ts_shape_broadcast(const ts_shape *a, const ts_shape *b, ts_shape *out);

#define TS_SHAPE_TEXT 256
/* ts_shape_format into a buffer of the enclosing full expression. */
#define TS_SHAPE_STR(type, shape) ts_shape_format((type), (shape), (char[TS_SHAPE_TEXT]){0}, TS_SHAPE_TEXT)

#endif
