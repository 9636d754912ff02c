/* The greatest k elements of each line of the last axis, in descending order, and their indices. NaN is the greatest;
 * of equal elements (-0 equals +0) the one with the lowest index is first. Thread-safe; see sort.h for plans and runs.
 */
#ifndef TS_KERNEL_SORT_TOP_H
#define TS_KERNEL_SORT_TOP_H

#include "kernel/sort/sort.h"

typedef struct ts_top_k_plan {
  ts_sort_plan sort; /* of indices, descending: the order that is meant */
  int64_t k;
  bool select;          /* each line's k are selected in one walk; else a number of lines is sorted at a time */
  int64_t slab;         /* how many; of selected lines, so many are a task's */
  ts_sort_plan records; /* of a task's selected lines, where their keys have at most 32 bits */
  int64_t cost_ns, most_ns, workspace, thread_workspace; /* most_ns: hardly exceeded, whatever the keys; 0: unknown */
} ts_top_k_plan;

/* k is at most the length of the last axis, which fits into s32. */
ts_status ts_top_k_plan_make(ts_dtype dtype, const ts_shape *shape, int64_t k, ts_top_k_plan *out);

/* `values` has the operand's type, `indices` is s32; both have the operand's shape with k as the last dim. */
ts_status ts_top_k_run(const ts_top_k_plan *plan, const ts_sort_resources *resources, const void *in, void *values,
                       void *indices);

#endif
