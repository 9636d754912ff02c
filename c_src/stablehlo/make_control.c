/* while, case and if. Regions of a graph are closed: a value from an enclosing scope becomes an operand, and in a loop
 * also a variable that each iteration passes on. Constants of one element are made again inside. */
#include "base/deep.h"
#include "stablehlo/make.h"

#include <string.h>

/* Names that regions use and a scope has. */
typedef struct captures {
  TS_VEC(mlir_token) names;
  ts_map seen;
} captures;

static void captures_deinit(captures *c) {
  TS_VEC_FREE(&c->names);
  ts_map_deinit(&c->seen);
}

static bool is_in_scope(const make_scope *scope, mlir_token name) {
  return ts_map_get(&scope->names, name.text, name.length);
}

static ts_status capture(const make_scope *scope, mlir_token name, captures *out) {
  if (!is_in_scope(scope, name) || ts_map_get(&out->seen, name.text, name.length)) return TS_SUCCESS;
  TS_TRY(ts_map_put(&out->seen, name.text, name.length, out));
  return TS_VEC_PUSH(&out->names, name);
}

typedef struct capture_search {
  const make_call *m;
  const mlir_region *region;
  captures *out;
  size_t depth;
} capture_search;

static ts_status search_captures(const capture_search *s);

static ts_status captures_on_stack(void *context) {
  const capture_search *s = context;
  for (size_t i = 0; i < s->region->op_count; i++) {
    const mlir_op *op = &s->region->ops[i];
    mlir_token hidden;
    if (make_find_hidden(s->m->r, op, &hidden)) TS_TRY(capture(s->m->scope, hidden, s->out));
    for (size_t j = 0; j < op->operand_count; j++) TS_TRY(capture(s->m->scope, op->operands[j], s->out));
    for (size_t j = 0; j < op->region_count; j++)
      TS_TRY(search_captures(&(capture_search){s->m, &op->regions[j], s->out, s->depth + 1}));
  }
  return TS_SUCCESS;
}

static ts_status search_captures(const capture_search *s) {
  return ts_deep_call(s->depth, captures_on_stack, (void *)(uintptr_t)s);
}

/* MLIR forbids that an inner region gives a visible name again, so a name of the scope is the scope's. */
static ts_status find_captures(const make_call *m, const mlir_region *region, captures *out) {
  return search_captures(&(capture_search){m, region, out, 0});
}

/* False for a constant, whose number is set: of a program with symbolic sizes also for a size. */
static ts_status is_param(const make_call *m, ts_value_id id, ts_scalar *out, bool *out_param) {
  const ts_value *value = make_value_of(m, id);
  const ts_dims *known = NULL;
  *out_param = !ts_graph_is_constant(m->r->graph, id, out);
  if (!*out_param || !m->r->given || value->shape->rank) return TS_SUCCESS;
  TS_TRY(make_find_known(m, id, &known));
  if (known) *out = ts_scalar_from_s64(value->dtype, known->dims[0]);
  *out_param = !known;
  return TS_SUCCESS;
}

/* Binds a captured name in a region: a constant that is made again, or a new parameter. */
static ts_status bind_capture(const make_call *m, ts_region_id region, make_scope *inner, mlir_token name,
                              bool *out_param) {
  make_value value;
  ts_scalar scalar;
  TS_TRY(make_look_up(m->scope, name, &value));
  if (value.parts) return mlir_error(TS_UNIMPLEMENTED, name, "a region uses a tuple of a scope around it");
  TS_TRY(is_param(m, value.id, &scalar, out_param));
  const ts_value like = *make_value_of(m, value.id);
  value.sharding = NULL; /* its part stays outside */
  if (*out_param)
    TS_TRY(ts_graph_add_param(m->r->graph, region, like.dtype, like.shape, &value.id));
  else
    TS_TRY(ts_graph_constant(m->r->graph, region, like.dtype, like.shape, scalar, &value.id));
  return make_bind(inner, name, 0, memchr(name.text, '#', name.length) ? 2 : 1, value);
}

