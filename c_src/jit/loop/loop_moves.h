/* Rows of a MAP that only moves elements (loop_moves.c). Each is emitted at a row whose bases are set. Used by one
 * emission on one compile thread. */
#ifndef TS_JIT_LOOP_MOVES_H
#define TS_JIT_LOOP_MOVES_H

#include "jit/loop/loop_body.h"

/* True when each row of the result is a row of the operand. Long ones (i1) are copied by the C library. */
bool ts_loop_copies_rows(const ts_loop *loop);
ts_v ts_loop_row_is_long(ts_loop *loop, const ts_span *span);
ts_status ts_loop_copy_row(ts_loop *loop, const ts_span *span);
/* A long row of elements of a type. */
void ts_loop_copy_long(ts_loop *loop, ts_dtype type, ts_v source, ts_v target, ts_v bytes);

/* True when vectors of a row may overlap, which saves accesses to parts of vectors. */
bool ts_loop_overlaps(const ts_loop *loop);
/* A row of at least one vector, and a row of fewer elements. */
ts_status ts_loop_overlapped_row(ts_loop *loop, const ts_span *span);
ts_status ts_loop_short_row(ts_loop *loop, const ts_span *span);

#endif
