#include "shard/propagate.h"

#include "base/cancel.h"

#include <string.h>

/* ---- the table ---- */

ts_status ts_shardings_intern(ts_shardings *s, const ts_sharding *sharding, const ts_sharding **out) {
  ts_sharding *kept;
  for (size_t i = 0; i < s->distinct.count; i++) {
    if (!ts_sharding_equal(s->distinct.data[i], sharding)) continue;
    *out = s->distinct.data[i];
    return TS_SUCCESS;
  }
  TS_TRY(ts_arena_copy(&s->arena, sharding, sizeof *sharding, (void **)&kept));
  TS_TRY(TS_VEC_PUSH(&s->distinct, kept));
  *out = kept;
  return TS_SUCCESS;
}

void ts_shardings_deinit(ts_shardings *s) {
  ts_arena_deinit(&s->arena);
  TS_VEC_FREE(&s->distinct);
  ts_free(s->of);
  ts_free(s->closed);
  ts_free(s->changed);
  ts_free(s->rules);
}

/* ---- assignments ---- */

static int64_t parts_of(const ts_mesh *mesh, const uint8_t *axes, int32_t count) {
  int64_t parts = 1;
  for (int32_t i = 0; i < count; i++) parts *= mesh->sizes[axes[i]];
  return parts;
}

typedef struct joiner {
  const ts_mesh *mesh;
  const ts_factors *f;
  ts_assignment *a;
  unsigned used; /* bit i: a factor has axis i of the mesh */
} joiner;

/* Appends the axes that the factor does not have yet, if it has those before them. */
static void extend(joiner *j, int32_t factor, const uint8_t *axes, int32_t count) {
  int32_t have = j->a->factors[factor].count;
  if (count <= have || memcmp(axes, j->a->factors[factor].axes, (size_t)have) != 0) return;
  for (int32_t i = have; i < count; i++) {
    int64_t parts = parts_of(j->mesh, axes, i + 1);
    if ((j->used >> axes[i] & 1) || j->f->sizes[factor] % parts != 0) return;
    j->a->factors[factor].axes[j->a->factors[factor].count++] = axes[i];
    j->used |= 1u << axes[i];
  }
}

static void join_tensor(joiner *j, int32_t tensor, const ts_sharding *sharding) {
  uint8_t axes[TS_MAX_MESH_AXES];
  for (int32_t i = 0; i < sharding->count; i++) {
    int32_t dim = sharding->cuts[i].dim, factor = j->f->of[tensor][dim];
    if (i > 0 && sharding->cuts[i - 1].dim == dim) continue;
    if (factor >= 0) extend(j, factor, axes, ts_sharding_axes(sharding, dim, axes));
  }
}

void ts_assignment_join(const ts_mesh *mesh, const ts_factors *f, const ts_sharding *const *tensors, int32_t first,
                        ts_assignment *out) {
  joiner j = {mesh, f, out, 0};
  for (int32_t i = 0; i < f->count; i++) out->factors[i].count = 0;
  if (first >= 0) join_tensor(&j, first, tensors[first]);
  for (int32_t i = 0; i < f->tensors; i++)
    if (f->by_size[i] != first) join_tensor(&j, f->by_size[i], tensors[f->by_size[i]]);
}

void ts_assignment_sharding(const ts_factors *f, const ts_assignment *a, int32_t tensor, ts_sharding *out) {
  out->count = 0;
  for (int32_t d = 0; d < f->shapes[tensor]->rank; d++) {
    int32_t factor = f->of[tensor][d];
    for (int32_t i = 0; factor >= 0 && i < a->factors[factor].count; i++)
      out->cuts[out->count++] = (ts_cut){a->factors[factor].axes[i], (uint8_t)d};
  }
}

/* ---- propagation ---- */

/* The state of propagation. `round`: 0 only through ops that pass shardings on, 1 also through the others, 2 also from
 * the operand of a broadcast to its result. */
