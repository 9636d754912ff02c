#include "pass/nest.h"
#include "pass/simplify.h"

static const ts_shape *shape_of(const ts_rule_call *s, ts_value_id value) {
  return ts_graph_value(s->rules->to, value)->shape;
}

static bool is_identity(const ts_dims *axes) {
  for (int32_t i = 0; i < axes->rank; i++) {
    if (axes->dims[i] != i) return false;
  }
  return true;
}

static bool all_equal(const ts_dims *dims, int64_t value) {
  for (int32_t i = 0; i < dims->rank; i++) {
    if (dims->dims[i] != value) return false;
  }
  return true;
}

/* ---- reshape, transpose ---- */

static ts_status simplify_reshape(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_RESHAPE);
  ts_value_id source = inner ? inner->operands[0] : s->op->operands[0];
  if (ts_shape_equal(shape_of(s, source), s->shape))
    *out = source;
  else if (inner)
    return ts_simplify_add(s, TS_OP_RESHAPE, source, &(ts_attrs){.shape = *s->shape}, out);
  return TS_SUCCESS;
}

static ts_status simplify_transpose(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_TRANSPOSE);
  ts_value_id source = s->op->operands[0];
  ts_attrs attrs = {.axes = s->op->attrs->axes};
  if (inner) {
    source = inner->operands[0];
    for (int32_t d = 0; d < attrs.axes.rank; d++)
      attrs.axes.dims[d] = inner->attrs->axes.dims[s->op->attrs->axes.dims[d]];
  }
  if (is_identity(&attrs.axes)) {
    *out = source;
    return TS_SUCCESS;
  }
  if (ts_shape_keeps_order(shape_of(s, source), &attrs.axes))
    return ts_simplify_add(s, TS_OP_RESHAPE, source, &(ts_attrs){.shape = *s->shape}, out);
  return inner ? ts_simplify_add(s, TS_OP_TRANSPOSE, source, &attrs, out) : TS_SUCCESS;
}

/* ---- broadcast ---- */

/* For a reshape that only inserts dims of one element: the result's dim for each dim of the operand. */
static bool inserts_ones(const ts_shape *from, const ts_shape *to, ts_dims *out) {
  *out = (ts_dims){.rank = from->rank};
  int32_t d = 0;
  for (int32_t i = 0; i < to->rank; i++) {
    if (d < from->rank && from->dims[d] == to->dims[i])
      out->dims[d++] = i;
    else if (to->dims[i] != 1)
      return false;
  }
  return d == from->rank;
}

static ts_status simplify_broadcast(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *reshape = ts_simplify_maker(s, s->op->operands[0], TS_OP_RESHAPE);
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_BROADCAST);
  ts_dims first;
  if (ts_shape_equal(shape_of(s, s->op->operands[0]), s->shape) && is_identity(&s->op->attrs->broadcast.axes)) {
    *out = s->op->operands[0];
    return TS_SUCCESS;
  }
  if (!inner && !reshape) return TS_SUCCESS;
  if (inner)
    first = inner->attrs->broadcast.axes;
  else if (!inserts_ones(shape_of(s, reshape->operands[0]), shape_of(s, s->op->operands[0]), &first))
    return TS_SUCCESS;
  ts_attrs attrs = {.broadcast = s->op->attrs->broadcast};
  attrs.broadcast.axes.rank = first.rank;
  for (int32_t d = 0; d < first.rank; d++)
    attrs.broadcast.axes.dims[d] = s->op->attrs->broadcast.axes.dims[first.dims[d]];
  return ts_simplify_add(s, TS_OP_BROADCAST, (inner ? inner : reshape)->operands[0], &attrs, out);
}

/* ---- slice, reverse, pad, concatenate ---- */

static ts_status simplify_slice(const ts_rule_call *s, ts_value_id *out) {
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_SLICE);
  ts_attrs attrs = {.slice = s->op->attrs->slice};
  if (ts_shape_equal(shape_of(s, s->op->operands[0]), s->shape)) {
    *out = s->op->operands[0];
    return TS_SUCCESS;
  }
  if (!inner || ts_shape_elements(s->shape) == 0) return TS_SUCCESS;
  for (int32_t d = 0; d < s->shape->rank; d++) {
    int64_t step = inner->attrs->slice.stride.dims[d];
    attrs.slice.start.dims[d] = inner->attrs->slice.start.dims[d] + attrs.slice.start.dims[d] * step;
    if (!ts_mul_i64(attrs.slice.stride.dims[d], step, &attrs.slice.stride.dims[d])) return TS_SUCCESS;
    if (s->shape->dims[d] == 1) attrs.slice.stride.dims[d] = 1;
    attrs.slice.limit.dims[d] = attrs.slice.start.dims[d] + (s->shape->dims[d] - 1) * attrs.slice.stride.dims[d] + 1;
  }
  return ts_simplify_add(s, TS_OP_SLICE, inner->operands[0], &attrs, out);
}

static void simplify_reverse(const ts_rule_call *s, ts_value_id *out) {
  const ts_dims *axes = &s->op->attrs->axes;
  const ts_op *inner = ts_simplify_maker(s, s->op->operands[0], TS_OP_REVERSE);
  if (inner && ts_shape_equal(&inner->attrs->axes, axes)) {
    *out = inner->operands[0];
    return;
  }
  for (int32_t i = 0; i < axes->rank; i++) {
    if (s->shape->dims[axes->dims[i]] > 1) return;
  }
  *out = s->op->operands[0];
}

