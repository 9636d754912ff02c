/* For every machine: vectors of 16 bytes by the compiler's own means. */
#define VECTOR_BYTES 16
#define ISA(name) name##_base

#define FOUR(type, at) ((vf){(float)(type)(at)[0], (float)(type)(at)[1], (float)(type)(at)[2], (float)(type)(at)[3]})
#define SIGNED(at) FOUR(int8_t, at)
#define UNSIGNED(at) FOUR(uint8_t, at)
#include "kernel/gemm/scaled_row_body.h"
