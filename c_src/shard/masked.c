/* Ops on indices of a dim that is cut. Each partition takes or writes its own elements. The results of other partitions
 * are zeros, which an `or` of the bits joins, or keep their elements. Indices are s64 here: of the whole dim, or of a
 * part.
 */
#include "shard/partitioner.h"

#include <string.h>

static const ts_shape *shape_of(const ts_split *s, ts_value_id value) { return ts_graph_value(s->p->to, value)->shape; }

static ts_status spread_along(const ts_split *s, ts_value_id x, int32_t from, const ts_shape *shape, ts_value_id *out) {
  ts_attrs attrs;
  ts_shape_copy(&attrs.broadcast.shape, shape);
  attrs.broadcast.axes.rank = shape_of(s, x)->rank;
  for (int32_t i = 0; i < attrs.broadcast.axes.rank; i++) attrs.broadcast.axes.dims[i] = from + i;
  return ts_part_add(s->p, TS_OP_BROADCAST, &x, 1, &attrs, out);
}

/* Indices as s64. Indices of type u64 are at most `high` before, as s64 cannot hold all of them. */
static ts_status to_s64(const ts_split *s, ts_value_id x, int64_t high, ts_value_id *out) {
  *out = x;
  if (ts_graph_value(s->p->to, x)->dtype == TS_U64) {
    ts_value_id limit;
    TS_TRY(ts_part_constant_like(s->p, x, TS_U64, (ts_scalar){.u64 = (uint64_t)high}, &limit));
    TS_TRY(ts_part_binary(s->p, TS_OP_MIN, x, limit, out));
  }
  return ts_graph_convert(s->p->to, s->p->scope->region, *out, TS_S64, out);
}

/* Indices clamped to [0, high]. */
static ts_status clamped(const ts_split *s, ts_value_id x, int64_t high, ts_value_id *out) {
  TS_TRY(to_s64(s, x, high, out));
  return ts_part_clamp(s->p, *out, 0, high, out);
}

/* Adds a number to all of them. */
static ts_status shift(const ts_split *s, ts_value_id offset, ts_value_id *inout) {
  TS_TRY(ts_part_spread(s->p, offset, shape_of(s, *inout), &offset));
  return ts_part_binary(s->p, TS_OP_ADD, *inout, offset, inout);
}

/* Elements become 0 where `mask` is false. The mask's dims are the dims of `inout` from `dim` on. */
static ts_status keep_own(const ts_split *s, ts_value_id mask, int32_t dim, ts_value_id *inout) {
  ts_value_id zeros;
  ts_dtype dtype = ts_graph_value(s->p->to, *inout)->dtype;
  TS_TRY(ts_part_constant_like(s->p, *inout, dtype, (ts_scalar){.bits = 0}, &zeros));
  TS_TRY(spread_along(s, mask, dim, shape_of(s, *inout), &mask));
  return ts_part_select(s->p, mask, *inout, zeros, inout);
}

/* ---- take, and slices at dynamic starts ---- */

/* Converts indices of the dim to indices of the part; `out_own`: whether each index is in the partition's part. */
static ts_status localize(const ts_split *s, const ts_dims *axes, int64_t size, ts_value_id *inout,
                          ts_value_id *out_own) {
  ts_value_id offset;
  TS_TRY(ts_part_position(s->p, axes, -size, 0, &offset));
  TS_TRY(shift(s, offset, inout));
  TS_TRY(ts_part_between(s->p, *inout, 0, size, out_own));
  return ts_part_clamp(s->p, *inout, 0, size - 1, inout);
}

static ts_status take(const ts_split *s, ts_value_id *out) {
  int32_t axis = s->op->attrs->axis;
  ts_dims axes;
  ts_value_id operands[2] = {s->operands[0]}, own;
  ts_split_moved_axes(s->f, s->a, 0, axis, &axes);
  TS_TRY(clamped(s, s->operands[1], s->f->shapes[0]->dims[axis] - 1, &operands[1]));
  TS_TRY(localize(s, &axes, shape_of(s, operands[0])->dims[axis], &operands[1], &own));
  TS_TRY(ts_part_add(s->p, s->op->code, operands, 2, s->op->attrs, out));
  return keep_own(s, own, s->op->code == TS_OP_TAKE ? axis : 0, out);
}

