/* Ops on neighbouring elements whose dims are cut: slices, pads, reversals, concatenations, windows, convolutions.
 *
 * The results of a partition need consecutive elements of an operand. Partition i reads [first + i * step, + length) of
 * the dim, and other partitions may have some of these elements. For each distance, a collective_permute brings from
 * the neighbour at that distance the most elements that any partition reads of it. Joined, they are a halo range. Each
 * partition finds its elements in it at an index that depends on its coordinates only. Elements outside of the dim are
 * zeros there, or become another value. With two parts of four and one element of the next one:
 *
 *     part 0: 0 1 2 3          4 <- from 1        [0 1 2 3 4]
 *     part 1: 4 5 6 7          zeros              [4 5 6 7 -] */
#include "ir/combiner.h"
#include "shard/partitioner.h"

#include <string.h>

/* The elements that each of `parts` partitions needs of a dim whose parts have the size `part`. */
typedef struct need {
  int64_t parts, part, first, step, length;
} need;

/* The halo range: pieces from distance `low` to `high`. The first begins `cut` elements after its part and the last
 * ends at `end` of its part; `before` and `after` zeros around it. Partition i reads from index i * step + offset.
 */
typedef struct halo_range {
  int64_t low, high, cut, end, before, after, step, offset;
} halo_range;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t need_begin(const need *n, int64_t i) { return n->first + i * n->step; }
static int64_t need_end(const need *n, int64_t i) { return n->first + i * n->step + n->length; }

/* Partition i needs elements of part i + distance. */
static bool is_pair(const need *n, int64_t i, int64_t distance) {
  int64_t from = i + distance;
  return i >= 0 && from >= 0 && i < n->parts && from < n->parts && need_begin(n, i) < (from + 1) * n->part &&
         need_end(n, i) > from * n->part;
}

static bool has_pair(const need *n, int64_t distance) {
  for (int64_t i = 0; i < n->parts; i++)
    if (is_pair(n, i, distance)) return true;
  return false;
}

/* The distances at which there are pairs: one's own part when there are none. */
static void find_distances(const need *n, halo_range *s) {
  s->low = n->parts;
  s->high = -n->parts;
  for (int64_t i = 0; i < n->parts; i++) {
    int64_t begin = most(need_begin(n, i), 0), end = least(need_end(n, i), n->parts * n->part);
    if (begin >= end) continue;
    s->low = least(s->low, begin / n->part - i);
    s->high = most(s->high, (end - 1) / n->part - i);
  }
  if (s->low > s->high) s->low = s->high = 0;
}

/* The elements of the outer pieces that no partition needs. */
static void find_ends(const need *n, halo_range *s) {
  s->cut = n->part;
  s->end = 0;
  for (int64_t i = 0; i < n->parts; i++) {
    if (is_pair(n, i, s->low)) s->cut = least(s->cut, most(0, need_begin(n, i) - (i + s->low) * n->part));
    if (is_pair(n, i, s->high)) s->end = most(s->end, least(n->part, need_end(n, i) - (i + s->high) * n->part));
  }
  if (s->end > 0 && (s->low < s->high || s->cut < s->end)) return;
  s->cut = 0; /* no pairs */
  s->end = n->part;
}

static void find_zeros(const need *n, halo_range *s) {
  s->before = s->after = 0;
  for (int64_t i = 0; i < n->parts; i++) {
    s->before = most(s->before, (i + s->low) * n->part + s->cut - need_begin(n, i));
    s->after = most(s->after, need_end(n, i) - (i + s->high) * n->part - s->end);
  }
  s->step = n->step - n->part;
  s->offset = n->first - s->low * n->part - s->cut + s->before;
}

static void plan(const need *n, halo_range *s) {
  find_distances(n, s);
  find_ends(n, s);
  find_zeros(n, s);
}

static int64_t piece_begin(const halo_range *s, int64_t distance) { return distance == s->low ? s->cut : 0; }
static int64_t piece_end(const need *n, const halo_range *s, int64_t distance) {
  return distance == s->high ? s->end : n->part;
}

/* Elements of the dim that a partition receives. */
static int64_t received(const need *n) {
  halo_range s;
  int64_t count = 0;
  plan(n, &s);
  for (int64_t d = s.low; d <= s.high; d++)
    if (d != 0 && has_pair(n, d)) count += piece_end(n, &s, d) - piece_begin(&s, d);
  return count;
}

