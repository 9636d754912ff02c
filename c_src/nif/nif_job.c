#include "nif/nif_job.h"

#include <string.h>

/* BEGUN -> WAITING by ts_nif_job_return, or -> ENDED by the operation, which sends the message if the job was WAITING.
 * -> TAKEN by the one call that makes the result. */
typedef enum phase { BEGUN, WAITING, ENDED, TAKEN } phase;

static ErlNifResourceType *job_type;

/* Of the NIF in this thread that may be called back. */
static _Thread_local ErlNifEnv *calling;

ErlNifEnv *ts_nif_calling(ErlNifEnv *env) {
  ErlNifEnv *before = calling;
  calling = env;
  return before;
}

void ts_nif_send(const ErlNifPid *to, ErlNifEnv *message, ERL_NIF_TERM term) {
  (void)enif_send(calling, to, message, term);
}

/* ---- the resource ---- */

static void down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor) {
  (void)env, (void)pid, (void)monitor;
  atomic_store(&((ts_nif_job *)object)->cancel, true);
}

static void destroy(ErlNifEnv *env, void *object) {
  ts_nif_job *job = object;
  (void)env;
  if (job->builder) enif_release_resource(job->builder);
  if (job->tensor) {
    ts_nif_tensor_unpin(job->tensor);
    enif_release_resource(job->tensor);
  }
  ts_graph_destroy(job->graph);
  ts_buffer_release(job->buffer);
  ts_buffer_release(job->made);
  ts_loaded_release(job->loaded);
  ts_status_free(job->status);
  ts_free(job->key);
}

bool ts_nif_job_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  ErlNifResourceTypeInit init = {.dtor = destroy, .down = down};
  job_type = enif_open_resource_type_x(env, "tessera_job", &init, flags, NULL);
  return job_type != NULL;
}

/* ---- jobs ---- */

ts_status ts_nif_job_new(ErlNifEnv *env, ERL_NIF_TERM (*finish)(ErlNifEnv *env, ts_nif_job *job), ts_nif_job **out) {
  ErlNifPid self;
  ts_nif_job *job = enif_alloc_resource(job_type, sizeof *job);
  if (!job) return ts_error_no_memory();
  memset(job, 0, sizeof *job);
  job->finish = finish;
  job->watching = enif_self(env, &self) && enif_monitor_process(env, job, &self, &job->monitor) == 0;
  if (job->watching) job->caller = self;
  *out = job;
  return TS_SUCCESS;
}

ts_status ts_nif_job_new_of(ErlNifEnv *env, ts_nif_tensor *tensor, ERL_NIF_TERM (*finish)(ErlNifEnv *, ts_nif_job *),
                            ts_nif_job **out) {
  ts_status status = ts_nif_job_new(env, finish, out);
  if (status) {
    ts_nif_tensor_unpin(tensor);
    return status;
  }
  (*out)->tensor = tensor;
  enif_keep_resource(tensor);
  return TS_SUCCESS;
}

void ts_nif_job_drop(ts_nif_job *job) { enif_release_resource(job); }

static void send_ready(ts_nif_job *job) {
  ErlNifEnv *env = enif_alloc_env();
  if (!env) return;
  ts_nif_send(&job->caller, env, enif_make_tuple2(env, ts_atom.ready_, enif_make_resource(env, job)));
  enif_free_env(env);
}

static void ended(ts_status status, void *arg) {
  ts_nif_job *job = arg;
  job->status = status;
  if (atomic_exchange(&job->phase, ENDED) == WAITING) send_ready(job);
  enif_release_resource(job);
}

/* The operation has a reference. Until ts_nif_job_return it may end on this thread. */
ts_done ts_nif_job_done(ts_nif_job *job) {
  enif_keep_resource(job);
  return (ts_done){ended, job};
}

static ERL_NIF_TERM take(ErlNifEnv *env, ts_nif_job *job) {
  if (job->watching) (void)enif_demonitor_process(env, job, &job->monitor);
  job->watching = false;
  if (!job->status) return job->finish(env, job);
  ts_status status = job->status;
  job->status = NULL;
  return ts_nif_error(env, status);
}

ERL_NIF_TERM ts_nif_job_return(ErlNifEnv *env, ts_nif_job *job) {
  int begun = BEGUN;
  ERL_NIF_TERM result = enif_make_tuple2(env, ts_atom.waiting_, enif_make_resource(env, job));
  if (!atomic_compare_exchange_strong(&job->phase, &begun, WAITING)) {
    atomic_store(&job->phase, TAKEN);
    result = take(env, job);
  }
  enif_release_resource(job);
  return result;
}

bool ts_nif_job_resume(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out) {
  void *object;
  int at_end = ENDED;
  if (!enif_get_resource(env, term, job_type, &object)) return false;
  ts_nif_job *job = object;
  if (atomic_compare_exchange_strong(&job->phase, &at_end, TAKEN))
    *out = take(env, job);
  else
    *out = ts_nif_error(env, ts_error(TS_FAILED_PRECONDITION, "the operation has not ended, or its result was taken"));
  return true;
}

/* ---- tensors on devices ---- */

static ERL_NIF_TERM tensor_made(ErlNifEnv *env, ts_nif_job *job) {
  ERL_NIF_TERM term;
  ts_buffer *made = job->made;
  job->made = NULL;
  TS_NIF_TRY(env, ts_nif_tensor_make(env, made, &term));
  return ts_nif_with_pressure(env, term);
}

/* On a device that the process does not wait for. */
static ts_status place_here(ErlNifEnv *env, ts_device *device, ts_buffer *host, ERL_NIF_TERM *out) {
  TS_TRY(ts_device_place(device, host, &host));
  return ts_nif_tensor_make(env, host, out);
}

typedef void (*beginning)(ts_device *device, ts_buffer *host, ts_buffer **out, ts_done done);

/* Takes the buffer over. */
static ERL_NIF_TERM begin(ErlNifEnv *env, ts_device *device, ts_buffer *host, beginning start) {
  ts_nif_job *job;
  ts_status status = ts_nif_job_new(env, tensor_made, &job);
  if (status) {
    ts_buffer_release(host);
    return ts_nif_error(env, status);
  }
  ErlNifEnv *before = ts_nif_calling(env);
  start(device, host, &job->made, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

ERL_NIF_TERM ts_nif_place_tensor(ErlNifEnv *env, ts_device *device, ts_buffer *host) {
  ERL_NIF_TERM term;
  if (ts_device_waits(device)) return begin(env, device, host, ts_device_place_start);
  TS_NIF_TRY(env, place_here(env, device, host, &term));
  return ts_nif_with_pressure(env, term);
}

/* No elements are allocated here, so that there is no pressure. */
ERL_NIF_TERM ts_nif_wrap_tensor(ErlNifEnv *env, ts_device *device, ts_buffer *host) {
  ERL_NIF_TERM term;
  if (ts_device_waits(device)) return begin(env, device, host, ts_device_wrap_start);
  TS_NIF_TRY(env, place_here(env, device, host, &term));
  return term;
}
