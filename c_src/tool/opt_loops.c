#include "tool/opt_loops.h"

#include "pass/nest.h"

#include <inttypes.h>

/* ---- building ---- */

/* The graph's parameters come from outside. */
static bool is_param(const void *context, ts_value_id value, uint32_t *out_index) {
  const ts_region *root = ts_graph_region(context, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++) {
    if (root->params.data[i] != value) continue;
    *out_index = (uint32_t)i;
    return true;
  }
  return false;
}

static ts_op_id find_reduction(const ts_graph *graph) {
  for (size_t i = 0; i < graph->ops.count; i++)
    if (ts_op_get_class(graph->ops.data[i].code) == TS_CLASS_REDUCE) return (ts_op_id)i;
  return TS_NO_ID;
}

static ts_status build_roots(const ts_graph *graph, ts_nest_root *roots, ts_arena *arena, ts_nest *out) {
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  for (size_t i = 0; i < root->results.count; i++)
    roots[i] = ts_nest_root_whole(graph, root->results.data[i], (uint32_t)i);
  const ts_nest_spec spec = {.graph = graph,
                             .operand = is_param,
                             .context = graph,
                             .roots = roots,
                             .root_count = root->results.count,
                             .reduce = find_reduction(graph)};
  return ts_nest_build(&spec, arena, out);
}

static ts_status build(const ts_graph *graph, ts_arena *arena, ts_nest *out) {
  ts_nest_root *roots;
  TS_TRY(TS_NEW_ARRAY(ts_graph_region(graph, TS_ROOT)->results.count, &roots));
  ts_status status = build_roots(graph, roots, arena, out);
  ts_free(roots);
  return status;
}

/* ---- printing ---- */

static void print_numbers(const int64_t *numbers, int32_t count, ts_text *out) {
  ts_text_append(out, "[");
  for (int32_t i = 0; i < count; i++) ts_text_format(out, "%s%" PRId64, i ? "," : "", numbers[i]);
  ts_text_append(out, "]");
}

static void print_loops(const ts_nest *nest, ts_text *out) {
  ts_text_append(out, "// loops ");
  print_numbers(nest->loops.extent, nest->loops.count, out);
  ts_text_format(out, ", kept %" PRId32, nest->kept);
  if (nest->reduces) ts_text_append(out, ts_nest_row_is_one(nest) ? ", a row reduced as one" : ", a row reduced");
  ts_text_append(out, "\n");
}

/* Bytes: an offset, a stride for each loop, and dynamic starts. */
static void print_access(const ts_nest *nest, const ts_access *access, ts_text *out) {
  static const char *const roles[] = {"operand", "result", "temporary"};
  ts_text_format(out, "%s %" PRIu32 ": %s at %" PRId64 " + ", roles[access->role], access->index,
                 ts_dtype_name(access->dtype), access->at.offset);
  print_numbers(access->at.coef, nest->loops.count, out);
  for (int32_t i = 0; i < access->term_count; i++) {
    const ts_dynamic_term *term = &access->terms[i];
    ts_text_format(out, " + clamp(operand %" PRIu32 ", 0, %" PRId64 ") * %" PRId64, term->operand, term->limit,
                   term->stride);
  }
  ts_text_append(out, "\n");
}

static void print_node(const ts_nest_node *node, ts_text *out) {
  static const char *const kinds[] = {"load", "scalar", "index", "gather", "op", "reduce", "arg"};
  const int32_t numbers[] = {node->slot, node->a, node->b, node->c};
  ts_text_append(out, kinds[node->kind]);
  if (node->kind >= TS_NEST_OP) ts_text_format(out, " %s", ts_op_name(node->op));
  for (int i = 0; i < 4; i++)
    if (numbers[i] >= 0) ts_text_format(out, " %" PRId32, numbers[i]);
  ts_text_format(out, " : %s%s\n", ts_dtype_name(node->dtype), node->varies ? ", in the row" : "");
}

static void print_nest(const ts_nest *nest, ts_text *out) {
  print_loops(nest, out);
  for (size_t i = 0; i < nest->loads.count; i++) {
    ts_text_format(out, "// load %zu of ", i);
    print_access(nest, &nest->loads.data[i], out);
  }
  for (size_t i = 0; i < nest->nodes.count; i++) {
    ts_text_format(out, "// node %zu: ", i);
    print_node(&nest->nodes.data[i], out);
  }
  for (size_t i = 0; i < nest->stores.count; i++) {
    ts_text_format(out, "// store node %" PRId32 " to ", nest->stores.data[i].node);
    print_access(nest, &nest->stores.data[i].to, out);
  }
}

ts_status ts_opt_print_loops(const ts_graph *graph, ts_text *out) {
  ts_arena arena;
  ts_nest nest;
  ts_arena_init(&arena);
  ts_status status = build(graph, &arena, &nest);
  if (!status) {
    print_nest(&nest, out);
    ts_nest_deinit(&nest);
  }
  ts_arena_deinit(&arena);
  return status;
}
