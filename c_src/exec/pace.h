/* The pace of a program: what its runs have cost, where the next one runs, and on how many threads. A run of 10 to 500
 * us is so short that a switch to a dirty scheduler, or a worker that has to wake up, may cost more than the work, and
 * estimates are wrong by a factor of ten where operands lie in the caches. So both are decided by measured time:
 *
 * - Ways. A run is on one thread, or on all of its threads. The second way has two costs, since a worker that is awake
 *   joins in a microsecond, and one that sleeps in 50 and more. Each has its own measured time: a mean that falls fast,
 *   rises slowly, and takes no sample for more than twice itself, since other processes interrupt runs.
 * - Trials. A turn is 4 to 32 runs, about 400 us, because only its first runs find workers asleep. The first four turns
 *   have all threads, one thread, all threads, one thread. The first run follows the estimate. Later runs take the way
 *   that is fastest now. After 16 turns, then 32, and so on up to 1024, there is a turn of the other way.
 * - Back to back. Workers are woken although that makes a run slower, if eight runs have followed each other within 20
 *   us and the next eight, with workers awake, would make up for it.
 * - Place. A program stays on the scheduler of its caller if it has taken at most 200 us on one thread: a fifth of the
 *   time that the VM allows. Until that is known, the estimate decides. Some never stay by their measured time: those
 *   whose time depends on values (sorts, eigenvalues, plugins), unless it is known to be short for all values. A run
 * that takes much memory stays by it while the pool has as much to spare, as the system may take long to find fresh
 * pages. When a program that stays has taken more than 500 us three times within a few runs, its next 1024 runs leave.
 *
 * A program with native loops (native.c) has a pace, although its runs may differ. A run that does not end within a
 * few milliseconds stops at the head of a loop, leaves its caller's scheduler, and counts as a long run. Programs
 * with other loops of unknown length, branches, callbacks and collectives have none. A program whose
 * estimate is below 5 us has none either, since two readings of the clock take 50 ns, nor one above 20 ms. Results do
 * not depend on the number of threads.
 *
 * Decisions depend on the sequence of calls of ts_pace_choose and ts_pace_note alone. A pace is a heuristic's memory:
 * threads that use one at once may lose updates of each other. In a steady state nothing is written but the count of
 * runs, and of programs that give their threads nothing to do not even that. */
#ifndef TS_EXEC_PACE_H
#define TS_EXEC_PACE_H

#include "base/status.h"
#include "tensor/pool.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum ts_pace_way {
  TS_PACE_ALONE,  /* one thread */
  TS_PACE_WAKING, /* all threads; a worker has to be woken */
  TS_PACE_JOINED, /* all threads; the workers are awake, since they had work a few microseconds ago */
  TS_PACE_WAYS
} ts_pace_way;

/* What is known before the first run. */
typedef struct ts_pace_guess {
  int64_t cost_ns; /* the estimate, on one thread */
  bool is_short;   /* by that estimate it stays on the caller's scheduler */
  bool is_steady;  /* its time depends on its shapes alone, or is short for all values: a measured time may decide that
                      it stays */
  bool is_alone;   /* it gives other threads nothing to do */
  int64_t memory;  /* bytes that a run takes of the pool, if the system may take long to find them; else 0 */
} ts_pace_guess;

typedef struct ts_pace ts_pace;

ts_status ts_pace_create(const ts_pace_guess *guess, ts_pace **out);
void ts_pace_destroy(ts_pace *pace); /* NULL is allowed */

/* A run, from its start to its end, in ns of one clock. */
typedef struct ts_pace_run {
  ts_pace_way way;
  bool shared; /* it had work for other threads */
  int64_t began, ended;
} ts_pace_run;

/* The way of a run that begins now; `awake`: no worker would have to be woken. */
ts_pace_way ts_pace_choose(ts_pace *pace, bool awake, int64_t now);
void ts_pace_note(ts_pace *pace, const ts_pace_run *run);
/* The run was stopped before its end, and has to leave its caller's scheduler. */
void ts_pace_note_stop(ts_pace *pace);

/* Whether the next run stays on the caller's scheduler, with memory of this pool; NULL: a pool with enough free memory.
 */
bool ts_pace_stays(const ts_pace *pace, ts_pool *pool);
/* The measured time of a way; 0: none yet. */
int64_t ts_pace_measured(const ts_pace *pace, ts_pace_way way);
/* The time on one thread: measured, or else estimated. */
int64_t ts_pace_cost_ns(const ts_pace *pace);

#endif
