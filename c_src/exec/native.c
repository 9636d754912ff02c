/* Loops whose ops are all small become one native function (jit/flow/flow.h). The graph decides before the loop's steps
 * are made, since their kernels are then not requested; the function is made from the steps once they have memory. */
#include "exec/builder.h"
#include "jit/flow/flow.h"

#include <string.h>

/* Tensors that are computed in a loop have at most so many bytes: beyond that the time between two launches does not
 * count. */
#define MOST_BYTES 16384
/* The factors of a product that is a call may have so many: reading them takes some time, and the steps around the call
 * are still worth their place in the function. */
#define MOST_FACTOR_BYTES (1 << 20)
/* The ops of all regions, which bound the time of a compilation. */
#define MOST_OPS 512

/* ---- which loops ---- */

typedef struct fitting {
  const ts_graph *g;
  int budget; /* of ops */
} fitting;

static bool has_plain_type(const ts_graph *g, ts_value_id v) {
  ts_dtype type = ts_graph_value(g, v)->dtype;
  return type != TS_C128 && ts_dtype_has_kernels(type);
}

static bool has_at_most(const ts_graph *g, ts_value_id v, int64_t bytes) {
  const ts_value *value = ts_graph_value(g, v);
  return ts_shape_bytes(value->shape, value->dtype) <= bytes;
}

/* True when the result may have any size: the op writes a small part of it, or it is there already. */
static bool writes_part(ts_opcode code) {
  return code == TS_OP_PUT_SLICE || code == TS_OP_INDEXED_ADD || code == TS_OP_INDEXED_PUT || code == TS_OP_LITERAL;
}

/* True when the operand may have any size: the op reads or writes a small part of it. */
static bool takes_part(ts_opcode code, uint32_t operand) {
  bool reads = code == TS_OP_SLICE || code == TS_OP_DYNAMIC_SLICE || code == TS_OP_TAKE || code == TS_OP_TAKE_ALONG;
  return operand == 0 && (reads || writes_part(code));
}

/* The function reads the starts of slices itself. */
static bool has_plain_starts(const ts_graph *g, const ts_op *op) {
  uint32_t first = op->code == TS_OP_DYNAMIC_SLICE ? 1 : op->code == TS_OP_PUT_SLICE ? 2 : op->operand_count;
  for (uint32_t i = first; i < op->operand_count; i++)
    if (ts_dtype_is_small(ts_graph_value(g, op->operands[i])->dtype)) return false;
  return true;
}

static bool region_fits(fitting *f, ts_region_id id);

static bool holds_regions(fitting *f, const ts_op *op) {
  ts_region_id regions[2];
  size_t n = ts_op_regions(op, regions);
  for (size_t i = 0; i < n; i++)
    if (!region_fits(f, regions[i])) return false;
  return true;
}

static bool control_fits(fitting *f, ts_op_id id) {
  const ts_op *op = ts_graph_op(f->g, id);
  /* A loop over single elements keeps them in registers where it is a function of its own. */
  if (op->code == TS_OP_WHILE && ts_whole_supported(f->g, id)) return false;
  bool known = op->code == TS_OP_WHILE || op->code == TS_OP_COND || op->code == TS_OP_CALL || op->code == TS_OP_FUSION;
  return known && holds_regions(f, op);
}

static bool op_fits(fitting *f, ts_op_id id) {
  const ts_op *op = ts_graph_op(f->g, id);
  if (--f->budget < 0) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!has_plain_type(f->g, op->operands[i])) return false;
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!has_plain_type(f->g, op->first_result + i)) return false;
  if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE) return false;
  if (ts_op_get_class(op->code) == TS_CLASS_CONTROL) return control_fits(f, id);
  if (!has_plain_starts(f->g, op)) return false;
  if (ts_lower_is_alias(f->g, id)) return true;
  int64_t most = ts_op_get_class(op->code) == TS_CLASS_DOT ? MOST_FACTOR_BYTES : MOST_BYTES;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!takes_part(op->code, i) && !has_at_most(f->g, op->operands[i], most)) return false;
  for (uint32_t i = 0; i < op->result_count && !writes_part(op->code); i++)
    if (!has_at_most(f->g, op->first_result + i, MOST_BYTES)) return false;
  return true;
}

static bool region_fits(fitting *f, ts_region_id id) {
  const ts_region *region = ts_graph_region(f->g, id);
  for (size_t i = 0; i < region->ops.count; i++)
    if (!op_fits(f, region->ops.data[i])) return false;
  return true;
}

bool ts_native_fits(const ts_graph *graph, ts_op_id id) {
  fitting f = {graph, MOST_OPS};
  const ts_op *op = ts_graph_op(graph, id);
  /* Compile threads have small stacks, which bounds the nesting. */
  if (op->code != TS_OP_WHILE || ts_op_height(graph, op) > TS_WHOLE_MAX_LEVELS) return false;
  return holds_regions(&f, op);
}

/* ---- the description ---- */

