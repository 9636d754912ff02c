/* Estimates the time of a loop over single elements that counts from one constant to another, and of a branch. */
#include "base/alloc.h"
#include "exec/builder.h"

#define MAX_TRIPS (INT64_C(1) << 40)

static const ts_op *maker(const ts_graph *g, ts_value_id value, ts_opcode code) {
  ts_op_id id = ts_graph_value(g, value)->op;
  return id != TS_NO_ID && ts_graph_op(g, id)->code == code ? ts_graph_op(g, id) : NULL;
}

static bool constant(const ts_graph *g, ts_value_id value, int64_t *out) {
  ts_scalar scalar;
  ts_dtype type = ts_graph_value(g, value)->dtype;
  if (!ts_dtype_is_integer(type) || !ts_graph_is_constant(g, value, &scalar)) return false;
  *out = ts_scalar_to_s64(type, scalar);
  return *out > -MAX_TRIPS && *out < MAX_TRIPS;
}

/* How often the body runs: while i < limit, i = i + step. -1 when the loop does not have that form. */
static int64_t trip_count(const ts_graph *g, const ts_op *loop) {
  const ts_region *condition = ts_graph_region(g, loop->attrs->regions.regions[0]);
  const ts_region *body = ts_graph_region(g, loop->attrs->regions.regions[1]);
  const ts_op *less = maker(g, condition->results.data[0], TS_OP_LESS);
  int64_t limit, first, step;
  if (!less || !constant(g, less->operands[1], &limit)) return -1;
  for (size_t i = 0; i < condition->params.count; i++) {
    if (condition->params.data[i] != less->operands[0] || !constant(g, loop->operands[i], &first)) continue;
    const ts_op *next = maker(g, body->results.data[i], TS_OP_ADD);
    if (!next || next->operands[0] != body->params.data[i] || !constant(g, next->operands[1], &step)) return -1;
    return step <= 0 ? -1 : first >= limit ? 0 : (limit - first + step - 1) / step;
  }
  return -1;
}

/* In picoseconds. Float ops form a dependent chain and cost their latency; integer ops run in parallel with them. */
static int64_t op_cost(const ts_graph *g, const ts_op *op) {
  const ts_op_cost *cost = ts_op_get_cost(op->code);
  if (op->operand_count == 0) return cost->float_ps;
  return ts_dtype_is_float(ts_graph_value(g, op->operands[0])->dtype) ? cost->float_ps : cost->integer_ps;
}

/* INT64_MAX: unknown. */
static int64_t region_ps(const ts_graph *g, const ts_region *region) {
  int64_t ps = 0;
  for (size_t i = 0; i < region->ops.count; i++) {
    int64_t cost = op_cost(g, ts_graph_op(g, region->ops.data[i]));
    if (cost < 0) return INT64_MAX;
    ps += cost;
  }
  return ps;
}

static int64_t loop_cost_ns(const ts_graph *g, const ts_op *op) {
  const uint32_t *regions = op->attrs->regions.regions;
  int64_t trips = trip_count(g, op), condition = region_ps(g, ts_graph_region(g, regions[0])),
          body = region_ps(g, ts_graph_region(g, regions[1])), ps;
  if (trips < 0 || condition == INT64_MAX || body == INT64_MAX || !ts_mul_i64(trips, condition + body, &ps))
    return INT64_MAX;
  return 100 + ps / 1000;
}

/* A branch may have loops and branches of its own. */
static int64_t branch_cost_ns(const ts_graph *g, const ts_region *region) {
  int64_t ns = 0;
  for (size_t i = 0; i < region->ops.count && ns < INT64_MAX; i++) {
    const ts_op *op = ts_graph_op(g, region->ops.data[i]);
    bool is_control = op->code == TS_OP_WHILE || op->code == TS_OP_COND;
    int64_t cost = is_control ? ts_whole_cost_ns(g, op) : op_cost(g, op);
    ns = cost < 0 || cost == INT64_MAX ? INT64_MAX : ts_cost_add(ns, is_control ? cost : cost / 1000);
  }
  return ns;
}

int64_t ts_whole_cost_ns(const ts_graph *g, const ts_op *op) {
  if (op->code == TS_OP_WHILE) return loop_cost_ns(g, op);
  int64_t most = 1000;
  for (int r = 0; r < 2; r++) {
    int64_t branch = branch_cost_ns(g, ts_graph_region(g, op->attrs->regions.regions[r]));
    if (branch > most) most = branch;
  }
  return most;
}
