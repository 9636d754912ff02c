#include "kernel/gemm/quantized.h"

#include "jit/session/target.h"
#include "tensor/contract_order.h"

const ts_quantized_code *ts_quantized_host(void) {
#if defined(__x86_64__)
  if (ts_target_host()->isa == TS_ISA_AVX512 && __builtin_cpu_supports("avx512bf16")) return &ts_quantized_bf16;
#endif
  return TS_TARGET_PICK(ts_quantized);
}

/* Chains, and the sums of blocks that wait: one more than a number of blocks has digits. */
int64_t ts_quantized_work(int64_t rows, int64_t k) {
  int64_t sums = TS_CONTRACT_MAX_LANES + 2;
  for (int64_t blocks = ts_quantized_ceil(k, TS_CONTRACT_BLOCK); blocks > 1; blocks /= 2) sums++;
  return sums * rows * TS_QUANTIZED_COLS;
}
