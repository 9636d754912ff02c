/* Types and shapes of nodes by number. Equal terms are found as the same form without being decoded. For the reader of
 * expressions; not thread-safe. */
#ifndef TS_NIF_EXPR_FORM_H
#define TS_NIF_EXPR_FORM_H

#include "front/expr_table.h"
#include "nif/nif_expr_internal.h"

/* The terms of a form: a range in `terms`. */
typedef struct ts_expr_known_form {
  size_t terms, count;
  uint32_t form;
} ts_expr_known_form;

typedef struct ts_expr_forms {
  ErlNifEnv *env;
  ts_expr_table by_terms, by_form;
  TS_VEC(ts_expr_known_form) known;
  TS_VEC(ERL_NIF_TERM) terms;
} ts_expr_forms;

void ts_expr_forms_init(ErlNifEnv *env); /* once for the process: makes the atoms */
void ts_expr_forms_deinit(ts_expr_forms *forms);

/* The index of the form in the expression, which is added if it is new; TS_NO_ID when the core has no such type or
 * shape. Vectorized axes become leading dims. */
ts_status ts_expr_form(ts_expr_forms *forms, ERL_NIF_TERM type, ERL_NIF_TERM axes, ERL_NIF_TERM shape, ts_expr *e,
                       uint32_t *out);

#endif
