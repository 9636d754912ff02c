/* Turns a general reduce into a loop over the reduced elements in row-major order: acc = region(acc, x). Where each op
 * of the region is elementwise, acc and x are whole slices; otherwise the elements of the result are computed one after
 * another. For compilers that need no loop it only takes the initial value out of the reduce. */
#include "ir/combiner.h"
#include "pass/normalize.h"

/* The operand as [elements, kept...], or as [elements, lines] when slices cannot be used. */
typedef struct expansion {
  ts_rewrite *rw;
  ts_rules *rules;
  const ts_op *op;
  const ts_region *combine;
  ts_dtype dtype;
  ts_shape kept;           /* of the result */
  ts_shape rows;           /* shape of the operand in that form */
  int64_t elements, lines; /* operand elements for each result element; elements of the result */
} expansion;

/* True when each op of the region may be applied to tensors of one shape instead of scalars. */
static bool is_liftable(const ts_graph *g, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_opcode code = ts_graph_op(g, region->ops.data[i])->code;
    if (!ts_op_is_elementwise(code) && code != TS_OP_CONSTANT) return false;
  }
  return true;
}

/* The combiner that is all of the reduce's region; NULL: there is none. */
static const ts_combiner *combiner_of(const ts_graph *graph, const ts_op *reduce) {
  const ts_region *combine = ts_graph_region(graph, reduce->attrs->reduce.region);
  if (combine->ops.count != 1) return NULL;
  const ts_op *op = ts_graph_op(graph, combine->ops.data[0]);
  const ts_combiner *by = ts_combiner_by(op->code);
  return by && combine->results.data[0] == op->first_result && op->operands[0] != op->operands[1] ? by : NULL;
}

/* The value that changes no other, to the bit: -0 + -0 is -0, and 0 + -0 is not. */
static ts_scalar exact_identity(const ts_combiner *by, ts_dtype type) {
  bool is_sum = by->kind == TS_COMBINE_SUM && !ts_dtype_is_integer(type);
  if (!is_sum) return ts_combiner_identity(by, type);
  return ts_dtype_is_complex(type) ? ts_scalar_complex(type, -0.0, -0.0) : ts_scalar_from_f64(type, -0.0);
}

static bool is_identity(const ts_rewrite *rw, const ts_op *reduce, const ts_combiner *by) {
  ts_dtype type = ts_graph_value(rw->from, reduce->operands[0])->dtype;
  ts_scalar initial;
  return ts_graph_is_constant(rw->to, ts_rewrite_operand(rw, reduce, 1), &initial) &&
         (ts_scalar_same(type, initial, ts_combiner_identity(by, type)) ||
          ts_scalar_same(type, initial, exact_identity(by, type)));
}

static ts_status add(const expansion *e, ts_region_id region, ts_opcode code, ts_values operands, const ts_attrs *attrs,
                     ts_value_id *out) {
  return ts_rules_add(e->rules, region, code, operands, attrs, out);
}

static ts_status add_index(expansion *e, ts_region_id region, int64_t value, ts_value_id *out) {
  return ts_rules_constant(e->rules, region, TS_S64, &ts_shape_scalar, (ts_scalar){.s64 = value}, out);
}

/* Moves the reduced dims to the front and merges them. */
static ts_status make_rows(expansion *e, ts_region_id target, ts_value_id *out) {
  const ts_shape *shape = ts_graph_value(e->rw->from, e->op->operands[0])->shape;
  const ts_dims *axes = &e->op->attrs->reduce.axes;
  bool is_reduced[TS_MAX_RANK] = {0};
  ts_attrs attrs = {0};
  ts_value_id operand = ts_rewrite_operand(e->rw, e->op, 0), moved;
  e->elements = e->lines = 1;
  for (int32_t i = 0; i < axes->rank; i++) {
    is_reduced[axes->dims[i]] = true;
    attrs.axes.dims[attrs.axes.rank++] = axes->dims[i];
    e->elements *= shape->dims[axes->dims[i]];
  }
  e->rows = (ts_shape){.rank = 1, .dims = {e->elements}};
  e->kept = (ts_shape){0};
  for (int32_t d = 0; d < shape->rank; d++) {
    if (is_reduced[d]) continue;
    attrs.axes.dims[attrs.axes.rank++] = d;
    e->kept.dims[e->kept.rank++] = e->rows.dims[e->rows.rank++] = shape->dims[d];
    e->lines *= shape->dims[d];
  }
  if (!is_liftable(e->rw->from, e->combine)) e->rows = (ts_shape){.rank = 2, .dims = {e->elements, e->lines}};
  TS_TRY(add(e, target, TS_OP_TRANSPOSE, (ts_values){&operand, 1}, &attrs, &moved));
  attrs = (ts_attrs){.shape = e->rows};
  return add(e, target, TS_OP_RESHAPE, (ts_values){&moved, 1}, &attrs, out);
}

