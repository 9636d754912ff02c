#include "exec/executable.h"

#include "base/deep.h"
#include "base/log.h"
#include "base/system.h"
#include "exec/builder.h"
#include "exec/steps.h"
#include "exec/stripes/stripes.h"
#include "jit/jit.h"
#include "kernel/ref/ref.h"
#include "pass/pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Moving a call to a dirty scheduler costs 2.5 to 60 us, most when all cores are busy. A normal scheduler may be held
 * for about a millisecond, and estimates may be wrong by a small factor. Loops over single elements have exact
 * estimates and run on one thread anyway, so they get more. */
#define SHORT_NS 30000
#define SHORT_LOOP_NS 300000
/* A program whose time varies may stay if it takes no longer for any values. */
#define MOST_VARYING_NS 500000

/* Estimates of the programs that learn from their runs (pace.h). */
#define LEAST_PACED_NS 5000
#define MOST_PACED_NS 20000000
/* A run with more memory may take long just because the system has to find it. */
#define MUCH_MEMORY (1 << 20)

/* How many elements may be folded on a normal scheduler. */
enum { FOLD_AT_HAND = 64 };

/* ---- constant folding ---- */

/* True for ops that the interpreter folds to the same bits as a run. */
static bool folds_exactly(const ts_graph *graph, const ts_op *op) {
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_UNARY_FLOAT: return op->code == TS_OP_SQRT;
  case TS_CLASS_BINARY_FLOAT: return op->code == TS_OP_DIVIDE;
  case TS_CLASS_BINARY:
    return op->code != TS_OP_POW || !ts_dtype_is_float(ts_graph_value(graph, op->first_result)->dtype);
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: return false;
  case TS_CLASS_SOURCE:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST:
#endif
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW: return true;
  }
  return false;
}

static ts_status evaluate(void *context, const ts_graph *graph, ts_buffer **out_results) {
  const ts_compile_options *options = context;
  for (size_t i = 0; i < graph->ops.count; i++)
    if (!folds_exactly(graph, &graph->ops.data[i]))
      return ts_error(TS_UNIMPLEMENTED, "%s is not folded", ts_op_name(graph->ops.data[i].code));
  for (size_t i = 0; options->nonblocking && i < graph->values.count; i++)
    if (ts_shape_elements(graph->values.data[i].shape) > FOLD_AT_HAND)
      return ts_error(TS_CANCELLED, "much has to be folded first");
  return ts_ref_run_until(graph, NULL, 0, ts_pool_default(), options->cancel, out_results);
}

/* ---- creation ---- */

static bool is_short(const ts_executable *exe) {
  int64_t loops = 0, partitions = ts_executable_partitions(exe);
  if (exe->stats.cost_ns > SHORT_LOOP_NS / partitions) return false;
  for (size_t i = 0; i < exe->root.steps.count; i++)
    if (exe->root.steps.data[i].kind == TS_STEP_WHOLE) loops += exe->root.steps.data[i].cost_ns;
  return exe->stats.cost_ns - loops <= SHORT_NS / partitions;
}

static bool has_natives(const ts_executable *exe) {
  for (size_t i = 0; i < exe->root.steps.count; i++)
    if (ts_step_is_native(&exe->root.steps.data[i])) return true;
  return false;
}

/* A step that a run cannot be stopped in, and that may take long. */
static ts_status find_long(void *context, ts_step *step) {
  if (step->kind == TS_STEP_ROUTINE && (step->routine.plan->is_foreign || step->routine.plan->varies))
    *(bool *)context = true;
  return TS_SUCCESS;
}

static bool can_be_stopped(ts_block *block) {
  bool found = false;
  ts_status_free(ts_block_walk(block, find_long, &found));
  return !found;
}

