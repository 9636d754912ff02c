/* Arithmetic of linear algebra by the type of its arguments, so that one source serves real and complex matrices. A
 * file includes the algorithms once for each type of numbers, with NUMBER defined as that type, REAL as the type of
 * their sizes, and NAME(x) as the name that x has for it. */
#ifndef TS_KERNEL_REF_LINALG_NUMBERS_H
#define TS_KERNEL_REF_LINALG_NUMBERS_H

#include "jit/session/target.h"
#include "kernel/ref/ref_linalg.h"

#include <complex.h>
#include <math.h>

/* On x86-64 and aarch64 it has more digits than any type of elements, and enough exponents that squares and sums of
 * elements neither overflow nor vanish. */
typedef long double ref_long;
typedef long double complex ref_complex;

#define REF_BY_TYPE(x, fn) \
  _Generic((x), float : fn##_float, double : fn##_double, ref_long : fn##_long, ref_complex : fn##_complex)

/* The conjugate, which of a real number is the number. */
static inline float ref_conjugate_float(float x) { return x; }
static inline double ref_conjugate_double(double x) { return x; }
static inline ref_long ref_conjugate_long(ref_long x) { return x; }
static inline ref_complex ref_conjugate_complex(ref_complex x) { return conjl(x); }
#define CONJUGATE(x) REF_BY_TYPE(x, ref_conjugate)(x)

static inline float ref_real_float(float x) { return x; }
static inline double ref_real_double(double x) { return x; }
static inline ref_long ref_real_long(ref_long x) { return x; }
static inline ref_long ref_real_complex(ref_complex x) { return creall(x); }
#define REAL_PART(x) REF_BY_TYPE(x, ref_real)(x)

static inline double ref_imag_float(float x) { return (void)x, 0; }
static inline double ref_imag_double(double x) { return (void)x, 0; }
static inline double ref_imag_long(ref_long x) { return (void)x, 0; }
static inline double ref_imag_complex(ref_complex x) { return (double)cimagl(x); }
#define IMAGINARY_PART(x) REF_BY_TYPE(x, ref_imag)(x)

static inline float ref_size_float(float x) { return fabsf(x); }
static inline double ref_size_double(double x) { return fabs(x); }
static inline ref_long ref_size_long(ref_long x) { return fabsl(x); }
static inline ref_long ref_size_complex(ref_complex x) { return cabsl(x); }
#define SIZE(x) REF_BY_TYPE(x, ref_size)(x)

static inline float ref_root_float(float x) { return sqrtf(x); }
static inline double ref_root_double(double x) { return sqrt(x); }
static inline ref_long ref_root_long(ref_long x) { return sqrtl(x); }
static inline ref_long ref_root_complex(ref_complex x) { return sqrtl(creall(x)); }
#define ROOT(x) REF_BY_TYPE(x, ref_root)(x)

/* a * b + c, which of f32 and f64 rounds once where the machine can do that, as ts_ref_multiply_add. */
static inline float ref_multiply_add_float(float a, float b, float c) {
  return ts_target_host()->fma ? fmaf(a, b, c) : a * b + c;
}
static inline double ref_multiply_add_double(double a, double b, double c) {
  return ts_target_host()->fma ? fma(a, b, c) : a * b + c;
}
static inline ref_long ref_multiply_add_long(ref_long a, ref_long b, ref_long c) { return a * b + c; }
static inline ref_complex ref_multiply_add_complex(ref_complex a, ref_complex b, ref_complex c) { return a * b + c; }
#define MULTIPLY_ADD(a, b, c) REF_BY_TYPE(c, ref_multiply_add)(a, b, c)

/* A quotient of a complex number by zero is the quotient of its parts by zero. */
static inline float ref_divide_float(float a, float b) { return a / b; }
static inline double ref_divide_double(double a, double b) { return a / b; }
static inline ref_long ref_divide_long(ref_long a, ref_long b) { return a / b; }
static inline ref_complex ref_divide_complex(ref_complex a, ref_complex b) {
  return b == 0 ? __builtin_complex(creall(a) / 0.0L, cimagl(a) / 0.0L) : a / b;
}
#define DIVIDE(a, b) REF_BY_TYPE(a, ref_divide)(a, b)

static inline float ref_make_float(double re, double im) { return (void)im, (float)re; }
static inline double ref_make_double(double re, double im) { return (void)im, re; }
static inline ref_long ref_make_long(double re, double im) { return (void)im, (ref_long)re; }
static inline ref_complex ref_make_complex(double re, double im) {
  return __builtin_complex((ref_long)re, (ref_long)im);
}
#define MAKE(re, im) REF_BY_TYPE((NUMBER)0, ref_make)(re, im)

static inline float ref_times_power_float(float x, int power) { return ldexpf(x, power); }
static inline double ref_times_power_double(double x, int power) { return ldexp(x, power); }
static inline ref_long ref_times_power_long(ref_long x, int power) { return ldexpl(x, power); }
static inline ref_complex ref_times_power_complex(ref_complex x, int power) {
  return __builtin_complex(ldexpl(creall(x), power), ldexpl(cimagl(x), power));
}
#define TIMES_POWER(x, power) REF_BY_TYPE(x, ref_times_power)(x, power)

static inline bool ref_is_real_float(void) { return true; }
static inline bool ref_is_real_double(void) { return true; }
static inline bool ref_is_real_long(void) { return true; }
static inline bool ref_is_real_complex(void) { return false; }
#define IS_REAL REF_BY_TYPE((NUMBER)0, ref_is_real)()

#endif
