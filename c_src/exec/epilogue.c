/* Runs a kernel on each part of a routine's result as soon as the part is complete, which saves a second pass over
 * memory. A separate step would run the same kernel on the same elements and in the same order of operations, so the
 * bits are the same. */
#include "exec/steps.h"

/* True when the rows of a ROW launch are the result's rows or lie within them, or the groups of an INTERLEAVED are its
 * rows. Groups within wide rows stay a step of their own, which needs no whole rows from the product. */
static bool rows_fit(const ts_epilogue_space *space, const ts_launch *launch) {
  const ts_kernel_desc *d = &launch->desc;
  if (d->kind == TS_KERNEL_INTERLEAVED) return space->cols == d->members;
  return space->cols % launch->args[d->rank - 1] == 0;
}

bool ts_epilogue_fits(const ts_epilogue_space *space, const ts_launch *launch, const uint32_t *operands, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!ts_launch_follows(launch, operands[i])) return false;
  if (launch->points != space->batch * space->rows * space->cols) return false;
  return launch->desc.kind == TS_KERNEL_MAP || rows_fit(space, launch);
}

static void run_part(void *context, const ts_epilogue_part *of, int worker) {
  const ts_epilogue_run *run = context;
  const ts_work *work = run->step->routine.epilogue;
  const ts_step_launch *l = work->launches;
  const ts_epilogue_space *space = run->step->routine.plan->epilogue;
  ts_launch_part part = {.pitch = space->cols,
                         .row = of->batch * space->rows + of->row,
                         .rows = of->rows,
                         .col = of->col,
                         .cols = of->cols};
  ts_launch_run_part(l->launch, l->entry, run->words, &part, run->scratch + worker * work->scratch_bytes);
}

ts_epilogue ts_epilogue_start(ts_epilogue_run *run) {
  bool rows = run->step->routine.epilogue->launches->launch->desc.kind != TS_KERNEL_MAP;
  return (ts_epilogue){.run = run_part, .context = run, .whole_rows = rows};
}
