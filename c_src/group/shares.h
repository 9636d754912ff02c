/* Carries out the rounds of a collective on a rank: lists the blocks that the rank sends and gets, packs them, and
 * makes results of them. The algorithm (group/algorithms.h) lists the transfers. All ranks compute the same lists from
 * the collective, the number of ranks and their hosts, so blocks need no description. Memory is the caller's. */
#ifndef TS_GROUP_SHARES_H
#define TS_GROUP_SHARES_H

#include "group/algorithms.h"
#include "group/carrier.h"

/* A collective on a rank. Its memory grows with the members of the groups that the rank has partitions of, and with
 * nothing else: so a job may have any number of ranks. */
typedef struct ts_shares {
  const ts_collective *collective;
  int32_t rank, ranks;
  const ts_algorithm *algorithm;
  int32_t spread_count;
  ts_spread *spreads;  /* of the groups of this rank's partitions */
  int64_t *partial_at; /* of each operand and spread: where its partial sums begin */
  int64_t partial_bytes;
} ts_shares;

/* True when no group has members on two ranks: then nothing is sent. */
bool ts_shares_are_local(const ts_collective *c, int32_t ranks);

/* Chooses the algorithm; `algorithm` (NULL: by the selection) is for tests. `out` is freed by ts_shares_close, also
 * after an error. */
ts_status ts_shares_open(const ts_collective *c, const ts_carrier *carrier, const ts_algorithm *algorithm,
                         ts_shares *out);
void ts_shares_close(ts_shares *s);

/* The bytes that this rank sends to each rank, and gets from it. */
void ts_shares_count(const ts_shares *s, int32_t round, int64_t *send, int64_t *receive);

/* A round's memory. `partial` has partial_bytes bytes, of the ranks' own partial sums. */
typedef struct ts_shares_round {
  int32_t round;
  const ts_collective_memory *memory;
  char *partial;
  const _Atomic bool *cancel;
} ts_shares_round;

/* Writes the block for each other rank to blocks[rank], which end behind them; NULL: this rank sends it nothing. */
void ts_shares_pack(const ts_shares *s, const ts_shares_round *round, char **blocks);
/* Makes results, or parts of them, of the blocks of the other ranks. */
ts_status ts_shares_finish(const ts_shares *s, const ts_shares_round *round, const char **blocks);

#endif
