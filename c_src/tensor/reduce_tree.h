/* The shape of the tree of every built-in reduction (sum, product, max, min).
 * Part of an op's meaning: the interpreter and the emitters follow
 * it, so that all paths give the same bits.
 *
 * Let x[0 .. n) be the reduced elements in row-major order over the reduced
 * axes. Consecutive elements form blocks of TS_REDUCE_BLOCK. Within a block,
 * lane l of TS_REDUCE_LANES starts from the identity and takes the x[k] with
 * k = l (mod lanes) in increasing k. Lanes then combine by halving:
 * acc[l] = acc[l] op acc[l + h] for h = lanes/2, ..., 2, 1. With more than one
 * block, the blocks' results are reduced by the same definition, until one is
 * left. f16 and bf16 do all of it in f32 and round once, at the end. */
#ifndef TS_TENSOR_REDUCE_TREE_H
#define TS_TENSOR_REDUCE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define TS_REDUCE_BLOCK 16384
#define TS_REDUCE_LANES 32

/* Columns whose elements take turns in memory are reduced together where a vector has as many elements of each: a power
 * of two, at most this. */
#define TS_REDUCE_COLUMNS 16
static inline bool ts_reduce_takes_turns(int64_t columns) {
  return columns >= 2 && columns <= TS_REDUCE_COLUMNS && (columns & (columns - 1)) == 0;
}

#endif
