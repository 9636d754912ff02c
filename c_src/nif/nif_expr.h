/* Expressions of Nx, as the VM has them: maps that refer to each other. They are
 * read once. Steps that differ in nothing but the values that they read have one
 * rule; Erlang lowers each rule once, and the program is made of copies of those.
 * What an op of Nx means is not known here. Thread-safe: what was read does not
 * change. */
#ifndef TS_NIF_EXPR_H
#define TS_NIF_EXPR_H

#include "nif/nif_util.h"

bool ts_nif_expr_init(ErlNifEnv *env, ErlNifResourceFlags flags);
/* What is kept for the next ones goes. */
void ts_nif_expr_forget(void);

ERL_NIF_TERM ts_nif_expression_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_pack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_unpack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
