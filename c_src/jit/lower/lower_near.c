/* Reductions of elements that lie a few steps apart, along rows or columns: vectors have several of them, and shuffles
 * take these apart (emit_step.c). Code for one step is worth it in launches that are not small. */
#include "jit/lower/maker.h"
#include "jit/session/target.h"

/* Shorter rows have no vectors that shuffles put together. */
#define LEAST_POINTS 2048
#define LEAST_VECTORS 2
/* Fewer columns fill few vectors. */
#define LEAST_COLUMNS 32

static int64_t distance(const ts_affine *at, int32_t l) { return at->coef[l] < 0 ? -at->coef[l] : at->coef[l]; }

bool ts_lowering_is_near(const ts_nest *p, const ts_access *load) {
  const int64_t most = TS_NEAR_STEP * (int64_t)ts_dtype_size(load->dtype);
  const int32_t last = p->loops.count - 1;
  if (distance(&load->at, last) <= most) return true;
  for (int32_t l = 0; l < p->kept && p->kept == last; l++)
    if (p->loops.extent[l] >= LEAST_COLUMNS && load->at.coef[l] != 0 && distance(&load->at, l) <= most) return true;
  return false;
}

/* Columns are more than the elements of a row, or enough for whole vectors. */
int32_t ts_maker_near_columns(const ts_collapsed *n, int32_t operand) {
  const ts_affine *at = &n->at[operand];
  const int64_t lanes = ts_target_host()->lanes, row = n->loops.extent[n->kept], least = row < lanes ? row : lanes;
  int32_t found = n->kept;
  for (int32_t l = 0; l < n->kept; l++)
    if (at->coef[l] != 0 && n->loops.extent[l] >= least && distance(at, l) < distance(at, found)) found = l;
  return found == n->kept ? -1 : found;
}

bool ts_maker_is_near(const ts_maker *m, int32_t i) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  const int64_t size = ts_maker_operand_size(m, i), step = n->at[i].coef[last];
  if (i >= m->used.loads || size > 8 || step % size != 0 || !m->nest->reduces || m->members > 0) return false;
  if (m->columns == TS_COLUMNS_APART || n->loops.extent[last] < LEAST_VECTORS * ts_target_host()->lanes) return false;
  if (ts_maker_points(n) < LEAST_POINTS) return false;
  return distance(&n->at[i], last) >= 2 * size && distance(&n->at[i], last) <= TS_NEAR_STEP * size;
}

bool ts_maker_has_near(const ts_maker *m) {
  for (int32_t i = 0; i < m->used.loads; i++)
    if (ts_maker_is_near(m, i)) return true;
  return false;
}
