/* The first k of a line in the wanted order, as records: the key of an element above its index. No two records are
 * equal, and their order is that of keys, then of indices. For keys of at most 32 bits. */
#ifndef TS_KERNEL_SORT_SELECT_H
#define TS_KERNEL_SORT_SELECT_H

#include "kernel/sort/sort_internal.h"

/* Records that a selection of k needs room for; twice, as it moves some of them through a scratch. */
int64_t ts_sort_select_room(int64_t k);

/* Puts the first k of a line to the front of `records`, in any order. 0 < k <= n. False: it was cancelled. */
bool ts_sort_select(const ts_sort_job *job, int64_t line, int64_t k, uint64_t *records, uint64_t *scratch);

/* Whether lines of n elements have a sample that tells a bound of the first k. */
bool ts_sort_is_sampled(int64_t n, int64_t k);
/* A bound that k keys of the line do not exceed, most probably, of a sample; of keys of 64 bits the upper half. The
 * greatest number where there is none. */
uint32_t ts_sort_sample(const ts_sort_job *job, int64_t line, int64_t k);
/* The same of `size` keys, TS_SORT_MOST_SAMPLE at most, for lines of any length; none where more than `most` of these
 * would have to be below it. */
enum { TS_SORT_MOST_SAMPLE = 512 };
uint32_t ts_sort_sample_of(const ts_sort_job *job, int64_t line, int64_t k, int size, int most);

/* Sorts a few records. */
void ts_sort_insert(uint64_t *records, int64_t n);

#endif
