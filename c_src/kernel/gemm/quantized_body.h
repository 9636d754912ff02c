/* The code of quantized.h for one instruction set, which defines
 *   VECTOR_BYTES  of a vector: 16, 32 or 64
 *   FMA(a, b, c)  a * b + c of vectors vf
 *   HALVES(at)    a vector of f32, read from numbers of f16
 *   WORDS(at)     a vector of u32, read from numbers of u16
 *   ISA(name)     a function's or table's name, with this instruction set in it
 * A number is unpacked without a conversion. Its bits become the lowest ones of the mantissa of a power of two whose
 * lowest bit is worth 1. Then the power is subtracted. */
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/quantized.h"
#include "tensor/contract_order.h"

#include <string.h>

enum { COLS = TS_QUANTIZED_COLS, LANES = VECTOR_BYTES / 4, VECTORS = COLS / LANES };
/* Rows of a weight that are unpacked for several rows of x: they stay in L1. */
enum { STEPS = 16 };

typedef float vf __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vu __attribute__((vector_size(VECTOR_BYTES)));

#define INLINE static inline __attribute__((always_inline))
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UNROLL /* these builds optimize less, and the compiler warns of a loop that it leaves */
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

INLINE vf load_f(const float *at) {
  vf v;
  memcpy(&v, at, sizeof v);
  return v;
}
INLINE vu load_u(const uint32_t *at) {
  vu v;
  memcpy(&v, at, sizeof v);
  return v;
}
INLINE void store_f(float *at, vf v) { memcpy(at, &v, sizeof v); }
INLINE vf splat_f(float x) { return x - (vf){0}; }
INLINE vu splat_u(uint32_t x) { return x - (vu){0}; }

/* What is known when the code is compiled. */
typedef struct kind {
  int bits;
  ts_quantized_form form;
  bool bf16; /* rounds to bf16; no number is NaN */
  int lanes; /* of tensor/contract_order.h */
  /* Scales have at most 11 bits, and no number is near the ends of the range, so that numbers times scales are exact.
   */
  bool exact;
} kind;

INLINE vf rounded(vf v) {
  const vu u = (vu)v;
  return (vf)((u + 0x7FFF + ((u >> 16) & 1)) & 0xFFFF0000u);
}

/* The same of numbers between 2^-60 and 2^60, or 0: the sum with a number that is 2^16 times as large has as many bits.
 */
INLINE vf rounded_exact(vf v) {
  const vf power = (vf)((vu)v & 0x7F800000u), large = splat_f(0x1.8p16f);
  return FMA(-power, large, FMA(power, large, v));
}

/* Number j of each word plus 2^(23 - at), where `at` is the place of its bits in the mantissa. */
INLINE vf with_power(kind t, vu words, int j, int at) {
  const int from = t.bits * j;
  const vu moved = from > at ? words >> (from - at) : words << (at - from);
  return (vf)((moved & splat_u(((1u << t.bits) - 1) << at)) | splat_u((uint32_t)(150 - at) << 23));
}

/* Number j of each word, as a weight. */
INLINE vf weight_of(kind t, vu words, int j, vf s, vf z) {
  const float middle = (float)(1 << (t.bits - 1));
  if (t.exact && t.form == TS_QUANTIZED_SCALE && t.bits == 4) {
    /* bits 8 to 19 are in place for three numbers, and for others after one of two shifts */
    const int at = 8 + 4 * ((j + 1) % 3);
    const float power = (float)(1 << (23 - at));
    const vf v = FMA(with_power(t, words, j, at), s, splat_f(-(power + middle)) * s);
    return t.bf16 ? rounded_exact(v) : v;
  }
  const int at = t.bits * j % 16;
  const vf power = splat_f((float)(1 << (23 - at))), q = with_power(t, words, j, at);
  vf v;
  if (t.form == TS_QUANTIZED_SCALE)
    v = (q - (power + middle)) * s;
  else if (t.form == TS_QUANTIZED_ZERO)
    v = (q - power - z) * s;
  else if (t.exact)
    v = FMA(q - power, s, -z);
  else
    v = (q - power) * s - z;
  if (!t.bf16) return v;
  return t.exact ? rounded_exact(v) : rounded(v);
}

