#include "tensor/pool.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/system.h"
#include "tensor/pages.h"

#include <pthread.h>

/* Size classes. Up to 1 KB every multiple of 64; from there four to a power of
 * two, and from 2 MB eight, but whole huge pages. A class is named by the
 * power of two below it and a step: index = 8 * power + step. */
#define SMALL_POWER 10
#define HUGE_POWER 21
#define POWERS 47
#define CLASSES ((POWERS + 1) * 8)
#define LARGEST_BLOCK ((int64_t)1 << POWERS)

/* What may be kept beyond the largest `live` there was. */
#define SLACK ((int64_t)64 << 20)

/* Frees look for idle blocks this often, and give those back. */
#define TRIM_INTERVAL_MS 1000
#define TRIM_IDLE_MS 10000

/* A free block, written into itself. It stands in the list of its class, last
 * freed first since that one is warm in the cache, and in the list of all. */
typedef struct free_block {
  struct free_block *class_next, *class_prev;
  struct free_block *newer, *older;
  int64_t freed_at;
  int64_t bytes;
  int32_t class;
} free_block;

_Static_assert(sizeof(free_block) <= TS_POOL_ALIGNMENT, "a free block must hold its own links");

/* One lock for all: what is done under it takes some ten nanoseconds, and it
 * makes `live + pooled <= limit` exact. System calls are made outside. */
struct ts_pool {
  pthread_mutex_t lock;
  free_block *classes[CLASSES];
  free_block *newest, *oldest;
  int64_t high_water; /* largest `live` since the last full trim */
  int64_t trimmed_at;
  ts_pool_stats stats;
};

static int64_t class_step(int power) {
  if (power < HUGE_POWER) return (int64_t)1 << (power - 2);
  return power < HUGE_POWER + 3 ? (int64_t)TS_HUGE_PAGE : (int64_t)1 << (power - 3);
}

/* The class of a block of `size` bytes, which is rounded up to what it holds. */
static int32_t class_of(int64_t size, int64_t *out_bytes) {
  if (size <= 1 << SMALL_POWER) {
    int64_t units = size <= TS_POOL_ALIGNMENT ? 1 : (size + TS_POOL_ALIGNMENT - 1) / TS_POOL_ALIGNMENT;
    *out_bytes = units * TS_POOL_ALIGNMENT;
    return (int32_t)units; /* 1..16, far below 8 * SMALL_POWER */
  }
  int power = 63 - __builtin_clzll((uint64_t)size - 1); /* 2^power < size <= 2^(power + 1) */
  int64_t base = (int64_t)1 << power, step = class_step(power);
  int64_t steps = (size - base + step - 1) / step;
  *out_bytes = base + steps * step;
  return (int32_t)(8 * power + steps - 1); /* steps is in 1..8 */
}

/* ---- the lists; all under the lock */

static void push(ts_pool *pool, free_block *block, int64_t now) {
  free_block **head = &pool->classes[block->class];
  block->freed_at = now;
  block->class_prev = NULL;
  block->class_next = *head;
  if (*head) (*head)->class_prev = block;
  *head = block;
  block->newer = NULL;
  block->older = pool->newest;
  *(pool->newest ? &pool->newest->newer : &pool->oldest) = block;
  pool->newest = block;
  pool->stats.pooled += block->bytes;
}

static void unlink_block(ts_pool *pool, free_block *block) {
  *(block->class_prev ? &block->class_prev->class_next : &pool->classes[block->class]) = block->class_next;
  if (block->class_next) block->class_next->class_prev = block->class_prev;
  *(block->newer ? &block->newer->older : &pool->newest) = block->older;
  *(block->older ? &block->older->newer : &pool->oldest) = block->newer;
  pool->stats.pooled -= block->bytes;
}

/* Moves the oldest free block to `victims`, a list by class_next. */
static void evict_oldest(ts_pool *pool, free_block **victims) {
  free_block *block = pool->oldest;
  unlink_block(pool, block);
  block->class_next = *victims;
  *victims = block;
}

static void evict_above(ts_pool *pool, int64_t total, free_block **victims) {
  while (pool->oldest && pool->stats.live + pool->stats.pooled > total) evict_oldest(pool, victims);
}

static void evict_idle(ts_pool *pool, int64_t before, free_block **victims) {
  while (pool->oldest && pool->oldest->freed_at <= before) evict_oldest(pool, victims);
}

/* The most that live and free blocks may take together: what was once needed,
 * or a little more than what is needed now. */
static int64_t footprint_bound(const ts_pool *pool) {
  int64_t slack = pool->stats.live + SLACK;
  int64_t bound = slack > pool->high_water ? slack : pool->high_water;
  return bound < pool->stats.limit ? bound : pool->stats.limit;
}

/* Not under the lock. */
static void give_back(free_block *victims) {
  while (victims) {
    free_block *next = victims->class_next;
    ts_pages_free(victims, (size_t)victims->bytes);
    victims = next;
  }
}

/* ---- allocating */

static ts_status limit_error(int64_t size, int64_t live, int64_t limit) {
  return ts_error(TS_RESOURCE_EXHAUSTED,
                  "cannot allocate %lld bytes of tensor memory: %lld bytes are live and the limit is %lld",
                  (long long)size, (long long)live, (long long)limit);
}

static void count_live(ts_pool *pool, int64_t bytes) {
  ts_pool_stats *stats = &pool->stats;
  stats->live += bytes;
  stats->allocations++;
  if (stats->live > stats->peak) stats->peak = stats->live;
  if (stats->live > pool->high_water) pool->high_water = stats->live;
}

