#include "tensor/buffer.h"

#include "base/alloc.h"

static ts_status buffer_new(ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  *out = NULL;
  TS_TRY(ts_shape_check(shape, dtype));
  ts_buffer *buffer;
  TS_TRY(TS_NEW(&buffer));
  atomic_init(&buffer->refs, 1);
  buffer->dtype = dtype;
  buffer->shape = *shape;
  buffer->bytes = ts_shape_bytes(shape, dtype);
  *out = buffer;
  return TS_SUCCESS;
}

ts_status ts_buffer_create(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  TS_TRY(buffer_new(dtype, shape, out));
  ts_status status = ts_pool_alloc(pool, (*out)->bytes, &(*out)->data);
  if (status) {
    ts_free(*out);
    *out = NULL;
    return ts_error_context(status, "%s", TS_SHAPE_STR(dtype, shape));
  }
  (*out)->pool = pool;
  return TS_SUCCESS;
}

ts_status ts_buffer_wrap(ts_dtype dtype, const ts_shape *shape, void *data, ts_release_fn release, void *context,
                         ts_buffer **out) {
  TS_TRY(buffer_new(dtype, shape, out));
  (*out)->data = data;
  (*out)->release = release;
  (*out)->context = context;
  return TS_SUCCESS;
}

static void release_base(void *base) { ts_buffer_release(base); }

ts_status ts_buffer_alias(ts_buffer *base, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  ts_buffer *alias;
  *out = NULL;
  TS_TRY(ts_buffer_wrap(dtype, shape, base->data, release_base, base, &alias));
  if (alias->bytes != base->bytes) {
    ts_free(alias);
    return ts_error(TS_INVALID_ARGUMENT, "%s cannot be viewed as %s: %lld bytes are not %lld",
                    TS_SHAPE_STR(base->dtype, &base->shape), TS_SHAPE_STR(dtype, shape), (long long)base->bytes,
                    (long long)ts_shape_bytes(shape, dtype));
  }
  ts_buffer_retain(base);
  *out = alias;
  return TS_SUCCESS;
}

/* Relaxed: whoever retains holds a reference already, which keeps the buffer. */
void ts_buffer_retain(ts_buffer *buffer) { atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed); }

void ts_buffer_release(ts_buffer *buffer) {
  /* Release: our accesses come before the freeing. Acquire: others' accesses do, too. */
  if (!buffer || atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) != 1) return;
  if (buffer->pool) ts_pool_free(buffer->pool, buffer->data, buffer->bytes);
  if (buffer->release) buffer->release(buffer->context);
  ts_free(buffer);
}

bool ts_buffer_is_unique(const ts_buffer *buffer) {
  /* Acquire, so that what a former co-owner read was read before we overwrite it. */
  return buffer->pool && atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1;
}
