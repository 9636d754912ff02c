/* Calls that make tensors while another process waits for memory. They are refused, so that the process that has waited
 * longest gets memory before later ones (tessera_turns.erl). Thread-safe. */
#ifndef TS_NIF_TURNS_H
#define TS_NIF_TURNS_H

#include "base/status.h"

#include <erl_nif.h>
#include <stdatomic.h>
#include <stdint.h>

/* Until when others are refused, in milliseconds; 0: they are not. */
extern _Atomic int64_t ts_nif_turn_until;

ts_status ts_nif_turn_check_slow(ErlNifEnv *env, int64_t until);

/* TS_RESOURCE_EXHAUSTED while it is another process's turn. Called where a NIF begins, not in the middle of a run. */
static inline ts_status ts_nif_turn_check(ErlNifEnv *env) {
  int64_t until = atomic_load_explicit(&ts_nif_turn_until, memory_order_relaxed);
  return __builtin_expect(until == 0, 1) ? TS_SUCCESS : ts_nif_turn_check_slow(env, until);
}

/* A NIF; its Erlang signature is at the body. */
ERL_NIF_TERM ts_nif_let_in(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
