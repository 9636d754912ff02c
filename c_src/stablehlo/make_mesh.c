/* The mesh of a module for several partitions, its shardings, and which axes of the mesh the groups of a collective
 * are along. */
#include "stablehlo/make.h"

#include <stdlib.h>
#include <string.h>

/* ---- what needs to know its partition */

static mlir_func *find_callee(const make_state *r, const mlir_op *op) {
  static const char *const names[] = {"callee", "decomposition"};
  const mlir_attr *callee = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !callee; i++) callee = mlir_op_attr(op, names[i]);
  if (!callee) callee = make_positional(op, 0);
  return callee ? make_find_func(r, callee->token) : NULL;
}

static bool is_call(const mlir_op *op) {
  return mlir_token_is(op->name, "call") || mlir_token_is(op->name, "func.call") ||
         mlir_token_is(op->name, "stablehlo.composite");
}

bool make_is_placed(const make_state *r, const mlir_op *op) {
  const mlir_func *callee = is_call(op) ? find_callee(r, op) : NULL;
  return (callee && callee->is_placed) || mlir_token_is(op->name, "sdy.manual_computation") ||
         mlir_token_is(op->name, "stablehlo.partition_id");
}

static void find_placed(const make_state *r, mlir_func *func, int depth);

/* Calls and regions that are deeper than the limit are refused when they are made. */
static bool is_region_placed(const make_state *r, const mlir_region *region, int depth) {
  bool placed = false;
  for (size_t i = 0; depth < MAKE_MOST_DEPTH && i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    mlir_func *callee = is_call(op) ? find_callee(r, op) : NULL;
    if (callee) find_placed(r, callee, depth + 1);
    placed = placed || make_is_placed(r, op);
    for (size_t j = 0; j < op->region_count; j++) placed = is_region_placed(r, &op->regions[j], depth + 1) || placed;
  }
  return placed;
}

/* Each function is looked at once. */
static void find_placed(const make_state *r, mlir_func *func, int depth) {
  if (func->is_seen) return;
  func->is_seen = true;
  func->is_placed = is_region_placed(r, &func->body, depth);
}

/* ---- the mesh */

/* Other numbers of devices than 0, 1, 2 would place the parts elsewhere. */
static ts_status check_devices(const mlir_attr *ids) {
  for (size_t i = 0; i < ids->count; i++) {
    int64_t id;
    TS_TRY(mlir_attr_int(&ids->items[i], &id));
    if (id != (int64_t)i)
      return mlir_error(TS_UNIMPLEMENTED, ids->token, "a mesh whose devices are in another order cannot be read");
  }
  return TS_SUCCESS;
}

static ts_status read_axes(const mlir_mesh *from, ts_mesh *out) {
  *out = (ts_mesh){0};
  for (size_t i = 0; i < from->axes.count; i++) {
    const mlir_attr *axis = &from->axes.items[i];
    int64_t size;
    if (axis->kind == MLIR_ATTR_LIST) { /* the last item */
      TS_TRY(check_devices(axis));
      continue;
    }
    TS_TRY(mlir_attr_int(axis, &size));
    if (out->rank == TS_MAX_MESH_AXES || size < 1 || size > TS_MAX_PARTITIONS)
      return mlir_error(TS_UNIMPLEMENTED, axis->token, "a mesh has at most %d axes of 1 to %d partitions",
                        TS_MAX_MESH_AXES, TS_MAX_PARTITIONS);
    TS_TRY(ts_mesh_set_name(out->axis_names[out->rank], axis->name.text, axis->name.length));
    out->sizes[out->rank++] = (int32_t)size;
  }
  if (out->rank == 0) return TS_SUCCESS;
  TS_TRY(ts_mesh_set_name(out->name, from->name.text, from->name.length));
  return ts_mesh_check(out);
}

/* All meshes of a module that are cut at all must have the same axes. */
static bool is_same(const ts_mesh *a, const ts_mesh *b) {
  bool same = a->rank == b->rank;
  for (int32_t i = 0; same && i < a->rank; i++)
    same = a->sizes[i] == b->sizes[i] && strcmp(a->axis_names[i], b->axis_names[i]) == 0;
  return same;
}

