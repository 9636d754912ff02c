/* Elementwise ops of the reference interpreter, against values worked out by hand. */
#include "tensors.h"
#include "testing.h"

#include <math.h>

static const ts_dtype float_types[] = {TS_F16, TS_BF16, TS_F32, TS_F64};
static const ts_dtype signed_types[] = {TS_S8, TS_S16, TS_S32, TS_S64};
static const ts_dtype unsigned_types[] = {TS_U8, TS_U16, TS_U32, TS_U64};

static double float_at(const ts_buffer *buffer, int64_t i) {
  const char *address = (const char *)buffer->data + (size_t)i * ts_dtype_size(buffer->dtype);
  return ts_scalar_to_f64(buffer->dtype, ts_scalar_load(buffer->dtype, address));
}

/* ---- floats ---- */

typedef struct unary_case {
  ts_opcode code;
  double x, y;
} unary_case;

static const unary_case unary_cases[] = {
    {TS_OP_EXP, 0, 1},
    {TS_OP_EXP, -INFINITY, 0},
    {TS_OP_EXP, INFINITY, INFINITY},
    {TS_OP_EXP, NAN, NAN},
    {TS_OP_EXP, 1, 2.718281828459045},
    {TS_OP_EXPM1, -0.0, -0.0},
    {TS_OP_EXPM1, -INFINITY, -1},
    {TS_OP_EXPM1, 1, 1.718281828459045},
    {TS_OP_LOG, 1, 0},
    {TS_OP_LOG, 0, -INFINITY},
    {TS_OP_LOG, -1, NAN},
    {TS_OP_LOG, 2, 0.6931471805599453},
    {TS_OP_LOG1P, -0.0, -0.0},
    {TS_OP_LOG1P, -1, -INFINITY},
    {TS_OP_LOG1P, -2, NAN},
    {TS_OP_LOG1P, 1, 0.6931471805599453},
    {TS_OP_SIGMOID, 0, 0.5},
    {TS_OP_SIGMOID, INFINITY, 1},
    {TS_OP_SIGMOID, -INFINITY, 0},
    {TS_OP_SIGMOID, 1, 0.7310585786300049},
    {TS_OP_COS, 0, 1},
    {TS_OP_COS, INFINITY, NAN},
    {TS_OP_COS, 1, 0.5403023058681398},
    {TS_OP_SIN, -0.0, -0.0},
    {TS_OP_SIN, 1, 0.8414709848078965},
    {TS_OP_TAN, -0.0, -0.0},
    {TS_OP_TAN, 1, 1.5574077246549022},
    {TS_OP_COSH, 0, 1},
    {TS_OP_COSH, -INFINITY, INFINITY},
    {TS_OP_SINH, -0.0, -0.0},
    {TS_OP_SINH, 1, 1.1752011936438014},
    {TS_OP_TANH, -0.0, -0.0},
    {TS_OP_TANH, INFINITY, 1},
    {TS_OP_TANH, 0.5, 0.46211715726000973},
    {TS_OP_ACOS, 1, 0},
    {TS_OP_ACOS, 2, NAN},
    {TS_OP_ACOS, -1, 3.141592653589793},
    {TS_OP_ASIN, -0.0, -0.0},
    {TS_OP_ASIN, 1, 1.5707963267948966},
    {TS_OP_ASIN, 2, NAN},
    {TS_OP_ATAN, -0.0, -0.0},
    {TS_OP_ATAN, INFINITY, 1.5707963267948966},
    {TS_OP_ATAN, 1, 0.7853981633974483},
    {TS_OP_ACOSH, 1, 0},
    {TS_OP_ACOSH, 0.5, NAN},
    {TS_OP_ACOSH, 2, 1.3169578969248166},
    {TS_OP_ASINH, -0.0, -0.0},
    {TS_OP_ASINH, 1, 0.881373587019543},
    {TS_OP_ATANH, -0.0, -0.0},
    {TS_OP_ATANH, 1, INFINITY},
    {TS_OP_ATANH, -1, -INFINITY},
    {TS_OP_ATANH, 2, NAN},
    {TS_OP_ATANH, 0.5, 0.5493061443340549},
    {TS_OP_SQRT, -0.0, -0.0},
    {TS_OP_SQRT, 6.25, 2.5},
    {TS_OP_SQRT, -1, NAN},
    {TS_OP_SQRT, 2, 1.4142135623730951},
    {TS_OP_RSQRT, 4, 0.5},
    {TS_OP_RSQRT, 0, INFINITY},
    {TS_OP_RSQRT, -0.0, -INFINITY},
    {TS_OP_RSQRT, INFINITY, 0},
    {TS_OP_RSQRT, -1, NAN},
    {TS_OP_CBRT, 27, 3},
    {TS_OP_CBRT, -8, -2},
    {TS_OP_CBRT, -0.0, -0.0},
    {TS_OP_ERF, -0.0, -0.0},
    {TS_OP_ERF, INFINITY, 1},
    {TS_OP_ERF, 0.5, 0.5204998778130465},
    {TS_OP_ERFC, 0, 1},
    {TS_OP_ERFC, -INFINITY, 2},
    {TS_OP_ERFC, 1, 0.15729920705028513},
    {TS_OP_ERF_INV, -0.0, -0.0},
    {TS_OP_ERF_INV, 1, INFINITY},
    {TS_OP_ERF_INV, -1, -INFINITY},
    {TS_OP_ERF_INV, 1.5, NAN},
    {TS_OP_ERF_INV, NAN, NAN},
    {TS_OP_ERF_INV, 0.5, 0.4769362762044699},
    {TS_OP_ERF_INV, -0.25, -0.22531205501217808},
    {TS_OP_ABS, -2.5, 2.5},
    {TS_OP_ABS, -0.0, 0.0},
    {TS_OP_ABS, -INFINITY, INFINITY},
    {TS_OP_NEGATE, 0.0, -0.0},
    {TS_OP_NEGATE, -INFINITY, INFINITY},
    {TS_OP_SIGN, -3, -1},
    {TS_OP_SIGN, 7, 1},
    {TS_OP_SIGN, -0.0, -0.0},
    {TS_OP_SIGN, 0.0, 0.0},
    {TS_OP_SIGN, NAN, NAN},
    {TS_OP_SIGN, -INFINITY, -1},
    {TS_OP_CEIL, -0.5, -0.0},
    {TS_OP_CEIL, 1.25, 2},
    {TS_OP_FLOOR, -1.25, -2},
    {TS_OP_FLOOR, -0.0, -0.0},
    {TS_OP_ROUND, 0.5, 1},
    {TS_OP_ROUND, -0.5, -1},
    {TS_OP_ROUND, 2.5, 3},
    {TS_OP_ROUND, -0.25, -0.0},
    {TS_OP_ROUND, INFINITY, INFINITY},
};

