/* gather and scatter of any form, by the row-major index of each element: sums of starts and offsets, times strides.
 * Rows of one axis are an op of their own. */
#include "stablehlo/make.h"

#include <string.h>

typedef struct numbers {
  ts_dims window;  /* dims of the result or of the updates that belong to a window */
  ts_dims dropped; /* operand dims that no window has */
  ts_dims batching, index_batching;
  ts_dims starts; /* operand dims that the index vector is of */
  int32_t vector; /* the indices' dim with the vector; its rank: each index is a vector of one */
} numbers;

static ts_status check_axes(const make_call *m, const ts_dims *axes, int32_t rank) {
  uint64_t seen = 0;
  for (int32_t i = 0; i < axes->rank; i++) {
    if (axes->dims[i] < 0 || axes->dims[i] >= rank || seen >> axes->dims[i] & 1)
      return make_error(m, TS_INVALID_ARGUMENT, "its dimension numbers are out of range, or come twice");
    seen |= UINT64_C(1) << axes->dims[i];
  }
  return TS_SUCCESS;
}

static bool has(const ts_dims *axes, int64_t axis) {
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->dims[i] == axis) return true;
  return false;
}

typedef struct ranks {
  int32_t operand, indices, windows; /* windows: of the result, or of the updates */
} ranks;

static ts_status check_numbers(const make_call *m, const numbers *n, ranks r) {
  TS_TRY(check_axes(m, &n->window, r.windows));
  TS_TRY(check_axes(m, &n->dropped, r.operand));
  TS_TRY(check_axes(m, &n->batching, r.operand));
  TS_TRY(check_axes(m, &n->index_batching, r.indices));
  TS_TRY(check_axes(m, &n->starts, r.operand));
  const int32_t batch = r.indices - (n->vector < r.indices);
  for (int32_t i = 0; i < n->index_batching.rank; i++)
    if (n->index_batching.dims[i] == n->vector)
      return make_error(m, TS_INVALID_ARGUMENT, "a batch dim is the vector's");
  for (int32_t i = 0; i < n->batching.rank; i++)
    if (has(&n->dropped, n->batching.dims[i]) || has(&n->starts, n->batching.dims[i]))
      return make_error(m, TS_INVALID_ARGUMENT, "a batch dim has another role, too");
  if (n->vector < 0 || n->vector > r.indices || n->batching.rank != n->index_batching.rank ||
      n->window.rank + batch != r.windows || n->window.rank + n->dropped.rank + n->batching.rank != r.operand)
    return make_error(m, TS_INVALID_ARGUMENT, "its dimension numbers do not agree with its operands");
  return TS_SUCCESS;
}

/* ---- indices */

/* The i-th number of each index vector: a tensor of the batch dims, s64. */
static ts_status index_part(const make_call *m, const numbers *n, int32_t i, ts_value_id *out) {
  const ts_shape *shape = make_operand_of(m, 1)->shape;
  ts_shape batch = {.rank = 0};
  *out = m->operands[1].id;
  if (n->vector < shape->rank) {
    for (int32_t d = 0; d < shape->rank; d++)
      if (d != n->vector) batch.dims[batch.rank++] = shape->dims[d];
    TS_TRY(make_slice(m, *out, n->vector, (make_range){i, i + 1, 1}, out));
    TS_TRY(make_reshape(m, *out, &batch, out));
  }
  if (make_value_of(m, *out)->dtype == TS_U64) { /* numbers that s64 does not have are beyond any dim, too */
    ts_value_id most;
    TS_TRY(make_integer(m, *out, INT64_MAX, &most));
    TS_TRY(make_binary(m, TS_OP_MIN, *out, most, out));
  }
  return make_convert(m, *out, TS_S64, out);
}

static int64_t vector_length(const make_call *m, const numbers *n) {
  const ts_shape *shape = make_operand_of(m, 1)->shape;
  return n->vector < shape->rank ? shape->dims[n->vector] : 1;
}

