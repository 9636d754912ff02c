/* The partitions of a program in step: op by op, each partition by itself, and collectives over all of them. */
#include "base/deep.h"
#include "ir/combiner.h"
#include "kernel/ref/ref.h"
#include "kernel/ref/ref_internal.h"

#include <string.h>

typedef struct partitions {
  const ts_graph *graph;
  ts_pool *pool;
  int32_t count;
  ts_buffer **members; /* room for an operand of each partition, */
  ts_scalar *values;   /* and for one of its elements */
  ts_ref_state each[];
} partitions;

static ts_status run_in_step(partitions *ps, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results);

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; buffers && i < count; i++) {
    ts_buffer_release(buffers[i]);
    buffers[i] = NULL;
  }
}

/* ---- one collective ---- */

/* An operand of a collective in all members of a group, and one member's result. */
typedef struct exchange {
  const ts_op *op;
  ts_buffer **members;
  ts_scalar *values;
  int32_t count, own;
  ts_buffer *result;
} exchange;

/* Copies a box of `extent`. */
static void copy_box(ts_buffer *to, const int64_t *to_start, const ts_buffer *from, const int64_t *from_start,
                     const ts_shape *extent) {
  int64_t to_strides[TS_MAX_RANK], from_strides[TS_MAX_RANK], index[TS_MAX_RANK] = {0};
  size_t size = ts_dtype_size(to->dtype);
  int32_t rank = extent->rank;
  ts_shape_strides(&to->shape, to_strides);
  ts_shape_strides(&from->shape, from_strides);
  int64_t to_base = ts_ref_offset(rank, to_start, to_strides),
          from_base = ts_ref_offset(rank, from_start, from_strides);
  for (int64_t i = 0; i < ts_shape_elements(extent); i++, ts_ref_next(extent, index)) {
    size_t t = (size_t)(to_base + ts_ref_offset(rank, index, to_strides));
    size_t f = (size_t)(from_base + ts_ref_offset(rank, index, from_strides));
    memcpy((char *)to->data + t * size, (const char *)from->data + f * size, size);
  }
}

/* Pairs, then pairs of the results; the last one waits when it has no partner. */
static ts_scalar combine(ts_opcode code, ts_dtype type, ts_scalar *values, int32_t count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (int32_t i = 0; i < count / 2; i++) values[i] = ts_ref_binary(code, type, values[2 * i], values[2 * i + 1]);
    if (count % 2) values[count / 2] = values[count - 1];
  }
  return values[0];
}

static void reduce_numbers(const exchange *x, ts_buffer *out) {
  ts_dtype type = out->dtype, wide = ts_dtype_is_float(type) ? ts_dtype_accumulator(type) : type;
  for (int64_t i = 0; i < ts_shape_elements(&out->shape); i++) {
    for (int32_t m = 0; m < x->count; m++) x->values[m] = ts_scalar_convert(type, ts_ref_get(x->members[m], i), wide);
    ts_scalar sum = combine(ts_collective_combines(x->op->code), wide, x->values, x->count);
    ts_ref_set(out, i, ts_scalar_convert(wide, sum, type));
  }
}

static void reduce_bits(const exchange *x, bool either) {
  unsigned char *out = x->result->data;
  memcpy(out, x->members[0]->data, (size_t)x->result->bytes);
  for (int32_t m = 1; m < x->count; m++) {
    const unsigned char *in = x->members[m]->data;
    for (int64_t i = 0; i < x->result->bytes; i++) out[i] = either ? out[i] | in[i] : out[i] & in[i];
  }
}

static const int64_t zeros[TS_MAX_RANK];

static void gather(const exchange *x, int32_t dim) {
  for (int32_t m = 0; m < x->count; m++) {
    int64_t start[TS_MAX_RANK] = {0};
    start[dim] = m * x->members[m]->shape.dims[dim];
    copy_box(x->result, start, x->members[m], zeros, &x->members[m]->shape);
  }
}

static ts_status reduce_scatter(const exchange *x, ts_pool *pool, int32_t dim) {
  ts_buffer *whole;
  int64_t start[TS_MAX_RANK] = {0};
  TS_TRY(ts_buffer_create(pool, x->result->dtype, &x->members[0]->shape, &whole));
  reduce_numbers(x, whole);
  start[dim] = x->own * x->result->shape.dims[dim];
  copy_box(x->result, zeros, whole, start, &x->result->shape);
  ts_buffer_release(whole);
  return TS_SUCCESS;
}

