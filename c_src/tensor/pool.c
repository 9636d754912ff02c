/* Two levels. Shared blocks are under the pool's lock, which also makes `live + pooled <= limit` exact. In front of it
 * each thread has a thread cache (`shelf`) of the small blocks that it freed last, with a lock of its own that other
 * threads rarely take. So callers of small programs share no cache line, neither of the pool nor of a block that
 * another core has just written. The shared level counts the blocks of thread caches as out; when memory is short, the
 * thread caches are cleared. Lock order: a thread cache's, then the pool's. System calls are made outside of both. */
#include "tensor/pool.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/slots.h"
#include "base/system.h"
#include "tensor/blocks.h"
#include "tensor/pages.h"

#include <pthread.h>
#include <stdio.h>

/* How many bytes may be pooled beyond the largest `out` so far. */
#define SLACK ((int64_t)64 << 20)

/* Limits of a thread cache. Writing larger blocks costs more than fetching them from the shared level. The total is
 * about an L2 cache, so that evicted blocks have left the core's caches. */
#define SHELF_BLOCK ((int64_t)256 << 10)
#define SHELF_BYTES ((int64_t)4 << 20)

/* A thread cache reports its balance to the pool when it reaches this size. */
#define FOLD_BYTES ((int64_t)1 << 20)

/* How often frees look for idle blocks to return to the system, and their age. */
#define TRIM_INTERVAL_MS 1000
#define TRIM_IDLE_MS 60000

typedef struct shelf {
  ts_spin lock;
  _Atomic int64_t live; /* balance since the last report to the pool; other threads read it without the lock */
  int64_t peak;         /* its maximum since then */
  int64_t allocations;
  ts_blocks blocks;
  char apart[TS_SLOT_BYTES];
} shelf;

struct ts_pool {
  pthread_mutex_t lock;
  ts_blocks blocks;
  int64_t out;                            /* bytes handed out, or in a thread cache */
  int64_t high_water;                     /* largest `out` since the last full trim */
  int64_t live, peak, limit, allocations; /* without the unreported balances of thread caches */
  _Atomic int64_t trimmed_at;
  char apart[TS_SLOT_BYTES]; /* separates the fields that all threads read from the fields of each writer */
  shelf shelves[TS_SLOTS];
};

static bool is_small(int64_t bytes) { return bytes <= SHELF_BLOCK && !TS_POOL_PASS_THROUGH; }

static shelf *lock_own_shelf(ts_pool *pool) {
  shelf *s = &pool->shelves[ts_slot()];
  ts_spin_lock(&s->lock);
  return s;
}

/* ---- counting */

/* The lock of the thread cache is held, so there is one writer. */
static int64_t count(shelf *s, int64_t bytes) {
  int64_t live = atomic_load_explicit(&s->live, memory_order_relaxed) + bytes;
  atomic_store_explicit(&s->live, live, memory_order_relaxed);
  if (live > s->peak) s->peak = live;
  return live;
}

/* Reports a thread cache's balance; both locks are held. The peak may have been between two reports; for the other
 * thread caches their present balance is used. */
static void fold(ts_pool *pool, shelf *s) {
  int64_t others = 0, own = atomic_load_explicit(&s->live, memory_order_relaxed);
  for (int i = ts_slot_count(); i-- > 0;) others += atomic_load_explicit(&pool->shelves[i].live, memory_order_relaxed);
  int64_t peak = pool->live + (others - own) + s->peak;
  if (peak > pool->peak) pool->peak = peak;
  pool->live += own;
  pool->allocations += s->allocations;
  s->allocations = s->peak = 0;
  atomic_store_explicit(&s->live, 0, memory_order_relaxed);
}

static void fold_when_much(ts_pool *pool, shelf *s, int64_t live) {
  if (live > -FOLD_BYTES && live < FOLD_BYTES && s->peak < FOLD_BYTES) return;
  pthread_mutex_lock(&pool->lock);
  fold(pool, s);
  pthread_mutex_unlock(&pool->lock);
}

static void fold_all(ts_pool *pool) {
  for (int i = ts_slot_count(); i-- > 0;) {
    shelf *s = &pool->shelves[i];
    ts_spin_lock(&s->lock);
    pthread_mutex_lock(&pool->lock);
    fold(pool, s);
    pthread_mutex_unlock(&pool->lock);
    ts_spin_unlock(&s->lock);
  }
}

/* ---- eviction; victims are a list by class_next */

