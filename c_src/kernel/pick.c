#include "kernel/pick.h"

#include "jit/session/target.h"

const ts_pick *ts_pick_host(void) { return TS_TARGET_PICK(ts_pick); }