/* ---- the numbers of a group ---- */

typedef struct group_numbers {
  float s[COLS], z[COLS];
  bool special; /* one is infinite or NaN, so that a weight may be NaN */
} group_numbers;

static void convert_numbers(const char *from, ts_dtype type, float *out) {
  static const float one = 1;
  ts_gemm_widen_host()->to_f32(
      &(gemm_widen_rows){.type = type, .from = from, .rows = 1, .count = COLS, .out = (char *)out, .scales = &one});
}

static bool has_special(const float *x) {
  vu most = {0};
  for (int c = 0; c < COLS; c += LANES) {
    const vu bits = (vu)load_f(x + c) & 0x7FFFFFFF;
    most |= (vu)(bits >= 0x7F800000u);
  }
  for (int l = 0; l < LANES; l++)
    if (most[l]) return true;
  return false;
}

static void load_group(const ts_quantized *w, int64_t panel, int64_t group, group_numbers *out) {
  const int64_t groups = ts_quantized_ceil(w->k, w->group), at = (panel * groups + group) * COLS;
  const int64_t size = w->scale_type == TS_F32 ? 4 : 2;
  if (w->scale_type == TS_F32)
    memcpy(out->s, w->scales + at * size, sizeof out->s);
  else
    convert_numbers(w->scales + at * size, w->scale_type, out->s);
  if (w->others && w->scale_type == TS_F32)
    memcpy(out->z, w->others + at * size, sizeof out->z);
  else if (w->others)
    convert_numbers(w->others + at * size, w->scale_type, out->z);
  out->special = has_special(out->s) || (w->others && has_special(out->z));
}

/* ---- unpacking ---- */

/* Rows [first, end) of one row of words, for columns [col, col + width). `out` is the place of `first`. */
typedef struct line {
  const uint32_t *words;
  const group_numbers *group;
  int64_t col, width, first, end;
  float *out;
  int64_t stride;
} line;

INLINE void unpack_line(kind t, const line *l) {
  const int numbers = 32 / t.bits;
  const bool whole = l->first == 0 && l->end == numbers;
  for (int64_t c = 0; c < l->width; c += LANES) {
    const vu words = load_u(l->words + l->col + c);
    const vf s = load_f(l->group->s + l->col + c), z = load_f(l->group->z + l->col + c);
    if (whole) {
      UNROLL for (int j = 0; j < numbers; j++) store_f(l->out + j * l->stride + c, weight_of(t, words, j, s, z));
      continue;
    }
    UNROLL for (int j = 0; j < numbers; j++) {
      if (j >= l->first && j < l->end) store_f(l->out + (j - l->first) * l->stride + c, weight_of(t, words, j, s, z));
    }
  }
}

/* ---- one row ---- */

/* Steps [first, end) of a row times a panel: a block of tensor/contract_order.h. `first` begins a group. */
typedef struct stretch {
  const ts_quantized_rows *r;
  int64_t panel, first, end;
  float *out; /* of COLS */
} stretch;

/* As many vectors as leave registers for constants. */
enum { AT_ONCE = VECTORS < 4 ? VECTORS : 4 };

/* AT_ONCE vectors of columns: the sums of the block, and of the chains that have begun; what the group has. */
typedef struct columns {
  vf sums[AT_ONCE], chains[TS_CONTRACT_MAX_LANES][AT_ONCE];
  vf scales[AT_ONCE], others[AT_ONCE];
} columns;

INLINE vf load_number(const char *from, ts_dtype type, int64_t at) {
  if (type == TS_F32) return load_f((const float *)(const void *)from + at);
  return type == TS_F16 ? HALVES((const uint16_t *)(const void *)from + at)
                        : (vf)(WORDS((const uint16_t *)(const void *)from + at) << 16);
}

/* The lanes of numbers that are 0, or from 2^-40 to 2^40; with `finite`, those that are finite. */
INLINE vu is_plain(vf v, bool finite) {
  const vu bits = (vu)v & 0x7FFFFFFF;
  if (finite) return (vu)(bits < 0x7F800000u);
  return (vu)(bits - (87u << 23) <= 80u << 23) | (vu)(bits == 0);
}

