#include "jit/loop/loop_plan.h"

/* From this weight on, a store and a load cost less than recomputing in a later pass. */
#define SAVE_FROM 5

static int32_t op_weight(ts_opcode op, ts_dtype type) {
  const ts_op_cost *cost = ts_op_get_cost(op);
  if (!ts_dtype_is_float(type)) return ts_dtype_bits(type) == 64 ? cost->wide : cost->integers;
  return cost->floats + (ts_dtype_is_narrow(type) ? cost->half : 0);
}

/* Of one vector. The greater and the lesser of floats are several instructions, because of NaN and -0. */
static int32_t reduce_weight(ts_opcode op, ts_dtype type) {
  switch ((ts_ops_REDUCE)op) {
  case TS_OP_REDUCE_MAX:
  case TS_OP_REDUCE_MIN: return ts_dtype_is_float(type) ? 4 : 1;
  case TS_OP_REDUCE_SUM:
  case TS_OP_REDUCE_PRODUCT:
  case TS_OP_REDUCE_ALL: /* of truth values */
  case TS_OP_REDUCE_ANY: return 1;
  case TS_OP_REDUCE: break; /* ts_kernel_check refuses it */
  }
  return 1;
}

static int32_t load_weight(const ts_kernel_desc *d, const ts_kernel_operand *o) {
  if (o->stride[d->rank - 1] == TS_STRIDE_ANY) return 6;
  return o->stride[d->rank - 1] == TS_STRIDE_NEAR && d->kind != TS_KERNEL_JOINED ? 3 : 1;
}

static int32_t node_weight(const ts_kernel_desc *d, const ts_kernel_node *n) {
  switch (n->kind) {
  case TS_NODE_SCALAR: return 0;
  case TS_NODE_LOAD: return load_weight(d, &d->inputs[n->slot]);
  case TS_NODE_INDEX: return 2;
  case TS_NODE_GATHER: return 10;
  case TS_NODE_ARG: return 5;
  case TS_NODE_REDUCE: return reduce_weight(n->op, n->dtype);
  case TS_NODE_OP: return op_weight(n->op, d->nodes[n->a].dtype);
  }
  return 0;
}

static uint8_t map_level(const ts_kernel_desc *d, const ts_kernel_operand *operand) {
  if (operand->stride[d->rank - 1] == TS_STRIDE_TURN) return TS_LEVEL_ROW;
  const int32_t points = d->kind == TS_KERNEL_JOINED || d->kind == TS_KERNEL_TILE ? ts_kernel_row_dim(d) : d->rank - 1;
  for (int32_t i = points; i < d->rank; i++)
    if (operand->stride[i] != TS_STRIDE_ZERO) return TS_LEVEL_POINT;
  for (int32_t i = 0; i < points; i++) {
    if (operand->stride[i] != TS_STRIDE_ZERO) return TS_LEVEL_ROW;
  }
  return TS_LEVEL_KERNEL;
}

static void place_node(const ts_kernel_desc *d, ts_loop_plan *p, int32_t id) {
  const ts_kernel_node *n = &d->nodes[id];
  uint8_t level = TS_LEVEL_KERNEL;
  int32_t stage = 0, operands[3];
  int count = ts_kernel_node_operands(n, operands);
  for (int i = 0; i < count; i++) {
    if (p->level[operands[i]] > level) level = p->level[operands[i]];
    if (p->stage[operands[i]] > stage) stage = p->stage[operands[i]];
  }
  if (n->kind == TS_NODE_LOAD || n->kind == TS_NODE_GATHER) {
    uint8_t of_map = map_level(d, &d->inputs[n->slot]);
    if (of_map > level) level = of_map;
  } else if (n->kind == TS_NODE_INDEX) {
    level = map_level(d, &d->indices[n->slot]);
  } else if (ts_kernel_node_reduces(n)) {
    level = d->kind == TS_KERNEL_ROW ? TS_LEVEL_ROW : TS_LEVEL_POINT;
    stage++;
  }
  p->level[id] = level;
  p->stage[id] = stage;
  p->weight[id] = node_weight(d, n);
}

static void mark_needed(const ts_kernel_desc *d, ts_loop_plan *p) {
  for (int32_t i = 0; i < d->output_count; i++) p->needed[d->outputs[i].node] = true;
  for (int32_t id = d->node_count - 1; id >= 0; id--) {
    int32_t operands[3];
    int count = p->needed[id] ? ts_kernel_node_operands(&d->nodes[id], operands) : 0;
    for (int i = 0; i < count; i++) p->needed[operands[i]] = true;
    if (p->needed[id]) p->total_weight += p->weight[id];
  }
}

/* ---- ROW ---- */

static bool same_map(const ts_kernel_desc *d, const ts_kernel_operand *a, const ts_kernel_operand *b) {
  if (ts_dtype_size(a->dtype) != ts_dtype_size(b->dtype)) return false;
  for (int32_t i = 0; i < d->rank; i++) {
    if (a->stride[i] != b->stride[i]) return false;
  }
  return true;
}

