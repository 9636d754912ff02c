/* Nx expressions as the VM has them: maps that refer to each other. They are read once. Steps that differ only in their
 * operands share a rule; Erlang lowers each rule once, and the program is made of copies of the rules. The meaning of
 * Nx's ops is not known here. Thread-safe: expressions are immutable. */
#ifndef TS_NIF_EXPR_H
#define TS_NIF_EXPR_H

#include "nif/nif_util.h"

bool ts_nif_expr_init(ErlNifEnv *env, ErlNifResourceFlags flags);
/* Clears the cache of rules. */
void ts_nif_expr_forget(void);

ERL_NIF_TERM ts_nif_expression_read(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_pack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_unpack(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM ts_nif_expression_program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
