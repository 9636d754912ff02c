/* The first of a line is found by an argmax, which takes NaN and the first of equal numbers as top_k does, and is taken
 * from its place.
 *
 * top_k whose positions nothing reads becomes a sort of the values where that is faster. The values and their order are
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

/* One launch takes less time than two for fewer elements. */
#define LEAST_SEARCHED 512
/* Where nothing reads positions, shorter lines would be searched by the kernel that takes the values, one by one. */
#define LEAST_TAKEN 32

static bool is_searched(const ts_graph *g, const ts_op *op) {
  if (op->code != TS_OP_TOP_K || op->attrs->top_k.k != 1) return false;
  const ts_value *operand = ts_graph_value(g, op->operands[0]);
  const int64_t n = operand->shape->dims[operand->shape->rank - 1];
  return n > 1 && n <= INT32_MAX && ts_shape_elements(operand->shape) >= LEAST_SEARCHED &&
         ts_dtype_bits(operand->dtype) >= 8;
}

bool ts_order_applies(const ts_graph *g) {
  for (size_t i = 0; i < g->ops.count; i++)
    if (is_sorted(g, &g->ops.data[i]) || is_searched(g, &g->ops.data[i])) return true;
  return false;
}

/* Both results, from the position of each line's first. */
static ts_status search(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  const ts_shape *shape = ts_graph_value(rw->from, op->operands[0])->shape;
  const int32_t last = shape->rank - 1;
  ts_attrs found = {.arg = {.axis = last, .dtype = TS_S32}}, column = {0};
  ts_value_id operands[] = {ts_rewrite_operand(rw, op, 0), TS_NO_ID}, at;
  TS_TRY(ts_rules_add(rules, target, TS_OP_ARGMAX, (ts_values){operands, 1}, &found, &at));
  ts_shape_copy(&column.shape, shape);
  column.shape.dims[last] = 1;
  TS_TRY(ts_rules_add(rules, target, TS_OP_RESHAPE, (ts_values){&at, 1}, &column, &operands[1]));
  rw->map[op->first_result + 1] = operands[1];
  TS_TRY(ts_rules_add(rules, target, TS_OP_TAKE_ALONG, (ts_values){operands, 2}, &(ts_attrs){.axis = last}, &at));
  return ts_rewrite_set(rw, id, at);
}

ts_status ts_order_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target, bool *out_done) {
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_value_id operand = ts_rewrite_operand(rw, op, 0), sorted, first;
  const ts_shape *shape = ts_graph_value(rw->from, op->operands[0])->shape;
  const int32_t last = shape->rank - 1;
  const ts_attrs sort = {.sort = {.axis = last, .descending = true}};
  ts_attrs slice = {
      .slice = {.start = {.rank = shape->rank}, .limit = {.rank = shape->rank}, .stride = {.rank = shape->rank}}};
  const bool reads_positions = rw->uses[op->first_result + 1] > 0;
  *out_done = is_searched(rw->from, op) && (reads_positions || shape->dims[last] >= LEAST_TAKEN);
  if (*out_done) return search(rw, rules, id, target);
  *out_done = !reads_positions && is_sorted(rw->from, op);
  if (!*out_done) return TS_SUCCESS;
  TS_TRY(ts_rules_add(rules, target, TS_OP_SORT, (ts_values){&operand, 1}, &sort, &sorted));
  for (int32_t d = 0; d <= last; d++) slice.slice.limit.dims[d] = shape->dims[d], slice.slice.stride.dims[d] = 1;
  slice.slice.limit.dims[last] = op->attrs->top_k.k;
  if (op->attrs->top_k.k == shape->dims[last]) return ts_rewrite_set(rw, id, sorted);
  TS_TRY(ts_rules_add(rules, target, TS_OP_SLICE, (ts_values){&sorted, 1}, &slice, &first));
  return ts_rewrite_set(rw, id, first);
}
