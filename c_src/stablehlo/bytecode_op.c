/* The ops of a file of bytecode: functions and their regions. A file numbers the values of a region. The tree numbers
 * the values of a function, and these numbers are the names of the values. */
#include "stablehlo/bytecode.h"

#include "base/deep.h"
#include "stablehlo/location/location.h"

#include <stdio.h>
#include <string.h>

/* What changed between versions of the format. */
enum { WITH_LAZY_REGIONS = 2, WITH_USE_ORDERS = 3, WITHOUT_UNKNOWN_PLACES = 4 };

/* Parts that an op has. */
enum {
  HAS_ATTRS = 1,
  HAS_RESULTS = 2,
  HAS_OPERANDS = 4,
  HAS_SUCCESSORS = 8,
  HAS_REGIONS = 16,
  HAS_USE_ORDERS = 32,
  HAS_PROPERTIES = 64
};

/* The values that ops of a region without a way out see: names by number. */
typedef struct scope {
  mlir_token *names;
  size_t count, room;
} scope;

typedef struct op_reader {
  bytecode *b;
  scope *scope;
  size_t *made; /* number of values of the function that were read */
  int depth;
} op_reader;

static ts_status read_region(const op_reader *r, bytecode_bytes *from, mlir_region *out);

/* ---- values */

/* Adds `count` values of a region to the scope. */
static ts_status open_values(const op_reader *r, const uint8_t *at, uint64_t count) {
  scope *s = r->scope;
  if (count > r->b->size - s->count)
    return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "a region has more values than the file has bytes");
  const size_t wanted = s->count + (size_t)count;
  while (s->room < wanted) TS_TRY(mlir_grow(r->b->arena, (void **)&s->names, &s->room, sizeof *s->names));
  if (count) memset(s->names + s->count, 0, (size_t)count * sizeof *s->names);
  s->count = wanted;
  return TS_SUCCESS;
}

/* The next value of a region gets a name. */
static ts_status define(const op_reader *r, const uint8_t *at, size_t *next, size_t limit, mlir_token *out) {
  char text[24], *kept;
  if (*next >= limit) return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "a region has more values than it says");
  snprintf(text, sizeof text, "%zu", (*r->made)++);
  TS_TRY(ts_arena_strdup(r->b->arena, text, &kept));
  *out = bytecode_token(r->b, at, MLIR_VALUE, kept, strlen(kept));
  r->scope->names[(*next)++] = *out;
  return TS_SUCCESS;
}

typedef struct block_reader {
  const op_reader *r;
  size_t next, limit; /* numbers of the region's values */
} block_reader;

/* ---- attributes */

static ts_status push_attr(const op_reader *r, mlir_op *op, size_t *room, mlir_attr attr) {
  MLIR_PUSH(r->b, op->attrs, op->attr_count, *room, attr);
  return TS_SUCCESS;
}

static ts_status read_dict(const op_reader *r, bytecode_bytes *from, mlir_op *op, size_t *room) {
  const mlir_attr *dict;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_get_attr(r->b, from, &dict));
  if (dict->kind != MLIR_ATTR_DICT) return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "expected a dictionary");
  for (size_t i = 0; i < dict->count; i++) TS_TRY(push_attr(r, op, room, dict->items[i]));
  return TS_SUCCESS;
}

/* Reads properties by their names; `*out_fits` when they are all that there is. */
static ts_status read_names(const op_reader *r, bytecode_bytes from, const char *names, mlir_op *op, size_t *room,
                            bool *out_fits) {
  *out_fits = false;
  for (size_t length; *names; names += length + (names[length] == ' ')) {
    const bool optional = *names == '?';
    bytecode_bytes before = from;
    const mlir_attr *attr;
    uint64_t number;
    bool present = true;
    names += optional;
    length = strcspn(names, " ");
    if (from.at == from.end) return TS_SUCCESS;
    if (optional) TS_TRY(bytecode_flagged(r->b, &before, &number, &present));
    if (!present) {
      from = before;
      continue;
    }
    if (optional) { /* the number without its flag */
      if (number >= r->b->attr_count) return TS_SUCCESS;
      TS_TRY(bytecode_attr_at(r->b, (size_t)number, &attr));
      from = before;
    } else {
      TS_TRY(bytecode_get_attr(r->b, &from, &attr));
    }
    mlir_attr named = *attr;
    named.name = bytecode_token(r->b, from.at, MLIR_WORD, names, length);
    TS_TRY(push_attr(r, op, room, named));
  }
  *out_fits = from.at == from.end;
  return TS_SUCCESS;
}

