/* Cumulative ops against the interpreter: every type, axis and direction, empty and odd shapes. */
#include "exec/executable.h"
#include "exec/pool.h"
#include "kernel/scan/scan.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include <math.h>

#include "kernel/ref/ref.h"
#include "tool/compare.h"

static const char *const types[] = {"s8",  "s16", "s32",  "s64", "u8",  "u16", "u32",
                                    "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
enum { COMPLEX = 12, SUMS = 2 }; /* types from COMPLEX on have the ops before SUMS */
static const char *const ops[] = {"cumulative_sum", "cumulative_product", "cumulative_min", "cumulative_max"};
/* Squares of lines and what is left beside them, few inner elements, an axis of one. */
static const char *const shapes[] = {"0",     "1",     "37",    "1000",  "0,3",   "3,0",    "5,7",    "64,33",
                                     "3,4,5", "2,1,9", "16,16", "17,64", "40,71", "6,40,2", "5,9,16", "20,1,3"};

static int rank_of(const char *shape) {
  int rank = 1;
  for (; *shape; shape++) rank += *shape == ',';
  return rank;
}

static void check_scan(const char *op, const char *type, const char *shape, int axis, bool reverse) {
  char text[256];
  int length = snprintf(text, sizeof text,
                        "graph @main(%%0: %s[%s]) -> (%s[%s]) {\n  %%1 = %s %%0 {axis = %d, reverse = %s} : %s[%s]\n"
                        "  return %%1\n}\n",
                        type, shape, type, shape, op, axis, reverse ? "true" : "false", type, shape);
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer **args, *expected, *got;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  ck_assert_ok(ts_random_args((uint64_t)length + (uint64_t)axis, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(graph, args, 1, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 1, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s%s", text, message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_random_args_free(args, 1);
  ts_graph_destroy(graph);
}

START_TEST(test_scans)
{
  for (size_t t = 0; t < (_i < SUMS ? sizeof types / sizeof *types : COMPLEX); t++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int axis = 0; axis < rank_of(shapes[s]); axis++)
        for (int reverse = 0; reverse < 2; reverse++) check_scan(ops[_i], types[t], shapes[s], axis, reverse);
}
END_TEST

/* Of several blocks (tensor/scan_order.h): one line, a few, many; a few columns, many; the ends of blocks. */
static const char *const long_shapes[] = {"8192",    "8193",     "50001",    "3,20000",  "5,20000", "20,8300",
                                          "20000,3", "2,9000,2", "8200,600", "6,8200,2", "16385,2", "8193,4"};

START_TEST(test_long_scans)
{
  static const char *const long_types[] = {"f32", "bf16", "f64", "s16", "c64", "f16"};
  for (size_t t = 0; t < (_i < SUMS ? sizeof long_types / sizeof *long_types : 4); t++)
    for (size_t s = 0; s < sizeof long_shapes / sizeof *long_shapes; s++) {
      const int axis = s == 7 || s == 9 || (s >= 3 && s < 6);
      if (!testing_takes((int64_t)(s + t) + _i, 3)) continue;
      if (s != 8 || t == 0) check_scan(ops[_i], long_types[t], long_shapes[s], axis, (s + t) % 2);
    }
}
END_TEST

static void run_backwards(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  for (int64_t t = tasks; t-- > 0;) fn(arg, t, (int)(t % self->width));
}

/* Any number of threads, with blocks and without, and in place. */
START_TEST(test_threads_change_no_bit)
{
  static const ts_shape of[] = {{.rank = 1, .dims = {100000}},   {.rank = 1, .dims = {65536}},
                                {.rank = 1, .dims = {40961}},    {.rank = 2, .dims = {5, 20001}},
                                {.rank = 2, .dims = {3, 32768}}, {.rank = 2, .dims = {30000, 3}}};
  enum { SHAPES = sizeof of / sizeof *of };
  static float in[100005], expected[100005], out[100005];
  for (int i = 0; i < 100005; i++) in[i] = (float)((i * 7919LL) % 1009) / 1009 - 0.3f;
  for (int s = 0; s < 2 * SHAPES; s++)
    for (int width = 0; width < 40; width += width < 4 ? 1 : 9) {
      const ts_parallel backwards = {.width = width ? width : 1, .run = run_backwards};
      const ts_shape *shape = &of[s % SHAPES];
      const int axis = shape->rank == 2 && shape->dims[0] < shape->dims[1];
      const ts_opcode op = s < SHAPES ? TS_OP_CUMULATIVE_SUM : TS_OP_CUMULATIVE_MAX;
      const ts_scan scan = {op, TS_F32, *shape, axis, (s + s / SHAPES) % 2};
      const size_t bytes = (size_t)ts_shape_elements(&scan.shape) * sizeof(float);
      char *space = width ? malloc((size_t)ts_scan_workspace(&scan)) : NULL;
      float *to = width == 0 ? expected : out;
      memcpy(to, in, bytes);
      ck_assert_ok(ts_scan_run(&scan, &(ts_scan_call){width % 2 ? in : to, to, space, &backwards, NULL}));
      ck_assert_mem_eq(to, expected, bytes);
      free(space);
    }
}
END_TEST

/* The larger, or the smaller, of two: NaN if either is, and -0 below +0. */
static double extreme(double a, double b, bool high) {
  if (isnan(a) || isnan(b)) return isnan(a) ? a : b;
  if (a == b) return (signbit(a) != 0) == high ? b : a;
  return (a > b) == high ? a : b;
}

/* Zeros and NaN of both signs, infinities, the least and the largest numbers, in lines of several blocks, one behind
 * the other and side by side. */
START_TEST(test_special_extremes)
{
  enum { N = 20000, LINES = 3 };
  static const ts_dtype of[] = {TS_F16, TS_BF16, TS_F32, TS_F64};
  const double some[] = {-0.0, 0.0, -1.0, 1.0, 0x1p-24, -0x1p-24, -INFINITY, 1.5, INFINITY};
  const ts_dtype type = of[_i / 4 % 4];
  const bool high = _i % 2, reverse = _i / 2 % 2, beside = _i / 16;
  const int64_t next = beside ? 1 : N, step = beside ? LINES : 1;
  const ts_shape shape = {.rank = 2, .dims = {beside ? N : LINES, beside ? LINES : N}};
  const ts_scan scan = {high ? TS_OP_CUMULATIVE_MAX : TS_OP_CUMULATIVE_MIN, type, shape, !beside, reverse};
  const size_t size = ts_dtype_size(type);
  char *data = malloc(LINES * N * size), *space = malloc((size_t)ts_scan_workspace(&scan));
  double *x = malloc(LINES * N * sizeof *x);
  for (int64_t i = 0; i < LINES * N; i++) {
    const int64_t at = i / step % N, line = i / next % LINES;
    x[i] = at * 37 % N < N / 2 ? some[at * 7 % 2] : some[(at * 7 + line) % (at % 5000 < 4000 ? 6 : 9)];
    if (line > 0 && at == (line == 1 ? 12000 : 100)) x[i] = line == 1 ? -NAN : NAN;
    const ts_scalar value = ts_scalar_from_f64(type, x[i]);
    memcpy(data + (size_t)i * size, &value, size);
  }
  ck_assert_ok(ts_scan_run(&scan, &(ts_scan_call){data, data, space, &ts_parallel_serial, NULL}));
  for (int64_t line = 0; line < LINES; line++) {
    double expected = high ? -INFINITY : INFINITY;
    for (int64_t k = 0; k < N; k++) {
      const int64_t i = line * next + (reverse ? N - 1 - k : k) * step;
      ts_scalar got = {0};
      memcpy(&got, data + (size_t)i * size, size);
      expected = extreme(expected, x[i], high);
      const double value = ts_scalar_to_f64(type, got);
      ck_assert_msg(isnan(expected) ? isnan(value) : value == expected && signbit(value) == signbit(expected),
                    "%s %s %lld of line %lld: %g, expected %g", ts_op_name(scan.op), ts_dtype_name(type), (long long)k,
                    (long long)line, value, expected);
    }
  }
  free(x);
  free(space);
  free(data);
}
END_TEST

/* Every result is the exact sum, rounded: a chain in f32 would end at 2^21. */
START_TEST(test_long_sums)
{
  enum { N = 3000000 };
  float *x = malloc(N * sizeof(float));
  double sum = 0;
  for (int i = 0; i < N; i++) x[i] = 0.1f;
  const ts_scan scan = {TS_OP_CUMULATIVE_SUM, TS_F32, {.rank = 1, .dims = {N}}, 0, false};
  ck_assert_ok(ts_scan_run(&scan, &(ts_scan_call){x, x, NULL, &ts_parallel_serial, NULL}));
  for (int i = 0; i < N; i++) {
    sum += (double)0.1f;
    ck_assert_msg(fabs((double)x[i] - sum) <= 0x1.00001p-24 * sum, "%d: %.9g, expected %.12g", i, (double)x[i], sum);
  }
  free(x);
}
END_TEST

/* One line, many lines, many columns. */
START_TEST(test_cancelled)
{
  static const ts_shape cancelled_shapes[] = {
      {.rank = 1, .dims = {100}}, {.rank = 2, .dims = {40, 50}}, {.rank = 2, .dims = {50, 40}}};
  const _Atomic bool cancel = true;
  float in[2000] = {1}, out[2000] = {0};
  for (int i = 0; i < 3; i++) {
    ts_scan scan = {TS_OP_CUMULATIVE_SUM, TS_F32, cancelled_shapes[i], i == 1 ? 1 : 0, false};
    ts_scan_call call = {.in = in, .out = out, .parallel = ts_pool_parallel(0), .cancel = &cancel};
    ck_assert_error(ts_scan_run(&scan, &call), TS_CANCELLED, "cumulative_sum");
  }
  for (int i = 100; i < 2000; i++) ck_assert(out[i] == 0); /* no task began a line */
}
END_TEST

int main(void) {
  Suite *suite = suite_create("scan");
  TCase *scans = tcase_create("scans");
  tcase_set_timeout(scans, 60);
  tcase_add_loop_test(scans, test_scans, 0, (int)(sizeof ops / sizeof *ops));
  tcase_add_loop_test(scans, test_long_scans, 0, (int)(sizeof ops / sizeof *ops));
  tcase_add_test(scans, test_threads_change_no_bit);
  tcase_add_loop_test(scans, test_special_extremes, 0, 32);
  tcase_add_test(scans, test_long_sums);
  tcase_add_test(scans, test_cancelled);
  suite_add_tcase(suite, scans);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failures = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failures == 0 ? 0 : 1;
}
