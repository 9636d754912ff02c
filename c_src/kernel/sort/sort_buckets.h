/* Sorting the keys of one long line by buckets (sort_buckets.c). */
#ifndef TS_KERNEL_SORT_BUCKETS_H
#define TS_KERNEL_SORT_BUCKETS_H

#include "kernel/sort/sort_lanes.h"

typedef enum ts_sort_outcome { TS_SORT_DONE, TS_SORT_CANCELLED, TS_SORT_DECLINED } ts_sort_outcome;

typedef struct ts_sort_buckets_request {
  const ts_sort_job *job;
  int64_t line;     /* its first element */
  const void *keys; /* of the line; kept */
  uint64_t varying; /* bits that differ between keys */
  void *moved;      /* room for the keys of the line, the keys of the longest bucket, and 64 bytes */
  int64_t chunks;
  const ts_parallel *parallel;
  void *workspace;        /* ts_sort_buckets_workspace() bytes */
  char *thread_workspace; /* for the longest bucket in each lane; thread_bytes for each worker */
  int64_t thread_bytes;
} ts_sort_buckets_request;

/* Whether such lines may be sorted by buckets. All functions below require this. */
bool ts_sort_buckets_suit(int width, int index_size, int64_t n);
int64_t ts_sort_buckets_longest(int64_t n);
int64_t ts_sort_buckets_workspace(int64_t n, int64_t chunks);
ts_sort_outcome ts_sort_buckets(const ts_sort_buckets_request *request);

#endif
