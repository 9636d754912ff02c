/* Custom calls: targets of LAPACK and of plugins as calls of Tessera, with the items of their configuration as
 * attributes; XLA's ApproxTopK, computed exactly. */
#include "stablehlo/make.h"

#include <string.h>

#define CONFIG "mhlo.backend_config|backend_config"

/* ---- calls */

/* A region whose results have the types of the op's. */
static ts_status add_types(const make_call *m, ts_region_id *out) {
  ts_value_id *ids;
  const mlir_types *types = &m->op->types;
  TS_TRY(ts_graph_add_region(m->r->graph, out));
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, types->count + 1, &ids));
  for (size_t i = 0; i < types->count; i++) {
    if (!mlir_shape_is_known(types->data[i].shape))
      return make_error(m, TS_INVALID_ARGUMENT, "the sizes of result %zu are not known", i);
    TS_TRY(ts_graph_constant(m->r->graph, *out, types->data[i].dtype, types->data[i].shape, (ts_scalar){0}, &ids[i]));
  }
  return ts_graph_set_results(m->r->graph, *out, ids, types->count);
}

ts_status make_custom(const make_call *m, const char *text, size_t operands) {
  ts_attrs attrs = {0};
  ts_region_id regions[2] = {TS_NO_ID, TS_NO_ID};
  ts_value_id *ids, first;
  const ts_shape shape = {.rank = 1, .dims = {(int64_t)strlen(text)}};
  TS_TRY(add_types(m, &regions[0]));
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, operands + 1, &ids));
  for (size_t i = 0; i < operands; i++) ids[i] = m->operands[i].id;
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_U8, &shape, &attrs.custom.call));
  memcpy(attrs.custom.call->data, text, strlen(text));
  ts_attrs_set_regions(TS_OP_CUSTOM_CALL, &attrs, regions);
  ts_status status = make_add(m, TS_OP_CUSTOM_CALL, (ts_values){ids, operands}, &attrs, &first);
  ts_buffer_release(attrs.custom.call);
  TS_TRY(status);
  for (size_t i = 0; i < m->op->types.count; i++) make_result(m, i, first + (ts_value_id)i);
  return TS_SUCCESS;
}

const mlir_attr *make_config_item(const make_call *m, const char *name) {
  const mlir_attr *config = make_attr(m, CONFIG);
  return config ? mlir_find_attr(config->items, config->count, name) : NULL;
}

const mlir_func *make_find_called(const make_call *m) {
  const mlir_attr *called = make_attr(m, "called_computations");
  return called && called->kind == MLIR_ATTR_LIST && called->count == 1 ? make_find_func(m->r, called->items[0].token)
                                                                        : NULL;
}

/* ---- a plugin's target */

static bool is_name(mlir_token token) {
  for (size_t i = 0; i < token.length; i++) {
    const char c = token.text[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '.'))) return false;
  }
  return token.length > 0 && token.length < 256;
}

static ts_status append_value(const mlir_attr *attr, ts_text *out) {
  const mlir_token token = attr->token;
  const bool is_word = attr->kind == MLIR_ATTR_WORD && token.kind != MLIR_STRING;
  bool is_plain = token.length < 4096;
  for (size_t i = 0; i < token.length && is_plain; i++)
    is_plain = token.text[i] >= ' ' && token.text[i] != '\'' && token.text[i] != '"' && token.text[i] != '\\';
  if (attr->kind == MLIR_ATTR_LIST) {
    ts_dims numbers;
    TS_TRY(mlir_attr_ints(attr, &numbers));
    for (int32_t i = 0; i < numbers.rank; i++)
      ts_text_format(out, "%s%lld", i ? ", " : "[", (long long)numbers.dims[i]);
    ts_text_append(out, numbers.rank ? "]" : "[]");
  } else if (is_plain &&
             (attr->kind == MLIR_ATTR_NUMBER || mlir_token_is(token, "true") || mlir_token_is(token, "false"))) {
    ts_text_format(out, "%.*s", (int)token.length, token.text);
  } else if (is_plain && attr->kind == MLIR_ATTR_WORD && !is_word) {
    ts_text_format(out, "'%.*s'", (int)token.length, token.text);
  } else {
    return mlir_error(TS_UNIMPLEMENTED, token,
                      "a plugin's target takes numbers, booleans, plain texts and lists of integers");
  }
  return TS_SUCCESS;
}

