/* Bells: a word of shared memory for each rank of a host. The rank's thread sleeps on it (a futex) until a rank that
 * has sent it something rings. Polling at intervals is either late or, where ranks share CPUs, takes their time.
 *
 * To sleep: seen = ts_bells_listen(b), look for work once more, then ts_bells_sleep(b, seen, ns), and
 * ts_bells_stop_listening(b). A ring after `listen` ends the sleep or keeps it from beginning, so no ring is lost.
 * Ranks that do not listen are not rung, which costs no system call. One thread opens and closes; the other functions
 * are for any. Where MPI has no shared memory a rank has a bell for itself only. */
#ifndef TS_COMM_BELLS_H
#define TS_COMM_BELLS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ts_bell {
  _Atomic uint32_t rings;
  _Atomic uint32_t listeners; /* threads that other ranks may wake */
  char unused[56];            /* a cache line for each rank */
} ts_bell;

typedef struct ts_bells {
  ts_bell alone;    /* without shared memory */
  ts_bell *own;     /* this rank's */
  ts_bell **others; /* by rank; NULL: none on this host */
  MPI_Comm host;    /* the ranks of this host */
  MPI_Win window;   /* MPI_WIN_NULL: no shared memory */
  int32_t ranks_here;
} ts_bells;

/* Called by all ranks of the job together; false: no memory. */
bool ts_bells_open(ts_bells *b, MPI_Comm all);
/* The same; after it only ts_bells_ring_own and sleeping are allowed. */
void ts_bells_close(ts_bells *b);

/* Whether another rank can be rung. */
bool ts_bells_reach(const ts_bells *b, int32_t rank);
void ts_bells_ring(const ts_bells *b, int32_t rank);
/* For the other threads of this process. */
void ts_bells_ring_own(const ts_bells *b);

/* Returns how often this rank was rung. */
uint32_t ts_bells_listen(const ts_bells *b);
/* The same for a listener that other ranks need not ring. */
uint32_t ts_bells_count(const ts_bells *b);
void ts_bells_stop_listening(const ts_bells *b);
/* Sleeps until a ring that `seen` does not count, for at most so long. */
void ts_bells_sleep(const ts_bells *b, uint32_t seen, int64_t ns);

#endif
