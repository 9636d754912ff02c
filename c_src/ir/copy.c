/* Copying ops between graphs and regions. */
#include "base/deep.h"
#include "ir/attrs.h"

static ts_status copy_region(const ts_graph *from, ts_region_id source, ts_graph *to, ts_value_id *map,
                             ts_region_id *out);

/* Copies attributes, and their regions into `to`. */
static ts_status copy_attrs(const ts_graph *from, const ts_op *op, ts_graph *to, ts_value_id *map, ts_attrs *out) {
  ts_region_id regions[2], copies[2] = {TS_NO_ID, TS_NO_ID};
  size_t count = ts_op_regions(op, regions);
  *out = ts_op_copy_attrs(op);
  for (size_t i = 0; i < count; i++) TS_TRY(copy_region(from, regions[i], to, map, &copies[i]));
  ts_attrs_set_regions(op->code, out, copies);
  return TS_SUCCESS;
}

static ts_status map_values(const ts_graph *from, const ts_value_id *values, size_t count, const ts_value_id *map,
                            ts_value_id *out) {
  for (size_t i = 0; i < count; i++) {
    if (values[i] >= from->values.count) return ts_error(TS_INTERNAL, "copy: no value %u", values[i]);
    out[i] = map[values[i]];
  }
  return TS_SUCCESS;
}

/* The lines of a place in the table of another graph. */
static ts_status import_lines(ts_places *to, ts_places *from, ts_place place, ts_place *out) {
  ts_line lines[TS_MOST_LINES];
  const size_t count = ts_places_lines(from, place, lines);
  ts_place one;
  *out = 0;
  for (size_t i = 0; i < count; i++) {
    TS_TRY(ts_places_add(to, lines[i].data, lines[i].size, &one));
    TS_TRY(ts_places_join(to, *out, one, out));
  }
  return TS_SUCCESS;
}

/* An op without a place gets the place of ops that are added now. */
static ts_status find_place(const ts_graph *from, ts_place place, const ts_graph *to, ts_place *out) {
  *out = to->place;
  if (!place || !from->places || !to->places) return TS_SUCCESS;
  if (from->places != to->places) return import_lines(to->places, from->places, place, out);
  *out = place;
  return TS_SUCCESS;
}

static ts_status copy_op(const ts_graph *from, ts_op_id id, ts_graph *to, ts_region_id target, ts_value_id *map) {
  ts_op op = *ts_graph_op(from, id); /* a copy: `from` may be `to`, whose arrays move */
  ts_attrs attrs;
  ts_value_id *operands, first;
  if (op.attrs) TS_TRY(copy_attrs(from, &op, to, map, &attrs));
  TS_TRY(TS_NEW_ARRAY(op.operand_count, &operands));
  ts_status status = map_values(from, op.operands, op.operand_count, map, operands);
  ts_place outer = to->place;
  if (!status) status = find_place(from, op.place, to, &to->place);
  if (!status)
    status =
        ts_graph_add_op(to, target, op.code, (ts_values){operands, op.operand_count}, op.attrs ? &attrs : NULL, &first);
  to->place = outer;
  ts_free(operands);
  if (status) return status;
  for (uint32_t i = 0; i < op.result_count; i++) map[op.first_result + i] = first + i;
  return TS_SUCCESS;
}

typedef struct copy_call {
  const ts_graph *from;
  ts_op_id id;
  ts_graph *to;
  ts_region_id target;
  ts_value_id *map;
} copy_call;

static ts_status copy_on_stack(void *context) {
  const copy_call *c = context;
  return copy_op(c->from, c->id, c->to, c->target, c->map);
}

ts_status ts_graph_copy_op(const ts_graph *from, ts_op_id id, ts_graph *to, ts_region_id target, ts_value_id *map) {
  return ts_deep_call(ts_op_height(from, ts_graph_op(from, id)), copy_on_stack,
                      &(copy_call){from, id, to, target, map});
}

ts_status ts_graph_copy_ops(const ts_graph *from, ts_region_id source, ts_graph *to, ts_region_id target,
                            ts_value_id *map) {
  size_t count = ts_graph_region(from, source)->ops.count;
  for (size_t i = 0; i < count; i++)
    TS_TRY(ts_graph_copy_op(from, ts_graph_region(from, source)->ops.data[i], to, target, map));
  return TS_SUCCESS;
}

static ts_status copy_results(const ts_graph *from, ts_region_id source, ts_graph *to, ts_region_id target,
                              const ts_value_id *map) {
  const ts_region *region = ts_graph_region(from, source);
  ts_value_id *results;
  if (!region->finished) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(region->results.count, &results));
  ts_status status = map_values(from, region->results.data, region->results.count, map, results);
  if (!status) status = ts_graph_set_results(to, target, results, region->results.count);
  ts_free(results);
  return status;
}

static ts_status copy_whole(const ts_graph *from, ts_region_id source, ts_graph *to, ts_region_id target,
                            ts_value_id *map) {
  TS_TRY(ts_graph_add_params_like(to, target, from, source, map));
  TS_TRY(ts_graph_copy_ops(from, source, to, target, map));
  return copy_results(from, source, to, target, map);
}

/* Recursion is bounded by TS_MAX_LEVELS, which ts_graph_add_op enforces. */
static ts_status copy_region(const ts_graph *from, ts_region_id source, ts_graph *to, ts_value_id *map,
                             ts_region_id *out) {
  TS_TRY(ts_graph_add_region(to, out));
  return copy_whole(from, source, to, *out, map);
}

static ts_status clone_into(const ts_graph *graph, ts_graph *to) {
  ts_value_id *map;
  TS_TRY(ts_graph_set_name(to, graph->name));
  ts_graph_share_places(to, graph);
  TS_TRY(ts_graph_copy_mesh(to, graph));
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &map));
  ts_status status = copy_whole(graph, TS_ROOT, to, TS_ROOT, map);
  ts_free(map);
  return status;
}

ts_status ts_graph_clone(const ts_graph *graph, ts_graph **out) {
  ts_graph *copy;
  *out = NULL;
  TS_TRY(ts_graph_create(&copy));
  ts_status status = clone_into(graph, copy);
  if (status) {
    ts_graph_destroy(copy);
    return status;
  }
  *out = copy;
  return TS_SUCCESS;
}
