#include "stablehlo/read.h"

#include "base/deep.h"
#include "stablehlo/interface/interface.h"
#include "stablehlo/location/location.h"

#include <stdio.h>
#include <string.h>

/* More ops than any program has: functions that call each other twice, and so on, make 2^n. */
#define MOST_OPS 1000000

/* ---- names */

/* "3" and its second result as the text "3#1". */
static size_t write_name(mlir_token name, size_t index, char *out, size_t size) {
  int length = snprintf(out, size, "%.*s#%zu", (int)(name.length < 200 ? name.length : 200), name.text, index);
  return (size_t)length;
}

ts_status make_bind(make_scope *scope, mlir_token name, size_t index, size_t of, make_value value) {
  char text[256];
  if (name.length > 200) return mlir_error(TS_UNIMPLEMENTED, name, "expected a shorter name");
  size_t length = write_name(name, index, text, sizeof text);
  if (ts_map_get(&scope->names, text, length)) return mlir_error(TS_INVALID_ARGUMENT, name, "expected a new name");
  TS_TRY(TS_VEC_PUSH(&scope->values, value));
  TS_TRY(ts_map_put(&scope->names, text, length, (void *)(uintptr_t)scope->values.count));
  if (of > 1) return TS_SUCCESS;
  return ts_map_put(&scope->names, name.text, name.length, (void *)(uintptr_t)scope->values.count);
}

void make_scope_deinit(make_scope *scope) {
  ts_map_deinit(&scope->names);
  TS_VEC_FREE(&scope->values);
}

/* ---- ops */

static ts_status at_op(const make_state *r, const mlir_op *op, ts_status status) {
  if (!status || r->has_text) return status;
  const char *message = ts_status_message(status), *place = op->name.line ? "line " : "byte ";
  if (strncmp(message, place, 5) == 0) return status; /* it names a place within the op */
  return ts_error_context(status, "%s: %.*s", MLIR_PLACE(op->name), (int)op->name.length, op->name.text);
}

static size_t count_results(const mlir_op *op) {
  size_t count = 0;
  for (size_t i = 0; i < op->result_name_count; i++) count += op->result_counts[i];
  return count;
}

static ts_status check_type(const make_call *m, size_t i) {
  const ts_value *value = make_value_of(m, m->results[i].id);
  const mlir_type *type = &m->op->types.data[i];
  if (type->parts) return TS_SUCCESS; /* its parts are checked where they are taken */
  if (make_fits(m->r, value, type)) return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "its result is %s, and the text says %s",
                    TS_SHAPE_STR(value->dtype, value->shape), TS_SHAPE_STR(type->dtype, type->shape));
}

ts_status make_bind_results(const make_call *m) {
  size_t at = 0;
  for (size_t i = 0; i < m->op->result_name_count; i++)
    for (size_t j = 0; j < m->op->result_counts[i]; j++, at++) {
      TS_TRY(check_type(m, at));
      TS_TRY(make_bind(m->scope, m->op->results[i], j, m->op->result_counts[i], m->results[at]));
    }
  return TS_SUCCESS;
}

/* Only tuples' own ops know them. */
static ts_status look_up_operands(const make_call *m, bool with_tuples, make_value *operands) {
  const mlir_op *op = m->op;
  for (size_t i = 0; i < op->types.count; i++)
    if (!op->types.data[i].shape && !(with_tuples && op->types.data[i].parts))
      return make_error(m, TS_UNIMPLEMENTED, "result %zu is no tensor that Tessera has", i);
  for (size_t i = 0; i < op->operand_count; i++) {
    TS_TRY(make_look_up(m->scope, op->operands[i], &operands[i]));
    if (operands[i].parts && !with_tuples) return make_error(m, TS_UNIMPLEMENTED, "operand %zu is a tuple", i);
  }
  if (op->result_name_count == 0 || count_results(op) == op->types.count) return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "it has %zu results and types of %zu", count_results(op), op->types.count);
}

ts_status make_look_up_operands(const make_call *m, make_value *operands) {
  return look_up_operands(m, false, operands);
}

static ts_status run_make(make_call *m, make_value *operands) {
  const mlir_op *op = m->op;
  make_fn make = make_find(op->name);
  if (!make) return make_error(m, TS_UNIMPLEMENTED, "Tessera has no such op");
  if (op->fault) return make_error(m, TS_UNIMPLEMENTED, "%s", op->fault);
  TS_TRY(look_up_operands(m, make == make_in_tuple, operands));
  for (size_t i = 0; i < op->types.count; i++) m->results[i].id = TS_NO_ID;
  m->operands = operands;
  TS_TRY(make_check_regions(m));
  TS_TRY(make_is_quantized(m) ? make_quantized(m, make) : make(m));
  for (size_t i = 0; i < op->types.count; i++) {
    if (m->results[i].id == TS_NO_ID) return make_error(m, TS_INVALID_ARGUMENT, "it has too many results");
    m->results[i].quant = op->types.data[i].quant;
  }
  return make_bind_results(m);
}

