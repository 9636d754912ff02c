/* Emits a product in place; see flow_dot.c. */
#ifndef TS_JIT_FLOW_DOT_H
#define TS_JIT_FLOW_DOT_H

#include "jit/emit/emit.h"
#include "jit/flow/flow.h"

/* `at`: the addresses of lhs, rhs and the result. */
void ts_flow_emit_dot(ts_emit *e, const ts_flow_dot *dot, const ts_v *at);

#endif
