/* Types of bytecode: those of MLIR itself ("builtin"), and of VHLO. The codes are those of the dialects. */
#include "stablehlo/bytecode.h"

#include <string.h>

static const struct {
  uint8_t code;
  const char *name; /* as in texts; NULL: no tensor here has it */
} builtin_types[] = {{1, "index"}, {3, "bf16"}, {4, "f16"}, {5, "f32"}, {6, "f64"}},
  vhlo_types[] = {{0, "i1"},    {2, "bf16"},  {3, "f16"},   {4, "f32"},   {5, "f64"},  {6, "f8E4M3FN"}, {7, "f8E5M2"},
                  {9, "index"}, {10, "i4"},   {11, "i8"},   {12, "i16"},  {13, "i32"}, {14, "i64"},     {15, "ui4"},
                  {16, "ui8"},  {17, "ui16"}, {18, "ui32"}, {19, "ui64"}, {31, "i2"},  {32, "ui2"}};

/* Codes of types that others are made of. */
enum { BUILTIN_INTEGER = 0, BUILTIN_FUNCTION = 2, BUILTIN_COMPLEX = 9, BUILTIN_NONE = 12, BUILTIN_TENSOR = 13 };
enum { VHLO_COMPLEX = 1, VHLO_FUNCTION = 8, VHLO_TENSOR = 20, VHLO_NONE = 33 };

static ts_status set_element(const char *name, bytecode_type *out) {
  const mlir_token token = {.kind = MLIR_WORD, .text = name, .length = strlen(name)};
  if (!mlir_element_type(token, &out->type)) return TS_SUCCESS; /* it stays another type */
  out->kind = BYTECODE_ELEMENT;
  out->is_unsigned = name[0] == 'u' || out->type.is_bool;
  out->bits = out->type.is_bool ? 1 : ts_dtype_bits(out->type.dtype);
  return TS_SUCCESS;
}

/* Its width and signedness: 0 none, 1 signed, 2 unsigned. */
static ts_status integer(const bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  static const char *const names[][2] = {{"i1", "i1"},    {"i2", "ui2"},   {"i4", "ui4"},  {"i8", "ui8"},
                                         {"i16", "ui16"}, {"i32", "ui32"}, {"i64", "ui64"}};
  static const uint64_t widths[] = {1, 2, 4, 8, 16, 32, 64};
  uint64_t code;
  TS_TRY(bytecode_varint(b, from, &code));
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
    if (code >> 2 == widths[i]) return set_element(names[i][(code & 3) == 2], out);
  return TS_SUCCESS;
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
  ts_status status = mlir_shape_check(&shape, element->type.dtype);
  if (status) return ts_error_context(status, "byte %zu", (size_t)(at - b->data));
  TS_TRY(ts_arena_alloc(b->arena, ts_shape_size(&shape), (void **)&kept));
  ts_shape_copy(kept, &shape);
  *out = *element;
  out->kind = BYTECODE_TENSOR;
  out->type.shape = kept;
  return TS_SUCCESS;
}

/* The types of arguments are those of the block's. */
static ts_status function(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  size_t count;
  const bytecode_type *ignored;
  TS_TRY(bytecode_count(b, from, &count));
  for (size_t i = 0; i < count; i++) TS_TRY(bytecode_get_type(b, from, &ignored));
  TS_TRY(bytecode_count(b, from, &count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, count, &out->results.data));
  out->results.count = count;
  for (size_t i = 0; i < count; i++) TS_TRY(bytecode_get_tensor(b, from, &out->results.data[i]));
  out->kind = BYTECODE_FUNCTION;
  return TS_SUCCESS;
}

static ts_status read_builtin(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  uint64_t code;
  TS_TRY(bytecode_varint(b, from, &code));
  if (code == BUILTIN_INTEGER) return integer(b, from, out);
  if (code == BUILTIN_FUNCTION) return function(b, from, out);
  if (code == BUILTIN_COMPLEX) return complex_of(b, from, out);
  if (code == BUILTIN_TENSOR) return tensor(b, from, out);
  if (code == BUILTIN_NONE) out->kind = BYTECODE_NONE;
  for (size_t i = 0; i < sizeof builtin_types / sizeof *builtin_types; i++)
    if (builtin_types[i].code == code) return set_element(builtin_types[i].name, out);
  return TS_SUCCESS;
}

static ts_status read_vhlo(bytecode *b, bytecode_bytes *from, bytecode_type *out) {
  uint64_t code;
  TS_TRY(bytecode_varint(b, from, &code));
  if (code == VHLO_FUNCTION) return function(b, from, out);
  if (code == VHLO_COMPLEX) return complex_of(b, from, out);
  if (code == VHLO_TENSOR) return tensor(b, from, out);
  if (code == VHLO_NONE) out->kind = BYTECODE_NONE;
  for (size_t i = 0; i < sizeof vhlo_types / sizeof *vhlo_types; i++)
    if (vhlo_types[i].code == code) return set_element(vhlo_types[i].name, out);
  return TS_SUCCESS;
}

/* A number's type or a tensor's; others stay another type. */
static ts_status read_text(const bytecode *b, bytecode_bytes text, bytecode_type *out) {
  mlir_parser p = bytecode_text_parser(b, text);
  if (mlir_at(&p, "tensor")) {
    out->kind = BYTECODE_TENSOR;
    return mlir_parse_type(&p, &out->type);
  }
  if (!mlir_element_type(p.token, &out->type)) return TS_SUCCESS;
  out->kind = BYTECODE_ELEMENT;
  out->is_unsigned = p.token.text[0] == 'u' || out->type.is_bool;
  out->bits = out->type.is_bool ? 1 : ts_dtype_bits(out->type.dtype);
  return TS_SUCCESS;
}

static ts_status read_type(bytecode *b, const bytecode_entry *entry, bytecode_type *out) {
  const mlir_token dialect = b->dialects[entry->dialect];
  bytecode_bytes from = entry->bytes;
  out->kind = BYTECODE_OTHER;
  if (!entry->is_custom) return read_text(b, from, out);
  if (mlir_token_is(dialect, "builtin")) return read_builtin(b, &from, out);
  if (mlir_token_is(dialect, "vhlo")) return read_vhlo(b, &from, out);
  return TS_SUCCESS;
}

ts_status bytecode_type_at(bytecode *b, size_t index, const bytecode_type **out) {
  bytecode_entry *entry = &b->types[index];
  bytecode_type *made;
  *out = entry->made;
  if (*out) return TS_SUCCESS;
  if (entry->is_open || b->depth >= MLIR_MAX_DEPTH / 4)
    return bytecode_error(b, entry->bytes.at, TS_INVALID_ARGUMENT, "a type contains itself, or is nested too deep");
  TS_TRY(ts_arena_alloc(b->arena, sizeof *made, (void **)&made));
  entry->is_open = true;
  b->depth++;
  TS_TRY(read_type(b, entry, made));
  b->depth--;
  entry->is_open = false;
  entry->made = made;
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
  *out = type->kind == BYTECODE_TENSOR ? type->type : (mlir_type){.shape = NULL};
  return TS_SUCCESS;
}
