/* A buffer is reference-counted storage with a type and a shape: row-major, dense. It owns pool memory, or keeps the
 * owner of the bytes alive (a BEAM binary, a mapping). Retain and release are thread-safe. The holder of the only
 * reference may write the contents; otherwise they are read-only. */
#ifndef TS_TENSOR_BUFFER_H
#define TS_TENSOR_BUFFER_H

#include "base/status.h"
#include "tensor/pool.h"
#include "tensor/shape.h"

#include <stdatomic.h>

typedef void (*ts_release_fn)(void *context);

typedef struct ts_buffer {
  _Atomic uint32_t refs;
  ts_dtype dtype;
  bool together;             /* header and data are one pool block */
  bool elsewhere;            /* the host cannot read the bytes, and `data` is NULL: device/device.h */
  _Atomic bool is_fixed;     /* only the run that makes the buffer writes its bytes, so that copies of them stay true */
  bool spent;                /* donated to a failed run that may have written other bytes: nothing may read them */
  _Atomic bool has_prepared; /* there are copies, or notes of uses: prepared.h */
  void *data;                /* aligned to TS_POOL_ALIGNMENT in pool memory, else to the element */
  int64_t bytes;
  struct ts_device *device; /* where it is; NULL: in host memory, on no device */
  ts_release_fn release;    /* called with `context` when the last reference is released, if not NULL */
  union {
    ts_pool *pool; /* without `release`: the pool that owns the memory, or NULL */
    void *context;
  };
  ts_shape shape; /* last, since the memory may hold `rank` dims only: ts_shape_copy() */
} ts_buffer;

/* Contents are undefined. Release with ts_buffer_release. */
ts_status ts_buffer_create(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
/* Wraps memory that `release(context)` frees. On failure the caller keeps the memory. */
ts_status ts_buffer_wrap(ts_dtype dtype, const ts_shape *shape, void *data, ts_release_fn release, void *context,
                         ts_buffer **out);
/* Takes over the memory of ts_pool_alloc(pool, bytes of that type and shape). On failure the caller keeps it. */
ts_status ts_buffer_adopt(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, void *data, ts_buffer **out);
/* Another view of the same bytes (same byte count) with its own type and shape; keeps `base` alive. */
ts_status ts_buffer_alias(ts_buffer *base, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
/* A buffer whose bytes are on a device that the host cannot read: `release(context)` frees them. */
ts_status ts_buffer_wrap_elsewhere(struct ts_device *device, ts_dtype dtype, const ts_shape *shape,
                                   ts_release_fn release, void *context, ts_buffer **out);
/* The buffer that this one is a view of, or itself. */
const ts_buffer *ts_buffer_root(const ts_buffer *buffer);
void ts_buffer_retain(ts_buffer *buffer);
void ts_buffer_release(ts_buffer *buffer); /* NULL is allowed */
/* True when the caller's reference is the only one and the memory is the pool's. */
bool ts_buffer_is_unique(const ts_buffer *buffer);

#endif
