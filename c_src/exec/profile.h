/* Measured times of the steps of runs. A run with a profile adds the time of each step, and the number of threads that
 * worked on it. A run without a profile tests a pointer for each step. The memory of a profile is bounded. It counts
 * the times that have no room. A profile has a reference to each executable that it has seen. Thread-safe, except for
 * ts_measure, which belongs to its run. */
#ifndef TS_EXEC_PROFILE_H
#define TS_EXEC_PROFILE_H

#include "base/parallel.h"
#include "base/places.h"
#include "exec/executable.h"

#include <stdint.h>

typedef struct ts_profile ts_profile;
struct ts_step;

/* `most_events`: how many times of steps are kept one by one. `outer` gets all that this one gets; may be NULL. */
ts_status ts_profile_create(size_t most_events, ts_profile *outer, ts_profile **out);
void ts_profile_retain(ts_profile *profile);
void ts_profile_release(ts_profile *profile); /* may be NULL */

/* The number of a program that was seen since the last call, which then has a place in the caller's code; 0: none. */
uint64_t ts_profile_take_new(ts_profile *profile);

/* ---- reading ---- */

/* A step of a program, an outer one before the steps of its blocks. A launch of a step with several is a row below it.
 */
typedef struct ts_profile_row {
  const struct ts_step *step; /* NULL: the whole run of a device */
  const char *device;         /* the name of its client; else NULL */
  int32_t launch;             /* -1: the whole step */
  int32_t depth;
  int64_t count, ns, longest_ns;
  int32_t threads; /* the most that worked on it at once */
} ts_profile_row;

typedef struct ts_profile_program {
  const ts_executable *exe; /* NULL: a program of a device that tells no steps */
  uint64_t number;          /* of the executable, in all profiles; not 0 */
  int64_t runs, ns, longest_ns;
  ts_profile_row *rows;
  size_t row_count;
  uint32_t *index; /* open addressing: row + 1, by step */
  size_t index_mask;
} ts_profile_program;

typedef struct ts_profile_event {
  uint32_t program, row; /* row: UINT32_MAX: the whole run */
  int64_t begin_ns, end_ns;
  uint32_t threads, partition;
} ts_profile_event;

/* From now on nothing is added. A run that has not ended adds to the outer profile only. */
void ts_profile_close(ts_profile *profile);
bool ts_profile_is_closed(ts_profile *profile);
/* Both arrays are valid until the next run that the profile measures; of a closed profile, as long as it is there. */
size_t ts_profile_programs(const ts_profile *profile, const ts_profile_program **out);
size_t ts_profile_events(const ts_profile *profile, const ts_profile_event **out);
/* Times that were left out of the events, and those that were not counted at all. */
void ts_profile_left_out(const ts_profile *profile, int64_t *out_events, int64_t *out_uncounted);

/* What the row is called: the routine or kind of step, and the op; then the ops that its kernels compute. */
const char *ts_profile_row_kind(const ts_profile_row *row);
const char *ts_profile_row_op(const ts_profile_row *row);
void ts_profile_row_ops(const ts_profile_row *row, ts_text *out);
/* The type of its first result; NULL without one. */
const ts_type *ts_profile_row_type(const ts_profile_row *row);
/* Writes the lines of the user's source that its ops come from, and returns how many. */
size_t ts_profile_row_lines(const ts_profile_program *program, const ts_profile_row *row, ts_line out[TS_MOST_LINES]);
/* Bytes that it reads and writes at least, and floating-point operations of products, each time; 0: not known. */
int64_t ts_profile_row_bytes(const ts_profile_row *row);
int64_t ts_profile_row_flops(const ts_profile_row *row);
/* Bytes and pieces of memory that each run takes from the pool. */
void ts_profile_program_memory(const ts_profile_program *program, int64_t *out_bytes, int64_t *out_pieces);

/* The rows of an executable that has not run. */
ts_status ts_profile_program_init(const ts_executable *exe, ts_profile_program *out);
void ts_profile_program_deinit(ts_profile_program *program);

/* ---- runs of devices that tell no steps ---- */

/* Sets the number of a program once, and returns it. The programs of the host have such numbers, too. */
uint64_t ts_profile_number(_Atomic uint64_t *number);
/* A run of the program of that number has ended. `device` is the name of a client, valid for ever. */
void ts_profile_add_run(ts_profile *profile, uint64_t number, const char *device, int64_t begin_ns);

/* ---- for run.c ---- */

typedef struct ts_measure {
  ts_profile *profile;
  const ts_executable *exe;
  int64_t began, step_began, last; /* ns */
  uint32_t partition;
  const ts_parallel *own; /* the run's, behind `counted` */
  ts_parallel counted;
  _Atomic uint64_t workers; /* that have worked on the step */
} ts_measure;

/* NULL without memory: the run is not measured. The run uses *parallel, which it replaces. */
ts_measure *ts_measure_new(ts_profile *profile, const ts_executable *exe, uint32_t partition,
                           const ts_parallel **parallel);
/* The run continues now, after a pause. */
void ts_measure_resume(ts_measure *measure);
/* The launch of that number, or the rest of the step (-1), has ended. */
void ts_measure_step(ts_measure *measure, const struct ts_step *step, int32_t launch);
/* The run has ended. May be NULL. */
void ts_measure_end(ts_measure *measure);

#endif
