/* One run of an executable. Its context holds a pointer for every piece of memory and a private copy of the launches'
 * argument words. A while swaps the pointers of a loop variable and its next value after each iteration. The position
 * of a run is a stack of blocks instead of C frames, so that a run can return between any two steps and be resumed. */
#include "exec/run.h"
#include "base/cancel.h"
#include "base/fp_env.h"
#include "base/system.h"
#include "exec/pool.h"

#include <string.h>

static bool is_set(const _Atomic bool *flag) { return atomic_load_explicit(flag, memory_order_relaxed); }
static bool must_pause(const ts_run *run) { return run->may_pause && is_set(&run->control->pause); }

/* ---- contexts ---- */

static size_t context_bytes(const ts_executable *exe) {
  return sizeof(ts_run) + ts_memory_count(exe) * sizeof(void *) + exe->words.count * sizeof(int64_t);
}

static void context_init(const ts_executable *exe, ts_run *run) {
  run->exe = exe;
  run->base = (void **)(run + 1);
  run->words = (int64_t *)(run->base + ts_memory_count(exe));
  if (exe->words.count) memcpy(run->words, exe->words.data, exe->words.count * sizeof(int64_t));
  for (size_t i = 0; i < exe->constants.count; i++) run->base[exe->param_count + i] = exe->constants.data[i]->data;
}

static ts_status context_create(const ts_executable *exe, ts_small_context *small, ts_run **out) {
  size_t bytes = context_bytes(exe);
  *out = &small->run;
  if (bytes > sizeof *small) TS_TRY(ts_alloc(bytes, (void **)out));
  context_init(exe, *out);
  return TS_SUCCESS;
}

static void context_destroy(const ts_small_context *small, ts_run *run) {
  if (run != &small->run) ts_free(run);
}

/* ---- steps ---- */

static void run_launch(ts_run *run, const ts_step *step, const ts_step_launch *l) {
  /* a copy of a whole operand into a result that shares its memory has no effect */
  const ts_memory_id *results = ts_step_results(step), *temps = ts_step_besides(step);
  if (l->launch->copies && run->base[*results] == run->base[*step->ids]) return;
  int64_t *words = ts_run_fill(run, &(ts_launch_memory){step->ids, results, temps}, l);
  char *scratch = ts_run_scratch(run, temps[step->work->lowered.temp_count]);
  ts_tasks_run(l, words, scratch, step->work->scratch_bytes, run->parallel, ts_run_cancel_flag(run));
}

static void copy_bytes(const ts_run *run, void *to, const void *from, int64_t bytes) {
  ts_copy_bytes(to, from, bytes, ts_run_cancel_flag(run));
}

/* Moves every loop variable back to its original memory, if the swaps have left it in its second memory. Each variable
 * has two pieces of memory of its own, so one copy is enough. */
static void settle(ts_run *run, const ts_step *step, void *const *home) {
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_memory_id carried = ts_step_results(step)[i], next = step->loop->next[i];
    if (run->base[carried] == home[i]) continue;
    copy_bytes(run, home[i], run->base[carried], step->loop->bytes[i]);
    run->base[next] = run->base[carried];
    run->base[carried] = home[i];
  }
}

/* ---- blocks ---- */

static ts_status push(ts_run *run, const ts_block *block, const ts_step *loop, void **home) {
  if (run->depth == run->room) {
    ts_frame *more = NULL;
    TS_TRY(TS_NEW_ARRAY(run->room * 2, &more));
    memcpy(more, run->frames, run->depth * sizeof *more);
    if (run->frames != run->few) ts_free(run->frames);
    run->frames = more;
    run->room *= 2;
  }
  run->frames[run->depth++] = (ts_frame){block, 0, loop, home};
  return TS_SUCCESS;
}

static void pop(ts_run *run) { ts_free(run->frames[--run->depth].home); }

static ts_status begin_while(ts_run *run, const ts_step *step) {
  void **home;
  TS_TRY(TS_NEW_ARRAY(step->result_count, &home));
  for (uint32_t i = 0; i < step->result_count; i++) {
    home[i] = run->base[ts_step_results(step)[i]];
    copy_bytes(run, home[i], run->base[step->ids[i]], step->loop->bytes[i]);
  }
  ts_status status = push(run, &step->loop->condition, step, home);
  if (status) ts_free(home);
  return status;
}

