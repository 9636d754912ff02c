/* Types of bytecode, of the dialects builtin (MLIR itself) and VHLO. The dialects define the codes. */
#include "stablehlo/bytecode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How a type is written. */
typedef enum form {
  OTHER,
  NONE,
  ELEMENT,  /* nothing: the row has its name */
  INTEGER,  /* its width and signedness */
  COMPLEX,  /* the type of its parts */
  TENSOR,   /* sizes, and the type of its elements */
  FUNCTION, /* types of arguments and of results */
  TOKEN,
  TUPLE,     /* types */
  QUANT,     /* of one scale: flags, types of integers and of numbers, scale, zero point, least and greatest integer */
  QUANT_AXIS /* the same with lists of scales and zero points, in another order */
} form;

typedef struct code_row {
  uint8_t code;
  form form;
  const char *name; /* as in texts */
} code_row;

/* Codes that a table lacks are other types. */
static const code_row builtin_rows[] = {{0, INTEGER, NULL},        {1, ELEMENT, "index"},   {2, FUNCTION, NULL},
                                        {3, ELEMENT, "bf16"},      {4, ELEMENT, "f16"},     {5, ELEMENT, "f32"},
                                        {6, ELEMENT, "f64"},       {9, COMPLEX, NULL},      {12, NONE, NULL},
                                        {13, TENSOR, NULL},        {15, TUPLE, NULL},       {22, ELEMENT, "f8E5M2"},
                                        {24, ELEMENT, "f8E4M3FN"}, {UINT8_MAX, OTHER, NULL}};
static const code_row vhlo_rows[] = {
    {0, ELEMENT, "i1"},      {1, COMPLEX, NULL},    {2, ELEMENT, "bf16"},     {3, ELEMENT, "f16"},
    {4, ELEMENT, "f32"},     {5, ELEMENT, "f64"},   {6, ELEMENT, "f8E4M3FN"}, {7, ELEMENT, "f8E5M2"},
    {8, FUNCTION, NULL},     {9, ELEMENT, "index"}, {10, ELEMENT, "i4"},      {11, ELEMENT, "i8"},
    {12, ELEMENT, "i16"},    {13, ELEMENT, "i32"},  {14, ELEMENT, "i64"},     {15, ELEMENT, "ui4"},
    {16, ELEMENT, "ui8"},    {17, ELEMENT, "ui16"}, {18, ELEMENT, "ui32"},    {19, ELEMENT, "ui64"},
    {20, TENSOR, NULL},      {22, TOKEN, NULL},     {23, TUPLE, NULL},        {24, QUANT, NULL},
    {30, QUANT_AXIS, NULL},  {31, ELEMENT, "i2"},   {32, ELEMENT, "ui2"},     {33, NONE, NULL},
    {UINT8_MAX, OTHER, NULL}};
static const code_row stablehlo_rows[] = {{0, TOKEN, NULL}, {UINT8_MAX, OTHER, NULL}};

/* Without such a number it stays another type. */
static void set_element(mlir_token name, bytecode_type *out) {
  if (!mlir_element_type(name, &out->type)) return;
  out->kind = BYTECODE_ELEMENT;
  out->is_unsigned = name.text[0] == 'u' || out->type.is_bool;
  out->bits = out->type.is_bool ? 1 : ts_dtype_bits(out->type.dtype);
}

static ts_status named(const char *name, bytecode_type *out) {
  set_element((mlir_token){.kind = MLIR_WORD, .text = name, .length = strlen(name)}, out);
  return TS_SUCCESS;
}

/* Its width and signedness: 0 none, 1 signed, 2 unsigned. */
static ts_status integer(const bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  char name[24];
  uint64_t code;
  TS_TRY(bytecode_varint(b, from, &code));
  snprintf(name, sizeof name, "%s%" PRIu64, (code & 3) == 2 && code >> 2 > 1 ? "ui" : "i", code >> 2);
  return named(name, out);
}

static ts_status complex_of(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  const bytecode_type *part;
  TS_TRY(bytecode_get_type(b, from, &part));
  if (part->kind != BYTECODE_ELEMENT || (part->type.dtype != TS_F32 && part->type.dtype != TS_F64)) return TS_SUCCESS;
  out->kind = BYTECODE_ELEMENT;
  out->type.dtype = part->type.dtype == TS_F32 ? TS_C64 : TS_C128;
  out->bits = ts_dtype_bits(out->type.dtype);
  return TS_SUCCESS;
}