/* Opens a region of the loop. Its parameters: 0 an index, 1 of the given shape, 2 the rows, and 3 another index with
 * `inner`. */
static ts_status open_region(expansion *e, const ts_shape *shape, bool inner, ts_region_id *region,
                             ts_value_id params[4]) {
  TS_TRY(ts_graph_add_region(e->rw->to, region));
  TS_TRY(ts_graph_add_param(e->rw->to, *region, TS_S64, &ts_shape_scalar, &params[0]));
  TS_TRY(ts_graph_add_param(e->rw->to, *region, e->dtype, shape, &params[1]));
  TS_TRY(ts_graph_add_param(e->rw->to, *region, e->dtype, &e->rows, &params[2]));
  return inner ? ts_graph_add_param(e->rw->to, *region, TS_S64, &ts_shape_scalar, &params[3]) : TS_SUCCESS;
}

static ts_status make_condition(expansion *e, const ts_shape *shape, bool inner, int64_t count, ts_region_id *out) {
  ts_value_id params[4], limit, more;
  TS_TRY(open_region(e, shape, inner, out, params));
  TS_TRY(add_index(e, *out, count, &limit));
  TS_TRY(add(e, *out, TS_OP_LESS, (ts_values){(ts_value_id[]){params[0], limit}, 2}, NULL, &more));
  return ts_graph_set_results(e->rw->to, *out, &more, 1);
}

static ts_status add_one(expansion *e, ts_region_id region, ts_value_id index, ts_value_id *out) {
  ts_value_id one;
  TS_TRY(add_index(e, region, 1, &one));
  return add(e, region, TS_OP_ADD, (ts_values){(ts_value_id[]){index, one}, 2}, NULL, out);
}

/* rows[index, ...], or rows[index, line] */
static ts_status read_row(expansion *e, ts_region_id body, const ts_value_id params[4], bool inner, ts_value_id *out) {
  ts_value_id operands[1 + TS_MAX_RANK] = {params[2], params[0]}, zero, row;
  ts_attrs attrs = {.shape = e->rows};
  attrs.shape.dims[0] = 1;
  TS_TRY(add_index(e, body, 0, &zero));
  for (int32_t d = 1; d < e->rows.rank; d++) operands[1 + d] = zero;
  if (inner) {
    operands[2] = params[3];
    attrs.shape.dims[1] = 1;
  }
  TS_TRY(add(e, body, TS_OP_DYNAMIC_SLICE, (ts_values){operands, 1 + (size_t)e->rows.rank}, &attrs, &row));
  attrs = (ts_attrs){.shape = inner ? (ts_shape){0} : e->kept};
  return add(e, body, TS_OP_RESHAPE, (ts_values){&row, 1}, &attrs, out);
}

/* Adds one op of the combiner, applied to tensors of the result's shape. */
static ts_status lift(expansion *e, ts_region_id body, ts_op_id id) {
  const ts_op *op = ts_graph_op(e->rw->from, id);
  ts_value_id operands[3];
  ts_attrs attrs = ts_op_copy_attrs(op);
  if (op->code == TS_OP_CONSTANT) attrs.constant.shape = e->kept;
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = e->rw->map[op->operands[i]];
  return add(e, body, op->code, (ts_values){operands, op->operand_count}, op->attrs ? &attrs : NULL,
             &e->rw->map[op->first_result]);
}

