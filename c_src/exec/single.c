/* Runs of programs that consist of one launch on one thread. They need no context but the launch's arguments. */
#include "base/fp_env.h"
#include "exec/steps.h"

#include <string.h>

enum { MOST_MEMORY = 16, MOST_WORDS = 64 };

bool ts_single_fits(const ts_executable *exe) {
  if (exe->root.steps.count != 1 || exe->result_count != 1) return false;
  if (ts_memory_count(exe) > MOST_MEMORY || exe->words.count > MOST_WORDS) return false;
  const ts_step *step = &exe->root.steps.data[0];
  if (exe->view_count > 0) return false;
  if (step->kind != TS_STEP_LAUNCH || step->work->lowered.launch_count != 1) return false;
  if (step->work->lowered.temp_count > 0 || step->work->scratch_bytes > 0) return false;
  for (uint32_t i = 0; i < step->operand_count; i++)
    if (step->ids[i] >= exe->param_count) return false;
  if (step->result_count != 1 || *ts_step_results(step) != exe->results[0] || !exe->moves[0]) return false;
  return step->work->launches->tasks <= 1 && !step->work->launches->launch->copies;
}

ts_status ts_single_run(const ts_executable *exe, ts_buffer *const *args, const ts_run_options *options,
                        ts_buffer **out) {
  const ts_step *step = exe->root.steps.data;
  const ts_step_launch *l = step->work->launches;
  const ts_type *type = *exe->result_types;
  void *base[MOST_MEMORY];
  int64_t copy[MOST_WORDS];
  ts_fp_env saved;
  ts_pool *pool = options && options->pool ? options->pool : ts_pool_default();
  TS_TRY(ts_buffer_create(pool, type->dtype, &type->shape, out));
  (*out)->device = options ? options->device : NULL;
  if (l->launch->units <= 0) return TS_SUCCESS;
  for (size_t i = 0; i < exe->param_count; i++) base[i] = args[i]->data;
  base[exe->results[0]] = (*out)->data;
  memcpy(copy, exe->words.data, exe->words.count * sizeof *copy);
  ts_launch_memory of = {step->ids, ts_step_results(step), ts_step_besides(step)};
  const int64_t *words = ts_run_fill_words(base, copy, &of, l);
  ts_fp_enter(&saved);
  l->entry(words, 0, l->launch->units, NULL);
  ts_fp_leave(&saved);
  return TS_SUCCESS;
}
