/* Rows of a MAP of elements that indices select (loop_picks.c). Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_PICKS_H
#define TS_JIT_LOOP_PICKS_H

#include "jit/loop/loop_pieces.h"

/* True when each point of a row is an element of the operand's row that the point's index, the same for all rows,
 * selects. */
bool ts_loop_picks(const ts_loop *loop);
/* i1: whether a row is short enough for ts_loop_pick_rows(), which makes all rows. */
ts_v ts_loop_row_is_few(ts_loop *loop, const ts_span *span);
ts_status ts_loop_pick_rows(ts_loop *loop, const ts_span *span);
/* True when each point is an element of the operand's row that its index selects, and vectors would take longer. */
bool ts_loop_picks_singly(const ts_loop *loop);
/* A row, whose bases are set. */
ts_status ts_loop_pick_singly(ts_loop *loop, const ts_span *span);

/* True when each row is one that an index selects. */
bool ts_loop_selects_rows(const ts_loop *loop);
/* The pieces of a row; if they have all of it (ts_loop_is_pieces), ts_loop_selected_rows() makes all rows. */
ts_pieces ts_loop_selected_pieces(ts_loop *loop, const ts_span *span);
void ts_loop_selected_rows(ts_loop *loop, const ts_pieces *pieces);
/* All rows where they are long (ts_loop_row_is_long). */
void ts_loop_selected_long(ts_loop *loop, const ts_pieces *pieces);

#endif
