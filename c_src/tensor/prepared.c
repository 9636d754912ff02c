#include "tensor/prepared.h"

#include "base/alloc.h"
#include "tensor/pool.h"

#include <pthread.h>
#include <string.h>

typedef enum state { NOTED, CLAIMED, READY, REFUSED } state;

struct ts_prepared {
  ts_prepared *next; /* of the same list */
  const ts_buffer *buffer;
  ts_prepared_key key;
  state state;
  ts_pool *pool;
  void *data;
  int64_t bytes;
};

/* Of all buffers, since few have copies: a list in each would make the header of small ones larger. */
enum { LISTS = 256, MOST_OF_A_BUFFER = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ts_prepared *lists[LISTS];

static ts_prepared **list_of(const ts_buffer *buffer) {
  uint64_t address = (uint64_t)(uintptr_t)buffer / TS_POOL_ALIGNMENT;
  return &lists[address * UINT64_C(0x9E3779B97F4A7C15) >> 56];
}

/* NULL: there is none. `*out_count`: of the buffer. */
static ts_prepared *find(const ts_buffer *buffer, const ts_prepared_key *key, int *out_count) {
  *out_count = 0;
  for (ts_prepared *p = *list_of(buffer); p; p = p->next) {
    if (p->buffer != buffer) continue;
    if (memcmp(&p->key, key, sizeof *key) == 0) return p;
    ++*out_count;
  }
  return NULL;
}

/* Without memory the use is not noted. */
static void note(ts_buffer *buffer, const ts_prepared_key *key) {
  ts_prepared *p;
  if (!ts_status_consume_ok(TS_NEW(&p))) return;
  ts_prepared **list = list_of(buffer);
  *p = (ts_prepared){.next = *list, .buffer = buffer, .key = *key, .state = NOTED};
  *list = p;
  atomic_store_explicit(&buffer->has_prepared, true, memory_order_relaxed);
}

static bool leaves_room(ts_pool *pool, int64_t bytes) {
  ts_pool_stats stats;
  ts_pool_get_stats(pool, &stats);
  return bytes <= (stats.limit - stats.live) / 2;
}

/* A copy that does not fit once is not tried again. */
static bool claim(ts_prepared *p, int64_t bytes, ts_pool *pool) {
  p->state = REFUSED;
  if (!leaves_room(pool, bytes) || !ts_status_consume_ok(ts_pool_alloc(pool, bytes, &p->data))) return false;
  p->state = CLAIMED;
  p->bytes = bytes;
  p->pool = pool;
  return true;
}

const void *ts_prepared_find(ts_buffer *buffer, const ts_prepared_key *key, int64_t bytes, ts_pool *pool,
                             ts_prepared **out_claim, void **out_to) {
  const void *data = NULL;
  int count;
  *out_claim = NULL;
  if (!atomic_load_explicit(&buffer->is_fixed, memory_order_relaxed)) return NULL;
  pthread_mutex_lock(&lock);
  ts_prepared *p = find(buffer, key, &count);
  if (!p && count < MOST_OF_A_BUFFER)
    note(buffer, key);
  else if (p && p->state == READY)
    data = p->data;
  else if (p && p->state == NOTED && claim(p, bytes, pool)) {
    *out_claim = p;
    *out_to = p->data;
  }
  pthread_mutex_unlock(&lock);
  return data;
}

void ts_prepared_end(ts_prepared *claim, bool is_whole) {
  pthread_mutex_lock(&lock);
  claim->state = is_whole ? READY : NOTED;
  if (!is_whole) ts_pool_free(claim->pool, claim->data, claim->bytes);
  pthread_mutex_unlock(&lock);
}

static void free_one(ts_prepared *p) {
  if (p->state == READY) ts_pool_free(p->pool, p->data, p->bytes);
  ts_free(p);
}

void ts_prepared_forget(ts_buffer *buffer) {
  if (!atomic_load_explicit(&buffer->has_prepared, memory_order_relaxed)) return;
  pthread_mutex_lock(&lock);
  for (ts_prepared **at = list_of(buffer); *at;) {
    ts_prepared *p = *at;
    if (p->buffer == buffer)
      *at = p->next, free_one(p);
    else
      at = &p->next;
  }
  pthread_mutex_unlock(&lock);
  atomic_store_explicit(&buffer->has_prepared, false, memory_order_relaxed);
}
