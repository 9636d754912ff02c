#include "pass/nest.h"

ts_nest_root ts_nest_root_whole(const ts_graph *graph, ts_value_id value, uint32_t result) {
  ts_nest_root root;
  const ts_shape *shape = ts_graph_value(graph, value)->shape;
  root.value = value;
  root.result = result;
  root.offset = 0;
  ts_shape_copy(&root.shape, shape);
  for (int32_t d = 0; d < shape->rank; d++) root.skip[d] = 0;
  ts_shape_strides(&root.shape, root.stride);
  return root;
}

void ts_nest_deinit(ts_nest *nest) {
  TS_VEC_FREE(&nest->nodes);
  TS_VEC_FREE(&nest->loads);
  TS_VEC_FREE(&nest->stores);
  TS_VEC_FREE(&nest->indices);
  TS_VEC_FREE(&nest->scalars);
}

static bool affine_varies(const ts_nest *nest, const ts_affine *x) {
  for (int32_t l = nest->kept; l < nest->loops.count; l++) {
    if (x->coef[l] != 0) return true;
  }
  return false;
}

static bool node_varies(const ts_nest *nest, const ts_nest_node *node) {
  const ts_nest_node *nodes = nest->nodes.data;
  switch (node->kind) {
  case TS_NEST_LOAD: return affine_varies(nest, &nest->loads.data[node->slot].at);
  case TS_NEST_INDEX: return affine_varies(nest, &nest->indices.data[node->slot]);
  case TS_NEST_GATHER: return nodes[node->a].varies || affine_varies(nest, &nest->loads.data[node->slot].at);
  case TS_NEST_OP:
    return nodes[node->a].varies || (node->b >= 0 && nodes[node->b].varies) || (node->c >= 0 && nodes[node->c].varies);
  case TS_NEST_SCALAR:
  case TS_NEST_REDUCE:
  case TS_NEST_ARG: break;
  }
  return false;
}

/* Such ops are interpreted; the pipeline leaves none (widen.c). */
static bool computes_in_small_type(const ts_nest *nest, const ts_nest_node *node) {
  bool moves = node->op == TS_OP_SELECT || node->op == TS_OP_CONVERT || node->op == TS_OP_BITCAST;
  switch (node->kind) {
  case TS_NEST_INDEX: return ts_dtype_is_small(node->dtype);
  case TS_NEST_REDUCE:
  case TS_NEST_ARG:
  case TS_NEST_OP:
    return !moves && (ts_dtype_is_small(node->dtype) || ts_dtype_is_small(nest->nodes.data[node->a].dtype));
  case TS_NEST_LOAD:
  case TS_NEST_SCALAR:
  case TS_NEST_GATHER: break;
  }
  return false;
}

ts_status ts_nest_add_node(ts_nest *nest, ts_nest_node node, int32_t *out) {
  if (nest->nodes.count == TS_NEST_MAX_NODES)
    return ts_error(TS_UNIMPLEMENTED, "a region of too many ops for one kernel");
  if (!ts_dtype_has_kernels(node.dtype))
    return ts_error(TS_UNIMPLEMENTED, "no kernel of type %s", ts_dtype_name(node.dtype));
  if (computes_in_small_type(nest, &node))
    return ts_error(TS_UNIMPLEMENTED, "no kernel computes %s of %s", ts_op_name(node.op), ts_dtype_name(node.dtype));
  node.varies = node_varies(nest, &node);
  *out = (int32_t)nest->nodes.count;
  return TS_VEC_PUSH(&nest->nodes, node);
}

ts_status ts_nest_add_scalar(ts_nest *nest, ts_dtype dtype, ts_scalar value, int32_t *out) {
  *out = (int32_t)nest->scalars.count;
  return TS_VEC_PUSH(&nest->scalars, ((ts_nest_scalar){dtype, value}));
}

static bool loops_merge(const ts_loops *loops, int32_t outer, const ts_affine *x) {
  return x->coef[outer] == x->coef[outer + 1] * loops->extent[outer + 1];
}

bool ts_nest_row_is_one(const ts_nest *nest) {
  for (int32_t l = nest->kept; l + 1 < nest->loops.count; l++) {
    for (size_t i = 0; i < nest->loads.count; i++) {
      if (!loops_merge(&nest->loops, l, &nest->loads.data[i].at)) return false;
    }
    for (size_t i = 0; i < nest->stores.count; i++) {
      if (!loops_merge(&nest->loops, l, &nest->stores.data[i].to.at)) return false;
    }
    for (size_t i = 0; i < nest->indices.count; i++) {
      if (!loops_merge(&nest->loops, l, &nest->indices.data[i])) return false;
    }
  }
  return true;
}

/* ---- columns ---- */

