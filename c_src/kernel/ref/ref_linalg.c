/* Linear algebra: the meaning of each op on one matrix after the other, which are the last two dims. Half types are
 * computed in f32, c64 in c128, and rounded once. */
#include "base/alloc.h"
#include "kernel/linalg/factor.h"
#include "kernel/ref/ref_internal.h"

#include <math.h>

/* A matrix that is computed, in the type that the operand's computes in. */
typedef struct ref_matrix {
  ts_dtype type;
  int64_t cols;
  ts_scalar *data;
} ref_matrix;

static ts_scalar *at(const ref_matrix *m, int64_t row, int64_t col) { return &m->data[row * m->cols + col]; }

static ts_scalar get(const ts_buffer *buffer, int64_t element) {
  return ts_scalar_convert(buffer->dtype, ts_ref_get(buffer, element), ts_dtype_accumulator(buffer->dtype));
}

static void put(const ts_ref_call *call, int result, ts_dtype type, int64_t element, ts_scalar value) {
  ts_ref_set(call->results[result], element, ts_scalar_convert(type, value, call->results[result]->dtype));
}

static int64_t batch_of(const ts_shape *shape) {
  int64_t batch = 1;
  for (int32_t d = 0; d < shape->rank - 2; d++) batch *= shape->dims[d];
  return batch;
}

/* The chain sum over k < count of a[row_a, k] * b[row_b, k], from +0. */
static ts_scalar chain(const ref_matrix *m, int64_t row_a, int64_t row_b, int64_t count) {
  ts_scalar sum = {.bits = 0};
  for (int64_t k = 0; k < count; k++) sum = ts_ref_multiply_add(m->type, *at(m, row_a, k), *at(m, row_b, k), sum);
  return sum;
}

/* ---- cholesky ---- */

/* L[i,j] = (A[i,j] - sum) / L[j,j], and L[j,j] = sqrt(A[j,j] - sum). False when that is below 0 or NaN, or 0 and a rest
 * below it is not. */
static bool factor_column(const ref_matrix *m, int64_t j) {
  static const ts_scalar zero = {.bits = 0};
  ts_scalar pivot = ts_ref_binary(TS_OP_SUBTRACT, m->type, *at(m, j, j), chain(m, j, j, j));
  bool positive = ts_ref_compare(TS_OP_GREATER, m->type, pivot, zero);
  if (!ts_ref_compare(TS_OP_GREATER_EQUAL, m->type, pivot, zero)) return false;
  *at(m, j, j) = ts_ref_unary(TS_OP_SQRT, m->type, pivot);
  for (int64_t i = j + 1; i < m->cols; i++) {
    ts_scalar rest = ts_ref_binary(TS_OP_SUBTRACT, m->type, *at(m, i, j), chain(m, i, j, j));
    if (!positive && !ts_ref_compare(TS_OP_EQUAL, m->type, rest, zero)) return false;
    *at(m, i, j) = positive ? ts_ref_binary(TS_OP_DIVIDE, m->type, rest, *at(m, j, j)) : rest;
  }
  return true;
}

static void cholesky_matrix(const ts_ref_call *call, const ref_matrix *m, int64_t first) {
  static const ts_scalar zero = {.bits = 0};
  const ts_scalar none = ts_scalar_from_f64(m->type, (double)NAN);
  bool definite = true;
  for (int64_t i = 0; i < m->cols * m->cols; i++) m->data[i] = get(call->operands[0], first + i);
  for (int64_t j = 0; definite && ts_ref_goes_on(call, 0, 1) && j < m->cols; j++) definite = factor_column(m, j);
  for (int64_t i = 0; i < m->cols; i++)
    for (int64_t k = 0; k < m->cols; k++)
      put(call, 0, m->type, first + i * m->cols + k, k > i ? zero : definite ? *at(m, i, k) : none);
}

static ts_status cholesky(const ts_ref_call *call) {
  const ts_buffer *a = call->operands[0];
  const int64_t n = a->shape.dims[a->shape.rank - 1];
  ref_matrix m = {.type = ts_dtype_accumulator(a->dtype), .cols = n};
  if (a->bytes == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)(n * n), &m.data));
  for (int64_t b = 0; ts_ref_goes_on(call, b, batch_of(&a->shape)); b++) cholesky_matrix(call, &m, b * n * n);
  ts_free(m.data);
  return TS_SUCCESS;
}

/* ---- triangular_solve ---- */

