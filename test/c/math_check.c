#include "math_check.h"

#include "jit/emit/emit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- references ---- */

#define ROOT_PI_2 0.886226925452758013649083741670572591L

static double sigmoid_narrow(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static long double sigmoid_wide(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }
static double rsqrt_narrow(double x) { return 1 / sqrt(x); }
static long double rsqrt_wide(long double x) { return 1 / sqrtl(x); }

/* Newton's method on erf or erfc from a crude start, in whichever of them keeps the digits. */
static long double erf_inv_wide(long double x) {
  long double goal = fabsl(x);
  if (!(goal < 1)) return goal == 1 ? copysignl(INFINITY, x) : NAN;
  if (goal < 1e-10L) return x * ROOT_PI_2;
  long double w = -log1pl(-goal * goal), b = 4.33L - w / 2;
  long double y = sqrtl(fmaxl(0, sqrtl(b * b + w / 0.147L) - b));
  for (int i = 0; i < 6; i++) {
    long double error = goal < 0.5L ? erfl(y) - goal : (1 - goal) - erfcl(y);
    long double step = error * ROOT_PI_2 * expl(y * y);
    y -= step / (1 + y * step);
  }
  return copysignl(y, x);
}

static double erf_inv_narrow(double x) {
  double goal = fabs(x);
  if (!(goal < 1)) return goal == 1 ? copysign(INFINITY, x) : NAN;
  if (goal < 1e-8) return x * (double)ROOT_PI_2;
  double w = -log1p(-goal * goal), b = 4.33 - w / 2;
  double y = sqrt(fmax(0, sqrt(b * b + w / 0.147) - b));
  for (int i = 0; i < 4; i++) {
    double error = goal < 0.5 ? erf(y) - goal : (1 - goal) - erfc(y);
    double step = error * (double)ROOT_PI_2 * exp(y * y);
    y -= step / (1 + y * step);
  }
  return copysign(y, x);
}

#define UNARY(function, narrow_function, wide_function)                                    \
  static double function##_ref(double x, double y) { return (void)y, narrow_function(x); } \
  static long double function##_ref_wide(long double x, long double y) { return (void)y, wide_function(x); }
UNARY(exp, exp, expl)
UNARY(expm1, expm1, expm1l)
UNARY(log, log, logl)
UNARY(log1p, log1p, log1pl)
UNARY(sigmoid, sigmoid_narrow, sigmoid_wide)
UNARY(cos, cos, cosl)
UNARY(sin, sin, sinl)
UNARY(tan, tan, tanl)
UNARY(cosh, cosh, coshl)
UNARY(sinh, sinh, sinhl)
UNARY(tanh, tanh, tanhl)
UNARY(acos, acos, acosl)
UNARY(asin, asin, asinl)
UNARY(atan, atan, atanl)
UNARY(acosh, acosh, acoshl)
UNARY(asinh, asinh, asinhl)
UNARY(atanh, atanh, atanhl)
UNARY(sqrt, sqrt, sqrtl)
UNARY(rsqrt, rsqrt_narrow, rsqrt_wide)
UNARY(cbrt, cbrt, cbrtl)
UNARY(erf, erf, erfl)
UNARY(erfc, erfc, erfcl)
UNARY(erf_inv, erf_inv_narrow, erf_inv_wide)

#define ROW(e, function, odd) \
  { TS_OP_##e, function##_ref, function##_ref_wide, odd }
const math_function math_functions[] = {
    ROW(EXP, exp, false),
    ROW(EXPM1, expm1, true),
    ROW(LOG, log, false),
    ROW(LOG1P, log1p, true),
    ROW(SIGMOID, sigmoid, false),
    ROW(COS, cos, false),
    ROW(SIN, sin, true),
    ROW(TAN, tan, true),
    ROW(COSH, cosh, false),
    ROW(SINH, sinh, true),
    ROW(TANH, tanh, true),
    ROW(ACOS, acos, false),
    ROW(ASIN, asin, true),
    ROW(ATAN, atan, true),
    ROW(ACOSH, acosh, false),
    ROW(ASINH, asinh, true),
    ROW(ATANH, atanh, true),
    ROW(SQRT, sqrt, true),
    ROW(RSQRT, rsqrt, true),
    ROW(CBRT, cbrt, true),
    ROW(ERF, erf, true),
    ROW(ERFC, erfc, false),
    ROW(ERF_INV, erf_inv, true),
    {TS_OP_POW, pow, powl, false},
    {TS_OP_ATAN2, atan2, atan2l, false},
};
const int math_function_count = (int)(sizeof(math_functions) / sizeof(math_functions[0]));

/* ---- errors ---- */

/* 2^e of a normal exponent, fast enough for all inputs. */
static double power_of_two(int e) {
  uint64_t bits = (uint64_t)(e + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof(bits));
  return value;
}

static int exponent_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return (int)(bits >> 52 & 0x7ff) - 1023;
}

double math_error(double got, double want, int digits, int min_exponent, int max_exponent) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  double past = power_of_two(max_exponent + 1);
  if (isinf(got)) got = copysign(past, got);
  if (fabs(want) > past) want = copysign(past, want);
  if (want == 0) return got == 0 ? 0 : INFINITY;
  int exponent = exponent_of(want);
  if (exponent < min_exponent) exponent = min_exponent;
  return fabs(got - want) * power_of_two(digits - 1 - exponent);
}

