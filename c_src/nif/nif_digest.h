/* Digests of terms: 128 bits that equal terms have and no others, in this VM. A
 * term that is shared counts once, so a digest costs what the term takes where it
 * lies, while to hash, compare, copy or store the term itself costs what it would
 * take unfolded. Thread-safe. */
#ifndef TS_NIF_DIGEST_H
#define TS_NIF_DIGEST_H

#include "nif/nif_util.h"

bool ts_nif_digest_init(ErlNifEnv *env, ErlNifResourceFlags flags);

ERL_NIF_TERM ts_nif_digest(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_digest_more(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* Frees what is kept for the next calls. */
void ts_nif_digest_forget(void);

#endif