/* Counts `bytes` as live, and takes a free block of the class if there is one.
 * False when the limit does not allow it. */
static bool reserve(ts_pool *pool, int32_t class, int64_t bytes, free_block **out_block, free_block **victims) {
  if (bytes > pool->stats.limit - pool->stats.live) return false;
  free_block *block = pool->classes[class];
  *out_block = block;
  if (block) unlink_block(pool, block);
  count_live(pool, bytes);
  if (!block) evict_above(pool, footprint_bound(pool), victims);
  return true;
}

/* Fresh memory; when the system has none, without what the pool keeps. */
static void *fresh(ts_pool *pool, int64_t size, int64_t bytes) {
  size_t wanted = (size_t)bytes;
  if (TS_POOL_PASS_THROUGH) wanted = size ? ((size_t)size + 63) / 64 * 64 : 64;
  void *block = ts_pages_alloc(wanted);
  if (block) return block;
  ts_pool_trim(pool, 0);
  return ts_pages_alloc(wanted);
}

static void unreserve(ts_pool *pool, int64_t bytes) {
  pthread_mutex_lock(&pool->lock);
  pool->stats.live -= bytes;
  pool->stats.allocations--;
  pthread_mutex_unlock(&pool->lock);
}

ts_status ts_pool_alloc(ts_pool *pool, int64_t size, void **out) {
  *out = NULL;
  if (ts_alloc_should_fail()) return ts_error_no_memory();
  if (size < 0) return ts_error(TS_INVALID_ARGUMENT, "cannot allocate %lld bytes", (long long)size);
  int64_t bytes = INT64_MAX;
  int32_t class = size <= LARGEST_BLOCK ? class_of(size, &bytes) : 0;

  free_block *block = NULL, *victims = NULL;
  pthread_mutex_lock(&pool->lock);
  bool allowed = reserve(pool, class, bytes, &block, &victims);
  int64_t live = pool->stats.live, limit = pool->stats.limit;
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
  if (!allowed) return limit_error(size, live, limit);

  *out = block ? block : fresh(pool, size, bytes);
  if (*out) return TS_SUCCESS;
  unreserve(pool, bytes);
  return ts_error(TS_RESOURCE_EXHAUSTED, "the system has no %lld bytes for a tensor; %lld bytes are live",
                  (long long)size, (long long)(live - bytes));
}

void ts_pool_free(ts_pool *pool, void *memory, int64_t size) {
  if (!memory) return;
  int64_t bytes;
  int32_t class = class_of(size, &bytes);
  free_block *block = memory, *victims = NULL;
  if (TS_POOL_PASS_THROUGH) {
    ts_pages_free(memory, (size_t)bytes);
    block = NULL;
  } else {
    block->bytes = bytes;
    block->class = class;
  }

  int64_t now = ts_system_coarse_ms();
  pthread_mutex_lock(&pool->lock);
  pool->stats.live -= bytes;
  if (block) push(pool, block, now);
  evict_above(pool, footprint_bound(pool), &victims);
  if (now - pool->trimmed_at >= TRIM_INTERVAL_MS) {
    evict_idle(pool, now - TRIM_IDLE_MS, &victims);
    pool->trimmed_at = now;
  }
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

/* ---- the rest */

static int64_t usable_limit(int64_t limit) {
  if (limit < 0) return 0;
  return limit < LARGEST_BLOCK ? limit : LARGEST_BLOCK; /* so that no sum of sizes overflows */
}

static void pool_init(ts_pool *pool, int64_t limit) {
  ts_lock_init(&pool->lock);
  pool->stats.limit = usable_limit(limit);
  pool->trimmed_at = ts_system_coarse_ms();
}

ts_status ts_pool_create(int64_t limit, ts_pool **out) {
  *out = NULL;
  TS_TRY(TS_NEW(out));
  pool_init(*out, limit);
  return TS_SUCCESS;
}

void ts_pool_destroy(ts_pool *pool) {
  if (!pool) return;
  ts_pool_trim(pool, 0);
  pthread_mutex_destroy(&pool->lock);
  ts_free(pool);
}

static ts_pool default_pool;

static void default_pool_init(void) {
  int64_t memory = ts_system_memory();
  pool_init(&default_pool, memory / 5 * 4); /* the rest is for the VM and everybody else */
}

ts_pool *ts_pool_default(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, default_pool_init);
  return &default_pool;
}

void ts_pool_trim(ts_pool *pool, int64_t idle_ms) {
  free_block *victims = NULL;
  int64_t now = ts_system_coarse_ms();
  pthread_mutex_lock(&pool->lock);
  evict_idle(pool, idle_ms > 0 ? now - idle_ms : INT64_MAX, &victims);
  pool->high_water = pool->stats.live + pool->stats.pooled;
  pool->trimmed_at = now;
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

void ts_pool_set_limit(ts_pool *pool, int64_t limit) {
  free_block *victims = NULL;
  pthread_mutex_lock(&pool->lock);
  pool->stats.limit = usable_limit(limit);
  evict_above(pool, pool->stats.limit, &victims);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

void ts_pool_get_stats(ts_pool *pool, ts_pool_stats *out) {
  pthread_mutex_lock(&pool->lock);
  *out = pool->stats;
  pthread_mutex_unlock(&pool->lock);
}

void ts_pool_reset_peak(ts_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stats.peak = pool->stats.live;
  pthread_mutex_unlock(&pool->lock);
}
