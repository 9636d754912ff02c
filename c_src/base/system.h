/* Resources that the machine and our container allow us to use. Thread-safe. */
#ifndef TS_BASE_SYSTEM_H
#define TS_BASE_SYSTEM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* CPUs in the affinity mask of the first caller, or fewer if the quota of our control group or of one above it allows
 * fewer, rounded up. At least 1. */
int ts_system_cpus(void);

/* Bytes of memory: the minimum of the machine's memory and the limits of our control group and the groups above it.
 * INT64_MAX when none can be read. */
int64_t ts_system_memory(void);

/* Reads a byte of each page in the range through the kernel. The kernel returns an error where an ordinary read would
 * end the process: a hole, no permission to read, a page past the end of a mapped file. The message has the range. What
 * another thread does to the memory afterwards is not seen. */
ts_status ts_system_check_readable(const void *address, int64_t bytes);

/* Calls `handler` when the process exits; false without memory. As atexit(), but in a library into which LLVM is linked
 * as well, our handlers are told from LLVM's (jit/session/llvm_exit.c). */
bool ts_system_at_exit(void (*handler)(void));

/* Milliseconds of a monotonic clock with a resolution of a few: cheap. */
int64_t ts_system_coarse_ms(void);
/* Nanoseconds of the same clock. */
int64_t ts_system_ns(void);

#endif
