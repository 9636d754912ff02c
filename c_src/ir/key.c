#include "ir/key.h"

#include <string.h>

enum {
  LONGEST = 16 + 4 * (int)sizeof(ts_dims), /* of an op with attributes of a fixed size */
  BY_CONTENT = 4096                        /* bytes of a literal */
};

/* Room was made before. */
static unsigned char *put(unsigned char *to, const void *bytes, size_t size) {
  memcpy(to, bytes, size);
  return to + size;
}

static unsigned char *put_i32(unsigned char *to, int32_t x) { return put(to, &x, sizeof(x)); }

static unsigned char *put_dims(unsigned char *to, const ts_dims *dims) {
  *to++ = (unsigned char)dims->rank;
  return put(to, dims->dims, (size_t)dims->rank * sizeof(*dims->dims));
}

static unsigned char *put_type(unsigned char *to, ts_dtype dtype, const ts_shape *shape) {
  *to++ = (unsigned char)dtype;
  return put_dims(to, shape);
}

static unsigned char *put_attrs(unsigned char *to, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  switch (ts_op_attr_kind(op->code)) {
  case TS_ATTR_PARAMETER:
    return put_type(put_i32(to, (int32_t)a->parameter.index), a->parameter.dtype, &a->parameter.shape);
  case TS_ATTR_CONSTANT:
    to = put(to, &a->constant.value.bits, sizeof(a->constant.value.bits));
    return put_type(to, a->constant.dtype, &a->constant.shape);
  case TS_ATTR_IOTA: return put_type(put_i32(to, a->iota.axis), a->iota.dtype, &a->iota.shape);
  case TS_ATTR_SHAPED: return put_type(to, a->shaped.dtype, &a->shaped.shape);
  case TS_ATTR_DTYPE: return put_i32(to, (int32_t)a->dtype);
  case TS_ATTR_SHAPE: return put_dims(to, &a->shape);
  case TS_ATTR_BROADCAST: return put_dims(put_dims(to, &a->broadcast.shape), &a->broadcast.axes);
  case TS_ATTR_AXES: return put_dims(to, &a->axes);
  case TS_ATTR_AXIS: return put_i32(to, a->axis);
  case TS_ATTR_SLICE: return put_dims(put_dims(put_dims(to, &a->slice.start), &a->slice.limit), &a->slice.stride);
  case TS_ATTR_PAD: return put_dims(put_dims(put_dims(to, &a->pad.low), &a->pad.high), &a->pad.interior);
  case TS_ATTR_REDUCE: return put_dims(to, &a->reduce.axes);
  case TS_ATTR_ARG: return put_i32(put_i32(put_i32(to, a->arg.axis), a->arg.high), (int32_t)a->arg.dtype);
  case TS_ATTR_SCAN: return put_i32(put_i32(to, a->scan.axis), a->scan.reverse);
  case TS_ATTR_DOT:
    to = put_dims(put_dims(to, &a->dot.lhs_contract), &a->dot.lhs_batch);
    return put_dims(put_dims(to, &a->dot.rhs_contract), &a->dot.rhs_batch);
  case TS_ATTR_FUSION: return put_i32(to, (int32_t)a->fusion.kind);
  case TS_ATTR_LITERAL:
  case TS_ATTR_REGIONS:
  case TS_ATTR_NONE: return to;
  }
  return to;
}

ts_status ts_key_put(ts_key *key, const void *bytes, size_t size) {
  if (key->capacity - key->count < size) TS_TRY(TS_VEC_RESERVE(key, key->count + size));
  if (size) memcpy(key->data + key->count, bytes, size);
  key->count += size;
  return TS_SUCCESS;
}

ts_status ts_key_put_type(ts_key *key, ts_dtype dtype, const ts_shape *shape) {
  if (key->capacity - key->count < LONGEST) TS_TRY(TS_VEC_RESERVE(key, key->count + LONGEST));
  key->count = (size_t)(put_type(key->data + key->count, dtype, shape) - key->data);
  return TS_SUCCESS;
}

static ts_status put_literal(ts_key *key, const ts_buffer *buffer) {
  TS_TRY(ts_key_put_type(key, buffer->dtype, &buffer->shape));
  if (buffer->bytes > BY_CONTENT) return ts_key_put(key, &buffer->data, sizeof(buffer->data));
  return ts_key_put(key, buffer->data, (size_t)buffer->bytes);
}

ts_status ts_key_put_op(ts_key *key, const ts_op *op) {
  if (key->capacity - key->count < LONGEST) TS_TRY(TS_VEC_RESERVE(key, key->count + LONGEST));
  unsigned char *to = put_i32(key->data + key->count, (int32_t)op->code);
  to = put_attrs(put_i32(to, (int32_t)op->operand_count), op);
  key->count = (size_t)(to - key->data);
  return op->code == TS_OP_LITERAL ? put_literal(key, op->attrs->literal.buffer) : TS_SUCCESS;
}