/* make_bind makes "3" and "3#0"; of a captured "3#1" only that name is used. */
static ts_status bind_captures(const make_call *m, const captures *c, ts_region_id region, make_scope *inner) {
  for (size_t i = 0; i < c->names.count; i++) {
    bool is_param;
    mlir_token name = c->names.data[i];
    TS_TRY(bind_capture(m, region, inner, name, &is_param));
    if (memchr(name.text, '#', name.length))
      TS_TRY(ts_map_put(&inner->names, name.text, name.length, (void *)(uintptr_t)inner->values.count));
  }
  return TS_SUCCESS;
}

/* The captured values that are operands. */
static ts_status push_captured(const make_call *m, const captures *c, ts_value_id *ids, size_t *count) {
  for (size_t i = 0; i < c->names.count; i++) {
    make_value value;
    ts_scalar scalar;
    bool param;
    TS_TRY(make_look_up(m->scope, c->names.data[i], &value));
    TS_TRY(is_param(m, value.id, &scalar, &param));
    if (param) ids[(*count)++] = value.id;
  }
  return TS_SUCCESS;
}

/* ---- loops */

typedef struct loop_region {
  const make_call *m;
  const mlir_region *block;
  const captures *captured;
  bool is_condition;
  ts_region_id region; /* made */
} loop_region;

static ts_status finish_loop(const loop_region *l, make_scope *inner, make_value *results, ts_value_id *ids) {
  ts_graph *graph = l->m->r->graph;
  const size_t states = l->m->op->operand_count;
  const mlir_op *last = &l->block->ops[l->block->op_count - 1];
  TS_TRY(make_block(l->m->r, l->block, l->region, inner, results));
  if (last->operand_count != (l->is_condition ? 1 : states))
    return mlir_error(TS_INVALID_ARGUMENT, last->name, "a region of a loop returns %zu values", last->operand_count);
  for (size_t i = 0; i < last->operand_count; i++) ids[i] = results[i].id;
  if (l->is_condition) {
    ids[0] = make_truth_of(l->m, &results[0], TS_U8);
    return ts_graph_set_results(graph, l->region, ids, 1);
  }
  const ts_region *made = ts_graph_region(graph, l->region);
  size_t count = made->params.count;
  for (size_t i = states; i < count; i++) ids[i] = made->params.data[i];
  return ts_graph_set_results(graph, l->region, ids, count);
}

static ts_status make_loop_region(loop_region *l, make_scope *inner) {
  const make_call *m = l->m;
  make_value *results = NULL;
  ts_value_id *ids = NULL;
  if (l->block->param_count != m->op->operand_count)
    return make_error(m, TS_INVALID_ARGUMENT, "a region has %zu parameters, expected %zu", l->block->param_count,
                      m->op->operand_count);
  TS_TRY(ts_graph_add_region(m->r->graph, &l->region));
  for (size_t i = 0; i < m->op->operand_count; i++) {
    const ts_value like = *make_operand_of(m, i);
    make_value value = m->operands[i];
    value.sharding = NULL; /* its part stays outside */
    TS_TRY(ts_graph_add_param(m->r->graph, l->region, like.dtype, like.shape, &value.id));
    TS_TRY(make_bind(inner, l->block->params[i], 0, 1, value));
  }
  TS_TRY(bind_captures(m, l->captured, l->region, inner));
  size_t room =
      l->block->ops[l->block->op_count - 1].operand_count + m->op->operand_count + l->captured->names.count + 1;
  ts_status status = TS_NEW_ARRAY(room, &results);
  if (!status) status = TS_NEW_ARRAY(room, &ids);
  if (!status) status = finish_loop(l, inner, results, ids);
  ts_free(results);
  ts_free(ids);
  return status;
}

static ts_status make_while(const make_call *m, captures *c, ts_value_id *operands) {
  ts_attrs attrs = {0};
  size_t count = m->op->operand_count;
  ts_value_id first;
  for (int i = 0; i < 2; i++) TS_TRY(find_captures(m, &m->op->regions[i], c));
  for (int i = 0; i < 2; i++) {
    make_scope inner = {0};
    loop_region l = {m, &m->op->regions[i], c, i == 0, 0};
    ts_status status = make_loop_region(&l, &inner);
    make_scope_deinit(&inner);
    TS_TRY(status);
    attrs.regions.regions[i] = l.region;
  }
  for (size_t i = 0; i < count; i++) operands[i] = m->operands[i].id;
  TS_TRY(push_captured(m, c, operands, &count));
  TS_TRY(make_add(m, TS_OP_WHILE, (ts_values){operands, count}, &attrs, &first));
  for (size_t i = 0; i < m->op->types.count; i++) make_result(m, i, first + (ts_value_id)i);
  return TS_SUCCESS;
}

