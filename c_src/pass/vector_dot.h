/* Contractions without free dims, which are reductions. Internal to pass/. */
#ifndef TS_PASS_VECTOR_DOT_H
#define TS_PASS_VECTOR_DOT_H

#include "pass/rules.h"

/* A dot_general whose operands have batch and contracted dims only becomes the sum of their products: its meaning is
 * that sum (kernel/ref_dot.c), in the order of tensor/reduce_tree.h. */
ts_status ts_vector_dot(const ts_rule_call *call, ts_value_id *out);

#endif
