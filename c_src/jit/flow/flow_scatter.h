/* Emits scatters of a few rows in place. */
#ifndef TS_JIT_FLOW_SCATTER_H
#define TS_JIT_FLOW_SCATTER_H

#include "jit/emit/emit.h"
#include "jit/flow/flow.h"

typedef struct ts_flow_scatter_sites {
  ts_v target, updates;
  ts_v index;   /* of the only row, if an index is one number */
  ts_v indices; /* else where they are */
} ts_flow_scatter_sites;

ts_status ts_flow_emit_scatter(ts_emit *e, const ts_flow_scatter *scatter, const ts_flow_scatter_sites *at);

#endif
