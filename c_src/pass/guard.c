/* Replaces ops that compilers of other devices compile wrongly or that end their process, by right ops.
 * The faults of XLA's CPU plugins:
 * - x / 0 of integers: They replace x / x by 1 even if x is 0. They end the process when they fold a constant x / 0.
 * - Types of 2 bits: They refuse or spoil sort, argsort, top_k, argmax, argmin and dot_general. They end the process at
 *   concatenate.
 * - s4: Their population_count counts copies of the sign bit.
 * - A conversion of a complex constant to floats: They end the process.
 * - Functions of complex numbers: Roots and inverse functions take an imaginary part -0 for 0, which is the other side
 *   of the cut. In c64 sign(3e38 (1 - i)) is 0, and the cube root of infinity - 2i is NaN.
 * - f8 and f8_e4m3fn: They refuse erfc and some factorizations.
 * - A general reduce: They may leave out the initial value, or take it more than once, and any order. One of them ends
 *   the process if the function reduces a tensor. normalize.c makes a loop of a reduce by a function, and takes the
 *   initial value out of one by an op that has no order: sum, product, minimum, maximum, and, or, xor.
 * The results keep all bits, but those of sums and products of floats. */
#include "pass/complex/complex.h"

#include <string.h>

static bool has_two_bits(ts_dtype type) { return type == TS_S2 || type == TS_U2; }

static ts_dtype type_of(const ts_rule_call *call, ts_value_id value) {
  return ts_graph_value(call->rules->to, value)->dtype;
}

static bool has_type(const ts_rule_call *call, bool (*is)(ts_dtype)) {
  bool found = is(call->dtype);
  for (uint32_t i = 0; i < call->op->operand_count; i++) found = found || is(type_of(call, call->op->operands[i]));
  return found;
}

static ts_status add(const ts_rule_call *call, ts_opcode code, ts_values operands, ts_value_id *out) {
  return ts_rules_add(call->rules, call->target, code, operands, NULL, out);
}

static ts_status convert(const ts_rule_call *call, ts_value_id value, ts_dtype to, ts_value_id *out) {
  *out = value;
  if (type_of(call, value) == to) return TS_SUCCESS;
  return ts_rules_add(call->rules, call->target, TS_OP_CONVERT, (ts_values){&value, 1}, &(ts_attrs){.dtype = to}, out);
}

/* ---- division */

static const ts_op *made_by(const ts_graph *graph, ts_value_id value) {
  ts_op_id id = ts_graph_value(graph, value)->op;
  return id == TS_NO_ID ? NULL : ts_graph_op(graph, id);
}

static bool is_zero(const ts_graph *graph, ts_value_id value) {
  ts_scalar number;
  return ts_graph_is_constant(graph, value, &number) && number.bits == 0;
}

/* Whether the divisor is a constant other than 0, or guard_division() made it. */
static bool cannot_be_zero(const ts_graph *graph, ts_value_id divisor) {
  ts_scalar number;
  if (ts_graph_is_constant(graph, divisor, &number)) return number.bits != 0;
  const ts_op *select = made_by(graph, divisor);
  if (!select || select->code != TS_OP_SELECT) return false;
  const ts_op *equal = made_by(graph, select->operands[0]);
  return equal && equal->code == TS_OP_EQUAL && equal->operands[0] == select->operands[2] &&
         is_zero(graph, equal->operands[1]) && ts_graph_is_constant(graph, select->operands[1], &number) &&
         number.bits != 0;
}

static ts_status constant(const ts_rule_call *call, int64_t number, ts_value_id *out) {
  return ts_rules_constant(call->rules, call->target, call->dtype, call->shape, ts_scalar_from_s64(call->dtype, number),
                           out);
}

/* x / (y = 0 ? 1 : y). Where y is 0 it is the host's result: all bits for a quotient, x for a remainder. */
static ts_status guard_division(const ts_rule_call *call, ts_value_id *out) {
  ts_value_id x = call->op->operands[0], y = call->op->operands[1], zero, one, is, safe, quotient, wanted = x;
  TS_TRY(constant(call, 0, &zero));
  TS_TRY(constant(call, 1, &one));
  TS_TRY(add(call, TS_OP_EQUAL, (ts_values){(ts_value_id[]){y, zero}, 2}, &is));
  TS_TRY(add(call, TS_OP_SELECT, (ts_values){(ts_value_id[]){is, one, y}, 3}, &safe));
  TS_TRY(add(call, call->op->code, (ts_values){(ts_value_id[]){x, safe}, 2}, &quotient));
  if (call->op->code == TS_OP_QUOTIENT) TS_TRY(constant(call, -1, &wanted));
  return add(call, TS_OP_SELECT, (ts_values){(ts_value_id[]){is, wanted, quotient}, 3}, out);
}

