/* Long runs share the dirty schedulers in time slices: one thread asks the runs whose slice is over to pause. It sleeps
 * while there are no runs. A run on a normal scheduler has one brief slice. Thread-safe. */
#ifndef TS_EXEC_SLICES_H
#define TS_EXEC_SLICES_H

#include "exec/executable.h"

/* The slice of one run, in memory of its owner from begin to end. */
typedef struct ts_slice {
  struct ts_slice *next, *previous;
  ts_run_control *control;
  int64_t end_ns;
} ts_slice;

/* Starts the thread. False where that fails: then no run pauses. */
bool ts_slices_start(void);
/* `brief`: a millisecond, and not 20. */
void ts_slice_begin(ts_slice *slice, ts_run_control *control, bool brief);
/* After this no thread accesses `control`. */
void ts_slice_end(ts_slice *slice);

#endif
