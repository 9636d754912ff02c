#include "ir/combiner.h"
#include "stablehlo/make.h"

#include <math.h>
#include <string.h>

typedef struct fold_row {
  const char *signature; /* of the region */
  ts_opcode reduce, window, scan, combine;
} fold_row;

static const fold_row folds[] = {
    {"add", TS_OP_REDUCE_SUM, TS_OP_WINDOW_SUM, TS_OP_CUMULATIVE_SUM, TS_OP_ADD},
    {"multiply", TS_OP_REDUCE_PRODUCT, TS_OP_WINDOW_PRODUCT, TS_OP_CUMULATIVE_PRODUCT, TS_OP_MULTIPLY},
    {"maximum", TS_OP_REDUCE_MAX, TS_OP_WINDOW_MAX, TS_OP_CUMULATIVE_MAX, TS_OP_MAX},
    {"minimum", TS_OP_REDUCE_MIN, TS_OP_WINDOW_MIN, TS_OP_CUMULATIVE_MIN, TS_OP_MIN},
    {"and", TS_OP_REDUCE_ALL, TS_OP_COUNT, TS_OP_COUNT, TS_OP_AND},
    {"or", TS_OP_REDUCE_ANY, TS_OP_COUNT, TS_OP_COUNT, TS_OP_OR},
};

/* "add 0 1;return 2;", or with the operands exchanged. */
static bool is_signature(const char *text, const char *name) {
  size_t length = strlen(name);
  if (strncmp(text, name, length) != 0) return false;
  return strcmp(text + length, " 0 1;return 2;") == 0 || strcmp(text + length, " 1 0;return 2;") == 0;
}

static const fold_row *find_fold(const char *signature) {
  for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
    if (is_signature(signature, folds[i].signature)) return &folds[i];
  return NULL;
}

/* Of booleans the greater is `or`, the lesser `and`, and so are sum and product. */
static const fold_row *for_type(const fold_row *fold, bool is_bool) {
  if (!fold) return NULL;
  const bool logical = fold->combine == TS_OP_AND || fold->combine == TS_OP_OR;
  if (!is_bool) return logical ? NULL : fold;
  if (logical) return fold;
  return &folds[fold->combine == TS_OP_MULTIPLY || fold->combine == TS_OP_MIN ? 4 : 5];
}

static ts_status get_signature(const make_call *m, char **out) {
  ts_text text = {0};
  if (m->op->region_count == 0) return make_error(m, TS_INVALID_ARGUMENT, "expected a region");
  ts_status status = make_signature(m, &m->op->regions[0], &text);
  if (!status) return ts_text_finish(&text, out);
  ts_text_deinit(&text);
  return status;
}

ts_status make_find_combine(const make_call *m, bool is_bool, ts_opcode *out) {
  char *signature;
  TS_TRY(get_signature(m, &signature));
  const fold_row *fold = find_fold(signature);
  ts_free(signature);
  if (is_bool) fold = for_type(fold, true);
  *out = fold ? fold->combine : TS_OP_COUNT;
  return TS_SUCCESS;
}

/* JAX broadcasts the initial value of a window, a single element, to no dims. */
static ts_value_id made_of(const make_call *m, ts_value_id value) {
  for (;;) {
    const ts_op *op = make_maker_of(m, value);
    if (!op || (op->code != TS_OP_BROADCAST && op->code != TS_OP_RESHAPE)) return value;
    value = op->operands[0];
  }
}

/* True when the value is the identity of the fold, so that it need not be combined with the result. */
static bool is_identity(const make_call *m, const fold_row *fold, ts_value_id init) {
  ts_scalar value;
  const ts_dtype type = make_value_of(m, init)->dtype;
  init = made_of(m, init);
  if (!ts_graph_is_constant(m->r->graph, init, &value)) return false;
  if (ts_scalar_same(type, value, ts_combiner_identity(ts_combiner_of(fold->reduce), type))) return true;
  return fold->combine == TS_OP_ADD && !ts_dtype_is_complex(type) && ts_scalar_to_f64(type, value) == 0;
}

/* Combines a result with the initial value. */
static ts_status with_init(const make_call *m, const fold_row *fold, ts_value_id init, ts_value_id *inout) {
  if (is_identity(m, fold, init)) return TS_SUCCESS;
  TS_TRY(make_broadcast_to(m, init, make_value_of(m, *inout)->shape, &init));
  return make_binary(m, fold->combine, *inout, init, inout);
}

