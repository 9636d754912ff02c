#include "kernel/ref/ref.h"

#include "base/deep.h"
#include "kernel/custom.h"
#include "kernel/ref/ref_internal.h"

typedef ts_ref_state interpreter;

static ts_status run_region(interpreter *in, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results);

void ts_ref_set_value(ts_ref_state *in, ts_value_id id, ts_buffer *owned) {
  ts_buffer_release(in->values[id]);
  in->values[id] = owned;
}

static void release_all(ts_buffer **buffers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ts_buffer_release(buffers[i]);
    buffers[i] = NULL;
  }
}

/* ---- control ---- */

static ts_status scalar_buffer(interpreter *in, ts_dtype type, ts_scalar value, ts_buffer **out) {
  TS_TRY(ts_buffer_create(in->pool, type, &(ts_shape){.rank = 0}, out));
  ts_ref_set(*out, 0, value);
  return TS_SUCCESS;
}

static ts_status run_while(interpreter *in, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  ts_buffer **next = NULL;
  ts_status status = TS_NEW_ARRAY(op->operand_count, &next);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_buffer_retain(operands[i]);
    results[i] = operands[i];
  }
  while (!status) {
    ts_buffer *proceed = NULL;
    TS_GOTO(done, status, run_region(in, op->attrs->regions.regions[0], results, &proceed));
    bool stop = !ts_ref_truth(proceed->dtype, ts_ref_get(proceed, 0));
    ts_buffer_release(proceed);
    if (stop) break;
    TS_GOTO(done, status, run_region(in, op->attrs->regions.regions[1], results, next));
    release_all(results, op->operand_count);
    for (uint32_t i = 0; i < op->operand_count; i++) results[i] = next[i];
  }
done:
  ts_free(next);
  return status;
}

/* The meaning of a custom call is the plugin's function. */
static ts_status run_custom(interpreter *in, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *value = ts_graph_value(in->graph, op->first_result + i);
    TS_TRY(ts_buffer_create(in->pool, value->dtype, value->shape, &results[i]));
  }
  return ts_custom_compute(&(ts_custom_values){in->graph, op, operands, results}, in->pool, in->cancel);
}

static ts_status run_control(interpreter *in, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  switch ((ts_ops_CONTROL)op->code) {
  case TS_IN_CLASS_WHILE: return run_while(in, op, operands, results);
  case TS_IN_CLASS_COND: {
    bool truth = ts_ref_truth(operands[0]->dtype, ts_ref_get(operands[0], 0));
    return run_region(in, op->attrs->regions.regions[truth ? 0 : 1], operands + 1, results);
  }
  case TS_IN_CLASS_FUSION: return run_region(in, op->attrs->fusion.region, operands, results);
  case TS_IN_CLASS_CALLBACK:
    return ts_error(TS_FAILED_PRECONDITION, "the interpreter has no caller that could answer callback %u",
                    op->attrs->callback.index);
  case TS_IN_CLASS_CALL: return run_region(in, op->attrs->regions.regions[0], operands, results);
  case TS_IN_CLASS_CUSTOM_CALL: return run_custom(in, op, operands, results);
  }
  return ts_error(TS_UNIMPLEMENTED, "%s has no meaning in the interpreter", ts_op_name(op->code));
}

/* A left fold with a region: acc = region(acc, x) for the elements in order. */
static ts_status fold(interpreter *in, const ts_ref_call *call, const ts_ref_split *split, int64_t base,
                      ts_buffer **inout_acc) {
  const ts_buffer *operand = call->operands[0];
  int64_t index[TS_MAX_RANK] = {0};
  for (int64_t k = 0; k < ts_shape_elements(&split->reduced); k++, ts_ref_next(&split->reduced, index)) {
    int64_t from = base + ts_ref_offset(split->reduced.rank, index, split->reduced_strides);
    ts_buffer *args[2] = {*inout_acc, NULL}, *next = NULL;
    TS_TRY(scalar_buffer(in, operand->dtype, ts_ref_get(operand, from), &args[1]));
    ts_status status = run_region(in, call->op->attrs->reduce.region, args, &next);
    ts_buffer_release(args[1]);
    TS_TRY(status);
    ts_buffer_release(*inout_acc);
    *inout_acc = next;
  }
  return TS_SUCCESS;
}

