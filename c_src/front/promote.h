/* Ops as front ends call them: operands of any type, of shapes that broadcast, and plain numbers become converts,
 * broadcasts and one op of the graph, by Nx's rules. Eager calls and tracing share this. Not thread-safe for one
 * graph. */
#ifndef TS_FRONT_PROMOTE_H
#define TS_FRONT_PROMOTE_H

#include "front/number.h"
#include "ir/graph.h"

/* An operand: a value of the graph, or a number, which takes its type from the others. */
typedef struct ts_operand {
  bool is_number;
  ts_dtype dtype;        /* of a value */
  const ts_shape *shape; /* rank 0 for a number */
  ts_value_id value;
  ts_number number;
} ts_operand;

typedef struct ts_operands {
  const ts_operand *data;
  size_t count;
} ts_operands;

/* The type that each operand is converted to; `out` has an entry for each. */
ts_status ts_op_operand_types(ts_opcode code, ts_operands operands, ts_dtype *out);
/* Adds the op to the region, after the converts and broadcasts that its operands need. Numbers become constants. */
ts_status ts_op_build(ts_graph *graph, ts_region_id region, ts_opcode code, ts_operands operands, const ts_attrs *attrs,
                      ts_value_id *out);
/* Adds a number or value as an operand of that type and shape. */
ts_status ts_op_place(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_dtype dtype,
                      const ts_shape *shape, ts_value_id *out);
/* A u8 scalar that is 1 when a scalar operand of any type is not 0. */
ts_status ts_op_predicate(ts_graph *graph, ts_region_id region, const ts_operand *operand, ts_value_id *out);

#endif