static ts_status append_items(const mlir_attr *items, size_t count, ts_text *out) {
  size_t written = 0;
  for (size_t i = 0; i < count; i++) {
    if (items[i].kind == MLIR_ATTR_UNIT) continue; /* of a dialect that has no meaning here */
    if (!is_name(items[i].name)) return mlir_error(TS_UNIMPLEMENTED, items[i].token, "expected another name");
    ts_text_format(out, "%s%.*s = ", written++ ? ", " : "(", (int)items[i].name.length, items[i].name.text);
    TS_TRY(append_value(&items[i], out));
  }
  if (written) ts_text_append(out, ")");
  return TS_SUCCESS;
}

static ts_status append_call(const make_call *m, mlir_token target, ts_text *out) {
  const mlir_attr *config = make_attr(m, CONFIG);
  ts_text_format(out, "%.*s", (int)target.length, target.text);
  if (config && config->kind == MLIR_ATTR_DICT) return append_items(config->items, config->count, out);
  if (!config || config->token.length == 0) return TS_SUCCESS;
  mlir_attr named = *config;
  named.name = (mlir_token){.kind = MLIR_WORD, .text = "backend_config", .length = 14};
  return append_items(&named, 1, out);
}

ts_status make_in_plugin(const make_call *m, mlir_token target) {
  ts_text text = {0};
  if (!is_name(target) || m->op->types.count == 0)
    return make_error(m, TS_UNIMPLEMENTED, "the target %.*s is not known, and none of a plugin", (int)target.length,
                      target.text);
  ts_status status = append_call(m, target, &text);
  if (!status && text.failed) status = ts_error_no_memory();
  if (!status) status = make_custom(m, text.data, m->op->operand_count);
  ts_text_deinit(&text);
  return status;
}

/* ---- ApproxTopK: values, their indices, and two initial values that are not used */

static ts_status find_descending(const make_call *m, bool *out) {
  const mlir_func *func = make_find_called(m);
  ts_text text = {0};
  if (!func) return make_error(m, TS_INVALID_ARGUMENT, "expected a function that compares");
  make_scope empty = {0};
  const make_call outside = make_in_scope(m, &empty);
  ts_status status = make_signature(&outside, &func->body, &text);
  const char *what = !status && text.data ? text.data : "";
  *out = strncmp(what, "compare GT 0 1;", 15) == 0;
  if (!status && !*out && strncmp(what, "compare LT 0 1;", 15) != 0)
    status = make_error(m, TS_UNIMPLEMENTED, "its function compares other than two numbers by GT or LT");
  ts_text_deinit(&text);
  return status;
}

ts_status make_in_approx_top_k(const make_call *m) {
  const mlir_attr *dim = make_config_item(m, "reduction_dim");
  ts_attrs order = {0};
  ts_value_id where, id;
  int64_t axis = -1;
  bool descending = false;
  if (m->op->operand_count != 4 || m->op->types.count != 2)
    return make_error(m, TS_UNIMPLEMENTED, "it is known of one operand and its indices");
  if (dim) TS_TRY(mlir_attr_int(dim, &axis));
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  if (axis < 0 || axis >= shape->rank || m->op->types.data[0].shape->rank != shape->rank)
    return make_error(m, TS_INVALID_ARGUMENT, "it has no dim %lld", (long long)axis);
  TS_TRY(find_descending(m, &descending));
  order.argsort.axis = (int32_t)axis;
  order.argsort.descending = descending;
  order.argsort.dtype = TS_S32;
  TS_TRY(make_add(m, TS_OP_ARGSORT, (ts_values){&m->operands[0].id, 1}, &order, &where));
  TS_TRY(make_slice(m, where, (int32_t)axis, (make_range){0, m->op->types.data[0].shape->dims[axis], 1}, &where));
  for (size_t i = 0; i < 2; i++) {
    TS_TRY(make_take_along(m, m->operands[i].id, where, (int32_t)axis, &id));
    make_result(m, i, id);
  }
  return TS_SUCCESS;
}
