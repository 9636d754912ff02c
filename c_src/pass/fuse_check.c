#include "pass/fuse.h"
#include "pass/nest.h"
#include "tensor/reduce_tree.h"

typedef struct view {
  const ts_fuse_plan *plan;
  uint32_t group, other; /* equal, or two groups that would be joined */
} view;

/* A value that the group does not compute is an operand; its index does not matter for measuring. */
static bool is_outside(const void *context, ts_value_id value, uint32_t *out) {
  const view *v = context;
  ts_op_id op = ts_graph_value(v->plan->graph, value)->op;
  *out = value;
  if (op == TS_NO_ID) return true;
  uint32_t group = v->plan->ops[op].group;
  return group != v->group && group != v->other && !v->plan->ops[op].inlined;
}

/* True when a row is in cache after its first reduction, for further reductions and elementwise ops. */
static bool keeps_row(const ts_fuse_group *group) {
  return group->reduction == TS_NO_ID || (group->trailing && group->row * group->columns <= TS_REDUCE_BLOCK);
}

static int64_t accumulator_bytes(const ts_nest *nest, const ts_nest_node *node) {
  ts_dtype operand = nest->nodes.data[node->a].dtype;
  int64_t size = (int64_t)ts_dtype_size(operand);
  bool tree = ts_dtype_is_float(operand) && (node->op == TS_OP_REDUCE_SUM || node->op == TS_OP_REDUCE_PRODUCT);
  return tree ? TS_REDUCE_LANES * (size < 4 ? 4 : size) : TS_REDUCE_LANES * size;
}

/* True when lowering reads each element once. A group that does not keep its rows in cache has one pass only. */
static bool meets_once(const ts_fuse_group *group, const ts_nest *nest) {
  if (keeps_row(group)) return true;
  if (ts_nest_has_chain(nest)) return false;
  return group->trailing ? !ts_nest_points_wait(nest) : !ts_nest_stores_points(nest);
}

/* True when a view is only reduced. If that takes a copy, it is the copy that the view itself would be. */
static bool only_reduces(const ts_nest *nest) {
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_node *node = &nest->nodes.data[i];
    if (node->varies && node->kind != TS_NEST_LOAD) return false;
  }
  return nest->reduces && nest->loads.count == 1 && !ts_nest_stores_points(nest);
}

/* True when lowering reduces the row without a copy of it that were one more. */
static bool reduces_at_once(const ts_nest *nest) {
  ts_nest_group first;
  if (ts_nest_row_is_one(nest) || only_reduces(nest)) return true;
  return nest->reduces && !ts_nest_has_chain(nest) && !ts_nest_stores_points(nest) && ts_nest_find_group(nest, &first);
}

/* True when the kernel of rows with columns has them take turns, which rows in blocks do not, or needs no elements of a
 * row after its reductions and stores none. */
static bool takes_turns(const ts_fuse_group *group, const ts_nest *nest) {
  if (group->reduction == TS_NO_ID || group->columns == 1) return true;
  if (!ts_nest_has_chain(nest) && !ts_nest_stores_points(nest)) return true;
  return group->row <= TS_REDUCE_BLOCK && ts_nest_columns(nest) == group->columns;
}

/* Rows as short as this are reduced several to a vector where their elements are neighbours. */
#define SHORT_ROW 16
/* Of fewer elements in all, a copy is not worth a kernel of its own. */
#define LEAST_POINTS 8192

/* Bytes of the shortest step of these loops, INT64_MAX if none moves. */
static int64_t least_step(const ts_nest *nest, const ts_affine *at, int32_t first, int32_t end) {
  int64_t least = INT64_MAX;
  for (int32_t l = first; l < end; l++) {
    const int64_t step = at->coef[l] < 0 ? -at->coef[l] : at->coef[l];
    if (nest->loops.extent[l] > 1 && step > 0 && step < least) least = step;
  }
  return least;
}

/* True when many short rows are read whose elements are apart, though nearer than those of columns: a copy of the view
 * and its reduction take a fraction of the time of one row after the other. */
static bool steps_in_short_rows(const ts_nest *nest) {
  int64_t row = 1, points = 1;
  if (!nest->reduces) return false;
  for (int32_t l = 0; l < nest->loops.count; l++) points *= nest->loops.extent[l];
  for (int32_t l = nest->kept; l < nest->loops.count; l++) row *= nest->loops.extent[l];
  if (row < 2 || row > SHORT_ROW || points < LEAST_POINTS) return false;
  for (size_t i = 0; i < nest->loads.count; i++) {
    const ts_access *load = &nest->loads.data[i];
    const int64_t in_row = least_step(nest, &load->at, nest->kept, nest->loops.count);
    const int64_t between = least_step(nest, &load->at, 0, nest->kept);
    if (in_row > (int64_t)ts_dtype_size(load->dtype) && in_row < between) return true;
  }
  return false;
}