static ts_status tensor(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  size_t rank;
  ts_shape shape = {.rank = 0}, *kept;
  const bytecode_type *element;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_count(b, from, &rank));
  if (rank > TS_MAX_RANK) return bytecode_error(b, at, TS_UNIMPLEMENTED, "a tensor has at most %d dims", TS_MAX_RANK);
  for (size_t d = 0; d < rank; d++) {
    TS_TRY(bytecode_signed(b, from, &shape.dims[d]));
    if (shape.dims[d] < 0) shape.dims[d] = MLIR_ANY_SIZE;
  }
  shape.rank = (int32_t)rank;
  TS_TRY(bytecode_get_type(b, from, &element));
  if (element->kind != BYTECODE_ELEMENT) return TS_SUCCESS;
  const mlir_quant *quant = element->type.quant;
  if (quant && quant->axis >= 0 &&
      (quant->axis >= shape.rank ||
       (shape.dims[quant->axis] != MLIR_ANY_SIZE && shape.dims[quant->axis] != (int64_t)quant->count)))
    return bytecode_error(b, at, TS_INVALID_ARGUMENT, "a tensor has other than %zu scales", quant->count);
  ts_status status = mlir_shape_check(&shape, element->type.dtype);
  if (status) return ts_error_context(status, "byte %zu", (size_t)(at - b->data));
  TS_TRY(ts_arena_copy(b->arena, &shape, ts_shape_size(&shape), (void **)&kept));
  *out = *element;
  out->kind = BYTECODE_TENSOR;
  out->type.shape = kept;
  return TS_SUCCESS;
}

static ts_status types(bytecode *b, bytecode_bytes *from, mlir_types *out) {
  TS_TRY(bytecode_count(b, from, &out->count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->data));
  for (size_t i = 0; i < out->count; i++) TS_TRY(bytecode_get_tensor(b, from, &out->data[i]));
  return TS_SUCCESS;
}

static ts_status function(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  TS_TRY(types(b, from, &out->arguments));
  TS_TRY(types(b, from, &out->results));
  out->kind = BYTECODE_FUNCTION;
  return TS_SUCCESS;
}

static ts_status tuple(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  mlir_types *parts;
  TS_TRY(TS_ARENA_ARRAY(b->arena, 1, &parts));
  TS_TRY(types(b, from, parts));
  out->kind = BYTECODE_TUPLE;
  out->type.parts = parts;
  return TS_SUCCESS;
}

/* ---- quantised numbers */

typedef struct quant_reader {
  bytecode *b;
  bytecode_bytes *from;
  mlir_quant *quant;
  double *scales;
  int64_t *zero_points;
} quant_reader;

static ts_status quant_scale(const quant_reader *r, size_t i) {
  const uint8_t *at = r->from->at;
  int64_t bits;
  TS_TRY(bytecode_signed(r->b, r->from, &bits));
  memcpy(&r->scales[i], &bits, sizeof bits);
  return r->scales[i] > 0 ? TS_SUCCESS : bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "expected a scale");
}

static ts_status quant_ends(const quant_reader *r) {
  TS_TRY(bytecode_signed(r->b, r->from, &r->quant->low));
  return bytecode_signed(r->b, r->from, &r->quant->high);
}

static ts_status quant_room(quant_reader *r, size_t count) {
  r->quant->count = count;
  TS_TRY(TS_ARENA_ARRAY(r->b->arena, count, &r->scales));
  return TS_ARENA_ARRAY(r->b->arena, count, &r->zero_points);
}

static ts_status quant_of_axis(quant_reader *r) {
  const uint8_t *at = r->from->at;
  uint64_t axis;
  size_t count, points;
  TS_TRY(bytecode_varint(r->b, r->from, &axis));
  r->quant->axis = axis < TS_MAX_RANK ? (int32_t)axis : TS_MAX_RANK;
  TS_TRY(quant_ends(r));
  TS_TRY(bytecode_count(r->b, r->from, &count));
  TS_TRY(quant_room(r, count));
  for (size_t i = 0; i < count; i++) TS_TRY(quant_scale(r, i));
  TS_TRY(bytecode_count(r->b, r->from, &points));
  if (points != count || count == 0)
    return bytecode_error(r->b, at, TS_INVALID_ARGUMENT, "%zu scales have %zu zero points", count, points);
  for (size_t i = 0; i < count; i++) TS_TRY(bytecode_signed(r->b, r->from, &r->zero_points[i]));
  return TS_SUCCESS;
}

static ts_status quant_of_one(quant_reader *r) {
  TS_TRY(quant_room(r, 1));
  TS_TRY(quant_scale(r, 0));
  TS_TRY(bytecode_signed(r->b, r->from, &r->zero_points[0]));
  return quant_ends(r);
}

