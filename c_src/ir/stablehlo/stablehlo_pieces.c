/* Single ops of StableHLO that several printers write. */
#include "ir/stablehlo/stablehlo_internal.h"
#include "ir/syntax.h"

#include <string.h>

ts_status hlo_no_form(const hlo_call *call) {
  return ts_error(TS_UNIMPLEMENTED, "%s has no form in StableHLO", ts_op_name(call->op->code));
}

hlo_value hlo_unary(hlo *h, const char *name, hlo_value x) { return hlo_op(h, name, x.element, &x.shape, &x, 1); }

hlo_value hlo_binary(hlo *h, const char *name, hlo_value a, hlo_value b) {
  return hlo_op(h, name, a.element, &a.shape, (hlo_value[]){a, b}, 2);
}

hlo_value hlo_convert(hlo *h, hlo_value x, hlo_element element) {
  if (x.element == element) return x;
  hlo_value result = hlo_op(h, "stablehlo.convert", element, &x.shape, &x, 1);
  if (x.element == HLO_I1 && element == TS_U8 && x.name.result < 0) result.name.truth = x.name.number + 1;
  return result;
}

hlo_value hlo_compare_as(hlo *h, const char *kind, const char *direction, hlo_value a, hlo_value b) {
  return hlo_op_with(h, "stablehlo.compare", (hlo_type){HLO_I1, &a.shape}, (hlo_values){(hlo_value[]){a, b}, 2},
                     "comparison_direction = #stablehlo<comparison_direction %s>, "
                     "compare_type = #stablehlo<comparison_type %s>",
                     direction, kind);
}

hlo_value hlo_compare(hlo *h, const char *direction, hlo_value a, hlo_value b) {
  const ts_dtype type = a.element == HLO_I1 ? TS_U8 : (ts_dtype)a.element;
  const char *kind = !ts_dtype_is_integer(type) ? "FLOAT" : ts_dtype_is_signed(type) ? "SIGNED" : "UNSIGNED";
  return hlo_compare_as(h, kind, direction, a, b);
}

/* MLIR requires a decimal point in a float: 1e+20 is 1.0e+20. Values that are not finite are hexadecimal in both. */
static void print_real(hlo *h, ts_dtype dtype, ts_scalar value) {
  ts_text text = {0};
  ts_scalar_print(&text, dtype, value);
  const char *digits = text.data ? text.data : "";
  size_t mantissa = strcspn(digits, "e");
  bool is_plain = !ts_dtype_is_float(dtype) || digits[mantissa] == 0 || strchr(digits, 'x') || strchr(digits, '.');
  if (is_plain) mantissa = strlen(digits);
  ts_text_append_n(h->out, digits, mantissa);
  if (!is_plain) ts_text_format(h->out, ".0%s", digits + mantissa);
  h->out->failed = h->out->failed || text.failed;
  ts_text_deinit(&text);
}

static void print_number(hlo *h, ts_dtype dtype, ts_scalar value) {
  if (!ts_dtype_is_complex(dtype)) {
    print_real(h, dtype, value);
    return;
  }
  ts_dtype part = ts_dtype_part(dtype);
  ts_text_append(h->out, "(");
  print_real(h, part, ts_scalar_load(part, value.bytes));
  ts_text_append(h->out, ", ");
  print_real(h, part, ts_scalar_load(part, value.bytes + ts_dtype_size(part)));
  ts_text_append(h->out, ")");
}

static hlo_value begin_constant(hlo *h, hlo_element element, const ts_shape *shape) {
  hlo_value value = {.name = hlo_begin(h, "stablehlo.constant", 1, NULL, 0), .element = element, .shape = *shape};
  ts_text_append(h->out, " <{value = dense<");
  return value;
}

static hlo_value end_constant(hlo *h, hlo_value value) {
  ts_text_append(h->out, "> : ");
  hlo_print_type(h, value.element, &value.shape);
  ts_text_append(h->out, "}>");
  hlo_end(h, NULL, 0, &value, 1);
  return value;
}

hlo_value hlo_constant(hlo *h, ts_dtype dtype, const ts_shape *shape, ts_scalar number) {
  hlo_value value = begin_constant(h, dtype, shape);
  if (ts_shape_elements(shape) > 0) print_number(h, dtype, number);
  return end_constant(h, value);
}

hlo_value hlo_bool(hlo *h, bool truth) {
  hlo_value value = begin_constant(h, HLO_I1, &ts_shape_scalar);
  ts_text_append(h->out, truth ? "true" : "false");
  return end_constant(h, value);
}

/* The bytes in memory order, little-endian as MLIR reads them. */
hlo_value hlo_literal(const hlo_call *call) {
  const ts_buffer *buffer = call->op->attrs->literal.buffer;
  hlo_value value = begin_constant(call->h, call->element, call->shape);
  if (buffer->bytes > 0) {
    ts_text_append(call->h->out, "\"0x");
    ts_syntax_print_hex(call->h->out, buffer->data, (size_t)buffer->bytes);
    ts_text_append(call->h->out, "\"");
  }
  return end_constant(call->h, value);
}

hlo_value hlo_reshape(hlo *h, hlo_value x, const ts_shape *shape) {
  if (ts_shape_equal(&x.shape, shape)) return x;
  return hlo_op(h, "stablehlo.reshape", x.element, shape, &x, 1);
}

hlo_value hlo_iota(hlo *h, ts_dtype dtype, const ts_shape *shape, int32_t axis) {
  if (axis >= 0)
    return hlo_op_with(h, "stablehlo.iota", (hlo_type){dtype, shape}, (hlo_values){0}, "iota_dimension = %d : i64",
                       axis);
  ts_shape flat = {.rank = 1, .dims = {ts_shape_elements(shape)}};
  return hlo_reshape(h, hlo_iota(h, dtype, &flat, 0), shape);
}

hlo_value hlo_integer(hlo *h, ts_dtype dtype, const ts_shape *shape, int64_t value) {
  return hlo_constant(h, dtype, shape, ts_scalar_from_s64(dtype, value));
}

hlo_value hlo_truth(hlo *h, hlo_value x) {
  if (x.element == HLO_I1) return x;
  if (x.name.truth)
    return (hlo_value){.name = {.number = x.name.truth - 1, .result = -1}, .element = HLO_I1, .shape = x.shape};
  return hlo_compare(h, "NE", x, hlo_integer(h, (ts_dtype)x.element, &x.shape, 0));
}

hlo_value hlo_signed_index(hlo *h, hlo_value index) {
  if (index.element == TS_U64)
    index = hlo_binary(h, "stablehlo.minimum", index, hlo_integer(h, TS_U64, &index.shape, INT64_MAX));
  return hlo_convert(h, index, TS_S64);
}
