/* Kernels for tests, written in their canonical text. A kernel is parsed, gets extents and random operands in guarded
 * memory, is interpreted point by point in plain C, and the stores of the compiled code are compared. Failures end the
 * running check test. Not thread-safe. */
#ifndef TS_TEST_KERNEL_CASE_H
#define TS_TEST_KERNEL_CASE_H

#include "jit/kernel.h"

#define TS_CASE_MAX 64 /* nodes, operands, scalars: each */

typedef struct ts_kernel_case {
  ts_kernel_desc desc; /* of the arrays below */
  ts_kernel_operand inputs[TS_CASE_MAX], indices[TS_CASE_MAX];
  ts_kernel_output outputs[TS_CASE_MAX];
  ts_dtype scalars[TS_CASE_MAX];
  ts_kernel_node nodes[TS_CASE_MAX];
} ts_kernel_case;

/* How a run is set up and compared. */
typedef struct ts_case_run {
  int64_t extents[TS_KERNEL_MAX_RANK];
  uint64_t seed;       /* of the operands' values */
  int64_t tolerance;   /* units in the last place */
  bool special;        /* NaN, infinities, limits and zeros among the values */
  bool in_place;       /* the first output lies on the first input */
  int64_t index_range; /* > 0: integers fall in -2 .. index_range + 1, and tables of gathers have index_range entries */
} ts_case_run;

void ts_case_parse(const char *text, ts_kernel_case *out);
/* Asserts that no kernel is made of the text, with that message. */
void ts_case_check_rejected(const char *text, const char *message);
/* Compiles through the JIT. */
ts_kernel *ts_case_compile(const ts_kernel_case *c);
void ts_case_check(const ts_kernel_case *c, const ts_kernel *kernel, const ts_case_run *run);
/* All these checks at once. */
void ts_case_test(const char *text, const ts_case_run *run);
/* How many work units a kernel has at these extents. */
int64_t ts_case_units(const ts_kernel_desc *desc, const int64_t *extents);

#endif
