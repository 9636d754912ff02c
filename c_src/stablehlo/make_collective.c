/* What several processes compute together: collectives, of the values of all members of a group. One device
 * runs all processes as parts of one graph (make_parallel.c). A program for one device is a grid of one process. */
#include "stablehlo/make.h"

#include <string.h>

static bool is(const make_call *m, const char *name) {
  const size_t prefix = strlen("stablehlo."), length = strlen(name);
  return m->op->name.length == prefix + length && memcmp(m->op->name.text + prefix, name, length) == 0;
}

/* ---- groups */

/* A list of lists of equal length. */
typedef struct table {
  int64_t *values;
  int64_t rows, columns;
} table;

static ts_status read_table(const make_call *m, const char *name, table *out) {
  const mlir_attr *attr = make_attr(m, name);
  if (!attr) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute %s", name);
  if (attr->kind != MLIR_ATTR_DENSE || attr->type.shape->rank != 2 || attr->type.dtype != TS_S64 || attr->type.is_bool)
    return make_error(m, TS_UNIMPLEMENTED, "%s is other than a dense list of lists of i64", name);
  const int64_t count = ts_shape_elements(attr->type.shape);
  if (count > 65536) return make_error(m, TS_UNIMPLEMENTED, "%s has more than 65536 numbers", name);
  out->rows = attr->type.shape->dims[0];
  out->columns = attr->type.shape->dims[1];
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, (size_t)count + 1, &out->values));
  TS_TRY(mlir_dense_read(attr, out->values));
  if (mlir_dense_is_splat(attr))
    for (int64_t i = 1; i < count; i++) out->values[i] = out->values[0];
  return TS_SUCCESS;
}

const mlir_attr *make_find_channel(const make_call *m, const char *names) {
  const mlir_attr *attr = make_attr(m, names);
  return attr && attr->kind == MLIR_ATTR_DICT ? mlir_find_attr(attr->items, attr->count, "handle") : attr;
}

static int64_t channel(const make_call *m) {
  const mlir_attr *handle = make_find_channel(m, "channel_handle|channel_id");
  int64_t number = 0;
  ts_status_free(handle ? mlir_attr_int(handle, &number) : TS_SUCCESS);
  return number;
}

typedef enum grouping { REPLICAS, PARTITIONS, BOTH, FLAT } grouping;

static grouping find_grouping(const make_call *m) {
  const mlir_attr *flat = make_attr(m, "use_global_device_ids");
  const bool of_one_kind = is(m, "all_to_all") || is(m, "collective_broadcast") || is(m, "collective_permute");
  if (channel(m) <= 0) return REPLICAS;
  if (of_one_kind) return PARTITIONS;
  return flat && !mlir_token_is(flat->token, "false") ? FLAT : BOTH;
}

/* The processes that row `row` of a table names, for process `own`. */
typedef struct row_of {
  const make_grid *grid;
  const table *groups;
  int64_t row;
  grouping grouping;
  bool is_pair;
} row_of;

/* A group has a process once. */
static ts_status push(const make_call *m, const row_of *r, int64_t id, int64_t other, make_group *out) {
  const int64_t limit = r->grouping == FLAT         ? r->grid->replicas * r->grid->partitions
                        : r->grouping == PARTITIONS ? r->grid->partitions
                                                    : r->grid->replicas;
  if (id < -1 || id >= limit)
    return make_error(m, TS_INVALID_ARGUMENT, "it names number %lld of %lld", (long long)id, (long long)limit);
  if (id < 0) return TS_SUCCESS; /* a group that is shorter than others */
  if (r->grouping == REPLICAS || r->grouping == BOTH) id = id * r->grid->partitions + other;
  if (r->grouping == PARTITIONS) id += other * r->grid->partitions;
  for (size_t i = 0; i < out->count && !r->is_pair; i++)
    if (out->members[i] == (size_t)id) return make_error(m, TS_INVALID_ARGUMENT, "a group has a member twice");
  out->members[out->count++] = (size_t)id;
  return TS_SUCCESS;
}

