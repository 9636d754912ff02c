/* Sorts by any comparator: Batcher's bitonic network. Each step of the network compares all pairs at once. The length
 * of the axis is a power of two, so elements that are not there are last. Elements that the comparator calls equal are
 * in the order of their positions, which go with them: so the order is total, and the sort stable. */
#include "stablehlo/make.h"

/* Longer lines would make too many steps. */
#define MOST_ELEMENTS (1 << 20)

typedef struct network {
  const make_call *m;
  size_t count;                  /* operands, and after them the positions */
  int64_t before, length, after; /* of the shape: the axis is between */
  int64_t padded;
  ts_value_id *values, *low, *high, *pairs; /* `count` each, and pairs twice as many */
} network;

static ts_status begin(network *n) {
  ts_attrs pad = {0};
  ts_value_id zero;
  const ts_shape flat = {.rank = 3, .dims = {n->before, n->length, n->after}};
  const ts_shape whole = {.rank = 3, .dims = {n->before, n->padded, n->after}};
  pad.pad.low.rank = pad.pad.high.rank = pad.pad.interior.rank = 3;
  pad.pad.high.dims[1] = n->padded - n->length;
  for (size_t i = 0; i + 1 < n->count; i++) {
    const ts_dtype dtype = make_operand_of(n->m, i)->dtype;
    TS_TRY(make_reshape(n->m, n->m->operands[i].id, &flat, &n->values[i]));
    if (n->padded == n->length) continue;
    TS_TRY(ts_graph_constant(n->m->r->graph, n->m->region, dtype, &ts_shape_scalar, (ts_scalar){0}, &zero));
    TS_TRY(make_add(n->m, TS_OP_PAD, (ts_values){(ts_value_id[]){n->values[i], zero}, 2}, &pad, &n->values[i]));
  }
  return make_iota(n->m, TS_S32, &whole, 1, &n->values[n->count - 1]);
}

/* The region's answer for x before y. */
static ts_status ask(const network *n, const ts_value_id *x, const ts_value_id *y, ts_value_id *out) {
  make_value result;
  for (size_t i = 0; i + 1 < n->count; i++) {
    n->pairs[2 * i] = x[i];
    n->pairs[2 * i + 1] = y[i];
  }
  TS_TRY(make_lifted(n->m, &n->m->op->regions[0], n->pairs, &result));
  *out = result.id;
  return TS_SUCCESS;
}

/* x before y: by the comparator, else by the position. Elements that are not there come last. */
static ts_status precedes(const network *n, const ts_value_id *x, const ts_value_id *y, ts_value_id *out) {
  const size_t last = n->count - 1;
  ts_value_id before, after, lesser, equal, end, is_end, other_end;
  TS_TRY(ask(n, x, y, &before));
  TS_TRY(ask(n, y, x, &after));
  TS_TRY(make_binary(n->m, TS_OP_LESS, x[last], y[last], &lesser));
  TS_TRY(make_binary(n->m, TS_OP_LESS, after, lesser, &equal)); /* not after, and lesser */
  TS_TRY(make_binary(n->m, TS_OP_OR, before, equal, out));
  if (n->padded == n->length) return TS_SUCCESS;
  TS_TRY(make_integer(n->m, x[last], n->length, &end));
  TS_TRY(make_binary(n->m, TS_OP_GREATER_EQUAL, x[last], end, &is_end));
  TS_TRY(make_binary(n->m, TS_OP_GREATER_EQUAL, y[last], end, &other_end));
  TS_TRY(make_binary(n->m, TS_OP_OR, is_end, other_end, &is_end));
  return make_select(n->m, is_end, lesser, *out, out);
}

/* Elements that are `distance` apart, in blocks of twice as many. */
static ts_status split(const network *n, int64_t distance, size_t i) {
  const int64_t blocks = n->padded / (2 * distance);
  const ts_shape pairs = {.rank = 5, .dims = {n->before, blocks, 2, distance, n->after}};
  const ts_shape half = {.rank = 4, .dims = {n->before, blocks, distance, n->after}};
  ts_value_id all;
  TS_TRY(make_reshape(n->m, n->values[i], &pairs, &all));
  TS_TRY(make_slice(n->m, all, 2, (make_range){0, 1, 1}, &n->low[i]));
  TS_TRY(make_slice(n->m, all, 2, (make_range){1, 2, 1}, &n->high[i]));
  TS_TRY(make_reshape(n->m, n->low[i], &half, &n->low[i]));
  return make_reshape(n->m, n->high[i], &half, &n->high[i]);
}