/* Dims of the windows' tensor outside the windows: the batch dims, in order. */
static ts_dims batch_axes(const numbers *n, int32_t rank) {
  ts_dims axes = {.rank = 0};
  for (int32_t d = 0; d < rank; d++)
    if (!has(&n->window, d)) axes.dims[axes.rank++] = d;
  return axes;
}

/* Operand dims that windows have, in order: the i-th is dim window[i] of the windows' tensor. */
static ts_dims window_axes(const numbers *n, int32_t rank) {
  ts_dims axes = {.rank = 0};
  for (int32_t d = 0; d < rank; d++)
    if (!has(&n->dropped, d) && !has(&n->batching, d)) axes.dims[axes.rank++] = d;
  return axes;
}

typedef struct position {
  const make_call *m;
  const numbers *n;
  const ts_shape *windows; /* of the result, or of the updates */
  const ts_dims *sizes;    /* sizes of a window in each operand dim: gather clamps its indices by them; NULL: scatter
                            * drops */
} position;

/* Where windows begin in an operand dim, for each element of the windows' tensor: an s64 tensor of that shape. Sets
 * `any` to false where it is 0 for all. */
static ts_status dim_start(const position *p, int32_t dim, bool *any, ts_value_id *out) {
  const make_call *m = p->m;
  const ts_shape *operand = make_operand_of(m, 0)->shape;
  const ts_dims batch = batch_axes(p->n, p->windows->rank);
  ts_value_id start, low, high;
  *any = false;
  for (int32_t i = 0; i < p->n->starts.rank; i++) {
    if (p->n->starts.dims[i] != dim) continue;
    TS_TRY(index_part(m, p->n, i, &start));
    if (p->sizes) {
      TS_TRY(make_integer(m, start, 0, &low));
      TS_TRY(make_integer(m, start, operand->dims[dim] - p->sizes->dims[dim], &high));
      TS_TRY(make_add(m, TS_OP_CLAMP, (ts_values){(ts_value_id[]){start, low, high}, 3}, NULL, &start));
    }
    TS_TRY(make_broadcast(m, start, p->windows, &batch, out));
    *any = true;
  }
  for (int32_t i = 0; i < p->n->batching.rank; i++) {
    if (p->n->batching.dims[i] != dim) continue;
    const int64_t at = p->n->index_batching.dims[i], place = at - (p->n->vector < at);
    TS_TRY(make_iota(m, TS_S64, p->windows, (int32_t)batch.dims[place], out));
    *any = true;
  }
  return *any ? TS_SUCCESS : make_integer_of(m, TS_S64, p->windows, 0, out);
}

/* The dim of the windows' tensor that belongs to an operand dim; -1: windows have one element there. */
static int32_t window_dim(const position *p, int32_t dim) {
  const ts_dims axes = window_axes(p->n, make_operand_of(p->m, 0)->shape->rank);
  for (int32_t i = 0; i < axes.rank; i++)
    if (axes.dims[i] == dim) return (int32_t)p->n->window.dims[i];
  return -1;
}

/* Whether all of a scatter's window lies in the operand, in one dim, and in the dims before it. */
static ts_status test_window(const position *p, int32_t dim, ts_value_id start, ts_value_id *inout_inside) {
  const make_call *m = p->m;
  const int32_t along = window_dim(p, dim);
  const int64_t size = along < 0 ? 1 : p->windows->dims[along];
  for (int side = 0; side < 2; side++) {
    ts_value_id test;
    const int64_t end = make_operand_of(m, 0)->shape->dims[dim] - size + 1;
    TS_TRY(make_with_integer(m, side ? TS_OP_LESS : TS_OP_GREATER_EQUAL, start, side ? end : 0, &test));
    if (*inout_inside == TS_NO_ID)
      *inout_inside = test;
    else
      TS_TRY(make_binary(m, TS_OP_AND, *inout_inside, test, inout_inside));
  }
  return TS_SUCCESS;
}

