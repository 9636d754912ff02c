/* Profiles as resources: the runs and eager ops of the process that started one are measured (exec/profile.h). A
 * process may have several, one inside the other. Thread-safe. */
#ifndef TS_NIF_PROFILE_H
#define TS_NIF_PROFILE_H

#include "exec/profile.h"
#include "nif/nif_util.h"

#include <stdatomic.h>

bool ts_nif_profile_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* Profiles of all processes. */
extern _Atomic int ts_nif_profile_count;

ts_profile *ts_nif_profile_find(ErlNifEnv *env);
/* The innermost profile of the calling process, valid during the call; NULL: it has none. */
static inline ts_profile *ts_nif_profile(ErlNifEnv *env) {
  return atomic_load_explicit(&ts_nif_profile_count, memory_order_relaxed) ? ts_nif_profile_find(env) : NULL;
}

/* The result of a NIF that has run programs: `term`, or {profiled, Number, term} if the profile sees program Number for
 * the first time. Erlang then notes which line called. */
ERL_NIF_TERM ts_nif_profile_mark(ErlNifEnv *env, ERL_NIF_TERM term);
static inline ERL_NIF_TERM ts_nif_profiled(ErlNifEnv *env, ERL_NIF_TERM term) {
  return atomic_load_explicit(&ts_nif_profile_count, memory_order_relaxed) ? ts_nif_profile_mark(env, term) : term;
}

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_profile_start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_profile_stop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_profile_lines(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_profile_rows(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
