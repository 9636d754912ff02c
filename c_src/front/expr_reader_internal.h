/* The state of a walk. expr_read.c walks, expr_form.c numbers forms, expr_leaf.c numbers parameters, and expr_rule.c
 * makes the rules of steps. */
#ifndef TS_FRONT_EXPR_READER_INTERNAL_H
#define TS_FRONT_EXPR_READER_INTERNAL_H

#include "front/expr_reader.h"

/* A visited node and its value: TS_NO_ID until its operands are read. */
typedef struct expr_known {
  ts_expr_term id;
  uint32_t value;
} expr_known;

/* The words of a form: a range in `form_words`. */
typedef struct expr_known_form {
  size_t words, count;
  uint32_t form;
} expr_known_form;

/* The words of a rule: ranges in `rule_words` and `rule_statics`. */
typedef struct expr_rule_words {
  uint32_t words, word_count, statics, static_count;
} expr_rule_words;

/* A node whose operands are being read; its parts of the stacks start at these indices. */
typedef struct expr_frame {
  ts_expr_node node;
  uint32_t known, form;
  uint32_t arity; /* number of results; of an element its index */
  uint32_t words, statics;
  uint32_t operands, operand_count, read_count;
} expr_frame;

typedef struct expr_operand {
  ts_expr_term node;
  uint32_t value; /* set once it is read */
} expr_operand;

/* An argument's position, or a tensor. A leaf that is `is_new` equals no other one. */
typedef struct expr_leaf {
  ts_expr_term term;
  bool is_new;
} expr_leaf;

struct ts_expr_reader {
  const ts_expr_source *source;
  const ts_expr_request *request;
  size_t closed_count;
  ts_expr_outcome outcome;
  ts_expr e;
  ts_expr_terms terms;
  ts_expr_table by_id, by_rule, by_form, by_form_words, by_leaf;
  TS_VEC(expr_known_form) known_forms;
  TS_VEC(ts_expr_term) form_words;
  TS_VEC(expr_known) known;
  TS_VEC(expr_rule_words) rules;
  TS_VEC(uint64_t) rule_words;
  TS_VEC(ts_expr_term) rule_statics;
  TS_VEC(expr_leaf) leaves;
  TS_VEC(uint32_t) by_position; /* values, or TS_NO_ID */
  TS_VEC(expr_frame) frames;    /* stacks */
  TS_VEC(uint64_t) words;
  TS_VEC(ts_expr_term) statics;
  TS_VEC(expr_operand) operands;
};

/* Words that begin a node's. */
enum { EXPR_HEAD_WORDS = 2 };

static inline ts_status expr_put_words(ts_expr_reader *r, uint64_t first, uint64_t second) {
  TS_TRY(TS_VEC_RESERVE(&r->words, r->words.count + 2));
  r->words.data[r->words.count++] = first;
  r->words.data[r->words.count++] = second;
  return TS_SUCCESS;
}

/* The number of a node's form; a new form is added to the expression. Stops if the core does not have this type or
 * shape. */
ts_status expr_get_form(ts_expr_reader *r, const ts_expr_node *node, uint32_t *out);

/* The parameter of a leaf of this form; a new leaf becomes the source of a new parameter. Leaves with equal positions,
 * and tensors of one form with the same bytes, share a parameter. So the program does not depend on the values of
 * tensors that the function closes over. */
ts_status expr_use_leaf(ts_expr_reader *r, const expr_leaf *leaf, uint32_t form, uint32_t *out);
/* Checks that all leaves of a parameter have one form. */
ts_status expr_check_param(const ts_expr *e, uint32_t param, uint32_t form);

/* The rule of the last frame, whose operands have values; adds it if it is new. */
ts_status expr_find_rule(ts_expr_reader *r, const expr_frame *f, uint32_t *out);

#endif