static void exchange_parts(const exchange *x, int32_t split, int32_t concat) {
  ts_shape part;
  ts_shape_copy(&part, &x->members[0]->shape);
  part.dims[split] /= x->count;
  for (int32_t m = 0; m < x->count; m++) {
    int64_t from[TS_MAX_RANK] = {0}, to[TS_MAX_RANK] = {0};
    from[split] = x->own * part.dims[split];
    to[concat] = m * part.dims[concat];
    copy_box(x->result, to, x->members[m], from, &part);
  }
}

static void copy(const exchange *x, int32_t member) {
  memcpy(x->result->data, x->members[member]->data, (size_t)x->result->bytes);
}

static void permute(const exchange *x) {
  const ts_attrs *attrs = x->op->attrs;
  memset(x->result->data, 0, (size_t)x->result->bytes);
  for (int32_t i = 0; i < attrs->permute.targets.rank; i++)
    if (attrs->permute.targets.dims[i] == x->own) copy(x, (int32_t)attrs->permute.sources.dims[i]);
}

static ts_status compute(const exchange *x, ts_pool *pool) {
  const ts_attrs *attrs = x->op->attrs;
  switch ((ts_ops_COLLECTIVE)x->op->code) {
  case TS_OP_ALL_REDUCE_SUM:
  case TS_OP_ALL_REDUCE_PRODUCT:
  case TS_OP_ALL_REDUCE_MIN:
  case TS_OP_ALL_REDUCE_MAX: reduce_numbers(x, x->result); return TS_SUCCESS;
  case TS_OP_ALL_REDUCE_AND:
  case TS_OP_ALL_REDUCE_OR: reduce_bits(x, x->op->code == TS_OP_ALL_REDUCE_OR); return TS_SUCCESS;
  case TS_OP_ALL_GATHER: gather(x, attrs->along.dim); return TS_SUCCESS;
  case TS_OP_REDUCE_SCATTER: return reduce_scatter(x, pool, attrs->along.dim);
  case TS_OP_ALL_TO_ALL: exchange_parts(x, attrs->exchange.split, attrs->exchange.concat); return TS_SUCCESS;
  case TS_OP_COLLECTIVE_PERMUTE: permute(x); return TS_SUCCESS;
  case TS_OP_COLLECTIVE_BROADCAST: copy(x, attrs->rooted.root); return TS_SUCCESS;
  case TS_OP_BARRIER: copy(x, x->own); return TS_SUCCESS;
  case TS_OP_SHARDING_CONSTRAINT: break; /* each partition runs it by itself */
  }
  return ts_error(TS_UNIMPLEMENTED, "%s has no meaning in the interpreter", ts_op_name(x->op->code));
}

static ts_status run_for(partitions *ps, const ts_op *op, uint32_t operand, int32_t partition) {
  const ts_mesh *mesh = &ps->graph->mesh;
  const ts_dims *axes = ts_op_mesh_axes(op);
  exchange x = {.op = op, .members = ps->members, .values = ps->values, .count = ts_mesh_group_size(mesh, axes)};
  const ts_value *value = ts_graph_value(ps->graph, op->first_result + operand);
  x.own = ts_mesh_index(mesh, axes, partition);
  for (int32_t m = 0; m < x.count; m++)
    x.members[m] = ps->each[ts_mesh_member(mesh, axes, partition, m)].values[op->operands[operand]];
  TS_TRY(ts_buffer_create(ps->pool, value->dtype, value->shape, &x.result));
  ts_status status = compute(&x, ps->pool);
  if (status) {
    ts_buffer_release(x.result);
    return status;
  }
  ts_ref_set_value(&ps->each[partition], op->first_result + operand, x.result);
  return TS_SUCCESS;
}

static ts_status run_collective(partitions *ps, const ts_op *op) {
  for (int32_t p = 0; p < ps->count; p++)
    for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(run_for(ps, op, i, p));
  return TS_SUCCESS;
}

/* ---- control ---- */

/* The predicates of all partitions, which must agree. Releases them. */
static ts_status take_predicate(const partitions *ps, const ts_op *op, ts_buffer **predicates, bool *out) {
  bool differ = false;
  *out = ts_ref_truth(predicates[0]->dtype, ts_ref_get(predicates[0], 0));
  for (int32_t p = 1; p < ps->count; p++)
    differ |= ts_ref_truth(predicates[p]->dtype, ts_ref_get(predicates[p], 0)) != *out;
  release_all(predicates, (size_t)ps->count);
  if (!differ) return TS_SUCCESS;
  return ts_error(TS_FAILED_PRECONDITION,
                  "%s: the predicate differs between partitions, and its regions have collectives",
                  ts_op_name(op->code));
}

