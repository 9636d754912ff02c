/* Locations in bytecode: attributes of MLIR's own dialect, by their codes. They are read in one pass over all
 * attributes. Each is read without the attributes that it refers to, so that no chain of calls is too deep. */
#include "stablehlo/location/location.h"

enum { STRING = 2, TYPED_STRING = 3, CALL = 10, LINE = 11, SEVERAL = 12, SEVERAL_MARKED = 13, NAME = 14, RANGE = 22 };

static bool read_number(const bytecode *b, bytecode_bytes *from, uint64_t *out) {
  *out = 0;
  return ts_status_consume_ok(bytecode_varint(b, from, out));
}

/* The code of an attribute, and what follows it; false for one of another dialect. */
static bool read_code(const bytecode *b, const bytecode_entry *entry, bytecode_bytes *out_rest, uint64_t *out) {
  *out_rest = entry->bytes;
  return entry->is_custom && mlir_token_is(b->dialects[entry->dialect], "builtin") && read_number(b, out_rest, out);
}

static bool read_string(const bytecode *b, bytecode_bytes *from, mlir_token *out) {
  uint64_t index, code;
  bytecode_bytes rest;
  if (!read_number(b, from, &index) || index >= b->attr_count) return false;
  if (!read_code(b, &b->attrs[index], &rest, &code) || (code != STRING && code != TYPED_STRING)) return false;
  if (!read_number(b, &rest, &index) || index >= b->string_count) return false;
  *out = b->strings[index];
  return true;
}

static const mlir_location *read_other(const bytecode *b, bytecode_bytes *from) {
  uint64_t index;
  return read_number(b, from, &index) ? bytecode_location(b, index) : NULL;
}

/* A file and a line. With `counted` the number of positions is between them, and the line is the first position. */
static void read_line(const bytecode *b, bytecode_bytes *from, bool counted, mlir_location *out) {
  mlir_token file;
  uint64_t count;
  if (!read_string(b, from, &file) || (counted && (!read_number(b, from, &count) || count == 0))) return;
  if (read_number(b, from, &out->line)) out->file = file;
}

static ts_status read_several(const bytecode *b, bytecode_bytes *from, mlir_location *out) {
  uint64_t count;
  if (!read_number(b, from, &count) || count > (uint64_t)(from->end - from->at)) return TS_SUCCESS;
  for (uint64_t i = 0; i < count; i++) {
    mlir_location *next;
    out->inner = read_other(b, from);
    if (i + 1 == count) break;
    TS_TRY(TS_ARENA_ARRAY(b->arena, 1, &next));
    out->others = next;
    out = next;
  }
  return TS_SUCCESS;
}

static ts_status read_location(const bytecode *b, const bytecode_entry *entry, mlir_location *out) {
  bytecode_bytes from;
  uint64_t code;
  if (!read_code(b, entry, &from, &code)) return TS_SUCCESS;
  switch (code) {
  case CALL:
    out->inner = read_other(b, &from);
    out->others = read_other(b, &from);
    return TS_SUCCESS;
  case LINE: read_line(b, &from, false, out); return TS_SUCCESS;
  case RANGE: read_line(b, &from, true, out); return TS_SUCCESS;
  case NAME:
    if (read_string(b, &from, &out->name)) out->inner = read_other(b, &from);
    return TS_SUCCESS;
  case SEVERAL:
  case SEVERAL_MARKED: return read_several(b, &from, out);
  }
  return TS_SUCCESS;
}

ts_status bytecode_read_locations(bytecode *b) {
  if (!b->with_locations) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(b->arena, b->attr_count, &b->locations));
  for (size_t i = 0; i < b->attr_count; i++) TS_TRY(read_location(b, &b->attrs[i], &b->locations[i]));
  return TS_SUCCESS;
}

const mlir_location *bytecode_location(const bytecode *b, uint64_t index) {
  return b->locations && index < b->attr_count ? &b->locations[index] : NULL;
}
