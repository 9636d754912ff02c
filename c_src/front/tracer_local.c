/* The local view: coordinates, and over which axes values vary. */
#include "front/tracer.h"

ts_status ts_tracer_set_local(ts_tracer *t, const ts_mesh *mesh) {
  ts_mesh local = *mesh;
  local.partitioned = true;
  return ts_graph_set_mesh(t->graph, &local);
}

ts_status ts_tracer_check_mesh(const ts_tracer *t, const ts_graph *program) {
  const ts_mesh *own = &t->graph->mesh, *wanted = &program->mesh;
  if (wanted->rank == 0) return TS_SUCCESS;
  const int32_t partitions = ts_mesh_partitions(wanted);
  if (own->rank == 0)
    return ts_error(TS_FAILED_PRECONDITION,
                    "the program is written for the %d partitions of a mesh, which run together", partitions);
  if (own->partitioned != wanted->partitioned)
    return ts_error(TS_FAILED_PRECONDITION,
                    "the program is written for one of %d partitions, and the program around it for whole tensors",
                    partitions);
  bool same = own->rank == wanted->rank;
  for (int32_t i = 0; same && i < own->rank; i++) same = own->sizes[i] == wanted->sizes[i];
  if (same) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT,
                  "the program is written for a mesh of %d partitions, which is other than the mesh of %d", partitions,
                  ts_mesh_partitions(own));
}

/* Hidden arguments may have come after them. */
void ts_tracer_move_coordinates(ts_tracer *t) {
  ts_region *root = ts_graph_region(t->graph, TS_ROOT);
  ts_value *values = t->graph->values.data;
  if (t->varying.coordinates == TS_NO_ID) return;
  uint32_t last = (uint32_t)root->params.count - 1;
  for (uint32_t i = values[t->varying.coordinates].index; i < last; i++) {
    root->params.data[i] = root->params.data[i + 1];
    values[root->params.data[i]].index = i;
  }
  root->params.data[last] = t->varying.coordinates;
  values[t->varying.coordinates].index = last;
  t->graph->mesh.coordinates = true;
}

/* ---- axes ---- */

/* The value that a parameter captures; captures come after a region's own parameters. */
static ts_value_id captured(const void *context, ts_value_id param) {
  const ts_tracer *t = context;
  const ts_value *value = ts_graph_value(t->graph, param);
  if (value->region >= t->regions.count) return TS_NO_ID;
  const ts_tracer_region *record = &t->regions.data[value->region];
  size_t own = ts_graph_region(t->graph, value->region)->params.count - record->captures.count;
  return value->index < own ? TS_NO_ID : record->captures.data[value->index - own].outer;
}

static ts_status extend(ts_tracer *t) {
  t->varying.captured = captured;
  t->varying.context = t;
  return ts_varying_extend(&t->varying, t->graph);
}

ts_status ts_tracer_varying(ts_tracer *t, ts_value_id value, ts_axis_set *out) {
  TS_TRY(extend(t));
  *out = ts_varying_of(&t->varying, value);
  return TS_SUCCESS;
}

ts_status ts_tracer_vary(ts_tracer *t, ts_value_id value, ts_axis_set axes) {
  TS_TRY(extend(t));
  ts_varying_add(&t->varying, value, axes);
  return TS_SUCCESS;
}