static ts_status known_reduce(const make_call *m, const fold_row *fold, const ts_dims *axes) {
  ts_attrs attrs = {0};
  ts_value_id id = make_truth_of(m, &m->operands[0], TS_DTYPE_NONE);
  ts_shape_copy(&attrs.axes, axes);
  TS_TRY(make_add(m, fold->reduce, (ts_values){&id, 1}, &attrs, &id)); /* without axes -0 becomes 0 in a sum, too */
  TS_TRY(with_init(m, fold, m->operands[1].id, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- any region of one operand: a fold in row-major order */

static ts_status any_reduce(const make_call *m, const ts_dims *axes) {
  ts_attrs attrs = {0};
  ts_value_id id;
  TS_TRY(make_combine(m, &attrs.reduce.region));
  ts_shape_copy(&attrs.reduce.axes, axes);
  TS_TRY(make_add(m, TS_OP_REDUCE, (ts_values){(ts_value_id[]){m->operands[0].id, m->operands[1].id}, 2}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

/* ---- the largest number and its index, as JAX writes argmax and argmin */

/* Parameters: number and index so far, number and index. A NaN wins, then the lower index. */
#define ARG_FORM(direction)                                                                                           \
  "compare " direction " 0 2;compare NE 0 0;or 4 5;compare EQ 0 2;compare LT 1 3;and 7 8;or 6 9;select 6 0 2;select " \
  "10 1 3;return 11 12;"
/* the same for integers, which have no NaN */
#define ARG_FORM_INTEGER(direction) \
  "compare " direction " 0 2;compare EQ 0 2;compare LT 1 3;and 5 6;or 4 7;select 4 0 2;select 8 1 3;return 9 10;"
/* Tessera's own printer; of equal numbers the lower or the higher index */
#define ARG_FORM_OWN(direction, nearer)                                                                        \
  "compare " direction " 0 2;compare EQ 0 2;compare NE 0 0;compare EQ 2 2;and 6 7;or 4 8;not 7;and 6 10;or 5 " \
  "11;compare " nearer " 1 3;and 12 13;or 9 14;select 15 0 2;select 15 1 3;return 16 17;"
#define ARG_FORM_OWN_INTEGER(direction, nearer)                                                               \
  "compare " direction " 0 2;compare EQ 0 2;compare " nearer " 1 3;and 5 6;or 4 7;select 8 0 2;select 8 1 3;" \
  "return 9 10;"

typedef struct arg_form {
  const char *signature;
  ts_opcode code;
  bool high;     /* of equal numbers the one with the greater index */
  bool integers; /* for integers only: of floats the region passes over a NaN, which argmin and argmax find */
} arg_form;

static const arg_form arg_forms[] = {
    {ARG_FORM("LT"), TS_OP_ARGMIN, false, false},
    {ARG_FORM("GT"), TS_OP_ARGMAX, false, false},
    {ARG_FORM_INTEGER("LT"), TS_OP_ARGMIN, false, true},
    {ARG_FORM_INTEGER("GT"), TS_OP_ARGMAX, false, true},
    {ARG_FORM_OWN("LT", "LT"), TS_OP_ARGMIN, false, false},
    {ARG_FORM_OWN("GT", "LT"), TS_OP_ARGMAX, false, false},
    {ARG_FORM_OWN("LT", "GT"), TS_OP_ARGMIN, true, false},
    {ARG_FORM_OWN("GT", "GT"), TS_OP_ARGMAX, true, false},
    {ARG_FORM_OWN_INTEGER("LT", "LT"), TS_OP_ARGMIN, false, true},
    {ARG_FORM_OWN_INTEGER("GT", "LT"), TS_OP_ARGMAX, false, true},
    {ARG_FORM_OWN_INTEGER("LT", "GT"), TS_OP_ARGMIN, true, true},
    {ARG_FORM_OWN_INTEGER("GT", "GT"), TS_OP_ARGMAX, true, true},
};

/* NULL for another region. */
static const arg_form *find_arg_form(const char *signature, ts_dtype type) {
  for (size_t i = 0; i < sizeof arg_forms / sizeof *arg_forms; i++)
    if (strcmp(signature, arg_forms[i].signature) == 0)
      return arg_forms[i].integers && !ts_dtype_is_integer(type) ? NULL : &arg_forms[i];
  return NULL;
}

static ts_opcode fold_of(const arg_form *form) {
  return ts_arg_takes_largest(form->code) ? TS_OP_REDUCE_MAX : TS_OP_REDUCE_MIN;
}

/* Whether the initial pair loses to every element, or is the first one that a tie prefers. */
static bool loses(const make_call *m, const arg_form *form, int64_t extent) {
  const ts_dtype type = make_operand_of(m, 2)->dtype, index_type = make_operand_of(m, 3)->dtype;
  ts_scalar worst, index;
  if (!ts_graph_is_constant(m->r->graph, made_of(m, m->operands[2].id), &worst) ||
      !ts_graph_is_constant(m->r->graph, made_of(m, m->operands[3].id), &index))
    return false;
  const int64_t at = ts_scalar_to_s64(index_type, index);
  if (!ts_scalar_same(type, worst, ts_combiner_identity(ts_combiner_of(fold_of(form)), type))) return false;
  return form->high ? at <= 0 : at == 0 || at >= extent;
}

/* Numbers and their positions along the axis, and an initial pair of the same types. */
static bool has_arg_operands(const make_call *m, const ts_dims *axes) {
  if (m->op->operand_count != 4 || m->op->types.count != 2 || axes->rank != 1) return false;
  const ts_value *x = make_operand_of(m, 0), *places = make_operand_of(m, 1);
  if (!make_is_places(m, 1, axes->dims[0])) return false;
  return ts_shape_equal(x->shape, places->shape) && !ts_dtype_is_complex(x->dtype) &&
         ts_dtype_is_integer(places->dtype) && make_operand_of(m, 2)->dtype == x->dtype &&
         make_operand_of(m, 3)->dtype == places->dtype;
}

static ts_status arg_reduce(const make_call *m, const arg_form *form, const ts_dims *axes) {
  ts_attrs attrs = {0};
  ts_value_id id, x = m->operands[0].id;
  attrs.arg.axis = (int32_t)axes->dims[0];
  attrs.arg.dtype = m->op->types.data[1].dtype;
  attrs.arg.high = form->high;
  TS_TRY(make_add(m, form->code, (ts_values){&x, 1}, &attrs, &id));
  make_result(m, 1, id);
  attrs = (ts_attrs){0};
  ts_shape_copy(&attrs.axes, axes);
  TS_TRY(make_add(m, fold_of(form), (ts_values){&x, 1}, &attrs, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status reduce(const make_call *m, const char *signature) {
  ts_dims axes;
  TS_TRY(make_attr_ints(m, "dimensions", &axes));
  const arg_form *form = has_arg_operands(m, &axes) ? find_arg_form(signature, make_operand_of(m, 0)->dtype) : NULL;
  if (form && loses(m, form, make_operand_of(m, 0)->shape->dims[axes.dims[0]])) return arg_reduce(m, form, &axes);
  if (m->op->operand_count != 2) return make_any_reduce(m, &axes);
  TS_TRY(make_count_operands(m, 2));
  const fold_row *fold = for_type(find_fold(signature), m->operands[0].is_bool);
  return fold ? known_reduce(m, fold, &axes) : any_reduce(m, &axes);
}

/* Calls a function with the signature of the region. */
static ts_status with_signature(const make_call *m, ts_status (*make)(const make_call *m, const char *signature)) {
  char *signature;
  TS_TRY(get_signature(m, &signature));
  ts_status status = make(m, signature ? signature : "");
  ts_free(signature);
  return status;
}

ts_status make_in_reduce(const make_call *m) { return with_signature(m, reduce); }

/* ---- windows */

/* A window as long as one axis, which begins before it or ends after it: a scan. */
static bool is_scan(const ts_attrs *a, const ts_shape *shape, ts_attrs *out) {
  int32_t axis = -1;
  for (int32_t d = 0; d < shape->rank; d++) {
    if (a->window.strides.dims[d] != 1 || a->window.dilation.dims[d] != 1) return false;
    if (a->window.sizes.dims[d] == 1 && a->window.low.dims[d] == 0 && a->window.high.dims[d] == 0) continue;
    if (axis >= 0 || a->window.sizes.dims[d] != shape->dims[d]) return false;
    axis = d;
  }
  if (axis < 0) return false;
  const int64_t before = shape->dims[axis] - 1;
  const bool forward = a->window.low.dims[axis] == before && a->window.high.dims[axis] == 0;
  const bool backward = a->window.high.dims[axis] == before && a->window.low.dims[axis] == 0;
  *out = (ts_attrs){0};
  out->scan.axis = axis;
  out->scan.reverse = !forward;
  return forward || backward;
}

static ts_status read_window(const make_call *m, int32_t rank, make_window *out) {
  ts_dims padding[2];
  TS_TRY(make_ints_or(make_attr(m, "window_dimensions"), rank, 1, &out->sizes));
  TS_TRY(make_ints_or(make_attr(m, "window_strides"), rank, 1, &out->strides));
  TS_TRY(make_ints_or(make_attr(m, "window_dilations"), rank, 1, &out->dilation));
  TS_TRY(make_ints_or(make_attr(m, "base_dilations"), rank, 1, &out->base));
  TS_TRY(make_attr_padding(make_attr(m, "padding"), rank, padding));
  ts_shape_copy(&out->low, &padding[0]);
  ts_shape_copy(&out->high, &padding[1]);
  for (int32_t d = 0; d < rank; d++)
    if (out->base.dims[d] < 1 || out->sizes.dims[d] < 1 || out->strides.dims[d] < 1 || out->dilation.dims[d] < 1)
      return make_error(m, TS_INVALID_ARGUMENT, "its windows are empty, or do not move");
  return TS_SUCCESS;
}

static void window_attrs(const make_window *w, ts_attrs *out) {
  ts_shape_copy(&out->window.sizes, &w->sizes);
  ts_shape_copy(&out->window.strides, &w->strides);
  ts_shape_copy(&out->window.dilation, &w->dilation);
  ts_shape_copy(&out->window.low, &w->low);
  ts_shape_copy(&out->window.high, &w->high);
}

static bool is_dilated(const ts_dims *base) {
  for (int32_t d = 0; d < base->rank; d++)
    if (base->dims[d] != 1) return true;
  return false;
}

ts_status make_pad_window(const make_call *m, ts_value_id init, const make_window *w, ts_value_id *x) {
  ts_attrs pad = {0};
  bool is_padded = is_dilated(&w->base);
  ts_shape_copy(&pad.pad.low, &w->low);
  ts_shape_copy(&pad.pad.high, &w->high);
  pad.pad.interior.rank = w->base.rank;
  for (int32_t d = 0; d < w->base.rank; d++) {
    pad.pad.interior.dims[d] = w->base.dims[d] - 1;
    is_padded = is_padded || w->low.dims[d] || w->high.dims[d];
  }
  return is_padded ? make_add(m, TS_OP_PAD, (ts_values){(ts_value_id[]){*x, init}, 2}, &pad, x) : TS_SUCCESS;
}

static ts_status known_window(const make_call *m, const fold_row *fold, make_window *w) {
  ts_attrs attrs = {0}, scan;
  ts_value_id id = m->operands[0].id;
  if (is_dilated(&w->base) || !is_identity(m, fold, m->operands[1].id)) {
    TS_TRY(make_pad_window(m, m->operands[1].id, w, &id));
    for (int32_t d = 0; d < w->low.rank; d++) w->low.dims[d] = w->high.dims[d] = 0;
  }
  window_attrs(w, &attrs);
  if (is_scan(&attrs, make_value_of(m, id)->shape, &scan))
    TS_TRY(make_add(m, fold->scan, (ts_values){&id, 1}, &scan, &id));
  else
    TS_TRY(make_add(m, fold->window, (ts_values){&id, 1}, &attrs, &id));
  TS_TRY(with_init(m, fold, m->operands[1].id, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

static ts_status window(const make_call *m, const char *signature) {
  make_window w;
  if (m->op->operand_count < 2) return make_count_operands(m, 2);
  TS_TRY(read_window(m, make_operand_of(m, 0)->shape->rank, &w));
  const fold_row *fold = for_type(find_fold(signature), m->operands[0].is_bool);
  if (!fold || fold->window == TS_OP_COUNT || m->op->operand_count != 2) return make_any_window(m, &w);
  TS_TRY(make_count_operands(m, 2));
  return known_window(m, fold, &w);
}

ts_status make_in_window(const make_call *m) { return with_signature(m, window); }

/* ---- select_and_scatter, the gradient of a window's maximum */

static ts_status reversed(const make_call *m, ts_value_id *inout) {
  ts_attrs attrs = {0};
  attrs.axes.rank = make_value_of(m, *inout)->shape->rank;
  for (int32_t d = 0; d < attrs.axes.rank; d++) attrs.axes.dims[d] = d;
  return make_add(m, TS_OP_REVERSE, (ts_values){inout, 1}, &attrs, inout);
}

/* Tessera selects the last of equals, and GE and LE keep the first: without NaN that is the last in reverse. What
 * windows leave at the end of a dim is at its begin then. A dim shorter than its window stays so: it has no windows. */
static ts_status reverse_window(const make_call *m, ts_attrs *a, const ts_shape *shape) {
  for (int32_t d = 0; d < shape->rank; d++) {
    const int64_t low = a->window.low.dims[d], high = a->window.high.dims[d];
    int64_t whole, last;
    if (!ts_add_i64(low, shape->dims[d], &whole) || !ts_add_i64(whole, high, &whole) ||
        !ts_add_i64(whole, -a->window.sizes.dims[d], &last) ||
        !ts_add_i64(high, last < 0 ? 0 : -(last % a->window.strides.dims[d]), &a->window.low.dims[d]))
      return make_error(m, TS_INVALID_ARGUMENT, "the padded size of dimension %d does not fit in 64 bits", d);
    a->window.high.dims[d] = low;
  }
  return TS_SUCCESS;
}

typedef struct selection {
  ts_opcode code;
  ts_attrs forward, backward; /* of the windows as they are, and of those in reverse */
} selection;

typedef ts_status (*select_fn)(const make_call *m, const selection *s, ts_value_id *operands, ts_value_id *out);

static ts_status select_last(const make_call *m, const selection *s, ts_value_id *operands, ts_value_id *out) {
  return make_add(m, s->code, (ts_values){operands, 3}, &s->forward, out);
}

static ts_status select_first(const make_call *m, const selection *s, ts_value_id *operands, ts_value_id *out) {
  for (size_t i = 0; i < 2; i++) TS_TRY(reversed(m, &operands[i]));
  TS_TRY(make_add(m, s->code, (ts_values){operands, 3}, &s->backward, out));
  return reversed(m, out);
}

/* The places of all elements in their order, without equals: of equal ones the first comes first. NaN stays NaN. */
static ts_status find_ranks(const make_call *m, ts_opcode code, ts_value_id x, ts_value_id *out) {
  ts_attrs sort = {0};
  ts_value_id ranks, test, nan;
  const ts_shape *shape = make_value_of(m, x)->shape, flat = {.rank = 1, .dims = {ts_shape_elements(shape)}};
  TS_TRY(make_unary(m, TS_OP_IS_NAN, x, &test));
  TS_TRY(make_reshape(m, x, &flat, &ranks));
  sort.argsort.dtype = TS_S64;
  for (int i = 0; i < 2; i++) {
    sort.argsort.descending = i == 0 && code == TS_OP_WINDOW_SCATTER_MAX;
    TS_TRY(make_add(m, TS_OP_ARGSORT, (ts_values){&ranks, 1}, &sort, &ranks));
  }
  TS_TRY(make_convert(m, ranks, TS_F64, &ranks));
  TS_TRY(make_reshape(m, ranks, make_value_of(m, x)->shape, &ranks));
  TS_TRY(make_number(m, ranks, NAN, &nan));
  return make_select(m, test, nan, ranks, out);
}

/* The first of equals, where any element may be NaN: what follows a NaN replaces it, so the elements of a window behind
 * its last NaN decide. The op has this of NaN but the last of equals. */
static ts_status select_first_of_nan(const make_call *m, const selection *s, ts_value_id *operands, ts_value_id *out) {
  const ts_dtype type = make_value_of(m, operands[0])->dtype;
  TS_TRY(find_ranks(m, s->code, operands[0], &operands[0]));
  for (size_t i = 1; i < 3; i++) TS_TRY(make_convert(m, operands[i], TS_F64, &operands[i]));
  TS_TRY(make_add(m, TS_OP_WINDOW_SCATTER_MIN, (ts_values){operands, 3}, &s->forward, out));
  return make_convert(m, *out, type, out);
}

static ts_status select_in_region(const make_call *m, const selection *s, select_fn make, const ts_value_id *operands,
                                  ts_region_id *out) {
  make_call inner = *m;
  ts_value_id params[3], id;
  TS_TRY(ts_graph_add_region(m->r->graph, out));
  inner.region = *out;
  for (size_t i = 0; i < 3; i++) {
    const ts_value like = *make_value_of(m, operands[i]);
    TS_TRY(ts_graph_add_param(m->r->graph, *out, like.dtype, like.shape, &params[i]));
  }
  TS_TRY(make(&inner, s, params, &id));
  return ts_graph_set_results(m->r->graph, *out, &id, 1);
}

/* Ranks need a sort, so they are for operands with a NaN alone. */
static ts_status select_first_of_floats(const make_call *m, const selection *s, const ts_value_id *operands,
                                        ts_value_id *out) {
  ts_attrs any = {0}, cond = {0};
  ts_value_id inputs[4] = {TS_NO_ID, operands[0], operands[1], operands[2]};
  any.axes.rank = make_value_of(m, operands[0])->shape->rank;
  for (int32_t d = 0; d < any.axes.rank; d++) any.axes.dims[d] = d;
  TS_TRY(make_unary(m, TS_OP_IS_NAN, operands[0], &inputs[0]));
  TS_TRY(make_add(m, TS_OP_REDUCE_ANY, (ts_values){inputs, 1}, &any, &inputs[0]));
  TS_TRY(select_in_region(m, s, select_first_of_nan, operands, &cond.regions.regions[0]));
  TS_TRY(select_in_region(m, s, select_first, operands, &cond.regions.regions[1]));
  return make_add(m, TS_OP_COND, (ts_values){inputs, 4}, &cond, out);
}

static ts_status select_scatter(const make_call *m, const char *select, const char *scatter) {
  const bool keeps_first =
      strcmp(select, "compare GE 0 1;return 2;") == 0 || strcmp(select, "compare LE 0 1;return 2;") == 0;
  const bool keeps_last =
      strcmp(select, "compare GT 0 1;return 2;") == 0 || strcmp(select, "compare LT 0 1;return 2;") == 0;
  selection s = {.code = select[8] == 'G' ? TS_OP_WINDOW_SCATTER_MAX : TS_OP_WINDOW_SCATTER_MIN};
  ts_value_id operands[3], id;
  const bool is_bool = m->operands[0].is_bool;
  if ((!keeps_first && !keeps_last) || !(is_signature(scatter, "add") || (is_bool && is_signature(scatter, "or"))))
    return make_error(m, TS_UNIMPLEMENTED, "it is known of comparisons, and of sums");
  const ts_shape *shape = make_operand_of(m, 0)->shape;
  make_window w;
  TS_TRY(read_window(m, shape->rank, &w));
  if (is_dilated(&w.base)) return make_error(m, TS_INVALID_ARGUMENT, "its windows have no dilated operand");
  window_attrs(&w, &s.forward);
  s.backward = s.forward;
  if (keeps_first) TS_TRY(reverse_window(m, &s.backward, shape));
  for (size_t i = 0; i < 3; i++) /* booleans are counted */
    TS_TRY(make_convert(m, m->operands[i].id, is_bool ? TS_S32 : make_operand_of(m, i)->dtype, &operands[i]));
  if (keeps_first && ts_dtype_is_float(make_operand_of(m, 0)->dtype))
    TS_TRY(select_first_of_floats(m, &s, operands, &id));
  else
    TS_TRY((keeps_first ? select_first : select_last)(m, &s, operands, &id));
  if (is_bool) TS_TRY(make_with_integer(m, TS_OP_NOT_EQUAL, id, 0, &id));
  make_result(m, 0, id);
  return TS_SUCCESS;
}

ts_status make_in_select_scatter(const make_call *m) {
  ts_text texts[2] = {{0}};
  ts_status status = make_count_operands(m, 3);
  if (!status && m->op->region_count != 2) status = make_error(m, TS_INVALID_ARGUMENT, "expected two regions");
  for (size_t i = 0; i < 2 && !status; i++) status = make_signature(m, &m->op->regions[i], &texts[i]);
  if (!status && texts[0].length > 8 && texts[1].length)
    status = select_scatter(m, texts[0].data, texts[1].data);
  else if (!status)
    status = make_error(m, TS_UNIMPLEMENTED, "its regions are not known");
  for (size_t i = 0; i < 2; i++) ts_text_deinit(&texts[i]);
  return status;
}
