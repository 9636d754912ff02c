#include "kernel/ref/ref_internal.h"

static int64_t elements(const ts_ref_call *call) { return ts_shape_elements(&call->result->shape); }

static ts_scalar truth_value(bool truth) { return (ts_scalar){.bits = truth}; }

static void unary(const ts_ref_call *call) {
  const ts_buffer *x = call->operands[0];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, ts_ref_unary(call->op->code, x->dtype, ts_ref_get(x, i)));
  }
}

static void take_part(const ts_ref_call *call) {
  const ts_buffer *x = call->operands[0];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, ts_ref_complex_part(call->op->code, x->dtype, ts_ref_get(x, i)));
  }
}

static void join_parts(const ts_ref_call *call) {
  const ts_buffer *re = call->operands[0], *im = call->operands[1];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, ts_ref_complex_join(re->dtype, ts_ref_get(re, i), ts_ref_get(im, i)));
  }
}

static ts_status complex_parts(const ts_ref_call *call) {
  switch ((ts_ops_COMPLEX)call->op->code) {
  case TS_OP_REAL:
  case TS_OP_IMAG: take_part(call); return TS_SUCCESS;
  case TS_OP_COMPLEX: join_parts(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}

static void predicate(const ts_ref_call *call) {
  const ts_buffer *x = call->operands[0];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, truth_value(ts_ref_predicate(call->op->code, x->dtype, ts_ref_get(x, i))));
  }
}

static void binary(const ts_ref_call *call) {
  const ts_buffer *a = call->operands[0], *b = call->operands[1];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, ts_ref_binary(call->op->code, a->dtype, ts_ref_get(a, i), ts_ref_get(b, i)));
  }
}

static void compare(const ts_ref_call *call) {
  const ts_buffer *a = call->operands[0], *b = call->operands[1];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    bool truth = ts_ref_compare(call->op->code, a->dtype, ts_ref_get(a, i), ts_ref_get(b, i));
    ts_ref_set(call->result, i, truth_value(truth));
  }
}

static void convert(const ts_ref_call *call) {
  const ts_buffer *x = call->operands[0];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_ref_set(call->result, i, ts_scalar_convert(x->dtype, ts_ref_get(x, i), call->result->dtype));
  }
}

/* Types of fewer than 8 bits extend the same bits in different ways, as a conversion does. */
static void bitcast(const ts_ref_call *call) {
  if (ts_dtype_bits(call->result->dtype) < 8) {
    convert(call);
    return;
  }
  ts_copy_bytes(call->result->data, call->operands[0]->data, call->result->bytes, call->cancel);
}

static ts_status converted(const ts_ref_call *call) {
  switch ((ts_ops_CONVERT)call->op->code) {
  case TS_OP_CONVERT: convert(call); return TS_SUCCESS;
  case TS_OP_BITCAST: bitcast(call); return TS_SUCCESS;
  }
  return ts_ref_unknown(call);
}

static void select(const ts_ref_call *call) {
  const ts_buffer *predicates = call->operands[0];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    bool truth = ts_ref_truth(predicates->dtype, ts_ref_get(predicates, i));
    ts_ref_set(call->result, i, ts_ref_get(call->operands[truth ? 1 : 2], i));
  }
}

static void clamp(const ts_ref_call *call) {
  const ts_buffer *x = call->operands[0], *low = call->operands[1], *high = call->operands[2];
  for (int64_t i = 0; ts_ref_goes_on(call, i, elements(call)); i++) {
    ts_scalar raised = ts_ref_binary(TS_OP_MAX, x->dtype, ts_ref_get(x, i), ts_ref_get(low, i));
    ts_ref_set(call->result, i, ts_ref_binary(TS_OP_MIN, x->dtype, raised, ts_ref_get(high, i)));
  }
}

ts_status ts_ref_elementwise(const ts_ref_call *call) {
  ts_opcode code = call->op->code;
  if (!ts_ref_has_meaning(code, call->operands[0]->dtype)) return ts_ref_unknown(call);
  switch (ts_op_get_class(code)) {
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER: unary(call); return TS_SUCCESS;
  case TS_CLASS_COMPLEX: return complex_parts(call);
  case TS_CLASS_PREDICATE: predicate(call); return TS_SUCCESS;
  case TS_CLASS_COMPARE: compare(call); return TS_SUCCESS;
  case TS_CLASS_SELECT: select(call); return TS_SUCCESS;
  case TS_CLASS_CLAMP: clamp(call); return TS_SUCCESS;
  case TS_CLASS_CONVERT: return converted(call);
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER: binary(call); return TS_SUCCESS;
  case TS_CLASS_SOURCE:
  case TS_CLASS_SHAPE:
  case TS_CLASS_INDEXED:
  case TS_CLASS_REDUCE:
  case TS_CLASS_ARG_REDUCE:
  case TS_CLASS_SCAN:
  case TS_CLASS_SORT:
  case TS_CLASS_WINDOW:
  case TS_CLASS_DOT:
  case TS_CLASS_LINALG:
  case TS_CLASS_COLLECTIVE:
  case TS_CLASS_FFT:
  case TS_CLASS_CONTROL: break;
  }
  return ts_ref_unknown(call);
}
