#include "kernel/pick.h"

#include "jit/session/target.h"

const ts_pick *ts_pick_host(void) {
#if defined(__x86_64__)
  switch (ts_target_host()->isa) {
  case TS_ISA_AVX512: return &ts_pick_avx512;
  case TS_ISA_AVX2: return &ts_pick_avx2;
  default: break;
  }
#endif
  return &ts_pick_base;
}
