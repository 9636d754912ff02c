/* Devices, clients, their tensors and programs, for front/ and nif/; docs/devices.md describes them. A platform
 * (platform.h) is behind them. Clients and devices are never freed, so their pointers are always valid. Thread-safe.
 *
 * Functions named ..._start begin an operation that ends with one call of `done`, as those of platform.h; their
 * arguments stay valid until then. Functions of the same name without _start wait, if they have to: not on a scheduler
 * of the VM, unless ts_device_waits() is false. */
#ifndef TS_DEVICE_DEVICE_H
#define TS_DEVICE_DEVICE_H

#include "base/slots.h"
#include "device/direct.h"
#include "device/host.h"
#include "device/platform.h"
#include "exec/pace.h"

enum { TS_MAX_CLIENTS = 256, TS_MAX_DEVICES = 64, TS_CLIENT_NAME_BYTES = 1024 };

typedef struct ts_client ts_client;
typedef struct ts_device ts_device;

/* An executable of a client. Immutable except `refs`. */
typedef struct ts_loaded {
  _Atomic uint32_t refs;
  bool is_short;      /* short enough for a normal scheduler, by its estimate */
  bool calls_back;    /* only a resumable run can run it */
  bool may_stop;      /* on a normal scheduler, too */
  bool coordinates;   /* the last parameter is a partition's coordinates: a group provides these */
  bool waits;         /* its runs are resumable ones, which wait for the device and hold no thread */
  int32_t partitions; /* that run it together; 1: a run by itself */
  ts_client *client;
  const ts_direct *direct;
  void *own; /* the platform's */
  size_t param_count, result_count;
  const ts_type *const *param_types, *const *result_types; /* owned by `own` */
  int64_t cost_ns;
  const struct ts_pace *pace; /* owned by `own`; NULL: its runs are not measured */
  _Atomic uint64_t number;    /* for profiles, once one has seen it */
} ts_loaded;

/* A run that waits, for the profile of its caller; empty without one. */
typedef struct ts_loaded_measure {
  struct ts_profile *profile;
  const ts_loaded *loaded;
  int64_t began_ns;
} ts_loaded_measure;
ts_loaded_measure ts_loaded_measure_begin(const ts_loaded *loaded, struct ts_profile *profile);
/* Counts the run if it is `done`. */
void ts_loaded_measure_end(const ts_loaded_measure *measure, bool done);

struct ts_device {
  ts_client *client;
  int32_t id;
  /* Bytes that handles hold: reported by the threads, and not yet reported. */
  _Atomic int64_t reported, peak;
  ts_counter unreported;
};

struct ts_client {
  char name[TS_CLIENT_NAME_BYTES];
  const ts_platform *platform;
  void *own; /* the platform's client, from its open(); NULL for the host's */
  /* Programs, tensors and operations, and 1 while the client is open; 0: the platform has closed it. Not counted for
   * the host's. */
  _Atomic int64_t uses;
  _Atomic bool is_closed; /* it begins nothing any more */
  _Atomic bool is_gone;   /* and its platform has closed it */
  int32_t index;          /* in the order of opening; `host` is 0 */
  int32_t group;          /* clients of one group run each other's executables */
  ts_pool *_Atomic pool;  /* NULL: the host's */
  _Atomic int threads;    /* at most this many for a run; 0: all */
  _Atomic int32_t device_count;
  ts_device *devices[TS_MAX_DEVICES];
  _Atomic int64_t reported, peak;
};

/* ---- clients */

typedef struct ts_client_options {
  const ts_platform *platform; /* NULL: the host's */
  int32_t device_count;        /* 0: one, or all of the platform */
  int64_t memory_limit;        /* bytes; negative: no limit of its own */
  int threads;                 /* at most this many for a run; 0: all; negative: unchanged */
  ts_settings settings;        /* for the platform when it opens the client; unused for one that is open */
} ts_client_options;

/* The client of that name, opened on first use. For an open client the platform must be the same; limits are set, and
 * the host's gets more devices. Devices are never removed. `name` and the options are copied. */
void ts_client_open_start(const char *name, const ts_client_options *options, ts_client **out, ts_done done);
ts_status ts_client_open(const char *name, const ts_client_options *options, ts_client **out);
/* The client begins nothing any more: no program, no tensor, no run. Its tensors can still be read. When the last of
 * them is gone, and the last program and run, the platform closes it, and its name may be opened again. The host's
 * cannot be closed. */
ts_status ts_client_close(ts_client *client);
ts_client *ts_client_find(const char *name); /* NULL when there is none */
ts_client *ts_client_host(void);
/* Device `id` of a client, or an error that says how many there are. */
ts_status ts_client_device(ts_client *client, int64_t id, ts_device **out);
/* Device 0 of the default client, for tensors and programs without a given device: the host's, unless another client
 * was set. */
