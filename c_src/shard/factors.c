#include "shard/factors.h"

#include "ir/attrs.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* ---- construction ---- */

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t remainder = a % b;
    a = b;
    b = remainder;
  }
  return a;
}

static int32_t new_factor(ts_factors *f) {
  f->sizes[f->count] = 0;
  return f->count++;
}

static void set_moved(ts_factors *f, int32_t factor) { f->moved |= UINT64_C(1) << factor; }
static void set_reduced(ts_factors *f, int32_t factor) { f->reduced |= UINT64_C(1) << factor; }

static void bind(ts_factors *f, int32_t tensor, int32_t dim, int32_t factor) {
  f->of[tensor][dim] = (int16_t)factor;
  f->sizes[factor] = common_divisor(f->shapes[tensor]->dims[dim], f->sizes[factor]);
}

/* A factor for a dim of an operand and one of the result. */
static void bind_pair(ts_factors *f, int32_t operand, int32_t dim, int32_t result, int32_t result_dim) {
  int32_t factor = new_factor(f);
  bind(f, operand, dim, factor);
  bind(f, result, result_dim, factor);
}

/* The same where parts of the result need more than parts of the operand; not for dims without elements. */
static void bind_moved(ts_factors *f, int32_t operand, int32_t dim, int32_t result, int32_t result_dim) {
  if (f->shapes[operand]->dims[dim] == 0 || f->shapes[result]->dims[result_dim] == 0) return;
  set_moved(f, f->count);
  bind_pair(f, operand, dim, result, result_dim);
}

/* Binds a dim of an operand whose elements in the result come from one partition each. */
static void bind_masked(ts_factors *f, int32_t operand, int32_t dim) {
  int32_t factor = new_factor(f);
  set_moved(f, factor);
  set_reduced(f, factor);
  f->reduction = TS_OP_ALL_REDUCE_OR;
  bind(f, operand, dim, factor);
}

/* Binds dims that are the same in the first `count` tensors, except the dims in `whole`. */
static void bind_alike(ts_factors *f, int32_t from, int32_t to, int32_t rank, uint64_t whole) {
  for (int32_t d = 0; d < rank; d++) {
    if (whole >> d & 1) continue;
    int32_t factor = new_factor(f);
    for (int32_t t = from; t < to; t++) bind(f, t, d, factor);
  }
}

static int32_t rank_of(const ts_factors *f, int32_t tensor) { return f->shapes[tensor]->rank; }

/* Too many dims for the table: no rule. */
static bool fits(const ts_factors *f) {
  int32_t dims = 0;
  for (int32_t t = 0; t < f->tensors; t++) dims += rank_of(f, t);
  return dims <= TS_MAX_FACTORS;
}

/* ---- shape ---- */

static void broadcast(ts_factors *f, const ts_dims *axes) {
  for (int32_t d = 0; d < rank_of(f, 1); d++) bind(f, 1, d, new_factor(f));
  for (int32_t i = 0; i < axes->rank; i++)
    if (f->shapes[0]->dims[i] == f->shapes[1]->dims[axes->dims[i]]) bind(f, 0, i, f->of[1][axes->dims[i]]);
}

/* The product of dims from *at until it equals the other side's; the first dim of more than one element is the cut dim:
 * parts of it are consecutive elements on both sides. */
static int32_t leading(const ts_shape *shape, int32_t from, int32_t to) {
  for (int32_t d = from; d < to; d++)
    if (shape->dims[d] != 1) return d;
  return -1;
}

static bool reshape(ts_factors *f) {
  const ts_shape *in = f->shapes[0], *out = f->shapes[1];
  int32_t i = 0, o = 0;
  if (ts_shape_elements(in) == 0) return false;
  while (i < in->rank && o < out->rank) {
    int32_t first_in = i, first_out = o;
    int64_t a = in->dims[i++], b = out->dims[o++];
    while (a != b) {
      if (a < b)
        a *= in->dims[i++];
      else
        b *= out->dims[o++];
    }
    int32_t from = leading(in, first_in, i), to = leading(out, first_out, o);
    if (from >= 0 && to >= 0) bind_pair(f, 0, from, 1, to);
  }
  return true;
}

static void slice(ts_factors *f, const ts_attrs *a) {
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (a->slice.start.dims[d] == 0 && a->slice.limit.dims[d] == f->shapes[0]->dims[d] && a->slice.stride.dims[d] == 1)
      bind_pair(f, 0, d, 1, d);
    else
      bind_moved(f, 0, d, 1, d);
  }
}

