/* The program of one partition of a module for several ones, how its results are cut, and which axes of the mesh the
 * groups of a collective are along. */
#include "base/deep.h"
#include "stablehlo/make.h"

#include <string.h>

/* ---- what needs to know its partition */

static bool is_call(const mlir_op *op) {
  return mlir_token_is(op->name, "call") || mlir_token_is(op->name, "func.call") ||
         mlir_token_is(op->name, "stablehlo.composite");
}

mlir_func *make_find_callee(const make_state *r, const mlir_op *op) {
  static const char *const names[] = {"callee", "decomposition"};
  const mlir_attr *callee = NULL;
  if (!is_call(op)) return NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !callee; i++) callee = mlir_op_attr(op, names[i]);
  if (!callee) callee = make_positional(op, 0);
  return callee ? make_find_func(r, callee->token) : NULL;
}

bool make_is_placed(const make_state *r, const mlir_op *op) {
  const mlir_func *callee = make_find_callee(r, op);
  return (callee && callee->is_placed) || mlir_token_is(op->name, "sdy.manual_computation") ||
         mlir_token_is(op->name, "stablehlo.partition_id") ||
         (r->processes.replicas > 1 && mlir_token_is(op->name, "stablehlo.replica_id")) ||
         (r->has_other_groups && make_find(op->name) == make_in_collective);
}

static void find_placed(const make_state *r, mlir_func *func, int depth);

/* Calls and regions that are deeper than the limit are refused when they are made. */
static bool is_region_placed(const make_state *r, mlir_func *func, const mlir_region *region, int depth) {
  bool placed = false;
  for (size_t i = 0; depth < MAKE_MOST_DEPTH && i < region->op_count; i++) {
    const mlir_op *op = &region->ops[i];
    mlir_func *callee = make_find_callee(r, op);
    if (callee) find_placed(r, callee, depth + 1);
    placed = placed || make_is_placed(r, op);
    func->has_collective =
        func->has_collective || (callee && callee->has_collective) || make_find(op->name) == make_in_collective;
    for (size_t j = 0; j < op->region_count; j++)
      placed = is_region_placed(r, func, &op->regions[j], depth + 1) || placed;
  }
  return placed;
}

/* Each function is looked at once. */
static void find_placed(const make_state *r, mlir_func *func, int depth) {
  if (func->is_seen) return;
  func->is_seen = true;
  func->is_placed = is_region_placed(r, func, &func->body, depth);
}

/* ---- for how many processes */

ts_status make_find_partitions(const make_state *r, int64_t *out) {
  const mlir_attr *count = mlir_find_attr(r->module.attrs.items, r->module.attrs.count, "mhlo.num_partitions");
  *out = ts_mesh_partitions(&r->base);
  if (!count) return TS_SUCCESS;
  TS_TRY(mlir_attr_int(count, out));
  if (r->base.rank == 0 || *out == ts_mesh_partitions(&r->base)) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, count->token, "the module is for %lld partitions, and its mesh has %d",
                    (long long)*out, ts_mesh_partitions(&r->base));
}

make_grid make_processes(const make_state *r) {
  return r->processes.partitions ? r->processes : (make_grid){1, ts_mesh_partitions(&r->base)};
}

static ts_status check_count(const make_state *r, int64_t partitions) {
  if (partitions > MAKE_MOST_PARTITIONS)
    return ts_error(TS_UNIMPLEMENTED, "the module is for %lld partitions, and at most %d can be read",
                    (long long)partitions, MAKE_MOST_PARTITIONS);
  if (!r->processes.partitions || r->base.rank == 0 || partitions == r->processes.partitions) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the module is for %lld partitions, and it is compiled for %lld",
                  (long long)partitions, (long long)r->processes.partitions);
}

/* The graph is the program of one process. */
static ts_status begin_one(make_state *r) {
  r->mesh = r->base;
  r->mesh.partitioned = true;
  return ts_graph_set_mesh(r->graph, &r->mesh);
}

/* The graph is on whole values: with a mesh if the program is compiled for several partitions. */
static ts_status begin_whole(make_state *r) {
  if (r->processes.partitions < 2) return TS_SUCCESS;
  r->keeps_shardings = true;
  return ts_graph_set_mesh(r->graph, &r->base);
}

/* Looks at all functions again: collectives of other groups have been found. */
static void find_placed_again(make_state *r, mlir_func *main) {
  for (size_t i = 0; i < r->module.count; i++) r->module.funcs[i].is_seen = false;
  find_placed(r, main, 0);
}

typedef struct begin_call {
  make_state *r;
  mlir_func *main;
} begin_call;

static ts_status begin_on_stack(void *context) {
  const begin_call *call = context;
  make_state *r = call->r;
  mlir_func *main = call->main;
  int64_t partitions;
  const bool is_several = make_count_processes(&r->processes) > 1;
  find_placed(r, main, 0);
  if (!main->is_placed && !is_several) return TS_SUCCESS;
  if (!r->axes) TS_TRY(make_find_mesh(r)); /* else its shardings are read, too */
  TS_TRY(make_find_partitions(r, &partitions));
  TS_TRY(check_count(r, partitions));
  if (!is_several && r->base.rank == 0) return TS_SUCCESS;
  TS_TRY(make_refine_mesh(r));
  if (r->has_other_groups) find_placed_again(r, main);
  return r->processes.replicas > 1 || main->is_placed || main->has_collective ? begin_one(r) : begin_whole(r);
}

ts_status make_begin_local(make_state *r, mlir_func *main) {
  if (r->module.mesh_count == 0 && make_count_processes(&r->processes) <= 1) return TS_SUCCESS;
  return ts_deep_call(MAKE_MOST_DEPTH, begin_on_stack, &(begin_call){r, main});
}

