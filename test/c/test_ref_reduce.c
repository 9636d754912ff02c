/* Reductions, scans and contractions of the reference interpreter. */
#include "ir/combiner.h"
#include "jit/session/target.h"
#include "kernel/gemm/gemm.h"
#include "kernel/ref/ref_internal.h"
#include "lesser_isa.h"
#include "tensors.h"
#include "testing.h"

#include "tensor/contract_order.h"
#include "tensor/dot_order.h"
#include "tensor/reduce_tree.h"

#include <math.h>

static ts_buffer *reduce(ts_opcode code, ts_dims axes, ts_buffer *operand) {
  ts_attrs attrs = {.axes = axes};
  return RUN(code, &attrs, operand);
}

static ts_buffer *matrix(ts_dtype type) { return TENSOR(type, SHAPE(2, 3), 1, 5, 3, 4, 2, 6); }

START_TEST(reduces_any_axes)
{
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(1), matrix(TS_F32)), VECTOR(TS_F32, 9, 12));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0), matrix(TS_S32)), VECTOR(TS_S32, 5, 7, 9));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0, 1), matrix(TS_BF16)), SCALAR(TS_BF16, 21));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(), matrix(TS_F64)), matrix(TS_F64));
  test_equal(reduce(TS_OP_REDUCE_PRODUCT, SHAPE(1), matrix(TS_F16)), VECTOR(TS_F16, 15, 48));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(1), matrix(TS_U8)), VECTOR(TS_U8, 5, 6));
  test_equal(reduce(TS_OP_REDUCE_MIN, SHAPE(0), matrix(TS_S64)), VECTOR(TS_S64, 1, 2, 3));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(), SCALAR(TS_F32, 3)), SCALAR(TS_F32, 3));
  ts_buffer *cube = TENSOR(TS_S8, SHAPE(2, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8);
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0, 2), cube), VECTOR(TS_S8, 14, 22));
}
END_TEST

START_TEST(reduces_specials)
{
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), VECTOR(TS_F32, 1, NAN, 2)), SCALAR(TS_F32, NAN));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), VECTOR(TS_F32, -0.0, 0.0)), SCALAR(TS_F32, 0.0));
  test_equal(reduce(TS_OP_REDUCE_MIN, SHAPE(0), VECTOR(TS_F32, 0.0, -0.0)), SCALAR(TS_F32, -0.0));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), VECTOR(TS_F16, -INFINITY)), SCALAR(TS_F16, -INFINITY));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0), VECTOR(TS_F32, -0.0, -0.0)), SCALAR(TS_F32, 0.0));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0), VECTOR(TS_U8, 200, 100)), SCALAR(TS_U8, 44));
  test_equal(reduce(TS_OP_REDUCE_ALL, SHAPE(0), VECTOR(TS_F32, NAN, 1)), SCALAR(TS_U8, 1));
  test_equal(reduce(TS_OP_REDUCE_ALL, SHAPE(0), VECTOR(TS_F32, NAN, -0.0)), SCALAR(TS_U8, 0));
  test_equal(reduce(TS_OP_REDUCE_ANY, SHAPE(0), VECTOR(TS_S64, 0, 256)), SCALAR(TS_U8, 1));
  test_equal(reduce(TS_OP_REDUCE_ANY, SHAPE(1), TENSOR(TS_BF16, SHAPE(2, 2), 0, -0.0, 0, NAN)), VECTOR(TS_U8, 0, 1));
}
END_TEST

START_TEST(empty_reductions_give_the_identity)
{
  ts_shape none = SHAPE(0);
  ts_buffer *rows = TENSOR(TS_F32, SHAPE(2, 0));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(1), rows), VECTOR(TS_F32, 0, 0));
  test_equal(reduce(TS_OP_REDUCE_PRODUCT, SHAPE(0), TENSOR(TS_S16, none)), SCALAR(TS_S16, 1));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), TENSOR(TS_F16, none)), SCALAR(TS_F16, -INFINITY));
  test_equal(reduce(TS_OP_REDUCE_MIN, SHAPE(0), TENSOR(TS_F64, none)), SCALAR(TS_F64, INFINITY));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), TENSOR(TS_S8, none)), SCALAR(TS_S8, -128));
  test_equal(reduce(TS_OP_REDUCE_MAX, SHAPE(0), TENSOR(TS_U8, none)), SCALAR(TS_U8, 0));
  test_equal(reduce(TS_OP_REDUCE_MIN, SHAPE(0), TENSOR(TS_U8, none)), SCALAR(TS_U8, 255));
  test_equal(reduce(TS_OP_REDUCE_ALL, SHAPE(0), TENSOR(TS_F32, none)), SCALAR(TS_U8, 1));
  test_equal(reduce(TS_OP_REDUCE_ANY, SHAPE(0), TENSOR(TS_F32, none)), SCALAR(TS_U8, 0));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0), TENSOR(TS_F32, SHAPE(2, 0))), TENSOR(TS_F32, none));
}
END_TEST

