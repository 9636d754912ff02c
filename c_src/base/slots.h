/* Per-thread data for hot paths, so that they write no cache line that another thread writes. A thread gets a slot on
 * first use and keeps it. The first threads have a slot of their own and need no atomic read-modify-write there; later
 * ones share, so the data of a slot is atomic or under a lock (nearly always free). Thread-safe. */
#ifndef TS_BASE_SLOTS_H
#define TS_BASE_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Two cache lines each, since processors fetch them in pairs. Each slot below TS_OWN_SLOTS belongs to one thread. */
enum { TS_SLOTS = 64, TS_OWN_SLOTS = 48, TS_SLOT_BYTES = 128 };

/* Of a few words that each call reads: they lie in the static block of thread-local memory, so that reading one is one
 * load. Other thread-local variables of a shared object are found by a function. The block has little room. */
#define TS_STATIC_LOCAL __attribute__((tls_model("initial-exec")))

/* The thread's slot + 1; 0 without a slot. */
extern _Thread_local int ts_slot_mark TS_STATIC_LOCAL __attribute__((visibility("hidden")));

int ts_slot_new(void);
/* The calling thread's slot, below ts_slot_count(). */
static inline int ts_slot(void) { return ts_slot_mark ? ts_slot_mark - 1 : ts_slot_new(); }
int ts_slot_count(void); /* slots in use, at most TS_SLOTS */

/* A counter with many writers and few readers. Zero-initialized is valid. */
typedef struct ts_counter {
  struct {
    _Atomic int64_t value;
    char apart[TS_SLOT_BYTES - sizeof(int64_t)];
  } slots[TS_SLOTS];
} ts_counter;

/* Returns the slot's new value. */
static inline int64_t ts_counter_add(ts_counter *counter, int64_t n) {
  int slot = ts_slot();
  _Atomic int64_t *value = &counter->slots[slot].value;
  if (slot >= TS_OWN_SLOTS) return atomic_fetch_add_explicit(value, n, memory_order_relaxed) + n;
  n += atomic_load_explicit(value, memory_order_relaxed);
  atomic_store_explicit(value, n, memory_order_relaxed);
  return n;
}

int64_t ts_counter_sum(ts_counter *counter); /* exact when no other thread adds meanwhile */

#endif