/* An op that is not known may have any properties: it is refused when it is used. */
static ts_status read_properties(const op_reader *r, const bytecode_op_name *name, bytecode_bytes from, mlir_op *op,
                                 size_t *room) {
  const size_t kept = op->attr_count;
  const char *names = "";
  for (size_t form = 0; (names = bytecode_property_names(name->written, form)); form++) {
    bool fits;
    op->attr_count = kept;
    TS_TRY(read_names(r, from, names, op, room, &fits));
    if (fits) return TS_SUCCESS;
  }
  op->attr_count = kept;
  if (from.at != from.end) op->fault = "its properties are not known, or are of another version";
  return TS_SUCCESS;
}

/* An op that its writer did not know has its properties as a dictionary. */
static ts_status read_op_properties(const op_reader *r, const bytecode_op_name *name, bytecode_bytes *from, mlir_op *op,
                                    size_t *room) {
  size_t index;
  TS_TRY(bytecode_index(r->b, from, r->b->property_count, "property", &index));
  bytecode_bytes bytes = r->b->properties[index];
  if (!name->is_registered) return read_dict(r, &bytes, op, room);
  return read_properties(r, name, bytes, op, room);
}

/* ---- ops */

static ts_status read_results(block_reader *k, bytecode_bytes *from, mlir_op *op) {
  const op_reader *r = k->r;
  size_t count;
  TS_TRY(bytecode_count(r->b, from, &count));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, count, &op->results));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, count, &op->result_counts));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, count, &op->types.data));
  op->result_name_count = op->types.count = count;
  for (size_t i = 0; i < count; i++) {
    const uint8_t *at = from->at;
    TS_TRY(bytecode_get_tensor(r->b, from, &op->types.data[i]));
    TS_TRY(define(r, at, &k->next, k->limit, &op->results[i]));
    op->result_counts[i] = 1;
  }
  return TS_SUCCESS;
}

static ts_status read_operands(const op_reader *r, bytecode_bytes *from, mlir_op *op) {
  TS_TRY(bytecode_count(r->b, from, &op->operand_count));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, op->operand_count, &op->operands));
  for (size_t i = 0; i < op->operand_count; i++) {
    size_t number;
    const uint8_t *at = from->at;
    TS_TRY(bytecode_index(r->b, from, r->scope->count, "value", &number));
    op->operands[i] = r->scope->names[number];
    if (!op->operands[i].text)
      return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "a value is used before it is defined");
    op->operands[i].column = (size_t)(at - r->b->data);
  }
  return TS_SUCCESS;
}

/* In what order uses are listed has no meaning here. */
static ts_status skip_use_orders(const op_reader *r, bytecode_bytes *from, size_t values) {
  uint64_t lists = 1, count, number;
  bool flag;
  if (values > 1) TS_TRY(bytecode_varint(r->b, from, &lists));
  for (uint64_t i = 0; i < lists; i++) {
    if (values > 1) TS_TRY(bytecode_varint(r->b, from, &number));
    TS_TRY(bytecode_flagged(r->b, from, &count, &flag));
    for (uint64_t j = 0; j < count; j++) TS_TRY(bytecode_varint(r->b, from, &number));
  }
  return TS_SUCCESS;
}

/* A module has no return; a function may have no body, and is refused then. */
static bool ends_well(const mlir_op *op, const mlir_region *region) {
  if (mlir_token_is(op->name, "builtin.module")) return true;
  if (region->op_count == 0) return mlir_token_is(op->name, "func.func");
  const mlir_token last = region->ops[region->op_count - 1].name;
  return last.length > 7 && memcmp(last.text + last.length - 7, ".return", 7) == 0;
}

