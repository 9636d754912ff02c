/* A module for the partitions of a mesh as the program of one partition. Inside of sdy.manual_computation a value is a
 * partition's part. Outside of it values are whole: each partition computes all of them. A value that comes from
 * outside in parts, as an argument or as the result of such a computation, is gathered. An op that needs it cut in the
 * same way takes the part, and then nothing uses the gathered value, so that no message remains of it. */
#include "stablehlo/make.h"

#include <string.h>

/* The coordinates of the partition, s32[axes], are a value of each scope that needs them. No text has such a name. */
static mlir_token coordinates_name(void) { return (mlir_token){.kind = MLIR_VALUE, .text = "@", .length = 1}; }

ts_status make_add_coordinates(make_state *r, make_scope *scope) {
  make_value value = {0};
  const ts_shape shape = {.rank = 1, .dims = {r->mesh.rank}};
  TS_TRY(ts_graph_add_param(r->graph, TS_ROOT, TS_S32, &shape, &value.id));
  r->mesh.coordinates = r->graph->mesh.coordinates = true;
  return make_bind(scope, coordinates_name(), 0, 1, value);
}

bool make_find_hidden(const make_state *r, const mlir_op *op, mlir_token *out) {
  *out = coordinates_name();
  return r->mesh.rank && make_is_placed(r, op);
}

ts_status make_pass_coordinates(const make_call *m, const mlir_func *func, make_scope *inner) {
  make_value value;
  if (!m->r->mesh.rank || !func->is_placed) return TS_SUCCESS;
  TS_TRY(make_look_up(m->scope, coordinates_name(), &value));
  return make_bind(inner, coordinates_name(), 0, 1, value);
}

/* s32[]: the coordinates along some axes as one number, in row-major order. */
static ts_status position(const make_call *m, const ts_dims *axes, ts_value_id *out) {
  make_value all = {0};
  if (axes->rank) TS_TRY(make_look_up(m->scope, coordinates_name(), &all));
  TS_TRY(make_integer_of(m, TS_S32, &ts_shape_scalar, 0, out));
  for (int32_t i = 0; i < axes->rank; i++) {
    const int64_t axis = axes->dims[i];
    ts_value_id own;
    TS_TRY(make_slice(m, all.id, 0, (make_range){axis, axis + 1, 1}, &own));
    TS_TRY(make_reshape(m, own, &ts_shape_scalar, &own));
    if (i) TS_TRY(make_with_integer(m, TS_OP_MULTIPLY, *out, m->r->mesh.sizes[axis], out));
    TS_TRY(make_binary(m, TS_OP_ADD, *out, own, out));
  }
  return TS_SUCCESS;
}

ts_status make_own_number(const make_call *m, ts_value_id *out) {
  ts_dims axes = {.rank = m->r->mesh.rank};
  for (int32_t i = 0; i < axes.rank; i++) axes.dims[i] = i;
  return position(m, &axes, out);
}

/* Axes of replicas are before axes of partitions; axes of size 1 count for neither. So the only replica has the number
 * 0 without its coordinates, which a region or a function may lack. */