static void pad(ts_factors *f, const ts_attrs *a) {
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (a->pad.interior.dims[d] != 0) continue;
    if (a->pad.low.dims[d] == 0 && a->pad.high.dims[d] == 0)
      bind_pair(f, 0, d, 2, d);
    else
      bind_moved(f, 0, d, 2, d);
  }
}

static void reverse(ts_factors *f, uint64_t axes) {
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (axes >> d & 1)
      bind_moved(f, 0, d, 1, d);
    else
      bind_pair(f, 0, d, 1, d);
  }
}

static void concatenate(ts_factors *f, int32_t axis) {
  bind_alike(f, 0, f->tensors, rank_of(f, 0), 0);
  if (f->operands > 1) set_moved(f, f->of[0][axis]);
}

static bool shape_op(ts_factors *f, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  switch (op->code) {
  case TS_OP_RESHAPE: return reshape(f);
  case TS_OP_BROADCAST: broadcast(f, &a->broadcast.axes); return true;
  case TS_OP_TRANSPOSE:
    for (int32_t d = 0; d < a->axes.rank; d++) bind_pair(f, 0, (int32_t)a->axes.dims[d], 1, d);
    return true;
  case TS_OP_REVERSE: reverse(f, ts_dims_mask(&a->axes)); return true;
  case TS_OP_SLICE: slice(f, a); return true;
  case TS_OP_PAD: pad(f, a); return true;
  case TS_OP_CONCATENATE: concatenate(f, a->axis); return true;
  default: return false;
  }
}

/* ---- indexed ---- */

/* Where the slice is not whole, its elements come from one partition each. */
static void dynamic_slice(ts_factors *f) {
  int32_t result = f->tensors - 1;
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (f->shapes[0]->dims[d] == f->shapes[result]->dims[d])
      bind_pair(f, 0, d, result, d);
    else if (f->shapes[result]->dims[d] > 0)
      bind_masked(f, 0, d);
  }
}

static void put_slice(ts_factors *f) {
  int32_t result = f->tensors - 1;
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    int64_t size = f->shapes[1]->dims[d];
    if (size == 0) continue;
    if (size < f->shapes[0]->dims[d]) set_moved(f, f->count);
    bind_pair(f, 0, d, result, d);
    if (size == f->shapes[0]->dims[d]) bind(f, 1, d, f->of[0][d]);
  }
}

static void take(ts_factors *f, int32_t axis) {
  int32_t index_rank = rank_of(f, 1);
  for (int32_t d = 0; d < axis; d++) bind_pair(f, 0, d, 2, d);
  for (int32_t d = 0; d < index_rank; d++) bind_pair(f, 1, d, 2, axis + d);
  for (int32_t d = axis + 1; d < rank_of(f, 0); d++) bind_pair(f, 0, d, 2, d + index_rank - 1);
  if (f->shapes[0]->dims[axis] > 0) bind_masked(f, 0, axis);
}

static void take_along(ts_factors *f, int32_t axis) {
  bind_alike(f, 0, 3, rank_of(f, 0), UINT64_C(1) << axis);
  bind_pair(f, 1, axis, 2, axis);
  if (f->shapes[0]->dims[axis] > 0) bind_masked(f, 0, axis);
}

/* Where rows of a sum are cut, results are terms. The last of two puts wins: its rows stay together. */
static void indexed_rows(ts_factors *f, const ts_op *op, ts_dtype dtype) {
  int32_t factor = f->count;
  if (op->code != TS_OP_INDEXED_ADD || ts_dtype_accumulator(dtype) != dtype) return;
  new_factor(f);
  set_moved(f, factor);
  set_reduced(f, factor);
  f->reduction = TS_OP_ALL_REDUCE_SUM;
  f->wide = true;
  bind(f, 1, 0, factor);
  bind(f, 2, 0, factor);
}

static void indexed_update(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  uint64_t axes = ts_dims_mask(&op->attrs->axes);
  for (int32_t d = 0, u = 1; d < rank_of(f, 0); d++) {
    if (axes >> d & 1) {
      bind_moved(f, 0, d, 3, d);
    } else {
      bind_pair(f, 0, d, 3, d);
      bind(f, 2, u++, f->of[0][d]);
    }
  }
  indexed_rows(f, op, ts_graph_value(graph, op->operands[0])->dtype);
}

