/* Reductions that take several launches. A row of more than TS_REDUCE_BLOCK elements is reduced in blocks into a
 * temporary. The temporary is reduced in turn: the tree of tensor/reduce_tree.h. For argmax and argmin each block
 * yields its best element and that element's index in the block. The best element of all selects the block, and the
 * block its element; among equals, the choice of the first or last is preserved. Where the row is not a single affine
 * loop, its elements are first computed into a temporary. */
#include "ir/combiner.h"
#include "jit/lower/lower_internal.h"

#include <string.h>

#define MAX_REDUCTIONS 16
/* An argmax over contiguous rows shorter than this is one launch: it has no tree, and one kernel compiles faster than
 * three. */
#define LONG_SEARCH (4 * TS_REDUCE_BLOCK)

/* A reduction of the loop nest, and the temporary that the next stage reduces. */
typedef struct partial {
  int32_t node;
  uint32_t temp;
  ts_dtype dtype;
  bool finds;       /* an argmax or argmin by blocks: `temp` holds the blocks' best elements */
  uint32_t indices; /* the temporary with the best elements' indices in their blocks, s32 */
} partial;

typedef struct stage {
  ts_lowering *lowering;
  const ts_nest *nest;
  partial partials[MAX_REDUCTIONS];
  int32_t count;
  int64_t kept; /* number of rows */
  int64_t row;  /* elements in a row */
} stage;

/* False for reductions of reductions: they need whole rows. */
static bool can_stage(const ts_nest *p) {
  return p->nodes.count <= TS_NEST_MAX_NODES && !ts_nest_points_wait(p) && !ts_nest_has_chain(p);
}

static ts_status copy_nest(const ts_nest *from, ts_nest *to) {
  *to = (ts_nest){.loops = from->loops, .kept = from->kept, .reduces = from->reduces};
  for (size_t i = 0; i < from->nodes.count; i++) TS_TRY(TS_VEC_PUSH(&to->nodes, from->nodes.data[i]));
  for (size_t i = 0; i < from->loads.count; i++) TS_TRY(TS_VEC_PUSH(&to->loads, from->loads.data[i]));
  for (size_t i = 0; i < from->indices.count; i++) TS_TRY(TS_VEC_PUSH(&to->indices, from->indices.data[i]));
  for (size_t i = 0; i < from->scalars.count; i++) TS_TRY(TS_VEC_PUSH(&to->scalars, from->scalars.data[i]));
  return TS_SUCCESS;
}

static ts_nest_node op_node(ts_nest_kind kind, ts_opcode op, ts_dtype dtype, int32_t a) {
  return (ts_nest_node){.kind = kind, .op = op, .dtype = dtype, .slot = -1, .a = a, .b = -1, .c = -1};
}

/* The index map of (row, column `start` + index of loop `column`) in a dense temporary of `width` columns. */
static ts_affine temp_map(const ts_loops *loops, int32_t kept, int32_t column, int64_t start, int64_t width,
                          int64_t size) {
  ts_affine at = {.offset = start * size};
  int64_t step = width * size;
  for (int32_t l = kept - 1; l >= 0; l--) {
    at.coef[l] = step;
    step *= loops->extent[l];
  }
  if (column >= 0) at.coef[column] = size;
  return at;
}

/* ---- blocks ---- */

static void block_affine(ts_affine *x, int32_t row, int64_t first, bool full) {
  int64_t coef = x->coef[row];
  x->offset += coef * first;
  if (!full) return;
  x->coef[row] = coef * TS_REDUCE_BLOCK;
  x->coef[row + 1] = coef;
}

/* Makes the row loop of a copy of the nest run over the full blocks, or over the partial last one. */
static void set_block_loops(ts_nest *p, int64_t row_extent, bool full) {
  int32_t row = p->kept;
  int64_t blocks = row_extent / TS_REDUCE_BLOCK, first = full ? 0 : blocks * TS_REDUCE_BLOCK;
  for (size_t i = 0; i < p->loads.count; i++) block_affine(&p->loads.data[i].at, row, first, full);
  for (size_t i = 0; i < p->indices.count; i++) block_affine(&p->indices.data[i], row, first, full);
  p->loops.extent[row] = full ? blocks : row_extent - first;
  if (!full) return;
  p->loops.extent[row + 1] = TS_REDUCE_BLOCK;
  p->loops.count++;
  p->kept++;
}

