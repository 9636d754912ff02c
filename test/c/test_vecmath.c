#include "jit/emit/emit.h"
#include "lesser_isa.h"
#include "math_check.h"
#include "testing.h"

#include <math.h>
#include <string.h>

/* ck_assert_msg writes to a pipe each time: too slow for millions of values. */
#define CHECK_VALUE(condition, ...)              \
  do {                                           \
    if (!(condition)) ck_abort_msg(__VA_ARGS__); \
  } while (0)

/* Each function against wider arithmetic, on samples; `make accuracy` takes all inputs. */

enum { BLOCK = 4096 };
static float x[BLOCK], y[BLOCK], out[BLOCK];
static double wide_x[BLOCK], wide_y[BLOCK], wide_out[BLOCK];

static ts_kernel *get(const math_function *f, ts_dtype type) {
  ts_kernel *kernel = NULL;
  ck_assert_ok(math_kernel(f->op, type, &kernel));
  return kernel;
}

static void check_narrow(const math_function *f, double bound) {
  for (int i = 0; i < BLOCK; i++) {
    double want = f->narrow((double)x[i], (double)y[i]), error = math_error_f32(out[i], want);
    CHECK_VALUE(error <= bound, "%s(%a, %a) = %a, not %a: %g ULP", ts_op_name(f->op), (double)x[i], (double)y[i],
                (double)out[i], want, error);
    bool sign_kept = !f->odd || x[i] != 0 || signbit(x[i]) == signbit(out[i]);
    CHECK_VALUE(sign_kept, "%s(%a) = %a", ts_op_name(f->op), (double)x[i], (double)out[i]);
  }
}

/* Every 8009th bit pattern for unary functions, so that no input is left out by intent; then samples. */
static void check_f32(const math_function *f) {
  ts_kernel *kernel = get(f, TS_F32);
  uint64_t next = 0, state = 1;
  while (ts_op_operands(f->op) == 1 && next >> 32 == 0) {
    for (int i = 0; i < BLOCK; i++, next += 8009) {
      uint32_t bits = (uint32_t)next;
      memcpy(&x[i], &bits, sizeof(bits));
    }
    math_run(kernel, x, y, out, BLOCK);
    check_narrow(f, 2);
  }
  for (int round = 0; round < 24; round++) {
    math_draw(f->op, TS_F32, &state, x, y, BLOCK);
    math_run(kernel, x, y, out, BLOCK);
    check_narrow(f, 2);
  }
  ts_kernel_release(kernel);
}

static void check_f64(const math_function *f) {
  ts_kernel *kernel = get(f, TS_F64);
  uint64_t state = 2;
  for (int round = 0; round < 24; round++) {
    math_draw(f->op, TS_F64, &state, wide_x, wide_y, BLOCK);
    math_run(kernel, wide_x, wide_y, wide_out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      long double want = f->wide((long double)wide_x[i], (long double)wide_y[i]);
      double error = math_error_f64(wide_out[i], want);
      CHECK_VALUE(error <= 2, "%s(%a, %a) = %a, not %La: %g ULP", ts_op_name(f->op), wide_x[i], wide_y[i], wide_out[i],
                  want, error);
    }
  }
  ts_kernel_release(kernel);
}

/* All 65,536 inputs of f16 and bf16, at most 1 ULP. */
static void check_half(const math_function *f, ts_dtype type) {
  static uint16_t in[65536], half_y[65536], got[65536];
  bool f16 = type == TS_F16;
  uint64_t state = 3;
  math_draw(f->op, TS_F32, &state, x, y, BLOCK);
  for (int i = 0; i < 65536; i++) {
    in[i] = (uint16_t)i;
    half_y[i] = f16 ? ts_f32_to_f16(y[i % BLOCK]) : ts_f32_to_bf16(y[i % BLOCK]);
  }
  ts_kernel *kernel = get(f, type);
  math_run(kernel, in, half_y, got, 65536);
  for (int i = 0; i < 65536; i++) {
    double a = (double)(f16 ? ts_f16_to_f32(in[i]) : ts_bf16_to_f32(in[i]));
    double b = (double)(f16 ? ts_f16_to_f32(half_y[i]) : ts_bf16_to_f32(half_y[i]));
    double value = (double)(f16 ? ts_f16_to_f32(got[i]) : ts_bf16_to_f32(got[i]));
    double want = f->narrow(a, b), error = math_error(value, want, f16 ? 11 : 8, f16 ? -14 : -126, f16 ? 15 : 127);
    CHECK_VALUE(error <= 1, "%s %s(%a, %a) = %a, not %a: %g ULP", ts_dtype_name(type), ts_op_name(f->op), a, b, value,
                want, error);
  }
  ts_kernel_release(kernel);
}

