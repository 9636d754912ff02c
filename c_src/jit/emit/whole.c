#include "jit/emit/whole.h"

#include <string.h>

static bool is_single(const ts_graph *g, ts_value_id v) {
  const ts_value *value = ts_graph_value(g, v);
  return ts_shape_elements(value->shape) == 1 && ts_dtype_has_kernels(value->dtype);
}

static bool region_supported(const ts_graph *g, ts_region_id id, int *budget);

/* `budget` counts down the number of ops that are still allowed. */
static bool op_supported(const ts_graph *g, const ts_op *op, int *budget) {
  if (--*budget < 0) return false;
  /* A constant has 8 bytes in the arguments. */
  if (op->code == TS_OP_CONSTANT && op->attrs->constant.dtype == TS_C128) return false;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!is_single(g, op->operands[i])) return false;
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!is_single(g, op->first_result + i)) return false;
  if (op->code == TS_OP_WHILE || op->code == TS_OP_COND || ts_whole_is_inlined(op->code)) {
    ts_region_id regions[2];
    size_t n = ts_op_regions(op, regions);
    for (size_t i = 0; i < n; i++)
      if (!region_supported(g, regions[i], budget)) return false;
    return true;
  }
  if (!ts_graph_has_kernel_types(g, op)) return false;
  return op->code == TS_OP_CONSTANT || ts_op_is_elementwise(op->code) || ts_whole_is_identity(op->code);
}

static bool region_supported(const ts_graph *g, ts_region_id id, int *budget) {
  const ts_region *region = ts_graph_region(g, id);
  for (size_t i = 0; i < region->ops.count; i++)
    if (!op_supported(g, ts_graph_op(g, region->ops.data[i]), budget)) return false;
  return true;
}

bool ts_whole_supported(const ts_graph *graph, ts_op_id id) {
  int budget = TS_WHOLE_MAX_OPS;
  const ts_op *op = ts_graph_op(graph, id);
  if (op->code != TS_OP_WHILE && op->code != TS_OP_COND) return false;
  /* Compile threads have small stacks, which bounds the nesting. */
  return ts_op_height(graph, op) <= TS_WHOLE_MAX_LEVELS && op_supported(graph, op, &budget);
}

/* ---- canonical text: values are numbered in the order of their definitions, constants by their index in the
 * arguments ---- */

typedef struct printer {
  const ts_graph *g;
  ts_text *out;
  uint32_t *numbers; /* the number of each value in the text, by value */
  uint32_t next;
  ts_arena *arena;
  TS_VEC(int64_t) constants;
} printer;

static void define(printer *p, ts_value_id v) {
  p->numbers[v] = p->next++;
  ts_text_format(p->out, " %u:%s", p->numbers[v], ts_dtype_name(ts_graph_value(p->g, v)->dtype));
}

static ts_status print_region(printer *p, ts_region_id id);

static ts_status print_op(printer *p, const ts_op *op) {
  ts_text_append(p->out, ts_op_name(op->code));
  for (uint32_t i = 0; i < op->operand_count; i++) ts_text_format(p->out, " %%%u", p->numbers[op->operands[i]]);
  if (op->code == TS_OP_CONSTANT) TS_TRY(TS_VEC_PUSH(&p->constants, op->attrs->constant.value.s64));
  ts_region_id regions[2];
  size_t n = ts_op_regions(op, regions);
  for (size_t i = 0; i < n; i++) TS_TRY(print_region(p, regions[i]));
  ts_text_append(p->out, " ->");
  for (uint32_t i = 0; i < op->result_count; i++) define(p, op->first_result + i);
  ts_text_append(p->out, "\n");
  return TS_SUCCESS;
}

static ts_status print_region(printer *p, ts_region_id id) {
  const ts_region *region = ts_graph_region(p->g, id);
  ts_text_append(p->out, " {");
  for (size_t i = 0; i < region->params.count; i++) define(p, region->params.data[i]);
  ts_text_append(p->out, "\n");
  for (size_t i = 0; i < region->ops.count; i++) TS_TRY(print_op(p, ts_graph_op(p->g, region->ops.data[i])));
  ts_text_append(p->out, "return");
  for (size_t i = 0; i < region->results.count; i++)
    ts_text_format(p->out, " %%%u", p->numbers[region->results.data[i]]);
  ts_text_append(p->out, " }");
  return TS_SUCCESS;
}

static ts_status print_whole(printer *p, ts_op_id id) {
  const ts_op *op = ts_graph_op(p->g, id);
  TS_TRY(TS_NEW_ARRAY(p->g->values.count, &p->numbers));
  ts_text_append(p->out, "whole");
  for (uint32_t i = 0; i < op->operand_count; i++) define(p, op->operands[i]);
  /* an operand that occurs twice is two arguments */
  ts_text_append(p->out, "\n");
  return print_op(p, op);
}

ts_status ts_whole_lower(const ts_graph *graph, ts_op_id id, ts_arena *arena, ts_whole_kernel *out) {
  ts_text text = {0};
  printer p = {.g = graph, .out = &text, .arena = arena};
  ts_status status = print_whole(&p, id);
  ts_whole *whole = NULL;
  if (!status) status = ts_arena_alloc(arena, sizeof *whole, (void **)&whole);
  if (!status)
    status = ts_arena_copy(arena, p.constants.data, p.constants.count * sizeof(int64_t), (void **)&out->constants);
  out->constant_count = (int32_t)p.constants.count;
  if (!status) status = ts_text_finish(&text, &out->text);
  ts_text_deinit(&text);
  ts_free(p.numbers);
  TS_VEC_FREE(&p.constants);
  if (status) return status;
  *whole = (ts_whole){graph, id};
  out->source =
      (ts_kernel_source){.text = out->text, .length = strlen(out->text), .emit = ts_whole_emit, .description = whole};
  return TS_SUCCESS;
}
