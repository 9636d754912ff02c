/* Builds the loop nest of a region: walks from the roots to the operands and carries each value's index map, one affine
 * expression for each dim. Shape ops only change the index map. Index maps are interned: a value that is read twice at
 * one map is computed once. */
#include "pass/nest.h"

#include <string.h>

#define BUCKETS 128
#define MAX_MAPS 4096

typedef struct index_map {
  int32_t rank;
  const ts_affine *dims;
} index_map;

/* A value that was computed at some index map. */
typedef struct instance {
  ts_value_id value;
  uint32_t map; /* its number among the index maps */
  int32_t node;
  int32_t next; /* next in the bucket, -1 at the end */
} instance;

typedef struct builder {
  const ts_nest_spec *spec;
  const ts_graph *graph;
  ts_arena *arena;
  ts_nest *nest;
  TS_VEC(index_map) maps;
  TS_VEC(instance) instances;
  int32_t buckets[BUCKETS];
  ts_refine refine; /* the loop to split before the next attempt */
  /* The iteration space: its dims, kept ones first, and each of them as an expression over the loops. */
  ts_shape space;
  int32_t space_kept;
  ts_affine space_map[TS_MAX_RANK];
  int32_t loop_dim[TS_LOOP_MAX]; /* dim of the space that a loop belongs to */
} builder;

/* For functions with an index map as a local variable: without inlining, it does not occupy the stack during deeper
 * recursion. */
#define OWN_FRAME __attribute__((noinline))

static ts_status decline(const char *why) { return ts_error(TS_UNIMPLEMENTED, "no single kernel: %s", why); }

/* ---- index maps ---- */

static ts_status intern(builder *b, int32_t rank, const ts_affine *dims, uint32_t *out) {
  for (size_t i = 0; i < b->maps.count; i++) {
    const index_map *p = &b->maps.data[i];
    if (p->rank == rank && (rank == 0 || memcmp(p->dims, dims, (size_t)rank * sizeof(*dims)) == 0)) {
      *out = (uint32_t)i;
      return TS_SUCCESS;
    }
  }
  if (b->maps.count == MAX_MAPS) return decline("too many index maps");
  index_map fresh = {.rank = rank};
  if (rank > 0) TS_TRY(ts_arena_copy(b->arena, dims, (size_t)rank * sizeof(*dims), (void **)&fresh.dims));
  *out = (uint32_t)b->maps.count;
  return TS_VEC_PUSH(&b->maps, fresh);
}

/* The index map of a value of shape `to` whose reshape to `from` is read at `map`. */
static ts_status reshape_map(builder *b, const ts_shape *from, const ts_affine *map, const ts_shape *to,
                             ts_affine *out) {
  if (ts_affine_reshape(&b->nest->loops, from, map, to, out, &b->refine)) return TS_SUCCESS;
  return decline("a reshape that no strides express");
}

static ts_status map_reshape(builder *b, const ts_op *op, const ts_affine *map, ts_affine *out) {
  return reshape_map(b, ts_graph_value(b->graph, op->first_result)->shape, map,
                     ts_graph_value(b->graph, op->operands[0])->shape, out);
}

/* The index map of operand 0 of a shape op. */
static ts_status map_shape_op(builder *b, const ts_op *op, const ts_affine *map, ts_affine *out) {
  const ts_shape *from = ts_graph_value(b->graph, op->operands[0])->shape;
  const ts_attrs *attrs = op->attrs;
  switch (op->code) {
  case TS_OP_RESHAPE: return map_reshape(b, op, map, out);
  case TS_OP_BROADCAST:
    for (int32_t d = 0; d < from->rank; d++) {
      out[d] = from->dims[d] == 1 ? (ts_affine){0} : map[attrs->broadcast.axes.dims[d]];
    }
    return TS_SUCCESS;
  case TS_OP_TRANSPOSE:
    for (int32_t d = 0; d < from->rank; d++) out[attrs->axes.dims[d]] = map[d];
    return TS_SUCCESS;
  case TS_OP_REVERSE:
    for (int32_t d = 0; d < from->rank; d++) out[d] = map[d];
    for (int32_t i = 0; i < attrs->axes.rank; i++) {
      int64_t d = attrs->axes.dims[i];
      out[d] = (ts_affine){.offset = from->dims[d] - 1};
      ts_affine_add(&out[d], &map[d], -1);
    }
    return TS_SUCCESS;
  case TS_OP_SLICE:
    for (int32_t d = 0; d < from->rank; d++) {
      out[d] = (ts_affine){.offset = attrs->slice.start.dims[d]};
      ts_affine_add(&out[d], &map[d], attrs->slice.stride.dims[d]);
    }
    return TS_SUCCESS;
  default: return decline(ts_op_name(op->code));
  }
}