/* One process for all functions: starting LLVM costs more than the check of a function. */
START_TEST(f32_within_two_ulp)
{
  for (int i = 0; i < math_function_count; i++) check_f32(&math_functions[i]);
}
END_TEST

START_TEST(f64_within_two_ulp)
{
  for (int i = 0; i < math_function_count; i++) check_f64(&math_functions[i]);
}
END_TEST

START_TEST(half_within_one_ulp)
{
  for (int i = 0; i < math_function_count; i++) {
    check_half(&math_functions[i], TS_F16);
    check_half(&math_functions[i], TS_BF16);
  }
}
END_TEST

static const math_function *function_of(ts_opcode op) {
  for (int i = 0; i < math_function_count; i++)
    if (math_functions[i].op == op) return &math_functions[i];
  return NULL;
}

/* The values that users know by heart. */
START_TEST(exact_values)
{
  static const struct {
    ts_opcode op;
    float x, want;
  } cases[] = {
      {TS_OP_EXP, 0, 1},
      {TS_OP_EXP, INFINITY, INFINITY},
      {TS_OP_EXP, -INFINITY, 0},
      {TS_OP_EXPM1, -INFINITY, -1},
      {TS_OP_LOG, 1, 0},
      {TS_OP_LOG, 0, -INFINITY},
      {TS_OP_LOG, -0.0f, -INFINITY},
      {TS_OP_LOG, -1, NAN},
      {TS_OP_LOG, INFINITY, INFINITY},
      {TS_OP_LOG1P, -1, -INFINITY},
      {TS_OP_LOG1P, -2, NAN},
      {TS_OP_SIGMOID, 0, 0.5f},
      {TS_OP_SIGMOID, INFINITY, 1},
      {TS_OP_SIGMOID, -INFINITY, 0},
      {TS_OP_TANH, INFINITY, 1},
      {TS_OP_TANH, -INFINITY, -1},
      {TS_OP_SIN, INFINITY, NAN},
      {TS_OP_COS, 0, 1},
      {TS_OP_COS, -INFINITY, NAN},
      {TS_OP_TAN, INFINITY, NAN},
      {TS_OP_COSH, 0, 1},
      {TS_OP_COSH, -INFINITY, INFINITY},
      {TS_OP_SINH, -INFINITY, -INFINITY},
      {TS_OP_ACOS, 1, 0},
      {TS_OP_ACOS, 1.5f, NAN},
      {TS_OP_ASIN, -1.5f, NAN},
      {TS_OP_ACOSH, 1, 0},
      {TS_OP_ACOSH, 0.5f, NAN},
      {TS_OP_ACOSH, INFINITY, INFINITY},
      {TS_OP_ASINH, -INFINITY, -INFINITY},
      {TS_OP_ATANH, 1, INFINITY},
      {TS_OP_ATANH, -1, -INFINITY},
      {TS_OP_ATANH, 2, NAN},
      {TS_OP_SQRT, -1, NAN},
      {TS_OP_RSQRT, 0, INFINITY},
      {TS_OP_RSQRT, INFINITY, 0},
      {TS_OP_RSQRT, -1, NAN},
      {TS_OP_CBRT, -27, -3},
      {TS_OP_ERF, INFINITY, 1},
      {TS_OP_ERF, -INFINITY, -1},
      {TS_OP_ERFC, 0, 1},
      {TS_OP_ERFC, INFINITY, 0},
      {TS_OP_ERFC, -INFINITY, 2},
      {TS_OP_ERF_INV, 1, INFINITY},
      {TS_OP_ERF_INV, -1, -INFINITY},
      {TS_OP_ERF_INV, 1.5f, NAN},
  };
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    ts_kernel *kernel = NULL;
    ck_assert_ok(math_kernel(cases[c].op, TS_F32, &kernel));
    for (int i = 0; i < 64; i++) x[i] = cases[c].x;
    math_run(kernel, x, y, out, 64);
    bool same = isnan(cases[c].want) ? isnan(out[0]) : out[0] == cases[c].want;
    ck_assert_msg(same, "%s(%g) = %a, not %g", ts_op_name(cases[c].op), (double)cases[c].x, (double)out[0],
                  (double)cases[c].want);
    ts_kernel_release(kernel);
  }
}
END_TEST