START_TEST(float_unary)
{
  const unary_case *c = &unary_cases[_i];
  for (size_t t = 0; t < 4; t++) {
    ts_buffer *y = RUN(c->code, NULL, VECTOR(float_types[t], c->x));
    ts_buffer *expected = VECTOR(float_types[t], c->y);
    bool inexact = ts_op_get_class(c->code) == TS_CLASS_UNARY_FLOAT && c->code != TS_OP_SQRT;
    bool exact = c->y == 0 || isinf(c->y) || !inexact;
    test_close(y, expected, exact ? 0 : 1);
  }
}
END_TEST

START_TEST(erf_inv_inverts)
{
  for (double y = 1e-300; y < 1; y *= 3) {
    ts_buffer *x = RUN(TS_OP_ERF_INV, NULL, VECTOR(TS_F64, y, -y));
    ck_assert_double_eq(float_at(x, 0), -float_at(x, 1));
    ck_assert_double_le(fabs(erf(float_at(x, 0)) - y), 4e-16 * y);
    ts_buffer_release(x);
  }
  for (double tail = 0.5; tail > 1e-15; tail /= 1.7) { /* near 1, where erf has lost the digits */
    double y = 1 - tail;
    ts_buffer *x = RUN(TS_OP_ERF_INV, NULL, VECTOR(TS_F64, y));
    ck_assert_double_le(fabs(erfc(float_at(x, 0)) - (1 - y)), 6e-15 * (1 - y));
    ts_buffer_release(x);
  }
}
END_TEST

typedef struct binary_case {
  ts_opcode code;
  double a, b, c;
} binary_case;

