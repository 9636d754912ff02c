#include "base/alloc.h"
#include "ir/syntax.h"
#include "stablehlo/mlir_parser.h"

#include <string.h>

ts_status mlir_grow(ts_arena *arena, void **list, size_t *capacity, size_t element) {
  size_t wanted = *capacity ? 2 * *capacity : 4;
  void *grown;
  TS_TRY(ts_arena_alloc_array(arena, wanted, element, &grown));
  if (*capacity) memcpy(grown, *list, *capacity * element);
  *list = grown;
  *capacity = wanted;
  return TS_SUCCESS;
}

/* ---- locations */

static ts_status skip_parentheses(mlir_parser *p) {
  size_t open = 0;
  do {
    if (mlir_at(p, "(")) open++;
    if (mlir_at(p, ")")) open--;
    if (p->token.kind == MLIR_END) return mlir_unexpected(p, "')'");
    mlir_advance(p);
  } while (open > 0);
  return TS_SUCCESS;
}

ts_status mlir_skip_location(mlir_parser *p) {
  if (!mlir_at(p, "loc")) return TS_SUCCESS;
  mlir_advance(p);
  if (!mlir_at(p, "(")) return mlir_unexpected(p, "'('");
  return skip_parentheses(p);
}

/* ---- attributes */

/* "0:4:1" as a list of integers, after the first of them. */
static ts_status parse_range(mlir_parser *p, mlir_attr *out) {
  size_t capacity = 0;
  mlir_attr range = {.kind = MLIR_ATTR_LIST, .token = out->token}, item = *out;
  MLIR_PUSH(p, range.items, range.count, capacity, item);
  while (mlir_accept(p, ":")) {
    TS_TRY(mlir_parse_attr(p, &item));
    MLIR_PUSH(p, range.items, range.count, capacity, item);
  }
  *out = range;
  return TS_SUCCESS;
}

/* Items up to a closing character. */
static ts_status parse_list(mlir_parser *p, const char *close, mlir_attr *out) {
  size_t capacity = 0;
  out->kind = MLIR_ATTR_LIST;
  while (!mlir_accept(p, close)) {
    mlir_attr item;
    TS_TRY(mlir_parse_attr(p, &item));
    if (mlir_at(p, ":")) TS_TRY(parse_range(p, &item));
    MLIR_PUSH(p, out->items, out->count, capacity, item);
    if (!mlir_accept(p, ",") && !mlir_at(p, close))
      return mlir_error(TS_INVALID_ARGUMENT, p->token, "expected ',' or '%s'", close);
  }
  return TS_SUCCESS;
}

/* Lists that "x" and "->" join: [1] x [0], and the dims of convolutions. After the first one. */
static ts_status parse_joined(mlir_parser *p, mlir_attr *out) {
  size_t capacity = 0;
  mlir_attr all = {.kind = MLIR_ATTR_LIST, .token = out->token};
  if (!mlir_at(p, "x")) return TS_SUCCESS;
  MLIR_PUSH(p, all.items, all.count, capacity, *out);
  while (mlir_accept(p, "x") || mlir_accept(p, "->")) {
    mlir_attr next = {.token = p->token};
    TS_TRY(mlir_expect(p, "["));
    TS_TRY(parse_list(p, "]", &next));
    MLIR_PUSH(p, all.items, all.count, capacity, next);
  }
  *out = all;
  return TS_SUCCESS;
}

