/* The simplification rules, by topic. Internal to pass/. */
#ifndef TS_PASS_SIMPLIFY_H
#define TS_PASS_SIMPLIFY_H

#include "pass/rules.h"

ts_status ts_simplify_arithmetic(const ts_rule_call *s, ts_value_id *out);
ts_status ts_simplify_shape(const ts_rule_call *s, ts_value_id *out);
ts_status ts_simplify_indexed(const ts_rule_call *s, ts_value_id *out);
/* For ops on more dims than a kernel has loops (collapse.c). */
ts_status ts_simplify_ranks(const ts_rule_call *s, ts_value_id *out);

/* The op of the new graph that defines a value, if it has the given code; else NULL. */
static inline const ts_op *ts_simplify_maker(const ts_rule_call *s, ts_value_id value, ts_opcode code) {
  ts_op_id id = ts_graph_value(s->rules->to, value)->op;
  const ts_op *op = id == TS_NO_ID ? NULL : ts_graph_op(s->rules->to, id);
  return op && op->code == code ? op : NULL;
}

static inline ts_status ts_simplify_add(const ts_rule_call *s, ts_opcode code, ts_value_id operand,
                                        const ts_attrs *attrs, ts_value_id *out) {
  return ts_rules_add(s->rules, s->target, code, (ts_values){&operand, 1}, attrs, out);
}

#endif
