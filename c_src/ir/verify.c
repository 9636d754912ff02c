/* Checks every property that other parts rely on, independently of ts_graph_add_op. */
#include "base/deep.h"
#include "ir/attrs.h"

#include <stdio.h>
#include <string.h>

typedef struct verifier {
  const ts_graph *graph;
  int depth;                       /* of the current region */
  bool *defined;                   /* by value id: it was defined, so it may be used */
  bool *op_seen;                   /* by op id: it was found in a region */
  bool *region_seen, *region_done; /* visit begun, and completed */
} verifier;

static ts_status verify_region(verifier *v, ts_region_id id, ts_op_id parent);

static ts_status broken(const char *what) { return ts_error(TS_INTERNAL, "%s", what); }

/* Checks that `id` is a value of the region and already defined. */
static ts_status check_use(const verifier *v, ts_region_id region, ts_value_id id) {
  if (id >= v->graph->values.count) return broken("uses no value of the graph");
  if (ts_graph_value(v->graph, id)->region != region) return broken("uses a value of another region");
  if (!v->defined[id]) return broken("uses a value before it is defined");
  return TS_SUCCESS;
}

static ts_status define(verifier *v, ts_value_id id, ts_op_id op, size_t index, ts_region_id region) {
  if (id >= v->graph->values.count) return broken("defines no value of the graph");
  const ts_value *value = ts_graph_value(v->graph, id);
  if (v->defined[id]) return broken("defines a value twice");
  if (value->op != op || value->index != index || value->region != region)
    return broken("a value does not know who defines it");
  if (!ts_dtype_supported(value->dtype))
    return ts_error(TS_UNIMPLEMENTED, "type %s is not supported yet", ts_dtype_name(value->dtype));
  TS_TRY(ts_shape_check(value->shape, value->dtype));
  v->defined[id] = true;
  return TS_SUCCESS;
}

/* Checks the results' types against inference. */
static ts_status check_types(const verifier *v, const ts_op *op) {
  ts_result_types types = {.room = op->result_count};
  TS_TRY(TS_NEW_ARRAY(types.room, &types.data));
  ts_status status = ts_infer(v->graph, op->code, (ts_values){op->operands, op->operand_count}, op->attrs, &types);
  if (!status && types.count != op->result_count) status = broken("has another number of results than inferred");
  for (size_t i = 0; !status && i < types.count; i++) {
    const ts_value *value = ts_graph_value(v->graph, op->first_result + (ts_value_id)i);
    const ts_type *type = &types.data[i];
    if (value->dtype != type->dtype || !ts_shape_equal(value->shape, &type->shape))
      status = ts_error(TS_INTERNAL, "result %zu is %s, inferred %s", i, TS_SHAPE_STR(value->dtype, value->shape),
                        TS_SHAPE_STR(type->dtype, &type->shape));
  }
  ts_free(types.data);
  return status;
}

/* Checks that attributes are canonical: hashing and comparing rely on this. */
static ts_status check_attrs(const ts_op *op) {
  ts_attr_kind kind = ts_op_attr_kind(op->code);
  ts_attrs canonical;
  if (kind == TS_ATTR_NONE) return TS_SUCCESS;
  ts_attrs_canonicalize(op->code, op->attrs, &canonical);
  if (!ts_attrs_equal(kind, &canonical, op->attrs)) return broken("attributes are not in canonical form");
  return TS_SUCCESS;
}

static ts_status verify_op_body(verifier *v, ts_op_id id, const ts_op *op, ts_region_id region) {
  ts_region_id regions[2];
  if (op->region != region) return broken("is listed in another region than its own");
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(check_use(v, region, op->operands[i]));
  if ((op->attrs != NULL) != (ts_op_attr_kind(op->code) != TS_ATTR_NONE)) return broken("attributes and op do not fit");
  size_t region_count = op->attrs ? ts_op_regions(op, regions) : 0;
  for (size_t i = 0; i < region_count; i++) TS_TRY(verify_region(v, regions[i], id));
  if (op->result_count == 0) return broken("has no results");
  for (uint32_t i = 0; i < op->result_count; i++) TS_TRY(define(v, op->first_result + i, id, i, region));
  TS_TRY(check_types(v, op));
  return check_attrs(op);
}

static ts_status verify_op(verifier *v, ts_op_id id, ts_region_id region) {
  if (id >= v->graph->ops.count) return broken("a region lists no op of the graph");
  const ts_op *op = ts_graph_op(v->graph, id);
  if ((unsigned)op->code >= TS_OP_COUNT) return broken("an op has no opcode");
  if (v->op_seen[id]) return ts_error(TS_INTERNAL, "%s: is listed twice", ts_op_name(op->code));
  v->op_seen[id] = true;
  ts_status status = verify_op_body(v, id, op, region);
  if (status) return ts_error_context(status, "op %u, %s", id, ts_op_name(op->code));
  return TS_SUCCESS;
}

