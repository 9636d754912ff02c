/* Whether a launch is a JOINED: the points of short rows, or elements few steps apart, fill whole vectors. */
#include "jit/lower/maker.h"
#include "jit/session/target.h"

/* Of the elements that a stride passes over, vectors have more than one in so many. */
#define JOINED_STEP 4
#define LEAST_JOINED_ROWS 4
/* Code for short rows is worth it from so many points on, where they are computed. Rows that are only moved are left to
 * the launches that read or write them. */
#define LEAST_POINTS 8192

bool ts_maker_only_moves(const ts_maker *m) {
  for (size_t i = 0; i < m->nest->nodes.count; i++)
    if (m->used.node[i] >= 0 && m->nest->nodes.data[i].kind != TS_NEST_LOAD) return false;
  return true;
}

static int64_t lanes_of(const ts_maker *m) {
  int64_t bytes = 1;
  for (int32_t i = 0; i < m->used.loads + (int32_t)m->nest->stores.count; i++)
    bytes = ts_maker_operand_size(m, i) > bytes ? ts_maker_operand_size(m, i) : bytes;
  return ts_maker_only_moves(m) ? ts_target_host()->lanes * 4 / bytes : ts_target_host()->lanes;
}

static bool is_near(int64_t coef, int64_t size) {
  return coef % size == 0 && coef / size <= TS_JOINED_STEP && coef / size >= -TS_JOINED_STEP;
}

/* True when the results of loops from `row` on lie one behind the other. */
static bool is_dense_from(const ts_maker *m, int32_t row) {
  const ts_collapsed *n = &m->collapsed;
  for (int32_t i = m->used.loads; i < m->used.loads + (int32_t)m->nest->stores.count; i++) {
    int64_t step = ts_maker_operand_size(m, i);
    for (int32_t l = n->loops.count - 1; l >= row; l--) {
      if (n->at[i].coef[l] != step) return false;
      step *= n->loops.extent[l];
    }
  }
  return true;
}

/* True when some operand steps over few elements along the last loop, and none over more. */
static bool has_short_steps(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  bool found = false;
  for (int32_t i = 0; i < m->used.loads; i++) {
    const int64_t size = ts_maker_operand_size(m, i), coef = n->at[i].coef[n->loops.count - 1];
    const int64_t step = coef < 0 ? -coef / size : coef / size;
    if (coef % size != 0 || step > JOINED_STEP) return false;
    found |= step > 1;
  }
  return found;
}

/* True when a row of some operand is neither one behind the other nor one element. */
static bool has_steps(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  for (int32_t i = 0; i < m->used.loads; i++) {
    const int64_t size = ts_maker_operand_size(m, i), coef = n->at[i].coef[n->loops.count - 1];
    if (coef != 0 && coef != size && coef != -size) return true;
  }
  return false;
}

/* True where the end of a row takes no longer than a vector: without masks, a part of one that is computed takes as
 * long as several. */
static bool ends_well(const ts_maker *m, int64_t length, int64_t lanes) {
  return ts_target_host()->isa == TS_ISA_AVX512 || ts_maker_only_moves(m) || length % lanes == 0;
}

/* How many loops are the points of a row; -1: none. */
static int32_t find_points(const ts_maker *m, bool transposes) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  const int64_t lanes = lanes_of(m), most = 4 * ts_target_host()->lanes, length = n->loops.extent[last];
  int64_t points = length;
  int32_t joined = 1;
  if (length > lanes / 2 && (length > ts_target_host()->lanes || !has_steps(m)) &&
      (ends_well(m, length, lanes) || length > most || has_short_steps(m)))
    return has_short_steps(m) ? 0 : -1;
  if (last < 1 || points > most || (transposes && length >= TS_TILE_ROWS)) return -1;
  while (joined < last && joined < TS_JOINED_DIMS && points * n->loops.extent[last - joined] <= most)
    points *= n->loops.extent[last - joined++];
  return joined;
}

bool ts_maker_joins(ts_maker *m, bool transposes) {
  const ts_collapsed *n = &m->collapsed;
  const bool enough = ts_maker_only_moves(m) ? ts_maker_is_large(n) : ts_maker_points(n) >= LEAST_POINTS;
  if (m->lowering->in_place || n->loops.count == 0 || !enough || ts_maker_has_gather(m->nest) || m->used.indices > 0)
    return false;
  for (int32_t i = 0; i < n->count; i++)
    if (ts_maker_operand_size(m, i) > 8) return false;
  const int32_t joined = find_points(m, transposes), row = n->loops.count - 1 - joined;
  if (joined < 0 || n->loops.extent[row] < LEAST_JOINED_ROWS || !is_dense_from(m, row)) return false;
  m->joined = joined;
  m->members = 1;
  for (int32_t l = row + 1; l < n->loops.count; l++) m->members *= (int32_t)n->loops.extent[l];
  for (m->rows = 1; m->rows < TS_JOINED_ROWS && 2 * m->rows <= n->loops.extent[row];) m->rows *= 2;
  return true;
}

ts_kernel_operand ts_maker_describe_joined(const ts_maker *m, int32_t i, ts_dtype dtype) {
  const ts_collapsed *n = &m->collapsed;
  ts_kernel_operand operand = {.dtype = dtype};
  const int64_t size = ts_maker_operand_size(m, i);
  for (int32_t l = 0; l < n->loops.count; l++) {
    const int64_t coef = n->at[i].coef[l];
    const bool near = l >= n->loops.count - 1 - m->joined && is_near(coef, size);
    operand.stride[l] = coef == 0 ? TS_STRIDE_ZERO : near ? TS_STRIDE_NEAR : TS_STRIDE_ANY;
    operand.step[l] = near ? (int8_t)(coef / size) : 0;
  }
  return operand;
}