typedef struct ref_solve {
  const ts_ref_call *call;
  ts_dtype type;
  int64_t n, cols;
  int64_t a, b; /* where the matrix and the right side begin */
  bool left, lower, transpose, unit;
} ref_solve;

/* op(A)[i,k] of op(A) X = B; from the right side, of its transpose. */
static ts_scalar coefficient(const ref_solve *s, int64_t i, int64_t k) {
  bool turned = s->transpose == s->left;
  return get(s->call->operands[0], s->a + (turned ? k * s->n + i : i * s->n + k));
}

static int64_t place(const ref_solve *s, int64_t i, int64_t col) {
  return s->b + (s->left ? i * s->cols + col : col * s->n + i);
}

/* By substitution, from the first row, or from the last one of an upper triangle. */
static void solve_column(const ref_solve *s, int64_t col, ts_scalar *x) {
  bool forward = (s->lower != s->transpose) == s->left;
  for (int64_t step = 0; step < s->n; step++) {
    int64_t i = forward ? step : s->n - 1 - step;
    ts_scalar sum = {.bits = 0};
    for (int64_t before = 0; before < step; before++) {
      int64_t k = forward ? before : s->n - 1 - before;
      sum = ts_ref_multiply_add(s->type, coefficient(s, i, k), x[k], sum);
    }
    x[i] = ts_ref_binary(TS_OP_SUBTRACT, s->type, get(s->call->operands[1], place(s, i, col)), sum);
    if (!s->unit) x[i] = ts_ref_binary(TS_OP_DIVIDE, s->type, x[i], coefficient(s, i, i));
    put(s->call, 0, s->type, place(s, i, col), x[i]);
  }
}

static ts_status triangular_solve(const ts_ref_call *call) {
  const ts_buffer *b = call->operands[1];
  const ts_attrs *attrs = call->op->attrs;
  const int64_t *last = b->shape.dims + b->shape.rank - 2;
  bool left = attrs->triangular.left;
  ref_solve s = {.call = call,
                 .type = ts_dtype_accumulator(b->dtype),
                 .n = last[left ? 0 : 1],
                 .cols = last[left ? 1 : 0],
                 .left = left,
                 .lower = attrs->triangular.lower,
                 .transpose = attrs->triangular.transpose,
                 .unit = attrs->triangular.unit};
  ts_scalar *x;
  if (b->bytes == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)s.n, &x));
  for (int64_t i = 0; ts_ref_goes_on(call, 0, 1) && i < batch_of(&b->shape) * s.cols; i++) {
    s.a = i / s.cols * s.n * s.n;
    s.b = i / s.cols * s.n * s.cols;
    solve_column(&s, i % s.cols, x);
  }
  ts_free(x);
  return TS_SUCCESS;
}

/* ---- solve, determinant, lu ---- */

static void exchange(ts_scalar *a, ts_scalar *b, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    ts_scalar kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
}

/* m[i,j] less the sum over k < count of m[i,k] * m[k,j]. */
static void subtract_before(const ref_matrix *m, int64_t i, int64_t j, int64_t count) {
  ts_scalar sum = {.bits = 0};
  for (int64_t k = 0; k < count; k++) sum = ts_ref_multiply_add(m->type, *at(m, i, k), *at(m, k, j), sum);
  *at(m, i, j) = ts_ref_binary(TS_OP_SUBTRACT, m->type, *at(m, i, j), sum);
}

static int64_t find_pivot(const ref_matrix *m, int64_t n, int64_t j) {
  int64_t best = j;
  for (int64_t i = j + 1; i < n; i++) {
    ts_scalar size = ts_ref_unary(TS_OP_ABS, m->type, *at(m, i, j)),
              most = ts_ref_unary(TS_OP_ABS, m->type, *at(m, best, j));
    if (ts_ref_compare(TS_OP_GREATER, m->type, size, most)) best = i;
  }
  return best;
}

/* The factors of the first n columns in their place; whole rows are exchanged. True when an odd number was. */
static bool factor_lu(const ts_ref_call *call, const ref_matrix *m, int64_t n) {
  static const ts_scalar zero = {.bits = 0};
  bool odd = false;
  for (int64_t j = 0; ts_ref_goes_on(call, 0, 1) && j < n; j++) {
    for (int64_t i = 0; i < n; i++) subtract_before(m, i, j, i < j ? i : j);
    int64_t pivot = find_pivot(m, n, j);
    odd ^= pivot != j;
    if (pivot != j) exchange(at(m, j, 0), at(m, pivot, 0), m->cols);
    for (int64_t i = j + 1; i < n && !ts_ref_compare(TS_OP_EQUAL, m->type, *at(m, j, j), zero); i++)
      *at(m, i, j) = ts_ref_binary(TS_OP_DIVIDE, m->type, *at(m, i, j), *at(m, j, j));
  }
  return odd;
}

