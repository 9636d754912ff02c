/* Opcodes and attributes: from terms and to terms. ts_nif_op_init makes the atoms, before any other call. */
#ifndef TS_NIF_ATTRS_H
#define TS_NIF_ATTRS_H

#include "ir/graph.h"
#include "nif/nif_util.h"

void ts_nif_op_init(ErlNifEnv *env);
/* From the atom with the op's name. */
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

#endif