/* The row-major index of each element, and for scatter -1 where a part of its window is out of bounds. */
static ts_status flat_index(const position *p, ts_value_id *out) {
  const make_call *m = p->m;
  const ts_shape *operand = make_operand_of(m, 0)->shape;
  int64_t strides[TS_MAX_RANK];
  ts_value_id index, inside = TS_NO_ID, outside, offset;
  bool any;
  ts_shape_strides(operand, strides);
  TS_TRY(make_integer_of(m, TS_S64, p->windows, 0, out));
  for (int32_t d = 0; d < operand->rank; d++) {
    const int32_t along = window_dim(p, d);
    TS_TRY(dim_start(p, d, &any, &index));
    if (any && !p->sizes) TS_TRY(test_window(p, d, index, &inside));
    if (along >= 0) {
      TS_TRY(make_iota(m, TS_S64, p->windows, along, &offset));
      TS_TRY(make_binary(m, TS_OP_ADD, index, offset, &index));
    }
    TS_TRY(make_with_integer(m, TS_OP_MULTIPLY, index, strides[d], &index));
    TS_TRY(make_binary(m, TS_OP_ADD, *out, index, out));
  }
  if (inside == TS_NO_ID) return TS_SUCCESS;
  TS_TRY(make_integer(m, *out, -1, &outside));
  return make_select(m, inside, *out, outside, out);
}

/* ---- gather */

/* Whole rows of one axis: their indices' axes stand where the result has them, in any order. */
static bool is_take(const make_call *m, const numbers *n, const ts_dims *sizes) {
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  if (n->starts.rank != 1 || n->dropped.rank != 1 || n->batching.rank || n->dropped.dims[0] != n->starts.dims[0])
    return false;
  for (int32_t d = 0; d < shape->rank; d++)
    if (sizes->dims[d] != (d == n->starts.dims[0] ? 1 : shape->dims[d])) return false;
  for (int32_t i = 1; i < n->window.rank; i++)
    if (n->window.dims[i] < n->window.dims[i - 1]) return false;
  return shape->dims[n->starts.dims[0]] > 0;
}

static ts_status take(const make_call *m, const numbers *n, ts_value_id *out) {
  const int32_t axis = (int32_t)n->starts.dims[0], rank = m->op->types.data[0].shape->rank;
  const ts_dims batch = batch_axes(n, rank);
  ts_attrs attrs = {0};
  ts_value_id index;
  ts_dims order = {.rank = rank};
  TS_TRY(index_part(m, n, 0, &index));
  attrs.axis = axis;
  TS_TRY(make_add(m, TS_OP_TAKE, (ts_values){(ts_value_id[]){m->operands[0].id, index}, 2}, &attrs, out));
  /* it has dims before the axis, then the batch, then dims after the axis */
  for (int32_t i = 0; i < batch.rank; i++) order.dims[batch.dims[i]] = axis + i;
  for (int32_t i = 0; i < n->window.rank; i++) order.dims[n->window.dims[i]] = i < axis ? i : i + batch.rank;
  return make_transpose(m, *out, &order, out);
}

/* One element along an axis for each index: the operand and the indices agree in all other dims, in order. */
static bool is_take_along(const make_call *m, const numbers *n) {
  const int32_t rank = make_operand_of(m, 0)->shape->rank;
  const int32_t batch = make_operand_of(m, 1)->shape->rank - (n->vector < make_operand_of(m, 1)->shape->rank);
  if (n->starts.rank != 1 || n->dropped.rank != 1 || n->starts.dims[0] != n->dropped.dims[0] || n->window.rank ||
      n->batching.rank != rank - 1 || batch != rank)
    return false;
  for (int32_t i = 0; i < n->batching.rank; i++) {
    const int64_t at = n->index_batching.dims[i];
    if (at - (n->vector < at) != n->batching.dims[i]) return false;
  }
  return true;
}

static ts_status take_along(const make_call *m, const numbers *n, ts_value_id *out) {
  ts_value_id index;
  TS_TRY(index_part(m, n, 0, &index));
  return make_take_along(m, m->operands[0].id, index, (int32_t)n->starts.dims[0], out);
}

