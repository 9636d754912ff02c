/* From packed numbers to weights, in registers and in memory. A part of quantized_body.h. */

typedef int32_t vi __attribute__((vector_size(VECTOR_BYTES)));

INLINE vu load_u(const uint32_t *at) {
  vu v;
  memcpy(&v, at, sizeof v);
  return v;
}
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

#ifndef ROUND_PAIR
/* Rounds exact weights to bf16: 0, or from 2^-80 to 2^80, as scales, zeros and minimums are from 2^-40 to 2^40. The sum
 * with a number that is 2^16 times as large keeps as many bits as bf16 has. No step comes near an end of the range of
 * f32. */
INLINE vf rounded_exact(vf v) {
  const vf power = (vf)((vu)v & 0x7F800000u), large = splat_f(0x1.8p16f);
  return FMA(-power, large, FMA(power, large, v));
}
INLINE void round_pair(vf *pair) {
  pair[0] = rounded_exact(pair[0]);
  pair[1] = rounded_exact(pair[1]);
}
#define ROUND_PAIR round_pair
#endif

/* Number j of each word plus 2^(23 - at), where `at` is the place of its bits in the mantissa. */
INLINE vf with_power(kind t, vu words, int j, int at) {
  const int from = t.bits * j;
  const vu moved = from > at ? words >> (from - at) : words << (at - from);
  return (vf)((moved & splat_u(((1u << t.bits) - 1) << at)) | splat_u((uint32_t)(150 - at) << 23));
}

/* Number j of each word, as a weight that is not rounded to bf16 yet. */
INLINE vf exact_weight_of(kind t, vu words, int j, vf s, vf z) {
  const float middle = (float)(1 << (t.bits - 1));
  if (t.exact && t.form == TS_QUANTIZED_SCALE && t.bits == 4) {
    /* a conversion leaves more registers than powers do: three numbers are in place, others after one of two shifts */
    const vu bits = j < 3 ? words : words >> (12 * (j / 3));
    const int at = 4 * (j % 3);
    const vf q = __builtin_convertvector((vi)(bits & splat_u(15u << at)), vf);
    return FMA(q, splat_f(1.0f / (float)(1 << at)) * s, splat_f(-middle) * s);
  }
  const int at = t.bits * j % 16;
  const vf power = splat_f((float)(1 << (23 - at))), q = with_power(t, words, j, at);
  if (t.form == TS_QUANTIZED_SCALE) return (q - (power + middle)) * s;
  if (t.form == TS_QUANTIZED_ZERO) return (q - power - z) * s;
  return t.exact ? FMA(q - power, s, -z) : (q - power) * s - z;
}

/* Numbers j and j + 1 of each word, as weights. */
INLINE void weights_of(kind t, vu words, int j, vf s, vf z, vf *out) {
  out[0] = exact_weight_of(t, words, j, s, z);
  out[1] = exact_weight_of(t, words, j + 1, s, z);
  if (!t.bf16) return;
  if (t.exact) {
    ROUND_PAIR(out);
    return;
  }
  out[0] = rounded(out[0]);
  out[1] = rounded(out[1]);
}

/* ---- the numbers of a group ---- */

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

/* ---- in memory ---- */

/* A part of the rows of one group. */
typedef struct unpacked_part {
  const ts_quantized *w;
  ts_quantized_part part;
  float *out;
  int64_t stride;
} unpacked_part;

/* The numbers of a word, of LANES columns, to rows that are `stride` elements apart. */
INLINE void unpack_word(kind t, const uint32_t *words, vf s, vf z, float *out, int64_t stride) {
  const vu word = load_u(words);
  UNROLL for (int j = 0; j < 32 / t.bits; j += 2) {
    vf pair[2];
    weights_of(t, word, j, s, z, pair);
    store_f(out + j * stride, pair[0]);
    store_f(out + (j + 1) * stride, pair[1]);
  }
}

/* One vector of columns, LANES from column `c` of the part on. A word whose numbers are not all in the part is unpacked
 * aside. */
INLINE void unpack_words(kind t, const unpacked_part *u, int64_t c, vf s, vf z) {
  enum { MOST_NUMBERS = 8 };
  const ts_quantized_part *p = &u->part;
  const int numbers = 32 / t.bits;
  float *out = u->out + c;
  const uint32_t *words = u->w->words + (p->panel * ts_quantized_words(u->w->k, t.bits) + p->k / numbers) * COLS;
  words += p->col + c;
  for (int64_t first = p->k % numbers, left = p->count; left > 0; first = 0) {
    for (; first == 0 && left >= numbers; left -= numbers, words += COLS, out += numbers * u->stride)
      unpack_word(t, words, s, z, out, u->stride);
    if (left == 0) return;
    float aside[MOST_NUMBERS * LANES];
    const int64_t rest = numbers - first, count = left < rest ? left : rest;
    unpack_word(t, words, s, z, aside, LANES);
    for (int64_t j = 0; j < count; j++) memcpy(out + j * u->stride, aside + (first + j) * LANES, VECTOR_BYTES);
    left -= count;
    words += COLS;
    out += count * u->stride;
  }
}

/* False if a scale or another number is not what the kind takes. */
INLINE bool unpack_part(kind t, const unpacked_part *u) {
  const ts_quantized *w = u->w;
  const int64_t groups = ts_quantized_ceil(w->k, w->group), group = u->part.k / w->group;
  const int64_t at = (u->part.panel * groups + group) * COLS + u->part.col;
  for (int64_t c = 0; c < u->part.width; c += LANES) {
    const vf s = load_number(w->scales, w->scale_type, at + c);
    const vf z = t.form == TS_QUANTIZED_SCALE ? s : load_number(w->others, w->scale_type, at + c);
    if (t.bf16 && !EVERY(is_plain(s, !t.exact) & is_plain(z, !t.exact))) return false;
    unpack_words(t, u, c, s, z);
  }
  return true;
}