INLINE bool all_lanes(vu x) {
  bool all = true;
  for (int l = 0; l < LANES; l++) all &= x[l] != 0;
  return all;
}

INLINE void end_chains(kind t, columns *s, bool is_first) {
  UNROLL for (int c = 0; c < AT_ONCE; c++) {
    vf sum = s->chains[0][c];
    UNROLL for (int l = 1; l < t.lanes; l++) sum += s->chains[l][c];
    s->sums[c] = is_first ? sum : s->sums[c] + sum;
    UNROLL for (int l = 0; l < t.lanes; l++) s->chains[l][c] = (vf){0};
  }
}

/* The products of up to 32 / bits numbers of each word. */
INLINE void multiply_words(kind t, const uint32_t *words, const float *x, int rest, columns *s) {
  const int numbers = 32 / t.bits;
  vu w[AT_ONCE];
  UNROLL for (int c = 0; c < AT_ONCE; c++) w[c] = load_u(words + c * LANES);
  UNROLL for (int j = 0; j < numbers; j++) {
    vf *sums = s->chains[j % t.lanes];
    if (j >= rest) continue;
    const vf factor = splat_f(x[j]);
    UNROLL for (int c = 0; c < AT_ONCE; c++) sums[c] =
        FMA(factor, weight_of(t, w[c], j, s->scales[c], s->others[c]), sums[c]);
  }
}

/* False if a scale or another number of a group is not what the kind takes. */
INLINE bool load_scales(kind t, const ts_quantized *w, int64_t at, columns *s) {
  vu plain = ~(vu){0};
  UNROLL for (int c = 0; c < AT_ONCE; c++) {
    const vf scale = load_number(w->scales, w->scale_type, at + c * LANES);
    const vf other = t.form == TS_QUANTIZED_SCALE ? scale : load_number(w->others, w->scale_type, at + c * LANES);
    if (t.exact || t.bf16) plain &= is_plain(scale, !t.exact) & is_plain(other, !t.exact);
    s->scales[c] = scale;
    s->others[c] = other;
  }
  return !(t.exact || t.bf16) || all_lanes(plain);
}

INLINE bool multiply_columns(kind t, const stretch *r, int col) {
  const ts_quantized *w = r->r->weight;
  const int numbers = 32 / t.bits;
  const int64_t chain = r->r->order.terms * r->r->order.lanes, groups = ts_quantized_ceil(w->k, w->group);
  const uint32_t *words = w->words + (r->panel * ts_quantized_words(w->k, t.bits) + r->first / numbers) * COLS + col;
  const float *x = r->r->x + r->first;
  columns s;
  memset(&s, 0, sizeof s);
  int64_t group = r->first / w->group, k = r->first, group_end = k, chain_end = k + chain;
  while (k < r->end) {
    if (k >= group_end) {
      group_end += w->group;
      if (!load_scales(t, w, (r->panel * groups + group++) * COLS + col, &s)) return false;
    }
    int64_t to = group_end < chain_end ? group_end : chain_end;
    to = to < r->end ? to : r->end;
    for (; k + numbers <= to; k += numbers, words += COLS, x += numbers) multiply_words(t, words, x, numbers, &s);
    if (k < to) {
      multiply_words(t, words, x, (int)(to - k), &s);
      k = to;
    }
    if (k == chain_end || k == r->end) {
      end_chains(t, &s, chain_end - chain == r->first);
      chain_end += chain;
    }
  }
  UNROLL for (int c = 0; c < AT_ONCE; c++) store_f(r->out + col + c * LANES, s.sums[c]);
  return true;
}

INLINE bool multiply_row(kind t, const stretch *r) {
  for (int col = 0; col < COLS; col += AT_ONCE * LANES)
    if (!multiply_columns(t, r, col)) return false;
  return true;
}

/* ---- the kinds ---- */

#define FORMS(X, bf16, lanes, exact) \
  X(4, 0, bf16, lanes, exact)        \
  X(4, 1, bf16, lanes, exact)        \
  X(4, 2, bf16, lanes, exact) X(8, 0, bf16, lanes, exact) X(8, 1, bf16, lanes, exact) X(8, 2, bf16, lanes, exact)
