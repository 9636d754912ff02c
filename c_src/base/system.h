/* What the machine, and the container we run in, let us use. Thread-safe. */
#ifndef TS_BASE_SYSTEM_H
#define TS_BASE_SYSTEM_H

#include <stdint.h>

/* Bytes of memory: the least of what the machine has and the limits of our
 * control group and the groups above it. INT64_MAX when nothing can be read. */
int64_t ts_system_memory(void);

/* Milliseconds of a clock that only goes forward, in steps of a few: cheap. */
int64_t ts_system_coarse_ms(void);
/* Nanoseconds of the same clock. */
int64_t ts_system_ns(void);

#endif
