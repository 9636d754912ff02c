/* The combiners of reductions, scans, windows and collectives: one table for all layers. Thread-safe. */
#ifndef TS_IR_COMBINER_H
#define TS_IR_COMBINER_H

#include "ir/op.h"
#include "tensor/dtype.h"

typedef enum ts_combine {
  TS_COMBINE_SUM,
  TS_COMBINE_PRODUCT,
  TS_COMBINE_MAX,
  TS_COMBINE_MIN,
  TS_COMBINE_NUMBERS, /* those before combine elements, the next two truth values */
  TS_COMBINE_ALL = TS_COMBINE_NUMBERS,
  TS_COMBINE_ANY,
  TS_COMBINE_AND, /* this and the next two combine bits of integers, in regions only */
  TS_COMBINE_OR,
  TS_COMBINE_XOR
} ts_combine;

typedef struct ts_combiner {
  ts_combine kind;
  ts_opcode op; /* binary, on values of the accumulator's type */
  bool logical; /* elements are converted to u8 truth values first */
} ts_combiner;

/* NULL for ops that combine by nothing or by a region. */
const ts_combiner *ts_combiner_of(ts_opcode code);
/* Of the combiners of numbers and bits the one whose op is `binary`; NULL: none. */
const ts_combiner *ts_combiner_by(ts_opcode binary);
/* True of a reduction whose result does not depend on the order of its elements. Sums and products of floats depend on
 * it, and so may an op that is no reduction or reduces by a region. */
bool ts_combiner_is_orderless(ts_opcode code, ts_dtype type);
/* For argmax and argmin: whether the largest element is found, or the smallest. */
bool ts_arg_takes_largest(ts_opcode code);
/* The value that changes no other: the result without elements, and where a fold starts. */
ts_scalar ts_combiner_identity(const ts_combiner *combiner, ts_dtype type);
/* The binary op of a collective, which combines its members' elements: TS_OP_AND and TS_OP_OR work on the bits of any
 * type. TS_OP_COUNT for a collective that moves elements. */
ts_opcode ts_collective_combines(ts_opcode code);

#endif