/* Exact kinds need a fused multiply-add, and only machines with AMX have two lanes. */
#if VECTOR_BYTES == 16
#define KINDS(X) FORMS(X, 0, 1, 0) FORMS(X, 1, 1, 0)
enum { WITH_EXACT = 0 };
#elif VECTOR_BYTES == 32
#define KINDS(X) FORMS(X, 0, 1, 0) FORMS(X, 0, 1, 1) FORMS(X, 1, 1, 0) FORMS(X, 1, 1, 1)
enum { WITH_EXACT = 1 };
#else
#define KINDS(X) \
  FORMS(X, 0, 1, 0) FORMS(X, 0, 1, 1) FORMS(X, 1, 1, 0) FORMS(X, 1, 1, 1) FORMS(X, 1, 2, 0) FORMS(X, 1, 2, 1)
enum { WITH_EXACT = 1 };
#endif
#define NAME(what, bits, form, bf16, lanes, exact) what##_##bits##_##form##_##bf16##_##lanes##_##exact
#define DEFINE_MULTIPLY(bits, form, bf16, lanes, exact)                                \
  static bool NAME(multiply, bits, form, bf16, lanes, exact)(const stretch *r) {       \
    return multiply_row((kind){bits, (ts_quantized_form)form, bf16, lanes, exact}, r); \
  }
#define DEFINE_UNPACK(bits, form, bf16, lanes, exact)                          \
  static void NAME(unpack, bits, form, bf16, lanes, exact)(const line *l) {    \
    unpack_line((kind){bits, (ts_quantized_form)form, bf16, lanes, exact}, l); \
  }
KINDS(DEFINE_MULTIPLY)
FORMS(DEFINE_UNPACK, 0, 1, 0)
FORMS(DEFINE_UNPACK, 1, 1, 0)

#define MULTIPLY(bits, form, bf16, lanes, exact) NAME(multiply, bits, form, bf16, lanes, exact),
#define UNPACK(bits, form, bf16, lanes, exact) NAME(unpack, bits, form, bf16, lanes, exact),
static bool (*const multiplies[])(const stretch *r) = {KINDS(MULTIPLY)};
static void (*const unpacks[])(const line *l) = {FORMS(UNPACK, 0, 1, 0) FORMS(UNPACK, 1, 1, 0)};

static int form_of(const ts_quantized *w) { return (w->bits == 8 ? TS_QUANTIZED_FORMS : 0) + (int)w->form; }
static int forms(int kinds) { return 2 * TS_QUANTIZED_FORMS * kinds; }

/* A block of one row. False where numbers are not what a kind takes: then it is computed from an unpacked weight. */
static bool multiply_block(const stretch *s) {
  const ts_quantized_rows *r = s->r;
  const bool exact = WITH_EXACT && r->is_plain && r->weight->scale_type != TS_F32;
  const int kinds = r->weight->type == TS_BF16 ? (1 + WITH_EXACT) * r->order.lanes : 0;
  if (r->rows != 1 || r->weight->type == TS_F16 || s->first % r->weight->group != 0) return false;
  return (exact && multiplies[form_of(r->weight) + forms(kinds + 1)](s)) ||
         multiplies[form_of(r->weight) + forms(kinds)](s);
}

/* ---- parts ---- */

static void round_part(const ts_quantized *w, ts_quantized_part part, float *out, int64_t stride) {
  ts_gemm_widen_host()->round(
      &(gemm_widen_rows){.rows = part.count, .count = part.width, .out = (char *)out, .out_row = stride * 4}, w->type);
}

