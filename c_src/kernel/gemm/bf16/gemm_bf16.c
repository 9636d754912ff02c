#include "kernel/gemm/bf16/gemm_bf16.h"

#include "kernel/gemm/gemm_widen.h"
#include "kernel/inline.h"

#include <string.h>

#if defined(__x86_64__)
#include "kernel/isa_avx512.h"

/* Pairs of a row that are side by side in a packed lhs. */
#define UNIT TS_CONTRACT_TILE_CHAIN
#define PANEL (2 * UNIT)
#define PAIR 4 /* bytes */
#define ROW (PANEL * PAIR)
#define STEPS (2 * TS_GEMM_AMX_STEPS) /* elements along k that are converted or turned together */

/* Elements of bf16: of a panel's units at most, which are rows of lhs or columns of rhs. Strides in elements. */
typedef struct halves {
  const uint16_t *at;
  int64_t unit, k;
} halves;

/* The bits by which pairs of neighbours in memory, the first of which is in the low half, are turned when packed. To
 * ask the target is a call, around which vectors leave their registers: so loops over vectors come after it. */
static __m512i turn_of_pairs(void) { return _mm512_set1_epi32(ts_target_host()->amx ? 0 : 16); }

void ts_gemm_bf16_swap(char *pairs, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    _mm512_storeu_si512(pairs + i, _mm512_rol_epi32(_mm512_loadu_si512(pairs + i), 16));
}

/* ---- tiny numbers ---- */

/* The bits of numbers of bf16, without their signs, that are neither 0 nor at least 2^-56 are from 1 to TINY. */
#define TINY ((71 << 7) - 1)

/* The lanes that are tiny. */
static __mmask32 find_tiny(__m512i x) {
  const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), one = _mm512_set1_epi16(1);
  return _mm512_cmplt_epu16_mask(_mm512_sub_epi16(magnitude, one), _mm512_set1_epi16(TINY));
}

/* ---- units that are neighbours ---- */

static __mmask32 first_halves(int64_t count) { return count >= 32 ? ~UINT32_C(0) : (UINT32_C(1) << count) - 1; }

/* The pairs of two steps: 0 in place of the second one if there is none. */
static __mmask32 join_steps(const uint16_t *from, int64_t next, __mmask32 units, bool has_next, __m512i turn,
                            char *to) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                       5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __m512i first = _mm512_maskz_loadu_epi16(units, from);
  const __m512i second = _mm512_maskz_loadu_epi16(has_next ? units : 0, has_next ? from + next : from);
  _mm512_storeu_si512(to, _mm512_rolv_epi32(_mm512_permutex2var_epi16(first, low, second), turn));
  _mm512_storeu_si512(to + ROW / 2, _mm512_rolv_epi32(_mm512_permutex2var_epi16(first, high, second), turn));
  return find_tiny(first) | find_tiny(second);
}

/* Prefetch distance in pairs of steps: the next row may be far from the end of the current one. */
#define PAIRS_AHEAD 8

/* Panels of units, step after step across all of them, so that memory is read in order. */
static bool join_units(const halves *h, int64_t units, int64_t k, char *panels) {
  const int64_t bytes = gemm_ceil_div(k, 2) * ROW;
  const __m512i turn = turn_of_pairs();
  __mmask32 tiny = 0;
  for (int64_t i = 0; i < k; i += 2, panels += ROW) {
    const uint16_t *from = h->at + i * h->k;
    const bool has_more = i + 2 * PAIRS_AHEAD + 1 < k;
    char *to = panels;
    for (int64_t u = 0; u < units; u += PANEL, to += bytes) {
      if (has_more) {
        __builtin_prefetch(from + 2 * PAIRS_AHEAD * h->k + u);
        __builtin_prefetch(from + (2 * PAIRS_AHEAD + 1) * h->k + u);
      }
      tiny |= join_steps(from + u, h->k, first_halves(units - u), i + 1 < k, turn, to);
    }
  }
  return tiny != 0;
}

/* ---- units whose steps are neighbours ---- */

/* Up to 16 pairs of a unit. */
static __m512i load_pairs(const uint16_t *from, int64_t elements) {
  return _mm512_maskz_loadu_epi16(first_halves(elements), from);
}