static ts_status flat(const make_call *m, size_t i, ts_value_id *out) {
  ts_shape shape = {.rank = 1, .dims = {ts_shape_elements(make_operand_of(m, i)->shape)}};
  return make_reshape(m, m->operands[i].id, &shape, out);
}

/* Sizes of windows, and of the batch as the indices have it. */
static ts_shape gathered_shape(const make_call *m, const numbers *n, const ts_dims *sizes) {
  const ts_shape *indices = make_operand_of(m, 1)->shape;
  ts_shape shape = {.rank = m->op->types.data[0].shape->rank};
  const ts_dims axes = window_axes(n, make_operand_of(m, 0)->shape->rank), batch = batch_axes(n, shape.rank);
  int32_t at = 0;
  for (int32_t i = 0; i < axes.rank; i++) shape.dims[n->window.dims[i]] = sizes->dims[axes.dims[i]];
  for (int32_t d = 0; d < indices->rank; d++)
    if (d != n->vector) shape.dims[batch.dims[at++]] = indices->dims[d];
  return shape;
}

static ts_status gather_elements(const make_call *m, const numbers *n, const ts_dims *sizes, ts_value_id *out) {
  ts_attrs attrs = {0};
  ts_value_id index, operand;
  const ts_shape shape = gathered_shape(m, n, sizes);
  TS_TRY(ts_shape_check(&shape, TS_S64));
  TS_TRY(flat_index(&(position){m, n, &shape, sizes}, &index));
  TS_TRY(flat(m, 0, &operand));
  return make_add(m, TS_OP_TAKE, (ts_values){(ts_value_id[]){operand, index}, 2}, &attrs, out);
}

static ts_status vector_of(const make_call *m, const mlir_attr *dict, numbers *out) {
  const mlir_attr *vector = mlir_find_attr(dict->items, dict->count, "index_vector_dim");
  int64_t dim = 0;
  if (vector) TS_TRY(mlir_attr_int(vector, &dim));
  out->vector = dim < 0 || dim > TS_MAX_RANK ? -1 : (int32_t)dim;
  if (make_operand_of(m, 1)->shape->rank < out->vector || out->vector < 0 || vector_length(m, out) != out->starts.rank)
    return make_error(m, TS_INVALID_ARGUMENT, "its index vectors have %lld numbers, expected %d",
                      out->vector < 0 ? -1LL : (long long)vector_length(m, out), out->starts.rank);
  return TS_SUCCESS;
}

