/* Hand-made kernels for the tests of the JIT: out[i] = in[i] + constant on s32,
 * args = {out, in}, and some that must fail. */
#ifndef TS_TEST_JIT_KERNELS_H
#define TS_TEST_JIT_KERNELS_H

#include "jit/emit/emit.h"
#include "jit/jit.h"

typedef struct adder {
  char text[64];
  int32_t constant;
  ts_kernel_source source;
} adder;

/* The text is "test add <constant>"; `a` must stay where it is. Constants with the same remainder by 10 are a
 * family. */
void adder_init(adder *a, int32_t constant);
void adder_check(const ts_kernel *kernel, int32_t constant);

/* For kernels of one's own: an empty function of type ts_kernel_fn with the builder at its end. */
LLVMValueRef kernel_begin(ts_emit *e, const char *name);
/* Word `index` of its args, as an integer and as a pointer. */
ts_v kernel_word(ts_emit *e, int index);
ts_v kernel_pointer(ts_emit *e, int index);

#endif
