/* Devices and clients; docs/devices.md describes them. Clients and devices live as long as the process, so their
 * pointers are always valid. Thread-safe. */
#ifndef TS_DEVICE_DEVICE_H
#define TS_DEVICE_DEVICE_H

#include "base/slots.h"
#include "group/group.h"
#include "tensor/buffer.h"

enum { TS_MAX_CLIENTS = 32, TS_MAX_DEVICES = 64, TS_CLIENT_NAME_BYTES = 1024 };

typedef struct ts_client ts_client;
typedef struct ts_device ts_device;

/* An executable of a client. Immutable but for `refs`. */
typedef struct ts_loaded {
  _Atomic uint32_t refs;
  bool is_short;      /* short enough for a normal scheduler: ts_executable_is_short() */
  bool calls_back;    /* only a resumable run can run it */
  bool coordinates;   /* the last parameter is a partition's coordinates, which a group provides */
  int32_t partitions; /* that run it together; 1: a run by itself */
  ts_client *client;
  void *own; /* the platform's */
  size_t param_count, result_count;
  const ts_type *const *param_types, *const *result_types; /* owned by `own` */
  int64_t cost_ns;
} ts_loaded;

/* The arguments of a run. Those that are donated belong to the run if it succeeds. */
typedef struct ts_run_args {
  ts_buffer *const *buffers;
  size_t count;
} ts_run_args;

/* How the clients of one kind compute. Where nothing else is said, a function may be called by any thread. Functions
 * marked optional may be NULL. */
typedef struct ts_platform {
  const char *name;
  bool elsewhere; /* the host cannot read its buffers: `data` is NULL and `elsewhere` is set */

  /* Fills `own`, counts and types of `out`, `is_short`, `calls_back` and `cost_ns`. As ts_executable_create(): with
   * `at_hand`, `own` stays NULL without an error when immediate compilation is not possible. */
  ts_status (*compile)(ts_client *client, const ts_graph *graph, const ts_compile_options *options, ts_loaded *out);
  void (*release)(void *own);
  void (*get_stats)(const void *own, ts_executable_stats *out); /* optional */
  ts_status (*explain)(const void *own, ts_text *out);          /* optional */

  /* As ts_executable_run(); `options` is not NULL, its device is set, and its pool is the client's; NULL: the host's.
   */
  ts_status (*run)(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options, ts_buffer **out_results);
  /* Resumable runs, as ts_execution_create() and what follows it. All optional together. */
  ts_status (*begin)(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options, void **out_run);
  ts_status (*advance)(void *run, ts_run_state *out_state);
  void (*get_call)(const void *run, ts_run_call *out);
  const void *(*operand)(const void *run, uint32_t i);
  ts_status (*answer)(void *run, ts_buffer *const *results, size_t count); /* results in host memory */
  ts_status (*end)(void *run, ts_buffer **out_results);
  /* Groups of partitions, as ts_group_create() and what follows it. All optional together; `partitions` and
   * `coordinates` of an executable are set by platforms that have them. */
  ts_status (*begin_group)(const ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                           void **out_group);
  ts_status (*advance_group)(void *group, ts_run_state *out_state);
  ts_status (*end_group)(void *group, ts_buffer **out_results);

  /* For platforms that are elsewhere. A copy on the device of a buffer in host memory: */
  ts_status (*from_host)(ts_device *device, const ts_buffer *host, ts_buffer **out);
  /* The first `bytes` bytes of a buffer that from_host or a run made: */
  ts_status (*to_host)(const ts_buffer *buffer, int64_t bytes, void *out);
  void (*get_memory)(ts_client *client, ts_pool_stats *out); /* optional: that of the pool */
} ts_platform;

struct ts_device {
  ts_client *client;
  int32_t id;
  /* Bytes that handles hold, as reported by the threads, and what they have not reported. */
  _Atomic int64_t told, peak;
  ts_counter untold;
};

struct ts_client {
  char name[TS_CLIENT_NAME_BYTES];
  const ts_platform *platform;
  int32_t index;         /* in the order of opening; `host` is 0 */
  int32_t group;         /* clients of one group run each other's executables */
  ts_pool *_Atomic pool; /* NULL: the host's */
  _Atomic int threads;   /* at most this many for a run; 0: all */
  _Atomic int32_t device_count;
  ts_device *devices[TS_MAX_DEVICES];
  _Atomic int64_t told, peak;
};

/* ---- clients */

extern const ts_platform ts_platform_host;

typedef struct ts_client_options {
  const ts_platform *platform; /* NULL: the host's */
  int32_t device_count;        /* 0: one, or as many as there are */
  int64_t memory_limit;        /* bytes; negative: none of its own */
  int threads;                 /* at most this many for a run; 0: all; negative: unchanged */
} ts_client_options;

/* The client of that name, opened on first use. For an open client the platform must be the same; more devices are
 * added, and limits are set. Devices are never removed. */
ts_status ts_client_open(const char *name, const ts_client_options *options, ts_client **out);
ts_client *ts_client_find(const char *name); /* NULL when there is none */
ts_client *ts_client_host(void);
/* Device `id` of a client, or an error that says how many there are. */
ts_status ts_client_device(ts_client *client, int64_t id, ts_device **out);
ts_device *ts_device_default(void); /* device 0 of the host's client */

