/* A walk over the values in the order of their ids, which is the order of their definitions. Regions are walked again
 * at the op that holds them, because their parameters are known only then; sets only grow. */
#include "shard/varying.h"

typedef struct walk {
  ts_varying *v;
  const ts_graph *graph;
} walk;

static void walk_region(const walk *w, ts_region_id id);

void ts_varying_deinit(ts_varying *v) { TS_VEC_FREE(&v->values); }

ts_axis_set ts_varying_of(const ts_varying *v, ts_value_id value) {
  return value < v->values.count ? v->values.data[value].axes : 0;
}

void ts_varying_add(ts_varying *v, ts_value_id value, ts_axis_set axes) { v->values.data[value].axes |= axes; }

static ts_axis_set set_of(const ts_dims *axes) {
  ts_axis_set set = 0;
  for (int32_t i = 0; i < axes->rank; i++) set |= (ts_axis_set)(1u << axes->dims[i]);
  return set;
}

static ts_axis_set cuts_of(const ts_sharding *sharding) {
  ts_axis_set set = 0;
  for (int32_t i = 0; sharding && i < sharding->count; i++) set |= (ts_axis_set)(1u << sharding->cuts[i].axis);
  return set;
}

static bool is_coordinates(const walk *w, ts_value_id id) { return w->v->values.data[id].coordinates; }

/* ---- ops ---- */

static ts_axis_set without(ts_axis_set axes, const ts_dims *removed) { return axes & (ts_axis_set)~set_of(removed); }

static ts_axis_set of_collective(const ts_op *op, ts_axis_set axes) {
  const ts_attrs *attrs = op->attrs;
  switch ((ts_ops_COLLECTIVE)op->code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR: return without(axes, &attrs->axes);
  case TS_OP_ALL_GATHER: return without(axes, &attrs->along.axes);
  case TS_OP_COLLECTIVE_BROADCAST: return without(axes, &attrs->rooted.axes);
  case TS_OP_REDUCE_SCATTER: return axes | set_of(&attrs->along.axes);
  case TS_OP_ALL_TO_ALL: return axes | set_of(&attrs->exchange.axes);
  case TS_OP_COLLECTIVE_PERMUTE: return axes | set_of(&attrs->permute.axes);
  case TS_OP_BARRIER:
  case TS_OP_SHARDING_CONSTRAINT: return axes;
  }
  return axes;
}

/* Of a slice of the coordinates: those axes. */
static ts_axis_set of_slice(const ts_attrs *attrs) {
  ts_axis_set set = 0;
  for (int64_t i = attrs->slice.start.dims[0]; i < attrs->slice.limit.dims[0]; i += attrs->slice.stride.dims[0])
    set |= (ts_axis_set)(1u << i);
  return set;
}

static ts_axis_set of_operands(const walk *w, const ts_op *op) {
  ts_axis_set set = 0;
  for (uint32_t i = 0; i < op->operand_count; i++) set |= ts_varying_of(w->v, op->operands[i]);
  return set;
}

static void add_to_results(const walk *w, const ts_op *op, ts_axis_set axes) {
  for (uint32_t i = 0; i < op->result_count; i++) ts_varying_add(w->v, op->first_result + i, axes);
}

static void walk_plain(const walk *w, const ts_op *op) {
  bool indexes = op->code == TS_OP_SLICE && is_coordinates(w, op->operands[0]);
  add_to_results(w, op, indexes ? of_slice(op->attrs) : of_operands(w, op));
}

static void walk_collective(const walk *w, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    ts_varying_add(w->v, op->first_result + i, of_collective(op, ts_varying_of(w->v, op->operands[i])));
}

/* ---- regions ---- */

/* Whether the set grew. */
static bool join(const walk *w, ts_value_id to, ts_value_id from) {
  ts_varying_value *target = &w->v->values.data[to];
  ts_axis_set axes = w->v->values.data[from].axes;
  bool grows = axes & ~target->axes;
  target->axes |= axes;
  return grows;
}

static void set_param(const walk *w, ts_value_id param, ts_value_id value) {
  (void)join(w, param, value);
  w->v->values.data[param].coordinates = is_coordinates(w, value);
}

static void walk_call(const walk *w, ts_region_id id, const ts_value_id *args) {
  const ts_region *region = ts_graph_region(w->graph, id);
  for (size_t i = 0; i < region->params.count; i++) set_param(w, region->params.data[i], args[i]);
  walk_region(w, id);
}

static void add_results_of(const walk *w, const ts_op *op, ts_region_id id) {
  const ts_region *region = ts_graph_region(w->graph, id);
  for (uint32_t i = 0; i < op->result_count; i++) (void)join(w, op->first_result + i, region->results.data[i]);
}

/* The results stand for the loop variables at any time. The coordinates are a variable that the body hands on. */
static void enter_loop(const walk *w, const ts_op *op, ts_region_id id) {
  const ts_region *region = ts_graph_region(w->graph, id),
                  *body = ts_graph_region(w->graph, op->attrs->regions.regions[1]);
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_value_id param = region->params.data[i];
    (void)join(w, param, op->first_result + i);
    w->v->values.data[param].coordinates =
        is_coordinates(w, op->operands[i]) && body->results.data[i] == body->params.data[i];
  }
  walk_region(w, id);
}

