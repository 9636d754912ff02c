/* Inference and StableHLO of the test class (TS_TEST_ROWS in c_src/ir/op.def). */
#include "ir/infer.h"
#include "ir/stablehlo/stablehlo_internal.h"

static ts_status infer_exchange(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0), *b = ts_infer_operand(call, 1);
  TS_TRY(ts_infer_same_dtype(call));
  if (!ts_dtype_is_integer(a->dtype)) return ts_infer_error(call, "expected an integer type");
  if (!ts_shape_equal(a->shape, b->shape)) return ts_infer_error(call, "expected equal shapes");
  ts_type_set(&out[0], a->dtype, a->shape);
  ts_type_set(&out[1], a->dtype, a->shape);
  ts_type_set(&out[2], TS_S64, &ts_shape_scalar);
  return TS_SUCCESS;
}

ts_status ts_infer_test(const ts_infer_call *call, ts_type *out) {
  const ts_value *x = ts_infer_operand(call, 0);
  switch ((ts_ops_TEST)call->code) {
  case TS_OP_TEST_EXCHANGE: return infer_exchange(call, out);
  case TS_OP_TEST_ORDERED: ts_type_set(out, x->dtype, x->shape); return TS_SUCCESS;
  }
  return ts_infer_unknown(call);
}

ts_status hlo_test(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  if (call->op->code != TS_OP_TEST_EXCHANGE) return hlo_no_form(call);
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, 1)};
  out[0] = out[1] = (hlo_value){.element = call->element, .shape = *call->shape};
  out[2] = (hlo_value){.element = TS_S64};
  hlo_name_results(hlo_begin(h, "stablehlo.custom_call", 3, operands, 2), out, 3);
  ts_text_append(h->out, " <{call_target_name = \"test_exchange\"}>");
  hlo_end(h, operands, 2, out, 3);
  return TS_SUCCESS;
}
