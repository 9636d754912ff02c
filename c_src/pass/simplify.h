/* The rules of the simplify pass, by topic. Each gets an op of the old graph, whose operands have counterparts in the
 * new one, and either answers with a value of the new graph or leaves `*out` at TS_NO_ID. Every rule keeps all bits,
 * NaN payloads apart. Internal to pass/. */
#ifndef TS_PASS_SIMPLIFY_H
#define TS_PASS_SIMPLIFY_H

#include "pass/rewrite.h"

typedef struct ts_simplify {
  ts_rewrite *rw;
  const ts_op *op;
  ts_region_id target;
  ts_value_id operands[3]; /* counterparts of the first three */
  ts_dtype dtype;          /* of the result */
  ts_shape shape;
} ts_simplify;

ts_status ts_simplify_arithmetic(ts_simplify *s, ts_value_id *out);
ts_status ts_simplify_shape(ts_simplify *s, ts_value_id *out);
ts_status ts_simplify_indexed(ts_simplify *s, ts_value_id *out);

/* The op of the new graph that makes a value, if it has that code; else NULL. */
static inline const ts_op *ts_simplify_maker(const ts_simplify *s, ts_value_id value, ts_opcode code) {
  ts_op_id id = ts_graph_value(s->rw->to, value)->op;
  const ts_op *op = id == TS_NO_ID ? NULL : ts_graph_op(s->rw->to, id);
  return op && op->code == code ? op : NULL;
}

static inline ts_status ts_simplify_add(ts_simplify *s, ts_opcode code, ts_value_id operand, const ts_attrs *attrs,
                                        ts_value_id *out) {
  return ts_graph_add_op(s->rw->to, s->target, code, &operand, 1, attrs, out);
}

#endif
