/* Types of texts: tensors of numbers, of quantised numbers and of complex ones, tuples, tokens. */
#include "ir/syntax.h"
#include "stablehlo/mlir_parser.h"

#include <string.h>

static const struct {
  const char *name;
  ts_dtype dtype;
} element_types[] = {
    {"f32", TS_F32},   {"f64", TS_F64},           {"f16", TS_F16},   {"bf16", TS_BF16}, {"i32", TS_S32},
    {"i64", TS_S64},   {"i16", TS_S16},           {"i8", TS_S8},     {"i4", TS_S4},     {"i2", TS_S2},
    {"si32", TS_S32},  {"si64", TS_S64},          {"si16", TS_S16},  {"si8", TS_S8},    {"ui32", TS_U32},
    {"ui64", TS_U64},  {"ui16", TS_U16},          {"ui8", TS_U8},    {"ui4", TS_U4},    {"ui2", TS_U2},
    {"f8E5M2", TS_F8}, {"f8E4M3FN", TS_F8E4M3FN}, {"index", TS_S64},
};

bool mlir_element_type(mlir_token name, mlir_type *out) {
  const bool is_bool = mlir_token_is(name, "i1");
  *out = (mlir_type){.dtype = TS_U8, .is_bool = is_bool};
  for (size_t i = 0; i < sizeof element_types / sizeof *element_types; i++)
    if (mlir_token_is(name, element_types[i].name)) {
      out->dtype = element_types[i].dtype;
      return true;
    }
  return is_bool;
}

static ts_status element_type(mlir_token at, mlir_type *out) {
  return mlir_element_type(at, out) ? TS_SUCCESS : mlir_error(TS_UNIMPLEMENTED, at, "no tensor has such elements");
}

/* complex<f32>: after the word complex */
static ts_status complex_type(mlir_parser *p, mlir_type *out) {
  TS_TRY(mlir_expect(p, "<"));
  if (mlir_accept(p, "f32"))
    *out = (mlir_type){.dtype = TS_C64};
  else if (mlir_accept(p, "f64"))
    *out = (mlir_type){.dtype = TS_C128};
  else
    return mlir_error(TS_UNIMPLEMENTED, p->token, "expected f32 or f64");
  return mlir_expect(p, ">");
}

/* The sizes in front of the element type: "2x3x". They are not tokens, since "2x3xf32" would be one word and a number.
 */
static ts_status parse_sizes(mlir_parser *p, ts_shape *out) {
  mlir_lexer *lexer = &p->lexer;
  out->rank = 0;
  for (;;) {
    const char *at = lexer->at;
    int64_t size = 0;
    const bool any = at < lexer->end && *at == '?';
    if (any) at++;
    while (!any && at < lexer->end && *at >= '0' && *at <= '9')
      if (!ts_mul_i64(size, 10, &size) || !ts_add_i64(size, *at++ - '0', &size))
        return mlir_error(TS_OUT_OF_RANGE, p->token, "a size is too large");
    if (at == lexer->at || at == lexer->end || *at != 'x') return TS_SUCCESS;
    if (out->rank == TS_MAX_RANK)
      return mlir_error(TS_UNIMPLEMENTED, p->token, "a tensor has at most %d dims", TS_MAX_RANK);
    out->dims[out->rank++] = any ? MLIR_ANY_SIZE : size;
    lexer->at = at + 1;
  }
}

bool mlir_shape_is_known(const ts_shape *shape) {
  for (int32_t d = 0; d < shape->rank; d++)
    if (shape->dims[d] == MLIR_ANY_SIZE) return false;
  return true;
}

bool mlir_shape_admits(const ts_shape *type, const ts_shape *shape) {
  if (type->rank != shape->rank) return false;
  for (int32_t d = 0; d < type->rank; d++)
    if (type->dims[d] != MLIR_ANY_SIZE && type->dims[d] != shape->dims[d]) return false;
  return true;
}

ts_status mlir_shape_check(const ts_shape *shape, ts_dtype type) {
  ts_shape least;
  ts_shape_copy(&least, shape);
  for (int32_t d = 0; d < least.rank; d++)
    if (least.dims[d] == MLIR_ANY_SIZE) least.dims[d] = 1;
  return ts_shape_check(&least, type);
}

/* A number that stands for an integer's end, with its sign. */
static ts_status parse_int(mlir_parser *p, int64_t *out) {
  TS_TRY(mlir_attr_int(&(mlir_attr){.kind = MLIR_ATTR_NUMBER, .token = p->token}, out));
  mlir_advance(p);
  return TS_SUCCESS;
}

