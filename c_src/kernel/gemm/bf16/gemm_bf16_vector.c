/* A matrix of bf16 times a few vectors. This is bound by memory: the matrix is read once, where it lies, in long rows.
 */
#include "kernel/gemm/bf16/gemm_bf16.h"
#include "kernel/inline.h"

#if defined(__x86_64__)
#include "kernel/isa_amx.h"

#define UNIT TS_CONTRACT_TILE_CHAIN
#define PAIR 4           /* bytes */
#define CHAIN (2 * UNIT) /* terms of two chains */

static __m512 low_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
static __m512 high_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xFFFF0000u)));
}
static __mmask32 first_halves(int64_t count) { return count >= 32 ? ~UINT32_C(0) : (UINT32_C(1) << count) - 1; }
static __mmask16 first_lanes(int64_t count) {
  return count >= 16 ? 0xFFFF : count <= 0 ? 0 : (__mmask16)((1u << count) - 1);
}

/* ---- rows of contiguous results ---- */

/* Pairs of rows that are read together: so sums are loaded and stored once for all of them. */
#define ROW_PAIRS 4

/* Sums of 32 columns: of the even ones and of the odd ones, in the chain of even steps and in that of odd steps. */
typedef struct columns {
  __m512 even[2], odd[2];
} columns;

INLINE void add_row(__m512i row, __m512 by, __m512 *sums) {
  sums[0] = _mm512_fmadd_ps(low_of(row), by, sums[0]);
  sums[1] = _mm512_fmadd_ps(high_of(row), by, sums[1]);
}

/* Adds `rows` rows at columns [col, col + 32) to their chains. */
INLINE void add_rows(const gemm_bf16_vectors *p, int64_t k, int64_t rows, int64_t col, __mmask32 mask, columns *c) {
  const char *from = p->x + k * p->x_stride + 2 * col;
  const uint32_t *v = p->v + k / 2;
#pragma GCC unroll 8
  for (int64_t r = 0; r < rows; r++, from += p->x_stride) {
    const uint32_t by = r % 2 ? v[r / 2] & 0xFFFF0000u : v[r / 2] << 16;
    add_row(_mm512_maskz_loadu_epi16(mask, from), _mm512_castsi512_ps(_mm512_set1_epi32((int)by)),
            r % 2 ? c->odd : c->even);
  }
}

INLINE columns load_columns(const float *at) {
  return (columns){{_mm512_loadu_ps(at), _mm512_loadu_ps(at + 16)},
                   {_mm512_loadu_ps(at + 32), _mm512_loadu_ps(at + 48)}};
}

INLINE void store_columns(const columns *c, float *at) {
  _mm512_storeu_ps(at, c->even[0]);
  _mm512_storeu_ps(at + 16, c->even[1]);
  _mm512_storeu_ps(at + 32, c->odd[0]);
  _mm512_storeu_ps(at + 48, c->odd[1]);
}

/* The chains end: adds them to the results, or stores them. */
INLINE void end_columns(const columns *c, bool is_first, int64_t count, float *out) {
  const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
  const __m512 left = _mm512_add_ps(c->even[0], c->odd[0]), right = _mm512_add_ps(c->even[1], c->odd[1]);
  const __m512 near = _mm512_permutex2var_ps(left, low, right), far = _mm512_permutex2var_ps(left, high, right);
  const __mmask16 first = first_lanes(count), second = first_lanes(count - 16);
  if (is_first) {
    _mm512_mask_storeu_ps(out, first, near);
    _mm512_mask_storeu_ps(out + 16, second, far);
    return;
  }
  _mm512_mask_storeu_ps(out, first, _mm512_add_ps(_mm512_maskz_loadu_ps(first, out), near));
  _mm512_mask_storeu_ps(out + 16, second, _mm512_add_ps(_mm512_maskz_loadu_ps(second, out + 16), far));
}

/* Rows [k, k + rows) of two chains, across all columns. */
INLINE void add_to_chains(const gemm_bf16_vectors *p, int64_t k, int64_t rows, float *aside) {
  const bool begins = k % CHAIN == 0, ends = k % CHAIN + rows == CHAIN || k + rows == p->k;
  float *out = (float *)(void *)p->out;
  for (int64_t col = 0; col < p->count; col += 32) {
    columns c = {{_mm512_setzero_ps(), _mm512_setzero_ps()}, {_mm512_setzero_ps(), _mm512_setzero_ps()}};
    if (!begins) c = load_columns(aside + 2 * col);
    add_rows(p, k, rows, col, first_halves(p->count - col), &c);
    if (ends)
      end_columns(&c, k < CHAIN, p->count - col, out + col);
    else
      store_columns(&c, aside + 2 * col);
  }
}

void ts_gemm_bf16_axpy(const gemm_bf16_vectors *p, float *aside) {
  int64_t k = 0;
  for (; k + 2 * ROW_PAIRS <= p->k; k += 2 * ROW_PAIRS) add_to_chains(p, k, 2 * ROW_PAIRS, aside);
  if (k < p->k) add_to_chains(p, k, p->k - k, aside);
}

/* ---- rows along k ---- */

/* Elements of a row that are read together: few, since the processor reads ahead in each row while AMX multiplies. */
#define PIECE 128

/* The bits of numbers of bf16, without their signs, that are neither 0 nor at least 2^-56 are from 1 to TINY. */
#define TINY ((71 << 7) - 1)

INLINE __mmask32 find_tiny(__m512i x) {
  const __m512i magnitude = _mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), one = _mm512_set1_epi16(1);
  return _mm512_cmplt_epu16_mask(_mm512_sub_epi16(magnitude, one), _mm512_set1_epi16(TINY));
}

