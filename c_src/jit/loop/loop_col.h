/* The inside of the COL emitter: panels of columns (loop_col.c), and whole vectors of them in registers
 * (loop_col_groups.c). Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_COL_H
#define TS_JIT_LOOP_COL_H

#include "jit/loop/loop_reduce.h"

/* Bytes between the accumulators of different reductions: stores and loads whose addresses differ by a multiple of 4 KB
 * wait for each other. */
#define TS_COL_APART 512

typedef struct ts_col_panel {
  const ts_v *outer; /* counters of dims 0 .. rank-3 */
  ts_v rows;         /* extent of the reduced dim */
  ts_v from, to;     /* columns */
} ts_col_panel;

/* Emits a panel of a wide COL, where that is faster in registers, and says whether it has. */
ts_status ts_loop_col_groups(ts_loop *loop, const ts_col_panel *panel, bool *done);

/* Marks nothing as wanted; marks the operands of the wanted nodes as wanted, up to other reductions. */
void ts_loop_col_want_nothing(ts_loop *loop);
void ts_loop_col_want_operands(ts_loop *loop);
/* Also of constants. */
ts_v ts_loop_col_smaller(ts_loop *loop, ts_v a, ts_v b);
/* A row's number as s32, in each lane. */
ts_v ts_loop_col_number(ts_loop *loop, ts_v row);
/* Prefetches the element of an input in column `index`, `rows` rows further on, if there is one. */
void ts_loop_col_ask_ahead(ts_loop *loop, int32_t input, ts_v index, int64_t rows);

#endif
