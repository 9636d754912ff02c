#include "kernel/gemm/quantized.h"

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

#include "kernel/gemm/quantized_512.h"
#include "kernel/gemm/quantized_body.h"

#include "kernel/isa_end.h"
#endif
