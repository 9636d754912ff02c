#include "base/cancel.h"
#include "pass/pass.h"
#include "pass/rewrite.h"
#include "shard/propagate.h"
#include "shard/reshard.h"
#include "shard/shard.h"

#include <string.h>

/* A value of the whole program as parts of the new one, cut in one way. A value that is needed in several ways has
 * several, so that each is made once. */
typedef struct variant {
  const ts_sharding *sharding;
  ts_value_id value;
  struct variant *next;
} variant;

/* A region of the new program. A partition's coordinates are its last parameter; TS_NO_ID until something needs them.
 */
typedef struct scope {
  ts_region_id region;
  ts_value_id coordinates, coordinate[TS_MAX_MESH_AXES];
} scope;

static void scope_init(scope *s, ts_region_id region) {
  s->region = region;
  s->coordinates = TS_NO_ID;
  for (int32_t i = 0; i < TS_MAX_MESH_AXES; i++) s->coordinate[i] = TS_NO_ID;
}

typedef struct partitioner {
  const ts_graph *in;
  ts_graph *to;
  ts_shardings *shardings;
  ts_value_id *map; /* for copies of ops */
  variant **of;     /* by value of `in`; the first is the one that its op made */
  scope *scope;
  const uint32_t *uses;
  const _Atomic bool *cancel;
  ts_shard_report *report;
} partitioner;

static const ts_mesh *mesh_of(const partitioner *p) { return &p->in->mesh; }

static ts_status add(partitioner *p, ts_opcode code, const ts_value_id *operands, size_t count, const ts_attrs *attrs,
                     ts_value_id *out) {
  return ts_graph_add_op(p->to, p->scope->region, code, operands, count, attrs, out);
}

static ts_status add_variant(partitioner *p, ts_value_id of, const ts_sharding *sharding, ts_value_id value) {
  variant *made;
  TS_TRY(ts_arena_alloc(&p->shardings->arena, sizeof *made, (void **)&made));
  *made = (variant){.value = value};
  TS_TRY(ts_shardings_intern(p->shardings, sharding, &made->sharding));
  variant **end = &p->of[of];
  while (*end) end = &(*end)->next;
  *end = made;
  return TS_SUCCESS;
}

/* ---- coordinates ---- */

static ts_attrs number_attrs(int64_t value) {
  ts_attrs attrs;
  ts_attrs_set_constant(&attrs, TS_S64, &ts_shape_scalar, (ts_scalar){.s64 = value});
  return attrs;
}

static ts_status add_number(partitioner *p, int64_t value, ts_value_id *out) {
  ts_attrs attrs = number_attrs(value);
  return add(p, TS_OP_CONSTANT, NULL, 0, &attrs, out);
}

static ts_status need_coordinates(partitioner *p, scope *s) {
  ts_shape all = {.rank = 1, .dims = {mesh_of(p)->rank}};
  if (s->coordinates != TS_NO_ID) return TS_SUCCESS;
  if (s->region == TS_ROOT) p->to->mesh.coordinates = true;
  return ts_graph_add_param(p->to, s->region, TS_S32, &all, &s->coordinates);
}

static ts_status make_coordinate(partitioner *p, int32_t axis, ts_value_id *out) {
  ts_attrs slice = {.slice = {.start = {.rank = 1, .dims = {axis}},
                              .limit = {.rank = 1, .dims = {axis + 1}},
                              .stride = {.rank = 1, .dims = {1}}}};
  TS_TRY(need_coordinates(p, p->scope));
  TS_TRY(add(p, TS_OP_SLICE, &p->scope->coordinates, 1, &slice, out));
  TS_TRY(add(p, TS_OP_RESHAPE, out, 1, &(ts_attrs){.shape = {.rank = 0}}, out));
  return ts_graph_convert(p->to, p->scope->region, *out, TS_S64, out);
}

/* A partition's coordinate as s64[]. */
static ts_status coordinate(partitioner *p, int32_t axis, ts_value_id *out) {
  if (p->scope->coordinate[axis] == TS_NO_ID) TS_TRY(make_coordinate(p, axis, &p->scope->coordinate[axis]));
  *out = p->scope->coordinate[axis];
  return TS_SUCCESS;
}

