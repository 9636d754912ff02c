/* Keys do not tell -0 from +0, nor one NaN from another. So the zeros and NaNs of a line that has any are written
 * again: the zeros are contiguous in the result, so are the NaNs, and a stable sort keeps both in the operand's order.
 */
#include "kernel/sort/sort_lanes.h"

#include <string.h>

/* Elements that are looked at together. */
#define BLOCK 512
/* Bytes behind the found ones, for whole vectors. */
#define SLACK 64

typedef struct block {
  uint64_t copy[BLOCK], zeros[BLOCK + SLACK / 8], nans[BLOCK + SLACK / 8];
  ts_sort_special found;
} block;

#define DEFINE_MOVES(BITS)                                                           \
  static void collect_##BITS(const void *in, int64_t n, int64_t inner, void *to) {   \
    const uint##BITS##_t *from = in;                                                 \
    for (int64_t i = 0; i < n; i++) ((uint##BITS##_t *)to)[i] = from[i * inner];     \
  }                                                                                  \
  static void spread_##BITS(const void *from, int64_t n, int64_t inner, void *out) { \
    const uint##BITS##_t *x = from;                                                  \
    for (int64_t i = 0; i < n; i++) ((uint##BITS##_t *)out)[i * inner] = x[i];       \
  }
DEFINE_MOVES(8)
DEFINE_MOVES(16)
DEFINE_MOVES(32)
DEFINE_MOVES(64)

static void find(const ts_sort_job *job, int64_t base, int64_t at, int64_t n, block *b) {
  static void (*const collects[])(const void *, int64_t, int64_t, void *) = {collect_8, collect_16, collect_32,
                                                                             collect_64};
  const char *in = (const char *)job->in + ((base + at * job->inner) << job->width);
  if (job->inner != 1) collects[job->width](in, n, job->inner, b->copy);
  b->found = ts_sort_lanes_host()->specials[job->width](&job->key, job->inner == 1 ? (const void *)in : b->copy, n,
                                                        b->zeros, b->nans);
}

static void put_some(const ts_sort_job *job, int64_t base, int64_t at, const void *from, int64_t n) {
  static void (*const spreads[])(const void *, int64_t, int64_t, void *) = {spread_8, spread_16, spread_32, spread_64};
  char *out = (char *)job->out + ((base + at * job->inner) << job->width);
  if (job->inner == 1)
    memcpy(out, from, (size_t)(n << job->width));
  else
    spreads[job->width](from, n, job->inner, out);
}

static void put(const ts_sort_job *job, int64_t base, const block *b, ts_sort_special *at) {
  put_some(job, base, at->zeros, b->zeros, b->found.zeros);
  put_some(job, base, at->nans, b->nans, b->found.nans);
  at->zeros += b->found.zeros;
  at->nans += b->found.nans;
}

void ts_sort_specials_count(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *counts) {
  block b;
  for (int64_t at = begin; at < end; at += BLOCK) {
    find(job, base, at, end - at < BLOCK ? end - at : BLOCK, &b);
    counts->less += b.found.less;
    counts->zeros += b.found.zeros;
    counts->nans += b.found.nans;
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
  block b;
  for (int64_t at = begin; at < end; at += BLOCK) {
    find(job, base, at, end - at < BLOCK ? end - at : BLOCK, &b);
    put(job, base, &b, offsets);
  }
}

/* A short line is looked at once. */
static void short_line(const ts_sort_job *job, int64_t base) {
  block b;
  find(job, base, 0, job->n, &b);
  ts_sort_special part = b.found;
  ts_sort_specials_offsets(job, &part, 1);
  put(job, base, &b, &part);
}

void ts_sort_specials(const ts_sort_job *job, int64_t line) {
  int64_t base = ts_sort_line(job, line);
  ts_sort_special part = {0};
  if (job->n <= BLOCK) {
    short_line(job, base);
    return;
  }
  ts_sort_specials_count(job, base, 0, job->n, &part);
  ts_sort_specials_offsets(job, &part, 1);
  ts_sort_specials_put(job, base, 0, job->n, &part);
}
