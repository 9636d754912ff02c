#include "front/tracer.h"

#include "device/device.h"

#include <string.h>

/* ---- life ---- */

ts_status ts_tracer_init(ts_tracer *t, size_t hidden_count) {
  t->varying.coordinates = TS_NO_ID;
  TS_TRY(ts_graph_create(&t->graph));
  TS_TRY(TS_VEC_PUSH(&t->regions, (ts_tracer_region){.parent = TS_NO_ID}));
  TS_TRY(TS_VEC_RESERVE(&t->hidden, hidden_count));
  while (t->hidden.count < hidden_count) t->hidden.data[t->hidden.count++] = TS_NO_ID;
  return TS_SUCCESS;
}

void ts_tracer_init_finished(ts_tracer *t, ts_graph *graph) { *t = (ts_tracer){.graph = graph, .finished = true}; }

void ts_tracer_deinit(ts_tracer *t) {
  for (size_t i = 0; i < t->regions.count; i++) TS_VEC_FREE(&t->regions.data[i].captures);
  TS_VEC_FREE(&t->regions);
  TS_VEC_FREE(&t->hidden);
  TS_VEC_FREE(&t->used);
  ts_varying_deinit(&t->varying);
  ts_graph_destroy(t->graph);
}

ts_status ts_tracer_check(const ts_tracer *t) {
  if (!t->finished) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION, "a traced value was used after its function had returned");
}

/* ---- captures ---- */

/* The record of a region; the graph may have more regions than there are records. */
static ts_status record_of(ts_tracer *t, ts_region_id region, ts_tracer_region **out) {
  while (t->regions.count <= region) TS_TRY(TS_VEC_PUSH(&t->regions, (ts_tracer_region){.parent = TS_NO_ID}));
  *out = &t->regions.data[region];
  return TS_SUCCESS;
}

static ts_region_id parent_of(const ts_tracer *t, ts_region_id region) {
  return region < t->regions.count ? t->regions.data[region].parent : TS_NO_ID;
}

/* Whether `region` is the current one or around it. */
static bool is_open(const ts_tracer *t, ts_region_id region) {
  for (ts_region_id r = t->current; r != TS_NO_ID; r = parent_of(t, r))
    if (r == region) return true;
  return false;
}

static ts_status capture(ts_tracer *t, ts_region_id region, ts_value_id outer, ts_value_id *out) {
  ts_tracer_region *record = &t->regions.data[region];
  ts_value v = *ts_graph_value(t->graph, outer);
  for (size_t i = 0; i < record->captures.count; i++) {
    if (record->captures.data[i].outer != outer) continue;
    *out = record->captures.data[i].param;
    return TS_SUCCESS;
  }
  /* The record's memory comes first: after a failed allocation the region would have a parameter that no record names.
   */
  TS_TRY(TS_VEC_RESERVE(&record->captures, record->captures.count + 1));
  TS_TRY(ts_graph_add_param(t->graph, region, v.dtype, v.shape, out));
  record->captures.data[record->captures.count++] = (ts_capture){outer, *out};
  return TS_SUCCESS;
}

/* `value` as a value of `region`, which is its own region or inside it. Constants are repeated, not captured. */
static ts_status resolve(ts_tracer *t, ts_region_id region, ts_value_id value, ts_value_id *out) {
  ts_value v = *ts_graph_value(t->graph, value);
  ts_scalar scalar;
  ts_region_id through[TS_MAX_NESTING + 1]; /* from `region` outwards */
  size_t count = 0;
  *out = value;
  if (v.region == region) return TS_SUCCESS;
  if (ts_graph_is_constant(t->graph, value, &scalar))
    return ts_graph_constant(t->graph, region, v.dtype, v.shape, scalar, out);
  for (; region != v.region; region = parent_of(t, region)) {
    if (region == TS_NO_ID) return ts_error(TS_INTERNAL, "a value's region does not enclose its user");
    through[count++] = region;
  }
  while (count-- > 0) TS_TRY(capture(t, through[count], *out, out));
  return TS_SUCCESS;
}

