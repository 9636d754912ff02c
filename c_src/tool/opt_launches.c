#include "tool/opt_launches.h"

#include "jit/lower/lower.h"

#include <inttypes.h>

static ts_status print_launch(const ts_launch *launch, ts_text *out) {
  TS_TRY(ts_kernel_check(&launch->desc));
  ts_text_format(out, " %s[", ts_kernel_kind_name(launch->desc.kind));
  for (int32_t i = 0; i < launch->desc.rank; i++) ts_text_format(out, "%s%" PRId64, i ? "," : "", launch->args[i]);
  ts_text_append(out, "]");
  return TS_SUCCESS;
}

static ts_status print_op(const ts_graph *graph, ts_op_id id, ts_arena *arena, ts_text *out) {
  const ts_op *op = &graph->ops.data[id];
  const ts_value *first = ts_graph_value(graph, op->first_result);
  ts_lowered lowered;
  TS_TRY(ts_lower_op(graph, id, arena, NULL, &lowered));
  ts_text_format(out, "// %s %s:", ts_op_name(op->code), TS_SHAPE_STR(first->dtype, first->shape));
  for (int32_t i = 0; i < lowered.launch_count; i++) TS_TRY(print_launch(&lowered.launches[i], out));
  ts_text_append(out, lowered.launch_count == 0 ? " none\n" : "\n");
  return TS_SUCCESS;
}

ts_status ts_opt_print_launches(const ts_graph *graph, ts_text *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_status status = TS_SUCCESS;
  ts_arena arena;
  ts_arena_init(&arena);
  for (size_t i = 0; !status && i < root->ops.count; i++) status = print_op(graph, root->ops.data[i], &arena, out);
  ts_arena_deinit(&arena);
  return status;
}
