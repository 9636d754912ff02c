#include "nif/nif_block.h"

#include "nif/nif_tensor.h"

#include <stdatomic.h>
#include <string.h>

/* Bytes that are copied in a millisecond, at 4 GB/s. */
#define TURN_BYTES ((size_t)4 << 20)

/* By `state`: one call at a time fills a block or takes it. */
enum { OPEN, BUSY, TAKEN };

typedef struct block {
  _Atomic int state;
  size_t size, filled;
  ts_pool *pool; /* of `data`, until a tensor takes it over; NULL: `data` belongs to `binary` */
  unsigned char *data;
  ErlNifBinary binary; /* without data: the VM has it, or it never was */
} block;

static ErlNifResourceType *block_type;

static void block_destroy(ErlNifEnv *env, void *object) {
  block *b = object;
  (void)env;
  if (b->pool) ts_pool_free(b->pool, b->data, (int64_t)b->size);
  if (b->binary.data) enif_release_binary(&b->binary);
}

bool ts_nif_block_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  block_type = enif_open_resource_type(env, NULL, "tessera_block", block_destroy, flags, NULL);
  return block_type;
}

static ts_status get_block(ErlNifEnv *env, ERL_NIF_TERM term, block **out) {
  void *object;
  if (!enif_get_resource(env, term, block_type, &object)) return ts_nif_expected(env, "a block", term);
  *out = object;
  int open = OPEN;
  if (atomic_compare_exchange_strong(&(*out)->state, &open, BUSY)) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "the block was taken, or another process uses it");
}

/* The same for a block that is to be taken: it must be full. On success the caller sets the state. */
static ts_status get_full(ErlNifEnv *env, ERL_NIF_TERM term, block **out) {
  TS_TRY(get_block(env, term, out));
  block *b = *out;
  if (b->filled == b->size) return TS_SUCCESS;
  ts_status status = ts_error(TS_FAILED_PRECONDITION, "the block has %zu of its %zu bytes", b->filled, b->size);
  atomic_store(&b->state, OPEN);
  return status;
}

static ts_status allocate_loose(block *b) {
  if (!enif_alloc_binary(b->size, &b->binary)) {
    b->binary.data = NULL;
    return ts_error(TS_RESOURCE_EXHAUSTED, "there is no memory for %zu bytes", b->size);
  }
  b->data = b->binary.data;
  return TS_SUCCESS;
}

static ts_status allocate(block *b, bool pooled) {
  ts_pool *pool = ts_client_pool(ts_client_host());
  void *data;
  if (!pooled) return allocate_loose(b);
  ts_status status = ts_pool_alloc(pool, (int64_t)b->size, &data);
  if (status) {
    ts_status_free(status);
    return allocate_loose(b);
  }
  b->pool = pool;
  b->data = data;
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* block(Bytes :: pos_integer(), Pooled :: boolean()) -> Block */
  int64_t size;
  (void)argc;
  TS_NIF_TRY(env, ts_nif_get_int(env, argv[0], "a number of bytes", &size));
  if (size <= 0) return ts_nif_error(env, ts_nif_expected(env, "a number of bytes from 1 on", argv[0]));
  block *b = enif_alloc_resource(block_type, sizeof *b);
  if (!b) return ts_nif_error(env, ts_error_no_memory());
  *b = (block){.size = (size_t)size};
  ts_status status = allocate(b, enif_is_identical(argv[1], ts_atom.true_));
  ERL_NIF_TERM term = enif_make_resource(env, b);
  enif_release_resource(b);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_block_append(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* block_append(Block, Bytes :: binary()) -> ok */
  block *b;
  ErlNifBinary bytes;
  ts_status status = TS_SUCCESS;
  (void)argc;
  if (!enif_inspect_binary(env, argv[1], &bytes)) return ts_nif_error(env, ts_nif_expected(env, "a binary", argv[1]));
  TS_NIF_TRY(env, get_block(env, argv[0], &b));
  if (bytes.size > b->size - b->filled) {
    status =
        ts_error(TS_INVALID_ARGUMENT, "the block of %zu bytes has %zu, and got %zu", b->size, b->filled, bytes.size);
  } else {
    memcpy(b->data + b->filled, bytes.data, bytes.size);
    b->filled += bytes.size;
  }
  atomic_store(&b->state, OPEN);
  int percent = (int)(bytes.size * 100 / TURN_BYTES);
  if (percent) enif_consume_timeslice(env, percent < 100 ? percent : 100);
  return status ? ts_nif_error(env, status) : ts_atom.ok_;
}

/* The binary of a full block that the caller has taken. */
static ERL_NIF_TERM as_binary(ErlNifEnv *env, block *b) {
  if (b->pool) return enif_make_resource_binary(env, b, b->data, b->size); /* which keeps the block */
  ERL_NIF_TERM term = enif_make_binary(env, &b->binary);
  b->binary.data = NULL; /* the VM has it now */
  return term;
}

ERL_NIF_TERM ts_nif_block_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* block_binary(Block) -> binary(): takes it */
  block *b;
  (void)argc;
  TS_NIF_TRY(env, get_full(env, argv[0], &b));
  ERL_NIF_TERM term = as_binary(env, b);
  atomic_store(&b->state, TAKEN);
  return term;
}

