/* What several processes compute together: collectives, of the values of all members of a group. One device
 * runs all processes as parts of one graph (make_parallel.c). A program for one device is a grid of one process. */
#include "stablehlo/make.h"

#include <stdlib.h>

/* ---- groups */

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

static make_grouping find_grouping(const make_call *m) {
  const mlir_attr *flat = make_attr(m, "use_global_device_ids");
  const bool of_one_kind = make_is(m, "stablehlo.all_to_all") || make_is(m, "stablehlo.collective_broadcast") ||
                           make_is(m, "stablehlo.collective_permute");
  if (channel(m) <= 0) return MAKE_REPLICAS;
  if (of_one_kind) return MAKE_PARTITIONS;
  return flat && !mlir_token_is(flat->token, "false") ? MAKE_PROCESSES : MAKE_BOTH;
}

/* How many numbers there are to name. */
static int64_t count_numbers(const make_groups *g) {
  if (g->grouping == MAKE_PROCESSES) return make_count_processes(&g->grid);
  return g->grouping == MAKE_PARTITIONS ? g->grid.partitions : g->grid.replicas;
}

/* A list of lists of equal length. A number is named once, so there are not more lists or longer ones than numbers. */
static ts_status find_table(const make_call *m, const make_groups *g, const mlir_attr **out) {
  const char *name = g->is_pairs ? "source_target_pairs" : "replica_groups";
  const mlir_attr *attr = make_attr(m, name);
  const int64_t limit = count_numbers(g);
  *out = attr;
  if (!attr) return make_error(m, TS_INVALID_ARGUMENT, "expected the attribute %s", name);
  if (attr->kind != MLIR_ATTR_DENSE || attr->type.shape->rank != 2 || attr->type.dtype != TS_S64 || attr->type.is_bool)
    return make_error(m, TS_UNIMPLEMENTED, "%s is other than a dense list of lists of i64", name);
  const int64_t rows = attr->type.shape->dims[0], columns = attr->type.shape->dims[1];
  if (g->is_pairs && columns != 2) return make_error(m, TS_INVALID_ARGUMENT, "expected pairs");
  if (rows > limit || (columns > limit && !g->is_pairs))
    return make_error(m, TS_INVALID_ARGUMENT, "%s has %lld lists of %lld numbers, and there are %lld to name", name,
                      (long long)rows, (long long)columns, (long long)limit);
  if (rows * columns > 65536) return make_error(m, TS_UNIMPLEMENTED, "%s has more than 65536 numbers", name);
  return TS_SUCCESS;
}

static ts_status named_twice(const make_call *m, const make_groups *g, int64_t number, bool is_source, bool in_row) {
  if (g->is_pairs)
    return make_error(m, TS_INVALID_ARGUMENT, "number %lld is the %s of two pairs", (long long)number,
                      is_source ? "source" : "target");
  if (in_row) return make_error(m, TS_INVALID_ARGUMENT, "a group has a member twice");
  return make_error(m, TS_INVALID_ARGUMENT, "number %lld is in two groups", (long long)number);
}

/* Appends a number to a row, which counts from 1. */
static ts_status push(const make_call *m, make_groups *g, int32_t row, int64_t number) {
  const int64_t limit = count_numbers(g);
  const bool is_source = g->is_pairs && g->starts[row] == g->starts[row - 1];
  if (number < (g->is_pairs ? 0 : -1) || number >= limit)
    return make_error(m, TS_INVALID_ARGUMENT, "it names number %lld of %lld", (long long)number, (long long)limit);
  if (number < 0) return TS_SUCCESS; /* a group that is shorter than others */
  int32_t *last = &g->row_of[number + (is_source ? limit : 0)];
  if (*last) return named_twice(m, g, number, is_source, *last == row);
  *last = row;
  g->numbers[g->starts[row]++] = number;
  return TS_SUCCESS;
}

