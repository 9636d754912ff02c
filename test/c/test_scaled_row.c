/* One row times a matrix of 8 bits with scales: compiled against interpreted, for each type, sizes around those of
 * blocks, chains and tasks, long sums, batches, one scale for all, special scales; threads, cancelling, allocations
 * that fail; that the code of this file's subject computes them. */
#include "exec/executable.h"
#include "kernel/gemm/scaled_row.h"
#include "kernel/ref/ref.h"
#include "lesser_isa.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include <math.h>
#include <string.h>

typedef struct row_case {
  int64_t batch, k, n;
  ts_dtype x, matrix, out;
  bool one_scale, turned; /* turned: the elements of a column are neighbours */
} row_case;

static const row_case kinds[] = {
    {0, 0, 0, TS_F32, TS_S8, TS_F32, false, false},  {0, 0, 0, TS_F32, TS_U8, TS_F32, false, true},
    {0, 0, 0, TS_BF16, TS_S8, TS_BF16, false, true}, {0, 0, 0, TS_BF16, TS_U8, TS_BF16, false, false},
    {0, 0, 0, TS_BF16, TS_S8, TS_F32, false, true},  {0, 0, 0, TS_F32, TS_U8, TS_F32, true, false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static ts_buffer *numbers(ts_dtype type, ts_shape shape, uint64_t seed, double scale) {
  ts_buffer *x;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &x));
  for (int64_t i = 0; i < ts_shape_elements(&shape); i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const uint64_t bits = seed >> 32;
    const ts_scalar value = ts_dtype_is_integer(type)
                                ? ts_scalar_from_u64(type, bits)
                                : ts_scalar_from_f64(type, ((double)bits / 2147483648.0 - 1) * scale);
    ts_scalar_store(type, value, (char *)x->data + i * (int64_t)ts_dtype_size(type));
  }
  return x;
}

static void make_args(const row_case *c, ts_buffer *out[3]) {
  out[0] = numbers(c->x, SHAPE(c->batch, 1, c->k), 1, 2);
  out[1] = numbers(c->matrix, c->turned ? SHAPE(c->batch, c->n, c->k) : SHAPE(c->batch, c->k, c->n), 2, 0);
  out[2] = numbers(c->out, c->one_scale ? SHAPE() : SHAPE(c->batch, c->n), 3, 0.5);
}

static ts_graph *make_graph(const row_case *c, ts_buffer *const *args) {
  ts_graph *graph = test_graph();
  ts_value_id x[3];
  for (int i = 0; i < 3; i++) {
    ts_shape shape = {.rank = args[i]->shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = args[i]->shape.dims[d];
    x[i] = test_add_param(graph, TS_ROOT, args[i]->dtype, shape);
  }
  ts_attrs attrs = {.scaled_dot = {.lhs_contract = SHAPE(2),
                                   .lhs_batch = SHAPE(0),
                                   .rhs_contract = SHAPE(c->turned ? 2 : 1),
                                   .rhs_batch = SHAPE(0),
                                   .operand = 1,
                                   .axes = c->one_scale ? SHAPE() : SHAPE(0, c->turned ? 1 : 2)}};
  ts_value_id out = test_add_op(graph, TS_ROOT, TS_OP_SCALED_DOT, &attrs, x, 3);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
  return graph;
}

static void check_with(const row_case *c, ts_buffer **args) {
  ts_graph *graph = make_graph(c, args);
  ts_executable *exe;
  ts_buffer *got, *want;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 3, NULL, &got));
  ck_assert_ok(ts_ref_run(graph, args, 3, ts_pool_default(), &want));
  test_equal(got, want);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}

static void drop(ts_buffer **args) {
  for (int i = 0; i < 3; i++) ts_buffer_release(args[i]);
}

START_TEST(sizes)
{
  static const int64_t ns[] = {1, 15, 63, 64, 65, 130, 1100}, ks[] = {1, 7, 8, 9, 127, 128, 129, 300};
  for (size_t n = 0; n < sizeof ns / sizeof *ns; n++)
    for (size_t k = 0; k < sizeof ks / sizeof *ks; k++) {
      row_case c = kinds[_i];
      ts_buffer *args[3];
      c.batch = 1 + (int64_t)((n + k) % 2);
      c.k = ks[k];
      c.n = ns[n];
      make_args(&c, args);
      check_with(&c, args);
      drop(args);
    }
}
END_TEST