/* The captures of another region from the `from`-th on, in the same order, so that one op can hold both. */
static ts_status capture_like(ts_tracer *t, ts_region_id region, ts_region_id like, size_t from) {
  ts_value_id param;
  for (size_t i = from; i < t->regions.data[like].captures.count; i++)
    TS_TRY(capture(t, region, t->regions.data[like].captures.data[i].outer, &param));
  return TS_SUCCESS;
}

/* ---- operands ---- */

ts_status ts_tracer_value(ts_tracer *t, ts_value_id value, ts_value_id *out) {
  if (value >= t->graph->values.count) return ts_error(TS_INVALID_ARGUMENT, "no value %u in this program", value);
  if (!is_open(t, ts_graph_value(t->graph, value)->region))
    return ts_error(TS_INVALID_ARGUMENT, "a traced value was used outside of the function that made it");
  return resolve(t, t->current, value, out);
}

ts_status ts_tracer_hidden(ts_tracer *t, size_t index, const ts_buffer *buffer, ts_value_id *out) {
  if (t->hidden.data[index] == TS_NO_ID) {
    TS_TRY(TS_VEC_RESERVE(&t->used, t->used.count + 1));
    TS_TRY(ts_graph_add_param(t->graph, TS_ROOT, buffer->dtype, &buffer->shape, out));
    t->used.data[t->used.count++] = (uint32_t)index;
    t->hidden.data[index] = *out;
  }
  return resolve(t, t->current, t->hidden.data[index], out);
}

static ts_status add_constant(ts_tracer *t, ts_buffer *buffer, ts_value_id *out) {
  if (ts_shape_elements(&buffer->shape) == 1)
    return ts_graph_constant(t->graph, t->current, buffer->dtype, &buffer->shape,
                             ts_scalar_load(buffer->dtype, buffer->data), out);
  ts_attrs attrs = {.literal = {.buffer = buffer}};
  return ts_graph_add_op(t->graph, t->current, TS_OP_LITERAL, (ts_values){0}, &attrs, out);
}

ts_status ts_tracer_constant(ts_tracer *t, ts_buffer *buffer, ts_value_id *out) {
  void *bytes;
  TS_TRY(ts_device_bytes(buffer, &bytes));
  return add_constant(t, buffer, out);
}

ts_operand ts_tracer_operand(const ts_tracer *t, ts_value_id value) {
  const ts_value *v = ts_graph_value(t->graph, value);
  return (ts_operand){.dtype = v->dtype, .shape = v->shape, .value = value};
}

ts_status ts_tracer_place(ts_tracer *t, const ts_operand *o, ts_value_id *out) {
  ts_dtype dtype = o->is_number ? ts_number_dtype(&o->number) : o->dtype;
  return ts_op_place(t->graph, t->current, o, dtype, o->shape, out);
}

/* The operands as values of the current region, in an array with room for `more` after them. The caller frees it. */
static ts_status place_all(ts_tracer *t, ts_operands operands, size_t more, ts_value_id **out) {
  TS_TRY(ts_alloc_array(operands.count + more, sizeof **out, (void **)out));
  for (size_t i = 0; i < operands.count; i++) {
    ts_status status = ts_tracer_place(t, &operands.data[i], &(*out)[i]);
    if (!status) continue;
    ts_free(*out);
    return status;
  }
  return TS_SUCCESS;
}

/* ---- ops ---- */

ts_status ts_tracer_param(ts_tracer *t, const ts_type *type, ts_value_id *out) {
  return ts_graph_add_param(t->graph, TS_ROOT, type->dtype, &type->shape, out);
}

/* A combiner is called once per element: it may not use values from outside. */
static ts_status check_combiner(ts_tracer *t, ts_opcode code, const ts_attrs *attrs) {
  ts_tracer_region *record;
  if (code != TS_OP_REDUCE || attrs->reduce.region >= t->graph->regions.count) return TS_SUCCESS;
  TS_TRY(record_of(t, attrs->reduce.region, &record));
  if (record->captures.count == 0) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "reduce: the function uses a value from outside, expected only its arguments "
                                       "and numbers");
}