/* Whether all runs do the same work, on this thread and its workers, or can be stopped in loops. */
static bool is_paced(ts_executable *exe) {
  const bool is_known = exe->stats.cost_ns >= LEAST_PACED_NS && exe->stats.cost_ns <= MOST_PACED_NS;
  if (exe->has_natives ? !can_be_stopped(&exe->root) : !is_known) return false;
  if (exe->collective || ts_executable_partitions(exe) != 1) return false;
  for (size_t i = 0; i < exe->root.steps.count; i++) {
    const ts_step *step = &exe->root.steps.data[i];
    if (step->kind == TS_STEP_ROUTINE
            ? step->routine.plan->is_foreign
            : step->kind != TS_STEP_LAUNCH && step->kind != TS_STEP_COPY && !ts_step_is_native(step))
      return false;
  }
  return true;
}

/* The time of a run depends on shapes alone, or is short for all values. */
static bool is_steady(const ts_executable *exe) {
  int64_t most = 0;
  bool varies = false;
  for (size_t i = 0; i < exe->root.steps.count; i++) {
    const ts_step *step = &exe->root.steps.data[i];
    const ts_routine_plan *plan = step->kind == TS_STEP_ROUTINE ? step->routine.plan : NULL;
    if (plan && plan->varies && plan->most_ns == 0) return false;
    varies = varies || (plan && plan->varies);
    most = ts_sum_bytes(most, plan && plan->varies ? plan->most_ns : step->cost_ns);
  }
  return !varies || most <= MOST_VARYING_NS;
}

static ts_status create_pace(ts_executable *exe) {
  const int64_t memory = ts_sum_bytes(exe->stats.temp_bytes, exe->stats.result_bytes);
  ts_pace_guess guess = {.cost_ns = exe->stats.cost_ns,
                         .is_short = exe->is_short,
                         .is_steady = is_steady(exe),
                         .is_alone = exe->is_single,
                         .memory = memory <= MUCH_MEMORY ? 0 : memory};
  return is_paced(exe) ? ts_pace_create(&guess, &exe->pace) : TS_SUCCESS;
}

/* Of the results that share a RESULT, the last one takes over its buffer; the earlier ones add references. */
static ts_status find_moves(ts_executable *exe) {
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, exe->result_count, &exe->moves));
  bool *seen;
  TS_TRY(TS_NEW_ARRAY(exe->made_count, &seen));
  for (size_t r = exe->result_count; r-- > 0;) {
    uint32_t made;
    if (ts_memory_kind_of(exe, exe->results[r], &made) != TS_MEMORY_RESULT) continue;
    exe->moves[r] = !seen[made];
    seen[made] = true;
  }
  ts_free(seen);
  return TS_SUCCESS;
}

/* Expansion is not optional: some ops have no other implementation. */
static ts_status transform(const ts_graph *graph, const ts_compile_options *options, ts_graph **out) {
  ts_pass_options passes = {.evaluate = evaluate,
                            .context = (void *)(uintptr_t)options,
                            .cancel = options->cancel,
                            .no_fusion = options->no_fusion};
  if (!options->no_simplify) return ts_pipeline_run(graph, &passes, out);
  if (options->no_fusion) return ts_pass_expand(graph, &passes, out);
  ts_graph *expanded;
  TS_TRY(ts_pass_expand(graph, &passes, &expanded));
  ts_status status = ts_pass_fuse(expanded, &passes, out);
  ts_graph_destroy(expanded);
  return status;
}

static int64_t kept_bytes(const ts_executable *exe) {
  return (int64_t)(sizeof(*exe) + exe->arena.used + exe->root.steps.capacity * sizeof(ts_step) +
                   exe->words.capacity * sizeof(int64_t));
}

static int64_t count_epilogues(const ts_block *block) {
  int64_t count = 0;
  for (size_t i = 0; i < block->steps.count; i++) count += ts_step_has_epilogue(&block->steps.data[i]);
  return count;
}

typedef struct create_call {
  ts_executable *exe;
  const ts_graph *graph;
  const ts_compile_options *options;
} create_call;

