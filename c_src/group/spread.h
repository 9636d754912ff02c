/* The ranks and hosts of the members of a group of partitions. Rank r of R has the partitions
 * [r P / R, (r + 1) P / R). All ranks find the same. */
#ifndef TS_GROUP_SPREAD_H
#define TS_GROUP_SPREAD_H

#include "exec/step_collective.h"

typedef struct ts_spread {
  int32_t number;  /* of the group: its members begin at number * size in the list of all members */
  int32_t count;   /* number of ranks with members */
  int32_t *ranks;  /* their numbers, in the order of their first members */
  int32_t *first;  /* index of the first member on each rank */
  int32_t *holder; /* for each member, the index in `ranks` of its rank */
  int32_t own;     /* index in `ranks` of this process */
  /* Members of a rank, if each rank holds an aligned subtree of the tree over the members: then a rank may combine the
   * terms of its members first. A power of two; the last rank may have fewer members. Else 0. */
  int32_t block;
  /* Ranks of a host, if each host also holds an aligned subtree; the last one may have fewer ranks. Else 0. */
  int32_t per_host;
  int32_t hosts;
} ts_spread;

/* `hosts`: the number of the host of each rank; NULL: all ranks are on one. Freed by ts_spread_deinit. */
ts_status ts_spread_init(const ts_collective *c, int32_t number, int32_t ranks, const int32_t *hosts, ts_spread *out);
void ts_spread_deinit(ts_spread *s);

/* Of one group, without memory: how many ranks of a host hold a subtree together, as `per_host`. */
int32_t ts_spread_per_host(const ts_collective *c, int32_t number, int32_t ranks, const int32_t *hosts);

static inline int32_t ts_spread_rank_of(const ts_collective *c, int32_t ranks, int32_t partition) {
  return partition / (c->partitions / ranks);
}
static inline const uint16_t *ts_spread_members(const ts_collective *c, int32_t number) {
  return c->members + (int64_t)number * c->size;
}
/* Ranks of a host that have members: `host` counts from 0. */
static inline int32_t ts_spread_on_host(const ts_spread *s, int32_t host) {
  int32_t left = s->count - host * s->per_host;
  return left < s->per_host ? left : s->per_host;
}

#endif