static int64_t evict_oldest(ts_blocks *blocks, ts_free_block **victims) {
  ts_free_block *block = ts_blocks_pop_oldest(blocks);
  block->class_next = *victims;
  *victims = block;
  return block->bytes;
}

static int64_t evict_idle(ts_blocks *blocks, int64_t before, ts_free_block **victims) {
  int64_t bytes = 0;
  while (blocks->oldest && blocks->oldest->freed_at <= before) bytes += evict_oldest(blocks, victims);
  return bytes;
}

static void evict_above(ts_pool *pool, int64_t total, ts_free_block **victims) {
  while (pool->blocks.oldest && pool->out + pool->blocks.bytes > total) evict_oldest(&pool->blocks, victims);
}

/* The bound for `out` and pooled blocks together: the high-water mark, or a little more than the present use. */
static int64_t footprint_bound(const ts_pool *pool) {
  int64_t slack = pool->out + SLACK;
  int64_t bound = slack > pool->high_water ? slack : pool->high_water;
  return bound < pool->limit ? bound : pool->limit;
}

/* Called without a lock. */
static void give_back(ts_free_block *victims) {
  while (victims) {
    ts_free_block *next = victims->class_next;
    ts_pages_free(victims, (size_t)victims->bytes);
    victims = next;
  }
}

/* Returns the blocks that were in thread caches since `before` to the system; returns their bytes. */
static int64_t clear_shelves(ts_pool *pool, int64_t before) {
  int64_t cleared = 0;
  for (int i = ts_slot_count(); i-- > 0;) {
    shelf *s = &pool->shelves[i];
    ts_free_block *victims = NULL;
    ts_spin_lock(&s->lock);
    int64_t bytes = evict_idle(&s->blocks, before, &victims);
    ts_spin_unlock(&s->lock);
    give_back(victims);
    pthread_mutex_lock(&pool->lock);
    pool->out -= bytes;
    pthread_mutex_unlock(&pool->lock);
    cleared += bytes;
  }
  return cleared;
}

