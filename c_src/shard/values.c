/* Values of the program on parts: a partition's coordinates, and the variants of a value. */
#include "shard/partitioner.h"

#include <string.h>

void ts_scope_init(ts_scope *scope, ts_region_id region) {
  scope->region = region;
  scope->coordinates = TS_NO_ID;
  for (int32_t i = 0; i < TS_MAX_MESH_AXES; i++) scope->coordinate[i] = TS_NO_ID;
}

ts_status ts_part_add_variant(ts_partitioner *p, ts_value_id of, const ts_sharding *sharding, uint64_t partial,
                              ts_value_id value) {
  ts_variant *made;
  TS_TRY(ts_arena_alloc(&p->shardings->arena, sizeof *made, (void **)&made));
  *made = (ts_variant){.value = value, .partial = partial};
  TS_TRY(ts_shardings_intern(p->shardings, sharding, &made->sharding));
  ts_variant **end = &p->of[of];
  while (*end) end = &(*end)->next;
  *end = made;
  return TS_SUCCESS;
}

/* ---- coordinates ---- */

ts_status ts_part_need_coordinates(ts_partitioner *p, ts_scope *scope) {
  ts_shape all = {.rank = 1, .dims = {ts_part_mesh(p)->rank}};
  if (scope->coordinates != TS_NO_ID) return TS_SUCCESS;
  if (scope->region == TS_ROOT) p->to->mesh.coordinates = true;
  return ts_graph_add_param(p->to, scope->region, TS_S32, &all, &scope->coordinates);
}

static ts_status make_coordinate(ts_partitioner *p, int32_t axis, ts_value_id *out) {
  ts_attrs slice = {.slice = {.start = {.rank = 1, .dims = {axis}},
                              .limit = {.rank = 1, .dims = {axis + 1}},
                              .stride = {.rank = 1, .dims = {1}}}};
  TS_TRY(ts_part_need_coordinates(p, p->scope));
  TS_TRY(ts_part_add(p, TS_OP_SLICE, &p->scope->coordinates, 1, &slice, out));
  TS_TRY(ts_part_add(p, TS_OP_RESHAPE, out, 1, &(ts_attrs){.shape = {.rank = 0}}, out));
  return ts_graph_convert(p->to, p->scope->region, *out, TS_S64, out);
}

/* A partition's coordinate as s64[]. */
static ts_status coordinate(ts_partitioner *p, int32_t axis, ts_value_id *out) {
  if (p->scope->coordinate[axis] == TS_NO_ID) TS_TRY(make_coordinate(p, axis, &p->scope->coordinate[axis]));
  *out = p->scope->coordinate[axis];
  return TS_SUCCESS;
}

/* x * factor + addend. */
static ts_status scale(ts_partitioner *p, int64_t factor, int64_t addend, ts_value_id *inout) {
  ts_value_id number;
  if (factor != 1) {
    TS_TRY(ts_part_number(p, factor, &number));
    TS_TRY(ts_part_binary(p, TS_OP_MULTIPLY, *inout, number, inout));
  }
  if (addend == 0) return TS_SUCCESS;
  TS_TRY(ts_part_number(p, addend, &number));
  return ts_part_binary(p, TS_OP_ADD, *inout, number, inout);
}

ts_status ts_part_position(ts_partitioner *p, const ts_dims *axes, int64_t factor, int64_t addend, ts_value_id *out) {
  if (axes->rank == 0 || factor == 0) return ts_part_number(p, addend, out);
  TS_TRY(coordinate(p, (int32_t)axes->dims[0], out));
  for (int32_t i = 1; i < axes->rank; i++) {
    ts_value_id next;
    TS_TRY(scale(p, ts_part_mesh(p)->sizes[axes->dims[i]], 0, out));
    TS_TRY(coordinate(p, (int32_t)axes->dims[i], &next));
    TS_TRY(ts_part_binary(p, TS_OP_ADD, *out, next, out));
  }
  return scale(p, factor, addend, out);
}

/* ---- steps of resharding ---- */

