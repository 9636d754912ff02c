/* Decides which ops become one kernel. Visits a region from the last op to the first, so that all users of an op are
 * placed before it:
 *   - an op that costs nothing (constant, broadcast, iota, reshape) is inlined into each group that reads it, and so is
 *     a light elementwise op that no other op needs in memory;
 *   - an op that one group reads joins that group; if it is also a result of the region, as one more output;
 *   - any other op starts a group or stays an op of its own.
 * Groups whose outputs are results of the region only, over the same space, are merged where they read the same op. An
 * op that joins has no users outside of the group (results of the region are read last), so no cycle can arise, and the
 * group's kernel can run at the root's position. Afterwards sibling reductions are joined: fuse_siblings.c.
 * Near-linear.
 */
#include "pass/fuse.h"

#include "ir/combiner.h"
#include "tensor/reduce_tree.h"

#define MAX_INPUTS 36
#define MAX_MEMBERS 160
#define MAX_DEPTH 6

/* How far the fusion of an op is restricted after its group made no kernel, step by step. NO_PRODUCERS: a reduction
 * reads its operand from memory. NO_ROWS: a reduction or reshape joins no group of its users. SOLO: the op stays an op
 * of its own. */
enum { FREE, NO_PRODUCERS, NO_ROWS, SOLO };

ts_status ts_fuse_plan_init(ts_fuse_plan *plan, const ts_graph *graph) {
  *plan = (ts_fuse_plan){.graph = graph};
  return TS_NEW_ARRAY(graph->ops.count, &plan->ops);
}

void ts_fuse_plan_deinit(ts_fuse_plan *plan) {
  ts_free(plan->ops);
  ts_free(plan->use_start);
  ts_free(plan->use_ops);
  ts_free(plan->candidates);
  TS_VEC_FREE(&plan->groups);
}

int32_t ts_fuse_weight(ts_opcode op) { return ts_op_get_cost(op)->again; }

/* ---- classes of ops ---- */

static bool is_reduction(ts_opcode code) { return ts_op_rows[code].fusion & TS_FUSION_ROWS; }
static bool writes_parts(ts_opcode code) { return ts_op_rows[code].fusion & TS_FUSION_PARTS; }
static bool is_view(ts_opcode code) { return ts_op_rows[code].fusion & TS_FUSION_VIEW; }
static bool is_free(ts_opcode code) { return ts_op_rows[code].fusion & TS_FUSION_CHEAP; }
static bool is_elementwise(ts_opcode code) { return ts_op_rows[code].fusion & TS_FUSION_POINTS; }

static const ts_value *result_of(const ts_fuse_plan *p, const ts_op *op) {
  return ts_graph_value(p->graph, op->first_result);
}

static bool is_fusible(const ts_fuse_plan *p, const ts_op *op) {
  return ts_op_rows[op->code].fusion != TS_FUSION_ALONE && ts_graph_has_kernel_types(p->graph, op);
}

static int64_t elements_of(const ts_fuse_plan *p, ts_value_id value) {
  return ts_shape_elements(ts_graph_value(p->graph, value)->shape);
}

static ts_fuse_op *maker_of(const ts_fuse_plan *p, ts_value_id value) {
  ts_op_id op = ts_graph_value(p->graph, value)->op;
  return op == TS_NO_ID ? NULL : &p->ops[op];
}

/* Shorter rows that a slice steps over share lines of the caches with what it leaves out. */
#define ROW_BYTES 64

/* True when the view's elements are not one behind the other, at least in rows of whole lines. */
static bool has_steps(const ts_fuse_plan *p, const ts_op *op) {
  if (op->code != TS_OP_SLICE) return true;
  const ts_value *view = result_of(p, op);
  const ts_dims *stride = &op->attrs->slice.stride;
  const int32_t last = stride->rank - 1;
  const bool has_rows = last >= 0 && stride->dims[last] == 1 &&
                        view->shape->dims[last] * (int64_t)ts_dtype_size(view->dtype) >= ROW_BYTES;
  for (int32_t d = 0; d <= last; d++)
    if (stride->dims[d] != 1 && !has_rows) return true;
  return false;
}

/* True when the gather reads through a view of memory. Where it would read most elements several times, and not one
 * behind the other, a copy is faster. */
