/* Programs of one op: each op of ir/op.def with every type that it takes. An op without a program is an error, so
 * that a new one is not forgotten. No state. */
#ifndef TS_TEST_XLA_OPS_H
#define TS_TEST_XLA_OPS_H

#include "ir/graph.h"

/* `visit` takes the graph over. */
ts_status xla_visit_ops(ts_status (*visit)(void *context, const char *name, ts_graph *graph), void *context);

#endif
