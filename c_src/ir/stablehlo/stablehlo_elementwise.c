#include "ir/stablehlo/stablehlo_internal.h"

#include <math.h>

/* ---- ops with one op of StableHLO ---- */

/* chlo ops for functions that StableHLO lacks; XLA expands them. */
static const char *const names[TS_OP_COUNT] = {
    [TS_OP_EXP] = "stablehlo.exponential",
    [TS_OP_EXPM1] = "stablehlo.exponential_minus_one",
    [TS_OP_LOG] = "stablehlo.log",
    [TS_OP_LOG1P] = "stablehlo.log_plus_one",
    [TS_OP_SIGMOID] = "stablehlo.logistic",
    [TS_OP_COS] = "stablehlo.cosine",
    [TS_OP_SIN] = "stablehlo.sine",
    [TS_OP_TAN] = "chlo.tan",
    [TS_OP_COSH] = "chlo.cosh",
    [TS_OP_SINH] = "chlo.sinh",
    [TS_OP_TANH] = "stablehlo.tanh",
    [TS_OP_ACOS] = "chlo.acos",
    [TS_OP_ASIN] = "chlo.asin",
    [TS_OP_ATAN] = "chlo.atan",
    [TS_OP_ACOSH] = "chlo.acosh",
    [TS_OP_ASINH] = "chlo.asinh",
    [TS_OP_ATANH] = "chlo.atanh",
    [TS_OP_SQRT] = "stablehlo.sqrt",
    [TS_OP_RSQRT] = "stablehlo.rsqrt",
    [TS_OP_CBRT] = "stablehlo.cbrt",
    [TS_OP_ERF] = "chlo.erf",
    [TS_OP_ERFC] = "chlo.erfc",
    [TS_OP_ERF_INV] = "chlo.erf_inv",
    [TS_OP_ABS] = "stablehlo.abs",
    [TS_OP_NEGATE] = "stablehlo.negate",
    [TS_OP_SIGN] = "stablehlo.sign",
    [TS_OP_CEIL] = "stablehlo.ceil",
    [TS_OP_FLOOR] = "stablehlo.floor",
    [TS_OP_ROUND] = "stablehlo.round_nearest_afz",
    [TS_OP_NOT] = "stablehlo.not",
    [TS_OP_CLZ] = "stablehlo.count_leading_zeros",
    [TS_OP_POPCOUNT] = "stablehlo.popcnt",
    [TS_OP_REAL] = "stablehlo.real",
    [TS_OP_IMAG] = "stablehlo.imag",
    [TS_OP_COMPLEX] = "stablehlo.complex",
    [TS_OP_ADD] = "stablehlo.add",
    [TS_OP_SUBTRACT] = "stablehlo.subtract",
    [TS_OP_MULTIPLY] = "stablehlo.multiply",
    [TS_OP_DIVIDE] = "stablehlo.divide",
    [TS_OP_QUOTIENT] = "stablehlo.divide",
    [TS_OP_REMAINDER] = "stablehlo.remainder",
    [TS_OP_POW] = "stablehlo.power",
    [TS_OP_ATAN2] = "stablehlo.atan2",
    [TS_OP_MIN] = "stablehlo.minimum",
    [TS_OP_MAX] = "stablehlo.maximum",
    [TS_OP_AND] = "stablehlo.and",
    [TS_OP_OR] = "stablehlo.or",
    [TS_OP_XOR] = "stablehlo.xor",
    [TS_OP_SHIFT_LEFT] = "stablehlo.shift_left",
    [TS_OP_SHIFT_RIGHT] = "stablehlo.shift_right_arithmetic",
    [TS_OP_LOGICAL_AND] = "stablehlo.and",
    [TS_OP_LOGICAL_OR] = "stablehlo.or",
    [TS_OP_LOGICAL_XOR] = "stablehlo.xor",
};