ts_status make_find_mesh(const make_state *r, ts_mesh *out) {
  *out = (ts_mesh){0};
  for (size_t i = 0; i < r->module.mesh_count; i++) {
    const mlir_mesh *mesh = &r->module.meshes[i];
    ts_mesh one;
    if (mesh->axes.kind != MLIR_ATTR_DICT)
      return mlir_error(TS_UNIMPLEMENTED, mesh->name, "a mesh of this form cannot be read");
    TS_TRY(ts_error_context(read_axes(mesh, &one), "mesh @%.*s", (int)mesh->name.length, mesh->name.text));
    if (ts_mesh_partitions(&one) == 1) continue;
    if (out->rank && !is_same(&one, out))
      return mlir_error(TS_UNIMPLEMENTED, mesh->name, "a module with two meshes cannot be read");
    *out = one;
  }
  return TS_SUCCESS;
}

ts_status make_find_partitions(const make_state *r, const ts_mesh *mesh, int64_t *out) {
  const mlir_attr *count = mlir_find_attr(r->module.attrs.items, r->module.attrs.count, "mhlo.num_partitions");
  *out = ts_mesh_partitions(mesh);
  if (!count) return TS_SUCCESS;
  TS_TRY(mlir_attr_int(count, out));
  if (mesh->rank == 0 || *out == ts_mesh_partitions(mesh)) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, count->token, "the module is for %lld partitions, and its mesh has %d",
                    (long long)*out, ts_mesh_partitions(mesh));
}

ts_status make_begin_local(make_state *r, mlir_func *main) {
  ts_mesh mesh;
  int64_t partitions;
  if (r->module.mesh_count == 0) return TS_SUCCESS;
  find_placed(r, main, 0);
  if (!main->is_placed) return TS_SUCCESS;
  TS_TRY(make_find_mesh(r, &mesh));
  TS_TRY(make_find_partitions(r, &mesh, &partitions));
  if (mesh.rank == 0) return TS_SUCCESS;
  if (partitions > MAKE_MOST_PARTITIONS)
    return ts_error(TS_UNIMPLEMENTED, "the module is for %lld partitions, and at most %d can be read",
                    (long long)partitions, MAKE_MOST_PARTITIONS);
  r->mesh = mesh;
  r->mesh.partitioned = true;
  return ts_graph_set_mesh(r->graph, &r->mesh);
}

/* ---- shardings */

static ts_status find_axis(const ts_mesh *mesh, const mlir_attr *axis, int64_t *out) {
  if (axis->kind != MLIR_ATTR_WORD)
    return mlir_error(TS_UNIMPLEMENTED, axis->token, "a dim that a part of an axis cuts cannot be read");
  for (*out = 0; *out < mesh->rank; ++*out)
    if (mlir_token_is(axis->token, mesh->axis_names[*out])) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, axis->token, "the mesh has no such axis");
}

ts_status make_read_axes(const ts_mesh *mesh, const mlir_attr *list, unsigned *out) {
  *out = 0;
  for (size_t i = 0; i < list->count; i++) {
    int64_t axis;
    TS_TRY(find_axis(mesh, &list->items[i], &axis));
    *out |= 1u << axis;
  }
  return TS_SUCCESS;
}

