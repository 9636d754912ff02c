/* The ops fft, ifft, rfft and irfft as a routine. */
#include "kernel/fft/fft.h"
#include "kernel/routine.h"

static ts_fft_kind kind_of(ts_opcode code) {
  switch ((ts_ops_FFT)code) {
  case TS_OP_FFT: break;
  case TS_OP_IFFT: return TS_FFT_INVERSE;
  case TS_OP_RFFT: return TS_FFT_REAL;
  case TS_OP_IRFFT: return TS_FFT_REAL_INVERSE;
  }
  return TS_FFT_FORWARD;
}

static ts_fft_request request_of(const ts_op *op, const ts_value *operand) {
  const ts_shape *shape = operand->shape;
  const int32_t axis = op->attrs->fft.axis;
  ts_fft_request r = {.part = ts_dtype_part(operand->dtype),
                      .kind = kind_of(op->code),
                      .real = !ts_dtype_is_complex(operand->dtype),
                      .n = op->attrs->fft.length,
                      .in_points = shape->dims[axis],
                      .outer = 1,
                      .inner = 1};
  for (int32_t d = 0; d < axis; d++) r.outer *= shape->dims[d];
  for (int32_t d = axis + 1; d < shape->rank; d++) r.inner *= shape->dims[d];
  return r;
}

/* A group reads its lines before it writes them, so a result of equal bytes may overwrite the operand: where lines have
 * as many points before and after. */
static ts_status fft_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool in_place = true;
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_fft_request r = request_of(op, ts_graph_value(request->graph, op->operands[0]));
  ts_fft *fft;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &fft));
  TS_TRY(ts_fft_plan(&r, request->arena, request->cancel, fft));
  out->state = fft;
  out->thread_workspace = fft->thread_bytes;
  out->workspace = fft->shared_bytes;
  out->inplace = !r.real && r.kind != TS_FFT_REAL_INVERSE && r.in_points == r.n ? &in_place : NULL;
  double lines = (double)r.outer * (double)r.inner,
         cost = 200 + fft->group_ns * lines / (double)(fft->direct ? fft->columns : fft->group);
  out->cost_ns = cost < 4e18 ? (int64_t)cost : INT64_MAX / 2;
  return TS_SUCCESS;
}

static ts_status fft_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  ts_fft_run r = {.in = ts_routine_operand(run, 0),
                  .out = ts_routine_result(run, 0),
                  .workspace = run->thread_workspace,
                  .shared = run->workspace,
                  .parallel = run->parallel,
                  .cancel = run->cancel};
  return ts_fft_execute(plan->state, &r);
}

const ts_routine ts_fft_routine = {"fft", fft_plan, NULL, fft_run, NULL};
