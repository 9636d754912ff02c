#include "jit/emit/emit_cell.h"

#define MOST_LANES 128

static LLVMTypeRef integer_of(ts_emit *e, int64_t bytes) {
  return LLVMIntTypeInContext(e->context, 8 * (unsigned)bytes);
}

static ts_v lane_number(ts_emit *e, int64_t lane) {
  return LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned long long)lane, 0);
}

/* Bytes of the value: a power of two, and at least the smallest vector. */
static int64_t value_bytes(int64_t bytes) {
  int64_t size = 16;
  while (size < bytes) size *= 2;
  return size;
}

static LLVMTypeRef vector_of(ts_emit *e, int64_t bytes, int64_t width) {
  return LLVMVectorType(integer_of(e, width), (unsigned)(bytes / width));
}

LLVMTypeRef ts_emit_cell_type(ts_emit *e, int64_t bytes) { return vector_of(e, value_bytes(bytes), 4); }

void ts_emit_cell_begin(ts_emit *e, ts_emit_cell *cell, int64_t bytes) {
  LLVMTypeRef type = ts_emit_cell_type(e, bytes);
  *cell = (ts_emit_cell){.address = ts_emit_alloca(e, type), .bytes = bytes, .value = LLVMConstNull(type)};
}

/* ---- whether only cells have been read and changed ---- */

static bool is_exposed(ts_v address) {
  for (LLVMUseRef use = LLVMGetFirstUse(address); use; use = LLVMGetNextUse(use)) {
    ts_v user = LLVMGetUser(use);
    if (!LLVMIsAGetElementPtrInst(user) || is_exposed(user)) return true;
  }
  return false;
}

static void erase(ts_v address) {
  for (LLVMUseRef use; (use = LLVMGetFirstUse(address));) erase(LLVMGetUser(use));
  LLVMInstructionEraseFromParent(address);
}

void ts_emit_cell_end(ts_emit_cell *cell) {
  cell->exposed |= is_exposed(cell->address);
  if (!cell->exposed) erase(cell->address);
}

/* ---- addresses ---- */

static int64_t bytes_of(LLVMTypeRef type) {
  switch (LLVMGetTypeKind(type)) {
  case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(type) / 8;
  case LLVMFloatTypeKind: return 4;
  case LLVMDoubleTypeKind: return 8;
  default: return 0;
  }
}

/* The cell with the address, and the distance from its beginning; `*constant` is false where that is not known. */
static ts_emit_cell *find(ts_emit *e, ts_v address, int64_t *distance, bool *constant) {
  *distance = 0;
  *constant = true;
  for (; LLVMIsAGetElementPtrInst(address); address = LLVMGetOperand(address, 0)) {
    ts_v index = LLVMGetOperand(address, 1);
    int64_t size = bytes_of(LLVMGetGEPSourceElementType(address));
    if (LLVMIsAConstantInt(index) && size > 0 && LLVMGetNumOperands(address) == 2)
      *distance += LLVMConstIntGetSExtValue(index) * size;
    else
      *constant = false;
  }
  for (int32_t i = 0; i < e->cells->count; i++)
    if (e->cells->data[i].address == address) return &e->cells->data[i];
  return NULL;
}

/* The lanes of an access, as elements of its cell. */
typedef struct lanes {
  int64_t width, from, step, count;
} lanes;

static bool is_constant(ts_v number) { return !number || LLVMIsAConstantInt(number); }

/* False where the cell cannot tell which lanes: it is exposed then. */
static bool find_lanes(ts_emit *e, const ts_emit_cell *cell, const ts_emit_access *a, int64_t distance, lanes *out) {
  int64_t width = (int64_t)ts_dtype_size(a->type), step = a->stride ? 0 : width;
  if (!is_constant(a->part) || !is_constant(a->stride) || width > 8) return false;
  if (a->stride) step = LLVMConstIntGetSExtValue(a->stride);
  *out = (lanes){width, distance / width, step / width, e->lanes};
  if (a->part) out->count = LLVMConstIntGetSExtValue(a->part);
  int64_t last = out->from + (out->count - 1) * out->step, all = value_bytes(cell->bytes) / width;
  return distance % width == 0 && step % width == 0 && out->count > 0 && out->from >= 0 && out->from < all &&
         last >= 0 && last < all;
}

static ts_emit_cell *cell_of(ts_emit *e, const ts_emit_access *a, lanes *out) {
  int64_t distance;
  bool constant;
  if (!e->cells || e->cells->count == 0) return NULL;
  ts_emit_cell *cell = find(e, a->address, &distance, &constant);
  if (cell && !(constant && find_lanes(e, cell, a, distance, out))) {
    cell->exposed = true;
    return NULL;
  }
  return cell;
}

/* ---- loads and stores ---- */

/* Lane i of the result is lane at[i] of `a`, or of zeros where that is negative. */
static ts_v picked(ts_emit *e, ts_v a, const int64_t *at, int64_t count) {
  LLVMValueRef mask[MOST_LANES];
  int64_t length = LLVMGetVectorSize(LLVMTypeOf(a));
  bool same = count == length;
  for (int64_t i = 0; i < count; i++) {
    mask[i] = lane_number(e, at[i] < 0 ? length : at[i]);
    same &= at[i] == i;
  }
  if (same) return a;
  return LLVMBuildShuffleVector(e->b, a, LLVMConstNull(LLVMTypeOf(a)), LLVMConstVector(mask, (unsigned)count), "");
}

