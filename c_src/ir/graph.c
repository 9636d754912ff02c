#include "ir/graph.h"

#include "ir/attrs.h"
#include "ir/infer.h"
#include "ir/intern.h"

#include <string.h>

/* ---- life ---- */

static ts_status create(ts_intern *base, ts_graph **out) {
  ts_graph *graph;
  ts_region_id root;
  *out = NULL;
  TS_TRY(TS_NEW(&graph));
  ts_arena_init(&graph->arena);
  ts_status status = ts_intern_create(base, &graph->intern);
  if (!status) status = ts_graph_set_name(graph, "main");
  if (!status) status = ts_graph_add_region(graph, &root);
  if (status) {
    ts_graph_destroy(graph);
    return status;
  }
  *out = graph;
  return TS_SUCCESS;
}

ts_status ts_graph_create(ts_graph **out) { return create(NULL, out); }

static ts_status copy_shardings(const ts_graph *from, ts_root_side side, ts_graph *to) {
  size_t count = side == TS_PARAMS ? from->param_shardings.count : from->result_shardings.count;
  for (size_t i = 0; i < count; i++) {
    const ts_sharding *sharding = ts_graph_sharding(from, side, i);
    if (sharding) TS_TRY(ts_graph_set_sharding(to, side, i, sharding));
  }
  return TS_SUCCESS;
}

ts_status ts_graph_copy_mesh(ts_graph *graph, const ts_graph *from) {
  graph->mesh = from->mesh;
  TS_TRY(copy_shardings(from, TS_PARAMS, graph));
  return copy_shardings(from, TS_RESULTS, graph);
}

ts_status ts_graph_create_from(const ts_graph *from, ts_graph **out) {
  TS_TRY(create(from->intern, out));
  ts_graph_share_places(*out, from);
  if (from->mesh.rank == 0) return TS_SUCCESS;
  ts_status status = ts_graph_copy_mesh(*out, from);
  if (!status) return TS_SUCCESS;
  ts_graph_destroy(*out);
  *out = NULL;
  return status;
}

void ts_graph_share_places(ts_graph *graph, const ts_graph *from) {
  ts_places *own = graph->places;
  graph->places = ts_places_retain(from->places);
  ts_places_release(own);
}

void ts_graph_destroy(ts_graph *graph) {
  if (!graph) return;
  for (size_t i = 0; i < graph->ops.count; i++) {
    const ts_op *op = &graph->ops.data[i];
    ts_buffer_release(ts_attrs_buffer(op->code, op->attrs));
  }
  TS_VEC_FREE(&graph->values);
  TS_VEC_FREE(&graph->ops);
  TS_VEC_FREE(&graph->regions);
  TS_VEC_FREE(&graph->param_shardings);
  TS_VEC_FREE(&graph->result_shardings);
  ts_arena_deinit(&graph->arena);
  ts_intern_release(graph->intern);
  ts_places_release(graph->places);
  ts_free(graph);
}

ts_status ts_graph_set_name(ts_graph *graph, const char *name) {
  char *copy;
  TS_TRY(ts_arena_strdup(&graph->arena, name, &copy));
  graph->name = copy;
  return TS_SUCCESS;
}

/* ---- the mesh ---- */

ts_status ts_graph_set_mesh(ts_graph *graph, const ts_mesh *mesh) {
  TS_TRY(ts_mesh_check(mesh));
  graph->mesh = *mesh;
  return TS_SUCCESS;
}

ts_status ts_graph_set_sharding(ts_graph *graph, ts_root_side side, size_t index, const ts_sharding *sharding) {
  while ((side == TS_PARAMS ? graph->param_shardings.count : graph->result_shardings.count) <= index) {
    const ts_root_sharding none = {0};
    TS_TRY(side == TS_PARAMS ? TS_VEC_PUSH(&graph->param_shardings, none)
                             : TS_VEC_PUSH(&graph->result_shardings, none));
  }
  ts_root_sharding *at = side == TS_PARAMS ? &graph->param_shardings.data[index] : &graph->result_shardings.data[index];
  *at = (ts_root_sharding){true, *sharding};
  return TS_SUCCESS;
}

const ts_sharding *ts_graph_sharding(const ts_graph *graph, ts_root_side side, size_t index) {
  size_t count = side == TS_PARAMS ? graph->param_shardings.count : graph->result_shardings.count;
  if (index >= count) return NULL;
  const ts_root_sharding *at =
      side == TS_PARAMS ? &graph->param_shardings.data[index] : &graph->result_shardings.data[index];
  return at->given ? &at->sharding : NULL;
}

