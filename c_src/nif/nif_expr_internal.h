/* What was read of an expression: between nif_expr_read.c, which fills it, and
 * those that make programs of it or write it down. It owns its arrays. */
#ifndef TS_NIF_EXPR_INTERNAL_H
#define TS_NIF_EXPR_INTERNAL_H

#include "ir/graph.h"
#include "nif/nif_expr.h"

/* A node. Leaves, which are arguments and tensors, have no rule: `first` says which leaf it is, and `count` which
 * parameter of the program, once it is used. A tuple has no form; ELEM is result `count` of the tuple `first`. */
#define TS_EXPR_ELEM (TS_NO_ID - 1)

typedef struct ts_expr_value {
  uint32_t rule;
  uint32_t form;
  uint32_t first, count; /* among `uses` */
} ts_expr_value;

typedef struct ts_expr {
  TS_VEC(ts_expr_value) values; /* each after what it uses */
  TS_VEC(uint32_t) uses;        /* values */
  TS_VEC(uint32_t) results;     /* values */
  TS_VEC(uint32_t) params;      /* forms */
  TS_VEC(uint32_t) arities;     /* of each rule: how many results */
  TS_VEC(ts_type) forms;
  uint32_t rule_count;
} ts_expr;

void ts_expr_deinit(ts_expr *e);

/* ---- reading ---- */

/* What Erlang is told besides. */
typedef struct ts_expr_terms {
  TS_VEC(ERL_NIF_TERM) sources; /* of each parameter: a position or a tensor */
  TS_VEC(ERL_NIF_TERM) nodes;   /* of each rule one */
  TS_VEC(uint32_t) examples;    /* the values of those, which come in their order */
} ts_expr_terms;

void ts_expr_terms_deinit(ts_expr_terms *terms);

typedef enum ts_expr_outcome { TS_EXPR_READ, TS_EXPR_OTHER, TS_EXPR_LONG } ts_expr_outcome;

void ts_expr_atoms_init(ErlNifEnv *env);
/* Reads a list of nodes. OTHER: there is more than plain steps, such as an op among `scoped`; LONG: there are more
 * nodes than `limit`. */
ts_status ts_expr_read(ErlNifEnv *env, ERL_NIF_TERM roots, ERL_NIF_TERM scoped, size_t limit, ts_expr *e,
                       ts_expr_terms *terms, ts_expr_outcome *out);

/* ---- programs ---- */

/* What a rule makes of its operands. */
typedef struct ts_expr_rule {
  const ts_graph *graph;
  ts_region_id region;
} ts_expr_rule;

static inline const ts_region *ts_expr_region(const ts_expr_rule *rule) {
  return ts_graph_region(rule->graph, rule->region);
}

/* The finished program. Operands must have the types of the rules' parameters. */
ts_status ts_expr_make(const ts_expr *e, const ts_expr_rule *rules, ts_graph **out);

/* Expression and rules as bytes: much shorter than the text of the program, and as good a name for it. */
ts_status ts_expr_pack(const ts_expr *e, const ts_expr_rule *rules, ts_text *out);
/* The finished program, from whatever bytes. */
ts_status ts_expr_unpack(const void *bytes, size_t size, ts_graph **out);

#endif
