/* Two levels. Blocks that everybody shares are under the pool's lock, which
 * also makes `live + pooled <= limit` exact. Before that every thread has a
 * shelf of small blocks that it freed last, under a lock of the shelf's own
 * that hardly anybody else takes: callers of small programs then share no cache
 * line, neither of the pool nor of a block that another core has just written.
 * To the shared level what lies on a shelf is still out; when memory is short
 * the shelves are cleared. Order of locks: a shelf's, then the pool's. System
 * calls are made outside of both. */
#include "tensor/pool.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "base/slots.h"
#include "base/system.h"
#include "tensor/blocks.h"
#include "tensor/pages.h"
#include "tensor/renewal.h"

#include <pthread.h>

/* What may be kept beyond the largest `out` there was. */
#define SLACK ((int64_t)64 << 20)

/* What a shelf takes: larger blocks cost more to fill than to fetch. About an L2 cache in all, so that what
 * overflows has left the core's caches. */
#define SHELF_BLOCK ((int64_t)256 << 10)
#define SHELF_BYTES ((int64_t)4 << 20)

/* A shelf tells the pool of its balance when it is this much. */
#define FOLD_BYTES ((int64_t)1 << 20)

/* Frees look for idle blocks this often, and give those back. */
#define TRIM_INTERVAL_MS 1000
#define TRIM_IDLE_MS 60000

/* What is prepared: from here on pages are not malloc's. Together one thread fills it while LLVM makes one kernel. */
#define LEAST_PREPARED ((int64_t)256 << 10)
#define MOST_PREPARED ((int64_t)32 << 20)

/* As many blocks that were made in haste are known while they are out; others are left to the system. */
#define HASTY_OUT 64

/* What a block that is made in place of a hasty one may take, as a part of the limit. */
#define RENEWAL_PART 16

typedef struct hasty_block {
  void *block;
  int32_t class;
} hasty_block;

typedef struct shelf {
  ts_spin lock;
  _Atomic int64_t live; /* balance since the pool was told last; others read it without the lock */
  int64_t peak;         /* the largest it was */
  int64_t allocations;
  ts_blocks blocks;
  char apart[TS_SLOT_BYTES];
} shelf;

struct ts_pool {
  pthread_mutex_t lock;
  ts_blocks blocks;
  int64_t out;                            /* bytes handed out, or on a shelf */
  int64_t high_water;                     /* largest `out` since the last full trim */
  int64_t live, peak, limit, allocations; /* but for what shelves have not told */
  _Atomic int64_t trimmed_at;
  ts_renewal renewal;
  int64_t renewing;      /* bytes of the block that is being made now; free ones */
  int32_t renewal_class; /* of the hasty block that was freed last; -1: it has been looked at */
  int hasty_count;
  hasty_block hasty[HASTY_OUT];
  shelf shelves[TS_SLOTS];
};

static bool is_small(int64_t bytes) { return bytes <= SHELF_BLOCK && !TS_POOL_PASS_THROUGH; }

static shelf *lock_own_shelf(ts_pool *pool) {
  shelf *s = &pool->shelves[ts_slot()];
  ts_spin_lock(&s->lock);
  return s;
}

/* ---- counting */

/* Under the shelf's lock, so there is one writer. */
static int64_t count(shelf *s, int64_t bytes) {
  int64_t live = atomic_load_explicit(&s->live, memory_order_relaxed) + bytes;
  atomic_store_explicit(&s->live, live, memory_order_relaxed);
  if (live > s->peak) s->peak = live;
  return live;
}

/* Under both locks. A peak may lie between two tellings: what the other shelves have not told is as it is now. */
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

/* ---- blocks that were made in haste; under the pool's lock */

static void remember_hasty(ts_pool *pool, void *block, int32_t class) {
  if (pool->hasty_count < HASTY_OUT) pool->hasty[pool->hasty_count++] = (hasty_block){block, class};
}

/* Whether it was one. */
static bool forget_hasty(ts_pool *pool, const void *block) {
  int i = 0;
  while (i < pool->hasty_count && pool->hasty[i].block != block) i++;
  if (i == pool->hasty_count) return false;
  pool->hasty[i] = pool->hasty[--pool->hasty_count];
  return true;
}

