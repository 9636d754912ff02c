/* Calls of plugins' targets (include/tessera_plugin.h). Loaded plugins are in one table of the process, and stay: a
 * compiled program holds pointers into them. Thread-safe. */
#ifndef TS_KERNEL_CUSTOM_H
#define TS_KERNEL_CUSTOM_H

#include "base/arena.h"
#include "ir/graph.h"
#include "tensor/pool.h"

#include "tessera_plugin.h"

/* Loads a shared object and adds its targets, unless it is loaded already. Errors name the path. */
ts_status ts_custom_load(const char *path, const tessera_plugin **out);

/* One op with its values, in the interpreter. */
typedef struct ts_custom_values {
  const ts_graph *graph;
  const ts_op *op;
  ts_buffer *const *operands;
  ts_buffer *const *results;
} ts_custom_values;

ts_status ts_custom_compute(const ts_custom_values *values, ts_pool *pool, const _Atomic bool *cancel);

/* Reads "target(name = value, ...)"; a value is an integer, a float, true, false, 'text' or [integers]. What `out`
 * points to is in the arena. For custom.c. */
ts_status ts_custom_parse(ts_arena *arena, const char *text, size_t length, tessera_call *out);

#endif
