/* The values of top_k where nothing reads the positions: the order of equal elements then shows only in the bits of
 * zeros and NaNs. Keys that a bound from a sample does not exceed are split off, and only these are sorted. */
#ifndef TS_KERNEL_SORT_FIRST_H
#define TS_KERNEL_SORT_FIRST_H

#include "kernel/sort/sort.h"

typedef struct ts_sort_first_plan {
  ts_sort_plan sort; /* of the values, descending */
  int64_t k;
  bool parts; /* else all lines are sorted, as this machine cannot split keys fast */
  bool split; /* threads share a line */
  int64_t cost_ns, workspace, thread_workspace;
} ts_sort_first_plan;

/* Whether this is the faster way. The pass that makes sorts of other lines (pass/order.c) has the same bounds. */
bool ts_sort_first_suits(ts_dtype dtype, int64_t n, int64_t k);
/* Both require this. */
ts_status ts_sort_first_plan_make(ts_dtype dtype, const ts_shape *shape, int64_t k, ts_sort_first_plan *out);
ts_status ts_sort_first_run(const ts_sort_first_plan *plan, const ts_sort_resources *resources, const void *in,
                            void *values);

#endif
