/* Judges results of linear algebra by what defines them, as neither their bits nor the signs that rounding decides are
 * part of the meaning of most of these ops. For one thread. */
#ifndef TS_TOOL_JUDGE_H
#define TS_TOOL_JUDGE_H

#include "ir/graph.h"

/* Fails with the first thing that is wrong. Residuals, orthogonality and values are measured in LAPACK's ratios, which
 * are at most 30 (LAPACK working note 41). Triangles, permutations, the order of values and the signs that the op fixes
 * hold exactly. Matrices with a number that is not finite have the results that the op says. Small matrices, and
 * systems of any size, are compared with the interpreter's results as well. */
ts_status ts_judge(const ts_op *op, ts_buffer *const *operands, ts_buffer *const *results);

/* The interpreter, but ops whose bits it does not define are compiled and judged. So the results of a program that a
 * run gives are those of this, bit for bit. */
ts_status ts_judged_run(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_buffer **out_results);

#endif
