/* A recursive-descent parser that calls ts_graph_add_op and the other builder functions, which check everything except
 * the grammar. Recursion is bounded by TS_MAX_NESTING, sizes by the length of the text. */
#include "base/deep.h"
#include "base/map.h"
#include "ir/attrs.h"
#include "ir/infer.h"
#include "ir/lex.h"
#include "ir/syntax.h"

#include <string.h>

typedef struct parser {
  ts_graph *graph;
  ts_lexer lexer;
  ts_token token; /* the next token */
  ts_map names;   /* names of values to their ids + 1 */
  int depth;
} parser;

/* The parts of an op's text. */
typedef struct op_text {
  ts_token at; /* the op's name */
  ts_opcode code;
  TS_VEC(ts_token) names;
  TS_VEC(ts_value_id) operands;
  TS_VEC(ts_type) types;
  ts_token value; /* of a constant or literal */
  ts_attrs attrs;
} op_text;

static ts_status parse_region(parser *p, ts_region_id region);

/* ---- tokens ---- */

static void advance(parser *p) { p->token = ts_lexer_next(&p->lexer); }

static bool accept(parser *p, ts_token_kind kind, const char *text) {
  if (!ts_token_is(p->token, kind, text)) return false;
  advance(p);
  return true;
}

static ts_status expect(parser *p, ts_token_kind kind, const char *text) {
  if (accept(p, kind, text)) return TS_SUCCESS;
  return ts_token_error(p->token, "expected '%s'", text);
}

static ts_status take(parser *p, ts_token_kind kind, const char *what, ts_token *out) {
  *out = p->token;
  if (out->kind != kind) return ts_token_error(*out, "expected %s", what);
  advance(p);
  return TS_SUCCESS;
}

static ts_status punct(parser *p, const char *text) { return expect(p, TS_TOKEN_PUNCT, text); }
static bool accept_punct(parser *p, const char *text) { return accept(p, TS_TOKEN_PUNCT, text); }

/* Prepends the token's line and column to an error of the builder. */
static ts_status at_token(ts_token token, ts_status status) {
  return status ? ts_error_context(status, "line %zu, column %zu", token.line, token.column) : TS_SUCCESS;
}

/* ---- numbers and types ---- */

static ts_status parse_integer(parser *p, int64_t lowest, int64_t highest, int64_t *out) {
  ts_token token = p->token;
  ts_scalar value;
  if (token.kind != TS_TOKEN_NUMBER || !ts_scalar_parse(TS_S64, token.text, token.length, &value))
    return ts_token_error(token, "expected an integer");
  if (value.s64 < lowest || value.s64 > highest)
    return ts_token_error(token, "expected an integer from %lld to %lld", (long long)lowest, (long long)highest);
  *out = value.s64;
  advance(p);
  return TS_SUCCESS;
}

static ts_status parse_dims(parser *p, ts_dims *out) {
  *out = (ts_dims){0};
  TS_TRY(punct(p, "["));
  if (accept_punct(p, "]")) return TS_SUCCESS;
  do {
    if (out->rank == TS_MAX_RANK) return ts_token_error(p->token, "expected at most %d entries", TS_MAX_RANK);
    TS_TRY(parse_integer(p, INT64_MIN, INT64_MAX, &out->dims[out->rank++]));
  } while (accept_punct(p, ","));
  return punct(p, "]");
}

static ts_status parse_type(parser *p, ts_type *out) {
  ts_token token;
  TS_TRY(take(p, TS_TOKEN_NAME, "a type", &token));
  out->dtype = ts_dtype_from_name(token.text, token.length);
  if (out->dtype == TS_DTYPE_NONE) return ts_token_error(token, "expected a type");
  return parse_dims(p, &out->shape);
}

/* ---- values ---- */

static ts_status define(parser *p, ts_token name, ts_value_id value) {
  if (ts_map_get(&p->names, name.text, name.length)) return ts_token_error(name, "expected a new value name");
  return ts_map_put(&p->names, name.text, name.length, (void *)((uintptr_t)value + 1));
}

