/* Prints StableHLO. An op without a counterpart (a reshape to the same shape, a call) gives its operand's name to its
 * result; calls are inlined. */
#include "base/deep.h"
#include "ir/stablehlo/stablehlo_internal.h"

static ts_status print_ops(hlo *h, const ts_region *region);
static ts_status print_first_ops(hlo *h, const ts_region *region, size_t count);

/* ---- regions ---- */

static ts_status get_values(const hlo *h, const ts_value_id *ids, size_t count, hlo_value **out) {
  TS_TRY(TS_NEW_ARRAY(count, out));
  for (size_t i = 0; i < count; i++) (*out)[i] = hlo_get(h, ids[i]);
  return TS_SUCCESS;
}

static ts_status begin_region(hlo *h, const ts_region *region, bool first) {
  hlo_value *params;
  for (size_t i = 0; i < region->params.count; i++)
    h->names[region->params.data[i]] = (hlo_name){.number = h->next++, .result = -1};
  TS_TRY(get_values(h, region->params.data, region->params.count, &params));
  hlo_region_begin(h, first, params, region->params.count);
  ts_free(params);
  return TS_SUCCESS;
}

static ts_status end_region(hlo *h, const ts_region *region, bool last, bool condition) {
  hlo_value *results;
  TS_TRY(get_values(h, region->results.data, region->results.count, &results));
  if (condition) results[0] = hlo_truth(h, results[0]);
  hlo_region_end(h, last, results, region->results.count);
  ts_free(results);
  return TS_SUCCESS;
}

static ts_status print_region(hlo *h, ts_region_id id, bool first, bool last, bool condition) {
  const ts_region *region = ts_graph_region(h->graph, id);
  TS_TRY(begin_region(h, region, first));
  TS_TRY(print_ops(h, region));
  return end_region(h, region, last, condition);
}

/* Makes the region's parameters names for `operands`. */
static void name_params(hlo *h, const ts_region *region, const ts_value_id *operands) {
  for (size_t i = 0; i < region->params.count; i++) h->names[region->params.data[i]] = h->names[operands[i]];
}

static ts_status print_inlined(hlo *h, const ts_region *region, const ts_value_id *operands) {
  name_params(h, region, operands);
  return print_ops(h, region);
}

/* ---- control ---- */

static void name_results(hlo *h, const ts_op *op, hlo_name name) {
  for (uint32_t i = 0; i < op->result_count; i++)
    h->names[op->first_result + i] =
        (hlo_name){.number = name.number, .result = op->result_count == 1 ? -1 : (int32_t)i};
}

static ts_status end_control(hlo *h, const ts_op *op, const hlo_value *operands, size_t count) {
  hlo_value *results;
  TS_TRY(TS_NEW_ARRAY(op->result_count, &results));
  for (uint32_t i = 0; i < op->result_count; i++) results[i] = hlo_get(h, op->first_result + i);
  hlo_end(h, operands, count, results, op->result_count);
  ts_free(results);
  return TS_SUCCESS;
}

static ts_status print_while(hlo *h, const ts_op *op) {
  hlo_value *operands;
  TS_TRY(get_values(h, op->operands, op->operand_count, &operands));
  name_results(h, op, hlo_begin(h, "stablehlo.while", op->result_count, operands, op->operand_count));
  ts_status status = print_region(h, op->attrs->regions.regions[0], true, false, true);
  if (!status) status = print_region(h, op->attrs->regions.regions[1], false, true, false);
  if (!status) status = end_control(h, op, operands, op->operand_count);
  ts_free(operands);
  return status;
}

/* A cond in the false region of a cond, and so on: clauses. XLA's compiler takes a time for the branches of a `case`,
 * and for the levels of nested ifs, that grows with the square of their number. So many clauses are a tree of ifs:
 * first the number of the clause is found, then its branch by halves. */
typedef TS_VEC(const ts_op *) chain;

static const ts_region *branch(const hlo *h, const ts_op *cond, int which) {
  return ts_graph_region(h->graph, cond->attrs->regions.regions[which]);
}

#define MANY_CLAUSES 4
#define FEW_ELEMENTS 1024

static bool is_small(const hlo *h, ts_value_id id) {
  return ts_shape_elements(ts_graph_value(h->graph, id)->shape) <= FEW_ELEMENTS;
}

