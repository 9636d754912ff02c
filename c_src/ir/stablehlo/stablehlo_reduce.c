#include "ir/combiner.h"
#include "ir/stablehlo/stablehlo_internal.h"

static hlo_element accumulator(hlo_element element) {
  return element == HLO_I1 ? element : (hlo_element)ts_dtype_accumulator((ts_dtype)element);
}

/* ---- folds by a known op ---- */

typedef struct fold {
  const char *op;
  ts_scalar identity; /* of `element` */
  hlo_element element;
} fold;

static const char *const combine_names[] = {
    [TS_COMBINE_SUM] = "stablehlo.add",     [TS_COMBINE_PRODUCT] = "stablehlo.multiply",
    [TS_COMBINE_MAX] = "stablehlo.maximum", [TS_COMBINE_MIN] = "stablehlo.minimum",
    [TS_COMBINE_ALL] = "stablehlo.and",     [TS_COMBINE_ANY] = "stablehlo.or"};

/* The identity is that of the op's type, which may have no infinity: without elements it is the result. */
static fold get_fold(const hlo_call *call, hlo_element element) {
  const ts_combiner *combiner = ts_combiner_of(call->op->code);
  ts_dtype type = element == HLO_I1 ? TS_U8 : (ts_dtype)element;
  ts_dtype own = element == HLO_I1 ? TS_U8 : (ts_dtype)call->element;
  ts_scalar start = ts_scalar_convert(own, ts_combiner_identity(combiner, own), type);
  return (fold){combine_names[combiner->kind], start, element};
}

static hlo_value identity(hlo *h, const fold *f) {
  if (f->element != HLO_I1) return hlo_constant(h, (ts_dtype)f->element, &ts_shape_scalar, f->identity);
  return hlo_bool(h, f->identity.bits != 0);
}

static void print_combine(hlo *h, const fold *f) {
  hlo_value params[2];
  for (int i = 0; i < 2; i++) params[i] = hlo_new_value(h, f->element, &ts_shape_scalar);
  hlo_region_begin(h, true, params, 2);
  hlo_value result = hlo_binary(h, f->op, params[0], params[1]);
  hlo_region_end(h, true, &result, 1);
}

static void print_dimensions(hlo *h, const ts_dims *axes) {
  ts_text_format(h->out, " <{dimensions = %s}>", HLO_ARRAY(axes));
}

static hlo_value known_reduce(const hlo_call *call) {
  hlo *h = call->h;
  const ts_combiner *combiner = ts_combiner_of(call->op->code);
  hlo_value x = hlo_operand(call, 0);
  x = combiner->logical ? hlo_truth(h, x) : hlo_convert(h, x, accumulator(x.element));
  fold f = get_fold(call, x.element);
  hlo_value operands[] = {x, identity(h, &f)}, result = {.element = x.element, .shape = *call->shape};
  result.name = hlo_begin(h, "stablehlo.reduce", 1, operands, 2);
  print_dimensions(h, &call->op->attrs->axes);
  print_combine(h, &f);
  hlo_end(h, operands, 2, &result, 1);
  return hlo_convert(h, result, call->element);
}

/* StableHLO may fold in any order and leave out the initial value, while Tessera folds from the left and starts with
 * it: equal where the region is associative and the initial value is its identity. */
static ts_status region_reduce(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, 1)};
  *out = (hlo_value){.element = call->element, .shape = *call->shape};
  out->name = hlo_begin(h, "stablehlo.reduce", 1, operands, 2);
  print_dimensions(h, &call->op->attrs->reduce.axes);
  TS_TRY(h->print_region(h, call->op->attrs->reduce.region, true, true, false));
  hlo_end(h, operands, 2, out, 1);
  return TS_SUCCESS;
}

ts_status hlo_reduce(const hlo_call *call, hlo_value *out) {
  if (call->op->code == TS_OP_REDUCE) return region_reduce(call, out);
  if (!ts_combiner_of(call->op->code)) return hlo_no_form(call);
  *out = known_reduce(call);
  return TS_SUCCESS;
}

/* ---- argmax and argmin: a fold of pairs of value and index ---- */

