/* Blocks: memory for bytes that come in parts: a cluster's driver and ranks send them to each other outside of terms. A
 * block is filled from its begin to its end, and then taken, once: as a binary, or as a tensor. A *pooled* block is
 * memory of the host's pool, counted by its limit, and a tensor takes that memory over; if the limit does not allow it,
 * and for a *loose* block, the memory is a binary's. Thread-safe. */
#ifndef TS_NIF_BLOCK_H
#define TS_NIF_BLOCK_H

#include "nif/nif_util.h"

bool ts_nif_block_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_block_append(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_block_binary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_block_tensor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
