/* The part of fft_vector_body.h for one type: T, its vectors V of LANES, NAME, and COLUMNS. */
#define VECTORS (COLUMNS / LANES)

INLINE V NAME(load)(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}
INLINE void NAME(store)(T *to, V v) { memcpy(to, &v, sizeof v); }

/* ---- butterflies: transforms of a few elements, in place ---- */

typedef struct NAME(complex) {
  V re, im;
} NAME(complex);
#define C NAME(complex)

INLINE C NAME(plus)(C a, C b) { return (C){a.re + b.re, a.im + b.im}; }
INLINE C NAME(minus)(C a, C b) { return (C){a.re - b.re, a.im - b.im}; }
/* times -i */
INLINE C NAME(turned)(C a) { return (C){a.im, -a.re}; }

INLINE void NAME(butterfly2)(C *x) {
  C a = x[0];
  x[0] = NAME(plus)(a, x[1]);
  x[1] = NAME(minus)(a, x[1]);
}

INLINE void NAME(butterfly4)(C *x) {
  C a = NAME(plus)(x[0], x[2]), b = NAME(minus)(x[0], x[2]);
  C c = NAME(plus)(x[1], x[3]), d = NAME(turned)(NAME(minus)(x[1], x[3]));
  x[0] = NAME(plus)(a, c);
  x[1] = NAME(plus)(b, d);
  x[2] = NAME(minus)(a, c);
  x[3] = NAME(minus)(b, d);
}

INLINE void NAME(butterfly8)(C *x) {
  const T root = (T)0.70710678118654752440;
  C even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  NAME(butterfly4)(even);
  NAME(butterfly4)(odd);
  odd[1] = (C){(odd[1].re + odd[1].im) * root, (odd[1].im - odd[1].re) * root};
  odd[2] = NAME(turned)(odd[2]);
  odd[3] = (C){(odd[3].im - odd[3].re) * root, (odd[3].re + odd[3].im) * -root};
  _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {
    x[k] = NAME(plus)(even[k], odd[k]);
    x[k + 4] = NAME(minus)(even[k], odd[k]);
  }
}

/* An odd number of elements: two results share the sums and differences of elements k and radix - k. */
INLINE void NAME(butterfly_odd)(C *x, int radix, const double (*roots)[2]) {
  C sum[7], difference[7], zero = x[0];
  _Pragma("GCC unroll 8") for (int k = 1; k <= radix / 2; k++) {
    sum[k] = NAME(plus)(x[k], x[radix - k]);
    difference[k] = NAME(turned)(NAME(minus)(x[k], x[radix - k]));
    x[0] = NAME(plus)(x[0], sum[k]);
  }
  _Pragma("GCC unroll 8") for (int j = 1; j <= radix / 2; j++) {
    T c = (T)roots[j][0], s = (T)roots[j][1];
    C a = {zero.re + sum[1].re * c, zero.im + sum[1].im * c}, b = {difference[1].re * s, difference[1].im * s};
    _Pragma("GCC unroll 8") for (int k = 2; k <= radix / 2; k++) {
      c = (T)roots[j * k % radix][0];
      s = (T)roots[j * k % radix][1];
      a = (C){a.re + sum[k].re * c, a.im + sum[k].im * c};
      b = (C){b.re + difference[k].re * s, b.im + difference[k].im * s};
    }
    x[j] = NAME(plus)(a, b);
    x[radix - j] = NAME(minus)(a, b);
  }
}

#ifndef TS_FFT_ROOTS
#define TS_FFT_ROOTS
/* cos and sin of 2 pi k / radix */
static const double roots3[3][2] = {{1, 0}, {-0.5, 0.86602540378443864676}, {-0.5, -0.86602540378443864676}};
static const double roots5[5][2] = {{1, 0},
                                    {0.30901699437494742410, 0.95105651629515357212},
                                    {-0.80901699437494742410, 0.58778525229247312917},
                                    {-0.80901699437494742410, -0.58778525229247312917},
                                    {0.30901699437494742410, -0.95105651629515357212}};
