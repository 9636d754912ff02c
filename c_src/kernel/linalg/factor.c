#include "kernel/linalg/factor_systems.h"
#include "kernel/linalg/factor_turns.h"

#include <math.h>

/* Matrices of at least this number of elements are computed by all threads, if there are few: of qr, eigh and svd, and
 * parts of systems. */
#define SHARED_ELEMENTS 16384
#define SHARED_SYSTEM 65536

static ts_dtype computed_type(ts_dtype type) {
  return ts_dtype_is_complex(type) ? TS_C128 : ts_dtype_accumulator(type);
}

static bool has_factors(ts_opcode op) { return op == TS_OP_QR || op == TS_OP_SVD; }
static bool wants_finite(ts_opcode op) { return has_factors(op) || op == TS_OP_EIGH; }

static void set_triangular(const ts_op *op, ts_factor_spec *spec) {
  spec->triangular.left = op->attrs->triangular.left;
  spec->triangular.lower = op->attrs->triangular.lower;
  spec->triangular.transpose = op->attrs->triangular.transpose;
  spec->triangular.unit = op->attrs->triangular.unit;
}

ts_factor_spec ts_factor_spec_of(const ts_op *op, ts_dtype type, const ts_shape *first, const ts_shape *last) {
  const int64_t *dims = first->dims + first->rank - 2, *right = last->dims + last->rank - 2;
  ts_factor_spec spec = {.op = op->code, .type = computed_type(type), .rows = dims[0], .cols = dims[1]};
  if (has_factors(op->code)) spec.full = op->attrs->factors.full;
  if (op->code == TS_OP_SOLVE) spec.right = right[1];
  if (op->code == TS_OP_TRIANGULAR_SOLVE) {
    set_triangular(op, &spec);
    spec.right = right[spec.triangular.left ? 1 : 0];
  }
  return spec;
}

int64_t ts_factor_operand_elements(const ts_factor_spec *s, int operand) {
  return s->rows * (operand == 0 ? s->cols : s->right);
}

static int64_t qr_elements(const ts_factor_spec *s, int result) {
  return (result == 0 ? s->rows : s->cols) * (s->full ? s->rows : ts_linalg_min(s->rows, s->cols));
}

static int64_t svd_elements(const ts_factor_spec *s, int result) {
  const int64_t least = ts_linalg_min(s->rows, s->cols);
  if (result == 1) return least;
  return result == 0 ? s->rows * (s->full ? s->rows : least) : s->cols * (s->full ? s->cols : least);
}

int64_t ts_factor_elements(const ts_factor_spec *s, int result) {
  switch ((ts_ops_LINALG)s->op) {
  case TS_OP_QR: return qr_elements(s, result);
  case TS_OP_SVD: return svd_elements(s, result);
  case TS_OP_EIGH: return result == 0 ? s->rows : s->rows * s->rows;
  case TS_OP_DETERMINANT: return 1;
  case TS_OP_SOLVE:
  case TS_OP_TRIANGULAR_SOLVE: return s->rows * s->right;
  case TS_OP_CHOLESKY:
  case TS_OP_LU: return s->rows * s->rows;
  }
  return 0; /* ts_factor_run refuses it */
}

ts_dtype ts_factor_result_type(const ts_factor_spec *s, int result) {
  return s->type == TS_C128 && s->op == TS_OP_SVD && result == 1 ? TS_F64 : s->type;
}

/* Workspace of qr, eigh and svd: the matrix, at most two squares of its longer side, one of its shorter side, a panel
 * with its reflectors, and eight numbers for each line. An element has at most `size` bytes. */
