/* What the code of scans for each instruction set (scan_body.h) has in common. */
#ifndef TS_KERNEL_SCAN_JOB_H
#define TS_KERNEL_SCAN_JOB_H

#include "base/cancel.h"
#include "ir/combiner.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* Lines that are processed together. */
#define TS_SCAN_ROWS 16
/* Inner elements processed together along an outer axis: their carries stay in L1. */
#define TS_SCAN_PANEL 512
/* Blocks of a line that are processed together. */
#define TS_SCAN_BLOCKS 4

typedef struct ts_scan_job {
  const char *in;
  char *out;
  int64_t outer, n, inner; /* the shape around the axis */
  int64_t step;            /* +1, or -1 for reverse, in indices of the axis */
  int64_t panels;          /* of a line's inner elements */
  int64_t blocks;          /* of a line */
  int64_t tasks, per_task; /* units: groups of lines, panels; or of their blocks */
  char *carries;           /* totals of blocks, then the total before each block: [outer][blocks][inner]; NULL: not
                            * used */
  bool totals;             /* only these are computed */
  const _Atomic bool *cancel;
} ts_scan_job;

static inline int64_t ts_scan_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ts_scan_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline bool ts_scan_cancelled(const ts_scan_job *job) { return ts_cancelled(job->cancel); }

/* The functions for a type and an op. */
typedef struct ts_scan_fns {
  void (*lines)(const ts_scan_job *job, int64_t begin, int64_t end);        /* whole lines with few inner elements */
  void (*panels)(const ts_scan_job *job, int64_t begin, int64_t end);       /* whole panels along another axis */
  void (*line_blocks)(const ts_scan_job *job, int64_t begin, int64_t end);  /* groups of blocks of lines */
  void (*panel_blocks)(const ts_scan_job *job, int64_t begin, int64_t end); /* blocks of panels */
  void (*combine)(const ts_scan_job *job); /* from each block's total to the total before it */
  int64_t narrow; /* lines of at most so many inner elements are those of the last axis, apart */
} ts_scan_fns;

/* By type and ts_combine. */
typedef ts_scan_fns ts_scan_table[TS_DTYPE_COUNT][TS_COMBINE_NUMBERS];
extern const ts_scan_table ts_scan_table_base, ts_scan_table_avx2, ts_scan_table_avx512;

#endif
