/* Moves what a loop computes again in each iteration to before the loop: ops of a while's body whose operands are loop
 * variables that the body returns unchanged. A value that the rest of the body reads becomes a loop variable that is
 * returned unchanged, which costs nothing (exec/build_control.c). Ops that a kernel computes where it needs them stay:
 * constants, index tensors, broadcasts, reshapes, and elementwise ops on few bytes. An op whose result is larger than
 * its operands stays as well, since reading the result would take longer. */
#include "pass/hoist.h"
#include "base/cancel.h"
#include "pass/rewrite.h"

#include <string.h>

enum {
  INSIDE = 4,   /* the body computes the value */
  OUTSIDE = 8,  /* it is computed before the loop */
  CARRIED = 16, /* and becomes a loop variable */
};
/* The results of products, factors and sorts may be this many times as large as their operands. */
#define LARGER 4
/* Each time a loop is left, the loop around it may move the same ops on. */
#define MOST_ROUNDS 4

typedef struct hoisting {
  ts_rewrite rw;
  uint8_t *state; /* of each value of the old graph */
  bool changed;
} hoisting;

static bool has(const hoisting *h, ts_value_id value, uint8_t flags) { return (h->state[value] & flags) == flags; }

static int64_t bytes_of(const ts_graph *g, ts_value_id value) {
  const ts_value *v = ts_graph_value(g, value);
  return ts_shape_bytes(v->shape, v->dtype);
}

/* Whether computing the op once is worth the memory that its results take, and that the body reads then. */
static bool is_worth(const hoisting *h, const ts_op *op) {
  const ts_graph *g = h->rw.from;
  if (op->operand_count == 0 || has(h, op->first_result, TS_FREE)) return false;
  if (op->code == TS_OP_BROADCAST || op->code == TS_OP_RESHAPE) return false;
  int64_t read = 0, written = 0;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!has(h, op->operands[i], TS_FREE)) read += bytes_of(g, op->operands[i]);
  for (uint32_t i = 0; i < op->result_count; i++) written += bytes_of(g, op->first_result + i);
  if (ts_op_get_row(op->code)->fusion == TS_FUSION_ALONE && ts_op_get_class(op->code) != TS_CLASS_SHAPE)
    return written <= LARGER * read;
  return written <= read && read >= TS_HOIST_FEW_BYTES;
}

static bool any_result(const hoisting *h, const ts_op *op, uint8_t flag) {
  for (uint32_t k = 0; k < op->result_count; k++)
    if (has(h, op->first_result + k, flag)) return true;
  return false;
}

static void mark_operands(hoisting *h, const ts_op *op, uint8_t flag) {
  for (uint32_t k = 0; k < op->operand_count; k++) h->state[op->operands[k]] |= flag;
}

/* Moves the results that the body reads to before the loop. Returns how many. */
static uint32_t carry(hoisting *h, const ts_op *op) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < op->result_count; k++) {
    uint8_t *state = &h->state[op->first_result + k];
    if (!(*state & INSIDE)) continue;
    *state = (uint8_t)(*state & ~INSIDE) | OUTSIDE | CARRIED;
    count++;
  }
  return count;
}

/* An op that the body does without: all that reads its results is before the loop. Of a condition there is none. */
static bool leaves_body(const hoisting *h, const ts_op *op) {
  return any_result(h, op, TS_INVARIANT) && !any_result(h, op, INSIDE);
}

/* From the last op to the first: which ops go before the loop, and which stay. An op can do both. Returns how many
 * values become loop variables. */
static uint32_t choose(hoisting *h, const ts_region *body) {
  const ts_graph *g = h->rw.from;
  uint32_t count = 0;
  for (size_t i = 0; i < body->results.count; i++) h->state[body->results.data[i]] |= INSIDE;
  for (size_t i = body->ops.count; i-- > 0;) {
    const ts_op *op = ts_graph_op(g, body->ops.data[i]);
    bool invariant = any_result(h, op, TS_INVARIANT);
    if (invariant && any_result(h, op, INSIDE) && is_worth(h, op)) count += carry(h, op);
    if (!leaves_body(h, op)) mark_operands(h, op, INSIDE);
    if (any_result(h, op, OUTSIDE)) mark_operands(h, op, OUTSIDE);
  }
  return count;
}

/* Computes before the loop what belongs there. `outer` gets the values that become loop variables, `inner` what they
 * were. */
static ts_status move_out(hoisting *h, const ts_op *loop, const ts_region *body, ts_region_id target,
                          ts_value_id *inner, ts_value_id *outer) {
  uint32_t n = 0;
  for (size_t i = 0; i < body->params.count; i++) h->rw.map[body->params.data[i]] = h->rw.map[loop->operands[i]];
  for (size_t i = 0; i < body->ops.count; i++) {
    const ts_op *op = ts_graph_op(h->rw.from, body->ops.data[i]);
    if (!any_result(h, op, OUTSIDE)) continue;
    TS_TRY(ts_rewrite_copy(&h->rw, body->ops.data[i], target));
    for (uint32_t k = 0; k < op->result_count; k++) {
      if (!has(h, op->first_result + k, CARRIED)) continue;
      inner[n] = op->first_result + k;
      outer[n++] = h->rw.map[op->first_result + k];
    }
  }
  return TS_SUCCESS;
}

