#include "base/deep.h"
#include "stablehlo/location/location.h"

#include <string.h>

static ts_status parse_region(mlir_parser *p, bool may_be_empty, mlir_region *out);

/* An op while it is read: its lists grow. */
typedef struct op_lists {
  size_t results, counts, operands, attrs, regions;
} op_lists;

typedef struct op_reader {
  mlir_parser *p;
  mlir_op *op;
  op_lists room;
} op_reader;

static ts_status push_operand(op_reader *r) {
  if (r->p->token.kind != MLIR_VALUE) return mlir_unexpected(r->p, "a value");
  MLIR_PUSH(r->p, r->op->operands, r->op->operand_count, r->room.operands, r->p->token);
  mlir_advance(r->p);
  return TS_SUCCESS;
}

static ts_status push_attr(op_reader *r, mlir_token name, mlir_attr attr) {
  attr.name = name;
  MLIR_PUSH(r->p, r->op->attrs, r->op->attr_count, r->room.attrs, attr);
  return TS_SUCCESS;
}

static ts_status push_region(op_reader *r) {
  mlir_region region = {0};
  const bool may_be_empty = mlir_token_is(r->op->name, "func.func"); /* it is declared only */
  TS_TRY(parse_region(r->p, may_be_empty, &region));
  MLIR_PUSH(r->p, r->op->regions, r->op->region_count, r->room.regions, region);
  return TS_SUCCESS;
}

/* Adds the items of a dictionary as attributes. */
static ts_status push_dict(op_reader *r, const char *close) {
  mlir_attr dict = {0};
  TS_TRY(mlir_parse_dict(r->p, close, &dict));
  for (size_t i = 0; i < dict.count; i++) TS_TRY(push_attr(r, dict.items[i].name, dict.items[i]));
  return TS_SUCCESS;
}

/* ---- generic forms */

/* (%a, %b) <{...}> ({...}, {...}) {...} : (types) -> types */
static ts_status generic_op(op_reader *r) {
  mlir_parser *p = r->p;
  TS_TRY(mlir_expect(p, "("));
  while (!mlir_accept(p, ")")) {
    TS_TRY(push_operand(r));
    if (!mlir_accept(p, ",") && !mlir_at(p, ")")) return mlir_unexpected(p, "',' or ')'");
  }
  if (mlir_accept(p, "<")) {
    TS_TRY(mlir_expect(p, "{"));
    TS_TRY(push_dict(r, "}"));
    TS_TRY(mlir_expect(p, ">"));
  }
  if (mlir_accept(p, "(")) {
    do TS_TRY(push_region(r));
    while (mlir_accept(p, ","));
    TS_TRY(mlir_expect(p, ")"));
  }
  if (mlir_accept(p, "{")) TS_TRY(push_dict(r, "}"));
  TS_TRY(mlir_expect(p, ":"));
  mlir_types operands;
  TS_TRY(mlir_parse_types(p, &operands));
  if (operands.count != r->op->operand_count)
    return mlir_error(TS_INVALID_ARGUMENT, r->op->name, "it has %zu operands and types of %zu", r->op->operand_count,
                      operands.count);
  TS_TRY(mlir_expect(p, "->"));
  return mlir_parse_types(p, &r->op->types);
}

/* ---- pretty forms */

/* After ':': the types of operands and results, or of the results alone; the last type of select and clamp is the
 * result's. */
static ts_status pretty_types(op_reader *r) {
  mlir_parser *p = r->p;
  size_t capacity = 0;
  TS_TRY(mlir_parse_types(p, &r->op->types));
  if (mlir_accept(p, "->")) return mlir_parse_types(p, &r->op->types);
  capacity = r->op->types.count;
  while (mlir_accept(p, ",")) {
    mlir_type type;
    TS_TRY(mlir_parse_type(p, &type));
    MLIR_PUSH(p, r->op->types.data, r->op->types.count, capacity, type);
  }
  if (mlir_accept(p, "->")) return mlir_parse_types(p, &r->op->types);
  if (!mlir_token_is(r->op->name, "stablehlo.select") && !mlir_token_is(r->op->name, "stablehlo.clamp"))
    return TS_SUCCESS;
  r->op->types.data += r->op->types.count - 1;
  r->op->types.count = 1;
  return TS_SUCCESS;
}