/* Adds a reduction by blocks, and a store of its results to a temporary. */
static ts_status store_blocks(ts_nest *p, ts_nest_node reduce, uint32_t temp, int64_t row_extent, bool full) {
  int64_t blocks = (row_extent + TS_REDUCE_BLOCK - 1) / TS_REDUCE_BLOCK;
  int32_t rows = full ? p->kept - 1 : p->kept;
  ts_nest_store store = {.to = {.role = TS_ROLE_TEMP, .index = temp, .dtype = reduce.dtype},
                         .node = (int32_t)p->nodes.count};
  TS_TRY(TS_VEC_PUSH(&p->nodes, reduce));
  store.to.at = temp_map(&p->loops, rows, full ? p->kept - 1 : -1, full ? 0 : row_extent / TS_REDUCE_BLOCK, blocks,
                         (int64_t)ts_dtype_size(reduce.dtype));
  return TS_VEC_PUSH(&p->stores, store);
}

static ts_status store_partial(ts_nest *p, const partial *part, int64_t row_extent, bool full) {
  ts_nest_node reduce = p->nodes.data[part->node];
  if (part->finds) {
    ts_opcode best = ts_arg_takes_largest(reduce.op) ? TS_OP_REDUCE_MAX : TS_OP_REDUCE_MIN;
    TS_TRY(store_blocks(p, op_node(TS_NEST_REDUCE, best, part->dtype, reduce.a), part->temp, row_extent, full));
    reduce.dtype = TS_S32;
    return store_blocks(p, reduce, part->indices, row_extent, full);
  }
  if (p->nodes.data[reduce.a].dtype != part->dtype && reduce.op != TS_OP_REDUCE_ALL && reduce.op != TS_OP_REDUCE_ANY) {
    TS_TRY(TS_VEC_PUSH(&p->nodes, op_node(TS_NEST_OP, TS_OP_CONVERT, part->dtype, reduce.a)));
    p->nodes.data[p->nodes.count - 1].varies = p->nodes.data[reduce.a].varies;
    reduce.a = (int32_t)p->nodes.count - 1;
  }
  reduce.dtype = part->dtype;
  return store_blocks(p, reduce, part->temp, row_extent, full);
}

/* Results with an element for each point are stored by the launch over blocks. */
static ts_status store_points(const stage *s, ts_nest *p, int64_t row_extent, bool full) {
  int64_t first = full ? 0 : row_extent / TS_REDUCE_BLOCK * TS_REDUCE_BLOCK;
  int32_t row = full ? p->kept - 1 : p->kept;
  for (size_t i = 0; i < s->nest->stores.count; i++) {
    ts_nest_store store = s->nest->stores.data[i];
    if (!ts_nest_is_of_points(s->nest, &store)) continue;
    block_affine(&store.to.at, row, first, full);
    TS_TRY(TS_VEC_PUSH(&p->stores, store));
  }
  return TS_SUCCESS;
}

static ts_status store_partials(const stage *s, ts_nest *p, int64_t row_extent, bool full) {
  for (int32_t i = 0; i < s->count; i++) TS_TRY(store_partial(p, &s->partials[i], row_extent, full));
  return TS_SUCCESS;
}

static ts_status add_blocks(const stage *s, bool full) {
  ts_nest p;
  int64_t extent = s->nest->loops.extent[s->nest->kept];
  ts_status status = copy_nest(s->nest, &p);
  if (!status) {
    set_block_loops(&p, extent, full);
    status = store_points(s, &p, extent, full);
    if (!status) status = store_partials(s, &p, extent, full);
  }
  if (!status) status = ts_lowering_add_launch(s->lowering, &p);
  ts_nest_deinit(&p);
  return status;
}

/* ---- the stage after: reductions of the temporaries, and their users ---- */

static const partial *find_partial(const stage *s, int32_t node) {
  for (int32_t i = 0; i < s->count; i++) {
    if (s->partials[i].node == node) return &s->partials[i];
  }
  return NULL;
}

/* Adds a read of a temporary of `width` columns: along the reduced loop, or at the start of each row. */
static ts_status add_read(ts_nest *p, uint32_t temp, ts_dtype dtype, bool row, int64_t width, int32_t *out_slot) {
  ts_access access = {.role = TS_ROLE_TEMP, .index = temp, .dtype = dtype};
  access.at = temp_map(&p->loops, p->kept, row ? p->kept : -1, 0, width, (int64_t)ts_dtype_size(dtype));
  *out_slot = (int32_t)p->loads.count;
  return TS_VEC_PUSH(&p->loads, access);
}

static ts_status add_number(ts_nest *p, int64_t value, ts_nest_node *node) {
  *node = op_node(TS_NEST_SCALAR, TS_OP_PARAMETER, TS_S64, -1);
  return ts_nest_add_scalar(p, TS_S64, ts_scalar_from_s64(TS_S64, value), &node->slot);
}

