/* A general reduce becomes a loop over the reduced elements in row-major order: acc = region(acc, x), the region's
 * scalar ops on whole slices where that means the same. Regions that hold regions are left to the interpreter. */
#include "pass/normalize.h"

/* The operand as [elements, kept...], the loop's carried values, and what the body knows. */
typedef struct expansion {
  ts_rewrite *rw;
  ts_rules *rules;
  const ts_op *op;
  const ts_region *combine;
  ts_shape kept; /* of the result */
  ts_shape rows; /* [elements, kept...] */
  int64_t elements;
} expansion;

/* Each op of the region must mean the same when its operands are tensors of one shape. */
static bool is_liftable(const ts_graph *g, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_opcode code = ts_graph_op(g, region->ops.data[i])->code;
    if (!ts_op_is_elementwise(code) && code != TS_OP_CONSTANT) return false;
  }
  return true;
}

static ts_status add(expansion *e, ts_region_id region, ts_opcode code, const ts_value_id *operands, size_t count,
                     const ts_attrs *attrs, ts_value_id *out) {
  return ts_rules_add(e->rules, region, code, operands, count, attrs, out);
}

static ts_status add_index(expansion *e, ts_region_id region, int64_t value, ts_value_id *out) {
  return ts_rules_constant(e->rules, region, TS_S64, &(ts_shape){0}, (ts_scalar){.s64 = value}, out);
}

/* Reduced dims first, as one. */
static ts_status make_rows(expansion *e, ts_region_id target, ts_value_id *out) {
  const ts_shape *shape = &ts_graph_value(e->rw->from, e->op->operands[0])->shape;
  const ts_dims *axes = &e->op->attrs->reduce.axes;
  bool goes[TS_MAX_RANK] = {0};
  ts_attrs attrs = {0};
  ts_value_id operand = ts_rewrite_operand(e->rw, e->op, 0), moved;
  e->elements = 1;
  for (int32_t i = 0; i < axes->rank; i++) {
    goes[axes->dims[i]] = true;
    attrs.axes.dims[attrs.axes.rank++] = axes->dims[i];
    e->elements *= shape->dims[axes->dims[i]];
  }
  e->rows = (ts_shape){.rank = 1, .dims = {e->elements}};
  e->kept = (ts_shape){0};
  for (int32_t d = 0; d < shape->rank; d++) {
    if (goes[d]) continue;
    attrs.axes.dims[attrs.axes.rank++] = d;
    e->kept.dims[e->kept.rank++] = e->rows.dims[e->rows.rank++] = shape->dims[d];
  }
  TS_TRY(add(e, target, TS_OP_TRANSPOSE, &operand, 1, &attrs, &moved));
  attrs = (ts_attrs){.shape = e->rows};
  return add(e, target, TS_OP_RESHAPE, &moved, 1, &attrs, out);
}

/* Both regions carry the index, the accumulator and the rows. */
static ts_status open_region(expansion *e, ts_region_id *region, ts_value_id params[3]) {
  ts_dtype dtype = ts_graph_value(e->rw->from, e->op->operands[0])->dtype;
  TS_TRY(ts_graph_add_region(e->rw->to, region));
  TS_TRY(ts_graph_add_param(e->rw->to, *region, TS_S64, &(ts_shape){0}, &params[0]));
  TS_TRY(ts_graph_add_param(e->rw->to, *region, dtype, &e->kept, &params[1]));
  return ts_graph_add_param(e->rw->to, *region, dtype, &e->rows, &params[2]);
}

static ts_status make_condition(expansion *e, ts_region_id *out) {
  ts_value_id params[3], limit, more;
  TS_TRY(open_region(e, out, params));
  TS_TRY(add_index(e, *out, e->elements, &limit));
  TS_TRY(add(e, *out, TS_OP_LESS, (ts_value_id[]){params[0], limit}, 2, NULL, &more));
  return ts_graph_set_results(e->rw->to, *out, &more, 1);
}

