/* A rank of a job: MPI, whose library is loaded on demand, and the end of the process. */
#ifndef TS_NIF_RANK_H
#define TS_NIF_RANK_H

#include "group/carrier.h"
#include "nif/nif_util.h"

/* NULL until rank_open has succeeded. */
ts_carrier *ts_nif_rank_carrier(void);

ERL_NIF_TERM ts_nif_rank_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_rank_isa(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_rank_build(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_rank_moved(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_rank_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_rank_exit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