/* Computes the index in the row of a block's best element from the number of the block. */
static ts_status add_index(ts_nest *p, const partial *part, int64_t width, int32_t block, int32_t *out) {
  ts_nest_node gather = op_node(TS_NEST_GATHER, TS_OP_TAKE, TS_S32, block), number;
  ts_nest_node first = op_node(TS_NEST_OP, TS_OP_MULTIPLY, TS_S64, block);
  ts_nest_node sum = op_node(TS_NEST_OP, TS_OP_ADD, TS_S64, -1);
  TS_TRY(add_read(p, part->indices, TS_S32, false, width, &gather.slot));
  TS_TRY(add_number(p, width, &number));
  gather.b = number.slot;
  TS_TRY(add_number(p, (int64_t)ts_dtype_size(TS_S32), &number));
  gather.c = number.slot;
  TS_TRY(ts_nest_add_node(p, gather, out));
  TS_TRY(ts_nest_add_node(p, op_node(TS_NEST_OP, TS_OP_CONVERT, TS_S64, *out), &sum.b));
  TS_TRY(add_number(p, TS_REDUCE_BLOCK, &number));
  TS_TRY(ts_nest_add_node(p, number, &first.b));
  TS_TRY(ts_nest_add_node(p, first, &sum.a));
  return ts_nest_add_node(p, sum, out);
}

static ts_status reload(ts_nest *p, const partial *part, ts_nest_node reduce, int64_t width, int32_t *out) {
  ts_dtype wanted = reduce.dtype;
  ts_nest_node load = op_node(TS_NEST_LOAD, TS_OP_PARAMETER, part->dtype, -1);
  TS_TRY(add_read(p, part->temp, part->dtype, true, width, &load.slot));
  TS_TRY(ts_nest_add_node(p, load, &reduce.a));
  if (reduce.kind == TS_NEST_REDUCE && ts_dtype_accumulator(wanted) == part->dtype) reduce.dtype = part->dtype;
  if (part->finds) reduce.dtype = TS_S64;
  TS_TRY(ts_nest_add_node(p, reduce, out));
  if (part->finds) TS_TRY(add_index(p, part, width, *out, out));
  if (reduce.dtype == wanted) return TS_SUCCESS;
  return ts_nest_add_node(p, op_node(TS_NEST_OP, TS_OP_CONVERT, wanted, *out), out);
}

static ts_status copy_invariant(const stage *s, ts_nest *p, int64_t width) {
  int32_t map[TS_NEST_MAX_NODES];
  for (size_t i = 0; i < s->nest->nodes.count; i++) {
    ts_nest_node node = s->nest->nodes.data[i];
    const partial *part = find_partial(s, (int32_t)i);
    map[i] = -1;
    if (part) {
      TS_TRY(reload(p, part, node, width, &map[i]));
      continue;
    }
    if (node.varies) continue;
    if (node.a >= 0) node.a = map[node.a];
    if (node.kind == TS_NEST_OP && node.b >= 0) node.b = map[node.b];
    if (node.kind == TS_NEST_OP && node.c >= 0) node.c = map[node.c];
    TS_TRY(ts_nest_add_node(p, node, &map[i]));
  }
  for (size_t i = 0; i < s->nest->stores.count; i++) {
    ts_nest_store store = s->nest->stores.data[i];
    if (ts_nest_is_of_points(s->nest, &store)) continue;
    store.node = map[store.node];
    TS_TRY(TS_VEC_PUSH(&p->stores, store));
  }
  return TS_SUCCESS;
}

static ts_status add_rest(const stage *s, int64_t width) {
  ts_nest p;
  ts_status status = copy_nest(s->nest, &p);
  if (!status) {
    p.nodes.count = 0;
    p.loops.count = p.kept + 1;
    p.loops.extent[p.kept] = width;
    status = copy_invariant(s, &p, width);
  }
  if (!status) status = ts_lowering_add_nest(s->lowering, &p);
  ts_nest_deinit(&p);
  return status;
}

/* ---- reduction in blocks, or of a copy of the rows ---- */

static ts_status collect(stage *s, int64_t width, bool whole) {
  for (size_t i = 0; i < s->nest->nodes.count; i++) {
    const ts_nest_node *node = &s->nest->nodes.data[i];
    if (!ts_nest_node_reduces(node)) continue;
    if (s->count == MAX_REDUCTIONS)
      return ts_error(TS_UNIMPLEMENTED, "no single kernel: these reductions of long rows together");
    partial *part = &s->partials[s->count++];
    part->node = (int32_t)i;
    part->finds = !whole && node->kind == TS_NEST_ARG;
    part->dtype = whole || part->finds ? s->nest->nodes.data[node->a].dtype : ts_dtype_accumulator(node->dtype);
    TS_TRY(ts_lowering_add_temp(s->lowering, s->kept * width * (int64_t)ts_dtype_size(part->dtype), &part->temp));
    if (!part->finds) continue;
    TS_TRY(ts_lowering_add_temp(s->lowering, s->kept * width * (int64_t)ts_dtype_size(TS_S32), &part->indices));
  }
  return TS_SUCCESS;
}

