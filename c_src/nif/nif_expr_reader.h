/* The memory of a walk over an expression, for those who walk: nif_expr_read.c,
 * and nif_expr_rule.c, which knows the steps' rules. One is kept for the next
 * walk: what is freed and allocated anew comes to lie elsewhere, and a fresh
 * page costs more than to read the nodes that it is for. Of one thread at a time. */
#ifndef TS_NIF_EXPR_READER_H
#define TS_NIF_EXPR_READER_H

#include "nif/nif_expr_form.h"
#include "nif/nif_expr_source.h"

/* A node that was met, and its value, which is TS_NO_ID until its operands are read. */
typedef struct ts_expr_known {
  ERL_NIF_TERM id;
  uint32_t value;
} ts_expr_known;

/* What tells a rule: parts of `rule_words` and `rule_statics`. */
typedef struct ts_expr_rule_words {
  uint32_t words, word_count, statics, static_count;
} ts_expr_rule_words;

/* CLOSED are loops and blocks: what is inside of them uses their operands only, and each has a rule of its own. */
typedef enum ts_expr_frame_kind {
  TS_EXPR_FRAME_STEP,
  TS_EXPR_FRAME_ALIAS,
  TS_EXPR_FRAME_CLOSED,
  TS_EXPR_FRAME_ELEM
} ts_expr_frame_kind;

/* A node whose operands are being read; its parts of the stacks begin there. */
typedef struct ts_expr_frame {
  ERL_NIF_TERM node;
  ts_expr_frame_kind kind;
  uint32_t known, form;
  uint32_t arity; /* how many results; of an element its index */
  uint32_t words, statics;
  uint32_t operands, operand_count, read_count;
} ts_expr_frame;

typedef struct ts_expr_operand {
  ERL_NIF_TERM node;
  uint32_t value; /* once it is read */
} ts_expr_operand;

/* An argument's position, or a tensor. One that is new is like no other one. */
typedef struct ts_expr_leaf {
  ERL_NIF_TERM term;
  bool is_new;
} ts_expr_leaf;

/* Parameters at positions below this are known by those. */
enum { TS_EXPR_POSITIONS = 1 << 16 };

/* Terms do not move during a call: a node that was met lately is told by its address, without a look inside. */
enum { TS_EXPR_RECENT_NODES = 256 };

enum { TS_EXPR_RECENT_OPS = 32 };

typedef struct ts_expr_recent_node {
  ERL_NIF_TERM node;
  uint32_t value;
} ts_expr_recent_node;

struct ts_expr_reader {
  ErlNifEnv *env;
  size_t limit, closed_count;
  ts_expr_outcome outcome;
  ts_expr e;
  ts_expr_terms terms;
  ts_expr_forms forms;
  ts_expr_sources sources;
  ts_expr_table by_id, by_rule;
  ts_expr_recent_node nodes[TS_EXPR_RECENT_NODES];
  TS_VEC(ERL_NIF_TERM) scoped;
  ERL_NIF_TERM plain_ops[TS_EXPR_RECENT_OPS]; /* that are not scoped */
  uint32_t recent_rules[TS_EXPR_RECENT_OPS];  /* by op: the rule of the last node that had it, and one */
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

/* How deep arguments may be. */
enum { TS_EXPR_DEEPEST = 8 };

/* Ends the walk. */
ts_status ts_expr_stop(ts_expr_reader *r, ts_expr_outcome why);
/* Of a list that was walked: what ends in no list is read in another way. */
ts_status ts_expr_end_list(ts_expr_reader *r, ERL_NIF_TERM rest);

/* What was read, with arrays of its own. */
ts_status ts_expr_reader_result(ts_expr_reader *r, ts_expr *out);

/* ---- rules ---- */

void ts_expr_rules_init(ErlNifEnv *env); /* of all: the atoms */

static inline ts_status ts_expr_put_words(ts_expr_reader *r, uint64_t first, uint64_t second) {
  TS_TRY(TS_VEC_RESERVE(&r->words, r->words.count + 2));
  r->words.data[r->words.count++] = first;
  r->words.data[r->words.count++] = second;
  return TS_SUCCESS;
}

static inline ts_status ts_expr_put_operand(ts_expr_reader *r, ERL_NIF_TERM node) {
  return TS_VEC_PUSH(&r->operands, ((ts_expr_operand){node, TS_NO_ID}));
}

/* The words of an argument, and the nodes in it. */
ts_status ts_expr_put_argument(ts_expr_reader *r, ERL_NIF_TERM term, bool in_tuple, int depth);
/* The rule of the last frame, whose operands are there; perhaps a new one. */
ts_status ts_expr_find_rule(ts_expr_reader *r, const ts_expr_frame *f, uint32_t *out);

#endif
