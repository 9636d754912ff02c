/* Files as binaries: mapped (base/mapped_file.h), or read into tensor memory. Thread-safe. */
#ifndef TS_NIF_MAPPED_H
#define TS_NIF_MAPPED_H

#include <erl_nif.h>
#include <stdbool.h>

bool ts_nif_mapped_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_map_file(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_read_file(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
