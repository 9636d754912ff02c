#include "base/cancel.h"
#include "base/log.h"
#include "base/system.h"
#include "jit/session/builtin.h"
#include "jit/session/jit_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_KERNELS 4096
#define FAMILY_BUCKETS 1024

/* A PENDING kernel is being compiled; its waiters hold references. READY kernels without references form the LRU list.
 * FAILED ones are out of the map and are freed with their last reference. */
typedef enum kernel_state { PENDING, READY, FAILED } kernel_state;

struct ts_kernel {
  kernel_state state;
  int64_t references;
  ts_kernel *newer, *older; /* in the LRU list */
  bool has_family;
  ts_hash128 family;
  ts_kernel *relative;        /* READY ones with a family: next in the bucket */
  uint64_t number;            /* READY ones: number of kernels that became READY before */
  ts_compile_job *background; /* PENDING: its job while it has no waiter */
  ts_module module;
  size_t length;
  char *text;
  char name[TS_KERNEL_NAME_BYTES];
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t settled; /* some kernel has left PENDING */
  ts_map kernels;         /* by text */
  ts_kernel *newest, *oldest;
  ts_kernel *families[FAMILY_BUCKETS];
  int64_t limit;
  uint64_t settles; /* number of kernels that ever became READY */
  ts_jit_stats stats;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER, .settled = PTHREAD_COND_INITIALIZER, .limit = DEFAULT_KERNELS};

/* ---- kernels: creation, the LRU list, references. The lock is held. ---- */

static void kernel_free(ts_kernel *kernel) {
  ts_module_unload(&kernel->module);
  ts_free(kernel->text);
  ts_free(kernel);
}

static ts_status kernel_create(const ts_kernel_source *source, ts_kernel **out) {
  TS_TRY(TS_NEW(out));
  ts_status status = ts_alloc(source->length + 1, (void **)&(*out)->text);
  if (status) {
    ts_free(*out);
    return status;
  }
  memcpy((*out)->text, source->text, source->length);
  (*out)->length = source->length;
  (*out)->references = 1;
  ts_kernel_make_name((*out)->text, (*out)->length, (*out)->name);
  if (source->family) (*out)->has_family = ts_status_consume_ok(source->family(source->description, &(*out)->family));
  return TS_SUCCESS;
}

static ts_kernel **bucket_of(ts_hash128 family) { return &session.families[family.lo % FAMILY_BUCKETS]; }

static void family_insert(ts_kernel *kernel) {
  if (!kernel->has_family) return;
  ts_kernel **bucket = bucket_of(kernel->family);
  kernel->relative = *bucket;
  *bucket = kernel;
}

static void family_remove(ts_kernel *kernel) {
  if (!kernel->has_family) return;
  ts_kernel **at = bucket_of(kernel->family);
  while (*at != kernel) at = &(*at)->relative;
  *at = kernel->relative;
}

static void lru_insert(ts_kernel *kernel) {
  kernel->older = session.newest;
  kernel->newer = NULL;
  *(session.newest ? &session.newest->newer : &session.oldest) = kernel;
  session.newest = kernel;
}

static void lru_remove(ts_kernel *kernel) {
  *(kernel->newer ? &kernel->newer->older : &session.newest) = kernel->older;
  *(kernel->older ? &kernel->older->newer : &session.oldest) = kernel->newer;
  kernel->newer = NULL;
  kernel->older = NULL;
}

static void evict_down_to(int64_t limit) {
  while (session.stats.kernels > limit && session.oldest) {
    ts_kernel *kernel = session.oldest;
    lru_remove(kernel);
    family_remove(kernel);
    ts_map_remove(&session.kernels, kernel->text, kernel->length);
    session.stats.evicted++;
    session.stats.kernels--;
    session.stats.code_bytes -= (int64_t)kernel->module.size;
    kernel_free(kernel);
  }
}

static void retain(ts_kernel *kernel) {
  if (kernel->references++ == 0) lru_remove(kernel);
}

static void release(ts_kernel *kernel) {
  if (--kernel->references > 0) return;
  if (kernel->state == FAILED) {
    kernel_free(kernel);
  } else {
    lru_insert(kernel);
    evict_down_to(session.limit);
  }
}

static void settle_ready(ts_kernel *kernel, const ts_module *module) {
  kernel->module = *module;
  kernel->state = READY;
  kernel->number = session.settles++;
  kernel->background = NULL;
  family_insert(kernel);
  session.stats.kernels++;
  session.stats.code_bytes += (int64_t)module->size;
  evict_down_to(session.limit);
  pthread_cond_broadcast(&session.settled);
}

static void settle_failed(ts_kernel *kernel) {
  kernel->state = FAILED;
  kernel->background = NULL;
  ts_map_remove(&session.kernels, kernel->text, kernel->length);
  pthread_cond_broadcast(&session.settled);
}

