/* The JIT without LLVM in sight: turns kernel sources into native code, through
 * a memory cache, the kernels that Tessera was built with, a disk cache and LLVM, in that order. Process-wide and
 * thread-safe: one session, started on first use and never torn down. LLVM runs
 * on the session's own compile threads only. Concurrent requests for one kernel
 * compile it once. */
#ifndef TS_JIT_JIT_H
#define TS_JIT_JIT_H

#include "base/map.h"
#include "base/status.h"
#include "base/vec.h"

#include <stdatomic.h>
#include <stdint.h>

/* Work units [begin, end) of one kernel launch. What a unit is, what `args`
 * holds and what `scratch` must offer is said by the kernel's kind (kernel.h,
 * loop.h, gemm_emit.h). Kernels never fail, never allocate, and may run on many
 * threads at once on disjoint units. */
typedef void (*ts_kernel_fn)(const int64_t *args, int64_t begin, int64_t end, void *scratch);

struct ts_emit; /* jit/emit.h */

/* What to compile. `text` is canonical and complete: the emitter's result
 * depends on it (and on the target) alone, it names the kernel in the caches. */
typedef struct ts_kernel_source {
  const char *text;
  size_t length;
  /* Emits one external function called `name`, of type ts_kernel_fn, into the module of `emit`.
   * TS_UNIMPLEMENTED declines. Runs on a compile thread; `text` and `description` must stay as they are until
   * the kernel is there. */
  ts_status (*emit)(struct ts_emit *emit, const char *name, const void *description);
  const void *description;
  /* Optional. Kernels of one family do the same for operands that lie differently. */
  ts_status (*family)(const void *description, ts_hash128 *out);
  /* Optional: copies the description into one block (ts_free), for ts_jit_prefetch. */
  ts_status (*copy)(const void *description, void **out);
} ts_kernel_source;

/* Refcounted compiled code. */
typedef struct ts_kernel ts_kernel;

/* Fetches or compiles `count` kernels, in parallel, and waits. On success out[i]
 * is a reference for each source (release it); on failure none is. */
ts_status ts_jit_get_kernels(const ts_kernel_source *sources, size_t count, ts_kernel **out);
ts_kernel_fn ts_kernel_entry(const ts_kernel *kernel);
const char *ts_kernel_text(const ts_kernel *kernel);
ts_hash128 ts_kernel_hash(const ts_kernel *kernel);
size_t ts_kernel_code_bytes(const ts_kernel *kernel);
void ts_kernel_retain(ts_kernel *kernel);
/* Code without references stays cached until the cache's bound asks for its room. */
void ts_kernel_release(ts_kernel *kernel);

/* True when ts_jit_get_kernels would not need LLVM: the kernel is in memory, built in, or there is a file for it. */
bool ts_jit_has(const ts_kernel_source *source);

/* Kernels that are asked for one by one, and are made while their asker goes on; taken all at once. One thread's. */
typedef struct ts_jit_batch {
  TS_VEC(struct ts_jit_request *) requests;
  uint64_t begin; /* kernels that settled before it */
  bool at_hand;
  const _Atomic bool *cancel;
} ts_jit_batch;

/* With `at_hand` it takes kernels that are in memory, and no others. When `cancel` is set nothing is waited for any
 * more; it may be NULL. */
void ts_jit_batch_init(ts_jit_batch *batch, bool at_hand, const _Atomic bool *cancel);
/* TS_CANCELLED when the kernel is not at hand and has to be. What the source points to must outlive the batch. */
ts_status ts_jit_batch_add(ts_jit_batch *batch, const ts_kernel_source *source);
/* True when taking it now would wait. */
bool ts_jit_batch_is_pending(const ts_jit_batch *batch);
/* For an asker who works instead of waiting: compile threads that wait for its CPU go to another one. */
void ts_jit_make_way(void);
/* Waits. On success out[i] is a reference for the i-th source, and the batch is empty; on failure it is as before.
 * TS_CANCELLED when it was. */
ts_status ts_jit_batch_take(ts_jit_batch *batch, ts_kernel **out);
/* Drops what is in it: no thread begins with a kernel of it any more, unless somebody else wants it. Waits for those
 * of its kernels that are in LLVM, which cannot be interrupted. */
void ts_jit_batch_deinit(ts_jit_batch *batch);
/* Calls `visit` with the text of each kernel in memory that is of the family of `source` and was there before the batch
 * began: what a program is made of does not depend on how fast its own kernels come. A lock is held: `visit` may not
 * use the session. */
void ts_jit_batch_visit_family(const ts_jit_batch *batch, const ts_kernel_source *source,
                               void (*visit)(void *context, const char *text), void *context);
/* Compiles in the background what may be wanted later; returns at once and keeps nothing of the caller's. Sources
 * without `copy`, and those that there is no room for, are left out. */
void ts_jit_prefetch(const ts_kernel_source *sources, size_t count);

typedef struct ts_jit_stats {
  int64_t compiled;   /* kernels that LLVM made and somebody waited for */
  int64_t prefetched; /* those that nobody waited for */
  int64_t built_in;   /* kernels that Tessera was built with */
  int64_t loaded;     /* kernels that came from the disk cache */
  int64_t reused;     /* requests answered from memory */
  int64_t evicted;
  int64_t kernels;    /* in memory now */
  int64_t code_bytes; /* of those */
  int64_t compile_ns; /* spent in LLVM, all threads */
  int64_t link_ns;
  int64_t failed_threads; /* parked after a fatal LLVM error */
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
/* Drops every unreferenced kernel from memory. */
void ts_jit_trim(void);
/* Starts LLVM and the compile threads in the background, to hide their start-up. */
void ts_jit_warm_up(void);
/* For a process that is about to exit: waits until LLVM is left, some seconds at most. Whoever needs it afterwards
 * waits for good. */
void ts_jit_stop(void);

/* Test hook: the next `count` compiles fail as if LLVM had called its fatal error handler. */
void ts_jit_inject_fatal(int count);

#endif