/* Takes consecutive elements of one dim. */
static ts_status take_range(const ts_split *s, int32_t dim, const ts_dims *axes, ts_value_id *inout) {
  int64_t whole = s->f->shapes[0]->dims[dim], size = s->op->attrs->shape.dims[dim];
  ts_value_id operands[2] = {*inout}, start, own;
  ts_shape line = {.rank = 1, .dims = {size}};
  TS_TRY(clamped(s, s->operands[1 + dim], whole - size, &start));
  TS_TRY(ts_part_indices(s->p, &line, 0, start, &operands[1]));
  TS_TRY(localize(s, axes, shape_of(s, *inout)->dims[dim], &operands[1], &own));
  TS_TRY(ts_part_add(s->p, TS_OP_TAKE, operands, 2, &(ts_attrs){.axis = dim}, inout));
  return keep_own(s, own, dim, inout);
}

/* First along the other dims: that leaves less to take. A start of a dim that is whole in the slice is clamped to 0. */
static ts_status dynamic_slice(const ts_split *s, ts_value_id *out) {
  ts_attrs attrs;
  ts_dims axes;
  ts_split_part(s, s->f->operands, &attrs.shape);
  for (int32_t d = 0; d < attrs.shape.rank; d++) {
    ts_split_moved_axes(s->f, s->a, 0, d, &axes);
    if (axes.rank > 0) attrs.shape.dims[d] = shape_of(s, s->operands[0])->dims[d];
  }
  TS_TRY(ts_part_add(s->p, TS_OP_DYNAMIC_SLICE, s->operands, s->op->operand_count, &attrs, out));
  for (int32_t d = 0; d < attrs.shape.rank; d++) {
    ts_split_moved_axes(s->f, s->a, 0, d, &axes);
    if (axes.rank > 0) TS_TRY(take_range(s, d, &axes, out));
  }
  return TS_SUCCESS;
}

/* ---- writing ---- */

/* Makes an update as large as the part in one dim; `mask`, u8 of that dim, is true for the elements of it that are
 * written. */
static ts_status widen_update(const ts_split *s, int32_t dim, const ts_dims *axes, ts_value_id *update,
                              ts_value_id *mask) {
  int64_t whole = s->f->shapes[0]->dims[dim], size = s->f->shapes[1]->dims[dim];
  int64_t part = shape_of(s, s->operands[0])->dims[dim];
  ts_value_id operands[2] = {*update}, start, offset;
  ts_shape line = {.rank = 1, .dims = {part}};
  TS_TRY(clamped(s, s->operands[2 + dim], whole - size, &start));
  TS_TRY(ts_part_position(s->p, axes, part, 0, &offset));
  TS_TRY(ts_part_binary(s->p, TS_OP_SUBTRACT, offset, start, &offset));
  TS_TRY(ts_part_indices(s->p, &line, 0, offset, &operands[1]));
  TS_TRY(ts_part_between(s->p, operands[1], 0, size, mask));
  TS_TRY(ts_part_clamp(s->p, operands[1], 0, size - 1, &operands[1]));
  return ts_part_add(s->p, TS_OP_TAKE, operands, 2, &(ts_attrs){.axis = dim}, update);
}

/* The slice of that shape at the op's starts. */
static ts_status read_slice(const ts_split *s, const ts_shape *shape, ts_value_id *out) {
  ts_value_id operands[1 + TS_MAX_RANK];
  ts_attrs attrs;
  ts_shape_copy(&attrs.shape, shape);
  operands[0] = s->operands[0];
  memcpy(operands + 1, s->operands + 2, (size_t)shape->rank * sizeof *operands);
  return ts_part_add(s->p, TS_OP_DYNAMIC_SLICE, operands, 1 + (size_t)shape->rank, &attrs, out);
}

