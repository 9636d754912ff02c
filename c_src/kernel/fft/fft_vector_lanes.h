/* Lines in lanes: the part of fft_vector_type.h that moves lines to rows of columns and back, a line in each column,
 * and the steps of real lines on such rows. */

/* The first number of a tile: the last tile begins early, if there are as many numbers as it has. */
INLINE int64_t NAME(tile_start)(int64_t i, int64_t count) {
  return i + LANES <= count || count < LANES ? i : count - LANES;
}

static void NAME(load_lines)(const void *from, int64_t line, int64_t numbers, void *to, int64_t row) {
  for (int64_t i = 0; i < numbers; i += LANES) {
    const int64_t at = NAME(tile_start)(i, numbers);
    for (int64_t c = 0; c < COLUMNS; c += LANES)
      NAME(transpose_tile)((const T *)from + c * line + at, line, (T *)to + at * row + c, row);
  }
}

INLINE void NAME(store_tile)(const T *from, int64_t row, const T *factors, T *to, int64_t line) {
  V x[LANES];
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) x[i] =
      NAME(load)(from + i * row) * factors[i % 2] + factors[2 + i % 2];
  NAME(transpose)(x);
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) NAME(store)(to + i * line, x[i]);
}

static void NAME(store_lines)(const void *from, int64_t row, int64_t numbers, const double factors[4], void *to,
                              int64_t line) {
  for (int64_t i = 0; i < numbers; i += LANES) {
    const int64_t at = NAME(tile_start)(i, numbers), odd = at % 2;
    const T all[4] = {(T)factors[odd], (T)factors[!odd], (T)factors[2 + odd], (T)factors[2 + !odd]};
    for (int64_t c = 0; c < COLUMNS; c += LANES)
      NAME(store_tile)((const T *)from + at * row + c, row, all, (T *)to + c * line + at, line);
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
INLINE void NAME(unfold_row)(const ts_fft_half *h, int64_t k, int64_t c, const ts_fft_joined *joined) {
  const T x = (T)joined->factors[0], y = (T)joined->factors[1], none = 0;
  const T wr = ((const T *)h->w.re)[k], wi = ((const T *)h->w.im)[k];
  const int64_t half = h->half;
  C z = NAME(load_row)(&h->z, k, c), m = NAME(load_row)(&h->z, k > 0 ? half - k : 0, c);
  C e = {(z.re + m.re) * (T)0.5, (z.im - m.im) * (T)0.5}, d = {(z.re - m.re) * (T)0.5, (z.im + m.im) * (T)0.5};
  V p = wr * d.im + wi * d.re, q = wr * d.re - wi * d.im;
  V one = (e.re + p) * x, one_im = (e.im - q) * y, other = (e.re - p) * x, other_im = (-e.im - q) * y;
  NAME(store_row)(&h->out, k, c, one, one_im + none);
  NAME(store_row)(&h->out, half - k, c, other, other_im + none);
  if (!joined->mirror || k == 0) return;
  NAME(store_row)(&h->out, 2 * half - k, c, one, none - one_im);
  NAME(store_row)(&h->out, half + k, c, other, none - other_im);
}

static void NAME(unfold_rows)(const ts_fft_half *h, const ts_fft_joined *joined) {
  for (int64_t k = 0; k <= h->half / 2; k++)
    for (int64_t c = 0; c < COLUMNS; c += LANES) NAME(unfold_row)(h, k, c, joined);
}

static void NAME(fold_rows)(const ts_fft_half *h) {
  for (int64_t k = 0; k < h->half; k++)
    for (int64_t c = 0; c < COLUMNS; c += LANES) {
      const T wr = ((const T *)h->w.re)[k], wi = ((const T *)h->w.im)[k];
      C z = NAME(load_row)(&h->z, k, c), m = NAME(load_row)(&h->z, h->half - k, c);
      C e = {z.re + m.re, z.im - m.im}, d = {z.re - m.re, z.im + m.im};
      NAME(store_row)(&h->out, k, c, e.re - (wr * d.im - wi * d.re), e.im + (wr * d.re + wi * d.im));
    }
}