ts_status ts_tracer_op(ts_tracer *t, ts_opcode code, ts_operands operands, const ts_attrs *attrs, ts_value_id *out) {
  TS_TRY(check_combiner(t, code, attrs));
  return ts_op_build(t->graph, t->current, code, operands, attrs, out);
}

/* ---- control ops ---- */

/* A body returns its captured values: a while's captures keep their values. */
static ts_status return_captures(ts_tracer *t, ts_region_id body) {
  ts_region *region = ts_graph_region(t->graph, body);
  size_t captured = t->regions.data[body].captures.count, count = region->results.count;
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(count + captured, &results));
  memcpy(results, region->results.data, count * sizeof *results);
  for (size_t i = 0; i < captured; i++) results[count + i] = t->regions.data[body].captures.data[i].param;
  ts_status status = ts_graph_set_results(t->graph, body, results, count + captured);
  ts_free(results);
  return status;
}

/* The second region was opened with the first one's captures; the first gets the second's further ones. */
static ts_status join_captures(ts_tracer *t, ts_opcode code, const ts_region_id regions[2]) {
  TS_TRY(capture_like(t, regions[0], regions[1], t->regions.data[regions[0]].captures.count));
  return code == TS_OP_WHILE ? return_captures(t, regions[1]) : TS_SUCCESS;
}

/* A cond's predicate, or the values of a while. */
static ts_status control_operands(ts_tracer *t, ts_opcode code, ts_operands operands, size_t more, ts_value_id **out) {
  if (code == TS_OP_WHILE) return place_all(t, operands, more, out);
  if (operands.count != 1) return ts_error(TS_INVALID_ARGUMENT, "cond: expected a predicate, got %zu", operands.count);
  TS_TRY(ts_alloc_array(1 + more, sizeof **out, (void **)out));
  ts_status status = ts_op_predicate(t->graph, t->current, &operands.data[0], *out);
  if (!status) return TS_SUCCESS;
  ts_free(*out);
  return ts_error_context(status, "cond");
}

ts_status ts_tracer_control(ts_tracer *t, ts_opcode code, const ts_region_id regions[2], ts_operands operands,
                            ts_value_id *out, size_t *own) {
  ts_attrs attrs = {.regions = {{regions[0], regions[1]}}};
  ts_value_id *values;
  TS_TRY(ts_tracer_check_region(t, regions[0]));
  TS_TRY(ts_tracer_check_region(t, regions[1]));
  *own = ts_graph_region(t->graph, regions[1])->results.count;
  TS_TRY(join_captures(t, code, regions));
  const ts_tracer_region *record = &t->regions.data[regions[1]];
  size_t count = operands.count, captured = record->captures.count;
  TS_TRY(control_operands(t, code, operands, captured, &values));
  for (size_t i = 0; i < captured; i++) values[count + i] = record->captures.data[i].outer;
  ts_status status = ts_graph_add_op(t->graph, t->current, code, (ts_values){values, count + captured}, &attrs, out);
  ts_free(values);
  return status;
}

/* ---- ops whose results have types of their own ---- */

/* A finished region that returns a zero of each type. */
static ts_status add_zeros(ts_tracer *t, ts_types types, ts_region_id *out) {
  ts_value_id *values;
  TS_TRY(ts_graph_add_region(t->graph, out));
  TS_TRY(TS_NEW_ARRAY(types.count, &values));
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; !status && i < types.count; i++)
    status = ts_graph_constant(t->graph, *out, types.data[i].dtype, &types.data[i].shape, (ts_scalar){0}, &values[i]);
  if (!status) status = ts_graph_set_results(t->graph, *out, values, types.count);
  ts_free(values);
  return status;
}