/* ---- making one kernel ---- */

/* Its address must not change until its kernel has left PENDING. */
typedef struct ts_jit_request {
  ts_kernel_source source;
  ts_kernel *kernel; /* a reference */
  bool owner;        /* this request compiles the kernel; else another one does */
  ts_status status;
  ts_compile_job job;
} request;

static ts_status link_kernel(const ts_kernel *kernel, const ts_object *object, ts_module *out) {
  int64_t start = ts_system_ns();
  TS_TRY(ts_module_load(object, kernel->name, out));
  pthread_mutex_lock(&session.lock);
  session.stats.link_ns += ts_system_ns() - start;
  pthread_mutex_unlock(&session.lock);
  return TS_SUCCESS;
}

/* Makes the kernel READY from an object and counts it; false when the object does not load. */
static bool settle_from(ts_kernel *kernel, const ts_object *object, int64_t *counter) {
  ts_module module;
  if (!ts_status_consume_ok(link_kernel(kernel, object, &module))) return false;
  pthread_mutex_lock(&session.lock);
  ++*counter;
  settle_ready(kernel, &module);
  pthread_mutex_unlock(&session.lock);
  return true;
}

static bool take_builtin(ts_kernel *kernel) {
  ts_object object;
  if (!ts_builtin_find(ts_target_host()->cpu, kernel->text, kernel->length, &object)) return false;
  return settle_from(kernel, &object, &session.stats.built_in);
}

static bool read_from_disk(ts_kernel *kernel) {
  ts_object object;
  if (!ts_disk_read(kernel->text, kernel->length, &object)) return false;
  bool settled = settle_from(kernel, &object, &session.stats.loaded);
  ts_free(object.data);
  return settled;
}

/* Runs on a compile thread. Once the kernel has left PENDING, the request may be gone. The disk is written before that,
 * so that a process that ends with its last kernel still leaves all of them in the cache. */
static void on_compiled(ts_compile_job *job) {
  request *r = (request *)((char *)job - offsetof(request, job));
  ts_kernel *kernel = r->kernel;
  ts_module module;
  ts_status status = job->status;
  if (!status) status = link_kernel(kernel, &job->object, &module);
  if (!status) ts_disk_write(kernel->text, kernel->length, &job->object);
  ts_free(job->object.data);

  pthread_mutex_lock(&session.lock);
  session.stats.compile_ns += job->nanoseconds;
  if (status) {
    r->status = status;
    settle_failed(kernel);
  } else {
    *(kernel->background ? &session.stats.prefetched : &session.stats.compiled) += 1;
    settle_ready(kernel, &module);
  }
  pthread_mutex_unlock(&session.lock);
}

/* ---- requests ---- */

/* Finds the kernel, or creates it and owns its compilation. */
static ts_status enter(request *r) {
  const ts_kernel_source *source = &r->source;
  pthread_mutex_lock(&session.lock);
  ts_status status = TS_SUCCESS;
  ts_kernel *kernel = ts_map_get(&session.kernels, source->text, source->length);
  r->owner = !kernel;
  if (kernel) {
    retain(kernel);
    if (kernel->background) ts_compile_hurry(kernel->background);
    kernel->background = NULL;
    session.stats.reused += kernel->state == READY;
    r->kernel = kernel;
  } else if (!(status = kernel_create(source, &kernel))) {
    status = ts_map_put(&session.kernels, source->text, source->length, kernel);
    if (status) {
      kernel_free(kernel);
    } else {
      r->kernel = kernel;
    }
  }
  pthread_mutex_unlock(&session.lock);
  return status;
}

static ts_status enter_known(request *r) {
  pthread_mutex_lock(&session.lock);
  ts_kernel *kernel = ts_map_get(&session.kernels, r->source.text, r->source.length);
  bool known = kernel && kernel->state == READY;
  if (known) retain(kernel);
  if (known) r->kernel = kernel;
  session.stats.reused += known;
  pthread_mutex_unlock(&session.lock);
  return known ? TS_SUCCESS : ts_error(TS_CANCELLED, "a kernel has to be made first");
}

static void start(request *r) {
  if (take_builtin(r->kernel) || read_from_disk(r->kernel)) return;
  r->job = (ts_compile_job){.source = &r->source, .name = r->kernel->name, .done = on_compiled};
  ts_compile_submit(&r->job);
}

static void wait_settled(const ts_kernel *kernel, const _Atomic bool *cancel) {
  while (kernel->state == PENDING && !ts_cancelled(cancel)) pthread_cond_wait(&session.settled, &session.lock);
}

/* Releases the reference when the kernel failed. */
static kernel_state wait_for(request *r, const _Atomic bool *cancel) {
  pthread_mutex_lock(&session.lock);
  wait_settled(r->kernel, cancel);
  kernel_state state = r->kernel->state;
  if (state == FAILED) {
    release(r->kernel);
    r->kernel = NULL;
  }
  pthread_mutex_unlock(&session.lock);
  return state;
}