/* acc = region(acc, x), with x a slice or an element. */
static ts_status make_fold(expansion *e, const ts_shape *shape, bool inner, ts_region_id *out) {
  ts_value_id params[4] = {0}, results[4];
  TS_TRY(open_region(e, shape, inner, out, params));
  e->rw->map[e->combine->params.data[0]] = params[1];
  TS_TRY(read_row(e, *out, params, inner, &e->rw->map[e->combine->params.data[1]]));
  for (size_t i = 0; i < e->combine->ops.count; i++) {
    ts_op_id op = e->combine->ops.data[i];
    TS_TRY(inner ? ts_rewrite_visit(e->rw, op, *out) : lift(e, *out, op));
  }
  TS_TRY(add_one(e, *out, params[0], &results[0]));
  results[1] = e->rw->map[e->combine->results.data[0]];
  results[2] = params[2];
  results[3] = params[3];
  return ts_graph_set_results(e->rw->to, *out, results, inner ? 4 : 3);
}

static ts_status add_loop(expansion *e, ts_region_id target, const ts_shape *shape, bool inner,
                          const ts_value_id initial[4], ts_value_id *out) {
  ts_attrs attrs = {0};
  TS_TRY(make_condition(e, shape, inner, e->elements, &attrs.regions.regions[0]));
  TS_TRY(make_fold(e, shape, inner, &attrs.regions.regions[1]));
  TS_TRY(add(e, target, TS_OP_WHILE, (ts_values){initial, inner ? 4 : 3}, &attrs, out));
  *out += 1;
  return TS_SUCCESS;
}

/* The body of the loop over lines: result[line] = fold of the line. The loop variable holds the initial value at
 * first. */
static ts_status make_line(expansion *e, const ts_shape *lines, ts_region_id *out) {
  ts_value_id params[4], initial[4], acc, folded, update, results[3];
  ts_attrs attrs = {.shape = {.rank = 1, .dims = {1}}};
  TS_TRY(open_region(e, lines, false, out, params));
  TS_TRY(add_index(e, *out, 0, &initial[0]));
  TS_TRY(add(e, *out, TS_OP_DYNAMIC_SLICE, (ts_values){(ts_value_id[]){params[1], params[0]}, 2}, &attrs, &acc));
  TS_TRY(add(e, *out, TS_OP_RESHAPE, (ts_values){&acc, 1}, &(ts_attrs){.shape = {0}}, &initial[1]));
  initial[2] = params[2];
  initial[3] = params[0];
  TS_TRY(add_loop(e, *out, &ts_shape_scalar, true, initial, &folded));
  TS_TRY(add(e, *out, TS_OP_RESHAPE, (ts_values){&folded, 1}, &attrs, &update));
  TS_TRY(
      add(e, *out, TS_OP_PUT_SLICE, (ts_values){(ts_value_id[]){params[1], update, params[0]}, 3}, NULL, &results[1]));
  TS_TRY(add_one(e, *out, params[0], &results[0]));
  results[2] = params[2];
  return ts_graph_set_results(e->rw->to, *out, results, 3);
}

static ts_status fold_lines(expansion *e, ts_region_id target, const ts_value_id initial[3], ts_value_id *out) {
  ts_shape lines = {.rank = 1, .dims = {e->lines}};
  ts_value_id first, folded;
  ts_attrs attrs = {0};
  TS_TRY(make_condition(e, &lines, false, e->lines, &attrs.regions.regions[0]));
  TS_TRY(make_line(e, &lines, &attrs.regions.regions[1]));
  TS_TRY(add(e, target, TS_OP_WHILE, (ts_values){initial, 3}, &attrs, &first));
  folded = first + 1;
  return add(e, target, TS_OP_RESHAPE, (ts_values){&folded, 1}, &(ts_attrs){.shape = e->kept}, out);
}