static const binary_case float_binary_cases[] = {
    {TS_OP_ADD, -0.0, -0.0, -0.0},
    {TS_OP_ADD, -0.0, 0.0, 0.0},
    {TS_OP_ADD, INFINITY, -INFINITY, NAN},
    {TS_OP_ADD, 1.5, 2, 3.5},
    {TS_OP_SUBTRACT, 0.0, 0.0, 0.0},
    {TS_OP_SUBTRACT, 1, 2.5, -1.5},
    {TS_OP_MULTIPLY, -0.0, 2, -0.0},
    {TS_OP_MULTIPLY, 0, INFINITY, NAN},
    {TS_OP_MULTIPLY, 1.5, -2, -3},
    {TS_OP_DIVIDE, 1, 0.0, INFINITY},
    {TS_OP_DIVIDE, 1, -0.0, -INFINITY},
    {TS_OP_DIVIDE, 0, 0, NAN},
    {TS_OP_DIVIDE, 3, -2, -1.5},
    {TS_OP_REMAINDER, 5.5, 2, 1.5},
    {TS_OP_REMAINDER, -5.5, 2, -1.5},
    {TS_OP_REMAINDER, 5.5, -2, 1.5},
    {TS_OP_REMAINDER, 1, 0, NAN},
    {TS_OP_REMAINDER, -4, 2, -0.0},
    {TS_OP_REMAINDER, 3, INFINITY, 3},
    {TS_OP_REMAINDER, INFINITY, 3, NAN},
    {TS_OP_POW, 2, 3, 8},
    {TS_OP_POW, 2, -1, 0.5},
    {TS_OP_POW, NAN, 0, 1},
    {TS_OP_POW, 1, NAN, 1},
    {TS_OP_POW, -8, 0.5, NAN},
    {TS_OP_POW, -0.0, -1, -INFINITY},
    {TS_OP_POW, -2, 3, -8},
    {TS_OP_ATAN2, 0.0, -1, 3.141592653589793},
    {TS_OP_ATAN2, -0.0, 1, -0.0},
    {TS_OP_ATAN2, 1, 0, 1.5707963267948966},
    {TS_OP_ATAN2, NAN, 1, NAN},
    {TS_OP_MIN, -0.0, 0.0, -0.0},
    {TS_OP_MIN, 0.0, -0.0, -0.0},
    {TS_OP_MIN, NAN, 1, NAN},
    {TS_OP_MIN, 1, NAN, NAN},
    {TS_OP_MIN, 1, -INFINITY, -INFINITY},
    {TS_OP_MAX, -0.0, 0.0, 0.0},
    {TS_OP_MAX, 0.0, -0.0, 0.0},
    {TS_OP_MAX, 1, NAN, NAN},
    {TS_OP_MAX, NAN, INFINITY, NAN},
    {TS_OP_MAX, 1, 2, 2},
    {TS_OP_EQUAL, -0.0, 0.0, 1},
    {TS_OP_EQUAL, NAN, NAN, 0},
    {TS_OP_NOT_EQUAL, NAN, NAN, 1},
    {TS_OP_NOT_EQUAL, 1, 1, 0},
    {TS_OP_GREATER, 2, 1, 1},
    {TS_OP_GREATER, NAN, 1, 0},
    {TS_OP_LESS, -INFINITY, 1, 1},
    {TS_OP_LESS, -0.0, 0.0, 0},
    {TS_OP_GREATER_EQUAL, 1, 1, 1},
    {TS_OP_GREATER_EQUAL, 1, NAN, 0},
    {TS_OP_LESS_EQUAL, 2, 1, 0},
    {TS_OP_LOGICAL_AND, NAN, 2, 1},
    {TS_OP_LOGICAL_AND, -0.0, 1, 0},
    {TS_OP_LOGICAL_OR, 0, -0.0, 0},
    {TS_OP_LOGICAL_OR, 0, NAN, 1},
    {TS_OP_LOGICAL_XOR, 2, 1, 0},
    {TS_OP_LOGICAL_XOR, 0, 0.5, 1},
};

static void check_binary(const binary_case *c, ts_dtype type) {
  bool truth = ts_op_get_class(c->code) == TS_CLASS_COMPARE;
  ts_buffer *result = RUN(c->code, NULL, VECTOR(type, c->a), VECTOR(type, c->b));
  test_equal(result, VECTOR(truth ? TS_U8 : type, c->c));
}

START_TEST(float_binary)
{
  for (size_t t = 0; t < 4; t++) check_binary(&float_binary_cases[_i], float_types[t]);
}
END_TEST

