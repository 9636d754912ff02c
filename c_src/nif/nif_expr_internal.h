/* The interface between nif_expr_read.c, which reads expressions, and nif_expr.c: the terms that Erlang gets besides
 * the expression's values. */
#ifndef TS_NIF_EXPR_INTERNAL_H
#define TS_NIF_EXPR_INTERNAL_H

#include "front/expr.h"
#include "nif/nif_expr.h"

/* Terms for Erlang, in the environment of the call in which they were read. */
typedef struct ts_expr_terms {
  TS_VEC(ERL_NIF_TERM) sources; /* of each parameter: a position or a tensor */
  TS_VEC(ERL_NIF_TERM) nodes;   /* a node of each rule that Erlang must lower */
  TS_VEC(uint32_t) examples;    /* the values of those nodes, in the same order */
} ts_expr_terms;

typedef enum ts_expr_outcome { TS_EXPR_READ, TS_EXPR_OTHER, TS_EXPR_LONG } ts_expr_outcome;

void ts_expr_atoms_init(ErlNifEnv *env);

/* The state of a walk over one expression; see nif_expr_reader.h. */
typedef struct ts_expr_reader ts_expr_reader;

ts_status ts_expr_reader_create(ErlNifEnv *env, ts_expr_reader **out);
void ts_expr_reader_destroy(ts_expr_reader *reader);

typedef struct ts_expr_request {
  ERL_NIF_TERM roots;  /* a list of nodes */
  ERL_NIF_TERM scoped; /* a list of names of ops */
  size_t limit;        /* of nodes */
} ts_expr_request;

/* Reads an expression. OTHER: there is an op among `scoped` or anything else that is not a plain step; LONG: there are
 * more nodes than `limit`. The reader owns the terms. */
ts_status ts_expr_read(ts_expr_reader *reader, const ts_expr_request *request, ts_expr *e,
                       const ts_expr_terms **out_terms, ts_expr_outcome *out);

#endif