static ts_status parse_use(parser *p, ts_value_id *out) {
  ts_token name;
  TS_TRY(take(p, TS_TOKEN_VALUE, "a value", &name));
  uintptr_t found = (uintptr_t)ts_map_get(&p->names, name.text, name.length);
  if (!found) return ts_token_error(name, "expected a value that is defined before");
  *out = (ts_value_id)(found - 1);
  return TS_SUCCESS;
}

static ts_status parse_uses(parser *p, op_text *op) {
  if (p->token.kind != TS_TOKEN_VALUE) return TS_SUCCESS;
  do {
    ts_value_id value = TS_NO_ID;
    TS_TRY(parse_use(p, &value));
    TS_TRY(TS_VEC_PUSH(&op->operands, value));
  } while (accept_punct(p, ","));
  return TS_SUCCESS;
}

static ts_status parse_types(parser *p, op_text *op) {
  do {
    ts_type type;
    TS_TRY(parse_type(p, &type));
    TS_TRY(TS_VEC_PUSH(&op->types, type));
  } while (accept_punct(p, ","));
  return TS_SUCCESS;
}

/* ---- names ---- */

/* A quoted name has \xx for characters that are not printable. The caller frees it. */
static ts_status unquote(ts_token token, char **out) {
  size_t length = 0;
  TS_TRY(ts_alloc(token.length + 1, (void **)out));
  for (size_t i = 0; i < token.length; i++) {
    uint8_t c = (uint8_t)token.text[i];
    if (c == '\\' && (token.length - i < 3 || !ts_syntax_parse_hex(token.text + i + 1, 1, &c) || c == 0)) {
      ts_free(*out);
      return ts_token_error(token, "expected two hexadecimal digits after a backslash");
    }
    i += token.text[i] == '\\' ? 2 : 0;
    (*out)[length++] = (char)c;
  }
  (*out)[length] = '\0';
  return TS_SUCCESS;
}

/* "..." */
static ts_status take_string(parser *p, const char *what, char **out) {
  ts_token token;
  TS_TRY(take(p, TS_TOKEN_STRING, what, &token));
  return unquote(token, out);
}

/* @name or @"...". Neither has a backslash unless it is quoted. */
static ts_status take_name(parser *p, const char *what, const char *what_or_other, char **out) {
  ts_token token;
  if (accept_punct(p, "@")) return take_string(p, what, out);
  TS_TRY(take(p, TS_TOKEN_SYMBOL, what_or_other, &token));
  return unquote(token, out);
}

/* ---- meshes and shardings ---- */

/* A name in the mesh; frees it. */
static ts_status keep_name(ts_token at, char *name, char *out) {
  ts_status status = at_token(at, ts_mesh_set_name(out, name, strlen(name)));
  ts_free(name);
  return status;
}

/* A size, or "name"=size. */
static ts_status parse_mesh_axis(parser *p, ts_mesh *mesh) {
  ts_token at = p->token;
  char *name;
  int64_t size = 0;
  if (mesh->rank == TS_MAX_MESH_AXES) return ts_token_error(at, "expected at most %d axes", TS_MAX_MESH_AXES);
  if (at.kind == TS_TOKEN_STRING) {
    TS_TRY(take_string(p, "the name of an axis", &name));
    TS_TRY(keep_name(at, name, mesh->axis_names[mesh->rank]));
    TS_TRY(punct(p, "="));
  }
  TS_TRY(parse_integer(p, INT64_MIN, INT64_MAX, &size));
  mesh->sizes[mesh->rank++] = size > INT32_MAX || size < 0 ? 0 : (int32_t)size;
  return TS_SUCCESS;
}

static ts_status parse_mesh(parser *p) {
  ts_mesh mesh = {0};
  ts_token at = p->token;
  char *name;
  if (!accept(p, TS_TOKEN_NAME, "mesh")) return TS_SUCCESS;
  if (!ts_token_is(p->token, TS_TOKEN_PUNCT, "[")) {
    TS_TRY(take_name(p, "the mesh's name", "the mesh's name, as @mesh, or its axes", &name));
    TS_TRY(keep_name(at, name, mesh.name));
  }
  TS_TRY(punct(p, "["));
  if (ts_token_is(p->token, TS_TOKEN_PUNCT, "]")) return ts_token_error(at, "expected at least one axis of the mesh");
  do TS_TRY(parse_mesh_axis(p, &mesh));
  while (accept_punct(p, ","));
  TS_TRY(punct(p, "]"));
  mesh.partitioned = accept(p, TS_TOKEN_NAME, "partitioned");
  mesh.coordinates = accept(p, TS_TOKEN_NAME, "coordinates");
  return at_token(at, ts_graph_set_mesh(p->graph, &mesh));
}

