/* Names and types of the arguments and results of a module. JAX names an argument by the location of the parameter, and
 * a result by an attribute. Where sizes are symbols, @main computes them and calls the function whose parameters have
 * the names. */
#include "stablehlo/interface/interface.h"

#include "base/text.h"
#include "stablehlo/location/location.h"

#include <string.h>

/* The bytes of a name, and the locations that lead to it. Many parameters may share one long name. */
enum { MOST_BYTES = 1024, MOST_STEPS = 8 };

/* The name of a location; its text is NULL if it has none. */
static mlir_token name_of(const mlir_location *location) {
  for (int step = 0; location && step < MOST_STEPS; step++, location = location->inner) {
    if (location->name.length) return location->name;
    if (location->others || location->file.length) break;
  }
  return (mlir_token){0};
}

static mlir_token name_of_param(const mlir_region *body, size_t i) {
  return name_of(body->param_locations ? body->param_locations[i] : NULL);
}

/* Backslashes of a text stand for other characters. */
static ts_status set_name(ts_arena *arena, mlir_token name, ts_stablehlo_leaf *out) {
  ts_text text = {0};
  if (!name.text || name.length > MOST_BYTES) return TS_SUCCESS;
  out->name = name.text;
  out->name_length = name.length;
  if (!memchr(name.text, '\\', name.length)) return TS_SUCCESS;
  make_append_plain(name, 0, name.length, &text);
  ts_status status = text.failed ? ts_error_no_memory() : TS_SUCCESS;
  if (!status) status = ts_arena_copy(arena, text.data, text.length, (void **)&out->name);
  out->name_length = text.length;
  ts_text_deinit(&text);
  return status;
}

static ts_status set_type(const mlir_type *type, mlir_token func, const char *what, size_t i, ts_stablehlo_leaf *out) {
  if (!type->shape) return mlir_error(TS_UNIMPLEMENTED, func, "%s %zu is no tensor that Tessera has", what, i);
  out->dtype = type->dtype;
  out->shape = type->shape;
  return TS_SUCCESS;
}

/* A parameter of `main` without a name gets the name of the called function's parameter. `params` maps the text's names
 * of parameters to their numbers, from 1. */
static ts_status take_names_of(const mlir_op *call, const mlir_func *callee, const ts_map *params, ts_arena *arena,
                               ts_stablehlo_leaf *leaves) {
  for (size_t j = 0; j < call->operand_count && j < callee->body.param_count; j++) {
    const mlir_token operand = call->operands[j];
    const size_t i = (uintptr_t)ts_map_get(params, operand.text, operand.length);
    if (i && !leaves[i - 1].name) TS_TRY(set_name(arena, name_of_param(&callee->body, j), &leaves[i - 1]));
  }
  return TS_SUCCESS;
}

static ts_status number_params(const mlir_region *body, ts_map *out) {
  for (size_t i = 0; i < body->param_count; i++)
    TS_TRY(ts_map_put(out, body->params[i].text, body->params[i].length, (void *)(uintptr_t)(i + 1)));
  return TS_SUCCESS;
}

static ts_status name_by_calls(const make_state *r, const mlir_region *body, ts_arena *arena,
                               ts_stablehlo_leaf *leaves) {
  ts_map params = {0};
  ts_status status = number_params(body, &params);
  for (size_t i = 0; !status && i < body->op_count; i++) {
    const mlir_func *callee = make_find_callee(r, &body->ops[i]);
    if (callee) status = take_names_of(&body->ops[i], callee, &params, arena, leaves);
  }
  ts_map_deinit(&params);
  return status;
}

static ts_status find_params(const make_state *r, const mlir_func *main, ts_arena *arena, ts_stablehlo_leaves *out) {
  const mlir_region *body = &main->body;
  bool is_complete = true;
  out->param_count = body->param_count;
  TS_TRY(TS_ARENA_ARRAY(arena, body->param_count, &out->params));
  for (size_t i = 0; i < body->param_count; i++) {
    TS_TRY(set_type(&body->param_types.data[i], main->name, "argument", i, &out->params[i]));
    TS_TRY(set_name(arena, name_of_param(body, i), &out->params[i]));
    is_complete = is_complete && out->params[i].name;
  }
  return is_complete ? TS_SUCCESS : name_by_calls(r, body, arena, out->params);
}

static ts_status find_results(const mlir_func *main, ts_arena *arena, ts_stablehlo_leaves *out) {
  out->result_count = main->results.count;
  TS_TRY(TS_ARENA_ARRAY(arena, main->results.count, &out->results));
  for (size_t i = 0; i < main->results.count; i++) {
    const mlir_attr *attrs = main->result_attrs ? &main->result_attrs[i] : NULL;
    const mlir_attr *info = attrs ? mlir_find_attr(attrs->items, attrs->count, "jax.result_info") : NULL;
    TS_TRY(set_type(&main->results.data[i], main->name, "result", i, &out->results[i]));
    if (info && info->kind == MLIR_ATTR_WORD) TS_TRY(set_name(arena, info->token, &out->results[i]));
  }
  return TS_SUCCESS;
}

ts_status ts_stablehlo_read_leaves(const char *text, size_t length, ts_stablehlo_leaves *out) {
  make_state r = {.with_places = true};
  mlir_func *main;
  *out = (ts_stablehlo_leaves){0};
  ts_arena_init(&r.arena);
  ts_status status = make_read_tree(&r, text, length, &main);
  if (!status) status = find_params(&r, main, &r.arena, out);
  if (!status) status = find_results(main, &r.arena, out);
  out->arena = r.arena;
  ts_arena_init(&r.arena);
  make_state_deinit(&r);
  if (status) ts_stablehlo_leaves_deinit(out);
  return status;
}

void ts_stablehlo_leaves_deinit(ts_stablehlo_leaves *leaves) {
  ts_arena_deinit(&leaves->arena);
  *leaves = (ts_stablehlo_leaves){0};
}
