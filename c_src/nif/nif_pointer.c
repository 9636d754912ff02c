#include "nif/nif_pointer.h"

#include "base/system.h"
#include "tensor/mapping.h"

#include <stdint.h>
#include <string.h>

static ts_status get_pinned(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out) {
  if (!ts_nif_tensor_get(env, term, out)) return ts_nif_expected(env, "a tensor", term);
  return ts_nif_tensor_pin(*out);
}

static ts_status get_form(ErlNifEnv *env, ERL_NIF_TERM type, ERL_NIF_TERM dims, ts_dtype *out_dtype,
                          ts_shape *out_shape) {
  TS_TRY(ts_nif_get_dtype(env, type, out_dtype));
  TS_TRY(ts_nif_get_shape(env, dims, out_shape));
  return ts_shape_check(out_shape, *out_dtype);
}

ERL_NIF_TERM ts_nif_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* address(Ref) -> {Address, Bytes}: valid while the tensor is alive */
  ts_nif_tensor *tensor;
  (void)argc;
  TS_NIF_TRY(env, get_pinned(env, argv[0], &tensor));
  void *bytes;
  ts_status status = ts_device_bytes(tensor->buffer, &bytes);
  int64_t count = tensor->buffer->bytes;
  ts_buffer *root =
      (ts_buffer *)(uintptr_t)ts_buffer_root(tensor->buffer); /* the owner of the address may write to it */
  atomic_store_explicit(&root->is_fixed, false, memory_order_relaxed);
  ts_nif_tensor_unpin(tensor);
  TS_NIF_TRY(env, status);
  return enif_make_tuple2(env, enif_make_uint64(env, (uintptr_t)bytes), enif_make_int64(env, count));
}

static ts_status check_address(uint64_t address, ts_dtype dtype, const ts_shape *shape) {
  int64_t bytes = ts_shape_bytes(shape, dtype);
  if (address % ts_dtype_size(dtype))
    return ts_error(TS_INVALID_ARGUMENT, "the address 0x%llx is no multiple of the %zu bytes of an element",
                    (unsigned long long)address, ts_dtype_size(dtype));
  return ts_system_check_readable((const void *)(uintptr_t)address, bytes);
}

ERL_NIF_TERM ts_nif_from_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_address(Address, Type, Shape) -> Tensor: the owner must keep the memory while the tensor is used */
  ErlNifUInt64 address;
  ts_dtype dtype;
  ts_shape shape;
  ts_buffer *buffer;
  ERL_NIF_TERM term;
  (void)argc;
  if (!enif_get_uint64(env, argv[0], &address)) return ts_nif_error(env, ts_nif_expected(env, "an address", argv[0]));
  TS_NIF_TRY(env, get_form(env, argv[1], argv[2], &dtype, &shape));
  TS_NIF_TRY(env, check_address(address, dtype, &shape));
  TS_NIF_TRY(env, ts_buffer_wrap(dtype, &shape, (void *)(uintptr_t)address, NULL, NULL, &buffer));
  buffer->device = ts_client_host()->devices[0];
  TS_NIF_TRY(env, ts_nif_tensor_make(env, buffer, &term));
  return term;
}

static ts_mapping *find_shared(ts_mapping *newest, unsigned permissions) {
  while (newest && newest->permissions != permissions) newest = newest->older;
  return newest;
}

/* The tensor's copy in shared memory with these permissions: created once, and removed with the tensor. A copy whose
 * permissions changed would change the access of earlier users. */
static ts_status shared_copy(ts_nif_tensor *tensor, unsigned permissions, ts_mapping **out) {
  ts_mapping *made, *newest = atomic_load(&tensor->shared);
  void *bytes;
  *out = find_shared(newest, permissions);
  if (*out) return TS_SUCCESS;
  TS_TRY(ts_device_bytes(tensor->buffer, &bytes));
  TS_TRY(ts_mapping_create(bytes, tensor->buffer->bytes, permissions, &made));
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

ERL_NIF_TERM ts_nif_share(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* share(Ref, Permissions) -> {Name, Bytes}: a copy in shared memory, removed with the tensor */
  ts_nif_tensor *tensor;
  ts_mapping *mapping;
  int64_t permissions;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "permissions of a file", &permissions));
  if (permissions < 0 || permissions > 07777)
    return ts_nif_error(env, ts_nif_expected(env, "permissions of a file", argv[1]));
  TS_NIF_TRY(env, get_pinned(env, argv[0], &tensor));
  ts_status status = shared_copy(tensor, (unsigned)permissions, &mapping);
  ERL_NIF_TERM result = status ? ts_nif_error(env, status)
                               : enif_make_tuple2(env, ts_nif_binary(env, mapping->name, strlen(mapping->name)),
                                                  enif_make_int64(env, mapping->bytes));
  ts_nif_tensor_unpin(tensor);
  return result;
}

ERL_NIF_TERM ts_nif_from_shared(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_shared(Name, Type, Shape) -> Tensor: the same memory, not a copy */
  ErlNifBinary binary;
  char name[TS_MAPPING_NAME_BYTES] = "";
  ts_dtype dtype;
  ts_shape shape;
  ts_mapping *mapping;
  ts_buffer *buffer;
  ERL_NIF_TERM term;
  (void)argc;
  if (!enif_inspect_binary(env, argv[0], &binary) || binary.size >= sizeof(name) || memchr(binary.data, 0, binary.size))
    return ts_nif_error(env, ts_nif_expected(env, "a name of shared memory", argv[0]));
  memcpy(name, binary.data, binary.size);
  TS_NIF_TRY(env, get_form(env, argv[1], argv[2], &dtype, &shape));
  TS_NIF_TRY(env, ts_mapping_open(name, ts_shape_bytes(&shape, dtype), &mapping));
  ts_status status = ts_buffer_wrap(dtype, &shape, mapping->data, ts_mapping_release, mapping, &buffer);
  if (status) ts_mapping_release(mapping);
  TS_NIF_TRY(env, status);
  buffer->device = ts_client_host()->devices[0];
  TS_NIF_TRY(env, ts_nif_tensor_make(env, buffer, &term));
  return term;
}
