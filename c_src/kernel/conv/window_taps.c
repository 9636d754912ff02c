/* Where the taps of windows are in memory. */
#include "kernel/conv/window_internal.h"

/* The first element of window o in bounds, and the number of elements in bounds; 0 without any. */
static int64_t clip(const window_dim *d, int64_t o, int64_t *out_count) {
  int64_t first = o * d->stride - d->low, before = 0;
  if (first < 0) before = min_of(d->size, -(first / d->dilation) + (first % d->dilation != 0));
  first += before * d->dilation;
  *out_count = first < d->n ? min_of((d->n - 1 - first) / d->dilation + 1, d->size - before) : 0;
  return *out_count > 0 ? first : 0;
}

int64_t ts_window_find_rows(const window_state *s, int64_t row, const char *in, const char **out) {
  int64_t count[TS_MAX_RANK], at[TS_MAX_RANK], rows = 1;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    at[d] = 0;
    in += clip(&s->outer[d], row % s->outer[d].out, &count[d]) * s->outer[d].step;
    row /= s->outer[d].out;
    rows *= count[d];
  }
  for (int64_t r = 0; r < rows; r++) {
    out[r] = in;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
      if (++at[d] < count[d]) {
        in += s->outer[d].dilation * s->outer[d].step;
        break;
      }
      if (count[d] > 1) in -= (count[d] - 1) * s->outer[d].dilation * s->outer[d].step;
      at[d] = 0;
    }
  }
  return rows;
}

void ts_window_set_taps(const window_state *s, int64_t o, ts_window_taps *taps) {
  taps->steps = s->last.size;
  int64_t first = o * s->last.stride - s->last.low;
  if (!is_interior(s, o)) first = clip(&s->last, o, &taps->steps); /* divides */
  taps->offset = first * s->last.step;
  taps->step = taps->steps > 1 ? s->last.dilation * s->last.step : s->last.step; /* else it may be of any size */
}
