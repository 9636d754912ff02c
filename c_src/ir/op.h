/* Opcodes and the rows of the op table. Pure, thread-safe. */
#ifndef TS_IR_OP_H
#define TS_IR_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TS_VARIES (-1)
/* The most results of an op without regions. */
#define TS_MAX_RESULTS 4

/* TS_FIRST_x and TS_LAST_x are the first and last op of class x. */
typedef enum ts_opcode {
#define TS_COST(...)
#define TS_CLASS(class) TS_FIRST_##class, TS_BEFORE_##class = TS_FIRST_##class - 1,
#define TS_OP(op, ...) TS_OP_##op,
#define TS_CLASS_END(class) TS_AFTER_##class, TS_LAST_##class = TS_AFTER_##class - 1,
#define TS_REGIONS(...)
#include "ir/op.def"
  TS_OP_COUNT
} ts_opcode;

typedef enum ts_op_class {
#define TS_COST(...)
#define TS_CLASS(class) TS_CLASS_##class,
#define TS_OP(...)
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#include "ir/op.def"
} ts_op_class;

/* The ops of each class as an enum ts_ops_x: a switch over it without a default must name all of them. */
#define TS_COST(...)
#define TS_CLASS(class) typedef enum ts_ops_##class {
#define TS_OP(op, ...) TS_IN_CLASS_##op = TS_OP_##op,
#define TS_CLASS_END(class) \
  }                         \
  ts_ops_##class;
#define TS_REGIONS(...)
#include "ir/op.def"

typedef enum ts_op_effect { TS_EFFECT_PURE, TS_EFFECT_ORDERED } ts_op_effect;

/* How a kernel can compute an op. */
typedef enum ts_op_fusion {
  TS_FUSION_ALONE = 0,
  TS_FUSION_ROWS = 1,    /* reduces */
  TS_FUSION_PARTS = 2,   /* writes parts of its result */
  TS_FUSION_VIEW = 4,    /* only maps indices */
  TS_FUSION_CHEAP = 8,   /* costs nothing to recompute */
  TS_FUSION_POINTS = 16, /* elementwise */
  TS_FUSION_GATHER = 32, /* reads elements at indices */
  TS_FUSION_CHEAP_VIEW = TS_FUSION_VIEW | TS_FUSION_CHEAP
} ts_op_fusion;

/* A TS_COST row of op.def. */
typedef struct ts_op_cost {
  int32_t floats, integers, wide, half, again, float_ps, integer_ps;
} ts_op_cost;

typedef enum ts_attr_kind {
  TS_ATTR_NONE,
#define TS_ATTRS(kind) TS_ATTR_##kind,
#define TS_ATTR(path, name, type)
#define TS_ATTRS_END(kind, member)
#include "ir/attr.def"
} ts_attr_kind;

/* A row of op.def. */
typedef struct ts_op_row {
  const char *name;
  int8_t operands, results;      /* or TS_VARIES */
  uint8_t attrs, effect, fusion; /* ts_attr_kind, ts_op_effect, ts_op_fusion */
  bool commutes, takes_complex;
  uint8_t cost; /* index in ts_op_costs */
} ts_op_row;

/* By opcode; the last row is for values that are not an op. */
extern const ts_op_row ts_op_rows[TS_OP_COUNT + 1];
extern const uint8_t ts_op_classes[TS_OP_COUNT + 1];
extern const char *const ts_op_regions_of[TS_OP_COUNT + 1][2]; /* their names, NULL where there are fewer */
extern const ts_op_cost ts_op_costs[];

static inline unsigned ts_op_index(ts_opcode op) { return (unsigned)op < TS_OP_COUNT ? op : TS_OP_COUNT; }
static inline const ts_op_row *ts_op_get_row(ts_opcode op) { return &ts_op_rows[ts_op_index(op)]; }
/* TS_OP_COUNT when no op has that name. */
ts_opcode ts_op_from_name(const char *name, size_t length);
static inline const char *ts_op_name(ts_opcode op) { return ts_op_get_row(op)->name; }
static inline int ts_op_operands(ts_opcode op) { return ts_op_get_row(op)->operands; }
static inline int ts_op_results(ts_opcode op) { return ts_op_get_row(op)->results; }
static inline ts_op_class ts_op_get_class(ts_opcode op) { return (ts_op_class)ts_op_classes[ts_op_index(op)]; }
static inline ts_attr_kind ts_op_attr_kind(ts_opcode op) { return (ts_attr_kind)ts_op_get_row(op)->attrs; }
static inline const ts_op_cost *ts_op_get_cost(ts_opcode op) { return &ts_op_costs[ts_op_get_row(op)->cost]; }
/* True where a result element is computed from the operand elements at the same index. */
static inline bool ts_op_is_elementwise(ts_opcode op) {
  switch (ts_op_get_class(op)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP: return true;
  case TS_CLASS_SOURCE:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_FFT:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_CONTROL:
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST:
#endif
    break;
  }
  return false;
}
/* True where operands may be complex numbers. */
static inline bool ts_op_takes_complex(ts_opcode op) { return ts_op_get_row(op)->takes_complex; }
/* Reduces over axes of one operand by a built-in op. */
static inline bool ts_op_is_reduction(ts_opcode op) { return ts_op_get_row(op)->fusion == TS_FUSION_ROWS; }
static inline const char *const *ts_op_region_names(ts_opcode op) { return ts_op_regions_of[ts_op_index(op)]; }
static inline size_t ts_op_region_count(ts_opcode op) {
  const char *const *names = ts_op_region_names(op);
  return !names[0] ? 0 : names[1] ? 2 : 1;
}
static inline bool ts_op_has_regions(ts_opcode op) { return ts_op_region_count(op) > 0; }
/* For the op itself; an op with a region that holds such an op has an effect, too (ts_graph_has_effect). */
static inline bool ts_op_is_ordered(ts_opcode op) { return ts_op_get_row(op)->effect == TS_EFFECT_ORDERED; }
static inline bool ts_op_is_commutative(ts_opcode op) { return ts_op_get_row(op)->commutes; }

#endif
