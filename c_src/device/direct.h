/* The short path of the host: its tensors' bytes are in host memory, and it computes on the calling thread. It is made
 * of exec's types. Other platforms have none: device/ gives all of them the same face (device.h). */
#ifndef TS_DEVICE_DIRECT_H
#define TS_DEVICE_DIRECT_H

#include "group/group.h"
#include "tensor/buffer.h"

struct ts_loaded;

/* The arguments of a run. Donated arguments belong to the run if it succeeds. */
typedef struct ts_run_args {
  ts_buffer *const *buffers;
  size_t count;
} ts_run_args;

typedef struct ts_direct {
  /* As ts_executable_run(); `options` is not NULL, its device is set, and its pool is the client's; NULL: the host's.
   */
  ts_status (*run)(const struct ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                   ts_buffer **out_results);
  /* Resumable runs, like ts_execution_create() and its kin. */
  ts_status (*begin)(const struct ts_loaded *loaded, ts_run_args args, const ts_run_options *options, void **out_run);
  ts_status (*advance)(void *run, ts_run_state *out_state);
  void (*get_call)(const void *run, ts_run_call *out);
  const void *(*operand)(const void *run, uint32_t i);
  ts_status (*answer)(void *run, ts_buffer *const *results, size_t count); /* results in host memory */
  ts_status (*end)(void *run, ts_buffer **out_results);
  /* Groups of partitions, like ts_group_create() and its kin. */
  ts_status (*begin_group)(const struct ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                           void **out_group);
  ts_status (*advance_group)(void *group, ts_run_state *out_state);
  ts_status (*end_group)(void *group, ts_buffer **out_results);
} ts_direct;

#endif
