/* Memory for tensor data: freed blocks are kept for the next request of their
 * size class, because fresh pages cost more than the work done on them. Blocks
 * that had to be made of small pages, in haste, are replaced later (renewal.h).
 * Thread-safe, and small blocks that a thread has freed are its own to take
 * again: threads that use them share nothing. One pool per device;
 * ts_pool_default() is the host's. */
#ifndef TS_TENSOR_POOL_H
#define TS_TENSOR_POOL_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define TS_POOL_ALIGNMENT 64

typedef struct ts_pool ts_pool;

typedef struct ts_pool_stats {
  int64_t live;        /* bytes in blocks that are handed out */
  int64_t peak;        /* largest `live` since the last reset; exact for one thread, else to 1 MB a busy thread */
  int64_t pooled;      /* bytes in free blocks that the pool keeps, or is making to replace others */
  int64_t limit;       /* live + pooled never exceeds this, but while an allocation waits for a block to be given up */
  int64_t allocations; /* since the start */
} ts_pool_stats;

ts_status ts_pool_create(int64_t limit, ts_pool **out);
void ts_pool_destroy(ts_pool *pool); /* every block must have been freed */
ts_pool *ts_pool_default(void);      /* never NULL; made on first use, lives for ever */

/* `*out` gets at least `size` bytes aligned to TS_POOL_ALIGNMENT, not zeroed,
 * readable to the next multiple of 64 bytes. Size 0 is fine. Past the limit it
 * first gives pooled blocks back, then fails with TS_RESOURCE_EXHAUSTED and a
 * message with requested, live and limit bytes. */
ts_status ts_pool_alloc(ts_pool *pool, int64_t size, void **out);
/* `size` must be what was asked for. */
void ts_pool_free(ts_pool *pool, void *block, int64_t size);

/* Whether a caller need not wait any more. */
typedef struct ts_enough {
  bool (*is)(void *context);
  void *context;
} ts_enough;

/* For a caller who waits anyway and will then allocate these sizes at once: until it is enough, makes the pool have
 * blocks for them, filled with pages, the first TS_POOL_PREPARED that are neither small nor very large, as far as the
 * limit has room. They are no allocations to the statistics. */
#define TS_POOL_PREPARED 8
void ts_pool_prepare(ts_pool *pool, const int64_t *sizes, size_t count, const ts_enough *enough);

/* Returns pooled blocks to the system: all of them, or those idle for at least
 * `idle_ms` milliseconds. */
void ts_pool_trim(ts_pool *pool, int64_t idle_ms);
void ts_pool_set_limit(ts_pool *pool, int64_t limit);
void ts_pool_get_stats(ts_pool *pool, ts_pool_stats *out);
void ts_pool_reset_peak(ts_pool *pool);

#endif