/* Functions whose result is the argument where its square is below the precision. */
static const ts_opcode identities_near_zero[] = {TS_OP_EXPM1, TS_OP_LOG1P, TS_OP_SINH, TS_OP_TANH,  TS_OP_SIN,
                                                 TS_OP_TAN,   TS_OP_ASIN,  TS_OP_ATAN, TS_OP_ASINH, TS_OP_ATANH};

/* Their subnormal arguments keep all bits, also the last one. */
START_TEST(subnormals_stay)
{
  static const float narrow[] = {0x1p-149f, 0x3p-149f, 0x7fffffp-149f, 0x1p-126f, 0x800001p-149f, 0};
  static const double wide[] = {0x1p-1074, 0x3p-1074, 0xfffffffffffffp-1074, 0x1p-1022, 0x10000000000001p-1074, 0};
  const ts_opcode op = identities_near_zero[_i];
  enum { COUNT = sizeof(narrow) / sizeof(narrow[0]) };
  for (int i = 0; i < 128; i++) {
    const int at = i / 2 % COUNT;
    x[i] = i % 2 ? -narrow[at] : narrow[at];
    wide_x[i] = i % 2 ? -wide[at] : wide[at];
  }
  ts_kernel *kernel = NULL, *wide_kernel = NULL;
  ck_assert_ok(math_kernel(op, TS_F32, &kernel));
  ck_assert_ok(math_kernel(op, TS_F64, &wide_kernel));
  math_run(kernel, x, y, out, 128);
  math_run(wide_kernel, wide_x, wide_y, wide_out, 128);
  for (int i = 0; i < 128; i++) {
    CHECK_VALUE(memcmp(&out[i], &x[i], sizeof(x[i])) == 0, "f32 %s(%a) = %a", ts_op_name(op), (double)x[i],
                (double)out[i]);
    CHECK_VALUE(memcmp(&wide_out[i], &wide_x[i], sizeof(wide_x[i])) == 0, "f64 %s(%a) = %a", ts_op_name(op), wide_x[i],
                wide_out[i]);
  }
  ts_kernel_release(kernel);
  ts_kernel_release(wide_kernel);
}
END_TEST

/* Equal bits, or two NaNs: their signs and payloads are not promised. */
static bool same_f32(float a, float b) { return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b)); }

static void check_special(ts_opcode op, const float (*cases)[3], size_t count) {
  ts_kernel *kernel = NULL;
  ck_assert_ok(math_kernel(op, TS_F32, &kernel));
  for (size_t c = 0; c < count; c++) {
    for (int i = 0; i < 64; i++) x[i] = cases[c][0], y[i] = cases[c][1];
    math_run(kernel, x, y, out, 64);
    ck_assert_msg(same_f32(out[0], cases[c][2]), "%s(%a, %a) = %a, not %a", ts_op_name(op), (double)cases[c][0],
                  (double)cases[c][1], (double)out[0], (double)cases[c][2]);
  }
  ts_kernel_release(kernel);
}