static void swap_carried(ts_run *run, const ts_step *step) {
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_memory_id carried = ts_step_results(step)[i], next = step->loop->next[i];
    void *swap = run->base[carried];
    run->base[carried] = run->base[next];
    run->base[next] = swap;
  }
}

/* The condition of a while, or the predicate of a cond. */
static bool predicate(const ts_run *run, const ts_step *step) {
  ts_memory_id id = step->kind == TS_STEP_WHILE ? step->loop->condition_result : *step->ids;
  return *(const uint8_t *)run->base[id];
}

static ts_status begin_branch(ts_run *run, const ts_step *step) {
  return push(run, &step->branches[predicate(run, step) ? 0 : 1], NULL, NULL);
}

/* Continues after the condition of the innermost while. */
static void end_condition(ts_run *run) {
  ts_frame *f = &run->frames[run->depth - 1];
  const ts_step *step = f->loop;
  if (predicate(run, step)) {
    *f = (ts_frame){&step->loop->body, 0, step, f->home};
  } else {
    settle(run, step, f->home);
    pop(run);
  }
}

/* Continues after the last step of the innermost block. */
static void end_block(ts_run *run) {
  ts_frame *f = &run->frames[run->depth - 1];
  const ts_step *step = f->loop;
  if (!step) {
    pop(run);
  } else if (f->block == &step->loop->body) {
    swap_carried(run, step);
    *f = (ts_frame){&step->loop->condition, 0, step, f->home};
  } else if (step->agrees) {
    run->asking = step;
  } else {
    end_condition(run);
  }
}

/* Runs a step that is one native function. A loop that was asked to pause has written its loop variables to the
 * results, and resumes from them. A loop that ended at the same moment evaluates its condition once more and ends. */
static void run_whole(ts_run *run, const ts_step *step) {
  static const ts_run_control never;
  int64_t *words = run->words + step->whole.words;
  const ts_memory_id *results = ts_step_results(step), *from = run->resumed ? results : step->ids;
  uint32_t n = 0;
  for (uint32_t i = 0; i < step->operand_count; i++) words[n++] = (int64_t)(intptr_t)run->base[from[i]];
  for (uint32_t i = 0; i < step->result_count; i++) words[n++] = (int64_t)(intptr_t)run->base[results[i]];
  words[n] = (int64_t)(intptr_t)(run->control ? run->control : &never);
  step->whole.entry(words, 0, 1, NULL);
  run->resumed = must_pause(run) && step->code == TS_OP_WHILE;
  if (run->resumed) run->frames[run->depth - 1].next--;
}

static ts_status stop_at(ts_run *run, const ts_step *step) {
  run->asking = step;
  return TS_SUCCESS;
}

static ts_status begin_routine(ts_run *run, const ts_step *step) {
  if (!run->ready || !step->routine.plan->is_foreign) return ts_run_routine(run, step);
  run->away = step;
  return TS_SUCCESS;
}

static void run_launches(ts_run *run, const ts_step *step) {
  int32_t count = step->work->lowered.launch_count;
  for (int32_t i = 0; i < count; i++) {
    run_launch(run, step, &step->work->launches[i]);
    if (run->measure && count > 1) ts_measure_step(run->measure, step, i);
  }
}

static ts_status run_step(ts_run *run, const ts_step *step) {
  switch ((ts_step_kind)step->kind) {
  case TS_STEP_LAUNCH: run_launches(run, step); return TS_SUCCESS;
  case TS_STEP_ROUTINE: return begin_routine(run, step);
  case TS_STEP_COPY:
    copy_bytes(run, run->base[step->ids[1]], run->base[step->ids[0]], step->copy_bytes);
    return TS_SUCCESS;
  case TS_STEP_WHILE: return step->native ? ts_run_native(run, step) : begin_while(run, step);
  case TS_STEP_COND: return step->agrees ? stop_at(run, step) : begin_branch(run, step);
  case TS_STEP_CALLBACK:
  case TS_STEP_COLLECTIVE: return stop_at(run, step);
  case TS_STEP_WHOLE: run_whole(run, step); return TS_SUCCESS;
  }
  return ts_error(TS_INTERNAL, "unknown step");
}