/* ---- leaves ---- */

static ts_nest_node leaf(ts_nest_kind kind, ts_dtype dtype, int32_t slot) {
  return (ts_nest_node){.kind = kind, .op = TS_OP_PARAMETER, .dtype = dtype, .slot = slot, .a = -1, .b = -1, .c = -1};
}

static ts_nest_node unary(ts_opcode op, ts_dtype dtype, int32_t a) {
  return (ts_nest_node){.kind = TS_NEST_OP, .op = op, .dtype = dtype, .slot = -1, .a = a, .b = -1, .c = -1};
}

/* A complex number as its parts, so that a scalar of a kernel has at most 8 bytes. */
static ts_status add_scalar_node(builder *b, ts_dtype dtype, ts_scalar value, int32_t *out) {
  int32_t slot;
  if (ts_dtype_is_complex(dtype)) {
    ts_dtype part = ts_dtype_part(dtype);
    ts_nest_node node = unary(TS_OP_COMPLEX, dtype, -1);
    TS_TRY(add_scalar_node(b, part, ts_scalar_load(part, value.bytes), &node.a));
    TS_TRY(add_scalar_node(b, part, ts_scalar_load(part, value.bytes + ts_dtype_size(part)), &node.b));
    return ts_nest_add_node(b->nest, node, out);
  }
  TS_TRY(ts_nest_add_scalar(b->nest, dtype, value, &slot));
  return ts_nest_add_node(b->nest, leaf(TS_NEST_SCALAR, dtype, slot), out);
}

/* Adds a node for the s64 value of an expression over the loops, converted to the wanted type. */
static ts_status add_index_node(builder *b, ts_dtype dtype, const ts_affine *at, int32_t *out) {
  int32_t slot = (int32_t)b->nest->indices.count;
  TS_TRY(TS_VEC_PUSH(&b->nest->indices, *at));
  return ts_nest_add_node(b->nest, leaf(TS_NEST_INDEX, dtype, slot), out);
}

static ts_affine byte_address(const ts_value *value, const ts_affine *map) {
  ts_affine sum = {0}, elements = ts_affine_linear(value->shape, map);
  ts_affine_add(&sum, &elements, (int64_t)ts_dtype_size(value->dtype));
  return sum;
}

static bool same_load(const ts_access *x, const ts_access *y) {
  return x->role == y->role && x->index == y->index && x->dtype == y->dtype && x->term_count == y->term_count &&
         (x->term_count == 0 || memcmp(x->terms, y->terms, (size_t)x->term_count * sizeof(*x->terms)) == 0) &&
         ts_affine_equal(&x->at, &y->at);
}

static ts_status add_load(builder *b, const ts_access *access, int32_t *out) {
  for (size_t i = 0; i < b->nest->loads.count; i++) {
    *out = (int32_t)i;
    if (same_load(&b->nest->loads.data[i], access)) return TS_SUCCESS;
  }
  *out = (int32_t)b->nest->loads.count;
  return TS_VEC_PUSH(&b->nest->loads, *access);
}

static bool as_operand(builder *b, ts_value_id value, uint32_t *out) {
  return b->spec->operand(b->spec->context, value, out);
}

/* True when a value is known during lowering: a constant, inside or outside. */
static bool as_constant(builder *b, ts_value_id value, ts_scalar *out) {
  if (ts_graph_is_constant(b->graph, value, out)) return true;
  return b->spec->constant && b->spec->constant(b->spec->context, value, out);
}

static ts_status load_operand(builder *b, ts_value_id value, uint32_t operand, const ts_affine *map, int32_t *out) {
  const ts_value *v = ts_graph_value(b->graph, value);
  ts_access access = {.role = TS_ROLE_OPERAND, .index = operand, .dtype = v->dtype, .at = byte_address(v, map)};
  int32_t slot;
  TS_TRY(add_load(b, &access, &slot));
  return ts_nest_add_node(b->nest, leaf(TS_NEST_LOAD, v->dtype, slot), out);
}

/* ---- ops that read by index ---- */