static bool gathers_through(const ts_fuse_plan *p, const ts_op *gather) {
  const int64_t most = elements_of(p, gather->operands[0]), read = elements_of(p, gather->first_result);
  ts_op_id maker = ts_graph_value(p->graph, gather->operands[0])->op;
  bool is_view = false;
  while (maker != TS_NO_ID && ts_nest_gathers_through(ts_graph_op(p->graph, maker)->code)) {
    const ts_op *view = ts_graph_op(p->graph, maker);
    if (read > most && has_steps(p, view)) return false;
    is_view = true;
    maker = ts_graph_value(p->graph, view->operands[0])->op;
  }
  return is_view && (maker == TS_NO_ID || !is_fusible(p, ts_graph_op(p->graph, maker)));
}

/* True when a kernel can read the operand from memory only: an indexed one that is no view of memory, or the unknown
 * start of a slice. */
static bool edge_is_memory(const ts_fuse_plan *p, const ts_op *op, uint32_t operand) {
  ts_scalar known;
  switch (op->code) {
  case TS_OP_TAKE:
  case TS_OP_TAKE_ALONG: return operand == 0 && !gathers_through(p, op);
  case TS_OP_DYNAMIC_SLICE: return operand == 0 || !ts_graph_is_constant(p->graph, op->operands[operand], &known);
  default: return false;
  }
}

/* ---- rows ---- */

typedef struct rows {
  int64_t points, rows, row;
  int64_t columns; /* elements of the kept dims after them, if that are few; otherwise 1 */
  bool trailing;   /* the reduced dims are the last ones but for these */
  bool adjacent;   /* no kept dim lies between the reduced ones */
} rows;

static rows rows_of(const ts_fuse_plan *p, const ts_op *op) {
  const ts_shape *shape = ts_graph_value(p->graph, op->operands[0])->shape;
  rows r = {.points = ts_shape_elements(shape),
            .rows = ts_shape_elements(result_of(p, op)->shape),
            .columns = 1,
            .adjacent = true};
  bool is_reduced[TS_MAX_RANK] = {0}, reduced = false, kept_after = false;
  bool arg = ts_op_get_class(op->code) == TS_CLASS_ARG_REDUCE;
  for (int32_t d = 0; d < shape->rank; d++)
    is_reduced[d] = arg && (op->attrs->arg.axis < 0 || op->attrs->arg.axis == d);
  for (int32_t i = 0; !arg && i < op->attrs->axes.rank; i++) is_reduced[op->attrs->axes.dims[i]] = true;
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] == 1) continue;
    if (is_reduced[d] && kept_after) r.adjacent = false;
    if (is_reduced[d])
      reduced = true;
    else
      kept_after = kept_after || reduced;
    if (reduced && !is_reduced[d]) r.columns *= shape->dims[d];
  }
  r.row = r.rows > 0 ? r.points / r.rows : 0;
  const bool few = !arg && ts_reduce_takes_turns(r.columns);
  r.trailing = r.adjacent && (!kept_after || few);
  if (!few) r.columns = 1;
  return r;
}

/* ---- groups ---- */

static void add_user(ts_fuse_op *op, uint32_t group) {
  if (op->users == TS_NO_GROUP || group == TS_MANY_GROUPS)
    op->users = group;
  else if (op->users == group || op->second == group)
    return;
  else if (op->second == TS_NO_GROUP)
    op->second = group;
  else
    op->users = TS_MANY_GROUPS;
}

/* Records that `group` reads the op's operands or, with `from_memory`, that they must be in memory. */
static void use_operands(ts_fuse_plan *p, const ts_op *op, uint32_t group, bool from_memory) {
  const int64_t points = group < TS_MANY_GROUPS ? p->groups.data[group].points : elements_of(p, op->first_result);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_fuse_op *maker = maker_of(p, op->operands[i]);
    if (!maker) continue;
    if (points > maker->read_by) maker->read_by = points;
    if (from_memory || edge_is_memory(p, op, i))
      maker->for_op = true;
    else
      add_user(maker, group);
  }
}

static void stand_alone(ts_fuse_plan *p, const ts_op *op, ts_fuse_op *state) {
  state->alone = true;
  use_operands(p, op, TS_NO_GROUP, true);
}

/* True when lowering copies the elements of a row before it reduces them: dims between the reduced ones are kept, and
 * the order counts. */