/* Ops that may be computed also where their clause is not reached. */
static bool is_cheap(const hlo *h, const ts_op *op) {
  const ts_op_class class = ts_op_get_class(op->code);
  const bool reduces = class == TS_CLASS_REDUCE && op->code != TS_OP_REDUCE;
  bool cheap = ts_op_is_elementwise(op->code) || class == TS_CLASS_SHAPE || class == TS_CLASS_SOURCE || reduces;
  for (uint32_t i = 0; cheap && i < op->operand_count; i++) cheap = is_small(h, op->operands[i]);
  return cheap && is_small(h, op->first_result);
}

/* The next clauses of a cond: the last op of its false region, if the results are that op's and the other ops are
 * cheap. NULL: there are none. */
static const ts_op *next_clauses(const hlo *h, const ts_op *cond) {
  const ts_region *region = branch(h, cond, 1);
  const size_t count = region->ops.count;
  const ts_op *last = count > 0 ? ts_graph_op(h->graph, region->ops.data[count - 1]) : NULL;
  if (!last || last->code != TS_OP_COND || last->result_count != region->results.count) return NULL;
  for (size_t i = 0; i < region->results.count; i++)
    if (region->results.data[i] != last->first_result + i) return NULL;
  for (size_t i = 0; i + 1 < count; i++)
    if (!is_cheap(h, ts_graph_op(h->graph, region->ops.data[i]))) return NULL;
  return last;
}

static ts_status find_chain(const hlo *h, const ts_op *first, chain *out) {
  ts_status status = TS_SUCCESS;
  for (const ts_op *op = first; !status && op; op = next_clauses(h, op)) status = TS_VEC_PUSH(out, op);
  return status;
}

/* Branches have no parameters in StableHLO: they use the values around them. */
static ts_status print_branch(hlo *h, const ts_op *op, int which, bool first) {
  const ts_region *region = branch(h, op, which);
  hlo_region_begin(h, first, NULL, 0);
  TS_TRY(print_inlined(h, region, op->operands + 1));
  return end_region(h, region, !first, false);
}

/* Prints what stands in front of each cond of the chain but the first, and then the number of the first clause whose
 * predicate is true: as many as there are conds where none is. */
static ts_status print_clause(hlo *h, const chain *c, hlo_value *predicates, hlo_value *out) {
  for (size_t i = 0; i < c->count; i++) {
    const ts_op *cond = c->data[i];
    const ts_region *region = branch(h, cond, 1);
    predicates[i] = hlo_truth(h, hlo_get(h, cond->operands[0]));
    if (i + 1 == c->count) break;
    name_params(h, region, cond->operands + 1);
    TS_TRY(print_first_ops(h, region, region->ops.count - 1));
  }
  *out = hlo_integer(h, TS_S32, &ts_shape_scalar, (int64_t)c->count);
  for (size_t i = c->count; i-- > 0;) {
    const hlo_value picked[] = {predicates[i], hlo_integer(h, TS_S32, &ts_shape_scalar, (int64_t)i), *out};
    *out = hlo_op(h, "stablehlo.select", TS_S32, &ts_shape_scalar, picked, 3);
  }
  return TS_SUCCESS;
}

/* The branch of a clause; after the last one that of no clause. */
static ts_status print_branch_of(hlo *h, const chain *c, size_t clause, bool first) {
  const bool is_last = clause == c->count;
  return print_branch(h, c->data[is_last ? clause - 1 : clause], is_last, first);
}

/* Chooses among clauses from `first` up to `last` by their number, by halves. Gives the results their names. */
static ts_status print_choice(hlo *h, const chain *c, hlo_value clause, size_t first, size_t last);

static ts_status print_half(hlo *h, const chain *c, hlo_value clause, size_t first, size_t last, bool is_left) {
  const ts_op *op = c->data[0];
  hlo_value *results;
  if (first == last) return print_branch_of(h, c, first, is_left);
  hlo_region_begin(h, is_left, NULL, 0);
  TS_TRY(print_choice(h, c, clause, first, last));
  TS_TRY(TS_NEW_ARRAY(op->result_count, &results));
  for (uint32_t i = 0; i < op->result_count; i++) results[i] = hlo_get(h, op->first_result + i);
  hlo_region_end(h, !is_left, results, op->result_count);
  ts_free(results);
  return TS_SUCCESS;
}

