/* Passes of primes above 13: the part of fft_vector_type.h whose loops are not unrolled. Results j and radix - j share
 * the sums and differences of elements k and radix - k. */
#define MOST_PAIRS (TS_FFT_MOST_RADIX / 2 + 1)

/* Elements of one transform: sum[0] is element 0. Returns the sum of all. */
INLINE C NAME(prime_pairs)(const ts_fft_pass *pass, const ts_fft_rows *in, int64_t at, C *sum, C *difference) {
  const int64_t step = pass->stride * pass->length * in->row;
  const T *re = (const T *)in->re + at, *im = (const T *)in->im + at;
  C total = sum[0] = (C){NAME(load)(re), NAME(load)(im)};
  for (int k = 1; k <= pass->radix / 2; k++) {
    const int64_t near = k * step, far = (pass->radix - k) * step;
    C a = {NAME(load)(re + near), NAME(load)(im + near)}, b = {NAME(load)(re + far), NAME(load)(im + far)};
    sum[k] = NAME(plus)(a, b);
    difference[k] = NAME(turned)(NAME(minus)(a, b));
    total = NAME(plus)(total, sum[k]);
  }
  return total;
}

/* The parts of `count` results that all their elements share: two results read each sum once. */
INLINE void NAME(prime_parts)(const C *sum, const C *difference, int pairs, const T *roots, int count, C *a, C *b) {
  _Pragma("GCC unroll 2") for (int i = 0; i < count; i++) {
    const T c = roots[2 * i], s = roots[2 * i + 1];
    a[i] = (C){MADD(sum[1].re, c, sum[0].re), MADD(sum[1].im, c, sum[0].im)};
    b[i] = (C){difference[1].re * s, difference[1].im * s};
  }
  for (int k = 2; k <= pairs; k++) {
    roots += 2 * count;
    _Pragma("GCC unroll 2") for (int i = 0; i < count; i++) {
      const T c = roots[2 * i], s = roots[2 * i + 1];
      a[i] = (C){MADD(sum[k].re, c, a[i].re), MADD(sum[k].im, c, a[i].im)};
      b[i] = (C){MADD(difference[k].re, s, b[i].re), MADD(difference[k].im, s, b[i].im)};
    }
  }
}

typedef struct NAME(prime_out) {
  T *re, *im;
  int64_t step;      /* from one result to the next */
  const T *twiddles; /* of result 1 on */
  bool turns;
} NAME(prime_out);

INLINE void NAME(prime_store)(const NAME(prime_out) * out, int64_t k, C x) {
  if (out->turns) x = NAME(times)(x, out->twiddles[2 * k - 2], out->twiddles[2 * k - 1]);
  NAME(store)(out->re + k * out->step, x.re);
  NAME(store)(out->im + k * out->step, x.im);
}

INLINE void NAME(prime_results)(const ts_fft_pass *pass, const C *sum, const C *difference,
                                const NAME(prime_out) * out) {
  const int pairs = pass->radix / 2;
  const T *roots = pass->roots;
  C a[2], b[2];
  int j = 1;
  for (; j < pairs; j += 2, roots += 4 * pairs) {
    NAME(prime_parts)(sum, difference, pairs, roots, 2, a, b);
    _Pragma("GCC unroll 2") for (int i = 0; i < 2; i++) {
      NAME(prime_store)(out, j + i, NAME(plus)(a[i], b[i]));
      NAME(prime_store)(out, pass->radix - j - i, NAME(minus)(a[i], b[i]));
    }
  }
  if (j > pairs) return;
  NAME(prime_parts)(sum, difference, pairs, roots, 1, a, b);
  NAME(prime_store)(out, j, NAME(plus)(a[0], b[0]));
  NAME(prime_store)(out, pass->radix - j, NAME(minus)(a[0], b[0]));
}

static void NAME(pass_prime)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out) {
  const int64_t s = pass->stride;
  C sum[MOST_PAIRS], difference[MOST_PAIRS];
  for (int64_t i = 0; i < s * pass->length; i++)
    for (int v = 0; v < COLUMNS; v += LANES) {
      const int64_t p = i / s, to = (i + s * (pass->radix - 1) * p) * out->row + v;
      const NAME(prime_out) results = {(T *)out->re + to, (T *)out->im + to, s * out->row,
                                       (const T *)pass->twiddles + p * (pass->radix - 1) * 2, p > 0};
      C total = NAME(prime_pairs)(pass, in, i * in->row + v, sum, difference);
      NAME(store)(results.re, total.re);
      NAME(store)(results.im, total.im);
      NAME(prime_results)(pass, sum, difference, &results);
    }
}

#undef MOST_PAIRS
