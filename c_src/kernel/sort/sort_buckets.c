/* Long lines of 32- and 64-bit values: a sample sort. Keys are moved to ordered buckets of about equal size. Many
 * buckets are sorted at once, one in each lane of a vector. A table gives a key's bucket. Its index is the key's cell,
 * the highest CELL_BITS that vary, with SUB_BITS more in cells with many keys (such as doubles of one exponent). The
 * table is made from a sample. A key that many elements have gets a bucket of its own. If a bucket is too large, the
 * line is sorted by radix instead. */
#include "kernel/sort/sort_buckets.h"

#define MEAN 2048     /* elements of a bucket, if that gives fewer than MOST */
#define MOST 512      /* target number of buckets: each is a stream of stores */
#define LONGEST 65536 /* elements of a bucket on average */
#define PER_BUCKET 32 /* elements of the sample */
#define CHECK 65536

#define CELL_BITS 12
#define CELLS (1 << CELL_BITS)
#define SUB_BITS 8

typedef struct sizes {
  int64_t aim, longest;
} sizes;

static sizes sizes_of(int64_t n) {
  int64_t aim = n / MEAN < MOST ? (n / MEAN + 15) / 16 * 16 : MOST;
  return (sizes){aim, 3 * (n / aim)};
}

/* An upper bound of the buckets: a bucket ends when it has its size, and before one of a single table entry. */
static int64_t most_buckets(int64_t aim) { return 2 * aim + 2; }
/* The table has an entry for each cell, and 2^SUB_BITS for a cell with MANY elements of the sample. */
#define MANY (PER_BUCKET / 2)
static int64_t most_entries(int64_t aim) { return CELLS + (aim * PER_BUCKET / MANY << SUB_BITS); }

bool ts_sort_buckets_suit(int width, int index_size, int64_t n) {
  return width >= 2 && !index_size && n >= 4 * MEAN && n <= (int64_t)MOST * LONGEST &&
         ts_sort_lanes_host() != &ts_sort_lanes_base;
}

int64_t ts_sort_buckets_longest(int64_t n) { return sizes_of(n).longest; }

/* The buckets, the counts of each chunk, the cells, the sample's counts, the table, the elements' buckets. */
int64_t ts_sort_buckets_workspace(int64_t n, int64_t chunks) {
  int64_t aim = sizes_of(n).aim, most = most_buckets(aim);
  return ts_pool_padded(most * (int64_t)sizeof(ts_sort_bucket) + chunks * most * 8 + CELLS * 4 + most_entries(aim) * 6 +
                        n * 2);
}

typedef struct buckets {
  const ts_sort_buckets_request *with;
  sizes sizes;
  int shift, sub_shift;
  uint32_t *cell;   /* its first entry << SUB_BITS | mask of the bits below the cell's that are added to that */
  uint16_t *table;  /* the bucket of each entry */
  uint16_t *ids;    /* the bucket of each element */
  uint32_t *sample; /* elements of each cell, later of each entry */
  int64_t entries;
  ts_sort_bucket *bucket;
  int64_t *counts;
  int64_t count, sorted; /* buckets; number of sorted buckets: they come first after they are moved */
  _Atomic bool stopped;
} buckets;

static uint64_t key_at(const buckets *b, int64_t i) {
  const ts_sort_buckets_request *with = b->with;
  return with->job->width == 3 ? ((const uint64_t *)with->keys)[i] : ((const uint32_t *)with->keys)[i];
}

static int64_t cell_of(const buckets *b, uint64_t key) { return (int64_t)(key >> b->shift & (CELLS - 1)); }

static int64_t entry_of(const buckets *b, uint64_t key) {
  uint32_t cell = b->cell[cell_of(b, key)];
  return (cell >> SUB_BITS) + (key >> b->sub_shift & cell & ((1 << SUB_BITS) - 1));
}

/* Counts the elements of the sample: a pseudorandom one from each stretch of the line, the same ones in each call. */
static void take_sample(buckets *b, int64_t (*where)(const buckets *b, uint64_t key)) {
  int64_t taken = b->sizes.aim * PER_BUCKET, stretch = b->with->job->n / taken;
  uint64_t random = 1;
  for (int64_t i = 0; i < taken; i++) {
    b->sample[where(b, key_at(b, i * stretch + ts_sort_random(&random) % stretch))]++;
  }
}

