/* Short lines are sorted many at once, one in each lane of a vector, by a network of comparators: no branch depends on
 * the data. The code is the same for every instruction set (sort_lanes_body.h), compiled once for each. */
#ifndef TS_KERNEL_SORT_LANES_H
#define TS_KERNEL_SORT_LANES_H

#include "kernel/sort/sort_internal.h"

/* Sorts lines first .. first+count-1, count <= lanes, through a workspace of ts_sort_lanes_padded(n) vectors, aligned
 * to 64 bytes. Returns whether one of them holds NaN or -0, whose bits ts_sort_specials must then restore. */
typedef bool (*ts_sort_lanes_fn)(const ts_sort_job *job, int64_t first, int count, void *workspace);

typedef struct ts_sort_lanes_row {
  ts_sort_lanes_fn fn;
  int lanes;     /* lines of a group */
  int record;    /* bytes of a lane: a key, or a key and an index */
  int64_t limit; /* the longest line; at most 65536, as some indices have 16 bits */
  float ns;      /* estimated, of a comparator of two vectors */
} ts_sort_lanes_row;

/* Part of a line: its keys are neighbours, and its sorted values belong at the same indices of the result. */
typedef struct ts_sort_bucket {
  int64_t first, length;
} ts_sort_bucket;

/* Sorts up to `lanes` buckets, the longest first, each in a lane. `keys` may be read past the end of a bucket by as
 * many as the longest has, and 64 bytes. The result's line begins at element `line`. Workspace as above, for the
 * longest. */
typedef void (*ts_sort_buckets_fn)(const ts_sort_job *job, const void *keys, int64_t line,
                                   const ts_sort_bucket *buckets, int count, void *workspace);

/* Keys of n elements. ORs their differences from the key `first`, and returns whether any is NaN or -0. */
typedef bool (*ts_sort_keys_fn)(const ts_sort_key *key, const void *in, int64_t n, void *keys, uint64_t first,
                                uint64_t *varying);

/* Moves the keys that are less than the pivot to the front of `to`, the others behind them, and returns the former's
 * count. */
typedef int64_t (*ts_sort_split_fn)(const void *keys, int64_t n, uint64_t pivot, void *to);
/* `count` - 1 pivots, ascending: they cut the keys into parts of about equal size, estimated from a sample of >= count
 * rows of vectors, which is overwritten. It is aligned to 64 bytes. */
typedef void (*ts_sort_pivots_fn)(void *sample, int64_t rows, int count, uint64_t *pivots);

typedef struct ts_sort_splits {
  ts_sort_split_fn split; /* NULL: this instruction set has no fast one */
  ts_sort_pivots_fn pivots;
  float ns; /* estimated, of a key of a line that is sorted by parts, in the same measure as of comparators */
} ts_sort_splits;

/* The ranks of n keys, which are changed: how many come before each in sorted order, equal ones in their order. Both
 * arrays may be written up to a whole vector. */
typedef void (*ts_sort_ranks_fn)(void *keys, int64_t n, void *ranks);

/* Copies the zeros and the NaNs of n neighbours to two places, and counts them and those that are less than zero. Both
 * places may be written 64 bytes further. */
typedef ts_sort_special (*ts_sort_find_fn)(const ts_sort_key *key, const void *in, int64_t n, void *zeros, void *nans);

/* By log2 of the element's bytes; buckets and splits for 4 and 8 bytes. */
typedef struct ts_sort_lanes {
  ts_sort_lanes_row values[4], indices[4];
  ts_sort_buckets_fn buckets[4];
  ts_sort_keys_fn keys[4];
  ts_sort_splits splits[4];
  ts_sort_ranks_fn ranks[2]; /* of keys of 32 and of 64 bits */
  ts_sort_find_fn specials[4];
  int vector; /* bytes */
} ts_sort_lanes;

/* The functions for the instruction set of the host. */
const ts_sort_lanes *ts_sort_lanes_host(void);

extern const ts_sort_lanes ts_sort_lanes_base;
#if defined(__x86_64__)
extern const ts_sort_lanes ts_sort_lanes_avx2, ts_sort_lanes_avx512;
#endif

/* Vectors that n elements take: they are padded to whole blocks of the network. */
static inline int64_t ts_sort_lanes_padded(int64_t n) {
  if (n > 8) return (n + 15) / 16 * 16;
  return n > 4 ? 8 : n > 2 ? 4 : 2;
}

#endif
