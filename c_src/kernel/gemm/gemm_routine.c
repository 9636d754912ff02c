/* The ops dot_general, wide_dot_general and scaled_dot_general as a routine: contractions whose operands are batches of
 * strided matrices. Those without free dims are left to kernel/vector_dot.c. */
#include "jit/emit/gemm_emit.h"
#include "kernel/gemm/gemm_op.h"
#include "kernel/routine.h"
#include "kernel/vector_dot.h"

typedef struct gemm_state {
  ts_gemm_shape shape;
  ts_gemm_outer outer;
  int64_t sizes[3]; /* bytes of an element of lhs, rhs and the result */
  ts_gemm *gemm;
  ts_kernel_source source;
  ts_epilogue_space space;
  bool is_scaled;
  ts_gemm_scale scale; /* without its address */
  ts_weights weights;
} gemm_state;

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

static bool collapse(const ts_shape *shape, const int64_t *strides, const ts_dims *dims, int64_t *extent,
                     int64_t *stride) {
  return collapse_some(&(ts_batch_dims){shape, strides, dims}, 0, dims->rank, extent, stride);
}

static ts_dims free_dims(int32_t rank, const ts_dims *batch, const ts_dims *contract) {
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

/* False when the operands' layout is not a batch of strided matrices, or batches of these. Bit i of `slices`: operand i
 * is a slice that is read where it lies. */
static bool gemm_shape(const ts_graph *g, const ts_op *op, uint64_t slices, ts_gemm_shape *out, ts_gemm_outer *outer) {
  const ts_shape *l = ts_graph_value(g, op->operands[0])->shape, *r = ts_graph_value(g, op->operands[1])->shape;
  ts_dims lhs_batch = op->attrs->dot.lhs_batch, lhs_contract = op->attrs->dot.lhs_contract;
  ts_dims rhs_batch = op->attrs->dot.rhs_batch, rhs_contract = op->attrs->dot.rhs_contract;
  ts_dims lhs_free = free_dims(l->rank, &lhs_batch, &lhs_contract),
          rhs_free = free_dims(r->rank, &rhs_batch, &rhs_contract);
  int64_t ls[TS_MAX_RANK], rs[TS_MAX_RANK], k;
  operand_strides(g, op, 0, slices & 1, ls);
  operand_strides(g, op, 1, slices & 2, rs);
  *out = (ts_gemm_shape){0};
  bool ok = batches(&(ts_batch_dims){l, ls, &lhs_batch}, &(ts_batch_dims){r, rs, &rhs_batch}, out, outer) &&
            collapse(l, ls, &lhs_free, &out->m, &out->lhs_row) &&
            collapse(l, ls, &lhs_contract, &out->k, &out->lhs_col) &&
            collapse(r, rs, &rhs_contract, &k, &out->rhs_row) && collapse(r, rs, &rhs_free, &out->n, &out->rhs_col);
  out->out_row = out->n;
  out->out_batch = out->m * out->n;
  outer->out = out->batch * out->out_batch;
  return ok;
}

/* False when the scale is along a contracted dim, or its layout is not one of batches and units. */
static bool gemm_scale(const ts_graph *g, const ts_op *op, ts_gemm_scale *out) {
  const ts_attrs *a = op->attrs;
  const int which = a->scaled_dot.operand;
  const ts_shape *scaled = ts_graph_value(g, op->operands[which])->shape,
                 *scale = ts_graph_value(g, op->operands[2])->shape;
  const ts_dims *batch = which ? &a->dot.rhs_batch : &a->dot.lhs_batch;
  const ts_dims *contract = which ? &a->dot.rhs_contract : &a->dot.lhs_contract;
  const ts_dims free = free_dims(scaled->rank, batch, contract);
  int64_t own[TS_MAX_RANK], strides[TS_MAX_RANK] = {0}, extent, k;
  ts_shape_strides(scale, own);
  for (int32_t i = 0; i < scale->rank; i++)
    if (scale->dims[i] != 1) strides[a->scaled_dot.axes.dims[i]] = own[i];
  *out = (ts_gemm_scale){.operand = which};
  return collapse(scaled, strides, batch, &extent, &out->batch) &&
         collapse(scaled, strides, &free, &extent, &out->unit) && collapse(scaled, strides, contract, &extent, &k) &&
         k == 0;
}

/* Asks for the kernel of the product. */
static ts_status prepare(gemm_state *state, const ts_gemm_types *types, bool complex) {
  if (complex) return ts_gemm_prepare_complex(ts_dtype_part(types->out), &state->gemm, &state->source);
  if (state->is_scaled) return ts_gemm_prepare_scaled(types, &state->shape, &state->gemm, &state->source);
  return ts_gemm_prepare(types, &state->shape, &state->gemm, &state->source);
}

/* A scaled product computes its operand's elements in f32. */
static bool has_types(const ts_op *op, const ts_gemm_types *types) {
  if (!ts_gemm_has_types(types)) return false;
  if (op->code != TS_OP_SCALED_DOT) return true;
  const ts_dtype scaled = op->attrs->scaled_dot.operand ? types->rhs : types->lhs;
  return (types->out == TS_F16 || types->out == TS_BF16 || types->out == TS_F32) && scaled != types->out;
}

static ts_gemm_call gemm_call(const ts_routine_run *run) {
  return (ts_gemm_call){.lhs = ts_routine_operand(run, 0),
                        .rhs = ts_routine_operand(run, 1),
                        .packed = run->prepared,
                        .out = ts_routine_result(run, 0),
                        .epilogue = run->epilogue,
                        .parallel = run->parallel,
                        .pool = run->pool,
                        .cancel = run->cancel};
}

static ts_status gemm_prepare(const ts_routine_plan *plan, const ts_routine_run *run, void *out) {
  const gemm_state *state = plan->state;
  const ts_gemm_call call = gemm_call(run);
  return ts_gemm_pack_weights(state->gemm, &state->shape, &call, out);
}

static bool is_parallel(const gemm_state *state, const ts_gemm_types *types) {
  const bool has_row = state->is_scaled && state->scale.operand == 1;
  return (has_row && ts_gemm_scaled_row_is_large(types, &state->shape)) || ts_gemm_is_large(state->gemm, &state->shape);
}

static ts_gemm_types types_of(const ts_graph *g, const ts_op *op) {
  return (ts_gemm_types){ts_graph_value(g, op->operands[0])->dtype, ts_graph_value(g, op->operands[1])->dtype,
                         ts_graph_value(g, op->first_result)->dtype};
}

static bool is_complex(const ts_gemm_types *types) {
  return ts_dtype_is_complex(types->out) && types->lhs == types->out && types->rhs == types->out;
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

bool ts_gemm_reads_slice(const ts_graph *g, const ts_op *op, uint32_t operand) {
  ts_gemm_shape shape;
  ts_gemm_outer outer;
  int64_t strides[TS_MAX_RANK];
  if ((op->code != TS_OP_DOT && op->code != TS_OP_WIDE_DOT) || !slice_of(g, op, operand)) return false;
  const ts_gemm_types types = types_of(g, op);
  const ts_value *v = ts_graph_value(g, op->operands[operand]);
  if (ts_graph_is_vector_dot(g, op))
    return v->shape->rank == 1 && v->shape->dims[0] > 0 && ts_vector_dot_has_type(v->dtype);
  if (!(is_complex(&types) || has_types(op, &types))) return false;
  if (!gemm_shape(g, op, UINT64_C(1) << operand, &shape, &outer) || ts_shape_elements(v->shape) == 0) return false;
  if (outer.count != 1) return false;
  operand_strides(g, op, operand, true, strides);
  return (operand ? shape.m : shape.n) <= SLICE_ITEMS && run_bytes(v->shape, strides, v->dtype) >= SLICE_RUN_BYTES;
}

bool ts_gemm_describe(const ts_graph *g, const ts_op *op, ts_gemm_types *out_types, ts_gemm_shape *out_shape,
                      ts_gemm_outer *out_outer) {
  if ((op->code != TS_OP_DOT && op->code != TS_OP_WIDE_DOT) || ts_graph_is_vector_dot(g, op)) return false;
  *out_types = types_of(g, op);
  return !is_complex(out_types) && has_types(op, out_types) && gemm_shape(g, op, 0, out_shape, out_outer);
}

static ts_status gemm_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_gemm_types types = types_of(request->graph, op);
  const bool complex = is_complex(&types);
  const bool is_scaled = op->code == TS_OP_SCALED_DOT;
  ts_gemm_shape shape;
  ts_gemm_outer outer;
  ts_gemm_scale scale = {0};
  gemm_state *state;
  if (ts_graph_is_vector_dot(request->graph, op)) {
    out->routine = &ts_vector_dot_routine;
    return out->routine->plan(request, out);
  }
  if (!(complex || has_types(op, &types)) || !gemm_shape(request->graph, op, request->slices, &shape, &outer))
    return TS_SUCCESS;
  if (outer.count != 1 && (complex || is_scaled)) return TS_SUCCESS;
  if (is_scaled && !gemm_scale(request->graph, op, &scale)) return TS_SUCCESS;
  if (complex) shape = ts_gemm_shape_of_parts(&shape);
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &state));
  *state = (gemm_state){.shape = shape, .outer = outer, .is_scaled = is_scaled, .scale = scale};
  state->sizes[0] = (int64_t)ts_dtype_size(types.lhs);
  state->sizes[1] = (int64_t)ts_dtype_size(types.rhs);
  state->sizes[2] = (int64_t)ts_dtype_size(types.out);
  out->state = state;
  TS_TRY(prepare(state, &types, complex));
  state->space = (ts_epilogue_space){
      .batch = outer.count * shape.batch, .rows = shape.m, .cols = shape.n, .is_parallel = is_parallel(state, &types)};
  out->cost_ns = ts_gemm_cost(ts_dtype_part(types.out), &shape);
  if (!ts_mul_i64(out->cost_ns, outer.count, &out->cost_ns)) out->cost_ns = INT64_MAX;
  out->epilogue = complex ? NULL : &state->space;
  out->kernel = &state->source;
  state->weights = (ts_weights){.operand = 1, .prepare = gemm_prepare};
  if (outer.count == 1 && ts_gemm_packs_weights(state->gemm, &shape, &state->weights.key, &state->weights.bytes))
    out->weights = &state->weights;
  return TS_SUCCESS;
}