static bool has_hasty_out(const ts_pool *pool, int32_t class) {
  for (int i = pool->hasty_count; i-- > 0;)
    if (pool->hasty[i].class == class) return true;
  return false;
}

/* ---- letting go; victims are a list by class_next */

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

/* The most that all blocks may take together: what was once needed, or a little more than what is needed now. */
static int64_t footprint_bound(const ts_pool *pool) {
  int64_t slack = pool->out + SLACK;
  int64_t bound = slack > pool->high_water ? slack : pool->high_water;
  return bound < pool->limit ? bound : pool->limit;
}

/* Under no lock. */
static void give_back(ts_free_block *victims) {
  while (victims) {
    ts_free_block *next = victims->class_next;
    ts_pages_free(victims, (size_t)victims->bytes);
    victims = next;
  }
}

/* Gives the system what has lain on shelves since before. Returns how many bytes. */
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

/* Under the pool's lock: whether a block that is being made has to give way. */
static bool is_crowded(const ts_pool *pool) {
  return pool->renewing > 0 && pool->renewing > pool->limit - pool->out - pool->blocks.bytes;
}

/* Under the pool's lock. Counts `bytes` as out, and takes a free block of the class if there is one, or a part of a
 * larger one: where the system has to find the memory first, a fresh huge page costs more than filling fifty. */
static ts_free_block *reserve(ts_pool *pool, int32_t class, int64_t bytes, ts_free_block **victims) {
  ts_free_block *block = ts_blocks_pop(&pool->blocks, class);
  if (!block && bytes >= (int64_t)TS_HUGE_PAGE)
    block = ts_blocks_split(&pool->blocks, class, bytes, ts_system_coarse_ms());
  pool->out += bytes;
  if (pool->out > pool->high_water) pool->high_water = pool->out;
  if (block && block->hasty) remember_hasty(pool, block, class);
  if (!block) evict_above(pool, footprint_bound(pool), victims);
  return block;
}

/* False when the limit does not allow it. *out_block is NULL when the memory has to come from the system. */
static bool take_shared(ts_pool *pool, int32_t class, int64_t bytes, ts_free_block **out_block) {
  ts_free_block *victims = NULL;
  shelf *s = lock_own_shelf(pool);
  pthread_mutex_lock(&pool->lock);
  bool allowed = bytes <= pool->limit - pool->out, crowded = false;
  if (allowed) {
    *out_block = reserve(pool, class, bytes, &victims);
    crowded = is_crowded(pool);
    s->allocations++;
    count(s, bytes);
    fold(pool, s);
  }
  pthread_mutex_unlock(&pool->lock);
  ts_spin_unlock(&s->lock);
  give_back(victims);
  if (crowded) ts_renewal_interrupt(&pool->renewal);
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

/* Fresh memory; when the system has none, without what the pool keeps. */
static void *fresh(ts_pool *pool, int64_t size, int32_t class, int64_t bytes, const ts_enough *enough) {
  bool hasty;
  size_t wanted = (size_t)bytes;
  if (TS_POOL_PASS_THROUGH) wanted = size ? ((size_t)size + 63) / 64 * 64 : 64;
  void *block = ts_pages_alloc(wanted, enough, &hasty);
  if (!block) {
    ts_pool_trim(pool, 0);
    block = ts_pages_alloc(wanted, enough, &hasty);
  }
  if (!block || !hasty) return block;
  pthread_mutex_lock(&pool->lock);
  remember_hasty(pool, block, class);
  pthread_mutex_unlock(&pool->lock);
  return block;
}

static ts_status limit_error(ts_pool *pool, int64_t size) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return ts_error(TS_RESOURCE_EXHAUSTED,
                  "cannot allocate %lld bytes of tensor memory: %lld bytes are live and the limit is %lld",
                  (long long)size, (long long)stats.live, (long long)stats.limit);
}

