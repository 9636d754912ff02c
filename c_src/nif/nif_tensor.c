#include "nif/nif_job.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_makers.h"

#include "base/alloc.h"
#include "base/slots.h"
#include "tensor/mapping.h"

#include <stdint.h>
#include <string.h>

/* Smaller binaries are copied: keeping one alive takes an environment, which costs more. */
#define COPY_BYTES 4096
/* Binaries up to this size live on the process heap, so a view would save nothing. */
#define HEAP_BINARY_BYTES 64

/* The VM counts the resources of a type in one word. With several types, threads write different words. */
enum { TENSOR_TYPES = 4 };

static ErlNifResourceType *tensor_types[TENSOR_TYPES], *view_type;

static int own_type(void) { return ts_slot() % TENSOR_TYPES; }

/* ---- memory pressure ----
 * Erlang's collector does not know how much a handle holds. So we count, and ask the caller to collect. Two marks:
 * - After MINOR_BYTES more than at the last collection, a minor one: it costs little, and frees the results of a loop
 *   while the caches still have them, so that the next results take the same blocks.
 * - Tensors that have survived two minor collections are freed by a major one only. The caller is asked for it when
 *   there is
 *   nearly half as much again as was live after the last. A quarter of the bytes that minor collections freed counts,
 *   so that a loop, whose results they free, does not keep older garbage for ever.
 *
 * Destructors may be late after either, so what is held may still fall: the least that was seen since counts. */

#define MINOR_BYTES ((int64_t)3 << 19)
#define MIN_THRESHOLD ((int64_t)64 << 20)

static _Atomic int64_t least_held;  /* since the last major collection */
static _Atomic int64_t least_minor; /* since the last collection of either kind */
static _Atomic int64_t minor_freed; /* by minor collections since the last major one, at least */

static void hold(ts_nif_tensor *tensor, int64_t bytes) { ts_device_hold(tensor->buffer->device, bytes); }

/* The lesser of `held` and the old *least. */
static int64_t lowered(_Atomic int64_t *least, int64_t held) {
  int64_t value = atomic_load_explicit(least, memory_order_relaxed);
  if (held >= value) return value;
  atomic_store_explicit(least, held, memory_order_relaxed);
  return held;
}

static bool is_high(int64_t held) {
  int64_t least = lowered(&least_held, held), more = atomic_load_explicit(&minor_freed, memory_order_relaxed) / 4;
  return held + more > MIN_THRESHOLD && held + more > least + least / 16 * 7;
}

ERL_NIF_TERM ts_nif_with_pressure(ErlNifEnv *env, ERL_NIF_TERM term) {
  int64_t held = ts_devices_told();
  bool some = held > lowered(&least_minor, held) + MINOR_BYTES, much = is_high(held);
  return some || much ? enif_make_tuple2(env, ts_atom.pressure_, term) : term;
}

ERL_NIF_TERM ts_nif_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* collected(major | minor) -> boolean(): the caller was garbage-collected, so all bytes held now count as live.
   * Returns whether a major collection should follow. */
  int64_t held = ts_devices_held(), before = atomic_exchange(&least_minor, held) + MINOR_BYTES;
  (void)env, (void)argc;
  if (!enif_is_identical(argv[0], ts_atom.major_)) {
    if (held < before) atomic_fetch_add(&minor_freed, before - held);
    return is_high(held) ? ts_atom.true_ : ts_atom.false_;
  }
  atomic_store(&least_held, held);
  atomic_store(&minor_freed, 0);
  return ts_atom.false_;
}

/* ---- turns ----
 * The VM runs destructors when a process has had its turn. A process that makes tensors until its reductions are spent
 * leaves a thousand and more in memory. Their memory has left the caches when it is used again: so a turn ends after a
 * few tensors, about as long as other processes' turns. */

#define TURN_TENSORS 128
#define TURN_BYTES ((int64_t)512 << 10)

static _Thread_local struct {
  int tensors;
  int64_t bytes;
} turn;

static void take_part(ErlNifEnv *env, int64_t bytes) {
  turn.bytes += bytes;
  if (++turn.tensors < TURN_TENSORS && turn.bytes < TURN_BYTES) return;
  turn.tensors = 0;
  turn.bytes = 0;
  (void)enif_consume_timeslice(env, 100);
}

