/* Joins a reduction and other groups that read the same values over the same rows: one kernel reads them once.
 * Examples: mean and variance, minimum and maximum, the sums of a loss and its gradient. The groups need not read each
 * other, and any op may read them, so the position of the joined group matters. It takes the earlier group's position
 * if all operands of the later one are computed before it. It takes the later group's position if no op reads the
 * earlier group's results before it. Otherwise the groups stay separate. Every op has a position, so no cycle can
 * arise. Near-linear: each value has a few candidates, and only neighbours in the graph are visited. */
#include "pass/fuse.h"

#include "tensor/reduce_tree.h"

#define MAX_CANDIDATES 8     /* of each value */
#define MAX_MEMBERS 64       /* of each joined group */
#define MAX_INPUTS 32        /* of a group that are considered */
#define MAX_ACCUMULATORS 512 /* bytes: four f32 sums, which fit into registers, or into cache when reducing columns */
#define SHORT_ROW 64         /* elementwise ops are faster in a kernel of their own than over shorter rows */
#define MAX_DEPTH 8

/* A group that reads some value. */
typedef struct candidate {
  uint32_t group;
  uint32_t next; /* index of the value's next candidate + 1; NONE */
} candidate;

#define NONE 0 /* `candidates` holds list indices + 1 */

typedef struct siblings {
  ts_fuse_plan *plan;
  TS_VEC(candidate) list;
} siblings;

/* ---- readers ---- */

static ts_status find_readers(ts_fuse_plan *p) {
  const ts_graph *graph = p->graph;
  size_t edges = 0;
  if (p->use_start) return TS_SUCCESS;
  for (size_t i = 0; i < graph->ops.count; i++) edges += graph->ops.data[i].operand_count;
  TS_TRY(TS_NEW_ARRAY(graph->values.count + 2, &p->use_start));
  TS_TRY(TS_NEW_ARRAY(edges + 1, &p->use_ops));
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &p->candidates));
  uint32_t *end = p->use_start +
                  1; /* while filling, the end of each value's readers; afterwards use_start is one entry before it */
  for (size_t i = 0; i < graph->ops.count; i++) {
    const ts_op *op = &graph->ops.data[i];
    for (uint32_t k = 0; k < op->operand_count; k++) end[op->operands[k] + 1]++;
  }
  for (size_t v = 0; v < graph->values.count; v++) end[v + 1] += end[v];
  for (size_t i = 0; i < graph->ops.count; i++) {
    const ts_op *op = &graph->ops.data[i];
    for (uint32_t k = 0; k < op->operand_count; k++) p->use_ops[end[op->operands[k]]++] = (ts_op_id)i;
  }
  return TS_SUCCESS;
}

/* ---- positions ---- */

static bool is_member(const ts_fuse_op *op) { return op->group != TS_NO_GROUP; }

static ts_op_id position_of(const ts_fuse_plan *p, ts_op_id op) {
  return is_member(&p->ops[op]) ? p->groups.data[p->ops[op].group].position : op;
}

/* True when a value is available before `position` or computed by one of the two groups. */
static bool is_available(const ts_fuse_plan *p, ts_value_id value, ts_op_id position, uint32_t own, uint32_t beside,
                         int depth) {
  ts_op_id maker = ts_graph_value(p->graph, value)->op;
  if (maker == TS_NO_ID) return true;
  const ts_fuse_op *state = &p->ops[maker];
  if (is_member(state) && (state->group == own || state->group == beside)) return true;
  if (!state->inlined) return position_of(p, maker) < position;
  if (depth == MAX_DEPTH) return false;
  const ts_op *op = ts_graph_op(p->graph, maker);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (!is_available(p, op->operands[i], position, own, beside, depth + 1)) return false;
  }
  return true;
}

/* True when all operands of the later group are available at the earlier one's position. */
static bool can_come_forward(const ts_fuse_plan *p, uint32_t later, uint32_t earlier) {
  ts_op_id position = p->groups.data[earlier].position;
  for (ts_op_id id = p->groups.data[later].first; id != TS_NO_ID; id = p->ops[id].next) {
    const ts_op *op = ts_graph_op(p->graph, id);
    for (uint32_t i = 0; i < op->operand_count; i++) {
      if (!is_available(p, op->operands[i], position, later, earlier, 0)) return false;
    }
  }
  return true;
}

/* True when all readers of a value are after `position`, or in one of two groups. */
static bool is_read_after(const ts_fuse_plan *p, ts_value_id value, ts_op_id position, uint32_t a, uint32_t b,
                          int depth) {
  for (uint32_t u = p->use_start[value]; u < p->use_start[value + 1]; u++) {
    ts_op_id reader = p->use_ops[u];
    const ts_fuse_op *state = &p->ops[reader];
    if (is_member(state) && state->group != a && state->group != b && position_of(p, reader) <= position) return false;
    if (state->alone && reader <= position) return false;
    if (!state->inlined) continue;
    if (depth == MAX_DEPTH || !is_read_after(p, ts_graph_op(p->graph, reader)->first_result, position, a, b, depth + 1))
      return false;
  }
  return true;
}

