#include "random_internal.h"

enum { FEW_VALUES = 4, MAX_VALUES = 14 };

static size_t random_count(generator *g) {
  return (size_t)rng_between(&g->random, 1,
                             g->flavour == LOOPS && rng_chance(&g->random, 50) ? MAX_VALUES : FEW_VALUES);
}

/* The type of a region's result, and whether it comes from a function: then it
 * may differ from run to run, and in a loop only be overwritten. */
typedef struct slot {
  ts_type type;
  bool approximate;
} slot;

static slot random_slot(generator *g, const scope *s, ts_value_id like) {
  slot made = {.type = type_of(g, like)};
  made.approximate = s->approximate_allowed && ts_dtype_is_float(made.type.dtype) && rng_chance(&g->random, 30);
  return made;
}

static size_t pick_values(generator *g, scope *s, ts_value_id *out_values) {
  size_t count = random_count(g);
  for (size_t i = 0; i < count; i++) out_values[i] = pick(g, s);
  return count;
}

/* Types of existing values, for results. */
static size_t pick_slots(generator *g, scope *s, slot *out_slots) {
  size_t count = random_count(g);
  for (size_t i = 0; i < count; i++) out_slots[i] = random_slot(g, s, pick(g, s));
  return count;
}

/* Opens a region with parameters of the given types. */
static ts_status open_scope(generator *g, const scope *outer, const slot *params, size_t count, scope *out) {
  *out = (scope){.depth = outer->depth + 1, .approximate_allowed = outer->approximate_allowed};
  TS_TRY(ts_graph_add_region(g->graph, &out->region));
  for (size_t i = 0; i < count; i++) {
    ts_value_id param;
    TS_TRY(ts_graph_add_param(g->graph, out->region, params[i].type.dtype, &params[i].type.shape, &param));
    TS_TRY(offer(out, param, params[i].approximate));
  }
  return TS_SUCCESS;
}

/* A result that fits a slot. */
static ts_status fill_slot(generator *g, scope *s, const slot *wanted, ts_value_id *out) {
  TS_TRY(pick_like(g, s, wanted->type.dtype, &wanted->type.shape, out));
  return wanted->approximate ? add_function(g, s, *out, out) : TS_SUCCESS;
}

static ts_status offer_all(scope *s, ts_value_id first, const slot *slots, size_t count) {
  for (size_t i = 0; i < count; i++) TS_TRY(offer(s, first + (ts_value_id)i, slots[i].approximate));
  return TS_SUCCESS;
}

/* ---- call and cond ---- */

static ts_status fill_branch(generator *g, scope *s, const slot *results, size_t count) {
  ts_value_id values[MAX_VALUES];
  TS_TRY(fill_scope(g, s, (int)rng_between(&g->random, 1, 3)));
  for (size_t i = 0; i < count; i++) TS_TRY(fill_slot(g, s, &results[i], &values[i]));
  return ts_graph_set_results(g->graph, s->region, values, count);
}

static ts_status make_branch(generator *g, const scope *outer, const ts_value_id *operands, size_t operand_count,
                             const slot *results, size_t result_count, ts_region_id *out) {
  scope inner;
  slot params[MAX_VALUES];
  for (size_t i = 0; i < operand_count; i++) params[i] = (slot){.type = type_of(g, operands[i])};
  ts_status status = open_scope(g, outer, params, operand_count, &inner);
  if (!status) status = fill_branch(g, &inner, results, result_count);
  TS_VEC_FREE(&inner.values);
  *out = inner.region;
  return status;
}

static ts_status make_call(generator *g, scope *s) {
  ts_value_id operands[MAX_VALUES], first;
  slot slots[MAX_VALUES];
  ts_attrs attrs = {.regions = {.regions = {TS_NO_ID, TS_NO_ID}}};
  size_t count = pick_values(g, s, operands), results = pick_slots(g, s, slots);
  TS_TRY(make_branch(g, s, operands, count, slots, results, &attrs.regions.regions[0]));
  TS_TRY(add_op(g, s, TS_OP_CALL, &attrs, operands, count, &first));
  return offer_all(s, first, slots, results);
}

/* A scalar u8: an existing value, or whether a tensor has a nonzero element. */
static ts_status make_predicate(generator *g, scope *s, ts_value_id *out) {
  ts_shape none = {.rank = 0};
  if (rng_chance(&g->random, 50)) return pick_like(g, s, TS_U8, &none, out);
  *out = pick(g, s);
  ts_attrs attrs = {.axes = {.rank = type_of(g, *out).shape.rank}};
  for (int32_t d = 0; d < attrs.axes.rank; d++) attrs.axes.dims[d] = d;
  return add_op(g, s, rng_chance(&g->random, 50) ? TS_OP_REDUCE_ALL : TS_OP_REDUCE_ANY, &attrs, out, 1, out);
}

static ts_status make_cond(generator *g, scope *s) {
  ts_value_id operands[1 + MAX_VALUES], first;
  slot slots[MAX_VALUES];
  ts_attrs attrs = {0};
  size_t count = pick_values(g, s, operands + 1), results = pick_slots(g, s, slots);
  TS_TRY(make_predicate(g, s, &operands[0]));
  for (int i = 0; i < 2; i++) {
    TS_TRY(make_branch(g, s, operands + 1, count, slots, results, &attrs.regions.regions[i]));
  }
  TS_TRY(add_op(g, s, TS_OP_COND, &attrs, operands, 1 + count, &first));
  return offer_all(s, first, slots, results);
}