/* A step that stops the run is measured when the run continues: then its time is the time that the run waits. */
static ts_status run_measured(ts_run *run, const ts_step *step) {
  ts_status status = run_step(run, step);
  if (!run->asking && !run->away) ts_measure_step(run->measure, step, -1);
  return status;
}

static ts_status next_step(ts_run *run, const ts_step *step) {
  return run->measure ? run_measured(run, step) : run_step(run, step);
}

/* Executes steps until no block is left, or the run has to pause or to ask its caller. */
static ts_status run_blocks(ts_run *run, ts_run_state *out_state) {
  *out_state = TS_RUN_PAUSED;
  while (run->depth > 0 && !run->away) {
    TS_TRY(ts_check_cancelled(ts_run_cancel_flag(run), "the run"));
    if (run->asking) {
      *out_state = run->asking->kind == TS_STEP_CALLBACK ? TS_RUN_CALLBACK : TS_RUN_COLLECTIVE;
      return TS_SUCCESS;
    }
    if (must_pause(run)) return TS_SUCCESS;
    ts_frame *f = &run->frames[run->depth - 1];
    if (f->next < f->block->steps.count)
      TS_TRY(next_step(run, &f->block->steps.data[f->next++]));
    else
      end_block(run);
  }
  *out_state = run->away ? TS_RUN_WAITING : TS_RUN_DONE;
  return TS_SUCCESS;
}

/* ---- arguments and results ---- */

ts_status ts_executable_check_args(const ts_executable *exe, ts_buffer *const *args, size_t arg_count) {
  if (arg_count != exe->param_count)
    return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", exe->param_count, arg_count);
  for (size_t i = 0; i < arg_count; i++) {
    const ts_type *t = exe->param_types[i];
    if (args[i]->dtype != t->dtype || !ts_shape_equal(&args[i]->shape, &t->shape))
      return ts_error(TS_INVALID_ARGUMENT, "argument %zu is %s, the program was compiled for %s", i + 1,
                      TS_SHAPE_STR(args[i]->dtype, &args[i]->shape), TS_SHAPE_STR(t->dtype, &t->shape));
  }
  return TS_SUCCESS;
}

static bool may_take(const ts_executable *exe, int32_t donor, const ts_type *type, ts_buffer *const *args,
                     const ts_run_options *options) {
  if (donor < 0 || !ts_bits_has(options->donated, (size_t)donor) || !ts_buffer_is_unique(args[donor])) return false;
  if (args[donor]->device != options->device) return false;
  for (size_t i = 0; i < exe->param_count; i++)
    if (args[i] == args[donor] && i != (size_t)donor) return false; /* passed twice */
  const ts_type *given = exe->param_types[donor];
  return given->dtype == type->dtype && ts_shape_equal(&given->shape, &type->shape);
}

/* Its bytes will be others. */
static ts_buffer *take(ts_buffer *donated) {
  ts_prepared_forget(donated);
  return donated;
}

static ts_status create_result(ts_run *run, const ts_type *type, const ts_run_options *options, ts_buffer **out) {
  TS_TRY(ts_buffer_create(run->pool, type->dtype, &type->shape, out));
  (*out)->device = options->device;
  return TS_SUCCESS;
}

/* A view of a buffer of another form or device. */
static ts_status view(ts_buffer *buffer, const ts_type *type, struct ts_device *device, ts_buffer **out) {
  TS_TRY(ts_buffer_alias(buffer, type->dtype, &type->shape, out));
  (*out)->device = device;
  return TS_SUCCESS;
}

/* Makes a buffer for every RESULT, in `made`: a new one, or a donated argument. */
static ts_status make_results(ts_run *run, ts_buffer *const *args, const ts_run_options *options, ts_buffer **made) {
  const ts_executable *exe = run->exe;
  for (size_t r = 0; r < exe->result_count; r++) {
    uint32_t i;
    if (ts_memory_kind_of(exe, exe->results[r], &i) != TS_MEMORY_RESULT || made[i]) continue;
    const ts_type *t = exe->result_types[r];
    if (may_take(exe, exe->donors[i], t, args, options))
      made[i] = take(args[exe->donors[i]]);
    else
      TS_TRY(create_result(run, t, options, &made[i]));
    run->base[exe->results[r]] = made[i]->data;
  }
  return TS_SUCCESS;
}

