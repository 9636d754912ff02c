#include "kernel/sort/sort_lanes.h"

#include "jit/session/target.h"

const ts_sort_lanes *ts_sort_lanes_host(void) {
#if defined(__x86_64__)
  switch (ts_target_host()->isa) {
  case TS_ISA_AVX512: return &ts_sort_lanes_avx512;
  case TS_ISA_AVX2: return &ts_sort_lanes_avx2;
  default: break;
  }
#endif
  return &ts_sort_lanes_base;
}