ts_status make_op(make_state *r, const mlir_op *op, ts_region_id region, make_scope *scope) {
  make_value *operands = NULL, *results = NULL;
  make_call m = {.r = r, .op = op, .region = region, .scope = scope};
  if (r->made++ >= MOST_OPS)
    return mlir_error(TS_RESOURCE_EXHAUSTED, op->name, "a program has at most %d ops", MOST_OPS);
  ts_status status = TS_NEW_ARRAY(op->operand_count + 1, &operands);
  if (!status) status = TS_NEW_ARRAY(op->types.count + 1, &results);
  m.results = results;
  const ts_place outer = r->graph->place;
  const bool has_line = r->has_line;
  if (!status) status = make_set_place(r, op);
  if (!status) status = at_op(r, op, run_make(&m, operands));
  r->graph->place = outer;
  r->has_line = has_line;
  ts_free(operands);
  ts_free(results);
  return status;
}

typedef struct block_call {
  make_state *r;
  const mlir_region *block;
  ts_region_id region;
  make_scope *scope;
  make_value *out_results;
} block_call;

static ts_status block_on_stack(void *context) {
  const block_call *c = context;
  for (size_t i = 0; i + 1 < c->block->op_count; i++) TS_TRY(make_op(c->r, &c->block->ops[i], c->region, c->scope));
  const mlir_op *last = &c->block->ops[c->block->op_count - 1];
  for (size_t i = 0; i < last->operand_count; i++)
    TS_TRY(make_look_up(c->scope, last->operands[i], &c->out_results[i]));
  return TS_SUCCESS;
}

ts_status make_block(make_state *r, const mlir_region *block, ts_region_id region, make_scope *scope,
                     make_value *out_results) {
  if (block->op_count == 0) return ts_error(TS_INVALID_ARGUMENT, "a region is empty");
  const mlir_op *last = &block->ops[block->op_count - 1];
  if (r->depth >= MAKE_MOST_DEPTH)
    return mlir_error(TS_INVALID_ARGUMENT, last->name,
                      "functions call each other, or regions are nested, more than %d deep", MAKE_MOST_DEPTH);
  r->depth++;
  ts_status status = ts_deep_call(2 * r->depth, block_on_stack, &(block_call){r, block, region, scope, out_results});
  r->depth--;
  return status;
}

/* ---- functions */

mlir_func *make_find_func(const make_state *r, mlir_token name) {
  for (size_t i = 0; i < r->module.count; i++)
    if (mlir_tokens_equal(r->module.funcs[i].name, name)) return &r->module.funcs[i];
  return NULL;
}

ts_status make_check_argument(const make_call *m, const mlir_func *func, size_t i, size_t operand) {
  const mlir_type *type = &func->body.param_types.data[i];
  const ts_value *value = make_operand_of(m, operand);
  if (!type->shape) return make_error(m, TS_UNIMPLEMENTED, "argument %zu is no tensor that Tessera has", i);
  if (make_fits(m->r, value, type)) return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "argument %zu of @%.*s is %s, and it takes %s", i, (int)func->name.length,
                    func->name.text, TS_SHAPE_STR(value->dtype, value->shape), TS_SHAPE_STR(type->dtype, type->shape));
}

static ts_status inline_into(const make_call *m, const mlir_func *func, make_scope *scope, make_value *results) {
  for (size_t i = 0; i < func->body.param_count; i++) {
    TS_TRY(make_check_argument(m, func, i, i));
    TS_TRY(make_bind(scope, func->body.params[i], 0, 1, m->operands[i]));
  }
  TS_TRY(make_pass_coordinates(m, func, scope));
  TS_TRY(make_block(m->r, &func->body, m->region, scope, results));
  for (size_t i = 0; i < m->op->types.count; i++) m->results[i] = results[i];
  return TS_SUCCESS;
}