static ts_status create(void *context) {
  const create_call *c = context;
  const ts_graph *graph = c->graph;
  const ts_compile_options *options = c->options;
  ts_executable *exe = c->exe;
  int64_t start = ts_system_ns();
  ts_graph *transformed;
  TS_TRY(transform(graph, options, &transformed));
  exe->stats.pass_ns = ts_system_ns() - start;
  ts_status status = ts_build(exe, transformed, options);
  ts_graph_destroy(transformed);
  if (status) return status;
  TS_TRY(find_moves(exe));
  exe->is_short = is_short(exe);
  exe->is_single = ts_single_fits(exe);
  exe->has_natives = has_natives(exe);
  exe->stats.steps = (int64_t)exe->root.steps.count;
  exe->stats.epilogues = count_epilogues(&exe->root);
  exe->stats.kept_bytes = kept_bytes(exe);
  return create_pace(exe);
}

ts_status ts_executable_create(const ts_graph *graph, const ts_compile_options *options, ts_executable **out) {
  static const ts_compile_options defaults = {0};
  ts_executable *exe;
  *out = NULL;
  TS_TRY(TS_NEW(&exe));
  atomic_init(&exe->refs, 1);
  ts_arena_init(&exe->arena);
  ts_jit_stats before, after;
  ts_jit_get_stats(&before);
  if (!options) options = &defaults;
  exe->levels = ts_graph_region(graph, TS_ROOT)->height;
  ts_status status = ts_deep_call(exe->levels, create, &(create_call){exe, graph, options});
  if (status) {
    ts_executable_release(exe);
    if (!options->nonblocking || ts_status_code(status) != TS_CANCELLED) return status;
    ts_status_free(status);
    return TS_SUCCESS;
  }
  ts_jit_get_stats(&after);
  /* Includes kernels that other threads compiled meanwhile. */
  exe->stats.kernels_compiled = after.compiled - before.compiled;
  if (ts_dump_enabled("plan")) {
    ts_text text = {0};
    if (ts_status_consume_ok(ts_executable_explain(exe, &text)) && text.data) fprintf(stderr, "%s", text.data);
    ts_text_deinit(&text);
  }
  *out = exe;
  return TS_SUCCESS;
}

void ts_executable_retain(ts_executable *exe) { atomic_fetch_add_explicit(&exe->refs, 1, memory_order_relaxed); }

void ts_executable_release(ts_executable *exe) {
  if (!exe || atomic_fetch_sub_explicit(&exe->refs, 1, memory_order_acq_rel) != 1) return;
  ts_block_deinit(&exe->root);
  for (size_t i = 0; i < exe->kernels.count; i++) ts_kernel_release(exe->kernels.data[i]);
  for (size_t i = 0; i < exe->constants.count; i++) ts_buffer_release(exe->constants.data[i]);
  for (size_t i = 0; i < exe->plans.count; i++) {
    ts_routine_plan *plan = exe->plans.data[i];
    if (plan->routine->deinit) plan->routine->deinit(plan);
  }
  TS_VEC_FREE(&exe->kernels);
  TS_VEC_FREE(&exe->plans);
  TS_VEC_FREE(&exe->constants);
  TS_VEC_FREE(&exe->words);
  for (int32_t p = 0; exe->coordinates && p < ts_mesh_partitions(&exe->mesh); p++)
    ts_buffer_release(exe->coordinates[p]);
  ts_free(exe->block_offsets);
  ts_pace_destroy(exe->pace);
  ts_step_places_free(atomic_load(&exe->places));
  ts_arena_deinit(&exe->arena);
  ts_free(exe);
}

/* ---- accessors ---- */

size_t ts_executable_param_count(const ts_executable *exe) { return exe->param_count; }
size_t ts_executable_result_count(const ts_executable *exe) { return exe->result_count; }
const ts_type *const *ts_executable_param_types(const ts_executable *exe) { return exe->param_types; }
const ts_type *const *ts_executable_result_types(const ts_executable *exe) { return exe->result_types; }
void ts_executable_get_stats(const ts_executable *exe, ts_executable_stats *out) { *out = exe->stats; }
int32_t ts_executable_partitions(const ts_executable *exe) {
  return exe->collective || exe->mesh.partitioned ? ts_mesh_partitions(&exe->mesh) : 1;
}

