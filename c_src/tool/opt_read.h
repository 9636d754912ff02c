/* What tessera-opt reads: the text of a graph, or a program of StableHLO as text, as bytecode, or as an export of JAX.
 */
#ifndef TS_TOOL_OPT_READ_H
#define TS_TOOL_OPT_READ_H

#include "ir/graph.h"

/* Sizes that are symbols of the program become `size`; 0: they are an error. A program for several partitions, without
 * a part that is written for one of them, is on whole values, with its mesh. */
ts_status ts_opt_read(const char *text, size_t length, uint64_t size, ts_graph **out);

#endif
