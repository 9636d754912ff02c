#include "group/spread.h"

#include "base/alloc.h"

/* ---- ranks ---- */

static ts_status allocate(const ts_collective *c, ts_spread *out) {
  int32_t *all;
  TS_TRY(TS_NEW_ARRAY((size_t)c->size * 3, &all));
  out->ranks = all;
  out->first = all + c->size;
  out->holder = all + 2 * c->size;
  return TS_SUCCESS;
}

/* A rank's partitions follow each other, but its members of a group need not. So each member looks for its rank among
 * the ranks found so far, the last one first: nearly always it is the last one. */
static int32_t find_rank(const ts_spread *s, int32_t rank) {
  int32_t k = s->count;
  while (k-- > 0)
    if (s->ranks[k] == rank) return k;
  return -1;
}

static void list_ranks(const ts_collective *c, int32_t ranks, ts_spread *s) {
  const uint16_t *members = ts_spread_members(c, s->number);
  bool ascends = true;
  for (int32_t m = 0; m < c->size; m++) {
    int32_t rank = ts_spread_rank_of(c, ranks, members[m]);
    bool is_next = s->count == 0 || rank > s->ranks[s->count - 1];
    int32_t k = ascends && is_next ? -1 : find_rank(s, rank);
    ascends = ascends && (is_next || k == s->count - 1);
    if (k < 0) {
      k = s->count++;
      s->ranks[k] = rank;
      s->first[k] = m;
    }
    s->holder[m] = k;
  }
}

/* ---- blocks of members ---- */

static bool is_power_of_two(int32_t n) { return (n & (n - 1)) == 0; }

/* Members of the first rank. */
static int32_t first_block(const ts_collective *c, int32_t number, int32_t ranks) {
  const uint16_t *members = ts_spread_members(c, number);
  int32_t block = 1;
  while (block < c->size && ts_spread_rank_of(c, ranks, members[block]) == ts_spread_rank_of(c, ranks, members[0]))
    block++;
  return block;
}

static int32_t find_block(const ts_collective *c, int32_t ranks, const ts_spread *s) {
  int32_t block = first_block(c, s->number, ranks);
  if (block == c->size || !is_power_of_two(block)) return 0;
  for (int32_t m = 0; m < c->size; m++)
    if (s->holder[m] != m / block) return 0;
  return block;
}

/* ---- hosts ---- */

/* The host of the k-th block of members; -1 if that is no block of one rank. */
static int32_t host_of_block(const ts_collective *c, int32_t number, int32_t ranks, const int32_t *hosts,
                             const int32_t range[2]) {
  const uint16_t *members = ts_spread_members(c, number);
  int32_t rank = ts_spread_rank_of(c, ranks, members[range[0]]);
  for (int32_t m = range[0]; m < range[1]; m++)
    if (ts_spread_rank_of(c, ranks, members[m]) != rank) return -1;
  if (range[0] > 0 && ts_spread_rank_of(c, ranks, members[range[0] - 1]) >= rank) return -1; /* ranks ascend */
  return hosts[rank];
}

int32_t ts_spread_per_host(const ts_collective *c, int32_t number, int32_t ranks, const int32_t *hosts) {
  int32_t block = first_block(c, number, ranks), blocks = (c->size + block - 1) / block, per_host = 0, before = -1;
  if (!hosts || !is_power_of_two(block)) return 0;
  for (int32_t k = 0; k < blocks; k++) {
    int32_t last = (k + 1) * block < c->size ? (k + 1) * block : c->size;
    int32_t host = host_of_block(c, number, ranks, hosts, (int32_t[]){k * block, last});
    if (host < 0) return 0;
    if (k > 0 && per_host == 0 && host != before) per_host = k;
    if (per_host > 0 && (host == before) != (k % per_host != 0)) return 0;
    before = host;
  }
  return per_host > 1 && is_power_of_two(per_host) ? per_host : 0;
}

/* ---- all ---- */

ts_status ts_spread_init(const ts_collective *c, int32_t number, int32_t ranks, const int32_t *hosts, ts_spread *out) {
  *out = (ts_spread){.number = number};
  TS_TRY(allocate(c, out));
  list_ranks(c, ranks, out);
  out->block = find_block(c, ranks, out);
  out->per_host = ts_spread_per_host(c, number, ranks, hosts);
  out->hosts = out->per_host > 0 ? (out->count + out->per_host - 1) / out->per_host : 0;
  return TS_SUCCESS;
}

void ts_spread_deinit(ts_spread *s) { ts_free(s->ranks); }
