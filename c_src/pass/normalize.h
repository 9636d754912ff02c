/* Rewrites of single ops of the old graph, which normalize.c applies before the rules. Internal to pass/. */
#ifndef TS_PASS_NORMALIZE_H
#define TS_PASS_NORMALIZE_H

#include "pass/rules.h"

/* General reduces (expand.c). With `ordered_only` a reduce whose result does not depend on the order, of sums,
 * products, minima, maxima, and `and`, `or` and `xor` of bits, stays one: it begins with the identity, and is combined
 * with the initial value once. */
ts_status ts_expand_visit(ts_rewrite *rw, ts_rules *rules, bool ordered_only, ts_op_id op, ts_region_id target);
/* Contractions and their transposes (dots.c). `rw` must have use counts. *out_done is true when the op was
 * rewritten. */
ts_status ts_dots_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id op, ts_region_id target, bool *out_done);
/* top_k without positions (order.c), with the same conditions. */
ts_status ts_order_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id op, ts_region_id target, bool *out_done);
/* *out is false when the pass would only copy the graph. When it would not, the answer usually comes after a few
 * ops. */
ts_status ts_normalize_applies(const ts_graph *graph, const ts_pass_options *options, bool *out);
/* False when every contraction has its form already. */
bool ts_dots_applies(const ts_graph *graph);
/* False when no top_k becomes a sort, whatever is read of it. */
bool ts_order_applies(const ts_graph *graph);

#endif