static void trim_idle(ts_pool *pool, int64_t now) {
  int64_t last = atomic_load_explicit(&pool->trimmed_at, memory_order_relaxed);
  if (now - last < TRIM_INTERVAL_MS || !atomic_compare_exchange_strong(&pool->trimmed_at, &last, now)) return;
  ts_free_block *victims = NULL;
  (void)clear_shelves(pool, now - TRIM_IDLE_MS);
  pthread_mutex_lock(&pool->lock);
  evict_idle(&pool->blocks, now - TRIM_IDLE_MS, &victims);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

/* ---- allocating */

static void *take_from_shelf(ts_pool *pool, int32_t class, int64_t bytes) {
  shelf *s = lock_own_shelf(pool);
  void *block = ts_blocks_pop(&s->blocks, class);
  if (block) {
    s->allocations++;
    fold_when_much(pool, s, count(s, bytes));
  }
  ts_spin_unlock(&s->lock);
  return block;
}

/* Counts `bytes` as out and takes a free block of the class, or a part of a larger one: getting a fresh huge page from
 * the system costs more than writing fifty. The pool's lock is held. */
static ts_free_block *reserve(ts_pool *pool, int32_t class, int64_t bytes, ts_free_block **victims) {
  ts_free_block *block = ts_blocks_pop(&pool->blocks, class);
  if (!block && bytes >= (int64_t)TS_HUGE_PAGE)
    block = ts_blocks_split(&pool->blocks, class, bytes, ts_system_coarse_ms());
  pool->out += bytes;
  if (pool->out > pool->high_water) pool->high_water = pool->out;
  if (!block) evict_above(pool, footprint_bound(pool), victims);
  return block;
}

/* False when the limit does not allow it. *out_block is NULL when the caller must get fresh memory. */
static bool take_shared(ts_pool *pool, int32_t class, int64_t bytes, ts_free_block **out_block) {
  ts_free_block *victims = NULL;
  shelf *s = lock_own_shelf(pool);
  pthread_mutex_lock(&pool->lock);
  bool allowed = bytes <= pool->limit - pool->out;
  if (allowed) {
    *out_block = reserve(pool, class, bytes, &victims);
    s->allocations++;
    count(s, bytes);
    fold(pool, s);
  }
  pthread_mutex_unlock(&pool->lock);
  ts_spin_unlock(&s->lock);
  give_back(victims);
  return allowed;
}

static void untake(ts_pool *pool, int64_t bytes) {
  shelf *s = lock_own_shelf(pool);
  pthread_mutex_lock(&pool->lock);
  pool->out -= bytes;
  count(s, -bytes);
  s->allocations--;
  fold(pool, s);
  pthread_mutex_unlock(&pool->lock);
  ts_spin_unlock(&s->lock);
}

/* Gets memory from the system; if that fails, once more after the pool has returned its blocks. */
static void *fresh(ts_pool *pool, int64_t size, int64_t bytes) {
  size_t wanted = (size_t)bytes;
  if (TS_POOL_PASS_THROUGH) wanted = size ? ((size_t)size + 63) / 64 * 64 : 64;
  void *block = ts_pages_alloc(wanted);
  if (block) return block;
  ts_pool_trim(pool, 0);
  return ts_pages_alloc(wanted);
}

enum { BYTES_TEXT = 64 };

/* "123 bytes", with GiB for large sizes. */
static const char *bytes_text(int64_t bytes, char text[BYTES_TEXT]) {
  const double gib = (double)((int64_t)1 << 30);
  int used = snprintf(text, BYTES_TEXT, "%lld bytes", (long long)bytes);
  if ((double)bytes >= gib) snprintf(text + used, (size_t)(BYTES_TEXT - used), " (%.1f GiB)", (double)bytes / gib);
  return text;
}

static ts_status limit_error(ts_pool *pool, int64_t size) {
  ts_pool_stats stats;
  char wanted[BYTES_TEXT], live[BYTES_TEXT], limit[BYTES_TEXT];
  ts_pool_get_stats(pool, &stats);
  return ts_error(TS_RESOURCE_EXHAUSTED, "cannot allocate %s of tensor memory: %s are live and the limit is %s",
                  bytes_text(size, wanted), bytes_text(stats.live, live), bytes_text(stats.limit, limit));
}

static ts_status system_error(ts_pool *pool, int64_t size) {
  ts_pool_stats stats;
  char wanted[BYTES_TEXT], live[BYTES_TEXT];
  ts_pool_get_stats(pool, &stats);
  return ts_error(TS_RESOURCE_EXHAUSTED, "the system has no %s for a tensor; %s are live", bytes_text(size, wanted),
                  bytes_text(stats.live, live));
}

static bool (*_Atomic reclaim)(ts_pool *pool);

void ts_pool_on_limit(bool (*function)(ts_pool *pool)) {
  atomic_store_explicit(&reclaim, function, memory_order_release);
}

static bool reclaimed(ts_pool *pool) {
  bool (*function)(ts_pool *) = atomic_load_explicit(&reclaim, memory_order_acquire);
  return function && function(pool);
}

ts_status ts_pool_alloc(ts_pool *pool, int64_t size, void **out) {
  *out = NULL;
  if (ts_alloc_should_fail()) return ts_error_no_memory();
  if (size < 0) return ts_error(TS_INVALID_ARGUMENT, "cannot allocate %lld bytes", (long long)size);
  int64_t bytes = INT64_MAX;
  int32_t class = size <= TS_BLOCK_LARGEST ? ts_block_class(size, &bytes) : 0;
  if (is_small(bytes) && (*out = take_from_shelf(pool, class, bytes))) return TS_SUCCESS;

  ts_free_block *block = NULL;
  while (!take_shared(pool, class, bytes, &block))
    if (clear_shelves(pool, INT64_MAX) == 0 && !reclaimed(pool)) return limit_error(pool, size);
  *out = block ? block : fresh(pool, size, bytes);
  if (*out) return TS_SUCCESS;
  untake(pool, bytes);
  return system_error(pool, size);
}

/* ---- freeing */

/* Puts a block back that was out. The pool's lock is held. */
static void put_shared(ts_pool *pool, ts_free_block *block, int64_t now) {
  pool->out -= block->bytes;
  ts_blocks_push(&pool->blocks, block, now);
}

/* Moves the oldest half of a full thread cache to the shared level. */
static void spill(ts_pool *pool, shelf *s, int64_t now, ts_free_block **victims) {
  pthread_mutex_lock(&pool->lock);
  while (s->blocks.bytes > SHELF_BYTES / 2) put_shared(pool, ts_blocks_pop_oldest(&s->blocks), now);
  evict_above(pool, footprint_bound(pool), victims);
  pthread_mutex_unlock(&pool->lock);
}

static void free_small(ts_pool *pool, ts_free_block *block, int64_t now, ts_free_block **victims) {
  shelf *s = lock_own_shelf(pool);
  ts_blocks_push(&s->blocks, block, now);
  fold_when_much(pool, s, count(s, -block->bytes));
  if (s->blocks.bytes > SHELF_BYTES) spill(pool, s, now, victims);
  ts_spin_unlock(&s->lock);
}

/* `block` is NULL when the memory is not pooled. */
static void free_shared(ts_pool *pool, ts_free_block *block, int64_t bytes, int64_t now, ts_free_block **victims) {
  shelf *s = lock_own_shelf(pool);
  pthread_mutex_lock(&pool->lock);
  if (block)
    put_shared(pool, block, now);
  else
    pool->out -= bytes;
  count(s, -bytes);
  fold(pool, s);
  evict_above(pool, footprint_bound(pool), victims);
  pthread_mutex_unlock(&pool->lock);
  ts_spin_unlock(&s->lock);
}

void ts_pool_free(ts_pool *pool, void *memory, int64_t size) {
  if (!memory) return;
  int64_t bytes, now = ts_system_coarse_ms();
  int32_t class = ts_block_class(size, &bytes);
  ts_free_block *block = memory, *victims = NULL;
  if (TS_POOL_PASS_THROUGH) {
    ts_pages_free(memory, (size_t)bytes);
    block = NULL;
  } else {
    block->bytes = bytes;
    block->class = class;
  }
  if (is_small(bytes))
    free_small(pool, block, now, &victims);
  else
    free_shared(pool, block, bytes, now, &victims);
  give_back(victims);
  trim_idle(pool, now);
}

/* ---- the pool */

static int64_t usable_limit(int64_t limit) {
  if (limit < 0) return 0;
  return limit < TS_BLOCK_LARGEST ? limit : TS_BLOCK_LARGEST; /* so that no sum of sizes overflows */
}

static void pool_init(ts_pool *pool, int64_t limit) {
  ts_lock_init(&pool->lock);
  pool->limit = usable_limit(limit);
  atomic_init(&pool->trimmed_at, ts_system_coarse_ms());
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
  pool_init(&default_pool, memory / 5 * 4); /* the remainder is for the VM and other processes */
}

ts_pool *ts_pool_default(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, default_pool_init);
  return &default_pool;
}

