/* The instructions of AMX's tiles as C functions, by Intel's description of each. gemm_amx.c and target.c are compiled
 * with -DTS_AMX_MODEL for tests: a machine with AVX-512 but without AMX computes the same tiles, and AddressSanitizer
 * sees what tile registers read and write. What the instructions refuse ends the test. Each thread has its registers.
 */
#ifndef TS_TEST_AMX_MODEL_H
#define TS_TEST_AMX_MODEL_H

#include <stdbool.h>
#include <stddef.h>

void amx_model_configure(const void *configuration);
void amx_model_release(void);
void amx_model_zero(int tile);
void amx_model_load(int tile, const void *from, size_t stride); /* bytes from a row to the next */
void amx_model_store(int tile, void *to, size_t stride);
void amx_model_sum_bf16(int sums, int lhs, int rhs);
void amx_model_sum_bytes(int sums, int lhs, bool lhs_signed, int rhs, bool rhs_signed);

/* In place of those of <immintrin.h>. */
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud
#define _tile_loadconfig amx_model_configure
#define _tile_release amx_model_release
#define _tile_zero amx_model_zero
#define _tile_loadd amx_model_load
#define _tile_stream_loadd amx_model_load
#define _tile_stored amx_model_store
#define _tile_dpbf16ps amx_model_sum_bf16
#define _tile_dpbssd(sums, lhs, rhs) amx_model_sum_bytes(sums, lhs, true, rhs, true)
#define _tile_dpbsud(sums, lhs, rhs) amx_model_sum_bytes(sums, lhs, true, rhs, false)
#define _tile_dpbusd(sums, lhs, rhs) amx_model_sum_bytes(sums, lhs, false, rhs, true)
#define _tile_dpbuud(sums, lhs, rhs) amx_model_sum_bytes(sums, lhs, false, rhs, false)

#endif
