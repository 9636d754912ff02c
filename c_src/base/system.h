/* What the machine, and the container we run in, let us use. Thread-safe. */
#ifndef TS_BASE_SYSTEM_H
#define TS_BASE_SYSTEM_H

#include <stdint.h>

/* CPUs: how many the affinity mask of the first caller has, or fewer where the quota of our control group or of one
 * above it amounts to fewer, rounded up. At least 1. */
int ts_system_cpus(void);

/* Bytes of memory: the least of what the machine has and the limits of our
 * control group and the groups above it. INT64_MAX when nothing can be read. */
int64_t ts_system_memory(void);

/* Milliseconds of a clock that only goes forward, in steps of a few: cheap. */
int64_t ts_system_coarse_ms(void);
/* Nanoseconds of the same clock. */
int64_t ts_system_ns(void);

#endif
