/* Truth values as masks: functions of emit_op.c for the loop emitters, beyond emit.h. */
#ifndef TS_JIT_EMIT_OP_H
#define TS_JIT_EMIT_OP_H

#include "jit/emit/emit.h"

/* From register form to a vector of i1: x != 0; NaN is true. */
ts_v ts_emit_mask(ts_emit *e, ts_dtype type, ts_v x);
/* A vector of i1 to u8 register form. */
ts_v ts_emit_truth(ts_emit *e, ts_v mask);

#endif
