/* Reductions that take several launches. A row of more than TS_REDUCE_BLOCK elements is reduced in blocks into a
 * temporary. The temporary is reduced in turn: the tree of tensor/reduce_tree.h. For argmax and argmin each block
 * yields its best element and that element's index in the block. The best element of all selects the block, and the
 * block its element; among equals, the choice of the first or last is preserved. Where the row is not a single affine
 * loop, or its elements are scattered, they are first computed into a temporary; those of short pieces, of one row
 * after the other, into the workspace of a thread. */
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
  const ts_affine *at; /* where the elements are in `temp`, if they are not dense in the order of the loops */
  bool finds;          /* an argmax or argmin by blocks: `temp` holds the blocks' best elements */
  uint32_t indices;    /* the temporary with the best elements' indices in their blocks, s32 */
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
  p->has_parts = true;
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

/* Elements are combined in the partial result's type. */
static ts_status convert_operand(ts_nest *p, const partial *part, ts_nest_node *reduce) {
  const ts_dtype type = p->nodes.data[reduce->a].dtype;
  if (type == part->dtype || reduce->op == TS_OP_REDUCE_ALL || reduce->op == TS_OP_REDUCE_ANY) return TS_SUCCESS;
  TS_TRY(TS_VEC_PUSH(&p->nodes, op_node(TS_NEST_OP, TS_OP_CONVERT, part->dtype, reduce->a)));
  p->nodes.data[p->nodes.count - 1].varies = p->nodes.data[reduce->a].varies;
  reduce->a = (int32_t)p->nodes.count - 1;
  return TS_SUCCESS;
}

static ts_status store_partial(ts_nest *p, const partial *part, int64_t row_extent, bool full) {
  ts_nest_node reduce = p->nodes.data[part->node];
  if (part->finds) {
    ts_opcode best = ts_arg_takes_largest(reduce.op) ? TS_OP_REDUCE_MAX : TS_OP_REDUCE_MIN;
    TS_TRY(store_blocks(p, op_node(TS_NEST_REDUCE, best, part->dtype, reduce.a), part->temp, row_extent, full));
    reduce.dtype = TS_S32;
    return store_blocks(p, reduce, part->indices, row_extent, full);
  }
  TS_TRY(convert_operand(p, part, &reduce));
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
  if (part->at) p->loads.data[load.slot].at = *part->at;
  TS_TRY(ts_nest_add_node(p, load, &reduce.a));
  if (reduce.kind == TS_NEST_REDUCE && ts_dtype_accumulator(wanted) == part->dtype) reduce.dtype = part->dtype;
  if (part->finds) reduce.dtype = TS_S64;
  TS_TRY(ts_nest_add_node(p, reduce, out));
  if (part->finds) TS_TRY(add_index(p, part, width, *out, out));
  if (reduce.dtype == wanted) return TS_SUCCESS;
  return ts_nest_add_node(p, op_node(TS_NEST_OP, TS_OP_CONVERT, wanted, *out), out);
}

