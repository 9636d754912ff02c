#include "shard/factors.h"

#include <string.h>

/* ---- making ---- */

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t remainder = a % b;
    a = b;
    b = remainder;
  }
  return a;
}

static int32_t new_factor(ts_factors *f) { return f->count++; }

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

/* Dims that all of the first `count` tensors have alike, but for those in `whole`. */
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

/* The product of dims from *at until it equals the other side's; the first dim of more than one element is the one that
 * is cut: parts of it are consecutive elements on both sides. */
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

static uint64_t mask_if(bool condition, int32_t dim) { return condition ? UINT64_C(1) << dim : 0; }

static void slice(ts_factors *f, const ts_attrs *a) {
  uint64_t whole = 0;
  for (int32_t d = 0; d < rank_of(f, 0); d++)
    whole |= mask_if(a->slice.start.dims[d] != 0 || a->slice.limit.dims[d] != f->shapes[0]->dims[d] ||
                         a->slice.stride.dims[d] != 1,
                     d);
  bind_alike(f, 0, 2, rank_of(f, 0), whole);
}

static void pad(ts_factors *f, const ts_attrs *a) {
  for (int32_t d = 0; d < rank_of(f, 0); d++)
    if (a->pad.low.dims[d] == 0 && a->pad.high.dims[d] == 0 && a->pad.interior.dims[d] == 0) bind_pair(f, 0, d, 2, d);
}

static bool shape_op(ts_factors *f, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  switch (op->code) {
  case TS_OP_RESHAPE: return reshape(f);
  case TS_OP_BROADCAST: broadcast(f, &a->broadcast.axes); return true;
  case TS_OP_TRANSPOSE:
    for (int32_t d = 0; d < a->axes.rank; d++) bind_pair(f, 0, (int32_t)a->axes.dims[d], 1, d);
    return true;
  case TS_OP_REVERSE: bind_alike(f, 0, 2, rank_of(f, 0), ts_dims_mask(&a->axes)); return true;
  case TS_OP_SLICE: slice(f, a); return true;
  case TS_OP_PAD: pad(f, a); return true;
  case TS_OP_CONCATENATE: bind_alike(f, 0, f->tensors, rank_of(f, 0), UINT64_C(1) << a->axis); return true;
  default: return false;
  }
}

/* ---- indexed ---- */

/* Dims in which the slice is whole. */
static void dynamic_slice(ts_factors *f) {
  int32_t result = f->tensors - 1;
  for (int32_t d = 0; d < rank_of(f, 0); d++)
    if (f->shapes[0]->dims[d] == f->shapes[result]->dims[d]) bind_pair(f, 0, d, result, d);
}

static void put_slice(ts_factors *f) {
  int32_t result = f->tensors - 1;
  for (int32_t d = 0; d < rank_of(f, 0); d++) {
    if (f->shapes[0]->dims[d] != f->shapes[1]->dims[d]) continue;
    bind_pair(f, 0, d, result, d);
    bind(f, 1, d, f->of[0][d]);
  }
}

static void take(ts_factors *f, int32_t axis) {
  int32_t index_rank = rank_of(f, 1);
  for (int32_t d = 0; d < axis; d++) bind_pair(f, 0, d, 2, d);
  for (int32_t d = 0; d < index_rank; d++) bind_pair(f, 1, d, 2, axis + d);
  for (int32_t d = axis + 1; d < rank_of(f, 0); d++) bind_pair(f, 0, d, 2, d + index_rank - 1);
}

