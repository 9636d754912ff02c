#include "ir/combiner.h"
#include "jit/lower/lower_internal.h"

#include <string.h>

/* ---- which values of the graph are operands of the launches ---- */

/* Of a single op: its operands come from outside. */
static bool operand_of_op(const void *context, ts_value_id value, uint32_t *out) {
  const ts_lowering *l = context;
  for (uint32_t i = 0; i < l->op->operand_count; i++) {
    *out = i;
    if (l->op->operands[i] == value) return true;
  }
  return false;
}

/* Of a fusion: its region's parameters come from outside. */
static bool operand_of_fusion(const void *context, ts_value_id value, uint32_t *out) {
  const ts_lowering *l = context;
  const ts_value *v = ts_graph_value(l->graph, value);
  *out = v->index;
  return v->op == TS_NO_ID;
}

static bool constant_of_fusion(const void *context, ts_value_id value, ts_scalar *out) {
  const ts_lowering *l = context;
  const ts_value *v = ts_graph_value(l->graph, value);
  return v->op == TS_NO_ID && ts_graph_is_constant(l->graph, l->op->operands[v->index], out);
}

static ts_nest_spec make_spec(const ts_lowering *l, const ts_nest_root *roots, size_t count) {
  bool fusion = l->op->code == TS_OP_FUSION;
  return (ts_nest_spec){.graph = l->graph,
                        .operand = fusion ? operand_of_fusion : operand_of_op,
                        .context = l,
                        .constant = fusion ? constant_of_fusion : NULL,
                        .roots = roots,
                        .root_count = count,
                        .reduce = TS_NO_ID};
}

static ts_status add_spec(ts_lowering *l, const ts_nest_spec *spec) {
  ts_nest nest;
  TS_TRY(ts_nest_build(spec, l->arena, &nest));
  ts_status status = ts_lowering_add_nest(l, &nest);
  ts_nest_deinit(&nest);
  return status;
}

static ts_status add_root(ts_lowering *l, const ts_nest_root *root) {
  if (ts_shape_elements(&root->shape) == 0) return TS_SUCCESS;
  ts_nest_spec spec = make_spec(l, root, 1);
  return add_spec(l, &spec);
}

/* ---- ops whose launches each write a part of the result ---- */

#define MOST_PARTS 4

/* A part of a concatenation, which begins at `offset`. */
static ts_nest_root part_root(const ts_lowering *l, ts_value_id part, const int64_t *strides, int64_t offset) {
  ts_nest_root root = ts_nest_root_whole(l->graph, part, 0);
  memcpy(root.stride, strides, sizeof(root.stride));
  root.offset = offset;
  return root;
}

static bool computes(const ts_graph *graph, ts_op_id op) {
  return op != TS_NO_ID && !(ts_op_rows[ts_graph_op(graph, op)->code].fusion & TS_FUSION_VIEW);
}

/* True for at most MOST_PARTS parts of one shape, if each is the result of an op. Views share no work. */
static bool are_computed_alike(const ts_graph *graph, const ts_op *op) {
  const ts_shape *first = ts_graph_value(graph, op->operands[0])->shape;
  bool work = false;
  if (op->operand_count < 2 || op->operand_count > MOST_PARTS || ts_shape_elements(first) == 0) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const ts_value *part = ts_graph_value(graph, op->operands[i]);
    if (part->op == TS_NO_ID || !ts_shape_equal(part->shape, first)) return false;
    work |= computes(graph, part->op);
  }
  return work;
}