const ts_dims *ts_op_mesh_axes(const ts_op *op) {
  static const ts_dims none = {0};
  switch ((ts_ops_COLLECTIVE)op->code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR:
  case TS_OP_BARRIER: return &op->attrs->axes;
  case TS_OP_ALL_GATHER:
  case TS_OP_REDUCE_SCATTER: return &op->attrs->along.axes;
  case TS_OP_ALL_TO_ALL: return &op->attrs->exchange.axes;
  case TS_OP_COLLECTIVE_PERMUTE: return &op->attrs->permute.axes;
  case TS_OP_COLLECTIVE_BROADCAST: return &op->attrs->rooted.axes;
  case TS_OP_SHARDING_CONSTRAINT: break; /* partitions do it each by itself */
  }
  return &none;
}

bool ts_op_is_identity(const ts_graph *graph, const ts_op *op) {
  if (ts_op_get_class(op->code) != TS_CLASS_COLLECTIVE) return false;
  return op->code == TS_OP_SHARDING_CONSTRAINT ||
         (ts_mesh_partitions(&graph->mesh) == 1 && !ts_op_permutes_nothing(op));
}

/* ---- regions and parameters ---- */

#define MAKE_ROOM(v, more) TS_VEC_RESERVE((v), (v)->count + (more))

/* A region's lists are in the arena, which does not free the smaller list that a grown one replaces. */
static ts_status grow_ids(ts_graph *graph, uint32_t **data, size_t *capacity, size_t count, size_t more) {
  size_t wanted, size;
  uint32_t *grown;
  if (!ts_add_size(count, more, &wanted)) return ts_error_no_memory();
  if (wanted < *capacity + *capacity / 2 + 4) wanted = *capacity + *capacity / 2 + 4;
  if (!ts_mul_size(wanted, sizeof *grown, &size)) return ts_error_no_memory();
  TS_TRY(ts_arena_take(&graph->arena, size, (void **)&grown));
  if (count > 0) memcpy(grown, *data, count * sizeof *grown);
  *data = grown;
  *capacity = wanted;
  return TS_SUCCESS;
}

#define MAKE_ROOM_IN_REGION(graph, v, more)          \
  ((v)->capacity - (v)->count >= (more) ? TS_SUCCESS \
                                        : grow_ids((graph), &(v)->data, &(v)->capacity, (v)->count, (more)))

/* Ids are 32 bits and TS_NO_ID is none. */
static ts_status check_ids(size_t count, size_t more, const char *what) {
  if (more < TS_NO_ID && count < TS_NO_ID - more) return TS_SUCCESS;
  return ts_error(TS_OUT_OF_RANGE, "the graph has too many %s", what);
}

ts_status ts_graph_add_region(ts_graph *graph, ts_region_id *out) {
  TS_TRY(check_ids(graph->regions.count, 1, "regions"));
  TS_TRY(MAKE_ROOM(&graph->regions, 1));
  *out = (ts_region_id)graph->regions.count;
  graph->regions.data[graph->regions.count++] = (ts_region){.parent = TS_NO_ID};
  return TS_SUCCESS;
}

/* The region exists and may still change. */
static ts_status check_open(const ts_graph *graph, ts_region_id region) {
  if (region >= graph->regions.count) return ts_error(TS_INVALID_ARGUMENT, "there is no region %u", region);
  if (graph->regions.data[region].parent != TS_NO_ID)
    return ts_error(TS_FAILED_PRECONDITION, "region %u cannot change: an op holds it", region);
  return TS_SUCCESS;
}

static ts_status add_param(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape,
                           ts_value_id *out) {
  ts_region *owner = ts_graph_region(graph, region);
  TS_TRY(check_ids(graph->values.count, 1, "values"));
  TS_TRY(MAKE_ROOM(&graph->values, 1));
  TS_TRY(MAKE_ROOM_IN_REGION(graph, &owner->params, 1));
  *out = (ts_value_id)graph->values.count;
  graph->values.data[graph->values.count++] = (ts_value){
      .shape = shape, .dtype = dtype, .op = TS_NO_ID, .index = (uint32_t)owner->params.count, .region = region};
  owner->params.data[owner->params.count++] = *out;
  return TS_SUCCESS;
}

