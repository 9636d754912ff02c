/* The collective algorithms. Drawings have five ranks, a to e, with one member each; N is the bytes of an operand, R
 * the number of ranks. Latency is counted in exchanges: each costs every rank R - 1 headers, and one wait for the
 * slowest rank. */
#include "group/algorithms.h"

typedef ts_transfer transfer;

/* ---- common ---- */

static transfer new_transfer(const ts_visit *v) {
  return (transfer){.operand = v->operand, .to = v->to, .partition = v->partition, .count = 1};
}

static bool is_wanted(const ts_visit *v, int32_t from) { return v->from < 0 || v->from == from; }

/* The members of the group that can be on the wanted rank. */
static void members_from(const ts_visit *v, int32_t out[2]) {
  int32_t block = v->spread->block, size = v->collective->size;
  bool is_block = v->from >= 0 && block > 0;
  out[0] = is_block ? v->from * block : 0;
  out[1] = is_block && out[0] + block < size ? out[0] + block : size;
}

/* Piece `index` of `count` pieces of whole elements of [from, to). */
static void cut(int64_t size, const int64_t of[2], const int32_t piece[2], int64_t out[2]) {
  int64_t elements = (of[1] - of[0]) / size;
  out[0] = of[0] + elements * piece[0] / piece[1] * size;
  out[1] = of[0] + elements * (piece[0] + 1) / piece[1] * size;
}

/* A share of the operand: share `index` of `count`. */
static void set_share(const ts_visit *v, int32_t index, int32_t count, transfer *t) {
  int64_t size = ts_collective_element_size(v->collective, v->operand), out[2];
  t->part = ts_move_whole(ts_collective_operand_bytes(v->collective, v->operand));
  cut(size, (int64_t[]){0, t->part.run}, (int32_t[]){index, count}, out);
  t->first = out[0];
  t->last = out[1];
}

static void find_one(const ts_visit *v, int32_t from, transfer *t) {
  t->from = from;
  if (is_wanted(v, from)) v->found(v->context, t);
}

/* The ranks [ranks[0], ranks[1]), or only the wanted one if it is among them. */
static void ranks_from(const ts_visit *v, const int32_t ranks[2], int32_t out[2]) {
  bool is_one = v->from >= 0, is_in = v->from >= ranks[0] && v->from < ranks[1];
  out[0] = is_one ? v->from : ranks[0];
  out[1] = is_one ? v->from + is_in : ranks[1];
}

/* Terms as they are: of the members that ranks [ranks[0], ranks[1]) hold. */
static void find_single_terms(const ts_visit *v, const int32_t ranks[2], transfer *t) {
  const ts_spread *s = v->spread;
  bool is_all = ranks[0] == 0 && ranks[1] == s->count;
  int32_t first = is_all ? 0 : ranks[0] * s->block, last = is_all ? v->collective->size : ranks[1] * s->block, some[2];
  if (last > v->collective->size) last = v->collective->size;
  members_from(v, some);
  t->is_partial = false;
  t->count = 1;
  t->terms = last - first;
  for (int32_t m = some[0] > first ? some[0] : first; m < last && m < some[1]; m++) {
    t->term = m - first;
    t->member = m;
    find_one(v, s->holder[m], t);
  }
}

/* The terms of a sum, of the members that some ranks hold. A rank combines its own before it sends them, where that
 * sends no more bytes: types that are combined in a wider one may have fewer as they are. */
static void find_terms(const ts_visit *v, const int32_t ranks[2], transfer *t) {
  const ts_spread *s = v->spread;
  int32_t size = v->collective->size, some[2];
  bool combines = s->block > 1 && s->block * ts_collective_element_size(v->collective, v->operand) >=
                                      ts_collective_partial_size(v->collective, v->operand);
  if (!combines) {
    find_single_terms(v, ranks, t);
    return;
  }
  t->is_partial = true;
  t->terms = ranks[1] - ranks[0];
  ranks_from(v, ranks, some);
  for (int32_t k = some[0]; k < some[1]; k++) {
    t->term = k - ranks[0];
    t->member = k * s->block;
    t->count = size - t->member < s->block ? size - t->member : s->block;
    find_one(v, k, t);
  }
}

/* ---- move: all_gather, all_to_all, permute, broadcast, barrier ----
 *
 *          a          b          c          d          e
 * before   A          B          C          D          E
 * 1        A B C D E  A B C D E  A B C D E  A B C D E  A B C D E      (an all_gather)
 *
 * Each part is sent to the ranks that need it, once to each.
 * Exchanges 1. In an all_gather a rank sends N (R - 1), in an all_to_all N (R - 1) / R, in a permute N. The root of a
 * broadcast sends N (R - 1). */