typedef struct target {
  ts_dtype dtype;
  ts_shape shape;
  ts_device *device;
} target;

static ts_status get_target(ErlNifEnv *env, const ERL_NIF_TERM argv[], target *out) {
  TS_TRY(ts_nif_get_dtype(env, argv[1], &out->dtype));
  TS_TRY(ts_nif_get_shape(env, argv[2], &out->shape));
  TS_TRY(ts_nif_get_device(env, argv[3], &out->device));
  return ts_shape_check(&out->shape, out->dtype);
}

/* Whether the memory can become the tensor's. */
static bool fits(const block *b, const target *t) {
  return b->pool && ts_dtype_bits(t->dtype) >= 8 && !ts_device_waits(t->device) &&
         b->pool == ts_client_pool(t->device->client);
}

/* Makes the block's memory the tensor's. On failure the block keeps it. */
static ts_status become_tensor(ErlNifEnv *env, block *b, const target *t, ERL_NIF_TERM *out) {
  ts_buffer *buffer;
  TS_TRY(ts_buffer_adopt(b->pool, t->dtype, &t->shape, b->data, &buffer));
  b->pool = NULL;
  TS_TRY(ts_device_place(t->device, buffer, &buffer));
  return ts_nif_tensor_make(env, buffer, out);
}

ERL_NIF_TERM ts_nif_block_tensor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* block_tensor(Block, Type, Shape, {Client, Number}) -> Tensor | {pressure, Tensor} | binary(): takes it; a binary
   * where a tensor needs memory of its own, which from_binary copies */
  block *b;
  target t;
  ERL_NIF_TERM term;
  (void)argc;
  TS_NIF_TRY(env, get_target(env, argv, &t));
  TS_NIF_TRY(env, get_full(env, argv[0], &b));
  bool adopt = fits(b, &t);
  ts_status status = TS_SUCCESS;
  if (!adopt)
    term = as_binary(env, b);
  else if ((int64_t)b->size != ts_shape_bytes(&t.shape, t.dtype))
    status = ts_error(TS_INVALID_ARGUMENT, "%s takes %lld bytes, got a block of %zu", TS_SHAPE_STR(t.dtype, &t.shape),
                      (long long)ts_shape_bytes(&t.shape, t.dtype), b->size);
  else
    status = become_tensor(env, b, &t, &term);
  atomic_store(&b->state, status && b->pool ? OPEN : TAKEN);
  if (status) return ts_nif_error(env, status);
  return adopt ? ts_nif_with_pressure(env, term) : term;
}