/* A vector of zeros with a few other elements. */
static ts_buffer *sparse(ts_dtype type, int64_t size, int count, const int64_t *at, const double *values) {
  ts_shape shape = SHAPE(size);
  double *all = calloc((size_t)size, sizeof(double));
  for (int i = 0; i < count; i++) all[at[i]] = values[i];
  ts_buffer *vector = test_tensor(type, shape, all, (size_t)size);
  free(all);
  return vector;
}

static ts_buffer *sum_sparse(ts_dtype type, int64_t size, int count, const int64_t *at, const double *values) {
  return reduce(TS_OP_REDUCE_SUM, SHAPE(0), sparse(type, size, count, at, values));
}

/* 2^24 swallows a 1 that is added to it in f32, so each sum says who met whom first. */
START_TEST(sums_follow_the_tree)
{
  const double big_one_big[] = {0x1p24, 1, -0x1p24}, big_big_one[] = {0x1p24, -0x1p24, 1};
  /* Lanes 0, 1, 2: lane 0 meets lane 2 first (h = 2). */
  test_equal(sum_sparse(TS_F32, 3, 3, (int64_t[]){0, 1, 2}, big_one_big), SCALAR(TS_F32, 1));
  /* Lanes 0 and 16 meet first, at h = 16. */
  test_equal(sum_sparse(TS_F32, 32, 3, (int64_t[]){0, 8, 16}, big_one_big), SCALAR(TS_F32, 1));
  /* 0 and 1 meet last; 1 takes the element of lane 17 before. */
  test_equal(sum_sparse(TS_F32, 32, 3, (int64_t[]){0, 1, 17}, (double[]){0x1p24, -0x1p24, -1}), SCALAR(TS_F32, 0));
  /* In one lane, in increasing k. */
  test_equal(sum_sparse(TS_F32, 128, 3, (int64_t[]){5, 37, 69}, big_one_big), SCALAR(TS_F32, 0));
  test_equal(sum_sparse(TS_F32, 128, 3, (int64_t[]){5, 37, 69}, big_big_one), SCALAR(TS_F32, 1));
}
END_TEST

START_TEST(sums_follow_the_blocks)
{
  const int64_t block = TS_REDUCE_BLOCK;
  const double big_one_big[] = {0x1p24, 1, -0x1p24};
  /* All in lane 0 and one block: in order. In blocks 0, 1, 2: as lanes 0, 1, 2. */
  test_equal(sum_sparse(TS_F32, block, 3, (int64_t[]){0, 32, block - 32}, big_one_big), SCALAR(TS_F32, 0));
  test_equal(sum_sparse(TS_F32, 2 * block + 1, 3, (int64_t[]){0, block, 2 * block}, big_one_big), SCALAR(TS_F32, 1));
  /* The 1 is swallowed within block 0, before block 1 is seen. */
  test_equal(sum_sparse(TS_F32, 2 * block, 3, (int64_t[]){0, 32, block}, big_one_big), SCALAR(TS_F32, 0));
  test_equal(sum_sparse(TS_F64, 2 * block, 3, (int64_t[]){0, 32, block}, big_one_big), SCALAR(TS_F64, 1));
}
END_TEST

START_TEST(halves_accumulate_in_f32)
{
  const double values[] = {2048, 1, 1};
  test_equal(sum_sparse(TS_F16, 64, 3, (int64_t[]){0, 32, 1}, values), SCALAR(TS_F16, 2050));
  test_equal(reduce(TS_OP_REDUCE_SUM, SHAPE(0), VECTOR(TS_F16, 60000, 60000, -60000)), SCALAR(TS_F16, 60000));
  test_equal(reduce(TS_OP_REDUCE_PRODUCT, SHAPE(0), VECTOR(TS_BF16, 1.0078125, 1.0078125)), SCALAR(TS_BF16, 1.015625));
}
END_TEST

