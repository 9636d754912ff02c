/* Makes one kernel launch from a loop nest: eliminates dead nodes, collapses loops, chooses the kernel's kind and the
 * order of its dims, and writes description and arguments. */
#include "jit/interleave.h"
#include "jit/lower/maker.h"
#include "jit/session/target.h"

#include <string.h>

/* ---- liveness ---- */

static bool reads_node(const ts_nest_node *node, int position) {
  if (position == 0) return node->a >= 0;
  return node->kind == TS_NEST_OP && (position == 1 ? node->b : node->c) >= 0;
}

static void mark(int32_t *slot) { *slot = 0; }

static void mark_live(ts_maker *m) {
  const ts_nest *p = m->nest;
  memset(&m->used, 0xff, sizeof(m->used));
  for (size_t i = 0; i < p->stores.count; i++) mark(&m->used.node[p->stores.data[i].node]);
  for (size_t i = p->nodes.count; i-- > 0;) {
    const ts_nest_node *node = &p->nodes.data[i];
    if (m->used.node[i] < 0) continue;
    if (reads_node(node, 0)) mark(&m->used.node[node->a]);
    if (reads_node(node, 1)) mark(&m->used.node[node->b]);
    if (reads_node(node, 2)) mark(&m->used.node[node->c]);
  }
}

static void number(int32_t *slot, int32_t *next) {
  if (*slot < 0) *slot = (*next)++;
}

static void number_live(ts_maker *m) {
  const ts_nest *p = m->nest;
  ts_used *u = &m->used;
  u->nodes = u->loads = u->indices = u->scalars = 0;
  for (size_t i = 0; i < p->nodes.count; i++) {
    const ts_nest_node *node = &p->nodes.data[i];
    if (u->node[i] < 0) continue;
    u->node[i] = u->nodes++;
    if (node->kind == TS_NEST_LOAD || node->kind == TS_NEST_GATHER) number(&u->load[node->slot], &u->loads);
    if (node->kind == TS_NEST_INDEX) number(&u->index[node->slot], &u->indices);
    if (node->kind == TS_NEST_SCALAR) number(&u->scalar[node->slot], &u->scalars);
    if (node->kind != TS_NEST_GATHER) continue;
    number(&u->scalar[node->b], &u->scalars);
    number(&u->scalar[node->c], &u->scalars);
  }
}

/* ---- collapsing ---- */

static void remove_loop(ts_collapsed *n, int32_t l) {
  for (int32_t k = l; k + 1 < n->loops.count; k++) n->loops.extent[k] = n->loops.extent[k + 1];
  for (int32_t i = 0; i < n->count; i++) {
    ts_affine *at = &n->at[i];
    for (int32_t k = l; k + 1 < n->loops.count; k++) at->coef[k] = at->coef[k + 1];
    at->coef[n->loops.count - 1] = 0;
  }
  n->loops.count--;
  if (l < n->kept) n->kept--;
}

static bool can_merge(const ts_collapsed *n, int32_t l) {
  if (l + 1 == n->kept || (n->has_blocks && l + 2 == n->kept)) return false;
  for (int32_t i = 0; i < n->count; i++) {
    if (n->at[i].coef[l] != n->at[i].coef[l + 1] * n->loops.extent[l + 1]) return false;
  }
  return true;
}

static void collapse(ts_collapsed *n) {
  for (int32_t l = n->loops.count - 1; l >= 0; l--) {
    if (n->loops.extent[l] == 1) remove_loop(n, l);
  }
  for (int32_t l = n->loops.count - 2; l >= 0; l--) {
    if (!can_merge(n, l)) continue;
    n->loops.extent[l + 1] *= n->loops.extent[l];
    remove_loop(n, l);
  }
}

static void append_unit_loop(ts_collapsed *n) { n->loops.extent[n->loops.count++] = 1; }

static void fill_nest(ts_maker *m) {
  const ts_nest *p = m->nest;
  ts_collapsed *n = &m->collapsed;
  n->loops = p->loops;
  n->kept = p->kept;
  n->has_blocks = p->has_blocks;
  n->count = m->used.loads + (int32_t)p->stores.count + m->used.indices;
  for (size_t i = 0; i < p->loads.count; i++) {
    if (m->used.load[i] >= 0) n->at[m->used.load[i]] = p->loads.data[i].at;
  }
  ts_affine *stores = n->at + m->used.loads, *indices = stores + p->stores.count;
  for (size_t i = 0; i < p->stores.count; i++) stores[i] = p->stores.data[i].to.at;
  for (size_t i = 0; i < p->indices.count; i++) {
    if (m->used.index[i] >= 0) indices[m->used.index[i]] = p->indices.data[i];
  }
}

