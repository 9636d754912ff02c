/* What was read of an expression: between nif_expr_read.c, which fills it, and
 * those that make programs of it or write it down. It owns its arrays. */
#ifndef TS_NIF_EXPR_INTERNAL_H
#define TS_NIF_EXPR_INTERNAL_H

#include "ir/graph.h"
#include "nif/nif_expr.h"

#include <stdatomic.h>

/* A node. Leaves, which are arguments and tensors, have no rule: `first` says which leaf it is, and `count` which
 * parameter of the program, once it is used. A tuple has no form; ELEM is result `count` of the tuple `first`. */
#define TS_EXPR_ELEM (TS_NO_ID - 1)

typedef struct ts_expr_value {
  uint32_t rule;
  uint32_t form;
  uint32_t first, count; /* among `uses` */
} ts_expr_value;

/* What a rule makes of its operands. */
typedef struct ts_expr_rule {
  const ts_graph *graph;
  ts_region_id region;
} ts_expr_rule;

/* One that is kept for all. */
typedef struct ts_expr_kept {
  _Atomic uint32_t refs;
  struct ts_nif_builder *program; /* a reference to the resource */
  ts_expr_rule rule;
  size_t length;
  char text[]; /* of the region as a program */
} ts_expr_kept;

/* Where a rule is from: it is kept, or a constant, or Erlang makes it. That one may have a key among `keys`, by which
 * it is kept then. */
typedef struct ts_expr_origin {
  ts_expr_kept *kept;    /* a reference, or NULL */
  ts_region_id constant; /* a region of `constants`, or 0 */
  uint32_t key, key_words;
} ts_expr_origin;

static inline bool ts_expr_is_known(const ts_expr_origin *origin) { return origin->kept || origin->constant; }

typedef struct ts_expr {
  TS_VEC(ts_expr_value) values;   /* each after what it uses */
  TS_VEC(uint32_t) uses;          /* values */
  TS_VEC(uint32_t) results;       /* values */
  TS_VEC(uint32_t) params;        /* forms */
  TS_VEC(uint32_t) arities;       /* of each rule: how many results */
  TS_VEC(ts_expr_origin) origins; /* of each rule */
  TS_VEC(uint64_t) keys;
  ts_graph *constants;
  TS_VEC(ts_type) forms;
  uint32_t rule_count;
} ts_expr;

void ts_expr_deinit(ts_expr *e);

/* ---- reading ---- */

/* What Erlang is told besides. Terms of the call in which it was read. */
typedef struct ts_expr_terms {
  TS_VEC(ERL_NIF_TERM) sources; /* of each parameter: a position or a tensor */
  TS_VEC(ERL_NIF_TERM) nodes;   /* one of each rule that Erlang makes */
  TS_VEC(uint32_t) examples;    /* the values of those, which come in their order */
} ts_expr_terms;

typedef enum ts_expr_outcome { TS_EXPR_READ, TS_EXPR_OTHER, TS_EXPR_LONG } ts_expr_outcome;

void ts_expr_atoms_init(ErlNifEnv *env);

/* The memory of a walk over an expression; see nif_expr_reader.h. */
typedef struct ts_expr_reader ts_expr_reader;

ts_status ts_expr_reader_take(ErlNifEnv *env, ts_expr_reader **out);
void ts_expr_reader_give(ts_expr_reader *reader);
/* The kept one goes. */
void ts_expr_reader_forget(void);

/* Reads a list of nodes. OTHER: there is more than plain steps, such as an op among `scoped`; LONG: there are more
 * nodes than `limit`. The terms are the reader's. */
ts_status ts_expr_read(ts_expr_reader *reader, ERL_NIF_TERM roots, ERL_NIF_TERM scoped, size_t limit, ts_expr *e,
                       const ts_expr_terms **out_terms, ts_expr_outcome *out);

/* ---- programs ---- */

static inline const ts_region *ts_expr_region(const ts_expr_rule *rule) {
  return ts_graph_region(rule->graph, rule->region);
}

/* The finished program. Operands must have the types of the rules' parameters. */
ts_status ts_expr_make(const ts_expr *e, const ts_expr_rule *rules, ts_graph **out);

/* Expression and rules as bytes: much shorter than the text of the program, and as good a name for it. Rules that are
 * regions of `program`, which may be NULL, are kept from now on. */
ts_status ts_expr_pack(const ts_expr *e, const ts_expr_rule *rules, struct ts_nif_builder *program, ts_text *out);
/* The finished program, from whatever bytes. */
ts_status ts_expr_unpack(const void *bytes, size_t size, ts_graph **out);

#endif
