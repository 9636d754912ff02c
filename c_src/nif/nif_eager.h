/* Ops called on tensors, one at a time: each is a program of one op, compiled once for its operands' types and shapes
 * and kept in a bounded cache. Thread-safe. */
#ifndef TS_NIF_EAGER_H
#define TS_NIF_EAGER_H

#include "nif/run/nif_args.h"

ERL_NIF_TERM ts_nif_op(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_op_like(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_eager_clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
