/* Partial sums that are summed late. A contraction over a dim that is cut makes terms: the value is their sum over the
 * group. Linear ops can work on terms, so that a sum of two gradients is one message, not two, and the summed values
 * may be smaller. A walk backwards over a region finds for each value whether that sends fewer bytes; sums that need
 * not wait for each other become one message anyway (combine.c). Terms are never rounded to a narrower type. */
#include "base/alloc.h"
#include "shard/partitioner.h"

ts_status ts_deferral_create(size_t values, ts_deferral *out) {
  TS_TRY(TS_NEW_ARRAY(values, &out->partial));
  TS_TRY(TS_NEW_ARRAY(values, &out->bytes));
  TS_TRY(TS_NEW_ARRAY(values, &out->whole));
  return TS_NEW_ARRAY(values, &out->later);
}

void ts_deferral_free(ts_deferral *d) {
  ts_free(d->partial);
  ts_free(d->bytes);
  ts_free(d->whole);
  ts_free(d->later);
}

bool ts_part_may_wait(const ts_graph *graph, const ts_op *op, const ts_factors *f, uint32_t result) {
  ts_dtype dtype = ts_graph_value(graph, op->first_result + result)->dtype;
  return f->reduction == TS_OP_ALL_REDUCE_SUM && ts_dtype_accumulator(dtype) == dtype;
}

/* ---- prediction ---- */

/* The operands that are predicted to be terms, and over which axes: 0 unless all are over the same. */
static uint32_t predicted_terms(const ts_partitioner *p, const ts_op *op, uint64_t *axes) {
  uint32_t terms = 0;
  *axes = 0;
  for (uint32_t i = 0; i < op->operand_count && i < 32; i++) {
    uint64_t mask = p->deferral.partial[op->operands[i]];
    if (mask == 0) continue;
    if (*axes != 0 && mask != *axes) return 0;
    *axes = mask;
    terms |= 1u << i;
  }
  return terms;
}

static uint64_t own_terms(const ts_partitioner *p, const ts_op *op, const ts_factors *f) {
  const ts_sharding *tensors[TS_FACTOR_TENSORS];
  ts_assignment a;
  ts_dims reduced;
  if (f->reduced == 0 || !ts_part_may_wait(p->in, op, f, 0)) return 0;
  for (int32_t t = 0; t < f->tensors; t++)
    tensors[t] = p->shardings->of[t < f->operands ? op->operands[t] : op->first_result + (uint32_t)(t - f->operands)];
  ts_assignment_join(ts_part_mesh(p), f, tensors, -1, &a);
  ts_part_reduced_axes(f, &a, &reduced);
  return ts_dims_mask(&reduced);
}

static void predict(ts_partitioner *p, const ts_op *op, const ts_factors *f) {
  uint64_t axes, own;
  if (op->result_count != 1 || !f) return;
  uint32_t terms = predicted_terms(p, op, &axes);
  own = own_terms(p, op, f);
  if (terms != 0 && ts_factors_is_linear(p->in, op, terms)) own |= axes;
  p->deferral.partial[op->first_result] = own;
}

/* ---- the cheapest position of a sum ---- */

static int64_t part_bytes(const ts_partitioner *p, ts_value_id id) {
  const ts_value *v = ts_graph_value(p->in, id);
  ts_shape part;
  ts_sharding_part(ts_part_mesh(p), p->shardings->of[id], v->shape, &part);
  return ts_shape_bytes(&part, v->dtype);
}

static void need_sums(ts_partitioner *p, const ts_value_id *values, size_t count) {
  for (size_t i = 0; i < count; i++) p->deferral.whole[values[i]] = true;
}

/* The cost of the sums of an op's operands when it works on terms. */
static void settle(ts_partitioner *p, const ts_op *op) {
  ts_deferral *d = &p->deferral;
  uint64_t axes;
  uint32_t terms = op->result_count == 1 ? predicted_terms(p, op, &axes) : 0, shares = 0;
  if (terms == 0 || !ts_factors_is_linear(p->in, op, terms)) {
    need_sums(p, op->operands, op->operand_count);
    return;
  }
  int64_t own = part_bytes(p, op->first_result);
  d->later[op->first_result] = !d->whole[op->first_result] && d->bytes[op->first_result] < own;
  if (d->later[op->first_result]) own = d->bytes[op->first_result];
  for (uint32_t i = 0; i < op->operand_count; i++) shares += terms >> i & 1;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (terms >> i & 1) d->bytes[op->operands[i]] += own / shares;
}

