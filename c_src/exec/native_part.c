/* Ops in native loops that are routines elsewhere, and that the function computes in place (jit/flow/flow.h). */
#include "exec/builder.h"
#include "jit/flow/flow.h"
#include "tensor/contract_order.h"

/* ---- products ---- */

/* Larger products are calls: blocks for caches and registers are worth a call then. */
#define MOST_PRODUCTS 16384

/* A group of dims as one: `*stride` is the stride of the last dim in bytes. False if no single stride reaches all. */
static bool as_one(const ts_value *v, const ts_dims *dims, int64_t *count, int64_t *stride) {
  int64_t strides[TS_MAX_RANK];
  ts_shape_strides(v->shape, strides);
  *count = 1;
  *stride = 0;
  for (int32_t i = dims->rank - 1; i >= 0; i--) {
    int64_t extent = v->shape->dims[dims->dims[i]], by = strides[dims->dims[i]];
    if (extent == 1) continue;
    if (*count > 1 && by != *count * *stride) return false;
    if (*count == 1) *stride = by;
    *count *= extent;
  }
  *stride *= (int64_t)ts_dtype_size(v->dtype);
  return true;
}

static void free_dims(const ts_shape *shape, const ts_dims *batch, const ts_dims *contract, ts_dims *out) {
  *out = (ts_dims){.rank = 0};
  for (int32_t d = 0; d < shape->rank; d++) {
    bool taken = false;
    for (int32_t i = 0; i < batch->rank; i++) taken |= batch->dims[i] == d;
    for (int32_t i = 0; i < contract->rank; i++) taken |= contract->dims[i] == d;
    if (!taken) out->dims[out->rank++] = d;
  }
}

/* One operand. `counts`: of the batch, of its rows or columns, and of the terms. */
static bool measure(const ts_value *v, const ts_dims *batch, const ts_dims *contract, int64_t *counts,
                    ts_flow_strides *out) {
  ts_dims others;
  free_dims(v->shape, batch, contract, &others);
  return as_one(v, batch, &counts[0], &out->batch) && as_one(v, &others, &counts[1], &out->along) &&
         as_one(v, contract, &counts[2], &out->term);
}

/* Other products have the order of tensor/dot_order.h. */
static bool has_free_dims(const ts_op *op, const ts_shape *lhs, const ts_shape *rhs) {
  return lhs->rank + rhs->rank > 2 * (op->attrs->dot.lhs_contract.rank + op->attrs->dot.lhs_batch.rank);
}

static bool describe_dot(const ts_graph *g, const ts_op *op, ts_flow_dot *out) {
  if (op->code != TS_OP_DOT) return false;
  const ts_value *lhs = ts_graph_value(g, op->operands[0]), *rhs = ts_graph_value(g, op->operands[1]);
  int64_t l[3], r[3];
  bool floats = lhs->dtype == rhs->dtype && (lhs->dtype == TS_F32 || lhs->dtype == TS_F64);
  if (!floats || !has_free_dims(op, lhs->shape, rhs->shape)) return false;
  if (ts_graph_value(g, op->first_result)->dtype != lhs->dtype) return false;
  const ts_attrs *of = op->attrs;
  if (!measure(lhs, &of->dot.lhs_batch, &of->dot.lhs_contract, l, &out->lhs)) return false;
  if (!measure(rhs, &of->dot.rhs_batch, &of->dot.rhs_contract, r, &out->rhs)) return false;
  out->type = lhs->dtype;
  out->batch = l[0], out->rows = l[1], out->columns = r[1], out->terms = l[2];
  int64_t results = out->batch * out->rows * out->columns; /* of small tensors */
  return out->terms > 0 && out->terms <= TS_CONTRACT_CHAIN && results > 0 && results * out->terms <= MOST_PRODUCTS;
}

/* ---- scans ---- */

/* Elements of all lines. The code has each of them. */
#define MOST_SCANNED 32

