/* The choice of a collective's algorithm, with the measurement or the reason for each threshold. */
#include "group/algorithms.h"

/* Up to this number of bytes, of all operands and results together, each rank adds all terms: a second exchange takes
 * longer. `mpi_exchanges LIBRARY sizes` (test/mpi/exchanges.c) measures both algorithms in turns, with the additions.
 * The machine was a Xeon with 2 CPUs, and other work kept both busy. Open MPI 4.1.4 moved the bytes through shared
 * memory. N is the bytes of an operand, so `bytes` is 2 N.
 *
 *             4 ranks, before              2 ranks, load 23             4 ranks, load 22
 *   N         everywhere    shares         everywhere    shares         everywhere     shares
 *   8 KB      26 (87)       55 (169)       80 (179)      265 (420)      159 (3987)     2524 (9343)
 *   64 KB                                  32 (238)      93 (497)       256 (4189)     3562 (9946)
 *   256 KB                                 121 (426)     159 (625)      584 (5120)     3601 (9644)
 *   1 MB                                   296 (571)     368 (459)      2509 (7210)    6190 (9715)
 *
 * Microseconds: the best turn of 600 (300 in the first column, 100 from 128 KB on), and the most of the best quarter.
 * So `everywhere` wins far beyond the limit where ranks share a busy machine: a rank waits once for the slowest rank.
 * The limit is lower because `everywhere` sends R / 2 times the bytes of `shares`. With 8 ranks on a network of 1
 * Gbit/s and N of 8 KB these bytes take 0.35 ms, about as long as two exchanges of headers. The 0.35 ms are reasoned,
 * not measured. */
enum { SHORT_BYTES = 16 << 10 };

/* All members' operands and results together. By `everywhere` a rank gets half of these bytes, by `shares` less than
 * SHORT_BYTES. This limit is reasoned, not measured: with operands of 8 KB only 256 members reach the limit, and no
 * test has exchanges of more than 72 processes. At 1 GB/s half of the limit takes 2 ms. The exchange that `everywhere`
 * saves takes nearly as long: a rank gets a header from each other rank, 255 messages of some microseconds. */
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
