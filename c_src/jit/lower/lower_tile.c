/* Which launches are a TILE, and the order of their outer loops. */
#include "jit/lower/maker.h"
#include "jit/session/target.h"

static int64_t elements_of(const ts_collapsed *n, int32_t i) { return ts_affine_elements(&n->at[i], &n->loops); }

static bool stores_are_unit(const ts_maker *m, int32_t l) {
  for (int32_t i = 0; i < (int32_t)m->nest->stores.count; i++) {
    int32_t k = m->used.loads + i;
    if (m->collapsed.at[k].coef[l] != ts_maker_operand_size(m, k)) return false;
  }
  return true;
}

/* Tiles of fewer columns than lanes are still faster than rows of a MAP, which begin and end as often. Tiles of few
 * rows are not: rows of a MAP are long, and gather. */
#define TILE_COLUMNS 2

int32_t ts_maker_find_transposed(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  int32_t last = n->loops.count - 1, lanes = ts_target_host()->lanes, found = -1;
  int64_t most = 0;
  if (last < 1 || n->loops.extent[last] < TILE_COLUMNS || !stores_are_unit(m, last) || ts_maker_has_gather(m->nest))
    return -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    int64_t size = ts_maker_operand_size(m, i);
    int64_t step = n->at[i].coef[last];
    if (step == size || step == -size || step == 0 || elements_of(n, i) <= most) continue;
    for (int32_t l = 0; l < last; l++) {
      if (n->at[i].coef[l] != size || n->loops.extent[l] < TS_TILE_ROWS) continue;
      if (n->loops.extent[l] < lanes && n->loops.extent[last] < lanes) continue;
      found = l;
      most = elements_of(n, i);
    }
  }
  return found;
}

/* A loop whose elements a large input has one behind the other, from its end to its start; -1 without one. */
static int32_t find_downward(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  if (last < 1 || n->loops.extent[last] < TS_TILE_ROWS) return -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    for (int32_t l = 0; l < last; l++)
      if (n->at[i].coef[l] == -ts_maker_operand_size(m, i) && n->loops.extent[l] >= TS_TILE_ROWS) return l;
  }
  return -1;
}

static void run_backwards(ts_collapsed *n, int32_t l) {
  for (int32_t i = 0; i < n->count; i++) {
    n->at[i].offset += (n->loops.extent[l] - 1) * n->at[i].coef[l];
    n->at[i].coef[l] = -n->at[i].coef[l];
  }
}

bool ts_maker_transposes(ts_maker *m) {
  if (ts_maker_find_transposed(m) >= 0) return true;
  const int32_t l = find_downward(m);
  if (l < 0) return false;
  run_backwards(&m->collapsed, l);
  if (ts_maker_find_transposed(m) >= 0) return true;
  run_backwards(&m->collapsed, l);
  return false;
}

void ts_maker_order_tiles(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  int32_t most = -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    if (n->at[i].coef[last - 1] != ts_maker_operand_size(m, i)) continue;
    if (most < 0 || elements_of(n, i) > elements_of(n, most)) most = i;
  }
  for (int32_t l = 1; most >= 0 && l + 1 < last; l++)
    for (int32_t k = l; k > 0 && ts_affine_distance(&n->at[most], k - 1) < ts_affine_distance(&n->at[most], k); k--)
      ts_maker_move_loop(n, k, k - 1);
}
