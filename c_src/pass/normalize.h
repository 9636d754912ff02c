/* What happens to one op of the old graph in the walk of normalize.c, before the rules see what it becomes. Internal
 * to pass/. */
#ifndef TS_PASS_NORMALIZE_H
#define TS_PASS_NORMALIZE_H

#include "pass/rules.h"

/* General reduces (expand.c). */
ts_status ts_expand_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id op, ts_region_id target);
/* Contractions and transposes of them (dots.c): `rw` has the uses. Says in `*out_done` whether it dealt with the op. */
ts_status ts_dots_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id op, ts_region_id target, bool *out_done);
/* False when the pass would only copy the graph. As quick as a glance where it would do more, as a rule. */
ts_status ts_normalize_applies(const ts_graph *graph, const ts_pass_options *options, bool *out);
/* False when every contraction has its form already. */
bool ts_dots_applies(const ts_graph *graph);

#endif