typedef struct maker {
  ts_builder *b;
  ts_arena *arena; /* of the description */
  ts_flow flow;
  uint32_t *slots;             /* of each memory; TS_NO_ID: none yet */
  TS_VEC(ts_memory_id) memory; /* of each slot */
  TS_VEC(ts_native_call) calls;
  TS_VEC(int64_t) scalars;
} maker;

static ts_status slot_of(maker *m, ts_memory_id id, uint32_t *out) {
  *out = TS_NO_ID;
  if (id == TS_NO_ID) return TS_SUCCESS;
  if (m->slots[id] == TS_NO_ID) {
    m->slots[id] = (uint32_t)m->memory.count;
    TS_TRY(TS_VEC_PUSH(&m->memory, id));
  }
  *out = m->slots[id];
  return TS_SUCCESS;
}

static ts_status slots_of(maker *m, const ts_memory_id *ids, size_t count, const uint32_t **out) {
  uint32_t *slots;
  TS_TRY(TS_ARENA_ARRAY(m->arena, count, &slots));
  for (size_t i = 0; i < count; i++) TS_TRY(slot_of(m, ids[i], &slots[i]));
  *out = slots;
  return TS_SUCCESS;
}

static ts_status put_scalars(maker *m, const ts_launch *l) {
  int32_t first = ts_kernel_arg_scalar(&l->desc, 0);
  for (int32_t i = 0; i < l->desc.scalar_count; i++)
    if (ts_flow_has_word(l->desc.scalars[i])) TS_TRY(TS_VEC_PUSH(&m->scalars, l->args[first + i]));
  return TS_SUCCESS;
}

static ts_status add_launch(maker *m, const ts_step *step, int32_t which, ts_flow_step *out) {
  const ts_work *work = step->work;
  const ts_memory_id *temps = ts_step_besides(step);
  out->kind = TS_FLOW_LAUNCH;
  out->launch = &work->lowered.launches[which];
  out->first = (int32_t)m->scalars.count;
  if (out->launch->copies) {
    out->kind = TS_FLOW_COPY;
    out->bytes = ts_shape_bytes(&step->type->shape, step->type->dtype);
  }
  TS_TRY(slots_of(m, step->ids, step->operand_count, &out->operands));
  TS_TRY(slots_of(m, ts_step_results(step), step->result_count, &out->results));
  TS_TRY(slots_of(m, temps, (size_t)work->lowered.temp_count, &out->temps));
  TS_TRY(slot_of(m, temps[work->lowered.temp_count], &out->scratch));
  return put_scalars(m, out->launch);
}

static ts_status add_copy(maker *m, const ts_step *step, ts_flow_step *out) {
  out->kind = TS_FLOW_COPY;
  out->bytes = step->copy_bytes;
  TS_TRY(slots_of(m, step->ids, 1, &out->operands));
  return slots_of(m, step->ids + 1, 1, &out->results);
}

static ts_status add_call(maker *m, const ts_step *step, ts_flow_step *out) {
  ts_native_call call = {.step = step, .count = step->operand_count + step->result_count + 1};
  uint32_t *slots;
  TS_TRY(TS_ARENA_ARRAY(&m->b->exe->arena, call.count, &slots));
  for (uint32_t i = 0; i < call.count; i++) TS_TRY(slot_of(m, step->ids[i], &slots[i]));
  call.slots = slots;
  out->kind = TS_FLOW_CALL;
  out->operands = slots;
  out->count = (int32_t)call.count;
  out->number = (int32_t)m->calls.count;
  return TS_VEC_PUSH(&m->calls, call);
}

static const ts_native_part *part_of(const maker *m, const ts_step *step) {
  for (size_t i = 0; i < m->b->parts.count; i++)
    if (m->b->parts.data[i].position == step->position) return &m->b->parts.data[i];
  return NULL;
}

static ts_status add_routine(maker *m, const ts_step *step, ts_flow_step *out) {
  const ts_native_part *part = part_of(m, step);
  if (!part) return add_call(m, step, out);
  out->dot = part->dot;
  out->scan = part->scan;
  out->scatter = part->scatter;
  out->kind = part->dot ? TS_FLOW_DOT : part->scan ? TS_FLOW_SCAN : TS_FLOW_SCATTER;
  out->bytes = part->bytes;
  TS_TRY(slots_of(m, step->ids, step->operand_count, &out->operands));
  return slots_of(m, ts_step_results(step), 1, &out->results);
}

static ts_status add_block(maker *m, const ts_block *block, ts_flow_block *out);

static ts_status add_while(maker *m, const ts_step *step, ts_flow_step *out) {
  const ts_step_loop *loop = step->loop;
  out->kind = TS_FLOW_WHILE;
  out->number = ++m->flow.loop_count;
  out->first = m->flow.home_count;
  out->count = (int32_t)step->result_count;
  out->sizes = loop->bytes;
  m->flow.home_count += out->count;
  TS_TRY(slots_of(m, step->ids, step->operand_count, &out->operands));
  TS_TRY(slots_of(m, ts_step_results(step), step->result_count, &out->results));
  TS_TRY(slots_of(m, loop->next, step->result_count, &out->temps));
  TS_TRY(TS_ARENA_ARRAY(m->arena, 2, &out->blocks));
  TS_TRY(add_block(m, &loop->condition, &out->blocks[0]));
  TS_TRY(slot_of(m, loop->condition_result, &out->predicate));
  return add_block(m, &loop->body, &out->blocks[1]);
}