ts_status ts_tracer_typed(ts_tracer *t, ts_opcode code, ts_attrs *attrs, ts_types types, ts_operands operands,
                          ts_value_id *out) {
  ts_region_id regions[2] = {TS_NO_ID, TS_NO_ID};
  ts_value_id *values;
  TS_TRY(add_zeros(t, types, &regions[0]));
  ts_attrs_set_regions(code, attrs, regions);
  TS_TRY(place_all(t, operands, 0, &values));
  ts_status status = ts_graph_add_op(t->graph, t->current, code, (ts_values){values, operands.count}, attrs, out);
  ts_free(values);
  return status;
}

/* ---- copies ---- */

/* Of this program, or of another one. */
static ts_status copy_region(ts_tracer *t, const ts_graph *from, ts_region_id source, const ts_value_id *arguments,
                             ts_value_id *map, ts_value_id *out) {
  const ts_region *region = ts_graph_region(from, source);
  for (size_t i = 0; i < region->params.count; i++) map[region->params.data[i]] = arguments[i];
  TS_TRY(ts_graph_copy_ops(from, source, t->graph, t->current, map));
  region = ts_graph_region(from, source);
  for (size_t i = 0; i < region->results.count; i++) out[i] = map[region->results.data[i]];
  return TS_SUCCESS;
}

/* The array `map` has an id for each value of the program, 0 for values that were not copied: a copy is never the first
 * value. The caller frees it and `values`, also after a failure. */
static ts_status inline_into(ts_tracer *t, ts_region_id source, ts_operands arguments, ts_value_id **values,
                             ts_value_id **map, ts_value_id *out) {
  TS_TRY(place_all(t, arguments, 0, values));
  TS_TRY(TS_NEW_ARRAY(t->graph->values.count, map));
  return copy_region(t, t->graph, source, *values, *map, out);
}

static void find_copies(const ts_value_id *map, size_t known, ts_values sought, ts_value_id *out) {
  for (size_t i = 0; i < sought.count; i++) {
    ts_value_id copy = sought.data[i] < known ? map[sought.data[i]] : 0;
    out[i] = copy == 0 ? TS_NO_ID : copy;
  }
}

ts_status ts_tracer_inline(ts_tracer *t, ts_region_id source, ts_operands arguments, ts_values sought,
                           ts_value_id **out) {
  ts_value_id *values = NULL, *map = NULL;
  size_t known = t->graph->values.count;
  TS_TRY(ts_tracer_check_region(t, source));
  const ts_region *region = ts_graph_region(t->graph, source);
  if (region->params.count != arguments.count)
    return ts_error(TS_INTERNAL, "the region takes %zu values, got %zu", region->params.count, arguments.count);
  size_t results = region->results.count;
  TS_TRY(TS_NEW_ARRAY(results + sought.count, out));
  ts_status status = inline_into(t, source, arguments, &values, &map, *out);
  if (!status) find_copies(map, known, sought, *out + results);
  ts_free(values);
  ts_free(map);
  if (status) ts_free(*out);
  return status;
}

static ts_status check_argument(const ts_tracer *t, ts_value_id id, const ts_graph *program, size_t i) {
  const ts_value *value = ts_graph_value(t->graph, id);
  const ts_value *param = ts_graph_value(program, ts_graph_region(program, TS_ROOT)->params.data[i]);
  if (value->dtype == param->dtype && ts_shape_equal(value->shape, param->shape)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "argument %zu is %s, expected %s", i, TS_SHAPE_STR(value->dtype, value->shape),
                  TS_SHAPE_STR(param->dtype, param->shape));
}

