/* Contractions without free dims, and convolutions that are products. Internal to pass/. */
#ifndef TS_PASS_VECTOR_DOT_H
#define TS_PASS_VECTOR_DOT_H

#include "pass/rules.h"

/* A dot_general whose operands have batch and contracted dims only. Of f32 and f64 it gets its batch dims first, then
 * the contracted ones, each in the order of the attributes, as kernel/vector_dot.c reads them; f16 and bf16 become f32
 * (tensor/dot_order.h). Of integers and complex numbers it becomes the sum of the products: its meaning is that sum, in
 * the order of tensor/reduce_tree.h (kernel/ref/ref_dot.c). */
ts_status ts_vector_dot(const ts_rule_call *call, ts_value_id *out);

/* A convolution of one tap, where each point of the result reads the same point of the operand
 * (ts_graph_is_point_conv), becomes a dot_general: of 16-bit floats always, of wider ones with few features. Its sums
 * have the same order (tensor/contract_order.h). */
ts_status ts_point_conv(const ts_rule_call *call, ts_value_id *out);

#endif
