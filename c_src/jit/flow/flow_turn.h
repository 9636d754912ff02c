/* A reduction of many short rows as one of a few rows of columns: then a vector has an element of each of many rows,
 * and is not reduced itself. The bits are the same. */
#ifndef TS_JIT_FLOW_TURN_H
#define TS_JIT_FLOW_TURN_H

#include "jit/lower/lower.h"

typedef struct ts_flow_turned {
  ts_kernel_desc desc; /* a COL; it points into this struct */
  ts_kernel_operand inputs[TS_KERNEL_MAX_OPERANDS], indices[TS_KERNEL_MAX_OPERANDS];
  ts_kernel_output outputs[TS_KERNEL_MAX_OPERANDS];
  int64_t *args; /* the caller's (ts_free) */
} ts_flow_turned;

/* True for a ROW of which that is known to be faster. */
bool ts_flow_may_turn(const ts_launch *launch);
ts_status ts_flow_turn(const ts_launch *launch, ts_flow_turned *out);

#endif
