#include "nif/run/nif_args.h"

#include <string.h>

ts_status ts_nif_args_init(ts_nif_args *args, size_t count) {
  args->count = 0;
  args->donates = false;
  args->few_donated = 0;
  args->donated = &args->few_donated;
  args->checked = false;
  args->block = NULL;
  args->buffers = args->few_buffers;
  args->tensors = args->few_tensors;
  if (count <= sizeof args->few_buffers / sizeof *args->few_buffers) return TS_SUCCESS;
  size_t words = ts_bits_words(count), each = sizeof(ts_buffer *) + sizeof(ts_nif_tensor *);
  if (count > SIZE_MAX / 32) return ts_error_no_memory();
  TS_TRY(ts_alloc(count * each + words * sizeof *args->donated, &args->block));
  args->buffers = args->block;
  args->tensors = (ts_nif_tensor **)(args->buffers + count);
  args->donated = (uint64_t *)(args->tensors + count);
  return TS_SUCCESS;
}

ts_status ts_nif_number_buffer(const ts_number *number, const ts_type *type, ts_buffer **out) {
  ts_scalar scalar;
  *out = NULL;
  if (type->shape.rank != 0)
    return ts_error(TS_INVALID_ARGUMENT, "expected %s, got a number", TS_SHAPE_STR(type->dtype, &type->shape));
  TS_TRY(ts_number_scalar(number, type->dtype, &scalar));
  TS_TRY(ts_buffer_create(ts_pool_default(), type->dtype, &type->shape, out));
  ts_scalar_store(type->dtype, scalar, (*out)->data);
  return TS_SUCCESS;
}

void ts_nif_args_add_buffer(ts_nif_args *args, ts_buffer *buffer) {
  args->tensors[args->count] = NULL;
  args->buffers[args->count++] = buffer;
}

ts_status ts_nif_args_add_tensor(ts_nif_args *args, ts_nif_tensor *tensor, bool donate) {
  if (donate && !atomic_load(&tensor->deallocated) && ts_nif_tensor_take(tensor)) {
    ts_bits_set(args->donated, args->count);
    args->donates = true;
  } else {
    TS_TRY(ts_nif_tensor_pin(tensor));
  }
  args->tensors[args->count] = tensor;
  args->buffers[args->count++] = tensor->buffer;
  return TS_SUCCESS;
}

ts_status ts_nif_args_add(ErlNifEnv *env, ERL_NIF_TERM term, const ts_type *type, bool donate, ts_nif_args *args) {
  ERL_NIF_TERM ref;
  ts_nif_tensor *tensor;
  ts_number number;
  ts_buffer *buffer;
  if (ts_nif_tessera_get(env, term, &ref) && ts_nif_tensor_get(env, ref, &tensor))
    return ts_nif_args_add_tensor(args, tensor, donate);
  if (!ts_nif_get_number(env, term, &number)) return ts_nif_expected(env, "a tensor or a number", term);
  TS_TRY(ts_nif_number_buffer(&number, type, &buffer));
  ts_nif_args_add_buffer(args, buffer);
  return TS_SUCCESS;
}

ts_status ts_nif_args_get(ErlNifEnv *env, ERL_NIF_TERM list, const ts_type *const *types, size_t count,
                          const ts_nif_set *donate, ts_nif_args *args) {
  ERL_NIF_TERM head;
  TS_TRY(ts_nif_args_init(args, count));
  for (size_t i = 0; i < count; i++) {
    ts_status status = enif_get_list_cell(env, list, &head, &list)
                           ? ts_nif_args_add(env, head, types[i], donate && ts_nif_set_has(donate, i), args)
                           : ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", count, i);
    if (!status) continue;
    ts_nif_args_done(args, false);
    return ts_error_context(status, "argument %zu", i + 1);
  }
  if (enif_is_empty_list(env, list)) return TS_SUCCESS;
  ts_nif_args_done(args, false);
  return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got more", count);
}

/* The failed run has left the reference of a donated argument. */
static void drop_spent(ts_nif_tensor *tensor, ts_buffer *buffer) {
  ts_nif_tensor_taken(tensor);
  ts_buffer_release(buffer);
}

void ts_nif_args_done(ts_nif_args *args, bool succeeded) {
  for (size_t i = 0; i < args->count; i++) {
    bool donated = args->donates && (args->donated[i / 64] >> i % 64 & 1);
    if (!args->tensors[i])
      ts_buffer_release(args->buffers[i]);
    else if (!donated)
      ts_nif_tensor_unpin(args->tensors[i]);
    else if (succeeded)
      ts_nif_tensor_taken(args->tensors[i]);
    else if (args->buffers[i]->spent)
      drop_spent(args->tensors[i], args->buffers[i]);
    else
      ts_nif_tensor_give_back(args->tensors[i]);
  }
  ts_free(args->block);
  args->count = 0;
  args->block = NULL;
}

/* ---- sets ---- */

enum { EXTERNAL_VERSION = 131, SMALL_BIG = 110, LARGE_BIG = 111 };

/* A large integer in the external format: its length in one or four bytes, its sign, its bytes. */
static bool find_bytes(ts_nif_set *set) {
  const unsigned char *t = set->text.data;
  if (set->text.size < 8 || t[0] != EXTERNAL_VERSION || (t[1] != SMALL_BIG && t[1] != LARGE_BIG)) return false;
  size_t sign = t[1] == SMALL_BIG ? 3 : 6;
  set->at = sign + 1;
  set->count = set->text.size - set->at;
  return t[sign] == 0;
}

ts_status ts_nif_set_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_set *out) {
  ErlNifUInt64 small;
  *out = (ts_nif_set){0};
  if (enif_get_uint64(env, term, &small)) {
    out->small = small;
    return TS_SUCCESS;
  }
  if (!enif_is_number(env, term)) return ts_nif_expected(env, "a set of arguments", term);
  if (!enif_term_to_binary(env, term, &out->text)) return ts_error_no_memory();
  if (find_bytes(out)) return TS_SUCCESS;
  enif_release_binary(&out->text);
  return ts_nif_expected(env, "a set of arguments", term);
}

bool ts_nif_set_has(const ts_nif_set *set, size_t i) {
  if (!set->count) return i < 64 && (set->small >> i & 1);
  return i / 8 < set->count && (set->text.data[set->at + i / 8] >> i % 8 & 1);
}

void ts_nif_set_done(ts_nif_set *set) {
  if (set->count) enif_release_binary(&set->text);
  set->count = 0;
}