/* ---- the resource ---- */

static void release_buffer(ts_nif_tensor *tensor) {
  hold(tensor, -tensor->buffer->bytes);
  ts_nif_mark_free(tensor->mark);
  ts_buffer_release(tensor->buffer);
}

static void tensor_destroy(ErlNifEnv *env, void *object) {
  ts_nif_tensor *tensor = object;
  (void)env;
  if (atomic_load(&tensor->pins) > 0) release_buffer(tensor);
  for (ts_mapping *mapping = atomic_load(&tensor->shared), *older; mapping; mapping = older) {
    older = mapping->older;
    ts_mapping_release(mapping);
  }
}

static void view_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_buffer_release(*(ts_buffer **)object);
}

bool ts_nif_tensor_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  static const char *const names[TENSOR_TYPES] = {"tessera_tensor", "tessera_tensor_1", "tessera_tensor_2",
                                                  "tessera_tensor_3"};
  for (int i = 0; i < TENSOR_TYPES; i++) {
    tensor_types[i] = enif_open_resource_type(env, NULL, names[i], tensor_destroy, flags, NULL);
    if (!tensor_types[i]) return false;
  }
  view_type = enif_open_resource_type(env, NULL, "tessera_view", view_destroy, flags, NULL);
  return view_type;
}

ts_status ts_nif_tensor_make_handle(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out) {
  ts_nif_tensor *tensor = enif_alloc_resource(tensor_types[own_type()], sizeof *tensor);
  if (!tensor) {
    ts_buffer_release(buffer);
    return ts_error_no_memory();
  }
  atomic_init(&tensor->pins, 1);
  atomic_init(&tensor->deallocated, false);
  atomic_init(&tensor->shared, NULL);
  tensor->buffer = buffer;
  hold(tensor, buffer->bytes);
  tensor->mark = ts_nif_mark_tensor(env, buffer->bytes);
  take_part(env, buffer->bytes);
  *out = enif_make_resource(env, tensor);
  enif_release_resource(tensor);
  return TS_SUCCESS;
}

ts_status ts_nif_tensor_make(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out) {
  ERL_NIF_TERM ref;
  TS_TRY(ts_nif_tensor_make_handle(env, buffer, &ref)); /* the term keeps the buffer alive */
  *out = enif_make_tuple4(env, ts_atom.tessera_, ref, ts_nif_dtype(buffer->dtype), ts_nif_shape(env, &buffer->shape));
  return TS_SUCCESS;
}

bool ts_nif_tensor_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out) {
  static _Thread_local int last; /* the type of the last tensor, and of most later ones */
  for (int i = 0; i < TENSOR_TYPES; i++, last = (last + 1) % TENSOR_TYPES)
    if (enif_get_resource(env, term, tensor_types[last], (void **)out)) return true;
  return false;
}

bool ts_nif_tessera_get(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out_ref) {
  const ERL_NIF_TERM *items;
  int count;
  if (!enif_get_tuple(env, term, &count, &items) || count != 4) return false;
  if (!enif_is_identical(items[0], ts_atom.tessera_)) return false;
  *out_ref = items[1];
  return true;
}

ts_status ts_nif_tensor_pin(ts_nif_tensor *tensor) {
  uint32_t pins = atomic_load_explicit(&tensor->pins, memory_order_relaxed);
  while (pins > 0 && !atomic_load_explicit(&tensor->deallocated, memory_order_relaxed)) {
    if (atomic_compare_exchange_weak_explicit(&tensor->pins, &pins, pins + 1, memory_order_acquire,
                                              memory_order_relaxed))
      return TS_SUCCESS;
  }
  return ts_error(TS_FAILED_PRECONDITION, "the tensor was deallocated or donated");
}

void ts_nif_tensor_unpin(ts_nif_tensor *tensor) {
  if (atomic_fetch_sub_explicit(&tensor->pins, 1, memory_order_acq_rel) == 1) release_buffer(tensor);
}

bool ts_nif_tensor_take(ts_nif_tensor *tensor) {
  uint32_t alone = 1;
  int64_t bytes = tensor->buffer->bytes;
  if (!atomic_compare_exchange_strong(&tensor->pins, &alone, 0)) return false;
  hold(tensor, -bytes);
  return true;
}

