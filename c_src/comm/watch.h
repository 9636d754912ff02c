/* Ends the process where a call of MPI does not return. Open MPI reads the messages of a host's ranks from a queue in
 * shared memory. Where the writer was killed in the middle of an entry, the reader waits for the rest of the entry, and
 * computes, for ever. It may be the thread of the only scheduler of a VM, so nothing else in the process would find it.
 * MPI still uses the memory of its requests then, so no error can be returned. */
#ifndef TS_COMM_WATCH_H
#define TS_COMM_WATCH_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct ts_watch {
  _Atomic uint32_t passed; /* into calls and out of them: odd in a call */
  _Atomic uint32_t over;
  int64_t period_ns;
} ts_watch;

/* Starts a thread that ends the process when a call has taken three times `patience_ns`, and 4 s at least; 0: never.
 * The watch lives as long as the process. */
void ts_watch_start(ts_watch *watch, int64_t patience_ns);

/* The thread ends; by any thread, at any time. */
void ts_watch_stop(ts_watch *watch);

/* Before a call, and after it; by one thread at a time. */
static inline void ts_watch_pass(ts_watch *watch) {
  uint32_t passed = atomic_load_explicit(&watch->passed, memory_order_relaxed);
  atomic_store_explicit(&watch->passed, passed + 1, memory_order_relaxed);
}

#endif