static const char *const directions[TS_OP_COUNT] = {
    [TS_OP_EQUAL] = "EQ", [TS_OP_NOT_EQUAL] = "NE",     [TS_OP_GREATER] = "GT",
    [TS_OP_LESS] = "LT",  [TS_OP_GREATER_EQUAL] = "GE", [TS_OP_LESS_EQUAL] = "LE",
};

const char *ts_stablehlo_name(ts_opcode code) { return names[code]; }
const char *ts_stablehlo_direction(ts_opcode code) { return directions[code]; }

/* XLA's cbrt takes real numbers only, and its power of 0 need not be 0. */
static hlo_value complex_cube_root(hlo *h, hlo_value z) {
  ts_dtype type = (ts_dtype)z.element;
  hlo_value third = hlo_constant(h, type, &z.shape, ts_scalar_complex(type, 1.0 / 3, 0));
  hlo_value is_zero = hlo_compare(h, "EQ", z, hlo_integer(h, type, &z.shape, 0));
  hlo_value choices[] = {is_zero, z, hlo_binary(h, "stablehlo.power", z, third)};
  return hlo_op(h, "stablehlo.select", z.element, &z.shape, choices, 3);
}

/* Ops that StableHLO supports for fewer types. */
static hlo_value unary(const hlo_call *call, hlo_value x) {
  ts_opcode code = call->op->code;
  if (ts_dtype_is_complex((ts_dtype)x.element)) {
    if (code == TS_OP_CBRT) return complex_cube_root(call->h, x);
    return hlo_op(call->h, names[code], call->element, &x.shape, &x, 1);
  }
  bool is_float = ts_dtype_is_float((ts_dtype)x.element), is_signed = ts_dtype_is_signed((ts_dtype)x.element);
  if (code == TS_OP_CEIL || code == TS_OP_FLOOR || code == TS_OP_ROUND) {
    if (!is_float) return x;
  } else if (!is_float && !is_signed) {
    if (code == TS_OP_ABS) return x;
    if (code == TS_OP_SIGN)
      return hlo_binary(call->h, "stablehlo.minimum", x, hlo_integer(call->h, (ts_dtype)x.element, &x.shape, 1));
  }
  return hlo_unary(call->h, names[code], x);
}

static hlo_value take_part(hlo *h, const char *name, hlo_value x) {
  return hlo_op(h, name, ts_dtype_part((ts_dtype)x.element), &x.shape, &x, 1);
}

static hlo_value is_nan(const hlo_call *call, hlo_value x) {
  if (!ts_dtype_is_float((ts_dtype)x.element)) return hlo_integer(call->h, TS_U8, &x.shape, 0);
  return hlo_convert(call->h, hlo_compare(call->h, "NE", x, x), TS_U8);
}

static bool has_infinity(ts_dtype type) {
  return ts_dtype_is_float(type) && isinf(ts_scalar_to_f64(type, ts_dtype_highest(type)));
}

static hlo_value is_infinity(const hlo_call *call, hlo_value x) {
  hlo *h = call->h;
  ts_dtype type = (ts_dtype)x.element;
  if (!has_infinity(type)) return hlo_integer(h, TS_U8, &x.shape, 0);
  hlo_value infinity = hlo_constant(h, type, &x.shape, ts_dtype_highest(type));
  return hlo_convert(h, hlo_compare(h, "EQ", hlo_unary(h, "stablehlo.abs", x), infinity), TS_U8);
}

static ts_status predicate(const hlo_call *call, hlo_value x, hlo_value *out) {
  hlo_value (*find)(const hlo_call *, hlo_value) = NULL;
  switch ((ts_ops_PREDICATE)call->op->code) {
  case TS_OP_IS_NAN: find = is_nan; break;
  case TS_OP_IS_INFINITY: find = is_infinity; break;
  }
  if (!find) return hlo_no_form(call);
  if (ts_dtype_is_complex((ts_dtype)x.element)) {
    hlo_value re = find(call, take_part(call->h, "stablehlo.real", x));
    *out = hlo_binary(call->h, "stablehlo.or", re, find(call, take_part(call->h, "stablehlo.imag", x)));
  } else {
    *out = find(call, x);
  }
  return TS_SUCCESS;
}

