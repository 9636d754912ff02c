/* From a graph after the pipeline to steps over storages. Positions number the
 * steps in the order in which a run may meet them; a loop's regions lie between
 * its start and its end position. */
#include "base/cancel.h"
#include "base/system.h"
#include "exec/builder.h"
#include "exec/pool.h"
#include "kernel/ref.h"
#include "kernel/scan.h"

#include <string.h>

/* Up to here a constant is kept by the executable, and not written by each run. */
#define SMALL_CONSTANT_BYTES 4096

/* ---- storages ---- */

ts_status ts_builder_add_storage(ts_builder *b, ts_memory_kind kind, uint32_t index, int64_t bytes,
                                 ts_storage_id *out) {
  *out = (ts_storage_id)b->storages.count;
  if (b->storages.count == b->storages.capacity) TS_TRY(TS_VEC_RESERVE(&b->storages, b->storages.count + 1));
  b->storages.data[b->storages.count++] = (ts_storage){.kind = (uint8_t)kind,
                                                       .index = index,
                                                       .bytes = bytes,
                                                       .first = INT32_MAX,
                                                       .last = -1,
                                                       .merged = *out,
                                                       .loop = -1,
                                                       .last_in_loop = -1,
                                                       .donor = -1};
  return TS_SUCCESS;
}

int64_t ts_builder_bytes(const ts_builder *b, ts_value_id v) {
  const ts_value *value = ts_graph_value(b->graph, v);
  return ts_shape_bytes(value->shape, value->dtype);
}

/* ---- types ---- */

ts_status ts_builder_keep_type(ts_builder *b, ts_value_id value, const ts_type **out) {
  const ts_value *v = ts_graph_value(b->graph, value);
  size_t at = ((uintptr_t)v->shape / sizeof(*v->shape) + v->dtype) % TS_TYPES_SEEN;
  ts_type *type;
  *out = b->types[at].type;
  if (b->types[at].shape == v->shape && (*out)->dtype == v->dtype) return TS_SUCCESS;
  TS_TRY(ts_arena_take(&b->exe->arena, sizeof(*type), (void **)&type));
  type->dtype = v->dtype;
  type->shape = *v->shape;
  b->types[at].shape = v->shape;
  *out = b->types[at].type = type;
  return TS_SUCCESS;
}

static ts_status keep_types(ts_builder *b, const ts_value_id *values, size_t count, const ts_type ***out) {
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, count, out));
  for (size_t i = 0; i < count; i++) TS_TRY(ts_builder_keep_type(b, values[i], &(*out)[i]));
  return TS_SUCCESS;
}

ts_status ts_builder_name(ts_builder *b, ts_step *step, const ts_op *op) {
  step->code = (uint16_t)op->code;
  step->type = NULL;
  return op->result_count > 0 ? ts_builder_keep_type(b, op->first_result, &step->type) : TS_SUCCESS;
}

/* ---- steps ---- */

void ts_builder_read(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    out[i] = b->map[op->operands[i]];
    ts_builder_use(b, out[i], position);
  }
}

ts_status ts_builder_write(ts_builder *b, const ts_op *op, int32_t position, ts_storage_id *out) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_value_id value = op->first_result + i;
    TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, ts_builder_bytes(b, value), &out[i]));
    b->map[value] = out[i];
    ts_builder_use(b, out[i], position);
  }
  return TS_SUCCESS;
}

ts_status ts_builder_start(ts_builder *b, ts_step_kind kind, const ts_op *op, uint32_t more, ts_step *out) {
  size_t count = (size_t)op->operand_count + op->result_count + more;
  *out = (ts_step){.kind = (uint8_t)kind,
                   .position = b->position++,
                   .operand_count = op->operand_count,
                   .result_count = op->result_count};
  TS_TRY(ts_builder_name(b, out, op));
  TS_TRY(ts_arena_take(&b->exe->arena, count * sizeof(*out->ids), (void **)&out->ids));
  ts_builder_read(b, op, out->position, out->ids);
  return ts_builder_write(b, op, out->position, ts_step_results(out));
}