/* The index of a partition in its group over `axes`, times `size`. */
static ts_status group_offset(partitioner *p, const ts_dims *axes, int64_t size, ts_value_id *out) {
  ts_value_id pair[2];
  TS_TRY(coordinate(p, (int32_t)axes->dims[0], out));
  for (int32_t i = 1; i <= axes->rank; i++) {
    pair[0] = *out;
    TS_TRY(add_number(p, i < axes->rank ? mesh_of(p)->sizes[axes->dims[i]] : size, &pair[1]));
    TS_TRY(add(p, TS_OP_MULTIPLY, pair, 2, NULL, out));
    if (i == axes->rank) return TS_SUCCESS;
    pair[0] = *out;
    TS_TRY(coordinate(p, (int32_t)axes->dims[i], &pair[1]));
    TS_TRY(add(p, TS_OP_ADD, pair, 2, NULL, out));
  }
  return TS_SUCCESS;
}

/* ---- resharding ---- */

static ts_status slice(partitioner *p, const ts_reshard_step *step, ts_value_id value, ts_value_id *out) {
  ts_value_id operands[1 + TS_MAX_RANK], zero;
  ts_attrs attrs;
  ts_shape_copy(&attrs.shape, ts_graph_value(p->to, value)->shape);
  attrs.shape.dims[step->dim] /= ts_mesh_group_size(mesh_of(p), &step->axes);
  operands[0] = value;
  TS_TRY(add_number(p, 0, &zero));
  for (int32_t d = 0; d < attrs.shape.rank; d++) operands[1 + d] = zero;
  TS_TRY(group_offset(p, &step->axes, attrs.shape.dims[step->dim], &operands[1 + step->dim]));
  return add(p, TS_OP_DYNAMIC_SLICE, operands, 1 + (size_t)attrs.shape.rank, &attrs, out);
}

static ts_status take_step(partitioner *p, const ts_reshard_step *step, ts_value_id value, ts_value_id *out) {
  ts_attrs attrs;
  switch (step->kind) {
  case TS_RESHARD_SLICE: return slice(p, step, value, out);
  case TS_RESHARD_GATHER:
    ts_shape_copy(&attrs.along.axes, &step->axes);
    attrs.along.dim = step->dim;
    return add(p, TS_OP_ALL_GATHER, &value, 1, &attrs, out);
  case TS_RESHARD_EXCHANGE:
    ts_shape_copy(&attrs.exchange.axes, &step->axes);
    attrs.exchange.split = step->to;
    attrs.exchange.concat = step->dim;
    return add(p, TS_OP_ALL_TO_ALL, &value, 1, &attrs, out);
  }
  return ts_error(TS_INTERNAL, "there is no such step");
}

/* True for a source of which every part is the same op: constants, and indices along a dim that is whole. */
static bool is_local_source(const ts_op *op, const ts_sharding *to) {
  if (op->code == TS_OP_CONSTANT) return true;
  if (op->code != TS_OP_IOTA || op->attrs->iota.axis < 0) return false;
  for (int32_t i = 0; i < to->count; i++)
    if (to->cuts[i].dim == op->attrs->iota.axis) return false;
  return true;
}

static ts_status make_source(partitioner *p, const ts_op *op, const ts_sharding *to, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_shape part;
  ts_sharding_part(mesh_of(p), to, ts_graph_value(p->in, op->first_result)->shape, &part);
  ts_factors_localize(op, &part, &attrs);
  return add(p, op->code, NULL, 0, &attrs, out);
}

/* The variant from which `to` is made with the fewest bytes. */
static const variant *nearest(const partitioner *p, ts_value_id value, const ts_sharding *to) {
  const ts_value *v = ts_graph_value(p->in, value);
  const variant *best = p->of[value];
  int64_t least = INT64_MAX;
  for (const variant *at = p->of[value]; at; at = at->next) {
    int64_t cost = ts_reshard_cost(mesh_of(p), at->sharding, to, v->shape, v->dtype);
    if (cost >= least) continue;
    least = cost;
    best = at;
  }
  return best;
}

/* The parts of a value that are cut as `to` says. */
static ts_status get(partitioner *p, ts_value_id value, const ts_sharding *to, ts_value_id *out) {
  const variant *from = nearest(p, value, to);
  const ts_value *v = ts_graph_value(p->in, value);
  ts_reshard_step steps[TS_RESHARD_STEPS];
  *out = from->value;
  if (ts_sharding_equal(from->sharding, to)) return TS_SUCCESS;
  if (v->op != TS_NO_ID && is_local_source(ts_graph_op(p->in, v->op), to)) {
    TS_TRY(make_source(p, ts_graph_op(p->in, v->op), to, out));
    return add_variant(p, value, to, *out);
  }
  int32_t count = ts_reshard_plan(mesh_of(p), from->sharding, to, v->shape->rank, steps);
  for (int32_t i = 0; i < count; i++) {
    TS_TRY(take_step(p, &steps[i], *out, out));
    TS_TRY(add_variant(p, value, &steps[i].after, *out));
  }
  if (count == 0 || !ts_sharding_equal(&steps[count - 1].after, to))
    return ts_error(TS_INTERNAL, "a sharding was not reached");
  return TS_SUCCESS;
}

