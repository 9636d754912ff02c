#include "ir/infer.h"

static const char *ordinal(size_t i) {
  static const char *const words[] = {"first", "second", "third"};
  return i < 3 ? words[i] : "last";
}

static ts_status same_shape(const ts_infer_call *call) {
  const ts_shape *first = ts_infer_operand(call, 0)->shape;
  for (size_t i = 1; i < call->count; i++) {
    if (!ts_shape_equal(ts_infer_operand(call, i)->shape, first))
      return ts_infer_error(call, "the operands' shapes differ, expected equal shapes");
  }
  return TS_SUCCESS;
}

/* ---- sources ---- */

static ts_status infer_source(const ts_infer_call *call, ts_type *out) {
  const ts_attrs *attrs = call->attrs;
  const ts_buffer *buffer;
  switch ((ts_ops_SOURCE)call->code) {
  case TS_OP_CONSTANT: ts_type_set(out, attrs->constant.dtype, &attrs->constant.shape); return TS_SUCCESS;
  case TS_OP_LITERAL:
    if (!(buffer = attrs->literal.buffer)) return ts_infer_error(call, "there is no data, expected a buffer");
    ts_type_set(out, buffer->dtype, &buffer->shape);
    return TS_SUCCESS;
  case TS_OP_IOTA:
    ts_type_set(out, attrs->iota.dtype, &attrs->iota.shape);
    if (attrs->iota.axis >= -1 && attrs->iota.axis < out->shape.rank) return TS_SUCCESS;
    return ts_infer_error(call, "axis %d is out of range, expected one of [-1, %d) for rank %d", attrs->iota.axis,
                          out->shape.rank, out->shape.rank);
  case TS_OP_EYE:
    ts_type_set(out, attrs->shaped.dtype, &attrs->shaped.shape);
    if (out->shape.rank >= 2) return TS_SUCCESS;
    return ts_infer_error(call, "the result has rank %d, expected at least 2", out->shape.rank);
  case TS_OP_PARAMETER: return ts_infer_error(call, "a region declares its parameters, they are not among its ops");
  }
  return ts_infer_unknown(call);
}

/* ---- elementwise ---- */

static ts_status elementwise(const ts_infer_call *call, ts_dtype result, ts_type *out) {
  TS_TRY(same_shape(call));
  ts_type_set(out, result, ts_infer_operand(call, 0)->shape);
  return TS_SUCCESS;
}

static ts_status infer_arithmetic(const ts_infer_call *call, ts_type *out) {
  ts_op_class op_class = ts_op_get_class(call->code);
  ts_dtype dtype = ts_infer_operand(call, 0)->dtype;
  bool wants_float = op_class == TS_CLASS_UNARY_FLOAT || op_class == TS_CLASS_BINARY_FLOAT;
  bool wants_integer = op_class == TS_CLASS_UNARY_INTEGER || op_class == TS_CLASS_BINARY_INTEGER;
  bool is_predicate = op_class == TS_CLASS_PREDICATE || op_class == TS_CLASS_COMPARE;
  TS_TRY(ts_infer_same_dtype(call));
  if (wants_float && !ts_dtype_is_float(dtype) && !ts_dtype_is_complex(dtype))
    return ts_infer_error(call, "expected a floating-point type");
  if (wants_integer && !ts_dtype_is_integer(dtype)) return ts_infer_error(call, "expected an integer type");
  if (call->code == TS_OP_ABS) dtype = ts_dtype_part(dtype);
  return elementwise(call, is_predicate ? TS_U8 : dtype, out);
}

static ts_status infer_complex(const ts_infer_call *call, ts_type *out) {
  ts_dtype dtype = ts_infer_operand(call, 0)->dtype;
  TS_TRY(ts_infer_same_dtype(call));
  switch ((ts_ops_COMPLEX)call->code) {
  case TS_OP_REAL:
  case TS_OP_IMAG:
    if (!ts_dtype_is_complex(dtype)) return ts_infer_error(call, "expected a complex type");
    return elementwise(call, ts_dtype_part(dtype), out);
  case TS_OP_COMPLEX:
    if (dtype != TS_F32 && dtype != TS_F64) return ts_infer_error(call, "expected parts of type f32 or f64");
    return elementwise(call, ts_dtype_to_complex(dtype), out);
  }
  return ts_infer_unknown(call);
}

static ts_status infer_convert(const ts_infer_call *call, ts_type *out) {
  ts_dtype from = ts_infer_operand(call, 0)->dtype, to = call->attrs->dtype;
  TS_TRY(ts_infer_check_dtype(to));
  switch ((ts_ops_CONVERT)call->code) {
  case TS_OP_BITCAST:
    if (ts_dtype_bits(from) != ts_dtype_bits(to))
      return ts_infer_error(call, "%s has %d bits, expected a type of %d", ts_dtype_name(to), ts_dtype_bits(to),
                            ts_dtype_bits(from));
    return elementwise(call, to, out);
  case TS_OP_CONVERT: return elementwise(call, to, out);
  }
  return ts_infer_unknown(call);
}

