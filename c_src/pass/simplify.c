#include "pass/simplify.h"

#include "pass/affine.h"

static ts_status simplify(const ts_rule_call *call, ts_value_id *out) {
  switch (ts_op_get_class(call->op->code)) {
  case TS_CLASS_SHAPE: return ts_simplify_shape(call, out);
  case TS_CLASS_INDEXED: return ts_simplify_indexed(call, out);
  default: return ts_op_is_elementwise(call->op->code) ? ts_simplify_arithmetic(call, out) : TS_SUCCESS;
  }
}

ts_status ts_simplify(const ts_rule_call *call, ts_value_id *out) {
  TS_TRY(simplify(call, out));
  bool is_high = call->shape->rank > TS_LOOP_MAX ||
                 ts_graph_value(call->rules->to, call->op->operands[0])->shape->rank > TS_LOOP_MAX;
  return *out == TS_NO_ID && is_high ? ts_simplify_ranks(call, out) : TS_SUCCESS;
}