/* Room for all names that regions use, and one that is hidden. */
static size_t count_uses(const mlir_region *region) {
  size_t count = 1;
  for (size_t i = 0; i < region->op_count; i++) {
    count += region->ops[i].operand_count;
    for (size_t j = 0; j < region->ops[i].region_count; j++) count += count_uses(&region->ops[i].regions[j]);
  }
  return count;
}

static ts_status while_op(const make_call *m) {
  captures c = {0};
  ts_value_id *operands;
  if (m->op->region_count != 2 || m->op->types.count != m->op->operand_count || m->op->operand_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected two regions, and as many results as operands");
  TS_TRY(TS_NEW_ARRAY(m->op->operand_count + count_uses(&m->op->regions[0]) + count_uses(&m->op->regions[1]) + 1,
                      &operands));
  ts_status status = make_while(m, &c, operands);
  captures_deinit(&c);
  ts_free(operands);
  return status;
}

/* ---- branches */

/* Branches from the first-th on, as a cond whose false region has the later ones. The index and the captured values are
 * operands. */
typedef struct branches {
  const make_call *m;
  const captures *captured;
  size_t first;
  ts_value_id index;     /* of a case; TS_NO_ID: of an `if` */
  ts_value_id predicate; /* of an `if` */
} branches;

static ts_status make_cond(const branches *b, make_value *out_results);

static ts_status finish_branch(const branches *b, make_call *inner, make_value *results, ts_value_id *ids) {
  const mlir_region *block = &b->m->op->regions[b->first];
  const size_t count = b->m->op->types.count;
  if (b->index != TS_NO_ID && b->first + 1 < b->m->op->region_count) {
    TS_TRY(make_cond(&(branches){inner, b->captured, b->first, b->index, TS_NO_ID}, results));
  } else {
    if (block->op_count == 0 || block->ops[block->op_count - 1].operand_count != count)
      return make_error(b->m, TS_INVALID_ARGUMENT, "a region returns other than %zu values", count);
    TS_TRY(make_block(inner->r, block, inner->region, inner->scope, results));
  }
  for (size_t i = 0; i < count; i++) ids[i] = results[i].id;
  return ts_graph_set_results(inner->r->graph, inner->region, ids, count);
}

/* The region of block `first`, or of the later ones. Of a case a parameter in front has the index. The first region
 * makes its block alone. */
static ts_status make_branch(const branches *b, bool is_later, ts_region_id *out) {
  const make_call *m = b->m;
  make_scope scope = {0};
  make_call inner = *m;
  make_value *results = NULL;
  ts_value_id *ids = NULL, index = TS_NO_ID;
  branches here = *b;
  here.first += is_later;
  TS_TRY(ts_graph_add_region(m->r->graph, out));
  inner.region = *out;
  inner.scope = &scope;
  ts_status status = TS_NEW_ARRAY(m->op->types.count + 1, &results);
  if (!status) status = TS_NEW_ARRAY(m->op->types.count + 1, &ids);
  if (!status && b->index != TS_NO_ID) {
    const ts_value like = *make_value_of(m, b->index);
    status = ts_graph_add_param(m->r->graph, *out, like.dtype, like.shape, &index);
    here.index = is_later ? index : TS_NO_ID;
  }
  if (!status) status = bind_captures(m, b->captured, *out, &scope);
  if (!status) status = finish_branch(&here, &inner, results, ids);
  make_scope_deinit(&scope);
  ts_free(results);
  ts_free(ids);
  return status;
}

/* The cond of branch `first` and the later ones; of an `if` the two regions. */
static ts_status add_cond(const branches *b, ts_value_id *operands, make_value *out_results) {
  const make_call *m = b->m;
  const bool is_case = b->index != TS_NO_ID;
  ts_attrs attrs = {0};
  ts_value_id predicate = b->predicate, first;
  size_t count = 0;
  if (is_case) TS_TRY(make_with_integer(m, TS_OP_EQUAL, b->index, (int64_t)b->first, &predicate));
  operands[count++] = predicate;
  if (is_case) operands[count++] = b->index; /* a parameter of both regions */
  TS_TRY(push_captured(m, b->captured, operands, &count));
  TS_TRY(make_branch(b, false, &attrs.regions.regions[0]));
  TS_TRY(make_branch(b, true, &attrs.regions.regions[1]));
  TS_TRY(make_add(m, TS_OP_COND, (ts_values){operands, count}, &attrs, &first));
  for (size_t i = 0; i < m->op->types.count; i++)
    out_results[i] = (make_value){.id = first + (ts_value_id)i, .is_bool = m->op->types.data[i].is_bool};
  return TS_SUCCESS;
}

static ts_status make_cond(const branches *b, make_value *out_results) {
  ts_value_id *operands;
  TS_TRY(TS_NEW_ARRAY(b->captured->names.count + 3, &operands));
  ts_status status = add_cond(b, operands, out_results);
  ts_free(operands);
  return status;
}

static ts_status make_branches(const make_call *m, captures *c) {
  const bool is_if = mlir_token_is(m->op->name, "stablehlo.if");
  for (size_t i = 0; i < m->op->region_count; i++) TS_TRY(find_captures(m, &m->op->regions[i], c));
  if (is_if) return make_cond(&(branches){m, c, 0, TS_NO_ID, make_truth_of(m, &m->operands[0], TS_U8)}, m->results);
  if (m->op->region_count > 1) return make_cond(&(branches){m, c, 0, m->operands[0].id, TS_NO_ID}, m->results);
  return make_block(m->r, &m->op->regions[0], m->region, m->scope, m->results);
}

static ts_status branch_op(const make_call *m) {
  captures c = {0};
  const bool is_if = mlir_token_is(m->op->name, "stablehlo.if");
  TS_TRY(make_count_operands(m, 1));
  if (is_if ? m->op->region_count != 2 : m->op->region_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "it has %zu regions", m->op->region_count);
  for (size_t i = 0; i < m->op->region_count; i++) {
    const mlir_region *region = &m->op->regions[i];
    if (region->param_count || region->ops[region->op_count - 1].operand_count != m->op->types.count)
      return make_error(m, TS_INVALID_ARGUMENT, "region %zu has parameters, or returns other than %zu values", i,
                        m->op->types.count);
  }
  ts_status status = make_branches(m, &c);
  captures_deinit(&c);
  return status;
}

ts_status make_in_control(const make_call *m) {
  return mlir_token_is(m->op->name, "stablehlo.while") ? while_op(m) : branch_op(m);
}

/* ---- regions of two numbers */

static ts_status finish_combine(const make_call *m, const mlir_region *block, ts_region_id region, make_scope *scope) {
  make_value results[1];
  captures c = {0};
  const ts_dtype type = make_operand_of(m, 0)->dtype;
  for (size_t i = 0; i < 2; i++) {
    make_value value = {.is_bool = m->operands[0].is_bool};
    TS_TRY(ts_graph_add_param(m->r->graph, region, type, &ts_shape_scalar, &value.id));
    TS_TRY(make_bind(scope, block->params[i], 0, 1, value));
  }
  ts_status status = find_captures(m, block, &c);
  if (!status) status = bind_captures(m, &c, region, scope);
  captures_deinit(&c);
  TS_TRY(status);
  if (ts_graph_region(m->r->graph, region)->params.count != 2)
    return make_error(m, TS_UNIMPLEMENTED, "a region that uses other than constants around it cannot be read");
  TS_TRY(make_block(m->r, block, region, scope, results));
  return ts_graph_set_results(m->r->graph, region, &results[0].id, 1);
}

ts_status make_find_pair(const make_call *m, const mlir_region **out) {
  const mlir_region *region = m->op->region_count == 1 ? &m->op->regions[0] : NULL;
  *out = region;
  if (!region) return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  if (region->param_count == 2 && region->op_count && region->ops[region->op_count - 1].operand_count == 1)
    return TS_SUCCESS;
  return make_error(m, TS_INVALID_ARGUMENT, "expected a region that takes two numbers and returns one");
}

ts_status make_combine(const make_call *m, ts_region_id *out) {
  make_scope scope = {0};
  const mlir_region *block;
  TS_TRY(make_find_pair(m, &block));
  TS_TRY(ts_graph_add_region(m->r->graph, out));
  ts_status status = finish_combine(m, block, *out, &scope);
  make_scope_deinit(&scope);
  return status;
}
