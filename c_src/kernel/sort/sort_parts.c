/* Long lines of 32- and 64-bit values where vectors can be compressed. Keys are split by pivots from samples until
 * parts are short. Many parts are sorted at once, one in each lane of a vector. To split a vector takes a few cycles,
 * much less than to move its keys one by one. Threads that share a line first cut chunks of it by the same pivots; then
 * each collects a part from all chunks and sorts it in its cache. */
#include "kernel/sort/sort_parts.h"

#include <string.h>

#define SHARED 64          /* parts of a line that threads share, at most */
#define SHARED_KEYS 8192   /* of a shared part, at least: groups of short parts have to be full */
#define AT_ONCE 16         /* parts that a longer part is cut into */
#define LONGEST 512        /* keys of a part that is sorted in a lane, at most */
#define LIST 512           /* short parts that wait until they are sorted together */
#define CHUNK_BYTES 65536  /* of a shared line: the keys set aside and the chunk fit into the second cache */
#define BLOCK 65536        /* keys that are split through the scratch */
#define SAMPLE 256         /* keys that pivots are estimated from */
#define SHARED_SAMPLE 2048 /* the same for the parts that threads share */
#define GAP (LONGEST + 16) /* keys that are read past a part */
#define SHORTEST 129       /* lines: longer than those that are sorted by ranks */
#define MOST (INT64_C(1) << 25)

typedef struct parts {
  const ts_sort_parts_request *with;
  const ts_sort_lanes *lanes;
  const ts_sort_splits *fns;
  int width, shared;
  int64_t n, chunk, chunks;
  int64_t *starts; /* of each chunk's parts, and its end */
  uint64_t pivots[SHARED];
  _Atomic bool stopped;
} parts;

/* The state of a worker. Keys are counted from the first of the line. */
typedef struct crew {
  parts *of;
  char *keys;
  char *network, *scratch, *sample;
  ts_sort_bucket *list, *ordered;
  int64_t count;
} crew;

bool ts_sort_parts_suit(int width, int index_size, int64_t n) {
  return !index_size && n >= SHORTEST && n <= MOST && ts_sort_lanes_host()->splits[width].split;
}

int64_t ts_sort_parts_gaps(void) { return (SHARED + 1) * GAP; }

/* At least 8 chunks, of at most CHUNK_BYTES. */
static int64_t chunk_of(int width, int64_t n) {
  const int64_t most = CHUNK_BYTES >> width;
  return n < 8 * most ? (n + 7) / 8 : most;
}
static int64_t chunks_of(int width, int64_t n) {
  const int64_t chunk = chunk_of(width, n);
  return (n + chunk - 1) / chunk;
}

int64_t ts_sort_parts_workspace(int width, int64_t n) {
  return chunks_of(width, n) * (SHARED + 1) * (int64_t)sizeof(int64_t);
}

static int64_t network_bytes(void) { return LONGEST * (int64_t)ts_sort_lanes_host()->vector; }
/* A multiple of 16 keys, so that what follows is aligned. */
static int64_t scratch_bytes(int width, int64_t n) { return ((n < BLOCK ? (n + 15) / 16 * 16 : BLOCK) + 16) << width; }

int64_t ts_sort_parts_thread(int width, int64_t n) {
  return network_bytes() + scratch_bytes(width, n) + (SHARED_SAMPLE << width) +
         2 * LIST * (int64_t)sizeof(ts_sort_bucket);
}

static crew crew_of(parts *p, int worker, void *keys) {
  char *at = p->with->thread_workspace + worker * p->with->thread_bytes;
  crew c = {.of = p, .keys = keys, .network = at, .scratch = at + network_bytes()};
  c.sample = c.scratch + scratch_bytes(p->width, p->n);
  c.list = (ts_sort_bucket *)(c.sample + (SHARED_SAMPLE << p->width));
  c.ordered = c.list + LIST;
  return c;
}

static bool go_on(parts *p) {
  if (ts_cancelled(p->with->job->cancel)) atomic_store_explicit(&p->stopped, true, memory_order_relaxed);
  return !atomic_load_explicit(&p->stopped, memory_order_relaxed);
}

static char *key_at(const crew *c, int64_t i) { return c->keys + (i << c->of->width); }

static uint64_t key(const crew *c, int64_t i) {
  uint64_t wide = 0;
  memcpy(&wide, key_at(c, i), (size_t)1 << c->of->width);
  return wide;
}

/* ---- splitting */

