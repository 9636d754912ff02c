/* Reduces the rank of ops that have more dims than a kernel has loops: neighbouring dims that the op treats alike are
 * merged, by reshapes before and after the op, which move no data. An op that still has too many dims is interpreted.
 * Dims of one element are ignored. */
#include "pass/nest.h"
#include "pass/simplify.h"

/* The group of each dim (-1: none), and the groups' sizes. */
typedef struct groups {
  int32_t of[TS_MAX_RANK];
  ts_shape shape;
} groups;

static const ts_shape *operand_shape(const ts_rule_call *s, uint32_t i) {
  return ts_graph_value(s->rules->to, s->op->operands[i])->shape;
}

static int32_t count_dims(const ts_shape *shape) {
  int32_t count = 0;
  for (int32_t d = 0; d < shape->rank; d++) count += shape->dims[d] != 1;
  return count;
}

/* The axis attribute of an op; -1: none. */
static int32_t axis_of(const ts_op *op) {
  switch (ts_op_attr_kind(op->code)) {
  case TS_ATTR_AXIS: return op->attrs->axis;
  case TS_ATTR_SCAN: return op->attrs->scan.axis;
  case TS_ATTR_ARG: return op->attrs->arg.axis;
  default: return -1;
  }
}

static bool is_whole(const ts_op *op, const ts_shape *shape, int32_t d) {
  return op->attrs->slice.start.dims[d] == 0 && op->attrs->slice.limit.dims[d] == shape->dims[d] &&
         op->attrs->slice.stride.dims[d] == 1;
}

/* True when a transpose keeps `d` directly after `before`, dims of one element aside. */
static bool stays_behind(const ts_dims *axes, const ts_shape *shape, int32_t before, int32_t d) {
  int32_t i = 0;
  while (axes->dims[i] != before) i++;
  for (i++; i < axes->rank && axes->dims[i] != d; i++)
    if (shape->dims[axes->dims[i]] != 1) return false;
  return i < axes->rank;
}

/* Whether the op treats two neighbouring dims alike. */
static bool joins(const ts_op *op, const ts_shape *shape, int32_t before, int32_t d) {
  int32_t axis = axis_of(op);
  if (op->code == TS_OP_TRANSPOSE) return stays_behind(&op->attrs->axes, shape, before, d);
  if (op->code == TS_OP_SLICE) return is_whole(op, shape, before) && is_whole(op, shape, d);
  if (ts_op_attr_kind(op->code) != TS_ATTR_AXES) return before != axis && d != axis;
  uint64_t axes = ts_dims_mask(&op->attrs->axes);
  return (axes >> before & 1) == (axes >> d & 1);
}

static void group_dims(const ts_op *op, const ts_shape *shape, groups *out) {
  int32_t before = -1;
  out->shape.rank = 0;
  for (int32_t d = 0; d < shape->rank; d++) {
    out->of[d] = -1;
    if (shape->dims[d] == 1 && d != axis_of(op)) continue;
    if (before < 0 || !joins(op, shape, before, d)) out->shape.dims[out->shape.rank++] = 1;
    out->of[d] = out->shape.rank - 1;
    out->shape.dims[out->of[d]] *= shape->dims[d];
    before = d;
  }
}

/* The groups of the axes, each once, in the axes' order. */
static void group_axes(const groups *g, const ts_dims *axes, ts_dims *out) {
  uint64_t seen = 0;
  out->rank = 0;
  for (int32_t i = 0; i < axes->rank; i++) {
    int32_t group = g->of[axes->dims[i]];
    if (group < 0 || (seen >> group & 1)) continue;
    seen |= UINT64_C(1) << group;
    out->dims[out->rank++] = group;
  }
}

/* A dim that the slice cuts is a group of its own. */
static void group_slice(const groups *g, const ts_op *op, const ts_shape *shape, ts_attrs *out) {
  ts_dims *start = &out->slice.start, *limit = &out->slice.limit, *stride = &out->slice.stride;
  start->rank = limit->rank = stride->rank = g->shape.rank;
  for (int32_t d = 0; d < shape->rank; d++) {
    int32_t i = g->of[d];
    if (i < 0) continue;
    bool whole = is_whole(op, shape, d);
    start->dims[i] = op->attrs->slice.start.dims[d];
    limit->dims[i] = whole ? g->shape.dims[i] : op->attrs->slice.limit.dims[d];
    stride->dims[i] = op->attrs->slice.stride.dims[d];
  }
}

static void group_attrs(const groups *g, const ts_op *op, const ts_shape *shape, ts_attrs *out) {
  *out = ts_op_copy_attrs(op);
  int32_t axis = axis_of(op);
  switch (ts_op_attr_kind(op->code)) {
  case TS_ATTR_AXES: group_axes(g, &op->attrs->axes, &out->axes); break;
  case TS_ATTR_SLICE: group_slice(g, op, shape, out); break;
  case TS_ATTR_AXIS: out->axis = g->of[axis]; break;
  case TS_ATTR_SCAN: out->scan.axis = g->of[axis]; break;
  case TS_ATTR_ARG: out->arg.axis = axis < 0 ? -1 : g->of[axis]; break;
  default: break;
  }
}