static bool indexed(ts_factors *f, const ts_op *op) {
  switch (op->code) {
  case TS_OP_DYNAMIC_SLICE: dynamic_slice(f); return true;
  case TS_OP_PUT_SLICE: put_slice(f); return true;
  case TS_OP_TAKE: take(f, op->attrs->axis); return true;
  case TS_OP_TAKE_ALONG: bind_alike(f, 0, 3, rank_of(f, 0), UINT64_C(1) << op->attrs->axis); return true;
  default: return false;
  }
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

static bool reduce(ts_factors *f, const ts_op *op) {
  uint64_t reduced;
  if (!set_reduction(f, op->code)) return false;
  reduced = ts_dims_mask(&op->attrs->axes);
  for (int32_t d = 0, kept = 0; d < rank_of(f, 0); d++) {
    int32_t factor = new_factor(f);
    bind(f, 0, d, factor);
    if (reduced >> d & 1)
      f->reduced |= UINT64_C(1) << factor;
    else
      bind(f, 1, kept++, factor);
  }
  return true;
}

static void drop_axis(ts_factors *f, int32_t axis) {
  for (int32_t d = 0; axis >= 0 && d < rank_of(f, 0); d++)
    if (d != axis) bind_pair(f, 0, d, 1, d < axis ? d : d - 1);
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

/* Batch dims, then what is free of lhs and of rhs. */
static bool dot(ts_factors *f, const ts_attrs *a) {
  int32_t at = 0;
  for (int32_t i = 0; i < a->dot.lhs_batch.rank; i++, at++) {
    bind_pair(f, 0, (int32_t)a->dot.lhs_batch.dims[i], 2, at);
    bind(f, 1, (int32_t)a->dot.rhs_batch.dims[i], f->of[2][at]);
  }
  for (int32_t i = 0; i < a->dot.lhs_contract.rank; i++) {
    int32_t factor = new_factor(f);
    f->reduced |= UINT64_C(1) << factor;
    bind(f, 0, (int32_t)a->dot.lhs_contract.dims[i], factor);
    bind(f, 1, (int32_t)a->dot.rhs_contract.dims[i], factor);
  }
  for (int32_t t = 0; t < 2; t++)
    for (int32_t d = 0; d < rank_of(f, t); d++)
      if (f->of[t][d] < 0) bind_pair(f, t, d, 2, at++);
  return set_reduction(f, TS_OP_DOT);
}

/* The batch, and the features where there is one group. */
static bool conv(ts_factors *f, const ts_attrs *a) {
  bind_pair(f, 0, 0, 2, 0);
  if (a->conv.groups == 1) bind_pair(f, 1, rank_of(f, 1) - 1, 2, rank_of(f, 2) - 1);
  return true;
}

/* Dims that no window spans. */
static bool window(ts_factors *f, const ts_op *op) {
  const ts_attrs *a = op->attrs;
  if (op->operand_count != 1) return false;
  for (int32_t d = 0; d < rank_of(f, 0); d++)
    if (a->window.sizes.dims[d] == 1 && a->window.strides.dims[d] == 1 && a->window.low.dims[d] == 0 &&
        a->window.high.dims[d] == 0)
      bind_pair(f, 0, d, 1, d);
  return true;
}

/* Dims before the matrices. */
static bool linalg(ts_factors *f, const ts_op *op) {
  if (op->code != TS_OP_CHOLESKY && op->code != TS_OP_TRIANGULAR_SOLVE) return false;
  for (int32_t d = 0; d < rank_of(f, 0) - 2; d++) {
    int32_t factor = new_factor(f);
    for (int32_t t = 0; t < f->tensors; t++) bind(f, t, d, factor);
  }
  return true;
}

/* ---- the dispatch ---- */

static bool find(ts_factors *f, const ts_op *op) {
  if (ts_op_is_elementwise(op->code) || op->code == TS_OP_SHARDING_CONSTRAINT) {
    bind_alike(f, 0, f->tensors, rank_of(f, 0), 0);
    return true;
  }
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_SHAPE: return shape_op(f, op);
  case TS_CLASS_INDEXED: return indexed(f, op);
  case TS_CLASS_REDUCE: return reduce(f, op);
  case TS_CLASS_ARG_REDUCE: drop_axis(f, op->attrs->arg.axis); return true;
  case TS_CLASS_SCAN: bind_alike(f, 0, 2, rank_of(f, 0), UINT64_C(1) << op->attrs->scan.axis); return true;
  case TS_CLASS_SORT: return sort(f, op);
  case TS_CLASS_WINDOW: return window(f, op);
  case TS_CLASS_DOT: return op->code == TS_OP_DOT ? dot(f, op->attrs) : op->code == TS_OP_CONV && conv(f, op->attrs);
  case TS_CLASS_LINALG: return linalg(f, op);
  default: return false; /* every class to come is replicated until it has a rule */
  }
}

bool ts_factors_of(const ts_graph *graph, const ts_op *op, ts_factors *out) {
  if (op->operand_count == 0 || op->operand_count + op->result_count > TS_FACTOR_TENSORS) return false;
  out->count = 0;
  out->operands = (int32_t)op->operand_count;
  out->tensors = (int32_t)(op->operand_count + op->result_count);
  out->reduced = 0;
  out->wide = false;
  memset(out->sizes, 0, sizeof out->sizes);
  memset(out->of, -1, sizeof out->of);
  for (uint32_t i = 0; i < op->operand_count; i++) out->shapes[i] = ts_graph_value(graph, op->operands[i])->shape;
  for (uint32_t i = 0; i < op->result_count; i++)
    out->shapes[op->operand_count + i] = ts_graph_value(graph, op->first_result + i)->shape;
  return fits(out) && find(out, op);
}

void ts_factors_localize(const ts_op *op, const ts_shape *part, ts_attrs *inout) {
  switch (op->code) {
  case TS_OP_CONSTANT: ts_shape_copy(&inout->constant.shape, part); return;
  case TS_OP_IOTA: ts_shape_copy(&inout->iota.shape, part); return;
  case TS_OP_RESHAPE:
  case TS_OP_DYNAMIC_SLICE: ts_shape_copy(&inout->shape, part); return;
  case TS_OP_BROADCAST: ts_shape_copy(&inout->broadcast.shape, part); return;
  case TS_OP_SLICE:
    for (int32_t d = 0; d < part->rank; d++)
      if (inout->slice.start.dims[d] == 0 && inout->slice.stride.dims[d] == 1)
        inout->slice.limit.dims[d] = part->dims[d];
    return;
  default: return;
  }
}

bool ts_factors_pass_through(const ts_op *op) {
  return ts_op_is_elementwise(op->code) || op->code == TS_OP_TRANSPOSE || op->code == TS_OP_RESHAPE ||
         op->code == TS_OP_SHARDING_CONSTRAINT;
}