/* reduce with the region acc - x, which tells a left fold from any other order. */
static ts_buffer *reduce_subtract(ts_dtype type, ts_shape shape, ts_dims axes, ts_buffer *operand, double init) {
  ts_graph *graph = test_graph();
  ts_region_id region;
  test_ok(ts_graph_add_region(graph, &region));
  ts_value_id acc = test_add_param(graph, region, type, SHAPE()), x = test_add_param(graph, region, type, SHAPE());
  ts_value_id difference = OP(graph, region, TS_OP_SUBTRACT, NULL, acc, x);
  test_ok(ts_graph_set_results(graph, region, &difference, 1));
  ts_attrs attrs = {.reduce = {.axes = axes, .region = region}};
  ts_value_id tensor = test_add_param(graph, TS_ROOT, type, shape);
  ts_value_id reduced = OP(graph, TS_ROOT, TS_OP_REDUCE, &attrs, tensor, test_add_constant(graph, TS_ROOT, type, init));
  test_ok(ts_graph_set_results(graph, TS_ROOT, &reduced, 1));
  return test_run_graph(graph, &operand, 1);
}

START_TEST(region_reduce_is_a_left_fold)
{
  test_equal(reduce_subtract(TS_S32, SHAPE(2, 3), SHAPE(1), matrix(TS_S32), 100), VECTOR(TS_S32, 91, 88));
  test_equal(reduce_subtract(TS_S32, SHAPE(2, 3), SHAPE(0), matrix(TS_S32), 0), VECTOR(TS_S32, -5, -7, -9));
  test_equal(reduce_subtract(TS_F32, SHAPE(0), SHAPE(0), TENSOR(TS_F32, SHAPE(0)), 7), SCALAR(TS_F32, 7));
  /* In order the 1 is swallowed; the tree would keep it. */
  test_equal(reduce_subtract(TS_F32, SHAPE(3), SHAPE(0), VECTOR(TS_F32, -0x1p24, -1, 0x1p24), 0), SCALAR(TS_F32, 0));
}
END_TEST

static ts_buffer *arg(ts_opcode code, int32_t axis, bool high, ts_dtype type, ts_buffer *operand) {
  ts_attrs attrs = {.arg = {.axis = axis, .high = high, .dtype = type}};
  return RUN(code, &attrs, operand);
}

START_TEST(arg_reductions)
{
  test_equal(arg(TS_OP_ARGMAX, 1, false, TS_S32, matrix(TS_F32)), VECTOR(TS_S32, 1, 2));
  test_equal(arg(TS_OP_ARGMIN, 0, false, TS_U8, matrix(TS_S8)), VECTOR(TS_U8, 0, 1, 0));
  test_equal(arg(TS_OP_ARGMAX, -1, false, TS_S64, matrix(TS_U32)), SCALAR(TS_S64, 5));
  test_equal(arg(TS_OP_ARGMAX, 0, false, TS_S32, VECTOR(TS_S32, 1, 7, 7, 2)), SCALAR(TS_S32, 1));
  test_equal(arg(TS_OP_ARGMAX, 0, true, TS_S32, VECTOR(TS_S32, 1, 7, 7, 2)), SCALAR(TS_S32, 2));
  test_equal(arg(TS_OP_ARGMIN, 0, true, TS_S32, VECTOR(TS_F16, -0.0, 0.0, 1)), SCALAR(TS_S32, 1));
  test_equal(arg(TS_OP_ARGMIN, 0, false, TS_S32, VECTOR(TS_F64, 0.0, -0.0)), SCALAR(TS_S32, 0));
  test_equal(arg(TS_OP_ARGMAX, 0, false, TS_S32, VECTOR(TS_F32, INFINITY, NAN, NAN, 1)), SCALAR(TS_S32, 1));
  test_equal(arg(TS_OP_ARGMIN, 0, true, TS_S32, VECTOR(TS_F32, -INFINITY, NAN, NAN, 1)), SCALAR(TS_S32, 2));
  test_equal(arg(TS_OP_ARGMIN, 0, false, TS_S32, VECTOR(TS_BF16, NAN, -1)), SCALAR(TS_S32, 0));
  test_equal(arg(TS_OP_ARGMAX, 1, false, TS_S32, TENSOR(TS_F32, SHAPE(2, 0))), VECTOR(TS_S32, 0, 0));
  test_equal(arg(TS_OP_ARGMAX, -1, true, TS_S32, SCALAR(TS_F32, 3)), SCALAR(TS_S32, 0));
}
END_TEST