static bool workspace_bytes(const ts_factor_spec *s, int64_t size, int64_t *out) {
  const int64_t most = ts_linalg_max(s->rows, s->cols), least = ts_linalg_min(s->rows, s->cols);
  int64_t lines, bytes;
  if (most > INT64_MAX / 8192) return false;
  const int64_t turns = 2 * factor_turns_bytes(least) + factor_divide_bytes(least) + 10 * 64;
  return ts_add_i64(s->full ? most : least, 3 * least + 2 * FACTOR_PANEL + 1, &lines) &&
         ts_mul_i64(lines, most, &bytes) &&
         ts_add_i64(bytes, 8 * (most + FACTOR_PANEL) + factor_panels_elements(most), &bytes) &&
         ts_mul_i64(bytes, size, &bytes) && ts_add_i64(bytes, turns, out);
}

/* Bytes between the planes of a complex matrix: no multiple of a page, so that the parts of a number do not share a set
 * of the cache. */
static bool plane_bytes(const ts_factor_spec *s, int64_t *out) {
  if (!workspace_bytes(s, 8, out) || *out > INT64_MAX / 4) return false;
  *out = *out / 4096 * 4096 + 4096 + 17 * 64;
  return true;
}

static bool has_planes(const ts_factor_spec *s) { return s->type == TS_C128 && wants_finite(s->op); }

/* No operand of more rows fits into an address space. */
#define MOST_ROWS (INT64_C(1) << 28)

static bool systems_bytes(const ts_factor_spec *s, const ts_gemm *products, int64_t *out) {
  if (s->rows > MOST_ROWS) return false;
  *out = s->op == TS_OP_CHOLESKY           ? factor_cholesky_bytes(s)
         : s->op == TS_OP_TRIANGULAR_SOLVE ? factor_triangular_bytes(s)
                                           : factor_lu_bytes(s, products);
  return true;
}

ts_status ts_factor_workspace(const ts_factor_spec *s, const ts_gemm *products, int64_t *out) {
  const bool fits = has_planes(s)         ? plane_bytes(s, out) && ts_mul_i64(*out, 2, out)
                    : wants_finite(s->op) ? workspace_bytes(s, 8, out)
                                          : systems_bytes(s, products, out);
  if (!fits) return ts_error(TS_RESOURCE_EXHAUSTED, "%s needs too much workspace", ts_op_name(s->op));
  *out = (*out + 63) / 64 * 64;
  return TS_SUCCESS;
}

ts_status ts_factor_products(const ts_factor_spec *s, ts_gemm **out) {
  *out = NULL;
  return !wants_finite(s->op) && s->rows > factor_block_of(s) ? ts_gemm_get(s->type, NULL, out) : TS_SUCCESS;
}

/* ---- small matrices ---- */

/* Vectors of 16 bytes take no longer than single numbers. */
const ts_linalg_vector *ts_factor_lanes(const ts_factor_spec *s, int64_t count) {
  const int64_t most = ts_linalg_max(s->rows, ts_linalg_max(s->cols, s->right));
  if (s->type == TS_C128 || s->rows == 0 || s->cols == 0) return NULL;
  const ts_linalg_vector *base = &ts_linalg_vector_base[s->type == TS_F64], *best = ts_linalg_vector_of(s->type);
  if (wants_finite(s->op)) return most > TS_LINALG_FACTOR_ROWS ? NULL : count <= base->lanes ? base : best;
  return most <= TS_LINALG_GROUP_ROWS && count > best->lanes / 2 ? best : NULL;
}

int64_t ts_factor_group_workspace(const ts_factor_spec *s, const ts_linalg_vector *v) {
  const int64_t vectors = wants_finite(s->op) ? ts_linalg_factors_vectors(s->rows, s->cols)
                                              : s->rows * (s->rows + (s->op == TS_OP_LU ? s->rows + 1 : s->right));
  return (vectors * v->lanes * (int64_t)ts_dtype_size(s->type) + 63) / 64 * 64;
}

