/* Collectives of groups that are not along axes of the mesh: each process gathers the values of all, and takes those of
 * the members of its group by a table. Groups may have several sizes, where what they give has one. */
#include "stablehlo/make.h"

#include <string.h>

typedef struct members {
  const make_call *m;
  make_groups groups;
  size_t processes;
  size_t most; /* members of the largest group */
  bool is_even;
  ts_value_id count, place; /* s32[]: of the own group, and of the process in it */
  ts_value_id list;         /* s32[most]: the own group; behind its members are others, or zeros */
} members;

/* ---- tables */

enum { START, COUNT, PLACE, TABLES };

/* Of each process: where its group begins in the list of all groups' members, how many these are, and its own place
 * among them. The list has `most` numbers from each start. A process without a group has the count 0. */
static void fill(const members *g, int32_t *list, int32_t *const tables[TABLES]) {
  int32_t end = 0;
  for (size_t own = 0; own < g->processes; own++) {
    const make_group group = make_find_group(&g->groups, own);
    if (group.count == 0 || make_member(&group, 0) != own) continue;
    for (size_t i = 0; i < group.count; i++) {
      const size_t member = make_member(&group, i);
      list[(size_t)end + i] = (int32_t)member;
      tables[START][member] = end;
      tables[COUNT][member] = (int32_t)group.count;
      tables[PLACE][member] = (int32_t)i;
    }
    end += (int32_t)group.count;
  }
}

/* As many numbers of a list from there. Takes the list over. */
static ts_status numbers_from(const members *g, ts_buffer *list, ts_value_id start, int64_t count, ts_value_id *out) {
  ts_attrs attrs = {.literal = {.buffer = list}}, sizes = {.shape = {.rank = 1, .dims = {count}}};
  ts_value_id operands[2] = {TS_NO_ID, start};
  ts_status status = make_add(g->m, TS_OP_LITERAL, (ts_values){0}, &attrs, &operands[0]);
  ts_buffer_release(list);
  TS_TRY(status);
  return make_add(g->m, TS_OP_DYNAMIC_SLICE, (ts_values){operands, 2}, &sizes, out);
}

static ts_status new_list(size_t count, ts_buffer **out) {
  const ts_shape shape = {.rank = 1, .dims = {(int64_t)count}};
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_S32, &shape, out));
  memset((*out)->data, 0, count * sizeof(int32_t));
  return TS_SUCCESS;
}

static ts_status make_tables(members *g) {
  ts_buffer *list = NULL, *tables[TABLES] = {0};
  ts_value_id own, start;
  ts_value_id *const out[TABLES] = {&start, &g->count, &g->place};
  ts_status status = make_own_number(g->m, &own);
  if (!status) status = new_list(g->processes + g->most, &list);
  for (size_t i = 0; i < TABLES && !status; i++) status = new_list(g->processes, &tables[i]);
  if (!status) fill(g, list->data, (int32_t *[]){tables[START]->data, tables[COUNT]->data, tables[PLACE]->data});
  for (size_t i = 0; i < TABLES; i++) {
    if (status)
      ts_buffer_release(tables[i]);
    else
      status = numbers_from(g, tables[i], own, 1, out[i]);
    if (!status) status = make_reshape(g->m, *out[i], &ts_shape_scalar, out[i]);
  }
  if (!status) return numbers_from(g, list, start, (int64_t)g->most, &g->list);
  ts_buffer_release(list);
  return status;
}

/* ---- values */

/* The values of the own group's members, as rows. */
static ts_status gather_members(const members *g, ts_value_id x, ts_value_id *out) {
  const make_call *m = g->m;
  ts_dims axes = {.rank = m->r->mesh.rank};
  ts_attrs first = {.axis = 0};
  for (int32_t i = 0; i < axes.rank; i++) axes.dims[i] = i;
  ts_value_id operands[2] = {x, g->list};
  TS_TRY(make_gather_rows(m, &axes, x, &operands[0]));
  return make_add(m, TS_OP_TAKE, (ts_values){operands, 2}, &first, out);
}

/* By the region, in the order of the group. */
static ts_status reduce(const members *g, ts_value_id rows, ts_value_id *out) {
  const make_call *m = g->m;
  const mlir_region *region;
  TS_TRY(make_find_pair(m, &region));
  TS_TRY(make_take_row(m, rows, 0, out));
  for (size_t i = 1; i < g->most; i++) {
    ts_value_id next, limit, is_member;
    make_value result;
    TS_TRY(make_take_row(m, rows, (int64_t)i, &next));
    TS_TRY(make_lifted(m, region, (ts_value_id[]){*out, next}, &result));
    if (!g->is_even) {
      TS_TRY(make_integer_of(m, TS_S32, &ts_shape_scalar, (int64_t)i, &limit));
      TS_TRY(make_binary(m, TS_OP_GREATER, g->count, limit, &is_member));
      TS_TRY(make_select(m, is_member, result.id, *out, &result.id));
    }
    *out = result.id;
  }
  return TS_SUCCESS;
}

