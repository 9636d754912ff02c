#include "kernel/isa_base.h"

#include "kernel/fft/fft_vector_body.h"