/* ---- while: the first value counts up to a constant ---- */

static ts_status fill_condition(generator *g, scope *s) {
  ts_value_id limit, less, counter = s->values.data[0].id;
  ts_shape none = {.rank = 0};
  TS_TRY(add_constant(g, s, TS_S32, &none, (double)rng_between(&g->random, 0, 6), &limit));
  TS_TRY(add_binary(g, s, TS_OP_LESS, counter, limit, &less));
  return ts_graph_set_results(g->graph, s->region, &less, 1);
}

/* Now and then the value stays as it is, or another of its type takes its place. */
static ts_status next_value(generator *g, scope *s, const slot *state, size_t count, const ts_value_id *params,
                            size_t i, ts_value_id *out) {
  size_t from = rng_chance(&g->random, 60) ? i : 1 + (size_t)rng_below(&g->random, (int64_t)count - 1);
  bool alike = state[from].type.dtype == state[i].type.dtype && state[from].approximate == state[i].approximate &&
               ts_shape_equal(&state[from].type.shape, &state[i].type.shape);
  if (!alike || rng_chance(&g->random, 70)) return fill_slot(g, s, &state[i], out);
  *out = params[from];
  return TS_SUCCESS;
}

static ts_status fill_body(generator *g, scope *s, const slot *state, size_t count) {
  ts_value_id results[1 + MAX_VALUES], params[1 + MAX_VALUES], one, counter = s->values.data[0].id;
  for (size_t i = 0; i < count; i++) params[i] = s->values.data[i].id;
  TS_TRY(fill_scope(g, s, (int)rng_between(&g->random, 1, 3)));
  TS_TRY(add_constant(g, s, TS_S32, &state[0].type.shape, 1, &one));
  TS_TRY(add_binary(g, s, TS_OP_ADD, counter, one, &results[0]));
  for (size_t i = 1; i < count; i++) TS_TRY(next_value(g, s, state, count, params, i, &results[i]));
  return ts_graph_set_results(g->graph, s->region, results, count);
}

static ts_status make_loop_region(generator *g, const scope *outer, bool body, const slot *state, size_t count,
                                  ts_region_id *out) {
  scope inner;
  ts_status status = open_scope(g, outer, state, count, &inner);
  if (!status) status = body ? fill_body(g, &inner, state, count) : fill_condition(g, &inner);
  TS_VEC_FREE(&inner.values);
  *out = inner.region;
  return status;
}

static ts_status make_while(generator *g, scope *s) {
  ts_value_id initial[1 + MAX_VALUES], first;
  slot state[1 + MAX_VALUES];
  ts_attrs attrs = {0};
  ts_shape none = {.rank = 0};
  size_t count = 1 + pick_values(g, s, initial + 1);
  TS_TRY(add_constant(g, s, TS_S32, &none, (double)rng_between(&g->random, 0, 3), &initial[0]));
  state[0] = (slot){.type = type_of(g, initial[0])};
  for (size_t i = 1; i < count; i++) state[i] = random_slot(g, s, initial[i]);
  TS_TRY(make_loop_region(g, s, false, state, count, &attrs.regions.regions[0]));
  TS_TRY(make_loop_region(g, s, true, state, count, &attrs.regions.regions[1]));
  TS_TRY(add_op(g, s, TS_OP_WHILE, &attrs, initial, count, &first));
  return offer_all(s, first, state, count);
}

ts_status make_control(generator *g, scope *s) {
  switch (rng_below(&g->random, 4)) {
  case 0: return make_call(g, s);
  case 1: return make_cond(g, s);
  default: return make_while(g, s);
  }
}

/* ---- reduce with a region ---- */

static ts_status make_combiner(generator *g, scope *inner, ts_dtype type) {
  static const ts_opcode codes[] = {TS_OP_ADD, TS_OP_SUBTRACT, TS_OP_MAX, TS_OP_MULTIPLY};
  ts_shape none = {.rank = 0};
  ts_value_id params[2], y;
  TS_TRY(ts_graph_add_region(g->graph, &inner->region));
  for (int i = 0; i < 2; i++) {
    TS_TRY(ts_graph_add_param(g->graph, inner->region, type, &none, &params[i]));
    TS_TRY(offer(inner, params[i], false));
  }
  TS_TRY(add_binary(g, inner, RNG_PICK(&g->random, codes), params[0], params[1], &y));
  if (rng_chance(&g->random, 40)) TS_TRY(add_binary(g, inner, RNG_PICK(&g->random, codes), y, params[1], &y));
  return ts_graph_set_results(g->graph, inner->region, &y, 1);
}

ts_status make_region_reduce(generator *g, scope *s) {
  ts_value_id operands[2] = {pick(g, s)}, y;
  ts_type type = type_of(g, operands[0]);
  ts_shape none = {.rank = 0};
  ts_attrs attrs = {0};
  scope inner = {.depth = s->depth + 1};
  for (int32_t d = 0; d < type.shape.rank; d++) {
    if (rng_chance(&g->random, 60)) attrs.reduce.axes.dims[attrs.reduce.axes.rank++] = d;
  }
  ts_status status = make_combiner(g, &inner, type.dtype);
  TS_VEC_FREE(&inner.values);
  TS_TRY(status);
  attrs.reduce.region = inner.region;
  TS_TRY(pick_like(g, s, type.dtype, &none, &operands[1]));
  TS_TRY(add_op(g, s, TS_OP_REDUCE, &attrs, operands, 2, &y));
  return offer(s, y, false);
}
