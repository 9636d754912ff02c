#include "kernel/ref/ref_sum.h"

#include "jit/session/target.h"
#include "tensor/contract_order.h"

#include <math.h>
#include <string.h>

static ts_scalar real_multiply_add(ts_dtype type, ts_scalar l, ts_scalar r, ts_scalar acc) {
  bool fused = ts_target_host()->fma;
  if (fused && type == TS_F32) return ts_scalar_from_f64(type, (double)fmaf(l.f32, r.f32, acc.f32));
  if (fused && type == TS_F64) return ts_scalar_from_f64(type, fma(l.f64, r.f64, acc.f64));
  return ts_ref_binary(TS_OP_ADD, type, ts_ref_binary(TS_OP_MULTIPLY, type, l, r), acc);
}

/* The chain of a real product, with the parts of l alternating: re = fma(im l, -im r, fma(re l, re r, re)), and
 * im = fma(im l, re r, fma(re l, im r, im)). */
static ts_scalar complex_multiply_add(ts_dtype type, ts_scalar l, ts_scalar r, ts_scalar acc) {
  ts_dtype part = ts_dtype_part(type);
  ts_scalar a = ts_ref_complex_part(TS_OP_REAL, type, l), b = ts_ref_complex_part(TS_OP_IMAG, type, l);
  ts_scalar c = ts_ref_complex_part(TS_OP_REAL, type, r), d = ts_ref_complex_part(TS_OP_IMAG, type, r);
  ts_scalar re = ts_ref_complex_part(TS_OP_REAL, type, acc), im = ts_ref_complex_part(TS_OP_IMAG, type, acc);
  re = real_multiply_add(part, b, ts_ref_unary(TS_OP_NEGATE, part, d), real_multiply_add(part, a, c, re));
  im = real_multiply_add(part, b, c, real_multiply_add(part, a, d, im));
  return ts_ref_complex_join(part, re, im);
}

ts_scalar ts_ref_multiply_add(ts_dtype type, ts_scalar l, ts_scalar r, ts_scalar acc) {
  return (ts_dtype_is_complex(type) ? complex_multiply_add : real_multiply_add)(type, l, r, acc);
}

void ts_ref_sum_start(ts_ref_sum *s, ts_dtype type, ts_contract_order order) {
  const int64_t parts = ts_dtype_is_complex(type) ? 2 : 1;
  *s = (ts_ref_sum){.type = type,
                    .chain = order.lanes * order.terms / parts,
                    .block = TS_CONTRACT_BLOCK / parts,
                    .lanes = order.lanes};
}

static ts_scalar add(const ts_ref_sum *s, ts_scalar a, ts_scalar b) { return ts_ref_binary(TS_OP_ADD, s->type, a, b); }

/* Adds the chains that end to the sum of their block. */
static void end_chain(ts_ref_sum *s) {
  const bool is_first = (s->terms - 1) % s->block < s->chain;
  ts_scalar sum = s->in_chain[0];
  for (int lane = 1; lane < s->lanes; lane++) sum = add(s, sum, s->in_chain[lane]);
  s->in_block = is_first ? sum : add(s, s->in_block, sum);
  memset(s->in_chain, 0, sizeof s->in_chain);
}

/* A block and the levels that are full become one of the next level, as digits are carried. */
static void end_block(ts_ref_sum *s) {
  ts_scalar sum = s->in_block;
  int level = 0;
  for (; s->blocks >> level & 1; level++) sum = add(s, s->levels[level], sum);
  s->levels[level] = sum;
  s->blocks++;
}

void ts_ref_sum_add(ts_ref_sum *s, ts_scalar l, ts_scalar r) {
  ts_scalar *chain = &s->in_chain[s->terms++ % s->lanes];
  *chain = ts_ref_multiply_add(s->type, l, r, *chain);
  if (s->terms % s->chain == 0) end_chain(s);
  if (s->terms % s->block == 0) end_block(s);
}

ts_scalar ts_ref_sum_end(ts_ref_sum *s) {
  ts_scalar sum = {.words = {0, 0}};
  bool has_sum = false;
  if (s->terms % s->chain != 0) end_chain(s);
  if (s->terms % s->block != 0) end_block(s);
  for (int level = 0; level < 63; level++) {
    if (!(s->blocks >> level & 1)) continue;
    sum = has_sum ? add(s, s->levels[level], sum) : s->levels[level];
    has_sum = true;
  }
  return sum;
}
