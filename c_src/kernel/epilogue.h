/* Epilogues: a kernel that reads parts of a routine's first result while they are in cache. The interface between a
 * routine that makes a matrix (or a batch of them) and that kernel. */
#ifndef TS_KERNEL_EPILOGUE_H
#define TS_KERNEL_EPILOGUE_H

#include <stdbool.h>
#include <stdint.h>

/* `run` is called once for each part with final values: rows [row, row + rows) and columns [col, col + cols) of batch
 * `batch`, on thread `worker`. It may write to that part. Thread-safe for different workers. */
typedef struct ts_epilogue {
  void (*run)(void *context, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, int worker);
  void *context;
  bool whole_rows; /* parts must be whole rows */
} ts_epilogue;

/* The result of a routine that takes an epilogue: dense, batch x rows x cols elements. */
typedef struct ts_epilogue_space {
  int64_t batch, rows, cols;
  bool is_parallel; /* several threads make the result, if there are several */
} ts_epilogue_space;

#endif