static bool is_argument(const ts_executable *exe, uint32_t i, ts_buffer *const *args, ts_buffer *const *made) {
  return exe->donors[i] >= 0 && made[i] == args[exe->donors[i]];
}

/* The buffer of a result, with a reference for the caller. The last result in a RESULT takes the run's own
 * reference. */
static ts_status hand_out(const ts_execution *x, size_t r, ts_buffer **out) {
  const ts_executable *exe = x->exe;
  ts_buffer *const *args = x->args, **made = x->made;
  uint32_t i;
  ts_memory_kind kind = ts_memory_kind_of(exe, exe->results[r], &i);
  const ts_type *t = exe->result_types[r];
  ts_buffer *b = kind == TS_MEMORY_RESULT ? made[i] : kind == TS_MEMORY_ARG ? args[i] : exe->constants.data[i];
  if (b->dtype != t->dtype || !ts_shape_equal(&b->shape, &t->shape) || b->device != x->options.device)
    return view(b, t, x->options.device, out);
  if (exe->moves[r] && !is_argument(exe, i, args, made))
    made[i] = NULL;
  else
    ts_buffer_retain(b);
  *out = b;
  return TS_SUCCESS;
}

/* Undoes hand_out. */
static void take_back(const ts_executable *exe, size_t r, ts_buffer **made, ts_buffer *result) {
  uint32_t i;
  (void)ts_memory_kind_of(exe, exe->results[r], &i);
  if (exe->moves[r] && !made[i])
    made[i] = result;
  else
    ts_buffer_release(result);
}

ts_status ts_execution_hand_out(ts_execution *x, ts_buffer **out_results) {
  for (size_t r = 0; r < x->exe->result_count; r++) {
    ts_status status = hand_out(x, r, &out_results[r]);
    if (!status) continue;
    while (r-- > 0) take_back(x->exe, r, x->made, out_results[r]);
    return status;
  }
  return TS_SUCCESS;
}

void ts_execution_take_back(ts_execution *x, ts_buffer **results) {
  for (size_t r = x->exe->result_count; r-- > 0;) take_back(x->exe, r, x->made, results[r]);
}

/* Where temporaries without elements are: memcpy and memset take no NULL, even of 0 bytes. */
static _Alignas(64) char nothing[64];

/* Sets the addresses of temporaries. `offsets` are in the block; NULL: as in exe->temps. */
static void place_temps(ts_run *run, const int64_t *offsets) {
  const ts_executable *exe = run->exe;
  void **base = run->base + ts_first_temp(exe);
  for (uint32_t i = 0; i < exe->temp_count; i++) {
    const ts_temp *temp = &exe->temps[i];
    char *from = offsets || temp->host == TS_NO_ID ? run->block : run->base[temp->host];
    base[i] = from + (offsets ? offsets[i] : temp->offset);
  }
}

/* Sets the addresses of parts of arguments and constants. */
static void place_views(ts_run *run) {
  const ts_executable *exe = run->exe;
  void **base = run->base + ts_first_view(exe);
  for (uint32_t i = 0; i < exe->view_count; i++) base[i] = (char *)run->base[exe->views[i].of] + exe->views[i].offset;
}

/* Sets the addresses of all memory: arguments, new results, and temporaries in a block of this run. */
static ts_status place(ts_run *run, ts_buffer *const *args, const ts_run_options *options, ts_buffer **made) {
  const ts_executable *exe = run->exe;
  for (size_t i = 0; i < exe->param_count; i++) run->base[i] = args[i]->data;
  place_views(run);
  run->args = options->donated.words ? NULL : args;
  TS_TRY(make_results(run, args, options, made));
  ts_temps_plan plan = options->donated.words && exe->has_donors ? TS_TEMPS_BLOCK : TS_TEMPS_HOSTED;
  if (plan == TS_TEMPS_BLOCK) TS_TRY(ts_assign_block((ts_executable *)(uintptr_t)exe));
  run->block_bytes = exe->block_bytes[plan];
  void *block = nothing;
  if (run->block_bytes) TS_TRY(ts_pool_alloc(run->pool, run->block_bytes, &block));
  run->block = block;
  place_temps(run, plan == TS_TEMPS_BLOCK ? exe->block_offsets : NULL);
  return TS_SUCCESS;
}

