/* Random arguments of a graph: the same seed always gives the same. Thread-safe. */
#ifndef TS_TOOL_RANDOM_ARGS_H
#define TS_TOOL_RANDOM_ARGS_H

#include "ir/graph.h"

/* One tensor for each of the root's parameters, many with NaN, infinities,
 * signed zeros, subnormals and integer limits. Free with ts_random_args_free. */
ts_status ts_random_args(uint64_t seed, const ts_graph *graph, ts_pool *pool, ts_buffer ***out_args);
void ts_random_args_free(ts_buffer **args, size_t count);

#endif