static bool copy_unit(const uint16_t *from, int64_t k, int64_t unit, __m512i turn, char *panel) {
  __mmask32 tiny = 0;
  int64_t i = 0;
  char *to = panel + unit * UNIT * PAIR;
  for (; i + PANEL <= k; i += PANEL, to += PANEL * UNIT * PAIR) {
    const __m512i pairs = _mm512_loadu_si512(from + i);
    tiny |= find_tiny(pairs);
    _mm512_storeu_si512(to, _mm512_rolv_epi32(pairs, turn));
  }
  if (i == k) return tiny != 0;
  const int64_t left = gemm_ceil_div(k - i, 2);
  const __m512i pairs = load_pairs(from + i, k - i);
  to = panel + (i / 2 * PANEL + unit * left) * PAIR;
  _mm512_mask_storeu_epi32(to, (__mmask16)((1u << left) - 1), _mm512_rolv_epi32(pairs, turn));
  return (tiny | find_tiny(pairs)) != 0;
}

/* Up to 16 rows of up to 16 pairs each, which become columns. */
typedef struct square {
  const char *from;
  int64_t stride, rows; /* stride: bytes from a row to the next */
  int64_t elements;     /* of a row: an odd one at the end is joined by 0 */
  char *to;
  int64_t step;    /* bytes from a column to the next */
  __mmask16 lanes; /* that are stored */
  bool is_joined;  /* rows are of packed pairs; else of neighbours in memory */
} square;

/* Rows and elements that are missing are zeros. */
INLINE __mmask32 load_square(const square *s, __m512i *x) {
  const __mmask32 mask = first_halves(s->elements);
  const __m512i turn = turn_of_pairs();
  __mmask32 tiny = 0;
#pragma GCC unroll 16
  for (int r = 0; r < 16; r++) {
    x[r] = _mm512_maskz_loadu_epi16(r < s->rows ? mask : 0, r < s->rows ? s->from + r * s->stride : s->from);
    tiny |= find_tiny(x[r]);
    if (!s->is_joined) x[r] = _mm512_rolv_epi32(x[r], turn);
  }
  return tiny;
}

/* Quarter q of y[4 g + c] is column 4 q + c of rows 4 g to 4 g + 3. */
INLINE void turn_quarters(const __m512i *x, __m512i *y) {
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {
    const __m512i low = _mm512_unpacklo_epi32(x[g], x[g + 1]), high = _mm512_unpackhi_epi32(x[g], x[g + 1]);
    const __m512i low2 = _mm512_unpacklo_epi32(x[g + 2], x[g + 3]), high2 = _mm512_unpackhi_epi32(x[g + 2], x[g + 3]);
    y[g] = _mm512_unpacklo_epi64(low, low2);
    y[g + 1] = _mm512_unpackhi_epi64(low, low2);
    y[g + 2] = _mm512_unpacklo_epi64(high, high2);
    y[g + 3] = _mm512_unpackhi_epi64(high, high2);
  }
}

INLINE void store_column(const square *s, int64_t column, __m512i x) {
  if (column < (s->elements + 1) / 2) _mm512_mask_storeu_epi32(s->to + column * s->step, s->lanes, x);
}

static __mmask32 turn_square(const square *s) {
  __m512i x[16], y[16];
  const __mmask32 tiny = load_square(s, x);
  turn_quarters(x, y);
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    const __m512i even = _mm512_shuffle_i32x4(y[c], y[4 + c], 0x88), odd = _mm512_shuffle_i32x4(y[c], y[4 + c], 0xDD);
    const __m512i even2 = _mm512_shuffle_i32x4(y[8 + c], y[12 + c], 0x88),
                  odd2 = _mm512_shuffle_i32x4(y[8 + c], y[12 + c], 0xDD);
    store_column(s, c, _mm512_shuffle_i32x4(even, even2, 0x88));
    store_column(s, 4 + c, _mm512_shuffle_i32x4(odd, odd2, 0x88));
    store_column(s, 8 + c, _mm512_shuffle_i32x4(even, even2, 0xDD));
    store_column(s, 12 + c, _mm512_shuffle_i32x4(odd, odd2, 0xDD));
  }
  return tiny;
}

/* The units become the columns of a panel. */
static bool turn_units(const halves *h, int64_t units, int64_t k, char *panel) {
  __mmask32 tiny = 0;
  for (int64_t u = 0; u < units; u += UNIT)
    for (int64_t i = 0; i < k; i += PANEL)
      tiny |= turn_square(&(square){.from = (const char *)(h->at + u * h->unit + i),
                                    .stride = 2 * h->unit,
                                    .rows = units - u,
                                    .elements = gemm_min(PANEL, k - i),
                                    .to = panel + i / 2 * ROW + u * PAIR,
                                    .step = ROW,
                                    .lanes = 0xFFFF});
  return tiny != 0;
}

/* ---- elements that are converted, or at any distance ---- */

/* A panel's elements as bf16. */
typedef struct staged {
  _Alignas(64) uint16_t elements[PANEL * STEPS];
} staged;

