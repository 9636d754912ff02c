/* Runs of all partitions of a program. */
#ifndef TS_NIF_GROUP_H
#define TS_NIF_GROUP_H

#include "nif/nif_util.h"

ERL_NIF_TERM ts_nif_run_group(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run_refuse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_run_rank(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
