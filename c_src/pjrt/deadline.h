/* Deadlines of operations on plugins of this process. What a device does here cannot be ended, since it may write to
 * memory later. So an operation whose deadline has passed is *late*: its caller has an error, and the operation
 * continues by itself. It uses no memory of the caller's, and keeps its own memory until the plugin has ended it.
 * Thread-safe. */
#ifndef TS_PJRT_DEADLINE_H
#define TS_PJRT_DEADLINE_H

#include "device/platform.h"

/* A client refuses operations while it has so many late ones: each holds memory, and maybe a thread. */
enum { PJ_MOST_LATE = 16 };

/* How long an operation may take. */
typedef struct pj_limit {
  int64_t ms;         /* 0: without a deadline */
  const char *option; /* the client's option that sets the milliseconds: "timeout" */
  const char *what;   /* the operation: "the run" */
  _Atomic int *late;  /* counts the late operations of a client */
} pj_limit;

/* Of an operation: a field of it. */
typedef struct pj_deadline {
  struct pj_deadline *next, **at; /* `at` is NULL outside of the list */
  int64_t at_ns;
  pj_limit limit;
  bool is_late; /* the caller has its answer */
  ts_done done;
} pj_deadline;

/* Begins to count the milliseconds. `done` is called by the deadline, or by the caller after pj_deadline_end(). The
 * limit's `late` stays valid until pj_deadline_end(). */
ts_status pj_deadline_begin(pj_deadline *deadline, const pj_limit *limit, ts_done done);
static inline bool pj_has_deadline(const pj_deadline *deadline) { return deadline->limit.ms > 0; }
/* Gives a part of an operation a limit of its own; the earlier of both deadlines holds until the part's end. For an
 * operation that uses no memory of its caller's. `whole` keeps the operation's deadline meanwhile. */
ts_status pj_deadline_begin_part(pj_deadline *deadline, const pj_limit *limit, pj_deadline *whole);
void pj_deadline_end_part(pj_deadline *deadline, const pj_deadline *whole);
/* An error if the deadline has passed: an operation that waited for a thread until then does not begin its work. */
ts_status pj_deadline_check(pj_deadline *deadline);
/* At the end of the operation. True: the caller waits for its answer, and its memory is valid. False: it has had an
 * error. */
bool pj_deadline_end(pj_deadline *deadline);

#endif