static ts_status eval(builder *b, ts_value_id value, uint32_t at, int32_t *out);

/* Adds the start of a slice: at once when it is known, else as a term of the address at launch. */
static ts_status add_start(builder *b, ts_value_id start, int64_t limit, int64_t stride, ts_dynamic_term *terms,
                           ts_access *access) {
  ts_dtype dtype = ts_graph_value(b->graph, start)->dtype;
  ts_scalar known;
  uint32_t operand;
  if (limit == 0) return TS_SUCCESS;
  if (as_constant(b, start, &known)) {
    access->at.offset += ts_dynamic_clamp(dtype, known, limit) * stride;
    return TS_SUCCESS;
  }
  if (!as_operand(b, start, &operand)) return decline("a start that is computed inside");
  terms[access->term_count++] = (ts_dynamic_term){operand, dtype, limit, stride};
  return TS_SUCCESS;
}

static ts_status eval_dynamic_slice(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  const ts_value *from = ts_graph_value(b->graph, op->operands[0]);
  ts_access access = {.role = TS_ROLE_OPERAND, .dtype = from->dtype, .at = byte_address(from, map)};
  ts_dynamic_term *terms;
  int64_t strides[TS_MAX_RANK];
  if (!as_operand(b, op->operands[0], &access.index)) return decline("a dynamic slice of what is computed inside");
  TS_TRY(TS_ARENA_ARRAY(b->arena, (size_t)from->shape->rank, &terms));
  ts_shape_strides(from->shape, strides);
  for (int32_t d = 0; d < from->shape->rank; d++) {
    int64_t limit = from->shape->dims[d] - op->attrs->shape.dims[d];
    TS_TRY(add_start(b, op->operands[1 + d], limit, strides[d] * (int64_t)ts_dtype_size(from->dtype), terms, &access));
  }
  access.terms = terms;
  int32_t slot;
  TS_TRY(add_load(b, &access, &slot));
  return ts_nest_add_node(b->nest, leaf(TS_NEST_LOAD, from->dtype, slot), out);
}

/* Finds the element at `map` of a value in memory. The value can be a view of an operand: then this is an element of
 * the operand. */
static OWN_FRAME ts_status find_in_memory(builder *b, ts_value_id value, const ts_affine *map, ts_access *out) {
  ts_affine maps[2][TS_MAX_RANK];
  const ts_affine *at = map;
  *out = (ts_access){.role = TS_ROLE_OPERAND, .dtype = ts_graph_value(b->graph, value)->dtype};
  for (int side = 0; !as_operand(b, value, &out->index); side = !side) {
    const ts_op_id maker = ts_graph_value(b->graph, value)->op;
    if (maker == TS_NO_ID) return decline("a parameter that is no operand");
    const ts_op *view = ts_graph_op(b->graph, maker);
    if (!ts_nest_gathers_through(view->code)) return decline("a gather from what is computed inside");
    TS_TRY(map_shape_op(b, view, at, maps[side]));
    at = maps[side];
    value = view->operands[0];
  }
  out->at = byte_address(ts_graph_value(b->graph, value), at);
  return TS_SUCCESS;
}

/* operand[..., clamp(index), ...], the other dims read at `map` (whose entry at `axis` is ignored). A step of the index
 * is the distance from element 0 of the axis to element 1. */
static ts_status gather(builder *b, ts_value_id operand, int32_t axis, ts_affine *map, int32_t index, int32_t *out) {
  const ts_value *from = ts_graph_value(b->graph, operand);
  ts_nest_node node = leaf(TS_NEST_GATHER, from->dtype, -1);
  ts_access access, next;
  map[axis] = (ts_affine){.offset = 1};
  TS_TRY(find_in_memory(b, operand, map, &next));
  map[axis] = (ts_affine){0};
  TS_TRY(find_in_memory(b, operand, map, &access));
  ts_scalar limit = {.s64 = from->shape->dims[axis]}, step = {.s64 = next.at.offset - access.at.offset};
  node.a = index;
  TS_TRY(add_load(b, &access, &node.slot));
  TS_TRY(ts_nest_add_scalar(b->nest, TS_S64, limit, &node.b));
  TS_TRY(ts_nest_add_scalar(b->nest, TS_S64, step, &node.c));
  return ts_nest_add_node(b->nest, node, out);
}

