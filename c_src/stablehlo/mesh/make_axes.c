/* The meshes of a module as one mesh, and shardings along its axes. A module may have several meshes of the same
 * partitions, as one of 8, and one of 2 by 4. An axis of either is one or several axes of a mesh of 2 by 4.
 *
 * Partitions that differ by one along an axis differ in their number by the axis's *stride*. Its *boundaries* are the
 * stride, and the stride times the size. Boundaries that divide each other make a mesh. */
#include "base/deep.h"
#include "stablehlo/make.h"

#include <string.h>

/* Meshes of a module: more than programs have. Each axis of a sharding is looked up among the axes of all of them. */
enum { MOST_MESHES = 64 };

/* ---- boundaries */

/* Ascending; each divides the next. The first is 1, the last the number of processes. */
typedef struct boundaries {
  int64_t at[TS_MAX_MESH_AXES + 1];
  size_t count;
} boundaries;

/* False if it does not divide, or if there are too many. */
static bool add_boundary(boundaries *b, int64_t at) {
  size_t i = 0;
  while (i < b->count && b->at[i] < at) i++;
  if (i < b->count && b->at[i] == at) return true;
  if (i == 0 || i == b->count || b->count == sizeof b->at / sizeof *b->at) return false;
  if (at % b->at[i - 1] != 0 || b->at[i] % at != 0) return false;
  memmove(&b->at[i + 1], &b->at[i], (b->count - i) * sizeof *b->at);
  b->at[i] = at;
  b->count++;
  return true;
}

static bool add_both(boundaries *b, int64_t stride, int64_t size) {
  return size == 1 || (add_boundary(b, stride) && add_boundary(b, stride * size));
}

static void set_mesh(const boundaries *b, ts_mesh *out) {
  *out = (ts_mesh){.rank = (int32_t)b->count - 1};
  for (int32_t i = 0; i < out->rank; i++) out->sizes[out->rank - 1 - i] = (int32_t)(b->at[i + 1] / b->at[i]);
}

/* ---- the axes of one mesh */

typedef struct axes_of_mesh {
  const mlir_mesh *mesh;
  make_axis of[TS_MAX_MESH_AXES];
  int32_t count;
  int64_t partitions;
  bool is_plain; /* the last axis changes first */
} axes_of_mesh;

/* Where a partition is among the devices, by the strides. */
static int64_t place_of(const axes_of_mesh *axes, int64_t partition) {
  int64_t place = 0;
  for (int32_t i = axes->count - 1; i >= 0; partition /= axes->of[i].size, i--)
    place += partition % axes->of[i].size * axes->of[i].stride;
  return place;
}

/* A list of devices gives the strides by the devices next to the first one. */
static ts_status read_devices(const mlir_attr *ids, axes_of_mesh *out) {
  int64_t step = 1, id;
  if ((int64_t)ids->count != out->partitions)
    return mlir_error(TS_INVALID_ARGUMENT, ids->token, "expected a device for each partition");
  for (int32_t i = out->count - 1; i >= 0; i--) {
    make_axis *axis = &out->of[i];
    if (axis->size > 1) TS_TRY(mlir_attr_int(&ids->items[step], &axis->stride));
    out->is_plain = out->is_plain && (axis->size == 1 || axis->stride == step);
    step *= axis->size;
  }
  for (int64_t p = 0; p < out->partitions; p++) {
    TS_TRY(mlir_attr_int(&ids->items[p], &id));
    const bool is_last = p + 1 == out->partitions;
    if (id < 0 || id >= out->partitions || id != place_of(out, p) || (is_last && id != p))
      return mlir_error(TS_UNIMPLEMENTED, ids->token, "a mesh whose devices are in another order cannot be read");
  }
  return TS_SUCCESS;
}

static ts_status add_axis(const mlir_mesh *from, const mlir_attr *axis, axes_of_mesh *out) {
  int64_t size;
  TS_TRY(mlir_attr_int(axis, &size));
  if (out->count == TS_MAX_MESH_AXES || size < 1 || size > TS_MAX_PARTITIONS ||
      out->partitions * size > TS_MAX_PARTITIONS)
    return mlir_error(TS_UNIMPLEMENTED, axis->token, "a mesh has at most %d axes, and %d partitions", TS_MAX_MESH_AXES,
                      TS_MAX_PARTITIONS);
  out->of[out->count++] = (make_axis){.mesh = from->name, .name = axis->name, .size = size};
  out->partitions *= size;
  return TS_SUCCESS;
}

