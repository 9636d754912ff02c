/* Shared by the vector math tests and the accuracy tool: kernels of one math function over arrays, references in wider
 * arithmetic, and the error in ULP. */
#ifndef TEST_MATH_CHECK_H
#define TEST_MATH_CHECK_H

#include "base/status.h"
#include "ir/op.h"
#include "jit/jit.h"
#include "tensor/dtype.h"

typedef struct math_function {
  ts_opcode op;
  double (*narrow)(double, double);              /* reference for f32 and smaller; unary ones ignore the second */
  long double (*wide)(long double, long double); /* reference for f64 */
  bool odd;                                      /* keeps the sign of a zero */
} math_function;

extern const math_function math_functions[];
extern const int math_function_count;

/* A kernel whose work unit is one vector of lanes; args are the addresses of x, y and the result. */
ts_status math_kernel(ts_opcode op, ts_dtype type, ts_kernel **out);
/* Runs it on `count` elements, a multiple of the lanes. */
void math_run(const ts_kernel *kernel, const void *x, const void *y, void *out, int64_t count);

/* Draws `count` arguments for the function from `*state`: bit patterns, values of every magnitude, special values,
 * neighbours of the bounds where functions overflow or change their formula. For pow it also draws pairs whose result
 * is near the ends of the range. Repeatable. y may be NULL. */
void math_draw(ts_opcode op, ts_dtype type, uint64_t *state, void *x, void *y, int64_t count);

/* |got - want| in units of the last place of `want` at the type; infinite where one is NaN
 * and the other is not. A result that overflowed counts as the power of two past the largest. */
double math_error_f32(float got, double want);
double math_error_f64(double got, long double want);
/* The same for a type of `digits` significant bits and least exponent `min_exponent` (of 1.0 * 2^e). */
double math_error(double got, double want, int digits, int min_exponent, int max_exponent);

#endif