ts_device *ts_device_default(void);
void ts_client_set_default(ts_client *client);

/* Platforms by name: the host's, and added ones; a platform is added before its first client is opened. */
enum { TS_MAX_PLATFORMS = 8 };
const ts_platform *ts_platform_find(const char *name); /* NULL when there is none */
ts_status ts_platform_add(const ts_platform *platform);
int ts_platforms(const ts_platform **out, int room); /* fills at most `room`, and counts all */

/* Whether the device's operations end later, and not on this thread. */
static inline bool ts_device_waits(const ts_device *device) {
  return !(device->client->platform->flags & TS_PLATFORM_HOST_MEMORY);
}

static inline ts_pool *ts_client_pool(ts_client *client) {
  ts_pool *pool = atomic_load_explicit(&client->pool, memory_order_acquire);
  return pool ? pool : ts_pool_default();
}
/* A client that shared the host's pool gets one of its own, for tensors made from now on. */
ts_status ts_client_set_limit(ts_client *client, int64_t bytes);
void ts_client_get_memory(ts_client *client, ts_memory_stats *out);
void ts_clients_trim(void); /* ts_pool_trim() of every client's pool */

/* ---- accounts */

/* Counts bytes that a handle on the device holds; negative when it ends. */
void ts_device_hold(ts_device *device, int64_t bytes);
int64_t ts_device_held(ts_device *device); /* exact */
int64_t ts_client_held(ts_client *client); /* exact, of all its devices */
int64_t ts_devices_held(void);             /* of all clients, exact */
int64_t ts_devices_told(void);             /* as reported by the threads, which costs nothing */
/* Exact bytes that the client's device `id` holds, and the most that it held. */
void ts_device_get_held(ts_client *client, int32_t id, int64_t *out_held, int64_t *out_peak);
/* Updates the client's peak with the bytes that it holds now; `held` as the caller has added it up. */
void ts_client_note_peak(ts_client *client, int64_t held);
/* Sets the peaks of the client and of its devices to the bytes that they hold now. */
void ts_client_reset_peak(ts_client *client);

/* ---- buffers */

/* "device 1 of client other", for messages. */
enum { TS_DEVICE_TEXT = TS_CLIENT_NAME_BYTES + 32 };
const char *ts_device_format(const ts_device *device, char *out, size_t size);
#define TS_DEVICE_STR(device) ts_device_format((device), (char[TS_DEVICE_TEXT]){0}, TS_DEVICE_TEXT)

/* The bytes of a buffer of any device; an error that names the device when the host cannot read them. */
ts_status ts_device_bytes(const ts_buffer *buffer, void **out);
/* The address of the elements of a buffer that the host cannot read, valid while the buffer or a view of it is alive.
 * An error where the platform has none. */
void ts_device_address_start(ts_buffer *buffer, ts_address *out, ts_done done);
/* A buffer with the same contents in host memory: the same one with a reference more, a buffer on the memory of the
 * platform, or a copy. Of memory of the platform the last `in_front` bytes before the elements can be read too. */
void ts_device_fetch_start(ts_buffer *buffer, size_t in_front, ts_buffer **out, ts_done done);
ts_status ts_device_fetch(ts_buffer *buffer, ts_buffer **out);
/* The first `bytes` bytes of a buffer of any device. */
void ts_device_read_start(ts_buffer *buffer, int64_t bytes, void *out, ts_done done);
ts_status ts_device_read(ts_buffer *buffer, int64_t bytes, void *out);
/* A buffer in host memory to be filled and then passed to ts_device_place. */
ts_status ts_device_stage(ts_device *device, ts_dtype dtype, const ts_shape *shape, ts_buffer **out);
/* Makes a buffer in host memory a buffer of the device: the same one, if the caller had the only reference, or a copy.
 * Takes the reference over, also on failure. */
void ts_device_place_start(ts_device *device, ts_buffer *host, ts_buffer **out, ts_done done);
ts_status ts_device_place(ts_device *device, ts_buffer *host, ts_buffer **out);
/* A buffer on the memory of `host`, of a device that the process waits for, whose platform may know that memory by an
 * address only. Takes the reference over, also on failure. An error where the platform cannot. */
void ts_device_wrap_start(ts_device *device, ts_buffer *host, ts_buffer **out, ts_done done);
/* The tensor on a device. The copy may be the host's memory itself, if no caller writes to it. */
void ts_device_copy_start(ts_device *device, ts_buffer *buffer, ts_buffer **out, ts_done done);
ts_status ts_device_copy(ts_device *device, ts_buffer *buffer, ts_buffer **out);
/* The same without a copy, where that can be: the same buffer with a reference more when it is there, or a view on
 * another device of a host client. Else *out is NULL, and ts_device_copy makes it. */