static bool copies_rows(const ts_fuse_plan *p, const ts_op *op) {
  const ts_dtype type = ts_graph_value(p->graph, op->operands[0])->dtype;
  return !ts_combiner_is_orderless(op->code, type) && !rows_of(p, op).adjacent && !ts_fuse_reads_view(p->graph, op);
}

static bool takes_no_producers(const ts_fuse_plan *p, const ts_op *op, const ts_fuse_op *state) {
  if (state->restraint >= SOLO) return true;
  return is_reduction(op->code) && (state->restraint >= NO_PRODUCERS || copies_rows(p, op));
}

static void add_member(ts_fuse_plan *p, uint32_t id, ts_op_id op_id) {
  const ts_op *op = ts_graph_op(p->graph, op_id);
  ts_fuse_op *state = &p->ops[op_id];
  ts_fuse_group *group = &p->groups.data[id];
  state->group = id;
  state->next = group->first;
  group->first = op_id;
  group->members++;
  group->inputs += (int32_t)op->operand_count - 1;
  group->composite = group->composite || !is_elementwise(op->code);
  use_operands(p, op, id, takes_no_producers(p, op, state));
}

static void set_rows(ts_fuse_group *group, const rows *r) {
  group->points = r->points, group->rows = r->rows, group->row = r->row;
  group->trailing = r->trailing, group->columns = r->columns;
}

static ts_status start_group(ts_fuse_plan *p, ts_op_id op_id) {
  const ts_op *op = ts_graph_op(p->graph, op_id);
  ts_fuse_group group = {
      .root = op_id, .position = op_id, .first = TS_NO_ID, .reduction = TS_NO_ID, .columns = 1, .inputs = 1};
  group.points = elements_of(p, op->first_result);
  group.writes_parts = writes_parts(op->code);
  group.has_points = true;
  group.terminal = p->ops[op_id].users == TS_NO_GROUP && !p->ops[op_id].for_op;
  group.merged = (uint32_t)p->groups.count;
  if (is_reduction(op->code)) {
    rows r = rows_of(p, op);
    group.reduction = op_id;
    set_rows(&group, &r);
    group.has_points = false;
  }
  TS_TRY(TS_VEC_PUSH(&p->groups, group));
  p->ops[op_id].is_output = true;
  add_member(p, (uint32_t)p->groups.count - 1, op_id);
  return TS_SUCCESS;
}

/* ---- joining ---- */

/* Counts the values that a group reads from outside, without constants; at most 2 * MAX_INPUTS. */
static int32_t count_inputs(const ts_fuse_plan *p, uint32_t id) {
  ts_value_id seen[2 * MAX_INPUTS];
  int32_t count = 0;
  for (ts_op_id o = p->groups.data[id].first; o != TS_NO_ID; o = p->ops[o].next) {
    const ts_op *op = ts_graph_op(p->graph, o);
    for (uint32_t i = 0; i < op->operand_count; i++) {
      ts_value_id value = op->operands[i];
      ts_op_id maker = ts_graph_value(p->graph, value)->op;
      bool known =
          maker != TS_NO_ID && (p->ops[maker].group == id || ts_graph_op(p->graph, maker)->code == TS_OP_CONSTANT);
      for (int32_t k = 0; k < count && !known; k++) known = seen[k] == value;
      if (known) continue;
      seen[count++] = value;
      if (count == 2 * MAX_INPUTS) return count;
    }
  }
  return count;
}

static bool has_room(ts_fuse_plan *p, uint32_t id, const ts_op *op) {
  ts_fuse_group *group = &p->groups.data[id];
  if (group->members >= MAX_MEMBERS) return false;
  if (group->inputs + (int32_t)op->operand_count <= MAX_INPUTS) return true;
  group->inputs = count_inputs(p, id);
  return group->inputs + (int32_t)op->operand_count <= MAX_INPUTS;
}

/* True when a reduction may join the group: its rows are the group's rows. */
static bool reduction_fits(const ts_fuse_plan *p, const ts_fuse_group *group, const ts_op *op) {
  rows r = rows_of(p, op);
  bool in_cache = r.trailing && r.row * r.columns <= TS_REDUCE_BLOCK;
  if (r.row <= 1 || !r.adjacent || group->writes_parts) return false;
  if (group->reduction != TS_NO_ID) {
    return in_cache && group->trailing && group->points == r.points && group->rows == r.rows &&
           group->columns == r.columns;
  }
  if (group->points == r.points) return in_cache;
  return group->points == r.rows;
}

