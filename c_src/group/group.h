/* The executions of the partitions that this process has, of one executable, under one control. A group runs every
 * partition up to its next collective (or a predicate of control flow with collectives), as tasks of the pool. Then it
 * checks that all partitions have reached the same collective, computes it, and continues. Between two calls it holds
 * no thread. One thread at a time may use a group; any number of groups may run one executable. */
#ifndef TS_GROUP_GROUP_H
#define TS_GROUP_GROUP_H

#include "exec/executable.h"
#include "group/carrier.h"

typedef struct ts_group ts_group;

typedef struct ts_group_options {
  const ts_run_control *control; /* may be NULL */
  int threads;                   /* of all partitions together, at most; 0: all */
  ts_bits donated;               /* of the arguments of all partitions, in the order of `args`: as in ts_run_options */
  ts_pool *pool;                 /* NULL: the default */
  struct ts_profile *profile;    /* as in ts_run_options */
  /* Called by another thread once a group that waits may be advanced; it does not use the group. Not after
   * ts_group_end has begun. NULL, without a carrier: the group does not wait, but calls foreign code itself. */
  void (*ready)(void *context);
  void *context;
  struct ts_device *const *devices; /* of the results of each partition here; NULL: none */
  ts_carrier *carrier;              /* NULL: this process has all partitions */
  /* With a carrier: */
  uint64_t run;       /* the number of the run, the same on all ranks and for no other run of the job */
  int64_t timeout_ns; /* how long each exchange may take; 0: for ever */
  int64_t meet_ns;    /* how long the first may take; 0: as each */
  uint64_t program;   /* fingerprint of the program besides the executable; must match on all ranks; 0: nothing */
  const char *name;   /* name of the program, for errors of ranks that run different programs; copied. NULL: nothing */
} ts_group_options;

/* The ranks of a job run groups of one program. An error of any rank, also of ts_group_create, or the end of a group
 * that is not done, ends the groups of all ranks with that error, at their next exchange. A rank is done when all are.
 */

/* `args` has the arguments of the first partition, then of the second, and so on, without the coordinates: the group
 * provides them. Their types and shapes are checked, in every partition. They, the options' pointers and the executable
 * must live until ts_group_end. A donated buffer is no argument of another partition. */
ts_status ts_group_create(const ts_executable *executable, ts_buffer *const *args, size_t args_of_each,
                          const ts_group_options *options, ts_group **out);
/* Stands for a group of this rank if it cannot begin: the run ends on all ranks with this error, which stays the
 * caller's. Others get as much of the text as a header has. An error, of memory, leaves them waiting. */
ts_status ts_group_refuse(ts_carrier *carrier, uint64_t run, ts_status why);
/* Starts or resumes the group: until TS_RUN_DONE, TS_RUN_PAUSED when its control asks for that, or TS_RUN_WAITING. In
 * the last case `ready` (if not NULL) will be called once, and only then may the group be advanced again. After an
 * error (of the first failed partition) the group can only be ended. */
ts_status ts_group_advance(ts_group *group, ts_run_state *out_state);
/* Frees the group. `out_results`, after TS_RUN_DONE, gets one reference to each result, in the order of `args`; NULL
 * abandons the group. On failure no result is returned and no argument is taken. `group` may be NULL. */
ts_status ts_group_end(ts_group *group, ts_buffer **out_results);

#endif
