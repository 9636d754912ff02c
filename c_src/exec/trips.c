/* Estimates the time of a loop over single elements that counts from one constant to another, and of a branch. By this
 * time a program stays on its caller's scheduler, where it cannot be stopped: a loop that may run on has none. */
#include "base/alloc.h"
#include "exec/builder.h"

#define MAX_TRIPS (INT64_C(1) << 40)

/* ---- what makes a value ---- */

/* The op that makes a value: NULL, if it is a parameter. */
typedef struct maker {
  const ts_op *op;
  const ts_op *fusion; /* that the op is in; NULL: none */
} maker;

static const ts_op *op_of(const ts_graph *g, ts_value_id value) {
  ts_op_id id = ts_graph_value(g, value)->op;
  return id == TS_NO_ID ? NULL : ts_graph_op(g, id);
}

static const ts_region *first_region(const ts_graph *g, const ts_op *op) {
  ts_region_id regions[2];
  ts_op_regions(op, regions);
  return ts_graph_region(g, regions[0]);
}

static maker maker_of(const ts_graph *g, ts_value_id value) {
  const ts_op *op = op_of(g, value);
  if (!op || op->code != TS_OP_FUSION) return (maker){op, NULL};
  return (maker){op_of(g, first_region(g, op)->results.data[value - op->first_result]), op};
}

/* Operand i, or what the fusion gets for it. */
static ts_value_id operand_of(const ts_graph *g, maker m, uint32_t i) {
  const ts_value_id value = m.op->operands[i];
  if (!m.fusion) return value;
  const ts_region *region = first_region(g, m.fusion);
  for (size_t k = 0; k < region->params.count; k++)
    if (region->params.data[k] == value) return m.fusion->operands[k];
  return value;
}

static bool constant(const ts_graph *g, ts_value_id value, int64_t *out) {
  ts_scalar scalar;
  ts_dtype type = ts_graph_value(g, value)->dtype;
  if (!ts_dtype_is_integer(type) || !ts_graph_is_constant(g, value, &scalar)) return false;
  *out = ts_scalar_to_s64(type, scalar);
  return *out > (ts_dtype_is_signed(type) ? -MAX_TRIPS : -1) && *out < MAX_TRIPS;
}

/* ---- counting ---- */

/* while first < limit, first += step: if it counts downwards, with all signs changed. */
typedef struct counting {
  int64_t first, limit, step;
  int64_t highest; /* of the counter's type */
} counting;

/* Whether `code` compares a counter with its limit, and how. */
static bool compares(ts_opcode code, bool *out_down, bool *out_equal) {
  *out_down = code == TS_OP_GREATER || code == TS_OP_GREATER_EQUAL;
  *out_equal = code == TS_OP_LESS_EQUAL || code == TS_OP_GREATER_EQUAL;
  return *out_down || code == TS_OP_LESS || code == TS_OP_LESS_EQUAL;
}

/* What the body adds to its parameter `param` to make its result of the same number. */
static bool find_step(const ts_graph *g, const ts_region *body, size_t param, int64_t *out) {
  const maker next = maker_of(g, body->results.data[param]);
  if (!next.op || (next.op->code != TS_OP_ADD && next.op->code != TS_OP_SUBTRACT)) return false;
  if (operand_of(g, next, 0) != body->params.data[param] || !constant(g, operand_of(g, next, 1), out)) return false;
  if (next.op->code == TS_OP_SUBTRACT) *out = -*out;
  return true;
}

static int64_t find_param(const ts_region *region, ts_value_id value) {
  for (size_t i = 0; i < region->params.count; i++)
    if (region->params.data[i] == value) return (int64_t)i;
  return -1;
}