void ts_nif_tensor_give_back(ts_nif_tensor *tensor) {
  hold(tensor, tensor->buffer->bytes);
  atomic_store(&tensor->pins, 1);
}

void ts_nif_tensor_taken(ts_nif_tensor *tensor) {
  ts_nif_mark_free(tensor->mark);
  atomic_store(&tensor->deallocated, true);
}

ts_status ts_nif_tensor_get_pinned(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out) {
  if (!ts_nif_tensor_get(env, term, out)) return ts_nif_expected(env, "a tensor", term);
  return ts_nif_tensor_pin(*out);
}

/* ---- binaries ---- */

static void free_kept_env(void *env) { enif_free_env(env); }

/* The arguments of from_binary. */
typedef struct contents {
  ErlNifBinary binary;
  ts_dtype dtype;
  ts_shape shape;
  ts_device *device;
} contents;

/* A buffer on the bytes of an Erlang binary; an environment keeps the binary alive. */
static ts_status wrap_binary(ERL_NIF_TERM term, ts_dtype dtype, const ts_shape *shape, ts_buffer **out) {
  ErlNifBinary binary;
  ErlNifEnv *keeper = enif_alloc_env();
  if (!keeper) return ts_error_no_memory();
  ERL_NIF_TERM kept = enif_make_copy(keeper, term);
  ts_status status = TS_SUCCESS;
  if (!enif_inspect_binary(keeper, kept, &binary)) status = ts_error(TS_INTERNAL, "a copy of a binary is none");
  /* Checked after copying the term, since that may move the bytes of a binary that was appended to. */
  else if ((uintptr_t)binary.data % ts_dtype_size(dtype))
    *out = NULL;
  else
    status = ts_buffer_wrap(dtype, shape, binary.data, free_kept_env, keeper, out);
  if (!status && *out) atomic_store_explicit(&(*out)->is_fixed, true, memory_order_relaxed); /* as all terms */
  if (status || !*out) enif_free_env(keeper);
  return status;
}

/* Elements that take a millisecond to pack; after each piece the caller's life is checked. */
enum { PACK_PIECE = 1 << 20 };

/* The first element is in the high bits, as in a bitstring of Erlang. The last byte is padded with zeros. */
static void unpack(ts_dtype dtype, const unsigned char *in, int64_t begin, int64_t end, unsigned char *out) {
  int bits = ts_dtype_bits(dtype), in_byte = 8 / bits;
  for (int64_t i = begin; i < end; i++) {
    uint64_t value = in[i / in_byte] >> (8 - bits * (1 + (int)(i % in_byte)));
    out[i] = (unsigned char)ts_scalar_from_u64(dtype, value).bits;
  }
}

static ts_status unpack_binary(ErlNifEnv *env, const ErlNifBinary *binary, ts_buffer *out) {
  for (int64_t at = 0; at < out->bytes; at += PACK_PIECE) {
    if (at > 0 && !enif_is_current_process_alive(env)) return ts_nif_caller_died();
    int64_t end = out->bytes - at < PACK_PIECE ? out->bytes : at + PACK_PIECE;
    unpack(out->dtype, binary->data, at, end, out->data);
  }
  return TS_SUCCESS;
}

int64_t ts_nif_packed_bytes(ts_dtype dtype, int64_t elements) {
  int in_byte = ts_dtype_bits(dtype) < 8 ? 8 / ts_dtype_bits(dtype) : 1;
  return (elements / in_byte + (elements % in_byte > 0)) * (int64_t)ts_dtype_size(dtype);
}

static void pack(ts_dtype dtype, const unsigned char *in, int64_t begin, int64_t end, unsigned char *out) {
  int bits = ts_dtype_bits(dtype), in_byte = 8 / bits;
  for (int64_t i = begin; i < end; i++)
    out[i / in_byte] |= (unsigned char)((in[i] & ((1 << bits) - 1)) << (8 - bits * (1 + (int)(i % in_byte))));
}

