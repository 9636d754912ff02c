/* Computes with small types in wider ones: integers of fewer than 8 bits in s8 or u8, floats of 8 bits in f32. An op
 * becomes conversions of its operands, the op, and conversions of its results, which wrap or round once. So kernels and
 * routines only move, convert and sort small types. */
#include "pass/rules.h"

#include <string.h>

static ts_dtype wide_of(ts_dtype type) {
  if (!ts_dtype_is_small(type)) return type;
  return ts_dtype_is_float(type) ? ts_dtype_compute(type) : ts_dtype_carrier(type);
}

/* The parts of an op that get wider types. */
typedef struct widening {
  uint64_t operands; /* a bit for each; those from 63 on share the last */
  bool type;         /* the type in the attributes */
  bool extreme;      /* a maximum or minimum: without elements it is the identity of the wide type, out of range */
} widening;

enum { ALL = -1 };

static widening widen_indexed(const ts_op *op, ts_dtype type) {
  switch ((ts_ops_INDEXED)op->code) {
  case TS_OP_DYNAMIC_SLICE:
  case TS_OP_TAKE:
  case TS_OP_TAKE_ALONG: return (widening){.operands = ~UINT64_C(1)};
  case TS_OP_PUT_SLICE: return (widening){.operands = ~UINT64_C(3)};
  case TS_OP_INDEXED_PUT: return (widening){.operands = 2};
  /* Floats are rounded after each addition, so they are added in their own type. */
  case TS_OP_INDEXED_ADD: return (widening){.operands = ts_dtype_is_float(type) ? 2 : 7};
  }
  return (widening){0};
}

static widening widen_window(const ts_op *op, ts_dtype type) {
  bool scatters = op->code == TS_OP_WINDOW_SCATTER_MAX || op->code == TS_OP_WINDOW_SCATTER_MIN;
  if (scatters && ts_dtype_is_float(type)) return (widening){0}; /* as indexed_add */
  return (widening){.operands = ALL, .extreme = op->code == TS_OP_WINDOW_MAX || op->code == TS_OP_WINDOW_MIN};
}

static widening get_widening(const ts_op *op, ts_dtype type) {
  switch (ts_op_get_class(op->code)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CLAMP:
  case TS_CLASS_SCAN:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG: return (widening){.operands = ALL};
  case TS_CLASS_SOURCE: return (widening){.type = op->code == TS_OP_IOTA || op->code == TS_OP_EYE};
  case TS_CLASS_INDEXED: return widen_indexed(op, type);
  case TS_CLASS_REDUCE:
    if (op->code == TS_OP_REDUCE) return (widening){0}; /* a loop over its region (expand.c) */
    return (widening){.operands = ALL, .extreme = op->code == TS_OP_REDUCE_MAX || op->code == TS_OP_REDUCE_MIN};
  case TS_CLASS_ARG_REDUCE: return (widening){.operands = ALL, .type = true};
  case TS_CLASS_SORT: return (widening){.type = op->code == TS_OP_ARGSORT};
  case TS_CLASS_WINDOW: return widen_window(op, type);
  case TS_CLASS_COLLECTIVE: /* each combines its elements in the accumulator of their type */
  case TS_CLASS_FFT:        /* of wide types only */
  case TS_CLASS_COMPLEX:
  case TS_CLASS_CONVERT:
  case TS_CLASS_SELECT:
  case TS_CLASS_SHAPE:
  case TS_CLASS_CONTROL: break;
  }
  return (widening){0};
}

static bool is_widened(const widening *w, uint32_t operand) { return w->operands >> (operand < 63 ? operand : 63) & 1; }

static bool applies(const ts_rule_call *call, const widening *w) {
  if (w->type && ts_dtype_is_small(call->dtype)) return true;
  for (uint32_t i = 0; w->operands && i < call->op->operand_count; i++) {
    ts_dtype type = ts_graph_value(call->rules->to, call->op->operands[i])->dtype;
    if (ts_dtype_is_small(type) && is_widened(w, i)) return true;
  }
  return false;
}

static ts_status convert(const ts_rule_call *call, ts_value_id value, ts_dtype to, ts_value_id *out) {
  *out = value;
  if (ts_graph_value(call->rules->to, value)->dtype == to) return TS_SUCCESS;
  return ts_rules_add(call->rules, call->target, TS_OP_CONVERT, (ts_values){&value, 1}, &(ts_attrs){.dtype = to}, out);
}

