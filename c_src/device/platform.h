/* The interface of a platform: what code must provide so that tensors are on its devices and programs run there. Its
 * types are its own: an implementation includes nothing of exec/. docs/devices.md describes the contract, and
 * test/c/test_platform.c checks it of any implementation.
 *
 * Functions that take a `ts_done` begin an operation. They return soon, and may be called by any thread, also by a
 * scheduler of the VM. The operation ends with exactly one call of `done`: by any thread, and possibly before the
 * function returns. The function's pointer arguments stay valid until then, and the results are in place by then. An
 * operation that fails leaves nothing in its results. */
#ifndef TS_DEVICE_PLATFORM_H
#define TS_DEVICE_PLATFORM_H

#include "base/bits.h"
#include "base/cancel.h"
#include "base/text.h"
#include "ir/graph.h"

/* The end of an operation. `call` takes the status over. It does not block, and may begin other operations. */
typedef struct ts_done {
  void (*call)(ts_status status, void *arg);
  void *arg;
} ts_done;

static inline void ts_done_call(ts_done done, ts_status status) { done.call(status, done.arg); }

/* Capabilities of a platform. Without a flag, the functions and fields that need it are not used. */
typedef enum ts_platform_flag {
  TS_PLATFORM_HOST_MEMORY = 1, /* its tensors are in host memory, and `direct` computes on the thread that calls */
  TS_PLATFORM_SAVES = 2,       /* save and load */
  TS_PLATFORM_CALLS_BACK = 4,  /* programs may have callbacks */
  TS_PLATFORM_GROUPS = 8,      /* several devices of a client run the partitions of one program */
  TS_PLATFORM_CANCELS = 16,    /* operations look at `cancel`; without it they end by themselves */
  TS_PLATFORM_ADDRESSES = 32   /* address and view */
} ts_platform_flag;

typedef struct ts_device_description {
  int32_t id;
  char kind[64];        /* the make of the device, for people */
  int64_t memory_bytes; /* 0: unknown */
} ts_device_description;

typedef struct ts_memory_stats {
  int64_t live, peak, pooled; /* bytes of tensors, the most since a reset, and kept for later */
  int64_t limit, allocations;
} ts_memory_stats;

/* An option of a client that only its platform knows. */
typedef enum ts_setting_kind {
  TS_SETTING_TEXT,
  TS_SETTING_INTEGER,
  TS_SETTING_FLOAT,
  TS_SETTING_BOOLEAN
} ts_setting_kind;
typedef struct ts_setting {
  const char *name;
  ts_setting_kind kind;
  const char *text;
  int64_t integer; /* also of a boolean */
  double number;
} ts_setting;
typedef struct ts_settings {
  const ts_setting *items;
  size_t count;
} ts_settings;

typedef struct ts_open_options {
  const char *name;     /* of the client */
  int32_t device_count; /* at least this many; 0: as many as the platform has */
  int64_t memory_limit; /* bytes; negative: none given */
  ts_settings settings; /* valid until the client is open; a platform refuses those that it does not know */
} ts_open_options;

/* What open() makes. */
typedef struct ts_opened {
  void *client; /* for all functions below; not NULL */
  int32_t device_count;
} ts_opened;

/* Of products and convolutions, on devices that have several. */
typedef enum ts_precision {
  TS_PRECISION_OF_CLIENT,
  TS_PRECISION_HIGHEST,
  TS_PRECISION_HIGH,
  TS_PRECISION_DEFAULT
} ts_precision;

typedef struct ts_program_options {
  const _Atomic bool *cancel; /* once it is true, compilation may end with TS_CANCELLED. May be NULL. */
  bool no_fusion;             /* each op by itself */
  bool no_simplify;           /* without the simplifying passes */
  bool nonblocking;       /* where done() is called before compile() returns, and no program without an error says that
                             compiling would take long */
  ts_precision precision; /* platforms may ignore it */
} ts_program_options;

/* A compiled program. The types are owned by `program`. */
typedef struct ts_program {
  void *program;
  size_t param_count, result_count; /* of one partition */
  const ts_type *const *param_types, *const *result_types;
  int32_t partitions;         /* that run it together; 1: a run by itself */
  bool coordinates;           /* the last parameter is a partition's coordinates: run() provides these */
  bool calls_back;            /* has callbacks */
  bool is_short;              /* of platforms with `direct`: short enough for a normal scheduler, by its estimate */
  const struct ts_pace *pace; /* the same by measured time, and what that is (exec/pace.h); NULL: not measured */
  bool may_stop;              /* of those with a pace: runs on a normal scheduler have to be resumable */
  int64_t cost_ns;            /* estimated; INT64_MAX: unknown */
} ts_program;

typedef struct ts_program_stats {
  int64_t steps, kernels, kernels_compiled; /* compiled: not found in any cache */
  int64_t temp_bytes;                       /* of one run, without arguments and results */
  int64_t result_bytes;
  int64_t live_peak_bytes;              /* largest sum of live bytes over the steps, arguments included */
  int64_t planned_peak_bytes;           /* total of the plan: arguments, results, temporaries */
  int64_t cost_ns;                      /* as in ts_program */
  int64_t pass_ns, lower_ns, kernel_ns; /* time of each part of compilation */
} ts_program_stats;

