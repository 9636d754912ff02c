/* A kernel on the parts of a product as they are finished, in place of a pass over memory afterwards. The kernel is the
 * one that would run by itself, on the same elements in the same order of operations: so are the bits. */
#include "exec/steps.h"

/* A ROW launch goes by whole rows, which are rows of the product or parts of them. */
static bool rows_fit(const ts_product *product, const ts_launch *launch) {
  return product->shape.n % launch->args[launch->desc.rank - 1] == 0;
}

bool ts_epilogue_fits(const ts_product *product, const ts_launch *launch, const uint32_t *operands, size_t count) {
  const ts_gemm_shape *shape = &product->shape;
  for (size_t i = 0; i < count; i++)
    if (!ts_launch_follows(launch, operands[i])) return false;
  if (launch->points != shape->batch * shape->m * shape->n) return false;
  return launch->desc.kind == TS_KERNEL_MAP || rows_fit(product, launch);
}

static void run_part(void *context, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, int worker) {
  const ts_epilogue_run *run = context;
  const ts_work *work = run->step->gemm.epilogue;
  const ts_step_launch *l = work->launches;
  const ts_gemm_shape *shape = &run->step->gemm.product->shape;
  ts_launch_part part = {.pitch = shape->n, .row = batch * shape->m + row, .rows = rows, .col = col, .cols = cols};
  ts_launch_run_part(l->launch, l->entry, run->words, &part, run->scratch + worker * work->scratch_bytes);
}

ts_gemm_epilogue ts_epilogue_start(ts_epilogue_run *run) {
  bool rows = run->step->gemm.epilogue->launches->launch->desc.kind == TS_KERNEL_ROW;
  return (ts_gemm_epilogue){.run = run_part, .context = run, .whole_rows = rows};
}
