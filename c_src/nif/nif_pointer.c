#include "nif/nif_pointer.h"

#include "nif/nif_job.h"

#include "base/system.h"
#include "tensor/mapping.h"

#include <stdint.h>
#include <string.h>

static ts_status get_form(ErlNifEnv *env, ERL_NIF_TERM type, ERL_NIF_TERM dims, ts_dtype *out_dtype,
                          ts_shape *out_shape) {
  TS_TRY(ts_nif_get_dtype(env, type, out_dtype));
  TS_TRY(ts_nif_get_shape(env, dims, out_shape));
  return ts_shape_check(out_shape, *out_dtype);
}

static ERL_NIF_TERM make_address(ErlNifEnv *env, const ts_address *at, int64_t bytes) {
  return enif_make_tuple3(env, enif_make_uint64(env, (uintptr_t)at->data), enif_make_int64(env, bytes),
                          at->is_on_host ? ts_atom.host_ : ts_atom.device_);
}

static ERL_NIF_TERM address_found(ErlNifEnv *env, ts_nif_job *job) {
  return make_address(env, &job->address, job->bytes);
}

/* Of a tensor that the host cannot read. The job takes over the tensor, which the caller has pinned. */
static ERL_NIF_TERM find_address(ErlNifEnv *env, ts_nif_tensor *tensor) {
  ts_nif_job *job;
  TS_NIF_TRY(env, ts_nif_job_new_of(env, tensor, address_found, &job));
  job->bytes = tensor->buffer->bytes;
  ErlNifEnv *before = ts_nif_calling(env);
  ts_device_address_start(tensor->buffer, &job->address, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

ERL_NIF_TERM ts_nif_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* address(Ref) -> {Address, Bytes, host | device} | {waiting, Job}: valid while the tensor is alive; the host can
   * read memory of the host */
  ts_nif_tensor *tensor;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  if (tensor->buffer->elsewhere) return find_address(env, tensor);
  ERL_NIF_TERM result = make_address(env, &(ts_address){tensor->buffer->data, true}, tensor->buffer->bytes);
  ts_buffer *root =
      (ts_buffer *)(uintptr_t)ts_buffer_root(tensor->buffer); /* The owner of the address may write to it. */
  atomic_store_explicit(&root->is_fixed, false, memory_order_relaxed);
  ts_nif_tensor_unpin(tensor);
  return result;
}

static ts_status check_address(const ts_device *device, uint64_t address, ts_dtype dtype, const ts_shape *shape) {
  int64_t bytes = ts_shape_bytes(shape, dtype);
  if (address % ts_dtype_size(dtype))
    return ts_error(TS_INVALID_ARGUMENT, "the address 0x%llx is no multiple of the %zu bytes of an element",
                    (unsigned long long)address, ts_dtype_size(dtype));
  if (!ts_device_waits(device)) return ts_system_check_readable((const void *)(uintptr_t)address, bytes);
  return address ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "0 is no address");
}

ERL_NIF_TERM ts_nif_from_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_address(Address, Type, Shape, {Client, Number}) -> Tensor | {waiting, Job}: the owner must keep the memory
   * while the tensor is used. For a plugin's device it is an address of that device. */
  ErlNifUInt64 address;
  ts_dtype dtype;
  ts_shape shape;
  ts_device *device;
  ts_buffer *buffer;
  (void)argc;
  if (!enif_get_uint64(env, argv[0], &address)) return ts_nif_error(env, ts_nif_expected(env, "an address", argv[0]));
  TS_NIF_TRY(env, get_form(env, argv[1], argv[2], &dtype, &shape));
  TS_NIF_TRY(env, ts_nif_get_device(env, argv[3], &device));
  TS_NIF_TRY(env, check_address(device, address, dtype, &shape));
  TS_NIF_TRY(env, ts_buffer_wrap(dtype, &shape, (void *)(uintptr_t)address, NULL, NULL, &buffer));
  return ts_nif_wrap_tensor(env, device, buffer);
}

static ts_mapping *find_shared(ts_mapping *newest, unsigned permissions) {
  while (newest && newest->permissions != permissions) newest = newest->older;
  return newest;
}

/* The tensor's copy in shared memory with the permissions: created once, and removed with the tensor. A copy whose
 * permissions changed would change the access of earlier users. */
static ts_status shared_copy(ts_nif_tensor *tensor, const ts_buffer *contents, unsigned permissions, ts_mapping **out) {
  ts_mapping *made, *newest = atomic_load(&tensor->shared);
  void *bytes;
  *out = find_shared(newest, permissions);
  if (*out) return TS_SUCCESS;
  TS_TRY(ts_device_bytes(contents, &bytes));
  TS_TRY(ts_mapping_create(bytes, contents->bytes, permissions, &made));
  do {
    *out = find_shared(newest, permissions);
    if (*out) {
      ts_mapping_release(made);
      return TS_SUCCESS;
    }
    made->older = newest;
  } while (!atomic_compare_exchange_strong(&tensor->shared, &newest, made));
  *out = made;
  return TS_SUCCESS;
}

static ERL_NIF_TERM share(ErlNifEnv *env, ts_nif_tensor *tensor, const ts_buffer *contents, unsigned permissions) {
  ts_mapping *mapping;
  TS_NIF_TRY(env, shared_copy(tensor, contents, permissions, &mapping));
  return enif_make_tuple2(env, ts_nif_binary(env, mapping->name, strlen(mapping->name)),
                          enif_make_int64(env, mapping->bytes));
}

ERL_NIF_TERM ts_nif_share(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* share(Ref, Permissions[, Contents]) -> {Name, Bytes}: a copy in shared memory, removed with the tensor. Contents is
   * a handle of the same elements in host memory, for a tensor elsewhere. */
  ts_nif_tensor *tensor, *contents;
  int64_t permissions;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "permissions of a file", &permissions));
  if (permissions < 0 || permissions > 07777)
    return ts_nif_error(env, ts_nif_expected(env, "permissions of a file", argv[1]));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_status status = ts_nif_tensor_get_pinned(env, argv[argc > 2 ? 2 : 0], &contents);
  ERL_NIF_TERM result =
      status ? ts_nif_error(env, status) : share(env, tensor, contents->buffer, (unsigned)permissions);
  if (!status) ts_nif_tensor_unpin(contents);
  ts_nif_tensor_unpin(tensor);
  return result;
}

ERL_NIF_TERM ts_nif_from_shared(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_shared(Name, Type, Shape, {Client, Number}) -> Tensor | {waiting, Job}: the same memory, not a copy */
  ErlNifBinary binary;
  char name[TS_MAPPING_NAME_BYTES] = "";
  ts_dtype dtype;
  ts_shape shape;
  ts_device *device;
  ts_mapping *mapping;
  ts_buffer *buffer;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &binary) || binary.size >= sizeof(name) || memchr(binary.data, 0, binary.size))
    return ts_nif_error(env, ts_nif_expected(env, "a name of shared memory", argv[0]));
  memcpy(name, binary.data, binary.size);
  TS_NIF_TRY(env, get_form(env, argv[1], argv[2], &dtype, &shape));
  TS_NIF_TRY(env, ts_nif_get_device(env, argv[3], &device));
  TS_NIF_TRY(env, ts_mapping_open(name, ts_shape_bytes(&shape, dtype), &mapping));
  ts_status status = ts_buffer_wrap(dtype, &shape, mapping->data, ts_mapping_release, mapping, &buffer);
  if (status) ts_mapping_release(mapping);
  TS_NIF_TRY(env, status);
  return ts_nif_wrap_tensor(env, device, buffer);
}
