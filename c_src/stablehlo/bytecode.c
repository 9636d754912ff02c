#include "stablehlo/bytecode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What changed between versions of the format. */
enum {
  WITH_DIALECT_VERSIONS = 1,
  WITH_OP_COUNT = 4,
  WITH_REGISTERED = 5,
  NEWEST = 6,
};

enum {
  SECTION_STRINGS,
  SECTION_DIALECTS,
  SECTION_ATTRS,
  SECTION_ATTR_OFFSETS,
  SECTION_IR,
  SECTION_RESOURCES,
  SECTION_RESOURCE_OFFSETS,
  SECTION_DIALECT_VERSIONS,
  SECTION_PROPERTIES,
  SECTIONS
};

bool mlir_is_bytecode(const void *data, size_t size) { return size >= 4 && memcmp(data, "ML\xefR", 4) == 0; }

ts_status(bytecode_error)(const bytecode *b, const uint8_t *at, ts_code code, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ts_error(code, "byte %zu: %s", (size_t)(at - b->data), message);
}

mlir_token bytecode_token(const bytecode *b, const uint8_t *at, mlir_token_kind kind, const char *text, size_t length) {
  return (mlir_token){.kind = kind, .text = text, .length = length, .line = 0, .column = (size_t)(at - b->data)};
}

/* ---- numbers and bytes */

static size_t left(const bytecode_bytes *from) { return (size_t)(from->end - from->at); }

static ts_status at_end(const bytecode *b, const bytecode_bytes *from) {
  return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "the file ends, or a part of it, where more is expected");
}

ts_status bytecode_byte(const bytecode *b, bytecode_bytes *from, uint8_t *out) {
  if (left(from) == 0) return at_end(b, from);
  *out = *from->at++;
  return TS_SUCCESS;
}

/* As many zero bits as bytes follow, then a one; eight zeros: eight bytes follow. */
ts_status bytecode_varint(const bytecode *b, bytecode_bytes *from, uint64_t *out) {
  uint8_t first;
  TS_TRY(bytecode_byte(b, from, &first));
  const size_t more = first ? (size_t)__builtin_ctz(first) : 8;
  if (left(from) < more) return at_end(b, from);
  uint64_t value = 0;
  for (size_t i = 0; i < more; i++) value |= (uint64_t)from->at[i] << (8 * i);
  from->at += more;
  *out = more == 8 ? value : value << (7 - more) | (uint64_t)first >> (more + 1);
  return TS_SUCCESS;
}

ts_status bytecode_signed(const bytecode *b, bytecode_bytes *from, int64_t *out) {
  uint64_t value;
  TS_TRY(bytecode_varint(b, from, &value));
  *out = (int64_t)(value >> 1 ^ (~(value & 1) + 1));
  return TS_SUCCESS;
}

ts_status bytecode_flagged(const bytecode *b, bytecode_bytes *from, uint64_t *out, bool *out_flag) {
  TS_TRY(bytecode_varint(b, from, out));
  *out_flag = *out & 1;
  *out >>= 1;
  return TS_SUCCESS;
}

ts_status bytecode_flagged_since(const bytecode *b, bytecode_bytes *from, uint64_t version, uint64_t *out,
                                 bool *inout_flag) {
  return b->version < version ? bytecode_varint(b, from, out) : bytecode_flagged(b, from, out, inout_flag);
}

ts_status bytecode_index(const bytecode *b, bytecode_bytes *from, size_t limit, const char *what, size_t *out) {
  uint64_t value;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_varint(b, from, &value));
  if (value >= limit)
    return bytecode_error(b, at, TS_INVALID_ARGUMENT, "there are %zu %ss, and the file names number %llu", limit, what,
                          (unsigned long long)value);
  *out = (size_t)value;
  return TS_SUCCESS;
}

static ts_status check_count(const bytecode *b, const bytecode_bytes *from, uint64_t count) {
  if (count <= left(from)) return TS_SUCCESS;
  return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "a list of %llu is longer than the bytes that are left",
                        (unsigned long long)count);
}

ts_status bytecode_count(const bytecode *b, bytecode_bytes *from, size_t *out) {
  uint64_t value;
  TS_TRY(bytecode_varint(b, from, &value));
  TS_TRY(check_count(b, from, value));
  *out = (size_t)value;
  return TS_SUCCESS;
}

ts_status bytecode_take(const bytecode *b, bytecode_bytes *from, uint64_t count, bytecode_bytes *out) {
  TS_TRY(check_count(b, from, count));
  *out = (bytecode_bytes){from->at, from->at + count};
  from->at += count;
  return TS_SUCCESS;
}

