/* The product of a sparse matrix in compressed rows and a dense one, as JAX's BCSR calls it. Entry k of row r lies at
 * one of the positions from outer[r] to outer[r + 1]; entries after the last row, and before the first one, are padding
 * and belong to no row. Each element of the result adds its products in the order of the entries. */
#include "stablehlo/make_lapack.h"

enum { DATA, OUTER, INNER, DENSE, OPERANDS };

static ts_status check(const make_call *m) {
  if (m->op->operand_count < OPERANDS || m->op->types.count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected %d operands and 1 result", OPERANDS);
  const ts_value *data = make_operand_of(m, DATA), *outer = make_operand_of(m, OUTER),
                 *inner = make_operand_of(m, INNER), *dense = make_operand_of(m, DENSE);
  if (data->shape->rank != 1 || outer->shape->rank != 1 || !ts_shape_equal(data->shape, inner->shape) ||
      dense->shape->rank < 1 || dense->shape->rank > 2 || outer->shape->dims[0] < 1)
    return make_error(m, TS_INVALID_ARGUMENT, "its entries, its rows and its dense operand do not agree");
  if (outer->dtype != inner->dtype || (inner->dtype != TS_S32 && inner->dtype != TS_S64))
    return make_error(m, TS_INVALID_ARGUMENT, "expected indices of s32 or of s64");
  if (data->dtype != dense->dtype)
    return make_error(m, TS_INVALID_ARGUMENT, "its entries are %s, and its dense operand %s",
                      TS_SHAPE_STR(data->dtype, data->shape), TS_SHAPE_STR(dense->dtype, dense->shape));
  return TS_SUCCESS;
}

/* target[index] += updates, for each index along the first dim. Indices out of range are left out. */
static ts_status add_at(const make_call *m, ts_value_id target, ts_value_id indices, ts_value_id updates,
                        ts_value_id *out) {
  ts_attrs attrs = {.axes = {.rank = 1, .dims = {0}}};
  TS_TRY(make_with_dim(m, indices, 1, &indices));
  return make_add(m, TS_OP_INDEXED_ADD, (ts_values){(ts_value_id[]){target, indices, updates}, 3}, &attrs, out);
}

/* The row of each entry: how many rows begin at its position or before it, less one. */
static ts_status find_rows(const make_call *m, ts_value_id *out) {
  const ts_value *outer = make_operand_of(m, OUTER);
  ts_attrs scan = {0};
  ts_value_id begins, ones;
  TS_TRY(make_integer_of(m, outer->dtype, make_operand_of(m, INNER)->shape, 0, &begins));
  TS_TRY(make_integer(m, m->operands[OUTER].id, 1, &ones));
  TS_TRY(add_at(m, begins, m->operands[OUTER].id, ones, &begins));
  TS_TRY(make_add(m, TS_OP_CUMULATIVE_SUM, (ts_values){&begins, 1}, &scan, out));
  return make_with_integer(m, TS_OP_SUBTRACT, *out, 1, out);
}

ts_status make_in_csr_dense(const make_call *m) {
  ts_attrs first = {0};
  ts_value_id rows, products, factors = m->operands[DATA].id, id;
  TS_TRY(check(m));
  const ts_dtype type = make_operand_of(m, DATA)->dtype;
  ts_shape shape = *make_operand_of(m, DENSE)->shape;
  shape.dims[0] = make_operand_of(m, OUTER)->shape->dims[0] - 1;
  TS_TRY(make_fill(m, type, &shape, 0, &id));
  if (ts_shape_elements(make_operand_of(m, DATA)->shape) > 0 &&
      ts_shape_elements(make_operand_of(m, DENSE)->shape) > 0) {
    TS_TRY(find_rows(m, &rows));
    TS_TRY(make_add(m, TS_OP_TAKE, (ts_values){(ts_value_id[]){m->operands[DENSE].id, m->operands[INNER].id}, 2},
                    &first, &products));
    if (shape.rank > 1) TS_TRY(make_with_dim(m, factors, 1, &factors));
    TS_TRY(make_broadcast_to(m, factors, make_value_of(m, products)->shape, &factors));
    TS_TRY(make_binary(m, TS_OP_MULTIPLY, factors, products, &products));
    TS_TRY(add_at(m, id, rows, products, &id));
  }
  make_result(m, 0, id);
  return TS_SUCCESS;
}
