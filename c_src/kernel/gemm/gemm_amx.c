#include "kernel/gemm/gemm_amx.h"

/* Rows or columns of a tile register, and steps of k of one instruction. */
#define UNIT TS_CONTRACT_TILE_CHAIN
#define PANEL (2 * UNIT)

#if defined(__x86_64__)
#include "kernel/inline.h"
#include "kernel/isa_amx.h"

void ts_gemm_amx_set_geometry(ts_gemm_geometry *out) {
  out->vectors = 2;
  out->rows[0] = out->panel = PANEL;
  for (int h = 1; h < TS_GEMM_HEIGHTS; h++) out->rows[h] = 0; /* any number of rows is one tile */
}

/* ---- tiles ---- */

/* Registers: 0 to 3 sums (upper left, upper right, lower left, lower right), 4 and 5 rows, 6 and 7 columns. */
typedef struct configuration {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} configuration;

static void set_register(configuration *c, int index, int64_t rows, int64_t cols) {
  c->rows[index] = (uint8_t)rows;
  c->bytes[index] = (uint16_t)(4 * cols);
}

/* The sizes of registers for `steps` of k. A register without rows or columns is one of one element, and not used. */
static void configure(gemm_amx_tile *t, int64_t steps) {
  _Alignas(64) configuration c = {.palette = 1};
  const int64_t sizes = steps << 16 | t->rows << 8 | t->cols;
  if (t->sizes == sizes) return;
  t->sizes = sizes;
  const int64_t upper = gemm_min(UNIT, t->rows), lower = gemm_max(1, t->rows - UNIT);
  const int64_t left = gemm_min(UNIT, t->cols), right = gemm_max(1, t->cols - UNIT);
  set_register(&c, 0, upper, left);
  set_register(&c, 1, upper, right);
  set_register(&c, 2, lower, left);
  set_register(&c, 3, lower, right);
  set_register(&c, 4, upper, steps);
  set_register(&c, 5, lower, steps);
  set_register(&c, 6, steps, left);
  set_register(&c, 7, steps, right);
  gemm_amx_will_read(&c);
  _tile_loadconfig(&c);
}

typedef struct quarters {
  bool right, lower;
} quarters;

static void load_sums(const gemm_amx_tile *t, quarters has, bool goes_on) {
  const char *out = goes_on ? t->to : t->out;
  const size_t stride = (size_t)(goes_on ? t->to_stride : t->out_stride);
  const char *below = out + UNIT * stride;
  if (!goes_on && !t->adds) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, out, stride);
  if (has.right) _tile_loadd(1, out + UNIT * 4, stride);
  if (has.lower) _tile_loadd(2, below, stride);
  if (has.right && has.lower) _tile_loadd(3, below + UNIT * 4, stride);
}

static void store_sums(const gemm_amx_tile *t, quarters has) {
  char *out = t->to, *below = out + UNIT * t->to_stride;
  const size_t stride = (size_t)t->to_stride;
  _tile_stored(0, out, stride);
  if (has.right) _tile_stored(1, out + UNIT * 4, stride);
  if (has.lower) _tile_stored(2, below, stride);
  if (has.right && has.lower) _tile_stored(3, below + UNIT * 4, stride);
}

/* ---- rounding ---- */

/* Rows that are rounded while AMX multiplies for one chain. */
#define ROUNDED_ROWS 4

/* The upper halves have the bits of the rounded numbers. */
INLINE __m512i rounded(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), even);
  return _mm512_mask_mov_epi32(sum, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_set1_epi32(0x7FC00000));
}

/* Rounds some of the rows that are left. */
INLINE void round_rows(gemm_amx_rounding *r, int64_t most) {
  const __m512i upper = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25,
                                         23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __mmask32 mask = r->cols >= PANEL ? ~UINT32_C(0) : (UINT32_C(1) << r->cols) - 1;
  for (int64_t i = gemm_min(most, r->rows); i > 0; i--) {
    const __m512i left = rounded(_mm512_loadu_ps(r->sums)), right = rounded(_mm512_loadu_ps(r->sums + UNIT * 4));
    _mm512_mask_storeu_epi16(r->to, mask, _mm512_permutex2var_epi16(left, upper, right));
    r->sums += PANEL * 4;
    r->to += r->stride;
    r->rows--;
  }
}

void ts_gemm_amx_round(gemm_amx_rounding *r) { round_rows(r, r->rows); }

/* Fetches some lines of the rows into L2. */
INLINE void fetch_lines(gemm_amx_ahead *a) {
  for (int64_t i = 0; i < a->pace && a->rows > 0; i++) {
    __builtin_prefetch(a->at + a->line, 0, 2);
    a->line += 64;
    if (a->line < a->bytes) continue;
    a->line = 0;
    a->at += a->stride;
    a->rows--;
  }
}