/* ---- the halo range of a partition ---- */

/* A dim of a value in parts, and the axes that cut it. */
typedef struct cut_dim {
  ts_partitioner *p;
  int32_t dim;
  const ts_dims *axes;
} cut_dim;

/* A permutation of the parts of a dim: by a distance to those who need it, or, without `of`, to the other end. */
typedef struct permutation {
  const need *of;
  int64_t parts, distance;
} permutation;

/* The pairs [first, last), by their number. Returns how many there are. */
static int32_t list_pairs(const permutation *q, int64_t first, int64_t last, ts_dims *sources, ts_dims *targets) {
  int32_t count = 0;
  for (int64_t i = first; i < last; i++) {
    if (q->of && !is_pair(q->of, i, q->distance)) continue;
    sources->dims[count] = q->of ? i + q->distance : i;
    targets->dims[count++] = q->of ? i : q->parts - 1 - i;
  }
  return sources->rank = targets->rank = count;
}

/* The pairs [first, last) by one op. The partitions that it has as targets get its result, the others keep `inout`. */
static ts_status permute_stretch(const cut_dim *c, const permutation *q, int64_t first, ts_value_id x,
                                 ts_value_id *inout) {
  int64_t last = least(first + TS_MAX_RANK, q->parts);
  int64_t low = q->of ? first : q->parts - last, high = q->of ? last : q->parts - first;
  ts_attrs attrs;
  ts_value_id got, at, mask;
  ts_shape_copy(&attrs.permute.axes, c->axes);
  bool has_any = list_pairs(q, first, last, &attrs.permute.sources, &attrs.permute.targets) > 0;
  if (!has_any && *inout != TS_NO_ID) return TS_SUCCESS;
  TS_TRY(ts_part_add(c->p, TS_OP_COLLECTIVE_PERMUTE, &x, 1, &attrs, &got));
  if (*inout != TS_NO_ID) {
    TS_TRY(ts_part_position(c->p, c->axes, 1, 0, &at));
    TS_TRY(ts_part_spread(c->p, at, ts_graph_value(c->p->to, got)->shape, &at));
    TS_TRY(ts_part_between(c->p, at, low, high, &mask));
    TS_TRY(ts_part_select(c->p, mask, got, *inout, &got));
  }
  *inout = got;
  return TS_SUCCESS;
}

/* An op lists TS_MAX_RANK pairs at most, so more pairs are several ops. */
static ts_status permute(const cut_dim *c, const permutation *q, ts_value_id x, ts_value_id *out) {
  ts_value_id made = TS_NO_ID;
  for (int64_t first = 0; first < q->parts; first += TS_MAX_RANK) TS_TRY(permute_stretch(c, q, first, x, &made));
  *out = made;
  return TS_SUCCESS;
}

static ts_status make_piece(const cut_dim *c, const need *n, const halo_range *s, int64_t distance,
                            ts_value_id *inout) {
  int64_t from = piece_begin(s, distance), to = piece_end(n, s, distance);
  TS_TRY(ts_part_slice(c->p, *inout, c->dim, from, to, inout));
  if (distance == 0) return TS_SUCCESS;
  if (has_pair(n, distance)) return permute(c, &(permutation){n, n->parts, distance}, *inout, inout);
  ts_dtype dtype = ts_graph_value(c->p->to, *inout)->dtype;
  return ts_part_constant_like(c->p, *inout, dtype, (ts_scalar){.bits = 0}, inout);
}

static ts_status join_pieces(const cut_dim *c, const need *n, const halo_range *s, ts_value_id x, ts_value_id *out) {
  ts_value_id *pieces;
  size_t count = 0;
  ts_status status = TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY((size_t)(s->high - s->low + 1), &pieces));
  for (int64_t d = s->low; !status && d <= s->high; d++) {
    pieces[count] = x;
    status = make_piece(c, n, s, d, &pieces[count++]);
  }
  *out = pieces[0];
  if (!status && count > 1)
    status = ts_part_add(c->p, TS_OP_CONCATENATE, pieces, count, &(ts_attrs){.axis = c->dim}, out);
  ts_free(pieces);
  return status;
}