static ts_buffer *scan(ts_opcode code, int32_t axis, bool reverse, ts_buffer *operand) {
  ts_attrs attrs = {.scan = {.axis = axis, .reverse = reverse}};
  return RUN(code, &attrs, operand);
}

START_TEST(scans)
{
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 1, false, matrix(TS_F32)), TENSOR(TS_F32, SHAPE(2, 3), 1, 6, 9, 4, 6, 12));
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 1, true, matrix(TS_S8)), TENSOR(TS_S8, SHAPE(2, 3), 9, 8, 3, 12, 8, 6));
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 0, false, matrix(TS_F64)), TENSOR(TS_F64, SHAPE(2, 3), 1, 5, 3, 5, 7, 9));
  test_equal(scan(TS_OP_CUMULATIVE_PRODUCT, 0, true, VECTOR(TS_U8, 16, 16, 2)), VECTOR(TS_U8, 0, 32, 2));
  test_equal(scan(TS_OP_CUMULATIVE_MAX, 0, false, VECTOR(TS_F32, 1, NAN, 2)), VECTOR(TS_F32, 1, NAN, NAN));
  test_equal(scan(TS_OP_CUMULATIVE_MIN, 0, false, VECTOR(TS_S16, 3, 5, 2)), VECTOR(TS_S16, 3, 3, 2));
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 0, false, VECTOR(TS_F16, 2048, 1, 1)), VECTOR(TS_F16, 2048, 2048, 2050));
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 0, false, VECTOR(TS_F32, -0.0)), VECTOR(TS_F32, 0.0));
  test_equal(scan(TS_OP_CUMULATIVE_SUM, 0, false, TENSOR(TS_F32, SHAPE(0))), TENSOR(TS_F32, SHAPE(0)));
}
END_TEST

START_TEST(dot_matrix)
{
  ts_attrs attrs = {.dot = {.lhs_contract = SHAPE(1), .rhs_contract = SHAPE(0)}};
  ts_dtype types[] = {TS_F16, TS_BF16, TS_F32, TS_F64, TS_S8, TS_S32, TS_U8, TS_U64};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    ts_buffer *left = TENSOR(types[t], SHAPE(2, 2), 1, 2, 3, 4), *right = TENSOR(types[t], SHAPE(2, 2), 5, 6, 7, 8);
    test_equal(RUN(TS_OP_DOT, &attrs, left, right), TENSOR(types[t], SHAPE(2, 2), 19, 22, 43, 50));
  }
  test_equal(RUN(TS_OP_DOT, &attrs, TENSOR(TS_F32, SHAPE(1, 0)), TENSOR(TS_F32, SHAPE(0, 2))),
             TENSOR(TS_F32, SHAPE(1, 2), 0, 0));
}
END_TEST

START_TEST(dot_general)
{
  /* result[b, i, j] = sum over k, l of left[k, b, i, l] * right[b, l, k, j] */
  ts_attrs attrs = {
      .dot = {.lhs_contract = SHAPE(0, 3), .rhs_contract = SHAPE(2, 1), .lhs_batch = SHAPE(1), .rhs_batch = SHAPE(0)}};
  ts_buffer *left = TENSOR(TS_S32, SHAPE(2, 2, 1, 2), 1, 2, 3, 4, 5, 6, 7, 8);
  ts_buffer *right = TENSOR(TS_S32, SHAPE(2, 2, 2, 1), 1, 2, 3, 4, 5, 6, 7, 8);
  /* b = 0: 1*1 + 2*3 + 5*2 + 6*4; b = 1: 3*5 + 4*7 + 7*6 + 8*8 */
  test_equal(RUN(TS_OP_DOT, &attrs, left, right), TENSOR(TS_S32, SHAPE(2, 1, 1), 41, 149));
  attrs = (ts_attrs){.dot = {.lhs_contract = SHAPE()}};
  test_equal(RUN(TS_OP_DOT, &attrs, VECTOR(TS_S8, 1, 2), VECTOR(TS_S8, 3, 100)),
             TENSOR(TS_S8, SHAPE(2, 2), 3, 100, 6, -56));
  test_equal(RUN(TS_OP_DOT, &attrs, SCALAR(TS_F32, 3), SCALAR(TS_F32, 4)), SCALAR(TS_F32, 12));
}
END_TEST