/* A row of replicas becomes one of processes: of each partition in turn all these replicas. */
static void add_partitions(make_groups *g, int32_t row) {
  int64_t *numbers = g->numbers + g->starts[row - 1];
  const int64_t count = (int64_t)(g->starts[row] - g->starts[row - 1]), partitions = g->grid.partitions;
  for (int64_t p = partitions - 1; p >= 0; p--)
    for (int64_t i = 0; i < count; i++) numbers[p * count + i] = numbers[i] * partitions + p;
  g->starts[row] += (size_t)(count * (partitions - 1));
}

static ts_status read_rows(const make_call *m, const mlir_attr *attr, const int64_t *values, make_groups *g) {
  const bool is_splat = mlir_dense_is_splat(attr), is_empty = is_splat && values[0] == -1 && !g->is_pairs;
  const int64_t columns = is_empty ? 0 : attr->type.shape->dims[1];
  for (int32_t row = 1; row <= attr->type.shape->dims[0]; row++) {
    g->starts[row] = g->starts[row - 1];
    for (int64_t i = 0; i < columns; i++) TS_TRY(push(m, g, row, values[is_splat ? 0 : (row - 1) * columns + i]));
    if (g->grouping == MAKE_BOTH) add_partitions(g, row);
  }
  return TS_SUCCESS;
}

void make_groups_deinit(make_groups *groups) {
  ts_free(groups->numbers);
  ts_free(groups->starts);
  ts_free(groups->row_of);
  *groups = (make_groups){0};
}

ts_status make_read_groups(const make_call *m, const make_grid *grid, make_groups *out) {
  const mlir_attr *attr;
  int64_t *values = NULL;
  *out = (make_groups){
      .grid = *grid, .grouping = find_grouping(m), .is_pairs = make_is(m, "stablehlo.collective_permute")};
  TS_TRY(find_table(m, out, &attr));
  const size_t count = mlir_dense_is_splat(attr) ? 1 : (size_t)ts_shape_elements(attr->type.shape);
  ts_status status = TS_NEW_ARRAY(count + 1, &values);
  if (!status) status = TS_NEW_ARRAY(2 * (size_t)make_count_processes(grid), &out->numbers);
  if (!status) status = TS_NEW_ARRAY((size_t)attr->type.shape->dims[0] + 1, &out->starts);
  if (!status) status = TS_NEW_ARRAY(2 * (size_t)count_numbers(out), &out->row_of);
  if (!status) status = mlir_dense_read(attr, values);
  if (!status) status = read_rows(m, attr, values, out);
  ts_free(values);
  if (status) make_groups_deinit(out);
  return status;
}

make_group make_find_group(const make_groups *groups, size_t own) {
  const int64_t partitions = groups->grid.partitions, partition = (int64_t)own % partitions;
  const int64_t replica = (int64_t)own / partitions;
  const int64_t number = groups->grouping == MAKE_PROCESSES    ? (int64_t)own
                         : groups->grouping == MAKE_PARTITIONS ? partition
                                                               : replica;
  const int32_t row = groups->row_of[number];
  if (row == 0) return (make_group){0};
  const size_t start = groups->starts[row - 1];
  make_group group = {.numbers = groups->numbers + start, .count = groups->starts[row] - start, .scale = 1};
  if (groups->grouping == MAKE_REPLICAS) group.scale = partitions;
  if (groups->grouping == MAKE_REPLICAS) group.first = partition;
  if (groups->grouping == MAKE_PARTITIONS) group.first = replica * partitions;
  return group;
}