/* ---- shardings */

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
    const mlir_func *callee = op ? make_find_callee(r, op) : NULL;
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
  if (given) return make_read_sharding(r, given, type->shape, ~0u, &out->sharding);
  const mlir_op *maker = find_maker(r, &main->body, result, &made);
  const mlir_attr *outputs = maker ? mlir_op_attr(maker, "out_shardings") : NULL;
  const mlir_attr *manual = maker ? mlir_op_attr(maker, "manual_axes") : NULL;
  if (!outputs || !manual || outputs->kind != MLIR_ATTR_LIST || manual->kind != MLIR_ATTR_LIST ||
      made >= outputs->count)
    return TS_SUCCESS;
  TS_TRY(make_read_axes(r, outputs->items[made].token, manual, &axes));
  return make_read_sharding(r, &outputs->items[made], type->shape, axes, &out->sharding);
}

/* ---- groups of collectives */

static int64_t stride_of(const ts_mesh *mesh, int32_t axis) {
  int64_t stride = 1;
  for (int32_t i = axis + 1; i < mesh->rank; i++) stride *= mesh->sizes[i];
  return stride;
}

/* A group in the order of a collective along axes. */
typedef struct ordered {
  const ts_mesh *mesh;
  size_t *list;
  size_t count;
  size_t root; /* where the member is that the text names first */
} ordered;

/* A group that begins with its root is put in order. */
static void read_ordered(const make_group *group, bool is_rooted, ordered *out) {
  out->count = group->count;
  out->root = 0;
  if (is_rooted) {
    make_sort_members(group, out->list);
    while (out->list[out->root] != make_member(group, 0)) out->root++;
  } else {
    for (size_t i = 0; i < group->count; i++) out->list[i] = make_member(group, i);
  }
}

/* The axes along which the members differ. The last one changes first. */
static bool find_axes(const ordered *group, ts_dims *out) {
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

static bool is_along(const ordered *group, const ts_dims *axes) {
  const ts_mesh *mesh = group->mesh;
  bool same = group->count == (size_t)ts_mesh_group_size(mesh, axes);
  for (size_t i = 0; same && i < group->count; i++)
    same = group->list[i] == (size_t)ts_mesh_member(mesh, axes, (int32_t)group->list[0], (int32_t)i);
  return same;
}

/* Whether all groups are along the axes of the first partition's group, with their roots at one place. The partitions
 * of a group share the group, so only its first partition is looked at. */
static bool are_along(const make_groups *groups, ordered *group, ts_dims *out, size_t *out_root) {
  const bool is_rooted = out_root != NULL;
  size_t root = 0;
  for (size_t own = 0; own < (size_t)make_count_processes(&groups->grid); own++) {
    const make_group named = make_find_group(groups, own);
    if (named.count == 0) return false;
    if (own > 0 && make_member(&named, 0) != own) continue;
    read_ordered(&named, is_rooted, group);
    if (own == 0 && !find_axes(group, out)) return false;
    if (own == 0) root = group->root;
    if (!is_along(group, out) || group->root != root) return false;
  }
  if (out_root) *out_root = root;
  return true;
}

/* What was found for a collective: a function is made as often as it is called. In the arena. */
typedef struct found_axes {
  bool found;
  size_t root;
  ts_dims axes;
  ts_attrs permutation;
} found_axes;

static found_axes *find_again(const make_call *m) {
  return ts_map_get(&m->r->found_axes, (const void *)&m->op, sizeof m->op);
}

static ts_status keep(const make_call *m, const found_axes *found) {
  found_axes *kept;
  TS_TRY(ts_arena_copy(&m->r->arena, found, sizeof *found, (void **)&kept));
  return ts_map_put(&m->r->found_axes, (const void *)&m->op, sizeof m->op, kept);
}

static ts_status find_axes_of(const make_call *m, bool is_rooted, found_axes *out) {
  const make_grid grid = make_processes(m->r);
  ordered group = {.mesh = &m->r->base};
  make_groups groups;
  TS_TRY(make_read_groups(m, &grid, &groups));
  ts_status status = TS_NEW_ARRAY((size_t)make_count_processes(&grid), &group.list);
  if (!status) out->found = are_along(&groups, &group, &out->axes, is_rooted ? &out->root : NULL);
  make_groups_deinit(&groups);
  ts_free(group.list);
  return status ? status : keep(m, out);
}

ts_status make_find_axes(const make_call *m, size_t *out_root, ts_dims *out, bool *out_found) {
  const found_axes *before = find_again(m);
  found_axes found = {0};
  *out_found = false;
  if (!before) TS_TRY(find_axes_of(m, out_root != NULL, &found));
  if (!before) before = &found;
  *out_found = before->found;
  *out = before->axes;
  if (out_root) *out_root = before->root;
  return TS_SUCCESS;
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
  const make_grid grid = make_processes(m->r);
  make_groups pairs;
  TS_TRY(make_read_groups(m, &grid, &pairs));
  for (size_t p = 0; p < (size_t)make_count_processes(&grid); p++) {
    const make_group pair = make_find_group(&pairs, p);
    out[p] = pair.count ? (int64_t)make_member(&pair, 0) : -1;
  }
  make_groups_deinit(&pairs);
  return TS_SUCCESS;
}

/* `sources` and `by_index` have room for a number of each process. */
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
  const found_axes *before = find_again(m);
  const make_grid grid = make_processes(m->r);
  const size_t processes = (size_t)make_count_processes(&grid);
  int64_t *room;
  *out = before ? before->permutation : (ts_attrs){0};
  if (before) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(2 * processes, &room));
  ts_status status = find_permutation(m, room, room + processes, out);
  ts_free(room);
  return status ? status : keep(m, &(found_axes){.permutation = *out});
}
