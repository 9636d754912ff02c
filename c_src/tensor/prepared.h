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

/* The copy, readable while the buffer lives, or NULL: there is none. Then `*out_claim` is NULL, or the caller makes the
 * copy: it writes `bytes` bytes at `*out_to`, and calls ts_prepared_end. Buffers whose bytes may change have none, nor
 * has the pool a copy that takes more than half of what its limit leaves. */
const void *ts_prepared_find(ts_buffer *buffer, const ts_prepared_key *key, int64_t bytes, ts_pool *pool,
                             ts_prepared **out_claim, void **out_to);
/* Without `is_whole` a later use makes the copy. */
void ts_prepared_end(ts_prepared *claim, bool is_whole);
/* Frees the copies of a buffer that no run reads. */
void ts_prepared_forget(ts_buffer *buffer);

#endif
