#include "pass/simplify.h"

#include <math.h>

/* ---- constants ---- */

static bool equals(const ts_rule_call *s, ts_value_id value, double number) {
  ts_scalar known;
  ts_dtype dtype = ts_graph_value(s->rules->to, value)->dtype;
  return ts_graph_is_constant(s->rules->to, value, &known) &&
         ts_scalar_same(dtype, known, ts_scalar_from_f64(dtype, number));
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

/* ---- powers ---- */

static ts_status add_binary(const ts_rule_call *s, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id *out) {
  return ts_rules_add(s->rules, s->target, code, (ts_values){(const ts_value_id[]){a, b}, 2}, &(ts_attrs){0}, out);
}

static ts_status add_constant(const ts_rule_call *s, double number, ts_value_id *out) {
  return ts_rules_constant(s->rules, s->target, s->dtype, s->shape, ts_scalar_from_f64(s->dtype, number), out);
}

/* In half precision the product must be rounded once, as pow rounds. */
static ts_status add_cube(const ts_rule_call *s, ts_value_id x, ts_value_id *out) {
  bool half = ts_dtype_is_narrow(s->dtype);
  ts_value_id wide = x, square, cube;
  if (half) TS_TRY(ts_simplify_add(s, TS_OP_CONVERT, x, &(ts_attrs){.dtype = ts_dtype_compute(s->dtype)}, &wide));
  TS_TRY(add_binary(s, TS_OP_MULTIPLY, wide, wide, &square));
  TS_TRY(add_binary(s, TS_OP_MULTIPLY, square, wide, half ? &cube : out));
  return half ? ts_simplify_add(s, TS_OP_CONVERT, cube, &(ts_attrs){.dtype = s->dtype}, out) : TS_SUCCESS;
}

/* pow(x, 0.5): sqrt, except 0 for -0 and infinity for -infinity. */
static ts_status add_root(const ts_rule_call *s, ts_value_id x, ts_value_id *out) {
  ts_value_id zero, infinity, low, is_low, positive, root;
  TS_TRY(add_constant(s, 0, &zero));
  TS_TRY(add_constant(s, INFINITY, &infinity));
  TS_TRY(add_constant(s, -INFINITY, &low));
  TS_TRY(add_binary(s, TS_OP_EQUAL, x, low, &is_low));
  TS_TRY(add_binary(s, TS_OP_ADD, x, zero, &positive));
  TS_TRY(ts_simplify_add(s, TS_OP_SQRT, positive, &(ts_attrs){0}, &root));
  const ts_value_id choice[] = {is_low, infinity, root};
  return ts_rules_add(s->rules, s->target, TS_OP_SELECT, (ts_values){choice, 3}, &(ts_attrs){0}, out);
}

/* Exponents whose powers are defined by other ops. */
static ts_status simplify_power(const ts_rule_call *s, ts_value_id *out) {
  ts_value_id x = s->op->operands[0], exponent = s->op->operands[1], one;
  if (equals(s, exponent, 1)) {
    *out = x;
    return TS_SUCCESS;
  }
  if (equals(s, exponent, 0)) return add_constant(s, 1, out);
  if (equals(s, exponent, 2)) return add_binary(s, TS_OP_MULTIPLY, x, x, out);
  if (equals(s, exponent, 3)) return add_cube(s, x, out);
  if (ts_dtype_is_integer(s->dtype)) return TS_SUCCESS;
  if (equals(s, exponent, 0.5)) return add_root(s, x, out);
  if (!equals(s, exponent, -1)) return TS_SUCCESS;
  TS_TRY(add_constant(s, 1, &one));
  return add_binary(s, TS_OP_DIVIDE, one, x, out);
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

/* True when `to` represents every value of `from`. */
static bool is_exact(ts_dtype from, ts_dtype to) {
  bool fits = ts_dtype_precision(from) <= ts_dtype_precision(to);
  if (from == to) return true;
  switch (ts_dtype_get_kind(from)) {
  case TS_KIND_FLOAT: return to == TS_F64 || to == ts_dtype_compute(from);
  case TS_KIND_UNSIGNED:
  case TS_KIND_SIGNED:
    if (ts_dtype_is_float(to)) return fits && to != TS_F16;
    return fits && (ts_dtype_is_signed(to) || (ts_dtype_is_unsigned(from) && ts_dtype_is_unsigned(to)));
  case TS_KIND_COMPLEX: break;
  }
  return false;
}

/* Removes the middle one of two conversions when it is exact. From integers over a float back to integers, the direct
 * conversion would wrap where the float saturates; only a round trip to the same type is removed. */
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
  if (ts_dtype_is_complex(s->dtype) && s->op->code != TS_OP_SELECT) return TS_SUCCESS; /* complex.c */
  switch (s->op->code) {
  case TS_OP_CONVERT: return simplify_convert(s, out);
  case TS_OP_BITCAST: return simplify_bitcast(s, out);
  case TS_OP_SELECT: *out = simplify_select(s); return TS_SUCCESS;
  case TS_OP_POW: return simplify_power(s, out);
  default: break;
  }
  if (ts_op_operands(s->op->code) == 1) *out = simplify_unary(s);
  if (ts_op_operands(s->op->code) == 2) *out = simplify_binary(s);
  return TS_SUCCESS;
}
