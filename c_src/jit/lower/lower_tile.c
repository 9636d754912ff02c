/* Which launches are a TILE, and the order of their loops. */
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
  const int32_t line = n->loops.count - 2 - m->joined;
  int32_t most = -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    if (n->at[i].coef[line] != ts_maker_operand_size(m, i)) continue;
    if (most < 0 || elements_of(n, i) > elements_of(n, most)) most = i;
  }
  for (int32_t l = 1; most >= 0 && l < line - m->lined; l++)
    for (int32_t k = l; k > 0 && ts_affine_distance(&n->at[most], k - 1) < ts_affine_distance(&n->at[most], k); k--)
      ts_maker_move_loop(n, k, k - 1);
}

/* ---- rows and lines of several loops ---- */

/* Tiles whose rows or lines are shorter than so many vectors leave lanes empty that count. */
#define SHORT_VECTORS 4

/* The loops that are a line of an input, the innermost one first. */
typedef struct line {
  int32_t loop[TS_LOOP_MAX];
  int32_t count;
  int64_t length;
} line;

static int32_t find_step(const ts_collapsed *n, int32_t i, int64_t step) {
  for (int32_t l = n->loops.count - 2; l >= 0; l--)
    if (n->at[i].coef[l] == step) return l;
  return -1;
}

/* Finds as many loops as there are, or one that is long enough. */
static void find_line(const ts_maker *m, int32_t i, line *out) {
  const ts_collapsed *n = &m->collapsed;
  const int64_t size = ts_maker_operand_size(m, i), enough = SHORT_VECTORS * (int64_t)ts_target_host()->lanes;
  *out = (line){.length = 1};
  for (int32_t l; out->length < enough && (l = find_step(n, i, size * out->length)) >= 0;) {
    out->loop[out->count++] = l;
    out->length *= n->loops.extent[l];
  }
}

static bool is_in_line(const line *c, int32_t l) {
  for (int32_t i = 0; i < c->count; i++)
    if (c->loop[i] == l) return true;
  return false;
}

/* True for an input that tiles of these lines transpose. */
static bool has_line(const ts_maker *m, const line *c, int32_t i) {
  const ts_affine *at = &m->collapsed.at[i];
  const int64_t size = ts_maker_operand_size(m, i), last = at->coef[m->collapsed.loops.count - 1];
  int64_t step = size;
  if (i >= m->used.loads || last == 0 || last == size || last == -size) return false;
  for (int32_t k = 0; k < c->count; k++) {
    if (at->coef[c->loop[k]] != step) return false;
    step *= m->collapsed.loops.extent[c->loop[k]];
  }
  return true;
}

/* True where the loops from l on are one for the operands that are read or written along rows. */
static bool joins_row(const ts_maker *m, const line *c, int32_t l) {
  const ts_collapsed *n = &m->collapsed;
  for (int32_t i = 0; i < n->count; i++)
    if (n->at[i].coef[l] != n->at[i].coef[l + 1] * n->loops.extent[l + 1] && !has_line(m, c, i)) return false;
  return true;
}

/* Finds the first loop of a row. False where rows or lines do not fill a vector, or where each is one loop. */
static bool fits_row(const ts_maker *m, const line *c, int32_t *out_row) {
  const ts_collapsed *n = &m->collapsed;
  const int64_t lanes = ts_target_host()->lanes;
  const int32_t last = n->loops.count - 1;
  int32_t row = last;
  int64_t length = n->loops.extent[row];
  while (length < SHORT_VECTORS * lanes && row > 0 && !is_in_line(c, row - 1) && joins_row(m, c, row - 1))
    length *= n->loops.extent[--row];
  *out_row = row;
  return (c->count > 1 || row < last) && c->length >= lanes && length >= lanes;
}

/* The input with the most elements whose rows are neither one behind the other nor one element; -1: none. */
static int32_t find_apart(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  int32_t found = -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    const int64_t size = ts_maker_operand_size(m, i), step = n->at[i].coef[n->loops.count - 1];
    if (step == size || step == -size || step == 0) continue;
    if (found < 0 || elements_of(n, i) > elements_of(n, found)) found = i;
  }
  return found;
}

#define FAR_POINTS (INT64_C(1) << 20)
#define REGISTER_BYTES 64

/* Measured: where each vector takes two of the widest registers, tiles of such lines that are computed with other
 * operands, all of them far from the processor, are slower than rows whose elements are loaded one by one. */
static bool is_too_wide(const ts_maker *m, int32_t i, const line *c) {
  const int64_t bytes = ts_maker_operand_size(m, i) * ts_target_host()->lanes;
  return c->count > 1 && bytes > REGISTER_BYTES && !ts_maker_only_moves(m) &&
         ts_maker_points(&m->collapsed) > FAR_POINTS;
}

bool ts_maker_takes_tiles(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  if (m->lowering->in_place || last < 2 || !ts_maker_is_large(n)) return false;
  if (!stores_are_unit(m, last) || ts_maker_has_gather(m->nest)) return false;
  const int32_t apart = find_apart(m);
  line c;
  int32_t row = last;
  if (apart < 0) return false;
  find_line(m, apart, &c);
  while (c.count > 0 && !fits_row(m, &c, &row)) c.length /= n->loops.extent[c.loop[--c.count]];
  if (c.count == 0 || is_too_wide(m, apart, &c)) return false;
  /* Each loop of the line moves to the place before the row; those after it move up. */
  for (int32_t k = c.count; k-- > 0;) {
    const int32_t l = c.loop[k];
    ts_maker_move_loop(n, l, row - 1);
    for (int32_t j = 0; j < k; j++) c.loop[j] -= c.loop[j] > l;
  }
  m->joined = last - row;
  m->lined = c.count - 1;
  ts_maker_order_tiles(m);
  return true;
}
