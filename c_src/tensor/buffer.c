#include "tensor/buffer.h"

#include "base/alloc.h"
#include "tensor/prepared.h"

/* A small buffer is one block with the header before the bytes, which halves the allocations of a call on small
 * tensors. Larger ones have a separate header, so that sizes that are powers of two keep their class. */
#define TOGETHER_BYTES ((int64_t)16 << 10)
/* Such a header has room for exactly `rank` dims. */
static int64_t header_bytes(const ts_shape *shape) {
  return ts_pool_padded((int64_t)(offsetof(ts_buffer, shape) + ts_shape_size(shape)));
}

static inline void init(ts_buffer *buffer, ts_dtype dtype, const ts_shape *shape, int64_t bytes) {
  atomic_init(&buffer->refs, 1);
  buffer->dtype = dtype;
  buffer->together = false;
  buffer->elsewhere = false;
  buffer->spent = false;
  atomic_init(&buffer->is_fixed, false);
  atomic_init(&buffer->has_prepared, false);
  ts_shape_copy(&buffer->shape, shape);
  buffer->data = NULL;
  buffer->bytes = bytes;
  buffer->device = NULL;
  buffer->release = NULL;
  buffer->pool = NULL;
}

static ts_status create_together(ts_pool *pool, const ts_shape *shape, int64_t bytes, ts_buffer **out) {
  void *block;
  TS_TRY(ts_pool_alloc(pool, header_bytes(shape) + bytes, &block));
  *out = block;
  return TS_SUCCESS;
}

static ts_status create_apart(ts_pool *pool, int64_t bytes, ts_buffer **out, void **out_data) {
  TS_TRY(TS_NEW(out));
  ts_status status = ts_pool_alloc(pool, bytes, out_data);
  if (status) ts_free(*out);
  return status;
}

ts_status ts_buffer_create(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  ts_buffer *buffer;
  void *data = NULL;
  int64_t bytes;
  *out = NULL;
  TS_TRY(ts_shape_check_bytes(shape, dtype, &bytes));
  bool together = bytes <= TOGETHER_BYTES;
  ts_status status =
      together ? create_together(pool, shape, bytes, &buffer) : create_apart(pool, bytes, &buffer, &data);
  if (status) return ts_error_context(status, "%s", TS_SHAPE_STR(dtype, shape));
  init(buffer, dtype, shape, bytes);
  buffer->pool = pool;
  atomic_init(&buffer->is_fixed, true);
  buffer->together = together;
  buffer->data = together ? (char *)buffer + header_bytes(shape) : data;
  *out = buffer;
  return TS_SUCCESS;
}

ts_status ts_buffer_wrap(ts_dtype dtype, const ts_shape *shape, void *data, ts_release_fn release, void *context,
                         ts_buffer **out) {
  *out = NULL;
  TS_TRY(ts_shape_check(shape, dtype));
  TS_TRY(TS_NEW(out));
  init(*out, dtype, shape, ts_shape_bytes(shape, dtype));
  (*out)->data = data;
  (*out)->release = release;
  (*out)->context = context;
  return TS_SUCCESS;
}

ts_status ts_buffer_adopt(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, void *data, ts_buffer **out) {
  TS_TRY(ts_buffer_wrap(dtype, shape, data, NULL, NULL, out));
  (*out)->pool = pool;
  atomic_init(&(*out)->is_fixed, true);
  return TS_SUCCESS;
}

ts_status ts_buffer_wrap_elsewhere(struct ts_device *device, ts_dtype dtype, const ts_shape *shape,
                                   ts_release_fn release, void *context, ts_buffer **out) {
  TS_TRY(ts_buffer_wrap(dtype, shape, NULL, release, context, out));
  (*out)->device = device;
  (*out)->elsewhere = true;
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
  alias->device = base->device;
  alias->elsewhere = base->elsewhere;
  ts_buffer_retain(base);
  *out = alias;
  return TS_SUCCESS;
}

const ts_buffer *ts_buffer_root(const ts_buffer *buffer) {
  while (buffer->release == release_base) buffer = buffer->context;
  return buffer;
}

/* Relaxed: the caller holds a reference already, which keeps the buffer alive. */
void ts_buffer_retain(ts_buffer *buffer) { atomic_fetch_add_explicit(&buffer->refs, 1, memory_order_relaxed); }

static void destroy(ts_buffer *buffer) {
  ts_prepared_forget(buffer);
  if (buffer->together) {
    ts_pool_free(buffer->pool, buffer, header_bytes(&buffer->shape) + buffer->bytes);
    return;
  }
  if (buffer->release)
    buffer->release(buffer->context);
  else if (buffer->pool)
    ts_pool_free(buffer->pool, buffer->data, buffer->bytes);
  ts_free(buffer);
}

void ts_buffer_release(ts_buffer *buffer) {
  if (!buffer) return;
  /* Release: this thread's accesses happen before the memory is freed. Acquire: so do the accesses of other threads.
   * The holder of the only reference needs no read-modify-write, since no other thread can retain the buffer. */
  if (atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1 ||
      atomic_fetch_sub_explicit(&buffer->refs, 1, memory_order_acq_rel) == 1)
    destroy(buffer);
}

bool ts_buffer_is_unique(const ts_buffer *buffer) {
  /* Acquire, so that the reads of a former co-owner happen before we overwrite the bytes. */
  return buffer->pool && !buffer->release && atomic_load_explicit(&buffer->refs, memory_order_acquire) == 1;
}