static void find_moves(const ts_visit *v, int32_t round) {
  const ts_collective *c = v->collective;
  int32_t own = ts_collective_own(c, v->partition), members[2];
  transfer t = new_transfer(v);
  (void)round;
  members_from(v, members);
  for (t.member = members[0]; t.member < members[1]; t.member++) {
    if (!is_wanted(v, v->spread->holder[t.member])) continue;
    t.part = ts_collective_move(c, v->operand, own, t.member);
    t.last = ts_move_bytes(&t.part);
    if (t.last > 0) find_one(v, v->spread->holder[t.member], &t);
  }
}

/* ---- scatter: reduce_scatter ----
 *
 *          a         b         c         d         e
 * before   a0 .. a4  b0 .. b4  c0 .. c4  d0 .. d4  e0 .. e4
 * 1        S0        S1        S2        S3        S4             Sk = (((ak bk) (ck dk)) ek)
 *
 * Each rank gets all terms of its own part, and adds them in the tree over the members.
 * Exchanges 1. A rank sends N (R - 1) / R. */
static void find_scattered(const ts_visit *v, int32_t round) {
  const ts_collective *c = v->collective;
  transfer t = new_transfer(v);
  (void)round;
  t.part = ts_collective_move(c, v->operand, ts_collective_own(c, v->partition), 0);
  t.last = ts_move_bytes(&t.part);
  if (t.last > 0) find_terms(v, (int32_t[]){0, v->spread->count}, &t);
}

/* ---- everywhere: short all_reduces ----
 *
 *          a            b            c            d            e
 * before   a            b            c            d            e
 * 1        a b c d e    a b c d e    a b c d e    a b c d e    a b c d e      then each adds ((a b) (c d)) e
 *
 * Each rank gets all terms and adds all of them.
 * Exchanges 1. A rank sends N (R - 1). */
static void find_everywhere(const ts_visit *v, int32_t round) {
  transfer t = new_transfer(v);
  (void)round;
  set_share(v, 0, 1, &t);
  if (t.part.run > 0) find_terms(v, (int32_t[]){0, v->spread->count}, &t);
}

/* ---- shares: long all_reduces ----
 *
 *          a          b          c          d          e
 * before   a0 .. a4   b0 .. b4   c0 .. c4   d0 .. d4   e0 .. e4
 * 1        S0         S1         S2         S3         S4
 * 2        S0 .. S4   S0 .. S4   S0 .. S4   S0 .. S4   S0 .. S4
 *
 * Each rank adds one share of the elements, as in `scatter`, then sends it to all others.
 * Exchanges 2. A rank sends 2 N (R - 1) / R, the least that an all_reduce can. */
static void find_shares(const ts_visit *v, int32_t round) {
  int32_t ranks = v->spread->count;
  transfer t = new_transfer(v);
  if (ts_collective_operand_bytes(v->collective, v->operand) == 0) return;
  if (round == 0) {
    set_share(v, v->to, ranks, &t);
    find_terms(v, (int32_t[]){0, ranks}, &t);
    return;
  }
  int32_t some[2];
  ranks_from(v, (int32_t[]){0, ranks}, some);
  for (int32_t k = some[0]; k < some[1]; k++) {
    set_share(v, k, ranks, &t);
    t.member = v->spread->first[k];
    if (k != v->to) find_one(v, k, &t);
  }
}

/* ---- hosts: long all_reduces of ranks on several hosts ----
 *
 *            one host          another          a third
 *          a         b         c         d         e
 * before   a0 a1     b0 b1     c0 c1     d0 d1     e0 e1           N is cut into a share for each rank of a host
 * 1        (ab)0     (ab)1     (cd)0     (cd)1     e0 e1           partial sums, inside of each host
 * 2        S0'       S1'       S0''      S1''      S0''' S1'''     each share is cut again, into one for each host
 * 3        S0        S1        S0        S1        S0 S1           between the ranks of one share
 * 4        S0 S1     S0 S1     S0 S1     S0 S1     S0 S1           inside of each host
 *
 * Only rounds 2 and 3 use the network: a rank talks to one rank of each other host. A host with fewer ranks than others
 * (the last one) has ranks with several shares.
 * Exchanges 4. With L ranks on each of H hosts a rank sends 2 N (L - 1) / L to its own host, and 2 N / L (H - 1) / H to
 * others: a host sends 2 N (H - 1) / H, where `shares` sends L times as much. Of types that are combined in a wider
 * one, round 2 moves partial sums of the wider type.
 */

/* The rank of a host that adds a share, by its index in the spread. */
static int32_t holder_of(const ts_spread *s, int32_t host, int32_t share) {
  return host * s->per_host + share % ts_spread_on_host(s, host);
}

/* Cuts the bytes [t->first, t->last) down to the share of one host. */
static void cut_for_host(const ts_visit *v, int32_t host, transfer *t) {
  int64_t of[2] = {t->first, t->last}, out[2];
  cut(ts_collective_element_size(v->collective, v->operand), of, (int32_t[]){host, v->spread->hosts}, out);
  t->first = out[0];
  t->last = out[1];
}

