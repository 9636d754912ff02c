/* One row times a panel: weights are unpacked in registers for a whole block. A part of quantized_body.h. */

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
  vu plain; /* lanes whose groups had only numbers that the kind computes exactly */
} columns;

INLINE void end_chains(kind t, columns *s, bool is_first) {
  UNROLL for (int c = 0; c < AT_ONCE; c++) {
    vf sum = s->chains[0][c];
    UNROLL for (int l = 1; l < t.lanes; l++) sum += s->chains[l][c];
    s->sums[c] = is_first ? sum : s->sums[c] + sum;
    UNROLL for (int l = 0; l < t.lanes; l++) s->chains[l][c] = (vf){0};
  }
}

/* Distance of the prefetches, in rows of words: the processor's own prefetching ends at the end of a page. */
enum { WORDS_AHEAD = 8 };

/* The products of up to 32 / bits numbers of each word. */
INLINE void multiply_words(kind t, const uint32_t *words, const float *x, int rest, columns *s) {
  const int numbers = 32 / t.bits;
  vu w[AT_ONCE];
  UNROLL for (int c = 0; c < AT_ONCE; c++) w[c] = load_u(words + c * LANES);
  for (int c = 0; c < AT_ONCE * LANES; c += 16) __builtin_prefetch(words + WORDS_AHEAD * COLS + c);
  UNROLL for (int j = 0; j < numbers; j += 2) {
    if (j >= rest) continue;
    const vf first = splat_f(x[j]), second = splat_f(j + 1 < rest ? x[j + 1] : 0);
    UNROLL for (int c = 0; c < AT_ONCE; c++) {
      vf pair[2];
      weights_of(t, w[c], j, s->scales[c], s->others[c], pair);
      s->chains[0][c] = FMA(first, pair[0], s->chains[0][c]);
      if (j + 1 < rest) s->chains[1 % t.lanes][c] = FMA(second, pair[1], s->chains[1 % t.lanes][c]);
    }
  }
}

INLINE void load_scales(kind t, const ts_quantized *w, int64_t at, columns *s) {
  UNROLL for (int c = 0; c < AT_ONCE; c++) {
    const vf scale = load_number(w->scales, w->scale_type, at + c * LANES);
    const vf other = t.form == TS_QUANTIZED_SCALE ? scale : load_number(w->others, w->scale_type, at + c * LANES);
    if (t.exact || t.bf16) s->plain &= is_plain(scale, !t.exact) & is_plain(other, !t.exact);
    s->scales[c] = scale;
    s->others[c] = other;
  }
}

/* False if a number of a group is not what the kind takes: then the sums have no meaning. */
INLINE bool multiply_columns(kind t, const stretch *r, int col) {
  const ts_quantized *w = r->r->weight;
  const int numbers = 32 / t.bits;
  const int64_t chain = r->r->order.terms * r->r->order.lanes, groups = ts_quantized_ceil(w->k, w->group);
  const uint32_t *words = w->words + (r->panel * ts_quantized_words(w->k, t.bits) + r->first / numbers) * COLS + col;
  const float *x = r->r->x + r->first;
  columns s;
  memset(&s, 0, sizeof s);
  s.plain = ~(vu){0};
  int64_t group = r->first / w->group, k = r->first, group_end = k, chain_end = k + chain;
  while (k < r->end) {
    if (k >= group_end) {
      group_end += w->group;
      load_scales(t, w, (r->panel * groups + group++) * COLS + col, &s);
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
  return EVERY(s.plain);
}

INLINE bool multiply_row(kind t, const stretch *r) {
  for (int col = 0; col < COLS; col += AT_ONCE * LANES)
    if (!multiply_columns(t, r, col)) return false;
  return true;
}