/* ---- kind ---- */

/* The number of elements that an access touches. */
static int64_t footprint(const ts_collapsed *n, int32_t i) {
  int64_t points = 1;
  for (int32_t l = 0; l < n->loops.count; l++) {
    if (n->at[i].coef[l] != 0) points *= n->loops.extent[l];
  }
  return points;
}

/* The columns: the kept loop along which the largest operand of the reduced loop is contiguous. -1: there are none, or
 * the rows are contiguous themselves, or are searched one by one, or a second pass reads the rows after their
 * reductions. */
static int32_t find_columns(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  int32_t row = n->kept, best = -1;
  if (n->kept == 0 || n->loops.extent[row] > TS_REDUCE_BLOCK) return -1;
  if (ts_nest_stores_points(m->nest) || ts_nest_has_chain(m->nest)) return -1;
  for (int32_t i = 0; i < m->used.loads; i++) {
    if (n->at[i].coef[row] != 0 && (best < 0 || footprint(n, i) > footprint(n, best))) best = i;
  }
  if (best < 0 || n->at[best].coef[row] == ts_maker_operand_size(m, best)) return -1;
  if (ts_maker_finds_in_near(m, best)) return -1;
  int32_t l = n->kept - 1;
  while (l >= 0 && n->at[best].coef[l] != ts_maker_operand_size(m, best)) l--;
  return l >= 0 ? l : ts_maker_near_columns(n, best);
}

/* If the results of a launch together are larger than this, their stores bypass the caches, which saves reading the
 * lines before writing them. Measured: it pays from 32 MB on; at 8 MB it does not when the result is read next. */
#define STREAM_BYTES (INT64_C(24) << 20)

static int64_t stored_bytes(const ts_maker *m) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < (int32_t)m->nest->stores.count; i++) {
    bytes += footprint(&m->collapsed, m->used.loads + i) * ts_maker_operand_size(m, m->used.loads + i);
  }
  return bytes;
}

static bool has_dense_rows(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t column = n->loops.count - 1, row = column - 1;
  if (m->used.indices > 0 || n->loops.extent[row] < TS_REDUCE_LANES) return false;
  for (int32_t i = 0; i < m->used.loads; i++) {
    const int64_t size = ts_maker_operand_size(m, i), *coef = n->at[i].coef;
    bool follows = coef[column] == size && coef[row] == size * n->loops.extent[column];
    if (!follows && (coef[column] != 0 || coef[row] != 0)) return false;
  }
  for (size_t i = 0; i < m->nest->nodes.count; i++) {
    const ts_nest_kind kind = m->nest->nodes.data[i].kind;
    if (kind == TS_NEST_ARG || kind == TS_NEST_GATHER) return false;
  }
  return true;
}

/* Of a large launch, many columns are reduced in registers, and short rows many at once. */
static ts_columns columns_of(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  const int64_t columns = n->loops.extent[n->loops.count - 1];
  if (!ts_maker_is_large(n) && !ts_maker_has_near(m)) return TS_COLUMNS_ANY;
  if (columns >= TS_COL_WIDE && stored_bytes(m) >= STREAM_BYTES) return TS_COLUMNS_ANY;
  if (columns >= TS_COL_WIDE)
    return n->loops.extent[n->loops.count - 2] <= TS_COL_LOW ? TS_COLUMNS_LOW : TS_COLUMNS_WIDE;
  return has_dense_rows(m) ? TS_COLUMNS_DENSE : TS_COLUMNS_ANY;
}

/* Shorter rows would end in many single elements where there are no masks. */
#define LONG_ROW 1024

/* What the code of long rows is for. In a large launch, where a vector of narrow elements has as many lanes as one of
 * f32, which wastes most of a register, rows of them that are only reduced get code of their own. A search looks at
 * values first, and whether it may end. */