static const double roots7[7][2] = {{1, 0},
                                    {0.62348980185873353053, 0.78183148246802980871},
                                    {-0.22252093395631440429, 0.97492791218182360702},
                                    {-0.90096886790241912624, 0.43388373911755812048},
                                    {-0.90096886790241912624, -0.43388373911755812048},
                                    {-0.22252093395631440429, -0.97492791218182360702},
                                    {0.62348980185873353053, -0.78183148246802980871}};
static const double roots11[11][2] = {{1, 0},
                                      {0.84125353283118116886, 0.54064081745559758211},
                                      {0.41541501300188642553, 0.90963199535451837141},
                                      {-0.14231483827328514044, 0.98982144188093273238},
                                      {-0.65486073394528506406, 0.75574957435425828377},
                                      {-0.95949297361449738989, 0.28173255684142969771},
                                      {-0.95949297361449738989, -0.28173255684142969771},
                                      {-0.65486073394528506406, -0.75574957435425828377},
                                      {-0.14231483827328514044, -0.98982144188093273238},
                                      {0.41541501300188642553, -0.90963199535451837141},
                                      {0.84125353283118116886, -0.54064081745559758211}};
static const double roots13[13][2] = {{1, 0},
                                      {0.88545602565320989590, 0.46472317204376854566},
                                      {0.56806474673115580251, 0.82298386589365639458},
                                      {0.12053668025532305335, 0.99270887409805399280},
                                      {-0.35460488704253562597, 0.93501624268541482344},
                                      {-0.74851074817110109863, 0.66312265824079520238},
                                      {-0.97094181742605202716, 0.23931566428755776715},
                                      {-0.97094181742605202716, -0.23931566428755776715},
                                      {-0.74851074817110109863, -0.66312265824079520238},
                                      {-0.35460488704253562597, -0.93501624268541482344},
                                      {0.12053668025532305335, -0.99270887409805399280},
                                      {0.56806474673115580251, -0.82298386589365639458},
                                      {0.88545602565320989590, -0.46472317204376854566}};
#endif

INLINE void NAME(butterfly)(C *x, int radix) {
  switch (radix) {
  case 2: NAME(butterfly2)(x); break;
  case 3: NAME(butterfly_odd)(x, 3, roots3); break;
  case 4: NAME(butterfly4)(x); break;
  case 5: NAME(butterfly_odd)(x, 5, roots5); break;
  case 7: NAME(butterfly_odd)(x, 7, roots7); break;
  case 8: NAME(butterfly8)(x); break;
  case 11: NAME(butterfly_odd)(x, 11, roots11); break;
  case 13: NAME(butterfly_odd)(x, 13, roots13); break;
  }
}

/* ---- passes ---- */

/* The butterflies of one p: `stride` of them. Twiddles of p = 0 are 1, and left out. */
INLINE void NAME(some_butterflies)(const ts_fft_pass *pass, int radix, int64_t p, const ts_fft_rows *in,
                                   const ts_fft_rows *out) {
  const int64_t s = pass->stride, step = s * pass->length * in->row;
  const T *twiddles = (const T *)pass->twiddles + p * (radix - 1) * 2;
  for (int64_t q = 0; q < s; q++) {
    const T *re = (const T *)in->re + (q + s * p) * in->row, *im = (const T *)in->im + (q + s * p) * in->row;
    T *to_re = (T *)out->re + (q + s * radix * p) * out->row, *to_im = (T *)out->im + (q + s * radix * p) * out->row;
    for (int v = 0; v < COLUMNS; v += LANES) {
      C x[13];
      _Pragma("GCC unroll 13") for (int k = 0; k < radix; k++) x[k] =
          (C){NAME(load)(re + k * step + v), NAME(load)(im + k * step + v)};
      NAME(butterfly)(x, radix);
      _Pragma("GCC unroll 13") for (int k = 0; k < radix; k++) {
        C y = x[k];
        if (p > 0 && k > 0) {
          T c = twiddles[2 * k - 2], d = twiddles[2 * k - 1];
          y = (C){x[k].re * c - x[k].im * d, x[k].re * d + x[k].im * c};
        }
        NAME(store)(to_re + k * s * out->row + v, y.re);
        NAME(store)(to_im + k * s * out->row + v, y.im);
      }
    }
  }
}

