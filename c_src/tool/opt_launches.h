/* The kernel launches of a graph's ops as text. For one thread. */
#ifndef TS_TOOL_OPT_LAUNCHES_H
#define TS_TOOL_OPT_LAUNCHES_H

#include "base/text.h"
#include "ir/graph.h"

/* Appends a comment for each op of the root: "// reduce_sum f32[4]: row[4,1024]", a launch after the other.
 * TS_UNIMPLEMENTED when an op has no launches because a routine computes it. */
ts_status ts_opt_print_launches(const ts_graph *graph, ts_text *out);

#endif
