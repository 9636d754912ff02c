/* Ops as front ends mean them: operands of any type and of shapes that
 * broadcast, and plain numbers, become converts, broadcasts and one op of the
 * graph, by Nx's rules. Eager calls and tracing share this. Not thread-safe for
 * one graph. */
#ifndef TS_NIF_OP_H
#define TS_NIF_OP_H

#include "ir/graph.h"
#include "nif/nif_util.h"

/* An operand: a value of the graph, or a number, which takes its type from the others. */
typedef struct ts_operand {
  bool is_number;
  ts_dtype dtype; /* of a value */
  ts_shape shape; /* rank 0 for a number */
  ts_value_id value;
  ts_number number;
} ts_operand;

void ts_nif_op_init(ErlNifEnv *env);
/* From the atom of the op's name. */
ts_status ts_nif_get_opcode(ErlNifEnv *env, ERL_NIF_TERM term, ts_opcode *out);
ERL_NIF_TERM ts_nif_opcode(ts_opcode code); /* the atom */

/* Attributes as terms, by the kind of the op:
 *   type: Type                      shape: Shape             axes: [Axis]         axis: Axis
 *   constant: {Type, Shape, Number} iota: {Type, Shape, Axis | -1}                eye: {Type, Shape}
 *   broadcast: {Shape, Axes}        slice: {Starts, Limits, Strides}              pad: {Lows, Highs, Interiors}
 *   reduce: {Axes, Region}          arg: {Axis | -1, HighWins, Type}              scan: {Axis, Reverse}
 *   dot: {LhsContract, LhsBatch, RhsContract, RhsBatch}                           none: [] */
ts_status ts_nif_get_attrs(ErlNifEnv *env, ts_opcode code, ERL_NIF_TERM term, ts_attrs *out);
ERL_NIF_TERM ts_nif_attrs(ErlNifEnv *env, const ts_op *op);

/* The type that each operand takes part with; `out` has `count` entries. */
ts_status ts_op_operand_types(ts_opcode code, const ts_operand *operands, size_t count, ts_dtype *out);
/* Adds the op, and what it needs before it, to the region. Numbers become constants. */
ts_status ts_op_build(ts_graph *graph, ts_region_id region, ts_opcode code, const ts_operand *operands, size_t count,
                      const ts_attrs *attrs, ts_value_id *out);
/* A number or value as an operand of that type and shape. */
ts_status ts_op_place(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_dtype dtype,
                      const ts_shape *shape, ts_value_id *out);
/* A u8 scalar that is 1 when a scalar operand of any type is not 0. */
ts_status ts_op_predicate(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_value_id *out);

#endif
