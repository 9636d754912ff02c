/* Transposes of a product's rows, which become transposes of its left operand. Internal to pass/. */
#ifndef TS_PASS_DOTS_ROWS_H
#define TS_PASS_DOTS_ROWS_H

#include "pass/rules.h"

/* Replaces a transpose, and sets *out_done, if its product's rows are moved. `rw` must have use counts. */
ts_status ts_dots_move_rows(ts_rewrite *rw, ts_rules *rules, ts_op_id transpose, ts_region_id target, bool *out_done);
/* True when a transpose may be replaced, whatever else reads what it reads. */
bool ts_dots_moves_rows(const ts_graph *graph, const ts_op *transpose);

/* The counterpart of a product of the old graph with another left operand, whose dims have the same meaning (dots.c).
 */
ts_status ts_dots_add(ts_rewrite *rw, ts_rules *rules, ts_region_id target, const ts_op *dot, ts_value_id lhs,
                      ts_value_id *out);

#endif
