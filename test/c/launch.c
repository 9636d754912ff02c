#include "launch.h"

#include "kernel/ref/ref_internal.h"
#include "kernel/routine.h"
#include "testing.h"

typedef struct memory {
  char *data;
  int64_t bytes;
} memory;

typedef struct machine {
  const ts_launch *launch;
  const memory *regions; /* the memory that each pointer points into */
  const int64_t *args;   /* with addresses */
  int64_t width;         /* points that are done together: a row, or one */
  int32_t row;           /* its dim, -1: none */
  ts_scalar **values;    /* [node][point of the row] */
} machine;

static void *new_array(size_t count, size_t size) {
  void *out;
  ck_assert_ok(ts_alloc_array(count, size, &out));
  return out;
}

static char *address(const machine *m, int32_t operand, const int64_t *index, int64_t extra, size_t size) {
  const ts_kernel_desc *desc = &m->launch->desc;
  const int64_t *words = m->args + ts_kernel_arg_operand(desc, operand);
  const ts_kernel_operand *o =
      operand < desc->input_count ? &desc->inputs[operand] : &desc->outputs[operand - desc->input_count].operand;
  int64_t at = words[0] + extra;
  if (o->stride[desc->rank - 1] == TS_STRIDE_TURN) at += index[desc->rank - 1] % desc->members * (int64_t)size;
  for (int32_t d = 0; d < m->launch->desc.rank; d++) at += words[1 + d] * index[d];
  const memory *r = &m->regions[operand];
  ck_assert_msg(at >= (int64_t)(intptr_t)r->data && at + (int64_t)size <= (int64_t)(intptr_t)r->data + r->bytes,
                "operand %d is read or written outside of its tensor", operand);
  return (char *)(intptr_t)at;
}

static int64_t index_value(const machine *m, int32_t slot, const int64_t *index) {
  const ts_kernel_desc *d = &m->launch->desc;
  const int64_t *words = m->args + ts_kernel_arg_operand(d, d->input_count + d->output_count + slot);
  int64_t value = words[0];
  for (int32_t i = 0; i < d->rank; i++) value += words[1 + i] * index[i];
  return value;
}

static ts_scalar gather(const machine *m, const ts_kernel_node *node, const int64_t *index, int64_t k) {
  const ts_kernel_desc *d = &m->launch->desc;
  ts_dtype type = d->nodes[node->a].dtype;
  int64_t limit = m->args[ts_kernel_arg_scalar(d, node->b)], step = m->args[ts_kernel_arg_scalar(d, node->c)];
  int64_t at = ts_dynamic_clamp(type, m->values[node->a][k], limit - 1);
  return ts_scalar_load(node->dtype, address(m, node->slot, index, at * step, ts_dtype_size(node->dtype)));
}

static ts_scalar apply(const machine *m, const ts_kernel_node *node, int64_t k) {
  const int32_t slots[] = {node->a, node->b, node->c};
  ts_buffer buffers[4] = {0}, *operands[3];
  ts_scalar storage[4] = {0};
  ts_op op = {.code = node->op, .operand_count = (uint32_t)ts_op_operands(node->op)};
  for (uint32_t i = 0; i < 4; i++) buffers[i] = (ts_buffer){.data = &storage[i]};
  for (uint32_t i = 0; i < op.operand_count; i++) {
    operands[i] = &buffers[i];
    buffers[i].dtype = m->launch->desc.nodes[slots[i]].dtype;
    buffers[i].bytes = (int64_t)ts_dtype_size(buffers[i].dtype);
    storage[i] = m->values[slots[i]][k];
  }
  buffers[3].dtype = node->dtype;
  buffers[3].bytes = (int64_t)ts_dtype_size(node->dtype);
  ts_attrs attrs = {.dtype = node->dtype};
  op.attrs = &attrs;
  ts_ref_elementwise(&(ts_ref_call){.op = &op, .operands = operands, .result = &buffers[3]});
  return ts_scalar_load(node->dtype, &storage[3]);
}

