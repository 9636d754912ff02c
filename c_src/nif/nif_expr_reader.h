/* The state of a walk over an expression, for nif_expr_read.c and nif_expr_rule.c, which makes the rules of steps. Not
 * thread-safe. */
#ifndef TS_NIF_EXPR_READER_H
#define TS_NIF_EXPR_READER_H

#include "nif/nif_expr_form.h"
#include "nif/nif_expr_source.h"

/* A visited node and its value, which is TS_NO_ID until its operands are read. */
typedef struct ts_expr_known {
  ERL_NIF_TERM id;
  uint32_t value;
} ts_expr_known;

/* The words of a rule: ranges in `rule_words` and `rule_statics`. */
typedef struct ts_expr_rule_words {
  uint32_t words, word_count, statics, static_count;
} ts_expr_rule_words;

/* CLOSED: loops and blocks. Their bodies refer to their operands only, and each has a rule of its own. */
typedef enum ts_expr_frame_kind {
  TS_EXPR_FRAME_STEP,
  TS_EXPR_FRAME_ALIAS,
  TS_EXPR_FRAME_CLOSED,
  TS_EXPR_FRAME_ELEM
} ts_expr_frame_kind;

/* A node whose operands are being read; its parts of the stacks start at these indices. */
typedef struct ts_expr_frame {
  ERL_NIF_TERM node;
  ts_expr_frame_kind kind;
  uint32_t known, form;
  uint32_t arity; /* number of results; of an element its index */
  uint32_t words, statics;
  uint32_t operands, operand_count, read_count;
} ts_expr_frame;

typedef struct ts_expr_operand {
  ERL_NIF_TERM node;
  uint32_t value; /* set once it is read */
} ts_expr_operand;

/* An argument's position, or a tensor. A leaf that is `is_new` equals no other one. */
typedef struct ts_expr_leaf {
  ERL_NIF_TERM term;
  bool is_new;
} ts_expr_leaf;

/* Parameters at positions below this are found by position. */
enum { TS_EXPR_POSITIONS = 1 << 16 };

struct ts_expr_reader {
  ErlNifEnv *env;
  size_t limit, closed_count;
  ts_expr_outcome outcome;
  ts_expr e;
  ts_expr_terms terms;
  ts_expr_forms forms;
  ts_expr_sources sources;
  ts_expr_table by_id, by_rule;
  TS_VEC(ERL_NIF_TERM) scoped;
  TS_VEC(ts_expr_known) known;
  TS_VEC(ts_expr_rule_words) rules;
  TS_VEC(uint64_t) rule_words;
  TS_VEC(ERL_NIF_TERM) rule_statics;
  TS_VEC(ts_expr_leaf) leaves;
  TS_VEC(uint32_t) by_position; /* values, or TS_NO_ID */
  TS_VEC(ts_expr_frame) frames; /* stacks */
  TS_VEC(uint64_t) words;
  TS_VEC(ERL_NIF_TERM) statics;
  TS_VEC(ts_expr_operand) operands;
};

/* Limit for the nesting of arguments. */
enum { TS_EXPR_DEEPEST = 8 };

/* Ends the walk. */
ts_status ts_expr_stop(ts_expr_reader *r, ts_expr_outcome why);
/* Checks the end of a walked list: an improper list is not a plain step. */
ts_status ts_expr_end_list(ts_expr_reader *r, ERL_NIF_TERM rest);

/* ---- rules ---- */

void ts_expr_rules_init(ErlNifEnv *env); /* once for the process: makes the atoms */

static inline ts_status ts_expr_put_words(ts_expr_reader *r, uint64_t first, uint64_t second) {
  TS_TRY(TS_VEC_RESERVE(&r->words, r->words.count + 2));
  r->words.data[r->words.count++] = first;
  r->words.data[r->words.count++] = second;
  return TS_SUCCESS;
}

static inline ts_status ts_expr_put_operand(ts_expr_reader *r, ERL_NIF_TERM node) {
  return TS_VEC_PUSH(&r->operands, ((ts_expr_operand){node, TS_NO_ID}));
}

/* Collects the words of an argument, and the nodes in it. */
ts_status ts_expr_put_argument(ts_expr_reader *r, ERL_NIF_TERM term, bool in_tuple, int depth);
/* The rule of the last frame, whose operands have values; adds it if it is new. */
ts_status ts_expr_find_rule(ts_expr_reader *r, const ts_expr_frame *f, uint32_t *out);

#endif
