/* The part of fft_vector_body.h for one type: T, its vectors V of LANES, NAME, and COLUMNS. */
#define VECTORS (COLUMNS / LANES)
#define SIZE ((int64_t)sizeof(T))
#define UNIT (LANES / (VECTOR_BYTES / 16)) /* elements of a unit */

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

/* A vector times a number, plus a vector, by FMA. */
#define MADD(a, b, c) FMA(a, (b) - (V){0}, c)
INLINE C NAME(times)(C x, T re, T im) { return (C){MADD(x.re, re, -(x.im * im)), MADD(x.re, im, x.im * re)}; }

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
  const V a = odd[1].re + odd[1].im, b = odd[1].im - odd[1].re, c = odd[3].im - odd[3].re, d = odd[3].re + odd[3].im;
  odd[2] = NAME(turned)(odd[2]);
  for (int k = 0; k < 4; k += 2) {
    x[k] = NAME(plus)(even[k], odd[k]);
    x[k + 4] = NAME(minus)(even[k], odd[k]);
  }
  x[1] = (C){MADD(a, root, even[1].re), MADD(b, root, even[1].im)};
  x[5] = (C){MADD(a, -root, even[1].re), MADD(b, -root, even[1].im)};
  x[3] = (C){MADD(c, root, even[3].re), MADD(d, -root, even[3].im)};
  x[7] = (C){MADD(c, -root, even[3].re), MADD(d, root, even[3].im)};
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
    C a = {MADD(sum[1].re, c, zero.re), MADD(sum[1].im, c, zero.im)}, b = {difference[1].re * s, difference[1].im * s};
    _Pragma("GCC unroll 8") for (int k = 2; k <= radix / 2; k++) {
      c = (T)roots[j * k % radix][0];
      s = (T)roots[j * k % radix][1];
      a = (C){MADD(sum[k].re, c, a.re), MADD(sum[k].im, c, a.im)};
      b = (C){MADD(difference[k].re, s, b.re), MADD(difference[k].im, s, b.im)};
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

/* Where the butterflies of one p begin; steps from one element to the next. Values, which no store can change. */
typedef struct NAME(place) {
  const T *re, *im;
  T *to_re, *to_im;
  int64_t row, step, to_row, to_step;
  const T *twiddles;
} NAME(place);

/* The butterflies of one p: `stride` of them. Twiddles of p = 0 are 1, and left out. */
INLINE void NAME(some_butterflies)(NAME(place) at, int radix, int64_t stride, bool turns) {
  for (int64_t q = 0; q < stride; q++) {
    for (int v = 0; v < COLUMNS; v += LANES) {
      C x[13];
      _Pragma("GCC unroll 13") for (int k = 0; k < radix; k++) x[k] =
          (C){NAME(load)(at.re + k * at.step + v), NAME(load)(at.im + k * at.step + v)};
      NAME(butterfly)(x, radix);
      _Pragma("GCC unroll 13") for (int k = 0; k < radix; k++) {
        C y = x[k];
        if (turns && k > 0) y = NAME(times)(y, at.twiddles[2 * k - 2], at.twiddles[2 * k - 1]);
        NAME(store)(at.to_re + k * at.to_step + v, y.re);
        NAME(store)(at.to_im + k * at.to_step + v, y.im);
      }
    }
    at.re += at.row;
    at.im += at.row;
    at.to_re += at.to_row;
    at.to_im += at.to_row;
  }
}

INLINE NAME(place) NAME(first_place)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out) {
  return (NAME(place)){.re = in->re,
                       .im = in->im,
                       .to_re = out->re,
                       .to_im = out->im,
                       .row = in->row,
                       .step = pass->stride * pass->length * in->row,
                       .to_row = out->row,
                       .to_step = pass->stride * out->row,
                       .twiddles = pass->twiddles};
}

INLINE void NAME(some_pass)(const ts_fft_pass *pass, int radix, const ts_fft_rows *in, const ts_fft_rows *out) {
  const int64_t stride = pass->stride, length = pass->length;
  NAME(place) at = NAME(first_place)(pass, in, out);
  NAME(some_butterflies)(at, radix, stride, false);
  for (int64_t p = 1; p < length; p++) {
    at.re += stride * at.row;
    at.im += stride * at.row;
    at.to_re += radix * at.to_step;
    at.to_im += radix * at.to_step;
    at.twiddles += 2 * (radix - 1);
    NAME(some_butterflies)(at, radix, stride, true);
  }
}