/* The points of a row from `first` on, `step` apart. */
static void reduce_some(const machine *m, const ts_kernel_node *node, ts_scalar *out, int64_t first, int64_t step) {
  ts_dtype type = m->launch->desc.nodes[node->a].dtype;
  ts_scalar result = {0};
  ts_buffer operand = {.dtype = type, .shape = {.rank = 1, .dims = {m->width / step}}},
            to = {.dtype = node->dtype, .data = &result};
  ts_buffer *operands[] = {&operand};
  operand.data = new_array((size_t)m->width, ts_dtype_size(type));
  for (int64_t k = 0; k < m->width / step; k++) ts_ref_set(&operand, k, m->values[node->a][first + k * step]);
  ts_attrs attrs = {0};
  if (node->kind == TS_NODE_ARG)
    attrs.arg.high = node->b != 0, attrs.arg.axis = -1;
  else
    attrs.axes.rank = 1;
  ts_op op = {.code = node->op, .operand_count = 1, .attrs = &attrs};
  ts_ref_call call = {.op = &op, .operands = operands, .result = &to};
  if (node->kind == TS_NODE_ARG)
    ts_ref_arg_reduce(&call);
  else
    ck_assert_ok(ts_ref_reduce(&call));
  for (int64_t k = first; k < m->width; k += step) out[k] = ts_scalar_load(node->dtype, &result);
  ts_free(operand.data);
}

static void reduce(const machine *m, const ts_kernel_node *node, ts_scalar *out) {
  const ts_kernel_desc *d = &m->launch->desc;
  const int64_t columns = d->kind == TS_KERNEL_ROW && d->members > 0 ? d->members : 1;
  for (int64_t c = 0; c < columns; c++) reduce_some(m, node, out, c, columns);
}

static void set_point(const machine *m, int64_t *index, int64_t k) {
  if (m->row < 0) return;
  index[m->row] = k;
  if (!ts_kernel_has_pieces(&m->launch->desc)) return;
  if (m->launch->desc.columns == TS_COLUMNS_BLOCKS) k += index[m->row - 2] * TS_REDUCE_BLOCK;
  index[m->row] = k % m->args[m->row];
  index[m->row - 1] = k / m->args[m->row];
}

static ts_scalar eval_point(const machine *m, const ts_kernel_node *node, const int64_t *index, int64_t k) {
  const ts_kernel_desc *d = &m->launch->desc;
  switch (node->kind) {
  case TS_NODE_LOAD: return ts_scalar_load(node->dtype, address(m, node->slot, index, 0, ts_dtype_size(node->dtype)));
  case TS_NODE_SCALAR: return (ts_scalar){.s64 = m->args[ts_kernel_arg_scalar(d, node->slot)]};
  case TS_NODE_INDEX: return ts_scalar_from_s64(node->dtype, index_value(m, node->slot, index));
  case TS_NODE_GATHER: return gather(m, node, index, k);
  default: return apply(m, node, k);
  }
}

/* The last block of a row in pieces may have fewer elements. */
static int64_t width_of(const ts_kernel_desc *d, const int64_t *args, const int64_t *index) {
  const int64_t all = args[d->rank - 2] * args[d->rank - 1];
  if (d->columns != TS_COLUMNS_BLOCKS) return all;
  const int64_t rest = all - index[d->rank - 3] * TS_REDUCE_BLOCK;
  return rest < TS_REDUCE_BLOCK ? rest : TS_REDUCE_BLOCK;
}

static void run_row(const machine *m, int64_t *index) {
  const ts_kernel_desc *d = &m->launch->desc;
  for (int32_t i = 0; i < d->node_count; i++) {
    const ts_kernel_node *node = &d->nodes[i];
    if (node->kind == TS_NODE_REDUCE || node->kind == TS_NODE_ARG) {
      reduce(m, node, m->values[i]);
      continue;
    }
    for (int64_t k = 0; k < m->width; k++) {
      set_point(m, index, k);
      m->values[i][k] = eval_point(m, node, index, k);
    }
  }
  for (int32_t i = 0; i < d->output_count; i++) {
    for (int64_t k = 0; k < m->width; k++) {
      ts_dtype type = d->outputs[i].operand.dtype;
      set_point(m, index, k);
      ts_scalar_store(type, m->values[d->outputs[i].node][k],
                      address(m, d->input_count + i, index, 0, ts_dtype_size(type)));
    }
  }
  set_point(m, index, 0);
}

static void check_classes(const ts_launch *launch) {
  const ts_kernel_desc *d = &launch->desc;
  for (int32_t i = 0; i < d->input_count + d->output_count; i++) {
    const ts_kernel_operand *o = i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count].operand;
    const int64_t *words = launch->args + ts_kernel_arg_operand(d, i);
    for (int32_t l = 0; l < d->rank; l++) {
      if (launch->args[l] == 1) continue;
      if (o->stride[l] == TS_STRIDE_ZERO) ck_assert_int_eq(words[1 + l], 0);
      int64_t known = ts_kernel_known_stride(d, o->stride[l]);
      if (o->stride[l] == TS_STRIDE_NEAR) known = o->step[l];
      if (known != 0) ck_assert_int_eq(words[1 + l], known * (int64_t)ts_dtype_size(o->dtype));
    }
  }
}

