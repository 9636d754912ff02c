/* Steps for routines, and the epilogues that run on each part of a routine's result while it is in cache. */
#include "exec/builder.h"

#include <string.h>

/* ---- plans ---- */

/* Ops of more operands share no plan. */
enum { ALIKE_OPERANDS = 8 };

/* The first operand that is the same value as operand i. */
static uint32_t first_same(const ts_op *op, uint32_t i) {
  uint32_t first = 0;
  while (op->operands[first] != op->operands[i]) first++;
  return first;
}

static const ts_op *maker(const ts_graph *g, ts_value_id value) { return ts_graph_op(g, ts_graph_value(g, value)->op); }

static bool is_strided(const ts_builder *b, ts_value_id value) { return ts_builder_storage(b, b->map[value])->strided; }

/* The operands that are read with the strides of a slice. */
static uint64_t slices_of(const ts_builder *b, const ts_op *op) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < op->operand_count && i < 64; i++)
    if (is_strided(b, op->operands[i])) out |= UINT64_C(1) << i;
  return out;
}

static bool have_equal_slices(const ts_builder *b, const ts_op *x, const ts_op *y) {
  const ts_graph *g = b->graph;
  if (slices_of(b, x) != slices_of(b, y)) return false;
  for (uint32_t i = 0; i < x->operand_count; i++) {
    if (!is_strided(b, x->operands[i])) continue;
    const ts_op *from = maker(g, x->operands[i]), *other = maker(g, y->operands[i]);
    if (from->attrs != other->attrs) return false;
    if (ts_graph_value(g, from->operands[0])->shape != ts_graph_value(g, other->operands[0])->shape) return false;
  }
  return true;
}

/* The results that nothing reads; none of ops with one result, as those are not steps. */
static ts_status find_unread(ts_builder *b, const ts_op *op, uint64_t *out) {
  *out = 0;
  if (op->result_count < 2) return TS_SUCCESS;
  if (!b->uses) TS_TRY(ts_graph_count_uses(b->graph, &b->uses));
  for (uint32_t i = 0; i < op->result_count && i < 64; i++)
    if (b->uses[op->first_result + i] == 0) *out |= UINT64_C(1) << i;
  return TS_SUCCESS;
}

bool ts_builder_are_alike(const ts_graph *g, const ts_op *a, const ts_op *b) {
  if (a->code != b->code || a->attrs != b->attrs || a->operand_count != b->operand_count) return false;
  if (a->operand_count > ALIKE_OPERANDS) return false;
  for (uint32_t i = 0; i < a->operand_count; i++) {
    const ts_value *x = ts_graph_value(g, a->operands[i]), *y = ts_graph_value(g, b->operands[i]);
    if (x->dtype != y->dtype || x->shape != y->shape || first_same(a, i) != first_same(b, i)) return false;
  }
  return true;
}

ts_status ts_builder_ask_for_kernel(ts_builder *b, ts_planned *planned) {
  ts_kernel_source source = *planned->plan->kernel;
  char *text;
  TS_TRY(ts_strdup(source.text, &text));
  source.text = text;
  return ts_choose_source(&b->chooser, text, &source, &planned->kernel);
}

/* What takes long is not done at once: it ends as if it were cancelled. */
static const _Atomic bool always = true;

static bool is_product(ts_opcode code) { return ts_op_get_class(code) == TS_CLASS_DOT && code != TS_OP_CONV; }

/* A multiplication and an addition for each term. */
static int64_t product_flops(const ts_builder *b, const ts_op *op) {
  const ts_shape *lhs = ts_graph_value(b->graph, op->operands[0])->shape;
  int64_t terms = ts_shape_elements(ts_graph_value(b->graph, op->first_result)->shape), flops;
  if (op->code == TS_OP_QUANTIZED_DOT)
    return ts_mul_i64(terms, lhs->dims[lhs->rank - 1], &terms) && ts_mul_i64(terms, 2, &flops) ? flops : 0;
  for (int i = 0; i < op->attrs->dot.lhs_contract.rank; i++)
    if (!ts_mul_i64(terms, lhs->dims[op->attrs->dot.lhs_contract.dims[i]], &terms)) return 0;
  return ts_mul_i64(terms, 2, &flops) ? flops : 0;
}

