/* The blocks of rows of a JOINED. Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_JOINED_H
#define TS_JIT_LOOP_JOINED_H

#include "jit/loop/loop_body.h"

ts_status ts_loop_joined(ts_loop *loop);

#endif
