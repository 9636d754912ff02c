/* Long work checks a cancel flag at least every few milliseconds. Reading the flag costs nothing, and a thread that
 * sets it does not wait. */
#ifndef TS_BASE_CANCEL_H
#define TS_BASE_CANCEL_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How other threads control a run. Generated code reads both flags in one load. */
typedef struct ts_run_control {
  _Alignas(2) _Atomic bool cancel; /* ends the run with TS_CANCELLED */
  _Atomic bool pause; /* a run that is advanced in slices returns before it is complete; others ignore it */
} ts_run_control;

/* A NULL flag is never set. */
static inline bool ts_cancelled(const _Atomic bool *cancel) {
  return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/* TS_CANCELLED with a message about `what`, if the flag is set. */
static inline ts_status ts_check_cancelled(const _Atomic bool *cancel, const char *what) {
  return ts_cancelled(cancel) ? ts_error(TS_CANCELLED, "%s was cancelled", what) : TS_SUCCESS;
}

/* Copies in pieces, and stops when it is cancelled. */
static inline void ts_copy_bytes(void *to, const void *from, int64_t bytes, const _Atomic bool *cancel) {
  const int64_t piece = INT64_C(16) << 20;
  if (to == from) return;
  for (int64_t at = 0; at < bytes && !ts_cancelled(cancel); at += piece)
    memcpy((char *)to + at, (const char *)from + at, (size_t)(bytes - at < piece ? bytes - at : piece));
}

#endif
