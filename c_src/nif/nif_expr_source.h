/* What the parameters of an expression's program are: positions of arguments, and
 * tensors that the function holds. For the reader of expressions; not thread-safe. */
#ifndef TS_NIF_EXPR_SOURCE_H
#define TS_NIF_EXPR_SOURCE_H

#include "nif/nif_expr_internal.h"
#include "nif/nif_expr_table.h"

typedef struct ts_expr_sources {
  ErlNifEnv *env;
  ts_expr_table by_leaf;
} ts_expr_sources;

void ts_expr_sources_init(ErlNifEnv *env); /* of all: the atoms */
void ts_expr_sources_deinit(ts_expr_sources *sources);
void ts_expr_sources_reset(ts_expr_sources *sources, ErlNifEnv *env); /* for another expression */

/* Which of the expression's parameters a leaf of this form is, perhaps a new one, whose source it becomes. Leaves with
 * one position, and tensors of one form with the same bytes, are one parameter: so another value of a tensor that the
 * function holds needs no other program. */
ts_status ts_expr_source(ts_expr_sources *sources, ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms,
                         uint32_t *out);

/* One of a leaf that is known to be like no other. */
ts_status ts_expr_source_add(ERL_NIF_TERM leaf, uint32_t form, ts_expr *e, ts_expr_terms *terms, uint32_t *out);
/* A parameter has one form. */
ts_status ts_expr_check_param(const ts_expr *e, uint32_t param, uint32_t form);

#endif