START_TEST(halves_round_once)
{
  /* 2049 is halfway between 2048 and 2050 in f16 and rounds to even; 2051 rounds to 2052. */
  test_equal(RUN(TS_OP_ADD, NULL, VECTOR(TS_F16, 2048, 2050), VECTOR(TS_F16, 1, 1)), VECTOR(TS_F16, 2048, 2052));
  test_equal(RUN(TS_OP_MULTIPLY, NULL, VECTOR(TS_F16, 300), VECTOR(TS_F16, 300)), VECTOR(TS_F16, INFINITY));
  test_equal(RUN(TS_OP_ADD, NULL, VECTOR(TS_BF16, 256, 258), VECTOR(TS_BF16, 1, 1)), VECTOR(TS_BF16, 256, 260));
  /* 1 + 2^-11 + 2^-40 is above the halfway point of f16, though not in f32. */
  ts_attrs to_f16 = {.dtype = TS_F16};
  test_equal(RUN(TS_OP_CONVERT, &to_f16, VECTOR(TS_F64, 1 + 0x1p-11 + 0x1p-40)), VECTOR(TS_F16, 1 + 0x1p-10));
}
END_TEST

START_TEST(f32_is_correctly_rounded)
{
  volatile float a = 0.1f, b = 3.7e-20f, c = 1e-30f;
  float sum = a + b, product = b * c, ratio = a / b, root = sqrtf(a);
  test_equal(RUN(TS_OP_ADD, NULL, VECTOR(TS_F32, a), VECTOR(TS_F32, b)), VECTOR(TS_F32, sum));
  test_equal(RUN(TS_OP_MULTIPLY, NULL, VECTOR(TS_F32, b), VECTOR(TS_F32, c)), VECTOR(TS_F32, product));
  test_equal(RUN(TS_OP_DIVIDE, NULL, VECTOR(TS_F32, a), VECTOR(TS_F32, b)), VECTOR(TS_F32, ratio));
  test_equal(RUN(TS_OP_SQRT, NULL, VECTOR(TS_F32, a)), VECTOR(TS_F32, root));
}
END_TEST

/* ---- integers ---- */

static const binary_case integer_cases[] = {
    {TS_OP_ADD, 3, 4, 7},          {TS_OP_SUBTRACT, 9, 4, 5},      {TS_OP_MULTIPLY, 5, 6, 30},
    {TS_OP_QUOTIENT, 7, 2, 3},     {TS_OP_REMAINDER, 7, 2, 1},     {TS_OP_REMAINDER, 7, 0, 7},
    {TS_OP_POW, 3, 4, 81},         {TS_OP_POW, 0, 0, 1},           {TS_OP_POW, 5, 0, 1},
    {TS_OP_MIN, 3, 5, 3},          {TS_OP_MAX, 3, 5, 5},           {TS_OP_AND, 12, 10, 8},
    {TS_OP_OR, 12, 10, 14},        {TS_OP_XOR, 12, 10, 6},         {TS_OP_SHIFT_LEFT, 3, 4, 48},
    {TS_OP_SHIFT_RIGHT, 48, 4, 3}, {TS_OP_SHIFT_LEFT, 3, 64, 0},   {TS_OP_SHIFT_RIGHT, 48, 64, 0},
    {TS_OP_EQUAL, 3, 3, 1},        {TS_OP_NOT_EQUAL, 3, 3, 0},     {TS_OP_GREATER, 4, 3, 1},
    {TS_OP_LESS, 4, 3, 0},         {TS_OP_GREATER_EQUAL, 3, 3, 1}, {TS_OP_LESS_EQUAL, 4, 3, 0},
    {TS_OP_LOGICAL_AND, 2, 4, 1},  {TS_OP_LOGICAL_OR, 0, 0, 0},    {TS_OP_LOGICAL_XOR, 2, 4, 0},
};

START_TEST(integer_binary)
{
  for (size_t t = 0; t < 4; t++) {
    check_binary(&integer_cases[_i], signed_types[t]);
    check_binary(&integer_cases[_i], unsigned_types[t]);
  }
}
END_TEST

