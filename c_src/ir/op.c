#include "ir/op.h"

#include <string.h>

enum {
#define TS_COST(name, ...) COST_##name,
#define TS_CLASS(class)
#define TS_OP(...)
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#include "ir/op.def"
};

const ts_op_cost ts_op_costs[] = {
#define TS_COST(name, ...) {__VA_ARGS__},
#define TS_CLASS(class)
#define TS_OP(...)
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#include "ir/op.def"
};

/* Arrays for the results of an op without regions have a fixed size, and kernels make one value of an op. */
#define TS_COST(...)
#define TS_CLASS(class)
#define TS_OP(op, text, operands, results, attrs, effect, commutes, cost, fusion, numbers)     \
  _Static_assert((results) <= TS_MAX_RESULTS && (results) != 0, text " has too many results"); \
  _Static_assert((results) == 1 || TS_FUSION_##fusion == TS_FUSION_ALONE, text " cannot be fused");
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#include "ir/op.def"

/* Layers treat these classes as one op each (infer.c, ref_elementwise.c, stablehlo_elementwise.c, emit_op.c). */
_Static_assert(TS_FIRST_SELECT == TS_LAST_SELECT, "a second op of class SELECT: no layer tells the two apart");
_Static_assert(TS_FIRST_CLAMP == TS_LAST_CLAMP, "a second op of class CLAMP: no layer tells the two apart");

const ts_op_row ts_op_rows[TS_OP_COUNT + 1] = {
#define TS_COST(...)
#define TS_CLASS(class)
#define TS_OP(op, text, operands, results, attrs, effect, commutes, cost, fusion, numbers) \
  {text, operands, results, TS_ATTR_##attrs, TS_EFFECT_##effect, TS_FUSION_##fusion, commutes, numbers, COST_##cost},
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#define COMMUTES true
#define FIXED false
#define COMPLEX true
#define REAL false
#include "ir/op.def"
    {.name = "?"},
};

/* Derived from the sections of the table. */
const uint8_t ts_op_classes[TS_OP_COUNT + 1] = {
#define TS_COST(...)
#define TS_CLASS(class) [TS_FIRST_##class... TS_LAST_##class] = TS_CLASS_##class,
#define TS_OP(...)
#define TS_CLASS_END(class)
#define TS_REGIONS(...)
#include "ir/op.def"
    [TS_OP_COUNT] = TS_CLASS_SOURCE,
};

const char *const ts_op_regions_of[TS_OP_COUNT + 1][2] = {
#define TS_COST(...)
#define TS_CLASS(class)
#define TS_OP(...)
#define TS_CLASS_END(class)
#define TS_REGIONS(op, first, second) [TS_OP_##op] = {first, second},
#include "ir/op.def"
    [TS_OP_COUNT] = {NULL, NULL},
};

ts_opcode ts_op_from_name(const char *name, size_t length) {
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const char *candidate = ts_op_rows[op].name;
    if (strncmp(candidate, name, length) == 0 && candidate[length] == '\0') return (ts_opcode)op;
  }
  return TS_OP_COUNT;
}
