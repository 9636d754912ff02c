/* For every machine: vectors of 16 bytes by the compiler's own means. */
#include <stdbool.h>
#include <stdint.h>

#define VECTOR_BYTES 16
#define ISA(name) name##_base

#define HALVES(at) \
  ((vf){ts_f16_to_f32((at)[0]), ts_f16_to_f32((at)[1]), ts_f16_to_f32((at)[2]), ts_f16_to_f32((at)[3])})
#define WORDS(at) ((vu){(at)[0], (at)[1], (at)[2], (at)[3]})
static inline bool every(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return (a & b & c & d) == UINT32_MAX; }
#define EVERY(x) every((x)[0], (x)[1], (x)[2], (x)[3])
#include "kernel/gemm/quantized_body.h"
