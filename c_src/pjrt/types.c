#include "pjrt/types.h"

#include "pjrt/abi.h"

static const int types[TS_DTYPE_COUNT] = {
    [TS_S2] = PJ_S2,     [TS_S4] = PJ_S4,
    [TS_S8] = PJ_S8,     [TS_S16] = PJ_S16,
    [TS_S32] = PJ_S32,   [TS_S64] = PJ_S64,
    [TS_U2] = PJ_U2,     [TS_U4] = PJ_U4,
    [TS_U8] = PJ_U8,     [TS_U16] = PJ_U16,
    [TS_U32] = PJ_U32,   [TS_U64] = PJ_U64,
    [TS_F8] = PJ_F8E5M2, [TS_F8E4M3FN] = PJ_F8E4M3FN,
    [TS_F16] = PJ_F16,   [TS_BF16] = PJ_BF16,
    [TS_F32] = PJ_F32,   [TS_F64] = PJ_F64,
    [TS_C64] = PJ_C64,   [TS_C128] = PJ_C128,
};

int pj_type(ts_dtype dtype) { return dtype < TS_DTYPE_COUNT ? types[dtype] : 0; }

bool pj_dtype(int type, ts_dtype *out) {
  for (int i = 0; i < TS_DTYPE_COUNT; i++)
    if (types[i] && types[i] == type) {
      *out = (ts_dtype)i;
      return true;
    }
  return false;
}