/* Another request's failure may have had a cause of its own (out of memory, for example), so this one then compiles the
 * kernel itself. */
static ts_status finish(request *r, const _Atomic bool *cancel) {
  for (;;) {
    kernel_state state = wait_for(r, cancel);
    if (state == READY) return TS_SUCCESS;
    if (state == PENDING) return ts_check_cancelled(cancel, "the compile");
    if (r->owner) return r->status;
    TS_TRY(enter(r));
    if (r->owner) start(r);
  }
}

/* Cancels a kernel that no thread has begun: other waiters compile it themselves. */
static void withdraw(request *r) {
  if (!ts_compile_withdraw(&r->job)) return;
  pthread_mutex_lock(&session.lock);
  settle_failed(r->kernel);
  pthread_mutex_unlock(&session.lock);
}

/* Waits for a running job, which refers to the request. */
static void drop(request *r) {
  pthread_mutex_lock(&session.lock);
  if (r->owner) wait_settled(r->kernel, NULL);
  if (r->owner) ts_status_free(r->status);
  release(r->kernel);
  pthread_mutex_unlock(&session.lock);
}

/* ---- batches ---- */

void ts_jit_batch_init(ts_jit_batch *batch, bool nonblocking, const _Atomic bool *cancel) {
  *batch = (ts_jit_batch){.nonblocking = nonblocking, .cancel = cancel};
  pthread_mutex_lock(&session.lock);
  batch->begin = session.settles;
  pthread_mutex_unlock(&session.lock);
}

static ts_status add(ts_jit_batch *batch, request *r) {
  if (batch->nonblocking) return enter_known(r);
  TS_TRY(enter(r));
  if (r->owner) start(r);
  return TS_SUCCESS;
}

ts_status ts_jit_batch_add(ts_jit_batch *batch, const ts_kernel_source *source) {
  request *r;
  TS_TRY(TS_VEC_RESERVE(&batch->requests, batch->requests.count + 1));
  TS_TRY(TS_NEW(&r));
  r->source = *source;
  ts_status status = add(batch, r);
  if (status) {
    ts_free(r);
  } else {
    batch->requests.data[batch->requests.count++] = r;
  }
  return status;
}

ts_status ts_jit_batch_take(ts_jit_batch *batch, ts_kernel **out) {
  for (size_t i = 0; i < batch->requests.count; i++) TS_TRY(finish(batch->requests.data[i], batch->cancel));
  for (size_t i = 0; i < batch->requests.count; i++) {
    out[i] = batch->requests.data[i]->kernel;
    ts_free(batch->requests.data[i]);
  }
  batch->requests.count = 0;
  return TS_SUCCESS;
}

void ts_jit_batch_deinit(ts_jit_batch *batch) {
  for (size_t i = 0; i < batch->requests.count; i++)
    if (batch->requests.data[i]->owner && batch->requests.data[i]->kernel) withdraw(batch->requests.data[i]);
  for (size_t i = 0; i < batch->requests.count; i++) {
    if (batch->requests.data[i]->kernel) drop(batch->requests.data[i]);
    ts_free(batch->requests.data[i]);
  }
  TS_VEC_FREE(&batch->requests);
}

ts_status ts_jit_get_kernels(const ts_kernel_source *sources, size_t count, ts_kernel **out) {
  ts_jit_batch batch;
  ts_jit_batch_init(&batch, false, NULL);
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; !status && i < count; i++) status = ts_jit_batch_add(&batch, &sources[i]);
  if (!status) status = ts_jit_batch_take(&batch, out);
  ts_jit_batch_deinit(&batch);
  for (size_t i = 0; status && i < count; i++) out[i] = NULL;
  return status;
}

/* ---- in the background ---- */

/* True when a compiled object for that text exists. */
static bool is_made(const ts_kernel_source *source) {
  ts_object object;
  return ts_builtin_find(ts_target_host()->cpu, source->text, source->length, &object) ||
         ts_disk_has(source->text, source->length);
}

bool ts_jit_has(const ts_kernel_source *source) {
  pthread_mutex_lock(&session.lock);
  const ts_kernel *kernel = ts_map_get(&session.kernels, source->text, source->length);
  bool pending = kernel && kernel->state == PENDING, ready = kernel && !pending;
  pthread_mutex_unlock(&session.lock);
  return ready || (!pending && is_made(source));
}

void ts_jit_batch_visit_family(const ts_jit_batch *batch, const ts_kernel_source *source,
                               void (*visit)(void *context, const char *text), void *context) {
  ts_hash128 family;
  if (!source->family || !ts_status_consume_ok(source->family(source->description, &family))) return;
  pthread_mutex_lock(&session.lock);
  for (const ts_kernel *k = *bucket_of(family); k; k = k->relative) {
    if (k->number < batch->begin && k->family.lo == family.lo && k->family.hi == family.hi) visit(context, k->text);
  }
  pthread_mutex_unlock(&session.lock);
}

