/* The functions and meshes of a module, and the module itself: in pretty and generic forms. */
#include "stablehlo/location/location.h"

#include <string.h>

/* ---- functions */

/* func.func private @f(%x: tensor<f32>) -> tensor<f32> {...} */
static ts_status parse_func(mlir_parser *p, mlir_func *out) {
  mlir_advance(p);
  out->is_public = !mlir_accept(p, "private") && !mlir_accept(p, "nested");
  if (out->is_public) mlir_accept(p, "public");
  out->name = p->token;
  if (p->token.kind != MLIR_SYMBOL) return mlir_unexpected(p, "the name of a function");
  mlir_advance(p);
  TS_TRY(mlir_expect(p, "("));
  TS_TRY(mlir_parse_params(p, &out->body));
  if (mlir_accept(p, "->")) TS_TRY(mlir_parse_results(p, &out->results, &out->result_attrs));
  if (mlir_accept(p, "attributes")) {
    TS_TRY(mlir_expect(p, "{"));
    TS_TRY(mlir_parse_dict(p, "}", &(mlir_attr){0}));
  }
  if (!mlir_at(p, "{")) return mlir_skip_location(p); /* one of another module, which nothing may call */
  TS_TRY(mlir_parse_region(p, &out->body));
  return mlir_skip_location(p);
}

/* ---- ops that are functions and meshes */

/* Tessera lacks a type without a shape. */
static bool types_equal(const mlir_type *a, const mlir_type *b) {
  if (!a->shape || !b->shape) return a->shape == b->shape;
  return a->dtype == b->dtype && a->is_bool == b->is_bool && ts_shape_equal(a->shape, b->shape);
}

/* A function's block repeats the types of its arguments. A function that is declared only has no block. */
static ts_status check_arguments(const mlir_op *op, const mlir_types *arguments, const mlir_region *body) {
  if (body->op_count == 0 && body->param_count == 0) return TS_SUCCESS;
  if (body->op_count == 0) return mlir_error(TS_INVALID_ARGUMENT, op->name, "its block has no ops");
  if (arguments->count != body->param_count)
    return mlir_error(TS_INVALID_ARGUMENT, op->name, "its type has %zu arguments, and its block has %zu",
                      arguments->count, body->param_count);
  for (size_t i = 0; i < arguments->count; i++)
    if (!types_equal(&arguments->data[i], &body->param_types.data[i]))
      return mlir_error(TS_INVALID_ARGUMENT, op->name, "argument %zu has another type in its block", i);
  return TS_SUCCESS;
}

/* Sets a list with a dictionary for each argument or result, or NULL without such a list. An artifact has an empty list
 * then. */
static ts_status find_dicts(const mlir_op *op, const char *name, size_t count, mlir_attr **out) {
  const mlir_attr *attrs = mlir_op_attr(op, name);
  bool fits = attrs && attrs->kind == MLIR_ATTR_LIST && attrs->count == count;
  *out = NULL;
  if (!attrs || (attrs->kind == MLIR_ATTR_LIST && attrs->count == 0)) return TS_SUCCESS;
  for (size_t i = 0; fits && i < count; i++) fits = attrs->items[i].kind == MLIR_ATTR_DICT;
  if (!fits) return mlir_error(TS_INVALID_ARGUMENT, op->name, "%s is no list of %zu dictionaries", name, count);
  *out = attrs->items;
  return TS_SUCCESS;
}

ts_status mlir_func_of(const mlir_op *op, const mlir_types *arguments, const mlir_types *results, mlir_func *out) {
  const mlir_attr *name = mlir_op_attr(op, "sym_name"), *visibility = mlir_op_attr(op, "sym_visibility");
  if (!name || name->kind != MLIR_ATTR_WORD || op->region_count != 1)
    return mlir_error(TS_INVALID_ARGUMENT, op->name, "a function lacks its name or its region");
  if (op->operand_count || op->types.count)
    return mlir_error(TS_INVALID_ARGUMENT, op->name, "a function has no operands and is no value");
  out->name = name->token;
  out->name.kind = MLIR_SYMBOL;
  out->is_public =
      !visibility || (!mlir_token_is(visibility->token, "private") && !mlir_token_is(visibility->token, "nested"));
  out->results = *results;
  out->body = op->regions[0];
  TS_TRY(check_arguments(op, arguments, &out->body));
  TS_TRY(find_dicts(op, "arg_attrs", arguments->count, &out->body.param_attrs));
  return find_dicts(op, "res_attrs", results->count, &out->result_attrs);
}