static ts_status slice_step(ts_partitioner *p, const ts_reshard_step *step, ts_value_id value, ts_value_id *out) {
  int64_t size = ts_graph_value(p->to, value)->shape->dims[step->dim];
  ts_value_id start;
  size /= ts_mesh_group_size(ts_part_mesh(p), &step->axes);
  TS_TRY(ts_part_position(p, &step->axes, size, 0, &start));
  return ts_part_slice_at(p, value, step->dim, start, size, out);
}

static ts_status take_step(ts_partitioner *p, const ts_reshard_step *step, ts_value_id value, ts_value_id *out) {
  ts_attrs attrs;
  switch (step->kind) {
  case TS_RESHARD_SLICE: return slice_step(p, step, value, out);
  case TS_RESHARD_GATHER:
    ts_shape_copy(&attrs.along.axes, &step->axes);
    attrs.along.dim = step->dim;
    return ts_part_add(p, TS_OP_ALL_GATHER, &value, 1, &attrs, out);
  case TS_RESHARD_EXCHANGE:
    ts_shape_copy(&attrs.exchange.axes, &step->axes);
    attrs.exchange.split = step->to;
    attrs.exchange.concat = step->dim;
    return ts_part_add(p, TS_OP_ALL_TO_ALL, &value, 1, &attrs, out);
  }
  return ts_error(TS_INTERNAL, "there is no such step");
}

/* ---- sums of terms ---- */

void ts_part_axes(uint64_t mask, ts_dims *out) {
  out->rank = 0;
  for (int32_t i = 0; i < TS_MAX_MESH_AXES; i++)
    if (mask >> i & 1) out->dims[out->rank++] = i;
}

/* The dim whose last cuts in `wanted` are all the `partial` axes, if its other cuts equal the cuts in `now`: then one
 * reduce_scatter makes `wanted` from terms. -1 if no dim is. */
static int32_t scatter_dim(const ts_sharding *now, const ts_sharding *wanted, uint64_t partial, ts_dims *axes) {
  ts_sharding others = {.count = 0};
  uint64_t left = partial;
  int32_t dim = -1;
  axes->rank = 0;
  for (int32_t i = 0; i < wanted->count; i++) {
    ts_cut cut = wanted->cuts[i];
    if (partial >> cut.axis & 1) {
      if (dim >= 0 && cut.dim != dim) return -1;
      dim = cut.dim;
      left &= ~(UINT64_C(1) << cut.axis);
      axes->dims[axes->rank++] = cut.axis;
    } else {
      if (cut.dim == dim) return -1;
      others.cuts[others.count++] = cut;
    }
  }
  return left == 0 && ts_sharding_equal(&others, now) ? dim : -1;
}

static ts_status sum_terms(ts_partitioner *p, ts_value_id value, const ts_variant *from, const ts_sharding *to,
                           const ts_variant **out) {
  ts_attrs attrs;
  ts_value_id made;
  int32_t dim = scatter_dim(from->sharding, to, from->partial, &attrs.along.axes);
  attrs.along.dim = dim;
  if (dim < 0) ts_part_axes(from->partial, &attrs.axes);
  TS_TRY(ts_part_add(p, dim < 0 ? TS_OP_ALL_REDUCE_SUM : TS_OP_REDUCE_SCATTER, &from->value, 1, &attrs, &made));
  TS_TRY(ts_part_add_variant(p, value, dim < 0 ? from->sharding : to, 0, made));
  for (*out = from; (*out)->next;) *out = (*out)->next;
  return TS_SUCCESS;
}

/* ---- variants ---- */

/* True for a source whose parts are the same op: constants, and indices along a whole dim. */
static bool is_local_source(const ts_op *op, const ts_sharding *to) {
  if (op->code == TS_OP_CONSTANT) return true;
  if (op->code != TS_OP_IOTA || op->attrs->iota.axis < 0) return false;
  for (int32_t i = 0; i < to->count; i++)
    if (to->cuts[i].dim == op->attrs->iota.axis) return false;
  return true;
}

static ts_status make_source(ts_partitioner *p, const ts_op *op, const ts_sharding *to, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(op);
  const ts_shape *whole = ts_graph_value(p->in, op->first_result)->shape;
  ts_shape part;
  ts_sharding_part(ts_part_mesh(p), to, whole, &part);
  ts_factors_localize(op, whole, &part, &attrs);
  return ts_part_add(p, op->code, NULL, 0, &attrs, out);
}