/* A name with its value, or a word whose place defines its meaning. */
static ts_status pretty_word(op_reader *r) {
  mlir_parser *p = r->p;
  mlir_token name = p->token;
  mlir_attr attr = {.kind = MLIR_ATTR_WORD, .token = name};
  mlir_lexer ahead = p->lexer;
  if (!mlir_token_is(mlir_lexer_next(&ahead), "=")) {
    TS_TRY(mlir_parse_attr(p, &attr));
    return push_attr(r, (mlir_token){0}, attr);
  }
  mlir_advance(p);
  mlir_advance(p);
  TS_TRY(mlir_parse_attr(p, &attr));
  return push_attr(r, name, attr);
}

/* In parentheses: operands, for reduce also "%x init: %c"; the initial values are operands after all others. */
static ts_status pretty_operands(op_reader *r, mlir_token **inits, size_t *init_count, size_t *room) {
  mlir_parser *p = r->p;
  while (!mlir_accept(p, ")")) {
    if (mlir_accept(p, "init")) {
      TS_TRY(mlir_expect(p, ":"));
      if (p->token.kind != MLIR_VALUE) return mlir_unexpected(p, "a value");
      MLIR_PUSH(p, *inits, *init_count, *room, p->token);
      mlir_advance(p);
    } else if (p->token.kind == MLIR_WORD) { /* chlo.top_k(%x, k = 3) */
      TS_TRY(pretty_word(r));
    } else {
      TS_TRY(push_operand(r));
    }
    if (!mlir_accept(p, ",") && !mlir_at(p, ")") && !mlir_at(p, "init")) return mlir_unexpected(p, "',' or ')'");
  }
  return TS_SUCCESS;
}

/* <@mesh, [{"x"}]> */
static ts_status push_sharding(op_reader *r) {
  mlir_attr attr = {.token = r->p->token};
  TS_TRY(mlir_expect(r->p, "<"));
  TS_TRY(mlir_parse_sdy(r->p, &attr));
  return push_attr(r, (mlir_token){0}, attr);
}

static bool is_placement(mlir_token name) {
  return mlir_token_is(name, "sdy.sharding_constraint") || mlir_token_is(name, "sdy.reshard");
}

/* After '{': attributes. A region can be read only where a table says what its parameters are. */
static ts_status push_pretty_dict(op_reader *r) {
  if (r->p->token.kind == MLIR_BLOCK)
    return mlir_error(TS_UNIMPLEMENTED, r->op->name, "the region of such an op cannot be read in its pretty form");
  return push_dict(r, "}");
}

/* Any order of operands, attributes and words, up to the types. */
static ts_status pretty_op(op_reader *r) {
  mlir_parser *p = r->p;
  mlir_token *inits = NULL;
  size_t init_count = 0, room = 0;
  while (!mlir_at(p, ":")) {
    mlir_attr attr;
    if (p->token.kind == MLIR_VALUE)
      TS_TRY(push_operand(r));
    else if (p->token.kind == MLIR_WORD)
      TS_TRY(pretty_word(r));
    else if (mlir_accept(p, "("))
      TS_TRY(pretty_operands(r, &inits, &init_count, &room));
    else if (mlir_accept(p, "{"))
      TS_TRY(push_pretty_dict(r));
    else if (mlir_at(p, "[") || p->token.kind == MLIR_SYMBOL || p->token.kind == MLIR_STRING) {
      TS_TRY(mlir_parse_attr(p, &attr));
      TS_TRY(push_attr(r, (mlir_token){0}, attr));
    } else if (mlir_at(p, "<") && is_placement(r->op->name)) {
      TS_TRY(push_sharding(r));
    } else if (!mlir_accept(p, ",")) {
      return mlir_unexpected(p, "an operand, an attribute, or ':'");
    }
  }
  mlir_advance(p);
  for (size_t i = 0; i < init_count; i++)
    MLIR_PUSH(p, r->op->operands, r->op->operand_count, r->room.operands, inits[i]);
  return pretty_types(r);
}

/* The lists of a region's parameters, which grow. */
typedef struct param_lists {
  size_t names, types, attrs, locations;
} param_lists;

