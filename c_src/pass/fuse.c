/* Makes a fusion op of each group that fuse_plan.c finds, in every region. Groups of equal structure share the fusion's
 * region (the layers of a network have many). */
#include "pass/fuse.h"

#include "ir/key.h"
#include "pass/rewrite.h"

typedef struct fuse {
  ts_fuse_plan plan;
  ts_value_id
      *inside; /* maps a value of the old graph to one of the current key or region; valid if its stamp equals `now` */
  uint32_t *stamp, now;
  TS_VEC(ts_value_id) operands;
  TS_VEC(ts_value_id) results;
  ts_region_id region; /* of the fusion that is being made */
  ts_keys regions;     /* key to region + 1 */
  ts_place place;      /* of all ops of the current key */
} fuse;

static bool is_inside(const fuse *f, ts_value_id value) { return f->stamp[value] == f->now; }

static void set_inside(fuse *f, ts_value_id value, ts_value_id inside) {
  f->inside[value] = inside;
  f->stamp[value] = f->now;
}

static bool is_inlined(const fuse *f, const ts_value *v) { return v->op != TS_NO_ID && f->plan.ops[v->op].inlined; }

/* ---- keys of groups ---- */

/* Builds a group's key: values are numbered in order of appearance, and the key holds the type of each value from
 * outside and the code and attributes of each op. Groups with equal keys share a region. Also collects the values from
 * outside as operands. The recursion through inlined ops is at most a few levels deep. */
static ts_status put_op(ts_rewrite *rw, ts_op_id id, uint32_t *next);

enum { OUTSIDE = -1, RESULTS = -2 };

static ts_status put_value(ts_rewrite *rw, ts_value_id value, uint32_t *next) {
  fuse *f = rw->context;
  const ts_value *v = ts_graph_value(rw->from, value);
  if (is_inlined(f, v)) return put_op(rw, v->op, next);
  TS_TRY(TS_VEC_PUSH(&f->operands, rw->map[value]));
  set_inside(f, value, (*next)++);
  return ts_keys_put_type(&f->regions, v, (uint32_t)OUTSIDE);
}

static ts_status put_op(ts_rewrite *rw, ts_op_id id, uint32_t *next) {
  fuse *f = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!is_inside(f, op->operands[i])) TS_TRY(put_value(rw, op->operands[i], next));
  TS_TRY(ts_keys_put_op(&f->regions, op, f->inside));
  if (op->place) TS_TRY(ts_places_join(rw->to->places, f->place, op->place, &f->place));
  set_inside(f, op->first_result, (*next)++);
  return TS_SUCCESS;
}

/* Puts the root's result first, since the loops follow its order of elements. */
static ts_status collect_results(ts_rewrite *rw, const ts_fuse_group *group) {
  fuse *f = rw->context;
  f->results.count = 0;
  TS_TRY(TS_VEC_PUSH(&f->results, f->inside[ts_graph_op(rw->from, group->root)->first_result]));
  for (ts_op_id op = group->first; op != TS_NO_ID; op = f->plan.ops[op].next) {
    if (op == group->root || !f->plan.ops[op].is_output) continue;
    TS_TRY(TS_VEC_PUSH(&f->results, f->inside[ts_graph_op(rw->from, op)->first_result]));
  }
  return TS_SUCCESS;
}

static ts_status make_key(ts_rewrite *rw, const ts_fuse_group *group) {
  fuse *f = rw->context;
  uint32_t next = 0;
  f->now++;
  ts_keys_begin(&f->regions);
  f->operands.count = 0;
  f->place = 0;
  for (ts_op_id op = group->first; op != TS_NO_ID; op = f->plan.ops[op].next) TS_TRY(put_op(rw, op, &next));
  TS_TRY(collect_results(rw, group));
  TS_TRY(ts_keys_put(&f->regions, (uint64_t)RESULTS));
  for (size_t i = 0; i < f->results.count; i++) TS_TRY(ts_keys_put(&f->regions, f->results.data[i]));
  return TS_SUCCESS;
}

/* ---- its region ---- */

static ts_status copy_inside(ts_rewrite *rw, ts_op_id id);

/* The value inside the region: computed there, or a parameter. */
static ts_status resolve(ts_rewrite *rw, ts_value_id value, ts_value_id *out) {
  fuse *f = rw->context;
  const ts_value *v = ts_graph_value(rw->from, value);
  if (!is_inside(f, value)) {
    if (is_inlined(f, v)) {
      TS_TRY(copy_inside(rw, v->op));
    } else {
      ts_value_id param;
      TS_TRY(ts_graph_add_param_like(rw->to, f->region, rw->from, value, &param));
      set_inside(f, value, param);
    }
  }
  *out = f->inside[value];
  return TS_SUCCESS;
}

static ts_status copy_inside(ts_rewrite *rw, ts_op_id id) {
  fuse *f = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_value_id few[TS_REWRITE_FEW], *operands = few, made;
  ts_status status = TS_SUCCESS;
  if (op->operand_count > TS_REWRITE_FEW) TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  for (uint32_t i = 0; !status && i < op->operand_count; i++) status = resolve(rw, op->operands[i], &operands[i]);
  if (!status) status = ts_graph_add_like(rw->to, f->region, rw->from, id, operands, &made);
  if (!status) set_inside(f, op->first_result, made);
  if (operands != few) ts_free(operands);
  return status;
}

