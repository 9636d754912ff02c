/* For every machine: vectors of 16 bytes by the compiler's own means. */
#define VECTOR_BYTES 16
#define ISA(name) name##_base
#include "kernel/fft/fft_vector_body.h"
