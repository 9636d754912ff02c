/* Keys do not tell -0 from +0, nor one NaN from another. So the zeros and NaNs of a line that has any are written
 * again: the zeros are contiguous in the result, so are the NaNs, and a stable sort keeps both in the operand's order.
 */
#include "kernel/sort/sort_internal.h"

#define DEFINE_SPECIALS(BITS)                                                                                     \
  static void count_##BITS(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end,                      \
                           ts_sort_special *counts) {                                                             \
    const ts_sort_key key = job->key;                                                                             \
    const uint##BITS##_t *in = (const uint##BITS##_t *)job->in + base;                                            \
    const uint##BITS##_t zero = (uint##BITS##_t)key.flip;                                                         \
    for (int64_t i = begin; i < end; i++) {                                                                       \
      uint##BITS##_t k = ts_sort_key_##BITS(&key, in[i * job->inner]);                                            \
      counts->less += k < zero;                                                                                   \
      counts->zeros += k == zero;                                                                                 \
      counts->nans += ts_sort_is_nan_##BITS(&key, in[i * job->inner]);                                            \
    }                                                                                                             \
  }                                                                                                               \
  static void put_##BITS(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *at) { \
    const ts_sort_key key = job->key;                                                                             \
    const uint##BITS##_t *in = (const uint##BITS##_t *)job->in + base;                                            \
    uint##BITS##_t *out = (uint##BITS##_t *)job->out + base;                                                      \
    for (int64_t i = begin; i < end; i++) {                                                                       \
      uint##BITS##_t x = in[i * job->inner];                                                                      \
      if (ts_sort_is_nan_##BITS(&key, x))                                                                         \
        out[at->nans++ * job->inner] = x;                                                                         \
      else if (ts_sort_key_##BITS(&key, x) == (uint##BITS##_t)key.flip)                                           \
        out[at->zeros++ * job->inner] = x;                                                                        \
    }                                                                                                             \
  }
DEFINE_SPECIALS(8)
DEFINE_SPECIALS(16)
DEFINE_SPECIALS(32)
DEFINE_SPECIALS(64)

void ts_sort_specials_count(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *counts) {
  switch (job->width) {
  case 0: count_8(job, base, begin, end, counts); break;
  case 1: count_16(job, base, begin, end, counts); break;
  case 2: count_32(job, base, begin, end, counts); break;
  default: count_64(job, base, begin, end, counts); break;
  }
}

void ts_sort_specials_offsets(const ts_sort_job *job, ts_sort_special *parts, int64_t count) {
  ts_sort_special at = {0};
  for (int64_t i = 0; i < count; i++) at.zeros += parts[i].less, at.nans += parts[i].nans;
  at.nans = job->key.nan ? job->n - at.nans : 0; /* last, or first */
  for (int64_t i = 0; i < count; i++) {
    ts_sort_special next = {0, at.zeros + parts[i].zeros, at.nans + parts[i].nans};
    parts[i] = at;
    at = next;
  }
}

void ts_sort_specials_put(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *offsets) {
  switch (job->width) {
  case 0: put_8(job, base, begin, end, offsets); break;
  case 1: put_16(job, base, begin, end, offsets); break;
  case 2: put_32(job, base, begin, end, offsets); break;
  default: put_64(job, base, begin, end, offsets); break;
  }
}

void ts_sort_specials(const ts_sort_job *job, int64_t line) {
  int64_t base = ts_sort_line(job, line);
  ts_sort_special part = {0};
  ts_sort_specials_count(job, base, 0, job->n, &part);
  ts_sort_specials_offsets(job, &part, 1);
  ts_sort_specials_put(job, base, 0, job->n, &part);
}
