/* Long runs share the dirty schedulers in slices: one thread asks those whose
 * slice is over to pause. It sleeps while there are none. Thread-safe. */
#ifndef TS_NIF_SLICES_H
#define TS_NIF_SLICES_H

#include "exec/executable.h"

/* Of one run, in memory of its owner from begin to end. */
typedef struct ts_nif_slice {
  struct ts_nif_slice *next, *previous;
  ts_run_control *control;
  int64_t end_ns;
} ts_nif_slice;

void ts_nif_slice_begin(ts_nif_slice *slice, ts_run_control *control);
/* From here on nobody touches `control`. */
void ts_nif_slice_end(ts_nif_slice *slice);

#endif