static void make_cells(buckets *b) {
  memset(b->sample, 0, CELLS * sizeof(*b->sample));
  take_sample(b, cell_of);
  for (int64_t cell = 0; cell < CELLS; cell++) {
    uint32_t sub = b->sample[cell] >= MANY ? (1U << (b->shift - b->sub_shift)) - 1 : 0;
    b->cell[cell] = (uint32_t)b->entries << SUB_BITS | sub;
    b->entries += sub + 1;
  }
}

static void make_table(buckets *b) {
  int64_t bucket = 0, filled = 0;
  memset(b->sample, 0, (size_t)b->entries * sizeof(*b->sample));
  take_sample(b, entry_of);
  for (int64_t entry = 0; entry < b->entries; entry++) {
    bool alone = b->sample[entry] >= PER_BUCKET;
    if (filled >= PER_BUCKET || (alone && filled)) bucket++, filled = 0;
    b->table[entry] = (uint16_t)bucket;
    filled += b->sample[entry];
  }
  b->count = bucket + 1;
}

/* ---- the phases, by chunks of the line */

/* Counting also notes each key's bucket for moving. */
#define DEFINE_PHASES(BITS)                                                                               \
  static void count_##BITS(const buckets *b, int64_t begin, int64_t end, int64_t *counts) {               \
    const uint##BITS##_t *keys = b->with->keys;                                                           \
    const uint32_t *cells = b->cell;                                                                      \
    const uint16_t *table = b->table;                                                                     \
    uint16_t *ids = b->ids;                                                                               \
    const int shift = b->shift, sub_shift = b->sub_shift;                                                 \
    for (int64_t i = begin; i < end; i++) {                                                               \
      uint32_t cell = cells[keys[i] >> shift & (CELLS - 1)];                                              \
      uint16_t id = table[(cell >> SUB_BITS) + (keys[i] >> sub_shift & cell & ((1 << SUB_BITS) - 1))];    \
      ids[i] = id;                                                                                        \
      counts[id]++;                                                                                       \
    }                                                                                                     \
  }                                                                                                       \
  static void move_##BITS(const buckets *b, int64_t begin, int64_t end, int64_t *offsets) {               \
    const uint##BITS##_t *keys = b->with->keys;                                                           \
    const uint16_t *ids = b->ids;                                                                         \
    uint##BITS##_t *to = b->with->moved;                                                                  \
    for (int64_t i = begin; i < end; i++) to[offsets[ids[i]]++] = keys[i];                                \
  }                                                                                                       \
  static bool all_equal_##BITS(const buckets *b, const ts_sort_bucket *one) {                             \
    const uint##BITS##_t *keys = (const uint##BITS##_t *)b->with->moved + one->first;                     \
    for (int64_t i = 1; i < one->length; i++)                                                             \
      if (keys[i] != keys[0]) return false;                                                               \
    return true;                                                                                          \
  }                                                                                                       \
  static void fill_##BITS(const buckets *b, const ts_sort_bucket *one) {                                  \
    const ts_sort_job *job = b->with->job;                                                                \
    uint##BITS##_t *out = (uint##BITS##_t *)job->out + b->with->line + one->first * job->inner;           \
    uint##BITS##_t key = ((const uint##BITS##_t *)b->with->moved)[one->first];                            \
    for (int64_t i = 0; i < one->length; i++) out[i * job->inner] = ts_sort_value_##BITS(&job->key, key); \
  }
DEFINE_PHASES(32)
DEFINE_PHASES(64)

static bool go_on(buckets *b) {
  if (ts_cancelled(b->with->job->cancel)) atomic_store_explicit(&b->stopped, true, memory_order_relaxed);
  return !atomic_load_explicit(&b->stopped, memory_order_relaxed);
}

typedef void (*part_fn)(const buckets *b, int64_t begin, int64_t end, int64_t *counts);

static void in_parts(buckets *b, int64_t chunk, part_fn fn) {
  int64_t size = (b->with->job->n + b->with->chunks - 1) / b->with->chunks, begin = chunk * size;
  int64_t end = begin + size < b->with->job->n ? begin + size : b->with->job->n;
  for (int64_t at = begin; at < end && go_on(b); at += CHECK)
    fn(b, at, end - at < CHECK ? end : at + CHECK, b->counts + chunk * b->count);
}

static void count_task(void *arg, int64_t chunk, int worker) {
  (void)worker;
  buckets *b = arg;
  in_parts(b, chunk, b->with->job->width == 3 ? count_64 : count_32);
}