static ts_status add_zeros(const cut_dim *c, const halo_range *s, ts_value_id *inout) {
  ts_attrs attrs;
  ts_value_id operands[2] = {*inout};
  const ts_value *v = ts_graph_value(c->p->to, *inout);
  if (s->before == 0 && s->after == 0) return TS_SUCCESS;
  attrs.pad.low.rank = attrs.pad.high.rank = attrs.pad.interior.rank = v->shape->rank;
  for (int32_t d = 0; d < v->shape->rank; d++)
    attrs.pad.low.dims[d] = attrs.pad.high.dims[d] = attrs.pad.interior.dims[d] = 0;
  attrs.pad.low.dims[c->dim] = s->before;
  attrs.pad.high.dims[c->dim] = s->after;
  TS_TRY(ts_graph_constant(c->p->to, c->p->scope->region, v->dtype, &ts_shape_scalar, (ts_scalar){.bits = 0},
                           &operands[1]));
  return ts_part_add(c->p, TS_OP_PAD, operands, 2, &attrs, inout);
}

static ts_status gather_need(const cut_dim *c, const need *n, ts_value_id x, ts_value_id *out) {
  halo_range s;
  ts_value_id start;
  plan(n, &s);
  TS_TRY(join_pieces(c, n, &s, x, out));
  TS_TRY(add_zeros(c, &s, out));
  if (ts_graph_value(c->p->to, *out)->shape->dims[c->dim] == n->length) return TS_SUCCESS;
  if (s.step == 0) return ts_part_slice(c->p, *out, c->dim, s.offset, s.offset + n->length, out);
  TS_TRY(ts_part_position(c->p, c->axes, s.step, s.offset, &start));
  return ts_part_slice_at(c->p, *out, c->dim, start, n->length, out);
}

/* u8: which elements that a partition needs are in [low, high) of the dim. */
static ts_status mask_inside(const cut_dim *c, const need *n, ts_value_id x, int64_t low, int64_t high,
                             ts_value_id *out) {
  ts_value_id start, index;
  TS_TRY(ts_part_position(c->p, c->axes, n->step, n->first, &start));
  TS_TRY(ts_part_indices(c->p, ts_graph_value(c->p->to, x)->shape, c->dim, start, &index));
  return ts_part_between(c->p, index, low, high, out);
}

static bool needs_outside(const need *n) {
  return need_begin(n, 0) < 0 || need_begin(n, n->parts - 1) < 0 || need_end(n, 0) > n->parts * n->part ||
         need_end(n, n->parts - 1) > n->parts * n->part;
}

/* Puts `value`, a scalar of the type, where an element is not in the dim. */
static ts_status fill_outside(const cut_dim *c, const need *n, ts_value_id value, ts_value_id *inout) {
  ts_value_id inside, other;
  if (!needs_outside(n)) return TS_SUCCESS;
  TS_TRY(mask_inside(c, n, *inout, 0, n->parts * n->part, &inside));
  TS_TRY(ts_part_spread(c->p, value, ts_graph_value(c->p->to, *inout)->shape, &other));
  return ts_part_select(c->p, inside, *inout, other, inout);
}

/* ---- the needs of ops ---- */

static int64_t parts_of(const ts_mesh *mesh, const ts_dims *axes) { return ts_mesh_group_size(mesh, axes); }

/* Of a dim of operand 0 whose results are computed from the elements [o * stride - low, + reach). */
static need window_need(const ts_factors *f, int64_t parts, int32_t dim, int64_t stride, int64_t low, int64_t reach) {
  int64_t results = f->shapes[f->operands]->dims[dim] / parts;
  return (need){.parts = parts,
                .part = f->shapes[0]->dims[dim] / parts,
                .first = -low,
                .step = results * stride,
                .length = (results - 1) * stride + reach};
}

/* False for ops that need no neighbours but move all. */
static bool find_need(const ts_op *op, const ts_factors *f, int64_t parts, int32_t d, need *out) {
  const ts_attrs *a = op->attrs;
  switch ((int)op->code) {
  case TS_OP_SLICE: *out = window_need(f, parts, d, a->slice.stride.dims[d], -a->slice.start.dims[d], 1); return true;
  case TS_OP_PAD: *out = window_need(f, parts, d, 1, a->pad.low.dims[d], 1); return true;
  case TS_OP_CONV:
    *out = window_need(f, parts, d, a->conv.strides.dims[d - 1], a->conv.low.dims[d - 1],
                       (f->shapes[1]->dims[d - 1] - 1) * a->conv.kernel_dilation.dims[d - 1] + 1);
    return true;
  case TS_OP_WINDOW_SUM:
  case TS_OP_WINDOW_PRODUCT:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN:
    *out = window_need(f, parts, d, a->window.strides.dims[d], a->window.low.dims[d],
                       (a->window.sizes.dims[d] - 1) * a->window.dilation.dims[d] + 1);
    return true;
  default: return false;
  }
}