ts_status mlir_mesh_of(const mlir_op *op, mlir_mesh *out) {
  const mlir_attr *name = mlir_op_attr(op, "sym_name"), *mesh = mlir_op_attr(op, "mesh");
  if (!name || name->kind != MLIR_ATTR_WORD || !mesh)
    return mlir_error(TS_INVALID_ARGUMENT, op->name, "a mesh lacks its name or its axes");
  *out = (mlir_mesh){name->token, *mesh};
  return TS_SUCCESS;
}

/* "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main"}> ({...}) : () -> () */
static ts_status parse_generic_func(mlir_parser *p, mlir_func *out) {
  mlir_op op = {0};
  TS_TRY(mlir_parse_op(p, &op));
  const mlir_attr *type = mlir_op_attr(&op, "function_type");
  if (!type || type->kind != MLIR_ATTR_FUNCTION)
    return mlir_error(TS_INVALID_ARGUMENT, op.name, "a function lacks its type");
  return mlir_func_of(&op, type->items[0].type.parts, type->items[1].type.parts, out);
}

/* "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> () */
static ts_status parse_generic_mesh(mlir_parser *p, mlir_mesh *out) {
  mlir_op op = {0};
  TS_TRY(mlir_parse_op(p, &op));
  return mlir_mesh_of(&op, out);
}

/* ---- the module */

/* #loc1 = loc(...) */
static ts_status parse_alias(mlir_parser *p) {
  const mlir_token name = p->token;
  mlir_advance(p);
  TS_TRY(mlir_expect(p, "="));
  if (mlir_at(p, "loc")) {
    TS_TRY(mlir_define_location(p, name));
    return mlir_skip_location(p);
  }
  return mlir_parse_attr(p, &(mlir_attr){0});
}

/* sdy.mesh @name = <["x"=2]> */
static ts_status parse_mesh(mlir_parser *p, mlir_mesh *out) {
  mlir_advance(p);
  if (p->token.kind != MLIR_SYMBOL) return mlir_unexpected(p, "the name of a mesh");
  out->name = p->token;
  mlir_advance(p);
  TS_TRY(mlir_expect(p, "="));
  TS_TRY(mlir_parse_mesh(p, &out->axes));
  if (mlir_accept(p, "{")) TS_TRY(mlir_parse_dict(p, "}", &(mlir_attr){0}));
  return mlir_skip_location(p);
}

static ts_status parse_funcs(mlir_parser *p, const char *close, mlir_module *out) {
  size_t room = 0, mesh_room = 0;
  while (!mlir_at(p, close) && p->token.kind != MLIR_END) {
    if (p->token.kind == MLIR_SYMBOL) return mlir_unexpected(p, "a function"); /* @func.func is no op */
    const bool is_generic = p->token.kind == MLIR_STRING;
    mlir_mesh mesh = {0};
    mlir_func func = {0};
    if (p->token.kind == MLIR_HASH) {
      TS_TRY(parse_alias(p));
    } else if (mlir_token_is(p->token, "sdy.mesh")) {
      TS_TRY(is_generic ? parse_generic_mesh(p, &mesh) : parse_mesh(p, &mesh));
      MLIR_PUSH(p, out->meshes, out->mesh_count, mesh_room, mesh);
    } else if (mlir_token_is(p->token, "func.func")) {
      TS_TRY(is_generic ? parse_generic_func(p, &func) : parse_func(p, &func));
      MLIR_PUSH(p, out->funcs, out->count, room, func);
    } else {
      const bool is_module = mlir_token_is(p->token, "module") || mlir_token_is(p->token, "builtin.module");
      return mlir_error(is_module ? TS_INVALID_ARGUMENT : TS_UNIMPLEMENTED, p->token, "expected a function");
    }
  }
  return TS_SUCCESS;
}