static bool find_counting(const ts_graph *g, const ts_op *loop, counting *out) {
  const ts_region *condition = ts_graph_region(g, loop->attrs->regions.regions[0]);
  const ts_region *body = ts_graph_region(g, loop->attrs->regions.regions[1]);
  const maker compare = maker_of(g, condition->results.data[0]);
  bool down, equal;
  if (!compare.op || !compares(compare.op->code, &down, &equal)) return false;
  const int64_t param = find_param(condition, operand_of(g, compare, 0));
  if (param < 0 || !constant(g, operand_of(g, compare, 1), &out->limit)) return false;
  if (!constant(g, loop->operands[param], &out->first) || !find_step(g, body, (size_t)param, &out->step)) return false;
  const ts_dtype type = ts_graph_value(g, loop->operands[param])->dtype;
  out->highest = ts_dtype_bits(type) == 64 ? INT64_MAX : ts_scalar_to_s64(type, ts_dtype_highest(type));
  if (down) {
    out->first = -out->first, out->limit = -out->limit, out->step = -out->step;
    out->highest = ts_dtype_is_signed(type) ? out->highest : 0;
  }
  out->limit += equal;
  return true;
}

/* How often the body runs. -1 when the loop does not have that form, or its counter passes the end of its type. */
static int64_t trip_count(const ts_graph *g, const ts_op *loop) {
  counting c;
  if (!find_counting(g, loop, &c) || c.step <= 0) return -1;
  if (c.first >= c.limit) return 0;
  const int64_t trips = (c.limit - c.first + c.step - 1) / c.step;
  return c.first + trips * c.step <= c.highest ? trips : -1;
}

/* ---- times, in picoseconds; INT64_MAX: unknown ---- */

#define LOOP_NS 100
#define BRANCH_PS 1000
#define LEAST_BRANCH_NS 1000

static int64_t region_ps(const ts_graph *g, const ts_region *region);

static int64_t loop_ps(const ts_graph *g, const ts_op *op) {
  const uint32_t *regions = op->attrs->regions.regions;
  const int64_t trips = trip_count(g, op);
  const int64_t trip =
      ts_cost_add(region_ps(g, ts_graph_region(g, regions[0])), region_ps(g, ts_graph_region(g, regions[1])));
  int64_t ps;
  return trips < 0 || trip == INT64_MAX || !ts_mul_i64(trips, trip, &ps) ? INT64_MAX : ps;
}

static int64_t branch_ps(const ts_graph *g, const ts_op *op) {
  const uint32_t *regions = op->attrs->regions.regions;
  const int64_t yes = region_ps(g, ts_graph_region(g, regions[0])), no = region_ps(g, ts_graph_region(g, regions[1]));
  return ts_cost_add(BRANCH_PS, yes > no ? yes : no);
}

/* Float ops form a dependent chain and cost their latency; integer ops run in parallel with them. */
static int64_t op_ps(const ts_graph *g, const ts_op *op) {
  const ts_op_cost *cost = ts_op_get_cost(op->code);
  if (op->code == TS_OP_WHILE) return loop_ps(g, op);
  if (op->code == TS_OP_COND) return branch_ps(g, op);
  if (op->code == TS_OP_FUSION || op->code == TS_OP_CALL) return region_ps(g, first_region(g, op));
  const bool is_float = op->operand_count == 0 || ts_dtype_is_float(ts_graph_value(g, op->operands[0])->dtype);
  const int64_t ps = is_float ? cost->float_ps : cost->integer_ps;
  return ps < 0 ? INT64_MAX : ps;
}

static int64_t region_ps(const ts_graph *g, const ts_region *region) {
  int64_t ps = 0;
  for (size_t i = 0; i < region->ops.count; i++) ps = ts_cost_add(ps, op_ps(g, ts_graph_op(g, region->ops.data[i])));
  return ps;
}

int64_t ts_whole_cost_ns(const ts_graph *g, const ts_op *op) {
  const int64_t ps = op_ps(g, op);
  if (ps == INT64_MAX) return INT64_MAX;
  if (op->code == TS_OP_WHILE) return LOOP_NS + ps / 1000;
  return ps / 1000 > LEAST_BRANCH_NS ? ps / 1000 : LEAST_BRANCH_NS;
}