ts_status mlir_parse_dict(mlir_parser *p, const char *close, mlir_attr *out) {
  size_t capacity = 0;
  out->kind = MLIR_ATTR_DICT;
  if (p->depth++ >= MLIR_MAX_DEPTH) return mlir_error(TS_INVALID_ARGUMENT, p->token, "attributes are nested too deep");
  while (!mlir_accept(p, close)) {
    mlir_attr item = {.kind = MLIR_ATTR_UNIT, .token = p->token};
    mlir_token name = p->token;
    if (name.kind != MLIR_WORD && name.kind != MLIR_STRING)
      return mlir_error(TS_INVALID_ARGUMENT, name, "expected the name of an attribute");
    mlir_advance(p);
    if (mlir_accept(p, "=")) TS_TRY(mlir_parse_attr(p, &item));
    item.name = name;
    MLIR_PUSH(p, out->items, out->count, capacity, item);
    if (!mlir_accept(p, ",") && !mlir_at(p, close))
      return mlir_error(TS_INVALID_ARGUMENT, p->token, "expected ',' or '%s'", close);
  }
  p->depth--;
  return TS_SUCCESS;
}

/* dense<...> : type. The contents are read when their type is known. */
static ts_status parse_dense(mlir_parser *p, mlir_attr *out) {
  int open = 1;
  TS_TRY(mlir_expect(p, "<"));
  out->kind = MLIR_ATTR_DENSE;
  out->token = p->token;
  out->end = p->lexer.end;
  for (;; mlir_advance(p)) {
    open += mlir_at(p, "<") - mlir_at(p, ">");
    if (open == 0) break;
    if (p->token.kind == MLIR_END) return mlir_unexpected(p, "'>'");
  }
  mlir_advance(p);
  TS_TRY(mlir_expect(p, ":"));
  TS_TRY(mlir_parse_type(p, &out->type));
  if (!out->type.shape) return mlir_error(TS_INVALID_ARGUMENT, out->token, "a constant has the type of a tensor");
  if (mlir_shape_is_known(out->type.shape)) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, out->token, "the sizes of a constant are not known");
}

/* array<i64: 1, 2> */
static ts_status parse_array(mlir_parser *p, mlir_attr *out) {
  TS_TRY(mlir_expect(p, "<"));
  mlir_advance(p); /* the type */
  if (mlir_accept(p, ">")) {
    out->kind = MLIR_ATTR_LIST;
    return TS_SUCCESS;
  }
  TS_TRY(mlir_expect(p, ":"));
  return parse_list(p, ">", out);
}

ts_status mlir_skip_angles(mlir_parser *p, mlir_attr *out) {
  int64_t open = 1;
  for (; open > 0; mlir_advance(p)) {
    open += mlir_at(p, "<") - mlir_at(p, ">");
    if (p->token.kind == MLIR_END) return mlir_unexpected(p, "'>'");
  }
  out->kind = MLIR_ATTR_UNIT;
  return TS_SUCCESS;
}

/* #stablehlo<precision HIGHEST>, #stablehlo.gather<offset_dims = [1], ...>, #stablehlo.conv<[b, 0, f]x...> */
static ts_status parse_dialect(mlir_parser *p, mlir_attr *out) {
  const char *dialect = p->token.text;
  const bool is_sdy = p->token.length >= 3 && memcmp(dialect, "sdy", 3) == 0;
  bool known = (p->token.length >= 9 && memcmp(dialect, "stablehlo", 9) == 0) ||
               (p->token.length >= 4 && memcmp(dialect, "chlo", 4) == 0);
  mlir_advance(p);
  if (is_sdy && mlir_accept(p, "<")) return mlir_parse_sdy(p, out);
  if (!known && mlir_accept(p, "<")) return mlir_skip_angles(p, out);
  if (!mlir_accept(p, "<")) { /* an alias, of a location for example: it has no meaning here */
    out->kind = MLIR_ATTR_UNIT;
    return TS_SUCCESS;
  }
  if (mlir_at(p, "[")) {
    TS_TRY(mlir_parse_attr(p, out));
    return mlir_expect(p, ">");
  }
  mlir_lexer ahead = p->lexer;
  if (mlir_token_is(mlir_lexer_next(&ahead), "=") || mlir_at(p, ">")) return mlir_parse_dict(p, ">", out);
  mlir_advance(p); /* the name of the enumeration */
  out->kind = MLIR_ATTR_WORD;
  out->token = p->token;
  mlir_advance(p);
  return mlir_expect(p, ">");
}