static ts_columns columns_of_row(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  const ts_nest *p = m->nest;
  const ts_kernel_desc *desc = &m->launch.desc;
  const int32_t row = n->loops.count - 1;
  if (n->loops.extent[row] < LONG_ROW) return TS_COLUMNS_ANY;
  if (ts_maker_is_large(n) && ts_kernel_narrow_bytes(desc) > 0 && !ts_nest_stores_points(p)) return TS_COLUMNS_LONG;
  if (!ts_kernel_searches(desc)) return TS_COLUMNS_ANY;
  /* Where the loop of rows and that of their parts have become one, a row has no parts. */
  const bool has_parts = p->has_parts && row > 0 && n->loops.extent[row - 1] == p->loops.extent[p->kept - 1];
  return has_parts ? TS_COLUMNS_PARTS : TS_COLUMNS_SEARCH;
}

/* A piece of so many bytes costs less where it lies than joined with the others; a shorter one has a head and a tail
 * for a vector or two. */
#define LONG_PIECE 256

static bool has_long_pieces(const ts_maker *m) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  int64_t size = 0;
  if (!ts_kernel_has_pieces(&m->launch.desc)) return false;
  for (int32_t i = 0; i < m->used.loads; i++) {
    const int64_t step = n->at[i].coef[last];
    if (step > size) size = step;
  }
  return n->loops.extent[last] * size >= LONG_PIECE;
}

/* ---- groups ---- */

/* From so many groups on there are vectors of them. Of more than accesses to memory, fewer are worth the copy of the
 * last ones. */
#define LEAST_GROUPS 64
#define LEAST_WORK_GROUPS 24
#define WORK 4
/* Every member of a group is emitted: of all together at most so much code, in simple vector operations. */
#define MEMBERS_WEIGHT 400
/* From so many bytes on, a vector of a group is worth its own instructions. */
#define VECTOR_BYTES 32

/* Of an op's cost in op.def, for one of these operations. */
#define PICOSECONDS 800

/* Of the float ops of a point. A vector has as many elements of f64 as of f32, in two registers. */
static int64_t weight_of_ops(const ts_maker *m) {
  int64_t weight = 0;
  for (size_t i = 0; i < m->nest->nodes.count; i++) {
    const ts_nest_node *node = &m->nest->nodes.data[i];
    if (m->used.node[i] < 0 || node->kind != TS_NEST_OP || !ts_dtype_is_float(node->dtype)) continue;
    const int64_t weight_of_f32 = ts_op_get_cost(node->op)->float_ps / PICOSECONDS;
    weight += ts_dtype_size(node->dtype) == 8 ? 2 * weight_of_f32 : weight_of_f32;
  }
  return weight;
}

static int64_t weight_of_member(const ts_maker *m) {
  int64_t weight = 0;
  for (size_t i = 0; i < m->nest->nodes.count; i++) {
    const ts_nest_node *node = &m->nest->nodes.data[i];
    if (m->used.node[i] < 0) continue;
    weight += node->kind == TS_NEST_OP ? ts_op_get_cost(node->op)->floats : node->kind == TS_NEST_ARG ? 5 : 1;
  }
  return weight;
}

/* True when a MAP has all of a group in a vector, without taking one apart. */
static bool is_row_of_vectors(const ts_maker *m, int32_t members) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t operands = m->used.loads + (int32_t)m->nest->stores.count;
  if (m->nest->reduces) return false;
  for (int32_t i = 0; i < operands; i++) {
    const int64_t size = ts_maker_operand_size(m, i), step = n->at[i].coef[members];
    if ((step != size && step != 0) || size * n->loops.extent[members] < VECTOR_BYTES) return false;
  }
  return true;
}

static bool is_grouped(const ts_affine *at, int32_t groups, int32_t members, int64_t size, int64_t length) {
  const int64_t group = at->coef[groups], member = at->coef[members];
  return (member == size || member == -size) && (group == length * size || group == -length * size);
}