/* Equal fusions share a region: it was checked with the first of them. */
static bool is_shared(const verifier *v, const ts_region *region, ts_op_id holder) {
  const ts_graph *g = v->graph;
  if (holder == TS_NO_ID || region->parent >= g->ops.count || !v->op_seen[region->parent]) return false;
  return ts_graph_op(g, holder)->code == TS_OP_FUSION && ts_graph_op(g, region->parent)->code == TS_OP_FUSION;
}

static ts_status verify_inside(verifier *v, ts_region_id id, ts_op_id parent) {
  const ts_region *region = ts_graph_region(v->graph, id);
  if (region->parent != parent) return broken("a region does not know its owner");
  if (!region->finished) return broken("a region has no results yet");
  for (size_t i = 0; i < region->params.count; i++) TS_TRY(define(v, region->params.data[i], TS_NO_ID, i, id));
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(verify_op(v, region->ops.data[i], id));
  for (size_t i = 0; i < region->results.count; i++) {
    ts_status status = check_use(v, id, region->results.data[i]);
    if (status) return ts_error_context(status, "result %zu", i);
  }
  v->region_done[id] = true;
  return TS_SUCCESS;
}

typedef struct region_call {
  verifier *v;
  ts_region_id id;
  ts_op_id parent;
} region_call;

static ts_status region_on_stack(void *context) {
  const region_call *c = context;
  return verify_inside(c->v, c->id, c->parent);
}

static ts_status verify_region(verifier *v, ts_region_id id, ts_op_id parent) {
  if (id >= v->graph->regions.count) return broken("holds no region of the graph");
  if (v->depth > TS_MAX_LEVELS) return broken("regions are nested too deep");
  if (v->region_done[id] && is_shared(v, ts_graph_region(v->graph, id), parent)) return TS_SUCCESS;
  if (v->region_seen[id]) return broken("a region has two owners");
  v->region_seen[id] = true;
  v->depth++;
  TS_TRY(ts_deep_call((size_t)v->depth, region_on_stack, &(region_call){v, id, parent}));
  v->depth--;
  return TS_SUCCESS;
}

static ts_status check_shardings(const ts_graph *g, ts_root_side side) {
  const ts_region *root = ts_graph_region(g, TS_ROOT);
  size_t given = side == TS_PARAMS ? g->param_shardings.count : g->result_shardings.count;
  size_t count = side == TS_PARAMS ? root->params.count : root->results.count;
  const char *what = side == TS_PARAMS ? "argument" : "result";
  for (size_t i = 0; i < given; i++) {
    const ts_sharding *sharding = ts_graph_sharding(g, side, i);
    if (!sharding) continue;
    if (i >= count) return ts_error(TS_INVALID_ARGUMENT, "there is no %s %zu that a sharding is for", what, i + 1);
    ts_value_id value = side == TS_PARAMS ? root->params.data[i] : root->results.data[i];
    TS_TRY(ts_error_context(ts_sharding_check(&g->mesh, sharding, ts_graph_value(g, value)->shape), "%s %zu", what,
                            i + 1));
  }
  return TS_SUCCESS;
}

/* The last parameter has a partition's coordinates. */
static ts_status check_coordinates(const ts_graph *g) {
  const ts_region *root = ts_graph_region(g, TS_ROOT);
  if (!g->mesh.coordinates) return TS_SUCCESS;
  const ts_value *last = root->params.count ? ts_graph_value(g, root->params.data[root->params.count - 1]) : NULL;
  if (last && last->dtype == TS_S32 && last->shape->rank == 1 && last->shape->dims[0] == g->mesh.rank)
    return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the last parameter is no s32[%d] with a partition's coordinates", g->mesh.rank);
}

/* Shardings of an unpartitioned program cut its values. Shardings of a partitioned program relate its values, which are
 * parts, to the whole tensors. */
static ts_status check_mesh(const ts_graph *g) {
  TS_TRY(ts_mesh_check(&g->mesh));
  TS_TRY(check_coordinates(g));
  if (g->mesh.partitioned) return TS_SUCCESS;
  TS_TRY(check_shardings(g, TS_PARAMS));
  return check_shardings(g, TS_RESULTS);
}

static ts_status run(verifier *v) {
  TS_TRY(check_mesh(v->graph));
  TS_TRY(TS_NEW_ARRAY(v->graph->values.count, &v->defined));
  TS_TRY(TS_NEW_ARRAY(v->graph->ops.count, &v->op_seen));
  TS_TRY(TS_NEW_ARRAY(v->graph->regions.count, &v->region_seen));
  TS_TRY(TS_NEW_ARRAY(v->graph->regions.count, &v->region_done));
  return verify_region(v, TS_ROOT, TS_NO_ID);
}

ts_status ts_graph_verify(const ts_graph *graph) {
  verifier v = {.graph = graph};
  ts_status status = run(&v);
  ts_free(v.defined);
  ts_free(v.op_seen);
  ts_free(v.region_seen);
  ts_free(v.region_done);
  return status;
}