static const binary_case signed_cases[] = {
    {TS_OP_QUOTIENT, -7, 2, -3},
    {TS_OP_QUOTIENT, 7, -2, -3},
    {TS_OP_QUOTIENT, 7, 0, -1},
    {TS_OP_QUOTIENT, -7, 0, -1},
    {TS_OP_REMAINDER, -7, 2, -1},
    {TS_OP_REMAINDER, 7, -2, 1},
    {TS_OP_REMAINDER, -7, 0, -7},
    {TS_OP_POW, -2, 3, -8},
    {TS_OP_POW, 2, -1, 0},
    {TS_OP_POW, 1, -5, 1},
    {TS_OP_POW, -1, -5, -1},
    {TS_OP_POW, -1, -4, 1},
    {TS_OP_POW, 0, -1, 0},
    {TS_OP_MIN, -3, 2, -3},
    {TS_OP_MAX, -3, 2, 2},
    {TS_OP_GREATER, -1, 1, 0},
    {TS_OP_LESS, -1, 1, 1},
    {TS_OP_SHIFT_RIGHT, -16, 2, -4},
    {TS_OP_SHIFT_RIGHT, -16, 100, -1},
    {TS_OP_SHIFT_RIGHT, 16, -1, 0},
    {TS_OP_SHIFT_RIGHT, -16, -1, -1},
    {TS_OP_SHIFT_LEFT, -1, -1, 0},
    {TS_OP_SHIFT_LEFT, -1, 3, -8},
    {TS_OP_AND, -1, 5, 5},
    {TS_OP_XOR, -1, 0, -1},
    {TS_OP_ADD, -5, 3, -2},
};

START_TEST(signed_binary)
{
  for (size_t t = 0; t < 4; t++) check_binary(&signed_cases[_i], signed_types[t]);
}
END_TEST

START_TEST(integer_limits)
{
  for (size_t t = 0; t < 4; t++) {
    ts_dtype type = signed_types[t];
    int64_t low = ts_scalar_to_s64(type, ts_dtype_lowest(type)), high = -(low + 1);
    ts_shape one = SHAPE(1);
    test_equal(RUN(TS_OP_QUOTIENT, NULL, INTEGERS(type, one, low), VECTOR(type, -1)), INTEGERS(type, one, low));
    test_equal(RUN(TS_OP_REMAINDER, NULL, INTEGERS(type, one, low), VECTOR(type, -1)), VECTOR(type, 0));
    test_equal(RUN(TS_OP_ADD, NULL, INTEGERS(type, one, high), VECTOR(type, 1)), INTEGERS(type, one, low));
    test_equal(RUN(TS_OP_SUBTRACT, NULL, INTEGERS(type, one, low), VECTOR(type, 1)), INTEGERS(type, one, high));
    test_equal(RUN(TS_OP_MULTIPLY, NULL, INTEGERS(type, one, low), VECTOR(type, -1)), INTEGERS(type, one, low));
    test_equal(RUN(TS_OP_NEGATE, NULL, INTEGERS(type, one, low)), INTEGERS(type, one, low));
    test_equal(RUN(TS_OP_ABS, NULL, INTEGERS(type, one, low)), INTEGERS(type, one, low));
    test_equal(RUN(TS_OP_LESS, NULL, INTEGERS(type, one, low), INTEGERS(type, one, high)), VECTOR(TS_U8, 1));
    test_equal(RUN(TS_OP_NOT, NULL, INTEGERS(type, one, low)), INTEGERS(type, one, high));
  }
  for (size_t t = 0; t < 4; t++) {
    ts_dtype type = unsigned_types[t];
    ts_shape one = SHAPE(1); /* -1 stands for all ones */
    test_equal(RUN(TS_OP_QUOTIENT, NULL, VECTOR(type, 7), VECTOR(type, 0)), INTEGERS(type, one, -1));
    test_equal(RUN(TS_OP_ADD, NULL, INTEGERS(type, one, -1), VECTOR(type, 1)), VECTOR(type, 0));
    test_equal(RUN(TS_OP_NEGATE, NULL, VECTOR(type, 1)), INTEGERS(type, one, -1));
    test_equal(RUN(TS_OP_MAX, NULL, INTEGERS(type, one, -1), VECTOR(type, 1)), INTEGERS(type, one, -1));
    test_equal(RUN(TS_OP_GREATER, NULL, INTEGERS(type, one, -1), VECTOR(type, 1)), VECTOR(TS_U8, 1));
    test_equal(RUN(TS_OP_QUOTIENT, NULL, INTEGERS(type, one, -1), VECTOR(type, 1)), INTEGERS(type, one, -1));
    test_equal(RUN(TS_OP_SHIFT_RIGHT, NULL, INTEGERS(type, one, -1), VECTOR(type, ts_dtype_bits(type) - 1)),
               VECTOR(type, 1));
    test_equal(RUN(TS_OP_SHIFT_RIGHT, NULL, INTEGERS(type, one, -1), VECTOR(type, ts_dtype_bits(type))),
               VECTOR(type, 0));
  }
  test_equal(RUN(TS_OP_POW, NULL, VECTOR(TS_S8, 3, 2, -2), VECTOR(TS_S8, 5, 7, 9)), VECTOR(TS_S8, -13, -128, 0));
}
END_TEST

