/* Texts of programs, through all steps before LLVM: the passes, each with a graph that verifies, and lowering. The
 * interpreter runs small programs before and after the passes, to the same bits; NaN bits are not specified, so the
 * arguments are integers. */
#include "fuzz.h"
#include "jit/lower/lower.h"
#include "kernel/ref/ref.h"
#include "pass/pass.h"

enum { MAX_OPS = 200, MAX_ELEMENTS = 256, MAX_VALUES = 32 };

/* Loops may be endless, and floats differ by their NaNs and by folded functions whose digits are a library's. */
static bool can_run(const ts_graph *g) {
  for (size_t i = 0; i < g->ops.count; i++)
    if (g->ops.data[i].code == TS_OP_WHILE) return false;
  for (size_t i = 0; i < g->values.count; i++) {
    const ts_value *v = &g->values.data[i];
    if (!ts_dtype_is_integer(v->dtype) || ts_shape_elements(v->shape) > MAX_ELEMENTS) return false;
  }
  const ts_region *root = ts_graph_region(g, TS_ROOT);
  return root->params.count <= MAX_VALUES && root->results.count <= MAX_VALUES;
}

static ts_status evaluate(void *context, const ts_graph *graph, ts_buffer **out_results) {
  (void)context;
  for (size_t i = 0; i < graph->values.count; i++)
    if (ts_shape_elements(graph->values.data[i].shape) > MAX_ELEMENTS)
      return ts_error(TS_UNIMPLEMENTED, "too much for a fuzzer");
  return ts_ref_run(graph, NULL, 0, ts_pool_default(), out_results);
}

static void lower_all(const ts_graph *g) {
  ts_arena arena;
  ts_arena_init(&arena);
  for (size_t i = 0; i < g->ops.count; i++) {
    ts_lowered lowered;
    ts_status status = ts_lower_op(g, (ts_op_id)i, &arena, NULL, &lowered);
    if (ts_status_code(status) != TS_UNIMPLEMENTED) must(status, "lower");
    for (int32_t k = 0; !status && k < lowered.launch_count; k++)
      must(ts_kernel_check(&lowered.launches[k].desc), "check the kernel");
    ts_status_free(status);
  }
  ts_arena_deinit(&arena);
}

static void make_args(const ts_graph *g, ts_buffer **out) {
  const ts_region *root = ts_graph_region(g, TS_ROOT);
  for (size_t i = 0; i < root->params.count; i++) {
    const ts_value *v = ts_graph_value(g, root->params.data[i]);
    must(ts_buffer_create(ts_pool_default(), v->dtype, v->shape, &out[i]), "argument");
    for (int64_t k = 0; k < out[i]->bytes; k++) ((uint8_t *)out[i]->data)[k] = (uint8_t)(k * 37 + (int64_t)i);
  }
}

static void compare(const ts_graph *before, const ts_graph *after) {
  ts_buffer *args[MAX_VALUES], *first[MAX_VALUES], *second[MAX_VALUES];
  const ts_region *root = ts_graph_region(before, TS_ROOT);
  make_args(before, args);
  must(ts_ref_run(before, args, root->params.count, ts_pool_default(), first), "run");
  must(ts_ref_run(after, args, root->params.count, ts_pool_default(), second), "run what the passes made");
  for (size_t i = 0; i < root->results.count; i++) {
    if (first[i]->bytes != second[i]->bytes || memcmp(first[i]->data, second[i]->data, (size_t)first[i]->bytes) != 0)
      abort();
    ts_buffer_release(first[i]);
    ts_buffer_release(second[i]);
  }
  for (size_t i = 0; i < root->params.count; i++) ts_buffer_release(args[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ts_graph *graph, *made;
  int64_t live = ts_alloc_live();
  const ts_pass_options options = {.evaluate = evaluate, .verify = true};
  if (!ts_status_consume_ok(ts_graph_parse((const char *)data, size, &graph))) return 0;
  if (graph->ops.count <= MAX_OPS) {
    must(ts_pipeline_run(graph, &options, &made), "passes");
    lower_all(made);
    if (can_run(graph)) compare(graph, made);
    ts_graph_destroy(made);
  }
  ts_graph_destroy(graph);
  return ts_alloc_live() == live ? 0 : (abort(), 0);
}