/* One launch for all parts, which computes once what several of them need. Sets `done` unless they are no loop nest. */
static ts_status join_parts(ts_lowering *l, const ts_nest_root *roots, size_t count, bool *done) {
  ts_nest_spec spec = make_spec(l, roots, count);
  ts_nest nest;
  ts_status status = ts_nest_build(&spec, l->arena, &nest);
  if (ts_status_code(status) == TS_UNIMPLEMENTED) {
    ts_status_free(status);
    return TS_SUCCESS;
  }
  TS_TRY(status);
  *done = nest.nodes.count <= TS_NEST_MAX_NODES;
  if (*done) status = ts_lowering_add_nest(l, &nest);
  if (ts_status_code(status) == TS_UNIMPLEMENTED) { /* each part may still be a kernel */
    ts_status_free(status);
    status = TS_SUCCESS;
    *done = false;
  }
  ts_nest_deinit(&nest);
  return status;
}

static ts_status lower_concatenate(ts_lowering *l, const ts_op *op) {
  const ts_shape *result = ts_graph_value(l->graph, op->first_result)->shape;
  const bool alike = l->op->code == TS_OP_FUSION && are_computed_alike(l->graph, op);
  int64_t strides[TS_MAX_RANK], offset = 0;
  ts_nest_root together[MOST_PARTS];
  bool done = false;
  ts_shape_strides(result, strides);
  const int64_t step = strides[op->attrs->axis];
  for (uint32_t i = 0; alike && i < op->operand_count; i++) {
    together[i] = part_root(l, op->operands[i], strides, offset);
    offset += together[i].shape.dims[op->attrs->axis] * step;
  }
  if (alike) TS_TRY(join_parts(l, together, op->operand_count, &done));
  offset = 0;
  for (uint32_t i = 0; !done && i < op->operand_count; i++) {
    const ts_nest_root root = part_root(l, op->operands[i], strides, offset);
    TS_TRY(add_root(l, &root));
    offset += root.shape.dims[op->attrs->axis] * step;
  }
  return TS_SUCCESS;
}

/* The indices i of a dim of `size` with 0 <= low + i * step < limit. */
static void surviving(int64_t size, int64_t low, int64_t step, int64_t limit, int64_t *first, int64_t *count) {
  int64_t begin = low >= 0 ? 0 : (-low + step - 1) / step;
  int64_t end = limit > low ? (limit - low - 1) / step + 1 : 0;
  if (end > size) end = size;
  *first = begin;
  *count = end > begin ? end - begin : 0;
}

/* A margin's rows cost as much as so many bytes of a whole fill, each, and a small fill is one launch. */
#define MARGIN_ROW_BYTES 256
#define MARGINS_FROM_BYTES (64 << 10)

/* Where the operand's elements are in the result of a pad: those of dim d from `first` on. */
typedef struct padded {
  int64_t first[TS_MAX_RANK];
  const ts_nest_root *fill, *part;
} padded;

static int64_t margin_of(const padded *p, int32_t d, bool high) {
  return high ? p->fill->shape.dims[d] - p->first[d] - p->part->shape.dims[d] : p->first[d];
}

/* True when filling what the operand leaves free takes less time than filling all of the result before. */
static bool has_few_margins(const ts_graph *graph, const ts_op *op, const padded *p) {
  const int64_t bytes = ts_shape_bytes(&p->fill->shape, ts_graph_value(graph, op->first_result)->dtype);
  int64_t rows = 0, outer = 1;
  if (bytes < MARGINS_FROM_BYTES || ts_shape_elements(&p->part->shape) == 0) return false;
  for (int32_t d = 0; d < p->fill->shape.rank; d++) {
    if (op->attrs->pad.interior.dims[d] > 0) return false;
    for (int high = 0; high < 2; high++) rows += margin_of(p, d, high) > 0 ? outer : 0;
    outer *= p->part->shape.dims[d];
  }
  return rows <= bytes / MARGIN_ROW_BYTES;
}

/* Before and after the operand along each dim. Of the dims before, the margin has the operand's part; of those after,
 * all. */
