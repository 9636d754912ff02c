/* Prints indexed_add and indexed_put as scatter. StableHLO does not define the order of updates with equal indices;
 * XLA's CPU backend applies them in order. */
#include <stdio.h>

#include "ir/stablehlo/stablehlo_internal.h"

static void print_update(const hlo_call *call) {
  static const ts_shape scalar = {.rank = 0};
  hlo *h = call->h;
  hlo_value params[2];
  for (int i = 0; i < 2; i++) params[i] = hlo_new_value(h, call->element, &scalar);
  hlo_region_begin(h, true, params, 2);
  hlo_value result =
      call->op->code == TS_OP_INDEXED_ADD ? hlo_binary(h, "stablehlo.add", params[0], params[1]) : params[1];
  hlo_region_end(h, true, &result, 1);
}

ts_status hlo_scatter(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  const ts_dims *axes = &call->op->attrs->axes;
  hlo_value operands[] = {hlo_operand(call, 0), hlo_signed_index(h, hlo_operand(call, 1)), hlo_operand(call, 2)};
  ts_dims windows = {.rank = operands[2].shape.rank - 1};
  for (int32_t d = 0; d < windows.rank; d++) windows.dims[d] = d + 1;
  *out = (hlo_value){.element = call->element, .shape = *call->shape};
  out->name = hlo_begin(h, "stablehlo.scatter", 1, operands, 3);
  ts_text_format(
      h->out,
      " <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = %s, inserted_window_dims = %s, "
      "scatter_dims_to_operand_dims = %s, index_vector_dim = 1>, indices_are_sorted = false, unique_indices = "
      "false}>",
      HLO_LIST(&windows), HLO_LIST(axes), HLO_LIST(axes));
  print_update(call);
  hlo_end(h, operands, 3, out, 1);
  return TS_SUCCESS;
}
