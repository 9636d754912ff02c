/* Shared by the parts of sort.c: keys, and where the lines of a tensor are. */
#ifndef TS_KERNEL_SORT_INTERNAL_H
#define TS_KERNEL_SORT_INTERNAL_H

#include "base/cancel.h"
#include "kernel/sort/sort.h"
#include "tensor/pool.h"

/* Pseudorandom bits for samples and pivots, the same ones from each state: at most 31. */
static inline int64_t ts_sort_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)(*state >> 33);
}

/* What sorts that are estimated at `cost_ns` hardly exceed: the worst keys that are known take twice the time of random
 * ones. 0: unknown. */
static inline int64_t ts_sort_most_ns(int64_t cost_ns) { return cost_ns < INT64_MAX / 3 ? 3 * cost_ns : 0; }

/* Elements become unsigned keys of as many bits. NaN is the largest (the smallest when descending), -0 is +0:
 *   x = (x & zero_mask) == zero ? 0 : x;
 *   key = (x & magnitude) > limit ? nan : x ^ (x's sign bit is set ? negative : 0) ^ flip
 * One formula serves all types, as no integer has a NaN or -0. ts_sort_value_N(key) returns the element, unless it is
 * NaN or -0. */
#define TS_SORT_DEFINE_KEY(BITS)                                                                \
  static inline bool ts_sort_is_nan_##BITS(const ts_sort_key *s, uint##BITS##_t x) {            \
    return (x & (uint##BITS##_t)s->magnitude) > (uint##BITS##_t)s->limit;                       \
  }                                                                                             \
  static inline bool ts_sort_is_minus_zero_##BITS(const ts_sort_key *s, uint##BITS##_t x) {     \
    return (x & (uint##BITS##_t)s->zero_mask) == (uint##BITS##_t)s->zero;                       \
  }                                                                                             \
  static inline bool ts_sort_is_special_##BITS(const ts_sort_key *s, uint##BITS##_t x) {        \
    return ts_sort_is_nan_##BITS(s, x) || ts_sort_is_minus_zero_##BITS(s, x);                   \
  }                                                                                             \
  static inline uint##BITS##_t ts_sort_key_##BITS(const ts_sort_key *s, uint##BITS##_t x) {     \
    uint##BITS##_t negative = (uint##BITS##_t)(-(x >> (BITS - 1)) & s->negative);               \
    uint##BITS##_t key = (uint##BITS##_t)(x ^ negative ^ s->flip);                              \
    key = ts_sort_is_minus_zero_##BITS(s, x) ? (uint##BITS##_t)s->flip : key;                   \
    return ts_sort_is_nan_##BITS(s, x) ? (uint##BITS##_t)s->nan : key;                          \
  }                                                                                             \
  static inline uint##BITS##_t ts_sort_value_##BITS(const ts_sort_key *s, uint##BITS##_t key) { \
    uint##BITS##_t x = (uint##BITS##_t)(key ^ s->flip);                                         \
    return (uint##BITS##_t)(x ^ (-(x >> (BITS - 1)) & s->negative));                            \
  }
TS_SORT_DEFINE_KEY(8)
TS_SORT_DEFINE_KEY(16)
TS_SORT_DEFINE_KEY(32)
TS_SORT_DEFINE_KEY(64)

/* A run of a plan. */
typedef struct ts_sort_job {
  ts_sort_key key;
  const void *in;
  void *out;
  int64_t n, inner, lines; /* as in the plan */
  int width, index_size;
  const _Atomic bool *cancel;
} ts_sort_job;

/* A line's first element, counted from the tensor's. */
static inline int64_t ts_sort_line(const ts_sort_job *job, int64_t line) {
  return job->inner == 1 ? line * job->n : line / job->inner * job->n * job->inner + line % job->inner;
}

/* The key of the element at `at`, of any width. */
static inline uint64_t ts_sort_key_at(const ts_sort_job *job, const ts_sort_key *key, int64_t at) {
  switch (job->width) {
  case 0: return ts_sort_key_8(key, ((const uint8_t *)job->in)[at]);
  case 1: return ts_sort_key_16(key, ((const uint16_t *)job->in)[at]);
  case 2: return ts_sort_key_32(key, ((const uint32_t *)job->in)[at]);
  default: return ts_sort_key_64(key, ((const uint64_t *)job->in)[at]);
  }
}

/* Writes an index of `size` bytes as element `at`; high bits are cut. */
static inline void ts_sort_put_index(void *out, int64_t at, int size, uint64_t index) {
  switch (size) {
  case 1: ((uint8_t *)out)[at] = (uint8_t)index; break;
  case 2: ((uint16_t *)out)[at] = (uint16_t)index; break;
  case 4: ((uint32_t *)out)[at] = (uint32_t)index; break;
  default: ((uint64_t *)out)[at] = index; break;
  }
}

/* ---- zeros and NaNs (sort_special.c) */

/* Counts of a part of a line, then the offsets of its zeros and NaNs in the sorted line. */
typedef struct ts_sort_special {
  int64_t less; /* than zero, in the wanted order */
  int64_t zeros, nans;
} ts_sort_special;

/* After the values of a line with NaN or -0 were sorted by their keys: writes its zeros and NaNs again, with their
 * bits, in the operand's order. */
void ts_sort_specials(const ts_sort_job *job, int64_t line);

/* The same by parts of a line whose first element is `base`: counts of all parts become offsets, where each part
 * writes. */
void ts_sort_specials_count(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *counts);
void ts_sort_specials_offsets(const ts_sort_job *job, ts_sort_special *parts, int64_t count);
void ts_sort_specials_put(const ts_sort_job *job, int64_t base, int64_t begin, int64_t end, ts_sort_special *offsets);

#endif