void ts_nif_pack(ts_dtype dtype, const void *elements, int64_t count, unsigned char *out) {
  memset(out, 0, (size_t)ts_nif_packed_bytes(dtype, count));
  pack(dtype, elements, 0, count, out);
}

/* A piece takes whole bytes of the result. */
static ts_status pack_pieces(ErlNifEnv *env, ts_dtype dtype, const void *elements, int64_t count, unsigned char *out) {
  memset(out, 0, (size_t)ts_nif_packed_bytes(dtype, count));
  for (int64_t at = 0; at < count; at += PACK_PIECE) {
    if (at > 0 && !enif_is_current_process_alive(env)) return ts_nif_caller_died();
    pack(dtype, elements, at, count - at < PACK_PIECE ? count : at + PACK_PIECE, out);
  }
  return TS_SUCCESS;
}

/* Copies in pieces of a few milliseconds, and stops when the calling process has died. */
static ts_status copy_binary(ErlNifEnv *env, const contents *c, ts_buffer **out) {
  const size_t piece = (size_t)16 << 20;
  const ErlNifBinary *binary = &c->binary;
  TS_TRY(ts_device_stage(c->device, c->dtype, &c->shape, out));
  if (ts_dtype_bits(c->dtype) < 8) {
    ts_status status = unpack_binary(env, binary, *out);
    if (status) ts_buffer_release(*out);
    return status;
  }
  for (size_t at = 0; at < binary->size; at += piece) {
    if (at > 0 && !enif_is_current_process_alive(env)) {
      ts_buffer_release(*out);
      return ts_nif_caller_died();
    }
    memcpy((char *)(*out)->data + at, binary->data + at, binary->size - at < piece ? binary->size - at : piece);
  }
  return TS_SUCCESS;
}

static ts_status check_binary(const contents *c) {
  TS_TRY(ts_shape_check(&c->shape, c->dtype));
  int64_t bytes = ts_nif_packed_bytes(c->dtype, ts_shape_elements(&c->shape));
  if (bytes == (int64_t)c->binary.size) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "%s takes %lld bytes, got a binary of %zu", TS_SHAPE_STR(c->dtype, &c->shape),
                  (long long)bytes, c->binary.size);
}

/* A copy of more bytes takes longer than a millisecond, at 4 GB/s, and needs a dirty scheduler. */
#define LONG_COPY_BYTES ((size_t)4 << 20)

static ts_status get_contents(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[], contents *out) {
  if (!enif_inspect_binary(env, argv[0], &out->binary)) return ts_nif_expected(env, "a binary", argv[0]);
  TS_TRY(ts_nif_get_dtype(env, argv[1], &out->dtype));
  TS_TRY(ts_nif_get_shape(env, argv[2], &out->shape));
  TS_TRY(ts_nif_get_device(env, argc > 4 ? argv[4] : ts_atom.undefined_, &out->device));
  return check_binary(out);
}

static ERL_NIF_TERM from_binary_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  contents c;
  ts_buffer *buffer;
  TS_NIF_TRY(env, get_contents(env, argc, argv, &c));
  TS_NIF_TRY(env, copy_binary(env, &c, &buffer));
  return ts_nif_place_tensor(env, c.device, buffer);
}

ERL_NIF_TERM ts_nif_from_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* from_binary(Binary, Type, Shape, MustCopy :: boolean()[, {Client, Number} | undefined]) -> Tensor: elements of
   * fewer than 8 bits are packed, and the last byte is padded with zeros */
  contents c;
  ts_buffer *buffer = NULL;
  TS_NIF_TRY(env, get_contents(env, argc, argv, &c));
  TS_NIF_TRY(env, ts_nif_turn_check(env));
  bool packed = ts_dtype_bits(c.dtype) < 8;
  bool copy = packed || enif_is_identical(argv[3], ts_atom.true_) || c.binary.size < COPY_BYTES;
  if (!copy) TS_NIF_TRY(env, wrap_binary(argv[0], c.dtype, &c.shape, &buffer));
  if (!buffer && c.binary.size > (packed ? LONG_COPY_BYTES / 16 : LONG_COPY_BYTES))
    return enif_schedule_nif(env, "from_binary", ERL_NIF_DIRTY_JOB_CPU_BOUND, from_binary_dirty, argc, argv);
  if (!buffer) {
    int percent = (int)(c.binary.size * 100 / LONG_COPY_BYTES);
    TS_NIF_TRY(env, copy_binary(env, &c, &buffer));
    if (percent) enif_consume_timeslice(env, percent);
  }
  return ts_nif_place_tensor(env, c.device, buffer);
}

