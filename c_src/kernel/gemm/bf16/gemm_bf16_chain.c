#include "kernel/gemm/bf16/gemm_bf16_chain.h"

#if defined(__x86_64__)
#include "kernel/inline.h"

#include <string.h>

#include "kernel/isa_bf16.h"

/* Floats of a vector, and pairs of a row that are side by side in a packed lhs. */
#define UNIT 16
#define PANEL (2 * UNIT)
#define PAIR 4 /* bytes */
#define CHAIN (TS_CONTRACT_CHAIN / 2)
/* Rows that are computed together. */
#define ROWS 8

bool ts_gemm_has_bf16_chains(void) {
  const ts_target *host = ts_target_host();
  return host->isa == TS_ISA_AVX512 && !host->amx && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
}

typedef struct sums {
  __m512 of[ROWS][2];
} sums;

static __mmask16 first_lanes(int64_t count) { return (__mmask16)((1u << gemm_max(0, gemm_min(UNIT, count))) - 1); }

INLINE __m512i load_pair(const char *from) {
  int32_t pair;
  memcpy(&pair, from, sizeof pair);
  return _mm512_set1_epi32(pair);
}

INLINE __m512 high_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xFFFF0000u)));
}
INLINE __m512 low_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }

/* Adds two terms; `tiny`: numbers below the normal ones count. */
INLINE __m512 add_pair(__m512 sum, __m512i left, __m512i right, bool tiny) {
  if (!tiny) return _mm512_dpbf16_ps(sum, (__m512bh)left, (__m512bh)right);
  sum = _mm512_fmadd_ps(high_of(left), high_of(right), sum);
  return _mm512_fmadd_ps(low_of(left), low_of(right), sum);
}

/* Adds `pairs` pairs of terms to the sums of the rows of lhs, whose pairs lie one row after the other. Unrolled, so
 * that the sums stay in registers. */
INLINE sums add_pairs(sums s, const char *lhs, const char *rhs, int64_t pairs, int vectors, bool tiny) {
  for (int64_t p = 0; p < pairs; p++, lhs += PAIR, rhs += PANEL * PAIR) {
    const __m512i near = _mm512_loadu_si512(rhs), far = vectors > 1 ? _mm512_loadu_si512(rhs + 64) : near;
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
      const __m512i left = load_pair(lhs + r * pairs * PAIR);
      s.of[r][0] = add_pair(s.of[r][0], left, near, tiny);
      if (vectors > 1) s.of[r][1] = add_pair(s.of[r][1], left, far, tiny);
    }
  }
  return s;
}

/* Adds the sums of a chain that has ended to the sums of earlier chains. Unrolled, as above. */
INLINE void end_chain(const gemm_amx_tile *t, int64_t row, bool is_first, int vectors, sums s) {
  const char *out = is_first ? t->out : t->to;
  const int64_t stride = is_first ? t->out_stride : t->to_stride;
  const bool adds = t->adds || !is_first;
  const __mmask16 masks[2] = {first_lanes(t->cols), first_lanes(t->cols - UNIT)};
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; r++) {
    if (row + r >= t->rows) break;
    for (int v = 0; v < vectors; v++) {
      __m512 sum = s.of[r][v];
      if (adds) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(masks[v], out + (row + r) * stride + v * 64), sum);
      _mm512_mask_storeu_ps(t->to + (row + r) * t->to_stride + v * 64, masks[v], sum);
    }
  }
}

/* The sums of the chain of pairs [k, end) of rows from `row` on. */
INLINE sums run_chain(const gemm_amx_tile *t, int64_t row, int64_t k, int64_t end, int vectors, bool tiny) {
  sums s;
  memset(&s, 0, sizeof s);
  for (; k + UNIT <= end; k += UNIT)
    s = add_pairs(s, t->lhs + (k * PANEL + row * UNIT) * PAIR, t->rhs + k * PANEL * PAIR, UNIT, vectors, tiny);
  if (k < end)
    s = add_pairs(s, t->lhs + (k * PANEL + row * (end - k)) * PAIR, t->rhs + k * PANEL * PAIR, end - k, vectors, tiny);
  return s;
}

/* Rows past the last one are those of an earlier panel: they are not stored. */
INLINE void run_rows(const gemm_amx_tile *t, int64_t row, int vectors, bool tiny) {
  for (int64_t k = 0; k < t->k; k += CHAIN) {
    const sums s = run_chain(t, row, k, gemm_min(t->k, k + CHAIN), vectors, tiny);
    end_chain(t, row, k == 0, vectors, s);
  }
}

void ts_gemm_bf16_chain_run(const gemm_amx_tile *t) {
  for (int64_t row = 0; row < t->rows; row += ROWS) {
    if (t->has_tiny)
      run_rows(t, row, 2, true);
    else if (t->cols > UNIT)
      run_rows(t, row, 2, false);
    else
      run_rows(t, row, 1, false);
  }
}

#include "kernel/isa_end.h"

#else

bool ts_gemm_has_bf16_chains(void) { return false; }
void ts_gemm_bf16_chain_run(const gemm_amx_tile *t) { (void)t; }

#endif