static int compare_members(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

void make_sort_members(const make_group *group, size_t *out) {
  for (size_t i = 0; i < group->count; i++) out[i] = make_member(group, i);
  qsort(out, group->count, sizeof *out, compare_members);
}

/* ---- values of members */

/* One operand of all members of a group; `m` is the call of one of them. */
typedef struct joint {
  const make_call *m;
  const ts_value_id *values;
  size_t count, place; /* of this member */
} joint;

static ts_status axis_of(const joint *j, const char *name, int32_t *out) {
  return make_find_dim(j->m, name, make_value_of(j->m, j->values[0])->shape, out);
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
  const mlir_region *region;
  make_value result;
  TS_TRY(make_find_pair(m, &region));
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
  if (make_is(m, "stablehlo.all_gather")) return gather(j, out);
  if (make_is(m, "stablehlo.all_reduce")) return reduce(j, out);
  if (make_is(m, "stablehlo.reduce_scatter")) return reduce_scatter(j, out);
  if (make_is(m, "stablehlo.all_to_all")) return exchange(j, out);
  if (make_is(m, "stablehlo.collective_reduce") && j->place > 0) return make_number(m, j->values[0], 0, out);
  if (make_is(m, "stablehlo.collective_reduce")) return reduce(j, out);
  return TS_SUCCESS; /* collective_broadcast, collective_permute: the first member's */
}

/* `values` has room for an operand of each member. */
static ts_status set_results(const joint *j, const make_call *const *members, ts_value_id *values) {
  const make_call *m = j->m;
  const size_t count = j->count;
  ts_value_id id;
  if (m->op->operand_count != m->op->types.count) return make_count_operands(m, m->op->types.count);
  for (size_t i = 0; i < count; i++)
    if (members[i]->op->operand_count != m->op->operand_count)
      return make_error(m, TS_INVALID_ARGUMENT, "members of a group have several numbers of operands");
  for (size_t k = 0; k < m->op->operand_count; k++) {
    if (m->operands[k].quant) return make_error(m, TS_UNIMPLEMENTED, "of quantised numbers cannot be read");
    for (size_t i = 0; i < count; i++) {
      values[i] = members[i]->operands[k].id;
      if (make_value_of(m, values[i])->dtype != make_operand_of(m, k)->dtype ||
          !ts_shape_equal(make_value_of(m, values[i])->shape, make_operand_of(m, k)->shape))
        return make_error(m, TS_INVALID_ARGUMENT, "members of a group have operands of several types");
    }
    TS_TRY(count ? one(j, &id) : make_number(m, m->operands[k].id, 0, &id));
    make_result(m, k, id);
  }
  return TS_SUCCESS;
}

ts_status make_collective(const make_call *m, const make_call *const *members, size_t count, size_t place) {
  ts_value_id *values;
  TS_TRY(TS_NEW_ARRAY(count + 1, &values));
  ts_status status = set_results(&(joint){m, values, count, place}, members, values);
  ts_free(values);
  return status;
}

/* A collective outside of processes, or in a function or a region of one. */
ts_status make_in_collective(const make_call *m) {
  const make_grid alone = {1, 1};
  make_groups groups;
  if (m->r->mesh.rank) return make_local_collective(m);
  const make_grid *grid = m->r->grid ? m->r->grid : &alone;
  if (make_count_processes(grid) > 1)
    return make_error(m, TS_UNIMPLEMENTED, "it is known at the top of a process's function alone");
  TS_TRY(make_read_groups(m, grid, &groups));
  const size_t count = make_find_group(&groups, 0).count;
  make_groups_deinit(&groups);
  return make_collective(m, &m, count ? 1 : 0, 0);
}

/* replica_id, partition_id */
ts_status make_in_process_id(const make_call *m) {
  const int64_t partitions = m->r->grid ? m->r->grid->partitions : 1, own = (int64_t)m->r->process;
  ts_value_id id;
  if (m->r->mesh.rank) return make_process_id(m, make_is(m, "stablehlo.replica_id"));
  TS_TRY(make_count_operands(m, 0));
  TS_TRY(make_integer_of(m, TS_U32, &ts_shape_scalar,
                         make_is(m, "stablehlo.replica_id") ? own / partitions : own % partitions, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}