static OWN_FRAME ts_status take_at(builder *b, const ts_op *op, const ts_affine *map, int32_t index, int32_t *out) {
  int32_t rank = ts_graph_value(b->graph, op->operands[0])->shape->rank, axis = op->attrs->axis;
  int32_t index_rank = ts_graph_value(b->graph, op->operands[1])->shape->rank;
  ts_affine operand_map[TS_MAX_RANK];
  for (int32_t d = 0; d < rank; d++) {
    if (d != axis) operand_map[d] = map[d < axis ? d : d + index_rank - 1];
  }
  return gather(b, op->operands[0], axis, operand_map, index, out);
}

static ts_status eval_take(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  int32_t index;
  uint32_t at;
  TS_TRY(intern(b, ts_graph_value(b->graph, op->operands[1])->shape->rank, map + op->attrs->axis, &at));
  TS_TRY(eval(b, op->operands[1], at, &index));
  return take_at(b, op, map, index, out);
}

static OWN_FRAME ts_status take_along_at(builder *b, const ts_op *op, const ts_affine *map, int32_t index,
                                         int32_t *out) {
  ts_affine operand_map[TS_MAX_RANK];
  memcpy(operand_map, map, (size_t)ts_graph_value(b->graph, op->operands[0])->shape->rank * sizeof(*map));
  return gather(b, op->operands[0], op->attrs->axis, operand_map, index, out);
}

static ts_status eval_take_along(builder *b, const ts_op *op, const ts_affine *map, uint32_t at, int32_t *out) {
  int32_t index;
  TS_TRY(eval(b, op->operands[1], at, &index));
  return take_along_at(b, op, map, index, out);
}

/* ---- sources ---- */

static ts_status eval_iota(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  const ts_value *value = ts_graph_value(b->graph, op->first_result);
  int32_t axis = op->attrs->iota.axis;
  ts_affine at = axis < 0 ? ts_affine_linear(value->shape, map) : map[axis];
  return add_index_node(b, value->dtype, &at, out);
}

static ts_status eval_eye(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  const ts_value *value = ts_graph_value(b->graph, op->first_result);
  ts_nest_node node = unary(TS_OP_EQUAL, TS_U8, -1);
  TS_TRY(add_index_node(b, TS_S64, &map[value->shape->rank - 2], &node.a));
  TS_TRY(add_index_node(b, TS_S64, &map[value->shape->rank - 1], &node.b));
  TS_TRY(ts_nest_add_node(b->nest, node, out));
  if (value->dtype == TS_U8) return TS_SUCCESS;
  return ts_nest_add_node(b->nest, unary(TS_OP_CONVERT, value->dtype, *out), out);
}

/* ---- reductions ---- */

static void reduced_axes(const ts_graph *graph, const ts_op *op, bool *is_reduced) {
  const ts_shape *shape = ts_graph_value(graph, op->operands[0])->shape;
  bool arg = ts_op_get_class(op->code) == TS_CLASS_ARG_REDUCE;
  for (int32_t d = 0; d < shape->rank; d++)
    is_reduced[d] = arg && (op->attrs->arg.axis < 0 || op->attrs->arg.axis == d);
  for (int32_t i = 0; !arg && i < op->attrs->axes.rank; i++) is_reduced[op->attrs->axes.dims[i]] = true;
}

static void split_shape(const ts_shape *shape, const bool *is_reduced, ts_shape *kept, ts_shape *reduced) {
  kept->rank = reduced->rank = 0;
  for (int32_t d = 0; d < shape->rank; d++) {
    ts_shape *part = is_reduced[d] ? reduced : kept;
    part->dims[part->rank++] = shape->dims[d];
  }
}

/* Splits the space into its kept and its reduced dims. */
static void split_space(const builder *b, ts_shape *kept, ts_shape *row) {
  ts_shape_set(kept, b->space_kept, b->space.dims);
  ts_shape_set(row, b->space.rank - b->space_kept, b->space.dims + b->space_kept);
}

