/* Tensors from binaries of Erlang, and binaries of tensors. Large ones are not copied. */
#include "nif/nif_job.h"
#include "nif/nif_tensor.h"
#include "nif/nif_turns.h"

#include <stdint.h>
#include <string.h>

/* Smaller binaries are copied: keeping one alive takes an environment, which costs more. */
#define COPY_BYTES 4096
/* Binaries up to this size live on the process heap, so a view would save nothing. */
#define HEAP_BINARY_BYTES 64

static ErlNifResourceType *view_type;

static void view_destroy(ErlNifEnv *env, void *object) {
  (void)env;
  ts_buffer_release(*(ts_buffer **)object);
}

bool ts_nif_binary_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  view_type = enif_open_resource_type(env, NULL, "tessera_view", view_destroy, flags, NULL);
  return view_type;
}

/* ---- from binaries ---- */

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
  if (!buffer && c.binary.size > (packed ? TS_NIF_LONG_COPY / 16 : TS_NIF_LONG_COPY))
    return enif_schedule_nif(env, "from_binary", ERL_NIF_DIRTY_JOB_CPU_BOUND, from_binary_dirty, argc, argv);
  if (!buffer) {
    int percent = (int)(c.binary.size * 100 / TS_NIF_LONG_COPY);
    TS_NIF_TRY(env, copy_binary(env, &c, &buffer));
    if (percent) enif_consume_timeslice(env, percent);
  }
  return ts_nif_place_tensor(env, c.device, buffer);
}

/* ---- to binaries ---- */

/* Compiled code of OTP 26 and later loads eight bytes where a match wants six, from in front of the binary. That is
 * memory if the binary does not begin where a page does. Mappings of files and shared memory have a page in front
 * (base/file.h), and binaries of the VM a header. */
#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION >= 17
enum { IN_FRONT = sizeof(uint64_t) };
static bool can_be_viewed(const ts_buffer *buffer) {
  return ts_buffer_root(buffer)->release || (uintptr_t)buffer->data % 4096 >= IN_FRONT;
}
#else
enum { IN_FRONT = 0 };
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

static ts_buffer **new_view(ts_buffer *buffer) {
  ts_buffer **view = enif_alloc_resource(view_type, sizeof(ts_buffer *));
  if (!view) return NULL;
  *view = buffer;
  ts_buffer_retain(buffer);
  return view;
}

/* A term that keeps the buffer alive. */
static ts_status keep_buffer(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out) {
  ts_buffer **view = new_view(buffer);
  if (!view) return ts_error_no_memory();
  *out = enif_make_resource(env, view);
  enif_release_resource(view);
  return TS_SUCCESS;
}

ts_status ts_nif_view(ErlNifEnv *env, ts_buffer *buffer, int64_t at, int64_t bytes, ERL_NIF_TERM *out) {
  ts_buffer **view = new_view(buffer);
  if (!view) return ts_error_no_memory();
  *out = enif_make_resource_binary(env, view, (char *)buffer->data + at, (size_t)bytes);
  enif_release_resource(view);
  return TS_SUCCESS;
}

/* A binary that keeps the buffer alive, where it may. */
static ts_status view_buffer(ErlNifEnv *env, ts_buffer *buffer, int64_t bytes, ERL_NIF_TERM *out) {
  return can_be_viewed(buffer) ? ts_nif_view(env, buffer, 0, bytes, out) : read_buffer(env, buffer, bytes, out);
}

/* A binary of the packed elements of a buffer in host memory. */
static ts_status packed_binary(ErlNifEnv *env, ts_buffer *buffer, int64_t elements, ERL_NIF_TERM *out) {
  unsigned char *bytes = enif_make_new_binary(env, (size_t)ts_nif_packed_bytes(buffer->dtype, elements), out);
  if (!bytes) return elements ? ts_error_no_memory() : TS_SUCCESS;
  return pack_pieces(env, buffer->dtype, buffer->data, elements, bytes);
}

/* Whether a binary of the buffer packs or copies for longer than a millisecond. */
static bool is_long_binary(const ts_buffer *buffer, int64_t bytes) {
  if (ts_dtype_bits(buffer->dtype) < 8) return bytes > PACK_PIECE;
  return bytes > (int64_t)TS_NIF_LONG_COPY && !can_be_viewed(buffer);
}

/* A binary of a buffer in host memory: of its first bytes, or of packed elements. */
static ts_status host_binary(ErlNifEnv *env, ts_buffer *buffer, int64_t bytes, ERL_NIF_TERM *out) {
  if (ts_dtype_bits(buffer->dtype) < 8) return packed_binary(env, buffer, bytes, out);
  return bytes > HEAP_BINARY_BYTES ? view_buffer(env, buffer, bytes, out) : read_buffer(env, buffer, bytes, out);
}

static ERL_NIF_TERM bytes_read_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  ts_buffer **kept;
  ErlNifSInt64 bytes;
  ERL_NIF_TERM term;
  (void)argc;
  if (!enif_get_resource(env, argv[0], view_type, (void **)&kept) || !enif_get_int64(env, argv[1], &bytes))
    return enif_make_badarg(env);
  TS_NIF_TRY(env, host_binary(env, *kept, bytes, &term));
  return term;
}

/* A copy that takes long is made on a dirty scheduler. */
static ERL_NIF_TERM bytes_read(ErlNifEnv *env, ts_nif_job *job) {
  ERL_NIF_TERM args[2];
  if (!is_long_binary(job->made, job->bytes)) {
    TS_NIF_TRY(env, host_binary(env, job->made, job->bytes, &args[0]));
    return args[0];
  }
  TS_NIF_TRY(env, keep_buffer(env, job->made, &args[0]));
  args[1] = enif_make_int64(env, job->bytes);
  return enif_schedule_nif(env, "to_binary", ERL_NIF_DIRTY_JOB_CPU_BOUND, bytes_read_dirty, 2, args);
}

static ts_status make_room(const ts_buffer *buffer, int64_t bytes, ts_nif_job *job) {
  ts_shape part = {.rank = 1, .dims = {bytes / (int64_t)ts_dtype_size(buffer->dtype)}};
  return ts_buffer_create(ts_pool_default(), buffer->dtype, &part, &job->made);
}

/* to_binary/2 of a tensor that the host cannot read: of all bytes without a copy, where the device allows it. */
static ERL_NIF_TERM read_elsewhere(ErlNifEnv *env, ts_nif_tensor *tensor, int64_t bytes) {
  ts_nif_job *job;
  ts_buffer *buffer = tensor->buffer;
  bool all = bytes == buffer->bytes;
  TS_NIF_TRY(env, ts_nif_job_new(env, bytes_read, &job));
  ts_status status = all ? TS_SUCCESS : make_room(buffer, bytes, job);
  if (status) {
    ts_nif_job_drop(job);
    return ts_nif_error(env, status);
  }
  job->bytes = bytes;
  ErlNifEnv *before = ts_nif_calling(env);
  if (all)
    ts_device_fetch_start(buffer, IN_FRONT, &job->made, ts_nif_job_done(job));
  else
    ts_device_read_start(buffer, bytes, job->made->data, ts_nif_job_done(job));
  (void)ts_nif_calling(before);
  return ts_nif_job_return(env, job);
}

/* The bytes of at most `limit` elements; all for a limit below 0. */
static int64_t bytes_of(const ts_buffer *buffer, int64_t limit) {
  const int64_t size = (int64_t)ts_dtype_size(buffer->dtype);
  return limit >= 0 && limit < buffer->bytes / size ? limit * size : buffer->bytes;
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