static void run_launch(const ts_launch *launch, const memory *regions, const int64_t *args) {
  const ts_kernel_desc *d = &launch->desc;
  machine m = {launch, regions, args, 1, -1, new_array((size_t)d->node_count, sizeof(ts_scalar *))};
  int64_t index[TS_KERNEL_MAX_RANK] = {0}, points = 1;
  if (d->kind == TS_KERNEL_ROW) m.row = d->rank - 1;
  if (d->kind == TS_KERNEL_COL || d->kind == TS_KERNEL_INTERLEAVED) m.row = d->rank - 2;
  const int32_t pieces = ts_kernel_has_pieces(d) ? d->rank - 2 : -1;
  if (m.row >= 0) m.width = args[m.row];
  if (pieces >= 0) m.width *= args[pieces];
  ts_shape outer = {.rank = d->rank};
  for (int32_t l = 0; l < d->rank; l++) {
    outer.dims[l] = l == m.row || l == pieces ? 1 : args[l];
    points *= outer.dims[l];
  }
  check_classes(launch);
  const int64_t blocks = d->columns == TS_COLUMNS_BLOCKS ? args[d->rank - 3] : 1;
  ck_assert_int_eq(launch->points, points / blocks * m.width);
  for (int32_t i = 0; i < d->node_count; i++) m.values[i] = new_array((size_t)m.width, sizeof(ts_scalar));
  for (int64_t p = 0; p < points; p++, ts_ref_next(&outer, index)) {
    if (pieces >= 0) m.width = width_of(d, args, index);
    run_row(&m, index);
  }
  for (int32_t i = 0; i < d->node_count; i++) ts_free(m.values[i]);
  ts_free(m.values);
}

static memory region_of(const ts_launch_pointer *p, ts_buffer *const *operands, ts_buffer *const *results,
                        const memory *temps) {
  if (p->role == TS_ROLE_TEMP) return temps[p->index];
  const ts_buffer *buffer = p->role == TS_ROLE_OPERAND ? operands[p->index] : results[p->index];
  return (memory){buffer->data, buffer->bytes};
}

static void patch_and_run(const ts_launch *launch, ts_buffer *const *operands, ts_buffer *const *results,
                          const memory *temps) {
  size_t words = (size_t)ts_kernel_arg_count(&launch->desc);
  int64_t *args = new_array(words, sizeof(*args));
  memory *regions = new_array((size_t)launch->pointer_count, sizeof(*regions));
  memcpy(args, launch->args, words * sizeof(*args));
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    const ts_launch_pointer *p = &launch->pointers[i];
    regions[i] = region_of(p, operands, results, temps);
    args[p->word] = (int64_t)(intptr_t)regions[i].data + p->offset;
    for (int32_t t = 0; t < p->term_count; t++) {
      const ts_dynamic_term *term = &p->terms[t];
      ts_scalar start = ts_scalar_load(term->dtype, operands[term->operand]->data);
      args[p->word] += ts_dynamic_clamp(term->dtype, start, term->limit) * term->stride;
    }
  }
  run_launch(launch, regions, args);
  ts_free(regions);
  ts_free(args);
}

void test_run_lowered(const ts_lowered *lowered, ts_buffer *const *operands, ts_buffer *const *results, bool share) {
  memory *temps = new_array((size_t)lowered->temp_count, sizeof(*temps));
  for (int32_t i = 0; i < lowered->temp_count; i++) {
    temps[i] = (memory){new_array((size_t)lowered->temp_bytes[i], 1), lowered->temp_bytes[i]};
  }
  for (int32_t i = 0; i < lowered->launch_count; i++) {
    const ts_launch *launch = &lowered->launches[i];
    ck_assert_ok(ts_kernel_check(&launch->desc));
    if (!(share && launch->copies)) patch_and_run(launch, operands, results, temps);
  }
  for (int32_t i = 0; i < lowered->temp_count; i++) ts_free(temps[i].data);
  ts_free(temps);
}

/* ---- whole graphs ---- */

typedef struct runner {
  const ts_graph *graph;
  ts_buffer **values; /* of each value, NULL when there is none */
} runner;

static void run_region(const runner *r, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results);

