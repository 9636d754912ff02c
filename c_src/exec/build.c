/* Makes steps over storages from a graph after the pipeline. Positions number the steps in the order of a run; the
 * steps of a loop's regions lie between the loop's start and end positions. */
#include "base/cancel.h"
#include "base/system.h"
#include "exec/builder.h"
#include "exec/stripes/stripes.h"

#include <string.h>

/* The executable keeps a constant up to this size; a larger one is written by each run. */
#define SMALL_CONSTANT_BYTES 4096

/* ---- types ---- */

static ts_status keep_types(ts_builder *b, const ts_value_id *values, size_t count, const ts_type ***out) {
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, count, out));
  for (size_t i = 0; i < count; i++) TS_TRY(ts_builder_keep_type(b, values[i], &(*out)[i]));
  return TS_SUCCESS;
}

/* ---- steps ---- */

static ts_status launch_step(ts_builder *b, ts_block *block, const ts_op *op, const ts_work *work) {
  uint32_t temps = (uint32_t)work->lowered.temp_count;
  ts_step step;
  TS_TRY(ts_builder_start(b, TS_STEP_LAUNCH, op, temps + 1, &step));
  step.work = work;
  step.cost_ns = work->cost_ns;
  ts_storage_id *besides = ts_step_besides(&step);
  for (uint32_t i = 0; i < temps; i++) {
    TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, work->lowered.temp_bytes[i], &besides[i]));
    ts_builder_use(b, besides[i], step.position);
  }
  TS_TRY(ts_builder_scratch(b, step.position, 0, work->scratch_bytes, &besides[temps]));
  return TS_VEC_PUSH(&block->steps, step);
}

/* Adds the kernels of an op or a fusion: as the epilogue of a routine's step, or as a step of their own.
 * TS_UNIMPLEMENTED when no kernel can compute the op. */
static ts_status kernel_step(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_work *work;
  bool done;
  if (!b->in_native) {
    TS_TRY(ts_builder_try_epilogue(b, block, id, &done));
    if (done) return TS_SUCCESS;
  }
  b->chooser.in_place = b->in_native;
  ts_status status = ts_choose(&b->chooser, id, b->in_native, &work);
  b->chooser.in_place = false;
  if (status) return status;
  return launch_step(b, block, ts_graph_op(b->graph, id), work);
}

/* ---- constants and other plain ops ---- */

static ts_status hold_constant(ts_builder *b, const ts_op *op, ts_buffer *buffer) {
  uint32_t index = (uint32_t)b->exe->constants.count;
  TS_TRY(ts_builder_add_storage(b, TS_MEMORY_CONST, index, buffer->bytes, &b->map[op->first_result]));
  TS_TRY(TS_VEC_PUSH(&b->exe->constants, buffer));
  ts_buffer_retain(buffer);
  return TS_SUCCESS;
}

static bool is_result_of_program(const ts_builder *b, ts_value_id value) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  for (size_t i = 0; i < root->results.count; i++)
    if (root->results.data[i] == value) return true;
  return false;
}

/* True for constants that the executable keeps. In a run, a kernel would have to be compiled that writes the same bytes
 * each time. Large constants are not kept, since they would hold memory between runs, nor are results of the program,
 * since the caller owns those. */
static bool is_small_constant(const ts_builder *b, const ts_op *op) {
  if (op->code != TS_OP_CONSTANT || b->options->no_fusion || is_result_of_program(b, op->first_result)) return false;
  return ts_builder_bytes(b, op->first_result) <= SMALL_CONSTANT_BYTES;
}

static ts_status small_constant(ts_builder *b, const ts_op *op) {
  const ts_value *v = ts_graph_value(b->graph, op->first_result);
  ts_buffer *buffer;
  TS_TRY(ts_buffer_create(ts_pool_default(), v->dtype, v->shape, &buffer));
  for (int64_t i = 0; i < ts_shape_elements(v->shape); i++)
    ts_scalar_store(v->dtype, op->attrs->constant.value, (char *)buffer->data + (size_t)i * ts_dtype_size(v->dtype));
  ts_status status = hold_constant(b, op, buffer);
  ts_buffer_release(buffer);
  return status;
}