static ts_status reshape(const ts_rule_call *s, ts_value_id value, const ts_shape *shape, ts_value_id *out) {
  ts_attrs attrs;
  ts_shape_copy(&attrs.shape, shape);
  return ts_simplify_add(s, TS_OP_RESHAPE, value, &attrs, out);
}

static ts_status apply(const ts_rule_call *s, const ts_value_id *operands, const ts_attrs *attrs, ts_value_id *out) {
  TS_TRY(ts_rules_add(s->rules, s->target, s->op->code, (ts_values){operands, s->op->operand_count}, attrs, out));
  return reshape(s, *out, s->shape, out);
}

/* ---- kinds of ops ---- */

static ts_status collapse_elementwise(const ts_rule_call *s, ts_value_id *out) {
  ts_value_id operands[3];
  ts_shape flat = {.rank = 1, .dims = {ts_shape_elements(s->shape)}};
  for (uint32_t i = 0; i < s->op->operand_count; i++) TS_TRY(reshape(s, s->op->operands[i], &flat, &operands[i]));
  return apply(s, operands, s->op->attrs, out);
}

static ts_status collapse_axes(const ts_rule_call *s, ts_value_id *operands, ts_value_id *out) {
  const ts_shape *shape = operand_shape(s, 0);
  ts_attrs attrs;
  groups g;
  group_dims(s->op, shape, &g);
  if (g.shape.rank >= count_dims(shape)) return TS_SUCCESS;
  group_attrs(&g, s->op, shape, &attrs);
  for (uint32_t i = 0; i < s->op->operand_count; i++) {
    group_dims(s->op, operand_shape(s, i), &g);
    TS_TRY(reshape(s, s->op->operands[i], &g.shape, &operands[i]));
  }
  return apply(s, operands, &attrs, out);
}

/* Merges neighbouring dims of the result that stem from neighbouring dims of the operand, and neighbouring dims that
 * repeat it. */
static ts_status collapse_broadcast(const ts_rule_call *s, ts_value_id *out) {
  const ts_shape *from = operand_shape(s, 0);
  const ts_dims *axes = &s->op->attrs->broadcast.axes;
  ts_attrs attrs;
  ts_shape *to = &attrs.broadcast.shape, source = {.rank = 0};
  bool read[TS_MAX_RANK] = {false}, was_read = false;
  to->rank = attrs.broadcast.axes.rank = 0;
  for (int32_t i = 0; i < from->rank; i++)
    if (from->dims[i] != 1) read[axes->dims[i]] = true;
  for (int32_t d = 0; d < s->shape->rank; d++) {
    int64_t size = s->shape->dims[d];
    if (size == 1) continue;
    if (to->rank == 0 || read[d] != was_read) {
      if (read[d]) attrs.broadcast.axes.dims[attrs.broadcast.axes.rank++] = to->rank;
      if (read[d]) source.dims[source.rank++] = 1;
      to->dims[to->rank++] = 1;
    }
    to->dims[to->rank - 1] *= size;
    if (read[d]) source.dims[source.rank - 1] *= size;
    was_read = read[d];
  }
  if (to->rank >= count_dims(s->shape)) return TS_SUCCESS;
  ts_value_id operand;
  TS_TRY(reshape(s, s->op->operands[0], &source, &operand));
  return apply(s, &operand, &attrs, out);
}

/* True when the operand's dims keep their order in the result. */
static bool is_ascending(const ts_dims *axes) {
  for (int32_t i = 1; i < axes->rank; i++)
    if (axes->dims[i] < axes->dims[i - 1]) return false;
  return true;
}

static bool has_groups(const ts_op *op) {
  switch (op->code) {
  case TS_OP_TRANSPOSE:
  case TS_OP_REVERSE:
  case TS_OP_SLICE:
  case TS_OP_CONCATENATE: return true;
  default: return ts_op_is_reduction(op->code) || ts_op_get_class(op->code) == TS_CLASS_SCAN;
  }
}

ts_status ts_simplify_ranks(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *op = s->op;
  ts_value_id few[TS_REWRITE_FEW], *operands = few;
  if (count_dims(s->shape) <= TS_LOOP_MAX && count_dims(operand_shape(s, 0)) <= TS_LOOP_MAX) return TS_SUCCESS;
  bool elementwise = ts_op_is_elementwise(op->code);
  bool broadcast = op->code == TS_OP_BROADCAST && is_ascending(&op->attrs->broadcast.axes);
  if (!elementwise && !broadcast && !has_groups(op)) return TS_SUCCESS;
  if (s->rules->probing) {
    s->rules->changes = true;
    return TS_SUCCESS;
  }
  if (elementwise) return collapse_elementwise(s, out);
  if (broadcast) return collapse_broadcast(s, out);
  if (op->operand_count > TS_REWRITE_FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  ts_status status = collapse_axes(s, operands, out);
  if (operands != few) ts_free(operands);
  return status;
}
