/* Steps for while, cond and callbacks: with blocks of their own, or as one native function. */
#include "exec/builder.h"

#include <string.h>

/* True when a step at or after `position` defines the storage, and it is no loop variable's yet, so that it may become
 * the next value of one. */
static bool own_temp(const ts_builder *b, ts_storage_id id, int32_t position) {
  const ts_storage *s = ts_builder_storage(b, id);
  return s->kind == TS_MEMORY_TEMP && s->first >= position && s->merged == id && !s->carried && !s->next;
}

/* ---- while ---- */

/* A loop variable that the body returns unchanged takes no memory of the loop: the regions read the operand itself. The
 * step keeps only the other variables; `slots` holds their indices among the op's. */
static ts_status pass_through(ts_builder *b, ts_step *step, const ts_op *op, uint32_t **slots) {
  const ts_region *condition = ts_graph_region(b->graph, op->attrs->regions.regions[0]);
  const ts_region *body = ts_graph_region(b->graph, op->attrs->regions.regions[1]);
  ts_storage_id *results = ts_step_results(step);
  uint32_t kept = 0;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)op->result_count + 1, slots));
  for (uint32_t i = 0; i < op->result_count; i++) {
    bool same = body->results.data[i] == body->params.data[i];
    ts_storage_id id = step->ids[i], own = results[i];
    b->map[condition->params.data[i]] = b->map[body->params.data[i]] = same ? id : own;
    if (same) {
      b->map[op->first_result + i] = id;
      ts_builder_storage(b, own)->first = INT32_MAX;
      ts_builder_storage(b, own)->last = -1;
      continue;
    }
    step->ids[kept] = id;
    results[kept] = own;
    (*slots)[kept++] = i;
  }
  step->operand_count = step->result_count = kept;
  memmove(ts_step_results(step), results, kept * sizeof(*results));
  return TS_SUCCESS;
}

/* Chooses the storage for the next value of the step's variable i. */
static ts_status bind_next(ts_builder *b, ts_step *step, const ts_op *op, uint32_t i, ts_storage_id value,
                           int32_t body_start) {
  ts_storage_id own = ts_step_results(step)[i], *next = &step->loop->next[i];
  *next = value;
  if (value == own) return TS_SUCCESS; /* the body returns its parameter */
  if (!own_temp(b, value, body_start)) {
    TS_TRY(ts_builder_add_storage(b, TS_MEMORY_TEMP, 0, ts_builder_storage(b, own)->bytes, next));
    TS_TRY(ts_builder_copy(b, &step->loop->body, value, *next, op));
  }
  ts_storage *s = ts_builder_storage(b, *next);
  s->next = true; /* also marks the storage as taken, see own_temp */
  s->loop = step->position;
  s->loop_index = i;
  return TS_SUCCESS;
}

/* The loop variables, their next values and the values that pass through stay live until the loop ends. */
static void keep_for_loop(ts_builder *b, const ts_step *step, const ts_op *op) {
  int32_t end = b->position++;
  const ts_storage_id *results = ts_step_results(step);
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_storage *carried = ts_builder_storage(b, results[i]), *next = ts_builder_storage(b, step->loop->next[i]);
    carried->last_in_loop = carried->last;
    next->first_in_loop = next->first;
    ts_builder_use(b, results[i], end);
    ts_builder_use(b, step->loop->next[i], step->position);
    ts_builder_use(b, step->loop->next[i], end);
  }
  for (uint32_t i = 0; i < op->result_count; i++) ts_builder_use(b, b->map[op->first_result + i], end);
}

static ts_status carry(ts_builder *b, ts_step *step) {
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)step->result_count + 1, &step->loop->next));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, (size_t)step->result_count + 1, &step->loop->bytes));
  for (uint32_t i = 0; i < step->result_count; i++) {
    ts_storage *s = ts_builder_storage(b, ts_step_results(step)[i]);
    s->carried = true;
    s->loop = step->position;
    s->loop_index = i;
    step->loop->bytes[i] = s->bytes;
  }
  return TS_SUCCESS;
}

static ts_status fill_while(ts_builder *b, ts_step *step, const ts_op *op) {
  uint32_t *slots;
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &step->loop));
  TS_TRY(pass_through(b, step, op, &slots));
  TS_TRY(carry(b, step));
  TS_TRY(ts_builder_region(b, op->attrs->regions.regions[0], &step->loop->condition));
  step->loop->condition_result = b->map[ts_graph_region(b->graph, op->attrs->regions.regions[0])->results.data[0]];
  ts_builder_use(b, step->loop->condition_result, b->position++);
  int32_t body_start = b->position;
  TS_TRY(ts_builder_region(b, op->attrs->regions.regions[1], &step->loop->body));
  const ts_region *body = ts_graph_region(b->graph, op->attrs->regions.regions[1]);
  for (uint32_t i = 0; i < step->result_count; i++)
    TS_TRY(bind_next(b, step, op, i, b->map[body->results.data[slots[i]]], body_start));
  keep_for_loop(b, step, op);
  step->cost_ns = INT64_MAX;
  return TS_SUCCESS;
}

/* ---- cond ---- */

