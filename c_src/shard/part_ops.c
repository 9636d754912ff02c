/* Ops that are added to the program of a partition, for all kinds of splits. */
#include "shard/partitioner.h"

ts_status ts_part_add(ts_partitioner *p, ts_opcode code, const ts_value_id *operands, size_t count,
                      const ts_attrs *attrs, ts_value_id *out) {
  return ts_graph_add_op(p->to, p->scope->region, code, (ts_values){operands, count}, attrs, out);
}

ts_status ts_part_number(ts_partitioner *p, int64_t value, ts_value_id *out) {
  ts_attrs attrs;
  ts_attrs_set_constant(&attrs, TS_S64, &ts_shape_scalar, (ts_scalar){.s64 = value});
  return ts_part_add(p, TS_OP_CONSTANT, NULL, 0, &attrs, out);
}

ts_status ts_part_binary(ts_partitioner *p, ts_opcode code, ts_value_id a, ts_value_id b, ts_value_id *out) {
  return ts_part_add(p, code, (ts_value_id[]){a, b}, 2, NULL, out);
}

static const ts_shape *shape_of(const ts_partitioner *p, ts_value_id value) {
  return ts_graph_value(p->to, value)->shape;
}

ts_status ts_part_constant_like(ts_partitioner *p, ts_value_id like, ts_dtype dtype, ts_scalar value,
                                ts_value_id *out) {
  ts_attrs attrs;
  ts_attrs_set_constant(&attrs, dtype, shape_of(p, like), value);
  return ts_part_add(p, TS_OP_CONSTANT, NULL, 0, &attrs, out);
}

ts_status ts_part_spread(ts_partitioner *p, ts_value_id scalar, const ts_shape *shape, ts_value_id *out) {
  return ts_graph_broadcast_to(p->to, p->scope->region, scalar, shape, out);
}

ts_status ts_part_indices(ts_partitioner *p, const ts_shape *shape, int32_t dim, ts_value_id offset, ts_value_id *out) {
  ts_attrs attrs;
  ts_value_id all;
  attrs.iota.dtype = TS_S64;
  attrs.iota.axis = dim;
  ts_shape_copy(&attrs.iota.shape, shape);
  TS_TRY(ts_part_add(p, TS_OP_IOTA, NULL, 0, &attrs, out));
  TS_TRY(ts_part_spread(p, offset, shape, &all));
  return ts_part_binary(p, TS_OP_ADD, *out, all, out);
}

ts_status ts_part_between(ts_partitioner *p, ts_value_id x, int64_t low, int64_t high, ts_value_id *out) {
  ts_value_id limit, above;
  TS_TRY(ts_part_constant_like(p, x, TS_S64, (ts_scalar){.s64 = low}, &limit));
  TS_TRY(ts_part_binary(p, TS_OP_GREATER_EQUAL, x, limit, &above));
  TS_TRY(ts_part_constant_like(p, x, TS_S64, (ts_scalar){.s64 = high}, &limit));
  TS_TRY(ts_part_binary(p, TS_OP_LESS, x, limit, out));
  return ts_part_binary(p, TS_OP_LOGICAL_AND, above, *out, out);
}

ts_status ts_part_clamp(ts_partitioner *p, ts_value_id x, int64_t low, int64_t high, ts_value_id *out) {
  ts_value_id limit;
  TS_TRY(ts_part_constant_like(p, x, TS_S64, (ts_scalar){.s64 = low}, &limit));
  TS_TRY(ts_part_binary(p, TS_OP_MAX, x, limit, &x));
  TS_TRY(ts_part_constant_like(p, x, TS_S64, (ts_scalar){.s64 = high}, &limit));
  return ts_part_binary(p, TS_OP_MIN, x, limit, out);
}

ts_status ts_part_select(ts_partitioner *p, ts_value_id mask, ts_value_id yes, ts_value_id no, ts_value_id *out) {
  return ts_part_add(p, TS_OP_SELECT, (ts_value_id[]){mask, yes, no}, 3, NULL, out);
}

ts_status ts_part_slice_at(ts_partitioner *p, ts_value_id x, int32_t dim, ts_value_id start, int64_t size,
                           ts_value_id *out) {
  ts_value_id operands[1 + TS_MAX_RANK], zero;
  ts_attrs attrs;
  ts_shape_copy(&attrs.shape, shape_of(p, x));
  if (attrs.shape.dims[dim] == size) {
    *out = x;
    return TS_SUCCESS;
  }
  attrs.shape.dims[dim] = size;
  operands[0] = x;
  TS_TRY(ts_part_number(p, 0, &zero));
  for (int32_t d = 0; d < attrs.shape.rank; d++) operands[1 + d] = d == dim ? start : zero;
  return ts_part_add(p, TS_OP_DYNAMIC_SLICE, operands, 1 + (size_t)attrs.shape.rank, &attrs, out);
}

ts_status ts_part_slice(ts_partitioner *p, ts_value_id x, int32_t dim, int64_t from, int64_t to, ts_value_id *out) {
  const ts_shape *shape = shape_of(p, x);
  ts_attrs attrs;
  *out = x;
  if (from == 0 && to == shape->dims[dim]) return TS_SUCCESS;
  attrs.slice.start.rank = attrs.slice.stride.rank = shape->rank;
  ts_shape_copy(&attrs.slice.limit, shape);
  for (int32_t d = 0; d < shape->rank; d++) {
    attrs.slice.start.dims[d] = 0;
    attrs.slice.stride.dims[d] = 1;
  }
  attrs.slice.start.dims[dim] = from;
  attrs.slice.limit.dims[dim] = to;
  return ts_part_add(p, TS_OP_SLICE, &x, 1, &attrs, out);
}

void ts_split_moved_axes(const ts_factors *f, const ts_assignment *a, int32_t tensor, int32_t dim, ts_dims *out) {
  int32_t factor = f->of[tensor][dim];
  out->rank = 0;
  if (factor < 0 || !(f->moved >> factor & 1)) return;
  for (int32_t i = 0; i < a->factors[factor].count; i++) out->dims[out->rank++] = a->factors[factor].axes[i];
}

void ts_split_part(const ts_split *s, int32_t tensor, ts_shape *out) {
  ts_sharding sharding;
  ts_assignment_sharding(s->f, s->a, tensor, &sharding);
  ts_sharding_part(ts_part_mesh(s->p), &sharding, s->f->shapes[tensor], out);
}
