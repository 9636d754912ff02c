/* Ops whose shapes or positions are operands: when these are known while the program is read, each is the op that has
 * them as attributes. With them the check of sizes that JAX's exports have. */
#include "stablehlo/make.h"

#include "ir/syntax.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The op that is made in place of another one: its attributes and its result's type are its own. */
typedef struct stand_in {
  mlir_op op;
  mlir_attr attrs[6];
  mlir_type type;
} stand_in;

static mlir_token word(const make_call *m, const char *text) {
  mlir_token token = m->op->name;
  token.kind = MLIR_WORD;
  token.text = text;
  token.length = strlen(text);
  return token;
}

static void begin(const make_call *m, const char *name, size_t operands, stand_in *out) {
  out->op = *m->op;
  out->op.name = word(m, name);
  out->op.operand_count = operands;
  out->op.attrs = out->attrs;
  out->op.attr_count = 0;
}

static void keep(const make_call *m, const char *from, const char *name, stand_in *out) {
  const mlir_attr *attr = make_attr(m, from);
  if (!attr) return;
  out->attrs[out->op.attr_count] = *attr;
  out->attrs[out->op.attr_count++].name = word(m, name);
}

/* Integers as an attribute. */
static ts_status put(const make_call *m, const char *name, const ts_dims *numbers, stand_in *out) {
  mlir_attr *list = &out->attrs[out->op.attr_count++];
  *list = (mlir_attr){.kind = MLIR_ATTR_LIST, .name = word(m, name), .token = m->op->name};
  list->count = (size_t)numbers->rank;
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, list->count, &list->items));
  for (int32_t i = 0; i < numbers->rank; i++) {
    char text[24], *kept;
    snprintf(text, sizeof text, "%" PRId64, numbers->dims[i]);
    TS_TRY(ts_arena_strdup(&m->r->arena, text, &kept));
    list->items[i] = (mlir_attr){.kind = MLIR_ATTR_NUMBER, .token = word(m, kept)};
    list->items[i].token.kind = MLIR_NUMBER;
  }
  return TS_SUCCESS;
}

static ts_status put_known(const make_call *m, const char *name, size_t operand, stand_in *out) {
  ts_dims numbers;
  TS_TRY(make_known(m, operand, &numbers));
  return put(m, name, &numbers, out);
}

static ts_status finish(const make_call *m, stand_in *s) {
  make_call inner = *m;
  inner.op = &s->op;
  return make_find(s->op.name)(&inner);
}

/* The operand is the result's shape. */
static ts_status set_shape(const make_call *m, size_t operand, stand_in *out) {
  ts_dims shape;
  ts_shape *kept;
  if (m->op->types.count != 1) return make_count_operands(m, operand + 1);
  TS_TRY(make_known(m, operand, &shape));
  ts_status status = ts_shape_check(&shape, m->op->types.data[0].dtype);
  if (status) return status;
  TS_TRY(ts_arena_alloc(&m->r->arena, ts_shape_size(&shape), (void **)&kept));
  ts_shape_copy(kept, &shape);
  out->type = m->op->types.data[0];
  out->type.shape = kept;
  out->op.types = (mlir_types){&out->type, 1};
  return TS_SUCCESS;
}

static ts_status shaped(const make_call *m) {
  stand_in s;
  if (mlir_token_is(m->op->name, "stablehlo.dynamic_iota")) {
    begin(m, "stablehlo.iota", 0, &s);
    keep(m, "dim|iota_dimension", "iota_dimension", &s);
    TS_TRY(set_shape(m, 0, &s));
    return finish(m, &s);
  }
  const bool is_reshape = mlir_token_is(m->op->name, "stablehlo.dynamic_reshape");
  begin(m, is_reshape ? "stablehlo.reshape" : "stablehlo.broadcast_in_dim", 1, &s);
  keep(m, "dims|broadcast_dimensions", "broadcast_dimensions", &s);
  TS_TRY(set_shape(m, 1, &s));
  return finish(m, &s);
}

static ts_status dynamic_gather(const make_call *m) {
  stand_in s;
  begin(m, "stablehlo.gather", 2, &s);
  keep(m, "dimension_numbers", "dimension_numbers", &s);
  TS_TRY(put_known(m, "slice_sizes", 2, &s));
  return finish(m, &s);
}

static ts_status dynamic_pad(const make_call *m) {
  stand_in s;
  begin(m, "stablehlo.pad", 2, &s);
  TS_TRY(put_known(m, "edge_padding_low", 2, &s));
  TS_TRY(put_known(m, "edge_padding_high", 3, &s));
  TS_TRY(put_known(m, "interior_padding", 4, &s));
  return finish(m, &s);
}

static ts_status real_dynamic_slice(const make_call *m) {
  stand_in s;
  begin(m, "stablehlo.slice", 1, &s);
  TS_TRY(put_known(m, "start_indices", 1, &s));
  TS_TRY(put_known(m, "limit_indices", 2, &s));
  TS_TRY(put_known(m, "strides", 3, &s));
  return finish(m, &s);
}