static ts_status read_axes(const mlir_mesh *from, axes_of_mesh *out) {
  const mlir_attr *devices = NULL;
  int64_t stride = 1;
  *out = (axes_of_mesh){.mesh = from, .partitions = 1, .is_plain = true};
  if (from->axes.kind != MLIR_ATTR_DICT)
    return mlir_error(TS_UNIMPLEMENTED, from->name, "a mesh of this form cannot be read");
  for (size_t i = 0; i < from->axes.count; i++) {
    if (from->axes.items[i].kind == MLIR_ATTR_LIST)
      devices = &from->axes.items[i];
    else
      TS_TRY(add_axis(from, &from->axes.items[i], out));
  }
  for (int32_t i = out->count - 1; i >= 0; i--) {
    out->of[i].stride = stride;
    stride *= out->of[i].size;
  }
  return devices && out->partitions > 1 ? read_devices(devices, out) : TS_SUCCESS;
}

static bool is_same(const axes_of_mesh *a, const axes_of_mesh *b) {
  bool same = a->count == b->count && a->is_plain && b->is_plain;
  for (int32_t i = 0; same && i < a->count; i++)
    same = a->of[i].size == b->of[i].size && mlir_tokens_equal(a->of[i].name, b->of[i].name);
  return same;
}

/* ---- axes by their names */

/* An axis of the mesh of that name; one of any mesh, where the mesh has no name. */
static const make_axis *find_named(const make_state *r, mlir_token mesh, mlir_token name) {
  const make_axis *found = NULL;
  for (size_t i = 0; i < r->axis_count; i++) {
    const make_axis *axis = &r->axes[i];
    if (!mlir_tokens_equal(axis->name, name)) continue;
    if (mlir_tokens_equal(axis->mesh, mesh)) return axis;
    if (mesh.kind != MLIR_SYMBOL && !found) found = axis;
  }
  return found;
}

/* Of an axis of 8, "x":(2)2 is the part of size 2 that has a part of size 2 before it, and one of 2 after it: its
 * stride is 2. */
static ts_status take_part(const mlir_attr *part, make_axis *inout) {
  int64_t before, size;
  TS_TRY(mlir_attr_int(&part->items[0], &before));
  TS_TRY(mlir_attr_int(&part->items[1], &size));
  const bool fits = before >= 1 && size >= 1 && before <= inout->size && inout->size % before == 0 &&
                    inout->size / before % size == 0;
  if (!fits) return mlir_error(TS_INVALID_ARGUMENT, part->token, "the axis has no such part");
  inout->stride *= inout->size / before / size;
  inout->size = size;
  return TS_SUCCESS;
}

static ts_status find_axis(const make_state *r, mlir_token mesh, const mlir_attr *attr, make_axis *out) {
  if (attr->kind != MLIR_ATTR_WORD && attr->kind != MLIR_ATTR_PART)
    return mlir_error(TS_UNIMPLEMENTED, attr->token, "an axis of this form cannot be read");
  const make_axis *axis = find_named(r, mesh, attr->token);
  if (!axis) return mlir_error(TS_INVALID_ARGUMENT, attr->token, "the mesh has no such axis");
  *out = *axis;
  return attr->kind == MLIR_ATTR_PART ? take_part(attr, out) : TS_SUCCESS;
}

/* ---- the mesh of the module */

/* All meshes with several partitions are the same: the module's mesh is the last of them, with its names. */
static ts_status keep_mesh(const axes_of_mesh *from, ts_mesh *out) {
  *out = (ts_mesh){.rank = from->count};
  for (int32_t i = 0; i < from->count; i++) {
    TS_TRY(ts_mesh_set_name(out->axis_names[i], from->of[i].name.text, from->of[i].name.length));
    out->sizes[i] = (int32_t)from->of[i].size;
  }
  TS_TRY(ts_mesh_set_name(out->name, from->mesh->name.text, from->mesh->name.length));
  return ts_mesh_check(out);
}

/* Room for the axes of all meshes. */
static ts_status begin_axes(make_state *r) {
  const mlir_module *module = &r->module;
  if (module->mesh_count > MOST_MESHES)
    return mlir_error(TS_UNIMPLEMENTED, module->meshes[MOST_MESHES].name,
                      "the module has %zu meshes, expected at most %d", module->mesh_count, MOST_MESHES);
  return TS_ARENA_ARRAY(&r->arena, module->mesh_count * TS_MAX_MESH_AXES + 1, &r->axes);
}