ts_v ts_emit_cell_load(ts_emit *e, const ts_emit_access *from) {
  lanes l;
  ts_emit_cell *cell = cell_of(e, from, &l);
  int64_t at[MOST_LANES];
  if (!cell) return NULL;
  ts_v elements = LLVMBuildBitCast(e->b, cell->value, vector_of(e, value_bytes(cell->bytes), l.width), "");
  for (int64_t i = 0; i < e->lanes; i++) at[i] = i < l.count ? l.from + i * l.step : -1;
  LLVMTypeRef type = LLVMVectorType(ts_emit_memory_type(e, from->type), (unsigned)e->lanes);
  return LLVMBuildBitCast(e->b, picked(e, elements, at, e->lanes), type, "cell");
}

bool ts_emit_cell_store(ts_emit *e, const ts_emit_access *to, ts_v memory) {
  lanes l;
  ts_emit_cell *cell = cell_of(e, to, &l);
  int64_t at[MOST_LANES];
  LLVMValueRef mask[MOST_LANES];
  if (cell && e->cells->depth > 0) cell->exposed = true;
  if (!cell || cell->exposed) return false;
  int64_t size = value_bytes(cell->bytes), length = size / l.width;
  ts_v lanes_in = LLVMBuildBitCast(e->b, memory, vector_of(e, e->lanes * l.width, l.width), "");
  for (int64_t i = 0; i < length; i++) at[i] = -1;
  for (int64_t i = 0; i < l.count; i++) at[l.from + i * l.step] = i;
  ts_v elements = picked(e, lanes_in, at, length);
  if (l.count * l.width < cell->bytes) {
    ts_v before = LLVMBuildBitCast(e->b, cell->value, LLVMTypeOf(elements), "");
    for (int64_t i = 0; i < length; i++) mask[i] = lane_number(e, at[i] < 0 ? i : length + i);
    elements = LLVMBuildShuffleVector(e->b, before, elements, LLVMConstVector(mask, (unsigned)length), "");
  }
  cell->value = LLVMBuildBitCast(e->b, elements, ts_emit_cell_type(e, cell->bytes), "");
  return true;
}

ts_v ts_emit_cell_first(ts_emit *e, const ts_emit_cell *cell, ts_dtype type) {
  int64_t width = (int64_t)ts_dtype_size(type);
  ts_v elements = LLVMBuildBitCast(e->b, cell->value, vector_of(e, value_bytes(cell->bytes), width), "");
  return LLVMBuildExtractElement(e->b, elements, lane_number(e, 0), "");
}

/* ---- memory ---- */

/* The largest power of two that divides `bytes`, and at most `most`. */
static int64_t unit_of(int64_t bytes, int64_t most) {
  int64_t unit = most;
  while (bytes % unit != 0) unit /= 2;
  return unit;
}

static ts_v at_byte(ts_emit *e, ts_v address, int64_t bytes) {
  ts_v by = LLVMConstInt(LLVMInt64TypeInContext(e->context), (unsigned long long)bytes, 0);
  return bytes == 0 ? address : LLVMBuildGEP2(e->b, LLVMInt8TypeInContext(e->context), address, &by, 1, "");
}

/* The bytes are pieces of powers of two, the largest first. */
static int64_t piece_of(int64_t rest) { return (int64_t)1 << (63 - __builtin_clzll((unsigned long long)rest)); }

ts_v ts_emit_cell_read_memory(ts_emit *e, int64_t bytes, ts_v from) {
  int64_t unit = unit_of(bytes, 4), size = value_bytes(bytes), length = size / unit;
  ts_v value = LLVMConstNull(vector_of(e, size, unit));
  LLVMValueRef mask[MOST_LANES];
  int64_t to[MOST_LANES];
  for (int64_t at = 0; at < bytes;) {
    int64_t piece = piece_of(bytes - at), first = at / unit, count = piece / unit;
    ts_v part = LLVMBuildLoad2(e->b, vector_of(e, piece, unit), at_byte(e, from, at), "");
    LLVMSetAlignment(part, 1);
    for (int64_t i = 0; i < length; i++) to[i] = i < first || i >= first + count ? -1 : i - first;
    part = picked(e, part, to, length);
    for (int64_t i = 0; i < length; i++) mask[i] = lane_number(e, to[i] < 0 ? i : length + i);
    value = LLVMBuildShuffleVector(e->b, value, part, LLVMConstVector(mask, (unsigned)length), "");
    at += piece;
  }
  return LLVMBuildBitCast(e->b, value, ts_emit_cell_type(e, bytes), "");
}

void ts_emit_cell_write_memory(ts_emit *e, const ts_emit_cell *cell, ts_v to) {
  int64_t unit = unit_of(cell->bytes, 4), size = value_bytes(cell->bytes);
  ts_v value = LLVMBuildBitCast(e->b, cell->value, vector_of(e, size, unit), "");
  int64_t from[MOST_LANES];
  for (int64_t at = 0; at < cell->bytes;) {
    int64_t piece = piece_of(cell->bytes - at), count = piece / unit;
    for (int64_t i = 0; i < count; i++) from[i] = at / unit + i;
    LLVMSetAlignment(LLVMBuildStore(e->b, picked(e, value, from, count), at_byte(e, to, at)), 1);
    at += piece;
  }
}
