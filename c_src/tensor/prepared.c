#include "tensor/prepared.h"

#include "base/alloc.h"
#include "tensor/pool.h"

#include <pthread.h>
#include <string.h>

/* REFUSED: there was no memory; it is not requested again. */
typedef enum state { NOTED, BEING_MADE, READY, REFUSED } state;

struct ts_prepared {
  ts_prepared *next; /* of the same list */
  const ts_buffer *buffer;
  ts_prepared_key key;
  state state;
  int32_t uses; /* that have not ended */
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

static void free_data(ts_prepared *p, state next) {
  ts_pool_free(p->pool, p->data, p->bytes);
  p->data = NULL;
  p->state = next;
}

/* Whether some memory was freed. Copies that are freed so are not made again. */
static bool free_unused(ts_pool *pool) {
  bool some = false;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < LISTS; i++)
    for (ts_prepared *p = lists[i]; p; p = p->next) {
      if (p->state != READY || p->uses > 0 || p->pool != pool) continue;
      free_data(p, REFUSED);
      some = true;
    }
  pthread_mutex_unlock(&lock);
  return some;
}

/* Not under the lock, as the pool may ask for free_unused. */
static bool get_memory(ts_prepared *p, int64_t bytes, ts_pool *pool) {
  ts_pool_on_limit(free_unused);
  p->bytes = bytes;
  p->pool = pool;
  return leaves_room(pool, bytes) && ts_status_consume_ok(ts_pool_alloc(pool, bytes, &p->data));
}

static void set_state(ts_prepared *p, state next) {
  pthread_mutex_lock(&lock);
  p->state = next;
  pthread_mutex_unlock(&lock);
}

/* The copy, if it exists or must be made. A use of no copy is noted. */
static ts_prepared *find_or_note(ts_buffer *buffer, const ts_prepared_key *key, bool *out_make) {
  int count;
  pthread_mutex_lock(&lock);
  ts_prepared *p = find(buffer, key, &count);
  if (!p && count < MOST_OF_A_BUFFER) note(buffer, key);
  *out_make = p && p->state == NOTED;
  if (p && !*out_make && p->state != READY) p = NULL;
  if (p) p->uses++;
  if (*out_make) p->state = BEING_MADE;
  pthread_mutex_unlock(&lock);
  return p;
}

ts_prepared *ts_prepared_use(ts_buffer *buffer, const ts_prepared_key *key, int64_t bytes, ts_pool *pool,
                             bool *out_make, void **out_data) {
  *out_make = false;
  if (!atomic_load_explicit(&buffer->is_fixed, memory_order_relaxed)) return NULL;
  ts_prepared *p = find_or_note(buffer, key, out_make);
  if (*out_make && !get_memory(p, bytes, pool)) {
    ts_prepared_leave(p);
    set_state(p, REFUSED);
    *out_make = false;
    return NULL;
  }
  if (p) *out_data = p->data;
  return p;
}

void ts_prepared_made(ts_prepared *use, bool is_whole) {
  pthread_mutex_lock(&lock);
  use->state = READY;
  if (!is_whole) {
    use->uses--;
    free_data(use, NOTED);
  }
  pthread_mutex_unlock(&lock);
}

void ts_prepared_leave(ts_prepared *use) {
  pthread_mutex_lock(&lock);
  use->uses--;
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
