/* The local view: a program that is traced as the program of one partition of a mesh (docs/distribution.md). */
#ifndef TS_NIF_LOCAL_H
#define TS_NIF_LOCAL_H

#include "nif/nif_graph.h"

ERL_NIF_TERM ts_nif_local_view(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_local_sharding(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_coordinates(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_varying(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_vary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_has_collective(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_combine(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