static ts_status add_margins(ts_lowering *l, const padded *p) {
  ts_nest_root margin = *p->fill;
  for (int32_t d = 0; d < margin.shape.rank; d++) {
    const int64_t offset = margin.offset, past = p->first[d] + p->part->shape.dims[d];
    for (int high = 0; high < 2; high++) {
      margin.shape.dims[d] = margin_of(p, d, high);
      margin.offset = offset + (high ? past : 0) * margin.stride[d];
      if (margin.shape.dims[d] > 0) TS_TRY(add_root(l, &margin));
    }
    margin.shape.dims[d] = p->part->shape.dims[d];
    margin.offset = offset + p->first[d] * margin.stride[d];
  }
  return TS_SUCCESS;
}

static ts_status lower_pad(ts_lowering *l, const ts_op *op) {
  const ts_shape *to = ts_graph_value(l->graph, op->first_result)->shape;
  ts_nest_root fill = ts_nest_root_whole(l->graph, op->first_result, 0), part = fill;
  padded p = {.fill = &fill, .part = &part};
  fill.value = op->operands[1];
  part.value = op->operands[0];
  part.shape = *ts_graph_value(l->graph, op->operands[0])->shape;
  for (int32_t d = 0; d < to->rank; d++) {
    int64_t low = op->attrs->pad.low.dims[d], step = op->attrs->pad.interior.dims[d] + 1;
    surviving(part.shape.dims[d], low, step, to->dims[d], &part.skip[d], &part.shape.dims[d]);
    p.first[d] = low + part.skip[d] * step;
    part.offset += p.first[d] * fill.stride[d];
    part.stride[d] = step * fill.stride[d];
  }
  if (has_few_margins(l->graph, op, &p))
    TS_TRY(add_margins(l, &p));
  else if (!ts_shape_equal(&part.shape, to))
    TS_TRY(add_root(l, &fill));
  return add_root(l, &part);
}

/* Adds a start that is a constant. */
static bool add_known_start(const ts_graph *graph, ts_value_id start, int64_t limit, int64_t stride, int64_t *offset) {
  ts_scalar value;
  if (!ts_graph_is_constant(graph, start, &value)) return false;
  *offset += ts_dynamic_clamp(ts_graph_value(graph, start)->dtype, value, limit) * stride;
  return true;
}

/* Adds the starts to the store's address. */
static ts_status start_terms(ts_lowering *l, ts_access *to) {
  const ts_op *op = l->op;
  const ts_shape *whole = ts_graph_value(l->graph, op->operands[0])->shape;
  const ts_shape *part = ts_graph_value(l->graph, op->operands[1])->shape;
  int64_t strides[TS_MAX_RANK];
  ts_dynamic_term *terms;
  TS_TRY(TS_ARENA_ARRAY(l->arena, (size_t)whole->rank, &terms));
  ts_shape_strides(whole, strides);
  for (int32_t d = 0; d < whole->rank; d++) {
    int64_t limit = whole->dims[d] - part->dims[d];
    if (limit == 0) continue;
    ts_value_id start = op->operands[2 + d];
    ts_dtype dtype = ts_graph_value(l->graph, start)->dtype;
    int64_t stride = strides[d] * (int64_t)ts_dtype_size(to->dtype);
    if (add_known_start(l->graph, start, limit, stride, &to->at.offset)) continue;
    terms[to->term_count++] = (ts_dynamic_term){2 + (uint32_t)d, dtype, limit, stride};
  }
  to->terms = terms;
  return TS_SUCCESS;
}

static ts_status lower_put_slice(ts_lowering *l) {
  ts_nest_root copy = ts_nest_root_whole(l->graph, l->op->operands[0], 0);
  ts_nest_root part = ts_nest_root_whole(l->graph, l->op->operands[1], 0);
  ts_nest nest;
  memcpy(part.stride, copy.stride, sizeof(copy.stride));
  TS_TRY(add_root(l, &copy));
  if (l->launches.count > 0) l->launches.data[0].copies = true;
  if (ts_shape_elements(&part.shape) == 0) return TS_SUCCESS;
  ts_nest_spec spec = make_spec(l, &part, 1);
  TS_TRY(ts_nest_build(&spec, l->arena, &nest));
  ts_status status = start_terms(l, &nest.stores.data[0].to);
  if (!status) status = ts_lowering_add_nest(l, &nest);
  ts_nest_deinit(&nest);
  return status;
}

