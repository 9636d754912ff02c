/* One run of an executable. Its context holds a pointer for every piece of memory and a
 * private copy of the launches' argument words; the executable keeps contexts for
 * later runs of the same thread. A while swaps the pointers of a carried value and
 * its next one after each iteration. Where a run is, is a stack of blocks and not
 * of C frames, so that it can be left between any two steps. */
#include "base/cancel.h"
#include "base/fp_env.h"
#include "base/slots.h"
#include "exec/pool.h"
#include "exec/steps.h"
#include "kernel/ref.h"
#include "kernel/scan.h"

#include <string.h>

/* A block that is being run, and for what: a while's condition or body, or neither. */
typedef struct frame {
  const ts_block *block;
  size_t next;         /* of its steps */
  const ts_step *loop; /* NULL when it is no while's */
  void **home;         /* of the while's results: where they were before any swap */
} frame;

typedef struct ts_run {
  const ts_executable *exe;
  void **base; /* of each piece of memory */
  int64_t *words;
  char *block;
  int64_t block_bytes;
  const ts_run_control *control;
  const ts_parallel *parallel;
  ts_pool *pool;
  bool may_pause, resumed; /* resumed: in the middle of a step that is compiled whole */
  frame *frames, few[4];
  size_t depth, room;
} ts_run;

static const _Atomic bool *cancel_flag(const ts_run *run) { return run->control ? &run->control->cancel : NULL; }

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

static ts_status context_new(const ts_executable *exe, ts_run **out) {
  TS_TRY(ts_alloc(context_bytes(exe) + TS_SLOT_BYTES, (void **)out));
  context_init(exe, *out);
  return TS_SUCCESS;
}

static struct ts_run *_Atomic *own_place(ts_executable *exe) { return &exe->idle[ts_slot() % TS_IDLE_CONTEXTS].run; }

/* A small one is made anew on the stack, which costs less than to fetch it. */
typedef union small_context {
  ts_run run;
  char bytes[768];
} small_context;

static ts_status context_get(ts_executable *exe, small_context *small, ts_run **out) {
  if (context_bytes(exe) <= sizeof *small) {
    *out = &small->run;
    context_init(exe, &small->run);
    return TS_SUCCESS;
  }
  *out = atomic_exchange_explicit(own_place(exe), NULL, memory_order_acquire);
  return *out ? TS_SUCCESS : context_new(exe, out);
}

static void context_put(ts_executable *exe, const small_context *small, ts_run *run) {
  if (run != &small->run) ts_free(atomic_exchange_explicit(own_place(exe), run, memory_order_acq_rel));
}

void ts_run_contexts_free(ts_executable *exe) {
  for (int i = 0; i < TS_IDLE_CONTEXTS; i++) ts_free(atomic_load(&exe->idle[i].run));
}

/* ---- steps ---- */

static void *place_base(void *const *base, const ts_places *of, const ts_launch_pointer *p) {
  switch (p->place) {
  case TS_PLACE_OPERAND: return base[of->operands[p->index]];
  case TS_PLACE_RESULT: return base[of->results[p->index]];
  default: return base[of->temps[p->index]];
  }
}

static int64_t dynamic_offset(void *const *base, const ts_places *of, const ts_launch_pointer *p) {
  int64_t offset = 0;
  for (int32_t i = 0; i < p->term_count; i++) {
    const ts_dynamic_term *t = &p->terms[i];
    const void *address = base[of->operands[t->operand]];
    int64_t index;
    if (t->dtype == TS_U64) { /* may exceed int64 */
      uint64_t u;
      memcpy(&u, address, sizeof u);
      index = u > (uint64_t)t->limit ? t->limit : (int64_t)u;
    } else {
      index = ts_scalar_to_s64(t->dtype, ts_scalar_load(t->dtype, address));
    }
    index = index < 0 ? 0 : index > t->limit ? t->limit : index;
    offset += index * t->stride;
  }
  return offset;
}

int64_t *ts_run_fill_words(void *const *base, int64_t *words, const ts_places *of, const ts_step_launch *l) {
  words += l->words;
  for (int32_t i = 0; i < l->launch->pointer_count; i++) {
    const ts_launch_pointer *p = &l->launch->pointers[i];
    int64_t address = (int64_t)(intptr_t)place_base(base, of, p) + p->offset;
    words[p->word] = p->term_count ? address + dynamic_offset(base, of, p) : address;
  }
  return words;
}

static int64_t *fill_words(ts_run *run, const ts_places *of, const ts_step_launch *l) {
  return ts_run_fill_words(run->base, run->words, of, l);
}

/* Somewhere, for what takes none. */
static char *scratch_at(const ts_run *run, ts_memory_id id) {
  return id == TS_NO_ID ? (char *)run->words : run->base[id];
}

