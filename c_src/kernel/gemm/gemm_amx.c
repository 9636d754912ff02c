#include "kernel/gemm/gemm_amx.h"

/* Rows or columns of a tile register, and steps of k of one instruction. */
#define UNIT TS_CONTRACT_TILE_CHAIN
#define PANEL (2 * UNIT)

#if defined(__x86_64__)
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

/* `chains` of `steps` steps each, for the quarters that there are; and the same of all quarters, without choices. */
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
  }                                                                                                            \
  static void all_##name(const char *lhs, const char *rhs, int64_t chains) {                                   \
    const size_t left = UNIT * 4, right = PANEL * 4;                                                           \
    for (int64_t c = 0; c < chains; c++, lhs += PANEL * left, rhs += UNIT * right) {                           \
      _tile_loadd(6, rhs, right);                                                                              \
      _tile_loadd(4, lhs, left);                                                                               \
      _tile_loadd(7, rhs + UNIT * 4, right);                                                                   \
      _tile_loadd(5, lhs + UNIT * left, left);                                                                 \
      multiply(0, 4, 6);                                                                                       \
      multiply(1, 4, 7);                                                                                       \
      multiply(2, 5, 6);                                                                                       \
      multiply(3, 5, 7);                                                                                       \
    }                                                                                                          \
  }

DEFINE_SUMS(bf16, _tile_dpbf16ps)
DEFINE_SUMS(ss, _tile_dpbssd)
DEFINE_SUMS(su, _tile_dpbsud)
DEFINE_SUMS(us, _tile_dpbusd)
DEFINE_SUMS(uu, _tile_dpbuud)

static void (*const sum_quarters[GEMM_AMX_PRODUCTS])(const char *, const char *, int64_t, int64_t, quarters) = {
    NULL, quarters_bf16, quarters_ss, quarters_su, quarters_us, quarters_uu};
static void (*const sum_all[GEMM_AMX_PRODUCTS])(const char *, const char *, int64_t) = {NULL,   all_bf16, all_ss,
                                                                                        all_su, all_us,   all_uu};

/* Chains of `steps` steps each, from step `first` of k on. */
static void run_chains(gemm_amx_tile *t, int64_t first, int64_t chains, int64_t steps) {
  const quarters has = {t->cols > UNIT, t->rows > UNIT};
  const char *lhs = t->lhs + first * PANEL * 4, *rhs = t->rhs + first * PANEL * 4;
  configure(t, steps);
  load_sums(t, has, first > 0);
  if (has.right && has.lower && steps == UNIT)
    sum_all[t->product](lhs, rhs, chains);
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

/* Two chains of `steps` terms, of 16 columns, and their sum. */
static __m512 sum_chains(const int32_t *lhs, const char *rhs, int64_t steps) {
  __m512 low = _mm512_setzero_ps(), high = low;
  for (int64_t k = 0; k < steps; k++, rhs += PANEL * 4) {
    const __m512i left = _mm512_set1_epi32(lhs[k]), right = _mm512_loadu_si512(rhs);
    low = _mm512_fmadd_ps(low_of(left), low_of(right), low);
    high = _mm512_fmadd_ps(high_of(left), high_of(right), high);
  }
  return _mm512_add_ps(low, high);
}

/* Adds the chains from step `first` of k on to a row of the tile, or stores them. */
static void run_row_slowly(const gemm_amx_tile *t, int64_t row, int64_t first) {
  const int64_t steps = gemm_min(UNIT, t->k - first);
  const int32_t *lhs = (const int32_t *)(const void *)(t->lhs + (first * PANEL + row * steps) * 4);
  for (int64_t col = 0; col < t->cols; col += UNIT) {
    const __mmask16 mask = (__mmask16)((1u << gemm_min(UNIT, t->cols - col)) - 1);
    const char *out = first > 0 ? t->to + row * t->to_stride : t->out + row * t->out_stride;
    __m512 sum = sum_chains(lhs, t->rhs + (first * PANEL + col) * 4, steps);
    if (t->adds || first > 0) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + col * 4), sum);
    _mm512_mask_storeu_ps(t->to + row * t->to_stride + col * 4, mask, sum);
  }
}

static void run_slowly(const gemm_amx_tile *t) {
  for (int64_t first = 0; first < t->k; first += UNIT)
    for (int64_t r = 0; r < t->rows; r++) run_row_slowly(t, r, first);
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
void ts_gemm_amx_end(void) {}

#endif