/* True when routines may know the types. */
static bool have_kernels(const ts_graph *g, const ts_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!ts_dtype_has_kernels(ts_graph_value(g, op->operands[i])->dtype)) return false;
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!ts_dtype_has_kernels(ts_graph_value(g, op->first_result + i)->dtype)) return false;
  return true;
}

static ts_dtype type_of_first(const ts_builder *b, const ts_op *op) {
  return ts_graph_value(b->graph, op->operands[0])->dtype;
}

static bool has_result_of(const ts_builder *b, const ts_op *op, int64_t bytes) {
  for (uint32_t i = 0; i < op->result_count; i++)
    if (ts_builder_bytes(b, op->first_result + i) == bytes) return true;
  return false;
}

/* Marks the operands of ops that have a result with as many bytes. If such an operand is a donated argument, or an
 * alias of one, the result may take its memory. */
static ts_status find_taken(ts_builder *b) {
  TS_TRY(TS_NEW_ARRAY(b->graph->values.count, &b->taken));
  for (size_t r = 0; r < b->graph->regions.count; r++) {
    const ts_region *region = ts_graph_region(b->graph, (ts_region_id)r);
    for (size_t i = region->ops.count; i > 0; i--) {
      const ts_op *op = ts_graph_op(b->graph, region->ops.data[i - 1]);
      const bool is_alias = ts_lower_is_alias(b->graph, region->ops.data[i - 1]);
      for (uint32_t k = 0; k < op->operand_count; k++) {
        const bool takes =
            is_alias ? b->taken[op->first_result] : has_result_of(b, op, ts_builder_bytes(b, op->operands[k]));
        b->taken[op->operands[k]] = b->taken[op->operands[k]] || takes;
      }
    }
  }
  return TS_SUCCESS;
}

/* True for an argument whose memory a result may take. */
static ts_status is_taken(ts_builder *b, const ts_storage *s, bool *out) {
  *out = false;
  if (s->kind != TS_MEMORY_ARG) return TS_SUCCESS;
  if (!b->taken) TS_TRY(find_taken(b));
  *out = b->taken[ts_graph_region(b->graph, TS_ROOT)->params.data[s->index]];
  return TS_SUCCESS;
}

/* Marks the values that some reader needs without gaps: all but slices that only products read. */
static ts_status find_dense(ts_builder *b) {
  const ts_graph *g = b->graph;
  TS_TRY(TS_NEW_ARRAY(g->values.count, &b->dense));
  for (size_t r = 0; r < g->regions.count; r++) {
    const ts_region *region = ts_graph_region(g, (ts_region_id)r);
    for (size_t i = 0; i < region->results.count; i++) b->dense[region->results.data[i]] = true;
    for (size_t i = 0; i < region->ops.count; i++) {
      const ts_op *op = ts_graph_op(g, region->ops.data[i]);
      for (uint32_t k = 0; k < op->operand_count; k++)
        if (!ts_gemm_reads_slice(g, op, k)) b->dense[op->operands[k]] = true;
    }
  }
  return TS_SUCCESS;
}

/* Where a slice that a view may be begins, in bytes: a part without gaps, or one that is read with its strides. */
static ts_status find_part(ts_builder *b, ts_op_id id, int64_t *offset, bool *strided, bool *found) {
  *strided = false;
  *found = ts_lower_is_part(b->graph, id, offset);
  if (*found || ts_graph_op(b->graph, id)->code != TS_OP_SLICE) return TS_SUCCESS;
  if (!b->dense) TS_TRY(find_dense(b));
  *found = *strided = !b->dense[ts_graph_op(b->graph, id)->first_result];
  return TS_SUCCESS;
}

/* Makes a part of an argument or of a constant a view of it. Other memory may be overwritten while a view is read. So
 * may an argument whose memory a result can take: a view that is read later would keep the result from that, and the
 * whole argument would be copied in place of the part. */