/* Blocks of a long contraction, added in pairs. */
START_TEST(long_sums)
{
  static const int64_t ks[] = {8192, 8193, 24700};
  row_case c = kinds[_i % KINDS];
  ts_buffer *args[3];
  c.batch = 1;
  c.k = ks[_i / KINDS];
  c.n = 70;
  make_args(&c, args);
  check_with(&c, args);
  drop(args);
}
END_TEST

/* Of bf16, whose rounding takes no NaN, another way computes them. */
START_TEST(special_scales)
{
  static const float special[] = {INFINITY, -INFINITY, NAN, 3e38f, 1e-44f, 1e-39f, -0.0f, 1.17e-38f};
  row_case c = kinds[_i % KINDS];
  ts_buffer *args[3];
  c.batch = 1;
  c.k = 140;
  c.n = 70;
  make_args(&c, args);
  const int64_t size = (int64_t)ts_dtype_size(c.out), count = ts_shape_elements(&args[2]->shape);
  const int first = _i / KINDS ? 3 : 0; /* with infinities and NaN, and without */
  for (int64_t i = 0; i < count; i += 3)
    ts_scalar_store(c.out, ts_scalar_from_f64(c.out, (double)special[first + i % (8 - first)]),
                    (char *)args[2]->data + i * size);
  check_with(&c, args);
  drop(args);
}
END_TEST

START_TEST(threads)
{
  row_case c = kinds[_i];
  ts_buffer *args[3];
  c.batch = 2;
  c.k = 520;
  c.n = 2100;
  make_args(&c, args);
  ts_graph *graph = make_graph(&c, args);
  check_routine_threads(graph, args);
  check_routine_cancelled(graph, args);
  ts_graph_destroy(graph);
  drop(args);
}
END_TEST

START_TEST(allocations)
{
  row_case c = kinds[_i];
  ts_buffer *args[3];
  c.batch = 1;
  c.k = 9;
  c.n = 66;
  make_args(&c, args);
  ts_graph *graph = make_graph(&c, args);
  check_routine_allocations(graph, args);
  ts_graph_destroy(graph);
  drop(args);
}
END_TEST

/* Products that the routine takes: one row; elements that are neighbours along rows or columns; finite scales if the
 * scaled elements are rounded. */
START_TEST(which)
{
  static const uint16_t infinite[2] = {0x3F80, 0x7F80};
  struct ts_gemm gemm = {.types = {TS_F32, TS_S8, TS_F32}};
  ts_gemm_scale scale = {.at = infinite, .operand = 1, .unit = 1};
  gemm_run run = {.gemm = &gemm, .scale = &scale, .chain = TS_CONTRACT_CHAIN};
  run.shape = (ts_gemm_shape){.batch = 1, .m = 1, .n = 1, .k = 4, .rhs_row = 2, .rhs_col = 1};
  ck_assert(ts_gemm_is_scaled_row(&run));
  gemm.types = (ts_gemm_types){TS_BF16, TS_U8, TS_BF16};
  ck_assert(ts_gemm_is_scaled_row(&run));
  run.shape.n = 2;
  ck_assert(!ts_gemm_is_scaled_row(&run));
  run.shape.n = 1;
  run.shape.m = 2;
  ck_assert(!ts_gemm_is_scaled_row(&run));
  run.shape.m = 1;
  run.shape.rhs_col = 8;
  ck_assert(!ts_gemm_is_scaled_row(&run));
  run.shape.rhs_row = 1;
  ck_assert(ts_gemm_is_scaled_row(&run));
  run.shape.rhs_col = 1;
  run.scale = NULL;
  ck_assert(!ts_gemm_is_scaled_row(&run));
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("scaled_row");
  TCase *t = tcase_create("scaled_row");
  tcase_add_checked_fixture(t, test_leaks_begin_after_products, test_leaks_end);
  tcase_set_timeout(t, 300);
  testing_add_many(t, sizes, KINDS);
  testing_add_many(t, long_sums, 3 * KINDS);
  testing_add_many(t, special_scales, 2 * KINDS);
  tcase_add_loop_test(t, threads, 0, KINDS);
  tcase_add_loop_test(t, allocations, 0, KINDS);
  tcase_add_test(t, which);
  suite_add_tcase(s, t);
  TCase *lesser = tcase_create("lesser");
  tcase_set_timeout(lesser, 600);
  test_add_lesser_isas(lesser);
  suite_add_tcase(s, lesser);
  return s;
}

int main(void) { return testing_run(suite()); }
