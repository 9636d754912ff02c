/* Control flow over single elements as one native function: internal to jit/. Every value is one element, replicated in
 * all lanes of a vector, so that its arithmetic is the same as in any other kernel. */
#ifndef TS_JIT_WHOLE_H
#define TS_JIT_WHOLE_H

#include "jit/lower/lower.h"

typedef struct ts_whole {
  const ts_graph *graph;
  ts_op_id op;
} ts_whole;

/* Ops with one region that is emitted in their place. */
static inline bool ts_whole_is_inlined(ts_opcode code) { return code == TS_OP_CALL || code == TS_OP_FUSION; }

/* Ops that do not change a single element. */
bool ts_whole_is_identity(ts_opcode code);

/* whole_emit.c: the `emit` of the source; description is a ts_whole. */
ts_status ts_whole_emit(struct ts_emit *e, const char *name, const void *description);

#endif
