/* A group's part of the conversation of the ranks of a job: exchanges in order, each with a header about the state of
 * the rank. Posted exchanges belong to the carrier until it calls `done`; so this state may outlive its group, and then
 * ends the run on the other ranks. Used by the group's thread; only ts_exchange.done comes from another one. */
#ifndef TS_GROUP_RANKS_H
#define TS_GROUP_RANKS_H

#include "group/group.h"
#include "group/shares.h"

typedef struct ts_ranks ts_ranks;

/* The kind of the exchange that is on its way. */
typedef enum ts_phase {
  TS_PHASE_NONE,
  TS_PHASE_ROUND,  /* of a collective */
  TS_PHASE_END,    /* all partitions are done */
  TS_PHASE_FAILURE /* this rank has failed */
} ts_phase;

/* `exe` is NULL where this rank cannot begin. */
ts_status ts_ranks_create(const ts_group_options *options, const ts_executable *exe, ts_ranks **out);
/* Ends the run on all ranks, unless they know that it has ended. `status` is why, for the others; it stays the
 * caller's. `ranks` may be NULL. */
void ts_ranks_end(ts_ranks *ranks, ts_status status);

/* Notes that the run has come to a predicate or collective; all ranks must have the same notes. */
void ts_ranks_note(ts_ranks *ranks, uint64_t what);
/* Posts the first round of a collective. An error, of memory, is one of this rank. */
ts_status ts_ranks_begin(ts_ranks *ranks, const ts_collective *collective, const ts_collective_memory *memory);
void ts_ranks_post_end(ts_ranks *ranks);
/* Takes the status over; ts_ranks_take returns it. */
void ts_ranks_post_failure(ts_ranks *ranks, ts_status status);

ts_phase ts_ranks_phase(const ts_ranks *ranks);
/* True when no rank takes part in another exchange of the run. */
bool ts_ranks_over(const ts_ranks *ranks);
/* False when the exchange is not done yet: then `ready` will be called. */
bool ts_ranks_arrived(ts_ranks *ranks);
/* Takes an exchange that has arrived: success, or the common error of all ranks of the run. */
ts_status ts_ranks_take(ts_ranks *ranks);
/* Uses the blocks of a round that was taken. Then posts the next round, or else the collective is done: *out_done. */
ts_status ts_ranks_continue(ts_ranks *ranks, const ts_collective_memory *memory, const _Atomic bool *cancel,
                            bool *out_done);

#endif
