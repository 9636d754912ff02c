/* Shared by the accuracy tool and test_complex: the complex functions at the points of test/accuracy/complex.txt
 * against their exact values, and at zeros, infinities and NaN against the C library. */
#ifndef TEST_COMPLEX_CHECK_H
#define TEST_COMPLEX_CHECK_H

#include "base/status.h"
#include "ir/op.h"
#include "tensor/dtype.h"

#include <complex.h>

enum { COMPLEX_MOST_FUNCTIONS = 32 };

/* A function and its exact values, two numbers for each part: the nearest double, and the rest. */
typedef struct complex_function {
  ts_opcode op;
  int operands;
  double (*values)[4];
} complex_function;

/* Points [0, both) are also numbers of c64. Read-only once it is read. */
typedef struct complex_table {
  int64_t both, count;
  double (*points)[2];
  int function_count;
  complex_function functions[COMPLEX_MOST_FUNCTIONS];
} complex_table;

/* The largest distance from the exact value, in units in the last place of its modulus; infinite where a part is NaN or
 * infinite and the exact one is not. */
typedef struct complex_worst {
  double error;
  double re, im; /* where */
} complex_worst;

/* After success ends with complex_table_free. The path is relative to the repository's root. */
ts_status complex_table_read(complex_table *out);
void complex_table_free(complex_table *table);
/* Compiles and runs the function at all points of the type. */
ts_status complex_measure(const complex_table *table, const complex_function *function, ts_dtype type,
                          complex_worst *out);

/* Of C99's functions at all pairs of zeros, infinities, NaN, 1, 2, 5, subnormal and large numbers: whether the parts
 * have the classes and signs that the C library's have. A NaN, and a zero or infinity whose sign annex G leaves open,
 * have any sign. */
enum { COMPLEX_SPECIALS = 13 };
extern const int complex_special_function_count;
typedef struct complex_specials {
  ts_opcode op;
  int64_t points, wrong;
  double re, im; /* the first that is wrong */
} complex_specials;
ts_status complex_check_specials(int which, ts_dtype type, complex_specials *out);

#endif
