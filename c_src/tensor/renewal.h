/* Blocks that were made of small pages in haste (pages.h) are replaced by ones
 * of huge pages when nobody waits for them: one thread for the process makes
 * one block at a time, page by page, and rests where others need the CPUs.
 * Thread-safe. Neither call may be made under a lock that `begin` or `end`
 * takes. The owner frees what `end` gave it, and keeps its renewal until it has
 * interrupted it. */
#ifndef TS_TENSOR_RENEWAL_H
#define TS_TENSOR_RENEWAL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ts_renewal {
  void *owner;
  /* The bytes of a block to make, a multiple of TS_HUGE_PAGE; 0 when there is none to be made. On the thread. */
  int64_t (*begin)(void *owner);
  /* What became of it: NULL when it was interrupted, or the system has no memory. On the thread. */
  void (*end)(void *owner, void *block, int64_t bytes);
  struct ts_renewal *next; /* of those that wait */
  bool waits;
} ts_renewal;

/* Some time later `begin` and `end` are called in turn, until `begin` gives 0. */
void ts_renewal_request(ts_renewal *renewal);
/* Takes a request back. When a block is being made, waits until it is given up: that is one huge page's time. */
void ts_renewal_interrupt(ts_renewal *renewal);

#endif
