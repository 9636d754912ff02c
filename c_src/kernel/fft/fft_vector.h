/* Inner loops of Fourier transforms in f32 and f64, by vectors. The code is the same for every instruction set
 * (fft_vector_body.h), compiled once for each. Multiply-adds are fused where a function says FMA and nowhere else, so
 * every machine that has them gives the same bits. Real and imaginary parts are apart in memory. Pure functions of
 * their arguments; thread-safe. */
#ifndef TS_KERNEL_FFT_VECTOR_H
#define TS_KERNEL_FFT_VECTOR_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* Columns that are transformed at once, on every machine: 64 bytes of each part. */
#define TS_FFT_F32_COLUMNS 16
#define TS_FFT_F64_COLUMNS 8

/* Rows of complex numbers: part `re` or `im` of element c in row i is at [i * row + c]. */
typedef struct ts_fft_rows {
  void *re, *im;
  int64_t row; /* elements */
} ts_fft_rows;

/* One pass of a Stockham transform along the rows, of radix * length * stride rows: it makes `radix` transforms of
 * length * stride rows from one. */
#define TS_FFT_MOST_RADIX 509
typedef struct ts_fft_pass {
  int radix; /* 2, 3, 4, 5, 7, 8, 11, 13, or a larger prime up to TS_FFT_MOST_RADIX */
  int64_t length, stride;
  /* Of a larger prime: cos and sin of 2 pi j k / radix for 1 <= j, k <= radix / 2, by pairs of j, then by k. */
  const void *roots;
  const void
      *twiddles; /* re, im of w^(p k) for p < length and 0 < k < radix, by p; w = exp(-2 pi i / (radix length)) */
} ts_fft_pass;

/* A real transform's halves: rows of z are neighbours, z has `half` elements and those at -1 .. -16 and `half` + 16 are
 * readable; w[k] = exp(-pi i k / half). */
typedef struct ts_fft_half {
  ts_fft_rows z, w, out;
  int64_t half;
} ts_fft_half;

/* Interleaved numbers that are stored, times factors for both parts. */
typedef struct ts_fft_joined {
  void *to;
  const double *factors; /* two */
  bool mirror;           /* of the transform of real numbers: also the conjugates after the middle */
} ts_fft_joined;

typedef struct ts_fft_vector {
  /* One pass over the columns; `in` and `out` do not overlap. */
  void (*pass)(const ts_fft_pass *pass, const ts_fft_rows *in, const ts_fft_rows *out);
  /* Multiplies `count` rows of columns by twiddles, and transposes them: row i becomes column i of `out`. `count` is
   * rounded up to a multiple of the columns. Twiddles are rows like the rows of `in`. */
  void (*transpose_rows)(const ts_fft_rows *in, const ts_fft_rows *twiddles, int64_t count, const ts_fft_rows *out);
  /* Interleaved numbers to parts and back, the latter with factors for both. `step`: numbers from one interleaved row
   * to the next. */
  void (*split)(const void *from, int64_t step, int64_t rows, int64_t columns, const ts_fft_rows *out);
  void (*join)(const ts_fft_rows *in, int64_t rows, int64_t columns, const double factors[2], void *to, int64_t step);
  /* out = a * b; out may be a. */
  void (*multiply)(const ts_fft_rows *a, const ts_fft_rows *b, int64_t rows, int64_t columns, const ts_fft_rows *out);
  /* Elements 0 to half of the transform of 2 * half real numbers, or all elements; z is the transform of their
   * pairs. Those that numbers from <= k < to of z make, with their mirrors: all for 0 <= k <= half / 2. */
  void (*unfold)(const ts_fft_half *half, const ts_fft_joined *joined, int64_t from, int64_t to);
  /* The inverse, from <= k < to, times 2: z is the transform of real numbers. Up to 15 more elements are written. */
  void (*fold)(const ts_fft_half *half, int64_t from, int64_t to);

  /* Of lines in lanes, which have a column each. Number i of a line is in row i of `to`, or of `from`; `line` and `row`
   * are elements from one line, or row, to the next. Loads move numbers without a change. Stored are
   * x * factors[i % 2] + factors[2 + i % 2]. */
  void (*load_lines)(const void *from, int64_t line, int64_t numbers, void *to, int64_t row);
  void (*store_lines)(const void *from, int64_t row, int64_t numbers, const double factors[4], void *to, int64_t line);
  /* `unfold`, with its factors, and `fold`, of each column; z and out are rows, w a line. */
  void (*unfold_rows)(const ts_fft_half *half, const ts_fft_joined *joined);
  void (*fold_rows)(const ts_fft_half *half);
} ts_fft_vector;

/* Of the instruction set in use; f32 or f64. */
const ts_fft_vector *ts_fft_vector_of(ts_dtype type);

/* [0] f32, [1] f64 */
extern const ts_fft_vector ts_fft_vector_base[2];
#if defined(__x86_64__)
extern const ts_fft_vector ts_fft_vector_avx2[2], ts_fft_vector_avx512[2];
#endif

#endif