typedef struct added {
  const ts_value_id *inner; /* in the old body */
  ts_value_id *outer;
  uint32_t count;
} added;

/* A region of the loop with more parameters; the body returns them. */
static ts_status fill(hoisting *h, ts_region_id source, const added *a, bool is_body, ts_region_id *out) {
  ts_rewrite *rw = &h->rw;
  const ts_region *region = ts_graph_region(rw->from, source);
  ts_value_id *results, param;
  TS_TRY(ts_graph_add_region(rw->to, out));
  TS_TRY(ts_graph_add_params_like(rw->to, *out, rw->from, source, rw->map));
  TS_TRY(TS_NEW_ARRAY(region->results.count + a->count, &results));
  ts_status status = TS_SUCCESS;
  for (uint32_t i = 0; i < a->count && !status; i++) {
    status = ts_graph_add_param_like(rw->to, *out, rw->from, a->inner[i], &param);
    if (is_body && !status) rw->map[a->inner[i]] = results[region->results.count + i] = param;
  }
  for (size_t i = 0; i < region->ops.count && !status; i++) {
    ts_op_id id = region->ops.data[i];
    status = ts_check_cancelled(rw->options->cancel, "the compile");
    if (!status && !leaves_body(h, ts_graph_op(rw->from, id))) status = ts_rewrite_visit(rw, id, *out);
  }
  for (size_t i = 0; i < region->results.count && !status; i++) results[i] = rw->map[region->results.data[i]];
  if (!status) status = ts_graph_set_results(rw->to, *out, results, region->results.count + (is_body ? a->count : 0));
  ts_free(results);
  return status;
}

static ts_status make_loop(hoisting *h, ts_op_id id, ts_region_id target, const added *a, ts_value_id *operands) {
  const ts_op *op = ts_graph_op(h->rw.from, id);
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_region_id regions[2], made[2];
  ts_value_id first;
  ts_op_regions(op, regions);
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = h->rw.map[op->operands[i]];
  TS_TRY(move_out(h, op, ts_graph_region(h->rw.from, regions[1]), target, operands + op->operand_count + a->count,
                  a->outer));
  for (int k = 0; k < 2; k++) TS_TRY(fill(h, regions[k], a, k == 1, &made[k]));
  ts_attrs_set_regions(op->code, &attrs, made);
  TS_TRY(
      ts_graph_add_op(h->rw.to, target, op->code, (ts_values){operands, op->operand_count + a->count}, &attrs, &first));
  for (uint32_t i = 0; i < op->result_count; i++) h->rw.map[op->first_result + i] = first + i;
  h->changed = true;
  return TS_SUCCESS;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  hoisting *h = (hoisting *)rw;
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_region_id regions[2];
  ts_value_id *values;
  if (op->code != TS_OP_WHILE) return ts_rewrite_copy(rw, id, target);
  ts_op_regions(op, regions);
  const ts_region *body = ts_graph_region(rw->from, regions[1]);
  ts_find_invariants(rw->from, body, h->state);
  uint32_t count = choose(h, body);
  if (count == 0) return ts_rewrite_copy(rw, id, target);
  TS_TRY(TS_NEW_ARRAY(op->operand_count + 2 * (size_t)count,
                      &values)); /* operands of the new loop, then what the new ones were */
  added a = {values + op->operand_count + count, values + op->operand_count, count};
  ts_status status = make_loop(h, id, target, &a, values);
  ts_free(values);
  return status;
}

static ts_status round_of(const ts_graph *in, const ts_pass_options *options, bool *changed, ts_graph **out) {
  hoisting h = {.rw = {.visit = visit}};
  *out = NULL;
  TS_TRY(TS_NEW_ARRAY(in->values.count, &h.state));
  memset(h.state, 0, in->values.count);
  ts_status status = ts_rewrite_run(&h.rw, in, options, out);
  ts_free(h.state);
  *changed = h.changed;
  return status;
}

bool ts_hoist_applies(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    if (graph->ops.data[i].code == TS_OP_WHILE) return true;
  return false;
}

ts_status ts_pass_hoist(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  bool changed = true;
  ts_graph *last;
  TS_TRY(ts_turn_matrices(in, options, &last));
  ts_status status = TS_SUCCESS;
  for (int i = 0; !status && changed && i < MOST_ROUNDS; i++) {
    status = round_of(last ? last : in, options, &changed, out);
    ts_graph_destroy(last);
    last = *out;
  }
  return status;
}
