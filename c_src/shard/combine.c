/* Joins all_reduces into one message where none waits for another: the gradients of a step are one. An op's level is
 * the number of all_reduces that it waits for, one after the other; ops are put out level by level, and the all_reduces
 * of a level over the same axes are one op. So in each region. A collective in the body of a loop on variables that the
 * loop does not change is done before the loop. Leaves out dead ops, collectives among them: this pass fixes their
 * order, so all partitions leave out the same ones. */
#include "base/alloc.h"
#include "ir/attrs.h"
#include "pass/rewrite.h"
#include "shard/shard.h"

#include <string.h>

typedef struct combiner {
  const ts_graph *in;
  ts_graph *to;
  ts_value_id *map;
  uint32_t *levels;     /* by value */
  const uint32_t *uses; /* by value */
  bool *hoisted;        /* by op: done before the loop */
} combiner;

/* A region, the live ops of it by level, and where each level begins. */
typedef struct schedule {
  const ts_region *from;
  ts_region_id to;
  ts_op_id *ops;
  size_t *begin;
  uint32_t levels;
} schedule;

static bool is_collective(const ts_op *op) {
  return ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE && op->code != TS_OP_SHARDING_CONSTRAINT;
}

static bool is_combined(const ts_op *op) {
  if (!is_collective(op)) return false;
  switch ((ts_ops_COLLECTIVE)op->code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX:
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR: return true;
  case TS_OP_ALL_GATHER:
  case TS_OP_REDUCE_SCATTER:
  case TS_OP_ALL_TO_ALL:
  case TS_OP_COLLECTIVE_PERMUTE:
  case TS_OP_COLLECTIVE_BROADCAST:
  case TS_OP_BARRIER:
  case TS_OP_SHARDING_CONSTRAINT: break;
  }
  return false;
}

/* Without uses. A barrier's effect is that partitions wait. */
static bool must_stay(const ts_graph *graph, const ts_op *op) {
  return ts_graph_has_effect(graph, op) && (!is_collective(op) || op->code == TS_OP_BARRIER);
}

static bool is_live(const combiner *c, ts_op_id id) {
  const ts_op *op = ts_graph_op(c->in, id);
  if (c->hoisted[id]) return false;
  for (uint32_t i = 0; i < op->result_count; i++)
    if (c->uses[op->first_result + i]) return true;
  return must_stay(c->in, op);
}

/* ---- levels ---- */

static uint32_t level_of(const combiner *c, const ts_op *op) {
  uint32_t level = 0;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (c->levels[op->operands[i]] > level) level = c->levels[op->operands[i]];
  return level;
}

/* All live ops of a level, then its all_reduces: two stages for each level. */
static size_t stage_of(const combiner *c, const ts_op *op) { return 2 * (size_t)level_of(c, op) + is_combined(op); }

static uint32_t find_levels(combiner *c, const ts_region *region) {
  uint32_t most = 0;
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(c->in, region->ops.data[i]);
    if (!is_live(c, region->ops.data[i])) continue;
    uint32_t level = level_of(c, op) + is_combined(op);
    for (uint32_t k = 0; k < op->result_count; k++) c->levels[op->first_result + k] = level;
    if (level > most) most = level;
  }
  return most + 1;
}

/* Counts, then puts each op where its stage begins, in order. */
static void sort_ops(const combiner *c, schedule *s) {
  size_t stages = 2 * (size_t)s->levels;
  for (size_t i = 0; i < s->from->ops.count; i++)
    if (is_live(c, s->from->ops.data[i])) s->begin[stage_of(c, ts_graph_op(c->in, s->from->ops.data[i])) + 2]++;
  for (size_t p = 2; p <= stages + 1; p++) s->begin[p] += s->begin[p - 1];
  for (size_t i = 0; i < s->from->ops.count; i++)
    if (is_live(c, s->from->ops.data[i]))
      s->ops[s->begin[stage_of(c, ts_graph_op(c->in, s->from->ops.data[i])) + 1]++] = s->from->ops.data[i];
}

/* ---- all_reduces of a level ---- */

static bool goes_with(const combiner *c, const ts_op *first, ts_op_id id) {
  const ts_op *op = ts_graph_op(c->in, id);
  return op->code == first->code && ts_attrs_equal(ts_op_attr_kind(op->code), op->attrs, first->attrs);
}

/* Fills `operands` (or NULL) from all ops that go with the first one. */
static size_t collect(const combiner *c, const ts_op_id *ops, size_t count, ts_value_id *operands) {
  const ts_op *first = ts_graph_op(c->in, ops[0]);
  size_t filled = 0;
  for (size_t i = 0; i < count; i++) {
    const ts_op *op = ts_graph_op(c->in, ops[i]);
    for (uint32_t k = 0; goes_with(c, first, ops[i]) && k < op->operand_count; k++, filled++)
      if (operands) operands[filled] = c->map[op->operands[k]];
  }
  return filled;
}

