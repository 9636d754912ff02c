#include "shard/reshard.h"

#include <string.h>

/* A sharding as a list of axes for each cut dim: this form is easier to change. */
typedef struct plan {
  ts_sharding now, to;
  int32_t rank;
  ts_reshard_step *out;
  int32_t count;
} plan;

static bool is_free(const ts_sharding *s, uint8_t axis) {
  for (int32_t i = 0; i < s->count; i++)
    if (s->cuts[i].axis == axis) return false;
  return true;
}

static void remove_axis(ts_sharding *s, uint8_t axis) {
  int32_t kept = 0;
  for (int32_t i = 0; i < s->count; i++)
    if (s->cuts[i].axis != axis) s->cuts[kept++] = s->cuts[i];
  s->count = kept;
}

/* The number of present cuts of a dim that are also wanted. */
static int32_t common(const plan *p, int32_t dim) {
  uint8_t a[TS_MAX_MESH_AXES] = {0}, b[TS_MAX_MESH_AXES] = {0};
  int32_t n = ts_sharding_axes(&p->now, dim, a), m = ts_sharding_axes(&p->to, dim, b), i = 0;
  while (i < n && i < m && a[i] == b[i]) i++;
  return i;
}

static ts_reshard_step *add_step(plan *p, ts_reshard_kind kind, int32_t dim) {
  ts_reshard_step *step = &p->out[p->count++];
  step->kind = kind;
  step->axes.rank = 0;
  step->dim = dim;
  step->to = 0;
  return step;
}

/* A dim whose cuts are all wanted gets the next wanted axes that are free. */
static void slice_dim(plan *p, int32_t dim) {
  uint8_t now[TS_MAX_MESH_AXES] = {0}, to[TS_MAX_MESH_AXES] = {0};
  int32_t n = ts_sharding_axes(&p->now, dim, now), m = ts_sharding_axes(&p->to, dim, to);
  if (common(p, dim) != n || n >= m || !is_free(&p->now, to[n])) return;
  ts_reshard_step *step = add_step(p, TS_RESHARD_SLICE, dim);
  for (int32_t i = n; i < m && is_free(&p->now, to[i]); i++) {
    step->axes.dims[step->axes.rank++] = to[i];
    ts_sharding_add(&p->now, (ts_cut){to[i], (uint8_t)dim});
  }
  step->after = p->now;
}

static void slices(plan *p) {
  for (int32_t d = 0; d < p->rank; d++) slice_dim(p, d);
}

/* The last cut of a dim moves to the dim that wants it next. */
static bool exchange(plan *p, int32_t dim, int32_t to) {
  uint8_t from[TS_MAX_MESH_AXES] = {0}, now[TS_MAX_MESH_AXES] = {0}, wanted[TS_MAX_MESH_AXES] = {0};
  int32_t n = ts_sharding_axes(&p->now, dim, from), k = ts_sharding_axes(&p->now, to, now),
          m = ts_sharding_axes(&p->to, to, wanted);
  if (dim == to || n == 0 || n == common(p, dim) || common(p, to) != k || k == m || wanted[k] != from[n - 1])
    return false;
  ts_reshard_step *step = add_step(p, TS_RESHARD_EXCHANGE, dim);
  step->to = to;
  step->axes.dims[step->axes.rank++] = from[n - 1];
  remove_axis(&p->now, from[n - 1]);
  ts_sharding_add(&p->now, (ts_cut){from[n - 1], (uint8_t)to});
  step->after = p->now;
  return true;
}

static bool exchange_any(plan *p) {
  for (int32_t d = 0; d < p->rank; d++)
    for (int32_t t = 0; t < p->rank; t++)
      if (exchange(p, d, t)) return true;
  return false;
}

static void gather_dim(plan *p, int32_t dim) {
  uint8_t now[TS_MAX_MESH_AXES] = {0};
  int32_t n = ts_sharding_axes(&p->now, dim, now), keep = common(p, dim);
  if (n == keep) return;
  ts_reshard_step *step = add_step(p, TS_RESHARD_GATHER, dim);
  for (int32_t i = keep; i < n; i++) {
    step->axes.dims[step->axes.rank++] = now[i];
    remove_axis(&p->now, now[i]);
  }
  step->after = p->now;
}

int32_t ts_reshard_plan(const ts_mesh *mesh, const ts_sharding *from, const ts_sharding *to, int32_t rank,
                        ts_reshard_step out[TS_RESHARD_STEPS]) {
  plan p = {.now = *from, .to = *to, .rank = rank, .out = out};
  (void)mesh;
  slices(&p);
  while (exchange_any(&p)) continue;
  for (int32_t d = 0; d < rank; d++) gather_dim(&p, d);
  slices(&p);
  return p.count;
}

int64_t ts_reshard_cost(const ts_mesh *mesh, const ts_sharding *from, const ts_sharding *to, const ts_shape *shape,
                        ts_dtype dtype) {
  ts_reshard_step steps[TS_RESHARD_STEPS];
  const ts_sharding *now = from;
  int64_t cost = 0;
  if (ts_sharding_equal(from, to)) return 0;
  int32_t count = ts_reshard_plan(mesh, from, to, shape->rank, steps);
  for (int32_t i = 0; i < count; i++) {
    ts_shape part;
    int64_t members = ts_mesh_group_size(mesh, &steps[i].axes);
    ts_sharding_part(mesh, now, shape, &part);
    int64_t bytes = ts_shape_bytes(&part, dtype);
    if (steps[i].kind == TS_RESHARD_GATHER) cost += bytes * (members - 1);
    if (steps[i].kind == TS_RESHARD_EXCHANGE) cost += bytes / members * (members - 1);
    now = &steps[i].after;
  }
  return cost;
}
