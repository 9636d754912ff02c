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
}

/* ---- assignments ---- */

static int64_t parts_of(const ts_mesh *mesh, const uint8_t *axes, int32_t count) {
  int64_t parts = 1;
  for (int32_t i = 0; i < count; i++) parts *= mesh->sizes[axes[i]];
  return parts;
}

/* Appends the axes that the factor does not have yet, if it has those before them. */
static void extend(const ts_mesh *mesh, const ts_factors *f, int32_t factor, const uint8_t *axes, int32_t count,
                   ts_assignment *a, unsigned *used) {
  int32_t have = a->factors[factor].count;
  if (count <= have || memcmp(axes, a->factors[factor].axes, (size_t)have) != 0) return;
  for (int32_t i = have; i < count; i++) {
    int64_t parts = parts_of(mesh, axes, i + 1);
    if ((*used >> axes[i] & 1) || f->sizes[factor] % parts != 0) return;
    a->factors[factor].axes[a->factors[factor].count++] = axes[i];
    *used |= 1u << axes[i];
  }
}

static void join_tensor(const ts_mesh *mesh, const ts_factors *f, int32_t tensor, const ts_sharding *sharding,
                        ts_assignment *a, unsigned *used) {
  uint8_t axes[TS_MAX_MESH_AXES];
  for (int32_t i = 0; i < sharding->count; i++) {
    int32_t dim = sharding->cuts[i].dim, factor = f->of[tensor][dim];
    if (i > 0 && sharding->cuts[i - 1].dim == dim) continue;
    if (factor >= 0) extend(mesh, f, factor, axes, ts_sharding_axes(sharding, dim, axes), a, used);
  }
}

/* The largest tensor that was not taken yet. */
static int32_t next_tensor(const ts_factors *f, const bool *taken) {
  int32_t best = -1;
  int64_t most = -1;
  for (int32_t t = 0; t < f->tensors; t++) {
    int64_t elements = ts_shape_elements(f->shapes[t]);
    if (taken[t] || elements <= most) continue;
    best = t;
    most = elements;
  }
  return best;
}

void ts_assignment_join(const ts_mesh *mesh, const ts_factors *f, const ts_sharding *const *tensors, int32_t first,
                        ts_assignment *out) {
  bool taken[TS_FACTOR_TENSORS] = {false};
  unsigned used = 0;
  for (int32_t i = 0; i < f->count; i++) out->factors[i].count = 0;
  for (int32_t t = first >= 0 ? first : next_tensor(f, taken); t >= 0; t = next_tensor(f, taken)) {
    taken[t] = true;
    join_tensor(mesh, f, t, tensors[t], out, &used);
  }
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

/* What is being found. `round`: 0 only through ops that pass shardings on, 1 also through the others, 2 also from the
 * operand of a broadcast to its result. */
typedef struct finder {
  const ts_graph *graph;
  ts_region_id region;
  ts_shardings *s;
  const ts_factors *rules; /* by op of the region, in order; `has` tells which there are */
  const bool *has;
  int round;
  bool changed;
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

static ts_status update(finder *p, const ts_factors *f, const ts_assignment *a, int32_t tensor, ts_value_id value) {
  ts_sharding wanted, grown;
  if (p->s->closed[value]) return TS_SUCCESS;
  ts_assignment_sharding(f, a, tensor, &wanted);
  grow(p->s->of[value], &wanted, f->shapes[tensor]->rank, &grown);
  if (ts_sharding_equal(&grown, p->s->of[value])) return TS_SUCCESS;
  p->changed = true;
  return ts_shardings_intern(p->s, &grown, &p->s->of[value]);
}

static ts_value_id tensor_value(const ts_op *op, int32_t tensor) {
  return (uint32_t)tensor < op->operand_count ? op->operands[tensor]
                                              : op->first_result + (uint32_t)tensor - op->operand_count;
}

static ts_status visit(finder *p, const ts_op *op, const ts_factors *f) {
  const ts_sharding *shardings[TS_FACTOR_TENSORS];
  ts_assignment a;
  bool broadcast = op->code == TS_OP_BROADCAST;
  if (p->round == 0 && !ts_factors_pass_through(op)) return TS_SUCCESS;
  if (op->code == TS_OP_SHARDING_CONSTRAINT && p->round == 0 && p->s->of[op->first_result]->count == 0)
    return TS_SUCCESS;
  for (int32_t t = 0; t < f->tensors; t++) shardings[t] = p->s->of[tensor_value(op, t)];
  if (broadcast && p->round < 2) shardings[0] = p->s->whole;
  ts_assignment_join(p->s->mesh, f, shardings, -1, &a);
  for (int32_t t = 0; t < f->tensors; t++) TS_TRY(update(p, f, &a, t, tensor_value(op, t)));
  return TS_SUCCESS;
}

static ts_status sweep(finder *p, bool backward, const _Atomic bool *cancel) {
  const ts_region *region = ts_graph_region(p->graph, p->region);
  for (size_t i = 0; i < region->ops.count; i++) {
    size_t at = backward ? region->ops.count - 1 - i : i;
    TS_TRY(ts_check_cancelled(cancel, "the compile"));
    if (p->has[at]) TS_TRY(visit(p, ts_graph_op(p->graph, region->ops.data[at]), &p->rules[at]));
  }
  return TS_SUCCESS;
}

static ts_status run_rounds(finder *p, const _Atomic bool *cancel) {
  for (p->round = 0; p->round < 3; p->round++) {
    do {
      p->changed = false;
      TS_TRY(sweep(p, false, cancel));
      TS_TRY(sweep(p, true, cancel));
    } while (p->changed);
  }
  return TS_SUCCESS;
}

/* ---- what is given ---- */

static ts_status set_given(ts_shardings *s, ts_value_id value, const ts_sharding *sharding, bool close) {
  if (s->closed[value]) return TS_SUCCESS;
  s->closed[value] = close;
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

ts_status ts_shardings_find_in(ts_shardings *s, const ts_graph *graph, ts_region_id id, const _Atomic bool *cancel) {
  const ts_region *region = ts_graph_region(graph, id);
  ts_factors *rules = NULL;
  bool *has = NULL;
  ts_status status = set_constraints(graph, region, s);
  if (!status) status = TS_NEW_ARRAY(region->ops.count, &rules);
  if (!status) status = TS_NEW_ARRAY(region->ops.count, &has);
  for (size_t i = 0; !status && i < region->ops.count; i++)
    has[i] = ts_factors_of(graph, ts_graph_op(graph, region->ops.data[i]), &rules[i]);
  finder p = {.graph = graph, .region = id, .s = s, .rules = rules, .has = has};
  if (!status) status = run_rounds(&p, cancel);
  ts_free(rules);
  ts_free(has);
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