ts_status ts_graph_add_param(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape,
                             ts_value_id *out) {
  const ts_shape *kept;
  TS_TRY(check_open(graph, region));
  ts_status status = ts_infer_check_type(dtype, shape);
  if (status) return ts_error_context(status, "parameter");
  TS_TRY(ts_intern_shape(graph->intern, shape, &kept));
  return add_param(graph, region, dtype, kept, out);
}

/* The shape of a value of `from`, as one of the graph's. */
static ts_status keep_shape(ts_graph *graph, const ts_graph *from, const ts_shape *shape, const ts_shape **out) {
  *out = shape;
  return ts_intern_holds(graph->intern, from->intern) ? TS_SUCCESS : ts_intern_shape_of(graph->intern, shape, out);
}

ts_status ts_graph_add_params_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_region_id like,
                                   ts_value_id *map) {
  const ts_region *source = ts_graph_region(from, like);
  size_t count = source->params.count;
  bool shared = ts_intern_holds(graph->intern, from->intern);
  TS_TRY(check_open(graph, region));
  ts_region *owner = ts_graph_region(graph, region);
  TS_TRY(check_ids(graph->values.count, count, "values"));
  TS_TRY(MAKE_ROOM(&graph->values, count));
  TS_TRY(MAKE_ROOM_IN_REGION(graph, &owner->params, count));
  for (size_t i = 0; i < count; i++) {
    ts_value value = *ts_graph_value(from, source->params.data[i]);
    if (!shared) TS_TRY(ts_intern_shape_of(graph->intern, value.shape, &value.shape));
    value.index = (uint32_t)owner->params.count;
    value.region = region;
    map[source->params.data[i]] = owner->params.data[owner->params.count++] = (ts_value_id)graph->values.count;
    graph->values.data[graph->values.count++] = value;
  }
  return TS_SUCCESS;
}

ts_status ts_graph_add_param_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_value_id like,
                                  ts_value_id *out) {
  const ts_value *value = ts_graph_value(from, like);
  ts_dtype dtype = value->dtype;
  const ts_shape *kept;
  TS_TRY(check_open(graph, region));
  TS_TRY(keep_shape(graph, from, value->shape, &kept));
  return add_param(graph, region, dtype, kept, out);
}

static ts_status check_value(const ts_graph *graph, ts_region_id region, ts_value_id value, const char *who,
                             const char *what, size_t i) {
  if (value >= graph->values.count)
    return ts_error(TS_INVALID_ARGUMENT, "%s: %s %zu is no value of the graph", who, what, i);
  if (graph->values.data[value].region != region)
    return ts_error(TS_INVALID_ARGUMENT, "%s: %s %zu belongs to another region, expected one of the same region", who,
                    what, i);
  return TS_SUCCESS;
}

ts_status ts_graph_set_results(ts_graph *graph, ts_region_id region, const ts_value_id *values, size_t count) {
  TS_TRY(check_open(graph, region));
  for (size_t i = 0; i < count; i++) TS_TRY(check_value(graph, region, values[i], "return", "result", i));
  ts_region *owner = ts_graph_region(graph, region);
  TS_TRY(check_ids(0, count, "results"));
  owner->results.count = 0;
  TS_TRY(MAKE_ROOM_IN_REGION(graph, &owner->results, count));
  for (size_t i = 0; i < count; i++) owner->results.data[i] = values[i];
  owner->results.count = count;
  owner->finished = true;
  return TS_SUCCESS;
}

/* ---- ops ---- */

static bool is_of_fusion(const ts_graph *graph, ts_region_id region) {
  ts_op_id parent = ts_graph_region(graph, region)->parent;
  return parent != TS_NO_ID && ts_graph_op(graph, parent)->code == TS_OP_FUSION;
}

/* Checks the regions that a new op takes: they belong to no other op, do not contain this one, and are not nested too
 * deep. */