#define DEFINE_PASS(RADIX)                                                                                \
  static void NAME(pass##RADIX)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out) { \
    NAME(some_butterflies)(pass, RADIX, 0, in, out);                                                      \
    for (int64_t p = 1; p < pass->length; p++) NAME(some_butterflies)(pass, RADIX, p, in, out);           \
  }
DEFINE_PASS(2)
DEFINE_PASS(3)
DEFINE_PASS(4)
DEFINE_PASS(5)
DEFINE_PASS(7)
DEFINE_PASS(8)
DEFINE_PASS(11)
DEFINE_PASS(13)
#undef DEFINE_PASS

#include "kernel/fft/fft_vector_prime.h"

static void NAME(pass)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out) {
  static void (*const by_radix[14])(const ts_fft_pass *, const ts_fft_rows *, const ts_fft_rows *) = {
      [2] = NAME(pass2), [3] = NAME(pass3), [4] = NAME(pass4),   [5] = NAME(pass5),
      [7] = NAME(pass7), [8] = NAME(pass8), [11] = NAME(pass11), [13] = NAME(pass13)};
  if (pass->roots)
    NAME(pass_prime)(pass, in, out);
  else
    by_radix[pass->radix](pass, in, out);
}

/* ---- transposition ---- */

#if LANES == 16
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 8
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 4
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 3, 2, 1, 0)
#else
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#define EVEN(a, b) LOW(a, b)
#define ODD(a, b) HIGH(a, b)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 1, 0)
#endif

/* Vector i and vector i + LANES / 2 interleaved, log2(LANES) times: that is a transposition. */
INLINE void NAME(transpose)(V *x) {
  _Pragma("GCC unroll 4") for (int done = 1; done < LANES; done *= 2) {
    V y[LANES];
    _Pragma("GCC unroll 8") for (int i = 0; i < LANES / 2; i++) {
      y[2 * i] = LOW(x[i], x[i + LANES / 2]);
      y[2 * i + 1] = HIGH(x[i], x[i + LANES / 2]);
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) x[i] = y[i];
  }
}

INLINE void NAME(transpose_tile)(const T *from, int64_t row, T *to, int64_t to_row) {
  V x[LANES];
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) x[i] = NAME(load)(from + i * row);
  NAME(transpose)(x);
  _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) NAME(store)(to + i * to_row, x[i]);
}

INLINE void NAME(transpose_product)(const ts_fft_rows *in, const ts_fft_rows *w, int64_t i, int64_t c,
                                    const ts_fft_rows *out) {
  V re[LANES], im[LANES];
  _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) {
    const int64_t at = (i + k) * in->row + c, tw = (i + k) * w->row + c;
    V a = NAME(load)((const T *)in->re + at), b = NAME(load)((const T *)in->im + at);
    V wr = NAME(load)((const T *)w->re + tw), wi = NAME(load)((const T *)w->im + tw);
    re[k] = a * wr - b * wi;
    im[k] = a * wi + b * wr;
  }
  NAME(transpose)(re);
  _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) NAME(store)((T *)out->re + (c + k) * out->row + i, re[k]);
  NAME(transpose)(im);
  _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) NAME(store)((T *)out->im + (c + k) * out->row + i, im[k]);
}

static void NAME(transpose_rows)(const ts_fft_rows *in, const ts_fft_rows *twiddles, int64_t count,
                                 const ts_fft_rows *out) {
  for (int64_t i = 0; i < count; i += LANES)
    for (int64_t c = 0; c < COLUMNS; c += LANES) NAME(transpose_product)(in, twiddles, i, c, out);
}

/* ---- interleaved numbers ---- */