/* rows[index, ...] */
static ts_status read_row(expansion *e, ts_region_id body, const ts_value_id params[3], ts_value_id *out) {
  ts_value_id operands[1 + TS_MAX_RANK] = {params[2], params[0]}, zero, row;
  ts_attrs attrs = {.shape = e->rows};
  attrs.shape.dims[0] = 1;
  TS_TRY(add_index(e, body, 0, &zero));
  for (int32_t d = 1; d < e->rows.rank; d++) operands[1 + d] = zero;
  TS_TRY(add(e, body, TS_OP_DYNAMIC_SLICE, operands, 1 + (size_t)e->rows.rank, &attrs, &row));
  attrs = (ts_attrs){.shape = e->kept};
  return add(e, body, TS_OP_RESHAPE, &row, 1, &attrs, out);
}

/* One op of the combiner, on tensors of the result's shape. */
static ts_status lift(expansion *e, ts_region_id body, ts_op_id id) {
  const ts_op *op = ts_graph_op(e->rw->from, id);
  ts_value_id operands[3];
  ts_attrs attrs = ts_op_copy_attrs(op);
  if (op->code == TS_OP_CONSTANT) attrs.constant.shape = e->kept;
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = e->rw->map[op->operands[i]];
  return add(e, body, op->code, operands, op->operand_count, op->attrs ? &attrs : NULL, &e->rw->map[op->first_result]);
}

static ts_status make_body(expansion *e, ts_region_id *out) {
  ts_value_id params[3], one, results[3];
  TS_TRY(open_region(e, out, params));
  e->rw->map[e->combine->params.data[0]] = params[1];
  TS_TRY(read_row(e, *out, params, &e->rw->map[e->combine->params.data[1]]));
  for (size_t i = 0; i < e->combine->ops.count; i++) TS_TRY(lift(e, *out, e->combine->ops.data[i]));
  TS_TRY(add_index(e, *out, 1, &one));
  TS_TRY(add(e, *out, TS_OP_ADD, (ts_value_id[]){params[0], one}, 2, NULL, &results[0]));
  results[1] = e->rw->map[e->combine->results.data[0]];
  results[2] = params[2];
  return ts_graph_set_results(e->rw->to, *out, results, 3);
}

/* A scalar in every element of the result. */
static ts_status spread(expansion *e, ts_region_id target, ts_value_id scalar, ts_value_id *out) {
  ts_attrs attrs = {.broadcast = {.shape = e->kept}};
  *out = scalar;
  return e->kept.rank == 0 ? TS_SUCCESS : add(e, target, TS_OP_BROADCAST, &scalar, 1, &attrs, out);
}

static ts_status expand(expansion *e, ts_region_id target, ts_value_id *out) {
  ts_value_id initial[3], first;
  ts_attrs attrs = {0};
  TS_TRY(make_rows(e, target, &initial[2]));
  TS_TRY(add_index(e, target, 0, &initial[0]));
  TS_TRY(spread(e, target, ts_rewrite_operand(e->rw, e->op, 1), &initial[1]));
  *out = initial[1];
  if (e->elements == 0) return TS_SUCCESS;
  TS_TRY(make_condition(e, &attrs.regions.regions[0]));
  TS_TRY(make_body(e, &attrs.regions.regions[1]));
  TS_TRY(add(e, target, TS_OP_WHILE, initial, 3, &attrs, &first));
  *out = first + 1;
  return TS_SUCCESS;
}

ts_status ts_expand_visit(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target, bool *out_done) {
  expansion e = {.rw = rw, .rules = rules, .op = ts_graph_op(rw->from, id)};
  e.combine = ts_graph_region(rw->from, e.op->attrs->reduce.region);
  *out_done = is_liftable(rw->from, e.combine);
  return *out_done ? expand(&e, target, &rw->map[e.op->first_result]) : TS_SUCCESS;
}