/* True when no op reads the earlier group's results before the later one's position. */
static bool can_wait(const ts_fuse_plan *p, uint32_t earlier, uint32_t later) {
  ts_op_id position = p->groups.data[later].position;
  for (ts_op_id id = p->groups.data[earlier].first; id != TS_NO_ID; id = p->ops[id].next) {
    if (!p->ops[id].is_output) continue;
    if (!is_read_after(p, ts_graph_op(p->graph, id)->first_result, position, earlier, later, 0)) return false;
  }
  return true;
}

/* ---- pairs ---- */

static bool is_reduction_group(const ts_fuse_group *g) { return g->reduction != TS_NO_ID; }

/* True when elementwise ops may run on rows that a reduction keeps in cache. */
static bool goes_along(const ts_fuse_group *points, const ts_fuse_group *rows) {
  return points->points == rows->points && rows->trailing && rows->row >= SHORT_ROW;
}

static bool same_space(const ts_fuse_group *a, const ts_fuse_group *b) {
  if (!is_reduction_group(a)) return is_reduction_group(b) && goes_along(a, b);
  if (!is_reduction_group(b)) return goes_along(b, a);
  return a->points == b->points && a->rows == b->rows && a->trailing == b->trailing && a->columns == b->columns;
}

/* True when one kernel saves at least half of the bytes that the smaller group reads. */
static ts_status pays(ts_fuse_plan *p, uint32_t a, uint32_t b, ts_fuse_kernel *both, bool *out) {
  ts_fuse_kernel one, other;
  *out = false;
  TS_TRY(ts_fuse_measure(p, a, b, both));
  if (!both->fits || both->accumulators > MAX_ACCUMULATORS) return TS_SUCCESS;
  TS_TRY(ts_fuse_measure(p, a, a, &one));
  TS_TRY(ts_fuse_measure(p, b, b, &other));
  int64_t saved = one.bytes + other.bytes - both->bytes, smaller = one.bytes < other.bytes ? one.bytes : other.bytes;
  *out = saved > 0 && 2 * saved >= smaller;
  return TS_SUCCESS;
}

/* A value that only its own group reads is no longer an output of it. */
static void find_outputs(ts_fuse_plan *p, uint32_t group) {
  for (ts_op_id id = p->groups.data[group].first; id != TS_NO_ID; id = p->ops[id].next) {
    ts_fuse_op *op = &p->ops[id];
    ts_value_id value = ts_graph_op(p->graph, id)->first_result;
    op->is_output =
        op->is_output && (op->for_result || op->for_op || !is_read_after(p, value, TS_NO_ID - 1, group, group, 0));
  }
}

/* `kernel` was measured for both groups together. An output that was dropped is still computed inside, so the kernel
 * reads the same. */
static void join(ts_fuse_plan *p, uint32_t into, uint32_t from, ts_op_id position, const ts_fuse_kernel *kernel) {
  ts_fuse_group *a = &p->groups.data[into], *b = &p->groups.data[from];
  if (!is_reduction_group(a)) {
    a->reduction = b->reduction;
    a->rows = b->rows, a->row = b->row, a->trailing = b->trailing, a->columns = b->columns;
  }
  a->has_points = a->has_points || b->has_points;
  ts_fuse_merge(p, into, from);
  a->position = position;
  a->measured = true;
  a->kernel = *kernel;
  find_outputs(p, into);
}

static bool may_pair(const ts_fuse_plan *p, uint32_t a, uint32_t b) {
  const ts_fuse_group *x = &p->groups.data[a], *y = &p->groups.data[b];
  return a != b && x->members + y->members <= MAX_MEMBERS && same_space(x, y);
}

static ts_status try_pair(ts_fuse_plan *p, uint32_t a, uint32_t b, bool *out) {
  *out = false;
  if (!may_pair(p, a, b)) return TS_SUCCESS;
  uint32_t early = p->groups.data[a].position < p->groups.data[b].position ? a : b, late = early == a ? b : a;
  bool forward = can_come_forward(p, late, early);
  if (!forward && !can_wait(p, early, late)) return TS_SUCCESS;
  ts_fuse_kernel both;
  TS_TRY(pays(p, a, b, &both, out));
  if (*out) join(p, a, b, p->groups.data[forward ? early : late].position, &both);
  return TS_SUCCESS;
}

/* ---- the operands of a group ---- */

typedef struct inputs {
  ts_value_id values[MAX_INPUTS];
  int32_t count;
} inputs;

static void add_input(inputs *in, ts_value_id value) {
  for (int32_t i = 0; i < in->count; i++) {
    if (in->values[i] == value) return;
  }
  if (in->count < MAX_INPUTS) in->values[in->count++] = value;
}

/* Adds the values that the op reads from memory and that have an element for each point. */
static void add_inputs(const ts_fuse_plan *p, uint32_t group, ts_op_id id, inputs *in, int depth) {
  const ts_op *op = ts_graph_op(p->graph, id);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *value = ts_graph_value(p->graph, op->operands[i]);
    const ts_fuse_op *maker = value->op == TS_NO_ID ? NULL : &p->ops[value->op];
    if (maker && maker->inlined && depth < MAX_DEPTH)
      add_inputs(p, group, value->op, in, depth + 1);
    else if (!(maker && maker->group == group) && ts_shape_elements(value->shape) >= p->groups.data[group].points)
      add_input(in, op->operands[i]);
  }
}