/* Column j of the right side, which stands behind the matrix. */
static void substitute(const ref_matrix *m, int64_t n, int64_t j) {
  for (int64_t i = 0; i < n; i++) subtract_before(m, i, j, i);
  for (int64_t i = n - 1; i >= 0; i--) {
    ts_scalar sum = {.bits = 0}, *x = at(m, i, j);
    for (int64_t k = n - 1; k > i; k--) sum = ts_ref_multiply_add(m->type, *at(m, i, k), *at(m, k, j), sum);
    *x = ts_ref_binary(TS_OP_SUBTRACT, m->type, *x, sum);
    *x = ts_ref_binary(TS_OP_DIVIDE, m->type, *x, *at(m, i, i));
  }
}

/* The number without its power of two, which is added to `power`: partial products may be beyond the range. */
static ts_scalar part_of(ts_dtype type, ts_scalar x, int64_t *power) {
  const double value = ts_scalar_to_f64(type, x);
  int exponent = 0;
  if (!isfinite(value)) return x;
  const double part = frexp(value, &exponent);
  *power += exponent;
  return ts_scalar_from_f64(type, part);
}

static void put_product(const ts_ref_call *call, const ref_matrix *m, bool odd, int64_t which) {
  ts_scalar product = ts_scalar_from_f64(m->type, odd ? -1 : 1);
  int64_t power = 0;
  for (int64_t i = 0; i < m->cols; i++) {
    const ts_scalar x = part_of(m->type, *at(m, i, i), &power);
    product = part_of(m->type, ts_ref_binary(TS_OP_MULTIPLY, m->type, product, x), &power);
  }
  const int raised = power > 9999 ? 9999 : power < -9999 ? -9999 : (int)power;
  put(call, 0, m->type, which, ts_scalar_from_f64(m->type, ldexp(ts_scalar_to_f64(m->type, product), raised)));
}

/* Row i of the factors is row order[i] of the matrix; a column of these numbers stands behind it. */
static void put_factors(const ts_ref_call *call, const ref_matrix *m, int64_t n, int64_t which) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = (int64_t)ts_scalar_to_f64(m->type, *at(m, i, n));
    for (int64_t k = 0; k < n; k++) {
      const ts_scalar zero = {.bits = 0}, one = ts_scalar_from_f64(m->type, 1);
      const int64_t row = (which * n + i) * n + k;
      put(call, 0, m->type, (which * n + k) * n + i, k == from ? one : zero);
      put(call, 1, m->type, row, k < i ? *at(m, i, k) : k == i ? one : zero);
      put(call, 2, m->type, row, k < i ? zero : *at(m, i, k));
    }
  }
}

static void lu_matrix(const ts_ref_call *call, const ref_matrix *m, int64_t n, int64_t which) {
  const int64_t right = m->cols - n;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < n; k++) *at(m, i, k) = get(call->operands[0], (which * n + i) * n + k);
    for (int64_t k = 0; k < right; k++)
      *at(m, i, n + k) = call->op->code == TS_OP_LU ? ts_scalar_from_f64(m->type, (double)i)
                                                    : get(call->operands[1], (which * n + i) * right + k);
  }
  bool odd = factor_lu(call, m, n);
  if (call->op->code == TS_OP_DETERMINANT) return put_product(call, m, odd, which);
  if (call->op->code == TS_OP_LU) return put_factors(call, m, n, which);
  for (int64_t j = n; ts_ref_goes_on(call, 0, 1) && j < m->cols; j++) substitute(m, n, j);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < right; k++) put(call, 0, m->type, (which * n + i) * right + k, *at(m, i, n + k));
}

static ts_status by_lu(const ts_ref_call *call) {
  const ts_shape *a = &call->operands[0]->shape, *b = &call->operands[call->op->operand_count - 1]->shape;
  const int64_t n = a->dims[a->rank - 1],
                right = call->op->code == TS_OP_SOLVE ? b->dims[b->rank - 1] : call->op->code == TS_OP_LU;
  ref_matrix m = {.type = ts_dtype_accumulator(call->operands[0]->dtype), .cols = n + right};
  if (call->result->bytes == 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)(n * m.cols + 1), &m.data));
  for (int64_t i = 0; ts_ref_goes_on(call, i, batch_of(a)); i++) lu_matrix(call, &m, n, i);
  ts_free(m.data);
  return TS_SUCCESS;
}