/* What the other units do for one chain while AMX multiplies. */
INLINE void run_meanwhile(gemm_amx_tile *t) {
  if (t->rounding.rows > 0) round_rows(&t->rounding, ROUNDED_ROWS);
  if (t->ahead.rows > 0) fetch_lines(&t->ahead);
}

/* `chains` of `steps` steps each, for the quarters that there are. */
#define DEFINE_SUMS(name, multiply)                                                                            \
  static void quarters_##name(const char *lhs, const char *rhs, int64_t chains, int64_t steps, quarters has) { \
    const size_t left = (size_t)steps * 4, right = PANEL * 4;                                                  \
    for (int64_t c = 0; c < chains; c++, lhs += PANEL * left, rhs += UNIT * right) {                           \
      _tile_loadd(4, lhs, left);                                                                               \
      _tile_loadd(6, rhs, right);                                                                              \
      multiply(0, 4, 6);                                                                                       \
      if (has.right) {                                                                                         \
        _tile_loadd(7, rhs + UNIT * 4, right);                                                                 \
        multiply(1, 4, 7);                                                                                     \
      }                                                                                                        \
      if (!has.lower) continue;                                                                                \
      _tile_loadd(5, lhs + UNIT * left, left);                                                                 \
      multiply(2, 5, 6);                                                                                       \
      if (has.right) multiply(3, 5, 7);                                                                        \
    }                                                                                                          \
  }

/* The same of all quarters, without choices. A panel of lhs, which many panels of rhs follow, stays in L1: columns of
 * rhs are loaded as numbers that are used once, or they would push it out. While AMX multiplies, rows of the tile
 * before are rounded. */
#define DEFINE_ALL(name, multiply)                                                             \
  static void all_##name(const char *lhs, const char *rhs, int64_t chains, gemm_amx_tile *t) { \
    const size_t left = UNIT * 4, right = PANEL * 4;                                           \
    for (int64_t c = 0; c < chains; c++, lhs += PANEL * left, rhs += UNIT * right) {           \
      _tile_stream_loadd(6, rhs, right);                                                       \
      _tile_loadd(4, lhs, left);                                                               \
      _tile_stream_loadd(7, rhs + UNIT * 4, right);                                            \
      _tile_loadd(5, lhs + UNIT * left, left);                                                 \
      multiply(0, 4, 6);                                                                       \
      multiply(1, 4, 7);                                                                       \
      multiply(2, 5, 6);                                                                       \
      multiply(3, 5, 7);                                                                       \
      run_meanwhile(t);                                                                        \
    }                                                                                          \
  }

DEFINE_SUMS(bf16, _tile_dpbf16ps)
DEFINE_ALL(bf16, _tile_dpbf16ps)
DEFINE_SUMS(ss, _tile_dpbssd)
DEFINE_ALL(ss, _tile_dpbssd)
DEFINE_SUMS(su, _tile_dpbsud)
DEFINE_ALL(su, _tile_dpbsud)
DEFINE_SUMS(us, _tile_dpbusd)
DEFINE_ALL(us, _tile_dpbusd)
DEFINE_SUMS(uu, _tile_dpbuud)
DEFINE_ALL(uu, _tile_dpbuud)

typedef void (*sum_quarters_fn)(const char *lhs, const char *rhs, int64_t chains, int64_t steps, quarters has);
typedef void (*sum_all_fn)(const char *lhs, const char *rhs, int64_t chains, gemm_amx_tile *tile);

#define FOR_EACH_PRODUCT(name)                                                                                      \
  {                                                                                                                 \
    [GEMM_AMX_BF16] = name##_bf16, [GEMM_AMX_SS] = name##_ss, [GEMM_AMX_SU] = name##_su, [GEMM_AMX_US] = name##_us, \
    [GEMM_AMX_UU] = name##_uu                                                                                       \
  }
static const sum_quarters_fn sum_quarters[GEMM_AMX_PRODUCTS] = FOR_EACH_PRODUCT(quarters);
static const sum_all_fn sum_all[GEMM_AMX_PRODUCTS] = FOR_EACH_PRODUCT(all);

/* Chains of `steps` steps each, from step `first` of k on. */
static void run_chains(gemm_amx_tile *t, int64_t first, int64_t chains, int64_t steps) {
  const quarters has = {t->cols > UNIT, t->rows > UNIT};
  const char *lhs = t->lhs + first * PANEL * 4, *rhs = t->rhs + first * PANEL * 4;
  configure(t, steps);
  load_sums(t, has, first > 0);
  if (has.right && has.lower && steps == UNIT)
    sum_all[t->product](lhs, rhs, chains, t);
  else
    sum_quarters[t->product](lhs, rhs, chains, steps, has);
  store_sums(t, has);
}

