/* Replaces the factorizations that StableHLO has no op for by loops of plain ops, so that any device can compile them:
 * lu, solve, determinant, qr, eigh and svd. Tessera's own engine has routines for them. */
#include "pass/loops.h"

#include "pass/rewrite.h"

/* Numbers with fewer bits than f32 are computed in f32 and rounded once. */
static ts_dtype computed_in(ts_dtype dtype) {
  if (ts_dtype_is_complex(dtype)) return dtype;
  return dtype == TS_F64 ? TS_F64 : TS_F32;
}

static int64_t batch_of(const ts_shape *shape) {
  int64_t batch = 1;
  for (int32_t d = 0; d + 2 < shape->rank; d++) batch *= shape->dims[d];
  return batch;
}

/* Operand `i` as a batch of rank 3 in the type of the loops. */
static val get_matrices(loops *l, const ts_rewrite *rw, const ts_op *op, uint32_t i) {
  const ts_shape *shape = ts_graph_value(rw->from, op->operands[i])->shape;
  const int64_t *last = shape->dims + shape->rank - 2;
  val x = loops_reshape(l, ts_rewrite_operand(rw, op, i), &(ts_shape){3, {batch_of(shape), last[0], last[1]}});
  return loops_convert(l, x, l->dtype);
}

/* Results of matrices without elements: factors are identity matrices, and the determinant is 1. */
static void make_empty(loops *l, const ts_rewrite *rw, const ts_op *op, val *out) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *value = ts_graph_value(rw->from, op->first_result + i);
    ts_attrs attrs = {0};
    if (op->code == TS_OP_DETERMINANT) {
      ts_attrs_set_constant(&attrs, value->dtype, value->shape, ts_scalar_from_f64(value->dtype, 1));
      out[i] = loops_add(l, TS_OP_CONSTANT, NULL, 0, &attrs);
    } else if (value->shape->rank < 2) {
      ts_attrs_set_constant(&attrs, value->dtype, value->shape, (ts_scalar){0});
      out[i] = loops_add(l, TS_OP_CONSTANT, NULL, 0, &attrs);
    } else {
      attrs.shaped.dtype = value->dtype;
      ts_shape_copy(&attrs.shaped.shape, value->shape);
      out[i] = loops_add(l, TS_OP_EYE, NULL, 0, &attrs);
    }
  }
}

static void make_results(loops *l, const ts_rewrite *rw, const ts_op *op, val *out) {
  val a = get_matrices(l, rw, op, 0);
  switch ((ts_ops_LINALG)op->code) {
  case TS_OP_DETERMINANT: out[0] = loops_determinant(l, a); return;
  case TS_OP_SOLVE: out[0] = loops_solve(l, a, get_matrices(l, rw, op, 1)); return;
  case TS_OP_LU: loops_lu(l, a, out); return;
  case TS_OP_QR: loops_qr(l, a, op->attrs->factors.full, out); return;
  case TS_OP_EIGH: loops_eigh(l, a, out); return;
  case TS_OP_SVD: loops_svd(l, a, op->attrs->factors.full, out); return;
  case TS_OP_CHOLESKY:
  case TS_OP_TRIANGULAR_SOLVE: break; /* StableHLO has these */
  }
  l->status = ts_error(TS_INTERNAL, "%s is not replaced by loops", ts_op_name(op->code));
}

/* Zeros of these have no sign. */
static bool has_positive_zeros(ts_opcode code) { return code == TS_OP_QR || code == TS_OP_EIGH || code == TS_OP_SVD; }

static bool is_factorization(ts_opcode code) {
  static const ts_opcode replaced[] = {TS_OP_DETERMINANT, TS_OP_SOLVE, TS_OP_LU, TS_OP_QR, TS_OP_EIGH, TS_OP_SVD};
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
    if (code == replaced[i]) return true;
  return false;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const ts_op *op = ts_graph_op(rw->from, id);
  if (!is_factorization(op->code)) return ts_rewrite_copy(rw, id, target);
  const ts_value *a = ts_graph_value(rw->from, op->operands[0]);
  loops l = {.graph = rw->to, .region = target, .dtype = computed_in(a->dtype)};
  val out[3] = {0};
  l.part = ts_dtype_is_complex(l.dtype) ? ts_dtype_part(l.dtype) : l.dtype;
  if (ts_shape_elements(a->shape) == 0)
    make_empty(&l, rw, op, out);
  else
    make_results(&l, rw, op, out);
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *value = ts_graph_value(rw->from, op->first_result + i);
    val x = loops_reshape(&l, loops_convert(&l, out[i], value->dtype), value->shape);
    rw->map[op->first_result + i] = has_positive_zeros(op->code) ? loops_without_signs(&l, x) : x;
  }
  return l.status;
}

ts_status ts_pass_factor_loops(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  ts_rewrite rw = {.visit = visit};
  return ts_rewrite_run(&rw, in, options, out);
}

bool ts_factor_loops_apply(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    if (is_factorization(graph->ops.data[i].code)) return true;
  return false;
}