/* A background request; owns what its source points to until the job is done. */
typedef struct prefetch {
  request request;
  char *text;
  void *description;
} prefetch;

static void prefetch_free(prefetch *p) {
  ts_free(p->text);
  ts_free(p->description);
  ts_free(p);
}

static void on_prefetched(ts_compile_job *job) {
  prefetch *p = (prefetch *)((char *)job - offsetof(prefetch, request.job));
  on_compiled(job);
  ts_status_free(p->request.status);
  ts_kernel_release(p->request.kernel);
  prefetch_free(p);
}

static ts_status prefetch_create(const ts_kernel_source *source, prefetch **out) {
  TS_TRY(TS_NEW(out));
  prefetch *p = *out;
  ts_status status = ts_alloc(source->length + 1, (void **)&p->text);
  if (!status) status = source->copy(source->description, &p->description);
  if (status) {
    prefetch_free(p);
    return status;
  }
  memcpy(p->text, source->text, source->length);
  p->text[source->length] = 0;
  p->request.source = *source;
  p->request.source.text = p->text;
  p->request.source.description = p->description;
  return TS_SUCCESS;
}

/* The lock is held, so that any thread that finds the kernel PENDING finds its job in the queue. */
static ts_status prefetch_start(prefetch *p) {
  ts_kernel *kernel;
  TS_TRY(kernel_create(&p->request.source, &kernel));
  ts_status status = ts_map_put(&session.kernels, kernel->text, kernel->length, kernel);
  if (status) {
    kernel_free(kernel);
    return status;
  }
  p->request.kernel = kernel;
  p->request.owner = true;
  p->request.job = (ts_compile_job){.source = &p->request.source, .name = kernel->name, .done = on_prefetched};
  kernel->background = &p->request.job;
  if (ts_compile_submit_background(&p->request.job)) return TS_SUCCESS;
  settle_failed(kernel);
  release(kernel);
  return ts_error(TS_RESOURCE_EXHAUSTED, "no room for background compiles");
}

static void prefetch_one(const ts_kernel_source *source) {
  prefetch *p;
  if (!source->copy || !ts_status_consume_ok(prefetch_create(source, &p))) return;
  pthread_mutex_lock(&session.lock);
  bool started = !ts_map_get(&session.kernels, source->text, source->length) && ts_status_consume_ok(prefetch_start(p));
  pthread_mutex_unlock(&session.lock);
  if (!started) prefetch_free(p);
}

void ts_jit_prefetch(const ts_kernel_source *sources, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!is_made(&sources[i])) prefetch_one(&sources[i]);
  }
}

/* ---- kernels, for their holders ---- */

ts_kernel_fn ts_kernel_entry(const ts_kernel *kernel) { return kernel->module.entry; }
const char *ts_kernel_text(const ts_kernel *kernel) { return kernel->text; }
ts_hash128 ts_kernel_hash(const ts_kernel *kernel) { return ts_hash(kernel->text, kernel->length); }
size_t ts_kernel_code_bytes(const ts_kernel *kernel) { return kernel->module.size; }

void ts_kernel_retain(ts_kernel *kernel) {
  pthread_mutex_lock(&session.lock);
  retain(kernel);
  pthread_mutex_unlock(&session.lock);
}

void ts_kernel_release(ts_kernel *kernel) {
  pthread_mutex_lock(&session.lock);
  release(kernel);
  pthread_mutex_unlock(&session.lock);
}

/* ---- the session as a whole ---- */

void ts_jit_get_stats(ts_jit_stats *out) {
  pthread_mutex_lock(&session.lock);
  *out = session.stats;
  pthread_mutex_unlock(&session.lock);
  out->failed_threads = ts_compile_failed_threads();
  out->background = ts_compile_background_jobs();
}

ts_status ts_jit_check_environment(void) {
  const char *dump = getenv("TESSERA_DUMP");
  if (dump) TS_TRY(ts_dump_check("TESSERA_DUMP", dump));
  return ts_target_check();
}

void ts_jit_configure(const ts_jit_options *options) {
  ts_disk_configure(options->cache_dir, options->disk_cache_bytes);
  pthread_mutex_lock(&session.lock);
  session.limit = options->memory_cache_kernels > 0 ? options->memory_cache_kernels : DEFAULT_KERNELS;
  evict_down_to(session.limit);
  pthread_mutex_unlock(&session.lock);
}

void ts_jit_trim(void) {
  pthread_mutex_lock(&session.lock);
  evict_down_to(0);
  pthread_mutex_unlock(&session.lock);
}
