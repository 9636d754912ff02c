/* Tuples, which exist only while a program is read; tokens, without a value; map. */
#include "stablehlo/make.h"

/* A value without use, for a tuple or a token. */
static ts_status nothing(const make_call *m, ts_value_id *out) {
  return make_integer_of(m, TS_U8, &ts_shape_scalar, 0, out);
}

static ts_status tuple(const make_call *m) {
  void *parts;
  ts_value_id id;
  const mlir_types *types = m->op->types.count == 1 ? m->op->types.data[0].parts : NULL;
  if (!types || types->count != m->op->operand_count)
    return make_error(m, TS_INVALID_ARGUMENT, "expected one result, a tuple of the operands");
  TS_TRY(nothing(m, &id));
  TS_TRY(ts_arena_copy(&m->r->arena, m->operands, (m->op->operand_count + 1) * sizeof *m->operands, &parts));
  m->results[0] = (make_value){.id = id, .parts = parts, .part_count = m->op->operand_count};
  return TS_SUCCESS;
}

static ts_status get_tuple_element(const make_call *m) {
  const mlir_attr *index = make_attr(m, "index");
  ts_dims which;
  TS_TRY(make_count_operands(m, 1));
  if (!index) index = make_positional(m->op, 0);
  if (!index) return make_error(m, TS_INVALID_ARGUMENT, "expected an index");
  TS_TRY(mlir_attr_ints(index, &which));
  const make_value *whole = &m->operands[0];
  if (!whole->parts || which.rank != 1 || which.dims[0] < 0 || which.dims[0] >= (int64_t)whole->part_count)
    return make_error(m, TS_INVALID_ARGUMENT, "its operand has no such part");
  m->results[0] = whole->parts[which.dims[0]];
  if (!m->results[0].parts == !m->op->types.data[0].parts) return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "its result and its type differ: one of them is a tuple");
}

ts_status make_in_tuple(const make_call *m) {
  return mlir_token_is(m->op->name, "stablehlo.tuple") ? tuple(m) : get_tuple_element(m);
}

ts_status make_token(const make_call *m, size_t result) {
  const mlir_type *type = &m->op->types.data[result];
  ts_value_id id;
  if (!type->shape || type->dtype != TS_U8 || ts_shape_elements(type->shape) != 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a token as result %zu", result);
  TS_TRY(make_integer_of(m, TS_U8, type->shape, 0, &id));
  make_result(m, result, id);
  return TS_SUCCESS;
}

/* after_all, create_token: ops of the graph are in the order of their values. */
ts_status make_in_token(const make_call *m) {
  TS_TRY(make_count_operands(m, m->op->operand_count));
  return make_token(m, 0);
}

/* The region of scalars, of all elements at once. */
ts_status make_in_map(const make_call *m) {
  ts_value_id *ids;
  make_value result;
  if (m->op->region_count != 1 || m->op->types.count != 1 || m->op->operand_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected operands, a region and one result");
  const mlir_region *region = &m->op->regions[0];
  if (region->param_count != m->op->operand_count || region->op_count == 0 ||
      region->ops[region->op_count - 1].operand_count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "its region takes other than %zu numbers, or gives other than one",
                      m->op->operand_count);
  for (size_t i = 1; i < m->op->operand_count; i++)
    if (!ts_shape_equal(make_operand_of(m, i)->shape, make_operand_of(m, 0)->shape))
      return make_error(m, TS_INVALID_ARGUMENT, "its operands have several shapes");
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, m->op->operand_count, &ids));
  for (size_t i = 0; i < m->op->operand_count; i++) ids[i] = m->operands[i].id;
  TS_TRY(make_lifted(m, region, ids, &result));
  make_result(m, 0, result.id);
  return TS_SUCCESS;
}