static ts_status check_regions(const ts_graph *graph, ts_region_id region, ts_opcode code, const ts_attrs *attrs,
                               uint32_t *out_height) {
  ts_region_id regions[2];
  size_t count = ts_attrs_regions(code, attrs, regions);
  *out_height = 0;
  for (size_t i = 0; i < count; i++) {
    const ts_region *held = ts_graph_region(graph, regions[i]);
    if (held->parent != TS_NO_ID || regions[i] == region || (i == 1 && regions[0] == regions[1]))
      return ts_error(TS_INVALID_ARGUMENT, "%s: region %u has an owner already, expected a free one", ts_op_name(code),
                      regions[i]);
    if (held->height + 1 > TS_MAX_LEVELS)
      return ts_error(TS_OUT_OF_RANGE, "%s: regions are nested more than %d deep", ts_op_name(code), TS_MAX_LEVELS);
    if (held->height + 1 > *out_height) *out_height = held->height + 1;
  }
  return TS_SUCCESS;
}

/* The memory of an op; it is allocated before the graph changes. */
typedef struct new_op {
  ts_value_id *operands;
  const ts_attrs *attrs;
  const ts_shape **shapes; /* of its results */
} new_op;

ts_status ts_graph_keep_attrs(ts_graph *graph, ts_opcode code, const ts_attrs *attrs, const ts_attrs **out) {
  *out = NULL;
  return ts_op_attr_kind(code) == TS_ATTR_NONE ? TS_SUCCESS : ts_intern_attrs(graph->intern, code, attrs, out);
}

/* Attributes that name regions are the op's own. */
static ts_status make_attrs(ts_graph *graph, ts_opcode code, const ts_attrs *attrs, const ts_attrs **out) {
  ts_attrs *own;
  if (!ts_op_has_regions(code)) return ts_graph_keep_attrs(graph, code, attrs, out);
  TS_TRY(ts_arena_alloc(&graph->arena, ts_attrs_size(ts_op_attr_kind(code)), (void **)&own));
  ts_attrs_canonicalize(code, attrs, own);
  *out = own;
  return TS_SUCCESS;
}

/* Keeps the attributes of another graph's op: they are canonical already. */
static ts_status keep_attrs(ts_graph *graph, const ts_op *op, const ts_attrs **out) {
  *out = NULL;
  return op->attrs ? ts_intern_attrs_of(graph->intern, op->code, op->attrs, out) : TS_SUCCESS;
}

/* True when an op with one result needs no allocation and no new check of ids. */
static inline bool has_room(const ts_graph *graph, const ts_region *owner) {
  return graph->ops.count < graph->ops.capacity && graph->values.count < graph->values.capacity &&
         owner->ops.count < owner->ops.capacity && graph->values.count < TS_NO_ID - 1 &&
         graph->ops.count < TS_NO_ID - 1;
}

static ts_status make_room(ts_graph *graph, ts_region *owner, size_t operand_count, size_t result_count) {
  TS_TRY(check_ids(graph->ops.count, 1, "ops"));
  TS_TRY(check_ids(graph->values.count, result_count, "values"));
  TS_TRY(check_ids(0, operand_count, "operands"));
  TS_TRY(MAKE_ROOM(&graph->ops, 1));
  TS_TRY(MAKE_ROOM(&graph->values, result_count));
  return MAKE_ROOM_IN_REGION(graph, &owner->ops, 1);
}

static ts_status prepare_op(ts_graph *graph, ts_region_id region, const ts_value_id *operands, size_t operand_count,
                            size_t result_count, new_op *out) {
  ts_region *owner = ts_graph_region(graph, region);
  if (result_count != 1 || !has_room(graph, owner)) TS_TRY(make_room(graph, owner, operand_count, result_count));
  out->operands = NULL;
  if (operand_count == 0) return TS_SUCCESS;
  TS_TRY(ts_arena_take(&graph->arena, operand_count * sizeof *operands, (void **)&out->operands));
  for (size_t i = 0; i < operand_count; i++) out->operands[i] = operands[i];
  return TS_SUCCESS;
}

/* Cannot fail: prepare_op has made room. */
static ts_value_id commit_op(ts_graph *graph, ts_region_id region, ts_opcode code, const new_op *new,
                             size_t operand_count, size_t result_count) {
  ts_op_id id = (ts_op_id)graph->ops.count;
  ts_value_id first = (ts_value_id)graph->values.count;
  ts_region *owner = ts_graph_region(graph, region);
  graph->ops.data[graph->ops.count++] = (ts_op){.code = code,
                                                .region = region,
                                                .operand_count = (uint32_t)operand_count,
                                                .result_count = (uint32_t)result_count,
                                                .first_result = first,
                                                .place = graph->place,
                                                .operands = new->operands,
                                                .attrs = new->attrs};
  owner->ops.data[owner->ops.count++] = id;
  ts_buffer *held = ts_attrs_buffer(code, new->attrs);
  if (held) ts_buffer_retain(held);
  return first;
}

