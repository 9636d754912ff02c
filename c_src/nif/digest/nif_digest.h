/* Digests of terms: 128 bits that are equal for equal terms, and else different, within one VM. A digest takes time in
 * proportion to the term's memory, since a shared subterm is read once; hashing, comparing or copying the term takes
 * time in proportion to its unfolded size. Thread-safe. */
#ifndef TS_NIF_DIGEST_H
#define TS_NIF_DIGEST_H

#include "nif/nif_util.h"

bool ts_nif_digest_init(ErlNifEnv *env, ErlNifResourceFlags flags);

ERL_NIF_TERM ts_nif_digest(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_digest_more(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* Frees the walks that are kept for later calls. */
void ts_nif_digest_forget(void);

#endif