static ts_status join(const network *n, int64_t distance, ts_value_id swap, size_t i) {
  const int64_t blocks = n->padded / (2 * distance);
  const ts_shape one = {.rank = 5, .dims = {n->before, blocks, 1, distance, n->after}};
  const ts_shape whole = {.rank = 3, .dims = {n->before, n->padded, n->after}};
  ts_value_id parts[2];
  TS_TRY(make_select(n->m, swap, n->high[i], n->low[i], &parts[0]));
  TS_TRY(make_select(n->m, swap, n->low[i], n->high[i], &parts[1]));
  for (int k = 0; k < 2; k++) TS_TRY(make_reshape(n->m, parts[k], &one, &parts[k]));
  TS_TRY(make_add(n->m, TS_OP_CONCATENATE, (ts_values){parts, 2}, &(ts_attrs){.axis = 2}, &n->values[i]));
  return make_reshape(n->m, n->values[i], &whole, &n->values[i]);
}

/* Blocks of `size` elements are in ascending order, then in descending order, in turns. */
static ts_status step(const network *n, int64_t size, int64_t distance) {
  ts_value_id swap, at, factor, mask, zero, ascending;
  for (size_t i = 0; i < n->count; i++) TS_TRY(split(n, distance, i));
  TS_TRY(precedes(n, n->high, n->low, &swap));
  const ts_shape half = *make_value_of(n->m, n->low[0])->shape;
  if (size < n->padded) {
    TS_TRY(make_iota(n->m, TS_S32, &half, 1, &at));
    TS_TRY(make_integer_of(n->m, TS_S32, &half, 2 * distance, &factor));
    TS_TRY(make_integer_of(n->m, TS_S32, &half, size, &mask));
    TS_TRY(make_integer_of(n->m, TS_S32, &half, 0, &zero));
    TS_TRY(make_binary(n->m, TS_OP_MULTIPLY, at, factor, &at));
    TS_TRY(make_binary(n->m, TS_OP_AND, at, mask, &at));
    TS_TRY(make_binary(n->m, TS_OP_EQUAL, at, zero, &ascending));
    TS_TRY(make_binary(n->m, TS_OP_EQUAL, swap, ascending, &swap));
  }
  for (size_t i = 0; i < n->count; i++) TS_TRY(join(n, distance, swap, i));
  return TS_SUCCESS;
}

static ts_status finish(const network *n, size_t i) {
  ts_value_id id = n->values[i];
  if (n->padded != n->length) TS_TRY(make_slice(n->m, id, 1, (make_range){0, n->length, 1}, &id));
  TS_TRY(make_reshape(n->m, id, make_operand_of(n->m, i)->shape, &id));
  make_result(n->m, i, id);
  return TS_SUCCESS;
}

static ts_status run_network(network *n) {
  TS_TRY(begin(n));
  for (int64_t size = 2; size <= n->padded; size *= 2)
    for (int64_t distance = size / 2; distance > 0; distance /= 2) TS_TRY(step(n, size, distance));
  for (size_t i = 0; i + 1 < n->count; i++) TS_TRY(finish(n, i));
  return TS_SUCCESS;
}

ts_status make_any_sort(const make_call *m, int32_t axis) {
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  const mlir_region *block = &m->op->regions[0];
  network n = {.m = m, .count = m->op->operand_count + 1, .before = 1, .length = shape->dims[axis], .after = 1};
  if (block->param_count != 2 * m->op->operand_count || block->op_count == 0 ||
      block->ops[block->op_count - 1].operand_count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "its comparator does not take pairs of its operands' elements");
  if (n.length > MOST_ELEMENTS)
    return make_error(m, TS_UNIMPLEMENTED, "by such a comparator at most %d elements are sorted", MOST_ELEMENTS);
  for (int32_t d = 0; d < shape->rank; d++)
    if (d != axis) *(d < axis ? &n.before : &n.after) *= shape->dims[d];
  for (n.padded = 1; n.padded < n.length;) n.padded *= 2;
  TS_TRY(TS_NEW_ARRAY(5 * n.count, &n.values));
  n.low = n.values + n.count;
  n.high = n.low + n.count;
  n.pairs = n.high + n.count;
  ts_status status = TS_SUCCESS;
  if (n.length > 1) {
    status = run_network(&n);
  } else {
    for (size_t i = 0; i < m->op->operand_count; i++) make_result(m, i, m->operands[i].id);
  }
  ts_free(n.values);
  return status;
}