/* The index map of a reduction's operand within the current row. */
static OWN_FRAME ts_status row_map(builder *b, const ts_op *op, const ts_affine *map, uint32_t *out) {
  const ts_shape *shape = ts_graph_value(b->graph, op->operands[0])->shape;
  ts_shape kept, reduced, row, outer;
  ts_affine row_dims[TS_MAX_RANK], inner[TS_MAX_RANK];
  bool is_reduced[TS_MAX_RANK];
  split_space(b, &outer, &row);
  reduced_axes(b->graph, op, is_reduced);
  split_shape(shape, is_reduced, &kept, &reduced);
  ts_affine have = ts_affine_linear(&kept, map), want = ts_affine_linear(&outer, b->space_map);
  if (!ts_affine_equal(&have, &want) || ts_shape_elements(&kept) != ts_shape_elements(&outer) ||
      ts_shape_elements(&reduced) != ts_shape_elements(&row)) {
    return decline("reductions over different rows");
  }
  TS_TRY(reshape_map(b, &row, b->space_map + b->space_kept, &reduced, row_dims));
  for (int32_t d = 0, k = 0, r = 0; d < shape->rank; d++) inner[d] = is_reduced[d] ? row_dims[r++] : map[k++];
  return intern(b, shape->rank, inner, out);
}

/* Kernels move complex numbers, and take and join their parts; they do not compute with them. */
static bool computes_complex(const builder *b, const ts_op *op) {
  bool moves = ts_op_get_class(op->code) == TS_CLASS_COMPLEX || op->code == TS_OP_SELECT;
  bool complex = ts_dtype_is_complex(ts_graph_value(b->graph, op->first_result)->dtype);
  for (uint32_t i = 0; i < op->operand_count; i++)
    complex = complex || ts_dtype_is_complex(ts_graph_value(b->graph, op->operands[i])->dtype);
  return complex && !moves;
}

static ts_status eval_reduce(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  bool arg = ts_op_get_class(op->code) == TS_CLASS_ARG_REDUCE;
  ts_nest_node node = unary(op->code, ts_graph_value(b->graph, op->first_result)->dtype, -1);
  uint32_t at;
  if (op->code == TS_OP_REDUCE || !b->nest->reduces || computes_complex(b, op)) return decline("a reduction here");
  node.kind = arg ? TS_NEST_ARG : TS_NEST_REDUCE;
  if (arg) node.b = op->attrs->arg.high;
  TS_TRY(row_map(b, op, map, &at));
  TS_TRY(eval(b, op->operands[0], at, &node.a));
  return ts_nest_add_node(b->nest, node, out);
}

/* ---- the walk ---- */

static ts_status eval_elementwise(builder *b, const ts_op *op, uint32_t at, int32_t *out) {
  ts_dtype dtype = ts_graph_value(b->graph, op->first_result)->dtype;
  ts_nest_node node = unary(op->code, dtype, -1);
  int32_t *const slots[] = {&node.a, &node.b, &node.c};
  if (computes_complex(b, op)) return decline("an op on complex numbers");
  for (uint32_t i = 0; i < op->operand_count && i < 3; i++) TS_TRY(eval(b, op->operands[i], at, slots[i]));
  if (op->code == TS_OP_CONVERT && dtype == ts_graph_value(b->graph, op->operands[0])->dtype) {
    *out = node.a;
    return TS_SUCCESS;
  }
  return ts_nest_add_node(b->nest, node, out);
}

static OWN_FRAME ts_status shape_op_map(builder *b, const ts_op *op, const ts_affine *map, uint32_t *out) {
  ts_affine inner[TS_MAX_RANK];
  TS_TRY(map_shape_op(b, op, map, inner));
  return intern(b, ts_graph_value(b->graph, op->operands[0])->shape->rank, inner, out);
}

static ts_status eval_shape_op(builder *b, const ts_op *op, const ts_affine *map, int32_t *out) {
  uint32_t at;
  TS_TRY(shape_op_map(b, op, map, &at));
  return eval(b, op->operands[0], at, out);
}

static ts_status eval_op(builder *b, const ts_op *op, uint32_t at, int32_t *out) {
  const ts_affine *map = b->maps.data[at].dims;
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_SOURCE:
    if (computes_complex(b, op)) return decline("an op on complex numbers");
    if (op->code == TS_OP_IOTA) return eval_iota(b, op, map, out);
    return op->code == TS_OP_EYE ? eval_eye(b, op, map, out) : decline(ts_op_name(op->code));
  case TS_CLASS_SHAPE: return eval_shape_op(b, op, map, out);
  case TS_CLASS_INDEXED:
    if (op->code == TS_OP_TAKE) return eval_take(b, op, map, out);
    if (op->code == TS_OP_TAKE_ALONG) return eval_take_along(b, op, map, at, out);
    return op->code == TS_OP_DYNAMIC_SLICE ? eval_dynamic_slice(b, op, map, out) : decline(ts_op_name(op->code));
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE: return eval_reduce(b, op, map, out);
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP: return eval_elementwise(b, op, at, out);
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  return decline(ts_op_name(op->code));
}