static int64_t get_cost(const partitioner *p, ts_value_id value, const ts_sharding *to) {
  const ts_value *v = ts_graph_value(p->in, value);
  if (v->op != TS_NO_ID && is_local_source(ts_graph_op(p->in, v->op), to)) return 0;
  return ts_reshard_cost(mesh_of(p), nearest(p, value, to)->sharding, to, v->shape, v->dtype);
}

/* ---- ops with a rule ---- */

/* The axes that cut reduced factors, sorted. */
static void reduced_axes(const ts_factors *f, const ts_assignment *a, ts_dims *out) {
  out->rank = 0;
  for (int32_t i = 0; i < f->count; i++)
    for (int32_t k = 0; (f->reduced >> i & 1) && k < a->factors[i].count; k++) {
      int32_t at = out->rank++;
      for (; at > 0 && out->dims[at - 1] > a->factors[i].axes[k]; at--) out->dims[at] = out->dims[at - 1];
      out->dims[at] = a->factors[i].axes[k];
    }
}

/* Bytes that an assignment moves: of operands, of partial results, and of results to where they are wanted. */
static int64_t assignment_cost(const partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  ts_sharding sharding;
  ts_dims reduced;
  int64_t cost = 0;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    cost += get_cost(p, op->operands[i], &sharding);
  }
  reduced_axes(f, a, &reduced);
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *v = ts_graph_value(p->in, op->first_result + i);
    ts_shape part;
    ts_assignment_sharding(f, a, (int32_t)(op->operand_count + i), &sharding);
    ts_sharding_part(mesh_of(p), &sharding, v->shape, &part);
    if (reduced.rank > 0) cost += 2 * ts_shape_bytes(&part, v->dtype);
    cost += ts_reshard_cost(mesh_of(p), &sharding, p->shardings->of[op->first_result + i], v->shape, v->dtype);
  }
  return cost;
}

static void choose(const partitioner *p, const ts_op *op, const ts_factors *f, ts_assignment *out) {
  const ts_sharding *tensors[TS_FACTOR_TENSORS];
  for (int32_t t = 0; t < f->tensors; t++)
    tensors[t] = t < f->operands ? p->of[op->operands[t]]->sharding
                                 : p->shardings->of[op->first_result + (uint32_t)(t - f->operands)];
  ts_assignment_join(mesh_of(p), f, tensors, -1, out);
  int64_t least = assignment_cost(p, op, f, out);
  for (int32_t first = 0; first < f->tensors && least > 0; first++) {
    ts_assignment candidate;
    ts_assignment_join(mesh_of(p), f, tensors, first, &candidate);
    int64_t cost = assignment_cost(p, op, f, &candidate);
    if (cost >= least) continue;
    least = cost;
    *out = candidate;
  }
}

/* Operands in the type in which partial results are summed. */
static ts_status widen(partitioner *p, ts_value_id *operands, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ts_dtype dtype = ts_graph_value(p->to, operands[i])->dtype;
    if (ts_dtype_is_float(dtype))
      TS_TRY(ts_graph_convert(p->to, p->scope->region, operands[i], ts_dtype_accumulator(dtype), &operands[i]));
  }
  return TS_SUCCESS;
}

/* The dim of which all cuts by the `reduced` axes are the last ones in `wanted`, where the others are those of `now`:
 * then a partial result becomes `wanted` by one reduce_scatter. -1 when there is none. */
static int32_t scatter_dim(const ts_sharding *now, const ts_sharding *wanted, const ts_dims *reduced, ts_dims *axes) {
  uint64_t mask = ts_dims_mask(reduced);
  ts_sharding others = {.count = 0};
  int32_t dim = -1;
  axes->rank = 0;
  for (int32_t i = 0; i < wanted->count; i++) {
    ts_cut cut = wanted->cuts[i];
    if (mask >> cut.axis & 1) {
      if (dim >= 0 && cut.dim != dim) return -1;
      dim = cut.dim;
      axes->dims[axes->rank++] = cut.axis;
    } else {
      if (cut.dim == dim) return -1;
      others.cuts[others.count++] = cut;
    }
  }
  return axes->rank == reduced->rank && ts_sharding_equal(&others, now) ? dim : -1;
}

