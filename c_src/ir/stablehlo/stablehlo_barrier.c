/* Barriers for compilers. XLA computes (x / y) / z as x / (y * z), and x / (y / z) as (x * z) / y, where the product
 * may overflow or vanish. It multiplies by the reciprocal of a divisor that is a constant or is repeated, which gives 0
 * where the reciprocal is subnormal. It unites two constants that are added or multiplied in turn. A barrier between
 * two ops hides one from the other. XLA's compiler for CPUs removes barriers before it fuses ops. That for GPUs does so
 * afterwards: there a barrier costs a pass over memory. */
#include "ir/stablehlo/stablehlo_internal.h"

#include <math.h>

/* How a value was made: bits of hlo_name.made. */
enum {
  QUOTIENT = 1, /* a division of floats */
  REPEATED = 2, /* of a smaller tensor */
  CONSTANT = 4,
  EXTREME = 8, /* a constant whose reciprocal need not be a normal number */
  SCALED = 16, /* a product or quotient with a constant */
  SHIFTED = 32 /* a sum or difference with a constant */
};

static bool is_inexact(hlo_element element) {
  return element != HLO_I1 && (ts_dtype_is_float((ts_dtype)element) || ts_dtype_is_complex((ts_dtype)element));
}

/* The reciprocal of the smallest normal number. */
static double greatest_divisor(ts_dtype type) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_F8E4M3FN: return 0x1p6;
  case TS_FLOAT_F8:
  case TS_FLOAT_F16: return 0x1p14;
  case TS_FLOAT_BF16:
  case TS_FLOAT_F32: return 0x1p126;
  case TS_FLOAT_F64: return 0x1p1022;
  }
  return 0;
}

static bool has_normal_reciprocal(ts_dtype type, ts_scalar value) {
  if (ts_dtype_is_complex(type)) return false;
  const double size = fabs(ts_scalar_to_f64(type, value)), limit = greatest_divisor(type);
  return size <= limit && 1 / size <= limit;
}

static uint32_t constant(const ts_op *op, ts_dtype type) {
  const bool is_normal = op->code == TS_OP_CONSTANT && has_normal_reciprocal(type, op->attrs->constant.value);
  return is_normal ? CONSTANT : CONSTANT | EXTREME;
}

/* A division by a constant becomes a product before XLA looks at the quotient. */
static bool is_product(uint32_t divisor) { return divisor & CONSTANT && !(divisor & EXTREME); }

static uint32_t quotient(const hlo *h, const ts_op *op, uint32_t operands) {
  return (is_product(h->names[op->operands[1]].made) ? 0 : QUOTIENT) | (operands & CONSTANT ? SCALED : 0);
}

/* Ops whose elements are their operand's. */
static bool keeps_elements(ts_opcode code) {
  return code == TS_OP_RESHAPE || code == TS_OP_TRANSPOSE || code == TS_OP_REVERSE || code == TS_OP_SLICE ||
         code == TS_OP_NEGATE;
}

static uint32_t made_by_op(const hlo *h, const ts_op *op, ts_dtype type, uint32_t operands) {
  const ts_opcode code = op->code;
  if (code == TS_OP_CONSTANT || code == TS_OP_LITERAL) return constant(op, type);
  if (code == TS_OP_DIVIDE) return quotient(h, op, operands);
  if (code == TS_OP_MULTIPLY) return operands & CONSTANT ? SCALED : 0;
  if (code == TS_OP_ADD || code == TS_OP_SUBTRACT) return operands & CONSTANT ? SHIFTED : 0;
  if (code == TS_OP_BROADCAST) return operands | REPEATED;
  return keeps_elements(code) ? operands : 0;
}

uint32_t hlo_made(const hlo *h, const ts_op *op) {
  const ts_value *value = ts_graph_value(h->graph, op->first_result);
  uint32_t operands = 0;
  if (h->barriers == TS_STABLEHLO_NO_BARRIERS || !is_inexact(value->dtype)) return 0;
  for (uint32_t i = 0; i < op->operand_count; i++) operands |= h->names[op->operands[i]].made;
  return made_by_op(h, op, (ts_dtype)value->dtype, operands);
}

static void add_barrier(hlo *h, hlo_value *x) {
  *x = hlo_op(h, "stablehlo.optimization_barrier", x->element, &x->shape, x, 1);
}

/* Whether the other operand is a constant, or both were made with one. */
static bool unites(uint32_t x, uint32_t other, uint32_t with_constant) {
  return x & with_constant && other & (CONSTANT | with_constant);
}

static bool needs_barrier(const hlo *h, ts_opcode code, uint32_t x, uint32_t other, bool is_second) {
  const bool is_divisor = code == TS_OP_DIVIDE && is_second;
  if (code == TS_OP_DIVIDE && x & QUOTIENT && (is_divisor || !is_product(other))) return true;
  if (is_divisor && x & EXTREME) return true;
  if (h->barriers == TS_STABLEHLO_FEW_BARRIERS) return false;
  if (is_divisor && x & REPEATED && !(x & CONSTANT)) return true;
  if (code == TS_OP_DIVIDE || code == TS_OP_MULTIPLY) return unites(x, other, SCALED);
  return (code == TS_OP_ADD || code == TS_OP_SUBTRACT) && (unites(x, other, SHIFTED) || (x & other & SCALED));
}

void hlo_add_barriers(hlo *h, ts_opcode code, hlo_value *a, hlo_value *b) {
  const uint32_t first = a->name.made, second = b->name.made;
  if (h->barriers == TS_STABLEHLO_NO_BARRIERS || !is_inexact(a->element)) return;
  const bool squares = a->name.number == b->name.number && a->name.result == b->name.result;
  if (needs_barrier(h, code, first, second, false)) add_barrier(h, a);
  if (squares && code != TS_OP_DIVIDE)
    *b = *a;
  else if (needs_barrier(h, code, second, first, true))
    add_barrier(h, b);
}
