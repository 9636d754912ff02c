/* The choice of a collective's algorithm. Each threshold is explained by a measurement. */
#include "group/algorithms.h"

/* Up to here, for all operands and results together, each rank adds everything: a second exchange takes longer. On 4
 * ranks of a machine with 2 busy cores an exchange of 8 KB with each rank takes 26 us (best of 300; a quarter of them
 * take up to 87 us), two of a quarter of that take 55 us (169 us). */
enum { SHORT_BYTES = 16 << 10 };

/* All members' operands and results together. By `everywhere` a rank gets half of them, by `shares` less than
 * SHORT_BYTES. At 1 GB/s this limit is 2 ms. 256 members, the most that the first threshold was ever used with,
 * stay below it. No more than 72 processes have exchanged in a test. */
enum { SHORT_BYTES_OF_ALL = 4 << 20 };

static bool is_short(const ts_collective *c) {
  return c->bytes <= SHORT_BYTES && c->bytes * c->size <= SHORT_BYTES_OF_ALL;
}

static bool each_has_hosts(const ts_collective *c, int32_t ranks, const int32_t *hosts) {
  for (int32_t number = 0; number < c->partitions / c->size; number++)
    if (ts_spread_per_host(c, number, ranks, hosts) == 0) return false;
  return true;
}

const ts_algorithm *ts_algorithm_select(const ts_collective *c, int32_t ranks, const int32_t *hosts) {
  if (c->code == TS_OP_REDUCE_SCATTER) return &ts_algorithms[TS_ALGORITHM_SCATTER];
  if (!ts_collective_is_all_reduce(c->code)) return &ts_algorithms[TS_ALGORITHM_MOVE];
  if (is_short(c)) return &ts_algorithms[TS_ALGORITHM_EVERYWHERE];
  /* Through a cable of 10 Mbit/s and 20 ms between two hosts with 2 ranks each, 8.8 MB: 9.4 MB pass each way by
   * `hosts`, more than 17.6 MB by `shares`. */
  if (hosts && each_has_hosts(c, ranks, hosts)) return &ts_algorithms[TS_ALGORITHM_HOSTS];
  return &ts_algorithms[TS_ALGORITHM_SHARES];
}
