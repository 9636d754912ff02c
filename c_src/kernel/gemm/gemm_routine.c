/* The ops dot_general, wide_dot_general and scaled_dot_general as a routine: contractions whose operands are batches of
 * strided matrices. Those without free dims are left to kernel/vector_dot.c. */
#include "kernel/gemm/gemm_layout.h"
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

/* False when the scale is along a contracted dim, or its layout is not one of batches and units. */
static bool gemm_scale(const ts_graph *g, const ts_op *op, ts_gemm_scale *out) {
  const ts_attrs *a = op->attrs;
  const int which = a->scaled_dot.operand;
  const ts_shape *scaled = ts_graph_value(g, op->operands[which])->shape,
                 *scale = ts_graph_value(g, op->operands[2])->shape;
  const ts_dims *batch = which ? &a->dot.rhs_batch : &a->dot.lhs_batch;
  const ts_dims *contract = which ? &a->dot.rhs_contract : &a->dot.lhs_contract;
  const ts_dims free = ts_gemm_free_dims(scaled->rank, batch, contract);
  int64_t own[TS_MAX_RANK], strides[TS_MAX_RANK] = {0}, extent, k;
  ts_shape_strides(scale, own);
  for (int32_t i = 0; i < scale->rank; i++)
    if (scale->dims[i] != 1) strides[a->scaled_dot.axes.dims[i]] = own[i];
  *out = (ts_gemm_scale){.operand = which};
  return ts_gemm_collapse(scaled, strides, batch, &extent, &out->batch) &&
         ts_gemm_collapse(scaled, strides, &free, &extent, &out->unit) &&
         ts_gemm_collapse(scaled, strides, contract, &extent, &k) && k == 0;
}

/* Asks for the kernel of the product. */
static ts_status prepare(gemm_state *state, const ts_gemm_types *types, bool complex) {
  if (complex) return ts_gemm_prepare_complex(ts_dtype_part(types->out), &state->shape, &state->gemm, &state->source);
  if (state->is_scaled) return ts_gemm_prepare_scaled(types, &state->shape, &state->gemm, &state->source);
  return ts_gemm_prepare(types, &state->shape, &state->gemm, &state->source);
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

static ts_status gemm_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_gemm_types types = ts_gemm_types_of(request->graph, op);
  const bool complex = ts_gemm_is_complex(&types);
  const bool is_scaled = op->code == TS_OP_SCALED_DOT;
  ts_gemm_shape shape;
  ts_gemm_outer outer;
  ts_gemm_scale scale = {0};
  gemm_state *state;
  if (ts_graph_is_vector_dot(request->graph, op)) {
    out->routine = &ts_vector_dot_routine;
    return out->routine->plan(request, out);
  }
  if (!(complex || ts_gemm_multiplies(op, &types)) ||
      !ts_gemm_shape_of(request->graph, op, request->slices, &shape, &outer))
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
