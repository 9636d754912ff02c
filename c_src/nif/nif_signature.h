/* The part of a call's arguments that the compilation of an Nx function depends on: the containers with their keys, and
 * for each tensor type, shape, names, vectorized axes and whether it is donated. Thread-safe. */
#ifndef TS_NIF_SIGNATURE_H
#define TS_NIF_SIGNATURE_H

#include "nif/nif_util.h"

void ts_nif_signature_init(ErlNifEnv *env); /* makes the atoms */

ERL_NIF_TERM ts_nif_signature(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
