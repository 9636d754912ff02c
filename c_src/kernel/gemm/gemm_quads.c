#include "kernel/gemm/gemm_quads.h"

#include "kernel/gemm/bf16/gemm_bf16_chain.h"
#include "kernel/inline.h"

#include <string.h>

/* Rows or columns of a vector, and quads of a row that are side by side in a packed lhs. */
#define UNIT 16
#define PANEL (2 * UNIT)

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

static bool is_eight_bits(ts_dtype type) { return type == TS_S8 || type == TS_U8; }

gemm_amx_product ts_gemm_quads_product(const ts_gemm_types *types) {
  const ts_target *host = ts_target_host();
  if (!is_eight_bits(types->lhs) || !is_eight_bits(types->rhs)) return GEMM_AMX_NONE;
  if (!host->amx && !(host->isa == TS_ISA_AVX512 && __builtin_cpu_supports("avx512vnni"))) return GEMM_AMX_NONE;
  if (types->lhs == TS_S8) return types->rhs == TS_S8 ? GEMM_AMX_SS : GEMM_AMX_SU;
  return types->rhs == TS_S8 ? GEMM_AMX_US : GEMM_AMX_UU;
}

/* ---- packing ---- */

static __mmask16 first_lanes(int64_t count) { return (__mmask16)((1u << gemm_max(0, gemm_min(UNIT, count))) - 1); }

/* Columns of `steps` rows of bytes, from `from` on: a quad of each of the panel's columns. Missing ones are zeros. */
static void join_rows(const char *from, int64_t row, int64_t steps, __mmask32 columns, char *to) {
  __m256i x[TS_GEMM_QUAD];
  UNROLL for (int s = 0; s < TS_GEMM_QUAD; s++) x[s] =
      _mm256_maskz_loadu_epi8(s < steps ? columns : 0, s < steps ? from + s * row : from);
  const __m256i low = _mm256_unpacklo_epi8(x[0], x[1]), low2 = _mm256_unpacklo_epi8(x[2], x[3]),
                high = _mm256_unpackhi_epi8(x[0], x[1]), high2 = _mm256_unpackhi_epi8(x[2], x[3]);
  const __m256i a = _mm256_unpacklo_epi16(low, low2), b = _mm256_unpackhi_epi16(low, low2),
                c = _mm256_unpacklo_epi16(high, high2), d = _mm256_unpackhi_epi16(high, high2);
  _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_permute2x128_si256(a, b, 0x20)),
                                             _mm256_permute2x128_si256(c, d, 0x20), 1));
  _mm512_storeu_si512(to + 64, _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_permute2x128_si256(a, b, 0x31)),
                                                  _mm256_permute2x128_si256(c, d, 0x31), 1));
}

/* Quads of rows that are fetched ahead: the next row may be far from the end of the current one. */
#define QUADS_AHEAD 4

/* Panels of units that are neighbours, step after step across all of them, so that memory is read in order. */
static void join_units(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  const int64_t panel = gemm_ceil_div(k, TS_GEMM_QUAD) * PANEL * TS_GEMM_QUAD, row = p->k_stride;
  for (int64_t first = 0; first < k; first += TS_GEMM_QUAD, panels += PANEL * TS_GEMM_QUAD) {
    const char *from = source + first * row;
    const bool has_more = first + (QUADS_AHEAD + 1) * TS_GEMM_QUAD <= k;
    char *to = panels;
    for (int64_t u = 0; u < units; u += PANEL, to += panel) {
      for (int64_t s = 0; s < TS_GEMM_QUAD && has_more && u % 64 == 0; s++)
        __builtin_prefetch(from + (QUADS_AHEAD * TS_GEMM_QUAD + s) * row + u);
      const __mmask32 columns = units - u >= PANEL ? ~UINT32_C(0) : (UINT32_C(1) << (units - u)) - 1;
      join_rows(from + u, row, gemm_min(TS_GEMM_QUAD, k - first), columns, to);
    }
  }
}

/* Up to 16 units that are neighbours: a byte of each, of `steps` steps. */
static __m512i join_neighbours(const gemm_pack *p, const char *from, __mmask16 units, int64_t steps) {
  __m512i quads = _mm512_setzero_si512();
  for (int64_t s = 0; s < steps; s++) {
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(units, from + s * p->k_stride));
    quads = _mm512_or_si512(quads, _mm512_sllv_epi32(bytes, _mm512_set1_epi32((int)(8 * s))));
  }
  return quads;
}

/* Units at any distance. */
static __m512i join_any(const gemm_pack *p, const char *from, int64_t units, int64_t steps) {
  uint8_t quads[UNIT][TS_GEMM_QUAD] = {{0}};
  for (int64_t u = 0; u < gemm_min(units, UNIT); u++)
    for (int64_t s = 0; s < steps; s++) quads[u][s] = (uint8_t)from[u * p->unit_stride + s * p->k_stride];
  return _mm512_loadu_si512(quads);
}