/* True when an INTERLEAVED can have these loops innermost: groups of members. */
static bool fits_groups(const ts_maker *m, int32_t groups, int32_t members) {
  const ts_collapsed *n = &m->collapsed;
  const int64_t length = n->loops.extent[members];
  const int32_t operands = m->used.loads + (int32_t)m->nest->stores.count;
  /* groups that are copied in another order are joined, or short rows of a MAP */
  bool found = false, turns = m->nest->reduces || (ts_maker_is_large(n) && !ts_maker_only_moves(m));
  const int64_t least = weight_of_ops(m) < WORK ? LEAST_GROUPS : LEAST_WORK_GROUPS;
  if (n->loops.extent[groups] < least || ts_interleave_factor(length) == 0) return false;
  if (length * weight_of_member(m) > MEMBERS_WEIGHT || is_row_of_vectors(m, members)) return false;
  for (int32_t i = 0; i < operands; i++) {
    const int64_t size = ts_maker_operand_size(m, i), group = n->at[i].coef[groups], member = n->at[i].coef[members];
    const bool input = i < m->used.loads, packed = is_grouped(&n->at[i], groups, members, size, length);
    if (size > 8 || (packed && !input && (group < 0 || member < 0))) return false;
    if (!packed && group != size && !(input && group == 0)) return false;
    found |= packed;
    turns |= !packed && group != 0;
  }
  return found && turns;
}

/* Rows of a few elements each cost a start and an end. From so many points on they are worth code for their length. A
 * smaller launch that neither reduces nor turns operands is left as it is: it may be the epilogue of a product. */
#define LEAST_POINTS 2048

static bool is_worth_groups(const ts_maker *m) { return ts_maker_points(&m->collapsed) >= LEAST_POINTS; }

/* Makes the loops of an INTERLEAVED the last ones, if the launch is large enough and can be one. */
static bool take_groups(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  if (m->lowering->in_place || last < 1 || !is_worth_groups(m) || ts_maker_has_gather(m->nest)) return false;
  for (int32_t members = last; members >= (m->nest->reduces ? last : 0); members--) {
    for (int32_t groups = last; groups >= 0; groups--) {
      if (groups == members || !fits_groups(m, groups, members)) continue;
      m->members = (int32_t)n->loops.extent[members];
      ts_maker_move_loop(n, groups, last);
      ts_maker_move_loop(n, members - (groups < members), last - 1);
      return true;
    }
  }
  return false;
}

/* ---- rows of columns that take turns ---- */

/* Makes the loop of few columns, which lie next to each other in memory, and the loop of their rows the last one: so
 * vectors are full, and a later pass may read the results of each column. */
static bool take_turns(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  const int32_t row = n->kept, column = row - 1;
  const int64_t columns = ts_nest_columns(m->nest);
  if (columns == 0 || row + 1 != n->loops.count || column < 0 || n->loops.extent[column] != columns) return false;
  if (!ts_reduce_takes_turns(columns)) return false;
  for (int32_t i = 0; i < m->used.loads + (int32_t)m->nest->stores.count; i++) {
    ts_affine *at = &n->at[i];
    n->turns[i] = at->coef[row] == 0 && at->coef[column] != 0;
    at->coef[row] = at->coef[row] == 0 ? 0 : at->coef[column];
    at->coef[column] = at->coef[row] * columns;
  }
  n->loops.extent[row] *= columns;
  n->loops.extent[column] = 1;
  remove_loop(n, column);
  m->members = (int32_t)columns;
  return true;
}

/* ---- short rows ---- */

/* Costs as numbers of simple vector operations: of an element at a stride; of a row, without its vectors; of a part of
 * a vector whose elements are accessed one by one. */
#define STRIDED_WEIGHT 2
#define ROW_WEIGHT 10
#define PART_WEIGHT 40
/* Lighter bodies stay as they are: strided accesses would be most of their time. */
#define HEAVY 25
/* Of a large launch strided accesses read each cache line again, from another cache. */
#define LARGE_STRIDED_WEIGHT 8
#define LARGE_HEAVY 60

/* The cost of a MAP whose innermost loop is `l`. The last vector of a row costs as much as the others. */
static int64_t cost_of_rows(const ts_maker *m, int32_t l, int64_t weight) {
  const ts_collapsed *n = &m->collapsed;
  const int32_t operands = m->used.loads + (int32_t)m->nest->stores.count;
  const ts_target *target = ts_target_host();
  int64_t rows = 1, strided = 0, row = ROW_WEIGHT, length = n->loops.extent[l];
  for (int32_t k = 0; k < n->loops.count; k++) rows *= k == l ? 1 : n->loops.extent[k];
  for (int32_t i = 0; i < operands; i++) {
    const int64_t step = n->at[i].coef[l], size = ts_maker_operand_size(m, i);
    strided += step != 0 && step != size;
    if (step == size && size < 4 && !target->masked_small && length % target->lanes) row += PART_WEIGHT;
  }
  const int64_t vectors = (length + target->lanes - 1) / target->lanes;
  const int64_t apart = strided * (ts_maker_is_large(n) ? LARGE_STRIDED_WEIGHT : STRIDED_WEIGHT);
  return rows * (row + vectors * weight + length * apart);
}