typedef struct finder {
  const ts_graph *graph;
  ts_region_id region;
  ts_shardings *s;
  uint32_t *visited; /* by op of the region, in order: the number of changes that it has seen; 0: none */
  const _Atomic bool *cancel;
  int round;
} finder;

/* Each dim gets the longer list of axes, where one begins with the other. */
static void grow(const ts_sharding *now, const ts_sharding *wanted, int32_t rank, ts_sharding *out) {
  unsigned used = 0;
  out->count = 0;
  for (int32_t i = 0; i < now->count; i++) used |= 1u << now->cuts[i].axis;
  for (int32_t d = 0; d < rank; d++) {
    uint8_t have[TS_MAX_MESH_AXES], more[TS_MAX_MESH_AXES];
    int32_t count = ts_sharding_axes(now, d, have), wants = ts_sharding_axes(wanted, d, more);
    for (int32_t i = 0; i < count; i++) out->cuts[out->count++] = (ts_cut){have[i], (uint8_t)d};
    if (wants <= count || memcmp(have, more, (size_t)count) != 0) continue;
    for (int32_t i = count; i < wants && !(used >> more[i] & 1); i++) {
      out->cuts[out->count++] = (ts_cut){more[i], (uint8_t)d};
      used |= 1u << more[i];
    }
  }
}

static ts_status grow_value(finder *p, ts_value_id value, const ts_sharding *wanted) {
  ts_sharding grown;
  if (p->s->closed[value]) return TS_SUCCESS;
  grow(p->s->of[value], wanted, ts_graph_value(p->graph, value)->shape->rank, &grown);
  if (ts_sharding_equal(&grown, p->s->of[value])) return TS_SUCCESS;
  p->s->changed[value] = ++p->s->changes;
  return ts_shardings_intern(p->s, &grown, &p->s->of[value]);
}

static ts_status update(finder *p, const ts_factors *f, const ts_assignment *a, int32_t tensor, ts_value_id value) {
  ts_sharding wanted;
  ts_assignment_sharding(f, a, tensor, &wanted);
  return grow_value(p, value, &wanted);
}

static ts_value_id tensor_value(const ts_op *op, int32_t tensor) {
  return (uint32_t)tensor < op->operand_count ? op->operands[tensor]
                                              : op->first_result + (uint32_t)tensor - op->operand_count;
}

/* Whether this round adds the op's rule to the rules of the round before. */
static bool is_new(const finder *p, const ts_op *op) {
  return p->round > 0 && (p->round == 1 ? !ts_factors_pass_through(op) : op->code == TS_OP_BROADCAST);
}

/* False when nothing that the op's rule looks at is new. */
static bool must_visit(const finder *p, const ts_op *op, const ts_factors *f, uint32_t seen) {
  if (p->round == 0 && !ts_factors_pass_through(op)) return false;
  for (int32_t t = 0; t < f->tensors; t++)
    if (p->s->changed[tensor_value(op, t)] > seen) return true;
  return false;
}

static ts_status visit(finder *p, const ts_op *op, const ts_factors *f) {
  const ts_sharding *shardings[TS_FACTOR_TENSORS];
  ts_assignment a;
  for (int32_t t = 0; t < f->tensors; t++) shardings[t] = p->s->of[tensor_value(op, t)];
  if (op->code == TS_OP_BROADCAST && p->round < 2) shardings[0] = p->s->whole;
  ts_assignment_join(p->s->mesh, f, shardings, -1, &a);
  for (int32_t t = 0; t < f->tensors; t++) TS_TRY(update(p, f, &a, t, tensor_value(op, t)));
  return TS_SUCCESS;
}

/* ---- loops and branches ---- */

/* Values that are cut alike: before, in and after a loop or branch. */
typedef struct alike {
  ts_value_id values[4];
  int32_t count;
} alike;

static ts_value_id param_of(const finder *p, const ts_op *op, int region, uint32_t i) {
  return ts_graph_region(p->graph, op->attrs->regions.regions[region])->params.data[i];
}

