/* Our own plugin of PJRT, pjrt_tessera.so. JAX and other programs load it and run on Tessera (docs/jax.md). Internal to
 * plugin/; the shared object exports GetPjrtApi only. Thread-safe.
 *
 * Each function of the table checks its block and answers with a status (api.c). A handle is owned by the program that
 * got it. Buffers and executables keep their client by counted references. */
#ifndef TS_PLUGIN_PLUGIN_H
#define TS_PLUGIN_PLUGIN_H

#include "base/alloc.h"
#include "exec/executable.h"
#include "pjrt/abi.h"
#include "pjrt/types.h"
#include "tensor/buffer.h"

#include <pthread.h>

/* The bodies of the functions. */
#define PLUGIN_FUNCTION(place, body, last, name) ts_status plugin_##body(pj_args *args);
#define PLUGIN_ABSENT(place, name)
#include "plugin/functions.def"
#undef PLUGIN_FUNCTION
#undef PLUGIN_ABSENT

#define PLUGIN_VERSION "Tessera 1"
#define PLUGIN_MEMORY_KIND "device"

/* Takes the status over; NULL for success. */
pj_error *plugin_error(ts_status status);
void plugin_error_destroy(pj_args *args);
void plugin_error_message(pj_args *args);
pj_error *plugin_error_code(pj_args *args);
/* A function's answer: the block must have at least so many bytes. */
pj_error *plugin_answer(pj_args *args, size_t least, const char *name, ts_status (*body)(pj_args *));

/* Answers in blocks that several functions have. Always success. Saved bytes of base/alloc.h are the caller's then. */
ts_status plugin_answer_text(pj_args *args, const char *text);
ts_status plugin_answer_list(pj_args *args, const void *items, size_t count);
ts_status plugin_answer_number(pj_args *args, int number);
ts_status plugin_answer_pointer(pj_args *args, void *pointer);
ts_status plugin_answer_saved(pj_args *args, char *data, size_t size);

/* ---- events */

/* An event with a reference for the caller and, with `later`, one for plugin_event_end(); without, it is ready. */
ts_status plugin_event_new(bool later, pj_event **out);
/* Takes the reference over. Calls what waits for the event. */
void plugin_event_end(pj_event *event);

/* ---- clients and devices */

enum { PLUGIN_MOST_DEVICES = 64, PLUGIN_TEXT = 64 };

struct pj_description {
  int id;
  char text[PLUGIN_TEXT];
};

struct pj_space {
  pj_device *device;
  char text[PLUGIN_TEXT];
};

/* Bytes of the buffers on a device. */
typedef struct plugin_account {
  _Atomic int64_t bytes, peak, allocations, largest;
} plugin_account;

struct pj_device {
  pj_handle *client;
  pj_description description;
  pj_space space;
  plugin_account account;
};

struct pj_topology {
  pj_handle *client; /* a reference, but not of the client's own topology */
};

struct pj_handle {
  _Atomic int64_t refs;
  pthread_mutex_t lock; /* for the data of buffers */
  char name[PLUGIN_TEXT];
  int device_count, threads;
  ts_pool *pool; /* NULL: the default */
  pj_device devices[PLUGIN_MOST_DEVICES];
  pj_device *list[PLUGIN_MOST_DEVICES];
  pj_space *spaces[PLUGIN_MOST_DEVICES];
  pj_description *descriptions[PLUGIN_MOST_DEVICES];
  pj_topology topology;
};

static inline void plugin_client_retain(pj_handle *client) { atomic_fetch_add(&client->refs, 1); }
void plugin_client_release(pj_handle *client);
ts_pool *plugin_client_pool(const pj_handle *client);
/* An error where the client has fewer devices than processes, or there are none. */
ts_status plugin_check_grid(const pj_handle *client, int64_t replicas, int64_t partitions);
void plugin_account_add(pj_device *device, int64_t bytes);

/* ---- buffers */

struct pj_buffer {
  pj_device *device;
  int type;        /* PJ_PRED for u8 that are 0 or 1 */
  ts_buffer *data; /* under the client's lock; NULL: deleted or donated */
  ts_buffer *held; /* for others that read the bytes in place */
  int64_t holders;
  ts_shape *shape; /* in the same block */
};

int plugin_type_of(ts_dtype dtype, bool is_bool);
/* Takes `data` over on success. */
ts_status plugin_buffer_new(pj_device *device, int type, ts_buffer *data, pj_buffer **out);
/* A reference to the data, or an error for a buffer that was deleted. */
ts_status plugin_buffer_get(pj_buffer *buffer, ts_buffer **out);
/* The buffer's own reference, for a donation, or an error; and back, for a run that failed. */
ts_status plugin_buffer_take(pj_buffer *buffer, ts_buffer **out);
void plugin_buffer_give_back(pj_buffer *buffer, ts_buffer *data);

/* ---- executables */

/* A message for each of several values. */
typedef struct plugin_messages {
  char **messages;
  size_t *sizes;
  size_t count;
} plugin_messages;

typedef struct plugin_code {
  _Atomic int64_t refs;
  pj_handle *client;
  ts_executable *exe;
  char *program, *options; /* as they were given */
  size_t program_size, options_size;
  size_t param_count, result_count;
  uint8_t *donated;         /* of each parameter */
  int *param_types, *types; /* of parameters and results, PJ_* */
  int64_t *dims;            /* of the results */
  size_t *ranks;
  const char **kinds; /* of the results' memories */
  size_t *kind_sizes;
  char fingerprint[40];
  pj_named costs[5];
  int replicas, partitions;
  int process_count;                /* replica r and partition p make process r * partitions + p */
  int devices[PLUGIN_MOST_DEVICES]; /* of the processes */
  bool portable;                    /* it may run on any device */
  plugin_messages cuts[2];          /* of parameters and results; empty for one partition */
} plugin_code;

struct pj_executable {
  plugin_code *code;
};

struct pj_loaded {
  plugin_code *code;
  _Atomic bool is_deleted;
  pj_device *devices[PLUGIN_MOST_DEVICES];
};

void plugin_code_release(plugin_code *code);

/* ---- shardings.c: how parameters and results are cut, as protocol buffers, and the extension that tells it */

/* Of a partitioned graph. */
ts_status plugin_shardings_write(const ts_graph *graph, ts_root_side side, size_t count, plugin_messages *out);
void plugin_messages_deinit(plugin_messages *messages);
typedef struct plugin_shardings_extension {
  pj_extension head;
  pj_error *(*parameters)(pj_args *args), *(*results)(pj_args *args);
} plugin_shardings_extension;
extern const plugin_shardings_extension plugin_shardings;

/* What compile options say (a CompileOptionsProto). */
typedef struct plugin_options {
  int64_t replicas, partitions;
  bool portable, tuples;
  int device_count; /* of `devices`, all replicas of the first partition first; 0: not given */
  int devices[PLUGIN_MOST_DEVICES];
} plugin_options;

ts_status plugin_options_read(const char *bytes, size_t size, plugin_options *out);
/* A DeviceAssignmentProto, and numbers of any protocol buffer. */
ts_status plugin_assignment_write(const plugin_code *code, ts_text *out);
void plugin_write_number(ts_text *out, uint64_t number);

#endif