static int64_t split(const crew *c, const char *from, int64_t n, uint64_t pivot, char *to) {
  return c->of->fns->split(from, n, pivot, to);
}

static void exchange(const crew *c, int64_t a, int64_t b, int64_t n) {
  memcpy(c->scratch, key_at(c, a), (size_t)(n << c->of->width));
  memcpy(key_at(c, a), key_at(c, b), (size_t)(n << c->of->width));
  memcpy(key_at(c, b), c->scratch, (size_t)(n << c->of->width));
}

/* In place, any number of keys. Of each block, the lesser keys change places with greater ones of the blocks before. */
static int64_t split_in_place(const crew *c, int64_t first, int64_t n, uint64_t pivot) {
  int64_t low = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t size = n - at < BLOCK ? n - at : BLOCK;
    const int64_t count = split(c, key_at(c, first + at), size, pivot, c->scratch);
    const int64_t moved = count < at - low ? count : at - low;
    memcpy(key_at(c, first + at), c->scratch, (size_t)(size << c->of->width));
    exchange(c, first + low, first + at + count - moved, moved);
    low += count;
  }
  return low;
}

/* Into four parts, through the scratch. */
static void cut_in_four(const crew *c, const uint64_t *pivots, int64_t *starts, int step) {
  char *keys = key_at(c, starts[0]), *to = c->scratch;
  const int64_t n = starts[4 * step] - starts[0], low = split(c, keys, n, pivots[2 * step - 1], to);
  const int width = c->of->width;
  starts[2 * step] = starts[0] + low;
  starts[step] = starts[0] + split(c, to, low, pivots[step - 1], keys);
  starts[3 * step] =
      starts[2 * step] + split(c, to + (low << width), n - low, pivots[3 * step - 1], keys + (low << width));
}

static void cut_long(const crew *c, const uint64_t *pivots, int64_t *starts, int step) {
  for (int size = 4 * step; size > step; size /= 2)
    for (int i = 0; i < 4 * step; i += size)
      starts[i + size / 2] =
          starts[i] + split_in_place(c, starts[i], starts[i + size] - starts[i], pivots[i + size / 2 - 1]);
}

/* Cuts into `count` parts, a power of four. starts[0] and starts[count] say where the keys are. Depth first, so that
 * most of it is done in the first cache. */
static void cut(const crew *c, const uint64_t *pivots, int count, int64_t *starts) {
  const int step = count / 4;
  (starts[count] - starts[0] <= BLOCK ? cut_in_four : cut_long)(c, pivots, starts, step);
  for (int i = 0; i < count && step > 1; i += step) cut(c, pivots + i, step, starts + i);
}

/* ---- pivots */

/* Where a row of a sample begins: a pseudorandom index in its share of the keys, the same in each call. Shares that are
 * shorter than a row overlap. */
static int64_t row_at(int64_t row, int64_t rows, int64_t n, int64_t lanes) {
  const int64_t share = n / rows;
  const uint64_t random = (uint64_t)(row + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
  const int64_t at = row * share + (share > lanes ? (int64_t)(random * (uint64_t)(share - lanes) >> 32) : 0);
  return at + lanes <= n ? at : n - lanes;
}

static void sample_pivots(const crew *c, int64_t first, int64_t n, int count, uint64_t *pivots) {
  const int width = c->of->width, lanes = c->of->lanes->values[width].lanes;
  const int64_t rows = SAMPLE / lanes;
  for (int64_t r = 0; r < rows; r++)
    memcpy(c->sample + (r * lanes << width), key_at(c, first + row_at(r, rows, n, lanes)), (size_t)lanes << width);
  c->of->fns->pivots(c->sample, rows, count, pivots);
}

/* The same before the line's keys are made: the sample has keys already. */
static void shared_pivots(const crew *c) {
  parts *p = c->of;
  const int lanes = p->lanes->values[p->width].lanes;
  const int64_t rows = SHARED_SAMPLE / SHARED * p->shared / lanes;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t at = row_at(r, rows, p->n, lanes);
    p->with->make(p->with->arg, at, at + lanes);
    memcpy(c->sample + (r * lanes << p->width), key_at(c, at), (size_t)lanes << p->width);
  }
  p->fns->pivots(c->sample, rows, p->shared, p->pivots);
}

/* ---- short parts */