INLINE void NAME(split_row)(const T *from, int64_t columns, T *re, T *im) {
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    V a = NAME(load)(from + 2 * c), b = NAME(load)(from + 2 * c + LANES);
    NAME(store)(re + c, EVEN(a, b));
    NAME(store)(im + c, ODD(a, b));
  }
  for (; c < columns; c++) {
    re[c] = from[2 * c];
    im[c] = from[2 * c + 1];
  }
}

static void NAME(split)(const void *from, int64_t step, int64_t rows, int64_t columns, const ts_fft_rows *out) {
  for (int64_t i = 0; i < rows; i++) NAME(split_row)
  ((const T *)from + 2 * i * step, columns, (T *)out->re + i * out->row, (T *)out->im + i * out->row);
}

/* A factor below 0 would give imaginary parts of -0 where there are none. */
INLINE void NAME(join_row)(const T *re, const T *im, int64_t columns, const T *factors, T *to) {
  const T x = factors[0], y = factors[1], none = 0;
  int64_t c = 0;
  for (; c + LANES <= columns; c += LANES) {
    V a = NAME(load)(re + c) * x, b = NAME(load)(im + c) * y + none;
    NAME(store)(to + 2 * c, LOW(a, b));
    NAME(store)(to + 2 * c + LANES, HIGH(a, b));
  }
  for (; c < columns; c++) {
    to[2 * c] = re[c] * x;
    to[2 * c + 1] = im[c] * y + none;
  }
}

static void NAME(join)(const ts_fft_rows *in, int64_t rows, int64_t columns, const double factors[2], void *to,
                       int64_t step) {
  const T both[2] = {(T)factors[0], (T)factors[1]};
  for (int64_t i = 0; i < rows; i++) NAME(join_row)
  ((const T *)in->re + i * in->row, (const T *)in->im + i * in->row, columns, both, (T *)to + 2 * i * step);
}

/* ---- lines ---- */

static void NAME(multiply)(const ts_fft_rows *a, const ts_fft_rows *b, int64_t count, const ts_fft_rows *out) {
  int64_t c = 0;
  for (; c + LANES <= count; c += LANES) {
    V ar = NAME(load)((const T *)a->re + c), ai = NAME(load)((const T *)a->im + c);
    V br = NAME(load)((const T *)b->re + c), bi = NAME(load)((const T *)b->im + c);
    NAME(store)((T *)out->re + c, ar * br - ai * bi);
    NAME(store)((T *)out->im + c, ar * bi + ai * br);
  }
  for (; c < count; c++) {
    const T ar = ((const T *)a->re)[c], ai = ((const T *)a->im)[c], br = ((const T *)b->re)[c],
            bi = ((const T *)b->im)[c];
    ((T *)out->re)[c] = ar * br - ai * bi;
    ((T *)out->im)[c] = ar * bi + ai * br;
  }
}

/* Vector k: the elements from k on, and the elements from half - k on backwards. */
INLINE void NAME(load_half)(const ts_fft_half *h, int64_t k, C *z, C *mirror, C *w) {
  const int64_t back = h->half - k - LANES + 1;
  V re = NAME(load)((const T *)h->z.re + back), im = NAME(load)((const T *)h->z.im + back);
  *z = (C){NAME(load)((const T *)h->z.re + k), NAME(load)((const T *)h->z.im + k)};
  *mirror = (C){BACKWARDS(re), BACKWARDS(im)};
  *w = (C){NAME(load)((const T *)h->w.re + k), NAME(load)((const T *)h->w.im + k)};
}

INLINE void NAME(store_half)(const ts_fft_half *h, int64_t k, C x) {
  NAME(store)((T *)h->out.re + k, x.re);
  NAME(store)((T *)h->out.im + k, x.im);
}

/* With e = (z[k] + conj z[half-k]) / 2, d = (z[k] - conj z[half-k]) / 2 and v = i w d, element k is e - v, and element
 * half - k is the conjugate of e + v. */