/* Whether x replaces y: it is better, or equal and closer to the preferred end. A NaN is better than any number. */
static hlo_value replaces(const hlo_call *call, const hlo_value x[2], const hlo_value y[2]) {
  hlo *h = call->h;
  hlo_value better = hlo_compare(h, ts_arg_takes_largest(call->op->code) ? "GT" : "LT", x[0], y[0]);
  hlo_value equal = hlo_compare(h, "EQ", x[0], y[0]);
  if (ts_dtype_is_float((ts_dtype)x[0].element)) {
    hlo_value x_nan = hlo_compare(h, "NE", x[0], x[0]), y_number = hlo_compare(h, "EQ", y[0], y[0]);
    better = hlo_binary(h, "stablehlo.or", better, hlo_binary(h, "stablehlo.and", x_nan, y_number));
    hlo_value two_nans = hlo_binary(h, "stablehlo.and", x_nan, hlo_unary(h, "stablehlo.not", y_number));
    equal = hlo_binary(h, "stablehlo.or", equal, two_nans);
  }
  hlo_value nearer = hlo_compare(h, call->op->attrs->arg.high ? "GT" : "LT", x[1], y[1]);
  return hlo_binary(h, "stablehlo.or", better, hlo_binary(h, "stablehlo.and", equal, nearer));
}

static void print_choice(const hlo_call *call, hlo_element element) {
  hlo *h = call->h;
  hlo_value params[4], results[2];
  for (int i = 0; i < 4; i++) params[i] = hlo_new_value(h, i % 2 ? (hlo_element)TS_S64 : element, &ts_shape_scalar);
  hlo_region_begin(h, true, params, 4);
  hlo_value first = replaces(call, params, params + 2);
  for (int i = 0; i < 2; i++) {
    hlo_value operands[] = {first, params[i], params[2 + i]};
    results[i] = hlo_op(h, "stablehlo.select", params[i].element, &ts_shape_scalar, operands, 3);
  }
  hlo_region_end(h, true, results, 2);
}

/* The initial pair loses to every element: the worst value, at an index past the other end. Without elements the result
 * is 0. */
ts_status hlo_arg_reduce(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  hlo_value x = hlo_operand(call, 0);
  int32_t axis = call->op->attrs->arg.axis;
  ts_shape flat = {.rank = 1, .dims = {ts_shape_elements(&x.shape)}};
  if (axis < 0) x = hlo_reshape(h, x, &flat);
  ts_dims axes = {.rank = 1, .dims = {axis < 0 ? 0 : axis}};
  ts_dtype type = (ts_dtype)x.element;
  hlo_value index = hlo_iota(h, TS_S64, &x.shape, (int32_t)axes.dims[0]);
  int64_t extent = x.shape.dims[axes.dims[0]];
  ts_scalar worst = ts_arg_takes_largest(call->op->code) ? ts_dtype_lowest(type) : ts_dtype_highest(type);
  hlo_value operands[] = {
      x,
      index,
      hlo_constant(h, type, &ts_shape_scalar, worst),
      hlo_integer(h, TS_S64, &ts_shape_scalar, call->op->attrs->arg.high && extent ? -1 : extent),
  };
  hlo_value results[] = {{.element = x.element, .shape = *call->shape}, {.element = TS_S64, .shape = *call->shape}};
  hlo_name_results(hlo_begin(h, "stablehlo.reduce", 2, operands, 4), results, 2);
  print_dimensions(h, &axes);
  print_choice(call, x.element);
  hlo_end(h, operands, 4, results, 2);
  *out = hlo_convert(h, results[1], call->element);
  return TS_SUCCESS;
}

/* ---- cumulative: a window as long as the axis, that begins before it ---- */

static void print_window(hlo *h, const ts_shape *shape, int32_t axis, bool reverse) {
  ts_dims window = {.rank = shape->rank};
  long long before = (long long)shape->dims[axis] - 1;
  for (int32_t d = 0; d < shape->rank; d++) window.dims[d] = d == axis ? shape->dims[d] : 1;
  ts_text_format(h->out, " <{window_dimensions = %s, padding = dense<[", HLO_ARRAY(&window));
  for (int32_t d = 0; d < shape->rank; d++) {
    long long low = d == axis && !reverse ? before : 0, high = d == axis && reverse ? before : 0;
    ts_text_format(h->out, "%s[%lld, %lld]", d ? ", " : "", low, high);
  }
  ts_text_format(h->out, "]> : tensor<%dx2xi64>}>", shape->rank);
}

ts_status hlo_scan(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  hlo_value x = hlo_operand(call, 0);
  if (!ts_combiner_of(call->op->code)) return hlo_no_form(call);
  *out = x;
  if (ts_shape_elements(&x.shape) == 0) return TS_SUCCESS;
  x = hlo_convert(h, x, accumulator(x.element));
  fold f = get_fold(call, x.element);
  /* No window is empty, and readers know a scan by the identity of the wider type. */
  if (f.element != HLO_I1) f.identity = ts_combiner_identity(ts_combiner_of(call->op->code), (ts_dtype)f.element);
  hlo_value operands[] = {x, identity(h, &f)}, result = {.element = x.element, .shape = *call->shape};
  result.name = hlo_begin(h, "stablehlo.reduce_window", 1, operands, 2);
  print_window(h, &x.shape, call->op->attrs->scan.axis, call->op->attrs->scan.reverse);
  print_combine(h, &f);
  hlo_end(h, operands, 2, &result, 1);
  *out = hlo_convert(h, result, call->element);
  return TS_SUCCESS;
}