#define DEFINE_PASS(RADIX)                                                                                \
  static void NAME(pass##RADIX)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out) { \
    NAME(some_pass)(pass, RADIX, in, out);                                                                \
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
#define UNITS_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define UNITS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 8
#if UNIT == 4
#define UNITS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define UNITS_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#else
#define UNITS_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define UNITS_HIGH(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#endif
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0)
#elif LANES == 4
#if UNIT == 4
#define UNITS_LOW(a, b) LOW(a, b)
#define UNITS_HIGH(a, b) HIGH(a, b)
#else
#define UNITS_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define UNITS_HIGH(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#endif
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 3, 2, 1, 0)
#else
#define UNITS_LOW(a, b) LOW(a, b)
#define UNITS_HIGH(a, b) HIGH(a, b)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#define EVEN(a, b) LOW(a, b)
#define ODD(a, b) HIGH(a, b)
#define BACKWARDS(a) __builtin_shufflevector(a, a, 1, 0)
#endif

/* Vector i and vector i + UNIT / 2 interleaved in each unit, log2(UNIT) times: that transposes the units at each place,
 * so unit u of vector i becomes unit u of element i. */
INLINE void NAME(transpose_units)(V *x) {
  _Pragma("GCC unroll 4") for (int done = 1; done < UNIT; done *= 2) {
    V y[UNIT];
    _Pragma("GCC unroll 4") for (int i = 0; i < UNIT / 2; i++) {
      y[2 * i] = UNITS_LOW(x[i], x[i + UNIT / 2]);
      y[2 * i + 1] = UNITS_HIGH(x[i], x[i + UNIT / 2]);
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < UNIT; i++) x[i] = y[i];
  }
}

/* LANES rows of a unit each, to a unit's rows of LANES; and of two units. */
INLINE void NAME(transpose_unit_from)(const T *from, int64_t row, T *to, int64_t to_row) {
  V x[UNIT];
  UNROLL for (int i = 0; i < UNIT; i++) x[i] = (V)ISA(load_units)(from + i * row, UNIT * row * SIZE);
  NAME(transpose_units)(x);
  UNROLL for (int i = 0; i < UNIT; i++) NAME(store)(to + i * to_row, x[i]);
}

INLINE void NAME(transpose_from)(const T *from, int64_t row, T *to, int64_t to_row) {
  V x[2 * UNIT];
  UNROLL for (int i = 0; i < UNIT; i++) {
    ISA(fft_raw) pair[2];
    ISA(load_pairs)(from + i * row, UNIT * row * SIZE, pair);
    x[i] = (V)pair[0];
    x[UNIT + i] = (V)pair[1];
  }
  NAME(transpose_units)(x);
  NAME(transpose_units)(x + UNIT);
  UNROLL for (int i = 0; i < 2 * UNIT; i++) NAME(store)(to + i * to_row, x[i]);
}

/* The other way. */
INLINE void NAME(transpose_unit_to)(V *x, T *to, int64_t to_row) {
  NAME(transpose_units)(x);
  UNROLL for (int i = 0; i < UNIT; i++) ISA(store_units)(to + i * to_row, UNIT * to_row * SIZE, (ISA(fft_raw))x[i]);
}

INLINE void NAME(transpose_to)(V *x, T *to, int64_t to_row) {
  NAME(transpose_units)(x);
  NAME(transpose_units)(x + UNIT);
  UNROLL for (int i = 0; i < UNIT; i++) {
    const ISA(fft_raw) pair[2] = {(ISA(fft_raw))x[i], (ISA(fft_raw))x[UNIT + i]};
    ISA(store_pairs)(to + i * to_row, UNIT * to_row * SIZE, pair);
  }
}

#if VECTOR_BYTES == 64
INLINE void NAME(transpose_fours_to)(V *x, T *to, int64_t to_row) {
  UNROLL for (int i = 0; i < 4; i++) NAME(transpose_units)(x + i * UNIT);
  UNROLL for (int i = 0; i < UNIT; i++) {
    const ISA(fft_raw) fours[4] = {(ISA(fft_raw))x[i], (ISA(fft_raw))x[UNIT + i], (ISA(fft_raw))x[2 * UNIT + i],
                                   (ISA(fft_raw))x[3 * UNIT + i]};
    ISA(store_fours)(to + i * to_row, UNIT * to_row * SIZE, fours);
  }
}
#endif

