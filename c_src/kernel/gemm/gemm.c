/* Chooses how a product is computed: by tiles, by vectors, or by blocks of a long k. */
#include "kernel/gemm/gemm.h"

#include "kernel/gemm/complex/complex_vector.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/scaled_row.h"

#include <string.h>

/* With k = 0 the sums are empty. */
static void run_zeros(const gemm_run *run) {
  const ts_gemm_shape *s = &run->shape;
  for (int64_t b = 0; b < s->batch; b++) {
    for (int64_t i = 0; i < s->m; i++)
      memset(run->out + (b * s->out_batch + i * s->out_row) * run->size, 0, (size_t)(s->n * run->size));
    if (run->epilogue) gemm_show(run, (ts_epilogue_part){b, 0, s->m, 0, s->n}, 0);
  }
}

/* Integers have one chain, of any length. */
static ts_status run_any(const gemm_run *run) {
  if (!ts_gemm_goes_on(run) && run->shape.k > TS_CONTRACT_BLOCK) return ts_gemm_run_long(run);
  if (ts_gemm_is_scaled_row(run)) return ts_gemm_run_scaled_row(run);
  if (run->kernel == TS_GEMM_SMALL) return ts_gemm_run_small(run);
  if (ts_gemm_is_complex_vector(run)) return ts_gemm_run_complex_vector(run);
  return run->kernel == TS_GEMM_TILE ? ts_gemm_run_passes(run) : ts_gemm_run_vector(run);
}

ts_status ts_gemm_run(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call) {
  gemm_run run = ts_gemm_run_of(gemm, shape, call);
  if (gemm_is_empty(shape)) return TS_SUCCESS;
  TS_TRY(ts_check_cancelled(call->cancel, "a matrix product"));
  if (shape->k <= 0) {
    if (!call->adds) run_zeros(&run);
    return TS_SUCCESS;
  }
  run.kernel = call->adds || call->left ? TS_GEMM_TILE : ts_gemm_pick_kernel(gemm, shape);
  if (gemm->complex && !gemm->kernels[run.kernel]) run.kernel = TS_GEMM_TILE;
  if (!gemm->kernels[run.kernel])
    return ts_error(TS_FAILED_PRECONDITION, "matrix product of another shape than was planned");
  return run_any(&run);
}

ts_status ts_gemm_run_rows(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call) {
  gemm_run run = ts_gemm_run_of(gemm, shape, call);
  run.lhs = run.rhs; /* any address: offsets of 0 are added to it */
  run.kernel = TS_GEMM_TILE;
  if (gemm_is_empty(shape)) return TS_SUCCESS;
  TS_TRY(ts_check_cancelled(call->cancel, "a convolution"));
  if (shape->k > 0) return run_any(&run);
  run_zeros(&run);
  return TS_SUCCESS;
}

ts_status ts_gemm_run_some(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call) {
  gemm_run run = ts_gemm_run_of(gemm, shape, call);
  run.kernel = TS_GEMM_SMALL;
  if (gemm_is_empty(shape)) return TS_SUCCESS;
  if (shape->k > 0) return ts_gemm_run_small(&run);
  run_zeros(&run);
  return TS_SUCCESS;
}

bool ts_gemm_is_large(const ts_gemm *gemm, const ts_gemm_shape *shape) {
  if (shape->k <= 0) return false;
  const ts_gemm_kernel kernel = ts_gemm_pick_kernel(gemm, shape);
  return kernel == TS_GEMM_TILE || kernel == TS_GEMM_SMALL ? ts_gemm_tiles_are_large(gemm, shape)
                                                           : ts_gemm_vector_is_large(gemm, shape);
}

int64_t ts_gemm_cost(ts_dtype dtype, const ts_gemm_shape *s) {
  double size = (double)ts_dtype_size(dtype), lanes = ts_target_host()->lanes * 4 / (size < 4 ? 4 : size);
  double products = (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
  double elements =
      (double)s->batch * ((double)s->m * (double)s->k + (double)s->k * (double)s->n + (double)s->m * (double)s->n);
  /* Assumes two vectors of products for each cycle at 2.5 GHz, packing and memory at 8 bytes for each nanosecond, or
   * the second cache at 64. */
  const double rate = elements * size <= (double)ts_target_host()->l2_bytes ? 64 : 8;
  const double slower = ts_dtype_is_float(dtype) ? 1 : size == 8 ? 4 : 2;
  double cost = 100 + products / (5 * lanes) * slower + elements * size / rate;
  return cost < 9e18 ? (int64_t)cost : INT64_MAX;
}