ts_status make_inline(const make_call *m, mlir_token callee) {
  const mlir_func *func = make_find_func(m->r, callee);
  make_scope scope = {0};
  make_value *results;
  if (!func) return make_error(m, TS_INVALID_ARGUMENT, "there is no function @%.*s", (int)callee.length, callee.text);
  if (func->body.op_count == 0)
    return make_error(m, TS_UNIMPLEMENTED, "the function @%.*s has no body", (int)callee.length, callee.text);
  size_t returned = func->body.ops[func->body.op_count - 1].operand_count;
  if (func->body.param_count != m->op->operand_count || returned != m->op->types.count)
    return make_error(m, TS_INVALID_ARGUMENT, "@%.*s has %zu arguments and %zu results", (int)callee.length,
                      callee.text, func->body.param_count, returned);
  TS_TRY(TS_NEW_ARRAY(returned + 1, &results));
  ts_status status = inline_into(m, func, &scope, results);
  make_scope_deinit(&scope);
  ts_free(results);
  return status;
}

/* The module must allow a given type. */
static ts_status check_given(const make_state *r, const mlir_func *func, size_t i, const ts_shape *whole) {
  const mlir_type *type = &func->body.param_types.data[i];
  if (!r->given) return TS_SUCCESS;
  const ts_type *given = &r->given->data[i];
  if (given->dtype == type->dtype && mlir_shape_admits(type->shape, whole)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "argument %zu is %s, expected %s, where -1 is any size", i,
                  TS_SHAPE_STR(given->dtype, whole), TS_SHAPE_STR(type->dtype, type->shape));
}

/* How an argument or a result is cut, as its attributes say; without any it is whole. */
static ts_status sharding_of(const make_state *r, const mlir_attr *attrs, const ts_shape *shape, ts_sharding *out) {
  const mlir_attr *attr = make_find_sharding(attrs);
  *out = (ts_sharding){0};
  const bool is_cut = r->mesh.rank || r->keeps_shardings;
  return is_cut && attr ? make_read_sharding(r, attr, shape, ~0u, out) : TS_SUCCESS;
}

/* The type of the argument on one partition, and how it is cut. Given types are types of parts. */
static ts_status find_param(const make_state *r, const mlir_func *func, size_t i, ts_sharding *sharding,
                            ts_shape *out) {
  const mlir_attr *attrs = func->body.param_attrs ? &func->body.param_attrs[i] : NULL;
  const mlir_type *type = &func->body.param_types.data[i];
  ts_shape whole;
  ts_shape_copy(out, r->given ? &r->given->data[i].shape : type->shape);
  if (r->given) {
    const ts_shape none = {.rank = out->rank};
    TS_TRY(sharding_of(r, attrs, &none, sharding));
    ts_sharding_whole(&r->mesh, sharding, out, &whole);
    TS_TRY(ts_shape_check(&whole, type->dtype));
    return check_given(r, func, i, &whole);
  }
  TS_TRY(sharding_of(r, attrs, type->shape, sharding));
  if (!r->keeps_shardings) ts_sharding_part(&r->mesh, sharding, type->shape, out);
  return TS_SUCCESS;
}

/* A place at the top of @main, for ops that no op of the text is. */
static make_call at_top(make_state *r, const mlir_op *op, make_scope *scope) {
  return (make_call){.r = r, .op = op, .region = TS_ROOT, .scope = scope};
}

static ts_status make_param(make_state *r, const mlir_func *func, size_t i, make_scope *scope) {
  const mlir_region *body = &func->body;
  const mlir_type *type = &body->param_types.data[i];
  const make_call top = at_top(r, &body->ops[0], scope);
  make_value value = {.is_bool = type->is_bool, .quant = type->quant};
  ts_sharding sharding;
  ts_shape shape;
  if (!type->shape)
    return mlir_error(TS_UNIMPLEMENTED, body->params[i], "argument %zu is no tensor that Tessera has", i);
  TS_TRY(find_param(r, func, i, &sharding, &shape));
  TS_TRY(ts_graph_add_param(r->graph, TS_ROOT, type->dtype, &shape, &value.id));
  if (sharding.count) TS_TRY(ts_graph_set_sharding(r->graph, TS_PARAMS, i, &sharding));
  if (sharding.count && r->mesh.rank) TS_TRY(make_whole(&top, &sharding, value.id, &value));
  return make_bind(scope, body->params[i], 0, 1, value);
}

static bool is_symbolic(const mlir_region *body) {
  for (size_t i = 0; i < body->param_count; i++) {
    const ts_shape *shape = body->param_types.data[i].shape;
    if (shape && !mlir_shape_is_known(shape)) return true;
  }
  return false;
}

