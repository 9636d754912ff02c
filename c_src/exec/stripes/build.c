/* Steps that compute a chain by stripes. */
#include "exec/builder.h"
#include "exec/stripes/stripes.h"

static bool is_strided(const ts_builder *b, ts_value_id value) { return ts_builder_storage(b, b->map[value])->strided; }

/* Of the values that are read by the chain's products from outside, none has gaps. */
static bool is_dense(const ts_builder *b, const ts_chain *chain) {
  const ts_op *first = ts_graph_op(b->graph, chain->first), *second = ts_graph_op(b->graph, chain->second);
  return !is_strided(b, first->operands[0]) && !is_strided(b, first->operands[1]) &&
         !is_strided(b, second->operands[1]);
}

/* ---- plans ---- */

static ts_status make_plan(ts_builder *b, const ts_chain *chain, const ts_work *work, ts_planned *out) {
  const ts_stripes_request request = {b->graph, chain, work, &b->exe->arena};
  *out = (ts_planned){.op = chain->second, .first = chain->first, .move = chain->move, .kernel = TS_NO_ID};
  TS_TRY(TS_VEC_RESERVE(&b->exe->plans, b->exe->plans.count + 1));
  TS_TRY(TS_ARENA_ARRAY(&b->exe->arena, 1, &out->plan));
  out->plan->routine = &ts_stripes_routine;
  out->plan->operand_count = 3 + ts_graph_op(b->graph, chain->kernel)->operand_count;
  b->exe->plans.data[b->exe->plans.count++] = out->plan;
  TS_TRY(ts_stripes_plan(&request, out->plan));
  return out->plan->state ? ts_builder_ask_for_kernel(b, out) : TS_SUCCESS;
}

/* Fusions of equal regions have equal attributes. */
static bool are_moves_alike(const ts_graph *g, const ts_planned *p, const ts_chain *chain) {
  if (p->move == TS_NO_ID || chain->move == TS_NO_ID) return p->move == chain->move;
  return ts_builder_are_alike(g, ts_graph_op(g, p->move), ts_graph_op(g, chain->move));
}

static bool is_plan_of(const ts_builder *b, const ts_planned *p, const ts_chain *chain, const ts_work *work) {
  const ts_graph *g = b->graph;
  const ts_stripes *s = p->plan->state;
  return p->plan->routine == &ts_stripes_routine && s && s->work == work && s->operands_read == chain->reads &&
         ts_builder_are_alike(g, ts_graph_op(g, p->first), ts_graph_op(g, chain->first)) &&
         ts_builder_are_alike(g, ts_graph_op(g, p->op), ts_graph_op(g, chain->second)) && are_moves_alike(g, p, chain);
}

static ts_status plan_chain(ts_builder *b, const ts_chain *chain, const ts_work *work, ts_routine_plan **out) {
  ts_planned planned;
  for (size_t i = b->planned.count; i-- > 0 && b->planned.count - i <= TS_PLANS_SEEN;) {
    *out = b->planned.data[i].plan;
    if (is_plan_of(b, &b->planned.data[i], chain, work)) return TS_SUCCESS;
  }
  TS_TRY(make_plan(b, chain, work, &planned));
  *out = planned.plan;
  return TS_VEC_PUSH(&b->planned, planned);
}

/* ---- steps ---- */

static void read_kernel(ts_builder *b, const ts_chain *chain, ts_step *step) {
  const ts_op *kernel = ts_graph_op(b->graph, chain->kernel);
  for (uint32_t i = 0; i < kernel->operand_count; i++) {
    const bool is_inner = i < 64 && chain->reads >> i & 1;
    const ts_storage_id id = is_inner ? step->ids[0] : b->map[kernel->operands[i]];
    step->ids[TS_STRIPES_KERNEL_OPERANDS + i] = id;
    ts_builder_use(b, id, step->position);
  }
}

/* What profiles show. */
static void note_work(const ts_builder *b, const ts_step *step, ts_routine_plan *plan) {
  const ts_stripes *s = plan->state;
  const ts_gemm_shape *shape = &s->second.shape;
  int64_t flops;
  plan->op = TS_OP_DOT;
  plan->bytes = 0;
  for (uint32_t i = 0; i < step->operand_count + step->result_count; i++)
    plan->bytes = ts_sum_bytes(plan->bytes, ts_builder_storage(b, step->ids[i])->bytes);
  if (ts_mul_i64(s->batch * shape->m, shape->k, &flops) && ts_mul_i64(flops, 2, &flops) &&
      ts_mul_i64(flops, shape->n + s->first.shape.k, &flops))
    plan->flops = flops;
}

static ts_status add_step(ts_builder *b, ts_block *block, const ts_chain *chain, ts_routine_plan *plan) {
  const bool moves = ((const ts_stripes *)plan->state)->moves;
  const ts_op *first = ts_graph_op(b->graph, chain->first), *second = ts_graph_op(b->graph, chain->second);
  const ts_op *last = moves ? ts_graph_op(b->graph, chain->move) : second;
  ts_step step = {.kind = TS_STEP_ROUTINE,
                  .position = b->position++,
                  .operand_count = plan->operand_count,
                  .result_count = 1,
                  .cost_ns = plan->cost_ns};
  TS_TRY(ts_builder_name(b, &step, last));
  TS_TRY(ts_arena_take(&b->exe->arena, ((size_t)step.operand_count + 2) * sizeof(*step.ids), (void **)&step.ids));
  ts_builder_read(b, first, step.position, step.ids);
  read_kernel(b, chain, &step);
  step.ids[step.operand_count - 1] = b->map[second->operands[1]];
  ts_builder_use(b, step.ids[step.operand_count - 1], step.position);
  TS_TRY(ts_builder_write(b, last, step.position, ts_step_results(&step)));
  *ts_step_besides(&step) = TS_NO_ID;
  step.routine.plan = plan;
  note_work(b, &step, plan);
  for (uint32_t i = 0; i < chain->count && chain->ops[i] <= (moves ? chain->move : chain->second); i++)
    TS_TRY(ts_builder_place_more(b, step.position, ts_graph_op(b->graph, chain->ops[i])->place));
  return TS_VEC_PUSH(&block->steps, step);
}

ts_status ts_builder_stripes(ts_builder *b, ts_block *block, const ts_chain *chain, ts_op_id *out_last) {
  const ts_work *work;
  ts_routine_plan *plan;
  *out_last = TS_NO_ID;
  if (!is_dense(b, chain)) return TS_SUCCESS;
  ts_status status = ts_choose(&b->chooser, chain->kernel, true, &work);
  if (ts_status_code(status) == TS_UNIMPLEMENTED) {
    ts_status_free(status);
    return TS_SUCCESS;
  }
  TS_TRY(status);
  TS_TRY(plan_chain(b, chain, work, &plan));
  if (!plan->state) return TS_SUCCESS;
  *out_last = ((const ts_stripes *)plan->state)->moves ? chain->move : chain->second;
  return add_step(b, block, chain, plan);
}