/* Rows of `count` elements that are neighbours; `by_k`: along k. */
static void convert_rows(const gemm_pack *p, const char *from, int64_t rows, int64_t count, bool by_k, uint16_t *to) {
  const gemm_widen *with = ts_gemm_widen_host();
  const int64_t size = (int64_t)ts_dtype_size(p->dtype), scale_size = (int64_t)ts_dtype_size(p->scale_type);
  float wide[STEPS], scales[PANEL];
  for (int64_t u = 0; u < (by_k ? rows : count); u++) {
    const char *at = p->scale ? p->scale + u * p->scale_unit * scale_size : NULL;
    scales[u] = at ? (float)ts_scalar_to_f64(p->scale_type, ts_scalar_load(p->scale_type, at)) : 1;
  }
  for (int64_t r = 0; r < rows; r++) {
    with->to_f32(&(gemm_widen_rows){.type = p->dtype,
                                    .from = from + r * (by_k ? p->unit_stride : p->k_stride) * size,
                                    .rows = 1,
                                    .count = count,
                                    .out = (char *)wide,
                                    .scales = by_k ? scales + r : scales,
                                    .scale_step = by_k ? 0 : 1});
    with->narrow(TS_BF16, wide, count, to + r * count);
  }
}

/* The elements of each unit next to each other. */
static void gather(const gemm_pack *p, const char *from, int64_t units, int64_t k, char *to) {
  const int64_t size = (int64_t)ts_dtype_size(p->dtype);
  for (int64_t u = 0; u < units; u++)
    for (int64_t i = 0; i < k; i++, to += size)
      memcpy(to, from + (u * p->unit_stride + i * p->k_stride) * size, (size_t)size);
}

/* The panel's elements: where they are, if they are bf16 that are neighbours along k or along units, else in `aside`.
 */
static halves find_halves(const gemm_pack *p, const char *from, int64_t units, int64_t k, staged *aside) {
  const bool is_bf16 = p->dtype == TS_BF16 && !p->scale, by_k = p->k_stride == 1;
  const bool by_units = !by_k && p->unit_stride == 1;
  if (is_bf16 && (by_k || by_units)) return (halves){(const uint16_t *)(const void *)from, p->unit_stride, p->k_stride};
  if (is_bf16) {
    gather(p, from, units, k, (char *)aside->elements);
    return (halves){aside->elements, k, 1};
  }
  if (by_units) {
    convert_rows(p, from, k, units, false, aside->elements);
    return (halves){aside->elements, 1, units};
  }
  if (by_k) {
    convert_rows(p, from, units, k, true, aside->elements);
    return (halves){aside->elements, k, 1};
  }
  staged near;
  gemm_pack packed = *p;
  packed.unit_stride = k;
  packed.k_stride = 1;
  gather(p, from, units, k, (char *)near.elements);
  convert_rows(&packed, (const char *)near.elements, units, k, true, aside->elements);
  return (halves){aside->elements, k, 1};
}

/* ---- panels ---- */

/* The pack and the elements of a panel of units. */
static halves find_panel(const gemm_pack *p, const char *source, int64_t first, int64_t units, int64_t k,
                         staged *aside) {
  gemm_pack from = *p;
  if (p->scale) from.scale += first * p->scale_unit * (int64_t)ts_dtype_size(p->scale_type);
  return find_halves(&from, source + first * p->unit_stride * (int64_t)ts_dtype_size(p->dtype), units, k, aside);
}

/* What is packed in one call, from step `first` of k on. */
static const char *from_step(const gemm_pack *p, const char *source, int64_t first) {
  return source + first * p->k_stride * (int64_t)ts_dtype_size(p->dtype);
}

/* A panel of up to STEPS steps. */
static bool pack_columns(const gemm_pack *p, const char *source, int64_t first, int64_t units, int64_t k, char *panel) {
  staged aside;
  const halves h = find_panel(p, source, first, units, k, &aside);
  return h.unit == 1 && h.k != 1 ? join_units(&h, units, k, panel) : turn_units(&h, units, k, panel);
}

bool ts_gemm_bf16_pack_right(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  const int64_t panel = gemm_ceil_div(k, 2) * ROW;
  bool tiny = false;
  if (p->dtype == TS_BF16 && !p->scale && p->unit_stride == 1 && p->k_stride != 1)
    return join_units(&(halves){(const uint16_t *)(const void *)source, 1, p->k_stride}, units, k, panels);
  for (int64_t u = 0; u < units; u += PANEL, panels += panel)
    for (int64_t i = 0; i < k; i += STEPS)
      tiny |= pack_columns(p, from_step(p, source, i), u, gemm_min(PANEL, units - u), gemm_min(STEPS, k - i),
                           panels + i / 2 * ROW);
  return tiny;
}