/* Releases the run's own references, and after success the donated arguments. After a failure donated arguments whose
 * memory became a result's are marked: steps may have written there. */
static void let_go(const ts_execution *x, bool begun, bool succeeded) {
  const ts_executable *exe = x->exe;
  for (uint32_t i = 0; i < exe->made_count; i++) {
    if (!x->made[i]) continue;
    if (!is_argument(exe, i, x->args, x->made))
      ts_buffer_release(x->made[i]);
    else if (!succeeded && begun)
      x->made[i]->spent = true;
  }
  for (size_t i = 0; i < exe->param_count && succeeded; i++)
    if (ts_bits_has(x->options.donated, i)) ts_buffer_release(x->args[i]);
}

/* ---- pace ---- */

/* Chooses the threads of a run. */
static const ts_parallel *start_pace(ts_pace *pace, int threads, ts_paced *out) {
  const ts_parallel *all = ts_pool_parallel(threads);
  *out = (ts_paced){.pace = pace};
  if (!pace) return all;
  out->given = ts_pool_given();
  out->began = ts_system_ns();
  out->way = all->width > 1 ? ts_pace_choose(pace, ts_pool_is_awake(all->width), out->began) : TS_PACE_ALONE;
  return out->way == TS_PACE_ALONE ? ts_pool_parallel(1) : all;
}

static void end_pace(ts_paced *paced, bool is_done, bool is_stopped) {
  if (paced->pace && is_stopped) ts_pace_note_stop(paced->pace);
  if (paced->pace && is_done)
    ts_pace_note(paced->pace, &(ts_pace_run){.way = paced->way,
                                             .shared = ts_pool_given() != paced->given,
                                             .began = paced->began,
                                             .ended = ts_system_ns()});
  paced->pace = NULL;
}

/* ---- a run ---- */

static void reset(ts_run *run, const ts_run_options *options, bool may_pause) {
  run->control = options->control;
  run->parallel = start_pace(run->exe->pace, options->threads, &run->paced);
  run->measure =
      options->profile ? ts_measure_new(options->profile, run->exe, options->partition, &run->parallel) : NULL;
  run->pool = options->pool ? options->pool : ts_pool_default();
  run->block = NULL;
  run->may_pause = may_pause && options->control;
  run->resumed = false;
  run->begun = false;
  run->asking = NULL;
  run->away = NULL;
  run->returned = TS_SUCCESS;
  run->ready = may_pause ? options->ready : NULL;
  run->context = options->context;
  run->frames = run->few;
  run->depth = 0;
  run->room = sizeof run->few / sizeof *run->few;
}

void ts_execution_close(ts_execution *x, bool succeeded) {
  ts_run *run = x->run;
  while (run->depth > 0) pop(run);
  ts_status_free(run->returned);
  if (run->frames != run->few) ts_free(run->frames);
  if (run->block && run->block_bytes) ts_pool_free(run->pool, run->block, run->block_bytes);
  ts_measure_end(run->measure);
  let_go(x, run->begun, succeeded);
  if (x->made != x->few_made) ts_free(x->made);
  context_destroy(&x->small, run);
}

/* NULL for `out_results` abandons the run. */
static ts_status finish(ts_execution *x, ts_buffer **out_results) {
  ts_status status = out_results ? ts_execution_hand_out(x, out_results) : TS_SUCCESS;
  ts_execution_close(x, out_results && !status);
  return status;
}