static void gemm_adopt(const ts_routine_plan *plan, ts_kernel *kernel) {
  ts_gemm_adopt(((gemm_state *)plan->state)->gemm, kernel);
}

/* An epilogue of the product with an index of the outer batch dims. */
typedef struct inner_epilogue {
  const ts_epilogue *whole;
  int64_t first; /* batch */
} inner_epilogue;

static void show_inner(void *context, const ts_epilogue_part *part, int worker) {
  const inner_epilogue *e = context;
  ts_epilogue_part whole = *part;
  whole.batch += e->first;
  e->whole->run(e->whole->context, &whole, worker);
}

/* The products of the outer batch dims, one after the other. */
static ts_status run_outer(const gemm_state *state, const ts_gemm_call *whole) {
  const ts_gemm_outer *outer = &state->outer;
  const ts_gemm *gemm = state->gemm;
  for (int64_t i = 0; i < outer->count; i++) {
    inner_epilogue inner = {whole->epilogue, i * state->shape.batch};
    ts_epilogue epilogue = {.run = show_inner, .context = &inner};
    ts_gemm_call call = *whole;
    if (whole->epilogue) epilogue.whole_rows = whole->epilogue->whole_rows;
    if (whole->epilogue) call.epilogue = &epilogue;
    call.lhs = (const char *)whole->lhs + i * outer->lhs * state->sizes[0];
    call.rhs = (const char *)whole->rhs + i * outer->rhs * state->sizes[1];
    call.out = (char *)whole->out + i * outer->out * state->sizes[2];
    TS_TRY(ts_gemm_run(gemm, &state->shape, &call));
  }
  return TS_SUCCESS;
}

static ts_status gemm_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  const gemm_state *state = plan->state;
  ts_gemm_scale scale = state->scale;
  if (state->is_scaled) scale.at = ts_routine_operand(run, 2);
  ts_gemm_call call = gemm_call(run);
  if (state->is_scaled) call.scale = &scale;
  return state->outer.count == 1 ? ts_gemm_run(state->gemm, &state->shape, &call) : run_outer(state, &call);
}

static void gemm_deinit(ts_routine_plan *plan) {
  if (plan->state) ts_gemm_release(((gemm_state *)plan->state)->gemm);
}

const ts_routine ts_gemm_routine = {"gemm", gemm_plan, gemm_adopt, gemm_run, gemm_deinit};
