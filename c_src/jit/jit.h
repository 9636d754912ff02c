/* The JIT's interface, without LLVM types: turns kernel sources into native code, through a memory cache, the built-in
 * kernels, a disk cache and LLVM, in that order. Process-wide and thread-safe: one session, which starts on first use
 * and is never torn down. LLVM runs on the session's compile threads only. Concurrent requests for one kernel compile
 * it once. */
#ifndef TS_JIT_JIT_H
#define TS_JIT_JIT_H

#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

#include <stdatomic.h>
#include <stdint.h>

/* Executes work units [begin, end) of one kernel launch. The kernel's kind defines a unit, the contents of `args` and
 * the size of `scratch` (kernel.h, loop.h, gemm_emit.h). Kernels never fail, never allocate, and may run on many
 * threads at once on disjoint units. */
typedef void (*ts_kernel_fn)(const int64_t *args, int64_t begin, int64_t end, void *scratch);

struct ts_emit; /* jit/emit/emit.h */

/* A kernel to compile. `text` is canonical and complete: the emitter's result depends on it and on the target only, and
 * it is the kernel's key in the caches. */
typedef struct ts_kernel_source {
  const char *text;
  size_t length;
  /* Emits one external function called `name`, of type ts_kernel_fn, into the module of `emit`. TS_UNIMPLEMENTED
   * declines. Runs on a compile thread; `text` and `description` must not change until the kernel is ready. */
  ts_status (*emit)(struct ts_emit *emit, const char *name, const void *description);
  const void *description;
  /* Optional. Kernels of one family compute the same for operands with different layouts. */
  ts_status (*family)(const void *description, ts_hash128 *out);
  /* Optional: copies the description into one block (ts_free), for ts_jit_prefetch. */
  ts_status (*copy)(const void *description, void **out);
} ts_kernel_source;

/* Refcounted compiled code. */
typedef struct ts_kernel ts_kernel;

/* Fetches or compiles `count` kernels, in parallel, and waits. On success out[i]
 * is a reference for each source (release it); on failure there are no references. */
ts_status ts_jit_get_kernels(const ts_kernel_source *sources, size_t count, ts_kernel **out);
ts_kernel_fn ts_kernel_entry(const ts_kernel *kernel);
const char *ts_kernel_text(const ts_kernel *kernel);
ts_hash128 ts_kernel_hash(const ts_kernel *kernel);
size_t ts_kernel_code_bytes(const ts_kernel *kernel);
void ts_kernel_retain(ts_kernel *kernel);
/* Code without references stays in the memory cache until the cache's limit evicts it. */
void ts_kernel_release(ts_kernel *kernel);

/* True when ts_jit_get_kernels would not need LLVM: the kernel is in memory, built in, or in the disk cache. */
bool ts_jit_has(const ts_kernel_source *source);

/* Kernels that are requested one by one, compile in the background, and are taken all at once. For one thread. */
typedef struct ts_jit_batch {
  TS_VEC(struct ts_jit_request *) requests;
  uint64_t begin; /* session's count of ready kernels when the batch began */
  bool nonblocking;
  const _Atomic bool *cancel;
} ts_jit_batch;

/* With `nonblocking` the batch accepts only kernels that are in memory. When `cancel` becomes true, waiting ends; it
 * may be NULL. */
void ts_jit_batch_init(ts_jit_batch *batch, bool nonblocking, const _Atomic bool *cancel);
/* TS_CANCELLED when the batch is `nonblocking` and the kernel is not in memory. The memory that the source points to
 * must outlive the batch. */
ts_status ts_jit_batch_add(ts_jit_batch *batch, const ts_kernel_source *source);
/* Waits for all kernels. On success out[i] is a reference for the i-th source, and the batch is empty; on failure it is
 * unchanged. TS_CANCELLED when it was cancelled. */
ts_status ts_jit_batch_take(ts_jit_batch *batch, ts_kernel **out);
/* Drops the requests: kernels that no thread has begun are not compiled, unless another request needs them. Waits for
 * kernels that are being compiled, since LLVM cannot be interrupted. */
void ts_jit_batch_deinit(ts_jit_batch *batch);
/* Calls `visit` with the text of each kernel in memory that belongs to the family of `source` and was ready before the
 * batch began. So the choice of kernels does not depend on how fast the program's own kernels compile. A lock is held:
 * `visit` must not use the session. */
void ts_jit_batch_visit_family(const ts_jit_batch *batch, const ts_kernel_source *source,
                               void (*visit)(void *context, const char *text), void *context);
/* Compiles kernels in the background that may be used later. Returns at once and keeps no pointers of the caller's.
 * Leaves out sources without `copy`, and sources that find the queue full. */
void ts_jit_prefetch(const ts_kernel_source *sources, size_t count);

typedef struct ts_jit_stats {
  int64_t compiled;   /* kernels that LLVM compiled and a request waited for */
  int64_t prefetched; /* kernels that were compiled in the background and not waited for */
  int64_t built_in;   /* kernels that were built into the library */
  int64_t loaded;     /* kernels that came from the disk cache */
  int64_t reused;     /* requests answered from memory */
  int64_t evicted;
  int64_t kernels;    /* in memory now */
  int64_t code_bytes; /* size of the code of `kernels` */
  int64_t compile_ns; /* spent in LLVM, all threads */
  int64_t link_ns;
  int64_t failed_threads; /* stopped for good after a fatal LLVM error */
  int64_t background;     /* kernels that wait for the background thread, and the one that it compiles */
} ts_jit_stats;
void ts_jit_get_stats(ts_jit_stats *out);

/* Settings; call before the first kernel or at any time later. */
typedef struct ts_jit_options {
  /* NULL: $TESSERA_CACHE_DIR, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; "": no disk cache */
  const char *cache_dir;
  int64_t disk_cache_bytes;     /* 0: 256 MB */
  int64_t memory_cache_kernels; /* unreferenced and referenced together; 0: 4096 */
} ts_jit_options;
void ts_jit_configure(const ts_jit_options *options);
/* Fails when a variable of the environment that the core reads, TESSERA_ISA or TESSERA_DUMP, has a value that it does
 * not know. */
ts_status ts_jit_check_environment(void);
/* Evicts every unreferenced kernel from memory. */
void ts_jit_trim(void);
/* For a process that is about to exit: waits some seconds at most until no thread is in LLVM. Threads that need LLVM
 * afterwards block for ever. */
void ts_jit_stop(void);

/* Test hook: the next `count` compiles fail as if LLVM had called its fatal error handler. */
void ts_jit_inject_fatal(int count);

#endif
