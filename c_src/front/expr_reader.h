/* Reads expressions: a walk from the results to the leaves with an explicit stack. Nodes are identified by their ids,
 * rules by op, type, shape, arguments and the forms of the operands. A reader reads one expression. Not thread-safe. */
#ifndef TS_FRONT_EXPR_READER_H
#define TS_FRONT_EXPR_READER_H

#include "front/expr.h"
#include "front/expr_source.h"

/* OTHER: there is an op among `scoped`, or anything else that is not a plain step. LONG: there are more nodes than
 * `limit`. */
typedef enum ts_expr_outcome { TS_EXPR_READ, TS_EXPR_OTHER, TS_EXPR_LONG } ts_expr_outcome;

typedef struct ts_expr_request {
  const ts_expr_term *roots, *scoped; /* nodes; ops */
  size_t root_count, scoped_count;
  size_t limit; /* of nodes */
} ts_expr_request;

/* Facts about an expression besides its values, as terms of its source. */
typedef struct ts_expr_terms {
  TS_VEC(ts_expr_term) sources; /* the leaf of each parameter */
  TS_VEC(ts_expr_term) nodes;   /* a node of each rule that must be lowered */
  TS_VEC(uint32_t) examples;    /* the values of these nodes, in the same order */
} ts_expr_terms;

ts_status ts_expr_reader_create(const ts_expr_source *source, ts_expr_reader **out);
void ts_expr_reader_destroy(ts_expr_reader *reader);
/* The reader owns the terms. `e` is empty unless all is read. */
ts_status ts_expr_read(ts_expr_reader *reader, const ts_expr_request *request, ts_expr *e,
                       const ts_expr_terms **out_terms, ts_expr_outcome *out);

/* ---- for sources: the arguments of a node */

/* Ends the walk. */
ts_status ts_expr_stop(ts_expr_reader *reader, ts_expr_outcome why);
ts_status ts_expr_put_operand(ts_expr_reader *reader, ts_expr_term node); /* alone */
ts_status ts_expr_put_node(ts_expr_reader *reader, ts_expr_term node);    /* as an argument */
ts_status ts_expr_put_atom(ts_expr_reader *reader, ts_expr_term atom);
/* `term` is the integer: one of more than 61 bits is put as a term. */
ts_status ts_expr_put_integer(ts_expr_reader *reader, int64_t integer, ts_expr_term term, uint32_t hash);
ts_status ts_expr_put_float(ts_expr_reader *reader, double number);
ts_status ts_expr_put_term(ts_expr_reader *reader, ts_expr_term term, uint32_t hash);
ts_status ts_expr_put_list(ts_expr_reader *reader);
ts_status ts_expr_put_tuple(ts_expr_reader *reader);
ts_status ts_expr_put_end(ts_expr_reader *reader); /* of a list or tuple */

#endif