static ts_status join_meshes(const make_state *r, int64_t partitions, boundaries *out) {
  *out = (boundaries){.at = {1, partitions}, .count = 2};
  for (size_t i = 0; i < r->axis_count; i++)
    if (!add_both(out, r->axes[i].stride, r->axes[i].size))
      return mlir_error(TS_UNIMPLEMENTED, r->axes[i].mesh, "a module whose meshes have no common axes cannot be read");
  return TS_SUCCESS;
}

/* ---- a mesh whose axes are the parts of axes that shardings name */

/* Attributes that are looked at: bytecode may name one many times. */
enum { MOST_ATTRIBUTES = 10000000 };

typedef struct part_search {
  const make_state *r;
  boundaries *b;
  size_t visited;
} part_search;

/* Parts that do not fit the mesh, or one another, are an error where their sharding is read. */
static void add_part(const part_search *s, mlir_token mesh, const mlir_attr *part) {
  boundaries found = *s->b;
  make_axis axis = {0};
  if (ts_status_consume_ok(find_axis(s->r, mesh, part, &axis)) && add_both(&found, axis.stride, axis.size))
    *s->b = found;
}

/* A sharding has the name of its mesh as its token. */
static void find_parts(part_search *s, mlir_token mesh, const mlir_attr *attr) {
  if (s->visited++ >= MOST_ATTRIBUTES) return;
  if (attr->kind == MLIR_ATTR_PART) add_part(s, mesh, attr);
  if (attr->kind != MLIR_ATTR_LIST && attr->kind != MLIR_ATTR_DICT) return;
  if (attr->token.kind == MLIR_SYMBOL) mesh = attr->token;
  for (size_t i = 0; i < attr->count; i++) find_parts(s, mesh, &attr->items[i]);
}

static void find_parts_of(part_search *s, const mlir_attr *attrs, size_t count) {
  for (size_t i = 0; attrs && i < count; i++) find_parts(s, (mlir_token){0}, &attrs[i]);
}

static void find_parts_in(part_search *s, const mlir_region *region, int depth) {
  for (size_t i = 0; depth < MAKE_MOST_DEPTH && i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    find_parts_of(s, op->attrs, op->attr_count);
    for (size_t j = 0; j < op->region_count; j++) find_parts_in(s, &op->regions[j], depth + 1);
  }
}

static ts_status search_on_stack(void *context) {
  part_search *s = context;
  for (size_t i = 0; i < s->r->module.count; i++) {
    const mlir_func *func = &s->r->module.funcs[i];
    find_parts_of(s, func->body.param_attrs, func->body.param_count);
    find_parts_of(s, func->result_attrs, func->results.count);
    find_parts_in(s, &func->body, 0);
  }
  return TS_SUCCESS;
}

static ts_status add_all_parts(const make_state *r, boundaries *b) {
  return ts_deep_call(MAKE_MOST_DEPTH, search_on_stack, &(part_search){.r = r, .b = b});
}

ts_status make_find_mesh(make_state *r) {
  axes_of_mesh one, last = {0};
  boundaries b;
  bool differ = false;
  r->base = (ts_mesh){0};
  TS_TRY(begin_axes(r));
  for (size_t i = 0; i < r->module.mesh_count; i++) {
    const mlir_token name = r->module.meshes[i].name;
    ts_status status = read_axes(&r->module.meshes[i], &one);
    if (status) return ts_error_context(status, "mesh @%.*s", (int)name.length, name.text);
    for (int32_t k = 0; k < one.count; k++) r->axes[r->axis_count++] = one.of[k];
    if (one.partitions == 1) continue;
    if (last.count && one.partitions != last.partitions)
      return mlir_error(TS_INVALID_ARGUMENT, name, "a mesh has %lld partitions, and another one %lld",
                        (long long)one.partitions, (long long)last.partitions);
    differ = differ || !one.is_plain || (last.count && !is_same(&one, &last));
    last = one;
  }
  if (last.count == 0) return TS_SUCCESS;
  TS_TRY(join_meshes(r, last.partitions, &b));
  const size_t before = b.count;
  TS_TRY(add_all_parts(r, &b));
  if (!differ && b.count == before) return keep_mesh(&last, &r->base);
  set_mesh(&b, &r->base);
  return TS_SUCCESS;
}

