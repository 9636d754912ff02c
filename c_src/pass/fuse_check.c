#include "pass/fuse.h"
#include "pass/program.h"

typedef struct view {
  const ts_fuse_plan *plan;
  uint32_t group;
} view;

/* What the group does not compute is an operand; which one does not matter here. */
static bool is_outside(const void *context, ts_value_id value, uint32_t *out) {
  const view *v = context;
  ts_op_id op = ts_graph_value(v->plan->graph, value)->op;
  *out = value;
  if (op == TS_NO_ID) return true;
  return v->plan->ops[op].group != v->group && !v->plan->ops[op].inlined;
}

static ts_status build(const view *v, const ts_program_root *roots, size_t count, bool *out) {
  const ts_fuse_group *group = &v->plan->groups.data[v->group];
  ts_program_spec spec = {.graph = v->plan->graph,
                          .operand = is_outside,
                          .context = v,
                          .roots = roots,
                          .root_count = count,
                          .reduce = group->reduction};
  ts_arena arena;
  ts_program program;
  *out = false;
  ts_arena_init(&arena);
  ts_status status = ts_program_build(&spec, &arena, &program);
  if (!status) {
    *out = ts_program_row_is_one(&program);
    ts_program_deinit(&program);
  }
  ts_arena_deinit(&arena);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  return TS_SUCCESS;
}

/* The parts of a pad or concatenate have a kernel each. */
static ts_status build_parts(const view *v, const ts_op *root, bool *out) {
  *out = true;
  for (uint32_t i = 0; *out && i < root->operand_count; i++) {
    ts_program_root part = ts_program_root_whole(v->plan->graph, root->operands[i], 0);
    if (ts_shape_elements(&part.shape) > 0) TS_TRY(build(v, &part, 1, out));
  }
  return TS_SUCCESS;
}

ts_status ts_fuse_check_group(const ts_fuse_plan *plan, uint32_t id, bool *out) {
  const ts_fuse_group *group = &plan->groups.data[id];
  ts_program_root roots[TS_PROGRAM_MAX_OPERANDS];
  view v = {plan, id};
  size_t count = 0;
  *out = !group->composite && !plan->check_all;
  if (*out) return TS_SUCCESS;
  if (group->writes_parts) return build_parts(&v, ts_graph_op(plan->graph, group->root), out);
  roots[count++] = ts_program_root_whole(plan->graph, ts_graph_op(plan->graph, group->root)->first_result, 0);
  for (ts_op_id op = group->first; op != TS_NO_ID; op = plan->ops[op].next) {
    if (op == group->root || !plan->ops[op].is_output) continue;
    if (count == TS_PROGRAM_MAX_OPERANDS) return TS_SUCCESS;
    roots[count++] = ts_program_root_whole(plan->graph, ts_graph_op(plan->graph, op)->first_result, 0);
  }
  return build(&v, roots, count, out);
}
