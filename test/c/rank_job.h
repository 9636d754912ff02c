/* Ranks for tests: groups of this process, with a carrier that copies. Fails with Check where ranks disagree about
 * their blocks. A network and its jobs belong to one test. */
#ifndef TS_TEST_RANK_JOB_H
#define TS_TEST_RANK_JOB_H

#include "group/group.h"
#include "shard_run.h"

#include <pthread.h>

enum { MOST_RANKS = 4096 };

/* An exchange of a run: it is complete when all ranks have posted. */
typedef struct network {
  pthread_mutex_t lock;
  int32_t ranks, lost; /* lost: the rank whose next exchange is dropped; -1 */
  int32_t waiting;     /* exchanges that were posted */
  ts_exchange *posted[MOST_RANKS];
  ts_carrier_header headers[MOST_RANKS];
  ts_carrier carriers[MOST_RANKS];
  int32_t hosts[MOST_RANKS];
  int64_t exchanges, blocks; /* blocks: sent and not wanted; 0 in the end */
  bool broken;
} network;

/* With `per_host` ranks on each host; 0: hosts are not known. */
void open_network(network *n, int32_t ranks, int32_t per_host);
/* No exchange is left when all groups have ended. */
void close_network(network *n);

/* The ranks of a program. */
typedef struct job {
  network net;
  const ts_executable *exe;
  ts_group *groups[MOST_RANKS];
  ts_status failed[MOST_RANKS];
  ts_run_state states[MOST_RANKS];
  ts_run_control controls[MOST_RANKS];
  tensors results;
  size_t results_each;      /* of a partition */
  int32_t partitions, each; /* each: partitions of a rank */
  int64_t timeout_ns, meet_ns;
  const char *refusals[MOST_RANKS], *names[MOST_RANKS];
  uint64_t programs[MOST_RANKS];
} job;

void open_job_on(job *j, const ts_executable *exe, int32_t ranks, int32_t per_host);
void open_job(job *j, const ts_executable *exe, int32_t ranks);
/* Creates a rank's group, with its part of the arguments of all partitions. */
void create_rank(job *j, const tensors *args, int32_t rank);
bool is_over(const job *j, int32_t rank);
void step_rank(job *j, int32_t rank);
/* Steps the ranks in turn until all have ended. */
void run_job(job *j);
/* All ranks have ended with this error. */
void check_failed(job *j, ts_code code, const char *message);
void close_job(job *j);

#endif