ts_status make_read_sharding(const ts_mesh *mesh, const mlir_attr *attr, const ts_shape *shape, unsigned allowed,
                             ts_sharding *out) {
  ts_dims axes = {0}, dims = {0};
  if (attr->kind != MLIR_ATTR_LIST)
    return mlir_error(TS_UNIMPLEMENTED, attr->token, "a sharding of this form cannot be read");
  if (attr->count != (size_t)shape->rank)
    return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a sharding has %zu dims, and the value has %d", attr->count,
                      shape->rank);
  for (size_t d = 0; d < attr->count; d++)
    for (size_t i = 0; i < attr->items[d].count; i++) {
      int64_t axis;
      TS_TRY(find_axis(mesh, &attr->items[d].items[i], &axis));
      if (!(allowed >> axis & 1)) continue;
      if (axes.rank == TS_MAX_MESH_AXES)
        return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a sharding has more cuts than the mesh has axes");
      axes.dims[axes.rank++] = axis;
      dims.dims[dims.rank++] = (int64_t)d;
    }
  ts_shape known = {.rank = shape->rank}; /* any cut divides an unknown size: 0 stands for it */
  for (int32_t d = 0; d < shape->rank; d++) known.dims[d] = shape->dims[d] < 0 ? 0 : shape->dims[d];
  ts_status status = ts_sharding_make(mesh, &axes, &dims, &known, out);
  return status ? ts_error_context(status, "%s: a sharding", MLIR_PLACE(attr->token)) : TS_SUCCESS;
}

const mlir_attr *make_find_sharding(const mlir_attr *attrs) {
  return attrs ? mlir_find_attr(attrs->items, attrs->count, "sdy.sharding") : NULL;
}

/* ---- results without a sharding: the sharding is found where the value is made */

/* Cuts the number off a name: "3#1" is the result 1 of the op with the name "3". */
static size_t split_name(mlir_token *name) {
  const char *sign = memchr(name->text, '#', name->length);
  const char *end = name->text + name->length;
  size_t number = 0;
  if (!sign) return 0;
  name->length = (size_t)(sign - name->text);
  for (sign++; sign < end && *sign >= '0' && *sign <= '9' && number < UINT32_MAX; sign++)
    number = 10 * number + (size_t)(*sign - '0');
  return number;
}

/* The op that defines a name, and the number of the result. */
static const mlir_op *find_op(const mlir_region *region, mlir_token name, size_t *out_result) {
  const size_t number = split_name(&name);
  for (size_t i = 0; i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    *out_result = number;
    for (size_t k = 0; k < op->result_name_count; k++) {
      if (mlir_tokens_equal(op->results[k], name)) return op;
      *out_result += op->result_counts[k];
    }
  }
  return NULL;
}