/* Rows of one group. */
static void unpack_group(const ts_quantized *w, ts_quantized_part part, const group_numbers *g, float *out,
                         int64_t stride) {
  const bool bf16 = w->type == TS_BF16 && !g->special;
  const int64_t numbers = 32 / w->bits, end = part.k + part.count;
  const uint32_t *panel = w->words + part.panel * ts_quantized_words(w->k, w->bits) * COLS;
  line l = {.group = g, .col = part.col, .width = part.width, .out = out, .stride = stride};
  for (int64_t k = part.k; k < end; k += l.end - l.first, l.out = out + (k - part.k) * stride) {
    const int64_t word = k / numbers, rest = end - word * numbers;
    l.words = panel + word * COLS;
    l.first = k % numbers;
    l.end = rest < numbers ? rest : numbers;
    unpacks[form_of(w) + forms(bf16)](&l);
  }
  if (w->type != TS_F32 && !bf16) round_part(w, part, out, stride);
}

static void unpack(const ts_quantized *w, ts_quantized_part part, float *out, int64_t stride) {
  group_numbers g;
  const int64_t end = part.k + part.count;
  while (part.k < end) {
    const int64_t group = part.k / w->group, rest = (group + 1) * w->group - part.k;
    part.count = rest < end - part.k ? rest : end - part.k;
    load_group(w, part.panel, group, &g);
    unpack_group(w, part, &g, out, stride);
    out += part.count * stride;
    part.k += part.count;
  }
}

/* Neither 0 nor at least 2^-56: as the bits of a positive number, less 1. */
#define TINY ((71u << 23) - 1)

static bool pairs(const ts_quantized *w, ts_quantized_part part, uint32_t *out, int64_t stride) {
  _Alignas(64) float rows[STEPS * COLS];
  const int64_t end = part.k + part.count, first = part.k;
  vu tiny = {0};
  for (; part.k < end; part.k += STEPS) {
    uint32_t *to = out + (part.k - first) / 2 * stride;
    part.count = end - part.k < STEPS ? end - part.k : STEPS;
    unpack(w, part, rows, COLS);
    if (part.count % 2) memset(rows + part.count * COLS, 0, COLS * sizeof *rows);
    for (int64_t k = 0; k < part.count; k += 2, to += stride)
      for (int64_t c = 0; c < part.width; c += LANES) {
        const vu low = (vu)load_f(rows + k * COLS + c), high = (vu)load_f(rows + (k + 1) * COLS + c);
        const vu both = low >> 16 | (high & 0xFFFF0000u);
        tiny |= (vu)((low & 0x7FFFFFFF) - 1 < TINY) | (vu)((high & 0x7FFFFFFF) - 1 < TINY);
        memcpy(to + c, &both, sizeof both);
      }
  }
  for (int l = 0; l < LANES; l++)
    if (tiny[l]) return true;
  return false;
}

/* ---- several rows ---- */

/* Adds the products of every step-th of `count` rows of w, COLS apart, to the sums of `rows` rows. */
typedef struct unpacked_rows {
  const float *x, *w;
  int64_t row, count, step;
} unpacked_rows;

INLINE void multiply_rows(int rows, const unpacked_rows *u, float *out) {
  enum { MOST = VECTORS < 4 ? VECTORS : 4 };
  const int at_once = rows == 4 && VECTORS > 4 ? 2 : MOST;
  for (int first = 0; first < VECTORS; first += at_once) {
    vf sums[4][MOST];
    UNROLL for (int r = 0; r < rows; r++) {
      UNROLL for (int c = 0; c < at_once; c++) sums[r][c] = load_f(out + r * COLS + (first + c) * LANES);
    }
    for (int64_t k = 0; k < u->count; k += u->step) {
      vf v[MOST];
      UNROLL for (int c = 0; c < at_once; c++) v[c] = load_f(u->w + k * COLS + (first + c) * LANES);
      UNROLL for (int r = 0; r < rows; r++) {
        const vf factor = splat_f(u->x[r * u->row + k]);
        UNROLL for (int c = 0; c < at_once; c++) sums[r][c] = FMA(factor, v[c], sums[r][c]);
      }
    }
    UNROLL for (int r = 0; r < rows; r++) {
      UNROLL for (int c = 0; c < at_once; c++) store_f(out + r * COLS + (first + c) * LANES, sums[r][c]);
    }
  }
}

static void multiply_1(const unpacked_rows *u, float *out) { multiply_rows(1, u, out); }
static void multiply_2(const unpacked_rows *u, float *out) { multiply_rows(2, u, out); }
static void multiply_4(const unpacked_rows *u, float *out) { multiply_rows(4, u, out); }

