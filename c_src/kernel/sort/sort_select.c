/* One walk over a line: its keys are made in blocks, vectors pick those that do not exceed a bound, and the bound sinks
 * each time that more than 2k are left. In a long line a sample tells the first bound. */
#include "kernel/sort/sort_select.h"

#include "kernel/pick.h"
#include "kernel/sort/sort_lanes.h"

#include <string.h>

/* Elements whose keys are made together. */
#define BLOCK 1024
/* Elements between two checks of the cancel flag. */
#define CHECK 65536
/* So many records are sorted by insertion. */
#define FEW 32
/* Keys of a sample. Shorter lines have no sample. */
#define SAMPLE 256
#define SAMPLED 4096
/* Of so many of the first k, at least: of fewer the first block finds a bound. */
#define SAMPLED_K 64

int64_t ts_sort_select_room(int64_t k) { return 2 * k + BLOCK + TS_PICK_SLACK; }

void ts_sort_insert(uint64_t *records, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const uint64_t moved = records[i];
    int64_t at = i;
    for (; at > 0 && records[at - 1] > moved; at--) records[at] = records[at - 1];
    records[at] = moved;
  }
}

/* ---- the first k of records */

#define DRAWN 9 /* records that a pivot is chosen from */

/* About as many of n records are less than the pivot as of `k`. */
static uint64_t choose_pivot(const uint64_t *records, int64_t n, int64_t k, uint64_t *random) {
  uint64_t drawn[DRAWN];
  for (int i = 0; i < DRAWN; i++) drawn[i] = records[ts_sort_random(random) % n];
  ts_sort_insert(drawn, DRAWN);
  return drawn[k * DRAWN / n];
}

/* Puts the records less than the pivot in front; returns how many they are. */
static int64_t split(uint64_t *records, int64_t n, uint64_t pivot, uint64_t *scratch) {
  const ts_sort_split_fn fn = ts_sort_lanes_host()->splits[3].split;
  int64_t less = 0;
  if (fn) {
    less = fn(records, n, pivot, scratch);
    memcpy(records, scratch, (size_t)n * sizeof(*records));
    return less;
  }
  for (int64_t i = 0; i < n; i++) { /* no branch depends on a record */
    const uint64_t x = records[i];
    records[i] = records[less];
    records[less] = x;
    less += x < pivot;
  }
  return less;
}

static void partition(uint64_t *records, int64_t n, int64_t k, uint64_t *scratch) {
  uint64_t random = (uint64_t)n;
  int64_t low = 0, end = n;
  while (end - low > FEW) {
    const uint64_t pivot = choose_pivot(records + low, end - low, k - low, &random);
    int64_t less = split(records + low, end - low, pivot, scratch);
    if (less == 0) less = split(records + low, end - low, pivot + 1, scratch); /* the pivot itself */
    if (low + less == k) return;
    if (low + less > k)
      end = low + less;
    else
      low += less;
  }
  ts_sort_insert(records + low, end - low);
}

/* ---- a line */

typedef struct block {
  uint32_t keys[BLOCK], picked[BLOCK + TS_PICK_SLACK], places[BLOCK + TS_PICK_SLACK];
  uint16_t small[BLOCK]; /* keys of 8 or 16 bits, which are widened */
} block;

typedef struct selection {
  const ts_sort_job *job;
  const char *in; /* the line */
  uint64_t *records, *scratch;
  int64_t k, count;
  uint32_t bound; /* greater keys are not among the first k */
  bool over;      /* no other key is */
} selection;

/* Drops records that are not among the first k. A later element with the key of the last comes after it. */
static void trim(selection *s) {
  uint32_t last = 0;
  if (s->count < s->k) return;
  if (s->count > s->k) partition(s->records, s->count, s->k, s->scratch);
  s->count = s->k;
  for (int64_t i = 0; i < s->k; i++) {
    const uint32_t key = (uint32_t)(s->records[i] >> 32);
    last = key > last ? key : last;
  }
  s->over = last == 0;
  s->bound = last - 1;
}

