/* Fourier transforms along one axis. */
#include "ir/infer.h"

static ts_status check_length(const ts_infer_call *call) {
  const ts_attrs *attrs = call->attrs;
  TS_TRY(ts_infer_check_axis(call, attrs->fft.axis, 0));
  if (attrs->fft.length >= 1) return TS_SUCCESS;
  return ts_infer_error(call, "length %d, expected at least 1", attrs->fft.length);
}

static ts_status check_type(const ts_infer_call *call) {
  ts_dtype dtype = ts_infer_operand(call, 0)->dtype;
  bool is_complex = ts_dtype_is_complex(dtype), wide = dtype == TS_F32 || dtype == TS_F64;
  if (call->code == TS_OP_RFFT && !wide) return ts_infer_error(call, "expected f32 or f64");
  if (call->code == TS_OP_IRFFT && !is_complex) return ts_infer_error(call, "expected complex numbers");
  return is_complex || wide ? TS_SUCCESS : ts_infer_error(call, "expected f32, f64 or complex numbers");
}

ts_status ts_infer_fft(const ts_infer_call *call, ts_type *out) {
  const ts_value *operand = ts_infer_operand(call, 0);
  const int32_t length = call->attrs->fft.length;
  TS_TRY(check_type(call));
  TS_TRY(check_length(call));
  ts_type_set(out, ts_dtype_to_complex(operand->dtype), operand->shape);
  int64_t *points = &out->shape.dims[call->attrs->fft.axis];
  switch ((ts_ops_FFT)call->code) {
  case TS_OP_FFT:
  case TS_OP_IFFT: *points = length; return TS_SUCCESS;
  case TS_OP_RFFT: *points = length / 2 + 1; return TS_SUCCESS;
  case TS_OP_IRFFT:
    *points = length;
    out->dtype = ts_dtype_part(operand->dtype);
    return TS_SUCCESS;
  }
  return ts_infer_unknown(call);
}