ts_status ts_builder_copy(ts_builder *b, ts_block *block, ts_storage_id from, ts_storage_id to, const ts_op *op) {
  ts_step step = {.kind = TS_STEP_COPY, .position = b->position++, .operand_count = 1, .result_count = 1};
  TS_TRY(ts_builder_name(b, &step, op));
  TS_TRY(ts_arena_take(&b->exe->arena, 2 * sizeof(*step.ids), (void **)&step.ids));
  step.ids[0] = from;
  step.ids[1] = to;
  step.copy_bytes = ts_builder_storage(b, to)->bytes;
  step.cost_ns = step.copy_bytes / 10 + 20;
  ts_builder_use(b, from, step.position);
  ts_builder_use(b, to, step.position);
  return TS_VEC_PUSH(&block->steps, step);
}

ts_status ts_builder_scratch(ts_builder *b, int32_t position, const ts_work *work, ts_storage_id *out) {
  *out = TS_NO_ID;
  if (work->scratch_bytes == 0) return TS_SUCCESS;
  TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, work->scratch_bytes * ts_cpu_count(), out));
  ts_builder_use(b, *out, position);
  return TS_SUCCESS;
}

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
  TS_TRY(ts_builder_scratch(b, step.position, work, &besides[temps]));
  return TS_VEC_PUSH(&block->steps, step);
}

/* Kernels for an op, or for a fusion: in the step of a product, or in a step of their own. TS_UNIMPLEMENTED when there
 * are none that can do it. */
static ts_status kernel_step(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_work *work;
  bool done;
  TS_TRY(ts_builder_try_epilogue(b, block, id, &done));
  if (done) return TS_SUCCESS;
  TS_TRY(ts_choose(&b->chooser, id, false, &work));
  return launch_step(b, block, ts_graph_op(b->graph, id), work);
}

/* ---- the rest of the plain ops ---- */

static ts_status scan_step(ts_builder *b, ts_block *block, const ts_op *op) {
  ts_step step;
  TS_TRY(ts_builder_start(b, TS_STEP_SCAN, op, 0, &step));
  const ts_type *type;
  TS_TRY(ts_builder_keep_type(b, op->operands[0], &type));
  step.dtype = (uint8_t)type->dtype;
  step.scan.shape = &type->shape;
  step.scan.axis = op->attrs->scan.axis;
  step.scan.reverse = op->attrs->scan.reverse;
  step.cost_ns = 100 + 2 * ts_shape_elements(&type->shape);
  return TS_VEC_PUSH(&block->steps, step);
}

/* A program of this op alone, for the interpreter. `map` has room for every value of `g`. */
static ts_status one_op_graph(const ts_graph *g, ts_op_id id, ts_value_id *map, ts_graph *out) {
  const ts_op *op = ts_graph_op(g, id);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *v = ts_graph_value(g, op->operands[i]);
    TS_TRY(ts_graph_add_param(out, TS_ROOT, v->dtype, v->shape, &map[op->operands[i]]));
  }
  TS_TRY(ts_graph_copy_op(g, id, out, TS_ROOT, map));
  return ts_graph_set_results(out, TS_ROOT, &map[op->first_result], 1);
}

static int64_t reference_cost(const ts_graph *g, const ts_op *op) {
  int64_t elements = ts_shape_elements(ts_graph_value(g, op->first_result)->shape);
  for (uint32_t i = 0; i < op->operand_count; i++)
    elements += ts_shape_elements(ts_graph_value(g, op->operands[i])->shape);
  return 1000 + 100 * elements;
}

static ts_status reference_step(ts_builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  TS_TRY(ts_builder_start(b, TS_STEP_REFERENCE, ts_graph_op(b->graph, id), 0, &step));
  TS_TRY(ts_graph_create(&step.reference));
  step.cost_ns = reference_cost(b->graph, ts_graph_op(b->graph, id));
  ts_value_id *map = NULL;
  ts_status status = TS_NEW_ARRAY(b->graph->values.count, &map);
  if (!status) status = one_op_graph(b->graph, id, map, step.reference);
  ts_free(map);
  if (!status) status = TS_VEC_PUSH(&block->steps, step);
  if (status) ts_step_deinit(&step);
  return status;
}