ts_status ts_tracer_inline_program(ts_tracer *t, const ts_graph *program, ts_operands arguments, ts_value_id **out) {
  ts_value_id *values = NULL, *map = NULL;
  const ts_region *root = ts_graph_region(program, TS_ROOT);
  const size_t hidden = program->mesh.coordinates ? 1 : 0;
  *out = NULL;
  TS_TRY(ts_tracer_check_mesh(t, program));
  if (root->params.count != arguments.count + hidden)
    return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", root->params.count - hidden,
                    arguments.count);
  ts_status status = place_all(t, arguments, hidden, &values);
  if (!status && hidden) status = ts_tracer_coordinates(t, &values[arguments.count]);
  if (!status) status = TS_NEW_ARRAY(program->values.count + 1, &map);
  if (!status) status = TS_NEW_ARRAY(root->results.count + 1, out);
  for (size_t i = 0; !status && i < arguments.count; i++) status = check_argument(t, values[i], program, i);
  if (!status) status = copy_region(t, program, TS_ROOT, values, map, *out);
  ts_free(values);
  ts_free(map);
  if (!status) return TS_SUCCESS;
  ts_free(*out);
  *out = NULL;
  return status;
}

/* ---- regions ---- */

ts_status ts_tracer_check_region(ts_tracer *t, ts_region_id region) {
  ts_tracer_region *record;
  if (region == TS_ROOT || region >= t->graph->regions.count)
    return ts_error(TS_INVALID_ARGUMENT, "expected a region of the program, got %u", region);
  return record_of(t, region, &record);
}

static ts_status add_region(ts_tracer *t, ts_region_id *out) {
  uint32_t depth = t->regions.data[t->current].depth + 1;
  ts_tracer_region *record;
  if (depth > TS_MAX_NESTING)
    return ts_error(TS_OUT_OF_RANGE, "functions of control ops are nested more than %d deep", TS_MAX_NESTING);
  TS_TRY(ts_graph_add_region(t->graph, out));
  TS_TRY(record_of(t, *out, &record));
  record->parent = t->current;
  record->depth = depth;
  return TS_SUCCESS;
}

ts_status ts_tracer_open(ts_tracer *t, ts_types types, ts_region_id like, ts_region_id *out) {
  ts_value_id param;
  if (like != TS_NO_ID) TS_TRY(ts_tracer_check_region(t, like));
  TS_TRY(add_region(t, out));
  for (size_t i = 0; i < types.count; i++)
    TS_TRY(ts_graph_add_param(t->graph, *out, types.data[i].dtype, &types.data[i].shape, &param));
  if (like != TS_NO_ID) TS_TRY(capture_like(t, *out, like, 0));
  t->current = *out;
  return TS_SUCCESS;
}

ts_status ts_tracer_enter(ts_tracer *t, ts_region_id region) {
  TS_TRY(ts_tracer_check_region(t, region));
  if (t->regions.data[region].parent != t->current)
    return ts_error(TS_FAILED_PRECONDITION, "region %u was not opened in the current one", region);
  t->current = region;
  return TS_SUCCESS;
}

ts_status ts_tracer_leave(ts_tracer *t) {
  ts_region_id parent = parent_of(t, t->current);
  if (parent == TS_NO_ID) return ts_error(TS_FAILED_PRECONDITION, "no region is open");
  t->current = parent;
  return TS_SUCCESS;
}

static ts_status set_results(ts_tracer *t, ts_operands results) {
  ts_value_id *values;
  TS_TRY(place_all(t, results, 0, &values));
  ts_status status = ts_graph_set_results(t->graph, t->current, values, results.count);
  ts_free(values);
  return status;
}

ts_status ts_tracer_close(ts_tracer *t, ts_operands results) {
  TS_TRY(set_results(t, results));
  return ts_tracer_leave(t);
}

ts_status ts_tracer_finish(ts_tracer *t, ts_operands results) {
  if (t->current != TS_ROOT) return ts_error(TS_FAILED_PRECONDITION, "a region is still open");
  TS_TRY(set_results(t, results));
  ts_tracer_move_coordinates(t);
  t->finished = true;
  return TS_SUCCESS;
}

ts_status ts_tracer_coordinates(ts_tracer *t, ts_value_id *out) {
  const ts_shape shape = {.rank = 1, .dims = {t->graph->mesh.rank}};
  if (t->varying.coordinates == TS_NO_ID)
    TS_TRY(ts_graph_add_param(t->graph, TS_ROOT, TS_S32, &shape, &t->varying.coordinates));
  return ts_tracer_value(t, t->varying.coordinates, out);
}
