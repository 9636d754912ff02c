/* How an operation of a device ended, and how often. */
#ifndef TS_TEST_OPERATION_END_H
#define TS_TEST_OPERATION_END_H

#include "device/platform.h"

typedef struct end {
  _Atomic int times;
  ts_status status;
} end;

void test_ended(ts_status status, void *end);

#define DONE(e) ((ts_done){test_ended, (e)})

/* Waits for the operation, and a little longer for a second end, which ends the process. */
ts_status wait_for(end *e);

#endif
