#include "jit/lower/maker.h"

const ts_access *ts_maker_load(const ts_maker *m, int32_t used_slot) {
  for (size_t i = 0; i < m->nest->loads.count; i++) {
    if (m->used.load[i] == used_slot) return &m->nest->loads.data[i];
  }
  return NULL;
}

int64_t ts_maker_operand_size(const ts_maker *m, int32_t i) {
  int32_t stores = (int32_t)m->nest->stores.count;
  if (i < m->used.loads) return (int64_t)ts_dtype_size(ts_maker_load(m, i)->dtype);
  if (i < m->used.loads + stores) return (int64_t)ts_dtype_size(m->nest->stores.data[i - m->used.loads].to.dtype);
  return 1; /* indices have integer steps */
}

int64_t ts_maker_points(const ts_collapsed *n) {
  int64_t points = 1;
  for (int32_t l = 0; l < n->loops.count; l++) points *= n->loops.extent[l];
  return points;
}

bool ts_maker_is_large(const ts_collapsed *n) { return ts_maker_points(n) > TS_SMALL_POINTS; }

bool ts_maker_has_gather(const ts_nest *p) {
  for (size_t i = 0; i < p->nodes.count; i++) {
    if (p->nodes.data[i].kind == TS_NEST_GATHER) return true;
  }
  return false;
}

void ts_maker_move_loop(ts_collapsed *n, int32_t from, int32_t to) {
  int step = from < to ? 1 : -1;
  for (int32_t l = from; l != to; l += step) {
    int64_t extent = n->loops.extent[l];
    n->loops.extent[l] = n->loops.extent[l + step];
    n->loops.extent[l + step] = extent;
    for (int32_t i = 0; i < n->count; i++) {
      int64_t coef = n->at[i].coef[l];
      n->at[i].coef[l] = n->at[i].coef[l + step];
      n->at[i].coef[l + step] = coef;
    }
  }
}