/* i8, u8, i8<-127:127>: what integers there are */
static ts_status quant_storage(mlir_parser *p, mlir_quant *out, mlir_type *type) {
  const mlir_token name = p->token;
  const bool is_unsigned = name.length > 1 && name.text[0] == 'u' && name.text[1] != 'i';
  char text[16] = "ui";
  if (is_unsigned && name.length < sizeof text - 1) memcpy(text + 2, name.text + 1, name.length - 1);
  const mlir_token known = {.kind = MLIR_WORD, .text = text, .length = name.length + 1};
  if (!mlir_element_type(is_unsigned && name.length < sizeof text - 1 ? known : name, type) || type->is_bool ||
      !ts_dtype_is_integer(type->dtype) || ts_dtype_bits(type->dtype) > 32)
    return mlir_error(TS_UNIMPLEMENTED, name, "expected integers of at most 32 bits");
  const int bits = ts_dtype_bits(type->dtype);
  const bool no_sign = ts_dtype_is_unsigned(type->dtype);
  out->low = no_sign ? 0 : -(INT64_C(1) << (bits - 1));
  out->high = (INT64_C(1) << (no_sign ? bits : bits - 1)) - 1;
  mlir_advance(p);
  if (!mlir_accept(p, "<")) return TS_SUCCESS;
  TS_TRY(parse_int(p, &out->low));
  TS_TRY(mlir_expect(p, ":"));
  TS_TRY(parse_int(p, &out->high));
  if (out->low > out->high) return mlir_error(TS_INVALID_ARGUMENT, name, "expected a range of integers");
  return mlir_expect(p, ">");
}

typedef struct quant_lists {
  double *scales;
  int64_t *zero_points;
  size_t scale_room, point_room, points;
} quant_lists;

/* 0.5:-20, or 0.5 */
static ts_status quant_scale(mlir_parser *p, mlir_quant *out, quant_lists *lists) {
  ts_scalar scale;
  int64_t zero_point = 0;
  const mlir_token at = p->token;
  if (at.kind != MLIR_NUMBER || !ts_scalar_parse(TS_F64, at.text, at.length, &scale) || !(scale.f64 > 0))
    return mlir_error(TS_INVALID_ARGUMENT, at, "expected a scale");
  mlir_advance(p);
  if (mlir_accept(p, ":")) TS_TRY(parse_int(p, &zero_point));
  if (zero_point < out->low || zero_point > out->high)
    return mlir_error(TS_INVALID_ARGUMENT, at, "a zero point is no integer of the type");
  MLIR_PUSH(p, lists->scales, out->count, lists->scale_room, scale.f64);
  MLIR_PUSH(p, lists->zero_points, lists->points, lists->point_room, zero_point);
  return TS_SUCCESS;
}

static ts_status quant_scales(mlir_parser *p, mlir_quant *out) {
  quant_lists lists = {0};
  if (mlir_accept(p, "{")) {
    if (mlir_at(p, "{")) return mlir_error(TS_UNIMPLEMENTED, p->token, "scales of blocks cannot be read");
    do TS_TRY(quant_scale(p, out, &lists));
    while (mlir_accept(p, ","));
    TS_TRY(mlir_expect(p, "}"));
  } else {
    TS_TRY(quant_scale(p, out, &lists));
  }
  out->scales = lists.scales;
  out->zero_points = lists.zero_points;
  return mlir_expect(p, ">");
}

/* !quant.uniform<i8:f32:0, {0.1:-30, 0.5:-20}>: after '!' */
static ts_status quant_type(mlir_parser *p, const ts_shape *shape, mlir_type *out) {
  mlir_quant quant = {.axis = -1}, *kept;
  mlir_type expressed;
  int64_t axis;
  const mlir_token at = p->token;
  if (!mlir_accept(p, "quant.uniform")) return mlir_error(TS_UNIMPLEMENTED, at, "no tensor has such elements");
  TS_TRY(mlir_expect(p, "<"));
  TS_TRY(quant_storage(p, &quant, out));
  TS_TRY(mlir_expect(p, ":"));
  if (!mlir_element_type(p->token, &expressed) || !ts_dtype_is_float(expressed.dtype))
    return mlir_error(TS_UNIMPLEMENTED, p->token, "expected the type of floats");
  quant.expressed = expressed.dtype;
  mlir_advance(p);
  if (mlir_accept(p, ":")) {
    if (mlir_at(p, "{")) return mlir_error(TS_UNIMPLEMENTED, p->token, "scales of blocks cannot be read");
    TS_TRY(parse_int(p, &axis));
    if (axis < 0 || axis >= shape->rank)
      return mlir_error(TS_INVALID_ARGUMENT, at, "it has no dim %lld", (long long)axis);
    quant.axis = (int32_t)axis;
  }
  TS_TRY(mlir_expect(p, ","));
  TS_TRY(quant_scales(p, &quant));
  const int64_t size = quant.axis < 0 ? 1 : shape->dims[quant.axis];
  if (size != (int64_t)quant.count && size != MLIR_ANY_SIZE)
    return mlir_error(TS_INVALID_ARGUMENT, at, "it has %zu scales, expected %lld", quant.count, (long long)size);
  TS_TRY(ts_arena_copy(p->arena, &quant, sizeof quant, (void **)&kept));
  out->quant = kept;
  return TS_SUCCESS;
}