/* Of operand `i` of a concatenation, which begins at `at` of the result. */
static need concatenate_need(const ts_factors *f, int64_t parts, int32_t axis, int32_t i, int64_t at) {
  int64_t results = f->shapes[f->operands]->dims[axis] / parts;
  return (need){
      .parts = parts, .part = f->shapes[i]->dims[axis] / parts, .first = -at, .step = results, .length = results};
}

/* ---- cost ---- */

/* Bytes of an operand's part, for one element of a dim. */
static int64_t line_bytes(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a,
                          int32_t operand, int32_t dim) {
  ts_sharding sharding;
  ts_shape part;
  ts_assignment_sharding(f, a, operand, &sharding);
  ts_sharding_part(ts_part_mesh(p), &sharding, f->shapes[operand], &part);
  part.dims[dim] = 1;
  return ts_shape_bytes(&part, ts_graph_value(p->in, op->operands[operand])->dtype);
}

static int64_t concatenate_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  int32_t axis = op->attrs->axis;
  int64_t at = 0, cost = 0;
  ts_dims axes;
  ts_split_moved_axes(f, a, 0, axis, &axes);
  for (int32_t i = 0; i < f->operands; at += f->shapes[i++]->dims[axis]) {
    need n = concatenate_need(f, parts_of(ts_part_mesh(p), &axes), axis, i, at);
    cost += received(&n) * line_bytes(p, op, f, a, i, axis);
  }
  return cost;
}

int64_t ts_split_halo_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  int64_t cost = 0;
  if (op->code == TS_OP_CONCATENATE) return concatenate_cost(p, op, f, a);
  for (int32_t d = 0; d < f->shapes[0]->rank; d++) {
    ts_dims axes;
    need n;
    ts_split_moved_axes(f, a, 0, d, &axes);
    if (axes.rank == 0) continue;
    int64_t parts = parts_of(ts_part_mesh(p), &axes), bytes = line_bytes(p, op, f, a, 0, d);
    cost += find_need(op, f, parts, d, &n) ? received(&n) * bytes : f->shapes[0]->dims[d] / parts * bytes;
  }
  return cost;
}

/* ---- ops ---- */

/* Operand 0 with the halo range of each of its cut dims. Elements outside of the operand are `value`, or zeros with
 * TS_NO_ID. `out_dims` has a bit for each such dim. */
static ts_status gather_dims(const ts_split *s, ts_value_id value, ts_value_id *out, uint64_t *out_dims) {
  *out = s->operands[0];
  *out_dims = 0;
  for (int32_t d = 0; d < s->f->shapes[0]->rank; d++) {
    ts_dims axes;
    need n;
    cut_dim c = {s->p, d, &axes};
    ts_split_moved_axes(s->f, s->a, 0, d, &axes);
    if (axes.rank == 0 || !find_need(s->op, s->f, parts_of(ts_part_mesh(s->p), &axes), d, &n)) continue;
    *out_dims |= UINT64_C(1) << d;
    TS_TRY(gather_need(&c, &n, *out, out));
    if (value != TS_NO_ID) TS_TRY(fill_outside(&c, &n, value, out));
  }
  return TS_SUCCESS;
}

static ts_status slice(const ts_split *s, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(s->op);
  uint64_t done;
  TS_TRY(gather_dims(s, TS_NO_ID, out, &done));
  const ts_shape *shape = ts_graph_value(s->p->to, *out)->shape;
  for (int32_t d = 0; d < shape->rank; d++) {
    if (done >> d & 1) attrs.slice.start.dims[d] = 0;
    if (done >> d & 1 || attrs.slice.limit.dims[d] > shape->dims[d]) attrs.slice.limit.dims[d] = shape->dims[d];
  }
  return ts_part_add(s->p, TS_OP_SLICE, out, 1, &attrs, out);
}

static ts_status pad(const ts_split *s, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(s->op);
  ts_value_id operands[2] = {TS_NO_ID, s->operands[1]};
  ts_scalar value;
  uint64_t done;
  bool zero = ts_graph_is_constant(s->p->in, s->op->operands[1], &value) && value.words[0] == 0 && value.words[1] == 0;
  TS_TRY(gather_dims(s, zero ? TS_NO_ID : operands[1], &operands[0], &done));
  for (int32_t d = 0; d < attrs.pad.low.rank; d++)
    if (done >> d & 1) attrs.pad.low.dims[d] = attrs.pad.high.dims[d] = 0;
  return ts_part_add(s->p, TS_OP_PAD, operands, 2, &attrs, out);
}