static ts_status hold_constant(ts_builder *b, const ts_op *op, ts_buffer *buffer) {
  uint32_t index = (uint32_t)b->exe->constants.count;
  TS_TRY(ts_builder_add_storage(b, TS_MEMORY_CONST, index, buffer->bytes, &b->map[op->first_result]));
  TS_TRY(TS_VEC_PUSH(&b->exe->constants, buffer));
  ts_buffer_retain(buffer);
  return TS_SUCCESS;
}

/* What a run would write anew each time, by a kernel that had to be compiled. A result of the program is the caller's
 * own, and large ones would take memory while nobody runs it. */
static bool is_small_constant(const ts_builder *b, const ts_op *op) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  if (op->code != TS_OP_CONSTANT || b->options->no_fusion) return false;
  for (size_t i = 0; i < root->results.count; i++)
    if (root->results.data[i] == op->first_result) return false;
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

static ts_status plain_op(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  if (op->code == TS_OP_LITERAL) return hold_constant(b, op, op->attrs->literal.buffer);
  if (is_small_constant(b, op)) return small_constant(b, op);
  if (ts_lower_is_alias(b->graph, id)) {
    b->map[op->first_result] = b->map[op->operands[0]];
    return TS_SUCCESS;
  }
  if (op->code == TS_OP_DOT) {
    const ts_product_kind *kind;
    TS_TRY(ts_builder_product(b, op, &kind));
    if (kind->product) return ts_builder_gemm(b, block, op, kind->product);
  }
  if (ts_op_get_class(op->code) == TS_CLASS_SCAN) return scan_step(b, block, op);
  ts_status status = kernel_step(b, block, id);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  return reference_step(b, block, id);
}

