/* Judges results of linear algebra by their defining equations: for most of these ops, bits and signs that rounding
 * decides are no part of the meaning. For one thread. */
#ifndef TS_TOOL_JUDGE_H
#define TS_TOOL_JUDGE_H

#include "ir/graph.h"

/* Fails with the first fault. Residuals, orthogonality and values are measured in LAPACK's ratios: at most 30 (LAPACK
 * working note 41). Triangles, permutations, the order of values and the signs that the op fixes hold exactly. Matrices
 * with a number that is not finite have the results that the op defines. Small matrices, and systems of any size, are
 * compared with the interpreter's results as well. */
ts_status ts_judge(const ts_op *op, ts_buffer *const *operands, ts_buffer *const *results);

/* The interpreter, but ops whose bits it does not define are compiled and judged. So a run of a program has the same
 * bits as this function. */
ts_status ts_judged_run(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_buffer **out_results);

#endif