/* Makes a partial result whole, or a part of the whole where that is wanted. */
static ts_status reduce_result(partitioner *p, const ts_factors *f, const ts_dims *reduced, const ts_sharding *wanted,
                               ts_sharding *sharding, ts_value_id *value) {
  ts_attrs attrs;
  int32_t dim = f->reduction == TS_OP_ALL_REDUCE_SUM ? scatter_dim(sharding, wanted, reduced, &attrs.along.axes) : -1;
  if (dim >= 0) {
    attrs.along.dim = dim;
    *sharding = *wanted;
    return add(p, TS_OP_REDUCE_SCATTER, value, 1, &attrs, value);
  }
  ts_shape_copy(&attrs.axes, reduced);
  return add(p, f->reduction, value, 1, &attrs, value);
}

static ts_status finish_result(partitioner *p, const ts_factors *f, const ts_assignment *a, const ts_dims *reduced,
                               ts_value_id result, ts_value_id value, int32_t tensor) {
  const ts_value *v = ts_graph_value(p->in, result);
  ts_sharding sharding;
  ts_assignment_sharding(f, a, tensor, &sharding);
  if (reduced->rank > 0) {
    TS_TRY(reduce_result(p, f, reduced, p->shardings->of[result], &sharding, &value));
    if (f->wide && ts_dtype_is_float(v->dtype))
      TS_TRY(ts_graph_convert(p->to, p->scope->region, value, v->dtype, &value));
    if (f->wide && !ts_dtype_is_integer(v->dtype) && p->report) p->report->splits_float_reductions = true;
  }
  return add_variant(p, result, &sharding, value);
}

static ts_status get_operands(partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                              ts_value_id *out) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_sharding sharding;
    ts_assignment_sharding(f, a, (int32_t)i, &sharding);
    TS_TRY(get(p, op->operands[i], &sharding, &out[i]));
  }
  return TS_SUCCESS;
}

static ts_status split_op(partitioner *p, const ts_op *op, const ts_factors *f) {
  ts_value_id operands[TS_FACTOR_TENSORS], first;
  ts_assignment a;
  ts_dims reduced;
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_sharding sharding;
  ts_shape part;
  choose(p, op, f, &a);
  reduced_axes(f, &a, &reduced);
  TS_TRY(get_operands(p, op, f, &a, operands));
  if (reduced.rank > 0 && f->wide) TS_TRY(widen(p, operands, op->operand_count));
  ts_assignment_sharding(f, &a, f->operands, &sharding);
  ts_sharding_part(mesh_of(p), &sharding, f->shapes[f->operands], &part);
  ts_factors_localize(op, &part, &attrs);
  TS_TRY(add(p, op->code, operands, op->operand_count, op->attrs ? &attrs : NULL, &first));
  for (uint32_t i = 0; i < op->result_count; i++)
    TS_TRY(finish_result(p, f, &a, &reduced, op->first_result + i, first + i, (int32_t)(op->operand_count + i)));
  return TS_SUCCESS;
}

/* A constraint is its operand, cut like that. */
static ts_status constrain(partitioner *p, const ts_op *op) {
  ts_value_id value;
  const ts_sharding *sharding = p->shardings->of[op->first_result];
  TS_TRY(get(p, op->operands[0], sharding, &value));
  return add_variant(p, op->first_result, sharding, value);
}

/* ---- ops without a rule ---- */

static bool has_shardings(const partitioner *p, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (p->of[op->operands[i]]->sharding->count > 0) return true;
  return false;
}

static ts_status replicate(partitioner *p, ts_op_id id, const ts_op *op) {
  ts_value_id *map = p->map;
  if (p->report && has_shardings(p, op)) TS_TRY(TS_VEC_PUSH(&p->report->replicated, op->code));
  for (uint32_t i = 0; i < op->operand_count; i++)
    TS_TRY(get(p, op->operands[i], p->shardings->whole, &map[op->operands[i]]));
  TS_TRY(ts_graph_copy_op(p->in, id, p->to, p->scope->region, map));
  for (uint32_t i = 0; i < op->result_count; i++)
    TS_TRY(add_variant(p, op->first_result + i, p->shardings->whole, map[op->first_result + i]));
  return TS_SUCCESS;
}

static ts_status check_op(const partitioner *p, const ts_op *op) {
  if (!ts_graph_has_effect(p->in, op)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "collectives and callbacks cannot be partitioned");
}

