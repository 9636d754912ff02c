/* Meshes and shardings of the dialect sdy, in MLIR's text and in the texts of bytecode. */
#include "stablehlo/mlir_parser.h"

static ts_status parse_number(mlir_parser *p, mlir_attr *out) {
  *out = (mlir_attr){.kind = MLIR_ATTR_NUMBER, .token = p->token};
  if (p->token.kind != MLIR_NUMBER) return mlir_unexpected(p, "a number");
  mlir_advance(p);
  return TS_SUCCESS;
}

/* Each item of a dim is an axis: a string, or a part of an axis as "x":(1)2. */
static ts_status parse_axis(mlir_parser *p, mlir_attr *out) {
  *out = (mlir_attr){.kind = MLIR_ATTR_WORD, .token = p->token};
  if (p->token.kind != MLIR_STRING) return mlir_unexpected(p, "the name of an axis");
  mlir_advance(p);
  if (!mlir_accept(p, ":")) return TS_SUCCESS;
  out->kind = MLIR_ATTR_PART;
  out->count = 2;
  TS_TRY(TS_ARENA_ARRAY(p->arena, out->count, &out->items));
  TS_TRY(mlir_expect(p, "("));
  TS_TRY(parse_number(p, &out->items[0]));
  TS_TRY(mlir_expect(p, ")"));
  return parse_number(p, &out->items[1]);
}

/* {"x", "y", ?}: a question mark says that more axes may follow. */
static ts_status parse_axes(mlir_parser *p, mlir_attr *out) {
  size_t room = 0;
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .token = p->token};
  TS_TRY(mlir_expect(p, "{"));
  while (!mlir_accept(p, "}")) {
    mlir_attr axis;
    if (!mlir_accept(p, "?")) {
      TS_TRY(parse_axis(p, &axis));
      MLIR_PUSH(p, out->items, out->count, room, axis);
    }
    if (!mlir_accept(p, ",") && !mlir_at(p, "}")) return mlir_unexpected(p, "',' or '}'");
  }
  return TS_SUCCESS;
}

/* [item, item]. `room`: of the items of `out`. */
static ts_status parse_list(mlir_parser *p, ts_status (*parse_item)(mlir_parser *, mlir_attr *), mlir_attr *out,
                            size_t *room) {
  TS_TRY(mlir_expect(p, "["));
  while (!mlir_accept(p, "]")) {
    mlir_attr item;
    TS_TRY(parse_item(p, &item));
    MLIR_PUSH(p, out->items, out->count, *room, item);
    if (!mlir_accept(p, ",") && !mlir_at(p, "]")) return mlir_unexpected(p, "',' or ']'");
  }
  return TS_SUCCESS;
}

/* {"x"}, or {}p1: a number is a priority, which only a search for shardings needs. */
static ts_status parse_dim(mlir_parser *p, mlir_attr *out) {
  TS_TRY(parse_axes(p, out));
  if (p->token.kind == MLIR_WORD) mlir_advance(p);
  return TS_SUCCESS;
}

/* @mesh, [{"x"}, {}], replicated={"y"}, unreduced={"z"}: after '<'. */
static ts_status parse_sharding(mlir_parser *p, mlir_attr *out) {
  size_t room = 0;
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .token = p->token};
  if (p->token.kind != MLIR_SYMBOL) return mlir_unexpected(p, "the name of a mesh");
  mlir_advance(p);
  TS_TRY(mlir_expect(p, ","));
  TS_TRY(parse_list(p, parse_dim, out, &room));
  while (mlir_accept(p, ",")) {
    mlir_attr axes;
    const bool is_terms = mlir_at(p, "unreduced");
    mlir_advance(p);
    TS_TRY(mlir_expect(p, "="));
    TS_TRY(parse_axes(p, &axes));
    if (is_terms && axes.count) out->kind = MLIR_ATTR_TERMS;
  }
  return mlir_expect(p, ">");
}

/* <@mesh, ...> */
static ts_status parse_item_of_shardings(mlir_parser *p, mlir_attr *out) {
  TS_TRY(mlir_expect(p, "<"));
  return parse_sharding(p, out);
}

ts_status mlir_parse_shardings(mlir_parser *p, mlir_attr *out) {
  size_t room = 0;
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .token = p->token};
  return parse_list(p, parse_item_of_shardings, out, &room);
}

/* "x"=4 */
static ts_status parse_size(mlir_parser *p, mlir_attr *out) {
  const mlir_token name = p->token;
  TS_TRY(parse_axis(p, out));
  TS_TRY(mlir_expect(p, "="));
  TS_TRY(mlir_parse_attr(p, out));
  out->name = name;
  return TS_SUCCESS;
}

/* ["x"=4, "y"=2], device_ids=[1, 0]: after '<'. Items by the names of axes. */
static ts_status parse_mesh(mlir_parser *p, mlir_attr *out) {
  size_t room = 0;
  *out = (mlir_attr){.kind = MLIR_ATTR_DICT, .token = p->token};
  TS_TRY(parse_list(p, parse_size, out, &room));
  if (mlir_accept(p, ",")) {
    mlir_attr order;
    const mlir_token name = p->token;
    TS_TRY(mlir_expect(p, "device_ids"));
    TS_TRY(mlir_expect(p, "="));
    TS_TRY(mlir_parse_attr(p, &order));
    order.name = name;
    MLIR_PUSH(p, out->items, out->count, room, order);
  }
  return mlir_expect(p, ">");
}

ts_status mlir_parse_mesh(mlir_parser *p, mlir_attr *out) {
  TS_TRY(mlir_expect(p, "<"));
  return parse_mesh(p, out);
}

ts_status mlir_parse_manual_axes(mlir_parser *p, mlir_attr *out) { return parse_axes(p, out); }

/* After '<'. What begins it says which attribute it is. */
static ts_status parse_any(mlir_parser *p, mlir_attr *out) {
  mlir_lexer ahead = p->lexer;
  if (p->token.kind == MLIR_SYMBOL) return parse_sharding(p, out);
  if (mlir_accept(p, "manual_axes"))
    TS_TRY(parse_axes(p, out));
  else if (mlir_at(p, "[") && mlir_lexer_next(&ahead).kind == MLIR_STRING)
    return parse_mesh(p, out);
  else
    TS_TRY(mlir_parse_shardings(p, out));
  return mlir_expect(p, ">");
}

/* Another attribute of sdy, or a form of another version, has no meaning until an op needs it. */
ts_status mlir_parse_sdy(mlir_parser *p, mlir_attr *out) {
  const mlir_parser before = *p;
  const mlir_attr unit = *out;
  ts_status status = parse_any(p, out);
  if (!status || ts_status_code(status) == TS_RESOURCE_EXHAUSTED) return status;
  ts_status_free(status);
  *p = before;
  *out = unit;
  return mlir_skip_angles(p, out);
}
