/* Shared by the files of pjrt/: clients, memories and programs. Each memory and each program keeps its client alive.
 * Thread-safe.
 *
 * The device layer's client is a *door* to the plugin's client. If the process of an isolated plugin has ended,
 * the next operation opens another client behind the door. Memories of the old one are lost: their operations are
 * errors. Programs are compiled again from their text at their next run. */
#ifndef TS_PJRT_CLIENT_H
#define TS_PJRT_CLIENT_H

#include "device/platform.h"
#include "ir/stablehlo/stablehlo.h"
#include "jit/session/disk.h"
#include "pjrt/deadline.h"
#include "pjrt/types.h"
#include "pjrt/work.h"

#include <pthread.h>

/* A program of one reshape, for arguments that are views of another shape. */
typedef struct pj_reshape pj_reshape;

typedef struct pj_client {
  _Atomic int64_t refs;
  const pj_plugin *plugin;
  pj_handle *handle;
  pj_device *const *devices; /* the plugin's */
  int32_t device_count;
  char *identity; /* name and version of the plugin's platform; saved programs are only for the same */
  char *kind;     /* that, the file of the plugin and the kind of its devices: programs on disk are only for the same */
  int64_t limit;  /* bytes of tensors; INT64_MAX: none */
  int64_t device_limit; /* the plugin's; INT64_MAX: not known */
  _Atomic int64_t bytes, peak, allocations;
  ts_stablehlo_precision precision; /* of products and convolutions */
  pj_deadlines deadlines;           /* of operations in this process */
  _Atomic int late;                 /* operations whose deadline has passed, and which go on */
  _Atomic int place;                /* pj_place: where the elements of its buffers are */
  _Atomic bool lends_nothing;       /* the plugin does not read host memory in place, or cannot say for how long */
  _Atomic int left;                 /* loans that the plugin has not given back although it has no buffer of them */
  pthread_mutex_t lock;
  pj_reshape *reshapes; /* under the lock */
  pj_job ending;
} pj_client;

/* ---- open.c */
typedef struct pj_door pj_door;

void pj_door_open(const ts_open_options *options, ts_opened *out, ts_done done);
void pj_door_close(void *door);
void pj_door_get_memory(void *door, ts_memory_stats *out);
/* The client behind the door, retained; its process may have ended. */
pj_client *pj_door_present(pj_door *door);
/* The client, retained after a success. It may open another one, on a thread that may wait for that. */
ts_status pj_door_client(pj_door *door, pj_client **out);
/* The executable for the present client: `code` itself, or another one, compiled again, which is retained. */
typedef struct pj_code pj_code;
ts_status pj_door_code(pj_door *door, pj_code *code, pj_code **out);

/* ---- client.c */
/* How a client is opened. The texts are owned by it. */
typedef struct pj_opening {
  char *path;
  pj_named *options; /* the plugin's own */
  size_t option_count;
  int32_t device_count;
  int64_t limit;
  bool isolated;
  ts_stablehlo_precision precision;
  pj_deadlines deadlines;
} pj_opening;
ts_status pj_client_create(const pj_opening *opening, pj_client **out);
static inline void pj_client_retain(pj_client *client) { atomic_fetch_add(&client->refs, 1); }
/* The deadline of a run or a transfer, whose name is `what`. */
ts_status pj_client_begin(pj_client *client, pj_deadline *deadline, const char *what, ts_done done);
/* How long the plugin's compiler may take for that. */
pj_limit pj_client_compile_limit(pj_client *client, const char *what);
/* With the last reference the plugin's client is destroyed, on a thread of ours. */
void pj_client_release(pj_client *client);
/* Counts bytes that are about to be allocated, or refuses them. */
ts_status pj_client_reserve(pj_client *client, int64_t bytes);
void pj_client_unreserve(pj_client *client, int64_t bytes);

/* ---- memory */

typedef struct pj_loan pj_loan; /* share.c */

typedef struct pj_memory {
  _Atomic int refs; /* the device layer's, and one of each operation */
  pj_client *client;
  pj_buffer *buffer;
  int64_t bytes;
  int64_t counted;       /* bytes in the client's account; 0 for memory of others */
  void *_Atomic address; /* the elements; the plugin keeps them there until the end. NULL: not known */
  pj_loan *loan;         /* host memory that the buffer reads; NULL: none */
  int32_t device;
  ts_dtype dtype;
  ts_shape *shape; /* in the same block */
  pj_job ending;
} pj_memory;

/* The memory of elements in host memory, on a thread that may wait for the transfer. */
ts_status pj_memory_from_host(pj_client *client, int32_t device, const ts_type *type, const void *data,
                              pj_memory **out);
/* A memory without a buffer, with its bytes reserved. */
ts_status pj_memory_new(pj_client *client, int32_t device, ts_dtype dtype, const ts_shape *shape, pj_memory **out);
/* An error for a device that the client lacks, and for a type that plugins lack. */
ts_status pj_check_placement(const pj_client *client, int32_t device, ts_dtype dtype);
/* As pj_memory_new(), for bytes that others own: the client's account does not count them. */
ts_status pj_memory_new_uncounted(pj_client *client, int32_t device, ts_dtype dtype, const ts_shape *shape,
                                  pj_memory **out);