/* ---- windows ---- */

static void print_padding(hlo *h, const ts_attrs *a) {
  ts_text_append(h->out, "padding = dense<");
  for (int32_t d = 0; d < a->window.low.rank; d++)
    ts_text_format(h->out, "%s[%lld, %lld]", d ? ", " : "[", (long long)a->window.low.dims[d],
                   (long long)a->window.high.dims[d]);
  ts_text_format(h->out, "%s> : tensor<%dx2xi64>", a->window.low.rank ? "]" : "", a->window.low.rank);
}

static void print_windows(hlo *h, const ts_attrs *a, bool dilated) {
  ts_text_format(h->out, " <{window_dimensions = %s, window_strides = %s, ", HLO_ARRAY(&a->window.sizes),
                 HLO_ARRAY(&a->window.strides));
  if (dilated) ts_text_format(h->out, "window_dilations = %s, ", HLO_ARRAY(&a->window.dilation));
  print_padding(h, a);
  ts_text_append(h->out, "}>");
}

static void window_fold(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  hlo_value x = hlo_operand(call, 0);
  x = hlo_convert(h, x, accumulator(x.element));
  fold f = get_fold(call, x.element);
  hlo_value operands[] = {x, identity(h, &f)}, result = {.element = x.element, .shape = *call->shape};
  result.name = hlo_begin(h, "stablehlo.reduce_window", 1, operands, 2);
  print_windows(h, call->op->attrs, true);
  print_combine(h, &f);
  hlo_end(h, operands, 2, &result, 1);
  *out = hlo_convert(h, result, call->element);
}

/* The selected element is the first operand: XLA replaces it where this is false. */
static void print_select(const hlo_call *call) {
  hlo *h = call->h;
  hlo_value params[2];
  for (int i = 0; i < 2; i++) params[i] = hlo_new_value(h, call->element, &ts_shape_scalar);
  hlo_region_begin(h, true, params, 2);
  hlo_value result = hlo_compare(h, call->op->code == TS_OP_WINDOW_SCATTER_MAX ? "GT" : "LT", params[0], params[1]);
  hlo_region_end(h, false, &result, 1);
}

static void print_add(const hlo_call *call) {
  hlo *h = call->h;
  hlo_value params[2];
  for (int i = 0; i < 2; i++) params[i] = hlo_new_value(h, call->element, &ts_shape_scalar);
  hlo_region_begin(h, false, params, 2);
  hlo_value result = hlo_binary(h, "stablehlo.add", params[0], params[1]);
  hlo_region_end(h, true, &result, 1);
}

/* The one window of a scalar selects it. XLA ends the process at a select_and_scatter of scalars. */
static void window_scatter(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  hlo_value operands[] = {hlo_operand(call, 0), hlo_operand(call, 1), hlo_operand(call, 2)};
  if (call->shape->rank == 0) {
    *out = hlo_binary(h, "stablehlo.add", operands[2], operands[1]);
    return;
  }
  *out = (hlo_value){.element = call->element, .shape = *call->shape};
  out->name = hlo_begin(h, "stablehlo.select_and_scatter", 1, operands, 3);
  print_windows(h, call->op->attrs, false);
  print_select(call);
  print_add(call);
  hlo_end(h, operands, 3, out, 1);
}

ts_status hlo_window(const hlo_call *call, hlo_value *out) {
  switch ((ts_ops_WINDOW)call->op->code) {
  case TS_OP_WINDOW_SUM:
  case TS_OP_WINDOW_PRODUCT:
  case TS_OP_WINDOW_MAX:
  case TS_OP_WINDOW_MIN: window_fold(call, out); return TS_SUCCESS;
  case TS_OP_WINDOW_SCATTER_MAX:
  case TS_OP_WINDOW_SCATTER_MIN: window_scatter(call, out); return TS_SUCCESS;
  }
  return hlo_no_form(call);
}

/* ---- contraction ---- */

/* The operand of scaled_dot_general that is multiplied by the scale. */
static hlo_value scaled(const hlo_call *call, hlo_value x) {
  const hlo_value scale = hlo_operand(call, 2);
  const hlo_value wide =
      hlo_op_with(call->h, "stablehlo.broadcast_in_dim", (hlo_type){x.element, &x.shape}, (hlo_values){&scale, 1},
                  "broadcast_dimensions = %s", HLO_ARRAY(&call->op->attrs->scaled_dot.axes));
  return hlo_binary(call->h, "stablehlo.multiply", x, wide);
}