static ts_status put_slice(const ts_split *s, ts_value_id *out) {
  ts_value_id operands[2 + TS_MAX_RANK], update = s->operands[1], masks[TS_MAX_RANK], present;
  int32_t rank = s->f->shapes[0]->rank;
  for (int32_t d = 0; d < rank; d++) {
    ts_dims axes;
    ts_split_moved_axes(s->f, s->a, 0, d, &axes);
    masks[d] = TS_NO_ID;
    if (axes.rank > 0) TS_TRY(widen_update(s, d, &axes, &update, &masks[d]));
  }
  TS_TRY(read_slice(s, shape_of(s, update), &present));
  for (int32_t d = 0; d < rank; d++) {
    if (masks[d] == TS_NO_ID) continue;
    TS_TRY(spread_along(s, masks[d], d, shape_of(s, update), &masks[d]));
    TS_TRY(ts_part_select(s->p, masks[d], update, present, &update));
  }
  memcpy(operands, s->operands, s->op->operand_count * sizeof *operands);
  operands[1] = update;
  return ts_part_add(s->p, TS_OP_PUT_SLICE, operands, s->op->operand_count, NULL, out);
}

/* Indices of the part along one axis. Indices out of bounds are dropped, as without a mesh. */
static ts_status index_column(const ts_split *s, int32_t k, ts_value_id *out) {
  int32_t dim = (int32_t)s->op->attrs->axes.dims[k];
  int64_t whole = s->f->shapes[0]->dims[dim];
  ts_dims axes;
  ts_value_id offset;
  ts_split_moved_axes(s->f, s->a, 0, dim, &axes);
  TS_TRY(ts_part_slice(s->p, s->operands[1], 1, k, k + 1, out));
  TS_TRY(to_s64(s, *out, whole, out));
  if (axes.rank == 0) return TS_SUCCESS;
  TS_TRY(ts_part_clamp(s->p, *out, -1, whole, out));
  TS_TRY(ts_part_position(s->p, &axes, -shape_of(s, s->operands[0])->dims[dim], 0, &offset));
  return shift(s, offset, out);
}

static ts_status index_columns(const ts_split *s, ts_value_id *out) {
  ts_value_id columns[TS_MAX_RANK];
  int32_t count = s->op->attrs->axes.rank;
  columns[0] = s->operands[1]; /* of no axes */
  for (int32_t k = 0; k < count; k++) TS_TRY(index_column(s, k, &columns[k]));
  *out = columns[0];
  if (count == 1) return TS_SUCCESS;
  return ts_part_add(s->p, TS_OP_CONCATENATE, columns, (size_t)count, &(ts_attrs){.axis = 1}, out);
}

/* If rows are cut, the first partition of a group adds to the target, the others to -0, which changes no sum. */
static ts_status target_of_rows(const ts_split *s, const ts_dims *axes, ts_value_id *inout) {
  ts_dtype dtype = ts_graph_value(s->p->to, *inout)->dtype;
  ts_scalar neutral = ts_dtype_is_complex(dtype) ? ts_scalar_complex(dtype, -0.0, -0.0)
                      : ts_dtype_is_float(dtype) ? ts_scalar_from_f64(dtype, -0.0)
                                                 : ts_scalar_from_s64(dtype, 0);
  ts_value_id index, first, other;
  TS_TRY(ts_part_position(s->p, axes, 1, 0, &index));
  TS_TRY(ts_part_between(s->p, index, 0, 1, &first));
  TS_TRY(ts_part_spread(s->p, first, shape_of(s, *inout), &first));
  TS_TRY(ts_part_constant_like(s->p, *inout, dtype, neutral, &other));
  return ts_part_select(s->p, first, *inout, other, inout);
}

static ts_status indexed_update(const ts_split *s, ts_value_id *out) {
  ts_value_id operands[3] = {s->operands[0], TS_NO_ID, s->operands[2]};
  ts_dims rows;
  ts_split_moved_axes(s->f, s->a, 1, 0, &rows);
  TS_TRY(index_columns(s, &operands[1]));
  if (rows.rank > 0) TS_TRY(target_of_rows(s, &rows, &operands[0]));
  return ts_part_add(s->p, s->op->code, operands, 3, s->op->attrs, out);
}

/* ---- the greatest and the least ---- */

static ts_status reshape(const ts_split *s, ts_value_id x, const ts_shape *shape, ts_value_id *out) {
  ts_attrs attrs;
  ts_shape_copy(&attrs.shape, shape);
  return ts_part_add(s->p, TS_OP_RESHAPE, &x, 1, &attrs, out);
}