/* Parameters of a region with their types, up to ')'. */
static ts_status parse_params(mlir_parser *p, mlir_region *out, param_lists *room) {
  while (!mlir_accept(p, ")")) {
    mlir_type type;
    mlir_attr attrs = {0};
    const mlir_location *location;
    size_t before = out->param_count, located = before;
    if (p->token.kind != MLIR_VALUE) return mlir_unexpected(p, "a parameter");
    MLIR_PUSH(p, out->params, out->param_count, room->names, p->token);
    mlir_advance(p);
    TS_TRY(mlir_expect(p, ":"));
    TS_TRY(mlir_parse_type(p, &type));
    MLIR_PUSH(p, out->param_types.data, out->param_types.count, room->types, type);
    if (mlir_accept(p, "{")) TS_TRY(mlir_parse_dict(p, "}", &attrs));
    MLIR_PUSH(p, out->param_attrs, before, room->attrs, attrs);
    TS_TRY(mlir_read_location(p, &location));
    if (p->locations) MLIR_PUSH(p, out->param_locations, located, room->locations, location);
    TS_TRY(mlir_skip_location(p));
    if (!mlir_accept(p, ",") && !mlir_at(p, ")")) return mlir_unexpected(p, "',' or ')'");
  }
  return TS_SUCCESS;
}

/* After the types of a reduce: "reducer(%a: T, %b: T) (%c: U, %d: U) { ... }". The parameters of the generic form are
 * all first ones and then all second ones. */
static ts_status pretty_reducer(op_reader *r) {
  mlir_parser *p = r->p;
  mlir_region written = {0}, region;
  param_lists room = {0};
  size_t pairs;
  if (!mlir_accept(p, "reducer")) return TS_SUCCESS;
  while (mlir_accept(p, "(")) {
    const size_t before = written.param_count;
    TS_TRY(parse_params(p, &written, &room));
    if (written.param_count != before + 2)
      return mlir_error(TS_INVALID_ARGUMENT, r->op->name, "its reducer does not take two numbers of each operand");
  }
  pairs = written.param_count / 2;
  TS_TRY(push_region(r));
  region = written;
  mlir_region *made = &r->op->regions[r->op->region_count - 1];
  region.ops = made->ops;
  region.op_count = made->op_count;
  TS_TRY(TS_ARENA_ARRAY(p->arena, written.param_count, &region.params));
  TS_TRY(TS_ARENA_ARRAY(p->arena, written.param_count, &region.param_types.data));
  for (size_t i = 0; i < 2 * pairs; i++) {
    region.params[i % 2 * pairs + i / 2] = written.params[i];
    region.param_types.data[i % 2 * pairs + i / 2] = written.param_types.data[i];
  }
  *made = region;
  return TS_SUCCESS;
}

/* The op that `applies` names; NULL without it. */
static const mlir_token *find_applied(const mlir_op *op) {
  for (size_t i = 0; i + 1 < op->attr_count; i++)
    if (op->attrs[i].name.length == 0 && mlir_token_is(op->attrs[i].token, "applies")) return &op->attrs[i + 1].token;
  return NULL;
}

/* A name of a region that no text writes. */
static mlir_token made_name(mlir_token at, const char *text) {
  at.kind = MLIR_VALUE;
  at.text = text;
  at.length = strlen(text);
  return at;
}

/* The region that "applies stablehlo.add" stands for: of two numbers, with that op alone. */
static ts_status push_applied(op_reader *r, mlir_token applied) {
  mlir_region *region;
  mlir_op *made;
  mlir_token *names;
  mlir_type *types;
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 1, &region));
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 2, &made));
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 3, &names));
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 2, &types));
  names[0] = made_name(applied, "first operand");
  names[1] = made_name(applied, "second operand");
  names[2] = made_name(applied, "applied op");
  for (int i = 0; i < 2; i++) {
    types[i] = r->op->types.data[0];
    types[i].shape = &ts_shape_scalar;
  }
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 1, &made->result_counts));
  made->result_counts[0] = 1;
  made->name = applied;
  made->operands = names;
  made->operand_count = 2;
  made->types = (mlir_types){types, 1};
  made->results = &names[2];
  made->result_name_count = 1;
  made[1] = (mlir_op){.name = made_name(applied, "stablehlo.return"), .operands = &names[2], .operand_count = 1};
  *region = (mlir_region){.params = names, .param_types = {types, 2}, .param_count = 2, .ops = made, .op_count = 2};
  r->op->regions = region;
  r->op->region_count = 1;
  return TS_SUCCESS;
}

/* "(%x init: %c) applies stablehlo.add across dimensions = [1] : types" */
static ts_status pretty_reduce(op_reader *r) {
  TS_TRY(pretty_op(r));
  TS_TRY(pretty_reducer(r));
  const mlir_token *applied = find_applied(r->op);
  const bool is_known = applied && r->op->region_count == 0 && r->op->types.count == 1 && r->op->types.data[0].shape;
  return is_known ? push_applied(r, *applied) : TS_SUCCESS;
}

