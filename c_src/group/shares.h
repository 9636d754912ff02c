/* The blocks that the ranks of a job send to each other for a collective, and their use. All ranks compute the same
 * lists from the collective and the number of ranks, so blocks need no description. Pure functions.
 *
 * Rank r of R has the partitions [r P / R, (r + 1) P / R). In round 0 a rank gets the bytes that its partitions read
 * and other ranks have. A long all_reduce is cut into a share for each rank of the group. In round 0 a rank gets the
 * terms of its share, and sums them in the tree over all members' indices; in round 1 it gets the other shares' sums.
 * Where the members of each rank are a block of that tree, a rank combines its terms before it sends them. So no bit
 * depends on R. */
#ifndef TS_GROUP_SHARES_H
#define TS_GROUP_SHARES_H

#include "group/collective.h"

typedef struct ts_shares {
  const ts_collective *collective;
  int32_t rank, ranks;
} ts_shares;

/* True when no group has members on two ranks: then nothing is sent. */
bool ts_shares_are_local(const ts_shares *s);
int32_t ts_shares_rounds(const ts_shares *s); /* 1 or 2 */
/* How many bytes this rank sends to each rank, and gets from it. */
void ts_shares_count(const ts_shares *s, int32_t round, int64_t *send, int64_t *receive);
/* Writes the block for every other rank to `blocks`, which end behind them. */
void ts_shares_pack(const ts_shares *s, int32_t round, const ts_collective_memory *memory, char **blocks);
/* Writes results, after round 0 of two rounds only this rank's share, from the blocks of the other ranks. */
void ts_shares_finish(const ts_shares *s, int32_t round, const ts_collective_memory *memory, const char **blocks,
                      const _Atomic bool *cancel);

#endif
