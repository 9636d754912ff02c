/* Files as binaries without a copy (base/mapped_file.h). Thread-safe. */
#ifndef TS_NIF_MAPPED_H
#define TS_NIF_MAPPED_H

#include <erl_nif.h>
#include <stdbool.h>

bool ts_nif_mapped_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* A NIF; its Erlang signature is at the body. */
ERL_NIF_TERM ts_nif_map_file(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