static void retain_all(ts_buffer *const *buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_retain(buffers[i]);
}

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) ts_buffer_release(buffers[i]);
}

static void run_while(const runner *r, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  memcpy(results, operands, op->result_count * sizeof(*results));
  retain_all(results, op->result_count);
  for (;;) {
    ts_buffer *more, **next = new_array(op->result_count, sizeof(*next));
    run_region(r, op->attrs->regions.regions[0], results, &more);
    bool again = *(uint8_t *)more->data != 0;
    ts_buffer_release(more);
    if (again) {
      run_region(r, op->attrs->regions.regions[1], results, next);
      release_all(results, op->result_count);
      memcpy(results, next, op->result_count * sizeof(*results));
    }
    ts_free(next);
    if (!again) return;
  }
}

static void run_control(const runner *r, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  if (op->code == TS_OP_WHILE)
    run_while(r, op, operands, results);
  else if (op->code == TS_OP_CALL)
    run_region(r, op->attrs->regions.regions[0], operands, results);
  else
    run_region(r, op->attrs->regions.regions[*(uint8_t *)operands[0]->data ? 0 : 1], operands + 1, results);
}

/* Only ops that have a routine, or a type without kernels, may not lower. */
static bool may_not_lower(const runner *r, const ts_op *op) {
  return ts_routine_of(op->code, TS_F32) || !ts_graph_has_kernel_types(r->graph, op);
}

static void run_reference(const runner *r, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  ts_ref_call call = {.op = op, .operands = operands, .results = results, .result = results[0]};
  if (op->code == TS_OP_LITERAL) {
    memcpy(results[0]->data, op->attrs->literal.buffer->data, (size_t)results[0]->bytes);
    return;
  }
  ck_assert_msg(may_not_lower(r, op), "%s does not lower", ts_op_name(op->code));
  ck_assert_ok(ts_ref_compute(&call));
}

static void make_results(const runner *r, const ts_op *op, ts_buffer **results) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *v = ts_graph_value(r->graph, op->first_result + i);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), v->dtype, v->shape, &results[i]));
    if (results[i]->bytes > 0) memset(results[i]->data, 0xa5, (size_t)results[i]->bytes);
  }
}

static void run_op(const runner *r, ts_op_id id) {
  const ts_op *op = ts_graph_op(r->graph, id);
  ts_buffer **results = r->values + op->first_result, **operands = new_array(op->operand_count, sizeof(*operands));
  ts_arena arena;
  ts_lowered lowered;
  ts_arena_init(&arena);
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = r->values[op->operands[i]];
  bool control = op->code == TS_OP_WHILE || op->code == TS_OP_COND || op->code == TS_OP_CALL;
  if (!control) make_results(r, op, results);
  ts_status status = control ? TS_SUCCESS : ts_lower_op(r->graph, id, &arena, NULL, &lowered);
  if (control)
    run_control(r, op, operands, results);
  else if (ts_status_code(status) == TS_UNIMPLEMENTED && op->code != TS_OP_FUSION)
    run_reference(r, op, operands, results);
  else if (!status)
    test_run_lowered(&lowered, operands, results, false);
  else
    ck_abort_msg("%s: %s", ts_op_name(op->code), ts_status_message(status));
  ts_status_free(status);
  ts_free(operands);
  ts_arena_deinit(&arena);
}

static void forget(const runner *r, ts_value_id value) {
  ts_buffer_release(r->values[value]);
  r->values[value] = NULL;
}

static void run_region(const runner *r, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results) {
  const ts_region *region = ts_graph_region(r->graph, id);
  for (size_t i = 0; i < region->params.count; i++) r->values[region->params.data[i]] = args[i];
  retain_all(args, region->params.count);
  for (size_t i = 0; i < region->ops.count; i++) run_op(r, region->ops.data[i]);
  for (size_t i = 0; i < region->results.count; i++) out_results[i] = r->values[region->results.data[i]];
  retain_all(out_results, region->results.count);
  for (size_t i = 0; i < region->params.count; i++) forget(r, region->params.data[i]);
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(r->graph, region->ops.data[i]);
    for (uint32_t k = 0; k < op->result_count; k++) forget(r, op->first_result + k);
  }
}

void test_run_by_launches(const ts_graph *graph, ts_buffer *const *args, ts_buffer **out_results) {
  runner r = {graph, new_array(graph->values.count, sizeof(ts_buffer *))};
  run_region(&r, TS_ROOT, args, out_results);
  ts_free(r.values);
}