/* Cannot fail: make_room has made room. */
static void commit_result(ts_graph *graph, ts_region_id region, uint32_t index, ts_dtype dtype, const ts_shape *shape) {
  graph->values.data[graph->values.count++] = (ts_value){
      .shape = shape, .dtype = dtype, .op = (ts_op_id)graph->ops.count - 1, .index = index, .region = region};
}

static void take_regions(ts_graph *graph, ts_region_id region, ts_op_id op, uint32_t height) {
  ts_region_id held[2];
  size_t count = ts_op_regions(ts_graph_op(graph, op), held);
  for (size_t i = 0; i < count; i++)
    if (ts_graph_region(graph, held[i])->parent == TS_NO_ID) ts_graph_region(graph, held[i])->parent = op;
  ts_region *owner = ts_graph_region(graph, region);
  if (height > owner->height) owner->height = height;
  if (ts_graph_has_effect(graph, ts_graph_op(graph, op))) owner->has_effect = true;
}

/* The arguments of ts_graph_add_op. */
typedef struct new_call {
  ts_region_id region;
  ts_opcode code;
  ts_values operands;
  const ts_attrs *attrs;
} new_call;

static ts_status intern_shapes(ts_graph *graph, const ts_type *types, size_t count, const ts_shape **few, new_op *new) {
  new->shapes = few;
  if (count > 1) TS_TRY(ts_arena_alloc_array(&graph->arena, count, sizeof *few, (void **)&new->shapes));
  for (size_t i = 0; i < count; i++) TS_TRY(ts_intern_shape(graph->intern, &types[i].shape, &new->shapes[i]));
  return TS_SUCCESS;
}

/* `types` has room for the results. */
static ts_status add_op(ts_graph *graph, const new_call *c, ts_result_types *types, ts_value_id *out) {
  uint32_t height;
  const ts_shape *one;
  new_op new;
  ts_region_id region = c->region;
  TS_TRY(ts_infer(graph, c->code, c->operands, c->attrs, types));
  TS_TRY(check_regions(graph, region, c->code, c->attrs, &height));
  TS_TRY(make_attrs(graph, c->code, c->attrs, &new.attrs));
  TS_TRY(intern_shapes(graph, types->data, types->count, &one, &new));
  TS_TRY(prepare_op(graph, region, c->operands.data, c->operands.count, types->count, &new));
  *out = commit_op(graph, region, c->code, &new, c->operands.count, types->count);
  for (size_t i = 0; i < types->count; i++)
    commit_result(graph, region, (uint32_t)i, types->data[i].dtype, new.shapes[i]);
  take_regions(graph, region, (ts_op_id)graph->ops.count - 1, height);
  return TS_SUCCESS;
}

/* An upper bound of an op's results: of a control op the longest list of its regions, of a collective its operands. */
static size_t most_results(const ts_graph *graph, ts_opcode code, size_t operand_count, const ts_attrs *attrs) {
  ts_region_id regions[2];
  int known = ts_op_results(code);
  size_t most = known > 1 ? (size_t)known : 1, count = attrs ? ts_attrs_regions(code, attrs, regions) : 0;
  if (known < 0 && count == 0 && operand_count > most) most = operand_count;
  for (size_t i = 0; i < count; i++) {
    if (regions[i] >= graph->regions.count) continue;
    size_t results = ts_graph_region(graph, regions[i])->results.count;
    if (results > most) most = results;
  }
  return most;
}

ts_status ts_graph_add_op(ts_graph *graph, ts_region_id region, ts_opcode code, ts_values operands,
                          const ts_attrs *attrs, ts_value_id *out) {
  const new_call call = {region, code, operands, attrs};
  ts_type one;
  ts_result_types types = {.data = &one, .room = 1};
  TS_TRY(check_open(graph, region));
  for (size_t i = 0; i < operands.count; i++)
    TS_TRY(check_value(graph, region, operands.data[i], ts_op_name(code), "operand", i));
  types.room = most_results(graph, code, operands.count, attrs);
  if (types.room == 1) return add_op(graph, &call, &types, out);
  TS_TRY(TS_NEW_ARRAY(types.room, &types.data));
  ts_status status = add_op(graph, &call, &types, out);
  ts_free(types.data);
  return status;
}