/* The longest first: a group of parts takes as long as its longest, so groups have parts of similar length. */
static void order_by_length(crew *c) {
  int16_t at[LONGEST + 2] = {0};
  for (int64_t i = 0; i < c->count; i++) at[LONGEST - c->list[i].length + 1]++;
  for (int64_t i = 1; i <= LONGEST; i++) at[i] = (int16_t)(at[i] + at[i - 1]);
  for (int64_t i = 0; i < c->count; i++) c->ordered[at[LONGEST - c->list[i].length]++] = c->list[i];
}

/* Lines of the result arrive while the group before is sorted. */
static void fetch_results(const crew *c, int64_t at) {
  const ts_sort_job *job = c->of->with->job;
  const int most = c->of->lanes->values[c->of->width].lanes;
  for (int64_t i = at; job->inner == 1 && i < c->count && i < at + most; i++) {
    const int64_t first = c->of->with->line + c->ordered[i].first, end = first + c->ordered[i].length;
    const char *out = job->out;
    for (int64_t byte = first << c->of->width; byte < end << c->of->width; byte += 64)
      __builtin_prefetch(out + byte, 1);
  }
}

static void sort_list(crew *c) {
  const parts *p = c->of;
  const int most = p->lanes->values[p->width].lanes;
  order_by_length(c);
  for (int64_t at = 0; at < c->count; at += most) {
    const int64_t left = c->count - at;
    fetch_results(c, at + most);
    p->lanes->buckets[p->width](p->with->job, c->keys, p->with->line, c->ordered + at, left < most ? (int)left : most,
                                c->network);
  }
  c->count = 0;
}

static void note(crew *c, int64_t first, int64_t n) {
  if (n == 0) return;
  if (c->count == LIST) sort_list(c);
  c->list[c->count++] = (ts_sort_bucket){first, n};
}

/* ---- long parts */

#define DEFINE_PARTS(BITS)                                                                               \
  static void fill_##BITS(const crew *c, int64_t first, int64_t n) {                                     \
    const ts_sort_job *job = c->of->with->job;                                                           \
    uint##BITS##_t *out = (uint##BITS##_t *)job->out + c->of->with->line + first * job->inner;           \
    const uint##BITS##_t value = ts_sort_value_##BITS(&job->key, (uint##BITS##_t)key(c, first));         \
    for (int64_t i = 0; i < n; i++) out[i * job->inner] = value;                                         \
  }                                                                                                      \
  static void range_##BITS(const uint##BITS##_t *keys, int64_t n, uint64_t *least, uint64_t *greatest) { \
    uint##BITS##_t low = keys[0], high = keys[0];                                                        \
    for (int64_t i = 1; i < n; i++) {                                                                    \
      low = keys[i] < low ? keys[i] : low;                                                               \
      high = keys[i] > high ? keys[i] : high;                                                            \
    }                                                                                                    \
    *least = low, *greatest = high;                                                                      \
  }
DEFINE_PARTS(32)
DEFINE_PARTS(64)

static void fill(const crew *c, int64_t first, int64_t n) { (c->of->width == 3 ? fill_64 : fill_32)(c, first, n); }

static void sort_part(crew *c, int64_t first, int64_t n, int failures);

/* Parts that stay large have many equal keys, or pivots failed them: they are split at the middle of their range, every
 * other time. */
static void sort_parts(crew *c, const int64_t *starts, int count, int failures) {
  const int64_t n = starts[count] - starts[0];
  for (int i = 0; i < count; i++) {
    const int64_t part = starts[i + 1] - starts[i];
    sort_part(c, starts[i], part, part > n - n / 4 ? failures + 1 : 0);
  }
}

static void sort_by_middle(crew *c, int64_t first, int64_t n, int failures) {
  uint64_t least, greatest;
  if (c->of->width == 3)
    range_64((const uint64_t *)key_at(c, first), n, &least, &greatest);
  else
    range_32((const uint32_t *)key_at(c, first), n, &least, &greatest);
  if (least == greatest) {
    fill(c, first, n);
    return;
  }
  const int64_t less = split_in_place(c, first, n, least + (greatest - least) / 2 + 1);
  const int64_t starts[] = {first, first + less, first + n};
  sort_parts(c, starts, 2, failures);
}

