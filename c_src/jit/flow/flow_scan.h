/* Emits short cumulative sums and products in place. */
#ifndef TS_JIT_FLOW_SCAN_H
#define TS_JIT_FLOW_SCAN_H

#include "jit/emit/emit.h"
#include "jit/flow/flow.h"

void ts_flow_emit_scan(ts_emit *e, const ts_flow_scan *scan, ts_v from, ts_v to);

#endif
