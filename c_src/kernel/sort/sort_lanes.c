#include "kernel/sort/sort_lanes.h"

#include "jit/session/target.h"

const ts_sort_lanes *ts_sort_lanes_host(void) { return TS_TARGET_PICK(ts_sort_lanes); }