static ts_status read_row(const make_call *m, const row_of *r, size_t own, make_group *out) {
  const int64_t partition = (int64_t)own % r->grid->partitions, replica = (int64_t)own / r->grid->partitions;
  const int64_t first = r->grouping == BOTH ? 0 : r->grouping == PARTITIONS ? replica : partition;
  const int64_t last = r->grouping == BOTH ? r->grid->partitions - 1 : first;
  out->count = 0;
  for (int64_t other = first; other <= last; other++)
    for (int64_t i = 0; i < r->groups->columns; i++)
      TS_TRY(push(m, r, r->groups->values[r->row * r->groups->columns + i], other, out));
  return TS_SUCCESS;
}

ts_status make_find_group(const make_call *m, const make_grid *grid, size_t own, make_group *out) {
  table groups = {0};
  const bool is_permute = is(m, "collective_permute");
  const grouping kind = find_grouping(m);
  TS_TRY(read_table(m, is_permute ? "source_target_pairs" : "replica_groups", &groups));
  if (is_permute && groups.columns != 2) return make_error(m, TS_INVALID_ARGUMENT, "expected pairs");
  if (!out->members)
    TS_TRY(TS_ARENA_ARRAY(&m->r->arena, (size_t)(grid->replicas * grid->partitions) + 2, &out->members));
  for (int64_t row = 0; row < groups.rows; row++) {
    TS_TRY(read_row(m, &(row_of){grid, &groups, row, kind, is_permute}, own, out));
    if (is_permute && out->count == 2 && out->members[1] == own) return TS_SUCCESS;
    for (size_t i = 0; i < out->count && !is_permute; i++)
      if (out->members[i] == own) return TS_SUCCESS;
  }
  out->count = 0;
  return TS_SUCCESS;
}

/* ---- values of members */

/* One operand of all members of a group; `m` is the call of one of them. */
typedef struct joint {
  const make_call *m;
  const ts_value_id *values;
  size_t count, place; /* of this member */
} joint;

static ts_status axis_of(const joint *j, const char *name, int32_t *out) {
  int64_t axis;
  TS_TRY(make_attr_int(j->m, name, &axis));
  if (axis < 0 || axis >= make_value_of(j->m, j->values[0])->shape->rank)
    return make_error(j->m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)axis);
  *out = (int32_t)axis;
  return TS_SUCCESS;
}

static ts_status concatenate(const joint *j, const ts_value_id *parts, int32_t axis, ts_value_id *out) {
  ts_attrs attrs = {.axis = axis};
  return make_add(j->m, TS_OP_CONCATENATE, (ts_values){(ts_value_id *)(uintptr_t)parts, j->count}, &attrs, out);
}

static ts_status gather(const joint *j, ts_value_id *out) {
  int32_t axis;
  TS_TRY(axis_of(j, "all_gather_dim", &axis));
  return concatenate(j, j->values, axis, out);
}