/* A quad of up to 16 units. Its last steps may be missing. */
static __m512i load_quads(const gemm_pack *p, const char *from, int64_t units, int64_t steps) {
  const __mmask16 mask = first_lanes(units);
  const bool near = p->unit_stride < (INT32_MAX >> 4) && p->unit_stride > -(INT32_MAX >> 4);
  if (p->unit_stride == 1) return join_neighbours(p, from, mask, steps);
  if (p->k_stride != 1 || steps < TS_GEMM_QUAD || !near) return join_any(p, from, units, steps);
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i index = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)p->unit_stride));
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, from, 1);
}

void ts_gemm_quads_pack_right(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  if (p->unit_stride == 1) {
    join_units(p, source, units, k, panels);
    return;
  }
  for (int64_t u = 0; u < units; u += PANEL)
    for (int64_t first = 0; first < k; first += TS_GEMM_QUAD, panels += PANEL * TS_GEMM_QUAD) {
      const int64_t steps = gemm_min(TS_GEMM_QUAD, k - first);
      const char *from = source + u * p->unit_stride + first * p->k_stride;
      _mm512_storeu_si512(panels, load_quads(p, from, units - u, steps));
      if (units - u > UNIT)
        _mm512_storeu_si512(panels + 64, load_quads(p, from + UNIT * p->unit_stride, units - u - UNIT, steps));
      else
        _mm512_storeu_si512(panels + 64, _mm512_setzero_si512());
    }
}

/* VPDPBUSD multiplies numbers without signs by those with signs: where lhs and rhs are alike, 128 is added to lhs or
 * subtracted from it, and the sums are corrected. */
static bool flips(gemm_amx_product product) {
  return !ts_target_host()->amx && (product == GEMM_AMX_SS || product == GEMM_AMX_UU);
}

/* The row's steps [first, k), up to 16 quads, into `quads` of them. */
static void copy_row(const char *from, int64_t bytes, int64_t quads, __m512i sign, char *to) {
  const __mmask64 there = bytes >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bytes) - 1;
  const __m512i row = _mm512_xor_si512(_mm512_maskz_loadu_epi8(there, from), sign);
  _mm512_mask_storeu_epi32(to, first_lanes(quads), row);
}

/* A column of quads, of the rows of a panel. */
static void scatter_rows(__m512i rows, int64_t units, int64_t quads, char *to) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i index = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)quads));
  _mm512_mask_i32scatter_epi32(to, first_lanes(units), index, rows, 4);
}

/* Up to 16 quads of up to 32 rows. */
static void pack_chunk(const gemm_pack *p, const char *from, int64_t units, int64_t k, __m512i sign, char *to) {
  const int64_t quads = gemm_min(UNIT, gemm_ceil_div(k, TS_GEMM_QUAD));
  if (p->k_stride == 1) {
    for (int64_t u = 0; u < units; u++)
      copy_row(from + u * p->unit_stride, k, quads, sign, to + u * quads * TS_GEMM_QUAD);
    return;
  }
  for (int64_t q = 0; q < quads; q++)
    for (int64_t u = 0; u < units; u += UNIT) {
      const char *at = from + u * p->unit_stride + q * TS_GEMM_QUAD * p->k_stride;
      const __m512i rows = load_quads(p, at, units - u, gemm_min(TS_GEMM_QUAD, k - q * TS_GEMM_QUAD));
      scatter_rows(_mm512_xor_si512(rows, sign), units - u, quads, to + (u * quads + q) * TS_GEMM_QUAD);
    }
}

void ts_gemm_quads_pack_left(const gemm_pack *p, gemm_amx_product product, const char *source, int64_t units, int64_t k,
                             char *panels) {
  const int64_t panel = gemm_ceil_div(k, TS_GEMM_QUAD) * PANEL * TS_GEMM_QUAD;
  const __m512i sign = _mm512_set1_epi8(flips(product) ? (char)0x80 : 0);
  for (int64_t u = 0; u < units; u += PANEL, panels += panel)
    for (int64_t first = 0; first < k; first += UNIT * TS_GEMM_QUAD)
      pack_chunk(p, source + u * p->unit_stride + first * p->k_stride, gemm_min(PANEL, units - u), k - first, sign,
                 panels + first * PANEL);
}

#include "kernel/isa_end.h"

/* ---- tiles by AVX512_VNNI ---- */

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

/* Rows that are computed together. */
#define ROWS 8

typedef struct sums {
  __m512i of[ROWS][2], columns[2]; /* columns: of rhs alone, for the correction */
} sums;

INLINE __m512i load_four(const char *from) {
  int32_t quad;
  memcpy(&quad, from, sizeof quad);
  return _mm512_set1_epi32(quad);
}

/* Adds the products of numbers with signs, of rhs or of lhs, by numbers without. */
INLINE __m512i add_products(__m512i sum, __m512i left, __m512i right, bool rhs_has_signs) {
  return rhs_has_signs ? _mm512_dpbusd_epi32(sum, left, right) : _mm512_dpbusd_epi32(sum, right, left);
}

/* Adds `quads` products to the sums of the rows of lhs; `counts`: also to those of the columns. Unrolled, so that the
 * sums stay in registers. */
