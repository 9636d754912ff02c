#include "kernel/gemm/gemm_widen.h"
#include "kernel/scatter_rows.h"

static inline void add_row_bf16(uint16_t *x, const uint16_t *y, int64_t columns) {
  ts_gemm_widen_base.add_half(TS_BF16, y, columns, x);
}
static inline void add_row_f16(uint16_t *x, const uint16_t *y, int64_t columns) {
  ts_gemm_widen_base.add_half(TS_F16, y, columns, x);
}
TS_SCATTER_DEFINE_HALF(add_bf16, add_row_bf16)
TS_SCATTER_DEFINE_HALF(add_f16, add_row_f16)

const ts_scatter_halves ts_scatter_halves_base = {add_f16, add_bf16};