/* Reads a piece of some rows into the first cache. */
static bool read_piece(const gemm_bf16_vectors *p, int64_t row, int64_t rows, int64_t k, int64_t count) {
  __mmask32 tiny = 0;
  for (int64_t r = row; r < row + rows; r++) {
    const char *from = p->x + r * p->x_stride + 2 * k;
    for (int64_t i = 0; i < count; i += 32) {
      tiny |= find_tiny(_mm512_maskz_loadu_epi16(first_halves(count - i), from + 2 * i));
    }
  }
  return tiny != 0;
}

typedef struct configuration {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} configuration;

/* Register 0: sums, 1: rows, 2: vectors. */
static void configure(int64_t rows, int64_t items) {
  _Alignas(64) configuration c = {.palette = 1};
  c.rows[0] = c.rows[1] = (uint8_t)rows;
  c.rows[2] = UNIT;
  c.bytes[0] = c.bytes[2] = (uint16_t)(PAIR * items);
  c.bytes[1] = UNIT * PAIR;
  gemm_amx_will_read(&c);
  _tile_loadconfig(&c);
}

/* Adds the chains of whole registers to register 0. */
static void add_piece(const gemm_bf16_vectors *p, int64_t row, int64_t k, int64_t count) {
  const char *x = p->x + row * p->x_stride + 2 * k;
  const uint32_t *v = p->v + k / 2 * p->items;
  for (int64_t i = 0; i < count; i += CHAIN) {
    _tile_loadd(1, x + 2 * i, (size_t)p->x_stride);
    _tile_loadd(2, v + i / 2 * p->items, (size_t)(PAIR * p->items));
    _tile_dpbf16ps(0, 1, 2);
  }
}

/* The last terms, fewer than CHAIN: copies of them fill whole registers, together with zeros. */
static void add_rest(const gemm_bf16_vectors *p, int64_t row, int64_t rows, int64_t k) {
  _Alignas(64) uint16_t x[UNIT * CHAIN];
  _Alignas(64) uint32_t v[UNIT * TS_GEMM_BF16_ITEMS] = {0};
  const int64_t count = p->k - k;
  for (int64_t r = 0; r < rows; r++)
    _mm512_store_si512(x + r * CHAIN,
                       _mm512_maskz_loadu_epi16(first_halves(count), p->x + (row + r) * p->x_stride + 2 * k));
  for (int64_t i = 0; i < gemm_ceil_div(count, 2) * p->items; i++) v[i] = p->v[k / 2 * p->items + i];
  gemm_amx_will_read(x);
  gemm_amx_will_read(v);
  _tile_loadd(1, x, UNIT * PAIR);
  _tile_loadd(2, v, (size_t)(PAIR * p->items));
  _tile_dpbf16ps(0, 1, 2);
}

/* Sums of up to 16 rows; false if they have tiny elements. */
static bool sum_rows(const gemm_bf16_vectors *p, int64_t row, int64_t rows, float *sums) {
  bool tiny = p->has_tiny;
  _tile_zero(0);
  for (int64_t k = 0; k < p->k && !tiny; k += PIECE) {
    const int64_t count = gemm_min(PIECE, p->k - k), whole = count / CHAIN * CHAIN;
    tiny = read_piece(p, row, rows, k, count);
    add_piece(p, row, k, whole);
    if (whole < count) add_rest(p, row, rows, k + whole);
  }
  _tile_stored(0, sums, (size_t)(PAIR * p->items));
  return !tiny;
}

static float from_low(uint32_t pair) { return ts_f32_from_bits(pair << 16); }
static float from_high(uint32_t pair) { return ts_f32_from_bits(pair & 0xFFFF0000u); }

/* The same of one row and one vector, term after term. */
static float sum_slowly(const gemm_bf16_vectors *p, int64_t row, int64_t item) {
  const uint16_t *x = (const uint16_t *)(const void *)(p->x + row * p->x_stride);
  float sum = 0;
  for (int64_t first = 0; first < p->k; first += CHAIN) {
    float even = 0, odd = 0;
    for (int64_t k = first; k < gemm_min(first + CHAIN, p->k); k += 2) {
      const uint32_t v = p->v[k / 2 * p->items + item];
      even = __builtin_fmaf(from_low(x[k]), from_low(v), even);
      if (k + 1 < p->k) odd = __builtin_fmaf(from_low(x[k + 1]), from_high(v), odd);
    }
    sum = first == 0 ? even + odd : sum + (even + odd);
  }
  return sum;
}

void ts_gemm_bf16_dot(const gemm_bf16_vectors *p) {
  _Alignas(64) float sums[UNIT * TS_GEMM_BF16_ITEMS];
  for (int64_t row = 0; row < p->count; row += UNIT) {
    const int64_t rows = gemm_min(UNIT, p->count - row);
    if (row == 0 || rows < UNIT) configure(rows, p->items);
    const bool is_summed = sum_rows(p, row, rows, sums);
    for (int64_t i = 0; i < p->items; i++) {
      float *out = (float *)(void *)(p->out + i * TS_GEMM_ITEM_BYTES) + row;
      for (int64_t r = 0; r < rows; r++) out[r] = is_summed ? sums[r * p->items + i] : sum_slowly(p, row + r, i);
    }
  }
  _tile_release();
}

#include "kernel/isa_end.h"

#else

/* ts_target.amx is false here, so nothing calls these functions. */
void ts_gemm_bf16_axpy(const gemm_bf16_vectors *p, float *aside) { (void)p, (void)aside; }
void ts_gemm_bf16_dot(const gemm_bf16_vectors *p) { (void)p; }

#endif
