/* Adds ops to a new graph through the rules: common subexpressions are shared, an op that a rule replaces is not added,
 * and an op with known operands becomes a constant. The operands of an op have been through the rules before it, so one
 * walk over a graph suffices instead of repeated walks for each kind of rule. Ops that a rule adds take the same path.
 * Internal to pass/; used by one thread. */
#ifndef TS_PASS_RULES_H
#define TS_PASS_RULES_H

#include "pass/rewrite.h"

typedef enum ts_rule_set {
  TS_RULES_SIMPLIFY = 1, /* simplify*.c */
  TS_RULES_FOLD = 2,     /* fold.c */
  TS_RULES_SHARE = 4,    /* common subexpression elimination within a region */
  TS_RULES_WIDEN = 128,  /* widen.c, vector_dot.c: ops that have no kernel otherwise, or a slow one */
  TS_RULES_GUARD = 256   /* guard.c: for compilers of other devices */
} ts_rule_set;

/* An op that a rule replaced, and the values that replace its results. */
typedef struct ts_replaced_op {
  ts_op op;
  const ts_value_id *values;
} ts_replaced_op;

/* An op that was added or replaced, and its values. */
typedef struct ts_known_op {
  const ts_replaced_op *replaced; /* NULL: the op itself defines the values */
  uint32_t hash;
  uint32_t made; /* first value + 1; 0: the slot is free */
} ts_known_op;

typedef struct ts_rules {
  ts_graph *to;
  const ts_pass_options *options;
  unsigned sets;
  size_t expected; /* estimated number of ops */
  bool probing;    /* see ts_rules_probe */
  bool changes;    /* while probing: some op would be rewritten */
  /* Hash table of known ops, by region and op: open addressing. */
  ts_known_op *known;
  size_t known_count, known_capacity;
  ts_arena arena; /* of replaced ops */
} ts_rules;

void ts_rules_deinit(ts_rules *rules);

/* Adds an op of another graph, without regions, on `operands` of the new one. `out` has an entry for each result. */
ts_status ts_rules_copy(ts_rules *rules, ts_region_id target, const ts_graph *from, ts_op_id op,
                        const ts_value_id *operands, ts_value_id *out);
/* Checks whether the rules would leave an op of `to` unchanged, and sets `changes` if not or if that cannot be decided
 * without rewriting. Requires `probing`; nothing is added to `to`. */
ts_status ts_rules_probe(ts_rules *rules, ts_op_id op);
/* Adds any op. Ops with regions are not passed to the rules. `out` has an entry for each result, but only one, for the
 * first result, if the op has regions. */
ts_status ts_rules_add(ts_rules *rules, ts_region_id target, ts_opcode code, ts_values operands, const ts_attrs *attrs,
                       ts_value_id *out);
ts_status ts_rules_constant(ts_rules *rules, ts_region_id target, ts_dtype dtype, const ts_shape *shape,
                            ts_scalar value, ts_value_id *out);

/* ---- the rules: each may answer with a value of the new graph for each result, or leave `*out` at TS_NO_ID ---- */

/* An op before it is added, as the rules see it. */
typedef struct ts_rule_call {
  ts_rules *rules;
  ts_region_id target;
  const ts_op *op; /* with code, attributes, result count, and operands of the new graph; other fields are not set */
  ts_dtype dtype;  /* of the first result */
  const ts_shape *shape;
  const ts_value *results; /* types and shapes of all results; other fields are not set */
} ts_rule_call;

/* Ops on small types become ops on wider ones. Keeps all bits. */
ts_status ts_widen(const ts_rule_call *call, ts_value_id *out);
/* What compilers of other devices get wrong, as other ops. Keeps all bits. */
ts_status ts_guard(const ts_rule_call *call, ts_value_id *out);
/* Exact algebraic and shape rules. Each one keeps all bits, NaN payloads excepted. */
ts_status ts_simplify(const ts_rule_call *call, ts_value_id *out);
/* Constant folding. */
ts_status ts_fold(const ts_rule_call *call, ts_value_id *out);

#endif
