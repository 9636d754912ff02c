#include "ir/stablehlo/stablehlo_internal.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- types ---- */

/* NULL for a float that StableHLO lacks. */
static const char *float_name(ts_dtype type) {
  switch ((ts_float_type)type) {
  case TS_FLOAT_F8: return "f8E5M2";
  case TS_FLOAT_F8E4M3FN: return "f8E4M3FN";
  case TS_FLOAT_F16: return "f16";
  case TS_FLOAT_BF16: return "bf16";
  case TS_FLOAT_F32: return "f32";
  case TS_FLOAT_F64: return "f64";
  }
  return NULL;
}

bool hlo_has_type(ts_dtype type) { return !ts_dtype_is_float(type) || float_name(type); }

static void print_element(hlo *h, hlo_element element) {
  if (element == HLO_I1) {
    ts_text_append(h->out, "i1");
    return;
  }
  ts_dtype type = (ts_dtype)element;
  int bits = ts_dtype_bits(type);
  if (ts_dtype_is_float(type)) {
    ts_text_append(h->out, float_name(type));
  } else if (ts_dtype_is_integer(type)) {
    ts_text_format(h->out, "%s%d", ts_dtype_is_signed(type) ? "i" : "ui", bits);
  } else {
    ts_text_format(h->out, "complex<f%d>", bits / 2);
  }
}

void hlo_print_type(hlo *h, hlo_element element, const ts_shape *shape) {
  ts_text_append(h->out, "tensor<");
  for (int32_t d = 0; d < shape->rank; d++) ts_text_format(h->out, "%lldx", (long long)shape->dims[d]);
  print_element(h, element);
  ts_text_append(h->out, ">");
}

void hlo_print_types(hlo *h, const hlo_value *values, size_t count) {
  ts_text_append(h->out, "(");
  for (size_t i = 0; i < count; i++) {
    if (i) ts_text_append(h->out, ", ");
    hlo_print_type(h, values[i].element, &values[i].shape);
  }
  ts_text_append(h->out, ")");
}

const char *hlo_dims_format(const ts_dims *dims, const char *before, const char *after, char *out) {
  size_t length = (size_t)snprintf(out, HLO_DIMS_TEXT, "%s", before);
  for (int32_t i = 0; i < dims->rank; i++) {
    length += (size_t)snprintf(out + length, HLO_DIMS_TEXT - length, "%s%lld", i ? ", " : "", (long long)dims->dims[i]);
  }
  snprintf(out + length, HLO_DIMS_TEXT - length, "%s", after);
  return out;
}

/* ---- values ---- */

hlo_value hlo_get(const hlo *h, ts_value_id id) {
  const ts_value *value = ts_graph_value(h->graph, id);
  return (hlo_value){.name = h->names[id], .element = value->dtype, .shape = *value->shape};
}

hlo_value hlo_operand(const hlo_call *call, uint32_t i) { return hlo_get(call->h, call->op->operands[i]); }

hlo_value hlo_new_value(hlo *h, hlo_element element, const ts_shape *shape) {
  return (hlo_value){.name = {.number = h->next++, .result = -1}, .element = element, .shape = *shape};
}

void hlo_print_use(hlo *h, const hlo_value *value) {
  ts_text_format(h->out, "%%%u", value->name.number);
  if (value->name.result >= 0) ts_text_format(h->out, "#%d", value->name.result);
}

static void print_uses(hlo *h, const hlo_value *values, size_t count) {
  ts_text_append(h->out, "(");
  for (size_t i = 0; i < count; i++) {
    if (i) ts_text_append(h->out, ", ");
    hlo_print_use(h, &values[i]);
  }
  ts_text_append(h->out, ")");
}

void hlo_print_indent(hlo *h) {
  for (int i = 0; i < h->depth; i++) ts_text_append(h->out, "  ");
}

/* ---- ops ---- */

hlo_name hlo_begin(hlo *h, const char *name, size_t results, const hlo_value *operands, size_t count) {
  hlo_name result = {.number = h->next, .result = results == 1 ? -1 : 0};
  hlo_print_indent(h);
  if (results > 0) ts_text_format(h->out, "%%%u", h->next++);
  if (results > 1) ts_text_format(h->out, ":%zu", results);
  if (results > 0) ts_text_append(h->out, " = ");
  ts_text_format(h->out, "\"%s\"", name);
  print_uses(h, operands, count);
  return result;
}

void hlo_end(hlo *h, const hlo_value *operands, size_t count, const hlo_value *results, size_t result_count) {
  ts_text_append(h->out, " : ");
  hlo_print_types(h, operands, count);
  ts_text_append(h->out, " -> ");
  hlo_print_types(h, results, result_count);
  ts_text_append(h->out, "\n");
}

hlo_value hlo_op(hlo *h, const char *name, hlo_element element, const ts_shape *shape, const hlo_value *operands,
                 size_t count) {
  hlo_value result = {.name = hlo_begin(h, name, 1, operands, count), .element = element, .shape = *shape};
  hlo_end(h, operands, count, &result, 1);
  return result;
}

hlo_value hlo_op_with(hlo *h, const char *name, hlo_type type, hlo_values operands, const char *properties, ...) {
  char text[4 * HLO_DIMS_TEXT];
  va_list list;
  hlo_value result = {
      .name = hlo_begin(h, name, 1, operands.data, operands.count), .element = type.element, .shape = *type.shape};
  va_start(list, properties);
  vsnprintf(text, sizeof text, properties, list);
  va_end(list);
  ts_text_format(h->out, " <{%s}>", text);
  hlo_end(h, operands.data, operands.count, &result, 1);
  return result;
}

/* ---- regions ---- */

void hlo_region_begin(hlo *h, bool first, const hlo_value *params, size_t count) {
  ts_text_append(h->out, first ? " ({\n" : ", {\n");
  h->depth++;
  if (count == 0) return;
  hlo_print_indent(h);
  ts_text_append(h->out, "^bb0(");
  for (size_t i = 0; i < count; i++) {
    if (i) ts_text_append(h->out, ", ");
    hlo_print_use(h, &params[i]);
    ts_text_append(h->out, ": ");
    hlo_print_type(h, params[i].element, &params[i].shape);
  }
  ts_text_append(h->out, "):\n");
}

void hlo_region_end(hlo *h, bool last, const hlo_value *results, size_t count) {
  hlo_begin(h, "stablehlo.return", 0, results, count);
  hlo_end(h, results, count, NULL, 0);
  h->depth--;
  hlo_print_indent(h);
  ts_text_append(h->out, last ? "})" : "}");
}