bool ts_executable_has_coordinates(const ts_executable *exe) { return exe->mesh.coordinates; }

bool ts_executable_calls_back(const ts_executable *exe) { return exe->calls_back; }
int64_t ts_executable_cost_ns(const ts_executable *exe) { return exe->stats.cost_ns; }
bool ts_executable_is_short(const ts_executable *exe) { return exe->is_short; }
bool ts_executable_may_stop(const ts_executable *exe) { return exe->has_natives && exe->pace && !exe->is_short; }
ts_pace *ts_executable_pace(const ts_executable *exe) { return exe->pace; }

static void explain_cost(ts_text *out, int64_t ns) {
  if (ns == INT64_MAX)
    ts_text_append(out, "unknown");
  else if (ns < 10000)
    ts_text_format(out, "%" PRId64 " ns", ns);
  else if (ns < 10000000)
    ts_text_format(out, "%" PRId64 " us", ns / 1000);
  else
    ts_text_format(out, "%" PRId64 " ms", ns / 1000000);
}

static const char *scheduler_name(bool stays) { return stays ? "the calling scheduler" : "a dirty CPU scheduler"; }

static void explain_pace(ts_text *out, const ts_pace *pace) {
  static const char *const ways[] = {"on one thread", "on all threads, of which some had to wake",
                                     "on all threads, which were awake"};
  bool any = false;
  for (int way = 0; pace && way < TS_PACE_WAYS; way++) {
    int64_t ns = ts_pace_measured(pace, (ts_pace_way)way);
    if (!ns) continue;
    ts_text_append(out, any ? ", " : "measured: ");
    explain_cost(out, ns);
    ts_text_format(out, " %s", ways[way]);
    any = true;
  }
  if (any) ts_text_format(out, "; now runs on %s\n", scheduler_name(ts_pace_stays(pace, ts_pool_default())));
}

static void explain_memory(const ts_executable *exe, ts_memory_id id, ts_text *out) {
  uint32_t index;
  switch (ts_memory_kind_of(exe, id, &index)) {
  case TS_MEMORY_ARG: ts_text_format(out, " arg%" PRIu32, index); break;
  case TS_MEMORY_RESULT: ts_text_format(out, " result%" PRIu32, index); break;
  case TS_MEMORY_CONST: ts_text_format(out, " const%" PRIu32, index); break;
  case TS_MEMORY_VIEW:
    explain_memory(exe, exe->views[index].of, out);
    ts_text_format(out, "@%" PRId64, exe->views[index].offset);
    break;
  case TS_MEMORY_TEMP: {
    const ts_temp *temp = &exe->temps[index];
    if (temp->host != TS_NO_ID) ts_text_format(out, " result%" PRIu32 "'s", temp->host - ts_first_made(exe));
    ts_text_format(out, " temp@%" PRId64, temp->offset);
    break;
  }
  }
}

static void explain_block(const ts_executable *exe, const ts_block *block, int depth, ts_text *out);

/* `where` it runs if it is part of a routine's step; NULL: by itself. */
static void explain_launch(const ts_executable *exe, const ts_step_launch *l, const char *where, int depth,
                           ts_text *out) {
  const ts_launch *launch = l->own ? &l->own->launch : l->launch;
  ts_text_format(out, "%*skernel ", depth * 2 + 4, "");
  if (l->kernel != TS_NO_ID) {
    ts_hash128 hash = l->own ? l->own->hash : ts_kernel_hash(exe->kernels.data[l->kernel]);
    ts_text_format(out, "%016" PRIx64 " ", hash.hi);
  }
  ts_text_format(out, "%s rank %d, %d nodes, %" PRId64 " points, ", ts_kernel_kind_name(launch->desc.kind),
                 launch->desc.rank, launch->desc.node_count, launch->points);
  if (l->kernel == TS_NO_ID)
    ts_text_append(out, "in the loop's function\n");
  else if (where)
    ts_text_format(out, "%s\n", where);
  else
    ts_text_format(out, "%" PRId64 " tasks\n", ts_step_own_tasks(l));
}