static bool indexed(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  switch ((ts_ops_INDEXED)op->code) {
  case TS_OP_DYNAMIC_SLICE: dynamic_slice(f); return true;
  case TS_OP_PUT_SLICE: put_slice(f); return true;
  case TS_OP_TAKE: take(f, op->attrs->axis); return true;
  case TS_OP_TAKE_ALONG: take_along(f, op->attrs->axis); return true;
  case TS_OP_INDEXED_ADD:
  case TS_OP_INDEXED_PUT: indexed_update(f, graph, op); return true;
  }
  return false;
}

/* ---- reductions ---- */

static bool set_reduction(ts_factors *f, ts_opcode code) {
  f->wide = code == TS_OP_REDUCE_SUM || code == TS_OP_REDUCE_PRODUCT || code == TS_OP_DOT;
  switch (code) {
  case TS_OP_REDUCE_SUM:
  case TS_OP_DOT: f->reduction = TS_OP_ALL_REDUCE_SUM; return true;
  case TS_OP_REDUCE_PRODUCT: f->reduction = TS_OP_ALL_REDUCE_PRODUCT; return true;
  case TS_OP_REDUCE_MAX:
  case TS_OP_REDUCE_ANY: f->reduction = TS_OP_ALL_REDUCE_MAX; return true;
  case TS_OP_REDUCE_MIN:
  case TS_OP_REDUCE_ALL: f->reduction = TS_OP_ALL_REDUCE_MIN; return true;
  default: return false;
  }
}

/* Dims that a region combines are whole. */
static void reduce_by_region(ts_factors *f, uint64_t reduced) {
  for (int32_t d = 0, kept = 0; d < rank_of(f, 0); d++)
    if (!(reduced >> d & 1)) bind_pair(f, 0, d, 2, kept++);
}

static bool reduce(ts_factors *f, const ts_op *op) {
  uint64_t reduced;
  if (op->code == TS_OP_REDUCE) {
    reduce_by_region(f, ts_dims_mask(&op->attrs->reduce.axes));
    return true;
  }
  if (!set_reduction(f, op->code)) return false;
  reduced = ts_dims_mask(&op->attrs->axes);
  for (int32_t d = 0, kept = 0; d < rank_of(f, 0); d++) {
    int32_t factor = new_factor(f);
    bind(f, 0, d, factor);
    if (reduced >> d & 1)
      set_reduced(f, factor);
    else
      bind(f, 1, kept++, factor);
  }
  return true;
}

/* Of all elements: the first dim that is cut can be the first one of more than one element, since parts of it are
 * consecutive elements. */
static void arg_reduce(ts_factors *f, int32_t axis) {
  int32_t cut = axis >= 0 ? axis : leading(f->shapes[0], 0, rank_of(f, 0));
  if (cut < 0 || ts_shape_elements(f->shapes[0]) == 0) return;
  for (int32_t d = 0; axis >= 0 && d < rank_of(f, 0); d++)
    if (d != axis) bind_pair(f, 0, d, 1, d < axis ? d : d - 1);
  set_moved(f, f->count);
  bind(f, 0, cut, new_factor(f));
}

static bool sort(ts_factors *f, const ts_op *op) {
  int32_t axis = op->code == TS_OP_SORT      ? op->attrs->sort.axis
                 : op->code == TS_OP_ARGSORT ? op->attrs->argsort.axis
                                             : rank_of(f, 0) - 1;
  if (op->code != TS_OP_SORT && op->code != TS_OP_ARGSORT && op->code != TS_OP_TOP_K) return false;
  bind_alike(f, 0, f->tensors, rank_of(f, 0), UINT64_C(1) << axis);
  return true;
}

/* ---- contractions ---- */

/* Batch dims, then the free dims of lhs and of rhs. */
static bool dot(ts_factors *f, const ts_attrs *a) {
  const int32_t result = f->operands;
  int32_t at = 0;
  for (int32_t i = 0; i < a->dot.lhs_batch.rank; i++, at++) {
    bind_pair(f, 0, (int32_t)a->dot.lhs_batch.dims[i], result, at);
    bind(f, 1, (int32_t)a->dot.rhs_batch.dims[i], f->of[result][at]);
  }
  for (int32_t i = 0; i < a->dot.lhs_contract.rank; i++) {
    int32_t factor = new_factor(f);
    f->reduced |= UINT64_C(1) << factor;
    bind(f, 0, (int32_t)a->dot.lhs_contract.dims[i], factor);
    bind(f, 1, (int32_t)a->dot.rhs_contract.dims[i], factor);
  }
  for (int32_t t = 0; t < 2; t++)
    for (int32_t d = 0; d < rank_of(f, t); d++)
      if (f->of[t][d] < 0) bind_pair(f, t, d, result, at++);
  return set_reduction(f, TS_OP_DOT);
}