/* The shapes of an op's results of another graph, as the graph's. */
static ts_status keep_shapes(ts_graph *graph, const ts_graph *from, const ts_op *op, const ts_shape **few,
                             new_op *new) {
  new->shapes = few;
  if (op->result_count > 1)
    TS_TRY(ts_arena_alloc_array(&graph->arena, op->result_count, sizeof *few, (void **)&new->shapes));
  for (uint32_t i = 0; i < op->result_count; i++)
    TS_TRY(keep_shape(graph, from, ts_graph_value(from, op->first_result + i)->shape, &new->shapes[i]));
  return TS_SUCCESS;
}

ts_status ts_graph_add_like(ts_graph *graph, ts_region_id region, const ts_graph *from, ts_op_id like,
                            const ts_value_id *operands, ts_value_id *out) {
  const ts_op op = *ts_graph_op(from, like); /* by value: `from` may be `graph`, whose arrays move */
  const ts_shape *one;
  new_op new = {.attrs = op.attrs};
  TS_TRY(check_open(graph, region));
  if (!ts_intern_holds(graph->intern, from->intern)) TS_TRY(keep_attrs(graph, &op, &new.attrs));
  TS_TRY(keep_shapes(graph, from, &op, &one, &new));
  TS_TRY(prepare_op(graph, region, operands, op.operand_count, op.result_count, &new));
  *out = commit_op(graph, region, op.code, &new, op.operand_count, op.result_count);
  if (op.place && graph->places == from->places) graph->ops.data[graph->ops.count - 1].place = op.place;
  for (uint32_t i = 0; i < op.result_count; i++) {
    ts_dtype dtype = ts_graph_value(from, op.first_result + i)->dtype;
    commit_result(graph, region, i, dtype, new.shapes[i]);
  }
  if (ts_op_is_ordered(op.code)) ts_graph_region(graph, region)->has_effect = true;
  return TS_SUCCESS;
}

/* The attributes of the fusion that holds the region, or new ones. */
static ts_status fusion_attrs(ts_graph *graph, ts_region_id region, ts_region_id body, uint32_t *out_height,
                              const ts_attrs **out) {
  if (is_of_fusion(graph, body)) {
    *out_height = 0;
    *out = ts_graph_op(graph, ts_graph_region(graph, body)->parent)->attrs;
    return TS_SUCCESS;
  }
  ts_attrs attrs = {0};
  attrs.fusion.region = body;
  TS_TRY(check_regions(graph, region, TS_OP_FUSION, &attrs, out_height));
  return make_attrs(graph, TS_OP_FUSION, &attrs, out);
}

ts_status ts_graph_add_fusion(ts_graph *graph, ts_region_id region, ts_region_id body, const ts_value_id *operands,
                              size_t operand_count, ts_value_id *out) {
  size_t result_count = ts_graph_region(graph, body)->results.count;
  uint32_t height;
  new_op new;
  TS_TRY(check_open(graph, region));
  TS_TRY(fusion_attrs(graph, region, body, &height, &new.attrs));
  TS_TRY(prepare_op(graph, region, operands, operand_count, result_count, &new));
  *out = commit_op(graph, region, TS_OP_FUSION, &new, operand_count, result_count);
  for (size_t i = 0; i < result_count; i++) {
    const ts_value *inside = ts_graph_value(graph, ts_graph_region(graph, body)->results.data[i]);
    commit_result(graph, region, (uint32_t)i, inside->dtype, inside->shape);
  }
  take_regions(graph, region, (ts_op_id)graph->ops.count - 1, height);
  return TS_SUCCESS;
}

ts_status ts_graph_reserve(ts_graph *graph, size_t values, size_t ops) {
  TS_TRY(MAKE_ROOM(&graph->values, values));
  return MAKE_ROOM(&graph->ops, ops);
}

ts_status ts_graph_reserve_region(ts_graph *graph, ts_region_id id, size_t params, size_t ops) {
  ts_region *region = ts_graph_region(graph, id);
  TS_TRY(MAKE_ROOM_IN_REGION(graph, &region->params, params));
  return MAKE_ROOM_IN_REGION(graph, &region->ops, ops);
}

/* ---- shorthands ---- */

ts_status ts_graph_constant(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape,
                            ts_scalar value, ts_value_id *out) {
  ts_attrs attrs;
  ts_attrs_set_constant(&attrs, dtype, shape, value);
  return ts_graph_add_op(graph, region, TS_OP_CONSTANT, (ts_values){0}, &attrs, out);
}