static ts_status reduce_region(interpreter *in, const ts_ref_call *call) {
  ts_ref_split split = ts_ref_split_dims(&call->operands[0]->shape, &call->op->attrs->reduce.axes);
  int64_t kept[TS_MAX_RANK] = {0};
  for (int64_t i = 0; i < ts_shape_elements(&split.kept); i++, ts_ref_next(&split.kept, kept)) {
    ts_buffer *acc = call->operands[1];
    ts_buffer_retain(acc);
    ts_status status = fold(in, call, &split, ts_ref_offset(split.kept.rank, kept, split.kept_strides), &acc);
    if (!status) ts_ref_set(call->result, i, ts_ref_get(acc, 0));
    ts_buffer_release(acc);
    TS_TRY(status);
  }
  return TS_SUCCESS;
}

/* ---- one op ---- */

static ts_status compute_product(const ts_ref_call *call) {
  switch ((ts_ops_DOT)call->op->code) {
  case TS_OP_DOT:
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT: return ts_ref_dot(call);
  case TS_OP_QUANTIZED_DOT: ts_ref_quantized_dot(call); return TS_SUCCESS;
  case TS_OP_CONV: ts_ref_conv(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}

ts_status ts_ref_compute(const ts_ref_call *call) {
  switch (ts_op_get_class(call->op->code)) {
  case TS_CLASS_SOURCE: return ts_ref_source(call);
  case TS_CLASS_SHAPE: return ts_ref_shape_op(call);
  case TS_CLASS_INDEXED: return ts_ref_indexed(call);
  case TS_CLASS_REDUCE: return ts_ref_reduce(call);
  case TS_CLASS_ARG_REDUCE: ts_ref_arg_reduce(call); return TS_SUCCESS;
  case TS_CLASS_SCAN: return ts_ref_scan(call);
  case TS_CLASS_SORT: return ts_ref_sort(call);
  case TS_CLASS_WINDOW: return ts_ref_window(call);
  case TS_CLASS_DOT: return compute_product(call);
  case TS_CLASS_LINALG: return ts_ref_linalg(call);
  case TS_CLASS_FFT: return ts_ref_fft(call);
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
  case TS_CLASS_CLAMP: return ts_ref_elementwise(call);
  case TS_CLASS_COLLECTIVE:     /* ref_partitions.c */
  case TS_CLASS_CONTROL: break; /* run_control */
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST: return ts_ref_test(call);
#endif
  }
  return ts_ref_unknown(call);
}

/* A collective of one partition gives its operands, or zeros. */
static ts_status run_alone(const interpreter *in, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  int32_t partitions = ts_mesh_partitions(&in->graph->mesh);
  if (op->code != TS_OP_SHARDING_CONSTRAINT && partitions > 1)
    return ts_error(TS_FAILED_PRECONDITION, "the program has %d partitions, which only run together", partitions);
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (!ts_op_permutes_nothing(op)) {
      ts_buffer_retain(operands[i]);
      results[i] = operands[i];
      continue;
    }
    TS_TRY(ts_buffer_create(in->pool, operands[i]->dtype, &operands[i]->shape, &results[i]));
    memset(results[i]->data, 0, (size_t)results[i]->bytes);
  }
  return TS_SUCCESS;
}

/* `results` gets op->result_count references, including those made before a failure. */
static ts_status run_on(interpreter *in, const ts_op *op, ts_buffer *const *operands, ts_buffer **results) {
  if (ts_op_get_class(op->code) == TS_CLASS_CONTROL) return run_control(in, op, operands, results);
  if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE) return run_alone(in, op, operands, results);
  if (op->code == TS_OP_LITERAL) {
    results[0] = op->attrs->literal.buffer;
    ts_buffer_retain(results[0]);
    return TS_SUCCESS;
  }
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *value = ts_graph_value(in->graph, op->first_result + i);
    TS_TRY(ts_buffer_create(in->pool, value->dtype, value->shape, &results[i]));
  }
  ts_ref_call call = {op, operands, results, results[0], in->cancel};
  if (in->stand_in && op->operand_count > 0 && !ts_ref_defines_bits(op->code, operands[0]->dtype))
    return in->stand_in->compute(in->stand_in->arg, op, operands, results);
  return op->code == TS_OP_REDUCE ? reduce_region(in, &call) : ts_ref_compute(&call);
}