static ts_status eval_fresh(builder *b, ts_value_id value, uint32_t at, int32_t *out) {
  const ts_value *v = ts_graph_value(b->graph, value);
  ts_scalar known;
  uint32_t operand;
  if (as_constant(b, value, &known)) return add_scalar_node(b, v->dtype, known, out);
  if (as_operand(b, value, &operand)) return load_operand(b, value, operand, b->maps.data[at].dims, out);
  if (v->op == TS_NO_ID) return decline("a parameter that is no operand");
  return eval_op(b, ts_graph_op(b->graph, v->op), at, out);
}

static ts_status eval(builder *b, ts_value_id value, uint32_t at, int32_t *out) {
  ts_scalar known;
  if (at != 0 && as_constant(b, value, &known)) at = 0; /* equal at all points */
  int32_t *bucket = &b->buckets[(value * 31 + at) % BUCKETS];
  for (int32_t i = *bucket; i >= 0; i = b->instances.data[i].next) {
    const instance *known_instance = &b->instances.data[i];
    *out = known_instance->node;
    if (known_instance->value == value && known_instance->map == at) return TS_SUCCESS;
  }
  if (b->instances.count >= 4 * TS_NEST_MAX_NODES) return decline("too many ops");
  TS_TRY(eval_fresh(b, value, at, out));
  TS_TRY(TS_VEC_PUSH(&b->instances, ((instance){value, at, *out, *bucket})));
  *bucket = (int32_t)b->instances.count - 1;
  return TS_SUCCESS;
}

/* ---- roots ---- */

/* The loops' indices as an index map over `shape`: all of the space, in the order of the reduction's operand, or its
 * kept part. */
static OWN_FRAME ts_status root_map(builder *b, const ts_shape *shape, ts_affine *out) {
  ts_shape kept, row;
  split_space(b, &kept, &row);
  if (ts_shape_elements(shape) == ts_shape_elements(&kept)) return reshape_map(b, &kept, b->space_map, shape, out);
  if (ts_shape_elements(shape) != ts_shape_elements(&kept) * ts_shape_elements(&row))
    return decline("results of different sizes");
  if (b->spec->reduce == TS_NO_ID) return reshape_map(b, &b->space, b->space_map, shape, out);
  const ts_op *op = ts_graph_op(b->graph, b->spec->reduce);
  const ts_shape *whole = ts_graph_value(b->graph, op->operands[0])->shape;
  bool is_reduced[TS_MAX_RANK];
  ts_affine map[TS_MAX_RANK];
  reduced_axes(b->graph, op, is_reduced);
  for (int32_t d = 0, of_kept = 0, of_row = b->space_kept; d < whole->rank; d++)
    map[d] = b->space_map[is_reduced[d] ? of_row++ : of_kept++];
  return reshape_map(b, whole, map, shape, out);
}

/* The index maps for reading and writing a root. */
static OWN_FRAME ts_status root_maps(builder *b, const ts_nest_root *root, ts_affine *to, uint32_t *out) {
  const ts_value *v = ts_graph_value(b->graph, root->value);
  ts_affine map[TS_MAX_RANK];
  int64_t size = (int64_t)ts_dtype_size(v->dtype);
  TS_TRY(root_map(b, &root->shape, map));
  to->offset = root->offset * size;
  for (int32_t d = 0; d < root->shape.rank; d++) {
    ts_affine_add(to, &map[d], root->stride[d] * size);
    map[d].offset += root->skip[d];
  }
  return intern(b, v->shape->rank == 0 ? 0 : root->shape.rank, map, out);
}

static ts_status build_root(builder *b, const ts_nest_root *root) {
  ts_dtype dtype = ts_graph_value(b->graph, root->value)->dtype;
  ts_nest_store store = {.to = {.role = TS_ROLE_RESULT, .index = root->result, .dtype = dtype}};
  uint32_t at;
  TS_TRY(root_maps(b, root, &store.to.at, &at));
  TS_TRY(eval(b, root->value, at, &store.node));
  return TS_VEC_PUSH(&b->nest->stores, store);
}

/* ---- loops ---- */

