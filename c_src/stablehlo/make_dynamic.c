/* Ops whose shapes or positions are operands. Where these are known while the program is read, another op that has them
 * as attributes is made instead. The check of sizes in JAX's exports is also here. */
#include "stablehlo/make.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_KNOWN 5
#define RESULT "" /* no attribute, but the sizes of the result */

/* An op or the target of a custom call, and the op that is made instead. It has the first operands. The next operands
 * become the attributes `known`. */
typedef struct dynamic_row {
  const char *name, *made;
  size_t operands;
  const char *known[MOST_KNOWN];
} dynamic_row;

static const dynamic_row rows[] = {
    {"stablehlo.dynamic_iota", "stablehlo.iota", 0, {RESULT}},
    {"stablehlo.dynamic_reshape", "stablehlo.reshape", 1, {RESULT}},
    {"stablehlo.dynamic_broadcast_in_dim", "stablehlo.broadcast_in_dim", 1, {RESULT}},
    {"stablehlo.dynamic_gather", "stablehlo.gather", 2, {"slice_sizes"}},
    {"stablehlo.dynamic_pad", "stablehlo.pad", 2, {"edge_padding_low", "edge_padding_high", "interior_padding"}},
    {"stablehlo.real_dynamic_slice", "stablehlo.slice", 1, {"start_indices", "limit_indices", "strides"}},
    {"stablehlo.dynamic_conv", "stablehlo.convolution", 2, {"padding"}},
    {"stablehlo.dynamic_reduce_window",
     "stablehlo.reduce_window",
     2,
     {"window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"}},
    {"stablehlo.dynamic_top_k", "chlo.top_k", 1, {"k"}},
};

/* The op that is made, and the type of its result. */
typedef struct stand_in {
  mlir_op op;
  mlir_type type;
} stand_in;

static mlir_token word(const make_call *m, const char *text) {
  mlir_token token = m->op->name;
  token.kind = MLIR_WORD;
  token.text = text;
  token.length = strlen(text);
  return token;
}

static ts_status set_number(const make_call *m, int64_t number, mlir_attr *out) {
  char text[24], *kept;
  snprintf(text, sizeof text, "%" PRId64, number);
  TS_TRY(ts_arena_strdup(&m->r->arena, text, &kept));
  out->kind = MLIR_ATTR_NUMBER;
  out->token = word(m, kept);
  out->token.kind = MLIR_NUMBER;
  return TS_SUCCESS;
}

/* Integers as an attribute: a list of the numbers, or a number where the operand is a scalar. */
static ts_status set_attr(const make_call *m, size_t operand, const char *name, const ts_dims *numbers,
                          mlir_attr *out) {
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .name = word(m, name), .token = m->op->name};
  if (make_operand_of(m, operand)->shape->rank == 0) return set_number(m, numbers->dims[0], out);
  out->count = (size_t)numbers->rank;
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, out->count, &out->items));
  for (int32_t i = 0; i < numbers->rank; i++) TS_TRY(set_number(m, numbers->dims[i], &out->items[i]));
  return TS_SUCCESS;
}

static ts_status set_shape(const make_call *m, const ts_dims *sizes, stand_in *out) {
  ts_shape *kept;
  if (m->op->types.count != 1) return make_error(m, TS_INVALID_ARGUMENT, "expected one result");
  TS_TRY(ts_shape_check(sizes, m->op->types.data[0].dtype));
  TS_TRY(ts_arena_copy(&m->r->arena, sizes, ts_shape_size(sizes), (void **)&kept));
  out->type = m->op->types.data[0];
  out->type.shape = kept;
  out->op.types = (mlir_types){&out->type, 1};
  return TS_SUCCESS;
}

/* Attributes that were operands come first: the op's own attributes may have the same names. */
static ts_status set_known(const make_call *m, const dynamic_row *row, stand_in *out) {
  mlir_attr *attrs;
  size_t count = 0;
  TS_TRY(TS_ARENA_ARRAY(&m->r->arena, MOST_KNOWN + m->op->attr_count, &attrs));
  for (size_t i = 0; i < MOST_KNOWN && row->known[i]; i++) {
    ts_dims numbers;
    TS_TRY(make_known(m, row->operands + i, &numbers));
    if (*row->known[i])
      TS_TRY(set_attr(m, row->operands + i, row->known[i], &numbers, &attrs[count++]));
    else
      TS_TRY(set_shape(m, &numbers, out));
  }
  for (size_t i = 0; i < m->op->attr_count; i++)
    if (m->op->attrs[i].name.length) attrs[count++] = m->op->attrs[i];
  out->op.attrs = attrs;
  out->op.attr_count = count;
  return TS_SUCCESS;
}

static ts_status make_row(const make_call *m, const dynamic_row *row, stand_in *s) {
  make_call inner = *m;
  inner.op = &s->op;
  s->op.name = word(m, row->made);
  s->op.operand_count = row->operands;
  TS_TRY(set_known(m, row, s));
  return make_find(s->op.name)(&inner);
}

/* Makes the op that stands for the named one. `s` is the op as it is written, perhaps with another region. */
static ts_status replace(const make_call *m, mlir_token name, stand_in *s) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (mlir_token_is(name, rows[i].name)) return make_row(m, &rows[i], s);
  return make_error(m, TS_UNIMPLEMENTED, "the op %.*s is not known", (int)name.length, name.text);
}

ts_status make_in_dynamic(const make_call *m) { return replace(m, m->op->name, &(stand_in){.op = *m->op}); }

/* ---- custom calls of exports with symbolic sizes */

ts_status make_in_dynamic_top_k(const make_call *m) {
  return replace(m, word(m, "stablehlo.dynamic_top_k"), &(stand_in){.op = *m->op});
}

/* The called function is the region. It sees no value of the op's scope, though names are equal. */
ts_status make_in_dynamic_window(const make_call *m) {
  const mlir_func *func = make_find_called(m);
  if (!func || func->body.op_count == 0)
    return make_error(m, TS_INVALID_ARGUMENT, "expected one called computation, a function with a body");
  stand_in s = {.op = *m->op};
  mlir_region region = func->body;
  s.op.regions = &region;
  s.op.region_count = 1;
  make_scope empty = {0};
  const make_call outside = make_in_scope(m, &empty);
  return replace(&outside, word(m, "stablehlo.dynamic_reduce_window"), &s);
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
    make_append_plain(token, from, i, out);
    ts_text_format(out, "%" PRId64, known->dims[0]);
    from = i + 3;
  }
  make_append_plain(token, from, token.length, out);
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
