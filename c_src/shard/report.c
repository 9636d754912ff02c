/* What a partitioned program does together, and what propagation found; and parts of tensors. */
#include "shard/propagate.h"
#include "shard/shard.h"

#include <string.h>

/* ---- the report ---- */

static const ts_dims *axes_of(const ts_op *op) {
  switch (ts_op_attr_kind(op->code)) {
  case TS_ATTR_ALONG: return &op->attrs->along.axes;
  case TS_ATTR_EXCHANGE: return &op->attrs->exchange.axes;
  case TS_ATTR_PERMUTE: return &op->attrs->permute.axes;
  case TS_ATTR_ROOTED: return &op->attrs->rooted.axes;
  default: return &op->attrs->axes;
  }
}

static void print_collective(const ts_graph *graph, const ts_op *op, ts_text *out, int64_t *inout_bytes) {
  const ts_dims *axes = axes_of(op);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *value = ts_graph_value(graph, op->operands[i]);
    bytes += ts_shape_bytes(value->shape, value->dtype);
  }
  ts_text_format(out, "%s over [", ts_op_name(op->code));
  for (int32_t i = 0; i < axes->rank; i++) ts_text_format(out, i ? ",%d" : "%d", (int)axes->dims[i]);
  ts_text_format(out, "]: %u tensor%s, %lld bytes\n", op->operand_count, op->operand_count == 1 ? "" : "s",
                 (long long)bytes);
  *inout_bytes += bytes;
}

static bool is_collective(const ts_op *op) {
  return ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE && op->code != TS_OP_SHARDING_CONSTRAINT;
}

ts_status ts_shard_print_report(const ts_graph *partitioned, const ts_shard_report *report, ts_text *out) {
  int64_t bytes = 0;
  size_t count = 0;
  for (size_t i = 0; i < partitioned->ops.count; i++) {
    const ts_op *op = &partitioned->ops.data[i];
    if (!is_collective(op)) continue;
    print_collective(partitioned, op, out, &bytes);
    count++;
  }
  ts_text_format(out, "%zu collective%s, %lld bytes of each of %d partitions\n", count, count == 1 ? "" : "s",
                 (long long)bytes, ts_mesh_partitions(&partitioned->mesh));
  for (size_t i = 0; report && i < report->replicated.count; i++)
    ts_text_format(out, "replicated for want of a rule: %s\n", ts_op_name(report->replicated.data[i]));
  if (report && report->splits_float_reductions) ts_text_append(out, "float reductions are split\n");
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

/* ---- the shardings of values ---- */

static ts_status constrain(ts_graph *to, const ts_sharding *sharding, ts_value_id *inout) {
  ts_attrs attrs;
  attrs.sharding.axes.rank = attrs.sharding.dims.rank = sharding->count;
  for (int32_t i = 0; i < sharding->count; i++) {
    attrs.sharding.axes.dims[i] = sharding->cuts[i].axis;
    attrs.sharding.dims.dims[i] = sharding->cuts[i].dim;
  }
  if (sharding->count == 0) return TS_SUCCESS;
  return ts_graph_add_op(to, TS_ROOT, TS_OP_SHARDING_CONSTRAINT, inout, 1, &attrs, inout);
}

static ts_status annotate_ops(const ts_graph *in, const ts_shardings *s, ts_graph *to, ts_value_id *map) {
  const ts_region *root = ts_graph_region(in, TS_ROOT);
  TS_TRY(ts_graph_add_params_like(to, TS_ROOT, in, TS_ROOT, map));
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_op *op = ts_graph_op(in, root->ops.data[i]);
    TS_TRY(ts_graph_copy_op(in, root->ops.data[i], to, TS_ROOT, map));
    for (uint32_t k = 0; op->code != TS_OP_SHARDING_CONSTRAINT && k < op->result_count; k++)
      TS_TRY(constrain(to, s->of[op->first_result + k], &map[op->first_result + k]));
  }
  return TS_SUCCESS;
}