static void run_launch(ts_run *run, const ts_step *step, const ts_step_launch *l) {
  /* the whole of an operand into a result that is in its place */
  const ts_memory_id *results = ts_step_results(step), *temps = ts_step_besides(step);
  if (l->launch->copies && run->base[*results] == run->base[*step->ids]) return;
  int64_t *words = fill_words(run, &(ts_places){step->ids, results, temps}, l);
  char *scratch = scratch_at(run, temps[step->work->lowered.temp_count]);
  ts_tasks_run(l, words, scratch, step->work->scratch_bytes, run->parallel, cancel_flag(run));
}

static ts_status run_gemm(ts_run *run, const ts_step *step) {
  const ts_product *product = step->gemm.product;
  const ts_work *e = step->gemm.epilogue;
  ts_epilogue_run context = {.step = step};
  ts_gemm_epilogue epilogue;
  if (e) {
    ts_places of = {step->ids + TS_PRODUCT_OPERANDS, ts_step_results(step), ts_step_besides(step)};
    context.words = fill_words(run, &of, e->launches);
    context.scratch = scratch_at(run, ts_step_besides(step)[1]);
    epilogue = ts_epilogue_start(&context);
  }
  ts_memory_id out = e ? ts_step_besides(step)[0] : ts_step_results(step)[0];
  return ts_gemm_run(product->gemm, &product->shape, run->base[step->ids[0]], run->base[step->ids[1]], run->base[out],
                     e ? &epilogue : NULL, run->parallel, run->pool, cancel_flag(run));
}

static ts_status run_reference(ts_run *run, const ts_step *step) {
  const ts_region *root = ts_graph_region(step->reference, TS_ROOT);
  ts_buffer **args = NULL, *result = NULL;
  TS_TRY(TS_NEW_ARRAY(root->params.count + 1, &args));
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; i < root->params.count && !status; i++) {
    const ts_value *v = ts_graph_value(step->reference, root->params.data[i]);
    status = ts_buffer_wrap(v->dtype, v->shape, run->base[step->ids[i]], NULL, NULL, &args[i]);
  }
  if (!status)
    status = ts_ref_run_until(step->reference, args, root->params.count, run->pool, cancel_flag(run), &result);
  if (!status) ts_copy_bytes(run->base[*ts_step_results(step)], result->data, result->bytes, cancel_flag(run));
  ts_buffer_release(result);
  for (size_t i = 0; i < root->params.count; i++) ts_buffer_release(args[i]);
  ts_free(args);
  return status;
}

static void copy_bytes(const ts_run *run, void *to, const void *from, int64_t bytes) {
  ts_copy_bytes(to, from, bytes, cancel_flag(run));
}

/* Puts every carried value back into its own memory, wherever the swaps have left it. A value's two
 * memories are its own, so one copy does it. */
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
    frame *more = NULL;
    TS_TRY(TS_NEW_ARRAY(run->room * 2, &more));
    memcpy(more, run->frames, run->depth * sizeof *more);
    if (run->frames != run->few) ts_free(run->frames);
    run->frames = more;
    run->room *= 2;
  }
  run->frames[run->depth++] = (frame){block, 0, loop, home};
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

/* What follows the last step of the innermost block. */
static void end_block(ts_run *run) {
  frame *f = &run->frames[run->depth - 1];
  const ts_step *step = f->loop;
  if (!step) {
    pop(run);
  } else if (f->block == &step->loop->body) {
    swap_carried(run, step);
    *f = (frame){&step->loop->condition, 0, step, f->home};
  } else if (*(const uint8_t *)run->base[step->loop->condition_result]) {
    *f = (frame){&step->loop->body, 0, step, f->home};
  } else {
    settle(run, step, f->home);
    pop(run);
  }
}

/* One native function. The results of a loop that was asked to pause are what it goes on from; one that was done in
 * that moment looks at its condition again, and is done. */
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

static ts_status run_step(ts_run *run, const ts_step *step) {
  switch ((ts_step_kind)step->kind) {
  case TS_STEP_LAUNCH:
    for (int32_t i = 0; i < step->work->lowered.launch_count; i++) run_launch(run, step, &step->work->launches[i]);
    return TS_SUCCESS;
  case TS_STEP_GEMM: return run_gemm(run, step);
  case TS_STEP_SCAN:
    return ts_scan_run((ts_opcode)step->code, (ts_dtype)step->dtype, step->scan.shape, step->scan.axis,
                       step->scan.reverse, run->base[*step->ids], run->base[*ts_step_results(step)], run->parallel,
                       cancel_flag(run));
  case TS_STEP_REFERENCE: return run_reference(run, step);
  case TS_STEP_COPY:
    copy_bytes(run, run->base[step->ids[1]], run->base[step->ids[0]], step->copy_bytes);
    return TS_SUCCESS;
  case TS_STEP_WHILE: return begin_while(run, step);
  case TS_STEP_COND: return push(run, &step->branches[*(const uint8_t *)run->base[*step->ids] ? 0 : 1], NULL, NULL);
  case TS_STEP_WHOLE: run_whole(run, step); return TS_SUCCESS;
  }
  return ts_error(TS_INTERNAL, "unknown step");
}