/* C99's table for pow. */
START_TEST(pow_special_values)
{
  static const float cases[][3] = {
      {0, -1, INFINITY},
      {-0.0f, -1, -INFINITY},
      {-0.0f, -2, INFINITY},
      {0, 3, 0},
      {-1, INFINITY, 1},
      {1, NAN, 1},
      {NAN, 0, 1},
      {-2, 0.5f, NAN},
      {0.5f, -INFINITY, INFINITY},
      {2, -INFINITY, 0},
      {0.5f, INFINITY, 0},
      {2, INFINITY, INFINITY},
      {-INFINITY, -3, -0.0f},
      {-INFINITY, 3, -INFINITY},
      {-INFINITY, 2, INFINITY},
      {INFINITY, -1, 0},
      {-2, 3, -8},
      {-2, 2, 4},
      {2, -149, 0x1p-149f},
      {NAN, 1, NAN},
      {-0.0f, 0.5f, 0},
      {-INFINITY, 0.5f, INFINITY},
      {INFINITY, 0.5f, INFINITY},
      {NAN, 0.5f, NAN},
      {0x1p-149f, -1, INFINITY},
      {0x1.5p-75f, 2, 0x1p-149f},
      {-2, 5, -32},
      {-2, 4, 16},
      {-2, -149, -0x1p-149f},
      {-2, -160, 0},
      {-2, 127, -0x1p127f},
      {-2, 129, -INFINITY},
      {-3, 1.5f, NAN},
      {-1, 16777215, -1},
      {-1, 0x1p100f, 1},
      {1, -0x1.fffffep127f, 1},
      {0x1p-149f, 4, 0},
      {0x1p-149f, -0.5f, 0x1.6a09e6p74f},
      {0x1.fffffep127f, 1.0000001f, INFINITY},
      {-0.0f, 5, -0.0f},
      {-0.0f, -5, -INFINITY},
      {2, NAN, NAN},
  };
  check_special(TS_OP_POW, cases, sizeof(cases) / sizeof(cases[0]));
}
END_TEST

static bool same_f64(double a, double b) { return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b)); }

