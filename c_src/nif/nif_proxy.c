#include "nif/nif_proxy.h"

#include <stdatomic.h>

typedef struct place {
  ErlNifPid owner;
  int64_t rank;
  ErlNifEnv *env; /* of `about` */
  ERL_NIF_TERM about;
  int64_t enough;        /* bytes of proxies that do not make callers collect garbage yet */
  _Atomic int64_t held;  /* bytes of the proxies that are referred to */
  _Atomic int64_t least; /* the least since garbage was collected */
} place;

typedef struct proxy {
  place *place; /* a reference */
  uint64_t id;
  int64_t bytes;
  _Atomic bool taken; /* it was donated or deallocated: its number stands for nothing */
} proxy;

static ErlNifResourceType *place_type, *proxy_type;

/* ---- resources ---- */

static void place_destroy(ErlNifEnv *env, void *object) {
  place *p = object;
  (void)env;
  if (p->env) enif_free_env(p->env);
}

static void tell_freed(ErlNifEnv *env, const proxy *p) {
  ErlNifEnv *message = enif_alloc_env();
  if (!message) return; /* the rank frees the value when the job ends */
  ERL_NIF_TERM rank = enif_make_int64(message, p->place->rank), id = enif_make_uint64(message, p->id);
  (void)enif_send(env, &p->place->owner, message, enif_make_tuple3(message, ts_atom.freed_, rank, id));
  enif_free_env(message);
}

static void proxy_destroy(ErlNifEnv *env, void *object) {
  proxy *p = object;
  atomic_fetch_sub(&p->place->held, p->bytes);
  if (!atomic_load(&p->taken)) tell_freed(env, p);
  enif_release_resource(p->place);
}

bool ts_nif_proxy_init(ErlNifEnv *env, ErlNifResourceFlags flags) {
  place_type = enif_open_resource_type(env, NULL, "tessera_place", place_destroy, flags, NULL);
  proxy_type = enif_open_resource_type(env, NULL, "tessera_proxy", proxy_destroy, flags, NULL);
  return place_type && proxy_type;
}

/* ---- places ---- */

static ts_status get_place(ErlNifEnv *env, ERL_NIF_TERM term, place **out) {
  void *object;
  if (!enif_get_resource(env, term, place_type, &object)) return ts_nif_expected(env, "a place", term);
  *out = object;
  return TS_SUCCESS;
}

static ts_status make_place(ErlNifEnv *env, const ERL_NIF_TERM argv[], place *out) {
  if (!enif_get_local_pid(env, argv[0], &out->owner)) return ts_nif_expected(env, "a local pid", argv[0]);
  TS_TRY(ts_nif_get_int(env, argv[1], "a rank", &out->rank));
  TS_TRY(ts_nif_get_int(env, argv[3], "a number of bytes", &out->enough));
  out->env = enif_alloc_env();
  if (!out->env) return ts_error_no_memory();
  out->about = enif_make_copy(out->env, argv[2]);
  return TS_SUCCESS;
}

ERL_NIF_TERM ts_nif_place(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* place(Owner :: pid(), Rank, About :: term(), Enough :: non_neg_integer()) -> Place: for proxies of one rank. With
   * more than Enough bytes of them place_is_full/1 asks for a collection of garbage */
  (void)argc;
  place *p = enif_alloc_resource(place_type, sizeof *p);
  if (!p) return ts_nif_error(env, ts_error_no_memory());
  *p = (place){0};
  ts_status status = make_place(env, argv, p);
  ERL_NIF_TERM term = enif_make_resource(env, p);
  enif_release_resource(p);
  return status ? ts_nif_error(env, status) : term;
}

ERL_NIF_TERM ts_nif_place_is_full(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* place_is_full(Place) -> boolean(): whether nearly half as much again is held as after the last collection, as
   * for tensors of this node */
  place *p;
  (void)argc;
  TS_NIF_TRY(env, get_place(env, argv[0], &p));
  int64_t held = atomic_load(&p->held), least = atomic_load(&p->least);
  if (held < least) atomic_store(&p->least, held);
  return held > p->enough && held > least + least / 16 * 7 ? ts_atom.true_ : ts_atom.false_;
}

ERL_NIF_TERM ts_nif_place_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* place_collected(Place) -> ok: the caller was garbage-collected */
  place *p;
  (void)argc;
  TS_NIF_TRY(env, get_place(env, argv[0], &p));
  atomic_store(&p->least, atomic_load(&p->held));
  return ts_atom.ok_;
}

/* ---- proxies ---- */

static ts_status get_number(ErlNifEnv *env, const ERL_NIF_TERM argv[], uint64_t *out_id, int64_t *out_bytes) {
  ErlNifUInt64 id;
  if (!enif_get_uint64(env, argv[1], &id)) return ts_nif_expected(env, "the number of a value", argv[1]);
  *out_id = id;
  return ts_nif_get_int(env, argv[2], "a number of bytes", out_bytes);
}

ERL_NIF_TERM ts_nif_proxy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* proxy(Place, Id, Bytes) -> Ref: stands for the value of that number at the place, and owns it */
  place *at;
  uint64_t id;
  int64_t bytes;
  (void)argc;
  TS_NIF_TRY(env, get_place(env, argv[0], &at));
  TS_NIF_TRY(env, get_number(env, argv, &id, &bytes));
  proxy *p = enif_alloc_resource(proxy_type, sizeof *p);
  if (!p) return ts_nif_error(env, ts_error_no_memory());
  enif_keep_resource(at);
  p->place = at;
  p->id = id;
  p->bytes = bytes;
  atomic_init(&p->taken, false);
  atomic_fetch_add(&at->held, bytes);
  ERL_NIF_TERM term = enif_make_resource(env, p);
  enif_release_resource(p);
  return term;
}

ERL_NIF_TERM ts_nif_is_proxy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* is_proxy(term()) -> boolean() */
  void *object;
  (void)argc;
  return enif_get_resource(env, argv[0], proxy_type, &object) ? ts_atom.true_ : ts_atom.false_;
}

ERL_NIF_TERM ts_nif_proxy_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* proxy_info(Ref) -> {Rank, Id, About} | false: false unless Ref is a proxy */
  void *object;
  (void)argc;
  if (!enif_get_resource(env, argv[0], proxy_type, &object)) return ts_atom.false_;
  const proxy *p = object;
  if (atomic_load(&p->taken))
    return ts_nif_error(env, ts_error(TS_FAILED_PRECONDITION, "the tensor was deallocated or donated"));
  return enif_make_tuple3(env, enif_make_int64(env, p->place->rank), enif_make_uint64(env, p->id),
                          enif_make_copy(env, p->place->about));
}

ERL_NIF_TERM ts_nif_proxy_take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
  /* proxy_take(Ref) -> ok | deallocated: from now on the caller owns the value, and the proxy is as a deallocated
   * tensor */
  void *object;
  (void)argc;
  if (!enif_get_resource(env, argv[0], proxy_type, &object))
    return ts_nif_error(env, ts_nif_expected(env, "a tensor of a cluster", argv[0]));
  return atomic_exchange(&((proxy *)object)->taken, true) ? ts_atom.deallocated_ : ts_atom.ok_;
}