static void run_systems(const ts_factor_spec *s, const ts_linalg_vector *v, int64_t count, const void *const *operands,
                        void *const *results, void *workspace) {
  const ts_linalg_view a = factor_triangle_view(s, operands[0]), b = factor_sides_view(s, results[0]);
  const ts_linalg_group g = {.matrix = operands[0],
                             .rhs = s->right > 0 ? operands[1] : NULL,
                             .out = results[0],
                             .lower = s->op == TS_OP_LU ? results[1] : NULL,
                             .upper = s->op == TS_OP_LU ? results[2] : NULL,
                             .n = (int)s->rows,
                             .cols = (int)s->right,
                             .row = (int)a.row,
                             .col = (int)a.col,
                             .rhs_row = (int)b.row,
                             .rhs_col = (int)b.col,
                             .count = (int)count,
                             .unit = s->triangular.unit};
  (s->op == TS_OP_TRIANGULAR_SOLVE ? v->solve_group
   : s->op == TS_OP_CHOLESKY       ? v->factor_group
   : s->op == TS_OP_SOLVE          ? v->solve_full_group
   : s->op == TS_OP_LU             ? v->lu_group
                                   : v->determinant_group)(&g, workspace);
}

void ts_factor_run_group(const ts_factor_spec *s, const ts_linalg_vector *v, int64_t count, const void *const *operands,
                         void *const *results, char *workspace) {
  if (!wants_finite(s->op)) {
    run_systems(s, v, count, operands, results, workspace);
    return;
  }
  ts_linalg_factors g = {.matrix = operands[0],
                         .matrix_step = s->rows * s->cols,
                         .rows = (int)s->rows,
                         .cols = (int)s->cols,
                         .count = (int)count,
                         .full = s->full};
  for (int i = 0; i < ts_op_results(s->op); i++) {
    g.results[i] = s->unread[i] ? NULL : results[i];
    g.steps[i] = ts_factor_elements(s, i);
  }
  (s->op == TS_OP_QR ? v->qr_group : s->op == TS_OP_EIGH ? v->eigh_group : v->svd_group)(&g, workspace);
}

/* ---- costs ---- */

/* Multiplications of a system on real matrices, in times n^3 / 2 without the right side. */
static double cost_factor(ts_opcode op) {
  switch ((ts_ops_LINALG)op) {
  case TS_OP_CHOLESKY: return 1.0 / 6;
  case TS_OP_TRIANGULAR_SOLVE:
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: return 0;
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return 1.0 / 3;
  }
  return 0; /* ts_factor_run refuses it */
}

/* Measured times of an element: without terms, and of each term. */
typedef struct element_times {
  double element, term;
} element_times;

/* Of a matrix, or of one in the lanes of a group. */
static element_times times_of(const ts_factor_spec *s, bool is_group) {
  const bool has_vectors = s->op == TS_OP_QR     ? !s->unread[0]
                           : s->op == TS_OP_EIGH ? !s->unread[1]
                                                 : !s->unread[0] || !s->unread[2];
  if (s->op == TS_OP_QR && is_group) return (element_times){0, has_vectors ? 2 : 1.2};
  if (s->op == TS_OP_EIGH && is_group) return (element_times){0, has_vectors ? 4 : 3};
  if (is_group) return (element_times){0, has_vectors ? 15 : 12};
  if (s->op == TS_OP_QR) return has_vectors ? (element_times){8, 0.14} : (element_times){5, 0.07};
  if (s->op == TS_OP_EIGH) return has_vectors ? (element_times){45, 0.15} : (element_times){33, 0.05};
  return has_vectors ? (element_times){80, 0.4} : (element_times){50, 0.1};
}

/* Numbers are loaded and stored one by one. */
double ts_factor_group_cost(const ts_factor_spec *s, const ts_linalg_vector *v) {
  const double elements = (double)s->rows * (double)s->cols, least = (double)ts_linalg_min(s->rows, s->cols);
  const double right = (double)s->right;
  if (wants_finite(s->op)) return 500 + elements * (1.2 * v->lanes + times_of(s, true).term * least);
  return v->lanes * (20 + elements + 2 * least * right) + elements * (cost_factor(s->op) * least + right);
}

