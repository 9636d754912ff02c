/* The source of an expression's nodes: terms of a VM (nif/expr/nif_expr_terms.c), or a test's own. Its terms are words
 * that only the source understands. A function returns false for anything but a plain step: the expression is then read
 * in another way. Not thread-safe. */
#ifndef TS_FRONT_EXPR_SOURCE_H
#define TS_FRONT_EXPR_SOURCE_H

#include "front/number.h"
#include "ir/graph.h"

typedef uint64_t ts_expr_term;

/* ALIAS: the value of its only operand. CLOSED: loops and blocks, whose bodies refer to their operands only; each has a
 * rule of its own. ELEM: one of several results. PARAMETER and TENSOR have no operands. */
typedef enum ts_expr_node_kind {
  TS_EXPR_NODE_STEP,
  TS_EXPR_NODE_ALIAS,
  TS_EXPR_NODE_CLOSED,
  TS_EXPR_NODE_ELEM,
  TS_EXPR_NODE_PARAMETER,
  TS_EXPR_NODE_TENSOR
} ts_expr_node_kind;

typedef struct ts_expr_node {
  ts_expr_node_kind kind;
  ts_expr_term term, data, op, arguments; /* equal ops are equal words */
} ts_expr_node;

/* Words that identify a form (a type with dims) in this source: two of its type, and one for each dim. */
enum { TS_EXPR_TYPE_WORDS = 2 };
typedef struct ts_expr_form_key {
  size_t count;
  ts_expr_term words[TS_EXPR_TYPE_WORDS + TS_MAX_RANK];
} ts_expr_form_key;

typedef struct ts_expr_reader ts_expr_reader;

typedef struct ts_expr_source {
  void *context;
  bool (*node)(void *context, ts_expr_term term, ts_expr_node *out);
  /* Nodes of equal ids are the same one. */
  bool (*id)(void *context, const ts_expr_node *node, ts_expr_term *out, uint32_t *out_hash);
  bool (*is_equal)(void *context, ts_expr_term a, ts_expr_term b);
  /* How many results a node has; one is usual. */
  uint32_t (*results)(void *context, const ts_expr_node *node);
  bool (*form_key)(void *context, const ts_expr_node *node, ts_expr_form_key *out);
  bool (*form)(void *context, const ts_expr_form_key *key, ts_type *out);
  /* Puts the arguments of a node, and the operands among them, in order, by the functions of expr_reader.h; of an
   * ALIAS, CLOSED and ELEM the operands only. */
  ts_status (*arguments)(void *context, const ts_expr_node *node, ts_expr_reader *reader);
  bool (*index)(void *context, const ts_expr_node *node, uint32_t *out);   /* of an ELEM */
  bool (*number)(void *context, const ts_expr_node *node, ts_number *out); /* false when it is no constant */
  /* Of parameters and tensors: their identity, and the position of a parameter; TS_NO_ID without one. */
  bool (*leaf)(void *context, const ts_expr_node *node, ts_expr_term *out, uint32_t *out_position);
  /* False for a leaf that equals no other one. */
  bool (*hash_leaf)(void *context, ts_expr_term leaf, uint32_t *out);
  bool (*is_same_leaf)(void *context, ts_expr_term a, ts_expr_term b);
  bool (*is_tensor)(void *context, ts_expr_term leaf);
} ts_expr_source;

#endif
