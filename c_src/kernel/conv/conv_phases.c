/* The phases of a convolution whose operand is dilated, as a transposed one is. There is a phase for each point of a
 * period of dilation / gcd(stride, dilation) points, so that a single phase may leave taps out as well. A tap that
 * falls between elements multiplies a zero by a weight. Where the weight is finite, that leaves all sums as they are
 * but -0, so such taps are left out. Two kinds of results differ, and are mended afterwards: where a weight that is not
 * finite was left out the result becomes NaN, and a result of -0, which only a product that underflows makes, is summed
 * again with all taps. */
#include "kernel/conv/conv_internal.h"
#include "kernel/ref/ref_sum.h"

#include <fenv.h>
#include <math.h>

/* ---- the plan */

/* Numbers up to this one have products with sizes of tensors that do not overflow. */
#define MOST_DISTANCE (INT64_C(1) << 24)
/* The tables have an entry for each phase of both dims. */
#define MOST_DILATION 16

static bool is_moderate(int64_t number) { return number >= -MOST_DISTANCE && number <= MOST_DISTANCE; }

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* The place of a tap for number 0 of a phase, in the dilated operand. */
static int64_t place_of(const conv_dim *d, int64_t phase, int64_t tap) {
  return phase * d->stride - d->low + tap * d->kernel_dilation;
}

static bool meets(const conv_dim *d, int64_t phase, int64_t tap) {
  return place_of(d, phase, tap) % d->input_dilation == 0;
}

static int64_t element_of(const conv_dim *d, int64_t phase, int64_t tap) {
  return divide_down(place_of(d, phase, tap), d->input_dilation);
}

bool ts_conv_find_phases(const conv_dim *d, conv_phases *out) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  if (!is_moderate(d->stride) || !is_moderate(d->low) || !is_moderate(d->kernel) || !is_moderate(d->out) ||
      !is_moderate(d->kernel_dilation) || d->input_dilation > MOST_DILATION || d->kernel > TS_CONTRACT_BLOCK)
    return false;
  const int64_t shared = common_divisor(d->stride, d->input_dilation);
  *out = (conv_phases){.count = d->input_dilation / shared, .stride = d->stride / shared};
  for (int64_t p = 0; p < out->count && p < d->out; p++)
    for (int64_t t = 0; t < d->kernel; t++) {
      if (!meets(d, p, t)) continue;
      first = conv_min(first, element_of(d, p, t));
      last = conv_max(last, element_of(d, p, t));
    }
  out->first = first;
  out->span = last - first + 1;
  return first <= last;
}

typedef struct pieces {
  const conv_state *s;
  ts_gemm_piece *next;
  int64_t end; /* of the elements of the last piece, in bytes */
  int64_t k;   /* after it */
} pieces;

/* Adds the channels of a tap: to the last piece where they continue it, and cut where chains end. */
static void add_tap(pieces *p, conv_phase *phase, int64_t tap, int64_t lhs) {
  const conv_state *s = p->s;
  int64_t k = tap * s->channels, left = s->channels;
  while (left > 0) {
    const int64_t steps = conv_min(left, TS_CONTRACT_CHAIN - k % TS_CONTRACT_CHAIN);
    const bool continues = phase->count > 0 && k % TS_CONTRACT_CHAIN != 0;
    if (continues && p->k == k && p->end == lhs) {
      p->next[-1].steps += steps;
    } else {
      if (phase->count > 0) p->next[-1].ends = (p->k - 1) / TS_CONTRACT_CHAIN != k / TS_CONTRACT_CHAIN;
      *p->next++ = (ts_gemm_piece){.lhs = lhs, .rhs = k, .steps = steps};
      phase->count++;
    }
    left -= steps, k += steps, lhs += steps * s->size;
    p->k = k, p->end = lhs;
  }
}

static void add_phase(pieces *p, int64_t y, int64_t x, conv_phase *out) {
  const conv_state *s = p->s;
  const conv_direct *d = &s->direct;
  *out = (conv_phase){.pieces = p->next};
  for (int64_t ty = 0; ty < d->y.kernel; ty++) {
    if (!meets(&d->y, y, ty)) continue;
    const int64_t line = (element_of(&d->y, y, ty) - d->along_y.first) * d->line_bytes;
    for (int64_t tx = 0; tx < d->x.kernel; tx++) {
      if (!meets(&d->x, x, tx)) continue;
      const int64_t at = element_of(&d->x, x, tx) - d->along_x.first;
      add_tap(p, out, ty * d->x.kernel + tx, line + at * s->channels * s->size);
    }
  }
  if (out->count > 0) p->next[-1].ends = 1;
}

/* Taps that meet elements, of all phases of a dim. */
static int64_t count_taps(const conv_dim *d, int64_t phases) {
  int64_t count = 0;
  for (int64_t p = 0; p < phases; p++)
    for (int64_t t = 0; t < d->kernel; t++) count += meets(d, p, t);
  return count;
}

static int64_t count_pieces(const conv_state *s) {
  const conv_direct *d = &s->direct;
  const int64_t of_tap = (s->channels - 1) / TS_CONTRACT_CHAIN + 2;
  return count_taps(&d->y, d->along_y.count) * count_taps(&d->x, d->along_x.count) * of_tap +
         1; /* the kernel loads one more */
}