/* A dictionary of the module, where there is one: a module has properties and other attributes. */
static ts_status add_attrs(mlir_parser *p, mlir_module *out) {
  size_t room;
  mlir_attr dict = {0};
  if (!mlir_accept(p, "{")) return TS_SUCCESS;
  TS_TRY(mlir_parse_dict(p, "}", &dict));
  room = out->attrs.count; /* of the list, at least */
  for (size_t i = 0; i < dict.count; i++) MLIR_PUSH(p, out->attrs.items, out->attrs.count, room, dict.items[i]);
  out->attrs.kind = MLIR_ATTR_DICT;
  return TS_SUCCESS;
}

/* "builtin.module"() <{...}> ({...}) {...} : () -> (): after the name */
static ts_status parse_generic_module(mlir_parser *p, mlir_module *out) {
  static const char *const begin[] = {"(", "{"}, *const end[] = {":", "(", ")", "->", "(", ")"};
  TS_TRY(mlir_expect(p, "("));
  TS_TRY(mlir_expect(p, ")"));
  if (mlir_accept(p, "<")) {
    TS_TRY(add_attrs(p, out));
    TS_TRY(mlir_expect(p, ">"));
  }
  for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) TS_TRY(mlir_expect(p, begin[i]));
  if (p->token.kind == MLIR_BLOCK) {
    mlir_advance(p);
    TS_TRY(mlir_expect(p, ":"));
  }
  TS_TRY(parse_funcs(p, "}", out));
  TS_TRY(mlir_expect(p, "}"));
  TS_TRY(mlir_expect(p, ")"));
  TS_TRY(add_attrs(p, out));
  for (size_t i = 0; i < sizeof end / sizeof *end; i++) TS_TRY(mlir_expect(p, end[i]));
  return TS_SUCCESS;
}

/* module @name attributes {...} {...}: after the word */
static ts_status parse_pretty_module(mlir_parser *p, mlir_module *out) {
  if (p->token.kind == MLIR_SYMBOL) mlir_advance(p);
  if (mlir_accept(p, "attributes")) {
    if (!mlir_at(p, "{")) return mlir_unexpected(p, "'{'");
    TS_TRY(add_attrs(p, out));
  }
  TS_TRY(mlir_expect(p, "{"));
  TS_TRY(parse_funcs(p, "}", out));
  return mlir_expect(p, "}");
}

static ts_status parse_module(mlir_parser *p, mlir_module *out) {
  while (p->token.kind == MLIR_HASH) TS_TRY(parse_alias(p));
  const bool is_generic = p->token.kind == MLIR_STRING && mlir_token_is(p->token, "builtin.module");
  if (!is_generic && !mlir_at(p, "module") && !mlir_at(p, "builtin.module")) return parse_funcs(p, "", out);
  mlir_advance(p);
  TS_TRY(is_generic ? parse_generic_module(p, out) : parse_pretty_module(p, out));
  TS_TRY(mlir_skip_location(p));
  while (p->token.kind == MLIR_HASH) TS_TRY(parse_alias(p));
  return TS_SUCCESS;
}

ts_status mlir_parse(ts_arena *arena, const char *text, size_t length, bool with_locations, mlir_module *out) {
  ts_map locations = {0};
  mlir_parser p = {.arena = arena, .locations = with_locations ? &locations : NULL};
  *out = (mlir_module){0};
  mlir_lexer_init(&p.lexer, text, length);
  mlir_advance(&p);
  ts_status status = parse_module(&p, out);
  ts_map_deinit(&locations);
  TS_TRY(status);
  if (p.token.kind != MLIR_END) return mlir_unexpected(&p, "the end: a text has one module");
  if (out->count == 0) return mlir_unexpected(&p, "a function");
  return TS_SUCCESS;
}