static ts_status quant(bytecode *b, bytecode_bytes *from, bool has_axis, bytecode_type *out) {
  quant_reader r = {.b = b, .from = from};
  const bytecode_type *storage, *expressed;
  const uint8_t *at = from->at;
  uint64_t flags;
  TS_TRY(TS_ARENA_ARRAY(b->arena, 1, &r.quant));
  TS_TRY(bytecode_varint(b, from, &flags));
  TS_TRY(bytecode_get_type(b, from, &storage));
  TS_TRY(bytecode_get_type(b, from, &expressed));
  if (storage->kind != BYTECODE_ELEMENT || !ts_dtype_is_integer(storage->type.dtype) || storage->type.is_bool ||
      storage->bits > 32 || expressed->kind != BYTECODE_ELEMENT || !ts_dtype_is_float(expressed->type.dtype))
    return TS_SUCCESS; /* a type that Tessera lacks */
  r.quant->axis = -1;
  r.quant->expressed = expressed->type.dtype;
  TS_TRY(has_axis ? quant_of_axis(&r) : quant_of_one(&r));
  r.quant->scales = r.scales;
  r.quant->zero_points = r.zero_points;
  if (r.quant->low > r.quant->high) return bytecode_error(b, at, TS_INVALID_ARGUMENT, "expected a range of integers");
  out->kind = BYTECODE_ELEMENT;
  out->bits = storage->bits;
  out->is_unsigned = !(flags & 1);
  out->type.dtype = ts_dtype_of_bits(out->is_unsigned ? TS_KIND_UNSIGNED : TS_KIND_SIGNED, out->bits);
  out->type.quant = r.quant;
  return TS_SUCCESS;
}

static ts_status read_form(bytecode *b, bytecode_bytes *from, const code_row *row, bytecode_type *out) {
  switch (row->form) {
  case OTHER: return TS_SUCCESS;
  case NONE: out->kind = BYTECODE_NONE; return TS_SUCCESS;
  case ELEMENT: return named(row->name, out);
  case INTEGER: return integer(b, from, out);
  case COMPLEX: return complex_of(b, from, out);
  case TENSOR: return tensor(b, from, out);
  case FUNCTION: return function(b, from, out);
  case TUPLE: return tuple(b, from, out);
  case QUANT: return quant(b, from, false, out);
  case QUANT_AXIS: return quant(b, from, true, out);
  case TOKEN:
    out->kind = BYTECODE_TENSOR;
    out->type = mlir_token_type();
    return TS_SUCCESS;
  }
  return TS_SUCCESS;
}

/* A number's type or a tensor's; others stay another type. */
static ts_status read_text(const bytecode *b, bytecode_bytes text, bytecode_type *out) {
  mlir_parser p = bytecode_text_parser(b, text);
  if (mlir_at(&p, "tensor") || mlir_at(&p, "tuple") || mlir_at(&p, "!")) {
    out->kind = mlir_at(&p, "tuple") ? BYTECODE_TUPLE : BYTECODE_TENSOR;
    return mlir_parse_type(&p, &out->type);
  }
  set_element(p.token, out);
  return TS_SUCCESS;
}

static ts_status read_type(bytecode *b, const bytecode_entry *entry, void *made) {
  const mlir_token dialect = b->dialects[entry->dialect];
  const code_row *row = NULL;
  bytecode_bytes from = entry->bytes;
  bytecode_type *out = made;
  uint64_t code;
  out->kind = BYTECODE_OTHER;
  if (!entry->is_custom) return read_text(b, from, out);
  if (mlir_token_is(dialect, "builtin")) row = builtin_rows;
  if (mlir_token_is(dialect, "vhlo")) row = vhlo_rows;
  if (mlir_token_is(dialect, "stablehlo")) row = stablehlo_rows;
  if (!row) return TS_SUCCESS;
  TS_TRY(bytecode_varint(b, &from, &code));
  while (row->code != UINT8_MAX && row->code != code) row++;
  return read_form(b, &from, row, out);
}

ts_status bytecode_type_at(bytecode *b, size_t index, const bytecode_type **out) {
  static const bytecode_maker maker = {"a type", sizeof(bytecode_type), read_type};
  const void *made;
  TS_TRY(bytecode_make(b, &b->types[index], &maker, &made));
  *out = made;
  return TS_SUCCESS;
}

ts_status bytecode_get_type(bytecode *b, bytecode_bytes *from, const bytecode_type **out) {
  size_t index;
  TS_TRY(bytecode_index(b, from, b->type_count, "type", &index));
  return bytecode_type_at(b, index, out);
}

ts_status bytecode_get_tensor(bytecode *b, bytecode_bytes *from, mlir_type *out) {
  const bytecode_type *type;
  TS_TRY(bytecode_get_type(b, from, &type));
  const bool is_known = type->kind == BYTECODE_TENSOR || type->kind == BYTECODE_TUPLE;
  *out = is_known ? type->type : (mlir_type){.shape = NULL};
  return TS_SUCCESS;
}