/* The own part of a value that is cut into as many as the group has members. */
static ts_status own_part(const members *g, ts_value_id x, int32_t axis, ts_value_id *out) {
  const make_call *m = g->m;
  const ts_shape *shape = make_value_of(m, x)->shape;
  ts_value_id operands[TS_MAX_RANK + 1] = {x};
  ts_attrs sizes = {0};
  ts_shape_copy(&sizes.shape, shape);
  sizes.shape.dims[axis] /= (int64_t)g->most;
  if (sizes.shape.dims[axis] * (int64_t)g->most != shape->dims[axis])
    return make_error(m, TS_INVALID_ARGUMENT, "%lld elements are not cut into %zu parts", (long long)shape->dims[axis],
                      g->most);
  for (int32_t d = 0; d < shape->rank; d++)
    TS_TRY(d == axis ? make_with_integer(m, TS_OP_MULTIPLY, g->place, sizes.shape.dims[axis], &operands[d + 1])
                     : make_integer_of(m, TS_S32, &ts_shape_scalar, 0, &operands[d + 1]));
  return make_add(m, TS_OP_DYNAMIC_SLICE, (ts_values){operands, (size_t)shape->rank + 1}, &sizes, out);
}

static ts_status concatenate(const members *g, ts_value_id rows, int32_t split, int32_t joined, ts_value_id *out) {
  ts_attrs attrs = {.axis = joined};
  ts_value_id *parts;
  TS_TRY(TS_ARENA_ARRAY(&g->m->r->arena, g->most, &parts));
  for (size_t i = 0; i < g->most; i++) {
    TS_TRY(make_take_row(g->m, rows, (int64_t)i, &parts[i]));
    if (split >= 0) TS_TRY(own_part(g, parts[i], split, &parts[i]));
  }
  return make_add(g->m, TS_OP_CONCATENATE, (ts_values){parts, g->most}, &attrs, out);
}

/* A process without a group gets zeros. */
static ts_status broadcast(const members *g, ts_value_id rows, ts_value_id *out) {
  ts_value_id zeros, none, is_member;
  TS_TRY(make_take_row(g->m, rows, 0, out));
  TS_TRY(make_number(g->m, *out, 0, &zeros));
  TS_TRY(make_integer_of(g->m, TS_S32, &ts_shape_scalar, 0, &none));
  TS_TRY(make_binary(g->m, TS_OP_GREATER, g->count, none, &is_member));
  return make_select(g->m, is_member, *out, zeros, out);
}

static ts_status one(const members *g, size_t i, ts_value_id *out) {
  const make_call *m = g->m;
  const ts_shape *shape = make_operand_of(m, i)->shape;
  ts_value_id rows;
  int32_t split = -1, joined;
  TS_TRY(gather_members(g, m->operands[i].id, &rows));
  if (make_is(m, "stablehlo.collective_broadcast")) return broadcast(g, rows, out);
  if (make_is(m, "stablehlo.all_reduce")) return reduce(g, rows, out);
  if (!g->is_even) return make_error(m, TS_UNIMPLEMENTED, "its groups have several sizes");
  if (make_is(m, "stablehlo.reduce_scatter")) {
    TS_TRY(make_find_dim(m, "scatter_dimension", shape, &split));
    TS_TRY(reduce(g, rows, out));
    return own_part(g, *out, split, out);
  }
  if (make_is(m, "stablehlo.all_gather")) {
    TS_TRY(make_find_dim(m, "all_gather_dim", shape, &joined));
  } else {
    TS_TRY(make_find_dim(m, "split_dimension", shape, &split));
    TS_TRY(make_find_dim(m, "concat_dimension", shape, &joined));
  }
  return concatenate(g, rows, split, joined, out);
}

static ts_status run(members *g) {
  bool has_all = true;
  g->is_even = true;
  for (size_t own = 0; own < g->processes; own++) {
    const size_t count = make_find_group(&g->groups, own).count;
    g->is_even = g->is_even && (own == 0 || count == g->most);
    if (count > g->most) g->most = count;
    has_all = has_all && count > 0;
  }
  if (g->most == 0 || (!has_all && !make_is(g->m, "stablehlo.collective_broadcast")))
    return make_error(g->m, TS_UNIMPLEMENTED, "a process is in none of its groups");
  g->m->r->made += g->most + g->processes / 8; /* ops for each member; 128 bytes of tables count as one */
  TS_TRY(make_tables(g));
  for (size_t i = 0; i < g->m->op->operand_count; i++) {
    ts_value_id id;
    if (g->m->operands[i].quant) return make_error(g->m, TS_UNIMPLEMENTED, "of quantised numbers cannot be read");
    TS_TRY(one(g, i, &id));
    make_result(g->m, i, id);
  }
  return TS_SUCCESS;
}

ts_status make_of_members(const make_call *m) {
  const make_grid grid = make_processes(m->r);
  members g = {.m = m, .processes = (size_t)make_count_processes(&grid)};
  TS_TRY(make_read_groups(m, &grid, &g.groups));
  ts_status status = run(&g);
  make_groups_deinit(&g.groups);
  return status;
}