START_TEST(integer_unary)
{
  test_equal(RUN(TS_OP_SIGN, NULL, VECTOR(TS_S16, -7, 0, 9)), VECTOR(TS_S16, -1, 0, 1));
  test_equal(RUN(TS_OP_SIGN, NULL, VECTOR(TS_U16, 0, 65535)), VECTOR(TS_U16, 0, 1));
  test_equal(RUN(TS_OP_ABS, NULL, VECTOR(TS_S32, -7, 7)), VECTOR(TS_S32, 7, 7));
  test_equal(RUN(TS_OP_ABS, NULL, VECTOR(TS_U8, 200)), VECTOR(TS_U8, 200));
  test_equal(RUN(TS_OP_ROUND, NULL, VECTOR(TS_S32, -7, 7)), VECTOR(TS_S32, -7, 7));
  test_equal(RUN(TS_OP_CEIL, NULL, VECTOR(TS_U8, 255)), VECTOR(TS_U8, 255));
  test_equal(RUN(TS_OP_CLZ, NULL, VECTOR(TS_U8, 0, 1, 255)), VECTOR(TS_U8, 8, 7, 0));
  test_equal(RUN(TS_OP_CLZ, NULL, VECTOR(TS_S64, 0, 1, -1)), VECTOR(TS_S64, 64, 63, 0));
  test_equal(RUN(TS_OP_POPCOUNT, NULL, VECTOR(TS_S16, -1, 5, 0)), VECTOR(TS_S16, 16, 2, 0));
  test_equal(RUN(TS_OP_POPCOUNT, NULL, VECTOR(TS_S64, -1)), VECTOR(TS_S64, 64));
  test_equal(RUN(TS_OP_NOT, NULL, VECTOR(TS_U8, 5)), VECTOR(TS_U8, 250));
}
END_TEST

/* ---- the rest ---- */

START_TEST(predicates)
{
  for (size_t t = 0; t < 4; t++) {
    ts_dtype type = float_types[t];
    test_equal(RUN(TS_OP_IS_NAN, NULL, VECTOR(type, NAN, INFINITY, 0)), VECTOR(TS_U8, 1, 0, 0));
    test_equal(RUN(TS_OP_IS_INFINITY, NULL, VECTOR(type, NAN, -INFINITY, INFINITY, 1)), VECTOR(TS_U8, 0, 1, 1, 0));
  }
  test_equal(RUN(TS_OP_IS_NAN, NULL, VECTOR(TS_S32, -1)), VECTOR(TS_U8, 0));
  test_equal(RUN(TS_OP_IS_INFINITY, NULL, VECTOR(TS_U64, 1)), VECTOR(TS_U8, 0));
}
END_TEST

START_TEST(conversions)
{
  ts_attrs to = {.dtype = TS_S8};
  ts_shape one = SHAPE(1);
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_F32, -1.9, 1.9, 300, -300, NAN, INFINITY)),
             VECTOR(TS_S8, -1, 1, 127, -128, 0, 127));
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_S32, 300, -129)), VECTOR(TS_S8, 44, 127));
  to.dtype = TS_U8;
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_BF16, -1, 0.9, 256, NAN)), VECTOR(TS_U8, 0, 0, 255, 0));
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_S64, -1, 258)), VECTOR(TS_U8, 255, 2));
  to.dtype = TS_S64;
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_F64, 1e300)), INTEGERS(TS_S64, one, INT64_MAX));
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_F32, -1e30)), INTEGERS(TS_S64, one, INT64_MIN));
  to.dtype = TS_U64;
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_F64, 1e300)), INTEGERS(TS_U64, one, -1));
  to.dtype = TS_F32; /* 2^24 + 1 ties to even; 2^63 + 2^39 + 1 is above a tie that double cannot see */
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_S32, 16777217, -7)), VECTOR(TS_F32, 16777216, -7));
  test_equal(RUN(TS_OP_CONVERT, &to, INTEGERS(TS_U64, one, INT64_MIN + (INT64_C(1) << 39) + 1)),
             VECTOR(TS_F32, 0x1p63 + 0x1p40));
  to.dtype = TS_F16;
  test_equal(RUN(TS_OP_CONVERT, &to, VECTOR(TS_F32, 65504, 65520, -0.0, NAN)),
             VECTOR(TS_F16, 65504, INFINITY, -0.0, NAN));
}
END_TEST