/* By the region, in the order of the group. */
static ts_status reduce(const joint *j, ts_value_id *out) {
  const make_call *m = j->m;
  make_value result;
  if (m->op->region_count != 1) return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  const mlir_region *region = &m->op->regions[0];
  if (region->param_count != 2 || region->op_count == 0 || region->ops[region->op_count - 1].operand_count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a region that takes two numbers and returns one");
  *out = j->values[0];
  for (size_t i = 1; i < j->count; i++) {
    TS_TRY(make_lifted(m, region, (ts_value_id[]){*out, j->values[i]}, &result));
    *out = result.id;
  }
  return TS_SUCCESS;
}

/* Part `i` of as many as the group has members. */
static ts_status part(const joint *j, ts_value_id x, int32_t axis, size_t i, ts_value_id *out) {
  const int64_t size = make_value_of(j->m, x)->shape->dims[axis], each = size / (int64_t)j->count;
  if (each * (int64_t)j->count != size)
    return make_error(j->m, TS_INVALID_ARGUMENT, "%lld elements are not cut into %zu parts", (long long)size, j->count);
  return make_slice(j->m, x, axis, (make_range){(int64_t)i * each, (int64_t)(i + 1) * each, 1}, out);
}

static ts_status reduce_scatter(const joint *j, ts_value_id *out) {
  int32_t axis;
  TS_TRY(axis_of(j, "scatter_dimension", &axis));
  TS_TRY(reduce(j, out));
  return part(j, *out, axis, j->place, out);
}

static ts_status exchange(const joint *j, ts_value_id *out) {
  int32_t split, joined;
  ts_value_id *parts;
  TS_TRY(axis_of(j, "split_dimension", &split));
  TS_TRY(axis_of(j, "concat_dimension", &joined));
  TS_TRY(TS_ARENA_ARRAY(&j->m->r->arena, j->count, &parts));
  for (size_t i = 0; i < j->count; i++) TS_TRY(part(j, j->values[i], split, j->place, &parts[i]));
  return concatenate(j, parts, joined, out);
}

static ts_status one(const joint *j, ts_value_id *out) {
  const make_call *m = j->m;
  *out = j->values[0];
  if (is(m, "all_gather")) return gather(j, out);
  if (is(m, "all_reduce")) return reduce(j, out);
  if (is(m, "reduce_scatter")) return reduce_scatter(j, out);
  if (is(m, "all_to_all")) return exchange(j, out);
  if (is(m, "collective_reduce") && j->place > 0) return make_number(m, j->values[0], 0, out);
  if (is(m, "collective_reduce")) return reduce(j, out);
  return TS_SUCCESS; /* collective_broadcast, collective_permute: the first member's */
}

ts_status make_collective(const make_call *m, const make_call *const *members, size_t count, size_t place) {
  ts_value_id *values, id;
  if (m->op->operand_count != m->op->types.count) return make_count_operands(m, m->op->types.count);
  for (size_t i = 0; i < count; i++)
    if (members[i]->op->operand_count != m->op->operand_count)
      return make_error(m, TS_INVALID_ARGUMENT, "members of a group have several numbers of operands");
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, count + 1, &values));
  for (size_t k = 0; k < m->op->operand_count; k++) {
    if (m->operands[k].quant) return make_error(m, TS_UNIMPLEMENTED, "of quantised numbers cannot be read");
    for (size_t i = 0; i < count; i++) {
      values[i] = members[i]->operands[k].id;
      if (make_value_of(m, values[i])->dtype != make_operand_of(m, k)->dtype ||
          !ts_shape_equal(make_value_of(m, values[i])->shape, make_operand_of(m, k)->shape))
        return make_error(m, TS_INVALID_ARGUMENT, "members of a group have operands of several types");
    }
    const joint j = {m, values, count, place};
    TS_TRY(count ? one(&j, &id) : make_number(m, m->operands[k].id, 0, &id));
    make_result(m, k, id);
  }
  return TS_SUCCESS;
}

/* A collective outside of processes, or in a function or a region of one. */
ts_status make_in_collective(const make_call *m) {
  const make_grid alone = {1, 1};
  make_group group = {0};
  if (m->r->mesh.rank) return make_local_collective(m);
  const make_grid *grid = m->r->grid ? m->r->grid : &alone;
  if (grid->replicas * grid->partitions > 1)
    return make_error(m, TS_UNIMPLEMENTED, "it is known at the top of a process's function alone");
  TS_TRY(make_find_group(m, grid, 0, &group));
  return make_collective(m, &m, group.count ? 1 : 0, 0);
}

/* replica_id, partition_id */
ts_status make_in_process_id(const make_call *m) {
  const int64_t partitions = m->r->grid ? m->r->grid->partitions : 1, own = (int64_t)m->r->process;
  ts_value_id id;
  if (m->r->mesh.rank && is(m, "partition_id")) return make_partition_id(m);
  TS_TRY(make_count_operands(m, 0));
  TS_TRY(make_integer_of(m, TS_U32, &ts_shape_scalar, is(m, "replica_id") ? own / partitions : own % partitions, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}