/* Skips bytes up to a multiple of the alignment, which counts from the file's begin. */
static ts_status align(const bytecode *b, bytecode_bytes *from, uint64_t alignment) {
  const uint64_t at = (uint64_t)(from->at - b->data);
  bytecode_bytes padding;
  if (alignment == 0 || (alignment & (alignment - 1)) || alignment > UINT64_C(1) << 32)
    return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "an alignment is no power of two, or too large");
  return bytecode_take(b, from, (alignment - at % alignment) % alignment, &padding);
}

ts_status bytecode_section(const bytecode *b, bytecode_bytes *from, uint8_t *out_id, bytecode_bytes *out) {
  uint64_t length, alignment;
  TS_TRY(bytecode_byte(b, from, out_id));
  TS_TRY(bytecode_varint(b, from, &length));
  if (*out_id & 0x80) {
    TS_TRY(bytecode_varint(b, from, &alignment));
    TS_TRY(align(b, from, alignment));
  }
  *out_id &= 0x7f;
  return bytecode_take(b, from, length, out);
}

/* ---- strings */

/* Lengths, from the last string to the first; then all strings, each with a NUL. */
static ts_status read_strings(bytecode *b, bytecode_bytes from) {
  size_t count;
  TS_TRY(bytecode_count(b, &from, &count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, count, &b->strings));
  for (size_t i = count; i-- > 0;) {
    uint64_t length;
    const uint8_t *at = from.at;
    TS_TRY(bytecode_varint(b, &from, &length));
    if (length == 0 || length > left(&from))
      return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the length of a string is out of range");
    from.end -= length;
    b->strings[i] = bytecode_token(b, from.end, MLIR_STRING, (const char *)from.end, (size_t)length - 1);
  }
  if (left(&from)) return bytecode_error(b, from.at, TS_INVALID_ARGUMENT, "the strings have other lengths");
  b->string_count = count;
  return TS_SUCCESS;
}

ts_status bytecode_string(const bytecode *b, bytecode_bytes *from, mlir_token *out) {
  size_t index;
  TS_TRY(bytecode_index(b, from, b->string_count, "string", &index));
  *out = b->strings[index];
  return TS_SUCCESS;
}

/* ---- dialects and names of ops */

static bool begins_with(mlir_token token, const char *text) {
  return token.length >= strlen(text) && memcmp(token.text, text, strlen(text)) == 0;
}

/* vhlo.add_v1 means stablehlo.add; a function or a call of VHLO is one of func. */
static ts_status meaning(const bytecode *b, mlir_token written, mlir_token *out) {
  char *text;
  size_t length = written.length;
  *out = written;
  if (!begins_with(written, "vhlo.")) return TS_SUCCESS;
  while (length > 5 && written.text[length - 1] >= '0' && written.text[length - 1] <= '9') length--;
  if (length > 7 && length < written.length && memcmp(written.text + length - 2, "_v", 2) == 0)
    length -= 2;
  else
    length = written.length;
  const mlir_token base = {.kind = MLIR_WORD, .text = written.text + 5, .length = length - 5};
  const char *dialect = mlir_token_is(base, "func") || mlir_token_is(base, "call") ? "func." : "stablehlo.";
  const size_t room = strlen(dialect) + base.length + 1;
  TS_TRY(ts_arena_alloc(b->arena, room, (void **)&text));
  snprintf(text, room, "%s%.*s", dialect, (int)base.length, base.text);
  out->text = text;
  out->length = room - 1;
  return TS_SUCCESS;
}

static ts_status read_op_name(bytecode *b, mlir_token dialect, bytecode_bytes *from, bytecode_op_name *out) {
  uint64_t index;
  char *text;
  const uint8_t *at = from->at;
  out->is_registered = true;
  TS_TRY(bytecode_flagged_since(b, from, WITH_REGISTERED, &index, &out->is_registered));
  if (index >= b->string_count) return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the name of an op is no string");
  const mlir_token name = b->strings[index];
  const size_t length = dialect.length + 1 + name.length;
  TS_TRY(ts_arena_alloc(b->arena, length, (void **)&text));
  memcpy(text, dialect.text, dialect.length);
  text[dialect.length] = '.';
  memcpy(text + dialect.length + 1, name.text, name.length);
  out->written = bytecode_token(b, at, MLIR_WORD, text, length);
  return meaning(b, out->written, &out->name);
}

