/* What every thread has its own of, so that hot paths write no cache line that
 * another thread writes. A thread gets a slot when it first asks for one and
 * keeps it; threads beyond TS_SLOTS share, so what is in a slot is atomic or
 * under a lock, which is nearly always free. Thread-safe. */
#ifndef TS_BASE_SLOTS_H
#define TS_BASE_SLOTS_H

#include <stdatomic.h>
#include <stdint.h>

enum { TS_SLOTS = 64, TS_SLOT_BYTES = 128 }; /* two cache lines: processors fetch them in pairs */

int ts_slot(void);       /* of the calling thread, below ts_slot_count() */
int ts_slot_count(void); /* slots that have been given out, at most TS_SLOTS */

/* A counter that many write and few read. All zeros is a good one. */
typedef struct ts_counter {
  struct {
    _Atomic int64_t value;
    char apart[TS_SLOT_BYTES - sizeof(int64_t)];
  } slots[TS_SLOTS];
} ts_counter;

int64_t ts_counter_add(ts_counter *counter, int64_t n); /* the slot's new value */
int64_t ts_counter_sum(ts_counter *counter);            /* exact when nobody adds meanwhile */

#endif
