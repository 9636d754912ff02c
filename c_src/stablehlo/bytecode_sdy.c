/* Meshes and shardings in bytecode: the codes of the dialect sdy. They become the nodes that the text has
 * (mlir_sharding.c). */
#include "stablehlo/bytecode.h"

enum { MANUAL_AXES = 0, MESH_AXIS = 1, MESH = 2, PART = 3, AXIS = 4, DIM = 5, SHARDING = 6, PER_VALUE = 7 };
enum { SHARDING_WITH_TERMS = 15, PER_VALUE_WITH_TERMS = 16 };

/* A size with a name. */
static ts_status mesh_axis(const bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const uint8_t *at = from->at;
  int64_t size;
  mlir_token name;
  TS_TRY(bytecode_string(b, from, &name));
  TS_TRY(bytecode_signed(b, from, &size));
  TS_TRY(bytecode_set_number(b, at, size, false, out));
  out->name = name;
  return TS_SUCCESS;
}

/* Its axes, and behind them the numbers of its devices if they are listed. */
static ts_status mesh(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  mlir_attr devices = {.kind = MLIR_ATTR_UNIT, .token = out->token}, axes = *out;
  TS_TRY(bytecode_list(b, from, &axes));
  TS_TRY(bytecode_integers(b, from, &devices));
  devices.name = bytecode_token(b, from->at, MLIR_WORD, "device_ids", 10);
  out->kind = MLIR_ATTR_DICT;
  TS_TRY(TS_ARENA_ARRAY(b->arena, axes.count + 1, &out->items));
  for (size_t i = 0; i < axes.count; i++) out->items[out->count++] = axes.items[i];
  if (devices.count) out->items[out->count++] = devices;
  return TS_SUCCESS;
}

/* The size of the part of the axis before it (1: none), and its own size. */
static ts_status part(const bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  out->kind = MLIR_ATTR_PART;
  out->count = 2;
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  for (size_t i = 0; i < out->count; i++) {
    const uint8_t *at = from->at;
    int64_t number;
    TS_TRY(bytecode_signed(b, from, &number));
    TS_TRY(bytecode_set_number(b, at, number, false, &out->items[i]));
  }
  return TS_SUCCESS;
}

/* An axis, or a part of one. */
static ts_status axis(bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  const mlir_attr *of;
  const uint8_t *at;
  mlir_token name;
  uint64_t number;
  bool has_part;
  TS_TRY(bytecode_string(b, from, &name));
  at = from->at;
  TS_TRY(bytecode_flagged(b, from, &number, &has_part));
  out->kind = MLIR_ATTR_WORD;
  out->token = name;
  if (!has_part) return TS_SUCCESS;
  if (number >= b->attr_count) return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the part of an axis is no attribute");
  TS_TRY(bytecode_attr_at(b, (size_t)number, &of));
  if (of->kind != MLIR_ATTR_PART)
    return bytecode_error(b, at, TS_INVALID_ARGUMENT, "the part of an axis is another attribute");
  *out = *of;
  out->token = name;
  return TS_SUCCESS;
}

/* A list of dims. */
static ts_status sharding(bytecode *b, bytecode_bytes *from, bool with_terms, mlir_attr *out) {
  const mlir_attr *of;
  mlir_attr replicated = *out, terms = *out;
  TS_TRY(bytecode_get_attr(b, from, &of));
  if (of->kind != MLIR_ATTR_WORD) return TS_SUCCESS; /* a mesh without a name */
  TS_TRY(bytecode_list(b, from, out));
  TS_TRY(bytecode_list(b, from, &replicated));
  if (with_terms) TS_TRY(bytecode_list(b, from, &terms));
  out->token = of->token;
  if (terms.count) out->kind = MLIR_ATTR_TERMS;
  return TS_SUCCESS;
}

ts_status bytecode_read_sdy(bytecode *b, bytecode_bytes *from, uint64_t code, mlir_attr *out) {
  switch (code) {
  case MESH_AXIS: return mesh_axis(b, from, out);
  case MESH: return mesh(b, from, out);
  case PART: return part(b, from, out);
  case AXIS: return axis(b, from, out);
  case SHARDING: return sharding(b, from, false, out);
  case SHARDING_WITH_TERMS: return sharding(b, from, true, out);
  case MANUAL_AXES:
  case DIM:
  case PER_VALUE:
  case PER_VALUE_WITH_TERMS: return bytecode_list(b, from, out);
  }
  return TS_SUCCESS;
}