/* Gives the results to these ops; returns the number of other ops, which come first now. */
static size_t distribute(combiner *c, ts_op_id *ops, size_t count, ts_value_id results) {
  const ts_op *first = ts_graph_op(c->in, ops[0]);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    const ts_op *op = ts_graph_op(c->in, ops[i]);
    if (goes_with(c, first, ops[i]))
      for (uint32_t k = 0; k < op->result_count; k++) c->map[op->first_result + k] = results++;
    else
      ops[kept++] = ops[i];
  }
  return kept;
}

/* All ops that go with the first one. */
static ts_status join_places(const combiner *c, const ts_op_id *ops, size_t count, ts_place *out) {
  const ts_op *first = ts_graph_op(c->in, ops[0]);
  *out = 0;
  for (size_t i = 0; c->in->places && i < count; i++)
    if (goes_with(c, first, ops[i]))
      TS_TRY(ts_places_join(c->in->places, *out, ts_graph_op(c->in, ops[i])->place, out));
  return TS_SUCCESS;
}

static ts_status join_ops(combiner *c, const schedule *s, ts_op_id *ops, size_t count) {
  while (count > 0) {
    const ts_op *first = ts_graph_op(c->in, ops[0]);
    size_t total = collect(c, ops, count, NULL);
    ts_value_id *operands, results;
    TS_TRY(join_places(c, ops, count, &c->to->place));
    TS_TRY(TS_NEW_ARRAY(total, &operands));
    (void)collect(c, ops, count, operands);
    ts_status status = ts_graph_add_op(c->to, s->to, first->code, (ts_values){operands, total}, first->attrs, &results);
    ts_free(operands);
    if (status) return status;
    count = distribute(c, ops, count, results);
  }
  return TS_SUCCESS;
}

/* ---- loops ---- */

static ts_status fill_region(combiner *c, ts_region_id from, ts_region_id to, const ts_value_id *extra, size_t count);

/* The index of a parameter that is also the result at its index, unchanged; -1 for another value. */
static int64_t unchanged_param(const combiner *c, const ts_region *body, ts_value_id value) {
  const ts_value *v = ts_graph_value(c->in, value);
  if (v->op != TS_NO_ID || v->index >= body->results.count || body->results.data[v->index] != value) return -1;
  return v->index;
}

static bool is_invariant(const combiner *c, const ts_region *body, const ts_op *op) {
  if (!is_collective(op) || op->code == TS_OP_BARRIER) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (unchanged_param(c, body, op->operands[i]) < 0) return false;
  return true;
}

/* The ops that move before a loop: their results, which become loop variables, by value of the loop's body. */
typedef struct hoist {
  TS_VEC(ts_value_id) inside, outside;
} hoist;

static ts_status hoist_op(combiner *c, const schedule *s, const ts_op *loop, ts_op_id id, hoist *out) {
  const ts_op *op = ts_graph_op(c->in, id);
  ts_value_id *operands, results;
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; i < op->operand_count; i++)
    operands[i] = c->map[loop->operands[ts_graph_value(c->in, op->operands[i])->index]];
  ts_status status =
      ts_graph_add_op(c->to, s->to, op->code, (ts_values){operands, op->operand_count}, op->attrs, &results);
  ts_free(operands);
  if (status) return status;
  c->hoisted[id] = true;
  for (uint32_t i = 0; i < op->result_count; i++) {
    TS_TRY(TS_VEC_PUSH(&out->inside, op->first_result + i));
    TS_TRY(TS_VEC_PUSH(&out->outside, results + i));
  }
  return TS_SUCCESS;
}

static ts_status hoist_ops(combiner *c, const schedule *s, const ts_op *op, hoist *out) {
  if (op->code != TS_OP_WHILE) return TS_SUCCESS;
  const ts_region *body = ts_graph_region(c->in, op->attrs->regions.regions[1]);
  for (size_t i = 0; i < body->ops.count; i++)
    if (is_invariant(c, body, ts_graph_op(c->in, body->ops.data[i])))
      TS_TRY(hoist_op(c, s, op, body->ops.data[i], out));
  return TS_SUCCESS;
}

/* An op whose regions have collectives. */
static ts_status add_control(combiner *c, const schedule *s, const ts_op *op, const hoist *h) {
  ts_region_id from[2], to[2] = {TS_NO_ID, TS_NO_ID};
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_value_id *operands, results;
  size_t regions = ts_op_regions(op, from), count = op->operand_count;
  for (size_t i = 0; i < regions; i++) {
    TS_TRY(ts_graph_add_region(c->to, &to[i]));
    TS_TRY(fill_region(c, from[i], to[i], h->inside.data, h->inside.count));
  }
  ts_attrs_set_regions(op->code, &attrs, to);
  TS_TRY(TS_NEW_ARRAY(count + h->outside.count, &operands));
  for (size_t i = 0; i < count; i++) operands[i] = c->map[op->operands[i]];
  for (size_t i = 0; i < h->outside.count; i++) operands[count + i] = h->outside.data[i];
  c->to->place = op->place;
  ts_status status =
      ts_graph_add_op(c->to, s->to, op->code, (ts_values){operands, count + h->outside.count}, &attrs, &results);
  ts_free(operands);
  for (uint32_t i = 0; !status && i < op->result_count; i++) c->map[op->first_result + i] = results + i;
  return status;
}