static ts_value_id result_of(const finder *p, const ts_op *op, int region, uint32_t i) {
  return ts_graph_region(p->graph, op->attrs->regions.regions[region])->results.data[i];
}

/* The i-th of a loop's variables; of a branch's or call's operands, then of its results. */
static alike find_alike(const finder *p, const ts_op *op, uint32_t i) {
  uint32_t first = op->code == TS_OP_COND, operands = op->operand_count - first;
  if (op->code == TS_OP_WHILE)
    return (alike){{op->operands[i], op->first_result + i, param_of(p, op, 1, i), result_of(p, op, 1, i)}, 4};
  int last = op->code == TS_OP_COND ? 1 : 0, count = last + 2;
  if (i < operands) return (alike){{op->operands[first + i], param_of(p, op, 0, i), param_of(p, op, last, i)}, count};
  i -= operands;
  return (alike){{op->first_result + i, result_of(p, op, 0, i), result_of(p, op, last, i)}, count};
}

static uint32_t count_alike(const ts_op *op) {
  if (op->code == TS_OP_WHILE) return op->operand_count;
  return op->operand_count - (op->code == TS_OP_COND) + op->result_count;
}

static ts_status unify(finder *p, const alike *a) {
  ts_sharding all = *p->s->of[a->values[0]], more;
  int32_t rank = ts_graph_value(p->graph, a->values[0])->shape->rank;
  for (int32_t i = 1; i < a->count; i++) {
    grow(&all, p->s->of[a->values[i]], rank, &more);
    all = more;
  }
  for (int32_t i = 0; i < a->count; i++) TS_TRY(grow_value(p, a->values[i], &all));
  return TS_SUCCESS;
}

static ts_status unify_all(finder *p, const ts_op *op, uint32_t seen, bool *out_new) {
  *out_new = false;
  for (uint32_t i = 0; i < count_alike(op); i++) {
    alike a = find_alike(p, op, i);
    TS_TRY(unify(p, &a));
    for (int32_t k = 0; k < a.count; k++) *out_new |= p->s->changed[a.values[k]] > seen;
  }
  return TS_SUCCESS;
}

/* Regions whose parameters or results have new shardings are looked at again. */
static ts_status visit_control(finder *p, const ts_op *op, uint32_t *visited) {
  bool new, again;
  TS_TRY(unify_all(p, op, *visited, &new));
  *visited = p->s->changes;
  if (!new) return TS_SUCCESS;
  for (int r = op->code == TS_OP_WHILE; r < (int)ts_op_region_count(op->code); r++)
    TS_TRY(ts_shardings_find_in(p->s, p->graph, op->attrs->regions.regions[r], p->cancel));
  return unify_all(p, op, *visited, &again);
}

/* ---- rounds ---- */

static ts_status visit_once(finder *p, size_t at) {
  ts_op_id id = ts_graph_region(p->graph, p->region)->ops.data[at];
  const ts_op *op = ts_graph_op(p->graph, id);
  if (ts_shardings_are_inside(p->graph, op)) return p->round == 0 ? TS_SUCCESS : visit_control(p, op, &p->visited[at]);
  const ts_factors *f = p->s->rules[id];
  uint32_t changes = p->s->changes;
  if (!f || !must_visit(p, op, f, p->visited[at])) return TS_SUCCESS;
  p->visited[at] = changes; /* its own changes are seen by the next visit */
  return visit(p, op, f);
}

static ts_status sweep(finder *p, bool backward) {
  size_t count = ts_graph_region(p->graph, p->region)->ops.count;
  for (size_t i = 0; i < count; i++) {
    if (i % 64 == 0) TS_TRY(ts_check_cancelled(p->cancel, "the compile"));
    TS_TRY(visit_once(p, backward ? count - 1 - i : i));
  }
  return TS_SUCCESS;
}

static void begin_round(finder *p, int round) {
  const ts_region *region = ts_graph_region(p->graph, p->region);
  p->round = round;
  for (size_t i = 0; i < region->ops.count; i++)
    if (is_new(p, ts_graph_op(p->graph, region->ops.data[i]))) p->visited[i] = 0;
}