static ts_status reverse(const ts_split *s, ts_value_id *out) {
  *out = s->operands[0];
  for (int32_t d = 0; d < s->f->shapes[0]->rank; d++) {
    ts_dims axes;
    ts_split_moved_axes(s->f, s->a, 0, d, &axes);
    if (axes.rank == 0) continue;
    permutation q = {.parts = parts_of(ts_part_mesh(s->p), &axes)};
    TS_TRY(permute(&(cut_dim){s->p, d, &axes}, &q, *out, out));
  }
  return ts_part_add(s->p, TS_OP_REVERSE, out, 1, s->op->attrs, out);
}

/* Elements that are not there are the fold's identity, which changes no result. */
static ts_status window(const ts_split *s, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(s->op);
  ts_dtype dtype = ts_graph_value(s->p->in, s->op->operands[0])->dtype;
  ts_scalar identity = ts_combiner_identity(ts_combiner_of(s->op->code), dtype);
  ts_value_id value = TS_NO_ID;
  uint64_t done;
  if (identity.words[0] != 0 || identity.words[1] != 0)
    TS_TRY(ts_graph_constant(s->p->to, s->p->scope->region, dtype, &ts_shape_scalar, identity, &value));
  TS_TRY(gather_dims(s, value, out, &done));
  for (int32_t d = 0; d < attrs.window.low.rank; d++)
    if (done >> d & 1) attrs.window.low.dims[d] = attrs.window.high.dims[d] = 0;
  return ts_part_add(s->p, s->op->code, out, 1, &attrs, out);
}

/* The padding of a convolution is 0, as the elements that neighbours do not have. */
static ts_status conv(const ts_split *s, ts_value_id *out) {
  ts_attrs attrs = ts_op_copy_attrs(s->op);
  ts_value_id operands[2] = {TS_NO_ID, s->operands[1]};
  ts_shape part;
  uint64_t done;
  TS_TRY(gather_dims(s, TS_NO_ID, &operands[0], &done));
  for (int32_t d = 0; d < attrs.conv.low.rank; d++)
    if (done >> (d + 1) & 1) attrs.conv.low.dims[d] = attrs.conv.high.dims[d] = 0;
  ts_split_part(s, 2, &part);
  ts_factors_localize(s->op, s->f->shapes[2], &part, &attrs);
  return ts_part_add(s->p, TS_OP_CONV, operands, 2, &attrs, out);
}

/* Each operand in its place among zeros: of a partition's elements only one operand has each. */
static ts_status concatenate(const ts_split *s, ts_value_id *out) {
  int32_t axis = s->op->attrs->axis;
  int64_t at = 0;
  ts_dims axes;
  cut_dim c = {s->p, axis, &axes};
  ts_split_moved_axes(s->f, s->a, 0, axis, &axes);
  for (int32_t i = 0; i < s->f->operands; at += s->f->shapes[i++]->dims[axis]) {
    need n = concatenate_need(s->f, parts_of(ts_part_mesh(s->p), &axes), axis, i, at);
    int64_t size = s->f->shapes[i]->dims[axis];
    ts_value_id part, own;
    TS_TRY(gather_need(&c, &n, s->operands[i], &part));
    if (i > 0) {
      TS_TRY(mask_inside(&c, &n, part, 0, size, &own));
      TS_TRY(ts_part_select(s->p, own, part, *out, &part));
    }
    *out = part;
  }
  return TS_SUCCESS;
}

ts_status ts_split_halo(const ts_split *s, ts_value_id *out) {
  switch ((int)s->op->code) {
  case TS_OP_SLICE: return slice(s, out);
  case TS_OP_PAD: return pad(s, out);
  case TS_OP_REVERSE: return reverse(s, out);
  case TS_OP_CONCATENATE: return concatenate(s, out);
  case TS_OP_CONV: return conv(s, out);
  case TS_OP_WINDOW_SUM:
  case TS_OP_WINDOW_PRODUCT:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN: return window(s, out);
  default: return ts_error(TS_INTERNAL, "%s has no neighbours", ts_op_name(s->op->code));
  }
}