/* "(%iter = %0, ...) : types attributes {...} cond {...} do {...}" */
static ts_status pretty_while(op_reader *r) {
  mlir_parser *p = r->p;
  mlir_token *names = NULL;
  size_t count = 0, room = 0;
  TS_TRY(mlir_expect(p, "("));
  while (!mlir_accept(p, ")")) {
    if (p->token.kind != MLIR_VALUE) return mlir_unexpected(p, "a value of the loop");
    MLIR_PUSH(p, names, count, room, p->token);
    mlir_advance(p);
    TS_TRY(mlir_expect(p, "="));
    TS_TRY(push_operand(r));
    if (!mlir_accept(p, ",") && !mlir_at(p, ")")) return mlir_unexpected(p, "',' or ')'");
  }
  if (mlir_accept(p, ":")) TS_TRY(pretty_types(r));
  if (mlir_accept(p, "attributes")) {
    TS_TRY(mlir_expect(p, "{"));
    TS_TRY(push_dict(r, "}"));
  }
  if (r->op->types.count != count)
    return mlir_error(TS_INVALID_ARGUMENT, r->op->name, "it has %zu values and types of %zu", count,
                      r->op->types.count);
  for (int i = 0; i < 2; i++) {
    TS_TRY(mlir_expect(p, i ? "do" : "cond"));
    TS_TRY(push_region(r));
    mlir_region *region = &r->op->regions[i];
    region->params = names;
    region->param_count = count;
    region->param_types = r->op->types;
  }
  return TS_SUCCESS;
}

/* name = value, with the name as the attribute's */
static ts_status pretty_named(op_reader *r, const char *name, ts_status (*parse)(mlir_parser *p, mlir_attr *out)) {
  mlir_attr attr;
  const mlir_token token = r->p->token;
  TS_TRY(mlir_expect(r->p, name));
  TS_TRY(mlir_expect(r->p, "="));
  TS_TRY(parse(r->p, &attr));
  return push_attr(r, token, attr);
}

/* "(%a, %b) in_shardings=[...] out_shardings=[...] manual_axes={...} (%c: T, %d: T) {...} : (types) -> types" */
static ts_status pretty_manual(op_reader *r) {
  mlir_parser *p = r->p;
  mlir_region written = {0};
  param_lists room = {0};
  TS_TRY(mlir_expect(p, "("));
  while (!mlir_accept(p, ")")) {
    TS_TRY(push_operand(r));
    if (!mlir_accept(p, ",") && !mlir_at(p, ")")) return mlir_unexpected(p, "',' or ')'");
  }
  TS_TRY(pretty_named(r, "in_shardings", mlir_parse_shardings));
  TS_TRY(pretty_named(r, "out_shardings", mlir_parse_shardings));
  TS_TRY(pretty_named(r, "manual_axes", mlir_parse_manual_axes));
  TS_TRY(mlir_expect(p, "("));
  TS_TRY(parse_params(p, &written, &room));
  TS_TRY(push_region(r));
  mlir_region *made = &r->op->regions[0];
  written.ops = made->ops;
  written.op_count = made->op_count;
  *made = written;
  TS_TRY(mlir_expect(p, ":"));
  return pretty_types(r);
}

/* return %a, %b : types */
static ts_status parse_return(op_reader *r) {
  mlir_parser *p = r->p;
  while (p->token.kind == MLIR_VALUE) {
    TS_TRY(push_operand(r));
    if (!mlir_accept(p, ",")) break;
  }
  return mlir_accept(p, ":") ? pretty_types(r) : TS_SUCCESS;
}

/* ---- ops and regions */

static bool is_return(mlir_token name) {
  return mlir_token_is(name, "return") || mlir_token_is(name, "func.return") ||
         mlir_token_is(name, "stablehlo.return") || mlir_token_is(name, "sdy.return");
}

/* "%0:2, %a =" */
static ts_status parse_results(op_reader *r) {
  mlir_parser *p = r->p;
  if (p->token.kind != MLIR_VALUE) return TS_SUCCESS;
  do {
    int64_t count = 1;
    if (p->token.kind != MLIR_VALUE) return mlir_unexpected(p, "a value");
    MLIR_PUSH(p, r->op->results, r->op->result_name_count, r->room.results, p->token);
    mlir_advance(p);
    if (mlir_accept(p, ":")) {
      TS_TRY(mlir_attr_int(&(mlir_attr){.kind = MLIR_ATTR_NUMBER, .token = p->token}, &count));
      if (count < 1 || count > 100000) return mlir_unexpected(p, "a number of results");
      mlir_advance(p);
    }
    size_t names = r->op->result_name_count - 1;
    MLIR_PUSH(p, r->op->result_counts, names, r->room.counts, (size_t)count);
  } while (mlir_accept(p, ","));
  return mlir_expect(p, "=");
}

