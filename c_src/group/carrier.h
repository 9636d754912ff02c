/* A carrier moves bytes between the ranks of a job; it adds nothing. A job has R ranks, numbered from 0, each a process
 * (in tests: a group of this process). Of a program with P partitions, R divides P and rank r runs the partitions
 * [r P / R, (r + 1) P / R) as one group (group/group.h). The group decides about the blocks, and does the arithmetic.
 *
 * The unit is an *exchange*. Every rank of the job takes part in it once: each sends its header to all others, and a
 * block of bytes to some. It works like MPI_Iallgather of the headers followed by MPI_Ialltoallv of the blocks:
 *
 *     1. headers are exchanged;
 *     2. if ts_carrier_check() accepts them, blocks are exchanged, then the exchange is done with success. All ranks
 *        see the same headers, so all come to the same decision;
 *     3. else no block is moved, and the exchange is done with success, too: the group reads the headers and fails.
 *
 * A carrier may send both in one message, if it drops the blocks of step 3. If the headers are accepted, the block from
 * rank a to b has the length that b expects. Of a failed rank (its header's `code` is not TS_OK) all blocks are empty,
 * while other ranks still expect theirs: so step 2 has to wait for all headers.
 *
 * Ownership: the exchange and its blocks belong to the group, and stay valid from `post` until `done` was called. A
 * carrier outlives its groups, and may be called by `done`. Waiting: `post` hands the exchange over; its thread may
 * work for the carrier for the time that it gives, until the exchange is done at most. `done` is called exactly once
 * for each posted exchange, from any thread, also within `post`; exchanges posted by `done` give no time. A group has
 * one exchange at a time. Several groups may use one carrier at once. Exchanges of one run have the same `header.run`.
 * Their order is the order of posting, which `header.sequence` counts from 0. A carrier that can keep only one run at a
 * time must say so where it is made; its caller then runs one group at a time.
 *
 * An exchange that is not complete at its deadline is done with an error that names a rank that did not answer. Then,
 * and after any other error of the carrier (a lost connection), the job is broken: blocks of the exchange may be
 * written no longer, and later exchanges are done with an error at once. */
#ifndef TS_GROUP_CARRIER_H
#define TS_GROUP_CARRIER_H

#include "base/status.h"

#include <stdint.h>

enum { TS_CARRIER_TEXT = 88 };

/* Has the same size and layout on all ranks of a job: their machines have one byte order. */
typedef struct ts_carrier_header {
  uint64_t run;               /* the number of the run, which its ranks agree on; no two runs of a job have the same */
  uint64_t path;              /* hash of the collectives and predicates of the run so far, and of its program's */
  uint32_t sequence;          /* of the exchange within the run */
  uint32_t code;              /* ts_code: not TS_OK when the rank has failed or was cancelled */
  char text[TS_CARRIER_TEXT]; /* the beginning of the error's message, or of the program's name; with a 0 at the end */
} ts_carrier_header;

_Static_assert(sizeof(ts_carrier_header) == 112, "no padding");

/* A block for another rank, or from one: at least one byte. */
typedef struct ts_carrier_block {
  int32_t rank;
  int64_t at, bytes; /* from where on, and how many */
} ts_carrier_block;

typedef struct ts_exchange {
  ts_carrier_header header; /* this rank's */
  const char *send;
  const ts_carrier_block *sends; /* in the order of their ranks, one for a rank at most; none for this rank */
  char *receive;
  const ts_carrier_block *receives;
  int32_t send_count, receive_count;
  /* Of all ranks, this rank's too. The carrier has them, from before it calls `done` with success until that returns.
   */
  const ts_carrier_header *headers;
  int64_t deadline_ns; /* on the clock of ts_system_ns(); INT64_MAX: none */
  /* Called by the carrier when the exchange is done; takes `status` over. The exchange may be freed or posted again by
   * it. It does little: it has the group resumed by another thread. */
  void (*done)(struct ts_exchange *self, ts_status status);
  void *context; /* the group's */
  void *carrier; /* the carrier may keep something of its own here until `done` */
} ts_exchange;

typedef struct ts_carrier {
  int32_t rank, ranks;
  const int32_t *hosts; /* the number of the host of each rank; NULL: all ranks are on one, or that is not known */
  /* `help_ns`: how long this thread may work for the carrier; 0: it returns at once. */
  void (*post)(struct ts_carrier *self, ts_exchange *exchange, int64_t help_ns);
  void *context;
  _Atomic int32_t groups; /* of this rank that use it: the groups count themselves */
} ts_carrier;

/* TS_SUCCESS when the headers of all ranks belong to the same exchange of a run that no rank has failed: then the
 * blocks are moved. Otherwise the common error of all ranks of the run. It is the error of the first failed rank, with
 * its code and text, or else names two ranks that are at different steps of the program. Pure. */
ts_status ts_carrier_check(const ts_carrier_header *headers, int32_t ranks);
/* The same question without making an error. */
bool ts_carrier_agrees(const ts_carrier_header *headers, int32_t ranks);

#endif
