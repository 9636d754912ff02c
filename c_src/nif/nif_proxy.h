/* Proxies of tensors on ranks of a cluster. On the driver's node a tensor has a proxy instead of a handle. A proxy has
 * a number and a *place*: the place stands for one rank of one job; C keeps the place's term `About` and does not read
 * it. When the last reference to a proxy is dropped, the place's owner, a process, gets the message {freed, Rank, Id}.
 * NIFs that take tensors refuse proxies. Thread-safe. */
#ifndef TS_NIF_PROXY_H
#define TS_NIF_PROXY_H

#include "nif/nif_util.h"

bool ts_nif_proxy_init(ErlNifEnv *env, ErlNifResourceFlags flags);

/* NIFs; their Erlang signatures are at the bodies. */
ERL_NIF_TERM ts_nif_place(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_place_is_full(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_place_collected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_proxy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_is_proxy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_proxy_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_proxy_take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
