/* Cumulative sum, product, min and max along one axis, in the order of tensor/scan_order.h. Thread-safe. */
#ifndef TS_KERNEL_SCAN_H
#define TS_KERNEL_SCAN_H

#include "base/parallel.h"
#include "base/status.h"
#include "ir/op.h"
#include "tensor/shape.h"

#include <stdbool.h>

typedef struct ts_scan {
  ts_opcode op;
  ts_dtype dtype;
  ts_shape shape;
  int32_t axis;
  bool reverse;
} ts_scan;

/* `in` and `out` are dense row-major of the shape; they may be the same memory. min and max propagate NaN. */
typedef struct ts_scan_call {
  const void *in;
  void *out;
  void *workspace; /* of ts_scan_workspace; NULL: few long lines are not shared by threads */
  const ts_parallel *parallel;
  const _Atomic bool *cancel; /* when it becomes true the scan soon ends with TS_CANCELLED; may be NULL */
} ts_scan_call;

/* Bytes. */
int64_t ts_scan_workspace(const ts_scan *scan);
ts_status ts_scan_run(const ts_scan *scan, const ts_scan_call *call);

#endif