static void simplify_pad(const ts_rule_call *s, ts_value_id *out) {
  if (!all_equal(&s->op->attrs->pad.low, 0) || !all_equal(&s->op->attrs->pad.high, 0)) return;
  if (ts_shape_equal(shape_of(s, s->op->operands[0]), s->shape)) *out = s->op->operands[0];
}

/* Drops empty operands. */
static ts_status simplify_concatenate(const ts_rule_call *s, ts_value_id *out) {
  ts_value_id *kept;
  size_t count = 0;
  if (ts_shape_elements(s->shape) == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(s->op->operand_count, &kept));
  for (uint32_t i = 0; i < s->op->operand_count; i++) {
    ts_value_id operand = s->op->operands[i];
    if (ts_shape_elements(shape_of(s, operand)) > 0) kept[count++] = operand;
  }
  ts_status status = TS_SUCCESS;
  if (count == 1)
    *out = kept[0];
  else if (count < s->op->operand_count)
    status = ts_rules_add(s->rules, s->target, TS_OP_CONCATENATE, (ts_values){kept, count}, s->op->attrs, out);
  ts_free(kept);
  return status;
}

/* ---- the choice by op ---- */

/* Ops that only move elements turn a splat into a splat. */
static bool moves_elements(ts_opcode code) { return code != TS_OP_PAD && code != TS_OP_CONCATENATE; }

ts_status ts_simplify_shape(const ts_rule_call *s, ts_value_id *out) {
  ts_scalar known;
  if (moves_elements(s->op->code) && ts_graph_is_constant(s->rules->to, s->op->operands[0], &known))
    return ts_rules_constant(s->rules, s->target, s->dtype, s->shape, known, out);
  switch (s->op->code) {
  case TS_OP_RESHAPE: return simplify_reshape(s, out);
  case TS_OP_TRANSPOSE: return simplify_transpose(s, out);
  case TS_OP_BROADCAST: return simplify_broadcast(s, out);
  case TS_OP_SLICE: return simplify_slice(s, out);
  case TS_OP_CONCATENATE: return simplify_concatenate(s, out);
  case TS_OP_REVERSE: simplify_reverse(s, out); return TS_SUCCESS;
  case TS_OP_PAD: simplify_pad(s, out); return TS_SUCCESS;
  default: return TS_SUCCESS;
  }
}

/* ---- indexed ---- */

/* The clamped starts, when all that matter are known. */
static bool known_starts(const ts_rule_call *s, uint32_t first, const ts_shape *whole, const ts_shape *part,
                         ts_dims *out) {
  *out = (ts_dims){.rank = whole->rank};
  for (int32_t d = 0; d < whole->rank; d++) {
    ts_value_id start = s->op->operands[first + (uint32_t)d];
    int64_t limit = whole->dims[d] - part->dims[d];
    ts_scalar known;
    if (limit == 0) continue;
    if (!ts_graph_is_constant(s->rules->to, start, &known)) return false;
    out->dims[d] = ts_dynamic_clamp(ts_graph_value(s->rules->to, start)->dtype, known, limit);
  }
  return true;
}

static ts_status simplify_dynamic_slice(const ts_rule_call *s, ts_value_id *out) {
  ts_attrs attrs = {0};
  const ts_shape *from = shape_of(s, s->op->operands[0]);
  if (ts_shape_equal(from, s->shape)) {
    *out = s->op->operands[0];
    return TS_SUCCESS;
  }
  if (!known_starts(s, 1, from, s->shape, &attrs.slice.start)) return TS_SUCCESS;
  attrs.slice.limit = attrs.slice.stride = attrs.slice.start;
  for (int32_t d = 0; d < from->rank; d++) {
    attrs.slice.limit.dims[d] += s->shape->dims[d];
    attrs.slice.stride.dims[d] = 1;
  }
  return ts_simplify_add(s, TS_OP_SLICE, s->op->operands[0], &attrs, out);
}

/* An axis of one element is read at that element, whatever the indices are. */
static ts_status take_only_element(const ts_rule_call *s, ts_value_id *out) {
  const ts_shape *from = shape_of(s, s->op->operands[0]);
  const int32_t axis = s->op->attrs->axis, inserted = s->shape->rank - from->rank;
  ts_attrs attrs = {.broadcast = {.shape = *s->shape, .axes = {.rank = from->rank}}};
  if (inserted < 0) return ts_simplify_add(s, TS_OP_RESHAPE, s->op->operands[0], &(ts_attrs){.shape = *s->shape}, out);
  for (int32_t d = 0; d < from->rank; d++) attrs.broadcast.axes.dims[d] = d > axis ? d + inserted : d;
  return ts_simplify_add(s, TS_OP_BROADCAST, s->op->operands[0], &attrs, out);
}

static ts_status simplify_take(const ts_rule_call *s, ts_value_id *out) {
  ts_scalar known;
  if (ts_graph_is_constant(s->rules->to, s->op->operands[0], &known))
    return ts_rules_constant(s->rules, s->target, s->dtype, s->shape, known, out);
  return shape_of(s, s->op->operands[0])->dims[s->op->attrs->axis] == 1 ? take_only_element(s, out) : TS_SUCCESS;
}

ts_status ts_simplify_indexed(const ts_rule_call *s, ts_value_id *out) {
  switch (s->op->code) {
  case TS_OP_DYNAMIC_SLICE: return simplify_dynamic_slice(s, out);
  case TS_OP_PUT_SLICE:
    if (ts_shape_equal(shape_of(s, s->op->operands[1]), s->shape)) *out = s->op->operands[1];
    return TS_SUCCESS;
  case TS_OP_TAKE:
  case TS_OP_TAKE_ALONG: return simplify_take(s, out);
  default: return TS_SUCCESS;
  }
}