double math_error_f32(float got, double want) { return math_error((double)got, want, 24, -126, 127); }

double math_error_f64(double got, long double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  long double past = ldexpl(1, 1024), value = isinf(got) ? copysignl(past, (long double)got) : (long double)got;
  if (isinf(want) || fabsl(want) > past) want = copysignl(past, want);
  if (want == 0) return value == 0 ? 0 : INFINITY;
  int exponent = ilogbl(want);
  if (exponent < -1022) exponent = -1022;
  return (double)(fabsl(value - want) / ldexpl(1, exponent - 52));
}

/* ---- arguments ---- */

/* SplitMix64. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* In (-1, 1). */
static double next_unit(uint64_t *state) { return ((double)(next_random(state) >> 11) + 0.5) * 0x1p-52 - 1; }

/* Zeros, infinities, ends of the ranges, bounds between formulas. */
static const double narrow_marks[] = {0,          1,          0.5,     0.55,    0.75,    2,          3,
                                      10,         10.1,       16384,   17,      18,      88.7228394, 89,
                                      89.4159851, 103.97208,  104,     3.925,   0.9966,  1e19,       1e-5,
                                      0x1p-126,   0x1p-149,   0x1p64,  0x1p127, FLT_MAX, INFINITY,   NAN,
                                      1.57079637, 3.14159274, 0x1p-13, 1.5,     9.19455, 10.05,      0x1p60};
static const double wide_marks[] = {0,
                                    1,
                                    0.5,
                                    0.55,
                                    0.75,
                                    2,
                                    3,
                                    20,
                                    0x1p500,
                                    37,
                                    36.7,
                                    709.78271289338397,
                                    710.4758600739439,
                                    745.1332191019411,
                                    746,
                                    5.8,
                                    26.5,
                                    27.2,
                                    0x1p-1022,
                                    0x1p-1074,
                                    0x1p64,
                                    0x1p1023,
                                    DBL_MAX,
                                    INFINITY,
                                    NAN,
                                    1.5707963267948966,
                                    3.1415926535897931,
                                    0x1p-30,
                                    1.5,
                                    1e-8,
                                    0x1p512};

static double narrow_near_mark(uint64_t *state) {
  float value = (float)narrow_marks[next_random(state) % (sizeof(narrow_marks) / sizeof(*narrow_marks))];
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  uint64_t r = next_random(state);
  if (r & 1) bits += (uint32_t)(r >> 8 & 127) - 64;
  if (r & 2) bits ^= 0x80000000u;
  memcpy(&value, &bits, sizeof(bits));
  return (double)value;
}

static double wide_near_mark(uint64_t *state) {
  double value = wide_marks[next_random(state) % (sizeof(wide_marks) / sizeof(*wide_marks))];
  uint64_t bits, r = next_random(state);
  memcpy(&bits, &value, sizeof(bits));
  if (r & 1) bits += (r >> 8 & 127) - 64;
  if (r & 2) bits ^= (uint64_t)1 << 63;
  memcpy(&value, &bits, sizeof(bits));
  return value;
}

static double any_bits(bool wide, uint64_t *state) {
  uint64_t bits = next_random(state);
  uint32_t low = (uint32_t)bits;
  double value;
  float narrow;
  memcpy(&value, &bits, sizeof(bits));
  memcpy(&narrow, &low, sizeof(low));
  return wide ? value : (double)narrow;
}

static double draw(bool wide, uint64_t *state) {
  switch (next_random(state) & 7) {
  case 0: return any_bits(wide, state);
  case 1: return wide ? wide_near_mark(state) : narrow_near_mark(state);
  case 2: return next_unit(state) * 4;
  case 3: return next_unit(state) * 40;
  case 4: return next_unit(state) * (wide ? 800 : 110);
  case 5: return next_unit(state) * exp2(next_unit(state) * 30);
  default: return next_unit(state);
  }
}

/* An exponent that makes x^y nearly the largest or the smallest number. */
static double pow_exponent(bool wide, double x, uint64_t *state) {
  double ends[] = {wide ? 709.782712893384 : 88.7228390, wide ? -708.3964 : -87.3365, wide ? -744.8 : -103.6};
  double goal = ends[next_random(state) % 3] + next_unit(state) * exp2(next_unit(state) * 12 - 12);
  return goal / log(fabs(x));
}