/* Goes on until there is no block left, or as long as it may. */
static ts_status run_blocks(ts_run *run, bool *out_done) {
  *out_done = false;
  while (run->depth > 0) {
    TS_TRY(ts_check_cancelled(cancel_flag(run), "the run"));
    if (must_pause(run)) return TS_SUCCESS;
    frame *f = &run->frames[run->depth - 1];
    if (f->next < f->block->steps.count)
      TS_TRY(run_step(run, &f->block->steps.data[f->next++]));
    else
      end_block(run);
  }
  *out_done = true;
  return TS_SUCCESS;
}

/* ---- arguments and results ---- */

static ts_status check_args(const ts_executable *exe, ts_buffer *const *args, size_t arg_count) {
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

static bool is_donated(const ts_run_options *o, size_t arg) { return arg < 64 && (o->donated >> arg & 1); }

static bool may_take(const ts_executable *exe, int32_t donor, const ts_type *type, ts_buffer *const *args,
                     const ts_run_options *options) {
  if (donor < 0 || !is_donated(options, (size_t)donor) || !ts_buffer_is_unique(args[donor])) return false;
  for (size_t i = 0; i < exe->param_count; i++)
    if (args[i] == args[donor] && i != (size_t)donor) return false; /* given twice */
  const ts_type *given = exe->param_types[donor];
  return given->dtype == type->dtype && ts_shape_equal(&given->shape, &type->shape);
}

/* A buffer for every RESULT, in `made`: new, or a donated argument. */
static ts_status make_results(ts_run *run, ts_buffer *const *args, const ts_run_options *options, ts_buffer **made) {
  const ts_executable *exe = run->exe;
  for (size_t r = 0; r < exe->result_count; r++) {
    uint32_t i;
    if (ts_memory_kind_of(exe, exe->results[r], &i) != TS_MEMORY_RESULT || made[i]) continue;
    const ts_type *t = exe->result_types[r];
    if (may_take(exe, exe->donors[i], t, args, options))
      made[i] = args[exe->donors[i]];
    else
      TS_TRY(ts_buffer_create(run->pool, t->dtype, &t->shape, &made[i]));
    run->base[exe->results[r]] = made[i]->data;
  }
  return TS_SUCCESS;
}

static bool is_argument(const ts_executable *exe, uint32_t i, ts_buffer *const *args, ts_buffer *const *made) {
  return exe->donors[i] >= 0 && made[i] == args[exe->donors[i]];
}

/* The buffer that holds a result, with a reference for the caller: the run's own where it is not needed any more. */
static ts_status hand_out(const ts_executable *exe, size_t r, ts_buffer *const *args, ts_buffer **made,
                          ts_buffer **out) {
  uint32_t i;
  ts_memory_kind kind = ts_memory_kind_of(exe, exe->results[r], &i);
  const ts_type *t = exe->result_types[r];
  ts_buffer *b = kind == TS_MEMORY_RESULT ? made[i] : kind == TS_MEMORY_ARG ? args[i] : exe->constants.data[i];
  if (b->dtype != t->dtype || !ts_shape_equal(&b->shape, &t->shape))
    return ts_buffer_alias(b, t->dtype, &t->shape, out);
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

static ts_status hand_out_all(const ts_executable *exe, ts_buffer *const *args, ts_buffer **made,
                              ts_buffer **out_results) {
  for (size_t r = 0; r < exe->result_count; r++) {
    ts_status status = hand_out(exe, r, args, made, &out_results[r]);
    if (!status) continue;
    while (r-- > 0) take_back(exe, r, made, out_results[r]);
    return status;
  }
  return TS_SUCCESS;
}

/* `offsets` in the block; NULL: as the executable has them. */
static void place_temps(ts_run *run, const int64_t *offsets) {
  const ts_executable *exe = run->exe;
  void **base = run->base + ts_first_temp(exe);
  for (uint32_t i = 0; i < exe->temp_count; i++) {
    const ts_temp *temp = &exe->temps[i];
    char *from = offsets || temp->host == TS_NO_ID ? run->block : run->base[temp->host];
    base[i] = from + (offsets ? offsets[i] : temp->offset);
  }
}

/* Where everything is: arguments, new results, and temporaries in a block of the run's. */
static ts_status place(ts_run *run, ts_buffer *const *args, const ts_run_options *options, ts_buffer **made) {
  const ts_executable *exe = run->exe;
  for (size_t i = 0; i < exe->param_count; i++) run->base[i] = args[i]->data;
  TS_TRY(make_results(run, args, options, made));
  ts_layout layout = options->donated && exe->has_donors ? TS_LAYOUT_BLOCK : TS_LAYOUT_HOSTED;
  if (layout == TS_LAYOUT_BLOCK) TS_TRY(ts_assign_block((ts_executable *)(uintptr_t)exe));
  run->block_bytes = exe->block_bytes[layout];
  void *block = NULL;
  if (run->block_bytes) TS_TRY(ts_pool_alloc(run->pool, run->block_bytes, &block));
  run->block = block;
  place_temps(run, layout == TS_LAYOUT_BLOCK ? exe->block_offsets : NULL);
  return TS_SUCCESS;
}

/* Lets go of the run's own references, and of donated arguments when it succeeded. */
static void let_go(const ts_executable *exe, ts_buffer *const *args, const ts_run_options *options, ts_buffer **made,
                   bool succeeded) {
  for (uint32_t i = 0; i < exe->made_count; i++)
    if (made[i] && !is_argument(exe, i, args, made)) ts_buffer_release(made[i]);
  for (size_t i = 0; i < exe->param_count && succeeded; i++)
    if (is_donated(options, i)) ts_buffer_release(args[i]);
}

/* ---- a run ---- */

struct ts_execution {
  ts_executable *exe; /* only its list of contexts changes */
  ts_run *run;
  ts_buffer *const *args;
  ts_run_options options;
  bool done;
  ts_buffer **made, *few_made[8];
  small_context small;
};

static void reset(ts_run *run, const ts_run_options *options, bool may_pause) {
  run->control = options->control;
  run->parallel = ts_pool_parallel(options->threads);
  run->pool = options->pool ? options->pool : ts_pool_default();
  run->block = NULL;
  run->may_pause = may_pause && options->control;
  run->resumed = false;
  run->frames = run->few;
  run->depth = 0;
  run->room = sizeof run->few / sizeof *run->few;
}

/* Gives up when there is nowhere to put results. */
static ts_status finish(ts_execution *x, ts_buffer **out_results) {
  ts_run *run = x->run;
  while (run->depth > 0) pop(run);
  if (run->frames != run->few) ts_free(run->frames);
  if (run->block) ts_pool_free(run->pool, run->block, run->block_bytes);
  ts_status status = out_results ? hand_out_all(x->exe, x->args, x->made, out_results) : TS_SUCCESS;
  let_go(x->exe, x->args, &x->options, x->made, out_results && !status);
  if (x->made != x->few_made) ts_free(x->made);
  context_put(x->exe, &x->small, run);
  return status;
}

/* When it fails there is nothing to end. */
static ts_status begin(ts_execution *x, const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                       const ts_run_options *options, bool may_pause) {
  static const ts_run_options defaults = {0};
  ts_executable *exe = x->exe = (ts_executable *)(uintptr_t)executable;
  x->args = args;
  x->options = options ? *options : defaults;
  x->done = false;
  x->made = x->few_made;
  memset(x->few_made, 0, sizeof x->few_made);
  TS_TRY(check_args(exe, args, arg_count));
  TS_TRY(context_get(exe, &x->small, &x->run));
  reset(x->run, &x->options, may_pause);
  if (exe->made_count > 8) {
    ts_status status = TS_NEW_ARRAY(exe->made_count, &x->made);
    if (status) {
      context_put(exe, &x->small, x->run);
      return status;
    }
  }
  ts_status status = place(x->run, args, &x->options, x->made);
  if (!status) status = push(x->run, &exe->root, NULL, NULL);
  if (status) (void)finish(x, NULL);
  return status;
}

static ts_status advance(ts_execution *x) {
  ts_fp_env saved;
  ts_fp_enter(&saved);
  ts_status status = run_blocks(x->run, &x->done);
  ts_fp_leave(&saved);
  return status;
}

ts_status ts_executable_run(const ts_executable *executable, ts_buffer *const *args, size_t arg_count,
                            const ts_run_options *options, ts_buffer **out_results) {
  ts_execution x;
  if (executable->is_single && !(options && (options->control || options->donated))) {
    if (!(options && options->checked)) TS_TRY(check_args(executable, args, arg_count));
    ts_pool *pool = options ? options->pool : NULL;
    return ts_single_run(executable, args, pool ? pool : ts_pool_default(), out_results);
  }
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

ts_status ts_execution_advance(ts_execution *execution, bool *out_done) {
  ts_status status = advance(execution);
  *out_done = execution->done;
  return status;
}

ts_status ts_execution_end(ts_execution *execution, ts_buffer **out_results) {
  if (!execution) return TS_SUCCESS;
  ts_status status = finish(execution, out_results);
  ts_free(execution);
  return status;
}