INLINE void NAME(unfold_one)(const ts_fft_half *h, int64_t k, const ts_fft_joined *joined) {
  const T *re = h->z.re, *im = h->z.im, x = (T)joined->factors[0], y = (T)joined->factors[1], none = 0;
  const int64_t back = k > 0 ? h->half - k : 0;
  const T wr = ((const T *)h->w.re)[k], wi = ((const T *)h->w.im)[k];
  const T er = (re[k] + re[back]) * (T)0.5, ei = (im[k] - im[back]) * (T)0.5;
  const T dr = (re[k] - re[back]) * (T)0.5, di = (im[k] + im[back]) * (T)0.5;
  const T p = wr * di + wi * dr, q = wr * dr - wi * di;
  const T one[2] = {(er + p) * x, (ei - q) * y}, other[2] = {(er - p) * x, (-ei - q) * y};
  T *to = joined->to, *from_half = to + 2 * h->half;
  memcpy(to + 2 * k, (T[2]){one[0], one[1] + none}, sizeof one);
  memcpy(from_half - 2 * k, (T[2]){other[0], other[1] + none}, sizeof one);
  if (!joined->mirror || k == 0) return;
  memcpy(from_half + 2 * (h->half - k), (T[2]){one[0], none - one[1]}, sizeof one);
  memcpy(from_half + 2 * k, (T[2]){other[0], none - other[1]}, sizeof one);
}

INLINE void NAME(store_joined)(T *to, V re, V im) {
  NAME(store)(to, LOW(re, im));
  NAME(store)(to + LANES, HIGH(re, im));
}

/* Elements k to k + LANES - 1, and the others that their numbers make. */
INLINE void NAME(unfold_some)(const ts_fft_half *h, int64_t k, const ts_fft_joined *joined) {
  const T x = (T)joined->factors[0], y = (T)joined->factors[1], none = 0;
  T *to = joined->to, *from_half = to + 2 * h->half;
  const int64_t last = k + LANES - 1;
  C z, m, w;
  NAME(load_half)(h, k, &z, &m, &w);
  C e = {(z.re + m.re) * (T)0.5, (z.im - m.im) * (T)0.5}, d = {(z.re - m.re) * (T)0.5, (z.im + m.im) * (T)0.5};
  V p = w.re * d.im + w.im * d.re, q = w.re * d.re - w.im * d.im;
  V one = (e.re + p) * x, one_im = (e.im - q) * y, other = (e.re - p) * x, other_im = (-e.im - q) * y;
  NAME(store_joined)(to + 2 * k, one, one_im + none);
  NAME(store_joined)(from_half - 2 * last, BACKWARDS(other), BACKWARDS(other_im) + none);
  if (!joined->mirror) return;
  NAME(store_joined)(from_half + 2 * k, other, none - other_im);
  NAME(store_joined)(from_half + 2 * (h->half - last), BACKWARDS(one), none - BACKWARDS(one_im));
}

/* The last vector begins early: it makes some elements again. */
static void NAME(unfold)(const ts_fft_half *h, const ts_fft_joined *joined) {
  const int64_t last = h->half / 2;
  NAME(unfold_one)(h, 0, joined);
  int64_t k = 1;
  for (; k + LANES - 1 <= last; k += LANES) NAME(unfold_some)(h, k, joined);
  if (k > last) return;
  if (last >= LANES)
    NAME(unfold_some)(h, last - LANES + 1, joined);
  else
    for (; k <= last; k++) NAME(unfold_one)(h, k, joined);
}

/* e and d without the halves: e + i conj(w) d. */
static void NAME(fold)(const ts_fft_half *h) {
  for (int64_t k = 0; k < h->half; k += LANES) {
    C z, m, w;
    NAME(load_half)(h, k, &z, &m, &w);
    C e = {z.re + m.re, z.im - m.im}, d = {z.re - m.re, z.im + m.im};
    NAME(store_half)(h, k, (C){e.re - (w.re * d.im - w.im * d.re), e.im + (w.re * d.re + w.im * d.im)});
  }
}

#include "kernel/fft/fft_vector_lanes.h"

#undef LOW
#undef HIGH
#undef EVEN
#undef ODD
#undef BACKWARDS
#undef C
#undef VECTORS
#undef T
#undef V
#undef NAME
#undef LANES
#undef COLUMNS