/* Compiled code of OTP 26 and later loads eight bytes where a match wants six, from in front of the binary. That is
 * memory if the binary does not begin where a page does. Mappings of files and shared memory have a page in front
 * (base/file.h), and binaries of the VM a header. */
#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION >= 17
static bool can_be_viewed(const ts_buffer *buffer) {
  return ts_buffer_root(buffer)->release || (uintptr_t)buffer->data % 4096 >= sizeof(uint64_t);
}
#else
static bool can_be_viewed(const ts_buffer *buffer) {
  (void)buffer;
  return true;
}
#endif

/* A binary with a copy of the first bytes. */
static ts_status read_buffer(ErlNifEnv *env, ts_buffer *buffer, int64_t bytes, ERL_NIF_TERM *out) {
  unsigned char *data = enif_make_new_binary(env, (size_t)bytes, out);
  if (!data && bytes) return ts_error_no_memory();
  return ts_device_read(buffer, bytes, data);
}

/* A binary that keeps the buffer alive. */
static ts_status view_buffer(ErlNifEnv *env, ts_buffer *buffer, int64_t bytes, ERL_NIF_TERM *out) {
  if (!can_be_viewed(buffer)) return read_buffer(env, buffer, bytes, out);
  ts_buffer **view = enif_alloc_resource(view_type, sizeof(ts_buffer *));
  if (!view) return ts_error_no_memory();
  *view = buffer;
  ts_buffer_retain(buffer);
  *out = enif_make_resource_binary(env, view, buffer->data, (size_t)bytes);
  enif_release_resource(view);
  return TS_SUCCESS;
}

/* A binary of the packed elements of a buffer in host memory. */
static ts_status packed_binary(ErlNifEnv *env, ts_buffer *buffer, int64_t elements, ERL_NIF_TERM *out) {
  unsigned char *bytes = enif_make_new_binary(env, (size_t)ts_nif_packed_bytes(buffer->dtype, elements), out);
  if (!bytes && elements) return ts_error_no_memory();
  return pack_pieces(env, buffer->dtype, buffer->data, elements, bytes);
}

/* For a buffer in host memory that was read from a device: only its first bytes are set. */
static ERL_NIF_TERM bytes_read(ErlNifEnv *env, ts_nif_job *job) {
  ERL_NIF_TERM term;
  bool packed = ts_dtype_bits(job->made->dtype) < 8;
  TS_NIF_TRY(env, packed ? packed_binary(env, job->made, job->bytes, &term)
                         : view_buffer(env, job->made, job->bytes, &term));
  return term;
}