static ts_status view_part(ts_builder *b, ts_op_id id, bool *out_done) {
  const ts_op *op = ts_graph_op(b->graph, id);
  int64_t offset;
  bool taken, strided, found;
  *out_done = false;
  if (b->in_native || b->options->no_fusion) return TS_SUCCESS;
  TS_TRY(find_part(b, id, &offset, &strided, &found));
  if (!found) return TS_SUCCESS;
  ts_storage_id of = b->map[op->operands[0]], *out = &b->map[op->first_result];
  const ts_storage *s = ts_builder_storage(b, of);
  if (!ts_storage_is_given(s) || is_result_of_program(b, op->first_result)) return TS_SUCCESS;
  TS_TRY(is_taken(b, s, &taken));
  if (taken) return TS_SUCCESS;
  if (s->kind == TS_MEMORY_VIEW) {
    offset += s->offset;
    of = s->viewed;
  }
  *out_done = true;
  TS_TRY(ts_builder_add_storage(b, TS_MEMORY_VIEW, b->exe->view_count++, ts_builder_bytes(b, op->first_result), out));
  ts_builder_storage(b, *out)->viewed = of;
  ts_builder_storage(b, *out)->offset = offset;
  ts_builder_storage(b, *out)->strided = strided;
  return TS_SUCCESS;
}

static ts_status plain_op(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  if (op->code == TS_OP_LITERAL) return hold_constant(b, op, op->attrs->literal.buffer);
  if (is_small_constant(b, op)) return small_constant(b, op);
  if (ts_lower_is_alias(b->graph, id)) {
    b->map[op->first_result] = b->map[op->operands[0]];
    return TS_SUCCESS;
  }
  bool done = false;
  TS_TRY(view_part(b, id, &done));
  if (done) return TS_SUCCESS;
  const ts_routine *routine = op->operand_count == 0 ? NULL : ts_routine_of(op->code, type_of_first(b, op));
  if (routine && have_kernels(b->graph, op)) TS_TRY(ts_builder_routine(b, block, id, routine, &done));
  if (done) return TS_SUCCESS;
  ts_status status = kernel_step(b, block, id);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  return ts_builder_routine(b, block, id, &ts_reference_routine, &done);
}

