/* Errors and checks that the inference of all ops shares. */
#include "ir/infer.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN_OPERANDS = 6 };

/* The operands' types, comma-separated, cut after a few. */
static void format_operands(const ts_infer_call *call, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < call->count && used < size; i++) {
    const char *comma = i ? ", " : "";
    if (i == SHOWN_OPERANDS) {
      snprintf(out + used, size - used, "%s... %zu in all", comma, call->count);
      return;
    }
    const ts_value *value = ts_infer_operand(call, i);
    int written = snprintf(out + used, size - used, "%s%s", comma, TS_SHAPE_STR(value->dtype, value->shape));
    if (written > 0) used += (size_t)written;
  }
}

ts_status(ts_infer_error)(const ts_infer_call *call, const char *format, ...) {
  char operands[SHOWN_OPERANDS * TS_SHAPE_TEXT];
  char message[2 * TS_SHAPE_TEXT + 256];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  format_operands(call, operands, sizeof operands);
  return ts_error(TS_INVALID_ARGUMENT, "%s(%s): %s", ts_op_name(call->code), operands, message);
}

ts_status ts_infer_unknown(const ts_infer_call *call) {
  return ts_error(TS_UNIMPLEMENTED, "%s has no inference", ts_op_name(call->code));
}

ts_status ts_infer_check_dtype(ts_dtype dtype) {
  if ((unsigned)dtype >= TS_DTYPE_COUNT)
    return ts_error(TS_INVALID_ARGUMENT, "there is no type number %u", (unsigned)dtype);
  if (!ts_dtype_supported(dtype))
    return ts_error(TS_UNIMPLEMENTED, "type %s is not supported yet", ts_dtype_name(dtype));
  return TS_SUCCESS;
}

ts_status ts_infer_check_type(ts_dtype dtype, const ts_shape *shape) {
  TS_TRY(ts_infer_check_dtype(dtype));
  return ts_shape_check(shape, dtype);
}

ts_status ts_infer_same_dtype(const ts_infer_call *call) {
  ts_dtype first = ts_infer_operand(call, 0)->dtype;
  for (size_t i = 1; i < call->count; i++) {
    if (ts_infer_operand(call, i)->dtype != first)
      return ts_infer_error(call, "the operands' types differ, expected equal types");
  }
  return TS_SUCCESS;
}

ts_status ts_infer_check_axis(const ts_infer_call *call, int64_t axis, int64_t lowest) {
  int32_t rank = ts_infer_operand(call, 0)->shape->rank;
  if (axis >= lowest && axis < rank) return TS_SUCCESS;
  return ts_infer_error(call, "axis %lld is out of range, expected one of [%lld, %d) for rank %d", (long long)axis,
                        (long long)lowest, rank, rank);
}

ts_status ts_infer_check_axes(const ts_infer_call *call, const char *what, const ts_dims *axes, int32_t rank) {
  if (axes->rank < 0 || axes->rank > TS_MAX_RANK)
    return ts_infer_error(call, "%s has %d entries, expected at most %d", what, axes->rank, TS_MAX_RANK);
  uint64_t seen = 0;
  for (int32_t i = 0; i < axes->rank; i++) {
    int64_t axis = axes->dims[i];
    if (axis < 0 || axis >= rank)
      return ts_infer_error(call, "%s has axis %lld, expected one of [0, %d) for rank %d", what, (long long)axis, rank,
                            rank);
    if (seen >> axis & 1)
      return ts_infer_error(call, "%s has axis %lld twice, expected distinct axes", what, (long long)axis);
    seen |= UINT64_C(1) << axis;
  }
  return TS_SUCCESS;
}

ts_status ts_infer_check_rank(const ts_infer_call *call, const char *what, const ts_dims *dims) {
  int32_t rank = ts_infer_operand(call, 0)->shape->rank;
  if (dims->rank == rank) return TS_SUCCESS;
  return ts_infer_error(call, "%s has %d entries, expected %d, one per dimension of the first operand", what,
                        dims->rank, rank);
}