static bool is_handed_on(const mlir_op *op) {
  static const char *const names[] = {"sdy.sharding_constraint", "sdy.reshard", "stablehlo.optimization_barrier",
                                      "builtin.unrealized_conversion_cast"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (mlir_token_is(op->name, names[i])) return true;
  return false;
}

/* Calls and ops that hand a value on, up to the computation that makes it. */
enum { MOST_STEPS = 16 };

/* The computation whose result a function returns; NULL if the result is made by another op. */
static const mlir_op *find_maker(const make_state *r, const mlir_region *region, size_t result, size_t *out_result) {
  const mlir_op *op = region->op_count ? &region->ops[region->op_count - 1] : NULL;
  for (int step = 0; op && step < MOST_STEPS; step++) {
    if (result >= op->operand_count) return NULL;
    op = find_op(region, op->operands[result], &result);
    const mlir_func *callee = op && is_call(op) ? find_callee(r, op) : NULL;
    if (op && mlir_token_is(op->name, "sdy.manual_computation")) {
      *out_result = result;
      return op;
    }
    if (callee && callee->body.op_count) {
      region = &callee->body;
      op = &region->ops[region->op_count - 1];
    } else if (!op || !is_handed_on(op)) {
      return NULL;
    }
  }
  return NULL;
}

ts_status make_result_sharding(const make_state *r, const mlir_func *main, size_t result, ts_root_sharding *out) {
  const mlir_type *type = &main->results.data[result];
  const mlir_attr *given = make_find_sharding(main->result_attrs ? &main->result_attrs[result] : NULL);
  size_t made;
  unsigned axes;
  *out = (ts_root_sharding){.given = true};
  if (given) return make_read_sharding(&r->mesh, given, type->shape, ~0u, &out->sharding);
  const mlir_op *maker = find_maker(r, &main->body, result, &made);
  const mlir_attr *outputs = maker ? mlir_op_attr(maker, "out_shardings") : NULL;
  const mlir_attr *manual = maker ? mlir_op_attr(maker, "manual_axes") : NULL;
  if (!outputs || !manual || outputs->kind != MLIR_ATTR_LIST || manual->kind != MLIR_ATTR_LIST ||
      made >= outputs->count)
    return TS_SUCCESS;
  TS_TRY(make_read_axes(&r->mesh, manual, &axes));
  return make_read_sharding(&r->mesh, &outputs->items[made], type->shape, axes, &out->sharding);
}

/* ---- groups of collectives */

static int64_t stride_of(const ts_mesh *mesh, int32_t axis) {
  int64_t stride = 1;
  for (int32_t i = axis + 1; i < mesh->rank; i++) stride *= mesh->sizes[i];
  return stride;
}

/* A group in the order of a collective along axes. */
typedef struct members {
  const ts_mesh *mesh;
  size_t *list;
  size_t count;
  size_t root; /* where the member is that the text names first */
} members;

static int compare_members(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/* A group that begins with its root is put in order. */
static void read_members(const make_group *group, bool is_rooted, members *out) {
  out->count = group->count;
  out->root = 0;
  for (size_t i = 0; i < group->count; i++) out->list[i] = make_member(group, i);
  if (!is_rooted) return;
  const size_t first = out->list[0];
  qsort(out->list, out->count, sizeof *out->list, compare_members);
  while (out->list[out->root] != first) out->root++;
}

/* The axes along which the members differ. The last one changes first. */
static bool find_axes(const members *group, ts_dims *out) {
  const ts_mesh *mesh = group->mesh;
  int64_t found[TS_MAX_MESH_AXES];
  int32_t count = 0;
  for (size_t have = 1; have < group->count;) {
    const int64_t stride = (int64_t)group->list[have] - (int64_t)group->list[0];
    int32_t axis = 0;
    while (axis < mesh->rank && (mesh->sizes[axis] == 1 || stride_of(mesh, axis) != stride)) axis++;
    if (axis == mesh->rank || count == TS_MAX_MESH_AXES) return false;
    found[count++] = axis;
    have *= (size_t)mesh->sizes[axis];
    if (have > group->count) return false;
  }
  out->rank = count;
  for (int32_t i = 0; i < count; i++) out->dims[i] = found[count - 1 - i];
  return true;
}

static bool is_along(const members *group, const ts_dims *axes) {
  const ts_mesh *mesh = group->mesh;
  bool same = group->count == (size_t)ts_mesh_group_size(mesh, axes);
  for (size_t i = 0; same && i < group->count; i++)
    same = group->list[i] == (size_t)ts_mesh_member(mesh, axes, (int32_t)group->list[0], (int32_t)i);
  return same;
}

/* Whether all groups are along the axes of the first partition's group, with their roots at one place. Partitions of a
 * group share it: it is looked at for the one that it names first. */
static bool are_along(const make_groups *groups, members *group, ts_dims *out, size_t *out_root) {
  const bool is_rooted = out_root != NULL;
  size_t root = 0;
  for (size_t own = 0; own < (size_t)groups->grid.partitions; own++) {
    const make_group named = make_find_group(groups, own);
    if (named.count == 0) return false;
    if (own > 0 && make_member(&named, 0) != own) continue;
    read_members(&named, is_rooted, group);
    if (own == 0 && !find_axes(group, out)) return false;
    if (own == 0) root = group->root;
    if (!is_along(group, out) || group->root != root) return false;
  }
  if (out_root) *out_root = root;
  return true;
}

ts_status make_find_axes(const make_call *m, ts_dims *out, size_t *out_root) {
  const make_grid grid = {1, ts_mesh_partitions(&m->r->mesh)};
  members group = {.mesh = &m->r->mesh};
  make_groups groups;
  TS_TRY(make_read_groups(m, &grid, &groups));
  ts_status status = TS_NEW_ARRAY((size_t)grid.partitions, &group.list);
  const bool found = !status && are_along(&groups, &group, out, out_root);
  make_groups_deinit(&groups);
  ts_free(group.list);
  if (status || found) return status;
  return make_error(m, TS_UNIMPLEMENTED, "its groups are not along axes of the mesh");
}

/* ---- permutations */

/* The axes along which the source and the target of any pair differ. */
static unsigned axes_of_pairs(const ts_mesh *mesh, const int64_t *sources) {
  unsigned axes = 0;
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    int32_t to[TS_MAX_MESH_AXES], from[TS_MAX_MESH_AXES];
    if (sources[p] < 0) continue;
    ts_mesh_coordinates(mesh, p, to);
    ts_mesh_coordinates(mesh, (int32_t)sources[p], from);
    for (int32_t i = 0; i < mesh->rank; i++)
      if (to[i] != from[i]) axes |= 1u << i;
  }
  return axes;
}

/* Whether all groups along these axes do the same: `by_index` gets the source of each member, -1 for none. */
static bool is_alike(const ts_mesh *mesh, const ts_dims *axes, const int64_t *sources, int64_t *by_index) {
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    const int32_t own = ts_mesh_index(mesh, axes, p);
    const int64_t source = sources[p] < 0 ? -1 : ts_mesh_index(mesh, axes, (int32_t)sources[p]);
    const bool is_first = ts_mesh_member(mesh, axes, p, 0) == 0;
    if (is_first) by_index[own] = source;
  }
  for (int32_t p = 0; p < ts_mesh_partitions(mesh); p++) {
    const int64_t source = sources[p] < 0 ? -1 : ts_mesh_index(mesh, axes, (int32_t)sources[p]);
    if (by_index[ts_mesh_index(mesh, axes, p)] != source) return false;
  }
  return true;
}

