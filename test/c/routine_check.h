/* Checks the routine that computes a graph's only op: runs it directly, with workspaces of the test. `args` are the
 * graph's arguments; they stay the caller's. */
#ifndef TS_TEST_ROUTINE_CHECK_H
#define TS_TEST_ROUTINE_CHECK_H

#include "ir/graph.h"
#include "tensor/buffer.h"

/* The routine has the bits of the compiled graph on any number of threads, in any order of its tasks. */
void check_routine_threads(const ts_graph *graph, ts_buffer *const *args);
/* The routine ends with TS_CANCELLED when it is cancelled. */
void check_routine_cancelled(const ts_graph *graph, ts_buffer *const *args);
/* Compiling and running the graph ends with TS_RESOURCE_EXHAUSTED, whichever allocation fails. */
void check_routine_allocations(const ts_graph *graph, ts_buffer *const *args);

#endif