double ts_factor_cost(const ts_factor_spec *s) {
  const double m = (double)s->rows, n = (double)s->cols, least = m < n ? m : n, right = (double)s->right;
  const double elements = m * n, products = cost_factor(s->op) * elements * least + elements * right;
  const int parts = factor_parts_of(s);
  const element_times times = times_of(s, false);
  if (wants_finite(s->op)) return 500 + elements * (times.element + times.term * least) * (parts == 2 ? 5 : 1);
  return 500 + parts * (4 * elements + 2 * n * right + 0.4 * products / ts_linalg_vector_of(s->type)->lanes);
}

bool ts_factor_is_shared(const ts_factor_spec *s) {
  const int parts = factor_parts_of(s);
  if (s->op == TS_OP_TRIANGULAR_SOLVE) return true; /* columns are independent */
  return wants_finite(s->op) ? s->rows * s->cols >= SHARED_ELEMENTS
                             : s->rows * s->cols * parts * parts >= SHARED_SYSTEM;
}

/* ---- one matrix ---- */

static int64_t parts_of(const factor *f, ts_dtype type, int64_t elements) {
  return elements * (int64_t)ts_dtype_size(type) / f->size;
}

static void fill_with_nan(const factor *f) {
  for (int i = 0; i < ts_op_results(f->spec->op); i++)
    factor_fill(f, f->results[i], parts_of(f, ts_factor_result_type(f->spec, i), ts_factor_elements(f->spec, i)),
                (double)NAN);
}

static ts_status run(const factor *f, bool *out_good) {
  switch ((ts_ops_LINALG)f->spec->op) {
  case TS_OP_QR: return factor_qr(f);
  case TS_OP_EIGH: return factor_eigh(f, out_good);
  case TS_OP_SVD: return factor_svd(f, out_good);
  case TS_OP_CHOLESKY: return factor_cholesky(f);
  case TS_OP_TRIANGULAR_SOLVE: return factor_triangular(f);
  case TS_OP_SOLVE:
  case TS_OP_DETERMINANT:
  case TS_OP_LU: return factor_lu(f);
  }
  return ts_error(TS_UNIMPLEMENTED, "%s is not implemented for matrices of %s", ts_op_name(f->spec->op),
                  ts_dtype_name(f->spec->type));
}

/* The largest size of an element that the op reads, or of a part of one; NaN or infinite where such an element is. Of a
 * symmetric matrix these are the lower triangle, and of its diagonal the real parts. */
static double largest(const factor *f) {
  const ts_factor_spec *s = f->spec;
  if (s->op != TS_OP_EIGH) return f->v->largest(f->matrix, parts_of(f, s->type, s->rows * s->cols));
  const int64_t planes = factor_planes(f);
  double most = 0;
  for (int64_t i = 0; i < s->rows && isfinite(most); i++) {
    const double of_row = f->v->largest((const char *)f->matrix + i * s->cols * planes * f->size, i * planes + 1);
    if (!(of_row <= most)) most = of_row;
  }
  return most;
}

ts_status ts_factor_run(const ts_factor_spec *spec, const void *const *operands, void *const *results, char *workspace,
                        const ts_factor_context *context) {
  const ts_dtype type = has_planes(spec) ? TS_F64 : spec->type;
  factor f = {.spec = spec,
              .v = ts_linalg_vector_of(type),
              .size = (int)ts_dtype_size(type),
              .parts = type == TS_C128 ? 2 : 1,
              .matrix = operands[0],
              .right = spec->right > 0 ? operands[1] : NULL,
              .results = results,
              .workspace = workspace,
              .products = context->products,
              .pool = context->pool,
              .parallel = context->parallel,
              .cancel = context->cancel};
  if (has_planes(spec)) (void)plane_bytes(spec, &f.plane);
  if (wants_finite(spec->op)) f.most = largest(&f);
  bool good = isfinite(f.most);
  TS_TRY(ts_check_cancelled(f.cancel, ts_op_name(spec->op)));
  if (good) TS_TRY(run(&f, &good));
  if (!good) fill_with_nan(&f);
  return TS_SUCCESS;
}