/* Appends the axes that cut a dim. */
static ts_status parse_cuts(parser *p, int32_t dim, ts_dims *axes, ts_dims *dims) {
  ts_dims here;
  TS_TRY(parse_dims(p, &here));
  for (int32_t i = 0; i < here.rank; i++) {
    if (axes->rank == TS_MAX_MESH_AXES) return ts_token_error(p->token, "expected at most %d axes", TS_MAX_MESH_AXES);
    axes->dims[axes->rank++] = here.dims[i];
    dims->dims[dims->rank++] = dim;
  }
  return TS_SUCCESS;
}

/* An optional sharding of an argument or result. A partitioned program's types are types of parts, which no cut need
 * divide.
 */
static ts_status parse_sharding(parser *p, ts_root_side side, size_t index, const ts_shape *shape) {
  ts_dims axes = {0}, dims = {0};
  ts_sharding sharding;
  ts_token at = p->token;
  ts_shape whole = {.rank = shape->rank};
  if (!accept(p, TS_TOKEN_NAME, "sharded")) return TS_SUCCESS;
  TS_TRY(punct(p, "["));
  for (int32_t dim = 0; dim < shape->rank; dim++) {
    if (dim > 0) TS_TRY(punct(p, ","));
    TS_TRY(parse_cuts(p, dim, &axes, &dims));
  }
  TS_TRY(punct(p, "]"));
  for (int32_t d = 0; d < whole.rank; d++) whole.dims[d] = p->graph->mesh.partitioned ? 0 : shape->dims[d];
  TS_TRY(at_token(at, ts_sharding_make(&p->graph->mesh, &axes, &dims, &whole, &sharding)));
  return ts_graph_set_sharding(p->graph, side, index, &sharding);
}

static ts_status parse_params(parser *p, ts_region_id region) {
  TS_TRY(punct(p, "("));
  if (accept_punct(p, ")")) return TS_SUCCESS;
  do {
    ts_token name;
    ts_type type;
    ts_value_id value;
    TS_TRY(take(p, TS_TOKEN_VALUE, "a parameter", &name));
    TS_TRY(punct(p, ":"));
    TS_TRY(parse_type(p, &type));
    TS_TRY(at_token(name, ts_graph_add_param(p->graph, region, type.dtype, &type.shape, &value)));
    TS_TRY(define(p, name, value));
    if (region == TS_ROOT)
      TS_TRY(parse_sharding(p, TS_PARAMS, ts_graph_region(p->graph, TS_ROOT)->params.count - 1, &type.shape));
  } while (accept_punct(p, ","));
  return punct(p, ")");
}

/* ---- attributes ---- */

/* After "name =". */
static ts_status parse_field(parser *p, const ts_attr_field *field, void *at) {
  int64_t number;
  switch (field->type) {
  case TS_FIELD_BOOL:
    *(bool *)at = accept(p, TS_TOKEN_NAME, "true");
    return *(bool *)at ? TS_SUCCESS : expect(p, TS_TOKEN_NAME, "false");
  case TS_FIELD_INT:
    TS_TRY(parse_integer(p, INT32_MIN, INT32_MAX, &number));
    *(int32_t *)at = (int32_t)number;
    return TS_SUCCESS;
  case TS_FIELD_UINT:
    TS_TRY(parse_integer(p, 0, UINT32_MAX, &number));
    *(uint32_t *)at = (uint32_t)number;
    return TS_SUCCESS;
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES: return parse_dims(p, at);
  case TS_FIELD_DTYPE:
  case TS_FIELD_RESULT_SHAPE:
  case TS_FIELD_SCALAR:
  case TS_FIELD_BUFFER:
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: break; /* not in braces */
  }
  return ts_error(TS_INTERNAL, "attribute %s has no text", field->name);
}