ts_status ts_execution_begin(ts_execution *x, const ts_executable *exe, ts_buffer *const *args,
                             const ts_run_options *options, bool may_pause) {
  x->exe = exe;
  x->args = args;
  x->options = *options;
  x->state = TS_RUN_PAUSED;
  x->made = x->few_made;
  memset(x->few_made, 0, sizeof x->few_made);
  TS_TRY(context_create(exe, &x->small, &x->run));
  reset(x->run, &x->options, may_pause);
  if (exe->made_count > 8) {
    ts_status status = TS_NEW_ARRAY(exe->made_count, &x->made);
    if (status) {
      ts_measure_end(x->run->measure);
      context_destroy(&x->small, x->run);
      return status;
    }
  }
  ts_status status = place(x->run, args, &x->options, x->made);
  if (!status) status = push(x->run, &exe->root, NULL, NULL);
  if (status) ts_execution_close(x, false);
  return status;
}

/* Begins a run by itself, whose arguments are checked unless the options say that they are known. */
static ts_status begin(ts_execution *x, const ts_executable *exe, ts_buffer *const *args, size_t arg_count,
                       const ts_run_options *options, bool may_pause) {
  static const ts_run_options defaults = {0};
  if (!options) options = &defaults;
  if (exe->collective)
    return ts_error(TS_FAILED_PRECONDITION, "%s: the program has %d partitions, which only run together",
                    ts_op_name(exe->collective), ts_mesh_partitions(&exe->mesh));
  if (!options->checked) TS_TRY(ts_executable_check_args(exe, args, arg_count));
  return ts_execution_begin(x, exe, args, options, may_pause);
}

static ts_status advance(ts_execution *x) {
  ts_fp_env saved;
  if (x->run->measure) ts_measure_resume(x->run->measure);
  ts_fp_enter(&saved);
  x->run->begun = true;
  ts_status status = run_blocks(x->run, &x->state);
  ts_fp_leave(&saved);
  end_pace(&x->run->paced, !status && x->state == TS_RUN_DONE, !status && x->state == TS_RUN_PAUSED);
  return status;
}

static ts_status run_single_paced(const ts_executable *exe, ts_buffer *const *args, const ts_run_options *options,
                                  ts_buffer **out) {
  ts_paced paced;
  (void)start_pace(exe->pace, 1, &paced);
  ts_status status = ts_single_run(exe, args, options, out);
  end_pace(&paced, !status, false);
  return status;
}

ts_status ts_executable_run(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                            const ts_run_options *options, ts_buffer **out_results) {
  ts_execution x;
  if (executable->is_single && !(options && (options->control || options->donated.words || options->profile))) {
    if (!(options && options->checked)) TS_TRY(ts_executable_check_args(executable, args, arg_count));
    return executable->pace ? run_single_paced(executable, args, options, out_results)
                            : ts_single_run(executable, args, options, out_results);
  }
  if (executable->calls_back)
    return ts_error(TS_FAILED_PRECONDITION, "the program calls back: only a resumable run can have answers");
  TS_TRY(begin(&x, executable, args, arg_count, options, false));
  ts_status status = advance(&x), ended = finish(&x, status ? NULL : out_results);
  return status ? status : ended;
}

ts_status ts_execution_create(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                              const ts_run_options *options, ts_execution **out) {
  ts_execution *x;
  *out = NULL;
  TS_TRY(TS_NEW(&x));
  ts_status status = begin(x, executable, args, arg_count, options, true);
  if (status)
    ts_free(x);
  else
    *out = x;
  return status;
}

/* On a thread for foreign code, with helpers of its own. After `ready` the run may have ended. */
static void run_away(void *context) {
  ts_run *run = context;
  const ts_parallel *own = run->parallel;
  run->parallel = ts_pool_away(own->width);
  run->returned = ts_check_cancelled(ts_run_cancel_flag(run), "the run"); /* it may have waited long */
  if (!run->returned) run->returned = ts_run_routine(run, run->away);
  run->parallel = own;
  run->ready(run->context);
}

/* The run is the other thread's from here on. */
static void leave(ts_run *run) {
  run->call = (ts_away){.run = run_away, .context = run};
  if (!ts_away_start(&run->call)) run_away(run);
}

static ts_status come_back(ts_run *run) {
  ts_status status = run->returned;
  if (run->measure && run->away) ts_measure_step(run->measure, run->away, -1);
  run->away = NULL;
  run->returned = TS_SUCCESS;
  return status;
}

ts_status ts_execution_advance(ts_execution *execution, ts_run_state *out_state) {
  ts_status status = come_back(execution->run);
  if (!status) status = advance(execution);
  *out_state = execution->state;
  if (!status && execution->state == TS_RUN_WAITING) leave(execution->run);
  return status;
}

