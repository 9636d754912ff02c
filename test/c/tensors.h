/* Short ways to make tensors and run ops in tests. A failure here ends the
 * test through check. Not for use outside of a running check test. */
#ifndef TS_TEST_TENSORS_H
#define TS_TEST_TENSORS_H

#include "exec/executable.h"

#define SHAPE(...) \
  ts_shape_make((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* A tensor from its elements in row-major order, each converted to the type:
 * TENSOR from doubles, INTEGERS from int64_t (for values past 2^53). */
#define TENSOR(type, shape, ...) \
  test_tensor((type), (shape), (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
#define INTEGERS(type, shape, ...)                               \
  test_integers((type), (shape), (const int64_t[]){__VA_ARGS__}, \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define VECTOR(type, ...) \
  test_vector((type), (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
#define SCALAR(type, value) TENSOR((type), SHAPE(), (value))

ts_buffer *test_tensor(ts_dtype type, ts_shape shape, const double *values, size_t count);
ts_buffer *test_integers(ts_dtype type, ts_shape shape, const int64_t *values, size_t count);
ts_buffer *test_vector(ts_dtype type, const double *values, size_t count);

/* Runs one op on operands with the reference interpreter. Takes the operands. */
#define RUN(code, attrs, ...) \
  test_run_op((code), (attrs), (ts_buffer *[]){__VA_ARGS__}, sizeof((ts_buffer *[]){__VA_ARGS__}) / sizeof(ts_buffer *))
ts_buffer *test_run_op(ts_opcode code, const ts_attrs *attrs, ts_buffer **operands, size_t count);

/* Runs a whole graph of one result. Takes the graph and the arguments. */
ts_buffer *test_run_graph(ts_graph *graph, ts_buffer **args, size_t count);

/* Adds an op that must be accepted. */
#define OP(graph, region, code, attrs, ...)                                     \
  test_add_op((graph), (region), (code), (attrs), (ts_value_id[]){__VA_ARGS__}, \
              sizeof((ts_value_id[]){__VA_ARGS__}) / sizeof(ts_value_id))
ts_value_id test_add_op(ts_graph *graph, ts_region_id region, ts_opcode code, const ts_attrs *attrs,
                        const ts_value_id *operands, size_t count);
ts_value_id test_add_param(ts_graph *graph, ts_region_id region, ts_dtype type, ts_shape shape);
ts_value_id test_add_constant(ts_graph *graph, ts_region_id region, ts_dtype type, double value);
ts_graph *test_graph(void);

/* The program of that text, compiled; as it would be for a user. */
ts_executable *test_compile(const char *text);

/* Fails the test unless status is success; says its message. Frees it. */
void test_ok(ts_status status);

/* Fails the test unless both agree (ts_compare_buffers). Takes both. */
void test_equal(ts_buffer *actual, ts_buffer *expected);
void test_close(ts_buffer *actual, ts_buffer *expected, int64_t ulp_tolerance);

/* A fixture's setup and teardown: the test leaves no memory behind. */
void test_leaks_begin(void);
/* After the parts of products of f32 and f64 are made, which stay for the process. */
void test_leaks_begin_after_products(void);
void test_leaks_end(void);

#endif