INLINE void NAME(transpose_product)(const ts_fft_rows *in, const ts_fft_rows *w, int64_t i, int64_t c,
                                    const ts_fft_rows *out) {
  V re[2 * UNIT], im[2 * UNIT];
  UNROLL for (int k = 0; k < 2 * UNIT; k++) {
    const int64_t at = (i + k) * in->row + c, tw = (i + k) * w->row + c;
    V a = NAME(load)((const T *)in->re + at), b = NAME(load)((const T *)in->im + at);
    V wr = NAME(load)((const T *)w->re + tw), wi = NAME(load)((const T *)w->im + tw);
    re[k] = FMA(a, wr, -(b * wi));
    im[k] = FMA(a, wi, b * wr);
  }
  NAME(transpose_to)(re, (T *)out->re + c * out->row + i, out->row);
  NAME(transpose_to)(im, (T *)out->im + c * out->row + i, out->row);
}

static void NAME(transpose_rows)(const ts_fft_rows *in, const ts_fft_rows *twiddles, int64_t count,
                                 const ts_fft_rows *out) {
  for (int64_t c = 0; c < COLUMNS; c += LANES)
    for (int64_t i = 0; i < count; i += 2 * UNIT) NAME(transpose_product)(in, twiddles, i, c, out);
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

INLINE void NAME(multiply_row)(const T *ar, const T *ai, const T *br, const T *bi, int64_t count, T *re, T *im) {
  int64_t c = 0;
  for (; c + LANES <= count; c += LANES) {
    const V a = NAME(load)(ar + c), b = NAME(load)(ai + c), x = NAME(load)(br + c), y = NAME(load)(bi + c);
    NAME(store)(re + c, a * x - b * y);
    NAME(store)(im + c, a * y + b * x);
  }
  for (; c < count; c++) {
    const T a = ar[c], b = ai[c], x = br[c], y = bi[c];
    re[c] = a * x - b * y;
    im[c] = a * y + b * x;
  }
}

static void NAME(multiply)(const ts_fft_rows *a, const ts_fft_rows *b, int64_t rows, int64_t columns,
                           const ts_fft_rows *out) {
  for (int64_t i = 0; i < rows; i++) {
    const int64_t from = i * a->row, other = i * b->row, to = i * out->row;
    NAME(multiply_row)
    ((const T *)a->re + from, (const T *)a->im + from, (const T *)b->re + other, (const T *)b->im + other, columns,
     (T *)out->re + to, (T *)out->im + to);
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
INLINE void NAME(unfold_some)(const ts_fft_half *h, int64_t k, T x, T y, const ts_fft_joined *joined) {
  const T none = 0;
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

/* The last vector begins early: it makes some elements again. Copies of arguments, which no store can change. */
static void NAME(unfold)(const ts_fft_half *half, const ts_fft_joined *arguments, int64_t from, int64_t to) {
  const ts_fft_half h = *half;
  const ts_fft_joined joined = *arguments;
  const T x = (T)joined.factors[0], y = (T)joined.factors[1];
  int64_t k = from;
  if (k == 0) NAME(unfold_one)(&h, k++, &joined);
  const int64_t first = k;
  for (; k + LANES <= to; k += LANES) NAME(unfold_some)(&h, k, x, y, &joined);
  if (k >= to) return;
  if (to - first >= LANES)
    NAME(unfold_some)(&h, to - LANES, x, y, &joined);
  else
    for (; k < to; k++) NAME(unfold_one)(&h, k, &joined);
}

/* e and d without the halves: e + i conj(w) d. */
static void NAME(fold)(const ts_fft_half *half, int64_t from, int64_t to) {
  const ts_fft_half h = *half;
  for (int64_t k = from; k < to; k += LANES) {
    C z, m, w;
    NAME(load_half)(&h, k, &z, &m, &w);
    C e = {z.re + m.re, z.im - m.im}, d = {z.re - m.re, z.im + m.im};
    NAME(store_half)(&h, k, (C){e.re - (w.re * d.im - w.im * d.re), e.im + (w.re * d.re + w.im * d.im)});
  }
}

#include "kernel/fft/fft_vector_lanes.h"

#undef UNITS_LOW
#undef UNITS_HIGH
#undef LOW
#undef HIGH
#undef EVEN
#undef ODD
#undef BACKWARDS
#undef C
#undef MADD
#undef FMA
#undef VECTORS
#undef SIZE
#undef UNIT
#undef T
#undef V
#undef NAME
#undef LANES
#undef COLUMNS
