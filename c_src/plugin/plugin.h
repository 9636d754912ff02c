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
  int replicas;
  int devices[PLUGIN_MOST_DEVICES]; /* of the replicas */
  bool portable;                    /* it may run on any device */
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

/* What compile options say (a CompileOptionsProto). */
typedef struct plugin_options {
  int64_t replicas, partitions;
  bool portable, tuples;
  int device_count; /* of `devices`, replicas of the first partition first; 0: not given */
  int devices[PLUGIN_MOST_DEVICES];
} plugin_options;

ts_status plugin_options_read(const char *bytes, size_t size, plugin_options *out);
/* A DeviceAssignmentProto of replicas. */
ts_status plugin_assignment_write(const int *devices, int count, ts_text *out);

#endif