void math_draw(ts_opcode op, ts_dtype type, uint64_t *state, void *x, void *y, int64_t count) {
  bool wide = type == TS_F64;
  for (int64_t i = 0; i < count; i++) {
    double a = draw(wide, state), b = draw(wide, state);
    if (!wide) a = (double)(float)a;
    if (op == TS_OP_POW && next_random(state) % 4 == 0) b = pow_exponent(wide, a, state);
    if (wide)
      ((double *)x)[i] = a;
    else
      ((float *)x)[i] = (float)a;
    if (y && wide)
      ((double *)y)[i] = b;
    else if (y)
      ((float *)y)[i] = (float)b;
  }
}

/* ---- kernels ---- */

typedef struct description {
  ts_opcode op;
  ts_dtype type;
} description;

static LLVMValueRef argument(ts_emit *e, LLVMValueRef args, int i) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  LLVMValueRef index = LLVMConstInt(i64, (unsigned long long)i, 0);
  LLVMValueRef word = LLVMBuildLoad2(e->b, i64, LLVMBuildGEP2(e->b, i64, args, &index, 1, ""), "");
  return LLVMBuildIntToPtr(e->b, word, LLVMPointerTypeInContext(e->context, 0), "");
}

/* Address of the vector number `i` behind `base`. */
static LLVMValueRef vector_at(ts_emit *e, ts_dtype type, LLVMValueRef base, LLVMValueRef i) {
  LLVMTypeRef memory = LLVMArrayType2(ts_emit_memory_type(e, type), (uint64_t)e->lanes);
  return LLVMBuildGEP2(e->b, memory, base, &i, 1, "");
}

static ts_status emit_body(ts_emit *e, const description *d, LLVMValueRef *base, LLVMValueRef i) {
  bool half = d->type == TS_F16 || d->type == TS_BF16;
  ts_v x = ts_emit_load(e, d->type, vector_at(e, d->type, base[0], i)), y = NULL, out;
  if (ts_op_operands(d->op) == 2) y = ts_emit_load(e, d->type, vector_at(e, d->type, base[1], i));
  TS_TRY(ts_emit_math(e, d->op, half ? TS_F32 : d->type, x, y, &out));
  if (half) out = ts_emit_round_half(e, d->type, out);
  ts_emit_store(e, d->type, out, vector_at(e, d->type, base[2], i));
  return TS_SUCCESS;
}

static ts_status emit_kernel(ts_emit *e, const char *name, const void *data) {
  LLVMContextRef c = e->context;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(c), pointer = LLVMPointerTypeInContext(c, 0);
  LLVMTypeRef parameters[] = {pointer, i64, i64, pointer};
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(c), parameters, 4, false);
  LLVMValueRef f = e->function = LLVMAddFunction(e->module, name, type);
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(c, f, "entry");
  LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(c, f, "loop");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(c, f, "done");

  LLVMPositionBuilderAtEnd(e->b, entry);
  LLVMValueRef base[3];
  for (int i = 0; i < 3; i++) base[i] = argument(e, LLVMGetParam(f, 0), i);
  LLVMValueRef begin = LLVMGetParam(f, 1), end = LLVMGetParam(f, 2);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, begin, end, ""), loop, done);

  LLVMPositionBuilderAtEnd(e->b, loop);
  LLVMValueRef i = LLVMBuildPhi(e->b, i64, "i");
  TS_TRY(emit_body(e, data, base, i));
  LLVMValueRef next = LLVMBuildAdd(e->b, i, LLVMConstInt(i64, 1, 0), "next");
  LLVMAddIncoming(i, (LLVMValueRef[]){begin, next}, (LLVMBasicBlockRef[]){entry, LLVMGetInsertBlock(e->b)}, 2);
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, next, end, ""), loop, done);

  LLVMPositionBuilderAtEnd(e->b, done);
  LLVMBuildRetVoid(e->b);
  return TS_SUCCESS;
}

ts_status math_kernel(ts_opcode op, ts_dtype type, ts_kernel **out) {
  description d = {op, type};
  char text[64];
  int length = snprintf(text, sizeof(text), "math test %s %s", ts_op_name(op), ts_dtype_name(type));
  ts_kernel_source source = {.text = text, .length = (size_t)length, .emit = emit_kernel, .description = &d};
  return ts_jit_get_kernels(&source, 1, out);
}

void math_run(const ts_kernel *kernel, const void *x, const void *y, void *out, int64_t count) {
  int64_t args[] = {(int64_t)(intptr_t)x, (int64_t)(intptr_t)y, (int64_t)(intptr_t)out};
  ts_kernel_entry(kernel)(args, 0, count / ts_target_host()->lanes, NULL);
}