static void note_work(const ts_builder *b, const ts_op *op, ts_routine_plan *plan) {
  plan->op = op->code;
  for (uint32_t i = 0; i < op->operand_count; i++)
    plan->bytes = ts_sum_bytes(plan->bytes, ts_builder_bytes(b, op->operands[i]));
  for (uint32_t i = 0; i < op->result_count; i++)
    plan->bytes = ts_sum_bytes(plan->bytes, ts_builder_bytes(b, op->first_result + i));
  if (is_product(op->code)) plan->flops = product_flops(b, op);
}

/* The executable owns the plan before it is filled, because a compile thread may read the source of its kernel from
 * then on. */
static ts_status make_plan(ts_builder *b, ts_op_id id, uint64_t unread, const ts_routine *routine, ts_planned *out) {
  *out = (ts_planned){.op = id, .unread = unread, .kernel = TS_NO_ID};
  TS_TRY(TS_VEC_RESERVE(&b->exe->plans, b->exe->plans.count + 1));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &out->plan));
  out->plan->routine = routine;
  out->plan->operand_count = ts_graph_op(b->graph, id)->operand_count;
  b->exe->plans.data[b->exe->plans.count++] = out->plan;
  const ts_routine_request request = {.graph = b->graph,
                                      .op = id,
                                      .slices = slices_of(b, ts_graph_op(b->graph, id)),
                                      .unread = unread,
                                      .arena = &b->exe->arena,
                                      .cancel = b->options->nonblocking ? &always : b->options->cancel};
  TS_TRY(routine->plan(&request, out->plan));
  note_work(b, ts_graph_op(b->graph, id), out->plan);
  return out->plan->state && out->plan->kernel ? ts_builder_ask_for_kernel(b, out) : TS_SUCCESS;
}

static ts_status plan_op(ts_builder *b, ts_op_id id, const ts_routine *routine, const ts_routine_plan **out) {
  const ts_op *op = ts_graph_op(b->graph, id);
  size_t last = b->planned.count > TS_PLANS_SEEN ? b->planned.count - TS_PLANS_SEEN : 0;
  uint64_t unread;
  TS_TRY(find_unread(b, op, &unread));
  for (size_t i = b->planned.count; i-- > last;) {
    const ts_planned *p = &b->planned.data[i];
    *out = p->plan;
    if (p->plan->routine == routine && p->unread == unread &&
        ts_builder_are_alike(b->graph, ts_graph_op(b->graph, p->op), op) &&
        have_equal_slices(b, ts_graph_op(b->graph, p->op), op))
      return TS_SUCCESS;
  }
  ts_planned planned;
  TS_TRY(make_plan(b, id, unread, routine, &planned));
  *out = planned.plan;
  return TS_VEC_PUSH(&b->planned, planned);
}

void ts_builder_adopt(ts_builder *b) {
  for (size_t i = 0; i < b->planned.count; i++) {
    const ts_planned *p = &b->planned.data[i];
    if (p->kernel != TS_NO_ID) p->plan->routine->adopt(p->plan, b->exe->kernels.data[p->kernel]);
  }
}

/* ---- steps ---- */

ts_status ts_builder_routine(ts_builder *b, ts_block *block, ts_op_id id, const ts_routine *routine, bool *out_done) {
  const ts_routine_plan *plan;
  ts_step step;
  TS_TRY(plan_op(b, id, routine, &plan));
  *out_done = plan->state != NULL;
  if (!*out_done) return TS_SUCCESS;
  TS_TRY(ts_builder_start(b, TS_STEP_ROUTINE, ts_graph_op(b->graph, id), 1, &step));
  step.routine.plan = plan;
  step.cost_ns = plan->cost_ns;
  TS_TRY(ts_builder_scratch(b, step.position, plan->workspace, plan->thread_workspace, ts_step_besides(&step)));
  if (b->in_native) TS_TRY(ts_builder_note_part(b, ts_graph_op(b->graph, id), step.position));
  return TS_VEC_PUSH(&block->steps, step);
}

/* ---- epilogues ---- */

/* Collects in `readers` the operands of the op that are the storage's value, perhaps reshaped. */
static ts_status find_readers(ts_builder *b, const ts_op *op, ts_storage_id id) {
  b->readers.count = 0;
  for (uint32_t o = 0; o < op->operand_count; o++)
    if (b->map[op->operands[o]] == id) TS_TRY(TS_VEC_PUSH(&b->readers, o));
  return TS_SUCCESS;
}