ts_status make_in_gather(const make_call *m) {
  const mlir_attr *dict = make_attr(m, "dimension_numbers");
  numbers n = {0};
  ts_dims sizes;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 2));
  if (!dict || dict->kind != MLIR_ATTR_DICT)
    return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute dimension_numbers");
  TS_TRY(make_dict_ints(dict, "offset_dims", &n.window));
  TS_TRY(make_dict_ints(dict, "collapsed_slice_dims", &n.dropped));
  TS_TRY(make_dict_ints(dict, "operand_batching_dims", &n.batching));
  TS_TRY(make_dict_ints(dict, "start_indices_batching_dims", &n.index_batching));
  TS_TRY(make_dict_ints(dict, "start_index_map", &n.starts));
  TS_TRY(vector_of(m, dict, &n));
  TS_TRY(make_attr_ints(m, "slice_sizes", &sizes));
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  TS_TRY(
      check_numbers(m, &n, (ranks){shape->rank, make_operand_of(m, 1)->shape->rank, m->op->types.data[0].shape->rank}));
  if (sizes.rank != shape->rank) return make_error(m, TS_INVALID_ARGUMENT, "expected a size for each dim");
  for (int32_t d = 0; d < shape->rank; d++) {
    const bool single = has(&n.dropped, d) || has(&n.batching, d);
    if (sizes.dims[d] < 0 || sizes.dims[d] > shape->dims[d] || (single && sizes.dims[d] > 1))
      return make_error(m, TS_INVALID_ARGUMENT, "the size of a window in dim %d is out of range", d);
  }
  if (is_take(m, &n, &sizes))
    TS_TRY(take(m, &n, &id));
  else if (is_take_along(m, &n))
    TS_TRY(take_along(m, &n, &id));
  else
    TS_TRY(gather_elements(m, &n, &sizes, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- scatter */

/* Whole rows: the index vector is of the dropped dims, and a window has all of the others. */
static bool is_rows(const make_call *m, const numbers *n) {
  const ts_shape *operand = make_operand_of(m, 0)->shape, *updates = make_operand_of(m, 2)->shape;
  const ts_dims axes = window_axes(n, operand->rank);
  if (n->batching.rank || n->starts.rank != n->dropped.rank) return false;
  for (int32_t i = 0; i < n->starts.rank; i++)
    if (!has(&n->dropped, n->starts.dims[i]) || (i && n->starts.dims[i] < n->starts.dims[i - 1])) return false;
  for (int32_t i = 0; i < axes.rank; i++)
    if (updates->dims[n->window.dims[i]] != operand->dims[axes.dims[i]]) return false;
  for (int32_t i = 1; i < n->window.rank; i++)
    if (n->window.dims[i] < n->window.dims[i - 1]) return false;
  return n->starts.rank > 0;
}

/* Updates as {rows, dims of a window}, indices as {rows, axes}. */
static ts_status scatter_rows(const make_call *m, const numbers *n, ts_opcode code, ts_value_id *out) {
  const ts_shape *shape = make_operand_of(m, 2)->shape, *vectors = make_operand_of(m, 1)->shape;
  const ts_dims batch = batch_axes(n, shape->rank);
  ts_shape rows = {.rank = 1 + n->window.rank, .dims = {1}}, table = {.rank = 2, .dims = {1, n->starts.rank}};
  ts_dims order = {.rank = 0}, last = {.rank = 0};
  ts_attrs attrs = {0};
  ts_value_id updates = m->operands[2].id, indices = m->operands[1].id;
  for (int32_t i = 0; i < batch.rank; i++) {
    order.dims[order.rank++] = batch.dims[i];
    rows.dims[0] *= shape->dims[batch.dims[i]];
  }
  for (int32_t i = 0; i < n->window.rank; i++) {
    order.dims[order.rank++] = n->window.dims[i];
    rows.dims[1 + i] = shape->dims[n->window.dims[i]];
  }
  for (int32_t d = 0; d < vectors->rank; d++)
    if (d != n->vector) last.dims[last.rank++] = d;
  if (n->vector < vectors->rank) last.dims[last.rank++] = n->vector;
  table.dims[0] = rows.dims[0];
  TS_TRY(make_transpose(m, updates, &order, &updates));
  TS_TRY(make_reshape(m, updates, &rows, &updates));
  TS_TRY(make_transpose(m, indices, &last, &indices));
  TS_TRY(make_reshape(m, indices, &table, &indices));
  ts_shape_copy(&attrs.axes, &n->starts);
  return make_add(m, code, (ts_values){(ts_value_id[]){m->operands[0].id, indices, updates}, 3}, &attrs, out);
}

static ts_status scatter_elements(const make_call *m, const numbers *n, ts_opcode code, ts_value_id *out) {
  const ts_shape *updates_shape = make_operand_of(m, 2)->shape;
  ts_shape table = {.rank = 2, .dims = {ts_shape_elements(updates_shape), 1}};
  ts_attrs attrs = {0};
  ts_value_id operand, updates, index;
  TS_TRY(flat_index(&(position){m, n, updates_shape, NULL}, &index));
  TS_TRY(make_reshape(m, index, &table, &index));
  TS_TRY(flat(m, 0, &operand));
  TS_TRY(flat(m, 2, &updates));
  attrs.axes = (ts_dims){.rank = 1, .dims = {0}};
  TS_TRY(make_add(m, code, (ts_values){(ts_value_id[]){operand, index, updates}, 3}, &attrs, out));
  return make_reshape(m, *out, make_operand_of(m, 0)->shape, out);
}

/* ---- scatter with any region: a loop over the updates, in order */

/* The state of the loop: parameters of its regions. */
enum { COUNTER, TARGET, INDEX, UPDATES, STATES };

typedef struct update_loop {
  const make_call *m;
  make_call inner; /* whose region is the body */
  ts_value_id state[STATES];
  ts_region_id combine;
} update_loop;

static ts_status add_state(const update_loop *l, ts_region_id region, const ts_value_id *like, ts_value_id *out) {
  for (int i = 0; i < STATES; i++) {
    const ts_value value = *make_value_of(l->m, like[i]);
    TS_TRY(ts_graph_add_param(l->m->r->graph, region, value.dtype, value.shape, &out[i]));
  }
  return TS_SUCCESS;
}

/* The element of a line at an index, as a scalar. */
static ts_status element_at(const make_call *m, ts_value_id line, ts_value_id at, ts_value_id *out) {
  ts_attrs attrs = {.shape = {.rank = 1, .dims = {1}}};
  TS_TRY(make_add(m, TS_OP_DYNAMIC_SLICE, (ts_values){(ts_value_id[]){line, at}, 2}, &attrs, out));
  return make_reshape(m, *out, &ts_shape_scalar, out);
}

/* new[i] = inside ? combine(old[i], update) : old[i]. An index below 0 is out of bounds. */
static ts_status update_one(const update_loop *l, const ts_value_id *p, ts_value_id *out_target) {
  const make_call *m = &l->inner;
  const ts_shape one = {.rank = 1, .dims = {1}};
  ts_attrs call = {.regions = {.regions = {l->combine, TS_NO_ID}}};
  ts_value_id at, update, old, made, zero, inside;
  TS_TRY(element_at(m, p[INDEX], p[COUNTER], &at));
  TS_TRY(element_at(m, p[UPDATES], p[COUNTER], &update));
  TS_TRY(make_integer(m, at, 0, &zero));
  TS_TRY(make_binary(m, TS_OP_GREATER_EQUAL, at, zero, &inside));
  TS_TRY(make_binary(m, TS_OP_MAX, at, zero, &at));
  TS_TRY(element_at(m, p[TARGET], at, &old));
  TS_TRY(make_add(m, TS_OP_CALL, (ts_values){(ts_value_id[]){old, update}, 2}, &call, &made));
  TS_TRY(make_select(m, inside, made, old, &made));
  TS_TRY(make_reshape(m, made, &one, &made));
  return make_add(m, TS_OP_PUT_SLICE, (ts_values){(ts_value_id[]){p[TARGET], made, at}, 3}, NULL, out_target);
}

static ts_status loop_condition(update_loop *l, int64_t count, ts_region_id *out) {
  ts_value_id params[STATES], end;
  TS_TRY(ts_graph_add_region(l->m->r->graph, out));
  TS_TRY(add_state(l, *out, l->state, params));
  l->inner.region = *out;
  TS_TRY(make_with_integer(&l->inner, TS_OP_LESS, params[COUNTER], count, &end));
  return ts_graph_set_results(l->m->r->graph, *out, &end, 1);
}

static ts_status loop_body(update_loop *l, ts_region_id *out) {
  ts_value_id params[STATES];
  TS_TRY(ts_graph_add_region(l->m->r->graph, out));
  TS_TRY(add_state(l, *out, l->state, params));
  l->inner.region = *out;
  TS_TRY(make_combine(&l->inner, &l->combine));
  TS_TRY(update_one(l, params, &params[TARGET]));
  TS_TRY(make_with_integer(&l->inner, TS_OP_ADD, params[COUNTER], 1, &params[COUNTER]));
  return ts_graph_set_results(l->m->r->graph, *out, params, STATES);
}

static ts_status scatter_any(const make_call *m, const numbers *n, ts_value_id *out) {
  update_loop l = {.m = m, .inner = *m};
  const ts_shape *updates = make_operand_of(m, 2)->shape;
  const int64_t count = ts_shape_elements(updates);
  ts_shape line = {.rank = 1, .dims = {count}};
  ts_attrs attrs = {0};
  ts_value_id first;
  *out = m->operands[0].id;
  if (count == 0 || ts_shape_elements(make_operand_of(m, 0)->shape) == 0) return TS_SUCCESS;
  TS_TRY(make_integer_of(m, TS_S64, &ts_shape_scalar, 0, &l.state[COUNTER]));
  TS_TRY(flat(m, 0, &l.state[TARGET]));
  TS_TRY(flat_index(&(position){m, n, updates, NULL}, &l.state[INDEX]));
  TS_TRY(make_reshape(m, l.state[INDEX], &line, &l.state[INDEX]));
  TS_TRY(flat(m, 2, &l.state[UPDATES]));
  TS_TRY(loop_condition(&l, count, &attrs.regions.regions[0]));
  TS_TRY(loop_body(&l, &attrs.regions.regions[1]));
  TS_TRY(make_add(m, TS_OP_WHILE, (ts_values){l.state, STATES}, &attrs, &first));
  return make_reshape(m, first + TARGET, make_operand_of(m, 0)->shape, out);
}

/* The op with the region's effect on an element and its update; TS_OP_COUNT without one. */
static ts_status scatter_code(const make_call *m, ts_opcode *out) {
  ts_text text = {0};
  ts_status status = make_signature(m, &m->op->regions[0], &text);
  const char *what = text.data ? text.data : "";
  *out = TS_OP_COUNT;
  if (strcmp(what, "return 1;") == 0) *out = TS_OP_INDEXED_PUT;
  if (strcmp(what, "add 0 1;return 2;") == 0 || strcmp(what, "add 1 0;return 2;") == 0) *out = TS_OP_INDEXED_ADD;
  if (m->operands[0].is_bool && *out == TS_OP_INDEXED_ADD) *out = TS_OP_COUNT;
  ts_text_deinit(&text);
  return status;
}

static ts_status check_windows(const make_call *m, const numbers *n) {
  const ts_shape *operand = make_operand_of(m, 0)->shape, *updates = make_operand_of(m, 2)->shape;
  const ts_dims axes = window_axes(n, operand->rank);
  for (int32_t i = 0; i < axes.rank; i++)
    if (updates->dims[n->window.dims[i]] > operand->dims[axes.dims[i]])
      return make_error(m, TS_INVALID_ARGUMENT, "a window is longer than dim %d of the operand", (int)axes.dims[i]);
  return TS_SUCCESS;
}

ts_status make_in_scatter(const make_call *m) {
  const mlir_attr *dict = make_attr(m, "scatter_dimension_numbers");
  numbers n = {0};
  ts_opcode code;
  ts_value_id id;
  if (m->op->operand_count != 3) return make_error(m, TS_UNIMPLEMENTED, "scatters of several operands cannot be read");
  TS_TRY(make_count_operands(m, 3));
  if (!dict || dict->kind != MLIR_ATTR_DICT || m->op->region_count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute scatter_dimension_numbers, and a region");
  TS_TRY(make_dict_ints(dict, "update_window_dims", &n.window));
  TS_TRY(make_dict_ints(dict, "inserted_window_dims", &n.dropped));
  TS_TRY(make_dict_ints(dict, "input_batching_dims", &n.batching));
  TS_TRY(make_dict_ints(dict, "scatter_indices_batching_dims", &n.index_batching));
  TS_TRY(make_dict_ints(dict, "scatter_dims_to_operand_dims", &n.starts));
  TS_TRY(vector_of(m, dict, &n));
  TS_TRY(check_numbers(m, &n,
                       (ranks){make_operand_of(m, 0)->shape->rank, make_operand_of(m, 1)->shape->rank,
                               make_operand_of(m, 2)->shape->rank}));
  TS_TRY(check_windows(m, &n));
  TS_TRY(scatter_code(m, &code));
  if (code == TS_OP_COUNT)
    TS_TRY(scatter_any(m, &n, &id));
  else if (is_rows(m, &n))
    TS_TRY(scatter_rows(m, &n, code, &id));
  else
    TS_TRY(scatter_elements(m, &n, code, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}