/* ---- reductions of empty rows ---- */

static ts_status lower_identity(ts_lowering *l, const ts_op *op) {
  const ts_value *result = ts_graph_value(l->graph, op->first_result);
  if (ts_dtype_is_complex(result->dtype)) return ts_error(TS_UNIMPLEMENTED, "a reduction of complex numbers");
  const ts_combiner *by = ts_combiner_of(op->code);
  ts_scalar none = by ? ts_combiner_identity(by, result->dtype) : (ts_scalar){0}; /* argmax and argmin: index 0 */
  ts_nest p = {.loops = {1, {ts_shape_elements(result->shape)}}, .kept = 1};
  ts_nest_node node = {
      .kind = TS_NEST_SCALAR, .op = TS_OP_PARAMETER, .dtype = result->dtype, .a = -1, .b = -1, .c = -1};
  ts_nest_store store = {.to = {.role = TS_ROLE_RESULT, .dtype = result->dtype}};
  store.to.at.coef[0] = (int64_t)ts_dtype_size(result->dtype);
  ts_status status = ts_nest_add_scalar(&p, result->dtype, none, &node.slot);
  if (!status) status = ts_nest_add_node(&p, node, &store.node);
  if (!status) status = TS_VEC_PUSH(&p.stores, store);
  if (!status) status = ts_lowering_add_launch(l, &p);
  ts_nest_deinit(&p);
  return status;
}

/* ---- ops and fusions ---- */

static ts_status lower_single(ts_lowering *l) {
  const ts_op *op = l->op;
  ts_nest_root root = ts_nest_root_whole(l->graph, op->first_result, 0);
  ts_nest_spec spec = make_spec(l, &root, 1);
  switch (op->code) {
  case TS_OP_CONCATENATE: return lower_concatenate(l, op);
  case TS_OP_PAD: return lower_pad(l, op);
  case TS_OP_PUT_SLICE: return lower_put_slice(l);
  case TS_OP_RESHAPE:
    root = ts_nest_root_whole(l->graph, op->operands[0], 0); /* a copy of any shape */
    break;
  default: break;
  }
  if (ts_op_is_reduction(op->code)) {
    if (ts_shape_elements(ts_graph_value(l->graph, op->operands[0])->shape) == 0) return lower_identity(l, op);
    spec.reduce = ts_graph_value(l->graph, op->first_result)->op;
  }
  return add_spec(l, &spec);
}

static ts_op_id find_reduction(const ts_graph *graph, const ts_region *region) {
  for (size_t i = 0; i < region->ops.count; i++) {
    if (ts_op_is_reduction(ts_graph_op(graph, region->ops.data[i])->code)) return region->ops.data[i];
  }
  return TS_NO_ID;
}

static ts_status lower_fusion(ts_lowering *l) {
  const ts_region *region = ts_graph_region(l->graph, l->op->attrs->fusion.region);
  ts_nest_root roots[TS_NEST_MAX_OPERANDS];
  size_t count = region->results.count;
  if (count == 0 || count > TS_NEST_MAX_OPERANDS) return ts_error(TS_UNIMPLEMENTED, "a fusion with %zu results", count);
  const ts_value *first = ts_graph_value(l->graph, region->results.data[0]);
  if (count == 1 && first->op != TS_NO_ID) {
    const ts_op *root = ts_graph_op(l->graph, first->op);
    if (root->code == TS_OP_CONCATENATE) return lower_concatenate(l, root);
    if (root->code == TS_OP_PAD) return lower_pad(l, root);
  }
  for (size_t i = 0; i < count; i++) {
    roots[i] = ts_nest_root_whole(l->graph, region->results.data[i], (uint32_t)i);
    if (ts_shape_elements(&roots[i].shape) == 0) return ts_error(TS_UNIMPLEMENTED, "a fusion with an empty result");
  }
  ts_nest_spec spec = make_spec(l, roots, count);
  spec.reduce = find_reduction(l->graph, region);
  return add_spec(l, &spec);
}

