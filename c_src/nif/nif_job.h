/* Operations of devices that a process waits for without a scheduler: a NIF begins one and returns {waiting, Job}. Its
 * end sends {ready, Job} to the process, which calls run_resume(Job) for the result. An operation that ends at once
 * gives its result at once. A job monitors its process, and is cancelled when that dies; its memory lives until the
 * operation has ended. */
#ifndef TS_NIF_JOB_H
#define TS_NIF_JOB_H

#include "nif/nif_graph.h"
#include "nif/nif_tensor.h"

typedef struct ts_nif_job {
  _Atomic int phase;
  _Atomic bool cancel; /* for the operation */
  bool watching;
  ErlNifPid caller;
  ErlNifMonitor monitor;
  ts_status status; /* of the operation */
  /* Makes the result, or consumes the status. Not called when the process has died. */
  ERL_NIF_TERM (*finish)(ErlNifEnv *env, struct ts_nif_job *job);
  /* The job's objects; each may be NULL. */
  ts_nif_builder *builder;
  ts_graph *graph;
  ts_nif_tensor *tensor; /* pinned */
  ts_buffer *buffer, *made;
  ts_loaded *loaded;
  ts_client *client;
  ts_device *device;
  ts_address address;
  ERL_NIF_TERM name; /* an atom */
  void *key;
  size_t key_bytes;
  int64_t bytes;
} ts_nif_job;

bool ts_nif_job_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* A job of the calling process. The caller sets the job's objects. Then it either begins the operation, with
 * ts_nif_job_done(), and calls ts_nif_job_return(); or ts_nif_job_drop(). */
ts_status ts_nif_job_new(ErlNifEnv *env, ERL_NIF_TERM (*finish)(ErlNifEnv *env, ts_nif_job *job), ts_nif_job **out);
ts_done ts_nif_job_done(ts_nif_job *job);
ERL_NIF_TERM ts_nif_job_return(ErlNifEnv *env, ts_nif_job *job);
void ts_nif_job_drop(ts_nif_job *job);
/* The same, with a tensor that the caller has pinned: the job takes the pin over, also on failure. */
ts_status ts_nif_job_new_of(ErlNifEnv *env, ts_nif_tensor *tensor, ERL_NIF_TERM (*finish)(ErlNifEnv *, ts_nif_job *),
                            ts_nif_job **out);

/* False when `term` is no job. Else the result of run_resume(). */
bool ts_nif_job_resume(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out);

/* Callbacks of devices may come on a thread of the VM that executes a NIF, or on any other: sends the message from
 * either. */
void ts_nif_send(const ErlNifPid *to, ErlNifEnv *message, ERL_NIF_TERM term);
/* Around what may call ts_nif_send() on this thread. */
ErlNifEnv *ts_nif_calling(ErlNifEnv *env);

/* The tensor of a buffer in host memory (taken over) on that device: at once, or {waiting, Job}. */
ERL_NIF_TERM ts_nif_place_tensor(ErlNifEnv *env, ts_device *device, ts_buffer *host);
/* The same on that memory itself, without a copy. */
ERL_NIF_TERM ts_nif_wrap_tensor(ErlNifEnv *env, ts_device *device, ts_buffer *host);

#endif