/* ---- tiny numbers ---- */

/* The low and the high halves of pairs, as f32. */
static __m512 low_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
static __m512 high_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xFFFF0000u)));
}

/* Rows that are computed together: so the pairs of rhs become floats once for all of them. */
#define SLOW_ROWS 4

typedef struct slow_sums {
  __m512 low[SLOW_ROWS][2], high[SLOW_ROWS][2];
} slow_sums;

/* Two chains of `steps` terms of SLOW_ROWS rows and 32 columns. */
static void sum_chains(const int32_t *const *lhs, const char *rhs, int64_t steps, slow_sums *out) {
  slow_sums s;
#pragma GCC unroll 4
  for (int r = 0; r < SLOW_ROWS; r++) s.low[r][0] = s.low[r][1] = s.high[r][0] = s.high[r][1] = _mm512_setzero_ps();
  for (int64_t k = 0; k < steps; k++, rhs += PANEL * 4) {
    const __m512i near = _mm512_loadu_si512(rhs), far = _mm512_loadu_si512(rhs + UNIT * 4);
    const __m512 near_low = low_of(near), near_high = high_of(near), far_low = low_of(far), far_high = high_of(far);
#pragma GCC unroll 4
    for (int r = 0; r < SLOW_ROWS; r++) {
      const __m512i pair = _mm512_set1_epi32(lhs[r][k]);
      const __m512 low = low_of(pair), high = high_of(pair);
      s.low[r][0] = _mm512_fmadd_ps(low, near_low, s.low[r][0]);
      s.high[r][0] = _mm512_fmadd_ps(high, near_high, s.high[r][0]);
      s.low[r][1] = _mm512_fmadd_ps(low, far_low, s.low[r][1]);
      s.high[r][1] = _mm512_fmadd_ps(high, far_high, s.high[r][1]);
    }
  }
  *out = s;
}

/* Adds the chains of one row of the tile, or stores them. */
static void store_slowly(const gemm_amx_tile *t, int64_t row, const __m512 *low, const __m512 *high, bool goes_on) {
  for (int64_t col = 0; col < t->cols; col += UNIT) {
    const __mmask16 mask = (__mmask16)((1u << gemm_min(UNIT, t->cols - col)) - 1);
    const char *out = goes_on ? t->to + row * t->to_stride : t->out + row * t->out_stride;
    __m512 sum = _mm512_add_ps(low[col / UNIT], high[col / UNIT]);
    if (t->adds || goes_on) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + col * 4), sum);
    _mm512_mask_storeu_ps(t->to + row * t->to_stride + col * 4, mask, sum);
  }
}

/* Rows past the last one repeat it, and are not stored. */
static void run_slowly(const gemm_amx_tile *t) {
  const int32_t *lhs[SLOW_ROWS];
  slow_sums sums;
  for (int64_t first = 0; first < t->k; first += UNIT)
    for (int64_t row = 0; row < t->rows; row += SLOW_ROWS) {
      const int64_t steps = gemm_min(UNIT, t->k - first);
      for (int r = 0; r < SLOW_ROWS; r++)
        lhs[r] = (const int32_t *)(const void *)(t->lhs + (first * PANEL + gemm_min(row + r, t->rows - 1) * steps) * 4);
      sum_chains(lhs, t->rhs + first * PANEL * 4, steps, &sums);
      for (int r = 0; r < SLOW_ROWS && row + r < t->rows; r++)
        store_slowly(t, row + r, sums.low[r], sums.high[r], first > 0);
    }
}

void ts_gemm_amx_run(gemm_amx_tile *t) {
  const int64_t whole = t->k / UNIT, rest = t->k % UNIT;
  if (t->has_tiny) {
    run_slowly(t);
    return;
  }
  if (whole > 0) run_chains(t, 0, whole, UNIT);
  if (rest > 0) run_chains(t, whole * UNIT, 1, rest);
}

void ts_gemm_amx_end(void) { _tile_release(); }

#include "kernel/isa_end.h"

#else

/* ts_target.amx is false here, so nothing calls these functions. */
void ts_gemm_amx_set_geometry(ts_gemm_geometry *out) { (void)out; }
void ts_gemm_amx_run(gemm_amx_tile *t) { (void)t; }
void ts_gemm_amx_round(gemm_amx_rounding *r) { (void)r; }
void ts_gemm_amx_end(void) {}

#endif
