/* Tensors as resources. In Erlang one is {tessera, Ref, Type, Shape}. A
 * resource holds one reference of its buffer until it is collected, deallocated
 * or donated; whoever uses the buffer in a call pins the resource meanwhile.
 * Thread-safe. */
#ifndef TS_NIF_TENSOR_H
#define TS_NIF_TENSOR_H

#include "nif/nif_account.h"
#include "nif/nif_util.h"
#include "tensor/buffer.h"

/* States, by `pins`: n > 0, alive, with n - 1 calls that use it; 0, gone. A
 * deallocated one refuses new pins and goes with the last. */
typedef struct ts_nif_tensor {
  _Atomic uint32_t pins;
  _Atomic bool deallocated;
  _Atomic ts_nif_account account; /* where its bytes are counted */
  ts_buffer *buffer;
  struct ts_mapping *_Atomic shared; /* what other processes see of it, or NULL; gone with the resource */
} ts_nif_tensor;

bool ts_nif_tensor_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* The term for a new tensor; takes over the caller's reference, also on failure. */
ts_status ts_nif_tensor_make(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out);
/* The same, but only Ref. */
ts_status ts_nif_tensor_make_handle(ErlNifEnv *env, ts_buffer *buffer, ERL_NIF_TERM *out);
/* False when `term` is no tensor handle. The pointer lives as long as the term. */
bool ts_nif_tensor_get(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out);
/* The same for the whole {tessera, Ref, ...}; also gives Ref, of whatever kind. */
bool ts_nif_tessera_get(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *out_ref);

/* On success tensor->buffer may be used until ts_nif_tensor_unpin. */
ts_status ts_nif_tensor_pin(ts_nif_tensor *tensor);
/* Finds and pins the tensor that a NIF got. */
ts_status ts_nif_tensor_get_pinned(ErlNifEnv *env, ERL_NIF_TERM term, ts_nif_tensor **out);
void ts_nif_tensor_unpin(ts_nif_tensor *tensor);
/* Takes the buffer out of a tensor that nobody else uses; false when somebody does. Undone by give_back. */
bool ts_nif_tensor_take(ts_nif_tensor *tensor);
void ts_nif_tensor_give_back(ts_nif_tensor *tensor);
/* After a take whose buffer went elsewhere. */
void ts_nif_tensor_taken(ts_nif_tensor *tensor);

/* What a NIF on a dirty scheduler ends with, sooner or later, when enif_is_current_process_alive() says no: nobody sees
 * it. */
static inline ts_status ts_nif_caller_died(void) { return ts_error(TS_CANCELLED, "the calling process has died"); }

/* The result of a NIF that made tensors: `term`, or {pressure, term} when garbage should be collected. */
ERL_NIF_TERM ts_nif_with_pressure(ErlNifEnv *env, ERL_NIF_TERM term);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_from_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_to_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_deallocate(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_assign(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_memory(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_set_limit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_set_small_pages(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_reset_peak(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_trim(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
/* nif_list.c */
ERL_NIF_TERM ts_nif_from_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_to_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