/* Of a program on whole values: a result whose sharding is not given is cut as the partitioner finds. */
static ts_status set_result(const make_state *r, const mlir_func *func, size_t i) {
  const mlir_attr *attrs = func->result_attrs ? &func->result_attrs[i] : NULL;
  ts_sharding sharding;
  if (!make_find_sharding(attrs)) return TS_SUCCESS;
  TS_TRY(sharding_of(r, attrs, func->results.data[i].shape, &sharding));
  return ts_graph_set_sharding(r->graph, TS_RESULTS, i, &sharding);
}

/* Of a program of one partition the part that the result's sharding says. */
static ts_status make_main_result(make_state *r, const mlir_func *func, size_t i, make_scope *scope,
                                  const make_value *value, ts_value_id *out) {
  const make_call top = at_top(r, &func->body.ops[func->body.op_count - 1], scope);
  ts_root_sharding cut;
  *out = value->id;
  if (r->keeps_shardings) return set_result(r, func, i);
  if (!r->mesh.rank) return TS_SUCCESS;
  TS_TRY(make_result_sharding(r, func, i, &cut));
  TS_TRY(ts_graph_set_sharding(r->graph, TS_RESULTS, i, &cut.sharding));
  return make_part(&top, value, &cut.sharding, out);
}

static ts_status make_main(make_state *r, const mlir_func *func, make_scope *scope, make_value *results,
                           ts_value_id *ids) {
  const mlir_region *body = &func->body;
  const mlir_op *last = &body->ops[body->op_count - 1];
  for (size_t i = 0; i < body->param_count; i++) TS_TRY(make_param(r, func, i, scope));
  if (r->mesh.rank) TS_TRY(make_add_coordinates(r, scope));
  TS_TRY(make_block(r, body, TS_ROOT, scope, results));
  if (func->results.count != last->operand_count)
    return mlir_error(TS_INVALID_ARGUMENT, last->name, "expected %zu results, got %zu", func->results.count,
                      last->operand_count);
  for (size_t i = 0; i < last->operand_count; i++) {
    const ts_value *value = ts_graph_value(r->graph, results[i].id);
    const mlir_type *type = &func->results.data[i];
    if (!type->shape) return mlir_error(TS_UNIMPLEMENTED, func->name, "result %zu is no tensor that Tessera has", i);
    if (!make_has_type(value, type))
      return mlir_error(TS_INVALID_ARGUMENT, last->name, "result %zu is %s, and the function says %s", i,
                        TS_SHAPE_STR(value->dtype, value->shape), TS_SHAPE_STR(type->dtype, type->shape));
    TS_TRY(make_main_result(r, func, i, scope, &results[i], &ids[i]));
  }
  return ts_graph_set_results(r->graph, TS_ROOT, ids, last->operand_count);
}

/* The function `main`, or the only public one; NULL without either. */
static mlir_func *find_main(const make_state *r) {
  size_t public = 0;
  mlir_func *found = NULL;
  for (size_t i = 0; i < r->module.count; i++) {
    mlir_func *func = &r->module.funcs[i];
    if (func->is_public && mlir_token_is(func->name, "main")) return func;
    if (func->is_public) found = func;
    public += func->is_public;
  }
  return public == 1 ? found : NULL;
}

/* ---- the signature */

static bool is_donated(const mlir_attr *attrs) {
  return mlir_find_attr(attrs->items, attrs->count, "tf.aliasing_output") ||
         mlir_find_attr(attrs->items, attrs->count, "jax.buffer_donor");
}

static ts_status sign(const mlir_func *func, ts_stablehlo_signature *out) {
  if (!out) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(func->body.param_count + 1, &out->params));
  TS_TRY(TS_NEW_ARRAY(func->results.count + 1, &out->results));
  for (size_t i = 0; i < func->body.param_count; i++) {
    if (func->body.param_types.data[i].is_bool) out->params[i] |= TS_STABLEHLO_BOOL;
    if (func->body.param_attrs && is_donated(&func->body.param_attrs[i])) out->params[i] |= TS_STABLEHLO_DONATED;
  }
  for (size_t i = 0; i < func->results.count; i++)
    if (func->results.data[i].is_bool) out->results[i] |= TS_STABLEHLO_BOOL;
  return TS_SUCCESS;
}

void ts_stablehlo_signature_deinit(ts_stablehlo_signature *signature) {
  ts_free(signature->params);
  ts_free(signature->results);
  *signature = (ts_stablehlo_signature){0};
}

ts_status make_read_tree(make_state *r, const char *text, size_t length, mlir_func **out_main) {
  TS_TRY(mlir_open_exported(&text, &length));
  if (mlir_is_bytecode(text, length))
    TS_TRY(mlir_read_bytecode(&r->arena, text, length, r->with_places, &r->module));
  else
    TS_TRY(mlir_parse(&r->arena, text, length, r->with_places, &r->module));
  *out_main = find_main(r);
  return *out_main ? TS_SUCCESS : ts_error(TS_INVALID_ARGUMENT, "the module has no function @main");
}

