#include "kernel/sort/sort_short.h"

#include "kernel/sort/sort_lanes.h"

#include <string.h>

/* Bytes behind the keys, for whole vectors. */
#define SLACK 64

typedef union numbers {
  uint16_t u16[TS_SORT_SHORT];
  uint32_t u32[TS_SORT_SHORT + SLACK / 4];
  uint64_t u64[TS_SORT_SHORT + SLACK / 8];
} numbers __attribute__((aligned(64)));

/* The keys of the line that begins at `in`, at least of 32 bits. */
static void make_keys(const ts_sort_job *job, const void *in, numbers *out) {
  uint64_t varying = 0;
  numbers narrow;
  ts_sort_lanes_host()->keys[job->width](&job->key, in, job->n, job->width < 2 ? &narrow : out, 0, &varying);
  for (int64_t i = 0; job->width == 1 && i < job->n; i++) out->u32[i] = narrow.u16[i];
}

static int64_t rank_at(const ts_sort_job *job, const numbers *ranks, int64_t i) {
  return job->width == 3 ? (int64_t)ranks->u64[i] : (int64_t)ranks->u32[i];
}

static void put_indices(const ts_sort_job *job, int64_t line, const numbers *ranks) {
  for (int64_t i = 0; i < job->n; i++)
    ts_sort_put_index(job->out, line + rank_at(job, ranks, i), job->index_size, (uint64_t)i);
}

/* The elements themselves: equal ones stay in order, so zeros and NaNs have their bits. */
static void put_values(const ts_sort_job *job, int64_t line, const numbers *ranks) {
  for (int64_t i = 0; i < job->n; i++) {
    const int64_t from = line + i, to = line + rank_at(job, ranks, i);
    switch (job->width) {
    case 1: ((uint16_t *)job->out)[to] = ((const uint16_t *)job->in)[from]; break;
    case 2: ((uint32_t *)job->out)[to] = ((const uint32_t *)job->in)[from]; break;
    default: ((uint64_t *)job->out)[to] = ((const uint64_t *)job->in)[from]; break;
    }
  }
}

void ts_sort_short(const ts_sort_job *job, int64_t number) {
  const int64_t line = ts_sort_line(job, number);
  numbers keys, ranks;
  make_keys(job, (const char *)job->in + (line << job->width), &keys);
  ts_sort_lanes_host()->ranks[job->width == 3](&keys, job->n, &ranks);
  (job->index_size ? put_indices : put_values)(job, line, &ranks);
}

double ts_sort_short_ns(int width, int64_t n) {
  const int64_t lanes = ts_sort_lanes_host()->vector >> (width < 2 ? 2 : width);
  const int64_t vectors = (n + lanes - 1) / lanes;
  return 60 + (double)n * (1 + 0.5 * (double)vectors);
}