static ts_status read_dialect(bytecode *b, bytecode_bytes *from, mlir_token *out) {
  uint64_t index;
  uint8_t id;
  bytecode_bytes version;
  bool versioned = false;
  const uint8_t *at = from->at;
  TS_TRY(bytecode_flagged_since(b, from, WITH_DIALECT_VERSIONS, &index, &versioned));
  if (index >= b->string_count) return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the name of a dialect is no string");
  *out = b->strings[index];
  if (!versioned) return TS_SUCCESS;
  TS_TRY(bytecode_section(b, from, &id, &version));
  if (id == SECTION_DIALECT_VERSIONS) return TS_SUCCESS;
  return bytecode_error(b, at, TS_INVALID_ARGUMENT, "expected the version of a dialect");
}

static ts_status read_dialects(bytecode *b, bytecode_bytes from) {
  size_t count, group, room = 0;
  uint64_t ops;
  TS_TRY(bytecode_count(b, &from, &count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, count, &b->dialects));
  for (size_t i = 0; i < count; i++) TS_TRY(read_dialect(b, &from, &b->dialects[i]));
  b->dialect_count = count;
  if (b->version >= WITH_OP_COUNT) TS_TRY(bytecode_varint(b, &from, &ops));
  while (left(&from)) {
    size_t dialect;
    TS_TRY(bytecode_index(b, &from, count, "dialect", &dialect));
    TS_TRY(bytecode_count(b, &from, &group));
    for (size_t i = 0; i < group; i++) {
      bytecode_op_name name;
      TS_TRY(read_op_name(b, b->dialects[dialect], &from, &name));
      MLIR_PUSH(b, b->ops, b->op_count, room, name);
    }
  }
  return TS_SUCCESS;
}

/* ---- attributes and types: where each begins */

/* Groups of one dialect, with the size of each entry, until all have one. */
static ts_status read_offsets(bytecode *b, bytecode_bytes *from, bytecode_bytes *data, bytecode_entry *out,
                              size_t count) {
  size_t done = 0, dialect, group;
  while (done < count) {
    TS_TRY(bytecode_index(b, from, b->dialect_count, "dialect", &dialect));
    TS_TRY(bytecode_count(b, from, &group));
    if (group > count - done)
      return bytecode_error(b, from->at, TS_INVALID_ARGUMENT, "there are more attributes or types than it says");
    for (size_t i = 0; i < group; i++, done++) {
      uint64_t size;
      out[done].dialect = (uint32_t)dialect;
      TS_TRY(bytecode_flagged(b, from, &size, &out[done].is_custom));
      TS_TRY(bytecode_take(b, data, size, &out[done].bytes));
    }
    if (group == 0 && left(from) == 0) return at_end(b, from);
  }
  return TS_SUCCESS;
}

static ts_status read_entries(bytecode *b, bytecode_bytes offsets, bytecode_bytes data) {
  uint64_t counts[2];
  TS_TRY(bytecode_varint(b, &offsets, &counts[0]));
  TS_TRY(bytecode_varint(b, &offsets, &counts[1]));
  for (int i = 0; i < 2; i++) TS_TRY(check_count(b, &offsets, counts[i]));
  TS_TRY(TS_ARENA_ARRAY(b->arena, (size_t)counts[0], &b->attrs));
  TS_TRY(TS_ARENA_ARRAY(b->arena, (size_t)counts[1], &b->types));
  b->attr_count = (size_t)counts[0];
  b->type_count = (size_t)counts[1];
  TS_TRY(read_offsets(b, &offsets, &data, b->attrs, b->attr_count));
  return read_offsets(b, &offsets, &data, b->types, b->type_count);
}

ts_status bytecode_make(bytecode *b, bytecode_entry *entry, const bytecode_maker *maker, const void **out) {
  void *made;
  *out = entry->made;
  if (*out) return TS_SUCCESS;
  if (entry->is_open || b->depth >= MLIR_MAX_DEPTH / 2)
    return bytecode_error(b, entry->bytes.at, TS_INVALID_ARGUMENT, "%s contains itself, or is nested too deep",
                          maker->what);
  TS_TRY(ts_arena_alloc(b->arena, maker->size, &made));
  entry->is_open = true;
  b->depth++;
  TS_TRY(maker->read(b, entry, made));
  b->depth--;
  entry->is_open = false;
  *out = entry->made = made;
  return TS_SUCCESS;
}

/* ---- properties and resources */

static ts_status read_properties(bytecode *b, bytecode_bytes from) {
  size_t count;
  TS_TRY(bytecode_count(b, &from, &count));
  TS_TRY(TS_ARENA_ARRAY(b->arena, count, &b->properties));
  for (size_t i = 0; i < count; i++) {
    uint64_t size;
    TS_TRY(bytecode_varint(b, &from, &size));
    TS_TRY(bytecode_take(b, &from, size, &b->properties[i]));
  }
  b->property_count = count;
  return TS_SUCCESS;
}

