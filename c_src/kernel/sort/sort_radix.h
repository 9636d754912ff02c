/* Sorting long lines (sort_radix.c). */
#ifndef TS_KERNEL_SORT_RADIX_H
#define TS_KERNEL_SORT_RADIX_H

#include "kernel/sort/sort_internal.h"

/* Workspace for a line, and for each thread besides; multiples of 64. */
typedef struct ts_sort_radix_bytes {
  int64_t line, thread;
} ts_sort_radix_bytes;

typedef struct ts_sort_radix_request {
  bool split; /* the line is sorted in chunks, by all of `parallel`'s threads; else `parallel` is the serial one */
  const ts_parallel *parallel;
  char *workspace, *thread_workspace;
  int64_t thread_bytes; /* from one worker's part of thread_workspace to the next */
} ts_sort_radix_request;

ts_sort_radix_bytes ts_sort_radix_workspace(const ts_sort_plan *plan, bool split);
/* False: it was cancelled. */
bool ts_sort_radix(const ts_sort_job *job, int64_t line, const ts_sort_radix_request *request);

#endif