/* What save() made. */
typedef struct ts_saved_program {
  const void *bytes;
  size_t size;
} ts_saved_program;

/* The owner of host memory, with counted references. Only the holder of the only reference may write to it. */
typedef struct ts_owner {
  void *object; /* NULL: the memory is the caller's, and valid until `done` */
  void (*retain)(void *object);
  void (*release)(void *object); /* by any thread */
} ts_owner;

/* The place and type of a new tensor. */
typedef struct ts_placement {
  void *client;
  int32_t device;
  ts_dtype dtype;
  const ts_shape *shape;
  int64_t bytes;
  ts_owner owner; /* of the host memory. A platform that retains it may read the memory instead of a copy */
} ts_placement;

/* Where the elements of a memory are. */
typedef struct ts_address {
  void *data;
  bool is_on_host; /* the host can read them there; else it is an address of the device */
} ts_address;

/* A callback of a program. The platform calls request->call(), and the receiver calls `answer` exactly once, on any
 * thread, possibly before call() returns. The call is valid until the answer. */
typedef struct ts_program_call {
  uint32_t index; /* of the op callback */
  uint32_t operand_count, result_count;
  const ts_type *const *operand_types, *const *result_types;
  const void *const *operands; /* in host memory, read-only */
  /* Takes the status over; an error ends the run with it. Success copies the results, in host memory, of the types
   * above. */
  void (*answer)(struct ts_program_call *call, ts_status status, const void *const *results);
} ts_program_call;

typedef struct ts_run_request {
  const void *program;
  void *client;
  const int32_t *devices; /* of each partition, */
  int32_t device_count;   /* the program's number of partitions */
  /* On those devices: the arguments of the first partition, then of the second, and so on. A memory that was made with
   * another shape of as many bytes is viewed as its parameter's. */
  void *const *args;
  size_t arg_count; /* of all partitions together, without coordinates */
  /* The memory of these arguments may become a result's. If the run succeeds, it has released them or made them
   * results. If the run fails, arguments are as they were, except donated arguments that the run may have overwritten:
   * the platform sets the bits of these arguments in `spent`. No other argument is the same memory. */
  ts_bits donated;
  uint64_t *spent;
  /* Once its flag `cancel` is true, the run may end with TS_CANCELLED; `pause` is never set. May be NULL. Not read any
   * more after a callback was answered by an error. */
  const ts_run_control *control;
  int threads;    /* at most this many; 0: all. Platforms may ignore it. */
  void **results; /* as the arguments; a result is a new reference, also where it is an argument */
  void (*call)(ts_program_call *call, void *arg); /* for programs that call back; may be NULL for others */
  void *call_arg;
} ts_run_request;

struct ts_direct;

typedef struct ts_platform {
  const char *name;
  uint32_t flags;
  const struct ts_direct *direct; /* the short path of the host (direct.h); NULL for all others */

  /* ---- clients */
  /* The devices that a client could have, without opening one: fills at most `room`, and counts all. Does not block
   * longer than it takes to look. */
  ts_status (*enumerate)(ts_device_description *out, int32_t room, int32_t *out_count);
  void (*open)(const ts_open_options *options, ts_opened *out, ts_done done);
  /* Ends a client that has no memory, no program and no operation any more. */
  void (*close)(void *client);
  void (*get_memory)(void *client, ts_memory_stats *out); /* optional */

  /* ---- programs: immutable; any number of runs at a time */
  void (*compile)(void *client, const ts_graph *graph, const ts_program_options *options, ts_program *out,
                  ts_done done);
  /* Bytes from which load() makes the same program for a client of the same version of the platform. */
  void (*save)(const void *program, ts_text *out, ts_done done);
  void (*load)(void *client, const ts_saved_program *saved, ts_program *out, ts_done done);
  void (*release_program)(void *program);                        /* once no run uses it */
  void (*get_stats)(const void *program, ts_program_stats *out); /* optional */
  ts_status (*explain)(const void *program, ts_text *out);       /* optional */

  /* ---- memory: the elements of one tensor, immutable */
  void (*from_host)(const ts_placement *placement, const void *data, void **out_memory, ts_done done);
  /* The first bytes of it. */
  void (*to_host)(void *memory, int64_t bytes, void *out, ts_done done);
  /* To a device of the same client, without the host. */
  void (*copy)(void *memory, const ts_placement *placement, void **out_memory, ts_done done);
  void (*release_memory)(void *memory); /* once no operation uses it */

  /* ---- addresses */
  /* The elements are dense and row-major there, until release_memory. */
  /* With `for_host` an address that the host cannot read is not looked for, and out->data may be NULL. */
  void (*address)(void *memory, bool for_host, ts_address *out, ts_done done);
  /* A memory on the bytes at `data`. The platform retains the placement's owner, and the client's account does not
   * count them. */
  void (*view)(const ts_placement *placement, void *data, void **out_memory, ts_done done);

  /* ---- runs */
  void (*run)(const ts_run_request *request, ts_done done);
} ts_platform;

#endif
