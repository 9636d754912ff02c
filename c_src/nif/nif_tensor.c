#include "nif/nif_tensor.h"
#include "nif/nif_turns.h"
#include "nif/profile/nif_makers.h"

#include "base/slots.h"
#include "tensor/mapping.h"

/* The VM counts the resources of a type in one word. With several types, threads write different words. */
enum { TENSOR_TYPES = 4 };

static ErlNifResourceType *tensor_types[TENSOR_TYPES];

static int own_type(void) { return ts_slot() % TENSOR_TYPES; }

/* ---- memory pressure ----
 * Erlang's collector does not know how much a handle holds. So we count, and ask the caller to collect. Two marks:
 * - After MINOR_BYTES more than at the last collection, a minor one: it costs little, and frees the results of a loop
 *   while the caches still have them, so that the next results take the same blocks. Calls that run programs are asked
 *   before they make tensors, when the last result of a loop is garbage already. Others are asked afterwards.
 * - Tensors that have survived two minor collections are freed by a major one only. The caller is asked for it when
 *   there is
 *   nearly half as much again as was live after the last. A quarter of the bytes that minor collections freed counts,
 *   so that a loop, whose results they free, does not keep older garbage for ever.
 *
 * Destructors may be late after either, so what is held may still fall: the least that was seen since counts. */

#define MINOR_BYTES ((int64_t)3 << 19)
#define MIN_THRESHOLD ((int64_t)64 << 20)

static _Atomic int64_t least_held;  /* since the last major collection */
static _Atomic int64_t least_minor; /* since a caller was last asked for a collection of either kind */
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

bool ts_nif_is_crowded(void) {
  int64_t held = ts_devices_told(), least = lowered(&least_minor, held);
  return held > least + MINOR_BYTES && atomic_compare_exchange_strong(&least_minor, &least, held);
}

ERL_NIF_TERM ts_nif_with_much_pressure(ErlNifEnv *env, ERL_NIF_TERM term) {
  return is_high(ts_devices_told()) ? enif_make_tuple2(env, ts_atom.pressure_, term) : term;
}

ERL_NIF_TERM ts_nif_with_pressure(ErlNifEnv *env, ERL_NIF_TERM term) {
  return ts_nif_is_crowded() ? enif_make_tuple2(env, ts_atom.pressure_, term) : ts_nif_with_much_pressure(env, term);
}

ERL_NIF_TERM ts_nif_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* collected(major | minor) -> boolean(): the caller was garbage-collected, so all bytes held now count as live.
   * Returns whether a major collection should follow. */
  int64_t held = ts_devices_held(), before = atomic_exchange(&least_minor, held);
  (void)env, (void)argc;
  if (!enif_is_identical(argv[0], ts_atom.major_)) {
    if (held < before) atomic_fetch_add(&minor_freed, before - held);
    /* What it freed of less than MINOR_BYTES is not counted, and must not put a major one off again and again. */
    return is_high(held + MINOR_BYTES) ? ts_atom.true_ : ts_atom.false_;
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
} turn TS_STATIC_LOCAL;

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

bool ts_nif_tensor_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  static const char *const names[TENSOR_TYPES] = {"tessera_tensor", "tessera_tensor_1", "tessera_tensor_2",
                                                  "tessera_tensor_3"};
  for (int i = 0; i < TENSOR_TYPES; i++) {
    tensor_types[i] = enif_open_resource_type(env, NULL, names[i], tensor_destroy, flags, NULL);
    if (!tensor_types[i]) return false;
  }
  return true;
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
  const ERL_NIF_TERM fields[] = {ts_atom.tessera_, ref, ts_nif_dtype(buffer->dtype), ts_nif_shape(env, &buffer->shape)};
  *out = enif_make_tuple_from_array(env, fields, 4);
  return TS_SUCCESS;
}

bool ts_nif_tensor_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out) {
  static _Thread_local int last TS_STATIC_LOCAL; /* the type of the last tensor, and of most later ones */
  for (int i = 0; i < TENSOR_TYPES; i++, last = (last + 1) % TENSOR_TYPES)
    if (enif_get_resource(env, term, tensor_types[last], (void **)out)) return true;
  return false;
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

/* ---- devices ---- */

ERL_NIF_TERM ts_nif_deallocate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* deallocate(Ref) -> ok | deallocated */
  ts_nif_tensor *tensor;
  (void)argc;
  if (!ts_nif_tensor_get(env, argv[0], &tensor)) return ts_nif_error(env, ts_nif_expected(env, "a tensor", argv[0]));
  if (atomic_exchange(&tensor->deallocated, true)) return ts_atom.deallocated_;
  if (atomic_load(&tensor->pins) > 0) ts_nif_tensor_unpin(tensor);
  return ts_atom.ok_;
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