static ts_status copy_control(combiner *c, const schedule *s, const ts_op *op) {
  hoist h = {0};
  ts_status status = hoist_ops(c, s, op, &h);
  if (!status) status = add_control(c, s, op, &h);
  TS_VEC_FREE(&h.inside);
  TS_VEC_FREE(&h.outside);
  return status;
}

/* ---- regions ---- */

static ts_status put_out(combiner *c, const schedule *s, ts_op_id id) {
  const ts_op *op = ts_graph_op(c->in, id);
  if (ts_op_has_regions(op->code) && ts_graph_has_effect(c->in, op)) return copy_control(c, s, op);
  return ts_graph_copy_op(c->in, id, c->to, s->to, c->map);
}

static ts_status put_out_levels(combiner *c, const schedule *s) {
  for (uint32_t level = 0; level < s->levels; level++) {
    size_t first = s->begin[2 * level], middle = s->begin[2 * level + 1], end = s->begin[2 * level + 2];
    for (size_t i = first; i < middle; i++) TS_TRY(put_out(c, s, s->ops[i]));
    TS_TRY(join_ops(c, s, s->ops + middle, end - middle));
  }
  return TS_SUCCESS;
}

static ts_status put_out_ops(combiner *c, ts_region_id from, ts_region_id to) {
  schedule s = {.from = ts_graph_region(c->in, from), .to = to};
  s.levels = find_levels(c, s.from);
  TS_TRY(TS_NEW_ARRAY(s.from->ops.count, &s.ops));
  ts_status status = TS_NEW_ARRAY(2 * (size_t)s.levels + 2, &s.begin);
  if (!status) sort_ops(c, &s);
  if (!status) status = put_out_levels(c, &s);
  ts_free(s.ops);
  ts_free(s.begin);
  return status;
}

/* Values `extra` of the loop's body become parameters and, if they belong to this region, results. */
static ts_status add_extra(combiner *c, ts_region_id to, const ts_value_id *extra, size_t count) {
  for (size_t i = 0; i < count; i++) TS_TRY(ts_graph_add_param_like(c->to, to, c->in, extra[i], &c->map[extra[i]]));
  return TS_SUCCESS;
}

static ts_status set_results(combiner *c, ts_region_id from, ts_region_id to, const ts_value_id *extra, size_t count) {
  const ts_region *region = ts_graph_region(c->in, from);
  bool keeps = count > 0 && ts_graph_value(c->in, extra[0])->region == from;
  size_t own = region->results.count, all = own + (keeps ? count : 0);
  ts_value_id *results;
  TS_TRY(TS_NEW_ARRAY(all, &results));
  for (size_t i = 0; i < all; i++) results[i] = c->map[i < own ? region->results.data[i] : extra[i - own]];
  ts_status status = ts_graph_set_results(c->to, to, results, all);
  ts_free(results);
  return status;
}

static ts_status fill_region(combiner *c, ts_region_id from, ts_region_id to, const ts_value_id *extra, size_t count) {
  TS_TRY(ts_graph_add_params_like(c->to, to, c->in, from, c->map));
  TS_TRY(add_extra(c, to, extra, count));
  TS_TRY(put_out_ops(c, from, to));
  return set_results(c, from, to, extra, count);
}

/* ---- the program ---- */

static ts_status build(combiner *c) {
  uint32_t *uses = NULL;
  TS_TRY(ts_graph_create_from(c->in, &c->to));
  TS_TRY(ts_graph_set_name(c->to, c->in->name));
  TS_TRY(TS_NEW_ARRAY(c->in->values.count, &c->map));
  TS_TRY(TS_NEW_ARRAY(c->in->values.count, &c->levels));
  TS_TRY(TS_NEW_ARRAY(c->in->ops.count, &c->hoisted));
  TS_TRY(ts_liveness_count_but(c->in, must_stay, &uses));
  c->uses = uses;
  ts_status status = fill_region(c, TS_ROOT, TS_ROOT, NULL, 0);
  ts_free(uses);
  return status;
}

ts_status ts_shard_combine(const ts_graph *in, ts_graph **out) {
  combiner c = {.in = in};
  ts_status status = build(&c);
  ts_free(c.map);
  ts_free(c.levels);
  ts_free(c.hoisted);
  if (status) {
    ts_graph_destroy(c.to);
    c.to = NULL;
  }
  *out = c.to;
  return status;
}
