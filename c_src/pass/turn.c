/* A product of a matrix and a vector is a sum of columns, or a sum along each row. Sums along rows have to be in order,
 * so rows that are contiguous are transposed in registers, which takes longer than the sums themselves. A loop that
 * multiplies the same matrix in each iteration transposes it once instead. No bit changes: the order of a sum depends
 * on the number of the term only. */
#include "pass/hoist.h"
#include "pass/rewrite.h"

#include <string.h>

/* Larger matrices are read from memory, which takes as long in either form. */
#define MOST_BYTES (INT64_C(1) << 20)
/* Fewer sums than this do not fill a vector. */
#define FEWEST_SUMS 8

typedef struct turning {
  ts_rewrite rw;
  const uint8_t *state; /* hoist.h */
} turning;

/* The matrix of a product, and how it is read: its dims as {batch, terms, others}. */
typedef struct turned {
  uint32_t operand;
  ts_value_id source; /* the matrix, or what it is a transpose of */
  ts_dims axes;
  int32_t batch;
} turned;

static bool contains(const ts_dims *dims, int64_t d) {
  for (int32_t i = 0; i < dims->rank; i++)
    if (dims->dims[i] == d) return true;
  return false;
}

static const ts_dims *batch_of(const ts_op *op, uint32_t i) {
  return i == 0 ? &op->attrs->dot.lhs_batch : &op->attrs->dot.rhs_batch;
}

static const ts_dims *terms_of(const ts_op *op, uint32_t i) {
  return i == 0 ? &op->attrs->dot.lhs_contract : &op->attrs->dot.rhs_contract;
}

/* The product of an operand's dims that are neither the batch's nor of the terms. */
static int64_t count_sums(const ts_graph *g, const ts_op *op, uint32_t i) {
  const ts_shape *shape = ts_graph_value(g, op->operands[i])->shape;
  int64_t count = 1;
  for (int32_t d = 0; d < shape->rank; d++)
    if (!contains(batch_of(op, i), d) && !contains(terms_of(op, i), d)) count *= shape->dims[d];
  return count;
}

/* A matrix that hoist moves the transpose of. */
static bool has_size(const ts_value *v) {
  const int64_t bytes = ts_shape_bytes(v->shape, v->dtype);
  return (v->dtype == TS_F32 || v->dtype == TS_F64) && bytes >= TS_HOIST_FEW_BYTES && bytes <= MOST_BYTES;
}

static bool is_matrix(const turning *t, const ts_graph *g, const ts_op *op, uint32_t i) {
  const ts_value *v = ts_graph_value(g, op->operands[i]);
  const ts_dims *terms = terms_of(op, i);
  const uint8_t state = t->state[op->operands[i]];
  return (state & TS_INVARIANT) && !(state & TS_FREE) && !(t->state[op->operands[1 - i]] & TS_INVARIANT) &&
         has_size(v) && terms->rank == 1 && terms->dims[0] == v->shape->rank - 1 &&
         v->shape->dims[v->shape->rank - 1] > 1 && count_sums(g, op, i) >= FEWEST_SUMS && count_sums(g, op, 1 - i) == 1;
}

static void append(ts_dims *to, const ts_dims *from) {
  for (int32_t i = 0; i < from->rank; i++) to->dims[to->rank++] = from->dims[i];
}

/* False where the product stays as it is. */
static bool find_turned(const turning *t, const ts_graph *g, const ts_op *op, turned *out) {
  if (op->code != TS_OP_DOT || op->operands[0] == op->operands[1]) return false;
  for (uint32_t i = 0; i < 2; i++) {
    if (!is_matrix(t, g, op, i)) continue;
    const ts_value *v = ts_graph_value(g, op->operands[i]);
    *out = (turned){.operand = i, .source = op->operands[i], .batch = batch_of(op, i)->rank};
    append(&out->axes, batch_of(op, i));
    append(&out->axes, terms_of(op, i));
    for (int32_t d = 0; d < v->shape->rank; d++)
      if (!contains(&out->axes, d)) out->axes.dims[out->axes.rank++] = d;
    return true;
  }
  return false;
}

/* A transpose of a transpose is one. */
static void read_through(const ts_graph *g, turned *m) {
  const ts_value *v = ts_graph_value(g, m->source);
  const ts_op *maker = v->op == TS_NO_ID ? NULL : ts_graph_op(g, v->op);
  if (!maker || maker->code != TS_OP_TRANSPOSE) return;
  for (int32_t i = 0; i < m->axes.rank; i++) m->axes.dims[i] = maker->attrs->axes.dims[m->axes.dims[i]];
  m->source = maker->operands[0];
}

static bool is_in_order(const ts_dims *axes) {
  for (int32_t i = 0; i < axes->rank; i++)
    if (axes->dims[i] != i) return false;
  return true;
}

static ts_status add_transpose(ts_rewrite *rw, const turned *m, ts_region_id target, ts_value_id *out) {
  ts_attrs attrs = {.axes = m->axes};
  *out = rw->map[m->source];
  if (is_in_order(&m->axes)) return TS_SUCCESS;
  return ts_graph_add_op(rw->to, target, TS_OP_TRANSPOSE, (ts_values){(ts_value_id[]){*out}, 1}, &attrs, out);
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  turned m;
  if (!find_turned((turning *)rw, rw->from, op, &m)) return ts_rewrite_copy(rw, id, target);
  ts_value_id operands[] = {rw->map[op->operands[0]], rw->map[op->operands[1]]};
  ts_attrs attrs = ts_op_copy_attrs(op);
  ts_dims *batch = m.operand == 0 ? &attrs.dot.lhs_batch : &attrs.dot.rhs_batch;
  ts_dims *terms = m.operand == 0 ? &attrs.dot.lhs_contract : &attrs.dot.rhs_contract;
  for (int32_t i = 0; i < m.batch; i++) batch->dims[i] = i;
  terms->dims[0] = m.batch;
  read_through(rw->from, &m);
  TS_TRY(add_transpose(rw, &m, target, &operands[m.operand]));
  return ts_graph_add_op(rw->to, target, op->code, (ts_values){operands, 2}, &attrs, &rw->map[op->first_result]);
}

/* Only in bodies of loops do values have a state. */
static bool is_any_turned(const turning *t, const ts_graph *g) {
  turned m;
  for (size_t i = 0; i < g->ops.count; i++)
    if (find_turned(t, g, &g->ops.data[i], &m)) return true;
  return false;
}

ts_status ts_turn_matrices(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  uint8_t *state;
  *out = NULL;
  TS_TRY(TS_NEW_ARRAY(in->values.count, &state));
  memset(state, 0, in->values.count);
  for (size_t i = 0; i < in->ops.count; i++) {
    ts_region_id regions[2];
    if (in->ops.data[i].code != TS_OP_WHILE) continue;
    ts_op_regions(&in->ops.data[i], regions);
    ts_find_invariants(in, ts_graph_region(in, regions[1]), state);
  }
  turning t = {.rw = {.visit = visit}, .state = state};
  ts_status status = is_any_turned(&t, in) ? ts_rewrite_run(&t.rw, in, options, out) : TS_SUCCESS;
  ts_free(state);
  return status;
}