void ts_execution_get_call(const ts_execution *x, ts_run_call *out) {
  const ts_step *step = x->run->asking;
  *out = (ts_run_call){.index = step->call->index,
                       .operand_count = step->operand_count,
                       .result_count = step->result_count,
                       .operand_types = step->call->types,
                       .result_types = step->call->types + step->operand_count};
}

const void *ts_execution_operand(const ts_execution *x, uint32_t i) { return x->run->base[x->run->asking->ids[i]]; }

ts_status ts_run_call_check(const ts_run_call *call, ts_buffer *const *results, size_t count) {
  if (count != call->result_count)
    return ts_error(TS_INVALID_ARGUMENT, "callback %u gave %zu results, expected %u", call->index, count,
                    call->result_count);
  for (size_t i = 0; i < count; i++) {
    const ts_type *t = call->result_types[i];
    if (results[i]->dtype == t->dtype && ts_shape_equal(&results[i]->shape, &t->shape)) continue;
    return ts_error(TS_INVALID_ARGUMENT, "result %zu of callback %u is %s, expected %s", i + 1, call->index,
                    TS_SHAPE_STR(results[i]->dtype, &results[i]->shape), TS_SHAPE_STR(t->dtype, &t->shape));
  }
  return TS_SUCCESS;
}

ts_status ts_execution_answer(ts_execution *x, ts_buffer *const *results, size_t count) {
  ts_run_call call;
  const ts_step *step = x->run->asking;
  if (!step) return ts_error(TS_FAILED_PRECONDITION, "the run waits for no callback");
  ts_execution_get_call(x, &call);
  TS_TRY(ts_run_call_check(&call, results, count));
  for (size_t i = 0; i < count; i++)
    copy_bytes(x->run, x->run->base[ts_step_results(step)[i]], results[i]->data, results[i]->bytes);
  if (x->run->measure) ts_measure_step(x->run->measure, step, -1);
  x->run->asking = NULL;
  return TS_SUCCESS;
}

/* ---- runs that stop together ---- */

bool ts_execution_predicate(const ts_execution *x) { return predicate(x->run, x->run->asking); }

void ts_execution_share(ts_execution *x, const ts_execution *owner, uint32_t i) {
  ts_memory_id id = ts_step_results(x->run->asking)[i];
  uint32_t made;
  ts_buffer *alias;
  (void)ts_memory_kind_of(x->exe, id, &made);
  ts_buffer *own = x->made[made], *from = owner->made[made];
  if (is_argument(x->exe, made, x->args, x->made) ||
      !ts_status_consume_ok(ts_buffer_alias(from, from->dtype, &from->shape, &alias)))
    return;
  alias->device = own->device;
  ts_buffer_release(own);
  x->made[made] = alias;
  x->run->base[id] = alias->data;
}

ts_status ts_execution_go_on(ts_execution *x) {
  const ts_step *step = x->run->asking;
  if (x->run->measure) ts_measure_step(x->run->measure, step, -1);
  x->run->asking = NULL;
  if (step->kind == TS_STEP_COND) return begin_branch(x->run, step);
  if (step->kind == TS_STEP_WHILE) end_condition(x->run);
  return TS_SUCCESS;
}

static bool may_stop(const ts_step *step) { return step->kind == TS_STEP_COLLECTIVE || step->agrees; }

int64_t ts_execution_ahead_ns(const ts_execution *x, int64_t enough) {
  const ts_run *run = x->run;
  int64_t sum = 0;
  if (run->depth == 0) return 0;
  const ts_frame *f = &run->frames[run->depth - 1];
  for (size_t i = f->next; i < f->block->steps.count && sum < enough; i++) {
    const ts_step *step = &f->block->steps.data[i];
    if (may_stop(step)) break;
    sum = step->cost_ns >= enough ? enough : sum + step->cost_ns;
  }
  return sum;
}

ts_status ts_execution_end(ts_execution *execution, ts_buffer **out_results) {
  if (!execution) return TS_SUCCESS;
  ts_status status = finish(execution, out_results);
  ts_free(execution);
  return status;
}