static ts_status infer_select(const ts_infer_call *call, ts_type *out) {
  ts_dtype dtype = ts_infer_operand(call, 1)->dtype;
  if (ts_infer_operand(call, 0)->dtype != TS_U8) return ts_infer_error(call, "expected a predicate of type u8");
  if (ts_infer_operand(call, 2)->dtype != dtype)
    return ts_infer_error(call, "the choices' types differ, expected equal types");
  return elementwise(call, dtype, out);
}

/* ---- reductions and scans ---- */

/* Results are truth values. */
static bool reduces_truth(ts_opcode code) {
  switch ((ts_ops_REDUCE)code) {
  case TS_OP_REDUCE_ALL:
  case TS_OP_REDUCE_ANY: return true;
  case TS_OP_REDUCE_SUM:
  case TS_OP_REDUCE_PRODUCT:
  case TS_OP_REDUCE_MAX:
  case TS_OP_REDUCE_MIN:
  case TS_OP_REDUCE: break;
  }
  return false;
}

static ts_status infer_reduce(const ts_infer_call *call, ts_type *out) {
  const ts_dims *axes = call->code == TS_OP_REDUCE ? &call->attrs->reduce.axes : &call->attrs->axes;
  const ts_value *operand = ts_infer_operand(call, 0);
  TS_TRY(ts_infer_check_axes(call, "axes", axes, operand->shape->rank));
  if (call->code == TS_OP_REDUCE) TS_TRY(ts_infer_reduce_region(call));
  uint64_t reduced = ts_dims_mask(axes);
  ts_type_set(out, reduces_truth(call->code) ? TS_U8 : operand->dtype, &ts_shape_scalar);
  for (int32_t i = 0; i < operand->shape->rank; i++) {
    if (!(reduced >> i & 1)) out->shape.dims[out->shape.rank++] = operand->shape->dims[i];
  }
  return TS_SUCCESS;
}

static ts_status infer_arg_reduce(const ts_infer_call *call, ts_type *out) {
  const ts_shape *shape = ts_infer_operand(call, 0)->shape;
  int32_t axis = call->attrs->arg.axis;
  ts_dtype dtype = call->attrs->arg.dtype;
  TS_TRY(ts_infer_check_axis(call, axis, -1));
  TS_TRY(ts_infer_check_dtype(dtype));
  if (!ts_dtype_is_integer(dtype))
    return ts_infer_error(call, "the result's type is %s, expected an integer type", ts_dtype_name(dtype));
  ts_type_set(out, dtype, &ts_shape_scalar);
  for (int32_t i = 0; axis >= 0 && i < shape->rank; i++) {
    if (i != axis) out->shape.dims[out->shape.rank++] = shape->dims[i];
  }
  return TS_SUCCESS;
}

static ts_status infer_scan(const ts_infer_call *call, ts_type *out) {
  TS_TRY(ts_infer_check_axis(call, call->attrs->scan.axis, 0));
  return elementwise(call, ts_infer_operand(call, 0)->dtype, out);
}

static ts_status infer_argsort(const ts_infer_call *call, ts_type *out) {
  ts_dtype dtype = call->attrs->argsort.dtype;
  TS_TRY(ts_infer_check_axis(call, call->attrs->argsort.axis, 0));
  TS_TRY(ts_infer_check_dtype(dtype));
  if (!ts_dtype_is_integer(dtype))
    return ts_infer_error(call, "the result's type is %s, expected an integer type", ts_dtype_name(dtype));
  return elementwise(call, dtype, out);
}

static ts_status infer_top_k(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  int32_t last = operand->shape->rank - 1, k = call->attrs->top_k.k;
  TS_TRY(ts_infer_check_axis(call, last, 0));
  if (k < 0 || k > operand->shape->dims[last])
    return ts_infer_error(call, "k is %d, expected one of [0, %lld]", k, (long long)operand->shape->dims[last]);
  if (operand->shape->dims[last] > INT32_MAX)
    return ts_infer_error(call, "the last axis has size %lld, expected one whose positions s32 has",
                          (long long)operand->shape->dims[last]);
  ts_type_set(&out[0], operand->dtype, operand->shape);
  ts_type_set(&out[1], TS_S32, operand->shape);
  out[0].shape.dims[last] = out[1].shape.dims[last] = k;
  return TS_SUCCESS;
}

static ts_status infer_sort(const ts_infer_call *call, ts_type *out) {
  ts_dtype dtype = ts_infer_operand(call, 0)->dtype;
  if (ts_dtype_get_kind(dtype) == TS_KIND_COMPLEX) return ts_infer_error(call, "%s has no order", ts_dtype_name(dtype));
  switch ((ts_ops_SORT)call->code) {
  case TS_OP_SORT: TS_TRY(ts_infer_check_axis(call, call->attrs->sort.axis, 0)); return elementwise(call, dtype, out);
  case TS_OP_ARGSORT: return infer_argsort(call, out);
  case TS_OP_TOP_K: return infer_top_k(call, out);
  }
  return ts_infer_unknown(call);
}