static void explain_work(const ts_executable *exe, const ts_work *work, const char *where, int depth, ts_text *out) {
  for (int32_t i = 0; i < work->lowered.launch_count; i++) explain_launch(exe, &work->launches[i], where, depth, out);
}

static void explain_routine(const ts_executable *exe, const ts_step *step, int depth, ts_text *out) {
  const ts_work *between = ts_stripes_work(step->routine.plan);
  if (between) explain_work(exe, between, "between two products, stripe by stripe", depth, out);
  if (step->routine.epilogue) explain_work(exe, step->routine.epilogue, "on the parts of the product", depth, out);
}

static void explain_step(const ts_executable *exe, const ts_step *step, int depth, ts_text *out) {
  ts_text_format(out, "%*s%-9s %-16s %s  cost ", depth * 2 + 2, "", ts_step_name(step), ts_op_name(step->code),
                 step->type ? TS_SHAPE_STR(step->type->dtype, &step->type->shape) : "");
  explain_cost(out, step->cost_ns);
  ts_text_append(out, "  reads");
  for (uint32_t i = 0; i < step->operand_count; i++) explain_memory(exe, step->ids[i], out);
  ts_text_append(out, "  writes");
  for (uint32_t i = 0; i < step->result_count; i++) explain_memory(exe, ts_step_results(step)[i], out);
  ts_text_append(out, "\n");
  if (step->kind == TS_STEP_LAUNCH) explain_work(exe, step->work, NULL, depth, out);
  if (step->kind == TS_STEP_ROUTINE) explain_routine(exe, step, depth, out);
  if (step->kind == TS_STEP_WHILE) {
    explain_block(exe, &step->loop->condition, depth + 1, out);
    explain_block(exe, &step->loop->body, depth + 1, out);
  }
  for (int k = 0; k < 2 && step->kind == TS_STEP_COND; k++) explain_block(exe, &step->branches[k], depth + 1, out);
}

static void explain_block(const ts_executable *exe, const ts_block *block, int depth, ts_text *out) {
  for (size_t i = 0; i < block->steps.count; i++) explain_step(exe, &block->steps.data[i], depth, out);
}

typedef struct explain_call {
  const ts_executable *exe;
  ts_text *out;
} explain_call;

static ts_status explain_root(void *context) {
  const explain_call *c = context;
  explain_block(c->exe, &c->exe->root, 0, c->out);
  return c->out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

ts_status ts_executable_explain(const ts_executable *exe, ts_text *out) {
  const ts_executable_stats *s = &exe->stats;
  ts_text_format(out, "%zu parameters, %zu results, %" PRId64 " steps, %" PRId64 " kernels (%" PRId64 " compiled)\n",
                 exe->param_count, exe->result_count, s->steps, s->kernels, s->kernels_compiled);
  ts_text_append(out, "estimated cost on one thread: ");
  explain_cost(out, s->cost_ns);
  ts_text_format(out, "; runs on %s\n", scheduler_name(exe->is_short));
  explain_pace(out, exe->pace);
  ts_text_format(out,
                 "memory: %" PRId64 " bytes of temporaries, %" PRId64 " of results; live at most %" PRId64
                 ", planned %" PRId64 "\n",
                 s->temp_bytes, s->result_bytes, s->live_peak_bytes, s->planned_peak_bytes);
  ts_text_format(out, "compiled in %" PRId64 " us: passes %" PRId64 ", lowering %" PRId64 ", kernels %" PRId64 "\n",
                 (s->pass_ns + s->lower_ns + s->kernel_ns) / 1000, s->pass_ns / 1000, s->lower_ns / 1000,
                 s->kernel_ns / 1000);
  return ts_deep_call(exe->levels, explain_root, &(explain_call){exe, out});
}