/* Broadcasts a scalar to the shape. */
static ts_status spread(const expansion *e, ts_region_id target, ts_value_id scalar, const ts_shape *shape,
                        ts_value_id *out) {
  ts_attrs attrs = {.broadcast = {.shape = *shape}};
  *out = scalar;
  return shape->rank == 0 ? TS_SUCCESS : add(e, target, TS_OP_BROADCAST, (ts_values){&scalar, 1}, &attrs, out);
}

static ts_status fold_in_order(ts_rewrite *rw, ts_rules *rules, ts_op_id id, ts_region_id target) {
  expansion e = {.rw = rw, .rules = rules, .op = ts_graph_op(rw->from, id)};
  ts_value_id initial[4], result;
  e.combine = ts_graph_region(rw->from, e.op->attrs->reduce.region);
  e.dtype = ts_graph_value(rw->from, e.op->operands[0])->dtype;
  bool whole = is_liftable(rw->from, e.combine);
  TS_TRY(make_rows(&e, target, &initial[2]));
  TS_TRY(add_index(&e, target, 0, &initial[0]));
  ts_shape lines = {.rank = 1, .dims = {e.lines}};
  bool is_empty = e.elements == 0 || e.lines == 0;
  TS_TRY(spread(&e, target, ts_rewrite_operand(rw, e.op, 1), whole || is_empty ? &e.kept : &lines, &initial[1]));
  if (is_empty) return ts_rewrite_set(rw, id, initial[1]);
  if (whole)
    TS_TRY(add_loop(&e, target, &e.kept, false, initial, &result));
  else
    TS_TRY(fold_lines(&e, target, initial, &result));
  return ts_rewrite_set(rw, id, result);
}

/* A reduce by the combiner, from its identity on. */
static ts_status reduce_from_identity(const expansion *e, const ts_combiner *by, ts_region_id target,
                                      ts_value_id *out) {
  ts_graph *to = e->rw->to;
  ts_value_id params[2], combined, operands[2] = {ts_rewrite_operand(e->rw, e->op, 0)};
  ts_attrs attrs = ts_op_copy_attrs(e->op);
  TS_TRY(ts_rules_constant(e->rules, target, e->dtype, &ts_shape_scalar, exact_identity(by, e->dtype), &operands[1]));
  TS_TRY(ts_graph_add_region(to, &attrs.reduce.region));
  for (int i = 0; i < 2; i++)
    TS_TRY(ts_graph_add_param(to, attrs.reduce.region, e->dtype, &ts_shape_scalar, &params[i]));
  TS_TRY(add(e, attrs.reduce.region, by->op, (ts_values){params, 2}, NULL, &combined));
  TS_TRY(ts_graph_set_results(to, attrs.reduce.region, &combined, 1));
  return add(e, target, TS_OP_REDUCE, (ts_values){operands, 2}, &attrs, out);
}

static ts_status take_initial(ts_rewrite *rw, ts_rules *rules, const ts_combiner *by, ts_op_id id,
                              ts_region_id target) {
  expansion e = {.rw = rw, .rules = rules, .op = ts_graph_op(rw->from, id)};
  const ts_value *x = ts_graph_value(rw->from, e.op->operands[0]),
                 *whole = ts_graph_value(rw->from, e.op->first_result);
  ts_value_id both[2], result;
  if (is_identity(rw, e.op, by)) return ts_rewrite_copy(rw, id, target);
  e.dtype = x->dtype;
  TS_TRY(spread(&e, target, ts_rewrite_operand(rw, e.op, 1), whole->shape, &both[0]));
  if (ts_shape_elements(x->shape) == 0) return ts_rewrite_set(rw, id, both[0]);
  TS_TRY(reduce_from_identity(&e, by, target, &both[1]));
  TS_TRY(add(&e, target, by->op, (ts_values){both, 2}, NULL, &result));
  return ts_rewrite_set(rw, id, result);
}

ts_status ts_expand_visit(ts_rewrite *rw, ts_rules *rules, bool ordered_only, ts_op_id id, ts_region_id target) {
  const ts_combiner *by = ordered_only ? combiner_of(rw->from, ts_graph_op(rw->from, id)) : NULL;
  return by ? take_initial(rw, rules, by, id, target) : fold_in_order(rw, rules, id, target);
}
