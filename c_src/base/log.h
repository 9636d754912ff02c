/* Warnings of the core. They go to a sink that the embedding sets (the NIF
 * layer forwards them to Erlang's logger); without one they go to stderr.
 * Thread-safe. */
#ifndef TS_BASE_LOG_H
#define TS_BASE_LOG_H

#include "base/status.h"

#include <stdbool.h>

typedef void (*ts_log_sink)(const char *message);
void ts_log_set_sink(ts_log_sink sink);
void ts_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails for a list that is not empty and has a name that TESSERA_DUMP does not know; `setting` names it in the error.
 */
ts_status ts_dump_check(const char *setting, const char *list);

/* True when TESSERA_DUMP (a comma-separated list: graph, passes, kernels, llvm, asm, plan) contains `what`. The
 * variable is read at the first call. */
bool ts_dump_enabled(const char *what);

#endif