/* Heavy ops on rows that fill a part of a vector: makes another loop the innermost one, whose elements are apart but
 * fill the vectors. */
static bool take_long_row(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  const int32_t last = n->loops.count - 1;
  int32_t best = last;
  if (last < 1 || ts_maker_has_gather(m->nest) || n->loops.extent[last] >= ts_target_host()->lanes) return false;
  const int64_t weight = weight_of_ops(m);
  if (weight < (ts_maker_is_large(n) ? LARGE_HEAVY : HEAVY)) return false;
  const int64_t now = cost_of_rows(m, last, weight);
  int64_t least = now / 5 * 4;
  for (int32_t l = 0; l < last; l++) {
    int64_t cost = cost_of_rows(m, l, weight);
    if (cost < least) least = cost, best = l;
  }
  if (best == last) return false;
  ts_maker_move_loop(n, best, last);
  return true;
}

static ts_status choose_kind(ts_maker *m) {
  ts_collapsed *n = &m->collapsed;
  if (m->nest->reduces && n->loops.count - n->kept == 2 && ts_nest_is_in_pieces(m->nest)) {
    m->kind = TS_KERNEL_ROW;
    m->columns = m->nest->has_blocks ? TS_COLUMNS_BLOCKS : TS_COLUMNS_APART;
    if (n->loops.count <= TS_KERNEL_MAX_RANK) return TS_SUCCESS;
  }
  if (m->nest->reduces && (n->loops.count - n->kept > 1 || n->has_blocks))
    return ts_error(TS_UNIMPLEMENTED, "no single kernel: a row that is not one loop");
  if ((!m->nest->reduces || n->kept < n->loops.count) && take_groups(m)) {
    m->kind = TS_KERNEL_INTERLEAVED;
  } else if (m->nest->reduces && take_turns(m)) {
    m->kind = TS_KERNEL_ROW;
  } else if (m->nest->reduces) {
    if (n->kept == n->loops.count) append_unit_loop(n);
    int32_t columns = find_columns(m);
    m->kind = columns >= 0 ? TS_KERNEL_COL : TS_KERNEL_ROW;
    if (columns >= 0) ts_maker_move_loop(n, columns, n->loops.count - 1);
    if (columns >= 0) m->columns = columns_of(m);
  } else if (ts_maker_takes_tiles(m)) {
    m->kind = TS_KERNEL_TILE;
  } else if (ts_maker_joins(m, ts_maker_transposes(m))) {
    m->kind = TS_KERNEL_JOINED;
  } else {
    if (n->loops.count == 0) append_unit_loop(n);
    int32_t transposed = take_long_row(m) ? -1 : ts_maker_find_transposed(m);
    m->kind = transposed >= 0 ? TS_KERNEL_TILE : TS_KERNEL_MAP;
    if (transposed >= 0) ts_maker_move_loop(n, transposed, n->loops.count - 2);
    if (transposed >= 0) ts_maker_order_tiles(m);
  }
  if (n->loops.count <= TS_KERNEL_MAX_RANK) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "no single kernel: %d loops, at most %d", n->loops.count, TS_KERNEL_MAX_RANK);
}

/* ---- description ---- */

/* A single element counts as contiguous, so that scalars share the kernels of vectors. */
static bool is_one_element(const ts_maker *m) {
  return m->kind == TS_KERNEL_MAP && m->collapsed.loops.count == 1 && m->collapsed.loops.extent[0] == 1;
}

static ts_kernel_operand describe_groups(const ts_collapsed *n, int32_t i, ts_dtype dtype) {
  ts_kernel_operand operand = {.dtype = dtype};
  const int32_t last = n->loops.count - 1;
  for (int32_t l = 0; l < last - 1; l++) operand.stride[l] = n->at[i].coef[l] == 0 ? TS_STRIDE_ZERO : TS_STRIDE_ANY;
  operand.stride[last - 1] = n->at[i].coef[last - 1] > 0 ? TS_STRIDE_UNIT : TS_STRIDE_DOWN;
  operand.stride[last] = n->at[i].coef[last] > 0 ? TS_STRIDE_GROUP : TS_STRIDE_GROUP_DOWN;
  return operand;
}

