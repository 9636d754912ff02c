/* Reductions of elements that lie a few steps apart, along rows or columns: vectors have several of them, and shuffles
 * take these apart (emit_step.c). Code for one step is worth it in launches that are not small. */
#include "jit/interleave.h"
#include "jit/lower/maker.h"
#include "jit/session/target.h"

/* Shorter rows have no vectors that shuffles put together. */
#define LEAST_POINTS 2048
#define LEAST_VECTORS 2
/* Fewer columns fill few vectors. */
#define LEAST_COLUMNS 32

/* True where vectors have several of a row's elements, or of its columns': the launch takes them apart. */
static bool is_near(const ts_nest *p, const ts_access *load) {
  const int64_t most = TS_NEAR_STEP * (int64_t)ts_dtype_size(load->dtype);
  const int32_t last = p->loops.count - 1;
  if (ts_affine_distance(&load->at, last) <= most) return true;
  for (int32_t l = 0; l < p->kept && p->kept == last; l++)
    if (p->loops.extent[l] >= LEAST_COLUMNS && load->at.coef[l] != 0 && ts_affine_distance(&load->at, l) <= most)
      return true;
  return false;
}

/* ---- rows of scattered elements ---- */

/* A copy of elements that are read few at a time takes less time than such reads while they are reduced. */
#define FEW_ELEMENTS 4
/* Rows of neighbours that a few elements separate are read as they are, unless they are long. */
#define FEW_STEPS 8
#define LONG_ROW 1024
/* Bytes of a short row. Of longer ones a copy takes as much time as it saves, which is more where indices are found. */
#define SHORT_ROW 8 /* elements, where nothing is found */
#define SHORT_BYTES 40
#define SHORT_BYTES_FOUND 64

/* How many elements of a load lie one behind the other. */
static int64_t length_of_run(const ts_loops *loops, const ts_access *load) {
  const int64_t size = (int64_t)ts_dtype_size(load->dtype);
  int64_t run = 1, before;
  do {
    before = run;
    for (int32_t l = 0; l < loops->count; l++) {
      if (loops->extent[l] > 1 && ts_affine_distance(&load->at, l) == run * size) {
        run *= loops->extent[l];
        break;
      }
    }
  } while (run != before);
  return run;
}

static int64_t points_of(const ts_nest *p, const ts_access *load) { return ts_affine_elements(&load->at, &p->loops); }

/* Rows of a few neighbours, apart from each other: of a copy, groups of them fill vectors. */
static bool has_short_rows(const ts_nest *p, const ts_access *load, const ts_nest_node *reduce) {
  const int32_t last = p->loops.count - 1;
  const int64_t row = p->loops.extent[last], size = (int64_t)ts_dtype_size(load->dtype);
  const int64_t most = reduce->kind == TS_NEST_ARG ? SHORT_BYTES_FOUND : SHORT_BYTES;
  if (p->kept != last || ts_interleave_factor(row) == 0 || row * size > most) return false;
  if (reduce->kind != TS_NEST_ARG && row > SHORT_ROW) return false;
  return points_of(p, load) >= LEAST_POINTS && ts_affine_distance(&load->at, last) == size &&
         length_of_run(&p->loops, load) == row;
}

bool ts_lowering_is_worth_copy(const ts_nest *p, const ts_access *load, const ts_nest_node *reduce) {
  const int32_t last = p->loops.count - 1;
  const int64_t step = load->at.coef[last], from = (int64_t)ts_dtype_size(load->dtype);
  const int64_t size = (int64_t)ts_dtype_size(p->nodes.data[reduce->a].dtype);
  if (has_short_rows(p, load, reduce)) return true;
  if (length_of_run(&p->loops, load) > FEW_ELEMENTS || points_of(p, load) <= TS_SMALL_POINTS) return false;
  if (is_near(p, load)) return false;
  if (step > FEW_STEPS * from || -step > FEW_STEPS * from) return true;
  return p->loops.extent[last] >= LONG_ROW && size <= from && !(reduce->kind == TS_NEST_ARG && size <= 2);
}

int32_t ts_lowering_find_columns(const ts_nest *p) {
  const ts_access *most = NULL;
  for (size_t i = 0; i < p->loads.count; i++)
    if (!most || points_of(p, &p->loads.data[i]) > points_of(p, most)) most = &p->loads.data[i];
  for (int32_t l = 0; most && l < p->kept; l++)
    if (p->loops.extent[l] >= LEAST_COLUMNS && ts_affine_distance(&most->at, l) == (int64_t)ts_dtype_size(most->dtype))
      return l;
  return -1;
}

/* Columns are more than the elements of a row, or enough for whole vectors. */
int32_t ts_maker_near_columns(const ts_collapsed *n, int32_t operand) {
  const ts_affine *at = &n->at[operand];
  const int64_t lanes = ts_target_host()->lanes, row = n->loops.extent[n->kept], least = row < lanes ? row : lanes;
  int32_t found = n->kept;
  for (int32_t l = 0; l < n->kept; l++)
    if (at->coef[l] != 0 && n->loops.extent[l] >= least && ts_affine_distance(at, l) < ts_affine_distance(at, found))
      found = l;
  return found == n->kept ? -1 : found;
}

/* A vector of few columns has few numbers, and beside them their indices. Vectors of a row are full, and a long row is
 * searched by its numbers alone. */
bool ts_maker_finds_in_near(const ts_maker *m, int32_t operand) {
  const ts_collapsed *n = &m->collapsed;
  const int64_t size = ts_maker_operand_size(m, operand);
  if (size > 8 || n->loops.extent[n->kept] < LEAST_VECTORS * ts_target_host()->lanes) return false;
  if (ts_maker_points(n) < LEAST_POINTS) return false;
  if (ts_affine_distance(&n->at[operand], n->kept) > TS_NEAR_STEP * size) return false;
  for (size_t i = 0; i < m->nest->nodes.count; i++)
    if (m->used.node[i] >= 0 && m->nest->nodes.data[i].kind == TS_NEST_ARG) return true;
  return false;
}

bool ts_maker_is_near(const ts_maker *m, int32_t i) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  const int64_t size = ts_maker_operand_size(m, i), step = n->at[i].coef[last];
  if (i >= m->used.loads || size > 8 || step % size != 0 || !m->nest->reduces || m->members > 0) return false;
  if (m->columns == TS_COLUMNS_APART || m->columns == TS_COLUMNS_BLOCKS) return false;
  if (n->loops.extent[last] < LEAST_VECTORS * ts_target_host()->lanes) return false;
  if (ts_maker_points(n) < LEAST_POINTS) return false;
  return ts_affine_distance(&n->at[i], last) >= 2 * size && ts_affine_distance(&n->at[i], last) <= TS_NEAR_STEP * size;
}

bool ts_maker_has_near(const ts_maker *m) {
  for (int32_t i = 0; i < m->used.loads; i++)
    if (ts_maker_is_near(m, i)) return true;
  return false;
}
