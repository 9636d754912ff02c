/* Opcodes and what the op table says of each. Pure, thread-safe. */
#ifndef TS_IR_OP_H
#define TS_IR_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ts_opcode {
#define TS_OP(e, t, n, c, a) TS_OP_##e,
#include "ir/op.def"
#undef TS_OP
  TS_OP_COUNT
} ts_opcode;

typedef enum ts_op_class {
  TS_CLASS_SOURCE,
  TS_CLASS_UNARY_FLOAT,
  TS_CLASS_UNARY,
  TS_CLASS_UNARY_INTEGER,
  TS_CLASS_PREDICATE,
  TS_CLASS_BINARY,
  TS_CLASS_BINARY_FLOAT,
  TS_CLASS_BINARY_INTEGER,
  TS_CLASS_COMPARE,
  TS_CLASS_CONVERT,
  TS_CLASS_SELECT,
  TS_CLASS_CLAMP,
  TS_CLASS_SHAPE,
  TS_CLASS_INDEXED,
  TS_CLASS_REDUCE,
  TS_CLASS_ARG_REDUCE,
  TS_CLASS_SCAN,
  TS_CLASS_DOT,
  TS_CLASS_CONTROL
} ts_op_class;

/* One result element from the operand elements at the same index; those classes stand together. */
#define TS_CLASS_IS_ELEMENTWISE(class) ((class) >= TS_CLASS_UNARY_FLOAT && (class) <= TS_CLASS_CLAMP)
/* Over axes of one operand, by what the op says itself. */
#define TS_OP_IS_REDUCTION(op, class) \
  (((class) == TS_CLASS_REDUCE || (class) == TS_CLASS_ARG_REDUCE) && (op) != TS_OP_REDUCE)

typedef enum ts_attr_kind {
  TS_ATTR_NONE,
  TS_ATTR_PARAMETER,
  TS_ATTR_CONSTANT,
  TS_ATTR_LITERAL,
  TS_ATTR_IOTA,
  TS_ATTR_SHAPED,
  TS_ATTR_DTYPE,
  TS_ATTR_SHAPE,
  TS_ATTR_BROADCAST,
  TS_ATTR_AXES,
  TS_ATTR_AXIS,
  TS_ATTR_SLICE,
  TS_ATTR_PAD,
  TS_ATTR_REDUCE,
  TS_ATTR_ARG,
  TS_ATTR_SCAN,
  TS_ATTR_DOT,
  TS_ATTR_REGIONS,
  TS_ATTR_FUSION
} ts_attr_kind;

/* What op.def says of each op. */
typedef struct ts_op_row {
  const char *name;
  int operands;
  ts_op_class op_class;
  ts_attr_kind attrs;
} ts_op_row;
extern const ts_op_row ts_op_rows[];

const char *ts_op_name(ts_opcode op);
/* TS_OP_COUNT when there is none of that name. */
ts_opcode ts_op_from_name(const char *name, size_t length);
int ts_op_operands(ts_opcode op); /* -1: varies */
static inline ts_op_class ts_op_get_class(ts_opcode op) {
  return (unsigned)op < TS_OP_COUNT ? ts_op_rows[op].op_class : TS_CLASS_SOURCE;
}
static inline ts_attr_kind ts_op_attr_kind(ts_opcode op) {
  return (unsigned)op < TS_OP_COUNT ? ts_op_rows[op].attrs : TS_ATTR_NONE;
}
static inline bool ts_op_is_elementwise(ts_opcode op) { return TS_CLASS_IS_ELEMENTWISE(ts_op_get_class(op)); }
static inline bool ts_op_is_reduction(ts_opcode op) { return TS_OP_IS_REDUCTION(op, ts_op_get_class(op)); }
/* Its attributes name regions. */
static inline bool ts_op_has_regions(ts_opcode op) {
  ts_attr_kind kind = ts_op_attr_kind(op);
  return kind == TS_ATTR_REDUCE || kind == TS_ATTR_REGIONS || kind == TS_ATTR_FUSION;
}
bool ts_op_is_commutative(ts_opcode op);

#endif