static ts_status system_error(ts_pool *pool, int64_t size) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return ts_error(TS_RESOURCE_EXHAUSTED, "the system has no %lld bytes for a tensor; %lld bytes are live",
                  (long long)size, (long long)stats.live);
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
    if (clear_shelves(pool, INT64_MAX) == 0) return limit_error(pool, size);
  *out = block ? block : fresh(pool, size, class, bytes, NULL);
  if (*out) return TS_SUCCESS;
  untake(pool, bytes);
  return system_error(pool, size);
}

/* ---- freeing */

/* Under the pool's lock; the block is not counted as out any more. */
static void put_shared(ts_pool *pool, ts_free_block *block, int64_t now) {
  pool->out -= block->bytes;
  ts_blocks_push(&pool->blocks, block, now);
}

/* Half of a full shelf goes to everybody, the oldest blocks first. */
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

/* Under the pool's lock. */
static void put_large(ts_pool *pool, ts_free_block *block, int64_t now) {
  block->hasty = forget_hasty(pool, block);
  if (block->hasty) pool->renewal_class = block->class;
  put_shared(pool, block, now);
}

/* Without a block, one that is not kept. */
static void free_shared(ts_pool *pool, ts_free_block *block, int64_t bytes, int64_t now, ts_free_block **victims) {
  shelf *s = lock_own_shelf(pool);
  pthread_mutex_lock(&pool->lock);
  if (block)
    put_large(pool, block, now);
  else
    pool->out -= bytes;
  bool hasty = pool->renewal_class >= 0;
  count(s, -bytes);
  fold(pool, s);
  evict_above(pool, footprint_bound(pool), victims);
  pthread_mutex_unlock(&pool->lock);
  ts_spin_unlock(&s->lock);
  if (hasty) ts_renewal_request(&pool->renewal);
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
    block->hasty = false;
  }
  if (is_small(bytes))
    free_small(pool, block, now, &victims);
  else
    free_shared(pool, block, bytes, now, &victims);
  give_back(victims);
  trim_idle(pool, now);
}

/* ---- preparing */

/* A block that is counted as out, but not as live, while it is prepared. */
typedef struct prepared {
  ts_free_block *block;
  int64_t bytes;
  int32_t class;
} prepared;

static bool is_worth_preparing(int64_t size) { return size >= LEAST_PREPARED && size <= MOST_PREPARED; }

/* False when no block of its class is free, and the limit has no room for one beside all that is kept. */
static bool begin_preparing(ts_pool *pool, int64_t size, prepared *out) {
  ts_free_block *victims = NULL;
  out->class = ts_block_class(size, &out->bytes);
  out->block = NULL;
  pthread_mutex_lock(&pool->lock);
  bool allowed = pool->blocks.classes[out->class] || out->bytes <= pool->limit - pool->out - pool->blocks.bytes;
  if (allowed) out->block = reserve(pool, out->class, out->bytes, &victims);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
  return allowed;
}

static void end_preparing(ts_pool *pool, const prepared *p, int64_t now) {
  pthread_mutex_lock(&pool->lock);
  if (p->block) {
    p->block->bytes = p->bytes;
    p->block->class = p->class;
    put_large(pool, p->block, now);
  } else {
    pool->out -= p->bytes;
  }
  pthread_mutex_unlock(&pool->lock);
}

void ts_pool_prepare(ts_pool *pool, const int64_t *sizes, size_t count, const ts_enough *enough) {
  prepared blocks[TS_POOL_PREPARED];
  size_t n = 0;
  int64_t total = 0;
  for (size_t i = 0; i < count && n < TS_POOL_PREPARED && !TS_POOL_PASS_THROUGH; i++) {
    if (!is_worth_preparing(sizes[i]) || sizes[i] > MOST_PREPARED - total) continue;
    total += sizes[i];
    n += begin_preparing(pool, sizes[i], &blocks[n]);
  }
  for (size_t i = 0; i < n; i++) {
    prepared *p = &blocks[i];
    if (!p->block && !enough->is(enough->context)) p->block = fresh(pool, p->bytes, p->class, p->bytes, enough);
  }
  for (size_t i = 0; i < n; i++) end_preparing(pool, &blocks[i], ts_system_coarse_ms());
}

/* ---- replacing blocks that were made in haste; on the thread of renewals */

/* Under the pool's lock: a class that has a hasty block, a free one or, where no other is free, the one that was freed
 * last and is out again. */