static ts_status print_choice(hlo *h, const chain *c, hlo_value clause, size_t first, size_t last) {
  const ts_op *op = c->data[0];
  const size_t middle = (first + last) / 2;
  hlo_value bound = hlo_integer(h, TS_S32, &ts_shape_scalar, (int64_t)middle);
  hlo_value is_left = hlo_compare(h, "LE", clause, bound);
  const hlo_name name = hlo_begin(h, "stablehlo.if", op->result_count, &is_left, 1);
  TS_TRY(print_half(h, c, clause, first, middle, true));
  TS_TRY(print_half(h, c, clause, middle + 1, last, false));
  name_results(h, op, name);
  return end_control(h, op, &is_left, 1);
}

static ts_status print_clauses(hlo *h, const chain *c) {
  hlo_value *predicates, clause;
  TS_TRY(TS_NEW_ARRAY(c->count, &predicates));
  ts_status status = print_clause(h, c, predicates, &clause);
  ts_free(predicates);
  return status ? status : print_choice(h, c, clause, 0, c->count);
}

static ts_status print_if(hlo *h, const ts_op *op) {
  hlo_value predicate = hlo_truth(h, hlo_get(h, op->operands[0]));
  name_results(h, op, hlo_begin(h, "stablehlo.if", op->result_count, &predicate, 1));
  TS_TRY(print_branch(h, op, 0, true));
  TS_TRY(print_branch(h, op, 1, false));
  return end_control(h, op, &predicate, 1);
}

static ts_status print_cond(hlo *h, const ts_op *op) {
  chain c = {0};
  ts_status status = find_chain(h, op, &c);
  if (!status) status = c.count >= MANY_CLAUSES ? print_clauses(h, &c) : print_if(h, op);
  TS_VEC_FREE(&c);
  return status;
}

static ts_status print_call(hlo *h, const ts_op *op) {
  ts_region_id regions[2];
  if (ts_op_regions(op, regions) != 1) return hlo_no_form(&(hlo_call){.h = h, .op = op});
  const ts_region *region = ts_graph_region(h->graph, regions[0]);
  TS_TRY(print_inlined(h, region, op->operands));
  for (uint32_t i = 0; i < op->result_count; i++) h->names[op->first_result + i] = h->names[region->results.data[i]];
  return TS_SUCCESS;
}

static ts_status print_control(hlo *h, const ts_op *op) {
  switch ((ts_ops_CONTROL)op->code) {
  case TS_OP_WHILE: return print_while(h, op);
  case TS_OP_COND: return print_cond(h, op);
  case TS_OP_CALL:
  case TS_OP_FUSION: return print_call(h, op);
  case TS_OP_CUSTOM_CALL:
  case TS_OP_CALLBACK: break;
  }
  return ts_error(TS_UNIMPLEMENTED, "%s has no form in StableHLO", ts_op_name(op->code));
}

/* ---- ops ---- */

static ts_status print_product(const hlo_call *call, hlo_value *out) {
  switch ((ts_ops_DOT)call->op->code) {
  case TS_OP_DOT:
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT: return hlo_dot(call, out);
  case TS_OP_QUANTIZED_DOT: return hlo_quantized_dot(call, out);
  case TS_OP_CONV: return hlo_conv(call, out);
  }
  return hlo_no_form(call);
}

static ts_status print_simple(const hlo_call *call, hlo_value *out) {
  switch (ts_op_get_class(call->op->code)) {
  case TS_CLASS_SOURCE: return hlo_source(call, out);
  case TS_CLASS_SHAPE: return hlo_shape_op(call, out);
  case TS_CLASS_INDEXED: return hlo_indexed(call, out);
  case TS_CLASS_REDUCE: return hlo_reduce(call, out);
  case TS_CLASS_ARG_REDUCE: return hlo_arg_reduce(call, out);
  case TS_CLASS_SCAN: return hlo_scan(call, out);
  case TS_CLASS_SORT: return hlo_sort(call, out);
  case TS_CLASS_WINDOW: return hlo_window(call, out);
  case TS_CLASS_DOT: return print_product(call, out);
  case TS_CLASS_LINALG: return hlo_linalg(call, out);
  case TS_CLASS_FFT: return hlo_fft(call, out);
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
  case TS_CLASS_CLAMP: return hlo_elementwise(call, out);
  case TS_CLASS_COLLECTIVE:     /* hlo_collective */
  case TS_CLASS_CONTROL: break; /* print_control */
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST: return hlo_test(call, out);
#endif
  }
  return hlo_no_form(call);
}