static ts_status run_rounds(finder *p) {
  for (int round = 0; round < 3; round++) {
    uint32_t before;
    begin_round(p, round);
    do {
      before = p->s->changes;
      TS_TRY(sweep(p, false));
      TS_TRY(sweep(p, true));
    } while (p->s->changes != before);
  }
  return TS_SUCCESS;
}

/* ---- given shardings ---- */

static ts_status set_given(ts_shardings *s, ts_value_id value, const ts_sharding *sharding, bool close) {
  if (s->closed[value]) return TS_SUCCESS;
  s->closed[value] = close;
  s->changed[value] = ++s->changes;
  return sharding ? ts_shardings_intern(s, sharding, &s->of[value]) : TS_SUCCESS;
}

static ts_status set_constraints(const ts_graph *graph, const ts_region *root, ts_shardings *s) {
  for (size_t i = 0; i < root->ops.count; i++) {
    const ts_op *op = ts_graph_op(graph, root->ops.data[i]);
    ts_sharding sharding;
    if (op->code != TS_OP_SHARDING_CONSTRAINT) continue;
    TS_TRY(ts_sharding_make(&graph->mesh, &op->attrs->sharding.axes, &op->attrs->sharding.dims,
                            ts_graph_value(graph, op->first_result)->shape, &sharding));
    TS_TRY(set_given(s, op->first_result, &sharding, true));
  }
  return TS_SUCCESS;
}

static ts_status start(const ts_graph *graph, ts_shardings *s) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &s->of));
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &s->closed));
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &s->changed));
  TS_TRY(TS_NEW_ARRAY(graph->ops.count, &s->rules));
  TS_TRY(ts_shardings_intern(s, &(ts_sharding){.count = 0}, &s->whole));
  for (size_t i = 0; i < graph->values.count; i++) s->of[i] = s->whole;
  for (size_t i = 0; i < root->params.count; i++)
    TS_TRY(set_given(s, root->params.data[i], ts_graph_sharding(graph, TS_PARAMS, i), true));
  for (size_t i = 0; i < root->results.count; i++)
    TS_TRY(set_given(s, root->results.data[i], ts_graph_sharding(graph, TS_RESULTS, i), false));
  return TS_SUCCESS;
}

ts_status ts_shardings_give(ts_shardings *s, ts_value_id value, const ts_sharding *sharding, bool close) {
  return set_given(s, value, sharding, close);
}

static ts_status find_rules(ts_shardings *s, const ts_graph *graph, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_factors f;
    if (s->rules[region->ops.data[i]]) continue; /* the region was visited before */
    if (ts_factors_of(graph, ts_graph_op(graph, region->ops.data[i]), &f))
      TS_TRY(ts_arena_copy(&s->arena, &f, ts_factors_size(&f), (void **)&s->rules[region->ops.data[i]]));
  }
  return TS_SUCCESS;
}

ts_status ts_shardings_find_in(ts_shardings *s, const ts_graph *graph, ts_region_id id, const _Atomic bool *cancel) {
  const ts_region *region = ts_graph_region(graph, id);
  finder p = {.graph = graph, .region = id, .s = s, .cancel = cancel};
  TS_TRY(set_constraints(graph, region, s));
  TS_TRY(find_rules(s, graph, region));
  TS_TRY(TS_NEW_ARRAY(region->ops.count, &p.visited));
  ts_status status = run_rounds(&p);
  ts_free(p.visited);
  return status;
}

ts_status ts_shardings_find(const ts_graph *graph, const _Atomic bool *cancel, ts_shardings *out) {
  memset(out, 0, sizeof *out);
  out->mesh = &graph->mesh;
  ts_arena_init(&out->arena);
  ts_status status = start(graph, out);
  if (!status) status = ts_shardings_find_in(out, graph, TS_ROOT, cancel);
  if (status) ts_shardings_deinit(out);
  return status;
}