/* ---- loops and branches ---- */

static ts_status visit(partitioner *p, ts_op_id id);

static bool is_live(const ts_op *op, const uint32_t *uses) {
  for (uint32_t i = 0; i < op->result_count; i++)
    if (uses[op->first_result + i]) return true;
  return false;
}

static ts_status visit_ops(partitioner *p, ts_region_id id) {
  const ts_region *region = ts_graph_region(p->in, id);
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(p->in, region->ops.data[i]);
    TS_TRY(ts_check_cancelled(p->cancel, "the compile"));
    if (is_live(op, p->uses) || ts_graph_has_effect(p->in, op))
      TS_TRY(ts_error_context(visit(p, region->ops.data[i]), "%s", ts_op_name(op->code)));
  }
  return TS_SUCCESS;
}

/* An op with two regions that are partitioned, too. */
typedef struct control {
  const ts_op *op;
  uint32_t first;              /* operand that is the regions' first parameter */
  const ts_sharding **params;  /* of the regions' parameters */
  const ts_sharding **results; /* of the op's results */
  scope scopes[2];
  ts_value_id *values; /* room for the results of a region and one more */
} control;

static bool is_condition(const control *c, int which) { return c->op->code == TS_OP_WHILE && which == 0; }

static ts_status fill_region(partitioner *p, control *c, int which) {
  const ts_region *region = ts_graph_region(p->in, c->op->attrs->regions.regions[which]);
  for (size_t i = 0; i < region->params.count; i++) {
    const ts_value *v = ts_graph_value(p->in, region->params.data[i]);
    ts_value_id made;
    ts_shape part;
    ts_sharding_part(mesh_of(p), c->params[i], v->shape, &part);
    TS_TRY(ts_shardings_give(p->shardings, region->params.data[i], c->params[i], true));
    TS_TRY(ts_graph_add_param(p->to, c->scopes[which].region, v->dtype, &part, &made));
    TS_TRY(add_variant(p, region->params.data[i], c->params[i], made));
  }
  for (size_t i = 0; !is_condition(c, which) && i < region->results.count; i++)
    TS_TRY(ts_shardings_give(p->shardings, region->results.data[i], c->results[i], false));
  TS_TRY(ts_shardings_find_in(p->shardings, p->in, c->op->attrs->regions.regions[which], p->cancel));
  return visit_ops(p, c->op->attrs->regions.regions[which]);
}

static ts_status partition_region(partitioner *p, control *c, int which) {
  scope *outer = p->scope;
  ts_region_id made;
  TS_TRY(ts_graph_add_region(p->to, &made));
  scope_init(&c->scopes[which], made);
  p->scope = &c->scopes[which];
  ts_status status = fill_region(p, c, which);
  p->scope = outer;
  return status;
}

static ts_status finish_region(partitioner *p, control *c, int which) {
  const ts_region *region = ts_graph_region(p->in, c->op->attrs->regions.regions[which]);
  scope *outer = p->scope;
  size_t count = region->results.count;
  ts_status status = TS_SUCCESS;
  p->scope = &c->scopes[which];
  for (size_t i = 0; !status && i < count; i++)
    status =
        get(p, region->results.data[i], is_condition(c, which) ? p->shardings->whole : c->results[i], &c->values[i]);
  p->scope = outer;
  return status;
}

/* Both regions have the coordinates, when one needs them: so has the op, and a loop hands them on. */
static ts_status share_coordinates(partitioner *p, control *c) {
  bool needed = c->scopes[0].coordinates != TS_NO_ID || c->scopes[1].coordinates != TS_NO_ID;
  for (int i = 0; needed && i < 2; i++) TS_TRY(need_coordinates(p, &c->scopes[i]));
  return needed ? need_coordinates(p, p->scope) : TS_SUCCESS;
}

