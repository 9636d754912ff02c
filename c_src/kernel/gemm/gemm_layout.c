/* How the operands of a contraction lie: as batches of strided matrices, which may be slices that are read where they
 * lie. */
#include "kernel/gemm/gemm_layout.h"

#include "kernel/gemm/gemm_internal.h"
#include "kernel/routine.h"
#include "kernel/vector_dot.h"

/* Merges dims [first, end) of a group into one: its extent and stride; false when the strides do not allow it. */
static bool collapse_some(const ts_batch_dims *of, int32_t first, int32_t end, int64_t *extent, int64_t *stride) {
  const ts_shape *shape = of->shape;
  const int64_t *strides = of->strides;
  const ts_dims *dims = of->dims;
  *extent = 1;
  *stride = 0;
  for (int32_t i = end - 1; i >= first; i--) {
    int64_t n = shape->dims[dims->dims[i]], s = strides[dims->dims[i]];
    if (n == 1) continue;
    if (*extent == 1)
      *stride = s;
    else if (s != *stride * *extent)
      return false;
    *extent *= n;
  }
  return true;
}

bool ts_gemm_collapse(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int64_t *extent,
                      int64_t *stride) {
  return collapse_some(&(ts_batch_dims){shape, strides, dims}, 0, dims->rank, extent, stride);
}

ts_dims ts_gemm_free_dims(int32_t rank, const ts_dims *batch, const ts_dims *contract) {
  ts_dims out = {0};
  for (int32_t d = 0; d < rank; d++) {
    bool taken = false;
    for (int32_t i = 0; i < batch->rank; i++) taken |= batch->dims[i] == d;
    for (int32_t i = 0; i < contract->rank; i++) taken |= contract->dims[i] == d;
    if (!taken) out.dims[out.rank++] = d;
  }
  return out;
}

static const ts_op *slice_of(const ts_graph *g, const ts_op *op, uint32_t operand) {
  const ts_op_id maker = ts_graph_value(g, op->operands[operand])->op;
  return maker != TS_NO_ID && ts_graph_op(g, maker)->code == TS_OP_SLICE ? ts_graph_op(g, maker) : NULL;
}

/* The strides of a slice that is read where it lies are those of the whole. */
static void operand_strides(const ts_graph *g, const ts_op *op, uint32_t operand, bool is_slice, int64_t *out) {
  const ts_op *slice = is_slice ? slice_of(g, op, operand) : NULL;
  const ts_shape *shape = ts_graph_value(g, slice ? slice->operands[0] : op->operands[operand])->shape;
  ts_shape_strides(shape, out);
  for (int32_t d = 0; slice && d < shape->rank; d++) out[d] *= slice->attrs->slice.stride.dims[d];
}

/* The batch dims, which are one dim or two. */
static bool batches(const ts_batch_dims *lhs, const ts_batch_dims *rhs, ts_gemm_shape *out, ts_gemm_outer *outer) {
  const int32_t first = ts_batch_outer(lhs, rhs), end = lhs->dims->rank;
  int64_t same;
  return first >= 0 && collapse_some(lhs, 0, first, &outer->count, &outer->lhs) &&
         collapse_some(rhs, 0, first, &same, &outer->rhs) &&
         collapse_some(lhs, first, end, &out->batch, &out->lhs_batch) &&
         collapse_some(rhs, first, end, &same, &out->rhs_batch);
}

bool ts_gemm_shape_of(const ts_graph *g, const ts_op *op, uint64_t slices, ts_gemm_shape *out, ts_gemm_outer *outer) {
  const ts_shape *l = ts_graph_value(g, op->operands[0])->shape, *r = ts_graph_value(g, op->operands[1])->shape;
  ts_dims lhs_batch = op->attrs->dot.lhs_batch, lhs_contract = op->attrs->dot.lhs_contract;
  ts_dims rhs_batch = op->attrs->dot.rhs_batch, rhs_contract = op->attrs->dot.rhs_contract;
  ts_dims lhs_free = ts_gemm_free_dims(l->rank, &lhs_batch, &lhs_contract),
          rhs_free = ts_gemm_free_dims(r->rank, &rhs_batch, &rhs_contract);
  int64_t ls[TS_MAX_RANK], rs[TS_MAX_RANK], k;
  operand_strides(g, op, 0, slices & 1, ls);
  operand_strides(g, op, 1, slices & 2, rs);
  *out = (ts_gemm_shape){0};
  bool ok = batches(&(ts_batch_dims){l, ls, &lhs_batch}, &(ts_batch_dims){r, rs, &rhs_batch}, out, outer) &&
            ts_gemm_collapse(l, ls, &lhs_free, &out->m, &out->lhs_row) &&
            ts_gemm_collapse(l, ls, &lhs_contract, &out->k, &out->lhs_col) &&
            ts_gemm_collapse(r, rs, &rhs_contract, &k, &out->rhs_row) &&
            ts_gemm_collapse(r, rs, &rhs_free, &out->n, &out->rhs_col);
  out->out_row = out->n;
  out->out_batch = out->m * out->n;
  outer->out = out->batch * out->out_batch;
  return ok;
}