/* The same table for f64, and exact powers at the ends of its range. */
START_TEST(pow_special_values_f64)
{
  static const double cases[][3] = {
      {0, -1.5, INFINITY},
      {-0.0, -3, -INFINITY},
      {-0.0, -2, INFINITY},
      {-0.0, 5, -0.0},
      {0, INFINITY, 0},
      {-1, INFINITY, 1},
      {-1, -INFINITY, 1},
      {1, NAN, 1},
      {1, -INFINITY, 1},
      {NAN, -0.0, 1},
      {-INFINITY, 0, 1},
      {NAN, 1.5, NAN},
      {2, NAN, NAN},
      {-2, 0.25, NAN},
      {-INFINITY, 0.25, INFINITY},
      {0.5, -INFINITY, INFINITY},
      {0x1.fffffffffffffp-1, INFINITY, 0},
      {0x1.0000000000001p0, INFINITY, INFINITY},
      {0x1.0000000000001p0, -INFINITY, 0},
      {-INFINITY, -3, -0.0},
      {-INFINITY, 3, -INFINITY},
      {-INFINITY, 4, INFINITY},
      {INFINITY, -4, 0},
      {2, 1023, 0x1p1023},
      {2, 1024, INFINITY},
      {2, -1074, 0x1p-1074},
      {2, -1076, 0},
      {-2, 1023, -0x1p1023},
      {-2, -1075.5, NAN},
      {0x1p-1074, -0.5, 0x1p537},
      {0x1p-1074, 2, 0},
      {0x1p-1074, -2, INFINITY},
      {-0x1p-1074, -0x1p100, INFINITY},
      {0x1.fffffffffffffp1023, 0x1.0000000000001p0, INFINITY},
      {0x1.0000000000001p0, 0x1.fffffffffffffp1023, INFINITY},
      {0x1.0000000000001p0, -0x1.fffffffffffffp1023, 0},
      {1, 0x1.fffffffffffffp1023, 1},
      {-1, 0x1.fffffffffffffp52, -1},
      {-1, 0x1p53, 1},
      {10, 5, 100000},
      {-10, 7, -10000000},
  };
  ts_kernel *kernel = NULL;
  ck_assert_ok(math_kernel(TS_OP_POW, TS_F64, &kernel));
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    for (int i = 0; i < 64; i++) wide_x[i] = cases[c][0], wide_y[i] = cases[c][1];
    math_run(kernel, wide_x, wide_y, wide_out, 64);
    ck_assert_msg(same_f64(wide_out[0], cases[c][2]), "pow(%a, %a) = %a, not %a", cases[c][0], cases[c][1], wide_out[0],
                  cases[c][2]);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Neighbours of the bounds between entries of the table of pow's logarithm, and of 1, with exponents whose results
 * are near the ends of the range. */
START_TEST(pow_at_table_bounds)
{
  const math_function *f = function_of(TS_OP_POW);
  ts_kernel *narrow = get(f, TS_F32), *wide = get(f, TS_F64);
  for (int i = 0; i < BLOCK; i++) {
    const int bound = i % 64, near = i / 64 % 8 - 4, sign = i / 512 % 2;
    double at = 0.6875 + bound / 64.0;
    wide_x[i] = ldexp(at + near * (at < 1 ? 0x1p-53 : 0x1p-52), i / 1024 % 2 ? i % 5 - 2 : 0);
    x[i] = (float)ldexp(at + near * (at < 1 ? 0x1p-24 : 0x1p-23), i / 1024 % 2 ? i % 5 - 2 : 0);
    wide_y[i] = (sign ? -1020.3 : 1019.7) / log2(wide_x[i]), y[i] = (sign ? -124.6f : 125.3f) / log2f(x[i]);
  }
  math_run(narrow, x, y, out, BLOCK);
  math_run(wide, wide_x, wide_y, wide_out, BLOCK);
  check_narrow(f, 1.5);
  for (int i = 0; i < BLOCK; i++) {
    double error = math_error_f64(wide_out[i], f->wide((long double)wide_x[i], (long double)wide_y[i]));
    CHECK_VALUE(error <= 1.5, "pow(%a, %a) = %a: %g ULP", wide_x[i], wide_y[i], wide_out[i], error);
  }
  ts_kernel_release(narrow);
  ts_kernel_release(wide);
}
END_TEST

/* erf_inv on both sides of where its tail begins, and up to 1. */
START_TEST(erf_inv_near_1)
{
  const math_function *f = function_of(TS_OP_ERF_INV);
  ts_kernel *narrow = get(f, TS_F32), *wide = get(f, TS_F64);
  for (int round = 0; round < 8; round++) {
    for (int i = 0; i < BLOCK; i++) {
      double part = (round * BLOCK + i) / (8.0 * BLOCK);
      wide_x[i] = 1 - exp2(-2 - 51 * part), x[i] = (float)(1 - exp2(-2 - 22 * part));
    }
    math_run(narrow, x, y, out, BLOCK);
    math_run(wide, wide_x, wide_y, wide_out, BLOCK);
    check_narrow(f, 2);
    for (int i = 0; i < BLOCK; i++) {
      double error = math_error_f64(wide_out[i], f->wide((long double)wide_x[i], 0));
      CHECK_VALUE(error <= 2, "erf_inv(%a) = %a: %g ULP", wide_x[i], wide_out[i], error);
    }
  }
  ts_kernel_release(narrow);
  ts_kernel_release(wide);
}
END_TEST

/* C99's table for atan2, and the eighths of the circle: their nearest floats. */
START_TEST(atan2_special_values)
{
  static const float pi = 0x1.921fb6p+1f;
  static const float cases[][3] = {
      {0, 0, 0},
      {-0.0f, 0, -0.0f},
      {0, -0.0f, pi},
      {-0.0f, -0.0f, -pi},
      {0, -1, pi},
      {-0.0f, 1, -0.0f},
      {1, 0, pi / 2},
      {-1, -0.0f, -pi / 2},
      {1, 1, pi / 4},
      {-1, -1, -0x1.2d97c8p+1f},
      {INFINITY, INFINITY, pi / 4},
      {INFINITY, -INFINITY, 0x1.2d97c8p+1f},
      {-INFINITY, 3, -pi / 2},
      {3, INFINITY, 0},
      {-3, INFINITY, -0.0f},
      {3, -INFINITY, pi},
      {0x1p-149f, 1, 0x1p-149f},
      {0x1p-149f, 0x1p-149f, pi / 4},
      {0x1p-149f, 0x1p127f, 0},
      {NAN, 1, NAN},
      {INFINITY, NAN, NAN},
      {NAN, 0, NAN},
  };
  check_special(TS_OP_ATAN2, cases, sizeof(cases) / sizeof(cases[0]));
}
END_TEST

/* The same for f64. */
START_TEST(atan2_special_values_f64)
{
  static const double pi = 0x1.921fb54442d18p+1;
  static const double cases[][3] = {
      {0, 0, 0},
      {-0.0, 0, -0.0},
      {0, -0.0, pi},
      {-0.0, -0.0, -pi},
      {0, -1, pi},
      {-0.0, 1, -0.0},
      {1, 0, pi / 2},
      {-1, -0.0, -pi / 2},
      {1, 1, pi / 4},
      {INFINITY, INFINITY, pi / 4},
      {-INFINITY, 3, -pi / 2},
      {3, INFINITY, 0},
      {-3, INFINITY, -0.0},
      {3, -INFINITY, pi},
      {0x1p-1074, 1, 0x1p-1074},
      {0x1p-1074, 0x1p-1074, pi / 4},
      {0x1p-1074, 0x1p1023, 0},
      {0x1p1023, 0x1p-1074, pi / 2},
      {0x1p-1074, 0, pi / 2},
      {NAN, 1, NAN},
      {INFINITY, NAN, NAN},
      {NAN, 0, NAN},
  };
  ts_kernel *kernel = NULL;
  ck_assert_ok(math_kernel(TS_OP_ATAN2, TS_F64, &kernel));
  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    for (int i = 0; i < 64; i++) wide_x[i] = cases[c][0], wide_y[i] = cases[c][1];
    math_run(kernel, wide_x, wide_y, wide_out, 64);
    ck_assert_msg(same_f64(wide_out[0], cases[c][2]), "atan2(%a, %a) = %a, not %a", cases[c][0], cases[c][1],
                  wide_out[0], cases[c][2]);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* The numbers nearest to multiples of pi / 2, where all digits cancel, on both sides of 16384, where the library
 * begins. */
START_TEST(multiples_of_half_pi)
{
  static const ts_opcode ops[] = {TS_OP_SIN, TS_OP_COS, TS_OP_TAN};
  const math_function *f = function_of(ops[_i]);
  ts_kernel *kernel = get(f, TS_F64);
  const long double half_pi = 1.570796326794896619231321691639751442L;
  for (int first = 0; first < 3 * BLOCK; first += BLOCK / 4) {
    for (int i = 0; i < BLOCK; i++) {
      const int multiple = first + i / 4;
      double nearest = (double)(multiple * half_pi);
      wide_x[i] = i % 4 == 3 ? -nearest : i % 4 == 2 ? nearest : nextafter(nearest, i % 4 ? INFINITY : -INFINITY);
    }
    math_run(kernel, wide_x, wide_y, wide_out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      double error = math_error_f64(wide_out[i], f->wide((long double)wide_x[i], 0));
      CHECK_VALUE(error <= (ops[_i] == TS_OP_TAN ? 1.5 : 0.8), "%s(%a) = %a: %g ULP", ts_op_name(f->op), wide_x[i],
                  wide_out[i], error);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* The same numbers of f32, below 16384 and beyond it. */
START_TEST(multiples_of_half_pi_f32)
{
  static const ts_opcode ops[] = {TS_OP_SIN, TS_OP_COS, TS_OP_TAN};
  const math_function *f = function_of(ops[_i]);
  ts_kernel *kernel = get(f, TS_F32);
  const double half_pi = 1.57079632679489661923;
  for (int first = 0; first < 3 * BLOCK; first += BLOCK / 4) {
    for (int i = 0; i < BLOCK; i++) {
      float nearest = (float)((first + i / 4) * half_pi);
      x[i] = i % 4 == 3 ? -nearest : i % 4 == 2 ? nearest : nextafterf(nearest, i % 4 ? INFINITY : -INFINITY);
    }
    math_run(kernel, x, y, out, BLOCK);
    for (int i = 0; i < BLOCK; i++) {
      double error = math_error_f32(out[i], f->narrow((double)x[i], 0));
      CHECK_VALUE(error <= (ops[_i] == TS_OP_TAN ? 1.5 : 1.9), "%s(%a) = %a: %g ULP", ts_op_name(f->op), (double)x[i],
                  (double)out[i], error);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Lane i of the second run takes the arguments of lane from(i) in the first: a permutation, as the factor is odd. */
static int from(int i) { return (int)((i * 1237u + 5) % BLOCK); }

static void check_lanes_f32(const math_function *f) {
  static float moved[BLOCK], moved_y[BLOCK], moved_out[BLOCK];
  ts_kernel *kernel = get(f, TS_F32);
  uint64_t state = 4;
  math_draw(f->op, TS_F32, &state, x, y, BLOCK);
  for (int i = 0; i < BLOCK; i++) moved[i] = x[from(i)], moved_y[i] = y[from(i)];
  math_run(kernel, x, y, out, BLOCK);
  math_run(kernel, moved, moved_y, moved_out, BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    CHECK_VALUE(same_f32(moved_out[i], out[from(i)]), "f32 %s(%a)", ts_op_name(f->op), (double)moved[i]);
  }
  ts_kernel_release(kernel);
}

static void check_lanes_f64(const math_function *f) {
  static double moved[BLOCK], moved_y[BLOCK], moved_out[BLOCK];
  ts_kernel *kernel = get(f, TS_F64);
  uint64_t state = 5;
  math_draw(f->op, TS_F64, &state, wide_x, wide_y, BLOCK);
  for (int i = 0; i < BLOCK; i++) moved[i] = wide_x[from(i)], moved_y[i] = wide_y[from(i)];
  math_run(kernel, wide_x, wide_y, wide_out, BLOCK);
  math_run(kernel, moved, moved_y, moved_out, BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    CHECK_VALUE(same_f64(moved_out[i], wide_out[from(i)]), "f64 %s(%a)", ts_op_name(f->op), moved[i]);
  }
  ts_kernel_release(kernel);
}

/* A value's result depends neither on its lane nor on its neighbours. */
START_TEST(same_bits_in_every_lane)
{
  for (int i = 0; i < math_function_count; i++) {
    check_lanes_f32(&math_functions[i]);
    check_lanes_f64(&math_functions[i]);
  }
}
END_TEST

START_TEST(library_symbols)
{
  char name[64];
  const ts_target *target = ts_target_host();
  snprintf(name, sizeof(name), "Sleef_%s_powf%d_u10%s", target->fma ? "finz" : "cinz", target->lanes,
           target->sleef_suffix);
  ck_assert_ptr_nonnull(ts_emit_library_symbol(name));
  ck_assert_ptr_null(ts_emit_library_symbol("system"));
}
END_TEST

static void without_disk(void) {
  const ts_jit_options no_disk = {.cache_dir = ""};
  ts_jit_configure(&no_disk);
}

int main(void) {
  Suite *suite = suite_create("vecmath");
  TCase *tests = tcase_create("vecmath");
  tcase_set_timeout(tests, 120);
  tcase_add_checked_fixture(tests, without_disk, NULL);
  tcase_add_test(tests, f32_within_two_ulp);
  tcase_add_test(tests, f64_within_two_ulp);
  tcase_add_test(tests, half_within_one_ulp);
  tcase_add_test(tests, exact_values);
  tcase_add_loop_test(tests, subnormals_stay, 0, sizeof(identities_near_zero) / sizeof(identities_near_zero[0]));
  tcase_add_test(tests, pow_special_values);
  tcase_add_test(tests, pow_special_values_f64);
  tcase_add_test(tests, pow_at_table_bounds);
  tcase_add_test(tests, erf_inv_near_1);
  tcase_add_test(tests, atan2_special_values);
  tcase_add_test(tests, atan2_special_values_f64);
  tcase_add_loop_test(tests, multiples_of_half_pi, 0, 3);
  tcase_add_loop_test(tests, multiples_of_half_pi_f32, 0, 3);
  tcase_add_test(tests, library_symbols);
  tcase_add_test(tests, same_bits_in_every_lane);
  test_add_lesser_isas(tests);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
