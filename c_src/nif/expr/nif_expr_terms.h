/* Terms of Nx's expressions as a source of nodes for front/expr_reader.h. */
#ifndef TS_NIF_EXPR_TERMS_H
#define TS_NIF_EXPR_TERMS_H

#include "front/expr_source.h"
#include "nif/nif_util.h"

void ts_nif_expr_terms_init(ErlNifEnv *env); /* once for the process: makes the atoms */
/* Its terms live as long as the call of `env`. */
ts_expr_source ts_nif_expr_source(ErlNifEnv *env);

#endif
