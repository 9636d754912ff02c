/* The code of quantized.h for one instruction set, which defines
 *   VECTOR_BYTES  of a vector: 16, 32 or 64
 *   HALVES(at)    a vector of f32, read from numbers of f16
 *   WORDS(at)     a vector of u32, read from numbers of u16
 *   EVERY(x)      whether all bits of each lane of a vector vu are set; each lane has none or all of them
 *   ROUND_PAIR    if the CPU has such instructions: a function that rounds two vectors to bf16. Each number is 0, or
 *                 from 2^-80 to 2^80, so it is not subnormal
 *   ISA(name)     the name of a function or table for this instruction set
 * A number is unpacked without a conversion. Its bits become the lowest ones of the mantissa of a power of two whose
 * lowest bit is worth 1. Then the power is subtracted. */
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/quantized.h"
#include "kernel/gemm/row_vectors.h"
#include "tensor/contract_order.h"

#include <string.h>

enum { COLS = TS_QUANTIZED_COLS, LANES = VECTOR_BYTES / 4, VECTORS = COLS / LANES };

/* Order matters: each of them uses the one before. */
// clang-format off
#include "kernel/gemm/quantized_weights.h"
#include "kernel/gemm/quantized_one.h"
// clang-format on

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
#define DEFINE_UNPACK(bits, form, bf16, lanes, exact)                                 \
  static bool NAME(unpack, bits, form, bf16, lanes, exact)(const unpacked_part *u) {  \
    return unpack_part((kind){bits, (ts_quantized_form)form, bf16, lanes, exact}, u); \
  }
KINDS(DEFINE_MULTIPLY)
FORMS(DEFINE_UNPACK, 0, 1, 0)
FORMS(DEFINE_UNPACK, 1, 1, 0)
#if VECTOR_BYTES != 16
FORMS(DEFINE_UNPACK, 1, 1, 1)
#endif

#define MULTIPLY(bits, form, bf16, lanes, exact) NAME(multiply, bits, form, bf16, lanes, exact),
#define UNPACK(bits, form, bf16, lanes, exact) NAME(unpack, bits, form, bf16, lanes, exact),
static bool (*const multiplies[])(const stretch *r) = {KINDS(MULTIPLY)};
static bool (*const unpacks[])(const unpacked_part *u) = {FORMS(UNPACK, 0, 1, 0) FORMS(UNPACK, 1, 1, 0)
#if VECTOR_BYTES != 16
                                                              FORMS(UNPACK, 1, 1, 1)
#endif
};

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

/* Rows of one group. A number of it that is infinite or NaN may make weights of NaN, which kinds of bf16 do not round.
 */
static void unpack_group(const unpacked_part *u) {
  const ts_quantized *w = u->w;
  const bool exact = WITH_EXACT && w->scale_type != TS_F32;
  const int form = form_of(w);
  if (w->type == TS_BF16 && ((exact && unpacks[form + forms(2)](u)) || unpacks[form + forms(1)](u))) return;
  unpacks[form](u);
  if (w->type != TS_F32) round_part(w, u->part, u->out, u->stride);
}

static void unpack(const ts_quantized *w, ts_quantized_part part, float *out, int64_t stride) {
  const int64_t end = part.k + part.count;
  while (part.k < end) {
    const int64_t rest = (part.k / w->group + 1) * w->group - part.k;
    part.count = rest < end - part.k ? rest : end - part.k;
    unpack_group(&(unpacked_part){w, part, out, stride});
    out += part.count * stride;
    part.k += part.count;
  }
}

/* Neither 0 nor at least 2^-56: as the bits of a positive number, less 1. */
#define TINY ((71u << 23) - 1)

/* Rows of a weight that become pairs together. */
enum { PAIR_STEPS = 16 };

static bool pairs(const ts_quantized *w, ts_quantized_part part, uint32_t *out, int64_t stride) {
  _Alignas(64) float rows[PAIR_STEPS * COLS];
  const int64_t end = part.k + part.count, first = part.k;
  vu tiny = {0};
  for (; part.k < end; part.k += PAIR_STEPS) {
    uint32_t *to = out + (part.k - first) / 2 * stride;
    part.count = end - part.k < PAIR_STEPS ? end - part.k : PAIR_STEPS;
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

#include "kernel/gemm/quantized_rows.h"

const ts_quantized_code ISA(ts_quantized) = {unpack, pairs, panel};