static ts_status read_regions(const op_reader *r, bytecode_bytes *from, mlir_op *op) {
  uint64_t count;
  bool isolated;
  TS_TRY(bytecode_flagged(r->b, from, &count, &isolated));
  if (count > (uint64_t)(from->end - from->at))
    return bytecode_error(r->b, from->at, TS_INVALID_ARGUMENT, "an op has more regions than there are bytes");
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, (size_t)count, &op->regions));
  op->region_count = (size_t)count;
  scope own = {0};
  op_reader inner = *r;
  bytecode_bytes section, *bytes = from;
  uint8_t id;
  inner.depth++;
  if (isolated) inner.scope = &own;
  if (isolated && r->b->version >= WITH_LAZY_REGIONS) {
    TS_TRY(bytecode_section(r->b, from, &id, &section));
    bytes = &section;
  }
  for (size_t i = 0; i < op->region_count; i++) {
    const uint8_t *at = bytes->at;
    TS_TRY(read_region(&inner, bytes, &op->regions[i]));
    if (!ends_well(op, &op->regions[i]))
      return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "a region does not end with a return");
  }
  return TS_SUCCESS;
}

static ts_status read_op(block_reader *k, bytecode_bytes *from, mlir_op *op) {
  const op_reader *r = k->r;
  size_t index, room = 0;
  uint8_t parts;
  uint64_t place;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_index(r->b, from, r->b->op_count, "op", &index));
  const bytecode_op_name *name = &r->b->ops[index];
  op->name = name->name;
  op->name.column = (size_t)(at - r->b->data);
  TS_TRY(bytecode_byte(r->b, from, &parts));
  TS_TRY(bytecode_varint(r->b, from, &place));
  op->location = bytecode_location(r->b, place);
  if (parts & HAS_ATTRS) TS_TRY(read_dict(r, from, op, &room));
  if (parts & HAS_PROPERTIES) TS_TRY(read_op_properties(r, name, from, op, &room));
  if (parts & HAS_RESULTS) TS_TRY(read_results(k, from, op));
  if (parts & HAS_OPERANDS) TS_TRY(read_operands(r, from, op));
  if (parts & HAS_SUCCESSORS)
    return bytecode_error(r->b, at, TS_UNIMPLEMENTED, "ops that lead to blocks cannot be read");
  if (parts & HAS_USE_ORDERS) TS_TRY(skip_use_orders(r, from, op->types.count));
  if (parts & HAS_REGIONS) TS_TRY(read_regions(r, from, op));
  return bytecode_complete_op(r->b, name, op);
}

/* ---- regions */

static ts_status read_params(block_reader *k, bytecode_bytes *from, mlir_region *out) {
  const op_reader *r = k->r;
  uint8_t orders = 0;
  TS_TRY(bytecode_count(r->b, from, &out->param_count));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, out->param_count, &out->params));
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, out->param_count, &out->param_types.data));
  if (r->b->with_locations) TS_TRY(TS_ARENA_ARRAY(r->b->arena, out->param_count, &out->param_locations));
  out->param_types.count = out->param_count;
  for (size_t i = 0; i < out->param_count; i++) {
    const uint8_t *at = from->at;
    uint64_t number, place;
    bool placed = true;
    const bytecode_type *type;
    TS_TRY(bytecode_flagged_since(r->b, from, WITHOUT_UNKNOWN_PLACES, &number, &placed));
    if (placed) TS_TRY(bytecode_varint(r->b, from, &place));
    if (placed && out->param_locations) out->param_locations[i] = bytecode_location(r->b, place);
    if (number >= r->b->type_count) return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "a parameter has no type");
    TS_TRY(bytecode_type_at(r->b, (size_t)number, &type));
    if (type->kind == BYTECODE_TENSOR || type->kind == BYTECODE_TUPLE) out->param_types.data[i] = type->type;
    TS_TRY(define(r, at, &k->next, k->limit, &out->params[i]));
  }
  if (r->b->version < WITH_USE_ORDERS) return TS_SUCCESS;
  TS_TRY(bytecode_byte(r->b, from, &orders));
  return orders ? skip_use_orders(r, from, out->param_count) : TS_SUCCESS;
}

static ts_status read_block(block_reader *k, bytecode_bytes *from, mlir_region *out) {
  const op_reader *r = k->r;
  uint64_t count;
  bool has_params;
  TS_TRY(bytecode_flagged(r->b, from, &count, &has_params));
  if (has_params) TS_TRY(read_params(k, from, out));
  if (count > (uint64_t)(from->end - from->at))
    return bytecode_error(r->b, from->at, TS_INVALID_ARGUMENT, "a region has more ops than there are bytes");
  size_t room = 0;
  for (uint64_t i = 0; i < count; i++) { /* the list grows: an op of the tree is larger than its bytes */
    mlir_op op = {0};
    TS_TRY(read_op(k, from, &op));
    MLIR_PUSH(r->b, out->ops, out->op_count, room, op);
  }
  return TS_SUCCESS;
}

