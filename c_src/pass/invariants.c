#include "pass/hoist.h"

/* An op that the loop may do before its first iteration, and without one. */
static bool may_move(const ts_op *op) {
  ts_op_class class = ts_op_get_class(op->code);
  return class != TS_CLASS_CONTROL && class != TS_CLASS_COLLECTIVE && !ts_op_is_ordered(op->code) &&
         op->result_count > 0;
}

void ts_find_invariants(const ts_graph *g, const ts_region *body, uint8_t *state) {
  for (size_t i = 0; i < body->params.count; i++)
    if (body->params.data[i] == body->results.data[i]) state[body->params.data[i]] |= TS_INVARIANT;
  for (size_t i = 0; i < body->ops.count; i++) {
    const ts_op *op = ts_graph_op(g, body->ops.data[i]);
    uint8_t of_op = may_move(op) ? TS_INVARIANT | TS_FREE : 0;
    for (uint32_t k = 0; k < op->operand_count; k++) of_op &= state[op->operands[k]];
    for (uint32_t k = 0; k < op->result_count; k++) state[op->first_result + k] |= of_op;
  }
}
