/* Adding ops to a graph that is being made, through rules: what is known already is not computed again, an op that a
 * rule replaces is not added, and one whose operands are known becomes a constant. So one walk over a graph does what
 * would else be a walk for each kind of rule, again and again until nothing changes: when an op is added, what it
 * reads has been through the rules. Ops that a rule makes go the same way. Internal to pass/; one thread's. */
#ifndef TS_PASS_RULES_H
#define TS_PASS_RULES_H

#include "pass/rewrite.h"

typedef enum ts_rule_set {
  TS_RULES_SIMPLIFY = 1, /* simplify*.c */
  TS_RULES_FOLD = 2,     /* fold.c */
  TS_RULES_SHARE = 4     /* the same op on the same operands is there once in a region */
} ts_rule_set;

/* An op that was asked for and what stands for it. */
typedef struct ts_known_op {
  const ts_op *replaced; /* the op; NULL when it is the one that makes the value */
  uint32_t hash;
  uint32_t made; /* one more than the value; 0: nothing is here */
} ts_known_op;

typedef struct ts_rules {
  ts_graph *to;
  const ts_pass_options *options;
  unsigned sets;
  size_t expected; /* about so many ops will be asked for */
  bool probing;    /* see ts_rules_probe */
  bool changes;    /* while probing: something would not stay as it is */
  /* What is known, by region and op: open addressing. */
  ts_known_op *known;
  size_t known_count, known_capacity;
  ts_arena arena; /* of ops that were replaced */
} ts_rules;

void ts_rules_deinit(ts_rules *rules);

/* Adds an op of an old graph, without regions, on `operands` of the new one. */
ts_status ts_rules_copy(ts_rules *rules, ts_region_id target, const ts_graph *from, ts_op_id op,
                        const ts_value_id *operands, ts_value_id *out);
/* Asks whether the rules would leave an op of `to` as it is, and sets `changes` if not, or if nobody can tell yet.
 * `probing` is set, and nothing is added to `to`. */
ts_status ts_rules_probe(ts_rules *rules, ts_op_id op);
/* Adds any op; one with regions as it is. */
ts_status ts_rules_add(ts_rules *rules, ts_region_id target, ts_opcode code, const ts_value_id *operands, size_t count,
                       const ts_attrs *attrs, ts_value_id *out);
ts_status ts_rules_constant(ts_rules *rules, ts_region_id target, ts_dtype dtype, const ts_shape *shape,
                            ts_scalar value, ts_value_id *out);

/* ---- the rules: each may answer with a value of the new graph, or leave `*out` at TS_NO_ID ---- */

/* An op before it is added. */
typedef struct ts_rule_call {
  ts_rules *rules;
  ts_region_id target;
  const ts_op *op; /* code, attributes, and operands of the new graph; no more of it is set */
  ts_dtype dtype;  /* of the result */
  const ts_shape *shape;
} ts_rule_call;

/* Exact algebraic and shape rules. Every one keeps all bits, NaN payloads apart. */
ts_status ts_simplify(const ts_rule_call *call, ts_value_id *out);
/* Ops on constants become constants. */
ts_status ts_fold(const ts_rule_call *call, ts_value_id *out);

#endif
