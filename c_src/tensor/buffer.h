/* A buffer is refcounted storage with a type and a shape: row-major, dense. It
 * owns pool memory, or keeps alive something else that owns the bytes (a BEAM
 * binary, a mapping). Retain and release are thread-safe; the contents belong
 * to whoever holds the only reference, else they are read-only. */
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
  bool together; /* header and data are one block of the pool */
  ts_shape shape;
  void *data; /* aligned to TS_POOL_ALIGNMENT when it is the pool's, else to the element */
  int64_t bytes;
  ts_pool *pool;         /* whose memory it is, or NULL */
  ts_release_fn release; /* called once with `context` when the last reference goes, if not NULL */
  void *context;
} ts_buffer;

/* Contents are undefined. Release with ts_buffer_release. */
ts_status ts_buffer_create(ts_pool *pool, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
/* Wraps memory that `release(context)` gives back. On failure nothing is taken over. */
ts_status ts_buffer_wrap(ts_dtype dtype, const ts_shape *shape, void *data, ts_release_fn release, void *context,
                         ts_buffer **out);
/* Another view of the same bytes (same byte count) with its own type and shape; keeps `base` alive. */
ts_status ts_buffer_alias(ts_buffer *base, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
void ts_buffer_retain(ts_buffer *buffer);
void ts_buffer_release(ts_buffer *buffer); /* NULL is fine */
/* True when the caller's reference is the only one and the memory is the pool's. */
bool ts_buffer_is_unique(const ts_buffer *buffer);

#endif
