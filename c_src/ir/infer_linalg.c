/* Linear algebra: matrices are the last two dims. */
#include "ir/infer.h"

/* Operand `i` is a batch of matrices of floats or complex numbers. */
static ts_status check_matrices(const ts_infer_call *call, size_t i) {
  const ts_value *value = ts_infer_operand(call, i);
  if (!ts_dtype_is_float(value->dtype) && !ts_dtype_is_complex(value->dtype))
    return ts_infer_error(call, "expected floats or complex numbers");
  if (value->shape->rank < 2)
    return ts_infer_error(call, "operand %zu has rank %d, expected at least 2", i + 1, value->shape->rank);
  return TS_SUCCESS;
}

static ts_status check_square(const ts_infer_call *call) {
  const ts_shape *shape = ts_infer_operand(call, 0)->shape;
  long long rows = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
  return rows == cols ? TS_SUCCESS : ts_infer_error(call, "matrices of %lld by %lld, expected square ones", rows, cols);
}

static ts_status infer_cholesky(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  TS_TRY(check_square(call));
  ts_type_set(out, a->dtype, a->shape);
  return TS_SUCCESS;
}

static bool same_batch(const ts_shape *a, const ts_shape *b) {
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank - 2; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return true;
}

/* Two operands of a type with matrices; the first operand's matrices are square. */
static ts_status check_system(const ts_infer_call *call) {
  TS_TRY(ts_infer_same_dtype(call));
  TS_TRY(check_matrices(call, 0));
  TS_TRY(check_matrices(call, 1));
  TS_TRY(check_square(call));
  if (same_batch(ts_infer_operand(call, 0)->shape, ts_infer_operand(call, 1)->shape)) return TS_SUCCESS;
  return ts_infer_error(call, "expected equal dimensions before the last two");
}

static ts_status infer_triangular_solve(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0), *b = ts_infer_operand(call, 1);
  const bool left = call->attrs->triangular.left;
  TS_TRY(check_system(call));
  int64_t n = a->shape->dims[a->shape->rank - 1], rows = b->shape->dims[b->shape->rank - (left ? 2 : 1)];
  if (n != rows)
    return ts_infer_error(call, "%lld %s of the right side, expected %lld", (long long)rows, left ? "rows" : "columns",
                          (long long)n);
  ts_type_set(out, b->dtype, b->shape);
  return TS_SUCCESS;
}

static ts_status infer_solve(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0), *b = ts_infer_operand(call, 1);
  TS_TRY(check_system(call));
  int64_t n = a->shape->dims[a->shape->rank - 1], rows = b->shape->dims[b->shape->rank - 2];
  if (n != rows)
    return ts_infer_error(call, "%lld rows of the right side, expected %lld", (long long)rows, (long long)n);
  ts_type_set(out, b->dtype, b->shape);
  return TS_SUCCESS;
}

static ts_status infer_determinant(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  TS_TRY(check_square(call));
  ts_type_set(out, a->dtype, a->shape);
  out->shape.rank -= 2;
  return TS_SUCCESS;
}

static ts_status infer_lu(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  TS_TRY(check_square(call));
  for (int i = 0; i < 3; i++) ts_type_set(&out[i], a->dtype, a->shape);
  return TS_SUCCESS;
}

/* A matrix of these dims for each matrix of the operand. */
static void set_matrices(const ts_value *a, int64_t rows, int64_t cols, ts_type *out) {
  ts_type_set(out, a->dtype, a->shape);
  out->shape.dims[out->shape.rank - 2] = rows;
  out->shape.dims[out->shape.rank - 1] = cols;
}

/* A vector of `elements` for each matrix. */
static void set_vectors(const ts_value *a, ts_dtype dtype, int64_t elements, ts_type *out) {
  ts_type_set(out, dtype, a->shape);
  out->shape.rank--;
  out->shape.dims[out->shape.rank - 1] = elements;
}

static ts_status infer_qr(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  const int64_t m = a->shape->dims[a->shape->rank - 2], n = a->shape->dims[a->shape->rank - 1];
  const int64_t k = call->attrs->factors.full || m < n ? m : n;
  set_matrices(a, m, k, &out[0]);
  set_matrices(a, k, n, &out[1]);
  return TS_SUCCESS;
}

static ts_status infer_eigh(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  TS_TRY(check_square(call));
  set_vectors(a, a->dtype, a->shape->dims[a->shape->rank - 1], &out[0]);
  ts_type_set(&out[1], a->dtype, a->shape);
  return TS_SUCCESS;
}

static ts_status infer_svd(const ts_infer_call *call, ts_type *out) {
  const ts_value *a = ts_infer_operand(call, 0);
  TS_TRY(check_matrices(call, 0));
  const int64_t m = a->shape->dims[a->shape->rank - 2], n = a->shape->dims[a->shape->rank - 1];
  const int64_t k = m < n ? m : n;
  set_matrices(a, m, call->attrs->factors.full ? m : k, &out[0]);
  set_vectors(a, ts_dtype_part(a->dtype), k, &out[1]);
  set_matrices(a, call->attrs->factors.full ? n : k, n, &out[2]);
  return TS_SUCCESS;
}

ts_status ts_infer_linalg(const ts_infer_call *call, ts_type *out) {
  switch ((ts_ops_LINALG)call->code) {
  case TS_OP_CHOLESKY: return infer_cholesky(call, out);
  case TS_OP_TRIANGULAR_SOLVE: return infer_triangular_solve(call, out);
  case TS_OP_SOLVE: return infer_solve(call, out);
  case TS_OP_DETERMINANT: return infer_determinant(call, out);
  case TS_OP_LU: return infer_lu(call, out);
  case TS_OP_QR: return infer_qr(call, out);
  case TS_OP_EIGH: return infer_eigh(call, out);
  case TS_OP_SVD: return infer_svd(call, out);
  }
  return ts_infer_unknown(call);
}