static inline ts_pool *ts_client_pool(ts_client *client) {
  ts_pool *pool = atomic_load_explicit(&client->pool, memory_order_acquire);
  return pool ? pool : ts_pool_default();
}
/* A client that shared the host's pool gets one of its own, for tensors made from now on. */
ts_status ts_client_set_limit(ts_client *client, int64_t bytes);
void ts_client_get_memory(ts_client *client, ts_pool_stats *out);
void ts_clients_trim(void); /* ts_pool_trim() of every client's pool */

/* ---- accounts */

/* Counts bytes that a handle on the device holds; negative when it ends. */
void ts_device_hold(ts_device *device, int64_t bytes);
int64_t ts_device_held(ts_device *device); /* exact */
int64_t ts_client_held(ts_client *client); /* exact, of all its devices */
int64_t ts_devices_held(void);             /* of all clients, exact */
int64_t ts_devices_told(void);             /* as reported by the threads, which costs nothing */
/* Exact bytes that the client's device `id` holds, which is one of its devices, and the most that it held. */
void ts_device_get_held(ts_client *client, int32_t id, int64_t *out_held, int64_t *out_peak);
/* Takes what the client holds now into account for its peak; `held` as the caller has added it up. */
void ts_client_note_peak(ts_client *client, int64_t held);
/* Of the client and of its devices: what they hold now. */
void ts_client_reset_peak(ts_client *client);

/* ---- buffers */

/* "device 1 of client other", for messages. */
enum { TS_DEVICE_TEXT = TS_CLIENT_NAME_BYTES + 32 };
const char *ts_device_format(const ts_device *device, char *out, size_t size);
#define TS_DEVICE_STR(device) ts_device_format((device), (char[TS_DEVICE_TEXT]){0}, TS_DEVICE_TEXT)

/* The bytes of a buffer of any device; an error that names the device when the host cannot read them. */
ts_status ts_device_bytes(const ts_buffer *buffer, void **out);
/* A buffer with the same contents in host memory: the same one with a reference more, or a copy. */
ts_status ts_device_fetch(ts_buffer *buffer, ts_buffer **out);
/* The first `bytes` bytes of a buffer of any device. */
ts_status ts_device_read(const ts_buffer *buffer, int64_t bytes, void *out);
/* A buffer in host memory to be filled and then passed to ts_device_place. */
ts_status ts_device_stage(ts_device *device, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
/* Makes a buffer in host memory, of which the caller has the only reference, one of the device: itself, or a copy.
 * Takes the reference over, also on failure. */
ts_status ts_device_place(ts_device *device, ts_buffer *host, ts_buffer **out);
/* The tensor on a device: the same buffer with a reference more when it is there, a view on another device of a host
 * client, else a copy. */
ts_status ts_device_move(ts_device *device, ts_buffer *buffer, ts_buffer **out);
/* The same, but always with memory of its own. */
ts_status ts_device_copy(ts_device *device, ts_buffer *buffer, ts_buffer **out);

/* ---- executables */

/* As ts_executable_create(). */
ts_status ts_loaded_create(ts_client *client, const ts_graph *graph, const ts_compile_options *options,
                           ts_loaded **out);
void ts_loaded_retain(ts_loaded *loaded);
void ts_loaded_release(ts_loaded *loaded); /* NULL is allowed */
void ts_loaded_get_stats(const ts_loaded *loaded, ts_executable_stats *out);
ts_status ts_loaded_explain(const ts_loaded *loaded, ts_text *out);

/* The device of a run: `bound`, or that of the first argument on a device that can run the executable, or the client's
 * first. */
ts_device *ts_loaded_device(const ts_loaded *loaded, ts_device *bound, ts_run_args args);

/* As ts_executable_run(), on `options->device`, which may be NULL: then ts_loaded_device() chooses it. Sets the
 * device and pool of the options, and the number of threads that the client allows. */
ts_status ts_loaded_run(const ts_loaded *loaded, ts_run_args args, ts_run_options *options, ts_buffer **out_results);

/* A resumable run; as ts_execution_create() and what follows it. A platform without them runs the program in
 * ts_device_run_advance(). */
typedef struct ts_device_run ts_device_run;
ts_status ts_device_run_create(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                               ts_device_run **out);
ts_status ts_device_run_advance(ts_device_run *run, ts_run_state *out_state);
void ts_device_run_get_call(const ts_device_run *run, ts_run_call *out);
const void *ts_device_run_operand(const ts_device_run *run, uint32_t i);
ts_status ts_device_run_answer(ts_device_run *run, ts_buffer *const *results, size_t count);
ts_status ts_device_run_end(ts_device_run *run, ts_buffer **out_results); /* `run` may be NULL */

/* The partitions that this process has: all without a carrier. */
int32_t ts_device_group_size(const ts_loaded *loaded, const ts_carrier *carrier);

/* A run of all partitions that this process has, the i-th on device i of the executable's client; as ts_group_create()
 * and what follows it. `args` has the arguments of the first, then those of the second, and so on. The pool and the
 * devices of the options are ignored. */
typedef struct ts_device_group ts_device_group;
ts_status ts_device_group_create(const ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                                 ts_device_group **out);
ts_status ts_device_group_advance(ts_device_group *group, ts_run_state *out_state);
ts_status ts_device_group_end(ts_device_group *group, ts_buffer **out_results); /* `group` may be NULL */

#endif