/* f32 holds the products of such floats, so the operands need no conversion. Accelerators have a fast form for them. */
static bool is_half(hlo_element element) { return element == TS_BF16 || element == TS_F16; }

hlo_element hlo_product_type(const hlo_call *call) {
  return call->h->rounds_products && is_half(call->element) ? call->element : accumulator(call->element);
}

/* Devices multiply bf16 as it is by any precision. With DEFAULT none makes several passes of it. */
const char *hlo_precision(const hlo *h, hlo_element operands) {
  static const char *const names[] = {
      [TS_STABLEHLO_HIGHEST] = "HIGHEST", [TS_STABLEHLO_HIGH] = "HIGH", [TS_STABLEHLO_DEFAULT] = "DEFAULT"};
  return names[h->rounds_products && operands == TS_BF16 ? TS_STABLEHLO_DEFAULT : h->precision];
}

ts_status hlo_dot(const hlo_call *call, hlo_value *out) {
  const ts_attrs *attrs = call->op->attrs;
  hlo *h = call->h;
  const hlo_element element = hlo_product_type(call);
  hlo_value operands[2];
  for (uint32_t i = 0; i < 2; i++) {
    hlo_value wide = hlo_convert(h, hlo_operand(call, i), call->element); /* of wide_dot_general */
    if (call->op->code == TS_OP_SCALED_DOT && attrs->scaled_dot.operand == (int32_t)i) wide = scaled(call, wide);
    operands[i] = is_half(call->element) ? wide : hlo_convert(h, wide, element);
  }
  const char *precision = hlo_precision(h, operands[0].element);
  *out =
      hlo_op_with(h, "stablehlo.dot_general", (hlo_type){element, call->shape}, (hlo_values){operands, 2},
                  "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = %s, rhs_batching_dimensions = %s, "
                  "lhs_contracting_dimensions = %s, rhs_contracting_dimensions = %s>, "
                  "precision_config = [#stablehlo<precision %s>, #stablehlo<precision %s>]",
                  HLO_LIST(&attrs->dot.lhs_batch), HLO_LIST(&attrs->dot.rhs_batch), HLO_LIST(&attrs->dot.lhs_contract),
                  HLO_LIST(&attrs->dot.rhs_contract), precision, precision);
  *out = hlo_convert(h, *out, call->element);
  return TS_SUCCESS;
}

/* "[b, 0, 1, f]": batch, spatial dims, features; of a kernel the spatial dims come first. */
static void print_layout(hlo *h, const char *first, const char *last, int32_t spatial) {
  ts_text_format(h->out, "[%s", first);
  for (int32_t d = 0; d < spatial; d++) ts_text_format(h->out, "%s%d", d || *first ? ", " : "", d);
  ts_text_format(h->out, "%s%s]", spatial || *first ? ", " : "", last);
}

static void print_conv(const hlo_call *call, int32_t spatial) {
  const ts_attrs *a = call->op->attrs;
  hlo *h = call->h;
  const char *precision = hlo_precision(h, hlo_product_type(call));
  ts_text_append(h->out, " <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<");
  print_layout(h, "b", "f", spatial);
  ts_text_append(h->out, "x");
  print_layout(h, "", "i, o", spatial);
  ts_text_append(h->out, "->");
  print_layout(h, "b", "f", spatial);
  ts_text_format(h->out, ">, feature_group_count = %d : i64, lhs_dilation = %s, padding = dense<", a->conv.groups,
                 HLO_ARRAY(&a->conv.input_dilation));
  for (int32_t d = 0; d < spatial; d++)
    ts_text_format(h->out, "%s[%lld, %lld]", d ? ", " : "[", (long long)a->conv.low.dims[d],
                   (long long)a->conv.high.dims[d]);
  ts_text_format(h->out,
                 "%s> : tensor<%dx2xi64>, precision_config = [#stablehlo<precision %s>, #stablehlo<precision "
                 "%s>], rhs_dilation = %s, window_strides = %s}>",
                 spatial ? "]" : "", spatial, precision, precision, HLO_ARRAY(&a->conv.kernel_dilation),
                 HLO_ARRAY(&a->conv.strides));
}

ts_status hlo_conv(const hlo_call *call, hlo_value *out) {
  hlo *h = call->h;
  const hlo_element element = hlo_product_type(call);
  hlo_value operands[2], result = {.element = element, .shape = *call->shape};
  for (uint32_t i = 0; i < 2; i++) operands[i] = hlo_convert(h, hlo_operand(call, i), element);
  result.name = hlo_begin(h, "stablehlo.convolution", 1, operands, 2);
  print_conv(call, call->shape->rank - 2);
  hlo_end(h, operands, 2, &result, 1);
  *out = hlo_convert(h, result, call->element);
  return TS_SUCCESS;
}
