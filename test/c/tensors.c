#include "tensors.h"

#include "kernel/gemm/gemm.h"
#include "kernel/ref/ref.h"
#include "testing.h"
#include "tool/compare.h"

#include <string.h>

void test_ok(ts_status status) {
  if (status) ck_abort_msg("%s: %s", ts_code_name(ts_status_code(status)), ts_status_message(status));
}

/* ---- tensors ---- */

static ts_buffer *empty_tensor(ts_dtype type, const ts_shape *shape, size_t count) {
  ts_buffer *buffer;
  test_ok(ts_buffer_create(ts_pool_default(), type, shape, &buffer));
  ck_assert_int_eq(ts_shape_elements(shape), (int64_t)count);
  return buffer;
}

static void set(ts_buffer *buffer, size_t i, ts_scalar value) {
  ts_scalar_store(buffer->dtype, value, (char *)buffer->data + i * ts_dtype_size(buffer->dtype));
}

ts_buffer *test_tensor(ts_dtype type, ts_shape shape, const double *values, size_t count) {
  ts_buffer *buffer = empty_tensor(type, &shape, count);
  for (size_t i = 0; i < count; i++) set(buffer, i, ts_scalar_from_f64(type, values[i]));
  return buffer;
}

ts_buffer *test_integers(ts_dtype type, ts_shape shape, const int64_t *values, size_t count) {
  ts_buffer *buffer = empty_tensor(type, &shape, count);
  for (size_t i = 0; i < count; i++) set(buffer, i, ts_scalar_from_s64(type, values[i]));
  return buffer;
}

ts_buffer *test_vector(ts_dtype type, const double *values, size_t count) {
  return test_tensor(type, SHAPE((int64_t)count), values, count);
}

/* ---- graphs ---- */

ts_graph *test_graph(void) {
  ts_graph *graph;
  test_ok(ts_graph_create(&graph));
  return graph;
}

ts_value_id test_add_op(ts_graph *graph, ts_region_id region, ts_opcode code, const ts_attrs *attrs,
                        const ts_value_id *operands, size_t count) {
  ts_value_id value;
  test_ok(ts_graph_add_op(graph, region, code, (ts_values){operands, count}, attrs, &value));
  return value;
}

ts_value_id test_add_param(ts_graph *graph, ts_region_id region, ts_dtype type, ts_shape shape) {
  ts_value_id value;
  test_ok(ts_graph_add_param(graph, region, type, &shape, &value));
  return value;
}

ts_value_id test_add_constant(ts_graph *graph, ts_region_id region, ts_dtype type, double scalar) {
  ts_value_id value;
  ts_shape shape = SHAPE();
  test_ok(ts_graph_constant(graph, region, type, &shape, ts_scalar_from_f64(type, scalar), &value));
  return value;
}

ts_buffer *test_run_graph(ts_graph *graph, ts_buffer **args, size_t count) {
  ts_buffer *result = NULL;
  ck_assert_uint_eq(ts_graph_region(graph, TS_ROOT)->results.count, 1);
  test_ok(ts_ref_run(graph, args, count, ts_pool_default(), &result));
  for (size_t i = 0; i < count; i++) ts_buffer_release(args[i]);
  ts_graph_destroy(graph);
  return result;
}

ts_buffer *test_run_op(ts_opcode code, const ts_attrs *attrs, ts_buffer **operands, size_t count) {
  enum { MAX_OPERANDS = 8 };
  ts_value_id values[MAX_OPERANDS], result;
  ts_graph *graph = test_graph();
  ck_assert_uint_le(count, MAX_OPERANDS);
  for (size_t i = 0; i < count; i++) {
    test_ok(ts_graph_add_param(graph, TS_ROOT, operands[i]->dtype, &operands[i]->shape, &values[i]));
  }
  result = test_add_op(graph, TS_ROOT, code, attrs, values, count);
  test_ok(ts_graph_set_results(graph, TS_ROOT, &result, 1));
  return test_run_graph(graph, operands, count);
}

ts_executable *test_compile(const char *text) {
  ts_graph *graph;
  ts_executable *exe;
  test_ok(ts_graph_parse(text, strlen(text), &graph));
  test_ok(ts_executable_create(graph, NULL, &exe));
  ts_graph_destroy(graph);
  return exe;
}

/* ---- comparing ---- */

void test_close(ts_buffer *actual, ts_buffer *expected, int64_t ulp_tolerance) {
  char message[TS_COMPARE_TEXT];
  if (!ts_compare_buffers(actual, expected, ulp_tolerance, message)) ck_abort_msg("%s", message);
  ts_buffer_release(actual);
  ts_buffer_release(expected);
}

void test_equal(ts_buffer *actual, ts_buffer *expected) { test_close(actual, expected, 0); }

static int64_t live_blocks, live_bytes;

static int64_t pool_live(void) {
  ts_pool_stats stats;
  ts_pool_get_stats(ts_pool_default(), &stats);
  return stats.live;
}

void test_leaks_begin(void) {
  live_bytes = pool_live(); /* first: it may make the pool */
  live_blocks = ts_alloc_live();
}

void test_leaks_begin_after_products(void) {
  static const ts_dtype dtypes[] = {TS_F32, TS_F64};
  for (int i = 0; i < 2; i++) {
    ts_gemm *gemm;
    test_ok(ts_gemm_get(dtypes[i], NULL, &gemm));
    ts_gemm_release(gemm);
  }
  test_leaks_begin();
}

void test_leaks_end(void) {
  ck_assert_int_eq(ts_alloc_live(), live_blocks);
  ck_assert_int_eq(pool_live(), live_bytes);
}