static ts_status add_cond(maker *m, const ts_step *step, ts_flow_step *out) {
  out->kind = TS_FLOW_COND;
  TS_TRY(slots_of(m, step->ids, 1, &out->operands));
  TS_TRY(TS_ARENA_ARRAY(m->arena, 2, &out->blocks));
  for (int k = 0; k < 2; k++) TS_TRY(add_block(m, &step->branches[k], &out->blocks[k]));
  return TS_SUCCESS;
}

static ts_status add_step(maker *m, const ts_step *step, ts_flow_step *out) {
  switch ((ts_step_kind)step->kind) {
  case TS_STEP_COPY: return add_copy(m, step, out);
  case TS_STEP_ROUTINE: return add_routine(m, step, out);
  case TS_STEP_WHILE: return add_while(m, step, out);
  case TS_STEP_COND: return add_cond(m, step, out);
  case TS_STEP_LAUNCH: /* add_block */
  case TS_STEP_CALLBACK:
  case TS_STEP_COLLECTIVE:
  case TS_STEP_WHOLE: break;
  }
  return ts_error(TS_INTERNAL, "a step of kind %d in a native loop", step->kind);
}

static ts_status add_block(maker *m, const ts_block *block, ts_flow_block *out) {
  size_t count = 0;
  for (size_t i = 0; i < block->steps.count; i++) {
    const ts_step *step = &block->steps.data[i];
    count += step->kind == TS_STEP_LAUNCH ? (size_t)step->work->lowered.launch_count : 1;
  }
  TS_TRY(TS_ARENA_ARRAY(m->arena, count, &out->steps));
  for (size_t i = 0; i < block->steps.count; i++) {
    const ts_step *step = &block->steps.data[i];
    int32_t launches = step->kind == TS_STEP_LAUNCH ? step->work->lowered.launch_count : 0;
    for (int32_t k = 0; k < launches; k++) TS_TRY(add_launch(m, step, k, &out->steps[out->count++]));
    if (step->kind != TS_STEP_LAUNCH) TS_TRY(add_step(m, step, &out->steps[out->count++]));
  }
  return TS_SUCCESS;
}

/* ---- the kernel ---- */

static ts_status keep(maker *m, ts_native *native) {
  ts_executable *exe = m->b->exe;
  size_t header = TS_FLOW_SLOTS + m->memory.count + (size_t)m->flow.home_count, at = exe->words.count;
  native->words = (int32_t)at;
  native->slot_count = (uint32_t)m->memory.count;
  TS_TRY(ts_arena_copy(&exe->arena, m->memory.data, m->memory.count * sizeof *m->memory.data,
                       (void **)(uintptr_t)&native->slots));
  TS_TRY(ts_arena_copy(&exe->arena, m->calls.data, m->calls.count * sizeof *m->calls.data,
                       (void **)(uintptr_t)&native->calls));
  TS_TRY(TS_VEC_RESERVE(&exe->words, at + header + m->scalars.count));
  memset(exe->words.data + at, 0, header * sizeof(int64_t));
  if (m->scalars.count > 0) memcpy(exe->words.data + at + header, m->scalars.data, m->scalars.count * sizeof(int64_t));
  exe->words.count += header + m->scalars.count;
  return TS_SUCCESS;
}

static ts_status describe(maker *m, const ts_step *step, ts_flow **out) {
  TS_TRY(TS_ARENA_ARRAY(m->arena, 1, out));
  TS_TRY(TS_ARENA_ARRAY(m->arena, 1, &m->flow.loop));
  TS_TRY(TS_NEW_ARRAY(ts_memory_count(m->b->exe), &m->slots));
  for (size_t i = 0; i < ts_memory_count(m->b->exe); i++) m->slots[i] = TS_NO_ID;
  TS_TRY(add_while(m, step, m->flow.loop));
  m->flow.slot_count = (int32_t)m->memory.count;
  **out = m->flow;
  return keep(m, step->native);
}

static ts_status request(void *context, ts_step *step) {
  ts_builder *b = context;
  maker m = {.b = b, .arena = &b->flows};
  ts_flow *flow;
  char *text;
  ts_kernel_source source;
  if (!ts_step_is_native(step)) return TS_SUCCESS;
  ts_status status = describe(&m, step, &flow);
  if (!status) status = ts_flow_make_source(flow, &text, &source);
  if (!status) status = ts_choose_source(&b->chooser, text, &source, &step->native->kernel);
  ts_free(m.slots);
  TS_VEC_FREE(&m.memory);
  TS_VEC_FREE(&m.calls);
  TS_VEC_FREE(&m.scalars);
  return status;
}

ts_status ts_builder_request_natives(ts_builder *b) { return ts_block_walk(&b->exe->root, request, b); }