static bool describe_scan(const ts_graph *g, const ts_op *op, ts_flow_scan *out) {
  if (op->code != TS_OP_CUMULATIVE_SUM && op->code != TS_OP_CUMULATIVE_PRODUCT) return false;
  const ts_value *v = ts_graph_value(g, op->operands[0]);
  bool known =
      v->dtype == TS_F32 || v->dtype == TS_F64 || (ts_dtype_is_integer(v->dtype) && ts_dtype_size(v->dtype) >= 4);
  int64_t all = ts_shape_elements(v->shape);
  if (!known || v->shape->rank == 0 || all == 0 || all > MOST_SCANNED) return false;
  int64_t count = v->shape->dims[op->attrs->scan.axis];
  for (int32_t d = op->attrs->scan.axis + 1; d < v->shape->rank; d++)
    if (v->shape->dims[d] != 1) return false;
  *out = (ts_flow_scan){v->dtype, op->code, op->attrs->scan.reverse, all / count, count};
  return true;
}

/* ---- scatters ---- */

/* The code has each row of updates, and each vector of a row. */
#define MOST_ROWS 16
#define MOST_ROW_BYTES 512

/* The dims before the last indexed dim that are not indexed themselves, as offsets in the target. */
static bool list_outer(const ts_shape *shape, const ts_dims *axes, const int64_t *strides, ts_flow_scatter *out) {
  const int64_t last = axes->dims[axes->rank - 1];
  out->outer_count = 1;
  out->outer[0] = 0;
  for (int32_t d = 0, a = 0; d < last; d++) {
    if (axes->dims[a] == d) {
      a++;
      continue;
    }
    const int32_t before = out->outer_count;
    if (before * shape->dims[d] > TS_FLOW_MOST_OUTER) return false;
    out->outer_count *= (int32_t)shape->dims[d];
    for (int32_t o = out->outer_count - 1; o >= 0; o--)
      out->outer[o] = out->outer[o / shape->dims[d]] + o % shape->dims[d] * strides[d];
  }
  return true;
}

static bool describe_scatter(const ts_graph *g, const ts_op *op, ts_flow_scatter *out) {
  if (op->code != TS_OP_INDEXED_ADD && op->code != TS_OP_INDEXED_PUT) return false;
  const ts_value *target = ts_graph_value(g, op->operands[0]), *indices = ts_graph_value(g, op->operands[1]);
  const ts_dims *axes = &op->attrs->axes;
  const int64_t size = (int64_t)ts_dtype_size(target->dtype);
  int64_t strides[TS_MAX_RANK];
  if (ts_dtype_is_complex(target->dtype) || size < 4 || ts_dtype_is_small(indices->dtype)) return false;
  if (ts_shape_elements(target->shape) == 0 || indices->shape->dims[0] == 0) return false;
  *out = (ts_flow_scatter){.type = target->dtype, .index = indices->dtype, .op = op->code};
  ts_shape_strides(target->shape, strides);
  out->rows = indices->shape->dims[0];
  out->axis_count = axes->rank;
  for (int32_t a = 0; a < axes->rank; a++) {
    out->extents[a] = target->shape->dims[axes->dims[a]];
    out->strides[a] = strides[axes->dims[a]] * size;
  }
  if (!list_outer(target->shape, axes, strides, out) || out->rows > MOST_ROWS / out->outer_count) return false;
  for (int32_t o = 0; o < out->outer_count; o++) out->outer[o] *= size;
  out->columns = strides[axes->dims[axes->rank - 1]];
  return out->columns * size <= MOST_ROW_BYTES;
}

ts_status ts_builder_note_part(ts_builder *b, const ts_op *op, int32_t position) {
  ts_native_part kept = {.position = position, .bytes = ts_builder_bytes(b, op->first_result)};
  ts_flow_dot dot;
  ts_flow_scan scan;
  ts_flow_scatter scatter;
  if (describe_dot(b->graph, op, &dot))
    TS_TRY(ts_arena_copy(&b->flows, &dot, sizeof dot, (void **)(uintptr_t)&kept.dot));
  else if (describe_scan(b->graph, op, &scan))
    TS_TRY(ts_arena_copy(&b->flows, &scan, sizeof scan, (void **)(uintptr_t)&kept.scan));
  else if (describe_scatter(b->graph, op, &scatter))
    TS_TRY(ts_arena_copy(&b->flows, &scatter, sizeof scatter, (void **)(uintptr_t)&kept.scatter));
  else
    return TS_SUCCESS;
  return TS_VEC_PUSH(&b->parts, kept);
}