static void move_task(void *arg, int64_t chunk, int worker) {
  (void)worker;
  buckets *b = arg;
  in_parts(b, chunk, b->with->job->width == 3 ? move_64 : move_32);
}

/* Turns the chunks' counts into offsets. */
static void set_offsets(buckets *b) {
  int64_t at = 0;
  for (int64_t i = 0; i < b->count; i++) {
    b->bucket[i].first = at;
    for (int64_t c = 0; c < b->with->chunks; c++) {
      int64_t *count = &b->counts[c * b->count + i], next = at + *count;
      *count = at;
      at = next;
    }
    b->bucket[i].length = at - b->bucket[i].first;
  }
}

/* ---- sorting the buckets */

/* Sorts the buckets by length, the longest first (Shell's method). A group takes as long as its longest bucket, so
 * groups have buckets of similar length. */
static void order_by_length(ts_sort_bucket *b, int64_t count) {
  for (int64_t gap = 364; gap > 0; gap /= 3)
    for (int64_t i = gap; i < count; i++) {
      ts_sort_bucket moved = b[i];
      int64_t at = i;
      for (; at >= gap && b[at - gap].length < moved.length; at -= gap) b[at] = b[at - gap];
      b[at] = moved;
    }
}

/* Buckets past the limit, which must have one key each, come first. False when one has several keys. */
static bool order(buckets *b) {
  order_by_length(b->bucket, b->count);
  int64_t i = 0;
  for (; i < b->count && b->bucket[i].length > b->sizes.longest; i++)
    if (!(b->with->job->width == 3 ? all_equal_64 : all_equal_32)(b, &b->bucket[i])) return false;
  b->sorted = i;
  while (b->count > i && b->bucket[b->count - 1].length == 0) b->count--;
  return true;
}

static void sort_task(void *arg, int64_t task, int worker) {
  buckets *b = arg;
  const ts_sort_buckets_request *with = b->with;
  const ts_sort_lanes *lanes = ts_sort_lanes_host();
  int width = with->job->width, most = lanes->values[width].lanes;
  if (!go_on(b)) return;
  if (task < b->sorted) {
    (width == 3 ? fill_64 : fill_32)(b, &b->bucket[task]);
    return;
  }
  int64_t first = b->sorted + (task - b->sorted) * most, left = b->count - first;
  lanes->buckets[width](with->job, with->moved, with->line, b->bucket + first, left < most ? (int)left : most,
                        with->thread_workspace + worker * with->thread_bytes);
}

static void sort_them(buckets *b) {
  int64_t most = ts_sort_lanes_host()->values[b->with->job->width].lanes;
  int64_t groups = (b->count - b->sorted + most - 1) / most;
  ts_parallel_run(b->with->parallel, b->sorted + groups, sort_task, b);
}

static void lay_out(buckets *b, char *memory) {
  int64_t most = most_buckets(b->sizes.aim);
  b->bucket = (ts_sort_bucket *)memory;
  b->counts = (int64_t *)(b->bucket + most);
  b->cell = (uint32_t *)(b->counts + b->with->chunks * most);
  b->sample = b->cell + CELLS;
  b->table = (uint16_t *)(b->sample + most_entries(b->sizes.aim));
  b->ids = b->table + most_entries(b->sizes.aim);
}

ts_sort_outcome ts_sort_buckets(const ts_sort_buckets_request *with) {
  buckets b = {.with = with, .sizes = sizes_of(with->job->n)};
  int high = with->varying ? 64 - __builtin_clzll(with->varying) : 0;
  if (high == 0) return TS_SORT_DECLINED;
  b.shift = high > CELL_BITS ? high - CELL_BITS : 0;
  b.sub_shift = b.shift > SUB_BITS ? b.shift - SUB_BITS : 0;
  lay_out(&b, with->workspace);
  make_cells(&b);
  make_table(&b);
  memset(b.counts, 0, (size_t)(with->chunks * b.count) * sizeof(*b.counts));
  ts_parallel_run(with->parallel, with->chunks, count_task, &b);
  if (b.stopped) return TS_SORT_CANCELLED;
  set_offsets(&b);
  ts_parallel_run(with->parallel, with->chunks, move_task, &b);
  if (b.stopped) return TS_SORT_CANCELLED;
  if (!order(&b)) return TS_SORT_DECLINED;
  sort_them(&b);
  return b.stopped ? TS_SORT_CANCELLED : TS_SORT_DONE;
}
