#include "ir/attrs.h"

#include <string.h>

size_t ts_attrs_size(ts_attr_kind kind) {
  static const ts_attrs *const a = NULL;
  switch (kind) {
  case TS_ATTR_NONE: return 0;
  case TS_ATTR_PARAMETER: return sizeof a->parameter;
  case TS_ATTR_CONSTANT: return sizeof a->constant;
  case TS_ATTR_LITERAL: return sizeof a->literal;
  case TS_ATTR_IOTA: return sizeof a->iota;
  case TS_ATTR_SHAPED: return sizeof a->shaped;
  case TS_ATTR_DTYPE: return sizeof a->dtype;
  case TS_ATTR_SHAPE: return sizeof a->shape;
  case TS_ATTR_BROADCAST: return sizeof a->broadcast;
  case TS_ATTR_AXES: return sizeof a->axes;
  case TS_ATTR_AXIS: return sizeof a->axis;
  case TS_ATTR_SLICE: return sizeof a->slice;
  case TS_ATTR_PAD: return sizeof a->pad;
  case TS_ATTR_REDUCE: return sizeof a->reduce;
  case TS_ATTR_ARG: return sizeof a->arg;
  case TS_ATTR_SCAN: return sizeof a->scan;
  case TS_ATTR_DOT: return sizeof a->dot;
  case TS_ATTR_REGIONS: return sizeof a->regions;
  case TS_ATTR_FUSION: return sizeof a->fusion;
  }
  return 0;
}

ts_attrs ts_op_copy_attrs(const ts_op *op) {
  ts_attrs attrs = {0};
  if (op->attrs) memcpy(&attrs, op->attrs, ts_attrs_size(ts_op_attr_kind(op->code)));
  return attrs;
}

/* ---- canonical form ---- */

static void put_dims(ts_dims *out, const ts_dims *in) {
  out->rank = in->rank;
  for (int32_t i = 0; i < in->rank; i++) out->dims[i] = in->dims[i];
}

static void put_sorted(ts_dims *out, const ts_dims *in) {
  for (int32_t i = 0; i < in->rank; i++) {
    int32_t at = out->rank++;
    for (; at > 0 && out->dims[at - 1] > in->dims[i]; at--) out->dims[at] = out->dims[at - 1];
    out->dims[at] = in->dims[i];
  }
}

static uint64_t cut_to_width(ts_scalar value, ts_dtype dtype) {
  int bits = ts_dtype_bits(dtype);
  return bits >= 64 ? value.bits : value.bits & ((UINT64_C(1) << bits) - 1);
}

static void put_axes(ts_opcode code, ts_dims *out, const ts_dims *in) {
  if (code == TS_OP_TRANSPOSE) {
    put_dims(out, in);
  } else {
    put_sorted(out, in);
  }
}

static void put_regions(ts_opcode code, const ts_attrs *in, ts_attrs *out) {
  out->regions.regions[0] = in->regions.regions[0];
  out->regions.regions[1] = code == TS_OP_CALL ? TS_NO_ID : in->regions.regions[1];
}

/* Of the kinds that give the result's type. */
static void canonicalize_source(ts_opcode code, const ts_attrs *in, ts_attrs *out) {
  switch (ts_op_attr_kind(code)) {
  case TS_ATTR_CONSTANT:
    out->constant.dtype = in->constant.dtype;
    put_dims(&out->constant.shape, &in->constant.shape);
    out->constant.value.bits = cut_to_width(in->constant.value, in->constant.dtype);
    break;
  case TS_ATTR_LITERAL: out->literal.buffer = in->literal.buffer; break;
  case TS_ATTR_IOTA:
    out->iota.dtype = in->iota.dtype;
    put_dims(&out->iota.shape, &in->iota.shape);
    out->iota.axis = in->iota.axis;
    break;
  case TS_ATTR_SHAPED:
    out->shaped.dtype = in->shaped.dtype;
    put_dims(&out->shaped.shape, &in->shaped.shape);
    break;
  case TS_ATTR_DTYPE: out->dtype = in->dtype; break;
  default: break;
  }
}

void ts_attrs_canonicalize(ts_opcode code, const ts_attrs *in, ts_attrs *out) {
  switch (ts_op_attr_kind(code)) {
  case TS_ATTR_SHAPE: put_dims(&out->shape, &in->shape); break;
  case TS_ATTR_BROADCAST:
    put_dims(&out->broadcast.shape, &in->broadcast.shape);
    put_dims(&out->broadcast.axes, &in->broadcast.axes);
    break;
  case TS_ATTR_AXES: put_axes(code, &out->axes, &in->axes); break;
  case TS_ATTR_AXIS: out->axis = in->axis; break;
  case TS_ATTR_SLICE:
    put_dims(&out->slice.start, &in->slice.start);
    put_dims(&out->slice.limit, &in->slice.limit);
    put_dims(&out->slice.stride, &in->slice.stride);
    break;
  case TS_ATTR_PAD:
    put_dims(&out->pad.low, &in->pad.low);
    put_dims(&out->pad.high, &in->pad.high);
    put_dims(&out->pad.interior, &in->pad.interior);
    break;
  case TS_ATTR_REDUCE:
    put_sorted(&out->reduce.axes, &in->reduce.axes);
    out->reduce.region = in->reduce.region;
    break;
  case TS_ATTR_ARG:
    out->arg.axis = in->arg.axis;
    out->arg.high = in->arg.high;
    out->arg.dtype = in->arg.dtype;
    break;
  case TS_ATTR_SCAN:
    out->scan.axis = in->scan.axis;
    out->scan.reverse = in->scan.reverse;
    break;
  case TS_ATTR_DOT:
    put_dims(&out->dot.lhs_contract, &in->dot.lhs_contract);
    put_dims(&out->dot.lhs_batch, &in->dot.lhs_batch);
    put_dims(&out->dot.rhs_contract, &in->dot.rhs_contract);
    put_dims(&out->dot.rhs_batch, &in->dot.rhs_batch);
    break;
  case TS_ATTR_REGIONS: put_regions(code, in, out); break;
  case TS_ATTR_FUSION:
    out->fusion.region = in->fusion.region;
    out->fusion.kind = in->fusion.kind;
    break;
  default: canonicalize_source(code, in, out);
  }
}

/* ---- regions ---- */

size_t ts_attrs_regions(ts_opcode code, const ts_attrs *attrs, ts_region_id out[2]) {
  switch (ts_op_attr_kind(code)) {
  case TS_ATTR_REDUCE: out[0] = attrs->reduce.region; return 1;
  case TS_ATTR_FUSION: out[0] = attrs->fusion.region; return 1;
  case TS_ATTR_REGIONS:
    out[0] = attrs->regions.regions[0];
    out[1] = attrs->regions.regions[1];
    return code == TS_OP_CALL ? 1 : 2;
  default: return 0;
  }
}

void ts_attrs_set_regions(ts_opcode code, ts_attrs *attrs, const ts_region_id regions[2]) {
  switch (ts_op_attr_kind(code)) {
  case TS_ATTR_REDUCE: attrs->reduce.region = regions[0]; break;
  case TS_ATTR_FUSION: attrs->fusion.region = regions[0]; break;
  case TS_ATTR_REGIONS:
    attrs->regions.regions[0] = regions[0];
    attrs->regions.regions[1] = code == TS_OP_CALL ? TS_NO_ID : regions[1];
    break;
  default: break;
  }
}

size_t ts_op_regions(const ts_op *op, ts_region_id out[2]) { return ts_attrs_regions(op->code, op->attrs, out); }