static ts_status parse_fields(parser *p, op_text *op) {
  const char *before = "{";
  for (const ts_attr_field *field = ts_attr_fields(ts_op_attr_kind(op->code)); field->name; field++) {
    if (!ts_field_is_in_braces(field->type)) continue;
    TS_TRY(punct(p, before));
    TS_TRY(expect(p, TS_TOKEN_NAME, field->name));
    TS_TRY(punct(p, "="));
    TS_TRY(parse_field(p, field, ts_attr_at(&op->attrs, field)));
    before = ",";
  }
  return *before == ',' ? punct(p, "}") : TS_SUCCESS;
}

/* (real part, imaginary part) as one token. */
static ts_status take_complex(parser *p, ts_token *out) {
  ts_token part;
  *out = p->token;
  TS_TRY(punct(p, "("));
  TS_TRY(take(p, TS_TOKEN_NUMBER, "a number", &part));
  TS_TRY(punct(p, ","));
  TS_TRY(take(p, TS_TOKEN_NUMBER, "a number", &part));
  out->length = (size_t)(p->token.text - out->text) + 1;
  return punct(p, ")");
}

/* Parses the data of a constant or literal, which stand instead of operands. */
static ts_status parse_data(parser *p, op_text *op) {
  if (op->code == TS_OP_CONSTANT && ts_token_is(p->token, TS_TOKEN_PUNCT, "(")) return take_complex(p, &op->value);
  if (op->code == TS_OP_CONSTANT) return take(p, TS_TOKEN_NUMBER, "a number", &op->value);
  if (op->code == TS_OP_LITERAL) return take(p, TS_TOKEN_STRING, "a string of hexadecimal bytes", &op->value);
  return TS_SUCCESS;
}

static ts_status make_literal(const op_text *op, const ts_type *type, ts_buffer **out) {
  int64_t bytes = ts_shape_bytes(&type->shape, type->dtype);
  if (op->value.length % 2 || op->value.length / 2 != (size_t)bytes)
    return ts_token_error(op->value, "expected %lld bytes, two digits each, for %s", (long long)bytes,
                          TS_SHAPE_STR(type->dtype, &type->shape));
  TS_TRY(ts_buffer_create(ts_pool_default(), type->dtype, &type->shape, out));
  if (ts_syntax_parse_hex(op->value.text, (size_t)bytes, (*out)->data)) return TS_SUCCESS;
  ts_buffer_release(*out);
  *out = NULL;
  return ts_token_error(op->value, "expected hexadecimal digits");
}

static ts_status make_call_text(const op_text *op, ts_buffer **out) {
  ts_shape shape = {.rank = 1, .dims = {(int64_t)op->value.length}};
  TS_TRY(ts_buffer_create(ts_pool_default(), TS_U8, &shape, out));
  memcpy((*out)->data, op->value.text, op->value.length);
  return TS_SUCCESS;
}

static ts_status field_from_type(const op_text *op, ts_field_type field, void *at) {
  const ts_type *type = &op->types.data[0];
  switch (field) {
  case TS_FIELD_DTYPE: *(ts_dtype *)at = type->dtype; return TS_SUCCESS;
  case TS_FIELD_RESULT_SHAPE: ts_shape_copy(at, &type->shape); return TS_SUCCESS;
  case TS_FIELD_BUFFER: return op->code == TS_OP_LITERAL ? make_literal(op, type, at) : make_call_text(op, at);
  case TS_FIELD_SCALAR:
    if (ts_scalar_parse(type->dtype, op->value.text, op->value.length, at)) return TS_SUCCESS;
    return ts_token_error(op->value, "expected a number of type %s", ts_dtype_name(type->dtype));
  case TS_FIELD_SHAPE:
  case TS_FIELD_DIMS:
  case TS_FIELD_AXES:
  case TS_FIELD_INT:
  case TS_FIELD_UINT:
  case TS_FIELD_BOOL:
  case TS_FIELD_REGION:
  case TS_FIELD_REGIONS: break; /* parsed before */
  }
  return TS_SUCCESS;
}

/* Sets the attributes that the text states only by the result's type. */
static ts_status attrs_from_type(op_text *op) {
  for (const ts_attr_field *field = ts_attr_fields(ts_op_attr_kind(op->code)); field->name; field++)
    TS_TRY(field_from_type(op, field->type, ts_attr_at(&op->attrs, field)));
  return TS_SUCCESS;
}