/* Replaces the op that holds a region by the region's ops. */
static ts_status inline_region(ts_builder *b, ts_block *block, const ts_op *op, ts_region_id id) {
  const ts_region *region = ts_graph_region(b->graph, id);
  for (size_t i = 0; i < region->params.count; i++) b->map[region->params.data[i]] = b->map[op->operands[i]];
  TS_TRY(ts_builder_region(b, id, block));
  for (size_t i = 0; i < region->results.count; i++) b->map[op->first_result + i] = b->map[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status build_op(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE) return ts_builder_collective(b, block, op);
  if (ts_op_get_class(op->code) != TS_CLASS_CONTROL) return plain_op(b, block, id);
  switch ((ts_ops_CONTROL)op->code) {
  case TS_OP_WHILE:
  case TS_OP_COND:
    if (!b->options->no_fusion && !b->in_native && ts_whole_supported(b->graph, id))
      return ts_builder_whole(b, block, id);
    return ts_builder_control(b, block, id);
  case TS_OP_CALLBACK: return ts_builder_callback(b, block, op);
  case TS_OP_CUSTOM_CALL: {
    bool done;
    return ts_builder_routine(b, block, id, &ts_custom_routine, &done);
  }
  case TS_OP_CALL: return inline_region(b, block, op, op->attrs->regions.regions[0]);
  case TS_OP_FUSION: {
    ts_status status = kernel_step(b, block, id);
    if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
    ts_status_free(status);
    b->in_fusion = true;
    status = inline_region(b, block, op, op->attrs->fusion.region);
    b->in_fusion = false;
    return status;
  }
  }
  return ts_error(TS_UNIMPLEMENTED, "%s has no step", ts_op_name(op->code));
}

/* The steps of inner regions have their places by then. */
static ts_status build_placed(ts_builder *b, ts_block *block, ts_op_id id) {
  int32_t first = b->position;
  TS_TRY(build_op(b, block, id));
  return b->in_fusion ? TS_SUCCESS : ts_builder_place(b, first, ts_graph_op(b->graph, id)->place);
}

/* The ops of a chain, where its last one is: those that are no stripes one by one. */
static ts_status build_chain(ts_builder *b, ts_block *block, const ts_chain *chain) {
  const int32_t first = b->position;
  ts_op_id last;
  TS_TRY(ts_builder_stripes(b, block, chain, &last));
  if (last != TS_NO_ID) TS_TRY(ts_builder_place(b, first, ts_graph_op(b->graph, last)->place));
  for (uint32_t i = 0; i < chain->count; i++)
    if (last == TS_NO_ID || chain->ops[i] > last) TS_TRY(build_placed(b, block, chain->ops[i]));
  return TS_SUCCESS;
}

static ts_status build_chained(ts_builder *b, ts_block *block, const ts_chain *chain, ts_op_id id) {
  if (!chain) return build_placed(b, block, id);
  return id == ts_chain_last(chain) ? build_chain(b, block, chain) : TS_SUCCESS;
}

static ts_status build_ops(ts_builder *b, ts_region_id id, const ts_op_id *order, const ts_chains *chains,
                           ts_block *block) {
  const size_t count = ts_graph_region(b->graph, id)->ops.count;
  for (size_t i = 0; i < count; i++) {
    const ts_op_id op = order ? order[i] : ts_graph_region(b->graph, id)->ops.data[i];
    TS_TRY(ts_check_cancelled(b->options->cancel, "the compile"));
    TS_TRY(build_chained(b, block, ts_chains_of(chains, op), op));
  }
  return TS_SUCCESS;
}

ts_status ts_builder_region(ts_builder *b, ts_region_id id, ts_block *block) {
  const bool plain = b->in_native || b->options->no_fusion;
  ts_op_id *order = NULL;
  ts_chains chains = {.numbers = NULL};
  if (!plain) TS_TRY(ts_builder_order(b->graph, id, &order));
  ts_status status = plain ? TS_SUCCESS : ts_chains_find(b->graph, id, &chains);
  if (!status) status = build_ops(b, id, order, &chains, block);
  ts_chains_deinit(&chains);
  ts_free(order);
  return status;
}

/* ---- whole programs ---- */

static ts_status bind_params(ts_builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  b->exe->param_count = root->params.count;
  TS_TRY(keep_types(b, root->params.data, root->params.count, &b->exe->param_types));
  for (size_t i = 0; i < root->params.count; i++) {
    ts_value_id v = root->params.data[i];
    TS_TRY(ts_builder_add_storage(b, TS_MEMORY_ARG, (uint32_t)i, ts_builder_bytes(b, v), &b->map[v]));
    ts_builder_use(b, b->map[v], 0);
  }
  return TS_SUCCESS;
}

/* Results that a step computes get buffers of their own, and views are copied into such; arguments and constants are
 * returned as they are. */
static ts_status bind_results(ts_builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  ts_executable *exe = b->exe;
  exe->result_count = root->results.count;
  TS_TRY(keep_types(b, root->results.data, root->results.count, &exe->result_types));
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, root->results.count, &exe->results));
  for (size_t i = 0; i < root->results.count; i++) {
    const ts_value_id value = root->results.data[i];
    ts_storage_id id = ts_builder_find(b, b->map[value]);
    ts_storage *s = ts_builder_storage(b, id);
    if (s->kind == TS_MEMORY_VIEW) {
      const ts_storage_id view = id;
      TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, s->bytes, &id));
      TS_TRY(ts_builder_copy(b, &exe->root, view, id, ts_graph_op(b->graph, ts_graph_value(b->graph, value)->op)));
      s = ts_builder_storage(b, id);
    }
    ts_builder_use(b, id, b->position);
    if (s->kind == TS_MEMORY_TEMP) {
      s->kind = TS_MEMORY_RESULT;
      s->index = exe->made_count++;
    }
    exe->results[i] = id;
  }
  return TS_SUCCESS;
}

static ts_status set_whole(void *context, ts_step *step) {
  ts_executable *exe = context;
  if (ts_step_is_native(step)) step->native->entry = ts_kernel_entry(exe->kernels.data[step->native->kernel]);
  if (step->kind == TS_STEP_WHOLE) step->whole.entry = ts_kernel_entry(exe->kernels.data[step->whole.kernel]);
  return TS_SUCCESS;
}

