#include "pass/simplify.h"

/* ---- constants ---- */

static bool equals(const ts_rule_call *s, ts_value_id value, double number) {
  ts_scalar known;
  ts_dtype dtype = ts_graph_value(s->rules->to, value)->dtype;
  return ts_graph_is_constant(s->rules->to, value, &known) && known.bits == ts_scalar_from_f64(dtype, number).bits;
}

/* x + 0 is x for integers; for floats only x + -0 is, as -0 + 0 is 0. */
static bool is_neutral_to_add(const ts_rule_call *s, ts_value_id value) {
  return equals(s, value, ts_dtype_is_float(s->dtype) ? -0.0 : 0.0);
}

/* ---- binary ---- */

static ts_value_id pick_neutral(const ts_rule_call *s, bool left, bool right) {
  return right ? s->op->operands[0] : left ? s->op->operands[1] : TS_NO_ID;
}

static ts_value_id simplify_binary(const ts_rule_call *s) {
  ts_value_id a = s->op->operands[0], b = s->op->operands[1];
  bool integer = ts_dtype_is_integer(s->dtype);
  switch (s->op->code) {
  case TS_OP_ADD: return pick_neutral(s, is_neutral_to_add(s, a), is_neutral_to_add(s, b));
  case TS_OP_SUBTRACT: return equals(s, b, 0.0) ? a : TS_NO_ID;
  case TS_OP_MULTIPLY:
    if (integer && equals(s, a, 0.0)) return a;
    if (integer && equals(s, b, 0.0)) return b;
    return pick_neutral(s, equals(s, a, 1.0), equals(s, b, 1.0));
  case TS_OP_DIVIDE:
  case TS_OP_QUOTIENT: return equals(s, b, 1.0) ? a : TS_NO_ID;
  case TS_OP_OR:
  case TS_OP_XOR:
    if (s->op->code == TS_OP_OR && a == b) return a;
    return pick_neutral(s, equals(s, a, 0.0), equals(s, b, 0.0));
  case TS_OP_SHIFT_LEFT:
  case TS_OP_SHIFT_RIGHT: return equals(s, b, 0.0) ? a : TS_NO_ID;
  case TS_OP_MIN:
  case TS_OP_MAX:
  case TS_OP_AND: return a == b ? a : TS_NO_ID;
  default: return TS_NO_ID;
  }
}

/* ---- unary ---- */

static ts_value_id undo(const ts_rule_call *s) {
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], s->op->code);
  return inner ? inner->operands[0] : TS_NO_ID;
}

static ts_value_id simplify_unary(const ts_rule_call *s) {
  bool integer = ts_dtype_is_integer(s->dtype);
  switch (s->op->code) {
  case TS_OP_NEGATE:
  case TS_OP_NOT: return undo(s);
  case TS_OP_ABS:
    if (ts_dtype_is_unsigned(s->dtype) || ts_simplify_maker(s, s->op->operands[0], TS_OP_ABS))
      return s->op->operands[0];
    return TS_NO_ID;
  case TS_OP_CEIL:
  case TS_OP_FLOOR:
  case TS_OP_ROUND:
    return integer || ts_simplify_maker(s, s->op->operands[0], s->op->code) ? s->op->operands[0] : TS_NO_ID;
  default: return TS_NO_ID;
  }
}

static ts_value_id simplify_select(const ts_rule_call *s) {
  ts_scalar known;
  if (s->op->operands[1] == s->op->operands[2]) return s->op->operands[1];
  if (!ts_graph_is_constant(s->rules->to, s->op->operands[0], &known)) return TS_NO_ID;
  return known.bits != 0 ? s->op->operands[1] : s->op->operands[2];
}

/* ---- conversions ---- */

/* How many bits a value of the type may take as an integer, its sign left out. */
static int precision(ts_dtype type) {
  switch (type) {
  case TS_F16: return 11;
  case TS_BF16: return 8;
  case TS_F32: return 24;
  case TS_F64: return 53;
  default: return ts_dtype_bits(type) - ts_dtype_is_signed(type);
  }
}

/* Every value of `from` is one of `to`. */
static bool is_exact(ts_dtype from, ts_dtype to) {
  if (from == to) return true;
  if (ts_dtype_is_float(from)) {
    bool narrow_range = from == TS_F16 || from == TS_BF16;
    return ts_dtype_is_float(to) && (to == TS_F64 || (to == TS_F32 && narrow_range));
  }
  if (ts_dtype_is_float(to)) return precision(from) <= precision(to) && to != TS_F16;
  if (ts_dtype_is_signed(from) && ts_dtype_is_unsigned(to)) return false;
  return precision(from) <= precision(to);
}

/* The middle of two conversions goes when it loses nothing. From integers over a float to integers the result
 * would wrap where it saturated, but for a way back. */
static ts_status simplify_convert(const ts_rule_call *s, ts_value_id *out) {
  const ts_graph *g = s->rules->to;
  ts_dtype middle = ts_graph_value(g, s->op->operands[0])->dtype;
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_CONVERT);
  if (middle == s->dtype) {
    *out = s->op->operands[0];
    return TS_SUCCESS;
  }
  if (!inner) return TS_SUCCESS;
  ts_value_id source = inner->operands[0];
  ts_dtype from = ts_graph_value(g, source)->dtype;
  if (!is_exact(from, middle)) return TS_SUCCESS;
  if (from == s->dtype) {
    *out = source;
    return TS_SUCCESS;
  }
  bool saturates = ts_dtype_is_integer(from) && ts_dtype_is_float(middle) && ts_dtype_is_integer(s->dtype);
  if (saturates) return TS_SUCCESS;
  return ts_simplify_add(s, TS_OP_CONVERT, source, &(ts_attrs){.dtype = s->dtype}, out);
}

static ts_status simplify_bitcast(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_BITCAST);
  ts_value_id source = inner ? inner->operands[0] : s->op->operands[0];
  if (ts_graph_value(s->rules->to, source)->dtype == s->dtype) *out = source;
  return TS_SUCCESS;
}

ts_status ts_simplify_arithmetic(const ts_rule_call *s, ts_value_id *out) {
  switch (s->op->code) {
  case TS_OP_CONVERT: return simplify_convert(s, out);
  case TS_OP_BITCAST: return simplify_bitcast(s, out);
  case TS_OP_SELECT: *out = simplify_select(s); return TS_SUCCESS;
  default: break;
  }
  if (ts_op_operands(s->op->code) == 1) *out = simplify_unary(s);
  if (ts_op_operands(s->op->code) == 2) *out = simplify_binary(s);
  return TS_SUCCESS;
}
