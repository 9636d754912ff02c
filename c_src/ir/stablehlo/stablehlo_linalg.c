/* Linear algebra in StableHLO. */
#include "ir/stablehlo/stablehlo_internal.h"

static const char *truth(bool value) { return value ? "true" : "false"; }

/* Which elements of a matrix stay: those whose row compares so with the column ("GE": the lower triangle). */
static hlo_value where(const hlo_call *call, const ts_shape *shape, const char *direction) {
  hlo_value row = hlo_iota(call->h, TS_S64, shape, shape->rank - 2);
  hlo_value col = hlo_iota(call->h, TS_S64, shape, shape->rank - 1);
  return hlo_compare(call->h, direction, row, col);
}

static hlo_value pick(hlo *h, hlo_value condition, hlo_value yes, hlo_value no) {
  return hlo_op(h, "stablehlo.select", yes.element, &yes.shape, (hlo_value[]){condition, yes, no}, 3);
}

/* The elements that are in a triangle. Compilers may multiply the others by zero, although the op must not read them:
 * NaN and infinity would spread. */
static hlo_value triangle(const hlo_call *call, hlo_value a, const char *direction) {
  static const ts_scalar zero = {.bits = 0};
  hlo_value inside = where(call, &a.shape, direction);
  return pick(call->h, inside, a, hlo_constant(call->h, (ts_dtype)a.element, &a.shape, zero));
}

/* The diagonal of a Hermitian matrix is real: its imaginary parts are not read either. */
static hlo_value with_real_diagonal(const hlo_call *call, hlo_value a) {
  static const ts_scalar zero = {.bits = 0};
  if (!ts_dtype_is_complex((ts_dtype)a.element)) return a;
  const ts_dtype part = ts_dtype_part((ts_dtype)a.element);
  hlo_value parts[2];
  parts[0] = hlo_op(call->h, "stablehlo.real", part, &a.shape, &a, 1);
  parts[1] = hlo_constant(call->h, part, &a.shape, zero);
  hlo_value real = hlo_op(call->h, "stablehlo.complex", a.element, &a.shape, parts, 2);
  return pick(call->h, where(call, &a.shape, "EQ"), real, a);
}

/* StableHLO leaves the elements above the diagonal of the factor to the implementation; ours are zeros. */
static hlo_value cholesky(const hlo_call *call) {
  hlo_value a = with_real_diagonal(call, triangle(call, hlo_operand(call, 0), "GE"));
  hlo_value factor = hlo_op_with(call->h, "stablehlo.cholesky", (hlo_type){call->element, call->shape},
                                 (hlo_values){&a, 1}, "lower = true");
  return triangle(call, factor, "GE");
}

/* The matrix as far as the op reads it. A diagonal that counts as ones is ones. */
static hlo_value read_part(const hlo_call *call, hlo_value a) {
  const ts_attrs *attrs = call->op->attrs;
  if (!attrs->triangular.unit) return triangle(call, a, attrs->triangular.lower ? "GE" : "LE");
  hlo_value ones = hlo_convert(call->h, where(call, &a.shape, "EQ"), a.element);
  hlo_value inside = where(call, &a.shape, attrs->triangular.lower ? "GT" : "LT");
  return pick(call->h, inside, a, ones);
}

static hlo_value triangular_solve(const hlo_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  hlo_value operands[] = {read_part(call, hlo_operand(call, 0)), hlo_operand(call, 1)};
  return hlo_op_with(call->h, "stablehlo.triangular_solve", (hlo_type){call->element, call->shape},
                     (hlo_values){operands, 2},
                     "left_side = %s, lower = %s, unit_diagonal = %s, transpose_a = #stablehlo<transpose %s>",
                     truth(attrs->triangular.left), truth(attrs->triangular.lower), truth(attrs->triangular.unit),
                     attrs->triangular.transpose ? "TRANSPOSE" : "NO_TRANSPOSE");
}

ts_status hlo_linalg(const hlo_call *call, hlo_value *out) {
  switch ((ts_ops_LINALG)call->op->code) {
  case TS_OP_CHOLESKY: *out = cholesky(call); return TS_SUCCESS;
  case TS_OP_TRIANGULAR_SOLVE: *out = triangular_solve(call); return TS_SUCCESS;
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU:
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: break; /* it has no triangular factors */
  }
  return hlo_no_form(call);
}
