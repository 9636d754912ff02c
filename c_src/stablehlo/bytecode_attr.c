/* Attributes of bytecode, of the dialects builtin (MLIR itself), VHLO, StableHLO and chlo. The dialects define the
 * codes. An attribute that no op here reads, as a location or a sharding, is a unit. */
#include "stablehlo/bytecode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How an attribute is written. */
typedef enum form {
  UNIT,
  ARRAY,      /* attributes */
  DICTIONARY, /* pairs of attributes, a name and a value */
  STRING,
  SYMBOL, /* the attribute that has its name */
  TYPE,
  BOOLEAN,
  INTEGER,   /* a type and its bits */
  FLOATING,  /* the same */
  ELEMENTS,  /* a type and its bytes */
  NUMBERS,   /* an element type, how many, and their bytes */
  RESOURCE,  /* a type, and the number of a resource with the bytes */
  WORD,      /* a number: one of `words` */
  DIMENSIONS /* lists of integers, and single ones, with names: `words`, "*" in front of lists */
} form;

typedef struct code_row {
  uint8_t code;
  form form;
  const char *const *words;
} code_row;

static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
static const char *const comparisons[] = {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", NULL};
static const char *const versions[] = {"API_VERSION_UNSPECIFIED",      "API_VERSION_ORIGINAL",
                                       "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                       "API_VERSION_TYPED_FFI",        NULL};
static const char *const transforms[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
static const char *const precisions[] = {"DEFAULT", "HIGH", "HIGHEST", NULL};
static const char *const algorithms[] = {"DEFAULT", "THREE_FRY", "PHILOX", NULL};
static const char *const distributions[] = {"", "UNIFORM", "NORMAL", NULL};
static const char *const transposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", NULL};
static const char *const channel[] = {"handle", "type", NULL};
static const char *const dot[] = {"*lhs_batching_dimensions", "*rhs_batching_dimensions", "*lhs_contracting_dimensions",
                                  "*rhs_contracting_dimensions", NULL};
static const char *const gather[] = {"*offset_dims",
                                     "*collapsed_slice_dims",
                                     "*operand_batching_dims",
                                     "*start_indices_batching_dims",
                                     "*start_index_map",
                                     "index_vector_dim",
                                     NULL};
static const char *const scatter[] = {"*update_window_dims",
                                      "*inserted_window_dims",
                                      "*input_batching_dims",
                                      "*scatter_indices_batching_dims",
                                      "*scatter_dims_to_operand_dims",
                                      "index_vector_dim",
                                      NULL};
static const char *const convolution[] = {"input_batch_dimension",           "input_feature_dimension",
                                          "*input_spatial_dimensions",       "kernel_input_feature_dimension",
                                          "kernel_output_feature_dimension", "*kernel_spatial_dimensions",
                                          "output_batch_dimension",          "output_feature_dimension",
                                          "*output_spatial_dimensions",      NULL};

/* Codes that a table lacks are units. */
static const code_row builtin_rows[] = {
    {0, ARRAY, NULL},    {1, DICTIONARY, NULL}, {2, STRING, NULL},      {3, STRING, NULL},   {4, SYMBOL, NULL},
    {5, SYMBOL, NULL},   {6, TYPE, NULL},       {8, INTEGER, NULL},     {9, FLOATING, NULL}, {16, RESOURCE, NULL},
    {17, NUMBERS, NULL}, {18, ELEMENTS, NULL},  {UINT8_MAX, UNIT, NULL}};
static const code_row vhlo_rows[] = {{1, ARRAY, NULL},       {2, BOOLEAN, NULL},     {3, WORD, directions},
                                     {4, WORD, comparisons}, {5, WORD, versions},    {6, DICTIONARY, NULL},
                                     {7, WORD, transforms},  {8, FLOATING, NULL},    {9, INTEGER, NULL},
                                     {11, WORD, precisions}, {12, WORD, algorithms}, {13, WORD, distributions},
                                     {14, STRING, NULL},     {15, ELEMENTS, NULL},   {16, WORD, transposes},
                                     {17, TYPE, NULL},       {UINT8_MAX, UNIT, NULL}};
static const code_row stablehlo_rows[] = {
    {1, DIMENSIONS, channel}, {2, WORD, directions},     {3, WORD, comparisons},    {4, DIMENSIONS, convolution},
    {5, DIMENSIONS, dot},     {6, WORD, transforms},     {7, DIMENSIONS, gather},   {8, WORD, precisions},
    {9, WORD, algorithms},    {10, WORD, distributions}, {11, DIMENSIONS, scatter}, {12, WORD, transposes},
    {UINT8_MAX, UNIT, NULL}};
static const code_row chlo_rows[] = {{0, WORD, directions}, {1, WORD, comparisons}, {UINT8_MAX, UNIT, NULL}};

static const struct {
  const char *dialect;
  const code_row *rows;
} dialects[] = {{"builtin", builtin_rows}, {"vhlo", vhlo_rows}, {"stablehlo", stablehlo_rows}, {"chlo", chlo_rows}};

/* The number of a text. */
static ts_status set_text(const bytecode *b, const uint8_t *at, const char *text, mlir_attr *out) {
  char *kept;
  TS_TRY(ts_arena_strdup(b->arena, text, &kept));
  out->kind = MLIR_ATTR_NUMBER;
  out->token = bytecode_token(b, at, MLIR_NUMBER, kept, strlen(kept));
  return TS_SUCCESS;
}

ts_status bytecode_set_number(const bytecode *b, const uint8_t *at, int64_t number, bool is_unsigned, mlir_attr *out) {
  char text[24];
  snprintf(text, sizeof text, is_unsigned ? "%" PRIu64 : "%" PRId64, number);
  return set_text(b, at, text, out);
}

/* ---- lists */

ts_status bytecode_list(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const mlir_attr *item;
  TS_TRY(bytecode_count(b, from, &out->count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  out->kind = MLIR_ATTR_LIST;
  for (size_t i = 0; i < out->count; i++) {
    TS_TRY(bytecode_get_attr(b, from, &item));
    out->items[i] = *item;
  }
  return TS_SUCCESS;
}

static ts_status dictionary(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const mlir_attr *name, *item;
  TS_TRY(bytecode_count(b, from, &out->count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  out->kind = MLIR_ATTR_DICT;
  for (size_t i = 0; i < out->count; i++) {
    const uint8_t *at = from->at;
    TS_TRY(bytecode_get_attr(b, from, &name));
    TS_TRY(bytecode_get_attr(b, from, &item));
    if (name->kind != MLIR_ATTR_WORD)
      return bytecode_error(b, at, TS_INVALID_ARGUMENT, "expected the name of an attribute");
    out->items[i] = *item;
    out->items[i].name = name->token;
  }
  return TS_SUCCESS;
}

ts_status bytecode_integers(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  int64_t number;
  TS_TRY(bytecode_count(b, from, &out->count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  out->kind = MLIR_ATTR_LIST;
  out->token = bytecode_token(b, from->at, MLIR_WORD, "list", 4);
  for (size_t i = 0; i < out->count; i++) {
    const uint8_t *at = from->at;
    TS_TRY(bytecode_signed(b, from, &number));
    TS_TRY(bytecode_set_number(b, at, number, false, &out->items[i]));
  }
  return TS_SUCCESS;
}

static ts_status dimensions(bytecode *b, bytecode_bytes *from, const char *const *words, mlir_attr *out) {
  while (words[out->count]) out->count++;
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  out->kind = MLIR_ATTR_DICT;
  for (size_t i = 0; i < out->count; i++) {
    const bool is_list = words[i][0] == '*';
    const uint8_t *at = from->at;
    int64_t number;
    if (is_list) {
      TS_TRY(bytecode_integers(b, from, &out->items[i]));
    } else {
      TS_TRY(bytecode_signed(b, from, &number));
      TS_TRY(bytecode_set_number(b, at, number, false, &out->items[i]));
    }
    out->items[i].name = bytecode_token(b, at, MLIR_WORD, words[i] + is_list, strlen(words[i] + is_list));
  }
  return TS_SUCCESS;
}

/* ---- numbers */

/* Up to 8 bits are a byte, more a signed number. */
static ts_status read_bits(const bytecode *b, bytecode_bytes *from, int bits, int64_t *out) {
  uint8_t byte;
  if (bits > 8) return bytecode_signed(b, from, out);
  TS_TRY(bytecode_byte(b, from, &byte));
  *out = byte;
  return TS_SUCCESS;
}

/* The words of the text: an attribute that is there and false is told from one that stands for itself. */
static ts_status set_bool(const bytecode *b, const uint8_t *at, bool value, mlir_attr *out) {
  const char *word = value ? "true" : "false";
  out->kind = MLIR_ATTR_WORD;
  out->token = bytecode_token(b, at, MLIR_WORD, word, strlen(word));
  return TS_SUCCESS;
}

static ts_status integer(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const bytecode_type *type;
  const uint8_t *at = from->at;
  int64_t number;
  TS_TRY(bytecode_get_type(b, from, &type));
  if (type->kind != BYTECODE_ELEMENT || type->bits > 64) return TS_SUCCESS; /* of a type that nothing here reads */
  TS_TRY(read_bits(b, from, type->bits, &number));
  if (type->type.is_bool) return set_bool(b, at, (number & 1) != 0, out);
  const int unused = 64 - type->bits;
  const uint64_t shifted = (uint64_t)number << unused;
  number = type->is_unsigned ? (int64_t)(shifted >> unused) : (int64_t)shifted >> unused;
  return bytecode_set_number(b, at, number, type->is_unsigned, out);
}

static ts_status floating(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const bytecode_type *type;
  const uint8_t *at = from->at;
  int64_t bits;
  char text[40];
  TS_TRY(bytecode_get_type(b, from, &type));
  if (type->kind != BYTECODE_ELEMENT || !ts_dtype_is_float(type->type.dtype)) return TS_SUCCESS;
  TS_TRY(read_bits(b, from, type->bits, &bits));
  snprintf(text, sizeof text, "%.17g", ts_scalar_to_f64(type->type.dtype, ts_scalar_load(type->type.dtype, &bits)));
  return set_text(b, at, text, out);
}

static ts_status boolean(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  uint64_t value;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_varint(b, from, &value));
  return set_bool(b, at, value != 0, out);
}

static ts_status word(bytecode *b, bytecode_bytes *from, const char *const *words, mlir_attr *out) {
  size_t count = 0, index;
  const uint8_t *at = from->at;
  while (words[count]) count++;
  TS_TRY(bytecode_index(b, from, count, "word of an enumeration", &index));
  out->kind = MLIR_ATTR_WORD;
  out->token = bytecode_token(b, at, MLIR_WORD, words[index], strlen(words[index]));
  return TS_SUCCESS;
}

/* ---- constants */

static ts_status set_dense(const bytecode *b, const mlir_type *type, bytecode_bytes bytes, mlir_attr *out) {
  out->kind = MLIR_ATTR_DENSE;
  out->type = *type;
  out->bytes = bytes.at;
  out->byte_count = (size_t)(bytes.end - bytes.at);
  out->token = bytecode_token(b, bytes.at, MLIR_STRING, "a constant", 10);
  return mlir_check_bytes(out);
}

static ts_status elements(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const bytecode_type *type;
  uint64_t size;
  bytecode_bytes bytes;
  TS_TRY(bytecode_get_type(b, from, &type));
  TS_TRY(bytecode_varint(b, from, &size));
  TS_TRY(bytecode_take(b, from, size, &bytes));
  return type->kind == BYTECODE_TENSOR ? set_dense(b, &type->type, bytes, out) : TS_SUCCESS;
}

static ts_status numbers(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const bytecode_type *type;
  uint64_t count, size;
  bytecode_bytes bytes;
  ts_shape shape = {.rank = 1}, *kept;
  TS_TRY(bytecode_get_type(b, from, &type));
  TS_TRY(bytecode_varint(b, from, &count));
  TS_TRY(bytecode_varint(b, from, &size));
  TS_TRY(bytecode_take(b, from, size, &bytes));
  if (type->kind != BYTECODE_ELEMENT) return TS_SUCCESS;
  if (count > size) return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "a list has other numbers than it says");
  shape.dims[0] = (int64_t)count;
  TS_TRY(ts_arena_copy(b->arena, &shape, ts_shape_size(&shape), (void **)&kept));
  mlir_type list = type->type;
  list.shape = kept;
  return set_dense(b, &list, bytes, out);
}

static ts_status resource(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const bytecode_type *type;
  size_t index;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_get_type(b, from, &type));
  TS_TRY(bytecode_index(b, from, b->resource_count, "resource", &index));
  if (type->kind != BYTECODE_TENSOR) return TS_SUCCESS;
  if (!b->resources[index].at) return bytecode_error(b, at, TS_INVALID_ARGUMENT, "a resource has no bytes in the file");
  return set_dense(b, &type->type, b->resources[index], out);
}

/* ---- any attribute */

static ts_status string(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  out->kind = MLIR_ATTR_WORD;
  return bytecode_string(b, from, &out->token);
}

static ts_status symbol(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const mlir_attr *name;
  TS_TRY(bytecode_get_attr(b, from, &name));
  if (name->kind != MLIR_ATTR_WORD) return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "expected a symbol's name");
  out->kind = MLIR_ATTR_WORD;
  out->token = name->token;
  out->token.kind = MLIR_SYMBOL;
  return TS_SUCCESS;
}

static ts_status type_of(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  TS_TRY(bytecode_index(b, from, b->type_count, "type", &out->type_number));
  out->kind = MLIR_ATTR_TYPE;
  return TS_SUCCESS;
}

static ts_status read_form(bytecode *b, bytecode_bytes *from, const code_row *row, mlir_attr *out) {
  switch (row->form) {
  case UNIT: return TS_SUCCESS;
  case ARRAY: return bytecode_list(b, from, out);
  case DICTIONARY: return dictionary(b, from, out);
  case STRING: return string(b, from, out);
  case SYMBOL: return symbol(b, from, out);
  case TYPE: return type_of(b, from, out);
  case BOOLEAN: return boolean(b, from, out);
  case INTEGER: return integer(b, from, out);
  case FLOATING: return floating(b, from, out);
  case ELEMENTS: return elements(b, from, out);
  case NUMBERS: return numbers(b, from, out);
  case RESOURCE: return resource(b, from, out);
  case WORD: return word(b, from, row->words, out);
  case DIMENSIONS: return dimensions(b, from, row->words, out);
  }
  return TS_SUCCESS;
}

mlir_parser bytecode_text_parser(const bytecode *b, bytecode_bytes text) {
  mlir_parser p = {.arena = b->arena};
  size_t length = (size_t)(text.end - text.at);
  if (length && text.end[-1] == 0) length--;
  mlir_lexer_init(&p.lexer, (const char *)text.at, length);
  p.lexer.line = 0;
  p.lexer.line_start = (const char *)b->data + 1;
  mlir_advance(&p);
  return p;
}

/* A text in the syntax of a dialect that is not known is a unit. */
static ts_status read_text(const bytecode *b, bytecode_bytes text, mlir_attr *out) {
  mlir_parser p = bytecode_text_parser(b, text);
  const mlir_attr unit = *out;
  ts_status status = mlir_parse_attr(&p, out);
  if (ts_status_code(status) == TS_RESOURCE_EXHAUSTED) return status;
  if (status || p.token.kind != MLIR_END) *out = unit;
  ts_status_free(status);
  return TS_SUCCESS;
}

static ts_status read_attr(bytecode *b, const bytecode_entry *entry, void *made) {
  bytecode_bytes from = entry->bytes;
  mlir_attr *out = made;
  uint64_t code;
  *out = (mlir_attr){.kind = MLIR_ATTR_UNIT, .token = bytecode_token(b, from.at, MLIR_WORD, "unit", 4)};
  if (!entry->is_custom) return read_text(b, from, out);
  if (mlir_token_is(b->dialects[entry->dialect], "sdy")) {
    TS_TRY(bytecode_varint(b, &from, &code));
    return bytecode_read_sdy(b, &from, code, out);
  }
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
    if (!mlir_token_is(b->dialects[entry->dialect], dialects[i].dialect)) continue;
    const code_row *row = dialects[i].rows;
    TS_TRY(bytecode_varint(b, &from, &code));
    while (row->code != UINT8_MAX && row->code != code) row++;
    return read_form(b, &from, row, out);
  }
  return TS_SUCCESS;
}

ts_status bytecode_attr_at(bytecode *b, size_t index, const mlir_attr **out) {
  static const bytecode_maker maker = {"an attribute", sizeof(mlir_attr), read_attr};
  const void *made;
  TS_TRY(bytecode_make(b, &b->attrs[index], &maker, &made));
  *out = made;
  return TS_SUCCESS;
}

ts_status bytecode_get_attr(bytecode *b, bytecode_bytes *from, const mlir_attr **out) {
  size_t index;
  TS_TRY(bytecode_index(b, from, b->attr_count, "attribute", &index));
  return bytecode_attr_at(b, index, out);
}