/* Splits off a frequent key, and sorts the keys below and above it. */
static void sort_by_key(crew *c, int64_t first, int64_t n, uint64_t equal, int failures) {
  const int64_t less = split_in_place(c, first, n, equal);
  const uint64_t most = ~UINT64_C(0) >> (64 - (8 << c->of->width));
  const int64_t alike = equal == most ? n - less : split_in_place(c, first + less, n - less, equal + 1);
  const int64_t greater = n - less - alike;
  if (alike) fill(c, first + less, alike);
  const int next = less > n - n / 4 || greater > n - n / 4 ? failures + 1 : 0;
  sort_part(c, first, less, next);
  sort_part(c, first + less + alike, greater, next);
}

/* Cuts into `count` parts, at most AT_ONCE. */
static void cut_part(crew *c, int64_t first, int64_t n, int count, int failures) {
  uint64_t pivots[AT_ONCE];
  int64_t starts[AT_ONCE + 1];
  if (!go_on(c->of)) return;
  if (failures > 1 && failures % 2 == 0) {
    sort_by_middle(c, first, n, failures);
    return;
  }
  sample_pivots(c, first, n, count, pivots);
  const uint64_t middle = pivots[count / 2 - 1];
  if (failures || pivots[0] == pivots[count - 2]) {
    sort_by_key(c, first, n, middle, failures);
    return;
  }
  starts[0] = first, starts[count] = first + n;
  cut(c, pivots, count, starts);
  sort_parts(c, starts, count, failures);
}

static void sort_part(crew *c, int64_t first, int64_t n, int failures) {
  if (n <= LONGEST)
    note(c, first, n);
  else
    cut_part(c, first, n, n > 2 * LONGEST ? AT_ONCE : 4, failures);
}

/* ---- a line that threads share */

static void cut_task(void *arg, int64_t chunk, int worker) {
  parts *p = arg;
  const crew c = crew_of(p, worker, p->with->keys);
  const int64_t begin = chunk * p->chunk, end = begin + p->chunk < p->n ? begin + p->chunk : p->n;
  int64_t *starts = p->starts + chunk * (SHARED + 1);
  if (!go_on(p)) return;
  p->with->make(p->with->arg, begin, end);
  starts[0] = begin, starts[p->shared] = end;
  cut(&c, p->pivots, p->shared, starts);
}

static void fetch(const parts *p, int64_t begin, int64_t end) {
  const char *keys = p->with->keys;
  for (int64_t at = begin << p->width; at < end << p->width; at += 64) __builtin_prefetch(keys + at);
}

/* Collects a part from all chunks. */
static int64_t collect(const parts *p, int64_t part, char *to) {
  int64_t n = 0;
  for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
    const int64_t *start = p->starts + chunk * (SHARED + 1) + part, count = start[1] - start[0];
    if (chunk + 1 < p->chunks) fetch(p, start[SHARED + 1], start[SHARED + 2]);
    memcpy(to + (n << p->width), (const char *)p->with->keys + (start[0] << p->width), (size_t)(count << p->width));
    n += count;
  }
  return n;
}

static void part_task(void *arg, int64_t part, int worker) {
  parts *p = arg;
  /* Others write the next part while keys past the end of this one are read, so gaps are between them. */
  crew c = crew_of(p, worker, (char *)p->with->moved + (part * GAP << p->width));
  int64_t first = 0;
  if (!go_on(p)) return;
  for (int64_t chunk = 0; chunk < p->chunks; chunk++)
    first += p->starts[chunk * (SHARED + 1) + part] - p->starts[chunk * (SHARED + 1)];
  sort_part(&c, first, collect(p, part, key_at(&c, first)), 0);
  sort_list(&c);
}

bool ts_sort_parts(const ts_sort_parts_request *with) {
  const ts_sort_lanes *lanes = ts_sort_lanes_host();
  const int width = with->job->width;
  parts p = {.with = with,
             .lanes = lanes,
             .fns = &lanes->splits[width],
             .width = width,
             .shared = with->job->n < SHARED * SHARED_KEYS ? SHARED / 4 : SHARED,
             .n = with->job->n,
             .chunk = chunk_of(width, with->job->n),
             .chunks = chunks_of(width, with->job->n),
             .starts = with->workspace};
  crew c = crew_of(&p, 0, with->keys);
  if (with->split) {
    shared_pivots(&c);
    ts_parallel_run(with->parallel, p.chunks, cut_task, &p);
    if (!p.stopped) ts_parallel_run(with->parallel, p.shared, part_task, &p);
  } else {
    with->make(with->arg, 0, p.n);
    cut_part(&c, 0, p.n, AT_ONCE, 0); /* also of a short line, since a part is a lane */
    sort_list(&c);
  }
  return !p.stopped;
}
