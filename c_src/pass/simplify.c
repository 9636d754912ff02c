#include "pass/simplify.h"

ts_status ts_simplify(const ts_rule_call *call, ts_value_id *out) {
  switch (ts_op_get_class(call->op->code)) {
  case TS_CLASS_SHAPE: return ts_simplify_shape(call, out);
  case TS_CLASS_INDEXED: return ts_simplify_indexed(call, out);
  default: return ts_op_is_elementwise(call->op->code) ? ts_simplify_arithmetic(call, out) : TS_SUCCESS;
  }
}
