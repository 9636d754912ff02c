#include "tensor/shape.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

const ts_shape ts_shape_scalar = {.rank = 0};

ts_shape ts_shape_make(int32_t rank, const int64_t *dims) {
  ts_shape shape = {.rank = rank};
  ts_shape_set(&shape, rank, dims);
  return shape;
}

bool ts_shape_equal(const ts_shape *a, const ts_shape *b) {
  if (a == b) return true;
  if (a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

ts_status ts_shape_check_bytes(const ts_shape *shape, ts_dtype type, int64_t *out_bytes) {
  if (shape->rank < 0 || shape->rank > TS_MAX_RANK) {
    return ts_error(TS_INVALID_ARGUMENT, "rank %d, expected one from 0 to %d", (int)shape->rank, TS_MAX_RANK);
  }
  /* The product of the nonzero dims must fit as well, since strides are computed from it. */
  int64_t bytes = (int64_t)ts_dtype_size(type);
  bool empty = false;
  for (int32_t i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dims[i];
    if (dim < 0) {
      return ts_error(TS_INVALID_ARGUMENT, "dimension %d of %s is negative", (int)i, TS_SHAPE_STR(type, shape));
    }
    empty |= dim == 0;
    if (dim > 0 && !ts_mul_i64(bytes, dim, &bytes)) {
      return ts_error(TS_OUT_OF_RANGE, "%s has more bytes than fit in 64 bits", TS_SHAPE_STR(type, shape));
    }
  }
  *out_bytes = empty ? 0 : bytes;
  return TS_SUCCESS;
}

ts_status ts_shape_check(const ts_shape *shape, ts_dtype type) {
  int64_t bytes;
  return ts_shape_check_bytes(shape, type, &bytes);
}

int64_t ts_shape_elements(const ts_shape *shape) {
  int64_t elements = 1;
  for (int32_t i = 0; i < shape->rank; i++) elements *= shape->dims[i];
  return elements;
}

int64_t ts_shape_bytes(const ts_shape *shape, ts_dtype type) {
  return ts_shape_elements(shape) * (int64_t)ts_dtype_size(type);
}

void ts_shape_strides(const ts_shape *shape, int64_t *out_strides) {
  int64_t stride = 1;
  for (int32_t i = shape->rank - 1; i >= 0; i--) {
    out_strides[i] = stride;
    stride *= shape->dims[i];
  }
}

bool ts_dims_are_one(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int32_t first, int32_t end) {
  int64_t expected = -1;
  for (int32_t i = end - 1; i >= first; i--) {
    const int64_t d = dims->dims[i];
    if (shape->dims[d] == 1) continue;
    if (expected >= 0 && strides[d] != expected) return false;
    expected = strides[d] * shape->dims[d];
  }
  return true;
}

static bool are_two(const ts_batch_dims *b, int32_t outer) {
  return ts_dims_are_one(b->shape, b->strides, b->dims, 0, outer) &&
         ts_dims_are_one(b->shape, b->strides, b->dims, outer, b->dims->rank);
}

int32_t ts_batch_outer(const ts_batch_dims *lhs, const ts_batch_dims *rhs) {
  for (int32_t outer = 0; outer < lhs->dims->rank || outer == 0; outer++)
    if (are_two(lhs, outer) && are_two(rhs, outer)) return outer;
  return -1;
}

bool ts_shape_keeps_order(const ts_shape *shape, const ts_dims *axes) {
  int64_t last = -1;
  for (int32_t d = 0; d < axes->rank; d++) {
    if (shape->dims[axes->dims[d]] == 1) continue;
    if (axes->dims[d] < last) return false;
    last = axes->dims[d];
  }
  return true;
}

const char *ts_shape_format(ts_dtype type, const ts_shape *shape, char *out, size_t size) {
  if (size == 0) return out;
  int written = snprintf(out, size, "%s[", ts_dtype_name(type));
  size_t at = written < 0 ? 0 : (size_t)written;
  int32_t rank = shape->rank < TS_MAX_RANK ? shape->rank : TS_MAX_RANK;
  for (int32_t i = 0; i < rank && at < size; i++) {
    written = snprintf(out + at, size - at, i ? ",%lld" : "%lld", (long long)shape->dims[i]);
    at += written < 0 ? 0 : (size_t)written;
  }
  if (at < size) snprintf(out + at, size - at, "]");
  return out;
}

static void format_dims(const ts_shape *shape, char *out, size_t size) {
  char text[TS_SHAPE_TEXT];
  ts_shape_format(TS_DTYPE_NONE, shape, text, sizeof(text));
  snprintf(out, size, "%s", strchr(text, '['));
}

ts_status ts_shape_broadcast(const ts_shape *a, const ts_shape *b, ts_shape *out) {
  ts_shape result;
  result.rank = a->rank > b->rank ? a->rank : b->rank;
  for (int32_t i = 1; i <= result.rank; i++) {
    int64_t da = i <= a->rank ? a->dims[a->rank - i] : 1;
    int64_t db = i <= b->rank ? b->dims[b->rank - i] : 1;
    if (da != db && da != 1 && db != 1) {
      char text_a[TS_SHAPE_TEXT], text_b[TS_SHAPE_TEXT];
      format_dims(a, text_a, sizeof(text_a));
      format_dims(b, text_b, sizeof(text_b));
      return ts_error(TS_INVALID_ARGUMENT, "cannot broadcast shapes %s and %s: dimensions %lld and %lld differ", text_a,
                      text_b, (long long)da, (long long)db);
    }
    result.dims[result.rank - i] = da == 1 ? db : da;
  }
  ts_shape_copy(out, &result);
  return TS_SUCCESS;
}
