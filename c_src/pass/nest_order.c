/* Rows whose elements may be reduced in any order: their loops are put into the order of memory, so that views with
 * reversed, permuted or skipped axes are read as what they are views of. */
#include "ir/combiner.h"
#include "pass/nest.h"

static bool is_orderless(const ts_nest *nest) {
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_node *node = &nest->nodes.data[i];
    if (!ts_nest_node_reduces(node)) continue;
    if (!ts_combiner_is_orderless(node->op, nest->nodes.data[node->a].dtype)) return false;
  }
  return true;
}

/* The index maps of the elements: loads, then indices. Results do not move along a row. */
static size_t map_count(const ts_nest *nest) { return nest->loads.count + nest->indices.count; }

static ts_affine *map_of(const ts_nest *nest, size_t i) {
  return i < nest->loads.count ? &nest->loads.data[i].at : &nest->indices.data[i - nest->loads.count];
}

/* True when loops l and l + 1 are one for every access. */
static bool follows(const ts_nest *nest, int32_t l) {
  for (size_t i = 0; i < map_count(nest); i++) {
    const int64_t *coef = map_of(nest, i)->coef;
    if (coef[l] != coef[l + 1] * nest->loops.extent[l + 1]) return false;
  }
  return true;
}

/* ---- direction ---- */

static bool runs_down(const ts_nest *nest, int32_t l) {
  bool down = false;
  for (size_t i = 0; i < nest->loads.count; i++) {
    const int64_t coef = nest->loads.data[i].at.coef[l];
    if (coef > 0) return false;
    down |= coef < 0;
  }
  return down;
}

static void turn(ts_nest *nest, int32_t l) {
  for (size_t i = 0; i < map_count(nest); i++) {
    ts_affine *at = map_of(nest, i);
    at->offset += at->coef[l] * (nest->loops.extent[l] - 1);
    at->coef[l] = -at->coef[l];
  }
}

/* ---- order ---- */

/* The load with the most bytes in a row; NULL: none moves along it. */
static const ts_affine *find_widest(const ts_nest *nest) {
  const ts_affine *widest = NULL;
  int64_t most = 0;
  for (size_t i = 0; i < nest->loads.count; i++) {
    const ts_access *load = &nest->loads.data[i];
    int64_t bytes = (int64_t)ts_dtype_size(load->dtype);
    bool moves = false;
    for (int32_t l = nest->kept; l < nest->loops.count; l++) {
      if (load->at.coef[l] == 0) continue;
      bytes *= nest->loops.extent[l];
      moves = true;
    }
    if (!moves || bytes <= most) continue;
    widest = &load->at;
    most = bytes;
  }
  return widest;
}

/* Loops of one element come first, then those along which the load does not move, then from its longest step to its
 * shortest. */
static int64_t rank_of(const ts_nest *nest, const ts_affine *at, int32_t l) {
  if (nest->loops.extent[l] == 1) return INT64_MAX;
  if (at->coef[l] == 0) return INT64_MAX - 1;
  return ts_affine_distance(at, l);
}

static void swap(int64_t *a, int64_t *b) {
  const int64_t x = *a;
  *a = *b;
  *b = x;
}

static void swap_loops(ts_nest *nest, int32_t l) {
  swap(&nest->loops.extent[l], &nest->loops.extent[l + 1]);
  for (size_t i = 0; i < map_count(nest); i++) {
    int64_t *coef = map_of(nest, i)->coef;
    swap(&coef[l], &coef[l + 1]);
  }
}

static void sort_loops(ts_nest *nest, const ts_affine *at) {
  for (int32_t end = nest->kept + 1; end < nest->loops.count; end++) {
    for (int32_t l = end; l > nest->kept && rank_of(nest, at, l - 1) < rank_of(nest, at, l); l--)
      swap_loops(nest, l - 1);
  }
}

/* The step of a loop of one element has no meaning. Chooses the step with which the loop follows the next loop. */
static void join_single(ts_nest *nest) {
  for (int32_t l = nest->loops.count - 2; l >= nest->kept; l--) {
    for (size_t i = 0; i < map_count(nest) && nest->loops.extent[l] == 1; i++) {
      int64_t *coef = map_of(nest, i)->coef;
      coef[l] = coef[l + 1] * nest->loops.extent[l + 1];
    }
  }
}

void ts_nest_order_row(ts_nest *nest) {
  if (!is_orderless(nest) || ts_nest_stores_points(nest)) return;
  for (int32_t l = nest->kept; l < nest->loops.count; l++) {
    if (runs_down(nest, l)) turn(nest, l);
  }
  const ts_affine *widest = find_widest(nest);
  if (widest) sort_loops(nest, widest);
  join_single(nest);
}

/* ---- groups ---- */

/* With fewer elements reduced first, the partial results would be no smaller than a copy, about. */
#define LEAST_FIRST 4
#define SHORT_ROW 64 /* a row at the end with fewer elements is short */

/* Shorter pieces cost more than a copy of the elements, which may transpose. */
#define LEAST_PIECE 16

bool ts_nest_is_in_pieces(const ts_nest *nest) {
  int32_t groups = 1, last = nest->loops.count - 1;
  int64_t piece = 1;
  for (int32_t l = last; l > nest->kept; l--) {
    if (groups == 1) piece *= nest->loops.extent[l];
    groups += !follows(nest, l - 1);
  }
  for (size_t i = 0; i < nest->loads.count; i++) {
    const int64_t step = nest->loads.data[i].at.coef[last];
    if (step != 0 && step != (int64_t)ts_dtype_size(nest->loads.data[i].dtype)) return false;
  }
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_kind kind = nest->nodes.data[i].kind;
    if (kind == TS_NEST_GATHER || kind == TS_NEST_ARG) return false;
  }
  return groups == 2 && piece >= LEAST_PIECE;
}

/* The longest group. A short group at the end is usually a row. Another group is preferred to it, since a kernel adds
 * the rows of that group by whole vectors. */
bool ts_nest_find_group(const ts_nest *nest, ts_nest_group *out) {
  *out = (ts_nest_group){0, 0, 0};
  if (!is_orderless(nest)) return false;
  for (int32_t l = nest->kept, end; l < nest->loops.count; l = end) {
    int64_t extent = nest->loops.extent[l];
    for (end = l + 1; end < nest->loops.count && follows(nest, end - 1); end++) extent *= nest->loops.extent[end];
    bool is_short = end == nest->loops.count && extent < SHORT_ROW && out->extent >= LEAST_FIRST;
    if (extent > out->extent && !is_short) *out = (ts_nest_group){l, end, extent};
  }
  return out->extent >= LEAST_FIRST;
}
