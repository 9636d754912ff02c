/* Lines in lanes: the part of fft_vector_type.h that moves lines to rows of columns and back, a line in each column,
 * and the steps of real lines on such rows. */

static void NAME(load_short_lines)(const T *from, int64_t line, int64_t numbers, T *to, int64_t row) {
  for (int64_t c = 0; c < COLUMNS; c++)
    for (int64_t i = 0; i < numbers; i++) to[i * row + c] = from[c * line + i];
}

static void NAME(load_lines)(const void *from, int64_t line, int64_t numbers, void *to, int64_t row) {
  if (numbers < UNIT) {
    NAME(load_short_lines)(from, line, numbers, to, row);
    return;
  }
  for (int64_t c = 0; c < COLUMNS; c += LANES) {
    const T *x = (const T *)from + c * line;
    T *y = (T *)to + c;
    int64_t i = 0;
    for (; i + 2 * UNIT <= numbers; i += 2 * UNIT) NAME(transpose_from)(x + i, line, y + i * row, row);
    if (i + UNIT <= numbers) NAME(transpose_unit_from)(x + i, line, y + i * row, row);
    if (numbers % UNIT) NAME(transpose_unit_from)(x + numbers - UNIT, line, y + (numbers - UNIT) * row, row);
  }
}

static void NAME(store_short_lines)(const T *from, int64_t row, int64_t numbers, const double *factors, T *to,
                                    int64_t line) {
  for (int64_t i = 0; i < numbers; i++) {
    const T factor = (T)factors[i % 2], sum = (T)factors[2 + i % 2];
    for (int64_t c = 0; c < COLUMNS; c++) to[c * line + i] = from[i * row + c] * factor + sum;
  }
}

INLINE void NAME(load_scaled)(const T *from, int64_t row, int count, const T *factors, V *out) {
  UNROLL for (int k = 0; k < count; k++) out[k] = NAME(load)(from + k * row) * factors[k % 2] + factors[2 + k % 2];
}

/* Numbers i to i + UNIT - 1 of all lines. */
INLINE void NAME(store_unit)(const T *from, int64_t row, int64_t i, const T *factors, T *to, int64_t line) {
  const T all[4] = {factors[i % 2], factors[1 - i % 2], factors[2 + i % 2], factors[3 - i % 2]};
  V tile[UNIT];
  NAME(load_scaled)(from + i * row, row, UNIT, all, tile);
  NAME(transpose_unit_to)(tile, to + i, line);
}

static void NAME(store_lines)(const void *from, int64_t row, int64_t numbers, const double factors[4], void *to,
                              int64_t line) {
  if (numbers < UNIT) {
    NAME(store_short_lines)(from, row, numbers, factors, to, line);
    return;
  }
  const T all[4] = {(T)factors[0], (T)factors[1], (T)factors[2], (T)factors[3]};
  for (int64_t c = 0; c < COLUMNS; c += LANES) {
    const T *x = (const T *)from + c;
    T *y = (T *)to + c * line;
    int64_t i = 0;
#if VECTOR_BYTES == 64
    for (; i + 4 * UNIT <= numbers; i += 4 * UNIT) {
      V tile[4 * UNIT];
      NAME(load_scaled)(x + i * row, row, 4 * UNIT, all, tile);
      NAME(transpose_fours_to)(tile, y + i, line);
    }
#endif
    for (; i + 2 * UNIT <= numbers; i += 2 * UNIT) {
      V tile[2 * UNIT];
      NAME(load_scaled)(x + i * row, row, 2 * UNIT, all, tile);
      NAME(transpose_to)(tile, y + i, line);
    }
    if (i + UNIT <= numbers) NAME(store_unit)(x, row, i, all, y, line);
    if (numbers % UNIT) NAME(store_unit)(x, row, numbers - UNIT, all, y, line);
  }
}

INLINE C NAME(load_row)(const ts_fft_rows *rows, int64_t k, int64_t c) {
  const int64_t at = k * rows->row + c;
  return (C){NAME(load)((const T *)rows->re + at), NAME(load)((const T *)rows->im + at)};
}

INLINE void NAME(store_row)(const ts_fft_rows *rows, int64_t k, int64_t c, V re, V im) {
  const int64_t at = k * rows->row + c;
  NAME(store)((T *)rows->re + at, re);
  NAME(store)((T *)rows->im + at, im);
}

/* As unfold_one, of every column. */
INLINE void NAME(unfold_row)(const ts_fft_half *h, int64_t k, int64_t c, T x, T y, bool mirror) {
  const T none = 0;
  const T wr = ((const T *)h->w.re)[k], wi = ((const T *)h->w.im)[k];
  const int64_t half = h->half;
  C z = NAME(load_row)(&h->z, k, c), m = NAME(load_row)(&h->z, k > 0 ? half - k : 0, c);
  C e = {(z.re + m.re) * (T)0.5, (z.im - m.im) * (T)0.5}, d = {(z.re - m.re) * (T)0.5, (z.im + m.im) * (T)0.5};
  V p = wr * d.im + wi * d.re, q = wr * d.re - wi * d.im;
  V one = (e.re + p) * x, one_im = (e.im - q) * y, other = (e.re - p) * x, other_im = (-e.im - q) * y;
  NAME(store_row)(&h->out, k, c, one, one_im + none);
  NAME(store_row)(&h->out, half - k, c, other, other_im + none);
  if (!mirror || k == 0) return;
  NAME(store_row)(&h->out, 2 * half - k, c, one, none - one_im);
  NAME(store_row)(&h->out, half + k, c, other, none - other_im);
}

/* Copies of arguments, which no store can change. */
static void NAME(unfold_rows)(const ts_fft_half *half, const ts_fft_joined *joined) {
  const ts_fft_half h = *half;
  const T x = (T)joined->factors[0], y = (T)joined->factors[1];
  const bool mirror = joined->mirror;
  for (int64_t k = 0; k <= h.half / 2; k++)
    for (int64_t c = 0; c < COLUMNS; c += LANES) NAME(unfold_row)(&h, k, c, x, y, mirror);
}

static void NAME(fold_rows)(const ts_fft_half *half) {
  const ts_fft_half h = *half;
  for (int64_t k = 0; k < h.half; k++)
    for (int64_t c = 0; c < COLUMNS; c += LANES) {
      const T wr = ((const T *)h.w.re)[k], wi = ((const T *)h.w.im)[k];
      C z = NAME(load_row)(&h.z, k, c), m = NAME(load_row)(&h.z, h.half - k, c);
      C e = {z.re + m.re, z.im - m.im}, d = {z.re - m.re, z.im + m.im};
      NAME(store_row)(&h.out, k, c, e.re - (wr * d.im - wi * d.re), e.im + (wr * d.re + wi * d.im));
    }
}