static ts_status read_graph(make_state *r, const char *text, size_t length, ts_stablehlo_signature *signature) {
  mlir_func *func;
  make_scope scope = {0};
  make_value *results = NULL;
  ts_value_id *ids = NULL;
  TS_TRY(make_read_tree(r, text, length, &func));
  if (func->body.op_count == 0) return mlir_error(TS_UNIMPLEMENTED, func->name, "expected a function with a body");
  r->is_symbolic = !r->given && is_symbolic(&func->body);
  if (r->is_symbolic) return TS_SUCCESS;
  if (r->given && r->given->count != func->body.param_count)
    return ts_error(TS_INVALID_ARGUMENT, "the program takes %zu arguments, got %zu", func->body.param_count,
                    r->given->count);
  TS_TRY(make_begin_local(r, func));
  size_t count = func->body.ops[func->body.op_count - 1].operand_count;
  ts_status status = TS_NEW_ARRAY(count + 1, &results);
  if (!status) status = TS_NEW_ARRAY(count + 1, &ids);
  if (!status) status = make_main(r, func, &scope, results, ids);
  if (!status) status = sign(func, signature);
  make_scope_deinit(&scope);
  ts_free(results);
  ts_free(ids);
  return status;
}

void make_state_deinit(make_state *r) {
  ts_arena_deinit(&r->arena);
  ts_map_deinit(&r->known);
  ts_map_deinit(&r->located);
  ts_map_deinit(&r->found_axes);
}

static ts_status read_all(make_state *r, const char *text, size_t length, ts_stablehlo_signature *signature) {
  ts_arena_init(&r->arena);
  ts_status status = ts_graph_create(&r->graph);
  if (!status && r->with_places) status = ts_places_create(&r->graph->places);
  if (!status) status = read_graph(r, text, length, signature);
  make_state_deinit(r);
  if (!status && !r->is_symbolic) return TS_SUCCESS;
  ts_graph_destroy(r->graph);
  r->graph = NULL;
  if (signature) ts_stablehlo_signature_deinit(signature);
  return status;
}

ts_status ts_stablehlo_read_for(const char *text, size_t length, const ts_types *given, ts_graph **out) {
  make_state r = {.given = given, .with_places = true};
  *out = NULL;
  TS_TRY(read_all(&r, text, length, NULL));
  *out = r.graph;
  return TS_SUCCESS;
}

static ts_status check_processes(const ts_stablehlo_grid *grid) {
  if (grid->replicas >= 1 && grid->replicas <= MAKE_MOST_PARTITIONS && grid->partitions >= 1 &&
      grid->partitions <= MAKE_MOST_PARTITIONS && grid->replicas * grid->partitions <= MAKE_MOST_PARTITIONS)
    return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "%lld replicas of %lld partitions, expected 1 to %d processes",
                  (long long)grid->replicas, (long long)grid->partitions, MAKE_MOST_PARTITIONS);
}

ts_status ts_stablehlo_read_whole(const char *text, size_t length, int64_t partitions, ts_graph **out) {
  make_state r = {.processes = {1, partitions}, .with_places = true};
  *out = NULL;
  TS_TRY(check_processes(&r.processes));
  TS_TRY(read_all(&r, text, length, NULL));
  *out = r.graph;
  return TS_SUCCESS;
}

ts_status ts_stablehlo_read(const char *text, size_t length, ts_graph **out) {
  return ts_stablehlo_read_signature(text, length, out, NULL);
}

static ts_status read_known(make_state r, const char *text, size_t length, ts_graph **out,
                            ts_stablehlo_signature *signature) {
  *out = NULL;
  TS_TRY(read_all(&r, text, length, signature));
  if (r.is_symbolic) return ts_error(TS_UNIMPLEMENTED, "the program has sizes that only its arguments say");
  *out = r.graph;
  return TS_SUCCESS;
}

ts_status ts_stablehlo_read_signature(const char *text, size_t length, ts_graph **out,
                                      ts_stablehlo_signature *signature) {
  return read_known((make_state){0}, text, length, out, signature);
}

ts_status ts_stablehlo_read_processes(const char *text, size_t length, const ts_stablehlo_grid *grid, ts_graph **out,
                                      ts_stablehlo_signature *signature) {
  *out = NULL;
  TS_TRY(check_processes(grid));
  return read_known((make_state){.processes = *grid}, text, length, out, signature);
}