static ts_kernel_operand describe_operand(const ts_maker *m, int32_t i, ts_dtype dtype) {
  const ts_collapsed *n = &m->collapsed;
  ts_kernel_operand operand = {.dtype = dtype};
  int64_t size = ts_maker_operand_size(m, i);
  int32_t last = n->loops.count - 1;
  int64_t innermost = n->at[i].coef[last];
  bool index = i >= m->used.loads + (int32_t)m->nest->stores.count; /* a number: it has no groups in memory */
  if (m->kind == TS_KERNEL_JOINED) return ts_maker_describe_joined(m, i, dtype);
  bool transposed = m->kind == TS_KERNEL_TILE && i < m->used.loads && innermost != size && innermost != 0;
  for (int32_t l = last - 1 - m->joined, k = 0; k < m->lined; k++, l--) /* its lines are not those of the tiles */
    transposed &= n->at[i].coef[l - 1] == n->at[i].coef[l] * n->loops.extent[l];
  if (m->kind == TS_KERNEL_INTERLEAVED && !index && is_grouped(&n->at[i], last, last - 1, size, m->members))
    return describe_groups(n, i, dtype);
  for (int32_t l = 0; l <= last; l++) {
    int64_t coef = n->at[i].coef[l];
    bool may_be_unit = l == last || (transposed && l == last - 1 - m->joined);
    operand.stride[l] = coef == 0 ? TS_STRIDE_ZERO : coef == size && may_be_unit ? TS_STRIDE_UNIT : TS_STRIDE_ANY;
    if (l == last && coef == -size && i < m->used.loads) operand.stride[l] = TS_STRIDE_DOWN;
    if (l == last && n->turns[i]) operand.stride[l] = TS_STRIDE_TURN;
  }
  if (ts_maker_is_near(m, i)) {
    operand.stride[last] = TS_STRIDE_NEAR;
    operand.step[last] = (int8_t)(innermost / size);
  }
  if (is_one_element(m) && !index) operand.stride[0] = TS_STRIDE_UNIT;
  return operand;
}

static ts_kernel_node describe_node(const ts_maker *m, const ts_nest_node *node) {
  static const ts_node_kind kinds[] = {
      [TS_NEST_LOAD] = TS_NODE_LOAD,     [TS_NEST_SCALAR] = TS_NODE_SCALAR, [TS_NEST_INDEX] = TS_NODE_INDEX,
      [TS_NEST_GATHER] = TS_NODE_GATHER, [TS_NEST_OP] = TS_NODE_OP,         [TS_NEST_REDUCE] = TS_NODE_REDUCE,
      [TS_NEST_ARG] = TS_NODE_ARG,
  };
  const ts_used *u = &m->used;
  ts_kernel_node k = {
      .kind = kinds[node->kind], .op = node->op, .dtype = node->dtype, .slot = -1, .a = -1, .b = -1, .c = -1};
  if (node->kind == TS_NEST_LOAD || node->kind == TS_NEST_GATHER) k.slot = u->load[node->slot];
  if (node->kind == TS_NEST_SCALAR) k.slot = u->scalar[node->slot];
  if (node->kind == TS_NEST_INDEX) k.slot = u->index[node->slot];
  if (node->a >= 0) k.a = u->node[node->a];
  if (node->kind == TS_NEST_OP && node->b >= 0) k.b = u->node[node->b];
  if (node->kind == TS_NEST_OP && node->c >= 0) k.c = u->node[node->c];
  if (node->kind == TS_NEST_GATHER) k.b = u->scalar[node->b], k.c = u->scalar[node->c];
  if (node->kind == TS_NEST_ARG) k.b = node->b;
  return k;
}

/* True when every whole vector of the output is aligned. */
static bool may_stream(const ts_maker *m, int32_t output) {
  const ts_collapsed *n = &m->collapsed;
  int32_t k = m->used.loads + output, last = n->loops.count - 1;
  if (m->kind == TS_KERNEL_INTERLEAVED || m->kind == TS_KERNEL_JOINED) return false;
  if (m->nest->stores.data[output].to.term_count > 0 || n->at[k].offset % 64 != 0) return false;
  for (int32_t l = 0; l < last; l++) {
    if (n->at[k].coef[l] % 64 != 0) return false;
  }
  return n->at[k].coef[last] == ts_maker_operand_size(m, k);
}