void ts_loop_plan_pass(const ts_kernel_desc *d, const ts_loop_plan *p, int32_t pass, bool *wanted) {
  for (int32_t id = 0; id < d->node_count; id++) wanted[id] = false;
  for (int32_t i = 0; i < d->output_count; i++) {
    if (p->output_pass[i] == pass) wanted[d->outputs[i].node] = true;
  }
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_kernel_node *n = &d->nodes[id];
    bool reduces = ts_kernel_node_reduces(n) && p->needed[id] && p->stage[id] == pass + 1;
    if (reduces) wanted[n->a] = true;
  }
  for (int32_t id = d->node_count - 1; id >= 0; id--) {
    int32_t operands[3];
    bool open = wanted[id] && p->level[id] == TS_LEVEL_POINT && !(p->saved[id] >= 0 && p->first[id] < pass);
    int count = open ? ts_kernel_node_operands(&d->nodes[id], operands) : 0;
    for (int i = 0; i < count; i++) wanted[operands[i]] = true;
  }
}

/* An output that may share memory with an input is stored in the last pass that reads the input. */
static void delay_outputs(const ts_kernel_desc *d, ts_loop_plan *p, int32_t pass, const bool *wanted, bool *changed) {
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_kernel_node *n = &d->nodes[id];
    if (!wanted[id] || n->kind != TS_NODE_LOAD) continue;
    for (int32_t i = 0; i < d->output_count; i++) {
      if (p->output_pass[i] >= pass || !same_map(d, &d->outputs[i].operand, &d->inputs[n->slot])) continue;
      p->output_pass[i] = pass;
      *changed = true;
    }
  }
}

static void note_first(const ts_kernel_desc *d, ts_loop_plan *p, int32_t pass, const bool *wanted) {
  for (int32_t id = 0; id < d->node_count; id++) {
    if (wanted[id] && p->first[id] > pass) p->first[id] = pass;
  }
}

/* The cost of recomputing a node in a later pass, down to loads and saved nodes. */
static int32_t recompute_weight(const ts_kernel_desc *d, const ts_loop_plan *p, int32_t id, int depth) {
  if (p->level[id] != TS_LEVEL_POINT || p->saved[id] >= 0) return 0;
  if (depth > 8) return SAVE_FROM;
  int32_t operands[3], weight = p->weight[id];
  int count = ts_kernel_node_operands(&d->nodes[id], operands);
  for (int i = 0; i < count && weight < SAVE_FROM; i++) weight += recompute_weight(d, p, operands[i], depth + 1);
  return weight;
}

/* Saves a node that a later pass wants and that is expensive to recompute. Visits nodes from the results down, since
 * saving a node can make its operands unnecessary. */
static bool save_nodes(const ts_kernel_desc *d, ts_loop_plan *p, int32_t pass, const bool *wanted) {
  for (int32_t id = d->node_count - 1; id >= 0; id--) {
    bool early = wanted[id] && p->level[id] == TS_LEVEL_POINT && p->first[id] < pass && p->saved[id] < 0;
    if (!early || recompute_weight(d, p, id, 0) < SAVE_FROM) continue;
    p->saved[id] = p->saved_bytes;
    p->saved_bytes += (int64_t)ts_dtype_size(d->nodes[id].dtype);
    return true;
  }
  return false;
}

/* The last pass that some reduction or output depends on. */
static int32_t count_passes(const ts_kernel_desc *d, const ts_loop_plan *p) {
  int32_t passes = 0;
  for (int32_t i = 0; i < d->output_count; i++) {
    bool at_points = !ts_kernel_is_of_row(d, &d->outputs[i].operand);
    if (at_points && p->output_pass[i] >= passes) passes = p->output_pass[i] + 1;
  }
  for (int32_t id = 0; id < d->node_count; id++) {
    bool reduces = ts_kernel_node_reduces(&d->nodes[id]);
    if (reduces && p->needed[id] && p->stage[id] > passes) passes = p->stage[id];
  }
  return passes;
}

static void plan_row(const ts_kernel_desc *d, ts_loop_plan *p, bool *wanted) {
  for (int32_t i = 0; i < d->output_count; i++) p->output_pass[i] = p->stage[d->outputs[i].node];
  bool changed = true;
  while (changed) {
    changed = false;
    p->passes = count_passes(d, p);
    for (int32_t id = 0; id < d->node_count; id++) p->first[id] = INT32_MAX;
    for (int32_t pass = 0; pass < p->passes; pass++) {
      ts_loop_plan_pass(d, p, pass, wanted);
      note_first(d, p, pass, wanted);
      delay_outputs(d, p, pass, wanted, &changed);
      if (!changed) changed = save_nodes(d, p, pass, wanted);
      if (changed) break;
    }
  }
}

ts_status ts_loop_plan_make(const ts_kernel_desc *desc, ts_arena *arena, ts_loop_plan *out) {
  ts_loop_plan plan = {0};
  size_t nodes = (size_t)desc->node_count;
  bool *wanted;
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.level));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.needed));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.stage));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.weight));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.first));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &plan.saved));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)desc->output_count, &plan.output_pass));
  TS_TRY(TS_ARENA_ARRAY(arena, nodes, &wanted));
  for (int32_t id = 0; id < desc->node_count; id++) {
    place_node(desc, &plan, id);
    plan.saved[id] = -1;
  }
  mark_needed(desc, &plan);
  if (desc->kind == TS_KERNEL_ROW) plan_row(desc, &plan, wanted);
  *out = plan;
  return TS_SUCCESS;
}