/* ---- a mesh that has the groups of collectives along its axes */

/* Adds the boundaries of a group, if it is along axes that are possible. The members ascend. */
static void add_group(const size_t *members, size_t count, boundaries *b) {
  boundaries found = *b;
  for (size_t have = 1; have < count;) {
    const int64_t stride = (int64_t)members[have] - (int64_t)members[0];
    int64_t size = 2;
    while (have * (size_t)size < count && (int64_t)(members[have * (size_t)size] - members[0]) == stride * size) size++;
    if (!add_both(&found, stride, size)) return;
    have *= (size_t)size;
  }
  *b = found;
}

/* Processes of a group share it: it is looked at for the one that it names first. */
static void add_groups(const make_groups *groups, size_t processes, size_t *room, boundaries *b) {
  for (size_t own = 0; own < processes; own++) {
    const make_group group = make_find_group(groups, own);
    if (group.count == 0 || make_member(&group, 0) != own) continue;
    make_sort_members(&group, room);
    add_group(room, group.count, b);
  }
}

/* Groups that cannot be read are an error where the op is made. */
static ts_status add_collective(make_state *r, const mlir_op *op, boundaries *b) {
  const make_call m = {.r = r, .op = op};
  const make_grid grid = make_processes(r);
  const size_t count = (size_t)make_count_processes(&grid);
  make_groups groups;
  size_t *room = NULL;
  ts_status status = make_read_groups(&m, &grid, &groups);
  if (ts_status_code(status) == TS_RESOURCE_EXHAUSTED) return status;
  if (status) {
    ts_status_free(status);
    return TS_SUCCESS;
  }
  status = TS_NEW_ARRAY(count, &room);
  if (!status && !groups.is_pairs) add_groups(&groups, count, room, b);
  make_groups_deinit(&groups);
  ts_free(room);
  return status;
}

/* With the mesh that there is now. */
static ts_status check_collective(make_state *r, const mlir_op *op) {
  const make_call m = {.r = r, .op = op};
  ts_dims axes;
  size_t root;
  bool found = false;
  if (mlir_token_is(op->name, "stablehlo.collective_permute")) return TS_SUCCESS;
  ts_status status =
      make_find_axes(&m, mlir_token_is(op->name, "stablehlo.collective_broadcast") ? &root : NULL, &axes, &found);
  if (ts_status_code(status) == TS_RESOURCE_EXHAUSTED) return status;
  ts_status_free(status);
  r->has_other_groups = r->has_other_groups || !found;
  return TS_SUCCESS;
}

/* Adds boundaries for the collectives of a region; NULL: looks whether their groups are along axes. */
static ts_status visit(make_state *r, const mlir_region *region, int depth, boundaries *b) {
  for (size_t i = 0; depth < MAKE_MOST_DEPTH && i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    if (make_find(op->name) == make_in_collective) TS_TRY(b ? add_collective(r, op, b) : check_collective(r, op));
    for (size_t j = 0; j < op->region_count; j++) TS_TRY(visit(r, &op->regions[j], depth + 1, b));
  }
  return TS_SUCCESS;
}

/* The boundaries of the base's axes, and the one between replicas and partitions. */
static ts_status begin_boundaries(const make_state *r, const make_grid *grid, boundaries *out) {
  const int64_t processes = make_count_processes(grid);
  int64_t stride = 1;
  bool fits = true;
  *out = (boundaries){.at = {1, processes}, .count = 2};
  for (int32_t i = r->base.rank - 1; i >= 0; i--) {
    fits = fits && add_both(out, stride, r->base.sizes[i]);
    stride *= r->base.sizes[i];
  }
  if (fits && add_boundary(out, grid->partitions)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "the module has a mesh of %d axes, and %lld replicas: at most %d axes can be read",
                  r->base.rank, (long long)grid->replicas, TS_MAX_MESH_AXES);
}