/* The scale is cut as its operand is cut; dims of one element, and dims that the operand must have whole, are whole. */
static void bind_scale(ts_factors *f, const ts_attrs *a) {
  const int32_t scaled = a->scaled_dot.operand;
  const ts_dims *axes = &a->scaled_dot.axes;
  for (int32_t i = 0; i < axes->rank; i++) {
    const int64_t d = axes->dims[i];
    if (f->shapes[2]->dims[i] == f->shapes[scaled]->dims[d] && f->of[scaled][d] >= 0) bind(f, 2, i, f->of[scaled][d]);
  }
}

static void keep_whole(ts_factors *f, int32_t tensor, const ts_dims *dims) {
  for (int32_t i = 0; i < dims->rank; i++) f->of[tensor][dims->dims[i]] = -1;
}

/* Products that convert their operands. Partial results would be of the accumulator's type, but the elements are first
 * rounded to the result's: where the types differ the contracted dims are whole. */
static bool converting_dot(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  if (!dot(f, a)) return false;
  if (ts_dtype_is_narrow(ts_graph_value(graph, op->first_result)->dtype)) {
    keep_whole(f, 0, &a->dot.lhs_contract);
    keep_whole(f, 1, &a->dot.rhs_contract);
  }
  if (op->code == TS_OP_SCALED_DOT) bind_scale(f, a);
  return true;
}

/* Rows may be cut. A part of a weight would be another weight, since its columns are in panels. */
static void quantized_dot(ts_factors *f) {
  const int32_t result = f->tensors - 1;
  for (int32_t d = 0; d < rank_of(f, 0) - 1; d++) bind_pair(f, 0, d, result, d);
}

/* Channels are contracted; of several groups each has its own channels and features. */
static void conv_channels(ts_factors *f, int64_t groups) {
  int32_t last = rank_of(f, 0) - 1, factor = new_factor(f);
  bind(f, 0, last, factor);
  if (groups == 1) {
    set_reduced(f, factor);
    bind(f, 1, last - 1, factor);
    bind_pair(f, 1, last, 2, last);
  } else {
    bind(f, 1, last, factor);
    bind(f, 2, last, factor);
    f->sizes[factor] = common_divisor(groups, f->sizes[factor]);
  }
}

static bool conv(ts_factors *f, const ts_attrs *a) {
  bind_pair(f, 0, 0, 2, 0);
  for (int32_t d = 0; d < a->conv.strides.rank; d++)
    if (a->conv.input_dilation.dims[d] == 1) bind_moved(f, 0, d + 1, 2, d + 1);
  if (f->shapes[0]->dims[rank_of(f, 0) - 1] > 0) conv_channels(f, a->conv.groups);
  return set_reduction(f, TS_OP_DOT);
}

/* Windows of one element each. */
static bool is_plain(const ts_attrs *a, int32_t d) {
  return a->window.sizes.dims[d] == 1 && a->window.strides.dims[d] == 1 && a->window.low.dims[d] == 0 &&
         a->window.high.dims[d] == 0;
}

/* Windows that begin and end in one part, when the dim is cut. */
static bool is_tiled(const ts_factors *f, const ts_attrs *a, int32_t d) {
  return a->window.low.dims[d] == 0 && a->window.high.dims[d] == 0 &&
         a->window.sizes.dims[d] <= a->window.strides.dims[d] &&
         f->shapes[0]->dims[d] == f->shapes[1]->dims[d] * a->window.strides.dims[d];
}

static void window_scatter(ts_factors *f, const ts_attrs *a) {
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (!is_tiled(f, a, d)) continue;
    bind_pair(f, 0, d, 3, d);
    bind(f, 1, d, f->of[0][d]);
  }
}

/* Padding by the identity does not change a window's result, but of products of complex numbers, where 1 changes
 * infinities. */
