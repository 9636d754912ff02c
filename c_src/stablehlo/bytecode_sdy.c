/* Meshes and shardings in bytecode: the codes of the dialect sdy. They become the nodes that the text has
 * (mlir_sharding.c). */
#include "stablehlo/bytecode.h"

enum { MANUAL_AXES = 0, MESH_AXIS = 1, MESH = 2, AXIS = 4, DIM = 5, SHARDING = 6, PER_VALUE = 7 };
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

/* A part of an axis is a dictionary, as in the text. */
static ts_status axis(const bytecode *b, bytecode_bytes *from, mlir_attr *out) {
  uint64_t part;
  bool has_part;
  TS_TRY(bytecode_string(b, from, &out->token));
  TS_TRY(bytecode_flagged(b, from, &part, &has_part));
  out->kind = has_part ? MLIR_ATTR_DICT : MLIR_ATTR_WORD;
  return TS_SUCCESS;
}

/* A sharding of terms that are not summed yet has no form here. */
static ts_status sharding(bytecode *b, bytecode_bytes *from, bool with_terms, mlir_attr *out) {
  const mlir_attr *of;
  mlir_attr replicated = *out, terms = *out;
  TS_TRY(bytecode_get_attr(b, from, &of));
  if (of->kind != MLIR_ATTR_WORD) return TS_SUCCESS; /* a mesh without a name */
  TS_TRY(bytecode_list(b, from, out));
  TS_TRY(bytecode_list(b, from, &replicated));
  if (with_terms) TS_TRY(bytecode_list(b, from, &terms));
  out->token = of->token;
  if (terms.count) out->kind = MLIR_ATTR_UNIT;
  return TS_SUCCESS;
}

ts_status bytecode_read_sdy(bytecode *b, bytecode_bytes *from, uint64_t code, mlir_attr *out) {
  switch (code) {
  case MESH_AXIS: return mesh_axis(b, from, out);
  case MESH: return mesh(b, from, out);
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