/* The first of the kept loops that step over adjacent elements, and how many elements these are. */
static int32_t find_adjacent(const ts_nest *nest, const ts_affine *at, int64_t size, int64_t *columns) {
  int32_t l = nest->kept;
  for (*columns = 1; l > 0; l--) {
    if (nest->loops.extent[l - 1] > 1 && at->coef[l - 1] != *columns * size) break;
    *columns *= nest->loops.extent[l - 1];
  }
  return l;
}

/* How an access moves along adjacent columns and their rows. */
typedef enum turns { APART, FOR_ALL, OF_COLUMN, OF_POINT } turns;

static turns turns_of(const ts_nest *nest, const ts_access *access, int32_t first, int64_t columns) {
  const int64_t size = (int64_t)ts_dtype_size(access->dtype), *coef = access->at.coef;
  bool along_columns = true, no_columns = true, along_row = true, no_row = true;
  int64_t step = size;
  for (int32_t l = nest->kept - 1; l >= first; step *= nest->loops.extent[l], l--) {
    along_columns &= nest->loops.extent[l] == 1 || coef[l] == step;
    no_columns &= nest->loops.extent[l] == 1 || coef[l] == 0;
  }
  step = columns * size;
  for (int32_t l = nest->loops.count - 1; l >= nest->kept; step *= nest->loops.extent[l], l--) {
    along_row &= nest->loops.extent[l] == 1 || coef[l] == step;
    no_row &= nest->loops.extent[l] == 1 || coef[l] == 0;
  }
  if (along_columns) return along_row ? OF_POINT : no_row ? OF_COLUMN : APART;
  return no_columns && no_row ? FOR_ALL : APART;
}

static bool depends_on_place(const ts_nest *nest) {
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_kind kind = nest->nodes.data[i].kind;
    if (kind == TS_NEST_INDEX || kind == TS_NEST_GATHER || kind == TS_NEST_ARG) return true;
  }
  return false;
}

/* The first load that moves along the rows; NULL: none does. */
static const ts_access *find_moving(const ts_nest *nest) {
  for (size_t i = 0; i < nest->loads.count; i++)
    if (affine_varies(nest, &nest->loads.data[i].at)) return &nest->loads.data[i];
  return NULL;
}

int64_t ts_nest_columns(const ts_nest *nest) {
  const ts_access *moving = find_moving(nest);
  int64_t columns, row = 1;
  if (!moving || depends_on_place(nest)) return 0;
  const int32_t first = find_adjacent(nest, &moving->at, (int64_t)ts_dtype_size(moving->dtype), &columns);
  for (int32_t l = nest->kept; l < nest->loops.count; l++) row *= nest->loops.extent[l];
  if (columns == 1 || row == 1) return 0;
  for (size_t i = 0; i < nest->loads.count; i++)
    if (turns_of(nest, &nest->loads.data[i], first, columns) == APART) return 0;
  for (size_t i = 0; i < nest->stores.count; i++)
    if (turns_of(nest, &nest->stores.data[i].to, first, columns) < OF_COLUMN) return 0;
  return columns;
}

/* Marks the nodes that depend on a reduction's result. True when a reduction does. */
static bool find_after(const ts_nest *nest, bool *after) {
  bool chain = false;
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_node *node = &nest->nodes.data[i];
    bool inherits = node->a >= 0 && after[node->a];
    if (node->kind == TS_NEST_OP)
      inherits = inherits || (node->b >= 0 && after[node->b]) || (node->c >= 0 && after[node->c]);
    chain = chain || (ts_nest_node_reduces(node) && inherits);
    after[i] = inherits || ts_nest_node_reduces(node);
  }
  return chain;
}

bool ts_nest_has_chain(const ts_nest *nest) {
  bool after[2 * TS_NEST_MAX_NODES] = {0};
  return find_after(nest, after);
}

bool ts_nest_is_of_points(const ts_nest *nest, const ts_nest_store *store) {
  return affine_varies(nest, &store->to.at);
}

bool ts_nest_points_wait(const ts_nest *nest) {
  bool after[2 * TS_NEST_MAX_NODES] = {0};
  (void)find_after(nest, after);
  for (size_t i = 0; i < nest->stores.count; i++) {
    const ts_nest_store *store = &nest->stores.data[i];
    if (after[store->node] && ts_nest_is_of_points(nest, store)) return true;
  }
  return false;
}

bool ts_nest_stores_points(const ts_nest *nest) {
  for (size_t i = 0; i < nest->stores.count; i++) {
    if (ts_nest_is_of_points(nest, &nest->stores.data[i])) return true;
  }
  return false;
}

int64_t ts_nest_bytes_read(const ts_nest *nest) {
  int64_t bytes = 0;
  for (size_t i = 0; i < nest->loads.count; i++) {
    const ts_access *load = &nest->loads.data[i];
    int64_t elements = 1;
    for (int32_t l = 0; l < nest->loops.count; l++) {
      if (load->at.coef[l] != 0) elements *= nest->loops.extent[l];
    }
    bytes += elements * (int64_t)ts_dtype_size(load->dtype);
  }
  return bytes;
}