static void window_fold(ts_factors *f, const ts_op *op, ts_dtype dtype) {
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (is_plain(op->attrs, d))
      bind_pair(f, 0, d, 1, d);
    else if (op->code != TS_OP_WINDOW_PRODUCT || !ts_dtype_is_complex(dtype))
      bind_moved(f, 0, d, 1, d);
  }
}

static bool window(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  if (op->operand_count == 1)
    window_fold(f, op, ts_graph_value(graph, op->operands[0])->dtype);
  else
    window_scatter(f, op->attrs);
  return true;
}

/* Dims before the matrices; and the right sides of systems of equations. */
static bool linalg(ts_factors *f, const ts_op *op) {
  const int32_t rank = rank_of(f, 0);
  int32_t dim = rank - 1;
  switch ((ts_ops_LINALG)op->code) {
  case TS_OP_CHOLESKY:
  case TS_OP_DETERMINANT:
  case TS_OP_LU:
  case TS_OP_QR:
  case TS_OP_EIGH:
  case TS_OP_SVD: bind_alike(f, 0, f->tensors, rank - 2, 0); return true;
  case TS_OP_TRIANGULAR_SOLVE: dim = op->attrs->triangular.left ? rank - 1 : rank - 2; /* fall through */
  case TS_OP_SOLVE:
    bind_alike(f, 0, f->tensors, rank - 2, 0);
    bind_pair(f, 1, dim, 2, dim);
    return true;
  }
  return false;
}

static bool product(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  switch ((ts_ops_DOT)op->code) {
  case TS_OP_DOT: return dot(f, op->attrs);
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT: return converting_dot(f, graph, op);
  case TS_OP_QUANTIZED_DOT: quantized_dot(f); return true;
  case TS_OP_CONV: return conv(f, op->attrs);
  }
  return false;
}

/* ---- the dispatch ---- */

static bool find(ts_factors *f, const ts_graph *graph, const ts_op *op) {
  if (ts_op_is_elementwise(op->code) || op->code == TS_OP_SHARDING_CONSTRAINT) {
    bind_alike(f, 0, f->tensors, rank_of(f, 0), 0);
    return true;
  }
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_SHAPE: return shape_op(f, op);
  case TS_CLASS_INDEXED: return indexed(f, graph, op);
  case TS_CLASS_REDUCE: return reduce(f, op);
  case TS_CLASS_ARG_REDUCE: arg_reduce(f, op->attrs->arg.axis); return true;
  case TS_CLASS_SCAN: bind_alike(f, 0, 2, rank_of(f, 0), UINT64_C(1) << op->attrs->scan.axis); return true;
  case TS_CLASS_SORT: return sort(f, op);
  case TS_CLASS_WINDOW: return window(f, graph, op);
  case TS_CLASS_DOT: return product(f, graph, op);
  case TS_CLASS_LINALG: return linalg(f, op);
  case TS_CLASS_FFT: bind_alike(f, 0, 2, rank_of(f, 0), UINT64_C(1) << op->attrs->fft.axis); return true;
  default: return false; /* every class to come is replicated until it has a rule */
  }
}

/* The first of equals stays first. */
static void sort_by_size(ts_factors *f) {
  int64_t sizes[TS_FACTOR_TENSORS];
  for (int32_t t = 0; t < f->tensors; t++) {
    int64_t size = ts_shape_elements(f->shapes[t]);
    int32_t at = t;
    for (; at > 0 && sizes[at - 1] < size; at--) {
      sizes[at] = sizes[at - 1];
      f->by_size[at] = f->by_size[at - 1];
    }
    sizes[at] = size;
    f->by_size[at] = (uint8_t)t;
  }
}

bool ts_factors_of(const ts_graph *graph, const ts_op *op, ts_factors *out) {
  if (op->operand_count == 0 || op->operand_count + op->result_count > TS_FACTOR_TENSORS) return false;
  out->count = 0;
  out->operands = (int32_t)op->operand_count;
  out->tensors = (int32_t)(op->operand_count + op->result_count);
  out->reduced = out->moved = 0;
  out->wide = false;
  out->reduction = TS_OP_COUNT;
  memset(out->of, -1, (size_t)out->tensors * sizeof out->of[0]);
  for (uint32_t i = 0; i < op->operand_count; i++) out->shapes[i] = ts_graph_value(graph, op->operands[i])->shape;
  for (uint32_t i = 0; i < op->result_count; i++)
    out->shapes[op->operand_count + i] = ts_graph_value(graph, op->first_result + i)->shape;
  sort_by_size(out);
  return fits(out) && find(out, graph, op);
}