INLINE void add_quads(const char *const *lhs, const char *rhs, int64_t quads, bool rhs_has_signs, bool counts,
                      sums *to) {
  const __m512i one = _mm512_set1_epi8(1);
  sums s = *to;
  for (int64_t q = 0; q < quads; q++, rhs += PANEL * TS_GEMM_QUAD) {
    const __m512i near = _mm512_loadu_si512(rhs), far = _mm512_loadu_si512(rhs + 64);
    if (counts) s.columns[0] = add_products(s.columns[0], one, near, rhs_has_signs);
    if (counts) s.columns[1] = add_products(s.columns[1], one, far, rhs_has_signs);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; r++) {
      const __m512i left = load_four(lhs[r] + q * TS_GEMM_QUAD);
      s.of[r][0] = add_products(s.of[r][0], left, near, rhs_has_signs);
      s.of[r][1] = add_products(s.of[r][1], left, far, rhs_has_signs);
    }
  }
  *to = s;
}

/* What is added to the sums of all rows. */
INLINE __m512i correct(const gemm_amx_tile *t, __m512i columns) {
  const __m512i by = _mm512_slli_epi32(columns, 7), zero = _mm512_setzero_si512();
  return t->product == GEMM_AMX_SS ? _mm512_sub_epi32(zero, by) : by;
}

/* The sums of a row, with masks of the columns. */
INLINE void store_row(const gemm_amx_tile *t, int64_t row, const __m512i *sum, const __m512i *correction,
                      const __mmask16 *cols) {
  UNROLL for (int v = 0; v < 2; v++) {
    const char *out = t->out + row * t->out_stride + v * 64;
    __m512i total = _mm512_add_epi32(sum[v], correction[v]);
    if (t->adds) total = _mm512_add_epi32(total, _mm512_maskz_loadu_epi32(cols[v], out));
    _mm512_mask_storeu_epi32(t->to + row * t->to_stride + v * 64, cols[v], total);
  }
}

/* Rows from `row` on; those past the last one repeat it, and are not stored. `counts`: they find the correction of all
 * rows. */
INLINE void run_rows(const gemm_amx_tile *t, int64_t row, bool rhs_has_signs, bool counts, __m512i *correction,
                     const __mmask16 *cols) {
  const char *lhs[ROWS];
  sums s = {0}; /* of memset the sums would not stay in registers */
  for (int64_t first = 0; first < t->k; first += UNIT) {
    const int64_t quads = gemm_min(UNIT, t->k - first);
    const char *rhs = t->rhs + first * PANEL * TS_GEMM_QUAD;
    for (int r = 0; r < ROWS; r++)
      lhs[r] = t->lhs + (first * PANEL + gemm_min(row + r, t->rows - 1) * quads) * TS_GEMM_QUAD;
    add_quads(lhs, rhs, quads, rhs_has_signs, counts, &s);
  }
  UNROLL for (int v = 0; v < 2 && counts; v++) correction[v] = correct(t, s.columns[v]);
  UNROLL for (int r = 0; r < ROWS; r++) if (row + r < t->rows) store_row(t, row + r, s.of[r], correction, cols);
}

INLINE void run_tile(const gemm_amx_tile *t, bool rhs_has_signs) {
  const __mmask16 cols[] = {first_lanes(t->cols), first_lanes(t->cols - UNIT)};
  __m512i correction[] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  int64_t row = 0;
  if (flips(t->product)) {
    run_rows(t, 0, rhs_has_signs, true, correction, cols);
    row = ROWS;
  }
  for (; row < t->rows; row += ROWS) run_rows(t, row, rhs_has_signs, false, correction, cols);
}

static void run_by_vnni(const gemm_amx_tile *t) {
  if (t->product == GEMM_AMX_SS || t->product == GEMM_AMX_US)
    run_tile(t, true);
  else
    run_tile(t, false);
}

#include "kernel/isa_end.h"

void ts_gemm_own_run(gemm_amx_tile *tile) {
  if (ts_target_host()->amx)
    ts_gemm_amx_run(tile);
  else if (tile->product == GEMM_CHAIN_BF16)
    ts_gemm_bf16_chain_run(tile);
  else
    run_by_vnni(tile);
}

void ts_gemm_own_end(void) {
  if (ts_target_host()->amx) ts_gemm_amx_end();
}

#else

/* Nothing calls the others. */
gemm_amx_product ts_gemm_quads_product(const ts_gemm_types *types) {
  (void)types;
  return GEMM_AMX_NONE;
}
void ts_gemm_quads_pack_right(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  (void)p, (void)source, (void)units, (void)k, (void)panels;
}
void ts_gemm_quads_pack_left(const gemm_pack *p, gemm_amx_product product, const char *source, int64_t units, int64_t k,
                             char *panels) {
  (void)p, (void)product, (void)source, (void)units, (void)k, (void)panels;
}
void ts_gemm_own_run(gemm_amx_tile *tile) { (void)tile; }
void ts_gemm_own_end(void) {}

#endif