/* ---- ops ---- */

static ts_status parse_op_regions(parser *p, op_text *op) {
  const char *const *names = ts_op_region_names(op->code);
  ts_region_id regions[2] = {TS_NO_ID, TS_NO_ID};
  if (!names[0]) return TS_SUCCESS;
  TS_TRY(punct(p, "{"));
  for (int i = 0; i < 2 && names[i]; i++) {
    TS_TRY(expect(p, TS_TOKEN_NAME, names[i]));
    TS_TRY(ts_graph_add_region(p->graph, &regions[i]));
    TS_TRY(parse_region(p, regions[i]));
  }
  ts_attrs_set_regions(op->code, &op->attrs, regions);
  return punct(p, "}");
}

static ts_status parse_names(parser *p, op_text *op) {
  do {
    ts_token name;
    TS_TRY(take(p, TS_TOKEN_VALUE, "a value or 'return'", &name));
    TS_TRY(TS_VEC_PUSH(&op->names, name));
  } while (accept_punct(p, ","));
  return punct(p, "=");
}

static ts_status parse_op_text(parser *p, op_text *op) {
  TS_TRY(parse_names(p, op));
  TS_TRY(take(p, TS_TOKEN_NAME, "an op", &op->at));
  op->code = ts_op_from_name(op->at.text, op->at.length);
  if (op->code == TS_OP_COUNT) return ts_token_error(op->at, "expected an op");
  TS_TRY(parse_data(p, op));
  TS_TRY(parse_uses(p, op));
  if (op->code == TS_OP_CUSTOM_CALL) TS_TRY(take(p, TS_TOKEN_STRING, "the text of a call", &op->value));
  TS_TRY(parse_fields(p, op));
  TS_TRY(parse_op_regions(p, op));
  TS_TRY(punct(p, ":"));
  TS_TRY(parse_types(p, op));
  ts_type *first = &op->types.data[0];
  TS_TRY(at_token(op->at, ts_infer_check_type(first->dtype, &first->shape)));
  return attrs_from_type(op);
}

static ts_status check_declared(const ts_type *type, const ts_value *value) {
  if (type->dtype == value->dtype && ts_shape_equal(&type->shape, value->shape)) return TS_SUCCESS;
  return ts_error(TS_INVALID_ARGUMENT, "the result is said to be %s, expected %s",
                  TS_SHAPE_STR(type->dtype, &type->shape), TS_SHAPE_STR(value->dtype, value->shape));
}

/* Checks that the text's result types equal the inferred ones. */
static ts_status check_results(parser *p, const op_text *op, ts_value_id first) {
  const ts_op *made = ts_graph_op(p->graph, ts_graph_value(p->graph, first)->op);
  if (op->names.count != made->result_count || op->types.count != made->result_count)
    return at_token(op->at, ts_error(TS_INVALID_ARGUMENT, "%s has %u results, expected as many names and types",
                                     ts_op_name(op->code), made->result_count));
  for (size_t i = 0; i < op->types.count; i++) {
    const ts_value *value = ts_graph_value(p->graph, first + (ts_value_id)i);
    const ts_type *type = &op->types.data[i];
    TS_TRY(at_token(op->at, check_declared(type, value)));
  }
  return TS_SUCCESS;
}

static ts_status build_op(parser *p, ts_region_id region, const op_text *op) {
  ts_value_id first;
  TS_TRY(at_token(op->at, ts_graph_add_op(p->graph, region, op->code,
                                          (ts_values){op->operands.data, op->operands.count}, &op->attrs, &first)));
  TS_TRY(check_results(p, op, first));
  for (size_t i = 0; i < op->names.count; i++) TS_TRY(define(p, op->names.data[i], first + (ts_value_id)i));
  return TS_SUCCESS;
}

static ts_status parse_op(parser *p, ts_region_id region) {
  op_text op = {.code = TS_OP_COUNT};
  ts_status status = parse_op_text(p, &op);
  if (!status) status = build_op(p, region, &op);
  if (op.code < TS_OP_COUNT) ts_buffer_release(ts_attrs_buffer(op.code, &op.attrs));
  TS_VEC_FREE(&op.names);
  TS_VEC_FREE(&op.operands);
  TS_VEC_FREE(&op.types);
  return status;
}

