/* Inference of collectives, for each operand by itself. Axes are axes of the graph's mesh. */
#include "ir/infer.h"

static ts_status check_mesh_axes(const ts_infer_call *call, const ts_dims *axes) {
  const ts_mesh *mesh = &call->graph->mesh;
  if (mesh->rank == 0) return ts_infer_error(call, "the program has no mesh, expected one");
  return ts_infer_check_axes(call, "axes", axes, mesh->rank);
}

static ts_status check_dim(const ts_infer_call *call, const char *what, int32_t dim, const ts_shape *shape) {
  if (dim >= 0 && dim < shape->rank) return TS_SUCCESS;
  return ts_infer_error(call, "%s is %d, expected one of [0, %d) for rank %d", what, dim, shape->rank, shape->rank);
}

/* Cuts a dim of the type into one part for each member of a group. */
static ts_status cut(const ts_infer_call *call, const char *what, int32_t dim, const ts_dims *axes, ts_type *out) {
  int32_t count = ts_mesh_group_size(&call->graph->mesh, axes);
  TS_TRY(check_dim(call, what, dim, &out->shape));
  if (out->shape.dims[dim] % count != 0)
    return ts_infer_error(call, "dim %d has size %lld, expected a multiple of %d", dim, (long long)out->shape.dims[dim],
                          count);
  out->shape.dims[dim] /= count;
  return TS_SUCCESS;
}

static ts_status join(const ts_infer_call *call, const char *what, int32_t dim, const ts_dims *axes, ts_type *out) {
  TS_TRY(check_dim(call, what, dim, &out->shape));
  int64_t count = ts_mesh_group_size(&call->graph->mesh, axes), size = out->shape.dims[dim];
  if (size > INT64_MAX / count) return ts_infer_error(call, "the result is too large");
  out->shape.dims[dim] = size * count;
  return TS_SUCCESS;
}

static ts_status check_members(const ts_infer_call *call, const char *what, const ts_dims *members) {
  int32_t count = ts_mesh_group_size(&call->graph->mesh, &call->attrs->permute.axes);
  for (int32_t i = 0; i < members->rank; i++)
    if (members->dims[i] < 0 || members->dims[i] >= count)
      return ts_infer_error(call, "%s has member %lld, expected one of [0, %d)", what, (long long)members->dims[i],
                            count);
  for (int32_t i = 0; i < members->rank; i++)
    for (int32_t k = 0; k < i; k++)
      if (members->dims[i] == members->dims[k])
        return ts_infer_error(call, "%s has member %lld twice, expected distinct members", what,
                              (long long)members->dims[i]);
  return TS_SUCCESS;
}

static ts_status infer_permute(const ts_infer_call *call) {
  const ts_attrs *attrs = call->attrs;
  TS_TRY(check_mesh_axes(call, &attrs->permute.axes));
  if (attrs->permute.sources.rank < 0 || attrs->permute.sources.rank > TS_MAX_RANK ||
      attrs->permute.sources.rank != attrs->permute.targets.rank)
    return ts_infer_error(call, "there are %d sources and %d targets, expected as many", attrs->permute.sources.rank,
                          attrs->permute.targets.rank);
  TS_TRY(check_members(call, "sources", &attrs->permute.sources));
  return check_members(call, "targets", &attrs->permute.targets);
}

static ts_status infer_constraint(const ts_infer_call *call, const ts_type *type) {
  const ts_attrs *attrs = call->attrs;
  ts_sharding sharding;
  TS_TRY(check_mesh_axes(call, &attrs->sharding.axes));
  if (attrs->sharding.dims.rank < 0 || attrs->sharding.dims.rank > TS_MAX_RANK)
    return ts_infer_error(call, "dims has %d entries", attrs->sharding.dims.rank);
  ts_status status =
      ts_sharding_make(&call->graph->mesh, &attrs->sharding.axes, &attrs->sharding.dims, &type->shape, &sharding);
  return ts_error_context(status, "%s", ts_op_name(call->code));
}

static ts_status infer_all_to_all(const ts_infer_call *call, ts_type *out) {
  const ts_attrs *attrs = call->attrs;
  TS_TRY(check_mesh_axes(call, &attrs->exchange.axes));
  TS_TRY(cut(call, "split", attrs->exchange.split, &attrs->exchange.axes, out));
  return join(call, "concat", attrs->exchange.concat, &attrs->exchange.axes, out);
}

static ts_status infer_rooted(const ts_infer_call *call) {
  const ts_attrs *attrs = call->attrs;
  TS_TRY(check_mesh_axes(call, &attrs->rooted.axes));
  int32_t count = ts_mesh_group_size(&call->graph->mesh, &attrs->rooted.axes), root = attrs->rooted.root;
  return root >= 0 && root < count ? TS_SUCCESS
                                   : ts_infer_error(call, "root is %d, expected one of [0, %d)", root, count);
}

/* `out` is the operand's type, which becomes the result's. */
static ts_status infer_one(const ts_infer_call *call, ts_type *out) {
  const ts_attrs *attrs = call->attrs;
  switch ((ts_ops_COLLECTIVE)call->code) {
  case TS_OP_SHARDING_CONSTRAINT: return infer_constraint(call, out);
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR:
  case TS_OP_BARRIER: return check_mesh_axes(call, &attrs->axes);
  case TS_OP_ALL_GATHER:
    TS_TRY(check_mesh_axes(call, &attrs->along.axes));
    return join(call, "dim", attrs->along.dim, &attrs->along.axes, out);
  case TS_OP_REDUCE_SCATTER:
    TS_TRY(check_mesh_axes(call, &attrs->along.axes));
    return cut(call, "dim", attrs->along.dim, &attrs->along.axes, out);
  case TS_OP_ALL_TO_ALL: return infer_all_to_all(call, out);
  case TS_OP_COLLECTIVE_PERMUTE: return infer_permute(call);
  case TS_OP_COLLECTIVE_BROADCAST: return infer_rooted(call);
  }
  return ts_infer_unknown(call);
}

ts_status ts_infer_collective(const ts_infer_call *call, ts_type *out) {
  for (size_t i = 0; i < call->count; i++) {
    const ts_value *operand = ts_infer_operand(call, i);
    ts_type_set(&out[i], operand->dtype, operand->shape);
    TS_TRY(infer_one(call, &out[i]));
  }
  return TS_SUCCESS;
}