static ts_status make_region(ts_rewrite *rw, const ts_fuse_group *group) {
  fuse *f = rw->context;
  f->now++;
  TS_TRY(ts_graph_add_region(rw->to, &f->region));
  TS_TRY(ts_graph_reserve_region(rw->to, f->region, f->operands.count, 2 * (size_t)group->members));
  for (ts_op_id op = group->first; op != TS_NO_ID; op = f->plan.ops[op].next) TS_TRY(copy_inside(rw, op));
  TS_TRY(collect_results(rw, group));
  return ts_graph_set_results(rw->to, f->region, f->results.data, f->results.count);
}

/* ---- the fusion ---- */

static void map_results(ts_rewrite *rw, const ts_fuse_group *group, ts_value_id first) {
  fuse *f = rw->context;
  rw->map[ts_graph_op(rw->from, group->root)->first_result] = first++;
  for (ts_op_id op = group->first; op != TS_NO_ID; op = f->plan.ops[op].next) {
    if (op != group->root && f->plan.ops[op].is_output) rw->map[ts_graph_op(rw->from, op)->first_result] = first++;
  }
}

static ts_status make_fusion(ts_rewrite *rw, uint32_t id, ts_region_id target) {
  fuse *f = rw->context;
  const ts_fuse_group *group = &f->plan.groups.data[id];
  ts_value_id first;
  TS_TRY(make_key(rw, group));
  uintptr_t known = (uintptr_t)ts_keys_find(&f->regions);
  if (known) {
    f->region = (ts_region_id)(known - 1);
  } else {
    TS_TRY(make_region(rw, group));
    TS_TRY(ts_keys_keep(&f->regions, (void *)((uintptr_t)f->region + 1)));
  }
  rw->to->place = f->place;
  TS_TRY(ts_graph_add_fusion(rw->to, target, f->region, f->operands.data, f->operands.count, &first));
  map_results(rw, group, first);
  return TS_SUCCESS;
}

/* True when the group is one op without inlined operands: it needs no region. */
static bool is_single(const fuse *f, const ts_graph *graph, const ts_fuse_group *group) {
  const ts_op *op = ts_graph_op(graph, group->root);
  if (group->members > 1) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_op_id maker = ts_graph_value(graph, op->operands[i])->op;
    if (maker != TS_NO_ID && f->plan.ops[maker].inlined) return false;
  }
  return true;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  const fuse *f = rw->context;
  const ts_fuse_op *state = &f->plan.ops[id];
  if (state->alone) return ts_rewrite_copy(rw, id, target);
  if (state->group == TS_NO_GROUP) return TS_SUCCESS;
  const ts_fuse_group *group = &f->plan.groups.data[state->group];
  if (group->position != id) return TS_SUCCESS;
  return is_single(f, rw->from, group) ? ts_rewrite_copy(rw, id, target) : make_fusion(rw, state->group, target);
}

/* True when all values of the region are scalars. Such regions are compiled whole, and regions of fusions and
 * reductions hold no ops to fuse. */
static bool is_scalar_region(const ts_graph *graph, ts_region_id id) {
  const ts_region *region = ts_graph_region(graph, id);
  for (size_t i = 0; i < region->params.count; i++) {
    if (ts_graph_value(graph, region->params.data[i])->shape->rank > 0) return false;
  }
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    for (uint32_t r = 0; r < op->result_count; r++) {
      if (ts_graph_value(graph, op->first_result + r)->shape->rank > 0) return false;
    }
  }
  return true;
}

static bool keeps_regions(const ts_graph *graph, const ts_op *op) {
  ts_region_id regions[2];
  size_t count = ts_op_regions(op, regions);
  if (op->code == TS_OP_FUSION || op->code == TS_OP_REDUCE) return true;
  for (size_t i = 0; i < count; i++) {
    if (!is_scalar_region(graph, regions[i])) return false;
  }
  return true;
}

static ts_status enter(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  fuse *f = rw->context;
  if (source == TS_ROOT) TS_TRY(ts_graph_reserve(rw->to, 2 * rw->from->values.count, 2 * rw->from->ops.count));
  const ts_region *region = ts_graph_region(rw->from, source);
  (void)target;
  if (region->parent == TS_NO_ID || !keeps_regions(rw->from, ts_graph_op(rw->from, region->parent)))
    return ts_fuse_plan_region(&f->plan, source);
  for (size_t i = 0; i < region->ops.count; i++) f->plan.ops[region->ops.data[i]].alone = true;
  return TS_SUCCESS;
}

ts_status ts_pass_fuse(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  fuse f = {0};
  uint32_t *uses = NULL;
  ts_rewrite rw = {.visit = visit, .enter = enter, .context = &f};
  *out = NULL;
  ts_status status = ts_fuse_plan_init(&f.plan, in);
  /* A plan leaves out dead ops of its region. Regions that are copied without a plan may hold dead ops as well. */
  if (!status && in->regions.count > 1) status = ts_liveness_count(in, &uses);
  rw.uses = uses;
  if (!status) status = TS_NEW_ARRAY(in->values.count, &f.inside);
  if (!status) status = TS_NEW_ARRAY(in->values.count, &f.stamp);
  if (!status) status = ts_rewrite_run(&rw, in, options, out);
  ts_fuse_plan_deinit(&f.plan);
  ts_free(uses);
  ts_free(f.inside);
  ts_free(f.stamp);
  TS_VEC_FREE(&f.operands);
  TS_VEC_FREE(&f.results);
  ts_keys_deinit(&f.regions);
  return status;
}