/* A number, with its type where one follows. */
static ts_status parse_number(mlir_parser *p, mlir_attr *out) {
  out->kind = MLIR_ATTR_NUMBER;
  mlir_advance(p);
  mlir_lexer ahead = p->lexer;
  if (!mlir_at(p, ":")) return TS_SUCCESS;
  mlir_token type = mlir_lexer_next(&ahead);
  if (type.kind != MLIR_WORD || mlir_token_is(type, "tensor")) return TS_SUCCESS; /* the type of the op */
  mlir_advance(p);
  mlir_advance(p);
  return TS_SUCCESS;
}

/* (tensor<f32>, tensor<2xf32>) -> tensor<f32> */
static ts_status parse_signature(mlir_parser *p, mlir_attr *out) {
  mlir_types *sides;
  TS_TRY(TS_ARENA_ARRAY(p->arena, 2, &sides));
  TS_TRY(TS_ARENA_ARRAY(p->arena, 2, &out->items));
  out->kind = MLIR_ATTR_FUNCTION;
  out->count = 2;
  TS_TRY(mlir_parse_types(p, &sides[0]));
  TS_TRY(mlir_expect(p, "->"));
  TS_TRY(mlir_parse_types(p, &sides[1]));
  for (size_t i = 0; i < out->count; i++)
    out->items[i] = (mlir_attr){.kind = MLIR_ATTR_UNIT, .token = out->token, .type.parts = &sides[i]};
  return TS_SUCCESS;
}

static ts_status parse_brackets(mlir_parser *p, mlir_attr *out) {
  if (mlir_at(p, "(")) return parse_signature(p, out);
  if (mlir_accept(p, "<"))
    return mlir_skip_angles(p, out); /* of a dialect that the op knows: what algorithm a dot uses */
  if (mlir_accept(p, "{")) return mlir_parse_dict(p, "}", out);
  if (!mlir_accept(p, "[")) return mlir_unexpected(p, "an attribute");
  TS_TRY(parse_list(p, "]", out));
  return parse_joined(p, out);
}

static ts_status parse_attr(mlir_parser *p, mlir_attr *out) {
  switch (p->token.kind) {
  case MLIR_NUMBER: return parse_number(p, out);
  case MLIR_HASH: return parse_dialect(p, out);
  case MLIR_PUNCT: return parse_brackets(p, out);
  case MLIR_END:
  case MLIR_VALUE:
  case MLIR_BLOCK:
  case MLIR_ARROW: return mlir_unexpected(p, "an attribute");
  case MLIR_STRING:
  case MLIR_SYMBOL:
  case MLIR_WORD: break;
  }
  if (mlir_at(p, "tensor")) return mlir_parse_type(p, &out->type);
  if (mlir_accept(p, "dense")) return parse_dense(p, out);
  if (mlir_accept(p, "array")) return parse_array(p, out);
  if (mlir_at(p, "dense_resource") || mlir_at(p, "affine_map"))
    return mlir_error(TS_UNIMPLEMENTED, p->token, "such an attribute cannot be read");
  out->kind = MLIR_ATTR_WORD;
  mlir_advance(p);
  return TS_SUCCESS;
}

ts_status mlir_parse_attr(mlir_parser *p, mlir_attr *out) {
  *out = (mlir_attr){.kind = MLIR_ATTR_UNIT, .token = p->token};
  if (p->depth++ >= MLIR_MAX_DEPTH) return mlir_error(TS_INVALID_ARGUMENT, p->token, "attributes are nested too deep");
  TS_TRY(parse_attr(p, out));
  p->depth--;
  return TS_SUCCESS;
}

/* ---- what attributes say */