/* `state` has op->operand_count references for each partition. */
static ts_status loop(partitions *ps, const ts_op *op, ts_buffer **state, ts_buffer **next) {
  size_t count = (size_t)ps->count * op->operand_count;
  ts_buffer **proceed = next + count;
  for (;;) {
    bool goes_on = false;
    TS_TRY(run_in_step(ps, op->attrs->regions.regions[0], state, proceed));
    TS_TRY(take_predicate(ps, op, proceed, &goes_on));
    if (!goes_on) return TS_SUCCESS;
    TS_TRY(run_in_step(ps, op->attrs->regions.regions[1], state, next));
    release_all(state, count);
    memcpy(state, next, count * sizeof *state);
  }
}

static ts_status run_while(partitions *ps, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  size_t count = (size_t)ps->count * op->operand_count;
  ts_buffer **next;
  TS_TRY(TS_NEW_ARRAY(count + (size_t)ps->count, &next)); /* and the predicates */
  for (size_t i = 0; i < count; i++) ts_buffer_retain(results[i] = operands[i]);
  ts_status status = loop(ps, op, results, next);
  ts_free(next);
  return status;
}

static ts_status run_cond(partitions *ps, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  size_t each = op->operand_count - 1;
  ts_buffer **predicates, **args;
  bool truth = false;
  TS_TRY(TS_NEW_ARRAY((size_t)ps->count * (each + 1), &args));
  predicates = args + (size_t)ps->count * each;
  for (int32_t p = 0; p < ps->count; p++) ts_buffer_retain(predicates[p] = operands[(size_t)p * op->operand_count]);
  for (size_t p = 0; p < (size_t)ps->count; p++)
    for (size_t i = 0; i < each; i++) args[p * each + i] = operands[p * op->operand_count + 1 + i];
  ts_status status = take_predicate(ps, op, predicates, &truth);
  if (!status) status = run_in_step(ps, op->attrs->regions.regions[truth ? 0 : 1], args, results);
  ts_free(args);
  return status;
}

static ts_status run_control(partitions *ps, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  switch ((ts_ops_CONTROL)op->code) {
  case TS_OP_WHILE: return run_while(ps, op, operands, results);
  case TS_OP_COND: return run_cond(ps, op, operands, results);
  case TS_OP_CALL: return run_in_step(ps, op->attrs->regions.regions[0], operands, results);
  case TS_OP_FUSION: return run_in_step(ps, op->attrs->fusion.region, operands, results);
  case TS_OP_CUSTOM_CALL: /* its region never has an effect */
  case TS_OP_CALLBACK: break;
  }
  return ts_error(TS_FAILED_PRECONDITION, "%s: a program with partitions cannot call back", ts_op_name(op->code));
}

/* An op whose regions have collectives. */
static ts_status run_together(partitions *ps, const ts_op *op) {
  size_t operands = (size_t)ps->count * op->operand_count, results = (size_t)ps->count * op->result_count;
  ts_buffer **buffers;
  TS_TRY(TS_NEW_ARRAY(operands + results, &buffers));
  for (size_t i = 0; i < operands; i++)
    buffers[i] = ps->each[i / op->operand_count].values[op->operands[i % op->operand_count]];
  ts_status status = run_control(ps, op, buffers, buffers + operands);
  if (status) release_all(buffers + operands, results);
  for (size_t i = 0; !status && i < results; i++)
    ts_ref_set_value(&ps->each[i / op->result_count], op->first_result + (ts_value_id)(i % op->result_count),
                     buffers[operands + i]);
  ts_free(buffers);
  return status;
}

/* ---- regions ---- */

static ts_status run_op(partitions *ps, const ts_op *op) {
  if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE && op->code != TS_OP_SHARDING_CONSTRAINT)
    return ts_error_context(run_collective(ps, op), "%s", ts_op_name(op->code));
  if (ts_graph_has_effect(ps->graph, op)) return run_together(ps, op);
  for (int32_t p = 0; p < ps->count; p++) TS_TRY(ts_ref_run_op(&ps->each[p], op));
  return TS_SUCCESS;
}

static void set_params(partitions *ps, const ts_region *region, ts_buffer *const *args) {
  size_t count = region->params.count;
  for (size_t i = 0; i < (size_t)ps->count * count; i++) {
    ts_buffer_retain(args[i]);
    ts_ref_set_value(&ps->each[i / count], region->params.data[i % count], args[i]);
  }
}

