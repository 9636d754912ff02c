/* Types and shapes of nodes by number. The same terms are the same form, without
 * a look at what they say. For the reader of expressions; not thread-safe. */
#ifndef TS_NIF_EXPR_FORM_H
#define TS_NIF_EXPR_FORM_H

#include "nif/nif_expr_internal.h"
#include "nif/nif_expr_table.h"

/* The terms of a form, which are part of `terms`. */
typedef struct ts_expr_known_form {
  size_t terms, count;
  uint32_t form;
} ts_expr_known_form;

/* Terms do not move during a call: what was asked for lately is told by where it is. */
enum { TS_EXPR_RECENT_FORMS = 64 };

typedef struct ts_expr_recent_form {
  ERL_NIF_TERM type, axes, shape;
  uint32_t form;
} ts_expr_recent_form;

typedef struct ts_expr_forms {
  ErlNifEnv *env;
  ts_expr_recent_form recent[TS_EXPR_RECENT_FORMS];
  ts_expr_table by_terms, by_form;
  TS_VEC(ts_expr_known_form) known;
  TS_VEC(ERL_NIF_TERM) terms;
} ts_expr_forms;

void ts_expr_forms_init(ErlNifEnv *env); /* of all: the atoms */
void ts_expr_forms_deinit(ts_expr_forms *forms);
/* For another expression. */
void ts_expr_forms_reset(ts_expr_forms *forms, ErlNifEnv *env);
size_t ts_expr_forms_bytes(const ts_expr_forms *forms);

/* Which of the expression's forms it is, perhaps a new one; TS_NO_ID when the terms are no form of the core's.
 * Vectorized axes are leading dimensions. */
ts_status ts_expr_form(ts_expr_forms *forms, ERL_NIF_TERM type, ERL_NIF_TERM axes, ERL_NIF_TERM shape, ts_expr *e,
                       uint32_t *out);

#endif