const mlir_attr *mlir_find_attr(const mlir_attr *attrs, size_t count, const char *name) {
  for (size_t i = 0; i < count; i++)
    if (attrs[i].name.length && mlir_token_is(attrs[i].name, name)) return &attrs[i];
  return NULL;
}

ts_status mlir_attr_int(const mlir_attr *attr, int64_t *out) {
  ts_scalar value;
  if (attr->kind == MLIR_ATTR_WORD && (mlir_token_is(attr->token, "true") || mlir_token_is(attr->token, "false"))) {
    *out = mlir_token_is(attr->token, "true");
    return TS_SUCCESS;
  }
  if (attr->kind != MLIR_ATTR_NUMBER || !ts_scalar_parse(TS_S64, attr->token.text, attr->token.length, &value))
    return mlir_error(TS_INVALID_ARGUMENT, attr->token, "expected an integer");
  *out = value.s64;
  return TS_SUCCESS;
}

bool mlir_attr_float(const mlir_attr *attr, double *out) {
  ts_scalar value;
  if (attr->kind != MLIR_ATTR_NUMBER || !ts_scalar_parse(TS_F64, attr->token.text, attr->token.length, &value))
    return false;
  *out = value.f64;
  return true;
}

static ts_status push_int(const mlir_attr *attr, ts_dims *out) {
  if (out->rank == TS_MAX_RANK)
    return mlir_error(TS_UNIMPLEMENTED, attr->token, "expected at most %d integers", TS_MAX_RANK);
  return mlir_attr_int(attr, &out->dims[out->rank++]);
}

static ts_status dense_ints(const mlir_attr *attr, ts_dims *out) {
  int64_t elements = ts_shape_elements(attr->type.shape), values[TS_MAX_RANK];
  const ts_dtype type = attr->type.dtype;
  bool splat = mlir_dense_is_splat(attr);
  if (!ts_dtype_is_integer(type) || elements > TS_MAX_RANK)
    return mlir_error(TS_UNIMPLEMENTED, attr->token, "expected at most %d integers", TS_MAX_RANK);
  TS_TRY(mlir_dense_read(attr, values));
  for (int64_t i = 0; i < elements; i++) {
    const char *at = (const char *)values + (splat ? 0 : i) * (int64_t)ts_dtype_size(type);
    out->dims[i] = ts_scalar_to_s64(type, ts_scalar_load(type, at));
  }
  out->rank = (int32_t)elements;
  return TS_SUCCESS;
}

ts_status mlir_attr_ints(const mlir_attr *attr, ts_dims *out) {
  out->rank = 0;
  if (attr->kind == MLIR_ATTR_DENSE) return dense_ints(attr, out);
  if (attr->kind != MLIR_ATTR_LIST) return push_int(attr, out);
  for (size_t i = 0; i < attr->count; i++) {
    const mlir_attr *item = &attr->items[i];
    if (item->kind != MLIR_ATTR_LIST) TS_TRY(push_int(item, out));
    for (size_t j = 0; item->kind == MLIR_ATTR_LIST && j < item->count; j++) TS_TRY(push_int(&item->items[j], out));
  }
  return TS_SUCCESS;
}

/* ---- constants */

typedef struct dense {
  mlir_lexer lexer;
  mlir_type type;
  char *out;
  int64_t elements, done;
} dense;

static bool parse_bits(mlir_token token, ts_dtype type, ts_scalar *out) {
  if (mlir_token_is(token, "true") || mlir_token_is(token, "false")) {
    *out = ts_scalar_from_s64(type, mlir_token_is(token, "true"));
    return !ts_dtype_is_float(type);
  }
  return token.kind == MLIR_NUMBER && ts_scalar_parse(type, token.text, token.length, out);
}