/* A blob: its alignment, its size, and its bytes; other resources have no meaning here. */
static ts_status read_resource(const bytecode *b, bytecode_bytes from, bytecode_bytes *out) {
  uint64_t alignment, size;
  TS_TRY(bytecode_varint(b, &from, &alignment));
  TS_TRY(bytecode_varint(b, &from, &size));
  TS_TRY(align(b, &from, alignment));
  return bytecode_take(b, &from, size, out);
}

/* One group; `keep`: its resources have numbers. */
static ts_status read_resource_group(bytecode *b, bytecode_bytes *from, bytecode_bytes *data, bool keep,
                                     size_t *inout_room) {
  size_t count;
  TS_TRY(bytecode_count(b, from, &count));
  for (size_t i = 0; i < count; i++) {
    mlir_token key;
    uint64_t size;
    uint8_t kind;
    bytecode_bytes entry, blob = {0};
    TS_TRY(bytecode_string(b, from, &key));
    TS_TRY(bytecode_varint(b, from, &size));
    TS_TRY(bytecode_byte(b, from, &kind));
    TS_TRY(bytecode_take(b, data, size, &entry));
    if (!keep) continue;
    if (kind == 0 && left(&entry)) TS_TRY(read_resource(b, entry, &blob));
    MLIR_PUSH(b, b->resources, b->resource_count, *inout_room, blob);
  }
  return TS_SUCCESS;
}

static ts_status read_resources(bytecode *b, bytecode_bytes offsets, bytecode_bytes data) {
  size_t external, dialect, room = 0;
  mlir_token key;
  TS_TRY(bytecode_count(b, &offsets, &external));
  for (size_t i = 0; i < external; i++) {
    TS_TRY(bytecode_string(b, &offsets, &key));
    TS_TRY(read_resource_group(b, &offsets, &data, false, &room));
  }
  while (left(&offsets)) {
    TS_TRY(bytecode_index(b, &offsets, b->dialect_count, "dialect", &dialect));
    TS_TRY(read_resource_group(b, &offsets, &data, true, &room));
  }
  return TS_SUCCESS;
}

/* ---- the file */

static ts_status read_header(bytecode *b, bytecode_bytes *from) {
  const uint8_t *at = from->at;
  TS_TRY(bytecode_varint(b, from, &b->version));
  if (b->version > NEWEST)
    return bytecode_error(b, at, TS_UNIMPLEMENTED, "version %llu of the bytecode is not known, expected at most %d",
                          (unsigned long long)b->version, NEWEST);
  const uint8_t *end = memchr(from->at, 0, left(from)); /* the writer's name */
  if (!end) return at_end(b, from);
  from->at = end + 1;
  return TS_SUCCESS;
}

static ts_status read_sections(bytecode *b, bytecode_bytes from, bytecode_bytes *out) {
  while (left(&from)) {
    uint8_t id;
    const uint8_t *at = from.at;
    bytecode_bytes contents;
    TS_TRY(bytecode_section(b, &from, &id, &contents));
    if (id >= SECTIONS || out[id].at)
      return bytecode_error(b, at, TS_INVALID_ARGUMENT, "section %d is not known, or comes twice", id);
    out[id] = contents;
  }
  for (int id = SECTION_STRINGS; id <= SECTION_IR; id++)
    if (!out[id].at) return bytecode_error(b, from.at, TS_INVALID_ARGUMENT, "the file has no section %d", id);
  return TS_SUCCESS;
}

ts_status bytecode_open(bytecode *b) {
  bytecode_bytes from = {b->data + 4, b->data + b->size}, sections[SECTIONS] = {{0}};
  TS_TRY(read_header(b, &from));
  TS_TRY(read_sections(b, from, sections));
  TS_TRY(read_strings(b, sections[SECTION_STRINGS]));
  TS_TRY(read_dialects(b, sections[SECTION_DIALECTS]));
  TS_TRY(read_entries(b, sections[SECTION_ATTR_OFFSETS], sections[SECTION_ATTRS]));
  if (sections[SECTION_PROPERTIES].at) TS_TRY(read_properties(b, sections[SECTION_PROPERTIES]));
  if (sections[SECTION_RESOURCE_OFFSETS].at)
    TS_TRY(read_resources(b, sections[SECTION_RESOURCE_OFFSETS], sections[SECTION_RESOURCES]));
  b->ir = sections[SECTION_IR];
  return TS_SUCCESS;
}
