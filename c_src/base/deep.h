/* Recursion over regions, which may be nested a thousand levels deep. A dirty scheduler's stack has room for a hundred,
 * so deeper graphs are walked on a thread with a large stack. Thread-safe. */
#ifndef TS_BASE_DEEP_H
#define TS_BASE_DEEP_H

#include "base/status.h"

#include <stddef.h>

/* Levels that fit into any stack. */
enum { TS_DEEP_LEVELS = 16 };

typedef ts_status (*ts_deep_fn)(void *context);

/* Calls fn(context): on this thread when there are few levels or its stack is large, else on another thread while this
 * one waits. */
ts_status ts_deep_call(size_t levels, ts_deep_fn fn, void *context);

#endif