void ts_pool_trim(ts_pool *pool, int64_t idle_ms) {
  ts_free_block *victims = NULL;
  int64_t now = ts_system_coarse_ms(), before = idle_ms > 0 ? now - idle_ms : INT64_MAX;
  (void)clear_shelves(pool, before);
  pthread_mutex_lock(&pool->lock);
  evict_idle(&pool->blocks, before, &victims);
  pool->high_water = pool->out + pool->blocks.bytes;
  pthread_mutex_unlock(&pool->lock);
  atomic_store_explicit(&pool->trimmed_at, now, memory_order_relaxed);
  give_back(victims);
}

bool ts_pool_has_free(ts_pool *pool, int64_t bytes) {
  pthread_mutex_lock(&pool->lock);
  bool has = pool->blocks.bytes >= bytes;
  pthread_mutex_unlock(&pool->lock);
  return has;
}

void ts_pool_set_limit(ts_pool *pool, int64_t limit) {
  ts_free_block *victims = NULL;
  pthread_mutex_lock(&pool->lock);
  pool->limit = usable_limit(limit);
  bool short_of_it = pool->out > pool->limit;
  pthread_mutex_unlock(&pool->lock);
  if (short_of_it) (void)clear_shelves(pool, INT64_MAX);
  pthread_mutex_lock(&pool->lock);
  evict_above(pool, pool->limit, &victims);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

/* `out` and the shared blocks together are exact, so `pooled` is their part that is not live. */
void ts_pool_get_stats(ts_pool *pool, ts_pool_stats *out) {
  fold_all(pool);
  pthread_mutex_lock(&pool->lock);
  int64_t live = pool->live < 0 ? 0 : pool->live < pool->out ? pool->live : pool->out;
  *out = (ts_pool_stats){.live = live,
                         .peak = pool->peak > live ? pool->peak : live,
                         .pooled = pool->out + pool->blocks.bytes - live,
                         .limit = pool->limit,
                         .allocations = pool->allocations};
  pthread_mutex_unlock(&pool->lock);
}

void ts_pool_reset_peak(ts_pool *pool) {
  fold_all(pool);
  pthread_mutex_lock(&pool->lock);
  pool->peak = pool->live;
  pthread_mutex_unlock(&pool->lock);
}