static ts_status cond_branch(ts_builder *b, ts_step *step, const ts_op *op, int which) {
  ts_block *block = &step->branches[which];
  const ts_region *region = ts_graph_region(b->graph, op->attrs->regions.regions[which]);
  for (size_t i = 0; i < region->params.count; i++) b->map[region->params.data[i]] = b->map[op->operands[i + 1]];
  int32_t start = b->position;
  TS_TRY(ts_builder_region(b, op->attrs->regions.regions[which], block));
  for (uint32_t i = 0; i < op->result_count; i++) {
    ts_storage_id v = b->map[region->results.data[i]], target = ts_step_results(step)[i];
    if (own_temp(b, v, start)) {
      ts_storage *s = ts_builder_storage(b, v);
      ts_builder_use(b, target, s->first);
      ts_builder_use(b, target, s->last);
      s->merged = target;
    } else {
      TS_TRY(ts_builder_copy(b, block, v, target, op));
    }
  }
  return TS_SUCCESS;
}

static ts_status fill_cond(ts_builder *b, ts_step *step, const ts_op *op) {
  int64_t cost[2] = {0, 0};
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 2, &step->branches));
  for (int which = 0; which < 2; which++) TS_TRY(cond_branch(b, step, op, which));
  int32_t end = b->position++;
  for (uint32_t i = 0; i < op->result_count; i++) ts_builder_use(b, ts_step_results(step)[i], end);
  for (int which = 0; which < 2; which++)
    for (size_t i = 0; i < step->branches[which].steps.count; i++)
      cost[which] = ts_cost_add(cost[which], step->branches[which].steps.data[i].cost_ns);
  step->cost_ns = ts_cost_add(20, cost[0] > cost[1] ? cost[0] : cost[1]);
  return TS_SUCCESS;
}

/* Fills the step, whose launches become parts of one function if it is a native loop. */
static ts_status fill_loop(ts_builder *b, ts_step *step, ts_op_id id) {
  const ts_op *op = ts_graph_op(b->graph, id);
  if (b->in_native || b->options->no_fusion || !ts_native_fits(b->graph, id)) return fill_while(b, step, op);
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &step->native));
  b->natives++;
  b->in_native = true;
  ts_status status = fill_while(b, step, op);
  b->in_native = false;
  return status;
}

ts_status ts_builder_control(ts_builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  const ts_op *op = ts_graph_op(b->graph, id);
  bool loop = op->code == TS_OP_WHILE;
  TS_TRY(ts_builder_start(b, loop ? TS_STEP_WHILE : TS_STEP_COND, op, 0, &step));
  size_t collectives = b->collectives;
  ts_status status = loop ? fill_loop(b, &step, id) : fill_cond(b, &step, op);
  step.agrees = b->collectives > collectives;
  if (!status) status = TS_VEC_PUSH(&block->steps, step);
  if (status) ts_step_deinit(&step);
  return status;
}

/* ---- callbacks ---- */

ts_status ts_builder_callback(ts_builder *b, ts_block *block, const ts_op *op) {
  ts_step step;
  ts_step_call *call;
  size_t operands = op->operand_count, results = op->result_count;
  TS_TRY(ts_builder_start(b, TS_STEP_CALLBACK, op, 0, &step));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &call));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, operands + results, &call->types));
  for (size_t i = 0; i < operands; i++) TS_TRY(ts_builder_keep_type(b, op->operands[i], &call->types[i]));
  for (uint32_t i = 0; i < results; i++)
    TS_TRY(ts_builder_keep_type(b, op->first_result + i, &call->types[operands + i]));
  call->index = op->attrs->callback.index;
  step.call = call;
  b->exe->calls_back = true;
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- whole ---- */

/* The function's ops; a constant is none of its work. */
static void name_region(const ts_graph *graph, ts_region_id id, ts_op_names *names) {
  const ts_region *region = ts_graph_region(graph, id);
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    ts_region_id inner[2];
    size_t count = ts_op_regions(op, inner);
    if (op->code != TS_OP_CONSTANT && op->code != TS_OP_FUSION) ts_op_names_add(names, op->code);
    for (size_t k = 0; k < count; k++) name_region(graph, inner[k], names);
  }
}

static ts_status name_whole(ts_builder *b, const ts_op *op, ts_step *step) {
  ts_op_names *names;
  ts_region_id regions[2];
  size_t count = ts_op_regions(op, regions);
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &names));
  names->count = 0;
  for (size_t k = 0; k < count; k++) name_region(b->graph, regions[k], names);
  step->names = names;
  return TS_SUCCESS;
}

ts_status ts_builder_whole(ts_builder *b, ts_block *block, ts_op_id id) {
  ts_step step;
  ts_place place;
  const ts_op *op = ts_graph_op(b->graph, id);
  TS_TRY(ts_builder_start(b, TS_STEP_WHOLE, op, 0, &step));
  TS_TRY(ts_builder_place_inside(b, op, &place));
  TS_TRY(ts_builder_place(b, step.position, place));
  step.cost_ns = ts_whole_cost_ns(b->graph, op);
  TS_TRY(name_whole(b, op, &step));
  step.whole.words = (int32_t)b->exe->words.count;
  ts_whole_kernel whole;
  TS_TRY(ts_whole_lower(b->graph, id, &b->exe->arena, &whole));
  TS_TRY(ts_choose_source(&b->chooser, whole.text, &whole.source, &step.whole.kernel));
  for (uint32_t i = 0; i < step.operand_count + step.result_count + 1; i++) TS_TRY(TS_VEC_PUSH(&b->exe->words, 0));
  for (int32_t i = 0; i < whole.constant_count; i++) TS_TRY(TS_VEC_PUSH(&b->exe->words, whole.constants[i]));
  b->wholes++;
  return TS_VEC_PUSH(&block->steps, step);
}
