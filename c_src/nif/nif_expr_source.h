/* The sources of a program's parameters: positions of arguments, and tensors that the function closes over. For the
 * reader of expressions; not thread-safe. */
#ifndef TS_NIF_EXPR_SOURCE_H
#define TS_NIF_EXPR_SOURCE_H

#include "front/expr_table.h"
#include "nif/nif_expr_internal.h"

typedef struct ts_expr_sources {
  ErlNifEnv *env;
  ts_expr_table by_leaf;
} ts_expr_sources;

void ts_expr_sources_init(ErlNifEnv *env); /* once for the process: makes the atoms */
void ts_expr_sources_deinit(ts_expr_sources *sources);

/* The parameter of a leaf of this form; a new leaf becomes the source of a new parameter. Leaves with equal positions,
 * and tensors of one form with the same bytes, share a parameter. So the program does not depend on the values of
 * tensors that the function closes over. */
ts_status ts_expr_source(ts_expr_sources *sources, ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms,
                         uint32_t *out);

/* Adds the parameter of a leaf that equals no other one. */
ts_status ts_expr_source_add(ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms, uint32_t *out);
/* Checks that all leaves of a parameter have one form. */
ts_status ts_expr_check_param(const ts_expr *e, uint32_t param, uint32_t form);

#endif