ts_status ts_device_view(ts_device *device, ts_buffer *buffer, ts_buffer **out);
/* Both: a view, else a copy. */
ts_status ts_device_move(ts_device *device, ts_buffer *buffer, ts_buffer **out);

/* ---- executables */

/* Compiles. The graph may be destroyed afterwards. NULL options: defaults. With `nonblocking`, *out is NULL without an
 * error when immediate compilation is not possible. */
void ts_loaded_create_start(ts_client *client, const ts_graph *graph, const ts_program_options *options,
                            ts_loaded **out, ts_done done);
ts_status ts_loaded_create(ts_client *client, const ts_graph *graph, const ts_program_options *options,
                           ts_loaded **out);
/* Bytes of the program, and the program of such bytes for the same platform; TS_UNIMPLEMENTED where it saves none. */
void ts_loaded_save_start(ts_loaded *loaded, ts_text *out, ts_done done);
ts_status ts_loaded_save(ts_loaded *loaded, ts_text *out);
void ts_loaded_load_start(ts_client *client, const ts_saved_program *saved, ts_loaded **out, ts_done done);
ts_status ts_loaded_load(ts_client *client, const ts_saved_program *saved, ts_loaded **out);
void ts_loaded_retain(ts_loaded *loaded);
void ts_loaded_release(ts_loaded *loaded); /* NULL is allowed */
void ts_loaded_get_stats(const ts_loaded *loaded, ts_program_stats *out);
ts_status ts_loaded_explain(const ts_loaded *loaded, ts_text *out);

/* Whether the next run stays on the caller's scheduler: as measured runs say, or the estimate. */
static inline bool ts_loaded_stays(const ts_loaded *loaded) {
  return loaded->pace ? ts_pace_stays(loaded->pace, ts_client_pool(loaded->client)) : loaded->is_short;
}
/* The time of a run: of all partitions, on one thread; INT64_MAX: unknown. */
static inline int64_t ts_loaded_cost_ns(const ts_loaded *loaded) {
  return loaded->pace ? ts_pace_cost_ns(loaded->pace) : loaded->cost_ns;
}

/* The device of a run: `bound`, or the device of the first argument on a device that can run the executable, or the
 * client's first. */
ts_device *ts_loaded_device(const ts_loaded *loaded, ts_device *bound, ts_run_args args);

/* As ts_executable_run(), on `options->device`, which may be NULL: then ts_loaded_device() chooses it. Sets the
 * device and pool of the options, and the number of threads that the client allows. Waits for programs that wait. */
ts_status ts_loaded_run(const ts_loaded *loaded, ts_run_args args, ts_run_options *options, ts_buffer **out_results);

/* A resumable run; like ts_execution_create() and its kin. A program that waits needs `ready` in its options:
 * ts_device_run_advance() begins the run (or continues it after a callback), and returns TS_RUN_WAITING unless that
 * part has ended already. Arguments on other devices are copied to the run's device. Without `ready` advance() waits.
 * Neither is `control` read after ts_device_run_end(). */
typedef struct ts_device_run ts_device_run;
ts_status ts_device_run_create(const ts_loaded *loaded, ts_run_args args, const ts_run_options *options,
                               ts_device_run **out);
ts_status ts_device_run_advance(ts_device_run *run, ts_run_state *out_state);
void ts_device_run_get_call(const ts_device_run *run, ts_run_call *out);
const void *ts_device_run_operand(const ts_device_run *run, uint32_t i);
ts_status ts_device_run_answer(ts_device_run *run, ts_buffer *const *results, size_t count);
ts_status ts_device_run_end(ts_device_run *run, ts_buffer **out_results); /* `run` may be NULL */

/* The partitions that this process has: all without a carrier. */
static inline int32_t ts_device_group_size(const ts_loaded *loaded, const ts_carrier *carrier) {
  return loaded->partitions / (carrier && carrier->ranks > 0 ? carrier->ranks : 1);
}

/* A run of all partitions that this process has, the i-th on device i of the executable's client; like
 * ts_group_create() and its kin. `args` has the arguments of the first partition, then of the second, and so on. The
 * pool and the devices of the options are ignored. */
typedef struct ts_device_group ts_device_group;
ts_status ts_device_group_create(const ts_loaded *loaded, ts_run_args args, const ts_group_options *options,
                                 ts_device_group **out);
ts_status ts_device_group_advance(ts_device_group *group, ts_run_state *out_state);
ts_status ts_device_group_end(ts_device_group *group, ts_buffer **out_results); /* `group` may be NULL */

#endif