ts_status ts_graph_broadcast_to(ts_graph *graph, ts_region_id region, ts_value_id value, const ts_shape *shape,
                                ts_value_id *out) {
  TS_TRY(check_value(graph, region, value, "broadcast", "operand", 0));
  const ts_value *operand = ts_graph_value(graph, value);
  if (ts_shape_equal(operand->shape, shape)) {
    *out = value;
    return TS_SUCCESS;
  }
  TS_TRY(ts_shape_check(shape, operand->dtype));
  int32_t lead = shape->rank - operand->shape->rank;
  if (lead < 0)
    return ts_error(TS_INVALID_ARGUMENT, "broadcast(%s): the result %s has a smaller rank, expected at least %d",
                    TS_SHAPE_STR(operand->dtype, operand->shape), TS_SHAPE_STR(operand->dtype, shape),
                    operand->shape->rank);
  ts_attrs attrs;
  ts_shape_copy(&attrs.broadcast.shape, shape);
  attrs.broadcast.axes.rank = operand->shape->rank;
  for (int32_t i = 0; i < operand->shape->rank; i++) attrs.broadcast.axes.dims[i] = lead + i;
  return ts_graph_add_op(graph, region, TS_OP_BROADCAST, (ts_values){&value, 1}, &attrs, out);
}

ts_status ts_graph_convert(ts_graph *graph, ts_region_id region, ts_value_id value, ts_dtype dtype, ts_value_id *out) {
  TS_TRY(check_value(graph, region, value, "convert", "operand", 0));
  if (ts_graph_value(graph, value)->dtype == dtype) {
    *out = value;
    return TS_SUCCESS;
  }
  return ts_graph_add_op(graph, region, TS_OP_CONVERT, (ts_values){&value, 1}, &(ts_attrs){.dtype = dtype}, out);
}

/* ---- reading ---- */

/* True when the op moves or selects elements. */
static bool only_moves(ts_opcode code) {
  ts_op_class class = ts_op_get_class(code);
  return class == TS_CLASS_SELECT || class == TS_CLASS_SHAPE || class == TS_CLASS_INDEXED || code == TS_OP_CONSTANT;
}

static bool has_kernel(ts_dtype type, ts_opcode code) {
  if (!ts_dtype_has_kernels(type)) return false;
  ts_op_class class = ts_op_get_class(code);
  if (ts_dtype_is_small(type)) return class == TS_CLASS_CONVERT || only_moves(code);
  return !ts_dtype_is_complex(type) || class == TS_CLASS_COMPLEX || only_moves(code);
}

bool ts_graph_has_kernel_types(const ts_graph *graph, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!has_kernel(ts_graph_value(graph, op->operands[i])->dtype, op->code)) return false;
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!has_kernel(ts_graph_value(graph, op->first_result + i)->dtype, op->code)) return false;
  return true;
}

bool ts_graph_has_effect(const ts_graph *graph, const ts_op *op) {
  ts_region_id held[2];
  if (ts_op_is_ordered(op->code)) return true;
  size_t count = ts_op_has_regions(op->code) ? ts_op_regions(op, held) : 0;
  for (size_t i = 0; i < count; i++)
    if (ts_graph_region(graph, held[i])->has_effect) return true;
  return false;
}

uint32_t ts_op_height(const ts_graph *graph, const ts_op *op) {
  ts_region_id held[2];
  uint32_t height = 0;
  size_t count = ts_op_regions(op, held);
  for (size_t i = 0; i < count; i++) {
    uint32_t levels = ts_graph_region(graph, held[i])->height + 1;
    if (levels > height) height = levels;
  }
  return height;
}

ts_status ts_graph_count_uses(const ts_graph *graph, uint32_t **out) {
  uint32_t *uses;
  *out = NULL;
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &uses));
  for (size_t r = 0; r < graph->regions.count; r++) {
    const ts_region *region = &graph->regions.data[r];
    for (size_t i = 0; i < region->ops.count; i++) {
      const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
      for (uint32_t k = 0; k < op->operand_count; k++) uses[op->operands[k]]++;
    }
    for (size_t i = 0; i < region->results.count; i++) uses[region->results.data[i]]++;
  }
  *out = uses;
  return TS_SUCCESS;
}