static void list_axes(const ts_mesh *mesh, unsigned set, ts_dims *out) {
  out->rank = 0;
  for (int32_t i = 0; i < mesh->rank; i++)
    if (set >> i & 1) out->dims[out->rank++] = i;
}

static ts_status read_sources(const make_call *m, int64_t *out) {
  const make_grid grid = {1, ts_mesh_partitions(&m->r->mesh)};
  make_groups pairs;
  TS_TRY(make_read_groups(m, &grid, &pairs));
  for (size_t p = 0; p < (size_t)grid.partitions; p++) {
    const make_group pair = make_find_group(&pairs, p);
    out[p] = pair.count ? (int64_t)make_member(&pair, 0) : -1;
  }
  make_groups_deinit(&pairs);
  return TS_SUCCESS;
}

/* `sources` and `by_index` have room for a number of each partition. */
static ts_status find_permutation(const make_call *m, int64_t *sources, int64_t *by_index, ts_attrs *out) {
  const ts_mesh *mesh = &m->r->mesh;
  ts_dims axes;
  TS_TRY(read_sources(m, sources));
  list_axes(mesh, axes_of_pairs(mesh, sources), &axes);
  if (axes.rank == 0 || !is_alike(mesh, &axes, sources, by_index)) {
    list_axes(mesh, (1u << mesh->rank) - 1, &axes);
    if (!is_alike(mesh, &axes, sources, by_index)) return make_error(m, TS_INTERNAL, "a permutation has no axes");
  }
  ts_shape_copy(&out->permute.axes, &axes);
  out->permute.sources.rank = out->permute.targets.rank = 0;
  for (int32_t i = 0; i < ts_mesh_group_size(mesh, &axes); i++) {
    if (by_index[i] < 0) continue;
    if (out->permute.sources.rank == TS_MAX_RANK)
      return make_error(m, TS_UNIMPLEMENTED, "more than %d pairs cannot be read", TS_MAX_RANK);
    out->permute.sources.dims[out->permute.sources.rank++] = by_index[i];
    out->permute.targets.dims[out->permute.targets.rank++] = i;
  }
  return TS_SUCCESS;
}

ts_status make_find_permutation(const make_call *m, ts_attrs *out) {
  const size_t partitions = (size_t)ts_mesh_partitions(&m->r->mesh);
  int64_t *room;
  TS_TRY(TS_NEW_ARRAY(2 * partitions, &room));
  ts_status status = find_permutation(m, room, room + partitions, out);
  ts_free(room);
  return status;
}
