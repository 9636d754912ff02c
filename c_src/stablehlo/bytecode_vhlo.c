/* Ops of VHLO as ops of StableHLO: VHLO has each number of a dimension list as an attribute, and names functions by
 * strings. */
#include "stablehlo/bytecode.h"

#include <string.h>

static const struct {
  const char *op, *dict;
} dimension_ops[] = {{"stablehlo.dot_general", "dot_dimension_numbers"},
                     {"stablehlo.gather", "dimension_numbers"},
                     {"stablehlo.dynamic_gather", "dimension_numbers"},
                     {"stablehlo.scatter", "scatter_dimension_numbers"}};

/* One of the three parts of a convolution's dims: [b, 0, 1, f]. The letters stand where their attributes say. */
typedef struct conv_part {
  const char *letters[2], *names[2], *spatial;
} conv_part;

static const conv_part parts[] = {
    {{"b", "f"}, {"input_batch_dimension", "input_feature_dimension"}, "input_spatial_dimensions"},
    {{"i", "o"}, {"kernel_input_feature_dimension", "kernel_output_feature_dimension"}, "kernel_spatial_dimensions"},
    {{"b", "f"}, {"output_batch_dimension", "output_feature_dimension"}, "output_spatial_dimensions"}};

static ts_status put_item(const bytecode *b, mlir_attr *list, int64_t at, mlir_attr item) {
  if (at < 0 || at >= (int64_t)list->count)
    return bytecode_error(b, b->data + item.token.column, TS_INVALID_ARGUMENT, "the dims of a convolution are wrong");
  list->items[at] = item;
  return TS_SUCCESS;
}

static ts_status make_part(const bytecode *b, const mlir_attr *dims, const conv_part *part, mlir_attr *out) {
  static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const mlir_attr *spatial = mlir_find_attr(dims->items, dims->count, part->spatial);
  const uint8_t *place = b->data + dims->token.column;
  ts_dims axes = {.rank = 0};
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .token = dims->token};
  if (spatial) TS_TRY(mlir_attr_ints(spatial, &axes));
  if (!spatial || axes.rank > 10)
    return bytecode_error(b, place, TS_INVALID_ARGUMENT, "expected the dims of a convolution, at most 12");
  out->count = (size_t)axes.rank + 2;
  TS_TRY(TS_ARENA_ARRAY(b->arena, out->count, &out->items));
  for (int i = 0; i < 2; i++) {
    const mlir_attr *axis = mlir_find_attr(dims->items, dims->count, part->names[i]);
    const mlir_attr letter = {.kind = MLIR_ATTR_WORD,
                              .token = bytecode_token(b, place, MLIR_WORD, part->letters[i], 1)};
    int64_t at = -1;
    if (axis) TS_TRY(mlir_attr_int(axis, &at));
    TS_TRY(put_item(b, out, at, letter));
  }
  for (int32_t d = 0; d < axes.rank; d++) {
    const mlir_attr number = {.kind = MLIR_ATTR_NUMBER, .token = bytecode_token(b, place, MLIR_NUMBER, digits[d], 1)};
    TS_TRY(put_item(b, out, axes.dims[d], number));
  }
  return TS_SUCCESS;
}

/* The three parts, as the text has them. */
static ts_status make_conv_dims(const bytecode *b, const mlir_attr *dims, mlir_attr *out) {
  *out = (mlir_attr){.kind = MLIR_ATTR_LIST, .token = dims->token, .count = 3};
  TS_TRY(TS_ARENA_ARRAY(b->arena, 3, &out->items));
  for (int i = 0; i < 3; i++) TS_TRY(make_part(b, dims, &parts[i], &out->items[i]));
  return TS_SUCCESS;
}

static ts_status add_attr(const bytecode *b, mlir_op *op, const char *name, mlir_attr attr) {
  mlir_attr *grown;
  TS_TRY(TS_ARENA_ARRAY(b->arena, op->attr_count + 1, &grown));
  if (op->attr_count) memcpy(grown, op->attrs, op->attr_count * sizeof *grown);
  attr.name = (mlir_token){.kind = MLIR_WORD, .text = name, .length = strlen(name)};
  grown[op->attr_count++] = attr;
  op->attrs = grown;
  return TS_SUCCESS;
}

static bool is_convolution(mlir_token name) {
  return mlir_token_is(name, "stablehlo.convolution") || mlir_token_is(name, "stablehlo.dynamic_conv");
}

/* StableHLO's own bytecode has the dims of a convolution by name. */
static ts_status complete_convolution(const bytecode *b, bool is_vhlo, mlir_op *op) {
  mlir_attr dims = {.kind = MLIR_ATTR_DICT, .token = op->name, .items = op->attrs, .count = op->attr_count}, made;
  for (size_t i = 0; i < op->attr_count && !is_vhlo; i++)
    if (mlir_token_is(op->attrs[i].name, "dimension_numbers") && op->attrs[i].kind == MLIR_ATTR_DICT) {
      TS_TRY(make_conv_dims(b, &op->attrs[i], &made));
      made.name = op->attrs[i].name;
      op->attrs[i] = made;
    }
  if (!is_vhlo) return TS_SUCCESS;
  TS_TRY(make_conv_dims(b, &dims, &made));
  return add_attr(b, op, "dimension_numbers", made);
}

ts_status bytecode_complete_op(bytecode *b, const bytecode_op_name *name, mlir_op *op) {
  const bool is_vhlo = name->written.length > 5 && memcmp(name->written.text, "vhlo.", 5) == 0;
  if (is_convolution(op->name)) return complete_convolution(b, is_vhlo, op);
  if (!is_vhlo) return TS_SUCCESS;
  for (size_t i = 0; i < op->attr_count; i++)
    if (mlir_token_is(op->attrs[i].name, "callee") || mlir_token_is(op->attrs[i].name, "decomposition"))
      op->attrs[i].token.kind = MLIR_SYMBOL;
  for (size_t i = 0; i < sizeof dimension_ops / sizeof *dimension_ops; i++)
    if (mlir_token_is(op->name, dimension_ops[i].op))
      return add_attr(
          b, op, dimension_ops[i].dict,
          (mlir_attr){.kind = MLIR_ATTR_DICT, .token = op->name, .items = op->attrs, .count = op->attr_count});
  return TS_SUCCESS;
}