ts_status make_process_id(const make_call *m, bool of_replica) {
  const ts_mesh *mesh = &m->r->mesh;
  ts_dims axes = {0};
  ts_value_id id;
  const int64_t partitions = make_processes(m->r).partitions;
  int64_t inner = ts_mesh_partitions(mesh);
  for (int32_t i = 0; i < mesh->rank; i++) {
    inner /= mesh->sizes[i];
    if (mesh->sizes[i] > 1 && (inner >= partitions) == of_replica) axes.dims[axes.rank++] = i;
  }
  TS_TRY(make_count_operands(m, 0));
  TS_TRY(position(m, &axes, &id));
  TS_TRY(make_convert(m, id, TS_U32, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- parts and whole values */

static void axes_of_dim(const ts_sharding *sharding, int32_t dim, ts_dims *out) {
  uint8_t axes[TS_MAX_MESH_AXES];
  out->rank = ts_sharding_axes(sharding, dim, axes);
  for (int32_t i = 0; i < out->rank; i++) out->dims[i] = axes[i];
}

ts_status make_gather_parts(const make_call *m, const ts_sharding *sharding, ts_value_id part, ts_value_id *out) {
  *out = part;
  for (int32_t d = 0; d < make_value_of(m, part)->shape->rank; d++) {
    ts_attrs attrs = {0};
    axes_of_dim(sharding, d, &attrs.along.axes);
    attrs.along.dim = d;
    if (attrs.along.axes.rank) TS_TRY(make_add(m, TS_OP_ALL_GATHER, (ts_values){out, 1}, &attrs, out));
  }
  return TS_SUCCESS;
}

static ts_status cut(const make_call *m, const ts_sharding *sharding, ts_value_id whole, ts_value_id *out) {
  ts_attrs attrs = {0};
  ts_value_id operands[TS_MAX_RANK + 1] = {whole};
  const int32_t rank = make_value_of(m, whole)->shape->rank;
  ts_sharding_part(&m->r->mesh, sharding, make_value_of(m, whole)->shape, &attrs.shape);
  for (int32_t d = 0; d < rank; d++) {
    ts_dims axes;
    axes_of_dim(sharding, d, &axes);
    TS_TRY(position(m, &axes, &operands[d + 1]));
    TS_TRY(make_with_integer(m, TS_OP_MULTIPLY, operands[d + 1], attrs.shape.dims[d], &operands[d + 1]));
  }
  return make_add(m, TS_OP_DYNAMIC_SLICE, (ts_values){operands, (size_t)rank + 1}, &attrs, out);
}

ts_status make_part(const make_call *m, const make_value *value, const ts_sharding *sharding, ts_value_id *out) {
  *out = value->id;
  if (value->sharding && ts_sharding_equal(value->sharding, sharding)) {
    *out = value->part;
    return TS_SUCCESS;
  }
  return sharding->count ? cut(m, sharding, value->id, out) : TS_SUCCESS;
}

ts_status make_whole(const make_call *m, const ts_sharding *sharding, ts_value_id part, make_value *out) {
  ts_sharding *kept;
  TS_TRY(ts_arena_copy(&m->r->arena, sharding, sizeof *sharding, (void **)&kept));
  out->part = part;
  out->sharding = kept;
  return make_gather_parts(m, sharding, part, &out->id);
}

/* ---- sdy.sharding_constraint, sdy.reshard */

/* In the program of one partition, or in one of one device, or in a region that is made of other shapes, it is its
 * operand. So it is where the sharding has a form that cannot be read: the program is right without it. */
ts_status make_in_constraint(const make_call *m) {
  const mlir_attr *attr = make_attr(m, "sharding");
  ts_attrs attrs = {0};
  ts_sharding sharding;
  ts_value_id id;
  TS_TRY(make_count_operands(m, 1));
  id = m->operands[0].id;
  if (!attr) attr = make_positional(m->op, 0);
  if (m->r->keeps_shardings && !m->r->lifted && attr) {
    ts_status status = make_read_sharding(m->r, attr, make_operand_of(m, 0)->shape, ~0u, &sharding);
    if (status && ts_status_code(status) != TS_UNIMPLEMENTED) return status;
    for (int32_t i = 0; !status && i < sharding.count; i++) {
      attrs.sharding.axes.dims[attrs.sharding.axes.rank++] = sharding.cuts[i].axis;
      attrs.sharding.dims.dims[attrs.sharding.dims.rank++] = sharding.cuts[i].dim;
    }
    if (!status) TS_TRY(make_add(m, TS_OP_SHARDING_CONSTRAINT, (ts_values){&id, 1}, &attrs, &id));
    ts_status_free(status);
  }
  m->results[0] = m->operands[0];
  m->results[0].id = id;
  return TS_SUCCESS;
}

/* ---- sdy.manual_computation */

typedef struct manual {
  const make_call *m;
  const mlir_region *body;
  const mlir_attr *inputs, *outputs; /* lists of shardings */
  unsigned axes;                     /* a bit for each axis that the computation is local along */
  make_scope scope;
} manual;

static ts_status read_manual(manual *c) {
  const make_call *m = c->m;
  const mlir_attr *axes = make_attr(m, "manual_axes");
  c->inputs = make_attr(m, "in_shardings");
  c->outputs = make_attr(m, "out_shardings");
  if (!c->inputs || !c->outputs || !axes || c->inputs->kind != MLIR_ATTR_LIST || c->outputs->kind != MLIR_ATTR_LIST ||
      axes->kind != MLIR_ATTR_LIST)
    return make_error(m, TS_UNIMPLEMENTED, "its shardings or its axes have a form that cannot be read");
  if (m->op->region_count != 1 || m->op->regions[0].op_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  c->body = &m->op->regions[0];
  const size_t returned = c->body->ops[c->body->op_count - 1].operand_count;
  if (c->body->param_count != m->op->operand_count || c->inputs->count != m->op->operand_count ||
      c->outputs->count != m->op->types.count || returned != m->op->types.count)
    return make_error(m, TS_INVALID_ARGUMENT, "its operands, results, shardings and region have several numbers");
  if (!m->r->mesh.rank) return TS_SUCCESS;
  const mlir_attr *first = c->inputs->count ? c->inputs : c->outputs;
  return make_read_axes(m->r, first->count ? first->items[0].token : axes->token, axes, &c->axes);
}

/* On one partition a part is the whole. */
static ts_status sharding_of(const manual *c, const mlir_attr *list, size_t i, const ts_shape *shape,
                             ts_sharding *out) {
  *out = (ts_sharding){0};
  if (!c->m->r->mesh.rank) return TS_SUCCESS;
  return make_read_sharding(c->m->r, &list->items[i], shape, c->axes, out);
}

static ts_status bind_part(manual *c, size_t i) {
  const make_call *m = c->m;
  const mlir_type *type = &c->body->param_types.data[i];
  ts_sharding sharding;
  make_value value = {.is_bool = m->operands[i].is_bool, .quant = m->operands[i].quant};
  TS_TRY(sharding_of(c, c->inputs, i, make_operand_of(m, i)->shape, &sharding));
  TS_TRY(make_part(m, &m->operands[i], &sharding, &value.id));
  const ts_value *part = make_value_of(m, value.id);
  if (!type->shape || !make_has_type(part, type))
    return make_error(m, TS_INVALID_ARGUMENT, "the part of operand %zu is %s, and its region takes another type", i,
                      TS_SHAPE_STR(part->dtype, part->shape));
  return make_bind(&c->scope, c->body->params[i], 0, 1, value);
}

static ts_status bind_result(const manual *c, size_t i, const make_value *part) {
  const make_call *m = c->m;
  const mlir_type *type = &m->op->types.data[i];
  ts_sharding sharding;
  ts_shape whole;
  TS_TRY(sharding_of(c, c->outputs, i, type->shape, &sharding));
  ts_sharding_whole(&m->r->mesh, &sharding, make_value_of(m, part->id)->shape, &whole);
  TS_TRY(ts_shape_check(&whole, type->dtype));
  m->results[i] = (make_value){.is_bool = part->is_bool, .quant = part->quant};
  return make_whole(m, &sharding, part->id, &m->results[i]);
}

static ts_status run_manual(manual *c, make_value *results) {
  const make_call *m = c->m;
  make_value coordinates;
  if (m->r->mesh.rank) {
    TS_TRY(make_look_up(m->scope, coordinates_name(), &coordinates));
    TS_TRY(make_bind(&c->scope, coordinates_name(), 0, 1, coordinates));
  }
  for (size_t i = 0; i < m->op->operand_count; i++) TS_TRY(bind_part(c, i));
  TS_TRY(make_block(m->r, c->body, m->region, &c->scope, results));
  for (size_t i = 0; i < m->op->types.count; i++) TS_TRY(bind_result(c, i, &results[i]));
  return TS_SUCCESS;
}

ts_status make_in_manual(const make_call *m) {
  manual c = {.m = m};
  make_value *results;
  TS_TRY(read_manual(&c));
  TS_TRY(TS_NEW_ARRAY(m->op->types.count + 1, &results));
  ts_status status = run_manual(&c, results);
  make_scope_deinit(&c.scope);
  ts_free(results);
  return status;
}

/* ---- collectives */

ts_status make_find_dim(const make_call *m, const char *name, const ts_shape *shape, int32_t *out) {
  int64_t dim;
  TS_TRY(make_attr_int(m, name, &dim));
  if (dim < 0 || dim >= shape->rank) return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)dim);
  *out = (int32_t)dim;
  return TS_SUCCESS;
}

static ts_status along(const make_call *m, ts_opcode code, const ts_dims *axes, int32_t dim, ts_value_id *inout) {
  ts_attrs attrs = {.along = {.dim = dim}};
  ts_shape_copy(&attrs.along.axes, axes);
  return make_add(m, code, (ts_values){inout, 1}, &attrs, inout);
}

static ts_opcode all_reduce_of(ts_opcode combine) {
  static const ts_opcode rows[][2] = {{TS_OP_ADD, TS_OP_ALL_REDUCE_SUM}, {TS_OP_MULTIPLY, TS_OP_ALL_REDUCE_PRODUCT},
                                      {TS_OP_MAX, TS_OP_ALL_REDUCE_MAX}, {TS_OP_MIN, TS_OP_ALL_REDUCE_MIN},
                                      {TS_OP_AND, TS_OP_ALL_REDUCE_AND}, {TS_OP_OR, TS_OP_ALL_REDUCE_OR}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i][0] == combine) return rows[i][1];
  return TS_OP_COUNT;
}

ts_status make_gather_rows(const make_call *m, const ts_dims *axes, ts_value_id x, ts_value_id *out) {
  const ts_shape *own = make_value_of(m, x)->shape;
  ts_shape rows = {.rank = own->rank + 1, .dims = {1}};
  if (rows.rank > TS_MAX_RANK) return make_error(m, TS_UNIMPLEMENTED, "its operand has too many dims");
  for (int32_t d = 0; d < own->rank; d++) rows.dims[d + 1] = own->dims[d];
  TS_TRY(make_reshape(m, x, &rows, out));
  return along(m, TS_OP_ALL_GATHER, axes, 0, out);
}

ts_status make_take_row(const make_call *m, ts_value_id rows, int64_t i, ts_value_id *out) {
  const ts_shape *shape = make_value_of(m, rows)->shape;
  ts_shape one = {.rank = shape->rank - 1, .dims = {0}};
  for (int32_t d = 0; d < one.rank; d++) one.dims[d] = shape->dims[d + 1];
  TS_TRY(make_slice(m, rows, 0, (make_range){i, i + 1, 1}, out));
  return make_reshape(m, *out, &one, out);
}

/* One more value in a fold by the region. */
static ts_status fold_in(const make_call *m, const mlir_region *region, bool is_first, ts_value_id next,
                         ts_value_id *inout) {
  make_value result = {.id = next};
  if (!is_first) TS_TRY(make_lifted(m, region, (ts_value_id[]){*inout, next}, &result));
  *inout = result.id;
  return TS_SUCCESS;
}

/* By any region: all members' values, combined in their order by each member. */
static ts_status combine_all(const make_call *m, const ts_dims *axes, ts_value_id *inout) {
  const mlir_region *region;
  ts_value_id all, next;
  TS_TRY(make_find_pair(m, &region));
  m->r->made += (size_t)ts_mesh_group_size(&m->r->mesh, axes);
  TS_TRY(make_gather_rows(m, axes, *inout, &all));
  for (int64_t i = 0; i < ts_mesh_group_size(&m->r->mesh, axes); i++) {
    TS_TRY(make_take_row(m, all, i, &next));
    TS_TRY(fold_in(m, region, i == 0, next, inout));
  }
  return TS_SUCCESS;
}

static ts_status all_reduce(const make_call *m, const ts_dims *axes, size_t i, ts_value_id *inout) {
  ts_opcode combine;
  ts_attrs attrs = {0};
  if (m->op->region_count != 1) return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  TS_TRY(make_find_combine(m, m->operands[i].is_bool, &combine));
  if (all_reduce_of(combine) == TS_OP_COUNT) return combine_all(m, axes, inout);
  ts_shape_copy(&attrs.axes, axes);
  return make_add(m, all_reduce_of(combine), (ts_values){inout, 1}, &attrs, inout);
}

/* By any region: the members' values of the own part, which are exchanged, combined in the order of the members. */
static ts_status combine_parts(const make_call *m, const ts_dims *axes, int32_t dim, ts_value_id *inout) {
  const mlir_region *region;
  const int64_t members = ts_mesh_group_size(&m->r->mesh, axes);
  ts_attrs attrs = {.exchange = {.split = dim, .concat = dim}};
  ts_value_id all, next;
  TS_TRY(make_find_pair(m, &region));
  ts_shape_copy(&attrs.exchange.axes, axes);
  TS_TRY(make_add(m, TS_OP_ALL_TO_ALL, (ts_values){inout, 1}, &attrs, &all));
  m->r->made += (size_t)members;
  const int64_t part = make_value_of(m, all)->shape->dims[dim] / members;
  for (int64_t i = 0; i < members; i++) {
    TS_TRY(make_slice(m, all, dim, (make_range){i * part, (i + 1) * part, 1}, &next));
    TS_TRY(fold_in(m, region, i == 0, next, inout));
  }
  return TS_SUCCESS;
}

static ts_status reduce_scatter(const make_call *m, const ts_dims *axes, size_t i, ts_value_id *inout) {
  ts_opcode combine;
  int32_t dim;
  if (m->op->region_count != 1) return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  TS_TRY(make_find_dim(m, "scatter_dimension", make_operand_of(m, i)->shape, &dim));
  TS_TRY(make_find_combine(m, m->operands[i].is_bool, &combine));
  if (combine != TS_OP_ADD) return combine_parts(m, axes, dim, inout);
  return along(m, TS_OP_REDUCE_SCATTER, axes, dim, inout);
}

static ts_status all_to_all(const make_call *m, const ts_dims *axes, size_t i, ts_value_id *inout) {
  const ts_shape *shape = make_operand_of(m, i)->shape;
  ts_attrs attrs = {0};
  ts_shape_copy(&attrs.exchange.axes, axes);
  TS_TRY(make_find_dim(m, "split_dimension", shape, &attrs.exchange.split));
  TS_TRY(make_find_dim(m, "concat_dimension", shape, &attrs.exchange.concat));
  return make_add(m, TS_OP_ALL_TO_ALL, (ts_values){inout, 1}, &attrs, inout);
}

static ts_status along_axes(const make_call *m, const ts_dims *axes, size_t root, size_t i, ts_value_id *inout) {
  ts_attrs attrs = {0};
  int32_t dim;
  if (axes->rank == 0) return TS_SUCCESS; /* a group of one */
  if (make_is(m, "stablehlo.all_reduce")) return all_reduce(m, axes, i, inout);
  if (make_is(m, "stablehlo.reduce_scatter")) return reduce_scatter(m, axes, i, inout);
  if (make_is(m, "stablehlo.all_to_all")) return all_to_all(m, axes, i, inout);
  if (make_is(m, "stablehlo.all_gather")) {
    TS_TRY(make_find_dim(m, "all_gather_dim", make_operand_of(m, i)->shape, &dim));
    return along(m, TS_OP_ALL_GATHER, axes, dim, inout);
  }
  if (!make_is(m, "stablehlo.collective_broadcast"))
    return make_error(m, TS_UNIMPLEMENTED, "it cannot be read on a mesh");
  attrs.rooted.root = (int32_t)root;
  ts_shape_copy(&attrs.rooted.axes, axes);
  return make_add(m, TS_OP_COLLECTIVE_BROADCAST, (ts_values){inout, 1}, &attrs, inout);
}

ts_status make_local_collective(const make_call *m) {
  const bool is_permute = make_is(m, "stablehlo.collective_permute"),
             is_rooted = make_is(m, "stablehlo.collective_broadcast");
  ts_attrs permutation = {0};
  ts_dims axes = {0};
  size_t root = 0;
  bool is_along = true;
  if (m->op->operand_count != m->op->types.count) return make_count_operands(m, m->op->types.count);
  TS_TRY(is_permute ? make_find_permutation(m, &permutation)
                    : make_find_axes(m, is_rooted ? &root : NULL, &axes, &is_along));
  if (!is_along) return make_of_members(m);
  for (size_t i = 0; i < m->op->operand_count; i++) {
    ts_value_id id = m->operands[i].id;
    if (m->operands[i].quant) return make_error(m, TS_UNIMPLEMENTED, "of quantised numbers cannot be read");
    if (is_permute)
      TS_TRY(make_add(m, TS_OP_COLLECTIVE_PERMUTE, (ts_values){&id, 1}, &permutation, &id));
    else
      TS_TRY(along_axes(m, &axes, root, i, &id));
    make_result(m, i, id);
  }
  return TS_SUCCESS;
}

/* ---- for how many partitions a module is written, and how the arguments and results of @main are cut */

/* A form of a sharding that cannot be read counts as not given: the program is right without it. */
static ts_status find_root(const make_state *r, const mlir_attr *attrs, const mlir_type *type, ts_root_sharding *out) {
  const mlir_attr *attr = make_find_sharding(attrs);
  *out = (ts_root_sharding){0};
  if (!attr || !type->shape || !r->base.rank) return TS_SUCCESS;
  ts_status status = make_read_sharding(r, attr, type->shape, ~0u, &out->sharding);
  if (ts_status_code(status) == TS_RESOURCE_EXHAUSTED) return status;
  out->given = !status;
  ts_status_free(status);
  return TS_SUCCESS;
}

static ts_status find_roots(make_state *r, mlir_func *main, ts_stablehlo_shardings *out) {
  const mlir_region *body = &main->body;
  TS_TRY(make_find_mesh(r));
  TS_TRY(make_begin_local(r, main));
  TS_TRY(make_find_partitions(r, &out->partitions));
  TS_TRY(TS_NEW_ARRAY(body->param_count + 1, &out->params));
  TS_TRY(TS_NEW_ARRAY(main->results.count + 1, &out->results));
  out->mesh = r->base;
  out->is_local = r->mesh.rank > 0;
  out->param_count = body->param_count;
  out->result_count = main->results.count;
  for (size_t i = 0; i < out->param_count; i++)
    TS_TRY(find_root(r, body->param_attrs ? &body->param_attrs[i] : NULL, &body->param_types.data[i], &out->params[i]));
  for (size_t i = 0; i < out->result_count; i++)
    TS_TRY(out->is_local && main->results.data[i].shape
               ? make_result_sharding(r, main, i, &out->results[i])
               : find_root(r, main->result_attrs ? &main->result_attrs[i] : NULL, &main->results.data[i],
                           &out->results[i]));
  return TS_SUCCESS;
}

ts_status ts_stablehlo_read_shardings(const char *text, size_t length, ts_stablehlo_shardings *out) {
  make_state r = {0};
  mlir_func *main;
  *out = (ts_stablehlo_shardings){0};
  ts_arena_init(&r.arena);
  ts_status status = ts_graph_create(&r.graph);
  if (!status) status = make_read_tree(&r, text, length, &main);
  if (!status) status = find_roots(&r, main, out);
  ts_graph_destroy(r.graph);
  make_state_deinit(&r);
  if (status) ts_stablehlo_shardings_deinit(out);
  return status;
}

void ts_stablehlo_shardings_deinit(ts_stablehlo_shardings *shardings) {
  ts_free(shardings->params);
  ts_free(shardings->results);
  *shardings = (ts_stablehlo_shardings){0};
}