/* to_binary/2 of a tensor that the host cannot read. */
static ERL_NIF_TERM read_elsewhere(ErlNifEnv *env, ts_nif_tensor *tensor, int64_t bytes) {
  ts_nif_job *job;
  ts_buffer *buffer = tensor->buffer;
  ts_shape part = {.rank = 1, .dims = {bytes / (int64_t)ts_dtype_size(buffer->dtype)}};
  TS_NIF_TRY(env, ts_nif_job_new(env, bytes_read, &job));
  ts_status status = ts_buffer_create(ts_pool_default(), buffer->dtype, &part, &job->made);
  if (status) {
    ts_nif_job_drop(job);
    return ts_nif_error(env, status);
  }
  job->bytes = bytes;
  ErlNifEnv *before = ts_nif_calling(env);
  ts_device_read_start(buffer, bytes, job->made->data, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

/* The bytes of at most `limit` elements; all for a limit below 0. */
static int64_t bytes_of(const ts_buffer *buffer, int64_t limit) {
  const int64_t size = (int64_t)ts_dtype_size(buffer->dtype);
  return limit >= 0 && limit < buffer->bytes / size ? limit * size : buffer->bytes;
}

static ts_status host_binary(ErlNifEnv *env, ts_buffer *buffer, int64_t bytes, ERL_NIF_TERM *out) {
  if (ts_dtype_bits(buffer->dtype) < 8) return packed_binary(env, buffer, bytes, out);
  return bytes > HEAP_BINARY_BYTES ? view_buffer(env, buffer, bytes, out) : read_buffer(env, buffer, bytes, out);
}

/* Whether that packs or copies for longer than a millisecond. */
static bool is_long_binary(const ts_buffer *buffer, int64_t bytes) {
  if (ts_dtype_bits(buffer->dtype) < 8) return bytes > PACK_PIECE;
  return bytes > (int64_t)LONG_COPY_BYTES && !can_be_viewed(buffer);
}

static ERL_NIF_TERM to_binary_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_nif_tensor *tensor;
  int64_t limit;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "a number of elements", &limit));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_status status = host_binary(env, tensor->buffer, bytes_of(tensor->buffer, limit), &term);
  ts_nif_tensor_unpin(tensor);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_to_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* to_binary(Ref, MaxElements | -1) -> binary() | {waiting, Job}: packed as from_binary expects it */
  ts_nif_tensor *tensor;
  int64_t limit;
  ERL_NIF_TERM term;
  ts_status status = TS_SUCCESS;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[1], "a number of elements", &limit));
  TS_NIF_TRY(env, ts_nif_tensor_get_pinned(env, argv[0], &tensor));
  ts_buffer *buffer = tensor->buffer;
  const int64_t bytes = bytes_of(buffer, limit);
  if (buffer->elsewhere)
    term = read_elsewhere(env, tensor, bytes);
  else if (is_long_binary(buffer, bytes))
    term = enif_schedule_nif(env, "to_binary", ERL_NIF_DIRTY_JOB_CPU_BOUND, to_binary_dirty, argc, argv);
  else
    status = host_binary(env, buffer, bytes, &term);
  ts_nif_tensor_unpin(tensor);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_deallocate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* deallocate(Ref) -> ok | deallocated */
  ts_nif_tensor *tensor;
  (void)argc;
  if (!ts_nif_tensor_get(env, argv[0], &tensor)) return ts_nif_error(env, ts_nif_expected(env, "a tensor", argv[0]));
  if (atomic_exchange(&tensor->deallocated, true)) return ts_atom.deallocated_;
  if (atomic_load(&tensor->pins) > 0) ts_nif_tensor_unpin(tensor);
  return ts_atom.ok_;
}

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
  ts_status status = ts_nif_job_new(env, handle_made, &job);
  if (status) {
    ts_nif_tensor_unpin(tensor);
    return ts_nif_error(env, status);
  }
  ts_nif_job_hold(job, tensor);
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
  bool is_long = tensor->buffer->bytes > (int64_t)LONG_COPY_BYTES;
  if (!is_there && (tensor->buffer->elsewhere || ts_device_waits(device))) return copy_elsewhere(env, tensor, device);
  ts_nif_tensor_unpin(tensor);
  if (is_there) return argv[0];
  if (is_long) return enif_schedule_nif(env, "to_device", ERL_NIF_DIRTY_JOB_CPU_BOUND, to_device_dirty, argc, argv);
  return to_device_dirty(env, argc, argv);
}

ERL_NIF_TERM ts_nif_is_elsewhere(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* is_elsewhere(Ref) -> boolean(): true for a tensor that the host cannot read */
  ts_nif_tensor *tensor;
  (void)argc;
  if (!ts_nif_tensor_get(env, argv[0], &tensor) || !ts_status_consume_ok(ts_nif_tensor_pin(tensor)))
    return ts_atom.false_;
  bool found = tensor->buffer->elsewhere;
  ts_nif_tensor_unpin(tensor);
  return found ? ts_atom.true_ : ts_atom.false_;
}

/* ---- the pool ---- */

ERL_NIF_TERM ts_nif_reset_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* reset_peak() -> ok */
  (void)env, (void)argc, (void)argv;
  ts_pool_reset_peak(ts_pool_default());
  return ts_atom.ok_;
}

ERL_NIF_TERM ts_nif_trim(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* trim() -> ok: returns pooled blocks to the system */
  (void)env, (void)argc, (void)argv;
  ts_clients_trim();
  return ts_atom.ok_;
}
