/* Checks of the routine that computes a graph's only op, which it runs by itself, with workspaces of their own. `args`
 * are the graph's arguments; they stay the caller's. */
#ifndef TS_TEST_ROUTINE_CHECK_H
#define TS_TEST_ROUTINE_CHECK_H

#include "ir/graph.h"
#include "tensor/buffer.h"

/* The routine has the bits of the compiled graph on any number of threads, whatever the order of its tasks. */
void check_routine_threads(const ts_graph *graph, ts_buffer *const *args);
/* The routine ends with TS_CANCELLED when it is cancelled. */
void check_routine_cancelled(const ts_graph *graph, ts_buffer *const *args);
/* Compiling and running the graph ends with TS_RESOURCE_EXHAUSTED, whichever allocation fails. */
void check_routine_allocations(const ts_graph *graph, ts_buffer *const *args);

#endif