ts_status ts_ref_run_op(ts_ref_state *in, const ts_op *op) {
  ts_buffer **buffers;
  TS_TRY(TS_NEW_ARRAY((size_t)op->operand_count + op->result_count, &buffers));
  ts_buffer **results = buffers + op->operand_count;
  for (uint32_t i = 0; i < op->operand_count; i++) buffers[i] = in->values[op->operands[i]];
  ts_status status = run_on(in, op, buffers, results);
  if (!status) status = ts_check_cancelled(in->cancel, "the run");
  if (status) release_all(results, op->result_count);
  for (uint32_t i = 0; !status && i < op->result_count; i++) ts_ref_set_value(in, op->first_result + i, results[i]);
  ts_free(buffers);
  return ts_error_context(status, "%s", ts_op_name(op->code));
}

/* ---- regions ---- */

void ts_ref_forget_region(ts_ref_state *in, const ts_region *region) {
  for (size_t i = 0; i < region->params.count; i++) ts_ref_set_value(in, region->params.data[i], NULL);
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(in->graph, region->ops.data[i]);
    for (uint32_t r = 0; r < op->result_count; r++) ts_ref_set_value(in, op->first_result + r, NULL);
  }
}

/* `out_results` gets references; none on failure. */
static ts_status run_region(interpreter *in, ts_region_id id, ts_buffer *const *args, ts_buffer **out_results) {
  const ts_region *region = ts_graph_region(in->graph, id);
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; i < region->params.count; i++) {
    ts_buffer_retain(args[i]);
    ts_ref_set_value(in, region->params.data[i], args[i]);
  }
  for (size_t i = 0; !status && i < region->ops.count; i++) {
    status = ts_ref_run_op(in, ts_graph_op(in->graph, region->ops.data[i]));
  }
  for (size_t i = 0; !status && i < region->results.count; i++) {
    out_results[i] = in->values[region->results.data[i]];
    ts_buffer_retain(out_results[i]);
  }
  ts_ref_forget_region(in, region);
  return status;
}

static ts_status check_args(const ts_graph *graph, ts_buffer *const *args, size_t arg_count) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  if (arg_count != root->params.count) {
    return ts_error(TS_INVALID_ARGUMENT, "expected %zu arguments, got %zu", root->params.count, arg_count);
  }
  for (size_t i = 0; i < arg_count; i++) {
    const ts_value *param = ts_graph_value(graph, root->params.data[i]);
    if (args[i]->dtype == param->dtype && ts_shape_equal(&args[i]->shape, param->shape)) continue;
    return ts_error(TS_INVALID_ARGUMENT, "argument %zu is %s, expected %s", i + 1,
                    TS_SHAPE_STR(args[i]->dtype, &args[i]->shape), TS_SHAPE_STR(param->dtype, param->shape));
  }
  return TS_SUCCESS;
}

typedef struct root_call {
  interpreter *in;
  ts_buffer *const *args;
  ts_buffer **out_results;
} root_call;

static ts_status root_on_stack(void *context) {
  const root_call *c = context;
  return run_region(c->in, TS_ROOT, c->args, c->out_results);
}

static ts_status run_program(interpreter *in, ts_buffer *const *args, size_t arg_count, ts_buffer **out_results) {
  TS_TRY(check_args(in->graph, args, arg_count));
  TS_TRY(TS_NEW_ARRAY(in->graph->values.count, &in->values));
  ts_status status =
      ts_deep_call(ts_graph_region(in->graph, TS_ROOT)->height, root_on_stack, &(root_call){in, args, out_results});
  ts_free(in->values);
  return status;
}

ts_status ts_ref_run(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_pool *pool,
                     ts_buffer **out_results) {
  return ts_ref_run_until(graph, args, arg_count, pool, NULL, out_results);
}

ts_status ts_ref_run_until(const ts_graph *graph, ts_buffer *const *args, size_t arg_count, ts_pool *pool,
                           const _Atomic bool *cancel, ts_buffer **out_results) {
  interpreter in = {.graph = graph, .pool = pool, .cancel = cancel};
  return run_program(&in, args, arg_count, out_results);
}

ts_status ts_ref_run_with(const ts_graph *graph, ts_buffer *const *args, size_t arg_count,
                          const ts_ref_stand_in *stand_in, ts_buffer **out_results) {
  interpreter in = {.graph = graph, .pool = ts_pool_default(), .stand_in = stand_in};
  return run_program(&in, args, arg_count, out_results);
}