static ts_status set_region_results(partitioner *p, control *c) {
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

static ts_status add_control(partitioner *p, control *c) {
  ts_attrs attrs = {.regions = {.regions = {c->scopes[0].region, c->scopes[1].region}}};
  uint32_t count = c->op->operand_count;
  ts_value_id first;
  for (uint32_t i = 0; i < count; i++)
    TS_TRY(get(p, c->op->operands[i], i < c->first ? p->shardings->whole : c->params[i - c->first], &c->values[i]));
  if (c->scopes[0].coordinates != TS_NO_ID) {
    TS_TRY(need_coordinates(p, p->scope));
    c->values[count++] = p->scope->coordinates;
  }
  TS_TRY(add(p, c->op->code, c->values, count, &attrs, &first));
  for (uint32_t i = 0; i < c->op->result_count; i++)
    TS_TRY(add_variant(p, c->op->first_result + i, c->results[i], first + i));
  return TS_SUCCESS;
}

static ts_status build_control(partitioner *p, control *c) {
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

static ts_status split_control(partitioner *p, const ts_op *op) {
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

enum { MAX_LEVELS = 16 }; /* of loops and branches that are partitioned; deeper ones are replicated */

static ts_status visit(partitioner *p, ts_op_id id) {
  const ts_op *op = ts_graph_op(p->in, id);
  ts_factors f;
  TS_TRY(check_op(p, op));
  if (op->code == TS_OP_SHARDING_CONSTRAINT) return constrain(p, op);
  if ((op->code == TS_OP_WHILE || op->code == TS_OP_COND) && ts_op_height(p->in, op) <= MAX_LEVELS)
    return split_control(p, op);
  return ts_factors_of(p->in, op, &f) ? split_op(p, op, &f) : replicate(p, id, op);
}

/* ---- the program ---- */

static ts_status add_params(partitioner *p) {
  const ts_region *root = ts_graph_region(p->in, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++) {
    ts_value_id id = root->params.data[i], made;
    const ts_value *v = ts_graph_value(p->in, id);
    ts_shape part;
    ts_sharding_part(mesh_of(p), p->shardings->of[id], v->shape, &part);
    TS_TRY(ts_graph_add_param(p->to, TS_ROOT, v->dtype, &part, &made));
    TS_TRY(add_variant(p, id, p->shardings->of[id], made));
    TS_TRY(ts_graph_set_sharding(p->to, TS_PARAMS, i, p->shardings->of[id]));
  }
  return TS_SUCCESS;
}

static ts_status set_results(partitioner *p) {
  const ts_region *root = ts_graph_region(p->in, TS_ROOT);
  ts_value_id *results;
  ts_status status = TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(root->results.count, &results));
  for (size_t i = 0; !status && i < root->results.count; i++) {
    const ts_sharding *given = ts_graph_sharding(p->in, TS_RESULTS, i);
    const ts_sharding *sharding = given ? given : p->shardings->of[root->results.data[i]];
    status = get(p, root->results.data[i], sharding, &results[i]);
    if (!status) status = ts_graph_set_sharding(p->to, TS_RESULTS, i, sharding);
  }
  if (!status) status = ts_graph_set_results(p->to, TS_ROOT, results, root->results.count);
  ts_free(results);
  return status;
}

static ts_status build(partitioner *p) {
  uint32_t *uses = NULL;
  TS_TRY(TS_NEW_ARRAY(p->in->values.count, &p->of));
  TS_TRY(TS_NEW_ARRAY(p->in->values.count, &p->map));
  TS_TRY(ts_graph_create(&p->to));
  TS_TRY(ts_graph_set_name(p->to, p->in->name));
  p->to->mesh = p->in->mesh;
  p->to->mesh.partitioned = true;
  TS_TRY(add_params(p));
  TS_TRY(ts_liveness_count(p->in, &uses));
  p->uses = uses;
  ts_status status = visit_ops(p, TS_ROOT);
  ts_free(uses);
  return status ? status : set_results(p);
}

static ts_status check_input(const ts_graph *in) {
  if (in->mesh.rank == 0) return ts_error(TS_INVALID_ARGUMENT, "partition: the program has no mesh");
  if (in->mesh.partitioned || in->mesh.coordinates)
    return ts_error(TS_INVALID_ARGUMENT, "partition: the program is partitioned already");
  return TS_SUCCESS;
}

ts_status ts_shard_partition(const ts_graph *in, const _Atomic bool *cancel, ts_shard_report *report, ts_graph **out) {
  ts_shardings shardings;
  *out = NULL;
  TS_TRY(check_input(in));
  TS_TRY(ts_shardings_find(in, cancel, &shardings));
  scope root;
  scope_init(&root, TS_ROOT);
  partitioner p = {.in = in, .shardings = &shardings, .scope = &root, .cancel = cancel, .report = report};
  ts_status status = build(&p);
  if (!status) status = ts_shard_combine(p.to, out);
  ts_graph_destroy(p.to);
  ts_free(p.of);
  ts_free(p.map);
  ts_shardings_deinit(&shardings);
  return status;
}

void ts_shard_report_deinit(ts_shard_report *report) { TS_VEC_FREE(&report->replicated); }