static ts_status with_constant(const ts_rule_call *call, ts_opcode code, ts_value_id x, ts_scalar number,
                               ts_value_id *out) {
  ts_value value = *ts_graph_value(call->rules->to, x);
  ts_value_id operands[2] = {x};
  TS_TRY(ts_rules_constant(call->rules, call->target, value.dtype, value.shape, number, &operands[1]));
  return ts_rules_add(call->rules, call->target, code, (ts_values){operands, 2}, NULL, out);
}

/* Bits are counted in u8, where those above the type are zero. */
static ts_status count_bits(const ts_rule_call *call, ts_value_id *out) {
  ts_value_id x = call->op->operands[0], counted;
  int bits = ts_dtype_bits(call->dtype);
  TS_TRY(convert(call, x, TS_U8, &x));
  TS_TRY(with_constant(call, TS_OP_AND, x, (ts_scalar){.bits = (1u << bits) - 1}, &x));
  TS_TRY(ts_rules_add(call->rules, call->target, call->op->code, (ts_values){&x, 1}, NULL, &counted));
  if (call->op->code == TS_OP_CLZ)
    TS_TRY(with_constant(call, TS_OP_SUBTRACT, counted, (ts_scalar){.bits = 8 - (unsigned)bits}, &counted));
  return convert(call, counted, call->dtype, out);
}

static void widen_type(const ts_op *op, ts_attrs *attrs) {
  switch (op->code) {
  case TS_OP_IOTA: attrs->iota.dtype = wide_of(attrs->iota.dtype); return;
  case TS_OP_EYE: attrs->shaped.dtype = wide_of(attrs->shaped.dtype); return;
  case TS_OP_ARGSORT: attrs->argsort.dtype = wide_of(attrs->argsort.dtype); return;
  case TS_OP_ARGMAX:
  case TS_OP_ARGMIN: attrs->arg.dtype = wide_of(attrs->arg.dtype); return;
  default: return; /* then inference finds that the types differ */
  }
}

/* Brings the identity of the wide type into the range of the narrow one; keeps NaN. */
static ts_status limit(const ts_rule_call *call, ts_value_id *value) {
  bool low = call->op->code == TS_OP_REDUCE_MAX || call->op->code == TS_OP_WINDOW_MAX;
  ts_scalar bound = low ? ts_dtype_lowest(call->dtype) : ts_dtype_highest(call->dtype);
  bound = ts_scalar_convert(call->dtype, bound, wide_of(call->dtype));
  return with_constant(call, low ? TS_OP_MAX : TS_OP_MIN, *value, bound, value);
}

static ts_status narrow_results(const ts_rule_call *call, const widening *w, ts_value_id *out) {
  for (uint32_t i = 0; i < call->op->result_count; i++) {
    if (w->extreme && ts_dtype_is_small(call->dtype)) TS_TRY(limit(call, &out[i]));
    TS_TRY(convert(call, out[i], call->results[i].dtype, &out[i]));
  }
  return TS_SUCCESS;
}

static ts_status add_wide(const ts_rule_call *call, const widening *w, ts_value_id *operands, ts_value_id *out) {
  const ts_op *op = call->op;
  ts_attrs attrs = ts_op_copy_attrs(op);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    ts_dtype type = ts_graph_value(call->rules->to, op->operands[i])->dtype;
    TS_TRY(convert(call, op->operands[i], is_widened(w, i) ? wide_of(type) : type, &operands[i]));
  }
  if (w->type) widen_type(op, &attrs);
  return ts_rules_add(call->rules, call->target, op->code, (ts_values){operands, op->operand_count},
                      op->attrs ? &attrs : NULL, out);
}

ts_status ts_widen(const ts_rule_call *call, ts_value_id *out) {
  const ts_op *op = call->op;
  widening w = get_widening(op, call->dtype);
  ts_value_id *operands, wide[TS_MAX_RESULTS];
  if (!applies(call, &w)) return TS_SUCCESS;
  if (call->rules->probing) {
    call->rules->changes = true;
    return TS_SUCCESS;
  }
  if (op->code == TS_OP_CLZ || op->code == TS_OP_POPCOUNT) return count_bits(call, out);
  TS_TRY(TS_NEW_ARRAY(op->operand_count, &operands));
  ts_status status = add_wide(call, &w, operands, wide);
  ts_free(operands);
  if (!status) status = narrow_results(call, &w, wide);
  if (!status) memcpy(out, wide, op->result_count * sizeof *out);
  return status;
}
