/* The places of a traced program's ops in the user's source (base/places.h), for profiles. */
#ifndef TS_NIF_PLACES_H
#define TS_NIF_PLACES_H

#include "base/places.h"
#include "nif/nif_util.h"

/* The lines as a list of binaries, as the front end gave them. */
ERL_NIF_TERM ts_nif_lines(ErlNifEnv *env, const ts_line *lines, size_t count);

ERL_NIF_TERM ts_nif_places_record(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_places_set(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_places_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_places_known(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_places_lend(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