/* ---- sharing memory ---- */

static const ts_launch_pointer *pointer_of(const ts_launch *launch, int32_t operand) {
  return &launch->pointers[operand];
}

/* True when the input is read exactly where the output is written. */
static bool same_place(const ts_launch *launch, int32_t input, int32_t output) {
  const ts_kernel_desc *d = &launch->desc;
  const ts_kernel_operand *x = &d->inputs[input], *y = &d->outputs[output].operand;
  const int64_t *at = launch->args + ts_kernel_arg_operand(d, input);
  const int64_t *to = launch->args + ts_kernel_arg_operand(d, d->input_count + output);
  const ts_launch_pointer *from = pointer_of(launch, input), *into = pointer_of(launch, d->input_count + output);
  if (ts_dtype_size(x->dtype) != ts_dtype_size(y->dtype) || from->offset != into->offset) return false;
  if (from->term_count > 0 || into->term_count > 0) return false;
  for (int32_t k = 0; k < d->rank; k++) {
    if (x->stride[k] != y->stride[k] || at[1 + k] != to[1 + k]) return false;
  }
  return true;
}

static bool is_gathered(const ts_kernel_desc *d, int32_t input) {
  for (int32_t i = 0; i < d->node_count; i++) {
    if (d->nodes[i].kind == TS_NODE_GATHER && d->nodes[i].slot == input) return true;
  }
  return false;
}

/* True when no reduction and no element for a point depends on another reduction's result: each point is read in one
 * pass. */
static bool is_one_pass(const ts_kernel_desc *d) {
  bool after[2 * TS_NEST_MAX_NODES];
  for (int32_t i = 0; i < d->node_count; i++) {
    int32_t operands[3];
    int count = ts_kernel_node_operands(&d->nodes[i], operands);
    bool reduces = ts_kernel_node_reduces(&d->nodes[i]), inherits = false;
    for (int k = 0; k < count; k++) inherits |= after[operands[k]];
    if (reduces && inherits) return false;
    after[i] = reduces || inherits;
  }
  for (int32_t i = 0; i < d->output_count; i++)
    if (!ts_kernel_is_of_row(d, &d->outputs[i].operand) && after[d->outputs[i].node]) return false;
  return true;
}

/* True when the launch may write an output over an operand that it reads. A ROW kernel may read its inputs in several
 * passes; then this holds for a single output with an element for each point. */
static bool can_share(const ts_launch *launch, int32_t output, uint32_t operand) {
  const ts_kernel_desc *d = &launch->desc;
  if (d->kind == TS_KERNEL_COL || d->kind == TS_KERNEL_JOINED) return false;
  if (d->kind == TS_KERNEL_ROW &&
      (ts_kernel_is_of_row(d, &d->outputs[output].operand) || (d->output_count > 1 && !is_one_pass(d))))
    return false;
  for (int32_t i = 0; i < d->input_count; i++) {
    const ts_launch_pointer *p = pointer_of(launch, i);
    for (int32_t t = 0; t < p->term_count; t++) {
      if (p->terms[t].operand == operand) return false;
    }
    if (p->index == operand && p->role == TS_ROLE_OPERAND && (!same_place(launch, i, output) || is_gathered(d, i)))
      return false;
  }
  return true;
}

static bool reads_operand(const ts_launch *launch, uint32_t operand) {
  for (int32_t i = 0; i < launch->desc.input_count; i++) {
    const ts_launch_pointer *p = pointer_of(launch, i);
    if (p->role == TS_ROLE_OPERAND && p->index == operand) return true;
    for (int32_t t = 0; t < p->term_count; t++)
      if (p->terms[t].operand == operand) return true;
  }
  return false;
}