static void find_share_of_hosts(const ts_visit *v, int32_t round, int32_t share) {
  const ts_spread *s = v->spread;
  int32_t host = v->to / s->per_host, from_host = v->from / s->per_host;
  transfer t = new_transfer(v);
  t.piece = share;
  set_share(v, share, s->per_host, &t);
  if (round == 0) {
    find_terms(v, (int32_t[]){host * s->per_host, host * s->per_host + ts_spread_on_host(s, host)}, &t);
    return;
  }
  for (int32_t other = v->from < 0 ? 0 : from_host; other < (v->from < 0 ? s->hosts : from_host + 1); other++) {
    int32_t from = holder_of(s, other, share);
    if (!is_wanted(v, from) || (round == 2 && other == host)) continue;
    set_share(v, share, s->per_host, &t);
    cut_for_host(v, round == 1 ? host : other, &t);
    t.is_partial = round == 1;
    t.member = s->first[from];
    t.term = other;
    t.terms = s->hosts;
    find_one(v, from, &t);
  }
}

/* The shares of the other ranks of the host. */
static void find_shares_of_host(const ts_visit *v) {
  const ts_spread *s = v->spread;
  int32_t host = v->to / s->per_host;
  transfer t = new_transfer(v);
  for (int32_t share = 0; share < s->per_host; share++) {
    int32_t holder = holder_of(s, host, share);
    if (holder == v->to || !is_wanted(v, holder)) continue;
    set_share(v, share, s->per_host, &t);
    t.member = s->first[holder];
    find_one(v, holder, &t);
  }
}

static void find_by_hosts(const ts_visit *v, int32_t round) {
  const ts_spread *s = v->spread;
  int32_t host = v->to / s->per_host, here = ts_spread_on_host(s, host);
  bool is_inside = round == 0 || round == 3;
  if (ts_collective_operand_bytes(v->collective, v->operand) == 0) return;
  if (is_inside && v->from >= 0 && v->from / s->per_host != host) return;
  if (round == 3)
    find_shares_of_host(v);
  else
    for (int32_t share = v->to % s->per_host; share < s->per_host; share += here) find_share_of_hosts(v, round, share);
}

/* The bytes of a rank's partial sums of a share: 0 if another rank of its host adds the share. */
static int64_t partial_share(const ts_collective *c, const ts_spread *s, const int32_t rank_and_share[2],
                             uint32_t operand, int64_t *out_first) {
  ts_visit v = {.collective = c, .spread = s, .operand = operand};
  transfer t = {.operand = operand};
  set_share(&v, rank_and_share[1], s->per_host, &t);
  *out_first = t.first;
  if (holder_of(s, rank_and_share[0] / s->per_host, rank_and_share[1]) != rank_and_share[0]) return 0;
  return ts_collective_partial_bytes(c, operand, t.last - t.first);
}

/* The bytes of the shares before `last`. */
static int64_t partial_before(const ts_collective *c, const ts_spread *s, int32_t rank, uint32_t operand,
                              int32_t last) {
  int64_t sum = 0, first;
  for (int32_t share = 0; share < last; share++) sum += partial_share(c, s, (int32_t[]){rank, share}, operand, &first);
  return sum;
}

int64_t ts_algorithm_partial_bytes(const ts_collective *c, const ts_spread *s, uint32_t operand, int32_t rank) {
  return partial_before(c, s, rank, operand, s->per_host);
}

int64_t ts_algorithm_partial_at(const ts_collective *c, const ts_spread *s, const ts_transfer *t, int64_t *out_first) {
  partial_share(c, s, (int32_t[]){t->from, t->piece}, t->operand, out_first);
  return partial_before(c, s, t->from, t->operand, t->piece);
}

/* ---- the list ---- */

const ts_algorithm ts_algorithms[TS_ALGORITHM_COUNT] = {
    [TS_ALGORITHM_MOVE] = {"move", 1, {TS_ROUND_MOVE}, find_moves},
    [TS_ALGORITHM_SCATTER] = {"scatter", 1, {TS_ROUND_SUM}, find_scattered},
    [TS_ALGORITHM_EVERYWHERE] = {"everywhere", 1, {TS_ROUND_SUM}, find_everywhere},
    [TS_ALGORITHM_SHARES] = {"shares", 2, {TS_ROUND_SUM, TS_ROUND_SPREAD}, find_shares},
    [TS_ALGORITHM_HOSTS] = {"hosts",
                            4,
                            {TS_ROUND_PARTIAL, TS_ROUND_SUM, TS_ROUND_SPREAD, TS_ROUND_SPREAD},
                            find_by_hosts},
};
