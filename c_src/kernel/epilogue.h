/* Epilogues: a kernel that reads parts of a routine's first result while they are in cache. The interface between a
 * routine that makes a matrix (or a batch of them) and that kernel. */
#ifndef TS_KERNEL_EPILOGUE_H
#define TS_KERNEL_EPILOGUE_H

#include <stdbool.h>
#include <stdint.h>

/* Rows [row, row + rows) and columns [col, col + cols) of one matrix. */
typedef struct ts_epilogue_part {
  int64_t batch, row, rows, col, cols;
} ts_epilogue_part;

/* `run` is called once for each part with final values, on thread `worker`. It may write to that part. Thread-safe for
 * different workers. */
typedef struct ts_epilogue {
  void (*run)(void *context, const ts_epilogue_part *part, int worker);
  void *context;
  bool whole_rows; /* parts must be whole rows */
} ts_epilogue;

/* The result of a routine that takes an epilogue: dense, batch x rows x cols elements. */
typedef struct ts_epilogue_space {
  int64_t batch, rows, cols;
  bool is_parallel; /* several threads make the result, if there are several */
} ts_epilogue_space;

#endif
