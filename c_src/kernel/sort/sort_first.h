/* The values of top_k where nothing reads the positions: the order of equal elements then shows only in the bits of
 * zeros and NaNs. Of long lines the keys that a bound from a sample does not exceed are split off, and only these are
 * sorted; short lines are sorted together, which may be faster than to find the first k of each. */
#ifndef TS_KERNEL_SORT_FIRST_H
#define TS_KERNEL_SORT_FIRST_H

#include "kernel/sort/sort.h"

typedef struct ts_sort_first_plan {
  ts_sort_plan sort; /* of the values, descending */
  int64_t k;
  bool parts;   /* else all of each line is sorted */
  bool split;   /* threads share a line */
  int64_t slab; /* lines that a task sorts in its own memory; 0: all are sorted before any is copied */
  int64_t cost_ns, most_ns, workspace, thread_workspace; /* most_ns: hardly exceeded, whatever the keys */
} ts_sort_first_plan;

/* Of at least one line, of at least one element. */
ts_status ts_sort_first_plan_make(ts_dtype dtype, const ts_shape *shape, int64_t k, ts_sort_first_plan *out);
ts_status ts_sort_first_run(const ts_sort_first_plan *plan, const ts_sort_resources *resources, const void *in,
                            void *values);

#endif