static int32_t class_to_renew(ts_pool *pool) {
  int32_t last = pool->renewal_class, class = ts_blocks_hasty_class(&pool->blocks);
  pool->renewal_class = -1;
  if (class >= 0 || last < 0) return class;
  return has_hasty_out(pool, last) && !pool->blocks.classes[last] ? last : -1;
}

static int64_t begin_renewal(void *owner) {
  ts_pool *pool = owner;
  pthread_mutex_lock(&pool->lock);
  int32_t class = class_to_renew(pool);
  int64_t bytes = class < 0 ? 0 : ts_block_bytes(class);
  bool allowed = bytes <= pool->limit / RENEWAL_PART && bytes <= pool->limit - pool->out - pool->blocks.bytes;
  pool->renewing = allowed ? bytes : 0;
  pthread_mutex_unlock(&pool->lock);
  return allowed ? bytes : 0;
}

/* Under the pool's lock. Where the hasty block is in use the new one waits for the next request; where it is gone
 * nobody needs the new one. */
static void put_renewed(ts_pool *pool, ts_free_block *block, int32_t class, ts_free_block **victims) {
  ts_free_block *hasty = ts_blocks_pop_hasty(&pool->blocks, class);
  *block = (ts_free_block){.bytes = ts_block_bytes(class), .class = class};
  *victims = hasty || has_hasty_out(pool, class) ? hasty : block;
  if (*victims) (*victims)->class_next = NULL;
  if (*victims == block) return;
  ts_blocks_push(&pool->blocks, block, ts_system_coarse_ms());
  evict_above(pool, footprint_bound(pool), victims);
}

static void end_renewal(void *owner, void *block, int64_t bytes) {
  ts_pool *pool = owner;
  ts_free_block *victims = NULL;
  pthread_mutex_lock(&pool->lock);
  pool->renewing = 0;
  if (block) put_renewed(pool, block, ts_block_class(bytes, &bytes), &victims);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
}

/* ---- the rest */

static int64_t usable_limit(int64_t limit) {
  if (limit < 0) return 0;
  return limit < TS_BLOCK_LARGEST ? limit : TS_BLOCK_LARGEST; /* so that no sum of sizes overflows */
}

static void pool_init(ts_pool *pool, int64_t limit) {
  ts_lock_init(&pool->lock);
  pool->limit = usable_limit(limit);
  pool->renewal_class = -1;
  pool->renewal = (ts_renewal){.owner = pool, .begin = begin_renewal, .end = end_renewal};
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
  pool_init(&default_pool, memory / 5 * 4); /* the rest is for the VM and everybody else */
}

ts_pool *ts_pool_default(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, default_pool_init);
  return &default_pool;
}

void ts_pool_trim(ts_pool *pool, int64_t idle_ms) {
  ts_free_block *victims = NULL;
  int64_t now = ts_system_coarse_ms(), before = idle_ms > 0 ? now - idle_ms : INT64_MAX;
  if (idle_ms <= 0) ts_renewal_interrupt(&pool->renewal);
  (void)clear_shelves(pool, before);
  pthread_mutex_lock(&pool->lock);
  evict_idle(&pool->blocks, before, &victims);
  pool->high_water = pool->out + pool->blocks.bytes;
  pthread_mutex_unlock(&pool->lock);
  atomic_store_explicit(&pool->trimmed_at, now, memory_order_relaxed);
  give_back(victims);
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
  bool crowded = is_crowded(pool);
  pthread_mutex_unlock(&pool->lock);
  give_back(victims);
  if (crowded) ts_renewal_interrupt(&pool->renewal);
}

/* `out` and the shared blocks together are exact, so `pooled` is what is not live of them. */
void ts_pool_get_stats(ts_pool *pool, ts_pool_stats *out) {
  fold_all(pool);
  pthread_mutex_lock(&pool->lock);
  int64_t live = pool->live < 0 ? 0 : pool->live < pool->out ? pool->live : pool->out;
  *out = (ts_pool_stats){.live = live,
                         .peak = pool->peak > live ? pool->peak : live,
                         .pooled = pool->out + pool->blocks.bytes + pool->renewing - live,
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