/* Gives the work its compiled kernels, and reserves words for its launches' arguments in every run. */
static ts_status finish_work(ts_executable *exe, ts_work *work) {
  for (int32_t i = 0; i < work->lowered.launch_count; i++) {
    ts_step_launch *l = &work->launches[i];
    if (l->kernel == TS_NO_ID) continue;
    size_t count = (size_t)ts_kernel_arg_count(&l->launch->desc), at = exe->words.count;
    l->entry = ts_kernel_entry(exe->kernels.data[l->kernel]);
    l->words = (int32_t)at;
    TS_TRY(TS_VEC_RESERVE(&exe->words, at + count));
    memcpy(exe->words.data + at, l->launch->args, count * sizeof(*l->launch->args));
    exe->words.count += count;
  }
  return TS_SUCCESS;
}

static ts_status take_kernels(ts_builder *b) {
  ts_chooser *c = &b->chooser;
  size_t count = c->batch.requests.count;
  TS_TRY(TS_VEC_RESERVE(&b->exe->kernels, count + 1));
  TS_TRY(ts_jit_batch_take(&c->batch, b->exe->kernels.data));
  b->exe->kernels.count = count;
  b->exe->stats.kernels = ts_chooser_own_kernels(c);
  ts_jit_prefetch(c->later.data, c->later.count);
  ts_builder_adopt(b);
  for (size_t i = 0; i < c->works.count; i++) TS_TRY(finish_work(b->exe, c->works.data[i]));
  return b->wholes + b->natives > 0 ? ts_block_walk(&b->exe->root, set_whole, b->exe) : TS_SUCCESS;
}

/* Reserves room for about as many steps and storages as the program's own ops take. */
static ts_status make_room(ts_builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  TS_TRY(TS_NEW_ARRAY(b->graph->values.count, &b->map));
  TS_TRY(TS_VEC_RESERVE(&b->storages, 2 * root->ops.count + root->params.count));
  return TS_VEC_RESERVE(&b->exe->root.steps, root->ops.count);
}

static ts_status build(ts_builder *b) {
  ts_executable *exe = b->exe;
  TS_TRY(make_room(b));
  TS_TRY(ts_builder_mesh(b));
  TS_TRY(bind_params(b));
  int64_t start = ts_system_ns();
  TS_TRY(ts_builder_region(b, TS_ROOT, &exe->root));
  TS_TRY(bind_results(b));
  TS_TRY(ts_assign(b));
  if (b->collectives > 0) TS_TRY(ts_builder_share(b));
  if (b->natives > 0) TS_TRY(ts_builder_request_natives(b));
  int64_t lowered = ts_system_ns();
  TS_TRY(take_kernels(b));
  TS_TRY(ts_builder_keep_places(b));
  exe->stats.lower_ns = lowered - start;
  exe->stats.kernel_ns = ts_system_ns() - lowered;
  for (size_t i = 0; i < exe->root.steps.count; i++)
    exe->stats.cost_ns = ts_cost_add(exe->stats.cost_ns, exe->root.steps.data[i].cost_ns);
  return TS_SUCCESS;
}

ts_status ts_build(ts_executable *exe, const ts_graph *graph, const ts_compile_options *options) {
  ts_builder b = {.exe = exe, .graph = graph, .position = 1, .options = options};
  ts_arena_init(&b.flows);
  ts_chooser_init(&b.chooser, graph, &exe->arena, options);
  ts_status status = build(&b);
  ts_chooser_deinit(&b.chooser);
  ts_arena_deinit(&b.flows);
  TS_VEC_FREE(&b.storages);
  TS_VEC_FREE(&b.planned);
  TS_VEC_FREE(&b.readers);
  TS_VEC_FREE(&b.parts);
  TS_VEC_FREE(&b.places);
  ts_free(b.map);
  ts_free(b.taken);
  ts_free(b.uses);
  ts_free(b.dense);
  TS_VEC_SHRINK(&exe->root.steps);
  return status;
}