typedef struct region_call {
  const op_reader *r;
  bytecode_bytes *from;
  mlir_region *out;
} region_call;

static ts_status region_on_stack(void *context) {
  const region_call *c = context;
  const op_reader *r = c->r;
  uint64_t blocks, values;
  const uint8_t *at = c->from->at;
  TS_TRY(bytecode_varint(r->b, c->from, &blocks));
  if (blocks == 0) return TS_SUCCESS;
  if (blocks > 1) return bytecode_error(r->b, at, TS_UNIMPLEMENTED, "regions of several blocks cannot be read");
  TS_TRY(bytecode_varint(r->b, c->from, &values));
  block_reader k = {.r = r, .next = r->scope->count};
  TS_TRY(open_values(r, at, values));
  k.limit = r->scope->count;
  TS_TRY(read_block(&k, c->from, c->out));
  r->scope->count -= (size_t)values;
  return TS_SUCCESS;
}

static ts_status read_region(const op_reader *r, bytecode_bytes *from, mlir_region *out) {
  if (r->depth > MLIR_MAX_REGIONS + 1) /* the module is a region, too */
    return bytecode_error(r->b, from->at, TS_INVALID_ARGUMENT, "regions are nested too deep");
  return ts_deep_call(MLIR_REGION_LEVELS * (size_t)r->depth, region_on_stack, &(region_call){r, from, out});
}

/* ---- functions */

static ts_status to_func(bytecode *b, const mlir_op *op, mlir_func *out) {
  const mlir_attr *type = mlir_op_attr(op, "function_type");
  const bytecode_type *signature;
  const uint8_t *at = b->data + op->name.column;
  if (!type || type->kind != MLIR_ATTR_TYPE)
    return bytecode_error(b, at, TS_INVALID_ARGUMENT, "a function lacks its type");
  TS_TRY(bytecode_type_at(b, type->type_number, &signature));
  if (signature->kind != BYTECODE_FUNCTION)
    return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the type of a function is of another kind");
  return mlir_func_of(op, &signature->arguments, &signature->results, out);
}

static ts_status to_funcs(bytecode *b, const mlir_op *module, mlir_module *out) {
  const mlir_region *body = &module->regions[0];
  TS_TRY(TS_ARENA_ARRAY(b->arena, body->op_count, &out->funcs));
  TS_TRY(TS_ARENA_ARRAY(b->arena, body->op_count, &out->meshes));
  out->attrs = (mlir_attr){.kind = MLIR_ATTR_DICT, .items = module->attrs, .count = module->attr_count};
  for (size_t i = 0; i < body->op_count; i++) {
    const mlir_op *op = &body->ops[i];
    if (mlir_token_is(op->name, "func.func")) TS_TRY(to_func(b, op, &out->funcs[out->count++]));
    if (mlir_token_is(op->name, "sdy.mesh")) TS_TRY(mlir_mesh_of(op, &out->meshes[out->mesh_count++]));
    if (mlir_token_is(op->name, "builtin.module"))
      return bytecode_error(b, b->data + op->name.column, TS_UNIMPLEMENTED, "a module in a module cannot be read");
  }
  if (out->count) return TS_SUCCESS;
  return bytecode_error(b, b->data, TS_INVALID_ARGUMENT, "the module has no function");
}

ts_status mlir_read_bytecode(ts_arena *arena, const void *data, size_t size, bool with_locations, mlir_module *out) {
  bytecode b = {.arena = arena, .data = data, .size = size, .with_locations = with_locations};
  scope outer = {0};
  size_t made = 0;
  mlir_region top = {0};
  *out = (mlir_module){0};
  TS_TRY(bytecode_open(&b));
  TS_TRY(bytecode_read_locations(&b));
  block_reader k = {.r = &(op_reader){&b, &outer, &made, 0}};
  TS_TRY(read_block(&k, &b.ir, &top));
  if (top.op_count != 1 || !mlir_token_is(top.ops[0].name, "builtin.module") || top.ops[0].region_count != 1)
    return bytecode_error(&b, b.data, TS_INVALID_ARGUMENT, "expected one module");
  return to_funcs(&b, &top.ops[0], out);
}
