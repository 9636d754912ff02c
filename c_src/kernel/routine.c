#include "kernel/routine.h"

/* By op, and by whether the first operand is complex. An op without an entry is left to a kernel or the interpreter. */
static const struct {
  const ts_routine *real, *complex;
} routines[TS_OP_COUNT] = {
    [TS_OP_DOT] = {&ts_gemm_routine, &ts_gemm_routine},
    [TS_OP_WIDE_DOT] = {&ts_gemm_routine, NULL},
    [TS_OP_SCALED_DOT] = {&ts_gemm_routine, NULL},
    [TS_OP_QUANTIZED_DOT] = {&ts_quantized_routine, NULL},
    [TS_OP_CONV] = {&ts_conv_routine, &ts_conv_routine},
    [TS_OP_CHOLESKY] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_SOLVE] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_DETERMINANT] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_LU] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_QR] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_EIGH] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_SVD] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_TRIANGULAR_SOLVE] = {&ts_factor_routine, &ts_factor_routine},
    [TS_OP_FFT] = {&ts_fft_routine, &ts_fft_routine},
    [TS_OP_IFFT] = {&ts_fft_routine, &ts_fft_routine},
    [TS_OP_RFFT] = {&ts_fft_routine, &ts_fft_routine},
    [TS_OP_IRFFT] = {&ts_fft_routine, &ts_fft_routine},
    [TS_OP_INDEXED_ADD] = {&ts_scatter_routine, &ts_scatter_routine},
    [TS_OP_INDEXED_PUT] = {&ts_scatter_routine, &ts_scatter_routine},
    [TS_OP_REDUCE_PRODUCT] = {NULL, &ts_complex_reduce_routine},
    [TS_OP_CUMULATIVE_SUM] = {&ts_scan_routine, &ts_scan_routine},
    [TS_OP_CUMULATIVE_PRODUCT] = {&ts_scan_routine, &ts_scan_routine},
    [TS_OP_CUMULATIVE_MIN] = {&ts_scan_routine, NULL},
    [TS_OP_CUMULATIVE_MAX] = {&ts_scan_routine, NULL},
    [TS_OP_SORT] = {&ts_sort_routine, NULL},
    [TS_OP_ARGSORT] = {&ts_sort_routine, NULL},
    [TS_OP_TOP_K] = {&ts_top_k_routine, NULL},
    [TS_OP_WINDOW_SUM] = {&ts_window_routine, &ts_window_routine},
    [TS_OP_WINDOW_PRODUCT] = {&ts_window_routine, &ts_window_routine},
    [TS_OP_WINDOW_MAX] = {&ts_window_routine, NULL},
    [TS_OP_WINDOW_MIN] = {&ts_window_routine, NULL},
    [TS_OP_WINDOW_SCATTER_MAX] = {&ts_window_routine, NULL},
    [TS_OP_WINDOW_SCATTER_MIN] = {&ts_window_routine, NULL},
#ifdef TS_TEST_ROWS
    [TS_OP_TEST_EXCHANGE] = {&ts_test_routine, NULL},
#endif
};

const ts_routine *ts_routine_of(ts_opcode op, ts_dtype type) {
  if (op >= TS_OP_COUNT) return NULL;
  return ts_dtype_is_complex(type) ? routines[op].complex : routines[op].real;
}
