#include "pass/program.h"

ts_program_root ts_program_root_whole(const ts_graph *graph, ts_value_id value, uint32_t result) {
  ts_program_root root;
  const ts_shape *shape = ts_graph_value(graph, value)->shape;
  root.value = value;
  root.result = result;
  root.offset = 0;
  ts_shape_copy(&root.shape, shape);
  for (int32_t d = 0; d < shape->rank; d++) root.skip[d] = 0;
  ts_shape_strides(&root.shape, root.stride);
  return root;
}

void ts_program_deinit(ts_program *program) {
  TS_VEC_FREE(&program->nodes);
  TS_VEC_FREE(&program->loads);
  TS_VEC_FREE(&program->stores);
  TS_VEC_FREE(&program->indices);
  TS_VEC_FREE(&program->scalars);
}

static bool affine_varies(const ts_program *program, const ts_affine *x) {
  for (int32_t l = program->kept; l < program->loops.count; l++) {
    if (x->coef[l] != 0) return true;
  }
  return false;
}

static bool node_varies(const ts_program *program, const ts_program_node *node) {
  const ts_program_node *nodes = program->nodes.data;
  switch (node->kind) {
  case TS_PROGRAM_LOAD: return affine_varies(program, &program->loads.data[node->slot].at);
  case TS_PROGRAM_INDEX: return affine_varies(program, &program->indices.data[node->slot]);
  case TS_PROGRAM_GATHER: return nodes[node->a].varies || affine_varies(program, &program->loads.data[node->slot].at);
  case TS_PROGRAM_OP:
    return nodes[node->a].varies || (node->b >= 0 && nodes[node->b].varies) || (node->c >= 0 && nodes[node->c].varies);
  case TS_PROGRAM_SCALAR:
  case TS_PROGRAM_REDUCE:
  case TS_PROGRAM_ARG: break;
  }
  return false;
}

/* Such ops are interpreted; the pipeline leaves none (widen.c). */
static bool computes_in_small_type(const ts_program *program, const ts_program_node *node) {
  bool moves = node->op == TS_OP_SELECT || node->op == TS_OP_CONVERT || node->op == TS_OP_BITCAST;
  switch (node->kind) {
  case TS_PROGRAM_INDEX: return ts_dtype_is_small(node->dtype);
  case TS_PROGRAM_REDUCE:
  case TS_PROGRAM_ARG:
  case TS_PROGRAM_OP:
    return !moves && (ts_dtype_is_small(node->dtype) || ts_dtype_is_small(program->nodes.data[node->a].dtype));
  case TS_PROGRAM_LOAD:
  case TS_PROGRAM_SCALAR:
  case TS_PROGRAM_GATHER: break;
  }
  return false;
}

ts_status ts_program_add_node(ts_program *program, ts_program_node node, int32_t *out) {
  if (program->nodes.count == TS_PROGRAM_MAX_NODES)
    return ts_error(TS_UNIMPLEMENTED, "a region of too many ops for one kernel");
  if (!ts_dtype_has_kernels(node.dtype))
    return ts_error(TS_UNIMPLEMENTED, "no kernel of type %s", ts_dtype_name(node.dtype));
  if (computes_in_small_type(program, &node))
    return ts_error(TS_UNIMPLEMENTED, "no kernel computes %s of %s", ts_op_name(node.op), ts_dtype_name(node.dtype));
  node.varies = node_varies(program, &node);
  *out = (int32_t)program->nodes.count;
  return TS_VEC_PUSH(&program->nodes, node);
}

ts_status ts_program_add_scalar(ts_program *program, ts_dtype dtype, ts_scalar value, int32_t *out) {
  *out = (int32_t)program->scalars.count;
  return TS_VEC_PUSH(&program->scalars, ((ts_program_scalar){dtype, value}));
}

static bool loops_merge(const ts_loops *loops, int32_t outer, const ts_affine *x) {
  return x->coef[outer] == x->coef[outer + 1] * loops->extent[outer + 1];
}

bool ts_program_row_is_one(const ts_program *program) {
  for (int32_t l = program->kept; l + 1 < program->loops.count; l++) {
    for (size_t i = 0; i < program->loads.count; i++) {
      if (!loops_merge(&program->loops, l, &program->loads.data[i].at)) return false;
    }
    for (size_t i = 0; i < program->stores.count; i++) {
      if (!loops_merge(&program->loops, l, &program->stores.data[i].to.at)) return false;
    }
    for (size_t i = 0; i < program->indices.count; i++) {
      if (!loops_merge(&program->loops, l, &program->indices.data[i])) return false;
    }
  }
  return true;
}

/* Marks the nodes that depend on a reduction's result. True when a reduction does. */
static bool find_after(const ts_program *program, bool *after) {
  bool chain = false;
  for (size_t i = 0; i < program->nodes.count; i++) {
    const ts_program_node *node = &program->nodes.data[i];
    bool inherits = node->a >= 0 && after[node->a];
    if (node->kind == TS_PROGRAM_OP)
      inherits = inherits || (node->b >= 0 && after[node->b]) || (node->c >= 0 && after[node->c]);
    chain = chain || (ts_program_node_reduces(node) && inherits);
    after[i] = inherits || ts_program_node_reduces(node);
  }
  return chain;
}

bool ts_program_has_chain(const ts_program *program) {
  bool after[2 * TS_PROGRAM_MAX_NODES] = {0};
  return find_after(program, after);
}

bool ts_program_is_of_points(const ts_program *program, const ts_program_store *store) {
  return affine_varies(program, &store->to.at);
}

bool ts_program_points_wait(const ts_program *program) {
  bool after[2 * TS_PROGRAM_MAX_NODES] = {0};
  (void)find_after(program, after);
  for (size_t i = 0; i < program->stores.count; i++) {
    const ts_program_store *store = &program->stores.data[i];
    if (after[store->node] && ts_program_is_of_points(program, store)) return true;
  }
  return false;
}

bool ts_program_stores_points(const ts_program *program) {
  for (size_t i = 0; i < program->stores.count; i++) {
    if (ts_program_is_of_points(program, &program->stores.data[i])) return true;
  }
  return false;
}

int64_t ts_program_bytes_read(const ts_program *program) {
  int64_t bytes = 0;
  for (size_t i = 0; i < program->loads.count; i++) {
    const ts_access *load = &program->loads.data[i];
    int64_t elements = 1;
    for (int32_t l = 0; l < program->loops.count; l++) {
      if (load->at.coef[l] != 0) elements *= program->loops.extent[l];
    }
    bytes += elements * (int64_t)ts_dtype_size(load->dtype);
  }
  return bytes;
}
