/* Rows of a MAP that copies elements from one place to another, where a vector would have few of them (loop_pieces.c).
 * Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_PIECES_H
#define TS_JIT_LOOP_PIECES_H

#include "jit/loop/loop_body.h"

/* How one piece, or two that overlap, copy any row up to a length: known before the first row. */
typedef struct ts_pieces {
  int least, most; /* bytes of a piece: powers of two */
  ts_v bytes;      /* of a row */
  ts_v which;      /* s32: 2 * k for rows of one piece of least * 2^k bytes, 2 * k + 1 for those of two */
} ts_pieces;

/* The elements of a row take `bytes`, of `element` each. */
ts_pieces ts_loop_pieces(ts_loop *loop, int64_t element, int most, ts_v bytes);
/* i1: whether a row has elements, and at most twice as many bytes as the longest piece. */
ts_v ts_loop_is_pieces(ts_loop *loop, const ts_pieces *p);
/* Emits fn(piece, second) for each way: the type of a piece, and the bytes from the first one to the second one, NULL
 * without a second one. */
typedef void (*ts_piece_fn)(void *context, ts_loop *loop, LLVMTypeRef piece, ts_v second);
void ts_loop_each_way(ts_loop *loop, const ts_pieces *p, ts_piece_fn fn, void *context);
void ts_loop_copy_piece(ts_loop *loop, LLVMTypeRef piece, ts_dtype type, ts_v from, ts_v to);

/* A kernel for which ts_loop_copies_rows() holds: its short rows. */
ts_pieces ts_loop_short_rows(ts_loop *loop, const ts_span *span);
void ts_loop_copy_short_rows(ts_loop *loop, const ts_pieces *p);

/* True when elements are copied to places that are apart. */
bool ts_loop_spreads(const ts_loop *loop);
/* True when rows are copied from elements that are apart. */
bool ts_loop_collects(const ts_loop *loop);
/* i1: whether a row of elements that are apart is copied in less time without vectors. */
ts_v ts_loop_row_is_short(ts_loop *loop, const ts_span *span);
/* Copies all rows of such kernels one element after the other. */
void ts_loop_copy_apart(ts_loop *loop, const ts_span *span);

#endif