static void measure(const view *v, ts_nest *nest, ts_fuse_kernel *out) {
  const ts_fuse_group *group = &v->plan->groups.data[v->group];
  ts_nest_order_row(nest);
  out->fits = reduces_at_once(nest) && takes_turns(group, nest) && !steps_in_short_rows(nest) &&
              (v->group == v->other || meets_once(group, nest));
  out->bytes = ts_nest_bytes_read(nest);
  for (size_t i = 0; i < nest->nodes.count; i++) {
    const ts_nest_node *node = &nest->nodes.data[i];
    if (ts_nest_node_reduces(node)) out->accumulators += accumulator_bytes(nest, node);
  }
}

static ts_status build(const view *v, const ts_nest_root *roots, size_t count, ts_fuse_kernel *out) {
  const ts_nest_spec spec = {.graph = v->plan->graph,
                             .operand = is_outside,
                             .context = v,
                             .roots = roots,
                             .root_count = count,
                             .reduce = v->plan->groups.data[v->group].reduction};
  ts_arena arena;
  ts_nest nest;
  *out = (ts_fuse_kernel){0};
  ts_arena_init(&arena);
  ts_status status = ts_nest_build(&spec, &arena, &nest);
  if (!status) {
    measure(v, &nest, out);
    ts_nest_deinit(&nest);
  }
  ts_arena_deinit(&arena);
  if (ts_status_code(status) != TS_UNIMPLEMENTED) return status;
  ts_status_free(status);
  return TS_SUCCESS;
}

/* Each part of a pad or concatenate is a kernel of its own. */
static ts_status build_parts(const view *v, const ts_op *root, ts_fuse_kernel *out) {
  out->fits = true;
  for (uint32_t i = 0; out->fits && i < root->operand_count; i++) {
    ts_nest_root part = ts_nest_root_whole(v->plan->graph, root->operands[i], 0);
    if (ts_shape_elements(&part.shape) > 0) TS_TRY(build(v, &part, 1, out));
  }
  return TS_SUCCESS;
}

/* Adds the group's results, the root's first. False when there are too many. */
static bool add_roots(const ts_fuse_plan *plan, uint32_t id, ts_nest_root *roots, size_t *count) {
  const ts_fuse_group *group = &plan->groups.data[id];
  if (*count == TS_NEST_MAX_OPERANDS) return false;
  roots[(*count)++] = ts_nest_root_whole(plan->graph, ts_graph_op(plan->graph, group->root)->first_result, 0);
  for (ts_op_id op = group->first; op != TS_NO_ID; op = plan->ops[op].next) {
    if (op == group->root || !plan->ops[op].is_output) continue;
    if (*count == TS_NEST_MAX_OPERANDS) return false;
    roots[(*count)++] = ts_nest_root_whole(plan->graph, ts_graph_op(plan->graph, op)->first_result, 0);
  }
  return true;
}

ts_status ts_fuse_measure(ts_fuse_plan *plan, uint32_t group, uint32_t other, ts_fuse_kernel *out) {
  ts_nest_root roots[TS_NEST_MAX_OPERANDS];
  size_t count = 0;
  ts_fuse_group *alone = group == other ? &plan->groups.data[group] : NULL;
  if (alone && alone->measured) {
    *out = alone->kernel;
    return TS_SUCCESS;
  }
  if (plan->groups.data[group].reduction == TS_NO_ID) {
    uint32_t swapped = group;
    group = other, other = swapped;
  }
  view v = {plan, group, other};
  *out = (ts_fuse_kernel){0};
  if (!add_roots(plan, group, roots, &count)) return TS_SUCCESS;
  if (other != group && !add_roots(plan, other, roots, &count)) return TS_SUCCESS;
  TS_TRY(build(&v, roots, count, out));
  if (alone) {
    alone->measured = true;
    alone->kernel = *out;
  }
  return TS_SUCCESS;
}

ts_status ts_fuse_check_group(ts_fuse_plan *plan, uint32_t id, bool *out) {
  const ts_fuse_group *group = &plan->groups.data[id];
  view v = {plan, id, id};
  ts_fuse_kernel kernel;
  *out = !group->composite && !plan->check_all;
  if (*out) return TS_SUCCESS;
  if (group->writes_parts) {
    TS_TRY(build_parts(&v, ts_graph_op(plan->graph, group->root), &kernel));
  } else {
    TS_TRY(ts_fuse_measure(plan, id, id, &kernel));
  }
  *out = kernel.fits;
  return TS_SUCCESS;
}

bool ts_fuse_reads_view(const ts_graph *graph, const ts_op *op) {
  const ts_op_id maker = ts_graph_value(graph, op->operands[0])->op;
  if (maker == TS_NO_ID) return false;
  const ts_opcode code = ts_graph_op(graph, maker)->code;
  return (ts_op_rows[code].fusion & TS_FUSION_VIEW) && code != TS_OP_BROADCAST;
}