static bool walk_iteration(const walk *w, const ts_op *op) {
  ts_region_id test = op->attrs->regions.regions[0], body = op->attrs->regions.regions[1];
  bool grows = false;
  enter_loop(w, op, test);
  enter_loop(w, op, body);
  for (uint32_t i = 0; i < op->result_count; i++) {
    grows |= join(w, op->first_result + i, ts_graph_region(w->graph, body)->results.data[i]);
    grows |= join(w, op->first_result + i, ts_graph_region(w->graph, test)->results.data[0]);
  }
  return grows;
}

static void walk_while(const walk *w, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) (void)join(w, op->first_result + i, op->operands[i]);
  while (walk_iteration(w, op)) continue;
}

static void walk_cond(const walk *w, const ts_op *op) {
  for (int branch = 0; branch < 2; branch++) {
    walk_call(w, op->attrs->regions.regions[branch], op->operands + 1);
    add_results_of(w, op, op->attrs->regions.regions[branch]);
  }
  add_to_results(w, op, ts_varying_of(w->v, op->operands[0]));
}

static void walk_nested(const walk *w, const ts_op *op, ts_region_id region) {
  walk_call(w, region, op->operands);
  add_results_of(w, op, region);
}

static void walk_control(const walk *w, const ts_op *op) {
  switch ((ts_ops_CONTROL)op->code) {
  case TS_OP_WHILE: walk_while(w, op); return;
  case TS_OP_COND: walk_cond(w, op); return;
  case TS_OP_CALL: walk_nested(w, op, op->attrs->regions.regions[0]); return;
  case TS_OP_FUSION: walk_nested(w, op, op->attrs->fusion.region); return;
  case TS_OP_CALLBACK: add_to_results(w, op, (ts_axis_set)~0u); return;
  case TS_OP_CUSTOM_CALL: walk_plain(w, op); return;
  }
}

static void walk_op(const walk *w, const ts_op *op) {
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_COLLECTIVE: walk_collective(w, op); return;
  case TS_CLASS_CONTROL: walk_control(w, op); return;
  default: walk_plain(w, op); return;
  }
}

static void walk_region(const walk *w, ts_region_id id) {
  const ts_region *region = ts_graph_region(w->graph, id);
  for (size_t i = 0; i < region->ops.count; i++) walk_op(w, ts_graph_op(w->graph, region->ops.data[i]));
}

/* ---- a graph that grows ---- */

static void start_param(const walk *w, ts_value_id id) {
  const ts_value *value = ts_graph_value(w->graph, id);
  if (id == w->v->coordinates)
    w->v->values.data[id] = (ts_varying_value){(ts_axis_set)((1u << w->graph->mesh.rank) - 1), true};
  else if (value->region == TS_ROOT)
    ts_varying_add(w->v, id, cuts_of(ts_graph_sharding(w->graph, TS_PARAMS, value->index)));
  ts_value_id outer = w->v->captured ? w->v->captured(w->v->context, id) : TS_NO_ID;
  if (outer != TS_NO_ID) set_param(w, id, outer);
}

static ts_status make_room(ts_varying *v, size_t count) {
  TS_TRY(TS_VEC_RESERVE(&v->values, count));
  while (v->values.count < count) v->values.data[v->values.count++] = (ts_varying_value){0};
  return TS_SUCCESS;
}

ts_status ts_varying_extend(ts_varying *v, const ts_graph *graph) {
  const walk w = {v, graph};
  size_t known = v->values.count;
  TS_TRY(make_room(v, graph->values.count));
  for (size_t i = known; i < graph->values.count; i++) {
    const ts_value *value = ts_graph_value(graph, (ts_value_id)i);
    if (value->op == TS_NO_ID)
      start_param(&w, (ts_value_id)i);
    else if (value->index == 0)
      walk_op(&w, ts_graph_op(graph, value->op));
  }
  return TS_SUCCESS;
}

/* ---- a finished program ---- */

static ts_status check_op(const ts_graph *graph, const ts_varying *v, const ts_op *op) {
  ts_value_id predicate = TS_NO_ID;
  if (op->code == TS_OP_COND) predicate = op->operands[0];
  if (op->code == TS_OP_WHILE) predicate = ts_graph_region(graph, op->attrs->regions.regions[0])->results.data[0];
  if (predicate == TS_NO_ID || !ts_graph_has_effect(graph, op) || !ts_varying_of(v, predicate)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "%s: the predicate differs between partitions, and a region has a collective",
                  ts_op_name(op->code));
}

static ts_status check_result(const ts_graph *graph, const ts_varying *v, size_t index) {
  const ts_sharding *sharding = ts_graph_sharding(graph, TS_RESULTS, index);
  ts_axis_set varies =
      ts_varying_of(v, ts_graph_region(graph, TS_ROOT)->results.data[index]) & (ts_axis_set)~cuts_of(sharding);
  if (!varies) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "result %zu varies over mesh axis %d, over which it is replicated", index + 1,
                  __builtin_ctz(varies));
}

static ts_status check(const ts_graph *graph, const ts_varying *v) {
  for (size_t i = 0; i < graph->ops.count; i++) TS_TRY(check_op(graph, v, ts_graph_op(graph, (ts_op_id)i)));
  for (size_t i = 0; i < ts_graph_region(graph, TS_ROOT)->results.count; i++) TS_TRY(check_result(graph, v, i));
  return TS_SUCCESS;
}

ts_status ts_varying_check(const ts_graph *graph) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_varying v = {.coordinates = TS_NO_ID};
  if (graph->mesh.coordinates) v.coordinates = root->params.data[root->params.count - 1];
  ts_status status = ts_varying_extend(&v, graph);
  if (!status) status = check(graph, &v);
  ts_varying_deinit(&v);
  return status;
}