ts_status ts_conv_plan_phases(conv_state *s, ts_arena *arena) {
  conv_direct *d = &s->direct;
  conv_phase *phases;
  pieces p = {.s = s};
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)conv_count_phases(d), &phases));
  TS_TRY(TS_ARENA_ARRAY(arena, (size_t)count_pieces(s), &p.next));
  for (int64_t y = 0; y < d->along_y.count; y++)
    for (int64_t x = 0; x < d->along_x.count; x++) add_phase(&p, y, x, &phases[y * d->along_x.count + x]);
  d->phases = phases;
  return TS_SUCCESS;
}

/* ---- results that differ */

static bool is_finite(const conv_state *s, const char *at) {
  if (s->type == TS_F32) return isfinite(*(const float *)(const void *)at);
  return isfinite(*(const double *)(const void *)at);
}

bool ts_conv_has_special(const conv_run *run) {
  const conv_state *s = run->s;
  if (!conv_leaves_taps(&s->direct) || !ts_dtype_is_float(s->type)) return false;
  for (int64_t i = 0; i < s->shape.k * s->shape.n; i++)
    if (!is_finite(s, run->kernel + i * s->size)) return true;
  return false;
}

static bool is_special_tap(const conv_run *run, int64_t tap, int64_t feature) {
  const conv_state *s = run->s;
  const char *weight = run->kernel + (tap * s->channels * s->shape.n + feature) * s->size;
  for (int64_t c = 0; c < s->channels; c++, weight += s->shape.n * s->size)
    if (!is_finite(s, weight)) return true;
  return false;
}

/* True if a weight of the feature that is left out in the phase is not finite. */
static bool leaves_special(const conv_run *run, int64_t y, int64_t x, int64_t feature) {
  const conv_direct *d = &run->s->direct;
  for (int64_t ty = 0; ty < d->y.kernel; ty++) {
    const bool meets_y = meets(&d->y, y, ty);
    for (int64_t tx = 0; tx < d->x.kernel; tx++)
      if (!(meets_y && meets(&d->x, x, tx)) && is_special_tap(run, ty * d->x.kernel + tx, feature)) return true;
  }
  return false;
}

static void store_nan(const conv_state *s, char *out) {
  ts_scalar_store(s->type, ts_scalar_from_f64(s->type, NAN), out);
}

static void mend_special(const conv_run *run, int64_t row, char *out) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  for (int64_t x = 0; x < d->along_x.count; x++)
    for (int64_t f = 0; f < s->shape.n; f++) {
      if (!leaves_special(run, row % d->along_y.count, x, f)) continue;
      for (int64_t point = x; point < d->x.out; point += d->along_x.count)
        store_nan(s, out + (point * s->shape.n + f) * s->size);
    }
}

/* The element of the operand's first channel that a tap reads; NULL for zero. */
static const char *tap_element(const conv_run *run, int64_t batch, int64_t row, int64_t point, int64_t tap) {
  const conv_state *s = run->s;
  const conv_direct *d = &s->direct;
  const int64_t ty = tap / d->x.kernel, tx = tap % d->x.kernel;
  if (!meets(&d->y, row, ty) || !meets(&d->x, point, tx)) return NULL;
  const int64_t y = element_of(&d->y, row, ty), x = element_of(&d->x, point, tx);
  if (y < 0 || y >= d->y.n || x < 0 || x >= d->x.n) return NULL;
  return run->source + batch * s->batch_bytes + y * d->y.step + x * s->channels * s->size;
}

/* As the interpreter does it. */
static void sum_again(const conv_run *run, int64_t batch, int64_t row, int64_t element, char *out) {
  const conv_state *s = run->s;
  const int64_t point = element / s->shape.n, feature = element % s->shape.n;
  ts_ref_sum sum;
  ts_ref_sum_start(&sum, s->type, (ts_contract_order){TS_CONTRACT_CHAIN, 1});
  for (int64_t k = 0; k < s->shape.k; k++) {
    const char *x = tap_element(run, batch, row, point, k / s->channels);
    const ts_scalar zero = {.bits = 0};
    const ts_scalar l = x ? ts_scalar_load(s->type, x + k % s->channels * s->size) : zero;
    ts_ref_sum_add(&sum, l, ts_scalar_load(s->type, run->kernel + (k * s->shape.n + feature) * s->size));
  }
  ts_scalar_store(s->type, ts_ref_sum_end(&sum), out);
}

static bool is_negative_zero(const conv_state *s, const char *at) {
  const double value = s->type == TS_F32 ? (double)*(const float *)(const void *)at : *(const double *)(const void *)at;
  return value == 0 && signbit(value);
}

void ts_conv_mend_row(const conv_run *run, int64_t batch, int64_t row) {
  const conv_state *s = run->s;
  const int64_t elements = s->direct.x.out * s->shape.n;
  char *out = run->out + (batch * s->direct.y.out + row) * elements * s->size;
  if (!ts_dtype_is_float(s->type)) return;
  if (run->has_special) mend_special(run, row, out);
  if (!fetestexcept(FE_UNDERFLOW)) return;
  for (int64_t i = 0; i < elements; i++)
    if (is_negative_zero(s, out + i * s->size)) sum_again(run, batch, row, i, out + i * s->size);
}