/* The first terms of a chain. */
static void settle_result(ts_partitioner *p, const ts_op *op) {
  ts_deferral *d = &p->deferral;
  ts_value_id id = op->first_result;
  if (op->result_count == 1 && d->partial[id] != 0) d->later[id] = !d->whole[id] && d->bytes[id] < part_bytes(p, id);
}

void ts_deferral_find(ts_partitioner *p, ts_region_id id) {
  const ts_region *region = ts_graph_region(p->in, id);
  bool any = false;
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(p->in, region->ops.data[i]);
    predict(p, op, ts_shardings_rule(p->shardings, region->ops.data[i]));
    any |= op->result_count == 1 && p->deferral.partial[op->first_result] != 0;
  }
  if (!any) return;
  need_sums(p, region->results.data, region->results.count);
  for (size_t i = region->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(p->in, region->ops.data[i]);
    settle_result(p, op);
    settle(p, op);
  }
}

/* ---- ops on terms ---- */

/* The operands that are terms and not yet summed; 0 unless all are over the same axes. */
static uint32_t actual_terms(const ts_partitioner *p, const ts_op *op, uint64_t *axes) {
  uint32_t terms = 0;
  *axes = 0;
  for (uint32_t i = 0; i < op->operand_count && i < 32; i++) {
    const ts_variant *v = p->of[op->operands[i]];
    if (v->partial == 0 || v->next) continue;
    if (!p->deferral.later[op->operands[i]] || (*axes != 0 && v->partial != *axes)) return 0;
    *axes = v->partial;
    terms |= 1u << i;
  }
  return terms;
}

/* Takes these axes, and the axes after them in their dim, out of an assignment. */
static void drop_axes(const ts_factors *f, uint64_t axes, ts_assignment *a) {
  for (int32_t i = 0; i < f->count; i++)
    for (int32_t k = 0; k < a->factors[i].count; k++)
      if (axes >> a->factors[i].axes[k] & 1) a->factors[i].count = (uint8_t)k;
}

/* True when the operands are there as the assignment cuts them. */
static bool is_free(const ts_partitioner *p, const ts_op *op, const ts_factors *f, uint32_t terms,
                    const ts_assignment *a) {
  for (int32_t i = 0; i < f->count; i++)
    if (f->moved >> i & 1 && a->factors[i].count > 0) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_sharding sharding;
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    if (terms >> i & 1 ? !ts_sharding_equal(&sharding, p->of[op->operands[i]]->sharding)
                       : ts_part_get_cost(p, op->operands[i], &sharding) > 0)
      return false;
  }
  return true;
}

static ts_status add_on_terms(ts_partitioner *p, const ts_op *op, const ts_factors *f, uint32_t terms,
                              const ts_assignment *a, ts_value_id *out) {
  ts_value_id operands[TS_FACTOR_TENSORS];
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_sharding sharding;
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    operands[i] = p->of[op->operands[i]]->value;
    if (!(terms >> i & 1)) TS_TRY(ts_part_get(p, op->operands[i], &sharding, &operands[i]));
  }
  return ts_part_add_split(p, op, f, a, operands, out);
}

ts_status ts_part_on_terms(ts_partitioner *p, const ts_op *op, const ts_factors *f, bool *out_done) {
  const ts_sharding *tensors[TS_FACTOR_TENSORS];
  uint64_t axes;
  uint32_t terms = actual_terms(p, op, &axes);
  ts_assignment a;
  ts_dims reduced;
  ts_sharding sharding;
  ts_value_id made;
  *out_done = false;
  if (terms == 0 || op->result_count != 1 || !ts_factors_is_linear(p->in, op, terms)) return TS_SUCCESS;
  for (int32_t t = 0; t < f->operands; t++) tensors[t] = p->of[op->operands[t]]->sharding;
  tensors[f->operands] = p->shardings->of[op->first_result];
  ts_assignment_join(ts_part_mesh(p), f, tensors, (int32_t)(terms & 1 ? 0 : 1), &a);
  drop_axes(f, axes, &a);
  ts_part_reduced_axes(f, &a, &reduced);
  if (!is_free(p, op, f, terms, &a) || (reduced.rank > 0 && !ts_part_may_wait(p->in, op, f, 0))) return TS_SUCCESS;
  *out_done = true;
  TS_TRY(add_on_terms(p, op, f, terms, &a, &made));
  ts_assignment_sharding(f, &a, f->operands, &sharding);
  return ts_part_add_variant(p, op->first_result, &sharding, axes | ts_dims_mask(&reduced), made);
}
