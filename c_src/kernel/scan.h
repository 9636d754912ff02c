/* Cumulative sum, product, min and max along one axis: sequential in index order for each line, many lines in parallel.
 * Thread-safe. */
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

/* `in` and `out` are dense row-major of the shape; they may be the same memory. f16 and bf16 carry f32 and round every
 * output; min and max propagate NaN. `cancel` may be NULL; when it becomes true the scan soon ends with
 * TS_CANCELLED. */
ts_status ts_scan_run(const ts_scan *scan, const void *in, void *out, const ts_parallel *parallel,
                      const _Atomic bool *cancel);

#endif
