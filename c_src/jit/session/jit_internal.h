/* The shared part of the session: objects, loaded code, compile jobs, the disk cache. jit_compile.c compiles sources to
 * objects on the threads of jit_threads.c, jit_link.c turns objects into code, jit_session.c keeps kernels. No lock is
 * held while LLVM runs. */
#ifndef TS_JIT_JIT_INTERNAL_H
#define TS_JIT_JIT_INTERNAL_H

#include "jit/jit.h"
#include "jit/session/disk.h"
#include "jit/session/target.h"

#define TS_KERNEL_NAME_BYTES 64

/* The name of the function in the object of the kernel with that text. */
void ts_kernel_make_name(const char *text, size_t length, char out[TS_KERNEL_NAME_BYTES]);

/* ---- jit_link.c: any thread ---- */

/* One mapping, read-only and executable. */
typedef struct ts_module {
  void *base;
  size_t size;
  ts_kernel_fn entry;
  struct ts_gdb_entry *debug; /* with TESSERA_GDB only */
} ts_module;

/* Loads an object and finds `name` in it. The object may be freed afterwards. */
ts_status ts_module_load(const ts_object *object, const char *name, ts_module *out);
void ts_module_unload(ts_module *module);

/* ---- jit_debug.c: perf and gdb, any thread ---- */

/* Appends to /tmp/perf-<pid>.map when TESSERA_PERF is set. */
void ts_debug_note_perf(const char *name, const void *start, size_t size);
/* Tells gdb when TESSERA_GDB is set; NULL otherwise. `image`, a copy of the object with section addresses, is consumed.
 */
bool ts_debug_wants_gdb(void);
struct ts_gdb_entry *ts_debug_register(void *image, size_t size);
void ts_debug_unregister(struct ts_gdb_entry *entry);

/* ---- jit_compile.c: one compiler per compile thread ---- */

typedef struct ts_compiler ts_compiler;
/* `target` must outlive the compiler. */
ts_status ts_compiler_create(const ts_target *target, ts_compiler **out);
void ts_compiler_destroy(ts_compiler *compiler);
ts_status ts_compiler_run(ts_compiler *compiler, const ts_kernel_source *source, const char *name, ts_object *out);
/* Sends LLVM's fatal errors to `handler`, which must not return on a compile thread. Once per process. */
void ts_compiler_set_fatal_handler(void (*handler)(const char *reason));

/* ---- jit_threads.c ---- */

/* Owned by its submitter, which may not access it until `done` was called, and may free it then. */
typedef struct ts_compile_job {
  const ts_kernel_source *source;
  const char *name;
  void (*done)(struct ts_compile_job *job); /* on a compile thread, or on the submitter's if no thread can be started */
  ts_status status;                         /* the result: error, or the object */
  ts_object object;
  int64_t nanoseconds;
  struct ts_compile_job *next;
} ts_compile_job;

void ts_compile_submit(ts_compile_job *job);
/* Takes back a job that no thread has begun; false otherwise. */
bool ts_compile_withdraw(ts_compile_job *job);
/* For jobs without a waiter: they run on a thread of low priority. False when its queue is full: the job was not
 * accepted, and `done` is not called. `done` is called on a compile thread. */
bool ts_compile_submit_background(ts_compile_job *job);
/* Moves a background job that has got a waiter to the foreground queue. It must not have been done. */
void ts_compile_hurry(ts_compile_job *job);
int64_t ts_compile_failed_threads(void);
/* Background jobs that have not ended. */
int64_t ts_compile_background_jobs(void);

/* ---- helpers ---- */

#endif