static void find_inputs(const ts_fuse_plan *p, uint32_t group, inputs *in) {
  in->count = 0;
  for (ts_op_id id = p->groups.data[group].first; id != TS_NO_ID; id = p->ops[id].next) {
    add_inputs(p, group, id, in, 0);
    if (p->ops[id].is_output) add_input(in, ts_graph_op(p->graph, id)->first_result);
  }
}

static ts_status add_candidate(siblings *s, ts_value_id value, uint32_t group) {
  candidate c = {group, s->plan->candidates[value]};
  TS_TRY(TS_VEC_PUSH(&s->list, c));
  s->plan->candidates[value] = (uint32_t)s->list.count;
  return TS_SUCCESS;
}

/* Groups that were tried already, since a pair may share several values. */
typedef struct tried {
  uint32_t groups[MAX_CANDIDATES];
  int count;
} tried;

static bool was_tried(tried *t, uint32_t group) {
  for (int i = 0; i < t->count; i++) {
    if (t->groups[i] == group) return true;
  }
  if (t->count < MAX_CANDIDATES) t->groups[t->count++] = group;
  return false;
}

static ts_status visit(siblings *s, uint32_t group) {
  ts_fuse_plan *p = s->plan;
  inputs in;
  tried t = {.count = 0};
  find_inputs(p, group, &in);
  for (int32_t i = 0; i < in.count; i++) {
    uint32_t at = p->candidates[in.values[i]];
    for (int n = 0; at != NONE && at <= s->list.count && n < MAX_CANDIDATES; n++) {
      bool joined = false;
      uint32_t other = ts_fuse_find(p, s->list.data[at - 1].group);
      if (!was_tried(&t, other)) TS_TRY(try_pair(p, other, ts_fuse_find(p, group), &joined));
      if (joined) {
        t.count = 0;
        break;
      }
      at = s->list.data[at - 1].next;
    }
  }
  for (int32_t i = 0; i < in.count; i++) TS_TRY(add_candidate(s, in.values[i], group));
  return TS_SUCCESS;
}

/* Resets the candidates: they are indices into the list of one region. */
static void forget(const siblings *s, ts_region_id id) {
  const ts_region *region = ts_graph_region(s->plan->graph, id);
  if (!s->plan->candidates) return;
  for (size_t i = 0; i < region->params.count; i++) s->plan->candidates[region->params.data[i]] = NONE;
  for (size_t i = 0; i < region->ops.count; i++) {
    const ts_op *op = ts_graph_op(s->plan->graph, region->ops.data[i]);
    for (uint32_t r = 0; r < op->result_count; r++) s->plan->candidates[op->first_result + r] = NONE;
  }
}

static bool is_candidate(const ts_fuse_plan *p, uint32_t group) {
  const ts_fuse_group *g = &p->groups.data[group];
  return g->merged == group && !g->writes_parts && p->ops[g->root].restraint == 0;
}

/* True when there is a reduction and another group. */
static bool has_pair(const ts_fuse_plan *p, size_t first) {
  size_t reductions = 0, candidates = 0;
  for (size_t g = first; g < p->groups.count; g++) {
    if (!is_candidate(p, (uint32_t)g)) continue;
    candidates++;
    reductions += is_reduction_group(&p->groups.data[g]);
  }
  return reductions > 0 && candidates > 1;
}

/* Groups were made from the last op to the first, so this visits them in graph order. */
ts_status ts_fuse_join_siblings(ts_fuse_plan *plan, ts_region_id region, size_t first) {
  siblings s = {.plan = plan};
  if (!has_pair(plan, first)) return TS_SUCCESS;
  TS_TRY(find_readers(plan));
  ts_status status = TS_SUCCESS;
  for (size_t g = plan->groups.count; !status && g-- > first;) {
    if (is_candidate(plan, (uint32_t)g)) status = visit(&s, (uint32_t)g);
  }
  forget(&s, region);
  TS_VEC_FREE(&s.list);
  return status;
}

/* The list of members stays in graph order. */
void ts_fuse_merge(ts_fuse_plan *p, uint32_t into, uint32_t from) {
  ts_fuse_group *to = &p->groups.data[into], *gone = &p->groups.data[from];
  ts_op_id *tail = &to->first, a = to->first, b = gone->first;
  while (a != TS_NO_ID || b != TS_NO_ID) {
    ts_op_id *next = b == TS_NO_ID || (a != TS_NO_ID && a < b) ? &a : &b;
    *tail = *next;
    p->ops[*next].group = into;
    tail = &p->ops[*next].next;
    *next = *tail;
  }
  if (gone->root > to->root) to->root = gone->root;
  to->position = to->root;
  to->members += gone->members;
  to->inputs += gone->inputs;
  to->composite = true;
  to->measured = false;
  gone->merged = into;
  gone->first = TS_NO_ID;
}
