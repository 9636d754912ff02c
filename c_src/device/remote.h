/* For device/: buffers around a platform's memory, uses of clients, and waiting for operations. Thread-safe. */
#ifndef TS_DEVICE_REMOTE_H
#define TS_DEVICE_REMOTE_H

#include "device/device.h"

#include <pthread.h>

/* The platform's memory behind a buffer that the host cannot read. */
void *ts_remote_memory(const ts_buffer *buffer);
/* A buffer of the device around `memory`, which it owns; on failure the memory is released. Takes a use of the device's
 * client over, also on failure. */
ts_status ts_remote_wrap(ts_device *device, const ts_type *type, void *memory, ts_buffer **out);
/* After a run that took the memory: the buffer has none any more. Only the caller of that run has it, until it drops
 * it; if the results could not be handed out, uses of it are errors. */
void ts_remote_taken(ts_buffer *buffer);
/* After a run that may have overwritten the memory and did not succeed: uses of the buffer are errors. */
void ts_remote_lost(ts_buffer *buffer);
ts_status ts_remote_check(const ts_buffer *buffer);

/* Counts a use of the client, or says that it is closed. Of host clients it does nothing. */
ts_status ts_client_use(ts_client *client);
/* Another use of a client that the caller uses already; closed or not. */
void ts_client_use_more(ts_client *client);
void ts_client_unuse(ts_client *client);

/* Waits for one operation, in memory of the caller's. */
typedef struct ts_wait {
  pthread_mutex_t lock;
  pthread_cond_t signal;
  bool is_done;
  ts_status status;
} ts_wait;
ts_done ts_wait_begin(ts_wait *wait); /* for the operation */
ts_status ts_wait_end(ts_wait *wait);

/* The runs of programs that wait: a run by itself, or all partitions of a group. As ts_device_run and ts_device_group,
 * which call these. `devices` are the partitions' devices. */
typedef struct ts_pending ts_pending;
typedef struct ts_pending_options {
  ts_device *const *devices;
  int32_t partitions;
  const ts_run_control *control;
  int threads;
  ts_bits donated;
  void (*ready)(void *context);
  void *context;
} ts_pending_options;
ts_status ts_pending_create(ts_loaded *loaded, ts_run_args args, const ts_pending_options *options, ts_pending **out);
ts_status ts_pending_advance(ts_pending *pending, ts_run_state *out_state);
const ts_program_call *ts_pending_call(const ts_pending *pending);
ts_status ts_pending_answer(ts_pending *pending, ts_buffer *const *results, size_t count);
ts_status ts_pending_end(ts_pending *pending, ts_buffer **out_results);

#endif
