/* Complex numbers as C has them, and their product as the op defines it: part by part, each step rounded to the parts'
 * type, without annex G's repair of infinities. Pure. */
#ifndef TS_KERNEL_COMPLEX_NUMBER_H
#define TS_KERNEL_COMPLEX_NUMBER_H

#include <complex.h>

typedef float _Complex ts_c64;
typedef double _Complex ts_c128;

static inline ts_c64 ts_c64_product(ts_c64 x, ts_c64 y) {
  const float a = crealf(x), b = cimagf(x), c = crealf(y), d = cimagf(y);
  return __builtin_complex(a * c - b * d, a * d + b * c);
}

static inline ts_c128 ts_c128_product(ts_c128 x, ts_c128 y) {
  const double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);
  return __builtin_complex(a * c - b * d, a * d + b * c);
}

#endif
