/* Terms that live until their reference is collected, outside of processes: a function that is kept does not bind its
 * holder to a version of the code, and a reference that is sent to another node does not take the term along.
 * Thread-safe. */
#ifndef TS_NIF_KEPT_H
#define TS_NIF_KEPT_H

#include <erl_nif.h>
#include <stdbool.h>

bool ts_nif_kept_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_keep(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_kept(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