/* (1.0,2.0): after the parenthesis */
static ts_status parse_complex(dense *d, ts_scalar *out) {
  ts_scalar parts[2];
  ts_dtype part = ts_dtype_part(d->type.dtype);
  for (int i = 0; i < 2; i++) {
    mlir_token token = mlir_lexer_next(&d->lexer);
    if (!parse_bits(token, part, &parts[i])) return mlir_error(TS_INVALID_ARGUMENT, token, "expected a number");
    token = mlir_lexer_next(&d->lexer);
    if (!mlir_token_is(token, i ? ")" : ","))
      return mlir_error(TS_INVALID_ARGUMENT, token, "expected a complex number");
  }
  *out = ts_scalar_complex(d->type.dtype, ts_scalar_to_f64(part, parts[0]), ts_scalar_to_f64(part, parts[1]));
  return TS_SUCCESS;
}

static ts_status put_element(dense *d, mlir_token token) {
  ts_scalar value;
  if (d->done == d->elements)
    return mlir_error(TS_INVALID_ARGUMENT, token, "a constant has more elements than its type");
  if (mlir_token_is(token, "(") && ts_dtype_is_complex(d->type.dtype))
    TS_TRY(parse_complex(d, &value));
  else if (!parse_bits(token, d->type.dtype, &value))
    return mlir_error(TS_INVALID_ARGUMENT, token, "expected a number of type %s", ts_dtype_name(d->type.dtype));
  ts_scalar_store(d->type.dtype, value, d->out + d->done++ * (int64_t)ts_dtype_size(d->type.dtype));
  return TS_SUCCESS;
}

/* "0x...": the bytes in order, or the bytes of one element. Older writers pack booleans into bits, the lowest first. */
static ts_status read_hex(const dense *d, mlir_token token, bool splat) {
  size_t size = ts_dtype_size(d->type.dtype), bytes = splat ? size : (size_t)d->elements * size;
  const bool bits = d->type.is_bool && !splat && token.length - 2 != 2 * bytes;
  if (bits) bytes = ((size_t)d->elements + 7) / 8;
  if (token.length < 2 || memcmp(token.text, "0x", 2) != 0 || token.length - 2 != 2 * bytes)
    return mlir_error(TS_INVALID_ARGUMENT, token, "expected %zu bytes as hexadecimal digits", bytes);
  bool read = bits || ts_syntax_parse_hex(token.text + 2, bytes, d->out);
  for (size_t i = 0; bits && read && i < bytes; i++) {
    uint8_t byte = 0;
    read = ts_syntax_parse_hex(token.text + 2 + 2 * i, 1, &byte);
    for (size_t e = 8 * i; e < 8 * i + 8 && e < (size_t)d->elements; e++) d->out[e] = byte >> (e - 8 * i) & 1;
  }
  return read ? TS_SUCCESS : mlir_error(TS_INVALID_ARGUMENT, token, "expected hexadecimal digits");
}

/* Lists of rows are as deep as the shape has dims; what matters is the order. */
static ts_status read_rows(dense *d) {
  int open = 1;
  while (open > 0) {
    mlir_token token = mlir_lexer_next(&d->lexer);
    if (mlir_token_is(token, "["))
      open++;
    else if (mlir_token_is(token, "]"))
      open--;
    else if (token.kind == MLIR_END)
      return mlir_error(TS_INVALID_ARGUMENT, token, "expected ']'");
    else if (!mlir_token_is(token, ","))
      TS_TRY(put_element(d, token));
  }
  return TS_SUCCESS;
}

/* How the bytes of a constant stand for its elements. Booleans may be packed into bits, the lowest first; then bytes
 * with all bits or none are one element, repeated. */
typedef enum bytes_form { BYTES_WRONG, BYTES_SPLAT, BYTES_BITS, BYTES_PLAIN } bytes_form;