static void absorb_reduction(ts_fuse_plan *p, uint32_t id, ts_op_id op) {
  ts_fuse_group *group = &p->groups.data[id];
  rows r = rows_of(p, ts_graph_op(p->graph, op));
  if (group->reduction == TS_NO_ID) {
    group->has_points = group->points == r.points;
    group->reduction = op;
    set_rows(group, &r);
  }
}

/* True when the op has as many elements as one of the root's parts, each computed separately. */
static bool is_part(const ts_fuse_plan *p, const ts_op *root, int64_t elements) {
  for (uint32_t i = 0; i < root->operand_count; i++) {
    if (elements_of(p, root->operands[i]) == elements) return true;
  }
  return false;
}

/* True when the op has one element for each row, and its reduction may join as well. */
static bool is_of_rows(const ts_fuse_plan *p, const ts_fuse_group *group, const ts_op *op) {
  ts_op_id reduction = maker_of(p, op->first_result)->reduction;
  return reduction != TS_NO_ID && reduction_fits(p, group, ts_graph_op(p->graph, reduction));
}

/* False when the op would be recomputed for every copy that a broadcast makes of its element. */
static bool size_fits(const ts_fuse_plan *p, const ts_fuse_group *group, const ts_op *op) {
  int64_t elements = elements_of(p, op->first_result);
  if (elements == 0) return false;
  if (group->writes_parts) return is_view(op->code) || is_part(p, ts_graph_op(p->graph, group->root), elements);
  if (elements >= group->points || ts_fuse_weight(op->code) == 1) return true;
  return group->reduction != TS_NO_ID ? elements == group->rows : is_of_rows(p, group, op);
}

static bool may_be_output(const ts_fuse_plan *p, const ts_fuse_group *group, const ts_op *op) {
  int64_t elements = elements_of(p, op->first_result);
  if (group->writes_parts || is_view(op->code)) return false;
  if (group->reduction == TS_NO_ID) return elements == group->points;
  return elements == group->rows || (elements == group->points && group->trailing);
}

static bool may_join(ts_fuse_plan *p, ts_op_id id) {
  const ts_fuse_op *state = &p->ops[id];
  const ts_op *op = ts_graph_op(p->graph, id);
  if (state->users >= TS_MANY_GROUPS || state->for_op || state->restraint >= SOLO || writes_parts(op->code))
    return false;
  const ts_fuse_group *group = &p->groups.data[state->users];
  if (p->ops[group->root].restraint >= SOLO) return false;
  if (group->writes_parts && !is_elementwise(op->code) && !is_view(op->code)) return false;
  if (is_reduction(op->code) && (state->restraint >= NO_ROWS || !reduction_fits(p, group, op))) return false;
  if (op->code == TS_OP_RESHAPE && state->restraint >= NO_ROWS) return false;
  if (!is_reduction(op->code) && !size_fits(p, group, op)) return false;
  if (state->for_result && !may_be_output(p, group, op)) return false;
  return has_room(p, state->users, op);
}

static void join(ts_fuse_plan *p, ts_op_id id) {
  ts_fuse_op *state = &p->ops[id];
  const ts_op *op = ts_graph_op(p->graph, id);
  uint32_t group = state->users;
  if (is_reduction(op->code)) absorb_reduction(p, group, id);
  state->is_output = state->for_result;
  if (state->is_output) p->groups.data[group].composite = true;
  add_member(p, group, id);
}

/* ---- merging ---- */

/* Terminal groups are read by no op, so they cannot depend on each other. */
static bool may_merge(ts_fuse_plan *p, uint32_t a, uint32_t b) {
  const ts_fuse_group *x = &p->groups.data[a], *y = &p->groups.data[b];
  const ts_fuse_op *x_root = &p->ops[x->root], *y_root = &p->ops[y->root];
  if (!x->terminal || !y->terminal || x->writes_parts || y->writes_parts) return false;
  if (x->reduction != TS_NO_ID || y->reduction != TS_NO_ID || x_root->restraint > FREE || y_root->restraint > FREE)
    return false;
  if (x->members + y->members > MAX_MEMBERS || x->inputs + y->inputs > MAX_INPUTS) return false;
  return ts_shape_equal(result_of(p, ts_graph_op(p->graph, x->root))->shape,
                        result_of(p, ts_graph_op(p->graph, y->root))->shape);
}

