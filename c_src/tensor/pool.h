/* Memory for tensor data: freed blocks are kept for the next request of their size class, because fresh pages cost more
 * than the work done on them. Thread-safe. Small blocks that a thread has freed are in its thread cache and are reused
 * by that thread first, so threads that use small blocks share no cache line. ts_pool_default() is the host's; a
 * client with a limit of its own has another (device/device.h). */
#ifndef TS_TENSOR_POOL_H
#define TS_TENSOR_POOL_H

#include "base/status.h"

#include <stdint.h>

#define TS_POOL_ALIGNMENT 64
/* A multiple of the alignment: after this number of bytes, a block has another aligned address. */
static inline int64_t ts_pool_padded(int64_t bytes) {
  return (bytes + TS_POOL_ALIGNMENT - 1) & -(int64_t)TS_POOL_ALIGNMENT;
}

typedef struct ts_pool ts_pool;

typedef struct ts_pool_stats {
  int64_t live;        /* bytes in blocks that are handed out */
  int64_t peak;        /* largest `live` since the last reset; exact for one thread, else to 1 MB a busy thread */
  int64_t pooled;      /* bytes in free blocks that the pool keeps */
  int64_t limit;       /* live + pooled never exceeds this */
  int64_t allocations; /* since the start */
} ts_pool_stats;

ts_status ts_pool_create(int64_t limit, ts_pool **out);
void ts_pool_destroy(ts_pool *pool); /* every block must have been freed */
ts_pool *ts_pool_default(void);      /* never NULL; created on first use, never destroyed */

/* `*out` gets at least `size` bytes aligned to TS_POOL_ALIGNMENT, not zeroed, readable to the next multiple of 64
 * bytes. Size 0 is allowed. When the limit is reached, pooled blocks are returned to the system first; then it fails
 * with TS_RESOURCE_EXHAUSTED and a message with requested, live and limit bytes. */
ts_status ts_pool_alloc(ts_pool *pool, int64_t size, void **out);
/* Who keeps memory of pools that may be freed: called where the limit of a pool is reached, without locks; true: some
 * of the pool's was freed. One function for the process. */
void ts_pool_on_limit(bool (*reclaim)(ts_pool *pool));
/* `size` must be the size of the request. */
void ts_pool_free(ts_pool *pool, void *block, int64_t size);

/* Whether the free blocks that all threads share have so many bytes. It is a hint: another thread may take them, and
 * none of them need have the size of a request. */
bool ts_pool_has_free(ts_pool *pool, int64_t bytes);

/* Returns pooled blocks to the system: all of them, or those idle for at least
 * `idle_ms` milliseconds. */
void ts_pool_trim(ts_pool *pool, int64_t idle_ms);
void ts_pool_set_limit(ts_pool *pool, int64_t limit);
void ts_pool_get_stats(ts_pool *pool, ts_pool_stats *out);
void ts_pool_reset_peak(ts_pool *pool);

#endif
