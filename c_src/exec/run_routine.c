/* Routines: their prepared weights and their epilogues. */
#include "exec/pool.h"
#include "exec/run.h"

/* Starts the step's epilogue: the routine calls it with the parts of its result. */
static ts_epilogue start_epilogue(ts_run *run, const ts_step *step, ts_epilogue_run *context) {
  const ts_work *work = step->routine.epilogue;
  ts_launch_memory of = {step->ids + step->routine.plan->operand_count, ts_step_results(step), ts_step_besides(step)};
  *context = (ts_epilogue_run){.step = step,
                               .words = ts_run_fill(run, &of, work->launches),
                               .scratch = ts_run_scratch(run, ts_step_inner(step)[1])};
  return ts_epilogue_start(context);
}

/* The buffer of an argument or a constant; NULL for other memory. */
static ts_buffer *fixed_buffer(const ts_run *run, ts_memory_id id) {
  uint32_t i;
  ts_memory_kind kind = ts_memory_kind_of(run->exe, id, &i);
  ts_buffer *b = kind == TS_MEMORY_CONST              ? run->exe->constants.data[i]
                 : kind == TS_MEMORY_ARG && run->args ? run->args[i]
                                                      : NULL;
  return b ? (ts_buffer *)(uintptr_t)ts_buffer_root(b) : NULL;
}

/* Finds or makes the copy of the routine's weights, if they may be copied. `*out_use` is NULL without one. */
static ts_status prepare_weights(const ts_run *run, const ts_step *step, ts_routine_run *out, ts_prepared **out_use) {
  const ts_routine_plan *plan = step->routine.plan;
  const ts_weights *weights = plan->weights;
  ts_buffer *buffer = weights ? fixed_buffer(run, step->ids[weights->operand]) : NULL;
  bool make;
  void *data;
  *out_use = buffer ? ts_prepared_use(buffer, &weights->key, weights->bytes, run->pool, &make, &data) : NULL;
  if (!*out_use) return TS_SUCCESS;
  ts_status status = make ? weights->prepare(plan, out, data) : TS_SUCCESS;
  if (make) ts_prepared_made(*out_use, !status);
  if (status) *out_use = NULL;
  out->prepared = data;
  return status;
}

ts_status ts_run_routine(ts_run *run, const ts_step *step) {
  const ts_routine_plan *plan = step->routine.plan;
  bool has_epilogue = ts_step_has_epilogue(step);
  ts_epilogue_run context;
  ts_epilogue epilogue;
  if (has_epilogue) epilogue = start_epilogue(run, step, &context);
  char *workspace = ts_run_scratch(run, ts_step_workspace(step));
  ts_routine_run call = {.base = run->base,
                         .operands = step->ids,
                         .results = has_epilogue ? ts_step_inner(step) : ts_step_results(step),
                         .thread_workspace = workspace,
                         .workspace = workspace + plan->thread_workspace * ts_cpu_count(),
                         .epilogue = has_epilogue ? &epilogue : NULL,
                         .parallel = run->parallel,
                         .pool = run->pool,
                         .cancel = ts_run_cancel_flag(run)};
  ts_prepared *use;
  TS_TRY(prepare_weights(run, step, &call, &use));
  ts_status status = plan->routine->run(plan, &call);
  if (use) ts_prepared_leave(use);
  return status;
}