static ts_status run_in_step(partitions *ps, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results) {
  const ts_region *region = ts_graph_region(ps->graph, id);
  size_t count = region->results.count;
  ts_status status = TS_SUCCESS;
  set_params(ps, region, args);
  for (size_t i = 0; !status && i < region->ops.count; i++)
    status = run_op(ps, ts_graph_op(ps->graph, region->ops.data[i]));
  for (size_t i = 0; !status && i < (size_t)ps->count * count; i++)
    ts_buffer_retain(out_results[i] = ps->each[i / count].values[region->results.data[i % count]]);
  for (int32_t p = 0; p < ps->count; p++) ts_ref_forget_region(&ps->each[p], region);
  return status;
}

/* ---- the program ---- */

static ts_status check_args(const ts_graph *graph, ts_buffer *const *args, size_t each) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  size_t wanted = root->params.count - (graph->mesh.coordinates ? 1 : 0);
  if (each != wanted)
    return ts_error(TS_INVALID_ARGUMENT, "expected %zu arguments of each partition, got %zu", wanted, each);
  for (size_t i = 0; i < (size_t)ts_mesh_partitions(&graph->mesh) * each; i++) {
    const ts_value *param = ts_graph_value(graph, root->params.data[i % each]);
    if (args[i]->dtype == param->dtype && ts_shape_equal(&args[i]->shape, param->shape)) continue;
    return ts_error(TS_INVALID_ARGUMENT, "argument %zu of partition %zu is %s, expected %s", i % each + 1, i / each,
                    TS_SHAPE_STR(args[i]->dtype, &args[i]->shape), TS_SHAPE_STR(param->dtype, param->shape));
  }
  return TS_SUCCESS;
}

static ts_status make_coordinates(const partitions *ps, int32_t partition, ts_buffer **out) {
  const ts_mesh *mesh = &ps->graph->mesh;
  ts_shape shape = {.rank = 1, .dims = {mesh->rank}};
  int32_t at[TS_MAX_MESH_AXES];
  TS_TRY(ts_buffer_create(ps->pool, TS_S32, &shape, out));
  ts_mesh_coordinates(mesh, partition, at);
  memcpy((*out)->data, at, (size_t)mesh->rank * sizeof *at);
  return TS_SUCCESS;
}

typedef struct root_call {
  partitions *ps;
  ts_buffer *const *args;
  ts_buffer **out_results;
} root_call;

static ts_status root_on_stack(void *context) {
  const root_call *c = context;
  return run_in_step(c->ps, TS_ROOT, c->args, c->out_results);
}

static ts_status run_with(partitions *ps, ts_buffer *const *args, size_t each, ts_buffer **out_results) {
  const ts_region *root = ts_graph_region(ps->graph, TS_ROOT);
  size_t all = root->params.count, count = (size_t)ps->count * all;
  ts_buffer **own;
  ts_status status = TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(count, &own));
  for (size_t i = 0; !status && i < count; i++) {
    if (i % all == each)
      status = make_coordinates(ps, (int32_t)(i / all), &own[i]);
    else
      ts_buffer_retain(own[i] = args[i / all * each + i % all]);
  }
  if (!status) status = ts_deep_call(root->height, root_on_stack, &(root_call){ps, own, out_results});
  release_all(own, count);
  ts_free(own);
  return status;
}

static ts_status make_partitions(partitions *ps) {
  for (int32_t p = 0; p < ps->count; p++) {
    ps->each[p] = (ts_ref_state){.graph = ps->graph, .pool = ps->pool};
    TS_TRY(TS_NEW_ARRAY(ps->graph->values.count, &ps->each[p].values));
  }
  TS_TRY(TS_NEW_ARRAY((size_t)ps->count, &ps->members));
  return TS_NEW_ARRAY((size_t)ps->count, &ps->values);
}

ts_status ts_ref_run_partitions(const ts_graph *graph, ts_buffer *const *args, size_t args_of_each, ts_pool *pool,
                                ts_buffer **out_results) {
  partitions *ps;
  size_t count = (size_t)ts_mesh_partitions(&graph->mesh);
  TS_TRY(check_args(graph, args, args_of_each));
  TS_TRY(ts_alloc(sizeof *ps + count * sizeof *ps->each, (void **)&ps));
  ps->graph = graph;
  ps->pool = pool;
  ps->count = (int32_t)count;
  ts_status status = make_partitions(ps);
  if (!status) status = run_with(ps, args, args_of_each, out_results);
  for (int32_t p = 0; p < ps->count; p++) ts_free(ps->each[p].values);
  ts_free(ps->members);
  ts_free(ps->values);
  ts_free(ps);
  return status;
}