static ts_status describe(ts_maker *m) {
  const ts_nest *p = m->nest;
  const ts_used *u = &m->used;
  ts_arena *arena = m->lowering->arena;
  int32_t stores = (int32_t)p->stores.count;
  bool large = stored_bytes(m) >= STREAM_BYTES;
  ts_kernel_operand *inputs, *indices;
  ts_kernel_output *outputs;
  ts_dtype *scalars;
  ts_kernel_node *nodes;
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)u->loads, &inputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)stores, &outputs));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)u->indices, &indices));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)u->scalars, &scalars));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)u->nodes, &nodes));
  for (int32_t i = 0; i < u->loads; i++) inputs[i] = describe_operand(m, i, ts_maker_load(m, i)->dtype);
  for (int32_t i = 0; i < stores; i++) {
    const ts_nest_store *store = &p->stores.data[i];
    outputs[i] = (ts_kernel_output){.operand = describe_operand(m, u->loads + i, store->to.dtype),
                                    .node = u->node[store->node],
                                    .stream = large && may_stream(m, i)};
  }
  for (int32_t i = 0; i < u->indices; i++) indices[i] = describe_operand(m, u->loads + stores + i, TS_S64);
  for (size_t i = 0; i < p->scalars.count; i++) {
    if (u->scalar[i] >= 0) scalars[u->scalar[i]] = p->scalars.data[i].dtype;
  }
  for (size_t i = 0; i < p->nodes.count; i++) {
    if (u->node[i] >= 0) nodes[u->node[i]] = describe_node(m, &p->nodes.data[i]);
  }
  m->launch.desc = (ts_kernel_desc){
      .kind = m->kind,
      .columns = (uint8_t)m->columns,
      .members = m->members,
      .rank = m->collapsed.loops.count,
      .input_count = u->loads,
      .output_count = stores,
      .index_count = u->indices,
      .scalar_count = u->scalars,
      .node_count = u->nodes,
      .inputs = inputs,
      .outputs = outputs,
      .indices = indices,
      .scalars = scalars,
      .nodes = nodes,
      .joined = (uint8_t)m->joined,
      .rows = (uint8_t)m->rows,
      .lined = (uint8_t)m->lined,
  };
  for (int32_t i = 0; m->kind == TS_KERNEL_JOINED && i < m->joined; i++)
    m->launch.desc.few[i] = (uint8_t)m->collapsed.loops.extent[m->collapsed.loops.count - m->joined + i];
  return TS_SUCCESS;
}

/* ---- arguments ---- */

static ts_status fill_args(ts_maker *m) {
  const ts_nest *p = m->nest;
  const ts_collapsed *n = &m->collapsed;
  ts_kernel_desc *d = &m->launch.desc;
  int32_t addressed = d->input_count + d->output_count;
  ts_launch_pointer *pointers;
  int64_t *args;
  TS_TRY(TS_ARENA_ARRAY(m->lowering->arena, (size_t)ts_kernel_arg_count(d), &args));
  TS_TRY(TS_ARENA_ARRAY(m->lowering->arena, (size_t)addressed, &pointers));
  for (int32_t l = 0; l < d->rank; l++) args[l] = n->loops.extent[l];
  for (int32_t i = 0; i < n->count; i++) {
    int64_t *words = args + ts_kernel_arg_operand(d, i);
    for (int32_t l = 0; l < d->rank; l++) words[1 + l] = n->at[i].coef[l];
    if (i >= addressed) {
      words[0] = n->at[i].offset;
      continue;
    }
    const ts_access *access = i < d->input_count ? ts_maker_load(m, i) : &p->stores.data[i - d->input_count].to;
    pointers[i] = (ts_launch_pointer){ts_kernel_arg_operand(d, i), access->role, access->index, n->at[i].offset,
                                      access->term_count,          access->terms};
  }
  for (size_t i = 0; i < p->scalars.count; i++) {
    int32_t slot = m->used.scalar[i];
    if (slot >= 0) args[ts_kernel_arg_scalar(d, slot)] = p->scalars.data[i].value.s64;
  }
  m->launch.args = args;
  m->launch.pointers = pointers;
  m->launch.pointer_count = addressed;
  return TS_SUCCESS;
}