static ts_status reduce_in_blocks(stage *s) {
  int64_t extent = s->nest->loops.extent[s->nest->kept];
  int64_t blocks = (extent + TS_REDUCE_BLOCK - 1) / TS_REDUCE_BLOCK;
  TS_TRY(collect(s, blocks, false));
  s->lowering->by_blocks = s->lowering->launches.count == 0 || s->lowering->by_blocks;
  TS_TRY(add_blocks(s, true));
  if (extent % TS_REDUCE_BLOCK != 0) TS_TRY(add_blocks(s, false));
  return add_rest(s, blocks);
}

/* Computes the rows' elements into temporaries, then reduces those. */
static ts_status reduce_from_copy(stage *s) {
  ts_nest p;
  TS_TRY(collect(s, s->row, true));
  ts_status status = copy_nest(s->nest, &p);
  p.kept = p.loops.count;
  p.reduces = false;
  for (int32_t i = 0; !status && i < s->count; i++) {
    const partial *part = &s->partials[i];
    ts_nest_store store = {.to = {.role = TS_ROLE_TEMP, .index = part->temp, .dtype = part->dtype},
                           .node = p.nodes.data[part->node].a};
    int64_t size = (int64_t)ts_dtype_size(part->dtype);
    store.to.at = temp_map(&p.loops, p.loops.count, -1, 0, 1, size);
    status = TS_VEC_PUSH(&p.stores, store);
  }
  if (!status) status = ts_lowering_add_launch(s->lowering, &p);
  ts_nest_deinit(&p);
  return status ? status : add_rest(s, s->row);
}

static void merge_into(ts_affine *x, int32_t l, int32_t last) {
  x->coef[l] = x->coef[last];
  for (int32_t k = l + 1; k <= last; k++) x->coef[k] = 0;
}

/* Merges the reduced loops into one; every access must permit this. */
static void merge_row(ts_nest *p, int64_t row) {
  int32_t last = p->loops.count - 1;
  if (p->loops.count <= p->kept) return;
  for (size_t i = 0; i < p->loads.count; i++) merge_into(&p->loads.data[i].at, p->kept, last);
  for (size_t i = 0; i < p->stores.count; i++) merge_into(&p->stores.data[i].to.at, p->kept, last);
  for (size_t i = 0; i < p->indices.count; i++) merge_into(&p->indices.data[i], p->kept, last);
  p->loops.count = p->kept + 1;
  p->loops.extent[p->kept] = row;
}

static bool has_tree(const ts_nest *p) {
  for (size_t i = 0; i < p->nodes.count; i++) {
    if (p->nodes.data[i].kind == TS_NEST_REDUCE) return true;
  }
  return false;
}

static bool is_strided(const ts_nest *p) {
  for (size_t i = 0; i < p->loads.count; i++) {
    const ts_access *load = &p->loads.data[i];
    int64_t step = load->at.coef[p->loops.count - 1];
    if (step != 0 && step != (int64_t)ts_dtype_size(load->dtype)) return true;
  }
  return false;
}

/* True when rows (one loop each) are reduced by blocks. */
static bool needs_blocks(const ts_nest *p, int64_t row) {
  return row > TS_REDUCE_BLOCK && (has_tree(p) || row > LONG_SEARCH || is_strided(p));
}

ts_status ts_lowering_add_nest(ts_lowering *l, ts_nest *nest) {
  stage s = {.lowering = l, .nest = nest, .kept = 1, .row = 1};
  if (!nest->reduces) return ts_lowering_add_launch(l, nest);
  for (int32_t i = 0; i < nest->loops.count; i++) *(i < nest->kept ? &s.kept : &s.row) *= nest->loops.extent[i];
  bool one = ts_nest_row_is_one(nest), blocks = needs_blocks(nest, s.row);
  if ((!one || blocks) && !can_stage(nest))
    return ts_error(TS_UNIMPLEMENTED, "no single kernel: a loop nest of long rows");
  if (!one && ts_nest_stores_points(nest))
    return ts_error(TS_UNIMPLEMENTED, "no single kernel: rows that are not one loop, with elements for each point");
  if (!one) return reduce_from_copy(&s);
  merge_row(nest, s.row);
  return blocks ? reduce_in_blocks(&s) : ts_lowering_add_launch(l, nest);
}