static ts_status print_op(hlo *h, const ts_op *op) {
  if (ts_op_get_class(op->code) == TS_CLASS_COLLECTIVE) return hlo_collective(h, op);
  if (ts_op_get_class(op->code) == TS_CLASS_CONTROL) return print_control(h, op);
  const ts_value *value = ts_graph_value(h->graph, op->first_result);
  hlo_call call = {.h = h, .op = op, .element = value->dtype, .shape = value->shape};
  hlo_value results[TS_MAX_RESULTS];
  TS_TRY(print_simple(&call, results));
  for (uint32_t i = 0; i < op->result_count; i++) h->names[op->first_result + i] = results[i].name;
  if (op->result_count == 1) h->names[op->first_result].made = hlo_made(h, op);
  return TS_SUCCESS;
}

static ts_status print_first_ops(hlo *h, const ts_region *region, size_t count) {
  for (size_t i = 0; i < count; i++) TS_TRY(print_op(h, ts_graph_op(h->graph, region->ops.data[i])));
  return TS_SUCCESS;
}

static ts_status print_ops(hlo *h, const ts_region *region) { return print_first_ops(h, region, region->ops.count); }

/* ---- the module ---- */

static ts_status print_signature(hlo *h, const ts_region *root) {
  hlo_value *results;
  ts_text_append(h->out, "  func.func public @main(");
  for (size_t i = 0; i < root->params.count; i++) {
    hlo_value param = hlo_new_value(h, 0, &ts_shape_scalar);
    h->names[root->params.data[i]] = param.name;
    param = hlo_get(h, root->params.data[i]);
    if (i) ts_text_append(h->out, ", ");
    hlo_print_use(h, &param);
    ts_text_append(h->out, ": ");
    hlo_print_type(h, param.element, &param.shape);
    hlo_print_sharding(h, TS_PARAMS, i, param.shape.rank);
  }
  TS_TRY(get_values(h, root->results.data, root->results.count, &results));
  ts_text_append(h->out, ") -> ");
  ts_text_append(h->out, "(");
  for (size_t i = 0; i < root->results.count; i++) {
    if (i) ts_text_append(h->out, ", ");
    hlo_print_type(h, results[i].element, &results[i].shape);
    hlo_print_sharding(h, TS_RESULTS, i, results[i].shape.rank);
  }
  ts_text_append(h->out, ") {\n");
  ts_free(results);
  return TS_SUCCESS;
}

static ts_status print_return(hlo *h, const ts_region *root) {
  hlo_value *results;
  TS_TRY(get_values(h, root->results.data, root->results.count, &results));
  hlo_begin(h, "func.return", 0, results, root->results.count);
  hlo_end(h, results, root->results.count, NULL, 0);
  ts_free(results);
  return TS_SUCCESS;
}

static ts_status print_module(void *context) {
  hlo *h = context;
  const ts_region *root = ts_graph_region(h->graph, TS_ROOT);
  hlo_print_module_begin(h);
  TS_TRY(print_signature(h, root));
  TS_TRY(print_ops(h, root));
  TS_TRY(print_return(h, root));
  ts_text_append(h->out, "  }\n}\n");
  return h->out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

static ts_status check_types(const ts_graph *graph) {
  for (size_t i = 0; i < graph->values.count; i++) {
    ts_dtype type = (ts_dtype)graph->values.data[i].dtype;
    if (!hlo_has_type(type)) return ts_error(TS_UNIMPLEMENTED, "type %s has no form in StableHLO", ts_dtype_name(type));
  }
  return TS_SUCCESS;
}

ts_status ts_graph_print_stablehlo_with(const ts_graph *graph, const ts_stablehlo_options *options, ts_text *out) {
  hlo h = {.graph = graph,
           .out = out,
           .depth = 2,
           .replicas = options->replicas,
           .precision = options->precision,
           .barriers = options->barriers,
           .rounds_products = options->rounds_products,
           .print_region = print_region};
  TS_TRY(ts_graph_verify(graph));
  TS_TRY(check_types(graph));
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &h.names));
  ts_status status = ts_deep_call(ts_graph_region(graph, TS_ROOT)->height, print_module, &h);
  ts_free(h.names);
  return status;
}

ts_stablehlo_options ts_stablehlo_for_accelerators(void) {
  return (ts_stablehlo_options){.barriers = TS_STABLEHLO_FEW_BARRIERS, .rounds_products = true};
}

ts_status ts_graph_print_stablehlo(const ts_graph *graph, ts_text *out) {
  return ts_graph_print_stablehlo_with(graph, &(ts_stablehlo_options){.replicas = false}, out);
}