/* The index in each line of a dim, with the dim kept. */
static ts_status find_in_line(const ts_split *s, ts_value_id x, int32_t axis, ts_value_id *out) {
  ts_attrs attrs;
  ts_shape one;
  attrs.arg.axis = axis;
  attrs.arg.high = s->op->attrs->arg.high;
  attrs.arg.dtype = TS_S64;
  ts_shape_copy(&one, shape_of(s, x));
  one.dims[axis] = 1;
  TS_TRY(ts_part_add(s->p, s->op->code, &x, 1, &attrs, out));
  return reshape(s, *out, &one, out);
}

static ts_status take_along(const ts_split *s, ts_value_id x, ts_value_id index, int32_t axis, ts_value_id *out) {
  return ts_part_add(s->p, TS_OP_TAKE_ALONG, (ts_value_id[]){x, index}, 2, &(ts_attrs){.axis = axis}, out);
}

/* Each partition finds its element, then the best of the gathered elements. Ties and NaN are decided as in one walk,
 * since partitions are in the order of their parts. */
static ts_status find_of_all(const ts_split *s, ts_value_id x, int32_t axis, const ts_dims *axes, ts_value_id *out) {
  ts_value_id pair[2], offset, index;
  ts_attrs attrs;
  TS_TRY(find_in_line(s, x, axis, &index));
  TS_TRY(take_along(s, x, index, axis, &pair[0]));
  TS_TRY(ts_part_position(s->p, axes, shape_of(s, x)->dims[axis], 0, &offset));
  pair[1] = index;
  TS_TRY(shift(s, offset, &pair[1]));
  ts_shape_copy(&attrs.along.axes, axes);
  attrs.along.dim = axis;
  TS_TRY(ts_part_add(s->p, TS_OP_ALL_GATHER, pair, 2, &attrs, out));
  pair[0] = *out;
  pair[1] = *out + 1;
  TS_TRY(find_in_line(s, pair[0], axis, &index));
  return take_along(s, pair[1], index, axis, out);
}

/* The dim of the operand that is cut by a moved factor. */
static int32_t cut_dim(const ts_split *s, ts_dims *axes) {
  for (int32_t d = 0; d < s->f->shapes[0]->rank; d++) {
    ts_split_moved_axes(s->f, s->a, 0, d, axes);
    if (axes->rank > 0) return d;
  }
  return -1;
}

static ts_status arg_reduce(const ts_split *s, ts_value_id *out) {
  ts_dims axes;
  ts_shape part, line = {.rank = 1};
  ts_value_id x = s->operands[0];
  int32_t axis = cut_dim(s, &axes);
  if (s->op->attrs->arg.axis < 0) {
    line.dims[0] = ts_shape_elements(shape_of(s, x));
    TS_TRY(reshape(s, x, &line, &x));
    axis = 0;
  }
  TS_TRY(find_of_all(s, x, axis, &axes, out));
  ts_split_part(s, 1, &part);
  TS_TRY(reshape(s, *out, &part, out));
  return ts_graph_convert(s->p->to, s->p->scope->region, *out, s->op->attrs->arg.dtype, out);
}

/* ---- the dispatch ---- */

ts_status ts_split_masked(const ts_split *s, ts_value_id *out) {
  switch ((int)s->op->code) {
  case TS_OP_TAKE:
  case TS_OP_TAKE_ALONG: return take(s, out);
  case TS_OP_DYNAMIC_SLICE: return dynamic_slice(s, out);
  case TS_OP_PUT_SLICE: return put_slice(s, out);
  case TS_OP_INDEXED_ADD:
  case TS_OP_INDEXED_PUT: return indexed_update(s, out);
  case TS_OP_ARGMAX:
  case TS_OP_ARGMIN: return arg_reduce(s, out);
  default: return ts_error(TS_INTERNAL, "%s has no indices", ts_op_name(s->op->code));
  }
}

int64_t ts_split_masked_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  ts_split s = {.op = op, .f = f, .a = a};
  ts_dims axes;
  if (ts_op_get_class(op->code) != TS_CLASS_ARG_REDUCE) return 0;
  if (cut_dim(&s, &axes) < 0) return 0;
  int64_t each = (int64_t)ts_dtype_size(ts_graph_value(p->in, op->operands[0])->dtype) + 8;
  return (ts_mesh_group_size(ts_part_mesh(p), &axes) - 1) * each * ts_shape_elements(f->shapes[1]);
}
