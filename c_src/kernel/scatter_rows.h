/* The rows that a scatter applies, and additions of 16-bit floats for them: each sum is computed in f32 and rounded as
 * by ts_f32_to_f16 and ts_f32_to_bf16. Internal to scatter. */
#ifndef TS_KERNEL_SCATTER_ROWS_H
#define TS_KERNEL_SCATTER_ROWS_H

#include "ir/op.h"
#include "kernel/pick.h"
#include "tensor/dtype.h"

#include <stdbool.h>

/* The number of rows whose offsets are computed together; their buffer stays in L1. */
#define TS_SCATTER_BLOCK 256
/* Rows between a prefetch and the update, and the most bytes of a row that are prefetched. */
#define TS_SCATTER_AHEAD 8
#define TS_SCATTER_AHEAD_BYTES 512

/* The rows of one block that a task applies: row `row` of the updates changes the target's row at element `at`. */
typedef struct scatter_rows {
  int64_t at[TS_SCATTER_BLOCK + TS_PICK_SLACK], count;
  uint32_t row[TS_SCATTER_BLOCK + TS_PICK_SLACK];
  int64_t columns; /* elements of a row's part that are changed */
  int64_t stride;  /* elements from one row of the updates to the next */
  bool has_runs;   /* most rows where the block begins have the index of the row before, also rows of other tasks */
  bool is_near;    /* the target fits the first cache: nothing of it needs a prefetch */
} scatter_rows;

/* Adds or copies the rows. */
typedef void (*scatter_update_fn)(char *to, const char *from, const scatter_rows *rows);

/* The function of an op and a type, or NULL; the second one, or NULL, is for rows with runs, and the third one, or
 * NULL, for rows of so many bytes, with runs or without. */
scatter_update_fn ts_scatter_update(ts_opcode op, ts_dtype type);
scatter_update_fn ts_scatter_update_runs(ts_opcode op, ts_dtype type);
scatter_update_fn ts_scatter_update_wide(ts_opcode op, ts_dtype type, int64_t bytes);

typedef struct ts_scatter_halves {
  scatter_update_fn add_f16, add_bf16;
} ts_scatter_halves;

extern const ts_scatter_halves ts_scatter_halves_base;
#if defined(__x86_64__)
extern const ts_scatter_halves ts_scatter_halves_avx2;
#endif

typedef struct ts_scatter_wide {
  scatter_update_fn add_32, add_64, add_f32, add_f64;
} ts_scatter_wide;

#if defined(__x86_64__)
extern const ts_scatter_wide ts_scatter_wide_avx2;
#endif

static inline void ts_scatter_prefetch(const void *row, int64_t bytes) {
  for (int64_t at = 0; at < bytes && at < TS_SCATTER_AHEAD_BYTES; at += 64)
    __builtin_prefetch((const char *)row + at, 1);
}

/* Calls ADD(x, y, columns) for the rows of 16-bit floats. Loops over few columns cost more than their elements, so that
 * these numbers of columns are constants. */
#define TS_SCATTER_HALF_ROWS(ADD, COLUMNS)                                                                          \
  for (int64_t i = 0; i < rows->count; i++) {                                                                       \
    uint16_t *x = (uint16_t *)(void *)to + rows->at[i];                                                             \
    if ((COLUMNS) > 1)                                                                                              \
      ts_scatter_prefetch((uint16_t *)(void *)to + rows->at[i + TS_SCATTER_AHEAD], (COLUMNS) * (int64_t)sizeof *x); \
    ADD(x, (const uint16_t *)(const void *)from + rows->row[i] * rows->stride, COLUMNS);                            \
  }
#define TS_SCATTER_DEFINE_HALF(NAME, ADD)                                  \
  static void NAME(char *to, const char *from, const scatter_rows *rows) { \
    switch (rows->columns) {                                               \
    case 1: TS_SCATTER_HALF_ROWS(ADD, 1) break;                            \
    case 2: TS_SCATTER_HALF_ROWS(ADD, 2) break;                            \
    case 3: TS_SCATTER_HALF_ROWS(ADD, 3) break;                            \
    case 4: TS_SCATTER_HALF_ROWS(ADD, 4) break;                            \
    case 8: TS_SCATTER_HALF_ROWS(ADD, 8) break;                            \
    default: TS_SCATTER_HALF_ROWS(ADD, rows->columns)                      \
    }                                                                      \
  }

#endif
