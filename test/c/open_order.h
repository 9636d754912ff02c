/* Sums whose order differs after a program went through StableHLO, in tests. Thread-safe. */
#ifndef TS_TEST_OPEN_ORDER_H
#define TS_TEST_OPEN_ORDER_H

#include "ir/graph.h"

/* Whether the op itself is such a sum. */
bool open_order_has(const ts_graph *g, const ts_op *op);
/* For each value of the root, whether it depends on one. The caller frees it. */
ts_status open_order_find(const ts_graph *g, bool **out);

#endif
