/* Copies of a buffer's bytes in an order that a routine reads faster: the weights of a product, packed. A copy that is
 * asked for once is only noted, so a buffer that one run reads costs nothing more; with the second use it is made. It
 * lives as long as the buffer, and all programs share it. Thread-safe. */
#ifndef TS_TENSOR_PREPARED_H
#define TS_TENSOR_PREPARED_H

#include "tensor/buffer.h"

/* The order of a copy: equal ones have equal words. */
typedef struct ts_prepared_key {
  int64_t words[8];
} ts_prepared_key;

typedef struct ts_prepared ts_prepared;

/* A use of the copy, or NULL without one. If `*out_make` is set, the caller must make the copy: it writes `bytes` bytes
 * at `*out_data`, and calls ts_prepared_made. Buffers whose bytes may change have no copies. A copy takes at most half
 * of the memory that the pool's limit leaves. Where the limit is reached, copies that are not in use are freed. */
ts_prepared *ts_prepared_use(ts_buffer *buffer, const ts_prepared_key *key, int64_t bytes, ts_pool *pool,
                             bool *out_make, void **out_data);
/* Without `is_whole` that ends the use, and a later one makes the copy. */
void ts_prepared_made(ts_prepared *use, bool is_whole);
void ts_prepared_leave(ts_prepared *use);
/* Frees the copies of a buffer: they must not be in use. */
void ts_prepared_forget(ts_buffer *buffer);

#endif