ts_gemm_types ts_gemm_types_of(const ts_graph *g, const ts_op *op) {
  return (ts_gemm_types){ts_graph_value(g, op->operands[0])->dtype, ts_graph_value(g, op->operands[1])->dtype,
                         ts_graph_value(g, op->first_result)->dtype};
}

bool ts_gemm_is_complex(const ts_gemm_types *types) {
  return ts_dtype_is_complex(types->out) && types->lhs == types->out && types->rhs == types->out;
}

/* A scaled product computes its operand's elements in f32. */
bool ts_gemm_multiplies(const ts_op *op, const ts_gemm_types *types) {
  if (!ts_gemm_has_types(types)) return false;
  if (op->code != TS_OP_SCALED_DOT) return true;
  const ts_dtype scaled = op->attrs->scaled_dot.operand ? types->rhs : types->lhs;
  return (types->out == TS_F16 || types->out == TS_BF16 || types->out == TS_F32) && scaled != types->out;
}

/* Shorter runs of neighbours are not worth a cache line each. Of more vectors a product takes longer than the copy, and
 * reads rows again and again, which is slow where they are a power of two apart. */
enum { SLICE_RUN_BYTES = 64, SLICE_ITEMS = TS_GEMM_MAX_ITEMS };

static int64_t run_bytes(const ts_shape *shape, const int64_t *strides, ts_dtype type) {
  int64_t run = 1;
  for (int32_t d = shape->rank - 1; d >= 0; d--) {
    if (shape->dims[d] == 1) continue;
    if (strides[d] != run) break;
    run *= shape->dims[d];
  }
  return run * (int64_t)ts_dtype_size(type);
}

/* Rows of a multiple of so many bytes share sets of the first cache. */
enum { SET_BYTES = 1024 };

/* True if tiles read the slice as fast as a copy of it: what they pack they read once, and small products read rows of
 * lhs by single elements. */
static bool tiles_read(const ts_gemm_types *types, const ts_gemm_shape *s, uint32_t operand, ts_gemm_kernel kernel) {
  const int64_t size = (int64_t)ts_dtype_size(operand ? types->rhs : types->lhs);
  const int64_t along = operand ? s->rhs_col : s->lhs_col, across = operand ? s->rhs_row : s->lhs_row;
  if (kernel == TS_GEMM_SMALL) return operand == 0 || along != 1 || across * size % SET_BYTES != 0;
  return kernel == TS_GEMM_TILE && (size >= 4 || along == 1 || across == 1);
}

/* True if the product reads the slice as fast as a copy of it, by the kernel that multiplies copies, too. The vectors
 * of the other kernels are packed. */
static bool reads_by_kernel(const ts_graph *g, const ts_op *op, const ts_gemm_types *types, const ts_gemm_shape *s,
                            uint32_t operand) {
  const ts_gemm_kernel kernel = ts_gemm_kernel_of(types, s);
  const uint32_t vectors = s->n <= s->m ? 1 : 0;
  ts_gemm_shape copied;
  ts_gemm_outer outer;
  if (!ts_gemm_shape_of(g, op, 0, &copied, &outer) || outer.count != 1) return false;
  if (kernel != ts_gemm_kernel_of(types, &copied)) return false;
  return kernel == TS_GEMM_TILE || kernel == TS_GEMM_SMALL ? tiles_read(types, s, operand, kernel) : operand == vectors;
}

bool ts_gemm_reads_slice(const ts_graph *g, const ts_op *op, uint32_t operand) {
  ts_gemm_shape shape;
  ts_gemm_outer outer;
  int64_t strides[TS_MAX_RANK];
  if ((op->code != TS_OP_DOT && op->code != TS_OP_WIDE_DOT) || !slice_of(g, op, operand)) return false;
  const ts_gemm_types types = ts_gemm_types_of(g, op);
  const ts_value *v = ts_graph_value(g, op->operands[operand]);
  if (ts_graph_is_vector_dot(g, op))
    return v->shape->rank == 1 && v->shape->dims[0] > 0 && ts_vector_dot_has_type(v->dtype);
  if (!(ts_gemm_is_complex(&types) || ts_gemm_multiplies(op, &types))) return false;
  if (!ts_gemm_shape_of(g, op, UINT64_C(1) << operand, &shape, &outer) || ts_shape_elements(v->shape) == 0)
    return false;
  if (outer.count != 1) return false;
  if (!ts_gemm_is_complex(&types) && reads_by_kernel(g, op, &types, &shape, operand)) return true;
  operand_strides(g, op, operand, true, strides);
  return (operand ? shape.m : shape.n) <= SLICE_ITEMS && run_bytes(v->shape, strides, v->dtype) >= SLICE_RUN_BYTES;
}

bool ts_gemm_describe(const ts_graph *g, const ts_op *op, ts_gemm_types *out_types, ts_gemm_shape *out_shape,
                      ts_gemm_outer *out_outer) {
  if ((op->code != TS_OP_DOT && op->code != TS_OP_WIDE_DOT) || ts_graph_is_vector_dot(g, op)) return false;
  *out_types = ts_gemm_types_of(g, op);
  return !ts_gemm_is_complex(out_types) && ts_gemm_multiplies(op, out_types) &&
         ts_gemm_shape_of(g, op, 0, out_shape, out_outer);
}