START_TEST(dot_rounding)
{
  ts_attrs vectors = {.dot = {.lhs_contract = SHAPE(0), .rhs_contract = SHAPE(0)}};
  ts_attrs row = {.dot = {.lhs_contract = SHAPE(1), .rhs_contract = SHAPE(0)}};
  /* fma keeps the low half of the second product: x*x - rounded(x*x). Two terms of vectors are in different
   * lanes, whose products round by themselves. */
  double x = 1 + 0x1p-23, rounded = (double)(float)(x * x), rest = ts_target_host()->fma ? 0x1p-46 : 0;
  test_equal(RUN(TS_OP_DOT, &row, TENSOR(TS_F32, SHAPE(1, 2), -1, x), VECTOR(TS_F32, rounded, x)),
             VECTOR(TS_F32, rest));
  test_equal(RUN(TS_OP_DOT, &vectors, VECTOR(TS_F32, -1, x), VECTOR(TS_F32, rounded, x)), SCALAR(TS_F32, 0));
  test_equal(RUN(TS_OP_DOT, &row, TENSOR(TS_F32, SHAPE(1, 3), 0x1p24, 1, -0x1p24), VECTOR(TS_F32, 1, 1, 1)),
             VECTOR(TS_F32, 0));
  test_equal(RUN(TS_OP_DOT, &vectors, VECTOR(TS_F32, 0x1p24, 1, -0x1p24), VECTOR(TS_F32, 1, 1, 1)), SCALAR(TS_F32, 1));
  test_equal(RUN(TS_OP_DOT, &vectors, VECTOR(TS_F16, 2048, 1, 1), VECTOR(TS_F16, 1, 1, 1)), SCALAR(TS_F16, 2050));
  test_equal(RUN(TS_OP_DOT, &vectors, VECTOR(TS_F32, -0.0), VECTOR(TS_F32, 1)), SCALAR(TS_F32, 0.0));
  test_equal(RUN(TS_OP_DOT, &row, TENSOR(TS_F32, SHAPE(1, 1), -0.0), VECTOR(TS_F32, 1)), VECTOR(TS_F32, 0.0));
}
END_TEST

/* After 2^24, ones are lost in f32: only the ones in the chain of a lane, not all later ones. */
START_TEST(long_dots)
{
  const int64_t n = 20001;
  ts_attrs attrs = {.dot = {.lhs_contract = SHAPE(0), .rhs_contract = SHAPE(0)}};
  ts_buffer *ones[2];
  for (int i = 0; i < 2; i++) {
    ts_buffer *one = SCALAR(TS_F32, 1);
    ones[i] = RUN(TS_OP_BROADCAST, &(ts_attrs){.broadcast = {.shape = SHAPE(n)}}, one);
  }
  ((float *)ones[0]->data)[0] = 0x1p24F;
  test_equal(RUN(TS_OP_DOT, &attrs, ones[0], ones[1]),
             SCALAR(TS_F32, (double)(float)(0x1p24 + (double)(n - TS_DOT_CHAIN))));
}
END_TEST

enum { LONG_SUM = 3 * TS_CONTRACT_BLOCK + TS_CONTRACT_CHAIN + 7 };

/* A few numbers whose sums round, cancel and overflow; or many that do not overflow. */
static void fill_factors(ts_dtype type, int64_t k, double *lhs, double *rhs) {
  const double big = type == TS_F64 ? 0x1p1000 : type == TS_F16 ? 0x1p15 : 0x1p100, third = 1.0 / 3;
  const double few[2][12] = {{-big, big, 1, 1, third, 0.1, -0.7, 3, 0.3, 1e-3, big, third},
                             {big, third, big, 0.9, 0, -0.1, 1, third}};
  for (int i = 0; i < 3 * k; i++) lhs[i] = rhs[i] = (double)((i * 7919) % 1009) / 1009 - 0.3;
  if (k > 4) return;
  memcpy(lhs, few[0], sizeof few[0]);
  memcpy(rhs, few[1], sizeof few[1]);
}

/* Also where products round, or pass the end of the range, before they are added; of several chains and blocks
 * (tensor/contract_order.h). */