static void make_keys(const selection *s, int64_t first, int64_t n, block *b) {
  const int width = s->job->width;
  const char *in = s->in + (first << width);
  uint64_t varying = 0;
  ts_sort_lanes_host()->keys[width](&s->job->key, in, n, width < 2 ? (void *)b->small : b->keys, 0, &varying);
  if (width == 0)
    for (int64_t i = 0; i < n; i++) b->keys[i] = ((const uint8_t *)b->small)[i];
  if (width == 1)
    for (int64_t i = 0; i < n; i++) b->keys[i] = b->small[i];
}

static void offer(selection *s, int64_t first, int64_t n) {
  const ts_pick *pick = ts_pick_host();
  block b;
  make_keys(s, first, n, &b);
  if (first == 0 && s->k <= n && s->bound == UINT32_MAX) s->bound = pick->bound32(b.keys, n, s->k);
  const int64_t count = pick->pick32(b.keys, n, 0, s->bound, b.picked, b.places);
  uint64_t *to = s->records + s->count;
  for (int64_t i = 0; i < count; i++) to[i] = (uint64_t)b.picked[i] << 32 | (uint64_t)(first + b.places[i]);
  s->count += count;
}

static bool walk(selection *s) {
  const int64_t n = s->job->n;
  s->count = 0;
  s->over = false;
  for (int64_t at = 0; at < n && !s->over; at += BLOCK) {
    if (at % CHECK == 0 && ts_cancelled(s->job->cancel)) return false;
    offer(s, at, n - at < BLOCK ? n - at : BLOCK);
    if (at == 0 || s->count > 2 * s->k) trim(s);
  }
  return true;
}

/* The least number that at least `k` of `size` numbers do not exceed, by its bits. */
static uint32_t quantile(const uint32_t *sample, int size, int k) {
  uint32_t bound = 0;
  for (int bit = 31; bit >= 0; bit--) {
    const uint32_t below = bound | ((UINT32_C(1) << bit) - 1);
    uint32_t count = 0;
    for (int i = 0; i < size; i++) count += sample[i] <= below;
    if ((int)count < k) bound |= UINT32_C(1) << bit;
  }
  return bound;
}

/* The margin is more than three deviations. */
uint32_t ts_sort_sample_of(const ts_sort_job *job, int64_t line, int64_t k, int size, int most) {
  const int64_t n = job->n;
  const int expected = (int)(size * k / n), shift = job->width == 3 ? 32 : 0;
  int deviation = 1;
  while (deviation * deviation < expected) deviation++;
  const int wanted = expected + 3 * deviation + 4;
  uint32_t sample[TS_SORT_MOST_SAMPLE];
  uint64_t random = (uint64_t)n;
  if (wanted > most) return UINT32_MAX;
  for (int i = 0; i < size; i++) {
    const int64_t at = ts_sort_random(&random) % n;
    sample[i] = (uint32_t)(ts_sort_key_at(job, &job->key, line * n + at) >> shift);
  }
  return quantile(sample, size, wanted);
}

bool ts_sort_is_sampled(int64_t n, int64_t k) { return n >= SAMPLED && k >= SAMPLED_K; }

uint32_t ts_sort_sample(const ts_sort_job *job, int64_t line, int64_t k) {
  if (!ts_sort_is_sampled(job->n, k)) return UINT32_MAX;
  return ts_sort_sample_of(job, line, k, SAMPLE, SAMPLE * 3 / 4);
}

bool ts_sort_select(const ts_sort_job *job, int64_t line, int64_t k, uint64_t *records, uint64_t *scratch) {
  selection s = {.job = job,
                 .in = (const char *)job->in + ((line * job->n) << job->width),
                 .records = records,
                 .scratch = scratch,
                 .k = k};
  s.bound = ts_sort_sample(job, line, k);
  const bool sampled = s.bound < UINT32_MAX;
  if (!walk(&s)) return false;
  if (sampled && s.count < k) {
    s.bound = UINT32_MAX;
    if (!walk(&s)) return false;
  }
  trim(&s);
  return true;
}