/* The operands by their new numbers. */
static void renumber(ts_nest_node *node, const int32_t *map) {
  if (node->a >= 0) node->a = map[node->a];
  if (node->kind == TS_NEST_OP && node->b >= 0) node->b = map[node->b];
  if (node->kind == TS_NEST_OP && node->c >= 0) node->c = map[node->c];
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
    renumber(&node, map);
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

static void exchange(ts_nest *p, int32_t a, int32_t b) {
  int64_t extent = p->loops.extent[a];
  p->loops.extent[a] = p->loops.extent[b];
  p->loops.extent[b] = extent;
  for (size_t i = 0; i < p->loads.count + p->indices.count; i++) {
    int64_t *coef = i < p->loads.count ? p->loads.data[i].at.coef : p->indices.data[i - p->loads.count].coef;
    const int64_t first = coef[a];
    coef[a] = coef[b];
    coef[b] = first;
  }
}

/* Where the elements of a copy are, for the nest before its loops were moved: `column` was moved to the end. */
static ts_status map_columns(const stage *s, const ts_affine *to, int32_t column, const ts_affine **out) {
  const int32_t last = s->nest->loops.count - 1;
  ts_affine *at;
  TS_TRY(TS_ARENA_ARRAY(s->lowering->arena, 1, &at));
  for (int32_t l = 0; l < s->nest->kept; l++) at->coef[l] = to->coef[l < column ? l : l - 1];
  at->coef[column] = to->coef[last];
  at->coef[s->nest->kept] = to->coef[last - 1];
  *out = at;
  return TS_SUCCESS;
}

/* Computes the rows' elements into temporaries, then reduces those. Where columns lie next to each other, so they do in
 * the copy. */
static ts_status reduce_from_copy(stage *s) {
  const int32_t loops = s->nest->loops.count, column = ts_lowering_find_columns(s->nest);
  ts_nest p;
  TS_TRY(collect(s, s->row, true));
  ts_status status = copy_nest(s->nest, &p);
  p.kept = loops;
  p.reduces = false;
  for (int32_t l = column; !status && column >= 0 && l + 1 < loops; l++) exchange(&p, l, l + 1);
  for (int32_t i = 0; !status && i < s->count; i++) {
    partial *part = &s->partials[i];
    ts_nest_store store = {.to = {.role = TS_ROLE_TEMP, .index = part->temp, .dtype = part->dtype},
                           .node = p.nodes.data[part->node].a};
    int64_t size = (int64_t)ts_dtype_size(part->dtype);
    store.to.at = temp_map(&p.loops, loops, -1, 0, 1, size);
    if (column >= 0) status = map_columns(s, &store.to.at, column, &part->at);
    if (!status) status = TS_VEC_PUSH(&p.stores, store);
  }
  if (!status) status = ts_lowering_add_launch(s->lowering, &p);
  ts_nest_deinit(&p);
  return status ? status : add_rest(s, s->row);
}

/* ---- rows of several loops whose order changes no bit ---- */

static void move_last(int64_t *of_loops, const ts_nest_group *g, int32_t count) {
  int64_t moved[TS_LOOP_MAX];
  int32_t length = g->end - g->first;
  memcpy(moved, of_loops + g->first, (size_t)length * sizeof(*moved));
  memmove(of_loops + g->first, of_loops + g->end, (size_t)(count - g->end) * sizeof(*moved));
  memcpy(of_loops + count - length, moved, (size_t)length * sizeof(*moved));
}

/* Makes the group the only reduced loops. */
static void reduce_group(ts_nest *p, const ts_nest_group *g) {
  const int32_t count = p->loops.count;
  move_last(p->loops.extent, g, count);
  for (size_t i = 0; i < p->loads.count; i++) move_last(p->loads.data[i].at.coef, g, count);
  for (size_t i = 0; i < p->indices.count; i++) move_last(p->indices.data[i].coef, g, count);
  p->kept = count - (g->end - g->first);
}

/* Adds a reduction of the group, in the type of its partial result, and stores that. */
static ts_status add_group(ts_nest *p, const partial *part, ts_nest_node reduce) {
  ts_nest_store store = {.to = {.role = TS_ROLE_TEMP, .index = part->temp, .dtype = part->dtype}};
  TS_TRY(convert_operand(p, part, &reduce));
  reduce.dtype = part->dtype;
  store.to.at = temp_map(&p->loops, p->kept, -1, 0, 1, (int64_t)ts_dtype_size(part->dtype));
  TS_TRY(ts_nest_add_node(p, reduce, &store.node));
  return TS_VEC_PUSH(&p->stores, store);
}

static bool is_complete(const ts_nest_node *node, const int32_t *map) {
  const bool is_op = node->kind == TS_NEST_OP;
  return (node->a < 0 || map[node->a] >= 0) &&
         (!is_op || ((node->b < 0 || map[node->b] >= 0) && (node->c < 0 || map[node->c] >= 0)));
}

/* The nodes that the reductions read, and the reductions of the group. The whole reductions and the nodes that read
 * them are left to the next stage: a launch in blocks would compute each reduction that it finds. */
static ts_status store_group(const stage *s, ts_nest *p) {
  int32_t map[TS_NEST_MAX_NODES];
  p->nodes.count = 0;
  for (size_t i = 0; i < s->nest->nodes.count; i++) {
    ts_nest_node node = s->nest->nodes.data[i];
    const partial *part = find_partial(s, (int32_t)i);
    map[i] = -1;
    if (!is_complete(&node, map)) continue;
    renumber(&node, map);
    TS_TRY(part ? add_group(p, part, node) : ts_nest_add_node(p, node, &map[i]));
  }
  return TS_SUCCESS;
}

/* Reduces some of the loops first, then the others, without a copy of the elements. */
static ts_status reduce_in_turn(stage *s, const ts_nest_group *first) {
  const int64_t width = s->row / first->extent;
  ts_nest p;
  TS_TRY(collect(s, width, false));
  ts_status status = copy_nest(s->nest, &p);
  if (!status) {
    reduce_group(&p, first);
    status = store_group(s, &p);
  }
  if (!status) status = ts_lowering_add_nest(s->lowering, &p);
  ts_nest_deinit(&p);
  return status ? status : add_rest(s, width);
}

/* ---- rows in pieces ---- */

static void insert_loop(int64_t *of_loops, int32_t at, int32_t count, int64_t value) {
  memmove(of_loops + at + 1, of_loops + at, (size_t)(count - at) * sizeof(*of_loops));
  of_loops[at] = value;
}

/* A kept loop counts the blocks, whose elements the kernel finds in the pieces. */
static void add_block_loop(ts_nest *p, int64_t blocks) {
  const int32_t count = p->loops.count;
  insert_loop(p->loops.extent, p->kept, count, blocks);
  for (size_t i = 0; i < p->loads.count; i++) insert_loop(p->loads.data[i].at.coef, p->kept, count, 0);
  for (size_t i = 0; i < p->indices.count; i++) insert_loop(p->indices.data[i].coef, p->kept, count, 0);
  p->loops.count++;
  p->kept++;
  p->has_blocks = true;
}

/* Long rows in pieces: a thread joins what a block has of them. */
static ts_status reduce_pieces(stage *s) {
  const int64_t blocks = (s->row + TS_REDUCE_BLOCK - 1) / TS_REDUCE_BLOCK;
  ts_nest p;
  TS_TRY(collect(s, blocks, false));
  s->lowering->by_blocks = s->lowering->launches.count == 0 || s->lowering->by_blocks;
  ts_status status = copy_nest(s->nest, &p);
  if (!status) {
    add_block_loop(&p, blocks);
    status = store_partials(s, &p, s->row, true);
  }
  if (!status) status = ts_lowering_add_launch(s->lowering, &p);
  ts_nest_deinit(&p);
  return status ? status : add_rest(s, blocks);
}

/* More than one loop has several elements, and with one for the blocks they are not too many. */
static bool is_in_long_pieces(const ts_nest *p) {
  int32_t loops = 0;
  for (int32_t l = p->kept; l < p->loops.count; l++) loops += p->loops.extent[l] > 1;
  return loops > 1 && p->loops.count < TS_KERNEL_MAX_RANK;
}

static ts_status reduce_apart(stage *s) {
  ts_nest_group first;
  if (ts_nest_find_group(s->nest, &first)) return reduce_in_turn(s, &first);
  if (!ts_nest_is_in_pieces(s->nest)) return reduce_from_copy(s);
  if (s->row <= TS_REDUCE_BLOCK) return ts_lowering_add_launch(s->lowering, s->nest);
  return is_in_long_pieces(s->nest) ? reduce_pieces(s) : reduce_from_copy(s);
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

/* ---- rows of one element ---- */

/* Each reduction adds so many nodes at most. */
#define SINGLE_NODES 4

static ts_status single_number(ts_nest *p, ts_dtype type, ts_scalar value, int32_t *out) {
  ts_nest_node node = op_node(TS_NEST_SCALAR, TS_OP_PARAMETER, type, -1);
  TS_TRY(ts_nest_add_scalar(p, type, value, &node.slot));
  return ts_nest_add_node(p, node, out);
}

static ts_status single_convert(ts_nest *p, ts_dtype type, int32_t *node) {
  if (p->nodes.data[*node].dtype == type) return TS_SUCCESS;
  return ts_nest_add_node(p, op_node(TS_NEST_OP, TS_OP_CONVERT, type, *node), node);
}

static ts_status single_truth(ts_nest *p, int32_t *node) {
  ts_nest_node differs = op_node(TS_NEST_OP, TS_OP_NOT_EQUAL, TS_U8, *node);
  TS_TRY(single_number(p, p->nodes.data[*node].dtype, (ts_scalar){0}, &differs.b));
  return ts_nest_add_node(p, differs, node);
}

/* The reduction of the one element `x`: its op of the identity and the element, or index 0. */
static ts_status single_result(ts_nest *p, const ts_nest_node *reduce, int32_t x, int32_t *out) {
  const ts_combiner *by = ts_combiner_of(reduce->op);
  if (reduce->kind == TS_NEST_ARG) return single_number(p, reduce->dtype, (ts_scalar){0}, out);
  const ts_dtype type = by->logical ? TS_U8 : ts_dtype_accumulator(p->nodes.data[x].dtype);
  ts_nest_node op = op_node(TS_NEST_OP, by->op, type, -1);
  TS_TRY(by->logical ? single_truth(p, &x) : single_convert(p, type, &x));
  TS_TRY(single_number(p, type, ts_combiner_identity(by, type), &op.a));
  op.b = x;
  TS_TRY(ts_nest_add_node(p, op, out));
  return single_convert(p, reduce->dtype, out);
}

/* True when every reduction can be an op of its element. */
static bool is_single(const ts_nest *nest, int64_t row) {
  size_t nodes = nest->nodes.count;
  if (row != 1) return false;
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_node *node = &nest->nodes.data[i];
    if (!ts_nest_node_reduces(node)) continue;
    if (node->kind == TS_NEST_REDUCE && ts_dtype_is_complex(nest->nodes.data[node->a].dtype)) return false;
    nodes += SINGLE_NODES;
  }
  return nodes <= TS_NEST_MAX_NODES;
}

/* A row for each element would cost a start and an end for each. */
static ts_status add_single(ts_lowering *l, const ts_nest *nest) {
  int32_t map[TS_NEST_MAX_NODES];
  ts_nest p;
  ts_status status = copy_nest(nest, &p);
  p.nodes.count = 0;
  p.kept = p.loops.count;
  p.reduces = false;
  for (size_t i = 0; !status && i < nest->nodes.count; i++) {
    ts_nest_node node = nest->nodes.data[i];
    if (ts_nest_node_reduces(&node)) {
      status = single_result(&p, &node, map[node.a], &map[i]);
      continue;
    }
    renumber(&node, map);
    status = ts_nest_add_node(&p, node, &map[i]);
  }
  for (size_t i = 0; !status && i < nest->stores.count; i++) {
    ts_nest_store store = nest->stores.data[i];
    store.node = map[store.node];
    status = TS_VEC_PUSH(&p.stores, store);
  }
  if (!status) status = ts_lowering_add_launch(l, &p);
  ts_nest_deinit(&p);
  return status;
}

/* ---- the choice ---- */

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

/* ---- rows of scattered elements ---- */

#define MOST_COPIED_BYTES (INT64_C(64) << 20)

/* For one reduction of many elements, of which some are scattered, and which is all that has results: a load of such
 * elements. */
static const ts_access *find_scattered(const ts_nest *p, const stage *s) {
  const ts_nest_node *reduce = NULL;
  const ts_access *scattered = NULL;
  if (ts_nest_stores_points(p) || !can_stage(p)) return NULL;
  /* Each of the two launches has one operand more. */
  if (p->loads.count + p->stores.count + p->indices.count >= TS_NEST_MAX_OPERANDS) return NULL;
  for (size_t i = 0; i < p->nodes.count; i++) {
    const ts_nest_node *node = &p->nodes.data[i];
    if (node->kind == TS_NEST_GATHER || (reduce && ts_nest_node_reduces(node))) return NULL;
    if (ts_nest_node_reduces(node)) reduce = node;
  }
  if (!reduce) return NULL;
  for (size_t i = 0; i < p->nodes.count && !scattered; i++) { /* loads that no node has are of an earlier stage */
    const ts_nest_node *node = &p->nodes.data[i];
    if (node->kind != TS_NEST_LOAD) continue;
    const ts_access *load = &p->loads.data[node->slot];
    if (ts_lowering_is_worth_copy(p, load, reduce)) scattered = load;
  }
  const int64_t size = (int64_t)ts_dtype_size(p->nodes.data[reduce->a].dtype);
  return s->kept * s->row * size <= MOST_COPIED_BYTES ? scattered : NULL;
}

/* Puts the loops into the order in which a load's elements lie in memory. `place` are the old loops' new places. */
static void order_by_memory(ts_nest *p, const ts_access *load, int32_t *place) {
  int32_t loop_at[TS_LOOP_MAX];
  for (int32_t l = 0; l < p->loops.count; l++) loop_at[l] = l;
  for (int32_t l = 1; l < p->loops.count; l++) {
    for (int32_t k = l; k > 0 && ts_affine_distance(&load->at, k - 1) < ts_affine_distance(&load->at, k); k--) {
      const int32_t moved = loop_at[k];
      loop_at[k] = loop_at[k - 1];
      loop_at[k - 1] = moved;
      exchange(p, k - 1, k);
    }
  }
  for (int32_t l = 0; l < p->loops.count; l++) place[loop_at[l]] = l;
}

/* Computes the elements into a temporary in the order of `memory`, one of the loads, then reduces that. */
static ts_status reduce_scattered(stage *s, const ts_access *memory) {
  const int32_t loops = s->nest->loops.count;
  int32_t place[TS_LOOP_MAX];
  ts_affine *at;
  ts_nest p;
  TS_TRY(collect(s, s->row, true));
  TS_TRY(TS_ARENA_ARRAY(s->lowering->arena, 1, &at));
  partial *part = &s->partials[0];
  ts_status status = copy_nest(s->nest, &p);
  if (!status) {
    order_by_memory(&p, &p.loads.data[memory - s->nest->loads.data], place);
    p.kept = loops;
    p.reduces = false;
    ts_nest_store store = {.to = {.role = TS_ROLE_TEMP, .index = part->temp, .dtype = part->dtype},
                           .node = p.nodes.data[part->node].a};
    store.to.at = temp_map(&p.loops, loops, -1, 0, 1, (int64_t)ts_dtype_size(part->dtype));
    for (int32_t l = 0; l < loops; l++) at->coef[l] = store.to.at.coef[place[l]];
    status = TS_VEC_PUSH(&p.stores, store);
  }
  if (!status) status = ts_lowering_add_launch(s->lowering, &p);
  ts_nest_deinit(&p);
  part->at = at;
  return status ? status : add_rest(s, s->row);
}

ts_status ts_lowering_add_nest(ts_lowering *l, ts_nest *nest) {
  stage s = {.lowering = l, .nest = nest, .kept = 1, .row = 1};
  if (!nest->reduces) return ts_lowering_add_launch(l, nest);
  for (int32_t i = 0; i < nest->loops.count; i++) *(i < nest->kept ? &s.kept : &s.row) *= nest->loops.extent[i];
  if (is_single(nest, s.row)) return add_single(l, nest);
  ts_nest_order_row(nest);
  bool one = ts_nest_row_is_one(nest), blocks = needs_blocks(nest, s.row);
  if ((!one || blocks) && !can_stage(nest))
    return ts_error(TS_UNIMPLEMENTED, "no single kernel: a loop nest of long rows");
  if (!one && ts_nest_stores_points(nest))
    return ts_error(TS_UNIMPLEMENTED, "no single kernel: rows that are not one loop, with elements for each point");
  if (one) merge_row(nest, s.row);
  const ts_access *scattered = find_scattered(nest, &s);
  if (scattered && nest->loops.count == nest->kept + 1) return reduce_scattered(&s, scattered);
  if (scattered) return reduce_from_copy(&s);
  if (!one) return reduce_apart(&s);
  return blocks ? reduce_in_blocks(&s) : ts_lowering_add_launch(l, nest);
}
