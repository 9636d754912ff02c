/* Where the elements of the operand are that the taps of a kernel read, for the three ways to convolve. */
#include "kernel/conv/conv_internal.h"

#include <string.h>

static bool is_inside(const conv_state *s, const int64_t *first) {
  for (int32_t d = 0; d < s->rank; d++) {
    const conv_dim *dim = &s->dims[d];
    if (dim->input_dilation != 1 || first[d] < 0) return false;
    if (first[d] + (dim->kernel - 1) * dim->kernel_dilation >= dim->n) return false;
  }
  return true;
}

static const char *get_start(const conv_state *s, const char *base, const int64_t *first) {
  if (!s->inside && !is_inside(s, first)) return NULL;
  for (int32_t d = 0; d < s->rank; d++) base += first[d] * s->dims[d].step;
  return base;
}

void ts_conv_start_rows(const void *context, int64_t group, int64_t row, int64_t count, void *state) {
  const conv_run *run = context;
  const conv_state *s = run->s;
  conv_rows *r = state;
  int64_t at[CONV_SPATIAL] = {0}, batch = row / s->outputs, rest = row % s->outputs;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    at[d] = rest % s->dims[d].out;
    rest /= s->dims[d].out;
  }
  r->count = count;
  for (int64_t u = 0; u < count; u++) {
    r->base[u] = run->x + batch * s->batch_bytes + group * (s->channels / s->groups) * s->size;
    for (int32_t d = 0; d < s->rank; d++) r->first[u][d] = at[d] * s->dims[d].stride - s->dims[d].low;
    r->start[u] = get_start(s, r->base[u], r->first[u]);
    int32_t d = s->rank - 1;
    for (; d >= 0 && ++at[d] == s->dims[d].out; d--) at[d] = 0;
    if (d < 0) batch++;
  }
}

int64_t ts_conv_element_bytes(const conv_state *s, int32_t rank, const int64_t *first, const int64_t *distance) {
  int64_t bytes = 0;
  for (int32_t d = 0; d < rank; d++) {
    const conv_dim *dim = &s->dims[d];
    int64_t at = first[d] + distance[d];
    if (at < 0) return -1;
    if (dim->input_dilation > 1) {
      if (at % dim->input_dilation != 0) return -1;
      at /= dim->input_dilation;
    }
    if (at >= dim->n) return -1;
    bytes += at * dim->step;
  }
  return bytes;
}

const char *ts_conv_find_row(const conv_state *s, const conv_rows *r, int64_t row, int64_t tap, int64_t offset) {
  if (r->start[row]) return r->start[row] + s->distance_bytes[tap] + offset;
  int64_t bytes = ts_conv_element_bytes(s, s->rank, r->first[row], s->distances + tap * s->rank);
  return bytes < 0 ? s->zeros + offset : r->base[row] + bytes + offset;
}

void ts_conv_copy_line(const conv_dim *d, int64_t wide, int64_t bytes, const char *from, char *to) {
  int64_t done = 0; /* elements of `to` */
  for (int64_t i = 0; i < d->n; i++) {
    int64_t at = i * d->input_dilation + d->low, count = 1;
    if (at < 0) continue;
    if (at >= wide) break;
    if (d->input_dilation == 1) count = conv_min(d->n - i, wide - at);
    memset(to + done * bytes, 0, (size_t)((at - done) * bytes));
    memcpy(to + at * bytes, from + i * bytes, (size_t)(count * bytes));
    done = at + count;
    i += count - 1;
  }
  memset(to + done * bytes, 0, (size_t)((wide - done) * bytes));
}