/* Ops of a region in place of the op that holds it. */
static ts_status inline_region(ts_builder *b, ts_block *block, const ts_op *op, ts_region_id id) {
  const ts_region *region = ts_graph_region(b->graph, id);
  for (size_t i = 0; i < region->params.count; i++) b->map[region->params.data[i]] = b->map[op->operands[i]];
  TS_TRY(ts_builder_region(b, id, block));
  for (size_t i = 0; i < region->results.count; i++) b->map[op->first_result + i] = b->map[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status build_op(ts_builder *b, ts_block *block, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  switch (op->code) {
  case TS_OP_WHILE:
  case TS_OP_COND:
    if (!b->options->no_fusion && ts_whole_supported(b->graph, id)) return ts_builder_whole(b, block, id);
    return ts_builder_control(b, block, id);
  case TS_OP_CALL: return inline_region(b, block, op, op->attrs->regions.regions[0]);
  case TS_OP_FUSION: {
    ts_status status = kernel_step(b, block, id);
    if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
    ts_status_free(status);
    return inline_region(b, block, op, op->attrs->fusion.region);
  }
  default: return plain_op(b, block, id);
  }
}

ts_status ts_builder_region(ts_builder *b, ts_region_id id, ts_block *block) {
  for (size_t i = 0; i < ts_graph_region(b->graph, id)->ops.count; i++) {
    TS_TRY(ts_check_cancelled(b->options->cancel, "the compile"));
    TS_TRY(build_op(b, block, ts_graph_region(b->graph, id)->ops.data[i]));
  }
  return TS_SUCCESS;
}

/* ---- the whole ---- */

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

/* Results that the program makes get buffers of their own; arguments and constants are handed back as they are. */
static ts_status bind_results(ts_builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  ts_executable *exe = b->exe;
  exe->result_count = root->results.count;
  TS_TRY(keep_types(b, root->results.data, root->results.count, &exe->result_types));
  TS_TRY(TS_ARENA_ARRAY(&exe->arena, root->results.count, &exe->results));
  for (size_t i = 0; i < root->results.count; i++) {
    ts_storage_id id = ts_builder_find(b, b->map[root->results.data[i]]);
    ts_storage *s = ts_builder_storage(b, id);
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
  if (step->kind == TS_STEP_WHOLE) step->whole.entry = ts_kernel_entry(exe->kernels.data[step->whole.kernel]);
  return TS_SUCCESS;
}

/* Gives the work its kernels, and its launches' arguments a place in every run. */
static ts_status finish_work(ts_executable *exe, ts_work *work) {
  for (int32_t i = 0; i < work->lowered.launch_count; i++) {
    ts_step_launch *l = &work->launches[i];
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
  ts_jit_prefetch(c->later.data, c->later.count);
  for (size_t i = 0; i < b->kinds.count; i++) {
    const ts_product_kind *kind = &b->kinds.data[i];
    if (kind->product) ts_gemm_adopt(kind->product->gemm, b->exe->kernels.data[kind->kernel]);
  }
  for (size_t i = 0; i < c->works.count; i++) TS_TRY(finish_work(b->exe, c->works.data[i]));
  return b->wholes > 0 ? ts_block_walk(&b->exe->root, set_whole, b->exe) : TS_SUCCESS;
}

/* For as much as the program's own ops take, about. */
static ts_status make_room(ts_builder *b) {
  const ts_region *root = ts_graph_region(b->graph, TS_ROOT);
  TS_TRY(TS_NEW_ARRAY(b->graph->values.count, &b->map));
  TS_TRY(TS_VEC_RESERVE(&b->storages, 2 * root->ops.count + root->params.count));
  return TS_VEC_RESERVE(&b->exe->root.steps, root->ops.count);
}

static bool kernels_are_there(void *batch) { return !ts_jit_batch_is_pending(batch); }

/* What a run will allocate: while LLVM works, pages can be had for nothing. */
static void prepare_memory(ts_builder *b) {
  int64_t sizes[TS_POOL_PREPARED];
  size_t count = 0;
  const ts_enough enough = {kernels_are_there, &b->chooser.batch};
  if (enough.is(enough.context)) return;
  ts_jit_make_way();
  sizes[count++] = b->exe->block_bytes[TS_LAYOUT_HOSTED];
  for (size_t i = 0; i < b->storages.count && count < TS_POOL_PREPARED; i++) {
    const ts_storage *s = &b->storages.data[i];
    if (s->kind == TS_MEMORY_RESULT && s->merged == i) sizes[count++] = s->bytes;
  }
  ts_pool_prepare(ts_pool_default(), sizes, count, &enough);
}

static ts_status build(ts_builder *b) {
  ts_executable *exe = b->exe;
  TS_TRY(make_room(b));
  TS_TRY(bind_params(b));
  int64_t start = ts_system_ns();
  TS_TRY(ts_builder_region(b, TS_ROOT, &exe->root));
  TS_TRY(bind_results(b));
  TS_TRY(ts_assign(b));
  int64_t lowered = ts_system_ns();
  prepare_memory(b);
  TS_TRY(take_kernels(b));
  exe->stats.lower_ns = lowered - start;
  exe->stats.kernel_ns = ts_system_ns() - lowered;
  for (size_t i = 0; i < exe->root.steps.count; i++)
    exe->stats.cost_ns = ts_cost_add(exe->stats.cost_ns, exe->root.steps.data[i].cost_ns);
  return TS_SUCCESS;
}

ts_status ts_build(ts_executable *exe, const ts_graph *graph, const ts_compile_options *options) {
  ts_builder b = {.exe = exe, .graph = graph, .position = 1, .options = options};
  ts_chooser_init(&b.chooser, graph, &exe->arena, options);
  ts_status status = build(&b);
  ts_chooser_deinit(&b.chooser);
  TS_VEC_FREE(&b.storages);
  TS_VEC_FREE(&b.kinds);
  TS_VEC_FREE(&b.readers);
  ts_free(b.map);
  TS_VEC_SHRINK(&exe->root.steps);
  return status;
}