static int64_t round_up_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t count_units(const ts_launch *launch) {
  const int64_t *extent = launch->args;
  ts_kernel_kind kind = launch->desc.kind;
  int32_t rank = launch->desc.rank;
  int64_t outer = 1;
  if (kind == TS_KERNEL_MAP && rank == 1) return extent[0];
  if (kind == TS_KERNEL_JOINED) {
    const int32_t row = ts_kernel_row_dim(&launch->desc);
    for (int32_t l = 0; l < row; l++) outer *= extent[l];
    return outer * round_up_div(extent[row], TS_JOINED_BLOCK);
  }
  if (kind == TS_KERNEL_TILE) {
    for (int32_t l = 0; l < ts_kernel_line_dim(&launch->desc); l++) outer *= extent[l];
    return outer * round_up_div(ts_kernel_line_length(&launch->desc, extent), ts_target_host()->lanes);
  }
  for (int32_t l = 0; l < rank - 2; l++) outer *= extent[l];
  if (ts_kernel_has_pieces(&launch->desc)) return outer;
  if (kind == TS_KERNEL_COL) return outer * round_up_div(extent[rank - 1], TS_COL_PANEL);
  if (kind == TS_KERNEL_INTERLEAVED) return outer * round_up_div(extent[rank - 1], TS_GROUPS_BLOCK);
  return rank >= 2 ? outer * extent[rank - 2] : 1;
}

void ts_launch_measure(ts_launch *launch) {
  int64_t fixed, per_element, lanes = ts_target_host()->lanes;
  int32_t rank = launch->desc.rank;
  if (launch->desc.kind == TS_KERNEL_ROW && launch->desc.members > lanes) lanes = launch->desc.members;
  launch->points = 1;
  for (int32_t l = 0; l < rank; l++) launch->points *= launch->args[l];
  if (launch->desc.columns == TS_COLUMNS_BLOCKS) launch->points /= launch->args[rank - 3];
  launch->units = count_units(launch);
  ts_kernel_scratch(&launch->desc, &fixed, &per_element);
  int64_t vectors = round_up_div(launch->args[rank - 1], lanes);
  if (ts_kernel_has_pieces(&launch->desc)) /* the last vector of the last piece may end behind the row */
    vectors = round_up_div(ts_kernel_pieces_length(&launch->desc, launch->args), lanes) + 1;
  launch->scratch = fixed + per_element * lanes * (vectors > 0 ? vectors : 1); /* an empty row also takes one vector */
}

static void measure(ts_maker *m) {
  ts_launch *launch = &m->launch;
  ts_launch_measure(launch);
  for (int32_t i = 0; i < launch->pointer_count; i++)
    launch->bytes += footprint(&m->collapsed, i) * ts_maker_operand_size(m, i);
}

static bool fits(const ts_nest *p) {
  return p->nodes.count <= 2 * TS_NEST_MAX_NODES && p->scalars.count <= 4 * TS_NEST_MAX_NODES &&
         p->loads.count <= TS_NEST_MAX_OPERANDS && p->indices.count <= TS_NEST_MAX_OPERANDS &&
         p->loads.count + p->stores.count + p->indices.count <= TS_NEST_MAX_OPERANDS;
}

static ts_status make(ts_maker *m) {
  mark_live(m);
  number_live(m);
  fill_nest(m);
  collapse(&m->collapsed);
  TS_TRY(choose_kind(m));
  TS_TRY(describe(m));
  if (m->kind == TS_KERNEL_ROW && m->members == 0 && m->columns == TS_COLUMNS_ANY)
    m->launch.desc.columns = (uint8_t)columns_of_row(m);
  m->launch.desc.long_pieces = has_long_pieces(m);
  TS_TRY(fill_args(m));
  measure(m);
  return TS_VEC_PUSH(&m->lowering->launches, m->launch);
}

ts_status ts_lowering_add_launch(ts_lowering *l, const ts_nest *nest) {
  ts_maker m = {.lowering = l, .nest = nest};
  if (!fits(nest)) return ts_error(TS_UNIMPLEMENTED, "no single kernel: too many operands or ops");
  return make(&m);
}

ts_status ts_lowering_add_temp(ts_lowering *l, int64_t bytes, uint32_t *out) {
  *out = (uint32_t)l->temps.count;
  return TS_VEC_PUSH(&l->temps, bytes);
}
