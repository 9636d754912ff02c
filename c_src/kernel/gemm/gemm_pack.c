/* Chooses how an operand is packed. */
#include "kernel/gemm/gemm_internal.h"

/* True for floats that are computed in a wider type, and for integers that are computed as floats. */
static bool becomes_float(const gemm_pack *p) {
  return (p->compute == TS_GEMM_F32 && p->dtype != TS_F32) || (p->compute == TS_GEMM_F64 && p->dtype != TS_F64);
}

void ts_gemm_pack(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                  int64_t panel_bytes) {
  if (pack->numbers != GEMM_REAL) {
    ts_gemm_pack_complex(pack, source, units, k, panels, panel_bytes);
    return;
  }
  if (becomes_float(pack)) {
    ts_gemm_pack_widened(pack, source, units, k, panels, panel_bytes);
    return;
  }
  ts_gemm_pack_native(pack, source, units, k, panels, panel_bytes);
}
