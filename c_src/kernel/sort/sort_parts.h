/* Sorting one long line by splitting it (sort_parts.c). */
#ifndef TS_KERNEL_SORT_PARTS_H
#define TS_KERNEL_SORT_PARTS_H

#include "kernel/sort/sort_lanes.h"

/* Makes keys begin .. end-1 of the line. */
typedef void (*ts_sort_make_fn)(void *arg, int64_t begin, int64_t end);

typedef struct ts_sort_parts_request {
  const ts_sort_job *job;
  int64_t line; /* its first element */
  ts_sort_make_fn make;
  void *arg;
  void *keys;  /* where they are made; as many and 4 KB more may be read */
  void *moved; /* room for as many and ts_sort_parts_gaps(), when the line is shared by threads */
  bool split;  /* it is shared */
  const ts_parallel *parallel;
  void *workspace;        /* ts_sort_parts_workspace() bytes */
  char *thread_workspace; /* ts_sort_parts_thread() bytes, aligned; thread_bytes for each worker */
  int64_t thread_bytes;
} ts_sort_parts_request;

/* Whether such lines may be sorted by parts. All functions below require this. */
bool ts_sort_parts_suit(int width, int index_size, int64_t n);
int64_t ts_sort_parts_gaps(void);
int64_t ts_sort_parts_workspace(int width, int64_t n);
int64_t ts_sort_parts_thread(int width, int64_t n);
/* False: it was cancelled. */
bool ts_sort_parts(const ts_sort_parts_request *request);

#endif