static void set_space(builder *b) {
  const ts_nest_spec *spec = b->spec;
  ts_shape_copy(&b->space, &spec->roots[0].shape);
  b->space_kept = b->space.rank;
  if (spec->reduce == TS_NO_ID) return;
  const ts_op *op = ts_graph_op(b->graph, spec->reduce);
  const ts_shape *shape = ts_graph_value(b->graph, op->operands[0])->shape;
  ts_shape kept, reduced;
  bool is_reduced[TS_MAX_RANK];
  reduced_axes(b->graph, op, is_reduced);
  split_shape(shape, is_reduced, &kept, &reduced);
  ts_shape_copy(&b->space, &kept);
  b->space_kept = kept.rank;
  for (int32_t d = 0; d < reduced.rank; d++) b->space.dims[b->space.rank++] = reduced.dims[d];
}

static ts_status set_loops(builder *b) {
  ts_loops *loops = &b->nest->loops;
  *loops = (ts_loops){0};
  for (int32_t d = 0; d < b->space.rank; d++) {
    if (b->space.dims[d] == 1) continue;
    if (loops->count == TS_LOOP_MAX) return decline("too many loops");
    b->loop_dim[loops->count] = d;
    loops->extent[loops->count++] = b->space.dims[d];
  }
  return TS_SUCCESS;
}

static ts_status refine_loops(builder *b) {
  ts_loops *loops = &b->nest->loops;
  int32_t l = b->refine.loop;
  if (loops->count == TS_LOOP_MAX) return decline("too many loops");
  memmove(&loops->extent[l + 1], &loops->extent[l], (size_t)(loops->count - l) * sizeof(loops->extent[0]));
  memmove(&b->loop_dim[l + 1], &b->loop_dim[l], (size_t)(loops->count - l) * sizeof(b->loop_dim[0]));
  loops->extent[l] /= b->refine.inner;
  loops->extent[l + 1] = b->refine.inner;
  loops->count++;
  return TS_SUCCESS;
}

/* Writes each dim of the space as an expression over its loops; counts the loops of kept dims. */
static void set_space_map(builder *b) {
  ts_loops *loops = &b->nest->loops;
  int64_t step[TS_MAX_RANK];
  memset(b->space_map, 0, (size_t)b->space.rank * sizeof(*b->space_map));
  for (int32_t d = 0; d < b->space.rank; d++) step[d] = 1;
  b->nest->kept = loops->count;
  for (int32_t l = loops->count - 1; l >= 0; l--) {
    int32_t d = b->loop_dim[l];
    b->space_map[d].coef[l] = step[d];
    step[d] *= loops->extent[l];
    if (d >= b->space_kept) b->nest->kept = l;
  }
}

static void start_over(builder *b) {
  ts_nest *p = b->nest;
  p->nodes.count = p->loads.count = p->stores.count = p->indices.count = p->scalars.count = 0;
  b->maps.count = b->instances.count = 0;
  b->refine = (ts_refine){0};
  for (int i = 0; i < BUCKETS; i++) b->buckets[i] = -1;
}

static ts_status build_once(builder *b) {
  uint32_t everywhere;
  start_over(b);
  set_space_map(b);
  TS_TRY(intern(b, 0, NULL, &everywhere)); /* map 0: of rank-0 values */
  for (size_t i = 0; i < b->spec->root_count; i++) TS_TRY(build_root(b, &b->spec->roots[i]));
  const ts_nest *p = b->nest;
  if (p->loads.count + p->stores.count + p->indices.count > TS_NEST_MAX_OPERANDS) return decline("too many operands");
  return TS_SUCCESS;
}

/* Splits a loop when a reshape requires it, and starts over. */
static ts_status build_refining(builder *b) {
  for (;;) {
    ts_status status = build_once(b);
    if (ts_status_code(status) != TS_UNIMPLEMENTED || b->refine.inner == 0) return status;
    ts_status_free(status);
    TS_TRY(refine_loops(b));
  }
}

ts_status ts_nest_build(const ts_nest_spec *spec, ts_arena *arena, ts_nest *out) {
  *out = (ts_nest){.reduces = spec->reduce != TS_NO_ID};
  builder b = {.spec = spec, .graph = spec->graph, .arena = arena, .nest = out};
  set_space(&b);
  ts_status status = set_loops(&b);
  if (!status) status = build_refining(&b);
  TS_VEC_FREE(&b.maps);
  TS_VEC_FREE(&b.instances);
  if (status) ts_nest_deinit(out);
  return status;
}
