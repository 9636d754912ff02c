/* Text about a partitioned program: its collectives, and the shardings that propagation found. */
#include "shard/propagate.h"
#include "shard/shard.h"

/* ---- the report ---- */

static void print_collective(const ts_graph *graph, const ts_op *op, ts_text *out, int64_t *inout_bytes) {
  const ts_dims *axes = ts_op_mesh_axes(op);
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

static void print_op(const char *before, const ts_reported_op *op, const char *after, ts_text *out) {
  ts_text_format(out, "%s%%%u = %s%s", before, op->result, ts_op_name(op->code), after);
}

static void print_findings(const ts_shard_report *report, ts_text *out) {
  for (size_t i = 0; i < report->replicated.count; i++)
    print_op("replicated for want of a rule: ", &report->replicated.data[i], "\n", out);
  for (size_t i = 0; i < report->gathered.count; i++) {
    const ts_reported_op *op = &report->gathered.data[i];
    print_op("gathered for want of a rule: ", op, "", out);
    ts_text_format(out, ", dim %d of operand %d\n", (int)op->dim, (int)op->operand);
  }
  for (size_t i = 0; i < report->split.count; i++)
    print_op(i == 0 ? "float reductions are split: " : ", ", &report->split.data[i], "", out);
  if (report->split.count > 0) ts_text_append(out, "\n");
  if (report->values.length > 0) ts_text_append_n(out, report->values.data, report->values.length);
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
  if (report) print_findings(report, out);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

void ts_shard_report_deinit(ts_shard_report *report) {
  TS_VEC_FREE(&report->split);
  TS_VEC_FREE(&report->replicated);
  TS_VEC_FREE(&report->gathered);
  ts_text_deinit(&report->values);
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
  return ts_graph_add_op(to, TS_ROOT, TS_OP_SHARDING_CONSTRAINT, (ts_values){inout, 1}, &attrs, inout);
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