/* True when the op's other operands are computed before the step. */
static bool is_ready_at(const ts_builder *b, const ts_op *op, const ts_step *step) {
  for (uint32_t o = 0; o < op->operand_count; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = ts_builder_storage(b, id);
    if (!ts_storage_is_given(s) && id != *ts_step_results(step) && s->first >= step->position) return false;
  }
  return true;
}

/* The block's step at a position; NULL when there is none. Usually it is the last one. */
static ts_step *step_at(const ts_block *block, int32_t position) {
  size_t low = 0, high = block->steps.count;
  if (high > 0 && block->steps.data[high - 1].position <= position) low = high - 1;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (block->steps.data[middle].position < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low < block->steps.count && block->steps.data[low].position == position ? &block->steps.data[low] : NULL;
}

/* The last routine of the block that takes an epilogue and whose result the op reads; NULL when there is none, or
 * another operand of the op is computed later. As an epilogue the op runs earlier than before: this extends no live
 * range of the routine's operands. The op's result is no larger than the routine's, but for a few parts of a
 * concatenation. */
static ts_step *find_routine(const ts_builder *b, const ts_block *block, const ts_op *op) {
  ts_step *best = NULL;
  for (uint32_t o = 0; o < op->operand_count && !b->options->no_fusion; o++) {
    ts_storage_id id = b->map[op->operands[o]];
    const ts_storage *s = ts_builder_storage(b, id);
    ts_step *step = s->kind == TS_MEMORY_TEMP ? step_at(block, s->first) : NULL;
    if (!step || step->kind != TS_STEP_ROUTINE || !step->routine.plan->epilogue || step->result_count != 1) continue;
    if (step->routine.epilogue || *ts_step_results(step) != id) continue;
    if (!best || step->position > best->position) best = step;
  }
  return best && is_ready_at(b, op, best) ? best : NULL;
}

/* An epilogue runs on one thread if its routine does, so a long launch that would be split into tasks stays a step of
 * its own. */
#define LONG_EPILOGUE_NS 40000
static bool is_worth_it(const ts_step *step, const ts_work *work) {
  const ts_step_launch *l = &work->launches[0];
  return l->cost_ns < LONG_EPILOGUE_NS || ts_step_own_tasks(l) <= 1 || step->routine.plan->epilogue->is_parallel;
}

/* Makes the op the epilogue of the routine's step. */
static ts_status join(ts_builder *b, ts_step *step, const ts_op *op, const ts_work *work) {
  const uint32_t first = step->routine.plan->operand_count;
  ts_storage_id *ids, inner = *ts_step_results(step), workspace = ts_step_workspace(step);
  size_t count = (size_t)first + op->operand_count + op->result_count + 3;
  TS_TRY(ts_arena_take(&b->exe->arena, count * sizeof(*ids), (void **)&ids));
  memcpy(ids, step->ids, first * sizeof(*ids));
  step->ids = ids;
  step->operand_count = first + op->operand_count;
  step->result_count = op->result_count;
  ts_builder_read(b, op, step->position, ids + first);
  TS_TRY(ts_builder_write(b, op, step->position, ts_step_results(step)));
  ts_step_besides(step)[0] = workspace;
  ts_step_inner(step)[0] = inner;
  TS_TRY(ts_builder_scratch(b, step->position, 0, work->scratch_bytes, &ts_step_inner(step)[1]));
  step->routine.epilogue = work;
  step->cost_ns = ts_cost_add(step->cost_ns, work->cost_ns);
  TS_TRY(ts_builder_place_more(b, step->position, op->place));
  return ts_builder_name(b, step, op);
}

ts_status ts_builder_try_epilogue(ts_builder *b, ts_block *block, ts_op_id id, bool *out_done) {
  const ts_work *work;
  const ts_op *op = ts_graph_op(b->graph, id);
  *out_done = false;
  ts_step *step = find_routine(b, block, op);
  if (!step) return TS_SUCCESS;
  TS_TRY(find_readers(b, op, *ts_step_results(step)));
  TS_TRY(ts_choose(&b->chooser, id, true, &work));
  if (work->lowered.launch_count != 1 || !is_worth_it(step, work)) return TS_SUCCESS;
  const ts_step_launch *l = &work->launches[0];
  const ts_launch *launch = l->own ? &l->own->launch : l->launch;
  if (!ts_epilogue_fits(step->routine.plan->epilogue, launch, b->readers.data, b->readers.count)) return TS_SUCCESS;
  *out_done = true;
  return join(b, step, op, work);
}