/* Merges the groups that read an op, if possible; otherwise the op has many users. */
static void settle_users(ts_fuse_plan *p, ts_fuse_op *state, const ts_op *op) {
  if (state->users >= TS_MANY_GROUPS) return;
  state->users = ts_fuse_find(p, state->users);
  if (state->second == TS_NO_GROUP) return;
  state->second = ts_fuse_find(p, state->second);
  if (state->users == state->second) return;
  if (!is_free(op->code) && may_merge(p, state->users, state->second))
    ts_fuse_merge(p, state->users, state->second);
  else
    state->users = TS_MANY_GROUPS;
}

/* ---- inlining ---- */

/* A view, or a light op with one large operand: reading the operand again costs no more than reading the result. */
static bool is_cheap(const ts_fuse_plan *p, const ts_op *op) {
  ts_value_id large = TS_NO_ID;
  if (is_view(op->code)) return true;
  if (!is_elementwise(op->code) || ts_fuse_weight(op->code) > 1) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_op_id maker = ts_graph_value(p->graph, op->operands[i])->op;
    if (maker != TS_NO_ID && is_free(ts_graph_op(p->graph, maker)->code)) continue;
    if (large != TS_NO_ID && large != op->operands[i]) return false;
    large = op->operands[i];
  }
  return true;
}

/* Derives from the operands: the depth of inlinable ops, and the reduction that the elements come from. */
static void look_back(ts_fuse_plan *p, ts_op_id id, ts_fuse_op *state) {
  const ts_op *op = ts_graph_op(p->graph, id);
  uint8_t depth = 0;
  ts_op_id reduction = TS_NO_ID;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_fuse_op *maker = maker_of(p, op->operands[i]);
    if (!maker) continue;
    if (maker->depth > depth) depth = maker->depth;
    if (reduction == TS_NO_ID) reduction = maker->reduction;
  }
  bool could = is_free(op->code) || is_cheap(p, op);
  state->depth = could ? (uint8_t)(depth < UINT8_MAX ? depth + 1 : depth) : 0;
  if (is_reduction(op->code)) state->reduction = id;
  if (is_elementwise(op->code) || op->code == TS_OP_RESHAPE) state->reduction = reduction;
}

/* How often the elements of the op's operand are repeated one behind the other within a row of the result: 1, unless
 * the op is a reshape of a broadcast. */
static int64_t count_repeats(const ts_fuse_plan *p, const ts_op *op) {
  if (op->code != TS_OP_RESHAPE) return 1;
  const ts_value *of = ts_graph_value(p->graph, op->operands[0]);
  if (of->op == TS_NO_ID || ts_graph_op(p->graph, of->op)->code != TS_OP_BROADCAST) return 1;
  const ts_op *broadcast = ts_graph_op(p->graph, of->op);
  const ts_shape *from = ts_graph_value(p->graph, broadcast->operands[0])->shape, *row = result_of(p, op)->shape;
  int64_t repeats = 1;
  int32_t axis = from->rank - 1;
  for (int32_t d = of->shape->rank - 1; d >= 0; d--) {
    const bool given = axis >= 0 && broadcast->attrs->broadcast.axes.dims[axis] == d;
    if (given && from->dims[axis] > 1) break;
    repeats *= of->shape->dims[d];
    axis -= given;
  }
  return row->rank > 0 && repeats < row->dims[row->rank - 1] ? repeats : 1;
}

/* Shorter runs of one element cut the rows of a kernel into loops of few vectors. */
#define FEW_REPEATS 64
/* An op with so many times fewer elements than its readers costs nothing as a kernel of its own. */
#define MANY_READS 8

/* True for few elements that are repeated within rows, such as the moments of groups of channels: kernels that read
 * the repeated elements from memory have long rows. */
static bool cuts_rows(const ts_fuse_plan *p, ts_op_id id) {
  const ts_op *op = ts_graph_op(p->graph, id);
  const int64_t elements = elements_of(p, op->first_result), repeats = count_repeats(p, op);
  return repeats > 1 && repeats < FEW_REPEATS && elements <= p->ops[id].read_by / MANY_READS;
}

