/* Shapes and lists of axes: small values, passed by pointer, no ownership. */
#ifndef TS_TENSOR_SHAPE_H
#define TS_TENSOR_SHAPE_H

#include "base/status.h"
#include "tensor/dtype.h"

#define TS_MAX_RANK 16

typedef struct ts_shape {
  int32_t rank;
  int64_t dims[TS_MAX_RANK]; /* entries past rank are zero */
} ts_shape;

/* A list of at most TS_MAX_RANK integers (axes, starts, sizes): the same layout. */
typedef ts_shape ts_dims;

ts_shape ts_shape_make(int32_t rank, const int64_t *dims);
bool ts_shape_equal(const ts_shape *a, const ts_shape *b);
/* Checks rank, signs, and that the element count and the byte count fit in int64. */
ts_status ts_shape_check(const ts_shape *shape, ts_dtype type);
/* The number of elements of a checked shape: 1 for rank 0, 0 when a dim is 0. */
int64_t ts_shape_elements(const ts_shape *shape);
int64_t ts_shape_bytes(const ts_shape *shape, ts_dtype type);
/* Row-major strides in elements. */
void ts_shape_strides(const ts_shape *shape, int64_t *out_strides);
/* Whether a transpose by `axes` moves no element: only dims of one element change places. */
bool ts_shape_keeps_order(const ts_shape *shape, const ts_dims *axes);
/* "f32[2,3]" into `out`, truncated to `size`; returns `out`. */
const char *ts_shape_format(ts_dtype type, const ts_shape *shape, char *out, size_t size);
/* Numpy broadcasting of two shapes; an error names both. */
ts_status ts_shape_broadcast(const ts_shape *a, const ts_shape *b, ts_shape *out);

#define TS_SHAPE_TEXT 256
/* ts_shape_format into a buffer of the enclosing full expression. */
#define TS_SHAPE_STR(type, shape) ts_shape_format((type), (shape), (char[TS_SHAPE_TEXT]){0}, TS_SHAPE_TEXT)

#endif
