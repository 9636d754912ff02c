/* The devices of tensors, and copies to others. */
#include "nif/nif_job.h"

ERL_NIF_TERM ts_nif_device_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* device(Ref) -> {Client, Number} */
  ts_nif_tensor *tensor;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ERL_NIF_TERM device = ts_nif_device(env, tensor->buffer->device);
  ts_nif_tensor_unpin(tensor);
  return device;
}

static ERL_NIF_TERM handle_made(ErlNifEnv *env, ts_nif_job *job) {
  ERL_NIF_TERM ref;
  ts_buffer *made = job->made;
  job->made = NULL;
  TS_NIF_TRY(env, ts_nif_tensor_make_handle(env, made, &ref));
  return ts_nif_with_pressure(env, ref);
}

/* From or to a device that the process waits for. The job takes over the tensor, which the caller has pinned. */
static ERL_NIF_TERM copy_elsewhere(ErlNifEnv *env, ts_nif_tensor *tensor, ts_device *device) {
  ts_nif_job *job;
  TS_NIF_TRY(env, ts_nif_job_new_of(env, tensor, handle_made, &job));
  ErlNifEnv *before = ts_nif_calling(env);
  ts_device_copy_start(device, tensor->buffer, &job->made, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

static ERL_NIF_TERM to_device_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_tensor *tensor;
  ts_device *device;
  ts_buffer *moved;
  ERL_NIF_TERM ref;
  (void)argc;
  bool copy = enif_is_identical(argv[2], ts_atom.true_);
  TS_NIF_TRY(env, ts_nif_get_device(env, argv[1], &device));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_status status =
      copy ? ts_device_copy(device, tensor->buffer, &moved) : ts_device_move(device, tensor->buffer, &moved);
  ts_nif_tensor_unpin(tensor);
  if (!status) status = ts_nif_tensor_make_handle(env, moved, &ref);
  return status ? ts_nif_error(env, status) : ts_nif_with_pressure(env, ref);
}

ERL_NIF_TERM ts_nif_to_device(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* to_device(Ref, {Client, Number}, Copy :: boolean()) -> Ref | {pressure, Ref} | {waiting, Job}: the same handle if
   * the tensor is there and need not be copied; a view on another device of its client; else a copy */
  ts_nif_tensor *tensor;
  ts_device *device;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_device(env, argv[1], &device));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  bool copy = enif_is_identical(argv[2], ts_atom.true_), is_there = !copy && tensor->buffer->device == device;
  bool is_long = tensor->buffer->bytes > (int64_t)TS_NIF_LONG_COPY;
  if (!is_there && (tensor->buffer->elsewhere || ts_device_waits(device))) return copy_elsewhere(env, tensor, device);
  ts_nif_tensor_unpin(tensor);
  if (is_there) return argv[0];
  if (is_long) return enif_schedule_nif(env, "to_device", ERL_NIF_DIRTY_JOB_CPU_BOUND, to_device_dirty, argc, argv);
  return to_device_dirty(env, argc, argv);
}