static bool may_inline(const ts_fuse_plan *p, ts_op_id id) {
  const ts_fuse_op *state = &p->ops[id];
  const ts_op *op = ts_graph_op(p->graph, id);
  if (state->users == TS_NO_GROUP || state->depth == 0 || state->depth > MAX_DEPTH || state->restraint >= SOLO)
    return false;
  if (op->code == TS_OP_RESHAPE && state->restraint >= NO_ROWS) return false;
  if (op->code == TS_OP_CONSTANT) return true;
  if (elements_of(p, op->first_result) == 0) return false;
  if (is_free(op->code)) return true;
  return state->users == TS_MANY_GROUPS && !state->for_op && !state->for_result;
}

/* A group that inlines views other than broadcasts must be checked. */
static void note_view(ts_fuse_plan *p, const ts_op *op, uint32_t users) {
  if (!is_view(op->code) || op->code == TS_OP_BROADCAST) return;
  if (users == TS_MANY_GROUPS)
    p->check_all = true;
  else
    p->groups.data[users].composite = true;
}

/* ---- the region ---- */

static ts_status place_op(ts_fuse_plan *p, ts_op_id id) {
  ts_fuse_op *state = &p->ops[id];
  const ts_op *op = ts_graph_op(p->graph, id);
  bool wanted = state->for_op || state->for_result || ts_graph_has_effect(p->graph, op);
  settle_users(p, state, op);
  if (state->users == TS_NO_GROUP && !wanted) return TS_SUCCESS; /* dead code */
  if (!is_fusible(p, op)) {
    stand_alone(p, op, state);
    return TS_SUCCESS;
  }
  const bool apart = cuts_rows(p, id);
  if (!apart && may_inline(p, id)) {
    state->inlined = true;
    note_view(p, op, state->users);
    use_operands(p, op, state->users, false);
    if (!wanted) return TS_SUCCESS;
    stand_alone(p, op, state);
    return TS_SUCCESS;
  }
  if (!apart && may_join(p, id)) {
    join(p, id);
    return TS_SUCCESS;
  }
  if ((is_free(op->code) && !apart) || elements_of(p, op->first_result) == 0 || state->restraint >= SOLO ||
      (is_reduction(op->code) && elements_of(p, op->operands[0]) == 0)) {
    stand_alone(p, op, state);
    return TS_SUCCESS;
  }
  return start_group(p, id);
}

static void reset_region(ts_fuse_plan *p, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    ts_fuse_op *op = &p->ops[region->ops.data[i]];
    *op = (ts_fuse_op){.group = TS_NO_GROUP,
                       .users = TS_NO_GROUP,
                       .second = TS_NO_GROUP,
                       .restraint = op->restraint,
                       .next = TS_NO_ID,
                       .reduction = TS_NO_ID};
    look_back(p, region->ops.data[i], op);
  }
  for (size_t i = 0; i < region->results.count; i++) {
    ts_fuse_op *maker = maker_of(p, region->results.data[i]);
    if (maker) maker->for_result = true;
  }
}

/* Raises the restraint of the members of groups that make no kernel. */
static ts_status check_groups(ts_fuse_plan *p, size_t first, bool *out_all_fit) {
  *out_all_fit = true;
  for (size_t g = first; g < p->groups.count; g++) {
    bool fits;
    if (p->groups.data[g].merged != g) continue;
    TS_TRY(ts_fuse_check_group(p, (uint32_t)g, &fits));
    if (fits) continue;
    *out_all_fit = false;
    for (ts_op_id op = p->groups.data[g].first; op != TS_NO_ID; op = p->ops[op].next) p->ops[op].restraint++;
  }
  return TS_SUCCESS;
}

ts_status ts_fuse_plan_region(ts_fuse_plan *p, ts_region_id id) {
  const ts_region *region = ts_graph_region(p->graph, id);
  size_t first = p->groups.count;
  TS_TRY(TS_VEC_RESERVE(&p->groups, first + region->ops.count));
  for (bool all_fit = false; !all_fit;) {
    p->groups.count = first;
    p->check_all = false;
    reset_region(p, region);
    for (size_t i = region->ops.count; i-- > 0;) TS_TRY(place_op(p, region->ops.data[i]));
    TS_TRY(check_groups(p, first, &all_fit));
  }
  return ts_fuse_join_siblings(p, id, first);
}