static bytes_form form_of(const mlir_attr *attr) {
  const size_t size = ts_dtype_size(attr->type.dtype), elements = (size_t)ts_shape_elements(attr->type.shape);
  const size_t given = attr->byte_count, packed = elements / 8 + (elements % 8 != 0);
  if (attr->type.is_bool && given == 1 && elements != 1 &&
      (packed != 1 || attr->bytes[0] == 0 || attr->bytes[0] == 0xff))
    return BYTES_SPLAT;
  if (attr->type.is_bool && given == packed && given != elements) return BYTES_BITS;
  if (given % size == 0 && given / size == elements) return BYTES_PLAIN;
  return given == size ? BYTES_SPLAT : BYTES_WRONG;
}

ts_status mlir_check_bytes(const mlir_attr *attr) {
  if (!mlir_shape_is_known(attr->type.shape))
    return mlir_error(TS_INVALID_ARGUMENT, attr->token, "the sizes of a constant are not known");
  if (form_of(attr) != BYTES_WRONG) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a constant of type %s has %zu bytes",
                    TS_SHAPE_STR(attr->type.dtype, attr->type.shape), attr->byte_count);
}

/* Booleans are 0 or 1. Integers of less than 8 bits have a byte, whose upper bits have no meaning. */
static ts_status read_bytes(const mlir_attr *attr, void *out) {
  const bytes_form form = form_of(attr);
  const ts_dtype type = attr->type.dtype;
  const size_t elements = form == BYTES_SPLAT ? 1 : (size_t)ts_shape_elements(attr->type.shape);
  const int bits = ts_dtype_bits(type);
  if (!attr->type.is_bool && bits >= 8) {
    if (attr->byte_count) memcpy(out, attr->bytes, attr->byte_count);
    return TS_SUCCESS;
  }
  for (size_t i = 0; i < elements; i++) {
    const uint8_t byte = attr->bytes[form == BYTES_BITS ? i / 8 : i];
    const int bit = form == BYTES_BITS ? byte >> (i % 8) & 1 : byte != 0;
    const int64_t number =
        ts_dtype_is_unsigned(type) ? byte & ((1 << bits) - 1) : (int8_t)(byte << (8 - bits)) >> (8 - bits);
    ts_scalar_store(type, ts_scalar_from_s64(type, attr->type.is_bool ? bit : number),
                    (char *)out + i * ts_dtype_size(type));
  }
  return TS_SUCCESS;
}

/* Written as one element, which stands for all. */
static bool is_one(const mlir_attr *attr) {
  if (attr->token.kind == MLIR_STRING)
    return attr->token.length == 2 + 2 * ts_dtype_size(attr->type.dtype) && ts_shape_elements(attr->type.shape) != 1;
  return !mlir_token_is(attr->token, "[") && !mlir_token_is(attr->token, ">");
}

bool mlir_dense_is_splat(const mlir_attr *attr) {
  if (ts_shape_elements(attr->type.shape) == 1) return true;
  return attr->bytes ? form_of(attr) == BYTES_SPLAT : is_one(attr);
}

ts_status mlir_dense_read(const mlir_attr *attr, void *out) {
  dense d = {.type = attr->type, .out = out, .elements = ts_shape_elements(attr->type.shape)};
  const bool splat = is_one(attr);
  if (attr->bytes) return read_bytes(attr, out);
  d.lexer = (mlir_lexer){.at = attr->token.text, .end = attr->end, .line = attr->token.line};
  d.lexer.line_start = attr->token.text - (attr->token.column - 1);
  if (splat) d.elements = 1;
  if (attr->token.kind == MLIR_STRING) return read_hex(&d, attr->token, splat);
  mlir_token token = mlir_lexer_next(&d.lexer);
  if (splat) return put_element(&d, token);
  if (mlir_token_is(token, "[")) TS_TRY(read_rows(&d)); /* else there are none: dense<> */
  if (d.done == d.elements) return TS_SUCCESS;
  return mlir_error(TS_INVALID_ARGUMENT, attr->token, "a constant has %lld elements, and its type has %lld",
                    (long long)d.done, (long long)d.elements);
}
