/* The order of a region's steps. An epilogue runs with its routine, so its other operands must be there before. A front
 * end that writes op by op puts the small ops of a scale or a shift between the two. They are computed before the
 * routine instead, if they do not depend on it. */
#include "exec/builder.h"
#include "kernel/routine.h"

#include <stdlib.h>

/* What moves is kept while the routine runs. */
#define MOVED_BYTES (64 << 10)
/* Ops that move for one reader at most. */
#define MOVED_OPS 16

typedef struct move {
  ts_op_id before, op;
} move;

typedef struct order {
  const ts_graph *graph;
  ts_op_id first; /* of the region */
  /* For each op from the first on, the routine that it moves before; TS_NO_ID: it stays. NULL before the first move. */
  ts_op_id *targets;
  size_t target_count;
  ts_op_id found[MOVED_OPS]; /* the ops of one search */
  size_t found_count;
} order;

static ts_op_id maker_of(const ts_graph *g, ts_value_id v) { return ts_graph_value(g, v)->op; }

static bool is_kernel(const ts_graph *g, const ts_op *op) {
  if (op->code == TS_OP_FUSION) return true;
  ts_op_class class = ts_op_get_class(op->code);
  if (class == TS_CLASS_CONTROL || class == TS_CLASS_COLLECTIVE || ts_op_is_ordered(op->code)) return false;
  return op->operand_count == 0 || !ts_routine_of(op->code, ts_graph_value(g, op->operands[0])->dtype);
}

static bool is_small(const ts_graph *g, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    const ts_value *v = ts_graph_value(g, op->first_result + i);
    if (ts_shape_elements(v->shape) > MOVED_BYTES / (int64_t)ts_dtype_size(v->dtype)) return false;
  }
  return true;
}

/* The product or convolution that makes the value, perhaps with a reshape after it. */
static ts_op_id routine_of(const ts_graph *g, ts_value_id v) {
  ts_op_id id = maker_of(g, v);
  while (id != TS_NO_ID && ts_lower_is_alias(g, id)) id = maker_of(g, ts_graph_op(g, id)->operands[0]);
  return id != TS_NO_ID && ts_op_get_class(ts_graph_op(g, id)->code) == TS_CLASS_DOT ? id : TS_NO_ID;
}

static ts_op_id target_of(const order *o, ts_op_id id) { return o->targets ? o->targets[id - o->first] : TS_NO_ID; }

/* Collects the ops that must move for the op to come before the routine; false when it cannot. */
static bool find_moves(order *o, ts_op_id id, ts_op_id routine) {
  if (id == TS_NO_ID || id < routine || target_of(o, id) <= routine) return true;
  const ts_op *op = ts_graph_op(o->graph, id);
  if (id == routine || o->found_count == MOVED_OPS || !is_kernel(o->graph, op) || !is_small(o->graph, op)) return false;
  o->found[o->found_count++] = id;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!find_moves(o, maker_of(o->graph, op->operands[i]), routine)) return false;
  return true;
}

static ts_status note_moves(order *o, ts_op_id routine) {
  if (!o->targets) {
    TS_TRY(TS_NEW_ARRAY(o->target_count, &o->targets));
    for (size_t i = 0; i < o->target_count; i++) o->targets[i] = TS_NO_ID;
  }
  for (size_t i = 0; i < o->found_count; i++) o->targets[o->found[i] - o->first] = routine;
  return TS_SUCCESS;
}

/* The last routine whose result the op reads is the one whose epilogue it may be. */
static ts_status place_operands(order *o, const ts_op *op) {
  ts_op_id routine = TS_NO_ID;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_op_id id = routine_of(o->graph, op->operands[i]);
    if (id != TS_NO_ID && (routine == TS_NO_ID || id > routine)) routine = id;
  }
  for (uint32_t i = 0; i < op->operand_count && routine != TS_NO_ID; i++) {
    if (routine_of(o->graph, op->operands[i]) != TS_NO_ID) continue;
    o->found_count = 0;
    if (find_moves(o, maker_of(o->graph, op->operands[i]), routine) && o->found_count > 0)
      TS_TRY(note_moves(o, routine));
  }
  return TS_SUCCESS;
}

static int compare_moves(const void *a, const void *b) {
  const move *x = a, *y = b;
  if (x->before != y->before) return x->before < y->before ? -1 : 1;
  return x->op < y->op ? -1 : x->op > y->op;
}

/* Writes the ops; `moves` has room for as many. */
static void write_order(const order *o, const ts_region *region, move *moves, ts_op_id *out) {
  size_t count = 0, next = 0, at = 0;
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_op_id id = region->ops.data[i], before = target_of(o, id);
    if (before != TS_NO_ID) moves[count++] = (move){before, id};
  }
  qsort(moves, count, sizeof(*moves), compare_moves);
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_op_id id = region->ops.data[i];
    while (next < count && moves[next].before == id) out[at++] = moves[next++].op;
    if (target_of(o, id) == TS_NO_ID) out[at++] = id;
  }
}

ts_status ts_builder_order(const ts_graph *graph, ts_region_id id, ts_op_id **out) {
  const ts_region *region = ts_graph_region(graph, id);
  const size_t count = region->ops.count;
  *out = NULL;
  if (count == 0) return TS_SUCCESS;
  order o = {.graph = graph, .first = region->ops.data[0]};
  o.target_count = (size_t)(region->ops.data[count - 1] - o.first) + 1;
  ts_status status = TS_SUCCESS;
  for (size_t i = 0; i < count && !status; i++) {
    const ts_op *op = ts_graph_op(graph, region->ops.data[i]);
    if (op->operand_count > 1 && is_kernel(graph, op)) status = place_operands(&o, op);
  }
  move *moves = NULL;
  if (!status && o.targets) status = TS_NEW_ARRAY(count, &moves);
  if (!status && o.targets) status = TS_NEW_ARRAY(count, out);
  if (!status && o.targets) write_order(&o, region, moves, *out);
  ts_free(moves);
  ts_free(o.targets);
  return status;
}