/* stablehlo.constant dense<...> : type */
static ts_status pretty_constant(op_reader *r) {
  mlir_attr value;
  if (mlir_accept(r->p, "{")) TS_TRY(push_dict(r, "}"));
  TS_TRY(mlir_parse_attr(r->p, &value));
  if (value.kind != MLIR_ATTR_DENSE) return mlir_error(TS_INVALID_ARGUMENT, value.token, "expected a dense constant");
  TS_TRY(push_attr(r, (mlir_token){.kind = MLIR_WORD, .text = "value", .length = 5}, value));
  TS_TRY(TS_ARENA_ARRAY(r->p->arena, 1, &r->op->types.data));
  r->op->types.data[0] = value.type;
  r->op->types.count = 1;
  return TS_SUCCESS;
}

static ts_status parse_op_body(op_reader *r) {
  mlir_parser *p = r->p;
  bool quoted = p->token.kind == MLIR_STRING;
  if (!quoted && p->token.kind != MLIR_WORD) return mlir_unexpected(p, "an op");
  r->op->name = p->token;
  mlir_advance(p);
  if (quoted) return generic_op(r);
  if (is_return(r->op->name)) return parse_return(r);
  if (mlir_token_is(r->op->name, "stablehlo.constant")) return pretty_constant(r);
  if (mlir_token_is(r->op->name, "stablehlo.while") && mlir_at(p, "(")) {
    mlir_lexer ahead = p->lexer;
    mlir_lexer_next(&ahead);
    if (mlir_token_is(mlir_lexer_next(&ahead), "=") || mlir_token_is(p->token, ")")) return pretty_while(r);
  }
  if (mlir_token_is(r->op->name, "stablehlo.reduce")) return pretty_reduce(r);
  if (mlir_token_is(r->op->name, "sdy.manual_computation")) return pretty_manual(r);
  return pretty_op(r);
}

ts_status mlir_parse_op(mlir_parser *p, mlir_op *out) {
  op_reader r = {.p = p, .op = out};
  TS_TRY(parse_results(&r));
  TS_TRY(parse_op_body(&r));
  TS_TRY(mlir_read_location(p, &out->location));
  return mlir_skip_location(p);
}

ts_status mlir_parse_params(mlir_parser *p, mlir_region *out) {
  param_lists room = {0};
  return parse_params(p, out, &room);
}

/* After '{'. */
static ts_status parse_block(mlir_parser *p, bool may_be_empty, mlir_region *out) {
  size_t room = 0;
  param_lists param_room = {0};
  if (p->token.kind == MLIR_BLOCK) {
    mlir_advance(p);
    if (mlir_accept(p, "(")) TS_TRY(parse_params(p, out, &param_room));
    TS_TRY(mlir_expect(p, ":"));
  }
  while (!mlir_accept(p, "}")) {
    mlir_op op = {0};
    if (p->token.kind == MLIR_BLOCK)
      return mlir_error(TS_UNIMPLEMENTED, p->token, "regions of several blocks cannot be read");
    TS_TRY(mlir_parse_op(p, &op));
    MLIR_PUSH(p, out->ops, out->op_count, room, op);
  }
  if (out->op_count == 0 && may_be_empty) return TS_SUCCESS;
  if (out->op_count == 0 || !is_return(out->ops[out->op_count - 1].name))
    return mlir_unexpected(p, "a return at the end of a region");
  return TS_SUCCESS;
}

typedef struct region_call {
  mlir_parser *p;
  bool may_be_empty;
  mlir_region *out;
} region_call;

static ts_status region_on_stack(void *context) {
  const region_call *call = context;
  return parse_block(call->p, call->may_be_empty, call->out);
}

static ts_status parse_region(mlir_parser *p, bool may_be_empty, mlir_region *out) {
  TS_TRY(mlir_expect(p, "{"));
  if (p->regions++ >= MLIR_MAX_REGIONS) return mlir_error(TS_INVALID_ARGUMENT, p->token, "regions are nested too deep");
  TS_TRY(ts_deep_call(MLIR_REGION_LEVELS * (size_t)p->regions, region_on_stack, &(region_call){p, may_be_empty, out}));
  p->regions--;
  return TS_SUCCESS;
}

ts_status mlir_parse_region(mlir_parser *p, mlir_region *out) { return parse_region(p, false, out); }
