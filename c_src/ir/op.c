#include "ir/op.h"

#include <string.h>

const ts_op_row ts_op_rows[] = {
#define TS_OP(e, t, n, c, a) {t, n, TS_CLASS_##c, TS_ATTR_##a},
#include "ir/op.def"
#undef TS_OP
};

static bool in_table(ts_opcode op) { return (unsigned)op < TS_OP_COUNT; }

const char *ts_op_name(ts_opcode op) { return in_table(op) ? ts_op_rows[op].name : "?"; }

ts_opcode ts_op_from_name(const char *name, size_t length) {
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const char *candidate = ts_op_rows[op].name;
    if (strncmp(candidate, name, length) == 0 && candidate[length] == '\0') return (ts_opcode)op;
  }
  return TS_OP_COUNT;
}

int ts_op_operands(ts_opcode op) { return in_table(op) ? ts_op_rows[op].operands : 0; }

bool ts_op_is_commutative(ts_opcode op) {
  switch (op) {
  case TS_OP_ADD:
  case TS_OP_MULTIPLY:
  case TS_OP_MIN:
  case TS_OP_MAX:
  case TS_OP_AND:
  case TS_OP_OR:
  case TS_OP_XOR:
  case TS_OP_EQUAL:
  case TS_OP_NOT_EQUAL:
  case TS_OP_LOGICAL_AND:
  case TS_OP_LOGICAL_OR:
  case TS_OP_LOGICAL_XOR: return true;
  default: return false;
  }
}
