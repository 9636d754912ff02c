/* Linear algebra in StableHLO. */
#include "ir/stablehlo/stablehlo_internal.h"

static const char *truth(bool value) { return value ? "true" : "false"; }

/* StableHLO leaves the elements above the diagonal to the implementation; ours are zeros. */
static hlo_value cholesky(const hlo_call *call) {
  static const ts_scalar zero = {.bits = 0};
  hlo *h = call->h;
  const int32_t rank = call->shape->rank;
  hlo_value a = hlo_operand(call, 0);
  hlo_value factor =
      hlo_op_with(h, "stablehlo.cholesky", (hlo_type){call->element, call->shape}, (hlo_values){&a, 1}, "lower = true");
  hlo_value row = hlo_iota(h, TS_S64, call->shape, rank - 2), col = hlo_iota(h, TS_S64, call->shape, rank - 1);
  hlo_value operands[] = {hlo_compare(h, "GE", row, col), factor,
                          hlo_constant(h, (ts_dtype)call->element, call->shape, zero)};
  return hlo_op(h, "stablehlo.select", call->element, call->shape, operands, 3);
}

static hlo_value triangular_solve(const hlo_call *call) {
  const ts_attrs *attrs = call->op->attrs;
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, 1)};
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
