/* The order of cumulative sums and products. Part of an op's meaning: the interpreter and the kernels follow it, so
 * that all paths give the same bits.
 *
 * A line is cut into blocks of TS_SCAN_BLOCK elements, in the direction of the op. Within a block, each element is
 * combined with the result before it, from the identity on. The last result of a block is its total; totals are
 * combined in order as well, and the total before a block is combined with each of its results. So blocks can be
 * computed by several threads, and an error grows with BLOCK + n / BLOCK, not with n.
 *
 * Floats of up to 32 bits are carried in f64, and c64 in c128; each result is rounded to f32 first, then to the type.
 */
#ifndef TS_TENSOR_SCAN_ORDER_H
#define TS_TENSOR_SCAN_ORDER_H

#define TS_SCAN_BLOCK 8192

#endif