START_TEST(bitcasts)
{
  ts_attrs to = {.dtype = TS_S32};
  test_equal(RUN(TS_OP_BITCAST, &to, VECTOR(TS_F32, 1, -0.0)), VECTOR(TS_S32, 0x3F800000, -2147483648.0));
  to.dtype = TS_F64;
  test_equal(RUN(TS_OP_BITCAST, &to, INTEGERS(TS_U64, SHAPE(), 0x4000000000000000)), SCALAR(TS_F64, 2));
  to.dtype = TS_BF16;
  test_equal(RUN(TS_OP_BITCAST, &to, TENSOR(TS_F16, SHAPE(0))), TENSOR(TS_BF16, SHAPE(0)));
}
END_TEST

START_TEST(select_and_clamp)
{
  test_equal(RUN(TS_OP_SELECT, NULL, VECTOR(TS_U8, 0, 1, 255), VECTOR(TS_S16, 1, 2, 3), VECTOR(TS_S16, -1, -2, -3)),
             VECTOR(TS_S16, -1, 2, 3));
  test_equal(
      RUN(TS_OP_CLAMP, NULL, VECTOR(TS_F32, -5, 0.5, 5, NAN), VECTOR(TS_F32, 0, 0, 0, 0), VECTOR(TS_F32, 1, 1, 1, 1)),
      VECTOR(TS_F32, 0, 0.5, 1, NAN));
  /* Where the bounds cross, high wins. */
  test_equal(RUN(TS_OP_CLAMP, NULL, VECTOR(TS_S8, 3), VECTOR(TS_S8, 7), VECTOR(TS_S8, 5)), VECTOR(TS_S8, 5));
}
END_TEST

START_TEST(ranks_and_empties)
{
  test_equal(RUN(TS_OP_ADD, NULL, SCALAR(TS_F32, 1), SCALAR(TS_F32, 2)), SCALAR(TS_F32, 3));
  test_equal(RUN(TS_OP_EXP, NULL, TENSOR(TS_F64, SHAPE(2, 0))), TENSOR(TS_F64, SHAPE(2, 0)));
  test_equal(RUN(TS_OP_LESS, NULL, TENSOR(TS_S8, SHAPE(0)), TENSOR(TS_S8, SHAPE(0))), TENSOR(TS_U8, SHAPE(0)));
  test_equal(RUN(TS_OP_NEGATE, NULL, TENSOR(TS_S8, SHAPE(1, 2, 1), 1, 2)), TENSOR(TS_S8, SHAPE(1, 2, 1), -1, -2));
}
END_TEST

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static Suite *suite(void) {
  Suite *all = suite_create("ref_scalar");
  TCase *cases = tcase_create("elementwise");
  tcase_add_checked_fixture(cases, test_leaks_begin, test_leaks_end);
  tcase_add_loop_test(cases, float_unary, 0, COUNT(unary_cases));
  tcase_add_loop_test(cases, float_binary, 0, COUNT(float_binary_cases));
  tcase_add_loop_test(cases, integer_binary, 0, COUNT(integer_cases));
  tcase_add_loop_test(cases, signed_binary, 0, COUNT(signed_cases));
  tcase_add_test(cases, erf_inv_inverts);
  tcase_add_test(cases, halves_round_once);
  tcase_add_test(cases, f32_is_correctly_rounded);
  tcase_add_test(cases, integer_limits);
  tcase_add_test(cases, integer_unary);
  tcase_add_test(cases, predicates);
  tcase_add_test(cases, conversions);
  tcase_add_test(cases, bitcasts);
  tcase_add_test(cases, select_and_clamp);
  tcase_add_test(cases, ranks_and_empties);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
