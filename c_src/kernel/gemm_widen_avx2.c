#include "kernel/gemm_widen.h"

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

#include "kernel/gemm_widen_body.h"

#include "kernel/isa_end.h"
#endif