/* ---- qr, eigh, svd; all of complex matrices ---- */

/* The memory of one matrix, a right side and the results as they are computed, and the workspace. */
typedef struct ref_factors {
  ts_factor_spec spec;
  ts_gemm *products;
  char *in[2], *out[3], *workspace;
} ref_factors;

static void load_operands(const ts_ref_call *call, const ref_factors *m, int64_t which) {
  const ts_dtype type = m->spec.type;
  for (uint32_t o = 0; o < call->op->operand_count; o++) {
    const int64_t count = ts_factor_operand_elements(&m->spec, (int)o);
    const ts_buffer *from = call->operands[o];
    for (int64_t i = 0; i < count; i++)
      ts_scalar_store(type, ts_scalar_convert(from->dtype, ts_ref_get(from, which * count + i), type),
                      m->in[o] + (size_t)i * ts_dtype_size(type));
  }
}

static ts_status factor_matrix(const ts_ref_call *call, const ref_factors *m, int64_t which) {
  const void *in[] = {m->in[0], m->in[1]};
  void *out[] = {m->out[0], m->out[1], m->out[2]};
  load_operands(call, m, which);
  TS_TRY(ts_factor_run(&m->spec, in, out, m->workspace,
                       &(ts_factor_means){m->products, ts_pool_default(), &ts_parallel_serial, call->cancel}));
  for (int r = 0; r < (int)call->op->result_count; r++) {
    const int64_t count = ts_factor_elements(&m->spec, r);
    const ts_dtype type = ts_factor_result_type(&m->spec, r);
    for (int64_t i = 0; i < count; i++)
      put(call, r, type, which * count + i, ts_scalar_load(type, m->out[r] + (size_t)i * ts_dtype_size(type)));
  }
  return TS_SUCCESS;
}

static void lay_out(const ts_ref_call *call, ref_factors *m, char *at) {
  for (uint32_t o = 0; o < call->op->operand_count; o++) {
    m->in[o] = at;
    at += ts_factor_operand_elements(&m->spec, (int)o) * (int64_t)ts_dtype_size(m->spec.type);
  }
  for (uint32_t r = 0; r < call->op->result_count; r++) {
    m->out[r] = at;
    at += ts_factor_elements(&m->spec, (int)r) * (int64_t)ts_dtype_size(ts_factor_result_type(&m->spec, (int)r));
  }
}

static int64_t operands_and_results(const ts_ref_call *call, const ts_factor_spec *spec) {
  int64_t bytes = 0;
  for (uint32_t o = 0; o < call->op->operand_count; o++)
    bytes += ts_factor_operand_elements(spec, (int)o) * (int64_t)ts_dtype_size(spec->type);
  for (uint32_t r = 0; r < call->op->result_count; r++)
    bytes += ts_factor_elements(spec, (int)r) * (int64_t)ts_dtype_size(ts_factor_result_type(spec, (int)r));
  return bytes;
}

static ts_status by_factors(const ts_ref_call *call) {
  const ts_buffer *a = call->operands[0], *last = call->operands[call->op->operand_count - 1];
  ref_factors m = {.spec = ts_factor_spec_of(call->op, a->dtype, &a->shape, &last->shape)};
  int64_t bytes;
  TS_TRY(ts_factor_workspace(&m.spec, &bytes));
  TS_TRY(TS_NEW_ARRAY((size_t)(bytes + operands_and_results(call, &m.spec) + 64), &m.workspace));
  lay_out(call, &m, m.workspace + bytes);
  ts_status status = ts_factor_products(&m.spec, &m.products);
  for (int64_t i = 0; !status && i < batch_of(&a->shape); i++) status = factor_matrix(call, &m, i);
  ts_gemm_release(m.products);
  ts_free(m.workspace);
  return status;
}

ts_status ts_ref_linalg(const ts_ref_call *call) {
  if (ts_dtype_is_complex(call->operands[0]->dtype)) return by_factors(call);
  switch ((ts_ops_LINALG)call->op->code) {
  case TS_OP_CHOLESKY: return cholesky(call);
  case TS_OP_TRIANGULAR_SOLVE: return triangular_solve(call);
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return by_lu(call);
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: return by_factors(call);
  }
  return ts_ref_unknown(call);
}