/* A convolution's attributes, with the padding in front of others of that name. */
static ts_status dynamic_conv(const make_call *m) {
  ts_dims padding;
  stand_in s;
  mlir_attr *all;
  begin(m, "stablehlo.convolution", 2, &s);
  TS_TRY(make_known(m, 2, &padding));
  TS_TRY(put(m, "padding", &padding, &s));
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, m->op->attr_count + 1, &all));
  all[0] = s.attrs[0];
  for (size_t i = 0; i < m->op->attr_count; i++) all[i + 1] = m->op->attrs[i];
  s.op.attrs = all;
  s.op.attr_count = m->op->attr_count + 1;
  return finish(m, &s);
}

ts_status make_in_dynamic(const make_call *m) {
  static const struct {
    const char *name;
    make_fn make;
  } rows[] = {{"stablehlo.dynamic_gather", dynamic_gather},
              {"stablehlo.dynamic_pad", dynamic_pad},
              {"stablehlo.real_dynamic_slice", real_dynamic_slice},
              {"stablehlo.dynamic_conv", dynamic_conv}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (mlir_token_is(m->op->name, rows[i].name)) return rows[i].make(m);
  return shaped(m);
}

/* ---- custom calls of exports with symbolic sizes */

/* The region that the called function is. */
static ts_status called_region(const make_call *m, stand_in *out) {
  const mlir_attr *called = make_attr(m, "called_computations");
  mlir_region *region;
  if (!called || called->kind != MLIR_ATTR_LIST || called->count != 1)
    return make_error(m, TS_INVALID_ARGUMENT, "expected one called computation");
  const mlir_func *func = make_find_func(m->r, called->items[0].token);
  if (!func || func->body.op_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "the called computation is no function with a body");
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, 1, &region));
  *region = func->body;
  out->op.regions = region;
  out->op.region_count = 1;
  return TS_SUCCESS;
}

ts_status make_in_dynamic_window(const make_call *m) {
  stand_in s;
  begin(m, "stablehlo.reduce_window", 2, &s);
  TS_TRY(called_region(m, &s));
  TS_TRY(put_known(m, "window_dimensions", 2, &s));
  TS_TRY(put_known(m, "window_strides", 3, &s));
  TS_TRY(put_known(m, "base_dilations", 4, &s));
  TS_TRY(put_known(m, "window_dilations", 5, &s));
  TS_TRY(put_known(m, "padding", 6, &s));
  return finish(m, &s);
}

ts_status make_in_dynamic_top_k(const make_call *m) {
  stand_in s;
  begin(m, "chlo.top_k", 1, &s);
  TS_TRY(put_known(m, "k", 1, &s));
  return finish(m, &s);
}

/* Appends a text of MLIR without its escapes: \n, \t, \", \\, and two hexadecimal digits. */
static void append_plain(mlir_token token, size_t from, size_t to, ts_text *out) {
  for (size_t i = from; i < to; i++) {
    char c = token.text[i];
    if (c == '\\' && token.line && i + 1 < to) {
      uint8_t byte = 0;
      const char next = token.text[++i];
      c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
      if (i + 1 < to && ts_syntax_parse_hex(token.text + i, 1, &byte)) {
        c = (char)byte;
        i++;
      }
    }
    ts_text_format(out, "%c", c);
  }
}

/* "{0}" in a message is the first number after the condition. */
static ts_status write_message(const make_call *m, mlir_token token, ts_text *out) {
  size_t from = 0;
  for (size_t i = 0; i + 2 < token.length; i++) {
    const size_t operand = (size_t)(token.text[i + 1] - '0') + 1;
    const ts_dims *known = NULL;
    if (token.text[i] != '{' || token.text[i + 2] != '}' || operand > 10 || operand >= m->op->operand_count) continue;
    TS_TRY(make_find_known(m, m->operands[operand].id, &known));
    if (!known || known->rank != 1) continue;
    append_plain(token, from, i, out);
    ts_text_format(out, "%" PRId64, known->dims[0]);
    from = i + 3;
  }
  append_plain(token, from, token.length, out);
  return out->failed ? ts_error_no_memory() : TS_SUCCESS;
}

ts_status make_in_assertion(const make_call *m) {
  const mlir_attr *message = make_attr(m, "error_message");
  const ts_dims *holds = NULL;
  ts_text text = {0};
  if (m->op->operand_count == 0 || !message)
    return make_error(m, TS_INVALID_ARGUMENT, "expected a condition and the attribute error_message");
  TS_TRY(make_find_known(m, m->operands[0].id, &holds));
  if (!holds || holds->rank != 1)
    return make_error(m, TS_UNIMPLEMENTED, "its condition is not known while the program is read");
  if (holds->dims[0]) return TS_SUCCESS;
  ts_status status = write_message(m, message->token, &text);
  if (!status) status = ts_error(TS_INVALID_ARGUMENT, "%s", text.data ? text.data : "");
  m->r->has_text = true;
  ts_text_deinit(&text);
  return status;
}