static hlo_value binary(const hlo_call *call, hlo_value a, hlo_value b) {
  bool logical = call->op->code == TS_OP_SHIFT_RIGHT && ts_dtype_is_unsigned((ts_dtype)a.element);
  hlo_add_barriers(call->h, call->op->code, &a, &b);
  return hlo_binary(call->h, logical ? "stablehlo.shift_right_logical" : names[call->op->code], a, b);
}

static hlo_value compare(const hlo_call *call, hlo_value a, hlo_value b) {
  hlo *h = call->h;
  const char *direction = directions[call->op->code];
  if (direction) return hlo_convert(h, hlo_compare(h, direction, a, b), TS_U8);
  hlo_value x = hlo_truth(h, a), y = hlo_truth(h, b);
  return hlo_convert(h, hlo_binary(h, names[call->op->code], x, y), TS_U8);
}

static hlo_value select(const hlo_call *call) {
  hlo_value operands[] = {hlo_truth(call->h, hlo_operand(call, 0)), hlo_operand(call, 1), hlo_operand(call, 2)};
  return hlo_op(call->h, "stablehlo.select", call->element, call->shape, operands, 3);
}

static hlo_value clamp(const hlo_call *call) {
  hlo_value operands[] = {hlo_operand(call, 1), hlo_operand(call, 0), hlo_operand(call, 2)};
  return hlo_op(call->h, "stablehlo.clamp", call->element, call->shape, operands, 3);
}

static hlo_value bitcast(const hlo_call *call) {
  hlo_value x = hlo_operand(call, 0);
  if (x.element == call->element) return x;
  return hlo_op(call->h, "stablehlo.bitcast_convert", call->element, call->shape, &x, 1);
}

static ts_status converted(const hlo_call *call, hlo_value *out) {
  switch ((ts_ops_CONVERT)call->op->code) {
  case TS_OP_CONVERT: *out = hlo_convert(call->h, hlo_operand(call, 0), call->element); return TS_SUCCESS;
  case TS_OP_BITCAST: *out = bitcast(call); return TS_SUCCESS;
  }
  return hlo_no_form(call);
}

static hlo_value complex_op(const hlo_call *call) {
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, call->op->operand_count - 1)};
  return hlo_op(call->h, names[call->op->code], call->element, call->shape, operands, call->op->operand_count);
}

ts_status hlo_elementwise(const hlo_call *call, hlo_value *out) {
  ts_opcode code = call->op->code;
  switch (ts_op_get_class(code)) {
  case TS_CLASS_COMPLEX:
    if (!names[code]) return hlo_no_form(call);
    *out = complex_op(call);
    return TS_SUCCESS;
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
    if (!names[code]) return hlo_no_form(call);
    *out = unary(call, hlo_operand(call, 0));
    return TS_SUCCESS;
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
    if (!names[code]) return hlo_no_form(call);
    *out = binary(call, hlo_operand(call, 0), hlo_operand(call, 1));
    return TS_SUCCESS;
  case TS_CLASS_COMPARE:
    if (!names[code] && !directions[code]) return hlo_no_form(call);
    *out = compare(call, hlo_operand(call, 0), hlo_operand(call, 1));
    return TS_SUCCESS;
  case TS_CLASS_PREDICATE: return predicate(call, hlo_operand(call, 0), out);
  case TS_CLASS_SELECT: *out = select(call); return TS_SUCCESS;
  case TS_CLASS_CLAMP: *out = clamp(call); return TS_SUCCESS;
  case TS_CLASS_CONVERT: return converted(call, out);
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
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  return hlo_no_form(call);
}