/* The only output that is in the result; -1: none, or several. */
static int32_t find_output(const ts_launch *launch, uint32_t result) {
  const ts_kernel_desc *d = &launch->desc;
  int32_t found = -1;
  for (int32_t i = 0; i < d->output_count; i++) {
    const ts_launch_pointer *p = pointer_of(launch, d->input_count + i);
    if (p->role != TS_ROLE_RESULT || p->index != result) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* True when result `result` may take the memory of an operand: each launch that reads the operand writes the result at
 * the same elements, and no two launches write the same elements. */
static bool all_can_share(const ts_lowering *l, uint32_t result, uint32_t operand) {
  bool read = false;
  for (size_t i = 0; i < l->launches.count; i++) {
    const ts_launch *launch = &l->launches.data[i];
    if (!reads_operand(launch, operand)) continue;
    int32_t output = find_output(launch, result);
    if (output < 0 || !can_share(launch, output, operand)) return false;
    read = true;
  }
  return read;
}

static int64_t value_bytes(const ts_graph *graph, ts_value_id value) {
  const ts_value *v = ts_graph_value(graph, value);
  return ts_shape_bytes(v->shape, v->dtype);
}

static void find_inplace(const ts_lowering *l, bool *inplace) {
  const ts_op *op = l->op;
  if (op->code == TS_OP_PUT_SLICE) {
    ts_scalar known;
    inplace[0] = op->operands[0] != op->operands[1] && !ts_graph_is_constant(l->graph, op->operands[0], &known);
    return;
  }
  /* With several launches, only reductions by blocks are known to write different elements. */
  if (l->launches.count != 1 && !l->by_blocks) return;
  for (uint32_t r = 0; r < op->result_count; r++) {
    for (uint32_t o = 0; o < op->operand_count; o++) {
      bool same_bytes = value_bytes(l->graph, op->first_result + r) == value_bytes(l->graph, op->operands[o]);
      inplace[r * op->operand_count + o] = same_bytes && all_can_share(l, r, o);
    }
  }
}

/* ---- the choice of a lowering ---- */

static ts_status lower_any(ts_lowering *l) {
  switch (ts_op_get_class(l->op->code)) {
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT: break;
  case TS_CLASS_CONTROL:
    if (l->op->code == TS_OP_FUSION) return lower_fusion(l);
    break;
  case TS_CLASS_SOURCE:
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_COMPLEX:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
    if (ts_op_get_class(l->op->code) == TS_CLASS_REDUCE && !ts_combiner_of(l->op->code)) break;
    if (l->op->code == TS_OP_LITERAL || l->op->code == TS_OP_PARAMETER) break;
    return lower_single(l);
  }
  return ts_error(TS_UNIMPLEMENTED, "%s is no kernel", ts_op_name(l->op->code));
}

static ts_status finish(ts_lowering *l, const ts_lower_options *options, ts_lowered *out) {
  bool *inplace;
  ts_launch *launches;
  int64_t *temps;
  TS_TRY(TS_ARENA_ARRAY(l->arena, (size_t)l->op->result_count * l->op->operand_count, &inplace));
  TS_TRY(TS_ARENA_ARRAY(l->arena, l->launches.count, &launches));
  TS_TRY(TS_ARENA_ARRAY(l->arena, l->temps.count, &temps));
  for (size_t i = 0; options && options->visit && i < l->launches.count; i++)
    TS_TRY(options->visit(options->context, l->arena, &l->launches.data[i]));
  find_inplace(l, inplace);
  if (l->launches.count > 0) memcpy(launches, l->launches.data, l->launches.count * sizeof(*launches));
  if (l->temps.count > 0) memcpy(temps, l->temps.data, l->temps.count * sizeof(*temps));
  *out = (ts_lowered){(int32_t)l->launches.count, launches, (int32_t)l->temps.count, temps, inplace};
  return TS_SUCCESS;
}

static bool all_empty(const ts_graph *graph, const ts_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (ts_shape_elements(ts_graph_value(graph, op->first_result + i)->shape) != 0) return false;
  }
  return true;
}

ts_status ts_lower_op(const ts_graph *graph, ts_op_id id, ts_arena *arena, const ts_lower_options *options,
                      ts_lowered *out) {
  ts_lowering l = {
      .graph = graph, .op = ts_graph_op(graph, id), .arena = arena, .in_place = options && options->in_place};
  ts_status status = all_empty(graph, l.op) ? TS_SUCCESS : lower_any(&l);
  if (!status) status = finish(&l, options, out);
  TS_VEC_FREE(&l.launches);
  TS_VEC_FREE(&l.temps);
  return status;
}

/* ---- ops that move no data ---- */

static bool broadcast_keeps_order(const ts_shape *from, const ts_dims *axes) {
  int64_t last = -1;
  for (int32_t d = 0; d < from->rank; d++) {
    if (from->dims[d] == 1) continue;
    if (axes->dims[d] < last) return false;
    last = axes->dims[d];
  }
  return true;
}

static bool reverses_nothing(const ts_shape *shape, const ts_dims *axes) {
  for (int32_t i = 0; i < axes->rank; i++) {
    if (shape->dims[axes->dims[i]] > 1) return false;
  }
  return true;
}

bool ts_lower_is_alias(const ts_graph *graph, ts_op_id id) {
  const ts_op *op = ts_graph_op(graph, id);
  if (op->operand_count == 0 || op->result_count != 1) return false;
  const ts_value *from = ts_graph_value(graph, op->operands[0]), *to = ts_graph_value(graph, op->first_result);
  bool same_size = ts_shape_elements(from->shape) == ts_shape_elements(to->shape);
  switch (op->code) {
  case TS_OP_RESHAPE: return true;
  case TS_OP_BITCAST: return from->dtype == to->dtype || ts_dtype_bits(to->dtype) >= 8;
  case TS_OP_CONVERT: return from->dtype == to->dtype;
  case TS_OP_TRANSPOSE: return ts_shape_keeps_order(from->shape, &op->attrs->axes);
  case TS_OP_BROADCAST: return same_size && broadcast_keeps_order(from->shape, &op->attrs->broadcast.axes);
  case TS_OP_REVERSE: return reverses_nothing(from->shape, &op->attrs->axes);
  case TS_OP_SLICE:
  case TS_OP_DYNAMIC_SLICE: return ts_shape_equal(from->shape, to->shape);
  case TS_OP_CONCATENATE: return op->operand_count == 1;
  default: return false;
  }
}

bool ts_lower_is_part(const ts_graph *graph, ts_op_id id, int64_t *out_offset) {
  const ts_op *op = ts_graph_op(graph, id);
  if (op->code != TS_OP_SLICE) return false;
  const ts_value *from = ts_graph_value(graph, op->operands[0]);
  const ts_shape *to = ts_graph_value(graph, op->first_result)->shape;
  int64_t strides[TS_MAX_RANK];
  bool rows = false; /* the dims before have one index, so the next one may be cut */
  *out_offset = 0;
  ts_shape_strides(from->shape, strides);
  for (int32_t d = 0; d < to->rank; d++)
    *out_offset += op->attrs->slice.start.dims[d] * strides[d] * (int64_t)ts_dtype_size(from->dtype);
  for (int32_t d = 0; d < to->rank; d++) {
    const bool whole = to->dims[d] == from->shape->dims[d];
    if (to->dims[d] > 1 && (op->attrs->slice.stride.dims[d] != 1 || (rows && !whole))) return false;
    if (to->dims[d] == 1 && rows && !whole) return false;
    rows = rows || to->dims[d] > 1;
  }
  return ts_shape_elements(to) > 0;
}