/* ---- regions and the graph ---- */

static ts_status parse_return(parser *p, ts_region_id region) {
  ts_token at = p->token;
  op_text op = {.code = TS_OP_COUNT};
  ts_status status = expect(p, TS_TOKEN_NAME, "return");
  if (!status) status = parse_uses(p, &op);
  if (!status) status = at_token(at, ts_graph_set_results(p->graph, region, op.operands.data, op.operands.count));
  TS_VEC_FREE(&op.operands);
  return status;
}

static ts_status parse_body(parser *p, ts_region_id region) {
  TS_TRY(punct(p, "{"));
  while (!ts_token_is(p->token, TS_TOKEN_NAME, "return")) TS_TRY(parse_op(p, region));
  TS_TRY(parse_return(p, region));
  return punct(p, "}");
}

typedef struct region_call {
  parser *p;
  ts_region_id region;
} region_call;

static ts_status region_on_stack(void *context) {
  const region_call *c = context;
  TS_TRY(parse_params(c->p, c->region));
  return parse_body(c->p, c->region);
}

static ts_status parse_region(parser *p, ts_region_id region) {
  if (p->depth == TS_MAX_NESTING)
    return ts_token_error(p->token, "expected regions nested at most %d deep", TS_MAX_NESTING);
  p->depth++;
  TS_TRY(ts_deep_call((size_t)p->depth, region_on_stack, &(region_call){p, region}));
  p->depth--;
  return TS_SUCCESS;
}

static ts_status parse_name(parser *p) {
  char *name;
  TS_TRY(take_name(p, "the graph's name", "the graph's name, as @main", &name));
  ts_status status = ts_graph_set_name(p->graph, name);
  ts_free(name);
  return status;
}

static ts_status parse_signature(parser *p, op_text *results) {
  TS_TRY(expect(p, TS_TOKEN_ARROW, "->"));
  TS_TRY(punct(p, "("));
  if (accept_punct(p, ")")) return TS_SUCCESS;
  do {
    ts_type type;
    TS_TRY(parse_type(p, &type));
    TS_TRY(parse_sharding(p, TS_RESULTS, results->types.count, &type.shape));
    TS_TRY(TS_VEC_PUSH(&results->types, type));
  } while (accept_punct(p, ","));
  return punct(p, ")");
}

static ts_status check_signature(const parser *p, const op_text *results) {
  const ts_region *root = ts_graph_region(p->graph, TS_ROOT);
  if (root->results.count != results->types.count)
    return at_token(results->at,
                    ts_error(TS_INVALID_ARGUMENT, "%zu result types, expected %zu: one per value that is returned",
                             results->types.count, root->results.count));
  for (size_t i = 0; i < results->types.count; i++) {
    const ts_value *value = ts_graph_value(p->graph, root->results.data[i]);
    const ts_type *type = &results->types.data[i];
    TS_TRY(at_token(results->at, check_declared(type, value)));
  }
  return TS_SUCCESS;
}

static ts_status parse_graph(parser *p, op_text *results) {
  advance(p);
  TS_TRY(expect(p, TS_TOKEN_NAME, "graph"));
  TS_TRY(parse_name(p));
  TS_TRY(parse_mesh(p));
  TS_TRY(parse_params(p, TS_ROOT));
  results->at = p->token;
  TS_TRY(parse_signature(p, results));
  TS_TRY(parse_body(p, TS_ROOT));
  TS_TRY(check_signature(p, results));
  return p->token.kind == TS_TOKEN_END ? TS_SUCCESS : ts_token_error(p->token, "expected the end");
}

ts_status ts_graph_parse(const char *text, size_t length, ts_graph **out) {
  parser p = {0};
  op_text results = {.code = TS_OP_COUNT};
  *out = NULL;
  TS_TRY(ts_graph_create(&p.graph));
  ts_lexer_init(&p.lexer, text, length);
  ts_status status = parse_graph(&p, &results);
  TS_VEC_FREE(&results.types);
  ts_map_deinit(&p.names);
  if (status) {
    ts_graph_destroy(p.graph);
    return status;
  }
  *out = p.graph;
  return TS_SUCCESS;
}