#define ROWS_AHEAD 4

/* Pairs of steps, joined as of rhs, become rows. */
static bool turn_steps(const halves *h, int64_t units, int64_t k, char *panel) {
  _Alignas(64) char joined[TS_GEMM_AMX_STEPS * ROW];
  const int64_t pairs = gemm_ceil_div(k, 2);
  const bool tiny = join_units(h, units, k, joined);
  for (int64_t first = 0; first < pairs; first += UNIT) {
    const int64_t steps = gemm_min(UNIT, pairs - first);
    for (int64_t u = 0; u < units; u += UNIT)
      turn_square(&(square){.from = joined + first * ROW + u * PAIR,
                            .stride = ROW,
                            .rows = steps,
                            .elements = 2 * gemm_min(UNIT, units - u),
                            .to = panel + (first * PANEL + u * steps) * PAIR,
                            .step = steps * PAIR,
                            .lanes = (__mmask16)((1u << steps) - 1),
                            .is_joined = true});
  }
  return tiny;
}

static bool pack_rows(const gemm_pack *p, const char *source, int64_t first, int64_t units, int64_t k, char *panel) {
  bool tiny = false;
  staged aside;
  const halves h = find_panel(p, source, first, units, k, &aside);
  if (h.k != 1) return turn_steps(&h, units, k, panel);
  const __m512i turn = turn_of_pairs();
  for (int64_t u = 0; u < units; u++) tiny |= copy_unit(h.at + u * h.unit, k, u, turn, panel);
  return tiny;
}

/* Rows of bf16 that are neighbours along k: each is read from its begin to its end. */
static bool copy_rows(const gemm_pack *p, const uint16_t *from, int64_t units, int64_t k, char *panel) {
  const __m512i turn = turn_of_pairs();
  bool tiny = false;
  for (int64_t u = 0; u < units; u++, from += p->unit_stride) {
    if (u + ROWS_AHEAD < units && k <= STEPS)
      for (int64_t i = 0; i < k; i += PANEL) __builtin_prefetch(from + ROWS_AHEAD * p->unit_stride + i);
    tiny |= copy_unit(from, k, u, turn, panel);
  }
  return tiny;
}

bool ts_gemm_bf16_pack_left(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  const int64_t panel = gemm_ceil_div(k, 2) * ROW;
  bool tiny = false;
  for (int64_t u = 0; u < units; u += PANEL, panels += panel) {
    const int64_t here = gemm_min(PANEL, units - u);
    if (p->dtype == TS_BF16 && !p->scale && p->k_stride == 1) {
      tiny |= copy_rows(p, (const uint16_t *)(const void *)source + u * p->unit_stride, here, k, panels);
      continue;
    }
    for (int64_t i = 0; i < k; i += STEPS)
      tiny |= pack_rows(p, from_step(p, source, i), u, here, gemm_min(STEPS, k - i), panels + i / 2 * ROW);
  }
  return tiny;
}

/* ---- vectors ---- */

bool ts_gemm_bf16_pack_vectors(const gemm_pack *p, const char *source, int64_t units, int64_t k, uint32_t *out) {
  __mmask32 tiny = 0;
  staged aside;
  for (int64_t first = 0; first < k; first += STEPS) {
    const int64_t steps = gemm_min(STEPS, k - first);
    const halves h = find_halves(p, from_step(p, source, first), units, steps, &aside);
    for (int64_t i = 0; i < steps; i += 2)
      for (int64_t u = 0; u < units; u++) {
        const uint16_t *at = h.at + u * h.unit + i * h.k;
        *out++ = at[0] | (i + 1 < steps ? (uint32_t)at[h.k] << 16 : 0);
      }
  }
  const int64_t pairs = gemm_ceil_div(k, 2) * units;
  for (int64_t i = 0; i < pairs; i += UNIT)
    tiny |= find_tiny(_mm512_maskz_loadu_epi32((__mmask16)(first_halves(pairs - i) & 0xFFFF), out - pairs + i));
  return tiny != 0;
}

#include "kernel/isa_end.h"

#else

/* Nothing calls these functions here. */
bool ts_gemm_bf16_pack_right(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  return p && source && panels && units + k < 0;
}
bool ts_gemm_bf16_pack_left(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels) {
  return p && source && panels && units + k < 0;
}

bool ts_gemm_bf16_pack_vectors(const gemm_pack *p, const char *source, int64_t units, int64_t k, uint32_t *out) {
  return p && source && out && units + k < 0;
}
void ts_gemm_bf16_swap(char *pairs, int64_t bytes) { (void)pairs, (void)bytes; }

#endif
