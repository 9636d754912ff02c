#include "open_order.h"

#include "base/alloc.h"
#include "jit/session/target.h"

/* The region is one sum or one product. The reader makes reduce_sum or reduce_product of it, which have their own
 * order. */
static bool folds_in_any_order(const ts_graph *g, const ts_op *op) {
  if (op->code != TS_OP_REDUCE || ts_dtype_is_integer(ts_graph_value(g, op->first_result)->dtype)) return false;
  const ts_region *region = ts_graph_region(g, op->attrs->reduce.region);
  if (region->ops.count != 1) return false;
  const ts_opcode code = ts_graph_op(g, region->ops.data[0])->code;
  return code == TS_OP_ADD || code == TS_OP_MULTIPLY;
}

/* Products by AMX, also those that convolutions become, have an order of their own (tensor/contract_order.h). */
static bool is_by_amx(const ts_graph *g, const ts_op *op, ts_dtype dtype) {
  return dtype == TS_BF16 && ts_target_host()->amx && (op->code == TS_OP_DOT || ts_graph_is_point_conv(g, op));
}

/* Products of bf16, and of converted, scaled or quantised operands, become conversions, and a dot_general of f32.
 * Vectors have an order of their own there (ts_graph_is_vector_dot). */
bool open_order_has(const ts_graph *g, const ts_op *op) {
  const ts_dtype dtype = ts_graph_value(g, op->first_result)->dtype;
  const bool is_lowered = op->code == TS_OP_WIDE_DOT || op->code == TS_OP_SCALED_DOT || op->code == TS_OP_QUANTIZED_DOT;
  return (is_lowered && ts_dtype_is_float(dtype)) || is_by_amx(g, op, dtype) || folds_in_any_order(g, op);
}

static bool region_has_open_order(const ts_graph *g, ts_region_id id);

static bool op_has_open_order(const ts_graph *g, const ts_op *op) {
  ts_region_id regions[2];
  const size_t count = op->attrs ? ts_op_regions(op, regions) : 0;
  for (size_t i = 0; i < count; i++)
    if (region_has_open_order(g, regions[i])) return true;
  return open_order_has(g, op);
}

static bool region_has_open_order(const ts_graph *g, ts_region_id id) {
  const ts_region *region = ts_graph_region(g, id);
  for (size_t i = 0; i < region->ops.count; i++)
    if (op_has_open_order(g, ts_graph_op(g, region->ops.data[i]))) return true;
  return false;
}

ts_status open_order_find(const ts_graph *g, bool **out) {
  const ts_region *root = ts_graph_region(g, TS_ROOT);
  TS_TRY(TS_NEW_ARRAY(g->values.count + 1, out));
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_op *op = ts_graph_op(g, root->ops.data[i]);
    bool is_open = op_has_open_order(g, op);
    for (uint32_t k = 0; k < op->operand_count; k++) is_open = is_open || (*out)[op->operands[k]];
    for (uint32_t k = 0; k < op->result_count; k++) (*out)[op->first_result + k] = is_open;
  }
  return TS_SUCCESS;
}