static bool divides(const ts_rule_call *call) {
  ts_opcode code = call->op->code;
  return (code == TS_OP_QUOTIENT || code == TS_OP_REMAINDER) && ts_dtype_is_integer(call->dtype) &&
         !cannot_be_zero(call->rules->to, call->op->operands[1]);
}

/* ---- conversions */

static bool drops_imaginary(const ts_rule_call *call) {
  return call->op->code == TS_OP_CONVERT && ts_dtype_is_complex(type_of(call, call->op->operands[0])) &&
         !ts_dtype_is_complex(call->dtype);
}

static ts_status take_real(const ts_rule_call *call, ts_value_id *out) {
  ts_value_id real;
  TS_TRY(add(call, TS_OP_REAL, (ts_values){call->op->operands, 1}, &real));
  return convert(call, real, call->dtype, out);
}

/* ---- functions of complex numbers */

/* XLA's exp differs beside a NaN only, and its powers in large angles. Both stay as they are: formulas of powers have
 * hundreds of ops. */
static bool has_formula(const ts_rule_call *call) {
  const ts_opcode code = call->op->code;
  const bool is_function = ts_op_get_class(code) == TS_CLASS_UNARY_FLOAT && code != TS_OP_EXP;
  return ts_dtype_is_complex(call->dtype) && (is_function || code == TS_OP_SIGN);
}

/* ---- narrow types */

/* Ops that move elements or sort them, which widen.c leaves as they are. */
static bool moves(const ts_op *op) {
  return op->code == TS_OP_CONCATENATE || ts_op_get_class(op->code) == TS_CLASS_SORT;
}

static ts_status move_as_bytes(const ts_rule_call *call, ts_value_id *operands, ts_value_id *out) {
  const ts_op *op = call->op;
  ts_attrs attrs = ts_op_copy_attrs(op);
  for (uint32_t i = 0; i < op->operand_count; i++)
    TS_TRY(convert(call, op->operands[i], ts_dtype_carrier(type_of(call, op->operands[i])), &operands[i]));
  TS_TRY(ts_rules_add(call->rules, call->target, op->code, (ts_values){operands, op->operand_count},
                      op->attrs ? &attrs : NULL, out));
  for (uint32_t i = 0; i < op->result_count; i++) TS_TRY(convert(call, out[i], call->results[i].dtype, &out[i]));
  return TS_SUCCESS;
}

static ts_status guard_move(const ts_rule_call *call, ts_value_id *out) {
  ts_value_id *operands, made[TS_MAX_RESULTS];
  if (!has_two_bits(type_of(call, call->op->operands[0]))) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(call->op->operand_count, &operands));
  ts_status status = move_as_bytes(call, operands, made);
  ts_free(operands);
  if (!status) memcpy(out, made, call->op->result_count * sizeof *out);
  return status;
}

static bool is_small_float(ts_dtype type) { return ts_dtype_is_small(type) && ts_dtype_is_float(type); }

static bool needs_wide(const ts_rule_call *call) {
  ts_op_class class = ts_op_get_class(call->op->code);
  return has_type(call, has_two_bits) || (class == TS_CLASS_UNARY_INTEGER && ts_dtype_is_small(call->dtype)) ||
         ((class == TS_CLASS_UNARY_FLOAT || class == TS_CLASS_LINALG) && has_type(call, is_small_float));
}

ts_status ts_guard(const ts_rule_call *call, ts_value_id *out) {
  if (drops_imaginary(call)) return take_real(call, out);
  if (has_formula(call)) return ts_complex_split(call, out);
  if (call->op->operand_count > 0 && moves(call->op)) TS_TRY(guard_move(call, out));
  if (*out == TS_NO_ID && needs_wide(call)) TS_TRY(ts_widen(call, out));
  return *out == TS_NO_ID && divides(call) ? guard_division(call, out) : TS_SUCCESS;
}