ts_status make_refine_mesh(make_state *r) {
  const make_grid grid = make_processes(r);
  boundaries b;
  TS_TRY(begin_boundaries(r, &grid, &b));
  const size_t before = b.count;
  for (size_t i = 0; i < r->module.count; i++) TS_TRY(visit(r, &r->module.funcs[i].body, 0, &b));
  if (grid.replicas > 1 || b.count > before || r->base.rank == 0) set_mesh(&b, &r->base);
  if (ts_mesh_partitions(&r->base) != make_count_processes(&grid))
    return ts_error(TS_INTERNAL, "the mesh has %d partitions, and there are %lld processes",
                    ts_mesh_partitions(&r->base), (long long)make_count_processes(&grid));
  for (size_t i = 0; i < r->module.count; i++) TS_TRY(visit(r, &r->module.funcs[i].body, 0, NULL));
  return TS_SUCCESS;
}

/* ---- shardings */

/* The axes of the base that an axis of the module is, or a part of one, the first one first. */
static ts_status find_axes(const make_state *r, mlir_token mesh, const mlir_attr *attr, ts_dims *out) {
  const ts_mesh *base = &r->base;
  int64_t stride = 1, size = 1;
  make_axis found, *axis = &found;
  TS_TRY(find_axis(r, mesh, attr, &found));
  *out = (ts_dims){0};
  for (int32_t i = base->rank - 1; i >= 0; i--) {
    const bool is_inside = base->sizes[i] > 1 && stride >= axis->stride && stride < axis->stride * axis->size;
    const bool is_named = base->sizes[i] == 1 && axis->size == 1 && mlir_token_is(axis->name, base->axis_names[i]);
    stride *= base->sizes[i];
    if (!is_inside && !is_named) continue;
    memmove(&out->dims[1], out->dims, (size_t)out->rank++ * sizeof *out->dims);
    out->dims[0] = i;
    size *= base->sizes[i];
  }
  if (size == axis->size) return TS_SUCCESS;
  return mlir_error(TS_UNIMPLEMENTED, attr->token, "parts of an axis that do not divide each other cannot be read");
}

ts_status make_read_axes(const make_state *r, mlir_token mesh, const mlir_attr *list, unsigned *out) {
  *out = 0;
  for (size_t i = 0; i < list->count; i++) {
    ts_dims axes;
    TS_TRY(find_axes(r, mesh, &list->items[i], &axes));
    for (int32_t k = 0; k < axes.rank; k++) *out |= 1u << axes.dims[k];
  }
  return TS_SUCCESS;
}

/* The cuts of dim `d`. */
static ts_status add_cuts(const make_state *r, const mlir_attr *attr, size_t d, unsigned allowed, ts_dims cuts[2]) {
  for (size_t i = 0; i < attr->items[d].count; i++) {
    ts_dims axes;
    TS_TRY(find_axes(r, attr->token, &attr->items[d].items[i], &axes));
    for (int32_t k = 0; k < axes.rank; k++) {
      if (!(allowed >> axes.dims[k] & 1)) continue;
      if (cuts[0].rank == TS_MAX_MESH_AXES)
        return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a sharding has more cuts than the mesh has axes");
      cuts[0].dims[cuts[0].rank++] = axes.dims[k];
      cuts[1].dims[cuts[1].rank++] = (int64_t)d;
    }
  }
  return TS_SUCCESS;
}

ts_status make_read_sharding(const make_state *r, const mlir_attr *attr, const ts_shape *shape, unsigned allowed,
                             ts_sharding *out) {
  ts_dims cuts[2] = {{0}, {0}};
  if (attr->kind == MLIR_ATTR_TERMS)
    return mlir_error(TS_UNIMPLEMENTED, attr->token,
                      "a value whose terms are not summed (unreduced axes) cannot be read");
  if (attr->kind != MLIR_ATTR_LIST)
    return mlir_error(TS_UNIMPLEMENTED, attr->token, "a sharding of this form cannot be read");
  if (attr->count != (size_t)shape->rank)
    return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a sharding has %zu dims, and the value has %d", attr->count,
                      shape->rank);
  for (size_t d = 0; d < attr->count; d++) TS_TRY(add_cuts(r, attr, d, allowed, cuts));
  ts_shape known = {.rank = shape->rank}; /* any cut divides an unknown size: 0 stands for it */
  for (int32_t d = 0; d < shape->rank; d++) known.dims[d] = shape->dims[d] < 0 ? 0 : shape->dims[d];
  ts_status status = ts_sharding_make(&r->base, &cuts[0], &cuts[1], &known, out);
  return status ? ts_error_context(status, "%s: a sharding", MLIR_PLACE(attr->token)) : TS_SUCCESS;
}
