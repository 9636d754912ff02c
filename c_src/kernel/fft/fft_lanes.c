/* Groups of short lines, without Bluestein's convolution, which takes longer ones. The lines are transposed while they
 * are loaded, so that each is a column of a block, and the steps of all kinds of transforms work on the block's rows:
 * rows 2 k and 2 k + 1 of numbers are the parts of element k. */
#include "kernel/fft/fft.h"

#include <string.h>

#define ROW_BYTES 64 /* of numbers */

static void clear(const ts_fft_rows *block, int64_t from, int64_t to) {
  if (from < to) memset((char *)block->re + from * ROW_BYTES, 0, (size_t)((to - from) * ROW_BYTES));
}

static void clear_im(const ts_fft_rows *block, int64_t from, int64_t to) {
  for (int64_t k = from; k < to; k++) clear(block, 2 * k + 1, 2 * k + 2);
}

#define DEFINE_NEGATE(NAME, T)                                                               \
  static void negate_##NAME(const void *from, void *to) {                                    \
    for (size_t i = 0; i < ROW_BYTES / sizeof(T); i++) ((T *)to)[i] = -((const T *)from)[i]; \
  }
DEFINE_NEGATE(f32, float)
DEFINE_NEGATE(f64, double)

/* Elements `from` to n - 1: the conjugates of the others. */
static void mirror(const ts_fft *fft, const ts_fft_rows *block, int64_t from) {
  char *rows = block->re;
  for (int64_t k = from; k < fft->request.n; k++) {
    char *to = rows + 2 * k * ROW_BYTES;
    const char *other = rows + 2 * (fft->request.n - k) * ROW_BYTES;
    memcpy(to, other, ROW_BYTES);
    (fft->size == 4 ? negate_f32 : negate_f64)(other + ROW_BYTES, to + ROW_BYTES);
  }
}

/* ---- loads, to the second block, since the first pass does not write there */

static void load_half(const ts_fft *fft, const ts_fft_lanes *lanes, const ts_fft_scratch *scratch) {
  const int64_t half = fft->request.n / 2;
  const ts_fft_rows *whole = &scratch->blocks[fft->pairs ? 0 : 1];
  fft->vector->load_lines(lanes->in, lanes->in_line, lanes->in_numbers, whole->re, fft->columns);
  clear(whole, lanes->in_numbers, 2 * (half + 1));
  clear_im(whole, 0, 1);
  if (fft->pairs) {
    clear_im(whole, half, half + 1);
    fft->vector->fold_rows(&(ts_fft_half){*whole, fft->half, scratch->blocks[1], half});
  } else {
    mirror(fft, whole, half + 1);
  }
}

static void load(const ts_fft *fft, const ts_fft_lanes *lanes, const ts_fft_scratch *scratch) {
  const ts_fft_rows *block = &scratch->blocks[1];
  const bool apart = fft->request.real && !fft->pairs;
  if (fft->request.kind == TS_FFT_REAL_INVERSE) {
    load_half(fft, lanes, scratch);
    return;
  }
  fft->vector->load_lines(lanes->in, lanes->in_line, lanes->in_numbers, block->re, (apart ? 2 : 1) * fft->columns);
  clear(block, apart ? 2 * lanes->in_numbers : lanes->in_numbers, 2 * fft->points);
  if (apart) clear_im(block, 0, fft->points);
}

/* ---- transforms */

static ts_fft_scratch exchanged_blocks(const ts_fft_scratch *scratch) {
  ts_fft_scratch other = *scratch;
  for (int i = 0; i < 2; i++) other.blocks[i] = ts_fft_exchanged(&scratch->blocks[i]);
  return other;
}

static ts_fft_rows transform(const ts_fft *fft, const ts_fft_scratch *scratch) {
  const bool swaps = ts_fft_swaps(fft);
  const ts_fft_scratch other = exchanged_blocks(scratch), *s = swaps ? &other : scratch;
  const ts_fft_rows out = *ts_fft_columns(fft, &fft->core.first, &s->blocks[1], s);
  return swaps ? ts_fft_exchanged(&out) : out;
}

/* ---- stores */

static void store(const ts_fft *fft, const ts_fft_lanes *lanes, const ts_fft_scratch *scratch,
                  const ts_fft_rows *from) {
  const ts_fft_request *r = &fft->request;
  const bool apart = r->kind == TS_FFT_REAL_INVERSE && !fft->pairs, whole = r->kind != TS_FFT_REAL_INVERSE;
  static const double none[4] = {1, 1, -0.0, -0.0};
  const bool unfolds = fft->pairs && whole;
  if (unfolds) {
    const ts_fft_rows *other = &scratch->blocks[from->re == scratch->blocks[0].re];
    const ts_fft_joined joined = {.factors = fft->factors, .mirror = r->kind != TS_FFT_REAL};
    fft->vector->unfold_rows(&(ts_fft_half){*from, fft->half, *other, fft->points}, &joined);
    from = other;
  }
  fft->vector->store_lines(from->re, (apart ? 2 : 1) * fft->columns, lanes->out_numbers, unfolds ? none : fft->factors,
                           lanes->out, lanes->out_line);
}

void ts_fft_lanes_run(const ts_fft *fft, const ts_fft_lanes *lanes, const ts_fft_scratch *scratch) {
  load(fft, lanes, scratch);
  const ts_fft_rows out = transform(fft, scratch);
  store(fft, lanes, scratch, &out);
}