START_TEST(dot_is_what_products_are)
{
  static const ts_dtype types[] = {TS_F16, TS_BF16, TS_F32, TS_F64};
  static const int64_t sizes[][3] = {{3, 2, 4}, {2, 3, LONG_SUM}};
  static double numbers[2][3 * LONG_SUM];
  const int64_t m = sizes[_i][0], n = sizes[_i][1], k = sizes[_i][2];
  ts_attrs attrs = {.dot = {.lhs_contract = SHAPE(1), .rhs_contract = SHAPE(0)}};
  ts_gemm_shape shape = {1, m, n, k, m * k, k, 1, k * n, n, 1, m * n, n};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    fill_factors(types[t], k, numbers[0], numbers[1]);
    ts_buffer *lhs = test_tensor(types[t], SHAPE(m, k), numbers[0], m * k);
    ts_buffer *rhs = test_tensor(types[t], SHAPE(k, n), numbers[1], k * n);
    ts_buffer *product = TENSOR(types[t], SHAPE(m, n), 0, 0, 0, 0, 0, 0);
    ts_gemm *gemm;
    ck_assert_ok(ts_gemm_get(types[t], &shape, &gemm));
    ck_assert_ok(ts_gemm_run(gemm, &shape,
                             &(ts_gemm_call){.lhs = lhs->data,
                                             .rhs = rhs->data,
                                             .out = product->data,
                                             .parallel = &ts_parallel_serial,
                                             .pool = ts_pool_default()}));
    ts_gemm_release(gemm);
    test_equal(RUN(TS_OP_DOT, &attrs, lhs, rhs), product);
  }
}
END_TEST

/* Each op of the classes that combine has a combiner, whose identity changes no value. */
START_TEST(identities_change_nothing)
{
  for (ts_opcode code = 0; code < TS_OP_COUNT; code++) {
    const ts_combiner *by = ts_combiner_of(code);
    ts_op_class class = ts_op_get_class(code);
    bool combines = (class == TS_CLASS_REDUCE && code != TS_OP_REDUCE) || class == TS_CLASS_SCAN ||
                    (class == TS_CLASS_WINDOW && code != TS_OP_WINDOW_SCATTER_MAX && code != TS_OP_WINDOW_SCATTER_MIN);
    ck_assert_msg((by != NULL) == combines, "%s", ts_op_name(code));
    for (ts_dtype type = 0; by && type < TS_DTYPE_COUNT; type++) {
      if (!ts_dtype_has_kernels(type) || ts_dtype_get_kind(type) == TS_KIND_COMPLEX) continue;
      ts_dtype of = by->logical ? TS_U8 : ts_dtype_accumulator(type);
      ts_scalar identity = ts_combiner_identity(by, of);
      for (int i = 0; i < (by->logical ? 2 : 5); i++) {
        ts_scalar x = ts_scalar_from_s64(of, by->logical ? i : i * 30 - 60),
                  same = ts_ref_binary(by->op, of, identity, x);
        ck_assert_msg(same.bits == x.bits, "%s of %s", ts_op_name(code), ts_dtype_name(type));
      }
    }
  }
  ck_assert_ptr_null(ts_combiner_of(TS_OP_COUNT));
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("ref_reduce");
  TCase *cases = tcase_create("reduce");
  tcase_add_checked_fixture(cases, test_leaks_begin, test_leaks_end);
  tcase_add_test(cases, reduces_any_axes);
  tcase_add_test(cases, reduces_specials);
  tcase_add_test(cases, empty_reductions_give_the_identity);
  tcase_add_test(cases, identities_change_nothing);
  tcase_add_test(cases, sums_follow_the_tree);
  tcase_add_test(cases, sums_follow_the_blocks);
  tcase_add_test(cases, halves_accumulate_in_f32);
  tcase_add_test(cases, region_reduce_is_a_left_fold);
  tcase_add_test(cases, arg_reductions);
  tcase_add_test(cases, scans);
  tcase_add_test(cases, dot_matrix);
  tcase_add_test(cases, dot_general);
  tcase_add_test(cases, dot_rounding);
  tcase_add_test(cases, long_dots);
  suite_add_tcase(all, cases);
  TCase *machine = tcase_create("machine"); /* kernels are kept */
  tcase_add_loop_test(machine, dot_is_what_products_are, 0, 2);
  test_add_lesser_isas(machine);
  suite_add_tcase(all, machine);
  return all;
}

int main(void) { return testing_run(suite()); }