static ts_status annotate_results(const ts_graph *in, const ts_shardings *s, ts_graph *to, const ts_value_id *map) {
  const ts_region *root = ts_graph_region(in, TS_ROOT);
  ts_value_id *results;
  ts_status status = TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(root->results.count, &results));
  for (size_t i = 0; !status && i < root->results.count; i++) {
    results[i] = map[root->results.data[i]];
    if (!ts_graph_sharding(in, TS_RESULTS, i))
      status = ts_graph_set_sharding(to, TS_RESULTS, i, s->of[root->results.data[i]]);
  }
  if (!status) status = ts_graph_set_results(to, TS_ROOT, results, root->results.count);
  ts_free(results);
  return status;
}

static ts_status annotate(const ts_graph *in, const ts_shardings *s, ts_graph *to) {
  ts_value_id *map;
  TS_TRY(ts_graph_set_name(to, in->name));
  TS_TRY(TS_NEW_ARRAY(in->values.count, &map));
  ts_status status = annotate_ops(in, s, to, map);
  if (!status) status = annotate_results(in, s, to, map);
  ts_free(map);
  return status;
}

ts_status ts_shard_annotate(const ts_graph *in, ts_graph **out) {
  ts_shardings shardings;
  *out = NULL;
  if (in->mesh.rank == 0) return ts_error(TS_INVALID_ARGUMENT, "propagate: the program has no mesh");
  TS_TRY(ts_shardings_find(in, NULL, &shardings));
  ts_status status = ts_graph_create_from(in, out);
  if (!status) status = annotate(in, &shardings, *out);
  ts_shardings_deinit(&shardings);
  if (!status) return TS_SUCCESS;
  ts_graph_destroy(*out);
  *out = NULL;
  return status;
}

/* ---- parts of tensors ---- */

/* Copies between a part and its place in the whole. */
static void copy_part(const ts_buffer *whole, const ts_shape *start, const ts_buffer *part, bool to_part) {
  int64_t strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0};
  size_t size = ts_dtype_size(part->dtype);
  ts_shape_strides(&whole->shape, strides);
  for (int64_t i = 0; i < ts_shape_elements(&part->shape); i++) {
    int64_t at = 0;
    for (int32_t d = 0; d < part->shape.rank; d++) at += (start->dims[d] + index[d]) * strides[d];
    char *in_whole = (char *)whole->data + (size_t)at * size, *in_part = (char *)part->data + (size_t)i * size;
    memcpy(to_part ? in_part : in_whole, to_part ? in_whole : in_part, size);
    for (int32_t d = part->shape.rank - 1; d >= 0 && ++index[d] == part->shape.dims[d]; d--) index[d] = 0;
  }
}

ts_status ts_shard_cut(const ts_mesh *mesh, const ts_sharding *sharding, const ts_buffer *whole, int32_t partition,
                       ts_pool *pool, ts_buffer **out) {
  ts_shape part, start;
  ts_sharding_part(mesh, sharding, &whole->shape, &part);
  ts_sharding_start(mesh, sharding, &part, partition, &start);
  TS_TRY(ts_buffer_create(pool, whole->dtype, &part, out));
  copy_part(whole, &start, *out, true);
  return TS_SUCCESS;
}

ts_status ts_shard_join(const ts_mesh *mesh, const ts_sharding *sharding, ts_buffer *const *parts, ts_pool *pool,
                        ts_buffer **out) {
  ts_shape whole, start;
  ts_shape_copy(&whole, &parts[0]->shape);
  for (int32_t i = 0; i < sharding->count; i++)
    whole.dims[sharding->cuts[i].dim] *= mesh->sizes[sharding->cuts[i].axis];
  TS_TRY(ts_buffer_create(pool, parts[0]->dtype, &whole, out));
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    ts_sharding_start(mesh, sharding, &parts[0]->shape, p, &start);
    copy_part(*out, &start, parts[p], false);
  }
  return TS_SUCCESS;
}