static inline void pj_memory_retain(pj_memory *memory) { atomic_fetch_add(&memory->refs, 1); }
void pj_memory_release(void *memory); /* NULL is allowed */
void pj_from_host(const ts_placement *placement, const void *data, void **out_memory, ts_done done);
void pj_to_host(void *memory, int64_t bytes, void *out, ts_done done);
void pj_copy(void *memory, const ts_placement *placement, void **out_memory, ts_done done);
void pj_view(const ts_placement *placement, void *data, void **out_memory, ts_done done);
void pj_address(void *memory, bool for_host, ts_address *out, ts_done done);

/* ---- share.c: elements that are read in place, of plugins in this process */

typedef enum pj_place { PJ_NOT_KNOWN, PJ_ON_CPU, PJ_ON_DEVICE } pj_place;

/* Where the elements are, for to_host; NULL if the host cannot read them. On a thread of the client. */
const void *pj_host_address(pj_memory *memory);
/* The same if it was found before. On any thread. */
const void *pj_known_host_address(const pj_memory *memory);
/* As platform.h's `address`, of a plugin in this process. On a thread of the client. */
ts_status pj_find_address(pj_memory *memory, bool for_host, ts_address *out);
/* With *out_known *out is that answer, without a call of the plugin. An error for an isolated plugin. On any thread. */
ts_status pj_known_address(const pj_memory *memory, bool for_host, ts_address *out, bool *out_known);
/* Makes the buffer of the memory on the owner's bytes, without a copy. On a thread of the client. */
ts_status pj_view_bytes(pj_memory *memory, const ts_owner *owner, void *data);
/* Ends the reference to the buffer's address and the loan of the memory. Called before the buffer is destroyed. */
void pj_memory_let_go(pj_memory *memory);

/* Asks where the elements of a buffer that was made from host memory are. If on a CPU, later buffers of the client may
 * read host memory in place. */
void pj_learn_place(const pj_memory *memory);
/* Makes the buffer of the memory on the owner's bytes; then nothing is left to wait for but the buffer. *out is false
 * where that cannot be: then the memory has no buffer, and the bytes are to be copied. */
ts_status pj_lend(pj_memory *memory, const ts_owner *owner, const void *data, bool *out);
pj_args pj_from_host_args(const pj_memory *memory, const void *data, int semantics);

/* ---- programs */

typedef struct pj_split pj_split; /* split.h */

struct pj_code {
  _Atomic int refs; /* of the program: the device layer's, and one of each run */
  pj_client *client;
  pj_loaded *loaded;
  pj_split *split; /* a program with callbacks is split into others; else NULL */
  size_t param_count, result_count;
  int32_t partitions;      /* for the plugin, partition i is a replica on device i */
  pj_memory **coordinates; /* the last parameter of each partition; NULL: the program does not read coordinates */
  int32_t *grid;           /* their elements */
  const ts_type **types;   /* Of the parameters, then of the results. */
  char *text;              /* The program, if it may have to be compiled again. */
  size_t text_size;
  ts_object saved; /* What the plugin loaded the executable from; empty if it compiled it. */
  pj_code *again;  /* For the next client. Under the door's lock. */
  pj_job ending;
};

void pj_compile(void *door, const ts_graph *graph, const ts_program_options *options, ts_program *out, ts_done done);
void pj_save(const void *program, ts_text *out, ts_done done);
ts_status pj_explain(const void *program, ts_text *out);
void pj_load(void *door, const ts_saved_program *saved, ts_program *out, ts_done done);
static inline void pj_code_retain(pj_code *code) { atomic_fetch_add(&code->refs, 1); }
void pj_release_program(void *program);
/* On a thread that may wait for the compiler. */
ts_status pj_compile_now(pj_client *client, const ts_graph *graph, ts_precision precision, pj_code **out);
/* Compiles the text of another client's program. Both have the same types. */
ts_status pj_compile_again(pj_client *client, const pj_code *code, pj_code **out);
void pj_code_destroy(pj_code *code); /* also that memory; NULL is allowed */

/* A program without an executable, with room for the types, which the caller fills. */
ts_status pj_code_new(pj_client *client, size_t params, size_t results, pj_code **out);
static inline ts_type *pj_code_type(const pj_code *code, size_t i) { return (ts_type *)(uintptr_t)code->types[i]; }
/* Loads what pj_code_append() wrote. */
ts_status pj_code_load(pj_code *code, const char *bytes, size_t size);
/* The plugin's executable as bytes. */
ts_status pj_code_append(const pj_code *code, ts_text *out);
void pj_code_describe(pj_code *code, ts_program *out);

/* ---- runs */

void pj_run(const ts_run_request *request, ts_done done);
/* One execution: the lists of each partition. `results` have room for the program's; on success *complete has an event
 * or NULL for each partition. */
typedef struct pj_launch {
  int32_t device; /* of a program of one partition */
  pj_buffer *const *const *args;
  pj_buffer **const *results;
  pj_event **complete;
} pj_launch;
ts_status pj_execute(const pj_code *code, const pj_launch *launch);
/* The buffer of `from` in the shape `to`, by a program of the client that is compiled once. The caller destroys it. The
 * operation with that deadline uses no memory of its caller's. */
ts_status pj_reshape_buffer(const pj_memory *from, const ts_shape *to, pj_deadline *deadline, pj_buffer **out);
void pj_reshapes_destroy(pj_client *client);

#endif
