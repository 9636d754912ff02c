/* Loops, branches and calls, and the partitioning of their regions. */
#include "shard/partitioner.h"

/* An op with two regions, which are also partitioned. */
typedef struct control {
  const ts_op *op;
  uint32_t first;              /* operand that is the regions' first parameter */
  const ts_sharding **params;  /* of the regions' parameters */
  const ts_sharding **results; /* of the op's results */
  ts_scope scopes[2];
  ts_value_id *values; /* room for the results of a region and one more */
} control;

static bool is_condition(const control *c, int which) { return c->op->code == TS_OP_WHILE && which == 0; }

static ts_status fill_region(ts_partitioner *p, control *c, int which) {
  const ts_region *region = ts_graph_region(p->in, c->op->attrs->regions.regions[which]);
  for (size_t i = 0; i < region->params.count; i++) {
    const ts_value *v = ts_graph_value(p->in, region->params.data[i]);
    ts_value_id made;
    ts_shape part;
    ts_sharding_part(ts_part_mesh(p), c->params[i], v->shape, &part);
    TS_TRY(ts_shardings_give(p->shardings, region->params.data[i], c->params[i], true));
    TS_TRY(ts_graph_add_param(p->to, c->scopes[which].region, v->dtype, &part, &made));
    TS_TRY(ts_part_add_variant(p, region->params.data[i], c->params[i], 0, made));
  }
  for (size_t i = 0; !is_condition(c, which) && i < region->results.count; i++)
    TS_TRY(ts_shardings_give(p->shardings, region->results.data[i], c->results[i], false));
  TS_TRY(ts_shardings_find_in(p->shardings, p->in, c->op->attrs->regions.regions[which], p->cancel));
  return ts_part_visit_ops(p, c->op->attrs->regions.regions[which]);
}

static ts_status partition_region(ts_partitioner *p, control *c, int which) {
  ts_scope *outer = p->scope;
  ts_region_id made;
  TS_TRY(ts_graph_add_region(p->to, &made));
  ts_scope_init(&c->scopes[which], made);
  p->scope = &c->scopes[which];
  ts_status status = fill_region(p, c, which);
  p->scope = outer;
  return status;
}

static ts_status finish_region(ts_partitioner *p, control *c, int which) {
  const ts_region *region = ts_graph_region(p->in, c->op->attrs->regions.regions[which]);
  ts_scope *outer = p->scope;
  size_t count = region->results.count;
  ts_status status = TS_SUCCESS;
  p->scope = &c->scopes[which];
  for (size_t i = 0; !status && i < count; i++)
    status = ts_part_get(p, region->results.data[i], is_condition(c, which) ? p->shardings->whole : c->results[i],
                         &c->values[i]);
  p->scope = outer;
  return status;
}

/* When one region needs the partition's coordinates, both get them as a parameter, the op as an operand, and a loop as
 * a loop variable. */
static ts_status share_coordinates(ts_partitioner *p, control *c) {
  bool needed = c->scopes[0].coordinates != TS_NO_ID || c->scopes[1].coordinates != TS_NO_ID;
  for (int i = 0; needed && i < 2; i++) TS_TRY(ts_part_need_coordinates(p, &c->scopes[i]));
  return needed ? ts_part_need_coordinates(p, p->scope) : TS_SUCCESS;
}

static ts_status set_region_results(ts_partitioner *p, control *c) {
  for (int which = 0; which < 2; which++) {
    const ts_region *region = ts_graph_region(p->in, c->op->attrs->regions.regions[which]);
    size_t count = region->results.count;
    TS_TRY(finish_region(p, c, which));
    TS_TRY(share_coordinates(p, c)); /* resharding a result may need them */
    if (c->op->code == TS_OP_WHILE && which == 1 && c->scopes[1].coordinates != TS_NO_ID)
      c->values[count++] = c->scopes[1].coordinates;
    TS_TRY(ts_graph_set_results(p->to, c->scopes[which].region, c->values, count));
  }
  return TS_SUCCESS;
}

static ts_status add_control(ts_partitioner *p, control *c) {
  ts_attrs attrs = {.regions = {.regions = {c->scopes[0].region, c->scopes[1].region}}};
  uint32_t count = c->op->operand_count;
  ts_value_id first;
  for (uint32_t i = 0; i < count; i++)
    TS_TRY(ts_part_get(p, c->op->operands[i], i < c->first ? p->shardings->whole : c->params[i - c->first],
                       &c->values[i]));
  if (c->scopes[0].coordinates != TS_NO_ID) {
    TS_TRY(ts_part_need_coordinates(p, p->scope));
    c->values[count++] = p->scope->coordinates;
  }
  TS_TRY(ts_part_add(p, c->op->code, c->values, count, &attrs, &first));
  for (uint32_t i = 0; i < c->op->result_count; i++)
    TS_TRY(ts_part_add_variant(p, c->op->first_result + i, c->results[i], 0, first + i));
  return TS_SUCCESS;
}

static ts_status build_control(ts_partitioner *p, control *c) {
  const ts_op *op = c->op;
  for (uint32_t i = c->first; i < op->operand_count; i++) c->params[i - c->first] = p->of[op->operands[i]]->sharding;
  for (uint32_t i = 0; i < op->result_count; i++) {
    c->results[i] = p->shardings->of[op->first_result + i];
    if (op->code == TS_OP_WHILE && c->results[i]->count == 0) c->results[i] = c->params[i];
    if (op->code == TS_OP_WHILE) c->params[i] = c->results[i];
  }
  TS_TRY(partition_region(p, c, 0));
  TS_TRY(partition_region(p, c, 1));
  TS_TRY(set_region_results(p, c));
  return add_control(p, c);
}

ts_status ts_part_control(ts_partitioner *p, const ts_op *op) {
  control c = {.op = op, .first = op->code == TS_OP_COND ? 1 : 0};
  size_t most = (size_t)op->operand_count + op->result_count + 1;
  ts_status status = TS_NEW_ARRAY(most, &c.params);
  if (!status) status = TS_NEW_ARRAY(most, &c.results);
  if (!status) status = TS_NEW_ARRAY(most, &c.values);
  if (!status) status = build_control(p, &c);
  ts_free(c.params);
  ts_free(c.results);
  ts_free(c.values);
  return status;
}

/* ---- calls ---- */

/* A call is its region on the operands: the values inside are those outside. */
ts_status ts_part_call(ts_partitioner *p, const ts_op *op) {
  ts_region_id id = op->attrs->regions.regions[0];
  const ts_region *region = ts_graph_region(p->in, id);
  for (size_t i = 0; i < region->params.count; i++) {
    TS_TRY(ts_shardings_give(p->shardings, region->params.data[i], p->of[op->operands[i]]->sharding, true));
    p->of[region->params.data[i]] = p->of[op->operands[i]];
  }
  for (size_t i = 0; i < region->results.count; i++)
    TS_TRY(ts_shardings_give(p->shardings, region->results.data[i], p->shardings->of[op->first_result + i], false));
  TS_TRY(ts_shardings_find_in(p->shardings, p->in, id, p->cancel));
  TS_TRY(ts_part_visit_ops(p, id));
  for (size_t i = 0; i < region->results.count; i++) p->of[op->first_result + i] = p->of[region->results.data[i]];
  return TS_SUCCESS;
}