/* ---- products ---- */

static ts_status infer_product(const ts_infer_call *call, ts_type *out) {
  switch ((ts_ops_DOT)call->code) {
  case TS_OP_DOT:
  case TS_OP_WIDE_DOT:
  case TS_OP_SCALED_DOT: return ts_infer_dot(call, out);
  case TS_OP_QUANTIZED_DOT: return ts_infer_quantized_dot(call, out);
  case TS_OP_CONV: return ts_infer_conv(call, out);
  }
  return ts_infer_unknown(call);
}

/* ---- complex numbers ---- */

static ts_status check_complex(const ts_infer_call *call) {
  bool complex = call->code == TS_OP_BITCAST && ts_dtype_is_complex(call->attrs->dtype);
  for (size_t i = 0; i < call->count; i++) complex |= ts_dtype_is_complex(ts_infer_operand(call, i)->dtype);
  if (!complex || ts_op_takes_complex(call->code)) return TS_SUCCESS;
  return ts_error(TS_UNIMPLEMENTED, "%s is not implemented for complex numbers", ts_op_name(call->code));
}

/* ---- the dispatch ---- */

static ts_status infer_one(const ts_infer_call *call, ts_type *out) {
  switch (ts_op_get_class(call->code)) {
  case TS_CLASS_SOURCE: return infer_source(call, out);
  case TS_CLASS_CONVERT: return infer_convert(call, out);
  case TS_CLASS_SELECT: return infer_select(call, out);
  case TS_CLASS_SHAPE: return ts_infer_shape_op(call, out);
  case TS_CLASS_INDEXED: return ts_infer_indexed(call, out);
  case TS_CLASS_REDUCE: return infer_reduce(call, out);
  case TS_CLASS_ARG_REDUCE: return infer_arg_reduce(call, out);
  case TS_CLASS_SCAN: return infer_scan(call, out);
  case TS_CLASS_SORT: return infer_sort(call, out);
  case TS_CLASS_WINDOW: return ts_infer_window(call, out);
  case TS_CLASS_DOT: return infer_product(call, out);
  case TS_CLASS_LINALG: return ts_infer_linalg(call, out);
  case TS_CLASS_COLLECTIVE: return ts_infer_collective(call, out);
  case TS_CLASS_COMPLEX: return infer_complex(call, out);
  case TS_CLASS_FFT: return ts_infer_fft(call, out);
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_UNARY:
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_PREDICATE:
  case TS_CLASS_BINARY:
  case TS_CLASS_BINARY_FLOAT:
  case TS_CLASS_BINARY_INTEGER:
  case TS_CLASS_COMPARE:
  case TS_CLASS_CLAMP: return infer_arithmetic(call, out);
  case TS_CLASS_CONTROL: break; /* ts_infer_control */
#ifdef TS_TEST_ROWS
  case TS_CLASS_TEST: return ts_infer_test(call, out);
#endif
  }
  return ts_infer_unknown(call);
}

static ts_status check_call(const ts_infer_call *call) {
  if ((unsigned)call->code >= TS_OP_COUNT)
    return ts_error(TS_INVALID_ARGUMENT, "there is no op number %u", (unsigned)call->code);
  const char *name = ts_op_name(call->code);
  int wanted = ts_op_operands(call->code);
  for (size_t i = 0; i < call->count; i++) {
    if (call->operands[i] >= call->graph->values.count)
      return ts_error(TS_INVALID_ARGUMENT, "%s: the %s operand is no value of the graph", name, ordinal(i));
  }
  if (wanted >= 0 && call->count != (size_t)wanted)
    return ts_infer_error(call, "%zu operands, expected %d", call->count, wanted);
  if (wanted < 0 && call->count == 0 && call->code != TS_OP_CALL && call->code != TS_OP_FUSION &&
      call->code != TS_OP_CALLBACK && call->code != TS_OP_CUSTOM_CALL)
    return ts_infer_error(call, "no operands, expected at least one");
  if (ts_op_attr_kind(call->code) != TS_ATTR_NONE && !call->attrs) return ts_infer_error(call, "expected attributes");
  return check_complex(call);
}

ts_status ts_infer(const ts_graph *graph, ts_opcode code, ts_values operands, const ts_attrs *attrs,
                   ts_result_types *out) {
  ts_infer_call call = {graph, code, operands.data, operands.count, attrs};
  TS_TRY(check_call(&call));
  if (ts_op_get_class(code) == TS_CLASS_CONTROL) return ts_infer_control(&call, out->room, out->data, &out->count);
  out->count = ts_op_results(code) < 0 ? operands.count : (size_t)ts_op_results(code);
  if (out->room < out->count) return ts_error(TS_INTERNAL, "%s: no room for the results' types", ts_op_name(code));
  TS_TRY(infer_one(&call, out->data));
  for (size_t i = 0; i < out->count; i++) {
    ts_status status = ts_infer_check_type(out->data[i].dtype, &out->data[i].shape);
    if (status) return ts_error_context(status, "%s", ts_op_name(code));
  }
  return TS_SUCCESS;
}