static ts_status parse_element(mlir_parser *p, const ts_shape *shape, mlir_type *out) {
  const mlir_token at = p->token;
  if (mlir_accept(p, "complex")) return complex_type(p, out);
  if (mlir_accept(p, "!")) return quant_type(p, shape, out);
  TS_TRY(element_type(at, out));
  mlir_advance(p);
  return TS_SUCCESS;
}

/* tuple<tensor<2xf32>, tuple<>>: after the word */
static ts_status tuple_type(mlir_parser *p, mlir_type *out) {
  mlir_types parts = {0}, *kept;
  size_t capacity = 0;
  if (p->depth++ >= MLIR_MAX_DEPTH) return mlir_error(TS_INVALID_ARGUMENT, p->token, "types are nested too deep");
  TS_TRY(mlir_expect(p, "<"));
  while (!mlir_accept(p, ">")) {
    mlir_type part;
    TS_TRY(mlir_parse_type(p, &part));
    MLIR_PUSH(p, parts.data, parts.count, capacity, part);
    if (!mlir_accept(p, ",") && !mlir_at(p, ">")) return mlir_unexpected(p, "',' or '>'");
  }
  p->depth--;
  TS_TRY(ts_arena_copy(p->arena, &parts, sizeof parts, (void **)&kept));
  *out = (mlir_type){.parts = kept};
  return TS_SUCCESS;
}

mlir_type mlir_token_type(void) {
  static const ts_shape no_elements = {.rank = 1, .dims = {0}};
  return (mlir_type){.dtype = TS_U8, .is_bool = true, .shape = &no_elements};
}

/* !stablehlo.token: after '!' */
static ts_status token_type(mlir_parser *p, mlir_type *out) {
  *out = mlir_token_type();
  if (mlir_accept(p, "stablehlo.token")) return TS_SUCCESS;
  return mlir_error(TS_UNIMPLEMENTED, p->token, "expected a tensor, a tuple or a token");
}

ts_status mlir_parse_type(mlir_parser *p, mlir_type *out) {
  ts_shape shape, *kept;
  if (mlir_accept(p, "tuple")) return tuple_type(p, out);
  if (mlir_accept(p, "!")) return token_type(p, out);
  if (!mlir_at(p, "tensor")) return mlir_error(TS_UNIMPLEMENTED, p->token, "expected the type of a tensor");
  if (p->lexer.at == p->lexer.end || *p->lexer.at != '<') return mlir_unexpected(p, "'<'");
  p->lexer.at++;
  TS_TRY(parse_sizes(p, &shape));
  mlir_advance(p);
  mlir_token at = p->token;
  TS_TRY(parse_element(p, &shape, out));
  if (mlir_at(p, ",")) return mlir_error(TS_UNIMPLEMENTED, p->token, "a type with an encoding cannot be read");
  TS_TRY(mlir_expect(p, ">"));
  ts_status status = mlir_shape_check(&shape, out->dtype);
  if (status) return ts_error_context(status, "line %zu, column %zu", at.line, at.column);
  TS_TRY(ts_arena_copy(p->arena, &shape, ts_shape_size(&shape), (void **)&kept));
  out->shape = kept;
  return TS_SUCCESS;
}

ts_status mlir_parse_results(mlir_parser *p, mlir_types *out, mlir_attr **out_attrs) {
  size_t capacity = 0, attr_capacity = 0, attr_count = 0;
  *out = (mlir_types){0};
  bool several = mlir_accept(p, "(");
  if (several && mlir_accept(p, ")")) return TS_SUCCESS;
  do {
    mlir_type type;
    mlir_attr attrs = {0};
    TS_TRY(mlir_parse_type(p, &type));
    MLIR_PUSH(p, out->data, out->count, capacity, type);
    if (several && mlir_accept(p, "{")) TS_TRY(mlir_parse_dict(p, "}", &attrs));
    if (out_attrs) MLIR_PUSH(p, *out_attrs, attr_count, attr_capacity, attrs);
    if (several) TS_TRY(mlir_skip_location(p));
  } while (several && mlir_accept(p, ","));
  return several ? mlir_expect(p, ")") : TS_SUCCESS;
}

ts_status mlir_parse_types(mlir_parser *p, mlir_types *out) { return mlir_parse_results(p, out, NULL); }
