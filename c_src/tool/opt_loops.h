/* The loop nest of a graph as text: docs/tessera-opt.md. For one thread. */
#ifndef TS_TOOL_OPT_LOOPS_H
#define TS_TOOL_OPT_LOOPS_H

#include "base/text.h"
#include "ir/graph.h"

/* Appends loops, reads, writes and scalar ops of the graph's root, a comment each. TS_UNIMPLEMENTED when it is no
 * affine loop nest. */
ts_status ts_opt_print_loops(const ts_graph *graph, ts_text *out);

#endif
