/* top_k whose positions nothing reads becomes a sort of the values where that is faster. The values and their order are
 * the same, since both are in the order of one key, and equal keys stay in the order of the operand. */
#include "pass/normalize.h"

/* Lanes of vectors sort lines together, of so many elements of at least 32 bits as fast as others find the first k. */
#define SHORT_LINE 256
#define SHORT_BYTES 4
/* A slice of still shorter lines takes as long as the positions. */
#define SHORTEST_LINE 16
/* From this part of a line on, all of it is sorted as fast. Of longer lines the routine sorts that part
 * (kernel/sort/sort_first.h). */
#define LARGE_PART 6
#define LONG_LINE 4096
#define LONGEST_LINE (INT64_C(1) << 25)

static bool is_sorted(const ts_graph *g, const ts_op *op) {
  if (op->code != TS_OP_TOP_K) return false;
  const ts_shape *shape = ts_graph_value(g, op->operands[0])->shape;
  const int64_t n = shape->dims[shape->rank - 1], k = op->attrs->top_k.k;
  if (ts_shape_elements(shape) == 0 || k == 0 || n > INT32_MAX) return false;
  if (n <= SHORTEST_LINE || k == n) return k == n;
  const size_t size = ts_dtype_size(ts_graph_value(g, op->operands[0])->dtype);
  if (n >= LONG_LINE && n <= LONGEST_LINE && size >= SHORT_BYTES) return false;
  return (n <= SHORT_LINE && size >= SHORT_BYTES) || k >= n / LARGE_PART;
}

bool ts_order_applies(const ts_graph *g) {
  for (size_t i = 0; i < g->ops.count; i++)
    if (is_sorted(g, &g->ops.data[i])) return true;
  return false;
}

ts_status ts_order_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target, bool *out_done) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_value_id operand = ts_rewrite_operand(rw, op, 0), sorted, first;
  const ts_shape *shape = ts_graph_value(rw->from, op->operands[0])->shape;
  const int32_t last = shape->rank - 1;
  const ts_attrs sort = {.sort = {.axis = last, .descending = true}};
  ts_attrs slice = {
      .slice = {.start = {.rank = shape->rank}, .limit = {.rank = shape->rank}, .stride = {.rank = shape->rank}}};
  *out_done = rw->uses[op->first_result + 1] == 0 && is_sorted(rw->from, op);
  if (!*out_done) return TS_SUCCESS;
  TS_TRY(ts_rules_add(rules, target, TS_OP_SORT, (ts_values){&operand, 1}, &sort, &sorted));
  for (int32_t d = 0; d <= last; d++) slice.slice.limit.dims[d] = shape->dims[d], slice.slice.stride.dims[d] = 1;
  slice.slice.limit.dims[last] = op->attrs->top_k.k;
  if (op->attrs->top_k.k == shape->dims[last]) return ts_rewrite_set(rw, id, sorted);
  TS_TRY(ts_rules_add(rules, target, TS_OP_SLICE, (ts_values){&sorted, 1}, &slice, &first));
  return ts_rewrite_set(rw, id, first);
}
