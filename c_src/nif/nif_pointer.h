/* Memory shared with other owners, in both directions: by address within this process, by name with other processes of
 * this machine. Thread-safe. */
#ifndef TS_NIF_POINTER_H
#define TS_NIF_POINTER_H

#include "nif/nif_tensor.h"

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_from_address(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_share(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_from_shared(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