/* Fields of these types hold the shape of the op's result (ir/attr.def). */
static void localize_shapes(ts_attr_kind kind, const ts_shape *part, ts_attrs *inout) {
  for (const ts_attr_field *field = ts_attr_fields(kind); field->name; field++) {
    if (field->type == TS_FIELD_RESULT_SHAPE || field->type == TS_FIELD_SHAPE)
      ts_shape_copy(ts_attr_at(inout, field), part);
  }
}

void ts_factors_localize(const ts_op *op, const ts_shape *whole, const ts_shape *part, ts_attrs *inout) {
  localize_shapes(ts_op_attr_kind(op->code), part, inout);
  if (op->code == TS_OP_SLICE) {
    for (int32_t d = 0; d < part->rank; d++)
      if (part->dims[d] < whole->dims[d]) inout->slice.limit.dims[d] = part->dims[d];
  } else if (op->code == TS_OP_CONV && inout->conv.groups > 1 && part->dims[part->rank - 1] > 0) {
    inout->conv.groups /= (int32_t)(whole->dims[part->rank - 1] / part->dims[part->rank - 1]);
  }
}

bool ts_factors_pass_through(const ts_op *op) {
  return ts_op_is_elementwise(op->code) || op->code == TS_OP_TRANSPOSE || op->code == TS_OP_RESHAPE ||
         op->code == TS_OP_SHARDING_CONSTRAINT;
}

/* The number that a value has in all of its elements, as far as the program says one. */
static bool is_number(const ts_graph *graph, ts_value_id value, double complex *out) {
  const ts_value *v = ts_graph_value(graph, value);
  ts_scalar scalar;
  while (v->op != TS_NO_ID && ts_graph_op(graph, v->op)->code == TS_OP_BROADCAST) {
    value = ts_graph_op(graph, v->op)->operands[0];
    v = ts_graph_value(graph, value);
  }
  if (!ts_graph_is_constant(graph, value, &scalar)) return false;
  *out = CMPLX(ts_scalar_to_f64(v->dtype, scalar), ts_scalar_imag(v->dtype, scalar));
  return true;
}

static bool is_finite(double complex number) { return isfinite(creal(number)) && isfinite(cimag(number)); }

/* A divisor that makes of each term of a sum a term of the quotient. */
static bool divides_terms(const ts_graph *graph, ts_value_id value) {
  double complex number;
  return ts_dtype_is_float(ts_graph_value(graph, value)->dtype) && is_number(graph, value, &number) && number != 0 &&
         is_finite(number);
}

/* False for a factor known to be infinite or NaN: terms of both signs would become infinities whose sum is NaN. */
static bool multiplies_terms(const ts_graph *graph, ts_value_id value) {
  double complex number;
  return !is_number(graph, value, &number) || is_finite(number);
}

static bool is_widening(const ts_graph *graph, const ts_op *op) {
  ts_dtype from = ts_graph_value(graph, op->operands[0])->dtype, to = op->attrs->dtype;
  return ts_dtype_is_float(from) && ts_dtype_is_float(to) && ts_dtype_precision(to) >= ts_dtype_precision(from) &&
         ts_dtype_size(to) > ts_dtype_size(from);
}

bool ts_factors_is_linear(const ts_graph *graph, const ts_op *op, uint32_t operands) {
  switch ((int)op->code) {
  case TS_OP_ADD:
  case TS_OP_SUBTRACT: return operands == 3;
  case TS_OP_MULTIPLY:
  case TS_OP_DOT:
  case TS_OP_CONV: return (operands == 1 || operands == 2) && multiplies_terms(graph, op->operands[operands == 1]);
  case TS_OP_DIVIDE: return operands == 1 && divides_terms(graph, op->operands[1]);
  case TS_OP_CONVERT: return operands == 1 && is_widening(graph, op);
  case TS_OP_NEGATE:
  case TS_OP_RESHAPE:
  case TS_OP_BROADCAST:
  case TS_OP_TRANSPOSE:
  case TS_OP_REVERSE:
  case TS_OP_SLICE:
  case TS_OP_REDUCE_SUM: return operands == 1;
  default: return false;
  }
}
