/* The order of a TILE's outer loops. */
#include "jit/lower/maker.h"

static int64_t elements_of(const ts_collapsed *n, int32_t i) { return ts_affine_elements(&n->at[i], &n->loops); }

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