/* One lane of the order: `sums` has COLS for each row. */
static void multiply_lane(int64_t rows, unpacked_rows u, float *sums) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, u.x += 4 * u.row, sums += 4 * COLS) multiply_4(&u, sums);
  for (; row + 2 <= rows; row += 2, u.x += 2 * u.row, sums += 2 * COLS) multiply_2(&u, sums);
  if (row < rows) multiply_1(&u, sums);
}

static void multiply_unpacked(const ts_quantized_rows *r, int64_t k, int64_t count, const float *w, float *sums) {
  for (int l = 0; l < r->order.lanes; l++)
    multiply_lane(r->rows, (unpacked_rows){r->x + k + l, w + l * COLS, r->row, count - l, r->order.lanes},
                  sums + l * r->rows * COLS);
}

/* ---- a panel ---- */

/* The group that was read last. */
typedef struct panel_state {
  const ts_quantized_rows *r;
  int64_t panel, group;
  group_numbers numbers;
} panel_state;

static void find_group(panel_state *p, int64_t group) {
  if (p->group == group) return;
  p->group = group;
  load_group(p->r->weight, p->panel, group, &p->numbers);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Adds `count` steps from k on to the sums, which are of chains side by side. */
static void multiply_steps(panel_state *p, int64_t k, int64_t count, float *sums) {
  _Alignas(64) float unpacked[STEPS * COLS];
  for (int64_t at = k, end = k + count; at < end; at += STEPS) {
    const ts_quantized_part part = {p->panel, 0, COLS, at, least(STEPS, end - at)};
    unpack_group(p->r->weight, part, &p->numbers, unpacked, COLS);
    multiply_unpacked(p->r, at, part.count, unpacked, sums);
  }
}

static void add(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i += LANES) store_f(to + i, load_f(to + i) + load_f(from + i));
}

/* The sums of the chains side by side, which are added up at the end. */
static void run_chains(panel_state *p, int64_t k, int64_t end, float *sums) {
  const int64_t group = p->r->weight->group, size = p->r->rows * COLS;
  memset(sums, 0, (size_t)(p->r->order.lanes * size) * sizeof *sums);
  while (k < end) {
    const int64_t next = least(end, (k / group + 1) * group);
    find_group(p, k / group);
    multiply_steps(p, k, next - k, sums);
    k = next;
  }
  for (int l = 1; l < p->r->order.lanes; l++) add(sums + l * size, size, sums);
}

/* Blocks of chains, added in pairs as the digits of a binary number are carried. `work` has the sums of chains, then of
 * the blocks that wait; at the end it begins with the sum of all. */
static void panel(const ts_quantized_rows *r, int64_t index, float *work) {
  panel_state p = {.r = r, .panel = index, .group = -1};
  const int64_t size = r->rows * COLS, k = r->weight->k, chain = r->order.terms * r->order.lanes;
  float *sums = work + r->order.lanes * size;
  int64_t waiting = 0;
  memset(sums, 0, (size_t)size * sizeof *sums);
  for (int64_t first = 0, block = 0; first < k; first += TS_CONTRACT_BLOCK, block++) {
    const int64_t end = least(k, first + TS_CONTRACT_BLOCK);
    float *to = sums + waiting++ * size;
    const bool is_done = multiply_block(&(stretch){r, index, first, end, to});
    for (int64_t at = first; at < end && !is_done; at += chain) {
      run_chains(&p, at, least(end, at + chain), work);
      if (at == first) memcpy(to, work, (size_t)size * sizeof *to);
      if (at > first) add(work, size, to);
    }
    for (int64_t digits = block; digits & 1; digits >>= 1, waiting--)
      add(sums + (waiting - 1) * size, size, sums + (waiting - 2) * size);
  }
  for (; waiting > 1; waiting--) add(sums + (waiting - 1) * size, size, sums + (waiting - 2) * size);
  memcpy(work, sums, (size_t)size * sizeof *sums);
}

const ts_quantized_code ISA(ts_quantized) = {unpack, pairs, panel};
