#include "kernel/fft/fft_vector.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#include "kernel/fft/fft_vector_body.h"

#include "kernel/isa_end.h"

#endif