int64_t ts_part_cost(const ts_partitioner *p, const ts_sharding *from, uint64_t partial, const ts_sharding *to,
                     const ts_value *v) {
  ts_shape part;
  ts_dims axes;
  if (partial == 0) return ts_reshard_cost(ts_part_mesh(p), from, to, v->shape, v->dtype);
  ts_sharding_part(ts_part_mesh(p), from, v->shape, &part);
  int64_t bytes = ts_shape_bytes(&part, v->dtype);
  if (scatter_dim(from, to, partial, &axes) >= 0) return bytes;
  return 2 * bytes + ts_reshard_cost(ts_part_mesh(p), from, to, v->shape, v->dtype);
}

/* The variant that is cut like that. */
static const ts_variant *find_variant(const ts_variant *at, const ts_sharding *to) {
  while (at && (at->partial != 0 || !ts_sharding_equal(at->sharding, to))) at = at->next;
  return at;
}

/* The variant that becomes `to` with the fewest bytes. */
static const ts_variant *nearest(const ts_partitioner *p, ts_value_id value, const ts_sharding *to) {
  const ts_value *v = ts_graph_value(p->in, value);
  const ts_variant *best = find_variant(p->of[value], to);
  int64_t least = INT64_MAX;
  if (best || !p->of[value]->next) return best ? best : p->of[value];
  for (const ts_variant *at = p->of[value]; at; at = at->next) {
    int64_t cost = ts_part_cost(p, at->sharding, at->partial, to, v);
    if (cost >= least) continue;
    least = cost;
    best = at;
  }
  return best;
}

static ts_status reshard(ts_partitioner *p, ts_value_id value, const ts_variant *from, const ts_sharding *to,
                         ts_value_id *out) {
  ts_reshard_step steps[TS_RESHARD_STEPS];
  int32_t rank = ts_graph_value(p->in, value)->shape->rank;
  int32_t count = ts_reshard_plan(ts_part_mesh(p), from->sharding, to, rank, steps);
  for (int32_t i = 0; i < count; i++) {
    TS_TRY(take_step(p, &steps[i], *out, out));
    TS_TRY(ts_part_add_variant(p, value, &steps[i].after, 0, *out));
  }
  if (count == 0 || !ts_sharding_equal(&steps[count - 1].after, to))
    return ts_error(TS_INTERNAL, "a sharding was not reached");
  return TS_SUCCESS;
}

static ts_status get(ts_partitioner *p, ts_value_id value, const ts_sharding *to, ts_value_id *out) {
  const ts_variant *from = nearest(p, value, to);
  const ts_value *v = ts_graph_value(p->in, value);
  if (from->partial) TS_TRY(sum_terms(p, value, from, to, &from));
  *out = from->value;
  if (ts_sharding_equal(from->sharding, to)) return TS_SUCCESS;
  if (v->op != TS_NO_ID && is_local_source(ts_graph_op(p->in, v->op), to)) {
    TS_TRY(make_source(p, ts_graph_op(p->in, v->op), to, out));
    return ts_part_add_variant(p, value, to, 0, *out);
  }
  return reshard(p, value, from, to, out);
}

/* What moves or sums a value has the place of the op that makes it, or, for an argument, of the op that reads it. */
ts_status ts_part_get(ts_partitioner *p, ts_value_id value, const ts_sharding *to, ts_value_id *out) {
  ts_op_id op = ts_graph_value(p->in, value)->op;
  ts_place outer = p->to->place;
  if (op != TS_NO_ID && ts_graph_op(p->in, op)->place) p->to->place = ts_graph_op(p->in, op)->place;
  ts_status status = get(p, value, to, out);
  p->to->place = outer;
  return status;
}

int64_t ts_part_get_cost(const ts_partitioner *p, ts_value_id value, const ts_sharding *to) {
  const ts_value *v = ts_graph_value(p->in, value);
  if (v->op != TS_NO_ID && is_local_source(ts_graph_op(p->in, v->op), to)) return 0;
  const ts_variant *from = nearest(p, value, to);
  return ts_part_cost(p, from->sharding, from->partial, to, v);
}
